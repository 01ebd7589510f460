void out_of_lanes(uniform int n) {
    if (programIndex > n) goto done; //~ error[limitation]: jumps out of code that depends on lanes, or into it are not supported yet
    n = 2;
done:
    n = 3;
}
uniform int left_out(uniform int n) {
    if (n > 3) goto done;
    uniform int k = 2;
    n += k;
done:
    return n + k; //~ error[limitation]: variables whose declarations a `goto` leaves out are not supported yet
}
void into_a_block(uniform int n) {
    {
        uniform int k = 0;
    inside:
        k++;
    }
    if (n > 0) goto inside; //~ error[limitation]: jumps into blocks are not supported yet
}

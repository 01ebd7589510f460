export uniform int f(uniform int n) {
    foreach (i = 0 ... n) {
        foreach (j = 0 ... n) { } //~ error[limitation]: `foreach` within `foreach` are not supported yet
        if (i > 3) return 1; //~ error[limitation]: `return`s in `foreach` loops are not supported yet
    }
    unmasked { return 2; } //~ error[limitation]: `return`s in statements that leave SIMD mode are not supported yet
    return 0;
}

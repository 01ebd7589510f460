void of_lanes(float numbers[], float * uniform x, float * uniform y) {
    aos_to_soa2(numbers, x, y); //~ error[sierra-type]: found `varying float`, expected elements that are `uniform` numbers
}
void of_pointers(uniform float * uniform numbers[], float * uniform x, float * uniform y) {
    soa_to_aos2(*x, *y, numbers); //~ error[sierra-type]: found `uniform float * uniform`, expected elements that are `uniform` numbers
}

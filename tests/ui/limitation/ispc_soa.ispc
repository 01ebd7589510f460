struct P { float x; float v[2]; };
void f(soa<4> P * uniform p) {
    float * q = &p[programIndex].x; //~ error[limitation]: pointers to elements of `soa<n>` values are not supported yet
    p = p + 1; //~ error[limitation]: pointers to elements of `soa<n>` values are not supported yet
    float x = p[0].v[programIndex & 1]; //~ error[limitation]: indices in each lane into an array of one element of a `soa<n>` value are not supported yet
}

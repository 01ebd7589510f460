struct P { float x; float v[2]; };
struct Holder { soa<4> P * uniform p; };
export void known(soa<4> P p[]) { p[1].x = 0; }
void f(soa<4> P * uniform p) {
    soa<4> P a[2];
    known(a);
    known(p + 1); //~ error[limitation]: pointers to elements of `soa<n>` values as arguments of exported functions are not supported yet
    float y = (*&p[1].v)[0]; //~ error[limitation]: pointers to arrays in elements of `soa<n>` values are not supported yet
    float x = p[0].v[programIndex & 1]; //~ error[limitation]: indices in each lane into an array of one element of a `soa<n>` value are not supported yet
}
export void g(uniform Holder * uniform h) { } //~ error[limitation]: pointers to `soa<n>` values in structs that other code knows are not supported yet
struct Counted { uniform int count; int x; };
void each() {
    soa<4> Counted a[16];
    foreach (i = 0 ... 16) {
        Counted p = a[i]; //~ error[limitation]: elements of `soa<n>` for each lane, with fields that are `uniform`, are not supported yet
    }
}

void f() {
    int v = 0;
    atomic_add_local(&v, 1); //~ error[sierra-type]: found `varying int * uniform`, expected a pointer to a `uniform` number of 8, 16, 32 or 64 bits
}

// Memory of a function: of sizes that the compiler does not know, and a piece for each round of a loop.
static uniform int sum_to(uniform int n) {
    uniform int * uniform a = (uniform int * uniform)alloca(n * sizeof(uniform int));
    for (uniform int i = 0; i < n; ++i) a[i] = i;
    int part = 0;
    foreach (i = 0 ... n) part += a[i];
    return reduce_add(part);
}
static int of_lanes(uniform int n, int x) {
    varying int * uniform last = NULL;
    for (uniform int i = 0; i < n; ++i) {
        varying int * uniform a = (varying int * uniform)alloca(sizeof(varying int));
        *a = x + i;
        if (last != NULL) *a += *last;
        last = a;
    }
    return *last;
}
export uniform bool test_sizes() {
    return sum_to(1) == 0 && sum_to(100) == 4950 && sum_to(3000) == 4498500 && all(of_lanes(3, programIndex) == 3 * programIndex + 3);
}

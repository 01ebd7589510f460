#include "timing.h"
#include "work.h"
#define N (4 << 20)
int main(int argc, char **argv) {
    only = argc > 1 ? argv[1] : 0;
    int32_t *a = aligned_alloc(64, N * sizeof(int32_t));
    for (int i = 0; i < N; i++) a[i] = 0;
    MEASURE("empty", 2000, for (int k = 0; k < 2000; k++) {
        _Pragma("omp parallel for") for (int i = 0; i < 64; i++) touch(a, i);
    });
    MEASURE("spaced", 200, for (int k = 0; k < 200; k++) {
        steps(60000);
        _Pragma("omp parallel for") for (int i = 0; i < 64; i++) touch(a, i);
    });
    MEASURE("call", 1000000, { _Pragma("omp parallel for") for (int i = 0; i < 1000000; i++) touch(a, i); });
    MEASURE("store", N, { _Pragma("omp parallel for") for (int i = 0; i < N; i++) a[i] = i * i; });
    MEASURE("uneven", 1, {
        _Pragma("omp parallel for schedule(guided)") for (int i = 0; i < 2000; i++) a[i] = steps(i);
    });
    MEASURE("uneven_static", 1, { _Pragma("omp parallel for") for (int i = 0; i < 2000; i++) a[i] = steps(i); });
    MEASURE("nested", 4096, {
        _Pragma("omp parallel for") for (int y = 0; y < 64; y++) {
            _Pragma("omp parallel for") for (int x = 0; x < 64; x++) touch(a, y * 64 + x);
        }
    });
    return a[7] == -1;
}

// Limits of the machine, for rooflines: fused multiplications and additions of f32 in 12 independent vectors (GFLOP/s), copying of 64 MiB
// past the caches (GB/s, read and written). Argument: threads.
#include "image.h"
#include <cstdio>
#include <cstdlib>
typedef float vec __attribute__((vector_size(64)));

static double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// The best of many: what other work takes away is no limit of the machine.
template <class F> static double shortest(F run) {
    double best = 1e9, begin = seconds();
    for (int n = 0; n < 5 || (n < 200 && seconds() - begin < 1); n++) {
        double start = seconds();
        run();
        best = std::min(best, seconds() - start);
    }
    return best;
}

int main(int argc, char **argv) {
    n_threads = argc > 1 ? atoi(argv[1]) : 1;
    const long rounds = 400000;
    double fma = shortest([&] {
        bands(n_threads, [&](int, int) {
            vec a[12], b, c;
            for (int i = 0; i < 12; i++) a[i] = vec{} + (float)i;
            b = vec{} + .999f, c = vec{} + .001f;
            asm volatile("" : "+m"(b), "+m"(c));
            for (long k = 0; k < rounds; k++) {
#pragma GCC unroll 12
                for (int i = 0; i < 12; i++) a[i] = a[i] * b + c;
            }
            for (int i = 0; i < 12; i++) asm volatile("" ::"m"(a[i]));
        });
    });
    printf("fma %.17g\n", 1e-9 * rounds * 12 * 16 * 2 * n_threads / fma);
    const int rows = 4096, row = 4096;
    float *from = pages<float>((size_t)rows * row), *to = pages<float>((size_t)rows * row);
    double copy = shortest([&] {
        bands(rows, [&](int y0, int y1) {
            for (size_t i = (size_t)y0 * row; i < (size_t)y1 * row; i += 16) {
#if __AVX512F__
                _mm512_stream_ps(to + i, _mm512_load_ps(from + i));
#else
                *(vec *)(to + i) = *(vec *)(from + i);
#endif
            }
        });
    });
    printf("copy %.17g\n", 2e-9 * rows * row * 4 / copy);
}

#include "timing.h"
#include "work.h"
#include <tbb/parallel_for.h>
#define N (4 << 20)
int main(int argc, char **argv) {
    only = argc > 1 ? argv[1] : nullptr;
    auto *a = static_cast<int32_t *>(aligned_alloc(64, N * sizeof(int32_t)));
    for (int i = 0; i < N; i++) a[i] = 0;
    using range = tbb::blocked_range<int>;
    auto loop = [](int n, auto body) {
        tbb::parallel_for(range(0, n), [&](const range &r) { for (int i = r.begin(); i < r.end(); i++) body(i); });
    };
    MEASURE("empty", 2000, for (int k = 0; k < 2000; k++) loop(64, [&](int i) { touch(a, i); }););
    MEASURE("spaced", 200, for (int k = 0; k < 200; k++) { steps(60000); loop(64, [&](int i) { touch(a, i); }); });
    MEASURE("call", 1000000, loop(1000000, [&](int i) { touch(a, i); }););
    MEASURE("store", N, loop(N, [&](int i) { a[i] = i * i; }););
    MEASURE("uneven", 1, loop(2000, [&](int i) { a[i] = steps(i); }););
    MEASURE("nested", 4096, loop(64, [&](int y) { loop(64, [&](int x) { touch(a, y * 64 + x); }); }););
    return a[7] == -1;
}

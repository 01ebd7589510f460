// Code that the image programs share: memory in huge pages, the same contents as ours, rows by parts for threads.
#pragma once
#include "../vectorize/timing.h"
#include <immintrin.h>
#include <sys/mman.h>
// Large arrays ask for huge pages, as ours do: without them the same program takes up to a third longer.
template <class T> T *pages(size_t n) {
    void *p = nullptr;
    size_t bytes = n * sizeof(T);
    bool large = bytes >= (4u << 20);
    if (posix_memalign(&p, large ? 2u << 20 : 4096, bytes)) abort();
    if (large) madvise(p, bytes, MADV_HUGEPAGE);
    std::memset(p, 0, bytes);
    return static_cast<T *>(p);
}
static inline int cl(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }
static inline float noise(size_t i) { return (float)((i * 2654435761u) >> 8 & 0xffff) / 65536.f; }
static inline float noise2(size_t i) { return (float)((i * 40503u) >> 4 & 0xff) / 256.f; }
// f(y0, y1) on each thread.
template <class F> void bands(int h, F f) {
    each(n_threads, 1, [&](int lo, int hi) {
        for (int t = lo; t < hi; t++) f((int)((long)h * t / n_threads), (int)((long)h * (t + 1) / n_threads));
    });
}

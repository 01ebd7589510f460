// Peer of residual_restrict.impala: the residual of two rows, then their restriction; `hand` with stores past the caches and prefetches;
// `scalar` is one after the other, each of the whole image.
#include "image.h"
static const int W = 4096, H = 4096;
typedef const float *__restrict P;
typedef float *__restrict O;
static inline void rrow(P a, P b, P c, P f, O o) {
    o[0] = f[0] - (4 * b[0] - a[0] - c[0] - b[0] - b[1]);
#pragma omp simd
    for (int x = 1; x < W - 1; x++) o[x] = f[x] - (4 * b[x] - a[x] - c[x] - b[x - 1] - b[x + 1]);
    o[W - 1] = f[W - 1] - (4 * b[W - 1] - a[W - 1] - c[W - 1] - b[W - 2] - b[W - 1]);
}
static inline void restrict_row(P a, P b, O o) {
#pragma omp simd
    for (int x = 0; x < W / 2; x++) o[x] = .25f * (a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1]);
}
#if __AVX512F__
static inline void rrow_hand(P a, P b, P c, P f, O o) {
    __m512 four = _mm512_set1_ps(4);
    auto put = [&](int x, __m512 l, __m512 r) {
        __m512 sum = _mm512_add_ps(_mm512_add_ps(_mm512_load_ps(a + x), _mm512_load_ps(c + x)), _mm512_add_ps(l, r));
        _mm512_store_ps(o + x, _mm512_sub_ps(_mm512_load_ps(f + x), _mm512_fmsub_ps(four, _mm512_load_ps(b + x), sum)));
    };
    __m512i up = _mm512_set_epi32(14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0), down = _mm512_set_epi32(15, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    put(0, _mm512_permutexvar_ps(up, _mm512_load_ps(b)), _mm512_loadu_ps(b + 1));
    for (int x = 16; x < W - 16; x += 16) {
        _mm_prefetch((const char *)(c + x + 256), _MM_HINT_T0), _mm_prefetch((const char *)(f + x + 256), _MM_HINT_T0);
        put(x, _mm512_loadu_ps(b + x - 1), _mm512_loadu_ps(b + x + 1));
    }
    put(W - 16, _mm512_loadu_ps(b + W - 17), _mm512_permutexvar_ps(down, _mm512_load_ps(b + W - 16)));
}
static inline void restrict_row_hand(P a, P b, O o) {
    __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    for (int x = 0; x < W / 2; x += 16) {
        auto sum = [&](int x) { return _mm512_add_ps(_mm512_load_ps(a + x), _mm512_load_ps(b + x)); };
        __m512 l = sum(2 * x), r = sum(2 * x + 16);
        _mm512_stream_ps(o + x, _mm512_mul_ps(_mm512_set1_ps(.25f), _mm512_add_ps(_mm512_permutex2var_ps(l, even, r), _mm512_permutex2var_ps(l, odd, r))));
    }
}
#else
static inline void rrow_hand(P a, P b, P c, P f, O o) { rrow(a, b, c, f, o); }
static inline void restrict_row_hand(P a, P b, O o) { restrict_row(a, b, o); }
#endif
static float *whole;
static const float *row(const float *u, int y) { return u + (size_t)cl(y, 0, H - 1) * W; }
__attribute__((noinline)) void separate(const float *u, const float *f, float *v) {
    bands(H, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++) rrow(row(u, y - 1), row(u, y), row(u, y + 1), f + (size_t)y * W, whole + (size_t)y * W);
    });
    bands(H / 2, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++) restrict_row(whole + (size_t)2 * y * W, whole + (size_t)(2 * y + 1) * W, v + (size_t)y * (W / 2));
    });
}
template <bool HAND> __attribute__((noinline)) void fused(const float *u, const float *f, float *v) {
    bands(H / 2, [&](int y0, int y1) {
        float *t = pages<float>(2 * W);
        for (int y = y0; y < y1; y++) {
            for (int k = 0; k < 2; k++) {
                int q = 2 * y + k;
                (HAND ? rrow_hand : rrow)(row(u, q - 1), row(u, q), row(u, q + 1), f + (size_t)q * W, t + k * W);
            }
            (HAND ? restrict_row_hand : restrict_row)(t, t + W, v + (size_t)y * (W / 2));
        }
        if (HAND) _mm_sfence();
        free(t);
    });
}
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, const float *, float *)> variants{{"scalar", separate}, {"simd", fused<false>}, {"hand", fused<true>}};
    auto run = chosen(variants, argc, argv);
    float *u = pages<float>((size_t)W * H), *f = pages<float>((size_t)W * H), *v = pages<float>((size_t)W * H / 4);
    whole = pages<float>((size_t)W * H);
    for (int i = 0; i < W * H; i++) u[i] = noise(i), f[i] = noise2(i);
    measure([&] { run(u, f, v); });
    sums(W * H / 4, [&](int i) { return v[i]; });
}

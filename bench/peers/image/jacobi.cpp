// Peer of jacobi.impala: one sweep; rows with their ends apart; plain, or by intrinsics, which store past the caches and ask for what
// is 1 KiB ahead.
#include "image.h"
static const int W = 4096, H = 4096;
typedef const float *__restrict P;
typedef float *__restrict O;
static inline void jrow(P a, P b, P c, P f, O o) {
    o[0] = .25f * (a[0] + c[0] + b[0] + b[1] + f[0]);
#pragma omp simd
    for (int x = 1; x < W - 1; x++) o[x] = .25f * (a[x] + c[x] + b[x - 1] + b[x + 1] + f[x]);
    o[W - 1] = .25f * (a[W - 1] + c[W - 1] + b[W - 2] + b[W - 1] + f[W - 1]);
}
#if __AVX512F__
static inline void jrow_nt(P a, P b, P c, P f, O o) {
    __m512 q = _mm512_set1_ps(.25f);
    auto sum = [&](int x, __m512 l, __m512 r) {
        return _mm512_add_ps(_mm512_add_ps(_mm512_load_ps(a + x), _mm512_load_ps(c + x)), _mm512_add_ps(_mm512_add_ps(l, r), _mm512_load_ps(f + x)));
    };
    __m512i up = _mm512_set_epi32(14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0), down = _mm512_set_epi32(15, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    _mm512_stream_ps(o, _mm512_mul_ps(q, sum(0, _mm512_permutexvar_ps(up, _mm512_load_ps(b)), _mm512_loadu_ps(b + 1))));
    for (int x = 16; x < W - 16; x += 16) {
        _mm_prefetch((const char *)(c + x + 256), _MM_HINT_T0), _mm_prefetch((const char *)(f + x + 256), _MM_HINT_T0);
        _mm512_stream_ps(o + x, _mm512_mul_ps(q, sum(x, _mm512_loadu_ps(b + x - 1), _mm512_loadu_ps(b + x + 1))));
    }
    int x = W - 16;
    _mm512_stream_ps(o + x, _mm512_mul_ps(q, sum(x, _mm512_loadu_ps(b + x - 1), _mm512_permutexvar_ps(down, _mm512_load_ps(b + x)))));
}
#else
static inline void jrow_nt(P a, P b, P c, P f, O o) { jrow(a, b, c, f, o); }
#endif
template <bool NT> __attribute__((noinline)) void sweep(const float *u, const float *f, float *v) {
    bands(H, [&](int y0, int y1) {
        auto R = [&](int y) { return u + (size_t)cl(y, 0, H - 1) * W; };
        for (int y = y0; y < y1; y++) (NT ? jrow_nt : jrow)(R(y - 1), R(y), R(y + 1), f + (size_t)y * W, v + (size_t)y * W);
        if (NT) _mm_sfence();
    });
}
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, const float *, float *)> variants{{"simd", sweep<false>}, {"hand", sweep<true>}};
    auto run = chosen(variants, argc, argv);
    float *u = pages<float>((size_t)W * H), *f = pages<float>((size_t)W * H), *v = pages<float>((size_t)W * H);
    for (int i = 0; i < W * H; i++) u[i] = noise(i), f[i] = noise2(i);
    measure([&] { run(u, f, v); });
    sums(W * H, [&](int i) { return v[i]; });
}

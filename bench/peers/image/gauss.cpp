// Peer of gauss.impala: both passes fused by a ring of rows; plain stores, or past the caches by intrinsics.
#include "image.h"
static const int W = 4096, H = 4096;
typedef const float *__restrict P;
typedef float *__restrict O;
static inline void rowpass(P r, O o) {
    constexpr float k0 = 1 / 16.f, k1 = 4 / 16.f, k2 = 6 / 16.f;
    for (int x = 0; x < 2; x++) o[x] = k0 * (r[cl(x - 2, 0, W - 1)] + r[x + 2]) + k1 * (r[cl(x - 1, 0, W - 1)] + r[x + 1]) + k2 * r[x];
#pragma omp simd
    for (int x = 2; x < W - 2; x++) o[x] = k0 * (r[x - 2] + r[x + 2]) + k1 * (r[x - 1] + r[x + 1]) + k2 * r[x];
    for (int x = W - 2; x < W; x++) o[x] = k0 * (r[x - 2] + r[cl(x + 2, 0, W - 1)]) + k1 * (r[x - 1] + r[cl(x + 1, 0, W - 1)]) + k2 * r[x];
}
static inline void colpass(P a, P b, P c, P d, P e, O o) {
    constexpr float k0 = 1 / 16.f, k1 = 4 / 16.f, k2 = 6 / 16.f;
#pragma omp simd
    for (int x = 0; x < W; x++) o[x] = k0 * (a[x] + e[x]) + k1 * (b[x] + d[x]) + k2 * c[x];
}
#if __AVX512F__
static inline void colpass_nt(const float *a, const float *b, const float *c, const float *d, const float *e, float *o) {
    __m512 k0 = _mm512_set1_ps(1 / 16.f), k1 = _mm512_set1_ps(4 / 16.f), k2 = _mm512_set1_ps(6 / 16.f);
    for (int x = 0; x < W; x += 16) {
        __m512 s = _mm512_mul_ps(k0, _mm512_add_ps(_mm512_load_ps(a + x), _mm512_load_ps(e + x)));
        s = _mm512_fmadd_ps(k1, _mm512_add_ps(_mm512_load_ps(b + x), _mm512_load_ps(d + x)), s);
        s = _mm512_fmadd_ps(k2, _mm512_load_ps(c + x), s);
        _mm512_stream_ps(o + x, s);
    }
}
#endif
template <bool NT> __attribute__((noinline)) void fused(const float *in, float *out) {
    bands(H, [&](int y0, int y1) {
        float *buf = pages<float>((size_t)8 * (W + 16));
        auto B = [&](int y) { return buf + (size_t)(y & 7) * (W + 16); };
        auto R = [&](int y) { return B(cl(y, 0, H - 1)); };
        for (int y = std::max(0, y0 - 2); y < std::min(H, y0 + 2); y++) rowpass(in + (size_t)y * W, B(y));
        for (int y = y0; y < y1; y++) {
            if (y + 2 < H) rowpass(in + (size_t)(y + 2) * W, B(y + 2));
#if __AVX512F__
            if (NT) colpass_nt(R(y - 2), R(y - 1), R(y), R(y + 1), R(y + 2), out + (size_t)y * W);
            else
#endif
                colpass(R(y - 2), R(y - 1), R(y), R(y + 1), R(y + 2), out + (size_t)y * W);
        }
        if (NT) _mm_sfence();
        free(buf);
    });
}
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, float *)> variants{{"simd", fused<false>}};
#if __AVX512F__
    variants["hand"] = fused<true>;
#endif
    auto run = chosen(variants, argc, argv);
    float *in = pages<float>((size_t)W * H), *out = pages<float>((size_t)W * H);
    for (int i = 0; i < W * H; i++) in[i] = noise(i);
    measure([&] { run(in, out); });
    sums(W * H, [&](int i) { return out[i]; });
}

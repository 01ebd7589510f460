// Peer of bilateral.impala: libmvec's exponential; and AVX-512 with one of its own, the mask in the exponent.
#include "image.h"
enum { R = 6, D = 13, W = 1024, H = 1024 };
static const float CR = 1.f / (2.f * 0.1f * 0.1f);
struct K { float m[D * D]; };
static constexpr double cexp(double x) { double s = 1, t = 1; for (int i = 1; i < 40; i++) { t *= x / i; s += t; } return s; }
static constexpr K mk() { K k{}; for (int j = -R; j <= R; j++) for (int i = -R; i <= R; i++) k.m[(j + R) * D + i + R] = (float)cexp(-(i * i + j * j) / 18.0); return k; }
static constexpr K mask = mk();
template <bool E> static inline float px(const float *in, int x, int y) {
    float k = 0, p = 0, c = in[(size_t)y * W + x];
    for (int j = -R; j <= R; j++) {
        const float *r = in + (size_t)cl(y + j, 0, H - 1) * W;
        for (int i = -R; i <= R; i++) { float v = r[E ? cl(x + i, 0, W - 1) : x + i], d = v - c, s = mask.m[(j + R) * D + i + R] * expf(-CR * d * d); k += s; p += s * v; }
    }
    return p / k;
}
__attribute__((noinline)) void simd(const float *__restrict in, float *__restrict out) {
    bands(H, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++) {
            for (int x = 0; x < R; x++) out[(size_t)y * W + x] = px<true>(in, x, y);
#pragma omp simd
            for (int x = R; x < W - R; x++) out[(size_t)y * W + x] = px<false>(in, x, y);
            for (int x = W - R; x < W; x++) out[(size_t)y * W + x] = px<true>(in, x, y);
        }
    });
}
#if __AVX512F__
static inline __m512 vexp2(__m512 t) {
    __m512 n = _mm512_roundscale_ps(t, 8), f = _mm512_sub_ps(t, n);
    static constexpr float c[] = {0.00133336f, 0.00961813f, 0.05550411f, 0.24022651f, 0.69314718f, 1.f};
    __m512 p = _mm512_set1_ps(c[0]);
    for (int i = 1; i < 6; i++) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c[i]));
    return _mm512_scalef_ps(p, n);
}
__attribute__((noinline)) void hand(const float *in, float *out) {
    const float c2 = CR * 1.4426950408889634f;
    float lm[D * D];
    for (int q = 0; q < D * D; q++) lm[q] = std::log2(mask.m[q]);
    bands(H, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++) {
            for (int x = 0; x < R; x++) out[(size_t)y * W + x] = px<true>(in, x, y);
            int x = R;
            for (; x + 32 <= W - R; x += 32) {
                __m512 k0 = _mm512_setzero_ps(), p0 = k0, k1 = k0, p1 = k0, a = _mm512_loadu_ps(in + (size_t)y * W + x), b = _mm512_loadu_ps(in + (size_t)y * W + x + 16), C = _mm512_set1_ps(-c2);
                for (int j = -R; j <= R; j++) {
                    const float *r = in + (size_t)cl(y + j, 0, H - 1) * W + x;
                    for (int i = -R; i <= R; i++) {
                        __m512 L = _mm512_set1_ps(lm[(j + R) * D + i + R]);
                        __m512 v = _mm512_loadu_ps(r + i), d = _mm512_sub_ps(v, a), s = vexp2(_mm512_fmadd_ps(_mm512_mul_ps(d, d), C, L));
                        k0 = _mm512_add_ps(k0, s); p0 = _mm512_fmadd_ps(s, v, p0);
                        v = _mm512_loadu_ps(r + i + 16); d = _mm512_sub_ps(v, b); s = vexp2(_mm512_fmadd_ps(_mm512_mul_ps(d, d), C, L));
                        k1 = _mm512_add_ps(k1, s); p1 = _mm512_fmadd_ps(s, v, p1);
                    }
                }
                _mm512_storeu_ps(out + (size_t)y * W + x, _mm512_div_ps(p0, k0));
                _mm512_storeu_ps(out + (size_t)y * W + x + 16, _mm512_div_ps(p1, k1));
            }
            for (; x < W; x++) out[(size_t)y * W + x] = px<true>(in, x, y);
        }
    });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, float *)> variants{{"simd", simd}};
#if __AVX512F__
    variants["hand"] = hand;
#endif
    auto run = chosen(variants, argc, argv);
    float *in = pages<float>((size_t)W * H), *out = pages<float>((size_t)W * H);
    for (int i = 0; i < W * H; i++) in[i] = noise(i);
    measure([&] { run(in, out); });
    sums(W * H, [&](int i) { return out[i]; });
}

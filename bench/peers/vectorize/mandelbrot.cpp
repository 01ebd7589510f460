// Peer of mandelbrot.impala: scalar code, arrays of lanes for the compiler's vectorizer, AVX-512 with four vectors at once.
#include "timing.h"
#if __AVX512F__
#include <immintrin.h>
#endif
static const int W = 1536, H = 1024;
static inline int rounds(float cr, float ci, int most) {
    float zr = cr, zi = ci;
    int i;
    for (i = 0; i < most; i++) {
        if (zr * zr + zi * zi > 4.f) break;
        float r = zr * zr - zi * zi, m = 2.f * zr * zi;
        zr = cr + r, zi = ci + m;
    }
    return i;
}
__attribute__((noinline)) void scalar(float x0, float y0, float dx, float dy, int most, int *out) {
    each(H, 8, [=](int lo, int hi) {
    for (int y = lo; y < hi; y++)
        for (int x = 0; x < W; x++) out[y * W + x] = rounds(x0 + x * dx, y0 + y * dy, most);
    });
}
template <int L> __attribute__((noinline)) void lanes(float x0, float y0, float dx, float dy, int most, int *out) {
    each(H, 8, [=](int lo, int hi) {
    for (int y = lo; y < hi; y++)
        for (int x = 0; x < W; x += L) {
            float cr[L], zr[L], zi[L];
            int count[L], active[L];
            float ci = y0 + y * dy;
#pragma omp simd
            for (int l = 0; l < L; l++) cr[l] = x0 + (x + l) * dx, zr[l] = cr[l], zi[l] = ci, count[l] = 0, active[l] = 1;
            for (int n = 0; n < most; n++) {
                int any = 0;
#pragma omp simd reduction(| : any)
                for (int l = 0; l < L; l++) {
                    float r2 = zr[l] * zr[l], i2 = zi[l] * zi[l];
                    active[l] = active[l] & (r2 + i2 <= 4.f);
                    count[l] += active[l];
                    zi[l] = 2.f * zr[l] * zi[l] + ci;
                    zr[l] = cr[l] + r2 - i2;
                    any |= active[l];
                }
                if (!any) break;
            }
            for (int l = 0; l < L; l++) out[y * W + x + l] = count[l];
        }
    });
}
#if __AVX512F__
template <int K> __attribute__((noinline)) void hand(float x0, float y0, float dx, float dy, int most, int *out) {
    each(H, 8, [=](int lo, int hi) {
    for (int y = lo; y < hi; y++)
        for (int x = 0; x < W; x += 16 * K) {
            __m512 cr[K], ci = _mm512_set1_ps(y0 + y * dy), zr[K], zi[K];
            __m512i count[K];
            __mmask16 m[K];
            for (int k = 0; k < K; k++) {
                __m512i ix = _mm512_add_epi32(_mm512_set1_epi32(x + 16 * k), _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
                cr[k] = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(ix), _mm512_set1_ps(dx)), _mm512_set1_ps(x0));
                zr[k] = cr[k], zi[k] = ci, count[k] = _mm512_setzero_si512(), m[k] = 0xffff;
            }
            const __m512 four = _mm512_set1_ps(4.f);
            const __m512i one = _mm512_set1_epi32(1);
            for (int n = 0; n < most; n++) {
                unsigned any = 0;
#pragma GCC unroll 4
                for (int k = 0; k < K; k++) {
                    __m512 r2 = _mm512_mul_ps(zr[k], zr[k]), i2 = _mm512_mul_ps(zi[k], zi[k]);
                    m[k] = _mm512_mask_cmp_ps_mask(m[k], _mm512_add_ps(r2, i2), four, _CMP_LE_OQ);
                    count[k] = _mm512_mask_add_epi32(count[k], m[k], count[k], one);
                    __m512 t = _mm512_add_ps(zr[k], zr[k]);
                    zi[k] = _mm512_fmadd_ps(t, zi[k], ci);
                    zr[k] = _mm512_add_ps(cr[k], _mm512_sub_ps(r2, i2));
                    any |= m[k];
                }
                if (!any) break;
            }
            for (int k = 0; k < K; k++) _mm512_storeu_si512(out + y * W + x + 16 * k, count[k]);
        }
    });
}
#endif
#if OBJECT
// Rows lo .. hi, in another language.
extern "C" void kernel(float x0, float y0, float dx, float dy, int most, int *out, int lo, int hi);
void object(float x0, float y0, float dx, float dy, int most, int *out) {
    each(H, 8, [=](int lo, int hi) { kernel(x0, y0, dx, dy, most, out, lo, hi); });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, void (*)(float, float, float, float, int, int *)> variants{{"scalar", scalar}, {"simd", lanes<32>}};
#if __AVX512F__
    variants["hand"] = hand<4>;
    variants["hand1"] = hand<1>;
#endif
#if OBJECT
    variants["object"] = object;
#endif
    auto run = chosen(variants, argc, argv);
    int *out = make<int>(W * H);
    measure([&] { run(-2, -1, 3.f / W, 2.f / H, 256, out); });
    sums(W * H, [&](int i) { return (double)out[i]; });
}

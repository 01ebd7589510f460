// Code that black_scholes.cpp and binomial.cpp share: inputs; exponential and logarithm of 16 numbers.
#pragma once
#include "timing.h"
#if __AVX512F__
#include <immintrin.h>
static inline __m512 vexp(__m512 x) {
    __m512 t = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), n = _mm512_roundscale_ps(t, 8);
    __m512 f = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145752f), x);
    f = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860677e-6f), f);
    __m512 p = _mm512_set1_ps(1.9875691500E-4f);
    for (float c : {1.3981999507E-3f, 8.3334519073E-3f, 4.1665795894E-2f, 1.6666665459E-1f, 5.0000001201E-1f, 1.f, 1.f}) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c));
    return _mm512_scalef_ps(p, n);
}
static inline __m512 vlog(__m512 x) {
    __m512 e = _mm512_getexp_ps(x), m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    e = _mm512_sub_ps(e, _mm512_getexp_ps(m));
    __m512 f = _mm512_sub_ps(m, _mm512_set1_ps(1.f)), p = _mm512_set1_ps(7.0376836292E-2f);
    for (float c : {-1.1514610310E-1f, 1.1676998740E-1f, -1.2420140846E-1f, 1.4249322787E-1f, -1.6668057665E-1f, 2.0000714765E-1f, -2.4999993993E-1f, 3.3333331174E-1f}) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c));
    __m512 f2 = _mm512_mul_ps(f, f);
    p = _mm512_mul_ps(_mm512_mul_ps(p, f2), f);
    p = _mm512_fnmadd_ps(f2, _mm512_set1_ps(.5f), p);
    p = _mm512_add_ps(p, f);
    return _mm512_fmadd_ps(e, _mm512_set1_ps(0.69314718056f), p);
}
#endif
typedef const float *__restrict P;
struct Options {
    float *s, *x, *t, *r, *v, *out;
    Options(int n) : s(make<float>(n)), x(make<float>(n)), t(make<float>(n)), r(make<float>(n)), v(make<float>(n)), out(make<float>(n)) {
        for (int i = 0; i < n; i++) s[i] = 50 + i % 100, x[i] = 60 + i % 77, v[i] = .1f + (i % 13) * .05f, t[i] = .25f + (i % 7) * .5f, r[i] = .02f;
    }
};
#if OBJECT
// Options lo .. hi, in another language.
extern "C" void kernel(P S, P X, P T, P R, P V, float *__restrict o, int lo, int hi);
#endif
typedef void (*Run)(P, P, P, P, P, float *__restrict);

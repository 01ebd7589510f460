// Peer of black_scholes.impala: scalar code, a loop for the compiler's vectorizer and libmvec, AVX-512 with polynomials of its own.
#include "options.h"
static const int N = 1 << 20;
static inline float normal(float x) {
    float l = fabsf(x), k = 1.f / (1.f + 0.2316419f * l), k2 = k * k, k3 = k2 * k, k4 = k2 * k2, k5 = k3 * k2;
    float w = (0.31938153f * k - 0.356563782f * k2 + 1.781477937f * k3 - 1.821255978f * k4 + 1.330274429f * k5) * 0.39894228040f * expf(-l * l * .5f);
    return x > 0 ? 1.f - w : w;
}
#define BODY                                                                                    \
    float d1 = (logf(S[i] / X[i]) + (R[i] + V[i] * V[i] * .5f) * T[i]) / (V[i] * sqrtf(T[i])); \
    float d2 = d1 - V[i] * sqrtf(T[i]);                                                         \
    o[i] = S[i] * normal(d1) - X[i] * expf(-R[i] * T[i]) * normal(d2);
// Functions of their own: what `__restrict` says is lost in a lambda.
__attribute__((noinline)) void scalar_part(P S, P X, P T, P R, P V, float *__restrict o, int lo, int hi) {
    for (int i = lo; i < hi; i++) { BODY }
}
__attribute__((noinline)) void simd_part(P S, P X, P T, P R, P V, float *__restrict o, int lo, int hi) {
#pragma omp simd
    for (int i = lo; i < hi; i++) { BODY }
}
void scalar(P S, P X, P T, P R, P V, float *__restrict o) {
    each(N, 4096, [=](int lo, int hi) { scalar_part(S, X, T, R, V, o, lo, hi); });
}
void simd(P S, P X, P T, P R, P V, float *__restrict o) {
    each(N, 4096, [=](int lo, int hi) { simd_part(S, X, T, R, V, o, lo, hi); });
}
#if __AVX512F__
static inline __m512 vnormal(__m512 X) {
    __m512 L = _mm512_abs_ps(X), k = _mm512_div_ps(_mm512_set1_ps(1), _mm512_fmadd_ps(L, _mm512_set1_ps(0.2316419f), _mm512_set1_ps(1)));
    __m512 p = _mm512_set1_ps(1.330274429f);
    for (float c : {-1.821255978f, 1.781477937f, -0.356563782f, 0.31938153f}) p = _mm512_fmadd_ps(p, k, _mm512_set1_ps(c));
    p = _mm512_mul_ps(p, k);
    __m512 w = _mm512_mul_ps(p, _mm512_mul_ps(_mm512_set1_ps(0.39894228040f), vexp(_mm512_mul_ps(_mm512_mul_ps(L, L), _mm512_set1_ps(-.5f)))));
    return _mm512_mask_sub_ps(w, _mm512_cmp_ps_mask(X, _mm512_setzero_ps(), _CMP_GT_OQ), _mm512_set1_ps(1), w);
}
__attribute__((noinline)) void hand(P S, P X, P T, P R, P V, float *__restrict o) {
    each(N, 4096, [=](int lo, int hi) {
    for (int i = lo; i < hi; i += 16) {
        __m512 s = _mm512_loadu_ps(S + i), x = _mm512_loadu_ps(X + i), t = _mm512_loadu_ps(T + i), r = _mm512_loadu_ps(R + i), v = _mm512_loadu_ps(V + i), q = _mm512_mul_ps(v, _mm512_sqrt_ps(t));
        __m512 d1 = _mm512_div_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_mul_ps(v, v), _mm512_set1_ps(.5f), r), t, vlog(_mm512_div_ps(s, x))), q), d2 = _mm512_sub_ps(d1, q);
        _mm512_storeu_ps(o + i, _mm512_fmsub_ps(s, vnormal(d1), _mm512_mul_ps(_mm512_mul_ps(x, vexp(_mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(r, t)))), vnormal(d2))));
    }
    });
}
#endif
#if OBJECT
void object(P S, P X, P T, P R, P V, float *__restrict o) {
    each(N, 4096, [=](int lo, int hi) { kernel(S, X, T, R, V, o, lo, hi); });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, Run> variants{{"scalar", scalar}, {"simd", simd}};
#if __AVX512F__
    variants["hand"] = hand;
#endif
#if OBJECT
    variants["object"] = object;
#endif
    auto run = chosen(variants, argc, argv);
    Options a(N);
    measure([&] { run(a.s, a.x, a.t, a.r, a.v, a.out); });
    sums(N, [&](int i) { return (double)a.out[i]; });
}

// Peer of binomial.impala: scalar code, an array of 16 lanes for the compiler's vectorizer, AVX-512 with eight time steps in one sweep.
#include "options.h"
static const int N = 1 << 15, STEPS = 64;
__attribute__((noinline)) void scalar(P Sa, P Xa, P Ta, P ra, P va, float *__restrict o) {
    each(N, 256, [=](int lo, int hi) {
    for (int i = lo; i < hi; i++) {
        float V[STEPS], S = Sa[i], X = Xa[i], dt = Ta[i] / STEPS, u = expf(va[i] * sqrtf(dt)), d = 1.f / u, disc = expf(ra[i] * dt), p = (disc - d) / (u - d);
        for (int j = 0; j < STEPS; j++) V[j] = fmaxf(0.f, X - S * powf(u, (float)(2 * j - STEPS)));
        for (int j = STEPS - 1; j >= 0; --j)
            for (int k = 0; k < j; ++k) V[k] = ((1 - p) * V[k] + p * V[k + 1]) / disc;
        o[i] = V[0];
    }
    });
}
__attribute__((noinline)) void simd(P Sa, P Xa, P Ta, P ra, P va, float *__restrict o) {
    const int L = 16;
    each(N, 256, [=](int lo, int hi) {
    for (int i = lo; i < hi; i += L) {
        float V[STEPS][L], u[L], p[L], disc[L];
#pragma omp simd
        for (int l = 0; l < L; l++) {
            float dt = Ta[i + l] / STEPS, d;
            u[l] = expf(va[i + l] * sqrtf(dt)), d = 1.f / u[l], disc[l] = expf(ra[i + l] * dt), p[l] = (disc[l] - d) / (u[l] - d);
        }
        for (int j = 0; j < STEPS; j++) {
#pragma omp simd
            for (int l = 0; l < L; l++) V[j][l] = fmaxf(0.f, Xa[i + l] - Sa[i + l] * powf(u[l], (float)(2 * j - STEPS)));
        }
        for (int j = STEPS - 1; j >= 0; --j)
            for (int k = 0; k < j; ++k) {
#pragma omp simd
                for (int l = 0; l < L; l++) V[k][l] = ((1 - p[l]) * V[k][l] + p[l] * V[k + 1][l]) / disc[l];
            }
        for (int l = 0; l < L; l++) o[i + l] = V[0][l];
    }
    });
}
#if __AVX512F__
template <int TS> __attribute__((noinline)) void hand(P Sa, P Xa, P Ta, P ra, P va, float *__restrict o) {
    each(N, 256, [=](int lo, int hi) {
    for (int i = lo; i < hi; i += 16) {
        __m512 V[STEPS + TS], S = _mm512_loadu_ps(Sa + i), X = _mm512_loadu_ps(Xa + i), dt = _mm512_mul_ps(_mm512_loadu_ps(Ta + i), _mm512_set1_ps(1.f / STEPS)), lu = _mm512_mul_ps(_mm512_loadu_ps(va + i), _mm512_sqrt_ps(dt));
        __m512 u = vexp(lu), d = _mm512_div_ps(_mm512_set1_ps(1), u), disc = vexp(_mm512_mul_ps(_mm512_loadu_ps(ra + i), dt)), p = _mm512_div_ps(_mm512_sub_ps(disc, d), _mm512_sub_ps(u, d)), rd = _mm512_div_ps(_mm512_set1_ps(1), disc), a = _mm512_mul_ps(_mm512_sub_ps(_mm512_set1_ps(1), p), rd), b = _mm512_mul_ps(p, rd);
        for (int j = 0; j < STEPS; j++) V[j] = _mm512_max_ps(_mm512_setzero_ps(), _mm512_fnmadd_ps(S, vexp(_mm512_mul_ps(lu, _mm512_set1_ps(2 * j - STEPS))), X));
        int j = STEPS - 1;
        for (; j >= TS; j -= TS) {
            // The previous value of each of the levels in flight.
            __m512 c[TS], q[TS];
            for (int t = 0; t < TS; t++) q[t] = V[t];
            for (int level = 0; level < TS; level++) {
                c[level] = q[TS - 1 - level];
                for (int t = 0; t + 1 < TS - level; t++) q[t] = _mm512_fmadd_ps(a, q[t], _mm512_mul_ps(b, q[t + 1]));
            }
            for (int k = TS; k <= j; k++) {
                __m512 x = V[k];
#pragma GCC unroll 8
                for (int t = 0; t < TS; t++) {
                    __m512 y = _mm512_fmadd_ps(b, x, _mm512_mul_ps(a, c[t]));
                    c[t] = x;
                    x = y;
                }
                V[k - TS] = x;
            }
        }
        for (; j >= 0; --j)
            for (int k = 0; k < j; ++k) V[k] = _mm512_fmadd_ps(a, V[k], _mm512_mul_ps(b, V[k + 1]));
        _mm512_storeu_ps(o + i, V[0]);
    }
    });
}
#endif
#if OBJECT
void object(P S, P X, P T, P R, P V, float *__restrict o) {
    each(N, 256, [=](int lo, int hi) { kernel(S, X, T, R, V, o, lo, hi); });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, Run> variants{{"scalar", scalar}, {"simd", simd}};
#if __AVX512F__
    variants["hand"] = hand<8>;
    variants["hand1"] = hand<1>;
#endif
#if OBJECT
    variants["object"] = object;
#endif
    auto run = chosen(variants, argc, argv);
    Options a(N);
    measure([&] { run(a.s, a.x, a.t, a.r, a.v, a.out); });
    sums(N, [&](int i) { return (double)a.out[i]; });
}

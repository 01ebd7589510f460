// Peer of gather.impala: a plain loop, which compilers vectorize or not; AVX-512 by hand.
#include "timing.h"
#if __AVX512F__
#include <immintrin.h>
#endif
static const int N = 1 << 22, TABLE = 1 << 16;
typedef const uint32_t *__restrict U;
typedef const float *__restrict P;
// Functions of their own: what `__restrict` says is lost in a lambda.
__attribute__((noinline)) void scalar_part(U keys, P table, U links, float *__restrict out, int lo, int hi) {
    for (int i = lo; i < hi; i++) {
        uint32_t first = keys[i] * 2654435761u >> 16, second = links[first] ^ (keys[i] & 255);
        out[i] = table[first] * 0.5f + table[second];
    }
}
__attribute__((noinline)) void simd_part(U keys, P table, U links, float *__restrict out, int lo, int hi) {
#pragma omp simd
    for (int i = lo; i < hi; i++) {
        uint32_t first = keys[i] * 2654435761u >> 16, second = links[first] ^ (keys[i] & 255);
        out[i] = table[first] * 0.5f + table[second];
    }
}
void scalar(U keys, P table, U links, float *__restrict out) {
    each(N, 16384, [=](int lo, int hi) { scalar_part(keys, table, links, out, lo, hi); });
}
void simd(U keys, P table, U links, float *__restrict out) {
    each(N, 16384, [=](int lo, int hi) { simd_part(keys, table, links, out, lo, hi); });
}
#if __AVX512F__
__attribute__((noinline)) void hand(U keys, P table, U links, float *__restrict out) {
    each(N, 16384, [=](int lo, int hi) {
        for (int i = lo; i < hi; i += 16) {
            __m512i k = _mm512_loadu_si512(keys + i), first = _mm512_srli_epi32(_mm512_mullo_epi32(k, _mm512_set1_epi32((int)2654435761u)), 16);
            __m512i second = _mm512_xor_si512(_mm512_i32gather_epi32(first, links, 4), _mm512_and_si512(k, _mm512_set1_epi32(255)));
            _mm512_storeu_ps(out + i, _mm512_fmadd_ps(_mm512_i32gather_ps(first, table, 4), _mm512_set1_ps(0.5f), _mm512_i32gather_ps(second, table, 4)));
        }
    });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, void (*)(U, P, U, float *__restrict)> variants{{"scalar", scalar}, {"simd", simd}};
#if __AVX512F__
    variants["hand"] = hand;
#endif
    auto run = chosen(variants, argc, argv);
    uint32_t *keys = make<uint32_t>(N), *links = make<uint32_t>(TABLE);
    float *table = make<float>(TABLE), *out = make<float>(N);
    for (int i = 0; i < N; i++) keys[i] = (uint32_t)i * 747796405u + 12345u;
    for (int i = 0; i < TABLE; i++) table[i] = i % 1000, links[i] = (uint32_t)i * 40503u & 65535u;
    measure([&] { run(keys, table, links, out); });
    sums(N, [&](int i) { return (double)out[i]; });
}

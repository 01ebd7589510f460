// Peer of strided.impala: a plain loop over pixels of three bytes, which compilers vectorize or not; AVX-512 (VBMI) by hand.
#include "timing.h"
#if __AVX512VBMI__ && __AVX512BW__
#include <immintrin.h>
#define HAND 1
#endif
static const int N = 1 << 22;
struct Pixel { uint8_t r, g, b; };
#define BODY                                                            \
    int r = image[i].r, g = image[i].g, b = image[i].b;                 \
    int low = std::min(r, std::min(g, b)), high = std::max(r, std::max(g, b)); \
    gray[i] = (uint8_t)((r * 77 + g * 151 + b * 28) >> 8);              \
    saturation[i] = (uint8_t)(high - low);
typedef const Pixel *__restrict P;
typedef uint8_t *__restrict O;
// Functions of their own: what `__restrict` says is lost in a lambda.
__attribute__((noinline)) void scalar_part(P image, O gray, O saturation, int lo, int hi) {
    for (int i = lo; i < hi; i++) { BODY }
}
__attribute__((noinline)) void simd_part(P image, O gray, O saturation, int lo, int hi) {
#pragma omp simd
    for (int i = lo; i < hi; i++) { BODY }
}
void scalar(P image, O gray, O saturation) {
    each(N, 16384, [=](int lo, int hi) { scalar_part(image, gray, saturation, lo, hi); });
}
void simd(P image, O gray, O saturation) {
    each(N, 16384, [=](int lo, int hi) { simd_part(image, gray, saturation, lo, hi); });
}
#if HAND
// 64 pixels: 192 bytes to three vectors by two permutations each.
__attribute__((noinline)) void hand(P image, O gray, O saturation) {
    uint8_t first[3][64], second[3][64];
    __mmask64 late[3];
    for (int c = 0; c < 3; c++) {
        late[c] = 0;
        for (int l = 0; l < 64; l++) {
            int at = l * 3 + c;
            first[c][l] = at & 127, second[c][l] = at & 63;
            if (at >= 128) late[c] |= 1ull << l;
        }
    }
    each(N, 16384, [&](int lo, int hi) {
        __m512i f[3], s[3];
        for (int c = 0; c < 3; c++) f[c] = _mm512_loadu_si512(first[c]), s[c] = _mm512_loadu_si512(second[c]);
        for (int i = lo; i < hi; i += 64) {
            const uint8_t *p = &image[i].r;
            __m512i x = _mm512_loadu_si512(p), y = _mm512_loadu_si512(p + 64), z = _mm512_loadu_si512(p + 128), v[3];
            for (int c = 0; c < 3; c++) v[c] = _mm512_mask_permutexvar_epi8(_mm512_permutex2var_epi8(x, f[c], y), late[c], s[c], z);
            auto part = [&](int h) {
                auto wide = [&](__m512i a) { return _mm512_cvtepu8_epi16(h ? _mm512_extracti64x4_epi64(a, 1) : _mm512_castsi512_si256(a)); };
                __m512i sum = _mm512_add_epi16(_mm512_add_epi16(_mm512_mullo_epi16(wide(v[0]), _mm512_set1_epi16(77)), _mm512_mullo_epi16(wide(v[1]), _mm512_set1_epi16(151))), _mm512_mullo_epi16(wide(v[2]), _mm512_set1_epi16(28)));
                return _mm512_cvtepi16_epi8(_mm512_srli_epi16(sum, 8));
            };
            _mm256_storeu_si256((__m256i *)(gray + i), part(0));
            _mm256_storeu_si256((__m256i *)(gray + i + 32), part(1));
            __m512i low = _mm512_min_epu8(v[0], _mm512_min_epu8(v[1], v[2])), high = _mm512_max_epu8(v[0], _mm512_max_epu8(v[1], v[2]));
            _mm512_storeu_si512(saturation + i, _mm512_sub_epi8(high, low));
        }
    });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, void (*)(P, O, O)> variants{{"scalar", scalar}, {"simd", simd}};
#if HAND
    variants["hand"] = hand;
#endif
    auto run = chosen(variants, argc, argv);
    Pixel *image = make<Pixel>(N);
    uint8_t *gray = make<uint8_t>(N), *saturation = make<uint8_t>(N);
    for (int i = 0; i < N; i++) image[i] = {(uint8_t)(i * 7), (uint8_t)(i / 3), (uint8_t)(i / 1000)};
    measure([&] { run(image, gray, saturation); });
    sums(N, [&](int i) { return gray[i] + saturation[i] * 3.0; });
}

// Peer of bench/align/reads.impala: scores of pairs of reads of one length, 32 at a time, by intrinsics of AVX-512 for 16 bits. Runs both in
// turns, on as many threads as the argument says, and compares the scores. Prints name, billions of cells a second of both, their
// ratio, and the number of scores that differ. Ours packs letters into lanes as it goes; those of the intrinsics are packed before.
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using Kernel = __m512i (*)(const int16_t *, const int16_t *, int, __m512i *, __m512i *);
using Ours = void(int, const uint8_t *, const uint8_t *, int, int, int *);
extern "C" {
Ours nw_linear, nw_affine, sw_linear, sw_affine;
}

constexpr int LENGTH = 150, PAIRS = 19968, LANES = 32, ROUNDS = 9;
constexpr int EQUAL = 2, OTHER = -1, OPEN = 2, EXTEND = 1;

template <bool AFFINE, bool LOCAL>
__m512i scores(const int16_t *a, const int16_t *b, int n, __m512i *best, __m512i *down) {
    auto all = [](int x) { return _mm512_set1_epi16(x); };
    const __m512i equal = all(EQUAL), other = all(OTHER), extend = all(EXTEND), zero = _mm512_setzero_si512(), never = all(-20000);
    const __m512i first = all(AFFINE ? OPEN + EXTEND : EXTEND);
    auto border = [&](int i) { return LOCAL || i == 0 ? zero : all(-(AFFINE ? OPEN : 0) - EXTEND * i); };
    __m512i most = zero;
    for (int j = 0; j <= n; j++) best[j] = border(j), down[j] = never;
    for (int i = 1; i <= n; i++) {
        __m512i letter = _mm512_load_si512(a + (i - 1) * LANES), diagonal = best[0], left = border(i), right = never;
        best[0] = left;
        for (int j = 1; j <= n; j++) {
            __m512i above = best[j];
            __mmask32 same = _mm512_cmpeq_epi16_mask(letter, _mm512_load_si512(b + (j - 1) * LANES));
            __m512i x = _mm512_add_epi16(diagonal, _mm512_mask_blend_epi16(same, other, equal));
            diagonal = above;
            if (AFFINE) {
                right = _mm512_max_epi16(_mm512_sub_epi16(right, extend), _mm512_sub_epi16(left, first));
                down[j] = _mm512_max_epi16(_mm512_sub_epi16(down[j], extend), _mm512_sub_epi16(above, first));
                x = _mm512_max_epi16(x, _mm512_max_epi16(right, down[j]));
            } else {
                x = _mm512_max_epi16(x, _mm512_sub_epi16(_mm512_max_epi16(left, above), extend));
            }
            if (LOCAL) x = _mm512_max_epi16(x, zero), most = _mm512_max_epi16(most, x);
            best[j] = left = x;
        }
    }
    return LOCAL ? most : best[n];
}

template <class T>
static T *aligned(size_t n) { return static_cast<T *>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64)); }

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<uint8_t> a(PAIRS * LENGTH), b(PAIRS * LENGTH);
    uint64_t state = 42;
    auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17, state >> 11; };
    for (size_t i = 0; i < a.size(); i++) a[i] = "ACGT"[random() & 3], b[i] = random() % 20 ? a[i] : "ACGT"[random() & 3];
    int16_t *pa = aligned<int16_t>(a.size()), *pb = aligned<int16_t>(a.size());
    for (int k = 0; k < PAIRS; k++)
        for (int i = 0; i < LENGTH; i++) {
            size_t at = (size_t(k / LANES) * LENGTH + i) * LANES + k % LANES;
            pa[at] = a[k * LENGTH + i], pb[at] = b[k * LENGTH + i];
        }
    std::vector<int> theirs(PAIRS), ours(PAIRS);
    auto by_hand = [&](Kernel kernel) {
#pragma omp parallel num_threads(threads)
        {
            __m512i *best = aligned<__m512i>(LENGTH + 1), *down = aligned<__m512i>(LENGTH + 1);
#pragma omp for
            for (int g = 0; g < PAIRS / LANES; g++) {
                size_t at = size_t(g) * LENGTH * LANES;
                __m512i found = kernel(pa + at, pb + at, LENGTH, best, down);
                int16_t lanes[LANES];
                std::memcpy(lanes, &found, sizeof lanes);
                std::copy(lanes, lanes + LANES, &theirs[g * LANES]);
            }
            std::free(best);
            std::free(down);
        }
    };
    auto seconds = [](auto run) {
        auto start = std::chrono::steady_clock::now();
        run();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    struct {
        const char *name;
        Kernel kernel;
        Ours *ours;
    } all[] = {
        {"global linear", scores<false, false>, nw_linear},
        {"global affine", scores<true, false>, nw_affine},
        {"local linear", scores<false, true>, sw_linear},
        {"local affine", scores<true, true>, sw_affine},
    };
    for (auto &x : all) {
        std::vector<double> hand, mine, ratio;
        for (int round = 0; round < ROUNDS; round++) {
            hand.push_back(seconds([&] { by_hand(x.kernel); }));
            mine.push_back(seconds([&] { x.ours(PAIRS, a.data(), b.data(), LENGTH, threads, ours.data()); }));
            ratio.push_back(hand.back() / mine.back());
        }
        auto median = [](std::vector<double> &v) { return std::sort(v.begin(), v.end()), v[v.size() / 2]; };
        int differ = 0;
        for (int k = 0; k < PAIRS; k++) differ += theirs[k] != ours[k];
        const double cells = double(PAIRS) * LENGTH * LENGTH / 1e9;
        std::printf("%s: ours %.1f, intrinsics %.1f GCUPS, ratio %.2f, %d scores differ\n", x.name, cells / median(mine), cells / median(hand),
                    median(ratio), differ);
    }
}

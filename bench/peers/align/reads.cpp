// Peer of bench/align/reads.impala: scores of pairs of reads of one length by intrinsics for 16 bits, 32 at a time with AVX-512, 16 with
// AVX2. Runs both in turns, on as many threads as the argument says, and compares the scores. Prints name, billions of cells a second of
// both, their ratio, and the number of scores that differ. Ours packs letters into lanes as it goes; those of the intrinsics are packed
// before. With a second argument, processor time counts instead of elapsed time.
#include <immintrin.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef __AVX512BW__
using Vector = __m512i;
static Vector all(int x) { return _mm512_set1_epi16(x); }
static Vector max(Vector x, Vector y) { return _mm512_max_epi16(x, y); }
static Vector add(Vector x, Vector y) { return _mm512_add_epi16(x, y); }
static Vector sub(Vector x, Vector y) { return _mm512_sub_epi16(x, y); }
static Vector pick(Vector x, Vector y, Vector equal, Vector other) {
    return _mm512_mask_blend_epi16(_mm512_cmpeq_epi16_mask(x, y), other, equal);
}
#else
using Vector = __m256i;
static Vector all(int x) { return _mm256_set1_epi16(x); }
static Vector max(Vector x, Vector y) { return _mm256_max_epi16(x, y); }
static Vector add(Vector x, Vector y) { return _mm256_add_epi16(x, y); }
static Vector sub(Vector x, Vector y) { return _mm256_sub_epi16(x, y); }
static Vector pick(Vector x, Vector y, Vector equal, Vector other) { return _mm256_blendv_epi8(other, equal, _mm256_cmpeq_epi16(x, y)); }
#endif
#ifndef ROUNDS
#define ROUNDS 9
#endif
constexpr int LENGTH = 150, PAIRS = 19968, LANES = sizeof(Vector) / 2;
constexpr int EQUAL = 2, OTHER = -1, OPEN = 2, EXTEND = 1;

using Kernel = Vector (*)(const Vector *, const Vector *, int, Vector *, Vector *);
using Ours = void(int, const uint8_t *, const uint8_t *, int, int, int *);
extern "C" {
Ours nw_linear, nw_affine, sw_linear, sw_affine, sw_affine_1;
}

template <bool AFFINE, bool LOCAL, int MATCH = EQUAL>
Vector scores(const Vector *a, const Vector *b, int n, Vector *best, Vector *down) {
    const Vector equal = all(MATCH), other = all(OTHER), extend = all(EXTEND), zero = all(0), never = all(-20000);
    const Vector first = all(AFFINE ? OPEN + EXTEND : EXTEND);
    auto border = [&](int i) { return LOCAL || i == 0 ? zero : all(-(AFFINE ? OPEN : 0) - EXTEND * i); };
    Vector most = zero;
    for (int j = 0; j <= n; j++) best[j] = border(j), down[j] = never;
    for (int i = 1; i <= n; i++) {
        Vector letter = a[i - 1], diagonal = best[0], left = border(i), right = never;
        best[0] = left;
        for (int j = 1; j <= n; j++) {
            Vector above = best[j];
            Vector x = add(diagonal, pick(letter, b[j - 1], equal, other));
            diagonal = above;
            if (AFFINE) {
                right = max(sub(right, extend), sub(left, first));
                down[j] = max(sub(down[j], extend), sub(above, first));
                x = max(x, max(right, down[j]));
            } else {
                x = max(x, sub(max(left, above), extend));
            }
            if (LOCAL) x = max(x, zero), most = max(most, x);
            best[j] = left = x;
        }
    }
    return LOCAL ? most : best[n];
}

template <class T>
static T *aligned(size_t n) { return static_cast<T *>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64)); }

int main(int argc, char **argv) {
    // Each line is read as soon as it is there.
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
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
            Vector *best = aligned<Vector>(LENGTH + 1), *down = aligned<Vector>(LENGTH + 1);
#pragma omp for
            for (int g = 0; g < PAIRS / LANES; g++) {
                size_t at = size_t(g) * LENGTH * LANES;
                Vector found = kernel((const Vector *)(pa + at), (const Vector *)(pb + at), LENGTH, best, down);
                int16_t lanes[LANES];
                std::memcpy(lanes, &found, sizeof lanes);
                std::copy(lanes, lanes + LANES, &theirs[g * LANES]);
            }
            std::free(best);
            std::free(down);
        }
    };
    auto now = [&] {
        timespec t;
        clock_gettime(argc > 2 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
        return t.tv_sec + 1e-9 * t.tv_nsec;
    };
    auto seconds = [&](auto run) {
        double start = now();
        run();
        return now() - start;
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
        // Scores that fit 8 bits.
        {"local affine, equal letters score 1", scores<true, true, 1>, sw_affine_1},
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

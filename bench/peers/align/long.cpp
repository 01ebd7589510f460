// Two long sequences: lib/align, parasail and edlib in one program, in turns. Arguments: the number of threads of ours; if there is a
// second one, processor time counts instead of elapsed time. parasail and edlib use one thread for a pair.

#include <edlib.h>
#include <parasail.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

extern "C" {
int long_score(const uint8_t *, int64_t, const uint8_t *, int64_t, int);
int long_local_score(const uint8_t *, int64_t, const uint8_t *, int64_t, int);
int long_alignment(const uint8_t *, int64_t, const uint8_t *, int64_t, int);
int long_distance(const uint8_t *, int64_t, const uint8_t *, int64_t);
}

#ifndef ROUNDS
#define ROUNDS 5
#endif
const int OPEN = 3, EXTEND = 1;

int main(int argc, char **argv) {
    // Each line is read as soon as it is there.
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    auto now = [&] {
        timespec t;
        clock_gettime(argc > 2 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
        return t.tv_sec + 1e-9 * t.tv_nsec;
    };
    uint64_t state = 42;
    auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17, state >> 11; };
    std::string a, b;
    // Letters of b differ from those of a in so many of a hundred: half of them by a change, the others by a gap.
    auto make = [&](int n, uint64_t percent) {
        a.clear();
        b.clear();
        for (int i = 0; i < n; i++) {
            a += "ACGT"[random() % 4];
            uint64_t change = random() % 400;
            if (change >= 4 * percent) b += a.back();
            else if (change >= 2 * percent) b += "ACGT"[random() % 4];
            else if (change >= percent) b += "ACGT"[random() % 4], b += a.back();
        }
    };
    struct Way {
        const char *name;
        std::function<int()> run;
    };
    auto compare = [&](const char *what, std::vector<Way> ways, int rounds) {
        std::vector<std::vector<double>> times(ways.size());
        std::vector<int> found(ways.size());
        for (int round = 0; round < rounds; round++)
            for (size_t i = 0; i < ways.size(); i++) {
                double start = now();
                found[i] = ways[i].run();
                times[i].push_back(now() - start);
            }
        const double cells = double(a.size()) * b.size() / 1e9;
        for (size_t i = 0; i < ways.size(); i++) {
            std::vector<double> ratios;
            for (int round = 0; round < rounds; round++) ratios.push_back(times[i][round] / times[0][round]);
            std::sort(times[i].begin(), times[i].end());
            std::sort(ratios.begin(), ratios.end());
            std::printf("%s, %s: %.1f GCUPS, lib/align is %.2f times as fast, %s\n", what, ways[i].name, cells / times[i][rounds / 2],
                        ratios[rounds / 2], found[i] == found[0] ? "equal" : "not equal");
        }
    };
    auto x = [&] { return (const uint8_t *)a.data(); };
    auto y = [&] { return (const uint8_t *)b.data(); };
    parasail_matrix_t *matrix = parasail_matrix_create("ACGT", 2, -1);
    auto score_of = [](parasail_result_t *result) {
        int score = parasail_result_get_score(result);
        parasail_result_free(result);
        return score;
    };
    auto parasail = [&](parasail_function_t *function) {
        return [&, function] { return score_of(function(a.data(), a.size(), b.data(), b.size(), OPEN, EXTEND, matrix)); };
    };
    make(20000, 10);
    compare("global score", {{"lib/align", [&] { return long_score(x(), a.size(), y(), b.size(), threads); }},
                             {"parasail, scan", parasail(parasail_nw_scan_avx2_256_32)},
                             {"parasail, striped", parasail(parasail_nw_striped_avx2_256_32)},
                             {"parasail, diagonal", parasail(parasail_nw_diag_avx2_256_32)}}, ROUNDS);
    compare("local score", {{"lib/align", [&] { return long_local_score(x(), a.size(), y(), b.size(), threads); }},
                            {"parasail, scan, 16 bits", parasail(parasail_sw_scan_avx2_256_16)},
                            {"parasail, striped, 16 bits", parasail(parasail_sw_striped_avx2_256_16)}}, ROUNDS);
    compare("global alignment", {{"lib/align", [&] { return long_alignment(x(), a.size(), y(), b.size(), threads); }},
                                 {"parasail, scan", parasail(parasail_nw_trace_scan_avx2_256_32)}}, 3);
    parasail_matrix_free(matrix);
#ifdef BRIEF
    const std::vector<int> sizes = {20000}, percents = {5};
#else
    const std::vector<int> sizes = {150, 1000, 20000, 300000, 1000000}, percents = {1, 5, 15, 40};
#endif
    for (int n : sizes)
        for (int percent : percents) {
            make(n, percent);
            const int times = std::max(1, 200000 / n);
            auto repeat = [times](auto run) {
                return [times, run] {
                    int sum = 0;
                    for (int k = 0; k < times; k++) sum = run();
                    return sum;
                };
            };
            auto ours = [&] { return long_distance(x(), a.size(), y(), b.size()); };
            auto edlib = [&] {
                EdlibAlignResult result = edlibAlign(a.data(), a.size(), b.data(), b.size(), edlibDefaultAlignConfig());
                int distance = result.editDistance;
                edlibFreeAlignResult(result);
                return distance;
            };
            // Cells are counted once.
            std::string what = "edit distance of " + std::to_string(n) + " letters, " + std::to_string(percent) + " % differ";
            compare(what.c_str(), {{"lib/align", repeat(ours)}, {"edlib", repeat(edlib)}}, n > 100000 ? 1 : ROUNDS);
        }
}

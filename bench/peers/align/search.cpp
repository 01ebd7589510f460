// A protein beside those of a database: lib/align, parasail and SSW in one program, in turns. Argument: the number of threads of ours and
// theirs. With a second argument, processor time counts instead of elapsed time.

#include <parasail.h>
#include <parasail/matrix_lookup.h>
#include <ssw.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" void search_proteins(const uint8_t *query, int n, int count, const uint8_t *letters, const int64_t *starts, int threads, int *out);

#ifndef ROUNDS
#define ROUNDS 7
#endif
const int COUNT = 2000, QUERY = 300, OPEN = 12, EXTEND = 1;

int main(int argc, char **argv) {
    // Each line is read as soon as it is there.
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    uint64_t state = 42;
    auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17, state >> 11; };
    // Lengths log-normal around 300, as in databases; letters as frequent as in proteins.
    const std::string acids = "AAAAAAAARRRRRNNNNDDDDDCQQQQEEEEEEEGGGGGGGHHIIIIIILLLLLLLLLLKKKKKKMMFFFFPPPPPSSSSSSSTTTTTTWYYYVVVVVVV";
    auto letter = [&] { return uint8_t(acids[random() % acids.size()]); };
    std::vector<uint8_t> query(QUERY), letters;
    for (auto &c : query) c = letter();
    std::vector<int64_t> starts = {0};
    for (int k = 0; k < COUNT; k++) {
        double sum = -6;
        for (int i = 0; i < 12; i++) sum += random() % 4096 / 4096.0;
        int n = std::clamp(int(std::exp(std::log(300) + 0.7 * sum)), 30, 3000);
        // One of a hundred is a relative of the query.
        for (int i = 0; i < n; i++) letters.push_back(k % 100 == 7 && i < QUERY && random() % 3 ? query[i] : letter());
        starts.push_back(letters.size());
    }
    const parasail_matrix_t *matrix = parasail_matrix_lookup("blosum62");
    auto *text = reinterpret_cast<const char *>(letters.data());
    auto *query_text = reinterpret_cast<const char *>(query.data());
    std::vector<int8_t> scores(matrix->size * matrix->size), numbers, query_numbers;
    for (size_t i = 0; i < scores.size(); i++) scores[i] = matrix->matrix[i];
    for (auto c : letters) numbers.push_back(matrix->mapper[c]);
    for (auto c : query) query_numbers.push_back(matrix->mapper[c]);

    std::vector<int> out(COUNT), expected(COUNT);
    auto length = [&](int k) { return int(starts[k + 1] - starts[k]); };
    auto by_parasail = [&](parasail_profile_t *profile, parasail_pfunction_t *function) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
        for (int k = 0; k < COUNT; k++) {
            parasail_result_t *result = function(profile, text + starts[k], length(k), OPEN, EXTEND);
            out[k] = parasail_result_get_score(result);
            parasail_result_free(result);
        }
        parasail_profile_free(profile);
    };
    auto ours = [&] { search_proteins(query.data(), QUERY, COUNT, letters.data(), starts.data(), threads, out.data()); };
    auto parasail_16 = [&] { by_parasail(parasail_profile_create_avx_256_16(query_text, QUERY, matrix), parasail_sw_striped_profile_avx2_256_16); };
    auto parasail_8 = [&] { by_parasail(parasail_profile_create_avx_256_sat(query_text, QUERY, matrix), parasail_sw_striped_profile_avx2_256_sat); };
    auto ssw = [&] {
        s_profile *profile = ssw_init(query_numbers.data(), QUERY, scores.data(), matrix->size, 2);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
        for (int k = 0; k < COUNT; k++) {
            s_align *found = ssw_align(profile, numbers.data() + starts[k], length(k), OPEN, EXTEND, 0, 0, 0, QUERY / 2);
            out[k] = found->score1;
            align_destroy(found);
        }
        init_destroy(profile);
    };
    auto now = [&] {
        timespec t;
        clock_gettime(argc > 2 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
        return t.tv_sec + 1e-9 * t.tv_nsec;
    };
    const char *names[] = {"lib/align", "parasail, striped profile, 16 bits", "parasail, striped profile, 8 bits, then 16", "SSW, 8 bits, then 16"};
    std::vector<double> times[4];
    int differ[4] = {};
    parasail_16();
    expected = out;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 4; i++) {
            std::fill(out.begin(), out.end(), -1);
            double start = now();
            i == 0 ? ours() : i == 1 ? parasail_16() : i == 2 ? parasail_8() : ssw();
            times[i].push_back(now() - start);
            differ[i] = 0;
            for (int k = 0; k < COUNT; k++) differ[i] += out[k] != expected[k];
        }
    const double cells = double(QUERY) * letters.size() / 1e9;
    for (int i = 0; i < 4; i++) {
        std::vector<double> ratios;
        for (int round = 0; round < ROUNDS; round++) ratios.push_back(times[i][round] / times[0][round]);
        std::sort(times[i].begin(), times[i].end());
        std::sort(ratios.begin(), ratios.end());
        std::printf("proteins, %s: %.1f GCUPS, lib/align is %.2f times as fast, %d scores differ\n", names[i], cells / times[i][ROUNDS / 2],
                    ratios[ROUNDS / 2], differ[i]);
    }
}

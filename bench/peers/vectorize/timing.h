// Times of the programs beside this file: the median of as many runs as 0.4 s takes, in nanoseconds, and two sums of the
// results, by which they are compared. `PROGRAM VARIANT THREADS`.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>
#if _OPENMP
#include <omp.h>
#else
#include <atomic>
#include <thread>
#endif

static int n_threads = 1;
// f(lo, hi) for all parts of 0 .. n, by OpenMP where the compiler has it; on one thread it is a plain call.
template <class F> void each(int n, int grain, F f) {
    if (n_threads == 1) return f(0, n);
#if _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads)
    for (int i = 0; i < n; i += grain) f(i, std::min(n, i + grain));
#else
    std::atomic<int> next{0};
    auto work = [&] {
        for (int i; (i = next.fetch_add(grain)) < n;) f(i, std::min(n, i + grain));
    };
    std::vector<std::thread> others;
    for (int t = 1; t < n_threads; t++) others.emplace_back(work);
    work();
    for (auto &t : others) t.join();
#endif
}
static inline double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
template <class F> void measure(F run) {
    run();
    std::vector<double> times;
    double begin = now_ns();
    while (times.size() < 3 || (times.size() < 101 && now_ns() - begin < 4e8)) {
        double start = now_ns();
        run();
        times.push_back(now_ns() - start);
    }
    std::sort(times.begin(), times.end());
    std::printf("time %.0f\n", times[times.size() / 2]);
}
template <class F> void sums(int n, F of) {
    double s = 0, t = 0;
    for (int i = 0; i < n; i++) s += of(i), t += of(i) * (i % 13);
    std::printf("sum %.17g\nweighted %.17g\n", s, t);
}
template <class T> T *make(size_t n) {
    void *p = nullptr;
    if (posix_memalign(&p, 64, n * sizeof(T))) abort();
    std::memset(p, 0, n * sizeof(T));
    return static_cast<T *>(p);
}
// The variant that the first argument names; 3: there is none of this name (on this processor).
template <class F> F chosen(std::map<std::string, F> variants, int argc, char **argv) {
    auto found = argc > 2 ? variants.find(argv[1]) : variants.end();
    if (found == variants.end()) exit(3);
    n_threads = atoi(argv[2]);
    return found->second;
}

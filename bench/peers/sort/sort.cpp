// The peer of sort.impala: std::sort and std::stable_sort on the same numbers; with -DVQSORT, Highway's vqsort instead of both.
// Arguments: a workload, instead of all, and the number of elements.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>
#ifdef VQSORT
#include <hwy/contrib/sort/vqsort.h>
#endif

static const int MOST_ROUNDS = 15;
static long n = 1000000;
// The workload that is measured, or all.
static const char *only;

static uint64_t next(uint64_t &state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

// Ways to fill an array: with numbers of chance, with such that are sorted, in reverse, or few.
enum Fill { Random, Sorted, Reversed, Few };
static const char *const fills[] = {"random", "sorted", "reversed", "few"};

struct Pair { int32_t key, value; };
static void set(int32_t &x, uint64_t k) { x = static_cast<int32_t>(k); }
static void set(double &x, uint64_t k) { x = static_cast<double>(k); }
static void set(Pair &x, uint64_t k) { x = {static_cast<int32_t>(k), 1}; }

template <class T, class Sort, class Less>
static void measure(const char *name, Fill fill, uint64_t &state, Sort sort, Less less) {
    if (only && std::string(only) != std::string(name) + "_" + fills[fill]) return;
    // Short arrays are sorted several at a time.
    const long times_sorted = std::max(1l, 100000 / n);
    const int ROUNDS = n > 2000000 ? 3 : MOST_ROUNDS;
    std::vector<T> numbers(n * times_sorted);
    std::vector<double> times(ROUNDS);
    for (auto &time : times) {
        for (long i = 0; i < n * times_sorted; i++) {
            uint64_t k = next(state);
            set(numbers[i], fill == Sorted ? i % n : fill == Reversed ? n - i % n : fill == Few ? k % 16 : k);
        }
        auto start = std::chrono::steady_clock::now();
        for (long k = 0; k < times_sorted; k++) sort(&numbers[k * n], &numbers[k * n] + n);
        time = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / times_sorted;
        for (long k = 0; k < times_sorted; k++)
            if (!std::is_sorted(&numbers[k * n], &numbers[k * n] + n, less)) std::abort();
    }
    std::sort(times.begin(), times.end());
    std::printf("%s_%s %.0f\n", name, fills[fill], times[ROUNDS / 2]);
}

int main(int argc, char **argv) {
    only = argc > 1 ? argv[1] : nullptr;
    if (argc > 2) n = std::atol(argv[2]);
    uint64_t state = 1;
    for (Fill fill : {Random, Sorted, Reversed, Few}) {
#ifdef VQSORT
        static hwy::Sorter sorter;
        auto unstable = [](auto *from, auto *to) { sorter(from, to - from, hwy::SortAscending()); };
#else
        auto unstable = [](auto *from, auto *to) { std::sort(from, to); };
        auto stable = [](auto *from, auto *to) { std::stable_sort(from, to); };
        auto by_key = [](const Pair &a, const Pair &b) { return a.key < b.key; };
        auto stable_by_key = [&](auto *from, auto *to) { std::stable_sort(from, to, by_key); };
        measure<int32_t>("stable_i32", fill, state, stable, std::less<int32_t>());
        measure<double>("stable_f64", fill, state, stable, std::less<double>());
        measure<Pair>("stable_pair", fill, state, stable_by_key, by_key);
#endif
        measure<int32_t>("i32", fill, state, unstable, std::less<int32_t>());
        measure<double>("f64", fill, state, unstable, std::less<double>());
    }
}

// The peer of sort.impala: std::sort and std::stable_sort on the same numbers.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

static const int N = 1000000, ROUNDS = 15;

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
static void set(int32_t &x, uint64_t n) { x = static_cast<int32_t>(n); }
static void set(double &x, uint64_t n) { x = static_cast<double>(n); }
static void set(Pair &x, uint64_t n) { x = {static_cast<int32_t>(n), 1}; }

template <class T, class Sort, class Less>
static void measure(const char *name, Fill fill, uint64_t &state, Sort sort, Less less) {
    if (only && std::string(only) != std::string(name) + "_" + fills[fill]) return;
    std::vector<T> numbers(N);
    std::vector<int64_t> times(ROUNDS);
    for (auto &time : times) {
        for (int i = 0; i < N; i++) {
            uint64_t n = next(state);
            set(numbers[i], fill == Sorted ? i : fill == Reversed ? N - i : fill == Few ? n % 16 : n);
        }
        auto start = std::chrono::steady_clock::now();
        sort(numbers);
        time = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
        if (!std::is_sorted(numbers.begin(), numbers.end(), less)) std::abort();
    }
    std::sort(times.begin(), times.end());
    std::printf("%s_%s %lld\n", name, fills[fill], static_cast<long long>(times[ROUNDS / 2]));
}

int main(int argc, char **argv) {
    only = argc > 1 ? argv[1] : nullptr;
    uint64_t state = 1;
    auto unstable = [](auto &v) { std::sort(v.begin(), v.end()); };
    auto stable = [](auto &v) { std::stable_sort(v.begin(), v.end()); };
    auto by_key = [](const Pair &a, const Pair &b) { return a.key < b.key; };
    for (Fill fill : {Random, Sorted, Reversed, Few}) {
        measure<int32_t>("i32", fill, state, unstable, std::less<int32_t>());
        measure<double>("f64", fill, state, unstable, std::less<double>());
        measure<int32_t>("stable_i32", fill, state, stable, std::less<int32_t>());
        measure<double>("stable_f64", fill, state, stable, std::less<double>());
        measure<Pair>("stable_pair", fill, state, [&](auto &v) { std::stable_sort(v.begin(), v.end(), by_key); }, by_key);
    }
}

// The peer of sort.impala: std::sort and std::stable_sort on the same numbers.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

static const int N = 1000000, ROUNDS = 15;

static uint64_t next(uint64_t &state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

template <class T, class Sort> static void measure(const char *name, uint64_t &state, Sort sort) {
    std::vector<T> numbers(N);
    std::vector<int64_t> times(ROUNDS);
    for (auto &time : times) {
        for (auto &n : numbers) n = static_cast<T>(next(state));
        auto start = std::chrono::steady_clock::now();
        sort(numbers);
        time = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
        if (!std::is_sorted(numbers.begin(), numbers.end())) std::abort();
    }
    std::sort(times.begin(), times.end());
    std::printf("%s %lld\n", name, static_cast<long long>(times[ROUNDS / 2]));
}

int main() {
    uint64_t state = 1;
    measure<int32_t>("i32", state, [](auto &v) { std::sort(v.begin(), v.end()); });
    measure<double>("f64", state, [](auto &v) { std::sort(v.begin(), v.end()); });
    measure<int32_t>("stable", state, [](auto &v) { std::stable_sort(v.begin(), v.end()); });
}

// The functions of programs.impala as templates, with the values that are fixed there as template arguments.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

template <int N> inline double power(double x) {
    if constexpr (N == 0) return 1.0;
    else if constexpr (N % 2 == 0) { double y = power<N / 2>(x); return y * y; }
    else return x * power<N - 1>(x);
}
extern "C" void powers_72(const double* a, double* b, int len) {
    for (int i = 0; i < len; i++) b[i] = power<72>(a[i]);
}

// Every third number is not zero.
constexpr double sparse(size_t k) { return k % 3 == 1 ? 0.5 + (double)k : 0.0; }
template <size_t N, size_t K = 0> inline double dot(const double* row) {
    if constexpr (K == N) return 0.0;
    else if constexpr (sparse(K) == 0.0) return dot<N, K + 1>(row);
    else return sparse(K) * row[K] + dot<N, K + 1>(row);
}
template <size_t N> void dots(const double* rows, double* out, int len) {
    for (int i = 0; i < len; i++) out[i] = dot<N>(rows + (size_t)i * N);
}
extern "C" void dots_3(const double* r, double* o, int n) { dots<3>(r, o, n); }
extern "C" void dots_8(const double* r, double* o, int n) { dots<8>(r, o, n); }
extern "C" void dots_32(const double* r, double* o, int n) { dots<32>(r, o, n); }

// A ring of weights.
constexpr double weight(int k) {
    int y = k / 9 - 4, x = k % 9 - 4, d = x * x + y * y;
    return d >= 4 && d <= 16 ? 1.0 / (1 + d) : 0.0;
}
template <int K = 0> inline double window(const double* at, int len) {
    if constexpr (K == 81) return 0.0;
    else if constexpr (weight(K) == 0.0) return window<K + 1>(at, len);
    else return weight(K) * at[K / 9 * len + K % 9] + window<K + 1>(at, len);
}
extern "C" void filter_9(const double* image, double* out, int len) {
    int n = len - 8;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) out[y * n + x] = window(image + y * len + x, len);
}

constexpr double code[] = {4, 0, 3, 0, 1, 2.5, 3, 0, 2, 0.25, 5, 0, 4, 0, 3, 0, 1, -1, 2, 0.5, 3, 0, 1, 7, 5, 0, 2, 3, 0, 0};
template <int PC> inline double step(double x, double acc) {
    constexpr double op = code[PC], number = code[PC + 1];
    if constexpr (op == 1) return step<PC + 2>(x, acc + number);
    else if constexpr (op == 2) return step<PC + 2>(x, acc * number);
    else if constexpr (op == 3) return step<PC + 2>(x, acc * x);
    else if constexpr (op == 4) return step<PC + 2>(x, acc + x);
    else if constexpr (op == 5) return step<PC + 2>(x, acc < number ? number : acc);
    else return acc;
}
extern "C" void interpret(const double* x, double* y, int len) {
    for (int i = 0; i < len; i++) y[i] = step<0>(x[i], 0.0);
}

constexpr char pattern[] = "ab*c.d";
constexpr int length = sizeof(pattern) - 1;
template <int AT> bool here(const uint8_t* text, int i, int end);
template <int AT> bool star(const uint8_t* text, int i, int end) {
    for (;; i++) {
        if (here<AT + 2>(text, i, end)) return true;
        if (!(i < end && (pattern[AT] == '.' || pattern[AT] == text[i]))) return false;
    }
}
template <int AT> inline bool here(const uint8_t* text, int i, int end) {
    if constexpr (AT == length) return true;
    else if constexpr (AT + 1 < length && pattern[AT + 1] == '*') return star<AT>(text, i, end);
    else return i < end && (pattern[AT] == '.' || pattern[AT] == text[i]) && here<AT + 1>(text, i + 1, end);
}
extern "C" void matches(const uint8_t* text, uint8_t* out, int len) {
    for (int i = 0; i < len; i++) out[i] = here<0>(text, i, len);
}

template <int N> struct Roots {
    double at[2 * N];
    Roots() {
        double* to = at;
        for (int n = N; n > 1; n /= 2)
            for (int k = 0; k < n / 2; k++) *to++ = cos(-2 * M_PI * k / n), *to++ = sin(-2 * M_PI * k / n);
    }
};
template <int N, int FIRST> inline void transform(double* d, const double* roots) {
    if constexpr (N > 1) {
        constexpr int half = N / 2;
        for (int k = 0; k < half; k++) {
            double *a = d + 2 * k, *b = d + 2 * (k + half);
            double tr = a[0] - b[0], ti = a[1] - b[1], re = roots[2 * (FIRST + k)], im = roots[2 * (FIRST + k) + 1];
            a[0] += b[0];
            a[1] += b[1];
            b[0] = tr * re - ti * im;
            b[1] = tr * im + ti * re;
        }
        transform<half, FIRST + half>(d, roots);
        transform<half, FIRST + half>(d + 2 * half, roots);
    }
}
template <int N> void fft(const double* from, double* d) {
    static const Roots<N> roots;
    for (int i = 0; i < 2 * N; i++) d[i] = from[i];
    transform<N, 0>(d, roots.at);
}
extern "C" void fft_16(const double* f, double* d, int) { fft<16>(f, d); }
extern "C" void fft_64(const double* f, double* d, int) { fft<64>(f, d); }
extern "C" void fft_512(const double* f, double* d, int) { fft<512>(f, d); }

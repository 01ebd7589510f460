// Table 1 of "Specialization through Dynamic Staging": a power, convolutions and Fourier transforms, as dynamic C++, as templates, and the functions of
// bench/staging/staged.stagedc, which are linked to it. Prints names and nanoseconds, medians of runs in turns.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#define NOINLINE __attribute__((noinline))

extern "C" {
float plain_power(float base, int exp);
float power72(float base);
void plain_convolve(float *in, int size, float *K, int range, float *out);
void plain_convolve_mirror(float *in, int size, float *K, int range, float *out);
void convolve5(float *in, int size, float *out);
void convolve5_mirror(float *in, int size, float *out);
void plain_fft(float *image, int size);
void fft_10(float *image);
void fft_20(float *image);
void fft_24(float *image);
}

// --- A power.

NOINLINE float dynamic_power(float x, int n) {
    if (n == 0) return 1;
    if (n % 2) return x * dynamic_power(x, n - 1);
    float r = dynamic_power(x, n / 2);
    return r * r;
}

template <int N> inline float template_power(float x) {
    if constexpr (N == 0) return 1;
    else if constexpr (N % 2) return x * template_power<N - 1>(x);
    else {
        float r = template_power<N / 2>(x);
        return r * r;
    }
}

NOINLINE float template_power72(float x) { return template_power<72>(x); }

// --- Convolutions.

inline int mirror(int i, int n) { return i < 0 ? -i - 1 : i >= n ? 2 * n - 1 - i : i; }

NOINLINE void dynamic_convolve(const float *in, int n, const float *k, int r, float *out) {
    for (int x = r; x < n - r; x++) {
        float v = 0;
        for (int j = -r; j <= r; j++) v += k[j + r] * in[x + j];
        out[x] = v;
    }
}

NOINLINE void dynamic_convolve_mirror(const float *in, int n, const float *k, int r, float *out) {
    for (int x = 0; x < n; x++) {
        float v = 0;
        for (int j = -r; j <= r; j++) v += k[j + r] * in[mirror(x + j, n)];
        out[x] = v;
    }
}

struct Kernel {
    static constexpr int range = 2;
    static constexpr float k[5] = {-1, -2, 0, 2, 1};
};

template <class K, bool is_border, int J> inline float tap(const float *in, int x, int n) {
    if constexpr (K::k[J] == 0) return 0;
    else return K::k[J] * in[is_border ? mirror(x + J - K::range, n) : x + J - K::range];
}

template <class K, bool is_border> inline float pixel(const float *in, int x, int n) {
    return tap<K, is_border, 0>(in, x, n) + tap<K, is_border, 1>(in, x, n) + tap<K, is_border, 2>(in, x, n) +
           tap<K, is_border, 3>(in, x, n) + tap<K, is_border, 4>(in, x, n);
}

template <class K> NOINLINE void template_convolve(const float *__restrict in, int n, float *__restrict out) {
    for (int x = K::range; x < n - K::range; x++) out[x] = pixel<K, false>(in, x, n);
}

template <class K> NOINLINE void template_convolve_mirror(const float *__restrict in, int n, float *__restrict out) {
    for (int x = 0; x < K::range; x++) out[x] = pixel<K, true>(in, x, n);
    for (int x = K::range; x < n - K::range; x++) out[x] = pixel<K, false>(in, x, n);
    for (int x = n - K::range; x < n; x++) out[x] = pixel<K, true>(in, x, n);
}

// --- Fourier transforms of n complex numbers.

void reindex(float *d, long n) {
    for (long i = 0, j = 0; i < n; i++) {
        if (j > i) {
            std::swap(d[2 * i], d[2 * j]);
            std::swap(d[2 * i + 1], d[2 * j + 1]);
        }
        long m = n >> 1;
        while (m >= 1 && j >= m) {
            j -= m;
            m >>= 1;
        }
        j += m;
    }
}

inline void butterflies(float *d, long n, double wpr, double wpi) {
    double wr = 1, wi = 0;
    for (long i = 0; i < n; i += 2) {
        float tr = d[i + n] * wr - d[i + n + 1] * wi, ti = d[i + n] * wi + d[i + n + 1] * wr;
        d[i + n] = d[i] - tr;
        d[i + n + 1] = d[i + 1] - ti;
        d[i] += tr;
        d[i + 1] += ti;
        double w = wr;
        wr += wr * wpr - wi * wpi;
        wi += wi * wpr + w * wpi;
    }
}

NOINLINE void dynamic_sfft(float *d, long n) {
    if (n == 1) return;
    dynamic_sfft(d, n / 2);
    dynamic_sfft(d + n, n / 2);
    double s = std::sin(M_PI / n);
    butterflies(d, n, -2 * s * s, -std::sin(2 * M_PI / n));
}

constexpr double sine(double x) {
    double sum = x, term = x;
    for (int i = 1; i < 20; i++) {
        term *= -x * x / ((2 * i) * (2 * i + 1));
        sum += term;
    }
    return sum;
}

template <long N> struct Sfft {
    static inline void run(float *d) {
        Sfft<N / 2>::run(d);
        Sfft<N / 2>::run(d + N);
        constexpr double s = sine(M_PI / N), wpr = -2 * s * s, wpi = -sine(2 * M_PI / N);
        butterflies(d, N, wpr, wpi);
    }
};

template <> struct Sfft<1> {
    static inline void run(float *) {}
};

template <> struct Sfft<2> {
    static inline void run(float *d) {
        float tr = d[2], ti = d[3];
        d[2] = d[0] - tr;
        d[3] = d[1] - ti;
        d[0] += tr;
        d[1] += ti;
    }
};

template <> struct Sfft<4> {
    static inline void run(float *d) {
        Sfft<2>::run(d);
        Sfft<2>::run(d + 4);
        float tr = d[4], ti = d[5];
        d[4] = d[0] - tr;
        d[5] = d[1] - ti;
        d[0] += tr;
        d[1] += ti;
        tr = d[7];
        ti = -d[6];
        d[6] = d[2] - tr;
        d[7] = d[3] - ti;
        d[2] += tr;
        d[3] += ti;
    }
};

template <long N> NOINLINE void template_fft(float *d) {
    reindex(d, N);
    Sfft<N>::run(d);
}

// --- Times.

using Form = std::pair<const char *, std::function<void()>>;

// Runs the forms of a program in turns.
void measure(const std::string &program, double calls, const std::vector<Form> &forms) {
    std::vector<std::vector<double>> times(forms.size());
    double total = 0;
    for (auto &form : forms) form.second();
    while (times[0].size() < 5 || (total < 1e9 && times[0].size() < 100))
        for (size_t i = 0; i < forms.size(); i++) {
            auto start = std::chrono::steady_clock::now();
            forms[i].second();
            double t = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
            total += t;
            times[i].push_back(t / calls);
        }
    for (size_t i = 0; i < forms.size(); i++) {
        std::sort(times[i].begin(), times[i].end());
        std::printf("%s_%s %.4f\n", program.c_str(), forms[i].first, times[i][times[i].size() / 2]);
    }
}

void check(const std::string &what, const float *found, const float *expected, long n) {
    double error = 0, most = 1e-30;
    for (long i = 0; i < n; i++) {
        error = std::max(error, double(std::fabs(found[i] - expected[i])));
        most = std::max(most, double(std::fabs(expected[i])));
    }
    if (!(error / most < 1e-4)) {
        std::fprintf(stderr, "%s: relative error %g\n", what.c_str(), error / most);
        std::exit(1);
    }
}

template <class F> Form power(const char *name, F f) {
    return {name, [f] {
        volatile float x = 1.0001f, sink;
        float s = 0;
        for (int i = 0; i < 200000; i++) s += f(x);
        sink = s;
        (void)sink;
    }};
}

// Calls each form with the same input, and compares the outputs.
using Call = std::pair<const char *, std::function<void(float *out)>>;

void compare(const std::string &program, int times, long n, const std::vector<Call> &calls) {
    std::vector<float> expected(n), out(n);
    std::vector<Form> forms;
    for (auto &call : calls) {
        std::fill(out.begin(), out.end(), 0);
        call.second(out.data());
        if (&call == &calls[0]) expected = out;
        check(program + "_" + call.first, out.data(), expected.data(), n);
        forms.push_back({call.first, [&] {
            for (int i = 0; i < times; i++) {
                call.second(out.data());
                asm volatile("" ::: "memory");
            }
        }});
    }
    measure(program, times, forms);
}

template <long N> void transforms(const std::string &program, void staged(float *)) {
    std::vector<float> src(2 * N);
    for (long i = 0; i < 2 * N; i++) src[i] = float((i * 2654435761u) >> 8 & 0xffff) / 65536.f - .5f;
    volatile long n = N;
    auto copy = [&](float *d) { std::memcpy(d, src.data(), src.size() * sizeof(float)); };
    compare(program, std::max<long>(1, 200000 / N), 2 * N, {
        {"dynamic", [&](float *d) { copy(d), reindex(d, n), dynamic_sfft(d, n); }},
        {"template", [&](float *d) { copy(d), template_fft<N>(d); }},
        {"plain", [&](float *d) { copy(d), plain_fft(d, int(2 * n)); }},
        {"staged", [&](float *d) { copy(d), staged(d); }},
    });
}

int main(int argc, char **argv) {
    // The program that is measured, or all.
    auto wanted = [&](const std::string &program) { return argc < 2 || program == argv[1]; };
    volatile int exponent = 72, range = 2;
    if (wanted("power")) measure("power", 200000, {
        power("dynamic", [&](float x) { return dynamic_power(x, exponent); }),
        power("template", template_power72),
        power("plain", [&](float x) { return plain_power(x, exponent); }),
        power("staged", power72),
    });
    float a = power72(1.0001f), b = template_power72(1.0001f);
    check("power", &a, &b, 1);
    float k[5] = {-1, -2, 0, 2, 1};
    for (int n : {1024, 1000000}) {
        std::vector<float> in(n);
        for (int i = 0; i < n; i++) in[i] = i % 17;
        auto size = n == 1024 ? "1024" : "1e6";
        int times = n == 1024 ? 200 : 1;
        if (wanted(std::string("conv_") + size)) compare(std::string("conv_") + size, times, n, {
            {"dynamic", [&](float *out) { dynamic_convolve(in.data(), n, k, range, out); }},
            {"template", [&](float *out) { template_convolve<Kernel>(in.data(), n, out); }},
            {"plain", [&](float *out) { plain_convolve(in.data(), n, k, range, out); }},
            {"staged", [&](float *out) { convolve5(in.data(), n, out); }},
        });
        if (wanted(std::string("mirror_") + size)) compare(std::string("mirror_") + size, times, n, {
            {"dynamic", [&](float *out) { dynamic_convolve_mirror(in.data(), n, k, range, out); }},
            {"template", [&](float *out) { template_convolve_mirror<Kernel>(in.data(), n, out); }},
            {"plain", [&](float *out) { plain_convolve_mirror(in.data(), n, k, range, out); }},
            {"staged", [&](float *out) { convolve5_mirror(in.data(), n, out); }},
        });
    }
    if (wanted("fft_2^10")) transforms<1l << 10>("fft_2^10", fft_10);
    if (wanted("fft_2^20")) transforms<1l << 20>("fft_2^20", fft_20);
    if (wanted("fft_2^24")) transforms<1l << 24>("fft_2^24", fft_24);
}

// Table 1 of "Specialization through Dynamic Staging": a power, convolutions and Fourier transforms, as dynamic C++, as templates, and the functions of
// bench/staging/staged.stagedc, which are linked to it. Prints names and nanoseconds, medians.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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

template <class F> void measure(const std::string &name, double calls, F run) {
    std::vector<double> times;
    double total = 0;
    run();
    while (times.size() < 5 || (total < 3e8 && times.size() < 50)) {
        auto start = std::chrono::steady_clock::now();
        run();
        double t = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
        total += t;
        times.push_back(t / calls);
    }
    std::sort(times.begin(), times.end());
    std::printf("%s %.4f\n", name.c_str(), times[times.size() / 2]);
}

void check(const char *what, const float *found, const float *expected, long n) {
    double error = 0, most = 1e-30;
    for (long i = 0; i < n; i++) {
        error = std::max(error, double(std::fabs(found[i] - expected[i])));
        most = std::max(most, double(std::fabs(expected[i])));
    }
    if (!(error / most < 1e-4)) {
        std::fprintf(stderr, "%s: relative error %g\n", what, error / most);
        std::exit(1);
    }
}

template <class F> void power(const char *name, F f) {
    volatile float x = 1.0001f, sink;
    const int n = 2000000;
    measure(std::string("power_") + name, n, [&] {
        float s = 0;
        for (int i = 0; i < n; i++) s += f(x);
        sink = s;
    });
}

template <class F>
void convolution(const std::string &name, std::vector<float> &in, std::vector<float> &out, const std::vector<float> *expected, F f) {
    int n = in.size();
    int times = std::max(1, 2000000 / n);
    measure(name, times, [&] {
        for (int i = 0; i < times; i++) {
            f(in.data(), n, out.data());
            asm volatile("" ::: "memory");
        }
    });
    if (expected) check(name.c_str(), out.data(), expected->data(), n);
}

template <class F> void transform(const std::string &name, const std::vector<float> &src, std::vector<float> &d, const std::vector<float> *expected, F f) {
    int times = std::max<long>(1, 1000000 / src.size());
    measure(name, times, [&] {
        for (int i = 0; i < times; i++) {
            std::memcpy(d.data(), src.data(), src.size() * sizeof(float));
            f(d.data());
            asm volatile("" ::: "memory");
        }
    });
    if (expected) check(name.c_str(), d.data(), expected->data(), d.size());
}

template <long N, class F> void transforms(const std::string &name, F staged) {
    std::vector<float> src(2 * N), expected(2 * N), d(2 * N);
    for (long i = 0; i < 2 * N; i++) src[i] = float((i * 2654435761u) >> 8 & 0xffff) / 65536.f - .5f;
    volatile long n = N;
    transform(name + "_dynamic", src, expected, nullptr, [&](float *d) { reindex(d, n), dynamic_sfft(d, n); });
    transform(name + "_template", src, d, &expected, template_fft<N>);
    transform(name + "_plain", src, d, &expected, [&](float *d) { plain_fft(d, int(2 * n)); });
    transform(name + "_staged", src, d, &expected, staged);
}

int main() {
    volatile int exponent = 72;
    power("dynamic", [&](float x) { return dynamic_power(x, exponent); });
    power("template", template_power72);
    power("plain", [&](float x) { return plain_power(x, exponent); });
    power("staged", power72);
    float a = power72(1.0001f), b = template_power72(1.0001f);
    check("power", &a, &b, 1);
    float k[5] = {-1, -2, 0, 2, 1};
    volatile int range = 2;
    for (int n : {1024, 1000000}) {
        std::vector<float> in(n), expected(n), out(n);
        for (int i = 0; i < n; i++) in[i] = i % 17;
        auto size = n == 1024 ? "conv_1024" : "conv_1e6";
        auto mirrored = n == 1024 ? "mirror_1024" : "mirror_1e6";
        auto name = [](const char *what, const char *how) { return std::string(what) + "_" + how; };
        convolution(name(size, "dynamic"), in, expected, nullptr, [&](float *in, int n, float *out) { dynamic_convolve(in, n, k, range, out); });
        convolution(name(size, "template"), in, out, &expected, template_convolve<Kernel>);
        convolution(name(size, "plain"), in, out, &expected, [&](float *in, int n, float *out) { plain_convolve(in, n, k, range, out); });
        convolution(name(size, "staged"), in, out, &expected, convolve5);
        convolution(name(mirrored, "dynamic"), in, expected, nullptr, [&](float *in, int n, float *out) { dynamic_convolve_mirror(in, n, k, range, out); });
        convolution(name(mirrored, "template"), in, out, &expected, template_convolve_mirror<Kernel>);
        convolution(name(mirrored, "plain"), in, out, &expected, [&](float *in, int n, float *out) { plain_convolve_mirror(in, n, k, range, out); });
        convolution(name(mirrored, "staged"), in, out, &expected, convolve5_mirror);
    }
    transforms<1l << 10>("fft_2^10", fft_10);
    transforms<1l << 20>("fft_2^20", fft_20);
    transforms<1l << 24>("fft_2^24", fft_24);
}

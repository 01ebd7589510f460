// Measures the kernels of kernels.impala beside those of peers.cu on a GPU, in one process and on the same memory. Prints the
// medians in microseconds, and how often ours fit into theirs. bench/gpu.sh builds and runs it.
#include "peers.cu"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

extern "C" {
void ours_copy(int, float *, const float *);
void ours_saxpy(int, float, const float *, float *);
void ours_blur(int, int, float *, const float *);
void ours_gauss(int, int, float *, const float *);
void ours_mandelbrot(int, int, int, int *);
void ours_black_scholes(int, const float *, const float *, const float *, float *, float *);
void ours_nbody(int, const float4 *, float4 *);
void ours_sgemm(int, const float *, const float *, float *);
void *ours_alloc(long long);
void ours_wait(void);
}

static const int RUNS = 15;

// The median time of a launch, in microseconds, from several runs of `n` launches.
static double median(int n, const std::function<void()> &launch) {
    std::vector<double> times;
    for (int run = -2; run < RUNS; run++) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < n; i++) launch();
        ours_wait();
        cudaDeviceSynchronize();
        std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
        if (run >= 0) times.push_back(time.count() / n);
    }
    std::sort(times.begin(), times.end());
    return times[RUNS / 2];
}

static int n_wrong;

// Runs both in turns on results of their own, compares these, and prints a line.
static void compare(const char *name, int n, size_t results, float *ours, float *theirs, const std::function<void()> &run_ours,
                    const std::function<void()> &run_theirs) {
    double own = median(n, run_ours), peer = median(n, run_theirs);
    std::vector<float> a(results), b(results);
    cudaMemcpy(a.data(), ours, results * 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(b.data(), theirs, results * 4, cudaMemcpyDeviceToHost);
    size_t wrong = 0;
    for (size_t i = 0; i < results; i++) wrong += !(std::fabs(a[i] - b[i]) <= 1e-3f * std::max(1.0f, std::fabs(b[i])));
    n_wrong += wrong > results / 10000;
    cudaError_t error = cudaGetLastError();
    printf("| %s | %.1f | %.1f | %.2f | %s |\n", name, own, peer, peer / own,
           error ? cudaGetErrorString(error) : wrong > results / 10000 ? "DIFFERENT" : "equal");
}

int main() {
    cudaDeviceProp device;
    if (cudaError_t error = cudaGetDeviceProperties(&device, 0)) {
        printf("no GPU: %s\n", cudaGetErrorString(error));
        return 1;
    }
    printf("%s\n\n| kernel | ours, us | CUDA C++, us | theirs / ours | results |\n|---|---|---|---|---|\n", device.name);
    const int w = 4096, h = 4096, size = w * h, many = 1 << 16, matrix = 2048;
    float *from = (float *)ours_alloc(4ll * size), *other = (float *)ours_alloc(4ll * size);
    float *ours = (float *)ours_alloc(8ll * size), *theirs = (float *)ours_alloc(8ll * size);
    std::vector<float> numbers(size);
    for (int i = 0; i < size; i++) numbers[i] = 1 + (i * 2654435761u >> 16) / 65536.0f;
    cudaMemcpy(from, numbers.data(), 4ll * size, cudaMemcpyHostToDevice);
    cudaMemcpy(other, numbers.data(), 4ll * size, cudaMemcpyHostToDevice);
    cudaMemset(ours, 0, 8ll * size);
    cudaMemset(theirs, 0, 8ll * size);
    dim3 tile(32, 4);
    auto tiles = [&](int border) { return dim3((w - 2 * border + 31) / 32, (h - 2 * border + 3) / 4); };
    compare("an empty grid of one block", 1000, 1, ours, theirs, [&] { ours_copy(1, ours, from); },
            [&] { theirs_copy<<<1, 256>>>(1, theirs, from); });
    compare("copy", 20, size, ours, theirs, [&] { ours_copy(size, ours, from); },
            [&] { theirs_copy<<<size / 256, 256>>>(size, theirs, from); });
    compare("saxpy", 20, size, ours, theirs, [&] { ours_saxpy(size, 0.5f, from, ours); },
            [&] { theirs_saxpy<<<size / 256, 256>>>(size, 0.5f, from, theirs); });
    compare("3x3 blur", 20, size, ours, theirs, [&] { ours_blur(w, h, ours, from); },
            [&] { theirs_blur<<<tiles(1), tile>>>(w, h, theirs, from); });
    compare("5x5 Gaussian", 20, size, ours, theirs, [&] { ours_gauss(w, h, ours, from); },
            [&] { theirs_gauss<<<tiles(2), tile>>>(w, h, theirs, from); });
    compare("mandelbrot", 5, size, ours, theirs, [&] { ours_mandelbrot(w, h, 256, (int *)ours); },
            [&] { theirs_mandelbrot<<<tiles(0), tile>>>(w, h, 256, (int *)theirs); });
    compare("Black-Scholes", 20, 2 * size, ours, theirs, [&] { ours_black_scholes(size, from, other, from, ours, ours + size); },
            [&] { theirs_black_scholes<<<size / 256, 256>>>(size, from, other, from, theirs, theirs + size); });
    compare("n-body", 3, 4 * many, ours, theirs, [&] { ours_nbody(many, (float4 *)from, (float4 *)ours); },
            [&] { theirs_nbody<<<many / 256, 256>>>(many, (float4 *)from, (float4 *)theirs); });
    compare("SGEMM", 5, (size_t)matrix * matrix, ours, theirs, [&] { ours_sgemm(matrix, from, other, ours); },
            [&] { theirs_sgemm<<<dim3(matrix / 64, matrix / 64), dim3(16, 16)>>>(matrix, from, other, theirs); });
    return n_wrong > 0;
}

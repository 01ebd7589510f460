// Measures the kernels of kernels.impala and filters.impala beside those of peers.cu on a GPU, in one process and on the same memory. bench/gpu.sh
// builds and runs it; the machine code of peers.cu is the file `peers.fatbin` beside this program.
//
//   measure device     the GPU and its driver
//   measure list       the names of the kernels, a line each
//   measure NAME       a row of the table: medians in microseconds, and how often ours fit into theirs
#include "driver.h"
#include <math.h>

void ours_copy(int, float *, const float *);
void ours_saxpy(int, float, const float *, float *);
void ours_blur(int, int, float *, const float *);
void ours_gauss(int, int, float *, const float *);
void ours_mandelbrot(int, int, int, int *);
void ours_black_scholes(int, const float *, const float *, const float *, float *, float *);
void ours_nbody(int, const void *, void *);
void ours_sgemm(int, const float *, const float *, float *);
void ours_image_gauss(int, int, float *, const float *);
void ours_image_bilateral(int, int, float *, const float *);
void ours_image_harris(int, int, float *, const float *);
void ours_image_median(int, int, float *, const float *);
void *ours_alloc(long long);
void ours_wait(void);

enum { W = 4096, H = 4096, SIZE = W * H, MANY = 1 << 16, MATRIX = 2048, RUNS = 15 };

static void *peer;
static float *from, *other, *ours, *theirs;
static float half = 0.5f;

// A kernel: ours; the name of theirs, its grid, block and arguments; the launches of a run, the numbers that it makes; whether these
// are integers. Of floats one in 10,000 may differ by more than a thousandth; of the numbers of rounds at the edge of the Mandelbrot
// set, which a rounding decides, one in 50.
struct Kernel {
    const char *name;
    int launches;
    size_t results;
    int is_int;
    void (*run)(void);
    const char *peer;
    unsigned grid[2], block[2];
    void *args[6];
};
static int one = 1, size = SIZE, w = W, h = H, limit = 256, many = MANY, matrix = MATRIX;
static float *put;
static void run_empty(void) { ours_copy(1, ours, from); }
static void run_copy(void) { ours_copy(SIZE, ours, from); }
static void run_saxpy(void) { ours_saxpy(SIZE, half, from, ours); }
static void run_blur(void) { ours_blur(W, H, ours, from); }
static void run_gauss(void) { ours_gauss(W, H, ours, from); }
static void run_mandelbrot(void) { ours_mandelbrot(W, H, limit, (int *)ours); }
static void run_black_scholes(void) { ours_black_scholes(SIZE, from, other, from, ours, ours + SIZE); }
static void run_nbody(void) { ours_nbody(MANY, from, ours); }
static void run_sgemm(void) { ours_sgemm(MATRIX, from, other, ours); }
static void run_image_gauss(void) { ours_image_gauss(W, H, ours, from); }
static void run_image_bilateral(void) { ours_image_bilateral(W, H, ours, from); }
static void run_image_harris(void) { ours_image_harris(W, H, ours, from); }
static void run_image_median(void) { ours_image_median(W, H, ours, from); }
#define IMAGE {W / 32, H / 16}, {32, 4}, {&w, &h, &theirs, &from}
#define TILES(border) {(W - 2 * border + 31) / 32, (H - 2 * border + 3) / 4}, {32, 4}
static const struct Kernel kernels[] = {
    {"an empty grid of one block", 1000, 1, 0, run_empty, "theirs_copy", {1, 1}, {256, 1}, {&one, &theirs, &from}},
    {"copy", 20, SIZE, 0, run_copy, "theirs_copy", {SIZE / 256, 1}, {256, 1}, {&size, &theirs, &from}},
    {"saxpy", 20, SIZE, 0, run_saxpy, "theirs_saxpy", {SIZE / 256, 1}, {256, 1}, {&size, &half, &from, &theirs}},
    {"3x3 blur", 20, SIZE, 0, run_blur, "theirs_blur", TILES(1), {&w, &h, &theirs, &from}},
    {"5x5 Gaussian", 20, SIZE, 0, run_gauss, "theirs_gauss", TILES(2), {&w, &h, &theirs, &from}},
    {"mandelbrot", 5, SIZE, 1, run_mandelbrot, "theirs_mandelbrot", TILES(0), {&w, &h, &limit, &theirs}},
    {"Black-Scholes", 20, 2 * SIZE, 0, run_black_scholes, "theirs_black_scholes", {SIZE / 256, 1}, {256, 1},
     {&size, &from, &other, &from, &theirs, &put}},
    {"n-body", 3, 4 * MANY, 0, run_nbody, "theirs_nbody", {MANY / 256, 1}, {256, 1}, {&many, &from, &theirs}},
    {"SGEMM", 5, (size_t)MATRIX *MATRIX, 0, run_sgemm, "theirs_sgemm", {MATRIX / 64, MATRIX / 64}, {16, 16},
     {&matrix, &from, &other, &theirs}},
    {"image: 5x5 Gaussian", 20, SIZE, 0, run_image_gauss, "theirs_image_gauss", IMAGE},
    {"image: 5x5 bilateral", 10, SIZE, 0, run_image_bilateral, "theirs_image_bilateral", IMAGE},
    {"image: Harris", 10, SIZE, 0, run_image_harris, "theirs_image_harris", IMAGE},
    {"image: 3x3 median", 10, SIZE, 0, run_image_median, "theirs_image_median", IMAGE},
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static void launch_peer(const struct Kernel *k) {
    void *args[6];
    memcpy(args, k->args, sizeof args);
    must("cuLaunchKernel", cuLaunchKernel(peer, k->grid[0], k->grid[1], 1, k->block[0], k->block[1], 1, 0, stream, args, NULL));
}

// The median time of a launch, in microseconds, over several runs.
static double median(const struct Kernel *k, int is_ours) {
    double times[RUNS];
    for (int run = -2; run < RUNS; run++) {
        double start = now();
        for (int i = 0; i < k->launches; i++) {
            if (is_ours) k->run(); else launch_peer(k);
        }
        if (is_ours) ours_wait(); else must("cuStreamSynchronize", cuStreamSynchronize(stream));
        if (run >= 0) times[run] = (now() - start) / k->launches;
    }
    qsort(times, RUNS, sizeof *times, by_value);
    return times[RUNS / 2];
}

// Runs both on results of their own, compares these, and prints a row.
static int measure(const struct Kernel *k) {
    size_t bytes = 8ull * SIZE;
    from = ours_alloc(4ll * SIZE);
    other = ours_alloc(4ll * SIZE);
    ours = ours_alloc(bytes);
    theirs = ours_alloc(bytes);
    put = theirs + SIZE;
    // What was not written is equal; not a number is equal to nothing.
    float *a = calloc(1, bytes), *b = calloc(1, bytes);
    if (!a || !b) fail("memory", "there is too little");
    for (int i = 0; i < SIZE; i++) a[i] = 1 + (i * 2654435761u >> 16) / 65536.0f;
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)from, a, 4ull * SIZE));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)other, a, 4ull * SIZE));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)ours, b, bytes));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)theirs, b, bytes));
    double own = median(k, 1), peers = median(k, 0);
    must("cuMemcpyDtoH", cuMemcpyDtoH_v2(a, (uint64_t)ours, 4 * k->results));
    must("cuMemcpyDtoH", cuMemcpyDtoH_v2(b, (uint64_t)theirs, 4 * k->results));
    size_t wrong = 0, written = 0;
    for (size_t i = 0; i < k->results; i++) {
        wrong += k->is_int ? ((int *)a)[i] != ((int *)b)[i] : !(fabsf(a[i] - b[i]) <= 1e-3f * fmaxf(1, fabsf(b[i])));
        written += b[i] != 0;
    }
    int is_wrong = wrong > k->results / (k->is_int ? 50 : 10000) || !written;
    printf("| %s | %.1f | %.1f | %.2f | ", k->name, own, peers, peers / own);
    if (!written) printf("NOTHING COMPUTED |\n");
    else if (is_wrong) printf("%zu of %zu DIFFERENT |\n", wrong, k->results);
    else printf("equal but for %zu |\n", wrong);
    return is_wrong;
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    if (!strcmp(wanted, "list")) {
        for (int i = 0; i < N_KERNELS; i++) puts(kernels[i].name);
        return 0;
    }
    open_device();
    int driver, number[4];
    char name[256];
    must("its name", cuDeviceGetName(name, sizeof name, device));
    must("the driver's version", cuDriverGetVersion(&driver));
    // Major and minor number of the architecture, multiprocessors, clock in kHz.
    for (int i = 0; i < 4; i++) must("its attributes", cuDeviceGetAttribute(&number[i], (int[]){75, 76, 16, 13}[i], device));
    if (!strcmp(wanted, "device")) {
        printf("%s, sm_%d%d, %d multiprocessors at %d MHz, driver for CUDA %d.%d\n", name, number[0], number[1], number[2],
               number[3] / 1000, driver / 1000, driver % 1000 / 10);
        return 0;
    }
    for (int i = 0; i < N_KERNELS; i++) {
        if (strcmp(wanted, kernels[i].name)) continue;
        peer = load_kernel(argv[0], "peers.fatbin", kernels[i].peer);
        return measure(&kernels[i]);
    }
    fail(wanted, "no such kernel");
}

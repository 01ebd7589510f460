// NVIDIA's driver, for programs that measure kernels of ours beside kernels in CUDA C++. It is opened when the program runs: nothing of
// CUDA is needed to build it but the machine code by nvcc, a file beside the program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The driver's functions, by the names that its library has. Handles are addresses, those of devices and of memory numbers.
typedef int Result;
#define FUNCTIONS(F)                                                                                                              \
    F(cuInit, (unsigned))                                                                                                         \
    F(cuDriverGetVersion, (int *))                                                                                                \
    F(cuDeviceGet, (int *, int))                                                                                                  \
    F(cuDeviceGetName, (char *, int, int))                                                                                        \
    F(cuDeviceGetAttribute, (int *, int, int))                                                                                    \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                                                   \
    F(cuCtxSetCurrent, (void *))                                                                                                  \
    F(cuGetErrorString, (Result, const char **))                                                                                  \
    F(cuModuleLoadData, (void **, const void *))                                                                                  \
    F(cuModuleGetFunction, (void **, void *, const char *))                                                                       \
    F(cuStreamCreate, (void **, unsigned))                                                                                        \
    F(cuStreamSynchronize, (void *))                                                                                              \
    F(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))   \
    F(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                                                          \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))
#define DECLARE(name, types) static Result(*name) types;
FUNCTIONS(DECLARE)

static void fail(const char *what, const char *why) {
    printf("%s: %s\n", what, why);
    exit(1);
}

static void must(const char *what, Result result) {
    const char *why = "an unknown error";
    if (!result) return;
    cuGetErrorString(result, &why);
    fail(what, why);
}

static void open_driver(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) fail("no driver", dlerror());
#define FIND(name, types)                                                                                                         \
    if (!(*(void **)&name = dlsym(driver, #name))) fail("the driver is too old", #name " is missing");
    FUNCTIONS(FIND)
    must("cuInit", cuInit(0));
}

// The first device, its context, and the queue of the peers' kernels.
static int device;
static void *context, *stream;

static void open_device(void) {
    open_driver();
    must("device 0", cuDeviceGet(&device, 0));
    must("its context", cuDevicePrimaryCtxRetain(&context, device));
    must("its context", cuCtxSetCurrent(context));
    must("cuStreamCreate", cuStreamCreate(&stream, 1));
}

// A kernel of the machine code in a file beside the program `self`.
static void *load_kernel(const char *self, const char *file_name, const char *kernel) {
    char path[4096];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s%s", (int)(slash ? slash + 1 - self : 0), self, file_name);
    FILE *file = fopen(path, "rb");
    if (!file) fail(path, "cannot be read");
    static char code[16 << 20];
    if (!fread(code, 1, sizeof code, file)) fail(path, "is empty");
    fclose(file);
    void *module, *function;
    must("machine code by nvcc", cuModuleLoadData(&module, code));
    must(kernel, cuModuleGetFunction(&function, module, kernel));
    return function;
}

// Microseconds.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

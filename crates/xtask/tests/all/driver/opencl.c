// A stand-in for the library of OpenCL: the functions that the runtime calls. A device has buffers, no shared virtual memory, and the
// extensions that `FAKE_OPENCL` lists. Kernels are not compiled and do not run: a launch prints their name.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Result;
enum { OK = 0, INVALID = -30, NO_KERNEL = -46 };
enum { IL_VERSION = 0x105B, NAME = 0x102B, VERSION = 0x102F, EXTENSIONS = 0x1030 };

struct Kernel { char name[100]; };
static char platform, device, context, queue, event;

static Result text(const char *it, size_t size, char *out, size_t *length) {
    size_t n = strlen(it) + 1;
    if (length) *length = n;
    if (out) memcpy(out, it, n < size ? n : size);
    return OK;
}

Result clGetPlatformIDs(uint32_t n, void **all, uint32_t *found) {
    if (all) *all = &platform;
    if (found) *found = 1;
    return OK;
}
Result clGetDeviceIDs(void *of, uint64_t kind, uint32_t n, void **all, uint32_t *found) {
    if (all) *all = &device;
    if (found) *found = 1;
    return OK;
}
Result clGetDeviceInfo(void *of, uint32_t what, size_t size, void *out, size_t *length) {
    const char *extensions = getenv("FAKE_OPENCL");
    if (what == EXTENSIONS) return text(extensions ? extensions : "", size, out, length);
    if (what == IL_VERSION) return text("SPIR-V_1.3", size, out, length);
    return what == NAME || what == VERSION ? text("stand-in", size, out, length) : INVALID;
}
void *clCreateContext(void *how, uint32_t n, void **devices, void *notify, void *data, Result *status) {
    *status = OK;
    return &context;
}
void *clCreateCommandQueueWithProperties(void *in, void *of, const uint64_t *how, Result *status) {
    *status = OK;
    return &queue;
}
void *clCreateBuffer(void *in, uint64_t flags, size_t size, void *from, Result *status) {
    *status = OK;
    return malloc(size);
}
Result clReleaseMemObject(void *it) { free(it); return OK; }
void *clCreateProgramWithSource(void *in, uint32_t n, const char **texts, const size_t *sizes, Result *status) {
    size_t size = sizes ? *sizes : strlen(*texts);
    char *program = calloc(1, size + 1);
    *status = OK;
    return memcpy(program, *texts, size);
}
Result clBuildProgram(void *program, uint32_t n, void **devices, const char *options, void *notify, void *data) { return OK; }
Result clGetProgramInfo(void *program, uint32_t what, size_t size, void *out, size_t *length) { return INVALID; }
void *clCreateKernel(const char *program, const char *name, Result *status) {
    struct Kernel *kernel = calloc(1, sizeof *kernel);
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    *status = strstr(program, name) ? OK : NO_KERNEL;
    return kernel;
}
Result clSetKernelArg(void *kernel, uint32_t i, size_t size, const void *value) { return OK; }
Result clEnqueueNDRangeKernel(void *on, struct Kernel *kernel, uint32_t axes, const size_t *from, const size_t *items, const size_t *block,
                              uint32_t n, void *waits, void **out) {
    printf("launch %s: %zu items in blocks of %zu\n", kernel->name, items[0], block[0]);
    *out = &event;
    return OK;
}
Result clFlush(void *on) { return OK; }
Result clFinish(void *on) { return OK; }
Result clReleaseEvent(void *it) { return OK; }
Result clGetEventInfo(void *it, uint32_t what, size_t size, void *out, size_t *length) {
    if (length) *length = 4;
    if (out) memset(out, 0, 4);
    return OK;
}
Result clGetEventProfilingInfo(void *it, uint32_t what, size_t size, void *out, size_t *length) {
    if (length) *length = 8;
    if (out) memset(out, 0, 8);
    return OK;
}

// A stand-in for NVIDIA's driver: the functions that the runtime calls. Device memory is the host's. Kernels do not run: a launch
// prints what the driver would get, by the parameters in the PTX. `FAKE_CUDA` names a fault, or is `copies`: then nothing is printed,
// and kernels with `copy` in their names do copy (`bench/gpu`). Machine code by nvcc is taken; it has every kernel.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_PTX = 218, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

struct Memory { char *begin; size_t size; const char *kind; };
struct Module { char *text; };
struct Function { struct Module *module; char name[200]; unsigned max_shared; };

static struct Memory memories[1000];
static int n_memories, is_lost;
static void *current;
static char context, streams[10];
static int n_streams;
static int stream_of(void *at) { return (char *)at >= streams && (char *)at < streams + n_streams; }

static int fault(const char *name) {
    const char *wanted = getenv("FAKE_CUDA");
    return wanted && !strcmp(wanted, name);
}

static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!fault("copies")) vprintf(format, args);
    va_end(args);
}

Result cuInit(unsigned flags) { return fault("no-device") ? NO_DEVICE : flags ? INVALID : OK; }
Result cuDriverGetVersion(int *version) { *version = 13000; return OK; }
Result cuDeviceGetCount(int *n) { *n = 1; return OK; }
Result cuDeviceGet(int *device, int n) { *device = n; return n ? INVALID : OK; }
Result cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "stand-in %d", device); return OK; }
Result cuDeviceGetAttribute(int *value, int what, int device) {
    (void)device;
    *value = what == 75 ? 9 : 0;
    return OK;
}
Result cuDevicePrimaryCtxRetain(void **out, int device) { (void)device; *out = &context; return OK; }
Result cuCtxSetCurrent(void *to) { current = to; return OK; }
Result cuCtxSynchronize(void) { puts("wait for everything"); return current == &context ? OK : INVALID; }
Result cuStreamCreate(void **out, unsigned flags) { (void)flags; *out = streams + n_streams++; return OK; }
Result cuGetErrorName(Result e, const char **text) { (void)e; *text = "CUDA_ERROR"; return OK; }
Result cuGetErrorString(Result e, const char **text) {
    *text = e == OUT_OF_MEMORY     ? "out of memory"
            : e == NO_DEVICE       ? "no CUDA-capable device is detected"
            : e == INVALID_PTX     ? "a PTX JIT compilation failed"
            : e == NOT_FOUND       ? "named symbol not found"
            : e == ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                   : "invalid argument";
    return OK;
}

static Result make(void **out, size_t size, const char *kind) {
    if (current != &context) return INVALID;
    if (fault("memory") && !strcmp(kind, "device")) return OUT_OF_MEMORY;
    char *begin = malloc(size);
    memories[n_memories++] = (struct Memory){begin, size, kind};
    *out = begin;
    return OK;
}
Result cuMemAlloc_v2(void **out, size_t size) { return make(out, size, "device"); }
Result cuMemHostAlloc(void **out, size_t size, unsigned flags) { (void)flags; return make(out, size, "pinned"); }
Result cuMemAllocManaged(void **out, size_t size, unsigned flags) { return flags == 1 ? make(out, size, "unified") : INVALID; }

static int find(const char *at) {
    for (int i = 0; i < n_memories; i++)
        if (at >= memories[i].begin && at < memories[i].begin + memories[i].size) return i;
    return -1;
}
static Result drop(void *at, int is_pinned) {
    int i = find(at);
    if (i < 0 || memories[i].begin != at || is_pinned != !strcmp(memories[i].kind, "pinned")) return INVALID;
    say("free %s %zu\n", memories[i].kind, memories[i].size);
    memories[i].size = 0;
    return OK;
}
Result cuMemFree_v2(void *at) { return drop(at, 0); }
Result cuMemFreeHost(void *at) { return drop(at, 1); }
// `others`: what the program did not allocate is memory that others have, of a page each.
Result cuMemGetAddressRange_v2(void **begin, size_t *size, void *at) {
    int i = find(at);
    if (i < 0 && !fault("others")) return INVALID;
    *begin = i < 0 ? at : memories[i].begin;
    *size = i < 0 ? 4096 : memories[i].size;
    return OK;
}
Result cuMemcpyHtoD_v2(void *to, const void *from, size_t n) {
    if (is_lost) return ILLEGAL_ADDRESS;
    if (find(to) < 0) return INVALID;
    memcpy(to, from, n);
    return OK;
}
Result cuMemcpyDtoH_v2(void *to, const void *from, size_t n) {
    if (is_lost) return ILLEGAL_ADDRESS;
    if (find(from) < 0) return INVALID;
    memcpy(to, from, n);
    return OK;
}

// Machine code is the text of the PTX behind a mark.
static const char MARK[] = "machine code\n";
struct Link { char *log, *code; };
Result cuLinkCreate_v2(unsigned n, const int *options, void **values, struct Link **out) {
    *out = calloc(1, sizeof **out);
    for (unsigned i = 0; i < n; i++)
        if (options[i] == 5) (*out)->log = values[i];
    return OK;
}
Result cuLinkAddData_v2(struct Link *link, int type, const char *text, size_t size, const char *name, unsigned n,
                        const int *options, void **values) {
    if (type != 1 || !size || text[size - 1] || !name || n || options || values) return INVALID;
    if (fault("load")) {
        strcpy(link->log, "ptxas application ptx input, line 7; error : no such thing\n");
        return INVALID_PTX;
    }
    link->code = malloc(sizeof MARK + size);
    strcat(strcpy(link->code, MARK), text);
    say("assemble\n");
    return OK;
}
Result cuLinkComplete(struct Link *link, void **code, size_t *size) {
    *code = link->code;
    *size = strlen(link->code) + 1;
    return OK;
}
Result cuLinkDestroy(struct Link *link) { free(link->code); free(link); return OK; }
Result cuModuleLoadData(struct Module **out, const char *code) {
    if (*(const unsigned *)code == 0xba55ed50) {
        *out = malloc(sizeof **out);
        (*out)->text = NULL;
        return OK;
    }
    if (fault("machine code") || strncmp(code, MARK, strlen(MARK))) return INVALID;
    *out = malloc(sizeof **out);
    (*out)->text = strdup(code + strlen(MARK));
    const char *target = strstr((*out)->text, ".target ");
    say("load %.14s\n", target ? target : "no PTX");
    return OK;
}
Result cuModuleGetFunction(struct Function **out, struct Module *module, const char *name) {
    char entry[300];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (module->text && !strstr(module->text, entry)) return NOT_FOUND;
    *out = malloc(sizeof **out);
    (*out)->module = module;
    (*out)->max_shared = 48 << 10;
    snprintf((*out)->name, sizeof (*out)->name, "%s", name);
    return OK;
}
// A device of 100,000 bytes.
Result cuFuncSetAttribute(struct Function *f, int what, int bytes) {
    if (what != 8 || bytes > 100000) return INVALID;
    f->max_shared = bytes;
    return OK;
}
Result cuLaunchKernel(struct Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *on, void **params, void **extra) {
    if (!stream_of(on) || extra || shared > f->max_shared) return INVALID;
    if (fault("copies")) {
        if (!strstr(f->name, "copy")) return OK;
        // nvcc's take the number of floats first, ours last. The same again is not copied again.
        int is_ours = f->module->text != NULL;
        float *to = *(float **)params[!is_ours], *from = *(float **)params[1 + !is_ours];
        int n = *(int *)params[is_ours ? 2 : 0];
        if (*to != *from) memcpy(to, from, 4ull * n);
        return OK;
    }
    say("launch %s: %u %u %u blocks of %u %u %u:", f->name, gx, gy, gz, bx, by, bz);
    char entry[300];
    snprintf(entry, sizeof entry, ".entry %s(", f->name);
    const char *at = strstr(f->module->text, entry), *end = strchr(at + strlen(entry), ')');
    for (int i = 0; (at = strstr(at, ".param ")) && at < end; i++) {
        at += strlen(".param ");
        if (!strncmp(at, ".u64 .ptr", 9)) {
            char *address = *(char **)params[i];
            int memory = find(address);
            if (memory < 0) say(" wild"); else say(" memory %d + %td", memory, address - memories[memory].begin);
        } else if (!strncmp(at, ".align", 6)) {
            say(" aggregate %d", *(int *)params[i]);
        } else if (!strncmp(at, ".u64", 4) || !strncmp(at, ".b64", 4)) {
            say(" %lld", *(long long *)params[i]);
        } else if (!strncmp(at, ".u8", 3) || !strncmp(at, ".b8", 3)) {
            say(" byte %d", *(unsigned char *)params[i]);
        } else {
            say(" %d", *(int *)params[i]);
        }
    }
    if (shared) say(" shared %u", shared);
    say("\n");
    if (fault("kernel")) is_lost = 1;
    return OK;
}
Result cuStreamSynchronize(void *on) { return !stream_of(on) ? INVALID : is_lost ? ILLEGAL_ADDRESS : OK; }
Result cuEventCreate(void **out, unsigned flags) { (void)flags; *out = malloc(1); return OK; }
Result cuEventRecord(void *event, void *on) { return event && stream_of(on) ? OK : INVALID; }
Result cuEventElapsedTime(float *ms, void *a, void *b) { *ms = 1; return a && b ? OK : INVALID; }
Result cuEventDestroy_v2(void *event) { free(event); return OK; }
Result cuEventSynchronize(void *event) { return !event ? INVALID : is_lost ? ILLEGAL_ADDRESS : OK; }
Result cuEventQuery(void *event) { return cuEventSynchronize(event); }
// Commands run at once, so an event that is waited for has happened.
Result cuStreamWaitEvent(void *on, void *event, unsigned flags) {
    if (!stream_of(on) || !event || flags) return INVALID;
    say("stream %td follows: ok\n", (char *)on - streams);
    return OK;
}

// A stand-in for the loader of Level Zero: the functions that the runtime calls. Device memory is the host's. Kernels do not run: a
// launch prints what the driver would get. `FAKE_ZE` names a fault.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t Result;
enum { OK = 0, NOT_READY = 1, LOST = 0x70000001, OUT_OF_MEMORY = 0x70000003, BUILD_FAILURE = 0x70000004, UNINITIALIZED = 0x78000001,
       INVALID = 0x78000004, NO_KERNEL = 0x78000011 };
enum { DEVICE_PROPERTIES = 3, COMPUTE_PROPERTIES, CONTEXT = 13, QUEUE, POOL = 16, EVENT, DEVICE_MEMORY = 21, HOST_MEMORY, MODULE = 27,
       KERNEL = 29 };

struct Head { uint32_t kind; void *next; };
struct DeviceProperties { struct Head head; uint32_t kind[16]; uint64_t resolution; uint32_t bits[2]; char uuid[16], name[256]; };
struct ComputeProperties { struct Head head; uint32_t max_block, rest[17]; };
struct DriverProperties { struct Head head; char uuid[16]; uint32_t version; };
struct Description { struct Head head; uint32_t numbers[6]; };
struct ModuleDescription { struct Head head; uint32_t format; size_t size; const char *code, *flags; const void *constants; };
struct KernelDescription { struct Head head; uint32_t flags; const char *name; };
struct Memory { char *begin; size_t size; const char *kind; };
struct Module { char *code; size_t size; };
struct Event { int has_happened; };
struct Kernel { char name[100]; uint32_t block[3], indirect, n; char args[32][64]; size_t sizes[32]; };

static char driver, device, context, pool;
static char lists[10];
static int n_lists, n_events, is_lost;
static struct Memory memories[1000];
static int n_memories;

static int fault(const char *name) {
    const char *wanted = getenv("FAKE_ZE");
    return wanted && !strcmp(wanted, name);
}
static int is(const void *description, uint32_t kind) {
    const struct Head *head = description;
    return head->kind == kind && !head->next;
}
static Result one(uint32_t *n, void **all, void *it) {
    if (all && *n) *all = it;
    *n = 1;
    return OK;
}

Result zeInit(uint32_t flags) { return fault("init") ? UNINITIALIZED : flags ? INVALID : OK; }
Result zeDriverGet(uint32_t *n, void **all) { return one(n, all, &driver); }
Result zeDriverGetProperties(void *of, struct DriverProperties *p) {
    p->version = 77;
    return of == &driver && is(p, 1) ? OK : INVALID;
}
Result zeDeviceGet(void *of, uint32_t *n, void **all) {
    if (of != &driver) return INVALID;
    if (fault("no-device")) return *n = 0, OK;
    return one(n, all, &device);
}
Result zeDeviceGetProperties(void *of, struct DeviceProperties *p) {
    if (of != &device || !is(p, DEVICE_PROPERTIES)) return INVALID;
    p->resolution = 50, p->bits[1] = 32;
    strcpy(p->name, "stand-in");
    return OK;
}
Result zeDeviceGetComputeProperties(void *of, struct ComputeProperties *p) {
    if (of != &device || !is(p, COMPUTE_PROPERTIES)) return INVALID;
    p->max_block = 1024;
    return OK;
}
Result zeContextCreate(void *of, struct Description *d, void **out) {
    *out = &context;
    return of == &driver && is(d, CONTEXT) ? OK : INVALID;
}
Result zeCommandListCreateImmediate(void *in, void *of, struct Description *d, void **out) {
    if (in != &context || of != &device || !is(d, QUEUE) || d->numbers[3] != 2) return INVALID;
    *out = lists + n_lists++;
    return OK;
}
static int list(void *at) { return (char *)at >= lists && (char *)at < lists + n_lists ? (int)((char *)at - lists) : -1; }

static Result make(size_t size, void **out, const char *kind) {
    if (!size || (fault("memory") && !strcmp(kind, "device"))) return OUT_OF_MEMORY;
    memories[n_memories++] = (struct Memory){*out = malloc(size), size, kind};
    return OK;
}
Result zeMemAllocDevice(void *in, struct Description *d, size_t size, size_t align, void *of, void **out) {
    return in == &context && of == &device && is(d, DEVICE_MEMORY) && align == 64 ? make(size, out, "device") : INVALID;
}
Result zeMemAllocHost(void *in, struct Description *d, size_t size, size_t align, void **out) {
    return in == &context && is(d, HOST_MEMORY) && align == 64 ? make(size, out, "host") : INVALID;
}
Result zeMemAllocShared(void *in, struct Description *d, struct Description *h, size_t size, size_t align, void *of, void **out) {
    return in == &context && of == &device && is(d, DEVICE_MEMORY) && is(h, HOST_MEMORY) && align == 64
               ? make(size, out, "shared") : INVALID;
}
static struct Memory *find(const void *at) {
    for (int i = 0; i < n_memories; i++)
        if ((char *)at >= memories[i].begin && (char *)at < memories[i].begin + memories[i].size) return memories + i;
    return NULL;
}
Result zeMemFree(void *in, void *at) {
    struct Memory *memory = find(at);
    if (in != &context || !memory || memory->begin != at) return INVALID;
    printf("free %s %zu\n", memory->kind, memory->size);
    memory->size = 0;
    return OK;
}
static Result happen(struct Event *event) {
    if (!event) return OK;
    if (event->has_happened) printf("happens twice\n");
    event->has_happened = 1;
    return OK;
}
Result zeCommandListAppendMemoryCopy(void *on, void *to, const void *from, size_t n, struct Event *event, uint32_t n_waits, void *waits) {
    if (list(on) < 0 || n_waits || waits || (!find(to) && !find(from))) return INVALID;
    memcpy(to, from, n);
    return happen(event);
}
Result zeCommandListAppendBarrier(void *on, struct Event *event, uint32_t n, struct Event **waits) {
    if (list(on) < 0) return INVALID;
    if (n) printf("queue %d follows: %s\n", list(on), (*waits)->has_happened ? "ok" : "deadlock");
    return happen(event);
}
Result zeModuleCreate(void *in, void *of, struct ModuleDescription *d, struct Module **out, char **log) {
    if (in != &context || of != &device || !is(d, MODULE) || d->flags || d->constants) return INVALID;
    if (d->format == 1) {
        if (d->size < 4 || memcmp(d->code, "GPU ", 4)) return INVALID;
    } else {
        if (fault("load")) return *log = strdup("error: no such instruction\n"), BUILD_FAILURE;
        if (d->format || d->size < 20 || *(uint32_t *)d->code != 0x07230203) return INVALID;
        printf("compile\n");
    }
    *out = malloc(sizeof **out);
    (*out)->size = d->size + (d->format ? 0 : 4);
    (*out)->code = malloc((*out)->size);
    memcpy((*out)->code, "GPU ", 4);
    memcpy((*out)->code + (d->format ? 0 : 4), d->code, d->size);
    return OK;
}
Result zeModuleBuildLogGetString(char *log, size_t *size, char *out) {
    if (out) memcpy(out, log, *size);
    *size = strlen(log) + 1;
    return OK;
}
Result zeModuleBuildLogDestroy(char *log) { free(log); return OK; }
Result zeModuleGetNativeBinary(struct Module *module, size_t *size, char *out) {
    if (out) memcpy(out, module->code, *size);
    *size = module->size;
    return OK;
}
Result zeKernelCreate(struct Module *module, struct KernelDescription *d, struct Kernel **out) {
    if (!is(d, KERNEL) || d->flags) return INVALID;
    // The names of SPIR-V's entry points are texts in its words.
    size_t n = strlen(d->name) + 1;
    for (size_t i = 0; i + n <= module->size; i++)
        if (!memcmp(module->code + i, d->name, n)) {
            *out = calloc(1, sizeof **out);
            snprintf((*out)->name, sizeof (*out)->name, "%s", d->name);
            return OK;
        }
    return NO_KERNEL;
}
Result zeKernelSetGroupSize(struct Kernel *k, uint32_t x, uint32_t y, uint32_t z) {
    k->block[0] = x, k->block[1] = y, k->block[2] = z;
    return OK;
}
Result zeKernelSetArgumentValue(struct Kernel *k, uint32_t i, size_t size, const void *value) {
    if (i >= 32 || size > 64) return INVALID;
    memcpy(k->args[i], value, size);
    k->sizes[i] = size;
    if (i >= k->n) k->n = i + 1;
    return OK;
}
Result zeKernelSetIndirectAccess(struct Kernel *k, uint32_t flags) { k->indirect = flags; return flags == 7 ? OK : INVALID; }
Result zeCommandListAppendLaunchKernel(void *on, struct Kernel *k, uint32_t *blocks, struct Event *event, uint32_t n, void *waits) {
    if (list(on) < 0 || n || waits || !k->indirect) return INVALID;
    printf("launch %s: %u %u %u blocks of %u %u %u:", k->name, blocks[0], blocks[1], blocks[2], k->block[0], k->block[1], k->block[2]);
    for (uint32_t i = 0; i < k->n; i++) {
        struct Memory *memory = k->sizes[i] == 8 ? find(*(void **)k->args[i]) : NULL;
        if (memory) printf(" %s + %td", memory->kind, *(char **)k->args[i] - memory->begin);
        else if (k->sizes[i] == 1) printf(" byte %d", k->args[i][0]);
        else if (k->sizes[i] == 4) printf(" %d", *(int *)k->args[i]);
        else printf(" %lld", *(long long *)k->args[i]);
    }
    printf("\n");
    if (fault("kernel")) return is_lost = 1, OK;
    return happen(event);
}
Result zeEventPoolCreate(void *in, struct Description *d, uint32_t n, void **devices, void **out) {
    *out = &pool;
    return in == &context && is(d, POOL) && d->numbers[0] == 5 && n == 1 && *devices == &device ? OK : INVALID;
}
Result zeEventCreate(void *in, struct Description *d, struct Event **out) {
    if (in != &pool || !is(d, EVENT) || (int)d->numbers[0] != n_events++) return INVALID;
    *out = calloc(1, sizeof **out);
    return OK;
}
Result zeEventHostSynchronize(struct Event *event, uint64_t timeout) {
    return is_lost ? LOST : event->has_happened && timeout == UINT64_MAX ? OK : NOT_READY;
}
Result zeEventHostReset(struct Event *event) { event->has_happened = 0; return OK; }
Result zeEventQueryStatus(struct Event *event) { return event->has_happened ? OK : NOT_READY; }
Result zeEventQueryKernelTimestamp(struct Event *event, uint64_t *times) {
    // The clock starts again in between.
    times[0] = 0xfffffff0u, times[1] = 4;
    return event->has_happened ? OK : NOT_READY;
}

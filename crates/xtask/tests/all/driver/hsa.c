// A stand-in for AMD's HSA library: the functions that the runtime calls. Device memory is the host's. Kernels do not run: a
// packet is printed as the device would get it. `FAKE_HSA` names a fault.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t Status;
typedef uint64_t Handle;
enum { OK = 0, BREAK = 1, ERROR = 0x1000, INVALID = 0x1001, OUT_OF_RESOURCES = 0x1008, FAULT = 0x2b };
enum { CPU = 1, GPU = 2, FINE = 10, KERNARG, COARSE };

struct Packet { uint16_t header, setup, block[3], none; uint32_t grid[3], private, group; uint64_t object, arguments, none2, signal; };
struct Queue { uint32_t kind, features; struct Packet *base; Handle doorbell; uint32_t size, none; uint64_t id, write, read;
               void (*failed)(Status, struct Queue *, void *); void *data; };
struct Memory { char *begin; size_t size; Handle pool; int is_seen; };
struct Code { const char *begin; size_t size; };
struct Kernel { struct Code *code; char name[100]; };

static struct Memory memories[1000];
static int n_memories, n_queues;
static struct Queue *queues[10];

static int fault(const char *name) {
    const char *wanted = getenv("FAKE_HSA");
    return wanted && !strcmp(wanted, name);
}

Status hsa_init(void) { return fault("init") ? OUT_OF_RESOURCES : OK; }
Status hsa_status_string(Status e, const char **text) {
    *text = e == OUT_OF_RESOURCES ? "the runtime failed to allocate the necessary resources"
            : e == INVALID        ? "one of the actual arguments does not meet a precondition"
            : e == FAULT          ? "a memory aperture violation"
                                  : "a generic error has occurred";
    return OK;
}
Status hsa_system_get_info(uint32_t what, uint64_t *value) { *value = 100000000; return what == 3 ? OK : INVALID; }
Status hsa_iterate_agents(Status (*found)(Handle, void *), void *data) {
    Status s = found(CPU, data);
    return s || fault("no-device") ? s : found(GPU, data);
}
Status hsa_agent_get_info(Handle agent, uint32_t what, void *value) {
    switch (what) {
    case 0: memset(value, 0, 64); strcpy(value, agent == GPU ? "gfx90a" : "a CPU"); return OK;
    case 0xa009: memset(value, 0, 64); strcpy(value, "stand-in"); return OK;
    case 8: *(uint32_t *)value = 1024; return OK;
    case 17: *(uint32_t *)value = agent == GPU; return OK;
    default: return INVALID;
    }
}
Status hsa_amd_agent_iterate_memory_pools(Handle agent, Status (*found)(Handle, void *), void *data) {
    if (agent == GPU) return found(COARSE, data);
    Status s = found(FINE, data);
    return s ? s : found(KERNARG, data);
}
Status hsa_amd_memory_pool_get_info(Handle pool, uint32_t what, void *value) {
    switch (what) {
    case 0: *(uint32_t *)value = 0; return OK;
    case 1: *(uint32_t *)value = pool == FINE ? 2 : pool == KERNARG ? 3 : 4; return OK;
    case 5: *(char *)value = 1; return OK;
    default: return INVALID;
    }
}
static struct Memory *find(const void *at) {
    for (int i = 0; i < n_memories; i++)
        if ((char *)at >= memories[i].begin && (char *)at < memories[i].begin + memories[i].size) return memories + i;
    return NULL;
}
Status hsa_amd_memory_pool_allocate(Handle pool, size_t size, uint32_t flags, void **out) {
    if (flags || !size) return INVALID;
    if (fault("memory") && pool == COARSE) return OUT_OF_RESOURCES;
    memories[n_memories++] = (struct Memory){*out = malloc(size), size, pool, 0};
    return OK;
}
Status hsa_amd_memory_pool_free(void *at) {
    struct Memory *memory = find(at);
    if (!memory || memory->begin != at) return INVALID;
    printf("free %s %zu\n", memory->pool == COARSE ? "device" : "host", memory->size);
    memory->size = 0;
    return OK;
}
Status hsa_amd_agents_allow_access(uint32_t n, const Handle *agents, const uint32_t *flags, const void *at) {
    struct Memory *memory = find(at);
    if (n != 1 || *agents != GPU || flags || !memory) return INVALID;
    memory->is_seen = 1;
    return OK;
}
Status hsa_memory_copy(void *to, const void *from, size_t n) {
    // Both have to be the library's.
    if (!find(to) || !find(from)) return INVALID;
    memcpy(to, from, n);
    return OK;
}
Status hsa_queue_create(Handle agent, uint32_t size, uint32_t kind, void (*failed)(Status, struct Queue *, void *), void *data,
                        uint32_t private, uint32_t group, struct Queue **out) {
    if (agent != GPU || size & (size - 1) || kind > 1 || private != UINT32_MAX || group != UINT32_MAX) return INVALID;
    struct Queue *queue = *out = calloc(1, sizeof *queue);
    queue->base = calloc(size, sizeof *queue->base);
    for (uint32_t i = 0; i < size; i++) queue->base[i].header = 1;
    queue->size = size, queue->id = n_queues, queue->failed = failed, queue->data = data;
    queue->doorbell = (Handle)&queue->doorbell;
    queues[n_queues++] = queue;
    return OK;
}
uint64_t hsa_queue_add_write_index_relaxed(struct Queue *queue, uint64_t n) { queue->write += n; return queue->write - n; }
uint64_t hsa_queue_load_read_index_scacquire(struct Queue *queue) { return queue->read; }

Status hsa_signal_create(int64_t value, uint32_t n, const Handle *consumers, Handle *out) {
    if (n || consumers) return INVALID;
    int64_t *signal = malloc(8);
    *signal = value;
    *out = (Handle)signal;
    return OK;
}
int64_t hsa_signal_load_scacquire(Handle signal) { return *(int64_t *)signal; }
int64_t hsa_signal_wait_scacquire(Handle signal, uint32_t condition, int64_t value, uint64_t patience, uint32_t state) {
    return condition == 2 && value == 1 && patience && !state ? *(int64_t *)signal : 1;
}

static void launch(struct Packet *p) {
    struct Kernel *kernel = (struct Kernel *)p->object;
    printf("launch %s: %u %u %u items in blocks of %u %u %u, %u bytes shared:", kernel->name, p->grid[0], p->grid[1], p->grid[2],
           p->block[0], p->block[1], p->block[2], p->group);
    struct Memory *arguments = find((void *)p->arguments);
    if (!arguments || !arguments->is_seen) { printf(" no arguments\n"); return; }
    // The test says what they are: p address, i 32 bits, l 64 bits, b byte.
    const char *at = (const char *)p->arguments;
    for (const char *what = getenv("FAKE_HSA_ARGUMENTS"); what && *what; what++) {
        size_t size = *what == 'i' ? 4 : *what == 'b' ? 1 : 8;
        at = (const char *)(((uintptr_t)at + size - 1) / size * size);
        struct Memory *memory = *what == 'p' ? find(*(void **)at) : NULL;
        if (memory) printf(" %s + %td", memory->pool == COARSE ? "device" : "host", *(char **)at - memory->begin);
        else printf(" %lld", *what == 'i' ? *(int *)at : *what == 'b' ? *(unsigned char *)at : *(long long *)at);
        at += size;
    }
    printf("\n");
}
void hsa_signal_store_screlease(Handle signal, int64_t value) {
    struct Queue *queue = NULL;
    for (int i = 0; i < n_queues; i++)
        if (queues[i]->doorbell == signal) queue = queues[i];
    if (!queue) { *(int64_t *)signal = value; return; }
    for (; queue->read <= (uint64_t)value; queue->read++) {
        struct Packet *p = queue->base + queue->read % queue->size;
        int kind = p->header & 255;
        if (p->header >> 8 != (1 | 2 << 1 | 2 << 3)) printf("header %x\n", p->header);
        if (kind == 2 && p->setup == 3) launch(p);
        else if (kind == 3) {
            Handle dependence = *(Handle *)((char *)p + 8);
            printf("barrier %s\n", !dependence ? "alone" : *(int64_t *)dependence ? "deadlock" : "after another");
        } else printf("packet %d\n", kind);
        if (kind == 2 && fault("kernel")) { queue->failed(FAULT, queue, queue->data); return; }
        *(int64_t *)p->signal = 0;
        p->header = 1;
    }
}

Status hsa_code_object_reader_create_from_memory(const char *code, size_t size, struct Code **out) {
    if (size < 4 || memcmp(code, "\x7f" "ELF", 4)) return INVALID;
    *out = malloc(sizeof **out);
    **out = (struct Code){code, size};
    return OK;
}
Status hsa_executable_create_alt(uint32_t profile, uint32_t rounding, const char *options, struct Code **out) {
    if (profile != 1 || rounding || options) return INVALID;
    *out = calloc(1, sizeof **out);
    return OK;
}
Status hsa_executable_load_agent_code_object(struct Code *to, Handle agent, struct Code *from, const char *options, Handle *loaded) {
    if (agent != GPU || options || !loaded || fault("load")) return INVALID;
    *to = *from;
    return OK;
}
Status hsa_executable_freeze(struct Code *code, const char *options) { return code->begin && !options ? OK : INVALID; }
Status hsa_executable_get_symbol_by_name(struct Code *code, const char *name, const Handle *agent, struct Kernel **out) {
    if (*agent != GPU || !memmem(code->begin, code->size, name, strlen(name) + 1)) return INVALID;
    *out = malloc(sizeof **out);
    (*out)->code = code;
    snprintf((*out)->name, sizeof (*out)->name, "%s", name);
    return OK;
}
// A number in the notes of a code object, which are MessagePack.
static uint32_t note(struct Code *code, const char *name) {
    const unsigned char *at = memmem(code->begin, code->size, name, strlen(name));
    if (!at) return 0;
    at += strlen(name);
    return *at < 128 ? *at : *at == 0xcc ? at[1] : *at == 0xcd ? at[1] << 8 | at[2] : 0;
}
Status hsa_executable_symbol_get_info(struct Kernel *kernel, uint32_t what, void *value) {
    switch (what) {
    case 22: *(uint64_t *)value = (uint64_t)kernel; return OK;
    case 11: *(uint32_t *)value = note(kernel->code, ".kernarg_segment_size"); return OK;
    case 13: *(uint32_t *)value = note(kernel->code, ".group_segment_fixed_size"); return OK;
    case 14: *(uint32_t *)value = note(kernel->code, ".private_segment_fixed_size"); return OK;
    default: return INVALID;
    }
}
Status hsa_amd_profiling_set_profiler_enabled(struct Queue *queue, int on) { return queue && on ? OK : INVALID; }
Status hsa_amd_profiling_get_dispatch_time(Handle agent, Handle signal, uint64_t *times) {
    times[0] = 1000, times[1] = 1100;
    return agent == GPU && signal ? OK : INVALID;
}

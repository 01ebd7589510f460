// A stand-in for the loader of Vulkan: the functions that the runtime calls. Memory is the host's. Kernels do not run: a launch prints what
// the driver would get. `FAKE_VULKAN` names a fault, `FAKE_VULKAN_QUEUES` the number of queues.
//
// What is sent off runs when the host waits, as late as a driver may: from the last queue to the first, the next of a queue as soon as
// what it waits for has ended. So the order of what is printed shows what waits for what.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Result;
typedef uint64_t Handle;
enum { OK = 0, NOT_READY = 1, OUT_OF_HOST = -1, OUT_OF_MEMORY = -2, LOST = -4, INCOMPATIBLE = -9, INVALID = -13 };
enum { FEATURES_11 = 49, FEATURES_12 = 51, FEATURES_13 = 53, COUNTS = 1000207003 };
enum { MAX_QUEUES = 8, FAMILY = 1 };

struct Head { uint32_t kind; struct Head *next; };
struct Limits { _Alignas(8) char images[216]; uint32_t shared, blocks[3], block, extents[3]; char viewports[176]; float period; char rest[76]; };
struct Properties { uint32_t version, driver, vendor, id, kind; char name[256], uuid[16]; struct Limits limits; uint32_t sparse[5]; };
struct Properties2 { struct Head head; struct Properties properties; };
struct Features2 { struct Head head; uint32_t features[55]; };
struct More { struct Head head; uint32_t features[47]; };
struct Family { uint32_t flags, count, clock, copies[3]; };
struct MemoryTypes { uint32_t n; struct { uint32_t flags, heap; } types[32]; uint32_t heaps; struct { uint64_t size; uint32_t flags; } heap[16]; };
struct QueueInfo { struct Head head; uint32_t flags, family, count; const float *priorities; };
struct DeviceInfo { struct Head head; uint32_t flags, n; const struct QueueInfo *queues; };
struct PoolInfo { struct Head head; uint32_t flags, kind, n; };
struct BufferInfo { struct Head head; uint32_t flags; uint64_t size; };
struct MemoryInfo { struct Head head; uint64_t size; uint32_t type; };
struct Needs { uint64_t size, align; uint32_t types; };
struct OfBuffer { struct Head head; Handle buffer; };
struct ModuleInfo { struct Head head; uint32_t flags; size_t size; const uint32_t *code; };
struct CacheInfo { struct Head head; uint32_t flags; size_t size; const char *data; };
struct Special { uint32_t n; const void *entries; size_t size; const uint32_t *data; };
struct Stage { struct Head head; uint32_t flags, stage; Handle module; const char *name; const struct Special *special; };
struct PipelineInfo { struct Head head; uint32_t flags; struct Stage stage; Handle layout, base; int32_t index; };
struct Counts { struct Head head; uint32_t n_waits; const uint64_t *waits; uint32_t n_ends; const uint64_t *ends; };
struct Submit {
    struct Head head; uint32_t n_waits; const Handle *waits; const uint32_t *stages; uint32_t n; void **commands;
    uint32_t n_ends; const Handle *ends;
};
struct Wait { struct Head head; uint32_t flags, n; const Handle *all; const uint64_t *values; };
struct Region { uint64_t from, to, size; };

struct Buffer { char *begin; size_t size; struct Memory *memory; };
struct Memory { char *begin; size_t size; uint32_t type; };
struct Times { uint32_t n; uint64_t at[1024]; char is_there[1024]; };
struct Pipeline { char name[100]; uint32_t block[3]; };
struct Semaphore { uint64_t value; };
enum Kind { DISPATCH, COPY, RESET, TIME };
struct Command {
    enum Kind kind; struct Pipeline *pipeline; uint64_t pushed[16]; uint32_t size, blocks[3];
    char *from, *to; size_t n; struct Times *times; uint32_t at, count;
};
struct Commands { struct Command all[16]; int n, is_over; struct Pipeline *pipeline; uint64_t pushed[16]; uint32_t size; };
struct Sent { struct Commands *commands; int n_waits; struct Semaphore *waits[8], *ends; uint64_t values[8], end; };
struct Queue { struct Sent all[1000]; int first, n; };

static char instance, physical, device;
static struct Queue queues[MAX_QUEUES];
static struct Memory *memories[1000];
static int n_memories, n_queues, is_lost;
static uint64_t now = 0xffffffe0;

static int fault(const char *name) {
    const char *wanted = getenv("FAKE_VULKAN");
    return wanted && !strcmp(wanted, name);
}
static int wanted_queues(void) {
    const char *wanted = getenv("FAKE_VULKAN_QUEUES");
    return wanted ? atoi(wanted) : 3;
}

static Result create_instance(void *info, void *how, void **out) {
    *out = &instance;
    return fault("init") ? INCOMPATIBLE : OK;
}
static Result devices(void *of, uint32_t *n, void **all) {
    if (all && *n) *all = &physical;
    *n = !fault("no-device");
    return OK;
}
static void properties(void *of, struct Properties *p) {
    memset(p, 0, sizeof *p);
    p->version = 1 << 22 | 3 << 12;
    p->kind = 2;
    strcpy(p->name, "stand-in");
    struct Limits *l = &p->limits;
    l->shared = 32768, l->block = 1024, l->period = 50;
    for (int i = 0; i < 3; i++) l->blocks[i] = 65535, l->extents[i] = 1024;
}
static void properties2(void *of, struct Properties2 *p) { properties(of, &p->properties); }
static void features2(void *of, struct Features2 *f) {
    for (int i = 0; i < 55; i++) f->features[i] = 1;
    for (struct Head *head = f->head.next; head; head = head->next) {
        int n = head->kind == FEATURES_11 ? 12 : head->kind == FEATURES_12 ? 47 : head->kind == FEATURES_13 ? 15 : 0;
        for (int i = 0; i < n; i++) ((struct More *)head)->features[i] = 1;
    }
}
// A family for copies and one queue for pictures come before the one with the most queues for kernels.
static void families(void *of, uint32_t *n, struct Family *all) {
    struct Family found[] = {{4, 2, 32}, {2, wanted_queues(), 32}, {3, 1, 0}};
    *n = 3;
    if (all) memcpy(all, found, sizeof found);
}
static void memory_types(void *of, struct MemoryTypes *m) {
    memset(m, 0, sizeof *m);
    m->n = 2, m->types[0].flags = 1, m->types[1].flags = 2 | 4 | 8;
    m->heaps = 1, m->heap[0].size = 1 << 30;
}
static Result create_device(void *of, struct DeviceInfo *info, void *how, void **out) {
    if (info->n != 1 || info->queues->family != FAMILY) return INVALID;
    n_queues = info->queues->count;
    printf("device with %d queues\n", n_queues);
    *out = &device;
    return n_queues > wanted_queues() || n_queues > MAX_QUEUES ? INVALID : OK;
}
static void device_queue(void *of, uint32_t family, uint32_t i, struct Queue **out) { *out = family == FAMILY ? queues + i : NULL; }

static Result create_any(void *of, void *info, void *how, Handle *out) { *out = 1; return OK; }
static void destroy(void *of, Handle it, void *how) {}
static Result create_times(void *of, struct PoolInfo *info, void *how, struct Times **out) {
    *out = calloc(1, sizeof **out);
    (*out)->n = info->n;
    return info->kind == 2 && info->n <= 1024 ? OK : INVALID;
}
static Result create_semaphore(void *of, void *info, void *how, struct Semaphore **out) { *out = calloc(1, sizeof **out); return OK; }
static Result create_buffer(void *of, struct BufferInfo *info, void *how, struct Buffer **out) {
    *out = calloc(1, sizeof **out);
    (*out)->size = info->size;
    return OK;
}
static void buffer_needs(void *of, struct Buffer *b, struct Needs *needs) { *needs = (struct Needs){b->size, 256, 3}; }
static Result allocate(void *of, struct MemoryInfo *info, void *how, struct Memory **out) {
    if (fault("memory")) return OUT_OF_MEMORY;
    struct Memory *m = memories[n_memories++] = *out = malloc(sizeof *m);
    *m = (struct Memory){malloc(info->size), info->size, info->type};
    return OK;
}
static Result bind(void *of, struct Buffer *b, struct Memory *m, uint64_t at) {
    b->begin = m->begin + at, b->memory = m;
    return OK;
}
static Result map(void *of, struct Memory *m, uint64_t at, uint64_t size, uint32_t flags, char **out) {
    *out = m->begin + at;
    return m->type == 1 ? OK : INVALID;
}
static uint64_t address(void *of, struct OfBuffer *info) { return (uint64_t)((struct Buffer *)info->buffer)->begin; }
static struct Memory *find(const void *at) {
    for (int i = 0; i < n_memories; i++)
        if ((char *)at >= memories[i]->begin && (char *)at < memories[i]->begin + memories[i]->size) return memories[i];
    return NULL;
}

static Result create_module(void *of, struct ModuleInfo *info, void *how, Handle *out) {
    *out = 1;
    return info->size >= 20 && *info->code == 0x07230203 ? OK : INVALID;
}
static Result create_cache(void *of, struct CacheInfo *info, void *how, Handle *out) {
    *out = info->size == 4 && !memcmp(info->data, "GPU ", 4) ? 2 : 1;
    return OK;
}
static Result cache_data(void *of, Handle cache, size_t *size, char *out) {
    if (out) memcpy(out, "GPU ", 4);
    *size = 4;
    return OK;
}
static Result create_pipelines(void *of, Handle cache, uint32_t n, struct PipelineInfo *info, void *how, struct Pipeline **out) {
    if (fault("load")) return OUT_OF_HOST;
    if (cache != 2) printf("compile\n");
    *out = calloc(1, sizeof **out);
    snprintf((*out)->name, sizeof (*out)->name, "%s", info->stage.name);
    memcpy((*out)->block, info->stage.special->data, 12);
    return OK;
}

static Result allocate_commands(void *of, void *info, struct Commands **out) { *out = calloc(1, sizeof **out); return OK; }
static void free_commands(void *of, Handle pool, uint32_t n, struct Commands **all) {
    for (uint32_t i = 0; i < n; i++) {
        if (!all[i]->is_over && !is_lost) printf("wrong: commands are freed before they have ended\n");
        free(all[i]);
    }
}
static Result begin(struct Commands *c, void *info) { return OK; }
static Result end(struct Commands *c) { return OK; }
static void barrier(struct Commands *c) {}
static struct Command *add(struct Commands *c, enum Kind kind) { return c->all[c->n].kind = kind, &c->all[c->n++]; }
static void bind_pipeline(struct Commands *c, uint32_t kind, struct Pipeline *pipeline) { c->pipeline = pipeline; }
static void push(struct Commands *c, Handle layout, uint32_t stages, uint32_t at, uint32_t size, const void *values) {
    memcpy((char *)c->pushed + at, values, c->size = size);
}
static void dispatch(struct Commands *c, uint32_t x, uint32_t y, uint32_t z) {
    struct Command *it = add(c, DISPATCH);
    it->pipeline = c->pipeline, it->size = c->size;
    memcpy(it->pushed, c->pushed, sizeof c->pushed);
    it->blocks[0] = x, it->blocks[1] = y, it->blocks[2] = z;
}
static void reset_times(struct Commands *c, struct Times *times, uint32_t at, uint32_t n) {
    struct Command *it = add(c, RESET);
    it->times = times, it->at = at, it->count = n;
}
static void write_time(struct Commands *c, uint32_t stage, struct Times *times, uint32_t at) {
    struct Command *it = add(c, TIME);
    it->times = times, it->at = at;
}
static void copy(struct Commands *c, struct Buffer *from, struct Buffer *to, uint32_t n, struct Region *r) {
    struct Command *it = add(c, COPY);
    it->from = from->begin + r->from, it->to = to->begin + r->to, it->n = r->size;
}

static Result submit(struct Queue *q, uint32_t n, struct Submit *info, Handle fence) {
    struct Counts *counts = (struct Counts *)info->head.next;
    if (n != 1 || info->n != 1 || info->n_ends != 1 || !counts || counts->head.kind != COUNTS || counts->n_waits != info->n_waits
        || info->n_waits > 8)
        return INVALID;
    struct Sent *sent = &q->all[q->n++];
    *sent = (struct Sent){*info->commands, info->n_waits, {0}, (void *)*info->ends, {0}, *counts->ends};
    for (uint32_t i = 0; i < info->n_waits; i++) sent->waits[i] = (void *)info->waits[i], sent->values[i] = counts->waits[i];
    return OK;
}
static void run(struct Command *c, int queue) {
    if (c->kind == COPY) memcpy(c->to, c->from, c->n);
    if (c->kind == RESET) memset(c->times->is_there + c->at, 0, c->count);
    if (c->kind == TIME) {
        if (c->at >= c->times->n || c->times->is_there[c->at]++) printf("wrong: a time is written twice\n");
        c->times->at[c->at] = (now += 20) & 0xffffffff;
    }
    if (c->kind != DISPATCH) return;
    uint32_t *b = c->pipeline->block;
    printf("launch %s: %u %u %u blocks of %u %u %u:", c->pipeline->name, c->blocks[0], c->blocks[1], c->blocks[2], b[0], b[1], b[2]);
    // Behind the arguments are the first block and the number of blocks.
    for (uint32_t i = 0; i < c->size / 8 - 1; i++) {
        struct Memory *m = find((void *)c->pushed[i]);
        if (m) printf(" %s + %td", m->type ? "host" : "device", (char *)c->pushed[i] - m->begin);
        else printf(" %lld", (long long)c->pushed[i]);
    }
    printf(", queue %d\n", queue);
    if (fault("kernel")) is_lost = 1;
}
// Runs the next commands of the last queue that can go on; whether there is one.
static int step(void) {
    for (int i = n_queues - 1; i >= 0; i--) {
        struct Queue *q = queues + i;
        if (q->first == q->n) continue;
        struct Sent *sent = q->all + q->first;
        int can = 1;
        for (int w = 0; w < sent->n_waits; w++) can &= sent->waits[w]->value >= sent->values[w];
        if (!can) continue;
        for (int c = 0; c < sent->commands->n; c++) run(sent->commands->all + c, i);
        sent->commands->is_over = 1;
        if (sent->ends->value >= sent->end) printf("wrong: an end comes twice\n");
        sent->ends->value = sent->end;
        q->first++;
        return 1;
    }
    return 0;
}
static Result wait(void *of, struct Wait *info, uint64_t timeout) {
    for (uint32_t i = 0; i < info->n; i++) {
        struct Semaphore *s = (void *)info->all[i];
        while (!is_lost && s->value < info->values[i])
            if (!step()) return printf("deadlock\n"), LOST;
    }
    return is_lost ? LOST : OK;
}
// Time passes between two questions.
static Result counter(void *of, struct Semaphore *s, uint64_t *out) {
    *out = s->value;
    step();
    return OK;
}
static Result times(void *of, struct Times *t, uint32_t first, uint32_t n, size_t size, uint64_t *out, uint64_t stride, uint32_t flags) {
    Result result = OK;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t *at = (uint64_t *)((char *)out + i * stride);
        if (t->is_there[first + i]) at[0] = t->at[first + i];
        else result = NOT_READY;
        if (flags & 4) at[1] = t->is_there[first + i];
    }
    return result;
}

#define F(name, function) {"vk" name, (void *)function}
static struct { const char *name; void *function; } functions[] = {
    F("CreateInstance", create_instance), F("EnumeratePhysicalDevices", devices), F("GetPhysicalDeviceProperties", properties),
    F("GetPhysicalDeviceProperties2", properties2), F("GetPhysicalDeviceFeatures2", features2),
    F("GetPhysicalDeviceQueueFamilyProperties", families), F("GetPhysicalDeviceMemoryProperties", memory_types),
    F("CreateDevice", create_device), F("GetDeviceQueue", device_queue), F("CreateCommandPool", create_any),
    F("CreatePipelineLayout", create_any), F("CreateQueryPool", create_times), F("CreateSemaphore", create_semaphore),
    F("CreateBuffer", create_buffer), F("GetBufferMemoryRequirements", buffer_needs), F("AllocateMemory", allocate),
    F("BindBufferMemory", bind), F("MapMemory", map), F("GetBufferDeviceAddress", address), F("DestroyBuffer", destroy),
    F("FreeMemory", destroy), F("CreateShaderModule", create_module), F("CreatePipelineCache", create_cache),
    F("GetPipelineCacheData", cache_data), F("DestroyPipelineCache", destroy), F("CreateComputePipelines", create_pipelines),
    F("AllocateCommandBuffers", allocate_commands), F("FreeCommandBuffers", free_commands), F("BeginCommandBuffer", begin),
    F("EndCommandBuffer", end), F("CmdPipelineBarrier", barrier), F("CmdBindPipeline", bind_pipeline), F("CmdPushConstants", push),
    F("CmdDispatch", dispatch), F("CmdResetQueryPool", reset_times), F("CmdWriteTimestamp", write_time), F("CmdCopyBuffer", copy),
    F("QueueSubmit", submit), F("WaitSemaphores", wait), F("GetSemaphoreCounterValue", counter), F("GetQueryPoolResults", times),
};
static void *lookup(void *of, const char *name) {
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (void *)lookup;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) return functions[i].function;
    return NULL;
}
void *vkGetInstanceProcAddr(void *of, const char *name) { return lookup(of, name); }

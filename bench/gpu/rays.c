// Measures the kernels of rays.impala beside those of rays.cu on a GPU, in one process, on the same tree, triangles and rays in the same
// memory. bench/gpu.sh builds and runs it, with the machine code of rays.cu, the file `rays.fatbin`, beside this program.
//
//   rays [BITS [SCALE]]    for 2^BITS rays of each kind rows of a table: millions of rays in a second by medians of interleaved runs,
//                          and how many hits of ours and theirs are others than the CPU's
//
// The scene is made here: a hall with columns and rough spheres, of a million triangles. Rays of four kinds: from a camera; from what
// these hit into directions of a diffuse surface, short ones and long ones; between random points.
#include "driver.h"
#include <math.h>

typedef struct { float org[3], tmin, dir[3], tmax; } Ray;
typedef struct { float t, u, v; int prim; } Hit;

// Memory of the device, and kernels, of rays.impala.
void *ours_alloc(long long);
void ours_wait(void);
void ours_make(int, const float *, const int *, void *);
void ours_info(const void *, int *, const float **, const float **);
void ours_small_info(const void *, int *, const float **, const float **);
void ours_trace_on_cpu(const void *, long long, const Ray *, Hit *);
#define KERNELS(F)                                                                                                                \
    F(closest) F(closest_ahead) F(closest_persistent) F(closest_small) F(any) F(any_ahead) F(any_persistent) F(any_small)
typedef void Kernel(const float *, const float *, int, int, const float *, float *, int *);
#define OURS(name) Kernel ours_##name;
KERNELS(OURS)

// The scene.

static float *vertices;
static int *indices, n_vertices, n_triangles;

// Numbers that look random, from 0 to before 1.
static uint64_t state = 88172645463325252ull;
static float any_number(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 40) * 0x1p-24f;
}

typedef void Surface(float u, float v, const float *p, float *at);
static void plane(float u, float v, const float *p, float *at) {
    for (int k = 0; k < 3; k++) at[k] = p[k] + u * p[3 + k] + v * p[6 + k];
}
static void column(float u, float v, const float *p, float *at) {
    float a = 6.2831853f * u, r = p[3] * (1 + 0.06f * cosf(16 * a) + 0.3f * powf(fabsf(2 * v - 1), 9));
    at[0] = p[0] + r * cosf(a), at[1] = p[1] + v * p[4], at[2] = p[2] + r * sinf(a);
}
static void sphere(float u, float v, const float *p, float *at) {
    float a = 6.2831853f * u, b = 3.1415927f * v;
    float r = p[3] * (1 + 0.08f * sinf(9 * a + p[0]) * sinf(11 * b) + 0.03f * sinf(31 * a) * sinf(29 * b + p[2]));
    at[0] = p[0] + r * sinf(b) * cosf(a), at[1] = p[1] + r * cosf(b), at[2] = p[2] + r * sinf(b) * sinf(a);
}

// A surface of nu by nv squares, of two triangles each.
static void add(Surface *f, const float *p, int nu, int nv) {
    int first = n_vertices;
    for (int j = 0; j <= nv; j++)
        for (int i = 0; i <= nu; i++) f((float)i / nu, (float)j / nv, p, vertices + 3 * n_vertices++);
    for (int j = 0; j < nv; j++)
        for (int i = 0; i < nu; i++) {
            int a = first + j * (nu + 1) + i, c = a + nu + 1, corners[6] = {a, a + 1, c, a + 1, c + 1, c};
            memcpy(indices + 3 * n_triangles, corners, sizeof corners);
            n_triangles += 2;
        }
}

static void make_scene(int scale) {
    vertices = malloc(sizeof(float) * 3 * 2000000);
    indices = malloc(sizeof(int) * 3 * 3000000);
    static const float walls[6][9] = {
        {-20, 0, -10, 40, 0, 0, 0, 0, 20}, {-20, 12, -10, 40, 0, 0, 0, 0, 20}, {-20, 0, -10, 40, 0, 0, 0, 12, 0},
        {-20, 0, 10, 40, 0, 0, 0, 12, 0}, {-20, 0, -10, 0, 0, 20, 0, 12, 0}, {20, 0, -10, 0, 0, 20, 0, 12, 0},
    };
    for (int i = 0; i < 6; i++) add(plane, walls[i], 40, 24);
    for (int side = -1; side <= 1; side += 2)
        for (int i = 0; i < 12; i++) {
            float p[5] = {-18.5f + i * 3.36f, 0, side * 5.8f, 0.45f, 12};
            add(column, p, 16 * scale, 24 * scale);
        }
    for (int i = 0; i < 60; i++) {
        float p[4] = {-18 + 36 * any_number(), 0.3f + 0.4f * any_number(), -4.5f + 9 * any_number(), 0.25f + 0.5f * any_number()};
        add(sphere, p, 16 * scale, 12 * scale);
    }
}

// Rays.

static void unit(float *v) {
    float scale = 1 / sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int k = 0; k < 3; k++) v[k] *= scale;
}

// A camera's rays, by squares of 8 by 8, so that neighbors in memory are neighbors in the picture.
static void camera_rays(int bits, Ray *rays) {
    int w = 1 << (bits + 1) / 2, h = 1 << bits / 2;
    const float eye[3] = {-17, 3.2f, 0.7f}, forward[3] = {0.9975f, 0.0369f, -0.0554f};
    float right[3] = {-forward[2], 0, forward[0]}, up[3];
    unit(right);
    for (int k = 0; k < 3; k++)
        up[k] = right[(k + 1) % 3] * forward[(k + 2) % 3] - right[(k + 2) % 3] * forward[(k + 1) % 3];
    for (int i = 0; i < w * h; i++) {
        int tile = i / 64, x = tile % (w / 8) * 8 + i % 8, y = tile / (w / 8) * 8 + i / 8 % 8;
        float a = (x + 0.5f) / w * 2 - 1, b = ((y + 0.5f) / h * 2 - 1) * h / w;
        Ray *r = &rays[i];
        for (int k = 0; k < 3; k++) r->org[k] = eye[k], r->dir[k] = forward[k] + 0.9f * (a * right[k] + b * up[k]);
        unit(r->dir);
        r->tmin = 0, r->tmax = INFINITY;
    }
}

// Rays from what others hit, in directions around the normal, as likely as the cosine.
static void reflected_rays(int n, const Ray *from, const Hit *hits, float length, Ray *rays) {
    for (int i = 0; i < n; i++) {
        Ray *r = &rays[i];
        if (hits[i].prim < 0) {
            *r = from[i];
            continue;
        }
        float corner[3][3], a[3], b[3], normal[3], d[3];
        for (int k = 0; k < 3; k++) memcpy(corner[k], vertices + 3 * indices[3 * hits[i].prim + k], sizeof corner[k]);
        for (int k = 0; k < 3; k++) a[k] = corner[1][k] - corner[0][k], b[k] = corner[2][k] - corner[0][k];
        float facing = 0;
        for (int k = 0; k < 3; k++) {
            normal[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
            facing += normal[k] * from[i].dir[k];
        }
        unit(normal);
        do for (int k = 0; k < 3; k++) d[k] = 2 * any_number() - 1;
        while (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > 1);
        unit(d);
        for (int k = 0; k < 3; k++) {
            float side = facing > 0 ? -normal[k] : normal[k];
            r->org[k] = from[i].org[k] + from[i].dir[k] * hits[i].t + 1e-3f * side;
            r->dir[k] = d[k] + 1.001f * side;
        }
        unit(r->dir);
        r->tmin = 0, r->tmax = length;
    }
}

static void random_rays(int n, Ray *rays) {
    for (int i = 0; i < n; i++) {
        Ray *r = &rays[i];
        for (int k = 0; k < 3; k++) {
            const float low[3] = {-20, 0, -10}, size[3] = {40, 12, 20};
            r->org[k] = low[k] + size[k] * any_number();
            r->dir[k] = low[k] + size[k] * any_number() - r->org[k];
        }
        unit(r->dir);
        r->tmin = 0, r->tmax = INFINITY;
    }
}

// Measuring.

enum { RUNS = 9, LAUNCHES = 8, ITEMS = 132 * 1536 };
static const char *self;
static _Alignas(64) char scene[4096];
static const float *nodes, *packets;
static float *rays, *hits;
static int *next, root, n;

static void launch(Kernel *ours, void *theirs, void *reset, int is_persistent) {
    if (ours) {
        ours(nodes, packets, root, n, rays, hits, next);
        return;
    }
    void *args[] = {&nodes, &packets, &root, &n, &rays, &hits, &next}, *reset_args[] = {&next};
    if (is_persistent) must("cuLaunchKernel", cuLaunchKernel(reset, 1, 1, 1, 1, 1, 1, 0, stream, reset_args, NULL));
    unsigned blocks = ((is_persistent ? ITEMS : n) + 127) / 128;
    must("cuLaunchKernel", cuLaunchKernel(theirs, blocks, 1, 1, 128, 1, 1, 0, stream, args, NULL));
}

// The hits that differ: other triangles, but for those at the same distance; if any do, whether there is one.
static int different(const Hit *a, const Hit *b, int is_any) {
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int same = (a[i].prim < 0) == (b[i].prim < 0);
        if (same && !is_any && a[i].prim != b[i].prim) same = fabsf(a[i].t - b[i].t) <= 1e-4f * fabsf(b[i].t);
        wrong += !same;
    }
    return wrong;
}

static const struct { const char *name; Kernel *ours; } kernels[] = {
#define ROW(name) {#name, ours_##name},
    KERNELS(ROW)
};

// A row of the table: ours, theirs of the same name, if there is one.
static int measure(const char *kind, int k, const Hit *right, Hit *found) {
    const char *name = kernels[k].name;
    (strstr(name, "small") ? ours_small_info : ours_info)(scene, &root, &nodes, &packets);
    int is_any = !strncmp(name, "any", 3), is_persistent = strstr(name, "persistent") != NULL;
    char theirs_name[64];
    snprintf(theirs_name, sizeof theirs_name, "theirs_%s", name);
    void *theirs = load_kernel(self, "rays.fatbin", theirs_name), *reset = load_kernel(self, "rays.fatbin", "theirs_reset");
    int wrong[2] = {0, 0};
    double times[2][RUNS], median[2] = {0, 0};
    for (int run = -1; run < RUNS; run++)
        for (int who = 0; who < 2; who++) {
            double start = now();
            for (int i = 0; i < LAUNCHES; i++) launch(who ? NULL : kernels[k].ours, theirs, reset, is_persistent);
            if (who) must("cuStreamSynchronize", cuStreamSynchronize(stream)); else ours_wait();
            if (run >= 0) {
                times[who][run] = (now() - start) / LAUNCHES;
                continue;
            }
            must("cuMemcpyDtoH", cuMemcpyDtoH_v2(found, (uint64_t)hits, sizeof(Hit) * n));
            wrong[who] = different(found, right, is_any);
        }
    for (int who = 0; who < 2; who++) {
        qsort(times[who], RUNS, sizeof(double), by_value);
        median[who] = times[who][RUNS / 2];
    }
    int limit = n / 10000, is_wrong = wrong[0] > limit || wrong[1] > limit;
    printf("| %s rays, %s | %.0f | %.0f | %.2f | ", kind, name, n / median[0], n / median[1], median[1] / median[0]);
    if (is_wrong) printf("%d and %d of %d WRONG |\n", wrong[0], wrong[1], n);
    else printf("equal but for %d and %d |\n", wrong[0], wrong[1]);
    fflush(stdout);
    return is_wrong;
}

int main(int argc, char **argv) {
    int bits = argc > 1 ? atoi(argv[1]) : 21, scale = argc > 2 ? atoi(argv[2]) : 5, failed = 0;
    self = argv[0];
    n = 1 << bits;
    Ray *own = malloc(sizeof(Ray) * n), *others = malloc(sizeof(Ray) * n);
    Hit *right = malloc(sizeof(Hit) * n), *found = malloc(sizeof(Hit) * n), *camera = malloc(sizeof(Hit) * n);
    make_scene(scale);
    double start = now();
    open_device();
    ours_make(n_triangles, vertices, indices, scene);
    printf("%d triangles, %d rays of each kind; the tree was there after %.1f s\n", n_triangles, n, (now() - start) * 1e-6);
    rays = ours_alloc(sizeof(Ray) * n);
    hits = ours_alloc(sizeof(Hit) * n);
    next = ours_alloc(256);
    camera_rays(bits, own);
    ours_trace_on_cpu(scene, n, own, camera);
    static const char *const kinds[] = {"primary", "occlusion", "diffuse", "random"};
    for (int kind = 0; kind < 4; kind++) {
        const Ray *all = own;
        if (kind == 1) reflected_rays(n, own, camera, 3, others), all = others;
        if (kind == 2) reflected_rays(n, own, camera, INFINITY, others), all = others;
        if (kind == 3) random_rays(n, others), all = others;
        ours_trace_on_cpu(scene, n, all, right);
        must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)rays, all, sizeof(Ray) * n));
        for (int k = 0; k < (int)(sizeof kernels / sizeof *kernels); k++)
            failed |= measure(kinds[kind], k, right, found);
    }
    return failed;
}

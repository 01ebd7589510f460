// The kernels of rays.impala, as one writes them in CUDA C++: after Aila, Laine, "Understanding the Efficiency of Ray Traversal on
// GPUs", 2009, and Aila, Laine, Karras, "Understanding the Efficiency of Ray Traversal on GPUs: Kepler and Fermi Addendum", 2012.
// They read the same trees and triangles in the same memory. rays.c runs both.
#include <cstdint>

struct Ray { float3 org; float tmin; float3 dir; float tmax; };

// Below this many rays of a warp, those that are done make room for others.
constexpr int FEW = 20;
constexpr int DONE = 0x7fffffff, DEPTH = 72;

// By the exact function: nvcc computes a fast one again at each node, to save registers.
static __device__ float inverse(float d) { return __frcp_rn(fabsf(d) < 1e-18f ? copysignf(1e-18f, d) : d); }
static __device__ float least(float a, float b, float c, float d) { return fminf(fminf(a, b), fminf(c, d)); }
static __device__ float most(float a, float b, float c, float d) { return fmaxf(fmaxf(a, b), fmaxf(c, d)); }
static __device__ float3 cross(float3 a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

// A ray on its way through a tree, as long as `node` is not DONE. The stack is apart, so that the rest stays in registers.
struct Walk {
    float3 org, dir, scale, shift;
    float tmin, t, u, v;
    int prim, node, leaf, at;

    __device__ void start(const float4 *__restrict__ rays, int i, int root, int *waiting) {
        float4 a = __ldg(&rays[2 * i]), b = __ldg(&rays[2 * i + 1]);
        org = make_float3(a.x, a.y, a.z), dir = make_float3(b.x, b.y, b.z), tmin = a.w, t = b.w;
        scale = make_float3(inverse(dir.x), inverse(dir.y), inverse(dir.z));
        shift = make_float3(-org.x * scale.x, -org.y * scale.y, -org.z * scale.z);
        u = v = 0, prim = -1, node = root, leaf = 0, at = 0, waiting[0] = DONE;
    }

    __device__ void put(float4 *__restrict__ hits, int i) { hits[i] = make_float4(t, u, v, __int_as_float(prim)); }

    // Goes down from an inner node to a child, or to what waits.
    template<bool ANY> __device__ void step(const float4 *__restrict__ nodes, int *waiting) {
        const float4 *n = nodes + 4ll * node;
        float4 x = __ldg(n), y = __ldg(n + 1), z = __ldg(n + 2);
        int2 child = __ldg((const int2 *)(n + 3));
        float ax = x.x * scale.x + shift.x, bx = x.z * scale.x + shift.x;
        float ay = y.x * scale.y + shift.y, by = y.z * scale.y + shift.y;
        float az = z.x * scale.z + shift.z, bz = z.z * scale.z + shift.z;
        float from0 = most(fminf(ax, bx), fminf(ay, by), fminf(az, bz), tmin);
        float to0 = least(fmaxf(ax, bx), fmaxf(ay, by), fmaxf(az, bz), t);
        ax = x.y * scale.x + shift.x, bx = x.w * scale.x + shift.x;
        ay = y.y * scale.y + shift.y, by = y.w * scale.y + shift.y;
        az = z.y * scale.z + shift.z, bz = z.w * scale.z + shift.z;
        float from1 = most(fminf(ax, bx), fminf(ay, by), fminf(az, bz), tmin);
        float to1 = least(fmaxf(ax, bx), fmaxf(ay, by), fmaxf(az, bz), t);
        bool met0 = from0 <= to0, met1 = from1 <= to1;
        if (!met0 && !met1) {
            node = waiting[at--];
        } else {
            node = met0 ? child.x : child.y;
            if (met0 && met1) {
                int other = child.y;
                if (!ANY && from1 < from0) other = node, node = child.y;
                waiting[++at] = other;
            }
        }
    }

    // The triangles of `leaf`. Whether the ray is at its end.
    template<bool ANY> __device__ bool visit(const float4 *__restrict__ packets) {
        int first = ~leaf >> 3, end = first + (~leaf & 7) + 1;
#pragma unroll 1
        for (int l = first; l < end; l++) {
            float4 p = __ldg(&packets[3ll * l]), q = __ldg(&packets[3ll * l + 1]), r = __ldg(&packets[3ll * l + 2]);
            float3 edge1 = make_float3(p.w, q.x, q.y), edge2 = make_float3(q.z, q.w, r.x);
            float3 normal = cross(edge2, edge1), c = make_float3(p.x - org.x, p.y - org.y, p.z - org.z), s = cross(c, dir);
            float det = dot(normal, dir), size = fabsf(det);
            uint32_t sign = __float_as_uint(det) & 0x80000000u;
            float b = __uint_as_float(__float_as_uint(dot(s, edge2)) ^ sign), d = __uint_as_float(__float_as_uint(dot(s, edge1)) ^ sign);
            float far = __uint_as_float(__float_as_uint(dot(normal, c)) ^ sign);
            if (b >= 0 && d >= 0 && b + d <= size && far > size * tmin && far < size * t) {
                float inv = 1.0f / size;
                t = far * inv, u = b * inv, v = d * inv, prim = __float_as_int(r.y);
                if (ANY) return true;
            }
        }
        return false;
    }

    // Goes on until there is no node left, or fewer than `few` rays of the warp are at work.
    template<bool ANY, bool AHEAD> __device__ void run(
        const float4 *__restrict__ nodes, const float4 *__restrict__ packets, int *waiting, int few
    ) {
        while (node != DONE) {
            while ((unsigned)node < (unsigned)DONE) {
                step<ANY>(nodes, waiting);
                if (AHEAD) {
                    if (node < 0 && leaf >= 0) leaf = node, node = waiting[at--];
                    if (!__any_sync(__activemask(), leaf >= 0)) break;
                }
            }
            if (!AHEAD && node < 0) leaf = node, node = waiting[at--];
            while (leaf < 0) {
                if (visit<ANY>(packets)) {
                    node = DONE, leaf = 0;
                    break;
                }
                leaf = node;
                if (node < 0) node = waiting[at--];
            }
            if (few && __popc(__activemask()) < few) break;
        }
    }
};

template<bool ANY, bool AHEAD> static __device__ void each(
    const float4 *nodes, const float4 *packets, int root, int n, const float4 *rays, float4 *hits
) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Walk w;
    int waiting[DEPTH + 1];
    w.start(rays, i, root, waiting);
    w.run<ANY, AHEAD>(nodes, packets, waiting, 0);
    w.put(hits, i);
}

// Rays that are done make room for the next ones, which those of a warp take together.
template<bool ANY> static __device__ void persistent(
    const float4 *nodes, const float4 *packets, int root, int n, const float4 *rays, float4 *hits, int *next
) {
    Walk w;
    int waiting[DEPTH + 1];
    w.node = DONE;
    int i = -1;
    while (true) {
        bool idle = w.node == DONE;
        unsigned all = __activemask(), takers = __ballot_sync(all, idle);
        if (idle) {
            if (i >= 0) w.put(hits, i);
            int lane = threadIdx.x & 31, before = __popc(takers & ((1u << lane) - 1)), base = 0;
            if (before == 0) base = atomicAdd(next, __popc(takers));
            i = __shfl_sync(takers, base, __ffs(takers) - 1) + before;
            if (i >= n) break;
            w.start(rays, i, root, waiting);
        }
        w.run<ANY, true>(nodes, packets, waiting, FEW);
    }
}

// Nodes of eight children, whose planes are bytes: the lowest corner, three exponents, the children, then for x, y, z the lower planes of all
// children and the upper ones. After Ylitie, Karras, Laine, "Efficient Incoherent Ray Traversal on GPUs Through Compressed Wide BVHs",
// 2017; children are sorted by a network, as the tree is not made for octants.
struct alignas(8) Waiting { int child; float enter; };

static __device__ float byte(int word, int k) { return (float)(unsigned char)(word >> 8 * k); }

// The next child that is near enough.
static __device__ void pop(Walk &w, const Waiting *waiting) {
    Waiting top = waiting[w.at];
    while (!(top.enter < w.t)) top = waiting[--w.at];
    w.at--, w.node = top.child;
}

template<bool ANY> static __device__ void small_step(Walk &w, const int4 *__restrict__ nodes, Waiting *waiting) {
    const int4 *n = nodes + 6ll * w.node;
    int4 head = __ldg(n), first = __ldg(n + 1), second = __ldg(n + 2), x = __ldg(n + 3), y = __ldg(n + 4), z = __ldg(n + 5);
    // The planes as distances: a byte times a number, plus another one.
    float ax = __int_as_float((head.w & 255) << 23) * w.scale.x, bx = __int_as_float(head.x) * w.scale.x + w.shift.x;
    float ay = __int_as_float((head.w >> 8 & 255) << 23) * w.scale.y, by = __int_as_float(head.y) * w.scale.y + w.shift.y;
    float az = __int_as_float((head.w >> 16 & 255) << 23) * w.scale.z, bz = __int_as_float(head.z) * w.scale.z + w.shift.z;
    const int child[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
    unsigned keys[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int j = k & 3;
        bool high = k > 3;
        float x0 = byte(high ? x.y : x.x, j) * ax + bx, x1 = byte(high ? x.w : x.z, j) * ax + bx;
        float y0 = byte(high ? y.y : y.x, j) * ay + by, y1 = byte(high ? y.w : y.z, j) * ay + by;
        float z0 = byte(high ? z.y : z.x, j) * az + bz, z1 = byte(high ? z.w : z.z, j) * az + bz;
        float from = most(fminf(x0, x1), fminf(y0, y1), fminf(z0, z1), w.tmin);
        float to = least(fmaxf(x0, x1), fmaxf(y0, y1), fmaxf(z0, z1), w.t);
        keys[k] = from <= to && child[k] != ~0 ? (__float_as_uint(fmaxf(from, 0.0f)) & ~15u) | k : ~0u;
    }
    const int *children = (const int *)(n + 1);
    auto push = [&](unsigned key) {
        if (key == ~0u) return;
        w.at++;
        waiting[w.at] = {__ldg(children + (key & 15)), __uint_as_float(key & ~15u)};
    };
    if (ANY) {
        for (int k = 0; k < 8; k++) push(keys[k]);
        w.node = waiting[w.at--].child;
        return;
    }
    // Batcher's network.
#define EXCHANGE(i, j) { unsigned a = min(keys[i], keys[j]); keys[j] = max(keys[i], keys[j]), keys[i] = a; }
    EXCHANGE(0, 4) EXCHANGE(1, 5) EXCHANGE(2, 6) EXCHANGE(3, 7) EXCHANGE(0, 2) EXCHANGE(1, 3) EXCHANGE(4, 6) EXCHANGE(5, 7)
    EXCHANGE(2, 4) EXCHANGE(3, 5) EXCHANGE(0, 1) EXCHANGE(2, 3) EXCHANGE(4, 5) EXCHANGE(6, 7) EXCHANGE(1, 4) EXCHANGE(3, 6)
    EXCHANGE(1, 2) EXCHANGE(3, 4) EXCHANGE(5, 6)
#pragma unroll
    for (int k = 7; k > 0; k--) push(keys[k]);
    if (keys[0] != ~0u) {
        w.node = __ldg(children + (keys[0] & 15));
    } else {
        pop(w, waiting);
    }
}

template<bool ANY> static __device__ void small(
    const int4 *nodes, const float4 *packets, int root, int n, const float4 *rays, float4 *hits
) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Walk w;
    Waiting waiting[7 * DEPTH + 2];
    int unused[1];
    w.start(rays, i, root, unused);
    waiting[0] = {DONE, -INFINITY};
    while (w.node != DONE) {
        while ((unsigned)w.node < (unsigned)DONE) small_step<ANY>(w, nodes, waiting);
        while (w.node < 0) {
            w.leaf = w.node;
            if (w.visit<ANY>(packets)) {
                w.node = DONE;
                break;
            }
            pop(w, waiting);
        }
    }
    w.put(hits, i);
}

#define ARGS const float4 *nodes, const float4 *packets, int root, int n, const float4 *rays, float4 *hits
#define KERNEL extern "C" __global__ __launch_bounds__(128) void
KERNEL theirs_closest(ARGS) { each<false, false>(nodes, packets, root, n, rays, hits); }
KERNEL theirs_any(ARGS) { each<true, false>(nodes, packets, root, n, rays, hits); }
KERNEL theirs_closest_ahead(ARGS) { each<false, true>(nodes, packets, root, n, rays, hits); }
KERNEL theirs_any_ahead(ARGS) { each<true, true>(nodes, packets, root, n, rays, hits); }
KERNEL theirs_closest_persistent(ARGS, int *next) { persistent<false>(nodes, packets, root, n, rays, hits, next); }
KERNEL theirs_any_persistent(ARGS, int *next) { persistent<true>(nodes, packets, root, n, rays, hits, next); }
KERNEL theirs_closest_small(ARGS) { small<false>((const int4 *)nodes, packets, root, n, rays, hits); }
KERNEL theirs_any_small(ARGS) { small<true>((const int4 *)nodes, packets, root, n, rays, hits); }
extern "C" __global__ void theirs_reset(int *next) { *next = 0; }

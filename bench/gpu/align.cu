// The kernels of align.impala for global alignments with affine gaps, as one writes them in CUDA C++, by the same methods. For reads eight
// work items share two pairs, nineteen rows each; for long pairs a warp has a stripe of rows, in the two halves of words. Scores have the
// gaps' costs for each letter added. Reads are computed with numbers of 16 bits and the functions that NVIDIA calls DPX, and with
// halves, which are exact for scores as small as these and need no such functions.
#include <climits>
#include <cuda_fp16.h>
#include <type_traits>

constexpr int N = 150, ITEMS = 8, ROWS = 19;
// Of letters that are equal, others, and of a gap's start, with twice, twice and not the cost of a gap's letter added.
constexpr int EQUAL = 4, OTHER = 1, OPEN = 2;

struct Dpx {
    typedef unsigned T;
    static __device__ T both(int n) { return (n & 0xffff) * 0x10001u; }
    static __device__ T row(int x, int y) { return ~((x | y << 16) << 7); }
    static __device__ T column(int x, int y) { return (x | y << 16) << 7; }
    static __device__ T add_max(T a, T b, T c) { return __viaddmax_s16x2(a, b, c); }
    static __device__ T greater(T a, T b) { return __vmaxs2(a, b); }
    static __device__ T score(T row, T column) { return add_max(row ^ column, both(EQUAL + 1), both(OTHER)); }
    static __device__ T from_other(T v, int item) { return __shfl_sync(~0u, v, item, ITEMS); }
    static __device__ int part(T v, int way) { return (short)(v >> 16 * way); }
};
struct Halves {
    typedef __half2 T;
    static __device__ T both(int n) { return __float2half2_rn((float)n); }
    static __device__ T row(int x, int y) { return __floats2half2_rn((float)x, (float)y); }
    static __device__ T column(int x, int y) { return row(x, y); }
    static __device__ T add_max(T a, T b, T c) { return __hmax2(__hadd2(a, b), c); }
    static __device__ T greater(T a, T b) { return __hmax2(a, b); }
    static __device__ T score(T row, T column) { return __hfma2(__heq2(row, column), both(EQUAL - OTHER), both(OTHER)); }
    static __device__ T from_other(T v, int item) { return __shfl_sync(~0u, v, item, ITEMS); }
    static __device__ int part(T v, int way) { return (int)__half2float(way ? __high2half(v) : __low2half(v)); }
};

template <class O> __device__ void reads(int count, const unsigned char *__restrict__ a, const unsigned char *__restrict__ b, int *__restrict__ scores) {
    typedef typename O::T T;
    int x = blockIdx.x * 128 + threadIdx.x, own = x % ITEMS, first = own * ROWS;
    int pair = min(x / ITEMS * 2, count - 1), other = min(x / ITEMS * 2 + 1, count - 1);
    const unsigned char *a0 = a + (size_t)pair * N, *a1 = a + (size_t)other * N, *b0 = b + (size_t)pair * N, *b1 = b + (size_t)other * N;
    T row[ROWS], best[ROWS], right[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        row[k] = first + k < N ? O::row(a0[first + k], a1[first + k]) : O::row(255, 255);
        best[k] = O::both(-OPEN);
        right[k] = O::both(-2 * OPEN);
    }
    T corner = O::both(own ? -OPEN : 0), out = O::both(-OPEN), out_down = O::both(-2 * OPEN);
    for (int t = 0; t < N + ITEMS - 1; t++) {
        int j = t - own;
        T above = O::from_other(out, own - 1), down = O::from_other(out_down, own - 1);
        if (own == 0) above = O::both(-OPEN), down = O::both(-2 * OPEN);
        if (j < 0 || j >= N) continue;
        T column = O::column(b0[j], b1[j]), diagonal = corner;
        corner = above;
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            T next = O::greater(O::add_max(diagonal, O::score(row[k], column), right[k]), down);
            diagonal = best[k];
            best[k] = next;
            right[k] = O::add_max(next, O::both(-OPEN), right[k]);
            down = O::add_max(next, O::both(-OPEN), down);
        }
        out = best[ROWS - 1];
        out_down = down;
    }
    // The last row is in this work item.
    if (own == (N - 1) / ROWS && x / ITEMS * 2 < count) {
        scores[pair] = O::part(best[(N - 1) % ROWS], 0) - 2 * N;
        scores[other] = O::part(best[(N - 1) % ROWS], 1) - 2 * N;
    }
}

extern "C" __global__ __launch_bounds__(128) void theirs_dpx(int count, const unsigned char *a, const unsigned char *b, int *scores) {
    reads<Dpx>(count, a, b, scores);
}
extern "C" __global__ __launch_bounds__(128) void theirs_halves(int count, const unsigned char *a, const unsigned char *b, int *scores) {
    reads<Halves>(count, a, b, scores);
}

// Long pairs, of n letters each: see stripes.impala. `line` has the best score and that of a gap of the last row of the stripe above, for
// each column; `reached` the columns that a stripe has passed, and last the number of the next stripe. Both are 0 at first.
__device__ unsigned passed(unsigned bits, unsigned next) {
    int lane = threadIdx.x;
    unsigned before = __shfl_sync(~0u, bits, (lane + 31) & 31);
    return lane ? before : (next & 0xffff) | before << 16;
}
template <int R> __device__ void stripes(int count, int n, const unsigned char *__restrict__ a, const unsigned char *__restrict__ b, int *__restrict__ scores, int2 *line, int *reached) {
    typedef Dpx O;
    constexpr int HEIGHT = 64 * R;
    int lane = threadIdx.x, per_pair = (n + HEIGHT - 1) / HEIGHT;
    int number = lane ? 0 : atomicAdd(reached + count * per_pair, 1);
    number = __shfl_sync(~0u, number, 0);
    int pair = number / per_pair, stripe = number % per_pair, top = stripe * HEIGHT;
    a += (size_t)pair * n;
    b += (size_t)pair * n;
    line += (size_t)pair * n;
    int first = top + lane * R, first_low = first + 32 * R, base = stripe ? -OPEN : 0;
    unsigned row[R], best[R], right[R];
#pragma unroll
    for (int k = 0; k < R; k++) {
        row[k] = O::row(first + k < n ? a[first + k] : 255, first_low + k < n ? a[first_low + k] : 255);
        best[k] = O::both(-OPEN - base);
        right[k] = O::both(-2 * OPEN - base);
    }
    unsigned corner = O::both(-OPEN - base), out = best[R - 1], out_down = best[R - 1], column = 0;
    if (first == 0) corner = (corner & 0xffff0000) | 0;
    int found = INT_MIN;
    auto chunk = [&](int start, auto edge) {
        constexpr bool is_edge = decltype(edge)::value;
        if (stripe) while (*(volatile int *)(reached + number - 1) < min(start + 32, n));
        __threadfence();
        int change = __shfl_sync(~0u, (short)best[0], 0);
        base += change;
        unsigned back = O::both(-change);
#pragma unroll
        for (int k = 0; k < R; k++) {
            best[k] = __vadd2(best[k], back);
            right[k] = __vadd2(right[k], back);
        }
        corner = __vadd2(corner, back);
        out = __vadd2(out, back);
        out_down = __vadd2(out_down, back);
        int own = start + lane, next_best = 0, next_down = 0, next_letter = 254;
        if (own < n) {
            next_letter = b[own];
            int2 above = stripe ? __ldcg(line + own) : make_int2(-OPEN, -2 * OPEN);
            next_best = above.x - base;
            next_down = above.y - base;
        }
        next_letter <<= 7;
#pragma unroll 1
        for (int u = 0; u < 32; u++) {
            int t = start + u;
            column = passed(column, __shfl_sync(~0u, next_letter, u));
            unsigned above = passed(out, __shfl_sync(~0u, next_best, u)), down = passed(out_down, __shfl_sync(~0u, next_down, u));
            unsigned mask = (t >= lane && t - lane < n ? 0xffff : 0) | (t >= lane + 32 && t - lane - 32 < n ? 0xffff0000 : 0);
            unsigned diagonal = corner;
#pragma unroll
            for (int k = 0; k < R; k++) {
                unsigned next = O::greater(O::add_max(diagonal, O::score(row[k], column), right[k]), down);
                unsigned next_right = O::add_max(next, O::both(-OPEN), right[k]);
                down = O::add_max(next, O::both(-OPEN), down);
                diagonal = best[k];
                best[k] = is_edge ? (next & mask) | (best[k] & ~mask) : next;
                right[k] = is_edge ? (next_right & mask) | (right[k] & ~mask) : next_right;
                if (is_edge && t - lane == n - 1 && first + k == n - 1) found = (short)best[k] + base;
                if (is_edge && t - lane - 32 == n - 1 && first_low + k == n - 1) found = (short)(best[k] >> 16) + base;
            }
            corner = is_edge ? (above & mask) | (corner & ~mask) : above;
            out = best[R - 1];
            out_down = down;
            int behind = t - 63;
            if (lane == 31 && (!is_edge || behind >= 0 && behind < n))
                line[behind] = make_int2((short)(out >> 16) + base, (short)(out_down >> 16) + base);
        }
        __threadfence();
        if (lane == 31) *(volatile int *)(reached + number) = max(0, min(start + 32 - 63, n));
    };
    for (int start = 0; start < n + 63; start += 32) {
        if (start < 64 || start + 32 > n) chunk(start, std::true_type()); else chunk(start, std::false_type());
    }
    if (found != INT_MIN) scores[pair] = found - 2 * n;
}
extern "C" __global__ void theirs_clear(int count, int *reached) { if (blockIdx.x * 128 + threadIdx.x < count) reached[blockIdx.x * 128 + threadIdx.x] = 0; }
#define LONG(R)                                                                                                                                        \
    extern "C" __global__ __launch_bounds__(32) void theirs_long_##R(int count, int n, const unsigned char *a, const unsigned char *b, int *scores, int2 *line, int *reached) { \
        stripes<R>(count, n, a, b, scores, line, reached);                                                                                            \
    }
LONG(4)
LONG(8)
LONG(16)

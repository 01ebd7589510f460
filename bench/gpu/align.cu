// The kernel of align.impala for global alignments of reads, as one writes it in CUDA C++: eight work items share two pairs, nineteen rows
// each. Scores have the gaps' costs for each letter added, as ours do. With numbers of 16 bits and the functions that NVIDIA calls DPX,
// and with halves, which are exact for scores as small as these and need no such functions.
#include <cuda_fp16.h>

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

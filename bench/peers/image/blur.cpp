// Peer of blur.impala: both passes fused by a ring of rows; plain, each access clamped.
#include "image.h"
static const int W = 4096, H = 4096;
typedef const int *__restrict P;
typedef int *__restrict O;
static inline void row(P r, O o) {
    o[0] = (r[0] + r[0] + r[1]) / 3;
#pragma omp simd
    for (int x = 1; x < W - 1; x++) o[x] = (r[x - 1] + r[x] + r[x + 1]) / 3;
    o[W - 1] = (r[W - 2] + r[W - 1] + r[W - 1]) / 3;
}
static inline void col(P a, P b, P c, O o) {
#pragma omp simd
    for (int x = 0; x < W; x++) o[x] = (a[x] + b[x] + c[x]) / 3;
}
__attribute__((noinline)) void fused(const int *in, int *out) {
    bands(H, [&](int y0, int y1) {
        int *buf = pages<int>((size_t)4 * (W + 16));
        auto B = [&](int y) { return buf + (size_t)(y & 3) * (W + 16); };
        auto R = [&](int y) { return B(cl(y, 0, H - 1)); };
        for (int y = y0 - 1; y < y0 + 1; y++)
            if (y >= 0) row(in + (size_t)y * W, B(y));
        for (int y = y0; y < y1; y++) {
            if (y + 1 < H) row(in + (size_t)(y + 1) * W, B(y + 1));
            col(R(y - 1), R(y), R(y + 1), out + (size_t)y * W);
        }
        free(buf);
    });
}
__attribute__((noinline)) void naive(const int *in, int *out) {
    bands(H, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++)
            for (int x = 0; x < W; x++) {
                int s = 0;
                for (int j = -1; j <= 1; j++) {
                    const int *r = in + (size_t)cl(y + j, 0, H - 1) * W;
                    s += (r[cl(x - 1, 0, W - 1)] + r[x] + r[cl(x + 1, 0, W - 1)]) / 3;
                }
                out[(size_t)y * W + x] = s / 3;
            }
    });
}
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const int *, int *)> variants{{"scalar", naive}, {"simd", fused}};
    auto run = chosen(variants, argc, argv);
    int *in = pages<int>((size_t)W * H), *out = pages<int>((size_t)W * H);
    for (int i = 0; i < W * H; i++) in[i] = (i * 2654435761u) >> 24;
    measure([&] { run(in, out); });
    sums(W * H, [&](int i) { return out[i]; });
}

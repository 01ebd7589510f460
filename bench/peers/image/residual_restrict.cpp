// Peer of residual_restrict.impala: the residual of two rows, then their restriction; `scalar` is one after the other, each of the
// whole image.
#include "image.h"
static const int W = 4096, H = 4096;
typedef const float *__restrict P;
typedef float *__restrict O;
static inline void rrow(P a, P b, P c, P f, O o) {
    o[0] = f[0] - (4 * b[0] - a[0] - c[0] - b[0] - b[1]);
#pragma omp simd
    for (int x = 1; x < W - 1; x++) o[x] = f[x] - (4 * b[x] - a[x] - c[x] - b[x - 1] - b[x + 1]);
    o[W - 1] = f[W - 1] - (4 * b[W - 1] - a[W - 1] - c[W - 1] - b[W - 2] - b[W - 1]);
}
static inline void restrict_row(P a, P b, O o) {
#pragma omp simd
    for (int x = 0; x < W / 2; x++) o[x] = .25f * (a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1]);
}
static float *whole;
static const float *row(const float *u, int y) { return u + (size_t)cl(y, 0, H - 1) * W; }
__attribute__((noinline)) void separate(const float *u, const float *f, float *v) {
    bands(H, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++) rrow(row(u, y - 1), row(u, y), row(u, y + 1), f + (size_t)y * W, whole + (size_t)y * W);
    });
    bands(H / 2, [&](int y0, int y1) {
        for (int y = y0; y < y1; y++) restrict_row(whole + (size_t)2 * y * W, whole + (size_t)(2 * y + 1) * W, v + (size_t)y * (W / 2));
    });
}
__attribute__((noinline)) void fused(const float *u, const float *f, float *v) {
    bands(H / 2, [&](int y0, int y1) {
        float *t = pages<float>(2 * W);
        for (int y = y0; y < y1; y++) {
            for (int k = 0; k < 2; k++) {
                int q = 2 * y + k;
                rrow(row(u, q - 1), row(u, q), row(u, q + 1), f + (size_t)q * W, t + k * W);
            }
            restrict_row(t, t + W, v + (size_t)y * (W / 2));
        }
        free(t);
    });
}
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, const float *, float *)> variants{{"scalar", separate}, {"simd", fused}};
    auto run = chosen(variants, argc, argv);
    float *u = pages<float>((size_t)W * H), *f = pages<float>((size_t)W * H), *v = pages<float>((size_t)W * H / 4);
    whole = pages<float>((size_t)W * H);
    for (int i = 0; i < W * H; i++) u[i] = noise(i), f[i] = noise2(i);
    measure([&] { run(u, f, v); });
    sums(W * H / 4, [&](int i) { return v[i]; });
}

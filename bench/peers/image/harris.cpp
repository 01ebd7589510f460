// Peer of harris.impala: gradients in a ring of rows, sums of columns in a row; `hand` in strips of 512 columns, whose rows stay in
// the first cache, stores past the caches.
#include "image.h"
static const int W = 4096, H = 4096;
static const float c1 = 1 / 12.f, c2 = 2 / 12.f;
static inline void grad(const float *__restrict a, const float *__restrict b, const float *__restrict c, float *__restrict gx, float *__restrict gy, int xl, int xr) {
    auto px = [&](int x, int l, int r) { gx[x] = c1 * (a[r] - a[l] + c[r] - c[l]) + c2 * (b[r] - b[l]); gy[x] = c1 * (c[l] - a[l] + c[r] - a[r]) + c2 * (c[x] - a[x]); };
    int s = xl, e = xr;
    if (s == 0) { px(0, 0, 1); s = 1; }
    if (e == W) { px(W - 1, W - 2, W - 1); e = W - 1; }
#pragma omp simd
    for (int x = s; x < e; x++) { gx[x] = c1 * (a[x + 1] - a[x - 1] + c[x + 1] - c[x - 1]) + c2 * (b[x + 1] - b[x - 1]); gy[x] = c1 * (c[x - 1] - a[x - 1] + c[x + 1] - a[x + 1]) + c2 * (c[x] - a[x]); }
}
template <int S, bool NT> static void area(const float *in, float *out, float *buf, int P, int xb, int xe, int yb, int ye) {
    int xl = std::max(0, xb - 1), xr = std::min(W, xe + 1);
    auto GX = [&](int y) { return buf + (cl(y, 0, H - 1) & 3) * P + 16 - xb; };
    auto GY = [&](int y) { return buf + (4 + (cl(y, 0, H - 1) & 3)) * P + 16 - xb; };
    float *__restrict vx = buf + 8 * P + 16 - xb, *__restrict vy = buf + 9 * P + 16 - xb, *__restrict vz = buf + 10 * P + 16 - xb;
    auto g = [&](int y) { if (y >= 0 && y < H) grad(in + (size_t)cl(y - 1, 0, H - 1) * W, in + (size_t)y * W, in + (size_t)cl(y + 1, 0, H - 1) * W, GX(y), GY(y), xl, xr); };
    g(yb - 1); g(yb);
    for (int y = yb; y < ye; y++) {
        g(y + 1);
        const float *__restrict a = GX(y - 1), *__restrict b = GX(y), *__restrict c = GX(y + 1), *__restrict d = GY(y - 1), *__restrict e = GY(y), *__restrict f = GY(y + 1);
#pragma omp simd
        for (int x = xl; x < xr; x++) { vx[x] = a[x] * a[x] + b[x] * b[x] + c[x] * c[x]; vy[x] = d[x] * d[x] + e[x] * e[x] + f[x] * f[x]; vz[x] = a[x] * d[x] + b[x] * e[x] + c[x] * f[x]; }
        if (xl == 0) vx[-1] = vx[0], vy[-1] = vy[0], vz[-1] = vz[0];
        if (xr == W) vx[W] = vx[W - 1], vy[W] = vy[W - 1], vz[W] = vz[W - 1];
        float *__restrict o = out + (size_t)y * W;
#if __AVX512F__
        if (NT) {
            const __m512 k = _mm512_set1_ps(0.04f);
            auto s3 = [](const float *v) { return _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(v - 1), _mm512_loadu_ps(v)), _mm512_loadu_ps(v + 1)); };
            for (int x = xb; x < xe; x += 16) { __m512 xx = s3(vx + x), yy = s3(vy + x), xy = s3(vz + x), t = _mm512_add_ps(xx, yy); _mm512_stream_ps(o + x, _mm512_fnmadd_ps(_mm512_mul_ps(k, t), t, _mm512_fnmadd_ps(xy, xy, _mm512_mul_ps(xx, yy)))); }
            continue;
        }
#endif
#pragma omp simd
        for (int x = xb; x < xe; x++) { float xx = vx[x - 1] + vx[x] + vx[x + 1], yy = vy[x - 1] + vy[x] + vy[x + 1], xy = vz[x - 1] + vz[x] + vz[x + 1], tr = xx + yy; o[x] = xx * yy - xy * xy - 0.04f * tr * tr; }
    }
}
__attribute__((noinline)) void ring(const float *in, float *out) {
    bands(H, [&](int y0, int y1) {
        float *buf = pages<float>((size_t)(W + 32) * 11);
        area<W, false>(in, out, buf, W + 32, 0, W, y0, y1);
        free(buf);
    });
}
__attribute__((noinline)) void strips(const float *in, float *out) {
    bands(H, [&](int y0, int y1) {
        float *buf = pages<float>((size_t)(512 + 64) * 11);
        for (int yb = y0; yb < y1; yb += 256)
            for (int xb = 0; xb < W; xb += 512) area<512, true>(in, out, buf, 512 + 64, xb, xb + 512, yb, std::min(y1, yb + 256));
        _mm_sfence();
        free(buf);
    });
}
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, float *)> variants{{"simd", ring}, {"hand", strips}};
    auto run = chosen(variants, argc, argv);
    float *in = pages<float>((size_t)W * H), *out = pages<float>((size_t)W * H);
    for (int i = 0; i < W * H; i++) in[i] = noise(i);
    measure([&] { run(in, out); });
    sums(W * H, [&](int i) { return out[i]; });
}

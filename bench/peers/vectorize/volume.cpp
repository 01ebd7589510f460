// Peer of volume.impala: scalar code; AVX-512 by hand, 16 rays at once.
#include "timing.h"
#if __AVX512F__
#include "options.h"
#endif
static const int W = 896, H = 1184, SIDE = 128;
static inline float cell(const float *v, int x, int y, int z) { return v[(z * SIDE + y) * SIDE + x]; }
static inline float mix(float a, float b, float t) { return a + (b - a) * t; }
static inline bool inside(float x, float y, float z) { return x >= 0 && x <= 1 && y >= 0 && y <= 1 && z >= 0 && z <= 1; }
static inline float density(const float *v, float x, float y, float z) {
    if (!inside(x, y, z)) return 0;
    float fx = x * (SIDE - 1), fy = y * (SIDE - 1), fz = z * (SIDE - 1);
    int ix = std::min((int)fx, SIDE - 2), iy = std::min((int)fy, SIDE - 2), iz = std::min((int)fz, SIDE - 2);
    float tx = fx - ix, ty = fy - iy, tz = fz - iz;
    float a = mix(mix(cell(v, ix, iy, iz), cell(v, ix + 1, iy, iz), tx), mix(cell(v, ix, iy + 1, iz), cell(v, ix + 1, iy + 1, iz), tx), ty);
    float b = mix(mix(cell(v, ix, iy, iz + 1), cell(v, ix + 1, iy, iz + 1), tx), mix(cell(v, ix, iy + 1, iz + 1), cell(v, ix + 1, iy + 1, iz + 1), tx), ty);
    return mix(a, b, tz);
}
static inline float lit(const float *v, float x, float y, float z) {
    float depth = 0;
    while (inside(x, y, z) && depth < 6) {
        depth += density(v, x, y, z) * 2;
        x += 0.02f, y += 0.05f, z += 0.01f;
    }
    return expf(-depth);
}
static inline float through(const float *v, float ox, float oy, float dx, float dy, float dz) {
    float start = 1 / dz, x = ox + dx * start, y = oy + dy * start, z = 0, light = 0, left = 1;
    while (z <= 1 && left > 0.005f) {
        float d = density(v, x, y, z);
        if (d > 0.001f) {
            float absorbed = expf(-d * 1.5f);
            light += left * (1 - absorbed) * lit(v, x, y, z);
            left *= absorbed;
        }
        x += dx * 0.02f, y += dy * 0.02f, z += dz * 0.02f;
    }
    return light + left * 0.1f;
}
__attribute__((noinline)) void scalar(const float *v, float *out) {
    each(H, 4, [=](int lo, int hi) {
        for (int j = lo; j < hi; j++)
            for (int i = 0; i < W; i++) {
                float dx = (i - W / 2.f) / W, dy = (j - H / 2.f) / W, length = sqrtf(dx * dx + dy * dy + 1);
                out[j * W + i] = through(v, 0.5f, 0.5f, dx / length, dy / length, 1 / length);
            }
    });
}
#if __AVX512F__
typedef __m512 V;
static inline V set(float x) { return _mm512_set1_ps(x); }
static inline V vmix(V a, V b, V t) { return _mm512_fmadd_ps(_mm512_sub_ps(b, a), t, a); }
static inline __mmask16 vinside(__mmask16 m, V x, V y, V z) {
    for (V c : {x, y, z}) m = _mm512_mask_cmp_ps_mask(m, c, set(0), _CMP_GE_OQ), m = _mm512_mask_cmp_ps_mask(m, c, set(1), _CMP_LE_OQ);
    return m;
}
static inline V vdensity(__mmask16 m, const float *v, V x, V y, V z) {
    m = vinside(m, x, y, z);
    if (!m) return set(0);
    V s = set(SIDE - 1), fx = _mm512_mul_ps(x, s), fy = _mm512_mul_ps(y, s), fz = _mm512_mul_ps(z, s);
    __m512i most = _mm512_set1_epi32(SIDE - 2), ix = _mm512_min_epi32(_mm512_cvttps_epi32(fx), most), iy = _mm512_min_epi32(_mm512_cvttps_epi32(fy), most), iz = _mm512_min_epi32(_mm512_cvttps_epi32(fz), most);
    V tx = _mm512_sub_ps(fx, _mm512_cvtepi32_ps(ix)), ty = _mm512_sub_ps(fy, _mm512_cvtepi32_ps(iy)), tz = _mm512_sub_ps(fz, _mm512_cvtepi32_ps(iz));
    __m512i at = _mm512_add_epi32(_mm512_slli_epi32(_mm512_add_epi32(_mm512_slli_epi32(iz, 7), iy), 7), ix);
    auto get = [&](int offset) { return _mm512_mask_i32gather_ps(set(0), m, at, v + offset, 4); };
    V a = vmix(vmix(get(0), get(1), tx), vmix(get(SIDE), get(SIDE + 1), tx), ty);
    const int P = SIDE * SIDE;
    V b = vmix(vmix(get(P), get(P + 1), tx), vmix(get(P + SIDE), get(P + SIDE + 1), tx), ty);
    return _mm512_maskz_mov_ps(m, vmix(a, b, tz));
}
static inline V vlit(__mmask16 m, const float *v, V x, V y, V z) {
    V depth = set(0);
    while ((m = _mm512_mask_cmp_ps_mask(vinside(m, x, y, z), depth, set(6), _CMP_LT_OQ))) {
        depth = _mm512_mask_add_ps(depth, m, depth, _mm512_mul_ps(vdensity(m, v, x, y, z), set(2)));
        x = _mm512_add_ps(x, set(0.02f)), y = _mm512_add_ps(y, set(0.05f)), z = _mm512_add_ps(z, set(0.01f));
    }
    return vexp(_mm512_sub_ps(set(0), depth));
}
__attribute__((noinline)) void hand(const float *v, float *out) {
    each(H, 4, [=](int lo, int hi) {
        for (int j = lo; j < hi; j++)
            for (int i = 0; i < W; i += 16) {
                V vi = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_set1_epi32(i), _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
                V dx = _mm512_div_ps(_mm512_sub_ps(vi, set(W / 2.f)), set(W)), dy = set((j - H / 2.f) / W);
                V dz = _mm512_div_ps(set(1), _mm512_sqrt_ps(_mm512_add_ps(_mm512_fmadd_ps(dx, dx, _mm512_mul_ps(dy, dy)), set(1))));
                dx = _mm512_mul_ps(dx, dz), dy = _mm512_mul_ps(dy, dz);
                V start = _mm512_div_ps(set(1), dz), x = _mm512_fmadd_ps(dx, start, set(0.5f)), y = _mm512_fmadd_ps(dy, start, set(0.5f)), z = set(0), light = set(0), left = set(1);
                __mmask16 m = 0xffff;
                while ((m = _mm512_mask_cmp_ps_mask(_mm512_mask_cmp_ps_mask(m, z, set(1), _CMP_LE_OQ), left, set(0.005f), _CMP_GT_OQ))) {
                    V d = vdensity(m, v, x, y, z);
                    __mmask16 some = _mm512_mask_cmp_ps_mask(m, d, set(0.001f), _CMP_GT_OQ);
                    if (some) {
                        V absorbed = vexp(_mm512_mul_ps(d, set(-1.5f)));
                        light = _mm512_mask_add_ps(light, some, light, _mm512_mul_ps(_mm512_mul_ps(left, _mm512_sub_ps(set(1), absorbed)), vlit(some, v, x, y, z)));
                        left = _mm512_mask_mul_ps(left, some, left, absorbed);
                    }
                    x = _mm512_fmadd_ps(dx, set(0.02f), x), y = _mm512_fmadd_ps(dy, set(0.02f), y), z = _mm512_fmadd_ps(dz, set(0.02f), z);
                }
                _mm512_storeu_ps(out + j * W + i, _mm512_fmadd_ps(left, set(0.1f), light));
            }
    });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, void (*)(const float *, float *)> variants{{"scalar", scalar}};
#if __AVX512F__
    variants["hand"] = hand;
#endif
    auto run = chosen(variants, argc, argv);
    float *volume = make<float>(SIDE * SIDE * SIDE), *out = make<float>(W * H);
    for (int z = 0; z < SIDE; z++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                float u = (x - 64) / 64.f, v = (y - 64) / 64.f, w = (z - 64) / 64.f, ball = 0.8f - (u * u + v * v + w * w);
                float grain = (x / 8 * 31 + y / 8 * 17 + z / 8 * 7) % 16 / 16.f;
                volume[(z * SIDE + y) * SIDE + x] = ball > 0 ? ball * grain : 0;
            }
    measure([&] { run(volume, out); });
    sums(W * H, [&](int i) { return (double)out[i]; });
}

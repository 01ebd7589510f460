// Peer of ambient_occlusion.impala: scalar code; `std::experimental::simd` by hand, 16 pixels at once.
#include "timing.h"
// With clang 14 and fast mathematics it computes nothing.
#if __AVX512F__ && !__clang__ && __has_include(<experimental/simd>)
#include <experimental/simd>
#include <immintrin.h>
#define HAND 1
namespace stdx = std::experimental;
#endif
static const int SIZE = 256, SAMPLES = 2, RAYS = 8;

// By the type of a number: that of its masks, of integers, a choice.
template <class F> struct Of;
template <> struct Of<float> {
    typedef bool M;
    typedef uint32_t U;
    static float pick(bool m, float a, float b) { return m ? a : b; }
    static bool any(bool m) { return m; }
    static float real(uint32_t u) { return (float)u; }
    static void trig(float x, float &s, float &c) { s = sinf(x), c = cosf(x); }
    static float root(float x) { return sqrtf(x); }
};
#if HAND
typedef stdx::native_simd<float> V;
template <> struct Of<V> {
    typedef V::mask_type M;
    typedef stdx::native_simd<uint32_t> U;
    static V pick(M m, V a, V b) {
        stdx::where(m, b) = a;
        return b;
    }
    static bool any(M m) { return stdx::any_of(m); }
    static V real(U u) { return V(_mm512_cvtepu32_ps(static_cast<__m512i>(u))); }
    // From 0 to 2 pi, to three units in the last place.
    static void trig(V x, V &s, V &c) {
        V q = V(_mm512_roundscale_ps(static_cast<__m512>(x * 0.636619772f), 8)), y = x - q * 1.5707963267f;
        __m512i quadrant = _mm512_cvtps_epi32(static_cast<__m512>(q));
        V z = y * y, a = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * y + y;
        V b = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.f;
        __mmask16 odd = _mm512_test_epi32_mask(quadrant, _mm512_set1_epi32(1)), two = _mm512_test_epi32_mask(quadrant, _mm512_set1_epi32(2));
        __m512 sv = _mm512_mask_blend_ps(odd, static_cast<__m512>(a), static_cast<__m512>(b)), cv = _mm512_mask_blend_ps(odd, static_cast<__m512>(b), static_cast<__m512>(a));
        s = V(_mm512_mask_sub_ps(sv, two, _mm512_setzero_ps(), sv));
        c = V(_mm512_mask_sub_ps(cv, odd ^ two, _mm512_setzero_ps(), cv));
    }
    static V root(V x) { return stdx::sqrt(x); }
};
#endif

template <class F> struct Vec3 { F x, y, z; };
#define T3 template <class F> static inline
T3 Vec3<F> operator+(Vec3<F> a, Vec3<F> b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
T3 Vec3<F> operator-(Vec3<F> a, Vec3<F> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
T3 Vec3<F> operator*(Vec3<F> a, F f) { return {a.x * f, a.y * f, a.z * f}; }
T3 F dot(Vec3<F> a, Vec3<F> b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
T3 Vec3<F> cross(Vec3<F> a, Vec3<F> b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
T3 Vec3<F> unit(Vec3<F> a) { return a * (F(1.f) / Of<F>::root(dot(a, a))); }
T3 Vec3<F> pick(typename Of<F>::M m, Vec3<F> a, Vec3<F> b) { return {Of<F>::pick(m, a.x, b.x), Of<F>::pick(m, a.y, b.y), Of<F>::pick(m, a.z, b.z)}; }
template <class F> struct Hit {
    F t;
    Vec3<F> p, n;
    typename Of<F>::M hit;
};
T3 void ball(Hit<F> &h, Vec3<F> from, Vec3<F> dir, float cx, float cy, float cz, float radius) {
    Vec3<F> c{F(cx), F(cy), F(cz)}, away = from - c;
    F b = dot(away, dir), d = b * b - (dot(away, away) - F(radius * radius));
    typename Of<F>::M m = d > F(0.f);
    if (!Of<F>::any(m)) return;
    F t = -b - Of<F>::root(d);
    m = m && t > F(0.f) && t < h.t;
    if (!Of<F>::any(m)) return;
    Vec3<F> p = from + dir * t;
    h.t = Of<F>::pick(m, t, h.t), h.hit = h.hit || m, h.p = pick<F>(m, p, h.p), h.n = pick<F>(m, unit(p - c), h.n);
}
T3 void plane(Hit<F> &h, Vec3<F> from, Vec3<F> dir) {
    F v = dir.y;
    F t = (F(-0.5f) - from.y) / v;
    typename Of<F>::M m = (v >= F(0.00001f) || v <= F(-0.00001f)) && t > F(0.f) && t < h.t;
    if (!Of<F>::any(m)) return;
    h.t = Of<F>::pick(m, t, h.t), h.hit = h.hit || m, h.p = pick<F>(m, from + dir * t, h.p), h.n = pick<F>(m, Vec3<F>{F(0.f), F(1.f), F(0.f)}, h.n);
}
T3 Hit<F> trace(Vec3<F> from, Vec3<F> dir) {
    F zero(0.f);
    Hit<F> h{F(1e17f), {zero, zero, zero}, {zero, zero, zero}, typename Of<F>::M(false)};
    ball(h, from, dir, -2, 0, -3.5f, 0.5f);
    ball(h, from, dir, -0.5f, 0, -3, 0.5f);
    ball(h, from, dir, 1, 0, -2.2f, 0.5f);
    plane(h, from, dir);
    return h;
}
T3 F next(typename Of<F>::U &state) {
    state = state * 1664525u + 1013904223u;
    return Of<F>::real(state >> 8) * F(1.f / 16777216);
}
T3 F occlusion(const Hit<F> &h, typename Of<F>::U &state) {
    Vec3<F> p = h.p + h.n * F(0.0001f), n = h.n;
    F zero(0.f), one(1.f);
    Vec3<F> side = pick<F>(n.x < F(0.6f) && n.x > F(-0.6f), {one, zero, zero}, pick<F>(n.y < F(0.6f) && n.y > F(-0.6f), {zero, one, zero}, {zero, zero, one}));
    Vec3<F> u = unit(cross(side, n)), v = cross(n, u);
    F free(0.f);
    for (int j = 0; j < RAYS * RAYS; j++) {
        F r = Of<F>::root(next<F>(state)), s, c;
        Of<F>::trig(F(2.f * 3.14159265f) * next<F>(state), s, c);
        F x = c * r, y = s * r, rest = one - x * x - y * y;
        F z = Of<F>::root(Of<F>::pick(rest > zero, rest, zero));
        Hit<F> other = trace(p, u * x + v * y + n * z);
        free = Of<F>::pick(other.hit, free, free + one);
    }
    return free / F((float)(RAYS * RAYS));
}
T3 F pixel(F x, float y, typename Of<F>::U state) {
    F sum(0.f);
    for (int sy = 0; sy < SAMPLES; sy++)
        for (int sx = 0; sx < SAMPLES; sx++) {
            F px = (x + F((float)sx / SAMPLES - SIZE / 2.f)) / F(SIZE / 2.f), py(-(y + (float)sy / SAMPLES - SIZE / 2.f) / (SIZE / 2.f)), zero(0.f);
            Hit<F> h = trace<F>({zero, zero, zero}, unit<F>({px, py, F(-1.f)}));
            typename Of<F>::U after = state;
            if (Of<F>::any(h.hit)) {
                F o = occlusion(h, after);
                sum = Of<F>::pick(h.hit, sum + o, sum);
#if HAND
                if constexpr (std::is_same_v<F, V>) {
                    __mmask16 m = _mm512_cmp_ps_mask(static_cast<__m512>(Of<F>::pick(h.hit, F(1.f), F(0.f))), _mm512_setzero_ps(), _CMP_NEQ_OQ);
                    state = typename Of<F>::U(_mm512_mask_blend_epi32(m, static_cast<__m512i>(state), static_cast<__m512i>(after)));
                }
                else
#endif
                    state = after;
            }
        }
    return sum / F((float)(SAMPLES * SAMPLES));
}
__attribute__((noinline)) void scalar(float *out) {
    each(SIZE, 4, [=](int lo, int hi) {
        for (int y = lo; y < hi; y++)
            for (int x = 0; x < SIZE; x++) out[y * SIZE + x] = pixel<float>((float)x, (float)y, (uint32_t)(y * SIZE + x) * 747796405u + 2891336453u);
    });
}
#if HAND
__attribute__((noinline)) void hand(float *out) {
    each(SIZE, 4, [=](int lo, int hi) {
        for (int y = lo; y < hi; y++)
            for (int x = 0; x < SIZE; x += V::size()) {
                V vx([=](int l) { return (float)(x + l); });
                Of<V>::U state([=](int l) { return (uint32_t)(y * SIZE + x + l) * 747796405u + 2891336453u; });
                pixel<V>(vx, (float)y, state).copy_to(out + y * SIZE + x, stdx::element_aligned);
            }
    });
}
#endif
int main(int argc, char **argv) {
    std::map<std::string, void (*)(float *)> variants{{"scalar", scalar}};
#if HAND
    variants["hand"] = hand;
#endif
    auto run = chosen(variants, argc, argv);
    float *out = make<float>(SIZE * SIZE);
    measure([&] { run(out); });
    sums(SIZE * SIZE, [&](int i) { return (double)out[i]; });
}

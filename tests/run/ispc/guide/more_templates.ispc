// Templates over lengths, enumerations and conditions, with short vectors and arrays in them.
template <int N> float<N> func(float<N> a, float<N> b) {
    a += b;
    a *= 2.;
    bool<N> test = a < b;
    return test ? a : b;
}
template <typename T, int N> T total(T<N> v) { T s = 0; for (uniform int i = 0; i < N; ++i) s += v[i]; return s; }
template <typename T, int N> T sum_of(uniform int k) { T a[N]; for (uniform int i = 0; i < N; ++i) a[i] = i * k; T s = 0; for (uniform int i = 0; i < N; ++i) s += a[i]; return s; }
enum AB { A = 1, B = 2 };
template <AB ab> int baz(int a) { return a * ab; }
template <bool flip> int signed_of(int a) { return flip ? -a : a; }
template <int N> int foo(int a) { return a * N; }
template <typename T> int goo(T a1, T a2) { return a1 + a2; }
template <> int goo<int>(int a1, int a2);
static float useg(int a1, float a2) {
    float a = goo<int>(a1, (int)a2);
    double b = goo<double>((double)a1, (double)a2);
    return a + b;
}
template <> int goo<int>(int a1, int a2) { return a1 * a2; }
template <typename T> T add(T a, T b) { return a + b; }
template int add<int>(int a, int b);
export uniform bool test_templates() {
    float<3> a = { 1, 2, 3 }, b = { -4, 5, 6 };
    float<3> r = func<3>(a, b);
    int i1 = add<int>(1, 2);
    varying int i2 = add<varying int>(1, 2);
    uniform int i3 = add<uniform int>(1, 2);
    return all(r.x == -6 && r.y == 5) && all(baz<B>(3) == 6) && all(foo<2>(3) == 6) && all(useg(3, 4) == 12 + 7) && all(i1 + i2 == 6) && i3 == 3 && all(signed_of<true>(3) == -3) && sum_of<uniform int, 4>(2) == 12;
}
export uniform bool test_deduced() {
    int<4> v = { 1, 2, 3, programIndex };
    return all(total<int, 4>(v) == 6 + programIndex);
}
struct Pair { float x, y; };
template <typename T> static inline T lerp3(T t, T a, T b) { return (1 - t) * a + t * b; }
template <typename T> T clampT(T v, T lo, T hi) { return min(max(v, lo), hi); }
template <typename T, typename U> inline T cast_sum(T a, U b) { return a + (T)b; }
template <typename T> inline void swapT(T &a, T &b) { T t = a; a = b; b = t; }
template <typename T> uniform T sum_array(uniform T * uniform a, uniform int n) { T s = 0; foreach (i = 0 ... n) s += a[i]; return reduce_add(s); }
template <int N, typename T> void fill(uniform T a[], T v) { for (uniform int i = 0; i < N; ++i) a[i] = extract(v, 0); }
template <typename T> T twice(T x) { return x + x; }
template <> float twice<float>(float x) { return 100; }
template <typename T> T four(T x) { return twice<T>(x) + twice<T>(x); }
export uniform bool test_t() {
    float f = lerp3(0.5f, (float)programIndex, 10.f);
    uniform int u = clampT<uniform int>(50, 0, 10);
    Pair a = { 1, 2 }, b = { 3, 4 };
    swapT(a, b);
    uniform int arr[10];
    foreach (i = 0 ... 10) arr[i] = i;
    double s = cast_sum((varying double)1, programIndex);
    uniform int t = sum_array<int>(arr, 10);
    fill<3, int>(arr, (varying int)7);
    return all(f == 0.5f * programIndex + 5) && u == 10 && all(a.x == 3 && b.y == 2) && t == 45 && all(s == 1 + programIndex) && arr[2] == 7 && all(four<int>(2) == 8) && all(four<float>(2) == 200);
}

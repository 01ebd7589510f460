// Short vectors, structs, arrays, operators of structs.
typedef float<3> float3;
typedef int<2> int2;
typedef float<4> float4;
struct Ray { float3 o, d; float t; };
struct Box { uniform float3 lo; float3 hi; int2 n[2]; };
struct V { float x; int a[4]; };
struct Outer { V v; struct { float q; } in; uniform V u[2]; };
static float3 cross(float3 a, float3 b) { float3 r = { a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x }; return r; }
static uniform float dot(uniform float3 a, uniform float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
export uniform bool test_short() {
    float3 a = { 1, 2, 3 }, b = { programIndex, 1, 0 };
    float3 c = cross(a, b);
    uniform float3 u = { 1, 2, 3 };
    uniform float4 w = 2;
    float4 v = w * programIndex;
    int<3> i = { 1, 2, 3 };
    float3 f = i;
    i += 1;
    bool<3> m = a > b;
    a.xy = b.yx;
    a[2] = 7;
    uniform int<4> q = { 1, 2, 3, 4 };
    q <<= 1;
    float s = v.x + v[1] + v.b + v.w;
    float<1> one = { 5 };
    uniform unsigned int8<4> rgba = { 255, 0, 1, 2 };
    float3 sel = m.x ? a : b;
    return all(c.x == -3) && dot(u, u) == 14 && all(s == 8 * programIndex) && all(f.z == 3) && all(i.y == 3) && all(a.x == 1 && a.y == programIndex && a.z == 7) && q.w == 8 && all(one.x == 5) && rgba.r == 255
        && all(sel.z == ((1 > programIndex) ? 7 : 0)) && w.w == 2;
}
export uniform bool test_structs() {
    Ray r = { { 0, 0, 0 }, { 1, 0, 0 }, 1e30 };
    r.o += r.d * 2;
    Box b;
    b.lo = 1;
    b.hi = b.lo + programIndex;
    b.n[1].y = 4;
    Outer o = { { 1, { 1, 2, 3, 4 } }, { 5 }, { { 6, { 7 } } } };
    uniform Outer uo = { { 1, { 1, 2, 3, 4 } }, { 5 }, { { 6, { 7 } } } };
    Outer copy = o;
    copy.v.a[programIndex & 3] = 9;
    Outer z = uo;
    uniform Ray rays[3] = { { { 0 } } };
    rays[1].d.y = 5;
    Ray mine = rays[1];
    return all(r.o.x == 2 && b.hi.z == 1 + programIndex && b.n[1].y == 4) && all(o.v.a[3] == 4 && o.in.q == 5) && o.u[0].x == 6 && o.u[0].a[0] == 7 && all(copy.v.a[programIndex & 3] == 9) && all(z.v.a[2] == 3)
        && all(mine.d.y == 5) && sizeof(uniform Ray) == 28;
}
export uniform bool test_arrays() {
    uniform int a[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    int b[] = { 1, 2, 3 };
    float c[3][4];
    for (uniform int i = 0; i < 3; ++i) for (uniform int j = 0; j < 4; ++j) c[i][j] = i * j + programIndex;
    int k = programIndex % 3;
    b[k] += 10;
    uniform float m[4][4];
    foreach (i = 0 ... 4, j = 0 ... 4) m[i][j] = i == j ? 1.f : 0.f;
    uniform int big[1000];
    uniform int total = 0;
    for (uniform int i = 0; i < 1000; ++i) big[i] = i;
    int part = 0;
    foreach (i = 0 ... 1000) part += big[i];
    total = reduce_add(part);
    varying int lanes[2] = { programIndex, 2 };
    return a[1][2] == 6 && all(b[k] == k + 11) && all(c[2][3] == 6 + programIndex) && all(c[k][1] == k + programIndex) && m[2][2] == 1 && m[2][3] == 0 && total == 499500 && all(lanes[0] == programIndex);
}
static uniform int sum_rows(uniform int a[][3], uniform int rows) { uniform int s = 0; for (uniform int i = 0; i < rows; ++i) for (uniform int j = 0; j < 3; ++j) s += a[i][j]; return s; }
static void fill(float a[], uniform int n) { for (uniform int i = 0; i < n; ++i) a[i] = i + programIndex; }
export uniform bool test_array_params() {
    uniform int a[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    float f[4];
    fill(f, 4);
    return sum_rows(a, 2) == 21 && all(f[3] == 3 + programIndex);
}
struct Complex { float re, im; };
Complex operator+(Complex a, Complex b) { Complex c = { a.re + b.re, a.im + b.im }; return c; }
Complex operator*(const Complex &a, const Complex &b) { Complex c = { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re }; return c; }
uniform Complex operator-(uniform Complex a, uniform Complex b) { uniform Complex c = { a.re - b.re, a.im - b.im }; return c; }
export uniform bool test_operators() {
    Complex i = { 0, 1 }, one = { 1, 0 };
    Complex r = i * i + one;
    uniform Complex u = { 3, 4 }, w = { 1, 1 };
    uniform Complex d = u - w;
    return all(r.re == 0 && r.im == 0) && d.im == 3;
}

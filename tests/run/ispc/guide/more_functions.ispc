// Functions that a block declares, loops over values that differ, of enumerations and pointers too; functions in tables.
static uniform int seen = 0;
void func(uniform int v) { seen += v; }
enum E { A = 1, B = 2 };
export uniform bool test_unique() {
    int x = min(programIndex, 2);
    foreach_unique (val in x) { extern void func(uniform int v); func(val); }
    E e = programIndex & 1 ? A : B;
    uniform int n = 0;
    foreach_unique (v in e) { n += v; }
    float f = programIndex / 2;
    uniform float s = 0;
    foreach_unique (u in f) { s += u; }
    uniform int arr[2] = { 5, 6 };
    uniform int * p = &arr[programIndex & 1];
    uniform int t = 0;
    foreach_unique (q in p) { t += *q; }
    return seen == 3 && n == 3 && t == 11 && s == (programCount / 2) * (programCount / 2 - 1) / 2;
}
typedef uniform float (*Fn)(uniform float);
static uniform float dbl(uniform float x) { return 2 * x; }
static uniform float neg(uniform float x) { return -x; }
struct Table { uniform Fn f[2]; uniform float k; };
static uniform float run(uniform Fn f, uniform float x) { return f(x); }
typedef float (*VFn)(float, float);
static float addf(float a, float b) { return a + b; }
static float mulf(float a, float b) { return a * b; }
static float reduce_with(uniform VFn f, uniform float a[], uniform int n) { float r = a[0]; for (uniform int i = 1; i < n; ++i) r = f(r, a[i]); return r; }
export uniform bool test_fn_tables() {
    uniform Table t;
    t.f[0] = dbl; t.f[1] = neg; t.k = 3;
    uniform float a[3] = { 2, 3, 4 };
    VFn v = programIndex & 1 ? mulf : addf;
    float r = v(3, 4);
    uniform Fn none = NULL;
    return t.f[0](t.k) == 6 && run(t.f[1], 2) == -2 && all(reduce_with(mulf, a, 3) == 24) && all(r == (programIndex & 1 ? 12 : 7)) && none == NULL && t.f[0] != none;
}
struct P { float x; int y; };
static P pick(bool c, P a, P b) { return c ? a : b; }
export uniform bool test_choose_structs() {
    P a = { 1, 2 }, b = { 3, 4 };
    P c = programIndex & 1 ? a : b;
    P d = pick(programIndex > 0, a, b);
    uniform P ua = { 5, 6 }, ub = { 7, 8 };
    uniform P uc = programCount > 1 ? ua : ub;
    P e = programIndex == 0 ? ua : b;
    float<3> v = { 1, 2, 3 }, w = 0;
    float<3> s = programIndex == 0 ? v : w;
    return all(c.y == (programIndex & 1 ? 2 : 4)) && all(d.x == (programIndex > 0 ? 1 : 3)) && uc.y == 6 && extract(e.x, 0) == 5 && extract(s.z, 0) == 3 && extract(s.z, 1) == 0;
}
export uniform bool test_null_or() {
    uniform float x = 3;
    float *q = programIndex & 1 ? &x : NULL, *r = programIndex & 1 ? NULL : &x, *s = programIndex & 1 ? &x : 0;
    float y = 0;
    if (q) y = *q;
    if (r != NULL) y += 10 * *r;
    return all(y == (programIndex & 1 ? 3 : 30)) && all(s == q);
}

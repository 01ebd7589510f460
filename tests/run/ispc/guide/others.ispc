// Calls to and fro, conversions, operators, gather and scatter, kinds of structs, `print`, macros.
extern "C" { uniform float plain(uniform float x) { return x + 1; } }
extern "C" uniform int called_from_c(uniform int a[], uniform int n) { return a[n - 1]; }
export void scale(uniform float a[], uniform int n) { foreach (i = 0 ... n) a[i] *= 2; }
export void lanes_of(varying float * uniform p, uniform int n) { for (uniform int i = 0; i < n; ++i) p[i] += programIndex; }
inline float lerp(float t, float a, float b) { return (1 - t) * a + t * b; }
inline uniform float lerp(uniform float t, uniform float a, uniform float b) { return (1 - t) * a + t * b; }
static float with_default(float a, uniform int n = 3, float b = 1.f) { return a * n + b; }
noinline static int not_inlined(int a) { return a + 1; }
static inline varying int masked_sum(varying int x) { return reduce_add(x); }
export uniform bool test_calls() {
    uniform float a[5] = { 1, 2, 3, 4, 5 };
    scale(a, 5);
    uniform int b[2] = { 7, 8 };
    varying float l[2] = { 1, 2 };
    lanes_of(l, 2);
    float f = lerp(0.5f, 0.f, programIndex);
    uniform float u = lerp(0.5f, 0.f, 4.f);
    return a[4] == 10 && plain(2) == 3 && called_from_c(b, 2) == 8 && all(l[1] == 2 + programIndex) && all(f == 0.5f * programIndex) && u == 2 && all(with_default(2.f) == 7) && all(with_default(2.f, 1) == 3) && all(not_inlined(programIndex) == programIndex + 1);
}
export uniform bool test_conversions() {
    int i = -1;
    unsigned int u = i;
    int8 c = 200;
    unsigned int8 d = 300;
    float f = 3.9f;
    int g = f;
    int16 h = -5;
    int64 w = h;
    double e = f;
    uniform float16 k = 0.5;
    float m = k;
    bool b = 3;
    uniform unsigned int8 x = 250;
    uniform int y = x + 10;
    uniform unsigned int8 z = x + 10;
    return all(u == 0xffffffff) && all(c == -56) && all(d == 44) && all(g == 3) && all(w == -5) && all(e > 3.8d) && all(m == 0.5f) && all(b) && z == 4 && all((int)(-2.7f) == -2) && all((unsigned int)3.7f == 3) && (uniform int8)257 == 1;
}
export uniform bool test_operators() {
    int a = 7, b = 2;
    a += b; a -= 1; a *= 3; a /= 2; a %= 7; a <<= 3; a >>= 1; a |= 3; a &= 0x1e; a ^= 1;
    int t = programIndex > 2 ? 1 : programIndex > 1 ? 2 : 3;
    uniform int u = (1, 2);
    int q = a-- - --a;
    bool c = !(programIndex == 0) && (programIndex < 3 || programIndex > 5);
    float d = -programIndex, e = +1.5f;
    int neg = ~programIndex;
    return all(neg == -programIndex - 1) && u == 2 && all(t == (programIndex > 2 ? 1 : programIndex == 2 ? 2 : 3)) && all(d == -programIndex) && all(c == (programIndex == 1 || programIndex == 2 || programIndex > 5)) && all(q == 2) && all(e == 1.5f);
}
static int counted;
static void effect(int x) { counted += x; }
export uniform bool test_short_circuit() {
    counted = 0;
    uniform float a[4] = { 1, 2, 3, 4 };
    int i = programIndex;
    float v = 0;
    if (i < 4 && a[i] > 2) v = a[i];
    if (i >= 4 || a[i] < 2) v -= 1;
    effect(i < 2 ? 1 : 0);
    return all(v == (i < 4 ? (i > 1 ? i + 1 : i == 0 ? -1 : 0) : -1)) && all(counted == (i < 2 ? 1 : 0));
}
export uniform bool test_gather_scatter() {
    uniform int a[256], b[256];
    foreach (i = 0 ... 256) { a[i] = 255 - i; b[i] = 0; }
    foreach (i = 0 ... 256) b[a[i]] = i * 2;
    foreach (i = 0 ... 128) { int k = a[i * 2]; b[i] += k; }
    uniform int8 small[64];
    uniform double wide[64];
    foreach (i = 0 ... 64) { small[63 - i] = i; wide[63 - i] = i; }
    int s = 0;
    foreach (i = 0 ... 64) { s += small[i]; s += (int)wide[63 - i]; }
    return b[255] == 0 && b[200] == 110 && b[0] == 510 + 255 && reduce_add(s) == 4032;
}
struct Forward;
struct Forward { int a; uniform Forward * uniform next; };
static const uniform struct { int a; int b; } anonymous = { 1, 2 };
export uniform bool test_struct_kinds() {
    uniform Forward f = { 1, NULL }, g = { 2, &f };
    struct { float q; int r; } local = { 1, programIndex };
    return g.next->a == 1 && all(local.r == programIndex) && anonymous.b == 2;
}
export uniform bool test_lane_loops() {
    int total = 0;
    for (int i = programIndex; i < 100; i += programCount) total += i;
    uniform int n = reduce_add(total);
    int depth = 0;
    for (int i = 0; i <= programIndex; ++i) { for (int j = 0; j < i; ++j) { if (j == 3) break; depth++; } if (i > 5) break; }
    float x = 1;
    uniform int rounds = 0;
    while (any(x < 100)) { if (x < 100) x *= 2 + programIndex % 2; rounds++; }
    return n == 4950 && rounds == 7 && all(depth <= 3 * programIndex);
}
export uniform bool test_print() {
    print("hello % and % %\n", programIndex, 1.5f, true);
    if (programIndex < 2) print("%\n", programIndex);
    print("no values\n");
    print("% % %\n", 5ll, 2.5d, (unsigned int8)7);
    return true;
}
#if defined(ISPC) && TARGET_WIDTH == TARGET_WIDTH
#define YES 1
#endif
#ifdef ISPC_UINT_IS_DEFINED
static uint32 a32 = 1; static uint8 a8 = 2; static uint64 a64 = 3; static uint16 a16 = 4; static uint au = 5;
#endif
export uniform bool test_macros() { return YES && PI > 3.14f && all(a32 + a8 + a16 + au == 12) && TARGET_WIDTH == programCount && TARGET_ELEMENT_WIDTH >= 1; }

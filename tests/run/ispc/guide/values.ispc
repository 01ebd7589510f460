// Literals, enumerations, names of types, variables of files, `bool`.
enum Color { RED, GREEN = 4, BLUE };
enum Shape { ROUND = 10, SQUARE = ROUND * 2 + 1, };
typedef enum { ONE = 1, TWO } Count;
static uniform int pick(uniform Color c) { return 1; }
static uniform int pick(uniform float s) { return 3; }
export uniform bool test_enums() {
    uniform Color c = BLUE;
    Color v = (programIndex & 1) ? RED : GREEN;
    enum Shape s = SQUARE;
    uniform Count n = TWO;
    uniform int k = c;
    uniform Color d = (uniform Color)4;
    return k == 5 && d == GREEN && all(v == RED || v == GREEN) && all(s == 21) && n == 2 && pick(RED) == 1 && pick(1.f) == 3 && sizeof(uniform Color) == 4;
}
export uniform bool test_literals() {
    uniform double a = 1.5d, b = 2d, c = 1.d-3, d = 1.5d3, e = 1e3;
    uniform float f = 1e-2, g = .5, h = 2., i = 0x1p-4, j = 0x1.8p1f, k = 1E+2f;
    uniform int64 l = 5000000000, m = 1ll, n = 0xffffffffffull;
    uniform unsigned int o = 0b1010u, p = 4000000000, q = 2ku, r = 1M;
    uniform float16 s = 1.5f16;
    return a == 1.5d && b == 2 && c == 0.001d && d == 1500 && e == 1000 && f == 1e-2f && g == 0.5f && h == 2 && i == 0.0625f && j == 3 && k == 100
        && l == 5000000000ll && m == 1 && n == 1099511627775 && o == 10 && p == 4000000000u && q == 2048 && r == 1048576 && s == 1.5f16;
}
typedef float<3> float3;
typedef uniform float ufloat;
typedef float * uniform FP;
typedef const uniform int cui;
export uniform bool test_typedefs() {
    ufloat a = 3;
    const uniform int n = 4;
    cui k = 4;
    float x = programIndex;
    uniform float arr[n];
    for (uniform int i = 0; i < n; ++i) arr[i] = i;
    float3 v = { 1, 2, 3 };
    uniform float3 w = { 4, 5, 6 };
    typedef struct { int a; float b; } Local;
    Local l = { 2, 3.5 };
    uniform Local m = { 5, 6 };
    return a == 3 && k == 4 && arr[3] == 3 && all(v.z == 3) && w.y == 5 && all(l.a == 2 && l.b == 3.5f) && m.b == 6;
}
const uniform int SIZE = 8;
static const int VS = 4;
static uniform float table[SIZE] = { 1, 2, 3 };
static float lanes = 3;
static varying int counter;
uniform int shared = 7;
export uniform bool test_globals() {
    uniform int a[VS];
    a[3] = 9;
    lanes += programIndex;
    counter++;
    return table[2] == 3 && table[7] == 0 && all(lanes == 3 + programIndex) && all(counter == 1) && shared == 7 && a[3] == 9;
}
export uniform bool test_bools() {
    bool b = programIndex < 2;
    uniform bool u = true;
    int n = b;
    uniform int k = u + 1;
    bool c = (bool)programIndex;
    uniform bool arr[3] = { true, false, true };
    b |= true;
    b &= c;
    return k == 2 && all((n == 1) == (programIndex < 2)) && all(b == (programIndex != 0)) && arr[2] && !arr[1] && sizeof(uniform bool) == 1 && (u ^ false);
}

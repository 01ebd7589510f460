// Which function a call means: a wider type is nearer than a value for all lanes, that nearer than another conversion. Enumerations are integers.
static uniform int f(int a) { return 1; }
static uniform int f(float a) { return 2; }
static uniform int f(uniform float a) { return 3; }


static uniform int h(uniform int a, uniform int b) { return 1; }
static uniform int h(int a, int b) { return 2; }


static uniform int m(const int &a) { return 1; }
static uniform int m(float a) { return 2; }
static float bar(uniform float f) { return 1; }
static float bar(varying float f) { return 2; }
export uniform bool test_ranks() {
    int v = programIndex; uniform int u = 3; float x = 1;
    return f(v) == 1 && f(u) == 1 && f(1.5f) == 3 && f(x) == 2 && h(1, 2) == 1 && h(v, 1) == 2 && m(v) == 1 && m(x) == 2 && all(bar((float)u) == 1) && all(bar((varying float)u) == 2);
}
enum Color { RED, GREEN, BLUE };
enum Flags { UNINITIALIZED = 0, INITIALIZED = 2, CACHED = 4 };
static uniform int which(uniform int x) { return 1; }
static uniform int which(uniform float x) { return 2; }
static uniform int which(uniform int64 x) { return 3; }
static int wv(int x) { return 1 + x; }
static int wv(float x) { return 100; }
static int8 small(int8 x) { return 1; }
static int8 small(uniform unsigned int x) { return 2; }
export uniform bool test_enums() {
    uniform Color c = GREEN;
    Color v = BLUE;
    Color w = (Color)CACHED;
    c++;
    ++v;
    uniform int next = c + 1;
    c = (uniform Color)(next - 2);
    v = (Color)(v - 1);
    return which(c) == 1 && which(RED) == 1 && all(wv(v) == 3) && c == GREEN && all(w == 4) && max(c, BLUE) == 2 && (c | BLUE) == 3 && abs(c) == 1 && all(clamp((int)v, 0, 1) == 1);
}

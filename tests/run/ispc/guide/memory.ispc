// `new` and `delete`, `sizeof`, tasks, templates.
struct T { int a; float b; };
export uniform bool test_new() {
    uniform int * uniform a = uniform new uniform int[10];
    for (uniform int i = 0; i < 10; ++i) a[i] = i;
    uniform int * p = new uniform int[4];
    p[2] = programIndex;
    int r = p[2];
    delete[] p;
    delete[] a;
    varying T * uniform t = uniform new varying T;
    t->a = programIndex;
    int s = t->a;
    delete t;
    uniform T * uniform u = uniform new uniform T;
    u->b = 2;
    uniform float ub = u->b;
    delete u;
    uniform int * uniform one = uniform new uniform int(5);
    int v = *one;
    delete one;
    uniform float * q = new uniform float(programIndex);
    float w = *q;
    delete q;
    float * vv = new float;
    delete vv;
    uniform int * uniform big = uniform new uniform int[programCount * 2 + 1];
    big[programCount * 2] = 1;
    delete big;
    return all(r == programIndex && s == programIndex && v == 5 && w == programIndex) && ub == 2;
}
export uniform bool test_sizeof() {
    int x;
    uniform int arr[7];
    return sizeof(x) == 4 * programCount && sizeof(uniform T) == 8 && sizeof(T) == 8 * programCount && sizeof(arr) == 28 && sizeof(uniform int64) == 8 && sizeof(varying float) == 4 * programCount && sizeof(uniform float * uniform) == 8
        && sizeof arr == 28 && sizeof(float16) == 2 * programCount;
}
task void fill(uniform int a[], uniform int by) { a[taskIndex] = taskIndex * by + taskCount; }
task void fill3(uniform int a[]) { a[(taskIndex2 * taskCount1 + taskIndex1) * taskCount0 + taskIndex0] = taskIndex; }
export uniform bool test_tasks() {
    uniform int a[8], b[24];
    launch[8] fill(a, 3);
    sync;
    launch[2, 3, 4] fill3(b);
    launch[2][3][4] fill3(b);
    sync;
    launch fill(a, 0);
    sync;
    uniform bool fine = a[0] == 1 && a[7] == 29;
    for (uniform int i = 0; i < 24; ++i) fine = fine && b[i] == i;
    return fine;
}
template <typename T> T maximum(T a, T b) { return a > b ? a : b; }
template <typename T, int N> noinline T sum(uniform T a[N]) { T s = 0; for (uniform int i = 0; i < N; ++i) s += a[i]; return s; }
template <typename T> inline T twice(T x);
template <typename T> inline T twice(T x) { return x + x; }
template <> inline int twice<int>(int x) { return 100; }
template float twice<float>(float x);
template <typename A, typename B> varying A convert(varying B b) { return (A)b; }
template <int N> uniform int power(uniform int x) { uniform int r = 1; for (uniform int i = 0; i < N; ++i) r *= x; return r; }
template <typename T> void addto(uniform T a[], uniform int n, T v) { foreach (i = 0 ... n) a[i] += v; }
export uniform bool test_templates() {
    int a = maximum(programIndex, 3);
    float b = maximum<float>(1, 2.5f);
    uniform double c = maximum<uniform double>(2, 3);
    uniform float arr[3] = { 1, 2, 3 };
    int d = convert<int>(2.7f);
    addto<float>(arr, 3, 1.f);
    return all(a == (programIndex > 3 ? programIndex : 3)) && all(b == 2.5f) && c == 3 && all(twice(2.f) == 4) && all(twice(programIndex) == 100) && all(d == 2) && power<5>(2) == 32 && arr[2] == 4;
}

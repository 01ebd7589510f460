// Pointers, references, pointers to functions; in each lane, too.
struct Node { uniform int value; Node * uniform next; };
struct P { float x, y; };
typedef int (*Fn)(int, int);
typedef uniform float (*UFn)(uniform float);
static int add(int a, int b) { return a + b; }
static int mul(int a, int b) { return a * b; }
static uniform float twice(uniform float x) { return 2 * x; }
static int apply(Fn f, int a, int b) { return f(a, b); }
static int apply_u(uniform Fn f, int a) { return f(a, a); }
export uniform bool test_function_pointers() {
    Fn f = add;
    uniform Fn g = mul;
    if (programIndex & 1) f = mul;
    int r = f(3, 4);
    UFn h = twice;
    uniform Fn table[2] = { add, mul };
    int s = table[programIndex & 1](5, 6);
    Fn none = NULL;
    int (*raw)(int, int) = &add;
    return all(r == ((programIndex & 1) ? 12 : 7)) && all(g(2, 5) == 10) && all(h(2.f) == 4) && all(apply(f, 1, 1) == ((programIndex & 1) ? 1 : 2)) && all(apply_u(g, 3) == 9)
        && all(s == ((programIndex & 1) ? 30 : 11)) && all(none == NULL) && all(raw(1, 2) == 3);
}
static void bump(int &x) { x += 1; }
static void bump_u(uniform int &x) { x += 1; }
static void bump_p(varying int * uniform p) { *p += 2; }
static void swap(float &a, float &b) { float t = a; a = b; b = t; }
export uniform bool test_references() {
    int a = programIndex;
    uniform int b = 4;
    bump(a);
    bump_u(b);
    if (programIndex == 0) bump(a);
    bump_p(&a);
    float x = 1, y = programIndex;
    swap(x, y);
    int &r = a;
    r += 10;
    uniform int arr[4] = { 1, 2, 3, 4 };
    uniform int &e = arr[2];
    e = 30;
    bump_u(arr[1]);
    P p = { 1, 2 };
    swap(p.x, p.y);
    return all(a == programIndex + 13 + (programIndex == 0 ? 1 : 0)) && b == 5 && all(x == programIndex && y == 1) && arr[2] == 30 && arr[1] == 3 && all(p.x == 2 && p.y == 1);
}
export uniform bool test_pointers() {
    uniform float a[32];
    for (uniform int i = 0; i < 32; ++i) a[i] = i;
    uniform float * uniform p = a;
    uniform float * varying q = &a[programIndex];
    float v = *q;
    q += 2;
    *q += 100;
    uniform float * uniform end = p + 32;
    uniform int n = 0;
    while (p != end) { n++; p++; }
    uniform float * uniform z = NULL;
    uniform int64 d = end - &a[0];
    void * uniform vp = a;
    uniform float * uniform back = (uniform float * uniform)vp;
    const uniform float * uniform cp = a;
    int64 dd = q - &a[0];
    uniform int bits = (uniform int)*(uniform int * uniform)&a[1];
    varying float * uniform vr = &v;
    *vr += 1;
    vr[0] += 1;
    P pts = { 3, 4 };
    varying P * uniform pp = &pts;
    pp->x += pp->y;
    uniform P arr[4];
    uniform P * pv = &arr[programIndex & 3];
    pv->x = programIndex & 3;
    (*pv).y = 2 * pv->x;
    return all(v == programIndex + 2) && n == 32 && z == NULL && !z && d == 32 && back[3] == 103 - (programCount > 1 ? 0 : 100) && cp[0] == 0 && all(dd == programIndex + 2) && bits == 0x3f800000
        && all(pts.x == 7) && arr[programCount > 2 ? 1 : 1].y == 2;
}
export uniform bool test_lists() {
    uniform Node nodes[3];
    for (uniform int i = 0; i < 3; ++i) { nodes[i].value = i; nodes[i].next = i < 2 ? &nodes[i + 1] : NULL; }
    uniform int sum = 0;
    for (uniform Node * uniform n = &nodes[0]; n != NULL; n = n->next) sum += n->value;
    uniform Node * varying v = &nodes[programIndex % 3];
    int vs = 0;
    while (v != NULL) { vs += v->value; v = v->next; }
    return sum == 3 && all(vs == (programIndex % 3 == 2 ? 2 : 3));
}
export uniform bool test_pointer_casts() {
    uniform int a = 5;
    uniform int64 n = (uniform int64)&a;
    uniform int * uniform p = (uniform int * uniform)n;
    uniform intptr_t m = (uniform intptr_t)p;
    uniform int8 bytes[8];
    *(uniform int * uniform)&bytes[4] = 0x01020304;
    int64 vn = (int64)&a;
    return *p == 5 && m == n && bytes[4] == 4 && all(vn == n);
}

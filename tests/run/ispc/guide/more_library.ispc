// More of the library: conditions without branches, bits of conditions, atomic operations of pointers; tasks by rows and columns; macros with optional parts.
export uniform bool test_popcnt() {
    uniform bool t = true, f = false;
    uniform int n = popcnt(t);
    uniform int m = popcnt(f);
    bool v = programIndex < 3;
    return n >= 1 && m == 0 && popcnt(v) == min(3, programCount) && popcnt(true) >= 1 && popcnt(0xffffffffffULL) == 40 && popcnt((uniform int8)3) == 2;
}
export uniform bool test_logic() {
    bool a = programIndex > 1, b = programIndex < 3;
    bool c = and(a, b), d = or(a, b);
    uniform bool u = and(true, false), w = or(true, false);
    int s = sign_extend(a);
    uniform int us = sign_extend(true);
    return all(c == (programIndex == 2)) && all(d) && !u && w && all(s == (programIndex > 1 ? -1 : 0)) && us == -1;
}
#define PRINT(fmt, ...) print(fmt, __VA_ARGS__)
#define EPRINT(fmt, ...) print(fmt __VA_OPT__(,) __VA_ARGS__)
#ifndef ISPC_ATTRIBUTE_SUPPORTED
#error no attributes
#endif
#if LLVM_VERSION_MAJOR < 10
#error llvm
#endif
export uniform bool test_va() {
    PRINT("% % %\n", 0, 1, 2);
    EPRINT("Hello, World!\n");
    EPRINT("one %\n", 1);
    return true;
}
export uniform bool test_atomics() {
    uniform int counter = 0;
    int mine = atomic_add_global(&counter, (varying int32)1);
    uniform int once = atomic_add_global(&counter, 1);
    uniform float f = 0;
    atomic_add_local(&f, (float)1);
    atomic_min_global(&f, -3.f);
    uniform double d = 1;
    atomic_swap_local(&d, 2.5d);
    atomic_max_local(&d, 7d);
    uniform uint64 u = 1;
    atomic_xor_local(&u, (uint64)3);
    uniform int64 l = 10;
    atomic_subtract_global(&l, (int64)3);
    uniform int a = 1, b = 2;
    uniform int * uniform p = &a;
    uniform int * uniform old = (uniform int * uniform)atomic_swap_global((void * * uniform)&p, (void * uniform)&b);
    uniform float was = atomic_compare_exchange_local(&f, -3.f, 9.f);
    int v = atomic_compare_exchange_global(&counter, programCount + 1, (varying int)5);
    uniform int counts[4] = { 0, 0, 0, 0 };
    atomic_add_local(&counts[programIndex & 3], 1);
    return once == programCount && all(mine < programCount) && f == 9 && d == 7 && u == 2 && l == 7 && *p == 2 && *old == 1 && was == -3 && counter == 5 && counts[0] == (programCount + 3) / 4;
}
export uniform bool test_new() {
    int count = programIndex + 1;
    int *ptr = new int[count];
    for (int i = 0; i < count; ++i) ptr[i] = i;
    int last = ptr[count - 1];
    delete[] ptr;
    uniform float * uniform p1 = uniform new uniform float[10];
    float * uniform p2 = uniform new float[10];
    float * p3 = new float[10];
    varying float * p4 = new varying float[10];
    p1[9] = 1;
    p3[1] = 2;
    delete[] p1;
    delete[] p3;
    delete p2;
    delete[] p4;
    return all(last == programIndex);
}
struct Corner { float x, y, z; };
export uniform bool test_new_init() {
    Corner *pptr = new Corner(10, 20, 30);
    float s = pptr->x + pptr->y + pptr->z;
    delete pptr;
    uniform Corner * uniform q = uniform new uniform Corner(1, 2, 3);
    uniform float t = q->z;
    delete q;
    return all(s == 60) && t == 3;
}
task void grid(uniform int data[]) { data[taskIndex2 * 6 + taskIndex1 * 2 + taskIndex0] = taskIndex; }
task void plain(uniform int a[], uniform int i) { a[i] = i * i; }
export uniform bool test_launches() {
    uniform int data[24], a[10];
    launch [4][3][2] grid(data);
    sync;
    for (uniform int i = 0; i < 24; ++i) if (data[i] != i) return false;
    for (uniform int i = 0; i < 24; ++i) data[i] = 0;
    launch [2,3,4] grid(data);
    sync;
    for (uniform int i = 0; i < 24; ++i) if (data[i] != i) return false;
    for (uniform int i = 0; i < 10; ++i) launch plain(a, i);
    sync;
    return a[9] == 81;
}

// Types without a word have lanes, in SIMD mode, and other code calls what is exported. What is tested depends on no number of lanes.
static inline bool same(int v, int w) { return v == w; }

export uniform int width() { return programCount; }
//? width() >= 2

export void squares(uniform float a[], uniform int n) {
    for (uniform int i = 0; i < n; i += programCount) {
        int k = i + programIndex;
        if (k < n) {
            float x = a[k];
            a[k] = x * x;
        }
    }
}
export uniform bool test_squares() {
    uniform float a[37];
    for (uniform int i = 0; i < 37; ++i) a[i] = i;
    squares(a, 35);
    uniform bool fine = a[35] == 35 && a[36] == 36;
    for (uniform int i = 0; i < 35; ++i) fine = fine && a[i] == i * i;
    return fine;
}

// Lanes leave functions, loops and branches one by one.
int collatz(int n) {
    int steps = 0;
    while (n != 1) {
        if (n % 2 == 0) n /= 2;
        else n = 3 * n + 1;
        ++steps;
        if (steps > 1000) return -1;
    }
    return steps;
}
uniform int collatz_of_one(uniform int n) {
    uniform int steps = 0;
    while (n != 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        ++steps;
    }
    return steps;
}
export uniform bool test_collatz() {
    int steps = collatz(1 + programIndex);
    uniform bool fine = true;
    for (uniform int i = 0; i < programCount; ++i) fine = fine && extract(steps, i) == collatz_of_one(1 + i);
    return fine;
}

// Conversions: small integers stay small, numbers with a point are floats.
export uniform bool test_numbers() {
    uniform int8 a = 100;
    uniform unsigned int8 b = 200;
    uniform unsigned int16 c = 65535;
    uniform uint64 d = 0xffffffffffffffff;
    uniform double e = 1.5d;
    uniform float f = 0x1.8p1, g = .5f, h = 1e2;
    uniform int big = 2k + 1M;
    uniform int64 long_one = 1l;
    int x = programIndex;
    uniform bool fine = sizeof(a + a) == 1 && sizeof(b) == 1 && sizeof(1.5) == 4 && sizeof(1.5d) == 8 && sizeof(x) == 4 * programCount;
    return fine && b == 200 && c == 65535 && d + 1 == 0 && e == 1.5 && f == 3 && g == 0.5 && h == 100 && big == 1050624 && long_one == 1;
}

// Pointers and references.
void add_one(float &x) { x += 1; }
void swap(uniform int &a, uniform int &b) {
    uniform int t = a;
    a = b;
    b = t;
}
export uniform bool test_pointers() {
    uniform int a[4] = { 10, 20, 30, 40 };
    int i = programIndex % 4;
    uniform int * p = &a[i];
    int v = *p;
    uniform int * uniform q = a + 1;
    float x = v;
    add_one(x);
    swap(a[0], a[3]);
    int * uniform r = a;
    return all(v == 10 + 10 * i) && q[1] == 30 && all(x == v + 1) && a[0] == 40 && r[3] == 10;
}

// Structs: fields without a word follow the variable.
struct Point {
    float x, y;
    uniform int count;
    int own[2];
};
float length2(Point p) { return p.x * p.x + p.y * p.y; }
export uniform bool test_structs() {
    uniform Point one = { 3, 4, 7, { 1, 2 } };
    Point all_of_them;
    all_of_them.x = programIndex;
    all_of_them.y = 1;
    all_of_them.count = 5;
    all_of_them.own[1] = programIndex;
    Point copied = one;
    return one.count == 7 && one.own[1] == 2 && all(length2(all_of_them) == programIndex * programIndex + 1)
        && all_of_them.count == 5 && all(all_of_them.own[1] == programIndex) && all(length2(copied) == 25);
}
enum Color { Red, Green = 5, Blue };
typedef float Number;
typedef uniform float One;
export uniform bool test_names() {
    Color c = Blue;
    uniform Color d = Green;
    Number n = programIndex;
    One one = 3;
    const uniform Number k = 2;
    return all(c == 6) && d == 5 && all(n == programIndex) && one == 3 && k == 2;
}

// Overloads, defaults, operators.
uniform int kind(uniform int x) { return 1; }
uniform int kind(int x) { return 2; }
uniform int kind(float x) { return 3; }
uniform int scaled(uniform int x, uniform int by = 10, uniform int more = 1) { return x * by + more; }
struct Complex { float re, im; };
Complex operator+(Complex a, Complex b) {
    Complex c = { a.re + b.re, a.im + b.im };
    return c;
}
export uniform bool test_overloads() {
    Complex a = { 1, 2 }, b = { programIndex, 1 };
    Complex c = a + b;
    return kind(1) == 1 && kind(programIndex) == 2 && kind(1.5f + programIndex) == 3 && scaled(2) == 21 && scaled(2, 3) == 7
        && scaled(2, 3, 4) == 10 && all(c.re == 1 + programIndex) && all(c.im == 3);
}
template <typename T> T twice(T x) { return x + x; }
template <typename T, int N> noinline T power(T x) {
    T result = 1;
    for (uniform int i = 0; i < N; ++i) result *= x;
    return result;
}
export uniform bool test_templates() {
    uniform int one = twice(3);
    float many = twice((float)programIndex);
    return one == 6 && all(many == 2 * programIndex) && all(power<float, 3>(programIndex + 1.f) == (programIndex + 1) * (programIndex + 1) * (programIndex + 1));
}

// Functions through pointers, the same one or another one in each lane.
typedef float (*Function)(float);
float half_of(float x) { return x / 2; }
float double_of(float x) { return x * 2; }
export uniform bool test_function_pointers() {
    uniform Function f = half_of;
    float x = programIndex;
    Function g = half_of;
    if (programIndex % 2 == 0) g = double_of;
    float y = g(x);
    return all(f(x) == x / 2) && all(y == (programIndex % 2 == 0 ? 2 * x : x / 2));
}

#ifdef ISPC
#define COUNT 3
#endif
static uniform int calls = 0;
int counted(int x) {
    static uniform int all_calls = 0;
    ++calls;
    return x + ++all_calls;
}
export uniform bool test_statics() {
    uniform int before = calls;
    int x = 0;
    for (uniform int i = 0; i < COUNT; ++i) x = counted(i);
    return calls == before + 3 && all(x >= 5) && PI > 3.14;
}

// Places of each lane in what has lanes.
struct Pair {
    int first;
    float second[2];
};
export uniform bool test_places() {
    Pair pairs[4];
    int numbers[5];
    float<2> shorts[3];
    for (uniform int i = 0; i < 4; ++i) {
        Pair p = { 10 * i, { i, -i } };
        pairs[i] = p;
    }
    int own = programIndex % 4;
    Pair p = pairs[own];
    p.first += programIndex;
    if (programIndex != 1) pairs[own] = p;
    for (uniform int i = 0; i < 5; ++i) numbers[i] = i;
    int * q = &numbers[programIndex % 5];
    *q += 100;
    shorts[programIndex % 3] = 7;
    Pair again = pairs[own];
    return all(again.first == (programIndex == 1 ? 10 : 10 * own + programIndex)) && all(p.second[1] == -own)
        && all(numbers[programIndex % 5] == programIndex % 5 + 100) && all(numbers[(programIndex + 1) % 5] == (programIndex + 1) % 5)
        && all(shorts[programIndex % 3].y == 7);
}
uniform int sum_of_rows(uniform int a[][3], uniform int n) {
    uniform int sum = 0;
    for (uniform int i = 0; i < n; ++i) for (uniform int j = 0; j < 3; ++j) sum += a[i][j];
    return sum;
}
int counted_rounds() {
    int n = 0;
    foreach (i = 0 ... 30) {
        static uniform int rounds = 0;
        ++rounds;
        n = rounds;
    }
    return n;
}
export uniform bool test_rows() {
    uniform int a[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    uniform int before = reduce_max(counted_rounds());
    return sum_of_rows(a, 2) == 21 && reduce_max(counted_rounds()) == 2 * before && before == (29 + programCount) / programCount;
}

// Operators of structs: before and behind their operand, assignments, `&&` and `||`; results that are references; places that a condition chooses.
struct Number { float re, im; };
Number operator*(Number a, Number b) {
    Number result;
    result.re = a.re * b.re - a.im * b.im;
    result.im = a.re * b.im + a.im * b.re;
    return result;
}
struct C { int value; };
struct C operator++(struct C &s) { s.value++; return s; }
struct C operator++(struct C &s, int) { struct C temp = s; s.value++; return temp; }
struct C operator--(struct C &s) { s.value--; return s; }
struct C operator--(struct C &s, int) { struct C temp = s; s.value--; return temp; }
struct C operator-(struct C s) { struct C r; r.value = -s.value; return r; }
bool operator!(struct C s) { return s.value == 0; }
struct C operator~(struct C s) { struct C r; r.value = ~s.value; return r; }
bool operator==(const C &a, const C &b) { return a.value == b.value; }
bool operator&&(const C &a, const C &b) { return a.value != 0 && b.value != 0; }
bool operator||(const C &a, const C &b) { return a.value != 0 || b.value != 0; }
export uniform bool test_ops() {
    Number a = { 1, 2 }, b = { 3, 4 };
    Number m = a * b;
    C c = { 5 };
    C d = c++;
    C e = ++c;
    C f = c--;
    C g = --c;
    C n = -c;
    C z = { 0 };
    return all(m.re == -5 && m.im == 10) && all(d.value == 5 && e.value == 7 && f.value == 7 && g.value == 5 && n.value == -5) && all(!z) && all((~z).value == -1) && all(c == g) && !any(c && z) && all(c || z);
}
struct Vector2 { float x, y; };
struct Vector2& operator+=(struct Vector2 &v, const struct Vector2 &other) {
    v.x += other.x;
    v.y += other.y;
    return v;
}
struct Vector2& operator*=(struct Vector2 &v, float s) { v.x *= s; v.y *= s; return v; }
struct FM { float e[4]; };
struct DM { double e[4]; };
struct DM& operator=(struct DM &a, const struct FM &b) {
    for (uniform int i = 0; i < 4; i++) a.e[i] = b.e[i];
    return a;
}
export uniform bool test_assign() {
    struct Vector2 v = { 1.0f, 2.0f };
    struct Vector2 u = { 3.0f, 4.0f };
    v += u;
    v *= 2;
    FM f = { { 1, 2, 3, 4 } };
    DM d;
    d = f;
    return all(v.x == 8 && v.y == 12) && all(d.e[3] == 4);
}
export uniform bool test_select_lvalue() {
    uniform int a = 1, b = 2;
    uniform bool c = true;
    (c ? a : b) = 10;
    (!c ? a : b) += 5;
    return a == 10 && b == 7;
}
static uniform int cells[4];
static uniform int &cell(uniform int i) { return cells[i]; }
static float &larger(float &a, float &b) { if (reduce_max(a) > reduce_max(b)) return a; return b; }
export uniform bool test_reference_results() {
    cell(2) = 5;
    ++cell(2);
    uniform int seen = cell(2) + 1;
    float a = programIndex, b = -1;
    larger(a, b) = 7;
    return cells[2] == 6 && seen == 7 && all(a == 7) && all(b == -1);
}

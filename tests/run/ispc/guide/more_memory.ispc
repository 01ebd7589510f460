// Arrays of each lane, accesses to elements at an index in each lane, narrow numbers without promotions, conditions as numbers.
struct S { float x; int a[3]; };
export uniform bool test_gather_ops() {
    uniform S s[64];
    uniform int c[64];
    for (uniform int i = 0; i < 64; ++i) { s[i].x = i; s[i].a[0] = 0; s[i].a[1] = i; s[i].a[2] = 2; c[i] = 0; }
    int k = programCount - 1 - programIndex;
    s[k].x *= 2; s[k].a[1] += 5; s[k].a[programIndex % 3]++; --c[k]; c[k] <<= 1; c[k] |= 1;
    uniform float * p = &s[k].x;
    *p += 1;
    uniform int * q = c + k;
    int old = *q++;
    int64 li = k; uint ui = k; int16 si = k; uint8 bi = k;
    float t = s[li].x + s[ui].x + s[si].x + s[bi].x;
    return s[1].x == 3 && all(old == -1) && all(t == 4 * (2 * k + 1)) && c[0] == -1 && all(q == c + k + 1);
}
export uniform bool test_varying_arrays() {
    float m[4][4];
    for (uniform int i = 0; i < 4; ++i) for (uniform int j = 0; j < 4; ++j) m[i][j] = 10 * i + j;
    int i = programIndex % 4, j = (programIndex / 4) % 4;
    float v = m[i][j];
    m[j][i] = -1;
    uniform float u[4][4];
    foreach (y = 0 ... 4, x = 0 ... 4) u[y][x] = m[y % 4][x % 4] >= 0 ? 1 : 0;
    float row[4] = { 1, 2, 3, 4 };
    row[i] += 10;
    float * uniform none = NULL;
    float sum = 0;
    for (int k = 0; k <= i; ++k) sum += row[k];
    return all(v == 10 * i + j) && all(m[j][i] == -1) && all(row[i] == i + 11) && all(sum == (i + 1) * (i + 2) / 2 + 10) && !none;
}
export uniform bool test_bools() {
    bool a = programIndex & 1, b = programIndex & 2;
    bool c = a & b, d = a | b, e = a ^ b, f = !a, g = a == b, h = a != b;
    a &= b; 
    uniform bool arr[4] = { true, false, true, false };
    bool i = arr[programIndex % 4];
    int n = a + b + c;
    uniform bool u = arr[0] && !arr[1] || arr[3];
    bool j = u;
    bool k = programIndex, l = 0.5f;
    return all(c == a) && all(e == (d & !c)) && all(g != h) && all(f == !(programIndex % 2)) && all(i == (programIndex % 2 == 0)) && u && all(j) && all(k == (programIndex != 0)) && all(n <= 3) && all(l);
}
export uniform bool test_narrow() {
    uint8 a = 250, b = 10; int8 c = 127; int16 d = 300; uint16 e = 65535;
    uint8 s = a + b;
    uint16 w = (uint16)a + b;
    e += 1;
    uint8 sh = a << 1;
    int8 n = -c - 1;
    uint8 avg = avg_up(a, b);
    int t = a * b;
    bool less = (int8)-1 < (uint8)1;
    return all(s == 4) && all(w == 260) && all(e == 0) && all(sh == 244) && all(n == -128) && all(avg == 130) && all(t == (2500 & 255)) && all((d >> 2) == 75) && all(a > b);
}

// Control flow in control flow: lanes that leave what others go on in.
static int f(int x) { while (true) { if (x > 100) return x; x = x * 2 + 1; if (x == 7) continue; x += 1; } return 0; }
static float newton(float x) { float r = x; for (uniform int i = 0; i < 50; ++i) { float n = 0.5f * (r + x / r); if (abs(n - r) < 1e-6f) return n; r = n; } return r; }
static void each(uniform int out[], int v) { foreach_active (i) { out[i] = extract(v, i) * 2; } }
static uniform int levels(uniform int n) { if (n == 0) return 0; return 1 + levels(n - 1); }
static int tak(int x, int y, int z) { if (y >= x) return z; return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)); }
export uniform bool test_functions() {
    int r = f(programIndex);
    uniform int out[64];
    for (uniform int i = 0; i < 64; ++i) out[i] = -1;
    if (programIndex & 1) each(out, programIndex);
    return all(r > 100) && all(abs(newton(2.f + programIndex) - sqrt(2.f + programIndex)) < 1e-4f) && out[1] == 2 && out[0] == -1 && levels(5) == 5 && all(tak(3 + (programIndex & 1), 2, 1) > 0);
}
export uniform bool test_nested() {
    uniform int a[16][16];
    foreach (y = 0 ... 16, x = 0 ... 16) {
        int v = 0;
        for (int k = 0; k < x; ++k) {
            if (k > y) break;
            if ((k & 1) == 0) continue;
            switch (k % 5) {
            case 0: v += 1; break;
            case 1: case 2: v += 2;
            default: { v += 4; if (v > 20) break; v += 8; }
            }
        }
        a[y][x] = v;
    }
    for (uniform int y = 0; y < 16; ++y) for (uniform int x = 0; x < 16; ++x) {
        uniform int v = 0;
        for (uniform int k = 0; k < x; ++k) {
            if (k > y) break;
            if ((k & 1) == 0) continue;
            switch (k % 5) {
            case 0: v += 1; break;
            case 1: case 2: v += 2;
            default: { v += 4; if (v > 20) break; v += 8; }
            }
        }
        if (a[y][x] != v) return false;
    }
    return true;
}
export uniform bool test_uniform_if() {
    int x = 0;
    uniform int u = 3;
    if (u > 2) { if (programIndex > 0) { u = 10; x = 1; } } else x = 5;
    for (uniform int i = 0; i < u; ++i) { if (i > programIndex) break; x++; }
    return u == 10 && all(x == (programIndex > 0) + min(programIndex + 1, 10));
}
export uniform bool test_unmasked_in_foreach() {
    uniform int n = 0;
    foreach (i = 0 ... 3) { unmasked { n += popcnt(lanemask()); } if (i > 0) { n += 0; } }
    return n == programCount || programCount < 3;
}
export uniform bool test_foreach_in_lane_if() {
    uniform int a[10];
    uniform int done = 0;
    if (programIndex == 1) { foreach (i = 0 ... 10) a[i] = i; done = 1; }
    return done == 1 && a[9] == 9;
}
static void inner(uniform int a[], uniform int n) { foreach (i = 0 ... n) a[i] += 1; }
export uniform bool test_foreach_calls() {
    uniform int a[20];
    foreach (i = 0 ... 20) a[i] = 0;
    foreach (i = 0 ... 4) { foreach_active (k) { inner(a, 20); } }
    return a[19] == 4;
}
export uniform bool test_return_in_loops() {
    for (uniform int i = 0; i < 10; ++i) { if (i == 7) return true; }
    return false;
}
export uniform bool test_foreach_unique_masks() {
    int k = programIndex % 3;
    uniform int counts[3] = { 0, 0, 0 };
    foreach_unique (v in k) { counts[v] = popcnt(lanemask()); if (v == 1) continue; counts[v] += 100; }
    return counts[0] == 100 + (programCount + 2) / 3 && counts[1] == (programCount + 1) / 3;
}
export uniform bool test_do() {
    int i = 0, n = 0;
    do { i++; if (i == 3) continue; if (i > 6) break; n += i; } while (i < programIndex);
    return all(n >= 1) && all(i == (programIndex <= 1 ? 1 : programIndex > 6 ? 7 : programIndex));
}
export uniform bool test_switch_uniform_lanes() {
    uniform int u = 2;
    int x = 0;
    switch (u) {
    case 2: if (programIndex & 1) { x = 1; break; } x = 2; break;
    default: x = 9;
    }
    return all(x == ((programIndex & 1) ? 1 : 2));
}
export uniform bool test_switch_return() { return all(sw(programIndex) == (programIndex == 0 ? 5 : programIndex == 1 ? 6 : 7)); }
static int sw(int x) { switch (x) { case 0: return 5; case 1: return 6; } return 7; }

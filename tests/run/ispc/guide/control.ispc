// Loops, `switch`, what lanes leave, what is unmasked, lines with `#pragma`.
export uniform bool test_foreach() {
    uniform int a[100];
    foreach (i = 0 ... 100) a[i] = i;
    uniform int n = 50;
    foreach (i = n ... n + 20) { if (i & 1) continue; a[i] = -1; }
    int total = 0;
    foreach_tiled (y = 0 ... 10, x = 0 ... 10) total += a[y * 10 + x];
    foreach (z = 0 ... 2, y = 0 ... 3, x = 0 ... 5) total += 1;
    int64 big = 0;
    uniform int64 from = 10, to = 20;
    foreach (i = from ... to) big += i;
    uniform int zero = 0;
    foreach (i = 5 ... zero) a[0] = 99;
    return a[0] == 0 && a[51] == 51 && a[52] == -1 && reduce_add(total) == 4950 - (50 + 52 + 54 + 56 + 58 + 60 + 62 + 64 + 66 + 68) - 10 + 30 && reduce_add(big) == 145;
}
export uniform bool test_foreach_others() {
    uniform int seen = 0, lanes = 0;
    if (programIndex != 1) foreach_active (i) { lanes++; seen += i; }
    int v = programIndex / 2;
    uniform int groups = 0;
    foreach_unique (u in v) { groups++; uniform int k = u; }
    float f = programIndex & 1;
    foreach_unique (x in f) groups += (uniform int)x;
    uniform float arr[2] = { 1, 2 };
    uniform float * p = &arr[programIndex & 1];
    foreach_unique (q in p) { *q += 10; }
    return lanes == programCount - 1 && groups == (programCount + 1) / 2 + 1 && arr[0] == 11 && arr[1] == 12;
}
static int fact(int n) { if (n <= 1) return 1; return n * fact(n - 1); }
static int gcd(int a, int b) { while (b) { int t = a % b; a = b; b = t; } return a; }
export uniform bool test_loops() {
    int n = 0, i = 0;
    do { n += i; ++i; } while (i < programIndex);
    cfor (int k = 0; k < 3; ++k) n += k;
    cwhile (n < 10) n++;
    cdo { n++; } cwhile (n < 12);
    int m = 0;
    for (int k = 0, j = 10; k < j; ++k, --j) m++;
    for (;;) { if (++m > 20) break; }
    int s = 0;
    for (uniform int k = 0; k < 10; ++k) { if (k == programIndex) continue; if (k > 7) break; s += k; }
    while (true) { s++; if (s > 40) break; }
    return all(m == 21) && all(fact(programIndex % 5) >= 1) && all(gcd(12, 18) == 6) && all(n >= 12) && all(s == 41);
}
export uniform bool test_switch() {
    int r = 0;
    switch (programIndex & 3) {
    case 0: r = 10; break;
    case 1:
    case 2: r = 20;
    default: r += 5;
    }
    uniform int u = 3, k = 0;
    switch (u) { case 1: k = 1; break; case 3: k = 3; case 4: k += 4; break; default: k = 100; }
    int s = 0;
    for (uniform int i = 0; i < 4; ++i) { switch (i) { case 2: continue; default: break; } s += i; }
    return all(r == ((programIndex & 3) == 0 ? 10 : (programIndex & 3) == 3 ? 5 : 25)) && k == 7 && all(s == 4);
}
static int early(int x) { if (x < 2) return -1; for (uniform int i = 0; i < 10; ++i) { if (i == x) return i * 10; } return 7; }
static void nothing(int &x) { if (x == 0) return; x = 5; }
export uniform bool test_returns() {
    int a = early(programIndex);
    int b = programIndex;
    nothing(b);
    return all(a == (programIndex < 2 ? -1 : programIndex < 10 ? programIndex * 10 : 7)) && all(b == (programIndex == 0 ? 0 : 5));
}
export uniform bool test_unmasked() {
    int count = 0;
    uniform int active = 0;
    if (programIndex == 0) {
        unmasked { active = popcnt(lanemask()); count = 3; }
        count++;
    }
    unmasked { count += 1; }
    return active == programCount && all(count == (programIndex == 0 ? 5 : 4));
}
unmasked static uniform int umask_of() { return popcnt(lanemask()); }
export uniform bool test_unmasked_function() {
    uniform int n = 0;
    if (programIndex == 1) n = umask_of();
    return n == programCount;
}
export uniform bool test_coherent() {
    int x = 0;
    cif (programIndex >= 0) x = 1; else x = 2;
    cif (programIndex > 1000) { x = 3; }
    return all(x == 1);
}
export uniform bool test_goto() {
    uniform int i = 0;
again:
    i++;
    if (i < 5) goto again;
    return i == 5;
}
export uniform bool test_assert() {
    assert(programCount > 1);
    assume(programCount > 1);
    uniform float * uniform p = NULL;
    float x = programIndex;
    assert(x >= 0);
    return true;
}
#pragma unroll
export uniform bool test_pragmas() {
    uniform int s = 0;
#pragma unroll 4
    for (uniform int i = 0; i < 8; ++i) s += i;
#pragma nounroll
    foreach (i = 0 ... 8) { s += reduce_add(i) * 0; }
#pragma unroll
    while (s < 30) s++;
#pragma ignore warning(perf)
    s += 1;
#pragma ignore warning
    s += 1;
#pragma ignore warning(all)
    s += 1;
    return s == 33;
}

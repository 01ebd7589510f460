// The library, each function once or twice.
export uniform bool test_reduce() {
    int i = programIndex;
    float f = i;
    uniform int n = programCount;
    uniform int same;
    uniform bool eq = reduce_equal(5);
    uniform int got;
    int five = 5;
    eq = eq && reduce_equal(five, &got) && got == 5;
    return reduce_add(i) == n * (n - 1) / 2 && reduce_min(f) == 0 && reduce_max(f) == n - 1 && eq && reduce_add((int64)i) == n * (n - 1) / 2 && reduce_add((double)1) == n && reduce_max((unsigned int)i) == n - 1
        && reduce_add((int8)1) == n && reduce_add((int16)1) == n && reduce_add((unsigned int64)2) == 2 * n && reduce_min((int8)i) == 0;
}
export uniform bool test_cross() {
    int i = programIndex;
    uniform int n = programCount;
    int r = rotate(i, 1), s = shift(i, 1), b = broadcast(i, 2 % n), p = shuffle(i, n - 1 - i), q = shuffle(i, i + 100, 2 * n - 1 - i);
    float f = i;
    int8 c = i;
    double d = i;
    return all(r == (i + 1) % n) && all(s == (i + 1 < n ? i + 1 : 0)) && all(b == 2 % n) && all(p == n - 1 - i) && all(q == 100 + n - 1 - i) && extract(i, 1) == 1 && all(insert(i, 0, 50) == (i == 0 ? 50 : i))
        && all(rotate(f, -1) == (i + n - 1) % n) && all(broadcast(c, 0) == 0) && all(shuffle(d, 0) == 0) && extract(d, 1) == 1 && all(rotate(c, 1) == (i + 1) % n);
}
export uniform bool test_scan() {
    int i = programIndex;
    int a = exclusive_scan_add(i), o = exclusive_scan_or(1 << (i & 15)), n = exclusive_scan_and(~(1 << (i & 15)));
    float f = exclusive_scan_add(1.f);
    int64 l = exclusive_scan_add((int64)2);
    return all(a == i * (i - 1) / 2) && all(f == i) && all(l == 2 * i) && all(i > 15 || o == (1 << i) - 1);
}
export uniform bool test_masks() {
    bool b = programIndex & 1;
    uniform int n = programCount;
    return any(b) && !all(b) && !none(b) && lanemask() == (n == 64 ? -1 : (1ull << n) - 1) && packmask(b) == (0xaaaaaaaaaaaaaaaaull & ((n == 64 ? 0 : (1ull << n)) - 1)) && popcnt(packmask(b)) == n / 2;
}
export uniform bool test_packed() {
    uniform int a[128];
    for (uniform int i = 0; i < 128; ++i) a[i] = -1;
    uniform int n = 0;
    if (programIndex & 1) n = packed_store_active(a, programIndex);
    uniform int m = packed_store_active(&a[64], programIndex * 2);
    int v = -1;
    if (programIndex < 1) packed_load_active(&a[0], &v);
    uniform unsigned int u[64];
    unsigned int x = programIndex;
    packed_store_active2(u, x);
    return n == programCount / 2 && a[0] == 1 && all(v == (programIndex < 1 ? 1 : -1)) && u[1] == 1;
}
export uniform bool test_math() {
    float x = 0.5f, s, c;
    sincos(x, &s, &c);
    uniform float us, uc;
    sincos(0.5f, &us, &uc);
    double d = 2;
    int e;
    float m = frexp(8.f, &e);
    return all(abs(s - sin(x)) < 1e-5f) && abs(us - 0.479425538f) < 1e-5f && all(abs(sqrt(d) - 1.41421356d) < 1e-7) && all(floor(-1.5f) == -2) && all(ceil(1.2f) == 2) && all(trunc(-1.7f) == -1) && all(round(2.5f) == 2)
        && all(abs(-3) == 3) && all(min(3, programIndex) <= 3) && clamp(5, 1, 3) == 3 && all(clamp(2.5f, 0.f, 1.f) == 1) && all(signbits(-1.f) == 0x80000000) && all(isnan(0.f / 0.f)) && all(pow(2.f, 10.f) == 1024) && all(m == 0.5f && e == 4)
        && all(ldexp(1.f, 3) == 8) && rcp(4.f) == 0.25f && all(abs(rsqrt(4.f) - 0.5f) < 1e-4f) && all(exp(0.f) == 1) && all(log(1.f) == 0) && all(atan2(0.f, 1.f) == 0) && max(1, 2) == 2 && all(fmod(5.5f, 2.f) == 1.5f);
}
export uniform bool test_bits() {
    return all(popcnt(7) == 3) && popcnt(0xffull) == 8 && count_leading_zeros(1) == 31 && all(count_trailing_zeros(8) == 3) && all(intbits(1.f) == 0x3f800000) && all(floatbits(0x40000000) == 2) && all(doublebits(0x3ff0000000000000) == 1) && intbits(1.d) == 0x3ff0000000000000
        && all(half_to_float(float_to_half(1.5f)) == 1.5f) && half_to_float_fast(float_to_half_fast(2.f)) == 2 && all(saturating_add((int8)100, (int8)100) == 127) && all(avg_up((unsigned int8)3, (unsigned int8)4) == 4) && all(select(programIndex > 0, 1, 2) == (programIndex > 0 ? 1 : 2));
}
export uniform bool test_memory() {
    uniform int a[16], b[16];
    memset(a, 0, sizeof(a));
    for (uniform int i = 0; i < 16; ++i) b[i] = i;
    memcpy(a, b, sizeof(b));
    memmove(&a[1], &a[0], 4 * sizeof(uniform int));
    prefetch_l1(&a[0]);
    prefetch_nt(a);
    uniform float f[3 * 64];
    for (uniform int i = 0; i < 3 * programCount; ++i) f[i] = i;
    float x, y, z;
    aos_to_soa3(f, &x, &y, &z);
    soa_to_aos3(x, z, y, f);
    uniform float t[64];
    streaming_store(t, x);
    float l = streaming_load(t);
    return a[1] == 0 && a[4] == 3 && a[5] == 5 && all(y == 3 * programIndex + 1) && f[1] == 2 && all(l == x);
}
export uniform bool test_atomics() {
    uniform int a = 0, b = 10;
    atomic_add_global(&a, 1);
    int old = atomic_add_local(&b, programIndex);
    uniform int r = atomic_swap_global(&a, 50);
    uniform int c = atomic_compare_exchange_global(&a, 50, 60);
    atomic_max_global(&a, programIndex);
    uniform float f = 1;
    atomic_add_global(&f, 1.f);
    uniform unsigned int64 u = 1;
    atomic_or_global(&u, (unsigned int64)4);
    memory_barrier();
    uniform int t[4] = { 0, 0, 0, 0 };
    atomic_add_global(&t[programIndex & 3], 1);
    return r == 1 && c == 50 && a == max(60, programCount - 1) && f == 2 && u == 5 && b == 10 + programCount * (programCount - 1) / 2;
}
export uniform bool test_random() {
    RNGState s;
    seed_rng(&s, programIndex);
    unsigned int a = random(&s);
    float f = frandom(&s);
    uniform RNGState u;
    seed_rng(&u, 5);
    uniform float g = frandom(&u);
    return all(f >= 0 && f < 1) && g >= 0 && g < 1;
}
// Numbers without lanes become arguments with lanes, and of the width that the function takes.
export uniform bool test_arguments() {
    uniform float16 x = float16bits(0x3c00);
    return extract(5, 0) == 5 && all(insert((float)0, 1, 5.f) == (programIndex == 1 ? 5 : 0)) && x == 1 && doublebits(0) == 0 && all(broadcast(7, 1) == 7);
}

// The standard library: numbers, lanes with each other, memory.
uniform bool near(float a, float b) { return all(abs(a - b) <= 1e-5 * max(1.f, abs(b))); }
export uniform bool test_math() {
    float x = 0.25f + 0.5f * (programIndex % 2);
    uniform double d = 2;
    float s, c;
    sincos(x, &s, &c);
    uniform bool fine = near(sqrt(x * x), x) && near(rcp(x) * x, 1) && near(rsqrt(x) * sqrt(x), 1) && near(s, sin(x)) && near(c, cos(x));
    fine = fine && near(tan(atan(x)), x) && near(sin(asin(x)), x) && near(cos(acos(x)), x) && near(exp(log(x)), x) && near(pow(x, 2), x * x);
    fine = fine && near(atan2(x, 1.f), atan(x)) && sqrt(d) > 1.4142135 && sqrt(d) < 1.4142136;
    return fine && floor(-1.5f) == -2 && ceil(-1.5f) == -1 && trunc(-1.5f) == -1 && abs(-3) == 3 && abs(-2.5f) == 2.5f;
}
export uniform bool test_rounding() {
    float v = programIndex + 0.5f;
    return round(2.5f) == 2 && round(3.5f) == 4 && round(-2.5f) == -2 && round(2.6f) == 3 && round(1e9f) == 1e9f
        && all(round(v) == (programIndex % 2 == 0 ? programIndex : programIndex + 1)) && round(0.5d) == 0 && round(-1.7d) == -2;
}
export uniform bool test_ranges() {
    uniform float zero = 0;
    int v = programIndex;
    uniform unsigned int big = 4000000000;
    return clamp(5, 1, 3) == 3 && clamp(-5.f, 1, 3) == 1 && all(clamp(v, 1, 2) == max(1, min(v, 2))) && max(big, 1) == big && min(2, -3) == -3
        && isnan(zero / zero) && !isnan(zero) && isinf(1 / zero) && isfinite(zero) && fmod(5.5f, 2.f) == 1.5f;
}
export uniform bool test_select() {
    int v = select(programIndex > 0, 1, 2);
    uniform float f = select(true, 1.5f, 2.5f);
    uniform int n = 0;
    float w = select(programIndex % 2 == 0, 3.f, f);
    return all(v == (programIndex > 0 ? 1 : 2)) && f == 1.5f && all(w == (programIndex % 2 == 0 ? 3 : 1.5)) && n == 0;
}
export uniform bool test_bits() {
    int ones = programIndex;
    return intbits(1.f) == 0x3f800000 && floatbits(0x40000000) == 2 && intbits(1.d) == 0x3ff0000000000000 && doublebits(0x4000000000000000) == 2
        && popcnt(255) == 8 && all(popcnt(ones) == popcnt(programIndex)) && popcnt(programIndex < 2) == 2 && count_leading_zeros(1) == 31
        && count_trailing_zeros(8) == 3 && signbits(-1.f) == 0x80000000 && all(intbits(1.f + 0 * programIndex) == 0x3f800000);
}
export uniform bool test_halves() {
    float v = programIndex / 4.f;
    uniform unsigned int16 h = float_to_half(1.5f);
    uniform float16 half = 0.5f16;
    return h == 0x3e00 && half_to_float(h) == 1.5f && all(half_to_float(float_to_half(v)) == v) && half + half == 1;
}

// Lanes with each other; those that are not active do not count.
export uniform bool test_reductions() {
    int v = programIndex;
    uniform int n = programCount;
    uniform int64 sum = reduce_add(v);
    uniform float most = reduce_max(1.5f * v), least = reduce_min(v + 0.5f);
    uniform bool fine = sum == n * (n - 1) / 2 && most == 1.5f * (n - 1) && least == 0.5f && reduce_max(v) == n - 1 && reduce_min(-v) == 1 - n;
    uniform int some = 0, largest = 0, equal = 5;
    uniform bool are_equal = false;
    if (programIndex < 2) {
        some = reduce_add(v + 1);
        largest = reduce_max(v);
        are_equal = reduce_equal(v / 2, &equal);
    }
    return fine && some == 3 && largest == 1 && are_equal && equal == 0 && !reduce_equal(v) && reduce_equal(7 + 0 * v)
        && reduce_add((double)v) == sum && reduce_min((unsigned int8)(v + 200)) == 200;
}
export uniform bool test_conditions() {
    uniform bool inside = false, other = true;
    uniform int64 mask = 0;
    if (programIndex > 0) {
        inside = all(programIndex > 0) && !any(programIndex == 0) && none(programIndex == 0);
        mask = lanemask();
    }
    return inside && any(programIndex == 0) && !all(programIndex == 0) && mask == lanemask() - 1 && all(true) && !any(false);
}
export uniform bool test_scans() {
    int v = programIndex + 1, expected = 0, s = 0;
    for (uniform int i = 0; i < programCount; ++i) if (i < programIndex) expected += i + 1;
    uniform bool fine = all(exclusive_scan_add(v) == expected);
    if (programIndex % 2 == 1) s = exclusive_scan_add(1);
    fine = fine && all(s == (programIndex % 2 == 1 ? programIndex / 2 : 0));
    int bits = exclusive_scan_or(1 << (programIndex % 8)), rest = exclusive_scan_and(~(1 << (programIndex % 8)));
    return fine && extract(bits, 0) == 0 && extract(bits, 1) == 1 && extract(rest, 0) == -1 && extract(rest, 1) == -2
        && all(exclusive_scan_add(0.5f) == 0.5f * programIndex);
}
export uniform bool test_moves() {
    int v = 10 * programIndex;
    uniform int n = programCount;
    int r = rotate(v, 1), l = rotate(v, -1), s = shift(v, 1), t = shift(v, -1);
    int p = shuffle(v, n - 1 - programIndex), q = shuffle(v, v + 1, programIndex + n);
    return all(r == 10 * ((programIndex + 1) % n)) && all(l == 10 * ((programIndex + n - 1) % n)) && all(broadcast(v, 1) == 10)
        && all(s == (programIndex == n - 1 ? 0 : v + 10)) && all(t == (programIndex == 0 ? 0 : v - 10)) && all(p == 10 * (n - 1 - programIndex))
        && all(q == v + 1) && extract(v, 1) == 10 && extract(insert(v, 1, 7), 1) == 7 && extract(v, 1) == 10;
}
export uniform bool test_packed() {
    uniform int a[64], b[64];
    for (uniform int i = 0; i < 64; ++i) { a[i] = -1; b[i] = i; }
    uniform int n = 0;
    int found = -1;
    if (programIndex % 2 == 1) {
        n = packed_store_active(&a[1], programIndex);
        packed_load_active(&b[3], &found);
    }
    uniform bool fine = n == programCount / 2 && a[0] == -1 && a[1] == 1 && a[n + 1] == -1;
    for (uniform int i = 0; i < n; ++i) fine = fine && a[1 + i] == 2 * i + 1;
    return fine && all(found == (programIndex % 2 == 1 ? 3 + programIndex / 2 : -1));
}

// Memory.
export uniform bool test_transposing() {
    uniform float a[192];
    for (uniform int i = 0; i < 192; ++i) a[i] = i;
    float x, y, z, w;
    aos_to_soa3(a, &x, &y, &z);
    uniform bool fine = all(x == 3 * programIndex) && all(y == 3 * programIndex + 1) && all(z == 3 * programIndex + 2);
    soa_to_aos3(z, y, x, a);
    fine = fine && a[0] == 2 && a[1] == 1 && a[2] == 0 && a[3] == 5;
    uniform float b[256];
    for (uniform int i = 0; i < 256; ++i) b[i] = i;
    aos_to_soa4(b, &x, &y, &z, &w);
    return fine && all(w == 4 * programIndex + 3);
}
export uniform bool test_memory() {
    uniform int a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[8];
    memcpy(b, a, sizeof(a));
    memmove(&b[2], b, 5 * sizeof(uniform int));
    uniform int c[2] = { 1, 1 };
    memset(c, 0, sizeof(c));
    uniform float d[64];
    streaming_store(d, programIndex + 0.5f);
    prefetch_l1(d);
    float e = streaming_load(d);
    return b[0] == 1 && b[1] == 2 && b[2] == 1 && b[6] == 5 && b[7] == 8 && c[0] == 0 && c[1] == 0 && all(e == programIndex + 0.5f) && d[1] == 1.5f;
}
export uniform bool test_atomics() {
    uniform int n = 10;
    uniform int old = atomic_add_global(&n, 5);
    int each = atomic_add_global(&n, programIndex + 1);
    uniform float f = 1;
    atomic_add_local(&f, 0.5f);
    uniform unsigned int bits = 1;
    atomic_or_global(&bits, 6);
    uniform int m = 3;
    uniform int was = atomic_compare_exchange_global(&m, 3, 8), not = atomic_compare_exchange_global(&m, 3, 9);
    uniform int counts[2] = { 0, 0 };
    uniform int * p = &counts[programIndex % 2];
    atomic_add_global(p, 1);
    uniform int top = 0;
    atomic_max_global(&top, programIndex);
    memory_barrier();
    return old == 10 && n == 15 + programCount * (programCount + 1) / 2 && all(each == 15 + programIndex * (programIndex + 1) / 2) && f == 1.5f
        && bits == 7 && was == 3 && not == 8 && m == 8 && counts[0] + counts[1] == programCount && top == programCount - 1 && atomic_swap_global(&m, 1) == 8;
}
export uniform bool test_saturating() {
    uniform int8 a = 100, b = -100;
    uniform unsigned int8 c = 200, d = 250;
    return saturating_add(a, a) == 127 && saturating_sub(b, a) == -128 && saturating_add(c, d) == 255 && saturating_sub(c, d) == 0
        && saturating_mul(a, b) == -128 && avg_up(c, d) == 225 && avg_down(c, (uniform unsigned int8)201) == 200 && avg_up(c, (uniform unsigned int8)201) == 201;
}
export uniform bool test_clock() {
    uniform int64 begin = clock();
    assert(programIndex >= 0);
    assume(programCount > 1);
    return clock() >= begin && num_cores() >= 1;
}
export uniform bool test_random() {
    RNGState state;
    seed_rng(&state, programIndex);
    uniform RNGState one;
    seed_rng(&one, 1);
    uniform float sum = 0;
    uniform bool fine = true;
    for (uniform int i = 0; i < 50; ++i) {
        float f = frandom(&state);
        uniform float g = frandom(&one);
        fine = fine && all(f >= 0 && f < 1) && extract(f, 1) == g;
        sum += g;
    }
    unsigned int r = random(&state);
    return fine && sum > 15 && sum < 35 && extract(r, 0) != extract(r, 1);
}
export uniform bool test_powers() {
    int n;
    float f = frexp(programIndex * 3.f, &n), back = ldexp(f, n);
    uniform int m;
    uniform float g = frexp(-10.f, &m), tiny = ldexp(1.f, -149);
    return all(back == programIndex * 3) && g == -0.625f && m == 4 && ldexp(0.75f, 3) == 6 && tiny > 0 && tiny * 0.5f == 0;
}

// More of the library: numbers that stay in range, products of packed ones, short vectors, memory in each lane.
export uniform bool test_saturating_longs() {
    uniform int64 most = 0x7fffffffffffffff, least = -most - 1;
    int64 own = most - programIndex;
    uniform unsigned int64 all_ones = 0xffffffffffffffff, one = 1;
    uniform bool fine = saturating_add(most, (uniform int64)1) == most && saturating_sub(least, (uniform int64)1) == least;
    fine = fine && saturating_mul(most, (uniform int64)-2) == least && saturating_mul((uniform int64)3, (uniform int64)-4) == -12;
    fine = fine && saturating_mul(least, (uniform int64)1) == least && saturating_div(least, (uniform int64)-1) == most;
    fine = fine && saturating_add(all_ones, one) == all_ones && saturating_sub(one, all_ones) == 0 && saturating_mul(all_ones, all_ones) == all_ones;
    fine = fine && avg_down((uniform int64)-3, (uniform int64)-4) == -3 && avg_up((uniform int64)3, (uniform int64)4) == 4;
    return fine && all(saturating_add(own, (int64)programIndex) == most) && all(saturating_add(own, (int64)100) == most);
}
export uniform bool test_dot_products() {
    uniform unsigned int a = 0x80020304, b = 0x02ff01fe;
    unsigned int own = programIndex;
    uniform bool fine = dot4add_u8u8packed(a, b, 5u) == 256 + 510 + 3 + 1016 + 5 && dot4add_u8i8packed(a, b, 5) == 256 - 2 + 3 - 8 + 5;
    fine = fine && dot4add_i8i8packed(a, b, 5) == -256 - 2 + 3 - 8 + 5 && dot4add_u8i8packed_sat(a, b, 0x7fffffff) == 0x7fffffff;
    fine = fine && dot2add_i16packed(0x00038000u, 0x00020002u, 1) == 6 - 65536 + 1 && dot2add_u16u16packed_sat(0xffffffff, 0xffffffff, 0xffffffff) == 0xffffffff;
    return fine && all(dot2add_u16i16packed(own, own, 7) == programIndex * programIndex + 7);
}
export uniform bool test_short_vectors() {
    float<3> v = { 4, 9, programIndex }, w = max(sqrt(v), 2.f);
    uniform float<4> u = { 1, -2, 3, -4 };
    u.xz = u.zx;
    u.yw += 10.f;
    v.zx = v.xz;
    uniform float<4> positive = abs(u);
    return all(w.y == 3) && all(w.x == 2) && u.x == 3 && u.z == 1 && u.y == 8 && u.w == 6 && all(v.z == 4) && all(v.x == programIndex) && positive.y == 8;
}
export uniform bool test_memory_of_lanes() {
    uniform int a[256], b[256];
    for (uniform int i = 0; i < 256; ++i) {
        a[i] = i;
        b[i] = -1;
    }
    int * from = &a[2 * programIndex], * to = &b[2 * programIndex];
    if (programIndex > 0) memcpy(to, from, 4 + 4 * (programIndex % 2));
    uniform bool fine = b[0] == -1 && b[2] == 2 && b[3] == 3;
    memset(to, 0, 4);
    uniform float * uniform place = (uniform float * uniform)alloca(8 * sizeof(uniform float));
    place[7] = 2.5f;
    return fine && b[0] == 0 && b[1] == -1 && b[3] == 3 && place[7] == 2.5f;
}
export uniform bool test_others() {
    uniform int old = set_ftz_daz_flags();
    restore_ftz_daz_flags(old);
    uniform int n;
    float r = -1;
    uniform bool fine = rdrand(&n);
    bool are_made = rdrand(&r);
    uniform int rounds = 0;
    foreach_active (i) {
        if (i == 1) continue;
        ++rounds;
    }
    foreach_unique (k in programIndex / 2) {
        if (programIndex % 2 == 0) continue;
        rounds += 100;
    }
    uniform int64 sum = reduce_add(2), equal = 0;
    return fine && all(are_made) && all(r >= 0 && r < 1) && packmask(programIndex < 2) == 3 && rounds == programCount - 1 + 100 * (programCount / 2)
        && sum == 2 * programCount && float_to_srgb8(0.5f) == 188 && all(float_to_srgb8(0.f + programIndex) == (programIndex > 0 ? 255 : 0));
}

// Ways of reading and writing memory: one behind the other, structs and arrays of fields, tables at computed places, what is chosen of many.
struct Point {
    float x, y, z;
};
#define N 61
export void sums_of_structs(uniform Point points[], uniform float sums[3]) {
    float x = 0, y = 0, z = 0;
    foreach (i = 0 ... N) {
        x += points[i].x;
        y += points[i].y;
        z += points[i].z;
    }
    sums[0] = reduce_add(x);
    sums[1] = reduce_add(y);
    sums[2] = reduce_add(z);
}
export void sums_of_fields(uniform float x[], uniform float y[], uniform float z[], uniform float sums[3]) {
    float sx = 0, sy = 0, sz = 0;
    foreach (i = 0 ... N) {
        sx += x[i];
        sy += y[i];
        sz += z[i];
    }
    sums[0] = reduce_add(sx);
    sums[1] = reduce_add(sy);
    sums[2] = reduce_add(sz);
}
static void sums_side_by_side(soa<8> Point points[], uniform float sums[3]) {
    float x = 0, y = 0, z = 0;
    foreach (i = 0 ... N) {
        x += points[i].x;
        y += points[i].y;
        z += points[i].z;
    }
    sums[0] = reduce_add(x);
    sums[1] = reduce_add(y);
    sums[2] = reduce_add(z);
}
// Whole gangs, transposed on the way.
static void sums_transposed(uniform float numbers[], uniform float sums[3]) {
    float sx = 0, sy = 0, sz = 0;
    uniform int i;
    for (i = 0; i + programCount <= N; i += programCount) {
        float x, y, z;
        aos_to_soa3(&numbers[3 * i], &x, &y, &z);
        sx += x;
        sy += y;
        sz += z;
    }
    foreach (k = i ... N) {
        sx += numbers[3 * k];
        sy += numbers[3 * k + 1];
        sz += numbers[3 * k + 2];
    }
    sums[0] = reduce_add(sx);
    sums[1] = reduce_add(sy);
    sums[2] = reduce_add(sz);
}
export void moved(uniform Point points[], uniform float by) {
    foreach (i = 0 ... N) {
        Point p = points[i];
        p.x += by;
        points[i] = p;
    }
}
export void from_table(uniform float to[], uniform const float table[], uniform const int places[]) {
    foreach (i = 0 ... N) to[i] = table[places[i]];
}
export void into_table(uniform float table[], uniform const float from[], uniform const int places[]) {
    foreach (i = 0 ... N) table[places[i]] = from[i];
}
export uniform int above(uniform float to[], uniform const float from[], uniform float limit) {
    uniform int n = 0;
    foreach (i = 0 ... N) {
        float v = from[i];
        if (v > limit) n += packed_store_active((uniform int * uniform)&to[n], (int)intbits(v));
    }
    return n;
}
static uniform bool are_sums(uniform float sums[3]) { return sums[0] == 1830 && sums[1] == 3660 && sums[2] == -1830; }
export uniform bool test_sums() {
    uniform Point points[N];
    soa<8> Point side_by_side[8];
    uniform float x[N], y[N], z[N], sums[3], others[3];
    for (uniform int i = 0; i < N; ++i) {
        uniform Point p = { i, 2 * i, -i };
        points[i] = p;
        side_by_side[i] = p;
        x[i] = i;
        y[i] = 2 * i;
        z[i] = -i;
    }
    sums_of_structs(points, sums);
    uniform bool fine = are_sums(sums);
    sums_of_fields(x, y, z, sums);
    fine = fine && are_sums(sums);
    sums_side_by_side(side_by_side, others);
    fine = fine && are_sums(others);
    sums_transposed((uniform float * uniform)points, sums);
    fine = fine && are_sums(sums);
    moved(points, 1);
    sums_of_structs(points, sums);
    return fine && sums[0] == 1891 && points[60].y == 120;
}
export uniform bool test_tables() {
    uniform float table[N], from[N], to[N], chosen[N];
    uniform int places[N];
    for (uniform int i = 0; i < N; ++i) {
        places[i] = (i * 17) % N;
        from[i] = i + 0.25f;
    }
    into_table(table, from, places);
    from_table(to, table, places);
    uniform bool fine = true;
    for (uniform int i = 0; i < N; ++i) fine = fine && to[i] == from[i] && table[places[i]] == i + 0.25f;
    uniform int n = above(chosen, from, 40);
    fine = fine && n == 21;
    for (uniform int i = 0; i < n; ++i) fine = fine && chosen[i] == 40.25f + i;
    return fine;
}

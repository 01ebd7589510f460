// Values with lanes at the level of the file; numbers of lanes that hold; fields without lanes in lanes of `soa<n>`.
static bool both = (programIndex > 1) && (programIndex < 3);
static bool either = 0 || (programIndex == 2);
static int chosen = programIndex > 3 ? 1 : 2;

export uniform bool test_statics() {
    return all(both == (programIndex == 2)) && all(either == (programIndex == 2)) && all(chosen == (programIndex > 3 ? 1 : 2));
}

export uniform bool test_scans_of_conditions() {
    return all(exclusive_scan_add(programIndex > 0) == max(programIndex - 1, 0));
}

struct Point {
    uniform int count;
    int x;
};

export uniform bool test_fields_without_lanes() {
    soa<4> Point a[16];
    foreach (i = 0 ... 16) {
        Point p = {7, i};
        a[i] = p;
    }
    uniform bool right = true;
    for (uniform int i = 0; i < 16; i++)
        right = right && a[i].count == 7 && a[i].x == i;
    return right;
}

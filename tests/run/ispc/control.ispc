// Loops over ranges, over lanes, and what decides which lanes run.
export void fill(uniform int a[], uniform int n) {
    foreach (i = 0 ... n) { a[i] = 2 * i; }
}
export uniform bool test_foreach() {
    uniform int a[50];
    for (uniform int n = 0; n < 50; n += 7) {
        for (uniform int i = 0; i < 50; ++i) a[i] = -1;
        fill(a, n);
        for (uniform int i = 0; i < 50; ++i) {
            if (a[i] != (i < n ? 2 * i : -1)) return false;
        }
    }
    return true;
}
export uniform bool test_foreach_of_two() {
    uniform int a[12][10];
    for (uniform int y = 0; y < 12; ++y) for (uniform int x = 0; x < 10; ++x) a[y][x] = 0;
    foreach (y = 1 ... 11, x = 2 ... 9) {
        if (x == 4) continue;
        a[y][x] += 10 * y + x;
    }
    foreach_tiled (y = 0...12, x = 0...10) a[y][x] += 1;
    for (uniform int y = 0; y < 12; ++y) {
        for (uniform int x = 0; x < 10; ++x) {
            uniform bool is_in = y >= 1 && y < 11 && x >= 2 && x < 9 && x != 4;
            if (a[y][x] != 1 + (is_in ? 10 * y + x : 0)) return false;
        }
    }
    return true;
}
// All lanes take part, whatever is active outside.
export uniform bool test_foreach_in_a_branch() {
    uniform int a[20];
    for (uniform int i = 0; i < 20; ++i) a[i] = 0;
    if (programIndex == 1) {
        foreach (i = 0 ... 20) a[i] = i;
    }
    uniform int sum = 0;
    for (uniform int i = 0; i < 20; ++i) sum += a[i];
    return sum == 190;
}
export uniform bool test_foreach_active() {
    uniform int sum = 0, n = 0;
    int own = 0;
    if (programIndex != 0) {
        foreach_active (i) {
            sum += i;
            ++n;
            own = 7 + i;
        }
    }
    return n == programCount - 1 && sum == programCount * (programCount - 1) / 2 && all(own == (programIndex == 0 ? 0 : 7 + programIndex));
}
export uniform bool test_foreach_unique() {
    int v = programIndex / 2;
    uniform int n = 0, sum = 0;
    int seen = -1;
    foreach_unique (x in v) {
        ++n;
        sum += x;
        seen = x;
    }
    return n == (programCount + 1) / 2 && all(seen == v);
}
export uniform bool test_unmasked() {
    int v = 0, w = 0;
    if (programIndex == 0) {
        unmasked { v = 1; }
        w = 1;
    }
    return all(v == 1) && all(w == (programIndex == 0 ? 1 : 0));
}
export uniform bool test_coherent() {
    int v = programIndex, n = 0;
    cif (v % 2 == 0) v = -v; else cif (v == 3) v = 30; else v += 1;
    cwhile (n < programIndex) n++;
    cfor (int i = 0; i < 3; ++i) n += i;
    cdo { n++; } cwhile (n < 5);
    do { n++; } while (n < programIndex);
    int expected = programIndex + 3 < 4 ? 5 : programIndex + 4;
    return all(v == (programIndex % 2 == 0 ? -programIndex : programIndex == 3 ? 30 : programIndex + 1)) && all(n == expected + 1);
}
export uniform bool test_switch() {
    int v = programIndex % 4, r = 0;
    switch (v) {
    case 0: r = 10; break;
    case 1: r = 20;
    case 2: r += 1; break;
    default: r = 5;
    }
    return all(r == (v == 0 ? 10 : v == 1 ? 21 : v == 2 ? 1 : 5));
}
// A loop without lanes that some leave.
int first_above(uniform int a[], uniform int n, int limit) {
    for (uniform int i = 0; i < n; ++i) {
        if (a[i] > limit) return i;
    }
    return -1;
}
int last_below(uniform int a[], uniform int n, int limit) {
    int found = -1;
    for (uniform int i = 0; i < n; ++i) {
        if (a[i] >= limit) break;
        if (i == 1) continue;
        found = i;
    }
    return found;
}
export uniform bool test_leaving() {
    uniform int a[8] = { 0, 2, 4, 6, 8, 10, 12, 14 };
    int limit = programIndex % 20;
    int x = first_above(a, 8, limit), y = last_below(a, 8, limit);
    uniform bool fine = true;
    for (uniform int l = 0; l < programCount; ++l) {
        uniform int m = l % 20, above = -1, below = -1;
        for (uniform int i = 7; i >= 0; --i) if (a[i] > m) above = i;
        for (uniform int i = 0; i < 8; ++i) if (a[i] < m && i != 1) below = i;
        fine = fine && extract(x, l) == above && extract(y, l) == below;
    }
    return fine;
}

task void squared(uniform int a[], uniform int n) {
    if (taskIndex < taskCount) a[taskIndex] = taskIndex * taskIndex + n;
}
task void placed(uniform int a[]) { a[taskIndex] = 100 * taskIndex2 + 10 * taskIndex1 + taskIndex0 + taskCount0 * 1000; }
export uniform bool test_tasks() {
    uniform int a[24], b[24];
    launch[24] squared(a, 3);
    sync;
    launch[2, 3, 4] placed(b);
    sync;
    for (uniform int i = 0; i < 24; ++i) {
        if (a[i] != i * i + 3) return false;
        if (b[i] != 100 * (i / 6) + 10 * (i / 2 % 3) + i % 2 + 2000) return false;
    }
    return true;
}

export uniform bool test_new() {
    uniform int * uniform a = uniform new uniform int[10];
    for (uniform int i = 0; i < 10; ++i) a[i] = i;
    uniform int sum = 0;
    for (uniform int i = 0; i < 10; ++i) sum += a[i];
    delete[] a;
    int * own = new int[1 + programIndex];
    own[programIndex] = 5;
    int last = own[programIndex];
    delete own;
    float * one = new float(2.5f);
    float found = *one;
    delete one;
    return sum == 45 && all(last == 5) && all(found == 2.5);
}

// A result without lanes is that of the first `return` that is reached; a step without lanes is not made when all have left.
uniform int place_of(uniform int a[], uniform int n, uniform int x) {
    for (uniform int i = 0; i < n; ++i) {
        if (a[i] == x) return i;
    }
    return -1;
}
uniform int rounds_until(uniform int limit) {
    uniform int n;
    for (n = 0; n < 10; ++n) {
        if (n * n > limit) cbreak;
    }
    return n;
}
export uniform bool test_without_lanes() {
    uniform int a[4] = { 5, 6, 7, 8 };
    return place_of(a, 4, 7) == 2 && place_of(a, 4, 1) == -1 && rounds_until(10) == 4 && rounds_until(1000) == 10;
}
static uniform int active = 0;
static void note_active(int x) {
    active += popcnt(lanemask());
    if (x > 1) active += 100 * popcnt(lanemask());
}
unmasked void in_all(uniform int a[]) { a[programIndex] = 1; }
export uniform bool test_masks_of_calls() {
    uniform int a[64];
    for (uniform int i = 0; i < 64; ++i) a[i] = 0;
    active = 0;
    if (programIndex < 2) note_active(programIndex + 1);
    if (programIndex == 0) in_all(a);
    return active == 102 && a[0] == 1 && a[1] == 1;
}

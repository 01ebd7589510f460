// Indices of elements side by side: sums and products of numbers without lanes are computed once, and each lane's element is so far from the first one.
export void around(uniform int n, uniform const float from[], uniform float to[]) {
    foreach (z = 0 ... n, y = 0 ... n, x = 1 ... n) {
        int at = (z * n + y) * n + x;
        to[3 * at - 1] = from[at] + from[at - 1] + from[2 * at + n];
    }
}
//! flat around loop: "extract(" <= 16
export uniform bool test_around() {
    uniform float from[60], to[90];
    for (uniform int i = 0; i < 60; ++i) from[i] = i;
    for (uniform int i = 0; i < 90; ++i) to[i] = -1;
    around(3, from, to);
    for (uniform int i = 0; i < 27; ++i) {
        if (i % 3 != 0 && to[3 * i - 1] != 4 * i + 2) return false;
        if (to[3 * i] != -1 || to[3 * i + 1] != -1) return false;
    }
    return true;
}

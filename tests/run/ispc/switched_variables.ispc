// Variables that one case of a `switch` declares, in others: with one value for all lanes, with lanes, and where lanes come to labels one by one.
static float of_all(uniform int n, float x) {
    switch (n) {
    case 0:
        float own = x;
        uniform int k = 1;
        return own + k;
    case 1:
        own = 2 * x;
        k = 3;
        return own + k;
    default:
        own = 0;
        return own;
    }
}
static int of_lanes(int n) {
    int sum = 0;
    for (uniform int i = 0; i < 2; ++i) {
        switch (n) {
        case 0:
            int own = 5, other;
            sum += own;
        case 1:
            own = n + 20;
            other = own + i;
            sum += other;
            break;
        case 2:
            own = 3;
            sum += own;
        }
    }
    return sum;
}
export uniform bool test_variables() {
    float x = programIndex;
    if (any(of_all(0, x) != x + 1) || any(of_all(1, x) != 2 * x + 3) || any(of_all(2, x) != 0)) return false;
    int n = programIndex % 4;
    int found = of_lanes(n);
    return all(found == (n == 0 ? 51 : n == 1 ? 43 : n == 2 ? 6 : 0));
}

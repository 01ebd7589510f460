// `goto` in control flow without lanes: loops, a way out of loops, a way around code.
export uniform bool test_loop_of_jumps() {
    uniform int i = 0, sum = 0;
    int of_lanes = 0;
check:
    if (i > 10) goto done;
    sum += i;
    of_lanes += programIndex;
    ++i;
    goto check;
done:
    return sum == 55 && all(of_lanes == 11 * programIndex);
}
static uniform int first_pair(uniform int a[], uniform int n, uniform int sum) {
    uniform int found = -1;
    for (uniform int i = 0; i < n; ++i) {
        for (uniform int k = i + 1; k < n; ++k) {
            if (a[k] < 0) break;
            if (a[i] + a[k] == sum) {
                found = 100 * i + k;
                goto done;
            }
        }
    }
done:
    return found;
}
export uniform bool test_out_of_loops() {
    uniform int a[6] = { 1, 5, 9, 3, -1, 7 };
    return first_pair(a, 6, 12) == 203 && first_pair(a, 6, 8) == 103 && first_pair(a, 6, 16) == -1;
}
// Code further up that is only jumped to.
static uniform int around(uniform int n) {
    uniform int steps = 0;
    goto test;
again:
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ++steps;
test:
    if (n != 1) goto again;
    return steps;
}
// Lanes that have returned stay away, on whichever way the label is reached.
static int counted(int limit) {
    uniform int n = 0;
    int own = 0;
again:
    if (limit <= n) return own;
    own += 10;
    ++n;
    if (n < 4) goto again;
    return own + 1;
}
export uniform bool test_around() {
    int found = counted(programIndex);
    return around(6) == 8 && around(1) == 0 && all(found == (programIndex < 4 ? 10 * programIndex : 41));
}
export uniform bool test_in_blocks() {
    uniform int n = 0;
    for (uniform int i = 0; i < 5; ++i) {
        uniform int k = 0;
    inner:
        ++k;
        if (k < i) goto inner;
        n += k;
    }
    foreach (i = 0 ... programCount + 1) {
        uniform int rounds = 0;
    next:
        ++rounds;
        if (rounds < 3) goto next;
        n += rounds;
    }
    return n == 17;
}

// Digits of pi, one after the other, by Gibbons' spigot. Large numbers are polynomials in 2^44 with signed coefficients that may be a
// little out of range, so that none waits for the carry of all before it and compilers make vectors of the loops.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BITS 44
#define MASK (((int64_t)1 << BITS) - 1)
#define ROOM ((int64_t)1 << 20)

// x[i] = TERM(i), with carries to the next.
#define UPDATE(n, x, TERM)                                                                          \
    do {                                                                                            \
        x[n - 1] = TERM(n - 1) + (TERM(n - 2) >> BITS);                                             \
        for (int i = n - 2; i >= 1; i--) x[i] = (TERM(i) & MASK) + (TERM(i - 1) >> BITS);           \
        x[0] = TERM(0) & MASK;                                                                      \
    } while (0)

static int64_t *restrict sum, *restrict num, *restrict den;

static int at_least(int n, int64_t m, int64_t x) {
    int64_t carry = 0;
    for (int i = 0; i < n; i++) carry = (carry + m * num[i] + sum[i] - x * den[i]) >> BITS;
    return carry >= 0;
}
static double leading(int n, const int64_t *x) {
    double value = 0;
    for (int i = n - 4; i < n; i++) value = value / (MASK + 1) + (i >= 0 ? x[i] : 0);
    return value;
}
static int is_full(int n) { return llabs(sum[n - 1]) + num[n - 1] + den[n - 1] > ROOM; }

static void take_in(int n, int64_t k) {
    int64_t *restrict s = sum, *restrict u = num, *restrict d = den, odd = 2 * k + 1;
#define SUM(i) ((s[i] + 2 * u[i]) * odd)
#define NUM(i) (u[i] * k)
#define DEN(i) (d[i] * odd)
    UPDATE(n, s, SUM);
    UPDATE(n, u, NUM);
    UPDATE(n, d, DEN);
}
static void give_off(int n, int64_t x) {
    int64_t *restrict s = sum, *restrict u = num, *restrict d = den;
#define LESS(i) ((s[i] - x * d[i]) * 10)
#define TEN(i) (u[i] * 10)
    UPDATE(n, s, LESS);
    UPDATE(n, u, TEN);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 30, given = 0, n = 2;
    if (count > 20000) return 1;
    size_t size = 3.4 * count * log2(7.0 * count + 8) / BITS + 16;
    sum = calloc(size, 8);
    num = calloc(size, 8);
    den = calloc(size, 8);
    num[0] = den[0] = 1;
    for (int64_t k = 1; given < count; k++) {
        take_in(n, k);
        if (is_full(n)) n++;
        double s = leading(n, sum), u = leading(n, num), d = leading(n, den);
        if (!(u <= s * 1.000001)) continue;
        double low = (3 * u + s) / d, high = (4 * u + s) / d;
        int x = low;
        if (low - x < 1e-6 || low - x > 0.999999) {
            x = low + 0.5;
            if (!at_least(n, 3, x)) x--;
        }
        if (fabs(high - (x + 1)) < 1e-6 ? at_least(n, 4, x + 1) : high >= x + 1) continue;
        putchar('0' + x);
        if (++given % 10 == 0) printf("\t:%d\n", given);
        give_off(n, x);
        if (is_full(n)) n++;
    }
    if (given % 10) printf("%*s\t:%d\n", 10 - given % 10, "", given);
}

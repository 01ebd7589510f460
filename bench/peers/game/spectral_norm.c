// The largest singular value of an infinite matrix. Columns are added one after the other, so that the sums of all rows advance
// together, in vectors.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline double a(int i, int j) { return 1.0 / ((((i + j) * (i + j + 1)) >> 1) + i + 1); }

static void multiply(int n, const double *restrict v, double *restrict result) {
    for (int i = 0; i < n; i++) result[i] = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) result[i] += a(i, j) * v[j];
}
static void multiply_transposed(int n, const double *restrict v, double *restrict result) {
    for (int i = 0; i < n; i++) result[i] = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) result[i] += a(j, i) * v[j];
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 100;
    double *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v), *t = malloc(n * sizeof *t);
    for (int i = 0; i < n; i++) u[i] = 1;
    for (int k = 0; k < 10; k++) {
        multiply(n, u, t);
        multiply_transposed(n, t, v);
        multiply(n, v, t);
        multiply_transposed(n, t, u);
    }
    double uv = 0, vv = 0;
    for (int i = 0; i < n; i++) {
        uv += u[i] * v[i];
        vv += v[i] * v[i];
    }
    printf("%.9f\n", sqrt(uv / vv));
}

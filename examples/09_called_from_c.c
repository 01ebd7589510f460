/* The program of lesson 9: calls the library that `nyala build` made. */
#include "poly.h"
#include <stdio.h>

int main(void) {
    struct Poly p = {3, {1, -3, 0, 2}};
    double x[4] = {0, 1, 2, 3}, y[4];
    eval_all(&p, 4, x, y);
    for (int i = 0; i < 4; i++) printf("%g ", y[i]);
    printf("%g\n", eval(p.c, 3, 0.5));
    return 0;
}

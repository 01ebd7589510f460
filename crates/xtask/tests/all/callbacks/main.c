#include "program.h"
#include <stdio.h>
static int32_t times(void *env, int32_t x) { return x * *(int32_t *)env; }
static void show(void *env, int32_t x) { printf("%s%d\n", (char *)env, x); }
static struct Point add(void *env, struct Point p) { struct Point *q = env; return (struct Point){p.x + q->x, p.y + q->y}; }
static struct Big big(void *env, struct Big b, struct array_i32_4 a) { b.n += a.elements[3] + *(int *)env; b.a *= 2; return b; }
static int64_t square(void *env, int32_t x) { return (int64_t)x * x + (long)env; }
static float half(void *env, float x) { ++*(int *)env; return x / 2; }
int main(void) {
    int32_t seven = 7;
    printf("%d\n", apply(5, times, &seven));
    each(3, show, "n");
    struct Point by = {1, 2};
    printf("%g\n", moved((struct Point){3, 4}, add, &by, big, &seven));
    int64_t out[1000]; in_threads(1000, square, (void *)3, out);
    int64_t sum = 0; for (int i = 0; i < 1000; i++) sum += out[i];
    printf("%ld\n", (long)sum);
    float f[20]; for (int i = 0; i < 20; i++) f[i] = i;
    int n = 0; in_lanes(20, half, &n, f);
    float fs = 0; for (int i = 0; i < 20; i++) fs += f[i];
    printf("%d %g\n", n, fs);
    int32_t two_ = 2; printf("%d %d\n", two(times, &seven, times, &two_), numbered(times, &seven, 10));
}

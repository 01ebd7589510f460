// Medians for the peers: each line is a name and nanoseconds.
#ifndef TIMING_H
#define TIMING_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static inline double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
#define RUNS 15
// The loop that is measured, or all.
static const char *only;
#define MEASURE(name, per, ...)                                   \
    if (!only || !strcmp(only, name)) do {                                                          \
        double times[RUNS];                                       \
        for (int run = 0; run < RUNS; run++) {                    \
            double start = now_ns();                              \
            __VA_ARGS__                                           \
            times[run] = (now_ns() - start) / (per);              \
        }                                                         \
        qsort(times, RUNS, sizeof(double), compare);              \
        printf("%s %.3f\n", name, times[RUNS / 2]);               \
    } while (0)
#endif

// Calls one of the loops, as often as the last argument says, and prints what it computed: `loops saxpy ours|peer 2`. How many instructions
// a call takes is the difference between two runs.
#include "loops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4096 };
#define DECLARED(name) void ours_##name(ARGUMENTS); void peer_##name(ARGUMENTS);
LOOPS(DECLARED)
static const struct { const char *name; void (*ours)(ARGUMENTS); void (*peer)(ARGUMENTS); } loops[] = {
#define LISTED(name) {#name, ours_##name, peer_##name},
    LOOPS(LISTED)
};
static float a[N], out[N];
static int b[N];
static uint8_t c[N];

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    for (int i = 0; i < N; i++) {
        a[i] = (float)(i * 2654435761u >> 8 & 0xffff) / 65536;
        b[i] = i * 40503u % N;
        c[i] = i * 2654435761u >> 16 & 15;
    }
    int times = atoi(argv[3]);
    for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
        if (strcmp(loops[k].name, argv[1])) continue;
        for (int i = 0; i < times; i++) (strcmp(argv[2], "ours") ? loops[k].peer : loops[k].ours)(N, a, b, c, out);
        double sum = 0;
        for (int i = 0; i < N; i++) sum += out[i] * (1 + i % 13);
        printf("%.17g\n", sum);
        return 0;
    }
    return 2;
}

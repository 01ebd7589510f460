#include "work.h"
void touch(int32_t *cells, int32_t i) { cells[i & 4095] = i; }
int32_t steps(int32_t n) {
    uint32_t x = 1;
    for (int32_t i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return (int32_t)x;
}

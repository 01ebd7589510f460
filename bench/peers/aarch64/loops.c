// Peers of bench/aarch64/loops.impala, for the compiler's own vectorizer.
#include "loops.h"

void peer_saxpy(ARGUMENTS) {
    for (int i = 0; i < n; i++) out[i] = a[i] * 3 + out[i];
}

void peer_stencil(ARGUMENTS) {
    for (int i = 1; i < n - 1; i++) out[i] = (a[i - 1] + a[i] * 2 + a[i + 1]) * .25f;
}

void peer_dot(ARGUMENTS) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * a[i];
    out[0] = sum;
}

void peer_least(ARGUMENTS) {
    float least = a[0];
    for (int i = 0; i < n; i++) least = a[i] < least ? a[i] : least;
    out[0] = least;
}

void peer_count(ARGUMENTS) {
    int count = 0;
    for (int i = 0; i < n; i++) count += c[i] == 7;
    out[0] = count;
}

void peer_gray(ARGUMENTS) {
    for (int i = 0; i < n / 3; i++) out[i] = (c[3 * i] * 77 + c[3 * i + 1] * 150 + c[3 * i + 2] * 29) >> 8;
}

void peer_gather(ARGUMENTS) {
    for (int i = 0; i < n; i++) out[i] = a[b[i]];
}

void peer_clamp(ARGUMENTS) {
    for (int i = 0; i < n; i++) out[i] = a[i] > .5f ? a[i] * a[i] : .25f - a[i];
}

void peer_rounds(ARGUMENTS) {
    for (int k = 0; k < n; k++) {
        float cr = a[k] * 3 - 2, ci = .3f, zr = cr, zi = ci;
        int i = 0;
        for (; i < 64; i++) {
            float r2 = zr * zr, i2 = zi * zi;
            if (r2 + i2 > 4) break;
            zi = 2 * zr * zi + ci;
            zr = r2 - i2 + cr;
        }
        out[k] = i;
    }
}

// The Mandelbrot set as a bitmap of n × n points. The eight points of a byte go together, in loops that compilers make vectors of.
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 50
#define CHUNK 5

static inline unsigned char eight(const double *restrict cr, double ci) {
    double zr[8] = {0}, zi[8] = {0};
    unsigned bits = 255;
    for (int round = 0; round < ROUNDS && bits; round += CHUNK) {
        for (int c = 0; c < CHUNK; c++)
            for (int k = 0; k < 8; k++) {
                double r = zr[k], i = zi[k];
                zr[k] = r * r - i * i + cr[k];
                zi[k] = 2.0 * r * i + ci;
            }
        bits = 0;
        for (int k = 0; k < 8; k++) bits |= (zr[k] * zr[k] + zi[k] * zi[k] <= 4.0) << (7 - k);
    }
    return bits;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 200, width = (n + 7) / 8;
    double *cr = malloc(8 * width * sizeof *cr);
    unsigned char *bitmap = malloc((size_t)n * width);
    for (int x = 0; x < 8 * width; x++) cr[x] = 2.0 * x / n - 1.5;
    for (int y = 0; y < n; y++) {
        double ci = 2.0 * y / n - 1.0;
        for (int x = 0; x < width; x++) bitmap[y * width + x] = eight(cr + 8 * x, ci);
        if (n % 8) bitmap[y * width + width - 1] &= 255 << (8 - n % 8);
    }
    printf("P4\n%d %d\n", n, n);
    fwrite(bitmap, 1, (size_t)n * width, stdout);
}

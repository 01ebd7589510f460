// Sequences of nucleotides: a given one repeated, and two of chance whose letters have given probabilities.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 60
#define LINES 1024
#define MODULUS 139968

static const char alu[] =
    "GGCCGGGCGCGGTGGCTCACGCCTGTAATCCCAGCACTTTGGGAGGCCGAGGCGGGCGGATCACCTGAGGTCAGGAGTTCGAGACCAGCCTGGCCAACATGGTGAAACCCCGTC"
    "TCTACTAAAAATACAAAAATTAGCCGGGCGTGGTGGCGCGCGCCTGTAATCCCAGCTACTCGGGAGGCTGAGGCAGGAGAATCGCTTGAACCCGGGAGGCGGAGGTTGCAGTGA"
    "GCCGAGATCGCGCCACTGCACTCCAGCCTGGGCGACAGAGCGAGACTCCGTCTCAAAAA";
#define ALU_LENGTH 287

static char text[LINES * (LINE + 1)];

static void repeated(const char *title, int n) {
    static char unit[ALU_LENGTH + LINE];
    for (int i = 0; i < ALU_LENGTH + LINE; i++) unit[i] = alu[i % ALU_LENGTH];
    fputs(title, stdout);
    int at = 0;
    while (n > 0) {
        char *to = text;
        while (n > 0 && to < text + sizeof text) {
            int length = n < LINE ? n : LINE;
            memcpy(to, unit + at, length);
            at = (at + length) % ALU_LENGTH;
            to += length;
            *to++ = '\n';
            n -= length;
        }
        fwrite(text, 1, to - text, stdout);
    }
}

static uint32_t random_sequence(const char *title, int n, const char *letters, const double *probabilities, uint32_t x) {
    static char table[MODULUS];
    int letter = 0;
    double below = probabilities[0];
    for (int v = 0; v < MODULUS; v++) {
        while (v / (double)MODULUS >= below && letters[letter + 1]) below += probabilities[++letter];
        table[v] = letters[letter];
    }
    fputs(title, stdout);
    while (n > 0) {
        char *to = text;
        while (n > 0 && to < text + sizeof text) {
            int length = n < LINE ? n : LINE;
            for (int i = 0; i < length; i++) {
                x = (x * 3877 + 29573) % MODULUS;
                to[i] = table[x];
            }
            to += length;
            *to++ = '\n';
            n -= length;
        }
        fwrite(text, 1, to - text, stdout);
    }
    return x;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 50;
    static const double iub[] = {0.27, 0.12, 0.12, 0.27, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02};
    static const double sapiens[] = {0.3029549426680, 0.1979883004921, 0.1975473066391, 0.3015094502008};
    repeated(">ONE Homo sapiens alu\n", 2 * n);
    uint32_t x = random_sequence(">TWO IUB ambiguity codes\n", 3 * n, "acgtBDHKMNRSVWY", iub, 42);
    random_sequence(">THREE Homo sapiens frequency\n", 5 * n, "acgt", sapiens, x);
}

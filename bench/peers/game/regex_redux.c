// Counts variants of a pattern in DNA, and the length of the DNA after others are replaced: matchers written out for each pattern.
// The common beginning of all matches is compared at all places of a block, without a branch, in loops that compilers vectorize; the
// rest only where it was found.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 512
#define MARGIN 64
typedef unsigned char byte;

#define C1(i, a) (s[i] == a)
#define C2(i, a, b) (C1(i, a) | C1(i, b))
#define C3(i, a, b, c) (C2(i, a, b) | C1(i, c))
#define ALL8(a, b, c, d, e, f, g, h) (a & b & c & d & e & f & g & h)
#define WORD(m, i) C1(i, m[i])

/* Where a match that begins at s ends, given that it may begin there. */
static inline const byte *behind8(const byte *s) { return s + 8; }
static inline const byte *behind4(const byte *s) { return s + 4; }
static inline const byte *behind3(const byte *s) { return s + 3; }
static inline const byte *behind2(const byte *s) { return s + 2; }
static inline const byte *behind_tag(const byte *s) {
    while (*s && *s != '>') s++;
    return *s ? s + 1 : 0;
}
static inline const byte *behind_bars(const byte *s) {
    for (s += 2; *s && *s != '|'; s++) {}
    return *s ? s + 1 : 0;
}

/* For each match, from `begin` to `end`: BODY. */
#define MATCHES(n, text, MAY_BEGIN, behind, BODY)                                        \
    do {                                                                                 \
        static uint64_t words[BLOCK / 8];                                                \
        byte *flags = (byte *)words;                                                     \
        const byte *next = text;                                                         \
        for (int block = 0; block < n; block += BLOCK) {                                 \
            for (int k = 0; k < BLOCK; k++) {                                            \
                const byte *s = text + block + k;                                        \
                flags[k] = MAY_BEGIN;                                                    \
            }                                                                            \
            for (int w = 0; w < BLOCK / 8; w++)                                          \
                for (uint64_t word = words[w]; word; word &= word - 1) {                 \
                    const byte *begin = text + block + 8 * w + __builtin_ctzll(word) / 8; \
                    if (begin < next) continue;                                          \
                    const byte *end = behind(begin);                                     \
                    if (!end) continue;                                                  \
                    BODY;                                                                \
                    next = end;                                                          \
                }                                                                        \
        }                                                                                \
    } while (0)

#define P0 ALL8(C1(0, 'a'), C1(1, 'g'), C1(2, 'g'), C1(3, 'g'), C1(4, 't'), C1(5, 'a'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C1(2, 't'), C1(3, 'a'), C1(4, 'c'), C1(5, 'c'), C1(6, 'c'), C1(7, 't'))
#define P1 ALL8(C3(0, 'c', 'g', 't'), C1(1, 'g'), C1(2, 'g'), C1(3, 'g'), C1(4, 't'), C1(5, 'a'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C1(2, 't'), C1(3, 'a'), C1(4, 'c'), C1(5, 'c'), C1(6, 'c'), C3(7, 'a', 'c', 'g'))
#define P2 ALL8(C1(0, 'a'), C3(1, 'a', 'c', 't'), C1(2, 'g'), C1(3, 'g'), C1(4, 't'), C1(5, 'a'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C1(2, 't'), C1(3, 'a'), C1(4, 'c'), C1(5, 'c'), C3(6, 'a', 'g', 't'), C1(7, 't'))
#define P3 ALL8(C1(0, 'a'), C1(1, 'g'), C3(2, 'a', 'c', 't'), C1(3, 'g'), C1(4, 't'), C1(5, 'a'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C1(2, 't'), C1(3, 'a'), C1(4, 'c'), C3(5, 'a', 'g', 't'), C1(6, 'c'), C1(7, 't'))
#define P4 ALL8(C1(0, 'a'), C1(1, 'g'), C1(2, 'g'), C3(3, 'a', 'c', 't'), C1(4, 't'), C1(5, 'a'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C1(2, 't'), C1(3, 'a'), C3(4, 'a', 'g', 't'), C1(5, 'c'), C1(6, 'c'), C1(7, 't'))
#define P5 ALL8(C1(0, 'a'), C1(1, 'g'), C1(2, 'g'), C1(3, 'g'), C3(4, 'a', 'c', 'g'), C1(5, 'a'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C1(2, 't'), C3(3, 'c', 'g', 't'), C1(4, 'c'), C1(5, 'c'), C1(6, 'c'), C1(7, 't'))
#define P6 ALL8(C1(0, 'a'), C1(1, 'g'), C1(2, 'g'), C1(3, 'g'), C1(4, 't'), C3(5, 'c', 'g', 't'), C1(6, 'a'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C1(1, 't'), C3(2, 'a', 'c', 'g'), C1(3, 'a'), C1(4, 'c'), C1(5, 'c'), C1(6, 'c'), C1(7, 't'))
#define P7 ALL8(C1(0, 'a'), C1(1, 'g'), C1(2, 'g'), C1(3, 'g'), C1(4, 't'), C1(5, 'a'), C3(6, 'c', 'g', 't'), C1(7, 'a')) | \
           ALL8(C1(0, 't'), C3(1, 'a', 'c', 'g'), C1(2, 't'), C1(3, 'a'), C1(4, 'c'), C1(5, 'c'), C1(6, 'c'), C1(7, 't'))
#define P8 ALL8(C1(0, 'a'), C1(1, 'g'), C1(2, 'g'), C1(3, 'g'), C1(4, 't'), C1(5, 'a'), C1(6, 'a'), C3(7, 'c', 'g', 't')) | \
           ALL8(C3(0, 'a', 'c', 'g'), C1(1, 't'), C1(2, 't'), C1(3, 'a'), C1(4, 'c'), C1(5, 'c'), C1(6, 'c'), C1(7, 't'))
#define R0 C1(0, 't') & C1(1, 'H') & C1(2, 'a') & C2(3, 'N', 't')
#define R1 (C1(0, 'a') & C1(1, 'N') & C1(2, 'D')) | (C1(0, 'c') & C1(1, 'a') & C1(2, 'N')) | \
           (C1(0, 'H') & C1(1, 'a') & C2(2, 'D', 'S')) | (C1(0, 'W') & C1(1, 'a') & C1(2, 'S'))
#define R2 (C1(0, 'a') & C3(1, 'N', 'S', 't')) | (C1(0, 'B') & C1(1, 'Y'))
#define R3 C1(0, '<')
#define R4 C1(0, '|') & (s[1] != '|') & (s[1] != 0)

#define COUNT(pattern, P)                                        \
    do {                                                         \
        int found = 0;                                           \
        MATCHES(length, text, (P), behind8, found++);            \
        printf("%s %d\n", pattern, found);                       \
    } while (0)

#define REPLACE(P, behind, by)                                                       \
    do {                                                                             \
        size_t room = sizeof by - 1 > 2 ? size / 2 * (sizeof by - 3) : 0;            \
        byte *out = malloc(size + room + MARGIN + BLOCK), *used = out, *rest = text; \
        MATCHES(size, text, (P), behind, {                                           \
            memcpy(used, rest, begin - rest);                                        \
            used += begin - rest;                                                    \
            memcpy(used, by, sizeof by - 1);                                         \
            used += sizeof by - 1;                                                   \
            rest = (byte *)end;                                                      \
        });                                                                          \
        memcpy(used, rest, text + size - rest);                                      \
        size = used - out + (text + size - rest);                                    \
        memset(out + size, 0, MARGIN + BLOCK);                                       \
        free(text);                                                                  \
        text = out;                                                                  \
    } while (0)

int main(void) {
    struct stat about;
    long capacity = 1 << 16, input_size = 0, n;
    if (fstat(0, &about) == 0 && about.st_size > 0) capacity = about.st_size + 1;
    byte *input = malloc(capacity);
    while ((n = fread(input + input_size, 1, capacity - input_size, stdin)) > 0) {
        input_size += n;
        if (input_size == capacity) input = realloc(input, capacity *= 2);
    }
    byte *text = malloc(input_size + MARGIN + BLOCK);
    int length = 0;
    for (long i = 0; i < input_size; i++) {
        if (input[i] == '>') {
            while (i < input_size && input[i] != '\n') i++;
        } else {
            text[length] = input[i];
            length += input[i] != '\n';
        }
    }
    memset(text + length, 0, MARGIN + BLOCK);
    COUNT("agggtaaa|tttaccct", P0);
    COUNT("[cgt]gggtaaa|tttaccc[acg]", P1);
    COUNT("a[act]ggtaaa|tttacc[agt]t", P2);
    COUNT("ag[act]gtaaa|tttac[agt]ct", P3);
    COUNT("agg[act]taaa|ttta[agt]cct", P4);
    COUNT("aggg[acg]aaa|ttt[cgt]ccct", P5);
    COUNT("agggt[cgt]aa|tt[acg]accct", P6);
    COUNT("agggta[cgt]a|t[acg]taccct", P7);
    COUNT("agggtaa[cgt]|[acg]ttaccct", P8);
    int size = length;
    REPLACE(R0, behind4, "<4>");
    REPLACE(R1, behind3, "<3>");
    REPLACE(R2, behind2, "<2>");
    REPLACE(R3, behind_tag, "|");
    REPLACE(R4, behind_bars, "-");
    printf("\n%ld\n%d\n%d\n", input_size, length, size);
}

/* The program of lesson 22: scores of many pairs, and an alignment, asked from C. */
#include "alignment.h"
#include <stdio.h>
#include <string.h>

int main(void) {
    /* A thousand pairs: a sequence, and the same one without its last i % 10 letters. */
    enum { N = 1000, LETTERS = 50 };
    static uint8_t a[N * LETTERS], b[N * LETTERS];
    static int64_t a_starts[N + 1], b_starts[N + 1];
    static int32_t scores[N];
    for (int i = 0; i < N; i++) {
        int n = LETTERS - i % 10;
        for (int k = 0; k < LETTERS; k++) a[a_starts[i] + k] = "ACGT"[(i + k * k) % 4];
        memcpy(b + b_starts[i], a + a_starts[i], n);
        a_starts[i + 1] = a_starts[i] + LETTERS;
        b_starts[i + 1] = b_starts[i] + n;
    }
    int fault = alignment_scores(N, a, a_starts, b, b_starts, scores);
    int n_wrong = 0;
    for (int i = 0; i < N; i++) {
        int missing = i % 10;
        n_wrong += scores[i] != 2 * (LETTERS - missing) - (missing > 0 ? 5 + 2 * missing : 0);
    }
    printf("scored: %d, %d wrong; first three: %d %d %d\n", fault, n_wrong, scores[0], scores[1], scores[2]);

    const uint8_t *x = (const uint8_t *)"TTACGTACGTACGTTT", *y = (const uint8_t *)"GACGTACGACGTG";
    struct Alignment found;
    uint8_t cigar[100];
    fault = alignment_local(x, 16, y, 13, &found, cigar, sizeof cigar);
    printf("aligned: %d, score %d, %d-%d with %d-%d, %s\n", fault, found.score, found.a_start, found.a_end, found.b_start, found.b_end,
           (const char *)cigar);
    fault = alignment_local(x, 0, y, 13, &found, cigar, sizeof cigar);
    printf("nothing: %d, score %d, `%s`\n", fault, found.score, (const char *)cigar);

    /* What is wrong is said. */
    const int64_t turned[3] = {0, 4, 2}, huge[2] = {0, 6000000};
    const uint8_t *none = NULL;
    printf("%d ", alignment_scores(-1, a, a_starts, b, b_starts, scores));
    printf("%d ", alignment_scores(0, none, NULL, none, NULL, NULL));
    printf("%d ", alignment_scores(2, a, turned, b, b_starts, scores));
    printf("%d ", alignment_scores(1, a, a_starts, b, huge, scores));
    printf("%d ", alignment_scores(1, none, a_starts, b, b_starts, scores));
    printf("%d ", alignment_scores(1, a, a_starts, b, b_starts, NULL));
    printf("%d ", alignment_local(x, -1, y, 13, &found, cigar, sizeof cigar));
    printf("%d ", alignment_local(x, 16, none, 13, &found, cigar, sizeof cigar));
    printf("%d %d\n", alignment_local(x, 16, y, 13, &found, cigar, 10), alignment_local(x, 16, y, 13, &found, cigar, 0));
    return 0;
}

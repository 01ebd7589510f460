// Fannkuch of all permutations of 1 to n: reverse as many of the first numbers as the first one says, until it is 1.
#include <stdio.h>
#include <stdlib.h>

#define MOST 16

static inline int flips(const int *permutation) {
    int p[MOST], first = permutation[0], count = 1;
    if (first == 0) return 0;
    for (int i = 0; i < MOST; i++) p[i] = permutation[i];
    while (p[first] != 0) {
        int next = p[first];
        p[first] = first;
        for (int i = 1, j = first - 1; i < j; i++, j--) {
            int x = p[i];
            p[i] = p[j];
            p[j] = x;
        }
        first = next;
        count++;
    }
    return count;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 7;
    if (n < 3 || n > MOST - 1) return 1;
    int p[MOST], rotations[MOST], checksum = 0, most = 0;
    for (int i = 0; i < MOST; i++) p[i] = rotations[i] = i;
    for (;;) {
        int count = flips(p), x = p[0];
        checksum += count;
        if (count > most) most = count;
        p[0] = p[1];
        p[1] = x;
        count = flips(p);
        checksum -= count;
        if (count > most) most = count;
        x = p[1];
        p[1] = p[2];
        p[2] = x;
        int i = 2;
        for (; rotations[i] == 0; i++) {
            if (i == n - 1) {
                printf("%d\nPfannkuchen(%d) = %d\n", checksum, n, most);
                return 0;
            }
            rotations[i] = i;
            x = p[0];
            for (int j = 0; j <= i; j++) p[j] = p[j + 1];
            p[i + 1] = x;
        }
        rotations[i]--;
    }
}

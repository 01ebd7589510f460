// Prints the other strand of each sequence of standard input: the complements of its letters, the last first.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE 60
#define LINES 1024

static unsigned char complements[256];

static void reverse_complement(const unsigned char *from, const unsigned char *to) {
    static unsigned char out[LINES * (LINE + 1) + 1];
    unsigned char *used = out;
    while (to > from) {
        unsigned char *begin = used;
        long room = LINE;
        while (room > 0 && to > from) {
            long n = to - from < room ? to - from : room;
            for (long i = 0; i < n; i++) {
                unsigned char c = complements[to[-1 - i]];
                *used = c;
                used += c != 0;
            }
            to -= n;
            room = LINE - (used - begin);
        }
        if (used > begin) *used++ = '\n';
        if (used - out >= LINES * LINE) {
            fwrite(out, 1, used - out, stdout);
            used = out;
        }
    }
    fwrite(out, 1, used - out, stdout);
}

static unsigned char *read_all(long *size) {
    struct stat about;
    long capacity = 1 << 16, used = 0, n;
    if (fstat(0, &about) == 0 && about.st_size > 0) capacity = about.st_size + 1;
    unsigned char *text = malloc(capacity);
    while ((n = fread(text + used, 1, capacity - used, stdin)) > 0) {
        used += n;
        if (used == capacity) text = realloc(text, capacity *= 2);
    }
    *size = used;
    return text;
}

int main(void) {
    for (int c = 0; c < 256; c++) complements[c] = c == '\n' ? 0 : c;
    const char *from = "ACGTUMRWSYKVHDBN", *to = "TGCAAKYWSRMBDHVN";
    for (int i = 0; from[i]; i++) complements[(int)from[i]] = complements[from[i] + 32] = to[i];
    long size;
    unsigned char *text = read_all(&size), *end = text + size, *at = memchr(text, '>', size);
    while (at && at < end) {
        unsigned char *line = memchr(at, '\n', end - at), *next;
        line = line ? line + 1 : end;
        next = memchr(line, '>', end - line);
        if (!next) next = end;
        fwrite(at, 1, line - at, stdout);
        reverse_complement(line, next);
        at = next;
    }
}

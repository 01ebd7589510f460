// Measures alignments of align.impala beside those of align.cu on a GPU: their scores are compared with those of a plain loop, and then,
// run after run in turns, how many cells of matrices each computes in a second. bench/gpu.sh builds and runs it; the machine code of
// align.cu is the file `align.fatbin` beside this program.
//
//   align list     the names of what is measured, a line each
//   align NAME     a row of the table: billions of cells in a second, by ours and by CUDA C++
#include "driver.h"

typedef void Run(int, int, const void *, const void *, int *);
Run ours_global, ours_linear, ours_local, ours_by_kind, ours_long_4, ours_long_8, ours_long_16;
void *ours_alloc(long long);
void ours_wait(void);

enum { READ = 150, READS = 1 << 19, RUNS = 9, SIZE = READS * READ, MOST_CHECKED = 20000 };

// Sequences whose second is the first with some changes.
static uint32_t state = 1;
static uint32_t next_random(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}
static char letter(void) { return "ACGT"[next_random(4)]; }
static void make_pairs(int count, int n, char *a, char *b) {
    for (int i = 0; i < count * n; i++) a[i] = letter();
    for (int k = 0; k < count; k++) {
        int from = 0;
        for (int i = 0; i < n; i++) {
            uint32_t kind = next_random(100);
            if (kind < 2) from++;
            if (kind == 2) from--;
            int is_copy = kind >= 10 && from + i >= 0 && from + i < n && (k % 16 || n > READ);
            b[k * n + i] = is_copy ? a[k * n + from + i] : letter();
        }
    }
}

// A score by the plain recurrence.
struct Scheme { int is_local, open, extend, is_by_kind; };
static int max(int a, int b) { return a > b ? a : b; }
static int score_of(const struct Scheme *s, char x, char y) {
    if (x == y) return 2;
    return !s->is_by_kind || (x == 'A' || x == 'G') == (y == 'A' || y == 'G') ? -1 : -2;
}
static int reference(const struct Scheme *s, int n, const char *a, const char *b) {
    enum { NEVER = -100000000 };
    static int best[MOST_CHECKED + 1], down[MOST_CHECKED + 1];
    int greatest = 0;
    for (int j = 0; j <= n; j++) {
        best[j] = s->is_local || !j ? 0 : -s->open - j * s->extend;
        down[j] = NEVER;
    }
    for (int i = 0; i < n; i++) {
        int diagonal = best[0], right = NEVER;
        best[0] = s->is_local ? 0 : -s->open - (i + 1) * s->extend;
        for (int j = 1; j <= n; j++) {
            right = max(best[j - 1] - s->open, right) - s->extend;
            down[j] = max(best[j] - s->open, down[j]) - s->extend;
            int cell = max(max(diagonal + score_of(s, a[i], b[j - 1]), right), down[j]);
            if (s->is_local) cell = max(cell, 0);
            diagonal = best[j];
            best[j] = cell;
            greatest = max(greatest, cell);
        }
    }
    return s->is_local ? greatest : best[n];
}

// `count` pairs of n letters. `rows`: those of a lane, for long pairs.
static const struct Kind {
    const char *name;
    int count, n, rows;
    Run *run;
    struct Scheme scheme;
    const char *peer;
} kinds[] = {
    {"reads, affine", READS, READ, 0, ours_global, {0, 2, 1, 0}, "theirs_dpx"},
    {"reads, affine, theirs without DPX", READS, READ, 0, ours_global, {0, 2, 1, 0}, "theirs_halves"},
    {"reads, linear", READS, READ, 0, ours_linear, {0, 0, 1, 0}, NULL},
    {"reads, local", READS, READ, 0, ours_local, {1, 2, 1, 0}, NULL},
    {"reads, transitions cost less", READS, READ, 0, ours_by_kind, {0, 2, 1, 1}, NULL},
    {"a pair of 20,000", 1, 20000, 4, ours_long_4, {0, 2, 1, 0}, "theirs_long_4"},
    {"128 pairs of 20,000", 128, 20000, 16, ours_long_16, {0, 2, 1, 0}, "theirs_long_16"},
    {"a pair of 200,000", 1, 200000, 4, ours_long_4, {0, 2, 1, 0}, "theirs_long_4"},
    {"a pair of 1,000,000", 1, 1000000, 8, ours_long_8, {0, 2, 1, 0}, "theirs_long_8"},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void *a_there, *b_there, *line, *reached, *clear;
static int *scores_there;
static void run(const struct Kind *kind, void *peer) {
    if (!peer) {
        kind->run(kind->count, kind->n, a_there, b_there, scores_there);
        ours_wait();
        return;
    }
    int count = kind->count, n = kind->n;
    if (kind->rows) {
        int stripes = count * ((n + 64 * kind->rows - 1) / (64 * kind->rows)), numbers = stripes + 1;
        void *to_clear[] = {&numbers, &reached};
        must("cuLaunchKernel", cuLaunchKernel(clear, (numbers + 127) / 128, 1, 1, 128, 1, 1, 0, stream, to_clear, NULL));
        void *args[] = {&count, &n, &a_there, &b_there, &scores_there, &line, &reached};
        must("cuLaunchKernel", cuLaunchKernel(peer, stripes, 1, 1, 32, 1, 1, 0, stream, args, NULL));
    } else {
        void *args[] = {&count, &a_there, &b_there, &scores_there};
        must("cuLaunchKernel", cuLaunchKernel(peer, (count + 31) / 32, 1, 1, 128, 1, 1, 0, stream, args, NULL));
    }
    must("cuStreamSynchronize", cuStreamSynchronize(stream));
}

// How many of some scores differ from those of the plain loop, and of the others from the first ones.
static int check(const struct Kind *kind, const char *a, const char *b, int *first, int is_first) {
    static int scores[READS];
    must("cuMemcpyDtoH", cuMemcpyDtoH_v2(scores, (uint64_t)scores_there, kind->count * sizeof *scores));
    int wrong = 0, n = kind->n, checked = n > MOST_CHECKED ? 0 : n > READ ? 1 : 300;
    for (int k = 0; k < checked; k++) {
        int wanted = reference(&kind->scheme, n, a + k * n, b + k * n);
        if (scores[k] != wanted && !wrong++) printf("pair %d: %d, but %d\n", k, scores[k], wanted);
    }
    // Longer ones are alike, so that their score is positive.
    if (!checked && scores[0] <= 0 && !wrong++) printf("pair 0: %d\n", scores[0]);
    if (is_first) memcpy(first, scores, sizeof scores);
    for (int k = checked; k < kind->count; k++) {
        if (scores[k] != first[k] && !wrong++) printf("pair %d: %d and %d\n", k, first[k], scores[k]);
    }
    return wrong;
}

static double median(double *times) {
    qsort(times, RUNS, sizeof *times, by_value);
    return times[RUNS / 2];
}

static int measure(const char *self, const struct Kind *kind) {
    static char a[SIZE], b[SIZE];
    static int first[READS];
    make_pairs(kind->count, kind->n, a, b);
    long long letters = (long long)kind->count * kind->n, score_bytes = kind->count * 4ll;
    a_there = ours_alloc(letters);
    b_there = ours_alloc(letters);
    scores_there = ours_alloc(score_bytes);
    line = ours_alloc(8 * letters);
    reached = ours_alloc(1 << 20);
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)a_there, a, letters));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)b_there, b, letters));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)scores_there, first, score_bytes));
    void *peer = kind->peer ? load_kernel(self, "align.fatbin", kind->peer) : NULL;
    if (peer && kind->rows) clear = load_kernel(self, "align.fatbin", "theirs_clear");
    run(kind, NULL);
    int wrong = check(kind, a, b, first, 1);
    if (peer) {
        static int nothing[READS];
        must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)scores_there, nothing, score_bytes));
        run(kind, peer);
        int theirs = check(kind, a, b, first, 0);
        if (theirs) printf("%d of theirs\n", theirs);
        wrong += theirs;
    }
    double times[2][RUNS];
    for (int i = 0; i < RUNS; i++) {
        for (int which = 0; which < (peer ? 2 : 1); which++) {
            double start = now();
            run(kind, which ? peer : NULL);
            times[which][i] = now() - start;
        }
    }
    double cells = (double)kind->count * kind->n * kind->n / 1e3, ours = cells / median(times[0]), theirs = peer ? cells / median(times[1]) : 0;
    printf("| %s | %.0f | ", kind->name, ours);
    if (peer) printf("%.0f | %.2f | ", theirs, ours / theirs); else printf("| | ");
    printf("%s |\n", wrong ? "DIFFERENT" : "equal");
    return wrong != 0;
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    if (!strcmp(wanted, "list")) {
        for (int i = 0; i < N_KINDS; i++) puts(kinds[i].name);
        return 0;
    }
    open_device();
    for (int i = 0; i < N_KINDS; i++) if (!strcmp(wanted, kinds[i].name)) return measure(argv[0], &kinds[i]);
    fail(wanted, "nothing of this name is measured");
}

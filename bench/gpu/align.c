// Measures alignments of align.impala beside those of align.cu on a GPU: their scores are compared with those of a plain loop, and then,
// run after run in turns, how many cells of matrices each computes in a second. bench/gpu.sh builds and runs it; the machine code of
// align.cu is the file `align.fatbin` beside this program.
//
//   align list     the names of what is measured, a line each
//   align NAME     a row of the table: billions of cells in a second, by ours and by CUDA C++
#include "driver.h"

void ours_global(int, const void *, const void *, int *);
void ours_linear(int, const void *, const void *, int *);
void ours_local(int, const void *, const void *, int *);
void ours_by_kind(int, const void *, const void *, int *);
void *ours_alloc(long long);
void ours_wait(void);

enum { N = 150, COUNT = 1 << 19, CHECKED = 300, RUNS = 9, SIZE = COUNT * N };

// Sequences whose second is the first with some changes.
static uint32_t state = 1;
static uint32_t next_random(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}
static char letter(void) { return "ACGT"[next_random(4)]; }
static void make_pairs(char *a, char *b) {
    for (int i = 0; i < SIZE; i++) a[i] = letter();
    for (int k = 0; k < COUNT; k++) {
        int from = 0;
        for (int i = 0; i < N; i++) {
            uint32_t kind = next_random(100);
            if (kind < 2) from++;
            if (kind == 2) from--;
            int is_copy = kind >= 10 && from + i >= 0 && from + i < N && k % 16;
            b[k * N + i] = is_copy ? a[k * N + from + i] : letter();
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
static int reference(const struct Scheme *s, const char *a, const char *b) {
    enum { NEVER = -1000000 };
    int best[N + 1], down[N + 1], greatest = 0;
    for (int j = 0; j <= N; j++) {
        best[j] = s->is_local || !j ? 0 : -s->open - j * s->extend;
        down[j] = NEVER;
    }
    for (int i = 0; i < N; i++) {
        int diagonal = best[0], right = NEVER;
        best[0] = s->is_local ? 0 : -s->open - (i + 1) * s->extend;
        for (int j = 1; j <= N; j++) {
            right = max(best[j - 1] - s->open, right) - s->extend;
            down[j] = max(best[j] - s->open, down[j]) - s->extend;
            int cell = max(max(diagonal + score_of(s, a[i], b[j - 1]), right), down[j]);
            if (s->is_local) cell = max(cell, 0);
            diagonal = best[j];
            best[j] = cell;
            greatest = max(greatest, cell);
        }
    }
    return s->is_local ? greatest : best[N];
}

static const struct Kind {
    const char *name;
    void (*run)(int, const void *, const void *, int *);
    struct Scheme scheme;
    const char *peer;
} kinds[] = {
    {"reads, affine", ours_global, {0, 2, 1, 0}, "theirs_dpx"},
    {"reads, affine, theirs without DPX", ours_global, {0, 2, 1, 0}, "theirs_halves"},
    {"reads, linear", ours_linear, {0, 0, 1, 0}, NULL},
    {"reads, local", ours_local, {1, 2, 1, 0}, NULL},
    {"reads, transitions cost less", ours_by_kind, {0, 2, 1, 1}, NULL},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int count = COUNT;
static void *a_there, *b_there;
static int *scores_there;
static void run(const struct Kind *kind, void *peer) {
    if (!peer) {
        kind->run(COUNT, a_there, b_there, scores_there);
        ours_wait();
        return;
    }
    void *args[] = {&count, &a_there, &b_there, &scores_there};
    must("cuLaunchKernel", cuLaunchKernel(peer, COUNT / 32, 1, 1, 128, 1, 1, 0, stream, args, NULL));
    must("cuStreamSynchronize", cuStreamSynchronize(stream));
}

// How many of some scores differ from those of the plain loop, and of all from the first ones.
static int check(const struct Kind *kind, const char *a, const char *b, int *first, int is_first) {
    static int scores[COUNT];
    must("cuMemcpyDtoH", cuMemcpyDtoH_v2(scores, (uint64_t)scores_there, sizeof scores));
    int wrong = 0;
    for (int k = 0; k < CHECKED; k++) wrong += scores[k] != reference(&kind->scheme, a + k * N, b + k * N);
    if (is_first) memcpy(first, scores, sizeof scores);
    for (int k = CHECKED; k < COUNT; k++) wrong += scores[k] != first[k];
    if (wrong) printf("%d wrong, such as %d for %d; ", wrong, scores[0], reference(&kind->scheme, a, b));
    return wrong;
}

static double median(double *times) {
    qsort(times, RUNS, sizeof *times, by_value);
    return times[RUNS / 2];
}

static int measure(const char *self, const struct Kind *kind) {
    static char a[SIZE], b[SIZE];
    static int first[COUNT], nothing[COUNT];
    make_pairs(a, b);
    a_there = ours_alloc(SIZE);
    b_there = ours_alloc(SIZE);
    scores_there = ours_alloc(sizeof first);
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)a_there, a, SIZE));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)b_there, b, SIZE));
    must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)scores_there, nothing, sizeof nothing));
    void *peer = kind->peer ? load_kernel(self, "align.fatbin", kind->peer) : NULL;
    run(kind, NULL);
    int wrong = check(kind, a, b, first, 1);
    if (peer) {
        must("cuMemcpyHtoD", cuMemcpyHtoD_v2((uint64_t)scores_there, nothing, sizeof nothing));
        run(kind, peer);
        if (check(kind, a, b, first, 0)) {
            printf("(theirs) ");
            wrong++;
        }
    }
    double times[2][RUNS];
    for (int i = 0; i < RUNS; i++) {
        for (int which = 0; which < (peer ? 2 : 1); which++) {
            double start = now();
            run(kind, which ? peer : NULL);
            times[which][i] = now() - start;
        }
    }
    double cells = (double)COUNT * N * N / 1e3, ours = cells / median(times[0]), theirs = peer ? cells / median(times[1]) : 0;
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

// Random pairs of sequences: what `lib/align` finds (kernels.impala) beside plain quadratic loops by the definition.
//
//   random KIND SEED PAIRS
//
// Prints `N pairs agree`, or what differs with the case and the sequences, and ends with 1.
#include "kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 300, LONG = 2000, LONGEST = 10000, MOST = 10240, NEVER = -1500000000 };

// The kind of schemes that the library was made for: kernels.impala lists them.
static int is_local, pieces, has_matrix;

static uint64_t state;
static uint32_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = ((state >> 18) ^ state) >> 27, turn = state >> 59;
    return x >> turn | x << (-turn & 31);
}
static int below(int n) { return (uint64_t)next() * n >> 32; }
static int between(int a, int b) { return a + below(b - a + 1); }

// The logarithm of lengths is uniform: each power of two has as many as the next. Some are 0.
static int length(int most) {
    int bits = 0;
    while (1 << (bits + 1) <= most) bits++;
    int n = (1 << below(bits + 1));
    n += below(n);
    return below(40) == 0 ? 0 : n > most ? most : n;
}

static int score_of_pair[256][256];

static int gap(const Case *c, int n) {
    if (n == 0) return 0;
    int cost = (pieces ? c->open : 0) + n * c->extend;
    int other = c->long_open + n * c->long_extend;
    return pieces == 2 && other < cost ? other : cost;
}
static int max(int a, int b) { return a > b ? a : b; }

// The best score, cell by cell, with all cells in memory for one row: `down` and `right` are those that end in a gap of a piece.
// Cells count whose column exceeds their row by `low` to `high`; if no alignment has such cells only, the result is
// below NEVER / 2.
static int plain_in_band(const Case *c, const uint8_t *a, int n, const uint8_t *b, int m, int low, int high) {
    static int best[MOST + 1], down[2][MOST + 1];
    int open[2] = {pieces ? c->open : 0, c->long_open}, extend[2] = {c->extend, c->long_extend};
    int rows = pieces == 2 ? 2 : 1, found = NEVER;
    for (int i = 0; i <= n; i++) {
        int diagonal = 0, right[2] = {NEVER, NEVER};
        for (int j = 0; j <= m; j++) {
            int above = best[j], v = NEVER;
            if (i == 0 && j == 0) v = 0;
            if (is_local || i == 0 && c->ends & 4 || j == 0 && c->ends & 1) v = 0;
            if (i > 0 && j > 0) v = max(v, diagonal + score_of_pair[a[i - 1]][b[j - 1]]);
            for (int p = 0; p < rows; p++) {
                down[p][j] = i == 0 ? NEVER : max(above - open[p] - extend[p], down[p][j] - extend[p]);
                right[p] = j == 0 ? NEVER : max(best[j - 1] - open[p] - extend[p], right[p] - extend[p]);
                v = max(v, max(down[p][j], right[p]));
            }
            if (j - i < low || j - i > high) v = down[0][j] = down[1][j] = right[0] = right[1] = NEVER;
            diagonal = above;
            best[j] = v;
            if (is_local || i == n && j == m || i == n && c->ends & 8 || j == m && c->ends & 2) found = max(found, v);
        }
    }
    return found;
}

static int plain(const Case *c, const uint8_t *a, int n, const uint8_t *b, int m) { return plain_in_band(c, a, n, b, m, -n, m); }

// The best score of an alignment from both starts on; a cell that is more than `drop` below the best of the rows above leads no
// further.
static Found plain_extension(const Case *c, const uint8_t *a, int n, const uint8_t *b, int m, int drop) {
    static int best[MOST + 1], down[2][MOST + 1];
    int open[2] = {pieces ? c->open : 0, c->long_open}, extend[2] = {c->extend, c->long_extend};
    int rows = pieces == 2 ? 2 : 1;
    Found found = {0, 0, 0};
    for (int i = 0; i <= n; i++) {
        int diagonal = NEVER, right[2] = {NEVER, NEVER}, least = found.score - drop, alive = 0;
        for (int j = 0; j <= m; j++) {
            int above = best[j], v = i == 0 && j == 0 ? 0 : NEVER;
            if (i > 0 && j > 0 && diagonal != NEVER) v = diagonal + score_of_pair[a[i - 1]][b[j - 1]];
            for (int p = 0; p < rows; p++) {
                down[p][j] = i == 0 ? NEVER : max(above - open[p] - extend[p], down[p][j] - extend[p]);
                right[p] = j == 0 ? NEVER : max(best[j - 1] - open[p] - extend[p], right[p] - extend[p]);
                v = max(v, max(down[p][j], right[p]));
            }
            diagonal = above;
            best[j] = v;
            if (v < least) best[j] = down[0][j] = down[1][j] = right[0] = right[1] = NEVER;
            else alive = 1;
            if (v >= least && v > found.score) found = (Found){v, i, j};
        }
        if (!alive) break;
    }
    return found;
}

static int differs(const char *what, const Case *c, const uint8_t *a, int n, const uint8_t *b, int m, int wanted, int found) {
    printf("%s: %d instead of %d; local %d, ends %d, gaps of %d pieces: %d %d, %d %d; matrix %d, scores %d %d\na, %d letters:", what, found,
        wanted, is_local, c->ends, pieces, c->open, c->extend, c->long_open, c->long_extend, c->matrix, c->equal, c->other, n);
    for (int i = 0; i < n; i++) printf(" %d", a[i]);
    printf("\nb, %d letters:", m);
    for (int j = 0; j < m; j++) printf(" %d", b[j]);
    printf("\n");
    return 1;
}

// Checks an alignment: it starts and ends where it may, and its operations score what it says.
static int is_wrong(const Case *c, const uint8_t *a, int n, const uint8_t *b, int m, const Alignment *x, const uint8_t *ops, int64_t count) {
    int i = x->a_end, j = x->b_end, sum = 0;
    if (!is_local) {
        if (i < n && !(c->ends & 2) || j < m && !(c->ends & 8) || i < n && j < m) return 1;
        if (x->a_start > 0 && !(c->ends & 1) || x->b_start > 0 && !(c->ends & 4) || x->a_start > 0 && x->b_start > 0) return 2;
    }
    for (int64_t k = 0; k < count;) {
        int run = 0;
        uint8_t op = ops[k];
        for (; k < count && ops[k] == op; k++) run++;
        if (op == 'I') {
            i -= run;
            sum -= gap(c, run);
        } else if (op == 'D') {
            j -= run;
            sum -= gap(c, run);
        } else {
            for (; run > 0; run--) {
                i--;
                j--;
                if (i < 0 || j < 0 || (a[i] == b[j]) != (op == '=') || op != '=' && op != 'X') return 3;
                sum += score_of_pair[a[i]][b[j]];
            }
        }
        if (i < 0 || j < 0) return 4;
    }
    if (i != x->a_start || j != x->b_start) return 5;
    return sum == x->score ? 0 : 6;
}

// Those of a group of the longest.
static uint8_t a[GROUP * LONG + MOST], b[GROUP * LONG + MOST];
static int64_t a_starts[GROUP + 1], b_starts[GROUP + 1];

static uint8_t letter(int kind) {
    static const char *acids = "ARNDCQEGHILKMFPSTWYVBZX*", *others = "acgtnxJU-.";
    if (kind == 0) return "ACGT"[below(4)];
    if (kind == 1) return "AC"[below(16) == 0];
    if (kind == 2) return acids[below(20)];
    if (kind == 3) return below(4) ? acids[below(24)] : others[below(10)];
    return below(256);
}

// A copy of a with so many of a hundred letters changed, left out or added, and now and then a long gap.
static int copy(const uint8_t *a, int n, uint8_t *b, int most, int kind, int changes) {
    int m = 0;
    for (int i = 0; i < n && m < most; i++) {
        if (below(100) < changes) {
            int what = below(20);
            if (what < 8) b[m++] = letter(kind);
            else if (what < 13) continue;
            else if (what < 18) { b[m++] = a[i]; if (m < most) b[m++] = letter(kind); }
            else if (what < 19) i += below(60);
            else for (int k = below(60); k > 0 && m < most; k--) b[m++] = letter(kind);
        } else {
            b[m++] = a[i];
        }
    }
    return m;
}

static Case random_case(void) {
    Case c = {0};
    c.ends = is_local ? 15 : below(2) ? below(16) : (int[]){0, 12, 15}[below(3)];
    // Costs as they are in use, some that need 16 bits, and some that need 32.
    int scale = below(8) ? 1 : below(2) ? between(5, 40) : between(50, 2000);
    c.equal = between(0, 5) * scale;
    c.other = between(-6, 1) * scale;
    c.open = between(0, 12) * scale;
    c.extend = between(0, 4) * scale;
    c.long_open = c.open + between(0, 30) * scale;
    c.long_extend = below(c.extend + 1);
    if (has_matrix) {
        c.matrix = between(1, 4);
        c.open = between(0, 14);
        c.extend = between(0, 3);
    }
    return c;
}

// Scores at the limit of types of 8 and 16 bits: equal letters, as many as it takes.
static void at_limit(Case *c, int *most) {
    static const int limits[] = {127, 128, 255, 256, 19000, 20000, 32767, 32768, 65535, 65536};
    int limit = limits[below(10)];
    c->equal = max(1, limit / between(20, 600));
    c->other = -between(0, c->equal);
    *most = limit / c->equal + between(-2, 2);
}

static int check_group(int count, int most) {
    Case c = random_case();
    int kind = c.matrix ? between(2, 4) : below(5), is_even = below(3) == 0, limit = 0;
    if (!has_matrix && below(12) == 0 && most <= 600) {
        at_limit(&c, &limit);
        if (limit < 1) limit = 1;
    }
    for (int x = 0; x < 256; x++)
        for (int y = 0; y < 256; y++) score_of_pair[x][y] = pair_of_case(&c, x, y);
    int n = length(most), m = length(most);
    int64_t at = 0, bt = 0;
    for (int k = 0; k < count; k++) {
        if (!is_even) {
            n = length(most);
            m = length(most);
        }
        a_starts[k] = at;
        b_starts[k] = bt;
        if (limit) {
            n = m = max(1, limit + (is_even ? 0 : between(-3, 3)));
            memset(a + at, 'A', n);
            memset(b + bt, 'A', m);
        } else {
            for (int i = 0; i < n; i++) a[at + i] = letter(kind);
            int done = below(3) ? copy(a + at, n, b + bt, is_even || below(2) ? m : most, kind, (int[]){1, 5, 15, 40}[below(4)]) : 0;
            if (!is_even && done) m = done;
            for (int j = done; j < m; j++) b[bt + j] = letter(kind);
        }
        at += n;
        bt += m;
    }
    a_starts[count] = at;
    b_starts[count] = bt;

    static int in_lanes[GROUP], searched[GROUP];
    static uint8_t ops[2 * MOST];
    scores_in_lanes(&c, count, a, a_starts, b, b_starts, in_lanes);
    int query = below(count);
    scores_of_search(&c, a + a_starts[query], a_starts[query + 1] - a_starts[query], count, b, b_starts, searched);
    for (int k = 0; k < count; k++) {
        const uint8_t *x = a + a_starts[k], *y = b + b_starts[k];
        int n = a_starts[k + 1] - a_starts[k], m = b_starts[k + 1] - b_starts[k], wanted = plain(&c, x, n, y, m);
        if (in_lanes[k] != wanted) return differs("score_pairs", &c, x, n, y, m, wanted, in_lanes[k]);
        Found found, by_rows;
        score_of(&c, x, n, y, m, &found);
        if (found.score != wanted) return differs("score", &c, x, n, y, m, wanted, found.score);
        score_by_rows_of(&c, x, n, y, m, &by_rows);
        if (by_rows.score != wanted) return differs("score_by_rows", &c, x, n, y, m, wanted, by_rows.score);
        if (found.a_end != by_rows.a_end) return differs("score: end in a", &c, x, n, y, m, by_rows.a_end, found.a_end);
        if (found.b_end != by_rows.b_end) return differs("score: end in b", &c, x, n, y, m, by_rows.b_end, found.b_end);
        Alignment whole;
        int64_t length = align_of(&c, x, n, y, m, below(2) ? 1 << 26 : between(1, 400), &whole, ops);
        if (whole.score != wanted) return differs("align", &c, x, n, y, m, wanted, whole.score);
        int fault = is_wrong(&c, x, n, y, m, &whole, ops, length);
        if (fault) return differs("align: fault of operations", &c, x, n, y, m, 0, fault);
        if (k % 8 == 1) {
            int low = between(-n - 3, m + 3), high = low + below(40);
            if (below(2)) {
                low = (m - n < 0 ? m - n : 0) - below(10);
                high = max(0, m - n) + below(10);
            }
            int wanted = plain_in_band(&c, x, n, y, m, low, high);
            score_in_band_of(&c, x, n, y, m, low, high, &found);
            length = align_in_band_of(&c, x, n, y, m, low, high, &whole, ops);
            if (wanted > NEVER / 2 && found.score != wanted) return differs("score_in_band", &c, x, n, y, m, wanted, found.score);
            if (whole.score != found.score) return differs("align_in_band", &c, x, n, y, m, found.score, whole.score);
            int fault = is_wrong(&c, x, n, y, m, &whole, ops, length);
            if (fault) return differs("align_in_band: fault of operations", &c, x, n, y, m, 0, fault);
            int drop = below(3) ? below(60) : below(3000);
            Found extension = plain_extension(&c, x, n, y, m, drop);
            score_extension_of(&c, x, n, y, m, drop, &found);
            if (found.score != extension.score) return differs("score_extension", &c, x, n, y, m, extension.score, found.score);
            if (found.a_end != extension.a_end) return differs("score_extension: end in a", &c, x, n, y, m, extension.a_end, found.a_end);
            if (found.b_end != extension.b_end) return differs("score_extension: end in b", &c, x, n, y, m, extension.b_end, found.b_end);
        }
        if (k % 4 == 0) {
            int q = a_starts[query + 1] - a_starts[query], wanted = plain(&c, a + a_starts[query], q, y, m);
            if (searched[k] != wanted) return differs("search", &c, a + a_starts[query], q, y, m, wanted, searched[k]);
        }
    }
    return 0;
}

static int check_distances(int count) {
    Case c = {.extend = 1, .other = -1};
    for (int x = 0; x < 256; x++)
        for (int y = 0; y < 256; y++) score_of_pair[x][y] = -(x != y);
    for (int k = 0; k < count; k++) {
        int kind = below(5), n = length(1000), m = length(1000);
        for (int i = 0; i < n; i++) a[i] = letter(kind);
        int done = below(4) ? copy(a, n, b, MOST, kind, (int[]){1, 5, 15, 40}[below(4)]) : 0;
        if (done) m = done;
        for (int j = done; j < m; j++) b[j] = letter(kind);
        int wanted = -plain(&c, a, n, b, m), found = edit_distance_of(a, n, b, m);
        if (found != wanted) return differs("edit_distance", &c, a, n, b, m, wanted, found);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int kind = atoi(argv[1]);
    is_local = kind / 4;
    has_matrix = kind % 4 == 3;
    pieces = has_matrix ? 1 : kind % 4;
    state = strtoull(argv[2], 0, 10) * 2862933555777941757u + 3037000493u;
    int pairs = atoi(argv[3]), done = 0;
    while (done < pairs) {
        // One of a hundred pairs is long.
        int is_long = below(60) == 0;
        int count = is_long ? between(1, 70) : between(1, GROUP);
        if (check_group(count, is_long ? LONG : 600)) return 1;
        // A pair of many tiles.
        if (is_long && check_group(1, LONGEST)) return 1;
        done += count;
        if (!is_local && !pieces && below(2)) {
            if (check_distances(count / 4 + 1)) return 1;
            done += count / 4 + 1;
        }
    }
    printf("%d pairs agree\n", done);
    return 0;
}

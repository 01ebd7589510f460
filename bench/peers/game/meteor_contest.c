// All ways to cover a board of ten rows of five hexagons with ten pieces of five: how many there are, the first and the last.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { E, SE, SW, W, NW, NE, ROWS = 10, COLUMNS = 5, CELLS = 50, PIECES = 10, MOST = 12 };
#define BOARD (((uint64_t)1 << CELLS) - 1)

static const int steps[PIECES][5] = {
    {E, E, E, SE, -1},   {SE, SW, W, SW, -1},  {W, W, SW, SE, -1}, {E, E, SW, SE, -1},   {SE, SW, NE, E, SE},
    {E, E, NW, E, -1},   {W, SE, SW, SE, -1},  {SW, E, E, NE, -1}, {SE, SE, E, SE, -1}, {SE, SE, SW, E, -1},
};
static int counts[PIECES][CELLS];
static uint64_t placements[PIECES][CELLS][MOST];
static uint64_t lying[PIECES], first[PIECES], last[PIECES];
static int solutions;

static uint64_t placement(int piece, int turns, int reflected, int cell) {
    int row = cell / COLUMNS, column = cell % COLUMNS;
    uint64_t cells = (uint64_t)1 << cell;
    for (int i = 0; i < 5 && steps[piece][i] >= 0; i++) {
        int right = row & 1, step = steps[piece][i];
        switch (((reflected ? 6 - step : step) + turns) % 6) {
        case E: column++; break;
        case W: column--; break;
        case SE: row++; column += right; break;
        case SW: row++; column += right - 1; break;
        case NE: row--; column += right; break;
        case NW: row--; column += right - 1; break;
        }
        if (row < 0 || row >= ROWS || column < 0 || column >= COLUMNS) return 0;
        cells |= (uint64_t)1 << (row * COLUMNS + column);
    }
    return cells;
}

static inline uint64_t around(uint64_t cells) {
    const uint64_t even = 0x1f07c1f07c1f, odd = BOARD & ~even, left = 0x210842108421, right = left << 4;
    uint64_t to_left = (cells & ~left) >> 1, to_right = (cells & ~right) << 1;
    uint64_t sides = cells | (to_left & even) | (to_right & odd);
    return to_left | to_right | (sides << 5) | (sides >> 5);
}

static int has_island(uint64_t taken) {
    uint64_t rest = BOARD & ~taken;
    while (rest) {
        uint64_t part = rest & -rest, grown;
        while ((grown = (part | around(part)) & rest) != part) part = grown;
        if (__builtin_popcountll(part) % 5) return 1;
        rest &= ~part;
    }
    return 0;
}

static void all_placements(void) {
    for (int piece = 0; piece < PIECES; piece++)
        for (int turned = 0; turned < 12; turned++)
            for (int cell = 0; cell < CELLS; cell++) {
                uint64_t cells = placement(piece, turned % 6, turned >= 6, cell);
                if (!cells || has_island(cells)) continue;
                int at = __builtin_ctzll(cells), i = 0;
                while (i < counts[piece][at] && placements[piece][at][i] != cells) i++;
                if (i == counts[piece][at]) placements[piece][at][counts[piece][at]++] = cells;
            }
}

static int piece_at(const uint64_t *board, int cell) {
    int piece = 0;
    while (!(board[piece] >> cell & 1)) piece++;
    return piece;
}
static int is_before(const uint64_t *a, const uint64_t *b) {
    for (int cell = 0; cell < CELLS; cell++) {
        int x = piece_at(a, cell), y = piece_at(b, cell);
        if (x != y) return x < y;
    }
    return 0;
}
static void print_board(const uint64_t *board) {
    for (int cell = 0; cell < CELLS; cell++)
        printf("%s%d %s", cell % 10 == 5 ? " " : "", piece_at(board, cell), cell % 5 == 4 ? "\n" : "");
    printf("\n");
}

static void solve(uint64_t taken, unsigned left) {
    if (!left) {
        if (!solutions || is_before(lying, first)) memcpy(first, lying, sizeof lying);
        if (!solutions || is_before(last, lying)) memcpy(last, lying, sizeof lying);
        solutions++;
        return;
    }
    int cell = __builtin_ctzll(~taken);
    for (unsigned rest = left; rest; rest &= rest - 1) {
        int piece = __builtin_ctz(rest);
        for (int i = 0; i < counts[piece][cell]; i++) {
            uint64_t cells = placements[piece][cell][i];
            if (cells & taken || has_island(taken | cells)) continue;
            lying[piece] = cells;
            solve(taken | cells, left & ~(1u << piece));
        }
    }
}

int main(void) {
    all_placements();
    solve(0, (1u << PIECES) - 1);
    printf("%d solutions found\n\n", solutions);
    print_board(first);
    print_board(last);
}

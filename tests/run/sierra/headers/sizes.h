#ifndef SIZES_H
#define SIZES_H
#include "../headers/numbers.h"
#define LANES 4
typedef struct Pair { int first, second; } Pair;
static int of_header(Pair p) { return p.first * 10 + p.second; }
#endif

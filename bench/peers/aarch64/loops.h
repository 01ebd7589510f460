// The loops of `./x bench aarch64`: what each gets, and their names.
#include <stdint.h>

#define ARGUMENTS int n, const float *restrict a, const int *restrict b, const uint8_t *restrict c, float *restrict out
#define LOOPS(X) X(saxpy) X(stencil) X(dot) X(least) X(count) X(gray) X(gather) X(clamp) X(rounds)

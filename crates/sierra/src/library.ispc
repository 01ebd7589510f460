// The part of ISPC's standard library that is written in the dialect. Of each function, code is made where a program calls it.

// Random numbers: three shift registers of 31, 29 and 28 bits and one of 25, of L'Ecuyer, "Tables of maximally equidistributed combined LFSR generators"
// (1999), LFSR113. They differ from those of other compilers.
struct RNGState {
    unsigned int z1, z2, z3, z4;
};

// A seed becomes four numbers that are large enough for the registers, whatever it is.
static unsigned int seed_part(unsigned int seed, uniform unsigned int by) {
    unsigned int x = seed + by;
    x = (x ^ (x >> 16)) * 0x7feb352d;
    x = (x ^ (x >> 15)) * 0x846ca68b;
    return (x ^ (x >> 16)) | 128;
}
static uniform unsigned int seed_part(uniform unsigned int seed, uniform unsigned int by) {
    uniform unsigned int x = seed + by;
    x = (x ^ (x >> 16)) * 0x7feb352d;
    x = (x ^ (x >> 15)) * 0x846ca68b;
    return (x ^ (x >> 16)) | 128;
}
static void seed_rng(varying RNGState * uniform state, unsigned int seed) {
    state->z1 = seed_part(seed, 0x9e3779b9);
    state->z2 = seed_part(seed, 0x3c6ef372);
    state->z3 = seed_part(seed, 0xdaa66d2b);
    state->z4 = seed_part(seed, 0x78dde6e4);
}
static void seed_rng(uniform RNGState * uniform state, uniform unsigned int seed) {
    state->z1 = seed_part(seed, 0x9e3779b9);
    state->z2 = seed_part(seed, 0x3c6ef372);
    state->z3 = seed_part(seed, 0xdaa66d2b);
    state->z4 = seed_part(seed, 0x78dde6e4);
}
static unsigned int random(varying RNGState * uniform state) {
    state->z1 = ((state->z1 & 0xfffffffe) << 18) ^ (((state->z1 << 6) ^ state->z1) >> 13);
    state->z2 = ((state->z2 & 0xfffffff8) << 2) ^ (((state->z2 << 2) ^ state->z2) >> 27);
    state->z3 = ((state->z3 & 0xfffffff0) << 7) ^ (((state->z3 << 13) ^ state->z3) >> 21);
    state->z4 = ((state->z4 & 0xffffff80) << 13) ^ (((state->z4 << 3) ^ state->z4) >> 12);
    return state->z1 ^ state->z2 ^ state->z3 ^ state->z4;
}
static uniform unsigned int random(uniform RNGState * uniform state) {
    state->z1 = ((state->z1 & 0xfffffffe) << 18) ^ (((state->z1 << 6) ^ state->z1) >> 13);
    state->z2 = ((state->z2 & 0xfffffff8) << 2) ^ (((state->z2 << 2) ^ state->z2) >> 27);
    state->z3 = ((state->z3 & 0xfffffff0) << 7) ^ (((state->z3 << 13) ^ state->z3) >> 21);
    state->z4 = ((state->z4 & 0xffffff80) << 13) ^ (((state->z4 << 3) ^ state->z4) >> 12);
    return state->z1 ^ state->z2 ^ state->z3 ^ state->z4;
}
// At least 0, less than 1: the upper 24 bits.
static float frandom(varying RNGState * uniform state) { return (random(state) >> 8) * 0x1p-24f; }
static uniform float frandom(uniform RNGState * uniform state) { return (random(state) >> 8) * 0x1p-24f; }

// x times 2 to the n, in two steps, so that results without all bits are rounded once.
static float power_of_two(int n) { return floatbits((clamp(n, -126, 127) + 127) << 23); }
static uniform float power_of_two(uniform int n) { return floatbits((clamp(n, -126, 127) + 127) << 23); }
static float ldexp(float x, int n) {
    int first = clamp(n, -126, 127), second = clamp(n - first, -126, 127);
    return x * power_of_two(first) * power_of_two(second) * power_of_two(n - first - second);
}
static uniform float ldexp(uniform float x, uniform int n) {
    uniform int first = clamp(n, -126, 127), second = clamp(n - first, -126, 127);
    return x * power_of_two(first) * power_of_two(second) * power_of_two(n - first - second);
}
// The fraction, from 0.5 to 1, and the power of two that make a number.
static float frexp(float x, varying int * uniform power) {
    bool is_small = abs(x) < 0x1p-126f;
    float y = select(is_small, x * 0x1p24f, x);
    int n = (intbits(y) >> 23) & 255;
    bool has_none = x == 0 || n == 255;
    *power = select(has_none, 0, n - 126 - select(is_small, 24, 0));
    return select(has_none, x, floatbits((intbits(y) & 0x807fffff) | 0x3f000000));
}
static uniform float frexp(uniform float x, uniform int * uniform power) {
    uniform bool is_small = abs(x) < 0x1p-126f;
    uniform float y = is_small ? x * 0x1p24f : x;
    uniform int n = (intbits(y) >> 23) & 255;
    if (x == 0 || n == 255) {
        *power = 0;
        return x;
    }
    *power = n - 126 - (is_small ? 24 : 0);
    return floatbits((intbits(y) & 0x807fffff) | 0x3f000000);
}

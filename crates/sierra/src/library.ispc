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

// Numbers of 64 bits that stay in range; the sums and products are those without signs, which may wrap around.
#define SATURATING(RATE)                                                                                               \
    static RATE int64 saturating_add64(RATE int64 a, RATE int64 b) {                                                   \
        RATE int64 sum = (int64)((uint64)a + (uint64)b);                                                               \
        return select(((a ^ sum) & (b ^ sum)) < 0, select(a < 0, LEAST, MOST), sum);                                   \
    }                                                                                                                  \
    static RATE uint64 saturating_add64(RATE uint64 a, RATE uint64 b) { return select(a + b < a, ALL, a + b); }        \
    static RATE int64 saturating_sub64(RATE int64 a, RATE int64 b) {                                                   \
        RATE int64 rest = (int64)((uint64)a - (uint64)b);                                                              \
        return select(((a ^ b) & (a ^ rest)) < 0, select(a < 0, LEAST, MOST), rest);                                   \
    }                                                                                                                  \
    static RATE uint64 saturating_sub64(RATE uint64 a, RATE uint64 b) { return select(a < b, ZERO, a - b); }           \
    static RATE uint64 saturating_mul64(RATE uint64 a, RATE uint64 b) {                                                \
        RATE uint64 divisor = select(a == 0, ONE, a);                                                                  \
        return select(a != 0 && b > ALL / divisor, ALL, a * b);                                                        \
    }                                                                                                                  \
    static RATE int64 saturating_mul64(RATE int64 a, RATE int64 b) {                                                   \
        RATE bool is_less = (a ^ b) < 0;                                                                               \
        RATE uint64 x = select(a < 0, ZERO - (uint64)a, (uint64)a), y = select(b < 0, ZERO - (uint64)b, (uint64)b);    \
        RATE uint64 most = select(is_less, HALF, HALF - ONE), divisor = select(x == 0, ONE, x);                        \
        RATE bool is_large = x != 0 && y > most / divisor;                                                             \
        return select(is_large, select(is_less, LEAST, MOST), (int64)((uint64)a * (uint64)b));                         \
    }                                                                                                                  \
    static RATE uint64 saturating_div64(RATE uint64 a, RATE uint64 b) { return a / b; }                                \
    static RATE int64 saturating_div64(RATE int64 a, RATE int64 b) {                                                   \
        RATE bool is_large = a == LEAST && b == -1;                                                                    \
        return select(is_large, MOST, a / select(is_large, (int64)1, b));                                              \
    }                                                                                                                  \
    static RATE uint64 avg_down64(RATE uint64 a, RATE uint64 b) { return (a & b) + ((a ^ b) >> 1); }                   \
    static RATE uint64 avg_up64(RATE uint64 a, RATE uint64 b) { return (a | b) - ((a ^ b) >> 1); }                     \
    static RATE int64 avg_toward_zero64(RATE int64 a, RATE int64 b) {                                                  \
        RATE int64 down = (a & b) + ((a ^ b) >> 1);                                                                    \
        return down + select(down < 0, (a ^ b) & 1, (int64)0);                                                         \
    }                                                                                                                  \
    static RATE int64 avg_down64(RATE int64 a, RATE int64 b) { return avg_toward_zero64(a, b); }                       \
    static RATE int64 avg_up64(RATE int64 a, RATE int64 b) {                                                           \
        RATE int64 up = (a | b) - ((a ^ b) >> 1);                                                                      \
        RATE bool is_odd = ((a ^ b) & 1) != 0;                                                                         \
        return up + select(!is_odd && up < 0, (int64)1, (int64)0);                                                     \
    }
#define ZERO ((uint64)0)
#define ONE ((uint64)1)
#define HALF ((uint64)0x8000000000000000)
#define ALL ((uint64)0xffffffffffffffff)
#define MOST ((int64)0x7fffffffffffffff)
#define LEAST ((int64)0x8000000000000000)
SATURATING(uniform)
SATURATING(varying)

// A float from 0 to 1 as a byte of sRGB, by its definition in IEC 61966-2-1.
static int float_to_srgb8(float v) {
    float x = clamp(v, 0, 1);
    float s = select(x <= 0.0031308f, 12.92f * x, 1.055f * pow(x, 1 / 2.4f) - 0.055f);
    return (int)(255 * s + 0.5f);
}
static uniform int float_to_srgb8(uniform float v) {
    uniform float x = clamp(v, 0, 1);
    uniform float s = x <= 0.0031308f ? 12.92f * x : 1.055f * pow(x, 1 / 2.4f) - 0.055f;
    return (int)(255 * s + 0.5f);
}

// Random numbers that no seed decides: a sequence by Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014), that goes on from the
// time of each call.
static uniform uint64 rdrand_state = 0;
static uniform uint64 rdrand_bits() {
    uniform uint64 x = atomic_add_global(&rdrand_state, (uniform uint64)0x9e3779b97f4a7c15) + (uniform uint64)clock();
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}
#define RDRAND(TYPE)                                                                                                   \
    static uniform bool rdrand(uniform TYPE * uniform to) {                                                            \
        *to = (uniform TYPE)rdrand_bits();                                                                             \
        return true;                                                                                                   \
    }                                                                                                                  \
    static bool rdrand(varying TYPE * uniform to) {                                                                    \
        foreach_active (i) { *to = (uniform TYPE)rdrand_bits(); }                                                      \
        return true;                                                                                                   \
    }
RDRAND(int16)
RDRAND(int32)
RDRAND(int64)
RDRAND(uint16)
RDRAND(uint32)
RDRAND(uint64)
static uniform bool rdrand(uniform float * uniform to) {
    *to = (rdrand_bits() >> 40) * 0x1p-24f;
    return true;
}
static bool rdrand(varying float * uniform to) {
    foreach_active (i) { *to = (rdrand_bits() >> 40) * 0x1p-24f; }
    return true;
}

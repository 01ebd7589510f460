// Limits of types, forms of numbers, values in braces, arrays whose lengths their values say, short vectors in conditions, templates over enumerations.
#if INT32_MAX != 2147483647
#error INT32_MAX is another number
#endif
export uniform bool test_limits() {
    uniform int8 a = INT8_MIN;
    uniform uint64 b = UINT64_MAX;
    uniform float f = FLT_MAX, g = FLT_MIN;
    uniform double d = DBL_MAX, e = DBL_MIN;
    uniform int64 l = INT64_MIN, m = INT64_MAX;
    uniform float16 h = FLT16_MAX;
    return a == -128 && b == 0xffffffffffffffffULL && f > 3e38f && g < 2e-38f && g > 0 && d > 1.7d308 && e < 3d-308 && l < 0 && m > 0 && INT16_MIN == -32768 && INT16_MAX == 32767 && UINT8_MAX == 255 && UINT16_MAX == 65535 && UINT32_MAX == 0xffffffffu && INT8_MAX == 127 && INT32_MIN < 0 && h > 60000 && FLT16_MIN > 0;
}
export uniform bool test_lex() {
    int fifteen_decimal = 15, fifteen_hex = 0xf, fifteen_binary = 0b1111, h2 = 0XF;
    int two_kb = 2k, two_megs = 2M, one_gig = 1G;
    float16 two_f16 = 2.0f16, pi_f16 = 0x1.92p+1f16;
    float two_f = 0x1p+1, neg_f = -0x1.ffep+11, pi_f = 0x1.921fb6p+1;
    double two_d = 2.0d, pi_d = 0x1.921fb54442d18p+1d, neg_d = -0.3333333333333333d, d1 = 1.234d+3, d2 = 1.234e+3d;
    double f = 31.4d-1, g = 1.d, h = 1d-2;
    float x = 1F, y = 2.f, z = .5F;
    unsigned int8 u8 = 255u;
    return all(fifteen_hex == 15 && fifteen_binary == 15 && h2 == 15 && two_kb == 2048 && one_gig == 1073741824 && neg_f == -4095 && d1 == 1234 && d2 == d1 && two_f16 == 2 && two_f == 2 && x == 1 && z == 0.5f && f == 3.14d && u8 == 255);
}
#if TARGET_WIDTH == 8
varying int numbers = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const varying int x = { 1, 2, 3, 2 + 2, 5, 6, 7, 8 };
static const varying int y = x * 2;
#else
varying int numbers = 1;
static const varying int x = 1;
static const varying int y = x * 2;
#endif
const uniform int cx = 1;
const uniform int cy = cx + 2;
enum { K = 3, L = K * 2 };
static uniform int table[L] = { K, L };
export uniform bool test_init() {
    varying int z = { 3, };
    int bar2[][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
    int bar3[][] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
    struct Foo { int x; float numbers[3]; };
    Foo fa[2] = { { 1, { 2, 3, 4 } }, { 10, { 20, 30, 40 } } };
    return all(numbers == (TARGET_WIDTH == 8 ? programIndex + 1 : 1)) && all(z == 3) && all(bar2[1][3] == 8 && bar3[1][0] == 5) && all(fa[1].numbers[2] == 40) && cy == 3 && all(y == 2 * x) && table[1] == 6 && table[5] == 0;
}
export uniform bool test_pointers_without_length() {
    uniform int a = 1, b = 2;
    uniform int * uniform both[] = { &a, &b };
    return *both[0] + *both[1] == 3 && sizeof(both) == 2 * sizeof(uniform int * uniform);
}

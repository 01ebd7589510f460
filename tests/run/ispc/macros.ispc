// Lines for the preprocessor: words that are made of others, texts of arguments, arguments in any number, places.
#define JOIN(a, b) a##b
#define WORD(a, b) JOIN(a, b)
#define NUMBER 7
#define SHOW(x) print(#x " is %\n", x)
#define SHOWN(x) SHOW(x)
#define CALL(f, ...) f(__VA_ARGS__)
#define LOG(text, ...) print(text, ##__VA_ARGS__)
#define LIST(...) { __VA_ARGS__ }
#define DECLARE(TYPE) static uniform TYPE of_##TYPE##_(uniform TYPE x) { return x + 1; }
DECLARE(int)
DECLARE(float)
static uniform int weighted(uniform int a, uniform int b, uniform int c) { return a + 10 * b + 100 * c; }
#if defined(ISPC_TARGET_SSE4) || defined(ISPC_TARGET_AVX2) || defined(ISPC_TARGET_AVX512SKX)
#define HAS_TARGET 1
#endif
export uniform int main() {
    uniform int WORD(x, NUMBER) = 3, a[] = LIST(1, 2, 3);
    SHOW(x7 + 1);
    SHOWN(NUMBER);
    LOG("no values\n");
    LOG("% and %\n", a[2], CALL(weighted, 1, 2, 3));
    return of_int_(x7) + (uniform int)of_float_(1.5f) + HAS_TARGET + (__LINE__ == 23 ? 10 : 0);
}
//> x7 + 1 is 4
//> 7 is 7
//> no values
//> 3 and 321
//= 17

// Templates of functions, and code of theirs for some arguments.
template <typename T, typename C> noinline T sum_of(T a, C b) { return a + b; }
template <> noinline int sum_of<int, int>(int a, int b) { return a - b; }
template <> uniform double sum_of<uniform double, uniform double>(uniform double a, uniform double b) { return 100 * (a + b); }
template int sum_of<int, float>(int a, float b);
export uniform bool test_specializations() {
    int x = programIndex;
    return all(sum_of<int, int>(x, 2) == x - 2) && all(sum_of<int, float>(x, 2.f) == x + 2) && all(sum_of(x, x) == 0) && sum_of(1.d, 2.d) == 300;
}
// Found from their parameters; of several templates, by the result and the parameters.
template <typename T> uniform int size_of(T a) { return 0; }
template <typename T> uniform int size_of(uniform T * uniform a, uniform int n) { return 100; }
template <> uniform int size_of(float a) { return 4; }
template <> uniform int size_of<double>(double a) { return 8; }
template <> uniform int size_of<int>(uniform int * uniform a, uniform int n) { return 104; }
export uniform bool test_several() {
    float f = 0;
    double d = 0;
    int8 c = 0;
    uniform int i = 0;
    uniform float u = 0;
    return size_of(f) == 4 && size_of(d) == 8 && size_of(c) == 0 && size_of(&i, 1) == 104 && size_of(&u, 1) == 100;
}
// Declared before, for integers, and for types that are bound.
template <typename T, int N> T total(uniform T * uniform a);
template <int N> int power(int x) { return x * power<N - 1>(x); }
template <> int power<0>(int x) { return 1; }
enum Kind { PLAIN = 3, OTHER };
template <Kind k> uniform int number_of() { return k; }
template <typename T> uniform T twice(uniform T a) { return a + a; }
export uniform bool test_arguments() {
    uniform int a[3] = { 1, 2, 3 };
    int x = programIndex;
    return all(total<int, 3>(a) == 6) && all(power<3>(x) == x * x * x) && number_of<OTHER>() == 4 && twice<int>(3) == 6 && twice(2.5f) == 5;
}
template <typename T, int N> T total(uniform T * uniform a) {
    T sum = 0;
    for (uniform int i = 0; i < N; ++i) sum += a[i];
    return sum;
}

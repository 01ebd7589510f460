// A program in ISPC's language: loops over gangs, a function for each lane's argument, and arguments that are known.
static inline float power(float x, uniform int n) {
    float r = 1;
    for (uniform int i = 0; i < n; ++i) r *= x;
    return r;
}
static float steps(float x) {
    float n = 0;
    while (x > 1) {
        x *= 0.5f;
        n += 1;
    }
    return n;
}
template <int N> inline float scaled(float x) { return x * N; }
export void run(uniform float a[], uniform int n) {
    foreach (i = 0 ... n) a[i] = power(a[i], 3) + steps(scaled<4>(a[i]));
}

// Prices of options: the formula of Black and Scholes, and a tree of up and down steps, each option in a lane.
static inline float normal(float x) {
    float l = abs(x), k = 1.f / (1.f + 0.2316419f * l), k2 = k * k;
    float w = 0.31938153f * k - 0.356563782f * k2 + 1.781477937f * k2 * k - 1.821255978f * k2 * k2 + 1.330274429f * k2 * k2 * k;
    w *= 0.39894228040f * exp(-l * l * .5f);
    if (x > 0) w = 1.f - w;
    return w;
}
export void black_scholes(uniform float S[], uniform float X[], uniform float T[], uniform float r[], uniform float v[], uniform float result[],
                          uniform int count) {
    foreach (i = 0 ... count) {
        float root = sqrt(T[i]);
        float d1 = (log(S[i] / X[i]) + (r[i] + v[i] * v[i] * .5f) * T[i]) / (v[i] * root), d2 = d1 - v[i] * root;
        result[i] = S[i] * normal(d1) - X[i] * exp(-r[i] * T[i]) * normal(d2);
    }
}

#define STEPS 16
static float tree(float S, float X, float T, float r, float v) {
    float V[STEPS];
    float dt = T / STEPS, u = exp(v * sqrt(dt)), disc = exp(r * dt), p = (disc - 1.f / u) / (u - 1.f / u);
    for (uniform int j = 0; j < STEPS; ++j) {
        float upow = pow(u, (float)(2 * j - STEPS));
        V[j] = max(0.f, X - S * upow);
    }
    for (uniform int j = STEPS - 1; j >= 0; --j) {
        for (uniform int k = 0; k < j; ++k) V[k] = ((1 - p) * V[k] + p * V[k + 1]) / disc;
    }
    return V[0];
}
static uniform float tree_of_one(uniform float S, uniform float X, uniform float T, uniform float r, uniform float v) {
    uniform float V[STEPS];
    uniform float dt = T / STEPS, u = exp(v * sqrt(dt)), disc = exp(r * dt), p = (disc - 1.f / u) / (u - 1.f / u);
    for (uniform int j = 0; j < STEPS; ++j) V[j] = max(0.f, X - S * pow(u, (uniform float)(2 * j - STEPS)));
    for (uniform int j = STEPS - 1; j >= 0; --j) {
        for (uniform int k = 0; k < j; ++k) V[k] = ((1 - p) * V[k] + p * V[k + 1]) / disc;
    }
    return V[0];
}
export void binomial(uniform float S[], uniform float X[], uniform float T[], uniform float r[], uniform float v[], uniform float result[],
                     uniform int count) {
    foreach (i = 0 ... count) result[i] = tree(S[i], X[i], T[i], r[i], v[i]);
}

export uniform bool test_options() {
    uniform float S[19], X[19], T[19], r[19], v[19], a[19], b[19];
    foreach (i = 0 ... 19) {
        S[i] = 100;
        X[i] = 90 + i;
        T[i] = 2;
        r[i] = .02f;
        v[i] = 0.1f + 0.02f * i;
    }
    black_scholes(S, X, T, r, v, a, 19);
    binomial(S, X, T, r, v, b, 19);
    for (uniform int i = 0; i < 19; ++i) {
        uniform float one = tree_of_one(S[i], X[i], T[i], r[i], v[i]);
        if (!(abs(b[i] - one) <= 1e-4f * max(one, 1.f))) return false;
        // A call, of which Black and Scholes have the price in textbooks: S 100, X 98, T 2, r 2 %, v 26 %.
        if (i == 8 && !(abs(a[i] - 17.3f) < 0.2f)) return false;
    }
    return a[0] > a[0] - 1;
}

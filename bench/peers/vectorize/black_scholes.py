# Peer of black_scholes.impala: a kernel for one option.
import opencl, numpy as np
N = 1 << 20
opencl.main(r'''
float normal(float x) {
    float l = fabs(x), k = 1.f / (1.f + 0.2316419f * l);
    float w = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    w *= 0.39894228040f * exp(-l * l * .5f);
    return x > 0 ? 1.f - w : w;
}
__kernel void black_scholes(__global const float *s, __global const float *x, __global const float *t, __global const float *r, __global const float *v, __global float *out) {
    int i = get_global_id(0);
    float q = v[i] * sqrt(t[i]), d1 = (log(s[i] / x[i]) + (r[i] + v[i] * v[i] * .5f) * t[i]) / q, d2 = d1 - q;
    out[i] = s[i] * normal(d1) - x[i] * exp(-r[i] * t[i]) * normal(d2);
}
''', 'black_scholes', (N,), [None, (256,), (4096,)], opencl.options(N), N, np.float32)

# Peer of binomial.impala: a kernel for one option, four time steps in one sweep over the tree.
import opencl, numpy as np
N = 1 << 15
opencl.main(r'''
#define STEPS 64
#define TS 4
__kernel void binomial(__global const float *sa, __global const float *xa, __global const float *ta, __global const float *ra, __global const float *va, __global float *out) {
    int i = get_global_id(0), j;
    float values[STEPS], s = sa[i], x = xa[i], dt = ta[i] / STEPS, lu = va[i] * sqrt(dt), u = exp(lu), d = 1.f / u;
    float discount = exp(ra[i] * dt), p = (discount - d) / (u - d), a = (1.f - p) / discount, b = p / discount;
    for (j = 0; j < STEPS; j++) values[j] = fmax(0.f, x - s * exp(lu * (2 * j - STEPS)));
    for (j = STEPS - 1; j >= TS; j -= TS) {
        // The previous value of each of the levels in flight.
        float q0 = values[0], q1 = values[1], q2 = values[2], q3 = values[3], c0 = q3, c1, c2, c3;
        q0 = a * q0 + b * q1; q1 = a * q1 + b * q2; q2 = a * q2 + b * q3; c1 = q2;
        q0 = a * q0 + b * q1; q1 = a * q1 + b * q2; c2 = q1;
        c3 = a * q0 + b * q1;
        for (int k = TS; k <= j; k++) {
            float y0 = values[k], y1 = a * c0 + b * y0, y2 = a * c1 + b * y1, y3 = a * c2 + b * y2;
            values[k - TS] = a * c3 + b * y3;
            c0 = y0; c1 = y1; c2 = y2; c3 = y3;
        }
    }
    for (; j > 0; j--)
        for (int k = 0; k < j; k++) values[k] = a * values[k] + b * values[k + 1];
    out[i] = values[0];
}
''', 'binomial', (N,), [None, (16,), (64,), (256,)], opencl.options(N), N, np.float32)

# Peer of mandelbrot.impala: a kernel for one point.
import opencl, numpy as np
W, H = 1536, 1024
opencl.main(r'''
__kernel void mandelbrot(float x0, float y0, float dx, float dy, int most, __global int *out) {
    int x = get_global_id(0), y = get_global_id(1), n = 0;
    float cr = x0 + x * dx, ci = y0 + y * dy, zr = cr, zi = ci;
    for (; n < most; n++) {
        float r2 = zr * zr, i2 = zi * zi;
        if (r2 + i2 > 4.f) break;
        zi = 2.f * zr * zi + ci;
        zr = r2 - i2 + cr;
    }
    out[y * get_global_size(0) + x] = n;
}
''', 'mandelbrot', (W, H), [None, (64, 1), (32, 4)],
    [np.float32(-2), np.float32(-1), np.float32(3 / W), np.float32(2 / H), np.int32(256)], W * H, np.int32)

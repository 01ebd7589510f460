# Peer of bilateral.impala: all 169 taps written out. (OpenCV's window is a circle: it computes something else.)
from peer import *
import math
N = 1024
a, o = noise(N), np.zeros((N, N), np.float32)

def in_halide():
    import halide as hl
    source = hl.Buffer(a)
    x, y, yo, yi, xo, xi = [hl.Var(n) for n in ('x', 'y', 'yo', 'yi', 'xo', 'xi')]
    def taps():
        c = hl.BoundaryConditions.repeat_edge(source)
        weights = values = None
        for j in range(-6, 7):
            for i in range(-6, 7):
                v = c[x + i, y + j]
                d = v - c[x, y]
                w = hl.f32(math.exp(-(i * i + j * j) / 18.)) * hl.fast_exp(hl.f32(-50.) * d * d)
                weights, values = (w, w * v) if weights is None else (weights + w, values + w * v)
        out = hl.Func('out')
        out[x, y] = values / weights
        out.vectorize(x, 16).parallel(y, 8)
        return out
    return [compiled(o, taps)]

main(o, halide=in_halide)

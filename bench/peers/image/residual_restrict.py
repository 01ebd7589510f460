# Peer of residual_restrict.impala.
from peer import *
N = 4096
u, f, o = noise(N), noise2(N), np.zeros((N // 2, N // 2), np.float32)

def in_halide():
    import halide as hl
    x, y, yo, yi = [hl.Var(n) for n in ('x', 'y', 'yo', 'yi')]
    def rows(height):
        c, g = hl.BoundaryConditions.repeat_edge(hl.Buffer(u)), hl.BoundaryConditions.repeat_edge(hl.Buffer(f))
        r, out = hl.Func('r'), hl.Func('out')
        r[x, y] = g[x, y] - (hl.f32(4) * c[x, y] - c[x, y - 1] - c[x, y + 1] - c[x - 1, y] - c[x + 1, y])
        out[x, y] = hl.f32(.25) * (r[2 * x, 2 * y] + r[2 * x + 1, 2 * y] + r[2 * x, 2 * y + 1] + r[2 * x + 1, 2 * y + 1])
        out.split(y, yo, yi, height).parallel(yo).vectorize(x, 16)
        r.compute_at(out, yi).vectorize(x, 16)
        return out
    return [compiled(o, lambda height=height: rows(height)) for height in (32, 128)]

main(o, halide=in_halide)

# Peer of blur.impala: the paper's schedule (tiles of 256 by 32), sliding windows.
from peer import *
N = 4096
a = (indices(N) * np.uint32(2654435761) >> 24).astype(np.int32).reshape(N, N)
o = np.zeros_like(a)

def in_halide():
    import halide as hl
    source = hl.Buffer(a)
    x, y, xi, yi, yo = [hl.Var(n) for n in ('x', 'y', 'xi', 'yi', 'yo')]
    def algorithm():
        c = hl.BoundaryConditions.repeat_edge(source)
        rows, out = hl.Func('rows'), hl.Func('out')
        rows[x, y] = (c[x - 1, y] + c[x, y] + c[x + 1, y]) / 3
        out[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) / 3
        return rows, out
    def tiles(v):
        rows, out = algorithm()
        out.tile(x, y, xi, yi, 256, 32).vectorize(xi, v).parallel(y)
        rows.compute_at(out, x).store_at(out, x).vectorize(x, v)
        return out
    def slides(v):
        rows, out = algorithm()
        out.split(y, yo, yi, N // (4 * threads)).vectorize(x, v).parallel(yo)
        rows.store_at(out, yo).compute_at(out, yi).vectorize(x, v)
        return out
    return [compiled(o, lambda make=make, v=v: make(v)) for make in (tiles, slides) for v in (8, 16)]

main(o, halide=in_halide)

# Peer of harris.impala. Halide's gradients beyond the edge are those of the continued image, ours those at the edge: the outermost pixels
# differ.
from peer import *
N = 4096
a, o = noise(N), np.zeros((N, N), np.float32)

def in_halide():
    import halide as hl
    source = hl.Buffer(a)
    x, y, xi, yi, xo, yo = [hl.Var(n) for n in ('x', 'y', 'xi', 'yi', 'xo', 'yo')]
    def algorithm():
        c = hl.BoundaryConditions.repeat_edge(source)
        gx, gy, xx, yy, xy, sxx, syy, sxy, out = [hl.Func(n) for n in ('gx', 'gy', 'xx', 'yy', 'xy', 'sxx', 'syy', 'sxy', 'out')]
        p, q = hl.f32(1 / 12), hl.f32(2 / 12)
        gx[x, y] = p * (c[x + 1, y - 1] - c[x - 1, y - 1] + c[x + 1, y + 1] - c[x - 1, y + 1]) + q * (c[x + 1, y] - c[x - 1, y])
        gy[x, y] = p * (c[x - 1, y + 1] - c[x - 1, y - 1] + c[x + 1, y + 1] - c[x + 1, y - 1]) + q * (c[x, y + 1] - c[x, y - 1])
        xx[x, y] = gx[x, y] * gx[x, y]
        yy[x, y] = gy[x, y] * gy[x, y]
        xy[x, y] = gx[x, y] * gy[x, y]
        def around(f):
            parts = [f[x + i, y + j] for j in (-1, 0, 1) for i in (-1, 0, 1)]
            return sum(parts[1:], parts[0])
        sxx[x, y], syy[x, y], sxy[x, y] = around(xx), around(yy), around(xy)
        trace = sxx[x, y] + syy[x, y]
        out[x, y] = sxx[x, y] * syy[x, y] - sxy[x, y] * sxy[x, y] - hl.f32(0.04) * trace * trace
        return gx, gy, out
    # That of Halide's own application has 32 rows.
    def rows(height):
        gx, gy, out = algorithm()
        out.split(y, y, yi, height).parallel(y).vectorize(x, 16)
        gy.store_at(out, y).compute_at(out, yi).vectorize(x, 16)
        gx.store_at(out, y).compute_at(out, yi).vectorize(x, 16)
        gx.compute_with(gy, x)
        return out
    def strips():
        gx, gy, out = algorithm()
        out.split(x, xo, xi, 512).split(y, yo, yi, 128).reorder(xi, yi, xo, yo).vectorize(xi, 16).parallel(yo)
        gy.store_at(out, xo).compute_at(out, yi).vectorize(x, 16)
        gx.store_at(out, xo).compute_at(out, yi).vectorize(x, 16)
        gx.compute_with(gy, x)
        return out
    return [
        compiled(o, lambda: rows(32)),
        compiled(o, lambda: rows(N // (4 * threads))),
        compiled(o, strips),
        compiled(o, lambda: automatic(lambda: (algorithm()[2], [(x, N), (y, N)]))),
    ]

def in_opencv():
    import cv2
    cv2.setNumThreads(threads)
    return [lambda: lambda: cv2.cornerHarris(a, 3, 3, 0.04, dst=o, borderType=cv2.BORDER_REPLICATE)]

def mend_edges():
    """The outermost pixels as ours, so that sums can be compared."""
    around = lambda f: f(-1) + f(0) + f(1)
    padded = lambda p: np.pad(p, 1, mode='edge')
    shifted = lambda p, i, j: p[1 + j:1 + j + N, 1 + i:1 + i + N]
    c = padded(a)
    p, q = np.float32(1 / 12), np.float32(2 / 12)
    gx = p * (shifted(c, 1, -1) - shifted(c, -1, -1) + shifted(c, 1, 1) - shifted(c, -1, 1)) + q * (shifted(c, 1, 0) - shifted(c, -1, 0))
    gy = p * (shifted(c, -1, 1) - shifted(c, -1, -1) + shifted(c, 1, 1) - shifted(c, 1, -1)) + q * (shifted(c, 0, 1) - shifted(c, 0, -1))
    def window(product):
        e = padded(product)
        return around(lambda j: around(lambda i: shifted(e, i, j)))
    xx, yy, xy = window(gx * gx), window(gy * gy), window(gx * gy)
    exact = xx * yy - xy * xy - np.float32(0.04) * (xx + yy) ** 2
    inside = (slice(1, -1), slice(1, -1))
    if abs(o[inside] - exact[inside]).max() > 1e-4: sys.exit('the inner pixels differ from those of NumPy')
    for edge in ((0,), (-1,), (slice(None), 0), (slice(None), -1)): o[edge] = exact[edge]

main(o, after=mend_edges if variant == 'halide' else None, halide=in_halide, opencv=in_opencv)

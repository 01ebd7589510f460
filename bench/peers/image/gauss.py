# Peer of gauss.impala.
from peer import *
N = 4096
a, o = noise(N), np.zeros((N, N), np.float32)
k = [1 / 16., 4 / 16., 6 / 16., 4 / 16., 1 / 16.]

def in_halide():
    import halide as hl
    source = hl.Buffer(a)
    x, y, xi, yi, yo = [hl.Var(n) for n in ('x', 'y', 'xi', 'yi', 'yo')]
    def algorithm():
        c = hl.BoundaryConditions.repeat_edge(source)
        rows, out = hl.Func('rows'), hl.Func('out')
        rows[x, y] = sum((hl.f32(k[i + 2]) * c[x + i, y] for i in range(-1, 3)), hl.f32(k[0]) * c[x - 2, y])
        out[x, y] = sum((hl.f32(k[i + 2]) * rows[x, y + i] for i in range(-1, 3)), hl.f32(k[0]) * rows[x, y - 2])
        return rows, out
    def whole():
        c = hl.BoundaryConditions.repeat_edge(source)
        out = hl.Func('out')
        taps = [hl.f32(k[j + 2] * k[i + 2]) * c[x + i, y + j] for j in range(-2, 3) for i in range(-2, 3)]
        out[x, y] = sum(taps[1:], taps[0])
        return out
    def tiles():
        rows, out = algorithm()
        out.tile(x, y, xi, yi, 256, 32).vectorize(xi, 16).parallel(y)
        rows.compute_at(out, x).vectorize(x, 16)
        return out
    def slides(height):
        rows, out = algorithm()
        out.split(y, yo, yi, height).vectorize(x, 16).parallel(yo)
        rows.store_at(out, yo).compute_at(out, yi).vectorize(x, 16)
        return out
    return [
        compiled(o, tiles),
        compiled(o, lambda: whole().vectorize(x, 16).unroll(y, 4).parallel(y)),
        compiled(o, lambda: slides(64)),
        compiled(o, lambda: slides(N // (4 * threads))),
        compiled(o, lambda: automatic(lambda: (algorithm()[1], [(x, N), (y, N)]))),
    ]

def in_opencv():
    import cv2
    cv2.setNumThreads(threads)
    taps = np.array(k, np.float32)
    return [lambda: lambda: cv2.sepFilter2D(a, cv2.CV_32F, taps, taps, dst=o, borderType=cv2.BORDER_REPLICATE)]

def in_numba():
    import numba
    # Sums of columns slide down each thread's rows; the ring has a place for each row modulo five.
    @numba.njit(parallel=True, fastmath=True)
    def run(a, o):
        for t in numba.prange(threads):
            first, last = N * t // threads, N * (t + 1) // threads
            ring = np.empty((5, N), np.float32)
            for y in range(first - 2, last + 2):
                row, to = a[min(max(y, 0), N - 1)], ring[(y + 10) % 5]
                for x in range(2): to[x] = numba.float32(1 / 16) * (row[max(x - 2, 0)] + row[x + 2]) + numba.float32(4 / 16) * (row[max(x - 1, 0)] + row[x + 1]) + numba.float32(6 / 16) * row[x]
                for x in range(2, N - 2): to[x] = numba.float32(1 / 16) * (row[x - 2] + row[x + 2]) + numba.float32(4 / 16) * (row[x - 1] + row[x + 1]) + numba.float32(6 / 16) * row[x]
                for x in range(N - 2, N): to[x] = numba.float32(1 / 16) * (row[x - 2] + row[min(x + 2, N - 1)]) + numba.float32(4 / 16) * (row[x - 1] + row[min(x + 1, N - 1)]) + numba.float32(6 / 16) * row[x]
                if y >= first + 2:
                    p, q, r, s, u = ring[(y + 6) % 5], ring[(y + 7) % 5], ring[(y + 8) % 5], ring[(y + 9) % 5], ring[(y + 10) % 5]
                    result = o[y - 2]
                    for x in range(N): result[x] = numba.float32(1 / 16) * (p[x] + u[x]) + numba.float32(4 / 16) * (q[x] + s[x]) + numba.float32(6 / 16) * r[x]
    return [lambda: lambda: run(a, o)]

main(o, halide=in_halide, opencv=in_opencv, numba=in_numba)

# Peer of jacobi.impala.
from peer import *
N = 4096
u, f, o = noise(N), noise2(N), np.zeros((N, N), np.float32)

def in_halide():
    import halide as hl
    x, y, yo, yi = [hl.Var(n) for n in ('x', 'y', 'yo', 'yi')]
    def rows(height):
        c, g = hl.BoundaryConditions.repeat_edge(hl.Buffer(u)), hl.BoundaryConditions.repeat_edge(hl.Buffer(f))
        out = hl.Func('out')
        out[x, y] = hl.f32(.25) * (c[x, y - 1] + c[x, y + 1] + c[x - 1, y] + c[x + 1, y] + g[x, y])
        out.split(y, yo, yi, height).parallel(yo).vectorize(x, 16)
        return out
    return [compiled(o, lambda height=height: rows(height)) for height in (32, 128)]

def in_numba():
    import numba
    quarter = np.float32(.25)
    @numba.njit(parallel=True, fastmath=True)
    def run(u, f, o):
        for t in numba.prange(threads):
            for y in range(N * t // threads, N * (t + 1) // threads):
                above, own, below, g, to = u[max(y - 1, 0)], u[y], u[min(y + 1, N - 1)], f[y], o[y]
                to[0] = quarter * (above[0] + below[0] + own[0] + own[1] + g[0])
                for x in range(1, N - 1): to[x] = quarter * (above[x] + below[x] + own[x - 1] + own[x + 1] + g[x])
                o[y, N - 1] = quarter * (above[N - 1] + below[N - 1] + own[N - 2] + own[N - 1] + g[N - 1])
    return [lambda: lambda: run(u, f, o)]

main(o, halide=in_halide, numba=in_numba)

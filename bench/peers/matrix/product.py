# C += A B by a library, in nanoseconds: the least of as many calls as a quarter of a second takes, after one that is checked. With one
# thread it is the thread's own time, which other work on the machine does not add to.
# `product.py openblas|mkl|blis|LIBRARY.so THREADS [WORKLOAD…]`, where LIBRARY.so is examples/20_matrix_product.impala.
import ctypes, glob, os, sys, time
library, threads, only = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
# Before any of them looks how many processors there are.
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[-threads:]))
for name in ('OPENBLAS', 'MKL', 'BLIS', 'OMP'): os.environ[name + '_NUM_THREADS'] = str(threads)
import numpy as np

address, i32 = ctypes.c_void_p, ctypes.c_int32

def cblas(single, double, index):
    """The functions of BLAS's interface for C, with this type of sizes. 101: by rows; 111: not transposed."""
    def made(function, number):
        function.argtypes = [i32] * 3 + [index] * 3 + [number, address, index, address, index, number, address, index]
        return lambda m, n, k, a, b, c: function(101, 111, 111, m, n, k, 1, a, k, b, n, 1, c, n)
    return {np.float32: made(single, ctypes.c_float), np.float64: made(double, ctypes.c_double)}

def own(function):
    function.argtypes = [i32] * 3 + [address, i32] * 3
    return lambda m, n, k, a, b, c: function(m, n, k, a, k, b, n, c, n)

def functions():
    packages = next(p for p in sys.path if p.endswith('site-packages'))
    if library == 'openblas':
        blas = ctypes.CDLL(packages + '/scipy_openblas64/lib/libscipy_openblas64_.so')
        return cblas(blas.scipy_cblas_sgemm64_, blas.scipy_cblas_dgemm64_, ctypes.c_int64)
    if library == 'mkl':
        blas = ctypes.CDLL(sorted(glob.glob(sys.prefix + '/lib/libmkl_rt.so*'))[-1])
        return cblas(blas.cblas_sgemm, blas.cblas_dgemm, i32)
    if library == 'blis':
        from blis.py import gemm
        return None, lambda a, b, c: gemm(a, b, out=c, beta=1.0)
    blas = ctypes.CDLL(os.path.abspath(library))
    return {np.float32: own(blas.sgemm), np.float64: own(blas.dgemm)}

found = functions()
clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
for name, element, m, n, k in [
    ('f32_512', np.float32, 512, 512, 512), ('f32_1024', np.float32, 1024, 1024, 1024), ('f32_2048', np.float32, 2048, 2048, 2048),
    ('f32_odd', np.float32, 1000, 700, 1300), ('f64_1024', np.float64, 1024, 1024, 1024),
]:
    if only and name not in only: continue
    random = np.random.default_rng(1)
    # Small integers, so that there are no rounding errors.
    a, b = (random.integers(-4, 5, size).astype(element) for size in ((m, k), (k, n)))
    c = np.zeros((m, n), element)
    if isinstance(found, dict): run = lambda: found[element](m, n, k, a.ctypes.data, b.ctypes.data, c.ctypes.data)
    else: run = lambda: found[1](a, b, c)
    run()
    if not (c == a @ b).all(): sys.exit(f'{name}: the product is wrong')
    times, begin = [], time.perf_counter_ns()
    while len(times) < 5 or time.perf_counter_ns() - begin < 2.5e8:
        start = clock()
        run()
        times.append(clock() - start)
    print(name, min(times))

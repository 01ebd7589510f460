# Code that the programs for Halide, OpenCV and Numba share: inputs, times and sums as in image.h. `PROGRAM.py halide|opencv|numba THREADS`.
import os, sys, time
if len(sys.argv) < 3: sys.exit(3)
variant, threads = sys.argv[1], int(sys.argv[2])
# Before any of them looks how many processors there are.
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
os.environ['HL_NUM_THREADS'] = os.environ['NUMBA_NUM_THREADS'] = str(threads)
import numpy as np

def indices(n): return np.arange(n * n, dtype=np.uint32)
def noise(n): return ((indices(n) * np.uint32(2654435761) >> 8 & 0xffff).astype(np.float32) / np.float32(65536)).reshape(n, n)
def noise2(n): return ((indices(n) * np.uint32(40503) >> 4 & 0xff).astype(np.float32) / np.float32(256)).reshape(n, n)

def measure(run, most):
    run()
    times, begin = [], time.perf_counter_ns()
    while len(times) < 3 or len(times) < 101 and time.perf_counter_ns() - begin < most:
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[len(times) // 2]

def main(out, after=None, **variants):
    """Measures the variant that is asked for: makers of what fills `out`, of which the fastest counts. `after` may mend results where the
    variant computes something else on purpose."""
    if variant not in variants: sys.exit(3)
    makers = variants[variant]()
    run = fastest(makers) if len(makers) > 1 else makers[0]()
    print('time', measure(run, 4e8))
    if after: after()
    values = out.astype(np.float64).reshape(-1)
    print('sum %.17g' % values.sum())
    print('weighted %.17g' % (values * (np.arange(values.size) % 13)).sum())

def fastest(makers):
    """What the fastest of them makes. It is remembered for the next ten minutes: making them takes a while."""
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../out/bench/image')
    file = os.path.join(folder, f'{name}-{variant}-{threads}' + os.environ.get('HL_JIT_TARGET', ''))
    if os.path.exists(file) and time.time() - os.path.getmtime(file) < 600: return makers[int(open(file).read())]()
    runs = [make() for make in makers]
    best = min(range(len(runs)), key=lambda i: measure(runs[i], 1e8))
    os.makedirs(folder, exist_ok=True)
    with open(file, 'w') as f: f.write(str(best))
    return runs[best]

def compiled(out, make):
    """A maker that compiles the Func or Pipeline that `make` gives to machine code."""
    def made():
        import halide as hl
        to, pipeline = hl.Buffer(out), make()
        pipeline.compile_jit()
        return lambda: pipeline.realize(to)
    return made

def automatic(make, name='Adams2019'):
    """A pipeline with the schedule of one of Halide's own autoschedulers; `make` gives the last Func, its variables and bounds."""
    import halide as hl
    hl.load_plugin(os.path.join(os.path.dirname(hl.__file__), 'lib64', f'libautoschedule_{name.lower()}.so'))
    out, bounds = make()
    for var, size in bounds: out.set_estimate(var, 0, size)
    pipeline = hl.Pipeline(out)
    pipeline.apply_autoscheduler(hl.get_jit_target_from_environment(), hl.AutoschedulerParams(name, {'parallelism': str(threads)}))
    return pipeline

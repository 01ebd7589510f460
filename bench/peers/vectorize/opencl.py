# Code that the programs for Intel's OpenCL share: a kernel built for this processor, times and sums as in timing.h. `PROGRAM.py kernel THREADS`.
import os, sys, time, warnings
if len(sys.argv) < 3 or sys.argv[1] != 'kernel': sys.exit(3)
# As many processors as threads; before the compiler looks what there is.
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:int(sys.argv[2])]))
import numpy as np
import pyopencl as cl
# The compiler's notes are none of ours.
warnings.simplefilter('ignore', cl.CompilerWarning)

def main(source, name, items, groups, inputs, n, dtype):
    """Runs `name` for `items`, with the work group of `groups` that is fastest; its arguments are `inputs` and the results, `n` numbers of `dtype`."""
    context = cl.Context([d for p in cl.get_platforms() for d in p.get_devices()][:1])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, source).build('-cl-mad-enable -cl-no-signed-zeros -cl-finite-math-only -cl-unsafe-math-optimizations'), name)
    buffer = lambda a: cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=a)
    out = np.zeros(n, dtype)
    results = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, out.nbytes)
    # A kernel does not keep them alive.
    arguments = [buffer(a) if isinstance(a, np.ndarray) else a for a in inputs]
    kernel.set_args(*arguments, results)
    def run(group):
        cl.enqueue_nd_range_kernel(queue, kernel, items, group)
        queue.finish()
    def measure(group, most):
        run(group)
        times, begin = [], time.perf_counter_ns()
        while len(times) < 3 or len(times) < 101 and time.perf_counter_ns() - begin < most:
            start = time.perf_counter_ns()
            run(group)
            times.append(time.perf_counter_ns() - start)
        return sorted(times)[len(times) // 2]
    best = min(groups, key=lambda group: measure(group, 5e7))
    print('time', measure(best, 4e8))
    cl.enqueue_copy(queue, out, results)
    values = out.astype(np.float64)
    print('sum %.17g' % values.sum())
    print('weighted %.17g' % (values * (np.arange(n) % 13)).sum())

def options(n):
    i = np.arange(n)
    return [np.asarray(a, np.float32) for a in (50 + i % 100, 60 + i % 77, .25 + i % 7 * .5, np.full(n, .02), .1 + i % 13 * .05)]

# The peer of sort.impala in NumPy, whose `sort` of 32 and 64 bits is x86-simd-sort where the processor has AVX2 or AVX-512.
# `sort.py WORKLOAD N`; it has no workloads with `stable`.
import sys, time
import numpy as np

name, n = sys.argv[1], int(sys.argv[2])
element, _, fill = name.partition('_')
if element not in ('i32', 'f64'): sys.exit()
element = {'i32': np.int32, 'f64': np.float64}[element]
random, times_sorted, times = np.random.default_rng(1), max(1, 100_000 // n), []
for _ in range(3 if n > 2_000_000 else 15):
    numbers = random.integers(0, 16 if fill == 'few' else 1 << 31, (times_sorted, n))
    if fill in ('sorted', 'reversed'): numbers[:] = np.arange(n) if fill == 'sorted' else n - np.arange(n)
    rows = list(numbers.astype(element))
    start = time.perf_counter_ns()
    for row in rows: row.sort()
    times.append((time.perf_counter_ns() - start) / times_sorted)
    if not all((row[:-1] <= row[1:]).all() for row in rows): sys.exit(f'{name}: not sorted')
print(name, sorted(times)[len(times) // 2])

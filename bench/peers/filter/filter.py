"""The filter of examples/embedding by Polars: a mask of 4,000,000 rows in memory, on one thread."""

import os
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import numpy
import polars

rows = 4_000_000
# The numbers of `filter-csv --measure`.
bits = numpy.arange(3 * rows, dtype=numpy.uint64) * numpy.uint64(0x9E37_79B9_7F4A_7C15)
bits = (bits ^ bits >> numpy.uint64(30)) * numpy.uint64(0xBF58_476D_1CE4_E5B9) >> numpy.uint64(40)
columns = bits.astype(numpy.float64) / (1 << 24)
names = {"price": 50.0, "quantity": 10.0, "discount": 0.3}
table = polars.DataFrame({name: columns[i * rows : (i + 1) * rows] * scale for i, (name, scale) in enumerate(names.items())})
expression = (polars.col("price") * polars.col("quantity") > 100.0) & (polars.col("discount") < 0.1)
mask = table.lazy().select(expression.alias("keep"))
times = []
for _ in range(20):
    start = time.perf_counter()
    kept = mask.collect()
    times.append(time.perf_counter() - start)
print(f"{rows} rows: Polars {polars.__version__} {min(times) * 1e3:.2f} ms, {kept['keep'].sum()} rows kept")

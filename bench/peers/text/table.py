"""Polars for bench/text/csv.impala: `table.py FILE THREADS COLUMN…`; `table.py FILE make ROWS` makes the table: 206 MB for 2,180,000."""

import os
import sys
import time

file, threads, *columns = sys.argv[1:]
if threads != "make":
    os.environ["POLARS_MAX_THREADS"] = threads
import polars

if threads == "make":
    import numpy

    random = numpy.random.default_rng(1)
    rows = int(columns[0])
    table = {"t": random.random(rows), "x": random.normal(0, 1, rows), "y": random.normal(100, 25, rows)}
    table |= {"p": random.exponential(0.01, rows), "q": random.random(rows) * 1e6}
    polars.DataFrame(table).write_csv(file)
    sys.exit()
start = time.perf_counter()
table = polars.read_csv(file, columns=columns)
for name in columns:
    column = table[name]
    bins = column.hist(bin_count=16)["count"].to_list()
    print(f"{name}:", column.mean(), column.min(), column.max(), *bins)
print("all", round((time.perf_counter() - start) * 1e9))

"""Two LLVMs in one process: Numba has one of its own."""

import subprocess
import sys
import unittest

PROGRAM = """
import {}
import numpy

@numba.njit(cache=False)
def squares(a):
    for i in range(a.size):
        a[i] *= a[i]

m = nyala.compile(
    "use std::slice::*; extern fn squares(a: MutSlice[f64]) -> () {{ for i in range(0i64, a.length) {{ a(i) *= a(i); }} }}", cache=False
)
{}
"""
STEPS = ("a = numpy.full(1000, 3.0); m.squares(a); assert a.sum() == 9000", "b = numpy.full(1000, 2.0); squares(b); assert b.sum() == 4000")


class Numba(unittest.TestCase):
    def test_either_is_imported_first_and_compiles_first(self):
        for imports in ("nyala, numba", "numba, nyala"):
            for steps in (STEPS, STEPS[::-1]):
                subprocess.run([sys.executable, "-c", PROGRAM.format(imports, "\n".join(steps))], check=True)


if __name__ == "__main__":
    unittest.main()

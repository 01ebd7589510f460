"""Pickles, and processes: `fork` and `spawn`."""

import array
import copy
import multiprocessing
import os
import pickle
import signal
import threading
import unittest
import warnings

import nyala

PROGRAM = """
use std::slice::*;
extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
extern fn twice(f: fn(f64) -> f64, x: f64) -> f64 { f(f(x)) }
extern fn squares(a: MutSlice[i64]) -> () { for i in par(0, a.length as i32) { a(i) = i as i64 * i as i64; } }
// More threads than there are by default.
extern fn many(a: MutSlice[i64]) -> () { for i in parallel(5, 0, a.length as i32) { a(i) = i as i64; } }
extern fn nested(a: MutSlice[i64]) -> () {
    let part = a.length as i32 / 10;
    for i in par(0, 10) { for j in par(0, part) { a(i * part + j) = i as i64; } }
}
"""
m = None
# Threads do not survive a fork: that ours are started anew is what is tested.
warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)


def compiled():
    global m
    if m is None:
        m = nyala.compile(PROGRAM, level=0)
    return m


def sums(n):
    """The sum of squares and more, by parallel loops."""
    total = 0
    for _ in range(3):
        numbers = array.array("q", n * [0])
        compiled().squares(numbers)
        total += sum(numbers)
        compiled().nested(numbers)
        total += sum(numbers)
        compiled().many(numbers)
        total += sum(numbers)
    return total


def call(function, x):
    return function(x)


class Pickles(unittest.TestCase):
    def test_programs_and_functions(self):
        m = compiled()
        again = pickle.loads(pickle.dumps(m))
        self.assertEqual((again.files, again.options), (m.files, m.options))
        self.assertEqual(again.power(2, 3), 8)
        # Equal programs are compiled once.
        power, cube = pickle.loads(pickle.dumps([m.power, m.power.fix(n=3)]))
        self.assertIs(power.program, again)
        self.assertIs(cube.program, again)
        self.assertEqual((power(2, 3), cube(2)), (8, 8))
        fourth = pickle.loads(pickle.dumps(m.twice.fix(f=m.power.fix(n=2))))
        self.assertEqual(fourth(3), 81)
        self.assertEqual(copy.deepcopy(cube)(3), 27)

    def test_broken_pickles_are_errors(self):
        for key in (b"", b"\1", b"\0\0\0\0\7", bytes(3), b"\xff" * 12):
            with self.assertRaises((OSError, nyala.Error)):
                nyala._native._function(compiled(), "power", key)


class Processes(unittest.TestCase):
    def check(self, method):
        expected = sums(1000)
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            self.assertEqual(pool.map_async(sums, [1000] * 4).get(60), [expected] * 4)
            cube = compiled().power.fix(n=3)
            self.assertEqual(pool.starmap_async(call, [(cube, 2), (compiled().power.fix(n=2), 3)]).get(60), [8, 9])
        self.assertEqual(sums(1000), expected)

    def test_fork(self):
        self.check("fork")

    def test_spawn(self):
        self.check("spawn")

    def test_fork_while_loops_run(self):
        expected, stop = sums(1000), threading.Event()

        def busy():
            while not stop.is_set():
                sums(1000)

        threads = [threading.Thread(target=busy) for _ in range(2)]
        [t.start() for t in threads]
        try:
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    signal.alarm(30)
                    os._exit(0 if sums(1000) == expected else 1)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            stop.set()
            [t.join() for t in threads]

    def test_fork_of_a_fork(self):
        expected = sums(100)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            inner = os.fork()
            if inner == 0:
                signal.alarm(30)
                os._exit(0 if sums(100) == expected else 1)
            status = os.waitpid(inner, 0)[1]
            os._exit(0 if status == 0 and sums(100) == expected else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()

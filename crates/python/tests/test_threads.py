"""Sixteen threads compile, fix and call at random: some rounds each, or for NYALA_TEST_SECONDS."""

import array
import os
import random
import threading
import time
import unittest

import nyala

PROGRAM = """
use std::slice::*;
extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
extern fn twice(f: fn(f64) -> f64, x: f64) -> f64 { f(f(x)) }
extern fn scale(a: MutSlice[f64], by: f64) -> () { for i in range(0i64, a.length) { a(i) = by * a(i); } }
extern fn third(a: Slice[f64]) -> f64 { a(2) }
"""
SECONDS = float(os.environ.get("NYALA_TEST_SECONDS", 0))


class Threads(unittest.TestCase):
    def test_threads_fix_and_call(self):
        m = nyala.compile(PROGRAM, level=0, variants=4, cache=False)
        end = time.monotonic() + SECONDS
        wrong, rounds = [], []

        def work(seed):
            chance = random.Random(seed)
            held, done = [], 0
            try:
                while time.monotonic() < end if SECONDS else done < 8:
                    done += 1
                    n = chance.randrange(9)
                    power = m.power.fix(n=n)
                    held.append((n, power))
                    if chance.randrange(4) == 0:
                        assert m.twice.fix(f=power)(0.5) == 0.5 ** (n * n)
                    if len(held) > 3:
                        del held[chance.randrange(3)]
                    for n, power in held:
                        assert power(2.0) == 2.0**n
                    numbers = array.array("d", [1, 2, 3])
                    m.scale(numbers, n)
                    assert list(numbers) == [n, 2 * n, 3 * n]
                    try:
                        m.third(numbers[:2])
                        assert False, "there is no third element"
                    except nyala.Fault as fault:
                        assert fault.code == "panic"
                    if chance.randrange(64) == 0:
                        other = nyala.compile(f"extern fn f() -> i32 {{ {seed} }}", level=0, cache=False)
                        assert other.f() == seed
            except BaseException as e:
                wrong.append(e)
                raise
            rounds.append(done)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(len(rounds), 16)
        counts = m.variants
        # Those being built are not dropped.
        self.assertLessEqual(counts["kept"], 4 + 16)
        self.assertGreater(counts["dropped"], 0)


if __name__ == "__main__":
    unittest.main()

"""Functions with parameters fixed to values that they are compiled for."""

import array
import ctypes
import inspect
import threading
import unittest

import nyala

PROGRAM = """
use std::slice::*;
struct Curve { scale: f64, n: i32 }
static mut CALLS = 0;
extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
extern fn filter(a: &[f32], b: &mut [f32], n: i32, weights: Slice[f32]) -> () {
    for i in range(0, n) {
        let mut sum = 0f;
        for k in unroll(0i64, weights.length) { sum += weights(k) * a(i as i64 + k); }
        b(i) = sum;
    }
}
extern fn curve(c: Curve, x: f64) -> f64 { CALLS++; c.scale * power(x, c.n) }
extern fn curve_at(c: &Curve, x: f64) -> f64 { CALLS++; c.scale * power(x, c.n) }
extern fn calls() -> i32 { CALLS }
extern fn half(x: f64) -> f64 { x / 2.0 }
extern fn twice(f: fn(f64) -> f64, x: f64) -> f64 { f(f(x)) }
extern fn small(n: i32) -> i32 { if ?n { static_assert(n < 10, "n is small"); } n }
extern fn area(a: Slice2[f64]) -> f64 { a(0, 0) }
extern fn flags(b: bool, i: i8, u: u64, h: f16) -> u64 { if b { u + i as u64 + h as u64 } else { u } }
"""


class Curve(ctypes.Structure):
    _fields_ = [("scale", ctypes.c_double), ("n", ctypes.c_int32)]


def setUpModule():
    global m
    m = nyala.compile(PROGRAM, level=0)


class Fix(unittest.TestCase):
    def test_numbers(self):
        cube = m.power.fix(n=3)
        self.assertEqual(cube(2.0), 8)
        self.assertEqual(cube(x=2.0), 8)
        self.assertEqual(str(inspect.signature(cube)), "(x: 'f64') -> 'f64'")
        self.assertEqual(repr(cube), "<nyala function power(x: f64) -> f64>")
        self.assertEqual(cube.fix(x=3)(), 27)
        self.assertEqual(m.power.fix(x=3, n=3)(), 27)
        self.assertEqual(m.flags.fix(b=True, i=1, u=2, h=3.0)(), 6)
        self.assertEqual(m.flags.fix(h=0.5, u=2**64 - 1, b=False, i=-1)(), 2**64 - 1)
        with self.assertRaisesRegex(OverflowError, "^power: `n` is 2147483648, out of the range of int32"):
            m.power.fix(n=2**31)
        with self.assertRaisesRegex(TypeError, "^power: `n` is float, expected an integer"):
            m.power.fix(n=1.0)
        with self.assertRaisesRegex(TypeError, "^power: it has no parameter `n`: power.x: f64. -> f64$"):
            cube.fix(n=3)

    def test_arrays_are_copied(self):
        weights = array.array("f", [0.25, 0.5, 0.25])
        smooth = m.filter.fix(weights=weights)
        weights[0] = 100
        out = array.array("f", [0, 0])
        smooth(array.array("f", [0, 4, 8, 4]), out, 2)
        self.assertEqual(out.tolist(), [4, 6])
        with self.assertRaisesRegex(TypeError, "^filter: `weights` is float64, expected float32"):
            m.filter.fix(weights=array.array("d", [1]))
        with self.assertRaisesRegex(TypeError, "^filter: `b` is `&mut .f32.`, which is written"):
            m.filter.fix(b=out)
        with self.assertRaisesRegex(TypeError, "fix a slice and its width"):
            m.area.fix(a=memoryview(bytes(8)).cast("d", (1, 1)))

    def test_structs(self):
        calls = m.calls()
        for value in ((2, 3), {"scale": 2, "n": 3}):
            self.assertEqual(m.curve.fix(c=value)(3.0), 54)
            self.assertEqual(m.curve_at.fix(c=value)(3.0), 54)
            self.assertEqual(m.curve_at(value, 3.0), 54)
        self.assertEqual(m.curve_at.fix(c=Curve(2, 3))(3.0), 54)
        # Variables are those of the program.
        self.assertEqual(m.calls(), calls + 7)

    def test_functions(self):
        self.assertEqual(m.twice.fix(f=m.half)(8), 2)
        self.assertEqual(m.twice.fix(f=m.power.fix(n=2))(3), 81)
        other = nyala.compile("extern fn half(x: f64) -> f64 { x / 2.0 }", level=0)
        with self.assertRaisesRegex(TypeError, "the function is of another program"):
            m.twice.fix(f=other.half)
        with self.assertRaisesRegex(TypeError, "it is `fn.f64, i32. -> f64` here, `fn.f64. -> f64` in the program"):
            m.twice.fix(f=m.power)
        with self.assertRaisesRegex(TypeError, "^twice: `f` is function, expected a function of the program"):
            m.twice.fix(f=lambda x: x)

    def test_equal_values_are_built_once(self):
        before = m.variants
        a = m.power.fix(n=5)
        b = m.power.fix(n=5)
        after = m.variants
        self.assertEqual((after["built"] - before["built"], after["found"] - before["found"]), (1, 1))
        self.assertEqual(a(2.0), b(2.0))
        stats = a.stats()
        self.assertGreater(stats.total, stats.partial_evaluation)
        self.assertEqual(stats.warnings, [])
        self.assertRegex(repr(stats), "^<built in .* ms, .* ms of it partial evaluation>$")
        self.assertIsNone(m.power.stats())
        few = nyala.compile("extern fn f(n: i32) -> i32 { n }", level=0, variants=2)
        kept = [few.f.fix(n=n) for n in range(4)]
        self.assertEqual((few.variants["kept"], few.variants["dropped"]), (2, 2))
        self.assertEqual([f() for f in kept], [0, 1, 2, 3])

    def test_errors(self):
        with self.assertRaises(nyala.CompileError) as raised:
            m.small.fix(n=10)
        self.assertIn("n is small", str(raised.exception))
        self.assertEqual(m.small.fix(n=9)(), 9)

    def test_explanations(self):
        self.assertIn("unfolded", m.power.fix(n=4).explain())

    def test_threads_fix_and_call(self):
        wrong = []

        def work(seed):
            for i in range(40):
                n = (seed + i) % 5
                if m.power.fix(n=n)(3.0) != 3.0**n:
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()

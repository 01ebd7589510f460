"""Functions of numbers, called with arrays: for all elements."""

import array
import ctypes
import unittest

import nyala

PROGRAM = """
static mut CALLS = 0;
extern fn add(x: f64, y: f64) -> f64 { x + y }
extern fn scale(x: f32, by: i32) -> f32 { x * by as f32 }
extern fn odd(x: i64) -> bool { x % 2i64 != 0i64 }
extern fn root(x: f64) -> f64 { if x < 0.0 { panic("it is negative") } sqrt(x) }
extern fn counted(x: u8) -> u8 { CALLS++; x + 1u8 }
extern fn calls() -> i32 { CALLS }
extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
extern fn named(x: f64, out: f64) -> f64 { x - out }
"""


def setUpModule():
    global m
    m = nyala.compile(PROGRAM, level=2)


def doubles(*values):
    return array.array("d", values)


def shaped(numbers, *shape):
    return memoryview(numbers).cast("B").cast(memoryview(numbers).format, shape)


class Elements(unittest.TestCase):
    def check(self, kind, text, function, *args, **kwargs):
        with self.assertRaises(kind) as raised:
            function(*args, **kwargs)
        self.assertEqual(str(raised.exception), text)

    def test_elements_one_by_one(self):
        out = doubles(0, 0, 0)
        self.assertIs(m.add(doubles(1, 2, 3), doubles(10, 20, 30), out=out), out)
        self.assertEqual(out.tolist(), [11, 22, 33])
        m.add(doubles(1, 2, 3), 0.5, out=out)
        self.assertEqual(out.tolist(), [1.5, 2.5, 3.5])
        m.add(y=out, x=1, out=out)
        self.assertEqual(out.tolist(), [2.5, 3.5, 4.5])
        m.add(1, 2, out=out)
        self.assertEqual(out.tolist(), [3, 3, 3])
        # Elements that are not side by side.
        m.add(memoryview(doubles(1, 2, 3, 4, 5))[::2], memoryview(doubles(1, 2, 3))[::-1], out=out)
        self.assertEqual(out.tolist(), [4, 5, 6])
        self.assertEqual(m.add(1, 2), 3)

    def test_kinds_of_numbers(self):
        out = array.array("f", 3 * [0])
        m.scale(array.array("f", [1, 2, 3]), array.array("i", [1, 2, 3]), out=out)
        self.assertEqual(out.tolist(), [1, 4, 9])
        flags = (ctypes.c_bool * 3)()
        m.odd(array.array("q", [1, 2, 3]), out=flags)
        self.assertEqual(list(flags), [True, False, True])
        calls, out = m.calls(), bytearray(3)
        m.counted(b"abc", out=out)
        self.assertEqual((out, m.calls() - calls), (b"bcd", 3))

    def test_shapes_are_broadcast(self):
        row, column = shaped(doubles(1, 2, 3), 1, 3), shaped(doubles(10, 20), 2, 1)
        out = doubles(*(6 * [0]))
        m.add(row, column, out=shaped(out, 2, 3))
        self.assertEqual(out.tolist(), [11, 12, 13, 21, 22, 23])
        m.add(doubles(5, 6, 7), column, out=shaped(out, 2, 3))
        self.assertEqual(out.tolist(), [15, 16, 17, 25, 26, 27])
        out = doubles(*(24 * [0]))
        m.add(shaped(doubles(*range(4)), 4, 1, 1), shaped(doubles(0, 10, 20), 1, 3, 1), out=shaped(out, 4, 3, 2))
        self.assertEqual(out.tolist(), [i + 10 * j for i in range(4) for j in range(3) for _ in range(2)])
        m.add(shaped(doubles(*range(12)), 4, 3)[::1], 0, out=shaped(doubles(*(12 * [0])), 4, 3))
        m.add(doubles(), doubles(), out=doubles())

    def test_functions_with_fixed_parameters(self):
        out = doubles(0, 0, 0)
        m.power.fix(n=3)(doubles(1, 2, 3), out=out)
        self.assertEqual(out.tolist(), [1, 8, 27])
        m.power(doubles(1, 2, 3), 2, out=out)
        self.assertEqual(out.tolist(), [1, 4, 9])
        m.power(2, array.array("i", [1, 2, 3]), out=out)
        self.assertEqual(out.tolist(), [2, 4, 8])

    def test_a_parameter_may_be_called_out(self):
        self.assertEqual(m.named(3, out=1), 2)

    def test_faults(self):
        numbers, out = doubles(4, -1, 9), doubles(0, 0, 0)
        with self.assertRaises(nyala.Fault) as raised:
            m.root(numbers, out=out)
        self.assertEqual((raised.exception.code, raised.exception.message), ("panic", "it is negative"))
        numbers.append(1)
        out.append(1)

    def test_messages(self):
        out = doubles(0, 0)
        self.check(TypeError, "add: `x` is float32, expected float64", m.add, array.array("f", [1]), 1, out=out)
        self.check(TypeError, "add: `out` is float32, expected float64", m.add, 1, 2, out=array.array("f", [1]))
        self.check(ValueError, "add: `out` is read-only, expected an array that can be written", m.add, 1, 2, out=memoryview(out).toreadonly())
        self.check(ValueError, "add: shapes do not fit each other: `x` (3,), `y` (2,)", m.add, doubles(1, 2, 3), doubles(1, 2), out=out)
        self.check(ValueError, "add: `out` has the shape (2,), expected (3,)", m.add, doubles(1, 2, 3), 1, out=out)
        self.check(TypeError, "add: `y` is missing: add(x: f64, y: f64) -> f64", m.add, doubles(1), out=out)
        self.check(OverflowError, "scale: `by` is 2147483648, out of the range of int32 (-2147483648 to 2147483647)", m.scale, array.array("f", [1]), 2**31)
        numbers = memoryview(doubles(1, 2, 3))
        self.check(
            ValueError,
            "add: `out` and `x` share memory in different places: pass x.copy()",
            m.add,
            numbers[1:],
            1,
            out=numbers[:2],
        )


if __name__ == "__main__":
    unittest.main()

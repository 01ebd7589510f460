"""Calls: what arguments are taken, and what comes back."""

import array
import ctypes
import math
import unittest

import nyala

PROGRAM = """
use std::slice::*;
struct Point { x: f32, y: f64 }
struct Mixed { a: u8, p: Point, c: [i16 * 3] }
extern fn scale(a: &[f32], b: &mut [f32], n: i32, by: f32) -> () { for i in range(0, n) { b(i) = a(i) * by; } }
extern fn sum(a: Slice[i32]) -> i64 { let mut s = 0i64; for x in a.each() { s += x as i64; } s }
extern fn fill(a: MutSlice[u16], x: u16) -> () { a.fill(x); }
extern fn length(a: Slice[f64]) -> i64 { a.length }
extern fn area(a: Slice2[f64]) -> f64 { let mut s = 0.0; for y in range(0i64, a.height) { for x in range(0i64, a.width) { s = 10.0 * s + a(x, y); } } s }
extern fn clear(a: MutSlice2[i8]) -> () { for y in range(0i64, a.height) { for x in range(0i64, a.width) { a(x, y) = 0i8; } } }
extern fn swap(p: Point) -> Point { Point { x: p.y as f32, y: p.x as f64 } }
extern fn mixed(m: Mixed) -> Mixed { Mixed { a: m.a + 1u8, p: Point { x: m.p.x, y: m.p.y * 2.0 }, c: [m.c(2), m.c(1), m.c(0)] } }
extern fn first(p: &Point) -> f64 { p.y }
extern fn last(p: Slice[Point]) -> f64 { p(p.length - 1i64).y }
extern fn move_by(p: MutSlice[Point], dx: f32) -> () { for i in range(0i64, p.length) { p(i) = Point { x: p(i).x + dx, y: p(i).y }; } }
extern fn set(p: &mut i32, x: i32) -> () { *p = x; }
extern fn trace(m: Slice[[f32 * 2]]) -> f32 { m(0)(0) + m(1)(1) }
extern fn i8(x: i8) -> i8 { x }
extern fn u8(x: u8) -> u8 { x }
extern fn i16(x: i16) -> i16 { x }
extern fn u16(x: u16) -> u16 { x }
extern fn i32(x: i32) -> i32 { x }
extern fn u32(x: u32) -> u32 { x }
extern fn i64(x: i64) -> i64 { x }
extern fn u64(x: u64) -> u64 { x }
extern fn f16(x: f16) -> f16 { x }
extern fn f32(x: f32) -> f32 { x }
extern fn f64(x: f64) -> f64 { x }
extern fn bool(x: bool) -> bool { x }
extern fn many(a: i8, b: f32, c: i64, d: f64, e: u8, f: i32, g: f32, h: f64, i: i64, j: i64, k: i64, l: f64, m: f64, n: f64, o: f64, p: f64, q: u16) -> f64 {
    a as f64 + b as f64 + c as f64 + d + e as f64 + f as f64 + g as f64 + h + i as f64 + j as f64 + k as f64 + l + m + n + o + p + q as f64
}
extern fn add(x: i32, y: i32) -> i32 { x + y }
extern fn nothing() -> () { }
extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
extern fn parallel(a: MutSlice[i32]) -> () { for i in par(0i64 as i32, a.length as i32) { a(i) = i * i; } }
"""


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_double)]


def setUpModule():
    global m
    m = nyala.compile(PROGRAM, level=1)


class Arrays(unittest.TestCase):
    def test_elements_are_read_and_written_where_they_are(self):
        a, b = array.array("f", [1, 2, 3]), array.array("f", 3 * [0])
        self.assertIsNone(m.scale(a, b, 3, 10.0))
        self.assertEqual(b.tolist(), [10, 20, 30])
        m.scale(a, b=b, n=2, by=0.5)
        self.assertEqual(b.tolist(), [0.5, 1, 30])
        m.scale(n=3, by=-1, b=b, a=b)
        self.assertEqual(b.tolist(), [-0.5, -1, -30])

    def test_slices_have_their_lengths(self):
        self.assertEqual(m.sum(array.array("i", range(100))), 4950)
        self.assertEqual(m.sum(array.array("i")), 0)
        self.assertEqual(m.length(memoryview(array.array("d", [1, 2, 3]))[1:]), 2)
        numbers = array.array("H", [1, 2, 3])
        m.fill(memoryview(numbers)[:2], 7)
        self.assertEqual(numbers.tolist(), [7, 7, 3])
        self.assertEqual(m.sum((ctypes.c_int32 * 3)(1, 2, 3)), 6)
        # An array of several dimensions is its elements in a row.
        self.assertEqual(m.sum(memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3))), 15)

    def test_areas_have_rows(self):
        numbers = memoryview(array.array("d", [1, 2, 3, 4, 5, 6])).cast("B")
        self.assertEqual(m.area(numbers.cast("d", (2, 3))), 123456)
        self.assertEqual(m.area(numbers.cast("d", (3, 2))), 123456)
        rows = ((ctypes.c_double * 3) * 2)((1, 2, 3), (4, 5, 6))
        self.assertEqual(m.area(rows), 123456)
        small = bytearray(range(6))
        m.clear(memoryview(small).cast("b", (2, 3)))
        self.assertEqual(small, bytearray(6))

    def test_structs_are_elements(self):
        points = (Point * 2)((1, 2), (3, 4))
        self.assertEqual(m.last(points), 4)
        m.move_by(points, 10)
        self.assertEqual([(p.x, p.y) for p in points], [(11, 2), (13, 4)])
        self.assertEqual(m.first(Point(5, 6)), 6)

    def test_arrays_are_elements(self):
        self.assertEqual(m.trace(((ctypes.c_float * 2) * 2)((1, 2), (3, 4))), 5)

    def test_one_element_is_a_reference(self):
        one = array.array("i", [3])
        m.set(one, 5)
        self.assertEqual(one[0], 5)

    def test_buffers_are_released(self):
        a, b = bytearray(12), bytearray(12)
        m.scale(memoryview(a).cast("f"), memoryview(b).cast("f"), 3, 1.0)
        a.append(0)
        numbers = array.array("i", [1])
        m.sum(numbers)
        numbers.append(1)
        with self.assertRaises(TypeError):
            m.length(numbers)
        numbers.append(1)

    def test_parallel_loops(self):
        numbers = array.array("i", 1000 * [0])
        m.parallel(numbers)
        self.assertEqual(numbers.tolist(), [i * i for i in range(1000)])


class Numbers(unittest.TestCase):
    def test_limits(self):
        for bits in (8, 16, 32, 64):
            signed, unsigned = m[f"i{bits}"], m[f"u{bits}"]
            for f, low, high in ((signed, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1), (unsigned, 0, 2**bits - 1)):
                self.assertEqual((f(low), f(high)), (low, high))
                for x in (low - 1, high + 1, 2**70, -(2**70)):
                    with self.assertRaisesRegex(OverflowError, rf"^{f.__name__}: `x` is {x}, out of the range of u?int{bits}"):
                        f(x)

    def test_floats(self):
        self.assertEqual(m.f64(0.1), 0.1)
        self.assertEqual(m.f32(0.5), 0.5)
        self.assertNotEqual(m.f32(0.1), 0.1)
        self.assertEqual(m.f16(0.5), 0.5)
        self.assertTrue(math.isnan(m.f32(math.nan)))
        self.assertEqual(m.f32(math.inf), math.inf)
        for f, x in ((m.f32, 1e39), (m.f16, 1e5)):
            with self.assertRaisesRegex(OverflowError, "out of the range of float"):
                f(x)

    def test_integers_that_are_floats(self):
        self.assertEqual(m.f64(2**53), 2.0**53)
        self.assertEqual(m.f64(-(2**60)), -(2.0**60))
        self.assertEqual(m.f32(2**24), 2.0**24)
        for f, x in ((m.f64, 2**53 + 1), (m.f32, 2**24 + 1), (m.f16, 2049), (m.f64, 10**30)):
            with self.assertRaisesRegex(OverflowError, "cannot represent: pass a float"):
                f(x)

    def test_what_stands_for_numbers(self):
        class Index:
            def __index__(self):
                return 7

        class Float:
            def __float__(self):
                return 0.5

        self.assertEqual(m.i32(Index()), 7)
        self.assertEqual(m.f32(Index()), 7)
        self.assertEqual(m.f64(Float()), 0.5)
        for f, x in (
            (m.i32, 1.0),
            (m.i32, True),
            (m.i32, "1"),
            (m.i32, Float()),
            (m.f64, "1"),
            (m.f64, True),
            (m.f64, 1j),
            (m.bool, 1),
            (m.bool, None),
        ):
            with self.assertRaisesRegex(TypeError, rf"^{f.__name__}: `x` is {type(x).__name__}, expected "):
                f(x)
        self.assertIs(m.bool(True), True)
        self.assertIs(m.bool(False), False)

    def test_exceptions_of_arguments_are_raised(self):
        class Bad:
            def __index__(self):
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            m.i32(Bad())

    def test_many_parameters(self):
        self.assertEqual(m.many(*range(1, 18)), 153)
        self.assertEqual(m.many(*range(1, 10), **{c: 1 for c in "jklmnopq"}), 53)

    def test_structs_by_value(self):
        swapped = m.swap((1.5, 2.5))
        self.assertEqual(swapped, (2.5, 1.5))
        self.assertEqual((swapped.x, swapped.y, type(swapped).__name__), (2.5, 1.5, "Point"))
        self.assertEqual(m.swap({"y": 1, "x": 2}), (1, 2))
        self.assertEqual(m.swap(swapped), (1.5, 2.5))
        self.assertEqual(m.mixed((254, (1, 2), [1, 2, 3])), (255, (1, 4), (3, 2, 1)))
        self.assertIs(type(m.swap((0, 0))), type(swapped))


class Words(unittest.TestCase):
    """What messages say."""

    def check(self, kind, text, function, *args, **kwargs):
        with self.assertRaises(kind) as raised:
            function(*args, **kwargs)
        self.assertEqual(str(raised.exception), text)

    def test_elements(self):
        floats, ints = array.array("f", [1, 2, 3, 4]), array.array("i", [1])
        self.check(TypeError, "sum: `a` is float32, expected int32", m.sum, floats)
        self.check(TypeError, "sum: `a` is list, expected an array of int32: pass numpy.asarray(a, numpy.int32)", m.sum, [1])
        self.check(TypeError, "sum: `a` is NoneType, expected an array of int32", m.sum, None)
        self.check(TypeError, "length: `a` is int32, expected float64", m.length, ints)
        self.check(ValueError, "scale: `b` is read-only, expected an array that can be written", m.scale, floats, memoryview(floats).toreadonly(), 1, 1)
        strided = "scale: `a` is strided, expected elements side by side: pass numpy.ascontiguousarray(a)"
        self.check(ValueError, strided, m.scale, memoryview(floats)[::2], floats, 1, 1)
        strided = "scale: `b` is strided, expected an array whose elements are side by side: pass numpy.ascontiguousarray(b), and copy it back"
        self.check(ValueError, strided, m.scale, floats, memoryview(floats)[::2], 1, 1)
        self.check(ValueError, "set: `p` is of the shape (4,), expected one int32", m.set, array.array("i", [1, 2, 3, 4]), 1)
        self.check(ValueError, "area: `a` is of the shape (2,), expected an area, of two dimensions", m.area, array.array("d", [1, 2]))
        self.check(ValueError, "trace: `m` is of the shape (4,), expected elements of (2) float32", m.trace, floats)
        swapped = (ctypes.c_int32.__ctype_be__ * 2)(1, 2)
        self.check(TypeError, "sum: `a` is int32 with bytes in the other order, expected int32", m.sum, swapped)

    def test_alignment(self):
        numbers = memoryview(bytearray(13))
        self.check(
            ValueError,
            'sum: `a` is at an address that is no multiple of 4: pass numpy.require(a, requirements="A")',
            m.sum,
            (ctypes.c_int32 * 2).from_buffer(numbers, 1),
        )

    def test_structs(self):
        class Other(ctypes.Structure):
            _fields_ = [("y", ctypes.c_float), ("x", ctypes.c_double)]

        with self.assertRaisesRegex(TypeError, "^last: `p` is of the format `.*`, expected `Point`$"):
            m.last((Other * 1)())
        self.check(TypeError, "last: `p` is of the format `d`, 8 bytes for each element, expected `Point` of 16", m.last, array.array("d", [1]))
        self.check(TypeError, "swap: `p` is int, expected `Point`: a tuple of 2, or a dict", m.swap, 1)
        self.check(ValueError, "swap: `p` is tuple of 1 values, expected 2", m.swap, (1,))
        self.check(ValueError, "swap: `p` is a dict without `y`, expected `Point`", m.swap, {"x": 1})
        self.check(ValueError, "swap: `p` is a dict with `z`, which `Point` has not", m.swap, {"x": 1, "y": 2, "z": 3})
        self.check(TypeError, "mixed: `m.p.x` is str, expected a number (float32)", m.mixed, (1, ("", 2), (1, 2, 3)))
        self.check(OverflowError, "mixed: `m.c[1]` is 40000, out of the range of int16 (-32768 to 32767)", m.mixed, (1, (1, 2), (1, 40000, 3)))

    def test_parameters(self):
        told = "add(x: i32, y: i32) -> i32"
        self.check(TypeError, f"add: `y` is missing: {told}", m.add, 1)
        self.check(TypeError, f"add: `x`, `y` are missing: {told}", m.add)
        self.check(TypeError, f"add: it takes 2 arguments, not 3: {told}", m.add, 1, 2, 3)
        self.check(TypeError, f"add: it has no parameter `z`: {told}", m.add, 1, z=2)
        self.check(TypeError, "add: `x` is given twice", m.add, 1, x=2)
        self.check(TypeError, "nothing: it takes 0 arguments, not 1: nothing()", m.nothing, 1)


if __name__ == "__main__":
    unittest.main()

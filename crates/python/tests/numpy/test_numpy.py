"""Arrays of NumPy, and of what it can share memory with."""

import subprocess
import sys
import unittest

import numpy

import nyala
import nyala.image

PROGRAM = """
use std::slice::*;
struct Inner { a: u8, b: [i16 * 3] }
struct Point { x: f32, y: f64, inner: Inner }
extern fn sum(a: Slice[f32]) -> f32 { let mut s = 0f; for x in a.each() { s += x; } s }
extern fn fill(a: MutSlice[f32], x: f32) -> () { a.fill(x); }
extern fn area(a: Slice2[i32]) -> i32 { let mut s = 0; for y in range(0i64, a.height) { for x in range(0i64, a.width) { s = 10 * s + a(x, y); } } s }
extern fn second(p: Slice[Point]) -> f64 { p(1).y + p(1).inner.b(2) as f64 }
extern fn same(p: Point) -> Point { p }
extern fn flag(b: bool) -> bool { !b }
extern fn f(x: f64, y: f64) -> f64 { x * y + 1.0 }
extern fn g(x: i32) -> bool { x > 0 }
extern fn h(x: f16) -> f32 { x as f32 }
extern fn flags(a: Slice[bool]) -> i32 { let mut n = 0; for b in a.each() { if b { n++ } } n }
"""


class Owner:
    """An array without a buffer."""

    def __init__(self, array):
        self.array = array


class Dlpack(Owner):
    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Interface(Owner):
    @property
    def __array_interface__(self):
        return self.array.__array_interface__


def setUpModule():
    global m
    m = nyala.compile(PROGRAM, level=1)


class Numpy(unittest.TestCase):
    def check(self, kind, text, function, *args, **kwargs):
        with self.assertRaises(kind) as raised:
            function(*args, **kwargs)
        self.assertEqual(str(raised.exception), text)

    def test_arrays(self):
        a = numpy.arange(5, dtype=numpy.float32)
        self.assertEqual(m.sum(a), 10)
        self.assertEqual(m.sum(a.reshape(1, 5)), 10)
        m.fill(a, numpy.float32(2))
        self.assertEqual(a.tolist(), 5 * [2])
        self.assertEqual(m.flags(numpy.array([True, False, True])), 2)
        image = numpy.arange(12, dtype=numpy.int32).reshape(3, 4)
        self.assertEqual(m.area(image[1:, 1:3]), 10 * (10 * (10 * 5 + 6) + 9) + 10)

    def test_messages(self):
        hint = ": pass a.astype(numpy.float32)"
        self.check(TypeError, f"sum: `a` is float64, expected float32{hint}", m.sum, numpy.zeros(3))
        self.check(TypeError, f"sum: `a` is complex64, expected float32{hint}", m.sum, numpy.zeros(3, numpy.complex64))
        other = numpy.zeros(3, ">f4")
        self.check(TypeError, f"sum: `a` is float32 with bytes in the other order, expected float32{hint}", m.sum, other)
        strided = "sum: `a` is strided, expected elements side by side: pass numpy.ascontiguousarray(a)"
        self.check(ValueError, strided, m.sum, numpy.zeros(6, numpy.float32)[::2])
        rows = "sum: `a` is strided, expected elements side by side, row by row: pass numpy.ascontiguousarray(a)"
        self.check(ValueError, rows, m.sum, numpy.zeros((2, 3), numpy.float32).T)
        frozen = numpy.zeros(3, numpy.float32)
        frozen.flags.writeable = False
        self.check(ValueError, "fill: `a` is read-only, expected an array that can be written", m.fill, frozen, 1)
        self.assertEqual(m.sum(frozen), 0)
        columns = "area: `a` is strided within rows, expected rows whose elements are side by side: pass numpy.ascontiguousarray(a)"
        self.check(ValueError, columns, m.area, numpy.zeros((2, 4), numpy.int32)[:, ::2])

    def test_numbers(self):
        self.assertEqual(m.f(numpy.float64(2), numpy.float32(3)), 7)
        self.assertEqual(m.f(numpy.int64(2), numpy.uint8(3)), 7)
        self.assertIs(m.flag(numpy.bool_(True)), False)
        self.assertEqual(m.h(numpy.float16(0.5)), 0.5)

    def test_structs(self):
        dtype = m.Point.dtype
        self.assertEqual(dtype.itemsize, 24)
        self.assertEqual(dtype.names, ("x", "y", "inner"))
        self.assertEqual(dtype["inner"]["b"].shape, (3,))
        points = numpy.zeros(3, dtype)
        points["y"] = 1, 2, 3
        points["inner"]["b"][:, 2] = 10, 20, 30
        self.assertEqual(m.second(points), 22)
        same = m.same(points[1])
        self.assertEqual((same.y, same.inner.b, type(same)), (2, (0, 0, 20), m.Point))
        self.assertEqual(numpy.array([same], dtype)["inner"]["b"].tolist(), [[0, 0, 20]])
        other = numpy.zeros(3, [("x", "f4"), ("y", "f8"), ("inner", [("a", "u1"), ("b", "i2", 3)])])
        with self.assertRaisesRegex(TypeError, "^second: `p` is of the format `.*`, 19 bytes for each element, expected `Point` of 24$"):
            m.second(other)

    def test_arrays_without_buffers(self):
        a = numpy.arange(4, dtype=numpy.float32)
        for kind in (Dlpack, Interface):
            self.assertEqual(m.sum(kind(a)), 6)
            self.assertEqual(m.f(kind(numpy.array([1.0, 2.0])), 2).tolist(), [3, 5])
            with self.assertRaisesRegex(TypeError, "is float64, expected float32"):
                m.sum(kind(numpy.zeros(3)))
        m.fill(Interface(a), 5)
        self.assertEqual(a.tolist(), 4 * [5])

    def test_elements(self):
        x, y = numpy.random.default_rng(1).random((2, 7, 5))
        numpy.testing.assert_array_equal(m.f(x, y), x * y + 1)
        numpy.testing.assert_array_equal(m.f(x, 2), x * 2 + 1)
        numpy.testing.assert_array_equal(m.f(x, y[0]), x * y[0] + 1)
        numpy.testing.assert_array_equal(m.f(x[:, :1], y[::-2][0]), x[:, :1] * y[::-2][0] + 1)
        numpy.testing.assert_array_equal(m.f(x.T, y.T), x.T * y.T + 1)
        numpy.testing.assert_array_equal(m.f(x[::2, ::-1], y[::2]), x[::2, ::-1] * y[::2] + 1)
        out = numpy.zeros((3, 7, 5))
        self.assertIs(m.f(x, y, out=out), out)
        numpy.testing.assert_array_equal(out, numpy.broadcast_to(x * y + 1, (3, 7, 5)))
        flags = m.g(numpy.array([-1, 1], numpy.int32))
        self.assertEqual((flags.dtype, flags.tolist()), (numpy.dtype(bool), [False, True]))
        self.assertEqual(m.f(numpy.zeros((0, 3)), 1).shape, (0, 3))
        self.assertEqual(m.f(numpy.array(2.0), 3), 7)
        hint = "f: `x` is float32, expected float64: pass x.astype(numpy.float64)"
        self.check(TypeError, hint, m.f, numpy.zeros(3, numpy.float32), 1)

    def test_random_layouts(self):
        rng = numpy.random.default_rng(7)

        def operand(shape):
            """An array that is broadcast to a shape, in one of many layouts."""
            own = [n if rng.random() < 0.7 else 1 for n in shape][rng.integers(0, len(shape) + 1) :]
            a = rng.random([2 * n + 1 for n in own])
            for d, n in enumerate(own):
                begin, step = [(0, 1), (0, 2), (1, 1), (2 * n, -1), (2 * n, -2)][rng.integers(5)]
                a = a[(slice(None),) * d + (slice(begin, None, step),)]
                a = a[(slice(None),) * d + (slice(n),)]
            return a if rng.random() < 0.7 else numpy.asfortranarray(a)

        for _ in range(300):
            shape = rng.integers(0, 5, rng.integers(1, 5)).tolist()
            x, y = operand(shape), operand(shape)
            numpy.testing.assert_array_equal(m.f(x, y), x * y + 1)

    def test_filters(self):
        image = numpy.random.default_rng(2).integers(0, 255, (40, 50, 3), numpy.uint8)
        smooth = nyala.image.gaussian(image, sigma=1.5)
        self.assertEqual((smooth.shape, smooth.dtype), (image.shape, image.dtype))
        self.assertLess(smooth.std(), image.std() / 2)
        self.assertAlmostEqual(smooth.mean(), image.mean(), delta=1)

    def test_numpy_is_imported_when_it_is_needed(self):
        program = "import nyala, sys; m = nyala.compile('extern fn f(x: f64) -> f64 { x }', level=0); m.f(1); print('numpy' in sys.modules)"
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "False\n")

    def test_results_are_arrays_with_an_owner(self):
        program = nyala.compile(
            """
            use std::buffer::*;
            struct Point { x: f32, y: f64 }
            extern fn points(n: i64) -> Buffer[Point] {
                let b = make_buffer[Point](n);
                for i in range(0i64, n) { b(i) = Point { x: i as f32, y: 2.0 * i as f64 }; }
                b
            }
            """,
            level=1,
        )
        points = numpy.asarray(program.points(3))
        self.assertEqual(points["x"].tolist(), [0, 1, 2])
        points["y"][1] = 7
        self.assertEqual(points["y"].tolist(), [0, 7, 4])
        self.assertEqual(points.astype(program.Point.dtype).itemsize, 16)

    def test_rays_and_alignments(self):
        import nyala.align
        import nyala.ray

        vertices = numpy.array([[0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 4, 0]], numpy.float32)
        scene = nyala.ray.Scene(vertices, numpy.array([[0, 1, 2], [0, 2, 3]], numpy.int32))
        chance = numpy.random.default_rng(1)
        origins = chance.uniform(-1, 5, (3000, 3)).astype(numpy.float32)
        origins[:, 2] = 1
        directions = numpy.tile(numpy.float32([0, 0, -1]), (3000, 1))
        hits = scene.trace(origins, directions)
        inside = ((origins[:, :2] > 0) & (origins[:, :2] < 4)).all(axis=1)
        self.assertEqual((hits.triangle >= 0).tolist(), inside.tolist())
        self.assertEqual(hits.triangle[inside].tolist(), (origins[inside, 1] >= origins[inside, 0]).astype(int).tolist())
        self.assertEqual(scene.occluded(origins, directions).tolist(), inside.astype(int).tolist())
        with self.assertRaisesRegex(ValueError, r"`origins` is strided: pass numpy.ascontiguousarray\(origins\)"):
            scene.trace(origins[::2], directions[::2])
        self.assertEqual(nyala.align.scores([numpy.frombuffer(b"ACGT", numpy.uint8)], ["ACGT"])[0], 8)


if __name__ == "__main__":
    unittest.main()

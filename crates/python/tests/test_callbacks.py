"""Functions of Python as arguments."""

import unittest

import nyala

m = nyala.compile(
    """
    struct Point { x: f64, n: i32 }
    extern fn sum(n: i32, f: fn(i32) -> f64) -> f64 { let mut s = 0.0; for i in range(0, n) { s += f(i); } s }
    extern fn each(n: i32, f: fn(i32) -> ()) -> () { for i in range(0, n) { f(i); } }
    extern fn in_threads(n: i32, f: fn(i32) -> i32, a: &mut [i32]) -> () { for i in par(0, n) { a(i) = f(i); } }
    extern fn moved(p: Point, f: fn(Point, [u8 * 3], bool) -> Point) -> Point { f(f(p, [1u8, 2u8, 3u8], true), [4u8, 5u8, 6u8], false) }
    extern fn after(x: i32, f: fn(i32) -> i32, g: fn(i32) -> i32) -> i32 { f(g(x)) }
    extern fn minus(x: i32) -> i32 { -x }
    extern fn taken(f: fn(&[i32]) -> i32) -> i32 { f([1, 2]) }
    extern fn higher(f: fn(fn(i32) -> i32) -> i32) -> i32 { f(|x| x + 1) }
    """,
    level=0,
)


class Callbacks(unittest.TestCase):
    def test_values(self):
        by = 2.5
        self.assertEqual(m.sum(5, lambda i: i * by), 25.0)
        self.assertEqual(m.sum(f=float, n=4), 6.0)
        found = []
        self.assertIsNone(m.each(3, found.append))
        self.assertEqual(found, [0, 1, 2])
        self.assertEqual(m.after(5, lambda x: x + 1, lambda x: x * 10), 51)
        self.assertEqual(m.after(5, m.minus, abs), -5)

    def test_structs(self):
        seen = []

        def f(p, a, b):
            seen.append((tuple(p), a, b))
            return (p.x * 2, p.n + a[0])

        self.assertEqual(m.moved((1.5, 3), f), (6.0, 8))
        self.assertEqual(seen, [((1.5, 3), (1, 2, 3), True), ((3.0, 4), (4, 5, 6), False)])

    def test_threads(self):
        a = memoryview(bytearray(4000)).cast("i")
        m.in_threads(1000, lambda i: i * i, a)
        self.assertEqual(list(a), [i * i for i in range(1000)])

    def test_exceptions(self):
        calls = []

        def f(i):
            calls.append(i)
            if i == 3:
                raise KeyError("three")
            return 1.0

        with self.assertRaisesRegex(KeyError, "three"):
            m.sum(10, f)
        self.assertEqual(calls, [0, 1, 2, 3])
        with self.assertRaisesRegex(TypeError, r"^sum: `f\(…\)` is str"):
            m.sum(10, lambda i: "a")
        with self.assertRaisesRegex(OverflowError, r"^after: `g\(…\)` is "):
            m.after(1, abs, lambda i: 1 << 40)
        a = memoryview(bytearray(4000)).cast("i")
        with self.assertRaises(ZeroDivisionError):
            m.in_threads(1000, lambda i: 1 // (i - 500), a)
        self.assertEqual(m.sum(2, float), 1.0)
        with self.assertRaisesRegex(nyala.Fault, "no"):
            nyala.compile('extern fn f(g: fn() -> ()) -> () { g(); panic("no") }', level=0).f(lambda: None)

    def test_calls_within_calls(self):
        self.assertEqual(m.sum(3, lambda i: m.sum(i, float)), 1.0)

        def inner(i):
            raise ValueError(str(i))

        with self.assertRaisesRegex(ValueError, "^0$"):
            m.each(3, lambda i: m.each(1, inner))

    def test_fixed(self):
        self.assertEqual(m.after.fix(f=m.minus)(5, g=lambda x: x + 1), -6)
        self.assertEqual(m.after.fix(x=7)(lambda x: x + 1, lambda x: x * 2), 15)

    def test_what_cannot_be_called(self):
        with self.assertRaisesRegex(TypeError, "^sum: `f` is int: pass something callable, or fix it to one of the program"):
            m.sum(3, 4)
        with self.assertRaisesRegex(TypeError, "^taken: `f` is a function, `fn.&.i32.. -> i32`, which Python does not have"):
            m.taken(lambda a: 1)
        with self.assertRaisesRegex(TypeError, "^higher: `f` is a function"):
            m.higher(lambda f: f(1))


if __name__ == "__main__":
    unittest.main()

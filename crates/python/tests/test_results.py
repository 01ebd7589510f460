"""Results that are memory of a program's: who owns it, and how long it lives."""

import gc
import struct
import unittest
import weakref

import nyala

PROGRAM = """
use std::buffer::*;
struct Point { x: f32, y: f64 }
extern fn multiples(n: i64, of: i32) -> Buffer[i32] {
    let b = make_buffer[i32](n);
    for i in range(0i64, n) { b(i) = of * i as i32; }
    b
}
extern fn pairs(n: i64) -> Buffer[[u8 * 2]] {
    let b = make_buffer[[u8 * 2]](n);
    for i in range(0i64, n) { b(i) = [i as u8, 2u8 * i as u8]; }
    b
}
extern fn points(n: i64) -> Buffer[Point] { make_filled_buffer(n, Point { x: 1f, y: 2.0 }) }
extern fn nothing() -> Buffer[i32] { Buffer[i32] { data: bitcast[&mut [i32]](0i64), size: 0 } }
extern fn sum(a: &[i32], n: i64) -> i32 { let mut s = 0; for i in range(0i64, n) { s += a(i); } s }
extern fn address(a: &[i32]) -> &[i32] { a }
"""


class Results(unittest.TestCase):
    def test_buffers_are_owned(self):
        for checked in (False, True):
            m = nyala.compile(PROGRAM, level=1, checked=checked)
            found = m.multiples(5, 3)
            self.assertEqual((found.tolist(), found.format, found.readonly), ([0, 3, 6, 9, 12], "i", False))
            found[1] = 100
            self.assertEqual(m.sum(found, 5), 127)
            pairs = m.pairs(3)
            self.assertEqual((pairs.shape, pairs.tolist()), ((3, 2), [[0, 0], [1, 2], [2, 4]]))
            points = m.points(2)
            self.assertEqual((points.format, points.itemsize), ("T{=f:x:4xd:y:}", 16))
            self.assertEqual(list(struct.iter_unpack("f4xd", points)), [(1, 2), (1, 2)])
            for empty in (m.nothing(), m.multiples(0, 1)):
                self.assertEqual((empty.shape, empty.tolist()), ((0,), []))

    def test_they_live_as_long_as_a_view(self):
        m = nyala.compile(PROGRAM, level=1)
        found = m.multiples(1000, 1)
        owner = weakref.ref(found)
        part = found[10:20]
        del found, m
        gc.collect()
        self.assertIsNone(owner())
        self.assertEqual(part.tolist(), list(range(10, 20)))

    def test_memory_is_freed(self):
        m = nyala.compile(PROGRAM, level=1)

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        for _ in range(20):
            m.multiples(1 << 20, 1)
        before = resident()
        for _ in range(100):
            m.multiples(1 << 20, 1)
        self.assertLess(resident() - before, 100 << 20)

    def test_other_addresses_are_refused(self):
        m = nyala.compile(PROGRAM, level=1)
        with self.assertRaisesRegex(NotImplementedError, "its result is `&.i32.`, which Python does not have"):
            m.address(m.multiples(1, 1))


if __name__ == "__main__":
    unittest.main()

"""Filters of images."""

import array
import math
import unittest

import nyala
import nyala.image

WIDTH, HEIGHT = 21, 13


def image(letter, *channels):
    numbers = [(x * 7 + y * 13) % 50 for y in range(HEIGHT) for x in range(WIDTH) for _ in range(math.prod(channels))]
    return memoryview(array.array(letter, numbers)).cast("B").cast(letter, (HEIGHT, WIDTH, *channels))


def like(pixels):
    return memoryview(bytearray(pixels.nbytes)).cast(pixels.format, pixels.shape)


def at(pixels, x, y):
    return pixels[min(max(y, 0), HEIGHT - 1), min(max(x, 0), WIDTH - 1)]


class Filters(unittest.TestCase):
    def test_gaussian(self):
        pixels = image("f")
        out = like(pixels)
        self.assertIs(nyala.image.gaussian(pixels, 1.0, radius=2, out=out, schedule="bands(2, par)"), out)
        weights = [math.exp(-x * x / 2) for x in range(-2, 3)]
        weights = [w / sum(weights) for w in weights]
        for x, y in ((0, 0), (10, 6), (20, 12), (3, 11)):
            expected = sum(
                weights[i + 2] * weights[j + 2] * at(pixels, x + i, y + j) for i in range(-2, 3) for j in range(-2, 3)
            )
            self.assertAlmostEqual(out[y, x], expected, places=4)

    def test_medians_of_bytes_and_channels(self):
        pixels = image("B", 2)
        out = like(pixels)
        nyala.image.median3(pixels, out=out, schedule="whole")
        one = image("B")
        for x, y in ((0, 0), (10, 6), (20, 12)):
            expected = sorted(at(one, x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1))[4]
            self.assertEqual((out[y, x, 0], out[y, x, 1]), (expected, expected))

    def test_a_filter_of_ones_own(self):
        pixels = image("f")
        out = like(pixels)
        source = "fn @shifted(s: Stage[f32], by: f32) -> Stage[f32] { stencil(s, 1, 0, @|read, x, y| by * read(x - 1, y)) }"
        options = dict(source=source, parameters={"by": 2}, out=out, border=7, schedule="whole")
        nyala.image.apply(pixels, "shifted(s, by)", **options)
        self.assertEqual((out[3, 0], out[3, 4]), (14, 2 * pixels[3, 3]))

    def test_the_fastest_schedule(self):
        pixels = image("B")
        plain, tuned = like(pixels), like(pixels)
        nyala.image.dilate(pixels, 1, out=plain, schedule="whole")
        for _ in range(2):
            nyala.image.dilate(pixels, 1, out=tuned, schedule="tuned")
            self.assertEqual(bytes(tuned), bytes(plain))
        self.assertEqual(len(nyala.image._FASTEST), 1)

    def test_messages(self):
        pixels = image("f")
        for kind, text, f in (
            (TypeError, "format 'd', expected one of uint8, uint16, int32, float32", lambda: nyala.image.gaussian3(image("d"))),
            (ValueError, "`sigma` is 0, expected a positive number", lambda: nyala.image.gaussian(pixels, 0)),
            (ValueError, "`radius` is 1.5, expected an integer of 0 to 1000", lambda: nyala.image.box(pixels, 1.5)),
            (ValueError, "`border` is 'none', expected one of 'clamp', 'mirror', 'wrap', or a number", lambda: nyala.image.edges(pixels, border="none", out=like(pixels))),
            (ValueError, "`out` has the shape .13, 21, 2., expected .13, 21.", lambda: nyala.image.edges(pixels, out=image("f", 2))),
            (ValueError, "expected rows and columns", lambda: nyala.image.edges(memoryview(b"ab"))),
        ):
            with self.assertRaisesRegex(kind, text):
                f()


if __name__ == "__main__":
    unittest.main()

"""Scenes and rays."""

import array
import copy
import gc
import math
import pickle
import unittest

import nyala.ray


def points(letter, *rows):
    numbers = array.array(letter, [x for row in rows for x in row])
    return memoryview(numbers).cast("B").cast(letter, (len(rows), 3))


SQUARE = (
    points("f", (0, 0, 0), (4, 0, 0), (4, 4, 0), (0, 4, 0)),
    points("i", (0, 1, 2), (0, 2, 3)),
)


def room(n):
    return (*(array.array("f", bytes(4 * n)) for _ in range(3)), array.array("i", bytes(4 * n)))


class Rays(unittest.TestCase):
    def test_closest_hits(self):
        scene = nyala.ray.Scene(*SQUARE)
        origins = points("f", (0.5, 1, 3), (2.5, 1, 3), (9, 1, 3))
        down = points("f", *[(0, 0, -1)] * 3)
        out = room(3)
        hits = scene.trace(origins, down, out=out)
        self.assertIs(hits.t, out[0])
        self.assertEqual((list(hits.triangle), list(hits.t)), ([1, 0, -1], [3, 3, math.inf]))
        self.assertEqual((hits.u[1], hits.v[1]), (0.375, 0.25))
        self.assertEqual(list(scene.trace(origins, down, tmax=2, out=out).triangle), [-1, -1, -1])
        self.assertEqual(list(scene.occluded(origins, down, out=bytearray(3))), [1, 1, 0])
        none = memoryview(array.array("f", [0] * 3)).cast("B").cast("f", (1, 3))[:0]
        self.assertEqual(len(scene.trace(none, none, out=room(0)).t), 0)

    def test_scenes_own_their_memory(self):
        for _ in range(20):
            scene = nyala.ray.Scene(*SQUARE)
            again = copy.deepcopy(scene)
            del scene
            gc.collect()
            self.assertEqual(list(again.occluded(points("f", (1, 1, 1)), points("f", (0, 0, -1)), out=bytearray(1))), [1])
        with self.assertRaisesRegex(TypeError, "make it anew"):
            pickle.dumps(again)

    def test_messages(self):
        scene = nyala.ray.Scene(*SQUARE)
        one = points("f", (0, 0, 0))
        for kind, text, f in (
            (TypeError, "`vertices` has elements of the format 'd', expected float32", lambda: nyala.ray.Scene(points("d", (0, 0, 0)), SQUARE[1])),
            (TypeError, "`triangles` has elements of the format 'f', expected int32", lambda: nyala.ray.Scene(SQUARE[0], one)),
            (ValueError, "an index of triangle 1 is that of no vertex", lambda: nyala.ray.Scene(SQUARE[0], points("i", (0, 1, 2), (0, 2, 4)))),
            (ValueError, "expected three numbers each", lambda: scene.trace(array.array("f", [0] * 3), one, out=room(1))),
            (ValueError, "there are 1 origins, and 4 directions", lambda: scene.trace(one, SQUARE[0], out=room(1))),
            (ValueError, "`t` has the shape .2,., expected .1,.", lambda: scene.trace(one, one, out=room(2))),
        ):
            with self.assertRaisesRegex(kind, text):
                f()


if __name__ == "__main__":
    unittest.main()

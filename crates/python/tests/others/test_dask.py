"""Images in chunks, on processes of Dask: the example, what travels, and a worker that dies."""

import os
import pathlib
import signal
import sys
import tempfile
import unittest

import dask.array
import numpy

import nyala
import nyala.image

EXAMPLES = pathlib.Path(__file__).resolve().parents[4] / "examples/cluster"
sys.path.insert(0, str(EXAMPLES))

import large_image


def most_memory():
    """The bytes that this process has had at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Dask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.client = large_image.cluster(2, "2GB")

    @classmethod
    def tearDownClass(cls):
        cls.client.cluster.close()
        cls.client.close()
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_a_filter_in_chunks_is_that_of_the_whole_image(self):
        large_image.make(self.path("a.zarr"), 300, 200, 64)
        image = large_image.read(self.path("a.zarr"))
        self.assertEqual(image.chunks, ((64, 64, 64, 8), (64, 64, 64, 64, 44)))
        filter, depth = large_image.gaussian(4)
        expected = nyala.image.gaussian(image.compute(), 4)
        large_image.write(large_image.filtered(image, filter, depth), self.path("b.zarr"))
        numpy.testing.assert_array_equal(large_image.read(self.path("b.zarr")).compute(), expected)

    def test_workers_compile_a_filter_once(self):
        pixels = numpy.random.default_rng(1).integers(0, 255, (640, 640), numpy.uint8)
        image = dask.array.from_array(pixels, chunks=64)
        filter, depth = large_image.gaussian(2)
        misses = lambda: nyala.image._compiled.cache_info().misses
        before = sum(self.client.run(misses).values())
        large_image.filtered(image, filter, depth).compute()
        self.assertLessEqual(sum(self.client.run(misses).values()) - before, 2)

    def test_programs_travel_as_texts(self):
        m = nyala.compile("""
            use std::slice::*;
            extern fn add(a: Slice2[i32], out: MutSlice2[i32], x: i32) -> () {
                for j in range(0i64, a.height) { for i in range(0i64, a.width) { out(i, j) = a(i, j) + x; } }
            }
        """)
        three = m.add.fix(x=3)

        def added(a):
            out = numpy.empty_like(a)
            three(a, out)
            return out

        pixels = numpy.arange(1000, dtype=numpy.int32).reshape(20, 50)
        image = dask.array.from_array(pixels, chunks=10).map_blocks(added, dtype=numpy.int32, meta=pixels[:0])
        numpy.testing.assert_array_equal(image.compute(), pixels + 3)

    def test_the_chunks_of_a_worker_that_dies_are_computed_again(self):
        pixels = numpy.random.default_rng(2).integers(0, 255, (512, 512), numpy.uint8)
        filter, depth = large_image.gaussian(2)
        mark = self.path("died")

        def dies_once(chunk):
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return filter(chunk)
            os.kill(os.getpid(), signal.SIGKILL)

        image = dask.array.from_array(pixels, chunks=128)
        result = large_image.filtered(image, dies_once, depth).compute()
        self.assertTrue(os.path.exists(mark))
        numpy.testing.assert_array_equal(result, nyala.image.gaussian(pixels, 2))

    def test_workers_have_a_part_of_the_image_only(self):
        side = 8192
        small, large = self.path("small.zarr"), self.path("large.zarr")
        filter, depth = large_image.gaussian(2)
        for path, n in ((small, 2048), (large, side)):
            large_image.make(path, n, n, 1024)
        # Libraries and compilers are there afterwards.
        large_image.write(large_image.filtered(large_image.read(small), filter, depth), self.path("out.zarr"))
        before = self.client.run(most_memory)
        large_image.write(large_image.filtered(large_image.read(large), filter, depth), self.path("out.zarr"))
        after = self.client.run(most_memory)
        grown = [after[worker] - before[worker] for worker in after]
        self.assertLess(max(grown), side * side // 2)
        self.assertEqual(large_image.read(self.path("out.zarr"))[3000:3010, 3000:3010].compute().shape, (10, 10))


if __name__ == "__main__":
    unittest.main()

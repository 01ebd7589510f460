"""Filters an image that need not fit into memory, by processes that Dask starts:

    python large_image.py make in.zarr --size 40000x30000
    python large_image.py smooth in.zarr out.zarr --sigma 3 --workers 2 --memory 1GB

The image lies in chunks on disk. Dask gives each worker one after the other, with the pixels around it that the filter reads, and
writes what comes back. The filter is Nyala's: what travels is its name with its numbers, or a program's text. A worker compiles it once,
or finds its code in the cache on disk. A worker that dies is started anew, and Dask computes its chunks again.
"""

import argparse
import functools
import math
import os
import time

import dask
import dask.array
import numpy

import nyala.image


def make(path, width, height, chunk):
    """An image that is computed chunk by chunk: waves, and a point in every chunk."""

    def chunk_of(block_info=None):
        (y0, y1), (x0, x1) = block_info[None]["array-location"]
        y, x = numpy.ogrid[y0:y1, x0:x1]
        pixels = (100 + 60 * numpy.sin(x / 50) * numpy.cos(y / 70)).astype(numpy.uint8)
        pixels[7, 5] = 255
        return pixels

    chunks = dask.array.core.normalize_chunks(chunk, (height, width))
    image = dask.array.map_blocks(chunk_of, chunks=chunks, dtype=numpy.uint8, meta=numpy.empty((0, 0), numpy.uint8))
    write(image, path)


def filtered(image, filter, depth):
    """An image of Dask's, filtered. The filter reads `depth` pixels around each, at most.

    Dask adds the pixels around a chunk and takes them off again. At the ends of the image there are none, and the filter has its
    border. So the result is that of the whole image. Chunks smaller than `depth` are put together before.
    """

    def on_chunk(pixels):
        return filter(numpy.ascontiguousarray(pixels))

    meta = numpy.empty((0,) * image.ndim, image.dtype)
    return image.map_overlap(on_chunk, depth={0: depth, 1: depth}, boundary="none", dtype=image.dtype, meta=meta)


def gaussian(sigma):
    """A filter of Nyala's library, and how far it reads."""
    radius = max(1, math.ceil(3 * sigma))
    # The processes share the work: each needs one thread.
    return functools.partial(nyala.image.gaussian, sigma=sigma, radius=radius, schedule="whole"), radius


def read(path):
    return dask.array.from_zarr(path)


def write(image, path):
    import zarr

    # Chunks of one size, so that no two workers write one of them. Without compression, what is measured is the filter.
    chunks = tuple(sizes[0] for sizes in image.chunks)
    image = image.rechunk(chunks)
    store = zarr.create_array(path, shape=image.shape, chunks=chunks, dtype=image.dtype, compressors=None, overwrite=True)
    dask.array.store(image, store, lock=False)


def cluster(workers, memory):
    """A client of processes on this machine, each with a thread and this much memory."""
    from dask.distributed import Client, LocalCluster

    # Dask starts processes with this environment.
    os.environ["NYALA_NUM_THREADS"] = "1"
    return Client(LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=memory, dashboard_address=None))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("out")
    making.add_argument("--size", default="8192x8192")
    making.add_argument("--chunk", type=int, default=2048)
    smoothing = commands.add_parser("smooth")
    smoothing.add_argument("image")
    smoothing.add_argument("out")
    smoothing.add_argument("--sigma", type=float, default=3)
    for command in (making, smoothing):
        command.add_argument("--workers", type=int, default=2)
        command.add_argument("--memory", default="1GB")
    given = parser.parse_args()
    with cluster(given.workers, given.memory):
        start = time.perf_counter()
        if given.command == "make":
            width, height = map(int, given.size.split("x"))
            make(given.out, width, height, given.chunk)
        else:
            filter, depth = gaussian(given.sigma)
            write(filtered(read(given.image), filter, depth), given.out)
        print(f"{given.workers} workers: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()

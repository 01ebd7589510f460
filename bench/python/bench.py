"""`./x bench python`: filters, loops and functions with fixed values from Python by Nyala, Numba and, for filters, Halide and OpenCV: times of calls,
and of the first call in a process.

Each measurement runs in a process of its own, since compilers keep what they have made. Results are compared.
"""

import json
import os
import subprocess
import sys
import time

THREADS = 2
TURNS = int(os.environ.get("BRIEF_TURNS", 9))
# The brief form measures a third of them, beside Numba only.
IS_BRIEF = "BRIEF_TURNS" in os.environ
SIZE = 2048
os.environ["NUMBA_NUM_THREADS"] = os.environ["NYALA_NUM_THREADS"] = os.environ["HL_NUM_THREADS"] = str(THREADS)


def photo():
    import numpy

    x = numpy.arange(SIZE, dtype=numpy.float32)
    return numpy.ascontiguousarray((numpy.sin(x * 0.02)[:, None] * numpy.cos(x * 0.013)[None, :] + 1) * 127)


def options():
    import numpy

    i = numpy.arange(1 << 20)
    columns = [50 + i % 100, 60 + i % 77, 0.25 + i % 7 * 0.5, numpy.full(len(i), 0.02), 0.1 + i % 13 * 0.05]
    return [numpy.ascontiguousarray(column, dtype=numpy.float32) for column in columns]


PRICES = """
fn @fast normal(x: f32) -> f32 {
    let l = fabsf(x);
    let k = 1f / (1f + 0.2316419f * l);
    let w = ((((1.330274429f * k - 1.821255978f) * k + 1.781477937f) * k - 0.356563782f) * k + 0.31938153f) * k * 0.39894228040f * expf(-l * l * 0.5f);
    if x > 0f { 1f - w } else { w }
}
extern fn @fast price(s: f32, x: f32, t: f32, r: f32, v: f32) -> f32 {
    let d1 = (logf(s / x) + (r + v * v * 0.5f) * t) / (v * sqrtf(t));
    s * normal(d1) - x * expf(-r * t) * normal(d1 - v * sqrtf(t))
}
"""

MANDELBROT = """
fn @fast rounds(cr: f32, ci: f32) -> i32 {
    let (mut zr, mut zi, mut i) = (cr, ci, 0);
    while i < 256 {
        if zr * zr + zi * zi > 4f { break() }
        let (r, m) = (zr * zr - zi * zi, 2f * zr * zi);
        zr = cr + r;
        zi = ci + m;
        i++;
    }
    i
}
extern fn @fast render(out: &mut [i32], width: i32, height: i32) -> () {
    for y in par(0, height) {
        for x in vec(16, 0, width) { out(y * width + x) = rounds(-2f + x as f32 * 3f / width as f32, -1f + y as f32 * 2f / height as f32); }
    }
}
"""

# General functions, which `fix` makes special.
FIXED = """
use std::slice::*;
fn @fast @(?n) power(x: f64, n: i32) -> f64 {
    if n == 0 { 1.0 } else if n % 2 == 0 { let y = power(x, n / 2); y * y } else { x * power(x, n - 1) }
}
extern fn @fast powers(a: &[f64], out: &mut [f64], parts: i32, n: i32) -> () {
    for part in par(0, parts) { for i in vec(32, part * 4096, (part + 1) * 4096) { out(i) = power(a(i), n); } }
}
extern fn @fast convolve(image: &[f32], out: &mut [f32], len: i32, weights: Slice[f32], size: i32) -> () {
    let n = len - size + 1;
    for y in par(0, n) {
        for x in vec(16, 0, n) {
            let mut sum = 0f;
            for k in unroll(0, size * size) {
                if weights(k) != 0f { sum += weights(k) * image((y + k / size) * len + x + k % size); }
            }
            out(y * n + x) = sum;
        }
    }
}
// A machine with an accumulator: pairs of an operation and a number.
fn @fast @(?code & ?pc) step(code: Slice[f64], pc: i64, x: f64, acc: f64) -> f64 {
    if pc == code.length { acc }
    else {
        let (op, number) = (code(pc), code(pc + 1i64));
        let next =
            if op == 1.0 { acc + number } else if op == 2.0 { acc * number } else if op == 3.0 { acc * x }
            else if op == 4.0 { acc + x } else { if acc < number { number } else { acc } };
        step(code, pc + 2i64, x, next)
    }
}
extern fn @fast interpret(a: &[f64], out: &mut [f64], parts: i32, code: Slice[f64]) -> () {
    for part in par(0, parts) { for i in vec(32, part * 4096, (part + 1) * 4096) { out(i) = step(code, 0i64, a(i), 0.0); } }
}
"""
PARTS = 256
CODE = [4, 0, 2, 3, 3, 0, 1, 1.5, 3, 0, 5, 0.25, 2, 0.5, 3, 0, 1, -2, 5, 0.125, 3, 0]


def numbers():
    import numpy

    return 1 + numpy.arange(PARTS * 4096) / (PARTS * 4096) * 0.01


def weights():
    """Two thirds of them are not zero."""
    import numpy

    return numpy.array([[(i * j + i + j) % 3 and (i + 1) / (j + 2) for i in range(9)] for j in range(9)], numpy.float32)


def ours(what):
    import numpy
    import nyala

    if what in ("gaussian5", "edges", "median3"):
        import nyala.image

        image = photo() if what != "median3" else photo().astype(numpy.uint8)
        out, filter = numpy.empty_like(image), getattr(nyala.image, what)
        return lambda: filter(image, out=out)
    if what == "prices":
        m, columns = nyala.compile(PRICES), options()
        out = numpy.empty_like(columns[0])
        return lambda: m.price(*columns, out=out)
    if what in ("power", "interpreter"):
        m, a, out = nyala.compile(FIXED), numbers(), numpy.empty(PARTS * 4096)
        run = m.powers.fix(n=72) if what == "power" else m.interpret.fix(code=numpy.array(CODE, numpy.float64))
        return lambda: (run(a, out, PARTS), out)[1]
    if what == "convolution":
        image, out = photo(), numpy.empty((SIZE - 8, SIZE - 8), numpy.float32)
        run = nyala.compile(FIXED).convolve.fix(weights=weights().ravel(), size=9)
        return lambda: (run(image, out, SIZE), out)[1]
    m, out = nyala.compile(MANDELBROT), numpy.empty((1024, 1536), numpy.int32)
    return lambda: (m.render(out, 1536, 1024), out)[1]


def by_numba(what):
    import math

    import numba
    import numpy

    jit = numba.njit(parallel=True, fastmath=True, cache=True)
    if what == "gaussian5":

        @jit
        def run(image, rows, out):
            h, w = image.shape
            for y in numba.prange(h):
                for x in range(w):
                    a, b, c, d = max(y - 2, 0), max(y - 1, 0), min(y + 1, h - 1), min(y + 2, h - 1)
                    rows[y, x] = (image[a, x] + image[d, x]) + 4 * (image[b, x] + image[c, x]) + 6 * image[y, x]
            for y in numba.prange(h):
                for x in range(2, w - 2):
                    out[y, x] = (rows[y, x - 2] + rows[y, x + 2] + 4 * (rows[y, x - 1] + rows[y, x + 1]) + 6 * rows[y, x]) / numpy.float32(256)
                for x in (0, 1, w - 2, w - 1):
                    a, b, c, d = max(x - 2, 0), max(x - 1, 0), min(x + 1, w - 1), min(x + 2, w - 1)
                    out[y, x] = (rows[y, a] + rows[y, d] + 4 * (rows[y, b] + rows[y, c]) + 6 * rows[y, x]) / numpy.float32(256)

        image = photo()
        rows, out = numpy.empty_like(image), numpy.empty_like(image)
        return lambda: (run(image, rows, out), out)[1]
    if what == "edges":

        @jit
        def run(image, out):
            h, w = image.shape
            for y in numba.prange(h):
                a, c = max(y - 1, 0), min(y + 1, h - 1)
                for x in range(w):
                    l, r = max(x - 1, 0), min(x + 1, w - 1)
                    dx = image[a, r] - image[a, l] + 2 * (image[y, r] - image[y, l]) + image[c, r] - image[c, l]
                    dy = image[c, l] - image[a, l] + 2 * (image[c, x] - image[a, x]) + image[c, r] - image[a, r]
                    out[y, x] = math.sqrt(dx * dx + dy * dy)

        image = photo()
        out = numpy.empty_like(image)
        return lambda: (run(image, out), out)[1]
    if what == "median3":

        @numba.njit(fastmath=True, inline="always")
        def sort3(a, b, c):
            a, b = min(a, b), max(a, b)
            b, c = min(b, c), max(b, c)
            a, b = min(a, b), max(a, b)
            return a, b, c

        @jit
        def run(image, out):
            h, w = image.shape
            for y in numba.prange(h):
                p, q = max(y - 1, 0), min(y + 1, h - 1)
                for x in range(w):
                    l, r = max(x - 1, 0), min(x + 1, w - 1)
                    a, b, c = sort3(image[p, l], image[y, l], image[q, l])
                    d, e, f = sort3(image[p, x], image[y, x], image[q, x])
                    g, h_, i = sort3(image[p, r], image[y, r], image[q, r])
                    low, middle, high = max(a, max(d, g)), sort3(b, e, h_)[1], min(c, min(f, i))
                    out[y, x] = sort3(low, middle, high)[1]

        image = photo().astype(numpy.uint8)
        out = numpy.empty_like(image)
        return lambda: (run(image, out), out)[1]
    if what == "prices":

        @numba.njit(fastmath=True, inline="always")
        def normal(x):
            f = numpy.float32
            l = abs(x)
            k = f(1) / (f(1) + f(0.2316419) * l)
            w = ((((f(1.330274429) * k - f(1.821255978)) * k + f(1.781477937)) * k - f(0.356563782)) * k + f(0.31938153)) * k
            w = w * f(0.39894228040) * math.exp(-l * l * f(0.5))
            return f(1) - w if x > 0 else w

        # One loop, without threads, as ours.
        @numba.vectorize(["float32(float32, float32, float32, float32, float32)"], cache=True)
        def price(s, x, t, r, v):
            d1 = (math.log(s / x) + (r + v * v * numpy.float32(0.5)) * t) / (v * math.sqrt(t))
            return s * normal(d1) - x * math.exp(-r * t) * normal(d1 - v * math.sqrt(t))

        columns = options()
        out = numpy.empty_like(columns[0])
        return lambda: price(*columns, out=out)
    # Numba makes constants of what a text says, so the text is made. Its cache knows no functions of such texts.
    of_text = lambda text: exec(text, names := {"numba": numba, "numpy": numpy}) or numba.njit(parallel=True, fastmath=True)(names["run"])
    if what in ("power", "interpreter"):
        words = {1: "acc + {}", 2: "acc * {}", 3: "acc * x", 4: "acc + x", 5: "max(acc, {})"}
        # Numba calls a function for `x ** 72`.
        squares = [f"x{2 * n} = x{n} * x{n}" for n in (1, 2, 4, 8, 16, 32)]
        steps = ["x1 = x", *squares, "acc = x64 * x8"] if what == "power" else ["acc = " + words[op].format(float(n)) for op, n in zip(CODE[::2], CODE[1::2])]
        lines = ["def run(a, out):", " for i in numba.prange(len(a)):", "  x = a[i]", "  acc = 0.0", *("  " + step for step in steps), "  out[i] = acc"]
        run, a, out = of_text("\n".join(lines)), numbers(), numpy.empty(PARTS * 4096)
        return lambda: (run(a, out), out)[1]
    if what == "convolution":
        image, out = photo(), numpy.empty((SIZE - 8, SIZE - 8), numpy.float32)
        terms = [f"numpy.float32({w}) * image[y + {j}, x + {i}]" for j, row in enumerate(weights().tolist()) for i, w in enumerate(row) if w]
        loops = " for y in numba.prange(out.shape[0]):\n  for x in range(out.shape[1]):\n   out[y, x] = "
        run = of_text("def run(image, out):\n" + loops + " + ".join(terms))
        return lambda: (run(image, out), out)[1]

    @jit
    def render(out):
        h, w = out.shape
        for y in numba.prange(h):
            ci = numpy.float32(-1) + numpy.float32(y) * numpy.float32(2) / numpy.float32(h)
            for x in range(w):
                cr = numpy.float32(-2) + numpy.float32(x) * numpy.float32(3) / numpy.float32(w)
                zr, zi, i = cr, ci, 0
                while i < 256 and zr * zr + zi * zi <= numpy.float32(4):
                    zr, zi = cr + (zr * zr - zi * zi), ci + numpy.float32(2) * zr * zi
                    i += 1
                out[y, x] = i

    out = numpy.empty((1024, 1536), numpy.int32)
    return lambda: (render(out), out)[1]


def by_opencv(what):
    import cv2
    import numpy

    cv2.setNumThreads(THREADS)
    image = photo()
    if what == "gaussian5":
        kernel, out = numpy.array([1, 4, 6, 4, 1], numpy.float32) / 16, numpy.empty_like(image)
        return lambda: cv2.sepFilter2D(image, -1, kernel, kernel, dst=out, borderType=cv2.BORDER_REPLICATE)
    if what == "median3":
        image = image.astype(numpy.uint8)
        out = numpy.empty_like(image)
        return lambda: cv2.medianBlur(image, 3, dst=out)
    if what == "edges":

        def run():
            dx = cv2.Sobel(image, -1, 1, 0, borderType=cv2.BORDER_REPLICATE)
            dy = cv2.Sobel(image, -1, 0, 1, borderType=cv2.BORDER_REPLICATE)
            return cv2.magnitude(dx, dy)

        return run
    raise NotImplementedError


def by_halide(what):
    """Compiled when it runs, as by the others. Halide keeps no code between processes."""
    if what not in ("gaussian5", "edges", "median3"):
        raise NotImplementedError
    import halide as hl
    import numpy

    image = photo() if what != "median3" else photo().astype(numpy.uint8)
    out = numpy.empty_like(image)
    source, to = hl.Buffer(image), hl.Buffer(out)
    x, y, yo, yi = (hl.Var(name) for name in ("x", "y", "yo", "yi"))
    at = hl.BoundaryConditions.repeat_edge(source)
    result = hl.Func("result")
    # Strips of rows on all threads, in lanes.
    result_in_strips = lambda lanes: result.split(y, yo, yi, 64).vectorize(x, lanes).parallel(yo)
    if what == "gaussian5":
        rows, weights = hl.Func("rows"), [w / 16 for w in (1, 4, 6, 4, 1)]
        rows[x, y] = sum((hl.f32(weights[i]) * at[x + i - 2, y] for i in range(1, 5)), hl.f32(weights[0]) * at[x - 2, y])
        result[x, y] = sum((hl.f32(weights[i]) * rows[x, y + i - 2] for i in range(1, 5)), hl.f32(weights[0]) * rows[x, y - 2])
        result_in_strips(16)
        rows.store_at(result, yo).compute_at(result, yi).vectorize(x, 16)
    elif what == "edges":
        column = lambda i: at[x + i, y - 1] + hl.f32(2) * at[x + i, y] + at[x + i, y + 1]
        row = lambda i: at[x - 1, y + i] + hl.f32(2) * at[x, y + i] + at[x + 1, y + i]
        dx, dy = column(1) - column(-1), row(1) - row(-1)
        result[x, y] = hl.sqrt(dx * dx + dy * dy)
        result_in_strips(16)
    else:

        def sort3(a, b, c):
            a, b = hl.min(a, b), hl.max(a, b)
            b, c = hl.min(b, c), hl.max(b, c)
            a, b = hl.min(a, b), hl.max(a, b)
            return a, b, c

        # Sorted columns are computed once for each strip of rows.
        low, middle, high = hl.Func("low"), hl.Func("middle"), hl.Func("high")
        sorted_columns = sort3(at[x, y - 1], at[x, y], at[x, y + 1])
        for of, value in zip((low, middle, high), sorted_columns):
            of[x, y] = value
        three = lambda of: (of[x - 1, y], of[x, y], of[x + 1, y])
        lows, highs = three(low), three(high)
        least, most = hl.max(hl.max(lows[0], lows[1]), lows[2]), hl.min(hl.min(highs[0], highs[1]), highs[2])
        result[x, y] = sort3(least, sort3(*three(middle))[1], most)[1]
        result_in_strips(32)
        for of in (low, middle, high):
            of.compute_at(result, yi).vectorize(x, 32)
    result.compile_jit()
    # The source does not keep the image.
    return lambda image=image: (result.realize(to), out)[1]


WHO = {"nyala": ours, "numba": by_numba, "halide": by_halide, "opencv": by_opencv}
WHAT = ("gaussian5", "edges", "median3", "prices", "mandelbrot", "power", "convolution", "interpreter")


def measure(who, what):
    """In a process of its own: seconds until the first result, of the median call, and a sum of the result."""
    import numpy  # noqa: F401 its import is nobody's

    started = time.perf_counter()
    try:
        run = WHO[who](what)
    except NotImplementedError:
        return None
    result = run()
    first = time.perf_counter() - started
    times = []
    for _ in range(TURNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return [first, sorted(times)[TURNS // 2], float(result.astype("float64").sum())]


def main():
    if len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:])))
        return
    import tempfile

    print(f"ms, {THREADS} threads; first: import, compiling and the first call, without and with what was kept from the run before")
    print(f"{'':12}{'':8}{'call':>10}{'first':>10}{'again':>10}{'ours/it':>10}")
    for what in WHAT[::3] if IS_BRIEF else WHAT:
        times, expected = {}, None
        for who in list(WHO)[:2] if IS_BRIEF else WHO:
            with tempfile.TemporaryDirectory() as cache:
                env = {**os.environ, "XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": cache}
                runs = []
                for _ in range(2):
                    done = subprocess.run([sys.executable, __file__, who, what], env=env, capture_output=True, text=True)
                    if done.returncode != 0:
                        print(f"{what:12}{who:8} not measured: {done.stderr.strip().splitlines()[-1]}")
                        break
                    runs.append(json.loads(done.stdout))
            if len(runs) < 2 or runs[0] is None:
                continue
            times[who] = min(run[1] for run in runs)
            ratio = times["nyala"] / times[who] if "nyala" in times else float("nan")
            sums = runs[0][2]
            if who == "nyala":
                expected = sums
            elif expected is not None and abs(sums - expected) > 1e-3 * abs(expected):
                print(f"{what:12}{who:8} another result: a sum of {sums}, not {expected}")
                continue
            print(f"{what:12}{who:8}{times[who] * 1e3:10.2f}{runs[0][0] * 1e3:10.0f}{runs[1][0] * 1e3:10.0f}{ratio:10.2f}", flush=True)


main()

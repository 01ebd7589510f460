"""Filters of images, by the library `image`: `nyala.image.gaussian(photo, sigma=2)`.

An image is an array of two dimensions, or of three with the channels last, whose elements are side by side: of uint8, uint16, int32 or
float32. Each filter takes, by name,

    out: the array for the result, of the same shape and type; a new one of NumPy's by default
    border: what lies outside of the image: "clamp", "mirror", "wrap", or a number
    schedule: in which order parts are computed, as Impala writes it: "whole", "bands(2, par)", "tiles(512, 64, par)"; bands of rows on
        all processors by default. With "tuned" the first call with an image of this shape tries some, and later ones take the fastest

A filter is compiled when it is called first with a type, a number of channels and the numbers that it is made for; its code is kept
between runs. `apply` takes one of your own.
"""

import array as _array
import functools as _functools
import math as _math
import os as _os
import time as _time

from . import compile as _compile

_TYPES = {"B": "u8", "H": "u16", "i": "i32", "f": "f32"}
_NAMES = {"u8": "uint8", "u16": "uint16", "i32": "int32", "f32": "float32"}
_BORDERS = {"clamp": "clamp_to", "mirror": "mirror", "wrap": "wrap"}

_PROGRAM = """
use image::*;
static LANES = {lanes};
{source}
extern fn apply(pixels: &[{ty}], out: &mut [{ty}], width: i32, height: i32{parameters}) -> () {{
    for c in unroll(0, {channels}) {{
        let from = computed(width, height, @|x, y| pixels((y as i64 * width as i64 + x as i64) * {channels}i64 + c as i64));
        let to = interleaved(width, height, {channels}, c, out);
        let s = source({of}(from), {border});
        render({of}(to), {filter}, {schedule}, lanes(LANES))
    }}
}}
"""


def _bands():
    threads = int(_os.environ.get("NYALA_NUM_THREADS") or _os.cpu_count() or 1)
    return f"bands({threads}, par)" if threads > 1 else "whole"


# The fastest schedules that were found, by what they are for.
_FASTEST = {}


def _fastest(key, run):
    """The fastest of some schedules, which `run` runs."""
    found = _FASTEST.get(key)
    if found is None:
        bands = _bands()
        loop = "range" if bands == "whole" else "par"
        times = {}
        for schedule in (bands, *(f"tiles({w}, {h}, {loop})" for w, h in ((2048, 16), (1024, 64), (512, 64), (256, 32)))):
            run(schedule)
            for _ in range(3):
                start = _time.perf_counter()
                run(schedule)
                times[schedule] = min(times.get(schedule, _math.inf), _time.perf_counter() - start)
        found = _FASTEST[key] = min(times, key=times.get)
    return found


@_functools.lru_cache(maxsize=256)
def _compiled(ty, channels, filter, source, parameters, border, schedule, reals, lanes):
    if border in _BORDERS:
        border = _BORDERS[border]
    elif isinstance(border, (int, float)):
        border = f"filled(({float(border)!r}) as {'f32' if reals else ty})"
    else:
        raise ValueError(f"`border` is {border!r}, expected one of {', '.join(map(repr, _BORDERS))}, or a number")
    if schedule is None:
        schedule = _bands()
    text = _PROGRAM.format(
        source=source,
        ty=ty,
        channels=channels,
        parameters="".join(f", {name}: {of}" for name, of in parameters),
        of="reals" if reals else "",
        border=border,
        filter=filter,
        schedule=schedule,
        lanes=lanes,
    )
    return _compile(text, name="<filter>").apply


def apply(image, filter, *, source="", parameters={}, out=None, border="clamp", schedule=None, reals=True, lanes=None):
    """Applies a filter to each channel of an image.

    filter: an expression of Impala, of type `Stage[f32]`, in which `s` is the image, `LANES` the number of lanes, and the names of
        `parameters` are these
    source: functions that the expression uses
    parameters: numbers, which become `f32`, and arrays of float32, which become `&[f32]`, by name
    reals: whether pixels are numbers of f32 for the filter, and rounded when they are written; otherwise they are what they are
    lanes: how many pixels are computed at a time; by default 16, or 32 bytes that are what they are

    Returns `out`.
    """
    with memoryview(image) as view:
        ty = _TYPES.get(view.format.lstrip("@=<"))
        if ty is None:
            wanted = ", ".join(_NAMES.values())
            raise TypeError(f"`image` has elements of the format {view.format!r}, expected one of {wanted}")
        if view.ndim not in (2, 3):
            raise ValueError(f"`image` has the shape {view.shape}, expected rows and columns, and perhaps channels")
        if not view.c_contiguous:
            raise ValueError("`image` is strided: pass numpy.ascontiguousarray(image)")
        shape = view.shape
    if out is None:
        import numpy

        out = numpy.empty(shape, _NAMES[ty])
    with memoryview(out) as view:
        if view.shape != shape:
            raise ValueError(f"`out` has the shape {view.shape}, expected {shape}")
    height, width = shape[:2]
    given = {name: value if hasattr(value, "__len__") else float(value) for name, value in parameters.items()}
    kinds = tuple((name, "f32" if isinstance(value, float) else "&[f32]") for name, value in given.items())
    channels = shape[2] if len(shape) == 3 else 1
    if lanes is None:
        # A register of AVX2 is 32 bytes.
        lanes = 32 if ty == "u8" and not reals else 16
    if 0 in shape:
        return out
    how = (ty, channels, filter, source, kinds, border)

    def run(schedule):
        _compiled(*how, schedule, reals, lanes)(image, out, width, height, **given)

    run(_fastest((*how, reals, lanes, shape), run) if schedule == "tuned" else schedule)
    return out


def gaussian(image, sigma, *, radius=None, **options):
    """Smooths by a Gaussian filter. `sigma` is its standard deviation in pixels, `radius` how far it reads: three sigmas by default."""
    if not sigma > 0 or not _math.isfinite(sigma):
        raise ValueError(f"`sigma` is {sigma}, expected a positive number")
    if radius is None:
        radius = max(1, _math.ceil(3 * sigma))
    weights = [_math.exp(-x * x / (2 * sigma * sigma)) for x in range(-radius, radius + 1)]
    weights = _array.array("f", [weight / sum(weights) for weight in weights])
    return apply(image, f"gaussian(s, {_radius(radius)}, weights, lanes(LANES))", parameters={"weights": weights}, **options)


def gaussian3(image, **options):
    """Smooths by 3 by 3 pixels with the coefficients 1 2 1: sigma is about 0.8."""
    return apply(image, "gaussian3(s, lanes(LANES))", **options)


def gaussian5(image, **options):
    """Smooths by 5 by 5 pixels with the coefficients 1 4 6 4 1: sigma is about 1.1."""
    return apply(image, "gaussian5(s, lanes(LANES))", **options)


def box(image, radius, **options):
    """The mean of the pixels up to `radius` columns and rows away."""
    return apply(image, f"box(s, {_radius(radius)}, lanes(LANES))", **options)


def bilateral(image, radius, sigma_place, sigma_value, **options):
    """The mean of the pixels up to `radius` away, which count less the further away they are, and the more they differ."""
    parameters = {"sigma_place": sigma_place, "sigma_value": sigma_value}
    filter = f"bilateral(s, {_radius(radius)}, sigma_place, sigma_value, lanes(LANES))"
    return apply(image, filter, parameters=parameters, **options)


def sobel_x(image, **options):
    """Differences along rows, of 3 by 3 pixels."""
    return apply(image, "sobel_x(s)", **options)


def sobel_y(image, **options):
    """Differences along columns, of 3 by 3 pixels."""
    return apply(image, "sobel_y(s)", **options)


def edges(image, **options):
    """The length of the gradient."""
    return apply(image, "edges(s)", **options)


def laplacian4(image, **options):
    """The sum of second differences, of four neighbors."""
    return apply(image, "laplacian4(s)", **options)


def laplacian8(image, **options):
    """The sum of second differences, of eight neighbors."""
    return apply(image, "laplacian8(s)", **options)


def harris(image, k=0.04, **options):
    """Where corners are (Harris and Stephens)."""
    return apply(image, "harris(s, k, lanes(LANES))", parameters={"k": k}, **options)


def median3(image, **options):
    """The median of 3 by 3 pixels."""
    return apply(image, "median3(s, lanes(LANES))", reals=False, **options)


def median5(image, **options):
    """The median of 5 by 5 pixels."""
    return apply(image, "median5(s, lanes(LANES))", reals=False, **options)


def erode(image, radius, **options):
    """The smallest of the pixels up to `radius` columns and rows away."""
    return apply(image, f"erode(s, {_radius(radius)}, lanes(LANES))", reals=False, **options)


def dilate(image, radius, **options):
    """The greatest of the pixels up to `radius` columns and rows away."""
    return apply(image, f"dilate(s, {_radius(radius)}, lanes(LANES))", reals=False, **options)


def _radius(radius):
    if not isinstance(radius, int) or isinstance(radius, bool) or not 0 <= radius <= 1000:
        raise ValueError(f"`radius` is {radius!r}, expected an integer of 0 to 1000")
    return radius

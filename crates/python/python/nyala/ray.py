"""What rays hit, by the library `ray`: `nyala.ray.Scene(vertices, triangles).trace(origins, directions)`.

A scene has triangles in a tree, which is built on all processors. Rays are traced in lanes and on all processors, in packets where
neighbors have similar directions; none passes between two triangles that share an edge. Arrays have elements of float32 (triangles and
their numbers: int32), side by side.
"""

import array as _array
import collections as _collections
import functools as _functools
import math as _math
import weakref as _weakref

from . import compile as _compile

Hits = _collections.namedtuple("Hits", "t u v triangle")
Hits.__doc__ = """What rays hit: the triangle's number, -1 if none; the distance along the ray in lengths of its direction, `tmax` if none; and the
weights of the triangle's second and third vertex."""

_PROGRAM = """
use ray::*;
use std::slice::*;

struct Scene { tree: Tree[8, 4], corners: Packets[4, Corners] }

// A scene lies in words of Python's, which know no addresses.
extern fn scene_words() -> i64 { (sizeof[Scene]() + 7i64) / 8i64 }

// Fails if an index is out of range: gives its place, -1 if there is none.
extern fn make(scene: MutSlice[i64], vertices: Slice[[f32 * 3]], triangles: Slice[[i32 * 3]]) -> i64 {
    let indices = triangles.data as &[i32];
    for i in range(0i64, 3i64 * triangles.length) {
        if indices(i) < 0 || indices(i) as i64 >= vertices.length { return(i) }
    }
    let mesh = indexed_mesh(triangles.length as i32, vertices.data as &[f32], indices);
    let tree = build_tree[8, 4](mesh.count, |i| triangle_box(mesh, i));
    *(scene.data as &mut Scene) = Scene { tree: tree, corners: pack_corners(mesh, tree) };
    -1
}

extern fn free_scene(scene: Slice[i64]) -> () {
    let s = *(scene.data as &Scene);
    s.corners.free();
    s.tree.free()
}

fn @each_hit(
    scene: Slice[i64], org: Slice[[f32 * 3]], dir: Slice[[f32 * 3]], tmin: f32, tmax: f32, any: bool, put: fn(i64, Hit) -> ()
) -> () {
    let s = *(scene.data as &Scene);
    let vec = @|of: &[[f32 * 3]], i: i64| vec3(of(i)(0), of(i)(1), of(i)(2));
    let ray = @|i: i64| Ray { org: vec(org.data, i), tmin: tmin, dir: vec(dir.data, i), tmax: tmax };
    let prims = triangle_packets(s.corners, watertight);
    trace_rays_adaptive(Rays { count: org.length, ray: ray }, Hits { put: put }, bvh8(s.tree), robust_slabs(), prims, any, is_far(s.tree))
}

extern fn trace(
    scene: Slice[i64], org: Slice[[f32 * 3]], dir: Slice[[f32 * 3]], tmin: f32, tmax: f32,
    t: MutSlice[f32], u: MutSlice[f32], v: MutSlice[f32], triangle: MutSlice[i32]
) -> () {
    for i, hit in each_hit(scene, org, dir, tmin, tmax, false) {
        t(i) = hit.t;
        u(i) = hit.u;
        v(i) = hit.v;
        triangle(i) = hit.prim;
    }
}

extern fn occluded(
    scene: Slice[i64], org: Slice[[f32 * 3]], dir: Slice[[f32 * 3]], tmin: f32, tmax: f32, out: MutSlice[u8]
) -> () {
    for i, hit in each_hit(scene, org, dir, tmin, tmax, true) { out(i) = is_hit(hit) as u8; }
}
"""

# More triangles have no numbers in a tree.
_MOST = 0x0FFFFFFF


@_functools.cache
def _program():
    return _compile(_PROGRAM, name="<rays>")


def _points(name, points, letter="f"):
    """The number of points, three numbers each."""
    with memoryview(points) as view:
        if view.format.lstrip("@=<") != letter:
            raise TypeError(f"`{name}` has elements of the format {view.format!r}, expected {'float32' if letter == 'f' else 'int32'}")
        if view.ndim != 2 or view.shape[1] != 3:
            raise ValueError(f"`{name}` has the shape {view.shape}, expected three numbers each")
        if not view.c_contiguous:
            raise ValueError(f"`{name}` is strided: pass numpy.ascontiguousarray({name})")
        return view.shape[0]


def _free(words):
    _program().free_scene(words)


class Scene:
    """Triangles, by three indices each into the vertices, which have three coordinates each. The arrays are copied."""

    def __init__(self, vertices, triangles):
        _points("vertices", vertices)
        self.n_triangles = _points("triangles", triangles, "i")
        if self.n_triangles > _MOST:
            raise ValueError(f"{self.n_triangles} triangles are too many")
        program = _program()
        words = _array.array("q", bytes(8 * program.scene_words()))
        wrong = program.make(words, vertices, triangles)
        if wrong >= 0:
            raise ValueError(f"an index of triangle {wrong // 3} is that of no vertex")
        self._words = words
        # What the tree takes is freed with the scene, not with the words.
        _weakref.finalize(self, _free, words).atexit = False

    def __reduce__(self):
        raise TypeError("a scene is memory of this process: make it anew of its triangles")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def trace(self, origins, directions, *, tmin=0.0, tmax=_math.inf, out=None):
        """What each ray hits first, of what lies at more than `tmin` and less than `tmax` lengths of its direction.

        out: four arrays for the result, as in `Hits`; new ones of NumPy's by default

        Returns `Hits`.
        """
        n = self._rays(origins, directions)
        if out is None:
            import numpy

            out = (*(numpy.empty(n, numpy.float32) for _ in range(3)), numpy.empty(n, numpy.int32))
        out = Hits(*out)
        for name, array in out._asdict().items():
            _fits(name, array, n)
        _program().trace(self._words, origins, directions, tmin, tmax, *out)
        return out

    def occluded(self, origins, directions, *, tmin=0.0, tmax=_math.inf, out=None):
        """Whether each ray hits anything: 1 or 0, as an array of uint8."""
        n = self._rays(origins, directions)
        if out is None:
            import numpy

            out = numpy.empty(n, numpy.uint8)
        _fits("out", out, n)
        _program().occluded(self._words, origins, directions, tmin, tmax, out)
        return out

    @staticmethod
    def _rays(origins, directions):
        n, m = _points("origins", origins), _points("directions", directions)
        if n != m:
            raise ValueError(f"there are {n} origins, and {m} directions")
        return n


def _fits(name, array, n):
    with memoryview(array) as view:
        if view.shape != (n,):
            raise ValueError(f"`{name}` has the shape {view.shape}, expected {(n,)}")

// Random scenes and rays: what `lib/ray` finds (kernels.impala) beside all triangles one by one, in double precision.
//
//   random KIND SEED RAYS
//
// Prints `N rays agree, M of them hit`, or what differs, and ends with 1.
#include "kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIANGLES = 400, GROUP = 4000 };

static uint64_t state;
static uint32_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = ((state >> 18) ^ state) >> 27, turn = state >> 59;
    return x >> turn | x << (-turn & 31);
}
static int below(int n) { return (uint64_t)next() * n >> 32; }
static double part(void) { return next() / 4294967296.0; }
static double around(double a) { return (2 * part() - 1) * a; }

static float vertices[9 * TRIANGLES];
static int indices[3 * TRIANGLES];
static int triangles;
static struct Ray rays[GROUP];
static struct Hit hits[GROUP];
static uint8_t flags[GROUP];

typedef struct { double x, y, z; } Vec;
static Vec sub(Vec a, Vec b) { return (Vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
static Vec cross(Vec a, Vec b) { return (Vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
static double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static double size(Vec a) { return sqrt(dot(a, a)); }
static Vec corner(int i, int k) {
    const float *v = vertices + 3 * indices[3 * i + k];
    return (Vec){v[0], v[1], v[2]};
}

// Triangles of all sizes and shapes: large and tiny ones, long ones, in a plane or without area, some with what is not finite.
static void make_scene(void) {
    triangles = below(4) == 0 ? below(6) : below(TRIANGLES + 1);
    double largest = pow(10, -2 * part());
    int flat = below(5) == 0, grid = below(5) == 0;
    for (int i = 0; i < triangles; i++) {
        double c[3] = {part(), part(), part()}, reach = largest * (below(10) == 0 ? 0.05 : 1);
        int shape = below(40);
        for (int k = 0; k < 3; k++) {
            for (int a = 0; a < 3; a++) {
                double p = c[a] + around(reach) * (shape == 1 && a > 0 ? 0.01 : 1);
                if (grid) p = floor(8 * p) / 8;
                if (flat && a == 2) p = 0.5;
                if (shape == 2) p = c[a];
                vertices[9 * i + 3 * k + a] = p;
            }
            indices[3 * i + k] = 3 * i + k;
        }
        if (shape == 3) vertices[9 * i + below(9)] = below(2) ? NAN : INFINITY;
        // Corners that triangles share.
        if (i > 0 && below(4) == 0) indices[3 * i] = indices[3 * below(i)];
    }
}

// Rays from outside or inside, along an axis, at corners, of any length; some that are none.
static void make_rays(void) {
    int similar = below(3) == 0;
    double eye[3] = {around(2), around(2), around(2)};
    for (int i = 0; i < GROUP; i++) {
        float o[3], d[3];
        int special = below(50), axis = below(3), at_corner = triangles > 0 && below(8) == 0, which = below(3 * (triangles ? triangles : 1));
        for (int a = 0; a < 3; a++) {
            o[a] = similar ? eye[a] : 0.5 + around(1.5);
            double target = at_corner ? vertices[3 * indices[which] + a] : part();
            d[a] = special == 1 ? 0 : special < 6 ? (a == axis ? 1 - 2 * (special & 1) : special & 2 ? 0 : -0.0f) : target - o[a];
        }
        double stretch = special == 6 ? 1e-6 : special == 7 ? 1e6 : 1;
        for (int a = 0; a < 3; a++) d[a] *= stretch;
        if (special == 8) d[axis] = below(2) ? NAN : INFINITY;
        if (special == 9) o[axis] = NAN;
        float tmin = below(6) == 0 ? 0.3 / stretch : 0, tmax = below(6) == 0 ? 0.9 / stretch : INFINITY;
        rays[i] = (struct Ray){{o[0], o[1], o[2]}, tmin, {d[0], d[1], d[2]}, tmax};
    }
}

// Whether a ray surely meets a triangle (2), may meet it (1), or does not (0); where, and how exact that is.
static int meet(const struct Ray *ray, int i, double *t, double *error) {
    Vec o = {ray->org.x, ray->org.y, ray->org.z}, d = {ray->dir.x, ray->dir.y, ray->dir.z};
    Vec a = corner(i, 0), b = sub(corner(i, 1), a), c = sub(corner(i, 2), a), n = cross(b, c), from = sub(a, o);
    double det = dot(n, d), far = size(a) + size(o) + size(from), longest = size(b) + size(c);
    if (!(size(n) > 0) || !(size(d) > 0) || !isfinite(size(n)) || !isfinite(size(d)) || !isfinite(size(o))) return 0;
    if (det == 0) return 0;
    Vec r = cross(from, d);
    double u = dot(r, c) / det, v = -dot(r, b) / det;
    *t = dot(n, from) / det;
    // Of numbers of 24 bits: each of these products is of a few rounded factors.
    const double bit = 4e-6;
    double of_t = bit * longest * longest * far / fabs(det), of_weights = bit * far * size(d) * longest / fabs(det);
    *error = of_t + bit * fabs(*t);
    double least = fmin(fmin(u, v), 1 - u - v);
    double inside = fmin(*t - ray->tmin, ray->tmax - *t);
    if (least < -of_weights || inside < -*error) return 0;
    return least > of_weights && inside > *error ? 2 : 1;
}

static int kind;

// Whether a hit may be on a triangle without area: rounding may give it one in watertight tests, along its line.
static int is_on_line(int i) {
    const struct Ray *r = rays + i;
    int prim = hits[i].prim;
    Vec a = corner(prim, 0), b = sub(corner(prim, 1), a), c = sub(corner(prim, 2), a);
    double longest = fmax(size(b), size(c));
    if ((kind != 1 && kind != 4 && kind != 6) || size(cross(b, c)) > 1e-6 * longest * longest) return 0;
    Vec o = {r->org.x, r->org.y, r->org.z}, p = {o.x + r->dir.x * (double)hits[i].t, o.y + r->dir.y * (double)hits[i].t, o.z + r->dir.z * (double)hits[i].t};
    Vec along = size(b) > size(c) ? b : c, from = sub(p, a);
    return size(cross(from, along)) <= 1e-5 * (size(o) + size(a) + 1) * longest && size(from) <= 1.01 * size(b) + size(c) + 1e-5;
}

static void fail(const char *what, int i) {
    const struct Ray *r = rays + i;
    printf("%s: ray %d, from %.9g %.9g %.9g along %.9g %.9g %.9g, %g to %g: t %.9g, u %.9g, v %.9g, triangle %d of %d, of area %g\n", what, i, r->org.x,
           r->org.y, r->org.z, r->dir.x, r->dir.y, r->dir.z, r->tmin, r->tmax, hits[i].t, hits[i].u, hits[i].v, hits[i].prim, triangles,
           hits[i].prim < 0 ? 0 : size(cross(sub(corner(hits[i].prim, 1), corner(hits[i].prim, 0)), sub(corner(hits[i].prim, 2), corner(hits[i].prim, 0)))) / 2);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    kind = atoi(argv[1]);
    state = strtoull(argv[2], 0, 10) * 1000 + kind;
    long wanted = atol(argv[3]), done = 0, found = 0;
    while (done < wanted) {
        make_scene();
        make_rays();
        // A number of rays that packets do not divide.
        int n = GROUP - below(20);
        rays_trace(triangles, vertices, indices, n, rays, hits, flags);
        for (int i = 0; i < n; i++) {
            double nearest = INFINITY, t, error;
            for (int k = 0; k < triangles; k++)
                if (meet(rays + i, k, &t, &error) == 2 && t + error < nearest) nearest = t + error;
            if (hits[i].prim == -1) {
                if (isfinite(nearest)) fail("a hit was lost", i);
                if (hits[i].t != rays[i].tmax && !isnan(hits[i].t)) fail("a miss has another distance than tmax", i);
            } else {
                found++;
                if (hits[i].prim < 0 || hits[i].prim >= triangles) fail("there is no such triangle", i);
                int is_met = meet(rays + i, hits[i].prim, &t, &error);
                if (!is_met && !is_on_line(i)) fail("the triangle is not met", i);
                if (is_met && fabs(hits[i].t - t) > error) fail("the distance is wrong", i);
                if (is_met && hits[i].t - error > nearest) fail("another triangle is nearer", i);
            }
            if (flags[i] != (hits[i].prim != -1)) fail("any hit and closest hit differ", i);
        }
        done += n;
    }
    printf("%ld rays agree, %ld of them hit\n", done, found);
    return found < done / 50;
}

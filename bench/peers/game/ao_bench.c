// Three spheres on a plane, and how much of the sky each of their points sees: 64 rays of chance for each of the four samples of
// a pixel.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES 2
#define RAYS 8
#define FAR 1e17

typedef struct { double x, y, z; } vec;
static inline vec add(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vec sub(vec a, vec b) { return (vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline vec mul(vec a, double s) { return (vec){a.x * s, a.y * s, a.z * s}; }
static inline double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline vec cross(vec a, vec b) {
    return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static inline vec unit(vec a) { return mul(a, 1.0 / sqrt(dot(a, a))); }

static const struct { vec center; double radius; } spheres[3] = {
    {{-2.0, 0, -3.5}, 0.5}, {{-0.5, 0, -3.0}, 0.5}, {{1.0, 0, -2.2}, 0.5}
};
static const vec plane_point = {0, -0.5, 0}, plane_normal = {0, 1, 0};

static inline double to_sphere(int i, vec from, vec to) {
    vec rel = sub(from, spheres[i].center);
    double b = dot(rel, to), d = b * b - (dot(rel, rel) - spheres[i].radius * spheres[i].radius);
    if (d <= 0) return FAR;
    double t = -b - sqrt(d);
    return t > 0 ? t : FAR;
}
static inline double to_plane(vec from, vec to) {
    double v = dot(to, plane_normal), t = dot(sub(plane_point, from), plane_normal) / v;
    return fabs(v) > 1e-17 && t > 0 ? t : FAR;
}

static uint64_t state = 20081107;
static inline double chance(uint64_t *s) {
    *s = (*s * 25214903917u + 11) & 281474976710655u;
    return *s / 281474976710656.0;
}

static double ambient_occlusion(vec p, vec n) {
    vec axis = fabs(n.x) < 0.6 ? (vec){1, 0, 0} : fabs(n.y) < 0.6 ? (vec){0, 1, 0} : (vec){0, 0, 1};
    vec s = unit(cross(axis, n)), t = unit(cross(n, s)), from = add(p, mul(n, 1e-4));
    uint64_t seed = state;
    int seen = 0;
    for (int k = 0; k < RAYS * RAYS; k++) {
        double r = sqrt(chance(&seed)), phi = 2.0 * 3.141592653589793 * chance(&seed);
        vec to = add(add(mul(s, cos(phi) * r), mul(t, sin(phi) * r)), mul(n, sqrt(1.0 - r * r)));
        seen += !(to_sphere(0, from, to) < FAR || to_sphere(1, from, to) < FAR || to_sphere(2, from, to) < FAR ||
                  to_plane(from, to) < FAR);
    }
    state = seed;
    return seen / (double)(RAYS * RAYS);
}

static double brightness(vec from, vec to) {
    double nearest = FAR;
    vec normal = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        double t = to_sphere(i, from, to);
        if (t < nearest) {
            nearest = t;
            normal = unit(sub(add(from, mul(to, t)), spheres[i].center));
        }
    }
    double t = to_plane(from, to);
    if (t < nearest) {
        nearest = t;
        normal = plane_normal;
    }
    return nearest < FAR ? ambient_occlusion(add(from, mul(to, nearest)), normal) : 0.0;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 12;
    printf("P2\n%d %d\n255\n", n, n);
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            double sum = 0, half = n / 2.0;
            for (int v = 0; v < SAMPLES; v++)
                for (int u = 0; u < SAMPLES; u++) {
                    vec to = unit((vec){(x + u / (double)SAMPLES - half) / half, (half - y - v / (double)SAMPLES) / half, -1});
                    sum += brightness((vec){0, 0, 0}, to);
                }
            int value = sum / (SAMPLES * SAMPLES) * 255.5;
            printf("%d%c", value < 255 ? value : 255, x == n - 1 ? '\n' : ' ');
        }
}

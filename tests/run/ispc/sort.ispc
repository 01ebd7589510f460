// Sorting by digits, with counts of lanes; the nearest of some points; ambient light on a sphere and a plane.
#define DIGITS 16
export void sort(uniform unsigned int keys[], uniform unsigned int scratch[], uniform int n) {
    uniform unsigned int * uniform from = keys, * uniform to = scratch;
    for (uniform int pass = 0; pass < 4; ++pass) {
        uniform int counts[DIGITS];
        for (uniform int d = 0; d < DIGITS; ++d) counts[d] = 0;
        foreach (i = 0 ... n) {
            int digit = (from[i] >> (4 * pass)) & 15;
            foreach_unique (d in digit) counts[d] += popcnt(lanemask());
        }
        uniform int sum = 0;
        for (uniform int d = 0; d < DIGITS; ++d) {
            uniform int c = counts[d];
            counts[d] = sum;
            sum += c;
        }
        foreach (i = 0 ... n) {
            unsigned int key = from[i];
            int digit = (key >> (4 * pass)) & 15;
            foreach_unique (d in digit) counts[d] += packed_store_active(&to[counts[d]], key);
        }
        uniform unsigned int * uniform t = from;
        from = to;
        to = t;
    }
}
export uniform bool test_sort() {
    uniform unsigned int keys[45], scratch[45];
    uniform unsigned int sum = 0, after = 0, x = 12345;
    for (uniform int i = 0; i < 45; ++i) {
        x = x * 1103515245 + 12345;
        keys[i] = (x >> 8) & 0xffff;
        sum += keys[i];
    }
    sort(keys, scratch, 45);
    for (uniform int i = 0; i < 45; ++i) {
        after += keys[i];
        if (i > 0 && keys[i - 1] > keys[i]) return false;
    }
    return sum == after;
}

// Each lane keeps the nearest ones of its candidates; then lanes are compared.
export uniform bool test_nearest() {
    uniform float xs[50], ys[50];
    foreach (i = 0 ... 50) {
        xs[i] = (i * 17) % 50;
        ys[i] = (i * 31) % 50;
    }
    float best = 1e30f;
    int which = -1;
    foreach (i = 0 ... 50) {
        float dx = xs[i] - 20, dy = ys[i] - 7, d = dx * dx + dy * dy;
        if (d < best) {
            best = d;
            which = i;
        }
    }
    uniform float least = reduce_min(best);
    uniform int found = -1;
    if (best == least) found = reduce_min(which);
    uniform int expected = 0;
    uniform float e = 1e30f;
    for (uniform int i = 0; i < 50; ++i) {
        uniform float d = (xs[i] - 20) * (xs[i] - 20) + (ys[i] - 7) * (ys[i] - 7);
        if (d < e) {
            e = d;
            expected = i;
        }
    }
    return found == expected && least == e;
}

typedef float<3> vec;
static inline float dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
struct Hit {
    float t;
    vec p, n;
    int hits;
};
static void hit_sphere(Hit &hit, vec from, vec to, uniform float<3> center, uniform float radius) {
    vec rs = from - center;
    float b = dot(rs, to), c = dot(rs, rs) - radius * radius, d = b * b - c;
    if (d > 0) {
        float t = -b - sqrt(d);
        if (t > 0 && t < hit.t) {
            hit.t = t;
            hit.hits = 1;
            hit.p = from + t * to;
            hit.n = (hit.p - center) * (1 / radius);
        }
    }
}
static void hit_plane(Hit &hit, vec from, vec to, uniform float height) {
    if (abs(to.y) < 1e-6f) return;
    float t = (height - from.y) / to.y;
    if (t > 0 && t < hit.t) {
        hit.t = t;
        hit.hits = 1;
        hit.p = from + t * to;
        vec up = { 0, 1, 0 };
        hit.n = up;
    }
}
static float ambient(vec from, vec to, RNGState &state) {
    uniform float<3> center = { 0, 0, -3 };
    Hit hit;
    hit.t = 1e17f;
    hit.hits = 0;
    hit_sphere(hit, from, to, center, 1);
    hit_plane(hit, from, to, -1);
    float light = 0;
    cif (hit.hits) {
        int open = 0;
        for (uniform int s = 0; s < 8; ++s) {
            float u = frandom(&state), v = frandom(&state);
            float phi = 2 * PI * u, z = 1 - v, r = sqrt(max(0.f, 1 - z * z));
            vec d = { cos(phi) * r, sin(phi) * r, z };
            if (dot(d, hit.n) < 0) d = -d;
            Hit second;
            second.t = 1e17f;
            second.hits = 0;
            vec start = hit.p + 1e-3f * hit.n;
            hit_sphere(second, start, d, center, 1);
            hit_plane(second, start, d, -1);
            if (!second.hits) open++;
        }
        light = open / 8.f;
    }
    return light;
}
export uniform bool test_ambient() {
    uniform float image[16 * 12];
    RNGState state;
    seed_rng(&state, programIndex + 17);
    foreach (y = 0 ... 12, x = 0 ... 16) {
        vec from = { 0, 0, 0 }, to = { (x - 8) / 8.f, (6 - y) / 8.f, -1 };
        to = to * rsqrt(dot(to, to));
        image[y * 16 + x] = ambient(from, to, state);
    }
    uniform float sky = image[0], sphere = image[4 * 16 + 8], ground = image[11 * 16];
    uniform float all_light = 0;
    for (uniform int i = 0; i < 192; ++i) {
        if (!(image[i] >= 0 && image[i] <= 1)) return false;
        all_light += image[i];
    }
    return sky == 0 && sphere > 0.3f && ground > 0.5f && all_light > 40 && all_light < 140;
}

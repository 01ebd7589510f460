// The programs of `programs.impala` as ISPC's programmers write them.
static inline int rounds(float cr, uniform float ci, uniform int most) {
    float zr = cr, zi = ci;
    int i;
    for (i = 0; i < most; ++i) {
        if (zr * zr + zi * zi > 4) break;
        float r = zr * zr - zi * zi, m = 2 * zr * zi;
        zr = cr + r;
        zi = ci + m;
    }
    return i;
}
export void ispc_mandelbrot(uniform int width, uniform int height, uniform int most, uniform int out[]) {
    uniform float dx = 3.f / width, dy = 2.f / height;
    for (uniform int y = 0; y < height; ++y) {
        foreach (x = 0 ... width) out[y * width + x] = rounds(-2 + x * dx, -1 + y * dy, most);
    }
}

static inline float normal(float x) {
    float l = abs(x), k = 1 / (1 + 0.2316419f * l), k2 = k * k, k3 = k * k * k, k4 = k2 * k2, k5 = k3 * k2;
    float w = (0.31938153f * k - 0.356563782f * k2 + 1.781477937f * k3 - 1.821255978f * k4 + 1.330274429f * k5) * 0.39894228040f * exp(-l * l * 0.5f);
    if (x > 0) w = 1 - w;
    return w;
}
export void ispc_prices(uniform int n, uniform const float s[], uniform const float x[], uniform const float t[], uniform const float r[],
                        uniform const float v[], uniform float out[]) {
    foreach (i = 0 ... n) {
        float root = v[i] * sqrt(t[i]);
        float d1 = (log(s[i] / x[i]) + (r[i] + v[i] * v[i] * 0.5f) * t[i]) / root;
        out[i] = s[i] * normal(d1) - x[i] * exp(-r[i] * t[i]) * normal(d1 - root);
    }
}

export void ispc_stencil(uniform int n, uniform const float in[], uniform float out[]) {
    foreach (z = 2 ... n - 2, y = 2 ... n - 2, x = 2 ... n - 2) {
        int at = (z * n + y) * n + x;
#define AROUND(by) (in[at - (by)] + in[at + (by)])
        out[at] = 0.5f * in[at] + 0.0625f * (AROUND(1) + AROUND(n) + AROUND(n * n)) + 0.015625f * (AROUND(2) + AROUND(2 * n) + AROUND(2 * n * n));
    }
}

static inline float sphere(float t, uniform float cx, uniform float cz, float ox, float oy, float oz, float dx, float dy, float dz) {
    float x = ox - cx, z = oz - cz;
    float b = x * dx + oy * dy + z * dz, c = x * x + oy * oy + z * z - 0.25f, d = b * b - c;
    if (d > 0) {
        float near = -b - sqrt(d);
        if (near > 0 && near < t) t = near;
    }
    return t;
}
static inline float nearest(float ox, float oy, float oz, float dx, float dy, float dz) {
    float t = 1e17f;
    t = sphere(t, -2, -3.5f, ox, oy, oz, dx, dy, dz);
    t = sphere(t, -0.5f, -3, ox, oy, oz, dx, dy, dz);
    t = sphere(t, 1, -2.2f, ox, oy, oz, dx, dy, dz);
    if (abs(dy) > 1e-9f) {
        float near = (-0.5f - oy) / dy;
        if (near > 0 && near < t) t = near;
    }
    return t;
}
static inline float light(float px, float py, unsigned int seed) {
    float length = sqrt(px * px + py * py + 1), dx = px / length, dy = py / length, dz = -1 / length;
    float t = nearest(0, 0, 0, dx, dy, dz);
    if (t >= 1e17f) return 0;
    float x = t * dx, y = t * dy, z = t * dz, nx = 0, ny = 1, nz = 0;
    for (uniform int i = 0; i < 3; ++i) {
        uniform float cx = i == 0 ? -2 : i == 1 ? -0.5f : 1, cz = i == 0 ? -3.5f : i == 1 ? -3 : -2.2f;
        float ax = x - cx, az = z - cz;
        if (ax * ax + y * y + az * az < 0.2501f) {
            nx = 2 * ax;
            ny = 2 * y;
            nz = 2 * az;
        }
    }
    float ux = nz, uy = 0, uz = -nx;
    if (abs(nx) < 0.6f) {
        ux = 0;
        uy = -nz;
        uz = ny;
    }
    length = sqrt(ux * ux + uy * uy + uz * uz);
    ux /= length;
    uy /= length;
    uz /= length;
    float vx = ny * uz - nz * uy, vy = nz * ux - nx * uz, vz = nx * uy - ny * ux;
    x += 1e-3f * nx;
    y += 1e-3f * ny;
    z += 1e-3f * nz;
    int n_dark = 0;
    for (uniform int i = 0; i < 64; ++i) {
        seed = seed * 1664525u + 1013904223u;
        float theta = sqrt((seed >> 8) * 0x1p-24f);
        seed = seed * 1664525u + 1013904223u;
        float phi = 6.2831853f * ((seed >> 8) * 0x1p-24f);
        float a = cos(phi) * theta, b = sin(phi) * theta, c = sqrt(1 - theta * theta);
        if (nearest(x, y, z, a * ux + b * vx + c * nx, a * uy + b * vy + c * ny, a * uz + b * vz + c * nz) < 1e17f) ++n_dark;
    }
    return (64 - n_dark) / 64.f;
}
export void ispc_occlusion(uniform int width, uniform float out[]) {
    foreach (y = 0 ... width, x = 0 ... width) {
        out[y * width + x] = light((x - width / 2) / (width / 2.f), (width / 2 - y) / (width / 2.f), (unsigned int)(y * width + x));
    }
}

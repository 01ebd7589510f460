// A stencil of third order in space, bodies that attract each other, a ray through a volume.
export void stencil(uniform int n, uniform const float coef[4], uniform const float vsq[], uniform const float vin[], uniform float out[]) {
    foreach (y = 3 ... n - 3, x = 3 ... n - 3) {
        int index = y * n + x;
#define AT(dx, dy) vin[index + (dx) + (dy) * n]
        float div = coef[0] * AT(0, 0);
        for (uniform int k = 1; k < 4; ++k) div += coef[k] * (AT(k, 0) + AT(-k, 0) + AT(0, k) + AT(0, -k));
        out[index] = 2 * AT(0, 0) - out[index] + vsq[index] * div;
    }
}
export uniform bool test_stencil() {
    uniform float a[17 * 17], b[17 * 17], v[17 * 17], coef[4] = { .5f, -.25f, .125f, -.0625f };
    foreach (i = 0 ... 289) {
        a[i] = (i * 7) % 11;
        b[i] = i % 5;
        v[i] = 0.5f;
    }
    stencil(17, coef, v, a, b);
    for (uniform int y = 0; y < 17; ++y) {
        for (uniform int x = 0; x < 17; ++x) {
            uniform int at = y * 17 + x;
            uniform float expected = at % 5;
            if (x >= 3 && x < 14 && y >= 3 && y < 14) {
                uniform float div = coef[0] * a[at];
                for (uniform int k = 1; k < 4; ++k) div += coef[k] * (a[at + k] + a[at - k] + a[at + 17 * k] + a[at - 17 * k]);
                expected = 2 * a[at] - expected + 0.5f * div;
            }
            if (abs(b[at] - expected) > 1e-4f) return false;
        }
    }
    return true;
}

struct Body {
    float x, y, z, mass;
};
struct Force {
    float x, y, z;
};
export void attract(uniform Body bodies[], uniform Force forces[], uniform int n) {
    foreach (i = 0 ... n) {
        Body b = bodies[i];
        Force f = { 0, 0, 0 };
        for (uniform int k = 0; k < n; ++k) {
            float dx = bodies[k].x - b.x, dy = bodies[k].y - b.y, dz = bodies[k].z - b.z;
            float square = dx * dx + dy * dy + dz * dz + 0.01f, inverse = 1 / sqrt(square);
            float s = bodies[k].mass * inverse * inverse * inverse;
            f.x += s * dx;
            f.y += s * dy;
            f.z += s * dz;
        }
        forces[i] = f;
    }
}
export uniform bool test_bodies() {
    uniform Body bodies[11];
    uniform Force forces[11];
    for (uniform int i = 0; i < 11; ++i) {
        bodies[i].x = i;
        bodies[i].y = (i * 3) % 5;
        bodies[i].z = (i * 5) % 7;
        bodies[i].mass = 1 + i % 2;
    }
    attract(bodies, forces, 11);
    for (uniform int i = 0; i < 11; ++i) {
        uniform float fx = 0;
        for (uniform int k = 0; k < 11; ++k) {
            uniform float dx = bodies[k].x - bodies[i].x, dy = bodies[k].y - bodies[i].y, dz = bodies[k].z - bodies[i].z;
            uniform float square = dx * dx + dy * dy + dz * dz + 0.01f, inverse = 1 / sqrt(square);
            fx += bodies[k].mass * inverse * inverse * inverse * dx;
        }
        if (abs(fx - forces[i].x) > 1e-4f) return false;
    }
    return true;
}

// Rays march through a volume until it is opaque; lanes stop one by one.
struct Ray {
    float<3> from, to;
};
static float density(uniform const float volume[], float<3> at) {
    if (at.x < 0 || at.x > 6.99f || at.y < 0 || at.y > 6.99f || at.z < 0 || at.z > 6.99f) return 0;
    int x = (int)at.x, y = (int)at.y, z = (int)at.z;
    float f = at.x - x;
    int index = (z * 8 + y) * 8 + x;
    return (1 - f) * volume[index] + f * volume[index + 1];
}
static float through(uniform const float volume[], Ray ray) {
    float passed = 1;
    for (uniform int step = 0; step < 40; ++step) {
        float<3> at = ray.from + 0.25f * step * ray.to;
        passed *= 1 - 0.25f * density(volume, at);
        if (passed < 0.02f) return 0;
    }
    return passed;
}
export uniform bool test_volume() {
    uniform float volume[512];
    foreach (i = 0 ... 512) volume[i] = ((i * 37) % 64) / 64.f;
    uniform float image[10];
    foreach (i = 0 ... 10) {
        Ray ray = { { 0.3f * i, 2, 0 }, { 0.2f, 0.1f, 1 } };
        image[i] = through(volume, ray);
    }
    for (uniform int i = 0; i < 10; ++i) {
        uniform float passed = 1;
        for (uniform int step = 0; step < 40 && passed > 0; ++step) {
            uniform float x = 0.3f * i + 0.25f * step * 0.2f, y = 2 + 0.25f * step * 0.1f, z = 0.25f * step;
            if (!(x < 0 || x > 6.99f || y > 6.99f || z > 6.99f)) {
                uniform int at = ((uniform int)z * 8 + (uniform int)y) * 8 + (uniform int)x;
                uniform float f = x - (uniform int)x;
                passed *= 1 - 0.25f * ((1 - f) * volume[at] + f * volume[at + 1]);
            }
            if (passed < 0.02f) passed = 0;
        }
        if (abs(passed - image[i]) > 1e-4f) return false;
    }
    return true;
}

// A renderer of a cloud in a box: rays march through densities, and at each step a second ray marches to the light. Each lane has a pixel; the same code without
// lanes is what it is compared with.
#define STEP 0.1f
struct Ray {
    float<3> from, to;
};
#define CODE(RATE)                                                                                                     \
    static inline RATE float dot(RATE float<3> a, RATE float<3> b) { return a.x * b.x + a.y * b.y + a.z * b.z; }       \
    static RATE bool meets_box(RATE Ray ray, RATE float &near, RATE float &far) {                                      \
        RATE float t0 = 0, t1 = 1e6f;                                                                                  \
        RATE float<3> first = (-1 - ray.from) / ray.to, second = (1 - ray.from) / ray.to;                              \
        RATE float<3> low = min(first, second), high = max(first, second);                                             \
        near = max(max(low.x, low.y), max(low.z, t0));                                                                 \
        far = min(min(high.x, high.y), min(high.z, t1));                                                               \
        return near < far;                                                                                             \
    }                                                                                                                  \
    static inline RATE float cell(uniform const float cells[], RATE int x, RATE int y, RATE int z) {                   \
        return cells[(clamp(z, 0, 3) * 4 + clamp(y, 0, 3)) * 4 + clamp(x, 0, 3)];                                      \
    }                                                                                                                  \
    static RATE float density(uniform const float cells[], RATE float<3> at) {                                         \
        RATE float<3> scaled = (at + 1) * 2 - 0.5f, low = floor(scaled), f = scaled - low;                             \
        RATE int x = (int)low.x, y = (int)low.y, z = (int)low.z;                                                       \
        RATE float near = (1 - f.y) * ((1 - f.x) * cell(cells, x, y, z) + f.x * cell(cells, x + 1, y, z))              \
            + f.y * ((1 - f.x) * cell(cells, x, y + 1, z) + f.x * cell(cells, x + 1, y + 1, z));                       \
        RATE float far = (1 - f.y) * ((1 - f.x) * cell(cells, x, y, z + 1) + f.x * cell(cells, x + 1, y, z + 1))       \
            + f.y * ((1 - f.x) * cell(cells, x, y + 1, z + 1) + f.x * cell(cells, x + 1, y + 1, z + 1));               \
        return (1 - f.z) * near + f.z * far;                                                                           \
    }                                                                                                                  \
    static RATE float to_light(uniform const float cells[], RATE float<3> at) {                                        \
        RATE Ray ray;                                                                                                  \
        ray.from = at;                                                                                                 \
        ray.to.x = 0.5f;                                                                                               \
        ray.to.y = 2.f;                                                                                                \
        ray.to.z = -1.f;                                                                                               \
        ray.to -= at;                                                                                                  \
        RATE float near, far, depth = 0;                                                                               \
        if (!meets_box(ray, near, far)) return 1;                                                                      \
        for (RATE float t = near + 0.5f * STEP; t < far; t += STEP) depth += density(cells, ray.from + t * ray.to);    \
        return exp(-depth * STEP);                                                                                     \
    }                                                                                                                  \
    static RATE float march(uniform const float cells[], RATE float px, RATE float py) {                               \
        RATE Ray ray = { { 0.1f, 0.2f, -4 }, { px, py, 1 } };                                                          \
        ray.to *= rsqrt(dot(ray.to, ray.to));                                                                          \
        RATE float near, far, light = 0, depth = 0;                                                                    \
        if (!meets_box(ray, near, far)) return 0;                                                                      \
        RATE float t = near;                                                                                           \
        while (t < far) {                                                                                              \
            RATE float<3> at = ray.from + t * ray.to;                                                                  \
            RATE float here = density(cells, at);                                                                      \
            depth += here * STEP;                                                                                      \
            RATE float passed = exp(-depth);                                                                           \
            if (passed < 0.05f) break;                                                                                 \
            light += passed * here * to_light(cells, at) * STEP;                                                       \
            t += STEP;                                                                                                 \
        }                                                                                                              \
        return pow(light, 1 / 2.2f);                                                                                   \
    }
CODE(uniform)
CODE(varying)
task void rows(uniform const float cells[], uniform float image[], uniform int width) {
    foreach (x = 0 ... width) {
        image[taskIndex * width + x] = march(cells, (x - 0.5f * width) / (1.5f * width), (taskIndex - 2.f) / 8);
    }
}
export uniform bool test_volume() {
    uniform float cells[64], image[5 * 9];
    for (uniform int i = 0; i < 64; ++i) cells[i] = (i * 37 % 16) / 8.f;
    launch[5] rows(cells, image, 9);
    sync;
    uniform float sum = 0;
    for (uniform int y = 0; y < 5; ++y) {
        for (uniform int x = 0; x < 9; ++x) {
            uniform float found = image[y * 9 + x], expected = march(cells, (x - 4.5f) / 13.5f, (y - 2.f) / 8);
            if (abs(found - expected) > 1e-4f) return false;
            sum += found;
        }
    }
    return sum > 5;
}

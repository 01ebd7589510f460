// Deferred shading: a picture whose depths, normals and colors are known is lit by many lights. Of each tile, its depths say which lights can reach it; then its
// pixels are lit by those. The result is that of all lights at each pixel.
#define WIDTH 24
#define HEIGHT 16
#define TILE 8
#define MAX_LIGHTS 40
struct Pixels {
    uniform float depth[WIDTH * HEIGHT];
    // Halves, and bytes for fractions of 1.
    uniform unsigned int16 nx[WIDTH * HEIGHT], ny[WIDTH * HEIGHT];
    uniform unsigned int8 albedo[WIDTH * HEIGHT];
};
struct Lights {
    uniform float x[MAX_LIGHTS], y[MAX_LIGHTS], z[MAX_LIGHTS], reach[MAX_LIGHTS], power[MAX_LIGHTS];
};
static inline float square(float x) { return x * x; }
static inline uniform float square(uniform float x) { return x * x; }
// Light that reaches pixels from one light.
static float lit(uniform const Pixels &pixels, uniform const Lights &lights, int at, float px, float py, uniform int l) {
    float depth = pixels.depth[at];
    float nx = half_to_float(pixels.nx[at]), ny = half_to_float(pixels.ny[at]);
    float nz = -sqrt(max(0.f, 1 - nx * nx - ny * ny));
    float dx = lights.x[l] - px * depth, dy = lights.y[l] - py * depth, dz = lights.z[l] - depth;
    float distance2 = dx * dx + dy * dy + dz * dz;
    float found = 0;
    cif (distance2 < square(lights.reach[l])) {
        float distance = sqrt(distance2);
        float facing = (nx * dx + ny * dy + nz * dz) * rcp(distance);
        if (facing > 0) found = lights.power[l] * facing * (1 - distance / lights.reach[l]) * (pixels.albedo[at] / 255.f);
    }
    return found;
}
static inline float left_of(float x) { return (x + 0.5f) / WIDTH - 0.5f; }
static inline uniform float left_of(uniform float x) { return (x + 0.5f) / WIDTH - 0.5f; }
// The numbers of the lights that may reach a box of depths; each lane looks at one.
static uniform int chosen(uniform const Lights &lights, uniform int n, uniform float least[3], uniform float most[3], uniform int numbers[]) {
    uniform int count = 0;
    foreach (l = 0 ... n) {
        float x = lights.x[l], y = lights.y[l], z = lights.z[l];
        float dx = max(max(least[0] - x, x - most[0]), 0.f), dy = max(max(least[1] - y, y - most[1]), 0.f);
        float dz = max(max(least[2] - z, z - most[2]), 0.f);
        if (dx * dx + dy * dy + dz * dz < square(lights.reach[l])) count += packed_store_active(&numbers[count], (int)l);
    }
    return count;
}
task void shade_tile(uniform const Pixels * uniform pixels, uniform const Lights * uniform lights, uniform int n, uniform unsigned int8 image[],
                     uniform int counts[]) {
    uniform int x0 = taskIndex0 * TILE, y0 = taskIndex1 * TILE, x1 = min(x0 + TILE, WIDTH), y1 = min(y0 + TILE, HEIGHT);
    float nearest = 1e30f, farthest = 0;
    foreach_tiled (y = y0 ... y1, x = x0 ... x1) {
        float depth = pixels->depth[y * WIDTH + x];
        nearest = min(nearest, depth);
        farthest = max(farthest, depth);
    }
    uniform float near = reduce_min(nearest), far = reduce_max(farthest);
    // A box around what the tile shows.
    uniform float left = left_of((uniform float)x0), right = left_of((uniform float)x1), up = left_of((uniform float)y0), down = left_of((uniform float)y1);
    uniform float least[3] = { min(left * near, left * far), min(up * near, up * far), near };
    uniform float most[3] = { max(right * near, right * far), max(down * near, down * far), far };
    uniform int numbers[MAX_LIGHTS];
    uniform int count = chosen(*lights, n, least, most, numbers);
    counts[taskIndex] = count;
    foreach (y = y0 ... y1, x = x0 ... x1) {
        float sum = 0;
        for (uniform int k = 0; k < count; ++k) sum += lit(*pixels, *lights, y * WIDTH + x, left_of((float)x), left_of((float)y), numbers[k]);
        image[y * WIDTH + x] = (unsigned int8)float_to_srgb8(sum);
    }
}
static uniform Pixels pixels;
static uniform Lights lights;
export uniform bool test_deferred() {
    foreach (i = 0 ... WIDTH * HEIGHT) {
        pixels.depth[i] = 2 + (i % 7) * 0.1f + (i / WIDTH) * 0.05f;
        pixels.nx[i] = float_to_half(((i * 5) % 9 - 4) / 8.f);
        pixels.ny[i] = float_to_half(((i * 3) % 9 - 4) / 8.f);
        pixels.albedo[i] = 100 + i % 100;
    }
    for (uniform int l = 0; l < MAX_LIGHTS; ++l) {
        lights.x[l] = (l % 8 - 3.5f) / 4;
        lights.y[l] = (l / 8 - 2.f) / 3;
        lights.z[l] = 2 + (l % 3) * 0.2f;
        lights.reach[l] = 0.3f + (l % 4) * 0.1f;
        lights.power[l] = 0.5f + (l % 5) * 0.2f;
    }
    uniform unsigned int8 image[WIDTH * HEIGHT];
    uniform int counts[6];
    launch[WIDTH / TILE, HEIGHT / TILE] shade_tile(&pixels, &lights, MAX_LIGHTS, image, counts);
    sync;
    uniform int wrong = 0, bright = 0, looked_at = 0;
    for (uniform int t = 0; t < 6; ++t) looked_at += counts[t];
    foreach (y = 0 ... HEIGHT, x = 0 ... WIDTH) {
        float sum = 0;
        for (uniform int l = 0; l < MAX_LIGHTS; ++l) sum += lit(pixels, lights, y * WIDTH + x, left_of((float)x), left_of((float)y), l);
        int found = image[y * WIDTH + x], expected = float_to_srgb8(sum);
        wrong += popcnt(abs(found - expected) > 1);
        bright += popcnt(found > 60);
    }
    return wrong == 0 && bright > 100 && looked_at < 6 * MAX_LIGHTS;
}

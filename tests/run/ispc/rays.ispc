// A tracer of rays: each lane walks through a tree of boxes with a stack of its own; what it finds is what a look at all spheres finds.
#define N 16
#define NONE -1
struct Sphere {
    float x, y, z, radius;
};
// Node `k` has the children 2k and 2k + 1; those from N on are spheres.
struct Tree {
    uniform float<3> low[2 * N], high[2 * N];
    uniform Sphere spheres[N];
};
struct Ray {
    float<3> from, to;
};
#define CODE(RATE)                                                                                                           \
    static inline RATE bool meets(uniform const Tree &tree, RATE int node, const RATE Ray &ray, RATE float most) {           \
        RATE float near = 0, far = most;                                                                                     \
        RATE float<3> low = tree.low[node], high = tree.high[node];                                                          \
        RATE float<3> a = (low - ray.from) / ray.to, b = (high - ray.from) / ray.to;                                         \
        RATE float<3> first = min(a, b), last = max(a, b);                                                                   \
        return max(max(first.x, first.y), max(first.z, near)) <= min(min(last.x, last.y), min(last.z, far));                 \
    }                                                                                                                        \
    static inline RATE float distance(uniform const Tree &tree, RATE int at, const RATE Ray &ray) {                          \
        RATE Sphere s = tree.spheres[at];                                                                                    \
        RATE float x = ray.from.x - s.x, y = ray.from.y - s.y, z = ray.from.z - s.z;                                         \
        RATE float b = x * ray.to.x + y * ray.to.y + z * ray.to.z, d = b * b - (x * x + y * y + z * z - s.radius * s.radius); \
        if (d < 0) return 1e30f;                                                                                             \
        RATE float t = -b - sqrt(d);                                                                                         \
        return t > 0 ? t : 1e30f;                                                                                            \
    }                                                                                                                        \
    static RATE Ray ray_at(RATE float x, RATE float y) {                                                                     \
        RATE Ray ray = { { 0.1f, 0.2f, -9 }, { x, y, 1 } };                                                                  \
        ray.to *= rsqrt(x * x + y * y + 1);                                                                                  \
        return ray;                                                                                                          \
    }
CODE(uniform)
CODE(varying)
static int traced(uniform const Tree &tree, const Ray &ray) {
    int stack[8], top = 1, found = NONE;
    float least = 1e29f;
    stack[0] = 1;
    while (top > 0) {
        int node = stack[--top];
        if (node >= N) {
            float t = distance(tree, node - N, ray);
            if (t < least) {
                least = t;
                found = node - N;
            }
            continue;
        }
        cif (!meets(tree, node, ray, least)) continue;
        stack[top++] = 2 * node + 1;
        stack[top++] = 2 * node;
    }
    return found;
}
static uniform Tree tree;
export uniform bool test_rays() {
    for (uniform int i = 0; i < N; ++i) {
        uniform Sphere s = { i / 4 * 2 - 3, i % 4 * 2 - 3 + 0.1f * i, i * 7 % 5 - 2, 0.5f + i % 3 * 0.2f };
        uniform float<3> middle = { s.x, s.y, s.z };
        tree.spheres[i] = s;
        tree.low[N + i] = middle - s.radius;
        tree.high[N + i] = middle + s.radius;
    }
    for (uniform int node = N - 1; node > 0; --node) {
        tree.low[node] = min(tree.low[2 * node], tree.low[2 * node + 1]);
        tree.high[node] = max(tree.high[2 * node], tree.high[2 * node + 1]);
    }
    uniform int image[10 * 17];
    foreach (y = 0 ... 10, x = 0 ... 17) image[y * 17 + x] = traced(tree, ray_at((x - 7.6f) / 18, (y - 4.6f) / 10));
    uniform int hits = 0;
    for (uniform int i = 0; i < 10 * 17; ++i) {
        uniform Ray ray = ray_at((i % 17 - 7.6f) / 18, (i / 17 - 4.6f) / 10);
        uniform int found = NONE;
        uniform float least = 1e29f;
        for (uniform int k = 0; k < N; ++k) {
            uniform float t = distance(tree, k, ray);
            if (t < least) {
                least = t;
                found = k;
            }
        }
        if (image[i] != found) return false;
        hits += found != NONE;
    }
    return hits > 40 && hits < 150;
}

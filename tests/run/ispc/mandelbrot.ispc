// The Mandelbrot set: rounds until a point leaves a circle, each pixel by itself; by gangs, by tasks of rows, and one pixel after the other.
static inline int rounds(float cx, float cy, uniform int most) {
    float x = cx, y = cy;
    int n;
    for (n = 0; n < most; ++n) {
        if (x * x + y * y > 4.f) break;
        float next = x * x - y * y + cx;
        y = 2.f * x * y + cy;
        x = next;
    }
    return n;
}
static uniform int rounds_of_one(uniform float cx, uniform float cy, uniform int most) {
    uniform float x = cx, y = cy;
    uniform int n;
    for (n = 0; n < most; ++n) {
        if (x * x + y * y > 4.f) break;
        uniform float next = x * x - y * y + cx;
        y = 2.f * x * y + cy;
        x = next;
    }
    return n;
}

export void mandelbrot(uniform float x0, uniform float y0, uniform float x1, uniform float y1, uniform int width, uniform int height,
                       uniform int most, uniform int output[]) {
    uniform float dx = (x1 - x0) / width, dy = (y1 - y0) / height;
    foreach (j = 0 ... height, i = 0 ... width) output[j * width + i] = rounds(x0 + i * dx, y0 + j * dy, most);
}
task void rows(uniform float x0, uniform float y0, uniform float dx, uniform float dy, uniform int width, uniform int height, uniform int span,
               uniform int most, uniform int output[]) {
    uniform int first = taskIndex * span, last = min(first + span, height);
    foreach (j = first ... last, i = 0 ... width) output[j * width + i] = rounds(x0 + i * dx, y0 + j * dy, most);
}
export void mandelbrot_tasks(uniform float x0, uniform float y0, uniform float x1, uniform float y1, uniform int width, uniform int height,
                             uniform int most, uniform int output[]) {
    uniform float dx = (x1 - x0) / width, dy = (y1 - y0) / height;
    launch[(height + 2) / 3] rows(x0, y0, dx, dy, width, height, 3, most, output);
}

export uniform bool test_mandelbrot() {
    uniform int a[21 * 14], b[21 * 14];
    mandelbrot(-2, -1, 1, 1, 21, 14, 40, a);
    mandelbrot_tasks(-2, -1, 1, 1, 21, 14, 40, b);
    uniform float dx = 3.f / 21, dy = 2.f / 14;
    uniform int inside = 0;
    for (uniform int j = 0; j < 14; ++j) {
        for (uniform int i = 0; i < 21; ++i) {
            uniform int n = rounds_of_one(-2 + i * dx, -1 + j * dy, 40);
            if (a[j * 21 + i] != n || b[j * 21 + i] != n) return false;
            inside += n == 40;
        }
    }
    return inside > 30 && inside < 150;
}

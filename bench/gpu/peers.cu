// The kernels of kernels.impala, as one writes them in CUDA C++. measure.c runs both.
#include <cmath>

extern "C" __global__ __launch_bounds__(256) void theirs_copy(int n, float *__restrict__ to, const float *__restrict__ from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

extern "C" __global__ __launch_bounds__(256) void theirs_saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ __launch_bounds__(128) void theirs_blur(int w, int h, float *__restrict__ to, const float *__restrict__ from) {
    int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 4 + threadIdx.y + 1;
    if (x >= w - 1 || y >= h - 1) return;
    float sum = 0;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++)
#pragma unroll
        for (int dx = -1; dx <= 1; dx++) sum += from[(y + dy) * w + x + dx];
    to[y * w + x] = sum * (1.0f / 9.0f);
}

extern "C" __global__ __launch_bounds__(128) void theirs_gauss(int w, int h, float *__restrict__ to, const float *__restrict__ from) {
    constexpr float weights[] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
    int x = blockIdx.x * 32 + threadIdx.x + 2, y = blockIdx.y * 4 + threadIdx.y + 2;
    if (x >= w - 2 || y >= h - 2) return;
    float sum = 0;
#pragma unroll
    for (int dy = -2; dy <= 2; dy++)
#pragma unroll
        for (int dx = -2; dx <= 2; dx++) sum += weights[dy + 2] * weights[dx + 2] * from[(y + dy) * w + x + dx];
    to[y * w + x] = sum;
}

extern "C" __global__ __launch_bounds__(128) void theirs_mandelbrot(int w, int h, int limit, int *__restrict__ to) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    if (x >= w || y >= h) return;
    float cx = (float)x / w * 3 - 2, cy = (float)y / h * 2 - 1, zx = 0, zy = 0;
    int n = 0;
    while (n < limit && zx * zx + zy * zy < 4) {
        float next = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = next;
        n++;
    }
    to[y * w + x] = n;
}

__device__ inline float phi(float x) { return 0.5f * (1 + erff(x * 0.70710678f)); }
extern "C" __global__ __launch_bounds__(256) void theirs_black_scholes(int n, const float *__restrict__ spot, const float *__restrict__ strike,
                                                                       const float *__restrict__ years, float *__restrict__ call,
                                                                       float *__restrict__ put) {
    constexpr float rate = 0.02f, volatility = 0.3f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]);
    float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float d2 = d1 - volatility * root, discounted = strike[i] * expf(-rate * years[i]);
    call[i] = spot[i] * phi(d1) - discounted * phi(d2);
    put[i] = discounted * phi(-d2) - spot[i] * phi(-d1);
}

extern "C" __global__ __launch_bounds__(256) void theirs_nbody(int n, const float4 *__restrict__ bodies, float4 *__restrict__ forces) {
    __shared__ float4 near[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 own = bodies[i];
    float fx = 0, fy = 0, fz = 0;
    for (int start = 0; start < n; start += 256) {
        near[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 256; k++) {
            float4 other = near[k];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float scale = other.w * inverse * inverse * inverse;
            fx += dx * scale;
            fy += dy * scale;
            fz += dz * scale;
        }
        __syncthreads();
    }
    if (i < n) forces[i] = make_float4(fx, fy, fz, 0);
}

extern "C" __global__ __launch_bounds__(256) void theirs_sgemm(int n, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
    __shared__ float own_a[64 * 16], own_b[16 * 64];
    int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx, row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sums[16] = {};
    for (int k = 0; k < n; k += 16) {
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int at = part * 256 + thread;
            own_a[at % 16 * 64 + at / 16] = a[(row + at / 16) * n + k + at % 16];
            own_b[at] = b[(k + at / 64) * n + column + at % 64];
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < 16; step++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sums[i * 4 + j] += own_a[step * 64 + ty * 4 + i] * own_b[step * 64 + tx * 4 + j];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) c[(row + ty * 4 + i) * n + column + tx * 4 + j] = sums[i * 4 + j];
}

// The filters of filters.impala: tiles of 32 by 16 pixels, four of a column for each thread; the border is that of the nearest pixel.
__device__ inline int inside(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ __launch_bounds__(128) void theirs_image_gauss(int w, int h, float *__restrict__ to, const float *__restrict__ from) {
    __shared__ float rows[20][32];
    int x = blockIdx.x * 32 + threadIdx.x, top = blockIdx.y * 16;
#pragma unroll
    for (int j = 0; j < 20; j += 4) {
        const float *row = from + (size_t)inside(top + j + threadIdx.y - 2, h) * w;
        rows[j + threadIdx.y][threadIdx.x] = 0.0625f * (row[inside(x - 2, w)] + row[inside(x + 2, w)]) +
                                             0.25f * (row[inside(x - 1, w)] + row[inside(x + 1, w)]) + 0.375f * row[inside(x, w)];
    }
    __syncthreads();
#pragma unroll
    for (int j = threadIdx.y; j < 16; j += 4)
        if (x < w && top + j < h)
            to[(size_t)(top + j) * w + x] = 0.0625f * (rows[j][threadIdx.x] + rows[j + 4][threadIdx.x]) +
                                            0.25f * (rows[j + 1][threadIdx.x] + rows[j + 3][threadIdx.x]) +
                                            0.375f * rows[j + 2][threadIdx.x];
}

extern "C" __global__ __launch_bounds__(128) void theirs_image_bilateral(int w, int h, float *__restrict__ to,
                                                                         const float *__restrict__ from) {
    __shared__ float near[20][36];
    int left = blockIdx.x * 32, top = blockIdx.y * 16;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 20 * 36; i += 128)
        near[i / 36][i % 36] = from[(size_t)inside(top + i / 36 - 2, h) * w + inside(left + i % 36 - 2, w)];
    __syncthreads();
    constexpr float of_place = -1.442695f / (2 * 1.5f * 1.5f), of_value = -1.442695f / (2 * 0.2f * 0.2f);
    int x = threadIdx.x;
    for (int y = threadIdx.y; y < 16; y += 4) {
        if (left + x >= w || top + y >= h) continue;
        float center = near[y + 2][x + 2], sum = 0, weights = 0;
#pragma unroll
        for (int j = 0; j < 5; j++)
#pragma unroll
            for (int i = 0; i < 5; i++) {
                float v = near[y + j][x + i], d = v - center;
                float weight = exp2f(d * d * of_value + ((i - 2) * (i - 2) + (j - 2) * (j - 2)) * of_place);
                weights += weight;
                sum += weight * v;
            }
        to[(size_t)(top + y) * w + left + x] = sum / weights;
    }
}

extern "C" __global__ __launch_bounds__(128) void theirs_image_harris(int w, int h, float *__restrict__ to, const float *__restrict__ from) {
    __shared__ float near[20][36], gx[18][34], gy[18][34];
    int left = blockIdx.x * 32, top = blockIdx.y * 16, thread = threadIdx.y * 32 + threadIdx.x;
    for (int i = thread; i < 20 * 36; i += 128)
        near[i / 36][i % 36] = from[(size_t)inside(top + i / 36 - 2, h) * w + inside(left + i % 36 - 2, w)];
    __syncthreads();
    // Differences outside of the image are those at its border.
    for (int i = thread; i < 18 * 34; i += 128) {
        int x = inside(left + i % 34 - 1, w) - left + 2, y = inside(top + i / 34 - 1, h) - top + 2;
        const float *a = &near[y - 1][x], *b = &near[y][x], *c = &near[y + 1][x];
        gx[i / 34][i % 34] = (a[1] - a[-1] + 2 * (b[1] - b[-1]) + c[1] - c[-1]) * (1 / 12.0f);
        gy[i / 34][i % 34] = (c[-1] + 2 * c[0] + c[1] - a[-1] - 2 * a[0] - a[1]) * (1 / 12.0f);
    }
    __syncthreads();
    int x = threadIdx.x;
    for (int y = threadIdx.y; y < 16; y += 4) {
        if (left + x >= w || top + y >= h) continue;
        float xx = 0, yy = 0, xy = 0;
#pragma unroll
        for (int j = 0; j < 3; j++)
#pragma unroll
            for (int i = 0; i < 3; i++) {
                float a = gx[y + j][x + i], b = gy[y + j][x + i];
                xx += a * a;
                yy += b * b;
                xy += a * b;
            }
        to[(size_t)(top + y) * w + left + x] = xx * yy - xy * xy - 0.04f * (xx + yy) * (xx + yy);
    }
}

__device__ inline void order(float &a, float &b) {
    float least = fminf(a, b);
    b = fmaxf(a, b);
    a = least;
}
extern "C" __global__ __launch_bounds__(128) void theirs_image_median(int w, int h, float *__restrict__ to, const float *__restrict__ from) {
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 4; k++) {
        int y = blockIdx.y * 16 + threadIdx.y + 4 * k;
        if (x >= w || y >= h) continue;
        float p[9];
#pragma unroll
        for (int j = 0; j < 3; j++)
#pragma unroll
            for (int i = 0; i < 3; i++) p[3 * j + i] = from[(size_t)inside(y + j - 1, h) * w + inside(x + i - 1, w)];
        // Nineteen exchanges (Paeth, Graphics Gems).
        order(p[1], p[2]); order(p[4], p[5]); order(p[7], p[8]); order(p[0], p[1]); order(p[3], p[4]); order(p[6], p[7]);
        order(p[1], p[2]); order(p[4], p[5]); order(p[7], p[8]); order(p[0], p[3]); order(p[5], p[8]); order(p[4], p[7]);
        order(p[3], p[6]); order(p[1], p[4]); order(p[2], p[5]); order(p[4], p[7]); order(p[4], p[2]); order(p[6], p[4]);
        order(p[4], p[2]);
        to[(size_t)y * w + x] = p[4];
    }
}

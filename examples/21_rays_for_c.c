/* The program of lesson 21: a scene of triangles, made and asked from C. */
#include "rays.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    /* A height field of 100 × 100 squares, flat but for one corner that is no number. */
    enum { N = 100, VERTICES = (N + 1) * (N + 1), TRIANGLES = 2 * N * N, RAYS = 2500 };
    static float vertices[3 * VERTICES];
    static int32_t indices[3 * TRIANGLES];
    for (int i = 0; i < VERTICES; i++) {
        vertices[3 * i] = i % (N + 1);
        vertices[3 * i + 1] = i / (N + 1);
    }
    vertices[2] = NAN;
    for (int i = 0; i < N * N; i++) {
        int at = i / N * (N + 1) + i % N;
        int32_t square[6] = {at, at + 1, at + N + 1, at + 1, at + N + 2, at + N + 1};
        for (int k = 0; k < 6; k++) indices[6 * i + k] = square[k];
    }

    struct Scene scene;
    printf("made: %d\n", rays_make(&scene, VERTICES, vertices, TRIANGLES, indices));
    static struct Ray rays[RAYS];
    static struct Hit hits[RAYS];
    static uint8_t occluded[RAYS];
    for (int i = 0; i < RAYS; i++) {
        /* At corners of squares; every tenth ray is too short. */
        rays[i] = (struct Ray){{2 * (i % 50) + 1, 2 * (i / 50) + 1, 3}, 0, {0, 0, -1}, i % 10 == 9 ? 2 : INFINITY};
    }
    rays[0] = (struct Ray){{0.25f, 0.25f, 3}, 0, {0, 0, -1}, INFINITY}; /* the triangle that is left out */
    rays[1].dir.x = NAN;
    rays[2].dir = (struct Vec3){0, 0, 0};
    rays_trace(&scene, RAYS, rays, hits);
    rays_occluded(&scene, RAYS, rays, occluded);
    int n = 0, n_occluded = 0, n_wrong = 0;
    for (int i = 0; i < RAYS; i++) {
        n += hits[i].prim >= 0;
        n_occluded += occluded[i];
        if (hits[i].prim >= 0 ? hits[i].t != 3 : hits[i].t != rays[i].tmax) n_wrong++;
    }
    printf("%d hits, %d occluded, %d wrong; first three: %d %d %d\n", n, n_occluded, n_wrong, hits[0].prim, hits[1].prim, hits[2].prim);
    rays_trace(&scene, 0, NULL, NULL);
    rays_trace(&scene, -5, NULL, NULL);
    rays_free(&scene);

    /* What is wrong makes an empty scene. */
    int32_t beyond[3] = {0, 1, VERTICES}, negative[3] = {0, -1, 2};
    const int32_t *none = NULL;
    int faults[6];
    faults[0] = rays_make(&scene, VERTICES, vertices, 1, beyond), rays_free(&scene);
    faults[1] = rays_make(&scene, VERTICES, vertices, 1, negative), rays_free(&scene);
    faults[2] = rays_make(&scene, VERTICES, vertices, -1, indices), rays_free(&scene);
    faults[3] = rays_make(&scene, VERTICES, vertices, INT32_MAX, indices), rays_free(&scene);
    faults[4] = rays_make(&scene, VERTICES, vertices, 1, none), rays_free(&scene);
    faults[5] = rays_make(&scene, 0, NULL, 0, none);
    rays_trace(&scene, 3, rays + 3, hits);
    for (int i = 0; i < 6; i++) printf("%d ", faults[i]);
    printf("and nothing is hit: %d\n", hits[2].prim);
    rays_free(&scene);
    return 0;
}

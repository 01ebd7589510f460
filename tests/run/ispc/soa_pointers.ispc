// Pointers to elements of `soa<n>` arrays: a block and the number of an element.
struct Inner {
    float v[2];
    int tag;
};
struct Point {
    float x, y;
    Inner in;
};
static uniform float sum_of(soa<8> Point * uniform p, uniform int n) {
    uniform float sum = 0;
    for (uniform int i = 0; i < n; ++i) sum += p[i].x;
    return sum;
}
static uniform float sum_between(const soa<8> Point * uniform from, const soa<8> Point * uniform to) {
    uniform float sum = 0;
    for (; from != to; ++from) sum += from->x;
    return sum;
}
export uniform float sum_of_blocks(soa<8> Point p[], uniform int n) {
    soa<8> Point * uniform end = p + n;
    return sum_between(p, end) + sum_of(p, n);
}
static void fill(soa<8> Point a[], uniform int n) {
    foreach (i = 0 ... n) {
        a[i].x = i;
        a[i].y = 2 * i;
        a[i].in.v[0] = 3 * i;
        a[i].in.v[1] = 4 * i;
        a[i].in.tag = i;
    }
}
export uniform bool test_walks() {
    soa<8> Point a[3];
    fill(a, 24);
    soa<8> Point * uniform p = &a[5], * uniform q = a;
    uniform bool fine = p->x == 5 && (*p).y == 10 && p[4].x == 9 && p[-2].in.tag == 3 && p - q == 5 && q < p && p >= &a[5] && p != q;
    p += 6;
    fine = fine && p->x == 11 && (p--)->x == 11 && p->x == 10 && (++q)->x == 1;
    q = NULL;
    fine = fine && q == NULL && !q && p;
    return fine && sum_of(&a[3], 4) == 18 && sum_of(a, 24) == 276 && sum_between(&a[2], &a[7]) == 20 && sum_of_blocks(a, 10) == 90;
}
export uniform bool test_lanes() {
    soa<8> Point a[9];
    fill(a, 72);
    // A pointer of each lane, one and the same, and one that is moved by each.
    soa<8> Point * p = &a[programIndex + 1], * q = a;
    soa<8> Point * uniform u = &a[3];
    q += programIndex;
    uniform bool fine = all(p->x == programIndex + 1) && all(q->y == 2 * programIndex) && all(p - q == 1) && all((u + programIndex)->x == programIndex + 3)
        && all(u[programIndex].in.v[1] == 4 * (programIndex + 3));
    if (programIndex & 1) p = &a[0];
    p->y = -1;
    fine = fine && a[0].y == -1 && a[1].y == -1 && a[2].y == 4 && all(p[2].x == (programIndex & 1 ? 2 : programIndex + 3));
    Point whole = *p;
    *q = whole;
    fine = fine && all(q->x == whole.x) && all((p == a) == ((programIndex & 1) == 1));
    int steps = 0;
    while (p < &a[66]) {
        ++p;
        ++steps;
    }
    return fine && all(steps == (programIndex & 1 ? 66 : 65 - programIndex));
}
// Parts of elements: structs are side by side, too; numbers have plain addresses.
export uniform bool test_parts() {
    soa<8> Point a[2];
    fill(a, 16);
    soa<8> Inner * uniform in = &a[9].in;
    in->v[1] = 100;
    uniform float * uniform x = &a[6].x;
    *x = 50;
    float * y = &a[programIndex & 15].y;
    *y += 1;
    float * v = &a[programIndex & 15].in.v[1];
    *v += 1000;
    soa<8> Inner * each = &a[programIndex & 15].in;
    each->tag += 7;
    return a[9].in.tag >= 9 && in->v[0] == 27 && a[6].x == 50 && a[1].y == 3 && a[0].in.v[1] == 1000 && a[1].in.tag == 8;
}
static soa<8> Point * uniform made(uniform int blocks) { return uniform new soa<8> Point[blocks]; }
struct Holder {
    soa<8> Point * uniform points;
    uniform int n;
};
export uniform bool test_memory() {
    soa<8> Point * uniform p = made(2);
    fill(p, 16);
    uniform Holder h = { p, 16 };
    soa<8> Point * uniform q = h.points;
    uniform float sum = sum_of(q + 2, 3) + h.points[4].x;
    delete p;
    return sum == 13;
}

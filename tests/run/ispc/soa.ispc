// `soa<n>`: arrays of structs whose fields lie side by side.
struct Inner {
    float v[2];
    int8 tag;
};
struct Point {
    float x, y;
    Inner in;
    float<3> n;
};
static uniform float sum_of(soa<8> Point * uniform p, uniform int n) {
    uniform float sum = 0;
    for (uniform int i = 0; i < n; ++i) sum += p[i].x;
    return sum;
}
export uniform bool test_elements() {
    soa<8> Point a[6];
    for (uniform int i = 0; i < 48; ++i) {
        a[i].x = i;
        a[i].y = 2 * i;
        a[i].in.v[0] = i + 0.5f;
        a[i].in.v[1] = -i;
        a[i].in.tag = i;
        a[i].n.x = 1;
        a[i].n.z = i;
    }
    foreach (i = 0 ... 48) {
        a[i].y += a[i].x;
        a[i].in.v[1] *= 2;
        a[i].n.yz = a[i].n.zx;
    }
    uniform bool fine = a[9].y == 27 && a[13].in.v[1] == -26 && a[13].in.v[0] == 13.5f && a[47].in.tag == 47 && sum_of(a, 48) == 1128;
    int at = (programIndex * 7) % 48;
    return fine && all(a[at].x == at) && all(a[at].in.v[1] == -2 * at) && a[5].n.y == 5 && a[5].n.z == 1;
}
// In memory, eight of a field come one behind the other.
export uniform bool test_layout() {
    struct Pair { float a; int b; };
    soa<8> Pair pairs[2];
    for (uniform int i = 0; i < 16; ++i) {
        pairs[i].a = i;
        pairs[i].b = 100 + i;
    }
    uniform float * uniform floats = (uniform float * uniform)pairs;
    uniform int * uniform ints = (uniform int * uniform)pairs;
    return sizeof(pairs) == 128 && floats[3] == 3 && ints[8] == 100 && ints[15] == 107 && floats[16] == 8 && ints[31] == 115;
}
export uniform bool test_whole_elements() {
    soa<4> Point a[4];
    foreach (i = 0 ... 16) {
        Point p = { i, 2 * i, { { 3 * i, 4 * i }, 1 }, { 5, 6, 7 } };
        a[i] = p;
    }
    uniform Point one = a[6];
    one.x = 100;
    a[7] = one;
    Point p = a[programIndex % 4];
    int k = programIndex % 2;
    float own = a[programIndex % 4].in.v[k];
    return one.y == 12 && one.in.v[1] == 24 && one.n.z == 7 && a[7].x == 100 && a[7].in.v[0] == 18 && all(p.in.v[0] == 3 * (programIndex % 4))
        && all(own == (3 + k) * (programIndex % 4));
}
export uniform bool test_new() {
    soa<8> Point * uniform p = uniform new soa<8> Point[2];
    foreach (i = 0 ... 16) p[i].x = i;
    uniform float last = p[15].x, sum = sum_of(p, 16);
    p->y = 3;
    uniform bool fine = last == 15 && sum == 120 && p[0].y == 3;
    delete p;
    return fine;
}

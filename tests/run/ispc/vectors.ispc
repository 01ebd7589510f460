// Short vectors.
float<3> cross(float<3> a, float<3> b) {
    float<3> c = { a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x };
    return c;
}
float dot(float<3> a, float<3> b) {
    float<3> p = a * b;
    return p.x + p.y + p.z;
}
export uniform bool test_vectors() {
    uniform float<3> up = { 0, 1, 0 };
    float<3> v = { programIndex, 1, 2 };
    float<3> c = cross(v, up);
    v.x += 1;
    v[2] = 5;
    float<3> w = 2 * v + 1;
    uniform int<4> n = { 1, 2, 3, 4 };
    uniform int<2> m = n.wx;
    uniform int sum = 0;
    for (uniform int i = 0; i < 4; ++i) sum += n[i];
    return all(c.x == -2) && all(c.z == programIndex) && all(v.r == programIndex + 1) && all(w.z == 11) && all(w.g == 3) && m.x == 4 && m.y == 1 && sum == 10
        && all(dot(v, up) == 1) && (-n).y == -2;
}
struct Ray { float<3> from, to; };
export uniform bool test_vectors_in_memory() {
    uniform float<3> a[10];
    for (uniform int i = 0; i < 10; ++i) { a[i].x = i; a[i].y = 2 * i; a[i].z = 3 * i; }
    float<3> v = a[programIndex % 10];
    uniform Ray r;
    r.from = a[3];
    r.to = 7;
    Ray many = r;
    if (programIndex % 2 == 0) many.to = v;
    float<3> sum = many.from + many.to;
    return all(v.z == 3 * (programIndex % 10)) && r.from.y == 6 && all(sum.x == 3 + (programIndex % 2 == 0 ? programIndex % 10 : 7));
}

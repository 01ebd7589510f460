// What has lanes does not become `uniform`.
uniform int f(int v, uniform float * uniform p) {
    uniform int n = v; //~ error[sierra-lanes]: found `varying int`, which has lanes, expected `uniform int`
    p[0] = v; //~ error[sierra-lanes]: found `varying int`, which has lanes, expected `uniform float`
    foreach (i = 0 ... 10) {
        if (i == 3) break; //~ error[c-syntax]: `break` stands in no loop that lanes may leave
    }
    float<3> a;
    float<2> b;
    a = a + b; //~ error[sierra-type]: `+` takes no `varying float<3>` and `varying float<2>`
    a.w = 1; //~ error[sierra-name]: `varying float<3>` has no field `w`
    return v; //~ error[sierra-lanes]: found `varying int`, which has lanes, expected `uniform int`
}

struct V { varying float x; };
soa<4> V a[2]; //~ error[sierra-lanes]: there is no `soa<4>` of `uniform V`
soa<8> float b[2]; //~ error[sierra-lanes]: there is no `soa<8>` of `uniform float`

struct V { varying float x; };
soa<3> V a[2]; //~ error[c-syntax]: found `3`, expected a power of two from 2 to 64

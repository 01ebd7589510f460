soa<8> struct P { float x; } p; //~ error[limitation]: `soa<n>` types are not supported yet

void f(uniform int n) { void * uniform p = alloca(n); } //~ error[limitation]: `alloca` of sizes that are no constants from 1 to 65536 are not supported yet

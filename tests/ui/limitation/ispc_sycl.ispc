extern "SYCL" int f(int a); //~ error[limitation]: functions in SYCL are not supported yet

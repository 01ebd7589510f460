template <typename T> T f(T a) { return a; }
template <> float f<int>(int a) { return 1; } //~ error[sierra-type]: no template `f` has these parameters and this result
template <> int f<int>(int a) { return 2; }
template <> int f<int>(int a) { return 3; } //~ error[sierra-name]: `f` is declared twice

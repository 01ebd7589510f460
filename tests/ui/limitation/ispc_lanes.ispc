struct Large { int a[1 << 20]; };
static uniform Large large;
void f() { Large all = large; } //~ error[limitation]: structs with long arrays in all lanes are not supported yet

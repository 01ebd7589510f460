void f() { again: goto again; } //~ error[limitation]: jumps to labels are not supported yet

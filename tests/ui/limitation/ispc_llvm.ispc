float f(float x) { return @llvm.sqrt(x); } //~ error[limitation]: LLVM's intrinsics are not supported yet

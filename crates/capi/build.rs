//! Says how the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        "-soname,libnyala.so",
        // What its crates export for programs of their own, as the runtime does, is not for C.
        "--exclude-libs,ALL",
        // The threads of `par` run its code until the process ends.
        "-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{argument}");
    }
}

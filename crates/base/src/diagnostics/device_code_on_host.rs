//! Code of the CPU calls a function that only a device has.
//!
//! Operations of a GPU, and functions that CUDA's compiler knows, work in kernels for such a device. A kernel that runs with
//! `--device host` is code of the CPU, too.
//!
//! ```text
//! extern "device" { fn "llvm.nvvm.cp.async.wait.all" wait_for_copies() -> (); }
//! extern fn f() -> () { wait_for_copies() }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern "device" {
//!     fn cuda(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
//!     fn __fdividef(f32, f32) -> f32;
//! }
//! extern fn f(a: &mut [f32]) -> () {
//!     for cuda(0, (1, 1, 1), (1, 1, 1)) { a(0) = __fdividef(a(0), 3f) }
//! }
//! ```

use crate::{Diagnostic, Span};

/// `name` is a function that only CUDA's compiler may know.
pub fn function(span: Span, name: &str) -> Diagnostic {
    let message = format!("code of the CPU calls `{name}`, a function of devices");
    Diagnostic::error("device-code-on-host", span, message)
        .hint("only CUDA's compiler may know it: call it in a kernel for `cuda`, and run that without `--device host`")
}

/// `symbol` is an operation of GPUs.
pub fn operation(span: Span, symbol: &str) -> Diagnostic {
    let message = format!("code of the CPU calls `{symbol}`, an operation of GPUs");
    Diagnostic::error("device-code-on-host", span, message)
        .hint("call it in a kernel for such a GPU, and run that without `--device host`")
}

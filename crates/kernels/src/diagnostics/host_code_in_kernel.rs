//! A kernel for a device runs code of the host.
//!
//! Functions of `extern "C"` are compiled for the host: a device cannot call them. The same is true of `asm` with instructions of
//! the host's processor.
//!
//! ```impala
//! extern "device" { fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
//! extern "C" { fn rand() -> i32; }
//! extern fn noise(a: &mut [i32]) -> () {
//!     for opencl(0, (1, 1, 1), (1, 1, 1)) { a(0) = rand() }
//! }
//! ```
//!
//! ## Instead
//!
//! Call it before the launch, or write it in Impala. Functions that devices have, such as `sin` and atomic operations, work there.
//!
//! ```impala
//! extern "device" { fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
//! extern "C" { fn rand() -> i32; }
//! extern fn noise(a: &mut [i32]) -> () {
//!     let n = rand();
//!     for opencl(0, (1, 1, 1), (1, 1, 1)) { a(0) = n }
//! }
//! ```

use nyala_base::{Diagnostic, Span};
use nyala_ir::callbacks::is_call_of_address;

/// A kernel for a platform calls a function of C; who reports it knows the place.
pub(crate) fn called(platform: &str, symbol: &str) -> Diagnostic {
    let what = match is_call_of_address(symbol) {
        true => "a function that C gives".to_string(),
        false => format!("the function `{symbol}`"),
    };
    let message = format!("a kernel for `{platform}` calls {what}, which is the host's");
    Diagnostic::error("host-code-in-kernel", Span::NONE, message)
        .hint("call it before or after the kernel, or write it in Impala")
}

/// A kernel for a platform has assembly that is not its own; who reports it knows the place.
pub(crate) fn assembly(platform: &str) -> Diagnostic {
    let message = format!("a kernel for `{platform}` has inline assembly of the host");
    Diagnostic::error("host-code-in-kernel", Span::NONE, message).hint("write it in Impala")
}

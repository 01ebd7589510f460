//! `bitcast` converts between types of different sizes.
//!
//! `bitcast[D, S](x)` reinterprets the bytes of `x`, which has type `S`, as a value of type `D`. Both types must have
//! the same number of bytes.
//!
//! ```impala
//! extern fn f(x: f32) -> i64 { bitcast[i64, f32](x) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern fn f(x: f32) -> i64 { bitcast[i32, f32](x) as i64 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, from: &str, to: &str) -> Diagnostic {
    let message = format!("`bitcast` from `{from}` to `{to}`, of different sizes");
    Diagnostic::error("bad-bitcast", span, message).hint("cast to a type of the same size, then convert it with `as`")
}

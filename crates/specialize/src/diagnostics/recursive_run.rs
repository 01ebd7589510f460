//! A call with `@` is inside of the recursion of the function that it calls.
//!
//! Partial evaluation runs a call with `@` until control is not known, and goes on where all paths meet again. So one
//! such call ends if the program does. If the remaining code contains this call again, with other arguments, that call
//! is run too, and so on: this may never end. This is a warning. (`000` section 3.3)
//!
//! ```impala
//! fn count(i: i32, n: i32) -> i32 { if i < n { @count(i + 1, n) } else { i } }
//! extern fn f(n: i32) -> i32 { count(n, n) }
//! ```
//!
//! ## Instead
//!
//! Mark only the call from outside:
//!
//! ```impala
//! fn count(i: i32, n: i32) -> i32 { if i < n { count(i + 1, n) } else { i } }
//! extern fn f(n: i32) -> i32 { @count(0, 3) + n }
//! ```

use nyala_base::{Diagnostic, Span};

/// The call at `span` of `name`, which leads back to this call through the functions `cycle`.
pub fn warning(span: Span, name: &str, declared: Span, cycle: &[String]) -> Diagnostic {
    let diagnostic =
        Diagnostic::warning("recursive-run", span, format!("`@` on a recursive call of `{name}`")).label(match cycle {
            [] => "each run may leave another one to do".into(),
            _ => format!("each run may leave another one to do: `{name}` leads here through {}", cycle.join(", ")),
        });
    diagnostic.other(declared, "this function").hint("leave out this `@`, and mark the call from outside the recursion")
}

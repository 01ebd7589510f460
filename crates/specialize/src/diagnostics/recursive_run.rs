//! A call by `@` within the recursion of the function that it calls.
//!
//! A call by `@` is evaluated until control is not known, and then goes on behind that; so one such call ends if the
//! program does. If what is left contains the same call by `@` again, with other arguments, that is run too, and so on:
//! this may never end. It is a warning. (`000` section 3.3)
//!
//! ```impala
//! fn count(i: i32, n: i32) -> i32 { if i < n { @count(i + 1, n) } else { i } }
//! extern fn f(n: i32) -> i32 { count(n, n) }
//! ```
//!
//! ## Instead
//!
//! Mark the call from outside only:
//!
//! ```impala
//! fn count(i: i32, n: i32) -> i32 { if i < n { count(i + 1, n) } else { i } }
//! extern fn f(n: i32) -> i32 { @count(0, 3) + n }
//! ```

use nyala_base::{Diagnostic, Span};

/// The call at `span` of `name`, which leads back to it over the functions `cycle`.
pub fn warning(span: Span, name: &str, declared: Span, cycle: &[String]) -> Diagnostic {
    let diagnostic =
        Diagnostic::warning("recursive-run", span, format!("`@` on a recursive call of `{name}`")).label(match cycle {
            [] => "each run may leave the next one to do".into(),
            _ => format!("each run may leave the next one to do: `{name}` leads here over {}", cycle.join(", ")),
        });
    diagnostic.other(declared, "this function").hint("leave out this `@`, and mark the call from outside the recursion")
}

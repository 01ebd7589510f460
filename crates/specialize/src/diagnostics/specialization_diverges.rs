//! Partial evaluation does not end, or not within its budget.
//!
//! A function with a filter is specialized at each call whose filter holds, and so are the calls in its body. If such a
//! recursion has no end that is known during compilation it would go on for ever. The compiler gives up when a budget is
//! spent, and shows the function unfolded most often lately and which of its parameters kept changing.
//!
//! ```impala
//! fn @count(n: i32, end: i32) -> i32 { if n == end { n } else { count(n + 1, end) } }
//! extern fn f(end: i32) -> i32 { count(0, end) }
//! ```
//!
//! ## Instead
//!
//! Let the filter ask for what ends the recursion:
//!
//! ```impala
//! fn @(?n & ?end) count(n: i32, end: i32) -> i32 { if n == end { n } else { count(n + 1, end) } }
//! extern fn f(end: i32) -> i32 { count(0, end) }
//! ```
//!
//! or hide the changing argument from specialization, `count($n + 1, end)`. If it does end, only late, `--pe-budget 10`
//! gives ten times the budget.

use nyala_base::{Diagnostic, Span};

/// The budget of `limit` things of the kind `what` is spent, on no function in particular.
pub fn budget(call: Span, limit: u64, what: &str) -> Diagnostic {
    let message = format!("partial evaluation exceeds its budget of {limit} {what}");
    Diagnostic::error("specialization-diverges", call, message).hint("`--pe-budget N` multiplies the budget")
}

/// The function `name`, declared at `declared`, is unfolded on and on: by `call`, which `own`, the program's own call, leads
/// to or is. `changing` are the parameters that differ between the last calls, and their values.
pub fn recursion(
    (own, call): (Span, Span),
    name: &str,
    declared: Span,
    (limit, what): (u64, &str),
    changing: &[(&str, String)],
) -> Diagnostic {
    let message = format!("specializing `{name}` does not end: its budget of {limit} {what} is spent");
    let again = "this call is specialized again and again";
    let mut diagnostic = Diagnostic::error("specialization-diverges", own, message);
    diagnostic = match own == call {
        true => diagnostic.label(again),
        false => diagnostic.label("this call leads there").other(call, again),
    };
    if !declared.is_none() {
        diagnostic = diagnostic.other(declared, "of this function");
    }
    for (name, values) in changing {
        diagnostic = diagnostic.hint(format!("over the last calls, `{name}` was {values}, …"));
    }
    match changing.first() {
        Some((name, _)) => diagnostic.hint(format!(
            "pass `${name}` to keep it unknown, or let the filter depend on what ends the recursion, as in `@(?{name})`"
        )),
        None => diagnostic.hint("let the filter depend on what ends the recursion, as in `@(?n)`"),
    }
}

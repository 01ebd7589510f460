//! Partial evaluation does not end, or not within its budget.
//!
//! A function with a filter is specialized at each call whose filter holds, and so are the calls in its body. If the
//! end of such a recursion is not known during compilation, specialization would go on forever. The compiler gives up
//! when a budget is spent. It shows the function that was unfolded most often in the end, and which of its parameters
//! kept changing.
//!
//! ```impala
//! fn @count(n: i32, end: i32) -> i32 { if n == end { n } else { count(n + 1, end) } }
//! extern fn f(end: i32) -> i32 { count(0, end) }
//! ```
//!
//! ## Instead
//!
//! Let the filter ask whether the values that end the recursion are known:
//!
//! ```impala
//! fn @(?n & ?end) count(n: i32, end: i32) -> i32 { if n == end { n } else { count(n + 1, end) } }
//! extern fn f(end: i32) -> i32 { count(0, end) }
//! ```
//!
//! or hide the changing argument from specialization, `count($n + 1, end)`. If it does end, only late, `--pe-budget 10`
//! gives ten times the budget.
//!
//! A filter before the name of a function specializes all parameters, also those that it does not mention. A filter
//! before a parameter specializes this one. Here `state` is known, so that there is one function for each state, and
//! `i` remains a variable:
//!
//! ```impala
//! static next = [0, 1, 1, 0];
//! fn scan(@(?state) state: i32, s: &[u8], i: i32) -> i32 {
//!     if s(i) == 0u8 { state } else if s(i) == 'a' { scan(next(state), s, i + 1) } else { scan(next(state + 2), s, i + 1) }
//! }
//! extern fn f(s: &[u8]) -> i32 { scan(0, s, 0) }
//! ```

use nyala_base::{Diagnostic, Span};

/// The budget of `limit` things of the kind `what` is spent, but not by one function in particular.
pub fn budget(call: Span, limit: u64, what: &str) -> Diagnostic {
    let message = format!("partial evaluation exceeds its budget of {limit} {what}");
    Diagnostic::error("specialization-diverges", call, message).hint("`--pe-budget N` multiplies the budget")
}

/// Parameters, by what can be done about them.
pub struct Advice<'a> {
    /// Parameters that differ between the last calls, with their values in these calls.
    pub changing: Vec<(&'a str, String)>,
    /// Numbers that are not known.
    pub unknown: Vec<&'a str>,
    /// A parameter that changes, but that the filter does not mention. It is specialized, because the filter is for all
    /// parameters.
    pub unasked: Option<&'a str>,
}

/// The function `name`, declared at `declared`, is unfolded again and again by `call`. `own` is the call in the program
/// itself that leads to `call`, or `call` itself.
pub fn recursion(
    (own, call): (Span, Span),
    name: &str,
    declared: Span,
    (limit, what): (u64, &str),
    advice: &Advice,
) -> Diagnostic {
    let message = format!("specializing `{name}` does not end: its budget of {limit} {what} is spent");
    let again = "this call is specialized again and again";
    let mut diagnostic = Diagnostic::error("specialization-diverges", own, message);
    diagnostic = match own == call {
        true => diagnostic.label(again),
        false => diagnostic.label("this call leads there").other(call, again),
    };
    if !declared.is_none() {
        diagnostic = diagnostic.other(declared, "this is the function");
    }
    for (name, values) in &advice.changing {
        diagnostic = diagnostic.hint(format!("over the last calls, `{name}` was {values}, …"));
    }
    if let Some(name) = advice.unasked {
        return diagnostic.hint(format!(
            "a filter before the name of a function specializes all parameters, `{name}` too: write it before the parameters that \
             it asks for, or pass `${name}` to keep it unknown"
        ));
    }
    let names = advice.changing.first().map(|(name, _)| name).into_iter().chain(&advice.unknown);
    let known: Vec<String> = names.map(|name| format!("?{name}")).collect();
    let example = match advice.unknown.is_empty() {
        true => String::new(),
        false => format!(", as in `@({})`", known.join(" & ")),
    };
    let hint = format!("let the filter depend on what ends the recursion{example}");
    match advice.changing.first() {
        Some((name, _)) => diagnostic.hint(format!("pass `${name}` to keep it unknown, or {hint}")),
        None => diagnostic.hint(hint),
    }
}

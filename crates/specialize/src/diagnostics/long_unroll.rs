//! A loop or recursion is unrolled so often that compiling what it leaves takes long.
//!
//! Partial evaluation unrolls a loop whose bounds it knows, where a filter, `@` or `@@` asks for it. Each round leaves the operations
//! that are not known; thousands of rounds leave a program for which LLVM takes many seconds, and which is larger than
//! the processor's caches. A loop that partial evaluation computes as a whole leaves nothing, and is not reported.
//! This is a warning. `--pe-budget 10` allows ten times as much.
//!
//! ```impala
//! extern fn f(a: &[i32]) -> i32 {
//!     let mut sum = 0;
//!     for i in unroll(0, 20000) { sum += a(i) }
//!     sum
//! }
//! ```
//!
//! ## Instead
//!
//! Leave a loop: `range` in place of `unroll`, `$n` in place of a bound that is known, or a filter that asks for less:
//!
//! ```impala
//! extern fn f(a: &[i32]) -> i32 {
//!     let mut sum = 0;
//!     for i in range(0, 20000) { sum += a(i) }
//!     sum
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// A number with commas.
fn grouped(n: u64) -> String {
    let mut digits = n.to_string();
    let mut at = digits.len();
    while at > 3 {
        at -= 3;
        digits.insert(at, ',');
    }
    digits
}

fn leaving((rounds, operations): (u64, u64)) -> String {
    // Two digits are enough.
    let unit = 10u64.pow(operations.max(1).ilog10().saturating_sub(1));
    let (rounds, operations) = (grouped(rounds), grouped(operations / unit * unit));
    format!("unrolled {rounds} times, which leaves more than {operations} operations")
}

const LABEL: &str = "compiling so many takes long";

/// The loop at `span` is unrolled so many times, and leaves so many operations.
pub fn of_loop(span: Span, counts: (u64, u64)) -> Diagnostic {
    Diagnostic::warning("long-unroll", span, format!("this loop is {}", leaving(counts)))
        .label(LABEL)
        .hint("write `$n` in place of its bound `n` to leave a loop, or call the function around it without `@`")
}

/// The recursive function, with its name and place, is unrolled where it is called at `call`.
pub fn of_function(call: Span, (name, declared): (&str, Span), counts: (u64, u64)) -> Diagnostic {
    let mut diagnostic =
        Diagnostic::warning("long-unroll", call, format!("`{name}` is {}", leaving(counts))).label(LABEL);
    if !declared.is_none() && declared != call.without_call() {
        diagnostic = diagnostic.other(declared, "this is the function");
    }
    let hint = match name.starts_with("unroll") {
        true => "write `range` in place of `unroll` to leave a loop, or pass a bound `n` as `$n`",
        false => "pass the argument that it ends by as `$n` to leave a loop, or let its filter ask for less",
    };
    diagnostic.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::leaving;

    #[test]
    fn numbers_are_short() {
        assert_eq!(leaving((999, 65_432)), "unrolled 999 times, which leaves more than 65,000 operations");
        assert_eq!(leaving((1_234_567, 7)), "unrolled 1,234,567 times, which leaves more than 7 operations");
    }
}

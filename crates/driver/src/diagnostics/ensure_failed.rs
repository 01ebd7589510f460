//! The code that a block became is not as the program asserts.
//!
//! `ensure_residual("no call, inner loads <= 2")` stands in a block, mostly as the first statement of a function or loop. It
//! is judged on the code that is left after partial evaluation and vectorization, in each copy of the block, before LLVM optimizes it.
//! `ensure_no_branch(x)` asserts that no branch of its block depends on `x`. Code that is computed at compile time, and blocks
//! that end the program, as those of `assert` do, do not count. `--no-pe` and `-O0` ignore assertions.
//!
//! In a block of a library it is a warning, at the program's call: the program is right, but slower than it could be. Mostly the
//! library got a function, a loop or a schedule that is only known at run time.
//!
//! ```impala
//! fn @(?n) power(x: i32, n: i32) -> i32 {
//!     ensure_residual("no call");
//!     if n == 0 { 1 } else { x * power(x, n - 1) }
//! }
//! extern fn f(x: i32, n: i32) -> i32 { power(x, n) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn @(?n) power(x: i32, n: i32) -> i32 {
//!     ensure_residual("no call");
//!     if n == 0 { 1 } else { x * power(x, n - 1) }
//! }
//! extern fn f(x: i32) -> i32 { power(x, 5) }
//! ```

use nyala_base::{Diagnostic, Span};
use nyala_ir::ensure::{THINGS, Term, Thing};

/// `found` is how many of the term's things `function` has; without a term, branches that depend on the value.
pub fn error(place: Span, term: Option<&Term>, function: &str, found: u64) -> Diagnostic {
    let count = |names: [&str; 2]| format!("{found} {}", names[usize::from(found != 1)]);
    let message = match term {
        None => format!("the value decides {} of `{function}`", count(["branch", "branches"])),
        Some(term) if term.thing == Thing::Lanes => {
            let what = if found < 2 { "no vectors".into() } else { format!("vectors of {found} lanes") };
            format!("`{}` does not hold: `{function}` has {what}", term.text)
        }
        Some(term) => {
            let names = THINGS.iter().find(|(thing, _)| *thing == term.thing).map_or([""; 2], |(_, names)| *names);
            let place = if term.inner { "an inner loop of " } else { "" };
            format!("`{}` does not hold: {place}`{function}` has {}", term.text, count(names))
        }
    };
    let hint = match term.map(|t| t.thing) {
        Some(Thing::Lanes | Thing::Gather | Thing::Scatter) => {
            "`nyala explain --vector` says what the vectorizer made of each access and branch"
        }
        Some(Thing::Call | Thing::Closure | Thing::Branch | Thing::Loop) | None => {
            "`nyala explain` lists what is left, with the reasons; `@` before a call or a function unfolds it"
        }
        Some(_) => "`nyala emit --stage flat` shows the code that is judged",
    };
    Diagnostic::error("ensure-failed", place, message).label("asserted here").hint(hint)
}

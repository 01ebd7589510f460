//! Callees that the compiler knows: branches, loops of lanes and threads, kernels, directives to partial evaluation.
//! They are not operations ([`crate::Op`]), because control continues at one of their arguments.

use std::ops::Range;

/// A callee that the compiler knows. The verifier checks the arguments; `mem` comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Builtin {
    /// `branch(mem, cond, then, else)`; both targets are `cn(mem)`.
    Branch,
    /// `pe_info(mem, text, value, next)`: reports `value` at compile time and goes on with `next: cn(mem)`.
    PeInfo,
    /// `static_assert(mem, cond, text, next)`: an error with `text` unless partial evaluation finds `cond` true; goes on
    /// with `next: cn(mem)`.
    StaticAssert,
    /// `unreachable(mem)`: never executed; undefined behavior if it is.
    Unreachable,
    /// `parallel(mem, n, lo, hi, body, next)`: calls `body: cn(mem, i64, i64, cn(mem))` for ranges that make up
    /// `lo .. hi` (i64), in any order, at once on `n` (i32) threads, 0 for as many as there are; then goes on with
    /// `next: cn(mem)` (`001` 5.1).
    Parallel,
    /// `vectorize(mem, l, align, lo, hi, body, next)`: calls `body: cn(mem, T, cn(mem))` for each of `lo .. hi` (T, an
    /// integer), `l` (i32) of them at a time as lanes, which may exchange values; then goes on with `next: cn(mem)`. An
    /// `align` (i32) other than 0 is a promise that it divides `lo` and `hi`, and that `l` divides their difference
    /// (`001` 5.2).
    Vectorize,
    /// `spawn(mem, handle, body, next)`: goes on with `next: cn(mem)` while `body: cn(mem, cn(mem))` runs as the thread
    /// `handle` (i32), a number from the runtime.
    Spawn,
    /// `launch(mem, platform, device, gx, gy, gz, bx, by, bz, body, next)`, with numbers of type i32: calls `body:
    /// cn(mem, cn(mem))` for each work item of a grid of `gx * gy * gz`, in blocks of `bx * by * bz`, and goes on with
    /// `next: cn(mem)`. The platform is an index into [`PLATFORMS`](crate::lanes::PLATFORMS) (`001` 5.3).
    Launch,
    /// `limited(mem, text, interpreted, next)`: the code at `next: cn(mem)` is implemented by the interpreter only, or,
    /// if `interpreted` is false, by no engine. An engine that gets here without it reports `text`, an array of bytes
    /// that a zero ends.
    Limited,
}

impl Builtin {
    /// All of them, in the order of the declaration.
    pub const ALL: [Builtin; 9] = [
        Builtin::Branch,
        Builtin::PeInfo,
        Builtin::StaticAssert,
        Builtin::Unreachable,
        Builtin::Parallel,
        Builtin::Vectorize,
        Builtin::Spawn,
        Builtin::Launch,
        Builtin::Limited,
    ];

    /// Keyword in IR text.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Branch => "branch",
            Builtin::PeInfo => "pe_info",
            Builtin::StaticAssert => "static_assert",
            Builtin::Unreachable => "unreachable",
            Builtin::Parallel => "parallel",
            Builtin::Vectorize => "vectorize",
            Builtin::Spawn => "spawn",
            Builtin::Launch => "launch",
            Builtin::Limited => "limited",
        }
    }
}

/// The positions of a [`Builtin`]'s arguments, by their role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuiltinArgs {
    /// Values that compiled code computes.
    pub values: Range<usize>,
    /// The function that it runs, once or many times, before or while the program goes on.
    pub body: Option<usize>,
    /// The continuations where the program goes on.
    pub next: Range<usize>,
}

impl Builtin {
    /// The positions of this builtin's arguments.
    pub fn args(self) -> BuiltinArgs {
        let (values, body, next) = match self {
            Builtin::Branch => (1..2, None, 2..4),
            Builtin::PeInfo | Builtin::StaticAssert | Builtin::Limited => (0..0, None, 3..4),
            Builtin::Unreachable => (0..0, None, 0..0),
            Builtin::Parallel => (1..4, Some(4), 5..6),
            Builtin::Vectorize => (3..5, Some(5), 6..7),
            Builtin::Spawn => (1..2, Some(2), 3..4),
            Builtin::Launch => (2..9, Some(9), 10..11),
        };
        BuiltinArgs { values, body, next }
    }
}

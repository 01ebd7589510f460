//! Numbers of lanes do not fit together, in a program in Sierra.
//!
//! Values with lanes are computed with others that have as many, and with values without lanes, which are the same in all. In SIMD mode, that is where a
//! condition with lanes decides what runs, only values with as many lanes as the condition can be used.
//!
//! ```text
//! int varying(4) f(int varying(4) v, int varying(8) w) { return v + w; }
//! ```
//!
//! ## Instead
//!
//! ```text
//! int varying(8) f(int varying(8) v, int varying(8) w) { return v + w; }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn mismatch(span: Span, left: &str, right: &str) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("`{left}` and `{right}` have different numbers of lanes"))
}

pub fn mode(span: Span, found: u32, expected: u32) -> Diagnostic {
    let message = format!("found a value with {found} lanes in SIMD mode of {expected} lanes");
    Diagnostic::error("sierra-lanes", span, message).hint("`scalar { … }` leaves SIMD mode")
}

pub fn number(span: Span, found: i64, most: i64) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("found {found} lanes, expected 1 to {most}"))
}

pub fn no_lanes(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("a `{ty}` has no lanes"))
}

pub fn no_mode(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("`{what}` stands outside of SIMD mode"))
}

/// A value with lanes where one without is needed.
pub fn varying(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("found `{found}`, which has lanes, expected `{expected}`"))
        .hint("`extract(v, i)` is one of them")
}

/// In VecImp.
pub fn not_assignable(span: Span, found: &str, expected: &str, mode: u32) -> Diagnostic {
    let place = if mode == 1 { String::new() } else { format!(" in SIMD mode of {mode} lanes") };
    Diagnostic::error("sierra-lanes", span, format!("a `{found}` cannot become a `{expected}`{place}"))
}

/// In VecImp: an element of `{a, b}`.
pub fn vector(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("found `{found}` as one lane, expected `{expected}`"))
}

/// In VecImp: a call of a function that has another current length.
pub fn callee(span: Span, name: &str, found: u32, expected: u32) -> Diagnostic {
    let message = format!("`{name}` is declared `simd({found})`, and called in SIMD mode of {expected} lanes");
    Diagnostic::error("sierra-lanes", span, message).hint(format!("declare it `simd({expected})`"))
}

/// In PolyVecImp: no length of a variable or a result fits both.
pub fn conflict(span: Span, one: u32, other: u32) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("values with {one} and with {other} lanes meet here"))
}

/// What `soa<n>` stands before.
pub fn no_soa_of(span: Span, n: u32, found: &str) -> Diagnostic {
    Diagnostic::error("sierra-lanes", span, format!("there is no `soa<{n}>` of `{found}`"))
        .hint("it is of a struct without unions and without fields that have lanes")
}

//! A line for the preprocessor, or the use of a macro, is wrong, in a program in Sierra.
//!
//! `#include "x.h"` stands for the text of a file beside this one. `#define` gives a name a text, which its uses stand for. `#if`, `#ifdef`, `#ifndef`, `#elif`
//! and `#else` decide which lines count, up to `#endif`.
//!
//! ```text
//! #ifdef SMALL
//! const int N = 4;
//! ```
//!
//! ## Instead
//!
//! ```text
//! #ifdef SMALL
//! const int N = 4;
//! #else
//! const int N = 64;
//! #endif
//! ```

use nyala_base::{Diagnostic, Span};

fn new(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("sierra-preprocessor", span, message)
}

pub fn open(span: Span) -> Diagnostic {
    new(span, "found the end of the file, expected `#endif`")
}

pub fn misplaced(span: Span, word: &str) -> Diagnostic {
    new(span, format!("`#{word}` has no `#if` before it"))
}

pub fn unknown(span: Span, word: &str) -> Diagnostic {
    new(span, format!("there are no lines `#{word}`"))
}

/// A line `#error`.
pub fn error(span: Span, text: &str) -> Diagnostic {
    new(span, format!("the program says: {text}"))
}

pub fn missing(span: Span, path: &str) -> Diagnostic {
    new(span, format!("found no file `{path}` that can be read")).hint("headers are looked for beside the file")
}

pub fn program(span: Span) -> Diagnostic {
    new(span, "a program includes no other program")
        .hint("give the command both, and declare what one needs of the other")
}

pub fn too_deep(span: Span, limit: usize) -> Diagnostic {
    new(span, format!("more than {limit} files within each other")).hint("begin headers with `#pragma once`")
}

pub fn too_much(span: Span, limit: usize) -> Diagnostic {
    new(span, format!("a program of more than {limit} words")).hint("begin headers with `#pragma once`")
}

pub fn endless(span: Span, name: &str) -> Diagnostic {
    new(span, format!("too much becomes of the macro `{name}`"))
}

pub fn arguments(span: Span, name: &str, found: usize, expected: usize) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    new(span, format!("found {found} argument{s} of the macro `{name}`, expected {expected}"))
}

pub fn arguments_end(span: Span, name: &str) -> Diagnostic {
    new(span, format!("found no `)` behind the arguments of the macro `{name}`"))
}

pub fn pasted(span: Span) -> Diagnostic {
    new(span, "`##` makes no word of what is on its sides").hint("`a ## b` is one name, number or sign")
}

//! Nothing of this name is in scope.
//!
//! A name is a variable declared before in this block or one around it, a parameter, or an item (function, static,
//! type) of the program, its blocks, the libraries it uses or the prelude. Variables are not visible outside of their
//! block. A library's names need `use library::*;`, which the hint names if a library has the name.
//!
//! ```impala
//! fn f() -> i32 {
//!     let count = 1;
//!     conut
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 {
//!     let count = 1;
//!     count
//! }
//! ```

use crate::exports::Exports;
use nyala_base::{Diagnostic, Span};

/// `similar` is a name in scope that may be meant; `modules` of the program and `libraries` have an item of this name, and `enums` in
/// scope an option.
pub fn error(
    span: Span,
    name: &str,
    similar: Option<&str>,
    (modules, libraries): (&[String], &[&Exports]),
    enums: &[&str],
) -> Diagnostic {
    let diagnostic = Diagnostic::error("unknown-name", span, format!("found no `{name}` in scope"));
    if let Some(of) = enums.first() {
        return diagnostic.hint(format!("options are written with their enum: `{of}::{name}`"));
    }
    if !modules.is_empty() {
        return diagnostic.hint(in_modules(modules, name)).hint_similar(similar);
    }
    if !libraries.is_empty() {
        return diagnostic.hint(in_libraries(libraries)).hint_similar(similar);
    }
    match foreign(name) {
        Some(hint) => diagnostic.hint(hint),
        None if similar.is_some() => diagnostic.hint_similar(similar),
        None => diagnostic.hint("declare it, or `use` the library that has it"),
    }
}

/// The name stands before `::`, and `modules` of the program or `libraries` have it as the last name of their paths.
pub fn module(span: Span, name: &str, modules: &[String], libraries: &[&Exports]) -> Diagnostic {
    let diagnostic = Diagnostic::error("unknown-name", span, format!("found no `{name}` in scope"));
    if !modules.is_empty() {
        let paths: Vec<String> = modules.iter().map(|m| format!("`{m}::…`")).collect();
        return diagnostic.hint(format!("write {}", paths.join(" or ")));
    }
    let uses: Vec<String> = libraries.iter().map(|l| format!("`use {};`", l.path)).collect();
    let last = libraries.first().and_then(|l| l.path.rsplit("::").next()).unwrap_or_default();
    let file = match libraries {
        [Exports { file: Some(file), .. }] => format!(" of `{file}`"),
        _ => String::new(),
    };
    diagnostic.hint(format!("{} brings the names `{last}::…`{file}", uses.join(" or ")))
}

/// The hint that modules of the program have an item.
fn in_modules(modules: &[String], name: &str) -> String {
    let paths: Vec<String> = modules.iter().map(|m| format!("`{m}::{name}`")).collect();
    format!("a module of the program has it: write {}", paths.join(" or "))
}

/// The hint that libraries have an item.
pub fn in_libraries(libraries: &[&Exports]) -> String {
    let uses: Vec<String> = libraries.iter().map(|l| format!("`use {}::*;`", l.path)).collect();
    match libraries {
        [Exports { file: Some(file), .. }] => format!("`{file}` has it: {}", uses[0]),
        [library] => format!("library `{}` has it: {}", library.path, uses[0]),
        _ => format!("libraries have it: {}", uses.join(" or ")),
    }
}

/// A parameter consists of a name only, which was taken for its type.
pub fn parameter(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("unknown-name", span, format!("found no type `{name}` in scope"))
        .hint(format!("parameters have a name and a type: `{name}: i32`"))
}

/// A hint for names that are known from other languages.
fn foreign(name: &str) -> Option<&'static str> {
    Some(match name {
        "usize" | "size_t" => "sizes and indices may be of any integer type, for instance `u64`",
        "isize" | "ptrdiff_t" | "long" => "write `i64`",
        "short" => "write `i16`",
        "char" | "byte" => "characters are bytes, `u8`",
        "void" => "a function without a result gives `()`",
        "str" | "String" | "string" => "texts are arrays of bytes: `&[u8]` as a parameter",
        "Vec" | "vector" | "list" => {
            "arrays are `[T * n]`, or `alloc[T](n)` on the heap; `Buffer[T]` of `std::buffer` can be resized"
        }
        "Box" => "there is no `Box`; `~e` puts a value on the heap",
        "Option" | "Some" | "None" | "Result" | "Ok" | "Err" => {
            "declare it: `enum Option[T] { None, Some(T) }`; its options are `Option::None`, `Option::Some(x)`"
        }
        "null" | "nullptr" | "NULL" | "nil" => "a null pointer is `0u64 as &T`",
        "printf" | "print" | "puts" | "cout" => {
            "print with `print_i32(x)`, `print_f64(x)`, `print_string(\"…\")`, `println()`"
        }
        "assert" | "panic" => "the prelude declares it, which this program does not use",
        "malloc" | "new" => "memory of the heap comes from `alloc[T](n)`, for `n` elements of type `T`",
        "delete" => "free memory with `free(p)`",
        "self" | "this" => "the receiver of a method is a parameter: `fn m(self: &Self)`",
        "const" | "var" | "auto" => "variables are `let x = …;`, or `let mut x = …;` if they change",
        "def" | "func" | "function" => "functions are `fn name(x: i32) -> i32 { … }`",
        "elif" | "elsif" => "write `else if`",
        "and" => "write `&&`",
        "or" => "write `||`",
        "not" => "write `!`",
        "True" => "write `true`",
        "False" => "write `false`",
        _ => return None,
    })
}

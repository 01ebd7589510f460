//! A word or symbol stands where the grammar does not allow it.
//!
//! The message says what was found and what could stand there. Often the fault is just before that place: an operator
//! without its operand, or a missing comma. For words of other languages, a hint says what to write in Impala.
//!
//! ```impala
//! fn f(a: i32) -> i32 { a + }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: i32) -> i32 { a + 1 }
//! ```
//!
//! Some things are written differently than in Rust or C:
//!
//! ```impala
//! fn g(a: &[i32], t: (i32, i32), n: i32) -> i32 {
//!     let mut sum = t(0) + t(1);
//!     for i in range(0, n) {
//!         sum += a(i);
//!     }
//!     sum
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// A token of the file: its description, its text, and the texts of the tokens before and after it.
pub struct Found<'a> {
    pub shown: String,
    pub before: &'a str,
    pub text: &'a str,
    pub next: &'a str,
}

pub fn error(span: Span, found: &Found, expected: &str) -> Diagnostic {
    let message = format!("found {}, expected {expected}", found.shown);
    let diagnostic = Diagnostic::error("unexpected-token", span, message);
    match remedy(found, expected) {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    }
}

/// `found` stands where the bracket at `opener` should be closed.
pub fn in_brackets(span: Span, found: &Found, expected: &str, opener: Span) -> Diagnostic {
    error(span, found, expected).other(opener, "to close this")
}

/// `t.0`, or `(i32)2.5`, which is read as `(i32)2` and `.5`.
pub fn dot_index(span: Span, index: &str) -> Diagnostic {
    let hint = match index.contains('.') {
        true => format!("conversions are `{index} as i32`"),
        false => format!("parts of tuples are `t({index})`"),
    };
    Diagnostic::error("unexpected-token", span, format!("found `.{index}`, expected a field name")).hint(hint)
}

/// `a[1]`.
pub fn bracket_index(span: Span, found: &Found) -> Diagnostic {
    Diagnostic::error("unexpected-token", span, format!("found {}, expected a type", found.shown))
        .hint("elements of arrays are `a(i)`; brackets hold types")
}

/// `impl [T] { … }`.
pub fn impl_of_brackets(span: Span, found: &Found) -> Diagnostic {
    Diagnostic::error("unexpected-token", span, format!("found {}, expected a type", found.shown))
        .hint("brackets after `impl` hold type parameters; methods of arrays stand in `impl ([i32]) { … }`")
}

/// `S { ..p, x: 1 }`.
pub fn after_base(span: Span, found: &Found) -> Diagnostic {
    Diagnostic::error("unexpected-token", span, format!("found {}, expected `}}`", found.shown))
        .hint("the value that gives the other fields comes last: `S { x: 1, ..p }`")
}

/// `loop { … }`.
pub fn endless_loop(span: Span) -> Diagnostic {
    Diagnostic::error("unexpected-token", span, "found `loop`, expected an expression")
        .hint("write `while true { … }`; `break()` leaves it")
}

/// `found` follows the expression at `result`, which was taken for the value of a block.
pub fn after_result(span: Span, found: &Found, result: Span) -> Diagnostic {
    Diagnostic::error(
        "unexpected-token",
        span,
        format!("found {}, expected `}}` after the block's result", found.shown),
    )
    .other(result, "this is the result; if it is not meant to be, end it with `;`")
}

/// A hint for mistakes that are known from other languages.
fn remedy(found: &Found, expected: &str) -> Option<&'static str> {
    let needs_value = expected == "an expression";
    let ends_statement = expected.starts_with("`;` after");
    let is_let = expected == "`;` after `let`";
    let is_arm = expected == "`=>` after the pattern";
    Some(match (found.before, found.text) {
        (_, ".." | ".") if is_arm => "patterns have no ranges: `n if n >= 1 && n < 5 => …`",
        (_, "|") if is_arm => "write an arm for each pattern",
        (_, "@") if is_arm => "write a name and a guard: `n if n == 1 => …`",
        ("case", _) if is_arm => "arms are `pattern => value`",
        ("default", _) if is_arm => "the arm for all other values is `_ => value`",
        (_, "->" | ":" | "=" | "," | "{") if is_arm => "arms are `pattern => value`",
        (_, ";") if expected == "`,` or `}` after the arm" => "arms end with `,`; put statements into `{ … }`",
        (_, "else") if expected == "a name or a pattern" => "the arm for all other values is `_ => value`",
        (_, "&") if expected == "a name or a pattern" => "patterns have no pointers: match the value, `match *p { … }`",
        (_, text) if expected == "a name or a pattern" && text.starts_with('"') => {
            "strings are compared byte by byte, in a guard"
        }
        (_, ";") if expected == "`,` or `}` after the option" => "options end with `,`",
        (_, "=") if expected == "`,` or `}` after the option" => "options have no numbers",
        (_, "{") if expected == "`,` or `}` after the option" => {
            "the parts of an option stand in parentheses: `B(i32)`"
        }
        (_, ";") if expected == "`{` and items" => "`mod name;` for a file is only allowed outside of functions",
        ("impl", "<") => "type parameters stand in brackets: `impl[T] …`",
        (_, "<")
            if matches!(expected, "`{` and fields" | "`{` and options" | "`{` and functions" | "`=` and a type") =>
        {
            "type parameters stand in brackets: `Name[T]`"
        }
        (_, "where") => "bounds stand with the type parameters: `[T: Bound]`",
        (_, "(") if expected == "`{` and fields" => "fields have names: `struct S { x: i32 }`",
        ("self", _) | (_, "self") if expected == "a parameter" => "the receiver has a type: `self: &Self`",
        (_, "&") if expected == "a parameter" => "the receiver has a type: `self: &Self`, `self: &mut Self`",
        ("if" | "while", "let") => "patterns are for `match`: `match e { p => …, _ => … }`",
        ("::", "{") => "write a `use` for each name",
        (_, ",") if expected == "`;` after the `use`" => "write a `use` for each name",
        (_, "as") if expected == "`;` after the `use`" => "a `use` cannot rename what it brings",
        (_, "+" | "-" | "*" | "/" | "%") if expected == "`,` or `]`" => {
            "computed constants among types stand in braces: `f[{n + 1}]`"
        }
        ("pub", "(") => "write `pub` without parentheses",
        (_, "static" | "type" | "const" | "let") if expected == "`fn`" => "only functions are allowed here",
        ("..", "}") => "`..` stands before the value whose fields are taken: `..p`",
        (_, "..") => "there are no ranges; loops count with `for i in range(0, n) { … }`",
        ("return", _) if ends_statement => "`return` is a function: `return(x)`",
        (_, "=") if needs_value || expected == "`{`" => "comparison is `==`",
        (_, "==") if is_let => "`=` gives a variable its value",
        (macro_name, "!") if ends_statement => match macro_name {
            "assert" | "panic" => "there are no macros: it is a function, called without `!`",
            "print" | "println" | "printf" | "eprintln" | "dbg" => {
                "there are no macros; print with `print_i32(x)`, `print_string(\"…\")`, `println()`"
            }
            _ => "there are no macros; functions are called as `f(x)`",
        },
        (_, "@" | "@@") if matches!(expected, "`(` and parameters" | "a body in `{ … }`" | "`{` or `fn`") => {
            return Some(filter_remedy(found));
        }
        (_, "@" | "@@") if expected.starts_with("an item") => return Some(filter_remedy(found)),
        (_, "<") if expected == "`(` and parameters" => "type parameters stand in brackets: `fn id[T](x: T) -> T`",
        (_, "<") => "type arguments stand in brackets: `Name[T]`",
        (_, text) if expected.starts_with("an item") => return item_remedy(text),
        (_, ":") if expected == "a body in `{ … }`" => "the type of the result stands after `->`",
        (_, "=" | "=>") if expected == "a body in `{ … }`" => "the body is a block: `{ x + 1 }`",
        (_, "=") if expected == "`:` and the field's value" => "fields are `name: value`",
        (_, "," | "}") if expected == "`:` and the field's value" => "every field has its value: `x: x`",
        ("{" | ",", _) if expected == "a field name or `..`" => "fields are given by name: `x: 1`",
        (_, ";") if expected == "`,` or `}`" => "fields end with `,`",
        (_, ";") if expected == "`,` or `]`" => "an array of the same value `n` times is `[0, .. n]`",
        (_, ";") if expected == "`]`" => "the type of an array of `n` elements is `[T * n]`",
        (_, "fn") if needs_value => "functions without a name are `|x| x + 1`",
        (_, "=>") => "functions without a name are `|x| x + 1`",
        (_, "?") => "write `if c { a } else { b }`",
        (_, "and") => "write `&&`",
        (_, "or") => "write `||`",
        ("not", _) => "write `!`",
        (_, "elif" | "elsif" | "elseif") => "write `else if`",
        (_, "else") => "`else` stands after the `}` of an `if`",
        (_, "let") if needs_value => "`let` is a statement of its own; loops count with `for i in range(0, n) { … }`",
        (_, "->") => "`.` follows pointers by itself: `p.x`",
        (_, ":") if ends_statement && found.next == "=" => "variables are `let x = …;`",
        (_, ":") if ends_statement => "variables are `let x: i32 = …;`",
        ("const" | "var" | "auto" | "val", _) if ends_statement => {
            "variables are `let x = …;`, or `let mut x = …;` if they change"
        }
        ("new", _) if ends_statement => "values of structs are `Name { field: value }`",
        (ty, _) if ends_statement && is_type(ty) => "the name comes before the type: `let x: i32 = …;`",
        (ty, _) if expected == "`,` or `)`" && is_type(ty) => "the name comes before the type: `x: i32`",
        (_, text) if ends_statement && text.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
            "end the statement before it with `;`"
        }
        _ => return None,
    })
}

/// A hint for an `@` at a wrong place of a function.
fn filter_remedy(found: &Found) -> &'static str {
    match found.next {
        "fast" => "a mark stands between `fn` and the name: `fn @fast f(x: f32) -> f32 { … }`",
        "racy" => "it is a block in the body of a function: `@racy { … }`",
        _ => "a filter stands between `fn` and the name: `fn @(?n) f(n: i32) -> i32 { … }`",
    }
}

/// A hint for a token that begins no item, at the top level of a file.
fn item_remedy(text: &str) -> Option<&'static str> {
    Some(match text {
        "let" | "const" | "var" | "auto" => "outside of functions there are statics: `static NAME = 5;`",
        "import" | "include" | "from" | "require" => "libraries are used by `use name::*;`",
        "def" | "func" | "function" | "async" | "unsafe" | "inline" | "public" => {
            "functions are `fn name(x: i32) -> i32 { … }`"
        }
        "class" | "interface" | "union" | "record" => "types are `struct Name { field: i32 }`",
        "typedef" | "using" => "other names of types are `type Name = i32;`",
        "if" | "for" | "while" | "return" | "match" | "with" => {
            "statements stand in functions: `fn main() -> i32 { … }`"
        }
        _ if is_type(text) => "functions are `fn name(x: i32) -> i32 { … }`",
        _ => return None,
    })
}

/// Whether it is the name of a type, in Impala or in C.
fn is_type(text: &str) -> bool {
    let types = "i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool int uint float double char void long short unsigned size_t str \
                 String string usize isize";
    types.split(' ').any(|t| t == text)
}

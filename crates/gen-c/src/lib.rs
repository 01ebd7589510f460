//! Flat SSA to C text, with structured control flow; dialects of C are a table.
//!
//! One emitter writes all dialects. A [`Dialect`] is data: names of types, functions and keywords, spellings of literals,
//! and missing features. A feature that the language or this back end lacks is a `limitation` with its place in the source,
//! never a guess.
//!
//! # From blocks to statements
//!
//! 1. [`make_loops`]: recursion by calls in tail position becomes loops, on flat SSA. C does not promise that such calls are
//!    jumps.
//! 2. `flow`: loops and branches are recovered from the dominator tree, as a list of tokens. Each block stands in it
//!    once, so that the text is as long as the program. `goto` is left where several loops are left at once, where a cycle
//!    has several entries, and where branches are nested too deep for a C compiler.
//! 3. `function`, `ops`, `calls`: instructions become expressions. One that is used once is nested in its use, unless a
//!    write to memory or a call stands in between. Depth and length of expressions are bounded.
//! 4. `nodes`: statements are tidied: early exits, `while`, `do` and `for`. `print` declares each variable in the
//!    innermost block that contains its uses.
//! 5. `emit` puts together what the functions turned out to need: types, helper functions, declarations, globals.
//!
//! # Meaning
//!
//! The text has no undefined behavior that the program does not have:
//!
//! - Left shifts of signed numbers are computed on unsigned types and converted back; so are sums, differences and products
//!   where they may overflow: by `--wrap`, in lanes that are inactive, and where the program may not compute what the text does,
//!   since it was moved out of a loop or a branch. An expression converts once: `(int)((unsigned)a * b + c)`. Shift amounts are masked. The step of a `for` loop is signed where its
//!   test shows that it does not overflow.
//! - Integer divisions that may fault stop the program by `SIGFPE`, as x86-64's instruction does. Conversions from floats
//!   saturate. `@fast` has no effect. Contraction must be off: `-ffp-contract=off`.
//! - A value is read as another type by `memcpy`. Where a program accesses memory through pointers of several types, the
//!   types behind its pointers are marked `may_alias`, all of them (`aliasing`). Vectors in memory are copied, since they
//!   may lie at any element of an array.
//! - An aggregate that is made of what is in memory gets a variable before it is stored: C compilers build it where it is
//!   stored, though its parts may be read from there, and objects that overlap in part must not be assigned. An array that is
//!   also accessed as a whole is a struct from its declaration on.
//! - Tuples, structs and arrays are C structs with C's layout; an array in a struct of its own, so that it is a value.
//!   What has no size vanishes. Vectors are structs, too, and operations on them functions with loops.
//! - Code addresses have one type, `code`; a call converts them to the type of the function.
//! - Symbols that cannot be names in C, or that compilers know otherwise, are given by `__asm__`.
//!
//! Modules come here before `vectorize`: its loops are written as loops, one iteration after the other. Modules whose
//! lanes exchange values ([`lanes_meet`]) have to be vectorized before.
//!
//! ```text
//! head(i, sum): branch lt(i, n), body(), done()          for (int i = 0; i < n; i++) {
//! body(): p = lea(a, i)  x = load(p)                         sum += a[i] * 2.0f;
//!         y = mul(x, 2.0)  jump head(add(i, 1), add(sum, y)) }
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aliasing;
mod calls;
mod cuda;
mod devices;
mod dialect;
mod emit;
mod expr;
mod flow;
mod function;
mod globals;
mod hls;
mod names;
mod opencl;
mod ops;
mod parted;
mod print;
mod statements;
mod types;

pub use cuda::CUDA;
pub use dialect::{Atomic, Bits, C, Compound, Dialect, Features, Halves, Interface, Kernels, Parameter, Port, Role};
pub use hls::HLS;
pub use opencl::OPENCL;

use nyala_base::diagnostics::{bug as bugs, limitation as limitations};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::{Func, Linkage, Module, make_loops};

pub(crate) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Writes a module in a dialect, its exported functions as a C program calls them. `wrap`: signed arithmetic is modulo 2ⁿ;
/// otherwise it does not overflow.
///
/// # Errors
/// A `limitation`: what the dialect lacks, or is not done yet.
pub fn emit(module: &Module, dialect: &Dialect, wrap: bool) -> std::result::Result<String, Box<Diagnostic>> {
    write(module.clone(), dialect, wrap, None)
}

/// Writes a program: its exported `main` runs on the runtime's large stack, as in what `nyala build` makes. It has the type
/// `fn() -> i32`, `fn() -> ()` or `fn(i32, &[&[u8]]) -> i32`.
///
/// # Errors
/// As [`emit()`].
pub fn emit_program(module: &Module, dialect: &Dialect, wrap: bool) -> std::result::Result<String, Box<Diagnostic>> {
    let mut module = module.clone();
    let main = module.exported("main");
    if let Some(main) = main {
        module.funcs[main.idx()].linkage = Linkage::Internal;
    }
    write(module, dialect, wrap, main)
}

fn write(mut module: Module, dialect: &Dialect, wrap: bool, main: Option<Func>) -> Result<String> {
    make_loops(&mut module)?;
    let results = emit::result_types(&mut module);
    emit::emit(&module, results, dialect, wrap, main)
}

/// Whether lanes of a `vectorize` exchange values, so that its iterations cannot run one after the other: such modules
/// have to be vectorized first.
pub fn lanes_meet(module: &Module) -> bool {
    calls::lanes_meet(module)
}

/// A fault of this compiler, not of its user.
pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(bugs::error(Span::NONE, format!("in writing C: {message}")))
}

/// `what` cannot be written in a dialect. `remedy` is what the user may write instead; that machine code has it is said here.
pub(crate) fn limitation(dialect: &Dialect, span: Span, what: &str, remedy: &str) -> Box<Diagnostic> {
    let message = format!("{what} cannot be written in {}", dialect.name);
    let other = match dialect.kernels {
        None => "make machine code: `nyala build`",
        Some(_) => "run the kernel with `--device host`",
    };
    Box::new(limitations::error(span, message, format!("{remedy}, or {other}")))
}

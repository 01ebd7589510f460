//! Nyala in Rust programs: compiles Impala at run time, and calls its functions with types that were checked.
//!
//! ```
//! use nyala_embed::{In, Out, Program};
//!
//! let program = Program::from_source("scale.impala", "
//!     extern fn scale(a: &[f32], b: &mut [f32], n: i32, by: f32) -> () { for i in range(0, n) { b(i) = a(i) * by; } }
//! ")?;
//! // SAFETY: `scale` reads and writes n elements, and all calls below pass arrays of n elements.
//! let scale = unsafe { program.function::<(In<f32>, Out<f32>, i32, f32), ()>("scale") }?;
//! let mut out = [0.0; 3];
//! scale.call((&[1.0, 2.0, 3.0], &mut out, 3, 10.0));
//! assert_eq!(out, [10.0, 20.0, 30.0]);
//! # Ok::<(), nyala_embed::Error>(())
//! ```
//!
//! **A [`Program`]** is machine code in memory, and what is known about it: its exported functions, and the compiler's warnings.
//! [`Compiler`] has the options. Nothing here is shared by the process: any number of programs live at once, and any number of
//! threads compile and call. Nothing is written to standard streams, except by the programs themselves; what they print is buffered
//! until [`flush`]. Of the environment only folders of caches and the number of threads are heeded.
//!
//! **A [`Function`]** is a handle with types, found by its symbol: the name of an `extern fn`. Its types are compared with the
//! program's once, when the handle is made; a call costs what a call of a C function costs. Handles are `Send` and `Sync`, and
//! keep the code alive.
//!
//! | Rust | Impala | the value of a call |
//! |---|---|---|
//! | `i8` … `i64`, `u8` … `u64`, `f32`, `f64`, `bool` | the same | itself |
//! | [`In<T>`](In), [`Out<T>`](Out) | `&[T]`, `&mut [T]`, without a length | `&[T]`, `&mut [T]` |
//! | [`Slice<T>`](Slice), [`MutSlice<T>`](MutSlice) | `Slice[T]`, `MutSlice[T]` of `std::slice`, with the length | `&[T]`, `&mut [T]` |
//! | [`Callback<fn(A) -> R>`](Callback) | `fn(A) -> R`, called during the call | `&(dyn Fn(A) -> R + Sync)` |
//! | [`Ref<T>`](Ref), [`Mut<T>`](Mut) | `&T`, `&mut T` | `&T`, `&mut T` |
//! | `*const T`, `*mut T` | `&T` or `&[T]`, `&mut T` or `&mut [T]` | itself |
//! | a struct with [`#[derive(Type)]`](derive@Type) | a struct with the same fields in the same order | itself |
//! | `[T; N]` behind a pointer, or in a struct | `[T * N]` | |
//! | `()` as a result | `()` | |
//!
//! **A [`Partial`]** is a function with some arguments fixed. [`Partial::build`] compiles a variant of it, in which they are constants:
//! it goes through partial evaluation like a call in the source. A variant is made of the program's graph ([`Graph`]); it has code and
//! a linker of its own, so that it can be freed. Its key is the function with the bytes of what is fixed.
//!
//! [`Graph`]: nyala_driver::variants
//!
//! What Impala has besides (`f16`, tuples, arrays and vectors by value, functions as results) is an error of [`Program::function`];
//! pass it in a struct or by pointer.
//!
//! **Errors are values**: [`Error`] has the [`Diagnostic`]s of a program that is wrong, with their places, or both signatures if
//! the types differ. A program whose partial evaluation does not end is refused like any other, because its budget is spent.
//!
//! **`unsafe`** is in making a handle, because native code can do what C can. [`Program::checked_function`] makes one without `unsafe`, of
//! functions of which it can be shown that they access nothing but what a call lends them.
//!
//! [`Function::call`] ends the process if the program panics, fails a check or calls `exit`, as an executable would;
//! [`Function::try_call`] returns these as values. What the processor finds ends the process always: a wild access, a division by zero
//! that is not checked, a stack that is full.
//!
//! The library of LLVM that the compiler was built with must be where it was; without it, compiling is an error.
#![warn(missing_docs)]

mod arguments;
mod code;
mod compiler;
mod confined;
mod error;
mod fixed;
mod partial;
mod program;
mod raw;
mod shape;
mod untyped;
mod variants;

pub use arguments::{Args, Callback, In, Mut, MutSlice, Out, Param, Ref, Return, Slice};
pub use compiler::{Check, Compiler};
pub use error::{Diagnostic, Error, Fault, Place, Severity};
pub use fixed::Fix;
#[doc(hidden)]
pub use fixed::FixedKind;
pub use nyala_driver::shims::Elements;
pub use nyala_embed_derive::Type;
pub use nyala_ir::Prim;
pub use nyala_sema::{ExportedStruct, ExportedType, Signature, Signatures};
pub use partial::Partial;
pub use program::{Function, Program, Stage};
pub use raw::{Fixable, layout};
#[doc(hidden)]
pub use shape::Bytes;
pub use shape::{Shape, Type, Value, text_of};
pub use untyped::{ElementLoop, InMemory, Untyped, free, guarded, panic};
pub use variants::{Stats, Variants};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Page;

/// Writes out what programs have printed. The C library's standard output has it until then.
pub fn flush() {
    nyala_runtime::nyala_flush();
}

//! Nyala in Python programs: `nyala._native`, the compiled part of the package `nyala`.
//!
//! **What owns what.** A `Program` has the machine code of `nyala_embed`, the texts and the options that it was made of, and a
//! `Function` for each export, made when it is asked for. A `Function` is a handle of a program's function or of a variant of one: it
//! keeps the code alive, as in Rust. Its [plan](plan) says how each parameter is taken, and is made once of the types that the
//! program exports; variants share it. Nothing here is a second driver: what the library for Rust lacked, it got.
//!
//! **How a call goes.** Arguments become values in memory, one place for each parameter: a number is converted there; of an array it is
//! the address that its buffer exports, with the number of elements for a slice. Then the code is called by a shim that the compiler
//! makes for the function's type (`driver/src/shims.rs`) when it is called first, under a guard, without the interpreter's lock. The
//! buffers stay exported until it has returned, so that nobody can resize what it accesses. The result is made of its bytes.
//!
//! **What is checked when.** The program is checked when it is compiled. What kind of argument each parameter takes is decided with the
//! plan; a type that Python does not have is an error of the call, not of the program, which may have other functions. Each call
//! checks the kind of element, the order of bytes, the layout, whether memory may be written, and the range of integers. It converts no
//! array: what does not fit is an exception that says what to write instead. A bare `&[T]` has no length, so nobody checks it;
//! `Slice[T]` checks its indices.
//!
//! A function of numbers that is called with arrays is called for all elements ([broadcast]).
//!
//! **What goes wrong** in called code is an exception, as far as `Function::try_call` of the library for Rust makes it a value.
//!
//! What can wait for its first use is written in Python, beside this crate in `python/nyala`: signatures, structs as NumPy has them, pages.

mod arguments;
mod arrays;
mod broadcast;
mod callbacks;
mod errors;
mod formats;
mod function;
mod memory;
mod owned;
mod plan;
mod program;

use pyo3::prelude::*;

/// The compiled part of `nyala`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<program::Program>()?;
    module.add_class::<function::Function>()?;
    module.add_class::<function::Stats>()?;
    module.add_class::<errors::Diagnostic>()?;
    module.add_function(wrap_pyfunction!(program::compile, module)?)?;
    module.add_function(wrap_pyfunction!(program::_function, module)?)?;
    module.add_function(wrap_pyfunction!(program::flush, module)?)?;
    errors::add(module)
}

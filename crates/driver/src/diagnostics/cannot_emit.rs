//! `nyala emit` cannot show that part of the program in that form.
//!
//! `--fn` shows one function at the stages that have functions of the program by name. A file of code for a driver has the kernels of one
//! platform, so the program must launch kernels there, and on no other platform of that stage.
//!
//! ```sh
//! nyala emit --stage spirv -o kernels.spv program.impala   # program.impala launches no kernel
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala emit --stage flat program.impala
//! ```

use nyala_base::{Diagnostic, Span};

/// The stage shows whole programs only; those in `by_function` show functions, too.
pub fn one_function(stage: &str, by_function: &[&str]) -> Diagnostic {
    let message = format!("`--stage {stage}` cannot show one function by itself");
    Diagnostic::error("cannot-emit", Span::NONE, message)
        .hint(format!("leave out `--fn`, or use it with the stages {}", by_function.join(", ")))
}

/// The program launches no kernel that the stage shows.
pub fn no_kernel(stage: &str) -> Diagnostic {
    Diagnostic::error("cannot-emit", Span::NONE, format!("the program has no kernel for `--stage {stage}`"))
        .hint("launch one on a platform of that stage, and leave out `--device host`")
}

/// One file is asked for, and there are kernels for several platforms.
pub fn several_platforms(stage: &str) -> Diagnostic {
    let message =
        format!("the program has kernels for several platforms of `--stage {stage}`, and a file has those of one");
    Diagnostic::error("cannot-emit", Span::NONE, message)
        .hint("move the kernels of each platform to a program of their own, or emit them as text")
}

/// A kernel calls `name`, which PTX does not have.
pub fn not_in_ptx(span: Span, name: &str) -> Diagnostic {
    let message = format!("PTX does not have `{name}`, a function that only NVIDIA's compiler of CUDA C++ knows");
    Diagnostic::error("cannot-emit", span, message).hint("emit CUDA C++: `--stage cuda`")
}

//! `nyala_compiler`: options, and compiling. Separate from programs, which live on their own.

use crate::failure::{Failure, NyalaError, Status, run};
use crate::handles::{Place, give, of, text};
use crate::program::NyalaProgram;
use nyala_embed::{Check, Compiler, Error, Program};
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::{PoisonError, RwLock};

/// `nyala_compiler`.
pub struct NyalaCompiler(RwLock<Compiler>);

#[unsafe(no_mangle)]
pub extern "C" fn nyala_compiler_new() -> *mut NyalaCompiler {
    crate::failure::or_else(null_mut(), || give(NyalaCompiler(RwLock::new(Compiler::new()))))
}

/// Changes options.
///
/// # Safety
/// The header's conditions.
unsafe fn set(compiler: *mut NyalaCompiler, change: impl FnOnce(Compiler) -> Result<Compiler, Failure>) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        run(null_mut(), || {
            let mut options = of(compiler, "compiler")?.0.write().unwrap_or_else(PoisonError::into_inner);
            *options = change(options.clone())?;
            Ok(())
        })
    }
}

fn bad(what: &str) -> Failure {
    Failure::new(Status::BadArgument, what.into())
}

fn truth(value: c_int) -> Result<bool, Failure> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(bad("neither 0 nor 1")),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_set_level(compiler: *mut NyalaCompiler, level: c_int) -> Status {
    let level = u8::try_from(level).ok().filter(|level| *level <= 3).ok_or_else(|| bad("levels are 0 to 3"));
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.opt_level(level?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_set_cpu(compiler: *mut NyalaCompiler, name: *const c_char) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.cpu(text(name, "name")?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_add_check(compiler: *mut NyalaCompiler, check: c_int) -> Status {
    let check = match check {
        0 => Ok(Check::Bounds),
        1 => Ok(Check::Overflow),
        2 => Ok(Check::Uninitialized),
        _ => Err(bad("there is no such check")),
    };
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.check(check?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_set_partial_evaluation(compiler: *mut NyalaCompiler, heeded: c_int) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.partial_evaluation(truth(heeded)?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_set_budget(compiler: *mut NyalaCompiler, multiple: f64) -> Status {
    let is_right = multiple > 0.0 && multiple.is_finite();
    let multiple = if is_right { Ok(multiple) } else { Err(bad("a budget is a positive number")) };
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.budget(multiple?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_set_wrap(compiler: *mut NyalaCompiler, wraps: c_int) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.wrap(truth(wraps)?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_add_library_folder(
    compiler: *mut NyalaCompiler,
    folder: *const c_char,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.library_folder(text(folder, "folder")?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_define(
    compiler: *mut NyalaCompiler,
    name: *const c_char,
    value: *const c_char,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.define(text(name, "name")?, text(value, "value")?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_allow(compiler: *mut NyalaCompiler, code: *const c_char) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.allow(text(code, "code")?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_deny(compiler: *mut NyalaCompiler, code: *const c_char) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.deny(text(code, "code")?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compiler_set_keep_code(compiler: *mut NyalaCompiler, keep: c_int) -> Status {
    // SAFETY: the header's conditions.
    unsafe { set(compiler, |options| Ok(options.keep_code(truth(keep)?))) }
}

/// Compiles with the options as they are now.
///
/// # Safety
/// The header's conditions.
unsafe fn compile(
    compiler: *const NyalaCompiler,
    program: *mut *mut NyalaProgram,
    error: *mut *mut NyalaError,
    with: impl FnOnce(Compiler) -> Result<Result<Program, Error>, Failure>,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let place = Place::new(program, "program")?;
            // Nobody waits for the lock while it is compiled.
            let options = of(compiler, "compiler")?.0.read().unwrap_or_else(PoisonError::into_inner).clone();
            place.put(give(NyalaProgram::new(with(options)??)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compile_file(
    compiler: *const NyalaCompiler,
    path: *const c_char,
    program: *mut *mut NyalaProgram,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe { compile(compiler, program, error, |options| Ok(options.compile(text(path, "path")?))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compile_source(
    compiler: *const NyalaCompiler,
    name: *const c_char,
    source: *const c_char,
    program: *mut *mut NyalaProgram,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        compile(compiler, program, error, |options| {
            Ok(options.compile_source(text(name, "name")?, text(source, "text")?))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_compile_sources(
    compiler: *const NyalaCompiler,
    count: usize,
    names: *const *const c_char,
    texts: *const *const c_char,
    program: *mut *mut NyalaProgram,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions: there are `count` addresses of texts at each.
    unsafe {
        compile(compiler, program, error, |options| {
            if count == 0 {
                return Err(bad("a program has at least one text"));
            }
            of(names, "names")?;
            of(texts, "texts")?;
            let file = |i: usize| Ok((text(*names.add(i), "names[i]")?, text(*texts.add(i), "texts[i]")?));
            let files = (0..count).map(file).collect::<Result<Vec<_>, Failure>>()?;
            Ok(options.compile_files(&files))
        })
    }
}

//! `nyala_program` and `nyala_function`: what a program exports, and what is shown of it.

use crate::failure::{Diagnostics, Failure, NyalaDiagnostic, NyalaError, Status, run};
use crate::handles::{Place, c_text, give, give_text, of, text};
use crate::types;
use nyala_embed::{Program, Stage, Untyped, guarded};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;

/// `nyala_program`.
pub struct NyalaProgram {
    pub program: Program,
    /// Symbols and declarations of the functions.
    functions: Vec<(CString, Option<CString>)>,
    warnings: Diagnostics,
}

impl NyalaProgram {
    pub fn new(program: Program) -> NyalaProgram {
        let declared = |symbol: &str| Some(c_text(&program.untyped(symbol).ok()?.declaration().ok()?));
        let functions = program.functions().map(|(symbol, _)| (c_text(symbol), declared(symbol))).collect();
        NyalaProgram { functions, warnings: Diagnostics::new(program.warnings()), program }
    }
}

/// `nyala_function`.
pub struct NyalaFunction {
    pub function: Untyped,
    pub declaration: CString,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_function(
    program: *const NyalaProgram,
    symbol: *const c_char,
    ty: *const c_char,
    function: *mut *mut NyalaFunction,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        run(error, || {
            let place = Place::new(function, "function")?;
            let program = &of(program, "program")?.program;
            let (symbol, ty) = (text(symbol, "symbol")?, text(ty, "type")?);
            let function = program.untyped(symbol)?;
            let declaration = function.declaration()?;
            types::compare(symbol, ty, &declaration, program.c_structs())?;
            let declaration = c_text(&declaration);
            place.put(give(NyalaFunction { function, declaration }));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_function_count(program: *const NyalaProgram) -> usize {
    // SAFETY: the header's conditions.
    unsafe { program.as_ref() }.map_or(0, |p| p.functions.len())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_function_symbol(program: *const NyalaProgram, index: usize) -> *const c_char {
    // SAFETY: the header's conditions.
    let found = unsafe { program.as_ref() }.and_then(|p| p.functions.get(index));
    found.map_or(null(), |(symbol, _)| symbol.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_function_declaration(
    program: *const NyalaProgram,
    index: usize,
) -> *const c_char {
    // SAFETY: the header's conditions.
    let found = unsafe { program.as_ref() }.and_then(|p| p.functions.get(index));
    found.and_then(|(_, declaration)| declaration.as_deref()).map_or(null(), CStr::as_ptr)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_warning_count(program: *const NyalaProgram) -> usize {
    // SAFETY: the header's conditions.
    unsafe { program.as_ref() }.map_or(0, |p| p.warnings.len())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_warning(program: *const NyalaProgram, index: usize) -> *const NyalaDiagnostic {
    // SAFETY: the header's conditions.
    unsafe { program.as_ref() }.map_or(null(), |p| p.warnings.at(index))
}

/// Gives a text that is made of a program.
///
/// # Safety
/// The header's conditions.
unsafe fn show(
    program: *const NyalaProgram,
    at: *mut *mut c_char,
    error: *mut *mut NyalaError,
    make: impl FnOnce(&Program) -> Result<String, Failure>,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let place = Place::new(at, "text")?;
            place.put(give_text(&make(&of(program, "program")?.program)?));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_header(
    program: *const NyalaProgram,
    guard: *const c_char,
    at: *mut *mut c_char,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe { show(program, at, error, |program| Ok(program.c_header(macro_name(text(guard, "guard")?)?)?)) }
}

fn macro_name(name: &str) -> Result<&str, Failure> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(is_word) && name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) {
        true => Ok(name),
        false => Err(Failure::new(Status::BadArgument, format!("`{name}` is no name of a macro"))),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_emit(
    program: *const NyalaProgram,
    stage: c_int,
    function: *const c_char,
    at: *mut *mut c_char,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        show(program, at, error, |program| {
            let stage = match stage {
                0 => Stage::Graph,
                1 => Stage::Residual,
                2 => Stage::Flat,
                3 => Stage::Llvm,
                4 => Stage::Assembly,
                5 => Stage::C,
                _ => return Err(Failure::new(Status::BadArgument, "there is no such stage".into())),
            };
            let function = if function.is_null() { None } else { Some(text(function, "function")?) };
            Ok(program.emit(stage, function)?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_explain(
    program: *const NyalaProgram,
    function: *const c_char,
    at: *mut *mut c_char,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe { show(program, at, error, |program| Ok(program.explain(text(function, "function")?)?)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_function_address(function: *const NyalaFunction) -> *const () {
    // SAFETY: the header's conditions.
    unsafe { function.as_ref() }.map_or(null(), |f| f.function.address())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_function_declaration(function: *const NyalaFunction) -> *const c_char {
    // SAFETY: the header's conditions.
    unsafe { function.as_ref() }.map_or(null(), |f| f.declaration.as_ptr())
}

/// Calls what calls functions of programs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_guarded(
    body: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions. Frames of C have nothing to drop.
    unsafe {
        run(error, || {
            let body = body.ok_or_else(|| Failure::null("body"))?;
            guarded(|| body(context)).map_err(Failure::from)
        })
    }
}

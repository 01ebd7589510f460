//! `nyala_partial`: functions with some parameters fixed to values in C's memory.

use crate::failure::{Failure, NyalaError, Status, run};
use crate::handles::{Place, c_text, give, give_text, of, text};
use crate::program::{NyalaFunction, NyalaProgram};
use crate::types;
use nyala_embed::Partial;
use std::ffi::{c_char, c_void};

/// `nyala_partial`.
pub struct NyalaPartial {
    partial: Partial,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_program_partial(
    program: *const NyalaProgram,
    symbol: *const c_char,
    partial: *mut *mut NyalaPartial,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions; C vouches for its calls.
    unsafe {
        run(error, || {
            let place = Place::new(partial, "partial")?;
            let program = &of(program, "program")?.program;
            place.put(give(NyalaPartial { partial: program.partial(text(symbol, "symbol")?)? }));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_partial_fix(
    partial: *const NyalaPartial,
    parameter: *const c_char,
    ty: *const c_char,
    size: usize,
    values: *const c_void,
    count: usize,
    fixed: *mut *mut NyalaPartial,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        run(error, || {
            let place = Place::new(fixed, "fixed")?;
            let partial = &of(partial, "partial")?.partial;
            let (parameter, ty) = (text(parameter, "parameter")?, text(ty, "type")?);
            if values.is_null() && count > 0 {
                return Err(Failure::null("values"));
            }
            let wanted = partial.fixable(parameter)?;
            let known = wanted.size().unwrap_or(0);
            types::compare_value(parameter, (ty, size), (&wanted.text(), known))?;
            place.put(give(NyalaPartial { partial: partial.fix_raw(parameter, values.cast(), count)? }));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_partial_fix_function(
    partial: *const NyalaPartial,
    parameter: *const c_char,
    function: *const NyalaPartial,
    fixed: *mut *mut NyalaPartial,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        run(error, || {
            let place = Place::new(fixed, "fixed")?;
            let partial = &of(partial, "partial")?.partial;
            let function = &of(function, "function")?.partial;
            place.put(give(NyalaPartial { partial: partial.fix(text(parameter, "parameter")?, function)? }));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_partial_build(
    partial: *const NyalaPartial,
    ty: *const c_char,
    function: *mut *mut NyalaFunction,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        run(error, || {
            let place = Place::new(function, "function")?;
            let (partial, ty) = (&of(partial, "partial")?.partial, text(ty, "type")?);
            // The types come first: building takes longer.
            let whole = partial.untyped();
            let declaration = whole.declaration()?;
            types::compare(whole.symbol(), ty, &declaration, partial.program().c_structs())?;
            let function = partial.build_untyped()?;
            let declaration = c_text(&declaration);
            place.put(give(NyalaFunction { function, declaration }));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_partial_explain(
    partial: *const NyalaPartial,
    at: *mut *mut c_char,
    error: *mut *mut NyalaError,
) -> Status {
    // SAFETY: the header's conditions.
    unsafe {
        run(error, || {
            let place = Place::new(at, "text")?;
            place.put(give_text(&of(partial, "partial")?.partial.explain()?));
            Ok(())
        })
    }
}

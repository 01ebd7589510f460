//! Why a call failed, as a status, a text, and diagnostics. Separate from `nyala_embed::Error`, which knows neither NULL nor types
//! of C.

use crate::handles::{c_text, give};
use nyala_embed::{Diagnostic, Error, Fault, Place, Severity};
use std::any::Any;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

/// `nyala_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    Ok = 0,
    NullArgument = 1,
    BadArgument = 2,
    BadProgram = 3,
    NoFunction = 4,
    WrongType = 5,
    System = 6,
    Internal = 7,
    CannotFix = 8,
    Fault = 9,
}

/// Why a call failed.
pub struct Failure {
    status: Status,
    message: String,
    diagnostics: Vec<Diagnostic>,
}

impl Failure {
    pub fn new(status: Status, message: String) -> Failure {
        Failure { status, message, diagnostics: Vec::new() }
    }

    pub fn null(what: &str) -> Failure {
        Failure::new(Status::NullArgument, format!("`{what}` is NULL"))
    }

    fn panicked(panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        Failure::new(Status::Internal, format!("a bug of the compiler: {text}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            Error::Program(_) => Status::BadProgram,
            Error::NoSuchFunction { .. } => Status::NoFunction,
            Error::WrongTypes { .. } => Status::WrongType,
            Error::CannotFix { .. } => Status::CannotFix,
            Error::Fault(_) => Status::Fault,
            Error::System(_) => Status::System,
            _ => Status::Internal,
        };
        Failure { status, message: error.to_string(), diagnostics: error.diagnostics().to_vec() }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        let message = fault.to_string();
        let place = |text: &str| {
            let mut parts = text.rsplitn(3, ':');
            let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Place { file: parts.next()?.into(), line, column, end_line: line, end_column: column })
        };
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            code: fault.code,
            place: fault.place.as_deref().and_then(place),
            rendered: format!("{message}\n"),
            message: fault.message,
            hints: Vec::new(),
        };
        Failure { status: Status::Fault, message, diagnostics: vec![diagnostic] }
    }
}

/// Runs what may fail. If it does, the reason is written to `error`, unless that is NULL.
///
/// # Safety
/// `error` is NULL or can be written.
pub unsafe fn run(error: *mut *mut NyalaError, f: impl FnOnce() -> Result<(), Failure>) -> Status {
    let put = |handle: *mut NyalaError| {
        if !error.is_null() {
            // SAFETY: the caller's promise.
            unsafe { error.write(handle) };
        }
    };
    put(std::ptr::null_mut());
    let failure = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::panicked(&*panic),
    };
    let status = failure.status;
    if !error.is_null() {
        or_else((), || put(give(NyalaError::new(failure))));
    }
    status
}

/// The value of `f`, or this one if it panics.
pub fn or_else<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// `nyala_diagnostic`.
#[repr(C)]
pub struct NyalaDiagnostic {
    severity: c_int,
    code: *const c_char,
    message: *const c_char,
    file: *const c_char,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    hint: *const c_char,
    rendered: *const c_char,
}

/// Diagnostics for C, and their texts.
pub struct Diagnostics {
    all: Vec<NyalaDiagnostic>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead to the texts beside them, which nobody changes.
unsafe impl Send for Diagnostics {}
// SAFETY: as above.
unsafe impl Sync for Diagnostics {}

impl Diagnostics {
    pub fn new(found: &[Diagnostic]) -> Diagnostics {
        let mut texts = Vec::new();
        let mut text = |text: &str| {
            let text = c_text(text);
            // The text does not move when the list grows.
            let at = text.as_ptr();
            texts.push(text);
            at
        };
        let convert = |d: &Diagnostic| {
            let place = d.place.as_ref();
            let (line, column) = place.map_or((0, 0), |p| (p.line, p.column));
            let (end_line, end_column) = place.map_or((0, 0), |p| (p.end_line, p.end_column));
            NyalaDiagnostic {
                severity: match d.severity {
                    Severity::Error => 0,
                    Severity::Warning => 1,
                    Severity::Info => 2,
                },
                code: text(d.code),
                message: text(&d.message),
                file: place.map_or(null(), |p| text(&p.file)),
                line,
                column,
                end_line,
                end_column,
                hint: if d.hints.is_empty() { null() } else { text(&d.hints.join("\n")) },
                rendered: text(&d.rendered),
            }
        };
        Diagnostics { all: found.iter().map(convert).collect(), _texts: texts }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// NULL if there is none of this number.
    pub fn at(&self, index: usize) -> *const NyalaDiagnostic {
        self.all.get(index).map_or(null(), |d| d)
    }
}

/// `nyala_error`.
pub struct NyalaError {
    status: Status,
    message: CString,
    diagnostics: Diagnostics,
}

impl NyalaError {
    fn new(failure: Failure) -> NyalaError {
        let Failure { status, mut message, diagnostics } = failure;
        if !message.ends_with('\n') {
            message.push('\n');
        }
        NyalaError { status, message: c_text(&message), diagnostics: Diagnostics::new(&diagnostics) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_error_status(error: *const NyalaError) -> Status {
    // SAFETY: the header's conditions.
    unsafe { error.as_ref() }.map_or(Status::Ok, |e| e.status)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_error_message(error: *const NyalaError) -> *const c_char {
    // SAFETY: the header's conditions.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |e| e.message.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_error_diagnostic_count(error: *const NyalaError) -> usize {
    // SAFETY: the header's conditions.
    unsafe { error.as_ref() }.map_or(0, |e| e.diagnostics.len())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_error_diagnostic(error: *const NyalaError, index: usize) -> *const NyalaDiagnostic {
    // SAFETY: the header's conditions.
    unsafe { error.as_ref() }.map_or(null(), |e| e.diagnostics.at(index))
}

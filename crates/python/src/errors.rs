//! Exceptions, and what they are made of. Separate from where they are raised, so that each has one form.

use nyala_embed::Severity;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyTypeError};
use pyo3::prelude::*;

create_exception!(nyala, Error, PyException, "What goes wrong in Nyala.");
create_exception!(
    nyala,
    CompileError,
    Error,
    "A program is wrong, or needs what the compiler does not do yet. `diagnostics` has all that was found; the text is what the command \
     `nyala` shows."
);
create_exception!(
    nyala,
    Fault,
    Error,
    "Called code did not return. `code` is `panic`, `exit`, `device`, or the code of a check; `message` is the fault in a sentence; \
     `place` is where it is in the program, as `file:line:column`, or None; `exit_code` is what `exit` was called with, or None."
);
create_exception!(nyala, InternalError, Error, "A bug of the compiler's.");

/// Adds the exceptions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("CompileError", py.get_type::<CompileError>())?;
    module.add("Fault", py.get_type::<Fault>())?;
    module.add("InternalError", py.get_type::<InternalError>())
}

/// What the compiler says about a program.
#[pyclass(frozen, module = "nyala", get_all)]
pub struct Diagnostic {
    /// `error`, `warning` or `info`.
    severity: &'static str,
    /// The name of the fault; `docs/errors` explains each.
    code: &'static str,
    /// The fault in a sentence.
    message: String,
    /// The file, or None if it is at no place of a source.
    file: Option<String>,
    /// The line, from 1 on.
    line: Option<usize>,
    /// The column in characters, from 1 on.
    column: Option<usize>,
    /// The line of the end.
    end_line: Option<usize>,
    /// The column of the character after the last one.
    end_column: Option<usize>,
    /// What helps.
    hints: Vec<String>,
    /// All of this as the command shows it.
    rendered: String,
}

#[pymethods]
impl Diagnostic {
    fn __repr__(&self) -> String {
        let place = self.file.as_ref().zip(self.line.zip(self.column));
        let place = place.map_or(String::new(), |(file, (line, column))| format!(" at {file}:{line}:{column}"));
        format!("<{}[{}]: {}{place}>", self.severity, self.code, self.message)
    }

    fn __str__(&self) -> &str {
        self.rendered.trim_end()
    }
}

impl Diagnostic {
    pub fn of(d: &nyala_embed::Diagnostic) -> Diagnostic {
        let place = d.place.as_ref();
        Diagnostic {
            severity: match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "info",
            },
            code: d.code,
            message: d.message.clone(),
            file: place.map(|p| p.file.clone()),
            line: place.map(|p| p.line),
            column: place.map(|p| p.column),
            end_line: place.map(|p| p.end_line),
            end_column: place.map(|p| p.end_column),
            hints: d.hints.clone(),
            rendered: d.rendered.clone(),
        }
    }
}

/// The exception of an error.
pub fn raised(py: Python<'_>, error: &nyala_embed::Error) -> PyErr {
    let text = error.to_string();
    let text = text.trim_end().to_string();
    use nyala_embed::Error as E;
    match error {
        E::Program(found) => {
            let raised = CompileError::new_err(text);
            let diagnostics: Vec<Diagnostic> = found.iter().map(Diagnostic::of).collect();
            // Without the list there is the text still.
            let _ = raised.value(py).setattr("diagnostics", diagnostics);
            raised
        }
        E::Fault(fault) => faulted(py, fault),
        E::CannotFix { .. } | E::WrongTypes { .. } => PyTypeError::new_err(text),
        E::System(_) => PyOSError::new_err(text),
        E::Bug(_) => InternalError::new_err(text),
        _ => Error::new_err(text),
    }
}

/// The exception of code that did not return.
pub fn faulted(py: Python<'_>, fault: &nyala_embed::Fault) -> PyErr {
    let raised = Fault::new_err(fault.to_string());
    let value = raised.value(py);
    // Without them there is the text still.
    let _ = value.setattr("code", fault.code);
    let _ = value.setattr("message", &fault.message);
    let _ = value.setattr("place", fault.place.as_deref());
    let _ = value.setattr("rendered", &fault.rendered);
    let _ = value.setattr("exit_code", fault.exit_code);
    raised
}

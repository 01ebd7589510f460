//! What can go wrong, as values. Separate from the compiler's own diagnostics, whose places need the texts of the program.

use nyala_driver::Report;
use nyala_runtime::Ending;
use std::fmt;

/// Why there is no program, or no function.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The program is wrong, cannot be read, or needs what the compiler does not do yet. At least one diagnostic is an error.
    Program(Vec<Diagnostic>),
    /// The program exports no function of this name.
    NoSuchFunction {
        /// The name.
        name: String,
        /// The functions that it exports, as it writes them.
        exported: Vec<String>,
    },
    /// A function has other types than those asked for.
    WrongTypes {
        /// The name of the function.
        name: String,
        /// The types asked for, as Impala writes them.
        here: String,
        /// The function as the program writes it.
        in_program: String,
        /// The first difference, in words.
        difference: String,
    },
    /// A parameter cannot be fixed to a value.
    CannotFix {
        /// The name of the function.
        name: String,
        /// The name of the parameter.
        parameter: String,
        /// Why, in words.
        why: String,
    },
    /// A function cannot be called without `unsafe`: see [`Program::checked_function`](crate::Program::checked_function).
    NeedsUnsafe {
        /// The name of the function.
        name: String,
        /// Why, in words.
        why: String,
    },
    /// Code that was called did not return.
    Fault(Fault),
    /// The system or the installation lacks something: a thread, memory, the library of LLVM.
    System(String),
    /// A bug of the compiler's.
    Bug(String),
}

impl Error {
    /// The diagnostics of a program that is wrong; otherwise none.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Error::Program(found) => found,
            _ => &[],
        }
    }

    pub(crate) fn of(report: &Report) -> Error {
        Error::Program(diagnostics(report))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Program(found) => found.iter().try_for_each(|d| f.write_str(&d.rendered)),
            Error::NoSuchFunction { name, exported } if exported.is_empty() => {
                write!(f, "the program exports no function `{name}`, nor any other: `extern fn` exports one")
            }
            Error::NoSuchFunction { name, exported } => {
                write!(f, "the program exports no function `{name}`; it exports:")?;
                exported.iter().try_for_each(|function| write!(f, "\n    {function}"))
            }
            Error::WrongTypes { name, here, in_program, difference } => write!(
                f,
                "`{name}` has other types: {difference}\n    here:           {here}\n    in the program: {in_program}"
            ),
            Error::CannotFix { name, parameter, why } => write!(f, "cannot fix `{parameter}` of `{name}`: {why}"),
            Error::NeedsUnsafe { name, why } => write!(f, "`{name}` cannot be called without `unsafe`: {why}"),
            Error::Fault(fault) => fault.fmt(f),
            Error::System(why) => f.write_str(why),
            Error::Bug(why) => write!(f, "a bug of the compiler: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Fault(fault)
    }
}

/// Why code that was called did not return: see [`Function::try_call`](crate::Function::try_call).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What went wrong: `panic`, `exit`, `device`, or the code of a check, as in `invalid-access`.
    pub code: &'static str,
    /// The fault in a sentence.
    pub message: String,
    /// Where it is in the program, `file:line:column`, if that is known.
    pub place: Option<String>,
    /// What an executable would print, ending with the end of a line; empty for `exit`.
    pub rendered: String,
    /// The code that the program wanted the process to end with, if it called `exit`.
    pub exit_code: Option<i32>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.rendered.is_empty() { &self.message } else { self.rendered.trim_end() })
    }
}

impl std::error::Error for Fault {}

impl From<Ending> for Fault {
    fn from(ending: Ending) -> Fault {
        let Ending { code, message, place, text, exit } = ending;
        Fault { code, message, place, rendered: text, exit_code: exit.filter(|_| code == "exit") }
    }
}

/// How grave a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// There is no program.
    Error,
    /// Probably a mistake.
    Warning,
    /// Worth knowing.
    Info,
}

/// A range of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was given.
    pub file: String,
    /// The line, from 1 on.
    pub line: usize,
    /// The column in characters, from 1 on.
    pub column: usize,
    /// The line of the end.
    pub end_line: usize,
    /// The column of the character after the last one.
    pub end_column: usize,
}

/// Something that the compiler says about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How grave it is.
    pub severity: Severity,
    /// The name of the fault, as in `type-mismatch`; `docs/errors` explains each.
    pub code: &'static str,
    /// The fault in a sentence.
    pub message: String,
    /// Where it is, if it is at a place of a source.
    pub place: Option<Place>,
    /// What helps.
    pub hints: Vec<String>,
    /// All of this as the command shows it, with the lines of the source, ending with the end of a line.
    pub rendered: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.rendered)
    }
}

pub(crate) fn diagnostics(report: &Report) -> Vec<Diagnostic> {
    let sources = &report.sources;
    let convert = |d: &nyala_base::Diagnostic| {
        let span = d.primary.span;
        let place = (!span.is_none()).then(|| {
            let (line, column) = sources.line_col(span);
            let (end_line, end_column) = sources.line_col(nyala_base::Span { lo: span.hi, ..span });
            Place { file: sources.name(span.file).to_string(), line, column, end_line, end_column }
        });
        Diagnostic {
            severity: match d.severity {
                nyala_base::Severity::Error => Severity::Error,
                nyala_base::Severity::Warning => Severity::Warning,
                nyala_base::Severity::Info => Severity::Info,
            },
            code: d.code,
            message: d.message.clone(),
            place,
            hints: d.hints.clone(),
            rendered: d.render(sources, false),
        }
    };
    report.sink.diagnostics.iter().map(convert).collect()
}

//! Functions without Rust types, for whoever makes another language's handles of them: their addresses, and how C declares them.
//! Separate from typed handles, which compare types themselves.

use crate::error::Error;
use crate::program::Program;
use nyala_base::Diagnostic;
use nyala_sema::Signature;

/// An exported function whose types nobody has compared. It keeps the program's code alive.
#[derive(Clone, Debug)]
pub struct Untyped {
    program: Program,
    index: usize,
}

impl Program {
    /// An exported function by its symbol, without a comparison of types.
    ///
    /// # Errors
    /// There is no such function.
    ///
    /// ```
    /// let program = nyala_embed::Program::from_source("half.impala", "extern fn half(x: f64) -> f64 { x / 2.0 }")?;
    /// let half = program.untyped("half")?;
    /// assert_eq!(half.text(), "fn half(x: f64) -> f64");
    /// assert_eq!(half.declaration()?, "double half(double x)");
    /// # Ok::<(), nyala_embed::Error>(())
    /// ```
    pub fn untyped(&self, name: &str) -> Result<Untyped, Error> {
        Ok(Untyped { index: self.find(name)?, program: self.clone() })
    }

    /// The header for C of the exported functions, as `nyala build -o x.h` makes it, guarded by the macro `guard`.
    ///
    /// # Errors
    /// A function has a type that C does not have.
    pub fn c_header(&self, guard: &str) -> Result<String, Error> {
        self.header().text(guard).map_err(|fault| self.error(&fault))
    }

    /// The structs of that header, as C text: definitions, `#ifndef` and comments.
    pub fn c_structs(&self) -> &str {
        &self.header().structs
    }

    fn error(&self, fault: &Diagnostic) -> Error {
        Error::of(&self.graph().0.report.clone().report(fault.clone()))
    }
}

impl Untyped {
    fn signature(&self) -> &Signature {
        &self.program.signatures().functions[self.index]
    }

    /// Where the function is. It has C's convention, and is there as long as this handle or a clone lives.
    pub fn address(&self) -> *const () {
        std::ptr::with_exposed_provenance(self.program.address(&self.signature().symbol))
    }

    /// The function as the program writes it.
    pub fn text(&self) -> &str {
        &self.signature().text
    }

    /// How C declares the function.
    ///
    /// # Errors
    /// It has a type that C does not have.
    pub fn declaration(&self) -> Result<&str, Error> {
        match &self.program.header().functions[self.index].declaration {
            Ok(text) => Ok(text),
            Err(fault) => Err(self.program.error(fault)),
        }
    }

    /// The program that it belongs to.
    pub fn program(&self) -> &Program {
        &self.program
    }
}

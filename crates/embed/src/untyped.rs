//! Functions without Rust types, for whoever makes another language's handles of them: their addresses, and how C declares them.
//! Separate from typed handles, which compare types themselves.

use crate::error::{Error, Fault};
use crate::partial::Partial;
use crate::program::Program;
use crate::variants::Variant;
use nyala_base::Diagnostic;
use std::sync::Arc;

/// An exported function whose types nobody has compared. It keeps the program's code alive.
#[derive(Clone)]
pub struct Untyped {
    /// The function, and what of it is fixed.
    partial: Partial,
    /// Its code, if that is not the program's.
    variant: Option<Arc<Variant>>,
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
        Ok(Untyped::of(Partial::new(self.clone(), self.find(name)?)))
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
    pub(crate) fn of(partial: Partial) -> Untyped {
        Untyped { partial, variant: None }
    }

    /// The function's symbol.
    pub fn symbol(&self) -> &str {
        &self.partial.signature().symbol
    }

    pub(crate) fn of_variant(partial: Partial, variant: Arc<Variant>) -> Untyped {
        Untyped { partial, variant: Some(variant) }
    }

    /// Where the function is. It has C's convention, and is there as long as this handle or a clone lives.
    pub fn address(&self) -> *const () {
        std::ptr::with_exposed_provenance(match &self.variant {
            Some(variant) => variant.address(),
            None => self.program().address(&self.partial.signature().symbol),
        })
    }

    /// The function as the program writes it; the parameters that are fixed are among its parameters.
    pub fn text(&self) -> &str {
        &self.partial.signature().text
    }

    /// How C declares the function, with the parameters that are not fixed.
    ///
    /// # Errors
    /// It has a type that C does not have.
    pub fn declaration(&self) -> Result<String, Error> {
        let program = self.program();
        let declared = &program.header().functions[self.partial.number()];
        declared.declaration(&self.partial.fixed_parameters()).map_err(|fault| program.error(&fault))
    }

    /// The program that it belongs to.
    pub fn program(&self) -> &Program {
        self.partial.program()
    }
}

/// Calls `f`, and returns what goes wrong in code of programs that it calls, as [`Function::try_call`](crate::Function::try_call) does
/// for one call.
///
/// # Safety
/// Between this call and code of programs nothing must be dropped or undone: a fault goes back past all frames in between.
///
/// # Errors
/// The fault.
pub unsafe fn guarded(f: impl FnOnce()) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe { nyala_runtime::guarded(f) }.map_err(Fault::from)
}

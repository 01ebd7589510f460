//! Functions without Rust types, for whoever makes another language's handles of them: their addresses, and how C declares them.
//! Separate from typed handles, which compare types themselves.

use crate::error::{Error, Fault};
use crate::partial::Partial;
use crate::program::Program;
use crate::variants::{Shims, Stats, Variant};
use nyala_base::Diagnostic;
use nyala_driver::shims::Elements;
use nyala_sema::ExportedType;
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

    /// The comment above it in the program; empty if there is none.
    pub fn comment(&self) -> String {
        self.program().header().functions[self.partial.number()].text_of_comment()
    }

    /// Names, empty ones among them, and types of the parameters that are not fixed.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &ExportedType)> {
        self.partial.parameters_left()
    }

    /// The type of the result.
    pub fn result(&self) -> &ExportedType {
        &self.partial.signature().result
    }

    /// The program that it belongs to.
    pub fn program(&self) -> &Program {
        self.partial.program()
    }

    /// The function, and what of it is fixed.
    ///
    /// # Safety
    /// As for [`Program::partial`].
    pub unsafe fn partial(&self) -> &Partial {
        &self.partial
    }

    /// What a variant took to build; `None` for a function of the program itself.
    pub fn stats(&self) -> Option<Stats> {
        let variant = self.variant.as_ref()?;
        variant.code(self.program()).ok().map(|built| built.stats.clone())
    }

    /// What partial evaluation did in it, and why.
    ///
    /// # Errors
    /// As for [`Program::explain`].
    pub fn explain(&self) -> Result<String, Error> {
        match &self.variant {
            None => self.program().explain(self.symbol()),
            Some(_) => self.partial.explain(),
        }
    }

    /// What partial evaluation did, as a page in HTML like that of [`Program::explain_html`]: of the program, or of the variant.
    ///
    /// # Errors
    /// As there.
    pub fn explain_html(&self) -> Result<String, Error> {
        match &self.variant {
            None => self.program().explain_html(),
            Some(_) => Variant::explain_html(self.program(), self.partial.key()),
        }
    }

    /// What calls it with arguments in memory. The first time, this takes a few milliseconds. A function is two addresses there: of a C
    /// function, and of the environment that is its first argument.
    ///
    /// # Errors
    /// It has a parameter that is a function which takes or gives functions.
    ///
    /// ```
    /// let program = nyala_embed::Program::from_source("half.impala", "extern fn half(x: f64) -> f64 { x / 2.0 }")?;
    /// let half = program.untyped("half")?.in_memory()?;
    /// let (x, mut result) = (3.0f64, 0f64);
    /// // SAFETY: argument and result are of the function's types.
    /// unsafe { half.try_call(&[(&raw const x).cast(), (&raw mut result).cast()]) }?;
    /// assert_eq!(result, 1.5);
    /// # Ok::<(), nyala_embed::Error>(())
    /// ```
    pub fn in_memory(&self) -> Result<InMemory, Error> {
        let fixed = self.partial.fixed_parameters();
        let shim = self.shims().call(self.program(), self.symbol(), &fixed, self.address().addr())?;
        Ok(InMemory { shim, function: self.clone() })
    }

    /// For the `i`-th parameter that is left, which is a function: the address of a C function of its type that gives what it gets to
    /// `received`, with the environment that comes with it: the addresses of the arguments, then of the result. `received` writes that.
    ///
    /// # Errors
    /// It is no function of numbers, `bool`s, pointers, structs, tuples and arrays.
    pub fn receiver(
        &self,
        i: usize,
        received: unsafe extern "C" fn(environment: *const (), addresses: *const *mut ()),
    ) -> Result<usize, Error> {
        let fixed = self.partial.fixed_parameters();
        let mut left = (0..self.partial.n_parameters()).filter(|param| !fixed.contains(param));
        let param = left.nth(i).ok_or_else(|| Error::Bug("a receiver of no parameter".into()))?;
        // Receivers depend on the function only, whatever is fixed.
        let shims = self.program().shims(self.partial.number());
        shims.receiver(self.program(), self.symbol(), param, received as usize)
    }

    fn shims(&self) -> &Shims {
        match &self.variant {
            Some(variant) => variant.shims(),
            None => self.program().shims(self.partial.number()),
        }
    }

    /// A loop that calls it for elements of arrays, with its code in it. It is compiled once for equal `elements`.
    ///
    /// # Errors
    /// It takes or returns something else than numbers, or does not compile as part of a loop.
    ///
    /// ```
    /// use nyala_embed::{Elements, Program};
    ///
    /// let program = Program::from_source("scale.impala", "extern fn scale(x: f32, by: f32) -> f32 { x * by }")?;
    /// let scale = program.untyped("scale")?.element_loop(Elements { single: 0b10, side_by_side: true })?;
    /// let (x, by, mut out) = ([1f32, 2.0, 3.0], 10f32, [0f32; 3]);
    /// // SAFETY: arguments and results are of the function's types; the arrays have three elements.
    /// unsafe { scale.try_call(|run| run(&[x.as_ptr().cast(), (&raw const by).cast(), out.as_mut_ptr().cast()], &[1, 0, 1], 3)) }?;
    /// assert_eq!(out, [10.0, 20.0, 30.0]);
    /// # Ok::<(), nyala_embed::Error>(())
    /// ```
    pub fn element_loop(&self, elements: Elements) -> Result<ElementLoop, Error> {
        let address = self.shims().element_loop(self.program(), self.partial.key(), elements)?;
        Ok(ElementLoop { address, _function: self.clone() })
    }
}

/// A loop that calls a function for elements of arrays.
#[derive(Clone)]
pub struct ElementLoop {
    address: usize,
    /// What keeps the code.
    _function: Untyped,
}

impl ElementLoop {
    /// Calls `f` with a function that runs the loop: it takes the addresses of the first elements, of each parameter and of the result;
    /// the distances between elements, in elements; and their number. Returns what goes wrong, as for [`InMemory::try_call`].
    ///
    /// # Safety
    /// So many elements of the types of parameters and result are there. `f` owns nothing that has to be dropped while it calls.
    ///
    /// # Errors
    /// The fault.
    pub unsafe fn try_call(&self, f: impl FnOnce(&dyn Fn(&[*const ()], &[i64], i64))) -> Result<(), Fault> {
        let run = |addresses: &[*const ()], strides: &[i64], n: i64| {
            // SAFETY: a loop has this type; its function lives.
            unsafe {
                let run: extern "C" fn(*const *const (), *const i64, i64) = std::mem::transmute(self.address);
                run(addresses.as_ptr(), strides.as_ptr(), n);
            }
        };
        // SAFETY: the caller's promise.
        unsafe { nyala_runtime::guarded(|| f(&run)) }.map_err(Fault::from)
    }
}

/// A function that is called with arguments in memory, for callers that learn its type only at run time.
#[derive(Clone)]
pub struct InMemory {
    shim: usize,
    function: Untyped,
}

impl InMemory {
    /// The function.
    pub fn function(&self) -> &Untyped {
        &self.function
    }

    /// Calls the function, and returns what goes wrong in it, as [`Function::try_call`](crate::Function::try_call) does.
    ///
    /// # Safety
    /// There is an address for each parameter that is left, of a value of its type with C's layout, and one more for a result, where it can
    /// be written. The caller vouches for the call, as the caller of [`Program::function`] does for all.
    ///
    /// # Errors
    /// The fault.
    pub unsafe fn try_call(&self, addresses: &[*const ()]) -> Result<(), Fault> {
        // SAFETY: a shim has this type; the function lives; the rest is the caller's promise. Nothing is dropped in between.
        unsafe {
            let shim: extern "C" fn(*const *const ()) = std::mem::transmute(self.shim);
            nyala_runtime::guarded(|| shim(addresses.as_ptr())).map_err(Fault::from)
        }
    }
}

/// Frees memory that a program has allocated, as its own `free` does; null is allowed.
///
/// # Safety
/// A program has allocated it, nobody frees it again or uses it any more.
pub unsafe fn free(memory: *mut ()) {
    // SAFETY: the caller's promise.
    unsafe { nyala_runtime::nyala_free(memory.cast()) }
}

/// Ends the call of a program that has called this thread's code back, as a panic with a message in the program does.
///
/// # Safety
/// Between the program's code and this call nothing must be dropped or undone.
pub unsafe fn panic(message: &std::ffi::CStr) -> ! {
    // SAFETY: a text with a zero byte at its end.
    unsafe { nyala_runtime::nyala_panic(message.as_ptr().cast()) }
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

//! Programs in memory, and handles of their functions. Separate from compiling: what is here lives as long as somebody calls it.

use crate::arguments::{Args, Return};
use crate::code::Code;
use crate::compiler::{Compiler, on_large_stack};
use crate::error::{Diagnostic, Error, Fault, diagnostics};
use crate::fixed::Fix;
use crate::partial::Partial;
use crate::shape::{difference, text_of};
use crate::variants::{Kept, Shims, Stats, Variant, Variants};
use nyala_checks::Checks;
use nyala_driver::run::Loaded;
use nyala_driver::variants::STATICS;
use nyala_driver::{Files, FrontEnd, Graph, Options, Report, explain};
use nyala_ir::Global;
use nyala_sema::{ExportedType, Header, Signature, Signatures};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

/// A compiled program in memory. Clones share the code, which lives until the last clone and the last [`Function`] are gone.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

struct Inner {
    options: Options,
    files: Files,
    /// What variants are made of.
    graph: Graph,
    /// The program's variables, and where they are.
    statics: Vec<(Global, u64)>,
    variants: Kept,
    /// What the addresses are in.
    _code: Code,
    signatures: Signatures,
    /// The functions as C sees them.
    header: Header,
    /// Where the functions are, in the order of the signatures.
    addresses: Vec<usize>,
    /// What calls them with arguments in memory.
    shims: Vec<Shims>,
    warnings: Vec<Diagnostic>,
}

/// A form that a program has on its way, which [`Program::emit`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The graph before partial evaluation.
    Graph,
    /// The graph after partial evaluation.
    Residual,
    /// Flat SSA.
    Flat,
    /// LLVM's text, optimized.
    Llvm,
    /// Assembly.
    Assembly,
    /// C text. It has no single functions.
    C,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Graph => "graph",
            Stage::Residual => "residual",
            Stage::Flat => "flat",
            Stage::Llvm => "llvm",
            Stage::Assembly => "asm",
            Stage::C => "c",
        }
    }
}

impl Program {
    /// Links the code, which must be that of the signatures.
    pub(crate) fn new(
        files: Files,
        graph: Graph,
        variables: &[Global],
        loaded: Loaded,
        signatures: Signatures,
        header: Header,
        n_variants: usize,
    ) -> Result<Program, Error> {
        let lookup = |symbol: &str| loaded.jit.lookup(symbol).map_err(|d| Error::of(&Report::default().report(*d)));
        let addresses: Vec<usize> = signatures.functions.iter().map(|f| lookup(&f.symbol)).collect::<Result<_, _>>()?;
        let mut statics = vec![0u64; variables.len()];
        if !variables.is_empty() {
            let address = lookup(STATICS)?;
            // SAFETY: a function of this symbol writes as many addresses as there are variables.
            unsafe {
                let tell: extern "C" fn(*mut u64) = std::mem::transmute(address);
                tell(statics.as_mut_ptr());
            }
        }
        let inner = Inner {
            options: graph.options.clone(),
            files,
            graph,
            statics: variables.iter().copied().zip(statics).collect(),
            variants: Kept::new(n_variants, signatures.functions.iter().map(|f| f.params.len())),
            _code: Code::new(loaded.jit),
            signatures,
            header,
            shims: addresses.iter().map(|_| Shims::default()).collect(),
            addresses,
            warnings: diagnostics(&loaded.report),
        };
        Ok(Program { inner: Arc::new(inner) })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.inner.header
    }

    /// The graph that variants are made of, and where the program's variables are.
    pub(crate) fn graph(&self) -> (&Graph, &[(Global, u64)]) {
        (&self.inner.graph, &self.inner.statics)
    }

    pub(crate) fn kept(&self) -> &Kept {
        &self.inner.variants
    }

    /// Where an exported function is.
    pub(crate) fn address(&self, symbol: &str) -> usize {
        let index = self.signatures().functions.iter().position(|f| f.symbol == symbol);
        index.map_or(0, |index| self.inner.addresses[index])
    }

    /// What calls a function, by its position, with arguments in memory.
    pub(crate) fn shims(&self, function: usize) -> &Shims {
        &self.inner.shims[function]
    }

    /// The types of the exported functions, and the structs that they use.
    pub fn signatures(&self) -> &Signatures {
        &self.inner.signatures
    }

    /// Whether both are the same program.
    pub(crate) fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Compiles a file with the usual options; [`Compiler`] has others.
    ///
    /// # Errors
    /// As for [`Compiler::compile`].
    pub fn compile(path: impl AsRef<Path>) -> Result<Program, Error> {
        Compiler::new().compile(path)
    }

    /// Compiles a text with the usual options. Its name is for diagnostics.
    ///
    /// # Errors
    /// As for [`Compiler::compile`].
    ///
    /// ```
    /// use nyala_embed::{Error, Program};
    ///
    /// let Err(Error::Program(found)) = Program::from_source("f.impala", "extern fn f() -> i32 { 1f }") else { panic!() };
    /// assert_eq!(found[0].code, "type-mismatch");
    /// let place = found[0].place.as_ref().expect("it is at a place");
    /// assert_eq!((place.file.as_str(), place.line, place.column), ("f.impala", 1, 24));
    /// ```
    pub fn from_source(name: &str, text: &str) -> Result<Program, Error> {
        Compiler::new().compile_source(name, text)
    }

    /// What the compiler said about the program.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.inner.warnings
    }

    /// The exported functions, as the program writes them: `fn f(x: i32) -> i32`, by their symbols.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inner.signatures.functions.iter().map(|f| (f.symbol.as_str(), f.text.as_str()))
    }

    /// A handle of an exported function, whose types are compared with those of the program.
    ///
    /// # Safety
    /// The types of calls are checked, what the function does is not. Whoever makes a handle vouches for each of its calls:
    ///
    /// - the function accesses no elements behind the end of what it is given, though [`In`](crate::In) and [`Out`](crate::Out)
    ///   do not tell it the length, and nothing but that and memory of its own;
    /// - it neither keeps what it is given after its return, nor reads what is not initialized;
    /// - if several threads call it at once, its statics allow that;
    /// - foreign functions that it calls may be called so, and pointers in its result are used as the program means them.
    ///
    /// # Errors
    /// There is no such function, or it has other types.
    ///
    /// ```
    /// use nyala_embed::{Error, Program};
    ///
    /// let program = Program::from_source("half.impala", "extern fn half(x: f64) -> f64 { x / 2.0 }")?;
    /// // SAFETY: `half` accesses no memory.
    /// let half = unsafe { program.function::<(f64,), f64>("half") }?;
    /// assert_eq!(half.call((3.0,)), 1.5);
    /// // SAFETY: as above.
    /// let Err(wrong) = (unsafe { program.function::<(f32,), f64>("half") }) else { panic!() };
    /// assert_eq!(wrong.to_string(), "\
    /// `half` has other types: parameter `x` is `f32` here, `f64` in the program
    ///     here:           fn half(f32) -> f64
    ///     in the program: fn half(x: f64) -> f64");
    /// # Ok::<(), Error>(())
    /// ```
    pub unsafe fn function<A: Args, R: Return>(&self, name: &str) -> Result<Function<A, R>, Error> {
        let index = self.find(name)?;
        let signature = &self.signatures().functions[index];
        let params: Vec<_> = signature.params.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
        check_types::<A, R>(signature, &params, self.signatures())?;
        let (address, of) = (self.inner.addresses[index], Of::Program(index));
        Ok(Function { address, of, program: self.clone(), types: PhantomData })
    }

    /// An exported function to fix parameters of. It may have parameters that only Impala has, functions, if these are fixed.
    ///
    /// # Safety
    /// The caller vouches for each call of a handle that is built from the result, as the caller of [`Program::function`] does.
    ///
    /// # Errors
    /// There is no such function.
    pub unsafe fn partial(&self, name: &str) -> Result<Partial, Error> {
        Ok(Partial::new(self.clone(), self.find(name)?))
    }

    /// A handle without `unsafe`: an exported function, compiled anew so that it accesses nothing but what its calls lend it.
    ///
    /// The program is compiled with [`Check::Bounds`](crate::Check) and [`Check::Overflow`](crate::Check), for this CPU. Parameters are numbers, `bool`s, structs and arrays
    /// of these, [`Slice`](crate::Slice) and [`MutSlice`](crate::MutSlice), the latter not of `bool`s; results are values without
    /// addresses, and structs without `bool`s. What the code may not do, docs/embedding.md lists: foreign functions, memory of its own on the heap, `static mut`, threads.
    ///
    /// The function may write any number to what is lent it, and return any. So a struct with a [`Type`](derive@crate::Type) whose fields
    /// must agree for code that relies on that does not belong in such a call.
    ///
    /// # Errors
    /// There is no such function, it has other types, or it cannot be called without `unsafe`: [`Error::NeedsUnsafe`] tells of types and
    /// checks, [`Error::Program`] of the place in the program that is in the way.
    ///
    /// ```
    /// use nyala_embed::{Check, Compiler, Error, In, MutSlice, Slice};
    ///
    /// let program = Compiler::new().check(Check::Bounds).check(Check::Overflow).compile_source("scale.impala", "
    ///     use std::slice::*;
    ///     extern fn scale(a: Slice[f32], b: MutSlice[f32], by: f32) -> () { for i in range(0i64, b.length) { b(i) = a(i) * by; } }
    ///     extern fn first(a: &[f32]) -> f32 { a(0) }
    /// ")?;
    /// let scale = program.checked_function::<(Slice<f32>, MutSlice<f32>, f32), ()>("scale")?;
    /// let mut out = [0.0; 3];
    /// scale.call((&[1.0, 2.0, 3.0], &mut out, 10.0));
    /// assert_eq!(out, [10.0, 20.0, 30.0]);
    ///
    /// let Err(refused) = program.checked_function::<(In<f32>,), f32>("first") else { panic!() };
    /// assert_eq!(refused.to_string(), "\
    /// `first` cannot be called without `unsafe`: parameter `a` is `&[f32]`, whose length nobody knows: take a `Slice[f32]`");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn checked_function<A: Args, R: Return>(&self, name: &str) -> Result<Function<A, R>, Error> {
        self.checked_partial(name)?.build()
    }

    /// An exported function to fix parameters of, without `unsafe`, as for [`Program::checked_function`]. Its variants are like that, too;
    /// its parameters may be functions, if these are fixed.
    ///
    /// # Errors
    /// There is no such function, or the program is not compiled with the checks. [`Partial::build`] has the other errors.
    pub fn checked_partial(&self, name: &str) -> Result<Partial, Error> {
        let function = self.find(name)?;
        let options = &self.inner.options;
        let why = match options {
            Options { wrap: true, .. } => "the program's arithmetic wraps around",
            Options { cpu: Some(_), .. } => "the program is compiled for a CPU that may be another one",
            Options { checks: Checks { bounds: true, overflow: true, .. }, .. } => "",
            _ => "the program is compiled without `Check::Bounds` or `Check::Overflow`",
        };
        if !why.is_empty() {
            return Err(Error::NeedsUnsafe { name: name.into(), why: why.into() });
        }
        Ok(Partial::confined(self.clone(), function))
    }

    /// Counts of the variants that [`Partial::build`] has made.
    pub fn variants(&self) -> Variants {
        self.inner.variants.counts()
    }

    /// The position of an exported function.
    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        let all = &self.signatures().functions;
        all.iter().position(|f| f.symbol == name).ok_or_else(|| {
            let exported = all.iter().map(|f| f.text.clone()).collect();
            Error::NoSuchFunction { name: name.into(), exported }
        })
    }

    /// The program at a stage as text, or one function of it. The program is compiled anew: from the texts that were given, and
    /// from libraries as they are now.
    ///
    /// # Errors
    /// The program has no such function at this stage.
    pub fn emit(&self, stage: Stage, function: Option<&str>) -> Result<String, Error> {
        let Inner { options, files, .. } = &*self.inner;
        on_large_stack(|| match nyala_driver::emit(options, files, stage.name(), function) {
            Ok((text, _)) => Ok(text),
            Err(failed) => Err(Error::of(&failed)),
        })
    }

    /// What partial evaluation did in a function, and why: the text of `nyala explain --fn`. The program is compiled anew, as
    /// for [`Program::emit`].
    ///
    /// # Errors
    /// The program has no such function.
    pub fn explain(&self, function: &str) -> Result<String, Error> {
        let Inner { options, files, .. } = &*self.inner;
        on_large_stack(|| {
            let graph = FrontEnd::new(options.clone(), files.clone()).graph();
            let mut explained =
                graph.and_then(|graph| explain::explain(&graph)).map_err(|failed| Error::of(&failed))?;
            let text = explain::text(&explained.report, Some(function), usize::MAX);
            text.map_err(|d| Error::of(&explained.residual.report.report(*d)))
        })
    }
}

impl Program {
    /// A page in HTML with the source and the residual program side by side: what `nyala explain --html` writes. The program is compiled
    /// anew, as for [`Program::emit`].
    ///
    /// # Errors
    /// The program does not compile any more.
    pub fn explain_html(&self) -> Result<String, Error> {
        let Inner { options, files, .. } = &*self.inner;
        on_large_stack(|| {
            let graph = FrontEnd::new(options.clone(), files.clone()).graph();
            let explained = graph.and_then(|graph| explain::explain(&graph)).map_err(|failed| Error::of(&failed))?;
            Ok(explain::html::page(&explained, &files.names()))
        })
    }

    pub(crate) fn files(&self) -> &Files {
        &self.inner.files
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Program").field("files", &self.inner.files.names()).finish_non_exhaustive()
    }
}

/// Compares a function with the types asked for.
pub(crate) fn check_types<A: Args, R: Return>(
    signature: &Signature,
    params: &[(&str, &ExportedType)],
    all: &Signatures,
) -> Result<(), Error> {
    let (shapes, result) = (A::shapes(), R::shape());
    let here = || {
        let texts: Vec<String> = shapes.iter().map(|shape| shape.text()).collect();
        let result = result.as_ref().map_or("()".into(), |shape| shape.text());
        format!("fn {}({}) -> {result}", signature.symbol, texts.join(", "))
    };
    let fail = |difference| {
        let (name, in_program) = (signature.symbol.clone(), signature.text.clone());
        Err(Error::WrongTypes { name, here: here(), in_program, difference })
    };
    if shapes.len() != params.len() {
        let (n, m) = (shapes.len(), params.len());
        return fail(format!(
            "it has {n} {} here, {m} in the program",
            if n == 1 { "parameter" } else { "parameters" }
        ));
    }
    for (i, (shape, (name, ty))) in shapes.iter().zip(params).enumerate() {
        let what = if name.is_empty() { format!("parameter {}", i + 1) } else { format!("parameter `{name}`") };
        if let Some(difference) = difference(shape.clone(), ty, all, &what) {
            return fail(difference);
        }
    }
    match (&result, &signature.result) {
        (None, ExportedType::Unit) => Ok(()),
        (None, ty) => fail(format!("the result is `()` here, `{}` in the program", text_of(ty, all))),
        (Some(shape), ty) => difference(shape.clone(), ty, all, "the result").map_or(Ok(()), fail),
    }
}

/// An exported function of a program, with its types. It keeps the program's code alive.
pub struct Function<A, R> {
    address: usize,
    of: Of,
    program: Program,
    types: PhantomData<fn(A) -> R>,
}

/// What a handle is of; it keeps the code alive.
#[derive(Clone)]
enum Of {
    /// The function of the program at this position.
    Program(usize),
    Variant(Arc<Variant>),
    /// A variant that is being built.
    Waiting(Arc<Variant>),
}

impl<A: Args, R: Return> Function<A, R> {
    pub(crate) fn of_variant(program: &Program, variant: Arc<Variant>) -> Result<Function<A, R>, Error> {
        let address = variant.code(program)?.address;
        Ok(Function { address, of: Of::Variant(variant), program: program.clone(), types: PhantomData })
    }

    pub(crate) fn of_waiting(program: &Program, variant: Arc<Variant>) -> Function<A, R> {
        Function { address: 0, of: Of::Waiting(variant), program: program.clone(), types: PhantomData }
    }

    /// Waits for the variant's code, if it is being built in the background.
    ///
    /// # Errors
    /// The variant does not compile. Calls go on as before.
    pub fn wait(&self) -> Result<(), Error> {
        match &self.of {
            Of::Program(_) | Of::Variant(_) => Ok(()),
            Of::Waiting(variant) => variant.code(&self.program).map(|_| ()),
        }
    }

    /// The function to fix parameters of; what is fixed stays so.
    pub fn partial(&self) -> Partial {
        match &self.of {
            Of::Program(index) => Partial::new(self.program.clone(), *index),
            Of::Variant(variant) | Of::Waiting(variant) => {
                Partial::of(self.program.clone(), &variant.key, variant.depth)
            }
        }
    }

    /// Fixes a further parameter: see [`Partial::fix`].
    ///
    /// # Errors
    /// As there.
    pub fn fix(&self, parameter: &str, value: impl Fix) -> Result<Partial, Error> {
        self.partial().fix(parameter, value)
    }

    /// What partial evaluation did in the function, and why.
    ///
    /// # Errors
    /// As for [`Program::explain`].
    pub fn explain(&self) -> Result<String, Error> {
        match &self.of {
            Of::Program(index) => self.program.explain(&self.program.signatures().functions[*index].symbol),
            Of::Variant(variant) | Of::Waiting(variant) => Variant::explain(&self.program, &variant.key),
        }
    }

    /// What a variant took to build, which is waited for; `None` for a function of the program itself.
    pub fn stats(&self) -> Option<Stats> {
        match &self.of {
            Of::Program(_) => None,
            Of::Variant(variant) | Of::Waiting(variant) => {
                variant.code(&self.program).ok().map(|built| built.stats.clone())
            }
        }
    }

    /// Calls the function on this thread's stack. The process ends if the program panics, fails a check, or calls `exit`.
    pub fn call(&self, args: A::Values<'_>) -> R {
        // SAFETY: the types were compared when the handle was made; the rest the caller of `Program::function` or `Program::partial`
        // has promised. The code lives.
        unsafe { A::call(self.code(), args) }
    }

    /// Calls the function on this thread's stack, and returns what goes wrong as a value: a panic, a failed check
    /// ([`Compiler::check`](crate::Compiler::check)), a call of `exit`, also in a loop of `par` or in a thread that the function
    /// waits for. The program can be called again.
    ///
    /// What the function has allocated stays allocated, files stay open, and statics are as it left them. A loop of `par` ends when
    /// all iterations have ended that had begun. A wild access, a division by zero that is not checked and a full stack end the
    /// process still.
    ///
    /// # Errors
    /// The function did not return.
    ///
    /// ```
    /// use nyala_embed::{Program, Slice};
    ///
    /// let program = Program::from_source("third.impala", "
    ///     use std::slice::*;
    ///     extern fn third(a: Slice[i32]) -> i32 { a(2) }
    /// ")?;
    /// // SAFETY: `third` accesses its slice within its length.
    /// let third = unsafe { program.function::<(Slice<i32>,), i32>("third") }?;
    /// assert_eq!(third.try_call((&[1, 2, 3],)), Ok(3));
    /// let fault = third.try_call((&[1, 2],)).expect_err("there is no third element");
    /// assert_eq!((fault.code, &*fault.message), ("panic", "an index is out of the slice"));
    /// # Ok::<(), nyala_embed::Error>(())
    /// ```
    pub fn try_call(&self, args: A::Values<'_>) -> Result<R, Fault> {
        let address = self.code();
        let mut result = None;
        // SAFETY: as for `call`; between here and the function there is nothing to be dropped, for values of calls are references and
        // numbers.
        unsafe { nyala_runtime::guarded(|| result = Some(A::call(address, args))) }?;
        // A call that is over has a result.
        result.ok_or_else(|| Fault::from(nyala_runtime::Ending::default()))
    }

    /// The code to call.
    fn code(&self) -> usize {
        match &self.of {
            Of::Waiting(variant) => variant.address(),
            Of::Program(_) | Of::Variant(_) => self.address,
        }
    }
}

impl<A, R> Function<A, R> {
    /// The program that it belongs to.
    pub fn program(&self) -> &Program {
        &self.program
    }
}

impl<A, R> Clone for Function<A, R> {
    fn clone(&self) -> Function<A, R> {
        Function { address: self.address, of: self.of.clone(), program: self.program.clone(), types: PhantomData }
    }
}

impl<A, R> fmt::Debug for Function<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Function").field("address", &self.address).field("program", &self.program).finish()
    }
}

//! The options of a compilation, and compiling. Separate from the program that comes of it, which is there only if all went well.

use crate::error::Error;
use crate::program::Program;
use crate::variants::USUAL_NUMBER;
use nyala_driver::diagnostics::cannot_read;
use nyala_driver::{Files, FrontEnd, Options, Report, cache};
use nyala_gen_llvm::load_llvm;
use std::path::{Path, PathBuf};

/// What native code can check while it runs (docs/checks.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Accesses stay within the block, variable or static that they began in, and no address is null. Memory that Rust owns
    /// has no bounds.
    Bounds,
    /// Signed arithmetic fits its type, and no integer is divided by zero.
    Overflow,
    /// Numbers that are read were given a value, as far as docs/checks.md says.
    Uninitialized,
}

/// Options of compilation.
///
/// ```
/// use nyala_embed::Compiler;
///
/// let program = Compiler::new().opt_level(1).define("N", "4").compile_source("n.impala", "
///     static N = 2;
///     extern fn n() -> i32 { N }
/// ")?;
/// // SAFETY: `n` accesses no memory.
/// assert_eq!(unsafe { program.function::<(), i32>("n") }?.call(()), 4);
/// # Ok::<(), nyala_embed::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    options: Options,
    n_variants: Option<usize>,
}

impl Compiler {
    /// The options that the command has by default.
    pub fn new() -> Compiler {
        Compiler::default()
    }

    /// The level of optimization, 0 to 3; 3 unless set. Greater numbers mean 3.
    pub fn opt_level(mut self, level: u8) -> Compiler {
        self.options.opt_level = level.min(3);
        self
    }

    /// The CPU to make code for, as LLVM names it; this machine's unless set. Code for another one may end the process.
    pub fn cpu(mut self, name: &str) -> Compiler {
        self.options.cpu = Some(name.into());
        self
    }

    /// Checks this while the program runs. A fault ends the process.
    pub fn check(mut self, check: Check) -> Compiler {
        let checks = &mut self.options.checks;
        match check {
            Check::Bounds => (checks.bounds, checks.null) = (true, true),
            Check::Overflow => checks.overflow = true,
            Check::Uninitialized => checks.uninit = true,
        }
        self
    }

    /// Whether annotations of partial evaluation are heeded; they are unless set.
    pub fn partial_evaluation(mut self, heeded: bool) -> Compiler {
        self.options.partial_evaluation = heeded;
        self
    }

    /// The budget of partial evaluation, as a multiple of the usual one. What is not a positive number means the usual one.
    pub fn budget(mut self, multiple: f64) -> Compiler {
        self.options.pe_budget = if multiple > 0.0 && multiple.is_finite() { multiple } else { 1.0 };
        self
    }

    /// Whether signed arithmetic wraps around. Unless it does, it must not overflow.
    pub fn wrap(mut self, wraps: bool) -> Compiler {
        self.options.wrap = wraps;
        self
    }

    /// A folder in which libraries are looked for, after those before.
    pub fn library_folder(mut self, folder: impl Into<PathBuf>) -> Compiler {
        self.options.library_folders.push(folder.into());
        self
    }

    /// Replaces the initializer of a top-level static by an expression.
    pub fn define(mut self, name: &str, value: &str) -> Compiler {
        self.options.defines.push((name.into(), value.into()));
        self
    }

    /// Does not report warnings of this code; `warnings` stands for all of them.
    pub fn allow(mut self, code: &str) -> Compiler {
        self.options.allow.push(code.into());
        self
    }

    /// Makes warnings of this code errors; `warnings` stands for all of them.
    pub fn deny(mut self, code: &str) -> Compiler {
        self.options.deny.push(code.into());
        self
    }

    /// Keeps native code in the user's cache between runs, as the command does. Only the work of LLVM is saved.
    pub fn keep_code(mut self, keep: bool) -> Compiler {
        self.options.cache = if keep { cache::Objects::of_user() } else { None };
        self
    }

    /// How many variants of functions the program keeps ([`Partial::build`](crate::Partial::build)); 1,024 unless set, one at least.
    pub fn keep_variants(mut self, number: usize) -> Compiler {
        self.n_variants = Some(number.max(1));
        self
    }

    /// Compiles a file, with the libraries and packages that it uses.
    ///
    /// # Errors
    /// The file cannot be read, the program is wrong, or the system lacks something.
    pub fn compile(&self, path: impl AsRef<Path>) -> Result<Program, Error> {
        let path = path.as_ref();
        match nyala_driver::files::read(path) {
            Ok(text) => self.compile_files(&[(&path.display().to_string(), &text)]),
            Err(why) => Err(Error::of(&Report::default().report(cannot_read::error(path, &why)))),
        }
    }

    /// Compiles a text. Its name is for diagnostics; files that it uses are looked for beside that name.
    ///
    /// # Errors
    /// As for [`Compiler::compile`].
    pub fn compile_source(&self, name: &str, text: &str) -> Result<Program, Error> {
        self.compile_files(&[(name, text)])
    }

    /// Compiles a program of several files, given by names and texts.
    ///
    /// # Errors
    /// As for [`Compiler::compile`].
    pub fn compile_files(&self, files: &[(&str, &str)]) -> Result<Program, Error> {
        let mut given = Files::default();
        files.iter().for_each(|(name, text)| given.add(*name, *text));
        let options = self.options.clone();
        if options.checks != nyala_checks::Checks::default() && !nyala_runtime::can_check() {
            return Err(Error::System("checks need 4 TiB of addresses, which this system does not give".into()));
        }
        load_llvm().map_err(|e| Error::System(format!("LLVM's library is not where it was: {e}")))?;
        on_large_stack(move || {
            let front = FrontEnd::new(options.clone(), given.clone());
            let signatures = nyala_sema::signatures(front.program());
            let header = nyala_sema::header(front.program(), &front.report.sources);
            let mut graph = front.graph().map_err(|failed| Error::of(&failed))?;
            let variables = graph.export_statics();
            let compiled = || graph.residual()?.flat()?.load(&[]);
            let loaded = compiled().map_err(|failed| Error::of(&failed))?;
            let n_variants = self.n_variants.unwrap_or(USUAL_NUMBER);
            Program::new(given, graph, &variables, loaded, signatures, header, n_variants)
        })
    }
}

/// Passes recurse as deep as sources nest, which is limited, but may be deeper than the caller's stack.
pub(crate) fn on_large_stack<T: Send>(f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    const STACK: usize = 256 << 20;
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("nyala".into()).stack_size(STACK);
        let thread = builder.spawn_scoped(scope, f);
        let thread = thread.map_err(|e| Error::System(format!("cannot start a thread: {e}")))?;
        thread.join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            Err(Error::Bug(text.unwrap_or_else(|| "it panicked".into())))
        })
    })
}

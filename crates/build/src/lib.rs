//! Nyala in build scripts of Rust programs: a static library of Impala code, and its declarations in Rust.
//!
//! Unlike with `nyala-embed`, neither the compiler nor LLVM is in the program then: all is compiled by `cargo build`.
//!
//! ```no_run
//! // build.rs, with nyala-build among the build-dependencies
//! fn main() -> Result<(), nyala_build::Error> {
//!     nyala_build::Build::new().file("src/kernels.impala").compile("kernels")
//! }
//! ```
//!
//! ```text
//! // src/main.rs
//! mod kernels {
//!     include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! }
//! ```
//!
//! The declarations have a function for each `extern fn`, and the structs that these use. A program that prints, allocates or runs
//! loops on all processors needs Nyala's runtime, the crate `nyala-runtime` among the program's dependencies; the declarations name it
//! then, so that without it an error says so.
//!
//! Code is made for the least CPU of the target, so that it runs wherever the program does, unless [`Build::cpu`] names another.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod declarations;

use nyala_driver::{Files, FrontEnd, Options, Report};
use std::fmt;
use std::path::{Path, PathBuf};

/// Why nothing was built, as text for people: the compiler's diagnostics, or what a build script lacks.
#[derive(Clone)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As text, since `main` of a build script shows errors so.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Error {}

/// A library to build.
#[derive(Clone, Debug, Default)]
pub struct Build {
    files: Vec<PathBuf>,
    options: Options,
}

/// What becomes of a program.
#[derive(Clone, Debug)]
pub struct Built {
    /// An object for the linker.
    pub object: Vec<u8>,
    /// The declarations, as the text of a Rust module.
    pub declarations: String,
    /// The files that it was made of.
    pub files: Vec<PathBuf>,
    /// The compiler's warnings, rendered.
    pub warnings: String,
}

impl Build {
    /// A library of no files yet, compiled at the level 3 of optimization.
    pub fn new() -> Build {
        Build::default()
    }

    /// Adds a file of the program.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Build {
        self.files.push(path.into());
        self
    }

    /// The CPU to make code for, as LLVM names it; `native` is this machine's.
    pub fn cpu(mut self, name: &str) -> Build {
        self.options.cpu = Some(name.into());
        self
    }

    /// The level of optimization, 0 to 3. Greater numbers mean 3.
    pub fn opt_level(mut self, level: u8) -> Build {
        self.options.opt_level = level.min(3);
        self
    }

    /// A folder in which libraries are looked for.
    pub fn library_folder(mut self, folder: impl Into<PathBuf>) -> Build {
        self.options.library_folders.push(folder.into());
        self
    }

    /// Replaces the initializer of a top-level static by an expression.
    pub fn define(mut self, name: &str, value: &str) -> Build {
        self.options.defines.push((name.into(), value.into()));
        self
    }

    /// Builds the library `name` in a build script: `libNAME.a`, which the program is linked with, and `NAME.rs`, both in `OUT_DIR`.
    /// Prints what Cargo needs to know.
    ///
    /// # Errors
    /// The program is wrong or cannot be read, or this is no build script.
    pub fn compile(self, name: &str) -> Result<(), Error> {
        let variable = |name: &str| {
            std::env::var(name)
                .map_err(|_| Error(format!("the variable `{name}` is not set: is this a build script?\n")))
        };
        let (folder, target) = (PathBuf::from(variable("OUT_DIR")?), variable("TARGET")?);
        let built = self.build(&target)?;
        for file in &built.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        for line in built.warnings.lines() {
            println!("cargo::warning={line}");
        }
        let write = |name: String, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).map_err(|e| Error(format!("cannot write {}: {e}\n", path.display())))?;
            Ok(path)
        };
        write(format!("{name}.rs"), built.declarations.as_bytes())?;
        let object = write(format!("{name}.o"), &built.object)?;
        let archive = cc::Build::new().cargo_warnings(false).object(object).try_compile(name);
        archive.map_err(|e| Error(format!("cannot make a library: {e}\n")))
    }

    /// Compiles the program for a target, by Rust's triple.
    ///
    /// # Errors
    /// The program is wrong or cannot be read, or a function has a type that Rust lacks.
    pub fn build(self, target: &str) -> Result<Built, Error> {
        let Build { files: paths, mut options } = self;
        let is_x86 = target.starts_with("x86_64");
        match options.cpu.as_deref() {
            Some("native") => options.cpu = None,
            Some(_) => options.target = Some(target.into()),
            None => {
                options.target = Some(target.into());
                options.cpu = Some(if is_x86 { "x86-64" } else { "generic" }.into());
            }
        }
        let mut files = Files::default();
        for path in &paths {
            let text = nyala_driver::files::read(path);
            files.add(
                path.display().to_string(),
                text.map_err(|e| Error(format!("cannot read {}: {e}\n", path.display())))?,
            );
        }
        let failed = |report: &Report| Error(report.render(false));
        on_large_stack(|| {
            let front = FrontEnd::new(options, files);
            let (object, needs_runtime, report) = front.library_object().map_err(|e| failed(&e))?;
            let signatures = nyala_sema::signatures(front.program());
            let declarations = declarations::text(&signatures, needs_runtime).map_err(Error)?;
            Ok(Built { object, declarations, files: read_files(&paths, &report), warnings: report.render(false) })
        })
    }
}

/// The program's files, and those on disk that they use.
fn read_files(given: &[PathBuf], report: &Report) -> Vec<PathBuf> {
    let mut files = given.to_vec();
    for name in report.sources.names().map(Path::new) {
        if name.is_file() && !files.iter().any(|f| f == name) {
            files.push(name.into());
        }
    }
    files
}

/// Passes recurse as deep as sources nest, which is limited, but may be deeper than the caller's stack.
fn on_large_stack<T: Send>(f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    const STACK: usize = 256 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, f);
        let thread = thread.map_err(|e| Error(format!("cannot start a thread: {e}\n")))?;
        thread.join().unwrap_or_else(|_| Err(Error("a bug of the compiler: it panicked\n".into())))
    })
}

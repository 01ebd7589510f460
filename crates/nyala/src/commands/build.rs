//! `nyala build`: compiles a program to a file that others link or run.

use super::package::Part;
use super::{Input, with_files_of};
use clap::ValueEnum;
use nyala_driver::build::Kind;
use nyala_driver::outputs::{is_linked, kind_of};
use std::path::PathBuf;

/// Compile a program to an executable, object, library or C header
#[derive(clap::Args)]
pub struct Build {
    #[command(flatten)]
    input: Input,
    /// Output file
    #[arg(short, value_name = "OUT")]
    out: PathBuf,
    /// Kind of output; the default follows from the ending of OUT: .o, .a, .so (also .so.1), .h, or else an executable.
    /// Endings of what `build` does not make, such as .ll, are refused
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// Machine to make code for, such as aarch64-unknown-linux-gnu
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Emit debug information: functions, lines and variables (docs/debugging.md)
    #[arg(short = 'g')]
    debug: bool,
    /// Let AddressSanitizer or ThreadSanitizer watch the program's accesses of memory. The C compiler that links the program
    /// brings the tool; an object or a static library is linked with its -fsanitize
    #[arg(long, value_name = "TOOL", value_enum, conflicts_with = "check")]
    sanitize: Option<SanitizerName>,
    /// Do not read or write the cache of native code
    #[arg(long)]
    no_cache: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindName {
    Exe,
    Obj,
    StaticLib,
    SharedLib,
    Header,
}

#[derive(Clone, Copy, ValueEnum)]
enum SanitizerName {
    Address,
    Thread,
}

impl Build {
    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Program) {
            return code;
        }
        let (linked, files): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.input.files).into_iter().partition(|f| is_linked(f));
        if files.is_empty() {
            eprintln!("error: no source file among the files to build");
            return super::USAGE;
        }
        self.input.files = files;
        if self.input.would_lose(&self.out) {
            return super::USAGE;
        }
        let kind = match self.kind {
            None => match kind_of(&self.out) {
                Ok(kind) => kind,
                Err(reason) => {
                    eprintln!("error: {reason}");
                    return super::USAGE;
                }
            },
            Some(KindName::Exe) => Kind::Exe,
            Some(KindName::Obj) => Kind::Obj,
            Some(KindName::StaticLib) => Kind::StaticLib,
            Some(KindName::SharedLib) => Kind::SharedLib,
            Some(KindName::Header) => Kind::Header,
        };
        if !linked.is_empty() && !matches!(kind, Kind::Exe | Kind::SharedLib) {
            eprintln!("error: only executables and shared libraries are linked with {}", linked[0].display());
            return super::USAGE;
        }
        let options = |o: &mut nyala_driver::Options| {
            o.target = self.target.clone();
            o.debug = self.debug;
            o.sanitizer = self.sanitize.map(|s| match s {
                SanitizerName::Address => nyala_gen_llvm::Sanitizer::Address,
                SanitizerName::Thread => nyala_gen_llvm::Sanitizer::Thread,
            });
            o.cache = nyala_driver::cache::Objects::of_user().filter(|_| !self.no_cache);
        };
        with_files_of(&self.input, options, |options, files| {
            Ok((0, nyala_driver::FrontEnd::new(options, files).build(kind, &self.out, &linked)?))
        })
    }
}

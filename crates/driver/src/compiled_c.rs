//! Programs as C text that the system's C compiler compiles, for running them in memory. Separate from running, since it
//! writes files and starts a process.

use crate::build::{temporary_folder, tool};
use crate::diagnostics::{cannot_write, no_linker};
use crate::flat::Flat;
use crate::report::{Failed, Report};
use crate::run::Loaded;
use crate::staged::compiled;
use nyala_base::diagnostics::bug;
use nyala_base::{Diagnostic, Span};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How C text is compiled, apart from optimization: not at `-O0`, else little. Without contraction floats have the same results everywhere.
pub const FLAGS: &[&str] = &["-std=gnu11", "-ffp-contract=off", "-fPIC"];

/// What tests want to hear of, and take for a fault: warnings about generated text are none of a user's program. A program may
/// compare a value with itself, compare it with what its type always or never has, or an address with null, and have variables that it
/// does not read.
pub const STRICT: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Wstrict-aliasing=2",
    "-Wno-address",
    "-Wno-tautological-compare",
    "-Wno-type-limits",
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
    "-Werror",
];

/// Texts that are longer, in bytes, are compiled without optimization: it may take a minute for functions with thousands
/// of operations on vectors.
const MAX_OPTIMIZED: usize = 200_000;

/// Options that keep the compiler from computing functions whose results the C library decides.
fn library_decides() -> impl Iterator<Item = String> {
    let inexact = nyala_gen_c::C.math.iter().filter(|m| !m.0.is_exact_math() && m.0 != nyala_ir::Op::Rem);
    inexact.flat_map(|m| m.1).map(|name| format!("-fno-builtin-{name}"))
}

impl Flat {
    /// The program as C text; `is_program`: its `main` is what the runtime starts.
    pub fn c_text(&self, is_program: bool) -> Result<(String, Report), Failed> {
        let mut report = self.report.clone();
        let emit = if is_program { nyala_gen_c::emit_program } else { nyala_gen_c::emit };
        let size = |text: &Result<String, _>| text.as_ref().map_or(0, String::len);
        let emitted = |_: &mut Report| emit(&self.module, &nyala_gen_c::C, self.options.wrap);
        match report.time(&self.options, "emit-c", emitted, size) {
            Ok(text) => Ok((text, report)),
            Err(d) => Err(report.report(*d)),
        }
    }

    /// Compiles the program to native code in memory, by the system's C compiler.
    pub fn load_by_c(&self, libraries: &[PathBuf]) -> Result<Loaded, Failed> {
        let symbols = self.module.funcs.iter().filter_map(|f| f.symbol());
        compiled::needs_code(&self.report, symbols, "the C compiler compiles")?;
        let (text, mut report) = self.c_text(false)?;
        let cc = compiler(&text, self.options.opt_level);
        let kept = self.options.cache.clone().map(|cache| (cache.key_of_c(&text, &cc), cache));
        if let Some(object) = kept.as_ref().and_then(|(key, cache)| cache.get(key)) {
            return Loaded::of(&self.options, report, &[object], libraries, &[]);
        }
        let size = |object: &Result<Vec<u8>, _>| object.as_ref().map_or(0, Vec::len);
        let object = report.time(&self.options, "cc", |_| compile(cc, &text), size);
        let object = object.map_err(|d| report.report(*d))?;
        if let Some((key, cache)) = kept {
            cache.put(&key, &object);
        }
        Loaded::of(&self.options, report, &[object], libraries, &[])
    }
}

/// Whether there is a C compiler.
pub fn has_compiler() -> bool {
    tool("CC", "cc").arg("--version").output().is_ok_and(|o| o.status.success())
}

/// The command that compiles a C text, without the names of files.
fn compiler(text: &str, opt_level: u8) -> Command {
    let mut cc = tool("CC", "cc");
    let level = if opt_level == 0 || text.len() > MAX_OPTIMIZED { "-O0" } else { "-O1" };
    cc.args(FLAGS).args(library_decides()).arg(level);
    cc
}

/// The object of a C text.
fn compile(mut cc: Command, text: &str) -> Result<Vec<u8>, Box<Diagnostic>> {
    let folder = temporary_folder()?;
    let (source, object) = (folder.path().join("program.c"), folder.path().join("program.o"));
    std::fs::write(&source, text).map_err(|e| Box::new(cannot_write::temporary(e)))?;
    cc.arg("-c").arg(&source).arg("-o").arg(&object);
    let name = cc.get_program().to_string_lossy().into_owned();
    let output = cc.output().map_err(|e| Box::new(no_linker::error(&name, "CC", e)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).replace(&format!("{}/", folder.path().display()), "");
        let said: Vec<&str> = said.lines().take(20).collect();
        let message = format!("`{name}` does not accept the C text:\n{}", said.join("\n"));
        return Err(Box::new(bug::error(Span::NONE, message)));
    }
    read(&object)
}

fn read(path: &Path) -> Result<Vec<u8>, Box<Diagnostic>> {
    std::fs::read(path).map_err(|e| Box::new(cannot_write::temporary(e)))
}

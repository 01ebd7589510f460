//! Running programs: compiled in memory, or by the interpreter.

use crate::{Reported, Session};
use nyala_base::{Diagnostic, Span};
use nyala_gen_llvm::Jit;
use std::path::PathBuf;

/// Address space for the program's stack; touched pages only are used.
const STACK: usize = 1 << 30;

/// A compiled program in memory.
pub struct Loaded {
    jit: Jit,
}

impl Session {
    /// Compiles a flat module to native code in memory.
    pub fn load(&mut self, module: &nyala_flat::Module, libraries: &[PathBuf]) -> Result<Loaded, Reported> {
        let llvm = self.llvm(module)?;
        let jit = self.time(
            "llvm-codegen",
            |_| -> Result<Jit, Box<Diagnostic>> {
                let jit = Jit::new(libraries)?;
                jit.add(&llvm)?;
                Ok(jit)
            },
            |_| 0,
        );
        let jit = jit.map_err(|d| self.report(*d))?;
        Ok(Loaded { jit })
    }

    /// Calls an exported function of type `fn() -> bool`.
    pub fn call_bool(&mut self, loaded: &Loaded, name: &str) -> Result<bool, Reported> {
        let address = loaded.jit.lookup(name).map_err(|d| self.report(*d))?;
        let result = nyala_gen_llvm::call_entry(address, false, true, STACK);
        result.map(|r| r & 1 != 0).map_err(|e| self.report(Diagnostic::error("bug", Span::NONE, e)))
    }

    /// The same by the interpreter.
    pub fn interpret_bool(&mut self, _world: &nyala_ir::World, _name: &str) -> Result<bool, Reported> {
        Err(self.report(Diagnostic::error("limitation", Span::NONE, "the interpreter is not connected")))
    }

    /// Runs an entry function of type `fn() -> i32`, `fn() -> ()` or `fn(i32, &[&[u8]]) -> i32`; its result, or 0.
    pub fn run_entry(
        &mut self,
        module: &nyala_flat::Module,
        loaded: &Loaded,
        entry: &str,
        args: &[String],
    ) -> Result<i32, Reported> {
        let Some(func) = module.exported(entry) else {
            let d = Diagnostic::error("no-entry", Span::NONE, format!("the program has no function `{entry}` to run"))
                .hint("write `fn main() -> i32 { … }`, or name an exported function by `--entry`");
            return Err(self.report(d));
        };
        let f = module.func(func);
        let i32 = module.types.i32();
        let takes_args = f.params.len() == 2 && f.params[0] == i32;
        if !(f.params.is_empty() || takes_args) || !(f.rets.is_empty() || *f.rets == [i32]) {
            let d = Diagnostic::error("entry-type", f.span, format!("`{entry}` cannot be run as it is"))
                .hint("it must be `fn() -> i32`, `fn() -> ()` or `fn(argc: i32, argv: &[&[u8]]) -> i32`");
            return Err(self.report(d));
        }
        let lookup = self.time("llvm-link", |_| loaded.jit.lookup(entry), |_| 0);
        let address = lookup.map_err(|d| self.report(*d))?;
        nyala_runtime::set_args(args);
        // SAFETY of the call: `entry` was compiled from a function of one of these types, checked above.
        let result = nyala_gen_llvm::call_entry(address, takes_args, !f.rets.is_empty(), STACK);
        result.map_err(|e| self.report(Diagnostic::error("bug", Span::NONE, e)))
    }
}

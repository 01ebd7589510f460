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
    pub fn interpret_bool(&mut self, world: &nyala_ir::World, name: &str) -> Result<bool, Reported> {
        let Some(entry) = world.find_root(name) else {
            return Err(self.report(Diagnostic::error("no-entry", Span::NONE, format!("no function `{name}`"))));
        };
        let result = nyala_interp::run(world, entry, &[], &nyala_interp::Options::default());
        let words = result.map_err(|fault| self.report(fault.diagnostic()))?;
        Ok(words.first().is_some_and(|&w| w != 0))
    }

    /// [`Session::run_entry`] by the interpreter.
    pub fn interpret(
        &mut self,
        world: &nyala_ir::World,
        entry: &str,
        libraries: &[PathBuf],
        args: &[String],
    ) -> Result<i32, Reported> {
        let Some(k) = world.find_root(entry) else { return Err(self.no_entry(entry)) };
        let data = world.cont(k);
        let params = world.types.cn_params(data.ty).unwrap_or(&[]);
        let i32 = world.types.i32();
        let takes_args = params.len() == 4 && params[1] == i32;
        let rets = params.last().and_then(|&ret| world.types.cn_params(ret)).unwrap_or(&[]);
        let plain = rets.len() == 1 || (rets.len() == 2 && (rets[1] == i32 || rets[1] == world.types.unit()));
        if !(params.len() == 2 || takes_args) || !plain {
            return Err(self.entry_type(entry, data.origin));
        }
        nyala_runtime::set_args(args);
        let words = [nyala_runtime::nyala_argc() as i64 as u64, nyala_runtime::nyala_argv() as u64];
        let mut options = nyala_interp::Options::default();
        for library in libraries {
            let opened = nyala_runtime::Library::open(library);
            let opened = opened.map_err(|e| self.report(Diagnostic::error("library-not-loaded", Span::NONE, e)))?;
            options.libraries.push(opened);
        }
        let result = nyala_interp::run(world, k, if takes_args { &words } else { &[] }, &options);
        let words = result.map_err(|fault| self.report(fault.diagnostic()))?;
        Ok(words.first().map_or(0, |&w| w as i32))
    }

    fn no_entry(&mut self, entry: &str) -> Reported {
        let d = Diagnostic::error("no-entry", Span::NONE, format!("the program has no function `{entry}` to run"))
            .hint("write `fn main() -> i32 { … }`, or name an exported function by `--entry`");
        self.report(d)
    }

    fn entry_type(&mut self, entry: &str, span: Span) -> Reported {
        let d = Diagnostic::error("entry-type", span, format!("`{entry}` cannot be run as it is"))
            .hint("it must be `fn() -> i32`, `fn() -> ()` or `fn(argc: i32, argv: &[&[u8]]) -> i32`");
        self.report(d)
    }

    /// Runs an entry function of type `fn() -> i32`, `fn() -> ()` or `fn(i32, &[&[u8]]) -> i32`; its result, or 0.
    pub fn run_entry(
        &mut self,
        module: &nyala_flat::Module,
        loaded: &Loaded,
        entry: &str,
        args: &[String],
    ) -> Result<i32, Reported> {
        let Some(func) = module.exported(entry) else { return Err(self.no_entry(entry)) };
        let f = module.func(func);
        let i32 = module.types.i32();
        let takes_args = f.params.len() == 2 && f.params[0] == i32;
        if !(f.params.is_empty() || takes_args) || !(f.rets.is_empty() || *f.rets == [i32]) {
            return Err(self.entry_type(entry, f.span));
        }
        let lookup = self.time("llvm-link", |_| loaded.jit.lookup(entry), |_| 0);
        let address = lookup.map_err(|d| self.report(*d))?;
        nyala_runtime::set_args(args);
        // SAFETY of the call: `entry` was compiled from a function of one of these types, checked above.
        let result = nyala_gen_llvm::call_entry(address, takes_args, !f.rets.is_empty(), STACK);
        result.map_err(|e| self.report(Diagnostic::error("bug", Span::NONE, e)))
    }
}

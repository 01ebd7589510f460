//! Running programs: compiled in memory, or by the interpreter.

use crate::diagnostics::{entry_type, no_entry};
use crate::pipelines::Ready;
use crate::{Reported, Session};
use nyala_base::diagnostics::{bug, library_not_loaded, limitation};
use nyala_base::{Diagnostic, Span};
use nyala_flat::Module;
use nyala_gen_llvm::Jit;
use nyala_ir::World;
use std::path::PathBuf;
use std::sync::Arc;

/// A compiled program in memory.
pub struct Loaded {
    pub(crate) jit: Arc<Jit>,
}

/// Makes a program ready to be interpreted.
pub(crate) fn ready_interpreted<'w>(_: &mut Session, world: &'w World) -> Result<Ready<'w>, Reported> {
    Ok(Box::new(move |s, name| s.interpret_bool(world, name)))
}

/// Makes a program ready to run as native code in memory.
pub(crate) fn ready_compiled<'w>(s: &mut Session, world: &'w World) -> Result<Ready<'w>, Reported> {
    let residual = s.residual(world)?;
    let module = s.flat(&residual)?;
    let loaded = s.load(&module, &[])?;
    Ok(Box::new(move |s, name| s.call_bool(&loaded, name)))
}

/// Makes a program ready to run as native code that the system's C compiler made.
pub(crate) fn ready_by_c<'w>(s: &mut Session, world: &'w World) -> Result<Ready<'w>, Reported> {
    let residual = s.residual(world)?;
    let module = s.flat_for(&residual, &crate::pipelines::C)?;
    let loaded = s.load_by_c(&module, &[])?;
    Ok(Box::new(move |s, name| s.call_bool(&loaded, name)))
}

impl Session {
    /// Compiles a flat module to native code in memory.
    pub fn load(&mut self, module: &Module, libraries: &[PathBuf]) -> Result<Loaded, Reported> {
        if !self.options.more_cpus.is_empty() {
            let message = "a program in memory for several CPUs: it runs on this machine's only";
            return Err(self.report(limitation::error(Span::NONE, message, "leave out `--cpu`, or name one CPU")));
        }
        // With lines, for reports of the program's own faults.
        let emitted = self.emit_llvm(module, Some(""))?;
        let object = self.object(&emitted)?;
        self.load_object(&object, libraries)
    }

    /// Links an object in memory.
    pub(crate) fn load_object(&mut self, object: &[u8], libraries: &[PathBuf]) -> Result<Loaded, Reported> {
        let jit = self.time(
            "load",
            |_| -> Result<Jit, Box<Diagnostic>> {
                let jit = Jit::new(libraries)?;
                jit.add_object(object)?;
                Ok(jit)
            },
            |_| 0,
        );
        let jit = jit.map_err(|d| self.report(*d))?;
        Ok(Loaded { jit: Arc::new(jit) })
    }

    /// Calls an exported function without parameters whose result is an integer of 32 bits.
    pub fn call_i32(&mut self, loaded: &Loaded, name: &str) -> Result<i32, Reported> {
        let address = loaded.jit.lookup(name).map_err(|d| self.report(*d))?;
        let result = nyala_gen_llvm::call_entry(address, false, true);
        result.map_err(|e| self.report(bug::error(Span::NONE, e)))
    }

    /// Calls an exported function of type `fn() -> bool`.
    pub fn call_bool(&mut self, loaded: &Loaded, name: &str) -> Result<bool, Reported> {
        let address = loaded.jit.lookup(name).map_err(|d| self.report(*d))?;
        let result = nyala_gen_llvm::call_entry(address, false, true);
        result.map(|r| r & 1 != 0).map_err(|e| self.report(bug::error(Span::NONE, e)))
    }

    /// Calls an exported function of type `fn() -> bool` by the interpreter.
    pub fn interpret_bool(&mut self, world: &World, name: &str) -> Result<bool, Reported> {
        let results = self.interpret_root(world, name, &[], &nyala_interp::Options::default())?;
        Ok(results.first().is_some_and(|r| r & 1 != 0))
    }

    /// Runs an entry function, of the types that [`Session::run_entry`] takes, by the interpreter.
    pub fn interpret(
        &mut self,
        world: &World,
        entry: &str,
        args: &[String],
        libraries: &[PathBuf],
    ) -> Result<i32, Reported> {
        let mut options = nyala_interp::Options::default();
        for path in libraries {
            match nyala_runtime::Library::open(path) {
                Ok(library) => options.libraries.push(library),
                Err(e) => {
                    return Err(self.report(library_not_loaded::error(path, e)));
                }
            }
        }
        nyala_runtime::set_args(args);
        let takes_args = world.find_root(entry).is_some_and(|k| world.params(k).len() == 4);
        let argv = [nyala_runtime::nyala_argc() as u64, nyala_runtime::nyala_argv() as u64];
        let argv = if takes_args { &argv[..] } else { &[] };
        let results = self.interpret_root(world, entry, argv, &options);
        nyala_runtime::nyala_flush();
        Ok(results?.first().map_or(0, |&r| r as i32))
    }

    fn interpret_root(
        &mut self,
        world: &World,
        name: &str,
        args: &[u64],
        options: &nyala_interp::Options,
    ) -> Result<Vec<u64>, Reported> {
        let Some(k) = world.find_root(name) else { return Err(self.no_entry(name)) };
        if world.params(k).len() != args.len() + 2 {
            return Err(self.wrong_entry(name, world.cont(k).origin));
        }
        let results = nyala_interp::run(world, k, args, options);
        results.map_err(|fault| {
            self.faulted = Some(fault.code()).filter(|_| fault.is_of_execution());
            self.report(fault.diagnostic())
        })
    }

    fn no_entry(&mut self, name: &str) -> Reported {
        self.report(no_entry::error(name))
    }

    fn wrong_entry(&mut self, name: &str, span: Span) -> Reported {
        self.report(entry_type::error(span, name))
    }

    /// Whether a function has one of the types that can be run.
    pub(crate) fn is_entry(&self, module: &Module, func: nyala_flat::Func) -> bool {
        let f = module.func(func);
        let i32 = module.types.i32();
        let takes_args = f.params.len() == 2 && f.params[0] == i32;
        (f.params.is_empty() || takes_args) && (f.rets.is_empty() || *f.rets == [i32])
    }

    /// Whether a function of one of the types that can be run takes arguments; an error for other types.
    pub(crate) fn check_entry(&mut self, module: &Module, func: nyala_flat::Func) -> Result<bool, Reported> {
        let f = module.func(func);
        if !self.is_entry(module, func) {
            return Err(self.wrong_entry(&f.name, f.span));
        }
        Ok(!f.params.is_empty())
    }

    /// Runs an entry function of type `fn() -> i32`, `fn() -> ()` or `fn(i32, &[&[u8]]) -> i32`; its result, or 0.
    pub fn run_entry(
        &mut self,
        module: &Module,
        loaded: &Loaded,
        entry: &str,
        args: &[String],
    ) -> Result<i32, Reported> {
        let Some(func) = module.exported(entry) else { return Err(self.no_entry(entry)) };
        let takes_args = self.check_entry(module, func)?;
        let has_result = !module.func(func).rets.is_empty();
        let lookup = self.time("llvm-link", |_| loaded.jit.lookup(entry), |_| 0);
        let address = lookup.map_err(|d| self.report(*d))?;
        nyala_runtime::set_args(args);
        // SAFETY of the call: `entry` was compiled from a function of one of these types, checked above.
        let result = nyala_gen_llvm::call_entry(address, takes_args, has_result);
        result.map_err(|e| self.report(bug::error(Span::NONE, e)))
    }
}

//! Running programs: compiled in memory, or by the interpreter.

use crate::Options;
use crate::diagnostics::{cannot_write, entry_type, no_entry};
use crate::flat::Flat;
use crate::graph::{Graph, Residual};
use crate::pipelines::{C, Ready};
use crate::report::{Failed, Report};
use crate::staged::compiled;
use nyala_base::Id;
use nyala_base::diagnostics::{bug, library_not_loaded, limitation};
use nyala_base::{Diagnostic, Span};
use nyala_flat::Module;
use nyala_gen_llvm::Jit;
use nyala_ir::{Cont, Linkage, World};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A compiled program in memory.
pub struct Loaded {
    /// What was found up to here.
    pub report: Report,
    /// The code; it lives as long as this is shared.
    pub jit: Arc<Jit>,
}

/// Makes a program ready to be interpreted.
pub(crate) fn ready_interpreted(graph: &Graph) -> Result<Ready<'_>, Failed> {
    Ok(Ready { report: graph.report.clone(), call: Box::new(|name| graph.interpret_number(name)) })
}

/// Makes a program ready to run as native code in memory.
pub(crate) fn ready_compiled(graph: &Graph) -> Result<Ready<'_>, Failed> {
    Ok(ready(graph.residual()?.flat()?.load(&[])?))
}

/// Makes a program ready to run as native code that the system's C compiler made.
pub(crate) fn ready_by_c(graph: &Graph) -> Result<Ready<'_>, Failed> {
    Ok(ready(graph.residual()?.flat_for(&C)?.load_by_c(&[])?))
}

fn ready(loaded: Loaded) -> Ready<'static> {
    Ready { report: loaded.report.clone(), call: Box::new(move |name| loaded.call_i32(name)) }
}

impl Flat {
    /// Compiles the program to native code in memory.
    pub fn load(&self, libraries: &[PathBuf]) -> Result<Loaded, Failed> {
        self.load_with(libraries, &[])
    }

    /// Compiles the program to native code in memory, in which these symbols have these addresses.
    pub fn load_with(&self, libraries: &[PathBuf], symbols: &[(&str, usize)]) -> Result<Loaded, Failed> {
        if !self.options.more_cpus.is_empty() {
            let message = "a program that runs in memory is compiled for one CPU, and `--cpu` names several";
            let limited = limitation::error(Span::NONE, message, "leave out `--cpu`, or name one CPU");
            return Err(self.report.clone().report(limited));
        }
        let (report, objects) = self.objects()?;
        let symbols: Vec<(&str, usize)> = symbols.iter().copied().chain(compiled::symbols()).collect();
        Loaded::of(&self.options, report, &objects, libraries, &symbols)
    }
}

/// Gives an error about symbols that nobody defines the place where the program declares one.
pub(crate) fn at_declaration(mut error: Diagnostic, module: &Module) -> Diagnostic {
    if error.code == "undefined-symbol" && error.primary.span.is_none() {
        let words: Vec<&str> = error.message.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let mut foreign = module.funcs.iter().filter(|f| f.is_foreign());
        let missing = foreign.find(|f| f.symbol().is_some_and(|symbol| words.contains(&symbol)));
        error.primary.span = missing.map_or(Span::NONE, |f| f.span);
    }
    error
}

impl Loaded {
    /// Links objects in memory.
    pub(crate) fn of(
        options: &Options,
        mut report: Report,
        objects: &[Vec<u8>],
        libraries: &[PathBuf],
        symbols: &[(&str, usize)],
    ) -> Result<Loaded, Failed> {
        let link = || -> Result<Jit, Box<Diagnostic>> {
            let jit = Jit::with(libraries, symbols)?;
            objects.iter().try_for_each(|object| jit.add_object(object))?;
            if options.debug {
                jit.tell_debuggers();
            }
            Ok(jit)
        };
        let jit = report.time(options, "load", |_| link(), |_| 0);
        let jit = jit.map_err(|d| report.report(*d))?;
        Ok(Loaded { report, jit: Arc::new(jit) })
    }

    fn call(&self, name: &str) -> Result<i32, Failed> {
        let mut report = self.report.of_run();
        let address = self.jit.lookup(name).map_err(|d| report.report(*d))?;
        let result = nyala_gen_llvm::call_entry(address, false, true);
        result.map_err(|e| report.report(bug::error(Span::NONE, e)))
    }

    /// Writes the code, with lines, to `jit-PID.dump` in a folder, for `perf inject --jit`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_jitdump(&self, folder: &Path) -> Result<PathBuf, Failed> {
        let sources = &self.report.sources;
        self.jit
            .dump(folder, &|place| crate::faults::in_file(place, sources))
            .map_err(|e| self.report.of_run().report(cannot_write::file(folder, e)))
    }

    /// Calls an exported function without parameters whose result is an integer of 32 bits.
    pub fn call_i32(&self, name: &str) -> Result<i32, Failed> {
        self.call(name)
    }

    /// Calls an exported function of type `fn() -> bool`.
    pub fn call_bool(&self, name: &str) -> Result<bool, Failed> {
        Ok(self.call(name)? & 1 != 0)
    }

    /// Runs an entry function of type `fn() -> i32`, `fn() -> ()` or `fn(i32, &[&[u8]]) -> i32` of the module that was loaded; its
    /// result, or 0.
    pub fn run(&self, module: &Module, entry: &str, args: &[String]) -> Result<i32, Failed> {
        let mut report = self.report.of_run();
        let Some(func) = module.exported(entry) else { return Err(report.report(no_entry::error(entry))) };
        let takes_args = check_entry(&mut report, module, func)?;
        let has_result = !module.func(func).rets.is_empty();
        let address = self.jit.lookup(entry).map_err(|d| report.report(at_declaration(*d, module)))?;
        nyala_runtime::set_args(args);
        // SAFETY of the call: `entry` was compiled from a function of one of these types, checked above.
        let result = nyala_gen_llvm::call_entry(address, takes_args, has_result);
        result.map_err(|e| report.report(bug::error(Span::NONE, e)))
    }
}

impl Graph {
    /// Calls an exported function of type `fn() -> i32` or `fn() -> bool` by the interpreter.
    pub fn interpret_number(&self, name: &str) -> Result<i32, Failed> {
        let results = interpret_root(&self.world, &self.report, name, &[], &nyala_interp::Options::default())?;
        Ok(results.first().map_or(0, |&r| r as i32))
    }

    /// Calls an exported function of type `fn() -> bool` by the interpreter.
    pub fn interpret_bool(&self, name: &str) -> Result<bool, Failed> {
        Ok(self.interpret_number(name)? & 1 != 0)
    }

    /// Runs an entry function, of the types that [`Loaded::run`] takes, by the interpreter.
    pub fn interpret(&self, entry: &str, args: &[String], libraries: &[PathBuf]) -> Result<i32, Failed> {
        interpret(&self.world, &self.report, entry, args, libraries)
    }
}

impl Residual {
    /// Runs an entry function, of the types that [`Loaded::run`] takes, by the interpreter.
    pub fn interpret(&self, entry: &str, args: &[String], libraries: &[PathBuf]) -> Result<i32, Failed> {
        interpret(&self.world, &self.report, entry, args, libraries)
    }
}

fn interpret(
    world: &World,
    report: &Report,
    entry: &str,
    args: &[String],
    libraries: &[PathBuf],
) -> Result<i32, Failed> {
    let mut options = nyala_interp::Options::default();
    for path in libraries {
        match nyala_runtime::Library::open(path) {
            Ok(library) => options.libraries.push(library),
            Err(e) => return Err(report.of_run().report(library_not_loaded::error(path, e))),
        }
    }
    nyala_runtime::set_args(args);
    let takes_args = world.find_root(entry).is_some_and(|k| world.params(k).len() == 4);
    let argv = [nyala_runtime::nyala_argc() as u64, nyala_runtime::nyala_argv() as u64];
    let argv = if takes_args { &argv[..] } else { &[] };
    let results = interpret_root(world, report, entry, argv, &options);
    nyala_runtime::nyala_flush();
    Ok(results?.first().map_or(0, |&r| r as i32))
}

fn interpret_root(
    world: &World,
    report: &Report,
    name: &str,
    args: &[u64],
    options: &nyala_interp::Options,
) -> Result<Vec<u64>, Failed> {
    let foreign = (0..world.n_conts()).map(Cont::from_idx).filter_map(|k| match &*world.cont(k).linkage {
        Linkage::Foreign(symbol) => Some(&**symbol),
        _ => None,
    });
    compiled::needs_code(report, foreign, "are interpreted")?;
    let mut report = report.of_run();
    let Some(k) = world.find_root(name) else { return Err(report.report(no_entry::error(name))) };
    if world.params(k).len() != args.len() + 2 {
        return Err(report.report(entry_type::error(world.cont(k).origin, name)));
    }
    nyala_interp::run(world, k, args, options).map_err(|fault| {
        report.faulted = Some(fault.code()).filter(|_| fault.is_of_execution());
        report.report(fault.diagnostic())
    })
}

/// Whether a function has one of the types that can be run.
pub(crate) fn is_entry(module: &Module, func: nyala_flat::Func) -> bool {
    let f = module.func(func);
    let i32 = module.types.i32();
    let takes_args = f.params.len() == 2 && f.params[0] == i32;
    (f.params.is_empty() || takes_args) && (f.rets.is_empty() || *f.rets == [i32])
}

/// Whether a function of one of the types that can be run takes arguments; an error for other types.
pub(crate) fn check_entry(report: &mut Report, module: &Module, func: nyala_flat::Func) -> Result<bool, Failed> {
    let f = module.func(func);
    if !is_entry(module, func) {
        return Err(report.report(entry_type::error(f.span, &f.name)));
    }
    Ok(!f.params.is_empty())
}

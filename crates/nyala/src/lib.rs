//! The driver as a library (source in; program, function, object, report out), the pipelines, and the command.
//!
//! ```text
//! let mut session = Session::new(Options::default());
//! session.add_file("pow.impala", text);
//! let program = session.compile()?;      // Program: graph, residual graph, flat module, LLVM module on demand
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod benchmarks;
pub mod build;
pub mod cache;
mod closures;
pub mod compiled_c;
mod devices;
pub mod diagnostics;
pub mod doc;
mod emit;
mod ensures;
pub mod explain;
mod faults;
pub mod files;
pub mod front;
pub mod json;
pub mod libraries;
mod one_function;
mod options;
pub mod outputs;
pub mod packages;
pub mod pipelines;
mod progress;
pub mod report;
pub mod run;
mod statics;
pub mod testing;
pub mod tuning;

pub use emit::{emit, emit_deepest_loop, emit_drivers_code, run_pass};
pub use front::{Files, FrontEnd, Trees};
pub use options::*;
pub use report::{Failed, Report, Timing};

use crate::diagnostics::{constant_fault, heap_closure, unknown_cpu};
use nyala_base::Id;
use nyala_base::diagnostics::limitation;
use nyala_base::{Calls, Diagnostic, FileId, Severity, Sink, Sources, Span};
use nyala_flat::ensure::{Origins, Stage};
use nyala_ir::ensure::Ensure;
use nyala_ir::{Builtin, Cont, Node, Target, World};
use nyala_specialize::record::Record;
use object::{Object, ObjectSection, ObjectSymbol};
use rustc_hash::FxHashSet;
use std::collections::{HashMap, HashSet};

/// Writes out what programs of this process have printed.
pub fn flush() {
    nyala_runtime::nyala_flush();
}

/// The error of everything here: what is wrong stands in the session's sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

/// One compilation: its files, findings and timings.
pub struct Session {
    /// The options of the command line.
    pub options: Options,
    /// Texts of all files read.
    pub sources: Sources,
    /// Diagnostics reported so far.
    pub sink: Sink,
    /// Times and sizes of passes, in the order in which they ran.
    pub timings: Vec<Timing>,
    /// The code of what the interpreter found: undefined behavior, a panic, its budget spent.
    pub faulted: Option<&'static str>,
    /// Names and texts of the files given.
    files: Files,
    /// The files of libraries in the program checked last, the prelude included.
    library_files: Vec<FileId>,
    /// The calls that were unfolded in the program specialized last.
    calls: Calls,
    /// The assertions on code of the program lowered last.
    ensures: Vec<Ensure>,
    /// How far partial evaluation has come, while it runs.
    steps: Option<progress::Steps>,
}

/// Where a program reaches an operation that is not implemented.
fn unsupported(world: &World) -> impl Iterator<Item = nyala_ir::Body<'_>> {
    let bodies = (0..world.n_conts()).filter_map(|k| world.body(Cont::from_idx(k)));
    bodies.filter(|body| {
        matches!(world.node(body.callee), Node::Builtin(Builtin::Limited)) && world.as_lit(body.args[2]) == Some(0)
    })
}

impl Session {
    /// A compilation without files.
    pub fn new(options: Options) -> Session {
        Session {
            options,
            sources: Sources::new(),
            sink: Sink::default(),
            timings: Vec::new(),
            faulted: None,
            files: Files::default(),
            library_files: Vec::new(),
            calls: Calls::default(),
            ensures: Vec::new(),
            steps: None,
        }
    }

    /// Adds a file of the program.
    pub fn add_file(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.files.add(name, text);
    }

    /// The names of the files given.
    pub fn program_files(&self) -> Vec<String> {
        self.files.names()
    }

    /// Runs a pass, notes what it took, and the size that `size` gives its result.
    pub fn time<T>(&mut self, pass: &'static str, f: impl FnOnce(&mut Session) -> T, size: impl Fn(&T) -> usize) -> T {
        let start = std::time::Instant::now();
        let line = self.options.progress.then(|| {
            let steps = self.steps.clone().map(|steps| (steps, self.sources.clone()));
            progress::Line::start(pass, steps)
        });
        let result = f(self);
        drop(line);
        let time = start.elapsed();
        self.timings.push(Timing { pass, time, size: size(&result) });
        result
    }

    /// Where code of the program comes from.
    fn origins(&self) -> Origins<'_> {
        Origins { calls: &self.calls, libraries: &self.library_files }
    }

    /// The place itself, or the innermost call in the program's own files that led there.
    fn own_place(&self, span: Span) -> Span {
        let calls = self.calls.around(span).map(|(_, span)| span);
        let own = std::iter::once(span).chain(calls).find(|span| !self.library_files.contains(&span.file));
        own.unwrap_or(span)
    }

    /// Adds the calls to findings in code of functions that were unfolded. A finding is reported once, for the first call. One
    /// in a library is reported at the program's call of the library, once for each. Other places that matter are shown outside
    /// of libraries: where these were called.
    fn add_calls(&mut self) {
        let mut known: HashSet<(&'static str, Span, String)> = HashSet::new();
        let is_own = |span: &Span| !self.library_files.contains(&span.file);
        self.sink.diagnostics.retain_mut(|d| {
            let code = d.primary.span;
            d.primary.span = code.without_call();
            for label in &mut d.others {
                let calls = self.calls.around(label.span).map(|(_, span)| span);
                let own = std::iter::once(label.span.without_call()).chain(calls).find(is_own);
                label.span = own.unwrap_or(label.span.without_call());
            }
            // Innermost first: those that were unfolded, then what is noted already.
            let noted = std::mem::take(&mut d.others);
            d.add_calls(self.calls.around(code));
            let is_new = |l: &nyala_base::Label| noted.iter().all(|n| n.span != l.span);
            d.others.retain(is_new);
            d.others.extend(noted);
            if !is_own(&d.primary.span) {
                d.move_to_call(is_own);
            }
            known.insert((d.code, d.primary.span, d.message.clone()))
        });
    }

    /// Does with warnings what `--allow` and `--deny` say.
    pub fn judge_warnings(&mut self) {
        self.add_calls();
        let (allow, deny) = (&self.options.allow, &self.options.deny);
        if allow.is_empty() && deny.is_empty() {
            return;
        }
        let is = |list: &[String], code: &str| list.iter().any(|c| c == code);
        let found = &mut self.sink.diagnostics;
        found.retain(|d| d.severity != Severity::Warning || !is(allow, d.code));
        for d in found.iter_mut().filter(|d| d.severity == Severity::Warning) {
            if is(deny, "warnings") || is(deny, d.code) {
                d.severity = Severity::Error;
            }
        }
    }

    fn checked<T>(&mut self, result: Option<T>) -> Result<T, Reported> {
        self.judge_warnings();
        match result {
            Some(value) if !self.sink.has_errors() => Ok(value),
            _ => Err(Reported),
        }
    }

    /// The front end of the files. Its report becomes the session's.
    fn front(&mut self) -> Result<FrontEnd, Reported> {
        let front = FrontEnd::new(self.options.clone(), self.files.clone());
        self.library_files = front.report.libraries.to_vec();
        self.take(front.report.clone());
        self.checked(Some(front))
    }

    fn take(&mut self, report: Report) {
        self.sources = report.sources;
        self.sink.diagnostics.extend(report.sink.diagnostics);
        self.timings.extend(report.timings);
    }

    /// Syntax trees of the program's files, then those of the libraries they use.
    pub fn parse(&mut self) -> Result<Trees, Reported> {
        let trees = Trees::new(self.options.clone(), self.files.clone());
        self.take(trees.report.clone());
        self.checked(Some(trees))
    }

    /// The candidates of the program. `given` are names and lists of `-D`, which replace the program's.
    pub fn candidates(&mut self, given: &[(String, String)]) -> Result<tuning::Space, Reported> {
        let trees = Trees::new(self.options.clone(), self.files.clone());
        self.sources = trees.report.sources.clone();
        match trees.candidates(given) {
            Ok(space) => Ok(space),
            Err(failed) => {
                self.take(*failed);
                Err(Reported)
            }
        }
    }

    /// Reports an error if no file can be written at `out`: before work is done for it.
    pub fn check_place(&mut self, out: &std::path::Path) -> Result<(), Reported> {
        files::check_place(out).map_err(|d| self.report(*d))
    }

    /// Reports an error if `out` is a file that was read, so that no source is overwritten.
    pub fn check_output(&mut self, out: &std::path::Path) -> Result<(), Reported> {
        files::check_output(&self.sources, out).map_err(|d| self.report(*d))
    }

    /// The C header of the program's exported functions, guarded by the macro `guard`.
    pub fn header(&mut self, guard: &str) -> Result<String, Reported> {
        let front = self.front()?;
        front.header(guard).map_err(|failed| {
            self.sink = failed.sink;
            Reported
        })
    }

    /// The program's graph. Everything the user can simply have wrong is reported here.
    pub fn graph(&mut self) -> Result<World, Reported> {
        self.check_cpus()?;
        let spaces = self.target().spaces;
        let front = self.front()?;
        let world = self.time(
            "lower",
            |s| nyala_sema::lower(front.program(), &s.sources, spaces, s.options.wrap, &mut s.sink),
            |w| w.as_ref().map_or(0, World::n_vals),
        );
        let mut world = self.checked(world)?;
        self.ensures = std::mem::take(&mut world.ensures);
        world.keeps_faults = self.checks() != nyala_checks::Checks::default();
        self.compute_statics(&mut world)?;
        nyala_ir::eta::eta_reduce(&mut world);
        for (span, fault) in std::mem::take(&mut world.fold_warnings) {
            self.sink.push(constant_fault::warning(span, fault));
        }
        self.verify_graph("lower", &world)?;
        self.sink.diagnostics.extend(nyala_specialize::recursive_runs::recursive_runs(&world));
        self.sink.diagnostics.extend(nyala_specialize::leaving_addresses::leaving_addresses(&world));
        Ok(world)
    }

    /// The machine that code is made for.
    pub fn target(&self) -> Target {
        Target::new(self.options.target.as_deref(), self.options.cpu.as_deref())
    }

    /// LLVM would take an unknown CPU for one that can do little.
    fn check_cpus(&mut self) -> Result<(), Reported> {
        if self.options.cpu.is_none() && self.options.more_cpus.is_empty() {
            return Ok(());
        }
        let target = self.target();
        let arch = target.arch_name();
        let known = nyala_ir::target::cpus(arch);
        for cpu in self.options.cpu.iter().chain(&self.options.more_cpus) {
            let is_known = known.is_empty() || known.contains(&cpu.as_str()) || cpu == "native" && target.is_native;
            if !is_known {
                let similar = nyala_sema::closest(cpu, known.iter().copied());
                self.sink.push(unknown_cpu::error(cpu, arch, similar));
            }
        }
        self.checked(Some(()))
    }

    /// Reports all that keeps a graph from becoming native code.
    pub fn check_builds(&mut self, world: &World) -> Result<(), Reported> {
        let residual = self.residual(world)?;
        let module = self.flat(&residual)?;
        self.emit_llvm(&module, None).map(drop)
    }

    /// The residual program of a graph.
    pub fn residual(&mut self, world: &World) -> Result<World, Reported> {
        let (residual, _) = self.specialized(world, false).map_err(|_| Reported)?;
        // Unfolded calls show more addresses that leave than the source does.
        for warning in nyala_specialize::leaving_addresses::leaving_addresses(&residual) {
            let is_known = |d: &Diagnostic| d.code == warning.code && d.primary.span.lo == warning.primary.span.lo;
            if !self.sink.diagnostics.iter().any(is_known) {
                self.sink.push(warning);
            }
        }
        self.report_unsupported(&residual)?;
        self.report_closures(&residual)?;
        Ok(residual)
    }

    fn denies_closures(&self) -> bool {
        self.options.deny.iter().any(|code| code == "heap-closure")
    }

    /// Reports functions that are values at run time and capture something, if asked to: nothing is wrong with them.
    fn report_closures(&mut self, residual: &World) -> Result<(), Reported> {
        if !self.denies_closures() {
            return Ok(());
        }
        let facts = nyala_specialize::facts::Facts::new(residual, &residual.roots());
        let mut seen = FxHashSet::default();
        for closure in closures::find(residual, &facts, &self.sources) {
            let place = residual.cont(closure.cont).origin;
            if !closure.captures.is_empty() && !closure.is_in_frame && seen.insert(place) {
                let captures = closure.captures.join(", ");
                self.sink.push(heap_closure::warning(place, &captures, &closure.why, closure.used));
            }
        }
        self.checked(Some(()))
    }

    /// Reports what the program uses though nobody implements it. In what partial evaluation leaves out it is no fault.
    fn report_unsupported(&mut self, residual: &World) -> Result<(), Reported> {
        let mut found: Vec<_> = unsupported(residual).collect();
        found.sort_by_key(|body| (body.origin.file, body.origin.lo));
        for body in found {
            let hint = "do without it, or write it as a function of the program";
            self.sink.push(limitation::error(body.origin, residual.text(body.args[1]), hint));
        }
        self.checked(Some(()))
    }

    /// Reports unsupported functions and, if denied, closures. Only then the program is specialized: both are known no earlier.
    pub fn check_supported(&mut self, world: &World) -> Result<(), Reported> {
        if self.denies_closures() || unsupported(world).next().is_some() {
            self.residual(world)?;
        }
        Ok(())
    }

    /// The residual program, with the record of all decisions. The error has the record up to the end of an evaluation that was
    /// given up.
    pub fn residual_with_record(&mut self, world: &World) -> Result<(World, Box<Record>), Option<Box<Record>>> {
        let (residual, stats) = self.specialized(world, true)?;
        Ok((residual, stats.record.unwrap_or_default()))
    }

    fn specialized(
        &mut self,
        world: &World,
        record: bool,
    ) -> Result<(World, nyala_specialize::Stats), Option<Box<Record>>> {
        let options = nyala_specialize::Options {
            annotations: self.options.partial_evaluation,
            budget: self.options.pe_budget,
            record,
            progress: self.options.progress.then(Default::default),
        };
        self.steps = options.progress.clone();
        let result = self.time(
            "specialize",
            |s| nyala_specialize::specialize(world, options, &mut s.sink),
            |r| r.as_ref().map_or(0, |(w, _)| w.n_vals()),
        );
        self.steps = None;
        let (mut residual, stats) = result.map_err(|diverged| {
            let is_library = |file| self.library_files.contains(&file);
            self.sink.push(nyala_specialize::whistle::report(world, &diverged, is_library));
            self.judge_warnings();
            diverged.record
        })?;
        self.calls = std::mem::take(&mut residual.calls);
        let residual = self.checked(Some(residual)).map_err(|Reported| None)?;
        self.verify_graph("specialize", &residual).map_err(|Reported| None)?;
        Ok((residual, stats))
    }

    /// The flat module of a residual program, after the passes of the LLVM back end.
    pub fn flat(&mut self, residual: &World) -> Result<nyala_flat::Module, Reported> {
        self.flat_for(residual, &pipelines::LLVM)
    }

    /// The flat module of a residual program, after the passes of this back end.
    pub fn flat_for(
        &mut self,
        residual: &World,
        back_end: &pipelines::BackEnd,
    ) -> Result<nyala_flat::Module, Reported> {
        Ok(self.flat_with_sources(residual, back_end)?.0)
    }

    /// The notes of the vectorizer on a residual program.
    pub fn vector_notes(&mut self, residual: &World) -> Result<Vec<nyala_vectorize::Note>, Reported> {
        let module = nyala_schedule::schedule(residual, &mut self.sink);
        let mut module = self.checked(module)?;
        nyala_flat::ensure::watch(&mut module, &[], self.origins());
        module.set_target(self.target());
        for pass in pipelines::FLAT.iter().take_while(|p| p.name != "vectorize") {
            (pass.run)(&mut module, &self.options);
        }
        let options = nyala_vectorize::Options { wrap: self.options.wrap, explain: true };
        let outcome = nyala_vectorize::vectorize(&mut module, options);
        outcome.diagnostics.into_iter().for_each(|d| self.sink.push(d));
        self.checked(Some(outcome.notes))
    }

    /// [`Session::flat_for`], and for each function, the function of the residual program that it was made of.
    fn flat_with_sources(
        &mut self,
        residual: &World,
        back_end: &pipelines::BackEnd,
    ) -> Result<(nyala_flat::Module, Vec<Option<Cont>>), Reported> {
        let (mut module, sources) = self.flat_passes(residual, back_end)?;
        self.compile_devices(&mut module)?;
        Ok((module, sources))
    }

    /// Flat SSA after all passes, with the modules of devices, which are not compiled yet.
    pub(crate) fn flat_passes(
        &mut self,
        residual: &World,
        back_end: &pipelines::BackEnd,
    ) -> Result<(nyala_flat::Module, Vec<Option<Cont>>), Reported> {
        let size = |m: &nyala_flat::Module| pipelines::flat_size(m);
        let scheduled = self.time(
            "schedule",
            |s| nyala_schedule::schedule_with_sources(residual, &mut s.sink),
            |m| m.as_ref().map_or(0, |(m, _)| size(m)),
        );
        let (mut module, sources) = self.checked(scheduled)?;
        let judge = |s: &Session, module: &_, stage| nyala_flat::ensure::judge(module, &s.ensures, s.origins(), stage);
        let mut failures = nyala_flat::ensure::watch(&mut module, &self.ensures, self.origins());
        module.set_target(self.target());
        self.verify_flat("schedule", &module)?;
        let level = self.options.opt_level;
        for pass in pipelines::FLAT.iter().filter(|p| level >= p.min_level) {
            if pass.name == "lower-launches" {
                failures.append(&mut judge(self, &module, Stage::Plain));
            }
            if !back_end.takes_pass(pass, &module) {
                continue;
            }
            if pass.name == "vectorize" && self.checks().overflow {
                self.time("insert-lane-checks", |_| nyala_checks::insert_lane_checks(&mut module), |()| 0);
                self.verify_flat("insert-lane-checks", &module)?;
            }
            module = self.time(
                pass.name,
                |s| {
                    for mut d in (pass.run)(&mut module, &s.options) {
                        closures::explain_choice(residual, &s.sources, &mut d);
                        s.sink.push(d);
                    }
                    module
                },
                size,
            );
            module = self.checked(Some(module))?;
            self.verify_flat(pass.name, &module)?;
        }
        // Other back ends do not always vectorize. Checks in lanes are no code of the program.
        if back_end.name == pipelines::LLVM.name && !self.checks().overflow {
            failures.append(&mut judge(self, &module, Stage::Vectorized));
        }
        ensures::report(self, &failures)?;
        self.prepare_devices(&mut module)?;
        self.insert_checks(&mut module)?;
        // After warnings and checks. Nothing of it may be undefined to another compiler.
        nyala_checks::wrap_constants(&mut module);
        Ok((module, sources))
    }

    /// What native code checks.
    fn checks(&self) -> nyala_checks::Checks {
        let mut checks = self.options.checks;
        checks.overflow &= !self.options.wrap;
        checks
    }

    /// Makes native code check what it does, if asked to.
    fn insert_checks(&mut self, module: &mut nyala_flat::Module) -> Result<(), Reported> {
        let checks = self.checks();
        if checks == nyala_checks::Checks::default() {
            return Ok(());
        }
        self.time(
            "insert-checks",
            |s| {
                let site = |span: Span| {
                    // The runtime writes the first line.
                    let mut report = nyala_base::diagnostics::bug::error(span.without_call(), "");
                    report.hints.clear();
                    report.add_calls(s.calls.around(span));
                    let text = report.render(&s.sources, false);
                    text.split_once('\n').map_or(String::new(), |(_, rest)| rest.into())
                };
                let place = |span: Span| s.sources.place(s.own_place(span));
                nyala_checks::insert_checks(module, checks, &nyala_checks::Texts { site: &site, place: &place });
            },
            |()| 0,
        );
        self.verify_flat("insert-checks", module)
    }

    /// The bytes of machine code that each function of the residual program became, those of functions that were inlined
    /// into all their callers 0, and of all code together. Code that cannot be compiled is reported.
    pub fn code_sizes(&mut self, residual: &World) -> Result<(Vec<(Cont, u64)>, u64), Reported> {
        let (module, sources) = self.flat_with_sources(residual, &pipelines::LLVM)?;
        let emitted = self.emit_llvm(&module, None)?;
        let object = self.object(&emitted)?;
        let file = object::File::parse(&*object).map_err(|e| {
            let fault = format!("an object made by LLVM cannot be read: {e}");
            self.report(nyala_base::diagnostics::bug::error(Span::NONE, fault))
        })?;
        let text = file.sections().filter(|s| s.kind() == object::SectionKind::Text).map(|s| s.size()).sum();
        let functions = file.symbols().filter(|s| s.kind() == object::SymbolKind::Text);
        let sizes: HashMap<&str, u64> = functions.filter_map(|s| Some((s.name().ok()?, s.size()))).collect();
        let size = |symbols: &[String]| symbols.iter().filter_map(|s| sizes.get(s.as_str())).sum::<u64>();
        let all = sources.iter().zip(&emitted.symbols).filter_map(|(k, symbols)| Some(((*k)?, size(symbols))));
        Ok((all.collect(), text))
    }

    fn llvm_options(&self) -> nyala_gen_llvm::Options {
        nyala_gen_llvm::Options {
            opt_level: self.options.opt_level,
            more_cpus: self.options.more_cpus.clone(),
            vector_width: self.options.vector_width,
            sanitizer: self.options.sanitizer,
            ..Default::default()
        }
    }

    /// The LLVM module of a flat one, optimized.
    pub fn llvm(&mut self, module: &nyala_flat::Module) -> Result<nyala_gen_llvm::LlvmModule, Reported> {
        let emitted = self.emit_llvm(module, None)?;
        self.optimize(&emitted)
    }

    /// The text that LLVM gets; with functions and lines if there is a folder that names of files start from.
    fn emit_llvm(
        &mut self,
        module: &nyala_flat::Module,
        folder: Option<&str>,
    ) -> Result<nyala_gen_llvm::Emitted, Reported> {
        let options = self.llvm_options();
        let emitted = self.time(
            "emit",
            |s| {
                let own = |span| s.own_place(span);
                let lines = folder.map(|folder| nyala_gen_llvm::Lines { sources: &s.sources, folder, own: &own });
                nyala_gen_llvm::emit_module(module, &options, lines)
            },
            |_| 0,
        );
        emitted.map_err(|d| self.report(*d))
    }

    fn optimize(&mut self, emitted: &nyala_gen_llvm::Emitted) -> Result<nyala_gen_llvm::LlvmModule, Reported> {
        let options = self.llvm_options();
        let parsed = self.time("llvm-read", |_| emitted.parse(&options), |_| 0);
        let mut llvm = parsed.map_err(|d| self.report(*d))?;
        let optimized = self.time("llvm-optimize", |_| llvm.optimize(), |_| 0);
        optimized.map_err(|d| self.report(*d))?;
        Ok(llvm)
    }

    /// The object of a module: kept from an earlier run, or made now.
    fn object(&mut self, emitted: &nyala_gen_llvm::Emitted) -> Result<Vec<u8>, Reported> {
        let Some(cache) = self.options.cache.clone() else { return self.fresh_object(emitted) };
        let options = self.llvm_options();
        // In the table of times a size of 0 is a miss.
        let lookup = |_: &mut Session| {
            let key = cache.key(emitted, &options);
            let object = cache.get(&key);
            (key, object)
        };
        let (key, kept) = self.time("native-cache", lookup, |(_, o)| o.as_ref().map_or(0, Vec::len));
        if let Some(object) = kept {
            return Ok(object);
        }
        let object = self.fresh_object(emitted)?;
        self.time("native-cache-store", |_| cache.put(&key, &object), |_| 0);
        Ok(object)
    }

    fn fresh_object(&mut self, emitted: &nyala_gen_llvm::Emitted) -> Result<Vec<u8>, Reported> {
        let llvm = self.optimize(emitted)?;
        let object = self.time("llvm-codegen", |_| llvm.object(), |o| o.as_ref().map_or(0, Vec::len));
        object.map_err(|d| self.report(*d))
    }

    /// Notes a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.sink.push(diagnostic);
        self.add_calls();
        Reported
    }

    fn verify_graph(&mut self, pass: &'static str, world: &World) -> Result<(), Reported> {
        if !self.options.verify {
            return Ok(());
        }
        let faults = nyala_ir::verify::verify(world, &world.roots());
        match faults.first() {
            None => Ok(()),
            Some(fault) => Err(self.bug(pass, fault)),
        }
    }

    fn verify_flat(&mut self, pass: &'static str, module: &nyala_flat::Module) -> Result<(), Reported> {
        if !self.options.verify {
            return Ok(());
        }
        match nyala_flat::verify(module) {
            Ok(()) => Ok(()),
            Err(fault) => Err(self.bug(pass, &format!("{fault:?}"))),
        }
    }

    fn bug(&mut self, pass: &str, fault: &str) -> Reported {
        let message = format!("after `{pass}` the program is not well-formed: {fault}");
        self.report(nyala_base::diagnostics::bug::error(Span::NONE, message))
    }

    /// All findings as text, most important first as they came.
    pub fn render(&self, color: bool) -> String {
        let mut out = String::new();
        for d in &self.sink.diagnostics {
            out.push_str(&d.render(&self.sources, color));
        }
        out
    }

    /// Errors reported so far.
    pub fn n_errors(&self) -> usize {
        self.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }
}

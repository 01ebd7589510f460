//! Native code of a program: its units ([`nyala_gen_llvm::emit_units`]), each kept from an earlier run or compiled now, on all cores.
//! Those of an executable are those of a program that runs in memory, but for the one with its start. Separate from `code.rs`, where a
//! program is one module.

use crate::Options;
use crate::cache::Setting;
use crate::code::llvm_options;
use crate::flat::Flat;
use crate::report::{Failed, Report};
use nyala_base::Diagnostic;
use nyala_gen_llvm::Emitted;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// LLVM recurses on the depth of expressions.
const STACK: usize = 256 << 20;

/// What a unit became, with the times of reading, optimization and code generation.
type Compiled = Result<(Vec<u8>, [Duration; 3]), Box<Diagnostic>>;

impl Flat {
    /// The objects of the program's units, for memory. They refer to each other.
    pub(crate) fn objects(&self) -> Result<(Report, Vec<Vec<u8>>), Failed> {
        // With lines, for reports of the program's own faults.
        self.objects_with(Some(""), false)
    }

    /// The objects of the program's units, with functions and lines if there is a folder that names of files start from. What they
    /// share may be hidden from other files.
    pub(crate) fn objects_with(
        &self,
        folder: Option<&str>,
        hides_shared: bool,
    ) -> Result<(Report, Vec<Vec<u8>>), Failed> {
        let (mut report, options) = (self.report.clone(), &self.options);
        let of_llvm = nyala_gen_llvm::Options { hides_shared, ..llvm_options(options) };
        let emit = |r: &mut Report| {
            let own = |span| r.own_place(span);
            let calls = options.debug.then_some(&*r.calls);
            // Debuggers read the lines themselves.
            let in_sections = !options.debug;
            let lines = folder.map(|folder| {
                let folder = if in_sections { "" } else { folder };
                nyala_gen_llvm::Lines { sources: &r.sources, folder, own: &own, calls, in_sections }
            });
            nyala_gen_llvm::emit_units(&self.module, &of_llvm, lines)
        };
        let units = report.time(options, "emit", emit, |_| 0).map_err(|d| report.report(*d))?;
        let lookup = |_: &mut Report| -> (Vec<_>, Vec<Option<Vec<u8>>>) {
            let Some(cache) = &options.cache else { return (Vec::new(), vec![None; units.len()]) };
            let setting = Setting::new(&of_llvm, self.module.target());
            let keys: Vec<_> = units.iter().map(|unit| cache.key(unit, &setting)).collect();
            let kept = keys.iter().map(|key| cache.get(key)).collect();
            (keys, kept)
        };
        let n_kept = |found: &(Vec<_>, Vec<Option<Vec<u8>>>)| found.1.iter().flatten().count();
        let (keys, mut objects) = match options.cache {
            // In the table of times the size is the number of units that are kept.
            Some(_) => report.time(options, "native-cache", lookup, n_kept),
            None => lookup(&mut report),
        };
        let missing: Vec<usize> = (0..units.len()).filter(|&i| objects[i].is_none()).collect();
        let compiled = compile(&mut report, options, &of_llvm, &units, &missing)?;
        if let Some(cache) = &options.cache
            && !compiled.is_empty()
        {
            let store = |_: &mut Report| compiled.iter().for_each(|(i, object)| cache.put(&keys[*i], object));
            report.time(options, "native-cache-store", store, |()| 0);
        }
        for (i, object) in compiled {
            objects[i] = Some(object);
        }
        Ok((report, objects.into_iter().flatten().collect()))
    }
}

/// Compiles units, long ones first. The times that are noted are those of all threads together.
fn compile(
    report: &mut Report,
    options: &Options,
    of_llvm: &nyala_gen_llvm::Options,
    units: &[Emitted],
    missing: &[usize],
) -> Result<Vec<(usize, Vec<u8>)>, Failed> {
    let mut order = missing.to_vec();
    order.sort_by_key(|&i| std::cmp::Reverse(units[i].text.len()));
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(order.len());
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(order.len())));
    let work = || {
        while let Some(&i) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compiled = compile_one(&units[i], of_llvm);
            done.lock().unwrap_or_else(|e| e.into_inner()).push((i, compiled));
        }
    };
    let line = (options.progress && !order.is_empty()).then(|| crate::progress::Line::start("llvm", None));
    std::thread::scope(|scope| {
        // Where no thread can be had, this one does all.
        let others = (1..n_threads).map(|_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work));
        let others: Vec<_> = others.collect();
        work();
        drop(others);
    });
    drop(line);
    let mut done: Vec<(usize, Compiled)> = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by_key(|(i, _)| *i);
    let (mut objects, mut times) = (Vec::new(), [Duration::ZERO; 3]);
    for (i, compiled) in done {
        let (object, taken) = compiled.map_err(|d| report.report(*d))?;
        times.iter_mut().zip(taken).for_each(|(sum, time)| *sum += time);
        objects.push((i, object));
    }
    if !objects.is_empty() {
        let bytes = objects.iter().map(|(_, object)| object.len()).sum();
        for (pass, time, size) in
            [("llvm-read", times[0], 0), ("llvm-optimize", times[1], 0), ("llvm-codegen", times[2], bytes)]
        {
            report.timings.push(crate::report::Timing { pass, time, size });
        }
    }
    Ok(objects)
}

fn compile_one(unit: &Emitted, options: &nyala_gen_llvm::Options) -> Compiled {
    let start = Instant::now();
    let mut module = unit.parse(options)?;
    let read = start.elapsed();
    module.optimize()?;
    let optimized = start.elapsed();
    let object = module.object()?;
    Ok((object, [read, optimized - read, start.elapsed() - optimized]))
}

//! Functions of Staged-C that are made while a program runs as native code in memory: `T g(params) = compile f<args>;`.
//!
//! Separate from the programs, whose code knows nothing of this but three kinds of calls: values are handed over one by one, then a
//! number says which function is to be made of them. It is made as any is: the program gets one more file, which specializes `f`
//! for the values, and is compiled anew. So what happens then is what staging does when `f<…>` has these literals. A function is
//! made once for equal values; its code is kept until the process ends.

use super::is_program;
use crate::Options;
use crate::front::{Files, FrontEnd};
use crate::report::{Failed, Report};
use nyala_base::diagnostics::{bug, limitation};
use nyala_base::{FileId, Id, Span};
use nyala_gen_llvm::Jit;
use nyala_staging::lower::{COMPILE, COMPILE_VALUES};
use nyala_staging::program::{COMPILED, Program, Site};
use nyala_staging::term::Const;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The stack in bytes with which the compiler works.
const STACK: usize = 256 << 20;

/// A program with such functions.
struct Running {
    options: Options,
    /// Names and texts.
    files: Vec<(String, String)>,
    sites: Vec<Site>,
}

/// The functions that are made, by their numbers and texts: addresses, and what keeps the code.
type Made = HashMap<(i32, String), (usize, Arc<Jit>)>;

/// For each number the program, and which of its sites it is.
static SITES: Mutex<Vec<(Arc<Running>, usize)>> = Mutex::new(Vec::new());
static MADE: OnceLock<Mutex<Made>> = OnceLock::new();

thread_local! {
    static VALUES: RefCell<Vec<Const>> = const { RefCell::new(Vec::new()) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a program, unless it has no such functions. Gives the number of the first one.
pub(super) fn register(program: &Program, report: &mut Report, options: &Options) -> i32 {
    if program.sites.is_empty() {
        return 0;
    }
    let all = (0..report.sources.names().count()).map(FileId::from_idx).filter(|&f| !report.is_library(f));
    let (own, others): (Vec<FileId>, Vec<FileId>) = all.partition(|&f| super::is_staged(report.sources.name(f)));
    if let Some(&other) = others.first() {
        let hint = "leave out `compile`, or the files in Impala: their variables would be there twice";
        let span = Span::new(other, 0, 0);
        report.sink.push(limitation::not_supported(span, "`compile` in programs with files in Impala", hint));
    }
    let own = own.into_iter().filter(|&f| is_program(&report.sources, f));
    let files = own.map(|f| (report.sources.name(f).to_string(), report.sources.text(f).to_string())).collect();
    let running = Arc::new(Running { options: options.clone(), files, sites: program.sites.clone() });
    let mut sites = lock(&SITES);
    let first = sites.len() as i32;
    sites.extend((0..program.sites.len()).map(|i| (running.clone(), i)));
    first
}

/// What code in memory calls.
pub(crate) fn symbols() -> [(&'static str, usize); 5] {
    extern "C" fn int(value: i32) {
        push(Const::Int(value));
    }
    extern "C" fn float(value: f32) {
        push(Const::Float(value));
    }
    extern "C" fn double(value: f64) {
        push(Const::Double(value));
    }
    extern "C" fn boolean(value: bool) {
        push(Const::Bool(value));
    }
    extern "C" fn compile(site: i32) -> usize {
        let values = VALUES.take();
        made(site, &values).unwrap_or_else(|report| {
            nyala_runtime::nyala_flush();
            eprint!("{}", report.render(false));
            // A host that calls the program goes on.
            nyala_runtime::nyala_exit(1)
        })
    }
    let [of_int, of_float, of_double, of_bool] = COMPILE_VALUES;
    [
        (of_int, int as *const () as usize),
        (of_float, float as *const () as usize),
        (of_double, double as *const () as usize),
        (of_bool, boolean as *const () as usize),
        (COMPILE, compile as *const () as usize),
    ]
}

fn push(value: Const) {
    VALUES.with_borrow_mut(|values| values.push(value));
}

fn made(site: i32, values: &[Const]) -> Result<usize, Failed> {
    let found = lock(&SITES).get(site as usize).cloned();
    let no_site = || Report::default().report(bug::error(Span::NONE, format!("no function {site} to compile")));
    let (program, idx) = found.ok_or_else(no_site)?;
    let Some(text) = program.sites[idx].text(values) else {
        let hint = "pass such a number as a parameter of the function";
        let what = "functions that are compiled for a float which is not finite";
        return Err(Report::default().report(limitation::not_supported(Span::NONE, what, hint)));
    };
    let made = MADE.get_or_init(Mutex::default);
    let key = (site, text);
    if let Some(&(address, _)) = lock(made).get(&key) {
        return Ok(address);
    }
    let mut files = Files::default();
    program.files.iter().for_each(|(name, text)| files.add(name, text));
    files.add("<compiled>.stagedc", &*key.1);
    let options = program.options.clone();
    let compile = move || -> Result<(usize, Arc<Jit>), Failed> {
        let loaded = FrontEnd::new(options, files).graph()?.residual()?.flat()?.load(&[])?;
        let address = loaded.jit.lookup(COMPILED).map_err(|d| loaded.report.clone().report(*d))?;
        Ok((address, loaded.jit))
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(compile);
    let failed = |what: &str| Report::default().report(bug::error(Span::NONE, format!("the compiler {what}")));
    let done = thread.map_err(|_| failed("has no thread"))?.join();
    let (address, jit) = done.map_err(|_| failed("has failed while the program runs"))??;
    lock(made).insert(key, (address, jit));
    Ok(address)
}

/// An error where a program with such functions does not run as native code in memory.
pub(crate) fn only_in_memory<'s>(
    report: &Report,
    mut symbols: impl Iterator<Item = &'s str>,
    what: &str,
) -> Result<(), Failed> {
    if !symbols.any(|symbol| symbol == COMPILE) {
        return Ok(());
    }
    let hint = "run it with `nyala run`, or leave out `compile`";
    let what = format!("functions that are made by `compile`, in programs that {what}");
    Err(report.clone().report(limitation::not_supported(Span::NONE, &what, hint)))
}

//! Functions of DeepCPS and Staged-C that are made while a program runs as native code in memory: `compile`.
//!
//! Separate from the programs, whose code knows nothing of this but two kinds of calls: values are handed over one by one, then a
//! number says which [`Site`] takes them. What staging leaves of that, with these values, is a program of its own, and is compiled as any
//! is. A function is made once for equal values; its code is kept until the process ends.
//!
//! Elsewhere the runtime's functions of these names are called, which make nothing: what the interpreter runs, a C compiler compiles or
//! is built goes on with the function that another one would be made of.

use crate::Options;
use crate::front::{Files, FrontEnd};
use crate::report::{Failed, Report};
use nyala_base::diagnostics::{bug, limitation};
use nyala_base::{Diagnostic, Sink, Sources, Span};
use nyala_gen_llvm::Jit;
use nyala_ir::World;
use nyala_staging::lower::{COMPILE, NO_CODE};
use nyala_staging::site::{COMPILED, Site};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The stack in bytes with which the compiler works.
const STACK: usize = 256 << 20;

/// A program with such functions.
pub(super) struct Running {
    options: Options,
    /// For diagnostics.
    sources: Sources,
}

impl Running {
    pub fn new(options: &Options, sources: &Sources) -> Arc<Running> {
        // The program of a function has no files.
        let options = Options { prelude: false, defines: Vec::new(), tuned: None, ..options.clone() };
        Arc::new(Running { options, sources: sources.clone() })
    }
}

/// The functions that are made, by the numbers of their sites and values: addresses, and what keeps the code.
type Made = HashMap<(i32, Vec<u64>), (usize, Arc<Jit>)>;

/// By their numbers.
static SITES: Mutex<Vec<(Arc<Running>, Arc<Site>)>> = Mutex::new(Vec::new());
static MADE: OnceLock<Mutex<Made>> = OnceLock::new();

thread_local! {
    static VALUES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a site.
pub(super) fn register(running: &Arc<Running>, site: Arc<Site>) -> i32 {
    let mut sites = lock(&SITES);
    sites.push((running.clone(), site));
    sites.len() as i32 - 1
}

/// A function in memory of its own finds C's functions, but not those of the program.
pub(super) fn check(sites: &[Arc<Site>], world: &World, sink: &mut Sink) {
    for (name, span) in sites.iter().flat_map(|site| &site.foreign) {
        if world.find_root(name).is_some() {
            let hint = "call it before or after, or write it in the same language";
            let what = format!("calls of the program's other code, as `{name}`, in functions that `compile` makes,");
            sink.push(limitation::not_supported(*span, &what, hint));
        }
    }
}

/// What code in memory calls.
pub(crate) fn symbols() -> [(&'static str, usize); 3] {
    extern "C" fn value(bits: u64) {
        VALUES.with_borrow_mut(|values| values.push(bits));
    }
    extern "C" fn compile(site: i32) -> u64 {
        let values = VALUES.take();
        made(site, values).unwrap_or_else(|report| ended(&report)) as u64
    }
    extern "C" fn no_code() {
        ended(&Report::default().report(bug::error(Span::NONE, "a function that is not code is called")));
    }
    let [of_value, of_site] = COMPILE;
    [
        (of_value, value as *const () as usize),
        (of_site, compile as *const () as usize),
        (NO_CODE, no_code as *const () as usize),
    ]
}

fn ended(report: &Report) -> usize {
    nyala_runtime::nyala_flush();
    eprint!("{}", report.render(false));
    // A host that calls the program goes on.
    nyala_runtime::nyala_exit(1)
}

fn made(number: i32, values: Vec<u64>) -> Result<usize, Failed> {
    let found = lock(&SITES).get(number as usize).cloned();
    let no_site = || Report::default().report(bug::error(Span::NONE, format!("no function {number} to compile")));
    let (running, site) = found.ok_or_else(no_site)?;
    let made = MADE.get_or_init(Mutex::default);
    let key = (number, values);
    if let Some(&(address, _)) = lock(made).get(&key) {
        return Ok(address);
    }
    let program = site.program(&key.1);
    let compile = move || -> Result<(usize, Arc<Jit>), Failed> {
        let mut front = FrontEnd::new(running.options.clone(), Files::default());
        front.report.sources = running.sources.clone();
        front.staged.push(program);
        let loaded = front.graph()?.residual()?.flat()?.load(&[])?;
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

/// An error where a program without a compiler would need one: a function is no code unless its values are known.
pub(crate) fn needs_code<'s>(
    report: &Report,
    mut symbols: impl Iterator<Item = &'s str>,
    what: &str,
) -> Result<(), Failed> {
    if !symbols.any(|symbol| symbol == NO_CODE) {
        return Ok(());
    }
    let what = format!("functions that only `compile` makes code of, in programs that {what},");
    let fault = match report.no_code.as_deref() {
        Some(Diagnostic { primary, message, .. }) => {
            let hint = "run it with `nyala run`: with values, there may be no such fault";
            limitation::not_supported(primary.span, &what, hint).label(message)
        }
        None => limitation::not_supported(Span::NONE, &what, "run it with `nyala run`"),
    };
    Err(report.clone().report(fault))
}

/// Whether that symbol makes a function.
pub(crate) fn is_compile(symbol: &str) -> bool {
    symbol == COMPILE[1]
}

/// The warning of what is built.
pub(crate) fn without_compiler() -> Diagnostic {
    let message = "what is built has no compiler: in place of functions that `compile` makes, general ones are called";
    limitation::warning(Span::NONE, message, "`nyala run`, and a host that embeds the compiler, make them")
}

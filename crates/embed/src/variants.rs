//! The variants of a program's functions: built once for equal values, kept up to a number, the least recently used ones dropped
//! first. Separate from what a variant is made of, which is a key here.

use crate::code::Code;
use crate::compiler::on_large_stack;
use crate::confined;
use crate::error::{Diagnostic, Error, diagnostics};
use crate::fixed;
use crate::program::Program;
use nyala_driver::shims::{Elements, RECEIVED, SHIM, SHIMMED};
use nyala_driver::variants::GENERIC;
use nyala_driver::{Fixed, Graph, Timing, explain};
use rustc_hash::FxHashMap;
use std::any::TypeId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// How many variants a program keeps unless it is told another number.
pub(crate) const USUAL_NUMBER: usize = 1024;

/// Counts of a program's variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variants {
    /// Those that are kept, and those being built.
    pub kept: usize,
    /// How often one was found.
    pub found: u64,
    /// How often one was not, and was built.
    pub built: u64,
    /// How many were dropped for others. Their code lives as long as handles of it.
    pub dropped: u64,
}

/// What a variant took.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The time of partial evaluation.
    pub partial_evaluation: Duration,
    /// The time of everything, from the graph to code that can be called.
    pub total: Duration,
    /// What the compiler said about it.
    pub warnings: Vec<Diagnostic>,
}

/// The variants of a program.
pub(crate) struct Kept {
    state: Mutex<State>,
    /// For each parameter of each function a type that it can be fixed to: the first one that was compared with the program's.
    known: Vec<Vec<OnceLock<TypeId>>>,
    waiting: Mutex<Waiting>,
}

/// Variants that are to be built in the background, by one thread.
#[derive(Default)]
struct Waiting {
    variants: VecDeque<Arc<Variant>>,
    has_thread: bool,
}

struct State {
    all: FxHashMap<Arc<[u8]>, (Arc<Variant>, u64)>,
    limit: usize,
    /// The number of uses so far: the age of a use.
    uses: u64,
    counts: Variants,
}

/// A variant, which is built when somebody wants it first.
pub(crate) struct Variant {
    pub(crate) key: Arc<[u8]>,
    pub(crate) depth: usize,
    built: OnceLock<Result<Built, Error>>,
    /// The code that handles call while the variant is built in the background.
    stand_in: OnceLock<Result<Built, Error>>,
    /// Types that were compared with the program's.
    types: OnceLock<TypeId>,
    /// What calls the code with arguments in memory.
    shims: Shims,
}

/// The [shims](nyala_driver::shims) of a function, which are made when somebody wants them first.
#[derive(Default)]
pub(crate) struct Shims {
    call: Made,
    loops: MadeFor<Elements>,
    /// By the positions of their parameters, and what they give their arguments to.
    receivers: MadeFor<(usize, usize)>,
}

type Made = OnceLock<Result<Built, Error>>;

/// Compiled code by keys. A lock is held to find an entry, not to compile it.
type MadeFor<K> = Mutex<Vec<(K, Arc<Made>)>>;

/// The code of a variant.
pub(crate) struct Built {
    pub(crate) address: usize,
    pub(crate) stats: Stats,
    /// What the address is in.
    _code: Code,
}

impl Kept {
    /// None yet, of functions with so many parameters each.
    pub(crate) fn new(limit: usize, n_params: impl Iterator<Item = usize>) -> Kept {
        let state = State { all: FxHashMap::default(), limit, uses: 0, counts: Variants::default() };
        let known = n_params.map(|n| vec![OnceLock::new(); n]).collect();
        Kept { state: Mutex::new(state), known, waiting: Mutex::default() }
    }

    /// The type that a parameter can be fixed to, by the numbers of function and parameter.
    pub(crate) fn known(&self, function: usize, param: usize) -> Option<&OnceLock<TypeId>> {
        self.known.get(function)?.get(param)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panics leaves the table whole.
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn counts(&self) -> Variants {
        let state = self.state();
        Variants { kept: state.all.len(), ..state.counts }
    }

    /// A variant that is kept, or being built.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<Variant>> {
        let state = &mut *self.state();
        state.uses += 1;
        let (variant, used) = state.all.get_mut(key)?;
        *used = state.uses;
        state.counts.found += 1;
        Some(variant.clone())
    }

    /// A variant, which is there or is to be built.
    pub(crate) fn make(&self, key: &[u8], depth: usize) -> Arc<Variant> {
        let mut dropped = None;
        let variant = {
            let state = &mut *self.state();
            state.uses += 1;
            match state.all.get_mut(key) {
                Some((variant, used)) => {
                    *used = state.uses;
                    state.counts.found += 1;
                    variant.clone()
                }
                None => {
                    state.counts.built += 1;
                    if state.all.len() >= state.limit {
                        dropped = state.drop_oldest();
                    }
                    let key: Arc<[u8]> = key.into();
                    let variant = Arc::new(Variant {
                        key: key.clone(),
                        depth,
                        built: OnceLock::new(),
                        stand_in: OnceLock::new(),
                        types: OnceLock::new(),
                        shims: Shims::default(),
                    });
                    state.all.insert(key, (variant.clone(), state.uses));
                    variant
                }
            }
        };
        // Freeing code takes long.
        drop(dropped);
        variant
    }

    /// Drops a variant that could not be built for want of memory or threads, so that it is tried again.
    fn forget(&self, key: &[u8]) {
        let forgotten = self.state().all.remove(key);
        drop(forgotten);
    }

    /// Builds a variant in the background, after those that were wanted before; here, if as many wait as are kept.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn build_later(&self, program: &Program, variant: Arc<Variant>) -> Result<(), Error> {
        let limit = self.state().limit;
        let mut waiting = self.waiting.lock().unwrap_or_else(|e| e.into_inner());
        if waiting.variants.len() >= limit {
            drop(waiting);
            variant.build(program);
            return Ok(());
        }
        waiting.variants.push_back(variant);
        if waiting.has_thread {
            return Ok(());
        }
        let program = program.clone();
        let next = |program: &Program| {
            let mut waiting = program.kept().waiting.lock().unwrap_or_else(|e| e.into_inner());
            let next = waiting.variants.pop_front();
            waiting.has_thread = next.is_some();
            next
        };
        let work = move || {
            while let Some(variant) = next(&program) {
                variant.build(&program);
            }
        };
        let thread = std::thread::Builder::new().name("nyala-variants".into()).spawn(work);
        waiting.has_thread = thread.is_ok();
        thread.map(drop).map_err(|e| Error::System(format!("cannot start a thread: {e}")))
    }
}

impl State {
    /// Takes out the variant that was used least recently. One that is being built stays: others may want it.
    fn drop_oldest(&mut self) -> Option<Arc<Variant>> {
        let built = self.all.iter().filter(|(_, (variant, _))| variant.built.get().is_some());
        let key = built.min_by_key(|(_, (_, used))| *used)?.0.clone();
        self.counts.dropped += 1;
        self.all.remove(&key).map(|(variant, _)| variant)
    }
}

impl Variant {
    /// Builds it, unless that is done; waits for it if another thread does.
    fn build(&self, program: &Program) -> &Result<Built, Error> {
        self.built.get_or_init(|| {
            let built = on_large_stack(|| {
                let symbol = symbol(program, &self.key)?;
                Built::of(&graph(program, &self.key)?, symbol, &[])
            });
            if let Err(Error::System(_)) = built {
                program.kept().forget(&self.key);
            }
            built
        })
    }

    /// The code; it is built now if it is not there.
    pub(crate) fn code(&self, program: &Program) -> Result<&Built, Error> {
        self.build(program).as_ref().map_err(Error::clone)
    }

    /// Whether it is built, well or not.
    pub(crate) fn is_built(&self) -> bool {
        self.built.get().is_some()
    }

    /// The code that is there: the variant's, or its stand-in's.
    pub(crate) fn address(&self) -> usize {
        let there = self.built.get().and_then(|built| built.as_ref().ok());
        let there = there.or_else(|| self.stand_in.get().and_then(|built| built.as_ref().ok()));
        there.map_or(0, |built| built.address)
    }

    /// Makes code to call until the variant is there.
    pub(crate) fn stand_in(&self, program: &Program) -> Result<(), Error> {
        let stand_in = self.stand_in.get_or_init(|| {
            on_large_stack(|| {
                let symbol = symbol(program, &self.key)?;
                let variant = fixed::variant(&self.key, program.signatures()).map_err(|e| Error::Bug(e.into()))?;
                let (all, _) = program.graph();
                let has_function = variant.fixed.iter().flatten().any(|value| matches!(value, Fixed::Function(_)));
                let is_confined = fixed::is_confined(&self.key);
                let mut graph = match has_function || is_confined {
                    // Only specialized code has no function as a parameter, and is confined.
                    true => graph(program, &self.key)?,
                    false => all.stand_in(&variant).map_err(|failed| Error::of(&failed))?,
                };
                graph.options.opt_level = u8::from(is_confined);
                Built::of(&graph, symbol, &[(GENERIC, program.address(symbol))])
            })
        });
        stand_in.as_ref().map(|_| ()).map_err(Error::clone)
    }

    /// Whether these types were compared with the program's. `false` if it is not known.
    pub(crate) fn has_types<A: 'static, R: 'static>(&self) -> bool {
        self.types.get() == Some(&TypeId::of::<(A, R)>())
    }

    pub(crate) fn note_types<A: 'static, R: 'static>(&self) {
        // The first types are those of most calls.
        let _ = self.types.set(TypeId::of::<(A, R)>());
    }

    pub(crate) fn shims(&self) -> &Shims {
        &self.shims
    }

    pub(crate) fn explain_html(program: &Program, key: &[u8]) -> Result<String, Error> {
        on_large_stack(|| {
            let explained = explain::explain(&graph(program, key)?).map_err(|failed| Error::of(&failed))?;
            Ok(explain::html::page(&explained, &program.files().names()))
        })
    }

    pub(crate) fn explain(program: &Program, key: &[u8]) -> Result<String, Error> {
        on_large_stack(|| {
            let graph = graph(program, key)?;
            let mut explained = explain::explain(&graph).map_err(|failed| Error::of(&failed))?;
            let text = explain::text(&explained.report, None, usize::MAX);
            text.map_err(|d| Error::of(&explained.residual.report.report(*d)))
        })
    }
}

impl Shims {
    /// The address of the shim of the function at an address, which has no parameters at the positions `fixed`.
    pub(crate) fn call(
        &self,
        program: &Program,
        symbol: &str,
        fixed: &[usize],
        address: usize,
    ) -> Result<usize, Error> {
        let built = self.call.get_or_init(|| {
            on_large_stack(|| {
                let graph = program.graph().0.shim(symbol, fixed).map_err(|failed| Error::of(&failed))?;
                Built::of(&graph, SHIM, &[(SHIMMED, address)])
            })
        });
        built.as_ref().map(|built| built.address).map_err(Error::clone)
    }
}

impl Shims {
    /// The address of a loop with the code of a key.
    pub(crate) fn element_loop(&self, program: &Program, key: &[u8], elements: Elements) -> Result<usize, Error> {
        let built = made(&self.loops, elements);
        let built = built.get_or_init(|| {
            on_large_stack(|| {
                let variant = fixed::variant(key, program.signatures()).map_err(|why| Error::Bug(why.into()))?;
                let (graph, statics) = program.graph();
                let graph = graph.element_loop(&variant, elements, statics).map_err(|failed| Error::of(&failed))?;
                Built::of(&graph, SHIM, &[])
            })
        });
        built.as_ref().map(|built| built.address).map_err(Error::clone)
    }
}

impl Shims {
    /// The address of the receiver of a parameter that is a function, which gives what it gets to a function at an address.
    pub(crate) fn receiver(
        &self,
        program: &Program,
        symbol: &str,
        param: usize,
        received: usize,
    ) -> Result<usize, Error> {
        let built = made(&self.receivers, (param, received));
        let built = built.get_or_init(|| {
            on_large_stack(|| {
                let graph = program.graph().0.receiver(symbol, param).map_err(|failed| Error::of(&failed))?;
                Built::of(&graph, SHIM, &[(RECEIVED, received)])
            })
        });
        built.as_ref().map(|built| built.address).map_err(Error::clone)
    }
}

/// The entry of a key, which is compiled by whoever needs it first.
fn made<K: PartialEq>(all: &MadeFor<K>, key: K) -> Arc<Made> {
    let mut all = all.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, built)) = all.iter().find(|(other, _)| *other == key) {
        return built.clone();
    }
    let built = Arc::<Made>::default();
    all.push((key, built.clone()));
    built
}

fn graph(program: &Program, key: &[u8]) -> Result<Graph, Error> {
    let variant = fixed::variant(key, program.signatures()).map_err(|why| Error::Bug(why.into()))?;
    let (graph, statics) = program.graph();
    let mut graph = graph.variant(&variant, statics).map_err(|failed| Error::of(&failed))?;
    if fixed::is_confined(key) {
        graph.options.confined = Some(confined::lent(program, key)?);
        // Unless variables are promoted, addresses are stored.
        graph.options.opt_level = graph.options.opt_level.max(1);
    }
    Ok(graph)
}

fn symbol<'a>(program: &'a Program, key: &[u8]) -> Result<&'a str, Error> {
    let function = fixed::function_of(key, program.signatures());
    function.map(|f| &*f.symbol).ok_or_else(|| Error::Bug("a variant of no function".into()))
}

impl Built {
    /// Compiles a graph in which some symbols have addresses.
    fn of(graph: &Graph, symbol: &str, symbols: &[(&str, usize)]) -> Result<Built, Error> {
        let n_before = graph.report.timings.len();
        let compiled = || graph.residual()?.flat()?.load_with(&[], symbols);
        let mut loaded = compiled().map_err(|failed| Error::of(&failed))?;
        let address = loaded.jit.lookup(symbol).map_err(|d| Error::of(&loaded.report.report(*d)))?;
        let timings = loaded.report.timings.split_off(n_before);
        let time = |of: &dyn Fn(&Timing) -> bool| timings.iter().filter(|t| of(t)).map(|t| t.time).sum();
        let stats = Stats {
            partial_evaluation: time(&|t| t.pass == "specialize"),
            total: time(&|_| true),
            warnings: diagnostics(&loaded.report),
        };
        Ok(Built { address, stats, _code: Code::new(loaded.jit) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_variant_is_made_again() {
        let kept = Kept::new(4, [1].into_iter());
        let first = kept.make(b"key", 1);
        assert!(kept.find(b"key").is_some_and(|found| Arc::ptr_eq(&found, &first)));
        kept.forget(b"key");
        assert!(kept.find(b"key").is_none());
        assert!(!Arc::ptr_eq(&kept.make(b"key", 1), &first));
        assert_eq!(kept.counts(), Variants { kept: 1, found: 1, built: 2, dropped: 0 });
    }
}

//! Faults of programs: checks of native code; races and undefined operations on constants that show without a run.
//!
//! Checks for `--check`: accesses within bounds, of initialized memory, by no null pointer; signed arithmetic that does not
//! overflow. A pass of its own, after the vectorizer, so that a consecutive vector is checked once.
//!
//! ```text
//! entry(p: &[i32], i: i32):       entry(p, i, calls):
//!   q = lea(p, i)                   o = call nyala_check_object(p, statics)     bounds of what p points to: see checks.rs of the
//!   x = load(q)                     ahead = p - o.low                            runtime
//!                                   q = lea(p, i)
//!                                   branch ahead + 4 * i < o.limit_of_4_bytes, next(), fail()
//!                                 next(): x = load(q)
//!                                 fail(): call nyala_check_fail(0, q, o, site, calls); unreachable
//! ```
//!
//! An address is checked against the bounds of its *root*: the address from which it was computed, which is a parameter or the result
//! of a load or a call. The code asks the runtime once for the root's *object*, which holds the bounds, right after the root is
//! defined. When the block is freed, the runtime changes the object. Variables and statics that are accessed directly have bounds
//! that are known at compile time. Variables whose addresses leave the function move to the heap.
//!
//! A *shadow* tells which bytes are initialized. The runtime keeps that of a block. The shadow of a variable on the stack is another
//! variable, which LLVM promotes to registers as it does the first. That of a static is another static.
//!
//! A counted loop gets a copy without the checks that a test before the loop can show to hold in all iterations: see `versions.rs` and
//! `guards.rs`.
//!
//! Functions get a parameter `calls`: a linked list, in the frames of their callers, of the calls that led to them. Functions that are
//! called by address or from C begin a new list.
//!
//! Arithmetic in lanes is checked before the vectorizer: see `lane_arithmetic.rs`.
//!
//! Scheduling may have moved arithmetic before the branch that guards it in the source. It is checked where its result is used:
//! see `needed.rs`.
//!
//! Not checked: memory of foreign functions; kernels on devices.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arithmetic;
mod checker;
mod code;
mod confined;
mod constants;
mod guards;
mod lane_arithmetic;
mod lent;
mod needed;
mod races;
mod shadows;
mod undefined;
mod versions;

use checker::Checker;
use lent::Confined;
use nyala_base::{Id, Span};
use nyala_flat::*;
use nyala_ir::{Prim, Ty, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

pub use confined::{Lent, Refused, confine};
pub use constants::{Found, constant_faults, wrap_constants};
pub use lane_arithmetic::insert_lane_checks;
pub use races::{find_races, has_launches};
pub use undefined::insert_undefined_checks;

/// Limit on the instructions of a function into which bodies of loops are inlined.
const MAX_FUNCTION: usize = 100_000;

/// Faults that checked code looks for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Checks {
    /// Accesses stay within the block, variable or static of their address, which has not been freed.
    pub bounds: bool,
    /// Signed sums, differences, products and quotients fit their type; no integer is divided by zero.
    pub overflow: bool,
    /// Addresses are not null.
    pub null: bool,
    /// Bytes are written before they are read.
    pub uninit: bool,
}

impl Checks {
    /// The names for `--check`, in order.
    pub const NAMES: [&str; 4] = ["bounds", "overflow", "null", "uninit"];

    /// Adds the check of this name. Returns whether there is one.
    pub fn add(&mut self, name: &str) -> bool {
        match name {
            "bounds" => self.bounds = true,
            "overflow" => self.overflow = true,
            "null" => self.null = true,
            "uninit" => self.uninit = true,
            _ => return false,
        }
        true
    }

    /// All checks.
    pub const ALL: Checks = Checks { bounds: true, overflow: true, null: true, uninit: true };

    /// The list for `--check`.
    pub fn list(self) -> String {
        let all = [self.bounds, self.overflow, self.null, self.uninit];
        let chosen = Checks::NAMES.iter().zip(all).filter(|(_, is_chosen)| *is_chosen).map(|(name, _)| *name);
        chosen.collect::<Vec<_>>().join(",")
    }

    fn needs_objects(self) -> bool {
        self.bounds || self.uninit
    }
}

/// Texts for reports of a place: lines that show it, and its name.
pub struct Texts<'a> {
    /// A report without its first line.
    pub site: &'a dyn Fn(Span) -> String,
    /// `file:line:column`
    pub place: &'a dyn Fn(Span) -> String,
}

/// Inserts checks into all functions of the host. If its parameters lend the exported function something, the module was
/// [confined](confine), and each access is compared with bounds; returns those for which there are none, and writes to what is lent to be
/// read.
pub fn insert_checks(module: &mut Module, checks: Checks, texts: &Texts, lent: Option<&[Lent]>) -> Vec<Refused> {
    let mut refused = Vec::new();
    if checks == Checks::default() {
        return refused;
    }
    inline_bodies(module);
    let chained = chained(module);
    let mut tables = Tables::new(module, checks);
    if lent.is_some() {
        let t = &mut module.types;
        let (i64, u64, object) = (t.i64(), t.prim(Prim::U64), object_ty(t));
        let linkage = Linkage::Foreign(LEND.into());
        tables.lend = Some(module.declare(LEND, linkage, &[object, u64, i64, i64], &[]));
    }
    let mut places = FxHashMap::default();
    for func in (0..module.funcs.len()).map(Func::from_idx) {
        if module.func(func).blocks.is_empty() {
            continue;
        }
        let mut types = std::mem::take(&mut module.types);
        let mut function =
            std::mem::replace(&mut module.funcs[func.idx()], Function::new("", Linkage::Internal, &[], &[]));
        let is_chained = chained.contains(&func);
        let mut checker =
            Checker::new(module, &mut types, &mut function, (checks, texts), &tables, &chained, &mut places);
        checker.confined = lent.map(|lent| {
            let is_exported = matches!(checker.code.function.linkage, Linkage::Exported(_));
            Confined { lent: if is_exported { lent } else { &[] }, objects: Vec::new(), refused: Vec::new() }
        });
        checker.run(is_chained);
        refused.extend(checker.confined.take().into_iter().flat_map(|confined| confined.refused));
        module.funcs[func.idx()] = function;
        module.types = types;
    }
    refused
}

/// The runtime's function that makes the object of a slice that a caller lends.
const LEND: &str = "nyala_check_lend";

/// Inlines the bodies of vectorized loops into their loops: so these are counted loops, and reports list no call for an
/// iteration.
fn inline_bodies(module: &mut Module) {
    let is_body = |f: Func, module: &Module| {
        let function = module.func(f);
        let returns = |b: &BlockData| !matches!(b.term, Terminator::TailCall { .. });
        function.is_body && function.blocks.iter().all(returns)
    };
    for i in 0..module.funcs.len() {
        let mut function = std::mem::replace(&mut module.funcs[i], Function::new("", Linkage::Internal, &[], &[]));
        let mut size: usize = function.blocks.iter().map(|b| b.insts.len()).sum();
        let (mut b, n_before) = (0, function.blocks.len());
        while b < function.blocks.len() {
            let insts = &function.blocks[b].insts;
            let place = insts.iter().position(|i| matches!(i.op, InstOp::Call(f) if is_body(f, module)));
            let Some((at, InstOp::Call(callee))) = place.map(|at| (at, insts[at].op)) else {
                b += 1;
                continue;
            };
            let code = module.func(callee);
            size += code.blocks.iter().map(|b| b.insts.len()).sum::<usize>();
            if size > MAX_FUNCTION {
                break;
            }
            inline(&mut function, b, at, code);
        }
        if function.blocks.len() > n_before {
            simplify_function(&module.types, &mut function);
        }
        module.funcs[i] = function;
    }
}

/// Functions that get a list of calls: those that are only called by name.
fn chained(module: &Module) -> FxHashSet<Func> {
    let mut taken: FxHashSet<Func> = FxHashSet::default();
    for function in &module.funcs {
        for value in &function.values {
            if let Def::Const(Const::Func(f) | Const::CFunc(f)) = value.def {
                taken.insert(f);
            }
        }
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if let InstOp::Vectorize(f, ..) | InstOp::Launch(f, _) = inst.op {
                taken.insert(f);
            }
        }
    }
    let mut inits: Vec<&Init> = module.globals.iter().map(|g| &g.init).collect();
    while let Some(init) = inits.pop() {
        match init {
            Init::Func(f) => drop(taken.insert(*f)),
            Init::Parts(parts) => inits.extend(parts),
            _ => {}
        }
    }
    let all = (0..module.funcs.len()).map(Func::from_idx);
    let is_chained = |f: &Func| {
        let function = module.func(*f);
        function.linkage == Linkage::Internal && !function.blocks.is_empty() && !taken.contains(f)
    };
    all.filter(is_chained).collect()
}

/// The functions of the runtime that checks call, and the table of statics.
struct Tables {
    alloc: Func,
    alloc_array: Func,
    environment: Func,
    variable: Func,
    end: Func,
    free: Func,
    object: Func,
    fail: Func,
    panic: Func,
    initialized: Func,
    is_initialized: Func,
    wrote: Func,
    given: Func,
    product: Func,
    lanes: Func,
    /// The functions that stand for reports in lanes: of an overflow, of a division by zero.
    overflow_in_lanes: Option<Func>,
    division_in_lanes: Option<Func>,
    /// What stands for reports of undefined values, for whether bytes are initialized, and for notes of that.
    undefined: Option<Func>,
    is_written: Option<Func>,
    keep: Option<Func>,
    /// What makes objects of lent slices, if the module is confined.
    lend: Option<Func>,
    statics: (GlobalId, Ty),
    /// The statics that tell which bytes of others are initialized, and their types.
    shadows: FxHashMap<GlobalId, (GlobalId, Ty)>,
    /// The number of functions before checks were inserted.
    n_funcs: usize,
}

impl Tables {
    fn new(module: &mut Module, checks: Checks) -> Tables {
        let (n_funcs, n_globals) = (module.funcs.len(), module.globals.len());
        let shadows = if checks.uninit { shadows::shadows_of_statics(module) } else { FxHashMap::default() };
        let report = |symbol| module.funcs.iter().position(|f| f.is_foreign() && f.symbol() == Some(symbol));
        let (overflow_in_lanes, division_in_lanes) =
            (report(lane_arithmetic::OVERFLOW), report(lane_arithmetic::DIVISION));
        let [undefined, is_written, keep] = [undefined::UNDEFINED, undefined::IS_WRITTEN, undefined::KEEP].map(report);
        let t = &mut module.types;
        let (i32, i64, u64, bool_ty, u8) = (t.i32(), t.i64(), t.prim(Prim::U64), t.bool(), t.prim(Prim::U8));
        let (bytes, object) = (t.ptr(u8), object_ty(t));
        let (unit, words) = (t.unit(), t.ptr(i64));
        let environment = t.ptr(unit);
        // The layout: a flag; of each static the address, the size, and the address of its shadow or null; zeros.
        let entry = t.tuple(&[bytes, u64, bytes]);
        let mut entries = Vec::new();
        for (id, global) in module.globals.iter().enumerate().take(n_globals) {
            let (id, size) = (GlobalId::from_idx(id), layout::size_align(&module.types, global.ty).map_or(0, |s| s.0));
            if size > 0 && global.space == 0 {
                let shadow = shadows.get(&id).map_or(Init::Zero, |shadow| Init::Global(shadow.0, 0));
                entries.push(Init::Parts(vec![Init::Global(id, 0), Init::Bits(size), shadow]));
            }
        }
        entries.push(Init::Zero);
        let table = module.types.array(entry, entries.len() as u64);
        let ty = module.types.tuple(&[u64, table]);
        let init = Init::Parts(vec![Init::Bits(0), Init::Parts(entries)]);
        let statics = module.add_global(Global { name: "statics".into(), ty, mutable: true, space: 0, init });
        let mut foreign = |symbol: &str, params: &[Ty], rets: &[Ty]| {
            let known = module.funcs.iter().position(|f| f.is_foreign() && f.symbol() == Some(symbol));
            known.map_or_else(|| module.declare(symbol, Linkage::Foreign(symbol.into()), params, rets), Func::from_idx)
        };
        Tables {
            alloc: foreign("nyala_check_alloc", &[i64], &[bytes]),
            alloc_array: foreign("nyala_check_alloc_array", &[i64, i64, i64], &[bytes]),
            environment: foreign("nyala_check_environment", &[i64, words], &[environment]),
            variable: foreign("nyala_check_variable", &[i64, i64], &[bytes]),
            end: foreign("nyala_check_end", &[bytes], &[]),
            free: foreign("nyala_check_free", &[bytes, bytes, bytes], &[]),
            object: foreign("nyala_check_object", &[u64, bytes], &[object]),
            fail: foreign("nyala_check_fail", &[i32, u64, object, bytes, bytes], &[]),
            panic: foreign("nyala_check_panic", &[bytes, bytes, bytes], &[]),
            initialized: foreign("nyala_check_initialized", &[u64, u64, object, bytes, bytes], &[]),
            is_initialized: foreign("nyala_check_is_initialized", &[u64, u64, object], &[bool_ty]),
            wrote: foreign("nyala_check_wrote", &[u64, u64, object], &[]),
            given: foreign("nyala_check_given", &[u64, bytes], &[]),
            product: foreign("nyala_check_product", &[i64, i64], &[bool_ty]),
            lanes: foreign("nyala_check_lanes", &[u64, bytes, i64, u64, u64, object, bytes, bytes, bytes], &[]),
            overflow_in_lanes: overflow_in_lanes.map(Func::from_idx),
            division_in_lanes: division_in_lanes.map(Func::from_idx),
            undefined: undefined.map(Func::from_idx),
            is_written: is_written.map(Func::from_idx),
            keep: keep.map(Func::from_idx),
            lend: None,
            statics: (statics, ty),
            shadows,
            n_funcs,
        }
    }
}

/// The type of the address of a runtime's object: its words.
fn object_ty(types: &mut Types) -> Ty {
    let u64 = types.prim(Prim::U64);
    let words = types.indef_array(u64);
    types.ptr(words)
}

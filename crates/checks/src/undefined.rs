//! Checks that a number has been given a value before it is used. This pass runs before the vectorizer, which makes undefined values
//! of its own. It is separate from `shadows.rs`, since variables that were promoted to values have no bytes.
//!
//! A value that may be undefined has another one beside it that tells: a `bool` for a number, one for each number of a tuple, struct or
//! array. It goes where the value goes: to blocks, into functions of the program that are called by name, and back as another result.
//!
//! ```text
//! entry(c): branch c, then(), join(undef)      entry(c): branch c, then(), join(undef, false)
//! then(): jump join(4)                         then(): jump join(4, true)
//! join(x):                                     join(x, is_defined):
//!   y = add(x, 1)                                branch is_defined, next(), fail()
//!                                              next(): y = add(x, 1)
//!                                              fail(): call nyala_check_undefined()
//! ```
//!
//! Memory has its own shadow, which the other checks know (`shadows.rs`). Two functions lead there, which do not exist, as the one above:
//! their calls become instructions when the other checks are inserted.
//!
//! ```text
//! p = load q, a struct      nyala_check_is_written(q, size) for each number of it: its parts may be undefined
//! store q, x                nyala_check_keep(q, size, is_defined) behind it: the bytes are as undefined as x
//! ```
//!
//! A number that is loaded is checked at once, as the interpreter does. A result that is not used in any case is no use of its operands,
//! but undefined if they are.
//!
//! Not checked are arguments and results of function values, of foreign and of exported functions, numbers in statics, values of more
//! than 32 numbers, and code in lanes.

use super::chained;
use super::code::Code;
use super::lane_arithmetic::in_lanes;
use super::needed::needed;
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::simplify::drop_unreachable;
use nyala_flat::*;
use nyala_ir::{Effect, Op, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// The symbols of the functions that stand for reports, for what tells whether bytes are initialized, and for what notes that.
pub const UNDEFINED: &str = "nyala_check_undefined";
pub const IS_WRITTEN: &str = "nyala_check_is_written";
pub const KEEP: &str = "nyala_check_keep";

/// Limit on the numbers of a value that is looked at.
const MAX_LEAVES: usize = 32;
/// Limit on how often a function is looked at, on average.
const MAX_VISITS: usize = 16;

/// Inserts checks of numbers that may be undefined.
pub fn insert_undefined_checks(module: &mut Module) {
    let lanes: FxHashSet<Func> = in_lanes(module).into_iter().collect();
    let own: Vec<Func> = (0..module.funcs.len()).map(Func::from_idx).filter(|f| !lanes.contains(f)).collect();
    for &f in &own {
        // The other checks do so, too: without optimization, it has not been done yet.
        promote_slots_of(&mut module.types, &mut module.funcs[f.idx()]);
        drop_unreachable(&mut module.funcs[f.idx()]);
    }
    let (told, values) = find(module, &own, &lanes);
    if values.iter().all(|u| u.all.is_empty()) {
        return;
    }
    let types = &mut module.types;
    let (u8, i64, bool_ty) = (types.prim(nyala_ir::Prim::U8), types.i64(), types.bool());
    let bytes = types.ptr(u8);
    let is_foreign: Vec<bool> = module.funcs.iter().map(Function::is_foreign).collect();
    let mut foreign = |symbol: &str, params: &[Ty], rets: &[Ty]| {
        module.declare(symbol, Linkage::Foreign(symbol.into()), params, rets)
    };
    let stand_ins = StandIns {
        report: foreign(UNDEFINED, &[], &[]),
        is_written: foreign(IS_WRITTEN, &[bytes, i64], &[bool_ty]),
        keep: foreign(KEEP, &[bytes, i64, bool_ty], &[]),
    };
    // As they are before this pass adds to them.
    let signatures: Vec<(usize, Vec<Ty>)> = module.funcs.iter().map(|f| (f.params.len(), f.rets.clone())).collect();
    let concerned: FxHashSet<Func> = told.params.iter().map(|p| p.0).chain(told.results.iter().copied()).collect();
    for (f, values) in own.into_iter().zip(values) {
        values.check(module, f, &stand_ins, &told, &concerned, &signatures, &is_foreign);
    }
}

/// What stands for other code, until the other checks are inserted.
struct StandIns {
    report: Func,
    is_written: Func,
    keep: Func,
}

/// What functions are told of their parameters, and tell of their result.
#[derive(Default)]
struct Told {
    params: FxHashSet<(Func, usize)>,
    results: FxHashSet<Func>,
}

/// A number in a value, or a part that is none.
struct Leaf {
    offset: u64,
    size: u64,
    is_number: bool,
}

/// The numbers and other parts of a value, in order. `None` if there are too many.
fn leaves(types: &Types, ty: Ty) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    let mut work = vec![(ty, 0)];
    while let Some((ty, offset)) = work.pop() {
        match types.kind(ty) {
            TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..) => {
                let n = types.n_parts(ty).filter(|&n| n <= MAX_LEAVES as u64)?;
                for i in (0..n).rev() {
                    work.push((types.part(ty, i)?, offset + layout::offset(types, ty, i)?));
                }
            }
            kind => {
                let is_number = matches!(kind, TyKind::Prim(_));
                let size = if is_number { layout::size_align(types, ty)?.0 } else { 0 };
                found.push(Leaf { offset, size, is_number });
            }
        }
        if found.len() + work.len() > MAX_LEAVES {
            return None;
        }
    }
    Some(found)
}

/// The number of leaves of a value that has numbers.
fn n_leaves(types: &Types, ty: Ty) -> Option<usize> {
    leaves(types, ty).filter(|leaves| leaves.iter().any(|leaf| leaf.is_number)).map(|leaves| leaves.len())
}

/// Where the leaves of a part are among those of the whole.
fn leaves_of_part(types: &Types, ty: Ty, idx: u64) -> Option<std::ops::Range<usize>> {
    let n = |i: u64| Some(leaves(types, types.part(ty, i)?)?.len());
    let start = (0..idx).map(n).sum::<Option<usize>>()?;
    Some(start..start + n(idx)?)
}

/// The functions that may tell of their result, which are called by name only, each with those that have the same results, since calls
/// in tail position lead from one to the other.
fn results(module: &Module, by_name: &FxHashSet<Func>) -> FxHashMap<Func, Rc<[Func]>> {
    let n = module.funcs.len();
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut stays: Vec<bool> = vec![false; n];
    for (f, function) in module.funcs.iter().enumerate() {
        let tells = function.rets.len() == 1 && n_leaves(&module.types, function.rets[0]).is_some();
        stays[f] |= !tells || !by_name.contains(&Func::from_idx(f));
        for block in &function.blocks {
            match &block.term {
                Terminator::TailCall { callee: Callee::Func(g), .. } => {
                    next[f].push(g.idx());
                    next[g.idx()].push(f);
                }
                Terminator::TailCall { .. } => stays[f] = true,
                _ => {}
            }
        }
    }
    let mut found = FxHashMap::default();
    let mut seen = vec![false; n];
    for f in 0..n {
        let mut group = Vec::new();
        let mut work = vec![f];
        while let Some(f) = work.pop() {
            if !std::mem::replace(&mut seen[f], true) {
                group.push(Func::from_idx(f));
                work.extend(&next[f]);
            }
        }
        if group.iter().all(|g| !stays[g.idx()]) {
            let group: Rc<[Func]> = group.into();
            found.extend(group.iter().map(|&g| (g, group.clone())));
        }
    }
    found
}

/// What may be undefined in these functions, and what functions are told for that.
fn find(module: &Module, own: &[Func], lanes: &FxHashSet<Func>) -> (Told, Vec<Undefined>) {
    let called = |f: &Func| -> Vec<Func> {
        let insts = module.func(*f).blocks.iter().flat_map(|b| &b.insts);
        insts.filter_map(|i| if let InstOp::Call(g) = i.op { Some(g) } else { None }).collect()
    };
    let mut by_name = chained(module);
    for f in lanes.iter().flat_map(called).chain(lanes.iter().copied()) {
        by_name.remove(&f);
    }
    let results = results(module, &by_name);
    let mut callers: FxHashMap<Func, Vec<usize>> = FxHashMap::default();
    for (i, f) in own.iter().enumerate() {
        called(f).into_iter().for_each(|g| callers.entry(g).or_default().push(i));
    }
    let at: FxHashMap<Func, usize> = own.iter().enumerate().map(|(i, &f)| (f, i)).collect();
    let mut told = Told::default();
    let mut values: Vec<Undefined> = own.iter().map(|&f| Undefined::new(module, f, &told)).collect();
    let mut work: Vec<usize> = (0..own.len()).collect();
    let mut visits = 0;
    while let Some(i) = work.pop() {
        visits += 1;
        if visits > MAX_VISITS * own.len() {
            // Too many functions pass such values on: then none is told.
            told = Told::default();
            return (told, own.iter().map(|&f| Undefined::new(module, f, &Told::default())).collect());
        }
        let (f, function) = (own[i], module.func(own[i]));
        if visits > own.len() {
            values[i] = Undefined::new(module, f, &told);
        }
        let all = &values[i].all;
        let mut pass = |g: Func, args: &[Value], work: &mut Vec<usize>| {
            for (n, arg) in args.iter().enumerate() {
                if all.contains(arg) && by_name.contains(&g) && told.params.insert((g, n)) {
                    work.extend(at.get(&g));
                }
            }
        };
        for block in &function.blocks {
            for inst in &block.insts {
                if let InstOp::Call(g) = inst.op {
                    pass(g, &inst.args, &mut work);
                }
            }
            if let Terminator::TailCall { callee: Callee::Func(g), args, .. } = &block.term {
                pass(*g, args, &mut work);
            }
        }
        let returned = function.blocks.iter().any(|b| match &b.term {
            Terminator::Return(values) => values.iter().any(|v| all.contains(v)),
            _ => false,
        });
        if returned && let Some(group) = results.get(&f) {
            for &g in group.iter().filter(|&&g| told.results.insert(g)) {
                work.extend(callers.get(&g).into_iter().flatten());
            }
        }
    }
    // Those that were looked at before their last news.
    let values = own.iter().map(|&f| Undefined::new(module, f, &told)).collect();
    (told, values)
}

/// The values of a function that may be undefined.
struct Undefined {
    all: FxHashSet<Value>,
    needed: FxHashSet<Value>,
}

impl Undefined {
    fn new(module: &Module, f: Func, told: &Told) -> Undefined {
        let (function, types) = (module.func(f), &module.types);
        let none = Undefined { all: FxHashSet::default(), needed: FxHashSet::default() };
        let Some(entry) = function.blocks.first() else { return none };
        let has_numbers = |v: Value| n_leaves(types, function.ty(v)).is_some();
        let is_undef = |v: Value| function.as_const(v) == Some(Const::Undef) && has_numbers(v);
        let mut all: FxHashSet<Value> =
            (0..function.values.len()).map(Value::from_idx).filter(|&v| is_undef(v)).collect();
        all.extend(entry.params.iter().enumerate().filter(|(i, _)| told.params.contains(&(f, *i))).map(|(_, &v)| v));
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let Some(result) = inst.result else { continue };
            match inst.op {
                InstOp::Op(Op::Load) if reads_whole(types, function, inst) => drop(all.insert(result)),
                InstOp::Call(g) if told.results.contains(&g) => drop(all.insert(result)),
                _ => {}
            }
        }
        if all.is_empty() {
            return none;
        }
        // The parameters to which each value is passed.
        let needed = needed(function);
        let mut to: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for block in &function.blocks {
            for edge in block.term.edges() {
                for (&arg, &param) in edge.args.iter().zip(&function.block(edge.block).params) {
                    to.entry(arg).or_default().push(param);
                }
            }
            for inst in block.insts.iter().filter(|i| passes_on(i, &needed)) {
                for &arg in &inst.args {
                    to.entry(arg).or_default().extend(inst.result.filter(|&r| has_numbers(r)));
                }
            }
        }
        let mut work: Vec<Value> = all.iter().copied().collect();
        while let Some(v) = work.pop() {
            for &v in to.get(&v).into_iter().flatten() {
                if all.insert(v) {
                    work.push(v);
                }
            }
        }
        Undefined { all, needed }
    }

    fn check(
        self,
        module: &mut Module,
        f: Func,
        stand_ins: &StandIns,
        told: &Told,
        concerned: &FxHashSet<Func>,
        signatures: &[(usize, Vec<Ty>)],
        is_foreign: &[bool],
    ) {
        let knows = |g: Func| concerned.contains(&g);
        let function = &module.funcs[f.idx()];
        let calls = |i: &Inst| matches!(i.op, InstOp::Call(g) if knows(g));
        let jumps = |b: &BlockData| matches!(b.term, Terminator::TailCall { callee: Callee::Func(g), .. } if knows(g));
        let concerns = function.blocks.iter().any(|b| jumps(b) || b.insts.iter().any(calls));
        if function.blocks.is_empty() || self.all.is_empty() && !concerns && !knows(f) {
            return;
        }
        let function = &mut module.funcs[f.idx()];
        let mut code = Code::new(&mut module.types, function);
        let mut pass = Pass { told_of: FxHashMap::default(), undefined: &self, told };
        let bool_ty = code.types.bool();
        for &v in &self.all {
            if code.function.as_const(v).is_some() {
                let no = pass.known(&mut code, v, 0);
                pass.told_of.insert(v, no);
            }
        }
        let rpo = Cfg::new(code.function).rpo;
        let mut beside: FxHashMap<Block, Vec<usize>> = FxHashMap::default();
        for &b in &rpo {
            let params = code.function.block(b).params.clone();
            for (i, &param) in params.iter().enumerate().filter(|(_, param)| self.all.contains(param)) {
                if b.idx() == 0 && !told.params.contains(&(f, i)) {
                    continue;
                }
                let n = n_leaves(code.types, code.function.ty(param)).unwrap_or(1);
                let new: Vec<Value> = (0..n).map(|_| code.function.new_value(bool_ty, "is_defined")).collect();
                code.function.blocks[b.idx()].params.extend(&new);
                if b.idx() == 0 {
                    code.function.params.extend(new.iter().map(|_| bool_ty));
                }
                pass.told_of.insert(param, new);
                beside.entry(b).or_default().push(i);
            }
        }
        if told.results.contains(&f) {
            let n = n_leaves(code.types, code.function.rets[0]).unwrap_or(1);
            code.function.rets.extend((0..n).map(|_| bool_ty));
        }
        for b in rpo {
            code.current = b;
            // What the block has tested.
            let mut tested: FxHashSet<Value> = FxHashSet::default();
            for inst in std::mem::take(&mut code.function.blocks[b.idx()].insts) {
                code.span = inst.span;
                pass.inst(&mut code, inst, stand_ins, signatures, is_foreign, &mut tested);
            }
            if let Terminator::Branch { cond, .. } = code.function.block(code.current).term {
                pass.require(&mut code, &[cond], stand_ins.report, &mut tested);
            }
            let mut term =
                std::mem::replace(&mut code.function.blocks[code.current.idx()].term, Terminator::Unreachable);
            for edge in term.edges_mut() {
                for &i in beside.get(&edge.block).into_iter().flatten() {
                    let arg = edge.args[i];
                    edge.args.extend(pass.of(&mut code, arg));
                }
            }
            match &mut term {
                Terminator::TailCall { callee: Callee::Func(g), args, .. } => {
                    let (g, n) = (*g, signatures[g.idx()].0.min(args.len()));
                    for i in (0..n).filter(|&i| told.params.contains(&(g, i))) {
                        let arg = args[i];
                        args.extend(pass.of(&mut code, arg));
                    }
                }
                Terminator::Return(values) if told.results.contains(&f) => {
                    let value = values[0];
                    values.extend(pass.of(&mut code, value));
                }
                _ => {}
            }
            let block = &mut code.function.blocks[code.current.idx()];
            (block.insts, block.term) = (std::mem::take(&mut code.insts), term);
        }
    }
}

/// The pass over one function.
struct Pass<'a> {
    /// Whether the numbers of a value are defined, where that is not certain.
    told_of: FxHashMap<Value, Vec<Value>>,
    undefined: &'a Undefined,
    told: &'a Told,
}

impl Pass<'_> {
    /// All numbers of a value are as `bit` says.
    fn known(&self, code: &mut Code, v: Value, bit: u64) -> Vec<Value> {
        let (n, bool_ty) = (leaves(code.types, code.function.ty(v)).map_or(1, |l| l.len()), code.types.bool());
        vec![code.function.constant(Const::Bits(bit), bool_ty); n]
    }

    fn of(&self, code: &mut Code, v: Value) -> Vec<Value> {
        match self.told_of.get(&v) {
            Some(told) => told.clone(),
            None => self.known(code, v, 1),
        }
    }

    /// Whether all numbers of these values are defined; `None` if that is certain.
    fn all_of(&self, code: &mut Code, values: &[Value]) -> Option<Value> {
        let bool_ty = code.types.bool();
        let parts: Vec<Value> = values.iter().filter_map(|v| self.told_of.get(v)).flatten().copied().collect();
        let parts = parts.into_iter().filter(|&p| code.function.as_bits(p) != Some(1)).collect::<Vec<_>>();
        parts.into_iter().reduce(|a, b| code.op(Op::And, &[a, b], bool_ty))
    }

    fn require(&self, code: &mut Code, values: &[Value], report: Func, tested: &mut FxHashSet<Value>) {
        for v in values {
            if tested.insert(*v)
                && let Some(holds) = self.all_of(code, &[*v])
            {
                let before = code.begin_report();
                code.call(report, &[], None);
                code.end_report(holds, before);
            }
        }
    }

    fn inst(
        &mut self,
        code: &mut Code,
        mut inst: Inst,
        stand_ins: &StandIns,
        signatures: &[(usize, Vec<Ty>)],
        is_foreign: &[bool],
        tested: &mut FxHashSet<Value>,
    ) {
        if passes_on(&inst, &self.undefined.needed) {
            if let Some(result) = inst.result.filter(|r| self.undefined.all.contains(r)) {
                let told = self.passed_on(code, &inst, result);
                self.told_of.insert(result, told);
            }
            return code.insts.push(inst);
        }
        let used: Vec<Value> = match inst.op {
            InstOp::Op(Op::Store | Op::AtomicStore) => inst.args[..1].to_vec(),
            InstOp::Op(Op::DebugValue) => Vec::new(),
            InstOp::Op(_) => inst.args.to_vec(),
            InstOp::Call(g) if is_foreign.get(g.idx()) == Some(&true) => inst.args.to_vec(),
            _ => Vec::new(),
        };
        self.require(code, &used, stand_ins.report, tested);
        match (inst.op, inst.result) {
            (InstOp::Op(Op::Load), Some(result)) if self.undefined.all.contains(&result) => {
                let (address, ty) = (inst.args[0], code.function.ty(result));
                code.insts.push(inst);
                let bool_ty = code.types.bool();
                let yes = code.function.constant(Const::Bits(1), bool_ty);
                let mut told = Vec::new();
                for leaf in leaves(code.types, ty).into_iter().flatten() {
                    told.push(match leaf.is_number {
                        true => {
                            let at = place(code, address, leaf.offset);
                            let size = code.literal(nyala_ir::Prim::I64, leaf.size);
                            code.call(stand_ins.is_written, &[at, size], Some(bool_ty))
                        }
                        false => yes,
                    });
                }
                self.told_of.insert(result, told);
            }
            (InstOp::Op(Op::Store), _) if self.told_of.contains_key(&inst.args[1]) && is_plain(code, inst.args[0]) => {
                let (address, value) = (inst.args[0], inst.args[1]);
                let ty = code.function.ty(value);
                code.insts.push(inst);
                let told = self.of(code, value);
                for (leaf, told) in leaves(code.types, ty).into_iter().flatten().zip(told) {
                    if leaf.is_number && code.function.as_bits(told) != Some(1) {
                        let at = place(code, address, leaf.offset);
                        let size = code.literal(nyala_ir::Prim::I64, leaf.size);
                        code.call(stand_ins.keep, &[at, size, told], None);
                    }
                }
            }
            (InstOp::Call(g), _) => {
                let n = signatures.get(g.idx()).map_or(0, |s| s.0).min(inst.args.len());
                for i in (0..n).filter(|&i| self.told.params.contains(&(g, i))) {
                    let arg = inst.args[i];
                    inst.args.extend(self.of(code, arg));
                }
                let Some(result) = inst.result.filter(|_| self.told.results.contains(&g)) else {
                    return code.insts.push(inst);
                };
                let (ty, bool_ty) = (signatures[g.idx()].1[0], code.types.bool());
                let n = n_leaves(code.types, ty).unwrap_or(1);
                let all: Vec<Ty> = std::iter::once(ty).chain((0..n).map(|_| bool_ty)).collect();
                let pair_ty = code.types.tuple(&all);
                let pair = code.function.new_value(pair_ty, "");
                inst.result = Some(pair);
                code.insts.push(inst);
                let first = code.literal(nyala_ir::Prim::I64, 0);
                code.push(InstOp::Op(Op::Extract), &[pair, first], Some(result));
                let told = (1..=n as u64).map(|i| {
                    let i = code.literal(nyala_ir::Prim::I64, i);
                    code.op(Op::Extract, &[pair, i], bool_ty)
                });
                let told = told.collect();
                self.told_of.insert(result, told);
            }
            _ => code.insts.push(inst),
        }
    }

    /// Whether the numbers of a result are defined, which are as undefined as its operands.
    fn passed_on(&self, code: &mut Code, inst: &Inst, result: Value) -> Vec<Value> {
        let bool_ty = code.types.bool();
        let InstOp::Op(op) = inst.op else { return self.known(code, result, 1) };
        let range = |code: &Code, whole: Value, idx: Value| {
            leaves_of_part(code.types, code.function.ty(whole), code.function.as_index(idx)?)
        };
        match (op, &inst.args[..]) {
            (Op::Select, &[cond, a, b]) => {
                let cond_told = self.all_of(code, &[cond]);
                let (a, b) = (self.of(code, a), self.of(code, b));
                let mut told = Vec::new();
                for (a, b) in a.into_iter().zip(b) {
                    let chosen = code.op(Op::Select, &[cond, a, b], bool_ty);
                    told.push(cond_told.map_or(chosen, |told| code.op(Op::And, &[told, chosen], bool_ty)));
                }
                told
            }
            (Op::Tuple | Op::Struct | Op::Array, parts) => parts.iter().flat_map(|&v| self.of(code, v)).collect(),
            (Op::Splat, &[part]) => {
                let (part, n) = (self.of(code, part), self.known(code, result, 1).len());
                part.iter().copied().cycle().take(n).collect()
            }
            (Op::Insert, &[whole, idx, part]) => {
                let (mut told, part) = (self.of(code, whole), self.of(code, part));
                if let Some(range) = range(code, whole, idx).filter(|r| r.end <= told.len()) {
                    told.splice(range, part);
                }
                told
            }
            (Op::Extract, &[whole, idx]) => {
                let told = self.of(code, whole);
                let part = range(code, whole, idx).and_then(|range| told.get(range).map(<[Value]>::to_vec));
                part.unwrap_or_else(|| self.known(code, result, 1))
            }
            (_, args) => match self.all_of(code, args) {
                Some(holds) => vec![holds; self.known(code, result, 1).len()],
                None => self.known(code, result, 1),
            },
        }
    }
}

/// Whether an address is one of the memory that shadows are for.
fn is_plain(code: &mut Code, address: Value) -> bool {
    let ty = code.function.ty(address);
    code.types.pointee(ty).is_some_and(|pointee| code.types.ptr(pointee) == ty)
}

/// The address of a byte behind another one.
fn place(code: &mut Code, address: Value, offset: u64) -> Value {
    let u8 = code.types.prim(nyala_ir::Prim::U8);
    let (all, one) = (code.types.indef_array(u8), code.types.ptr(u8));
    let all = code.types.ptr(all);
    let all = code.op(Op::Bitcast, &[address], all);
    let offset = code.literal(nyala_ir::Prim::I64, offset);
    code.op(Op::Lea, &[all, offset], one)
}

/// Whether a load reads a value with several parts, some of which may be undefined.
fn reads_whole(types: &Types, function: &Function, inst: &Inst) -> bool {
    let address = function.ty(inst.args[0]);
    let Some(pointee) = types.pointee(address) else { return false };
    let is_whole = matches!(types.kind(pointee), TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..));
    let is_generic = matches!(types.kind(address), TyKind::Ptr { space: 0, .. });
    is_whole && is_generic && n_leaves(types, pointee).is_some()
}

/// Whether an instruction makes an undefined value of undefined ones, rather than use them.
fn passes_on(inst: &Inst, needed: &FxHashSet<Value>) -> bool {
    let (InstOp::Op(op), Some(result)) = (inst.op, inst.result) else { return false };
    let is_copy = matches!(op, Op::Select | Op::Tuple | Op::Struct | Op::Array | Op::Splat | Op::Insert | Op::Extract);
    op.effect() == Effect::Total && (is_copy || !needed.contains(&result))
}

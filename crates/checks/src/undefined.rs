//! Checks that a number has been given a value before it is used. This pass runs before the vectorizer, which makes undefined values
//! of its own. It is separate from `shadows.rs`, since variables that were promoted to values have no bytes.
//!
//! A value that may be undefined has another one beside it that tells: a `bool` for a number, one for each number of a tuple, struct or
//! array. It goes where the value goes (`flow.rs`): to blocks, into functions, and back as another result. In lanes, the vectorizer makes
//! a vector of it.
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
//! Not checked are values of more than 32 numbers.

mod boundaries;
mod flow;

use super::code::Code;
use boundaries::make_outside;
use flow::{Call, Told, Undefined};
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::simplify::drop_unreachable;
use nyala_flat::*;
use nyala_ir::{Effect, LaneOp, Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// The symbols of the functions that stand for reports, for what tells whether bytes are initialized, and for what notes that.
pub const UNDEFINED: &str = "nyala_check_undefined";
pub const IS_WRITTEN: &str = "nyala_check_is_written";
pub const KEEP: &str = "nyala_check_keep";

/// Limit on the numbers of a value that is looked at.
const MAX_LEAVES: usize = 32;
/// Inserts checks of numbers that may be undefined.
pub fn insert_undefined_checks(module: &mut Module) {
    let own: Vec<Func> =
        (0..module.funcs.len()).map(Func::from_idx).filter(|&f| !module.func(f).blocks.is_empty()).collect();
    for &f in &own {
        let function = &mut module.funcs[f.idx()];
        // The other checks do so, too: without optimization, it has not been done yet.
        promote_slots_of(&mut module.types, function);
        drop_unreachable(function);
    }
    let (told, values) = flow::find(module, &own);
    if values.iter().all(|u| u.all.is_empty()) {
        return;
    }
    let types = &mut module.types;
    let (u8, i64, bool_ty) = (types.prim(Prim::U8), types.i64(), types.bool());
    let bytes = types.ptr(u8);
    let lanes = lane_operations(module);
    let is_foreign: Vec<bool> = module.funcs.iter().map(Function::is_foreign).collect();
    let mut foreign = |symbol: &str, params: &[Ty], rets: &[Ty]| {
        module.declare(symbol, Linkage::Foreign(symbol.into()), params, rets)
    };
    let outside = Outside {
        is_foreign,
        lanes,
        report: foreign(UNDEFINED, &[], &[]),
        is_written: foreign(IS_WRITTEN, &[bytes, i64], &[bool_ty]),
        keep: foreign(KEEP, &[bytes, i64, bool_ty], &[]),
    };
    for (&f, undefined) in own.iter().zip(&values) {
        let (told, outside) = (&told, &outside);
        let mut pass = Pass { f, undefined, told, outside, told_of: FxHashMap::default() };
        if pass.concerns(&module.types, module.func(f)) {
            pass.function(&mut module.types, &mut module.funcs[f.idx()]);
        }
    }
    for &f in &own {
        if matches!(module.func(f).linkage, Linkage::Exported(_) | Linkage::Callback) && told.concerns(f) {
            make_outside(module, f, &told, outside.report);
        }
    }
}

/// Functions without a body.
struct Outside {
    is_foreign: Vec<bool>,
    lanes: FxHashMap<Func, LaneOperation>,
    // What stands for other code, until the other checks are inserted.
    report: Func,
    is_written: Func,
    keep: Func,
}

/// An operation of lanes that a function without a body stands for.
struct LaneOperation {
    op: LaneOp,
    /// For operations that give a lane the value of another one: the same of what tells of it, the lane's number, and the number of lanes in
    /// which something holds.
    of_told: Option<[Func; 3]>,
}

fn lane_operations(module: &mut Module) -> FxHashMap<Func, LaneOperation> {
    let (i32, bool_ty) = (module.types.i32(), module.types.bool());
    let mut found = FxHashMap::default();
    for f in (0..module.funcs.len()).map(Func::from_idx) {
        let function = module.func(f);
        let symbol = function.symbol().filter(|_| function.is_foreign());
        let Some((op, scope)) = symbol.and_then(LaneOp::of_symbol) else { continue };
        let mut params = function.params.clone();
        let n = params.first().and_then(|&ty| n_leaves(&module.types, ty));
        let of_told = n.filter(|_| matches!(op, LaneOp::Get | LaneOp::Compact)).map(|n| {
            let mut declare = |op: LaneOp, params: &[Ty], ret: Ty| {
                let symbol = op.symbol(scope);
                module.declare(&symbol, Linkage::Foreign(symbol.clone()), params, &[ret])
            };
            let (id, count) = (declare(LaneOp::Id, &[], i32), declare(LaneOp::Count, &[bool_ty], i32));
            params[0] = module.types.tuple(&vec![bool_ty; n]);
            let symbol = op.symbol(scope);
            let ret = params[0];
            [module.declare(&symbol, Linkage::Foreign(symbol.clone()), &params, &[ret]), id, count]
        });
        found.insert(f, LaneOperation { op, of_told });
    }
    found
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

/// The pass over one function.
struct Pass<'a> {
    f: Func,
    undefined: &'a Undefined,
    told: &'a Told,
    outside: &'a Outside,
    /// Whether the numbers of a value are defined, where that is not certain.
    told_of: FxHashMap<Value, Vec<Value>>,
}

impl Pass<'_> {
    /// Whether there is something to do in the function.
    fn concerns(&self, types: &Types, function: &Function) -> bool {
        let is_told = |call: Call| {
            let (params, results) = self.told.of_call(types, self.f, function, &call);
            !params.is_empty() || results.is_some()
        };
        let calls =
            |b: &BlockData| b.insts.iter().filter_map(Call::of).chain(Call::in_tail_position(&b.term)).any(is_told);
        !self.undefined.all.is_empty() || self.told.concerns(self.f) || function.blocks.iter().any(calls)
    }

    fn function(&mut self, types: &mut Types, function: &mut Function) {
        let mut code = Code::new(types, function);
        let bool_ty = code.types.bool();
        for &v in &self.undefined.all {
            if code.function.as_const(v).is_some() {
                let no = self.known(&mut code, v, 0);
                self.told_of.insert(v, no);
            }
        }
        let rpo = Cfg::new(code.function).rpo;
        // The parameters of each block beside which there are others that tell of them.
        let mut beside: FxHashMap<Block, Vec<usize>> = FxHashMap::default();
        for &b in &rpo {
            let params = code.function.block(b).params.clone();
            for (i, &param) in params.iter().enumerate().filter(|(_, param)| self.undefined.all.contains(param)) {
                let n = n_leaves(code.types, code.function.ty(param)).unwrap_or(1);
                let new: Vec<Value> = (0..n).map(|_| code.function.new_value(bool_ty, "is_defined")).collect();
                code.function.blocks[b.idx()].params.extend(&new);
                if b.idx() == 0 {
                    code.function.params.extend(new.iter().map(|_| bool_ty));
                }
                self.told_of.insert(param, new);
                beside.entry(b).or_default().push(i);
            }
        }
        let tells = self.told.results(self.f).is_some();
        if tells {
            let n: usize = code.function.rets.iter().filter_map(|&ty| leaves(code.types, ty)).map(|l| l.len()).sum();
            code.function.rets.extend(std::iter::repeat_n(bool_ty, n));
        }
        for b in rpo {
            code.current = b;
            // What the block has tested.
            let mut tested: FxHashSet<Value> = FxHashSet::default();
            for inst in std::mem::take(&mut code.function.blocks[b.idx()].insts) {
                code.span = inst.span;
                self.inst(&mut code, inst, &mut tested);
            }
            if let Terminator::Branch { cond, .. } = code.function.block(code.current).term {
                self.require(&mut code, &[cond], &mut tested);
            }
            let mut term =
                std::mem::replace(&mut code.function.blocks[code.current.idx()].term, Terminator::Unreachable);
            for edge in term.edges_mut() {
                for &i in beside.get(&edge.block).into_iter().flatten() {
                    let arg = edge.args[i];
                    edge.args.extend(self.of(&mut code, arg));
                }
            }
            let told =
                Call::in_tail_position(&term).map(|call| self.told.of_call(code.types, self.f, code.function, &call).0);
            match &mut term {
                Terminator::TailCall { args, .. } => {
                    for &i in told.iter().flat_map(|told| told.iter()) {
                        let arg = args[i];
                        args.extend(self.of(&mut code, arg));
                    }
                }
                Terminator::Return(values) if tells => {
                    for v in values.clone() {
                        values.extend(self.of(&mut code, v));
                    }
                }
                _ => {}
            }
            let block = &mut code.function.blocks[code.current.idx()];
            (block.insts, block.term) = (std::mem::take(&mut code.insts), term);
        }
    }

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

    fn require(&self, code: &mut Code, values: &[Value], tested: &mut FxHashSet<Value>) {
        for v in values {
            if tested.insert(*v)
                && let Some(holds) = self.all_of(code, &[*v])
            {
                let before = code.begin_report();
                code.call(self.outside.report, &[], None);
                code.end_report(holds, before);
            }
        }
    }

    fn inst(&mut self, code: &mut Code, inst: Inst, tested: &mut FxHashSet<Value>) {
        if passes_on(&inst, code.types, code.function, &self.undefined.needed) {
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
            InstOp::Call(g) if self.outside.is_foreign.get(g.idx()) == Some(&true) => {
                match self.outside.lanes.get(&g) {
                    Some(lanes) if lanes.of_told.is_some() => inst.args[1..].to_vec(),
                    _ => inst.args.to_vec(),
                }
            }
            _ => Vec::new(),
        };
        self.require(code, &used, tested);
        match (inst.op, inst.result) {
            // A number that is loaded by itself is used, but not one of an environment: it is loaded as one of several parts.
            (InstOp::Op(Op::Load), Some(number))
                if self.undefined.all.contains(&number)
                    && matches!(code.types.kind(code.function.ty(number)), TyKind::Prim(_)) =>
            {
                let ty = code.function.ty(number);
                let whole = code.types.tuple(&[ty]);
                let address = code.types.ptr(whole);
                let address = code.op(Op::Bitcast, &[inst.args[0]], address);
                let loaded = code.op(Op::Load, &[address], whole);
                let first = code.literal(Prim::I64, 0);
                code.push(InstOp::Op(Op::Extract), &[loaded, first], Some(number));
                let told = self.is_written(code, address, whole);
                self.told_of.insert(number, told);
            }
            (InstOp::Op(Op::Load), Some(result)) if self.undefined.all.contains(&result) => {
                let (address, ty) = (inst.args[0], code.function.ty(result));
                code.insts.push(inst);
                let told = self.is_written(code, address, ty);
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
                        let size = code.literal(Prim::I64, leaf.size);
                        code.call(self.outside.keep, &[at, size, told], None);
                    }
                }
            }
            (InstOp::Call(g), Some(result)) if self.outside.lanes.contains_key(&g) => {
                let args = inst.args.clone();
                code.insts.push(inst);
                if self.undefined.all.contains(&result) {
                    self.lane_operation(code, g, &args, result);
                }
            }
            _ => self.call(code, inst),
        }
    }

    /// Whether the numbers at an address are initialized.
    fn is_written(&self, code: &mut Code, address: Value, ty: Ty) -> Vec<Value> {
        let bool_ty = code.types.bool();
        let yes = code.function.constant(Const::Bits(1), bool_ty);
        let mut told = Vec::new();
        for leaf in leaves(code.types, ty).into_iter().flatten() {
            told.push(match leaf.is_number {
                true => {
                    let at = place(code, address, leaf.offset);
                    let size = code.literal(Prim::I64, leaf.size);
                    code.call(self.outside.is_written, &[at, size], Some(bool_ty))
                }
                false => yes,
            });
        }
        told
    }

    /// What tells of a lane's value goes with it to another lane.
    fn lane_operation(&mut self, code: &mut Code, g: Func, args: &[Value], result: Value) {
        let Some(LaneOperation { op, of_told: Some([of_told, id, count]) }) = self.outside.lanes.get(&g) else {
            return;
        };
        let (i32, bool_ty) = (code.types.i32(), code.types.bool());
        let told = self.of(code, args[0]);
        let ty = code.types.tuple(&vec![bool_ty; told.len()]);
        let whole = code.op(Op::Tuple, &told, ty);
        let moved = code.call(*of_told, &[whole, args[1]], Some(ty));
        let mut told: Vec<Value> = (0..told.len()).map(|i| code.part(moved, i, bool_ty)).collect();
        if *op == LaneOp::Compact {
            let (id, n) = (code.call(*id, &[], Some(i32)), code.call(*count, &args[1..], Some(i32)));
            let (is_there, no) = (code.op(Op::Lt, &[id, n], bool_ty), code.literal(Prim::Bool, 0));
            told.iter_mut().for_each(|told| *told = code.op(Op::Select, &[is_there, *told, no], bool_ty));
        }
        self.told_of.insert(result, told);
    }

    fn call(&mut self, code: &mut Code, mut inst: Inst) {
        let Some(call) = Call::of(&inst) else { return code.insts.push(inst) };
        let (params, results) = self.told.of_call(code.types, self.f, code.function, &call);
        let more: Vec<Value> = params.iter().map(|&i| call.args[i - call.skipped]).collect();
        for arg in more {
            inst.args.extend(self.of(code, arg));
        }
        let (Some(result), Some(rets)) = (inst.result, results) else { return code.insts.push(inst) };
        // The results, and behind them what is told of these.
        let (ty, bool_ty) = (code.function.ty(result), code.types.bool());
        let n = n_leaves(code.types, ty).unwrap_or(0);
        let tys: Vec<Ty> = rets.iter().copied().chain(std::iter::repeat_n(bool_ty, n)).collect();
        let all_ty = code.types.tuple(&tys);
        let all = code.function.new_value(all_ty, "");
        inst.result = Some(all);
        code.insts.push(inst);
        if rets.len() == 1 {
            let first = code.literal(Prim::I64, 0);
            code.push(InstOp::Op(Op::Extract), &[all, first], Some(result));
        } else {
            let parts: Vec<Value> = (0..rets.len()).map(|i| code.part(all, i, rets[i])).collect();
            code.push(InstOp::Op(Op::Tuple), &parts, Some(result));
        }
        let told = (0..n).map(|i| code.part(all, rets.len() + i, bool_ty)).collect();
        self.told_of.insert(result, told);
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
            // One operand may decide.
            (Op::And | Op::Or, &[a, b]) if code.function.ty(result) == bool_ty => {
                let (told_a, told_b) = (self.of(code, a)[0], self.of(code, b)[0]);
                let no = code.literal(Prim::Bool, 0);
                let decides = |code: &mut Code, v: Value, told: Value| match op {
                    Op::Or => code.op(Op::Select, &[v, told, no], bool_ty),
                    _ => code.op(Op::Select, &[v, no, told], bool_ty),
                };
                let (by_a, by_b) = (decides(code, a, told_a), decides(code, b, told_b));
                let both = code.op(Op::And, &[told_a, told_b], bool_ty);
                let by_one = code.op(Op::Or, &[by_a, by_b], bool_ty);
                vec![code.op(Op::Or, &[both, by_one], bool_ty)]
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
    let u8 = code.types.prim(Prim::U8);
    let (all, one) = (code.types.indef_array(u8), code.types.ptr(u8));
    let all = code.types.ptr(all);
    let all = code.op(Op::Bitcast, &[address], all);
    let offset = code.literal(Prim::I64, offset);
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
fn passes_on(inst: &Inst, types: &Types, function: &Function, needed: &FxHashSet<Value>) -> bool {
    let (InstOp::Op(op), Some(result)) = (inst.op, inst.result) else { return false };
    let is_copy = match op {
        Op::Select | Op::Tuple | Op::Struct | Op::Array | Op::Splat | Op::Insert | Op::Extract => true,
        // `&&` and `||`, of which the second operand may not be used.
        Op::And | Op::Or => types.as_prim(function.ty(result)) == Some(Prim::Bool),
        _ => false,
    };
    op.effect() == Effect::Total && (is_copy || !needed.contains(&result))
}

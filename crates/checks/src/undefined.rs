//! Checks that a number has been given a value before it is used. This pass runs before the vectorizer, which makes undefined values
//! of its own. It is separate from `shadows.rs`, since variables that were promoted to values have no bytes.
//!
//! A value that may be undefined has others beside it that tell: a `bool` for a number, one for each number of a tuple or struct, an array for
//! a long array (`told.rs`). They go where the value goes (`flow.rs`): to blocks, into functions, and back as other results. In lanes, the vectorizer makes
//! vectors of them.
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
//! Not checked are values of more than 1,024 parts, where an array of more than 32 elements or 256 bytes is one part.

mod boundaries;
mod flow;
mod told;

use super::code::Code;
use boundaries::make_outside;
use flow::{Call, Told, Undefined};
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::simplify::drop_unreachable;
use nyala_flat::*;
use nyala_ir::{Effect, LaneOp, Op, Prim, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use told::{known, n_leaves, told_types};

/// The symbols of the functions that stand for reports, for what tells whether bytes are initialized, and for what notes that.
pub const UNDEFINED: &str = "nyala_check_undefined";
pub const IS_WRITTEN: &str = "nyala_check_is_written";
pub const KEEP: &str = "nyala_check_keep";

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
        let moved = params.first().copied().filter(|&ty| n_leaves(&module.types, ty).is_some());
        let of_told = moved.filter(|_| matches!(op, LaneOp::Get | LaneOp::Compact)).map(|ty| {
            let told = told_types(&mut module.types, ty);
            let mut declare = |op: LaneOp, params: &[Ty], ret: Ty| {
                let symbol = op.symbol(scope);
                module.declare(&symbol, Linkage::Foreign(symbol.clone()), params, &[ret])
            };
            let (id, count) = (declare(LaneOp::Id, &[], i32), declare(LaneOp::Count, &[bool_ty], i32));
            params[0] = module.types.tuple(&told);
            let symbol = op.symbol(scope);
            let ret = params[0];
            [module.declare(&symbol, Linkage::Foreign(symbol.clone()), &params, &[ret]), id, count]
        });
        found.insert(f, LaneOperation { op, of_told });
    }
    found
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
        let rpo = Cfg::new(code.function).rpo;
        // The parameters of each block beside which there are others that tell of them.
        let mut beside: FxHashMap<Block, Vec<usize>> = FxHashMap::default();
        for &b in &rpo {
            let params = code.function.block(b).params.clone();
            for (i, &param) in params.iter().enumerate().filter(|(_, param)| self.undefined.all.contains(param)) {
                let told = told_types(code.types, code.function.ty(param));
                let new: Vec<Value> = told.iter().map(|&ty| code.function.new_value(ty, "is_defined")).collect();
                code.function.blocks[b.idx()].params.extend(&new);
                if b.idx() == 0 {
                    code.function.params.extend(told);
                }
                self.told_of.insert(param, new);
                beside.entry(b).or_default().push(i);
            }
        }
        let tells = self.told.results(self.f).is_some();
        if tells {
            for ty in code.function.rets.clone() {
                code.function.rets.extend(told_types(code.types, ty));
            }
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

    /// Whether something is told of a value.
    fn is_told(&self, code: &Code, v: Value) -> bool {
        self.told_of.contains_key(&v) || self.is_none(code, v)
    }

    /// Whether a value is the undefined constant.
    fn is_none(&self, code: &Code, v: Value) -> bool {
        self.undefined.all.contains(&v) && code.function.as_const(v).is_some()
    }

    fn of(&self, code: &mut Code, v: Value) -> Vec<Value> {
        match self.told_of.get(&v) {
            Some(told) => told.clone(),
            None => {
                let bit = u64::from(!self.is_none(code, v));
                known(code, code.function.ty(v), bit)
            }
        }
    }

    /// Whether all numbers of these values are defined; `None` if that is certain.
    fn all_of(&self, code: &mut Code, values: &[Value]) -> Option<Value> {
        let bool_ty = code.types.bool();
        let mut all = None;
        for &v in values {
            if self.is_told(code, v) {
                let (told, ty) = (self.of(code, v), code.function.ty(v));
                let Some(one) = told::all(code, &told, ty) else { continue };
                all = Some(all.map_or(one, |before| code.op(Op::And, &[before, one], bool_ty)));
            }
        }
        all
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
                let told = told::read(code, self.outside, address, whole);
                self.told_of.insert(number, told);
            }
            (InstOp::Op(Op::Load), Some(result)) if self.undefined.all.contains(&result) => {
                let (address, ty) = (inst.args[0], code.function.ty(result));
                code.insts.push(inst);
                let told = told::read(code, self.outside, address, ty);
                self.told_of.insert(result, told);
            }
            (InstOp::Op(Op::Store), _) if self.is_told(code, inst.args[1]) && is_plain(code, inst.args[0]) => {
                let (address, value) = (inst.args[0], inst.args[1]);
                let ty = code.function.ty(value);
                code.insts.push(inst);
                let told = self.of(code, value);
                told::keep(code, self.outside, address, &told, ty);
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

    /// What tells of a lane's value goes with it to another lane.
    fn lane_operation(&mut self, code: &mut Code, g: Func, args: &[Value], result: Value) {
        let Some(LaneOperation { op, of_told: Some([of_told, id, count]) }) = self.outside.lanes.get(&g) else {
            return;
        };
        let (i32, bool_ty) = (code.types.i32(), code.types.bool());
        let (moved, told) = (code.function.ty(args[0]), self.of(code, args[0]));
        let tys = told_types(code.types, moved);
        let ty = code.types.tuple(&tys);
        let whole = code.op(Op::Tuple, &told, ty);
        let given = code.call(*of_told, &[whole, args[1]], Some(ty));
        let mut told: Vec<Value> = tys.iter().enumerate().map(|(i, &ty)| code.part(given, i, ty)).collect();
        if *op == LaneOp::Compact {
            let (id, n) = (code.call(*id, &[], Some(i32)), code.call(*count, &args[1..], Some(i32)));
            let is_there = code.op(Op::Lt, &[id, n], bool_ty);
            for (told, no) in told.iter_mut().zip(known(code, moved, 0)) {
                let ty = code.function.ty(*told);
                *told = code.op(Op::Select, &[is_there, *told, no], ty);
            }
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
        let told_tys = told_types(code.types, code.function.ty(result));
        let tys: Vec<Ty> = rets.iter().chain(&told_tys).copied().collect();
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
        let told = told_tys.iter().enumerate().map(|(i, &ty)| code.part(all, rets.len() + i, ty)).collect();
        self.told_of.insert(result, told);
    }

    /// Whether the numbers of a result are defined, which are as undefined as its operands.
    fn passed_on(&self, code: &mut Code, inst: &Inst, result: Value) -> Vec<Value> {
        let bool_ty = code.types.bool();
        let ty = code.function.ty(result);
        let InstOp::Op(op) = inst.op else { return known(code, ty, 1) };
        match (op, &inst.args[..]) {
            (Op::Select, &[cond, a, b]) => {
                let cond_told = self.all_of(code, &[cond]);
                let (a, b, none) = (self.of(code, a), self.of(code, b), known(code, ty, 0));
                let mut told = Vec::new();
                for ((a, b), none) in a.into_iter().zip(b).zip(none) {
                    let ty = code.function.ty(none);
                    let chosen = code.op(Op::Select, &[cond, a, b], ty);
                    told.push(cond_told.map_or(chosen, |told| code.op(Op::Select, &[told, chosen, none], ty)));
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
            (Op::Tuple | Op::Struct | Op::Array, parts) => {
                let told: Vec<Vec<Value>> = parts.iter().map(|&v| self.of(code, v)).collect();
                told::collect(code, told, ty)
            }
            (Op::Splat, &[part]) => {
                let told = self.of(code, part);
                told::repeat(code, told, ty)
            }
            (Op::Insert, &[whole, idx, part]) => {
                let (told, part) = (self.of(code, whole), self.of(code, part));
                told::insert(code, told, ty, idx, part).unwrap_or_else(|| known(code, ty, 1))
            }
            (Op::Extract, &[whole, idx]) => {
                let told = self.of(code, whole);
                let whole = code.function.ty(whole);
                told::extract(code, told, whole, idx).unwrap_or_else(|| known(code, ty, 1))
            }
            (_, args) => match self.all_of(code, args) {
                Some(holds) => told::same(code, ty, holds),
                None => known(code, ty, 1),
            },
        }
    }
}

/// Whether an address is one of the memory that shadows are for.
fn is_plain(code: &mut Code, address: Value) -> bool {
    let ty = code.function.ty(address);
    code.types.pointee(ty).is_some_and(|pointee| code.types.ptr(pointee) == ty)
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

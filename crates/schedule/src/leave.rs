//! Code that leaves functions by other ways than their return, and code where these ways arrive ([`super::exits`]).
//!
//! ```text
//! walk exits by `found`:                       find calls it:
//!   return(true, 2i32)                           r: (bool, i32) = call walk(root)
//!                                                number = extract(r, 1)
//!                                                branch eq(number, 0), k(), found(extract(r, 0))
//! ```
//!
//! A continuation that is a value is a pair of code and record, as function values are pairs of code and environment:
//! its code stores the arguments in the record and returns [`FAR`] with the record. A function that makes records
//! compares the first word of a returned record with an address in its own frame, and continues there if it is its own.
//! The record lies in that frame, or on the heap if it keeps values that may differ in another record of the same
//! continuation.

use super::exits::Target;
use super::results::FAR;
use super::{Building, Scheduler, tuple_part, unpack};
use nyala_base::{Id, Span};
use nyala_flat::environments::uncounted;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, Val};
use rustc_hash::{FxHashMap, FxHashSet};

/// A continuation of the function under construction that is a value.
pub(super) struct Made {
    target: Val,
    /// The record in the frame.
    slot: Value,
    /// Addresses of the record, one for each use that makes the continuation a value.
    addresses: Vec<(Block, Value)>,
}

/// Head of a record: the frame it belongs to, and the number of the continuation.
const N_HEAD: usize = 2;

impl Scheduler<'_> {
    /// Continues at a continuation with values for its parameters.
    pub(super) fn goto(&mut self, b: &mut Building, block: Block, to: Val, args: Vec<Value>, span: Span) -> Terminator {
        match self.exits.target(self.w, b.cont, to) {
            Target::Block(c) if b.blocks.contains_key(&c) && c != b.cont => {
                Terminator::Jump(Edge { block: b.blocks[&c], args })
            }
            Target::Return => Terminator::Return(self.own_results(b, args)),
            Target::Exit(x) => match self.groups.number(b.cont, x).filter(|_| !self.exits.is_value(b.cont)) {
                Some(number) => {
                    let Some(group) = self.groups.of(b.cont) else { return Terminator::Unreachable };
                    let places = self.groups.all[group].values(number).to_vec();
                    Terminator::Return(self.results(b, group, &places, &args, number))
                }
                None => {
                    let record = self.record(b, block, x, span);
                    let tys: Vec<Ty> = args.iter().map(|&a| self.module.func(b.func).ty(a)).collect();
                    let mut fb = self.builder(b, block, span);
                    fill_record(&mut fb, record, &tys, &args);
                    self.return_far(b, record)
                }
            },
            Target::Value if self.is_continuation(self.w.ty(to)) => {
                let ty = self.w.ty(to);
                let pair = self.value(b, block, to);
                let mut args = args;
                let mut fb = self.builder(b, block, span);
                let (code, env) = (tuple_part(&mut fb, pair, 0), tuple_part(&mut fb, pair, 1));
                args.push(env);
                let Some(group) = self.groups.of_type(ty) else {
                    self.builder(b, block, span).call_indirect(code, &args, &[]);
                    return Terminator::Unreachable;
                };
                let tys = self.groups.all[group].tys.clone();
                let mut fb = self.builder(b, block, span);
                let result = fb.call_indirect(code, &args, &tys);
                let results = unpack(&mut fb, result, &tys);
                match self.groups.all[group].record {
                    Some(record) => self.arrive_far(b, results[record]),
                    None => Terminator::Unreachable,
                }
            }
            _ => {
                self.limitation(
                    span,
                    "a continuation is chosen at run time",
                    "specialize the function with `@`, or return a value and test it",
                );
                Terminator::Unreachable
            }
        }
    }

    /// An edge to a continuation with values for its parameters.
    pub(super) fn edge_to(&mut self, b: &mut Building, to: Val, args: Vec<Value>, span: Span) -> Edge {
        if let Target::Block(c) = self.exits.target(self.w, b.cont, to)
            && let Some(&block) = b.blocks.get(&c)
        {
            return Edge { block, args };
        }
        let name = match self.exits.target(self.w, b.cont, to) {
            Target::Return => "return",
            _ => "leave",
        };
        let is_shared = args.is_empty() && self.exits.target(self.w, b.cont, to) == Target::Return;
        if let (true, Some(block)) = (is_shared, b.ret_block) {
            return Edge { block, args };
        }
        let block = self.new_block(b, name, &[]);
        if is_shared {
            b.ret_block = Some(block);
        }
        let term = self.goto(b, block, to, args, span);
        self.terminate_block(b, block, term);
        Edge { block, args: Vec::new() }
    }

    fn new_block(&mut self, b: &Building, name: &str, params: &[(Ty, &str)]) -> Block {
        FunctionBuilder::new(&mut self.module, b.func).block(name, params)
    }

    pub(super) fn terminate_block(&mut self, b: &Building, block: Block, term: Terminator) {
        self.module.funcs[b.func.idx()].blocks[block.idx()].term = term;
    }

    /// All results of the function, for its return with these arguments.
    fn own_results(&mut self, b: &Building, args: Vec<Value>) -> Vec<Value> {
        match self.groups.of(b.cont) {
            Some(group) => {
                let places: Vec<usize> = (0..args.len()).collect();
                self.results(b, group, &places, &args, 0)
            }
            None => args,
        }
    }

    fn results(&mut self, b: &Building, group: usize, places: &[usize], args: &[Value], number: u64) -> Vec<Value> {
        let results = &self.groups.all[group];
        let mut fb = FunctionBuilder::new(&mut self.module, b.func);
        let mut values: Vec<Value> = results.tys.iter().map(|&ty| fb.function.undef(ty)).collect();
        for (&at, &value) in places.iter().zip(args) {
            values[at] = value;
        }
        values[results.number()] = fb.literal(Prim::I32, number);
        values
    }

    fn return_far(&mut self, b: &Building, record: Value) -> Terminator {
        let Some(group) = self.groups.of(b.cont) else { return Terminator::Unreachable };
        let Some(place) = self.groups.all[group].record else { return Terminator::Unreachable };
        Terminator::Return(self.results(b, group, &[place], &[record], FAR))
    }

    /// Continues where a returned record leads: in this function, or in a caller.
    fn arrive_far(&mut self, b: &mut Building, record: Value) -> Terminator {
        if b.made.is_empty() {
            return self.return_far(b, record);
        }
        let block = match b.far {
            Some(block) => block,
            None => {
                let ty = self.record_ptr();
                let block = self.new_block(b, "arrive", &[(ty, "record")]);
                *b.far.insert(block)
            }
        };
        Terminator::Jump(Edge { block, args: vec![record] })
    }

    /// Continues after a call in block `c`: at its return, or at the exit that the returned number says.
    pub(super) fn after_call(
        &mut self,
        b: &mut Building,
        c: nyala_ir::Cont,
        block: Block,
        (group, results): (usize, Vec<Value>),
        n_own: usize,
        span: Span,
    ) -> Terminator {
        let uses = self.exits.uses(c);
        let (callee, ret) = (uses.callee, uses.ret);
        let is_far = match callee {
            Some(f) => self.exits.is_far(f),
            None => true,
        };
        let layout = self.groups.all[group].clone();
        let number = results[layout.number()];
        // The ways to continue, by number. Those that continue in the caller with the same number there are one way.
        let same_group = self.groups.of(b.cont) == Some(group);
        let (mut passes, mut ways) = (false, Vec::new());
        for x in callee.map(|f| self.exits.exits(f)).unwrap_or_default() {
            let Some(n) = callee.and_then(|f| self.groups.number(f, x)) else { continue };
            let to = self.exits.at_call(self.w, c, x);
            let own = match self.exits.target(self.w, b.cont, to) {
                Target::Exit(own) if !self.exits.is_value(b.cont) => self.groups.number(b.cont, own),
                _ => None,
            };
            match same_group && own == Some(n) {
                true => passes = true,
                false => ways.push((n, to, layout.values(n).iter().map(|&i| results[i]).collect::<Vec<_>>())),
            }
        }
        let far = layout.record.filter(|_| is_far);
        let far_passes = far.is_some() && b.made.is_empty() && same_group;
        passes |= far_passes;
        let mut targets: Vec<(u64, Edge)> = Vec::new();
        if let Some(ret) = ret {
            targets.push((0, self.edge_to(b, ret, results[..n_own].to_vec(), span)));
        }
        for (n, to, values) in ways {
            targets.push((n, self.edge_to(b, to, values, span)));
        }
        if let Some(at) = far.filter(|_| !far_passes) {
            let arrives = self.new_block(b, "leave", &[]);
            let term = self.arrive_far(b, results[at]);
            self.terminate_block(b, arrives, term);
            targets.push((FAR, Edge { block: arrives, args: Vec::new() }));
        }
        if passes {
            let on = self.new_block(b, "leave", &[]);
            self.terminate_block(b, on, Terminator::Return(results.clone()));
            targets.push((u64::MAX, Edge { block: on, args: Vec::new() }));
        }
        self.switch(b, block, number, targets, span)
    }

    /// Branches to the target with this number; the last target needs no test.
    fn switch(
        &mut self,
        b: &Building,
        mut block: Block,
        number: Value,
        mut targets: Vec<(u64, Edge)>,
        span: Span,
    ) -> Terminator {
        let Some((_, last)) = targets.pop() else { return Terminator::Unreachable };
        let bool_ty = self.module.types.prim(Prim::Bool);
        let n = targets.len();
        let first = block;
        let mut first_term = None;
        for (i, (at, then)) in targets.into_iter().enumerate() {
            let mut fb = self.builder(b, block, span);
            let at = fb.literal(Prim::I32, at);
            let cond = fb.op(Op::Eq, &[number, at], bool_ty);
            let els = match i + 1 == n {
                true => last.clone(),
                false => Edge { block: self.new_block(b, "else", &[]), args: Vec::new() },
            };
            let next = els.block;
            let term = Terminator::Branch { cond, then, els };
            match block == first {
                true => first_term = Some(term),
                false => self.terminate_block(b, block, term),
            }
            block = next;
        }
        first_term.unwrap_or(Terminator::Jump(last))
    }

    // Records.

    /// Makes room in the frame for the records of this function.
    pub(super) fn make_room(&mut self, b: &mut Building) {
        let reified = self.exits.reified(b.cont);
        if reified.is_empty() {
            return;
        }
        let i32_ty = self.module.types.prim(Prim::I32);
        let frame = self.builder(b, Block(0), Span::NONE).slot(i32_ty, "frame");
        let env_ptr = self.env_ptr();
        b.frame = Some(self.builder(b, Block(0), Span::NONE).op(Op::Bitcast, &[frame], env_ptr));
        for target in reified {
            let tys = self.payload(target);
            let mut fb = self.builder(b, Block(0), Span::NONE);
            let ty = record_ty(fb.types, &tys, &[]);
            let slot = uncounted(&mut fb, ty);
            b.made.push(Made { target, slot, addresses: Vec::new() });
        }
    }

    /// Types of the parameters of a continuation.
    fn payload(&mut self, continuation: Val) -> Vec<Ty> {
        let tys = self.w.types.cn_params(self.w.ty(continuation)).unwrap_or(&[])[1..].to_vec();
        tys.into_iter().map(|t| self.ty(t)).collect()
    }

    /// The record of a continuation that belongs to an activation of this function or of one around it.
    pub(super) fn record(&mut self, b: &mut Building, block: Block, of: Val, span: Span) -> Value {
        if let Some(&record) = b.records.get(&of) {
            return record;
        }
        let record_ptr = self.record_ptr();
        let (Some(i), Some(frame)) = (b.made.iter().position(|m| m.target == of), b.frame) else {
            self.limitation(
                span,
                "a continuation is used as a value",
                "specialize the function that takes it, with `@`",
            );
            return self.module.funcs[b.func.idx()].undef(record_ptr);
        };
        let slot = b.made[i].slot;
        let mut fb = self.builder(b, block, span);
        let idx = fb.literal(Prim::I32, i as u64);
        let address = fb.op(Op::Bitcast, &[slot], record_ptr);
        let ty = record_ty(fb.types, &[], &[]);
        fill(&mut fb, address, ty, 0, &[frame, idx]);
        b.made[i].addresses.push((block, address));
        address
    }

    /// Makes a continuation a value: a pair of code and record.
    pub(super) fn continuation_pair(&mut self, b: &mut Building, block: Block, of: Val) -> Value {
        let span = self.w.as_cont(of).map_or(Span::NONE, |c| self.w.cont(c).origin);
        let record = self.record(b, block, of, span);
        let ty = self.w.ty(of);
        let pair = self.ty(ty);
        let code = self.leaver(ty);
        let env_ptr = self.env_ptr();
        let mut fb = self.builder(b, block, Span::NONE);
        let code = fb.func_addr(code);
        let env = fb.op(Op::Bitcast, &[record], env_ptr);
        fb.op(Op::Tuple, &[code, env], pair)
    }

    /// The code of continuations of this type that are values, declared on demand.
    fn leaver(&mut self, ty: Ty) -> Func {
        if let Some(&func) = self.leavers.get(&ty) {
            return func;
        }
        let (tys, _) = self.signature(ty);
        let mut params = tys.clone();
        params.push(self.env_ptr());
        let group = self.groups.of_type(ty);
        let layout = group.map(|g| self.groups.all[g].clone()).unwrap_or_default();
        let func = self.module.declare("leave", Linkage::Internal, &params, &layout.tys);
        self.leavers.insert(ty, func);
        let record_ptr = self.record_ptr();
        let mut fb = FunctionBuilder::new(&mut self.module, func);
        let entry = fb.entry(&[]);
        let args: Vec<Value> = (0..tys.len()).map(|i| fb.param(entry, i)).collect();
        let record = fb.param(entry, tys.len());
        let record = fb.op(Op::Bitcast, &[record], record_ptr);
        fill_record(&mut fb, record, &tys, &args);
        let mut values: Vec<Value> = layout.tys.iter().map(|&t| fb.function.undef(t)).collect();
        match layout.record {
            Some(at) => {
                values[at] = record;
                values[layout.number()] = fb.literal(Prim::I32, FAR);
                fb.terminate(Terminator::Return(values));
            }
            None => fb.terminate(Terminator::Unreachable),
        }
        func
    }

    /// Fills the block where records arrive, and stores the values that records keep.
    pub(super) fn finish_records(&mut self, b: &mut Building) {
        let Some(arrive) = b.far else { return };
        let mut kept: FxHashMap<Value, Value> = FxHashMap::default();
        let live = live_in(self.module.func(b.func));
        let in_entry = defined_in_entry(self.module.func(b.func));
        let (env_ptr, i32_ty) = (self.env_ptr(), self.module.types.prim(Prim::I32));
        let bool_ty = self.module.types.prim(Prim::Bool);
        let Some(frame) = b.frame else { return };
        let mut ways = Vec::new();
        let mut fb = self.builder(b, arrive, Span::NONE);
        let record = fb.param(arrive, 0);
        let head_ty = record_ty(fb.types, &[], &[]);
        let head_ty = fb.types.ptr(head_ty);
        let head = fb.op(Op::Bitcast, &[record], head_ty);
        let owner = load_part(&mut fb, head, 0, env_ptr);
        let is_own = fb.op(Op::Eq, &[owner, frame], bool_ty);
        let own = self.new_block(b, "own", &[]);
        let which = load_part(&mut self.builder(b, own, Span::NONE), head, 1, i32_ty);
        for i in 0..b.made.len() {
            let (target, addresses) = (b.made[i].target, std::mem::take(&mut b.made[i].addresses));
            if addresses.is_empty() {
                continue;
            }
            let mut env: Vec<Value> = match self.exits.target(self.w, b.cont, target) {
                Target::Block(c) => match b.blocks.get(&c) {
                    Some(at) => live[at.idx()].iter().copied().filter(|v| !in_entry.contains(v)).collect(),
                    None => Vec::new(),
                },
                _ => Vec::new(),
            };
            env.sort_unstable();
            let tys = self.payload(target);
            let env_tys: Vec<Ty> = env.iter().map(|&v| self.module.func(b.func).ty(v)).collect();
            for (block, address) in addresses.into_iter().filter(|_| !env.is_empty()) {
                self.put_on_heap(b, block, address, (&tys, &env_tys), &env);
            }
            let at = self.new_block(b, "own", &[]);
            let mut fb = self.builder(b, at, Span::NONE);
            let ty = record_ty(fb.types, &tys, &env_tys);
            let ty = fb.types.ptr(ty);
            let full = fb.op(Op::Bitcast, &[record], ty);
            for (j, (&v, &ty)) in env.iter().zip(&env_tys).enumerate() {
                let slot = match kept.get(&v) {
                    Some(&slot) => slot,
                    None => {
                        let slot = slot_in_entry(&mut fb, ty);
                        kept.insert(v, slot);
                        slot
                    }
                };
                let value = load_part(&mut fb, full, N_HEAD + tys.len() + j, ty);
                fb.store(slot, value);
            }
            let args: Vec<Value> =
                tys.iter().enumerate().map(|(j, &ty)| load_part(&mut fb, full, N_HEAD + j, ty)).collect();
            let term = self.goto(b, at, target, args, Span::NONE);
            self.terminate_block(b, at, term);
            ways.push((i as u64, Edge { block: at, args: Vec::new() }));
        }
        let term = self.switch(b, own, which, ways, Span::NONE);
        self.terminate_block(b, own, term);
        let other = self.new_block(b, "leave", &[]);
        let term = self.return_far(b, record);
        self.terminate_block(b, other, term);
        let edge = |block: Block| Edge { block, args: Vec::new() };
        self.terminate_block(b, arrive, Terminator::Branch { cond: is_own, then: edge(own), els: edge(other) });
        let mut kept: Vec<(Value, Value)> = kept.into_iter().collect();
        kept.sort_unstable();
        for (value, slot) in kept {
            demote(&mut FunctionBuilder::new(&mut self.module, b.func), value, slot);
        }
    }

    /// Replaces the record at `address` by one on the heap, with the current values of `env`.
    fn put_on_heap(
        &mut self,
        b: &Building,
        block: Block,
        address: Value,
        (tys, env_tys): (&[Ty], &[Ty]),
        env: &[Value],
    ) {
        let insts = &mut self.module.funcs[b.func.idx()].blocks[block.idx()].insts;
        let made = insts.iter().position(|i| i.result == Some(address)).unwrap_or(0);
        let mut rest = insts.split_off(made);
        let span = rest.remove(0).span;
        let mut fb = self.builder(b, block, span);
        let ty = record_ty(fb.types, tys, env_tys);
        let array = fb.types.indef_array(ty);
        let (array, element) = (fb.types.ptr(array), fb.types.ptr(ty));
        let (one, zero) = (fb.literal(Prim::I64, 1), fb.literal(Prim::I64, 0));
        let made = fb.op(Op::Alloc, &[one], array);
        let record = fb.op(Op::Lea, &[made, zero], element);
        fb.function.blocks[block.idx()].insts.push(Inst {
            op: InstOp::Op(Op::Bitcast),
            args: [record].as_slice().into(),
            result: Some(address),
            span,
            fast: false,
        });
        // The values that it keeps may be computed after the address.
        let last = rest.iter().rposition(|i| i.result.is_some_and(|r| env.contains(&r))).map_or(0, |i| i + 1);
        let after = rest.split_off(last);
        fb.function.blocks[block.idx()].insts.extend(rest);
        fill(&mut fb, address, ty, N_HEAD + tys.len(), env);
        fb.function.blocks[block.idx()].insts.extend(after);
    }
}

fn record_ty(types: &mut nyala_ir::Types, tys: &[Ty], env: &[Ty]) -> Ty {
    let unit = types.unit();
    let mut parts = vec![types.ptr(unit), types.prim(Prim::I32)];
    parts.extend(tys);
    parts.extend(env);
    types.tuple(&parts)
}

fn part_address(fb: &mut FunctionBuilder, record: Value, at: usize, ty: Ty) -> Value {
    let idx = fb.literal(Prim::I64, at as u64);
    let ptr = fb.types.ptr(ty);
    fb.op(Op::Lea, &[record, idx], ptr)
}

fn load_part(fb: &mut FunctionBuilder, record: Value, at: usize, ty: Ty) -> Value {
    let ptr = part_address(fb, record, at, ty);
    fb.op(Op::Load, &[ptr], ty)
}

/// Writes values into a record of type `ty`, from the part `first` on.
fn fill(fb: &mut FunctionBuilder, address: Value, ty: Ty, first: usize, values: &[Value]) {
    if values.is_empty() {
        return;
    }
    let ptr = fb.types.ptr(ty);
    let record = fb.op(Op::Bitcast, &[address], ptr);
    for (i, &value) in values.iter().enumerate() {
        let ty = fb.function.ty(value);
        let ptr = part_address(fb, record, first + i, ty);
        fb.store(ptr, value);
    }
}

/// Stores the arguments of a continuation in its record.
fn fill_record(fb: &mut FunctionBuilder, address: Value, tys: &[Ty], args: &[Value]) {
    let ty = record_ty(fb.types, tys, &[]);
    fill(fb, address, ty, N_HEAD, args);
}

fn slot_in_entry(fb: &mut FunctionBuilder, ty: Ty) -> Value {
    let current = fb.current();
    fb.switch_to(Block(0));
    let slot = fb.slot(ty, "");
    fb.switch_to(current);
    let insts = &mut fb.function.blocks[0].insts;
    insts.rotate_right(1);
    slot
}

/// Keeps a value in memory between blocks, for another definition reaches some of its uses.
fn demote(fb: &mut FunctionBuilder, value: Value, slot: Value) {
    let ty = fb.function.ty(value);
    for i in 0..fb.function.blocks.len() {
        let block = &fb.function.blocks[i];
        let at = match block.params.contains(&value) {
            true => Some(0),
            false => block.insts.iter().position(|inst| inst.result == Some(value)).map(|at| at + 1),
        };
        let span = Span::NONE;
        if let Some(at) = at {
            let store = Inst {
                op: InstOp::Op(Op::Store),
                args: [slot, value].as_slice().into(),
                result: None,
                span,
                fast: false,
            };
            fb.function.blocks[i].insts.insert(at, store);
            continue;
        }
        let mut is_used = block.insts.iter().any(|inst| inst.args.contains(&value));
        block.term.for_each_use(|v| is_used |= v == value);
        if !is_used {
            continue;
        }
        let loaded = fb.function.new_value(ty, "");
        let block = &mut fb.function.blocks[i];
        let rename = |v: Value| if v == value { loaded } else { v };
        for inst in &mut block.insts {
            inst.args.iter_mut().for_each(|v| *v = rename(*v));
        }
        block.term.map_uses(rename);
        let load =
            Inst { op: InstOp::Op(Op::Load), args: [slot].as_slice().into(), result: Some(loaded), span, fast: false };
        block.insts.insert(0, load);
    }
}

/// Local values of other blocks that each block needs.
fn live_in(function: &Function) -> Vec<FxHashSet<Value>> {
    let n = function.blocks.len();
    let mut live: Vec<FxHashSet<Value>> = vec![FxHashSet::default(); n];
    let mut preds: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut work: Vec<(usize, Value)> = Vec::new();
    let mut defined: Vec<FxHashSet<Value>> = Vec::new();
    for (i, block) in function.blocks.iter().enumerate() {
        defined.push(block.params.iter().copied().chain(block.insts.iter().filter_map(|inst| inst.result)).collect());
        work.extend(block.insts.iter().flat_map(|inst| &inst.args).map(|&v| (i, v)));
        block.term.for_each_use(|v| work.push((i, v)));
        for edge in block.term.edges() {
            preds[edge.block.idx()].push(i);
        }
    }
    while let Some((i, v)) = work.pop() {
        if function.as_const(v).is_none() && !defined[i].contains(&v) && live[i].insert(v) {
            work.extend(preds[i].iter().map(|&p| (p, v)));
        }
    }
    live
}

fn defined_in_entry(function: &Function) -> FxHashSet<Value> {
    let entry = function.block(Block(0));
    entry.params.iter().copied().chain(entry.insts.iter().filter_map(|inst| inst.result)).collect()
}

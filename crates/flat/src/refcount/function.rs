//! Reference counts in one function: liveness of counted values, then code that retains and releases. The data that all
//! functions of a module share is in [`Program`].

use super::variables::Variables;
use super::{Counting, Program};
use crate::analysis::Cfg;
use crate::data::*;
use nyala_base::{Id, Span};
use nyala_ir::{Op, Prim, Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// The number of a counted value of a function.
type Root = usize;

/// A set of counted values.
#[derive(Clone, PartialEq, Eq, Default)]
struct Set(Vec<u64>);

impl Set {
    fn new(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }
    fn insert(&mut self, i: Root) -> bool {
        let old = self.0[i / 64];
        self.0[i / 64] |= 1 << (i % 64);
        old != self.0[i / 64]
    }
    fn remove(&mut self, i: Root) {
        self.0[i / 64] &= !(1 << (i % 64));
    }
    fn contains(&self, i: Root) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    /// Adds the other set's elements. Whether the set grew.
    fn add(&mut self, other: &Set) -> bool {
        let mut grew = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            grew |= b & !*a != 0;
            *a |= b;
        }
        grew
    }
    fn iter(&self) -> impl Iterator<Item = Root> {
        let bits = self.0.iter().enumerate().flat_map(|(w, &bits)| (0..64).map(move |i| (w * 64 + i, bits >> i & 1)));
        bits.filter(|b| b.1 == 1).map(|b| b.0)
    }
}

/// The counted values that an instruction or terminator uses, one entry for each use.
#[derive(Default)]
struct Uses {
    consumed: Vec<Root>,
    borrowed: Vec<Root>,
}

/// The function that is being rewritten.
pub(super) struct Counter<'p, 'm> {
    p: &'p mut Program,
    b: FunctionBuilder<'m>,
    func: Func,
    counting: Counting,
    roots: Vec<Value>,
    root_of: FxHashMap<Value, Root>,
    /// Environments extracted from a counted value, and addresses in the environment that the function owns.
    aliases: FxHashMap<Value, Root>,
    /// The variable that an address points into, if the variable holds function values.
    variables: FxHashMap<Value, Value>,
    /// Values that may be addresses of these variables, or contain one.
    addresses: FxHashSet<Value>,
    /// Facts about variables on the heap.
    on_heap: Rc<Variables>,
    /// Counted addresses of variables on the heap; and for each value the counted addresses that it may be derived
    /// from, in the order of roots.
    bases: FxHashSet<Value>,
    derived: FxHashMap<Value, Vec<Root>>,
    /// Receives the current instruction's code.
    out: Vec<Inst>,
    span: Span,
}

impl<'p, 'm> Counter<'p, 'm> {
    pub(super) fn new(
        p: &'p mut Program,
        module: &'m mut Module,
        func: Func,
        addresses: FxHashSet<Value>,
    ) -> Counter<'p, 'm> {
        let on_heap = p.variables.clone();
        let counting = if p.shared.contains(&func) { p.counting_shared } else { p.counting };
        Counter {
            p,
            counting,
            on_heap,
            bases: FxHashSet::default(),
            derived: FxHashMap::default(),
            b: FunctionBuilder::new(module, func),
            func,
            roots: Vec::new(),
            root_of: FxHashMap::default(),
            aliases: FxHashMap::default(),
            variables: FxHashMap::default(),
            addresses,
            out: Vec::new(),
            span: Span::NONE,
        }
    }

    pub(super) fn run(&mut self) {
        self.find_roots();
        self.find_variables();
        if self.roots.is_empty() && self.variables.is_empty() && !self.has_undefined() {
            return;
        }
        let cfg = Cfg::new(self.b.function);
        let live_in = self.live_in(&cfg);
        let n_blocks = self.b.function.blocks.len();
        for i in 0..n_blocks {
            if cfg.is_reachable(Block::from_idx(i)) {
                self.rewrite(i, &live_in);
            }
        }
        self.begin_variables();
    }

    fn is_counted(&mut self, v: Value) -> bool {
        let ty = self.b.function.ty(v);
        !self.p.leaves(self.b.types, ty).is_empty()
    }

    fn add_root(&mut self, v: Value) {
        self.root_of.insert(v, self.roots.len());
        self.roots.push(v);
    }

    fn find_roots(&mut self) {
        let mut defined: Vec<Value> = Vec::new();
        for block in &self.b.function.blocks {
            defined.extend(&block.params);
            defined.extend(block.insts.iter().filter_map(|inst| inst.result));
        }
        for v in defined {
            if self.is_counted(v) {
                self.add_root(v);
            }
        }
        if self.p.owns_environment(self.func)
            && let Some(&env) = self.b.function.blocks[0].params.last()
        {
            self.add_root(env);
        }
        let on_heap = self.on_heap.clone();
        for (base, derived) in on_heap.bases(self.func) {
            let root = self.roots.len();
            self.bases.insert(*base);
            self.add_root(*base);
            for v in (0..derived.len()).filter(|&i| derived[i]).map(Value::from_idx) {
                self.derived.entry(v).or_default().push(root);
            }
        }
        // Definitions come before uses, except for blocks out of order: repeats until nothing is new.
        loop {
            let n = self.aliases.len();
            for block in &self.b.function.blocks {
                for inst in &block.insts {
                    let Some(result) = inst.result.filter(|r| !self.aliases.contains_key(r)) else { continue };
                    let Some(&first) = inst.args.first() else { continue };
                    let root = match inst.op {
                        InstOp::Op(Op::Extract) if self.b.function.ty(first) == self.p.pair => {
                            let is_env = self.b.function.as_bits(inst.args[1]) == Some(1);
                            self.root_of.get(&first).filter(|_| is_env)
                        }
                        InstOp::Op(Op::Bitcast | Op::Lea) => {
                            let is_env = |v: &Value| [self.p.env_ptr, self.p.record].contains(&self.b.function.ty(*v));
                            let own = self.root_of.get(&first).filter(|_| is_env(&first));
                            own.or_else(|| self.aliases.get(&first))
                        }
                        _ => None,
                    };
                    if let Some(&root) = root {
                        self.aliases.insert(result, root);
                    }
                }
            }
            if self.aliases.len() == n {
                return;
            }
        }
    }

    /// Finds local variables with function values, and addresses in them.
    fn find_variables(&mut self) {
        loop {
            let n = self.variables.len();
            for i in 0..self.b.function.blocks.len() {
                for j in 0..self.b.function.blocks[i].insts.len() {
                    let inst = &self.b.function.blocks[i].insts[j];
                    let (op, first, result) = (inst.op, inst.args.first().copied(), inst.result);
                    let Some(result) = result.filter(|r| !self.variables.contains_key(r)) else { continue };
                    let variable = match op {
                        InstOp::Op(Op::Slot) => {
                            let ty = self.b.types.pointee(self.b.function.ty(result));
                            ty.filter(|&ty| !self.p.leaves(self.b.types, ty).is_empty()).map(|_| result)
                        }
                        InstOp::Op(Op::Bitcast | Op::Lea) => first.and_then(|f| self.variables.get(&f)).copied(),
                        _ => None,
                    };
                    if let Some(variable) = variable {
                        self.variables.insert(result, variable);
                    }
                }
            }
            if self.variables.len() == n {
                return;
            }
        }
    }

    /// Whether an undefined function value is used, which would be released.
    fn has_undefined(&mut self) -> bool {
        let n = self.b.function.values.len();
        (0..n).map(Value::from_idx).any(|v| self.b.function.as_const(v) == Some(Const::Undef) && self.is_counted(v))
    }

    fn root(&self, v: Value) -> Option<Root> {
        self.root_of.get(&v).copied()
    }

    fn uses_of_inst(&mut self, inst: &Inst) -> Uses {
        let mut uses = Uses::default();
        let consumes = match inst.op {
            InstOp::Call(_) | InstOp::CallIndirect | InstOp::Op(Op::Store) => true,
            InstOp::Op(Op::Tuple | Op::Struct | Op::Array) => {
                inst.result.is_none_or(|r| self.b.function.ty(r) != self.p.pair)
            }
            _ => false,
        };
        for (i, &a) in inst.args.iter().enumerate() {
            let is_callee_env = inst.op == InstOp::CallIndirect && i + 1 == inst.args.len();
            let consumes = match (self.bases.contains(&a), inst.op) {
                (true, InstOp::Call(callee)) => self.on_heap.owns_param(callee, i),
                (true, InstOp::Op(Op::Store)) => i == 1 && self.on_heap.owns_field(self.func, inst.args[0]),
                (true, _) => false,
                // The environment that a function owns is a root, too, but no function value.
                (false, _) => match self.root(a) {
                    Some(_) => consumes && self.is_counted(a),
                    None => is_callee_env,
                },
            };
            self.note_use(&mut uses, a, consumes);
        }
        uses
    }

    /// Counted values that a terminator uses, except for those that its edges pass on.
    fn uses_of_term(&self, term: &Terminator) -> Uses {
        let mut uses = Uses::default();
        match term {
            Terminator::Return(values) => {
                for &v in values {
                    self.note_use(&mut uses, v, self.is_passed_on(v));
                }
            }
            Terminator::TailCall { callee, args, .. } => {
                for (i, &v) in args.iter().enumerate() {
                    let consumes = match callee {
                        Callee::Func(callee) if self.bases.contains(&v) => self.on_heap.owns_param(*callee, i),
                        Callee::Indirect(_) if self.root(v).is_none() => i + 1 == args.len(),
                        _ => self.is_passed_on(v),
                    };
                    self.note_use(&mut uses, v, consumes);
                }
            }
            Terminator::Branch { cond, .. } => self.note_use(&mut uses, *cond, false),
            Terminator::Jump(_) | Terminator::Unreachable => {}
        }
        uses
    }

    /// Counted values that an edge passes on: roots are consumed by parameters; an address in the owned environment is
    /// read.
    fn uses_of_edge(&self, edge: &Edge) -> Uses {
        let mut uses = Uses::default();
        for &v in &edge.args {
            self.note_use(&mut uses, v, self.is_passed_on(v));
        }
        uses
    }

    /// Whether passing a value on transfers its count, because the type shows that it has one.
    fn is_passed_on(&self, v: Value) -> bool {
        self.root(v).is_some() && !self.bases.contains(&v)
    }

    fn note_use(&self, uses: &mut Uses, v: Value, consumes: bool) {
        let root = self.root(v).or_else(|| self.aliases.get(&v).copied());
        if let Some(root) = root {
            if consumes { uses.consumed.push(root) } else { uses.borrowed.push(root) }
        }
        let of_variables = self.derived.get(&v).into_iter().flatten();
        uses.borrowed.extend(of_variables.filter(|&&r| Some(r) != root));
    }

    fn live_in(&mut self, cfg: &Cfg) -> Vec<Set> {
        let n = self.roots.len();
        let mut live: Vec<Set> = vec![Set::new(n); self.b.function.blocks.len()];
        loop {
            let mut changed = false;
            for &block in cfg.rpo.iter().rev() {
                let mut set = self.live_before_term(block.idx(), &live);
                for j in (0..self.b.function.blocks[block.idx()].insts.len()).rev() {
                    let inst = self.b.function.blocks[block.idx()].insts[j].clone();
                    if let Some(root) = inst.result.and_then(|r| self.root(r)) {
                        set.remove(root);
                    }
                    let uses = self.uses_of_inst(&inst);
                    uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = set.insert(r));
                }
                for &param in &self.b.function.blocks[block.idx()].params {
                    if let Some(&root) = self.root_of.get(&param) {
                        set.remove(root);
                    }
                }
                changed |= live[block.idx()].add(&set);
            }
            if !changed {
                return live;
            }
        }
    }

    fn live_before_term(&self, block: usize, live_in: &[Set]) -> Set {
        let term = &self.b.function.blocks[block].term;
        let mut set = Set::new(self.roots.len());
        for edge in term.edges() {
            set.add(&live_in[edge.block.idx()]);
            let uses = self.uses_of_edge(edge);
            uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = set.insert(r));
        }
        let uses = self.uses_of_term(term);
        uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = set.insert(r));
        set
    }

    // Code.

    fn push(&mut self, op: InstOp, args: &[Value], result: Option<Value>) {
        self.out.push(Inst { op, args: args.into(), result, span: self.span, fast: false });
    }

    fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let result = self.b.function.new_value(ty, "");
        self.push(InstOp::Op(op), args, Some(result));
        result
    }

    /// Calls a function of the runtime with an environment, a record, or the address of a variable that has a count.
    fn call(&mut self, callee: Func, mut environment: Value) {
        if self.b.function.ty(environment) != self.p.env_ptr {
            environment = self.op(Op::Bitcast, &[environment], self.p.env_ptr);
        }
        let unit = self.b.types.unit();
        let result = self.b.function.new_value(unit, "");
        self.push(InstOp::Call(callee), &[environment], Some(result));
    }

    /// Calls a function of the runtime with each environment in a value.
    fn for_leaves(&mut self, callee: Func, v: Value) {
        let ty = self.b.function.ty(v);
        if self.bases.contains(&v) || ty == self.p.env_ptr {
            return self.call(callee, v);
        }
        for path in self.p.leaves(self.b.types, ty).iter() {
            let (mut at, mut inner) = (v, ty);
            for &idx in path {
                inner = part_ty(self.b.types, inner, Some(idx)).unwrap_or(inner);
                let idx = self.b.literal(Prim::I64, idx);
                at = self.op(Op::Extract, &[at, idx], inner);
            }
            self.call(callee, at);
        }
    }

    fn retain(&mut self, v: Value) {
        self.for_leaves(self.counting.retain, v);
    }

    fn release(&mut self, v: Value) {
        self.for_leaves(self.counting.release, v);
    }

    /// A function value, or an aggregate of them, with null environments.
    fn empty(&mut self, ty: Ty) -> Value {
        if ty == self.p.pair {
            let code = self.b.types.code();
            let code = self.b.function.undef(code);
            let null = self.b.function.constant(Const::Bits(0), self.p.env_ptr);
            return self.op(Op::Tuple, &[code, null], ty);
        }
        if ty == self.p.record {
            return self.b.function.constant(Const::Bits(0), ty);
        }
        if self.p.leaves(self.b.types, ty).is_empty() {
            return self.b.function.undef(ty);
        }
        let parts: Vec<Value> = (0..self.b.types.n_parts(ty).unwrap_or(0))
            .filter_map(|i| self.b.types.part(ty, i))
            .collect::<Vec<Ty>>()
            .into_iter()
            .map(|part| self.empty(part))
            .collect();
        let op = match self.b.types.kind(ty) {
            TyKind::Tuple(_) => Op::Tuple,
            TyKind::Array(..) => Op::Array,
            _ => Op::Struct,
        };
        self.op(op, &parts, ty)
    }

    /// Replaces an undefined function value by one without environment.
    fn defined(&mut self, v: Value) -> Value {
        match self.b.function.as_const(v) {
            Some(Const::Undef) if self.is_counted(v) => {
                let ty = self.b.function.ty(v);
                self.empty(ty)
            }
            _ => v,
        }
    }

    /// Retains values once for each time they are consumed, but once less if they are not live afterwards.
    fn retain_for(&mut self, consumed: &[Root], after: &Set) {
        let mut given: FxHashSet<Root> = FxHashSet::default();
        for &root in consumed {
            if after.contains(root) || !given.insert(root) {
                self.retain(self.roots[root]);
            }
        }
    }

    fn rewrite(&mut self, block: usize, live_in: &[Set]) {
        let insts = std::mem::take(&mut self.b.function.blocks[block].insts);
        let mut after = self.live_before_term(block, live_in);
        // The counted values that are live after each instruction.
        let mut live_after: Vec<Set> = Vec::with_capacity(insts.len());
        let mut all_uses: Vec<Uses> = Vec::with_capacity(insts.len());
        let before_term = after.clone();
        for inst in insts.iter().rev() {
            live_after.push(after.clone());
            if let Some(root) = inst.result.and_then(|r| self.root(r)) {
                after.remove(root);
            }
            let uses = self.uses_of_inst(inst);
            uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = after.insert(r));
            all_uses.push(uses);
        }
        let at_start = after;
        let params = self.b.function.blocks[block].params.clone();
        for v in params {
            let Some(root) = self.root(v) else { continue };
            if block == 0 && self.p.vectorized.contains(&self.func) {
                self.retain(v);
            }
            if !at_start.contains(root) {
                self.release(v);
            }
        }
        for inst in insts {
            let (Some(after), Some(uses)) = (live_after.pop(), all_uses.pop()) else { break };
            self.rewrite_inst(inst, &after, &uses, block == 0);
        }
        self.rewrite_term(block, live_in, &before_term);
    }

    fn rewrite_inst(&mut self, mut inst: Inst, after: &Set, uses: &Uses, in_entry: bool) {
        self.span = inst.span;
        for i in 0..inst.args.len() {
            inst.args[i] = self.defined(inst.args[i]);
        }
        self.retain_for(&uses.consumed, after);
        let replaced = match inst.op {
            InstOp::Op(Op::Store) if self.variables.contains_key(&inst.args[0]) && self.is_counted(inst.args[1]) => {
                let ty = self.b.function.ty(inst.args[1]);
                Some(self.op(Op::Load, &[inst.args[0]], ty))
            }
            _ => None,
        };
        if inst.op == InstOp::Op(Op::Slot)
            && let Some(slot) = inst.result
            && self.variables.contains_key(&slot)
        {
            // The slot itself is made in the entry block.
            if !in_entry {
                self.empty_variable(slot, true);
            }
            return;
        }
        let (op, result) = (inst.op, inst.result);
        let is_part = inst.args.first().is_some_and(|a| self.aliases.contains_key(a));
        let owned_memory = op == InstOp::Op(Op::Load) && self.reads_own_environment(inst.args[0]);
        self.out.push(inst);
        if let Some(old) = replaced {
            self.release(old);
        }
        if let Some(v) = result
            && let Some(root) = self.root(v)
        {
            if self.on_heap.lives_forever(self.func, v) {
                self.retain(v);
            }
            let is_made = match op {
                InstOp::Op(Op::Bitcast) => !is_part,
                InstOp::Call(_) | InstOp::CallIndirect => true,
                InstOp::Op(Op::Tuple) if self.b.function.ty(v) == self.p.pair => !self.is_rebuilt(v),
                InstOp::Op(Op::Tuple | Op::Struct | Op::Array) => true,
                _ => owned_memory,
            };
            match (is_made, after.contains(root)) {
                (false, true) => self.retain(v),
                (true, false) => self.release(v),
                _ => {}
            }
        }
        let mut dead: Vec<Root> = uses.borrowed.iter().copied().filter(|r| !after.contains(*r)).collect();
        dead.retain(|r| !uses.consumed.contains(r));
        dead.sort_unstable();
        dead.dedup();
        for root in dead {
            self.release(self.roots[root]);
        }
    }

    /// Whether a function value is made with the environment of another one.
    fn is_rebuilt(&self, v: Value) -> bool {
        let maker = self.out.iter().rev().find(|inst| inst.result == Some(v));
        maker.is_some_and(|inst| self.aliases.contains_key(&inst.args[1]))
    }

    /// Whether an address is in the environment that a thread was started with.
    fn reads_own_environment(&self, mut ptr: Value) -> bool {
        if !self.p.threads.contains(&self.func) {
            return false;
        }
        while let Some(inst) = self.out.iter().rev().find(|inst| inst.result == Some(ptr)) {
            match inst.op {
                InstOp::Op(Op::Bitcast | Op::Lea) => ptr = inst.args[0],
                _ => return false,
            }
        }
        self.b.function.blocks[0].params.first() == Some(&ptr)
    }

    fn rewrite_term(&mut self, block: usize, live_in: &[Set], before: &Set) {
        let mut term = self.b.function.blocks[block].term.clone();
        let uses = self.uses_of_term(&term);
        let none = Set::new(self.roots.len());
        match &mut term {
            Terminator::Return(values) => {
                *values = values.iter().map(|&v| self.defined(v)).collect();
                self.retain_for(&uses.consumed, &none);
                self.release_dead(before, &uses, &none);
                self.end_variables();
            }
            Terminator::TailCall { callee, args, .. } => {
                *args = args.iter().map(|&v| self.defined(v)).collect();
                self.retain_for(&uses.consumed, &none);
                // A tail call that passes the address of a variable becomes a call.
                let (callee, args) = (*callee, args.clone());
                let borrows = |v: &Value| self.derived.get(v).into_iter().flatten().any(|r| uses.borrowed.contains(r));
                match args.iter().any(|a| self.addresses.contains(a) || borrows(a)) {
                    true => {
                        term = self.call_before_return(callee, args);
                        self.release_dead(before, &uses, &none);
                    }
                    false => self.release_dead(before, &uses, &none),
                }
                self.end_variables();
            }
            Terminator::Jump(edge) => {
                edge.args = edge.args.iter().map(|&v| self.defined(v)).collect();
                self.pass_on(edge, &live_in[edge.block.idx()], before);
            }
            Terminator::Branch { then, els, .. } => {
                let body = std::mem::take(&mut self.out);
                for edge in [then, els] {
                    edge.args = edge.args.iter().map(|&v| self.defined(v)).collect();
                    self.pass_on(edge, &live_in[edge.block.idx()], before);
                    let code = std::mem::take(&mut self.out);
                    if code.is_empty() {
                        continue;
                    }
                    let between = self.b.block("drop", &[]);
                    let target = std::mem::replace(edge, Edge { block: between, args: Vec::new() });
                    self.b.function.blocks[between.idx()].insts = code;
                    self.b.function.blocks[between.idx()].term = Terminator::Jump(target);
                }
                self.out = body;
            }
            Terminator::Unreachable => {}
        }
        self.b.function.blocks[block].insts = std::mem::take(&mut self.out);
        self.b.function.blocks[block].term = term;
    }

    fn call_before_return(&mut self, callee: Callee, args: Vec<Value>) -> Terminator {
        let rets = self.b.function.rets.clone();
        let ty = Module::result_ty(self.b.types, &rets);
        let result = self.b.function.new_value(ty, "");
        match callee {
            Callee::Func(callee) => self.push(InstOp::Call(callee), &args, Some(result)),
            Callee::Indirect(code) => {
                self.push(InstOp::CallIndirect, &[&[code], &args[..]].concat(), Some(result));
            }
        }
        if rets.len() == 1 {
            return Terminator::Return(vec![result]);
        }
        let parts = rets.iter().enumerate().map(|(i, &ty)| {
            let idx = self.b.literal(Prim::I64, i as u64);
            self.op(Op::Extract, &[result, idx], ty)
        });
        Terminator::Return(parts.collect())
    }

    /// Code on an edge: retains arguments that stay live, and releases values that do not.
    fn pass_on(&mut self, edge: &Edge, after: &Set, before: &Set) {
        let uses = self.uses_of_edge(edge);
        self.retain_for(&uses.consumed, after);
        self.release_dead(before, &uses, after);
    }

    /// Releases values that were live before and are neither consumed nor live afterwards.
    fn release_dead(&mut self, before: &Set, uses: &Uses, after: &Set) {
        for root in before.iter() {
            if !after.contains(root) && !uses.consumed.contains(&root) {
                self.release(self.roots[root]);
            }
        }
    }

    // Variables.

    fn all_variables(&self) -> Vec<Value> {
        let mut slots: Vec<Value> = self.variables.iter().filter(|(v, slot)| v == slot).map(|(&v, _)| v).collect();
        slots.sort_unstable();
        slots
    }

    /// Empties a variable; releases its contents first if it `holds` any.
    fn empty_variable(&mut self, slot: Value, holds: bool) {
        let Some(ty) = self.b.types.pointee(self.b.function.ty(slot)) else { return };
        for path in self.p.leaves(self.b.types, ty).iter() {
            let (mut at, mut inner) = (slot, ty);
            for &idx in path {
                inner = part_ty(self.b.types, inner, Some(idx)).unwrap_or(inner);
                let ptr = self.b.types.ptr(inner);
                let idx = self.b.literal(Prim::I64, idx);
                at = self.op(Op::Lea, &[at, idx], ptr);
            }
            if holds {
                let held = self.op(Op::Load, &[at], inner);
                self.call(self.counting.release, held);
            }
            let null = self.b.function.constant(Const::Bits(0), inner);
            self.push(InstOp::Op(Op::Store), &[at, null], None);
        }
    }

    fn end_variables(&mut self) {
        for slot in self.all_variables() {
            self.empty_variable(slot, true);
        }
    }

    /// Makes all variables, empty, at the beginning of the function.
    fn begin_variables(&mut self) {
        self.span = self.b.function.span;
        for slot in self.all_variables() {
            self.push(InstOp::Op(Op::Slot), &[], Some(slot));
            self.empty_variable(slot, false);
        }
        let mut code = std::mem::take(&mut self.out);
        code.append(&mut self.b.function.blocks[0].insts);
        self.b.function.blocks[0].insts = code;
    }
}

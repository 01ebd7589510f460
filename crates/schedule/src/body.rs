//! Bodies: the blocks of a function, the placement of its operations, its calls and jumps.

use super::exits::Target;
use super::{Building, Scheduler, Variable, tuple_part, unpack, variable_of};
use nyala_base::diagnostics::{intrinsic_value, must_be_known};
use nyala_base::{Id, Span};
use nyala_flat::analysis::{Cfg, loop_depths};
use nyala_flat::environments::store_env;
use nyala_flat::*;
use nyala_ir::scalar::{ATOMICS, ORDERS, eval_atomic, scope_of_name};
use nyala_ir::{Builtin, Cont, Effect, Node, Op, Ty, Val};
use rustc_hash::{FxHashMap, FxHashSet};

/// The help for limitations of native code.
pub(super) const INTERPRETED: &str = "`nyala run --engine interp` executes it";

impl Scheduler<'_> {
    // Bodies.

    pub(super) fn build(&mut self, k: Cont) {
        let Some(func) = self.funcs[k] else { return };
        let data = self.w.cont(k);
        let mut b = Building {
            func,
            cont: k,
            blocks: FxHashMap::default(),
            ret_block: None,
            local: FxHashMap::default(),
            records: FxHashMap::default(),
            made: Vec::new(),
            frame: None,
            far: None,
        };
        let params = self.own_params(k);
        if *data.linkage != nyala_ir::Linkage::Internal && params.iter().any(|&p| self.is_continuation(self.w.ty(p))) {
            self.limitation(
                data.origin,
                "an exported function takes a continuation besides its return",
                "return a number that says how to go on",
            );
            return;
        }
        self.have_values.drain(..).for_each(|v| self.values[v] = 0);
        let order = self.make_blocks(&mut b);
        let own: Vec<Val> = params.into_iter().chain(self.needs(k)).collect();
        let values = self.module.func(func).block(Block(0)).params.clone();
        own.iter().zip(&values).for_each(|(&v, &value)| self.set_value(v, value));
        b.records.extend(self.exits.records(k).into_iter().zip(values[own.len()..].iter().copied()));
        self.narrow_scopes(&mut b, k);
        self.make_room(&mut b);
        // Before blocks have terminators, since the placement of operations depends on their edges.
        let successors = |c: &Cont| self.successors(&b, *c).iter().map(|t| b.blocks[t].idx()).collect();
        let cfg = Cfg::of(order.iter().map(successors).collect());
        let placed = self.place(&b, &order, &cfg);
        let mut rpo: Vec<Cont> = order.clone();
        rpo.sort_by_key(|c| cfg.position[b.blocks[c].idx()]);
        for c in rpo {
            let block = b.blocks[&c];
            for &op in &placed[block.idx()] {
                self.emit(&mut b, block, op);
            }
            self.terminate(&mut b, c, block);
        }
        self.finish_records(&mut b);
    }

    /// Gives functions their own alias scopes for promises about addresses made in functions around them: each a part
    /// of the scope around it.
    fn narrow_scopes(&mut self, b: &mut Building, k: Cont) {
        let w = self.w;
        for v in self.needs(k) {
            if w.is_op(v, Op::Extract) && w.is_op(w.args(v)[0], Op::Scope) {
                let mut fb = self.builder(b, Block(0), w.origin(v));
                let i32 = fb.types.i32();
                let scope = fb.op(Op::Scope, &[], i32);
                self.set_value(v, scope);
            }
        }
    }

    /// Makes blocks for all continuations that the function's control flow reaches; in order of discovery.
    pub(super) fn make_blocks(&mut self, b: &mut Building) -> Vec<Cont> {
        let w = self.w;
        let mut order = vec![b.cont];
        let mut next = 0;
        b.blocks.insert(b.cont, Block(0));
        while next < order.len() {
            for t in self.successors(b, order[next]) {
                b.blocks.entry(t).or_insert_with(|| {
                    order.push(t);
                    Block::from_idx(order.len() - 1)
                });
            }
            next += 1;
        }
        self.module.funcs[b.func.idx()].blocks.reserve_exact(order.len());
        for &c in &order {
            let name = |i: usize| w.param_name(c, i).unwrap_or("");
            let cont_params = w.params(c);
            if c == b.cont {
                let own = self.own_params(c);
                let shown: Vec<&str> =
                    (1..cont_params.len()).filter(|&i| own.contains(&cont_params[i])).map(name).collect();
                let mut fb = FunctionBuilder::new(&mut self.module, b.func);
                fb.entry(&shown);
            } else {
                let params: Vec<Ty> = cont_params[1..].iter().map(|&p| self.ty(w.ty(p))).collect();
                let params: Vec<(Ty, &str)> = params.into_iter().enumerate().map(|(i, t)| (t, name(i + 1))).collect();
                let mut fb = FunctionBuilder::new(&mut self.module, b.func);
                let block = fb.block(w.name(c), &params);
                debug_assert_eq!(b.blocks[&c], block);
                for (i, &p) in cont_params[1..].iter().enumerate() {
                    let value = self.module.func(b.func).block(block).params[i];
                    self.set_value(p, value);
                }
            }
        }
        order
    }

    /// Blocks where a continuation's body continues, or where exits of its callee may arrive.
    pub(super) fn successors(&self, b: &Building, c: Cont) -> Vec<Cont> {
        let w = self.w;
        let Some(body) = w.body(c) else { return Vec::new() };
        let block = |v: Val| match self.exits.target(w, b.cont, v) {
            Target::Block(t) if t != b.cont => Some(t),
            _ => None,
        };
        let mut found: Vec<Cont> = match w.node(body.callee) {
            Node::Builtin(b) => body.args[b.args().next].iter().copied().filter_map(block).collect(),
            _ => match block(body.callee) {
                Some(t) => vec![t],
                None => self.exits.uses(c).ret.and_then(block).into_iter().collect(),
            },
        };
        found.extend(self.exits.landings(w, b.cont, c));
        found.extend(self.exits.reified_at(w, &self.nest, b.cont, c).into_iter().filter_map(block));
        found
    }

    /// The operations of each block, in order.
    pub(super) fn place(&mut self, b: &Building, order: &[Cont], cfg: &Cfg) -> Vec<Vec<Val>> {
        // Positions in `ops`, from 1: the table is reused for all functions.
        let mut number = std::mem::take(&mut self.numbers);
        let w = self.w;
        let tree = cfg.dominator_tree();
        let depth = loop_depths(cfg, &tree);
        // For each block the nearest dominator that is in fewer loops.
        let mut outside: Vec<Option<Block>> = vec![None; depth.len()];
        for &block in &cfg.rpo[1..] {
            let up = cfg.idom[block.idx()];
            let leaves_loop = depth[up.idx()] < depth[block.idx()];
            outside[block.idx()] = if leaves_loop { Some(up) } else { outside[up.idx()] };
        }
        let mut conts: Vec<Cont> =
            order.iter().copied().filter(|c| cfg.position[b.blocks[c].idx()] != usize::MAX).collect();
        conts.sort_by_key(|c| cfg.position[b.blocks[c].idx()]);
        // In this list operands come before their users.
        let mut ops: Vec<(Val, Block)> = Vec::new();
        for &c in &conts {
            let block = b.blocks[&c];
            let early = |v: Val| self.nest.owner(v).and_then(|o| b.blocks.get(&o)).copied().unwrap_or(Block(0));
            ops.extend(self.nest.ops(c).iter().map(|&v| (v, if self.is_made(v) { block } else { early(v) })));
        }
        self.add_local_ops(b, &conts, &mut ops);
        ops.iter().enumerate().for_each(|(i, op)| number[op.0] = i as u32 + 1);
        let mut uses: Vec<Option<Block>> = vec![None; ops.len()];
        // Operations on constants belong to nobody; their operands may be shared again and again.
        let mut seen: FxHashSet<(Val, Block)> = FxHashSet::default();
        let mut add_use = |uses: &mut Vec<Option<Block>>, v: Val, block: Block| {
            let mut work = vec![v];
            while let Some(v) = work.pop() {
                if let Some(i) = number[v].checked_sub(1) {
                    let at = &mut uses[i as usize];
                    *at = Some(at.map_or(block, |at| Block::from_idx(tree.meet(at.idx(), block.idx()))));
                } else if let Node::Cont(c) = w.node(v) {
                    // Calls and closures of a function use its free values.
                    if self.exits.is_entry(c) {
                        work.extend(self.needs(c));
                    }
                } else if w.as_op(v).is_some() && self.nest.owner(v).is_none() && seen.insert((v, block)) {
                    work.extend(w.args(v));
                }
            }
        };
        for &c in &conts {
            if let Some(body) = w.body(c) {
                add_use(&mut uses, body.callee, b.blocks[&c]);
                for &a in body.args {
                    add_use(&mut uses, a, b.blocks[&c]);
                }
            }
            // Exits of the callee may need further values.
            for x in self.exits.uses(c).callee.map(|f| self.exits.exits(f)).unwrap_or_default() {
                add_use(&mut uses, self.exits.at_call(w, c, x), b.blocks[&c]);
            }
        }
        let mut home: Vec<Option<Block>> = vec![None; ops.len()];
        for (i, &(v, owner)) in ops.iter().enumerate().rev() {
            let Node::Op(op) = w.node(v) else { continue };
            let is_pinned = op.effect() != Effect::Total || self.is_made(v);
            let at = if is_pinned {
                owner
            } else {
                let Some(late) = uses[i] else { continue };
                let mut at = late;
                while let Some(outside) = outside[at.idx()].filter(|o| tree.depth(o.idx()) >= tree.depth(owner.idx())) {
                    at = outside;
                }
                at
            };
            home[i] = Some(at);
            for &a in w.args(v) {
                add_use(&mut uses, a, at);
            }
        }
        let mut placed: Vec<Vec<Val>> = vec![Vec::new(); depth.len()];
        for (&(v, _), home) in ops.iter().zip(home) {
            if let Some(at) = home {
                placed[at.idx()].push(v);
            }
            number[v] = 0;
        }
        self.numbers = number;
        placed
    }

    /// Inserts operations on values of this function, which the graph computes in other functions, into `ops`, before
    /// their first users.
    fn add_local_ops(&self, b: &Building, conts: &[Cont], ops: &mut Vec<(Val, Block)>) {
        let w = self.w;
        let local = self.exits.local_ops(b.cont);
        if local.is_empty() {
            return;
        }
        let mut done: FxHashSet<Val> = FxHashSet::default();
        let mut order: Vec<(Val, Block)> = Vec::new();
        let known: FxHashMap<Val, Block> = ops.iter().copied().collect();
        let effect = |v: Val| w.as_op(v).map(|op| op.effect());
        let mut partials: FxHashMap<Val, Vec<Val>> = FxHashMap::default();
        for &(v, _) in ops.iter().filter(|o| effect(o.0) == Some(Effect::Partial)) {
            partials.entry(w.args(v)[0]).or_default().push(v);
        }
        let uses =
            conts.iter().filter_map(|&c| w.body(c)).flat_map(|body| body.args.iter().copied().chain([body.callee]));
        let roots: Vec<Val> = ops.iter().map(|o| o.0).chain(uses).collect();
        let mut stack: Vec<(Val, bool)> = Vec::new();
        let mut seen_entries: FxHashSet<Cont> = FxHashSet::default();
        for root in roots {
            stack.push((root, false));
            while let Some((v, operands_done)) = stack.pop() {
                if operands_done {
                    let early = || self.nest.owner(v).and_then(|o| b.blocks.get(&o)).copied().unwrap_or(Block(0));
                    order.push((v, known.get(&v).copied().unwrap_or_else(early)));
                    continue;
                }
                match w.node(v) {
                    Node::Cont(c) if self.exits.is_entry(c) && seen_entries.insert(c) => {
                        stack.extend(self.needs(c).into_iter().map(|v| (v, false)));
                    }
                    Node::Op(op) if known.contains_key(&v) || local.contains(&v) => {
                        if !done.insert(v) {
                            continue;
                        }
                        stack.push((v, true));
                        if op.effect() == Effect::Write {
                            stack.extend(partials.get(&w.args(v)[0]).into_iter().flatten().map(|&p| (p, false)));
                        }
                        stack.extend(w.args(v).iter().rev().map(|&a| (a, false)));
                    }
                    Node::Op(_) if self.nest.owner(v).is_none() && done.insert(v) => {
                        stack.extend(w.args(v).iter().rev().map(|&a| (a, false)));
                    }
                    _ => {}
                }
            }
        }
        *ops = order;
    }

    /// Whether `v` is a part of the result of an operation with effects: its value, often an address, or the next
    /// `mem`.
    pub(super) fn is_made(&self, v: Val) -> bool {
        let has_effect = |v: Val| self.w.as_op(v).is_some_and(|op| op.effect() == Effect::Write);
        self.w.is_op(v, Op::Extract) && has_effect(self.w.args(v)[0])
    }

    pub(super) fn builder(&mut self, b: &Building, block: Block, span: Span) -> FunctionBuilder<'_> {
        let mut fb = FunctionBuilder::new(&mut self.module, b.func);
        fb.switch_to(block);
        fb.span = span;
        fb
    }

    /// Emits an operation that `place` put into the block.
    pub(super) fn emit(&mut self, b: &mut Building, block: Block, v: Val) {
        let w = self.w;
        let Node::Op(op) = w.node(v) else { return };
        if self.is_made(v) {
            if let Some(ptr) = self.known_value(w.args(v)[0])
                && w.as_lit(w.args(v)[1]) == Some(1)
            {
                self.set_value(v, ptr);
            }
            return;
        }
        if op == Op::Extract && w.ty(v) == w.types.mem() {
            return;
        }
        if let Some(value) = self.emit_op(b, block, op, v) {
            self.set_value(v, value);
        }
    }

    pub(super) fn emit_op(&mut self, b: &mut Building, block: Block, op: Op, v: Val) -> Option<Value> {
        let w = self.w;
        let takes_mem = op.effect() != Effect::Total;
        let n = op.scope_operand().unwrap_or(w.args(v).len());
        let mut args: Vec<Value> = w.args(v)[takes_mem as usize..n].iter().map(|&a| self.value(b, block, a)).collect();
        let span = w.origin(v);
        if let Some(&scope) = w.args(v).get(n) {
            // The widest scope is correct where it is not known yet.
            let number = w.as_lit(scope).or_else(|| Some(scope_of_name(&w.text_at(scope)?))).unwrap_or(0);
            args.push(self.builder(b, block, span).literal(nyala_ir::Prim::I32, number));
        }
        match op {
            Op::Known => {
                let mut fb = self.builder(b, block, span);
                return Some(fb.literal(nyala_ir::Prim::Bool, 0));
            }
            Op::Hlt | Op::Unfold | Op::Run => return Some(args[0]),
            Op::Pipeline => {
                self.builder(b, block, span).effect(op, &args);
                return None;
            }
            Op::Store => {
                let mut fb = self.builder(b, block, span);
                fb.fast = w.is_fast(v);
                fb.store(args[0], args[1]);
                return None;
            }
            Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
                self.check_atomic(op, v);
                let result = w.types.part(w.ty(v), 1).map(|t| self.ty(t));
                let mut fb = self.builder(b, block, span);
                return match result {
                    Some(ty) => Some(fb.op(op, &args, ty)),
                    None => {
                        fb.effect(op, &args);
                        None
                    }
                };
            }
            Op::Prefetch | Op::Watch | Op::DebugValue => {
                self.builder(b, block, span).effect(op, &args);
                return None;
            }
            Op::Slot => {
                let ptr = w.types.part(w.ty(v), 1).and_then(|p| w.types.pointee(p))?;
                let ty = self.ty(ptr);
                let slot = self.builder(b, block, span).slot(ty, "");
                let may_be_left = self.groups.of(b.cont).is_some();
                self.variables.push(Variable { func: b.func, slot, of: v, may_be_left });
                return Some(slot);
            }
            Op::Scope => {
                let ty = self.ty(w.types.part(w.ty(v), 1)?);
                return Some(self.builder(b, block, span).op(op, &args, ty));
            }
            Op::Alloc => {
                let ptr = w.types.part(w.ty(v), 1)?;
                let ty = self.ty(ptr);
                return Some(self.builder(b, block, span).op(Op::Alloc, &args, ty));
            }
            _ => {}
        }
        let ty = self.ty(w.ty(v));
        let mut fb = self.builder(b, block, span);
        fb.fast = w.is_fast(v);
        Some(fb.op(op, &args, ty))
    }

    /// Checks that compiled code knows the operation, order and scope of an atomic, and that these are allowed.
    fn check_atomic(&mut self, op: Op, v: Val) {
        let w = self.w;
        let (args, span, name) = (w.args(v), w.origin(v), op.name());
        let unknown = |what: &str| must_be_known::error(span, &format!("the {what} of `{name}`"));
        let wrong = match (op, args.get(1).and_then(|&a| w.as_lit(a))) {
            (Op::Atomic, None) => Some(unknown("operation")),
            (Op::Atomic, Some(number)) => {
                let ty = w.types.pointee(w.ty(args[2])).unwrap_or(w.ty(args[2]));
                let works = eval_atomic(number, w.types.as_prim(ty), 0, 0).is_some();
                (!works).then(|| {
                    intrinsic_value::of_atomic(span, number, ATOMICS.get(number as usize), &w.types.display(ty))
                })
            }
            _ => None,
        };
        self.errors.extend(wrong);
        for &order in &args[op.literal_operands()] {
            match w.as_lit(order) {
                None => self.errors.push(unknown("memory order")),
                Some(n) if ORDERS.get(n as usize).is_none_or(Option::is_none) => {
                    self.errors.push(intrinsic_value::of_order(span, n, name));
                }
                Some(_) => {}
            }
        }
    }

    fn known_value(&self, v: Val) -> Option<Value> {
        self.values[v].checked_sub(1).map(Value)
    }

    fn set_value(&mut self, v: Val, value: Value) {
        self.values[v] = value.0 + 1;
        self.have_values.push(v);
    }

    /// The flat value of a graph value, for a use in `block`.
    pub(super) fn value(&mut self, b: &mut Building, block: Block, v: Val) -> Value {
        if let Some(value) = self.known_value(v) {
            return value;
        }
        if let Some(&value) = b.local.get(&(block, v)) {
            return value;
        }
        let w = self.w;
        let ty = self.ty(w.ty(v));
        let function = |s: &mut Self, c: Const| s.module.funcs[b.func.idx()].constant(c, ty);
        match w.node(v) {
            Node::Lit(bits) => return function(self, Const::Bits(bits)),
            Node::Global(g) => {
                let c = self.globals[g].map_or(Const::Undef, Const::Global);
                return function(self, c);
            }
            Node::Undef | Node::Builtin(_) => return function(self, Const::Undef),
            Node::Param(..) if !self.exits.is_record(w, v) => {
                // A value that depends on an unsupported parameter has been reported already.
                if self.errors.is_empty() {
                    self.limitation(
                        w.cont(b.cont).origin,
                        "a continuation is used as a value",
                        "specialize the function that takes it, with `@`",
                    );
                }
                return function(self, Const::Undef);
            }
            Node::Param(..) => {}
            Node::Cont(_) | Node::Op(_) => {}
        }
        let value = match w.node(v) {
            _ if self.exits.is_record(w, v) => Some(self.continuation_pair(b, block, v)),
            Node::Cont(k) => Some(self.make_closure(b, block, k)),
            Node::Op(op) if self.nest.owner(v).is_none() => self.emit_op(b, block, op, v),
            _ => None,
        };
        let value = value.unwrap_or_else(|| self.module.funcs[b.func.idx()].undef(ty));
        b.local.insert((block, v), value);
        value
    }

    /// Makes a function value: a pair of its code and, on the heap, its free values.
    pub(super) fn make_closure(&mut self, b: &mut Building, block: Block, k: Cont) -> Value {
        let w = self.w;
        let span = w.cont(k).origin;
        let code = self.closure_code(k);
        let pair = self.ty(w.cont(k).ty);
        let env = self.env_on_heap(b, block, k);
        let mut fb = self.builder(b, block, span);
        let code = fb.func_addr(code);
        fb.op(Op::Tuple, &[code, env], pair)
    }

    /// The free values of a function, and the records that it needs.
    pub(super) fn free_values(&mut self, b: &mut Building, block: Block, k: Cont) -> Vec<Value> {
        let mut values: Vec<Value> = self.needs(k).into_iter().map(|v| self.value(b, block, v)).collect();
        for v in self.exits.records(k) {
            values.push(self.record(b, block, v, self.w.cont(k).origin));
        }
        values
    }

    /// Makes the environment of a function, on the heap; null if it needs none.
    pub(super) fn env_on_heap(&mut self, b: &mut Building, block: Block, k: Cont) -> Value {
        let values = self.free_values(b, block, k);
        let tys = self.free_tys(k);
        self.captured.extend(self.needs(k).into_iter().filter_map(|v| variable_of(self.w, v)));
        let env_ptr = self.env_ptr();
        let mut fb = self.builder(b, block, self.w.cont(k).origin);
        if values.is_empty() {
            return fb.function.constant(Const::Bits(0), env_ptr);
        }
        let env_ty = fb.types.tuple(&tys);
        let one = fb.literal(nyala_ir::Prim::I64, 1);
        let array = fb.types.indef_array(env_ty);
        let array = fb.types.ptr(array);
        let made = fb.op(Op::Alloc, &[one], array);
        let zero = fb.literal(nyala_ir::Prim::I64, 0);
        let record_ty = fb.types.ptr(env_ty);
        let record = fb.op(Op::Lea, &[made, zero], record_ty);
        store_env(&mut fb, record, &values, &tys);
        fb.op(Op::Bitcast, &[record], env_ptr)
    }

    pub(super) fn terminate(&mut self, b: &mut Building, c: Cont, block: Block) {
        let w = self.w;
        let Some(body) = w.body(c) else { return };
        let term = match w.node(body.callee) {
            Node::Builtin(Builtin::Unreachable) => Terminator::Unreachable,
            Node::Builtin(Builtin::Limited) => {
                let hint = match w.as_lit(body.args[2]) {
                    Some(1) => INTERPRETED,
                    _ => "do without it, or write it as a function of the program",
                };
                self.limitation(body.origin, &w.text(body.args[1]), hint);
                Terminator::Jump(self.edge_to(b, body.args[3], Vec::new(), body.origin))
            }
            Node::Builtin(Builtin::PeInfo | Builtin::StaticAssert) => {
                Terminator::Jump(self.edge_to(b, body.args[3], Vec::new(), body.origin))
            }
            Node::Builtin(Builtin::Parallel) => self.launch_parallel(b, block, body),
            Node::Builtin(Builtin::Vectorize) => self.launch_lanes(b, block, body),
            Node::Builtin(Builtin::Spawn) => self.launch_thread(b, block, body),
            Node::Builtin(Builtin::Launch) => self.launch_kernel(b, block, body),
            Node::Builtin(Builtin::Branch) => {
                let cond = self.value(b, block, body.args[1]);
                let then = self.edge_to(b, body.args[2], Vec::new(), body.origin);
                let els = self.edge_to(b, body.args[3], Vec::new(), body.origin);
                Terminator::Branch { cond, then, els }
            }
            _ => self.call(b, c, block, body),
        };
        self.terminate_block(b, block, term);
    }

    pub(super) fn call(&mut self, b: &mut Building, c: Cont, block: Block, body: nyala_ir::Body) -> Terminator {
        let w = self.w;
        let callee_ty = w.ty(body.callee);
        let known = match w.node(body.callee) {
            Node::Cont(k) if self.is_function(k) || k == b.cont => Some(k),
            _ => None,
        };
        let target = self.exits.target(w, b.cont, body.callee);
        let is_jump = known.is_none() && self.is_continuation(callee_ty);
        if is_jump && (target != Target::Value || !self.is_jump(b.cont, c, self.groups.of_type(callee_ty))) {
            let args = body.args[1..].iter().map(|&a| self.value(b, block, a)).collect();
            return self.goto(b, block, body.callee, args, body.origin);
        }
        let ret = self.exits.uses(c).ret;
        let n = body.args.len() - ret.is_some() as usize;
        let (_, own) = self.signature(callee_ty);
        let mut args: Vec<Value> = Vec::new();
        for (i, &a) in body.args.iter().enumerate().take(n).skip(1) {
            if !known.is_some_and(|k| self.exits.is_static(w, w.params(k)[i])) {
                args.push(self.value(b, block, a));
            }
        }
        let (callee, group) = match known {
            Some(k) => {
                args.extend(self.free_values(b, block, k));
                (Callee::Func(self.func(k)), self.groups.of(k))
            }
            None => {
                let pair = self.value(b, block, body.callee);
                let mut fb = self.builder(b, block, body.origin);
                let code = tuple_part(&mut fb, pair, 0);
                args.push(tuple_part(&mut fb, pair, 1));
                (Callee::Indirect(code), self.groups.of_type(callee_ty))
            }
        };
        let is_foreign = matches!(callee, Callee::Func(f) if self.module.func(f).is_foreign());
        let is_loop = known == Some(b.cont) && !self.is_function(b.cont);
        if is_loop || !is_foreign && self.is_jump(b.cont, c, group) {
            return Terminator::TailCall { callee, args, span: body.origin };
        }
        let rets = group.map_or(own.clone(), |g| self.groups.all[g].tys.clone());
        let mut fb = self.builder(b, block, body.origin);
        let result = match callee {
            Callee::Func(f) => fb.call(f, &args, &rets),
            Callee::Indirect(code) => fb.call_indirect(code, &args, &rets),
        };
        let results = unpack(&mut fb, result, &rets);
        match (group, ret) {
            (Some(group), _) => self.after_call(b, c, block, (group, results), own.len(), body.origin),
            (None, Some(ret)) => self.goto(b, block, ret, results, body.origin),
            (None, None) => Terminator::Unreachable,
        }
    }
}

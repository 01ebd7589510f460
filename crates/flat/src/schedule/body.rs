//! Bodies: the blocks of a function, where its operations stand, its calls and jumps.

use super::{Building, Scheduler, loop_depths, store_env, unpack};
use crate::analysis::Cfg;
use crate::data::*;
use nyala_base::{Id, Span};
use nyala_ir::scalar::{ATOMICS, ORDERS, eval_atomic};
use nyala_ir::{Builtin, Cont, Effect, Node, Op, Ty, Val};
use rustc_hash::{FxHashMap, FxHashSet};

impl Scheduler<'_> {
    // Bodies.

    pub(super) fn build(&mut self, k: Cont) {
        let Some(func) = self.funcs[k] else { return };
        let data = self.w.cont(k);
        let ret = data.params.last().copied().filter(|&p| self.is_continuation(self.w.ty(p)));
        let n = data.params.len() - ret.is_some() as usize;
        let mut b = Building {
            func,
            cont: k,
            ret,
            blocks: FxHashMap::default(),
            ret_block: None,
            values: FxHashMap::default(),
            local: FxHashMap::default(),
        };
        for &p in &data.params[1..n] {
            if self.is_continuation(self.w.ty(p)) {
                self.limitation(
                    data.origin,
                    "a function that is not specialized takes a continuation besides its return",
                    "let calls of it be specialized with `@`",
                );
                return;
            }
        }
        let order = self.make_blocks(&mut b);
        let free = self.nest.free(k).to_vec();
        let own: Vec<Val> = data.params[1..n].iter().copied().chain(free).collect();
        for (i, &v) in own.iter().enumerate() {
            let value = self.module.func(func).block(Block(0)).params[i];
            b.values.insert(v, value);
        }
        // Terminators first without arguments: where operations go depends on them.
        for &c in &order {
            self.link(&mut b, c);
        }
        let cfg = Cfg::new(self.module.func(func));
        let placed = self.place(&b, &order, &cfg);
        let mut rpo: Vec<Cont> = order.clone();
        rpo.sort_by_key(|c| cfg.position[b.blocks[c].idx()]);
        for c in rpo {
            let block = b.blocks[&c];
            for &op in placed.get(&block).into_iter().flatten() {
                self.emit(&mut b, block, op);
            }
            self.terminate(&mut b, c, block);
        }
    }

    /// Blocks of everything the function's control flow reaches; in order of discovery.
    pub(super) fn make_blocks(&mut self, b: &mut Building) -> Vec<Cont> {
        let w = self.w;
        let mut order = vec![b.cont];
        let mut next = 0;
        b.blocks.insert(b.cont, Block(0));
        while next < order.len() {
            let c = order[next];
            next += 1;
            let data = w.cont(c);
            let names: Vec<&str> = data.param_names.iter().map(|s| s.as_str()).collect();
            let name = |i: usize| names.get(i).copied().unwrap_or("");
            if c == b.cont {
                let params = self.module.func(b.func).params.clone();
                let n_own = params.len() - self.nest.free(c).len();
                let mut fb = FunctionBuilder::new(&mut self.module, b.func);
                let shown: Vec<&str> = (0..n_own).map(|i| name(i + 1)).collect();
                fb.entry(&shown);
            } else {
                let params: Vec<Ty> = data.params[1..].iter().map(|&p| self.ty(w.ty(p))).collect();
                let params: Vec<(Ty, &str)> = params.into_iter().enumerate().map(|(i, t)| (t, name(i + 1))).collect();
                let mut fb = FunctionBuilder::new(&mut self.module, b.func);
                let block = fb.block(&data.name, &params);
                debug_assert_eq!(b.blocks[&c], block);
                for (i, &p) in data.params[1..].iter().enumerate() {
                    let value = self.module.func(b.func).block(block).params[i];
                    b.values.insert(p, value);
                }
            }
            for t in self.successors(b, c) {
                b.blocks.entry(t).or_insert_with(|| {
                    order.push(t);
                    Block::from_idx(order.len() - 1)
                });
            }
        }
        order
    }

    /// Blocks that a continuation's body goes on at.
    pub(super) fn successors(&self, b: &Building, c: Cont) -> Vec<Cont> {
        let w = self.w;
        let Some(body) = w.body(c) else { return Vec::new() };
        let block = |v: Val| w.as_cont(v).filter(|&t| !self.is_function(t) && t != b.cont);
        match w.node(body.callee) {
            Node::Builtin(Builtin::Branch) => [body.args[2], body.args[3]].into_iter().filter_map(block).collect(),
            Node::Builtin(Builtin::PeInfo | Builtin::StaticAssert | Builtin::Limited) => {
                block(body.args[3]).into_iter().collect()
            }
            Node::Builtin(Builtin::Unreachable) => Vec::new(),
            Node::Builtin(Builtin::Parallel) => block(body.args[5]).into_iter().collect(),
            Node::Builtin(Builtin::Spawn) => block(body.args[3]).into_iter().collect(),
            _ => match block(body.callee) {
                Some(t) => vec![t],
                None => body.args.last().and_then(|&a| block(a)).into_iter().collect(),
            },
        }
    }

    pub(super) fn link(&mut self, b: &mut Building, c: Cont) {
        let targets = self.successors(b, c);
        let edge = |t: &Cont| Edge { block: b.blocks[t], args: Vec::new() };
        let term = match targets.as_slice() {
            [] => Terminator::Unreachable,
            [t] => Terminator::Jump(edge(t)),
            [t, e, ..] => Terminator::Branch { cond: Value(0), then: edge(t), els: edge(e) },
        };
        let block = b.blocks[&c];
        self.module.funcs[b.func.idx()].blocks[block.idx()].term = term;
    }

    /// Which operations stand in which block, in order.
    pub(super) fn place(&self, b: &Building, order: &[Cont], cfg: &Cfg) -> FxHashMap<Block, Vec<Val>> {
        let w = self.w;
        let depth = loop_depths(cfg);
        // Depth in the dominator tree, and the nearest dominator that is in fewer loops.
        let mut height = vec![0u32; depth.len()];
        let mut outside: Vec<Option<Block>> = vec![None; depth.len()];
        for &block in &cfg.rpo[1..] {
            let up = cfg.idom[block.idx()];
            height[block.idx()] = height[up.idx()] + 1;
            let leaves_loop = depth[up.idx()] < depth[block.idx()];
            outside[block.idx()] = if leaves_loop { Some(up) } else { outside[up.idx()] };
        }
        let mut conts: Vec<Cont> =
            order.iter().copied().filter(|c| cfg.position[b.blocks[c].idx()] != usize::MAX).collect();
        conts.sort_by_key(|c| cfg.position[b.blocks[c].idx()]);
        // Operands stand before their users in this list.
        let mut ops: Vec<(Val, Block)> = Vec::new();
        for &c in &conts {
            let block = b.blocks[&c];
            let early = |v: Val| self.nest.owner(v).and_then(|o| b.blocks.get(&o)).copied().unwrap_or(Block(0));
            ops.extend(self.nest.ops(c).iter().map(|&v| (v, if self.is_made(v) { block } else { early(v) })));
        }
        let mut home: FxHashMap<Val, Block> = FxHashMap::default();
        let mut uses: FxHashMap<Val, Block> = FxHashMap::default();
        let meet = |x: Block, y: Block| {
            let (mut x, mut y) = (x, y);
            while x != y {
                if cfg.position[x.idx()] > cfg.position[y.idx()] {
                    x = cfg.idom[x.idx()];
                } else {
                    y = cfg.idom[y.idx()];
                }
            }
            x
        };
        let owned: FxHashSet<Val> = ops.iter().map(|o| o.0).collect();
        let add_use = |uses: &mut FxHashMap<Val, Block>, v: Val, block: Block| {
            let mut work = vec![v];
            while let Some(v) = work.pop() {
                if owned.contains(&v) {
                    uses.entry(v).and_modify(|at| *at = meet(*at, block)).or_insert(block);
                } else if let Node::Cont(c) = w.node(v) {
                    // Calls and closures of a function take what is free in it.
                    if self.is_function(c) {
                        work.extend(self.nest.free(c));
                    }
                } else if self.nest.owner(v).is_none() {
                    work.extend(w.args(v));
                }
            }
        };
        for &c in &conts {
            if let Some(body) = w.body(c) {
                add_use(&mut uses, body.callee, b.blocks[&c]);
                for &a in &body.args {
                    add_use(&mut uses, a, b.blocks[&c]);
                }
            }
        }
        for &(v, owner) in ops.iter().rev() {
            let Node::Op(op) = w.node(v) else { continue };
            let is_pinned = op.effect() != Effect::Total || self.is_made(v);
            let at = if is_pinned {
                owner
            } else {
                let Some(&late) = uses.get(&v) else { continue };
                let mut at = late;
                while let Some(outside) = outside[at.idx()].filter(|o| height[o.idx()] >= height[owner.idx()]) {
                    at = outside;
                }
                at
            };
            home.insert(v, at);
            for &a in w.args(v) {
                add_use(&mut uses, a, at);
            }
        }
        let mut placed: FxHashMap<Block, Vec<Val>> = FxHashMap::default();
        for (v, _) in ops {
            if let Some(&at) = home.get(&v) {
                placed.entry(at).or_default().push(v);
            }
        }
        placed
    }

    /// Whether `v` is a part of what an operation with effects gives: its value, an address mostly, or the next `mem`.
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

    /// Emits an operation that `place` gave to the block.
    pub(super) fn emit(&mut self, b: &mut Building, block: Block, v: Val) {
        let w = self.w;
        let Node::Op(op) = w.node(v) else { return };
        if self.is_made(v) {
            if let Some(&ptr) = b.values.get(&w.args(v)[0])
                && w.as_lit(w.args(v)[1]) == Some(1)
            {
                b.values.insert(v, ptr);
            }
            return;
        }
        if op == Op::Extract && w.ty(v) == w.types.mem() {
            return;
        }
        if let Some(value) = self.emit_op(b, block, op, v) {
            b.values.insert(v, value);
        }
    }

    pub(super) fn emit_op(&mut self, b: &mut Building, block: Block, op: Op, v: Val) -> Option<Value> {
        let w = self.w;
        let takes_mem = op.effect() != Effect::Total;
        let args: Vec<Value> = w.args(v)[takes_mem as usize..].iter().map(|&a| self.value(b, block, a)).collect();
        let span = w.origin(v);
        match op {
            Op::Known => {
                let mut fb = self.builder(b, block, span);
                return Some(fb.literal(nyala_ir::Prim::Bool, 0));
            }
            Op::Hlt | Op::Unfold | Op::Run => return Some(args[0]),
            Op::Store => {
                self.builder(b, block, span).store(args[0], args[1]);
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
            Op::Slot => {
                let ptr = w.types.part(w.ty(v), 1).and_then(|p| w.types.pointee(p))?;
                let ty = self.ty(ptr);
                return Some(self.builder(b, block, span).slot(ty, ""));
            }
            Op::Alloc => {
                let ptr = w.types.part(w.ty(v), 1)?;
                let ty = self.ty(ptr);
                return Some(self.builder(b, block, span).op(Op::Alloc, &args, ty));
            }
            _ => {}
        }
        let ty = self.ty(w.ty(v));
        Some(self.builder(b, block, span).op(op, &args, ty))
    }

    /// What compiled code must know of an atomic operation, and what it must be.
    fn check_atomic(&mut self, op: Op, v: Val) {
        let w = self.w;
        let (args, span, name) = (w.args(v), w.origin(v), op.name());
        let unknown = |what: &str| format!("the {what} of this `{name}` is known at run time only");
        let message = match (op, args.get(1).and_then(|&a| w.as_lit(a))) {
            (Op::Atomic, None) => Some(unknown("operation")),
            (Op::Atomic, Some(number)) => {
                let ty = w.types.pointee(w.ty(args[2])).unwrap_or(w.ty(args[2]));
                let works = eval_atomic(number, w.types.as_prim(ty), 0, 0).is_some();
                (!works).then(|| match ATOMICS.get(number as usize) {
                    Some(op) => format!("`atomic` operation {number}, `{op}`, on `{}`", w.types.display(ty)),
                    None => format!("`atomic` operation {number}: they are 0 to 12"),
                })
            }
            _ => None,
        };
        let mut messages: Vec<String> = message.into_iter().collect();
        for &order in &args[op.literal_operands()] {
            match w.as_lit(order) {
                None => messages.push(unknown("memory order")),
                Some(n) if ORDERS.get(n as usize).is_none_or(Option::is_none) => {
                    messages.push(format!("memory order {n} of this `{name}`: they are 0 to 2 and 4 to 7"));
                }
                Some(_) => {}
            }
        }
        for message in messages {
            self.limitation(span, &message, "write a literal, or let the function be specialized with `@`");
        }
    }

    /// The flat value of a graph value that is needed in `block`.
    pub(super) fn value(&mut self, b: &mut Building, block: Block, v: Val) -> Value {
        if let Some(&value) = b.values.get(&v) {
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
            Node::Undef | Node::Builtin(_) | Node::Param(..) => {
                // A parameter without a value: what depends on it was reported.
                if matches!(w.node(v), Node::Param(..)) && self.limitations.is_empty() {
                    self.limitation(
                        w.cont(b.cont).origin,
                        "a continuation is used as a value",
                        "let what takes it be specialized with `@`",
                    );
                }
                return function(self, Const::Undef);
            }
            Node::Cont(_) | Node::Op(_) => {}
        }
        let value = match w.node(v) {
            Node::Cont(k) => self.make_closure(b, block, k),
            Node::Op(op) if self.nest.owner(v).is_none() => self.emit_op(b, block, op, v),
            _ => None,
        };
        let value = value.unwrap_or_else(|| self.module.funcs[b.func.idx()].undef(ty));
        b.local.insert((block, v), value);
        value
    }

    /// A function as a value: its code and, on the heap, what is free in it.
    pub(super) fn make_closure(&mut self, b: &mut Building, block: Block, k: Cont) -> Option<Value> {
        let w = self.w;
        let span = w.cont(k).origin;
        if !self.is_function(k) {
            self.limitation(
                span,
                "a continuation is used as a value after specialization",
                "let what takes it be specialized with `@`, or return a value and test it",
            );
            return None;
        }
        let code = self.closure_code(k);
        let pair = self.ty(w.cont(k).ty);
        let env = self.env_on_heap(b, block, k);
        let mut fb = self.builder(b, block, span);
        let code = fb.func_addr(code);
        Some(fb.op(Op::Tuple, &[code, env], pair))
    }

    /// An environment of a function, on the heap; null if it needs none.
    pub(super) fn env_on_heap(&mut self, b: &mut Building, block: Block, k: Cont) -> Value {
        let values: Vec<Value> = self.nest.free(k).to_vec().iter().map(|&v| self.value(b, block, v)).collect();
        let tys = self.free_tys(k);
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
                    Some(1) => "`nyala run --engine interp` executes it",
                    _ => "do without it, or write it as a function of the program",
                };
                self.limitation(body.origin, &w.text(body.args[1]), hint);
                Terminator::Jump(self.edge(b, body.args[3]))
            }
            Node::Builtin(Builtin::PeInfo | Builtin::StaticAssert) => Terminator::Jump(self.edge(b, body.args[3])),
            Node::Builtin(Builtin::Parallel) => self.launch_parallel(b, block, body),
            Node::Builtin(Builtin::Spawn) => self.launch_thread(b, block, body),
            Node::Builtin(Builtin::Branch) => {
                let cond = self.value(b, block, body.args[1]);
                let (then, els) = (self.edge(b, body.args[2]), self.edge(b, body.args[3]));
                Terminator::Branch { cond, then, els }
            }
            _ if Some(body.callee) == b.ret => {
                Terminator::Return(body.args[1..].iter().map(|&a| self.value(b, block, a)).collect())
            }
            Node::Cont(t) if b.blocks.contains_key(&t) && t != b.cont => {
                let args = body.args[1..].iter().map(|&a| self.value(b, block, a)).collect();
                Terminator::Jump(Edge { block: b.blocks[&t], args })
            }
            _ => self.call(b, block, body),
        };
        self.module.funcs[b.func.idx()].blocks[block.idx()].term = term;
    }

    /// A target that takes no values.
    pub(super) fn edge(&mut self, b: &mut Building, target: Val) -> Edge {
        if let Some(block) = self.w.as_cont(target).and_then(|t| b.blocks.get(&t)) {
            return Edge { block: *block, args: Vec::new() };
        }
        if Some(target) != b.ret {
            self.limitation(
                self.w.cont(b.cont).origin,
                "a branch leaves through a continuation that is not this function's return",
                "let the function be specialized with `@`",
            );
        }
        let block = match b.ret_block {
            Some(block) => block,
            None => {
                let mut fb = FunctionBuilder::new(&mut self.module, b.func);
                let block = fb.block("return", &[]);
                fb.terminate(Terminator::Return(Vec::new()));
                b.ret_block = Some(block);
                block
            }
        };
        Edge { block, args: Vec::new() }
    }

    pub(super) fn call(&mut self, b: &mut Building, block: Block, body: &nyala_ir::Body) -> Terminator {
        let w = self.w;
        let callee_ty = w.ty(body.callee);
        let (_, rets) = self.signature(callee_ty);
        let ret = self.ret_ty(callee_ty).and(body.args.last().copied());
        let n = body.args.len() - ret.is_some() as usize;
        let mut args: Vec<Value> = body.args[1..n].iter().map(|&a| self.value(b, block, a)).collect();
        let mut callee = match w.node(body.callee) {
            Node::Cont(k) if self.is_function(k) => {
                for v in self.nest.free(k).to_vec() {
                    args.push(self.value(b, block, v));
                }
                Callee::Func(self.func(k))
            }
            _ if self.is_continuation(callee_ty) => {
                self.limitation(
                    body.origin,
                    "this call leaves through a continuation that is not this function's return",
                    "let the function be specialized with `@`, or return a value and test it",
                );
                return Terminator::Unreachable;
            }
            _ => {
                let pair = self.value(b, block, body.callee);
                let (code_ty, env_ty) = (self.module.types.code(), self.env_ptr());
                let mut fb = self.builder(b, block, body.origin);
                let (zero, one) = (fb.literal(nyala_ir::Prim::I64, 0), fb.literal(nyala_ir::Prim::I64, 1));
                let code = fb.op(Op::Extract, &[pair, zero], code_ty);
                let env = fb.op(Op::Extract, &[pair, one], env_ty);
                args.push(env);
                Callee::Indirect(code)
            }
        };
        let is_foreign = matches!(callee, Callee::Func(f) if self.module.func(f).is_foreign());
        if ret.is_some() && ret == b.ret && !is_foreign {
            return Terminator::TailCall { callee, args };
        }
        let target = ret.and_then(|r| w.as_cont(r)).and_then(|t| b.blocks.get(&t).copied());
        let mut fb = self.builder(b, block, body.origin);
        let result = match &mut callee {
            Callee::Func(f) => fb.call(*f, &args, &rets),
            Callee::Indirect(code) => fb.call_indirect(*code, &args, &rets),
        };
        let results = unpack(&mut fb, result, &rets);
        if ret.is_none() {
            return Terminator::Unreachable;
        }
        if ret == b.ret {
            return Terminator::Return(results);
        }
        match target {
            Some(block) => Terminator::Jump(Edge { block, args: results }),
            None => {
                self.limitation(
                    body.origin,
                    "a call returns to a continuation that is not of this function",
                    "let the function be specialized with `@`, or return a value and test it",
                );
                Terminator::Unreachable
            }
        }
    }
}

//! The residual graph after evaluation, copied from its roots into a fresh world: `hlt` and `run` vanish, consumed
//! stubs are replaced by those that stand in for them, nothing unreachable remains.

use crate::eval::Evaluator;
use nyala_base::SideTable;
use nyala_ir::{Cont, Global, Node, Op, Rule, Val, World};

/// The residual program. Notes which functions are called once only and never used as a value.
pub fn finish(ev: &mut Evaluator, roots: &[Cont]) -> World {
    let mut new = World::new();
    new.types = ev.dst.types.clone();
    let mut copy = Copy {
        ev,
        new,
        vals: SideTable::default(),
        conts: SideTable::default(),
        queue: Vec::new(),
        calls: SideTable::default(),
        values: SideTable::default(),
    };
    copy.copy_globals();
    for &root in roots {
        let old = copy.ev.root(root);
        let k = copy.cont(old);
        copy.values[old] += 1;
        copy.new.cont_mut(k).linkage = copy.ev.source_linkage(root);
    }
    copy.run();
    let (calls, values, new) = (copy.calls, copy.values, copy.new);
    ev.note_single_calls(|k| calls[k] + 2 * values[k]);
    new
}

struct Copy<'a, 'b> {
    ev: &'a mut Evaluator<'b>,
    new: World,
    vals: SideTable<Val, Option<Val>>,
    conts: SideTable<Cont, Option<Cont>>,
    queue: Vec<Cont>,
    /// Uses as a callee, uses as a value, by residual continuation.
    calls: SideTable<Cont, u32>,
    values: SideTable<Cont, u32>,
}

impl Copy<'_, '_> {
    fn copy_globals(&mut self) {
        for i in 0..self.ev.dst.n_globals() {
            let data = self.ev.dst.global(Global(i as u32));
            self.new.set_origin(data.origin);
            self.new.declare_global(&data.name, data.ty, data.mutable);
        }
    }

    fn run(&mut self) {
        let mut done: SideTable<Global, bool> = SideTable::default();
        let mut globals: Vec<Global> = Vec::new();
        loop {
            while let Some(old) = self.queue.pop() {
                let Some(body) = self.ev.dst.body(old).cloned() else { continue };
                self.count(&body.args, body.callee);
                let mut callee = self.val(body.callee, &mut globals);
                while let Some(Op::Unfold | Op::Run) = self.new.as_op(callee) {
                    callee = self.new.args(callee)[0];
                }
                let args: Vec<Val> = body.args.iter().map(|&a| self.val(a, &mut globals)).collect();
                let Some(k) = self.conts[old] else { continue };
                self.new.set_origin(body.origin);
                self.new.define(k, callee, &args);
            }
            let Some(g) = globals.pop() else { return };
            if std::mem::replace(&mut done[g], true) {
                continue;
            }
            if let Some(init) = self.ev.dst.global(g).init {
                let init = self.val(init, &mut globals);
                self.new.set_init(g, init);
            }
        }
    }

    fn count(&mut self, args: &[Val], callee: Val) {
        if let Node::Cont(c) = self.ev.dst.node(callee) {
            let c = self.ev.resolve(c);
            self.calls[c] += 1;
        }
        for &a in args {
            if let Node::Cont(c) = self.ev.dst.node(a) {
                let c = self.ev.resolve(c);
                self.values[c] += 1;
            }
        }
    }

    fn cont(&mut self, old: Cont) -> Cont {
        if let Some(k) = self.conts[old] {
            return k;
        }
        let data = self.ev.dst.cont(old);
        self.new.set_origin(data.origin);
        let k = match self.new.external(data) {
            Some(k) => k,
            None => {
                let k = self.new.reserve(data.ty);
                self.new.set_params(k, &data.name, data.param_names.clone());
                self.queue.push(old);
                k
            }
        };
        self.conts[old] = Some(k);
        k
    }

    fn val(&mut self, root: Val, globals: &mut Vec<Global>) -> Val {
        let mut stack = vec![(root, false)];
        while let Some((v, ready)) = stack.pop() {
            if self.vals[v].is_some() {
                continue;
            }
            let ty = self.ev.dst.ty(v);
            let new = match self.ev.dst.node(v) {
                Node::Lit(bits) => self.new.lit(ty, bits),
                Node::Undef => self.new.undef(ty),
                Node::Builtin(b) => self.new.builtin(b),
                Node::Global(g) => {
                    globals.push(g);
                    self.new.global_val(g)
                }
                Node::Cont(c) => {
                    let resolved = self.ev.resolve(c);
                    let k = self.cont(resolved);
                    self.new.cont_val(k)
                }
                Node::Param(k, i) => {
                    let k = self.cont(k);
                    self.new.param(k, i as usize)
                }
                Node::Op(op) => {
                    if !ready {
                        stack.push((v, true));
                        stack.extend(self.ev.dst.args(v).iter().rev().map(|&a| (a, false)));
                        continue;
                    }
                    let args: Vec<Val> = self.ev.dst.args(v).iter().map(|&a| self.vals[a].unwrap_or(Val(0))).collect();
                    for &a in self.ev.dst.args(v) {
                        if let Node::Cont(c) = self.ev.dst.node(a) {
                            let c = self.ev.resolve(c);
                            self.values[c] += 1;
                        }
                    }
                    self.new.set_origin(self.ev.dst.origin(v));
                    self.copy_op(op, ty, &args)
                }
            };
            self.vals[v] = Some(new);
        }
        self.vals[root].unwrap_or(Val(0))
    }

    fn copy_op(&mut self, op: Op, ty: nyala_ir::Ty, args: &[Val]) -> Val {
        match op {
            Op::Hlt | Op::Unfold | Op::Run => args[0],
            Op::Slot | Op::Alloc => {
                let pointee = self.new.types.part(ty, 1).and_then(|p| self.new.types.pointee(p)).unwrap_or(ty);
                let elem = if op == Op::Alloc { self.new.types.part(pointee, 0).unwrap_or(pointee) } else { pointee };
                self.new.op_ty(op, elem, args)
            }
            _ if op.rule() == Rule::Stated => self.new.op_ty(op, ty, args),
            _ => self.new.op(op, args),
        }
    }
}

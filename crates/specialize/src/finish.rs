//! The residual graph after evaluation, copied from its roots into a fresh world. `hlt` and `run` vanish, consumed
//! stubs are replaced by those that stand in for them, and nothing unreachable remains. Local variables that are only
//! written lose their stores, and the values that only these stores used. A variable is only written if its contents
//! were known wherever it was read.

use crate::eval::Evaluator;
use crate::memory;
use nyala_base::SideTable;
use nyala_ir::fold::is_same_place;
use nyala_ir::{Cont, Global, Node, Op, Rule, Ty, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The parts of the evaluated graph that the residual program contains.
#[derive(Default)]
pub struct Reachable {
    /// Uses as a callee, uses as a value, by residual continuation.
    pub calls: SideTable<Cont, u32>,
    pub values: SideTable<Cont, u32>,
    /// Addresses of local variables that are used for more than stores to them.
    read: FxHashSet<Val>,
    /// The addresses of the variables in `read`, by the `slot` operation that makes them.
    address: FxHashMap<Val, Val>,
}

/// Visits everything that is reachable from the roots, without the stores to variables that nobody reads.
pub fn find_reachable(ev: &Evaluator, roots: &[Cont]) -> Reachable {
    let dst = &ev.dst;
    let mut found = Reachable::default();
    let mut waiting: FxHashMap<Val, Vec<Val>> = FxHashMap::default();
    let mut seen: SideTable<Val, bool> = SideTable::with_room(dst.n_vals());
    let mut seen_conts: SideTable<Cont, bool> = SideTable::default();
    let mut work: Vec<Val> = Vec::new();
    let mut conts: Vec<Cont> = roots.iter().map(|&root| ev.root(root)).collect();
    conts.iter().for_each(|&k| found.values[k] += 1);
    loop {
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut seen[v], true) {
                continue;
            }
            let args = dst.args(v);
            match dst.node(v) {
                Node::Cont(c) => conts.push(ev.resolve(c)),
                Node::Global(g) => work.extend(dst.global(g).init),
                Node::Op(Op::Store) => {
                    work.push(args[0]);
                    let is_needed =
                        |base: &Val| found.read.contains(base) || dst.keeps_faults && !is_inside(dst, args[1]);
                    match written(dst, v).filter(|base| !is_needed(base)) {
                        Some(base) => waiting.entry(base).or_default().push(v),
                        None => found.use_values(ev, &args[1..], &mut work),
                    }
                }
                Node::Op(Op::Extract) if dst.is_op(args[0], Op::Slot) => {
                    if dst.as_lit(args[1]) == Some(1) {
                        found.read.insert(v);
                        found.address.insert(args[0], v);
                        for write in waiting.remove(&v).unwrap_or_default() {
                            found.use_values(ev, &dst.args(write)[1..], &mut work);
                        }
                    }
                    work.extend(args);
                }
                _ => found.use_values(ev, args, &mut work),
            }
        }
        let Some(k) = conts.pop() else { return found };
        if !std::mem::replace(&mut seen_conts[k], true)
            && let Some(body) = dst.body(k)
        {
            if let Node::Cont(c) = dst.node(body.callee) {
                found.calls[ev.resolve(c)] += 1;
            }
            work.push(body.callee);
            found.use_values(ev, body.args, &mut work);
        }
    }
}

impl Reachable {
    fn use_values(&mut self, ev: &Evaluator, vals: &[Val], work: &mut Vec<Val>) {
        for &v in vals {
            if let Node::Cont(c) = ev.dst.node(v) {
                self.values[ev.resolve(c)] += 1;
            }
        }
        work.extend(vals);
    }
}

/// The address of the local variable that the store `v` writes to. `None` if `v` is no store, or writes elsewhere.
fn written(dst: &World, v: Val) -> Option<Val> {
    let base = memory::base_of(dst, *dst.args(v).get(1).filter(|_| dst.is_op(v, Op::Store))?);
    let made = *dst.args(base).first().filter(|_| dst.is_op(base, Op::Extract))?;
    dst.is_op(made, Op::Slot).then_some(base)
}

/// Whether an address certainly lies within the variable that it was computed from.
fn is_inside(dst: &World, address: Val) -> bool {
    let mut at = address;
    loop {
        match dst.node(at) {
            Node::Op(Op::Lea) => {
                let mut base = dst.args(at)[0];
                while dst.is_op(base, Op::Bitcast) && is_same_place(dst, base) {
                    base = dst.args(base)[0];
                }
                let n = dst.types.pointee(dst.ty(base)).and_then(|ty| dst.types.n_parts(ty));
                if dst.as_lit(dst.args(at)[1]).zip(n).is_none_or(|(idx, n)| idx >= n) {
                    return false;
                }
                at = base;
            }
            Node::Op(Op::Bitcast) if is_same_place(dst, at) => at = dst.args(at)[0],
            Node::Op(Op::Extract) => return true,
            _ => return false,
        }
    }
}

/// A residual program, and where the evaluator's continuations and values are in it.
pub struct Finished {
    pub world: World,
    pub conts: SideTable<Cont, Option<Cont>>,
    pub vals: SideTable<Val, Option<Val>>,
}

/// Copies the residual program into a fresh world.
pub fn copy(ev: &mut Evaluator, roots: &[Cont], reachable: Reachable) -> Finished {
    ev.forget_code();
    let mut copy = Copy {
        new: World::like(&ev.dst),
        vals: SideTable::with_room(ev.dst.n_vals()),
        conts: SideTable::with_room(ev.dst.n_conts()),
        ev,
        reachable,
        queue: Vec::new(),
        stack: Vec::new(),
    };
    copy.copy_globals();
    for &root in roots {
        let old = copy.ev.root(root);
        let k = copy.cont(old);
        copy.new.cont_mut(k).linkage = copy.ev.source_linkage(root).into();
    }
    copy.run();
    copy.new.calls = std::mem::take(&mut copy.ev.dst.calls);
    Finished { world: copy.new, conts: copy.conts, vals: copy.vals }
}

/// Makes an operation of another world with the types of this one.
pub fn copy_op(new: &mut World, op: Op, ty: Ty, args: &[Val]) -> Val {
    match op {
        Op::Slot | Op::Alloc => {
            let pointee = new.types.part(ty, 1).and_then(|p| new.types.pointee(p)).unwrap_or(ty);
            let elem = if op == Op::Alloc { new.types.part(pointee, 0).unwrap_or(pointee) } else { pointee };
            new.op_ty(op, elem, args)
        }
        _ if op.rule() == Rule::Stated => new.op_ty(op, ty, args),
        _ => new.op(op, args),
    }
}

struct Copy<'a, 'b> {
    ev: &'a mut Evaluator<'b>,
    new: World,
    reachable: Reachable,
    vals: SideTable<Val, Option<Val>>,
    conts: SideTable<Cont, Option<Cont>>,
    queue: Vec<Cont>,
    /// The work stack of `val`, kept for its allocation; empty between calls of `val`.
    stack: Vec<(Val, bool)>,
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
                let Some(body) = self.ev.dst.body(old) else { continue };
                let (old_callee, origin) = (body.callee, body.origin);
                let old_args: SmallVec<[Val; 16]> = body.args.into();
                let mut callee = self.val(old_callee, &mut globals);
                while let Some(Op::Unfold | Op::Run) = self.new.as_op(callee) {
                    callee = self.new.args(callee)[0];
                }
                let args: SmallVec<[Val; 16]> = old_args.iter().map(|&a| self.val(a, &mut globals)).collect();
                let Some(k) = self.conts[old] else { continue };
                self.new.set_origin(origin);
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
                self.new.set_params(k, data.names);
                self.queue.push(old);
                k
            }
        };
        self.conts[old] = Some(k);
        k
    }

    fn val(&mut self, root: Val, globals: &mut Vec<Global>) -> Val {
        if let Some(new) = self.vals[root] {
            return new;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.push((root, false));
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
                    if let Some(mem) = self.without(v) {
                        match self.vals[mem] {
                            Some(mem) => self.vals[v] = Some(mem),
                            None => stack.extend([(v, true), (mem, false)]),
                        }
                        continue;
                    }
                    if !ready {
                        stack.push((v, true));
                        stack.extend(self.ev.dst.args(v).iter().rev().map(|&a| (a, false)));
                        continue;
                    }
                    let args = self.ev.dst.args(v).iter().map(|&a| self.vals[a].unwrap_or(Val(0)));
                    let args: SmallVec<[Val; 16]> = args.collect();
                    self.new.set_origin(self.ev.dst.origin(v));
                    let old = self.new.set_fast(self.ev.dst.is_fast(v));
                    let copy = match op {
                        Op::Hlt | Op::Unfold | Op::Run => args[0],
                        _ => copy_op(&mut self.new, op, ty, &args),
                    };
                    self.new.set_fast(old);
                    if self.ev.dst.is_fast(v) {
                        self.new.set_streaming(copy);
                    }
                    copy
                }
            };
            self.vals[v] = Some(new);
        }
        self.stack = stack;
        self.vals[root].unwrap_or(Val(0))
    }

    /// For a store to a variable that nobody reads, or the operation that makes such a variable: the memory that it
    /// takes as operand, which replaces its result.
    fn without(&self, v: Val) -> Option<Val> {
        let dst = &self.ev.dst;
        let args = dst.args(v);
        if written(dst, v).is_some_and(|base| !self.reachable.read.contains(&base)) {
            return Some(args[0]);
        }
        let is_slot = dst.is_op(v, Op::Extract) && dst.is_op(args[0], Op::Slot) && dst.as_lit(args[1]) == Some(0);
        let ptr = is_slot.then(|| self.reachable.address.get(&args[0])).flatten();
        (is_slot && ptr.is_none()).then(|| dst.args(args[0])[0])
    }
}

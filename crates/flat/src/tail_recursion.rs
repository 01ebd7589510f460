//! Calls in tail position are jumps. C promises nothing about them, and SPIR-V has no recursion, so recursion by such calls
//! becomes loops before either is written; what is left calls functions that cannot lead back this way, and is an ordinary
//! call. Separate from scheduling, since machine code jumps.
//!
//! A function that ends by a call of itself becomes a loop. Functions that end by calls of each other become one function
//! with all their blocks, whose first parameter says which of them is meant; it is changed by a loop around them. Each
//! function still exists, as a call of that one. A call of a code address may lead to any function of its type whose
//! address is taken, so it compares the address with those of the group.
//!
//! ```text
//! even(n): … tail odd(n - 1)        both(which, n, m):
//! odd(m): … tail even(m - 1)          for (;;) if (which == 0) { … m = n - 1; which = 1; } else { … n = m - 1; which = 0; }
//! ```
//!
//! A call that passes on the address of one of the caller's variables keeps the caller's frame: it is an ordinary call.

use crate::analysis::Cfg;
use crate::data::*;
use crate::escape::Escapes;
use crate::refcount::Frames;
use crate::tail_calls::blocks_that_keep_frames;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Id, graph};
use nyala_ir::{Op, Prim, Ty};
use rustc_hash::FxHashMap;

/// Groups with more blocks than this are not written as one function.
const MAX_BLOCKS: usize = 4000;

/// Makes loops of recursion by calls in tail position.
///
/// # Errors
/// A `limitation`: functions that call each other are too large for one function.
pub fn make_loops(module: &mut Module) -> Result<(), Box<Diagnostic>> {
    let jumps = jumps(module);
    if jumps.iter().all(|blocks| !blocks.contains(&true)) {
        return Ok(());
    }
    let taken = addresses_taken(module);
    let succs: Vec<Vec<usize>> =
        (0..module.funcs.len()).map(|i| targets(module, Func::from_idx(i), &jumps[i], &taken)).collect();
    let all: Vec<usize> = (0..module.funcs.len()).collect();
    let groups = graph::Components::default().find(&all, |f, i| succs[f].get(i).copied(), |_| true);
    for mut group in groups {
        group.sort_unstable();
        let only = group[0];
        let is_indirect = |b: &BlockData| matches!(b.term, Terminator::TailCall { callee: Callee::Indirect(_), .. });
        if group.len() == 1 && !succs[only].contains(&only) {
            continue;
        }
        if group.len() == 1 && !module.funcs[only].blocks.iter().any(is_indirect) {
            loop_of(&mut module.funcs[only], Func::from_idx(only), &jumps[only]);
        } else {
            merge(module, &group, &jumps, &taken)?;
        }
    }
    Ok(())
}

/// For each block of each function whether it ends by a call for which the frame need not stay.
fn jumps(module: &Module) -> Vec<Vec<bool>> {
    let (mut escapes, mut frames) = (Escapes::new(module), Frames::new(module));
    let of = |(i, function): (usize, &Function)| {
        if function.blocks.is_empty() {
            return Vec::new();
        }
        let is_call = |b: &BlockData| matches!(b.term, Terminator::TailCall { .. });
        if !function.blocks.iter().any(is_call) {
            return vec![false; function.blocks.len()];
        }
        let cfg = Cfg::new(function);
        let keeps = blocks_that_keep_frames(module, &mut escapes, &mut frames, Func::from_idx(i), &cfg);
        function.blocks.iter().zip(keeps).map(|(b, keeps)| is_call(b) && !keeps).collect()
    };
    module.funcs.iter().enumerate().map(of).collect()
}

/// Whether each function may be called by its address.
fn addresses_taken(module: &Module) -> Vec<bool> {
    let mut taken = vec![false; module.funcs.len()];
    for value in module.funcs.iter().flat_map(|f| &f.values) {
        if let Def::Const(Const::Func(f)) = value.def {
            taken[f.idx()] = true;
        }
    }
    let mut inits: Vec<&Init> = module.globals.iter().map(|g| &g.init).collect();
    while let Some(init) = inits.pop() {
        match init {
            Init::Parts(parts) => inits.extend(parts),
            Init::Func(f) => taken[f.idx()] = true,
            Init::Zero | Init::Undef | Init::Bits(_) | Init::Bytes(_) | Init::Global(..) => {}
        }
    }
    taken
}

/// Whether a call of a code address with these arguments may lead to a function.
fn fits(module: &Module, caller: &Function, args: &[Value], taken: &[bool], callee: usize) -> bool {
    let function = &module.funcs[callee];
    taken[callee]
        && !function.is_foreign()
        && function.rets == caller.rets
        && function.params.iter().copied().eq(args.iter().map(|&a| caller.ty(a)))
}

/// The functions to which a function may jump.
fn targets(module: &Module, func: Func, jumps: &[bool], taken: &[bool]) -> Vec<usize> {
    let function = module.func(func);
    let mut found = Vec::new();
    for block in function.blocks.iter().zip(jumps).filter(|b| *b.1).map(|b| b.0) {
        match &block.term {
            Terminator::TailCall { callee: Callee::Func(f), .. } => found.push(f.idx()),
            Terminator::TailCall { callee: Callee::Indirect(_), args, .. } => {
                found.extend((0..module.funcs.len()).filter(|&f| fits(module, function, args, taken, f)));
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Turns calls of the function itself into jumps to its beginning.
fn loop_of(function: &mut Function, this: Func, jumps: &[bool]) {
    let old = function.blocks[0].params.clone();
    let mut new = Vec::new();
    for p in old {
        let (ty, name) = (function.ty(p), function.name(p).to_string());
        new.push(function.new_value(ty, &name));
    }
    let body = Block::from_idx(function.blocks.len());
    let term = Terminator::Jump(Edge { block: body, args: new.clone() });
    let name = function.blocks[0].name.clone();
    let entry = BlockData { name, params: new, insts: Vec::new(), term };
    let moved = std::mem::replace(&mut function.blocks[0], entry);
    function.blocks.push(moved);
    for (b, jumps) in jumps.iter().enumerate().filter(|(_, jumps)| **jumps) {
        let at = if b == 0 { body.idx() } else { b };
        let term = &mut function.blocks[at].term;
        if let (Terminator::TailCall { callee: Callee::Func(f), args, .. }, true) = (&mut *term, *jumps)
            && *f == this
        {
            *term = Terminator::Jump(Edge { block: body, args: std::mem::take(args) });
        }
    }
}

/// The function that a group becomes, under construction.
struct Merged<'m> {
    module: &'m mut Module,
    function: Function,
    hub: Block,
    /// The parameters of the hub: the number of the member, then all parameters of all members.
    params: Vec<Value>,
    /// For each member, where its parameters begin.
    first: Vec<usize>,
    members: &'m [usize],
}

/// Makes one function of several.
fn merge(module: &mut Module, members: &[usize], jumps: &[Vec<bool>], taken: &[bool]) -> Result<(), Box<Diagnostic>> {
    let olds: Vec<Function> = members.iter().map(|&m| module.funcs[m].clone()).collect();
    if olds.iter().map(|f| f.blocks.len()).sum::<usize>() > MAX_BLOCKS {
        let message =
            format!("`{}` and others end by calls of each other, and are too large for one function", olds[0].name);
        let hint = "do without it, or make machine code: `nyala build`; for kernels, `--device host`";
        return Err(Box::new(limitation::error(olds[0].span, message, hint)));
    }
    let i32 = module.types.i32();
    let mut tys = vec![i32];
    let mut first = Vec::new();
    for old in &olds {
        first.push(tys.len());
        tys.extend(&old.params);
    }
    let names: Vec<&str> = olds.iter().take(3).map(|f| f.name.as_str()).collect();
    let all = module.declare(&names.join("_"), Linkage::Internal, &tys, &olds[0].rets);
    let mut function = module.funcs[all.idx()].clone();
    function.span = olds[0].span;
    let name_of = |i: usize| {
        let owner = first.iter().rposition(|&f| f <= i)?;
        let old = &olds[owner];
        Some(old.name(old.blocks[0].params[i - first[owner]]).to_string())
    };
    let new_params = |function: &mut Function| -> Vec<Value> {
        let name = |i: usize| if i == 0 { "which".to_string() } else { name_of(i).unwrap_or_default() };
        tys.iter().enumerate().map(|(i, &ty)| function.new_value(ty, &name(i))).collect()
    };
    let (outer, params) = (new_params(&mut function), new_params(&mut function));
    let hub = Block::from_idx(1);
    let term = Terminator::Jump(Edge { block: hub, args: outer.clone() });
    function.blocks.push(BlockData { name: "entry".into(), params: outer, insts: Vec::new(), term });
    let mut merged = Merged { module, function, hub, params, first, members };
    // The first of these blocks is the hub; the last member needs no test.
    for k in 0..members.len().max(2) - 1 {
        let params = if k == 0 { merged.params.clone() } else { Vec::new() };
        merged.function.blocks.push(BlockData {
            name: "which".into(),
            params,
            insts: Vec::new(),
            term: Terminator::Unreachable,
        });
    }
    let mut starts = Vec::new();
    for (k, old) in olds.iter().enumerate() {
        starts.push(merged.add(k, old, &jumps[members[k]], taken));
    }
    merged.dispatch(&starts);
    let Merged { function, first, .. } = merged;
    module.funcs[all.idx()] = function;
    for (k, &m) in members.iter().enumerate() {
        enter(module, m, all, k, &tys, first[k]);
    }
    Ok(())
}

/// Makes a function a call of the one that it became a part of.
fn enter(module: &mut Module, member: usize, all: Func, k: usize, tys: &[Ty], first: usize) {
    let old = &module.funcs[member];
    let mut new = Function::new(&old.name, old.linkage.clone(), &old.params, &old.rets);
    new.span = old.span;
    let names: Vec<String> = old.blocks[0].params.iter().map(|&p| old.name(p).to_string()).collect();
    let params: Vec<Value> = old.params.iter().zip(&names).map(|(&ty, name)| new.new_value(ty, name)).collect();
    let mut args: Vec<Value> = tys.iter().map(|&ty| new.undef(ty)).collect();
    args[0] = new.constant(Const::Bits(k as u64), tys[0]);
    args[first..first + params.len()].copy_from_slice(&params);
    let term = Terminator::TailCall { callee: Callee::Func(all), args, span: nyala_base::Span::NONE };
    new.blocks.push(BlockData { name: "entry".into(), params, insts: Vec::new(), term });
    module.funcs[member] = new;
}

impl Merged<'_> {
    /// Adds the blocks of a member; its first block.
    fn add(&mut self, k: usize, old: &Function, jumps: &[bool], taken: &[bool]) -> Block {
        let base = self.function.blocks.len();
        let mut values: FxHashMap<Value, Value> = FxHashMap::default();
        for (i, &p) in old.blocks[0].params.iter().enumerate() {
            values.insert(p, self.params[self.first[k] + i]);
        }
        for (i, data) in old.values.iter().enumerate() {
            let v = Value::from_idx(i);
            let new = &mut self.function;
            values.entry(v).or_insert_with(|| match data.def {
                Def::Const(c) => new.constant(c, data.ty),
                Def::Local => new.new_value(data.ty, old.name(v)),
            });
        }
        let mut ends = Vec::new();
        for (b, block) in old.blocks.iter().enumerate() {
            let mut block = block.clone();
            if b == 0 {
                block.params.clear();
            }
            block.params.iter_mut().for_each(|p| *p = values[p]);
            for inst in &mut block.insts {
                inst.args.iter_mut().for_each(|a| *a = values[a]);
                inst.result = inst.result.map(|r| values[&r]);
            }
            let original = block.term.clone();
            block.term.map_uses(|v| values[&v]);
            block.term.edges_mut().for_each(|e| e.block = Block::from_idx(e.block.idx() + base));
            self.function.blocks.push(block);
            if let (true, Terminator::TailCall { args, .. }) = (jumps[b], original) {
                ends.push((base + b, args));
            }
        }
        for (b, old_args) in ends {
            self.end(b, old, &old_args, taken);
        }
        Block::from_idx(base)
    }

    /// The jump to a member.
    fn jump(&mut self, k: usize, args: &[Value]) -> Edge {
        let tys: Vec<Ty> = self.params.iter().map(|&p| self.function.ty(p)).collect();
        let mut all: Vec<Value> = tys.iter().map(|&ty| self.function.undef(ty)).collect();
        all[0] = self.function.constant(Const::Bits(k as u64), tys[0]);
        all[self.first[k]..self.first[k] + args.len()].copy_from_slice(args);
        Edge { block: self.hub, args: all }
    }

    /// Turns the call that ends a block into jumps to members.
    fn end(&mut self, b: usize, old: &Function, old_args: &[Value], taken: &[bool]) {
        let Terminator::TailCall { callee, args, .. } = self.function.blocks[b].term.clone() else { return };
        let code = match callee {
            Callee::Func(f) => {
                if let Some(k) = self.members.iter().position(|&m| m == f.idx()) {
                    let edge = self.jump(k, &args);
                    self.function.blocks[b].term = Terminator::Jump(edge);
                }
                return;
            }
            Callee::Indirect(code) => code,
        };
        let (code_ty, bool_ty) = (self.function.ty(code), self.module.types.prim(Prim::Bool));
        let mut at = b;
        for (k, &m) in self.members.iter().enumerate() {
            if !fits(self.module, old, old_args, taken, m) {
                continue;
            }
            let address = self.function.constant(Const::Func(Func::from_idx(m)), code_ty);
            let cond = self.function.new_value(bool_ty, "");
            let span = old.span;
            let test = Inst {
                op: InstOp::Op(Op::Eq),
                args: Args::from_slice(&[code, address]),
                result: Some(cond),
                span,
                fast: false,
            };
            let then = self.jump(k, &args);
            let next = Block::from_idx(self.function.blocks.len());
            let last = Terminator::TailCall { callee, args: args.clone(), span };
            self.function.blocks.push(BlockData {
                name: "other".into(),
                params: Vec::new(),
                insts: Vec::new(),
                term: last,
            });
            let block = &mut self.function.blocks[at];
            block.insts.push(test);
            block.term = Terminator::Branch { cond, then, els: Edge { block: next, args: Vec::new() } };
            at = next.idx();
        }
    }

    /// Branches from the hub to the members.
    fn dispatch(&mut self, starts: &[Block]) {
        let (hub, n) = (self.hub.idx(), starts.len());
        let edge = |block: Block| Edge { block, args: Vec::new() };
        if n == 1 {
            self.function.blocks[hub].term = Terminator::Jump(edge(starts[0]));
            return;
        }
        let bool_ty = self.module.types.prim(Prim::Bool);
        let which = self.params[0];
        let i32 = self.function.ty(which);
        for k in 0..n - 1 {
            let number = self.function.constant(Const::Bits(k as u64), i32);
            let cond = self.function.new_value(bool_ty, "");
            let args = Args::from_slice(&[which, number]);
            let span = self.function.span;
            let inst = Inst { op: InstOp::Op(Op::Eq), args, result: Some(cond), span, fast: false };
            let els = if k + 2 == n { starts[n - 1] } else { Block::from_idx(hub + k + 1) };
            let block = &mut self.function.blocks[hub + k];
            block.insts.push(inst);
            block.term = Terminator::Branch { cond, then: edge(starts[k]), els: edge(els) };
        }
    }
}

//! Takes parts of large functions out, as functions of their own that LLVM never joins again: pieces. After an edit only the piece is
//! compiled that has changed (`units.rs` of the LLVM back end).
//!
//! A call that partial evaluation unfolds, as it does with a function's only call, makes its caller larger. A program whose `main` calls
//! hundreds of functions is one function then. So the code of such a call becomes a function again:
//!
//! ```text
//! entry(n, a):                         entry(n, a):
//!   …                                    …
//!   jump head(0i32, 0f32)                sum: f32 = call work(n, a)
//! head(i: i32, sum: f32):                …
//!   …                                piece work(i32, &[f32]) -> (f32)
//! out():
//!   …
//! ```
//!
//! It is done at the end, when the code knows all that it can know, and only where a call costs nothing beside it:
//!
//! - the function around it is large; what it is part of otherwise does not matter;
//! - it belongs to a call of a function without a filter: functions that the program annotates, as generators, stay where they are
//!   unfolded;
//! - it has a loop, and lies in none: the piece runs once when the function does;
//! - it is entered and left at one place, with few numbers and addresses, and with one address at most where the function around it
//!   allocates memory that this may be: LLVM would no longer know that two of them differ;
//! - it shares no small variable with other code that LLVM may keep in registers.
//!
//! The code of an unfolded call stays together, unless it is large itself. What becomes of a loop does not depend on the code
//! beside it, apart from the size of the function.
use crate::analysis::Cfg;
use crate::data::*;
use crate::simplify::simplify_function;
use nyala_base::{CallId, Calls, Id, Span, graph};
use nyala_ir::{Op, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limits on what goes into a piece and comes out of it.
const MAX_IN: usize = 12;
const MAX_OUT: usize = 4;
/// Variables of more bytes stay in memory anyway.
const MAX_IN_REGISTERS: u64 = 256;
/// How often an instruction may be looked at.
const MAX_LOOKS: usize = 64;

/// Takes pieces out of functions with more than `max` instructions and blocks. `calls` are the calls that were unfolded. Returns for
/// each piece, the last functions of the module, the function that it comes from.
pub fn take_pieces(module: &mut Module, calls: &Calls, max: usize) -> Vec<Func> {
    let mut from = Vec::new();
    if module.target().is_gpu() {
        return from;
    }
    for i in 0..module.funcs.len() {
        let function = &module.funcs[i];
        let is_kernel = matches!(function.linkage, Linkage::Kernel(..));
        if function.is_foreign() || is_kernel || function.blocks.iter().map(size_of).sum::<usize>() <= max {
            continue;
        }
        let mut function = function.clone();
        part_loops(&mut function);
        let mut pieces = Finder::new(&function, calls, max).find();
        settle(&module.types, &function, &mut pieces);
        if pieces.is_empty() {
            continue;
        }
        let first = module.funcs.len();
        let mut taken = Vec::with_capacity(pieces.len());
        // The last one first: the block where a piece ends may be that where the next one begins.
        for (k, piece) in pieces.iter().enumerate().rev() {
            taken.push(take(&mut module.types, &mut function, piece, Func::from_idx(first + k)));
            from.push(Func::from_idx(i));
        }
        module.funcs.extend(taken.into_iter().rev());
        // Their own variables are left behind.
        simplify_function(&module.types, &mut function);
        module.funcs[i] = function;
    }
    from
}

fn size_of(block: &BlockData) -> usize {
    block.insts.len() + 1
}

fn succs_of(function: &Function) -> Vec<Vec<usize>> {
    function.blocks.iter().map(|b| b.term.edges().map(|edge| edge.block.idx()).collect()).collect()
}

/// For each block its group of blocks that reach each other, if it is in a loop.
fn groups(succs: &[Vec<usize>], cfg: &Cfg) -> Vec<Option<usize>> {
    let nodes: Vec<usize> = cfg.rpo.iter().map(|b| b.idx()).collect();
    let found = graph::Components::default().find(&nodes, |b, i| succs[b].get(i).copied(), |_| true);
    let mut group = vec![None; succs.len()];
    for (i, members) in found.iter().enumerate() {
        if members.len() > 1 || succs[members[0]].contains(&members[0]) {
            members.iter().for_each(|&b| group[b] = Some(i));
        }
    }
    group
}

/// Puts a block before and behind each loop that is entered from a branch, or whose exit has other ways to it or is a loop itself: there
/// the code of the loop begins and ends.
fn part_loops(function: &mut Function) {
    let (succs, cfg) = (succs_of(function), Cfg::new(function));
    let group = groups(&succs, &cfg);
    let mut behind: FxHashMap<(usize, usize), Block> = FxHashMap::default();
    for &b in &cfg.rpo {
        let own = group[b.idx()];
        for nth in 0..succs[b.idx()].len() {
            let to = succs[b.idx()][nth];
            let is_own = |p: &Block| group[p.idx()] == own;
            if group[to] == own || own.is_none() && succs[b.idx()].len() < 2 {
                continue;
            }
            let Some(own) = own else {
                // What the loop begins with stays known.
                let new = Block::from_idx(function.blocks.len());
                let Some(edge) = function.blocks[b.idx()].term.edges_mut().nth(nth) else { continue };
                let term = Terminator::Jump(std::mem::replace(edge, Edge { block: new, args: Vec::new() }));
                let (params, insts) = Default::default();
                function.blocks.push(BlockData { name: "before".into(), params, insts, term });
                continue;
            };
            if group[to].is_none() && cfg.preds[to].iter().all(is_own) {
                continue;
            }
            let new = *behind.entry((own, to)).or_insert_with(|| {
                let tys: Vec<_> = function.blocks[to].params.iter().map(|&p| function.ty(p)).collect();
                let params: Vec<Value> = tys.into_iter().map(|ty| function.new_value(ty, "")).collect();
                let term = Terminator::Jump(Edge { block: Block::from_idx(to), args: params.clone() });
                function.blocks.push(BlockData { name: "behind".into(), params, insts: Vec::new(), term });
                Block::from_idx(function.blocks.len() - 1)
            });
            if let Some(edge) = function.blocks[b.idx()].term.edges_mut().nth(nth) {
                edge.block = new;
            }
        }
    }
}

/// Code that becomes a function: from an instruction of a block up to one of another, which it dominates.
struct Piece {
    name: String,
    span: Span,
    /// Where its call is in the source.
    at: Span,
    first: usize,
    from: usize,
    last: usize,
    until: usize,
    /// The blocks between the two.
    inner: Vec<usize>,
    /// Values of other code that it uses, and its own that other code uses.
    ins: Vec<Value>,
    outs: Vec<Value>,
    /// Variables that it has alone, and those that stay in the function around it.
    own_slots: Vec<Inst>,
    other_slots: FxHashSet<Value>,
}

/// The code between two blocks outside of loops that follow each other on each way.
struct Part {
    from: usize,
    to: usize,
    /// `None` if it is entered elsewhere.
    inner: Option<Vec<usize>>,
    size: usize,
    has_loop: bool,
    /// The innermost call that all of its code belongs to.
    call: CallId,
}

struct Finder<'a> {
    function: &'a Function,
    calls: &'a Calls,
    max: usize,
    cfg: Cfg,
    succs: Vec<Vec<usize>>,
    in_loop: Vec<bool>,
    /// Dominators, as intervals and as a tree.
    intervals: Vec<(u32, u32)>,
    children: Vec<Vec<Block>>,
    /// The next block that control comes to in any case where it returns at all.
    next: Vec<usize>,
    depths: FxHashMap<CallId, usize>,
    looks: usize,
    max_looks: usize,
}

impl<'a> Finder<'a> {
    fn new(function: &'a Function, calls: &'a Calls, max: usize) -> Finder<'a> {
        let (succs, cfg) = (succs_of(function), Cfg::new(function));
        let n = function.blocks.len();
        // Code that never returns, as a panic, leads nowhere.
        let returns = |b: usize| matches!(function.blocks[b].term, Terminator::Return(_) | Terminator::TailCall { .. });
        let ends: Vec<usize> = (0..n).filter(|&b| cfg.is_reachable(Block::from_idx(b)) && returns(b)).collect();
        let can_return = graph::reachable(&graph::reversed(&succs), &ends);
        let mut ways: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
        for &b in &cfg.rpo {
            let b = b.idx();
            if can_return[b] {
                ways[b] = succs[b].iter().copied().filter(|&s| can_return[s]).collect();
                if returns(b) {
                    ways[b].push(n);
                }
            }
        }
        let next = graph::post_dominators(&ways, n);
        let in_loop = groups(&succs, &cfg).iter().map(Option::is_some).collect();
        let (intervals, children) = (cfg.dominator_intervals(), cfg.dominator_children());
        let (depths, looks) = Default::default();
        let max_looks = MAX_LOOKS * function.blocks.iter().map(size_of).sum::<usize>();
        Finder { function, calls, max, cfg, succs, in_loop, intervals, children, next, depths, looks, max_looks }
    }

    fn dominates(&self, a: usize, b: usize) -> bool {
        let (outer, inner) = (self.intervals[a], self.intervals[b]);
        outer.0 <= inner.0 && inner.1 <= outer.1
    }

    fn find(mut self) -> Vec<Piece> {
        let n = self.function.blocks.len();
        let mut pieces = Vec::new();
        let mut work = vec![(0, n)];
        while let Some((start, stop)) = work.pop() {
            let mut parts = Vec::new();
            let (mut at, mut before) = (start, None);
            // The blocks outside of loops through which control comes in any case.
            while at < n && at != stop && self.dominates(start, at) {
                if !self.in_loop[at] {
                    parts.extend(before.map(|before| self.part(before, at)));
                    before = Some(at);
                }
                at = self.next[at];
            }
            if let Some(last) = before {
                work.extend(self.arms(last, stop));
            }
            self.divide(&parts, &mut pieces, &mut work);
            if self.looks > self.max_looks {
                return Vec::new();
            }
        }
        pieces.sort_by_key(|p| self.cfg.position[p.first]);
        pieces
    }

    /// The ways behind a block on which pieces can be found, up to where they meet.
    fn arms(&self, block: usize, stop: usize) -> Vec<(usize, usize)> {
        let is_arm = |&s: &usize| s != stop && !self.in_loop[s];
        self.children[block].iter().map(|b| b.idx()).filter(is_arm).map(|s| (s, stop)).collect()
    }

    fn part(&mut self, from: usize, to: usize) -> Part {
        let mut part = Part { from, to, inner: None, size: 0, has_loop: false, call: Span::NO_CALL };
        if !self.dominates(from, to) {
            return part;
        }
        let mut inner: Vec<usize> = Vec::new();
        let mut seen: FxHashSet<usize> = FxHashSet::from_iter([from, to]);
        let mut work: Vec<usize> = self.succs[from].clone();
        while let Some(b) = work.pop() {
            if seen.insert(b) {
                self.looks += size_of(&self.function.blocks[b]) + self.cfg.preds[b].len();
                // Code behind `to` may lead to code before it that does not return.
                let is_entered = |p: &Block| self.dominates(to, p.idx());
                if !self.dominates(from, b) || self.dominates(to, b) || self.cfg.preds[b].iter().any(is_entered) {
                    return part;
                }
                part.has_loop |= self.in_loop[b];
                part.size += size_of(&self.function.blocks[b]);
                inner.push(b);
                work.extend(&self.succs[b]);
            }
        }
        inner.sort_by_key(|&b| self.cfg.position[b]);
        part.call = self.common_call(&inner);
        part.inner = Some(inner);
        part
    }

    /// The innermost call around all code of blocks that does something; around all if none does.
    fn common_call(&mut self, blocks: &[usize]) -> CallId {
        let function = self.function;
        let insts = || blocks.iter().flat_map(|&b| &function.blocks[b].insts).filter(|inst| !inst.span.is_none());
        let acts = |inst: &Inst| match inst.op {
            InstOp::Op(op) => op.effect() != nyala_ir::Effect::Total,
            _ => true,
        };
        let any_acts = insts().any(acts);
        let mut common: Option<CallId> = None;
        // Calls that lie in the common one.
        let mut inside: FxHashSet<CallId> = FxHashSet::default();
        for inst in insts().filter(|inst| !any_acts || acts(inst)) {
            let mut call = inst.span.call;
            let Some(mut all) = common else {
                common = Some(call);
                inside.insert(call);
                continue;
            };
            let mut passed = Vec::new();
            while !inside.contains(&call) {
                let (depth, of_all) = (self.depth(call), self.depth(all));
                if depth <= of_all {
                    all = self.around(all);
                    inside.insert(all);
                }
                if depth >= of_all {
                    passed.push(call);
                    call = self.around(call);
                }
            }
            inside.extend(passed);
            common = Some(all);
        }
        common.unwrap_or(Span::NO_CALL)
    }

    fn around(&self, call: CallId) -> CallId {
        self.calls.get(call).map_or(Span::NO_CALL, |(place, _)| place.call)
    }

    /// Whether a call, or one around it, is of a function without a filter.
    fn is_in_plain(&mut self, mut call: CallId) -> bool {
        while let Some((place, number)) = self.calls.get(call) {
            if self.calls.callee(number).is_some_and(|callee| callee.is_plain) {
                return true;
            }
            self.looks += 1;
            call = place.call;
        }
        false
    }

    /// How many calls a call is in, with itself.
    fn depth(&mut self, call: CallId) -> usize {
        let (mut open, mut at) = (Vec::new(), call);
        let mut depth = loop {
            match self.depths.get(&at) {
                Some(&known) => break known,
                None if self.calls.get(at).is_none() => break 0,
                None => open.push(at),
            }
            at = self.around(at);
        };
        while let Some(call) = open.pop() {
            depth += 1;
            self.depths.insert(call, depth);
        }
        depth
    }

    /// The call around a call, or itself, that is in this many.
    fn at_depth(&mut self, mut call: CallId, depth: usize) -> Option<CallId> {
        let mut own = self.depth(call);
        self.looks += own.saturating_sub(depth);
        while own > depth {
            call = self.around(call);
            own -= 1;
        }
        (own == depth && depth > 0).then_some(call)
    }

    /// Makes pieces of parts that follow each other: of those of one call, if they are not too large.
    fn divide(&mut self, parts: &[Part], pieces: &mut Vec<Piece>, arms: &mut Vec<(usize, usize)>) {
        let mut work = vec![(0..parts.len(), 1)];
        while let Some((range, depth)) = work.pop() {
            let mut at = range.start;
            self.looks += range.len();
            while at < range.end && self.looks <= self.max_looks {
                let call = self.at_depth(parts[at].call, depth);
                let mut end = at + 1;
                while call.is_some() && end < range.end && self.at_depth(parts[end].call, depth) == call {
                    end += 1;
                }
                let run = &parts[at..end];
                let size: usize = run.iter().map(|part| part.size).sum();
                let is_closed = run.iter().all(|part| part.inner.is_some());
                let has_loop = run.iter().any(|part| part.has_loop);
                let max = if run.len() > 1 { self.max / 2 } else { self.max };
                if has_loop && is_closed && size <= max {
                    pieces.extend(self.piece(run, call));
                } else if has_loop && run.len() > 1 {
                    work.push((at..end, depth + 1));
                } else if has_loop && let [part] = run {
                    arms.extend(self.arms(part.from, part.to));
                }
                at = end;
            }
        }
    }

    /// The code of parts, with that of the same call before and behind them.
    fn piece(&mut self, run: &[Part], call: Option<CallId>) -> Option<Piece> {
        let ([first, ..], [.., last]) = (run, run) else { return None };
        let function = self.function;
        let (a, b) = (&function.blocks[first.from], &function.blocks[last.to]);
        let depth = call.map_or(0, |call| self.depth(call));
        let mut is_own = |inst: &&Inst| call.is_some() && self.at_depth(inst.span.call, depth) == call;
        let before = a.insts.iter().rev().take_while(&mut is_own).count();
        let until = b.insts.iter().take_while(&mut is_own).count();
        let mut inner = Vec::new();
        for (i, part) in run.iter().enumerate() {
            if i > 0 {
                inner.push(part.from);
            }
            inner.extend(part.inner.iter().flatten());
        }
        let call = call.or_else(|| Some(first.call).filter(|_| run.len() == 1));
        // Nothing is known of calls in a text of flat code.
        if !self.calls.is_empty() && !self.is_in_plain(call?) {
            return None;
        }
        let call = call.and_then(|call| self.calls.get(call));
        let callee = call.and_then(|(_, number)| self.calls.callee(number));
        Some(Piece {
            name: callee.map_or(self.function.name.clone(), |callee| callee.name.to_string()),
            span: callee.map_or(self.function.span, |callee| callee.place),
            at: call.map_or(Span::NONE, |(place, _)| place),
            first: first.from,
            from: a.insts.len() - before,
            last: last.to,
            until,
            inner,
            ins: Vec::new(),
            outs: Vec::new(),
            own_slots: Vec::new(),
            other_slots: FxHashSet::default(),
        })
    }
}

/// Where code is: the piece of each block, and of its beginning and its end where these differ.
struct Owners {
    whole: Vec<Option<usize>>,
    start: FxHashMap<usize, (usize, usize)>,
    end: FxHashMap<usize, (usize, usize)>,
}

impl Owners {
    fn new(function: &Function, pieces: &[Piece]) -> Owners {
        let mut owners =
            Owners { whole: vec![None; function.blocks.len()], start: FxHashMap::default(), end: FxHashMap::default() };
        for (i, piece) in pieces.iter().enumerate() {
            piece.inner.iter().for_each(|&b| owners.whole[b] = Some(i));
            owners.end.insert(piece.first, (piece.from, i));
            owners.start.insert(piece.last, (piece.until, i));
        }
        owners
    }

    fn of_params(&self, block: usize) -> Option<usize> {
        self.start.get(&block).map(|s| s.1).or(self.whole[block])
    }

    fn of_inst(&self, block: usize, at: usize) -> Option<usize> {
        let (start, end) = (self.start.get(&block), self.end.get(&block));
        match (start, end) {
            (Some(&(until, piece)), _) if at < until => Some(piece),
            (_, Some(&(from, piece))) if at >= from => Some(piece),
            _ => self.whole[block],
        }
    }

    fn of_term(&self, block: usize) -> Option<usize> {
        self.end.get(&block).map(|e| e.1).or(self.whole[block])
    }
}

/// Finds what goes in and comes out of pieces, and where variables lie; leaves those out for which that is too much.
fn settle(types: &Types, function: &Function, pieces: &mut Vec<Piece>) {
    let cfg = Cfg::new(function);
    // What two pieces would share of a block stays between them.
    let ends: FxHashMap<usize, usize> = pieces.iter().map(|p| (p.last, p.until)).collect();
    for piece in pieces.iter_mut() {
        piece.from = piece.from.max(ends.get(&piece.first).copied().unwrap_or(0));
    }
    let owners = Owners::new(function, pieces);
    let mut fits = vec![true; pieces.len()];
    place_variables(types, function, &cfg, &owners, pieces, &mut fits);
    let mut owner: Vec<Option<usize>> = vec![None; function.values.len()];
    for &b in &cfg.rpo {
        let block = function.block(b);
        block.params.iter().for_each(|p| owner[p.idx()] = owners.of_params(b.idx()));
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(r) = inst.result {
                owner[r.idx()] = owners.of_inst(b.idx(), i);
            }
        }
    }
    for (i, piece) in pieces.iter().enumerate() {
        piece.own_slots.iter().filter_map(|slot| slot.result).for_each(|v| owner[v.idx()] = Some(i));
        piece.other_slots.iter().for_each(|v| owner[v.idx()] = None);
    }
    let mut seen: FxHashSet<(Option<usize>, Value)> = FxHashSet::default();
    let mut use_value = |v: Value, by: Option<usize>| {
        let of = owner[v.idx()];
        if function.values[v.idx()].def != Def::Local || of == by {
            return;
        }
        if let Some(by) = by
            && seen.insert((Some(by), v))
        {
            pieces[by].ins.push(v);
        }
        if let Some(of) = of
            && seen.insert((None, v))
        {
            pieces[of].outs.push(v);
        }
    };
    for &b in &cfg.rpo {
        let block = function.block(b);
        for (i, inst) in block.insts.iter().enumerate() {
            inst.args.iter().for_each(|&a| use_value(a, owners.of_inst(b.idx(), i)));
        }
        block.term.for_each_use(|v| use_value(v, owners.of_term(b.idx())));
    }
    let is_plain =
        |v: &Value| matches!(types.kind(function.ty(*v)), TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code);
    let (restricted, allocated) = addresses(function, &cfg);
    let is_address = |v: &&Value| matches!(types.kind(function.ty(**v)), TyKind::Ptr { .. });
    let mut nth = 0;
    pieces.retain(|piece| {
        nth += 1;
        fits[nth - 1]
            && piece.ins.len() <= MAX_IN
            && piece.outs.len() <= MAX_OUT
            && piece.ins.iter().chain(&piece.outs).all(is_plain)
            && !piece.ins.iter().any(|v| restricted[v.idx()])
            && (piece.ins.iter().filter(is_address).count() < 2 || !piece.ins.iter().any(|v| allocated[v.idx()]))
    });
}

/// Addresses of which more is known in this function than another one would know, and the calls that they belong to; and addresses of
/// memory that this function allocates, or gets from a call.
fn addresses(function: &Function, cfg: &Cfg) -> (Vec<bool>, Vec<bool>) {
    let mut restricted = vec![false; function.values.len()];
    let mut allocated = vec![false; function.values.len()];
    for &b in &cfg.rpo {
        for inst in &function.block(b).insts {
            let Some(r) = inst.result else { continue };
            let first = inst.args.first().map(|v| v.idx());
            let (is_restricted, is_allocated) = match inst.op {
                InstOp::Op(Op::Scope | Op::Restrict) => (true, false),
                InstOp::Op(Op::Slot | Op::Alloc) | InstOp::Call(_) => (false, true),
                InstOp::Op(Op::Lea | Op::Bitcast | Op::Aligned | Op::Extract) => {
                    first.map_or((false, false), |v| (restricted[v], allocated[v]))
                }
                _ => (false, false),
            };
            (restricted[r.idx()], allocated[r.idx()]) = (is_restricted, is_allocated);
        }
    }
    (restricted, allocated)
}

/// Decides in which function each variable lies. A piece does not fit if it shares one that LLVM may keep in registers.
fn place_variables(
    types: &Types,
    function: &Function,
    cfg: &Cfg,
    owners: &Owners,
    pieces: &mut [Piece],
    fits: &mut [bool],
) {
    /// The pieces that use a variable, and how.
    #[derive(Default)]
    struct Uses {
        by: Vec<Option<usize>>,
        escapes: bool,
        made_in: Option<usize>,
    }
    let mut slot_of: Vec<Option<Value>> = vec![None; function.values.len()];
    let mut slots: Vec<(Value, &Inst)> = Vec::new();
    let mut uses: FxHashMap<Value, Uses> = FxHashMap::default();
    for &b in &cfg.rpo {
        let block = function.block(b);
        for (i, inst) in block.insts.iter().enumerate() {
            let by = owners.of_inst(b.idx(), i);
            if let (InstOp::Op(Op::Slot), Some(r)) = (inst.op, inst.result) {
                slot_of[r.idx()] = Some(r);
                slots.push((r, inst));
                uses.entry(r).or_default().made_in = by;
                continue;
            }
            let is_derived = matches!(inst.op, InstOp::Op(Op::Lea | Op::Bitcast | Op::Aligned));
            let is_access = match inst.op {
                InstOp::Op(op) => matches!(op, Op::Load | Op::Store),
                InstOp::Vector(_) => true,
                _ => false,
            };
            for (nth, arg) in inst.args.iter().enumerate() {
                let Some(slot) = slot_of[arg.idx()] else { continue };
                let uses = uses.entry(slot).or_default();
                uses.by.push(by);
                uses.escapes |= nth > 0 || !(is_derived || is_access);
                if nth == 0
                    && is_derived
                    && let Some(r) = inst.result
                {
                    slot_of[r.idx()] = Some(slot);
                }
            }
        }
        let by = owners.of_term(b.idx());
        block.term.for_each_use(|v| {
            if let Some(slot) = slot_of[v.idx()] {
                let uses = uses.entry(slot).or_default();
                uses.by.push(by);
                uses.escapes = true;
            }
        });
    }
    for (slot, inst) in slots {
        let Some(mut uses) = uses.remove(&slot) else { continue };
        uses.by.sort_unstable();
        uses.by.dedup();
        let size = types.pointee(function.ty(slot)).and_then(|ty| layout::size_align(types, ty)).map_or(0, |s| s.0);
        match uses.by[..] {
            [] => {}
            [Some(one)] if !uses.escapes => pieces[one].own_slots.push(inst.clone()),
            _ => {
                if !uses.escapes && size <= MAX_IN_REGISTERS {
                    uses.by.iter().flatten().for_each(|&piece| fits[piece] = false);
                }
                if let Some(piece) = uses.made_in {
                    pieces[piece].other_slots.insert(slot);
                }
            }
        }
    }
}

/// Moves the code of a piece out of the function. `func` is what it is called by.
fn take(types: &mut Types, function: &mut Function, piece: &Piece, func: Func) -> Function {
    let tys = |values: &[Value]| -> Vec<_> { values.iter().map(|&v| function.ty(v)).collect() };
    let mut new = Function::new(&piece.name, Linkage::Internal, &tys(&piece.ins), &tys(&piece.outs));
    (new.span, new.is_piece) = (piece.span, true);
    let mut last = std::mem::take(&mut function.blocks[piece.last].insts);
    let rest = last.split_off(piece.until);
    let mut first = function.blocks[piece.first].insts.split_off(piece.from);
    // Variables change places.
    let is_slot = |inst: &Inst, of: &FxHashSet<Value>| inst.result.is_some_and(|r| of.contains(&r));
    let own: FxHashSet<Value> = piece.own_slots.iter().filter_map(|slot| slot.result).collect();
    let mut kept = Vec::new();
    if !own.is_empty() || !piece.other_slots.is_empty() {
        let mut change = |insts: &mut Vec<Inst>| {
            insts.retain(|inst| !is_slot(inst, &own));
            kept.extend(insts.extract_if(.., |inst| is_slot(inst, &piece.other_slots)));
        };
        change(&mut first);
        piece.inner.iter().for_each(|&b| change(&mut function.blocks[b].insts));
        change(&mut last);
    }
    let mut copy = Copy { from: function, to: &mut new, values: FxHashMap::default(), blocks: FxHashMap::default() };
    let all = std::iter::once(&piece.first).chain(&piece.inner).chain([&piece.last]);
    copy.blocks.extend(all.enumerate().map(|(i, &b)| (b, Block::from_idx(i))));
    let first = [&piece.own_slots[..], &first].concat();
    copy.block("entry".into(), &piece.ins, first, &function.blocks[piece.first].term);
    for &b in &piece.inner {
        let block = &function.blocks[b];
        copy.block(block.name.clone(), &block.params, block.insts.clone(), &block.term);
    }
    let block = &function.blocks[piece.last];
    copy.block(block.name.clone(), &block.params, last, &Terminator::Return(piece.outs.clone()));
    // The call.
    let inst =
        |op, args: &[Value], result| Inst { op, args: Args::from_slice(args), result, span: piece.at, fast: false };
    let mut insts = kept;
    match piece.outs[..] {
        [one] => insts.push(inst(InstOp::Call(func), &piece.ins, Some(one))),
        ref outs => {
            let result = function.new_value(Module::result_ty(types, &new.rets), "");
            insts.push(inst(InstOp::Call(func), &piece.ins, Some(result)));
            let index = types.prim(nyala_ir::Prim::I64);
            for (i, &out) in outs.iter().enumerate() {
                let index = function.constant(Const::Bits(i as u64), index);
                insts.push(inst(InstOp::Op(Op::Extract), &[result, index], Some(out)));
            }
        }
    }
    insts.extend(rest);
    let gone = BlockData { name: String::new(), params: Vec::new(), insts: Vec::new(), term: Terminator::Unreachable };
    let end = std::mem::replace(&mut function.blocks[piece.last], gone.clone());
    piece.inner.iter().for_each(|&b| function.blocks[b] = gone.clone());
    let block = &mut function.blocks[piece.first];
    block.insts.extend(insts);
    block.term = end.term;
    new
}

/// Copies blocks to another function.
struct Copy<'a> {
    from: &'a Function,
    to: &'a mut Function,
    values: FxHashMap<Value, Value>,
    blocks: FxHashMap<usize, Block>,
}

impl Copy<'_> {
    fn value(&mut self, v: Value) -> Value {
        let (from, to) = (self.from, &mut *self.to);
        let ty = from.ty(v);
        *self.values.entry(v).or_insert_with(|| match from.as_const(v) {
            Some(constant) => to.constant(constant, ty),
            None => to.new_value(ty, from.name(v)),
        })
    }

    fn block(&mut self, name: String, params: &[Value], mut insts: Vec<Inst>, term: &Terminator) {
        let params = params.iter().map(|&p| self.value(p)).collect();
        for inst in &mut insts {
            inst.args.iter_mut().for_each(|a| *a = self.value(*a));
            inst.result = inst.result.map(|r| self.value(r));
        }
        let mut term = term.clone();
        term.map_uses(|v| self.value(v));
        term.edges_mut()
            .for_each(|edge| edge.block = self.blocks.get(&edge.block.idx()).copied().unwrap_or(edge.block));
        self.to.blocks.push(BlockData { name, params, insts, term });
    }
}

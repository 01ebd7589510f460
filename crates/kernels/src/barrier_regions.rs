//! Regions of a kernel: where it is cut, what is common to the work items of a block, and what lives from one region to
//! another.
//!
//! Cuts are after barriers, and after branches on which a barrier is control dependent, directly or through other such
//! branches. So from the entry of a region all ways lead to one cut, or to the return; other branches and loops lie
//! within a region.
//!
//! Work items may end early: nobody waits for those that have ended. If the condition of a branch differs between work
//! items, and no barrier is reachable on one side, there is no cut. Items that take this side run to the return, which
//! notes in an array that they have ended; later regions skip them, and barriers do not count them.

use super::{Kernel, refuse};
use nyala_base::graph::{self, NONE};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::*;
use nyala_ir::{Effect, LaneOp, Op, Prim, Scope, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit on operations that a region computes again instead of loading their result.
const MAX_AGAIN: usize = 16;

/// A barrier, at the end of its block.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    pub op: LaneOp,
    /// The operand, which differs between work items.
    pub arg: Option<Value>,
    /// The result, which does not.
    pub result: Option<Value>,
    pub span: Span,
}

/// How a region ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// At the barrier, or the branch, at the end of this block.
    At(usize),
    Return,
    /// It does not.
    Never,
}

/// A region: code with one entry.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub entry: usize,
    /// Its blocks in reverse postorder. A block may belong to several regions.
    pub blocks: Vec<usize>,
    pub end: End,
    /// Whether some work items may return, while others go on to its end.
    pub may_return: bool,
    /// Whether some work items may have returned before it.
    pub after_return: bool,
}

/// A kernel's regions, and facts about its values.
pub(super) struct Regions {
    /// By block.
    pub barriers: FxHashMap<usize, Barrier>,
    /// The first is that of the kernel's entry.
    pub all: Vec<Region>,
    /// The number of the region that begins with a block.
    pub of_entry: FxHashMap<usize, usize>,
    /// By value, whether it may differ between work items.
    pub varying: Vec<bool>,
    /// By region, the values that are computed before it and may be used in it or after it, in order.
    pub live: Vec<Vec<Value>>,
    /// By value, whether regions compute it again.
    pub again: Vec<bool>,
    /// The block that defines each value, and the position in it; that of parameters is `NONE`.
    pub home: Vec<(usize, usize)>,
}

impl Regions {
    pub fn find(module: &mut Module, kernel: &mut Kernel) -> Result<Regions, Box<Diagnostic>> {
        let mut barriers = FxHashMap::default();
        split_at_barriers(module, &mut kernel.function, &mut barriers)?;
        // Branches at which some work items leave for the return. Each round finds at least one more.
        let mut leaving = FxHashSet::default();
        let (all, of_entry) = loop {
            let (all, of_entry, deciding) = split_regions(kernel, &barriers, &leaving)?;
            let varying = find_varying(&module.types, kernel, &barriers, &all);
            let found = find_leaving(&kernel.function, &barriers, &varying, &deciding);
            if found.is_empty() {
                break (all, of_entry);
            }
            leaving.extend(found);
        };
        if !barriers.is_empty() {
            keep_variables(&mut module.types, kernel, &all);
        }
        let function = &kernel.function;
        let mut home = vec![(NONE, NONE); function.values.len()];
        for (b, block) in function.blocks.iter().enumerate() {
            block.params.iter().for_each(|p| home[p.idx()] = (b, NONE));
            for (i, inst) in block.insts.iter().enumerate() {
                if let Some(r) = inst.result {
                    home[r.idx()] = (b, i);
                }
            }
        }
        for (&b, barrier) in &barriers {
            if let Some(r) = barrier.result {
                home[r.idx()] = (b, function.blocks[b].insts.len());
            }
        }
        let varying = find_varying(&module.types, kernel, &barriers, &all);
        let live = find_live(kernel, &barriers, &all, &home);
        let again = find_again(&module.types, kernel, &varying, &home);
        Ok(Regions { barriers, all, of_entry, varying, live, again, home })
    }
}

/// Ends blocks at barriers.
fn split_at_barriers(
    module: &Module,
    function: &mut Function,
    barriers: &mut FxHashMap<usize, Barrier>,
) -> Result<(), Box<Diagnostic>> {
    let waits = |inst: &Inst| module.lane_op(inst).filter(|(op, scope)| *scope == Scope::Block && op.waits());
    let mut b = 0;
    while b < function.blocks.len() {
        if let Some(at) = function.blocks[b].insts.iter().position(|inst| waits(inst).is_some()) {
            let mut rest = function.blocks[b].insts.split_off(at);
            let inst = rest.remove(0);
            let op = waits(&inst).map_or(LaneOp::Barrier, |w| w.0);
            if !matches!(op, LaneOp::Barrier | LaneOp::Any | LaneOp::All | LaneOp::Count) {
                let message = format!("a kernel on the host uses `{}` across the work items of a block", op.name());
                return Err(refuse(
                    inst.span,
                    &message,
                    "exchange the values through memory of the block, with `barrier`",
                ));
            }
            let after = Block::from_idx(function.blocks.len());
            let jump = Terminator::Jump(Edge { block: after, args: Vec::new() });
            let term = std::mem::replace(&mut function.blocks[b].term, jump);
            function.blocks.push(BlockData { name: "region".into(), params: Vec::new(), insts: rest, term });
            let result = inst.result.filter(|_| op != LaneOp::Barrier);
            barriers.insert(b, Barrier { op, arg: inst.args.first().copied(), result, span: inst.span });
        }
        b += 1;
    }
    Ok(())
}

/// Moves local variables that several regions use, or whose addresses leave the function's own code, to memory that is
/// made once for a block, with one for each work item.
fn keep_variables(types: &mut Types, kernel: &mut Kernel, all: &[Region]) {
    // The region of each block that is in one only.
    let mut region_of: Vec<Option<usize>> = vec![None; kernel.function.blocks.len()];
    let mut seen = vec![false; kernel.function.blocks.len()];
    for (i, region) in all.iter().enumerate() {
        for &b in &region.blocks {
            region_of[b] = (!std::mem::replace(&mut seen[b], true)).then_some(i);
        }
    }
    let i32 = types.i32();
    for slot in slots(&kernel.function) {
        if stays_in_region(&kernel.function, &region_of, slot) {
            continue;
        }
        let function = &mut kernel.function;
        let Some(ty) = types.pointee(function.ty(slot)) else { continue };
        let array = types.indef_array(ty);
        let array = types.ptr(array);
        let name = function.name(slot).to_string();
        let base = function.new_value(array, &name);
        function.blocks[0].params.push(base);
        function.params.push(array);
        kernel.shared.push((base, ty));
        kernel.per_item.insert(base);
        let Some((b, i)) = place_of(function, slot) else { continue };
        let span = function.blocks[b].insts[i].span;
        let mut made = Vec::new();
        let item = linear(function, i32, kernel.thread, kernel.grid[1], &mut made, span);
        let args = Args::from_slice(&[base, item]);
        made.push(Inst { op: InstOp::Op(Op::Lea), args, result: Some(slot), span, fast: false });
        function.blocks[b].insts.splice(i..=i, made);
    }
}

fn slots(function: &Function) -> Vec<Value> {
    let insts = function.blocks.iter().flat_map(|b| &b.insts);
    insts.filter(|inst| inst.op == InstOp::Op(Op::Slot)).filter_map(|inst| inst.result).collect()
}

fn place_of(function: &Function, v: Value) -> Option<(usize, usize)> {
    let mut blocks = function.blocks.iter().enumerate();
    blocks.find_map(|(b, block)| Some((b, block.insts.iter().position(|inst| inst.result == Some(v))?)))
}

/// Whether a variable is used in one region only, as an address of loads and stores.
fn stays_in_region(function: &Function, region_of: &[Option<usize>], slot: Value) -> bool {
    let mut derived: FxHashSet<Value> = FxHashSet::default();
    derived.insert(slot);
    let mut own = None;
    loop {
        let n = derived.len();
        for (b, block) in function.blocks.iter().enumerate() {
            let mut leaves = false;
            block.term.for_each_use(|v| leaves |= derived.contains(&v));
            for inst in &block.insts {
                let any = inst.result == Some(slot) || inst.args.iter().any(|a| derived.contains(a));
                if !any {
                    continue;
                }
                let Some(region) = region_of[b] else { return false };
                leaves |= *own.get_or_insert(region) != region;
                match inst.op {
                    InstOp::Op(Op::Load | Op::Slot) => {}
                    InstOp::Op(Op::Store) => leaves |= derived.contains(&inst.args[1]),
                    InstOp::Op(Op::Lea | Op::Bitcast) => derived.extend(inst.result),
                    _ => leaves = true,
                }
            }
            if leaves {
                return false;
            }
        }
        if derived.len() == n {
            return true;
        }
    }
}

/// The number of the work item in its block, where x counts first: `x + size.x * (y + size.y * z)`.
pub(super) fn linear(
    function: &mut Function,
    i32: nyala_ir::Ty,
    thread: [Value; 3],
    size: [Value; 3],
    made: &mut Vec<Inst>,
    span: Span,
) -> Value {
    let mut op = |op: Op, a: Value, b: Value| {
        let literal = |v: Value| function.as_bits(v);
        match (op, literal(a), literal(b)) {
            (Op::Mul, Some(0), _) | (Op::Add, _, Some(0)) | (Op::Mul, _, Some(1)) => return a,
            (Op::Mul, _, Some(0)) | (Op::Add, Some(0), _) | (Op::Mul, Some(1), _) => return b,
            _ => {}
        }
        let result = function.new_value(i32, "");
        let args = Args::from_slice(&[a, b]);
        made.push(Inst { op: InstOp::Op(op), args, result: Some(result), span, fast: false });
        result
    };
    let slab = op(Op::Mul, size[1], thread[2]);
    let rows = op(Op::Add, thread[1], slab);
    let before = op(Op::Mul, size[0], rows);
    op(Op::Add, thread[0], before)
}

/// The successors of blocks without those from which only the end of the program can be reached, and a node more: the
/// exit, to which the return leads.
fn live_successors(function: &Function) -> Vec<Vec<usize>> {
    let n = function.blocks.len();
    let succs: Vec<Vec<usize>> =
        function.blocks.iter().map(|b| b.term.edges().map(|e| e.block.idx()).collect()).collect();
    let ends: Vec<usize> = (0..n).filter(|&b| succs[b].is_empty()).collect();
    let is_return = |b: &usize| matches!(function.blocks[*b].term, Terminator::Return(_));
    let returns: Vec<usize> = ends.iter().copied().filter(is_return).collect();
    let preds = graph::reversed(&succs);
    let (to_return, to_end) = (graph::reachable(&preds, &returns), graph::reachable(&preds, &ends));
    // Loops that never end lead to neither.
    let is_dead_end = |b: usize| to_end[b] && !to_return[b];
    let mut live: Vec<Vec<usize>> = succs;
    for list in &mut live {
        list.retain(|&s| !is_dead_end(s));
    }
    live.push(Vec::new());
    returns.iter().for_each(|&b| live[b].push(n));
    live
}

/// The blocks at whose ends regions end: barriers, and the branches that decide about them, but those in `leaving`.
fn cuts(function: &Function, barriers: &FxHashMap<usize, Barrier>, leaving: &FxHashSet<usize>) -> FxHashSet<usize> {
    let exit = function.blocks.len();
    let mut succs = live_successors(function);
    graph::connect_to_exit(&mut succs, 0, exit);
    let ipdom = graph::post_dominators(&succs, exit);
    // For each block the branches on which it is control dependent (Ferrante, Ottenstein and Warren).
    let mut depends: Vec<Vec<usize>> = vec![Vec::new(); exit + 1];
    for b in (0..exit).filter(|&b| succs[b].len() > 1) {
        for &s in &succs[b] {
            let mut runner = s;
            while runner != NONE && runner != ipdom[b] && runner != exit {
                depends[runner].push(b);
                runner = ipdom[runner];
            }
        }
    }
    let mut found = FxHashSet::default();
    let mut work: Vec<usize> = barriers.keys().copied().collect();
    while let Some(b) = work.pop() {
        if found.insert(b) {
            work.extend(&depends[b]);
        }
    }
    found.retain(|b| !leaving.contains(b));
    found
}

/// Branches that decide about barriers by a condition that differs, while no barrier is reachable on one side.
fn find_leaving(
    function: &Function,
    barriers: &FxHashMap<usize, Barrier>,
    varying: &[bool],
    deciding: &[usize],
) -> Vec<usize> {
    let ends: Vec<usize> = barriers.keys().copied().collect();
    let to_barrier = graph::reachable(&graph::reversed(&live_successors(function)), &ends);
    let leaves = |b: &usize| match &function.blocks[*b].term {
        Terminator::Branch { cond, then, els } => {
            varying[cond.idx()] && [then, els].iter().any(|e| !to_barrier[e.block.idx()])
        }
        _ => false,
    };
    deciding.iter().copied().filter(leaves).collect()
}

/// The regions, their numbers by entry, and the branches between them.
type Found = (Vec<Region>, FxHashMap<usize, usize>, Vec<usize>);

/// Gives each region an entry without parameters, and finds its blocks.
fn split_regions(
    kernel: &mut Kernel,
    barriers: &FxHashMap<usize, Barrier>,
    leaving: &FxHashSet<usize>,
) -> Result<Found, Box<Diagnostic>> {
    let function = &mut kernel.function;
    let cuts = cuts(function, barriers, leaving);
    let mut deciding: Vec<usize> = cuts.iter().copied().filter(|b| !barriers.contains_key(b)).collect();
    deciding.sort_unstable();
    for &b in &deciding {
        let mut term = std::mem::replace(&mut function.blocks[b].term, Terminator::Unreachable);
        for edge in term.edges_mut() {
            let to = Block::from_idx(function.blocks.len());
            let jump = Terminator::Jump(std::mem::replace(edge, Edge { block: to, args: Vec::new() }));
            function.blocks.push(BlockData {
                name: "region".into(),
                params: Vec::new(),
                insts: Vec::new(),
                term: jump,
            });
        }
        function.blocks[b].term = term;
    }
    let (mut all, mut of_entry, mut next) = (Vec::<Region>::new(), FxHashMap::default(), 0);
    let mut entries = vec![0];
    of_entry.insert(0, 0);
    while let Some(&entry) = entries.get(next) {
        next += 1;
        let region = region(function, &cuts, entry, kernel.span)?;
        if let End::At(b) = region.end {
            for edge in function.blocks[b].term.edges() {
                let to = edge.block.idx();
                of_entry.entry(to).or_insert_with(|| {
                    entries.push(to);
                    entries.len() - 1
                });
            }
        }
        all.push(region);
    }
    let next = |region: &Region| match region.end {
        End::At(b) => function.blocks[b].term.edges().map(|e| of_entry[&e.block.idx()]).collect(),
        _ => Vec::new(),
    };
    let succs: Vec<Vec<usize>> = all.iter().map(next).collect();
    let returning = (0..all.len()).filter(|&i| all[i].may_return);
    let after: Vec<usize> = returning.flat_map(|i| succs[i].iter().copied()).collect();
    for (region, after) in all.iter_mut().zip(graph::reachable(&succs, &after)) {
        region.after_return = after;
    }
    Ok((all, of_entry, deciding))
}

fn region(function: &Function, cuts: &FxHashSet<usize>, entry: usize, span: Span) -> Result<Region, Box<Diagnostic>> {
    let succs = |b: usize| -> Vec<usize> {
        match cuts.contains(&b) {
            true => Vec::new(),
            false => function.blocks[b].term.edges().map(|e| e.block.idx()).collect(),
        }
    };
    let (mut seen, mut order) = (FxHashSet::default(), Vec::new());
    let mut stack = vec![(entry, succs(entry))];
    seen.insert(entry);
    while let Some((b, left)) = stack.last_mut() {
        match left.pop() {
            Some(s) if seen.insert(s) => stack.push((s, succs(s))),
            Some(_) => {}
            None => {
                order.push(*b);
                stack.pop();
            }
        }
    }
    order.reverse();
    let (mut end, mut may_return) = (End::Never, false);
    for &b in &order {
        let own = match &function.blocks[b].term {
            _ if cuts.contains(&b) => End::At(b),
            Terminator::Return(_) => {
                may_return = true;
                continue;
            }
            _ => continue,
        };
        if end != End::Never && end != own {
            let message = "a kernel on the host waits in a loop that may never end";
            return Err(refuse(span, message, "let each loop around a barrier have an end"));
        }
        end = own;
    }
    if end == End::Never && may_return {
        (end, may_return) = (End::Return, false);
    }
    Ok(Region { entry, blocks: order, end, may_return, after_return: false })
}

/// Finds values that may differ between the work items of a block.
fn find_varying(types: &Types, kernel: &Kernel, barriers: &FxHashMap<usize, Barrier>, all: &[Region]) -> Vec<bool> {
    let function = &kernel.function;
    let mut varying = vec![false; function.values.len()];
    kernel.thread.iter().for_each(|t| varying[t.idx()] = true);
    // Blocks where ways within one region meet: their parameters differ as the ways do.
    let mut meets = vec![false; function.blocks.len()];
    for region in all {
        let inside: FxHashSet<usize> = region.blocks.iter().copied().collect();
        let mut ways: FxHashMap<usize, usize> = FxHashMap::default();
        for &b in region.blocks.iter().filter(|&&b| region.end != End::At(b)) {
            for edge in function.blocks[b].term.edges().filter(|e| inside.contains(&e.block.idx())) {
                *ways.entry(edge.block.idx()).or_default() += 1;
            }
        }
        for (b, n) in ways {
            meets[b] |= n > 1 || b == region.entry;
        }
    }
    let results: FxHashSet<Value> = barriers.values().filter_map(|b| b.result).collect();
    loop {
        let mut changed = false;
        let mut set = |varying: &mut Vec<bool>, v: Value| changed |= !std::mem::replace(&mut varying[v.idx()], true);
        for (b, block) in function.blocks.iter().enumerate() {
            if meets[b] && b != 0 {
                block.params.iter().for_each(|&p| set(&mut varying, p));
            }
            for inst in &block.insts {
                let Some(r) = inst.result else { continue };
                let differs = inst.args.iter().any(|a| varying[a.idx()]);
                if !results.contains(&r) && (differs || !is_total(types, function, inst)) {
                    set(&mut varying, r);
                }
            }
            for edge in block.term.edges() {
                for (&p, &a) in function.blocks[edge.block.idx()].params.iter().zip(&edge.args) {
                    if varying[a.idx()] {
                        set(&mut varying, p);
                    }
                }
            }
        }
        if !changed {
            return varying;
        }
    }
}

/// Whether an instruction can be executed at any time, with the result depending on its operands only.
fn is_total(types: &Types, function: &Function, inst: &Inst) -> bool {
    let InstOp::Op(op) = inst.op else { return false };
    match op.effect() {
        Effect::Total => true,
        // A division by a literal.
        Effect::Partial if matches!(op, Op::Div | Op::Rem) => {
            let is_safe = |bits: u64| {
                types.as_prim(function.ty(inst.args[1])).is_some_and(|p| bits != 0 && bits != p.normalize(u64::MAX))
            };
            function.as_bits(inst.args[1]).is_some_and(is_safe)
        }
        _ => false,
    }
}

/// The values that are alive at the entry of each region.
fn find_live(
    kernel: &Kernel,
    barriers: &FxHashMap<usize, Barrier>,
    all: &[Region],
    home: &[(usize, usize)],
) -> Vec<Vec<Value>> {
    let function = &kernel.function;
    let n = function.blocks.len();
    let mut preds: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (b, block) in function.blocks.iter().enumerate() {
        block.term.edges().for_each(|e| preds[e.block.idx()].push(b));
    }
    let mut entry_of: Vec<Option<usize>> = vec![None; n];
    all.iter().enumerate().for_each(|(i, region)| entry_of[region.entry] = Some(i));
    let mut uses: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    for (b, block) in function.blocks.iter().enumerate() {
        let mut used = |v: Value| {
            let (own, position) = home[v.idx()];
            let is_param_of_kernel = (own, position) == (0, NONE);
            if own != NONE && own != b && !is_param_of_kernel {
                uses.entry(v).or_default().push(b);
            }
        };
        block.insts.iter().flat_map(|i| &i.args).for_each(|&a| used(a));
        block.term.for_each_use(&mut used);
        barriers.get(&b).and_then(|barrier| barrier.arg).into_iter().for_each(&mut used);
    }
    let mut live: Vec<Vec<Value>> = vec![Vec::new(); all.len()];
    let mut values: Vec<Value> = uses.keys().copied().collect();
    values.sort_unstable();
    let mut seen = vec![u32::MAX; n];
    for (round, v) in values.into_iter().enumerate() {
        let mut work = uses.remove(&v).unwrap_or_default();
        while let Some(b) = work.pop() {
            if std::mem::replace(&mut seen[b], round as u32) == round as u32 {
                continue;
            }
            if let Some(region) = entry_of[b] {
                live[region].push(v);
            }
            work.extend(preds[b].iter().copied().filter(|&p| p != home[v.idx()].0));
        }
    }
    live
}

/// Values that differ between work items, and are cheap to compute from those that do not and from the work item.
fn find_again(types: &Types, kernel: &Kernel, varying: &[bool], home: &[(usize, usize)]) -> Vec<bool> {
    let function = &kernel.function;
    // The number of operations, for those that are cheap.
    let mut cost: Vec<Option<usize>> = vec![None; function.values.len()];
    kernel.thread.iter().for_each(|t| cost[t.idx()] = Some(0));
    for (i, v) in function.values.iter().enumerate() {
        if !varying[i] && (matches!(v.def, Def::Const(_)) || home[i].0 != NONE) {
            cost[i] = Some(0);
        }
    }
    loop {
        let mut changed = false;
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let Some(r) = inst.result.filter(|r| varying[r.idx()] && cost[r.idx()].is_none()) else { continue };
            if !is_total(types, function, inst) || !is_cheap(types, function, inst, r) {
                continue;
            }
            let sum = inst.args.iter().try_fold(1usize, |sum, a| Some(sum.saturating_add(cost[a.idx()]?)));
            if let Some(sum) = sum.filter(|&sum| sum <= MAX_AGAIN) {
                cost[r.idx()] = Some(sum);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    (0..function.values.len()).map(|i| varying[i] && cost[i].is_some()).collect()
}

/// Whether computing a value takes about as long as loading it.
fn is_cheap(types: &Types, function: &Function, inst: &Inst, result: Value) -> bool {
    let InstOp::Op(op) = inst.op else { return false };
    let is_simple = match types.kind(function.ty(result)) {
        TyKind::Prim(prim) => !prim.is_float(),
        TyKind::Ptr { .. } => true,
        _ => false,
    };
    let floats = inst.args.iter().any(|&a| types.lane_prim(function.ty(a)).is_some_and(Prim::is_float));
    is_simple && !floats && !matches!(op, Op::Div | Op::Rem)
}

//! Structured control flow: the form of a function that the vectorizer, and back ends without jumps, start from.
//! Separate from scheduling, since machine code does not need it.
//!
//! [`structure`] rewrites a function so that
//!
//! - it ends in one return, or in code that never ends; tail calls become calls;
//! - each loop is entered at one block, its header, from one block, and one block, its latch, jumps back to it;
//! - local variables that are numbers are values.
//!
//! [`Regions`] then says which blocks belong to a loop or a branch, and where paths that part meet again.
//!
//! ```text
//! head(i): branch c, then(), else()          loop with header `head`, latch `join`
//! then():  jump join(1)                      `then` and `else` meet at `join`
//! else():  branch d, join(2), out()          `out` is an exit of the loop
//! join(x): jump head(x)
//! ```

mod regions;

pub use regions::Regions;

use crate::data::*;
use crate::promote::promote_slots_of;
use crate::simplify::simplify_function;
use nyala_base::graph;
use nyala_base::{Id, Span};
use nyala_ir::{Op, Prim, Types};
use rustc_hash::FxHashMap;

/// A loop: its header dominates all of its blocks.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The only block of the loop to which blocks outside jump.
    pub header: usize,
    /// The only block that jumps back to the header.
    pub latch: usize,
    /// The innermost loop around it.
    pub parent: Option<usize>,
}

/// The loops of a function, and the loop of each block.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// Outer loops first.
    pub all: Vec<Loop>,
    /// The innermost loop around each block.
    pub of: Vec<Option<usize>>,
}

impl Loops {
    /// Whether a block is in a loop, or in a loop nested in it.
    pub fn contains(&self, outer: usize, block: usize) -> bool {
        self.around(block).any(|l| l == outer)
    }

    /// The loops around a block, innermost first.
    pub fn around(&self, block: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.of[block], |&l| self.all[l].parent)
    }

    /// The loops that an edge leaves, innermost first.
    pub fn left(&self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        self.around(from).take_while(move |&l| !self.contains(l, to))
    }
}

fn successors(function: &Function) -> Vec<Vec<usize>> {
    function.blocks.iter().map(|b| b.term.edges().map(|e| e.block.idx()).collect()).collect()
}

/// Rewrites the function in place and returns its loops. `rets_of`: the types of a function's results.
pub fn structure(types: &mut Types, function: &mut Function, rets_of: &dyn Fn(Func) -> Vec<nyala_ir::Ty>) -> Loops {
    end_by_return(types, function, rets_of);
    promote_slots_of(types, function);
    simplify_function(types, function);
    one_return(function);
    one_way_to_ends(function);
    loop {
        match find_loops(function) {
            Found::Entries(entries) => one_entry(types, function, &entries),
            Found::Edges(all) => all.iter().for_each(|(header, latches)| one_edge(function, *header, latches)),
            Found::Loops(loops) => return loops,
        }
    }
}

/// Turns tail calls into calls.
pub fn end_by_return(types: &mut Types, function: &mut Function, rets_of: &dyn Fn(Func) -> Vec<nyala_ir::Ty>) {
    for i in 0..function.blocks.len() {
        let Terminator::TailCall { callee, args, .. } = function.blocks[i].term.clone() else { continue };
        let rets = match callee {
            Callee::Func(f) => rets_of(f),
            Callee::Indirect(_) => function.rets.clone(),
        };
        let ty = Module::result_ty(types, &rets);
        let result = function.new_value(ty, "");
        let (op, mut all) = match callee {
            Callee::Func(f) => (InstOp::Call(f), Args::new()),
            Callee::Indirect(code) => (InstOp::CallIndirect, Args::from_slice(&[code])),
        };
        all.extend(args);
        let span = function.blocks[i].insts.last().map_or(Span::NONE, |inst| inst.span);
        function.blocks[i].insts.push(Inst { op, args: all, result: Some(result), span, fast: false });
        let mut results = Vec::new();
        match &rets[..] {
            [_] => results.push(result),
            _ => {
                for (n, &ty) in rets.iter().enumerate() {
                    let index = types.prim(Prim::I32);
                    let index = function.constant(Const::Bits(n as u64), index);
                    let part = function.new_value(ty, "");
                    let args = Args::from_slice(&[result, index]);
                    function.blocks[i].insts.push(Inst {
                        op: InstOp::Op(Op::Extract),
                        args,
                        result: Some(part),
                        span,
                        fast: false,
                    });
                    results.push(part);
                }
            }
        }
        function.blocks[i].term = Terminator::Return(results);
    }
}

/// Turns several returns into jumps to one.
fn one_return(function: &mut Function) {
    let returns = |b: &BlockData| matches!(b.term, Terminator::Return(_));
    if function.blocks.iter().filter(|b| returns(b)).count() < 2 {
        return;
    }
    let tys = function.rets.clone();
    let params: Vec<Value> = tys.iter().map(|&ty| function.new_value(ty, "")).collect();
    let exit = Block::from_idx(function.blocks.len());
    for block in &mut function.blocks {
        if let Terminator::Return(args) = &mut block.term {
            block.term = Terminator::Jump(Edge { block: exit, args: std::mem::take(args) });
        }
    }
    let term = Terminator::Return(params.clone());
    function.blocks.push(BlockData { name: "return".into(), params, insts: Vec::new(), term });
}

/// Copies blocks that end the program for each edge that leads to them: lanes that branch there execute them at once,
/// wherever the other lanes are.
fn one_way_to_ends(function: &mut Function) {
    let n = function.blocks.len();
    let mut ways = vec![0; n];
    for b in 0..n {
        let mut term = std::mem::replace(&mut function.blocks[b].term, Terminator::Unreachable);
        for edge in term.edges_mut() {
            let to = edge.block.idx();
            let ends = matches!(function.blocks[to].term, Terminator::Unreachable) && to != b;
            ways[to] += 1;
            if ends && ways[to] > 1 {
                edge.block = copy(function, to);
            }
        }
        function.blocks[b].term = term;
    }
}

/// A copy of a block without successors.
fn copy(function: &mut Function, b: usize) -> Block {
    let mut block = function.blocks[b].clone();
    let mut renamed: FxHashMap<Value, Value> = FxHashMap::default();
    let mut rename = |function: &mut Function, v: &mut Value| {
        let (ty, name) = (function.ty(*v), function.name(*v).to_string());
        let new = function.new_value(ty, &name);
        renamed.insert(*v, new);
        *v = new;
    };
    block.params.iter_mut().for_each(|p| rename(function, p));
    block.insts.iter_mut().filter_map(|i| i.result.as_mut()).for_each(|r| rename(function, r));
    for arg in block.insts.iter_mut().flat_map(|i| &mut i.args) {
        *arg = renamed.get(arg).copied().unwrap_or(*arg);
    }
    function.blocks.push(block);
    Block::from_idx(function.blocks.len() - 1)
}

enum Found {
    Loops(Loops),
    /// A cycle that is entered at these blocks.
    Entries(Vec<usize>),
    /// Headers of loops with several edges back, or several from outside, and the blocks that these come from.
    Edges(Vec<(usize, Vec<usize>)>),
}

/// Finds loops: cycles, then within each the cycles that are left when its header is removed.
fn find_loops(function: &Function) -> Found {
    let succs = successors(function);
    let n = succs.len();
    let mut loops = Loops { all: Vec::new(), of: vec![None; n] };
    let preds = graph::reversed(&succs);
    let mut cut = vec![false; n];
    // Nodes in which cycles are searched, and the loop that contains them.
    let mut work: Vec<(Vec<usize>, Option<usize>)> = vec![(graph::postorder(&succs, 0), None)];
    let mut search = graph::Components::default();
    let mut member = vec![usize::MAX; n];
    let mut round = 0;
    let mut several: Vec<(usize, Vec<usize>)> = Vec::new();
    while let Some((nodes, parent)) = work.pop() {
        round += 1;
        nodes.iter().for_each(|&b| member[b] = round);
        let inside = |b: usize| member[b] == round && !cut[b];
        for cycle in cycles(&mut search, &succs, &nodes, inside) {
            let mark = |b: usize| cycle.binary_search(&b).is_ok();
            let mut entries: Vec<usize> =
                cycle.iter().copied().filter(|&b| b == 0 || preds[b].iter().any(|&p| !mark(p))).collect();
            entries.dedup();
            let [header] = entries[..] else { return Found::Entries(entries) };
            let mut latches: Vec<usize> = preds[header].iter().copied().filter(|&p| mark(p)).collect();
            latches.sort_unstable();
            latches.dedup();
            let twice = |l: usize| succs[l].iter().filter(|&&s| s == header).count() > 1;
            if header == 0 {
                // The blocks are about to be renumbered.
                return Found::Edges(vec![(header, latches)]);
            }
            let latch = latches[0];
            if latches.len() > 1 || twice(latch) {
                several.push((header, latches));
            }
            let mut before: Vec<usize> = preds[header].iter().copied().filter(|&p| !mark(p)).collect();
            before.sort_unstable();
            before.dedup();
            if before.len() > 1 || before.iter().any(|&b| twice(b)) {
                several.push((header, before));
            }
            let id = loops.all.len();
            loops.all.push(Loop { header, latch, parent });
            cycle.iter().for_each(|&b| loops.of[b] = Some(id));
            cut[header] = true;
            work.push((cycle, Some(id)));
        }
    }
    if several.is_empty() {
        // A latch that belongs to an inner loop does not end an iteration of the outer one.
        let inner = loops.all.iter().enumerate().filter(|(id, l)| loops.of[l.latch] != Some(*id));
        several.extend(inner.map(|(_, l)| (l.header, vec![l.latch])));
    }
    if several.is_empty() { Found::Loops(loops) } else { Found::Edges(several) }
}

/// Strongly connected components, sorted; single nodes only if they have an edge to themselves.
fn cycles(
    search: &mut graph::Components,
    succs: &[Vec<usize>],
    nodes: &[usize],
    inside: impl Fn(usize) -> bool,
) -> Vec<Vec<usize>> {
    let nodes: Vec<usize> = nodes.iter().copied().filter(|&n| inside(n)).collect();
    let mut found = search.find(&nodes, |n, i| succs[n].get(i).copied(), inside);
    found.retain(|group| group.len() > 1 || succs[group[0]].contains(&group[0]));
    found.iter_mut().for_each(|group| group.sort_unstable());
    found
}

/// Leads all edges into a cycle through a new block, which branches by a number.
///
/// ```text
/// jump a(x) … jump b(y)      jump in(0, x, undef) … jump in(1, undef, y)
///                            in(n, x, y): branch eq(n, 0), a(x), b(y)
/// ```
fn one_entry(types: &mut Types, function: &mut Function, entries: &[usize]) {
    let (i32, bool_ty) = (types.i32(), types.bool());
    let number = function.new_value(i32, "");
    let mut params = vec![number];
    let mut first = Vec::new();
    for &e in entries {
        first.push(params.len());
        for p in function.blocks[e].params.clone() {
            let ty = function.ty(p);
            params.push(function.new_value(ty, ""));
        }
    }
    let tys: Vec<nyala_ir::Ty> = params.iter().map(|&p| function.ty(p)).collect();
    let undef: Vec<Value> = tys.iter().map(|&ty| function.undef(ty)).collect();
    let numbers: Vec<Value> = (0..entries.len()).map(|i| function.constant(Const::Bits(i as u64), i32)).collect();
    let hub = Block::from_idx(function.blocks.len());
    for block in &mut function.blocks {
        for edge in block.term.edges_mut() {
            let Some(at) = entries.iter().position(|&e| e == edge.block.idx()) else { continue };
            let mut args = undef.clone();
            args[0] = numbers[at];
            args[first[at]..first[at] + edge.args.len()].copy_from_slice(&edge.args);
            *edge = Edge { block: hub, args };
        }
    }
    let to = |function: &Function, at: usize| {
        let n = function.blocks[entries[at]].params.len();
        Edge { block: Block::from_idx(entries[at]), args: params[first[at]..first[at] + n].to_vec() }
    };
    for (at, &this) in numbers.iter().enumerate().take(entries.len() - 1) {
        let cond = function.new_value(bool_ty, "");
        let here = Block::from_idx(function.blocks.len());
        let args = Args::from_slice(&[number, this]);
        let inst = Inst { op: InstOp::Op(Op::Eq), args, result: Some(cond), span: Span::NONE, fast: false };
        let is_last = at + 2 == entries.len();
        let els = match is_last {
            true => to(function, at + 1),
            false => Edge { block: Block::from_idx(here.idx() + 1), args: Vec::new() },
        };
        let term = Terminator::Branch { cond, then: to(function, at), els };
        let params = if at == 0 { params.clone() } else { Vec::new() };
        function.blocks.push(BlockData { name: "enter".into(), params, insts: vec![inst], term });
    }
}

/// Leads all jumps of some blocks to a header through a new block; also those to the entry, which must not be jumped to. Lanes that part
/// before a loop meet in that block, not in the header, so that they do not count as being in different rounds.
fn one_edge(function: &mut Function, header: usize, from: &[usize]) {
    if header == 0 {
        // The entry keeps the function's parameters; its contents move to a new block.
        let old = function.blocks[0].params.clone();
        let tys: Vec<nyala_ir::Ty> = old.iter().map(|&p| function.ty(p)).collect();
        let new: Vec<Value> = tys.iter().map(|&ty| function.new_value(ty, "")).collect();
        let body = Block::from_idx(function.blocks.len());
        let jump = Terminator::Jump(Edge { block: body, args: new.clone() });
        let name = function.blocks[0].name.clone();
        let moved =
            std::mem::replace(&mut function.blocks[0], BlockData { name, params: new, insts: Vec::new(), term: jump });
        function.blocks.push(moved);
        for block in &mut function.blocks[1..] {
            block.term.edges_mut().filter(|e| e.block.idx() == 0).for_each(|e| e.block = body);
        }
        return;
    }
    // An argument that all jumps have is none of the new block: where lanes part before it, its parameters would differ.
    let jumps = || from.iter().flat_map(|&l| function.blocks[l].term.edges()).filter(|e| e.block.idx() == header);
    let all: Vec<&[Value]> = jumps().map(|e| &e.args[..]).collect();
    let same = |i: usize| all.len() > 1 && all.iter().all(|args| args[i] == all[0][i]);
    let common: Vec<Option<Value>> =
        (0..function.blocks[header].params.len()).map(|i| same(i).then(|| all[0][i])).collect();
    let tys: Vec<nyala_ir::Ty> = function.blocks[header].params.iter().map(|&p| function.ty(p)).collect();
    let mut params = Vec::new();
    let mut args = Vec::new();
    for (&ty, &common) in tys.iter().zip(&common) {
        let value = common.unwrap_or_else(|| function.new_value(ty, ""));
        if common.is_none() {
            params.push(value);
        }
        args.push(value);
    }
    let joined = Block::from_idx(function.blocks.len());
    for &b in from {
        for edge in function.blocks[b].term.edges_mut().filter(|e| e.block.idx() == header) {
            edge.block = joined;
            let mut is_common = common.iter().map(Option::is_some);
            edge.args.retain(|_| is_common.next() != Some(true));
        }
    }
    let term = Terminator::Jump(Edge { block: Block::from_idx(header), args });
    function.blocks.push(BlockData { name: "continue".into(), params, insts: Vec::new(), term });
}

//! Places the blocks of a function into nested branches and loops: a block stands inside the branch that leads to it, after the branch
//! of its immediate dominator, or after a loop. Separate from the emission of instructions, since it only looks at control flow.
//!
//! A block with one predecessor stands at the edge from it. A block where several edges meet stands after the branch of its immediate
//! dominator (Ramsey, Beyond Relooper, ICFP 2022). A block that is reached by leaving loops stands after the outermost of them, even if
//! only one edge leads to it: there, all work items of the work group have left the loop.
//!
//! Drivers limit how deep constructs nest. Mesa's llvmpipe silently computes wrong results beyond 80. So a block that would be nested too
//! deep stands after the branch of one of its dominators instead.

use nyala_base::Id;
use nyala_base::graph::Tree;
use nyala_flat::analysis::Cfg;
use nyala_flat::structure::Loops;
use nyala_flat::{Block, Function, InstOp, Terminator, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// A block that would be nested deeper than this is placed elsewhere. The limit is far below that of drivers, because they inline
/// functions.
const DEEP: usize = 24;

/// The place for such a block is nested at most this deep, if there is one.
const SHALLOW: usize = 6;

/// The places of a function's blocks.
pub(crate) struct Plan {
    /// For each block, the loop whose header it is.
    pub header_of: Vec<Option<usize>>,
    /// The blocks that stand at the edge to them.
    pub inline: Vec<bool>,
    /// The blocks that only return: the return is written at each edge to them.
    pub returns: Vec<bool>,
    /// For each block, the blocks that stand after its branch, in order.
    pub after: Vec<Vec<usize>>,
    /// For each loop, the blocks that stand after it, in order.
    pub after_loop: Vec<Vec<usize>>,
    /// Values with a use that their definition does not dominate in the nesting: they live in variables.
    pub homeless: FxHashSet<Value>,
}

impl Plan {
    /// Places the blocks of a function that [`structure`](nyala_flat::structure::structure) made.
    pub fn new(function: &Function, loops: &Loops) -> Plan {
        let cfg = Cfg::new(function);
        let n = function.blocks.len();
        let mut plan = Plan {
            header_of: vec![None; n],
            inline: vec![false; n],
            returns: returns(function),
            after: vec![Vec::new(); n],
            after_loop: vec![Vec::new(); loops.all.len()],
            homeless: FxHashSet::default(),
        };
        for (l, found) in loops.all.iter().enumerate() {
            plan.header_of[found.header] = Some(l);
        }
        let order: Vec<usize> = cfg.rpo.iter().map(|b| b.idx()).collect();
        // The nesting, as a tree: a block's parent is the block inside or after whose branch it stands.
        let mut places = Tree::with_root(0, n);
        // The number of constructs around each block, and around the blocks inside its branch.
        let (mut outer, mut inner) = (vec![0; n], vec![0; n]);
        inner[0] = plan.header_of[0].is_some() as usize;
        for &b in order.iter().skip(1) {
            let is_back = |p: &usize| plan.header_of[b].is_some_and(|l| loops.contains(l, *p));
            let ways: Vec<usize> = cfg.preds[b].iter().map(|p| p.idx()).filter(|p| !is_back(p)).collect();
            // A return from inside a loop stands after the loop, where all work items have left it.
            plan.returns[b] &= !ways.iter().any(|&p| loops.left(p, b).next().is_some());
            if plan.returns[b] {
                continue;
            }
            // The nearest block above all predecessors in the nesting. It dominates this block, or a dominator was moved to it.
            let above = ways.iter().copied().reduce(|x, y| places.meet(x, y)).unwrap_or(0);
            let is_branch = matches!(function.blocks[above].term, Terminator::Branch { .. });
            let left = loops.left(above, b).last();
            outer[b] = inner[above] + (is_branch || ways.len() > 1) as usize;
            let mut place = above;
            match left {
                Some(left) => {
                    plan.after_loop[left].push(b);
                    place = loops.all[left].header;
                    outer[b] = outer[place] + 1;
                }
                None if ways.len() > 1 => plan.after[above].push(b),
                None if outer[b] <= DEEP => plan.inline[b] = true,
                None => {
                    // The nearest block above that is nested at most `SHALLOW` deep, or else the least deep one.
                    let around = plan.header_of[b].map_or(loops.of[b], |l| loops.all[l].parent);
                    let mut at = above;
                    while inner[place] > SHALLOW && at != 0 {
                        at = places.parent(at);
                        if loops.of[at] == around && inner[at] < inner[place] {
                            place = at;
                        }
                    }
                    plan.inline[b] = inner[place] + 1 >= outer[b];
                    match plan.inline[b] {
                        true => place = above,
                        false => {
                            plan.after[place].push(b);
                            outer[b] = inner[place] + 1;
                        }
                    }
                }
            }
            places.hang(b, place);
            inner[b] = outer[b] + plan.header_of[b].is_some() as usize;
        }
        plan.find_homeless(function, &cfg, &places);
        plan
    }

    fn find_homeless(&mut self, function: &Function, cfg: &Cfg, places: &Tree) {
        let mut defined = vec![usize::MAX; function.values.len()];
        for b in cfg.rpo.iter().map(|b| b.idx()) {
            let block = &function.blocks[b];
            let results = block.insts.iter().filter_map(|i| i.result);
            block.params.iter().copied().chain(results).for_each(|v| defined[v.idx()] = b);
        }
        for b in cfg.rpo.iter().map(|b| b.idx()) {
            let block = &function.blocks[b];
            let mut used = |v: Value| {
                let at = defined[v.idx()];
                if at != usize::MAX && at != b && places.meet(at, b) != at {
                    self.homeless.insert(v);
                }
            };
            block.insts.iter().flat_map(|i| &i.args).copied().for_each(&mut used);
            block.term.for_each_use(&mut used);
            // Returns are written at the edges that lead to them.
            for edge in block.term.edges().filter(|e| self.returns[e.block.idx()]) {
                function.block(edge.block).term.for_each_use(&mut used);
            }
        }
    }
}

/// A loop may be left by an edge to a block that only returns. Gives each such loop a returning block of its own.
pub(crate) fn return_after_loops(function: &mut Function, loops: &mut Loops) {
    let is_return = returns(function);
    let mut made: FxHashMap<(usize, usize), Block> = FxHashMap::default();
    for b in 0..is_return.len() {
        let mut term = std::mem::replace(&mut function.blocks[b].term, Terminator::Unreachable);
        for edge in term.edges_mut() {
            let to = edge.block.idx();
            let left = loops.left(b, to).last();
            let (true, Some(left)) = (is_return[to], left) else { continue };
            edge.block = *made.entry((to, left)).or_insert_with(|| {
                let mut copy = function.blocks[to].clone();
                let old = copy.params.clone();
                for param in &mut copy.params {
                    let ty = function.ty(*param);
                    *param = function.new_value(ty, "");
                }
                let new = copy.params.clone();
                copy.term.map_uses(|v| old.iter().position(|&p| p == v).map_or(v, |i| new[i]));
                loops.of.push(loops.of[to]);
                function.blocks.push(copy);
                Block::from_idx(function.blocks.len() - 1)
            });
        }
        function.blocks[b].term = term;
    }
}

/// Blocks that only return.
fn returns(function: &Function) -> Vec<bool> {
    let mut found: Vec<bool> =
        function.blocks.iter().map(|b| b.insts.is_empty() && matches!(b.term, Terminator::Return(_))).collect();
    found[0] = false;
    found
}

/// Whether a function has fences.
pub(crate) fn has_fences(function: &Function) -> bool {
    let insts = function.blocks.iter().flat_map(|b| &b.insts);
    insts.into_iter().any(|inst| inst.op == InstOp::Op(nyala_ir::Op::Fence))
}

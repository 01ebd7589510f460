//! Facts about a function's control flow: orders, predecessors, dominators, dominance frontiers, natural loops.

use crate::data::{Block, Function};
use nyala_base::{Id, graph};
use rustc_hash::FxHashSet;

/// Control flow of a function, at the time when it was computed.
pub struct Cfg {
    /// Reachable blocks in reverse postorder, the entry first.
    pub rpo: Vec<Block>,
    /// Position of each block in `rpo`; `usize::MAX` where unreachable.
    pub position: Vec<usize>,
    /// Reachable predecessors, one entry for each edge.
    pub preds: Vec<Vec<Block>>,
    /// Immediate dominator of each block; the entry's is itself. Meaningless where unreachable.
    pub idom: Vec<Block>,
}

impl Cfg {
    /// The control flow of a function as it is now.
    pub fn new(function: &Function) -> Cfg {
        Cfg::of(function.blocks.iter().map(|b| b.term.edges().map(|edge| edge.block.idx()).collect()).collect())
    }

    /// Control flow of a function that may be incomplete, from the successors of each block.
    pub fn of(succs: Vec<Vec<usize>>) -> Cfg {
        let n = succs.len();
        let mut rpo: Vec<Block> = match n {
            0 => Vec::new(),
            _ => graph::postorder(&succs, 0).into_iter().map(Block::from_idx).collect(),
        };
        rpo.reverse();
        let mut position = vec![usize::MAX; n];
        for (i, b) in rpo.iter().enumerate() {
            position[b.idx()] = i;
        }
        let mut preds = vec![Vec::new(); n];
        for &b in &rpo {
            for &succ in &succs[b.idx()] {
                preds[succ].push(b);
            }
        }
        let idom = match n {
            0 => Vec::new(),
            _ => graph::dominators(&succs, 0).into_iter().map(|b| Block(b as u32)).collect(),
        };
        Cfg { rpo, position, preds, idom }
    }

    /// The block through which control leaves each block in any case, the nearest one; `None` if there is no such block, or if the
    /// block is unreachable. An endless loop counts as one that ends.
    pub fn post_dominators(&self) -> Vec<Option<Block>> {
        let exit = self.position.len();
        let mut succs = vec![Vec::new(); exit + 1];
        for &b in &self.rpo {
            for &pred in &self.preds[b.idx()] {
                succs[pred.idx()].push(b.idx());
            }
        }
        for &b in &self.rpo {
            if succs[b.idx()].is_empty() {
                succs[b.idx()].push(exit);
            }
        }
        if exit > 0 {
            graph::connect_to_exit(&mut succs, 0, exit);
        }
        let after = graph::post_dominators(&succs, exit);
        let block = |&at: &usize| (at < exit).then(|| Block::from_idx(at));
        after[..exit].iter().map(block).collect()
    }

    /// Whether a block is reachable from the entry.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position[block.idx()] != usize::MAX
    }

    /// The dominator tree over indices of blocks, which answers whether one block dominates another.
    pub fn dominator_tree(&self) -> graph::Tree {
        let order: Vec<usize> = self.rpo.iter().map(|b| b.idx()).collect();
        graph::Tree::new(self.idom.iter().map(|b| b.idx()).collect(), &order)
    }

    /// Children in the dominator tree, in reverse postorder.
    pub fn dominator_children(&self) -> Vec<Vec<Block>> {
        let mut children = vec![Vec::new(); self.idom.len()];
        for &b in self.rpo.iter().skip(1) {
            children[self.idom[b.idx()].idx()].push(b);
        }
        children
    }

    /// Entry and exit times of each block in a walk over the dominator tree: `a` dominates `b` if its interval contains
    /// that of `b`.
    pub fn dominator_intervals(&self) -> Vec<(u32, u32)> {
        let children = self.dominator_children();
        let mut intervals = vec![(0, 0); self.idom.len()];
        let mut time = 0;
        let mut stack: Vec<(Block, usize)> = self.rpo.first().map(|&b| (b, 0)).into_iter().collect();
        while let Some((block, i)) = stack.last_mut() {
            if *i == 0 {
                time += 1;
                intervals[block.idx()].0 = time;
            }
            match children[block.idx()].get(*i) {
                Some(&child) => {
                    *i += 1;
                    stack.push((child, 0));
                }
                None => {
                    time += 1;
                    intervals[block.idx()].1 = time;
                    stack.pop();
                }
            }
        }
        intervals
    }

    /// Dominance frontiers (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm).
    pub fn dominance_frontiers(&self) -> Vec<Vec<Block>> {
        let mut frontiers: Vec<Vec<Block>> = vec![Vec::new(); self.idom.len()];
        for &b in &self.rpo {
            // The entry needs one predecessor only, since calls enter it too.
            if self.preds[b.idx()].len() < 2 {
                continue;
            }
            for &pred in &self.preds[b.idx()] {
                let mut runner = pred;
                while runner != self.idom[b.idx()] {
                    let frontier = &mut frontiers[runner.idx()];
                    if frontier.last() == Some(&b) {
                        break;
                    }
                    frontier.push(b);
                    runner = self.idom[runner.idx()];
                }
            }
        }
        frontiers
    }
}

/// The number of natural loops around each block. Like [`loops`], but without the members of loops, whose number may be
/// quadratic in the blocks if loops are nested. Inner loops are found first, and then stand for their blocks (Havlak:
/// Nesting of Reducible and Irreducible Loops); natural loops that share a block are nested.
pub fn loop_depths(cfg: &Cfg, dominators: &graph::Tree) -> Vec<u32> {
    let n = cfg.position.len();
    // `around`: the header of the loop around each block and each loop found. `outermost`: union-find links to the
    // outermost one.
    let mut around: Vec<Option<usize>> = vec![None; n];
    let mut outermost: Vec<usize> = (0..n).collect();
    let find = |outermost: &mut Vec<usize>, mut b: usize| {
        while outermost[b] != b {
            outermost[b] = outermost[outermost[b]];
            b = outermost[b];
        }
        b
    };
    let mut is_header = vec![false; n];
    for header in cfg.rpo.iter().rev().map(|b| b.idx()) {
        let preds = cfg.preds[header].iter().map(|p| p.idx());
        let mut work: Vec<usize> = preds.filter(|&p| dominators.meet(header, p) == header).collect();
        is_header[header] = !work.is_empty();
        while let Some(block) = work.pop() {
            let block = find(&mut outermost, block);
            if block != header {
                (around[block], outermost[block]) = (Some(header), header);
                work.extend(cfg.preds[block].iter().map(|p| p.idx()));
            }
        }
    }
    let mut depth = vec![0; n];
    for b in cfg.rpo.iter().map(|b| b.idx()) {
        depth[b] = around[b].map_or(0, |header| depth[header]) + is_header[b] as u32;
    }
    depth
}

/// The blocks of each natural loop, outer loops first.
pub fn loops(cfg: &Cfg) -> Vec<FxHashSet<Block>> {
    let mut loops = Vec::new();
    let dominates = |a: Block, mut b: Block| loop {
        if a == b {
            return true;
        }
        let up = cfg.idom[b.idx()];
        if up == b || cfg.position[b.idx()] < cfg.position[a.idx()] {
            return false;
        }
        b = up;
    };
    for &header in &cfg.rpo {
        let mut work: Vec<Block> = cfg.preds[header.idx()].iter().copied().filter(|&p| dominates(header, p)).collect();
        if work.is_empty() {
            continue;
        }
        let mut members: FxHashSet<Block> = FxHashSet::default();
        members.insert(header);
        while let Some(block) = work.pop() {
            if members.insert(block) {
                work.extend(&cfg.preds[block.idx()]);
            }
        }
        loops.push(members);
    }
    loops
}

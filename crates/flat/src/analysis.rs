//! Facts about a function's control flow: orders, predecessors, dominators, dominance frontiers.

use crate::data::{Block, Function};
use nyala_base::{Id, graph};

/// Control flow of a function, as of when it was computed.
pub struct Cfg {
    /// Reachable blocks in reverse postorder, the entry first.
    pub rpo: Vec<Block>,
    /// Position in `rpo`; `usize::MAX` where unreachable.
    pub position: Vec<usize>,
    /// Reachable predecessors, one entry for each edge.
    pub preds: Vec<Vec<Block>>,
    /// Immediate dominator; the entry's is itself, and there is none where unreachable.
    pub idom: Vec<Block>,
}

impl Cfg {
    /// The control flow of a function as it is now.
    pub fn new(function: &Function) -> Cfg {
        Cfg::of(function.blocks.iter().map(|b| b.term.edges().map(|edge| edge.block.idx()).collect()).collect())
    }

    /// The same of a function that is not complete yet, from the successors of each block.
    pub(crate) fn of(succs: Vec<Vec<usize>>) -> Cfg {
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

    /// Whether the entry leads to a block.
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

    /// For each block entry and exit times of a walk over the dominator tree: `a` dominates `b` if its interval
    /// contains that of `b`.
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
            // The entry has one way in more than its predecessors.
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

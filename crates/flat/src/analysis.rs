//! Facts about a function's control flow: orders, predecessors, dominators, dominance frontiers.

use crate::data::{Block, Function};
use nyala_base::Id;

/// Control flow of a function, as of when it was computed.
pub struct Cfg {
    /// Reachable blocks in reverse postorder, the entry first.
    pub rpo: Vec<Block>,
    /// Position in `rpo`; `usize::MAX` where unreachable.
    pub position: Vec<usize>,
    /// Reachable predecessors, one entry for each edge.
    pub preds: Vec<Vec<Block>>,
    /// Immediate dominator; the entry's is itself.
    pub idom: Vec<Block>,
}

impl Cfg {
    pub fn new(function: &Function) -> Cfg {
        let n = function.blocks.len();
        let mut post: Vec<Block> = Vec::with_capacity(n);
        let mut seen = vec![false; n];
        let mut stack: Vec<(Block, usize)> = Vec::new();
        if n > 0 {
            seen[0] = true;
            stack.push((Block(0), 0));
        }
        while let Some((block, i)) = stack.last_mut() {
            match function.block(*block).term.edges().nth(*i) {
                Some(edge) => {
                    *i += 1;
                    if !std::mem::replace(&mut seen[edge.block.idx()], true) {
                        stack.push((edge.block, 0));
                    }
                }
                None => {
                    post.push(*block);
                    stack.pop();
                }
            }
        }
        post.reverse();
        let rpo = post;
        let mut position = vec![usize::MAX; n];
        for (i, b) in rpo.iter().enumerate() {
            position[b.idx()] = i;
        }
        let mut preds = vec![Vec::new(); n];
        for &b in &rpo {
            for edge in function.block(b).term.edges() {
                preds[edge.block.idx()].push(b);
            }
        }
        let idom = dominators(&rpo, &position, &preds);
        Cfg { rpo, position, preds, idom }
    }

    pub fn is_reachable(&self, block: Block) -> bool {
        self.position[block.idx()] != usize::MAX
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

fn dominators(rpo: &[Block], position: &[usize], preds: &[Vec<Block>]) -> Vec<Block> {
    const NONE: Block = Block(u32::MAX);
    let mut idom = vec![NONE; position.len()];
    let Some(&entry) = rpo.first() else { return idom };
    idom[entry.idx()] = entry;
    let mut changed = true;
    while changed {
        changed = false;
        for &b in &rpo[1..] {
            let mut new = NONE;
            for &p in &preds[b.idx()] {
                if idom[p.idx()] == NONE {
                    continue;
                }
                if new == NONE {
                    new = p;
                    continue;
                }
                let (mut x, mut y) = (p, new);
                while x != y {
                    while position[x.idx()] > position[y.idx()] {
                        x = idom[x.idx()];
                    }
                    while position[y.idx()] > position[x.idx()] {
                        y = idom[y.idx()];
                    }
                }
                new = x;
            }
            if idom[b.idx()] != new {
                idom[b.idx()] = new;
                changed = true;
            }
        }
    }
    idom
}

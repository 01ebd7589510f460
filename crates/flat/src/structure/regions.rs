//! Facts about the control flow of a structured function: an order of its blocks in which each loop, and all that a
//! block dominates in its loop, is contiguous; dominators; which blocks are executed by the same lanes.
//!
//! A *region* is the body of a loop without its inner loops, or the blocks that are in no loop. Its *nodes* are its
//! blocks and, as one node each, its inner loops; its edges are those within one iteration, so it is acyclic.
//! Post-dominance is computed within an iteration, for lanes that start the next iteration do not wait for the others.

use super::{Loops, successors};
use crate::data::{Function, Terminator};
use nyala_base::graph::{self, NONE};

/// Blocks, loops and regions of a function, by their numbers.
pub struct Regions {
    /// The loops that [`structure`](super::structure) found.
    pub loops: Loops,
    /// Successors of blocks.
    pub succs: Vec<Vec<usize>>,
    /// Reachable predecessors of blocks.
    pub preds: Vec<Vec<usize>>,
    /// Reachable blocks, ordered so that an edge leads back only to the header of a loop around it.
    pub order: Vec<usize>,
    /// Positions in `order`; `NONE` where unreachable.
    pub position: Vec<usize>,
    /// Immediate dominators of blocks; `NONE` where unreachable.
    pub idom: Vec<usize>,
    /// Successors of nodes in their region. Nodes are blocks and, from the number of blocks, loops.
    pub node_succs: Vec<Vec<usize>>,
    /// Immediate post-dominators of nodes in their region; `NONE` if lanes may leave the region, or the iteration, in
    /// different ways.
    pub node_ipdom: Vec<usize>,
    /// Blocks and headers of inner loops that stand directly in each loop; the last entry is for those in no loop.
    pub members: Vec<Vec<usize>>,
    /// For each loop the blocks outside that its exit edges lead to.
    pub exits: Vec<Vec<usize>>,
    /// Entry and exit times of blocks in a walk over the dominator tree.
    times: Vec<(usize, usize)>,
    /// Entry and exit times of nodes in a walk over the post-dominator trees.
    post_times: Vec<(usize, usize)>,
}

impl Regions {
    /// Regions of a structured function.
    pub fn new(function: &Function, mut loops: Loops) -> Regions {
        let succs = successors(function);
        let n = succs.len();
        let idom = graph::dominators(&succs, 0);
        let reachable = |b: usize| idom[b] != NONE;
        let mut preds = vec![Vec::new(); n];
        for b in (0..n).filter(|&b| reachable(b)) {
            succs[b].iter().for_each(|&s| preds[s].push(b));
        }
        let ends = ends(function, &succs, &preds);
        // A block that ends the program belongs to the innermost loop that contains all of its predecessors.
        for b in graph::postorder(&succs, 0).into_iter().rev().filter(|&b| ends[b] && b != 0) {
            let mut own = loops.of[preds[b][0]];
            while let Some(l) = own
                && !preds[b].iter().all(|&p| loops.contains(l, p))
            {
                own = loops.all[l].parent;
            }
            loops.of[b] = own;
        }
        let mut exits: Vec<Vec<usize>> = vec![Vec::new(); loops.all.len()];
        for b in (0..n).filter(|&b| reachable(b)) {
            for &s in &succs[b] {
                let left = loops.around(b).take_while(|&l| !loops.contains(l, s));
                left.for_each(|l| exits[l].push(s));
            }
        }
        for list in &mut exits {
            list.sort_unstable();
            list.dedup();
        }
        let (node_succs, node_ipdom, order) = regions(function, &loops, &succs, &idom, &ends);
        let mut position = vec![NONE; n];
        order.iter().enumerate().for_each(|(i, &b)| position[b] = i);
        let times = times(&idom, 0);
        let post_times = times_of_forest(&node_ipdom);
        let members = Vec::new();
        let mut r = Regions {
            loops,
            succs,
            preds,
            order,
            position,
            idom,
            node_succs,
            node_ipdom,
            members,
            exits,
            times,
            post_times,
        };
        let top = r.loops.all.len();
        r.members = vec![Vec::new(); top + 1];
        for &b in &r.order {
            let around = r.loop_around(b).unwrap_or(top);
            r.members[around].push(b);
        }
        r
    }

    /// Whether every path from the entry to block `b` goes through block `a`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        self.times[a].0 <= self.times[b].0 && self.times[b].1 <= self.times[a].1
    }

    /// The block where a node begins.
    pub fn start(&self, node: usize) -> usize {
        match node.checked_sub(self.succs.len()) {
            Some(l) => self.loops.all[l].header,
            None => node,
        }
    }

    /// The node of a block in the region around it; for the header of a loop, the node of that loop.
    fn node(&self, b: usize) -> usize {
        match self.loops.of[b] {
            Some(l) if self.loops.all[l].header == b => self.succs.len() + l,
            _ => b,
        }
    }

    fn post_dominates(&self, a: usize, b: usize) -> bool {
        self.post_times[a].0 <= self.post_times[b].0 && self.post_times[b].1 <= self.post_times[a].1
    }

    /// Whether an edge leads to the next iteration of a loop.
    pub fn is_back_edge(&self, from: usize, to: usize) -> bool {
        self.loops.of[to].is_some_and(|l| self.loops.all[l].header == to && self.loops.contains(l, from))
    }

    /// A block of the same loop that dominates `b` and is executed by the same lanes, equally often; `None` if there is
    /// none.
    pub fn equivalent_above(&self, b: usize) -> Option<usize> {
        let own = self.loop_around(b);
        let mut a = self.idom[b];
        while a != 0 && self.loops.of[a] != own {
            a = self.idom[a];
        }
        (self.loops.of[a] == own && a != b && self.post_dominates(self.node(b), a)).then_some(a)
    }

    /// The innermost loop that contains a block; for the header of a loop, the loop around that one.
    pub fn loop_around(&self, b: usize) -> Option<usize> {
        let l = self.loops.of[b]?;
        if self.loops.all[l].header == b { self.loops.all[l].parent } else { Some(l) }
    }
}

/// Blocks with a single predecessor from which every path ends the program. Lanes execute them where they branch there,
/// before anything else.
fn ends(function: &Function, succs: &[Vec<usize>], preds: &[Vec<usize>]) -> Vec<bool> {
    let mut ends = vec![false; succs.len()];
    let mut left: Vec<usize> = succs.iter().map(Vec::len).collect();
    let is_end = |b: &usize| matches!(function.blocks[*b].term, Terminator::Unreachable) && preds[*b].len() == 1;
    let mut work: Vec<usize> = (0..succs.len()).filter(is_end).collect();
    while let Some(b) = work.pop() {
        ends[b] = true;
        for &p in &preds[b] {
            left[p] -= 1;
            if left[p] == 0 && preds[p].len() == 1 {
                work.push(p);
            }
        }
    }
    ends
}

/// Successors and post-dominators of all nodes in their region, and the order of blocks: each loop and, within it, all
/// that a block dominates is contiguous; the latch of a loop and the return come last.
fn regions(
    function: &Function,
    loops: &Loops,
    succs: &[Vec<usize>],
    idom: &[usize],
    ends: &[bool],
) -> (Vec<Vec<usize>>, Vec<usize>, Vec<usize>) {
    let (n, n_loops) = (succs.len(), loops.all.len());
    let top = n_loops;
    let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); n_loops + 1];
    for b in (0..n).filter(|&b| idom[b] != NONE) {
        nodes[loops.of[b].unwrap_or(top)].push(b);
    }
    (0..n_loops).for_each(|l| nodes[loops.all[l].parent.unwrap_or(top)].push(n + l));
    // The node of a region that contains a block, if one does.
    let node_in = |region: usize, b: usize| -> Option<usize> {
        let mut node = b;
        let mut at = loops.of[b];
        while at.unwrap_or(top) != region {
            node = n + at?;
            at = loops.all[at?].parent;
        }
        Some(node)
    };
    let mut node_succs: Vec<Vec<usize>> = vec![Vec::new(); n + n_loops];
    let mut order_succs = node_succs.clone();
    let mut leaves = vec![false; n + n_loops];
    for b in (0..n).filter(|&b| idom[b] != NONE) {
        for &s in &succs[b] {
            // Blocks that end the program are executed at once, so they do not count for post-dominance.
            let counts = !ends[s] || ends[b];
            // The regions that the edge leaves, then the one that it stays in.
            let mut region = loops.of[b];
            let is_back = |l: usize| loops.all[l].header == s;
            while let Some(l) = region
                && (!loops.contains(l, s) || is_back(l))
            {
                if let Some(node) = node_in(l, b) {
                    leaves[node] |= counts;
                }
                if is_back(l) {
                    break;
                }
                region = loops.all[l].parent;
            }
            if region.is_some_and(is_back) {
                continue;
            }
            let region = region.unwrap_or(top);
            if let (Some(from), Some(to)) = (node_in(region, b), node_in(region, s)) {
                order_succs[from].push(to);
                if counts {
                    node_succs[from].push(to);
                }
            }
        }
    }
    let returns = (0..n).find(|&b| idom[b] != NONE && matches!(function.blocks[b].term, Terminator::Return(_)));
    let mut node_ipdom = vec![NONE; n + n_loops];
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let mut ids = vec![NONE; n + n_loops];
    for (region, own) in nodes.iter().enumerate() {
        let entry = if region == top { 0 } else { loops.all[region].header };
        let last = if region == top { returns } else { Some(loops.all[region].latch) };
        let last = last.and_then(|b| node_in(region, b));
        own.iter().enumerate().for_each(|(i, &node)| ids[node] = i);
        let of = |succs: &[Vec<usize>]| -> Vec<Vec<usize>> {
            own.iter().map(|&node| succs[node].iter().map(|&s| ids[s]).collect()).collect()
        };
        let mut post = of(&node_succs);
        let exit = post.len();
        post.push(Vec::new());
        for (i, &node) in own.iter().enumerate() {
            let is_end = node < n && ends[node];
            if leaves[node] || post[i].is_empty() && !is_end {
                post[i].push(exit);
            }
        }
        for (i, &d) in graph::post_dominators(&post, exit).iter().enumerate().take(exit) {
            if d != NONE && d != exit {
                node_ipdom[own[i]] = own[d];
            }
        }
        let mut local = of(&order_succs);
        if let Some(last) = last.map(|l| ids[l]) {
            for (i, list) in local.iter_mut().enumerate() {
                if list.is_empty() && i != last {
                    list.push(last);
                }
            }
        }
        let root = node_in(region, entry).map_or(0, |e| ids[e]);
        let is_end: Vec<bool> = own.iter().map(|&node| node < n && ends[node]).collect();
        orders.push(compact(&local, root, &is_end).into_iter().map(|i| own[i]).collect());
    }
    // Replaces nodes of inner loops by the blocks of these.
    let mut order = Vec::with_capacity(n);
    let mut stack: Vec<(usize, usize)> = vec![(top, 0)];
    while let Some(&mut (region, ref mut next)) = stack.last_mut() {
        match orders[region].get(*next) {
            Some(&node) => {
                *next += 1;
                if node < n { order.push(node) } else { stack.push((node - n, 0)) }
            }
            None => drop(stack.pop()),
        }
    }
    (node_succs, node_ipdom, order)
}

/// A topological order of an acyclic graph in which the nodes that a node dominates follow it; ends come first.
fn compact(succs: &[Vec<usize>], root: usize, is_end: &[bool]) -> Vec<usize> {
    let idom = graph::dominators(succs, root);
    // Among nodes without order, those that dominate less come first: fewer lanes wait meanwhile.
    let mut sizes = vec![1; succs.len()];
    for &n in graph::postorder(succs, root).iter().filter(|&&n| n != root) {
        sizes[idom[n]] += sizes[n];
    }
    let mut succs = succs.to_vec();
    succs.iter_mut().for_each(|list| list.sort_by_key(|&s| std::cmp::Reverse(sizes[s])));
    let mut rpo = graph::postorder(&succs, root);
    rpo.reverse();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); succs.len()];
    for &n in rpo.iter().rev().filter(|&&n| n != root) {
        children[idom[n]].push(n);
    }
    children.iter_mut().for_each(|list| list.sort_by_key(|&n| is_end[n]));
    let (mut order, mut stack) = (Vec::new(), vec![root]);
    while let Some(n) = stack.pop() {
        order.push(n);
        stack.extend(&children[n]);
    }
    order
}

fn times(up: &[usize], root: usize) -> Vec<(usize, usize)> {
    let mut forest = up.to_vec();
    forest[root] = NONE;
    let mut times = times_of_forest(&forest);
    // Unreachable nodes dominate nothing.
    for (b, &d) in up.iter().enumerate() {
        if d == NONE {
            times[b] = (NONE, 0);
        }
    }
    times
}

/// Entry and exit times of a walk over the trees that the parents in `up` describe.
fn times_of_forest(up: &[usize]) -> Vec<(usize, usize)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); up.len()];
    for (b, &d) in up.iter().enumerate().filter(|(_, d)| **d != NONE) {
        children[d].push(b);
    }
    let mut times = vec![(0, 0); up.len()];
    let mut time = 0;
    for root in (0..up.len()).filter(|&b| up[b] == NONE) {
        let mut stack = vec![(root, 0)];
        while let Some(&mut (b, ref mut next)) = stack.last_mut() {
            if *next == 0 {
                time += 1;
                times[b].0 = time;
            }
            match children[b].get(*next) {
                Some(&child) => {
                    *next += 1;
                    stack.push((child, 0));
                }
                None => {
                    time += 1;
                    times[b].1 = time;
                    stack.pop();
                }
            }
        }
    }
    times
}

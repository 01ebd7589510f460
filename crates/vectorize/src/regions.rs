//! Facts about the control flow of a prepared function: an order of its blocks in which loops, and what a block dominates
//! in its loop, stand together; dominators, post-dominators; which blocks the same lanes come to.

use crate::prepare::{Loops, successors};
use nyala_base::graph::{self, NONE};
use nyala_flat::{Function, Terminator};

pub struct Regions {
    pub loops: Loops,
    pub succs: Vec<Vec<usize>>,
    pub preds: Vec<Vec<usize>>,
    /// Reachable blocks: an edge leads back only to the header of a loop around it.
    pub order: Vec<usize>,
    /// Positions in `order`; `NONE` where unreachable.
    pub position: Vec<usize>,
    pub idom: Vec<usize>,
    /// Immediate post-dominators. Blocks that only lead to ones that cannot be reached have none.
    pub ipdom: Vec<usize>,
    /// Entry and exit times of a walk over the dominator tree.
    times: Vec<(usize, usize)>,
    post_times: Vec<(usize, usize)>,
}

impl Regions {
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
        // What ends the program stands in the innermost loop that all ways to it come from.
        for b in graph::postorder(&succs, 0).into_iter().rev().filter(|&b| ends[b] && b != 0) {
            let mut own = loops.of[preds[b][0]];
            while let Some(l) = own
                && !preds[b].iter().all(|&p| loops.contains(l, p))
            {
                own = loops.all[l].parent;
            }
            loops.of[b] = own;
        }
        let ipdom = post_dominators(function, &succs, &ends);
        let order = order(function, &loops, &succs, &idom);
        let mut position = vec![NONE; n];
        order.iter().enumerate().for_each(|(i, &b)| position[b] = i);
        let times = times(&idom, 0);
        let post_times = times_of_forest(&ipdom);
        Regions { loops, succs, preds, order, position, idom, ipdom, times, post_times }
    }

    pub fn dominates(&self, a: usize, b: usize) -> bool {
        self.times[a].0 <= self.times[b].0 && self.times[b].1 <= self.times[a].1
    }

    pub fn post_dominates(&self, a: usize, b: usize) -> bool {
        self.post_times[a].0 <= self.post_times[b].0 && self.post_times[b].1 <= self.post_times[a].1
    }

    pub fn is_back_edge(&self, from: usize, to: usize) -> bool {
        self.loops.of[to].is_some_and(|l| self.loops.all[l].header == to && self.loops.contains(l, from))
    }

    /// Where edges out of a loop lead, without what ends the program there.
    pub fn exits(&self, l: usize) -> Vec<usize> {
        let blocks = self.order.iter().filter(|&&b| self.loops.contains(l, b));
        let mut exits: Vec<usize> =
            blocks.flat_map(|&b| &self.succs[b]).copied().filter(|&s| !self.loops.contains(l, s)).collect();
        exits.sort_unstable();
        exits.dedup();
        exits
    }

    /// A block further up, of the same loop, that is executed by the same lanes as often, if there is one.
    pub fn equivalent_above(&self, b: usize) -> Option<usize> {
        let own = self.loop_around(b);
        let mut a = self.idom[b];
        while a != 0 && self.loops.of[a] != own {
            a = self.idom[a];
        }
        (self.loops.of[a] == own && a != b && self.post_dominates(b, a)).then_some(a)
    }

    /// The loop in which a block, or the loop that it is the header of, stands.
    pub fn loop_around(&self, b: usize) -> Option<usize> {
        let l = self.loops.of[b]?;
        if self.loops.all[l].header == b { self.loops.all[l].parent } else { Some(l) }
    }
}

/// Blocks from which every way leads to an end that cannot be reached.
fn ends(function: &Function, succs: &[Vec<usize>], preds: &[Vec<usize>]) -> Vec<bool> {
    let mut ends = vec![false; succs.len()];
    let mut left: Vec<usize> = succs.iter().map(Vec::len).collect();
    let is_end = |b: &usize| matches!(function.blocks[*b].term, Terminator::Unreachable);
    let mut work: Vec<usize> = (0..succs.len()).filter(is_end).collect();
    while let Some(b) = work.pop() {
        ends[b] = true;
        for &p in &preds[b] {
            left[p] -= 1;
            if left[p] == 0 {
                work.push(p);
            }
        }
    }
    ends
}

fn post_dominators(function: &Function, succs: &[Vec<usize>], ends: &[bool]) -> Vec<usize> {
    let exit = succs.len();
    let mut live: Vec<Vec<usize>> =
        succs.iter().map(|list| list.iter().copied().filter(|&s| !ends[s]).collect()).collect();
    live.push(Vec::new());
    for (b, block) in function.blocks.iter().enumerate() {
        if matches!(block.term, Terminator::Return(_)) {
            live[b].push(exit);
        }
    }
    if !ends[0] {
        graph::connect_to_exit(&mut live, 0, exit);
    }
    let mut ipdom = graph::post_dominators(&live, exit);
    ipdom.truncate(exit);
    ipdom.iter_mut().filter(|d| **d == exit).for_each(|d| *d = NONE);
    ipdom
}

/// Loops and, within each, what a block dominates stand together; the latch of a loop and the return stand last.
fn order(function: &Function, loops: &Loops, succs: &[Vec<usize>], idom: &[usize]) -> Vec<usize> {
    let n = succs.len();
    let n_loops = loops.all.len();
    // Node of a block in the graph of a region: itself, or `n + l` for an inner loop.
    let top = n_loops;
    let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); n_loops + 1];
    let around = |l: usize| loops.all[l].parent.unwrap_or(top);
    for b in (0..n).filter(|&b| idom[b] != NONE) {
        nodes[loops.of[b].unwrap_or(top)].push(b);
    }
    (0..n_loops).for_each(|l| nodes[around(l)].push(n + l));
    // The region's node that holds a block, if one does.
    let node_in = |region: usize, b: usize| -> Option<usize> {
        let mut inner = None;
        let mut at = loops.of[b];
        while at.unwrap_or(top) != region {
            inner = Some(at?);
            at = loops.all[at?].parent;
        }
        Some(inner.map_or(b, |l| n + l))
    };
    let mut edges: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n_loops + 1];
    for b in (0..n).filter(|&b| idom[b] != NONE) {
        for &s in &succs[b] {
            // The innermost region that holds both.
            let mut region = loops.of[s];
            if let Some(l) = region
                && loops.all[l].header == s
            {
                if loops.contains(l, b) {
                    continue;
                }
                region = loops.all[l].parent;
            }
            let region = region.unwrap_or(top);
            if let (Some(from), Some(to)) = (node_in(region, b), node_in(region, s)) {
                edges[region].push((from, to));
            }
        }
    }
    let returns = (0..n).find(|&b| idom[b] != NONE && matches!(function.blocks[b].term, Terminator::Return(_)));
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for region in 0..=n_loops {
        let entry = if region == top { 0 } else { loops.all[region].header };
        let entry_node = node_in(region, entry).unwrap_or(entry);
        let last = if region == top { returns } else { Some(loops.all[region].latch) };
        let last = last.and_then(|b| node_in(region, b));
        let mut ids: rustc_hash::FxHashMap<usize, usize> = rustc_hash::FxHashMap::default();
        ids.extend(nodes[region].iter().enumerate().map(|(i, &node)| (node, i)));
        let mut local: Vec<Vec<usize>> = vec![Vec::new(); nodes[region].len()];
        for (from, to) in &edges[region] {
            if from != to
                && let (Some(&f), Some(&t)) = (ids.get(from), ids.get(to))
            {
                local[f].push(t);
            }
        }
        if let Some(last) = last.and_then(|l| ids.get(&l).copied()) {
            for (i, list) in local.iter_mut().enumerate() {
                if list.is_empty() && i != last {
                    list.push(last);
                }
            }
        }
        let Some(&root) = ids.get(&entry_node) else {
            orders.push(Vec::new());
            continue;
        };
        orders.push(compact(&local, root).into_iter().map(|i| nodes[region][i]).collect());
    }
    // Inner loops take the place of their nodes.
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
    order
}

/// A topological order of an acyclic graph in which what a node dominates follows it.
fn compact(succs: &[Vec<usize>], root: usize) -> Vec<usize> {
    let idom = graph::dominators(succs, root);
    let mut rpo = graph::postorder(succs, root);
    rpo.reverse();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); succs.len()];
    for &n in rpo.iter().rev().filter(|&&n| n != root) {
        children[idom[n]].push(n);
    }
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
    // Unreachable ones dominate nothing.
    for (b, &d) in up.iter().enumerate() {
        if d == NONE {
            times[b] = (NONE, 0);
        }
    }
    times
}

/// Entry and exit times of a walk over trees that are given by parents.
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

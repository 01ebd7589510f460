//! Algorithms over directed graphs given as successor lists: `succs[n]` are the successors of node `n`.

/// The number that stands for no node.
pub const NONE: usize = usize::MAX;

/// Nodes reachable from `entry` in postorder: each after its descendants in a depth-first walk.
pub fn postorder(succs: &[Vec<usize>], entry: usize) -> Vec<usize> {
    let mut seen = vec![false; succs.len()];
    let mut order = Vec::new();
    walk(succs, entry, &mut seen, &mut order);
    order
}

/// A depth-first walk over nodes not seen yet; appends them in postorder.
fn walk(succs: &[Vec<usize>], entry: usize, seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[entry], true) {
        return;
    }
    let mut stack = vec![(entry, 0)];
    while let Some((n, i)) = stack.last_mut() {
        match succs[*n].get(*i) {
            Some(&next) => {
                *i += 1;
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push((next, 0));
                }
            }
            None => {
                order.push(*n);
                stack.pop();
            }
        }
    }
}

pub fn reversed(succs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut preds = vec![Vec::new(); succs.len()];
    for (n, list) in succs.iter().enumerate() {
        for &s in list {
            preds[s].push(n);
        }
    }
    preds
}

/// For each node reachable from `entry` whether it reaches itself.
pub fn in_cycles(succs: &[Vec<usize>], entry: usize) -> Vec<bool> {
    let preds = reversed(succs);
    let mut group = vec![NONE; succs.len()];
    let mut is_done: Vec<bool> = vec![true; succs.len()];
    let order = postorder(succs, entry);
    order.iter().for_each(|&n| is_done[n] = false);
    // In reverse postorder, walks against the edges find the nodes that reach each other (Kosaraju).
    for &root in order.iter().rev() {
        let mut members = Vec::new();
        walk(&preds, root, &mut is_done, &mut members);
        members.iter().for_each(|&n| group[n] = root);
    }
    let mut found = vec![false; succs.len()];
    for &n in &order {
        if succs[n].iter().any(|&s| group[s] == group[n]) {
            found[n] = true;
        }
    }
    found
}

/// Finds strongly connected components. The tables are reused for other parts of the same graph.
#[derive(Default)]
pub struct Components {
    /// The order of discovery, from 1; 0 for nodes not seen yet.
    index: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
}

impl Components {
    /// The components of the subgraph of `nodes`, each after those that it leads to (Tarjan: Depth-First Search and
    /// Linear Graph Algorithms). `succ` gives the `i`-th successor of a node, `inside` tells whether a node is in
    /// `nodes`.
    pub fn find(
        &mut self,
        nodes: &[usize],
        succ: impl Fn(usize, usize) -> Option<usize>,
        inside: impl Fn(usize) -> bool,
    ) -> Vec<Vec<usize>> {
        let Components { index, low, on_stack } = self;
        let n = nodes.iter().max().map_or(0, |n| n + 1);
        if index.len() < n {
            index.resize(n, 0);
            low.resize(n, 0);
            on_stack.resize(n, false);
        }
        nodes.iter().for_each(|&n| index[n] = 0);
        let (mut next, mut stack, mut components) = (1, Vec::new(), Vec::new());
        // Nodes being visited, with the index of the next successor.
        let mut calls: Vec<(usize, usize)> = Vec::new();
        for &root in nodes {
            if index[root] == 0 {
                calls.push((root, 0));
            }
            while let Some(&mut (n, ref mut at)) = calls.last_mut() {
                if *at == 0 && index[n] == 0 {
                    (index[n], low[n], on_stack[n]) = (next, next, true);
                    next += 1;
                    stack.push(n);
                }
                if let Some(s) = succ(n, *at) {
                    *at += 1;
                    match inside(s) {
                        true if index[s] == 0 => calls.push((s, 0)),
                        true if on_stack[s] => low[n] = low[n].min(index[s]),
                        _ => {}
                    }
                    continue;
                }
                calls.pop();
                if let Some(&(caller, _)) = calls.last() {
                    low[caller] = low[caller].min(low[n]);
                }
                if low[n] == index[n] {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member] = false;
                        component.push(member);
                        if member == n {
                            break;
                        }
                    }
                    components.push(component);
                }
            }
        }
        components
    }
}

/// For each node whether it is reachable from one of the nodes `from`.
pub fn reachable(succs: &[Vec<usize>], from: &[usize]) -> Vec<bool> {
    let mut seen = vec![false; succs.len()];
    from.iter().for_each(|&n| walk(succs, n, &mut seen, &mut Vec::new()));
    seen
}

/// Immediate dominator of each node; the entry's is itself; [`NONE`] where unreachable.
pub fn dominators(succs: &[Vec<usize>], entry: usize) -> Vec<usize> {
    dominator_tree(succs.len(), entry, |n, i| succs[n].get(i).copied()).0
}

/// Immediate dominators as in [`dominators`], of a graph with `n_nodes` nodes whose `i`-th successors `succ` gives; and
/// the reachable nodes, each after its dominators.
///
/// The algorithm of Lengauer and Tarjan with path compression only: the time is `O(edges · log nodes)` for every graph.
/// Iterating to a fixed point takes quadratic time for long chains of joins.
pub fn dominator_tree(
    n_nodes: usize,
    entry: usize,
    succ: impl Fn(usize, usize) -> Option<usize>,
) -> (Vec<usize>, Vec<usize>) {
    // Nodes by their depth-first number; from here on, nodes are these numbers.
    let mut number = vec![NONE; n_nodes];
    let (mut order, mut parent) = (Vec::with_capacity(n_nodes), Vec::with_capacity(n_nodes));
    order.push(entry);
    parent.push(NONE);
    number[entry] = 0;
    let mut edges: Vec<(usize, usize)> = Vec::with_capacity(n_nodes);
    let mut stack = vec![(0, 0)];
    while let Some((n, i)) = stack.last_mut() {
        let Some(to) = succ(order[*n], *i) else {
            stack.pop();
            continue;
        };
        *i += 1;
        let from = *n;
        if number[to] == NONE {
            number[to] = order.len();
            order.push(to);
            parent.push(from);
            stack.push((number[to], 0));
        }
        edges.push((from, number[to]));
    }
    let n = order.len();
    let mut first_pred = vec![0; n + 1];
    edges.iter().for_each(|e| first_pred[e.1 + 1] += 1);
    (0..n).for_each(|i| first_pred[i + 1] += first_pred[i]);
    let (mut preds, mut next) = (vec![0; edges.len()], first_pred.clone());
    for (from, to) in edges {
        preds[next[to]] = from;
        next[to] += 1;
    }
    let mut forest =
        Forest { ancestor: vec![NONE; n], label: (0..n).collect(), semi: (0..n).collect(), path: Vec::new() };
    let mut idom = vec![0; n];
    // Lists of nodes by their semi-dominator.
    let (mut bucket, mut rest) = (vec![NONE; n], vec![NONE; n]);
    for w in (1..n).rev() {
        for &v in &preds[first_pred[w]..first_pred[w + 1]] {
            let best = forest.best(v);
            forest.semi[w] = forest.semi[w].min(forest.semi[best]);
        }
        let semi = forest.semi[w];
        rest[w] = std::mem::replace(&mut bucket[semi], w);
        forest.ancestor[w] = parent[w];
        let mut v = std::mem::replace(&mut bucket[parent[w]], NONE);
        while v != NONE {
            let best = forest.best(v);
            idom[v] = if forest.semi[best] < forest.semi[v] { best } else { parent[w] };
            v = rest[v];
        }
    }
    for w in 1..n {
        if idom[w] != forest.semi[w] {
            idom[w] = idom[idom[w]];
        }
    }
    let mut result = vec![NONE; n_nodes];
    (0..n).for_each(|w| result[order[w]] = order[idom[w]]);
    (result, order)
}

/// The part of the depth-first tree that was processed.
struct Forest {
    ancestor: Vec<usize>,
    /// The node with the least semi-dominator on the path to the ancestor.
    label: Vec<usize>,
    semi: Vec<usize>,
    path: Vec<usize>,
}

impl Forest {
    /// The node with the least semi-dominator on the path from `v` to the root of its tree.
    fn best(&mut self, v: usize) -> usize {
        if self.ancestor[v] == NONE {
            return v;
        }
        let mut at = v;
        while self.ancestor[self.ancestor[at]] != NONE {
            self.path.push(at);
            at = self.ancestor[at];
        }
        while let Some(n) = self.path.pop() {
            let above = self.ancestor[n];
            if self.semi[self.label[above]] < self.semi[self.label[n]] {
                self.label[n] = self.label[above];
            }
            self.ancestor[n] = self.ancestor[above];
        }
        self.label[v]
    }
}

/// A tree that finds nearest common ancestors in logarithmic time.
#[derive(Default)]
pub struct Tree {
    /// Depth of each node; 0 for the root and for nodes not in the tree.
    depth: Vec<usize>,
    up: Vec<usize>,
    /// For each node a further ancestor: skew-binary jump pointers.
    jump: Vec<usize>,
}

impl Tree {
    /// Makes a tree from the parent of each node, the root's being itself, and an order with each node after its
    /// parent.
    pub fn new(up: Vec<usize>, order: &[usize]) -> Tree {
        let mut tree = Tree { depth: vec![0; up.len()], jump: up.clone(), up };
        for &n in order.iter().skip(1) {
            tree.hang(n, tree.up[n]);
        }
        tree
    }

    /// A tree with one node, and room for `n`.
    pub fn with_root(root: usize, n: usize) -> Tree {
        Tree { depth: vec![0; n], up: vec![root; n], jump: vec![root; n] }
    }

    /// Puts a node without children into the tree, under a node that is in it.
    pub fn hang(&mut self, n: usize, p: usize) {
        self.up[n] = p;
        self.depth[n] = self.depth[p] + 1;
        let (q, r) = (self.jump[p], self.jump[self.jump[p]]);
        self.jump[n] = if self.depth[p] - self.depth[q] == self.depth[q] - self.depth[r] { r } else { p };
    }

    pub fn depth(&self, n: usize) -> usize {
        self.depth.get(n).copied().unwrap_or(0)
    }

    pub fn parent(&self, n: usize) -> usize {
        self.up[n]
    }

    /// The nearest common ancestor of two nodes.
    pub fn meet(&self, a: usize, b: usize) -> usize {
        let (mut a, mut b) = (self.climb(a, self.depth[b]), self.climb(b, self.depth[a]));
        while a != b {
            (a, b) = match self.jump[a] == self.jump[b] {
                true => (self.up[a], self.up[b]),
                false => (self.jump[a], self.jump[b]),
            };
        }
        a
    }

    /// The ancestor at this depth; the node itself if it is not deeper.
    fn climb(&self, mut n: usize, depth: usize) -> usize {
        while self.depth[n] > depth {
            let jump = self.jump[n];
            n = if self.depth[jump] >= depth { jump } else { self.up[n] };
        }
        n
    }
}

/// Adds edges to `exit` such that each node reachable from `entry` reaches it, none of them superfluous: one for each
/// group of nodes that reach each other and nothing else (`002` 10.6.4, without backtracking).
pub fn connect_to_exit(succs: &mut [Vec<usize>], entry: usize, exit: usize) {
    let order = postorder(succs, entry);
    let preds = reversed(succs);
    let mut reaches = vec![false; succs.len()];
    walk(&preds, exit, &mut reaches, &mut Vec::new());
    // For nodes that do not reach the exit, in reverse postorder: each walk against the edges finds one group of nodes
    // that reach each other (Kosaraju). A group that no edge leaves gets an edge to the exit.
    let mut group = vec![NONE; succs.len()];
    for &root in order.iter().rev().filter(|&&n| !reaches[n]) {
        let mut members = Vec::new();
        let mut stack = vec![root];
        while let Some(n) = stack.pop() {
            if group[n] == NONE && !reaches[n] {
                group[n] = root;
                members.push(n);
                stack.extend(&preds[n]);
            }
        }
    }
    let mut leaves = vec![true; succs.len()];
    for &n in order.iter().filter(|&&n| !reaches[n]) {
        if succs[n].iter().any(|&s| group[s] != group[n]) {
            leaves[group[n]] = false;
        }
    }
    let mut done = vec![false; succs.len()];
    for &n in order.iter().filter(|&&n| !reaches[n]) {
        if leaves[group[n]] && !std::mem::replace(&mut done[group[n]], true) {
            succs[n].push(exit);
        }
    }
}

/// Immediate post-dominator of each node; that of `exit` is itself; [`NONE`] where the exit cannot be reached.
pub fn post_dominators(succs: &[Vec<usize>], exit: usize) -> Vec<usize> {
    dominators(&reversed(succs), exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_come_after_those_that_they_lead_to() {
        // 0 → 1 ⇄ 2 → 3 ⇄ 4, 5 → 5, 2 → 0 when it is inside.
        let succs: [&[usize]; 6] = [&[1], &[2], &[1, 3, 0], &[4], &[3], &[5]];
        let succ = |n: usize, i: usize| succs[n].get(i).copied();
        let mut search = Components::default();
        assert_eq!(search.find(&[0, 1, 2, 3, 4, 5], succ, |_| true), [vec![4, 3], vec![2, 1, 0], vec![5]]);
        // Again, without the first node.
        assert_eq!(search.find(&[5, 1, 2, 3, 4], succ, |n| n > 0), [vec![5], vec![4, 3], vec![2, 1]]);
        assert!(search.find(&[], succ, |_| false).is_empty());
    }

    #[test]
    fn components_of_long_paths_need_no_stack() {
        let n = 1_000_000;
        let nodes: Vec<usize> = (0..n).collect();
        let succ = |k: usize, i: usize| (i == 0).then_some((k + 1) % n);
        assert_eq!(Components::default().find(&nodes, succ, |_| true).len(), 1);
    }

    /// Checks a graph whose nodes are letters; `.` is the exit.
    fn check(edges: &str, connected: &str, post: &str) {
        let node = |c: char| if c == '.' { 0 } else { c as usize - 'A' as usize + 1 };
        let name = |n: usize| if n == 0 { '.' } else { (b'A' + n as u8 - 1) as char };
        let n = edges.chars().filter(|c| c.is_ascii_alphabetic()).map(node).max().unwrap_or(0) + 1;
        let mut succs = vec![Vec::new(); n];
        for edge in edges.split_whitespace() {
            let mut ends = edge.chars().map(node);
            let (Some(a), Some(b)) = (ends.next(), ends.next()) else { panic!("{edge}") };
            succs[a].push(b);
        }
        let before = succs.clone();
        connect_to_exit(&mut succs, 1, 0);
        let mut added = String::new();
        for (n, list) in succs.iter().enumerate() {
            list[before[n].len()..].iter().for_each(|&s| added.extend([name(n), name(s), ' ']));
        }
        assert_eq!(added.trim(), connected, "{edges}");
        let found: Vec<String> = post_dominators(&succs, 0)
            .iter()
            .enumerate()
            .skip(1)
            .map(|(n, &p)| format!("{}{}", name(n), if p == NONE { '?' } else { name(p) }))
            .collect();
        assert_eq!(found.join(" "), post, "{edges}");
    }

    #[test]
    fn finds_post_dominators() {
        check("A. AB", "B.", "A. B.");
        check("AB AC BD CD D.", "", "AD BD CD D.");
        check("AB BC CB BD D.", "", "AB BD CB D.");
    }

    #[test]
    fn finds_what_reaches_itself() {
        let succs = [vec![1], vec![2, 4], vec![3], vec![2, 5], vec![4], vec![], vec![0]];
        assert_eq!(in_cycles(&succs, 0), [false, false, true, true, true, false, false]);
        assert_eq!(reachable(&succs, &[3, 6]), [true, true, true, true, true, true, true]);
        assert_eq!(reachable(&succs, &[3]), [false, false, true, true, false, true, false]);
    }

    /// Compares with the definition: a node is dominated by the nodes without which it is unreachable.
    #[test]
    fn finds_dominators_of_random_graphs() {
        let mut state = 12345u32;
        let mut random = |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % n
        };
        for n in (1..9).cycle().take(2000) {
            let succs: Vec<Vec<usize>> = (0..n).map(|_| (0..random(4)).map(|_| random(n)).collect()).collect();
            let idom = dominators(&succs, 0);
            let reached_without = |removed: usize| {
                let mut seen = vec![false; n];
                seen[removed] = true;
                walk(&succs, 0, &mut seen, &mut Vec::new());
                seen
            };
            let mut reached = vec![false; n];
            walk(&succs, 0, &mut reached, &mut Vec::new());
            for m in 0..n {
                if !reached[m] || m == 0 {
                    assert_eq!(idom[m], if m == 0 { 0 } else { NONE }, "{m} in {succs:?}");
                    continue;
                }
                let strict: Vec<usize> = (0..n).filter(|&d| d != m && (d == 0 || !reached_without(d)[m])).collect();
                let mut found = Vec::new();
                let mut at = m;
                while at != 0 {
                    at = idom[at];
                    found.push(at);
                }
                found.sort_unstable();
                assert_eq!(found, strict, "of {m} in {succs:?}");
            }
            let (idom, order) = dominator_tree(n, 0, |n, i| succs[n].get(i).copied());
            let above = |mut m: usize| {
                let mut all = vec![m];
                while m != 0 {
                    m = idom[m];
                    all.push(m);
                }
                all
            };
            let tree = Tree::new(idom.clone(), &order);
            for (&a, &b) in order.iter().flat_map(|a| order.iter().map(move |b| (a, b))) {
                let common = above(a).into_iter().find(|m| above(b).contains(m));
                assert_eq!(Some(tree.meet(a, b)), common, "of {a} and {b} in {succs:?}");
            }
        }
    }

    /// `002` Figure 10.3: walks that reach `C` before `E` would add a superfluous edge.
    #[test]
    fn connects_what_does_not_reach_the_exit() {
        check("AB BC CB BD DE ED", "E.", "AB BD CB DE E.");
        check("AB AC BD DB CE EC", "D. E.", "A. BD CE D. E.");
        check("AB BA", "B.", "AB B.");
        check("AB BC CC AD D.", "C.", "A. BC C. D.");
        check("AA", "A.", "A.");
    }
}

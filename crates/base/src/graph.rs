//! Algorithms over directed graphs given as successor lists: `succs[n]` are the successors of node `n`.

/// Stands for no node.
pub const NONE: usize = usize::MAX;

/// Nodes reachable from `entry`, each after those that a depth-first walk finds below it.
pub fn postorder(succs: &[Vec<usize>], entry: usize) -> Vec<usize> {
    let mut seen = vec![false; succs.len()];
    let mut order = Vec::new();
    walk(succs, entry, &mut seen, &mut order);
    order
}

/// A depth-first walk over what was not seen; appends nodes in postorder.
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

/// Immediate dominator of each node, the entry's is itself; [`NONE`] where unreachable.
pub fn dominators(succs: &[Vec<usize>], entry: usize) -> Vec<usize> {
    let mut rpo = postorder(succs, entry);
    rpo.reverse();
    let mut position = vec![NONE; succs.len()];
    for (i, &n) in rpo.iter().enumerate() {
        position[n] = i;
    }
    let preds = reversed(succs);
    let mut idom = vec![NONE; succs.len()];
    idom[entry] = entry;
    let mut changed = true;
    while changed {
        changed = false;
        for &n in &rpo[1..] {
            let mut new = NONE;
            for &p in preds[n].iter().filter(|&&p| idom[p] != NONE) {
                if new == NONE {
                    new = p;
                    continue;
                }
                let mut at = p;
                while at != new {
                    while position[at] > position[new] {
                        at = idom[at];
                    }
                    while position[new] > position[at] {
                        new = idom[new];
                    }
                }
            }
            changed |= std::mem::replace(&mut idom[n], new) != new;
        }
    }
    idom
}

/// Adds edges to `exit` such that each node reachable from `entry` reaches it, none of them superfluous: one for each
/// group of nodes that reach one another and nothing else (`002` 10.6.4, without backtracking).
pub fn connect_to_exit(succs: &mut [Vec<usize>], entry: usize, exit: usize) {
    let order = postorder(succs, entry);
    let preds = reversed(succs);
    let mut reaches = vec![false; succs.len()];
    walk(&preds, exit, &mut reaches, &mut Vec::new());
    // Of what does not reach the exit, in reverse postorder: walks against the edges end up with one group each, those
    // that only are reached from a group first. The last of what is left lies in a group that nothing leaves.
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

/// Immediate post-dominator of each node, that of `exit` itself; [`NONE`] where the exit is not reached.
pub fn post_dominators(succs: &[Vec<usize>], exit: usize) -> Vec<usize> {
    dominators(&reversed(succs), exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes are letters, `.` is the exit.
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

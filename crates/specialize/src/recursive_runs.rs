//! Finds calls by `@` within the recursion of their callee, which may never end (`000` section 3.3).

use crate::diagnostics::recursive_run;
use crate::facts::is_function;
use nyala_base::{Diagnostic, Id};
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Op, World};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Returns a warning for each such call, in order of discovery.
pub fn recursive_runs(w: &World) -> Vec<Diagnostic> {
    let run_callee = |k: Cont| {
        let mut callee = w.body(k)?.callee;
        let mut run = false;
        while let Some(op @ (Op::Unfold | Op::Run | Op::Hlt)) = w.as_op(callee) {
            run |= op == Op::Run;
            callee = w.args(callee)[0];
        }
        w.as_cont(callee).filter(|_| run)
    };
    if (0..w.n_conts()).all(|k| run_callee(Cont::from_idx(k)).is_none()) {
        return Vec::new();
    }
    let (nest, _) = Nest::of_program(w, &w.roots());
    let mut found = Vec::new();
    for &k in &nest.conts {
        let (Some(callee), Some(body)) = (run_callee(k), w.body(k)) else { continue };
        let Some(path) = path(&nest, callee, k) else { continue };
        let mut cycle: Vec<String> = Vec::new();
        for &step in path.iter().filter(|&&c| c != callee && is_function(w, c) && !w.cont(c).origin.is_none()) {
            let name = format!("`{}`", w.name(step));
            if !cycle.contains(&name) {
                cycle.push(name);
            }
        }
        let data = w.cont(callee);
        let warning = recursive_run::warning(body.origin, w.name(callee), data.origin, &cycle);
        if !found.contains(&warning) {
            found.push(warning);
        }
    }
    found
}

/// A shortest path of references between two continuations, both ends included.
fn path(nest: &Nest, from: Cont, to: Cont) -> Option<Vec<Cont>> {
    let mut came_from: FxHashMap<Cont, Cont> = FxHashMap::default();
    let mut queue = VecDeque::from([from]);
    while let Some(k) = queue.pop_front() {
        if k == to {
            let mut path = vec![k];
            let mut at = k;
            while at != from {
                at = came_from[&at];
                path.push(at);
            }
            path.reverse();
            return Some(path);
        }
        for &r in nest.references(k) {
            if r != from && !came_from.contains_key(&r) {
                came_from.insert(r, k);
                queue.push_back(r);
            }
        }
    }
    None
}

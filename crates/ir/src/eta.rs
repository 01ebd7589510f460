//! Eta reduction: a continuation that only passes its parameters on to another one is replaced by that one.
//!
//! ```text
//! f(m, x, k); cont k(m.1, r) = ret(m.1, r)        becomes        f(m, x, ret)
//! ```
//!
//! This makes a call in tail position a jump, through joins of branches too. A continuation stays if anything else uses
//! one of its parameters: for example its `mem`, used by a load whose result is needed later.

use crate::world::{Cont, Node, Val, World};
use nyala_base::{Id, SideTable};

/// Replaces every continuation that only passes its parameters on, wherever it is a callee or an argument.
pub fn eta_reduce(w: &mut World) {
    let mut resolved: SideTable<Cont, Option<Val>> = SideTable::default();
    let needed = needed_params(w);
    for i in 0..w.n_conts() {
        let k = Cont::from_idx(i);
        w.change_body(k, |w, _, v| match w.node(v) {
            Node::Cont(c) => Some(resolve(w, c, v, &needed, &mut resolved)),
            _ => Some(v),
        });
    }
}

/// The end of the chain of continuations that pass their parameters on, from `k`.
fn resolve(
    w: &World,
    k: Cont,
    v: Val,
    needed: &SideTable<Cont, bool>,
    resolved: &mut SideTable<Cont, Option<Val>>,
) -> Val {
    let mut chain = Vec::new();
    let (mut k, mut v) = (k, v);
    let end = loop {
        if let Some(end) = resolved[k] {
            break end;
        }
        let Some(next) = passes_on(w, k).filter(|_| !needed[k]) else { break v };
        // A cycle of such continuations is an endless loop; it stays one.
        if chain.contains(&k) {
            break v;
        }
        chain.push(k);
        v = next;
        match w.node(v) {
            Node::Cont(c) => k = c,
            _ => break v,
        }
    };
    for k in chain {
        resolved[k] = Some(end);
    }
    end
}

/// Continuations with a parameter that has a use other than as callee or argument of their own body.
fn needed_params(w: &World) -> SideTable<Cont, bool> {
    let mut needed: SideTable<Cont, bool> = SideTable::default();
    let mut conts = w.roots();
    let mut seen: SideTable<Cont, bool> = SideTable::default();
    let mut seen_vals: SideTable<Val, bool> = SideTable::default();
    conts.iter().for_each(|&k| seen[k] = true);
    while let Some(k) = conts.pop() {
        let Some(body) = w.body(k) else { continue };
        let filter = &w.cont(k).filter;
        let in_filter = filter.all.iter().chain(filter.params.iter().flatten());
        // With each value the continuation whose body uses it; `None` for uses in operations, filters and globals.
        let mut work: Vec<(Val, Option<Cont>)> = in_filter.map(|&v| (v, None)).collect();
        work.extend(body.args.iter().chain([&body.callee]).map(|&v| (v, Some(k))));
        while let Some((v, of)) = work.pop() {
            if let Node::Param(p, _) = w.node(v) {
                needed[p] |= of != Some(p);
                continue;
            }
            if std::mem::replace(&mut seen_vals[v], true) {
                continue;
            }
            match w.node(v) {
                Node::Cont(c) if !std::mem::replace(&mut seen[c], true) => conts.push(c),
                Node::Global(g) => work.extend(w.global(g).init.map(|init| (init, None))),
                Node::Op(_) => work.extend(w.args(v).iter().map(|&a| (a, None))),
                _ => {}
            }
        }
    }
    needed
}

/// The callee to which `k` passes exactly its parameters, if it does nothing else.
fn passes_on(w: &World, k: Cont) -> Option<Val> {
    let data = w.cont(k);
    let body = w.body(k)?;
    let own = w.params(k).contains(&body.callee);
    let known_callee = matches!(w.node(body.callee), Node::Cont(_) | Node::Param(..));
    let same = body.args == w.params(k) && w.ty(body.callee) == data.ty;
    let plain = data.filter.is_empty() && *data.linkage == crate::Linkage::Internal;
    (!own && known_callee && same && plain).then_some(body.callee)
}

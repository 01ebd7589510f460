//! Eta reduction: a continuation that only passes its parameters on is what it passes them to.
//!
//! ```text
//! f(m, x, k); cont k(m.1, r) = ret(m.1, r)        becomes        f(m, x, ret)
//! ```
//!
//! It is what makes a call in tail position a jump, through joins of branches too.

use crate::world::{Cont, Node, Val, World};
use nyala_base::{Id, SideTable};

/// Replaces continuations that only pass on, wherever one is a callee or argument.
pub fn eta_reduce(w: &mut World) {
    let mut resolved: SideTable<Cont, Option<Val>> = SideTable::default();
    for i in 0..w.n_conts() {
        let k = Cont::from_idx(i);
        let Some(body) = w.body(k) else { continue };
        let mut new = body.clone();
        for v in new.args.iter_mut().chain([&mut new.callee]) {
            if let Node::Cont(c) = w.node(*v) {
                *v = resolve(w, c, *v, &mut resolved);
            }
        }
        w.cont_mut(k).body = Some(new);
    }
}

/// What the chain of passing on that starts at `k` ends in.
fn resolve(w: &World, k: Cont, v: Val, resolved: &mut SideTable<Cont, Option<Val>>) -> Val {
    let mut chain = Vec::new();
    let (mut k, mut v) = (k, v);
    let end = loop {
        if let Some(end) = resolved[k] {
            break end;
        }
        let Some(next) = passes_on(w, k) else { break v };
        // A cycle of passing on is an endless loop; it stays one.
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

/// What `k` passes exactly its parameters on to.
fn passes_on(w: &World, k: Cont) -> Option<Val> {
    let data = w.cont(k);
    let body = data.body.as_ref()?;
    let own = data.params.contains(&body.callee);
    let known_callee = matches!(w.node(body.callee), Node::Cont(_) | Node::Param(..));
    let same = *body.args == *data.params && w.ty(body.callee) == data.ty;
    let plain = data.filter.is_empty() && data.linkage == crate::Linkage::Internal;
    (!own && known_callee && same && plain).then_some(body.callee)
}

//! The rules of a well-formed graph, checked after every pass in debug builds:
//!
//! 1. Every reachable continuation, except C functions and assembly, has a body; every argument has the type its callee
//!    takes.
//! 2. `mem` is the first parameter of every continuation, and no other parameter has that type.
//! 3. No continuation has a free `mem`; every `mem` is consumed at most once.
//! 4. Filters use their own continuation's parameters only.
//! 5. Nothing is free in a root: every value is in scope where it is used.

use crate::builtins::Builtin;
use crate::facts::Nest;
use crate::ops::Effect;
use crate::types::{Prim, TyKind};
use crate::world::{Cont, Node, Val, World};
use rustc_hash::FxHashMap;

/// Checks the graph reachable from `roots`. Each finding names its continuation; empty if the graph is well-formed.
pub fn verify(w: &World, roots: &[Cont]) -> Vec<String> {
    let (nest, _) = Nest::of_program(w, roots);
    let mut faults = Vec::new();
    for &k in &nest.conts {
        let name = format!("{k} `{}`", w.name(k));
        let mut fault = |text: String| faults.push(format!("{name}: {text}"));
        let mem = w.types.mem();
        for (i, &p) in w.params(k).iter().enumerate() {
            if (w.ty(p) == mem) != (i == 0) {
                fault(format!("parameter {i} is {}", w.types.display(w.ty(p))));
            }
        }
        let Some(body) = w.body(k) else {
            if !w.cont(k).linkage.is_external() {
                fault("has no body".into());
            }
            continue;
        };
        check_call(w, body.callee, body.args, &mut fault);
        if let Some(&v) = nest.free(k).iter().find(|&&v| w.ty(v) == mem) {
            fault(format!("uses the mem {v} of {:?}", nest.owner(v)));
        }
        let mut consumed: FxHashMap<Val, u32> = FxHashMap::default();
        for &op in nest.ops(k) {
            if w.as_op(op).is_some_and(|o| o.effect() == Effect::Write) {
                *consumed.entry(w.args(op)[0]).or_default() += 1;
            }
        }
        if let Some(&m) = body.args.first() {
            *consumed.entry(m).or_default() += 1;
        }
        if let Some((m, n)) = consumed.iter().filter(|(_, n)| **n > 1).min() {
            fault(format!("consumes the mem {m} {n} times"));
        }
        check_filter(w, k, &mut fault);
    }
    for &k in roots {
        if let Some(v) = nest.free(k).first() {
            faults.push(format!("root {k} `{}` uses {v}, out of scope", w.name(k)));
        }
    }
    faults
}

fn check_call(w: &World, callee: Val, args: &[Val], fault: &mut impl FnMut(String)) {
    let tys: Vec<_> = args.iter().map(|&a| w.ty(a)).collect();
    let shown = || tys.iter().map(|&t| w.types.display(t)).collect::<Vec<_>>().join(", ");
    if let Node::Builtin(b) = w.node(callee) {
        let is_block = |i: usize| w.types.cn_params(tys[i]).is_some_and(|p| p.len() == 1);
        // A function without results.
        let is_body = |i: usize, takes: &[Prim]| match w.types.cn_params(tys[i]) {
            Some([_, own @ .., ret]) => {
                own.iter().map(|&t| w.types.as_prim(t)).eq(takes.iter().map(|&p| Some(p)))
                    && w.types.cn_params(*ret).is_some_and(|p| p.len() == 1)
            }
            _ => false,
        };
        let is_prim = |i: usize, prim: Prim| w.types.as_prim(tys[i]) == Some(prim);
        let ok = tys.first() == Some(&w.types.mem())
            && match b {
                Builtin::Branch => args.len() == 4 && tys[1] == w.types.bool() && is_block(2) && is_block(3),
                Builtin::PeInfo => args.len() == 4 && is_block(3),
                Builtin::StaticAssert => args.len() == 4 && tys[1] == w.types.bool() && is_block(3),
                Builtin::Limited => args.len() == 4 && tys[2] == w.types.bool() && is_block(3),
                Builtin::Unreachable => args.len() == 1,
                Builtin::Parallel => {
                    args.len() == 6
                        && is_prim(1, Prim::I32)
                        && is_prim(2, Prim::I64)
                        && is_prim(3, Prim::I64)
                        && is_body(4, &[Prim::I64, Prim::I64])
                        && is_block(5)
                }
                Builtin::Vectorize => {
                    let index = tys.get(3).and_then(|&t| w.types.as_prim(t)).filter(|p| p.is_int());
                    args.len() == 7
                        && is_prim(1, Prim::I32)
                        && is_prim(2, Prim::I32)
                        && tys[3] == tys[4]
                        && index.is_some_and(|index| is_body(5, &[index]))
                        && is_block(6)
                }
                Builtin::Spawn => args.len() == 4 && is_prim(1, Prim::I32) && is_body(2, &[]) && is_block(3),
                Builtin::Launch => {
                    args.len() == 11 && (1..9).all(|i| is_prim(i, Prim::I32)) && is_body(9, &[]) && is_block(10)
                }
            };
        if !ok {
            fault(format!("`{}` cannot take ({})", b.name(), shown()));
        }
        return;
    }
    match w.types.kind(w.ty(callee)) {
        TyKind::Cn(params) if **params == *tys => {}
        _ => fault(format!("calls {} with ({})", w.types.display(w.ty(callee)), shown())),
    }
}

fn check_filter(w: &World, k: Cont, fault: &mut impl FnMut(String)) {
    let filter = &w.cont(k).filter;
    let mut work: Vec<Val> = filter.all.iter().chain(filter.params.iter().flatten()).copied().collect();
    if work.iter().any(|&f| w.ty(f) != w.types.bool()) {
        fault("has a filter that is no bool".into());
    }
    while let Some(v) = work.pop() {
        match w.node(v) {
            Node::Param(p, _) if p != k => fault(format!("its filter uses {v} of {p}")),
            Node::Op(op) if op.effect() != Effect::Total => fault(format!("its filter has an effect, `{}`", op.name())),
            _ => work.extend(w.args(v)),
        }
    }
}

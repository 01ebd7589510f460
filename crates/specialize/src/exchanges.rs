//! Operations across lanes in the source graph: which continuations have them, and which functions that come from outside
//! a continuation's code uses. Separate from `facts` since calls are asked about it one by one (`eval/meeting.rs`).

use crate::facts::Facts;
use nyala_ir::{Body, Builtin, Cont, Effect, LaneOp, Linkage, Node, Op, Val, World};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Positions of parts in an aggregate, from the outermost.
pub type Path = SmallVec<[u64; 2]>;

/// A function that code uses and that comes from outside of it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Use {
    pub from: From,
    pub path: Path,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum From {
    /// By position among the free values of the continuation.
    Free(usize),
    Param(usize),
    /// Out of memory that may have functions from which an operation across lanes can be reached.
    Memory,
}

/// Whether this is an operation in which lanes wait for each other.
pub fn exchanges(w: &World, k: Cont) -> bool {
    let Linkage::Foreign(symbol) = &*w.cont(k).linkage else { return false };
    LaneOp::of_symbol(symbol).is_some_and(|(op, scope)| matches!(op.effect(scope), Effect::Convergent(_)))
}

/// The callee of a body if it is a continuation, without what stands before it.
fn known_callee(w: &World, body: Body) -> Option<Cont> {
    let mut callee = body.callee;
    while let Some(Op::Unfold | Op::Run | Op::Hlt) = w.as_op(callee) {
        callee = w.args(callee)[0];
    }
    w.as_cont(callee)
}

/// The arguments of a body that the same lanes may call. `launch`, `vectorize` and others run their bodies elsewhere, and so
/// do functions that only pass them on to these.
fn args_run_here<'w>(w: &'w World, facts: &Facts, body: Body<'w>) -> impl Iterator<Item = Val> + use<'w> {
    let n = body.args.len();
    let is_apart = matches!(
        w.node(body.callee),
        Node::Builtin(Builtin::Launch | Builtin::Vectorize | Builtin::Parallel | Builtin::Spawn)
    );
    let mask = match known_callee(w, body) {
        Some(k) if w.body(k).is_some() => facts.runs_here[k],
        _ => None,
    };
    let runs = move |i: usize| match mask {
        Some(mask) => i >= 64 || mask >> i & 1 == 1,
        None => !is_apart || i + 1 == n,
    };
    body.args.iter().enumerate().filter(move |(i, _)| runs(*i)).map(|(_, &v)| v)
}

/// Whether `k` refers to `body` only to run it elsewhere.
pub fn runs_elsewhere(w: &World, facts: &Facts, k: Cont, body: Cont) -> bool {
    let is_it = |v: Val| w.as_cont(v) == Some(body);
    w.body(k).is_some_and(|b| b.args.iter().any(|&v| is_it(v)) && !args_run_here(w, facts, b).any(is_it))
}

/// The parameters of `k` that its lanes may call, a bit each; those beyond 64 always count.
pub fn run_here(w: &World, facts: &Facts, k: Cont) -> u64 {
    let param = |u: Use| match u.from {
        From::Param(i) if i < 64 => 1 << i,
        _ => 0,
    };
    uses(w, facts, k).into_iter().map(param).fold(0, |all, bit| all | bit)
}

/// The functions from outside that are used in `k`, or in code in it, by the same lanes.
pub fn uses(w: &World, facts: &Facts, k: Cont) -> Vec<Use> {
    let free = facts.nest.free(k);
    let position = |v: Val| match w.node(v) {
        Node::Param(of, i) if of == k => Some(From::Param(i as usize)),
        _ => free.iter().position(|&f| f == v).map(From::Free),
    };
    let mut found: Vec<Use> = Vec::new();
    let mut entered: FxHashSet<Cont> = FxHashSet::from_iter([k]);
    let mut conts = vec![k];
    let mut seen: FxHashSet<Val> = FxHashSet::default();
    let mut work: Vec<Val> = Vec::new();
    while let Some(c) = conts.pop() {
        let body = w.body(c);
        work.extend(body.iter().map(|body| body.callee));
        work.extend(body.iter().flat_map(|body| args_run_here(w, facts, *body)));
        work.extend(facts.nest.ops(c).iter().flat_map(|&v| w.args(v)));
        if facts.nest.ops(c).iter().any(|&v| loads_exchange(w, facts, v)) {
            found.push(Use { from: From::Memory, path: Path::new() });
        }
        while let Some(v) = work.pop() {
            if !w.types.has_function(w.ty(v)) || !seen.insert(v) {
                continue;
            }
            if let Node::Cont(inner) = w.node(v) {
                // What captures nothing uses nothing of `k`.
                if !facts.nest.free(inner).is_empty() && entered.insert(inner) {
                    conts.push(inner);
                }
                continue;
            }
            let (mut base, mut path) = (v, Path::new());
            while position(base).is_none()
                && w.is_op(base, Op::Extract)
                && let Some(i) = w.as_lit(w.args(base)[1])
            {
                path.insert(0, i);
                base = w.args(base)[0];
            }
            match position(base) {
                Some(from) => {
                    let new = Use { from, path };
                    if !found.contains(&new) {
                        found.push(new);
                    }
                }
                None => work.extend(w.args(base)),
            }
        }
    }
    found
}

/// Whether a value is loaded, and may be or contain a function from which an operation across lanes can be reached. Only of
/// a static is it known which functions it has.
fn loads_exchange(w: &World, facts: &Facts, v: Val) -> bool {
    if !w.is_op(v, Op::Load) || !w.types.has_function(w.ty(v)) {
        return false;
    }
    let mut base = w.args(v)[1];
    while let Some(Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict) = w.as_op(base) {
        base = w.args(base)[0];
    }
    let Node::Global(g) = w.node(base) else { return true };
    let global = w.global(g);
    let mut work: Vec<Val> = global.init.into_iter().collect();
    let mut seen: FxHashSet<Val> = FxHashSet::default();
    while let Some(v) = work.pop() {
        if w.as_cont(v).is_some_and(|k| facts.leads_to_exchange[k]) {
            return true;
        }
        if seen.insert(v) {
            work.extend(w.args(v));
        }
    }
    global.mutable
}

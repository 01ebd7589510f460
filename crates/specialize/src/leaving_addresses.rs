//! Finds addresses of local variables that leave the function whose variables these are. Looks at the source program first:
//! unfolding a function moves its variables to its caller, where the address may be good by chance. Then at the residual program,
//! where an address may have come through calls that were unfolded.
//!
//! ```text
//! cont f(m, n, ret) = ret(m.2, p)          p = extract(slot(m), 1): the variable ends with f, and p leaves it
//! ```
//!
//! Reported is what is certain: an address, also within a struct, an array or a tuple, is
//!
//! - a result,
//! - or stored in a static, or through a parameter, and no other store in the program, or in the function, can take it out again.
//!
//! Values that blocks get from several places, and contents of memory, are not followed. What a function value captures lives as
//! long as that value. `main` ends with the program, so that statics may keep addresses of its variables.

use crate::diagnostics::dangling_address;
use crate::facts::is_function;
use nyala_base::{Diagnostic, Id};
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Node, Op, Val, World};
use rustc_hash::FxHashSet;

/// Limit on the parts of one value.
const MAX_PARTS: usize = 256;

/// Returns a warning for each place where such an address leaves its function.
pub fn leaving_addresses(w: &World) -> Vec<Diagnostic> {
    if !may_leave(w) {
        return Vec::new();
    }
    let (nest, _) = Nest::of_program(w, &w.roots());
    let function = |mut k: Cont| {
        while !is_function(w, k) {
            k = nest.parent(k)?;
        }
        Some(k)
    };
    // A slot of `from` that the value has the address of.
    let slot_of =
        |v: Val, from: Cont| slots(w, v).into_iter().find(|&slot| nest.owner(slot).and_then(function) == Some(from));
    let mut found = Vec::new();
    // Stores of addresses, with where they go; places that other stores go to, and memory that callees are given.
    let mut stores: Vec<(Target, Val, Val)> = Vec::new();
    let mut places: FxHashSet<Val> = FxHashSet::default();
    let mut given: FxHashSet<Target> = FxHashSet::default();
    for &k in &nest.conts {
        let Some(from) = function(k) else { continue };
        for &v in nest.ops(k) {
            let Some((at, written)) = w.as_op(v).and_then(|op| op.writes()) else { continue };
            let place = w.args(v)[at];
            let Some(target) = target(w, place, from) else { continue };
            match slot_of(w.args(v)[written], from).filter(|_| w.name(from) != "main") {
                Some(slot) => stores.push((target, v, slot)),
                None => drop(places.insert(place)),
            }
        }
        let Some(body) = w.body(k) else { continue };
        // A callee that is given the parameter may store there.
        given.extend(body.args.iter().filter_map(|&a| target(w, a, from)));
        if let Node::Param(of, i) = w.node(body.callee)
            && i as usize + 1 == w.params(of).len()
            && w.param_name(of, i as usize) == Some("ret")
            && let Some(slot) = body.args.iter().find_map(|&a| slot_of(a, of))
        {
            found.push(dangling_address::warning(body.origin, w.name(of), w.origin(slot), "is a result"));
        }
    }
    for (target, store, slot) in stores {
        let place = w.as_op(store).and_then(|op| op.writes()).map(|(at, _)| w.args(store)[at]);
        if !given.contains(&target) && !place.is_some_and(|place| places.contains(&place)) {
            let (how, from) = match target {
                Target::Static(_) => ("is stored in a static", nest.owner(slot).and_then(function)),
                Target::Param(k, _) => ("is stored through a parameter", Some(k)),
            };
            let name = from.map_or("", |from| w.name(from));
            found.push(dangling_address::warning(w.origin(store), name, w.origin(slot), how));
        }
    }
    found.sort_by_key(|d| (d.primary.span.file, d.primary.span.lo));
    found.dedup();
    found
}

/// Whether the address of a slot is stored anywhere, or is a result: without looking at where values belong, which is most of the work.
fn may_leave(w: &World) -> bool {
    let is_stored = |v: Val| {
        let written = w.as_op(v).and_then(|op| op.writes()).map(|(_, written)| w.args(v)[written]);
        written.is_some_and(|written| has_address(w, written))
    };
    let is_result = |k: usize| {
        w.body(Cont::from_idx(k)).is_some_and(|body| {
            matches!(w.node(body.callee), Node::Param(of, i) if w.param_name(of, i as usize) == Some("ret"))
                && body.args.iter().any(|&a| has_address(w, a))
        })
    };
    (0..w.n_vals()).any(|v| is_stored(Val::from_idx(v))) || (0..w.n_conts()).any(is_result)
}

fn has_address(w: &World, v: Val) -> bool {
    use Op::{Aligned, Array, Bitcast, Extract, Insert, Lea, Restrict, Select, Splat, Struct, Tuple};
    let is_address = matches!(w.as_op(v), Some(Extract | Lea | Bitcast | Aligned | Restrict));
    let may_be = is_address || matches!(w.as_op(v), Some(Tuple | Struct | Array | Splat | Insert | Select));
    // Lanes are numbers.
    may_be && w.types.as_vector(w.ty(v)).is_none() && !slots(w, v).is_empty()
}

/// Memory that outlives a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Target {
    Static(nyala_ir::Global),
    /// The memory that a parameter of the function points to.
    Param(Cont, u32),
}

/// Where a store of a function goes, if that outlives its call.
fn target(w: &World, mut ptr: Val, from: Cont) -> Option<Target> {
    loop {
        match w.node(ptr) {
            Node::Global(g) => return Some(Target::Static(g)),
            Node::Param(k, i) if k == from => return Some(Target::Param(k, i)),
            Node::Op(Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict) => ptr = w.args(ptr)[0],
            _ => return None,
        }
    }
}

/// The slots whose addresses a value is made of.
fn slots(w: &World, v: Val) -> Vec<Val> {
    let (mut found, mut work) = (Vec::new(), vec![v]);
    let mut seen: FxHashSet<Val> = FxHashSet::default();
    while let Some(v) = work.pop() {
        if seen.len() >= MAX_PARTS || !seen.insert(v) {
            continue;
        }
        let Some(op) = w.as_op(v) else { continue };
        let args = w.args(v);
        match op {
            Op::Extract if w.is_op(args[0], Op::Slot) && w.as_lit(args[1]) == Some(1) => found.push(args[0]),
            Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict => work.push(args[0]),
            Op::Tuple | Op::Struct | Op::Array | Op::Splat => work.extend(args),
            Op::Insert => work.extend([args[0], args[2]]),
            Op::Select => work.extend(&args[1..]),
            _ => {}
        }
    }
    found
}

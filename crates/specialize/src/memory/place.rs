//! Resolves addresses to a base and a range of leaves. Separate because it depends only on the graph, on no state of
//! memory.

use super::{MAX_LEAVES, Shapes};
use nyala_ir::{Node, Op, Ty, TyKind, Val, World, fold};

/// The location that an address points to.
pub(super) struct Place {
    pub base: Val,
    /// The canonical address of the location.
    pub at: Val,
    /// The first leaf and the number of leaves. `None` stands for all leaves of the object.
    pub range: Option<(u64, u64)>,
    /// Whether all indices on the way are literals. If not, the range is that of the innermost aggregate that is known.
    pub exact: bool,
}

impl Place {
    /// Resolves an address. One location may have several addresses, for example `&[T * n]` cast to `&[T]` or to
    /// another address space. The one without bitcasts is canonical.
    pub fn of(w: &mut World, shapes: &mut Shapes, ptr: Val) -> Place {
        let (mut base, mut exact, mut casts) = (ptr, true, false);
        let mut path = Vec::new();
        let pointee = w.types.pointee(w.ty(ptr));
        let mut range = pointee.map(|ty| (0, shapes.leaves(w, ty)));
        if pointee.is_some_and(|ty| matches!(w.types.kind(ty), TyKind::IndefArray(_))) {
            range = None;
        }
        loop {
            match w.node(base) {
                Node::Op(Op::Lea) => {
                    let (outer, idx) = (w.args(base)[0], w.args(base)[1]);
                    let outer_ty = w.types.pointee(w.ty(outer));
                    let start = w.as_lit(idx).zip(outer_ty).and_then(|(i, ty)| shapes.part_start(w, ty, i));
                    match (start, outer_ty) {
                        (Some(start), _) => range = range.map(|(at, n)| (at + start, n)),
                        // The index is unknown: some leaf of the aggregate around.
                        (None, Some(ty)) if w.types.n_parts(ty).is_some() => range = Some((0, shapes.leaves(w, ty))),
                        (None, _) => range = None,
                    }
                    exact &= start.is_some();
                    path.push(idx);
                    base = outer;
                }
                Node::Op(Op::Bitcast) if w.types.pointee(w.ty(w.args(base)[0])).is_some() => {
                    // A cast may lead beyond the end of an array of known length, into something else.
                    let from = w.types.pointee(w.ty(w.args(base)[0]));
                    let sized = from.filter(|&ty| !matches!(w.types.kind(ty), TyKind::IndefArray(_)));
                    let is_inside = match (sized, range) {
                        (Some(ty), Some((at, n))) => at + n <= shapes.leaves(w, ty),
                        _ => true,
                    };
                    if !fold::is_same_place(w, base) || !is_inside {
                        (exact, range) = (false, None);
                    }
                    casts = true;
                    base = w.args(base)[0];
                }
                _ => break,
            }
        }
        let mut at = ptr;
        if casts && exact {
            at = path.iter().rev().fold(base, |at, &idx| w.op(Op::Lea, &[at, idx]));
        }
        Place { base, at, range, exact }
    }
}

/// Whether `base` is an object: a slot, an allocation or a global.
pub fn is_object(w: &World, base: Val) -> bool {
    match w.node(base) {
        Node::Global(_) => true,
        Node::Op(Op::Extract) => matches!(w.as_op(w.args(base)[0]), Some(Op::Slot | Op::Alloc)),
        _ => false,
    }
}

/// The object or pointer that an address starts from.
pub fn base_of(w: &World, ptr: Val) -> Val {
    let mut base = ptr;
    loop {
        match w.node(base) {
            Node::Op(Op::Lea) => base = w.args(base)[0],
            Node::Op(Op::Bitcast) if w.types.pointee(w.ty(w.args(base)[0])).is_some() => base = w.args(base)[0],
            _ => return base,
        }
    }
}

/// The address of the value of type `ty` whose first leaf in an object is `at`. For `[T]`, it is the address of a `[T *
/// n]`. The loop is as deep as the type, whose nesting the compiler limits.
pub fn address(w: &mut World, shapes: &mut Shapes, base: Val, mut at: u64, ty: Ty) -> Val {
    let mut ptr = base;
    while let Some(outer) = w.types.pointee(w.ty(ptr)).filter(|&outer| outer != ty) {
        let idx = match (w.types.kind(outer), w.types.kind(ty)) {
            (TyKind::Array(a, _), TyKind::IndefArray(b)) if a == b => break,
            (&TyKind::Array(elem, _) | &TyKind::IndefArray(elem), _) => at / shapes.leaves(w, elem).max(1),
            _ => {
                let n = w.types.n_parts(outer).unwrap_or(0);
                let mut idx = 0;
                while idx + 1 < n && shapes.part_start(w, outer, idx + 1).is_some_and(|start| start <= at) {
                    idx += 1;
                }
                idx
            }
        };
        let Some(start) = shapes.part_start(w, outer, idx) else { break };
        at -= start.min(at);
        let idx = w.lit_i64(idx as i64);
        ptr = w.op(Op::Lea, &[ptr, idx]);
    }
    ptr
}

/// The object and the first leaf that an address points to, if both are known.
pub fn known_place(w: &mut World, shapes: &mut Shapes, mut ptr: Val) -> Option<(Val, u64)> {
    // An array of known length and the same array without one have one location.
    let space = |v: Val| match w.types.kind(w.ty(v)) {
        TyKind::Ptr { pointee, space } => Some((*space, matches!(w.types.kind(*pointee), TyKind::IndefArray(_)))),
        _ => None,
    };
    if w.is_op(ptr, Op::Bitcast) && space(ptr).is_some_and(|s| s.1 && space(w.args(ptr)[0]) == Some((s.0, false))) {
        if !fold::is_same_place(w, ptr) {
            return None;
        }
        ptr = w.args(ptr)[0];
    }
    let place = Place::of(w, shapes, ptr);
    let (start, n) = place.range.filter(|_| place.exact && is_object(w, place.base))?;
    (n > 0 && start < MAX_LEAVES).then_some((place.base, start))
}

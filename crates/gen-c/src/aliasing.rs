//! Whether a program accesses memory at types that it does not have. C's compilers assume that nobody does
//! ("strict aliasing"); where a program does, the types behind its pointers are marked `may_alias`. `memcpy` for each
//! access would be an alternative, but hide what is accessed.

use nyala_flat::{InstOp, Module};
use nyala_ir::{Op, Ty, TyKind};

/// Whether a pointer becomes one to another type, or comes from an integer. Pointers to `()` are what functions get that
/// do not know the type: they are converted back to what they were.
pub(crate) fn reinterprets(module: &Module) -> bool {
    let types = &module.types;
    let element = |ty: Ty| match types.kind(ty) {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => *elem,
        _ => ty,
    };
    let pointee = |ty: Ty| types.pointee(ty).map(element);
    module.funcs.iter().any(|f| {
        f.blocks.iter().flat_map(|b| &b.insts).any(|inst| {
            let (InstOp::Op(Op::Bitcast), Some(result)) = (inst.op, inst.result) else { return false };
            match (pointee(f.ty(inst.args[0])), pointee(f.ty(result))) {
                (Some(from), Some(to)) => from != to && from != types.unit() && to != types.unit(),
                (None, Some(_)) => f.as_bits(inst.args[0]) != Some(0),
                (_, None) => false,
            }
        })
    })
}

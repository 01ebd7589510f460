//! Environments of function values, and records of continuations that are values, in memory. Separate from those that share it:
//! scheduling and kernels make them, [reference counts](mod@crate::refcount) tell when they are freed.

use crate::data::*;
use nyala_ir::{Op, Prim, Ty, Types, layout};

/// Loads the values in an environment.
pub fn load_env(b: &mut FunctionBuilder, env: Value, tys: &[Ty]) -> Vec<Value> {
    if tys.is_empty() {
        return Vec::new();
    }
    let env_ty = b.types.tuple(tys);
    let env_ptr = b.types.ptr(env_ty);
    let env = b.op(Op::Bitcast, &[env], env_ptr);
    let load = |(i, &ty): (usize, &Ty)| {
        let idx = b.literal(Prim::I64, i as u64);
        let ptr_ty = b.types.ptr(ty);
        let ptr = b.op(Op::Lea, &[env, idx], ptr_ty);
        b.op(Op::Load, &[ptr], ty)
    };
    tys.iter().enumerate().map(load).collect()
}

/// Stores values into an environment.
pub fn store_env(b: &mut FunctionBuilder, record: Value, values: &[Value], tys: &[Ty]) {
    for (i, &value) in values.iter().enumerate() {
        let idx = b.literal(Prim::I64, i as u64);
        let ptr_ty = b.types.ptr(tys[i]);
        let ptr = b.op(Op::Lea, &[record, idx], ptr_ty);
        b.store(ptr, value);
    }
}

/// The type of addresses of records; no other pointer has this type.
pub fn record_ptr(types: &mut Types) -> Ty {
    let code = types.code();
    let head = types.tuple(&[code]);
    types.ptr(head)
}

/// Makes memory in the frame that looks like an environment to its holders, with a count that never changes. Returns
/// its address.
pub fn uncounted(b: &mut FunctionBuilder, ty: Ty) -> Value {
    let align = layout::size_align(b.types, ty).map_or(16, |(_, align)| align.max(16));
    // Padding, the count, and no layout.
    let n_before = align / 8;
    let i64_ty = b.types.prim(Prim::I64);
    let parts: Vec<Ty> = (0..n_before).map(|_| i64_ty).chain([ty]).collect();
    let behind_header = b.types.tuple(&parts);
    let whole = b.slot(behind_header, "");
    let mut part = |idx: u64, ty: Ty| {
        let (idx, ptr) = (b.literal(Prim::I64, idx), b.types.ptr(ty));
        b.op(Op::Lea, &[whole, idx], ptr)
    };
    let (count, memory) = (part(n_before - 2, i64_ty), part(n_before, ty));
    let forever = b.literal(Prim::I64, -1i64 as u64);
    b.store(count, forever);
    memory
}

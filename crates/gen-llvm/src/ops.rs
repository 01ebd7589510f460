//! The operations as LLVM text: which function emits which, and helpers for several of them.

mod aggregates;
mod calls;
mod casts;
mod math;
mod memory;

pub(crate) use math::call_math;

use crate::comparisons::{Comparison, compare, is_splat, masked_comparison};
use crate::debug_values;
use crate::diagnostics::bug;
use crate::emit::prim_text;
use crate::function::FunctionEmitter;
use crate::{gpu, instructions, nvptx, vectors};
use nyala_base::{Diagnostic, Id};
use nyala_flat::{Block, Inst, Value};
use nyala_ir::{Arch, Op, Prim, Ty};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// The class of an operation's operands.
pub(crate) enum Class {
    Signed,
    Unsigned,
    Float,
    /// Bools and addresses.
    Other,
}

pub(crate) fn class(prim: Option<Prim>) -> Class {
    match prim {
        Some(p) if p.is_float() => Class::Float,
        Some(p) if p.is_signed() => Class::Signed,
        Some(Prim::Bool) | None => Class::Other,
        Some(_) => Class::Unsigned,
    }
}

pub(crate) fn emit_op(f: &mut FunctionEmitter, b: Block, op: Op, inst: &Inst, result: Option<Value>) -> Result<()> {
    let args = &inst.args;
    if op == Op::Store {
        let at = f.op(args[0]);
        return f.write(&at, args[1]);
    }
    if matches!(op, Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence) {
        return memory::emit_atomic(f, op, args, result);
    }
    if op == Op::Prefetch {
        memory::emit_prefetch(f, args);
        return Ok(());
    }
    if op == Op::DebugValue {
        return debug_values::emit(f, inst);
    }
    let Some(result) = result else { return Err(bug(format!("`{}` without a result", op.name()))) };
    let name = f.op(result);
    let ty = f.ty(result);
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::PDiv | Op::PRem | Op::And | Op::Or | Op::Xor => {
            if op == Op::Xor && is_splat(f, args[1], 1) {
                let inverse = f.comparisons.get(&args[0]).and_then(Comparison::inverse);
                inverse.map(|c| f.comparisons.insert(result, c));
            }
            if matches!(op, Op::Add | Op::Sub) && f.e.target().arch == Arch::Nvptx64 {
                f.sums.insert(result, (op, [args[0], args[1]]));
            }
            math::arithmetic(f, op, result, ty, args)
        }
        Op::Shl | Op::Shr => math::shift(f, op, &name, ty, args),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => compare(f, op, &name, args, result),
        Op::Cast => casts::cast(f, result, args[0], ty),
        Op::Bitcast => casts::bitcast(f, result, args[0], ty),
        Op::Select => select(f, &name, result, args),
        Op::Tuple | Op::Struct | Op::Array if prim(f, ty).is_none() => aggregates::build(f, result, args),
        Op::Splat if prim(f, ty).is_none() => aggregates::splat(f, result, args[0]),
        Op::Tuple | Op::Struct | Op::Array | Op::Splat => aggregates::vector(f, result, args),
        Op::Shuffle => aggregates::shuffle(f, &name, args, ty),
        Op::Extract | Op::Insert if prim(f, f.ty(args[0])).is_some() => aggregates::lane(f, op, &name, args),
        Op::Extract => aggregates::extract(f, result, args, ty),
        Op::Insert => aggregates::insert(f, b, result, args),
        Op::Lea => {
            crate::tables::note_start(f, result, args);
            aggregates::lea(f, &name, args)
        }
        Op::Load => {
            let at = f.op(args[0]);
            f.read(&name, &at, ty)
        }
        Op::Slot => {
            let pointee = f.pointee(ty)?;
            debug_values::declare_slot(f, inst, result, pointee);
            f.slot(result, pointee)
        }
        Op::Alloc => memory::alloc(f, &name, ty, args[0]),
        Op::Scope => {
            f.declare_scopes(result);
            f.operands[result.idx()] = "0".into();
            Ok(())
        }
        Op::Restrict => {
            f.operands[result.idx()] = f.op(args[0]);
            Ok(())
        }
        Op::Aligned => {
            memory::aligned(f, result, args);
            Ok(())
        }
        Op::WorkItem if f.e.target().is_gpu() => gpu::work_item(f, inst, result),
        Op::Atomic
        | Op::AtomicLoad
        | Op::AtomicStore
        | Op::Cmpxchg
        | Op::CmpxchgWeak
        | Op::Fence
        | Op::Prefetch
        | Op::WorkItem
        | Op::Pipeline
        | Op::Watch
        | Op::DebugValue
        | nyala_ir::annotation!()
        | Op::Store => Err(bug(format!("`{}` in machine code", op.name()))),
        Op::Popcount | Op::Clz | Op::Ctz => math::count(f, op, &name, ty, args[0]),
        Op::Pext | Op::Pdep => instructions::deposit(f, op, &name, ty, args),
        Op::Bits => bits(f, &name, ty, args[0]),
        Op::Rcp | Op::Rsqrt | Op::Rcp14 | Op::Rsqrt14 => instructions::approximate(f, op, &name, ty, args[0]),
        Op::Fma | nyala_ir::unary_math!() | nyala_ir::binary_math!() => math::math(f, op, result, ty, args),
    }
}

fn select(f: &mut FunctionEmitter, name: &str, result: Value, args: &[Value]) -> Result<()> {
    if f.in_memory(result) {
        let ty = f.ty(result);
        let (cond, yes, no) = (f.op(args[0]), f.op(args[1]), f.op(args[2]));
        let at = f.temp();
        f.line(format_args!("{at} = select i1 {cond}, ptr {yes}, ptr {no}"));
        f.alloca(name, ty)?;
        return f.copy(name, &at, ty);
    }
    if f.is_mask(f.ty(args[0])) && is_splat(f, args[2], 0) && f.comparisons.contains_key(&args[1]) {
        return masked_comparison(f, name, args);
    }
    if f.e.target().arch == Arch::Nvptx64 && nvptx::greater_of_sum(f, name, args)? {
        return Ok(());
    }
    let (cond, yes, no) = (f.typed(args[0])?, f.typed(args[1])?, f.typed(args[2])?);
    let fast = if f.fast { "fast " } else { "" };
    f.line(format_args!("{name} = select {fast}{cond}, {yes}, {no}"));
    Ok(())
}

/// A mask as an integer with a bit for each lane.
fn bits(f: &mut FunctionEmitter, name: &str, ty: Ty, mask: Value) -> Result<()> {
    let n = f.e.module.types.as_vector(f.ty(mask)).map_or(1, |v| v.1);
    let (mask, bits) = (f.typed(mask)?, f.temp());
    f.line(format_args!("{bits} = bitcast {mask} to i{n}"));
    let width = prim(f, ty).map_or(64, Prim::bits);
    vectors::resize(f, name, if n < width { "zext" } else { "trunc" }, n, width, &bits);
    Ok(())
}

pub(crate) fn prim(f: &FunctionEmitter, ty: Ty) -> Option<Prim> {
    f.e.module.types.lane_prim(ty)
}

/// A number's type; for a vector the type of the lanes, and their number.
pub(crate) fn number(f: &FunctionEmitter, ty: Ty) -> Option<(Prim, Lanes)> {
    let types = &f.e.module.types;
    Some((types.lane_prim(ty)?, types.as_vector(ty).map(|v| v.1)))
}

/// Number of lanes of a vector; `None` for a scalar.
pub(crate) type Lanes = Option<u32>;

/// LLVM's type of a number, or of a vector of them, in a register.
pub(crate) fn number_text(prim: Prim, lanes: Lanes) -> String {
    let one = match prim {
        Prim::Bool => "i1",
        Prim::I8 | Prim::U8 => "i8",
        Prim::I16 | Prim::U16 => "i16",
        Prim::I32 | Prim::U32 => "i32",
        Prim::I64 | Prim::U64 => "i64",
        Prim::F16 => "half",
        Prim::F32 => "float",
        Prim::F64 => "double",
    };
    lanes.map_or(one.into(), |n| format!("<{n} x {one}>"))
}

/// The type as in the names of LLVM's intrinsics.
pub(crate) fn suffix(prim: Prim, lanes: Lanes) -> String {
    let kind = if prim.is_float() { "f" } else { "i" };
    let lanes = lanes.map_or(String::new(), |n| format!("v{n}"));
    format!("{lanes}{kind}{}", prim.bits())
}

/// The text of a literal in every lane.
pub(crate) fn uniform(prim: Prim, lanes: Lanes, bits: u64) -> String {
    let one = prim_text(prim, prim.normalize(bits));
    lanes.map_or(one.clone(), |_| format!("splat ({} {one})", number_text(prim, None)))
}

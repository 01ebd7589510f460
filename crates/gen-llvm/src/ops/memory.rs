//! Memory: atomics and fences, allocation, promises about addresses.

use crate::diagnostics::bug;
use crate::function::FunctionEmitter;
use crate::ops::prim;
use crate::{gpu, nvptx};
use nyala_base::{Diagnostic, Id};
use nyala_flat::Value;
use nyala_ir::scalar::{ATOMICS, ORDERS};
use nyala_ir::target::Arch;
use nyala_ir::{Op, Ty, TyKind};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// A memory order in LLVM's notation. An order that LLVM forbids for the operation becomes one that is as strong or
/// stronger.
fn order(f: &FunctionEmitter, op: Op, order: Value, is_failure: bool) -> Result<&'static str> {
    let number = f.function.as_bits(order).ok_or_else(|| bug("a memory order that is not known"))?;
    let name = ORDERS.get(number as usize).copied().flatten().ok_or_else(|| bug("no such memory order"))?;
    Ok(match (op, name) {
        (Op::AtomicLoad | Op::AtomicStore, "notatomic") => "unordered",
        (Op::AtomicLoad, "acq_rel") => "acquire",
        (Op::AtomicStore, "acq_rel") => "release",
        (Op::AtomicLoad, "release") | (Op::AtomicStore, "acquire") => "seq_cst",
        (Op::AtomicLoad | Op::AtomicStore, name) => name,
        (_, "notatomic" | "unordered") => "monotonic",
        (_, "release") if is_failure => "monotonic",
        (_, "acq_rel") if is_failure => "acquire",
        (_, name) => name,
    })
}

/// The scope of an operation, for LLVM. On CPUs every scope is the whole system.
fn scope(f: &FunctionEmitter, op: Op, args: &[Value]) -> &'static str {
    // Operands in the graph begin with the memory state.
    let scope = op.scope_operand().map(|at| args[at - 1]);
    if f.e.target().is_gpu() { gpu::sync_scope(f, scope) } else { "" }
}

/// Atomic operations and fences.
pub(crate) fn emit_atomic(f: &mut FunctionEmitter, op: Op, args: &[Value], result: Option<Value>) -> Result<()> {
    if op == Op::Fence {
        let order = order(f, op, args[0], false)?;
        // A weaker fence orders nothing.
        if order != "monotonic" {
            let scope = scope(f, op, args);
            f.line(format_args!("fence {scope}{order}"));
        }
        return Ok(());
    }
    let at = op.writes().map_or(0, |w| w.0 - 1);
    let ty = f.pointee(f.ty(args[at]))?;
    let (ptr, memory, align) = (f.op(args[at]), f.e.layouts.memory(ty)?, f.size_align(ty)?.1);
    let name = result.map_or(String::new(), |r| f.op(r));
    let scope = scope(f, op, args);
    match op {
        Op::AtomicStore => {
            let (value, order) = (f.part_operand(args[1])?, order(f, op, args[2], false)?);
            f.line(format_args!("store atomic {value}, ptr {ptr} {scope}{order}, align {align}"));
        }
        Op::AtomicLoad => {
            let order = order(f, op, args[1], false)?;
            let loaded = if f.e.layouts.is_bool(ty) { f.temp() } else { name.clone() };
            f.line(format_args!("{loaded} = load atomic {memory}, ptr {ptr} {scope}{order}, align {align}"));
            if loaded != name {
                f.narrow_bool(&name, &loaded, &memory);
            }
        }
        Op::Atomic => {
            let number = f.function.as_bits(args[0]).and_then(|n| ATOMICS.get(n as usize));
            let what = number.ok_or_else(|| bug("no such atomic operation"))?;
            let (value, order) = (f.part_operand(args[2])?, order(f, op, args[3], false)?);
            let old = if f.e.layouts.is_bool(ty) { f.temp() } else { name.clone() };
            match prim(f, ty) {
                Some(p) if matches!(*what, "fmin" | "fmax") && !f.e.target().is_gpu() => {
                    let symbol = super::math::atomic_lesser(f, *what == "fmin", p, order, align);
                    f.line(format_args!("{old} = call {memory} @{symbol}(ptr {ptr}, {value})"));
                }
                _ if scope.is_empty()
                    && f.e.target().arch == Arch::Nvptx64
                    && nvptx::atomic_of_system(f, (*what, order), [&old, &ptr, &value], &memory) => {}
                _ => f.line(format_args!("{old} = atomicrmw {what} ptr {ptr}, {value} {scope}{order}, align {align}")),
            }
            if old != name {
                f.narrow_bool(&name, &old, &memory);
            }
        }
        _ => {
            let (success, failure) = (order(f, op, args[3], false)?, order(f, op, args[4], true)?);
            let weak = if op == Op::CmpxchgWeak { "weak " } else { "" };
            // Floats are compared by their bits.
            let float = prim(f, ty).filter(|p| p.is_float());
            let int = float.map(|p| format!("i{}", p.bits()));
            let mut operands = Vec::new();
            for &v in &args[1..3] {
                let operand = f.part_operand(v)?;
                operands.push(match &int {
                    Some(int) => {
                        let bits = f.temp();
                        f.line(format_args!("{bits} = bitcast {operand} to {int}"));
                        format!("{int} {bits}")
                    }
                    None => operand,
                });
            }
            let [pair, old, done, byte, first] = [(); 5].map(|()| f.temp());
            let (expected, new, inner) = (&operands[0], &operands[1], int.as_deref().unwrap_or(&memory));
            f.line(format_args!(
                "{pair} = cmpxchg {weak}ptr {ptr}, {expected}, {new} {scope}{success} {failure}, align {align}"
            ));
            f.line(format_args!("{old} = extractvalue {{ {inner}, i1 }} {pair}, 0"));
            f.line(format_args!("{done} = extractvalue {{ {inner}, i1 }} {pair}, 1"));
            f.line(format_args!("{byte} = zext i1 {done} to i8"));
            let mut old = old;
            if let Some(int) = &int {
                let value = f.temp();
                f.line(format_args!("{value} = bitcast {int} {old} to {memory}"));
                old = value;
            }
            f.line(format_args!("{first} = insertvalue {{ {memory}, i8 }} undef, {memory} {old}, 0"));
            f.line(format_args!("{name} = insertvalue {{ {memory}, i8 }} {first}, i8 {byte}, 1"));
        }
    }
    Ok(())
}

/// Prefetches memory into the caches; arguments that are not literals in range get their default.
pub(crate) fn emit_prefetch(f: &mut FunctionEmitter, args: &[Value]) {
    let number = |i: usize, most: u64, default| f.function.as_bits(args[i]).filter(|&n| n <= most).unwrap_or(default);
    let (ptr, write, locality) = (f.op(args[0]), number(1, 1, 0), number(2, 3, 3));
    f.e.declare("llvm.prefetch.p0", || "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)".into());
    f.line(format_args!("call void @llvm.prefetch.p0(ptr {ptr}, i32 {write}, i32 {locality}, i32 1)"));
}

/// Allocates memory for `n` values by the runtime; `ty` is the type of its address.
pub(crate) fn alloc(f: &mut FunctionEmitter, name: &str, ty: Ty, n: Value) -> Result<()> {
    let elem = f.pointee(ty)?;
    let elem = match f.e.module.types.kind(elem) {
        TyKind::IndefArray(elem) => *elem,
        _ => elem,
    };
    let (size, align) = f.size_align(elem)?;
    let n = f.op(n);
    if align > 64 {
        f.e.declare("nyala_alloc_aligned_array", || {
            "declare noalias nonnull align 64 ptr @nyala_alloc_aligned_array(i64, i64, i64) #1".into()
        });
        let args = format!("i64 {n}, i64 {size}, i64 {align}");
        f.line(format_args!("{name} = call align {align} ptr @nyala_alloc_aligned_array({args}) #1"));
        return Ok(());
    }
    f.e.declare("nyala_alloc_array", || "declare noalias nonnull align 64 ptr @nyala_alloc_array(i64, i64) #1".into());
    f.line(format_args!("{name} = call ptr @nyala_alloc_array(i64 {n}, i64 {size}) #1"));
    Ok(())
}

/// An address with the alignment that the program promises.
pub(crate) fn aligned(f: &mut FunctionEmitter, result: Value, args: &[Value]) {
    let ptr = f.op(args[0]);
    if let Some(n) = f.function.as_bits(args[1]).filter(|n| n.is_power_of_two()) {
        f.e.declare("llvm.assume", || "declare void @llvm.assume(i1)".into());
        f.line(format_args!("call void @llvm.assume(i1 true) [ \"align\"(ptr {ptr}, i64 {n}) ]"));
    }
    f.operands[result.idx()] = ptr;
}

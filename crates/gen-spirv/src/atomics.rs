//! Atomic operations, with the memory order that the program asks for. What SPIR-V has no instruction for is tried until
//! nobody comes in between.

use crate::calls::{DEVICE, WORKGROUP};
use crate::casts::read_as;
use crate::function::FunctionEmitter;
use crate::{Result, bug};
use nyala_flat::Inst;
use nyala_ir::scalar::{ATOMICS, ORDERS};
use nyala_ir::{Op, Prim, TyKind};
use rspirv::dr::Operand;
use rspirv::spirv::{Capability, Op as Code, Word};

/// The place of an atomic operation: a pointer to an integer as wide as the number.
struct Place {
    pointer: Word,
    prim: Prim,
    /// The integer, and its type.
    bits: Prim,
    ty: Word,
    scope: Word,
    /// The order of accesses to memory: when it is read only, and when it is written.
    reads: Word,
    writes: Word,
}

const ACQUIRE: u32 = 2;
const RELEASE: u32 = 4;
const ACQUIRE_RELEASE: u32 = 8;

/// The order of an atomic operation by LLVM's name: for one that reads only, writes only, or does both.
fn orders(f: &mut FunctionEmitter, order: &str) -> [Word; 3] {
    let memory = f.all_memory();
    let (reads, writes, both) = match order {
        "acquire" => (ACQUIRE, 0, ACQUIRE),
        "release" => (0, RELEASE, RELEASE),
        "acq_rel" | "seq_cst" => (ACQUIRE, RELEASE, ACQUIRE_RELEASE),
        _ => (0, 0, 0),
    };
    [reads, writes, both].map(|order| f.e.u32(if order == 0 { 0 } else { order | memory }))
}

fn fence(f: &mut FunctionEmitter) {
    let (scope, ordered) = (f.e.u32(DEVICE), f.ordered());
    f.effect(Code::MemoryBarrier, vec![Operand::IdScope(scope), Operand::IdMemorySemantics(ordered)]);
}

/// Writes an atomic operation or a fence. `None` if it has no result.
pub(crate) fn atomic(f: &mut FunctionEmitter, op: Op, inst: &Inst) -> Result<Option<Word>> {
    let args = &inst.args;
    let order_at = op.literal_operands().start - 1;
    let order = args.get(order_at).and_then(|&a| f.function.as_bits(a));
    let order = order.and_then(|n| ORDERS.get(n as usize).copied().flatten());
    let order = order.ok_or_else(|| bug("a memory order that is not known"))?;
    if op == Op::Fence {
        if matches!(order, "acquire" | "release" | "acq_rel" | "seq_cst") {
            fence(f);
        }
        return Ok(None);
    }
    // The runtime may take an order out.
    f.e.u32(0);
    let [reads, writes, both] = orders(f, order);
    let at = op.writes().map_or(0, |w| w.0 - 1);
    let (address, ty) = f.place(args[at])?;
    let types = &f.e.module.types;
    let (prim, is_address) = match types.kind(ty) {
        TyKind::Ptr { .. } => (Prim::U64, true),
        _ => (types.as_prim(ty).unwrap_or(Prim::Bool), false),
    };
    if prim.bits() < 32 {
        let what = format!("an atomic operation on `{}`", types.display(ty));
        return Err(f.lacks(&what, "use a number of 32 or 64 bits"));
    }
    let bits = if prim.bits() == 64 { Prim::U64 } else { Prim::U32 };
    if bits == Prim::U64 {
        f.e.need(Capability::Int64Atomics);
    }
    let int = f.e.prim(bits);
    let pointer = match address.arena {
        None => f.pointer_to(address, int),
        Some(arena) if arena.1.bits() == bits.bits() && !arena.1.is_float() => f.element(address, arena, 0),
        Some(_) => {
            return Err(f.lacks(
                "an atomic operation on memory of the block that is accessed as another type, too,",
                "reserve memory of its own for the numbers that are accessed so",
            ));
        }
    };
    let scope = f.e.u32(if address.space == 3 { WORKGROUP } else { DEVICE });
    let writes = if op == Op::AtomicStore { writes } else { both };
    let place = Place { pointer, prim, bits, ty: int, scope, reads, writes };
    let value = |f: &mut FunctionEmitter, i: usize| -> Result<Word> {
        let word = f.part(args[i])?;
        Ok(read_as(f, word, prim, bits))
    };
    let old = match op {
        Op::AtomicStore => {
            let new = value(f, 1)?;
            let operands = vec![
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(writes),
                Operand::IdRef(new),
            ];
            f.effect(Code::AtomicStore, operands);
            None
        }
        Op::AtomicLoad => Some(instruction(f, Code::AtomicLoad, &place, &[])),
        Op::Atomic => {
            let what = f.function.as_bits(args[0]).and_then(|n| ATOMICS.get(n as usize));
            let what = *what.ok_or_else(|| bug("no such atomic operation"))?;
            let word = value(f, 2)?;
            Some(update(f, what, &place, word)?)
        }
        _ => {
            let (expected, new) = (value(f, 1)?, value(f, 2)?);
            Some(exchange(f, &place, new, expected))
        }
    };
    let Some(old) = old else { return Ok(None) };
    let word = read_as(f, old, bits, prim);
    let is_exchange = matches!(op, Op::Cmpxchg | Op::CmpxchgWeak);
    if !is_exchange {
        let space = match inst.result.map(|r| f.e.module.types.kind(f.function.ty(r))) {
            Some(TyKind::Ptr { space, .. }) if is_address => *space,
            _ => return Ok(Some(word)),
        };
        return Ok(Some(f.as_address(word, space)));
    }
    let expected = value(f, 1)?;
    let bool_ty = f.e.bool_ty();
    let is_same = f.op(Code::IEqual, bool_ty, &[old, expected]);
    let result = inst.result.ok_or_else(|| bug("`cmpxchg` without a result"))?;
    let ty = f.ty(result)?;
    Ok(Some(f.op(Code::CompositeConstruct, ty, &[word, is_same])))
}

/// An atomic instruction.
fn instruction(f: &mut FunctionEmitter, code: Code, place: &Place, args: &[Word]) -> Word {
    let order = if code == Code::AtomicLoad { place.reads } else { place.writes };
    let mut operands =
        vec![Operand::IdRef(place.pointer), Operand::IdScope(place.scope), Operand::IdMemorySemantics(order)];
    operands.extend(args.iter().map(|&a| Operand::IdRef(a)));
    f.op_with(code, place.ty, operands)
}

fn exchange(f: &mut FunctionEmitter, place: &Place, new: Word, expected: Word) -> Word {
    let operands = vec![
        Operand::IdRef(place.pointer),
        Operand::IdScope(place.scope),
        Operand::IdMemorySemantics(place.writes),
        Operand::IdMemorySemantics(place.reads),
        Operand::IdRef(new),
        Operand::IdRef(expected),
    ];
    f.op_with(Code::AtomicCompareExchange, place.ty, operands)
}

/// An operation on what is in memory; the old value, as an integer.
fn update(f: &mut FunctionEmitter, what: &str, place: &Place, word: Word) -> Result<Word> {
    let code = match what {
        "xchg" => Some(Code::AtomicExchange),
        "add" => Some(Code::AtomicIAdd),
        "sub" => Some(Code::AtomicISub),
        "and" => Some(Code::AtomicAnd),
        "or" => Some(Code::AtomicOr),
        "xor" => Some(Code::AtomicXor),
        "max" => Some(Code::AtomicSMax),
        "min" => Some(Code::AtomicSMin),
        "umax" => Some(Code::AtomicUMax),
        "umin" => Some(Code::AtomicUMin),
        _ => None,
    };
    if let Some(code) = code {
        return Ok(instruction(f, code, place, &[word]));
    }
    let bool_ty = f.e.bool_ty();
    let [head, body, back, merge] = [(); 4].map(|()| f.e.id());
    let seen = f.local(place.ty);
    let before = instruction(f, Code::AtomicLoad, place, &[]);
    f.store_word(seen, before);
    f.branch(head);
    f.label(head);
    let control = Operand::LoopControl(rspirv::spirv::LoopControl::NONE);
    f.effect(Code::LoopMerge, vec![Operand::IdRef(merge), Operand::IdRef(back), control]);
    f.branch(body);
    f.label(body);
    let old = f.op(Code::Load, place.ty, &[seen]);
    let new = updated(f, what, place, old, word)?;
    let found = exchange(f, place, new, old);
    f.store_word(seen, found);
    let is_done = f.op(Code::IEqual, bool_ty, &[found, old]);
    let [out, again] = [(); 2].map(|()| f.e.id());
    f.split(is_done, out, again, again);
    f.label(out);
    f.branch(merge);
    f.label(again);
    f.branch(back);
    f.label(back);
    f.branch(head);
    f.label(merge);
    Ok(f.op(Code::Load, place.ty, &[seen]))
}

/// The value that an operation writes, as an integer.
fn updated(f: &mut FunctionEmitter, what: &str, place: &Place, old: Word, word: Word) -> Result<Word> {
    let (ty, bool_ty) = (place.ty, f.e.bool_ty());
    if place.prim.is_float() {
        let float = f.e.prim(place.prim);
        let (a, b) = (read_as(f, old, place.bits, place.prim), read_as(f, word, place.bits, place.prim));
        let sum = match what {
            "fadd" => f.exact(Code::FAdd, float, &[a, b], false),
            "fsub" => f.exact(Code::FSub, float, &[a, b], false),
            "fmax" => crate::math::extreme(f, Op::Fmax, place.prim, a, b),
            "fmin" => crate::math::extreme(f, Op::Fmin, place.prim, a, b),
            _ => return Err(bug(format!("`atomic` operation `{what}` on `{}`", place.prim.name()))),
        };
        return Ok(read_as(f, sum, place.prim, place.bits));
    }
    let (zero, one) = (f.e.literal(place.bits, 0), f.e.literal(place.bits, 1));
    Ok(match what {
        "nand" => {
            let both = f.op(Code::BitwiseAnd, ty, &[old, word]);
            f.op(Code::Not, ty, &[both])
        }
        "uinc_wrap" => {
            let more = f.op(Code::IAdd, ty, &[old, one]);
            let is_over = f.op(Code::UGreaterThanEqual, bool_ty, &[old, word]);
            f.op(Code::Select, ty, &[is_over, zero, more])
        }
        "udec_wrap" => {
            let less = f.op(Code::ISub, ty, &[old, one]);
            let is_none = f.op(Code::IEqual, bool_ty, &[old, zero]);
            let is_over = f.op(Code::UGreaterThan, bool_ty, &[old, word]);
            let wraps = f.op(Code::LogicalOr, bool_ty, &[is_none, is_over]);
            f.op(Code::Select, ty, &[wraps, word, less])
        }
        _ => return Err(bug(format!("`atomic` operation `{what}` on `{}`", place.prim.name()))),
    })
}

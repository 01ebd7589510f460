//! The operations, one by one, as LLVM text.

use crate::comparisons::{Comparison, compare, is_splat, masked_comparison};
use crate::diagnostics::bug;
use crate::emit::prim_text;
use crate::function::FunctionEmitter;
use crate::{instructions, libmvec, polynomials, rounding, vectors};
use nyala_base::{Diagnostic, Id};
use nyala_flat::{Block, Inst, Value};
use nyala_ir::scalar::{ATOMICS, ORDERS};
use nyala_ir::{Op, Prim, Ty, TyKind};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// What operands of an operation are.
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
        return atomic(f, op, args, result);
    }
    if op == Op::Prefetch {
        let number =
            |i: usize, most: u64, default| f.function.as_bits(args[i]).filter(|&n| n <= most).unwrap_or(default);
        let (ptr, write, locality) = (f.op(args[0]), number(1, 1, 0), number(2, 3, 3));
        f.e.declare("llvm.prefetch.p0", || "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)".into());
        f.line(format_args!("call void @llvm.prefetch.p0(ptr {ptr}, i32 {write}, i32 {locality}, i32 1)"));
        return Ok(());
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
            arithmetic(f, op, &name, ty, args)
        }
        Op::Shl | Op::Shr => shift(f, op, &name, ty, args),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => compare(f, op, &name, args, result),
        Op::Cast => cast(f, &name, args[0], ty),
        Op::Bitcast => bitcast(f, &name, args[0], ty),
        Op::Select if f.in_memory(result) => {
            let (cond, yes, no) = (f.op(args[0]), f.op(args[1]), f.op(args[2]));
            let at = f.temp();
            f.line(format_args!("{at} = select i1 {cond}, ptr {yes}, ptr {no}"));
            f.alloca(&name, ty)?;
            f.copy(&name, &at, ty)
        }
        Op::Select if f.is_mask(f.ty(args[0])) && is_splat(f, args[2], 0) && f.comparisons.contains_key(&args[1]) => {
            masked_comparison(f, &name, args)
        }
        Op::Select => {
            let (cond, yes, no) = (f.typed(args[0])?, f.typed(args[1])?, f.typed(args[2])?);
            let fast = if f.fast { "fast " } else { "" };
            f.line(format_args!("{name} = select {fast}{cond}, {yes}, {no}"));
            Ok(())
        }
        Op::Tuple | Op::Struct | Op::Array if prim(f, ty).is_none() => build(f, &name, result, args),
        Op::Splat if prim(f, ty).is_none() => splat(f, &name, result, args[0]),
        Op::Tuple | Op::Struct | Op::Array | Op::Splat => vector(f, result, args),
        Op::Shuffle => shuffle(f, &name, args, ty),
        Op::Extract | Op::Insert if prim(f, f.ty(args[0])).is_some() => lane(f, op, &name, args),
        Op::Extract => extract(f, &name, args, ty),
        Op::Insert => insert(f, b, &name, result, args),
        Op::Lea => lea(f, &name, args),
        Op::Load => {
            let at = f.op(args[0]);
            f.read(&name, &at, ty)
        }
        Op::Slot => {
            let pointee = f.pointee(ty)?;
            f.slot(result, pointee)
        }
        Op::Alloc => {
            let elem = f.pointee(ty)?;
            let elem = match f.e.module.types.kind(elem) {
                TyKind::IndefArray(elem) => *elem,
                _ => elem,
            };
            let (size, align) = f.size_align(elem)?;
            let n = f.op(args[0]);
            if align > 64 {
                f.e.declare("nyala_alloc_aligned_array", || {
                    "declare noalias nonnull align 64 ptr @nyala_alloc_aligned_array(i64, i64, i64) #1".into()
                });
                let args = format!("i64 {n}, i64 {size}, i64 {align}");
                f.line(format_args!("{name} = call align {align} ptr @nyala_alloc_aligned_array({args}) #1"));
                return Ok(());
            }
            f.e.declare("nyala_alloc_array", || {
                "declare noalias nonnull align 64 ptr @nyala_alloc_array(i64, i64) #1".into()
            });
            f.line(format_args!("{name} = call ptr @nyala_alloc_array(i64 {n}, i64 {size}) #1"));
            Ok(())
        }
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
            let ptr = f.op(args[0]);
            if let Some(n) = f.function.as_bits(args[1]).filter(|n| n.is_power_of_two()) {
                f.e.declare("llvm.assume", || "declare void @llvm.assume(i1)".into());
                f.line(format_args!("call void @llvm.assume(i1 true) [ \"align\"(ptr {ptr}, i64 {n}) ]"));
            }
            f.operands[result.idx()] = ptr;
            Ok(())
        }
        Op::Atomic
        | Op::AtomicLoad
        | Op::AtomicStore
        | Op::Cmpxchg
        | Op::CmpxchgWeak
        | Op::Fence
        | Op::Prefetch
        | Op::Known
        | Op::Hlt
        | Op::Unfold
        | Op::Run
        | Op::Store => Err(bug(format!("`{}` in machine code", op.name()))),
        Op::Popcount | Op::Clz | Op::Ctz => count(f, op, &name, ty, args[0]),
        Op::Pext | Op::Pdep => instructions::deposit(f, op, &name, ty, args),
        Op::Bits => {
            let (mask, n) = (f.typed(args[0])?, f.e.module.types.as_vector(f.ty(args[0])).map_or(1, |v| v.1));
            let bits = f.temp();
            f.line(format_args!("{bits} = bitcast {mask} to i{n}"));
            let width = prim(f, ty).map_or(64, Prim::bits);
            vectors::resize(f, &name, if n < width { "zext" } else { "trunc" }, n, width, &bits);
            Ok(())
        }
        Op::Rcp | Op::Rsqrt | Op::Rcp14 | Op::Rsqrt14 => instructions::approximate(f, op, &name, ty, args[0]),
        Op::Fma | nyala_ir::unary_math!() | nyala_ir::binary_math!() => math(f, op, &name, ty, args),
    }
}

/// A memory order as LLVM writes it. What it does not allow for the operation becomes one that is as strong or stronger.
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

fn atomic(f: &mut FunctionEmitter, op: Op, args: &[Value], result: Option<Value>) -> Result<()> {
    if op == Op::Fence {
        let order = order(f, op, args[0], false)?;
        // Others order nothing.
        if order != "monotonic" {
            f.line(format_args!("fence {order}"));
        }
        return Ok(());
    }
    let at = op.writes().map_or(0, |w| w.0 - 1);
    let ty = f.pointee(f.ty(args[at]))?;
    let (ptr, memory, align) = (f.op(args[at]), f.e.layouts.memory(ty)?, f.size_align(ty)?.1);
    let name = result.map_or(String::new(), |r| f.op(r));
    match op {
        Op::AtomicStore => {
            let (value, order) = (f.part_operand(args[1])?, order(f, op, args[2], false)?);
            f.line(format_args!("store atomic {value}, ptr {ptr} {order}, align {align}"));
        }
        Op::AtomicLoad => {
            let order = order(f, op, args[1], false)?;
            let loaded = if f.e.layouts.is_bool(ty) { f.temp() } else { name.clone() };
            f.line(format_args!("{loaded} = load atomic {memory}, ptr {ptr} {order}, align {align}"));
            if loaded != name {
                f.narrow_bool(&name, &loaded, &memory);
            }
        }
        Op::Atomic => {
            let number = f.function.as_bits(args[0]).and_then(|n| ATOMICS.get(n as usize));
            let what = number.ok_or_else(|| bug("no such atomic operation"))?;
            let (value, order) = (f.part_operand(args[2])?, order(f, op, args[3], false)?);
            let old = if f.e.layouts.is_bool(ty) { f.temp() } else { name.clone() };
            f.line(format_args!("{old} = atomicrmw {what} ptr {ptr}, {value} {order}, align {align}"));
            if old != name {
                f.narrow_bool(&name, &old, &memory);
            }
        }
        _ => {
            let (success, failure) = (order(f, op, args[3], false)?, order(f, op, args[4], true)?);
            let weak = if op == Op::CmpxchgWeak { "weak " } else { "" };
            // Floats are compared as bits.
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
                "{pair} = cmpxchg {weak}ptr {ptr}, {expected}, {new} {success} {failure}, align {align}"
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

/// Counts bits.
fn count(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, arg: Value) -> Result<()> {
    let text = f.e.layouts.register(ty)?;
    let (intrinsic, poison) = match op {
        Op::Popcount => ("ctpop", ""),
        Op::Clz => ("ctlz", ", i1 false"),
        _ => ("cttz", ", i1 false"),
    };
    let flag = if poison.is_empty() { "" } else { ", i1 immarg" };
    let (prim, lanes) = number(f, ty).ok_or_else(|| bug("a count of bits of no integer"))?;
    let symbol = format!("llvm.{intrinsic}.{}", suffix(prim, lanes));
    f.e.declare(&symbol, || format!("declare {text} @{symbol}({text}{flag})"));
    let arg = f.typed(arg)?;
    f.line(format_args!("{name} = call {text} @{symbol}({arg}{poison})"));
    Ok(())
}

pub(crate) fn prim(f: &FunctionEmitter, ty: Ty) -> Option<Prim> {
    f.e.module.types.lane_prim(ty)
}

/// A number's type, or that of a vector's lanes with their number.
pub(crate) fn number(f: &FunctionEmitter, ty: Ty) -> Option<(Prim, Lanes)> {
    let types = &f.e.module.types;
    Some((types.lane_prim(ty)?, types.as_vector(ty).map(|v| v.1)))
}

fn fast(f: &FunctionEmitter) -> &'static str {
    if f.is_fast() { " fast" } else { "" }
}

fn arithmetic(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, args: &[Value]) -> Result<()> {
    let wrap = f.e.options.wrap;
    let text = match (op, class(prim(f, ty))) {
        (Op::Add, Class::Signed) if !wrap => "add nsw".into(),
        (Op::Sub, Class::Signed) if !wrap => "sub nsw".into(),
        (Op::Mul, Class::Signed) if !wrap => "mul nsw".into(),
        (Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem, Class::Float) => format!("f{}{}", op.name(), fast(f)),
        (Op::Div | Op::PDiv, Class::Signed) => "sdiv".into(),
        (Op::Rem | Op::PRem, Class::Signed) => "srem".into(),
        (Op::Div | Op::PDiv, _) => "udiv".into(),
        (Op::Rem | Op::PRem, _) => "urem".into(),
        _ => op.name().to_string(),
    };
    let (a, b) = (f.typed(args[0])?, f.op(args[1]));
    f.line(format_args!("{name} = {text} {a}, {b}"));
    Ok(())
}

fn shift(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, args: &[Value]) -> Result<()> {
    let Some((p, lanes)) = number(f, ty) else { return Err(bug("a shift of no integer")) };
    let text = match op {
        Op::Shl => "shl",
        _ if p.is_signed() => "ashr",
        _ => "lshr",
    };
    let (a, by) = (f.typed(args[0])?, f.typed(args[1])?);
    let (amount, mask) = (f.temp(), uniform(p, lanes, u64::from(p.bits() - 1)));
    f.line(format_args!("{amount} = and {by}, {mask}"));
    f.line(format_args!("{name} = {text} {a}, {amount}"));
    Ok(())
}

/// Lanes of a vector; none of a number.
pub(crate) type Lanes = Option<u32>;

/// A number in a register, or lanes of them.
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

/// The same in the names of intrinsics.
pub(crate) fn suffix(prim: Prim, lanes: Lanes) -> String {
    let kind = if prim.is_float() { "f" } else { "i" };
    let lanes = lanes.map_or(String::new(), |n| format!("v{n}"));
    format!("{lanes}{kind}{}", prim.bits())
}

/// A literal in every lane.
fn uniform(prim: Prim, lanes: Lanes, bits: u64) -> String {
    let one = prim_text(prim, prim.normalize(bits));
    lanes.map_or(one.clone(), |_| format!("splat ({} {one})", number_text(prim, None)))
}

fn cast(f: &mut FunctionEmitter, name: &str, arg: Value, to: Ty) -> Result<()> {
    let (Some((from, lanes)), Some((to, _))) = (number(f, f.ty(arg)), number(f, to)) else {
        return Err(bug("a cast of no number"));
    };
    let value = f.op(arg);
    f.operands[name_idx(name)] = convert(f, value, from, to, lanes);
    Ok(())
}

/// The operand `value` as another number. Between halves and integers it goes through single precision, which loses
/// nothing.
fn convert(f: &mut FunctionEmitter, value: String, from: Prim, to: Prim, lanes: Lanes) -> String {
    let (from_text, to_text) = (number_text(from, lanes), number_text(to, lanes));
    if from_text == to_text {
        // Same bits, another sign.
        return value;
    }
    if (from == Prim::F16 && to.is_int()) || (to == Prim::F16 && !from.is_float()) {
        let single = convert(f, value, from, Prim::F32, lanes);
        return convert(f, single, Prim::F32, to, lanes);
    }
    let wider = to.bits() > from.bits();
    let result = f.temp();
    let op = match (from, to) {
        (_, Prim::Bool) => {
            let (op, zero) = (if from.is_float() { "fcmp une" } else { "icmp ne" }, uniform(from, lanes, 0));
            f.line(format_args!("{result} = {op} {from_text} {value}, {zero}"));
            return result;
        }
        _ if from.is_float() && to.is_float() && wider => "fpext",
        _ if from.is_float() && to.is_float() => "fptrunc",
        _ if from.is_float() && lanes.is_some() => return saturate(f, value, from, to, lanes),
        _ if from.is_float() => {
            let op = if to.is_signed() { "fptosi" } else { "fptoui" };
            let symbol = format!("llvm.{op}.sat.{}.{}", suffix(to, lanes), suffix(from, lanes));
            f.e.declare(&symbol, || format!("declare {to_text} @{symbol}({from_text})"));
            f.line(format_args!("{result} = call {to_text} @{symbol}({from_text} {value})"));
            return result;
        }
        _ if to.is_float() && from.is_signed() => "sitofp",
        _ if to.is_float() => "uitofp",
        _ if !wider => "trunc",
        _ if from.is_signed() => "sext",
        _ => "zext",
    };
    f.line(format_args!("{result} = {op} {from_text} {value} to {to_text}"));
    result
}

/// Lanes of floats as integers. `llvm.fptosi.sat` does the same, but LLVM 22 makes it one lane after the other.
fn saturate(f: &mut FunctionEmitter, value: String, from: Prim, to: Prim, lanes: Lanes) -> String {
    let (from_text, to_text) = (number_text(from, lanes), number_text(to, lanes));
    let float =
        |x: f64| uniform(from, lanes, if from == Prim::F32 { (x as f32).to_bits().into() } else { x.to_bits() });
    // Less than 32 bits lie within a signed number of 32.
    let via = if to.bits() < 32 { Prim::I32 } else { to };
    let op = if via.is_signed() { "fptosi" } else { "fptoui" };
    let mut result = f.temp();
    f.line(format_args!("{result} = {op} {from_text} {value} to {}", number_text(via, lanes)));
    if via != to {
        result = convert(f, result, via, to, lanes);
    }
    let digits = to.bits() - to.is_signed() as u32;
    let above = (digits as f64).exp2();
    let below = if to.is_signed() { -above } else { 0.0 };
    let most = if digits == 64 { u64::MAX } else { (1 << digits) - 1 };
    // What the conversion gives outside of its range is undefined, and not chosen.
    let mut bounds = vec![("oge", float(above), most)];
    if to.is_signed() {
        bounds.push(("olt", float(below), !most));
        bounds.push(("uno", float(0.0), 0));
    } else {
        bounds.push(("ult", float(0.0), 0));
    }
    let bools = number_text(Prim::Bool, lanes);
    for (test, bound, instead) in bounds {
        let (outside, chosen, instead) = (f.temp(), f.temp(), uniform(to, lanes, instead));
        f.line(format_args!("{outside} = fcmp {test} {from_text} {value}, {bound}"));
        f.line(format_args!("{chosen} = select {bools} {outside}, {to_text} {instead}, {to_text} {result}"));
        result = chosen;
    }
    result
}

/// The value that a register `%v7` stands for.
fn name_idx(name: &str) -> usize {
    name.trim_start_matches("%v").parse().unwrap_or(0)
}

fn bitcast(f: &mut FunctionEmitter, name: &str, arg: Value, to: Ty) -> Result<()> {
    let from = f.ty(arg);
    let (from_text, to_text) = (f.e.layouts.register(from)?, f.e.layouts.register(to)?);
    let types = &f.e.module.types;
    let is_address = |ty| matches!(types.kind(ty), TyKind::Ptr { .. } | TyKind::Code);
    let is_scalar = |ty| types.as_prim(ty).is_some() || is_address(ty);
    let is_float = |ty| types.as_prim(ty).is_some_and(Prim::is_float);
    let (from_address, to_address) = (is_address(from), is_address(to));
    if is_scalar(from) && is_scalar(to) && !f.e.layouts.is_bool(from) && !f.e.layouts.is_bool(to) {
        let value = f.typed(arg)?;
        if from_text == to_text {
            f.operands[name_idx(name)] = f.op(arg);
            return Ok(());
        }
        match (from_address, to_address) {
            (true, false) if is_float(to) => {
                let int = f.temp();
                f.line(format_args!("{int} = ptrtoint {value} to i64"));
                f.line(format_args!("{name} = bitcast i64 {int} to {to_text}"));
            }
            (false, true) if is_float(from) => {
                let int = f.temp();
                f.line(format_args!("{int} = bitcast {value} to i64"));
                f.line(format_args!("{name} = inttoptr i64 {int} to ptr"));
            }
            (true, false) => f.line(format_args!("{name} = ptrtoint {value} to {to_text}")),
            (false, true) => f.line(format_args!("{name} = inttoptr {value} to ptr")),
            _ => f.line(format_args!("{name} = bitcast {value} to {to_text}")),
        }
        return Ok(());
    }
    // Numbers and vectors with just as many bits.
    let bits = |ty| {
        let (prim, lanes) = number(f, ty).filter(|n| n.0 != Prim::Bool)?;
        Some(prim.bits() * lanes.unwrap_or(1))
    };
    if bits(from).is_some() && bits(from) == bits(to) {
        let value = f.typed(arg)?;
        f.line(format_args!("{name} = bitcast {value} to {to_text}"));
        return Ok(());
    }
    let at = f.spill_for(arg, to)?;
    f.read(name, &at, to)
}

/// The index operand as an `i64`.
fn wide_index(f: &mut FunctionEmitter, idx: Value) -> Result<String> {
    if let Some(bits) = f.function.as_index(idx) {
        return Ok((bits as i64).to_string());
    }
    let p = prim(f, f.ty(idx)).ok_or_else(|| bug("an index that is no integer"))?;
    if p.bits() == 64 {
        return Ok(f.op(idx));
    }
    let (value, wide) = (f.typed(idx)?, f.temp());
    let op = if p.is_signed() { "sext" } else { "zext" };
    f.line(format_args!("{wide} = {op} {value} to i64"));
    Ok(wide)
}

/// The address of a part of an aggregate of type `ty` in memory.
fn part_address(f: &mut FunctionEmitter, base: &str, ty: Ty, idx: Value) -> Result<String> {
    let at = f.temp();
    lea_to(f, &at, base, ty, idx)?;
    Ok(at)
}

fn lea_to(f: &mut FunctionEmitter, name: &str, base: &str, ty: Ty, idx: Value) -> Result<()> {
    let i = wide_index(f, idx)?;
    match f.e.module.types.kind(ty) {
        TyKind::Array(..) | TyKind::IndefArray(_) | TyKind::Vector(..) => {
            let elem = f.e.module.types.part(ty, 0).ok_or_else(|| bug("an array of nothing"))?;
            let elem = f.e.layouts.memory(elem)?;
            f.line(format_args!("{name} = getelementptr inbounds {elem}, ptr {base}, i64 {i}"));
        }
        _ => {
            let text = f.e.layouts.memory(ty)?;
            f.line(format_args!("{name} = getelementptr inbounds {text}, ptr {base}, i32 0, i32 {i}"));
        }
    }
    Ok(())
}

fn lea(f: &mut FunctionEmitter, name: &str, args: &[Value]) -> Result<()> {
    let pointee = f.pointee(f.ty(args[0]))?;
    let base = f.op(args[0]);
    lea_to(f, name, &base, pointee, args[1])
}

fn build(f: &mut FunctionEmitter, name: &str, result: Value, parts: &[Value]) -> Result<()> {
    let ty = f.ty(result);
    if f.in_memory(result) {
        f.alloca(name, ty)?;
        let text = f.e.layouts.memory(ty)?;
        for (i, &part) in parts.iter().enumerate() {
            if f.function.as_const(part) != Some(nyala_flat::Const::Undef) {
                let at = f.temp();
                let zero =
                    if matches!(f.e.module.types.kind(ty), TyKind::Array(..)) { "i64 0, i64" } else { "i32 0, i32" };
                f.line(format_args!("{at} = getelementptr inbounds {text}, ptr {name}, {zero} {i}"));
                f.write(&at, part)?;
            }
        }
        return Ok(());
    }
    let text = f.e.layouts.memory(ty)?;
    let mut all = "undef".to_string();
    for (i, &part) in parts.iter().enumerate() {
        let part = f.part_operand(part)?;
        let next = if i + 1 == parts.len() { name.to_string() } else { f.temp() };
        f.line(format_args!("{next} = insertvalue {text} {all}, {part}, {i}"));
        all = next;
    }
    if parts.is_empty() {
        f.operands[result.idx()] = "zeroinitializer".into();
    }
    Ok(())
}

/// A vector of the given lanes, or of one everywhere. What is literal is a constant.
fn vector(f: &mut FunctionEmitter, result: Value, args: &[Value]) -> Result<()> {
    let Some((prim, Some(n))) = number(f, f.ty(result)) else { return Err(bug("a vector without lanes")) };
    let lane_text = number_text(prim, None);
    let lanes: Vec<Value> = (0..n as usize).map(|i| args.get(i).copied().unwrap_or(args[0])).collect();
    let literals: Vec<Option<u64>> = lanes.iter().map(|&l| f.function.as_bits(l)).collect();
    let is_known = |l: &Value| f.function.as_const(*l).is_some();
    let all_known = lanes.iter().all(is_known);
    let constant: Vec<String> = literals
        .iter()
        .map(|bits| format!("{lane_text} {}", bits.map_or("undef".into(), |bits| prim_text(prim, bits))))
        .collect();
    let mut all = format!("<{}>", constant.join(", "));
    if literals.iter().all(Option::is_none) {
        all = "undef".into();
    }
    if all_known {
        f.const_lanes.insert(result, literals);
    } else {
        let ty = number_text(prim, Some(n));
        for (i, &l) in lanes.iter().enumerate() {
            if f.function.as_const(l).is_some() {
                continue;
            }
            let (next, lane) = (f.temp(), f.typed(l)?);
            f.line(format_args!("{next} = insertelement {ty} {all}, {lane}, i64 {i}"));
            all = next;
            if args.len() < lanes.len() {
                // The first lane, everywhere.
                let spread = f.temp();
                f.line(format_args!("{spread} = shufflevector {ty} {all}, {ty} undef, <{n} x i32> zeroinitializer"));
                all = spread;
                break;
            }
        }
    }
    f.operands[result.idx()] = all;
    Ok(())
}

/// Reads or replaces a lane.
fn lane(f: &mut FunctionEmitter, op: Op, name: &str, args: &[Value]) -> Result<()> {
    let (vector, idx) = (f.typed(args[0])?, wide_index(f, args[1])?);
    if op == Op::Extract {
        f.line(format_args!("{name} = extractelement {vector}, i64 {idx}"));
    } else {
        let lane = f.typed(args[2])?;
        f.line(format_args!("{name} = insertelement {vector}, {lane}, i64 {idx}"));
    }
    Ok(())
}

fn shuffle(f: &mut FunctionEmitter, name: &str, args: &[Value], ty: Ty) -> Result<()> {
    let (a, b) = (f.typed(args[0])?, f.typed(args[1])?);
    let (Some((prim, Some(n))), Some((_, Some(m)))) = (number(f, f.ty(args[0])), number(f, ty)) else {
        return Err(bug("a shuffle of no vector"));
    };
    if let Some(idx) = f.const_lanes.get(&args[2]) {
        let in_range = |i: &Option<u64>| i.filter(|&i| i < u64::from(2 * n));
        let idx = idx.iter().map(|i| in_range(i).map_or("i32 poison".into(), |i| format!("i32 {i}")));
        let idx: Vec<String> = idx.collect();
        f.line(format_args!("{name} = shufflevector {a}, {b}, <{m} x i32> <{}>", idx.join(", ")));
        return Ok(());
    }
    let (both, idx, to) = (f.temp(), f.typed(args[2])?, number_text(prim, Some(m)));
    let order: Vec<String> = (0..2 * n).map(|i| format!("i32 {i}")).collect();
    f.line(format_args!("{both} = shufflevector {a}, {b}, <{} x i32> <{}>", 2 * n, order.join(", ")));
    let (wide, lane_text) = (number_text(prim, Some(2 * n)), number_text(prim, None));
    let idx_text = prim_of_lanes(f, args[2]);
    let mut all = "undef".to_string();
    for i in 0..m {
        let (at, lane) = (f.temp(), f.temp());
        let next = if i + 1 == m { name.to_string() } else { f.temp() };
        f.line(format_args!("{at} = extractelement {idx}, i64 {i}"));
        f.line(format_args!("{lane} = extractelement {wide} {both}, {idx_text} {at}"));
        f.line(format_args!("{next} = insertelement {to} {all}, {lane_text} {lane}, i64 {i}"));
        all = next;
    }
    Ok(())
}

fn prim_of_lanes(f: &FunctionEmitter, v: Value) -> String {
    prim(f, f.ty(v)).map_or(String::new(), |p| number_text(p, None))
}

fn splat(f: &mut FunctionEmitter, name: &str, result: Value, elem: Value) -> Result<()> {
    let ty = f.ty(result);
    let n = f.e.module.types.n_parts(ty).unwrap_or(0);
    if !f.in_memory(result) {
        return build(f, name, result, &vec![elem; n as usize]);
    }
    f.alloca(name, ty)?;
    f.write(name, elem)?;
    let size = f.size_align(f.ty(elem))?.0;
    f.e.needs_splat = true;
    f.line(format_args!("call void @nyala.splat(ptr {name}, i64 {size}, i64 {n})"));
    Ok(())
}

fn extract(f: &mut FunctionEmitter, name: &str, args: &[Value], ty: Ty) -> Result<()> {
    let (aggregate, idx) = (args[0], args[1]);
    let from = f.ty(aggregate);
    if f.in_memory(aggregate) {
        if f.op(aggregate) == "undef" {
            f.operands[name_idx(name)] = "undef".into();
            return Ok(());
        }
        let base = f.op(aggregate);
        let at = part_address(f, &base, from, idx)?;
        return f.read(name, &at, ty);
    }
    let in_range = |i: &u64| *i < f.e.module.types.n_parts(from).unwrap_or(0);
    match f.function.as_index(idx).filter(in_range) {
        Some(i) => {
            let value = f.typed(aggregate)?;
            if f.e.layouts.is_bool(ty) {
                let byte = f.temp();
                let memory = f.e.layouts.memory(ty)?;
                f.line(format_args!("{byte} = extractvalue {value}, {i}"));
                f.narrow_bool(name, &byte, &memory);
            } else {
                f.line(format_args!("{name} = extractvalue {value}, {i}"));
            }
            Ok(())
        }
        None => {
            let base = f.spill(aggregate)?;
            let at = part_address(f, &base, from, idx)?;
            f.read(name, &at, ty)
        }
    }
}

fn insert(f: &mut FunctionEmitter, b: Block, name: &str, result: Value, args: &[Value]) -> Result<()> {
    let (aggregate, idx, part) = (args[0], args[1], args[2]);
    let ty = f.ty(aggregate);
    if f.in_memory(result) {
        let old = f.op(aggregate);
        let own = old != "undef" && f.home[aggregate.idx()] == b && f.n_uses[aggregate.idx()] == 1;
        let base = if own {
            f.operands[result.idx()] = old.clone();
            old
        } else {
            f.alloca(name, ty)?;
            f.copy(name, &old, ty)?;
            name.to_string()
        };
        let at = part_address(f, &base, ty, idx)?;
        return f.write(&at, part);
    }
    let in_range = |i: &u64| *i < f.e.module.types.n_parts(ty).unwrap_or(0);
    match f.function.as_index(idx).filter(in_range) {
        Some(i) => {
            let (value, part) = (f.typed(aggregate)?, f.part_operand(part)?);
            f.line(format_args!("{name} = insertvalue {value}, {part}, {i}"));
            Ok(())
        }
        None => {
            let base = f.spill(aggregate)?;
            let at = part_address(f, &base, ty, idx)?;
            f.write(&at, part)?;
            f.read(name, &base, ty)
        }
    }
}

/// A call of a function of floats, with `values` of type `prim`; its result.
pub(crate) fn call_math(
    f: &mut FunctionEmitter,
    symbol: &str,
    prim: Prim,
    lanes: Lanes,
    values: &[String],
    attributes: &str,
) -> String {
    let ty = number_text(prim, lanes);
    let params = vec![ty.as_str(); values.len()].join(", ");
    let declared = if attributes.is_empty() { "" } else { " #2" };
    f.e.declare(symbol, || format!("declare {ty} @{symbol}({params}){declared}"));
    let args: Vec<String> = values.iter().map(|v| format!("{ty} {v}")).collect();
    let (result, fast) = (f.temp(), fast(f));
    f.line(format_args!("{result} = call{fast} {ty} @{symbol}({}){attributes}", args.join(", ")));
    result
}

fn math(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, args: &[Value]) -> Result<()> {
    let number = number(f, ty).filter(|n| n.0.is_float());
    let (prim, lanes) = number.ok_or_else(|| bug("a math function of no float"))?;
    let mut values: Vec<String> = args.iter().map(|&a| f.op(a)).collect();
    let mut op = op;
    if lanes.is_some() && f.is_fast() {
        if op == Op::Exp {
            f.exponents.insert(name_idx(name), values[0].clone());
        } else if let (Op::Pow, Some(exponent)) = (op, f.exponents.get(&args[0].idx()).cloned()) {
            // A power of e^x with the exponent y is e^(x·y).
            let (product, ty) = (f.temp(), number_text(prim, lanes));
            f.line(format_args!("{product} = fmul fast {ty} {exponent}, {}", values[1]));
            (op, values) = (Op::Exp, vec![product]);
        }
    }
    f.operands[name_idx(name)] = math_value(f, op, prim, lanes, values);
    Ok(())
}

/// The lesser or greater of two numbers, where -0 is less than +0, given one for which it may be either. See Note
/// [The lesser of two numbers].
fn signed_zero(f: &mut FunctionEmitter, op: Op, prim: Prim, lanes: Lanes, [a, b]: [&str; 2], either: &str) -> String {
    let unsigned = match prim.bits() {
        32 => Prim::U32,
        _ => Prim::U64,
    };
    let (float, int) = (number_text(prim, lanes), number_text(unsigned, lanes));
    let combine = if op == Op::Fmin { "or" } else { "and" };
    let [equal, x, y, both, zero, result] = [(); 6].map(|()| f.temp());
    f.line(format_args!("{equal} = fcmp oeq {float} {a}, {b}"));
    f.line(format_args!("{x} = bitcast {float} {a} to {int}"));
    f.line(format_args!("{y} = bitcast {float} {b} to {int}"));
    f.line(format_args!("{both} = {combine} {int} {x}, {y}"));
    f.line(format_args!("{zero} = bitcast {int} {both} to {float}"));
    f.line(format_args!(
        "{result} = select {} {equal}, {float} {zero}, {float} {either}",
        number_text(Prim::Bool, lanes)
    ));
    result
}

/// Halves are computed in single precision, and rounded once (see `nyala_ir::scalar`).
fn math_value(f: &mut FunctionEmitter, op: Op, prim: Prim, lanes: Lanes, values: Vec<String>) -> String {
    if prim == Prim::F16 {
        let wide = if op == Op::Fma { Prim::F64 } else { Prim::F32 };
        let values: Vec<String> = values.into_iter().map(|v| convert(f, v, prim, wide, lanes)).collect();
        let result = match &values[..] {
            [a, b, c] => {
                let (product, sum, ty) = (f.temp(), f.temp(), number_text(wide, lanes));
                f.line(format_args!("{product} = fmul {ty} {a}, {b}"));
                f.line(format_args!("{sum} = fadd {ty} {product}, {c}"));
                sum
            }
            _ => math_value(f, op, wide, lanes, values),
        };
        return convert(f, result, wide, prim, lanes);
    }
    if op.is_exact_math() {
        let base = match op {
            Op::Abs => "fabs",
            Op::Fmin => "minnum",
            Op::Fmax => "maxnum",
            _ => op.name(),
        };
        let result = call_math(f, &format!("llvm.{base}.{}", suffix(prim, lanes)), prim, lanes, &values, "");
        return match (op, &values[..]) {
            (Op::Fmin | Op::Fmax, [a, b]) if fast(f).is_empty() => signed_zero(f, op, prim, lanes, [a, b], &result),
            _ => result,
        };
    }
    let Some(n) = lanes else { return rounding::call(f, op, prim, &values) };
    let whole = polynomials::write(f, op, prim, n, &values).or_else(|| libmvec::call(f, op, prim, n, &values));
    if let Some(result) = whole {
        return result;
    }
    let (vector, lane) = (number_text(prim, lanes), number_text(prim, None));
    let mut all = "undef".to_string();
    for i in 0..n {
        let mut own = Vec::new();
        for value in &values {
            let one = f.temp();
            f.line(format_args!("{one} = extractelement {vector} {value}, i64 {i}"));
            own.push(one);
        }
        let (result, next) = (rounding::call(f, op, prim, &own), f.temp());
        f.line(format_args!("{next} = insertelement {vector} {all}, {lane} {result}, i64 {i}"));
        all = next;
    }
    all
}

// Note [The lesser of two numbers]
//
// `llvm.minimumnum` is what `fmin` means. But for AVX-512, LLVM 22 gives NaN for one of a NaN and a number that it knows
// to be none, an integer's say. `llvm.minnum` leaves open only which of two zeros it gives: numbers that are equal are the
// same bits, or zeros, whose signs are or-ed (and-ed for the greater).

//! Tuples, structs, arrays and vectors: construction, access to parts, addresses of parts.

use crate::diagnostics::bug;
use crate::emit::prim_text;
use crate::function::FunctionEmitter;
use crate::ops::{number, number_text, prim};
use nyala_base::{Diagnostic, Id};
use nyala_flat::{Block, Const, Value};
use nyala_ir::{Arch, Op, Prim, Ty, TyKind};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

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

pub(crate) fn lea(f: &mut FunctionEmitter, name: &str, args: &[Value]) -> Result<()> {
    let pointee = f.pointee(f.ty(args[0]))?;
    let base = f.op(args[0]);
    // See Note [Offsets of addresses].
    if let Some((index, offset)) = f.offsets.get(&args[1]).cloned()
        && let Some(size) = indexed_size(f, pointee)?
    {
        let ty = number_text(prim(f, f.ty(args[1])).unwrap_or(Prim::I32), None);
        let [wide, near] = [(); 2].map(|()| f.temp());
        let elem = f.e.module.types.part(pointee, 0).ok_or_else(|| bug("an array of nothing"))?;
        let elem = f.e.layouts.memory(elem)?;
        match ty.as_str() {
            "i64" => f.line(format_args!("{near} = getelementptr {elem}, ptr {base}, i64 {index}")),
            ty => {
                f.line(format_args!("{wide} = sext {ty} {index} to i64"));
                f.line(format_args!("{near} = getelementptr {elem}, ptr {base}, i64 {wide}"));
            }
        }
        f.line(format_args!("{name} = getelementptr i8, ptr {near}, i64 {}", offset.wrapping_mul(size)));
        return Ok(());
    }
    lea_to(f, name, &base, pointee, args[1])
}

/// Bytes of an element of an array; `None` for other types.
fn indexed_size(f: &FunctionEmitter, pointee: Ty) -> Result<Option<i64>> {
    let elem = match f.e.module.types.kind(pointee) {
        TyKind::IndefArray(elem) | TyKind::Array(elem, _) => *elem,
        _ => return Ok(None),
    };
    Ok(Some(f.size_align(elem)?.0 as i64))
}

pub(crate) fn build(f: &mut FunctionEmitter, result: Value, parts: &[Value]) -> Result<()> {
    let (ty, name) = (f.ty(result), &f.op(result));
    if f.in_memory(result) {
        f.alloca(name, ty)?;
        let text = f.e.layouts.memory(ty)?;
        for (i, &part) in parts.iter().enumerate() {
            if f.function.as_const(part) != Some(Const::Undef) {
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

/// A vector of the given lanes, or of a single value in all lanes. Literal lanes become a constant.
pub(crate) fn vector(f: &mut FunctionEmitter, result: Value, args: &[Value]) -> Result<()> {
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
                // Copies the first lane to all lanes.
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
pub(crate) fn lane(f: &mut FunctionEmitter, op: Op, name: &str, args: &[Value]) -> Result<()> {
    let (vector, idx) = (f.typed(args[0])?, wide_index(f, args[1])?);
    if op == Op::Extract {
        f.line(format_args!("{name} = extractelement {vector}, i64 {idx}"));
    } else {
        let lane = f.typed(args[2])?;
        f.line(format_args!("{name} = insertelement {vector}, {lane}, i64 {idx}"));
    }
    Ok(())
}

pub(crate) fn shuffle(f: &mut FunctionEmitter, name: &str, args: &[Value], ty: Ty) -> Result<()> {
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
    let (idx, idx_text) = (f.typed(args[2])?, prim_of_lanes(f, args[2]));
    if args[0] != args[1] || !n.is_power_of_two() || n != m {
        let both = f.temp();
        let order: Vec<String> = (0..2 * n).map(|i| format!("i32 {i}")).collect();
        f.line(format_args!("{both} = shufflevector {a}, {b}, <{} x i32> <{}>", 2 * n, order.join(", ")));
        let both = format!("{} {both}", number_text(prim, Some(2 * n)));
        pick(f, name, &both, &idx, &idx_text, (prim, m));
        return Ok(());
    }
    let own = f.temp();
    f.line(format_args!("{own} = and {idx}, splat ({idx_text} {})", n - 1));
    let target = f.e.module.target();
    let is_avx2 = target.arch == Arch::X86_64 && target.vector_bits == 256;
    if prim.bits() != 64 || n != 4 || !is_avx2 {
        pick(f, name, &a, &format!("<{n} x {idx_text}> {own}"), &idx_text, (prim, n));
        return Ok(());
    }
    // AVX2 permutes the halves of four numbers of 64 bits, but not the numbers.
    let [halves, twice, each, halves_at, picked] = [(); 5].map(|()| f.temp());
    f.line(format_args!("{halves} = bitcast {a} to <8 x i32>"));
    f.line(format_args!("{twice} = shl <4 x {idx_text}> {own}, splat ({idx_text} 1)"));
    let order = (0..8).map(|i| format!("i32 {}", i / 2)).collect::<Vec<_>>().join(", ");
    let odd = (0..8).map(|i| format!("{idx_text} {}", i % 2)).collect::<Vec<_>>().join(", ");
    f.line(format_args!(
        "{each} = shufflevector <4 x {idx_text}> {twice}, <4 x {idx_text}> poison, <8 x i32> <{order}>"
    ));
    f.line(format_args!("{halves_at} = or <8 x {idx_text}> {each}, <{odd}>"));
    let idx = format!("<8 x {idx_text}> {halves_at}");
    pick(f, &picked, &format!("<8 x i32> {halves}"), &idx, &idx_text, (Prim::I32, 8));
    f.line(format_args!("{name} = bitcast <8 x i32> {picked} to {}", number_text(prim, Some(n))));
    Ok(())
}

/// The lanes of a vector that `idx` has the numbers of. LLVM makes one instruction of it, if the machine has one for as many lanes as
/// the vector has.
fn pick(f: &mut FunctionEmitter, name: &str, from: &str, idx: &str, idx_text: &str, (prim, m): (Prim, u32)) {
    let (to, lane_text) = (number_text(prim, Some(m)), number_text(prim, None));
    let mut all = "undef".to_string();
    for i in 0..m {
        let (at, lane) = (f.temp(), f.temp());
        let next = if i + 1 == m { name.to_string() } else { f.temp() };
        f.line(format_args!("{at} = extractelement {idx}, i64 {i}"));
        f.line(format_args!("{lane} = extractelement {from}, {idx_text} {at}"));
        f.line(format_args!("{next} = insertelement {to} {all}, {lane_text} {lane}, i64 {i}"));
        all = next;
    }
}

fn prim_of_lanes(f: &FunctionEmitter, v: Value) -> String {
    prim(f, f.ty(v)).map_or(String::new(), |p| number_text(p, None))
}

pub(crate) fn splat(f: &mut FunctionEmitter, result: Value, elem: Value) -> Result<()> {
    let (ty, name) = (f.ty(result), &f.op(result));
    let n = f.e.module.types.n_parts(ty).unwrap_or(0);
    if !f.in_memory(result) {
        return build(f, result, &vec![elem; n as usize]);
    }
    f.alloca(name, ty)?;
    f.write(name, elem)?;
    let size = f.size_align(f.ty(elem))?.0;
    f.e.needs_splat = true;
    f.line(format_args!("call void @nyala.splat(ptr {name}, i64 {size}, i64 {n})"));
    Ok(())
}

pub(crate) fn extract(f: &mut FunctionEmitter, result: Value, args: &[Value], ty: Ty) -> Result<()> {
    let (aggregate, idx) = (args[0], args[1]);
    let name = &f.op(result);
    let from = f.ty(aggregate);
    if f.in_memory(aggregate) {
        if f.op(aggregate) == "undef" {
            f.operands[result.idx()] = "undef".into();
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

pub(crate) fn insert(f: &mut FunctionEmitter, b: Block, result: Value, args: &[Value]) -> Result<()> {
    let (aggregate, idx, part) = (args[0], args[1], args[2]);
    let (ty, name) = (f.ty(aggregate), &f.op(result));
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

// Note [Offsets of addresses]
//
// Accesses of GPUs add a literal to an address for free. So an index `y * w + x - 1` is taken apart: the address of
// `y * w + x` is computed once for all neighbours in a row, and each access has a literal offset. For LLVM alone the
// literal is part of the 32-bit sum, and it makes a 64-bit sum of each term. Signed sums do not overflow, so the literal can be
// added after the sum is widened. What remains may overflow only if the index is within the literal of the least or greatest
// number of 32 bits, which no element of an array has.
//
// On CPUs, blocks of thousands of accesses are treated so, those of unrolled loops: LLVM's selection of instructions takes time in
// the square of the sums that have a term in common.

//! Arithmetic and math functions on numbers.

use crate::diagnostics::bug;
use crate::function::FunctionEmitter;
use crate::ops::casts::convert;
use crate::ops::{Class, Lanes, class, number, number_text, prim, suffix, uniform};
use crate::{gpu, instructions, libmvec, polynomials, rounding};
use nyala_base::{Diagnostic, Id};
use nyala_flat::Value;
use nyala_ir::scalar::float_value;
use nyala_ir::{Op, Prim, Ty};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Counts bits.
pub(crate) fn count(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, arg: Value) -> Result<()> {
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

fn fast(f: &FunctionEmitter) -> &'static str {
    match (f.is_fast(), f.e.target().is_gpu()) {
        (false, _) => "",
        // Sums in another order keep more values alive, and gain nothing where lanes are work items.
        (true, true) => " nnan ninf nsz arcp contract afn",
        (true, false) => " fast",
    }
}

pub(crate) fn arithmetic(f: &mut FunctionEmitter, op: Op, result: Value, ty: Ty, args: &[Value]) -> Result<()> {
    let name = f.op(result);
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
    if f.splits_offsets && matches!((op, class(prim(f, ty))), (Op::Add, Class::Signed)) && !wrap {
        take_offset(f, result, ty, args);
    }
    let (a, b) = (f.typed(args[0])?, f.op(args[1]));
    f.line(format_args!("{name} = {text} {a}, {b}"));
    Ok(())
}

/// Notes the literal in a signed sum, and computes the rest of it. See Note [Offsets of addresses] in `aggregates`.
fn take_offset(f: &mut FunctionEmitter, result: Value, ty: Ty, args: &[Value]) {
    let Some(prim) = f.e.module.types.as_prim(ty) else { return };
    let mut rest = Vec::new();
    let mut offset = 0i64;
    for &arg in args {
        match (f.function.as_bits(arg), f.offsets.get(&arg)) {
            (Some(bits), _) => offset = offset.wrapping_add(prim.normalize(bits) as i64),
            (None, Some((operand, own))) => {
                offset = offset.wrapping_add(*own);
                rest.push(operand.clone());
            }
            (None, None) => rest.push(f.op(arg)),
        }
    }
    let operand = match &rest[..] {
        [one] => one.clone(),
        [a, b] if offset != 0 => {
            let sum = f.temp();
            f.line(format_args!("{sum} = add {} {a}, {b}", number_text(prim, None)));
            sum
        }
        _ => return,
    };
    f.offsets.insert(result, (operand, offset));
}

pub(crate) fn shift(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, args: &[Value]) -> Result<()> {
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

/// Calls a function of floats with `values` of type `prim`; returns the result.
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

pub(crate) fn math(f: &mut FunctionEmitter, op: Op, result: Value, ty: Ty, args: &[Value]) -> Result<()> {
    let number = number(f, ty).filter(|n| n.0.is_float());
    let (prim, lanes) = number.ok_or_else(|| bug("a math function of no float"))?;
    let mut values: Vec<String> = args.iter().map(|&a| f.op(a)).collect();
    let mut op = op;
    if lanes.is_some() && f.is_fast() {
        if op == Op::Exp {
            f.exponents.insert(result, values[0].clone());
        } else if let (Op::Pow, Some(exponent)) = (op, f.exponents.get(&args[0]).cloned()) {
            // e^x to the power of y is e^(x·y).
            let (product, ty) = (f.temp(), number_text(prim, lanes));
            f.line(format_args!("{product} = fmul fast {ty} {exponent}, {}", values[1]));
            (op, values) = (Op::Exp, vec![product]);
        }
    }
    if matches!(op, Op::Fmin | Op::Fmax)
        && prim != Prim::F16
        && !f.is_fast()
        && !f.e.target().is_gpu()
        && let Some(value) = lesser_of_literal(f, op, prim, lanes, args, &values)
    {
        f.operands[result.idx()] = value;
        return Ok(());
    }
    let are_numbers = match (op, args) {
        (Op::Fmin | Op::Fmax, &[a, b]) if !f.is_fast() && !f.e.target().is_gpu() => [f.is_number(a), f.is_number(b)],
        _ => [false; 2],
    };
    f.operands[result.idx()] = math_value(f, op, prim, lanes, values, are_numbers)?;
    Ok(())
}

/// The lesser or greater of two numbers, of which one is a literal: a comparison and a selection, which is one instruction of
/// x86-64. `None` if no operand is such a literal that this is right for NaN and zeros.
fn lesser_of_literal(
    f: &mut FunctionEmitter,
    op: Op,
    prim: Prim,
    lanes: Lanes,
    args: &[Value],
    values: &[String],
) -> Option<String> {
    let (is_less, other_zero) = (op == Op::Fmin, if op == Op::Fmin { 0 } else { 1 << (prim.bits() - 1) });
    // Of two zeros, the literal is the result.
    let is_good = |bits: u64| bits != other_zero && !float_value(prim, bits).is_nan();
    let is_literal = |f: &FunctionEmitter, v: Value| match f.const_lanes.get(&v) {
        Some(lanes) => lanes.iter().all(|lane| lane.is_some_and(is_good)),
        None => f.function.as_bits(v).is_some_and(is_good),
    };
    let literal = (0..2).rev().find(|&i| is_literal(f, args[i]))?;
    let (x, c) = (&values[1 - literal], &values[literal]);
    let (ty, mask) = (number_text(prim, lanes), number_text(Prim::Bool, lanes));
    let [first, result] = [(); 2].map(|()| f.temp());
    f.line(format_args!("{first} = fcmp {} {ty} {x}, {c}", if is_less { "olt" } else { "ogt" }));
    f.line(format_args!("{result} = select {mask} {first}, {ty} {x}, {ty} {c}"));
    Some(result)
}

/// The text of a function that changes a float in memory to the lesser or greater of it and another one, and returns what it was.
/// LLVM's own operation leaves open which of two zeros that is.
pub(crate) fn atomic_lesser(f: &mut FunctionEmitter, is_less: bool, prim: Prim, order: &str, align: u64) -> String {
    let (name, relation, combine) = if is_less { ("fmin", "olt", "or") } else { ("fmax", "ogt", "and") };
    let symbol = format!("nyala.atomic.{name}.{}.{order}.{align}", prim.name());
    let (float, int) = (number_text(prim, None), format!("i{}", prim.bits()));
    f.e.declare(&symbol, || {
        format!(
            "define internal {float} @{symbol}(ptr %place, {float} %b) alwaysinline nounwind {{
entry:
  %first = load atomic {int}, ptr %place monotonic, align {align}
  %y = bitcast {float} %b to {int}
  br label %again
again:
  %x = phi {int} [ %first, %entry ], [ %seen, %again ]
  %a = bitcast {int} %x to {float}
  %less = fcmp {relation} {float} %a, %b
  %none = fcmp uno {float} %b, %b
  %takes = or i1 %less, %none
  %either = select i1 %takes, {int} %x, {int} %y
  %equal = fcmp oeq {float} %a, %b
  %both = {combine} {int} %x, %y
  %new = select i1 %equal, {int} %both, {int} %either
  %pair = cmpxchg ptr %place, {int} %x, {int} %new {order} monotonic, align {align}
  %seen = extractvalue {{ {int}, i1 }} %pair, 0
  %done = extractvalue {{ {int}, i1 }} %pair, 1
  br i1 %done, label %end, label %again
end:
  ret {float} %a
}}"
        )
    });
    symbol
}

/// The lesser or greater of two numbers; the other one if one is NaN; -0 is less than +0. `are_numbers`: which is not NaN. See
/// Note [The lesser of two numbers].
fn lesser(
    f: &mut FunctionEmitter,
    op: Op,
    prim: Prim,
    lanes: Lanes,
    [a, b]: [&str; 2],
    are_numbers: [bool; 2],
) -> String {
    let is_less = op == Op::Fmin;
    if f.e.target().dq {
        return instructions::lesser(f, is_less, prim, lanes, [a, b], are_numbers);
    }
    // A number is the second operand, which `minps` returns if the first one is NaN.
    let [a, b] = if are_numbers[0] { [b, a] } else { [a, b] };
    let unsigned = match prim.bits() {
        32 => Prim::U32,
        _ => Prim::U64,
    };
    let (float, int, mask) = (number_text(prim, lanes), number_text(unsigned, lanes), number_text(Prim::Bool, lanes));
    let (relation, combine) = if is_less { ("olt", "or") } else { ("ogt", "and") };
    let [less, one, equal, x, both, result] = [(); 6].map(|()| f.temp());
    f.line(format_args!("{less} = fcmp {relation} {float} {a}, {b}"));
    f.line(format_args!("{one} = select {mask} {less}, {float} {a}, {float} {b}"));
    f.line(format_args!("{equal} = fcmp oeq {float} {a}, {b}"));
    f.line(format_args!("{x} = bitcast {float} {a} to {int}"));
    if are_numbers.contains(&true) {
        // Of equal numbers, `one` is the second; others stay as they are.
        let [bits, added] = [(); 2].map(|()| f.temp());
        let none = uniform(unsigned, lanes, if is_less { 0 } else { u64::MAX });
        f.line(format_args!("{added} = select {mask} {equal}, {int} {x}, {int} {none}"));
        f.line(format_args!("{bits} = bitcast {float} {one} to {int}"));
        f.line(format_args!("{both} = {combine} {int} {bits}, {added}"));
        f.line(format_args!("{result} = bitcast {int} {both} to {float}"));
        return result;
    }
    let [y, zero, either, none] = [(); 4].map(|()| f.temp());
    f.line(format_args!("{y} = bitcast {float} {b} to {int}"));
    f.line(format_args!("{both} = {combine} {int} {x}, {y}"));
    f.line(format_args!("{zero} = bitcast {int} {both} to {float}"));
    f.line(format_args!("{either} = select {mask} {equal}, {float} {zero}, {float} {one}"));
    // Next to the first selection, this one would become one with it, and the first no `minps`.
    f.line(format_args!("{none} = fcmp uno {float} {b}, {b}"));
    f.line(format_args!("{result} = select {mask} {none}, {float} {a}, {float} {either}"));
    result
}

fn scalar_call(f: &mut FunctionEmitter, op: Op, prim: Prim, values: &[String]) -> Result<String> {
    match f.e.target().is_gpu() {
        true => gpu::math(f, op, prim, values),
        false => Ok(rounding::call(f, op, prim, values)),
    }
}

/// Computes halves in single precision (`fma` in double), and rounds once (see `nyala_ir::scalar`).
fn math_value(
    f: &mut FunctionEmitter,
    op: Op,
    prim: Prim,
    lanes: Lanes,
    values: Vec<String>,
    are_numbers: [bool; 2],
) -> Result<String> {
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
            _ => math_value(f, op, wide, lanes, values, are_numbers)?,
        };
        return Ok(convert(f, result, wide, prim, lanes));
    }
    if op.is_exact_math() {
        let base = match op {
            Op::Abs => "fabs",
            // The instructions of GPUs order zeros.
            Op::Fmin if f.e.target().is_gpu() => "minimumnum",
            Op::Fmax if f.e.target().is_gpu() => "maximumnum",
            Op::Fmin => "minnum",
            Op::Fmax => "maxnum",
            _ => op.name(),
        };
        if let (Op::Fmin | Op::Fmax, [a, b]) = (op, &values[..])
            && fast(f).is_empty()
            && !f.e.target().is_gpu()
        {
            return Ok(lesser(f, op, prim, lanes, [a, b], are_numbers));
        }
        return Ok(call_math(f, &format!("llvm.{base}.{}", suffix(prim, lanes)), prim, lanes, &values, ""));
    }
    let Some(n) = lanes else { return scalar_call(f, op, prim, &values) };
    let whole = polynomials::write(f, op, prim, n, &values).or_else(|| libmvec::call(f, op, prim, n, &values));
    if let Some(result) = whole {
        return Ok(result);
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
        let (result, next) = (scalar_call(f, op, prim, &own)?, f.temp());
        f.line(format_args!("{next} = insertelement {vector} {all}, {lane} {result}, i64 {i}"));
        all = next;
    }
    Ok(all)
}

// Note [The lesser of two numbers]
//
// `llvm.minimumnum` has the meaning of `fmin`. But for AVX-512, LLVM 22 gives NaN for a NaN and a number that it knows
// to be none, such as a converted integer. `llvm.minnum` leaves open what it returns for signaling NaNs, and which of two
// zeros. So it is written out: a comparison and a selection are `minps`; equal numbers have the same bits, or are zeros,
// whose sign bits are or-ed (and-ed for the greater). Where one operand is known to be a number, as in a reduction that starts with
// one, it is the second of `minps`, and nothing is left to ask for NaN. AVX-512 DQ has an instruction that orders zeros; comparing
// into a mask would take four times as long as `minps`.

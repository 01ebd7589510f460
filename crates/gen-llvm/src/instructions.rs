//! Operations that are instructions of x86-64 processors: approximations, which only these can compute; moving of bits, for
//! which other processors get a loop; the lesser and the greater of two floats, which others compare.
//!
//! LLVM's intrinsics for them take vectors of one width. A number, or a vector of another width, is put into such
//! vectors:
//!
//! ```text
//! %b = shufflevector <3 x float> %a, <3 x float> zeroinitializer, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
//! %c = call <4 x float> @llvm.x86.sse.rcp.ps(<4 x float> %b)
//! ```
//!
//! If the processor lacks the instruction of an intrinsic, LLVM would end the process: here it is an error.

use crate::diagnostics::{bug, not_on_processor};
use crate::function::FunctionEmitter;
use crate::ops::{Lanes, number, number_text, suffix};
use nyala_base::Diagnostic;
use nyala_flat::Value;
use nyala_ir::{Arch, Op, Prim, Ty};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Emits [`Op::Rcp`] and the other approximations.
pub(crate) fn approximate(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, arg: Value) -> Result<()> {
    let (prim, lanes) = number(f, ty).ok_or_else(|| bug("an approximation of no number"))?;
    let with_masks = matches!(op, Op::Rcp14 | Op::Rsqrt14);
    let target = f.e.target();
    let (is_there, needs) =
        if with_masks { (target.has_avx512(), "AVX-512") } else { (target.arch == Arch::X86_64, "SSE") };
    if !is_there {
        let machine = target.cpu.as_ref().unwrap_or(&target.triple);
        return Err(Box::new(not_on_processor::instruction(f.function.span, op.name(), needs, machine)));
    }
    let is_wide = target.vector_bits >= 256;
    let (symbol, piece, mask) = match (op, prim) {
        (Op::Rcp, _) if is_wide && lanes > Some(4) => ("llvm.x86.avx.rcp.ps.256", 8, None),
        (Op::Rsqrt, _) if is_wide && lanes > Some(4) => ("llvm.x86.avx.rsqrt.ps.256", 8, None),
        (Op::Rcp, _) => ("llvm.x86.sse.rcp.ps", 4, None),
        (Op::Rsqrt, _) => ("llvm.x86.sse.rsqrt.ps", 4, None),
        (Op::Rcp14, Prim::F64) => ("llvm.x86.avx512.rcp14.pd.512", 8, Some("i8")),
        (Op::Rcp14, _) => ("llvm.x86.avx512.rcp14.ps.512", 16, Some("i16")),
        (_, Prim::F64) => ("llvm.x86.avx512.rsqrt14.pd.512", 8, Some("i8")),
        _ => ("llvm.x86.avx512.rsqrt14.ps.512", 16, Some("i16")),
    };
    let text = number_text(prim, Some(piece));
    f.e.declare(symbol, || match mask {
        Some(mask) => format!("declare {text} @{symbol}({text}, {text}, {mask})"),
        None => format!("declare {text} @{symbol}({text})"),
    });
    let call = |f: &mut FunctionEmitter, result: &str, operand: &str| {
        let more = mask.map_or(String::new(), |mask| format!(", {text} zeroinitializer, {mask} -1"));
        f.line(format_args!("{result} = call {text} @{symbol}({text} {operand}{more})"));
    };
    let value = f.op(arg);
    in_pieces(f, prim, lanes, piece, name, [&value], |f, result, [operand]| call(f, result, operand));
    Ok(())
}

/// Emits what an instruction for vectors of `piece` lanes computes for a number, or a vector of other lanes. What is missing in
/// a vector is zero.
fn in_pieces<const N: usize>(
    f: &mut FunctionEmitter,
    prim: Prim,
    lanes: Lanes,
    piece: u32,
    name: &str,
    values: [&str; N],
    call: impl Fn(&mut FunctionEmitter, &str, [&str; N]),
) {
    let (text, one) = (number_text(prim, Some(piece)), number_text(prim, None));
    let Some(n) = lanes else {
        let vectors = values.map(|value| {
            let vector = f.temp();
            f.line(format_args!("{vector} = insertelement {text} zeroinitializer, {one} {value}, i64 0"));
            vector
        });
        let result = f.temp();
        call(f, &result, std::array::from_fn(|i| &*vectors[i]));
        f.line(format_args!("{name} = extractelement {text} {result}, i64 0"));
        return;
    };
    let whole = number_text(prim, lanes);
    if n == piece {
        return call(f, name, values);
    }
    let mut all = "zeroinitializer".to_string();
    let pieces = n.div_ceil(piece);
    for i in 0..pieces {
        let (from, to) = (i * piece, ((i + 1) * piece).min(n));
        // Missing lanes are taken from the second vector, which is zero.
        let own = order(piece, |k| if from + k < n { from + k } else { n });
        let parts = values.map(|value| {
            let part = f.temp();
            f.line(format_args!("{part} = shufflevector {whole} {value}, {whole} zeroinitializer, {own}"));
            part
        });
        let [result, wide] = [(); 2].map(|()| f.temp());
        call(f, &result, std::array::from_fn(|i| &*parts[i]));
        let spread = order(n, |k| if (from..to).contains(&k) { k - from } else { 0 });
        f.line(format_args!("{wide} = shufflevector {text} {result}, {text} zeroinitializer, {spread}"));
        let next = if i + 1 == pieces { name.to_string() } else { f.temp() };
        let merged = order(n, |k| if (from..to).contains(&k) { n + k } else { k });
        f.line(format_args!("{next} = shufflevector {whole} {all}, {whole} {wide}, {merged}"));
        all = next;
    }
}

/// The lesser or greater of two numbers by AVX-512 DQ's `vrange`, or of each lane. Of zeros, -0 is the lesser one. The other one
/// if one is NaN, but for signaling ones: these are made quiet before, in values that are not known to be numbers.
pub(crate) fn lesser(
    f: &mut FunctionEmitter,
    is_less: bool,
    prim: Prim,
    lanes: Lanes,
    values: [&str; 2],
    are_numbers: [bool; 2],
) -> String {
    let bits = lanes.unwrap_or(1) * prim.bits();
    let (bits, rounding) = match bits {
        257.. => (512, ", i32 4"),
        129.. => (256, ""),
        _ => (128, ""),
    };
    let piece = bits / prim.bits();
    let (text, kind) = (number_text(prim, Some(piece)), if prim == Prim::F64 { "pd" } else { "ps" });
    // An integer with a bit for each lane, of at least a byte.
    let mask = format!("i{}", piece.max(8));
    let symbol = format!("llvm.x86.avx512.mask.range.{kind}.{bits}");
    let more = if rounding.is_empty() { "" } else { ", i32" };
    f.e.declare(&symbol, || format!("declare {text} @{symbol}({text}, {text}, i32, {text}, {mask}{more})"));
    // The sign is that of the comparison's result.
    let how = if is_less { 4 } else { 5 };
    let name = f.temp();
    in_pieces(f, prim, lanes, piece, &name, values, |f, result, operands| {
        // LLVM crashes at vectors of other lanes.
        let [a, b] = std::array::from_fn::<_, 2, _>(|i| {
            if are_numbers[i] {
                return operands[i].to_string();
            }
            let (quiet, symbol) = (f.temp(), format!("llvm.canonicalize.{}", suffix(prim, Some(piece))));
            f.e.declare(&symbol, || format!("declare {text} @{symbol}({text})"));
            f.line(format_args!("{quiet} = call {text} @{symbol}({text} {})", operands[i]));
            quiet
        });
        f.line(format_args!(
            "{result} = call {text} @{symbol}({text} {a}, {text} {b}, i32 {how}, {text} zeroinitializer, {mask} -1{rounding})"
        ));
    });
    name
}

/// The mask operand of a `shufflevector`, by the source of each lane.
fn order(n: u32, lane: impl Fn(u32) -> u32) -> String {
    let lanes: Vec<String> = (0..n).map(|k| format!("i32 {}", lane(k))).collect();
    format!("<{n} x i32> <{}>", lanes.join(", "))
}

/// Emits [`Op::Pext`] and [`Op::Pdep`], lane by lane.
pub(crate) fn deposit(f: &mut FunctionEmitter, op: Op, name: &str, ty: Ty, args: &[Value]) -> Result<()> {
    let (prim, lanes) = number(f, ty).ok_or_else(|| bug("moving bits of no integer"))?;
    let (whole, one) = (number_text(prim, lanes), number_text(prim, None));
    let (bits, mask) = (f.op(args[0]), f.op(args[1]));
    let Some(n) = lanes else { return deposit_one(f, op, name, prim, &bits, &mask) };
    let mut all = "zeroinitializer".to_string();
    for i in 0..n {
        let [bit, masked, moved] = [(); 3].map(|()| f.temp());
        f.line(format_args!("{bit} = extractelement {whole} {bits}, i64 {i}"));
        f.line(format_args!("{masked} = extractelement {whole} {mask}, i64 {i}"));
        deposit_one(f, op, &moved, prim, &bit, &masked)?;
        let next = if i + 1 == n { name.to_string() } else { f.temp() };
        f.line(format_args!("{next} = insertelement {whole} {all}, {one} {moved}, i64 {i}"));
        all = next;
    }
    Ok(())
}

fn deposit_one(f: &mut FunctionEmitter, op: Op, name: &str, prim: Prim, bits: &str, mask: &str) -> Result<()> {
    let has_instruction = f.e.target().bmi2;
    let (own, width) = (prim.bits(), if prim.bits() == 64 || !has_instruction { 64 } else { 32 });
    let symbol = match has_instruction {
        true => format!("llvm.x86.bmi.{}.{width}", op.name()),
        false => format!("nyala.{}", op.name()),
    };
    f.e.declare(&symbol, || match has_instruction {
        true => format!("declare i{width} @{symbol}(i{width}, i{width})"),
        false => loop_text(op, &symbol),
    });
    if own == width {
        f.line(format_args!("{name} = call i{width} @{symbol}(i{width} {bits}, i{width} {mask})"));
        return Ok(());
    }
    let [wide_bits, wide_mask, wide] = [(); 3].map(|()| f.temp());
    f.line(format_args!("{wide_bits} = zext i{own} {bits} to i{width}"));
    f.line(format_args!("{wide_mask} = zext i{own} {mask} to i{width}"));
    f.line(format_args!("{wide} = call i{width} @{symbol}(i{width} {wide_bits}, i{width} {wide_mask})"));
    f.line(format_args!("{name} = trunc i{width} {wide} to i{own}"));
    Ok(())
}

/// The function that moves bits by a loop over the bits of the mask, from the lowest up.
fn loop_text(op: Op, symbol: &str) -> String {
    let (tested, moved) = if op == Op::Pext { ("%high", "%low") } else { ("%low", "%high") };
    format!(
        "define internal i64 @{symbol}(i64 %bits, i64 %mask) {{
entry:
  br label %head
head:
  %sum = phi i64 [ 0, %entry ], [ %sum.1, %body ]
  %left = phi i64 [ %mask, %entry ], [ %left.1, %body ]
  %low = phi i64 [ 1, %entry ], [ %low.1, %body ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %exit, label %body
body:
  %negative = sub i64 0, %left
  %high = and i64 %left, %negative
  %tested = and i64 %bits, {tested}
  %holds = icmp ne i64 %tested, 0
  %moved = select i1 %holds, i64 {moved}, i64 0
  %sum.1 = or i64 %sum, %moved
  %left.1 = xor i64 %left, %high
  %low.1 = shl i64 %low, 1
  br label %head
exit:
  ret i64 %sum
}}"
    )
}

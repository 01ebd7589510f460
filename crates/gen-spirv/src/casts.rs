//! Conversions of numbers; the bits of a value as another type.

use crate::function::FunctionEmitter;
use crate::numbers::lane_wise;
use crate::{Result, bug};
use nyala_flat::Value;
use nyala_ir::{Prim, TyKind};
use rspirv::spirv::{Op as Code, Word};

/// The remedy for bits that are read as what no register holds.
const NUMBERS: &str = "convert its numbers one by one";

/// A conversion of numbers and bools, lane by lane.
pub(crate) fn cast(f: &mut FunctionEmitter, arg: Value, result: Value) -> Result<Word> {
    let to = f.e.module.types.lane_prim(f.function.ty(result)).ok_or_else(|| bug("a cast to no number"))?;
    lane_wise(f, &[arg], result, &|f, from, words| Ok(convert(f, words[0], from, to)))
}

/// A number as one of another type.
pub(crate) fn convert(f: &mut FunctionEmitter, word: Word, from: Prim, to: Prim) -> Word {
    let (ty, bool_ty) = (f.e.prim(to), f.e.bool_ty());
    if from == to {
        return word;
    }
    if from == Prim::Bool {
        let one = if to.is_float() { f.e.float(to, 1.0) } else { f.e.literal(to, 1) };
        let zero = f.e.literal(to, 0);
        return f.op(Code::Select, ty, &[word, one, zero]);
    }
    if to == Prim::Bool {
        let zero = f.e.literal(from, 0);
        let code = if from.is_float() { Code::FUnordNotEqual } else { Code::INotEqual };
        return f.op(code, bool_ty, &[word, zero]);
    }
    match (from.is_float(), to.is_float()) {
        (true, true) => f.op(Code::FConvert, ty, &[word]),
        (false, true) if from.is_signed() => f.op(Code::ConvertSToF, ty, &[word]),
        (false, true) => f.op(Code::ConvertUToF, ty, &[word]),
        (false, false) if from.bits() == to.bits() => word,
        (false, false) if from.is_signed() => f.op(Code::SConvert, ty, &[word]),
        (false, false) => f.op(Code::UConvert, ty, &[word]),
        (true, false) => saturate(f, word, from, to),
    }
}

/// A float as an integer: the nearest that there is, 0 for what is no number.
fn saturate(f: &mut FunctionEmitter, word: Word, from: Prim, to: Prim) -> Word {
    let bool_ty = f.e.bool_ty();
    // Narrow numbers by way of wider ones.
    let by = match (to.bits() < 32, to.is_signed()) {
        (true, true) => Prim::I32,
        (true, false) => Prim::U32,
        _ => to,
    };
    let (ty, wide) = (f.e.prim(to), f.e.prim(by));
    let code = if to.is_signed() { Code::ConvertFToS } else { Code::ConvertFToU };
    let converted = f.op(code, wide, &[word]);
    let converted = if by == to { converted } else { f.op(Code::UConvert, ty, &[converted]) };
    let magnitude = to.bits() - u32::from(to.is_signed());
    let (least, most) = match to.is_signed() {
        true => (1u64 << magnitude, (1u64 << magnitude) - 1),
        false => (0, u64::MAX >> (64 - magnitude)),
    };
    let bound = 2f64.powi(magnitude as i32);
    let above = f.e.float(from, bound);
    let below = f.e.float(from, if to.is_signed() { -bound } else { 0.0 });
    let (least, most, zero) = (f.e.literal(to, least), f.e.literal(to, most), f.e.literal(to, 0));
    let is_above = f.op(Code::FOrdGreaterThanEqual, bool_ty, &[word, above]);
    let high = f.op(Code::Select, ty, &[is_above, most, converted]);
    let is_below = f.op(Code::FOrdLessThanEqual, bool_ty, &[word, below]);
    let low = f.op(Code::Select, ty, &[is_below, least, high]);
    let is_none = f.op(Code::FUnordNotEqual, bool_ty, &[word, word]);
    f.op(Code::Select, ty, &[is_none, zero, low])
}

/// The bits of a value as another type; addresses of one kind of memory as those of another.
pub(crate) fn bitcast(f: &mut FunctionEmitter, arg: Value, result: Value) -> Result<Word> {
    let types = &f.e.module.types;
    let (from, to) = (f.function.ty(arg), f.function.ty(result));
    let word = f.value(arg)?;
    let space = |ty| match *types.kind(ty) {
        TyKind::Ptr { space, .. } => Some(space),
        _ => None,
    };
    match (space(from), space(to)) {
        (Some(a), Some(b)) if a == b || f.e.class(a) == f.e.class(b) && f.e.is_number(a) == f.e.is_number(b) => {
            Ok(word)
        }
        (Some(a), Some(b)) => {
            let number = f.as_number(word, a);
            Ok(f.as_address(number, b))
        }
        (Some(a), None) => {
            let number = f.as_number(word, a);
            let prim = types
                .as_prim(to)
                .ok_or_else(|| f.lacks("the bits of an address as a value that is no number", NUMBERS))?;
            Ok(read_as(f, number, Prim::U64, prim))
        }
        (None, Some(b)) => {
            let prim = types
                .as_prim(from)
                .ok_or_else(|| f.lacks("the bits of a value that is no number as an address", NUMBERS))?;
            let number = read_as(f, word, prim, Prim::U64);
            Ok(f.as_address(number, b))
        }
        (None, None) if from == to => Ok(word),
        (None, None) => {
            let lanes = |ty| match types.as_prim(ty) {
                Some(prim) => Some((prim, 1)),
                None => types.as_vector(ty),
            };
            let (Some((p, n)), Some((q, m))) = (lanes(from), lanes(to)) else {
                let message = format!("the bits of `{}` as `{}`", types.display(from), types.display(to));
                return Err(f.lacks(&message, NUMBERS));
            };
            if n == m && p.bits() == q.bits() {
                return lane_wise(f, &[arg], result, &|f, _, words| Ok(read_as(f, words[0], p, q)));
            }
            repack(f, (word, p, n, types.as_prim(from).is_some()), (q, m, result))
        }
    }
}

/// The bits of a number as another one of the same width.
pub(crate) fn read_as(f: &mut FunctionEmitter, word: Word, from: Prim, to: Prim) -> Word {
    let ty = f.e.prim(to);
    match (from == Prim::Bool, to == Prim::Bool) {
        (true, true) => word,
        (true, false) | (false, true) => convert(f, word, from, to),
        _ if from.is_float() == to.is_float() => word,
        _ => f.op(Code::Bitcast, ty, &[word]),
    }
}

fn unsigned(bits: u32) -> Prim {
    match bits {
        8 => Prim::U8,
        16 => Prim::U16,
        32 => Prim::U32,
        _ => Prim::U64,
    }
}

/// Lanes of one width as lanes of another, the lowest bits first.
fn repack(
    f: &mut FunctionEmitter,
    (word, p, n, is_one): (Word, Prim, u32, bool),
    (q, m, result): (Prim, u32, Value),
) -> Result<Word> {
    if p == Prim::Bool || q == Prim::Bool || p.bits() * n != q.bits() * m {
        return Err(f.lacks("the bits of a vector of bools as another type", "use `bits` for a mask of its lanes"));
    }
    let (small, large) = (unsigned(p.bits()), unsigned(q.bits()));
    let lane_ty = f.e.prim(p);
    let lanes: Vec<Word> = (0..n)
        .map(|i| {
            let lane = if is_one { word } else { f.take(lane_ty, word, i.into()) };
            read_as(f, lane, p, small)
        })
        .collect();
    let made: Vec<Word> = match p.bits() < q.bits() {
        true => lanes.chunks((q.bits() / p.bits()) as usize).map(|c| join(f, c, small, large)).collect(),
        false => lanes.iter().flat_map(|&lane| cut(f, lane, small, large)).collect(),
    };
    let made: Vec<Word> = made.into_iter().map(|w| read_as(f, w, large, q)).collect();
    let ty = f.ty(result)?;
    Ok(if f.e.module.types.as_prim(f.function.ty(result)).is_some() {
        made[0]
    } else {
        f.op(Code::CompositeConstruct, ty, &made)
    })
}

/// One integer of several narrower ones, the lowest bits first.
pub(crate) fn join(f: &mut FunctionEmitter, parts: &[Word], small: Prim, large: Prim) -> Word {
    let ty = f.e.prim(large);
    let mut sum = convert(f, parts[0], small, large);
    for (i, &part) in parts.iter().enumerate().skip(1) {
        let wide = convert(f, part, small, large);
        let by = f.e.literal(large, u64::from(small.bits()) * i as u64);
        let moved = f.op(Code::ShiftLeftLogical, ty, &[wide, by]);
        sum = f.op(Code::BitwiseOr, ty, &[sum, moved]);
    }
    sum
}

/// An integer as several narrower ones, the lowest bits first.
pub(crate) fn cut(f: &mut FunctionEmitter, word: Word, large: Prim, small: Prim) -> Vec<Word> {
    let ty = f.e.prim(large);
    (0..large.bits() / small.bits())
        .map(|i| {
            let by = f.e.literal(large, u64::from(small.bits() * i));
            let moved = if i == 0 { word } else { f.op(Code::ShiftRightLogical, ty, &[word, by]) };
            convert(f, moved, large, small)
        })
        .collect()
}

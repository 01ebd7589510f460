//! Math functions: those of `OpenCL.std`; for Vulkan those of the library, and of `GLSL.std.450` where they are exact, or where
//! the program asks for fast ones.

use crate::function::FunctionEmitter;
use crate::numbers::lane_wise;
use crate::{Result, casts};
use nyala_base::Id;
use nyala_flat::{Func, Inst, Value};
use nyala_ir::{Op, Prim};
use rspirv::spirv::{GlslStd450Op, Op as Code, OpenclStd100Op, Word};

/// Functions of `OpenCL.std`.
fn of_opencl(op: Op) -> Option<u32> {
    let number = match op {
        Op::Sqrt => OpenclStd100Op::sqrt,
        Op::Abs => OpenclStd100Op::fabs,
        Op::Floor => OpenclStd100Op::floor,
        Op::Ceil => OpenclStd100Op::ceil,
        Op::Trunc => OpenclStd100Op::trunc,
        Op::Round => OpenclStd100Op::round,
        Op::Fmin => OpenclStd100Op::fmin,
        Op::Fmax => OpenclStd100Op::fmax,
        Op::Fma => OpenclStd100Op::fma,
        Op::Copysign => OpenclStd100Op::copysign,
        Op::Sin => OpenclStd100Op::sin,
        Op::Cos => OpenclStd100Op::cos,
        Op::Tan => OpenclStd100Op::tan,
        Op::Asin => OpenclStd100Op::asin,
        Op::Acos => OpenclStd100Op::acos,
        Op::Atan => OpenclStd100Op::atan,
        Op::Sinh => OpenclStd100Op::sinh,
        Op::Cosh => OpenclStd100Op::cosh,
        Op::Tanh => OpenclStd100Op::tanh,
        Op::Exp => OpenclStd100Op::exp,
        Op::Exp2 => OpenclStd100Op::exp2,
        Op::Expm1 => OpenclStd100Op::expm1,
        Op::Log => OpenclStd100Op::log,
        Op::Log2 => OpenclStd100Op::log2,
        Op::Log10 => OpenclStd100Op::log10,
        Op::Log1p => OpenclStd100Op::log1p,
        Op::Cbrt => OpenclStd100Op::cbrt,
        Op::Erf => OpenclStd100Op::erf,
        Op::Pow => OpenclStd100Op::pow,
        Op::Atan2 => OpenclStd100Op::atan2,
        _ => return None,
    };
    Some(number as u32)
}

/// Functions of `GLSL.std.450` that work on numbers of any width.
fn of_glsl(op: Op) -> Option<u32> {
    let number = match op {
        Op::Trunc => GlslStd450Op::Trunc,
        Op::Abs => GlslStd450Op::FAbs,
        Op::Floor => GlslStd450Op::Floor,
        Op::Ceil => GlslStd450Op::Ceil,
        Op::Sqrt => GlslStd450Op::Sqrt,
        Op::Fma => GlslStd450Op::Fma,
        _ => return None,
    };
    Some(number as u32)
}

/// Functions of `GLSL.std.450` that there are for 16 and 32 bits only.
fn of_glsl_narrow(op: Op) -> Option<u32> {
    let number = match op {
        Op::Sin => GlslStd450Op::Sin,
        Op::Cos => GlslStd450Op::Cos,
        Op::Tan => GlslStd450Op::Tan,
        Op::Asin => GlslStd450Op::Asin,
        Op::Acos => GlslStd450Op::Acos,
        Op::Atan => GlslStd450Op::Atan,
        Op::Sinh => GlslStd450Op::Sinh,
        Op::Cosh => GlslStd450Op::Cosh,
        Op::Tanh => GlslStd450Op::Tanh,
        Op::Atan2 => GlslStd450Op::Atan2,
        Op::Pow => GlslStd450Op::Pow,
        Op::Exp => GlslStd450Op::Exp,
        Op::Log => GlslStd450Op::Log,
        Op::Exp2 => GlslStd450Op::Exp2,
        Op::Log2 => GlslStd450Op::Log2,
        _ => return None,
    };
    Some(number as u32)
}

/// A math function, on numbers or lane by lane.
pub(crate) fn function(f: &mut FunctionEmitter, op: Op, inst: &Inst, result: Value) -> Result<Word> {
    let fast = inst.fast;
    lane_wise(f, &inst.args, result, &|f, prim, words| match fast && (!f.e.is_vulkan() || is_of_glsl(op, prim)) {
        true => one(f, op, prim, words, true),
        false => exact(f, op, prim, words),
    })
}

/// Whether drivers of Vulkan have a function, if only a coarse one.
pub(crate) fn is_of_glsl(op: Op, prim: Prim) -> bool {
    let is_narrow = || prim != Prim::F64 && (op == Op::Log10 || of_glsl_narrow(op).is_some());
    matches!(op, Op::Fmin | Op::Fmax | Op::Round | Op::Copysign) || of_glsl(op).is_some() || is_narrow()
}

/// By a function of the library, if it has one.
fn exact(f: &mut FunctionEmitter, op: Op, prim: Prim, words: &[Word]) -> Result<Word> {
    let wide = nyala_flat::math_works_on(prim);
    let Some(&func) = f.e.library.get(&(op, wide)) else { return one(f, op, prim, words, false) };
    if op != Op::Fma {
        return Ok(call(f, func, (prim, wide), words));
    }
    // What the driver knows when it compiles the kernel is no branch.
    let ty = f.e.prim(prim);
    let (home, fused, one_word, bool_ty) = (f.local(ty), f.e.fused(), f.e.u32(1), f.e.bool_ty());
    let cond = f.op(Code::IEqual, bool_ty, &[fused, one_word]);
    let [own, other, merge] = [(); 3].map(|()| f.e.id());
    f.split(cond, own, other, merge);
    f.label(own);
    let fused = one(f, op, prim, words, false)?;
    f.store_word(home, fused);
    f.branch(merge);
    f.label(other);
    let made = call(f, func, (prim, wide), words);
    f.store_word(home, made);
    f.branch(merge);
    f.label(merge);
    Ok(f.op(Code::Load, ty, &[home]))
}

/// Calls a function of the library, which may work on wider numbers.
fn call(f: &mut FunctionEmitter, func: Func, (prim, wide): (Prim, Prim), words: &[Word]) -> Word {
    let ty = f.e.prim(wide);
    let mut all = vec![f.e.funcs[func.idx()]];
    for &word in words {
        all.push(casts::convert(f, word, prim, wide));
    }
    f.e.calls[f.func.idx()].insert(func.idx());
    let result = f.op(Code::FunctionCall, ty, &all);
    casts::convert(f, result, wide, prim)
}

/// By a function of the device.
fn one(f: &mut FunctionEmitter, op: Op, prim: Prim, words: &[Word], fast: bool) -> Result<Word> {
    let ty = f.e.prim(prim);
    if !f.e.is_vulkan() {
        return match (op, of_opencl(op)) {
            // OpenCL's leave open which of two zeros they give.
            (Op::Fmin | Op::Fmax, _) if !fast => Ok(extreme(f, op, prim, words[0], words[1])),
            (_, Some(number)) => Ok(f.call_math(ty, number, words)),
            _ => approximate(f, op, prim, words),
        };
    }
    let known = of_glsl(op).or_else(|| of_glsl_narrow(op).filter(|_| prim != Prim::F64));
    match (op, known) {
        (_, Some(number)) => Ok(f.call_math(ty, number, words)),
        (Op::Fmin | Op::Fmax, _) => Ok(extreme(f, op, prim, words[0], words[1])),
        (Op::Round, _) => Ok(round(f, prim, words[0])),
        (Op::Copysign, _) => Ok(copysign(f, prim, words)),
        (Op::Log10, _) if prim != Prim::F64 => {
            let log = f.call_math(ty, GlslStd450Op::Log2 as u32, words);
            let factor = f.e.float(prim, std::f64::consts::LOG10_2);
            Ok(f.exact(Code::FMul, ty, &[log, factor], false))
        }
        _ => approximate(f, op, prim, words),
    }
}

/// Approximate reciprocals are exact enough as quotients; other functions are missing.
fn approximate(f: &mut FunctionEmitter, op: Op, prim: Prim, words: &[Word]) -> Result<Word> {
    let (ty, one) = (f.e.prim(prim), f.e.float(prim, 1.0));
    let root = match op {
        Op::Rcp | Op::Rcp14 => words[0],
        Op::Rsqrt | Op::Rsqrt14 => f.call_math(
            ty,
            if f.e.is_vulkan() { GlslStd450Op::Sqrt as u32 } else { OpenclStd100Op::sqrt as u32 },
            words,
        ),
        _ => {
            return Err(f.lacks(
                &format!("`{}` of `{}`", op.name(), prim.name()),
                "compute it in `f32`, or by other functions",
            ));
        }
    };
    Ok(f.exact(Code::FDiv, ty, &[one, root], false))
}

/// The smaller or the greater one, of zeros the negative or the positive one; the other if one is no number.
pub(crate) fn extreme(f: &mut FunctionEmitter, op: Op, prim: Prim, a: Word, b: Word) -> Word {
    let (ty, bool_ty) = (f.e.prim(prim), f.e.bool_ty());
    let code = if op == Op::Fmin { Code::FOrdLessThan } else { Code::FOrdGreaterThan };
    let is_first = f.op(code, bool_ty, &[a, b]);
    let is_none = f.op(Code::FUnordNotEqual, bool_ty, &[b, b]);
    let first = f.op(Code::LogicalOr, bool_ty, &[is_first, is_none]);
    let either = f.op(Code::Select, ty, &[first, a, b]);
    let bits = match prim {
        Prim::F16 => Prim::U16,
        Prim::F32 => Prim::U32,
        _ => Prim::U64,
    };
    let (is_equal, int) = (f.op(Code::FOrdEqual, bool_ty, &[a, b]), f.e.prim(bits));
    let both = [a, b].map(|w| casts::read_as(f, w, prim, bits));
    let both = f.op(if op == Op::Fmin { Code::BitwiseOr } else { Code::BitwiseAnd }, int, &both);
    let both = casts::read_as(f, both, bits, prim);
    f.op(Code::Select, ty, &[is_equal, both, either])
}

/// To the nearest integer, halves away from zero: what is left over decides, since a sum with a half may be rounded.
fn round(f: &mut FunctionEmitter, prim: Prim, word: Word) -> Word {
    let (ty, bool_ty) = (f.e.prim(prim), f.e.bool_ty());
    let magnitude = f.call_math(ty, GlslStd450Op::FAbs as u32, &[word]);
    let whole = f.call_math(ty, GlslStd450Op::Trunc as u32, &[magnitude]);
    let rest = f.exact(Code::FSub, ty, &[magnitude, whole], false);
    let (half, one) = (f.e.float(prim, 0.5), f.e.float(prim, 1.0));
    let more = f.exact(Code::FAdd, ty, &[whole, one], false);
    let is_more = f.op(Code::FOrdGreaterThanEqual, bool_ty, &[rest, half]);
    let rounded = f.op(Code::Select, ty, &[is_more, more, whole]);
    let signed = copysign(f, prim, &[rounded, word]);
    let is_number = f.op(Code::FOrdEqual, bool_ty, &[word, word]);
    f.op(Code::Select, ty, &[is_number, signed, word])
}

fn copysign(f: &mut FunctionEmitter, prim: Prim, words: &[Word]) -> Word {
    let bits = match prim {
        Prim::F16 => Prim::U16,
        Prim::F32 => Prim::U32,
        _ => Prim::U64,
    };
    let ty = f.e.prim(bits);
    let sign = f.e.literal(bits, 1 << (prim.bits() - 1));
    let rest = f.e.literal(bits, (1 << (prim.bits() - 1)) - 1);
    let [a, b] = [words[0], words[1]].map(|w| casts::read_as(f, w, prim, bits));
    let magnitude = f.op(Code::BitwiseAnd, ty, &[a, rest]);
    let sign = f.op(Code::BitwiseAnd, ty, &[b, sign]);
    let all = f.op(Code::BitwiseOr, ty, &[magnitude, sign]);
    casts::read_as(f, all, bits, prim)
}

/// The remainder of a division of floats.
pub(crate) fn remainder(f: &mut FunctionEmitter, prim: Prim, words: &[Word], fast: bool) -> Result<Word> {
    let ty = f.e.prim(prim);
    if !f.e.is_vulkan() {
        return Ok(f.call_math(ty, OpenclStd100Op::fmod as u32, words));
    }
    if !fast && prim != Prim::F64 {
        return exact(f, Op::Rem, prim, words);
    }
    Ok(f.exact(Code::FRem, ty, words, fast))
}

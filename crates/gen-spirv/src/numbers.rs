//! Arithmetic, comparisons and bit operations. What works on numbers works on vectors lane by lane.

use crate::function::FunctionEmitter;
use crate::{Result, bug};
use nyala_flat::{Inst, Value};
use nyala_ir::{Op, Prim, TyKind};
use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, GlslStd450Op, Op as Code, OpenclStd100Op, Word};

/// Makes one number of several.
pub(crate) type OfLane<'a> = &'a dyn Fn(&mut FunctionEmitter, Prim, &[Word]) -> Result<Word>;

/// Applies an operation to numbers, or to each lane of vectors. The operation gets the type of the last operand.
pub(crate) fn lane_wise(f: &mut FunctionEmitter, args: &[Value], result: Value, one: OfLane) -> Result<Word> {
    let types = &f.e.module.types;
    let last = args.last().ok_or_else(|| bug("an operation on nothing"))?;
    let prim = types.lane_prim(f.function.ty(*last)).ok_or_else(|| bug("an operation on no numbers"))?;
    let mut words = Vec::new();
    for &arg in args {
        words.push(f.value(arg)?);
    }
    let lanes = args.iter().filter_map(|&a| types.as_vector(f.function.ty(a))).map(|v| v.1).next();
    let Some(n) = lanes else { return one(f, prim, &words) };
    let mut parts = Vec::new();
    for lane in 0..n {
        let mut of_lane = Vec::new();
        for (&arg, &word) in args.iter().zip(&words) {
            of_lane.push(match f.e.module.types.as_vector(f.function.ty(arg)) {
                Some((prim, _)) => {
                    let ty = f.e.prim(prim);
                    f.take(ty, word, lane.into())
                }
                None => word,
            });
        }
        parts.push(one(f, prim, &of_lane)?);
    }
    let ty = f.ty(result)?;
    Ok(f.op(Code::CompositeConstruct, ty, &parts))
}

/// An operation on numbers, bools or addresses.
pub(crate) fn number(f: &mut FunctionEmitter, op: Op, inst: &Inst, result: Value) -> Result<Word> {
    if let Some(&first) = inst.args.first()
        && let TyKind::Ptr { space, .. } = *f.e.module.types.kind(f.function.ty(first))
    {
        return compare_addresses(f, op, inst, space);
    }
    let fast = inst.fast;
    lane_wise(f, &inst.args, result, &|f, prim, words| scalar(f, op, prim, words, fast))
}

fn compare_addresses(f: &mut FunctionEmitter, op: Op, inst: &Inst, space: u8) -> Result<Word> {
    let mut words = Vec::new();
    for &arg in &inst.args {
        let word = f.value(arg)?;
        words.push(if f.e.is_vulkan() { word } else { f.as_number(word, space) });
    }
    let bool_ty = f.e.bool_ty();
    Ok(f.op(comparison(op, Prim::U64).ok_or_else(|| bug("an operation on addresses"))?, bool_ty, &words))
}

fn comparison(op: Op, prim: Prim) -> Option<Code> {
    let of = |float: Code, signed: Code, unsigned: Code| match prim {
        p if p.is_float() => float,
        p if p.is_signed() => signed,
        _ => unsigned,
    };
    Some(match op {
        Op::Eq => of(Code::FOrdEqual, Code::IEqual, Code::IEqual),
        Op::Ne => of(Code::FUnordNotEqual, Code::INotEqual, Code::INotEqual),
        Op::Lt => of(Code::FOrdLessThan, Code::SLessThan, Code::ULessThan),
        Op::Le => of(Code::FOrdLessThanEqual, Code::SLessThanEqual, Code::ULessThanEqual),
        Op::Gt => of(Code::FOrdGreaterThan, Code::SGreaterThan, Code::UGreaterThan),
        Op::Ge => of(Code::FOrdGreaterThanEqual, Code::SGreaterThanEqual, Code::UGreaterThanEqual),
        _ => return None,
    })
}

impl FunctionEmitter<'_, '_> {
    /// An operation on floats that is neither contracted nor reassociated, unless it is fast.
    pub fn exact(&mut self, code: Code, ty: Word, args: &[Word], fast: bool) -> Word {
        let word = self.op(code, ty, args);
        if !fast && self.e.is_vulkan() {
            self.e.decorate(word, Decoration::NoContraction, Vec::new());
        }
        word
    }

    /// A function of the set of math functions.
    pub fn call_math(&mut self, ty: Word, number: u32, args: &[Word]) -> Word {
        let set = self.e.math();
        let mut operands = vec![Operand::IdRef(set), Operand::LiteralExtInstInteger(number)];
        operands.extend(args.iter().map(|&a| Operand::IdRef(a)));
        self.op_with(Code::ExtInst, ty, operands)
    }
}

/// An operation on two numbers, or on one.
fn scalar(f: &mut FunctionEmitter, op: Op, prim: Prim, words: &[Word], fast: bool) -> Result<Word> {
    let ty = f.e.prim(prim);
    let bool_ty = f.e.bool_ty();
    if prim == Prim::Bool {
        return of_bools(f, op, words);
    }
    if let Some(code) = comparison(op, prim) {
        return Ok(f.op(code, bool_ty, words));
    }
    let float = prim.is_float();
    let signed = prim.is_signed();
    let code = match op {
        Op::Add if float => Code::FAdd,
        Op::Sub if float => Code::FSub,
        Op::Mul if float => Code::FMul,
        Op::Div if float => Code::FDiv,
        Op::Rem if float => return crate::math::remainder(f, prim, words, fast),
        Op::Add => Code::IAdd,
        Op::Sub => Code::ISub,
        Op::Mul => Code::IMul,
        Op::Div | Op::PDiv => {
            if signed {
                Code::SDiv
            } else {
                Code::UDiv
            }
        }
        // Vulkan leaves the remainders of negative numbers undefined.
        Op::Rem | Op::PRem if signed && f.e.is_vulkan() => {
            let quotient = f.op(Code::SDiv, ty, words);
            let whole = f.op(Code::IMul, ty, &[quotient, words[1]]);
            return Ok(f.op(Code::ISub, ty, &[words[0], whole]));
        }
        Op::Rem | Op::PRem => {
            if signed {
                Code::SRem
            } else {
                Code::UMod
            }
        }
        Op::And => Code::BitwiseAnd,
        Op::Or => Code::BitwiseOr,
        Op::Xor => Code::BitwiseXor,
        Op::Shl | Op::Shr => {
            let mask = f.e.literal(prim, u64::from(prim.bits() - 1));
            let amount = f.op(Code::BitwiseAnd, ty, &[words[1], mask]);
            let code = match op {
                Op::Shl => Code::ShiftLeftLogical,
                _ if signed => Code::ShiftRightArithmetic,
                _ => Code::ShiftRightLogical,
            };
            return Ok(f.op(code, ty, &[words[0], amount]));
        }
        Op::Popcount | Op::Clz | Op::Ctz => return count(f, op, prim, words[0]),
        _ => return Err(bug(format!("`{}` of integers or floats", op.name()))),
    };
    Ok(if float { f.exact(code, ty, words, fast) } else { f.op(code, ty, words) })
}

fn of_bools(f: &mut FunctionEmitter, op: Op, words: &[Word]) -> Result<Word> {
    let ty = f.e.bool_ty();
    let code = match op {
        Op::And => Code::LogicalAnd,
        Op::Or => Code::LogicalOr,
        Op::Xor | Op::Ne => Code::LogicalNotEqual,
        Op::Eq => Code::LogicalEqual,
        Op::Lt | Op::Le | Op::Gt | Op::Ge => {
            let (one, zero) = (f.e.u32(1), f.e.u32(0));
            let short = f.e.int(32);
            let numbers: Vec<Word> = words.iter().map(|&w| f.op(Code::Select, short, &[w, one, zero])).collect();
            let code = comparison(op, Prim::U32).ok_or_else(|| bug("no comparison"))?;
            return Ok(f.op(code, ty, &numbers));
        }
        _ => return Err(bug(format!("`{}` of bools", op.name()))),
    };
    Ok(f.op(code, ty, words))
}

/// Numbers of bits, by operations on 32 bits that every device has.
fn count(f: &mut FunctionEmitter, op: Op, prim: Prim, word: Word) -> Result<Word> {
    let (short, bool_ty, ty) = (f.e.int(32), f.e.bool_ty(), f.e.prim(prim));
    let thirty_two = f.e.u32(32);
    let halves: Vec<Word> = match prim.bits() {
        64 => {
            let low = f.op(Code::UConvert, short, &[word]);
            let by = f.e.literal(prim, 32);
            let high = f.op(Code::ShiftRightLogical, ty, &[word, by]);
            vec![low, f.op(Code::UConvert, short, &[high])]
        }
        32 => vec![word],
        _ => vec![f.op(Code::UConvert, short, &[word])],
    };
    // The lowest bit, or the highest one, of 32; all ones if there is none.
    let find = |f: &mut FunctionEmitter, word: Word| match (op, f.e.is_vulkan()) {
        (Op::Popcount, _) => f.op(Code::BitCount, short, &[word]),
        (Op::Clz, true) => {
            let at = f.call_math(short, GlslStd450Op::FindUMsb as u32, &[word]);
            let top = f.e.u32(31);
            f.op(Code::ISub, short, &[top, at])
        }
        (Op::Clz, false) => f.call_math(short, OpenclStd100Op::clz as u32, &[word]),
        (_, true) => {
            let (at, zero) = (f.call_math(short, GlslStd450Op::FindILsb as u32, &[word]), f.e.u32(0));
            let none = f.op(Code::IEqual, bool_ty, &[word, zero]);
            f.op(Code::Select, short, &[none, thirty_two, at])
        }
        (_, false) => {
            // The zeros below the lowest one are the ones of what is one less.
            let (one, not) = (f.e.u32(1), f.op(Code::Not, short, &[word]));
            let less = f.op(Code::ISub, short, &[word, one]);
            let below = f.op(Code::BitwiseAnd, short, &[less, not]);
            f.op(Code::BitCount, short, &[below])
        }
    };
    let counts: Vec<Word> = halves.iter().map(|&half| find(f, half)).collect();
    let sum = match (op, &counts[..]) {
        (_, &[one]) => one,
        (Op::Popcount, &[low, high]) => f.op(Code::IAdd, short, &[low, high]),
        (_, &[low, high]) => {
            // Only if one half has no bit, the other one counts.
            let (first, second, half) = if op == Op::Clz { (high, low, halves[1]) } else { (low, high, halves[0]) };
            let zero = f.e.u32(0);
            let none = f.op(Code::IEqual, bool_ty, &[half, zero]);
            let more = f.op(Code::IAdd, short, &[second, thirty_two]);
            f.op(Code::Select, short, &[none, more, first])
        }
        _ => return Err(bug("no bits")),
    };
    let narrow = 32u32.saturating_sub(prim.bits());
    let sum = match (op, narrow) {
        (Op::Clz, 1..) => {
            let above = f.e.u32(narrow);
            f.op(Code::ISub, short, &[sum, above])
        }
        (Op::Ctz, 1..) => {
            let (most, width) = (f.e.u32(prim.bits()), f.e.u32(prim.bits()));
            let beyond = f.op(Code::UGreaterThan, bool_ty, &[sum, most]);
            f.op(Code::Select, short, &[beyond, width, sum])
        }
        _ => sum,
    };
    Ok(if prim.bits() == 32 { sum } else { f.op(Code::UConvert, ty, &[sum]) })
}

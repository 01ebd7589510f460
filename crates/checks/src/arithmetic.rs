//! Checks of signed arithmetic: each result must fit its type. Separate from the checks of memory, with which it shares only
//! the report.
//!
//! If it is not known before a loop that its results fit, a variable collects sign bits during the loop: it is negative
//! after the loop if some result did not fit (see `guards.rs`).

use super::checker::{Checker, DIVISION, OVERFLOW};
use super::code::Code;
use nyala_base::{Id, Span};
use nyala_flat::*;
use nyala_ir::{Op, Prim};
use rustc_hash::FxHashSet;

/// A check of arithmetic that runs after its loop has ended.
#[derive(Clone, Copy)]
pub struct Late {
    /// A variable that is negative if one of the results did not fit.
    pub variable: Value,
    /// For a product of two `i64`: the factor that varies, the least factor whose product fits, and the number of greater
    /// factors that fit, too.
    pub factor: Option<(Value, Value, Value)>,
}

/// A check of a product under construction: `large` is the block for factors that need more than 32 bits, `start` (with the
/// instructions `before`) the block that branches on `is_small`.
pub struct Large {
    before: Vec<Inst>,
    start: Block,
    is_small: Value,
    large: Block,
}

impl Code<'_> {
    /// The operation and type of signed arithmetic whose result is needed.
    pub fn signed_arithmetic(&self, inst: &Inst, needed: &FxHashSet<Value>) -> Option<(Op, Prim)> {
        let InstOp::Op(op @ (Op::Add | Op::Sub | Op::Mul)) = inst.op else { return None };
        let result = inst.result.filter(|r| needed.contains(r))?;
        let prim = self.types.as_prim(self.function.ty(result)).filter(|p| p.is_int() && p.is_signed())?;
        Some((op, prim))
    }

    /// A sum or difference modulo 2ⁿ, and a number of the same type that is negative if the result does not fit.
    pub fn sum(&mut self, op: Op, prim: Prim, args: [Value; 2]) -> (Value, Value) {
        let unsigned = unsigned(prim);
        let ty = self.types.prim(unsigned);
        let [x, y] = args.map(|v| self.cast(v, unsigned));
        let r = self.op(op, &[x, y], ty);
        let other = if op == Op::Add { r } else { y };
        let p = self.op(Op::Xor, &[x, other], ty);
        let q = if op == Op::Add { [y, r] } else { [x, r] };
        let q = self.op(Op::Xor, &q, ty);
        let sign = self.op(Op::And, &[p, q], ty);
        (r, self.cast(sign, prim))
    }

    /// For operands of at most 32 bits: the result in 64 bits, and whether it fits their type.
    pub fn in_64_bits(&mut self, op: Op, prim: Prim, args: [Value; 2]) -> (Value, Value) {
        let (i64, bool_ty) = (self.types.i64(), self.types.bool());
        let [x, y] = args.map(|v| self.cast(v, Prim::I64));
        let r = self.op(op, &[x, y], i64);
        let part = self.cast(r, prim);
        let back = self.cast(part, Prim::I64);
        (r, self.op(Op::Eq, &[back, r], bool_ty))
    }

    /// Starts a block for factors whose product may need more than 64 bits. Both factors are given as `u64`; if both fit in 32 bits, the
    /// block is skipped.
    pub fn begin_large(&mut self, numbers: [Value; 2]) -> Large {
        let (u64, bool_ty) = (self.types.prim(Prim::U64), self.types.bool());
        let half = self.literal(Prim::U64, 1 << 31);
        let [x, y] = numbers.map(|v| self.op(Op::Add, &[v, half], u64));
        let both = self.op(Op::Or, &[x, y], u64);
        let bound = self.literal(Prim::U64, 1 << 32);
        let is_small = self.op(Op::Lt, &[both, bound], bool_ty);
        let start = self.current;
        self.current = self.add_block("large", Terminator::Unreachable);
        Large { before: std::mem::take(&mut self.insts), start, is_small, large: self.current }
    }

    /// Ends the block for large factors. What follows runs in both cases.
    pub fn end_large(&mut self, Large { before, start, is_small, large }: Large) {
        let next = self.current;
        let term = std::mem::replace(&mut self.function.blocks[start.idx()].term, Terminator::Unreachable);
        self.function.blocks[next.idx()].term = term;
        let edge = |block: Block| Edge { block, args: Vec::new() };
        let block = &mut self.function.blocks[start.idx()];
        (block.insts, block.term) = (before, Terminator::Branch { cond: is_small, then: edge(next), els: edge(large) });
    }
}

impl Code<'_> {
    /// The conditions of a division: its divisor is not zero; its quotient fits, for types where it may not.
    pub fn division(&mut self, inst: &Inst) -> Option<(Value, Option<Value>)> {
        let (InstOp::Op(Op::PDiv | Op::PRem), &[a, b]) = (inst.op, &inst.args[..]) else { return None };
        let prim = self.types.as_prim(self.function.ty(b)).filter(|p| p.is_int())?;
        let (zero, bool_ty) = (self.literal(prim, 0), self.types.bool());
        let not_zero = self.op(Op::Ne, &[b, zero], bool_ty);
        let fits = prim.is_signed().then(|| {
            let (least, minus) = (self.literal(prim, 1 << (prim.bits() - 1)), self.literal(prim, u64::MAX));
            let (is_more, is_other) = (self.op(Op::Ne, &[a, least], bool_ty), self.op(Op::Ne, &[b, minus], bool_ty));
            self.op(Op::Or, &[is_more, is_other], bool_ty)
        });
        Some((not_zero, fits))
    }
}

impl Checker<'_, '_> {
    /// Checks a division of integers.
    pub fn division(&mut self, inst: &Inst) {
        let Some((not_zero, fits)) = self.code.division(inst) else { return };
        let none = self.literal(Prim::U64, 0);
        self.require(not_zero, DIVISION, none, None);
        if let Some(fits) = fits {
            self.require(fits, OVERFLOW, none, None);
        }
    }

    /// The operation and type of signed arithmetic that is checked.
    pub fn checked_arithmetic(&self, inst: &Inst) -> Option<(Op, Prim)> {
        self.code.signed_arithmetic(inst, &self.needed).filter(|_| self.checks.overflow)
    }

    pub fn arithmetic(&mut self, op: Op, prim: Prim, inst: Inst, late: Option<Late>) {
        let (Some(result), &[a, b]) = (inst.result, &inst.args[..]) else { return };
        let bool_ty = self.code.types.bool();
        let is_sum = op != Op::Mul;
        let holds = if is_sum && (prim == Prim::I64 || late.is_some() && prim == Prim::I32) {
            let (r, sign) = self.code.sum(op, prim, [a, b]);
            self.push(InstOp::Op(Op::Cast), &[r], Some(result));
            if let Some(late) = late {
                return self.add_sign(sign, late.variable);
            }
            let zero = self.literal(Prim::I64, 0);
            self.op(Op::Ge, &[sign, zero], bool_ty)
        } else if prim == Prim::I64 {
            let u64 = self.code.types.prim(Prim::U64);
            let [x, y] = [a, b].map(|v| self.cast(v, Prim::U64));
            let r = self.op(op, &[x, y], u64);
            self.push(InstOp::Op(Op::Cast), &[r], Some(result));
            let Some(Late { factor: Some((varying, least, count)), variable }) = late else {
                let large = self.code.begin_large([x, y]);
                let holds = self.call(self.tables.product, &[a, b], Some(bool_ty));
                let none = self.literal(Prim::U64, 0);
                self.require(holds, OVERFLOW, none, None);
                return self.code.end_large(large);
            };
            let [at, least] = [varying, least].map(|v| self.cast(v, Prim::U64));
            let above = self.op(Op::Sub, &[at, least], u64);
            let holds = self.op(Op::Le, &[above, count], bool_ty);
            return self.note_late(holds, variable);
        } else {
            let (r, holds) = self.code.in_64_bits(op, prim, [a, b]);
            self.push(InstOp::Op(Op::Cast), &[r], Some(result));
            holds
        };
        match late {
            Some(late) => self.note_late(holds, late.variable),
            None => {
                let none = self.literal(Prim::U64, 0);
                self.require(holds, OVERFLOW, none, None);
            }
        }
    }

    /// Makes a variable negative if a condition does not hold.
    fn note_late(&mut self, holds: Value, variable: Value) {
        let (i64, zero, minus) = (self.code.types.i64(), self.literal(Prim::I64, 0), self.literal(Prim::I64, u64::MAX));
        let sign = self.op(Op::Select, &[holds, zero, minus], i64);
        self.add_sign(sign, variable);
    }

    /// Makes a variable negative if a number of the same type is negative.
    fn add_sign(&mut self, sign: Value, variable: Value) {
        let ty = self.code.function.ty(sign);
        let before = self.op(Op::Load, &[variable], ty);
        let after = self.op(Op::Or, &[before, sign], ty);
        self.push(InstOp::Op(Op::Store), &[variable, after], None);
    }

    /// Reports an overflow that the variables of an ended loop tell of.
    pub fn check_late(&mut self, variable: Value, span: Span) {
        let around = std::mem::replace(&mut self.code.span, span);
        let ty = self.code.function.ty(variable);
        let Some(ty) = self.code.types.pointee(ty) else { return };
        let (sign, bool_ty) = (self.op(Op::Load, &[variable], ty), self.code.types.bool());
        let zero = self.code.function.constant(Const::Bits(0), ty);
        let holds = self.op(Op::Ge, &[sign, zero], bool_ty);
        let none = self.literal(Prim::U64, 0);
        self.require(holds, OVERFLOW, none, None);
        self.code.span = around;
    }

    /// The check of an instruction that runs after its loop, if the instruction has one.
    pub fn late(&mut self, inst: &Inst, own: &FxHashSet<Value>) -> Option<Late> {
        let (op, prim) = self.checked_arithmetic(inst)?;
        let factor = match (op, prim) {
            (Op::Mul, Prim::I64) => {
                let &[a, b] = &inst.args[..] else { return None };
                let (varying, fixed) = if own.contains(&a) { (a, b) } else { (b, a) };
                if own.contains(&fixed) {
                    return None;
                }
                let (least, count) = self.factors_that_fit(fixed);
                Some((varying, least, count))
            }
            _ => None,
        };
        let is_sum = op != Op::Mul && prim == Prim::I32;
        let prim = if is_sum { Prim::I32 } else { Prim::I64 };
        let (ty, zero) = (self.code.types.prim(prim), self.literal(prim, 0));
        let ty = self.code.types.ptr(ty);
        let variable = self.code.function.new_value(ty, "");
        let op = InstOp::Op(Op::Slot);
        self.variables.push(Inst { op, args: Args::new(), result: Some(variable), span: Span::NONE, fast: false });
        self.push(InstOp::Op(Op::Store), &[variable, zero], None);
        Some(Late { variable, factor })
    }

    /// The least `i64` whose product with a factor fits, and the number of greater ones that fit, too, as `u64`.
    fn factors_that_fit(&mut self, factor: Value) -> (Value, Value) {
        if let Some(n) = self.code.function.as_bits(factor).map(|bits| i128::from(bits as i64)) {
            let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
            let (least, most) = match n {
                0 => (min, max),
                _ if n > 0 => (min / n, max / n),
                _ => (max / n, (min / n).min(max)),
            };
            return (self.literal(Prim::I64, least as u64), self.literal(Prim::U64, (most - least) as u64));
        }
        let (i64, bool_ty) = (self.code.types.i64(), self.code.types.bool());
        let number = |c: &mut Self, n: i64| c.literal(Prim::I64, n as u64);
        let (zero, one, minus) = (number(self, 0), number(self, 1), number(self, -1));
        let (min, max) = (number(self, i64::MIN), number(self, i64::MAX));
        let is_zero = self.op(Op::Eq, &[factor, zero], bool_ty);
        let is_minus = self.op(Op::Eq, &[factor, minus], bool_ty);
        let is_special = self.op(Op::Or, &[is_zero, is_minus], bool_ty);
        let divisor = self.op(Op::Select, &[is_special, one, factor], i64);
        let (low, high) = (self.op(Op::Div, &[min, divisor], i64), self.op(Op::Div, &[max, divisor], i64));
        let is_negative = self.op(Op::Lt, &[divisor, zero], bool_ty);
        let least = self.op(Op::Select, &[is_negative, high, low], i64);
        let most = self.op(Op::Select, &[is_negative, low, high], i64);
        // Only the least number of a type has no negative of that type.
        let above_min = number(self, -i64::MAX);
        let least = self.op(Op::Select, &[is_minus, above_min, least], i64);
        let [from, to] = [least, most].map(|v| self.cast(v, Prim::U64));
        let u64 = self.code.types.prim(Prim::U64);
        (least, self.op(Op::Sub, &[to, from], u64))
    }
}

/// The unsigned type of the same size.
pub fn unsigned(prim: Prim) -> Prim {
    match prim {
        Prim::I8 => Prim::U8,
        Prim::I16 => Prim::U16,
        Prim::I32 => Prim::U32,
        _ => Prim::U64,
    }
}

//! Conversions and arithmetic on floats with a rounding mode, as NVVM has them. Code for the CPU rounds to nearest; a
//! result in another direction is the nearest one, or its neighbor if the sign of the rounding error says so.
//!
//! Exact where neither the result nor its error underflows, and where the nearest result does not overflow.

use super::*;
use crate::device_names::Rounding;
use ir::Prim;

impl Lowerer<'_, '_, '_> {
    /// Rounds a float to an integral one, to nearest with ties to even: adding and subtracting 2²³ (2⁵²) drops the
    /// fraction.
    fn round_even(&mut self, x: Val) -> Option<Val> {
        let ty = self.w.ty(x);
        let prim = self.w.types.as_prim(ty)?;
        let large = match prim {
            Prim::F32 => 8_388_608.0,
            Prim::F64 => 4_503_599_627_370_496.0,
            _ => return None,
        };
        let large = self.w.lit(ty, ir::scalar::float_bits(prim, large));
        let size = self.w.op(Op::Abs, &[x]);
        let has_fraction = self.w.op(Op::Lt, &[size, large]);
        let sum = self.w.op(Op::Add, &[size, large]);
        let whole = self.w.op(Op::Sub, &[sum, large]);
        let whole = self.w.op(Op::Select, &[has_fraction, whole, size]);
        Some(self.w.op(Op::Copysign, &[whole, x]))
    }

    /// Converts a number. Without a type to convert to, it stays of its own.
    pub(super) fn converted(
        &mut self,
        x: Val,
        from_unsigned: bool,
        to: Option<ir::Ty>,
        rounding: Rounding,
    ) -> Option<Val> {
        let x = if from_unsigned { self.unsigned(x)? } else { x };
        let to = to.unwrap_or(self.w.ty(x));
        let (from_prim, to_prim) = (self.w.types.as_prim(self.w.ty(x))?, self.w.types.as_prim(to)?);
        if from_prim.is_float() && (to_prim.is_int() || from_prim == to_prim) {
            let whole = match rounding {
                Rounding::Nearest => self.round_even(x)?,
                Rounding::Down => self.w.op(Op::Floor, &[x]),
                Rounding::Up => self.w.op(Op::Ceil, &[x]),
                Rounding::Zero => self.w.op(Op::Trunc, &[x]),
            };
            return Some(self.convert_int(whole, to));
        }
        let near = self.w.op_ty(Op::Cast, to, &[x]);
        if rounding == Rounding::Nearest {
            return Some(near);
        }
        // How far the exact number lies above the nearest one.
        let (less, more) = if from_prim.is_float() || from_prim.bits() < 64 {
            let f64 = self.w.types.prim(Prim::F64);
            let (exact, near) = (self.w.op_ty(Op::Cast, f64, &[x]), self.w.op_ty(Op::Cast, f64, &[near]));
            (self.w.op(Op::Lt, &[exact, near]), self.w.op(Op::Gt, &[exact, near]))
        } else {
            // The greatest 64-bit integers may have been rounded to a power of two that is none.
            let back = self.w.op_ty(Op::Cast, self.w.ty(x), &[near]);
            let limit = if from_prim.is_signed() { 9_223_372_036_854_775_808.0 } else { 18_446_744_073_709_551_616.0 };
            let limit = self.w.lit(to, ir::scalar::float_bits(to_prim, limit));
            let is_beyond = self.w.op(Op::Ge, &[near, limit]);
            let less = self.w.op(Op::Lt, &[x, back]);
            (self.w.op(Op::Or, &[is_beyond, less]), {
                let more = self.w.op(Op::Gt, &[x, back]);
                let no = self.w.lit_bool(false);
                self.w.op(Op::Select, &[is_beyond, no, more])
            })
        };
        self.stepped(near, less, more, rounding)
    }

    /// The neighbor of `near` in the direction of rounding, if the exact number is less or more than it.
    fn stepped(&mut self, near: Val, less: Val, more: Val, rounding: Rounding) -> Option<Val> {
        let ty = self.w.ty(near);
        let prim = self.w.types.as_prim(ty)?;
        let bits_ty = self.w.types.prim(if prim == Prim::F64 { Prim::U64 } else { Prim::U32 });
        let bits = self.w.op_ty(Op::Bitcast, bits_ty, &[near]);
        let (one, zero, sign) =
            (self.w.lit(bits_ty, 1), self.w.lit(bits_ty, 0), self.w.lit(bits_ty, 1 << (prim.bits() - 1)));
        let float_zero = self.number(ty, 0);
        let is_zero = self.w.op(Op::Eq, &[near, float_zero]);
        let sign_bit = self.w.op(Op::And, &[bits, sign]);
        let is_negative = self.w.op(Op::Ne, &[sign_bit, zero]);
        let (away, toward) = (self.w.op(Op::Add, &[bits, one]), self.w.op(Op::Sub, &[bits, one]));
        let (least, least_negative) = (one, self.w.op(Op::Or, &[sign, one]));
        let down = self.w.op(Op::Select, &[is_negative, away, toward]);
        let down = self.w.op(Op::Select, &[is_zero, least_negative, down]);
        let up = self.w.op(Op::Select, &[is_negative, toward, away]);
        let up = self.w.op(Op::Select, &[is_zero, least, up]);
        let result = match rounding {
            Rounding::Nearest => bits,
            Rounding::Down => self.w.op(Op::Select, &[less, down, bits]),
            Rounding::Up => self.w.op(Op::Select, &[more, up, bits]),
            Rounding::Zero => {
                // Toward zero is down for positive numbers, up for negative ones.
                let (is_over, is_under) = (self.w.op(Op::Select, &[is_negative, more, less]), toward);
                let is_over = {
                    let no = self.w.lit_bool(false);
                    self.w.op(Op::Select, &[is_zero, no, is_over])
                };
                self.w.op(Op::Select, &[is_over, is_under, bits])
            }
        };
        Some(self.w.op_ty(Op::Bitcast, ty, &[result]))
    }

    /// An operation on floats with a rounding mode: the nearest result, corrected by the sign of its error, which is
    /// exact where nothing underflows (Knuth's two-sum; products and quotients by `fma`).
    pub(super) fn rounded(&mut self, op: Op, rounding: Rounding, args: &[Val]) -> Option<Val> {
        let ty = self.w.ty(*args.first()?);
        let zero = self.number(ty, 0);
        let minus = |l: &mut Self, v: Val| l.negate(v);
        let (near, error) = match (op, args) {
            (Op::Add, [a, b]) => self.two_sum(*a, *b),
            (Op::Mul, [a, b]) => {
                let near = self.w.op(Op::Mul, &[*a, *b]);
                let less = minus(self, near);
                (near, self.w.op(Op::Fma, &[*a, *b, less]))
            }
            (Op::Div | Op::Rcp, _) => {
                let (a, b) = match (op, args) {
                    (Op::Div, [a, b]) => (*a, *b),
                    (Op::Rcp, [b]) => (self.number(ty, 1), *b),
                    _ => return None,
                };
                let near = self.w.op(Op::Div, &[a, b]);
                let less = minus(self, near);
                let rest = self.w.op(Op::Fma, &[less, b, a]);
                let one = self.number(ty, 1);
                let sign = self.w.op(Op::Copysign, &[one, b]);
                (near, self.w.op(Op::Mul, &[rest, sign]))
            }
            (Op::Sqrt, [x]) => {
                let near = self.w.op(Op::Sqrt, &[*x]);
                let less = minus(self, near);
                (near, self.w.op(Op::Fma, &[less, near, *x]))
            }
            (Op::Fma, [a, b, c]) if self.w.types.as_prim(ty) == Some(Prim::F32) => {
                // The product is exact in double precision.
                let f64 = self.w.types.prim(Prim::F64);
                let [a, b, c] = [*a, *b, *c].map(|v| self.w.op_ty(Op::Cast, f64, &[v]));
                let product = self.w.op(Op::Mul, &[a, b]);
                let (sum, rest) = self.two_sum(product, c);
                let near = self.w.op_ty(Op::Cast, ty, &[sum]);
                let back = self.w.op_ty(Op::Cast, f64, &[near]);
                let error = self.w.op(Op::Sub, &[sum, back]);
                let none = self.number(f64, 0);
                let is_exact = self.w.op(Op::Eq, &[error, none]);
                (near, self.w.op(Op::Select, &[is_exact, rest, error]))
            }
            (Op::Fma, [a, b, c]) => {
                let product = self.w.op(Op::Mul, &[*a, *b]);
                let less = minus(self, product);
                let product_rest = self.w.op(Op::Fma, &[*a, *b, less]);
                let (sum, sum_rest) = self.two_sum(product, *c);
                let (rest, rest_of_rest) = self.two_sum(sum_rest, product_rest);
                let (near, error) = self.two_sum(sum, rest);
                let is_exact = self.w.op(Op::Eq, &[error, zero]);
                (near, self.w.op(Op::Select, &[is_exact, rest_of_rest, error]))
            }
            _ => return None,
        };
        let zero = self.same_float(error);
        let (less, more) = (self.w.op(Op::Lt, &[error, zero]), self.w.op(Op::Gt, &[error, zero]));
        self.stepped(near, less, more, rounding)
    }

    fn same_float(&mut self, of: Val) -> Val {
        let ty = self.w.ty(of);
        self.number(ty, 0)
    }

    /// A sum and its rounding error.
    fn two_sum(&mut self, a: Val, b: Val) -> (Val, Val) {
        let sum = self.w.op(Op::Add, &[a, b]);
        let b_part = self.w.op(Op::Sub, &[sum, a]);
        let a_part = self.w.op(Op::Sub, &[sum, b_part]);
        let (a_rest, b_rest) = (self.w.op(Op::Sub, &[a, a_part]), self.w.op(Op::Sub, &[b, b_part]));
        (sum, self.w.op(Op::Add, &[a_rest, b_rest]))
    }
}

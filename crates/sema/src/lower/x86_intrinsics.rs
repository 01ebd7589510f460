//! Lowers instructions of x86-64 to operations of the graph, by the families of [`crate::x86_intrinsics`].
//!
//! `llvm.x86.avx.cmp.ps.256(a, b, 1)` is `bitcast(select(lt(a, b), splat(-1), splat(0)))`.

use super::*;
use crate::x86_intrinsics::{Family, Instruction};

impl Lowerer<'_, '_, '_> {
    pub(super) fn instruction(&mut self, of: Instruction, vals: &[Val], ty: ir::Ty, span: Span) -> Val {
        for i in of.immediates() {
            self.immediate(of.name, i, vals[i], span);
            if !self.alive() {
                return self.w.undef(ty);
            }
        }
        // The instruction's rounding and comparisons are exact, also under `@fast`.
        let fast = self.w.set_fast(false);
        // LLVM's integers have no signedness. Here all of them are signed.
        let immediate: Vec<usize> = of.immediates().collect();
        let signed: Vec<Val> =
            vals.iter().enumerate().map(|(i, &v)| if immediate.contains(&i) { v } else { self.as_signed(v) }).collect();
        let val = self.compute(of.family, &signed, ty);
        let val = if self.w.ty(val) == ty { val } else { self.w.op_ty(Op::Bitcast, ty, &[val]) };
        self.w.set_fast(fast);
        val
    }

    fn as_signed(&mut self, val: Val) -> Val {
        match self.w.lane_prim(val) {
            Some(prim) if prim.is_int() => self.as_int(val),
            _ => val,
        }
    }

    /// Checks an immediate operand: an error if partial evaluation does not know it. Without partial evaluation, as in
    /// the interpreter, any operand is allowed.
    fn immediate(&mut self, name: &str, i: usize, val: Val, span: Span) {
        if self.w.as_lit(val).is_some() || self.mem(span).is_none() {
            return;
        }
        // Without partial evaluation nothing is known, not even a literal.
        let literal = self.w.lit_bool(true);
        let (known, is_evaluated) = (self.w.op(Op::Known, &[val]), self.w.op(Op::Known, &[literal]));
        let known = self.w.op(Op::Eq, &[known, is_evaluated]);
        let (goes_on, unknown) = (self.block("then"), self.block("else"));
        self.branch(known, goes_on, unknown);
        self.go_on_in(unknown);
        let text = format!("operand {} of `llvm.x86.{name}` is part of the instruction and not known here", i + 1);
        self.limit_because(&text, true, span);
        self.jump(goes_on, &[]);
        self.go_on_in(goes_on);
    }

    fn compute(&mut self, family: Family, vals: &[Val], ty: ir::Ty) -> Val {
        let a = vals[0];
        let of = self.w.ty(a);
        match family {
            Family::Signs => {
                let signs = self.signs(a);
                self.as_mask(signs, ty)
            }
            Family::Compare(n) => {
                let holds = self.compared(a, vals[1], vals[2], n);
                self.as_lanes(holds, ty)
            }
            Family::CompareLowest => {
                let holds = self.compared(a, vals[1], vals[2], 8);
                let lanes = self.as_lanes(holds, ty);
                self.lowest(a, lanes)
            }
            Family::CompareToMask => {
                let holds = self.compared(a, vals[1], vals[2], 32);
                let asked = self.bools(vals[3], holds);
                let both = self.w.op(Op::And, &[holds, asked]);
                self.as_mask(both, ty)
            }
            Family::Blend => {
                let signs = self.signs(vals[2]);
                self.w.op(Op::Select, &[signs, vals[1], a])
            }
            Family::BlendByMask => {
                let like = self.truths(of);
                let mask = self.bools(vals[2], like);
                self.w.op(Op::Select, &[mask, vals[1], a])
            }
            Family::Min | Family::Max => self.extreme(family == Family::Min, a, vals[1]),
            Family::MinLowest | Family::MaxLowest => {
                let all = self.extreme(family == Family::MinLowest, a, vals[1]);
                self.lowest(a, all)
            }
            Family::Each(op) => self.w.op(op, &[a]),
            Family::Lowest(op) => {
                let all = self.w.op(op, &[a]);
                self.lowest(a, all)
            }
            Family::Masked(op) => {
                let all = self.w.op(op, &[a]);
                let like = self.truths(of);
                let mask = self.bools(vals[2], like);
                self.w.op(Op::Select, &[mask, all, vals[1]])
            }
            Family::Round => self.rounded_by(a, vals[1]),
            Family::RoundLowest => {
                let all = self.rounded_by(vals[1], vals[2]);
                self.lowest(a, all)
            }
            Family::Neighbors(op) => {
                // The first and second of each pair, as both operands have them.
                let order = |second: u64| {
                    move |k: u64, n: u64, within: u64| {
                        let (block, at) = (k / within * within, k % within);
                        let half = within / 2;
                        let from = if at < half { 0 } else { n };
                        from + block + at % half * 2 + second
                    }
                };
                let (first, second) = (self.picked(a, vals[1], order(0)), self.picked(a, vals[1], order(1)));
                self.w.op(op, &[first, second])
            }
            Family::AddSub => {
                let (sum, difference) = (self.w.op(Op::Add, &[a, vals[1]]), self.w.op(Op::Sub, &[a, vals[1]]));
                self.picked(difference, sum, |k, n, _| if k % 2 == 0 { k } else { n + k })
            }
            Family::TestZero | Family::TestCarry | Family::TestNeither => {
                let (x, y) = (self.tested(a), self.tested(vals[1]));
                let inverse = self.w.not(x);
                let (zero, carry) = (self.is_zero(x, y), self.is_zero(inverse, y));
                let holds = match family {
                    Family::TestZero => zero,
                    Family::TestCarry => carry,
                    _ => {
                        let either = self.w.op(Op::Or, &[zero, carry]);
                        self.w.not(either)
                    }
                };
                self.w.op_ty(Op::Cast, ty, &[holds])
            }
            Family::Permute => {
                let n = self.lanes_of(of);
                let index = self.index_in(vals[1], n - 1, 0, |_| 0);
                self.w.op(Op::Shuffle, &[a, a, index])
            }
            Family::PermuteWithin => {
                let within = 128 / self.lane_bits(of);
                // For doubles, the second bit counts.
                let index = self.index_in(vals[1], within - 1, u64::from(within == 2), |k| k / within * within);
                self.w.op(Op::Shuffle, &[a, a, index])
            }
            Family::ShuffleBytes => {
                let index = self.index_in(vals[1], 15, 0, |k| k / 16 * 16);
                let (bytes, negative) = (self.w.op(Op::Shuffle, &[a, a, index]), self.signs(vals[1]));
                let zero = self.w.lit(of, 0);
                self.w.op(Op::Select, &[negative, zero, bytes])
            }
            Family::ToInt | Family::ToIntTrunc => {
                let x = if self.lanes_of(ty) > 1 { a } else { self.w.extract(a, 0) };
                let rounded = match family {
                    Family::ToInt => self.nearest(x),
                    _ => self.w.op(Op::Trunc, &[x]),
                };
                let prim = self.w.types.lane_prim(ty).unwrap_or(ir::Prim::I32);
                let limit = (1u64 << (prim.bits() - 1)) as f64;
                let (least, above) = (self.float_lit(self.w.ty(x), -limit), self.float_lit(self.w.ty(x), limit));
                let (ge, lt) = (self.w.op(Op::Ge, &[rounded, least]), self.w.op(Op::Lt, &[rounded, above]));
                let fits = self.w.op(Op::And, &[ge, lt]);
                let (int, otherwise) = (self.w.op_ty(Op::Cast, ty, &[rounded]), self.w.lit(ty, 1 << (prim.bits() - 1)));
                self.w.op(Op::Select, &[fits, int, otherwise])
            }
            Family::Pext => self.w.op(Op::Pext, vals),
            Family::Pdep => self.w.op(Op::Pdep, vals),
            Family::ExtractBits => {
                let start = self.byte(vals[1], 0);
                let moved = self.shifted_out(a, start);
                let count = self.byte(vals[1], 8);
                self.lowest_bits(moved, count)
            }
            Family::ZeroHigh => {
                let count = self.byte(vals[1], 0);
                self.lowest_bits(a, count)
            }
        }
    }

    fn lanes_of(&self, ty: ir::Ty) -> u64 {
        self.w.types.as_vector(ty).map_or(1, |(_, n)| n.into())
    }

    fn lane_bits(&self, ty: ir::Ty) -> u64 {
        self.w.types.lane_prim(ty).map_or(32, |p| p.bits().into())
    }

    /// The type with an integer of the same size in each lane.
    fn int_like(&mut self, ty: ir::Ty) -> ir::Ty {
        let prim = match self.lane_bits(ty) {
            8 => ir::Prim::I8,
            16 => ir::Prim::I16,
            32 => ir::Prim::I32,
            _ => ir::Prim::I64,
        };
        self.w.types.like(ty, prim)
    }

    fn as_int(&mut self, val: Val) -> Val {
        let ty = self.w.ty(val);
        let int = self.int_like(ty);
        if int == ty { val } else { self.w.op_ty(Op::Bitcast, int, &[val]) }
    }

    fn float_lit(&mut self, ty: ir::Ty, x: f64) -> Val {
        let bits = match self.w.types.lane_prim(ty) {
            Some(ir::Prim::F32) => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        };
        self.w.lit(ty, bits)
    }

    /// The sign bits of the lanes, as bools.
    fn signs(&mut self, val: Val) -> Val {
        let int = self.as_int(val);
        let zero = self.w.lit(self.w.ty(int), 0);
        self.w.op(Op::Lt, &[int, zero])
    }

    /// A vector of bools with as many lanes as `ty`, of any value.
    fn truths(&mut self, ty: ir::Ty) -> Val {
        let ty = self.w.types.like(ty, ir::Prim::Bool);
        self.w.lit(ty, 0)
    }

    /// Bools as a mask of this type.
    fn as_mask(&mut self, bools: Val, ty: ir::Ty) -> Val {
        if self.w.ty(bools) == ty { bools } else { self.w.op_ty(Op::Bits, ty, &[bools]) }
    }

    /// Converts a mask to bools, with as many lanes as `like`.
    fn bools(&mut self, mask: Val, like: Val) -> Val {
        let ty = self.w.ty(like);
        if self.w.ty(mask) == ty {
            return mask;
        }
        let mask_ty = self.w.ty(mask);
        let lanes: Vec<Val> = (0..self.lanes_of(ty))
            .map(|k| {
                let bit = self.w.lit(mask_ty, 1 << k);
                let (masked, zero) = (self.w.op(Op::And, &[mask, bit]), self.w.lit(mask_ty, 0));
                self.w.op(Op::Ne, &[masked, zero])
            })
            .collect();
        self.w.op_ty(Op::Array, ty, &lanes)
    }

    /// Converts bools to lanes whose bits are all ones where the bool is true.
    fn as_lanes(&mut self, holds: Val, ty: ir::Ty) -> Val {
        let int = self.int_like(ty);
        let (ones, zero) = (self.w.lit(int, u64::MAX), self.w.lit(int, 0));
        let lanes = self.w.op(Op::Select, &[holds, ones, zero]);
        if int == ty { lanes } else { self.w.op_ty(Op::Bitcast, ty, &[lanes]) }
    }

    /// `rest` with the lowest lane of `val`.
    fn lowest(&mut self, rest: Val, val: Val) -> Val {
        let lane = self.w.extract(val, 0);
        self.w.insert(rest, 0, lane)
    }

    /// Selects lanes of two concatenated vectors. `lane` gets the lane's number, the number of lanes, and the number in
    /// 128 bits.
    fn picked(&mut self, a: Val, b: Val, lane: impl Fn(u64, u64, u64) -> u64) -> Val {
        let ty = self.w.ty(a);
        let (n, within) = (self.lanes_of(ty), 128 / self.lane_bits(ty));
        let lanes: Vec<Val> = (0..n).map(|k| self.w.lit_i32(lane(k, n, within) as i32)).collect();
        let index = self.w.types.like(ty, ir::Prim::I32);
        let index = self.w.op_ty(Op::Array, index, &lanes);
        self.w.op(Op::Shuffle, &[a, b, index])
    }

    /// The low bits of lane numbers above `low`, from where each lane's block begins.
    fn index_in(&mut self, index: Val, mask: u64, low: u64, block: impl Fn(u64) -> u64) -> Val {
        let ty = self.w.ty(index);
        let prim = self.w.types.lane_prim(ty).unwrap_or(ir::Prim::I32);
        let (low, mask) = (self.w.lit(ty, low), self.w.lit(ty, mask));
        let shifted = self.w.op(Op::Shr, &[index, low]);
        let masked = self.w.op(Op::And, &[shifted, mask]);
        let blocks: Vec<Val> = (0..self.lanes_of(ty)).map(|k| self.w.lit_prim(prim, block(k))).collect();
        let blocks = self.w.op_ty(Op::Array, ty, &blocks);
        self.w.op(Op::Or, &[masked, blocks])
    }

    fn extreme(&mut self, least: bool, a: Val, b: Val) -> Val {
        let first = self.w.op(if least { Op::Lt } else { Op::Gt }, &[a, b]);
        self.w.op(Op::Select, &[first, a, b])
    }

    /// Selects one of `n` comparisons by its number. The upper half only differs in how NaN signals.
    fn compared(&mut self, a: Val, b: Val, which: Val, n: u64) -> Val {
        let which_ty = self.w.ty(which);
        let mask = self.w.lit(which_ty, n.min(16) - 1);
        let which = self.w.op(Op::And, &[which, mask]);
        if let Some(known) = self.w.as_lit(which) {
            return self.comparison(a, b, known);
        }
        let mut found = self.comparison(a, b, 0);
        for k in 1..n.min(16) {
            let (number, holds) = (self.w.lit(which_ty, k), self.comparison(a, b, k));
            let is_this = self.w.op(Op::Eq, &[which, number]);
            found = self.w.op(Op::Select, &[is_this, holds, found]);
        }
        found
    }

    fn comparison(&mut self, a: Val, b: Val, which: u64) -> Val {
        let op = |l: &mut Self, op| l.w.op(op, &[a, b]);
        // The second group of predicates are those of the first, negated or swapped.
        match which {
            0 => op(self, Op::Eq),
            1 => op(self, Op::Lt),
            2 => op(self, Op::Le),
            4 => op(self, Op::Ne),
            12 => {
                let (less, greater) = (op(self, Op::Lt), op(self, Op::Gt));
                self.w.op(Op::Or, &[less, greater])
            }
            13 => op(self, Op::Ge),
            14 => op(self, Op::Gt),
            7 => {
                let (x, y) = (self.w.op(Op::Eq, &[a, a]), self.w.op(Op::Eq, &[b, b]));
                self.w.op(Op::And, &[x, y])
            }
            11 | 15 => {
                let ty = self.w.ty(a);
                let ty = self.w.types.like(ty, ir::Prim::Bool);
                self.w.lit(ty, u64::from(which == 15))
            }
            // Unordered, not less, not less or equal, equal or unordered, not greater or equal, not greater.
            _ => {
                let inverse = match which {
                    3 => 7,
                    5 => 1,
                    6 => 2,
                    8 => 12,
                    9 => 13,
                    _ => 14,
                };
                let holds = self.comparison(a, b, inverse);
                self.w.not(holds)
            }
        }
    }

    /// Rounds to an integer: 0 to the nearest, 1 down, 2 up, 3 toward zero; from 4 on in the current mode, which is to
    /// the nearest.
    fn rounded_by(&mut self, x: Val, how: Val) -> Val {
        let how_ty = self.w.ty(how);
        let mask = self.w.lit(how_ty, 7);
        let how = self.w.op(Op::And, &[how, mask]);
        let modes = [(1, Op::Floor), (2, Op::Ceil), (3, Op::Trunc)];
        if let Some(known) = self.w.as_lit(how) {
            return match modes.iter().find(|m| m.0 == known) {
                Some(&(_, op)) => self.w.op(op, &[x]),
                None => self.nearest(x),
            };
        }
        let mut found = self.nearest(x);
        for (k, op) in modes {
            let (number, rounded) = (self.w.lit(how_ty, k), self.w.op(op, &[x]));
            let is_this = self.w.op(Op::Eq, &[how, number]);
            found = self.w.op(Op::Select, &[is_this, rounded, found]);
        }
        found
    }

    /// Rounds to the nearest integer, ties to even. Adding a number so large that there are no fractions rounds that
    /// way.
    fn nearest(&mut self, x: Val) -> Val {
        let ty = self.w.ty(x);
        let whole = match self.w.types.lane_prim(ty) {
            Some(ir::Prim::F32) => (1u64 << 23) as f64,
            _ => (1u64 << 52) as f64,
        };
        let (limit, size) = (self.float_lit(ty, whole), self.w.op(Op::Abs, &[x]));
        let above = self.w.op(Op::Add, &[size, limit]);
        let rounded = self.w.op(Op::Sub, &[above, limit]);
        let rounded = self.w.op(Op::Copysign, &[rounded, x]);
        let is_small = self.w.op(Op::Lt, &[size, limit]);
        self.w.op(Op::Select, &[is_small, rounded, x])
    }

    /// The bits that a test examines: all bits, or the sign bits of floats. The result is bools that are all false if
    /// all bits are zero.
    fn tested(&mut self, val: Val) -> Val {
        match self.w.lane_prim(val) {
            Some(prim) if prim.is_float() => self.signs(val),
            _ => val,
        }
    }

    fn is_zero(&mut self, a: Val, b: Val) -> Val {
        let both = self.w.op(Op::And, &[a, b]);
        let ty = self.w.ty(both);
        let ones = if self.w.lane_prim(both) == Some(ir::Prim::Bool) {
            both
        } else {
            let zero = self.w.lit(ty, 0);
            self.w.op(Op::Ne, &[both, zero])
        };
        let i32 = self.w.types.i32();
        let (bits, zero) = (self.w.op_ty(Op::Bits, i32, &[ones]), self.w.lit(i32, 0));
        self.w.op(Op::Eq, &[bits, zero])
    }

    /// A byte of an integer that counts bits of another.
    fn byte(&mut self, val: Val, at: u64) -> Val {
        let ty = self.w.ty(val);
        let unsigned = self.unsigned_ty(ty);
        let val = self.w.op_ty(Op::Cast, unsigned, &[val]);
        let (at, mask) = (self.w.lit(unsigned, at), self.w.lit(unsigned, 255));
        let moved = self.w.op(Op::Shr, &[val, at]);
        self.w.op(Op::And, &[moved, mask])
    }

    fn unsigned_ty(&mut self, ty: ir::Ty) -> ir::Ty {
        let prim = if self.lane_bits(ty) == 64 { ir::Prim::U64 } else { ir::Prim::U32 };
        self.w.types.prim(prim)
    }

    /// Shifts right, with zeros coming in, by a count that may exceed the width.
    fn shifted_out(&mut self, val: Val, count: Val) -> Val {
        let (ty, unsigned) = (self.w.ty(val), self.w.ty(count));
        let bits = self.w.op_ty(Op::Cast, unsigned, &[val]);
        let width = self.w.lit(unsigned, self.lane_bits(ty));
        let (moved, fits, zero) =
            (self.w.op(Op::Shr, &[bits, count]), self.w.op(Op::Lt, &[count, width]), self.w.lit(unsigned, 0));
        let moved = self.w.op(Op::Select, &[fits, moved, zero]);
        self.w.op_ty(Op::Cast, ty, &[moved])
    }

    /// Keeps the lowest `count` bits; all of them if the count exceeds the width.
    fn lowest_bits(&mut self, val: Val, count: Val) -> Val {
        let (ty, unsigned) = (self.w.ty(val), self.w.ty(count));
        let (one, width) = (self.w.lit(unsigned, 1), self.w.lit(unsigned, self.lane_bits(ty)));
        let power = self.w.op(Op::Shl, &[one, count]);
        let mask = self.w.op(Op::Sub, &[power, one]);
        let fits = self.w.op(Op::Lt, &[count, width]);
        let all = self.w.lit(unsigned, u64::MAX);
        let mask = self.w.op(Op::Select, &[fits, mask, all]);
        let mask = self.w.op_ty(Op::Cast, ty, &[mask]);
        self.w.op(Op::And, &[val, mask])
    }
}

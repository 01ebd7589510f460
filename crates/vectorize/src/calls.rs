//! Code that lanes execute in turn, jointly, or in functions: calls.

use crate::linear::{Builder, Wide};
use crate::shapes::{Shape, is_address};
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Prim, Ty};

impl Builder<'_> {
    // Lanes.

    /// A bit for each active lane, as u64.
    fn active(&mut self) -> Value {
        match self.mask {
            Some(mask) => {
                let ty = self.module.types.prim(Prim::U64);
                self.with_result(InstOp::Vector(VectorOp::MaskBits), &[mask], ty)
            }
            None => self.literal(Prim::U64, all_bits(self.width)),
        }
    }

    /// The number of the last active lane, as u64.
    pub fn last_lane(&mut self) -> Value {
        let Some(_) = self.mask else { return self.literal(Prim::U64, u64::from(self.width) - 1) };
        let (bits, ty) = (self.active(), self.module.types.prim(Prim::U64));
        let zeros = self.op(Op::Clz, &[bits], ty);
        let top = self.literal(Prim::U64, 63);
        self.op(Op::Sub, &[top, zeros], ty)
    }

    /// Executes the scalar instruction for each active lane, in the order of lanes.
    pub fn each_lane(&mut self, inst: &Inst) -> Option<Wide> {
        let u64 = self.module.types.prim(Prim::U64);
        let bool = self.module.types.bool();
        let name = self.callee_name(inst);
        let is_loop = matches!(inst.op, InstOp::Vectorize(..));
        let how = if is_loop { "once for each active lane, in lanes of its own" } else { "once for each active lane" };
        self.note_call(&name, how, !is_loop);
        let wides: Vec<Wide> = inst.args.iter().map(|&a| self.wide(a)).collect();
        // Vectors are built before the loop.
        let wides: Vec<Wide> = wides
            .into_iter()
            .zip(&inst.args)
            .map(|(wide, &a)| match wide {
                Wide::Indexed { .. } => Wide::Vector(self.vector_of_wide(wide, self.old.ty(a))),
                Wide::Strided(..) if !is_address(&self.module.types, self.old.ty(a)) => {
                    Wide::Vector(self.vector_of_wide(wide, self.old.ty(a)))
                }
                _ => wide,
            })
            .collect();
        let result_ty = inst.result.map(|r| self.old.ty(r));
        let results = result_ty.map(|ty| {
            let wide = self.widen(ty);
            let slot = self.slot(wide);
            let undef = self.new.undef(wide);
            self.write(slot, undef);
            slot
        });
        let left = self.slot(u64);
        let bits = self.active();
        self.write(left, bits);
        let (head, body, done) = (self.new_block("lanes"), self.new_block("lane"), self.new_block("joined"));
        self.jump_to(head);
        self.cur = head;
        let bits = self.read(left);
        let zero = self.literal(Prim::U64, 0);
        let more = self.op(Op::Ne, &[bits, zero], bool);
        self.branch(more, body, done);
        self.cur = body;
        let lane = self.op(Op::Ctz, &[bits], u64);
        let args: Vec<Value> =
            wides.into_iter().zip(&inst.args).map(|(wide, &a)| self.lane(wide, self.old.ty(a), lane)).collect();
        let result = self.push(inst.op, &args, result_ty);
        if let (Some(slot), Some(one), Some(ty)) = (results, result, result_ty) {
            let old = self.read(slot);
            let new = self.with_lane(old, ty, lane, one);
            self.write(slot, new);
        }
        let one = self.literal(Prim::U64, 1);
        let less = self.op(Op::Sub, &[bits, one], u64);
        let rest = self.op(Op::And, &[bits, less], u64);
        self.write(left, rest);
        self.jump_to(head);
        self.cur = done;
        results.map(|slot| Wide::Vector(self.read(slot)))
    }

    // Calls.

    pub fn call(&mut self, inst: &Inst, f: Func, shape: Option<Shape>) -> Option<Wide> {
        if let Some(op) = self.versions.lane_operation(f) {
            return self.across(inst, op);
        }
        let name = self.callee_name(inst);
        if shape == Some(Shape::Uniform) {
            self.note_call(&name, "once for all lanes: its arguments are uniform, and it has no effect", false);
            let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
            let ty = inst.result.map(|r| self.old.ty(r));
            return self.push(inst.op, &args, ty).map(Wide::Uniform);
        }
        if self.module.func(f).is_foreign() {
            return self.each_lane(inst);
        }
        self.note_call(&name, "a vector version", false);
        let mut shapes = self.args_shapes(inst, self.here);
        let masked = self.mask.is_some();
        let (target, actual) = self.versions.request(self.module, f, &shapes, masked, self.width, false);
        shapes = actual;
        let mut args = Vec::with_capacity(shapes.len() + 1);
        for (&arg, &shape) in inst.args.iter().zip(&shapes) {
            args.push(if shape == Shape::Varying { self.vector(arg) } else { self.scalar(arg) });
        }
        if self.module.func(target).params.len() > args.len() {
            let mask = match self.mask {
                Some(mask) => mask,
                None => self.full(true),
            };
            args.push(mask);
        }
        let ty = inst.result.map(|r| self.old.ty(r));
        let ty = ty.map(|ty| self.widen(ty));
        self.push(InstOp::Call(target), &args, ty).map(Wide::Vector)
    }

    /// An operation across lanes. Inactive lanes take no part.
    fn across(&mut self, inst: &Inst, op: LaneOp) -> Option<Wide> {
        let ty = inst.result.map(|r| self.old.ty(r));
        let (u64, bool) = (self.module.types.prim(Prim::U64), self.module.types.bool());
        let holds = |b: &mut Self, i: usize| {
            let cond = b.vector(inst.args[i]);
            b.restrict(b.mask, cond)
        };
        let bits = |b: &mut Self, mask: Value| b.with_result(InstOp::Vector(VectorOp::MaskBits), &[mask], u64);
        let value = match op {
            LaneOp::Barrier | LaneOp::Shared => return None,
            LaneOp::Id => {
                let zero = self.literal(Prim::I32, 0);
                return Some(Wide::Strided(zero, 1));
            }
            LaneOp::Width => self.literal(Prim::I32, self.width.into()),
            LaneOp::Any => {
                let mask = holds(self, 0);
                let (bits, zero) = (bits(self, mask), self.literal(Prim::U64, 0));
                self.op(Op::Ne, &[bits, zero], bool)
            }
            LaneOp::All => {
                let mask = holds(self, 0);
                let (bits, all) = (bits(self, mask), self.active());
                self.op(Op::Eq, &[bits, all], bool)
            }
            LaneOp::Count | LaneOp::Ballot => {
                let mask = holds(self, 0);
                let mut bits = bits(self, mask);
                if op == LaneOp::Count {
                    bits = self.op(Op::Popcount, &[bits], u64);
                }
                self.op(Op::Cast, &[bits], ty?)
            }
            LaneOp::Get => {
                let (from, ty) = (self.wide(inst.args[0]), ty?);
                // A lane's number counts modulo the number of lanes.
                let width = self.literal(Prim::U32, self.width.into());
                let index_ty = self.old.ty(inst.args[1]);
                if self.shape(inst.args[1], self.here) == Shape::Uniform {
                    let index = self.scalar(inst.args[1]);
                    let lane = self.lane_number(index, index_ty, width);
                    return Some(Wide::Uniform(self.lane(from, ty, lane)));
                }
                let (value, index) = (self.vector_of_wide(from, ty), self.vector(inst.args[1]));
                let index = self.cast(index, Prim::U32);
                let width = self.splat(width, Prim::U32);
                let index_ty = self.new.ty(index);
                let index = self.op(Op::Rem, &[index, width], index_ty);
                let index = self.cast(index, Prim::I32);
                let value = self.by_leaf(ty, &[value], &mut |b, v, _| {
                    let wide = b.new.ty(v[0]);
                    b.op(Op::Shuffle, &[v[0], v[0], index], wide)
                });
                return Some(Wide::Vector(value));
            }
            LaneOp::Compact => {
                let (value, mask) = (self.vector(inst.args[0]), holds(self, 1));
                let value = self.by_leaf(ty?, &[value], &mut |b, v, _| {
                    let wide = b.new.ty(v[0]);
                    b.with_result(InstOp::Vector(VectorOp::Compress), &[v[0], mask], wide)
                });
                return Some(Wide::Vector(value));
            }
        };
        Some(Wide::Uniform(value))
    }

    fn lane_number(&mut self, index: Value, ty: Ty, width: Value) -> Value {
        let (u32, u64) = (self.module.types.prim(Prim::U32), self.module.types.prim(Prim::U64));
        let index = if ty == u32 { index } else { self.op(Op::Cast, &[index], u32) };
        let lane = self.op(Op::Rem, &[index, width], u32);
        self.op(Op::Cast, &[lane], u64)
    }
}

/// A number with a bit for each of `width` lanes, at most 64.
pub fn all_bits(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

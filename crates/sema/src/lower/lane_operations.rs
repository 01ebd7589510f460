//! Lanes: the iterations of one `vectorize`, or the work items of one block, which may exchange values (`rv_…`) and
//! wait for each other (barriers).
//!
//! ```text
//! vectorize(l, a, b, body)     vectorize(m, l, 0, a, b, lane, k)
//!                                cont lane(m, i, ret) = @@body(m, i, next)
//!                                  cont next(m) = ret(m)
//! rv_any(x)                    nyala_lanes_any(m, x, k)
//! ```

use super::*;
use crate::intrinsics::Lane;
use ir::scalar::ORDERS;
use ir::{LaneOp, Scope};

impl Lowerer<'_, '_, '_> {
    /// `vectorize(L, a, b, body)`, `vectorize(L, a, b, align, body)`, `vectorize(L, body)`.
    pub(super) fn vectorize(&mut self, vals: &[Val], span: Span) -> Val {
        let unit = self.w.unit();
        let Some((&body, rest)) = vals.split_last() else { return unit };
        let i32 = self.w.types.i32();
        let none = self.w.lit(i32, 0);
        let numbers = match *rest {
            [n] => {
                let ty = self.w.ty(n);
                [n, none, self.w.lit(ty, 0), n]
            }
            [n, lo, hi] if self.exceeds_i64(self.w.ty(lo)) => {
                let count = self.count_of(lo, hi);
                let zero = self.w.lit(self.w.ty(lo), 0);
                self.lanes([n, none, zero, count], span, &mut |l, i| {
                    let i = l.w.op(Op::Add, &[i, lo]);
                    l.call_body(body, &[i]);
                });
                return unit;
            }
            [n, lo, hi] => [n, none, lo, hi],
            [n, lo, hi, align] => [n, align, lo, hi],
            _ => return unit,
        };
        self.lanes(numbers, span, &mut |l, i| l.call_body(body, &[i]));
        unit
    }

    /// A loop of `body` from `numbers[2]` to below `numbers[3]`, with `numbers[0]` iterations at a time. `numbers[1]`
    /// is a divisor of the bounds, or 0.
    pub(super) fn lanes(&mut self, numbers: [Val; 4], span: Span, body: &mut dyn FnMut(&mut Self, Val)) {
        if self.mem(span).is_none() {
            return;
        }
        let (mem, i32) = (self.w.types.mem(), self.w.types.i32());
        let [length, align, lo, hi] = numbers;
        let index = self.w.ty(lo);
        let next_ty = self.w.types.cn(&[mem]);
        let body_ty = self.w.types.cn(&[mem, index, next_ty]);
        let lane = self.w.declare("lane", body_ty, &["m", "i", "ret"]);
        let [_, i, ret] = *self.w.params(lane) else { return };
        let before = self.cur.take();
        self.go_on_in(lane);
        body(self, i);
        self.end(ret, &[]);
        self.cur = before;
        let (length, align) = (self.convert_int(length, i32), self.convert_int(align, i32));
        let lane = self.w.cont_val(lane);
        self.launch(Builtin::Vectorize, &[length, align, lo, hi, lane]);
    }

    /// An operation across lanes.
    pub(super) fn lane(&mut self, lane: Lane, vals: &[Val], ty: ir::Ty, span: Span) -> Val {
        let i32 = self.w.types.i32();
        let bool = self.w.types.bool();
        let index = |l: &mut Self, val: Val| l.convert_int(val, i32);
        let truth = |l: &mut Self, val: Val| match l.w.ty(val) {
            ty if ty == bool => val,
            ty => {
                let zero = l.w.lit(ty, 0);
                l.w.op(Op::Ne, &[val, zero])
            }
        };
        let made = match (lane, vals) {
            (Lane::Op(op @ (LaneOp::Any | LaneOp::All | LaneOp::Count | LaneOp::Ballot), scope), [holds, ..]) => {
                let result = match op {
                    LaneOp::Any | LaneOp::All => bool,
                    LaneOp::Count => i32,
                    _ => self.w.types.i64(),
                };
                let holds = truth(self, *holds);
                self.lane_op(op, scope, &[holds], Some(result))
            }
            (Lane::Op(LaneOp::Get, scope), [val, of, ..]) => self.lane_value(scope, *val, *of),
            (Lane::Op(LaneOp::Compact, scope), [val, holds, ..]) => {
                let (holds, val_ty) = (truth(self, *holds), self.w.ty(*val));
                self.lane_op(LaneOp::Compact, scope, &[*val, holds], Some(val_ty))
            }
            (Lane::Load, [place, of, ..]) => {
                let place = self.lane_value(Scope::Subgroup, *place, *of);
                let value = self.load(place, span);
                // The lane that owns the variable must not end before the access.
                self.lane_op(LaneOp::Barrier, Scope::Subgroup, &[], None);
                value
            }
            (Lane::Store, [place, of, val, ..]) => {
                let place = self.lane_value(Scope::Subgroup, *place, *of);
                if let Some(mem) = self.mem(span) {
                    let mem = self.w.op(Op::Store, &[mem, place, *val]);
                    self.set_mem(mem);
                }
                self.lane_op(LaneOp::Barrier, Scope::Subgroup, &[], None);
                self.w.unit()
            }
            (Lane::Insert, [val, of, new, ..]) => {
                let own = self.lane_op(LaneOp::Id, Scope::Subgroup, &[], Some(i32));
                let of = index(self, *of);
                let here = self.w.op(Op::Eq, &[own, of]);
                self.w.op(Op::Select, &[here, *new, *val])
            }
            (Lane::Op(op @ (LaneOp::Id | LaneOp::Width), scope), _) => self.lane_op(op, scope, &[], Some(i32)),
            (Lane::Op(LaneOp::Barrier, scope), _) => self.lane_op(LaneOp::Barrier, scope, &[], None),
            (Lane::Mask, _) => self.w.lit_bool(true),
            (Lane::Same, [val, ..]) => *val,
            (Lane::Fence(scope), _) => {
                let order = ORDERS.iter().position(|order| *order == Some("seq_cst")).unwrap_or(0);
                if let Some(mem) = self.mem(span) {
                    let (order, scope) = (self.w.lit_i32(order as i32), self.w.lit_i32(scope as i32));
                    let mem = self.w.op(Op::Fence, &[mem, order, scope]);
                    self.set_mem(mem);
                }
                self.w.unit()
            }
            _ => return self.w.undef(ty),
        };
        let (from, unit) = (self.w.ty(made), self.w.types.unit());
        match () {
            () if from == ty => made,
            () if self.w.types.as_prim(from).is_some() && self.w.types.as_prim(ty).is_some() => {
                self.w.op_ty(Op::Cast, ty, &[made])
            }
            // `rv_insert` and `rv_store` may be declared without result.
            () if ty == unit => self.w.unit(),
            () => self.w.undef(ty),
        }
    }

    /// The value of `val` in another lane.
    pub(super) fn lane_value(&mut self, scope: Scope, val: Val, of: Val) -> Val {
        let i32 = self.w.types.i32();
        let (of, ty) = (self.convert_int(of, i32), self.w.ty(val));
        self.lane_op(LaneOp::Get, scope, &[val, of], Some(ty))
    }

    pub(super) fn lane_op(&mut self, op: LaneOp, scope: Scope, args: &[Val], result: Option<ir::Ty>) -> Val {
        self.call_symbol(&op.symbol(scope), args, result)
    }
}

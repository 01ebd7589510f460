//! Intrinsics that have no back end yet: launches on devices, `pipeline`, the indices of work items. They
//! become loops, x innermost. Those of devices only the interpreter executes; the others say so ([`Builtin::Limited`]).
//! The work items of one block are lanes: [`super::lanes`].

use super::*;
use crate::intrinsics::Index;

/// What is kept in a global while loops run: these three, of three dimensions each.
const WORK_ITEM: [Index; 3] = [Index::Block, Index::BlockSize, Index::Blocks];

impl Lowerer<'_, '_, '_> {
    /// Says that what follows is executed by the interpreter only, or by nobody.
    pub(super) fn limit(&mut self, what: &str, interpreted: bool, span: Span) {
        let but = if interpreted { ", but by the interpreter" } else { "" };
        self.limit_because(&format!("the intrinsic `{}` is not supported yet{but}", short(what)), interpreted, span);
    }

    /// The same with what is the matter.
    pub(super) fn limit_because(&mut self, text: &str, interpreted: bool, span: Span) {
        if self.mem(span).is_none() {
            return;
        }
        let bytes: Vec<Val> = text.bytes().chain([0]).map(|b| self.w.lit_prim(ir::Prim::U8, b.into())).collect();
        let u8 = self.w.types.prim(ir::Prim::U8);
        let ty = self.w.types.array(u8, bytes.len() as u64);
        let text = self.w.op_ty(Op::Array, ty, &bytes);
        let interpreted = self.w.lit_bool(interpreted);
        self.launch(Builtin::Limited, &[text, interpreted]);
    }

    /// What nobody knows: a value in place of one that nothing computes.
    pub(super) fn unknown(&mut self, ty: ir::Ty) -> Val {
        let val = self.w.undef(ty);
        self.w.op(Op::Hlt, &[val])
    }

    /// `body` with a counter from `lo` below `hi`.
    pub(super) fn counted(&mut self, lo: Val, hi: Val, body: &mut dyn FnMut(&mut Self, Val)) {
        let index = self.w.ty(lo);
        let mem = self.w.types.mem();
        let head_ty = self.w.types.cn(&[mem, index]);
        let head = self.w.declare("head", head_ty, &["m", "i"]);
        let (then, otherwise) = (self.block("then"), self.block("else"));
        self.jump(head, &[lo]);
        self.go_on_in(head);
        let i = self.w.param(head, 1);
        let goes_on = self.w.op(Op::Lt, &[i, hi]);
        self.branch(goes_on, then, otherwise);
        self.go_on_in(then);
        body(self, i);
        let one = self.w.lit(index, 1);
        let next = self.w.op(Op::Add, &[i, one]);
        self.jump(head, &[next]);
        self.go_on_in(otherwise);
    }

    pub(super) fn call_body(&mut self, body: Val, args: &[Val]) {
        let body = self.w.op(Op::Unfold, &[body]);
        self.call_with(body, args.to_vec(), TypeTable::UNIT, None);
    }

    /// `pipeline(ii, a, b, body)`.
    pub(super) fn loop_intrinsic(&mut self, vals: &[Val], span: Span) -> Val {
        let unit = self.w.unit();
        let (Some((&body, rest)), true) = (vals.split_last(), self.mem(span).is_some()) else { return unit };
        let [_, lo, hi, ..] = *rest else { return unit };
        self.counted(lo, hi, &mut |l, i| l.call_body(body, &[i]));
        unit
    }

    /// `fibers(threads, blocks, warps, body)`.
    pub(super) fn fibers(&mut self, vals: &[Val], span: Span) -> Val {
        let unit = self.w.unit();
        let ([_, blocks, warps, body], true) = (vals, self.mem(span).is_some()) else { return unit };
        self.limit("fibers", true, span);
        let i32 = self.w.types.i32();
        let zero = self.w.lit(i32, 0);
        self.counted(zero, *blocks, &mut |l, block| {
            l.counted(zero, *warps, &mut |l, warp| l.call_body(*body, &[block, warp]));
        });
        unit
    }

    /// `cuda(device, grid, block, body)`, `cuda(grid, block, body)`: the grid counts work items. A loop for the blocks; the
    /// work items of one are lanes.
    pub(super) fn launch_device(&mut self, name: &str, vals: &[Val], span: Span) -> Val {
        let unit = self.w.unit();
        if self.mem(span).is_none() {
            return unit;
        }
        self.limit(name, true, span);
        let ([grid, block, body] | [_, grid, block, body]) = *vals else {
            // `hls(device, body)`.
            if let Some(&body) = vals.last() {
                self.call_body(body, &[]);
            }
            return unit;
        };
        let i32 = self.w.types.i32();
        let (zero, one) = (self.w.lit(i32, 0), self.w.lit(i32, 1));
        let (mut blocks, mut threads) = (Vec::new(), one);
        for axis in 0..3 {
            let (items, size) = (self.w.extract(grid, axis), self.w.extract(block, axis));
            // As many blocks as hold all items.
            let more = self.w.op(Op::Sub, &[size, one]);
            let sum = self.w.op(Op::Add, &[items, more]);
            let Some(mem) = self.mem(span) else { return unit };
            let n = self.w.op(Op::PDiv, &[mem, sum, size]);
            self.set_index(Index::BlockSize, axis, size);
            self.set_index(Index::Blocks, axis, n);
            threads = self.w.op(Op::Mul, &[threads, size]);
            blocks.push(n);
        }
        self.blocks(&blocks, zero, &mut |l| {
            l.lanes([threads, zero, zero, threads], span, &mut |l, i| {
                l.call_symbol("nyala_lanes_begin", &[i], None);
                l.call_body(body, &[]);
            });
        });
        unit
    }

    /// A loop for each of the axes, x innermost.
    fn blocks(&mut self, sizes: &[Val], zero: Val, body: &mut dyn FnMut(&mut Self)) {
        let Some((&n, inner)) = sizes.split_last() else { return body(self) };
        self.counted(zero, n, &mut |l, i| {
            l.set_index(Index::Block, inner.len() as u64, i);
            l.blocks(inner, zero, body);
        });
    }

    fn index_place(&mut self, what: Index, axis: u64) -> Val {
        let global = match self.work_item {
            Some(global) => global,
            None => {
                let i32 = self.w.types.i32();
                let ty = self.w.types.array(i32, 3 * WORK_ITEM.len() as u64);
                let global = self.w.declare_global("work_item", ty, true);
                // Outside of a kernel: one block of one.
                let numbers: Vec<Val> = (0..9).map(|i| self.w.lit(i32, u64::from(i >= 3))).collect();
                let init = self.w.op_ty(Op::Array, ty, &numbers);
                self.w.set_init(global, init);
                self.work_item = Some(global);
                global
            }
        };
        let place = WORK_ITEM.iter().position(|w| *w == what).unwrap_or(0) as u64;
        let ptr = self.w.global_val(global);
        let idx = self.w.lit_i64((3 * place + axis) as i64);
        self.w.op(Op::Lea, &[ptr, idx])
    }

    fn set_index(&mut self, what: Index, axis: u64, val: Val) {
        let place = self.index_place(what, axis);
        if let Some(mem) = self.mem(Span::NONE) {
            let mem = self.w.op(Op::Store, &[mem, place, val]);
            self.set_mem(mem);
        }
    }

    /// The work item's number, `axis` given by the name or as an argument.
    pub(super) fn index(
        &mut self,
        name: &str,
        what: Index,
        axis: Option<u64>,
        vals: &[Val],
        ty: ir::Ty,
        span: Span,
    ) -> Val {
        let axis = match (axis, vals.first().map(|v| self.w.as_lit(*v))) {
            (Some(axis), _) => axis,
            (None, Some(Some(axis))) if axis < 3 => axis,
            _ => {
                self.limit(name, false, span);
                return self.unknown(ty);
            }
        };
        self.limit(name, true, span);
        let val = match what {
            Index::Item | Index::Items => {
                let (of, times) =
                    if what == Index::Item { (Index::Block, Index::Thread) } else { (Index::Blocks, Index::BlockSize) };
                let size = self.get_index(Index::BlockSize, axis, span);
                let (of, other) = (self.get_index(of, axis, span), self.get_index(times, axis, span));
                let product = self.w.op(Op::Mul, &[of, size]);
                if what == Index::Item { self.w.op(Op::Add, &[product, other]) } else { product }
            }
            _ => self.get_index(what, axis, span),
        };
        if self.w.ty(val) == ty { val } else { self.w.op_ty(Op::Cast, ty, &[val]) }
    }

    fn get_index(&mut self, what: Index, axis: u64, span: Span) -> Val {
        if what != Index::Thread {
            let place = self.index_place(what, axis);
            return self.load(place, span);
        }
        let i32 = self.w.types.i32();
        let mut number = self.call_symbol("nyala_lanes_item", &[], Some(i32));
        for before in 0..axis {
            let size = self.get_index(Index::BlockSize, before, span);
            number = self.divide(Op::PDiv, number, size, span);
        }
        let size = self.get_index(Index::BlockSize, axis, span);
        self.divide(Op::PRem, number, size, span)
    }

    fn divide(&mut self, op: Op, a: Val, b: Val, span: Span) -> Val {
        match self.mem(span) {
            Some(mem) => self.w.op(op, &[mem, a, b]),
            None => a,
        }
    }

    /// `reserve_shared[T](n)`: memory that the work items of a block have in common.
    pub(super) fn reserve_shared(&mut self, n: Val, ptr_ty: ir::Ty, span: Span) -> Val {
        self.limit("reserve_shared", true, span);
        if self.mem(span).is_none() {
            return self.w.undef(ptr_ty);
        }
        let elem = self.w.types.pointee(ptr_ty).and_then(|array| self.w.types.part(array, 0));
        let size = elem.and_then(|elem| ir::layout::size_align(&self.w.types, elem)).map_or(0, |s| s.0);
        let i64 = self.w.types.i64();
        let (n, size) = (self.convert_int(n, i64), self.w.lit(i64, size));
        let bytes = self.w.op(Op::Mul, &[n, size]);
        let ptr = self.call_symbol("nyala_lanes_shared", &[bytes], Some(ptr_ty));
        if self.w.ty(ptr) == ptr_ty { ptr } else { self.w.undef(ptr_ty) }
    }
}

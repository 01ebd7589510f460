//! Kernels: launches on devices, what work items ask for, `pipeline`; and what says of intrinsics that nobody implements them
//! ([`Builtin::Limited`]).
//!
//! ```text
//! cuda(device, grid, block, body)     launch(m, 0, device, grid.0, …, block.2, kernel, k)
//!                                       cont kernel(m, ret) = @@body(m, next)
//!                                         cont next(m) = ret(m)
//! threadIdx_x()                       work_item(m, 0, 0)
//! get_global_id(1)                    add(mul(work_item(m, 1, 1), work_item(m, 2, 1)), work_item(m, 0, 1))
//! reserve_shared[T](n)                nyala_block_shared(m, n * size of T, k)
//! ```

use super::*;
use crate::intrinsics::Index;
use ir::lanes::PLATFORMS;
use ir::{LaneOp, Scope, WorkItem};

impl Lowerer<'_, '_, '_> {
    /// Marks the code that follows as executed by no engine.
    pub(super) fn limit(&mut self, what: &str, span: Span) {
        self.limit_because(&format!("the intrinsic `{}` is not supported yet", short(what)), false, span);
    }

    /// Marks the code that follows as executed by the interpreter only, or by no engine, and says why.
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

    /// A value that partial evaluation does not know, in place of one that is never computed.
    pub(super) fn unknown(&mut self, ty: ir::Ty) -> Val {
        let val = self.w.undef(ty);
        self.w.op(Op::Hlt, &[val])
    }

    /// A loop of `body`, with a counter from `lo` to below `hi`.
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

    /// `pipeline(interval, a, b, body)`.
    pub(super) fn pipeline(&mut self, vals: &[Val], span: Span) -> Val {
        let unit = self.w.unit();
        let ([interval, lo, hi, body], true) = (vals, self.mem(span).is_some()) else { return unit };
        let i32 = self.w.types.i32();
        let interval = self.convert_int(*interval, i32);
        self.counted(*lo, *hi, &mut |l, i| {
            if let Some(mem) = l.mem(span) {
                let mem = l.w.op(Op::Pipeline, &[mem, interval]);
                l.set_mem(mem);
            }
            l.call_body(*body, &[i]);
        });
        unit
    }

    /// `cuda(device, grid, block, body)`, `cuda(grid, block, body)`, where the grid counts work items; `hls(device, body)`;
    /// `fibers(threads, blocks, warps, body)`, whose body is given its block and warp.
    pub(super) fn launch_kernel(&mut self, platform: usize, vals: &[Val], span: Span) -> Val {
        let unit = self.w.unit();
        let (Some((&body, numbers)), true) = (vals.split_last(), self.mem(span).is_some()) else { return unit };
        let i32 = self.w.types.i32();
        let (zero, one) = (self.w.lit(i32, 0), self.w.lit(i32, 1));
        let is_fibers = PLATFORMS.get(platform) == Some(&"fibers");
        let mut args = vec![self.w.lit(i32, platform as u64)];
        match *numbers {
            [threads, blocks, warps] if is_fibers => args.extend([threads, warps, blocks, one, one, one, one]),
            [grid, block] | [_, grid, block] => {
                args.push(if let [device, _, _] = *numbers { device } else { zero });
                let extents = [grid, block].into_iter().flat_map(|v| (0..3).map(move |axis| (v, axis)));
                let extents: Vec<Val> = extents.map(|(v, axis)| self.w.extract(v, axis)).collect();
                args.extend(extents);
            }
            _ => args.extend([numbers.first().copied().unwrap_or(zero), one, one, one, one, one, one]),
        }
        let kernel = self.kernel(&mut |l| {
            let warp_and_block: Vec<Val> = match is_fibers {
                true => [1, 0].map(|axis| l.work_item(WorkItem::Block, axis, span)).into(),
                false => Vec::new(),
            };
            l.call_body(body, &warp_and_block);
        });
        for number in &mut args {
            *number = self.convert_int(*number, i32);
        }
        args.push(kernel);
        self.launch(Builtin::Launch, &args);
        unit
    }

    /// Makes a function without parameters whose body is the code.
    fn kernel(&mut self, code: &mut dyn FnMut(&mut Self)) -> Val {
        let mem = self.w.types.mem();
        let ret_ty = self.w.types.cn(&[mem]);
        let ty = self.w.types.cn(&[mem, ret_ty]);
        let kernel = self.w.declare("kernel", ty, &["m", "ret"]);
        let ret = self.w.param(kernel, 1);
        let before = self.cur.take();
        self.go_on_in(kernel);
        code(self);
        self.end(ret, &[]);
        self.cur = before;
        self.w.cont_val(kernel)
    }

    /// A number of the work item. The axis is part of the name or an argument.
    pub(super) fn index(&mut self, what: Index, axis: Option<u64>, vals: &[Val], ty: ir::Ty, span: Span) -> Val {
        let i32 = self.w.types.i32();
        let axis = match (axis, vals.first()) {
            (Some(axis), _) => self.w.lit(i32, axis),
            (None, Some(&axis)) => self.convert_int(axis, i32),
            (None, None) => return self.w.undef(ty),
        };
        let get = |l: &mut Self, what: WorkItem| l.work_item_on(what, axis, span);
        let val = match what {
            Index::Own(what) => get(self, what),
            Index::Item => {
                let (block, size) = (get(self, WorkItem::Block), get(self, WorkItem::BlockSize));
                let (before, own) = (self.w.op(Op::Mul, &[block, size]), get(self, WorkItem::Thread));
                self.w.op(Op::Add, &[before, own])
            }
            Index::Items => {
                let (blocks, size) = (get(self, WorkItem::Blocks), get(self, WorkItem::BlockSize));
                self.w.op(Op::Mul, &[blocks, size])
            }
        };
        self.convert_int(val, ty)
    }

    pub(super) fn work_item(&mut self, what: WorkItem, axis: u64, span: Span) -> Val {
        let i32 = self.w.types.i32();
        let axis = self.w.lit(i32, axis);
        self.work_item_on(what, axis, span)
    }

    /// 1 in a kernel, 0 elsewhere.
    pub(super) fn in_kernel(&mut self, span: Span) -> Val {
        let i32 = self.w.types.i32();
        let Some(mem) = self.mem(span) else { return self.w.undef(i32) };
        let [what, axis] = [ir::lanes::IN_KERNEL, 0].map(|n| self.w.lit(i32, n));
        self.w.op_ty(Op::WorkItem, i32, &[mem, what, axis])
    }

    fn work_item_on(&mut self, what: WorkItem, axis: Val, span: Span) -> Val {
        let i32 = self.w.types.i32();
        let Some(mem) = self.mem(span) else { return self.w.undef(i32) };
        let what = self.w.lit(i32, what.number());
        self.w.op_ty(Op::WorkItem, i32, &[mem, what, axis])
    }

    /// `reserve_shared[T](n)`: memory that the work items of a block share.
    pub(super) fn reserve_shared(&mut self, n: Val, ptr_ty: ir::Ty, span: Span) -> Val {
        if self.mem(span).is_none() {
            return self.w.undef(ptr_ty);
        }
        let elem = self.w.types.pointee(ptr_ty).and_then(|array| self.w.types.part(array, 0));
        let size = elem.and_then(|elem| ir::layout::size_align(&self.w.types, elem)).map_or(0, |s| s.0);
        let i64 = self.w.types.i64();
        let (n, size) = (self.convert_int(n, i64), self.w.lit(i64, size));
        let bytes = self.w.op(Op::Mul, &[n, size]);
        let ptr = self.lane_op(LaneOp::Shared, Scope::Block, &[bytes], Some(ptr_ty));
        if self.w.ty(ptr) == ptr_ty { ptr } else { self.w.undef(ptr_ty) }
    }
}

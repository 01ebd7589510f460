//! `parallel`, `spawn` and `sync` (`001` 5.1; `docs/design/targets.md`, Launches on the CPU). Separate from the other
//! intrinsics, because they make functions. The runtime calls a parallel body for ranges, so the loop over one range is
//! made here, where it can be optimized together with the body.
//!
//! ```text
//! parallel(n, a, b, body)      parallel(m, n, a, b, range, k)
//!                                cont range(m, lo, hi, ret) = head(m, lo)
//!                                  cont head(m, i) = branch(m, lt(i, hi), then, else)
//!                                    cont then(m) = @@body(m, i, next)
//!                                      cont next(m) = head(m, add(i, 1))
//!                                    cont else(m) = ret(m)
//! ```

use super::*;

impl Lowerer<'_, '_, '_> {
    /// Runs the iterations `bounds[1] .. bounds[2]` of `body` on `bounds[0]` threads.
    pub(super) fn parallel(&mut self, bounds: [Val; 3], body: Val, span: Span) -> Val {
        self.ranges(bounds, span, &mut |l, i| l.call_body(body, &[i]));
        self.w.unit()
    }

    /// Makes a parallel loop around code.
    pub(super) fn ranges(&mut self, bounds: [Val; 3], span: Span, body: &mut dyn FnMut(&mut Self, Val)) {
        if self.mem(span).is_none() {
            return;
        }
        let (mem, i64) = (self.w.types.mem(), self.w.types.i64());
        let index = self.w.ty(bounds[1]);
        let offset = self.exceeds_i64(index).then_some(bounds[1]);
        let next_ty = self.w.types.cn(&[mem]);
        let range_ty = self.w.types.cn(&[mem, i64, i64, next_ty]);
        let range = self.w.declare("parallel", range_ty, &["m", "lo", "hi", "ret"]);
        let [_, lo, hi, ret] = *self.w.params(range) else { return };
        let before = self.cur.take();

        self.go_on_in(range);
        let (mut lo, mut hi) = (self.convert_int(lo, index), self.convert_int(hi, index));
        if let Some(first) = offset {
            (lo, hi) = (self.w.op(Op::Add, &[lo, first]), self.w.op(Op::Add, &[hi, first]));
        }
        self.counted(lo, hi, body);
        self.end(ret, &[]);

        self.cur = before;
        let i32 = self.w.types.i32();
        let n = self.convert_int(bounds[0], i32);
        let [_, mut from, mut to] = bounds;
        if offset.is_some() {
            to = self.count_of(from, to);
            from = self.w.lit(index, 0);
        }
        let (from, to) = (self.convert_int(from, i64), self.convert_int(to, i64));
        let range = self.w.cont_val(range);
        self.launch(Builtin::Parallel, &[n, from, to, range]);
    }

    /// Whether `i64`, in which loops at once are counted, lacks values of the type. Such loops count from 0.
    pub(super) fn exceeds_i64(&mut self, index: ir::Ty) -> bool {
        index == self.w.types.prim(ir::Prim::U64)
    }

    /// The number of iterations of a loop from `lo` to below `hi`.
    pub(super) fn count_of(&mut self, lo: Val, hi: Val) -> Val {
        let zero = self.w.lit(self.w.ty(lo), 0);
        let (n, runs) = (self.w.op(Op::Sub, &[hi, lo]), self.w.op(Op::Lt, &[lo, hi]));
        self.w.op(Op::Select, &[runs, n, zero])
    }

    /// Starts a thread. Returns its handle.
    pub(super) fn spawn(&mut self, body: Val, span: Span) -> Val {
        let i32 = self.w.types.i32();
        if self.mem(span).is_none() {
            return self.w.undef(i32);
        }
        let handle = self.call_symbol("nyala_spawn_handle", &[], Some(i32));
        self.launch(Builtin::Spawn, &[handle, body]);
        handle
    }

    /// Waits for a thread.
    pub(super) fn sync(&mut self, handle: Val, span: Span) -> Val {
        if self.mem(span).is_some() {
            self.call_symbol("nyala_sync", &[handle], None);
        }
        self.w.unit()
    }

    /// Calls a builtin whose last argument is the continuation to go on with.
    pub(super) fn launch(&mut self, builtin: Builtin, args: &[Val]) {
        let next = self.block("k");
        let callee = self.w.builtin(builtin);
        let mut all = args.to_vec();
        all.push(self.w.cont_val(next));
        self.end(callee, &all);
        self.go_on_in(next);
    }

    /// Calls a function of the runtime. Returns its result, or `()` if it has none.
    pub(super) fn call_symbol(&mut self, symbol: &str, args: &[Val], result: Option<ir::Ty>) -> Val {
        let mem = self.w.types.mem();
        let mut tys = vec![mem];
        tys.extend(result);
        let ret_ty = self.w.types.cn(&tys);
        let k = self.w.declare("k", ret_ty, &["m", "r"][..tys.len()]);
        tys.truncate(1);
        tys.extend(args.iter().map(|&a| self.w.ty(a)));
        tys.push(ret_ty);
        let ty = self.w.types.cn(&tys);
        let f = self.w.foreign(symbol, ty);
        let (f, next) = (self.w.cont_val(f), self.w.cont_val(k));
        let mut all = args.to_vec();
        all.push(next);
        self.end(f, &all);
        self.go_on_in(k);
        match result {
            Some(_) => self.w.param(k, 1),
            None => self.w.unit(),
        }
    }

    pub(super) fn convert_int(&mut self, val: Val, to: ir::Ty) -> Val {
        if self.w.ty(val) == to { val } else { self.w.op_ty(Op::Cast, to, &[val]) }
    }
}

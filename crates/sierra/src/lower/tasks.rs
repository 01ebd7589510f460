//! Tasks of ISPC's dialect: `launch` and `sync`.
//!
//! `launch` with `sync` right behind it is a parallel loop. Another one runs as a thread beside the function, and `sync`, or the function's end, waits for
//! it. Such a thread waits for the one before it at its end, so that there is one thread to wait for.

use super::ispc::TASK;
use super::*;

/// Addresses of the last thread that tasks were launched on, and of how many wait for each other.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    handle: Val,
    n: Val,
}

/// Limit on the threads of a function.
const MAX_PENDING: i32 = 32;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn launch(
        &mut self,
        Launch { counts, task: name, args, waits }: &Launch<'s>,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let Some(Entity::Functions(set)) = self.find(name.text) else {
            return Err(Box::new(sierra_name::error(name.span, name.text)));
        };
        let of_task = |l: &Self, id: usize| {
            let f = &l.functions[id];
            f.is_task && f.params.len() == args.len() + TASK.len()
        };
        let Some(id) = overloads::functions(&self.sets[set]).find(|&id| of_task(self, id)) else {
            let found = format!("`{}`", name.text);
            let expected = format!("a `task` with {} parameters", args.len());
            return Err(Box::new(sierra_type::mismatch(name.span, &found, &expected)));
        };
        if counts.len() > 3 {
            return Err(Box::new(sierra_type::arguments(span, counts.len(), 3, Span::NONE)));
        }
        let int = self.types.prim(Prim::I32);
        let mut numbers = Vec::new();
        for count in counts {
            let found = self.value(count)?;
            numbers.push(self.convert(found, int, count.span)?);
        }
        numbers.resize_with(3, || self.w.lit_i32(1));
        let callee = self.callee(id);
        let mut vals = Vec::new();
        for (arg, &ty) in args.iter().zip(&callee.params) {
            vals.push(match *self.types.kind(ty) {
                Kind::Reference { to, is_const } => self.referred(arg, to, is_const)?,
                _ => {
                    let found = self.value_for(arg, ty)?;
                    self.convert(found, ty, arg.span)?
                }
            });
        }
        self.mem(span)?;
        self.w.set_origin(span);
        if !self.is_reached() {
            return Ok((self.w.unit(), Types::VOID));
        }
        let (mem, long) = (self.w.types.mem(), self.w.types.i64());
        let next_ty = self.w.types.cn(&[mem]);
        let range_ty = self.w.types.cn(&[mem, long, long, next_ty]);
        let range = self.w.declare("tasks", range_ty, &["m", "lo", "hi", "ret"]);
        let [_, lo, hi, ret] = *self.w.params(range) else { return Ok((self.w.unit(), Types::VOID)) };
        let before = self.cur.take();
        self.reached.insert(range);
        self.go_on_in(range);
        let number = self.slot(lo);
        let (test, inner, after) = (self.block("test"), self.block("task"), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let i = self.load(number, span)?;
        let goes_on = self.w.op(Op::Lt, &[i, hi]);
        self.branch(goes_on, inner, after);
        self.go_on_in(inner);
        let ir = self.w.types.i32();
        let task = self.w.op_ty(Op::Cast, ir, &[i]);
        let row = self.w.op(Op::Div, &[task, numbers[0]]);
        let of_task = [
            self.w.op(Op::Rem, &[task, numbers[0]]),
            self.w.op(Op::Rem, &[row, numbers[1]]),
            self.w.op(Op::Div, &[row, numbers[1]]),
        ];
        let all = vals.into_iter().chain(of_task).chain(numbers.iter().copied()).collect();
        self.call_with(&callee, all, span)?;
        let one = self.w.lit_i64(1);
        let i = self.w.op(Op::Add, &[i, one]);
        self.store(number, i, span)?;
        self.jump(test, &[]);
        self.go_on_in(after);
        self.end(ret, &[]);
        self.cur = before;
        let plane = self.w.op(Op::Mul, &[numbers[0], numbers[1]]);
        let count = self.w.op(Op::Mul, &[plane, numbers[2]]);
        let count = self.w.op_ty(Op::Cast, long, &[count]);
        if let (Some(pending), false) = (self.pending, *waits) {
            self.beside(pending, range, count, span)?;
            return Ok((self.w.unit(), Types::VOID));
        }
        let next = self.block("launched");
        self.parallel(range, count, next);
        self.go_on_in(next);
        Ok((self.w.unit(), Types::VOID))
    }

    /// Runs tasks on all threads, and goes on in `next`.
    fn parallel(&mut self, range: Cont, count: Val, next: Cont) {
        let (threads, from) = (self.w.lit_i32(0), self.w.lit_i64(0));
        let callee = self.w.builtin(Builtin::Parallel);
        let (range, next) = (self.w.cont_val(range), self.w.cont_val(next));
        self.end(callee, &[threads, from, count, range, next]);
    }

    /// Runs tasks beside the function's own code: a thread runs them, and waits for those that were launched before.
    fn beside(&mut self, pending: Pending, range: Cont, count: Val, span: Span) -> Lowered<()> {
        let (most, zero) = (self.w.lit_i32(MAX_PENDING), self.w.lit_i32(0));
        let n = self.load(pending.n, span)?;
        let is_full = self.w.op(Op::Ge, &[n, most]);
        let (full, free) = (self.block("full"), self.block("free"));
        self.branch(is_full, full, free);
        self.go_on_in(full);
        self.sync(span)?;
        self.jump(free, &[]);
        self.go_on_in(free);
        let (n, before) = (self.load(pending.n, span)?, self.load(pending.handle, span)?);
        let int = self.w.types.i32();
        let handle = self.run_for(span, "nyala_spawn_handle", &[], int)?;
        let mem = self.w.types.mem();
        let ret_ty = self.w.types.cn(&[mem]);
        let ty = self.w.types.cn(&[mem, ret_ty]);
        let body = self.w.declare("launched", ty, &["m", "ret"]);
        let outside = self.cur.take();
        self.reached.insert(body);
        self.go_on_in(body);
        let (done, wait, last) = (self.block("done"), self.block("wait"), self.block("last"));
        self.parallel(range, count, done);
        self.go_on_in(done);
        let has_before = self.w.op(Op::Gt, &[n, zero]);
        self.branch(has_before, wait, last);
        self.go_on_in(wait);
        self.run(span, "nyala_sync", &[before])?;
        self.jump(last, &[]);
        self.go_on_in(last);
        let ret = self.w.param(body, 1);
        self.end(ret, &[]);
        self.cur = outside;
        let next = self.block("beside");
        let callee = self.w.builtin(Builtin::Spawn);
        let (body, next_val) = (self.w.cont_val(body), self.w.cont_val(next));
        self.w.set_origin(span);
        self.end(callee, &[handle, body, next_val]);
        self.go_on_in(next);
        self.store(pending.handle, handle, span)?;
        let one = self.w.lit_i32(1);
        let n = self.w.op(Op::Add, &[n, one]);
        self.store(pending.n, n, span)
    }

    /// Notes that nothing is to be waited for.
    pub(super) fn no_tasks(&mut self) -> Pending {
        let zero = self.w.lit_i32(0);
        Pending { handle: self.slot(zero), n: self.slot(zero) }
    }

    /// Waits for the tasks that the function has launched.
    pub(super) fn sync(&mut self, span: Span) -> Lowered<()> {
        let Some(pending) = self.pending else { return Ok(()) };
        let zero = self.w.lit_i32(0);
        let n = self.load(pending.n, span)?;
        let is_any = self.w.op(Op::Gt, &[n, zero]);
        let (wait, after) = (self.block("wait"), self.block("after"));
        self.branch(is_any, wait, after);
        self.go_on_in(wait);
        let handle = self.load(pending.handle, span)?;
        self.run(span, "nyala_sync", &[handle])?;
        self.store(pending.n, zero, span)?;
        self.jump(after, &[]);
        self.go_on_in(after);
        Ok(())
    }
}

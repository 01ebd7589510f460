//! Launches: the bodies of `parallel` and `spawn` become callbacks that the runtime calls on other threads
//! (`docs/design/targets.md`, Launches on the CPU). Separate from other calls, because the code moves out of the
//! function that contains it.
//!
//! ```text
//! parallel(m, n, lo, hi, body, next)      env = slot; store env ← what is free in body
//!                                         call nyala_parallel(n, lo, hi, c@body.callback, env)
//!                                         jump next
//! callback body.callback(env, lo, hi) { load what is free; call body(lo, hi, …) }
//! ```
//!
//! The environment of a parallel body lies in the frame of the launcher, which waits for it. That of a thread lies on
//! the heap; the runtime frees it.

use super::{Building, Scheduler};
use nyala_base::diagnostics::{intrinsic_value, jump_out_of_parallel, limitation};
use nyala_base::{Id, Span};
use nyala_flat::environments::{load_env, store_env};
use nyala_flat::*;
use nyala_ir::{Cont, Node, Op, Ty, Val};
use rustc_hash::{FxHashMap, FxHashSet};

impl Scheduler<'_> {
    pub(super) fn launch_parallel(&mut self, b: &mut Building, block: Block, body: nyala_ir::Body) -> Terminator {
        let Some((code, k)) = self.callback(body, body.args[4], body.args[5]) else { return Terminator::Unreachable };
        let mut args: Vec<Value> = body.args[1..4].iter().map(|&a| self.value(b, block, a)).collect();
        let captured = self.free_values(b, block, k);
        let tys = self.free_tys(k);
        let env_ptr = self.env_ptr();
        let mut fb = self.builder(b, block, body.origin);
        let env = if captured.is_empty() {
            fb.function.constant(Const::Bits(0), env_ptr)
        } else {
            let env_ty = fb.types.tuple(&tys);
            let record = fb.slot(env_ty, "env");
            store_env(&mut fb, record, &captured, &tys);
            fb.op(Op::Bitcast, &[record], env_ptr)
        };
        args.extend([code_address(&mut fb, code), env]);
        self.call_runtime(b, block, "nyala_parallel", &args, body.origin);
        Terminator::Jump(self.edge_to(b, body.args[5], Vec::new(), body.origin))
    }

    /// Launches a body of `vectorize`, which the vectorizer makes a loop of.
    pub(super) fn launch_lanes(&mut self, b: &mut Building, block: Block, body: nyala_ir::Body) -> Terminator {
        let next = Terminator::Jump(self.edge_to(b, body.args[6], Vec::new(), body.origin));
        let Some(k) = self.launched(body, body.args[5], body.args[6], true) else { return next };
        let width = match self.w.as_lit(body.args[1]).map(|n| n as i32) {
            Some(n @ 1..=64) => n as u32,
            Some(n) => {
                self.errors.push(intrinsic_value::of_lanes(body.origin, n));
                return next;
            }
            None => {
                self.warnings.push(limitation::warning(
                    body.origin,
                    "the number of lanes of this `vectorize` is known at run time only, so it is a plain loop",
                    "write a literal, or specialize the enclosing function with `@`",
                ));
                0
            }
        };
        let align = self.w.as_lit(body.args[2]).and_then(|n| u32::try_from(n as i32).ok()).unwrap_or(0);
        let mut target = self.func(k);
        if self.groups.of(k).is_some() {
            target = self.wrap(k, target, Linkage::Internal, &[]);
        }
        let mut args: Vec<Value> = body.args[3..5].iter().map(|&a| self.value(b, block, a)).collect();
        args.extend(self.free_values(b, block, k));
        let mut fb = self.builder(b, block, body.origin);
        fb.vectorize(target, width, align, &args);
        next
    }

    pub(super) fn launch_thread(&mut self, b: &mut Building, block: Block, body: nyala_ir::Body) -> Terminator {
        let Some((code, k)) = self.callback(body, body.args[2], body.args[3]) else { return Terminator::Unreachable };
        let handle = self.value(b, block, body.args[1]);
        let env = self.env_on_heap(b, block, k);
        let mut fb = self.builder(b, block, body.origin);
        let code = code_address(&mut fb, code);
        self.call_runtime(b, block, "nyala_spawn", &[handle, code, env], body.origin);
        Terminator::Jump(self.edge_to(b, body.args[3], Vec::new(), body.origin))
    }

    /// Launches a kernel. `lower_launches` of the crate `kernels` gives it to its device.
    pub(super) fn launch_kernel(&mut self, b: &mut Building, block: Block, body: nyala_ir::Body) -> Terminator {
        let next = Terminator::Jump(self.edge_to(b, body.args[10], Vec::new(), body.origin));
        let Some(k) = self.launched(body, body.args[9], body.args[10], false) else { return next };
        let Some(platform) = self.w.as_lit(body.args[1]) else { return next };
        let mut kernel = self.func(k);
        if self.groups.of(k).is_some() {
            kernel = self.wrap(k, kernel, Linkage::Internal, &[]);
        }
        let mut args: Vec<Value> = body.args[2..9].iter().map(|&a| self.value(b, block, a)).collect();
        args.extend(self.free_values(b, block, k));
        self.builder(b, block, body.origin).launch(kernel, platform as u32, &args);
        next
    }

    fn call_runtime(&mut self, b: &Building, block: Block, symbol: &'static str, args: &[Value], span: Span) {
        let tys: Vec<Ty> = args.iter().map(|&a| self.module.func(b.func).ty(a)).collect();
        let func = self.runtime_func(symbol, &tys);
        self.builder(b, block, span).call(func, args, &[]);
    }

    /// The function of a body. `None` if it is unsupported; a limitation is reported.
    fn launched(&mut self, launch: nyala_ir::Body, body: Val, next: Val, in_lanes: bool) -> Option<Cont> {
        let Some(k) = self.w.as_cont(body) else {
            self.limitation(
                launch.origin,
                "the body of this `parallel`, `spawn`, `vectorize` or kernel is known at run time only",
                "specialize the enclosing function with `@`, or wrap the body: `|| body()`",
            );
            return None;
        };
        if let Some(leaves) = self.leaves(k, next) {
            self.errors.push(jump_out_of_parallel::by_call(leaves, launch.origin, in_lanes));
            return None;
        }
        Some(k)
    }

    /// The callback for a body, and the body's function.
    fn callback(&mut self, launch: nyala_ir::Body, body: Val, next: Val) -> Option<(Func, Cont)> {
        let k = self.launched(launch, body, next, false)?;
        if let Some(code) = self.callbacks[k] {
            return Some((code, k));
        }
        let target = self.func(k);
        let (own, rets) = self.signature(self.w.cont(k).ty);
        let mut params = vec![self.env_ptr()];
        params.extend(&own);
        let name = format!("{}.callback", self.w.name(k));
        let code = self.module.declare(&name, Linkage::Callback, &params, &rets);
        self.callbacks[k] = Some(code);
        let free_tys = self.free_tys(k);
        self.module.funcs[code.idx()].span = self.w.cont(k).origin;
        let mut fb = FunctionBuilder::new(&mut self.module, code);
        fb.span = self.w.cont(k).origin;
        let entry = fb.entry(&["env"]);
        let mut args: Vec<Value> = (1..params.len()).map(|i| fb.param(entry, i)).collect();
        let env = fb.param(entry, 0);
        args.extend(load_env(&mut fb, env, &free_tys));
        self.call_and_return(code, target, &args, &rets);
        Some((code, k))
    }

    /// The source location where the body `k` continues outside: at a continuation of a function around it.
    fn leaves(&self, k: Cont, next: Val) -> Option<Span> {
        let w = self.w;
        let outer: Vec<Val> = self.nest.free(k).iter().copied().filter(|&v| self.is_continuation(w.ty(v))).collect();
        if outer.is_empty() {
            return None;
        }
        let reachable = |from: Cont| {
            let (mut seen, mut order) = (FxHashSet::default(), vec![from]);
            let mut next = 0;
            seen.insert(from);
            while next < order.len() {
                let references = self.nest.references(order[next]);
                order.extend(references.iter().filter(|&&r| seen.insert(r)));
                next += 1;
            }
            (seen, order)
        };
        let after = w.as_cont(next).map(|c| reachable(c).0).unwrap_or_default();
        let goes_out = |v: &Val| {
            outer.contains(v)
                || matches!(w.node(*v), Node::Cont(c) if after.contains(&c) && self.is_continuation(w.cont(c).ty))
        };
        let inside = reachable(k).1.into_iter().filter(|c| !after.contains(c));
        let mut bodies = inside.filter_map(|c| w.body(c));
        let found = bodies.find(|body| goes_out(&body.callee) || body.args.iter().any(goes_out));
        let found = found.map(|body| body.origin).or_else(|| self.leaves_in_loop(k, &outer));
        Some(found.unwrap_or(w.cont(k).origin))
    }

    /// Like `leaves`, for launches in a loop, where all of the body is also reachable after the launch. Code inside the
    /// body can reach its end without starting the body again.
    fn leaves_in_loop(&self, k: Cont, outer: &[Val]) -> Option<Span> {
        let w = self.w;
        let end = w.params(k).last().copied();
        let values = |c: Cont| w.body(c).into_iter().flat_map(|body| body.args.iter().copied().chain([body.callee]));
        // Continuations that lead to a marked one without passing through `k`.
        let leads = |marked: &dyn Fn(Cont) -> bool| {
            let mut order = vec![k];
            let mut seen: FxHashSet<Cont> = order.iter().copied().collect();
            let mut next = 0;
            while let Some(&c) = order.get(next) {
                next += 1;
                order.extend(self.nest.references(c).iter().filter(|&&r| seen.insert(r)));
            }
            let mut by: FxHashMap<Cont, Vec<Cont>> = FxHashMap::default();
            for &c in &order {
                self.nest.references(c).iter().filter(|&&r| r != k).for_each(|&r| by.entry(r).or_default().push(c));
            }
            let mut work: Vec<Cont> = order.iter().copied().filter(|&c| marked(c)).collect();
            let mut found: FxHashSet<Cont> = work.iter().copied().collect();
            while let Some(c) = work.pop() {
                work.extend(by.get(&c).into_iter().flatten().filter(|&&c| found.insert(c)));
            }
            (found, order)
        };
        let (ends, order) = leads(&|c| values(c).any(|v| Some(v) == end));
        let (leave, _) = leads(&|c| values(c).any(|v| outer.contains(&v)));
        let goes_out =
            |v: Val| outer.contains(&v) || w.as_cont(v).is_some_and(|c| leave.contains(&c) && !ends.contains(&c));
        let mut inside = order.into_iter().filter(|&c| c == k || ends.contains(&c));
        inside.find(|&c| values(c).any(goes_out)).and_then(|c| Some(w.body(c)?.origin))
    }
}

/// The code address of a callback, for the runtime.
fn code_address(b: &mut FunctionBuilder, code: Func) -> Value {
    let ty = b.types.code();
    b.function.constant(Const::CFunc(code), ty)
}

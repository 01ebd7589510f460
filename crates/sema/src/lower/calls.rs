//! Calls, loops over generators, intrinsics.

use super::*;
use crate::device_names::DeviceFn;
use crate::intrinsics::{Intrinsic, Test};
use nyala_ir::ensure::{self, Ensure};
use nyala_syntax::ast::{ExprKind, For, UnaryOp};

impl<'a> Lowerer<'_, 'a, '_> {
    /// Lowers a call. If its result fits `ret` as it is, the result goes there and the call has no value here.
    pub(super) fn call(&mut self, e: ExprId, ret: Option<Val>, mark: Option<Op>) -> Val {
        let ast = self.ast();
        let ty = self.ty_of(e);
        let ExprKind::Call { callee, args } = &ast[e].kind else { return self.undef(ty) };
        let span = ast[e].span;
        if let Some(val) = self.special_call(e, *callee, args, span) {
            return val;
        }
        if self.mode == Mode::Filter
            && let Some(Entity::Fn(id)) = self.p.resolved.get(&self.g(*callee))
        {
            let type_args = self.args_of(self.g(*callee));
            let receiver = match &ast[*callee].kind {
                ExprKind::Field { base, .. } => Some(*base),
                _ => None,
            };
            let args: Vec<ExprId> = receiver.into_iter().chain(args.iter().copied()).collect();
            return self.call_in_filter(*id, type_args, &args, span);
        }
        if self.mode != Mode::Code {
            self.mem(span);
            return self.undef(ty);
        }
        let (f, fn_ty, receiver) = self.callee(*callee);
        let mut vals: Vec<Val> = args.iter().map(|a| self.value(*a)).collect();
        if !self.alive() {
            return self.undef(ty);
        }
        let Kind::Fn(params, result) = self.kind(fn_ty) else { return self.undef(ty) };
        self.w.set_origin(span);
        if let Some(receiver) = receiver {
            vals.insert(0, receiver);
        }
        let f = mark.map_or(f, |mark| self.w.op(mark, &[f]));
        if vals.len() == params.len() && result != TypeTable::NEVER {
            return self.call_with(f, vals, result, ret);
        }
        if result == TypeTable::NEVER && vals.len() == 1 && params.len() != 1 {
            // A tuple is passed as its parts.
            let Some(&arg) = args.first() else { return self.undef(ty) };
            let arg_ty = self.adjusted_ty(arg);
            vals = self.split_parts(vals[0], arg_ty);
        }
        self.leave(e, f, vals, span);
        self.undef(ty)
    }

    /// Lowers a call in a filter: the body, which must be an expression there, with the parameters replaced by the
    /// arguments.
    pub(super) fn call_in_filter(&mut self, id: FnId, type_args: Arc<[Ty]>, args: &[ExprId], span: Span) -> Val {
        const MAX_CALLS: u32 = 1000;
        let p = self.p;
        let (id, type_args) = self.implementation(id, type_args);
        let info = &p.fns[id.0 as usize];
        let result = match self.kind(info.ty) {
            Kind::Fn(_, result) => self.types.instantiate(result, &info.generics, &type_args),
            _ => return self.w.lit_bool(false),
        };
        self.filter_calls += 1;
        if self.filter_calls > MAX_CALLS {
            self.report(limitation::error(
                span,
                "recursive calls in filters are not supported yet",
                "write the condition itself",
            ));
            return self.undef(result);
        }
        let vals: Vec<Val> = args.iter().map(|a| self.value(*a)).collect();
        let Some(body) = info.ast.body.filter(|_| vals.len() == info.ast.params.len()) else {
            self.report(limitation::error(
                span,
                "this call in a filter is not supported yet",
                "write the condition itself",
            ));
            return self.undef(result);
        };
        let module = std::mem::replace(&mut self.module, info.module);
        let old_env = self.enter_env(&info.generics, &type_args);
        let mark = self.log.len();
        let param_tys = self.mono_all(&info.param_tys);
        for ((param, ty), val) in info.ast.params.iter().zip(param_tys.iter()).zip(&vals) {
            self.bind_pattern(&param.pattern, *ty, *val, true);
        }
        let val = self.value(body);
        self.rollback(mark);
        self.env = old_env;
        self.module = module;
        val
    }

    /// Calls `f`. The result goes to `ret` if that is given; otherwise, code goes on with it.
    pub(super) fn call_with(&mut self, f: Val, mut args: Vec<Val>, result: Ty, ret: Option<Val>) -> Val {
        let ret_ty = self.ret_ty(result);
        if let Some(ret) = ret
            && self.w.ty(ret) == ret_ty
        {
            args.push(ret);
            self.end(f, &args);
            return self.undef(result);
        }
        let k = self.w.declare("k", ret_ty, &["m", "r"]);
        args.push(self.w.cont_val(k));
        self.end(f, &args);
        self.go_on_in(k);
        let parts: Vec<Val> = self.w.params(k)[1..].to_vec();
        self.join_parts(&parts, result)
    }

    /// The callee behind all pointers, its type, and the receiver of a method.
    fn callee(&mut self, callee: ExprId) -> (Val, Ty, Option<Val>) {
        let span = self.ast()[callee].span;
        if let ExprKind::Field { base, .. } = &self.ast()[callee].kind
            && let Some(Entity::Fn(id)) = self.p.resolved.get(&self.g(callee))
        {
            let receiver = self.value(*base);
            let type_args = self.args_of(self.g(callee));
            let info = &self.p.fns[id.0 as usize];
            let ty = self.types.instantiate(info.ty, &info.generics, &type_args);
            return (self.fn_val(*id, type_args, span), ty, Some(receiver));
        }
        let mut val = self.value(callee);
        let mut ty = self.adjusted_ty(callee);
        if let (Some(args), Kind::Generic(..)) = (self.p.instantiated.get(&self.g(callee)), self.kind(ty)) {
            let args = self.mono_all(args);
            ty = self.types.open(ty, &args).1;
        }
        while let Kind::Ptr { to, .. } = self.kind(ty) {
            ty = to;
            if let Some(mem) = self.mem(span) {
                val = self.w.op(Op::Load, &[mem, val]);
            }
        }
        (val, ty, None)
    }

    /// Lowers applications that are not calls: intrinsics, and `break` and `continue` of a `while`.
    fn special_call(&mut self, e: ExprId, callee: ExprId, args: &[ExprId], span: Span) -> Option<Val> {
        let p = self.p;
        match *p.resolved.get(&self.g(callee))? {
            Entity::Local(id) => {
                let (looped, is_break) = p.local(id).loop_cont?;
                if p.loops[looped.0 as usize].first_class {
                    return None;
                }
                for arg in args {
                    self.value(*arg);
                }
                self.leave_loop(e, looped, is_break, span);
                Some(self.w.unit())
            }
            Entity::Option(_, i) => {
                let vals: Vec<Val> = args.iter().map(|a| self.value(*a)).collect();
                let fn_ty = self.ty_of(callee);
                let Kind::Fn(params, result) = self.kind(fn_ty) else { return None };
                self.w.set_origin(span);
                let val = self.option_val(result, i, &vals);
                if vals.len() > params.len() && self.alive() {
                    self.end(vals[params.len()], &[val]);
                }
                Some(val)
            }
            Entity::Fn(id) => {
                let FnKind::Intrinsic(intrinsic) = &p.fns[id.0 as usize].kind else { return None };
                let n = p.fns[id.0 as usize].ast.params.len();
                let vals: Vec<Val> = match intrinsic {
                    Intrinsic::PeInfo => return Some(self.at_compile_time(Builtin::PeInfo, args, span)),
                    Intrinsic::StaticAssert => {
                        let (text_first, span) = (args.iter().rev().copied().collect::<Vec<_>>(), span);
                        return Some(self.at_compile_time(Builtin::StaticAssert, &text_first, span));
                    }
                    Intrinsic::EnsureResidual => return Some(self.ensure_residual(args, span)),
                    Intrinsic::EnsureNoBranch => return Some(self.ensure_no_branch(args, span)),
                    Intrinsic::Assert => return Some(self.assert(args, span)),
                    _ => args.iter().map(|a| self.value(*a)).collect(),
                };
                let type_args = self.args_of(self.g(callee));
                let ty = match self.kind(p.fns[id.0 as usize].ty) {
                    // It may be called with its return continuation as well.
                    Kind::Fn(_, result) if vals.len() == n + 1 => {
                        self.types.instantiate(result, &p.fns[id.0 as usize].generics, &type_args)
                    }
                    _ => self.ty_of(e),
                };
                self.w.set_origin(span);
                let val = self.intrinsic(intrinsic, &vals, ty, &type_args, span);
                if vals.len() == n + 1 {
                    let parts = self.split_parts(val, ty);
                    self.end(vals[n], &parts);
                }
                Some(val)
            }
            _ => None,
        }
    }

    fn intrinsic(&mut self, intrinsic: &Intrinsic, vals: &[Val], ty: Ty, type_args: &[Ty], span: Span) -> Val {
        let ir_ty = self.ir_ty(ty);
        if !self.alive() {
            return self.w.undef(ir_ty);
        }
        match (intrinsic, vals) {
            // The flag says that zero is excluded. Here zero has a result in any case.
            (Intrinsic::Math(op @ (Op::Clz | Op::Ctz)), [x, flag]) if self.w.prim(*flag) == Some(ir::Prim::Bool) => {
                self.intrinsic(&Intrinsic::Math(*op), &[*x], ty, type_args, span)
            }
            (Intrinsic::Math(op), _) => match self.w.result_ty(*op, None, vals) {
                Ok(result) if result == ir_ty => self.w.op(*op, vals),
                Ok(result) if self.is_int(result) && self.is_int(ir_ty) => {
                    let val = self.w.op(*op, vals);
                    self.w.op_ty(Op::Cast, ir_ty, &[val])
                }
                Ok(result) => {
                    let (found, expected) = (self.show_ir(ir_ty), self.show_ir(result));
                    self.report(type_mismatch::error(span, &found, &expected, None));
                    self.w.undef(ir_ty)
                }
                Err(_) => {
                    let what = format!("`{}`", op.name());
                    self.report(intrinsic_type::operands(span, &what, "convert the arguments to numbers with `as`"));
                    self.w.undef(ir_ty)
                }
            },
            (Intrinsic::ChecksBounds, _) => self.w.lit(ir_ty, self.checks_bounds.into()),
            (Intrinsic::PeKnown, [val, ..]) => self.w.op(Op::Known, &[*val]),
            (Intrinsic::Sizeof | Intrinsic::Alignof, _) => {
                let of = type_args.first().copied().unwrap_or(TypeTable::UNIT);
                let of = self.ir_ty(of);
                let Some((size, align)) = ir::layout::size_align(&self.w.types, of) else {
                    let message = "types of more than 128 TiB are not supported yet";
                    self.report(limitation::error(span, message, "use a smaller type"));
                    return self.w.undef(ir_ty);
                };
                self.w.lit(ir_ty, if *intrinsic == Intrinsic::Sizeof { size } else { align })
            }
            (Intrinsic::IsFloat, _) => {
                let of = self.ir_ty(type_args.first().copied().unwrap_or(TypeTable::UNIT));
                let is_float = self.w.types.as_prim(of).is_some_and(ir::Prim::is_float);
                self.w.lit(ir_ty, is_float.into())
            }
            (Intrinsic::Bitcast, [val, ..]) => self.bitcast(*val, ir_ty, span),
            (Intrinsic::Select, [c, a, b, ..]) => self.w.op(Op::Select, &[*c, *a, *b]),
            (Intrinsic::Undef, _) => self.w.undef(ir_ty),
            (Intrinsic::Parallel, [n, lo, hi, body, ..]) => self.parallel([*n, *lo, *hi], *body, span),
            (Intrinsic::Spawn, [body, ..]) => self.spawn(*body, span),
            (Intrinsic::Sync, [handle, ..]) => self.sync(*handle, span),
            (Intrinsic::Assert, [cond, ..]) => self.assert_val(*cond, "assertion failed", span),
            (Intrinsic::Panic, [text, ..]) => {
                self.panic(*text, span);
                self.w.undef(ir_ty)
            }
            (Intrinsic::StaticAssert, [cond, text, ..]) => {
                if self.mem(span).is_some() {
                    self.launch(Builtin::StaticAssert, &[*cond, *text]);
                }
                self.w.unit()
            }
            (Intrinsic::Insert, [agg, idx, val, ..]) => match self.w.as_lit(*idx) {
                Some(i) if self.w.types.n_parts(self.w.ty(*agg)).is_some_and(|n| i < n) => self.w.insert(*agg, i, *val),
                _ => {
                    self.limit("insert", span);
                    self.unknown(ir_ty)
                }
            },
            (Intrinsic::Test(test), [x, ..]) => {
                let bits = self.w.types.as_prim(self.w.ty(*x)).unwrap_or(ir::Prim::F64);
                let infinite = match bits {
                    ir::Prim::F32 => self.w.lit_prim(bits, f32::INFINITY.to_bits().into()),
                    ir::Prim::F16 => self.w.lit_prim(bits, 0x7c00),
                    _ => self.w.lit_prim(bits, f64::INFINITY.to_bits()),
                };
                // A test of a property must not be folded by assuming it.
                let fast = self.w.set_fast(false);
                let size = self.w.op(Op::Abs, &[*x]);
                let holds = match test {
                    Test::Nan => self.w.op(Op::Ne, &[*x, *x]),
                    Test::Infinite => self.w.op(Op::Eq, &[size, infinite]),
                    Test::Finite => self.w.op(Op::Lt, &[size, infinite]),
                };
                self.w.set_fast(fast);
                // C's functions give an `i32`.
                if self.is_int(ir_ty) { self.w.op_ty(Op::Cast, ir_ty, &[holds]) } else { holds }
            }
            (Intrinsic::Shuffle, [a, b, idx, ..]) => match self.w.result_ty(Op::Shuffle, None, &[*a, *b, *idx]) {
                Ok(ty) if ty == ir_ty => self.w.op(Op::Shuffle, &[*a, *b, *idx]),
                _ => {
                    let hint = "it takes two vectors of one type, and as many integers as its result has lanes: \
                                `simd[0, 4, 1, 5]`";
                    self.report(intrinsic_type::operands(span, "`shuffle`", hint));
                    self.w.undef(ir_ty)
                }
            },
            (Intrinsic::StreamStore | Intrinsic::Prefetch(_) | Intrinsic::AssumeAligned, _) => {
                self.memory_hint(intrinsic, vals, ir_ty, span)
            }
            (Intrinsic::Atomic(op), _) => self.atomic(*op, vals, ir_ty, span),
            (Intrinsic::Vectorize, _) => self.vectorize(vals, span),
            (Intrinsic::Pipeline, _) => self.pipeline(vals, span),
            (Intrinsic::Lane(lane), _) => self.lane(*lane, vals, ir_ty, span),
            (Intrinsic::Launch(platform), _) => self.launch_kernel(*platform, vals, span),
            (Intrinsic::Index(what, axis), _) => self.index(*what, *axis, vals, ir_ty, span),
            (Intrinsic::ReserveShared, [n, ..]) => self.reserve_shared(*n, ir_ty, span),
            (Intrinsic::Unsupported(name), _) => {
                self.limit(name, span);
                self.unknown(ir_ty)
            }
            (Intrinsic::Expect, [value, ..]) => *value,
            (Intrinsic::MulAdd, [a, b, c]) => {
                let product = self.w.op(Op::Mul, &[*a, *b]);
                self.w.op(Op::Add, &[product, *c])
            }
            (Intrinsic::Device(f), _) => match self.device_function(*f, vals, ir_ty, span) {
                Some(val) => val,
                None => {
                    let hint = "declare it with the types of the device's library";
                    self.report(intrinsic_type::operands(span, "this function of a device", hint));
                    self.w.undef(ir_ty)
                }
            },
            (Intrinsic::EnsureResidual | Intrinsic::EnsureNoBranch, _) => self.w.unit(),
            (Intrinsic::Machine(instruction), _) => self.instruction(*instruction, vals, ir_ty, span),
            _ => self.w.undef(ir_ty),
        }
    }

    fn is_int(&self, ty: ir::Ty) -> bool {
        self.w.types.as_prim(ty).is_some_and(ir::Prim::is_int)
    }

    fn show_ir(&self, ty: ir::Ty) -> String {
        self.w.types.display(ty).to_string()
    }

    fn bitcast(&mut self, val: Val, to: ir::Ty, span: Span) -> Val {
        let from = self.w.ty(val);
        let size = |w: &World, t| ir::layout::size_align(&w.types, t).map(|s| s.0);
        if size(&self.w, from) != size(&self.w, to) {
            let show = |t| self.w.types.display(t).to_string();
            let diagnostic = bad_bitcast::error(span, &show(from), &show(to));
            self.report(diagnostic);
            return self.w.undef(to);
        }
        self.w.op_ty(Op::Bitcast, to, &[val])
    }

    /// Calls a builtin for the partial evaluator, with a text and a value.
    fn at_compile_time(&mut self, builtin: Builtin, args: &[ExprId], span: Span) -> Val {
        let [text, value, ..] = args else { return self.w.unit() };
        // A literal is passed as the text itself, and so is an array that was computed: `&array`.
        let text = match self.ast()[*text].kind {
            ExprKind::Str(_) => self.raw(*text),
            ExprKind::AddrOf { place, .. } => {
                let ty = self.ty_of(place);
                if matches!(self.kind(ty), Kind::Array(..)) { self.value(place) } else { self.value(*text) }
            }
            _ => self.value(*text),
        };
        let value = self.value(*value);
        if self.mem(span).is_none() {
            return self.w.unit();
        }
        self.w.set_origin(span);
        let args = if builtin == Builtin::StaticAssert { [value, text] } else { [text, value] };
        self.launch(builtin, &args);
        self.w.unit()
    }

    /// Notes what a block asserts of its code. The text is a literal.
    fn ensure_residual(&mut self, args: &[ExprId], place: Span) -> Val {
        let &[text, ..] = args else { return self.w.unit() };
        let span = self.ast()[text].span;
        let ExprKind::Str(bytes) = &self.ast()[text].kind else {
            self.report(bad_ensure::not_a_literal(span));
            return self.w.unit();
        };
        match ensure::read(String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).trim()) {
            Ok(terms) => self.ensure(terms, place),
            Err(term) => self.report(bad_ensure::unknown(span, &term)),
        }
        self.w.unit()
    }

    /// Marks a value on which no branch may depend.
    fn ensure_no_branch(&mut self, args: &[ExprId], place: Span) -> Val {
        let vals: Vec<Val> = args.iter().map(|&a| self.value(a)).collect();
        if let (&[val, ..], Some(mem)) = (&vals[..], self.mem(place)) {
            if self.w.types.has_function(self.w.ty(val)) {
                let message = "an assertion on branches that depend on a function is not supported";
                self.report(limitation::error(place, message, "assert it of the numbers that the function captures"));
                return self.w.unit();
            }
            self.w.set_origin(place);
            let mem = self.w.op(Op::Watch, &[mem, val]);
            self.set_mem(mem);
            self.ensure(Vec::new(), place);
        }
        self.w.unit()
    }

    fn ensure(&mut self, terms: Vec<ensure::Term>, place: Span) {
        // Instances of a generic function have it once each.
        if self.w.ensures.iter().all(|known| known.place != place) {
            self.w.ensures.push(Ensure { place, scope: self.scope, terms });
        }
    }

    /// An intrinsic as a function.
    pub(super) fn intrinsic_val(&mut self, id: FnId, type_args: &[Ty], intrinsic: &Intrinsic) -> Val {
        let p = self.p;
        let info = &p.fns[id.0 as usize];
        let fn_ty = self.mono(info.ty);
        let ty = self.ir_ty(fn_ty);
        let Kind::Fn(params, result) = self.kind(fn_ty) else { return self.w.undef(ty) };
        if result == TypeTable::NEVER {
            return self.w.undef(ty);
        }
        let k = self.w.declare(&info.ast.name.text, ty, &["m"]);
        self.w.cont_mut(k).filter.all = Some(self.w.lit_bool(true));
        let all: Vec<Val> = self.w.params(k).to_vec();
        let old = (self.cur, self.mode);
        self.mode = Mode::Code;
        self.go_on_in(k);
        let span = info.ast.name.span;
        let val = self.intrinsic(intrinsic, &all[1..=params.len()], result, type_args, span);
        let parts = self.split_parts(val, result);
        self.end(all[all.len() - 1], &parts);
        (self.cur, self.mode) = old;
        self.w.cont_val(k)
    }

    /// A foreign function that is an intrinsic in kernels. `None` if it is declared with types that the intrinsic does not have.
    pub(super) fn in_kernels(&mut self, id: FnId, intrinsic: &Intrinsic, foreign: Val) -> Option<Val> {
        let info = &self.p.fns[id.0 as usize];
        let ty = self.w.ty(foreign);
        let Kind::Fn(params, result) = self.kind(info.ty) else { return None };
        let all: Vec<ir::Ty> = params.iter().chain([&result]).map(|&t| self.ir_ty(t)).collect();
        let types = &self.w.types;
        let unit = types.unit();
        let is_simple = |&t: &ir::Ty| types.as_prim(t).is_some() || types.pointee(t).is_some() || t == unit;
        if result == TypeTable::NEVER || !all.iter().all(is_simple) || !takes(intrinsic, &all, types) {
            return None;
        }
        let (n_reported, span) = (self.sink.diagnostics.len(), info.ast.name.span);
        let k = self.w.declare(&info.ast.name.text, ty, &["m"]);
        self.w.cont_mut(k).filter.all = Some(self.w.lit_bool(true));
        let args: Vec<Val> = self.w.params(k)[1..].to_vec();
        let ret = *args.last()?;
        let old = (self.cur, self.mode);
        self.mode = Mode::Code;
        self.go_on_in(k);
        let asked = self.in_kernel(span);
        let mem = self.w.types.mem();
        let end_ty = self.w.types.cn(&[mem]);
        let [device, host] = ["device", "host"].map(|name| self.w.declare(name, end_ty, &["m"]));
        let zero = self.w.lit_i32(0);
        let is_inside = self.w.op(Op::Ne, &[asked, zero]);
        self.branch(is_inside, device, host);
        self.go_on_in(host);
        self.end(foreign, &args);
        self.go_on_in(device);
        let val = self.intrinsic(intrinsic, &args[..args.len() - 1], result, &[], span);
        let fits = self.alive() && self.w.ty(val) == all[all.len() - 1];
        let parts = self.split_parts(val, result);
        self.end(ret, &parts);
        (self.cur, self.mode) = old;
        let is_made = fits && self.sink.diagnostics.len() == n_reported;
        self.sink.diagnostics.truncate(n_reported);
        is_made.then(|| self.w.cont_val(k))
    }

    /// `for p in gen(args) { body }`: calls `gen` with the body as last argument.
    pub(super) fn for_loop(&mut self, e: ExprId, looped: &'a For, ret: Option<Val>) -> Val {
        let ast = self.ast();
        let ty = self.ty_of(e);
        let span = ast[e].span;
        let mut call = looped.call;
        let mut mark = None;
        while let ExprKind::Unary(op, inner) = &ast[call].kind {
            mark = mark.or(call_mark(*op));
            call = *inner;
        }
        let p = self.p;
        let (ExprKind::Call { callee, args }, Some(info)) = (&ast[call].kind, p.lambdas.get(&self.g(e))) else {
            return self.undef(ty);
        };
        if self.mode != Mode::Code {
            self.mem(span);
            return self.undef(ty);
        }
        // A launch has the place of its loop.
        let launch = match p.resolved.get(&self.g(*callee)) {
            Some(Entity::Fn(id)) if mark.is_none() => match &p.fns[id.0 as usize].kind {
                FnKind::Intrinsic(launch @ Intrinsic::Launch(_)) => Some(launch),
                _ => None,
            },
            _ => None,
        };
        let (f, fn_ty, receiver) = self.callee(*callee);
        let mut vals: Vec<Val> = args.iter().map(|a| self.value(*a)).collect();
        if !self.alive() {
            return self.undef(ty);
        }
        let Kind::Fn(params, result) = self.kind(fn_ty) else { return self.undef(ty) };
        if let Some(receiver) = receiver {
            vals.insert(0, receiver);
        }
        let returns = result != TypeTable::NEVER;
        // The continuation of the call exists before the body, where it is called `break`.
        let ret_ty = self.ret_ty(result);
        let mut after = None;
        let k = match ret {
            Some(ret) if self.w.ty(ret) == ret_ty => ret,
            _ => {
                let k = self.w.declare("break", ret_ty, &["m", "r"]);
                after = Some(k);
                self.w.cont_val(k)
            }
        };
        if let Some(id) = info.break_local {
            self.set_var(id, Var { val: Some(k), ptr: None });
        }
        let (loop_ty, param_tys) = (self.mono(info.ty), self.mono_all(&info.param_tys));
        let body_ty = self.ir_ty(loop_ty);
        let body = self.declare_fn("body", body_ty, &looped.params);
        let def = Def {
            k: body,
            ty: loop_ty,
            params: &looped.params,
            param_tys: &param_tys,
            filter: looped.filter,
            return_local: info.return_local,
            body: looped.body,
        };
        self.w.set_origin(span);
        self.lower_def(def);
        let body = self.w.cont_val(body);
        let to = params.last().copied().unwrap_or(loop_ty);
        vals.push(self.convert(body, loop_ty, to));
        self.w.set_origin(ast[call].span);
        if let Some(launch) = launch {
            self.intrinsic(launch, &vals, result, &[], ast[call].span);
            self.end(k, &[]);
        } else {
            let f = mark.map_or(f, |mark| self.w.op(mark, &[f]));
            if returns {
                vals.push(k);
            }
            self.end(f, &vals);
        }
        match after {
            Some(k) if returns => {
                self.go_on_in(k);
                let parts: Vec<Val> = self.w.params(k)[1..].to_vec();
                self.join_parts(&parts, result)
            }
            _ => self.undef(ty),
        }
    }
}

/// The operation that marks the callee of a call with `@@`, `@` or `$`.
pub(super) fn call_mark(op: UnaryOp) -> Option<Op> {
    match op {
        UnaryOp::Unfold => Some(Op::Unfold),
        UnaryOp::Run => Some(Op::Run),
        UnaryOp::Halt => Some(Op::Hlt),
        _ => None,
    }
}

/// Whether a function of these types, the last one its result, may be an intrinsic of devices.
fn takes(intrinsic: &Intrinsic, types: &[ir::Ty], table: &ir::Types) -> bool {
    let (result, params) = types.split_last().map_or((None, types), |(last, rest)| (Some(*last), rest));
    let is_place = |t: Option<&ir::Ty>| t.is_some_and(|&t| table.pointee(t).is_some());
    match intrinsic {
        Intrinsic::Device(DeviceFn::Load) => is_place(params.first()) && params.len() == 1,
        Intrinsic::Device(DeviceFn::Atomic(_) | DeviceFn::AtomicLeast { .. } | DeviceFn::CompareExchange) => {
            is_place(params.first()) && params[1..].iter().all(|&t| table.pointee(params[0]) == Some(t))
        }
        Intrinsic::Device(DeviceFn::Least { .. }) => params.len() == 2 && params.iter().all(|&t| Some(t) == result),
        _ => params.iter().all(|&t| table.as_prim(t).is_some()),
    }
}

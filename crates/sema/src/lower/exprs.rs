//! Values of expressions.

use super::operators::Operands;
use super::*;
use crate::intrinsics::Intrinsic;
use nyala_ir::Prim;
use nyala_ir::scalar::float_bits;
use nyala_syntax::ast::{BinaryOp, ExprKind, Lambda, UnaryOp};

impl<'a> Lowerer<'_, 'a, '_> {
    /// The value of `e`, converted to the type it is used at. An arbitrary value if it has none.
    pub(super) fn value(&mut self, e: ExprId) -> Val {
        let from = self.ty_of(e);
        if !self.alive() {
            let ty = self.adjusted_ty(e);
            return self.undef(ty);
        }
        match self.adjust_of(e) {
            None => self.instance(e).0,
            Some(Adjust { to, derefs, address: false }) => {
                let (val, instance) = self.instance(e);
                let from = instance.unwrap_or(from);
                let (val, from) = self.follow(val, from, derefs, e);
                self.convert(val, from, to)
            }
            Some(Adjust { to, address: true, .. }) => {
                let mutable = matches!(self.kind(to), Kind::Ptr { access, .. } if access.is_mut());
                let ptr = self.address(e, mutable);
                let ty = self.ir_ty(to);
                self.w.op_ty(Op::Bitcast, ty, &[ptr])
            }
        }
    }

    /// The value of `e`. For a generic function that is not named directly, the selected instance, and its type.
    fn instance(&mut self, e: ExprId) -> (Val, Option<Ty>) {
        let val = self.raw(e);
        let p = self.p;
        match p.instantiated.get(&self.g(e)) {
            Some(args) if !matches!(self.ast()[e].kind, ExprKind::Path(_)) => {
                let (ty, args) = (self.ty_of(e), self.mono_all(args));
                let (val, ty) = self.instance_of(val, ty, &args);
                (val, Some(ty))
            }
            _ => (val, None),
        }
    }

    fn adjust_of(&mut self, e: ExprId) -> Option<Adjust> {
        let adjust = *self.p.adjust.get(&self.g(e))?;
        Some(Adjust { to: self.mono(adjust.to), ..adjust })
    }

    /// The value behind `derefs` pointers, and its type.
    fn follow(&mut self, mut val: Val, mut ty: Ty, derefs: u32, e: ExprId) -> (Val, Ty) {
        let span = self.ast()[e].span;
        for _ in 0..derefs {
            if let Kind::Ptr { to, .. } = self.kind(ty) {
                val = self.load(val, span);
                ty = to;
            }
        }
        (val, ty)
    }

    pub(super) fn adjusted_ty(&mut self, e: ExprId) -> Ty {
        match self.adjust_of(e) {
            Some(adjust) => adjust.to,
            None => self.ty_of(e),
        }
    }

    /// A value of type `from` as its supertype `to`.
    pub(super) fn convert(&mut self, val: Val, from: Ty, to: Ty) -> Val {
        let (a, b) = (self.ir_ty(from), self.ir_ty(to));
        if a == b {
            return val;
        }
        match (self.kind(from), self.kind(to)) {
            (Kind::Ptr { .. }, Kind::Ptr { .. }) => self.w.op_ty(Op::Bitcast, b, &[val]),
            (Kind::Tuple(xs), Kind::Tuple(ys)) => {
                let mut parts = Vec::with_capacity(xs.len());
                for (i, (x, y)) in xs.iter().zip(ys.iter()).enumerate() {
                    let part = self.w.extract(val, i as u64);
                    parts.push(self.convert(part, *x, *y));
                }
                self.w.op(Op::Tuple, &parts)
            }
            (Kind::Array(x, n), Kind::Array(y, _)) => {
                let n = self.types.length(n);
                let mut parts = Vec::with_capacity(n as usize);
                for i in 0..n {
                    let part = self.w.extract(val, i);
                    parts.push(self.convert(part, x, y));
                }
                self.w.op_ty(Op::Array, b, &parts)
            }
            (Kind::Generic(..), Kind::Generic(..)) => self.convert_generic(val, from, to),
            (Kind::Fn(..), Kind::Fn(..)) => self.convert_fn(val, from, to, b),
            _ => self.w.undef(b),
        }
    }

    /// A function that converts its arguments, calls `val`, and converts the results.
    fn convert_fn(&mut self, val: Val, from: Ty, to: Ty, ir_to: ir::Ty) -> Val {
        let (Kind::Fn(ps, r), Kind::Fn(qs, s)) = (self.kind(from), self.kind(to)) else { return val };
        let wrapper = self.w.declare("convert", ir_to, &[]);
        self.w.cont_mut(wrapper).filter.all = Some(self.w.lit_bool(true));
        let params: Vec<Val> = self.w.params(wrapper).to_vec();
        let mut args = vec![params[0]];
        for (i, (p, q)) in ps.iter().zip(qs.iter()).enumerate() {
            let arg = self.convert(params[i + 1], *q, *p);
            args.push(arg);
        }
        if r != TypeTable::NEVER {
            let ret = params[params.len() - 1];
            let ret_ty = self.ret_ty(r);
            if self.w.ty(ret) == ret_ty {
                args.push(ret);
            } else {
                let k = self.w.declare("k", ret_ty, &["m"]);
                let got: Vec<Val> = self.w.params(k).to_vec();
                let (from_parts, to_parts) = (self.parts(r), self.parts(s));
                let mut results = vec![got[0]];
                for (i, (x, y)) in from_parts.iter().zip(&to_parts).enumerate() {
                    results.push(self.convert(got[i + 1], *x, *y));
                }
                self.w.define(k, ret, &results);
                args.push(self.w.cont_val(k));
            }
        }
        self.w.define(wrapper, val, &args);
        self.w.cont_val(wrapper)
    }

    /// The value of `e` before any conversion.
    pub(super) fn raw(&mut self, e: ExprId) -> Val {
        let ast = self.ast();
        let node = &ast[e];
        let span = node.span;
        self.w.set_origin(span);
        let ty = self.ty_of(e);
        match &node.kind {
            ExprKind::Error | ExprKind::DynArray(..) => self.undef(ty),
            ExprKind::Simd(parts) => self.simd_value(parts, ty),
            ExprKind::Match { scrutinee, arms } => self.match_value(e, *scrutinee, arms),
            ExprKind::Asm(asm) => self.asm(asm, span),
            ExprKind::Int { value, .. } => {
                let ty = self.ir_ty(ty);
                self.w.lit(ty, *value as u64)
            }
            ExprKind::Float { text, .. } => self.float(text, ty),
            ExprKind::Bool(b) => self.w.lit_bool(*b),
            ExprKind::Char(b) => self.w.lit_prim(Prim::U8, (*b).into()),
            ExprKind::Str(bytes) => {
                let ty = self.ir_ty(ty);
                let elems: Vec<Val> = bytes.iter().map(|b| self.w.lit_prim(Prim::U8, (*b).into())).collect();
                self.w.op_ty(Op::Array, ty, &elems)
            }
            ExprKind::Path(_) => self.path(e, span),
            ExprKind::Struct { fields, base, .. } => {
                let Kind::Struct(id, _) = self.kind(ty) else { return self.undef(ty) };
                let info = &self.p.structs[id.0 as usize];
                let mut parts = vec![None; info.fields.len()];
                for (name, e) in fields {
                    let val = self.value(*e);
                    if let Some(&idx) = info.index.get(&*name.text) {
                        parts[idx as usize] = Some(val);
                    }
                }
                if let Some(base) = base {
                    self.fill_from(*base, &mut parts);
                }
                if !self.alive() {
                    return self.undef(ty);
                }
                let parts: Option<Vec<Val>> = parts.into_iter().collect();
                let ty = self.ir_ty(ty);
                match parts {
                    Some(parts) => self.w.op_ty(Op::Struct, ty, &parts),
                    None => self.w.undef(ty),
                }
            }
            ExprKind::Tuple(parts) => {
                let parts: Vec<Val> = parts.iter().map(|p| self.value(*p)).collect();
                if !self.alive() {
                    return self.undef(ty);
                }
                self.w.op(Op::Tuple, &parts)
            }
            ExprKind::Array(parts) => {
                let parts: Vec<Val> = parts.iter().map(|p| self.value(*p)).collect();
                let ty = self.ir_ty(ty);
                if !self.alive() {
                    return self.w.undef(ty);
                }
                self.w.op_ty(Op::Array, ty, &parts)
            }
            ExprKind::Repeat(elem, _) => {
                let elem = self.value(*elem);
                let ty = self.ir_ty(ty);
                self.w.op_ty(Op::Splat, ty, &[elem])
            }
            ExprKind::Block(block) => {
                let outer = std::mem::replace(&mut self.scope, span);
                let value = self.block_value(block);
                self.scope = outer;
                value
            }
            ExprKind::Unary(op, inner) => self.unary(*op, *inner, e),
            ExprKind::AddrOf { mutable, place } => self.address(*place, *mutable),
            ExprKind::IncDec { inc, prefix, place } => {
                let place_ty = self.ty_of(*place);
                let place = self.place(*place);
                let old = self.read(&place, place_ty, span);
                let old_ty = self.w.ty(old);
                let one = self.number(old_ty, 1);
                let new = self.arithmetic(if *inc { Op::Add } else { Op::Sub }, old, one);
                self.write(&place, new);
                match ty {
                    TypeTable::UNIT => self.w.unit(),
                    _ if *prefix => new,
                    _ => old,
                }
            }
            ExprKind::Binary { op, op_span, lhs, rhs } => match op {
                BinaryOp::And | BinaryOp::Or => self.short_circuit(*op, *lhs, *rhs),
                _ => {
                    if let Some(call) = self.operator_method(e) {
                        return self.by_method(call, *op, Operands::Read(*lhs, *rhs), *op_span);
                    }
                    let (a, b) = (self.value(*lhs), self.value(*rhs));
                    let operand_ty = self.adjusted_ty(*lhs);
                    self.w.set_origin(*op_span);
                    self.binary(*op, a, b, operand_ty, span)
                }
            },
            ExprKind::Assign { op, op_span, place, value } => {
                let place_ty = self.ty_of(*place);
                let target = self.place(*place);
                let mut val = self.value(*value);
                if let Some(op) = op {
                    let old = self.read(&target, place_ty, span);
                    self.w.set_origin(*op_span);
                    val = match self.operator_method(e) {
                        Some(call) => self.by_method(call, *op, Operands::Values(old, val), *op_span),
                        None => self.binary(*op, old, val, place_ty, span),
                    };
                }
                self.w.set_origin(span);
                self.write(&target, val);
                self.w.unit()
            }
            ExprKind::Cast(inner, _) => {
                let val = self.value(*inner);
                let from = self.adjusted_ty(*inner);
                let to = self.p.cast_to.get(&self.g(e)).copied().unwrap_or(ty);
                let to = self.mono(to);
                self.cast(val, from, to)
            }
            ExprKind::Call { .. } => match self.p.call_kind.get(&self.g(e)) {
                Some(CallKind::Call) => self.call(e, None, None),
                Some(CallKind::Index | CallKind::Place) => self.read_expr(e),
                None => self.undef(ty),
            },
            ExprKind::Field { .. } => self.read_expr(e),
            ExprKind::Lambda(lambda) => {
                let p = self.p;
                let Some(info) = p.lambdas.get(&self.g(e)) else { return self.undef(ty) };
                if !info.generics.is_empty() && matches!(self.kind(ty), Kind::Generic(..)) {
                    return self.for_each_instance(ty, &info.generics, |l| l.lambda(lambda, info));
                }
                self.lambda(lambda, info)
            }
            ExprKind::If { arms, otherwise } => self.if_value(arms, *otherwise, e),
            ExprKind::While { cond, body } => self.while_loop(e, *cond, *body),
            ExprKind::For(looped) => self.for_loop(e, looped, None),
        }
    }

    fn lambda(&mut self, lambda: &'a Lambda, info: &LambdaInfo) -> Val {
        let (fn_ty, param_tys) = (self.mono(info.ty), self.mono_all(&info.param_tys));
        let ir_ty = self.ir_ty(fn_ty);
        let k = self.declare_fn("lambda", ir_ty, &lambda.params);
        let def = Def {
            k,
            ty: fn_ty,
            params: &lambda.params,
            param_tys: &param_tys,
            filter: lambda.filter,
            return_local: info.return_local,
            body: lambda.body,
        };
        self.lower_def(def);
        self.w.cont_val(k)
    }

    fn float(&mut self, text: &str, ty: Ty) -> Val {
        match self.types.as_prim(ty) {
            Some(Prim::F16) => {
                let x: f64 = text.parse().unwrap_or(0.0);
                self.w.lit_prim(Prim::F16, float_bits(Prim::F16, x))
            }
            Some(Prim::F32) => {
                let x: f32 = text.parse().unwrap_or(0.0);
                self.w.lit_prim(Prim::F32, x.to_bits().into())
            }
            _ => {
                let x: f64 = text.parse().unwrap_or(0.0);
                self.w.lit_prim(Prim::F64, x.to_bits())
            }
        }
    }

    fn path(&mut self, e: ExprId, span: Span) -> Val {
        if let Some(Entity::Fn(id)) = self.p.resolved.get(&self.g(e))
            && let FnKind::Intrinsic(Intrinsic::EnsureResidual | Intrinsic::EnsureNoBranch) =
                self.p.fns[id.0 as usize].kind
        {
            let message = "an assertion on code as a function value is not supported";
            self.report(limitation::error(span, message, "call it where the code is"));
        }
        match self.p.resolved.get(&self.g(e)) {
            Some(Entity::Type(param)) => {
                let (value, ty) = (self.mono(*param), self.ty_of(e));
                let ty = self.ir_ty(ty);
                match self.types.as_const(value) {
                    Some(value) => self.w.lit(ty, value.bits()),
                    None => self.w.undef(ty),
                }
            }
            Some(Entity::Fn(id)) if matches!(self.kind(self.p.expr_ty[self.g(e) as usize]), Kind::Generic(..)) => {
                let ty = self.ty_of(e);
                self.generic_fn(*id, ty, span)
            }
            Some(Entity::Fn(id)) => {
                let args = self.args_of(self.g(e));
                self.fn_val(*id, args, span)
            }
            Some(Entity::Option(_, i)) => {
                let ty = self.ty_of(e);
                match self.kind(ty) {
                    Kind::Fn(..) => self.option_fn(ty, *i),
                    _ => self.option_val(ty, *i, &[]),
                }
            }
            Some(Entity::Static(id)) if self.mode != Mode::Code => self.static_value(*id, span),
            Some(entity @ (Entity::Local(_) | Entity::Static(_))) => {
                let val = self.read_expr(e);
                let Some(args) = self.p.instantiated.get(&self.g(e)) else { return val };
                let ty = match *entity {
                    Entity::Local(id) => self.p.local(id).ty,
                    Entity::Static(id) => self.p.statics[id.0 as usize].ty,
                    _ => return val,
                };
                let (ty, args) = (self.mono(ty), self.mono_all(args));
                self.instance_of(val, ty, &args).0
            }
            _ => {
                let ty = self.ty_of(e);
                self.undef(ty)
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, inner: ExprId, e: ExprId) -> Val {
        let ty = self.ty_of(e);
        if let Some(call) = self.operator_method(e) {
            return self.unary_method(call, inner, self.ast()[e].span);
        }
        match op {
            UnaryOp::Plus => self.value(inner),
            UnaryOp::Neg => {
                let prim = self.types.as_prim(ty).unwrap_or(Prim::I32);
                if let ExprKind::Int { value, .. } = &self.ast()[inner].kind {
                    return self.w.lit_prim(prim, (*value as u64).wrapping_neg());
                }
                let val = self.value(inner);
                self.negate(val)
            }
            UnaryOp::Not => {
                let val = self.value(inner);
                self.w.not(val)
            }
            UnaryOp::Deref => self.read_expr(e),
            UnaryOp::Known => {
                let val = self.value(inner);
                self.w.op(Op::Known, &[val])
            }
            UnaryOp::Halt | UnaryOp::Unfold | UnaryOp::Run => self.marked(op, inner, None),
            UnaryOp::Own => self.own(inner, ty, e),
        }
    }

    /// `@@e`, `@e`, `$e`: a call, or a value, which only `$` changes.
    pub(super) fn marked(&mut self, op: UnaryOp, inner: ExprId, ret: Option<Val>) -> Val {
        let is_call = matches!(self.ast()[inner].kind, ExprKind::Call { .. });
        if is_call && self.p.call_kind.get(&self.g(inner)) == Some(&CallKind::Call) {
            return self.call(inner, ret, super::calls::call_mark(op));
        }
        let val = self.value(inner);
        if op == UnaryOp::Halt && self.alive() { self.w.op(Op::Hlt, &[val]) } else { val }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Val, b: Val, ty: Ty, span: Span) -> Val {
        let prim = self.types.as_prim(ty);
        let prim = match self.kind(ty) {
            Kind::Simd(elem, _) => self.types.as_prim(elem),
            _ => prim,
        };
        let is_int = prim.is_some_and(Prim::is_int);
        let ir_op = match op {
            BinaryOp::Or | BinaryOp::BitOr => Op::Or,
            BinaryOp::And | BinaryOp::BitAnd => Op::And,
            BinaryOp::BitXor => Op::Xor,
            BinaryOp::Eq => Op::Eq,
            BinaryOp::Ne => Op::Ne,
            BinaryOp::Lt => Op::Lt,
            BinaryOp::Le => Op::Le,
            BinaryOp::Gt => Op::Gt,
            BinaryOp::Ge => Op::Ge,
            BinaryOp::Shl => Op::Shl,
            BinaryOp::Shr => Op::Shr,
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => Op::Sub,
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div | BinaryOp::Rem if is_int => {
                let (partial, total) = if op == BinaryOp::Div { (Op::PDiv, Op::Div) } else { (Op::PRem, Op::Rem) };
                if self.mode != Mode::Code
                    && let Some(divisor) = self.w.as_lit(b).filter(|d| *d != 0)
                {
                    let by_minus_one = divisor == u64::MAX && prim.is_some_and(Prim::is_signed);
                    let least = prim.map(|p| p.normalize(1u64 << (p.bits() - 1)));
                    if !by_minus_one {
                        return self.w.op(total, &[a, b]);
                    }
                    if self.w.as_lit(a).is_some_and(|a| Some(a) != least) {
                        let ty = self.w.ty(a);
                        return if op == BinaryOp::Div { self.negate(a) } else { self.w.lit(ty, 0) };
                    }
                }
                if self.mode == Mode::Constant && self.w.as_lit(b) == Some(0) {
                    self.report(not_constant::error(span, "divides by zero"));
                    return a;
                }
                return match self.mem(span) {
                    Some(mem) => self.w.op(partial, &[mem, a, b]),
                    None => a,
                };
            }
            BinaryOp::Div => Op::Div,
            BinaryOp::Rem => Op::Rem,
        };
        let b = if self.w.ty(a) != self.w.ty(b) {
            // One of the pointers points to an indefinite array.
            let ty = self.w.ty(a);
            self.w.op_ty(Op::Bitcast, ty, &[b])
        } else {
            b
        };
        self.arithmetic(ir_op, a, b)
    }

    pub(super) fn cast(&mut self, val: Val, from: Ty, to: Ty) -> Val {
        let target = self.ir_ty(to);
        if self.w.ty(val) == target {
            return val;
        }
        match (self.kind(from), self.kind(to)) {
            (Kind::Prim(_), Kind::Prim(_)) | (Kind::Simd(..), Kind::Simd(..)) => self.w.op_ty(Op::Cast, target, &[val]),
            (Kind::Ptr { .. }, Kind::Ptr { .. }) => self.w.op_ty(Op::Bitcast, target, &[val]),
            (Kind::Ptr { .. }, Kind::Prim(_)) => {
                let u64 = self.w.types.prim(Prim::U64);
                let bits = self.w.op_ty(Op::Bitcast, u64, &[val]);
                self.w.op_ty(Op::Cast, target, &[bits])
            }
            (Kind::Prim(p), Kind::Ptr { .. }) => {
                let wide = if p.is_signed() { Prim::I64 } else { Prim::U64 };
                let wide = self.w.types.prim(wide);
                let bits = self.w.op_ty(Op::Cast, wide, &[val]);
                self.w.op_ty(Op::Bitcast, target, &[bits])
            }
            _ => self.convert(val, from, to),
        }
    }

    /// Whether `e` is small and needs no memory, has no effects and cannot fault.
    pub(super) fn is_total(&mut self, e: ExprId) -> bool {
        let mut work = vec![e];
        let mut steps = 0;
        while let Some(e) = work.pop() {
            steps += 1;
            if steps > 32 {
                return false;
            }
            if self.p.adjust.contains_key(&self.g(e)) || self.operator_method(e).is_some() {
                return false;
            }
            match &self.ast()[e].kind {
                ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Bool(_) | ExprKind::Char(_) => {}
                ExprKind::Path(_) => match self.p.resolved.get(&self.g(e)) {
                    Some(Entity::Local(id)) if self.vars[id.0 as usize].val.is_some() => {}
                    Some(Entity::Fn(_)) => {}
                    _ => return false,
                },
                ExprKind::Unary(
                    UnaryOp::Plus | UnaryOp::Neg | UnaryOp::Not | UnaryOp::Known | UnaryOp::Halt,
                    inner,
                ) => work.push(*inner),
                ExprKind::Binary { op, lhs, rhs, .. } => {
                    let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
                    let operand_ty = self.ty_of(*lhs);
                    if divides && !self.types.as_prim(operand_ty).is_some_and(Prim::is_float) {
                        return false;
                    }
                    work.push(*lhs);
                    work.push(*rhs);
                }
                ExprKind::Cast(inner, _) => work.push(*inner),
                ExprKind::Field { base, .. } => {
                    let base_ty = self.ty_of(*base);
                    if matches!(self.kind(base_ty), Kind::Ptr { .. }) || !self.p.field_idx.contains_key(&self.g(e)) {
                        return false;
                    }
                    work.push(*base);
                }
                _ => return false,
            }
        }
        true
    }
}

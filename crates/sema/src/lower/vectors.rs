//! Constructs that are one operation of the graph, or nearly: `simd` values, `~e`, atomic operations, `asm`.

use super::*;
use crate::intrinsics::Intrinsic;
use ir::scalar::scope_of_name;
use nyala_ir::scalar::float_bits;
use nyala_syntax::ast::{Asm, ExprKind};

impl Lowerer<'_, '_, '_> {
    pub(super) fn simd_ty(&mut self, elem: Ty, n: u64) -> ir::Ty {
        match self.types.as_prim(elem) {
            Some(prim) => self.w.types.vector(prim, n as u32),
            None => self.w.types.unit(),
        }
    }

    pub(super) fn simd_value(&mut self, parts: &[ExprId], ty: Ty) -> Val {
        let parts: Vec<Val> = parts.iter().map(|p| self.value(*p)).collect();
        let ty = self.ir_ty(ty);
        if !self.alive() {
            return self.w.undef(ty);
        }
        self.w.op_ty(Op::Array, ty, &parts)
    }

    /// A number of this type. For a vector type, the number in every lane.
    pub(super) fn number(&mut self, ty: ir::Ty, n: i32) -> Val {
        let bits = match self.w.types.lane_prim(ty) {
            Some(prim) if prim.is_float() => float_bits(prim, n.into()),
            _ => i64::from(n) as u64,
        };
        self.w.lit(ty, bits)
    }

    /// `-val`: floats keep the sign of zero.
    pub(super) fn negate(&mut self, val: Val) -> Val {
        let ty = self.w.ty(val);
        let zero = match self.w.types.lane_prim(ty) {
            Some(prim) if prim.is_float() => self.w.lit(ty, float_bits(prim, -0.0)),
            _ => self.w.lit(ty, 0),
        };
        self.arithmetic(Op::Sub, zero, val)
    }

    /// An arithmetic operation, which may overflow if its operands are signed. If wrapping is asked for, it is computed
    /// on unsigned operands instead.
    pub(super) fn arithmetic(&mut self, op: Op, a: Val, b: Val) -> Val {
        let ty = self.w.ty(a);
        let signed = self.w.types.lane_prim(ty).filter(|p| p.is_signed());
        let (true, Op::Add | Op::Sub | Op::Mul, Some(prim)) = (self.wrap, op, signed) else {
            return self.w.op(op, &[a, b]);
        };
        let unsigned = match prim {
            ir::Prim::I8 => ir::Prim::U8,
            ir::Prim::I16 => ir::Prim::U16,
            ir::Prim::I32 => ir::Prim::U32,
            _ => ir::Prim::U64,
        };
        let to = match self.w.types.as_vector(ty) {
            Some((_, n)) => self.w.types.vector(unsigned, n),
            None => self.w.types.prim(unsigned),
        };
        let (a, b) = (self.w.op_ty(Op::Cast, to, &[a]), self.w.op_ty(Op::Cast, to, &[b]));
        let result = self.w.op(op, &[a, b]);
        self.w.op_ty(Op::Cast, ty, &[result])
    }

    /// `~e`, `~[n: T]`: allocates on the heap. `ty` is the type of the result.
    pub(super) fn own(&mut self, inner: ExprId, ty: Ty, e: ExprId) -> Val {
        let span = self.ast()[e].span;
        let ptr_ty = self.ir_ty(ty);
        let (n, val) = match &self.ast()[inner].kind {
            ExprKind::DynArray(n, _) => {
                let n = self.value(*n);
                let i64 = self.w.types.i64();
                (if self.w.ty(n) == i64 { n } else { self.w.op_ty(Op::Cast, i64, &[n]) }, None)
            }
            _ => {
                let val = self.value(inner);
                (self.w.lit_i64(1), Some(val))
            }
        };
        let Some(mem) = self.mem(span) else { return self.w.undef(ptr_ty) };
        self.w.set_origin(span);
        let elem = match (val, self.kind(ty)) {
            (Some(val), _) => self.w.ty(val),
            (None, Kind::Ptr { to, .. }) => match self.kind(to) {
                Kind::Indef(elem) => self.ir_ty(elem),
                _ => self.w.types.unit(),
            },
            _ => self.w.types.unit(),
        };
        let made = self.w.op_ty(Op::Alloc, elem, &[mem, n]);
        let (mem, ptr) = (self.w.extract(made, 0), self.w.extract(made, 1));
        self.set_mem(mem);
        let ptr = self.w.op_ty(Op::Bitcast, ptr_ty, &[ptr]);
        if let Some(val) = val {
            let mem = self.w.op(Op::Store, &[mem, ptr, val]);
            self.set_mem(mem);
        }
        ptr
    }

    /// Lowers an atomic operation. Arguments beyond its operands, such as the scope, are dropped.
    pub(super) fn atomic(&mut self, op: Op, vals: &[Val], ty: ir::Ty, span: Span) -> Val {
        let n = op.arity() as usize - 1;
        // The declaration may omit the scope.
        let (Some(mem), true) = (self.mem(span), vals.len() + 1 >= n) else { return self.w.undef(ty) };
        let mut args = vec![mem];
        args.extend(vals.iter().take(n));
        if let Some(name) = args.get(n).and_then(|&scope| self.w.text_at(scope)) {
            args[n] = self.w.lit_i32(scope_of_name(&name) as i32);
        } else if args.len() == n {
            args.push(self.w.lit_i32(0));
        }
        let made = match self.w.result_ty(op, None, &args) {
            Ok(_) => self.w.op(op, &args),
            Err(why) => {
                let hint = format!("{why}; atomic operations take integers, floats and pointers");
                self.report(intrinsic_type::operands(span, &format!("`{}`", op.name()), &hint));
                return self.w.undef(ty);
            }
        };
        if self.w.ty(made) == self.w.types.mem() {
            self.set_mem(made);
            return self.w.unit();
        }
        let (mem, val) = (self.w.extract(made, 0), self.w.extract(made, 1));
        self.set_mem(mem);
        val
    }

    /// Lowers stores that bypass the caches, prefetches, and promised alignments.
    pub(super) fn memory_hint(&mut self, intrinsic: &Intrinsic, vals: &[Val], ty: ir::Ty, span: Span) -> Val {
        let made = match (intrinsic, vals) {
            (Intrinsic::AssumeAligned, [ptr, n]) => {
                Some(self.w.result_ty(Op::Aligned, None, vals).map(|_| self.w.op(Op::Aligned, &[*ptr, *n])))
            }
            (Intrinsic::StreamStore, [ptr, val]) => {
                let Some(mem) = self.mem(span) else { return self.w.undef(ty) };
                let args = [mem, *ptr, *val];
                Some(self.w.result_ty(Op::Store, None, &args).map(|_| self.w.op(Op::Store, &args)))
            }
            (Intrinsic::Prefetch(what), [ptr, asked @ ..]) => {
                let (write, locality) = match (what, asked) {
                    (None, [write, locality, ..]) => (*write, *locality),
                    _ => {
                        let (write, locality) = what.unwrap_or((0, 3));
                        (self.w.lit_i32(write as i32), self.w.lit_i32(locality as i32))
                    }
                };
                let Some(mem) = self.mem(span) else { return self.w.undef(ty) };
                let args = [mem, *ptr, write, locality];
                Some(self.w.result_ty(Op::Prefetch, None, &args).map(|_| self.w.op(Op::Prefetch, &args)))
            }
            _ => None,
        };
        let Some(Ok(made)) = made else {
            let hint = "declare it as the prelude does: with an address, and the value if it stores one";
            self.report(intrinsic_type::operands(span, "this intrinsic", hint));
            return self.w.undef(ty);
        };
        if self.w.ty(made) != self.w.types.mem() {
            return made;
        }
        if *intrinsic == Intrinsic::StreamStore {
            self.w.set_streaming(made);
        }
        self.set_mem(made);
        self.w.unit()
    }

    /// `asm("…" : outs : ins : clobbers : options)`: a call of a continuation that stands for the assembly. Inputs and
    /// addresses of operands in memory are its arguments. Outputs in registers are its results, which are then stored
    /// to their places.
    pub(super) fn asm(&mut self, asm: &Asm, span: Span) -> Val {
        let unit = self.w.unit();
        let mut constraints: Vec<String> = Vec::new();
        let (mut args, mut results) = (Vec::new(), Vec::new());
        for (constraint, e) in &asm.outs {
            constraints.push(constraint.clone());
            if constraint.contains('*') {
                args.push(self.address(*e, true));
            } else {
                let ty = self.ty_of(*e);
                results.push((self.place(*e), self.ir_ty(ty)));
            }
        }
        for (constraint, e) in &asm.ins {
            constraints.push(constraint.clone());
            args.push(self.value(*e));
        }
        if self.mem(span).is_none() {
            return unit;
        }
        constraints.extend(asm.clobbers.iter().map(|c| format!("~{{{c}}}")));
        let has = |option: &str| asm.options.iter().any(|(o, _)| o == option);
        let info = ir::AsmInfo {
            template: asm.template.clone(),
            constraints: constraints.join(","),
            volatile: has("volatile") || asm.outs.is_empty(),
            align_stack: has("alignstack"),
            intel: has("intel"),
        };
        let mut ret_tys = vec![self.w.types.mem()];
        ret_tys.extend(results.iter().map(|r| r.1));
        let ret_ty = self.w.types.cn(&ret_tys);
        let mut tys = vec![self.w.types.mem()];
        tys.extend(args.iter().map(|a| self.w.ty(*a)));
        tys.push(ret_ty);
        let ty = self.w.types.cn(&tys);
        self.w.set_origin(span);
        let k = self.w.assembly("asm", &info, ty);
        let next = self.w.declare("k", ret_ty, &["m"]);
        let (callee, next_val) = (self.w.cont_val(k), self.w.cont_val(next));
        args.push(next_val);
        self.end(callee, &args);
        self.go_on_in(next);
        for (i, (place, _)) in results.iter().enumerate() {
            let val = self.w.param(next, i + 1);
            self.write(place, val);
        }
        unit
    }
}

//! Places: addresses where they exist, parts of values where a variable is a value.

use super::*;
use nyala_ir::fold::ConstantFault;
use nyala_syntax::ast::{ExprKind, UnaryOp};

/// LLVM's number of the order `monotonic` (`nyala_ir::scalar::ORDERS`).
const RELAXED: i32 = 2;
/// Limit on the parts of each struct, tuple and array that `@racy` reads or writes.
const MAX_RACY_PARTS: u64 = 64;

pub(super) enum Place {
    Ptr(Val),
    /// A part of a variable that is a value.
    Part {
        local: LocalId,
        path: Vec<u64>,
    },
}

/// The source of an expression's value.
enum Source {
    Ptr(Val),
    Val(Val),
}

impl Lowerer<'_, '_, '_> {
    pub(super) fn load(&mut self, ptr: Val, span: Span) -> Val {
        if self.mode != Mode::Code {
            // The initial value of an immutable static is a constant.
            let undef_mem = self.w.types.mem();
            let mem = self.w.undef(undef_mem);
            let val = self.w.op(Op::Load, &[mem, ptr]);
            if !self.w.is_op(val, Op::Load) {
                return val;
            }
            if let (Mode::Constant, Some((idx, n))) = (self.mode, self.beyond_end(ptr)) {
                self.report(not_constant::error(span, &format!("element {idx} of {n}")));
                return self.w.undef(self.w.ty(val));
            }
        }
        if self.is_racy && self.mode == Mode::Code {
            return self.racy_load(ptr, span);
        }
        match self.mem(span) {
            Some(mem) => self.w.op(Op::Load, &[mem, ptr]),
            None => {
                let ty = self.w.types.pointee(self.w.ty(ptr)).unwrap_or(self.w.types.unit());
                self.w.undef(ty)
            }
        }
    }

    /// The number of parts if a type is read and written in parts, each by a relaxed atomic operation. Reports what has too many.
    fn racy_parts(&mut self, ty: ir::Ty, span: Span) -> Option<u64> {
        let n = self.w.types.n_parts(ty)?;
        if n <= MAX_RACY_PARTS && self.w.types.as_vector(ty).is_none() {
            return Some(n);
        }
        let message = format!("{} is read or written in `@racy`", self.w.types.display(ty));
        let hint = format!("`@racy` takes numbers, addresses, and at most {MAX_RACY_PARTS} of them together");
        self.report(limitation::error(span, message, hint));
        Some(0)
    }

    fn racy_load(&mut self, ptr: Val, span: Span) -> Val {
        let ty = self.w.types.pointee(self.w.ty(ptr)).unwrap_or(self.w.types.unit());
        let Some(n) = self.racy_parts(ty, span) else {
            let (order, scope) = (self.w.lit_i32(RELAXED), self.w.lit_i32(0));
            return self.atomic(Op::AtomicLoad, &[ptr, order, scope], ty, span);
        };
        let parts: Vec<Val> = (0..n).map(|i| self.lea(ptr, i)).collect();
        let parts: Vec<Val> = parts.into_iter().map(|part| self.racy_load(part, span)).collect();
        match self.w.types.kind(ty) {
            _ if parts.is_empty() => self.w.undef(ty),
            ir::TyKind::Tuple(_) => self.w.op(Op::Tuple, &parts),
            ir::TyKind::Struct(_) => self.w.op_ty(Op::Struct, ty, &parts),
            _ => self.w.op_ty(Op::Array, ty, &parts),
        }
    }

    fn racy_store(&mut self, ptr: Val, val: Val) {
        let (ty, span) = (self.w.ty(val), self.w.current_origin());
        match self.racy_parts(ty, span) {
            Some(n) => {
                for i in 0..n {
                    let (part, val) = (self.lea(ptr, i), self.w.extract(val, i));
                    self.racy_store(part, val);
                }
            }
            None => {
                let (order, scope) = (self.w.lit_i32(RELAXED), self.w.lit_i32(0));
                self.atomic(Op::AtomicStore, &[ptr, val, order, scope], ty, span);
            }
        }
    }

    /// The index and the length, if an address is beyond the end of an array.
    fn beyond_end(&self, ptr: Val) -> Option<(i64, u64)> {
        let &[array, idx] = self.w.args(ptr) else { return None };
        let n = self.w.types.n_parts(self.w.types.pointee(self.w.ty(array))?)?;
        let idx = self.w.as_lit(idx).filter(|i| *i >= n && self.w.is_op(ptr, Op::Lea))?;
        Some((idx as i64, n))
    }

    fn lea(&mut self, ptr: Val, idx: u64) -> Val {
        let idx = self.w.lit_i64(idx as i64);
        self.w.op(Op::Lea, &[ptr, idx])
    }

    /// The value of `e`, which is a pointer. If it points to a pointer, that one is followed, and so on.
    fn pointer(&mut self, e: ExprId) -> Val {
        let span = self.ast()[e].span;
        let mut ptr = self.value(e);
        while let Some(pointee) = self.w.types.pointee(self.w.ty(ptr))
            && matches!(self.w.types.kind(pointee), ir::TyKind::Ptr { .. })
        {
            ptr = self.load(ptr, span);
        }
        ptr
    }

    fn is_pointer(&mut self, e: ExprId) -> bool {
        let ty = self.adjusted_ty(e);
        matches!(self.kind(ty), Kind::Ptr { .. })
    }

    /// The source of `e`'s value. With `addressed`, an address is preferred to a value.
    fn source(&mut self, e: ExprId, addressed: bool) -> Source {
        let span = self.ast()[e].span;
        match &self.ast()[e].kind {
            ExprKind::Path(_) => match self.p.resolved.get(&self.g(e)) {
                Some(Entity::Local(id)) => {
                    let var = self.vars[id.0 as usize];
                    match (var.val, var.ptr) {
                        (Some(val), ptr) if !addressed || ptr.is_none() => Source::Val(val),
                        (_, Some(ptr)) => Source::Ptr(ptr),
                        _ => {
                            let ty = self.ty_of(e);
                            Source::Val(self.undef(ty))
                        }
                    }
                }
                Some(Entity::Static(id)) => {
                    let ptr = self.global(*id);
                    Source::Ptr(ptr)
                }
                _ => Source::Val(self.raw(e)),
            },
            ExprKind::Unary(UnaryOp::Deref, base) => Source::Ptr(self.value(*base)),
            ExprKind::Call { callee, args } if self.p.call_kind.get(&self.g(e)) == Some(&CallKind::Place) => {
                Source::Ptr(self.place_by_method(e, *callee, args, span))
            }
            ExprKind::Field { base, .. } => {
                let Some(&idx) = self.p.field_idx.get(&self.g(e)) else {
                    let ty = self.ty_of(e);
                    return Source::Val(self.undef(ty));
                };
                let base = if self.is_pointer(*base) {
                    Source::Ptr(self.pointer(*base))
                } else {
                    self.source_of(*base, addressed)
                };
                self.w.set_origin(span);
                match base {
                    Source::Ptr(ptr) => Source::Ptr(self.lea(ptr, idx.into())),
                    Source::Val(val) => Source::Val(self.w.extract(val, idx.into())),
                }
            }
            ExprKind::Call { callee, args } if self.p.call_kind.get(&self.g(e)) == Some(&CallKind::Index) => {
                let literal = match args.first().map(|a| &self.ast()[*a].kind) {
                    Some(ExprKind::Int { value, .. }) => u64::try_from(*value).ok(),
                    _ => None,
                };
                let base = if self.is_pointer(*callee) {
                    Source::Ptr(self.pointer(*callee))
                } else {
                    let is_vector = {
                        let ty = self.adjusted_ty(*callee);
                        matches!(self.kind(ty), Kind::Simd(..))
                    };
                    self.source_of(*callee, addressed || literal.is_none() && !is_vector)
                };
                let Some(arg) = args.first() else { return base };
                let idx = self.value(*arg);
                self.w.set_origin(span);
                match (base, literal) {
                    (Source::Ptr(ptr), _) => Source::Ptr(self.w.op(Op::Lea, &[ptr, idx])),
                    (Source::Val(val), Some(i)) => {
                        let n = self.w.types.n_parts(self.w.ty(val)).unwrap_or(0);
                        if i < n {
                            Source::Val(self.w.extract(val, i))
                        } else {
                            if self.mode == Mode::Constant {
                                self.report(not_constant::error(span, &format!("element {i} of {n}")));
                            } else {
                                self.w.note(ConstantFault::Index);
                            }
                            let ty = self.ty_of(e);
                            Source::Val(self.undef(ty))
                        }
                    }
                    (Source::Val(val), None) if self.w.types.as_vector(self.w.ty(val)).is_some() => {
                        Source::Val(self.w.op(Op::Extract, &[val, idx]))
                    }
                    (Source::Val(val), None) => {
                        let ptr = self.spill(val, false);
                        Source::Ptr(self.w.op(Op::Lea, &[ptr, idx]))
                    }
                }
            }
            _ => Source::Val(self.raw(e)),
        }
    }

    /// Like [`Self::source`], for an expression that may be converted.
    fn source_of(&mut self, e: ExprId, addressed: bool) -> Source {
        if self.p.adjust.contains_key(&self.g(e)) || !self.alive() {
            return Source::Val(self.value(e));
        }
        self.source(e, addressed)
    }

    /// Fills the missing `parts` of a struct with those of `base`. Of a place, only these are read.
    pub(super) fn fill_from(&mut self, base: ExprId, parts: &mut [Option<Val>]) {
        let span = self.ast()[base].span;
        let source = self.source_of(base, false);
        if !self.alive() {
            return;
        }
        self.w.set_origin(span);
        for (idx, part) in parts.iter_mut().enumerate().filter(|(_, part)| part.is_none()) {
            *part = Some(match source {
                Source::Ptr(ptr) => {
                    let ptr = self.lea(ptr, idx as u64);
                    self.load(ptr, span)
                }
                Source::Val(val) => self.w.extract(val, idx as u64),
            });
        }
    }

    /// The value of a place expression.
    pub(super) fn read_expr(&mut self, e: ExprId) -> Val {
        let span = self.ast()[e].span;
        match self.source(e, false) {
            Source::Val(val) => val,
            Source::Ptr(ptr) => {
                self.w.set_origin(span);
                let val = self.load(ptr, span);
                if let Some(&id) = self.slots.get(&ptr) {
                    self.debug_value(id, val);
                }
                val
            }
        }
    }

    /// The address of a place, or of a copy of a value.
    pub(super) fn address(&mut self, e: ExprId, mutable: bool) -> Val {
        match self.source(e, true) {
            Source::Ptr(ptr) => ptr,
            Source::Val(val) => self.spill(val, mutable),
        }
    }

    /// The address of a copy of `val`.
    pub(super) fn spill(&mut self, val: Val, mutable: bool) -> Val {
        if self.mode != Mode::Code || (!mutable && self.is_literal(val)) {
            let ty = self.w.ty(val);
            let name = if mutable { "copy" } else { "const" };
            let global = self.w.declare_global(name, ty, mutable);
            self.w.set_init(global, val);
            return self.w.global_val(global);
        }
        self.slot(val)
    }

    /// Whether `val` is an aggregate made of literals only.
    fn is_literal(&self, val: Val) -> bool {
        let mut work = vec![val];
        let mut budget = 4_000_000u32;
        while let Some(v) = work.pop() {
            budget -= 1;
            if budget == 0 {
                return false;
            }
            match self.w.node(v) {
                Node::Lit(_) => {}
                Node::Op(Op::Array | Op::Tuple | Op::Struct | Op::Splat) => work.extend(self.w.args(v)),
                _ => return false,
            }
        }
        self.w.as_lit(val).is_none()
    }

    /// The place of the target of an assignment.
    pub(super) fn place(&mut self, e: ExprId) -> Place {
        let span = self.ast()[e].span;
        match &self.ast()[e].kind {
            ExprKind::Path(_) => {
                if let Some(Entity::Local(id)) = self.p.resolved.get(&self.g(e))
                    && self.vars[id.0 as usize].ptr.is_none()
                {
                    return Place::Part { local: *id, path: Vec::new() };
                }
            }
            ExprKind::Field { base, .. } if !self.is_pointer(*base) => {
                if let Some(&idx) = self.p.field_idx.get(&self.g(e)) {
                    return self.part_of(*base, idx.into(), span);
                }
            }
            ExprKind::Call { callee, args }
                if self.p.call_kind.get(&self.g(e)) == Some(&CallKind::Index) && !self.is_pointer(*callee) =>
            {
                if let Some(ExprKind::Int { value, .. }) = args.first().map(|a| &self.ast()[*a].kind)
                    && let Ok(idx) = u64::try_from(*value)
                {
                    return self.part_of(*callee, idx, span);
                }
                if let (Place::Ptr(ptr), Some(arg)) = (self.place(*callee), args.first()) {
                    let idx = self.value(*arg);
                    self.w.set_origin(span);
                    return Place::Ptr(self.w.op(Op::Lea, &[ptr, idx]));
                }
            }
            _ => {}
        }
        match self.source(e, true) {
            Source::Ptr(ptr) => Place::Ptr(ptr),
            Source::Val(val) => Place::Ptr(self.spill(val, true)),
        }
    }

    fn part_of(&mut self, base: ExprId, idx: u64, span: Span) -> Place {
        match self.place(base) {
            Place::Part { local, mut path } => {
                path.push(idx);
                Place::Part { local, path }
            }
            Place::Ptr(ptr) => {
                self.w.set_origin(span);
                Place::Ptr(self.lea(ptr, idx))
            }
        }
    }

    pub(super) fn read(&mut self, place: &Place, ty: Ty, span: Span) -> Val {
        match place {
            Place::Ptr(ptr) => self.load(*ptr, span),
            Place::Part { local, path } => {
                let Some(mut val) = self.vars[local.0 as usize].val else { return self.undef(ty) };
                for &idx in path {
                    if self.w.types.n_parts(self.w.ty(val)).is_none_or(|n| idx >= n) {
                        self.w.set_origin(span);
                        self.w.note(ConstantFault::Index);
                        return self.undef(ty);
                    }
                    val = self.w.extract(val, idx);
                }
                val
            }
        }
    }

    pub(super) fn write(&mut self, place: &Place, val: Val) {
        if !self.alive() {
            return;
        }
        match place {
            Place::Ptr(ptr) if self.is_racy => self.racy_store(*ptr, val),
            Place::Ptr(ptr) => {
                let Some(mem) = self.mem(Span::NONE) else { return };
                let mem = self.w.op(Op::Store, &[mem, *ptr, val]);
                self.set_mem(mem);
                if let Some(&id) = self.slots.get(ptr) {
                    self.debug_value(id, val);
                }
            }
            Place::Part { local, path } => {
                let Some(old) = self.vars[local.0 as usize].val else { return };
                // Collect the aggregates on the way down, then rebuild them with the part replaced.
                let mut aggs = vec![old];
                for &idx in path.iter().take(path.len().saturating_sub(1)) {
                    let agg = aggs[aggs.len() - 1];
                    if self.w.types.n_parts(self.w.ty(agg)).is_none_or(|n| idx >= n) {
                        return;
                    }
                    aggs.push(self.w.extract(agg, idx));
                }
                let mut new = val;
                for (agg, &idx) in aggs.iter().zip(path).rev() {
                    if self.w.types.n_parts(self.w.ty(*agg)).is_none_or(|n| idx >= n) {
                        self.w.note(ConstantFault::Index);
                        return;
                    }
                    new = self.w.insert(*agg, idx, new);
                }
                self.assign(*local, new);
            }
        }
    }
}

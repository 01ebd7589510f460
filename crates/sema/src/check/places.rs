//! Places: what can be assigned, changed, and addressed. Decided when all types are known.

use super::*;
use nyala_syntax::ast::{ExprKind, UnaryOp};

/// The start of a place.
enum Root {
    /// A variable, reached without a pointer.
    Local(LocalId),
    Static(StaticId),
    /// Behind this pointer.
    Pointer {
        mutable: bool,
        span: Span,
    },
    /// A value that is not in a place.
    Value,
    Error,
}

impl<'a> Checker<'a, '_> {
    /// Whether `e` looks like a place.
    pub(super) fn is_place(&self, e: ExprId) -> bool {
        let mut e = e;
        loop {
            match &self.ast()[e].kind {
                ExprKind::Path(_) => {
                    return matches!(
                        self.p.resolved.get(&self.g(e)),
                        Some(Entity::Local(_) | Entity::Static(_) | Entity::Error) | None
                    );
                }
                ExprKind::Unary(UnaryOp::Deref, _) | ExprKind::Error => return true,
                ExprKind::Field { base, .. } => e = *base,
                // An element, if it is no call.
                ExprKind::Call { callee, .. } => match self.p.call_kind.get(&self.g(e)) {
                    Some(CallKind::Call) => return false,
                    Some(CallKind::Place) => return true,
                    Some(CallKind::Index) => e = *callee,
                    None => return true,
                },
                _ => {
                    let ty = self.p.types.shallow(self.p.expr_ty[self.g(e) as usize]);
                    return matches!(self.p.types.final_kind(ty), Kind::Ptr { .. });
                }
            }
        }
    }

    /// Checks that the address of `place`, of type `to`, has type `result`.
    pub(super) fn address(&mut self, e: GlobalExpr, place: GlobalExpr, access: Access, to: Ty, result: Ty) {
        match self.space_of(place) {
            Ok(space) => {
                let ty = self.p.types.mk(Kind::Ptr { access, space, to });
                let (module, local) = self.locate(e);
                let span = self.p.modules[module][local].span;
                self.unify(span, ty, result, NO_WHY);
            }
            Err(var) => self.wait(var, Pending::Address { e, place, access, to, result }),
        }
    }

    /// The address space of a place: that of the last pointer on the way to it. If it is still open whether there is a
    /// pointer, returns the variable that decides it.
    pub(super) fn space_of(&mut self, place: GlobalExpr) -> Result<u8, u32> {
        let (module, mut e) = self.locate(place);
        loop {
            let kind = &self.p.modules[module][e].kind;
            let is_deref = matches!(kind, ExprKind::Unary(UnaryOp::Deref, _));
            if let Some(pointer) = self.pointer_of_place(self.p.global(module, e)) {
                return match self.p.types.kind(pointer) {
                    Kind::Ptr { space, .. } => Ok(space),
                    Kind::Var(var) => Err(var),
                    _ => Ok(0),
                };
            }
            let base = match kind {
                ExprKind::Unary(UnaryOp::Deref, base) | ExprKind::Field { base, .. } => *base,
                ExprKind::Call { callee, .. } => *callee,
                _ => return Ok(0),
            };
            let mut ty = self.p.expr_ty[self.p.global(module, base) as usize];
            let mut last = None;
            loop {
                match self.p.types.kind(ty) {
                    Kind::Ptr { space, .. } if is_deref => return Ok(space),
                    Kind::Ptr { space, to, .. } => (last, ty) = (Some(space), to),
                    Kind::Var(var) if self.p.types.class(var) == Class::Any => return Err(var),
                    Kind::Fn(..) | Kind::Generic(..) => return Ok(0),
                    _ => break,
                }
            }
            if let Some(space) = last {
                return Ok(space);
            }
            e = base;
        }
    }

    /// The type of the pointer that `Index` gives, if `e` is a place by that trait.
    fn pointer_of_place(&self, e: GlobalExpr) -> Option<Ty> {
        let is_place = self.p.call_kind.get(&e) == Some(&CallKind::Place);
        self.p.type_args.get(&e).filter(|_| is_place)?.last().copied()
    }

    /// Checks that `place` may be assigned or changed by the code at `span`.
    pub(super) fn assignable(&mut self, place: ExprId, span: Span) {
        self.need_place(place, Need::Assign, span);
    }

    pub(super) fn need_place(&mut self, e: ExprId, need: Need, span: Span) {
        self.unit.check_later(Final::Place { module: self.at.module, e, need, loops: self.ctx.current_loop, span });
    }

    fn root(&mut self, mut e: ExprId) -> Root {
        loop {
            match &self.ast()[e].kind {
                ExprKind::Error => return Root::Error,
                ExprKind::Path(_) => {
                    return match self.p.resolved.get(&self.g(e)) {
                        Some(Entity::Local(id)) => Root::Local(*id),
                        Some(Entity::Static(id)) => Root::Static(*id),
                        Some(Entity::Fn(_)) => Root::Value,
                        _ => Root::Error,
                    };
                }
                ExprKind::Unary(UnaryOp::Deref, base) => {
                    let (ty, span) = (self.p.expr_ty[self.g(*base) as usize], self.ast()[*base].span);
                    return match self.p.types.kind(ty) {
                        Kind::Ptr { access, .. } => Root::Pointer { mutable: access.is_mut(), span },
                        _ => Root::Error,
                    };
                }
                ExprKind::Field { base, .. } => {
                    if let Some(root) = self.through(*base) {
                        return root;
                    }
                    e = *base;
                }
                ExprKind::Call { callee, .. } => {
                    if let Some(pointer) = self.pointer_of_place(self.g(e)) {
                        return match self.p.types.kind(pointer) {
                            Kind::Ptr { access, .. } => {
                                Root::Pointer { mutable: access.is_mut(), span: self.ast()[*callee].span }
                            }
                            _ => Root::Error,
                        };
                    }
                    if self.p.call_kind.get(&self.g(e)) != Some(&CallKind::Index) {
                        return Root::Value;
                    }
                    if let Some(root) = self.through(*callee) {
                        return root;
                    }
                    e = *callee;
                }
                _ => return Root::Value,
            }
        }
    }

    /// The root of places that are reached through `base`, if that is a pointer.
    fn through(&mut self, base: ExprId) -> Option<Root> {
        let g = self.g(base);
        match self.p.types.kind(self.p.expr_ty[g as usize]) {
            Kind::Ptr { .. } => Some(self.pointer_root(base)),
            Kind::Error => Some(Root::Error),
            _ => None,
        }
    }

    fn pointer_root(&mut self, base: ExprId) -> Root {
        let (g, span) = (self.g(base), self.ast()[base].span);
        let mut ty = self.p.expr_ty[g as usize];
        let mut root = Root::Error;
        while let Kind::Ptr { access, to, .. } = self.p.types.kind(ty) {
            root = Root::Pointer { mutable: access.is_mut(), span };
            ty = to;
        }
        root
    }

    pub(super) fn final_place(&mut self, module: usize, e: ExprId, need: Need, loops: Option<LoopId>, span: Span) {
        self.at.module = module;
        let root = self.root(e);
        match root {
            Root::Error => {}
            Root::Value => {
                if need == Need::Assign {
                    self.report(not_a_place::error(self.ast()[e].span));
                }
            }
            Root::Pointer { mutable, span: pointer, .. } => {
                if !mutable && need != Need::Address {
                    self.report(immutable::pointee(span, pointer));
                }
            }
            Root::Static(id) => {
                let (mutable, name) = {
                    let ast = self.p.statics[id.0 as usize].ast;
                    (ast.mutable, &ast.name)
                };
                if !mutable && need != Need::Address {
                    self.report(immutable::static_item(span, &short(&name.text), name.span));
                }
            }
            Root::Local(id) => self.final_local(id, e, need, loops, span),
        }
    }

    fn final_local(&mut self, id: LocalId, e: ExprId, need: Need, loops: Option<LoopId>, span: Span) {
        let local = self.p.local(id);
        if !local.mutable && need != Need::Address {
            let (name, declared) = (short(&local.name), local.span);
            self.report(immutable::variable(span, &name, declared));
            // Avoids another error for the same variable.
            self.p.locals[id.0 as usize].mutable = true;
            return;
        }
        self.p.locals[id.0 as usize].changed |= need != Need::Address;
        if need != Need::Assign || self.has_dynamic_index(e) {
            self.p.locals[id.0 as usize].addressed = true;
        }
        let declared_in = self.p.local(id).in_loop;
        let mut at = loops;
        while let Some(l) = at
            && Some(l) != declared_in
        {
            let looped = &mut self.p.loops[l.0 as usize];
            if looped.assigned_set.insert(id) {
                looped.assigned.push(id);
            }
            at = looped.parent;
        }
    }

    /// Whether an index on the way is not a literal, so that the variable must live in memory.
    fn has_dynamic_index(&self, mut e: ExprId) -> bool {
        loop {
            match &self.ast()[e].kind {
                ExprKind::Field { base, .. } => e = *base,
                ExprKind::Call { callee, args } => {
                    let literal = |a: &ExprId| matches!(self.ast()[*a].kind, ExprKind::Int { .. });
                    if !args.iter().all(literal) {
                        return true;
                    }
                    e = *callee;
                }
                _ => return false,
            }
        }
    }

    /// The address of `e` is taken without being written: that of the variable, if it is one.
    pub(super) fn final_address(&mut self, module: usize, e: ExprId) {
        self.at.module = module;
        if let Root::Local(id) = self.root(e) {
            self.p.locals[id.0 as usize].addressed = true;
        }
    }
}

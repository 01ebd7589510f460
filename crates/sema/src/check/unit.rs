//! Constraints and checks that wait for types, as data. A constraint waits for one variable and is tried again when the
//! variable's type is known. A check is made at the end of the unit of inference: a function, or all statics and
//! functions with inferred types together. Separate from the code that makes and solves them, which needs the checker.

use super::{Arg, Asker, GlobalExpr, LoopId, Why};
use crate::types::{Access, ParamId, TraitRef, Ty};
use nyala_base::Span;
use nyala_syntax::ast::{self, ExprId, Name};
use rustc_hash::FxHashSet;

/// A constraint that waits for the type of a variable.
pub(super) enum Pending {
    Coerce {
        e: GlobalExpr,
        span: Span,
        from: Ty,
        to: Ty,
        why: Why,
    },
    Field {
        e: GlobalExpr,
        span: Span,
        base: Ty,
        name: Name,
        result: Ty,
        from: Asker,
    },
    /// The method call `x.m(…)`. The context is that of the call.
    Method {
        e: GlobalExpr,
        base: Ty,
        name: Name,
        result: Ty,
        from: Asker,
    },
    /// `ty` must meet the bound.
    Bound {
        span: Span,
        ty: Ty,
        of: TraitRef,
    },
    /// The comparison of two values of type `ty`, which has a result.
    Compare {
        e: GlobalExpr,
        span: Span,
        op: &'static str,
        ty: Ty,
        result: Ty,
    },
    /// An operator with operands of these types, one of which is the result of another operator.
    Operator {
        e: GlobalExpr,
        left: Ty,
        right: Option<Ty>,
        result: Ty,
    },
    Call {
        e: GlobalExpr,
        span: Span,
        callee: Ty,
        args: Vec<Arg>,
        result: Ty,
    },
    Deref {
        span: Span,
        base: Ty,
        result: Ty,
    },
    /// The address of a place. Its address space is that of a pointer on the way to the place.
    Address {
        e: GlobalExpr,
        place: GlobalExpr,
        access: Access,
        to: Ty,
        result: Ty,
    },
}

/// A check that is made when all types are known.
pub(super) enum Final<'a> {
    Literal {
        value: u128,
        negative: bool,
        ty: Ty,
        span: Span,
    },
    Cast {
        from: Ty,
        to: Ty,
        span: Span,
    },
    Operand {
        op: &'static str,
        want: Want,
        ty: Ty,
        span: Span,
    },
    /// The index of an array, and the array.
    Index {
        ty: Ty,
        span: Span,
        of: Option<GlobalExpr>,
    },
    Value {
        ty: Ty,
        span: Span,
    },
    Known {
        ty: Ty,
        span: Span,
        what: &'static str,
    },
    /// Two constants must be equal, of which one is an operation.
    Equal {
        a: Ty,
        b: Ty,
        span: Span,
    },
    /// The argument of a `const` parameter must be one of its values.
    ConstArg {
        value: Ty,
        param: ParamId,
        span: Span,
    },
    Place {
        module: usize,
        e: ExprId,
        need: Need,
        loops: Option<LoopId>,
        span: Span,
    },
    AutoAddress {
        module: usize,
        e: ExprId,
    },
    Match {
        module: usize,
        e: ExprId,
        ty: Ty,
    },
    Irrefutable {
        module: usize,
        pattern: &'a ast::Pattern,
        ty: Ty,
    },
    /// An array is indexed with something other than a literal.
    IndexAddress {
        module: usize,
        e: ExprId,
    },
}

/// The types that an operator accepts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Want {
    Number,
    Integer,
    IntegerOrBool,
    Comparable,
    /// A number or `bool`.
    Lane,
    /// Types that `asm` accepts as operands.
    Register,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Need {
    Assign,
    Address,
    MutAddress,
}

/// The constraints and checks of the current unit of inference.
#[derive(Default)]
pub(super) struct Unit<'a> {
    /// Solved constraints are `None`.
    constraints: Vec<Option<Pending>>,
    /// The constraints of earlier units have smaller numbers.
    first_constraint: u32,
    checks: Vec<Final<'a>>,
    /// The locals and variables of earlier units have smaller numbers.
    pub first_local: usize,
    pub first_var: u32,
    /// Calls at the end of bodies whose types were still open.
    pub ends: FxHashSet<GlobalExpr>,
    /// Results of operators whose impl was still open.
    pub operated: Vec<Ty>,
}

impl<'a> Unit<'a> {
    /// Adds a constraint. Returns its number, by which variables know it.
    pub fn add(&mut self, pending: Pending) -> u32 {
        self.constraints.push(Some(pending));
        self.first_constraint + self.constraints.len() as u32 - 1
    }

    /// Removes the constraint with this number, if it still waits.
    pub fn take(&mut self, number: u32) -> Option<Pending> {
        let i = number.checked_sub(self.first_constraint)?;
        self.constraints[i as usize].take()
    }

    /// The numbers of all constraints so far, solved ones included.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        self.first_constraint..self.first_constraint + self.constraints.len() as u32
    }

    pub fn waiting(&self, number: u32) -> Option<&Pending> {
        self.constraints[(number - self.first_constraint) as usize].as_ref()
    }

    pub fn is_waiting(&self) -> bool {
        self.constraints.iter().any(Option::is_some)
    }

    /// Adds a check for the end of the unit.
    pub fn check_later(&mut self, check: Final<'a>) {
        self.checks.push(check);
    }

    /// The types of integer literals, and their places.
    pub fn literals(&self) -> impl Iterator<Item = (Ty, Span)> {
        self.checks.iter().filter_map(|check| match check {
            Final::Literal { ty, span, .. } => Some((*ty, *span)),
            _ => None,
        })
    }

    pub fn n_checks(&self) -> usize {
        self.checks.len()
    }

    /// The type that a check is about, if it gets a default where it must be a number.
    pub fn defaulted(&self, check: usize) -> Option<Ty> {
        match &self.checks[check] {
            Final::Literal { ty, .. }
            | Final::Operand { ty, .. }
            | Final::Index { ty, .. }
            | Final::Cast { from: ty, .. } => Some(*ty),
            Final::Known { ty, .. } | Final::Value { ty, .. } => Some(*ty),
            Final::Place { .. } | Final::AutoAddress { .. } | Final::IndexAddress { .. } => None,
            Final::Match { .. } | Final::Irrefutable { .. } => None,
            Final::Equal { .. } | Final::ConstArg { .. } => None,
        }
    }

    pub fn take_checks(&mut self) -> Vec<Final<'a>> {
        std::mem::take(&mut self.checks)
    }

    /// Forgets the constraints. Those of the next unit have greater numbers.
    pub fn end_constraints(&mut self) {
        self.first_constraint += self.constraints.len() as u32;
        self.constraints.clear();
        self.operated.clear();
    }

    /// Begins the next unit. `checks` is the list that [`take_checks`](Self::take_checks) returned, emptied, whose
    /// memory is used again.
    pub fn begin_next(&mut self, checks: Vec<Final<'a>>, n_locals: usize, n_vars: u32) {
        debug_assert!(checks.is_empty());
        (self.checks, self.first_local, self.first_var) = (checks, n_locals, n_vars);
    }
}

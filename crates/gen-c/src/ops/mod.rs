//! Operations as C expressions and statements: which file writes which, and what several of them need.

pub(crate) mod aggregates;
pub(crate) mod atomics;
pub(crate) mod casts;
pub(crate) mod halves;
mod lane_loops;
pub(crate) mod math;
mod memory;
pub(crate) mod numbers;
pub(crate) mod vectors;

use crate::emit::Emitter;
use crate::expr::{Expr, Prec, binary};
use crate::function::FunctionEmitter;
use crate::{Result, bug};
use nyala_flat::{Inst, Value};
use nyala_ir::{Op, Prim, TyKind};

/// Writes an operation: defines its result, or adds its statement.
pub(crate) fn emit(f: &mut FunctionEmitter, op: Op, inst: &Inst) -> Result<()> {
    let args = &inst.args;
    match op {
        Op::Store => return memory::store(f, args),
        Op::Slot | Op::Alloc => {}
        Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
            return match f.e.dialect.kernels {
                None => atomics::emit(f, op, inst),
                Some(kernels) => crate::devices::atomic(f, &kernels, op, inst),
            };
        }
        Op::Prefetch => return memory::prefetch(f, args),
        Op::Pipeline => return crate::devices::pipeline(f, args[0]),
        Op::DebugValue => return Ok(()),
        _ => {}
    }
    let Some(result) = inst.result else { return Err(bug(format!("`{}` without a result", op.name()))) };
    let ty = f.ty(result);
    if f.is_void(result) && op != Op::Slot {
        return Ok(());
    }
    let is_vector = |v: Value| f.e.module.types.as_vector(f.ty(v)).is_some();
    let in_lanes = is_vector(result) || args.iter().any(|&a| is_vector(a));
    let e = match op {
        Op::Add if let Some(id) = crate::devices::global_id(f, result) => id,
        Op::Slot => {
            let pointee = f.pointee(result)?;
            return f.slot(result, pointee);
        }
        Op::Load => {
            f.flush(false)?;
            let e = memory::load(f, args[0], ty)?;
            return f.define(result, e, inst.op);
        }
        Op::Alloc => return memory::alloc(f, result, args[0], inst.op),
        Op::PDiv | Op::PRem => {
            let e = if in_lanes { lane_loops::emit(f, op, result, args)? } else { operands(f, op, result, args)? };
            f.flush(false)?;
            return f.define(result, Expr { must: false, reads: true, ..e }, inst.op);
        }
        Op::Scope => Expr::atom("0"),
        Op::Restrict | Op::Aligned => f.raw(args[0])?,
        Op::Bitcast => casts::bitcast(f, args[0], ty)?,
        Op::Tuple | Op::Struct | Op::Array => aggregates::build(f, ty, args)?,
        Op::Splat => aggregates::splat(f, ty, args[0])?,
        Op::Extract => aggregates::extract(f, args)?,
        Op::Insert => return aggregates::insert(f, result, args),
        Op::Lea => aggregates::lea(f, args)?,
        Op::WorkItem => work_item(f, args)?,
        Op::Select if !in_lanes || f.e.module.types.as_vector(f.ty(args[0])).is_none() => select(f, args)?,
        Op::Shuffle | Op::Bits => lane_loops::emit(f, op, result, args)?,
        Op::Rcp | Op::Rsqrt | Op::Rcp14 | Op::Rsqrt14 => {
            let exact = if matches!(op, Op::Rcp | Op::Rcp14) { "divide" } else { "divide by `sqrt`" };
            return Err(f.limitation(&format!("`{}`, an instruction of x86-64,", op.name()), exact));
        }
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::Rem
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Shr
        | Op::Eq
        | Op::Ne
        | Op::Lt
        | Op::Le
        | Op::Gt
        | Op::Ge
        | Op::Cast
        | Op::Select
        | Op::Popcount
        | Op::Clz
        | Op::Ctz
        | Op::Pext
        | Op::Pdep
        | Op::Fma
        | Op::Sqrt
        | Op::Abs
        | Op::Floor
        | Op::Ceil
        | Op::Trunc
        | Op::Round
        | Op::Fmin
        | Op::Fmax
        | Op::Copysign
        | Op::Sin
        | Op::Cos
        | Op::Tan
        | Op::Asin
        | Op::Acos
        | Op::Atan
        | Op::Sinh
        | Op::Cosh
        | Op::Tanh
        | Op::Exp
        | Op::Exp2
        | Op::Expm1
        | Op::Log
        | Op::Log2
        | Op::Log10
        | Op::Log1p
        | Op::Cbrt
        | Op::Erf
        | Op::Pow
        | Op::Atan2 => {
            if in_lanes {
                lane_loops::emit(f, op, result, args)?
            } else {
                operands(f, op, result, args)?
            }
        }
        Op::Store
        | Op::Atomic
        | Op::AtomicLoad
        | Op::AtomicStore
        | Op::Cmpxchg
        | Op::CmpxchgWeak
        | Op::Fence
        | Op::Prefetch
        | Op::Pipeline
        | Op::Watch
        | Op::DebugValue
        | nyala_ir::annotation!() => return Err(bug(format!("`{}` in C", op.name()))),
    };
    f.define(result, e, inst.op)
}

/// An operation on numbers or addresses.
fn operands(f: &mut FunctionEmitter, op: Op, result: Value, args: &[Value]) -> Result<Expr> {
    let mut exprs = Vec::new();
    for (i, &a) in args.iter().enumerate() {
        let mut e = f.raw(a)?;
        // The right side of `&&` and `||` is not always evaluated.
        if i > 0 && e.must && matches!(op, Op::And | Op::Or) {
            e = f.spill(e, f.ty(a))?;
        }
        exprs.push(e);
    }
    let ty = f.ty(args[0]);
    // Compilers warn of comparisons that they see through; as a variable they do not.
    let mut is_same = false;
    if op.is_comparison() {
        let [a, b] = [0, 1].map(|i| f.e.rendered(exprs[i].clone(), true));
        is_same = a?.text == b?.text;
    }
    if is_same || matches!(op, Op::Eq | Op::Ne) && never_equal(&exprs[0], &exprs[1]) {
        exprs[0] = f.spill(exprs[0].clone(), ty)?;
    }
    match f.e.module.types.as_prim(ty) {
        Some(prim) => {
            let to = f.e.module.types.as_prim(f.ty(result)).unwrap_or(prim);
            f.e.is_speculative = !f.is_certain(result);
            scalar(f.e, op, prim, to, &exprs).map_err(|d| f.placed(d))
        }
        None => addresses(f, op, &exprs),
    }
}

/// Whether bits that a number has, or has not, differ from those of a literal.
fn never_equal(a: &Expr, b: &Expr) -> bool {
    let number = |text: &str| text.trim_end_matches(['u', 'l']).parse::<i64>().ok();
    let Some((_, op, right)) = &a.update else { return false };
    match (number(right), number(&b.text), op.as_str()) {
        (Some(mask), Some(n), "&") => n & !mask != 0,
        (Some(bits), Some(n), "|") => bits & !n != 0,
        _ => false,
    }
}

/// An operation on numbers: `prim` is the type of the first operand, `to` that of the result.
pub(crate) fn scalar(e: &mut Emitter, op: Op, prim: Prim, to: Prim, args: &[Expr]) -> Result<Expr> {
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::PDiv | Op::PRem => {
            numbers::arithmetic(e, op, prim, &args[0], &args[1])
        }
        Op::And | Op::Or | Op::Xor => numbers::bitwise(e, op, prim, &args[0], &args[1]),
        Op::Shl | Op::Shr => numbers::shift(e, op, prim, &args[0], &args[1]),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => numbers::compare(e, op, prim, &args[0], &args[1]),
        Op::Cast => casts::cast(e, prim, to, args[0].clone()),
        Op::Select => conditional(e, &args[0], &args[1], &args[2]),
        Op::Popcount | Op::Clz | Op::Ctz => numbers::count(e, op, prim, &args[0]),
        Op::Pext | Op::Pdep => numbers::deposit(e, op, prim, &args[0], &args[1]),
        _ => math::math(e, op, prim, args),
    }
}

/// The operator of a comparison, and of its opposite.
pub(crate) fn comparison(op: Op) -> (&'static str, &'static str, Prec) {
    match op {
        Op::Eq => ("==", "!=", Prec::Equality),
        Op::Ne => ("!=", "==", Prec::Equality),
        Op::Lt => ("<", ">=", Prec::Relation),
        Op::Le => ("<=", ">", Prec::Relation),
        Op::Gt => (">", "<=", Prec::Relation),
        _ => (">=", "<", Prec::Relation),
    }
}

/// A comparison of addresses. C orders addresses within one object only.
fn addresses(f: &mut FunctionEmitter, op: Op, args: &[Expr]) -> Result<Expr> {
    if !op.is_comparison() {
        return Err(bug(format!("`{}` of addresses", op.name())));
    }
    let (a, b) = (f.e.rendered(args[0].clone(), true)?, f.e.rendered(args[1].clone(), true)?);
    let (text, opposite, prec) = comparison(op);
    if prec == Prec::Equality {
        let inverse = binary(&a, opposite, &b, prec);
        return Ok(Expr { inverse: Some((inverse.text, prec)), ..binary(&a, text, &b, prec) });
    }
    let address = f.e.dialect.address;
    let (a, b) = (crate::expr::cast(address, &a), crate::expr::cast(address, &b));
    Ok(binary(&a, text, &b, prec))
}

fn select(f: &mut FunctionEmitter, args: &[Value]) -> Result<Expr> {
    let cond = f.raw(args[0])?;
    let mut sides = Vec::new();
    for &v in &args[1..] {
        let e = f.raw(v)?;
        sides.push(if e.must { f.spill(e, f.ty(v))? } else { e });
    }
    conditional(f.e, &cond, &sides[0], &sides[1])
}

fn conditional(e: &mut Emitter, cond: &Expr, yes: &Expr, no: &Expr) -> Result<Expr> {
    let (yes, no) = (e.rendered(yes.clone(), true)?, e.rendered(no.clone(), true)?);
    let [cond_text, a, b] = [cond, &yes, &no].map(|x| x.at(Prec::LogicalOr));
    Ok(Expr::new(format!("{cond_text} ? {a} : {b}"), Prec::Conditional).of(&[cond, &yes, &no]))
}

/// A number of the work item. Outside of kernels there is one work item.
fn work_item(f: &mut FunctionEmitter, args: &[Value]) -> Result<Expr> {
    let what = f.function.as_bits(args[0]).and_then(|n| nyala_ir::WorkItem::ALL.get(n as usize).copied());
    let axis = f.function.as_bits(args[1]).filter(|&n| n < 3);
    let (Some(what), Some(axis)) = (what, axis) else { return Err(bug("a number of a work item that is not known")) };
    match f.e.dialect.work_items.iter().find(|w| w.0 == what) {
        Some((_, axes)) => Ok(Expr::atom(axes[axis as usize])),
        None => f.e.literal(Prim::I32, what.of_one() as u64),
    }
}

impl FunctionEmitter<'_, '_> {
    /// The type that an address points to.
    pub fn pointee(&self, ptr: Value) -> Result<nyala_ir::Ty> {
        self.e.module.types.pointee(self.ty(ptr)).ok_or_else(|| bug("an address of nothing"))
    }

    /// A finding with the place of the instruction, if it has none.
    pub fn placed(&self, mut d: Box<nyala_base::Diagnostic>) -> Box<nyala_base::Diagnostic> {
        d.place(self.span);
        d
    }

    /// Sees to it that a type whose layout matters is defined.
    pub fn complete(&mut self, ty: nyala_ir::Ty) -> Result<()> {
        match self.e.module.types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => Ok(()),
            _ => self.e.types.define(ty, &mut self.e.names),
        }
    }

    /// An address that is followed. The address of nothing gets its type.
    pub fn address(&mut self, ptr: Value) -> Result<Expr> {
        let e = self.raw(ptr)?;
        if e.text != self.e.dialect.null {
            return Ok(e);
        }
        let ty = self.type_name(self.ty(ptr))?;
        Ok(crate::expr::cast(&ty, &e))
    }
}

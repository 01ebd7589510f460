//! Typing rules: which operands each operation takes, and the type of its result. Constructors, the reader and the
//! verifier use them. The [op table](crate::ops) has the rules that are one word; the others are here, as functions by
//! kind of operation.

use crate::ops::{Effect, Op, Rule};
use crate::types::{Prim, Ty, TyKind};
use crate::world::{Val, World};

/// The type of the result, `None` if the table gives it; or what is wrong with the operands.
type Own = Result<Option<Ty>, String>;

impl World {
    /// The type of an operation's result, or what is wrong with its operands. `stated` is the type given by the code
    /// that builds it: for `slot` and `alloc` the type of the element, for others the type of the result.
    pub fn result_ty(&mut self, op: Op, stated: Option<Ty>, args: &[Val]) -> Result<Ty, String> {
        if op.arity() >= 0 && op.arity() as usize != args.len() {
            return Err(format!("takes {} operands, has {}", op.arity(), args.len()));
        }
        let mut operands = Operands { w: self, args, stated };
        if matches!(op.effect(), Effect::Partial | Effect::Write) {
            operands.want(0, operands.w.types.mem())?;
        }
        if let Some(own) = operands.check(op)? {
            return Ok(own);
        }
        match op.rule() {
            Rule::Same(i) => Ok(operands.ty(i)),
            Rule::Bool => Ok(self.types.bool()),
            Rule::Truth => {
                let ty = operands.ty(0);
                Ok(self.types.like(ty, Prim::Bool))
            }
            Rule::Mem => Ok(self.types.mem()),
            Rule::Stated => stated.ok_or_else(|| "needs a type".into()),
            Rule::Own => Err("has no type rule".into()),
        }
    }
}

/// Operands of an operation that is about to be made.
struct Operands<'a> {
    w: &'a mut World,
    args: &'a [Val],
    stated: Option<Ty>,
}

impl Operands<'_> {
    #[inline]
    fn ty(&self, i: usize) -> Ty {
        self.w.ty(self.args[i])
    }

    fn show(&self, ty: Ty) -> String {
        self.w.types.display(ty)
    }

    /// Describes operand `i` in messages.
    #[cold]
    fn is_of(&self, i: usize) -> String {
        format!("operand {i} is {}", self.show(self.ty(i)))
    }

    #[cold]
    fn is_not(&self, i: usize, ty: Ty) -> String {
        format!("{}, expected {}", self.is_of(i), self.show(ty))
    }

    #[inline]
    fn want(&self, i: usize, ty: Ty) -> Result<(), String> {
        if self.ty(i) == ty { Ok(()) } else { Err(self.is_not(i, ty)) }
    }

    /// The type of a number or bool, or of a vector's lanes.
    #[inline]
    fn prim(&self, i: usize) -> Result<Prim, String> {
        self.w.types.lane_prim(self.ty(i)).ok_or_else(|| self.is_of(i))
    }

    fn is_int(&self, i: usize) -> bool {
        self.w.types.as_prim(self.ty(i)).is_some_and(Prim::is_int)
    }

    fn pointee(&self, i: usize) -> Result<Ty, String> {
        self.w.types.pointee(self.ty(i)).ok_or_else(|| self.is_of(i))
    }

    #[inline]
    fn check(&mut self, op: Op) -> Own {
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::Shl | Op::Shr => self.check_arithmetic(op),
            Op::And | Op::Or | Op::Xor | Op::PDiv | Op::PRem => self.check_arithmetic(op),
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => self.check_comparison(),
            Op::Cast | Op::Select | Op::Bits => self.check_conversion(op),
            Op::Tuple | Op::Struct | Op::Array | Op::Splat => self.check_whole(op),
            Op::Extract | Op::Insert | Op::Shuffle => self.check_parts(op),
            Op::Lea | Op::Aligned | Op::Restrict => self.check_address(op),
            Op::Load | Op::Store | Op::Slot | Op::Alloc | Op::Prefetch | Op::Scope => self.check_memory(op),
            Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
                self.check_atomic(op)
            }
            Op::Popcount | Op::Clz | Op::Ctz | Op::Pext | Op::Pdep => self.check_bits(op),
            _ if op.is_math() => self.check_math(op),
            _ => Ok(None),
        }
    }

    #[inline]
    fn check_arithmetic(&self, op: Op) -> Own {
        match op {
            Op::And | Op::Or | Op::Xor => {
                self.want(1, self.ty(0))?;
                if self.prim(0)?.is_float() {
                    return Err("operands are floats".into());
                }
            }
            Op::PDiv | Op::PRem => {
                self.want(2, self.ty(1))?;
                if !self.prim(1)?.is_int() {
                    return Err(format!("operands are {}", self.show(self.ty(1))));
                }
            }
            _ => {
                self.want(1, self.ty(0))?;
                let prim = self.prim(0)?;
                if prim == Prim::Bool || (matches!(op, Op::Shl | Op::Shr) && prim.is_float()) {
                    return Err(format!("operands are {}", self.show(self.ty(0))));
                }
            }
        }
        Ok(None)
    }

    fn check_comparison(&self) -> Own {
        self.want(1, self.ty(0))?;
        match self.w.types.kind(self.ty(0)) {
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Ptr { .. } => Ok(None),
            _ => Err(format!("cannot compare {}", self.show(self.ty(0)))),
        }
    }

    /// Checks casts, vectors of bools as integers, and `select`.
    fn check_conversion(&self, op: Op) -> Own {
        let types = &self.w.types;
        match op {
            Op::Cast => {
                self.prim(0)?;
                let is_cast = |&t: &Ty| types.same_lanes(t, self.ty(0));
                self.stated.filter(is_cast).ok_or("not a cast to as many numbers")?;
            }
            Op::Bits => {
                let bools = types.as_vector(self.ty(0)).is_some_and(|(lane, _)| lane == Prim::Bool);
                if !bools || !self.stated.is_some_and(|t| types.as_prim(t).is_some_and(Prim::is_int)) {
                    return Err("makes an integer of a vector of bools".into());
                }
            }
            _ => {
                self.want(2, self.ty(1))?;
                let by_lane = self.prim(0)? == Prim::Bool && types.same_lanes(self.ty(0), self.ty(1));
                if self.ty(0) != types.bool() && !by_lane {
                    return Err(format!("cannot select {} by {}", self.show(self.ty(1)), self.show(self.ty(0))));
                }
            }
        }
        Ok(None)
    }

    /// Checks operations that make tuples, structs, arrays and vectors of their parts.
    fn check_whole(&mut self, op: Op) -> Own {
        let types = &self.w.types;
        match op {
            Op::Tuple => {
                let tys: Vec<Ty> = (0..self.args.len()).map(|i| self.ty(i)).collect();
                return Ok(Some(self.w.types.tuple(&tys)));
            }
            Op::Splat => {
                let is_array = |&t: &Ty| matches!(types.kind(t), TyKind::Array(..) | TyKind::Vector(..));
                let to = self.stated.filter(is_array).ok_or("needs the type of an array or vector")?;
                self.want(0, types.part(to, 0).ok_or("not an array")?)?;
            }
            _ => {
                let to = self.stated.ok_or("needs a type")?;
                if types.n_parts(to) != Some(self.args.len() as u64) {
                    return Err(format!("{} parts for {}", self.args.len(), self.show(to)));
                }
                for i in 0..self.args.len() {
                    self.want(i, types.part(to, i as u64).ok_or("no such part")?)?;
                }
            }
        }
        Ok(None)
    }

    fn check_parts(&mut self, op: Op) -> Own {
        let types = &self.w.types;
        if op == Op::Shuffle {
            self.want(1, self.ty(0))?;
            let lanes = |i: usize| types.as_vector(self.ty(i)).ok_or_else(|| format!("operand {i} is no vector"));
            let (prim, _) = lanes(0)?;
            let (idx, n) = lanes(2)?;
            if !idx.is_int() {
                return Err("the indices are no integers".into());
            }
            return Ok(Some(self.w.types.vector(prim, n)));
        }
        let part = if types.as_vector(self.ty(0)).is_some() {
            if !self.is_int(1) {
                return Err("the index is no integer".into());
            }
            let prim = self.prim(0)?;
            self.w.types.prim(prim)
        } else {
            let idx = self.w.as_lit(self.args[1]).ok_or("the index is not a literal")?;
            let n = types.n_parts(self.ty(0)).ok_or_else(|| format!("{} has no parts", self.show(self.ty(0))))?;
            if idx >= n {
                return Err(format!("part {idx} of {n}"));
            }
            types.part(self.ty(0), idx).ok_or("no such part")?
        };
        if op == Op::Extract {
            return Ok(Some(part));
        }
        self.want(2, part)?;
        Ok(None)
    }

    #[inline]
    fn check_address(&mut self, op: Op) -> Own {
        match op {
            Op::Lea => {
                let TyKind::Ptr { pointee, space } = *self.w.types.kind(self.ty(0)) else {
                    return Err(self.is_of(0));
                };
                if !self.is_int(1) {
                    return Err("the index is no integer".into());
                }
                let idx = match self.w.types.kind(pointee) {
                    TyKind::Array(..) | TyKind::IndefArray(_) | TyKind::Vector(..) => 0,
                    _ => self.w.as_lit(self.args[1]).ok_or("the index is not a literal")?,
                };
                let part = self.w.types.part(pointee, idx).ok_or("no such part")?;
                return Ok(Some(self.w.types.intern(TyKind::Ptr { pointee: part, space })));
            }
            Op::Restrict => {
                self.pointee(0)?;
                if !self.is_int(1) || self.w.as_lit(self.args[2]).is_none_or(|kind| kind > 1) {
                    return Err("takes a scope and a kind, 0 or 1".into());
                }
            }
            _ => {
                self.pointee(0)?;
                if !self.is_int(1) {
                    return Err("the alignment is no integer".into());
                }
            }
        }
        Ok(None)
    }

    fn check_memory(&mut self, op: Op) -> Own {
        match op {
            Op::Load => return self.pointee(1).map(Some),
            Op::Store => self.want(2, self.pointee(1)?)?,
            Op::Prefetch => {
                self.pointee(1)?;
                if let Some(i) = [2, 3].into_iter().find(|&i| self.w.types.as_prim(self.ty(i)) != Some(Prim::I32)) {
                    return Err(self.is_of(i));
                }
            }
            Op::Scope => {
                let types = &mut self.w.types;
                let pair = [types.mem(), types.i32()];
                return Ok(Some(types.tuple(&pair)));
            }
            _ => {
                let mut elem = self.stated.ok_or("needs a type")?;
                if op == Op::Alloc {
                    self.want(1, self.w.types.i64())?;
                    elem = self.w.types.indef_array(elem);
                }
                let types = &mut self.w.types;
                let pair = [types.mem(), types.ptr(elem)];
                return Ok(Some(types.tuple(&pair)));
            }
        }
        Ok(None)
    }

    fn check_atomic(&mut self, op: Op) -> Own {
        let numbers = op.literal_operands().chain((op == Op::Atomic).then_some(1));
        if let Some(i) = numbers.into_iter().find(|&i| !self.is_int(i)) {
            return Err(self.is_of(i));
        }
        if let Some(scope) = op.scope_operand()
            && !self.is_int(scope)
        {
            self.pointee(scope)?;
        }
        if op == Op::Fence {
            return Ok(None);
        }
        let to = self.pointee(op.writes().map_or(1, |w| w.0))?;
        if !self.w.types.is_atomic(to) {
            return Err(format!("{} is not atomic", self.show(to)));
        }
        if let Some((_, written)) = op.writes() {
            self.want(written, to)?;
        }
        let found = match op {
            Op::AtomicStore => return Ok(None),
            Op::Cmpxchg | Op::CmpxchgWeak => {
                self.want(2, to)?;
                let bool = self.w.types.bool();
                self.w.types.tuple(&[to, bool])
            }
            _ => to,
        };
        let mem = self.w.types.mem();
        Ok(Some(self.w.types.tuple(&[mem, found])))
    }

    fn check_bits(&self, op: Op) -> Own {
        if matches!(op, Op::Pext | Op::Pdep) {
            self.want(1, self.ty(0))?;
        }
        if self.prim(0)?.is_int() { Ok(None) } else { Err(self.is_of(0)) }
    }

    fn check_math(&self, op: Op) -> Own {
        match op {
            Op::Fmin | Op::Fmax | Op::Copysign | Op::Pow | Op::Atan2 => self.want(1, self.ty(0))?,
            Op::Rcp | Op::Rsqrt if self.prim(0)? != Prim::F32 => return Err(self.is_of(0)),
            Op::Rcp14 | Op::Rsqrt14 if self.prim(0)? == Prim::F16 => return Err(self.is_of(0)),
            Op::Fma => {
                self.want(1, self.ty(0))?;
                self.want(2, self.ty(0))?;
            }
            _ => {}
        }
        if self.prim(0)?.is_float() { Ok(None) } else { Err(self.is_of(0)) }
    }
}

//! Conversions of values, those that C makes by itself and those that are written.

use super::*;

/// The most values that become the same in all lanes at once.
const MAX_BROADCAST: u64 = 1 << 14;

impl<'s> Lowerer<'s, '_> {
    /// The value of an expression: what lies in memory is read, and an array becomes the address of its first element.
    pub(super) fn read(&mut self, value: Value, span: Span) -> Lowered<(Val, Ty)> {
        match value {
            Value::Plain(val, ty) => Ok((val, ty)),
            Value::Lanes(lanes) => self.gather(&lanes, span),
            Value::Soa(place) => self.read_soa(place, span),
            Value::Parts(places, ty) => {
                let mut vals = Vec::new();
                let mut of = Types::ERROR;
                for place in places {
                    let (val, ty) = self.read(place, span)?;
                    of = ty;
                    vals.push(val);
                }
                let n = self.types.as_short(ty).map_or(1, |s| s.1);
                let ty = self.types.short(of, n);
                Ok((self.of_parts(&vals, ty), ty))
            }
            Value::Place(Variable { address, ty, is_const }) => match *self.types.kind(ty) {
                Kind::Array(of, _) => {
                    let ty = self.types.pointer(of, is_const);
                    Ok((self.retyped(address, ty), ty))
                }
                _ => match self.values.get(&address) {
                    Some(&val) => Ok((val, ty)),
                    None => Ok((self.load(address, span)?, ty)),
                },
            },
        }
    }

    /// An address as another pointer.
    pub(super) fn retyped(&mut self, address: Val, ty: Ty) -> Val {
        let ir = self.types.ir(ty, self.w);
        if self.w.ty(address) == ir { address } else { self.w.op_ty(Op::Bitcast, ir, &[address]) }
    }

    /// The value as C converts it by itself.
    pub(super) fn convert(&mut self, (val, from): (Val, Ty), to: Ty, span: Span) -> Lowered<Val> {
        if from == to || from == Types::ERROR || to == Types::ERROR {
            return Ok(val);
        }
        match (self.types.lanes(from), self.types.lanes(to)) {
            (None, Some(_)) => {
                let lane = self.types.lane(to);
                let val = self.convert((val, from), lane, span)?;
                if self.types.n_parts(to) > MAX_BROADCAST {
                    let what = "structs with long arrays in all lanes";
                    return Err(Box::new(limitation::not_supported(span, what, "copy the elements one by one")));
                }
                return Ok(self.broadcast(val, lane, to));
            }
            (Some(_), None) if to != Types::VOID => {
                let [from, to] = [from, to].map(|ty| self.types.show(ty));
                return Err(Box::new(sierra_lanes::varying(span, &from, &to)));
            }
            (Some(a), Some(b)) if a != b => {
                let [from, to] = [from, to].map(|ty| self.types.show(ty));
                return Err(Box::new(sierra_lanes::mismatch(span, &from, &to)));
            }
            _ => {}
        }
        if self.types.as_short(to).is_some() {
            return self.convert_short((val, from), to, span);
        }
        if let Some(made) = self.convert_slice((val, from), to, span)? {
            return Ok(made);
        }
        match (self.types.kind(from).clone(), self.types.kind(to).clone()) {
            (Kind::Varying(..), Kind::Varying(..)) => Ok(self.number(val, to)),
            (Kind::VaryingPointer { .. }, Kind::Varying(Prim::Bool, _)) => Ok(self.is_not_null(val)),
            (
                Kind::VaryingPointer { to: a, is_const: from_const, .. },
                Kind::VaryingPointer { to: b, is_const: to_const, .. },
            ) if (a == b || b == Types::VOID) && (to_const || !from_const) => Ok(val),
            (Kind::VaryingPointer { .. }, Kind::VaryingPointer { .. }) => {
                Err(Box::new(sierra_type::needs_cast(span, &self.types.show(from), &self.types.show(to))))
            }
            (Kind::Prim(_), Kind::Prim(_)) => Ok(self.number(val, to)),
            (Kind::Function(_), Kind::Prim(Prim::Bool)) | (Kind::VaryingFunction(..), Kind::Varying(Prim::Bool, _)) => {
                Ok(self.is_not_null(val))
            }
            (Kind::Prim(Prim::I32), Kind::Function(_)) if self.w.as_lit(val) == Some(0) => Ok(self.null(to)),
            (Kind::Pointer { to: Types::VOID, .. }, Kind::Function(_)) if self.w.as_lit(val) == Some(0) => {
                Ok(self.null(to))
            }
            (Kind::Pointer { .. }, Kind::Prim(Prim::Bool)) => Ok(self.is_not_null(val)),
            (Kind::Prim(Prim::I32), Kind::Pointer { .. }) if self.w.as_lit(val) == Some(0) => Ok(self.null(to)),
            (Kind::Pointer { to: a, is_const: from_const }, Kind::Pointer { to: b, is_const: to_const }) => {
                let is_null = a == Types::VOID && self.w.as_lit(val) == Some(0);
                let fits = (a == b || b == Types::VOID) && (to_const || !from_const);
                if is_null {
                    Ok(self.null(to))
                } else if fits {
                    Ok(self.retyped(val, to))
                } else {
                    Err(Box::new(sierra_type::needs_cast(span, &self.types.show(from), &self.types.show(to))))
                }
            }
            (Kind::Prim(from_prim), Kind::Pointer { .. }) if from_prim.is_int() => {
                Err(Box::new(sierra_type::needs_cast(span, &self.types.show(from), &self.types.show(to))))
            }
            (Kind::Pointer { .. }, Kind::Prim(prim)) if prim.is_int() => {
                Err(Box::new(sierra_type::needs_cast(span, &self.types.show(from), &self.types.show(to))))
            }
            _ => {
                let expected = format!("`{}`", self.types.show(to));
                Err(Box::new(sierra_type::mismatch(span, &self.types.show(from), &expected)))
            }
        }
    }

    /// The value as a cast converts it.
    pub(super) fn cast(&mut self, (val, from): (Val, Ty), to: Ty, span: Span) -> Lowered<Val> {
        if self.types.as_short(to).is_some() || self.types.as_short(from).is_some() {
            return self.convert((val, from), to, span);
        }
        if self.types.as_slice(to).is_some() || self.types.as_slice(from).is_some() {
            return self.cast_slice((val, from), to, span);
        }
        match (self.types.kind(from).clone(), self.types.kind(to).clone()) {
            (_, Kind::Void) => Ok(self.w.unit()),
            (_, Kind::Varying(..) | Kind::VaryingPointer { .. }) if !self.types.is_varying(from) => {
                let lane = self.types.lane(to);
                let val = self.cast((val, from), lane, span)?;
                Ok(self.broadcast(val, lane, to))
            }
            (Kind::Varying(_, a), Kind::Varying(_, b)) if a == b => Ok(self.number(val, to)),
            (Kind::VaryingPointer { n: a, .. }, Kind::VaryingPointer { n: b, .. }) if a == b => Ok(val),
            (Kind::Pointer { .. }, Kind::Pointer { .. }) => Ok(self.retyped(val, to)),
            (Kind::Pointer { .. }, Kind::Prim(prim)) if prim.is_int() => {
                let address = self.w.types.prim(Prim::U64);
                let bits = self.w.op_ty(Op::Bitcast, address, &[val]);
                Ok(self.number(bits, to))
            }
            (Kind::Prim(prim), Kind::Pointer { .. }) if prim.is_int() => {
                let wide = self.w.types.prim(if prim.is_signed() { Prim::I64 } else { Prim::U64 });
                let bits = self.w.op_ty(Op::Cast, wide, &[val]);
                let ir = self.types.ir(to, self.w);
                Ok(self.w.op_ty(Op::Bitcast, ir, &[bits]))
            }
            (Kind::Prim(_), Kind::Prim(_)) => Ok(self.number(val, to)),
            _ if from == to => Ok(val),
            _ if from == Types::ERROR || to == Types::ERROR => Ok(val),
            _ => Err(Box::new(sierra_type::cast(span, &self.types.show(from), &self.types.show(to)))),
        }
    }

    fn number(&mut self, val: Val, to: Ty) -> Val {
        let ir = self.types.ir(to, self.w);
        if self.w.ty(val) == ir { val } else { self.w.op_ty(Op::Cast, ir, &[val]) }
    }

    pub(super) fn null(&mut self, pointer: Ty) -> Val {
        let ir = self.types.ir(pointer, self.w);
        self.w.lit(ir, 0)
    }

    fn is_not_null(&mut self, val: Val) -> Val {
        let ty = self.w.ty(val);
        let null = self.w.lit(ty, 0);
        self.w.op(Op::Ne, &[val, null])
    }

    /// The value as a condition, with lanes if it has them.
    pub(super) fn truth(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<Val> {
        match *self.types.kind(ty) {
            Kind::Error => Ok(self.w.lit_bool(true)),
            Kind::Prim(_) | Kind::Pointer { .. } | Kind::Function(_) => {
                let bool = self.types.prim(Prim::Bool);
                self.convert((val, ty), bool, span)
            }
            Kind::Struct(_) if self.types.as_slice(ty).is_some() => {
                let block = self.w.extract(val, 0);
                let ty = self.types.fields(ty)[0];
                self.truth((block, ty), span)
            }
            Kind::Varying(_, n) | Kind::VaryingPointer { n, .. } | Kind::VaryingFunction(_, n) => {
                let bool = self.types.prim(Prim::Bool);
                let bools = self.with_lanes(bool, n, span)?;
                self.convert((val, ty), bools, span)
            }
            _ => Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "a condition"))),
        }
    }

    /// A number's type, or that of its lanes, and how many there are.
    pub(super) fn number_type(&self, ty: Ty) -> Option<(Prim, Option<u32>)> {
        match *self.types.kind(ty) {
            Kind::Prim(prim) => Some((prim, None)),
            Kind::Varying(prim, n) => Some((prim, Some(n))),
            _ => None,
        }
    }

    /// A type of numbers, with lanes if a number of them is given.
    pub(super) fn numbers(&mut self, prim: Prim, n: Option<u32>) -> Ty {
        let ty = self.types.prim(prim);
        n.and_then(|n| self.types.varying(ty, n, self.w)).unwrap_or(ty)
    }

    /// The type in which C computes with a number: at least `int`.
    pub(super) fn promoted(&mut self, prim: Prim) -> Prim {
        let is_wide = prim.bits() >= 32 || self.is_ispc && prim != Prim::Bool;
        if prim.is_float() || is_wide { prim } else { Prim::I32 }
    }

    /// The type in which C computes with two numbers.
    pub(super) fn common(&mut self, a: Prim, b: Prim) -> Prim {
        if let Some(float) = [Prim::F64, Prim::F32, Prim::F16].into_iter().find(|f| *f == a || *f == b) {
            return float;
        }
        let (a, b) = (self.promoted(a), self.promoted(b));
        match a.bits().cmp(&b.bits()) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal if a.is_signed() => b,
            std::cmp::Ordering::Equal => a,
        }
    }

    /// The value of an integer that the compiler can compute.
    pub(super) fn constant_int(&mut self, e: &Expr<'s>) -> Lowered<i64> {
        let was_constant = std::mem::replace(&mut self.is_constant, true);
        let value = self.value(e);
        self.is_constant = was_constant;
        let (mut val, mut ty) = value?;
        if self.is_ispc && self.types.is_varying(ty) && self.w.is_op(val, Op::Splat) {
            // A constant is the same in all lanes.
            (val, ty) = (self.w.args(val)[0], self.types.lane(ty));
        }
        let bits = self.w.as_lit(val).filter(|_| self.types.as_prim(ty).is_some_and(|p| !p.is_float()));
        match bits {
            Some(bits) => Ok(bits as i64),
            None if ty == Types::ERROR => Ok(1),
            None => Err(Box::new(sierra_constant::error(e.span))),
        }
    }
}

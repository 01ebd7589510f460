//! `soa<n>` of ISPC's dialect: of `n` elements of a struct, each field lies side by side.
//!
//! An array of them is one of blocks, each a struct of arrays: element `i` is number `i % n` of block `i / n`. The index of an element within its block comes
//! last on the way to a field, so it goes along until a field is reached that has no parts.

use super::*;

/// An element, or a part of it that has parts: where it is in its block, and which element.
#[derive(Clone, Copy)]
pub(super) struct SoaPlace {
    pub address: Val,
    pub minor: Val,
    pub ty: Ty,
    pub is_const: bool,
}

/// The most values of an element that are read or written at once.
const MAX_PARTS: u64 = 1024;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn soa_type(&mut self, of: Ty, n: u32, span: Span) -> Lowered<Ty> {
        self.complete(of, span)?;
        let made = if self.types.as_struct(of).is_some() { self.types.soa(of, n, self.w) } else { None };
        made.ok_or_else(|| Box::new(sierra_lanes::no_soa_of(span, n, &self.types.show(of))))
    }

    /// An element behind the address of the first block.
    pub(super) fn element_of_soa(
        &mut self,
        (base, soa, is_const): (Val, Ty, bool),
        index: (Val, Ty),
        spans: [Span; 2],
    ) -> Lowered<Value> {
        let [span, of_index] = spans;
        let Kind::Soa { of, n, .. } = *self.types.kind(soa) else { return Ok(Value::Plain(base, Types::ERROR)) };
        let lanes = self.types.lanes(index.1);
        let index = self.index(index, of_index)?;
        self.w.set_origin(span);
        let ir = self.w.ty(index);
        let (shift, rest) = (self.w.lit(ir, n.trailing_zeros().into()), self.w.lit(ir, u64::from(n) - 1));
        let major = self.w.op(Op::Shr, &[index, shift]);
        let minor = self.w.op(Op::And, &[index, rest]);
        Ok(match lanes {
            None => {
                let address = self.w.op(Op::Lea, &[base, major]);
                Value::Soa(SoaPlace { address, minor, ty: of, is_const })
            }
            Some(lanes) => Value::Lanes(Lanes {
                at: At::Index(base, major),
                n: lanes,
                base: soa,
                steps: Vec::new(),
                minor: Some(minor),
                ty: of,
                is_const,
            }),
        })
    }

    fn has_parts(&self, ty: Ty) -> bool {
        matches!(self.types.kind(ty), Kind::Struct(_) | Kind::Array(..) | Kind::Short(..))
    }

    /// A part of an element.
    pub(super) fn part_of_soa(&mut self, place: SoaPlace, number: Val, ty: Ty) -> Value {
        let address = self.w.op(Op::Lea, &[place.address, number]);
        if self.has_parts(ty) {
            return Value::Soa(SoaPlace { address, ty, ..place });
        }
        let address = self.w.op(Op::Lea, &[address, place.minor]);
        Value::Place(Variable { address, ty, is_const: place.is_const })
    }

    /// A part of what each lane's address leads to.
    pub(super) fn part_of_lanes(&mut self, mut lanes: Lanes, step: Step, ty: Ty) -> Lanes {
        lanes.steps.push(step);
        if let Some(minor) = lanes.minor.filter(|_| !self.has_parts(ty)) {
            lanes.steps.push(Step::Lane(minor));
            lanes.minor = None;
        }
        Lanes { ty, ..lanes }
    }

    /// The types of the parts of an element.
    pub(super) fn soa_parts(&mut self, ty: Ty, span: Span) -> Lowered<Vec<Ty>> {
        if self.n_parts(ty) > MAX_PARTS {
            let what = "values of `soa<n>` structs with long arrays";
            return Err(Box::new(limitation::not_supported(span, what, "use the elements one by one")));
        }
        Ok(match *self.types.kind(ty) {
            Kind::Array(of, n) | Kind::Short(of, n) => vec![of; n as usize],
            _ => self.types.fields(ty),
        })
    }

    pub(super) fn of_parts(&mut self, parts: &[Val], ty: Ty) -> Val {
        let ir = self.types.ir(ty, self.w);
        let op = if self.types.as_struct(ty).is_some() { Op::Struct } else { Op::Array };
        self.w.op_ty(op, ir, parts)
    }

    pub(super) fn read_soa(&mut self, place: SoaPlace, span: Span) -> Lowered<(Val, Ty)> {
        let mut vals = Vec::new();
        for (i, ty) in self.soa_parts(place.ty, span)?.into_iter().enumerate() {
            let number = self.w.lit_i64(i as i64);
            let val = match self.part_of_soa(place, number, ty) {
                Value::Soa(inner) => self.read_soa(inner, span)?.0,
                Value::Place(inner) => self.load(inner.address, span)?,
                _ => continue,
            };
            vals.push(val);
        }
        Ok((self.of_parts(&vals, place.ty), place.ty))
    }

    pub(super) fn write_soa(&mut self, place: SoaPlace, val: Val, span: Span) -> Lowered<()> {
        for (i, ty) in self.soa_parts(place.ty, span)?.into_iter().enumerate() {
            let number = self.w.lit_i64(i as i64);
            let part = self.w.extract(val, i as u64);
            match self.part_of_soa(place, number, ty) {
                Value::Soa(inner) => self.write_soa(inner, part, span)?,
                Value::Place(inner) => self.store(inner.address, part, span)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn no_pointer_into_soa(span: Span) -> Box<Diagnostic> {
        let hint = "keep the array and the index";
        Box::new(limitation::not_supported(span, "pointers to elements of `soa<n>` values", hint))
    }
}

//! `soa<n>` of ISPC's dialect: of `n` elements of a struct, each field lies side by side.
//!
//! An array of them is one of blocks, each a struct of arrays: element `i` is number `i % n` of block `i / n`. The index of an element within its block comes
//! last on the way to a field, so it goes along until a field is reached that has no parts.
//!
//! A pointer to an element, a **slice**, is the address of a block and the number of an element from there on; all other types of pointers are addresses. It has
//! lanes as structs have them. What an address leads to whole blocks, as a parameter of a function that other code calls, is a slice whose number is 0.

use super::*;

/// An element, or a part of it that has parts: where it is in its block, and which element.
#[derive(Clone, Copy)]
pub(super) struct SoaPlace {
    pub address: Val,
    pub minor: Val,
    /// The elements of a block.
    pub n: u32,
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
                Value::Soa(SoaPlace { address, minor, n, ty: of, is_const })
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
        if self.types.n_parts(ty) > MAX_PARTS {
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

    // Pointers to elements.

    /// A pointer to a type, by which elements of `soa<n>` are reached one by one.
    pub(super) fn pointer_to(&mut self, to: Ty, is_const: bool) -> Ty {
        match self.types.kind(to) {
            Kind::Soa { .. } => self.types.slice(to, is_const, self.w),
            _ => self.types.pointer(to, is_const),
        }
    }

    /// A slice as what other code knows: the address of a block.
    pub(super) fn address_type(&mut self, ty: Ty, span: Span) -> Lowered<Ty> {
        let Some((soa, is_const)) = self.types.as_slice(ty) else { return Ok(ty) };
        let pointer = self.types.pointer(soa, is_const);
        match self.types.lanes(ty) {
            Some(n) => self.with_lanes(pointer, n, span),
            None => Ok(pointer),
        }
    }

    /// Other code does not know slices: no struct that it gets to see has one.
    pub(super) fn check_no_slices(&mut self, types: &[Ty], span: Span) -> Lowered<()> {
        let (mut open, mut seen) = (types.to_vec(), FxHashSet::default());
        while let Some(ty) = open.pop() {
            if self.types.as_slice(ty).is_some() {
                let hint = "pass the array as a parameter of its own";
                let what = "pointers to `soa<n>` values in structs that other code knows";
                return Err(Box::new(limitation::not_supported(span, what, hint)));
            }
            match *self.types.kind(ty) {
                Kind::Pointer { to, .. } | Kind::Reference { to, .. } | Kind::Array(to, _) if seen.insert(to) => {
                    open.push(to);
                }
                Kind::Struct(_) => {
                    let fields = self.types.as_struct(ty).and_then(|s| s.fields.as_ref());
                    open.extend(fields.into_iter().flatten().map(|f| f.ty).filter(|&ty| seen.insert(ty)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn soa_behind(&self, ty: Ty) -> Option<(Ty, bool)> {
        match *self.types.kind(ty) {
            Kind::Pointer { to, is_const } | Kind::VaryingPointer { to, is_const, .. } => {
                matches!(self.types.kind(to), Kind::Soa { .. }).then_some((to, is_const))
            }
            _ => self.types.as_slice(ty),
        }
    }

    /// An address of blocks as a slice; other values are what they were.
    pub(super) fn as_slice(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<(Val, Ty)> {
        let Some((soa, is_const)) = self.soa_behind(ty).filter(|_| self.types.as_slice(ty).is_none()) else {
            return Ok((val, ty));
        };
        let mut slice = self.types.slice(soa, is_const, self.w);
        if let Some(n) = self.types.lanes(ty) {
            slice = self.with_lanes(slice, n, span)?;
        }
        let number = self.types.fields(slice)[1];
        let zero = self.zero(number);
        Ok((self.of_parts(&[val, zero], slice), slice))
    }

    /// The element that a slice leads to, or the one `index` further on.
    pub(super) fn element_of_slice(
        &mut self,
        slice: (Val, Ty),
        index: Option<(Val, Ty)>,
        span: Span,
    ) -> Lowered<Value> {
        let Some((soa, is_const)) = self.types.as_slice(slice.1) else {
            return Ok(Value::Plain(slice.0, Types::ERROR));
        };
        let Some(lanes) = self.types.lanes(slice.1) else {
            let long = self.types.prim(Prim::I64);
            let block = self.w.extract(slice.0, 0);
            let mut number = (self.w.extract(slice.0, 1), long);
            if let Some(index) = index {
                let is_zero = self.w.as_lit(number.0) == Some(0);
                number = if is_zero { index } else { self.sum_of_numbers(number, index, false, span)? };
            }
            return self.element_of_soa((block, soa, is_const), number, [span; 2]);
        };
        let slice = match index {
            Some(index) => self.moved_slice(slice, index, false, span)?,
            None => slice,
        };
        let Kind::Soa { of, n, .. } = *self.types.kind(soa) else { return Ok(Value::Plain(slice.0, Types::ERROR)) };
        let (block, number) = (self.w.extract(slice.0, 0), self.w.extract(slice.0, 1));
        self.w.set_origin(span);
        let ir = self.w.ty(number);
        let (shift, rest) = (self.w.lit(ir, n.trailing_zeros().into()), self.w.lit(ir, u64::from(n) - 1));
        let major = self.w.op(Op::Shr, &[number, shift]);
        let minor = self.w.op(Op::And, &[number, rest]);
        let size = self.size(soa, span)?.0;
        let size = self.w.as_lit(size).unwrap_or(1);
        let size = self.w.lit(ir, size);
        let bytes = self.w.op(Op::Mul, &[major, size]);
        let words = self.w.ty(block);
        let bytes = self.w.op_ty(Op::Cast, words, &[bytes]);
        let at = At::Addresses(self.w.op(Op::Add, &[block, bytes]));
        let (base, steps, minor) = (soa, Vec::new(), Some(minor));
        Ok(Value::Lanes(Lanes { at, n: lanes, base, steps, minor, ty: of, is_const }))
    }

    fn sum_of_numbers(&mut self, a: (Val, Ty), b: (Val, Ty), is_back: bool, span: Span) -> Lowered<(Val, Ty)> {
        let lanes = self.common_lanes(a.1, b.1, span)?;
        let long = self.numbers(Prim::I64, lanes);
        let vals = [self.convert(a, long, span)?, self.convert(b, long, span)?];
        let op = if is_back { Op::Sub } else { Op::Add };
        Ok((self.arithmetic(op, Prim::I64, lanes, vals), long))
    }

    /// A slice, `index` elements further on, or back.
    pub(super) fn moved_slice(
        &mut self,
        (val, ty): (Val, Ty),
        index: (Val, Ty),
        is_back: bool,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        if self.number_type(index.1).is_none_or(|(prim, _)| prim.is_float()) {
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(index.1), "an integer")));
        }
        let lanes = self.common_lanes(ty, index.1, span)?;
        let to = match lanes {
            Some(n) => self.with_lanes(ty, n, span)?,
            None => ty,
        };
        let val = self.broadcast(val, ty, to);
        let long = self.numbers(Prim::I64, lanes);
        let (block, number) = (self.w.extract(val, 0), self.w.extract(val, 1));
        let number = self.sum_of_numbers((number, long), index, is_back, span)?.0;
        Ok((self.of_parts(&[block, number], to), to))
    }

    /// Comparisons, differences and sums of slices. `None`: neither is one.
    pub(super) fn binary_of_slices(
        &mut self,
        operator: Binary,
        is_comparison: bool,
        left: (Val, Ty),
        right: (Val, Ty),
        span: Span,
    ) -> Lowered<Option<(Val, Ty)>> {
        let behind = [left, right].map(|v| self.soa_behind(v.1).map(|s| s.0));
        let soa = match behind {
            [None, None] => return Ok(None),
            [Some(a), Some(b)] if a == b && (is_comparison || operator == Binary::Sub) => a,
            [Some(_), None] if self.number_type(right.1).is_some() && matches!(operator, Binary::Add | Binary::Sub) => {
                let slice = self.as_slice(left, span)?;
                return self.moved_slice(slice, right, operator == Binary::Sub, span).map(Some);
            }
            [None, Some(_)] if self.number_type(left.1).is_some() && operator == Binary::Add => {
                let slice = self.as_slice(right, span)?;
                return self.moved_slice(slice, left, false, span).map(Some);
            }
            // `p == NULL`
            [Some(soa), None] if is_comparison && self.w.as_lit(right.0) == Some(0) => soa,
            [None, Some(soa)] if is_comparison && self.w.as_lit(left.0) == Some(0) => soa,
            _ => return Err(self.no_operands(operator, left.1, right.1, span)),
        };
        let lanes = self.common_lanes(left.1, right.1, span)?;
        let long = self.numbers(Prim::I64, lanes);
        let mut sides = Vec::new();
        for side in [left, right] {
            let (val, ty) = self.as_slice(side, span)?;
            if self.types.as_slice(ty).is_none() {
                let zero = self.zero(long);
                sides.push((zero, zero));
                continue;
            }
            let (block, number) = (self.w.extract(val, 0), self.w.extract(val, 1));
            let own = self.numbers(Prim::I64, self.types.lanes(ty));
            let ir = self.types.ir(own, self.w);
            let word = self.w.op_ty(if self.types.is_varying(ty) { Op::Cast } else { Op::Bitcast }, ir, &[block]);
            sides.push((self.convert((word, own), long, span)?, self.convert((number, own), long, span)?));
        }
        let Kind::Soa { n, .. } = *self.types.kind(soa) else { return Ok(None) };
        let ir = self.types.ir(long, self.w);
        let bytes = self.w.op(Op::Sub, &[sides[0].0, sides[1].0]);
        let size = self.size(soa, span)?.0;
        let size = self.w.as_lit(size).unwrap_or(1);
        let (size, n) = (self.w.lit(ir, size), self.w.lit(ir, n.into()));
        let blocks = self.w.op(Op::Div, &[bytes, size]);
        let of_blocks = self.w.op(Op::Mul, &[blocks, n]);
        let numbers = self.w.op(Op::Sub, &[sides[0].1, sides[1].1]);
        let distance = self.w.op(Op::Add, &[of_blocks, numbers]);
        if !is_comparison {
            return Ok(Some((distance, long)));
        }
        let zero = self.w.lit(ir, 0);
        let bools = self.numbers(Prim::Bool, lanes);
        Ok(Some((self.w.op(operators::comparison(operator), &[distance, zero]), bools)))
    }

    /// Converts to a slice, or from one. `None`: neither is one.
    pub(super) fn convert_slice(&mut self, (val, from): (Val, Ty), to: Ty, span: Span) -> Lowered<Option<Val>> {
        let Some((soa, to_const)) = self.types.as_slice(to) else {
            let Some((soa, from_const)) = self.types.as_slice(from) else { return Ok(None) };
            if self.is_bool(to) {
                let block = self.w.extract(val, 0);
                let ty = self.types.fields(from)[0];
                return self.convert((block, ty), to, span).map(Some);
            }
            if self.soa_behind(to).is_some_and(|(of, is_const)| of == soa && (is_const || !from_const)) {
                let number = self.w.extract(val, 1);
                if self.w.as_lit(number) == Some(0) {
                    return Ok(Some(self.w.extract(val, 0)));
                }
                let hint = "pass the array and the number of the element";
                let what = "pointers to elements of `soa<n>` values as arguments of exported functions";
                return Err(Box::new(limitation::not_supported(span, what, hint)));
            }
            return Ok(None);
        };
        let is_null = match *self.types.kind(from) {
            Kind::Prim(Prim::I32) => true,
            Kind::Pointer { to, .. } => to == Types::VOID,
            _ => false,
        };
        if is_null && self.w.as_lit(val) == Some(0) {
            return Ok(Some(self.zero(to)));
        }
        if self.soa_behind(from).is_none_or(|(of, is_const)| of != soa || is_const && !to_const) {
            return Ok(None);
        }
        let (val, _) = self.as_slice((val, from), span)?;
        let parts = [self.w.extract(val, 0), self.w.extract(val, 1)];
        Ok(Some(self.of_parts(&parts, to)))
    }

    /// A slice becomes another pointer as the address of its element's block; another pointer becomes a slice as that of a block.
    pub(super) fn cast_slice(&mut self, (val, from): (Val, Ty), to: Ty, span: Span) -> Lowered<Val> {
        if let Some(made) = self.convert_slice_or_same((val, from), to, span)? {
            return Ok(made);
        }
        if self.types.as_slice(from).is_some() {
            let (val, ty) = self.block_of((val, from), span)?;
            return self.cast((val, ty), to, span);
        }
        let pointer = self.address_type(to, span)?;
        let val = self.cast((val, from), pointer, span)?;
        let zero = self.types.fields(to)[1];
        let zero = self.zero(zero);
        Ok(self.of_parts(&[val, zero], to))
    }

    fn convert_slice_or_same(&mut self, (val, from): (Val, Ty), to: Ty, span: Span) -> Lowered<Option<Val>> {
        if from == to || to == Types::VOID {
            return Ok(Some(val));
        }
        let same = [from, to].map(|ty| self.types.as_slice(ty).map(|s| s.0));
        if same[0].is_some() && same[0] == same[1] && self.types.lanes(from).is_none() {
            let lane = self.types.lane(to);
            let parts = [self.w.extract(val, 0), self.w.extract(val, 1)];
            let val = self.of_parts(&parts, lane);
            return Ok(Some(self.broadcast(val, lane, to)));
        }
        if same[1].is_some() && self.types.lanes(from) == self.types.lanes(to) {
            return self.convert_slice((val, from), to, span);
        }
        Ok(None)
    }

    /// The address of the block that has a slice's element.
    pub(super) fn block_of(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<(Val, Ty)> {
        let Some((soa, _)) = self.types.as_slice(ty) else { return Ok((val, ty)) };
        let Kind::Soa { n, .. } = *self.types.kind(soa) else { return Ok((val, ty)) };
        let pointer = self.types.fields(ty)[0];
        let long = self.types.fields(ty)[1];
        let (block, number) = (self.w.extract(val, 0), self.w.extract(val, 1));
        let ir = self.w.ty(number);
        let shift = self.w.lit(ir, n.trailing_zeros().into());
        let major = self.w.op(Op::Shr, &[number, shift]);
        self.moved((block, pointer), (major, long), false, span)
    }

    fn is_bool(&self, ty: Ty) -> bool {
        self.number_type(ty).is_some_and(|(prim, _)| prim == Prim::Bool)
    }

    /// The pointer to an element, or to a struct that is a part of one.
    pub(super) fn address_of_soa(&mut self, place: SoaPlace, span: Span) -> Lowered<(Val, Ty)> {
        let soa = self.soa_of_part(place.ty, place.n, span)?;
        let slice = self.types.slice(soa, place.is_const, self.w);
        let pointer = self.types.fields(slice)[0];
        let block = self.retyped(place.address, pointer);
        let ir = self.w.types.i64();
        let minor = if self.w.ty(place.minor) == ir { place.minor } else { self.w.op_ty(Op::Cast, ir, &[place.minor]) };
        Ok((self.of_parts(&[block, minor], slice), slice))
    }

    pub(super) fn soa_of_part(&mut self, ty: Ty, n: u32, span: Span) -> Lowered<Ty> {
        let made = if self.types.as_struct(ty).is_some() { self.types.soa(ty, n, self.w) } else { None };
        made.ok_or_else(|| Self::no_pointer_into_soa(span))
    }

    fn no_pointer_into_soa(span: Span) -> Box<Diagnostic> {
        let hint = "keep the array and the index";
        Box::new(limitation::not_supported(span, "pointers to arrays in elements of `soa<n>` values", hint))
    }
}

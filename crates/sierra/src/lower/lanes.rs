//! SIMD mode: values with lanes, and control flow that depends on them.
//!
//! The design is chapter 5 of the seed. A condition with lanes opens **SIMD mode** of its length. The **current mask**, the lanes that execute, lies in a slot
//! for each region: a branch of an `if`, the body of a loop, a function. What a lane stores is blended with what was there, unless no other lane needs that
//! (`uses.rs`). A branch is jumped over if no lane takes it, since what has no lanes must not happen then; one that is short and changes only lanes is not.
//!
//! `break`, `continue` and `return` of some lanes take these out of the current mask. Behind an `if` its mask is what is left of both branches.
//! A loop notes the lanes that have continued, which come back for the next round; those that have left come back behind the loop, but for lanes that
//! have returned. Where no lane may be left, code goes on at the end of the region.
//!
//! A `switch` has one mask: at each label, its lanes come in, and `break` takes lanes out.
//!
//! A function in which lanes may return one by one has a mask from the beginning: one that is declared `simd(n)`, whose callers pass it, or one whose
//! parameters or result have lanes, for which all of them are active. The latter has a second form, which its callers in SIMD mode use.
//!
//! What lanes read and write at addresses of their own is one access for each; lanes that are not active access a place that is nobody's.

use super::*;
use nyala_ir::layout;

/// The most lanes of a vector in the graph.
pub(super) const MAX_LANES: i64 = 64;
/// The most values that an assignment blends.
const MAX_BLENDED: u64 = 1024;
/// The most terms of an index that are looked at.
const MAX_TERMS: usize = 8;

/// SIMD mode.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    pub n: u32,
    /// The address of the current mask.
    pub mask: Val,
    /// Where code goes on if no lane is active.
    pub end: Cont,
    /// The function has lanes, but did not ask for the mode: as long as all are active, it is none.
    pub is_implicit: bool,
    /// Lanes may have been taken out of the mask since the region began.
    pub has_left: bool,
}

/// Of a function in which lanes return one by one.
#[derive(Clone, Copy)]
pub(super) struct Returned {
    /// The addresses of the mask of lanes that have returned, and of their results.
    pub mask: Val,
    pub value: Option<Val>,
    pub epilogue: Cont,
}

/// A loop that takes lanes in turns: the address of the mask of those that wait, this mask in the body, the first of them, and where the
/// loop begins and ends.
pub(super) struct Turns {
    pub open: Val,
    pub mask: Val,
    pub lane: Val,
    pub test: Cont,
    pub after: Cont,
}

/// Masks of more lanes than an AVX register has numbers of 32 bits are conditions, if the processor has masks.
const MAX_IN_NUMBERS: u32 = 8;

impl Mode {
    pub fn is_real(self) -> bool {
        !self.is_implicit || self.has_left
    }
}

impl<'s> Lowerer<'s, '_> {
    /// A number of lanes.
    pub(super) fn length(&mut self, e: &Expr<'s>) -> Lowered<u32> {
        let n = self.constant_int(e)?;
        if !(1..=MAX_LANES).contains(&n) {
            return Err(Box::new(sierra_lanes::number(e.span, n, MAX_LANES)));
        }
        Ok(n as u32)
    }

    pub(super) fn with_lanes(&mut self, ty: Ty, n: u32, span: Span) -> Lowered<Ty> {
        let made = self.types.varying(ty, n, self.w);
        made.ok_or_else(|| Box::new(sierra_lanes::no_lanes(span, &self.types.show(ty))))
    }

    /// Values with other numbers of lanes than the mode can't be used.
    pub(super) fn fits_mode(&self, ty: Ty, span: Span) -> Lowered<()> {
        match (self.types.lanes(ty), self.mode) {
            (Some(n), Some(mode)) if n != mode.n && mode.is_real() => {
                Err(Box::new(sierra_lanes::mode(span, n, mode.n)))
            }
            _ => Ok(()),
        }
    }

    /// The number of lanes in which two values are computed.
    pub(super) fn common_lanes(&self, a: Ty, b: Ty, span: Span) -> Lowered<Option<u32>> {
        match (self.types.lanes(a), self.types.lanes(b)) {
            (Some(x), Some(y)) if x != y => {
                Err(Box::new(sierra_lanes::mismatch(span, &self.types.show(a), &self.types.show(b))))
            }
            (x, y) => Ok(x.or(y)),
        }
    }

    pub(super) fn mask_type(&mut self, n: u32) -> ir::Ty {
        self.w.types.vector(Prim::Bool, n)
    }

    // A mask of many lanes is a vector of conditions where the processor has registers for these. Elsewhere it is a vector of numbers, -1 for active lanes:
    // between blocks, processors hold conditions of lanes as numbers of some width, and LLVM would take the least one, and convert them to and fro. Few
    // lanes are numbers there, too: these are compared and combined in less time.

    pub(super) fn all_lanes(&mut self, n: u32, active: bool) -> Val {
        let prim = if self.has_masks && n > MAX_IN_NUMBERS { Prim::Bool } else { Prim::I32 };
        let ty = self.w.types.vector(prim, n);
        self.w.lit(ty, if active { prim.normalize(u64::MAX) } else { 0 })
    }

    /// A condition with lanes as a mask.
    pub(super) fn mask_of_bools(&mut self, bools: Val) -> Val {
        let n = self.w.types.as_vector(self.w.ty(bools)).map_or(1, |v| v.1);
        let (active, not) = (self.all_lanes(n, true), self.all_lanes(n, false));
        if self.w.lane_prim(active) == Some(Prim::Bool) { bools } else { self.w.op(Op::Select, &[bools, active, not]) }
    }

    pub(super) fn bools(&mut self, mask: Val) -> Val {
        if self.w.lane_prim(mask) == Some(Prim::Bool) {
            return mask;
        }
        let ty = self.w.ty(mask);
        let zero = self.w.lit(ty, 0);
        self.w.op(Op::Lt, &[mask, zero])
    }

    pub(super) fn other_lanes(&mut self, mask: Val) -> Val {
        let n = self.w.types.as_vector(self.w.ty(mask)).map_or(1, |v| v.1);
        let all = self.all_lanes(n, true);
        self.w.op(Op::Xor, &[mask, all])
    }

    /// A mask with one lane active or not.
    pub(super) fn with_lane(&mut self, mask: Val, lane: Val, active: bool) -> Val {
        let prim = self.w.lane_prim(mask).unwrap_or(Prim::I32);
        let value = self.w.lit_prim(prim, if active { prim.normalize(u64::MAX) } else { 0 });
        self.w.op(Op::Insert, &[mask, lane, value])
    }

    pub(super) fn any_of(&mut self, mask: Val) -> Val {
        let bools = self.bools(mask);
        self.any(bools)
    }

    fn bits(&mut self, bools: Val) -> Val {
        let word = self.w.types.prim(Prim::U64);
        self.w.op_ty(Op::Bits, word, &[bools])
    }

    pub(super) fn any(&mut self, bools: Val) -> Val {
        let bits = self.bits(bools);
        let none = self.w.lit_prim(Prim::U64, 0);
        self.w.op(Op::Ne, &[bits, none])
    }

    pub(super) fn all(&mut self, bools: Val, n: u32) -> Val {
        let bits = self.bits(bools);
        let every = self.w.lit_prim(Prim::U64, u64::MAX >> (64 - n));
        self.w.op(Op::Eq, &[bits, every])
    }

    /// The current mask; all lanes outside of SIMD mode.
    pub(super) fn current_mask(&mut self, n: u32, span: Span) -> Lowered<Val> {
        match self.mode {
            Some(mode) => self.load(mode.mask, span),
            None => Ok(self.all_lanes(n, true)),
        }
    }

    /// Begins a loop that takes the active lanes in turns, and goes on in its body, which closes lanes and jumps to `test`.
    pub(super) fn turns(&mut self, n: u32, body: &str, span: Span) -> Lowered<Turns> {
        let mask = self.current_mask(n, span)?;
        let open = self.slot(mask);
        let (test, inner, after) = (self.block("test"), self.block(body), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let mask = self.load(open, span)?;
        let (active, first) = (self.bools(mask), self.w.lit_i32(0));
        let lane = self.next_true(active, n, first);
        let is_lane = self.w.op(Op::Ge, &[lane, first]);
        self.branch(is_lane, inner, after);
        self.go_on_in(inner);
        Ok(Turns { open, mask, lane, test, after })
    }

    /// `new` in lanes where the condition holds, `old` in others. Both have the type.
    pub(super) fn blend(&mut self, mask: Val, new: Val, old: Val, ty: Ty) -> Val {
        match *self.types.kind(ty) {
            Kind::Varying(_, n) | Kind::VaryingPointer { n, .. } | Kind::VaryingFunction(_, n) => {
                // A field may have lanes of its own, which the mask says nothing of.
                let fits = self.w.types.as_vector(self.w.ty(mask)).is_some_and(|v| v.1 == n);
                if fits { self.w.op(Op::Select, &[mask, new, old]) } else { new }
            }
            Kind::Struct(_) if self.types.as_struct(ty).is_none_or(|s| !s.is_union) => {
                let fields = self.types.fields(ty);
                let mut parts = Vec::new();
                for (i, ty) in fields.into_iter().enumerate() {
                    let (new, old) = (self.w.extract(new, i as u64), self.w.extract(old, i as u64));
                    parts.push(self.blend(mask, new, old, ty));
                }
                let ir = self.types.ir(ty, self.w);
                self.w.op_ty(Op::Struct, ir, &parts)
            }
            Kind::Array(of, n) | Kind::Short(of, n) if self.has_lanes(of) || self.types.as_struct(of).is_some() => {
                let parts: Vec<Val> = (0..n)
                    .map(|i| {
                        let (new, old) = (self.w.extract(new, i), self.w.extract(old, i));
                        self.blend(mask, new, old, of)
                    })
                    .collect();
                let ir = self.types.ir(ty, self.w);
                self.w.op_ty(Op::Array, ir, &parts)
            }
            // A value without lanes is the same in all of them.
            _ => new,
        }
    }

    /// Stores a value of the place's type, in active lanes only.
    pub(super) fn store_lanes(&mut self, address: Val, val: Val, ty: Ty, span: Span) -> Lowered<()> {
        let val = match self.mode {
            // Values of other lengths are not in the mode, as long as all its lanes are active.
            Some(mode) if self.types.lanes(ty) == Some(mode.n) || self.has_own_lanes(ty, mode.n) => {
                if self.types.n_parts(ty) > MAX_BLENDED {
                    let hint = "assign the elements one by one";
                    let what = "assignments in SIMD mode of structs with long arrays";
                    return Err(Box::new(limitation::not_supported(span, what, hint)));
                }
                if self.is_needed(address, ty) {
                    let mask = self.load(mode.mask, span)?;
                    let active = self.bools(mask);
                    let old = self.load(address, span)?;
                    self.blend(active, val, old, ty)
                } else {
                    val
                }
            }
            _ => val,
        };
        self.store(address, val, span)
    }

    // Accesses at addresses with lanes.

    /// The address of each lane, of a place of the type `to`, as a pointer in the graph.
    fn addresses(&mut self, lanes: &Lanes, span: Span) -> Lowered<Vec<Val>> {
        let ir = self.types.ir(lanes.base, self.w);
        let pointer = self.w.types.ptr(ir);
        // In SIMD mode, lanes that are not active access this.
        let nobody = match self.mode {
            Some(mode) => {
                let zero = self.zero(lanes.ty);
                let mask = self.load(mode.mask, span)?;
                Some((self.bools(mask), self.slot(zero)))
            }
            None => None,
        };
        self.mem(span)?;
        self.w.set_origin(span);
        let near = if let At::Index(base, index) = lanes.at { self.near(base, index, lanes.base) } else { None };
        let mut found = Vec::new();
        for i in 0..lanes.n {
            let number = self.w.lit_i32(i as i32);
            let mut address = match lanes.at {
                At::Index(..) if let Some((first, offsets)) = &near => {
                    let offset = self.w.lit_i64(offsets[i as usize]);
                    self.w.op(Op::Lea, &[*first, offset])
                }
                At::Index(base, index) => {
                    let index = self.w.op(Op::Extract, &[index, number]);
                    self.w.op(Op::Lea, &[base, index])
                }
                At::Addresses(all) => {
                    let bits = self.w.op(Op::Extract, &[all, number]);
                    self.w.op_ty(Op::Bitcast, pointer, &[bits])
                }
            };
            for &step in &lanes.steps {
                address = match step {
                    Step::Field(field) => self.part(address, field),
                    Step::Lane(numbers) => {
                        let own = self.w.op(Op::Extract, &[numbers, number]);
                        self.w.op(Op::Lea, &[address, own])
                    }
                };
            }
            if let Some((active, nobody)) = nobody {
                let is_active = self.w.op(Op::Extract, &[active, number]);
                address = self.w.op(Op::Select, &[is_active, address, nobody]);
            }
            found.push(address);
        }
        Ok(found)
    }

    /// The places that a reference in each lane leads to.
    pub(super) fn referred_lanes(&mut self, e: &Expr<'s>, ty: Ty, is_const: bool, n: u32) -> Lowered<Lanes> {
        let value = self.expression(e)?;
        let found = value.ty();
        match value {
            Value::Lanes(lanes) if lanes.ty == ty && (is_const || !lanes.is_const) => {
                self.same_lanes(lanes.n, n, e.span)?;
                Ok(Lanes { is_const: is_const || lanes.is_const, ..lanes })
            }
            Value::Place(place) if place.ty == ty && (is_const || !place.is_const) => {
                let pointer = self.types.pointer(ty, is_const);
                let (address, lanes) = (self.retyped(place.address, pointer), self.with_lanes(pointer, n, e.span)?);
                let at = At::Addresses(self.broadcast(address, pointer, lanes));
                Ok(Lanes { at, n, base: ty, steps: Vec::new(), minor: None, ty, is_const })
            }
            Value::Place(Variable { is_const: true, .. }) | Value::Lanes(Lanes { is_const: true, .. })
                if found == ty =>
            {
                Err(Box::new(sierra_type::constant(e.span)))
            }
            _ => {
                let (found, expected) = (self.types.show(found), format!("a place of type `{}`", self.types.show(ty)));
                Err(Box::new(sierra_type::mismatch(e.span, &found, &expected)))
            }
        }
    }

    fn same_lanes(&mut self, found: u32, expected: u32, span: Span) -> Lowered<()> {
        if found == expected {
            return Ok(());
        }
        let [found, expected] = [found, expected].map(|n| self.numbers(Prim::I32, Some(n)));
        let [found, expected] = [found, expected].map(|ty| self.types.show(ty));
        Err(Box::new(sierra_lanes::mismatch(span, &found, &expected)))
    }

    /// The pointers to places of each lane.
    pub(super) fn address_of_lanes(&mut self, lanes: &Lanes, span: Span) -> Lowered<(Val, Ty)> {
        let soa = match (lanes.minor, self.types.kind(lanes.base)) {
            (Some(minor), &Kind::Soa { n, .. }) => Some((minor, self.soa_of_part(lanes.ty, n, span)?)),
            _ => None,
        };
        let is_own = self.is_ispc && matches!(self.types.kind(lanes.ty), Kind::Varying(..));
        if self.types.is_varying(lanes.ty) && !is_own {
            let hint = "take a pointer to all lanes: `&a[0]`";
            return Err(Box::new(limitation::not_supported(span, "addresses of single lanes", hint)));
        }
        let mut pointer = match lanes.at {
            At::Addresses(val) => {
                let ty = self.types.pointer(lanes.base, lanes.is_const);
                (val, self.with_lanes(ty, lanes.n, span)?)
            }
            At::Index(base, index) => {
                let ty = self.types.pointer(lanes.base, lanes.is_const);
                let base = self.retyped(base, ty);
                let long = self.numbers(Prim::I64, Some(lanes.n));
                let ir = self.types.ir(long, self.w);
                let index = if self.w.ty(index) == ir { index } else { self.w.op_ty(Op::Cast, ir, &[index]) };
                self.moved((base, ty), (index, long), false, span)?
            }
        };
        let mut ty = self.types.ir(lanes.base, self.w);
        let mut bytes = 0u64;
        let words = self.w.ty(pointer.0);
        for &step in &lanes.steps {
            let field = match step {
                Step::Field(field) => field,
                Step::Lane(_) => 0,
            };
            bytes = bytes.wrapping_add(layout::offset(&self.w.types, ty, field).unwrap_or(0));
            ty = self.w.types.part(ty, field).unwrap_or(ty);
            if let Step::Lane(numbers) = step {
                // The element with each lane's number.
                let size = layout::size_align(&self.w.types, ty).map_or(0, |l| l.0);
                let size = self.w.lit(words, size);
                let numbers = self.w.op_ty(Op::Cast, words, &[numbers]);
                let own = self.w.op(Op::Mul, &[numbers, size]);
                pointer.0 = self.w.op(Op::Add, &[pointer.0, own]);
            }
        }
        let bytes = self.w.lit(words, bytes);
        pointer.0 = self.w.op(Op::Add, &[pointer.0, bytes]);
        if let Some((minor, soa)) = soa {
            let slice = self.types.slice(soa, lanes.is_const, self.w);
            let ty = self.with_lanes(slice, lanes.n, span)?;
            let number = self.types.fields(ty)[1];
            let ir = self.types.ir(number, self.w);
            let minor = if self.w.ty(minor) == ir { minor } else { self.w.op_ty(Op::Cast, ir, &[minor]) };
            return Ok((self.of_parts(&[pointer.0, minor], ty), ty));
        }
        let mut to = lanes.ty;
        if is_own {
            // Each lane's own number.
            to = self.types.lane(to);
            let ir = self.types.ir(to, self.w);
            let size = layout::size_align(&self.w.types, ir).map_or(0, |l| l.0);
            let offsets: Vec<Val> = (0..u64::from(lanes.n)).map(|i| self.w.lit_prim(Prim::U64, i * size)).collect();
            let offsets = self.w.op_ty(Op::Array, words, &offsets);
            pointer.0 = self.w.op(Op::Add, &[pointer.0, offsets]);
        }
        let ty = self.types.pointer(to, lanes.is_const);
        Ok((pointer.0, self.with_lanes(ty, lanes.n, span)?))
    }

    /// For an index that is a number and a literal in each lane, `3 * (i + seq<8>()) - n`: the address at that number, and the literals. So the backend sees
    /// elements side by side.
    fn near(&mut self, base: Val, index: Val, to: Ty) -> Option<(Val, Vec<i64>)> {
        let sum = if self.w.is_op(index, Op::Cast) { self.w.args(index)[0] } else { index };
        let prim = self.w.lane_prim(sum).filter(|p| !p.is_float())?;
        // A sum that may wrap around is not that of wider numbers; that of signed ones, of active lanes, does not.
        let is_wrapping = self.wrap || !prim.is_signed();
        // Terms, each with what it is multiplied by.
        let (mut open, mut numbers, mut literals) = (vec![(sum, 1i64)], Vec::new(), None);
        while let Some((mut term, factor)) = open.pop() {
            let is_sum = |l: &Self, v: Val| [Op::Add, Op::Sub, Op::Mul].iter().any(|&op| l.w.is_op(v, op));
            if self.w.is_op(term, Op::Cast)
                && let inner = self.w.args(term)[0]
                && is_sum(self, inner)
                && self.w.lane_prim(inner).is_some_and(|p| p.bits() == prim.bits() && !p.is_float())
            {
                // As sums are in SIMD mode.
                term = inner;
            }
            if self.w.is_op(term, Op::Cast)
                && let inner = self.w.args(term)[0]
                && self.w.is_op(inner, Op::Splat)
                && self.w.lane_prim(inner).is_some_and(|p| p.bits() == prim.bits() && !p.is_float())
            {
                term = inner;
            }
            if self.w.is_op(term, Op::Splat) {
                numbers.push((self.w.args(term)[0], factor));
            } else if self.w.is_op(term, Op::Array) && literals.is_none() {
                literals = Some((term, factor));
            } else if is_sum(self, term) && !is_wrapping {
                let (a, b) = (self.w.args(term)[0], self.w.args(term)[1]);
                if self.w.is_op(term, Op::Mul) {
                    let (number, other) = if self.w.is_op(a, Op::Splat) { (a, b) } else { (b, a) };
                    let number = self.w.is_op(number, Op::Splat).then(|| self.w.args(number)[0])?;
                    let number = self.w.as_lit(number)?;
                    open.push((other, factor.checked_mul(prim.normalize(number) as i64)?));
                } else {
                    let of_second = if self.w.is_op(term, Op::Sub) { factor.checked_neg()? } else { factor };
                    open.extend([(b, of_second), (a, factor)]);
                }
            } else {
                return None;
            }
            if open.len() + numbers.len() > MAX_TERMS {
                return None;
            }
        }
        let (literals, factor) = literals?;
        let found: Option<Vec<i64>> = self
            .w
            .args(literals)
            .iter()
            .map(|&v| (prim.normalize(self.w.as_lit(v)?) as i64).checked_mul(factor))
            .collect();
        let (literals, long) = (found?, self.w.types.i64());
        let mut number = self.w.lit_i64(0);
        for (term, factor) in numbers {
            let signed = self.w.types.prim(prim);
            let term = if self.w.ty(term) == signed { term } else { self.w.op_ty(Op::Cast, signed, &[term]) };
            let mut term = if prim == Prim::I64 { term } else { self.w.op_ty(Op::Cast, long, &[term]) };
            if factor.abs() != 1 {
                let by = self.w.lit_i64(factor.saturating_abs());
                term = self.w.op(Op::Mul, &[term, by]);
            }
            number = self.w.op(if factor < 0 { Op::Sub } else { Op::Add }, &[number, term]);
        }
        let first = self.w.op(Op::Lea, &[base, number]);
        let pointer = self.types.pointer(to, false);
        Some((self.retyped(first, pointer), literals))
    }

    /// Reads what each lane's address leads to.
    pub(super) fn gather(&mut self, lanes: &Lanes, span: Span) -> Lowered<(Val, Ty)> {
        let ty = self.with_lanes(lanes.ty, lanes.n, span)?;
        self.same_mode(lanes.n, span)?;
        if lanes.minor.is_some() {
            let mut vals = Vec::new();
            let parts = self.soa_parts(lanes.ty, span)?.into_iter().zip(self.soa_parts(ty, span)?);
            for (i, (part, of_value)) in parts.enumerate() {
                let place = self.part_of_lanes(lanes.clone(), Step::Field(i as u64), part);
                let (val, of) = self.gather(&place, span)?;
                if self.has_lanes(of) && !self.has_lanes(of_value) {
                    let what = "elements of `soa<n>` for each lane, with fields that are `uniform`,";
                    return Err(Box::new(limitation::not_supported(span, what, "read the fields one by one")));
                }
                vals.push(val);
            }
            return Ok((self.of_parts(&vals, ty), ty));
        }
        if self.types.n_parts(lanes.ty) > MAX_BLENDED {
            let hint = "read the elements one by one";
            let what = "structs with long arrays at addresses of each lane";
            return Err(Box::new(limitation::not_supported(span, what, hint)));
        }
        if let Some(n) = self.types.lanes(lanes.ty)
            && n != lanes.n
        {
            let index = self.numbers(Prim::I32, Some(lanes.n));
            let [place, index] = [lanes.ty, index].map(|ty| self.types.show(ty));
            return Err(Box::new(sierra_lanes::mismatch(span, &place, &index)));
        }
        let addresses = self.addresses(lanes, span)?;
        let mut vals = Vec::new();
        for (i, address) in addresses.into_iter().enumerate() {
            let val = self.load(address, span)?;
            // A place that has lanes itself: each lane accesses its own part.
            let number = self.w.lit_i32(i as i32);
            vals.push(self.lane_of(val, lanes.ty, number));
        }
        let lane = self.lane_type(ty);
        Ok((self.of_lanes(&vals, lane, ty), ty))
    }

    /// The type of one lane, of arrays, too.
    fn lane_type(&mut self, ty: Ty) -> Ty {
        let Kind::Array(of, n) = *self.types.kind(ty) else { return self.types.lane(ty) };
        let of = self.lane_type(of);
        self.types.array(of, n)
    }

    /// Writes a value with lanes to where each lane's address leads, from the first lane to the last.
    pub(super) fn scatter(&mut self, lanes: &Lanes, val: Val, ty: Ty, span: Span) -> Lowered<()> {
        if lanes.minor.is_some() {
            // A field without lanes is the same in all of them.
            let parts = self.soa_parts(lanes.ty, span)?.into_iter().zip(self.soa_parts(ty, span)?);
            for (i, (part, ty)) in parts.enumerate() {
                let place = self.part_of_lanes(lanes.clone(), Step::Field(i as u64), part);
                let val = self.w.extract(val, i as u64);
                self.scatter(&place, val, ty, span)?;
            }
            return Ok(());
        }
        let is_varying = self.types.is_varying(lanes.ty);
        if is_varying
            && self.is_ispc
            && (self.types.as_struct(lanes.ty).is_some() || self.types.as_short(lanes.ty).is_some())
        {
            // Part by part.
            let parts: Vec<Ty> = match self.types.as_short(lanes.ty) {
                Some((of, n)) => vec![of; n as usize],
                None => self.types.fields(lanes.ty),
            };
            for (i, part) in parts.into_iter().enumerate() {
                let mut place = lanes.clone();
                place.steps.push(Step::Field(i as u64));
                place.ty = part;
                let val = self.w.extract(val, i as u64);
                self.scatter(&place, val, part, span)?;
            }
            return Ok(());
        }
        if let Kind::Array(of, n) = *self.types.kind(lanes.ty)
            && self.is_ispc
            && self.has_lanes(of)
        {
            for i in 0..n {
                let mut place = lanes.clone();
                place.steps.push(Step::Field(i));
                place.ty = of;
                let (val, ty) =
                    (self.w.extract(val, i), if let Kind::Array(ty, _) = *self.types.kind(ty) { ty } else { of });
                self.scatter(&place, val, ty, span)?;
            }
            return Ok(());
        }
        if is_varying && self.types.as_struct(lanes.ty).is_some() {
            let hint = "assign the fields";
            return Err(Box::new(limitation::not_supported(span, "assignments to lanes of structs with lanes", hint)));
        }
        let addresses = self.addresses(lanes, span)?;
        for (i, address) in addresses.into_iter().enumerate() {
            let number = self.w.lit_i32(i as i32);
            let val = if is_varying {
                // A place that has lanes itself: each lane accesses its own part.
                let old = self.load(address, span)?;
                let new = self.w.op(Op::Extract, &[val, number]);
                self.w.op(Op::Insert, &[old, number, new])
            } else {
                self.lane_of(val, ty, number)
            };
            self.store(address, val, span)?;
        }
        Ok(())
    }

    /// One lane of a value with lanes; other values are the same in all.
    pub(super) fn lane_of(&mut self, val: Val, ty: Ty, number: Val) -> Val {
        match *self.types.kind(ty) {
            Kind::Varying(..) | Kind::VaryingFunction(..) => self.w.op(Op::Extract, &[val, number]),
            Kind::VaryingPointer { .. } => {
                let bits = self.w.op(Op::Extract, &[val, number]);
                let lane = self.types.lane(ty);
                let ir = self.types.ir(lane, self.w);
                self.w.op_ty(Op::Bitcast, ir, &[bits])
            }
            Kind::Struct(_) if self.types.is_varying(ty) => {
                let lane = self.types.lane(ty);
                self.parts_of(ty, lane, |l, part, of, of_lane| {
                    let val = l.w.extract(val, part);
                    if of == of_lane { val } else { l.lane_of(val, of, number) }
                })
            }
            Kind::Array(of, n) | Kind::Short(of, n) if self.has_lanes(of) => {
                let parts: Vec<Val> = (0..n)
                    .map(|k| {
                        let val = self.w.extract(val, k);
                        self.lane_of(val, of, number)
                    })
                    .collect();
                let lane = self.types.lane(of);
                let lane = self.types.array(lane, n);
                let ir = self.types.ir(lane, self.w);
                self.w.op_ty(Op::Array, ir, &parts)
            }
            _ => val,
        }
    }

    /// Whether the type is a struct without lanes that has a field with so many.
    fn has_own_lanes(&self, ty: Ty, n: u32) -> bool {
        let mut open = if self.types.lanes(ty).is_none() { self.types.fields(ty) } else { Vec::new() };
        while let Some(ty) = open.pop() {
            if self.types.lanes(ty) == Some(n) {
                return true;
            }
            match *self.types.kind(ty) {
                Kind::Array(of, _) => open.push(of),
                _ => open.extend(self.types.fields(ty)),
            }
        }
        false
    }

    fn has_lanes(&self, mut ty: Ty) -> bool {
        while let Kind::Array(of, _) = *self.types.kind(ty) {
            ty = of;
        }
        self.types.is_varying(ty)
    }

    /// A struct of the type `to`, of whose fields `part` gets the number, and the types in `from` and `to`.
    fn parts_of(&mut self, from: Ty, to: Ty, mut part: impl FnMut(&mut Self, u64, Ty, Ty) -> Val) -> Val {
        let (from, of_to) = (self.types.fields(from), self.types.fields(to));
        let mut parts = Vec::new();
        for (i, (from, to)) in from.into_iter().zip(of_to).enumerate() {
            parts.push(part(self, i as u64, from, to));
        }
        let ir = self.types.ir(to, self.w);
        self.w.op_ty(Op::Struct, ir, &parts)
    }

    /// The value of the type `ty` with lanes that has these in its lanes.
    fn of_lanes(&mut self, vals: &[Val], lane: Ty, ty: Ty) -> Val {
        let ir = self.types.ir(ty, self.w);
        match *self.types.kind(ty) {
            Kind::Varying(..) | Kind::VaryingFunction(..) => self.w.op_ty(Op::Array, ir, vals),
            Kind::VaryingPointer { .. } => {
                let word = self.w.types.prim(Prim::U64);
                let bits: Vec<Val> = vals.iter().map(|&v| self.w.op_ty(Op::Bitcast, word, &[v])).collect();
                self.w.op_ty(Op::Array, ir, &bits)
            }
            Kind::Struct(_) => self.parts_of(lane, ty, |l, part, lane, ty| {
                let vals: Vec<Val> = vals.iter().map(|&v| l.w.extract(v, part)).collect();
                if lane == ty { vals[0] } else { l.of_lanes(&vals, lane, ty) }
            }),
            Kind::Array(of, n) | Kind::Short(of, n) => {
                let of_lane =
                    if let Kind::Array(lane, _) | Kind::Short(lane, _) = *self.types.kind(lane) { lane } else { lane };
                let parts: Vec<Val> = (0..n)
                    .map(|k| {
                        let vals: Vec<Val> = vals.iter().map(|&v| self.w.extract(v, k)).collect();
                        self.of_lanes(&vals, of_lane, of)
                    })
                    .collect();
                self.w.op_ty(Op::Array, ir, &parts)
            }
            _ => vals[0],
        }
    }

    /// A value in all lanes: `to` is its type with lanes.
    pub(super) fn broadcast(&mut self, val: Val, from: Ty, to: Ty) -> Val {
        if from == to {
            return val;
        }
        let ir = self.types.ir(to, self.w);
        match *self.types.kind(to) {
            Kind::Varying(..) | Kind::VaryingFunction(..) => self.w.op_ty(Op::Splat, ir, &[val]),
            Kind::VaryingPointer { .. } => {
                let word = self.w.types.prim(Prim::U64);
                let bits = self.w.op_ty(Op::Bitcast, word, &[val]);
                self.w.op_ty(Op::Splat, ir, &[bits])
            }
            Kind::Struct(_) => self.parts_of(from, to, |l, part, from, to| {
                let val = l.w.extract(val, part);
                l.broadcast(val, from, to)
            }),
            Kind::Array(of, n) | Kind::Short(of, n) => {
                let from =
                    if let Kind::Array(from, _) | Kind::Short(from, _) = *self.types.kind(from) { from } else { from };
                let parts: Vec<Val> = (0..n)
                    .map(|k| {
                        let val = self.w.extract(val, k);
                        self.broadcast(val, from, of)
                    })
                    .collect();
                self.w.op_ty(Op::Array, ir, &parts)
            }
            _ => val,
        }
    }

    // Control flow.

    /// Lowers code in a region with a mask of its own, unless none of its lanes is active. Returns the lanes that are left, as the address of their mask.
    pub(super) fn region(&mut self, n: u32, mask: Val, lower: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<Val> {
        self.region_of(n, mask, false, lower)
    }

    /// The same; what is cheap is not jumped over.
    pub(super) fn region_of(
        &mut self,
        n: u32,
        mask: Val,
        is_cheap: bool,
        lower: impl FnOnce(&mut Self) -> Lowered<()>,
    ) -> Lowered<Val> {
        let slot = self.slot(mask);
        let end = self.block("end");
        if !is_cheap {
            let inner = self.block("lanes");
            let any = self.any_of(mask);
            self.branch(any, inner, end);
            self.go_on_in(inner);
        }
        let outer = self.mode.replace(Mode { n, mask: slot, end, is_implicit: false, has_left: false });
        let done = lower(self);
        let has_left = self.mode.is_some_and(|m| m.has_left);
        self.mode = outer;
        if let Some(mode) = &mut self.mode {
            mode.has_left |= has_left;
        }
        self.jump(end, &[]);
        self.go_on_in(end);
        done?;
        Ok(slot)
    }

    /// Code goes on only if lanes are left, after some may have been taken out.
    pub(super) fn go_on_with_lanes(&mut self, span: Span) -> Lowered<()> {
        let Some(mode) = self.mode.filter(|m| m.has_left && !self.rest_is_cheap) else { return Ok(()) };
        let mask = self.load(mode.mask, span)?;
        let any = self.any_of(mask);
        let rest = self.block("rest");
        self.branch(any, rest, mode.end);
        self.go_on_in(rest);
        Ok(())
    }

    /// Takes all active lanes out of the mask. Nothing of the region follows.
    pub(super) fn leave(&mut self, mode: Mode, span: Span) -> Lowered<()> {
        let none = self.all_lanes(mode.n, false);
        self.store(mode.mask, none, span)?;
        if let Some(mode) = &mut self.mode {
            mode.has_left = true;
        }
        self.jump(mode.end, &[]);
        Ok(())
    }

    /// Adds the active lanes to a mask.
    pub(super) fn note(&mut self, at: Val, mode: Mode, span: Span) -> Lowered<()> {
        let (active, noted) = (self.load(mode.mask, span)?, self.load(at, span)?);
        let both = self.w.op(Op::Or, &[active, noted]);
        self.store(at, both, span)
    }

    /// A branch on a condition with lanes.
    pub(super) fn if_lanes(
        &mut self,
        condition: Val,
        n: u32,
        span: Span,
        are_cheap: [bool; 2],
        then: impl FnOnce(&mut Self) -> Lowered<()>,
        otherwise: impl FnOnce(&mut Self) -> Lowered<()>,
    ) -> Lowered<()> {
        self.same_mode(n, span)?;
        let mask = self.current_mask(n, span)?;
        let holds = self.mask_of_bools(condition);
        let taken = self.w.op(Op::And, &[mask, holds]);
        let not = self.other_lanes(holds);
        let other = self.w.op(Op::And, &[mask, not]);
        // Of the second branch the lanes are known before the first one runs.
        let left = self.region_of(n, taken, are_cheap[0], then)?;
        let other_left = self.region_of(n, other, are_cheap[1], otherwise)?;
        if let Some(mode) = self.mode {
            let (a, b) = (self.load(left, span)?, self.load(other_left, span)?);
            let both = self.w.op(Op::Or, &[a, b]);
            self.store(mode.mask, both, span)?;
        }
        self.go_on_with_lanes(span)
    }

    pub(super) fn same_mode(&self, n: u32, span: Span) -> Lowered<()> {
        match self.mode {
            Some(mode) if mode.n != n => Err(Box::new(sierra_lanes::mode(span, n, mode.n))),
            _ => Ok(()),
        }
    }
}

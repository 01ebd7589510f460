//! Short vectors of ISPC's dialect, `float<3>`: a few numbers, or numbers with lanes, that are computed with one by one.

use super::*;

/// Limit on their elements.
const MAX_SHORT: i64 = 64;
/// The names of elements, by their numbers.
const NAMES: [&str; 3] = ["xyzw", "rgba", "uv"];

impl<'s> Lowerer<'s, '_> {
    pub(super) fn short_vector(&mut self, of: Ty, n: &Expr<'s>, span: Span) -> Lowered<Ty> {
        if self.number_type(of).is_none() {
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(of), "the type of a number")));
        }
        let count = self.constant_int(n)?;
        if !(1..=MAX_SHORT).contains(&count) {
            return Err(Box::new(sierra_lanes::number(n.span, count, MAX_SHORT)));
        }
        Ok(self.types.short(of, count as u64))
    }

    fn of_elements(&mut self, vals: &[Val], ty: Ty) -> Val {
        let ir = self.types.ir(ty, self.w);
        self.w.op_ty(Op::Array, ir, vals)
    }

    /// The value of each element; a number is that of all.
    fn elements_of(&mut self, (val, ty): (Val, Ty), n: u64) -> Vec<(Val, Ty)> {
        match self.types.as_short(ty) {
            Some((of, _)) => (0..n).map(|i| (self.w.extract(val, i), of)).collect(),
            None => vec![(val, ty); n as usize],
        }
    }

    pub(super) fn convert_short(&mut self, (val, from): (Val, Ty), to: Ty, span: Span) -> Lowered<Val> {
        let Some((of, n)) = self.types.as_short(to) else { return Ok(val) };
        let fits = match self.types.as_short(from) {
            Some((_, m)) => n == m,
            None => self.number_type(from).is_some(),
        };
        if !fits {
            let expected = format!("`{}`", self.types.show(to));
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(from), &expected)));
        }
        let mut vals = Vec::new();
        for element in self.elements_of((val, from), n) {
            vals.push(self.convert(element, of, span)?);
        }
        Ok(self.of_elements(&vals, to))
    }

    pub(super) fn binary_of_shorts(
        &mut self,
        operator: Binary,
        left: (Val, Ty),
        right: (Val, Ty),
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let lengths = [left.1, right.1].map(|ty| self.types.as_short(ty).map(|s| s.1));
        let n = match lengths {
            [Some(a), Some(b)] if a != b => {
                let [left, right] = [left.1, right.1].map(|ty| self.types.show(ty));
                return Err(Box::new(sierra_type::operands(span, operator.word(), &left, &right)));
            }
            [a, b] => a.or(b).unwrap_or(1),
        };
        let (left, right) = (self.elements_of(left, n), self.elements_of(right, n));
        let mut vals = Vec::new();
        let mut of = Types::ERROR;
        for (a, b) in left.into_iter().zip(right) {
            let (val, ty) = self.binary(operator, a, b, span)?;
            of = ty;
            vals.push(val);
        }
        let ty = self.types.short(of, n);
        Ok((self.of_elements(&vals, ty), ty))
    }

    pub(super) fn unary_of_short(&mut self, operator: Unary, value: (Val, Ty), span: Span) -> Lowered<(Val, Ty)> {
        let Some((_, n)) = self.types.as_short(value.1) else { return Ok(value) };
        let word = if operator == Unary::Negate { "-" } else { "~" };
        let mut vals = Vec::new();
        let mut of = Types::ERROR;
        for element in self.elements_of(value, n) {
            let (val, ty) = self.unary_number(operator, word, element, span)?;
            of = ty;
            vals.push(val);
        }
        let ty = self.types.short(of, n);
        Ok((self.of_elements(&vals, ty), ty))
    }

    /// `v.x`, or `v.zyx`.
    pub(super) fn component(&mut self, value: Value, (of, n): (Ty, u64), name: Name<'s>, span: Span) -> Lowered<Value> {
        let number = |c: char| NAMES.iter().find_map(|names| names.find(c)).filter(|at| (*at as u64) < n);
        let numbers: Option<Vec<usize>> = name.text.chars().map(number).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() <= 4) else {
            return Err(Box::new(sierra_name::field(name.span, name.text, &self.types.show(value.ty()))));
        };
        if let [number] = numbers[..] {
            return Ok(match value {
                Value::Plain(val, _) => Value::Plain(self.w.extract(val, number as u64), of),
                Value::Place(Variable { address, is_const, .. }) => {
                    Value::Place(Variable { address: self.part(address, number as u64), ty: of, is_const })
                }
                Value::Lanes(lanes) => Value::Lanes(self.part_of_lanes(lanes, Step::Field(number as u64), of)),
                Value::Soa(place) => {
                    let number = self.w.lit_i64(number as i64);
                    self.part_of_soa(place, number, of)
                }
                Value::Parts(mut places, _) => places.swap_remove(number),
            });
        }
        if !matches!(value, Value::Plain(..)) {
            // Places of their own.
            let mut places = Vec::new();
            for c in name.text.char_indices() {
                let one = Name { text: &name.text[c.0..c.0 + 1], ..name };
                places.push(self.component(value.clone(), (of, n), one, span)?);
            }
            let ty = self.types.short(of, places.len() as u64);
            return Ok(Value::Parts(places, ty));
        }
        let (val, ty) = self.read(value, span)?;
        let of = self.types.as_short(ty).map_or(of, |s| s.0);
        let vals: Vec<Val> = numbers.iter().map(|&i| self.w.extract(val, i as u64)).collect();
        let ty = self.types.short(of, vals.len() as u64);
        Ok(Value::Plain(self.of_elements(&vals, ty), ty))
    }
}

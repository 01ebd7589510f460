//! Values that variables begin with.

use super::*;
use nyala_c_syntax::lexer::unquoted;

impl<'s> Lowerer<'s, '_> {
    /// The type of a variable; an array without a length has that of its values.
    pub(super) fn initialized_type(
        &mut self,
        base: Ty,
        is_const: bool,
        declarator: &Declarator<'s>,
        init: Option<&Init<'s>>,
    ) -> Lowered<Ty> {
        let Some(None) = declarator.lengths.first() else { return self.declared_type(base, is_const, declarator) };
        if declarator.function.is_some() {
            let hint = "write the length";
            return Err(Box::new(limitation::not_supported(declarator.span, "such arrays without a length", hint)));
        }
        // The longest list on each level.
        let mut lengths = Vec::new();
        let mut lists: Vec<&Init<'s>> = init.into_iter().collect();
        for _ in &declarator.lengths {
            let mut n = 0;
            let mut inner = Vec::new();
            for list in lists {
                n = n.max(match list {
                    Init::List(parts, _) => {
                        inner.extend(parts.iter().map(|p| &p.1));
                        self.list_length(parts)?
                    }
                    Init::Value(Expr { kind: ExprKind::Text(texts), span }) => {
                        self.text(texts, *span)?.len() as u64 + 1
                    }
                    Init::Value(_) => 0,
                });
            }
            lengths.push(n);
            lists = inner;
        }
        let mut ty = self.rated(base, declarator)?;
        let mut target_is_const = is_const;
        for (is_const, varying) in &declarator.pointers {
            ty = self.pointer_type(ty, target_is_const, varying.as_ref(), declarator.span)?;
            target_is_const = *is_const;
        }
        self.complete(ty, declarator.span)?;
        for (length, n) in declarator.lengths.iter().zip(lengths).rev() {
            if length.is_some() {
                ty = self.array_of(ty, length.as_ref(), declarator.span)?;
                continue;
            }
            if n == 0 || self.elements(ty).saturating_mul(n) > MAX_LENGTH {
                return Err(Box::new(sierra_constant::length(declarator.span)));
            }
            ty = self.types.array(ty, n);
            self.depth(ty, declarator.span)?;
        }
        Ok(ty)
    }

    /// The bytes of texts one behind the other, without a zero at the end.
    pub(super) fn text(&self, texts: &[&str], span: Span) -> Lowered<Vec<u8>> {
        let parts: Option<Vec<Vec<u8>>> = texts.iter().map(|t| unquoted(t)).collect();
        let whole = || texts.join(" ");
        parts.map(|p| p.concat()).ok_or_else(|| Box::new(c_syntax::literal(span, &whole(), "text")))
    }

    pub(super) fn initial_value(&mut self, ty: Ty, init: &Init<'s>) -> Lowered<Val> {
        match init {
            Init::Value(e) => {
                if let (Kind::Array(of, n), ExprKind::Text(texts)) = (self.types.kind(ty).clone(), &e.kind)
                    && self.types.as_prim(of) == Some(Prim::I8)
                {
                    let bytes = self.text(texts, e.span)?;
                    if bytes.len() as u64 > n {
                        return Err(Box::new(sierra_type::too_many(e.span, bytes.len(), n as usize)));
                    }
                    let byte = |b: u8| b as i8 as i64 as u64;
                    let values: Vec<Val> = bytes.into_iter().map(|b| self.w.lit_prim(Prim::I8, byte(b))).collect();
                    return Ok(self.filled(ty, of, n, values));
                }
                let value = self.value_for(e, ty)?;
                if matches!(self.types.kind(ty), Kind::Array(..)) {
                    let found = self.types.show(value.1);
                    return Err(Box::new(sierra_type::mismatch(e.span, &found, "values in braces")));
                }
                self.convert(value, ty, e.span)
            }
            Init::List(parts, span) => match *self.types.kind(ty) {
                Kind::Array(of, n) | Kind::Short(of, n) => {
                    let mut values = Vec::new();
                    for (at, part) in self.places(parts, ty, n, *span)? {
                        let zero = self.zero(of);
                        values.resize(values.len().max(at + 1), zero);
                        values[at] = self.initial_value(of, part)?;
                    }
                    Ok(self.filled(ty, of, n, values))
                }
                Kind::Struct(_) if self.types.as_struct(ty).is_some_and(|s| s.is_union) => {
                    self.initial_union(ty, parts, *span)
                }
                Kind::Struct(_) => {
                    let fields = self.types.fields(ty);
                    let mut values: Vec<Option<Val>> = vec![None; fields.len()];
                    for (at, part) in self.places(parts, ty, fields.len() as u64, *span)? {
                        values[at] = Some(self.initial_value(fields[at], part)?);
                    }
                    let values: Vec<Val> =
                        values.into_iter().zip(&fields).map(|(v, &ty)| v.unwrap_or_else(|| self.zero(ty))).collect();
                    let ir = self.types.ir(ty, self.w);
                    Ok(self.w.op_ty(Op::Struct, ir, &values))
                }
                Kind::Varying(_, n) | Kind::VaryingFunction(_, n) if !matches!(&parts[..], [(_, Init::List(..))]) => {
                    let lane = self.types.lane(ty);
                    let zero = self.zero(lane);
                    let mut values = vec![zero; n as usize];
                    // In ISPC's dialect, one value is that of all lanes.
                    if let ([(None, part)], true) = (&parts[..], self.is_ispc) {
                        return self.initial_value(ty, part);
                    }
                    for (at, part) in self.places(parts, ty, n.into(), *span)? {
                        values[at] = self.initial_value(lane, part)?;
                    }
                    let ir = self.types.ir(ty, self.w);
                    Ok(self.w.op_ty(Op::Array, ir, &values))
                }
                _ => match &parts[..] {
                    [] => Ok(self.zero(ty)),
                    [(None, part @ Init::Value(_))] => self.initial_value(ty, part),
                    _ => Err(Box::new(sierra_type::too_many(*span, parts.len(), 1))),
                },
            },
        }
    }

    /// Which part of a type each value of a list is for: the one that it names, or the one behind the last one's.
    fn places<'i>(
        &mut self,
        parts: &'i [(Option<Designator<'s>>, Init<'s>)],
        ty: Ty,
        n: u64,
        span: Span,
    ) -> Lowered<Vec<(usize, &'i Init<'s>)>> {
        let mut found = Vec::new();
        let mut at = 0;
        for (designator, part) in parts {
            match designator {
                None => {}
                Some(Designator::Field(name)) => at = self.field_number(ty, *name, name.span)? as u64,
                Some(Designator::Element(_)) if self.types.as_struct(ty).is_some() => {
                    let found = self.types.show(ty);
                    return Err(Box::new(sierra_type::mismatch(span, &found, "an array")));
                }
                Some(Designator::Element(e)) => at = self.element_number(e, n)?,
            }
            if at >= n {
                return Err(Box::new(sierra_type::too_many(span, parts.len().max(at as usize + 1), n as usize)));
            }
            found.push((at as usize, part));
            at += 1;
        }
        Ok(found)
    }

    fn element_number(&mut self, e: &Expr<'s>, n: u64) -> Lowered<u64> {
        let at = self.constant_int(e)?;
        // Elements before it are listed.
        let most = if n > MAX_LISTED { MAX_DESIGNATED } else { n };
        match u64::try_from(at).ok().filter(|at| *at < n) {
            Some(at) if at < most => Ok(at),
            Some(_) => {
                let hint = "assign the element";
                Err(Box::new(limitation::not_supported(e.span, "numbers of elements that are so large", hint)))
            }
            None => Err(Box::new(sierra_type::no_element(e.span, at, n))),
        }
    }

    /// The length of an array with these values.
    fn list_length(&mut self, parts: &[(Option<Designator<'s>>, Init<'s>)]) -> Lowered<u64> {
        let (mut at, mut n) = (0, 0);
        for (designator, _) in parts {
            if let Some(Designator::Element(e)) = designator {
                at = self.element_number(e, MAX_LENGTH)?;
            }
            at += 1;
            n = n.max(at);
        }
        Ok(n)
    }

    /// A union with a value for its first field, or the one that is named.
    fn initial_union(&mut self, ty: Ty, parts: &[(Option<Designator<'s>>, Init<'s>)], span: Span) -> Lowered<Val> {
        let (number, part) = match parts {
            [] => return Ok(self.zero(ty)),
            [(None, part)] => (0, part),
            [(Some(Designator::Field(name)), part)] => (self.field_number(ty, *name, name.span)?, part),
            _ => return Err(Box::new(sierra_type::too_many(span, parts.len(), 1))),
        };
        if self.is_constant {
            let hint = "assign the field in a function";
            return Err(Box::new(limitation::not_supported(span, "values of unions outside of functions", hint)));
        }
        let fields = self.types.as_struct(ty).and_then(|s| s.fields.as_ref());
        let Some(field) = fields.and_then(|f| f.get(number)).map(|f| f.ty) else { return Ok(self.zero(ty)) };
        let val = self.initial_value(field, part)?;
        let zero = self.zero(ty);
        self.mem(span)?;
        let address = self.slot(zero);
        let at = self.union_field(address, field);
        self.store(at, val, span)?;
        self.load(address, span)
    }

    /// An array whose last elements are zero.
    fn filled(&mut self, ty: Ty, of: Ty, n: u64, mut values: Vec<Val>) -> Val {
        let ir = self.types.ir(ty, self.w);
        let zero = self.zero(of);
        if values.len() as u64 == n || n <= MAX_LISTED {
            values.resize(n as usize, zero);
            return self.w.op_ty(Op::Array, ir, &values);
        }
        let mut array = self.w.op_ty(Op::Splat, ir, &[zero]);
        for (i, val) in values.into_iter().enumerate() {
            let i = self.w.lit_i64(i as i64);
            array = self.w.op(Op::Insert, &[array, i, val]);
        }
        array
    }

    pub(super) fn zero(&mut self, ty: Ty) -> Val {
        let ir = self.types.ir(ty, self.w);
        match *self.types.kind(ty) {
            Kind::Prim(_) | Kind::Pointer { .. } | Kind::Function(_) => self.w.lit(ir, 0),
            Kind::Varying(..) | Kind::VaryingPointer { .. } | Kind::VaryingFunction(..) => self.w.lit(ir, 0),
            Kind::Struct(_) if self.types.as_struct(ty).is_some_and(|s| s.is_union) => {
                let Some(words) = self.w.types.part(ir, 0) else { return self.w.unit() };
                let zero = match self.w.types.part(words, 0) {
                    Some(word) => self.w.lit(word, 0),
                    None => self.w.unit(),
                };
                let words = self.w.op_ty(Op::Splat, words, &[zero]);
                self.w.op_ty(Op::Struct, ir, &[words])
            }
            Kind::Array(of, _) | Kind::Short(of, _) => {
                let of = self.zero(of);
                self.w.op_ty(Op::Splat, ir, &[of])
            }
            Kind::Struct(_) => {
                let fields = self.types.fields(ty);
                let parts: Vec<Val> = fields.into_iter().map(|ty| self.zero(ty)).collect();
                self.w.op_ty(Op::Struct, ir, &parts)
            }
            Kind::Soa { block, .. } => self.zero(block),
            Kind::Reference { .. } => self.w.lit(ir, 0),
            Kind::Error | Kind::Void => self.w.unit(),
        }
    }
}

/// Longer arrays are zero but for the elements that are written out.
const MAX_LISTED: u64 = 1 << 12;
/// Limit on the numbers of elements that are named in such arrays.
const MAX_DESIGNATED: u64 = 1 << 16;

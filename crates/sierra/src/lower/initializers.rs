//! Values that variables begin with.

use super::*;
use crate::lexer::unquoted;

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
        let n = match init {
            Some(Init::List(parts, _)) => parts.len() as u64,
            Some(Init::Value(Expr { kind: ExprKind::Text(texts), span })) => self.text(texts, *span)?.len() as u64 + 1,
            _ => 0,
        };
        if n == 0 {
            return Err(Box::new(sierra_constant::length(declarator.span)));
        }
        if declarator.lengths.len() > 1 || !declarator.pointers.is_empty() {
            let hint = "write the length";
            return Err(Box::new(limitation::not_supported(declarator.span, "such arrays without a length", hint)));
        }
        self.complete(base, declarator.span)?;
        if self.elements(base).saturating_mul(n) > MAX_LENGTH {
            return Err(Box::new(sierra_constant::length(declarator.span)));
        }
        let ty = self.types.array(base, n);
        self.depth(ty, declarator.span)?;
        Ok(ty)
    }

    /// The bytes of texts one behind the other, without a zero at the end.
    pub(super) fn text(&self, texts: &[&str], span: Span) -> Lowered<Vec<u8>> {
        let parts: Option<Vec<Vec<u8>>> = texts.iter().map(|t| unquoted(t)).collect();
        let whole = || texts.join(" ");
        parts.map(|p| p.concat()).ok_or_else(|| Box::new(sierra_syntax::literal(span, &whole(), "text")))
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
                let value = self.value(e)?;
                if matches!(self.types.kind(ty), Kind::Array(..)) {
                    let found = self.types.show(value.1);
                    return Err(Box::new(sierra_type::mismatch(e.span, &found, "values in braces")));
                }
                self.convert(value, ty, e.span)
            }
            Init::List(parts, span) => match *self.types.kind(ty) {
                Kind::Array(of, n) => {
                    if parts.len() as u64 > n {
                        return Err(Box::new(sierra_type::too_many(*span, parts.len(), n as usize)));
                    }
                    let mut values = Vec::new();
                    for part in parts {
                        values.push(self.initial_value(of, part)?);
                    }
                    Ok(self.filled(ty, of, n, values))
                }
                Kind::Struct(_) => {
                    let fields = self.types.as_struct(ty).and_then(|s| s.fields.as_ref());
                    let fields: Vec<Ty> = fields.into_iter().flatten().map(|f| f.ty).collect();
                    if parts.len() > fields.len() {
                        return Err(Box::new(sierra_type::too_many(*span, parts.len(), fields.len())));
                    }
                    let mut values = Vec::new();
                    for (i, &field) in fields.iter().enumerate() {
                        values.push(match parts.get(i) {
                            Some(part) => self.initial_value(field, part)?,
                            None => self.zero(field),
                        });
                    }
                    let ir = self.types.ir(ty, self.w);
                    Ok(self.w.op_ty(Op::Struct, ir, &values))
                }
                Kind::Varying(_, n) if !matches!(&parts[..], [Init::List(..)]) => {
                    if parts.len() > n as usize {
                        return Err(Box::new(sierra_type::too_many(*span, parts.len(), n as usize)));
                    }
                    let lane = self.types.lane(ty);
                    let mut values = Vec::new();
                    for part in parts {
                        values.push(self.initial_value(lane, part)?);
                    }
                    let zero = self.zero(lane);
                    values.resize(n as usize, zero);
                    let ir = self.types.ir(ty, self.w);
                    Ok(self.w.op_ty(Op::Array, ir, &values))
                }
                _ => match &parts[..] {
                    [] => Ok(self.zero(ty)),
                    [part @ Init::Value(_)] => self.initial_value(ty, part),
                    _ => Err(Box::new(sierra_type::too_many(*span, parts.len(), 1))),
                },
            },
        }
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
            Kind::Prim(_) | Kind::Pointer { .. } | Kind::Varying(..) | Kind::VaryingPointer { .. } => self.w.lit(ir, 0),
            Kind::Array(of, _) => {
                let of = self.zero(of);
                self.w.op_ty(Op::Splat, ir, &[of])
            }
            Kind::Struct(_) => {
                let fields = self.types.as_struct(ty).and_then(|s| s.fields.as_ref());
                let fields: Vec<Ty> = fields.into_iter().flatten().map(|f| f.ty).collect();
                let parts: Vec<Val> = fields.into_iter().map(|ty| self.zero(ty)).collect();
                self.w.op_ty(Op::Struct, ir, &parts)
            }
            Kind::Error | Kind::Void | Kind::Reference { .. } => self.w.unit(),
        }
    }
}

/// Longer arrays are zero but for the elements that are written out.
const MAX_LISTED: u64 = 1 << 12;

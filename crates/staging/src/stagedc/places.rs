//! Structs of Staged-C: their leaves, and what expressions name, which may be loaded and stored.
//!
//! Separate from values, which know leaves only.

use super::*;

/// Structs, pointers to structs and types of functions in each other.
const MAX_DEPTH: u32 = 32;
const MAX_LEAVES: usize = 256;

#[derive(Clone)]
pub(super) struct Struct<'s> {
    /// Name, type, and the first leaf.
    fields: Vec<(&'s str, Type, usize)>,
    leaves: Vec<(String, Type)>,
    depth: u32,
}

/// What an expression names.
pub(super) enum Place {
    /// A variable or a field of one, from its first leaf on.
    Local { ty: Type, first: usize },
    /// What is in memory, from a leaf of the element on.
    Element { array: Operand, idx: Operand, ty: Type, leaf: usize },
    /// No place, but a value.
    Value(Type, Vec<Operand>),
}

impl Place {
    fn ty(&self) -> Type {
        match *self {
            Place::Local { ty, .. } | Place::Element { ty, .. } | Place::Value(ty, _) => ty,
        }
    }
}

pub(super) fn is_struct(ty: Type) -> bool {
    ty.pointers == 0 && matches!(ty.base, Base::Struct(_))
}

/// A variable or a field of one as it is written.
pub(super) fn written(expr: &Expr) -> String {
    let mut text = String::new();
    let mut of = expr;
    while let Some((inner, PostfixKind::Field(name))) = of.behind() {
        text = format!(".{}{text}", name.text);
        of = inner;
    }
    match of.kind {
        ExprKind::Name(name) => format!("{name}{text}"),
        _ => text,
    }
}

impl<'s> Translator<'s> {
    // --- Structs.

    pub(super) fn declare_structs(&mut self) {
        let unit = self.unit;
        let mut places: FxHashMap<u32, Span> = FxHashMap::default();
        for of in &unit.structs {
            if let Some(before) = places.insert(of.idx, of.name.span) {
                self.faults.push(staging_name::twice(of.name.span, &format!("struct {}", of.name.text), before));
            } else if let Ok(made) = self.declare_struct(of) {
                self.structs[of.idx as usize] = Some(made);
            }
        }
    }

    fn declare_struct(&mut self, of: &crate::c::Struct<'s>) -> Done<Struct<'s>> {
        let mut made = Struct { fields: Vec::new(), leaves: Vec::new(), depth: 1 };
        for &(ty, name) in &of.fields {
            self.check_ty(ty, name.span)?;
            if made.fields.iter().any(|f| f.0 == name.text) {
                return self.fault(staging_name::field_twice(name.span, name.text));
            }
            made.fields.push((name.text, ty, made.leaves.len()));
            made.leaves.extend(self.named_leaves(ty, name.text));
            made.depth = made.depth.max(self.depth(ty) + 1);
        }
        let span = of.name.span;
        if made.leaves.is_empty() {
            return self.fault(limitation::not_supported(span, "structs without fields", "give it one"));
        }
        if made.leaves.len() > MAX_LEAVES || made.depth > MAX_DEPTH {
            let what = format!("structs of more than {MAX_LEAVES} fields or {MAX_DEPTH} levels");
            return self.fault(limitation::not_supported(span, &what, "pass arrays"));
        }
        Ok(made)
    }

    fn structure(&self, ty: Type) -> Option<&Struct<'s>> {
        match ty.base {
            Base::Struct(i) => self.structs[i as usize].as_ref(),
            _ => None,
        }
    }

    fn depth(&self, ty: Type) -> u32 {
        match ty.base {
            Base::Struct(_) => self.structure(ty).map_or(0, |s| s.depth),
            Base::Function(i) => {
                let Signature { ret, params } = &self.unit.signatures[i as usize];
                1 + params.iter().chain([ret]).map(|&p| self.depth(p)).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// What may be a variable, parameter or result; the place is that of its name.
    pub(super) fn check_ty(&mut self, ty: Type, span: Span) -> Done<()> {
        if ty == VOID || ty.base == Base::Void {
            let shown = self.show(ty);
            return self.fault(staging_type::no_variable(span, &shown));
        }
        match ty.base {
            Base::Struct(i) if self.structs[i as usize].is_none() => {
                let name = self.unit.names[i as usize];
                return self.fault(staging_name::structure(span, name));
            }
            Base::Function(i) => {
                let unit = self.unit;
                let Signature { ret, params } = &unit.signatures[i as usize];
                for &ty in params.iter().chain((*ret != VOID).then_some(ret)) {
                    self.check_ty(ty, span)?;
                }
                if self.depth(ty) > MAX_DEPTH {
                    let what = format!("types of more than {MAX_DEPTH} levels");
                    return self.fault(limitation::not_supported(span, &what, "pass arrays"));
                }
            }
            _ => (),
        }
        let of_pointer = Type { pointers: 0, ..ty };
        let in_memory = |leaf: &Type| !matches!((leaf.pointers, leaf.base), (0, Base::Stage | Base::Function(_)));
        if ty.pointers > 1 || ty.pointers == 1 && !self.leaves(of_pointer).iter().all(in_memory) {
            let what = match ty.pointers {
                1 if is_struct(of_pointer) => "arrays of structs that have stages or functions".to_string(),
                _ => format!("arrays of `{}`", self.show(Type { pointers: ty.pointers - 1, ..ty })),
            };
            return self.fault(limitation::not_supported(span, &what, "compute the place in an array of numbers"));
        }
        Ok(())
    }

    /// The types of a struct's fields.
    pub(super) fn fields(&self, ty: Type) -> Vec<Type> {
        self.structure(ty).map_or(Vec::new(), |s| s.fields.iter().map(|f| f.1).collect())
    }

    /// The types of what a value of that type consists of.
    pub(super) fn leaves(&self, ty: Type) -> Vec<Type> {
        match ty {
            VOID => Vec::new(),
            _ if is_struct(ty) => self.structure(ty).map_or(Vec::new(), |s| s.leaves.iter().map(|l| l.1).collect()),
            _ => vec![ty],
        }
    }

    pub(super) fn leaves_of(&self, types: &[Type]) -> Vec<Type> {
        types.iter().flat_map(|&ty| self.leaves(ty)).collect()
    }

    /// The leaves of something called `name`, with names.
    pub(super) fn named_leaves(&self, ty: Type, name: &str) -> Vec<(String, Type)> {
        match ty {
            VOID => Vec::new(),
            _ if is_struct(ty) => {
                let leaves = self.structure(ty).map_or(&[][..], |s| &s.leaves);
                leaves.iter().map(|(leaf, ty)| (format!("{name}_{leaf}"), *ty)).collect()
            }
            _ => vec![(name.to_string(), ty)],
        }
    }

    // --- Places.

    /// The place of a variable or a field of one, with its first leaf; what else there is has no such place.
    pub(super) fn variable(&mut self, expr: &Expr<'s>) -> Done<Option<(Type, usize)>> {
        let mut fields = Vec::new();
        let mut of = expr;
        while let Some((inner, PostfixKind::Field(name))) = of.behind() {
            fields.push(*name);
            of = inner;
        }
        let ExprKind::Name(name) = of.kind else { return Ok(None) };
        let (mut ty, mut first) = match self.used(name, of.span) {
            Some(Entity::Local(ty, first)) => (ty, first),
            Some(Entity::Function(_)) => return self.fault(staging_name::function(of.span, name)),
            None => return self.fault(staging_name::in_c(of.span, name)),
        };
        for name in fields.into_iter().rev() {
            let (field, leaf) = self.field(ty, name)?;
            (ty, first) = (field, first + leaf);
        }
        Ok(Some((ty, first)))
    }

    fn field(&mut self, of: Type, name: Name<'s>) -> Done<(Type, usize)> {
        let found = self.structure(of).filter(|_| of.pointers == 0);
        match found.and_then(|s| s.fields.iter().find(|f| f.0 == name.text)) {
            Some(&(_, ty, leaf)) => Ok((ty, leaf)),
            None => {
                let shown = self.show(of);
                let is_pointer = of.pointers > 0 && matches!(of.base, Base::Struct(_));
                self.fault(staging_type::no_field(name.span, &shown, name.text, is_pointer))
            }
        }
    }

    pub(super) fn place(&mut self, expr: &Expr<'s>) -> Done<Place> {
        if let Some((ty, first)) = self.variable(expr)? {
            return Ok(Place::Local { ty, first });
        }
        match expr.behind() {
            Some((array, PostfixKind::Index(idx))) => {
                let array = self.pointer(array)?;
                let idx = self.value(idx, INT, "t")?;
                let ty = Type { pointers: array.ty.pointers - 1, ..array.ty };
                Ok(Place::Element { array, idx, ty, leaf: 0 })
            }
            Some((of, kind @ (PostfixKind::Field(name) | PostfixKind::Arrow(name)))) => {
                let place = if matches!(kind, PostfixKind::Field(_)) {
                    self.place(of)?
                } else {
                    let array = self.pointer(of)?;
                    let idx = self.literal(Const::Int(0), INT, None, of.span);
                    let ty = Type { pointers: array.ty.pointers - 1, ..array.ty };
                    Place::Element { array, idx, ty, leaf: 0 }
                };
                let (ty, at) = self.field(place.ty(), *name)?;
                Ok(match place {
                    Place::Local { first, .. } => Place::Local { ty, first: first + at },
                    Place::Element { array, idx, leaf, .. } => Place::Element { array, idx, ty, leaf: leaf + at },
                    Place::Value(_, operands) => {
                        let n = self.leaves(ty).len();
                        Place::Value(ty, operands[at..at + n].to_vec())
                    }
                })
            }
            _ => {
                let (ty, operands) = self.parts(expr, "t")?;
                Ok(Place::Value(ty, operands))
            }
        }
    }

    /// The leaves of what is there. `name` is that of what is loaded.
    pub(super) fn load(&mut self, place: Place, name: &str, expr: &Expr<'s>) -> Done<(Type, Vec<Operand>)> {
        let span = expr.span;
        match place {
            Place::Local { ty, first } => {
                let n = self.leaves(ty).len();
                let mut operands = Vec::new();
                for local in first..first + n {
                    match self.locals[local] {
                        Local { ty, value: Some(value) } => {
                            operands.push(Operand { value, ty, span, exact: None, is_new: false });
                        }
                        Local { value: None, .. } => return self.fault(staging_name::unassigned(span, &written(expr))),
                    }
                }
                Ok((ty, operands))
            }
            Place::Element { array, idx, ty, leaf } => {
                if !is_struct(Type { pointers: array.ty.pointers - 1, ..array.ty }) {
                    return Ok((ty, vec![self.op(Prim::At, &[array.value, idx.value], ty, name, span)]));
                }
                let leaves = self.named_leaves(ty, name).into_iter().enumerate();
                let operands = leaves.map(|(i, (name, ty))| {
                    let leaf = Value::Const(Const::Int((leaf + i) as i32));
                    self.op(Prim::Field, &[array.value, idx.value, leaf], ty, &name, span)
                });
                Ok((ty, operands.collect()))
            }
            Place::Value(ty, operands) => Ok((ty, operands)),
        }
    }

    /// Stores the leaves of an element.
    pub(super) fn store(&mut self, array: Operand, idx: Value, leaf: usize, operands: &[Operand], span: Span) {
        let in_struct = is_struct(Type { pointers: array.ty.pointers - 1, ..array.ty });
        for (i, operand) in operands.iter().enumerate() {
            let (prim, args) = if in_struct {
                let leaf = Value::Const(Const::Int((leaf + i) as i32));
                (Prim::PutField, vec![array.value, idx, leaf, operand.value])
            } else {
                (Prim::Put, vec![array.value, idx, operand.value])
            };
            let mut stage = self.at;
            for &arg in &args {
                stage = self.with_value(stage, arg);
            }
            self.push(stage, Callee::Value(Value::Const(Const::Prim(prim))), args, Vec::new(), span);
        }
    }

    /// A struct of the values in braces.
    pub(super) fn in_braces(&mut self, elements: &[Expr<'s>], ty: Type, name: &str, span: Span) -> Done<Vec<Operand>> {
        let fields = self.fields(ty);
        self.arguments(span, elements.len(), fields.len())?;
        let mut operands = Vec::new();
        for (expr, field) in elements.iter().zip(fields) {
            operands.extend(self.values(expr, field, name)?);
        }
        Ok(operands)
    }
}

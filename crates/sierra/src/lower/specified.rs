//! Types as they are written.

use super::*;
use crate::types::{Extent, MAX_LEAVES, MAX_NESTED};

impl<'s> Lowerer<'s, '_> {
    pub(super) fn specified(&mut self, specifier: &Specifier<'s>) -> Lowered<Ty> {
        let mut ty = self.specified_lane(specifier)?;
        if let Some(n) = &specifier.short {
            ty = self.short_vector(ty, n, specifier.span)?;
        }
        if let Some(n) = specifier.words.soa {
            ty = self.soa_type(ty, n, specifier.span)?;
        }
        if specifier.words.is_uniform {
            ty = self.types.lane(ty);
        }
        match &specifier.varying {
            Some(n) => {
                let n = self.length(n)?;
                self.with_lanes(ty, n, specifier.span)
            }
            None => Ok(ty),
        }
    }

    fn specified_lane(&mut self, specifier: &Specifier<'s>) -> Lowered<Ty> {
        match &specifier.kind {
            SpecifierKind::Void => Ok(Types::VOID),
            SpecifierKind::Prim(prim) => Ok(self.types.prim(*prim)),
            SpecifierKind::Auto => Err(Box::new(sierra_type::not_deduced(specifier.span))),
            SpecifierKind::Named(name, args) => match self.find(name.text) {
                Some(Entity::Type(ty)) => Ok(ty),
                Some(Entity::Template(template)) => self.struct_instance(template, *name, args),
                _ => Err(Box::new(sierra_name::error(name.span, name.text))),
            },
            SpecifierKind::Struct(is_union, name, fields) => {
                self.struct_type(*is_union, *name, fields.as_deref(), specifier.span)
            }
            SpecifierKind::Enum(name, values) => self.enum_type(*name, values.as_deref()),
        }
    }

    fn struct_type(
        &mut self,
        is_union: bool,
        name: Option<Name<'s>>,
        fields: Option<&[Declaration<'s>]>,
        span: Span,
    ) -> Lowered<Ty> {
        // Another file may have it from the same header.
        let of_file = name.filter(|_| self.scopes.len() == 1 && fields.is_some()).map(|name| (span, name.text));
        if let Some(&ty) = of_file.and_then(|of_file| self.structs_of_files.get(&of_file)) {
            if let Some(name) = name {
                self.declare(name, Entity::Type(ty))?;
            }
            return Ok(ty);
        }
        let known = name.and_then(|name| match fields {
            None => self.find(name.text),
            // One that is defined in an inner block is another.
            Some(_) => self.scopes.last().and_then(|s| s.get(name.text)).map(|e| e.0),
        });
        let known = match known {
            Some(Entity::Type(ty)) if self.types.as_struct(ty).is_some() => Some(ty),
            _ => None,
        };
        let ty = match known {
            Some(ty) => ty,
            None => {
                let text = name.map_or("struct", |name| name.text);
                let (_, ty) = self.types.declare_struct(text, span, self.w);
                if let Some(name) = name {
                    self.declare(name, Entity::Type(ty))?;
                }
                ty
            }
        };
        let (Some(fields), Kind::Struct(id)) = (fields, self.types.kind(ty)) else { return Ok(ty) };
        let id = *id;
        if let (Some(data), Some(name)) = (self.types.as_struct(ty).filter(|s| s.fields.is_some()), name) {
            return Err(Box::new(sierra_name::twice(name.span, name.text, data.declared)));
        }
        if is_union {
            self.types.set_union(id);
        }
        let found = self.struct_fields(fields)?;
        if is_union && found.iter().any(|f| self.is_anywhere_varying(f.ty)) {
            let hint = "write a `struct`";
            return Err(Box::new(limitation::not_supported(span, "unions of values with lanes", hint)));
        }
        self.types.set_fields(id, found, self.w);
        if let Some(of_file) = of_file {
            self.structs_of_files.insert(of_file, ty);
        }
        Ok(ty)
    }

    /// Whether a part of a type has lanes.
    pub(super) fn is_anywhere_varying(&self, ty: Ty) -> bool {
        match *self.types.kind(ty) {
            Kind::Array(of, _) => self.is_anywhere_varying(of),
            Kind::Struct(_) => self.types.fields(ty).into_iter().any(|ty| self.is_anywhere_varying(ty)),
            _ => self.types.is_varying(ty),
        }
    }

    pub(super) fn struct_fields(&mut self, fields: &[Declaration<'s>]) -> Lowered<Vec<Field>> {
        let mut found: Vec<Field> = Vec::new();
        let mut places: FxHashMap<&str, Span> = FxHashMap::default();
        let (mut extent, mut is_reported) = (Extent::default(), false);
        for declaration in fields {
            let base = self.specified(&declaration.specifier)?;
            for (declarator, init) in &declaration.declared {
                let ty = self.declared_type(base, declaration.specifier.is_const, declarator)?;
                let name = declarator.name.unwrap_or(Name { text: "", span: declarator.span });
                if declarator.params.is_some() {
                    let hint = "write functions that take the struct";
                    return Err(Box::new(limitation::not_supported(declarator.span, "functions in structs", hint)));
                }
                if init.is_some() {
                    let hint = "assign the field of each variable";
                    return Err(Box::new(limitation::not_supported(declarator.span, "values of fields", hint)));
                }
                self.complete(ty, declarator.span)?;
                if let Some(before) = places.insert(name.text, name.span) {
                    return Err(Box::new(sierra_name::twice(name.span, name.text, before)));
                }
                let with_it = self.types.with_field(extent, ty);
                let ty = if with_it.is_too_large() {
                    // The struct goes on without it: what has the struct as a part reports nothing more.
                    if !std::mem::replace(&mut is_reported, true) {
                        self.sink.push(sierra_type::too_large(declarator.span, MAX_NESTED, MAX_LEAVES));
                    }
                    Types::ERROR
                } else {
                    extent = with_it;
                    ty
                };
                found.push(Field { name: name.text.into(), ty, is_bound: declarator.rates.is_bound });
            }
        }
        Ok(found)
    }

    /// An enumeration is an `int`, as in C.
    fn enum_type(&mut self, name: Option<Name<'s>>, values: Option<&[(Name<'s>, Option<Expr<'s>>)]>) -> Lowered<Ty> {
        let int = self.types.prim(Prim::I32);
        let Some(values) = values else {
            let known = name.and_then(|name| self.find(name.text));
            return match (known, name) {
                (Some(Entity::Type(ty)), _) => Ok(ty),
                (_, Some(name)) => Err(Box::new(sierra_name::error(name.span, name.text))),
                _ => Ok(int),
            };
        };
        if let Some(name) = name {
            self.declare(name, Entity::Type(int))?;
        }
        let mut next = 0i64;
        for (name, value) in values {
            if let Some(value) = value {
                next = self.constant_int(value)?;
            }
            if i32::try_from(next).is_err() {
                return Err(Box::new(c_syntax::literal(name.span, name.text, "`int`")));
            }
            self.declare(*name, Entity::Constant(next, int))?;
            next += 1;
        }
        Ok(int)
    }

    /// The type of a variable, field or result, from that of the specifier.
    pub(super) fn declared_type(&mut self, base: Ty, is_const: bool, declarator: &Declarator<'s>) -> Lowered<Ty> {
        if declarator.is_reference {
            let hint = "take a pointer";
            return Err(Box::new(limitation::not_supported(
                declarator.span,
                "references that are no parameters or variables of functions",
                hint,
            )));
        }
        self.referred_type(base, is_const, declarator)
    }

    pub(super) fn referred_type(&mut self, base: Ty, is_const: bool, declarator: &Declarator<'s>) -> Lowered<Ty> {
        let mut ty = self.rated(base, declarator)?;
        let mut target_is_const = is_const;
        for (is_const, varying) in &declarator.pointers {
            ty = self.pointer_type(ty, target_is_const, varying.as_ref(), declarator.span)?;
            target_is_const = *is_const;
        }
        if declarator.params.is_some() {
            return Ok(ty);
        }
        if let Some(function) = &declarator.function {
            let simd = Some(self.gang).filter(|n| self.is_ispc && *n > 1);
            ty = self.function_pointer(ty, function, simd, declarator.span)?;
        }
        for length in declarator.lengths.iter().rev() {
            ty = self.array_of(ty, length.as_ref(), declarator.span)?;
        }
        Ok(ty)
    }

    pub(super) fn array_of(&mut self, of: Ty, length: Option<&Expr<'s>>, span: Span) -> Lowered<Ty> {
        let Some(length) = length else {
            return Err(Box::new(sierra_constant::length(span)));
        };
        self.complete(of, span)?;
        let n = self.constant_int(length)?;
        let total = self.elements(of).checked_mul(n.try_into().unwrap_or(0));
        if n < 1 || total.is_none_or(|total| total > MAX_LENGTH) {
            return Err(Box::new(sierra_constant::length(length.span)));
        }
        let ty = self.types.array(of, n as u64);
        self.depth(ty, span)?;
        Ok(ty)
    }

    pub(super) fn pointer_type(
        &mut self,
        to: Ty,
        is_const: bool,
        varying: Option<&Expr<'s>>,
        span: Span,
    ) -> Lowered<Ty> {
        let ty = self.pointer_to(to, is_const);
        self.depth(ty, span)?;
        match varying {
            Some(n) => {
                let n = self.length(n)?;
                self.with_lanes(ty, n, span)
            }
            None => Ok(ty),
        }
    }

    /// A pointer to a function with this result.
    pub(super) fn function_pointer(
        &mut self,
        result: Ty,
        function: &FunctionPointer<'s>,
        simd: Option<u32>,
        span: Span,
    ) -> Lowered<Ty> {
        if result != Types::VOID {
            self.complete(result, span)?;
        }
        let mut params = Vec::new();
        for (specifier, declarator) in &function.params {
            let base = self.specified(specifier)?;
            params.push(self.param_type(base, specifier.is_const, declarator)?);
        }
        let mut ty = self.types.function(Signature { params, result, simd });
        self.depth(ty, span)?;
        let mut is_const = false;
        for (i, (next_is_const, varying)) in function.pointers.iter().enumerate() {
            match varying {
                Some(n) if i == 0 => {
                    let n = self.length(n)?;
                    ty = self.with_lanes(ty, n, span)?;
                }
                _ if i == 0 => {}
                varying => ty = self.pointer_type(ty, is_const, varying.as_ref(), span)?,
            }
            is_const = *next_is_const;
        }
        Ok(ty)
    }

    /// The elements of an array of arrays; 1 for other types.
    pub(super) fn elements(&self, mut ty: Ty) -> u64 {
        let mut n = 1u64;
        while let Kind::Array(of, length) = *self.types.kind(ty) {
            n = n.saturating_mul(length);
            ty = of;
        }
        n
    }

    pub(super) fn depth(&self, ty: Ty, span: Span) -> Lowered<()> {
        if self.types.is_too_deep(ty) {
            return Err(Box::new(sierra_type::too_deep(span, crate::types::MAX_DEPTH)));
        }
        Ok(())
    }

    pub(super) fn complete(&self, ty: Ty, span: Span) -> Lowered<()> {
        if self.types.is_complete(ty) {
            return Ok(());
        }
        Err(Box::new(sierra_type::incomplete(span, &self.types.show(ty))))
    }

    pub(super) fn type_name(&mut self, (specifier, declarator): &TypeName<'s>) -> Lowered<Ty> {
        let base = self.specified(specifier)?;
        self.declared_type(base, specifier.is_const, declarator)
    }

    pub(super) fn is_const(specifier: &Specifier, declarator: &Declarator) -> bool {
        let of_function = declarator.function.as_ref().map(|f| &f.pointers);
        let last = of_function.unwrap_or(&declarator.pointers).last();
        last.map_or(specifier.is_const && of_function.is_none(), |p| p.0)
    }
}

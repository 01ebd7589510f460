//! Calls of functions, also in SIMD mode.

use super::*;

/// What a call leads to.
pub(super) struct Callee {
    pub target: Target,
    pub params: Vec<Ty>,
    pub result: Ty,
    pub simd: Option<u32>,
    /// [`Span::NONE`] of a pointer.
    pub declared: Span,
}

#[derive(Clone, Copy)]
pub(super) enum Target {
    /// A place in [`Lowerer::functions`].
    Function(usize),
    /// A pointer, and its type.
    Pointer(Val, Ty),
}

impl<'s> Lowerer<'s, '_> {
    /// A call by a name, which may have arguments of a template behind it.
    pub(super) fn call(
        &mut self,
        name: Name<'s>,
        of: &[TemplateArg<'s>],
        args: &[Expr<'s>],
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let set = match self.find(name.text) {
            Some(Entity::Functions(set)) => set,
            Some(Entity::Variable(variable)) => {
                let pointer = self.read(Value::Place(variable), name.span)?;
                return self.call_pointer(pointer, args, [span, name.span]);
            }
            Some(_) => return Err(Box::new(sierra_type::no_function(name.span))),
            None => return self.intrinsic(name, args, span),
        };
        // In ISPC's dialect, the library may have others of the name.
        let of_library = self.library.get(name.text).and_then(|e| match e.0 {
            Entity::Functions(other) if self.is_ispc && other != set => Some(other),
            _ => None,
        });
        let is_shared = self.is_ispc && (library::has(name.text) || of_library.is_some());
        if let ([overloads::Candidate::Function(id)], [], false) = (&self.sets[set][..], of, is_shared) {
            let callee = self.callee(*id);
            let found = self.arguments_for(&callee, args, span)?;
            let mut places: Vec<Span> = args.iter().map(|a| a.span).collect();
            places.resize(found.len(), span);
            return self.call_found(&callee, found, &places, span);
        }
        let mut values = Vec::new();
        for arg in args {
            let value = self.expression(arg)?;
            values.push((value, arg.span));
        }
        let mut set = set;
        if is_shared && !self.takes(set, of, &values, span)? {
            match of_library {
                Some(other) => set = other,
                None if library::has(name.text) => return self.intrinsic(name, args, span),
                None => {}
            }
        }
        let id = self.chosen(set, name.text, of, &values, span)?;
        let callee = self.callee(id);
        self.call_values(&callee, &values, span)
    }

    pub(super) fn callee(&mut self, id: usize) -> Callee {
        self.wait_for(id);
        let f = &self.functions[id];
        let (target, params) = (Target::Function(id), f.params.clone());
        Callee { target, params, result: f.result, simd: f.simd, declared: f.declared }
    }

    /// The values of arguments; for references, addresses.
    pub(super) fn arguments_for(&mut self, callee: &Callee, args: &[Expr<'s>], span: Span) -> Lowered<Vec<(Val, Ty)>> {
        let defaults = self.defaults_of(callee, args.len());
        if callee.params.len() != args.len() + defaults.len() {
            let (found, expected) = (args.len(), callee.params.len());
            return Err(Box::new(sierra_type::arguments(span, found, expected, callee.declared)));
        }
        let mut found = Vec::new();
        for (arg, &ty) in args.iter().chain(defaults.iter().map(|d| &**d)).zip(&callee.params) {
            found.push(match *self.types.kind(ty) {
                Kind::Reference { to, is_const } => (self.referred(arg, to, is_const)?, ty),
                _ => self.value_for(arg, ty)?,
            });
        }
        Ok(found)
    }

    /// A call with values that are known.
    pub(super) fn call_values(&mut self, callee: &Callee, args: &[(Value, Span)], span: Span) -> Lowered<(Val, Ty)> {
        let mut found = Vec::new();
        for ((value, place), &ty) in args.iter().zip(&callee.params) {
            found.push(match *self.types.kind(ty) {
                Kind::Reference { to, is_const } => (self.referred_value(value.clone(), to, is_const, *place)?, ty),
                _ => {
                    let found = self.read(value.clone(), *place)?;
                    self.fits_mode(found.1, *place)?;
                    found
                }
            });
        }
        for (default, &ty) in self.defaults_of(callee, args.len()).iter().zip(&callee.params[args.len()..]) {
            found.push(match *self.types.kind(ty) {
                Kind::Reference { to, is_const } => (self.referred(default, to, is_const)?, ty),
                _ => self.value_for(default, ty)?,
            });
        }
        let mut places: Vec<Span> = args.iter().map(|a| a.1).collect();
        places.resize(found.len(), span);
        self.call_found(callee, found, &places, span)
    }

    pub(super) fn call_found(
        &mut self,
        callee: &Callee,
        found: Vec<(Val, Ty)>,
        places: &[Span],
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        // An `unmasked` function of ISPC's dialect begins with all lanes.
        let is_unmasked =
            matches!(callee.target, Target::Function(id) if self.functions[id].of_ispc && self.functions[id].is_own);
        if let (Some(mode), None, false) = (self.mode.filter(|m| m.is_real()), callee.simd, is_unmasked) {
            let has_lanes = |ty: Ty| match *self.types.kind(ty) {
                Kind::Reference { to, .. } => self.types.is_varying(to),
                _ => self.types.is_varying(ty),
            };
            let is_ispc = matches!(callee.target, Target::Function(id) if self.functions[id].of_ispc && self.functions[id].source.is_some());
            if is_ispc || callee.params.iter().any(|&ty| has_lanes(ty)) {
                if let Target::Function(id) = callee.target
                    && let Some(variant) = self.in_simd_mode(id, mode.n, span)?
                {
                    let callee = self.callee(variant);
                    return self.call_found(&callee, found, places, span);
                }
                let hint = format!("declare it `simd({})`", mode.n);
                let what = "calls in SIMD mode, of other files or through pointers, of functions that have lanes, but not the mode,";
                return Err(Box::new(limitation::not_supported(span, what, &hint)));
            }
            if found.iter().any(|f| self.types.is_varying(f.1)) {
                return self.call_for_each(callee, &found, places, mode, span);
            }
        }
        let mut vals = Vec::new();
        if let Some(n) = callee.simd {
            self.same_mode(n, span)?;
            let mask = self.current_mask(n, span)?;
            vals.push(self.bools(mask));
        }
        for ((found, &ty), place) in found.into_iter().zip(&callee.params).zip(places) {
            self.w.set_origin(*place);
            vals.push(self.convert(found, ty, *place)?);
        }
        let val = self.call_with(callee, vals, span)?;
        Ok((val, callee.result))
    }

    /// The address of an argument that is passed as a reference. What is only read may be a value.
    pub(super) fn referred(&mut self, arg: &Expr<'s>, to: Ty, is_const: bool) -> Lowered<Val> {
        let value = self.expression(arg)?;
        self.referred_value(value, to, is_const, arg.span)
    }

    fn referred_value(&mut self, value: Value, to: Ty, is_const: bool, span: Span) -> Lowered<Val> {
        let pointer = self.types.pointer(to, is_const);
        match value {
            Value::Place(place) if place.ty == to && (is_const || !place.is_const) => {
                self.fits_mode(place.ty, span)?;
                Ok(self.retyped(place.address, pointer))
            }
            value if is_const => {
                let found = self.read(value, span)?;
                let val = self.convert(found, to, span)?;
                self.mem(span)?;
                let address = self.slot(val);
                Ok(self.retyped(address, pointer))
            }
            Value::Place(place) if place.ty == to => Err(Box::new(sierra_type::constant(span))),
            value => {
                let ty = value.ty();
                let (found, expected) = (self.types.show(ty), format!("a variable of type `{}`", self.types.show(to)));
                Err(Box::new(sierra_type::mismatch(span, &found, &expected)))
            }
        }
    }

    pub(super) fn call_with(&mut self, callee: &Callee, mut vals: Vec<Val>, span: Span) -> Lowered<Val> {
        let result = callee.result;
        self.mem(span)?;
        self.w.set_origin(span);
        if !self.is_reached() {
            let ir = self.types.ir(result, self.w);
            return Ok(self.w.undef(ir));
        }
        let ty = self.return_type(result);
        let k = self.w.declare("called", ty, if result == Types::VOID { &["m"] } else { &["m", "result"] });
        vals.push(self.w.cont_val(k));
        let called = match callee.target {
            Target::Function(id) => {
                self.functions[id].is_used = true;
                self.functions[id].k
            }
            Target::Pointer(pointer, ty) => {
                vals.insert(0, pointer);
                self.dispatcher(ty)
            }
        };
        let callee = self.w.cont_val(called);
        self.end(callee, &vals);
        self.go_on_in(k);
        Ok(if result == Types::VOID { self.w.unit() } else { self.w.param(k, 1) })
    }

    /// Calls a function that knows nothing of lanes for each active lane.
    fn call_for_each(
        &mut self,
        callee: &Callee,
        found: &[(Val, Ty)],
        places: &[Span],
        mode: super::lanes::Mode,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let (params, result) = (&callee.params, callee.result);
        let ty = if result == Types::VOID { result } else { self.with_lanes(result, mode.n, span)? };
        if !matches!(self.types.kind(ty), Kind::Void | Kind::Varying(..)) {
            let hint = format!("declare it `simd({})`", mode.n);
            return Err(Box::new(limitation::not_supported(
                span,
                "calls for each lane whose results are no numbers",
                &hint,
            )));
        }
        let results = (ty != Types::VOID).then(|| {
            let zero = self.zero(ty);
            self.slot(zero)
        });
        let mask = self.load(mode.mask, span)?;
        let active = self.bools(mask);
        for i in 0..mode.n {
            let number = self.w.lit_i32(i as i32);
            let is_active = self.w.op(Op::Extract, &[active, number]);
            let (call, next) = (self.block("lane"), self.block("next"));
            self.branch(is_active, call, next);
            self.go_on_in(call);
            let mut vals = Vec::new();
            for ((&(val, from), &to), &place) in found.iter().zip(params).zip(places) {
                let val = self.lane_of(val, from, number);
                let lane = self.types.lane(from);
                vals.push(self.convert((val, lane), to, place)?);
            }
            let val = self.call_with(callee, vals, span)?;
            if let Some(results) = results {
                let old = self.load(results, span)?;
                let new = self.w.op(Op::Insert, &[old, number, val]);
                self.store(results, new, span)?;
            }
            self.jump(next, &[]);
            self.go_on_in(next);
        }
        match results {
            Some(results) => Ok((self.load(results, span)?, ty)),
            None => Ok((self.w.unit(), ty)),
        }
    }
}

//! Calls of functions, also in SIMD mode.

use super::*;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn call(&mut self, name: Name<'s>, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let id = match self.find(name.text) {
            Some(Entity::Function(id)) => id,
            Some(_) => return Err(Box::new(sierra_type::no_function(name.span))),
            None => return self.intrinsic(name, args, span),
        };
        let (params, result) = (self.functions[id].params.clone(), self.functions[id].result);
        if params.len() != args.len() {
            let declared = self.functions[id].declared;
            return Err(Box::new(sierra_type::arguments(span, args.len(), params.len(), declared)));
        }
        let mut found = Vec::new();
        for (arg, &ty) in args.iter().zip(&params) {
            found.push(match *self.types.kind(ty) {
                Kind::Reference { to, is_const } => (self.referred(arg, to, is_const)?, ty),
                _ => self.value(arg)?,
            });
        }
        let simd = self.functions[id].simd;
        if let (Some(mode), None) = (self.mode.filter(|m| m.is_real()), simd) {
            let has_lanes = |ty: Ty| match *self.types.kind(ty) {
                Kind::Reference { to, .. } => self.types.is_varying(to),
                _ => self.types.is_varying(ty),
            };
            if params.iter().any(|&ty| has_lanes(ty)) {
                let hint = format!("declare it `simd({})`", mode.n);
                let what = "calls in SIMD mode of functions that have lanes, but not the mode,";
                return Err(Box::new(limitation::not_supported(span, what, &hint)));
            }
            if found.iter().any(|f| self.types.is_varying(f.1)) {
                return self.call_for_each(id, &found, args, mode, span);
            }
        }
        let mut vals = Vec::new();
        if let Some(n) = simd {
            self.same_mode(n, span)?;
            let mask = self.current_mask(n, span)?;
            vals.push(self.bools(mask));
        }
        for ((found, &ty), arg) in found.into_iter().zip(&params).zip(args) {
            self.w.set_origin(arg.span);
            vals.push(self.convert(found, ty, arg.span)?);
        }
        let val = self.call_with(id, vals, span)?;
        Ok((val, result))
    }

    /// The address of an argument that is passed as a reference. What is only read may be a value.
    pub(super) fn referred(&mut self, arg: &Expr<'s>, to: Ty, is_const: bool) -> Lowered<Val> {
        let value = self.expression(arg)?;
        let pointer = self.types.pointer(to, is_const);
        match value {
            Value::Place(place) if place.ty == to && (is_const || !place.is_const) => {
                self.fits_mode(place.ty, arg.span)?;
                Ok(self.retyped(place.address, pointer))
            }
            value if is_const => {
                let found = self.read(value, arg.span)?;
                let val = self.convert(found, to, arg.span)?;
                self.mem(arg.span)?;
                let address = self.slot(val);
                Ok(self.retyped(address, pointer))
            }
            Value::Place(place) if place.ty == to => Err(Box::new(sierra_type::constant(arg.span))),
            Value::Place(Variable { ty, .. }) | Value::Lanes(Lanes { ty, .. }) | Value::Plain(_, ty) => {
                let (found, expected) = (self.types.show(ty), format!("a variable of type `{}`", self.types.show(to)));
                Err(Box::new(sierra_type::mismatch(arg.span, &found, &expected)))
            }
        }
    }

    fn call_with(&mut self, id: usize, mut vals: Vec<Val>, span: Span) -> Lowered<Val> {
        let result = self.functions[id].result;
        self.mem(span)?;
        self.w.set_origin(span);
        if !self.is_reached() {
            let ir = self.types.ir(result, self.w);
            return Ok(self.w.undef(ir));
        }
        let ty = self.return_type(result);
        let k = self.w.declare("called", ty, if result == Types::VOID { &["m"] } else { &["m", "result"] });
        vals.push(self.w.cont_val(k));
        let callee = self.w.cont_val(self.functions[id].k);
        self.end(callee, &vals);
        self.go_on_in(k);
        Ok(if result == Types::VOID { self.w.unit() } else { self.w.param(k, 1) })
    }

    /// Calls a function that knows nothing of lanes for each active lane.
    fn call_for_each(
        &mut self,
        id: usize,
        found: &[(Val, Ty)],
        args: &[Expr<'s>],
        mode: super::lanes::Mode,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let (params, result) = (self.functions[id].params.clone(), self.functions[id].result);
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
            for ((&(val, from), &to), arg) in found.iter().zip(&params).zip(args) {
                let val = self.lane_of(val, from, number);
                let lane = self.types.lane(from);
                vals.push(self.convert((val, lane), to, arg.span)?);
            }
            let val = self.call_with(id, vals, span)?;
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

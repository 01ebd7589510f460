//! Code of functions: what is there at their beginning and end.

use super::*;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn function(&mut self, id: usize, function: &syntax::Function<'s>) -> Lowered<()> {
        let (k, result, declared, simd) = {
            let f = &self.functions[id];
            (f.k, f.result, f.declared, f.simd)
        };
        let Some(name) = function.declarator.name else { return Ok(()) };
        if std::mem::replace(&mut self.functions[id].is_defined, true) {
            return Err(Box::new(sierra_name::twice(name.span, name.text, declared)));
        }
        self.functions[id].declared = name.span;
        self.instance = matches!(self.functions[id].source, Some(templates::Source::Template(..))).then_some(id);
        self.scopes.push(FxHashMap::default());
        self.reached.insert(k);
        self.go_on_in(k);
        let mut params: Vec<Val> = self.w.params(k)[1..].to_vec();
        self.result = params.last().map(|&ret| (ret, result));
        let types = self.functions[id].params.clone();
        self.known.clear();
        self.loops.clear();
        self.around.clear();
        self.locals.clear();
        self.lane_references.clear();
        self.values.clear();
        self.rest_is_cheap = true;
        self.is_in_foreach = false;
        self.labels.clear();
        self.has_jumps = function.has_jumps;
        self.uses = (function.has_lanes && !function.has_jumps).then(|| uses::Uses::of(&function.body));
        let mask = simd.map(|_| params.remove(0));
        // `simd(1)`: lanes cannot return one by one, and values may have any numbers of lanes.
        let is_scalar = simd.is_none() && function.specifier.simd.is_some();
        let (of_params, of_result) = if is_scalar { (&[][..], Types::VOID) } else { (&types[..], result) };
        self.begin_lanes(simd, mask, of_params, of_result);
        self.borrowed = if function.has_alloca { Some(self.nothing_borrowed()) } else { None };
        self.pending = if function.has_tasks { Some(self.no_tasks()) } else { None };
        for (i, (specifier, declarator)) in function.declarator.params.iter().flatten().enumerate() {
            let Some(name) = declarator.name else { continue };
            self.w.set_origin(name.span);
            if let Kind::Reference { to, is_const } = *self.types.kind(types[i]) {
                let zero = self.w.lit_i64(0);
                let address = self.w.op(Op::Lea, &[params[i], zero]);
                self.declare(name, Entity::Variable(Variable { address, ty: to, is_const }))?;
                continue;
            }
            // Other code passes addresses of blocks.
            let (val, ty) = self.as_slice((params[i], types[i]), name.span)?;
            let address = self.slot(val);
            let is_const = declarator.lengths.is_empty() && Self::is_const(specifier, declarator);
            self.declare(name, Entity::Variable(Variable { address, ty, is_const }))?;
        }
        if self.functions[id].is_task {
            let n = params.len().saturating_sub(1 + ispc::TASK.len());
            self.declare_task(&params[n..n + ispc::TASK.len()], name.span)?;
        }
        self.statements(&function.body);
        self.w.set_origin(function.end);
        self.end_of_function(name.text);
        self.scopes.pop();
        Ok(())
    }

    /// Gives a function a mask if lanes may return from it one by one.
    fn begin_lanes(&mut self, simd: Option<u32>, mask: Option<Val>, params: &[Ty], result: Ty) {
        self.mode = None;
        self.returned = None;
        let lanes = |ty: Ty| match *self.types.kind(ty) {
            Kind::Reference { to, .. } => self.types.lanes(to),
            _ => self.types.lanes(ty),
        };
        let of_types = params.iter().chain([&result]).find_map(|&ty| lanes(ty));
        let of_gang = Some(self.gang).filter(|n| self.is_ispc && *n > 1);
        let Some(n) = simd.or(of_gang).or(of_types) else { return };
        let all = self.all_lanes(n, true);
        let none = self.all_lanes(n, false);
        let mask = mask.map_or(all, |bools| self.mask_of_bools(bools));
        let (active, returned) = (self.slot(mask), self.slot(none));
        let value = (result != Types::VOID).then(|| {
            let zero = self.zero(result);
            self.slot(zero)
        });
        let epilogue = self.block("epilogue");
        self.mode = Some(lanes::Mode { n, mask: active, end: epilogue, is_implicit: simd.is_none(), has_left: false });
        self.returned = Some(lanes::Returned { mask: returned, value, epilogue });
    }

    fn end_of_function(&mut self, name: &str) {
        let Some((ret, ty)) = self.result.take() else { return };
        self.mode = None;
        self.report_jumps();
        if let Some(returned) = self.returned.take() {
            self.jump(returned.epilogue, &[]);
            self.go_on_in(returned.epilogue);
            let done = self.sync(Span::NONE).and_then(|()| self.give_back());
            self.report(done);
            match returned.value.map(|at| self.load(at, Span::NONE)) {
                Some(Ok(val)) => self.end(ret, &[val]),
                _ => self.end(ret, &[]),
            }
            return;
        }
        if ty == Types::VOID {
            self.end(ret, &[]);
        } else if name == "main" {
            let zero = self.zero(ty);
            self.end(ret, &[zero]);
        } else {
            let callee = self.w.builtin(Builtin::Unreachable);
            self.end(callee, &[]);
        }
    }
}

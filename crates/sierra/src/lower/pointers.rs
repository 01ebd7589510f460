//! Pointers to functions.
//!
//! A pointer is a number: 0, or that of a function whose address the program takes. A call through one is a call of a function that compares the number
//! with those of all functions of the type, and calls the right one; it is made when all are known. So every engine has them, lanes can have them, and
//! partial evaluation sees through them. Other code cannot have them.

use super::*;
use crate::lower::calls::{Callee, Target};

#[derive(Default)]
pub(super) struct Pointers {
    /// Functions whose address is taken, in order.
    taken: Vec<usize>,
    /// For each type of pointers the function that calls them.
    dispatchers: Vec<(Ty, Cont)>,
}

impl<'s> Lowerer<'s, '_> {
    pub(super) fn is_function(&self, e: &Expr<'s>) -> bool {
        matches!(e.kind, ExprKind::Name(name) if matches!(self.find(name), Some(Entity::Functions(_))))
    }

    /// A function as a value, if there is one of its name.
    pub(super) fn function_value(&mut self, set: usize, name: Name<'s>) -> Lowered<Value> {
        match self.sets[set][..] {
            [overloads::Candidate::Function(id)] => self.taken(id, name.span),
            _ => Err(Box::new(sierra_type::several(name.span, name.text))),
        }
    }

    /// A value for a place of a type, which decides which of several functions is meant.
    pub(super) fn value_for(&mut self, e: &Expr<'s>, ty: Ty) -> Lowered<(Val, Ty)> {
        let inner = if let ExprKind::Unary(Unary::AddressOf, inner) = &e.kind { inner } else { e };
        let lane = self.types.lane(ty);
        if let (ExprKind::Name(name), Kind::Function(signature)) = (&inner.kind, self.types.kind(lane))
            && let Some(Entity::Functions(set)) = self.find(name)
        {
            let signature = signature.clone();
            let fits = |f: &Function<'_>| f.params == signature.params && f.result == signature.result;
            let found = overloads::functions(&self.sets[set]).find(|&id| fits(&self.functions[id]));
            if let Some(id) = found {
                let Value::Plain(val, ty) = self.taken(id, e.span)? else { return self.value(e) };
                return Ok((val, ty));
            }
        }
        self.value(e)
    }

    fn taken(&mut self, id: usize, span: Span) -> Lowered<Value> {
        self.wait_for(id);
        let f = &mut self.functions[id];
        f.is_used = true;
        if f.simd.is_some() && !f.of_ispc {
            let hint = "take a pointer to a function without `simd`";
            return Err(Box::new(limitation::not_supported(span, "pointers to functions in SIMD mode", hint)));
        }
        let simd = f.simd.filter(|_| f.of_ispc);
        let signature = Signature { params: f.params.clone(), result: f.result, simd };
        let at = match self.pointers.taken.iter().position(|&known| known == id) {
            Some(at) => at,
            None => {
                self.pointers.taken.push(id);
                self.pointers.taken.len() - 1
            }
        };
        let ty = self.types.function(signature);
        Ok(Value::Plain(self.w.lit_prim(Prim::U64, at as u64 + 1), ty))
    }

    /// The function that calls pointers of a type: its first parameter is the pointer.
    pub(super) fn dispatcher(&mut self, ty: Ty) -> Cont {
        if let Some(&(_, known)) = self.pointers.dispatchers.iter().find(|d| d.0 == ty) {
            return known;
        }
        let Some(signature) = self.types.as_function(ty).cloned() else { return self.block("call") };
        let code = self.code_type(&signature);
        let mut types = self.w.types.cn_params(code).unwrap_or_default().to_vec();
        types.insert(1, self.w.types.prim(Prim::U64));
        let mut names = vec!["m", "pointer"];
        names.extend(signature.params.iter().map(|_| "x"));
        names.push("return");
        let code = self.w.types.cn(&types);
        let k = self.w.declare("call", code, &names);
        // Where the pointer is known, so is the function.
        let pointer = self.w.param(k, 1);
        let filter = self.w.op(Op::Known, &[pointer]);
        self.w.cont_mut(k).filter = ir::Filter { all: Some(filter), params: Vec::new() }.into();
        self.pointers.dispatchers.push((ty, k));
        k
    }

    pub(super) fn fill_dispatchers(&mut self) {
        for (ty, k) in self.pointers.dispatchers.clone() {
            let params = self.w.params(k).to_vec();
            self.reached.insert(k);
            self.go_on_in(k);
            for (at, id) in self.pointers.taken.clone().into_iter().enumerate() {
                let f = &self.functions[id];
                let simd = f.simd.filter(|_| f.of_ispc);
                let signature = Signature { params: f.params.clone(), result: f.result, simd };
                if self.types.function(signature) != ty {
                    continue;
                }
                let number = self.w.lit_prim(Prim::U64, at as u64 + 1);
                let is_equal = self.w.op(Op::Eq, &[params[1], number]);
                let (then, rest) = (self.block("then"), self.block("else"));
                self.branch(is_equal, then, rest);
                self.go_on_in(then);
                let callee = self.w.cont_val(self.functions[id].k);
                self.end(callee, &params[2..]);
                self.go_on_in(rest);
            }
            let callee = self.w.builtin(Builtin::Unreachable);
            self.end(callee, &[]);
        }
        self.cur = None;
    }

    /// Whether a part of a type is a pointer to a function.
    pub(super) fn is_anywhere_function(&self, ty: Ty) -> bool {
        match *self.types.kind(ty) {
            Kind::Array(of, _) => self.is_anywhere_function(of),
            Kind::Struct(_) => self.types.fields(ty).into_iter().any(|ty| self.is_anywhere_function(ty)),
            Kind::Function(_) | Kind::VaryingFunction(..) => true,
            _ => false,
        }
    }

    /// `==` and `!=` of pointers to functions, one of which may be null.
    pub(super) fn compared_functions(
        &mut self,
        operator: Binary,
        left: (Val, Ty),
        right: (Val, Ty),
        span: Span,
    ) -> Lowered<Option<(Val, Ty)>> {
        let lanes = [left.1, right.1].map(|ty| self.types.lane(ty));
        let Some(ty) = lanes.into_iter().find(|&ty| self.types.as_function(ty).is_some()) else { return Ok(None) };
        let op = match operator {
            Binary::Eq => Op::Eq,
            Binary::Ne => Op::Ne,
            _ => return Ok(None),
        };
        let n = self.common_lanes(left.1, right.1, span)?;
        let ty = self.with_lanes(ty, n.unwrap_or(1), span)?;
        let (left, right) = (self.convert(left, ty, span)?, self.convert(right, ty, span)?);
        let bools = self.numbers(Prim::Bool, n);
        Ok(Some((self.w.op(op, &[left, right]), bools)))
    }

    /// A call through a pointer, or through one in each lane: once for each function that they lead to.
    pub(super) fn call_pointer(
        &mut self,
        pointer: (Val, Ty),
        args: &[Expr<'s>],
        [span, inner]: [Span; 2],
    ) -> Lowered<(Val, Ty)> {
        let lane = self.types.lane(pointer.1);
        let Some(Signature { params, result, simd }) = self.types.as_function(lane).cloned() else {
            return Err(Box::new(sierra_type::no_function(inner)));
        };
        let callee = |val| Callee {
            target: Target::Pointer(val, lane),
            params: params.clone(),
            result,
            simd,
            declared: Span::NONE,
        };
        let found = self.arguments_for(&callee(pointer.0), args, span)?;
        let places: Vec<Span> = args.iter().map(|a| a.span).collect();
        let Some(n) = self.types.lanes(pointer.1) else {
            return self.call_found(&callee(pointer.0), found, &places, span);
        };
        self.same_mode(n, span)?;
        let ty = if result == Types::VOID { result } else { self.with_lanes(result, n, span)? };
        let results = (ty != Types::VOID).then(|| {
            let zero = self.zero(ty);
            self.slot(zero)
        });
        let lanes::Turns { open, mask, lane: i, test, after } = self.turns(n, "target", span)?;
        let one = self.w.op(Op::Extract, &[pointer.0, i]);
        let all = self.broadcast(one, lane, pointer.1);
        let is_equal = self.w.op(Op::Eq, &[pointer.0, all]);
        let is_equal = self.mask_of_bools(is_equal);
        let lanes = self.w.op(Op::And, &[mask, is_equal]);
        let others = self.other_lanes(lanes);
        let rest = self.w.op(Op::And, &[mask, others]);
        self.store(open, rest, span)?;
        self.region(n, lanes, |l| {
            let found = l.call_found(&callee(one), found, &places, span)?;
            let Some(results) = results else { return Ok(()) };
            let val = l.convert(found, ty, span)?;
            l.store_lanes(results, val, ty, span)
        })?;
        self.jump(test, &[]);
        self.go_on_in(after);
        match results {
            Some(results) => Ok((self.load(results, span)?, ty)),
            None => Ok((self.w.unit(), ty)),
        }
    }
}

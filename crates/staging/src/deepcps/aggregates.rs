//! Values of several parts in DeepCPS: aggregates and constant arrays.
//!
//! Separate from other values, which are one token.

use super::*;

impl Reader<'_> {
    /// A function that calls another one with the parts.
    pub(super) fn aggregate(&mut self) -> Read<Operand> {
        let open = self.expect("[")?;
        let mut parts = vec![self.atom()?];
        while !self.at("]") || parts.len() == 1 {
            self.expect(",")?;
            parts.push(self.atom()?);
        }
        let span = open.to(self.expect("]")?);
        let types: Vec<Ty> = parts.iter().map(|p| p.ty).collect();
        let values: Vec<Value> = parts.iter().map(|p| p.value).collect();
        let ty = self.aggregate_ty(types);
        let TyNode::Fn(params) = self.types.get(ty) else { return Err(Reported) };
        let with = self.declare("k", span, params[0]);
        let own = self.stage_var(None);
        let natural = self.of_var(own);
        let stage = self.wait_for_fixed(natural, Value::Var(with), &values);
        let body = self.terms.apply(stage, Value::Var(with), values, span);
        let value = Value::Lam(self.terms.lam(own, [with], body));
        Ok(Operand { value, ty, span, exact: None })
    }

    /// A constant aggregate, as an element of an array.
    fn constant_aggregate(&mut self) -> Read<(Const, Ty)> {
        self.expect("[")?;
        let (mut parts, mut types) = (Vec::new(), Vec::new());
        loop {
            let (part, ty) = match self.at("[") {
                true => self.nested(Self::constant_aggregate)?,
                false => {
                    let operand = self.atom()?;
                    match operand.value {
                        Value::Const(c @ (Const::Int(_) | Const::Float(_) | Const::Bool(_))) => (c, operand.ty),
                        _ => {
                            self.faults.push(staging_syntax::not_constant(operand.span));
                            return Err(Reported);
                        }
                    }
                }
            };
            parts.push(part);
            types.push(ty);
            if self.at("]") && parts.len() > 1 {
                break;
            }
            self.expect(",")?;
        }
        self.expect("]")?;
        let parts = Const::Array(self.terms.array(parts), 0);
        Ok((parts, self.aggregate_ty(types)))
    }

    /// A constant array.
    pub(super) fn array(&mut self) -> Read<Operand> {
        let open = self.expect("{")?;
        let ty = self.types.open();
        let mut elements: Vec<Const> = Vec::new();
        let mut integers: Vec<Span> = Vec::new();
        loop {
            if self.at("{") || !self.is_atom() {
                return self.unexpected("a number");
            }
            if self.at("[") {
                let span = self.token().span;
                let (element, of) = self.constant_aggregate()?;
                self.unify(span, of, ty);
                elements.push(element);
                if !self.eat(",") {
                    break;
                }
                continue;
            }
            let operand = self.atom()?;
            match operand.value {
                Value::Const(c @ (Const::Int(_) | Const::Float(_) | Const::Bool(_))) => elements.push(c),
                _ => {
                    self.faults.push(staging_syntax::not_constant(operand.span));
                    return Err(Reported);
                }
            }
            if matches!(operand.value, Value::Const(Const::Int(_))) {
                integers.push(operand.span);
            } else {
                self.unify(operand.span, operand.ty, ty);
            }
            if !self.eat(",") {
                break;
            }
        }
        // Integers among floats are floats.
        let is_float = matches!(self.types.get(ty), TyNode::Float);
        for span in integers {
            let own = self.basic[if is_float { FLOAT } else { INT }];
            self.unify(span, own, ty);
        }
        for element in &mut elements {
            if let (true, &mut Const::Int(i)) = (is_float, &mut *element) {
                *element = Const::Float(i as f32);
            }
        }
        let span = open.to(self.expect("}")?);
        let array = self.terms.array(elements);
        let ty = self.types.add(TyNode::Array(ty));
        Ok(Operand { value: Value::Const(Const::Array(array, 0)), ty, span, exact: None })
    }
}

//! Types of the built-in functions in DeepCPS.
//!
//! Separate from the reader, which knows of them no more than their names.

use super::*;

impl Reader<'_> {
    pub(super) fn prim_ty(&mut self, prim: Prim, span: Span) -> Ty {
        let [bool, int, float, _, error, double] = self.basic;
        let (operands, result) = match prim {
            Prim::Exit => return error,
            Prim::If => {
                let branch = self.types.add(TyNode::Fn([].into()));
                return self.types.add(TyNode::Fn([bool, branch, branch].into()));
            }
            Prim::Print => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                let then = self.types.add(TyNode::Fn([].into()));
                return self.types.add(TyNode::Fn([of, then].into()));
            }
            Prim::Local => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                (vec![int], self.types.add(TyNode::Array(of)))
            }
            Prim::Compile => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                (vec![of], of)
            }
            Prim::At => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                (vec![self.types.add(TyNode::Array(of)), int], of)
            }
            Prim::Put => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                let array = self.types.add(TyNode::Array(of));
                let then = self.types.add(TyNode::Fn([].into()));
                return self.types.add(TyNode::Fn([array, int, of, then].into()));
            }
            // What the field is is known when its number has been read.
            Prim::Field | Prim::PutField => {
                let (of, field) = (self.types.open(), self.types.open());
                let array = self.types.add(TyNode::Array(of));
                let results: &[Ty] = if prim == Prim::Field { &[field] } else { &[] };
                let then = self.types.add(TyNode::Fn(results.into()));
                let params =
                    if prim == Prim::Field { vec![array, int, int, then] } else { vec![array, int, int, field, then] };
                return self.types.add(TyNode::Fn(params.into()));
            }
            Prim::And | Prim::Or => (vec![bool, bool], bool),
            Prim::Not => (vec![bool], bool),
            Prim::Mod => (vec![int, int], int),
            Prim::ToFloat | Prim::ToDouble | Prim::ToInt => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                let result = match prim {
                    Prim::ToFloat => float,
                    Prim::ToDouble => double,
                    _ => int,
                };
                (vec![of], result)
            }
            Prim::Shift => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                let array = self.types.add(TyNode::Array(of));
                (vec![array, int], array)
            }
            _ if prim.n_operands() == 1 => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                (vec![of], of)
            }
            Prim::Add | Prim::Sub | Prim::Mul | Prim::Div | Prim::Min | Prim::Max | Prim::Pow => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                (vec![of, of], of)
            }
            _ => {
                let of = self.types.open();
                self.operands.push((prim, of, span));
                (vec![of, of], bool)
            }
        };
        let then = self.types.add(TyNode::Fn([result].into()));
        let params: Vec<Ty> = operands.into_iter().chain([then]).collect();
        self.types.add(TyNode::Fn(params.into()))
    }

    /// Behind the number of a field: its type. `params` are those of the built-in function.
    pub(super) fn field(&mut self, prim: Prim, params: &[Ty], number: Value, span: Span) {
        let TyNode::Array(of) = self.types.get(params[0]) else { return };
        let field = match (prim, self.types.get(params[3])) {
            (Prim::Field, TyNode::Fn(results)) => results[0],
            _ => params[3],
        };
        let leaves = self.types.leaves(of);
        match (leaves, number) {
            (Some(leaves), Value::Const(Const::Int(n))) if (0..leaves.len()).contains(&(n as usize)) => {
                self.unify(span, leaves[n as usize], field);
            }
            _ => {
                let shown = self.types.show(of);
                self.faults.push(staging_type::no_number_of_field(span, &shown));
            }
        }
    }

    /// Whether C can call a function of that type: of numbers and arrays, which returns a number or nothing.
    fn is_of_c(&mut self, ty: Ty) -> bool {
        let TyNode::Fn(params) = self.types.get(ty) else { return false };
        let Some((&last, params)) = params.split_last() else { return false };
        let is_number = |types: &mut Types, ty: Ty| {
            matches!(types.get(ty), TyNode::Bool | TyNode::Int | TyNode::Float | TyNode::Double)
        };
        let has_no_other = params
            .iter()
            .all(|&p| is_number(&mut self.types, p) || matches!(self.types.get(p), TyNode::Array(_) | TyNode::Stage));
        match self.types.get(last) {
            TyNode::Fn(results) if results.len() <= 1 => {
                has_no_other && results.iter().all(|&r| is_number(&mut self.types, r))
            }
            _ => false,
        }
    }

    /// Operators of several types: once all is read, each has one.
    pub(super) fn check_operands(&mut self) {
        for (prim, ty, span) in std::mem::take(&mut self.operands) {
            let fits = match self.types.get(ty) {
                TyNode::Fn(_) if prim == Prim::Compile => self.is_of_c(ty),
                TyNode::Fn(_) => matches!(prim, Prim::Local | Prim::Shift) && self.types.leaves(ty).is_some(),
                TyNode::Stage | TyNode::Array(_) => false,
                TyNode::Int | TyNode::Float | TyNode::Double | TyNode::Bool if prim == Prim::Compile => false,
                TyNode::Text => prim == Prim::Print,
                TyNode::Bool => {
                    matches!(prim, Prim::Local | Prim::Print | Prim::Eq | Prim::Ne | Prim::At | Prim::Put | Prim::Shift)
                }
                TyNode::Int => !prim.is_of_floats(),
                _ => prim != Prim::Compile,
            };
            if !fits {
                let shown = self.types.show(ty);
                self.faults.push(staging_type::operand(span, prim.name(), &shown));
            }
        }
    }
}

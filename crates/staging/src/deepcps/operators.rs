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

    /// Operators of several types: once all is read, each has one.
    pub(super) fn check_operands(&mut self) {
        for (prim, ty, span) in std::mem::take(&mut self.operands) {
            let fits = match self.types.get(ty) {
                TyNode::Stage | TyNode::Fn(_) | TyNode::Array(_) => false,
                TyNode::Text => prim == Prim::Print,
                TyNode::Bool => {
                    matches!(prim, Prim::Local | Prim::Print | Prim::Eq | Prim::Ne | Prim::At | Prim::Put | Prim::Shift)
                }
                TyNode::Int => !prim.is_of_floats(),
                _ => true,
            };
            if !fits {
                let shown = self.types.show(ty);
                self.faults.push(staging_type::operand(span, prim.name(), &shown));
            }
        }
    }
}

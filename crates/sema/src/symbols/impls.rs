//! Whether an `impl` applies to a type, for completion: where that is not known, it does. The checker, which decides it while types are
//! still open, and lowering, which has no open types, have searches of their own.

use crate::program::*;
use crate::types::{Kind, ParamId, TraitRef, Ty, TypeTable};
use rustc_hash::FxHashMap;

/// Limit on bounds that impls of other bounds have to meet.
const MAX_NESTED: usize = 6;
/// Limit on impls that are tried for one type.
const MAX_TRIED: usize = 1000;

pub(super) struct Impls<'p> {
    program: &'p Program<'p>,
    types: TypeTable,
    tried: usize,
}

impl<'p> Impls<'p> {
    pub fn new(program: &'p Program<'p>) -> Impls<'p> {
        Impls { program, types: program.types.clone(), tried: 0 }
    }

    pub fn apply(&mut self, info: &ImplInfo, ty: Ty) -> bool {
        self.tried = 0;
        self.apply_nested(info, ty, 0)
    }

    fn apply_nested(&mut self, info: &ImplInfo, ty: Ty, depth: usize) -> bool {
        self.tried += 1;
        let own = &info.generics[info.n_outer..];
        let mut holes: FxHashMap<ParamId, Ty> = own.iter().map(|p| (*p, TypeTable::ERROR)).collect();
        if !self.types.may_match(info.ty, ty, &mut holes) {
            return false;
        }
        let p = self.program;
        own.iter()
            .all(|param| p.type_params[param.0 as usize].bounds.iter().all(|b| self.meets(holes[param], b, depth)))
    }

    fn meets(&mut self, ty: Ty, bound: &TraitRef, depth: usize) -> bool {
        let p = self.program;
        let of = &p.traits[bound.id.0 as usize];
        let kind = self.types.kind(ty);
        match kind {
            // The bounds of a parameter may have it as a super trait, or allow an operator.
            Kind::Error | Kind::Never | Kind::Var(_) | Kind::Param(_) => return true,
            Kind::Prim(prim) if of.lang.is_some_and(|lang| lang.has(prim)) => return true,
            Kind::Prim(prim) if of.operator.is_some_and(|operator| operator.takes(prim)) => return true,
            Kind::Simd(..) if of.operator.is_some() => return true,
            _ => {}
        }
        of.lang.is_none()
            && (depth == MAX_NESTED
                || self.tried > MAX_TRIED
                || p.impls_for(bound.id, self.types.head(ty))
                    .iter()
                    .any(|i| self.apply_nested(&p.impls[i.0 as usize], ty, depth + 1)))
    }
}

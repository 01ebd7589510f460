//! The functions of all files together: which are exported, and which are those of other code.
//!
//! Other code has types of its own: a struct of the same numbers, a pointer to one element where it is one to many here. Between such types a call converts.

use super::*;
use crate::types::MAX_NESTED;
use nyala_ir::TyKind;

impl<'s> Lowerer<'s, '_> {
    /// Exports functions, and joins those without a body with other code.
    pub(super) fn link(&mut self) {
        // What the rest of the program declares, and exports.
        let mut declared: FxHashMap<String, Vec<Cont>> = FxHashMap::default();
        let mut exported: FxHashMap<String, Cont> = FxHashMap::default();
        for k in (0..self.w.n_conts()).map(Cont::from_idx) {
            match &*self.w.cont(k).linkage {
                Linkage::Foreign(symbol) => declared.entry(symbol.clone()).or_default().push(k),
                Linkage::Exported(symbol) => _ = exported.insert(symbol.clone(), k),
                _ => {}
            }
        }
        for shared in self.variables.values().filter(|v| !v.is_defined) {
            let hint = "define it in a file in Sierra, or write functions that read and write it";
            self.sink.push(limitation::not_supported(shared.declared, "variables of other languages", hint));
        }
        self.fill_dispatchers();
        let functions = std::mem::take(&mut self.functions);
        for f in &functions {
            // Other code calls an overloaded function only if it is `extern "C"`.
            let others = self.symbols.get(&*f.name).filter(|_| !f.is_static);
            let is_known = f.is_c || others.is_none_or(|ids| ids.len() < 2);
            if f.is_library && !f.is_defined {
                continue;
            }
            if !f.is_defined {
                // What a header declares need not be there.
                if !f.is_used && !f.is_static && is_known {
                    continue;
                }
                if !is_known || f.is_static || f.is_own {
                    self.sink.push(sierra_name::no_body(f.declared, &f.name));
                    continue;
                }
                if f.params.iter().chain([&f.result]).any(|&ty| self.is_anywhere_function(ty)) {
                    let hint = "define it in a file in Sierra";
                    let what = "functions of other languages that take pointers to functions";
                    self.sink.push(limitation::not_supported(f.declared, what, hint));
                    continue;
                }
                let found = exported.get(&f.name).copied();
                let other = found.unwrap_or_else(|| self.w.foreign(&f.name, self.w.cont(f.k).ty));
                self.join(f, f.k, other);
            } else if !f.is_static && is_known && self.is_exportable(f) {
                if exported.contains_key(&f.name) {
                    self.sink.push(sierra_name::exported(f.declared, &f.name));
                    continue;
                }
                self.w.cont_mut(f.k).linkage = Linkage::Exported(f.name.clone()).into();
                for other in declared.remove(&f.name).unwrap_or_default() {
                    self.join(f, other, f.k);
                }
            }
        }
        self.functions = functions;
    }

    /// Whether other code can call a function: it knows nothing of lanes.
    pub(super) fn is_exportable(&self, f: &Function<'s>) -> bool {
        let has_lanes = |ty: Ty| match *self.types.kind(ty) {
            Kind::Reference { to, .. } => self.types.is_varying(to),
            _ => self.types.is_varying(ty),
        };
        f.simd.is_none()
            && !f.is_own
            && !f.name.starts_with("operator")
            && !f.params.iter().chain([&f.result]).any(|&ty| has_lanes(ty) || self.is_anywhere_function(ty))
    }

    /// Lets `from` be `to`.
    fn join(&mut self, f: &Function<'s>, from: Cont, to: Cont) {
        let types = [from, to].map(|k| self.w.cont(k).ty);
        let params = self.w.params(from).to_vec();
        let callee = self.w.cont_val(to);
        if types[0] == types[1] {
            self.w.define(from, callee, &params);
        } else if let Some(args) = self.other_arguments(&params, types[1]) {
            self.w.define(from, callee, &args);
        } else {
            let [here, there] = types.map(|ty| self.w.types.display(ty));
            let (here, there) = if from == f.k { (here, there) } else { (there, here) };
            self.sink.push(sierra_type::foreign(f.declared, &f.name, &there, &here));
            return;
        }
        self.w.cont_mut(from).linkage = Linkage::Internal.into();
    }

    /// The memory, arguments and continuation of a call for a function of another type, if it fits.
    fn other_arguments(&mut self, params: &[Val], to: ir::Ty) -> Option<Vec<Val>> {
        let to = self.w.types.cn_params(to)?.to_vec();
        let (&ret, args) = params.split_last()?;
        let (&ret_to, args_to) = to.split_last()?;
        let result = self.w.types.cn_params(self.w.ty(ret))?.to_vec();
        let result_to = self.w.types.cn_params(ret_to)?.to_vec();
        let fits = |l: &Self, a: &[ir::Ty], b: &[ir::Ty]| {
            a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| l.fits(a, b, 0))
        };
        let types: Vec<ir::Ty> = args.iter().map(|&v| self.w.ty(v)).collect();
        if !fits(self, &types, args_to) || !fits(self, &result_to, &result) {
            return None;
        }
        let mut found: Vec<Val> = args.iter().zip(args_to).map(|(&v, &ty)| self.of_other(v, ty)).collect();
        if self.w.ty(ret) == ret_to {
            found.push(ret);
        } else {
            let k = self.w.declare("returned", ret_to, &["m", "result"]);
            let vals = self.w.params(k).to_vec();
            let vals: Vec<Val> = vals.into_iter().zip(&result).map(|(v, &ty)| self.of_other(v, ty)).collect();
            self.w.define(k, ret, &vals);
            found.push(self.w.cont_val(k));
        }
        Some(found)
    }

    /// Whether values of the types have the same bits.
    fn fits(&self, a: ir::Ty, b: ir::Ty, depth: u32) -> bool {
        let types = &self.w.types;
        if a == b {
            return true;
        }
        match (types.kind(a), types.kind(b)) {
            (TyKind::Ptr { pointee: a, space: x, .. }, TyKind::Ptr { pointee: b, space: y, .. }) if x == y => {
                let element = |ty| if let TyKind::IndefArray(of) = types.kind(ty) { *of } else { ty };
                let (a, b) = (element(*a), element(*b));
                // What pointers in structs lead to is not compared: structs may lead to each other.
                let is_struct = |ty| matches!(types.kind(ty), TyKind::Struct(_));
                a == b || is_struct(a) && is_struct(b) && (depth > 0 || self.fits(a, b, depth + 1))
            }
            (TyKind::Struct(_), TyKind::Struct(_)) if depth < MAX_NESTED => {
                let (n, m) = (types.n_parts(a), types.n_parts(b));
                let part = |i| types.part(a, i).zip(types.part(b, i));
                n == m && (0..n.unwrap_or(0)).all(|i| part(i).is_some_and(|(a, b)| self.fits(a, b, depth + 1)))
            }
            _ => false,
        }
    }

    /// Converts a value to a type of the same layout, as another file declares it.
    fn of_other(&mut self, val: Val, ty: ir::Ty) -> Val {
        if self.w.ty(val) == ty {
            return val;
        }
        if !matches!(self.w.types.kind(ty), TyKind::Struct(_)) {
            return self.w.op_ty(Op::Bitcast, ty, &[val]);
        }
        let n = self.w.types.n_parts(ty).unwrap_or(0);
        let mut parts = Vec::new();
        for i in 0..n {
            let part = self.w.extract(val, i);
            parts.push(match self.w.types.part(ty, i) {
                Some(ty) => self.of_other(part, ty),
                None => part,
            });
        }
        self.w.op_ty(Op::Struct, ty, &parts)
    }
}

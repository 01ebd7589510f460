//! Where numbers come from and go to that are not told of: environments, which hold what functions capture, and callers from outside of
//! the program. Separate from the checks, since it changes what they look at.

use super::Told;
use super::told::{self, known, told_types};
use crate::code::Code;
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::environments::record_ptr;
use nyala_flat::*;
use nyala_ir::{Op, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};

/// A part of an environment: of which type, and its index.
pub type Field = (Ty, u64);

/// The types of addresses of environments and of records of continuations.
pub fn captured_roots(types: &mut Types) -> [Ty; 2] {
    let unit = types.unit();
    [types.ptr(unit), record_ptr(types)]
}

/// The numbers that a function loads from environments and from records. They may be undefined: the source loads nothing there. For those of
/// environments, from which part.
pub fn captured(types: &Types, function: &Function, roots: [Ty; 2]) -> Vec<(Value, Option<Field>)> {
    let is_root = |v: Value| roots.contains(&function.ty(v));
    let mut derived: FxHashSet<Value> = FxHashSet::default();
    let fields = fields(types, function);
    let mut found = Vec::new();
    for b in Cfg::new(function).rpo {
        derived.extend(function.block(b).params.iter().copied().filter(|&v| is_root(v)));
        for inst in &function.block(b).insts {
            let (Some(result), is_derived) = (inst.result, inst.args.first().is_some_and(|a| derived.contains(a)))
            else {
                continue;
            };
            let moves = matches!(inst.op, InstOp::Op(Op::Bitcast | Op::Lea)) && is_derived;
            if moves || is_root(result) {
                derived.insert(result);
            }
            if inst.op == InstOp::Op(Op::Load)
                && is_derived
                && matches!(types.kind(function.ty(result)), TyKind::Prim(_))
            {
                found.push((result, fields.get(&inst.args[0]).copied()));
            }
        }
    }
    found
}

/// The addresses of parts of tuples.
pub fn fields(types: &Types, function: &Function) -> FxHashMap<Value, Field> {
    let mut found = FxHashMap::default();
    for inst in function.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.op == InstOp::Op(Op::Lea)) {
        if let (Some(result), Some(whole)) = (inst.result, types.pointee(function.ty(inst.args[0])))
            && let (TyKind::Tuple(_), Some(i)) = (types.kind(whole), function.as_index(inst.args[1]))
        {
            found.insert(result, (whole, i));
        }
    }
    found
}

/// Makes a function that is called from outside one of the program, and another one that is called instead. What comes from outside is
/// defined, and so must be what goes there.
pub fn make_outside(module: &mut Module, f: Func, told: &Told, report: Func) {
    let function = &mut module.funcs[f.idx()];
    // Those that are told of. The types of what tells follow behind all parameters.
    let more: Vec<Ty> = told.params(f).iter().map(|&i| function.params[i]).collect();
    let n_more: usize = more.iter().map(|&ty| told_types(&mut module.types, ty).len()).sum();
    let params: Vec<Ty> = function.params[..function.params.len() - n_more].to_vec();
    let all = function.rets.clone();
    let rets = told.results(f).map_or_else(|| all.clone(), |rets| rets.to_vec());
    let (name, span) = (function.name.clone(), function.span);
    let linkage = std::mem::replace(&mut function.linkage, Linkage::Internal);
    let outside = module.declare(&name, linkage, &params, &rets);
    for function in &mut module.funcs {
        for value in &mut function.values {
            if let Def::Const(Const::CFunc(g)) = &mut value.def
                && *g == f
            {
                *g = outside;
            }
        }
    }
    let result_ty = Module::result_ty(&mut module.types, &all);
    let function = &mut module.funcs[outside.idx()];
    function.span = span;
    let params: Vec<Value> = params.iter().map(|&ty| function.new_value(ty, "")).collect();
    let entry =
        BlockData { name: "entry".into(), params: params.clone(), insts: Vec::new(), term: Terminator::Unreachable };
    function.blocks.push(entry);
    let mut code = Code::new(&mut module.types, function);
    code.span = span;
    let mut args = params;
    for ty in more {
        args.extend(known(&mut code, ty, 1));
    }
    let result = code.call(f, &args, Some(result_ty));
    let mut parts: Vec<Value> = match &all[..] {
        [_] => vec![result],
        all => (0..all.len()).map(|i| code.part(result, i, all[i])).collect(),
    };
    let mut is_defined = parts.split_off(rets.len()).into_iter();
    let bool_ty = code.types.bool();
    let mut holds = None;
    for &ty in &rets {
        let told: Vec<Value> = told_types(code.types, ty).iter().filter_map(|_| is_defined.next()).collect();
        if let Some(one) = told::all(&mut code, &told, ty) {
            holds = Some(holds.map_or(one, |before| code.op(Op::And, &[before, one], bool_ty)));
        }
    }
    if let Some(holds) = holds {
        let before = code.begin_report();
        code.call(report, &[], None);
        code.end_report(holds, before);
    }
    let block = &mut code.function.blocks[code.current.idx()];
    (block.insts, block.term) = (std::mem::take(&mut code.insts), Terminator::Return(parts));
}

//! Function values that come from C: a C function and the environment that is its first argument. Separate from function values of the
//! program, which have a convention of their own.
//!
//! What C calls takes two addresses for each parameter that is a function. The function that the program wrote stays as it is, for its
//! other callers:
//!
//! ```text
//! export apply(m, n, f: fn(i32) -> i32, ret)       apply(m, n, f, ret) as before, no longer exported
//!                                                  export apply(m, n, f: &u8, env: &(), ret): apply(m, n, callback, ret)
//!                                                  callback(m, x, ret): nyala.call.T(m, f, env, x, ret)
//! ```
//!
//! `nyala.call.T`, one for each type T of such parameters, has no body and no symbol that is linked: a call of it is a call of its first
//! argument, by C's convention.

use crate::{Cont, Prim, Ty, TyKind, Types, Val, World};

const CALL: &str = "nyala.call.";

/// Whether a function without a body stands for the C function at the address that is its first argument.
pub fn is_call_of_address(symbol: &str) -> bool {
    symbol.starts_with(CALL)
}

/// Makes exported functions with parameters that are functions such that C can call them. Those stay as they are that have parameters
/// which C cannot give: functions that take or give functions, or never return.
pub fn wrap(w: &mut World) {
    for k in w.roots() {
        let tys = w.types.cn_params(w.cont(k).ty).unwrap_or_default().to_vec();
        if let Some(positions) = callbacks(&w.types, &tys).filter(|positions| !positions.is_empty()) {
            wrap_one(w, k, &tys, &positions);
        }
    }
}

/// Whether there are such functions.
pub fn are_there(w: &World) -> bool {
    let has_some = |k: &Cont| callbacks(&w.types, w.types.cn_params(w.cont(*k).ty).unwrap_or_default());
    w.roots().iter().filter_map(has_some).any(|positions| !positions.is_empty())
}

/// The positions of the parameters that are functions, among all: memory first, the return continuation last, if there is one. `None` if C
/// cannot give one of them.
fn callbacks(types: &Types, tys: &[Ty]) -> Option<Vec<usize>> {
    let n = tys.len() - usize::from(returns(types, tys));
    let is_function = |i: &usize| matches!(types.kind(tys[*i]), TyKind::Cn(_));
    let positions: Vec<usize> = (0..n).filter(is_function).collect();
    positions.iter().all(|&i| is_plain(types, tys[i])).then_some(positions)
}

/// The types of parameters as C gives them: two addresses for a function.
pub fn outside(types: &mut Types, tys: &[Ty]) -> Vec<Ty> {
    let Some(positions) = callbacks(types, tys) else { return tys.to_vec() };
    let (code, environment) = addresses(types);
    let mut all = Vec::new();
    for (i, &ty) in tys.iter().enumerate() {
        if positions.contains(&i) { all.extend([code, environment]) } else { all.push(ty) }
    }
    all
}

/// The types of a C function's address, and of that of its environment.
pub fn addresses(types: &mut Types) -> (Ty, Ty) {
    let (unit, u8) = (types.unit(), types.prim(Prim::U8));
    (types.ptr(u8), types.ptr(unit))
}

/// Whether the last parameter is where a function returns to: memory comes first there, and one result at most.
fn returns(types: &Types, tys: &[Ty]) -> bool {
    match tys.last().and_then(|&ty| types.cn_params(ty)) {
        Some([mem, results @ ..]) => matches!(types.kind(*mem), TyKind::Mem) && results.len() <= 1,
        _ => false,
    }
}

/// Whether C can give a function of this type: it returns, and takes and gives no functions.
pub fn is_plain(types: &Types, ty: Ty) -> bool {
    let tys = types.cn_params(ty).unwrap_or_default();
    let is_function = |ty: &Ty| matches!(types.kind(*ty), TyKind::Cn(_));
    let results = tys.last().and_then(|&ty| types.cn_params(ty)).unwrap_or_default();
    returns(types, tys) && !tys[..tys.len() - 1].iter().chain(results).any(is_function)
}

fn wrap_one(w: &mut World, inner: Cont, tys: &[Ty], positions: &[usize]) {
    let (name, before) = (w.name(inner).to_string(), w.current_origin());
    w.set_origin(w.cont(inner).origin);
    let mut names: Vec<String> = Vec::new();
    for i in 0..tys.len() {
        let own = w.param_name(inner, i).unwrap_or_default().to_string();
        let environment = positions.contains(&i).then(|| format!("{own}_env"));
        names.push(own);
        names.extend(environment);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let params = outside(&mut w.types, tys);
    let ty = w.types.cn(&params);
    let outer = w.declare(&name, ty, &names);
    let linkage = std::mem::take(&mut w.cont_mut(inner).linkage);
    w.cont_mut(outer).linkage = linkage;
    let (mut args, mut at) = (Vec::new(), 0);
    for (i, &ty) in tys.iter().enumerate() {
        let first = w.param(outer, at);
        if positions.contains(&i) {
            let environment = w.param(outer, at + 1);
            args.push(of_address(w, ty, first, environment));
            at += 2;
        } else {
            args.push(first);
            at += 1;
        }
    }
    let callee = w.cont_val(inner);
    w.define(outer, callee, &args);
    w.set_origin(before);
}

/// A function that calls the C function at an address with an environment and its own arguments.
pub fn of_address(w: &mut World, ty: Ty, code: Val, environment: Val) -> Val {
    let mut tys = w.types.cn_params(ty).unwrap_or_default().to_vec();
    let callback = w.declare("callback", ty, &[]);
    let mut args: Vec<Val> = (0..tys.len()).map(|i| w.param(callback, i)).collect();
    args.splice(1..1, [code, environment]);
    tys.splice(1..1, [w.ty(code), w.ty(environment)]);
    let called = w.types.cn(&tys);
    let foreign = w.foreign(&format!("{CALL}{}", w.types.display(ty)), called);
    let foreign = w.cont_val(foreign);
    w.define(callback, foreign, &args);
    w.cont_val(callback)
}

//! Operations on vectors: functions with loops over the lanes, each lane as the operation on numbers has it. Separate,
//! since the loops stand in helper functions.

use crate::emit::Emitter;
use crate::expr::Expr;
use crate::function::FunctionEmitter;
use crate::ops::{numbers::unsigned, scalar};
use crate::types::ELEMENTS;
use crate::{Result, bug};
use nyala_flat::Value;
use nyala_ir::{Op, Prim, Ty};

/// An operation of which the result, or an operand, is a vector.
pub(crate) fn emit(f: &mut FunctionEmitter, op: Op, result: Value, args: &[Value]) -> Result<Expr> {
    let tys: Vec<Ty> = args.iter().map(|&a| f.ty(a)).collect();
    let to = f.ty(result);
    let mut exprs = Vec::new();
    for &a in args {
        exprs.push(f.value(a)?);
    }
    let mut shorts: Vec<String> = tys.iter().map(|&ty| f.e.types.short(ty)).collect();
    if tys.iter().all(|ty| *ty == to) || op.is_comparison() {
        shorts.truncate(1);
    } else if op == Op::Cast || op == Op::Bits {
        shorts.push(f.e.types.short(to));
    }
    let name = format!("{}_{}", op.name(), shorts.join("_"));
    let name = f.e.helper(name, |e, name| definition(e, name, op, &tys, to)).map_err(|d| f.placed(d))?;
    let refs: Vec<&Expr> = exprs.iter().collect();
    Ok(crate::expr::apply(&name, &refs))
}

fn definition(e: &mut Emitter, name: &str, op: Op, tys: &[Ty], to: Ty) -> Result<String> {
    let letters = ["a", "b", "c"];
    let mut params = Vec::new();
    for (ty, letter) in tys.iter().zip(letters) {
        params.push(format!("{} {letter}", e.types.name(*ty, &mut e.names)?));
    }
    let (params, ret) = (params.join(", "), e.types.name(to, &mut e.names)?);
    let lane = |e: &Emitter, ty: Ty, letter: &str| match e.module.types.as_vector(ty) {
        Some(_) => Expr::atom(format!("{letter}.{ELEMENTS}[i]")),
        None => Expr::atom(letter),
    };
    let types = &e.module.types;
    if op == Op::Bits {
        let n = types.as_vector(tys[0]).map_or(0, |v| v.1).min(types.as_prim(to).map_or(64, Prim::bits));
        let wide = e.types.prim(Prim::U64)?;
        return Ok(format!(
            "{ret} {name}({params}) {{
    {wide} bits = 0;
    for (int i = 0; i < {n}; i++) bits |= ({wide})a.{ELEMENTS}[i] << i;
    return ({ret})bits;
}}"
        ));
    }
    let Some((to_prim, n)) = types.as_vector(to) else { return Err(bug("no vector")) };
    if op == Op::Shuffle {
        let (Some((_, m)), Some((idx, _))) = (types.as_vector(tys[0]), types.as_vector(tys[2])) else {
            return Err(bug("a shuffle of no vector"));
        };
        let idx = e.types.prim(unsigned(idx))?;
        return Ok(format!(
            "{ret} {name}({params}) {{
    {ret} r;
    for (int i = 0; i < {n}; i++) {{
        {idx} from = ({idx})c.{ELEMENTS}[i] % {}u;
        r.{ELEMENTS}[i] = from < {m} ? a.{ELEMENTS}[from] : b.{ELEMENTS}[from - {m}];
    }}
    return r;
}}",
            2 * m
        ));
    }
    let prim = types.lane_prim(tys[0]).ok_or_else(|| bug("no lanes"))?;
    let lanes: Vec<Expr> = tys.iter().zip(letters).map(|(&ty, letter)| lane(e, ty, letter)).collect();
    // Inactive lanes compute, too.
    let before = std::mem::replace(&mut e.is_speculative, true);
    let value = scalar(e, op, prim, to_prim, &lanes)?;
    e.is_speculative = before;
    let value = e.rendered(value, true)?.text;
    Ok(format!(
        "{ret} {name}({params}) {{
    {ret} r;
    for (int i = 0; i < {n}; i++) r.{ELEMENTS}[i] = {value};
    return r;
}}"
    ))
}

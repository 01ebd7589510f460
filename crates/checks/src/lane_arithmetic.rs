//! Checks of arithmetic in bodies of `vectorize`, and in functions that they call. This pass runs before the vectorizer, which gives
//! the checks their masks: a vector operation also computes in lanes that do not execute it in the source.
//!
//! ```text
//! func body(i, a, x):          func body(i, a, x):
//!   j = add(i, 2)                branch le(i, MAX - 2), next(), fail()
//!   y = add(j, x)              next():
//!                                j = add(i, 2)                        addresses that are computed from it stay consecutive
//!                                s = add(cast(j), cast(x))            in unsigned numbers
//!                                sign = and(xor(j, s), xor(x, s))
//!                                branch ge(sign, 0), next.1(), fail.1()
//!                              next.1(): y = add(j, x)
//!                              fail(): call nyala_check_overflow_in_lanes()
//! ```
//!
//! Functions of these names do not exist. `insert-checks` replaces their calls by reports.

use super::arithmetic::unsigned;
use super::code::Code;
use super::needed::{needed, put_where_needed};
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, Prim};
use rustc_hash::FxHashSet;

/// The symbols of the functions that stand for reports, until `insert-checks` replaces their calls.
pub const OVERFLOW: &str = "nyala_check_overflow_in_lanes";
pub const DIVISION: &str = "nyala_check_division_in_lanes";

/// Inserts checks of the arithmetic that the vectorizer will widen.
pub fn insert_lane_checks(module: &mut Module) {
    let found = in_lanes(module);
    if found.is_empty() {
        return;
    }
    let (t, foreign) = (&mut module.types, |s: &str| Linkage::Foreign(s.into()));
    let (i64, bool_ty) = (t.i64(), t.bool());
    let report = module.declare(OVERFLOW, foreign(OVERFLOW), &[], &[]);
    let of_division = module.declare(DIVISION, foreign(DIVISION), &[], &[]);
    let product = module.declare("nyala_check_product", foreign("nyala_check_product"), &[i64, i64], &[bool_ty]);
    for func in found {
        let function = &mut module.funcs[func.idx()];
        put_where_needed(&module.types, function, &[]);
        let needed = needed(function);
        let rpo = Cfg::new(function).rpo;
        let mut code = Code::new(&mut module.types, function);
        for b in rpo {
            code.current = b;
            for inst in std::mem::take(&mut code.function.blocks[b.idx()].insts) {
                if let Some((op, prim)) = code.signed_arithmetic(&inst, &needed) {
                    code.span = inst.span;
                    check(&mut code, (op, prim), [inst.args[0], inst.args[1]], report, product);
                }
                code.span = inst.span;
                if let Some((not_zero, fits)) = code.division(&inst) {
                    require(&mut code, not_zero, of_division);
                    if let Some(fits) = fits {
                        require(&mut code, fits, report);
                    }
                }
                code.insts.push(inst);
            }
            let insts = std::mem::take(&mut code.insts);
            code.function.blocks[code.current.idx()].insts = insts;
        }
    }
}

fn check(code: &mut Code, (op, prim): (Op, Prim), args: [Value; 2], report: Func, product: Func) {
    let bool_ty = code.types.bool();
    if let Some((x, (least, most))) = operands_that_fit(code, (op, prim), args) {
        if let Some(holds) = within(code, prim, x, least, most) {
            require(code, holds, report);
        }
        return;
    }
    if (op, prim) == (Op::Mul, Prim::I64) {
        let numbers = args.map(|v| code.cast(v, Prim::U64));
        let large = code.begin_large(numbers);
        let holds = code.call(product, &args, Some(bool_ty));
        require(code, holds, report);
        return code.end_large(large);
    }
    let holds = if op == Op::Mul {
        code.in_64_bits(op, prim, args).1
    } else {
        let (_, sign) = code.sum(op, prim, args);
        let zero = code.literal(prim, 0);
        code.op(Op::Ge, &[sign, zero], bool_ty)
    };
    require(code, holds, report);
}

/// If one operand is a literal: the other operand, and the least and the greatest number of it whose result fits.
fn operands_that_fit(code: &Code, (op, prim): (Op, Prim), [a, b]: [Value; 2]) -> Option<(Value, (i128, i128))> {
    let number = |v: Value| {
        let unused = 64 - prim.bits();
        Some(i128::from((code.function.as_bits(v)? << unused) as i64 >> unused))
    };
    let (least, most) = range(prim);
    let both = |at_least: i128, at_most: i128| (least.max(at_least), most.min(at_most));
    Some(match (op, number(a), number(b)) {
        (Op::Add, _, Some(n)) => (a, both(least - n, most - n)),
        (Op::Add, Some(n), _) => (b, both(least - n, most - n)),
        (Op::Sub, _, Some(n)) => (a, both(least + n, most + n)),
        (Op::Sub, Some(n), _) => (b, both(n - most, n - least)),
        (Op::Mul, _, Some(0)) | (Op::Mul, Some(0), _) => (a, (least, most)),
        (Op::Mul, _, Some(n)) if n > 0 => (a, (least / n, most / n)),
        (Op::Mul, _, Some(n)) => (a, both(most / n, least / n)),
        (Op::Mul, Some(n), _) if n > 0 => (b, (least / n, most / n)),
        (Op::Mul, Some(n), _) => (b, both(most / n, least / n)),
        _ => return None,
    })
}

fn range(prim: Prim) -> (i128, i128) {
    let half = 1 << (prim.bits() - 1);
    (-half, half - 1)
}

/// The condition that a number lies between two others. `None` if every number of the type does.
fn within(code: &mut Code, prim: Prim, x: Value, least: i128, most: i128) -> Option<Value> {
    let (bool_ty, (min, max)) = (code.types.bool(), range(prim));
    match (least > min, most < max) {
        (false, false) => None,
        (false, true) => {
            let most = code.literal(prim, most as u64);
            Some(code.op(Op::Le, &[x, most], bool_ty))
        }
        (true, false) => {
            let least = code.literal(prim, least as u64);
            Some(code.op(Op::Ge, &[x, least], bool_ty))
        }
        (true, true) => {
            let unsigned = unsigned(prim);
            let ty = code.types.prim(unsigned);
            let (least, count) = (code.literal(unsigned, least as u64), code.literal(unsigned, (most - least) as u64));
            let x = code.cast(x, unsigned);
            let above = code.op(Op::Sub, &[x, least], ty);
            Some(code.op(Op::Le, &[above, count], bool_ty))
        }
    }
}

fn require(code: &mut Code, holds: Value, report: Func) {
    let before = code.begin_report();
    code.call(report, &[], None);
    code.end_report(holds, before);
}

/// The functions that run in lanes: bodies of `vectorize`, and functions that they call.
pub(super) fn in_lanes(module: &Module) -> Vec<Func> {
    let mut seen: FxHashSet<Func> = FxHashSet::default();
    let insts = module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    let mut work: Vec<Func> = insts
        .filter_map(|i| match i.op {
            InstOp::Vectorize(body, ..) => Some(body),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    while let Some(f) = work.pop() {
        let function = module.func(f);
        if function.blocks.is_empty() || !seen.insert(f) {
            continue;
        }
        found.push(f);
        for block in &function.blocks {
            if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
                work.push(f);
            }
            work.extend(block.insts.iter().filter_map(|i| match i.op {
                InstOp::Call(f) => Some(f),
                _ => None,
            }));
        }
    }
    found.sort_unstable();
    found
}

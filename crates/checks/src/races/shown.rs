//! Estimates whether a number differs between iterations, from how it is computed. Separate from the other facts about values, since it
//! errs on the other side: if nothing is known, the number counts as different.
//!
//! ```text
//! add(i, x), mul(i, n), xor(i, x)        differ if i does
//! div(i, n), rem(i, n)                   need not; both of them together do, as row and column
//! load(lea(table, i))                    need not
//! ```
//!
//! An address differs if any of its parts does, as for `a(y * width + x)`. A variable of a loop that counts from a number in
//! memory differs, too: such numbers are the ends of parts of an array.

use super::{Known, Lanes};
use nyala_flat::*;
use nyala_ir::{Op, Prim};

/// How a number depends on the iteration's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Shown(u8);

impl Shown {
    pub const NOTHING: Shown = Shown(0);
    /// It differs.
    pub const DIFFERS: Shown = Shown(1);
    const QUOTIENT: Shown = Shown(2);
    const REMAINDER: Shown = Shown(4);

    pub fn join(self, other: Shown) -> Shown {
        Shown(self.0 | other.0)
    }

    pub fn differs(self) -> bool {
        self.0 & 1 != 0 || self.0 & 6 == 6
    }

    /// The fact about the result of an operation, given the union of the facts about its operands; `lanes` is the number of lanes if it is known.
    pub fn of_op(module: &Module, function: &Function, inst: &Inst, op: Op, all: Shown, lanes: Lanes) -> Shown {
        let prim = |v: Value| module.types.as_prim(function.ty(v));
        let number = || function.as_bits(*inst.args.get(1)?);
        // The lanes of a vector have consecutive numbers: modulo at least the number of lanes, they differ.
        let keeps = |n: u64| all == Shown::DIFFERS && lanes.is_some_and(|lanes| lanes != 0 && n >= lanes.into());
        let partly = |shown: Shown| if all == Shown::NOTHING { all } else { shown };
        match op {
            Op::Div | Op::PDiv | Op::Shr => partly(Shown::QUOTIENT),
            Op::Rem | Op::PRem if number().is_some_and(keeps) => all,
            Op::And if number().is_some_and(|mask| (mask & (mask + 1)) == 0 && keeps(mask + 1)) => all,
            Op::Rem | Op::PRem | Op::And => partly(Shown::REMAINDER),
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Popcount | Op::Clz | Op::Ctz => Shown::NOTHING,
            Op::Cast => match (prim(inst.args[0]), inst.result.and_then(prim)) {
                (Some(from), Some(to)) if from.is_float() && !to.is_float() => Shown::NOTHING,
                (Some(from), Some(to)) if to.bits() < from.bits() && to.bits() < Prim::I32.bits() => {
                    partly(Shown::REMAINDER)
                }
                _ => all,
            },
            _ => all,
        }
    }
}

/// Whether a block parameter with these arguments counts, by steps that do not vary, from a number that was loaded.
pub fn counts_from_memory(
    param: Value,
    given: &[Value],
    def: &dyn Fn(Value) -> Option<(Op, Vec<Value>)>,
    of: &dyn Fn(Value) -> Known,
) -> bool {
    let is_step = |&v: &Value| match def(v) {
        Some((Op::Add | Op::Sub, args)) => args[0] == param && !of(args[1]).varies,
        _ => false,
    };
    let is_loaded = |&v: &Value| match def(v) {
        Some((Op::Load, _)) => true,
        Some((Op::Cast, args)) => matches!(def(args[0]), Some((Op::Load, _))),
        _ => false,
    };
    given.iter().any(is_step) && given.iter().any(is_loaded)
}

//! Floats that are certainly numbers: not NaN. Separate from the operations, since loops have to be looked at as a whole: what a
//! reduction has so far is a number if it starts as one.
//!
//! ```text
//! loop(sum, i):                    sum starts as infinity
//!   next: f32 = fmin(sum, x)       a number, as one of its operands is
//!   branch(c, loop(next, j), end)
//! ```

use nyala_base::Id;
use nyala_flat::{Const, Def, Function, Inst, InstOp, Value};
use nyala_ir::scalar::float_value;
use nyala_ir::{Op, Types};

/// Where a value comes from.
#[derive(Clone)]
enum Source<'f> {
    Elsewhere,
    Inst(&'f Inst),
    /// A parameter of a block, by what jumps give it.
    Param(Vec<Value>),
}

/// For each value whether it is a number, or a vector of numbers. Every float is taken for one at first; what may be NaN is taken
/// back, and so is what is made of it.
pub(crate) fn known_numbers(types: &Types, function: &Function) -> Vec<bool> {
    let is_float = |v: Value| types.lane_prim(function.ty(v)).is_some_and(|prim| prim.is_float());
    let mut sources = vec![Source::Elsewhere; function.values.len()];
    let mut users: Vec<Vec<Value>> = vec![Vec::new(); function.values.len()];
    for block in &function.blocks {
        for inst in &block.insts {
            if let Some(result) = inst.result.filter(|&r| is_float(r)) {
                sources[result.idx()] = Source::Inst(inst);
                inst.args.iter().for_each(|arg| users[arg.idx()].push(result));
            }
        }
        for edge in block.term.edges() {
            for (&param, &arg) in function.block(edge.block).params.iter().zip(&edge.args).filter(|p| is_float(*p.0)) {
                users[arg.idx()].push(param);
                match &mut sources[param.idx()] {
                    Source::Param(args) => args.push(arg),
                    source => *source = Source::Param(vec![arg]),
                }
            }
        }
    }
    let stays = |known: &[bool], v: Value| {
        let is = |v: &Value| known[v.idx()];
        match (&sources[v.idx()], function.values[v.idx()].def) {
            (_, Def::Const(Const::Bits(bits))) => {
                types.lane_prim(function.ty(v)).is_some_and(|prim| !float_value(prim, bits).is_nan())
            }
            (Source::Param(args), _) => args.iter().all(is),
            (Source::Inst(inst), _) => match inst.op {
                InstOp::Op(Op::Fmin | Op::Fmax) => inst.args.iter().any(is),
                InstOp::Op(Op::Select) => inst.args[1..].iter().all(is),
                InstOp::Op(Op::Cast) => !is_float(inst.args[0]) || is(&inst.args[0]),
                InstOp::Op(Op::Abs | Op::Splat | Op::Tuple | Op::Struct | Op::Array) => inst.args.iter().all(is),
                _ => false,
            },
            (Source::Elsewhere, _) => false,
        }
    };
    let all = || (0..function.values.len()).map(Value::from_idx);
    let mut known: Vec<bool> = all().map(is_float).collect();
    let mut waiting: Vec<Value> = all().collect();
    while let Some(v) = waiting.pop() {
        if known[v.idx()] && !stays(&known, v) {
            known[v.idx()] = false;
            waiting.extend(&users[v.idx()]);
        }
    }
    known
}

//! A call is replaced by the code of its callee. Separate from who decides which calls: kernels, and checks of loops.

use crate::data::*;
use nyala_base::Id;
use nyala_ir::Op;

/// Replaces the call at a place by the code of its callee, which ends by returns.
pub fn inline(function: &mut Function, b: usize, at: usize, callee: &Function) {
    let mut rest = function.blocks[b].insts.split_off(at);
    let call = rest.remove(0);
    let n = function.blocks.len();
    let values: Vec<Value> = copy_values(function, callee);
    let new = |v: Value| values[v.idx()];
    let after = Block::from_idx(n + callee.blocks.len());
    for block in &callee.blocks {
        let insts = block.insts.iter().map(|inst| Inst {
            op: inst.op,
            args: inst.args.iter().map(|&a| new(a)).collect(),
            result: inst.result.map(new),
            span: inst.span,
            fast: inst.fast,
        });
        let mut term = block.term.clone();
        term.map_uses(new);
        term.edges_mut().for_each(|e| e.block = Block::from_idx(n + e.block.idx()));
        if let Terminator::Return(args) = term {
            term = Terminator::Jump(Edge { block: after, args });
        }
        let params = block.params.iter().map(|&p| new(p)).collect();
        let insts = insts.collect();
        function.blocks.push(BlockData { name: block.name.clone(), params, insts, term });
    }
    let mut params: Vec<Value> = callee.rets.iter().map(|&ty| function.new_value(ty, "")).collect();
    // The call's result is the one result, or a tuple of several.
    if let Some(result) = call.result {
        match callee.rets.len() {
            1 => params = vec![result],
            _ => {
                let args = Args::from_slice(&params);
                let op = InstOp::Op(Op::Tuple);
                rest.insert(0, Inst { op, args, result: Some(result), span: call.span, fast: false });
            }
        }
    }
    let jump = Terminator::Jump(Edge { block: Block::from_idx(n), args: call.args.to_vec() });
    let term = std::mem::replace(&mut function.blocks[b].term, jump);
    function.blocks.push(BlockData { name: "after".into(), params, insts: rest, term });
}

/// New values of a function for those of another, by their numbers.
fn copy_values(function: &mut Function, from: &Function) -> Vec<Value> {
    let copy = |(i, v): (usize, &ValueData)| match v.def {
        Def::Const(c) => function.constant(c, v.ty),
        Def::Local => function.new_value(v.ty, from.name(Value::from_idx(i))),
    };
    from.values.iter().enumerate().map(copy).collect()
}

//! Operations on constants that are undefined. Folding leaves them to the run, where they are checked if the program asks for
//! checks. [`constant_faults`] finds those that happen for certain once their function is called; [`wrap_constants`] gives others
//! the result that the machine would compute, since LLVM and C compilers may do anything with what they see to be undefined.

use crate::analysis::Cfg;
use crate::checks::needed;
use crate::data::*;
use nyala_base::{Id, Span};
use nyala_ir::fold::ConstantFault;
use nyala_ir::scalar::eval_arith;
use nyala_ir::{Op, Prim, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// The faults of operations on constants in code that each call of its function runs.
pub fn constant_faults(module: &Module) -> Vec<(Span, ConstantFault)> {
    let mut found = Vec::new();
    let blocks = blocks_of_known_size(module);
    for function in module.funcs.iter().filter(|f| !f.blocks.is_empty()) {
        let certain = certain(function);
        let needed = needed(function);
        let all = function.blocks.iter().flat_map(|b| &b.insts);
        let defs: FxHashMap<Value, &Inst> = all.filter_map(|i| Some((i.result?, i))).collect();
        for b in certain {
            for inst in &function.block(b).insts {
                let fault = arithmetic(&module.types, function, inst)
                    .filter(|_| inst.result.is_some_and(|r| needed.contains(&r)))
                    .map(|_| ConstantFault::Overflow)
                    .or_else(|| division(&module.types, function, inst))
                    .or_else(|| is_outside(module, function, &defs, &blocks, inst).then_some(ConstantFault::Index));
                found.extend(fault.map(|fault| (inst.span, fault)));
            }
        }
    }
    found
}

/// The blocks that every call of a function runs: those that follow the entry without a choice, and where choices meet again.
fn certain(function: &Function) -> Vec<Block> {
    let after = Cfg::new(function).post_dominators();
    let mut seen: FxHashSet<Block> = FxHashSet::default();
    let mut at = Some(Block::from_idx(0));
    let mut found = Vec::new();
    while let Some(b) = at.filter(|&b| seen.insert(b)) {
        found.push(b);
        at = after[b.idx()];
    }
    found
}

/// The result, modulo 2ⁿ, of signed arithmetic on constants that does not fit its type.
fn arithmetic(types: &Types, function: &Function, inst: &Inst) -> Option<(Prim, u64)> {
    let InstOp::Op(op @ (Op::Add | Op::Sub | Op::Mul)) = inst.op else { return None };
    let prim = types.as_prim(function.ty(inst.result?)).filter(|p| p.is_int() && p.is_signed())?;
    let (a, b) = (function.as_bits(inst.args[0])?, function.as_bits(inst.args[1])?);
    let (bits, overflows) = eval_arith(op, prim, prim.normalize(a), prim.normalize(b))?;
    overflows.then_some((prim, bits))
}

fn division(types: &Types, function: &Function, inst: &Inst) -> Option<ConstantFault> {
    let InstOp::Op(Op::PDiv | Op::PRem) = inst.op else { return None };
    let prim = types.as_prim(function.ty(inst.result?)).filter(|p| p.is_int())?;
    let &[.., dividend, divisor] = &inst.args[..] else { return None };
    match (function.as_bits(dividend), prim.normalize(function.as_bits(divisor)?)) {
        (_, 0) => Some(ConstantFault::Division),
        (Some(bits), _) if prim.is_signed() && eval_arith(Op::Div, prim, prim.normalize(bits), u64::MAX).is_none() => {
            (prim.normalize(function.as_bits(divisor)?) == u64::MAX).then_some(ConstantFault::Overflow)
        }
        _ => None,
    }
}

/// Functions that return a new block of memory of a size that is known, in bytes.
fn blocks_of_known_size(module: &Module) -> FxHashMap<Func, u64> {
    let mut found = FxHashMap::default();
    for (i, function) in module.funcs.iter().enumerate() {
        let [block] = &function.blocks[..] else { continue };
        let Terminator::Return(values) = &block.term else { continue };
        let &[value] = &values[..] else { continue };
        let def = |v: Value| block.insts.iter().find(|i| i.result == Some(v));
        let mut at = def(value);
        while let Some(inst) = at.filter(|i| i.op == InstOp::Op(Op::Bitcast)) {
            at = def(inst.args[0]);
        }
        if let Some(size) = at.and_then(|inst| allocated(module, function, inst, &FxHashMap::default())) {
            found.insert(Func::from_idx(i), size);
        }
    }
    found
}

/// The bytes of the block that an instruction allocates.
fn allocated(module: &Module, function: &Function, inst: &Inst, known: &FxHashMap<Func, u64>) -> Option<u64> {
    match inst.op {
        InstOp::Call(f) if known.contains_key(&f) => known.get(&f).copied(),
        InstOp::Call(f) if module.func(f).is_foreign() && module.func(f).symbol() == Some("nyala_alloc") => {
            function.as_bits(inst.args[0])
        }
        InstOp::Op(Op::Alloc) => {
            let elem = module.types.part(module.types.pointee(function.ty(inst.result?))?, 0)?;
            let (size, align) = layout::size_align(&module.types, elem)?;
            function.as_bits(inst.args[0])?.checked_mul(size.next_multiple_of(align.max(1)))
        }
        InstOp::Op(Op::Slot) => {
            Some(layout::size_align(&module.types, module.types.pointee(function.ty(inst.result?))?)?.0)
        }
        _ => None,
    }
}

/// Whether an access at a constant place lies outside of the memory that its address was computed from.
fn is_outside(
    module: &Module,
    function: &Function,
    defs: &FxHashMap<Value, &Inst>,
    blocks: &FxHashMap<Func, u64>,
    inst: &Inst,
) -> bool {
    let InstOp::Op(Op::Load | Op::Store) = inst.op else { return false };
    let types = &module.types;
    let (mut at, mut offset) = (inst.args[0], 0i128);
    let place = |at: Value| types.pointee(function.ty(at));
    let Some((size, _)) = place(at).and_then(|ty| layout::size_align(types, ty)).filter(|s| s.0 > 0) else {
        return false;
    };
    loop {
        let Some(def) = defs.get(&at) else { break };
        match def.op {
            InstOp::Op(Op::Bitcast | Op::Aligned | Op::Restrict) if place(def.args[0]).is_some() => at = def.args[0],
            InstOp::Op(Op::Lea) => {
                let (Some(idx), Some(ty)) = (function.as_index(def.args[1]), place(def.args[0])) else { return false };
                let step = match types.kind(ty) {
                    TyKind::Array(elem, _) | TyKind::IndefArray(elem) => {
                        layout::size_align(types, *elem).map(|(size, align)| size.next_multiple_of(align.max(1)))
                    }
                    _ => None,
                };
                let by = match step {
                    Some(step) => i128::from(idx as i64) * i128::from(step),
                    None => match layout::offset(types, ty, idx) {
                        Some(by) => by.into(),
                        None => return false,
                    },
                };
                (at, offset) = (def.args[0], offset + by);
            }
            _ => break,
        }
    }
    let all = match function.as_const(at) {
        Some(Const::Global(id)) if id.idx() < module.globals.len() => {
            layout::size_align(types, module.globals[id.idx()].ty).map(|s| s.0)
        }
        _ => defs.get(&at).and_then(|def| allocated(module, function, def, blocks)),
    };
    all.is_some_and(|all| offset < 0 || offset + i128::from(size) > i128::from(all))
}

/// Replaces signed arithmetic on constants that does not fit by its result modulo 2ⁿ.
pub fn wrap_constants(module: &mut Module) {
    for function in &mut module.funcs {
        let mut results: FxHashMap<Value, Value> = FxHashMap::default();
        for b in 0..function.blocks.len() {
            for i in 0..function.blocks[b].insts.len() {
                let inst = &function.blocks[b].insts[i];
                let (Some(result), Some((_, bits))) = (inst.result, arithmetic(&module.types, function, inst)) else {
                    continue;
                };
                let ty = function.ty(result);
                results.insert(result, function.constant(Const::Bits(bits), ty));
            }
        }
        if results.is_empty() {
            continue;
        }
        let new = |v: Value| results.get(&v).copied().unwrap_or(v);
        for block in &mut function.blocks {
            block.insts.retain(|i| !i.result.is_some_and(|r| results.contains_key(&r)));
            for inst in &mut block.insts {
                inst.args.iter_mut().for_each(|a| *a = new(*a));
            }
            block.term.map_uses(new);
        }
    }
    for device in &mut module.devices {
        wrap_constants(&mut device.module);
    }
}

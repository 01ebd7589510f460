//! Calls: of functions, and of the operations among the work items of a block or a subgroup.

use crate::function::FunctionEmitter;
use crate::{Result, bug, memory};
use nyala_base::Id;
use nyala_base::diagnostics::bad_shared_memory;
use nyala_flat::{Func, Inst, Linkage, Value};
use nyala_ir::{LaneOp, Prim, Scope, TyKind};
use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Capability, GroupOperation, MemorySemantics, Op as Code, StorageClass, Word};

/// A call. `None` if nothing comes back.
pub(crate) fn call(f: &mut FunctionEmitter, callee: Func, inst: &Inst) -> Result<Option<Word>> {
    let function = f.e.module.func(callee);
    match &function.linkage {
        Linkage::Foreign(symbol) => match LaneOp::of_symbol(symbol) {
            Some((op, scope)) => return lanes(f, op, scope, inst),
            None => return Err(bug(format!("a call of `{symbol}`"))),
        },
        Linkage::Asm(_) => return Err(bug("assembly")),
        _ => {}
    }
    let mut args = Vec::new();
    for &arg in &inst.args {
        args.push(f.value(arg)?);
    }
    let ret = match function.rets[..] {
        [] => f.e.void(),
        [only] => f.e.ty(only, f.span)?,
        _ => {
            let ty = f.e.results[callee.idx()];
            f.e.ty(ty, f.span)?
        }
    };
    let called = f.e.funcs[callee.idx()];
    f.e.calls[f.func.idx()].insert(callee.idx());
    let word = f.op(Code::FunctionCall, ret, &[&[called], &args[..]].concat());
    Ok(match (function.rets.is_empty(), inst.result) {
        (false, _) => Some(word),
        // Nobody uses it, but it may be passed on.
        (true, Some(result)) => {
            let ty = f.ty(result)?;
            Some(f.e.null(ty))
        }
        (true, None) => None,
    })
}

/// More memory of a block than any device has.
const MAX_SHARED: u64 = 1 << 30;

/// The remedy for an operation among lanes that is missing.
const EXCHANGE: &str = "exchange the values through memory of the block, with barriers";

/// Numbers of SPIR-V's scopes.
pub(crate) const DEVICE: u32 = 1;
pub(crate) const WORKGROUP: u32 = 2;
pub(crate) const SUBGROUP: u32 = 3;

impl FunctionEmitter<'_, '_> {
    /// The semantics that order all memory.
    pub fn ordered(&mut self) -> Word {
        let memory = self.all_memory();
        self.e.u32(MemorySemantics::ACQUIRE_RELEASE.bits() | memory)
    }

    /// Memory of the device and of the block, in semantics.
    pub fn all_memory(&self) -> u32 {
        let device = match self.e.is_vulkan() {
            true => MemorySemantics::UNIFORM_MEMORY,
            false => MemorySemantics::CROSS_WORKGROUP_MEMORY,
        };
        (device | MemorySemantics::WORKGROUP_MEMORY).bits()
    }
}

/// Waits for the work items of a block or subgroup.
fn barrier(f: &mut FunctionEmitter, scope: u32) {
    let (scope, ordered) = (f.e.u32(scope), f.ordered());
    let operands = vec![Operand::IdScope(scope), Operand::IdScope(scope), Operand::IdMemorySemantics(ordered)];
    f.effect(Code::ControlBarrier, operands);
}

/// A vote of the work items of a block: they count in a variable of the block, which each of them has set to 0 before.
fn vote(f: &mut FunctionEmitter, op: LaneOp, holds: Value) -> Result<Word> {
    let holds = f.value(holds)?;
    let (int, bool_ty) = (f.e.int(32), f.e.bool_ty());
    let votes = match f.e.votes {
        Some(variable) => variable,
        None => f.e.variable(StorageClass::Workgroup, int, None),
    };
    f.e.votes = Some(votes);
    f.e.shared.insert(votes, 4);
    f.e.uses(votes);
    let (zero, one) = (f.e.u32(0), f.e.u32(1));
    let (scope, relaxed) = (f.e.u32(WORKGROUP), f.e.u32(0));
    let place = || vec![Operand::IdRef(votes), Operand::IdScope(scope), Operand::IdMemorySemantics(relaxed)];
    let with = |word: Word| [place(), vec![Operand::IdRef(word)]].concat();
    barrier(f, WORKGROUP);
    f.effect(Code::AtomicStore, with(zero));
    barrier(f, WORKGROUP);
    let (yes, no) = if op == LaneOp::All { (zero, one) } else { (one, zero) };
    let counted = f.op(Code::Select, int, &[holds, yes, no]);
    f.op_with(Code::AtomicIAdd, int, with(counted));
    barrier(f, WORKGROUP);
    let n = f.op_with(Code::AtomicLoad, int, place());
    Ok(match op {
        LaneOp::Count => n,
        LaneOp::All => f.op(Code::IEqual, bool_ty, &[n, zero]),
        _ => f.op(Code::INotEqual, bool_ty, &[n, zero]),
    })
}

fn lanes(f: &mut FunctionEmitter, op: LaneOp, scope: Scope, inst: &Inst) -> Result<Option<Word>> {
    let among = if scope == Scope::Block { "the work items of a block" } else { "the lanes of a subgroup" };
    let lacks = |f: &FunctionEmitter| f.lacks(&format!("`{}`, an operation among {among},", op.name()), EXCHANGE);
    if op == LaneOp::Shared {
        let result = inst.result.ok_or_else(|| bug("memory of the block without an address"))?;
        let bytes = inst.args.first().and_then(|&a| f.function.as_bits(a));
        let bytes = bytes.ok_or_else(|| Box::new(bad_shared_memory::unknown(f.span)))?;
        if bytes > MAX_SHARED {
            return Err(Box::new(bad_shared_memory::too_much(f.span, bytes, MAX_SHARED, "one of any device")));
        }
        return memory::shared(f, bytes, result).map(Some);
    }
    if op == LaneOp::Barrier {
        barrier(f, if scope == Scope::Block { WORKGROUP } else { SUBGROUP });
        return match inst.result {
            None => Ok(None),
            Some(result) => {
                let ty = f.ty(result)?;
                Ok(Some(f.e.null(ty)))
            }
        };
    }
    if let (Scope::Block, LaneOp::Any | LaneOp::All | LaneOp::Count, Some(&holds)) = (scope, op, inst.args.first()) {
        return vote(f, op, holds).map(Some);
    }
    if scope == Scope::Block {
        return Err(lacks(f));
    }
    let (short, bool_ty) = (f.e.int(32), f.e.bool_ty());
    f.e.need(Capability::GroupNonUniform);
    let among = f.e.u32(SUBGROUP);
    let mut args = Vec::new();
    for &arg in &inst.args {
        args.push(f.value(arg)?);
    }
    let first = args.first().copied().unwrap_or(among);
    let built_in = |f: &mut FunctionEmitter, what: BuiltIn| {
        let variable = f.e.built_in(what, short);
        f.op(Code::Load, short, &[variable])
    };
    Ok(Some(match op {
        LaneOp::Id => built_in(f, BuiltIn::SubgroupLocalInvocationId),
        LaneOp::Width => built_in(f, BuiltIn::SubgroupSize),
        LaneOp::Any | LaneOp::All => {
            f.e.need(Capability::GroupNonUniformVote);
            let code = if op == LaneOp::Any { Code::GroupNonUniformAny } else { Code::GroupNonUniformAll };
            f.op_with(code, bool_ty, vec![Operand::IdScope(among), Operand::IdRef(first)])
        }
        LaneOp::Count | LaneOp::Ballot => {
            f.e.need(Capability::GroupNonUniformBallot);
            let four = f.e.vector(short, 4);
            let all =
                f.op_with(Code::GroupNonUniformBallot, four, vec![Operand::IdScope(among), Operand::IdRef(first)]);
            if op == LaneOp::Count {
                let reduce = Operand::GroupOperation(GroupOperation::Reduce);
                let operands = vec![Operand::IdScope(among), reduce, Operand::IdRef(all)];
                f.op_with(Code::GroupNonUniformBallotBitCount, short, operands)
            } else {
                let (low, high) = (f.take(short, all, 0), f.take(short, all, 1));
                crate::casts::join(f, &[low, high], Prim::U32, Prim::U64)
            }
        }
        LaneOp::Get => {
            f.e.need(Capability::GroupNonUniformShuffle);
            let ty = f.function.ty(inst.args[0]);
            let is_number = matches!(f.e.module.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. });
            if !is_number {
                return Err(f.lacks("a value of another lane that is no number", "get its numbers one by one"));
            }
            let width = built_in(f, BuiltIn::SubgroupSize);
            let lane = f.op(Code::UMod, short, &[args[1], width]);
            let word = f.e.ty(ty, f.span)?;
            let operands = vec![Operand::IdScope(among), Operand::IdRef(first), Operand::IdRef(lane)];
            f.op_with(Code::GroupNonUniformShuffle, word, operands)
        }
        LaneOp::Compact | LaneOp::Barrier | LaneOp::Shared => return Err(lacks(f)),
    }))
}

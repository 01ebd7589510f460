//! Operations: which is whose; constants; aggregates; the bits of a value as another type.

use crate::function::FunctionEmitter;
use crate::module::Grid;
use crate::{KNOWN_FUNCTION, Result, atomics, bug, casts, math, memory, numbers};
use nyala_flat::{Const, Inst, Value};
use nyala_ir::{Op, Prim, Ty, TyKind, WorkItem};
use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Op as Code, Word};

/// Aggregates with more parts are not looked up by an index that is known at run time only.
const MAX_CHOICES: u64 = 64;

/// Writes an operation. `None` if it has no result.
pub(crate) fn operation(f: &mut FunctionEmitter, op: Op, inst: &Inst) -> Result<Option<Word>> {
    let args = &inst.args[..];
    let result = inst.result;
    let arg = |i: usize| args.get(i).copied().ok_or_else(|| bug(format!("`{}` without an operand", op.name())));
    let typed = || result.ok_or_else(|| bug(format!("`{}` without a result", op.name())));
    Ok(Some(match op {
        Op::Store => {
            memory::store(f, arg(0)?, arg(1)?)?;
            return Ok(None);
        }
        Op::Load => memory::load(f, arg(0)?, typed()?)?,
        Op::Slot => memory::slot(f, typed()?)?,
        Op::Lea => memory::lea(f, arg(0)?, arg(1)?)?,
        Op::Aligned | Op::Restrict => f.value(arg(0)?)?,
        nyala_ir::annotation!() => return Err(bug(format!("`{}` in a kernel", op.name()))),
        Op::Scope => f.e.u32(0),
        Op::Prefetch | Op::Pipeline | Op::Watch | Op::DebugValue => return Ok(None),
        Op::Alloc => return Err(bug("memory of the heap in a kernel")),
        Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
            return atomics::atomic(f, op, inst);
        }
        Op::WorkItem => work_item(f, inst)?,
        Op::Tuple | Op::Struct | Op::Array => {
            let mut parts = Vec::new();
            for &part in args {
                parts.push(f.part(part)?);
            }
            let ty = f.ty(typed()?)?;
            if parts.is_empty() { f.e.null(ty) } else { f.op(Code::CompositeConstruct, ty, &parts) }
        }
        Op::Splat => {
            let result = typed()?;
            let n = f.e.module.types.n_parts(f.function.ty(result)).unwrap_or(0);
            f.e.check_size(f.function.ty(result), f.span)?;
            let (part, ty) = (f.part(arg(0)?)?, f.ty(result)?);
            if n == 0 { f.e.null(ty) } else { f.op(Code::CompositeConstruct, ty, &vec![part; n as usize]) }
        }
        Op::Extract => extract(f, arg(0)?, arg(1)?, typed()?)?,
        Op::Insert => insert(f, arg(0)?, arg(1)?, arg(2)?)?,
        Op::Shuffle => shuffle(f, args, typed()?)?,
        Op::Bits => bits(f, arg(0)?, typed()?)?,
        Op::Select => {
            let (cond, a, b) = (arg(0)?, f.value(arg(1)?)?, f.value(arg(2)?)?);
            let result = typed()?;
            if f.e.module.types.as_vector(f.function.ty(cond)).is_some() {
                numbers::lane_wise(f, &args[..3], result, &|f, prim, words| {
                    let ty = f.e.prim(prim);
                    Ok(f.op(Code::Select, ty, words))
                })?
            } else {
                let cond = f.value(cond)?;
                select(f, cond, (a, b), f.function.ty(result))?
            }
        }
        Op::Bitcast => casts::bitcast(f, arg(0)?, typed()?)?,
        Op::Cast => casts::cast(f, arg(0)?, typed()?)?,
        _ if op.is_math() => math::function(f, op, inst, typed()?)?,
        _ => numbers::number(f, op, inst, typed()?)?,
    }))
}

impl FunctionEmitter<'_, '_> {
    /// A constant of the type of a value.
    pub fn constant(&mut self, value: Value, constant: Const) -> Result<Word> {
        let ty = self.function.ty(value);
        match (constant, self.e.module.types.kind(ty)) {
            (Const::Bits(bits), TyKind::Prim(prim)) => Ok(self.e.literal(*prim, bits)),
            (Const::Bits(bits), TyKind::Ptr { space, .. }) => {
                let space = *space;
                let (word, long) = (self.e.address(space), self.e.int(64));
                if self.e.is_number(space) {
                    return Ok(self.e.number(long, 64, bits));
                }
                if self.e.is_vulkan() {
                    // No variable lies at the place that stands for the address of nothing.
                    return Ok(self.e.u32(if bits == 0 { u32::MAX } else { bits as u32 }));
                }
                if bits == 0 {
                    return Ok(self.e.null(word));
                }
                let number = self.e.number(long, 64, bits);
                Ok(self.op(Code::ConvertUToPtr, word, &[number]))
            }
            (Const::Undef, _) => {
                let ty = self.ty(value)?;
                Ok(self.e.null(ty))
            }
            (Const::Global(global), _) => memory::global(self, global),
            (Const::Func(_) | Const::CFunc(_), _) => Err(self.lacks("a function as a value", KNOWN_FUNCTION)),
            (Const::Bits(_), _) => Err(bug("a literal of an aggregate")),
        }
    }

    /// A value as a part of an aggregate: an address is a number there.
    pub fn part(&mut self, value: Value) -> Result<Word> {
        let word = self.value(value)?;
        match *self.e.module.types.kind(self.function.ty(value)) {
            TyKind::Ptr { space, .. } => Ok(self.as_number(word, space)),
            _ => Ok(word),
        }
    }

    /// An address as a number of 64 bits.
    pub fn as_number(&mut self, word: Word, space: u8) -> Word {
        let long = self.e.int(64);
        match () {
            () if self.e.is_number(space) => word,
            () if self.e.is_vulkan() => self.op(Code::UConvert, long, &[word]),
            () => self.op(Code::ConvertPtrToU, long, &[word]),
        }
    }

    /// A number of 64 bits as an address.
    pub fn as_address(&mut self, word: Word, space: u8) -> Word {
        let ty = self.e.address(space);
        match () {
            () if self.e.is_number(space) => word,
            () if self.e.is_vulkan() => self.op(Code::UConvert, ty, &[word]),
            () => self.op(Code::ConvertUToPtr, ty, &[word]),
        }
    }

    /// A part of an aggregate, by its number.
    pub fn take(&mut self, ty: Word, aggregate: Word, idx: u64) -> Word {
        self.op_with(Code::CompositeExtract, ty, vec![Operand::IdRef(aggregate), Operand::LiteralBit32(idx as u32)])
    }
}

fn part_ty(f: &FunctionEmitter, ty: Ty, idx: u64) -> Result<Ty> {
    match *f.e.module.types.kind(ty) {
        TyKind::Vector(prim, _) => Ok(f.e.module.types.prim(prim)),
        _ => f.e.module.types.part(ty, idx).ok_or_else(|| bug("no such part")),
    }
}

/// The type of a part as it is in the aggregate.
pub(crate) fn part_word(f: &mut FunctionEmitter, ty: Ty) -> Result<Word> {
    match f.e.module.types.kind(ty) {
        TyKind::Ptr { .. } => Ok(f.e.int(64)),
        _ => f.e.ty(ty, f.span),
    }
}

/// `a` if a bool holds, else `b`; of any type.
pub(crate) fn select(f: &mut FunctionEmitter, cond: Word, (a, b): (Word, Word), ty: Ty) -> Result<Word> {
    let is_whole = |f: &FunctionEmitter, ty: Ty| {
        f.e.is_vulkan() || matches!(f.e.module.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. })
    };
    if is_whole(f, ty) {
        let word = f.e.ty(ty, f.span)?;
        return Ok(f.op(Code::Select, word, &[cond, a, b]));
    }
    f.e.check_size(ty, f.span)?;
    // SPIR-V 1.2 chooses among numbers only.
    enum Step {
        Choose(Ty, Word, Word),
        Build(Ty, usize),
    }
    let (mut work, mut made) = (vec![Step::Choose(ty, a, b)], Vec::new());
    while let Some(step) = work.pop() {
        match step {
            Step::Choose(ty, a, b) if is_whole(f, ty) => {
                let word = part_word(f, ty)?;
                made.push(f.op(Code::Select, word, &[cond, a, b]));
            }
            Step::Choose(ty, a, b) => {
                let n = f.e.module.types.n_parts(ty).unwrap_or(0);
                work.push(Step::Build(ty, n as usize));
                let mut parts = Vec::new();
                for i in 0..n {
                    let part = part_ty(f, ty, i)?;
                    let word = part_word(f, part)?;
                    parts.push(Step::Choose(part, f.take(word, a, i), f.take(word, b, i)));
                }
                work.extend(parts.into_iter().rev());
            }
            Step::Build(ty, n) => {
                let word = f.e.ty(ty, f.span)?;
                let parts = made.split_off(made.len() - n);
                made.push(match n {
                    0 => f.e.null(word),
                    _ => f.op(Code::CompositeConstruct, word, &parts),
                });
            }
        }
    }
    made.pop().ok_or_else(|| bug("a choice of nothing"))
}

/// An index as a number of 32 bits.
fn index(f: &mut FunctionEmitter, idx: Value) -> Result<Word> {
    let prim = f.e.module.types.as_prim(f.function.ty(idx)).ok_or_else(|| bug("an index that is no number"))?;
    let word = f.value(idx)?;
    let short = f.e.int(32);
    Ok(match prim.bits() {
        32 => word,
        _ => f.op(Code::UConvert, short, &[word]),
    })
}

fn n_parts(f: &FunctionEmitter, aggregate: Value) -> Result<u64> {
    let ty = f.function.ty(aggregate);
    let n = f.e.module.types.n_parts(ty).unwrap_or(0);
    match n <= MAX_CHOICES && n > 0 {
        true => Ok(n),
        false => {
            let what = format!("an index into a value of type `{}`", f.e.module.types.display(ty));
            Err(f.lacks(&what, "index the variable or the memory that holds it"))
        }
    }
}

fn extract(f: &mut FunctionEmitter, aggregate: Value, idx: Value, result: Value) -> Result<Word> {
    let whole = f.value(aggregate)?;
    let ty = f.function.ty(aggregate);
    if let Some(i) = f.function.as_index(idx) {
        if f.e.module.types.n_parts(ty).is_some_and(|n| i >= n) {
            let word = f.ty(result)?;
            return Ok(f.e.null(word));
        }
        let part = part_ty(f, ty, i)?;
        let word = part_word(f, part)?;
        return Ok(f.take(word, whole, i));
    }
    let n = n_parts(f, aggregate)?;
    let part = part_ty(f, ty, 0)?;
    let word = part_word(f, part)?;
    let (idx, bool_ty) = (index(f, idx)?, f.e.bool_ty());
    let mut found = f.take(word, whole, n - 1);
    for i in (0..n - 1).rev() {
        let number = f.e.u32(i as u32);
        let cond = f.op(Code::IEqual, bool_ty, &[idx, number]);
        let this = f.take(word, whole, i);
        found = select(f, cond, (this, found), part)?;
    }
    Ok(found)
}

fn insert(f: &mut FunctionEmitter, aggregate: Value, idx: Value, value: Value) -> Result<Word> {
    let (whole, new) = (f.value(aggregate)?, f.part(value)?);
    let ty = f.function.ty(aggregate);
    let word = f.e.ty(ty, f.span)?;
    let put = |f: &mut FunctionEmitter, new: Word, whole: Word, i: u64| {
        let operands = vec![Operand::IdRef(new), Operand::IdRef(whole), Operand::LiteralBit32(i as u32)];
        f.op_with(Code::CompositeInsert, word, operands)
    };
    if let Some(i) = f.function.as_index(idx) {
        return Ok(match f.e.module.types.n_parts(ty).is_some_and(|n| i < n) {
            true => put(f, new, whole, i),
            false => whole,
        });
    }
    let n = n_parts(f, aggregate)?;
    let part = part_ty(f, ty, 0)?;
    let part_word = part_word(f, part)?;
    let (idx, bool_ty) = (index(f, idx)?, f.e.bool_ty());
    let mut made = whole;
    for i in 0..n {
        let number = f.e.u32(i as u32);
        let cond = f.op(Code::IEqual, bool_ty, &[idx, number]);
        let old = f.take(part_word, whole, i);
        let chosen = select(f, cond, (new, old), part)?;
        made = put(f, chosen, made, i);
    }
    Ok(made)
}

fn shuffle(f: &mut FunctionEmitter, args: &[Value], result: Value) -> Result<Word> {
    let [a, b, which] = args[..] else { return Err(bug("`shuffle` without an operand")) };
    let lanes = |f: &FunctionEmitter, v: Value| f.e.module.types.as_vector(f.function.ty(v));
    let (Some((prim, n)), Some((idx_prim, m))) = (lanes(f, a), lanes(f, which)) else {
        return Err(bug("`shuffle` of no vector"));
    };
    if u64::from(n) > MAX_CHOICES / 2 {
        return Err(f.lacks(&format!("a shuffle of {n} lanes"), "shuffle parts of the vector"));
    }
    let (elem, idx_ty, bool_ty) = (f.e.prim(prim), f.e.prim(idx_prim), f.e.bool_ty());
    let [a, b, which] = [f.value(a)?, f.value(b)?, f.value(which)?];
    let all: Vec<Word> =
        [a, b].into_iter().flat_map(|v| (0..n).map(move |i| (v, i))).map(|(v, i)| f.take(elem, v, i.into())).collect();
    let mut parts = Vec::new();
    for lane in 0..m {
        let idx = f.take(idx_ty, which, lane.into());
        let mut found = all[0];
        for (i, &word) in all.iter().enumerate().skip(1) {
            let number = f.e.literal(idx_prim, i as u64);
            let cond = f.op(Code::IEqual, bool_ty, &[idx, number]);
            found = f.op(Code::Select, elem, &[cond, word, found]);
        }
        parts.push(found);
    }
    let ty = f.ty(result)?;
    Ok(f.op(Code::CompositeConstruct, ty, &parts))
}

fn bits(f: &mut FunctionEmitter, vector: Value, result: Value) -> Result<Word> {
    let Some((_, n)) = f.e.module.types.as_vector(f.function.ty(vector)) else {
        return Err(bug("`bits` of no vector"));
    };
    let prim = f.e.module.types.as_prim(f.function.ty(result)).unwrap_or(Prim::U64);
    let (word, ty, bool_ty) = (f.value(vector)?, f.e.prim(prim), f.e.bool_ty());
    let zero = f.e.literal(prim, 0);
    let mut sum = zero;
    for lane in 0..n.min(prim.bits()) {
        let holds = f.take(bool_ty, word, lane.into());
        let bit = f.e.literal(prim, 1 << lane);
        let this = f.op(Code::Select, ty, &[holds, bit, zero]);
        sum = f.op(Code::BitwiseOr, ty, &[sum, this]);
    }
    Ok(sum)
}

/// A number of the work item.
fn work_item(f: &mut FunctionEmitter, inst: &Inst) -> Result<Word> {
    let number = |i: usize| inst.args.get(i).and_then(|&a| f.function.as_bits(a));
    let what = number(0).and_then(|n| WorkItem::ALL.get(n as usize).copied());
    let (Some(what), Some(axis @ 0..3)) = (what, number(1)) else {
        return Err(bug("a number of the work item on an axis that is not known"));
    };
    let short = f.e.int(32);
    if f.e.is_vulkan() && what == WorkItem::BlockSize {
        return Ok(f.e.extent(axis as u32));
    }
    if axis == 0
        && what == WorkItem::Blocks
        && let Some(variable) = f.e.grid(Grid::Blocks)
    {
        return Ok(f.op(Code::Load, short, &[variable]));
    }
    let built_in = match what {
        WorkItem::Thread => BuiltIn::LocalInvocationId,
        WorkItem::Block => BuiltIn::WorkgroupId,
        WorkItem::BlockSize => BuiltIn::WorkgroupSize,
        WorkItem::Blocks => BuiltIn::NumWorkgroups,
    };
    // Sizes of OpenCL have the width of addresses.
    let elem = f.e.int(if f.e.is_vulkan() { 32 } else { 64 });
    let three = f.e.vector(elem, 3);
    let variable = f.e.built_in(built_in, three);
    let all = f.op(Code::Load, three, &[variable]);
    let one = f.take(elem, all, axis);
    if axis == 0
        && what == WorkItem::Block
        && let Some(variable) = f.e.grid(Grid::First)
    {
        let first = f.op(Code::Load, short, &[variable]);
        return Ok(f.op(Code::IAdd, short, &[first, one]));
    }
    Ok(if f.e.is_vulkan() { one } else { f.op(Code::UConvert, short, &[one]) })
}

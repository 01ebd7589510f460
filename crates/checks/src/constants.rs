//! Operations on constants whose results are undefined, such as `MAX + 1`. Folding leaves them in the program, so that `--check`
//! finds them. [`constant_faults`] reports those that certainly run when their function is called. [`wrap_constants`] gives the
//! others the result that the machine would compute: LLVM and C compilers may do anything with what they see to be undefined.

use crate::needed::needed;
use nyala_base::{Id, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::fold::ConstantFault;
use nyala_ir::scalar::eval_arith;
use nyala_ir::{Op, Prim, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// A fault of an operation on constants.
pub struct Found {
    /// The operation.
    pub span: Span,
    /// What goes wrong.
    pub fault: ConstantFault,
    /// The mutable static that is an operand; it keeps its first value, since nothing writes to it.
    pub kept: Option<String>,
}

/// The faults of operations on constants in code that every call of its function runs.
pub fn constant_faults(module: &Module) -> Vec<Found> {
    let mut found = Vec::new();
    let kept = kept(module);
    let blocks = blocks_of_known_size(module);
    for function in module.funcs.iter().filter(|f| !f.blocks.is_empty()) {
        let certain = certain(function);
        let needed = needed(function);
        let all = function.blocks.iter().flat_map(|b| &b.insts);
        let defs: FxHashMap<Value, &Inst> = all.filter_map(|i| Some((i.result?, i))).collect();
        let loops = Loops::of(module, function, &defs, &certain);
        for b in (0..function.blocks.len()).map(Block::from_idx).filter(|b| !certain.contains(b) && loops.run(*b)) {
            for inst in &function.block(b).insts {
                if is_outside(module, function, &defs, &blocks, &loops, inst) {
                    found.push(Found { span: inst.span, fault: ConstantFault::Index, kept: None });
                }
            }
        }
        // The first value of a mutable static that is read there, unless something writes to it.
        let read = |v: Value| {
            let load = defs.get(&v).filter(|i| i.op == InstOp::Op(Op::Load))?;
            let Some(Const::Global(id)) = function.as_const(load.args[0]) else { return None };
            Some((id, *kept.get(&id)?))
        };
        let bits = |v: Value| function.as_bits(v).or_else(|| Some(read(v)?.1));
        for &b in &certain {
            for inst in &function.block(b).insts {
                let fault = arithmetic(&module.types, function, inst, &bits)
                    .filter(|_| inst.result.is_some_and(|r| needed.contains(&r)))
                    .map(|_| ConstantFault::Overflow)
                    .or_else(|| division(&module.types, function, inst, &bits))
                    .or_else(|| {
                        is_outside(module, function, &defs, &blocks, &loops, inst).then_some(ConstantFault::Index)
                    });
                let name = || inst.args.iter().find_map(|&v| Some(module.globals[read(v)?.0.idx()].name.clone()));
                found.extend(fault.map(|fault| Found { span: inst.span, fault, kept: name() }));
            }
        }
    }
    found
}

/// The first values of mutable statics of a number each that the whole program only reads.
fn kept(module: &Module) -> FxHashMap<GlobalId, u64> {
    let mut found: FxHashMap<GlobalId, u64> = FxHashMap::default();
    // Code of devices is elsewhere, and may have their addresses.
    if !module.devices.is_empty() {
        return found;
    }
    for (i, global) in module.globals.iter().enumerate().filter(|(_, g)| g.mutable) {
        let bits = match global.init {
            Init::Bits(bits) => bits,
            Init::Zero => 0,
            _ => continue,
        };
        if module.types.as_prim(global.ty).is_some() {
            found.insert(GlobalId::from_idx(i), bits);
        }
    }
    let mut work: Vec<&Init> = module.globals.iter().map(|g| &g.init).collect();
    while let Some(init) = work.pop() {
        match init {
            Init::Parts(parts) => work.extend(parts),
            Init::Global(id, _) => drop(found.remove(id)),
            _ => {}
        }
    }
    for function in &module.funcs {
        let mut other = |v: Value| {
            if let Some(Const::Global(id)) = function.as_const(v) {
                found.remove(&id);
            }
        };
        for block in &function.blocks {
            for inst in &block.insts {
                let n_read = usize::from(inst.op == InstOp::Op(Op::Load));
                inst.args.iter().skip(n_read).for_each(|&v| other(v));
            }
            block.term.for_each_use(&mut other);
        }
    }
    found
}

/// The blocks that every call of a function runs: those that follow the entry without a branch, and those where branches meet again.
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

/// The result, modulo 2ⁿ, of signed arithmetic on constants that does not fit its type; `known` gives the bits of constants.
fn arithmetic(
    types: &Types,
    function: &Function,
    inst: &Inst,
    known: &dyn Fn(Value) -> Option<u64>,
) -> Option<(Prim, u64)> {
    let InstOp::Op(op @ (Op::Add | Op::Sub | Op::Mul)) = inst.op else { return None };
    let prim = types.as_prim(function.ty(inst.result?)).filter(|p| p.is_int() && p.is_signed())?;
    let (a, b) = (known(inst.args[0])?, known(inst.args[1])?);
    let (bits, overflows) = eval_arith(op, prim, prim.normalize(a), prim.normalize(b))?;
    overflows.then_some((prim, bits))
}

fn division(
    types: &Types,
    function: &Function,
    inst: &Inst,
    known: &dyn Fn(Value) -> Option<u64>,
) -> Option<ConstantFault> {
    let InstOp::Op(Op::PDiv | Op::PRem) = inst.op else { return None };
    let prim = types.as_prim(function.ty(inst.result?)).filter(|p| p.is_int())?;
    let &[.., dividend, divisor] = &inst.args[..] else { return None };
    match (known(dividend), prim.normalize(known(divisor)?)) {
        (_, 0) => Some(ConstantFault::Division),
        (Some(bits), _) if prim.is_signed() && eval_arith(Op::Div, prim, prim.normalize(bits), u64::MAX).is_none() => {
            (prim.normalize(known(divisor)?) == u64::MAX).then_some(ConstantFault::Overflow)
        }
        _ => None,
    }
}

/// The size of the memory that a function returns, in bytes.
enum Size {
    Known(u64),
    /// A parameter that counts elements, and the bytes of each.
    Of(usize, u64),
}

/// Functions that return new memory, whose size is known where they are called.
fn blocks_of_known_size(module: &Module) -> FxHashMap<Func, Size> {
    let mut found = FxHashMap::default();
    for (i, function) in module.funcs.iter().enumerate() {
        let [block] = &function.blocks[..] else { continue };
        let Terminator::Return(values) = &block.term else { continue };
        let &[value] = &values[..] else { continue };
        let def = |v: Value| block.insts.iter().find(|i| i.result == Some(v));
        let param = |v: Value| block.params.iter().position(|&p| p == v);
        let mut at = def(value);
        while let Some(inst) = at.filter(|i| i.op == InstOp::Op(Op::Bitcast)) {
            at = def(inst.args[0]);
        }
        let Some(inst) = at.filter(|i| is_alloc(module, i)) else { continue };
        let n = inst.args[0];
        let size = match (function.as_bits(n), param(n), def(n)) {
            (Some(bits), ..) => Some(Size::Known(bits)),
            (_, Some(at), _) => Some(Size::Of(at, 1)),
            (_, _, Some(i)) if i.op == InstOp::Op(Op::Mul) => {
                param(i.args[0]).zip(function.as_bits(i.args[1])).map(|(at, bits)| Size::Of(at, bits))
            }
            _ => None,
        };
        found.extend(size.map(|size| (Func::from_idx(i), size)));
    }
    found
}

fn is_alloc(module: &Module, inst: &Inst) -> bool {
    matches!(inst.op, InstOp::Call(f) if module.func(f).is_foreign() && module.func(f).symbol() == Some("nyala_alloc"))
}

/// The bytes that an instruction allocates.
fn allocated(module: &Module, function: &Function, inst: &Inst, known: &FxHashMap<Func, Size>) -> Option<u64> {
    match inst.op {
        InstOp::Call(f) if known.contains_key(&f) => match known.get(&f)? {
            Size::Known(size) => Some(*size),
            Size::Of(at, each) => function.as_bits(*inst.args.get(*at)?)?.checked_mul(*each),
        },
        InstOp::Call(_) if is_alloc(module, inst) => function.as_bits(inst.args[0]),
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

/// Whether an access is out of bounds at a constant offset, or in an iteration that a loop certainly has.
fn is_outside(
    module: &Module,
    function: &Function,
    defs: &FxHashMap<Value, &Inst>,
    blocks: &FxHashMap<Func, Size>,
    loops: &Loops,
    inst: &Inst,
) -> bool {
    let InstOp::Op(Op::Load | Op::Store) = inst.op else { return false };
    let types = &module.types;
    let (mut at, mut offset) = (inst.args[0], 0i128);
    let place = |at: Value| types.pointee(function.ty(at));
    let Some((size, _)) = place(at).and_then(|ty| layout::size_align(types, ty)).filter(|s| s.0 > 0) else {
        return false;
    };
    while let Some(def) = defs.get(&at) {
        match def.op {
            InstOp::Op(Op::Bitcast | Op::Aligned | Op::Restrict) if place(def.args[0]).is_some() => at = def.args[0],
            InstOp::Op(Op::Lea) => {
                let Some(ty) = place(def.args[0]) else { return false };
                let idx = function.as_index(def.args[1]).map(|idx| idx as i64);
                let Some(idx) = idx.or_else(|| i64::try_from(loops.reached(def.args[1], MAX_DEPTH)?).ok()) else {
                    return false;
                };
                let step = match types.kind(ty) {
                    TyKind::Array(elem, _) | TyKind::IndefArray(elem) => {
                        layout::size_align(types, *elem).map(|(size, align)| size.next_multiple_of(align.max(1)))
                    }
                    _ => None,
                };
                let by = match step {
                    Some(step) => i128::from(idx) * i128::from(step),
                    None => match layout::offset(types, ty, idx as u64) {
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

/// Limits on the operations between an index and a loop's counter, and on the blocks of loops.
const MAX_DEPTH: usize = 16;
const MAX_MEMBERS: usize = 256;

/// A loop that counts up by one to a bound, and is left in no other way.
struct Loop {
    header: Block,
    members: FxHashSet<Block>,
    /// The block that jumps back to the header.
    latch: Block,
    start: Value,
    bound: Value,
}

/// The counted loops, by the value that counts.
struct Loops<'a> {
    module: &'a Module,
    function: &'a Function,
    defs: &'a FxHashMap<Value, &'a Inst>,
    certain: &'a [Block],
    all: FxHashMap<Value, Loop>,
    /// The loops around each block, innermost first, named by their counters. `None` if one of them is no counted loop.
    around: FxHashMap<Block, Option<Vec<Value>>>,
    tree: nyala_base::graph::Tree,
}

impl<'a> Loops<'a> {
    fn of(
        module: &'a Module,
        function: &'a Function,
        defs: &'a FxHashMap<Value, &'a Inst>,
        certain: &'a [Block],
    ) -> Loops<'a> {
        let cfg = Cfg::new(function);
        let tree = cfg.dominator_tree();
        let mut loops =
            Loops { module, function, defs, certain, all: FxHashMap::default(), around: FxHashMap::default(), tree };
        for &header in cfg.rpo.iter().rev() {
            let dominated = |b: &Block| loops.tree.meet(header.idx(), b.idx()) == header.idx();
            let back: Vec<Block> = cfg.preds[header.idx()].iter().copied().filter(dominated).collect();
            if back.is_empty() {
                continue;
            }
            let mut members: FxHashSet<Block> = [header].into_iter().collect();
            let mut work = back.clone();
            while let Some(b) = work.pop() {
                if members.insert(b) && members.len() <= MAX_MEMBERS {
                    work.extend(&cfg.preds[b.idx()]);
                }
            }
            let counted = loops.counted(&cfg, header, &back, &members);
            let counter = counted.as_ref().map(|c| c.0);
            for &b in &members {
                let around = loops.around.entry(b).or_insert_with(|| Some(Vec::new()));
                match (around.as_mut(), counter) {
                    (Some(list), Some(counter)) => list.push(counter),
                    _ => *around = None,
                }
            }
            loops.all.extend(counted);
        }
        loops
    }

    fn counted(&self, cfg: &Cfg, header: Block, back: &[Block], members: &FxHashSet<Block>) -> Option<(Value, Loop)> {
        let (&[latch], block) = (back, self.function.block(header)) else { return None };
        let Terminator::Branch { cond, then, els } = &block.term else { return None };
        let test = self.defs.get(cond).filter(|i| i.op == InstOp::Op(Op::Lt))?;
        let (counter, bound) = (test.args[0], test.args[1]);
        let at = block.params.iter().position(|&p| p == counter)?;
        let stays =
            |b: &Block| *b == header || self.function.block(*b).term.edges().all(|e| members.contains(&e.block));
        let ends = |b: &Block| self.function.block(*b).term.edges().next().is_none();
        if !members.contains(&then.block)
            || members.contains(&els.block)
            || members.len() > MAX_MEMBERS
            || !members.iter().all(|b| stays(b) && !ends(b))
        {
            return None;
        }
        let mut start = None;
        for &pred in &cfg.preds[header.idx()] {
            for edge in self.function.block(pred).term.edges().filter(|e| e.block == header) {
                let v = edge.args[at];
                if pred == latch {
                    let next = self.defs.get(&v).filter(|i| i.op == InstOp::Op(Op::Add) && i.args[0] == counter)?;
                    if self.number(next.args[1]) != Some(1) {
                        return None;
                    }
                } else if *start.get_or_insert(v) != v {
                    return None;
                }
            }
        }
        Some((counter, Loop { header, members: members.clone(), latch, start: start?, bound }))
    }

    fn number(&self, v: Value) -> Option<i128> {
        let prim = self.module.types.as_prim(self.function.ty(v)).filter(|p| p.is_int())?;
        let bits = prim.normalize(self.function.as_bits(v)?);
        Some(if prim.is_signed() { i128::from(bits as i64) } else { i128::from(bits) })
    }

    /// A number that a value certainly has in one of the iterations: the greatest one.
    fn reached(&self, v: Value, depth: usize) -> Option<i128> {
        if let Some(n) = self.number(v) {
            return Some(n);
        }
        let depth = depth.checked_sub(1)?;
        if let Some(counting) = self.all.get(&v) {
            return Some(self.rounds_to(counting, depth)? - 1);
        }
        let inst = self.defs.get(&v)?;
        let of = |v: Value| self.module.types.as_prim(self.function.ty(v)).filter(|p| p.is_int());
        match inst.op {
            InstOp::Op(Op::Add) => Some(self.reached(inst.args[0], depth)? + self.number(inst.args[1])?),
            InstOp::Op(Op::Cast) if of(inst.args[0])?.bits() <= of(v)?.bits() => {
                self.reached(inst.args[0], depth).filter(|n| *n >= 0)
            }
            _ => None,
        }
    }

    /// The bound to which a loop counts, if it has at least one iteration then.
    fn rounds_to(&self, counting: &Loop, depth: usize) -> Option<i128> {
        let to = self.reached(counting.bound, depth)?;
        let is_above = self.defs.get(&counting.bound).is_some_and(|i| {
            i.op == InstOp::Op(Op::Add) && i.args[0] == counting.start && self.number(i.args[1]).is_some_and(|n| n > 0)
        });
        (is_above || self.number(counting.start).is_some_and(|from| from < to)).then_some(to)
    }

    /// Whether a block runs in every iteration of all loops around it, each of which certainly has one.
    fn run(&self, block: Block) -> bool {
        let Some(Some(around)) = self.around.get(&block) else { return false };
        let mut at = block;
        for counter in around {
            let Some(counting) = self.all.get(counter).filter(|l| l.members.contains(&at)) else { return false };
            let is_always = self.tree.meet(at.idx(), counting.latch.idx()) == at.idx();
            if !is_always || self.rounds_to(counting, MAX_DEPTH).is_none() {
                return false;
            }
            at = counting.header;
        }
        self.certain.contains(&at)
    }
}

/// Replaces signed arithmetic on constants that does not fit by its result modulo 2ⁿ.
pub fn wrap_constants(module: &mut Module) {
    for function in &mut module.funcs {
        let mut results: FxHashMap<Value, Value> = FxHashMap::default();
        for b in 0..function.blocks.len() {
            for i in 0..function.blocks[b].insts.len() {
                let inst = &function.blocks[b].insts[i];
                let known = |v: Value| function.as_bits(v);
                let found = arithmetic(&module.types, function, inst, &known);
                let (Some(result), Some((_, bits))) = (inst.result, found) else { continue };
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

//! Compiles a function to a register program.
//!
//! Each value has registers of its own, one for each word. Effects are computed in the block that owns their `mem`, in
//! its order. Other operations are computed where a block first needs them, so that no operation faults that the
//! program would not have executed. A value computed in a dominating block is not computed again.

mod closures;
mod control;
mod promises;

use crate::code::{Code, Entry, EntryIdx, FuncIdx, Function, Inst, Reg};
use crate::externals::Linker;
use crate::fault::{Fault, bug, limitation};
use crate::leaves::{Layout, Leaf};
use crate::scope::{self, Scope};
use nyala_base::Span;
use nyala_ir::{Cont, Effect, Node, Op, Prim, Ty, TyKind, Val, World};
use rustc_hash::FxHashMap;
use std::rc::Rc;

type Result<T> = std::result::Result<T, Box<Fault>>;

struct Compiler<'c, 'w> {
    l: &'c mut Linker<'w>,
    w: &'w World,
    f: Cont,
    func: FuncIdx,
    scope: Scope,
    out: Function,
    code: Code,
    /// Registers of the values that are available in the current block.
    available: FxHashMap<Val, Reg>,
    undo: Vec<(Val, Option<Reg>)>,
    block_params: FxHashMap<Cont, Reg>,
    /// For each local variable, the registers of its words, or the register of its address in memory.
    slots: FxHashMap<Val, Reg>,
    /// By function, the register with a continuation of that function's frame, which has to stay alive.
    frames: FxHashMap<Cont, Reg>,
    pcs: FxHashMap<Cont, u32>,
    /// Instructions whose targets are blocks, to be filled in later.
    fixups: Vec<(usize, usize, Cont)>,
    entries: FxHashMap<Cont, EntryIdx>,
    consts: FxHashMap<u64, u32>,
    layout_idx: FxHashMap<Ty, u32>,
    span: Span,
    /// The last instruction to which others may jump.
    label: usize,
}

/// Compiles one function.
pub fn compile(l: &mut Linker, func: FuncIdx) -> Result<(Function, Code)> {
    let f = l.funcs[func as usize];
    let w = l.program.w;
    let layouts = &mut l.layouts;
    let scope = l.program.scope(f, &mut |ty| layouts.count(ty));
    let out = Function { name: scope::name(w, f), ..Function::default() };
    let mut c = Compiler {
        l,
        w,
        f,
        func,
        scope,
        out,
        code: Code::default(),
        available: FxHashMap::default(),
        undo: Vec::new(),
        block_params: FxHashMap::default(),
        slots: FxHashMap::default(),
        frames: FxHashMap::default(),
        pcs: FxHashMap::default(),
        fixups: Vec::new(),
        entries: FxHashMap::default(),
        consts: FxHashMap::default(),
        layout_idx: FxHashMap::default(),
        span: w.cont(f).origin,
        label: 0,
    };
    c.compile()?;
    Ok((c.out, c.code))
}

impl Compiler<'_, '_> {
    fn layout(&mut self, ty: Ty) -> Result<Rc<Layout>> {
        self.l.layouts.layout(ty)
    }

    fn n_words(&mut self, ty: Ty) -> Result<u32> {
        // The layout's limit holds for pointers to indefinite arrays, too.
        Ok(self.layout(ty)?.leaves.len() as u32)
    }

    /// Index of a layout in the function's table.
    fn layout_index(&mut self, ty: Ty) -> Result<u32> {
        if let Some(&i) = self.layout_idx.get(&ty) {
            return Ok(i);
        }
        let layout = self.layout(ty)?;
        self.code.layouts.push(layout);
        let i = self.code.layouts.len() as u32 - 1;
        self.layout_idx.insert(ty, i);
        Ok(i)
    }

    /// Fresh registers for a value of type `ty`.
    fn alloc(&mut self, ty: Ty) -> Result<Reg> {
        let start = self.out.n_regs;
        let layout = self.layout(ty)?;
        for (i, (leaf, _)) in layout.leaves.iter().enumerate() {
            if *leaf == Leaf::Cn {
                self.out.closures.push(start + i as u32);
            }
        }
        self.out.n_regs += layout.leaves.len() as u32;
        if self.out.n_regs > 1 << 26 {
            return Err(limitation("a function is too large for the interpreter"));
        }
        Ok(start)
    }

    fn emit(&mut self, inst: Inst) {
        // A check is redundant if the next instruction checks the same register itself.
        while self.code.insts.len() > self.label
            && let Some(&Inst::CheckInit { a }) = self.code.insts.last()
            && inst.checked().contains(&Some(a))
        {
            self.code.insts.pop();
            self.code.spans.pop();
        }
        self.code.insts.push(inst);
        self.code.spans.push(self.span);
    }

    fn set(&mut self, v: Val, reg: Reg) {
        let old = self.available.insert(v, reg);
        self.undo.push((v, old));
    }

    fn compile(&mut self) -> Result<()> {
        let w = self.w;
        for &p in w.params(self.f) {
            let reg = self.alloc(w.ty(p))?;
            self.available.insert(p, reg);
        }
        self.out.n_params = self.out.n_regs;
        let captured = self.l.program.captured(self.f);
        for &v in captured.iter() {
            let ty = self.value_ty(v);
            let reg = self.alloc(ty)?;
            self.available.insert(v, reg);
        }
        for &g in self.l.program.frames(self.f).iter() {
            self.frames.insert(g, self.out.n_regs);
            self.out.closures.push(self.out.n_regs);
            self.out.n_regs += 1;
        }
        self.out.n_captured = self.out.n_regs - self.out.n_params;
        let n_params = self.out.n_params;
        self.out.captured_closures =
            self.out.closures.iter().filter(|&&r| r >= n_params).map(|&r| r - n_params).collect();
        if let Some(i) = self.l.program.ret_param(self.f) {
            self.out.ret = self.available.get(&w.param(self.f, i)).copied();
        }
        self.out.release = self.out.n_regs;
        self.out.may_hold_own = self.scope.may_hold_own;
        self.out.closures.push(self.out.release);
        self.out.n_regs += 1;
        for i in 1..self.scope.blocks.len() {
            let k = self.scope.blocks[i];
            let start = self.out.n_regs;
            for &p in w.params(k) {
                self.alloc(w.ty(p))?;
            }
            self.block_params.insert(k, start);
        }
        let places: Vec<Val> = self.scope.places.iter().filter(|(v, p)| **v == p.0).map(|(v, _)| *v).collect();
        let mut places = places;
        places.sort_unstable();
        for slot in places {
            let ty = self.slot_ty(slot)?;
            let reg = self.alloc(ty)?;
            self.slots.insert(slot, reg);
        }
        // The first registers of the frame hold the addresses of its variables in memory.
        for slot in self.scope.memory_slots.clone() {
            let d = self.alloc(w.ty(slot))?;
            self.slots.insert(slot, d);
            if !self.scope.outliving_slots.contains(&slot) {
                self.out.slots.push(d);
            }
            self.constant(d, 0);
        }
        self.walk()?;
        for (at, which, k) in std::mem::take(&mut self.fixups) {
            let pc = *self.pcs.get(&k).ok_or_else(|| bug("a jump to no block"))?;
            self.set_target(at, which, pc);
        }
        for (&k, &entry) in &self.entries {
            let pc = *self.pcs.get(&k).ok_or_else(|| bug("a continuation without code"))?;
            if let Entry::Block { pc: at, .. } = &mut self.l.entries[entry as usize] {
                *at = pc;
            }
            self.out.entries.push(entry);
        }
        Ok(())
    }

    /// Sets a target of the jump or branch at `at`. For a branch, `which` is 0 for the target if the condition holds,
    /// else 1.
    fn set_target(&mut self, at: usize, which: usize, pc: u32) {
        match &mut self.code.insts[at] {
            Inst::Jump { to } => *to = pc,
            inst => inst.branch_targets().into_iter().for_each(|targets| *targets[which] = pc),
        }
    }

    /// The type of a value's words. For a slot or allocation, that of its address.
    fn value_ty(&self, v: Val) -> Ty {
        self.w.ty(v)
    }

    fn slot_ty(&self, slot: Val) -> Result<Ty> {
        let ptr = self.w.types.part(self.w.ty(slot), 1);
        ptr.and_then(|p| self.w.types.pointee(p)).ok_or_else(|| bug("a slot of no type"))
    }

    /// Compiles the blocks in preorder of the dominator tree, so that values computed in dominators are available.
    fn walk(&mut self) -> Result<()> {
        let n = self.scope.blocks.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
        for b in 1..n {
            children[self.scope.idom[b]].push(b);
        }
        let mut work: Vec<(Option<usize>, usize)> = vec![(Some(0), 0)];
        while let Some((block, undo_to)) = work.pop() {
            let Some(b) = block else {
                while self.undo.len() > undo_to
                    && let Some((v, old)) = self.undo.pop()
                {
                    match old {
                        Some(reg) => self.available.insert(v, reg),
                        None => self.available.remove(&v),
                    };
                }
                continue;
            };
            work.push((None, self.undo.len()));
            self.compile_block(self.scope.blocks[b])?;
            work.extend(children[b].iter().rev().map(|&c| (Some(c), 0)));
        }
        Ok(())
    }

    fn compile_block(&mut self, k: Cont) -> Result<()> {
        let w = self.w;
        self.label = self.code.insts.len();
        self.pcs.insert(k, self.label as u32);
        if k != self.f {
            let mut reg = self.block_params[&k];
            for &p in w.params(k) {
                self.set(p, reg);
                reg += self.n_words(w.ty(p))?;
            }
        }
        let ops = self.l.program.nest.ops(k).to_vec();
        for v in ops {
            let Node::Op(op) = w.node(v) else { continue };
            if op.effect() != Effect::Total {
                self.span = w.origin(v);
                self.effect(op, v)?;
            }
        }
        let Some(body) = w.body(k) else { return Err(bug("a block without a body")) };
        self.span = body.origin;
        self.call(body.callee, body.args)
    }

    // Values.

    fn const_index(&mut self, bits: u64) -> u32 {
        if let Some(&i) = self.consts.get(&bits) {
            return i;
        }
        self.code.consts.push(bits);
        let i = self.code.consts.len() as u32 - 1;
        self.consts.insert(bits, i);
        i
    }

    fn constant(&mut self, d: Reg, bits: u64) {
        let index = self.const_index(bits);
        self.emit(Inst::Const { d, index });
    }

    /// The operand below all annotations for the partial evaluator.
    fn strip(&self, mut v: Val) -> Val {
        while matches!(self.w.as_op(v), Some(Op::Hlt | Op::Unfold | Op::Run)) {
            v = self.w.args(v)[0];
        }
        v
    }

    /// The registers of a value, which is computed now if it is not available.
    fn need(&mut self, v: Val) -> Result<Reg> {
        let v = self.strip(v);
        if let Some(&reg) = self.available.get(&v) {
            return Ok(reg);
        }
        let w = self.w;
        let span = self.span;
        let mut work = vec![(v, false)];
        while let Some((v, operands_done)) = work.pop() {
            if self.available.contains_key(&v) {
                continue;
            }
            match w.node(v) {
                Node::Lit(bits) => {
                    let d = self.alloc(w.ty(v))?;
                    self.constant(d, bits);
                    self.set(v, d);
                }
                Node::Undef => {
                    let d = self.alloc(w.ty(v))?;
                    let n = self.n_words(w.ty(v))?;
                    self.emit(Inst::Poison { d, n });
                    self.set(v, d);
                }
                Node::Global(g) => {
                    let address = self.l.global(g)?;
                    let d = self.alloc(w.ty(v))?;
                    self.constant(d, address as u64);
                    self.set(v, d);
                }
                Node::Builtin(b) => return Err(bug(format!("`{}` as a value", b.name()))),
                Node::Param(..) => return Err(bug("a parameter out of scope")),
                Node::Cont(c) if operands_done || !self.l.program.is_func(c) => {
                    let d = self.closure(v, c)?;
                    self.set(v, d);
                }
                Node::Cont(c) => {
                    work.push((v, true));
                    let captured = self.l.program.captured(c);
                    work.extend(captured.iter().map(|&v| (v, false)));
                }
                Node::Op(op) if op.effect() != Effect::Total => return Err(bug("an effect out of scope")),
                Node::Op(Op::Known) => {
                    let d = self.alloc(w.ty(v))?;
                    self.constant(d, 0);
                    self.set(v, d);
                }
                Node::Op(_) if !operands_done => {
                    work.push((v, true));
                    work.extend(self.operands(v).iter().rev().map(|&a| (a, false)));
                }
                Node::Op(op) => {
                    self.span = w.origin(v);
                    let d = self.operation(op, v)?;
                    self.span = span;
                    self.set(v, d);
                }
            }
        }
        self.available.get(&v).copied().ok_or_else(|| bug("a value that is not computed"))
    }

    /// The operands that must be in registers. Literal indices need not be.
    fn operands(&self, v: Val) -> Vec<Val> {
        let w = self.w;
        let args = w.args(v);
        match w.as_op(v) {
            Some(Op::Extract) if w.as_lit(args[1]).is_some() => vec![self.strip(args[0])],
            Some(Op::Insert) if w.as_lit(args[1]).is_some() => vec![self.strip(args[0]), self.strip(args[2])],
            Some(Op::Lea) if w.as_lit(args[1]).is_some() => vec![self.strip(args[0])],
            Some(Op::Add) if self.immediate(v).is_some() => vec![self.strip(args[0])],
            _ => args.iter().map(|&a| self.strip(a)).collect(),
        }
    }

    /// The right operand of an addition if it is a small literal.
    fn immediate(&self, v: Val) -> Option<i32> {
        let is_signed = matches!(self.w.prim(v), Some(Prim::I32 | Prim::I64));
        is_signed.then(|| self.small_literal(*self.w.args(v).get(1)?)).flatten()
    }

    fn small_literal(&self, v: Val) -> Option<i32> {
        i32::try_from(self.w.as_lit(v)? as i64).ok()
    }

    /// The register of an operand that has been computed.
    fn reg(&self, v: Val) -> Result<Reg> {
        self.available.get(&self.strip(v)).copied().ok_or_else(|| bug("an operand that is not computed"))
    }

    fn list(&mut self, words: &[Reg]) -> u32 {
        let at = self.code.lists.len() as u32;
        self.code.lists.push(words.len() as u32);
        self.code.lists.extend_from_slice(words);
        at
    }

    /// Compiles a total operation whose operands have been computed.
    fn operation(&mut self, op: Op, v: Val) -> Result<Reg> {
        let w = self.w;
        let args = w.args(v);
        let ty = w.ty(v);
        let prim = w.types.as_prim(ty);
        match op {
            Op::Extract => return self.extract(v),
            Op::Hlt | Op::Unfold | Op::Run => return self.reg(args[0]),
            _ => {}
        }
        let d = self.alloc(ty)?;
        if let Some((prim, n)) = w.types.as_vector(ty)
            && op.is_lane_wise()
        {
            self.lanes(op, prim, n, d, v)?;
            return Ok(d);
        }
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => {
                let prim = prim.ok_or_else(|| bug("arithmetic of no primitive"))?;
                self.arith(op, prim, d, v)?;
            }
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let prim = w.prim(args[0]).unwrap_or(Prim::U64);
                let (a, b) = (self.reg(args[0])?, self.reg(args[1])?);
                self.emit(Inst::Compare { op, prim, d, a, b });
            }
            Op::Cast => {
                let a = self.reg(args[0])?;
                let (from, to) = w.prim(args[0]).zip(prim).ok_or_else(|| bug("a cast of no primitive"))?;
                self.emit(Inst::Cast { from, to, d, a });
            }
            Op::Bitcast => self.bitcast(d, args[0], ty)?,
            Op::Select => {
                let (cond, a, b) = (self.reg(args[0])?, self.reg(args[1])?, self.reg(args[2])?);
                let n = self.n_words(ty)?;
                self.emit(Inst::Select { d, cond, a, b, n });
            }
            Op::Tuple | Op::Struct | Op::Array => {
                let mut to = d;
                for &a in args {
                    let (s, n) = (self.reg(a)?, self.n_words(w.ty(a))?);
                    self.copy(to, s, n);
                    to += n;
                }
            }
            Op::Splat => {
                let (s, n) = (self.reg(args[0])?, self.n_words(w.ty(args[0]))?);
                let total = self.n_words(ty)?;
                // Copy by doubling, which takes few instructions for many words.
                if total > 0 {
                    self.copy(d, s, n);
                    let mut done = n;
                    while done < total && n > 0 {
                        let more = done.min(total - done);
                        self.emit(Inst::CopyMany { d: d + done, s: d, n: more });
                        done += more;
                    }
                }
            }
            Op::Insert => {
                let total = self.n_words(ty)?;
                let base = self.reg(args[0])?;
                self.copy(d, base, total);
                if let Some(idx) = self.lane_index(args[0], args[1])? {
                    let s = self.reg(args[2])?;
                    self.emit(Inst::SetLane { d, idx, s, n: total });
                    return Ok(d);
                }
                let idx = w.as_lit(args[1]).ok_or_else(|| bug("an index that is no literal"))?;
                let at = self.l.layouts.part_start(ty, idx) as u32;
                let (s, n) = (self.reg(args[2])?, self.n_words(w.ty(args[2]))?);
                self.copy(d + at, s, n);
            }
            Op::Shuffle => {
                let (a, b, idx) = (self.reg(args[0])?, self.reg(args[1])?, self.reg(args[2])?);
                let n = self.n_words(w.ty(args[0]))?;
                for i in 0..self.n_words(ty)? {
                    self.emit(Inst::PickLane { d: d + i, a, b, idx: idx + i, n });
                }
            }
            Op::Bits => {
                let (a, n) = (self.reg(args[0])?, self.n_words(w.ty(args[0]))?);
                let prim = prim.ok_or_else(|| bug("bits of no integer"))?;
                self.emit(Inst::Bits { prim, d, a, n });
            }
            Op::Lea => self.lea(d, v)?,
            Op::Popcount
            | Op::Clz
            | Op::Ctz
            | Op::Pext
            | Op::Pdep
            | Op::Fma
            | nyala_ir::unary_math!()
            | nyala_ir::binary_math!() => {
                let prim = prim.ok_or_else(|| bug("a math function of no primitive"))?;
                let a = self.reg(args[0])?;
                let b = args.get(1).map_or(Ok(a), |&v| self.reg(v))?;
                let c = args.get(2).map_or(Ok(a), |&v| self.reg(v))?;
                self.emit(Inst::Math { op, prim, d, a, b, c });
            }
            Op::Restrict => {
                let a = self.reg(args[0])?;
                self.copy(d, a, 1);
            }
            Op::Aligned => {
                let (a, n) = (self.reg(args[0])?, self.reg(args[1])?);
                self.emit(Inst::Aligned { d, a, n });
            }
            Op::Known => self.constant(d, 0),
            Op::Extract | Op::Hlt | Op::Unfold | Op::Run => {}
            Op::PDiv
            | Op::PRem
            | Op::Load
            | Op::Store
            | Op::Slot
            | Op::Alloc
            | Op::Atomic
            | Op::AtomicLoad
            | Op::AtomicStore
            | Op::Cmpxchg
            | Op::CmpxchgWeak
            | Op::Fence
            | Op::Prefetch
            | Op::WorkItem
            | Op::Pipeline
            | Op::Watch
            | Op::DebugValue
            | Op::Scope => {
                return Err(bug("an effect without order"));
            }
        }
        Ok(d)
    }

    /// Compiles a lane-wise operation on vectors, one lane after the other.
    fn lanes(&mut self, op: Op, prim: Prim, n: u32, d: Reg, v: Val) -> Result<()> {
        let w = self.w;
        let mut operands = Vec::new();
        for &a in w.args(v).iter().filter(|&&a| w.ty(a) != w.types.mem()) {
            let step = w.types.as_vector(w.ty(a)).is_some() as u32;
            operands.push((self.reg(a)?, step, w.lane_prim(a).unwrap_or(prim)));
        }
        let from = operands.first().map_or(prim, |o| o.2);
        for i in 0..n {
            let reg = |at: usize| operands.get(at).or(operands.first()).map_or(d, |&(reg, step, _)| reg + i * step);
            let (d, a, b, c) = (d + i, reg(0), reg(1), reg(2));
            let inst = match op {
                Op::Cast => Inst::Cast { from, to: prim, d, a },
                Op::Select => Inst::Select { d, cond: a, a: b, b: c, n: 1 },
                _ if op.is_comparison() => Inst::Compare { op, prim: from, d, a, b },
                Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::PDiv | Op::PRem => {
                    Inst::Arith { op, prim, d, a, b }
                }
                Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => Inst::Arith { op, prim, d, a, b },
                Op::Popcount | Op::Clz | Op::Ctz | Op::Pext | Op::Pdep => Inst::Math { op, prim, d, a, b, c },
                _ if op.is_math() => Inst::Math { op, prim, d, a, b, c },
                _ => return Err(bug(format!("`{}` in lanes", op.name()))),
            };
            self.emit(inst);
        }
        Ok(())
    }

    /// The register of a vector's index, unless it is a literal in range.
    fn lane_index(&mut self, vector: Val, idx: Val) -> Result<Option<Reg>> {
        let w = self.w;
        let Some((_, n)) = w.types.as_vector(w.ty(vector)) else { return Ok(None) };
        match w.as_lit(idx) {
            Some(i) if i < n.into() => Ok(None),
            Some(i) => {
                let d = self.out.n_regs;
                self.out.n_regs += 1;
                self.constant(d, i);
                Ok(Some(d))
            }
            None => Ok(Some(self.reg(idx)?)),
        }
    }

    fn copy(&mut self, d: Reg, s: Reg, n: u32) {
        match n {
            // Few words are copied one by one, if the order does not matter.
            0..=4 if s + n <= d || d <= s => (0..n).for_each(|i| self.emit(Inst::Copy { d: d + i, s: s + i })),
            n => self.emit(Inst::CopyMany { d, s, n }),
        }
    }

    fn arith(&mut self, op: Op, prim: Prim, d: Reg, v: Val) -> Result<()> {
        let args = self.w.args(v);
        let a = self.reg(args[0])?;
        if op == Op::Add
            && let Some(imm) = self.immediate(v)
        {
            self.emit(if prim == Prim::I32 { Inst::AddI32Imm { d, a, imm } } else { Inst::AddI64Imm { d, a, imm } });
            return Ok(());
        }
        let b = self.reg(args[1])?;
        self.emit(match (op, prim) {
            (Op::Add, Prim::F32) => Inst::AddF32 { d, a, b },
            (Op::Mul, Prim::F32) => Inst::MulF32 { d, a, b },
            (Op::Add, Prim::F64) => Inst::AddF64 { d, a, b },
            (Op::Mul, Prim::F64) => Inst::MulF64 { d, a, b },
            (Op::Sub, Prim::F32) => Inst::SubF32 { d, a, b },
            (Op::Sub, Prim::F64) => Inst::SubF64 { d, a, b },
            (Op::And | Op::Or, Prim::Bool) => Inst::BoolOp { deciding: op == Op::Or, d, a, b },
            (Op::And, _) => Inst::And { d, a, b },
            (Op::Or, _) => Inst::Or { d, a, b },
            (Op::Xor, _) => Inst::Xor { d, a, b },
            (Op::Add, Prim::I32) => Inst::AddI32 { d, a, b },
            (Op::Sub, Prim::I32) => Inst::SubI32 { d, a, b },
            (Op::Mul, Prim::I32) => Inst::MulI32 { d, a, b },
            (Op::Add, Prim::I64) => Inst::AddI64 { d, a, b },
            (Op::Sub, Prim::I64) => Inst::SubI64 { d, a, b },
            (Op::Mul, Prim::I64) => Inst::MulI64 { d, a, b },
            _ => Inst::Arith { op, prim, d, a, b },
        });
        Ok(())
    }

    fn extract(&mut self, v: Val) -> Result<Reg> {
        let w = self.w;
        let aggregate = self.strip(w.args(v)[0]);
        if let Some(idx) = self.lane_index(aggregate, w.args(v)[1])? {
            let d = self.alloc(w.ty(v))?;
            let (a, n) = (self.reg(aggregate)?, self.n_words(w.ty(aggregate))?);
            self.emit(Inst::Lane { d, a, idx, n });
            return Ok(d);
        }
        let idx = w.as_lit(w.args(v)[1]).ok_or_else(|| bug("an index that is no literal"))?;
        let start = self.l.layouts.part_start(w.ty(aggregate), idx) as u32;
        let reg = self.reg(aggregate)? + start;
        // A part that was copied with its aggregate may be uninitialized, but not once it is used as a scalar.
        let copied =
            matches!(w.node(aggregate), Node::Param(..) | Node::Op(Op::Load | Op::Extract | Op::Select | Op::Insert));
        if copied
            && !matches!(
                w.types.kind(w.ty(v)),
                TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..) | TyKind::Vector(..) | TyKind::Mem
            )
        {
            self.emit(Inst::CheckInit { a: reg });
        }
        Ok(reg)
    }

    fn bitcast(&mut self, d: Reg, arg: Val, to: Ty) -> Result<()> {
        let w = self.w;
        let from = w.ty(arg);
        let a = self.reg(arg)?;
        let scalar = |ty: Ty| match w.types.kind(ty) {
            TyKind::Prim(p) => Some(*p),
            TyKind::Ptr { .. } | TyKind::Code => Some(Prim::U64),
            _ => None,
        };
        match (scalar(from), scalar(to)) {
            (Some(from), Some(to)) if from.bits().max(8) == to.bits().max(8) => {
                self.emit(Inst::Renormalize { from, to, d, a });
            }
            _ => {
                let (from, to) = (self.layout_index(from)?, self.layout_index(to)?);
                self.emit(Inst::Reinterpret { d, a, from, to });
            }
        }
        Ok(())
    }

    fn lea(&mut self, d: Reg, v: Val) -> Result<()> {
        let w = self.w;
        let args = w.args(v);
        let a = self.reg(args[0])?;
        let pointee = w.types.pointee(w.ty(args[0])).ok_or_else(|| bug("an address of nothing"))?;
        let too_large = || limitation("a type is too large for the interpreter");
        let elem = match w.types.kind(pointee) {
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => Some(*elem),
            TyKind::Vector(prim, _) => Some(w.types.prim(*prim)),
            _ => None,
        };
        match (w.as_lit(args[1]), elem) {
            (Some(idx), Some(elem)) => {
                let (size, _) = nyala_ir::layout::size_align(&w.types, elem).ok_or_else(too_large)?;
                let offset = self.const_index((idx as i64).wrapping_mul(size as i64) as u64);
                self.emit(Inst::LeaImm { d, a, offset });
            }
            (Some(idx), None) => {
                let offset = nyala_ir::layout::offset(&w.types, pointee, idx).ok_or_else(too_large)?;
                let offset = self.const_index(offset);
                self.emit(Inst::LeaImm { d, a, offset });
            }
            (None, Some(elem)) => {
                let (size, _) = nyala_ir::layout::size_align(&w.types, elem).ok_or_else(too_large)?;
                let size = u32::try_from(size).map_err(|_| too_large())?;
                let b = self.reg(args[1])?;
                self.emit(Inst::Lea { d, a, b, size });
            }
            (None, None) => return Err(bug("an index that is no literal")),
        }
        Ok(())
    }

    // Effects.

    /// The registers of the part of a local variable that an address means, if the variable is kept in registers.
    fn place(&mut self, address: Val) -> Result<Option<Reg>> {
        let Some((slot, path)) = self.scope.places.get(&self.strip(address)) else { return Ok(None) };
        let (slot, path) = (*slot, path.clone());
        let mut ty = self.slot_ty(slot)?;
        let mut reg = self.slots[&slot];
        for idx in path {
            reg += self.l.layouts.part_start(ty, idx) as u32;
            ty = self.w.types.part(ty, idx).ok_or_else(|| bug("no such part"))?;
        }
        Ok(Some(reg))
    }

    /// For the address of a number in an array, if nothing else has computed that address yet: the registers of the
    /// array's address and of the index, and the element size in bytes.
    fn element(&mut self, address: Val, ty: Ty) -> Result<Option<(Reg, Reg, u32)>> {
        let (w, address) = (self.w, self.strip(address));
        let is_number = matches!(w.types.kind(ty), TyKind::Prim(_));
        if !is_number || !w.is_op(address, Op::Lea) || self.available.contains_key(&address) {
            return Ok(None);
        }
        let (array, idx) = (w.args(address)[0], w.args(address)[1]);
        let is_array = w
            .types
            .pointee(w.ty(array))
            .is_some_and(|ty| matches!(w.types.kind(ty), TyKind::Array(..) | TyKind::IndefArray(_)));
        if !is_array || w.as_lit(idx).is_some() || self.scope.places.contains_key(&address) {
            return Ok(None);
        }
        let size = self.layout(ty)?.size as u32;
        Ok(Some((self.need(array)?, self.need(idx)?, size)))
    }

    fn effect(&mut self, op: Op, v: Val) -> Result<()> {
        let w = self.w;
        let args = w.args(v);
        match op {
            Op::PDiv | Op::PRem => {
                let (a, b) = (self.need(args[1])?, self.need(args[2])?);
                let d = self.alloc(w.ty(v))?;
                self.span = w.origin(v);
                if let Some((prim, n)) = w.types.as_vector(w.ty(v)) {
                    self.lanes(op, prim, n, d, v)?;
                } else {
                    let prim = w.prim(v).ok_or_else(|| bug("division of no primitive"))?;
                    self.emit(Inst::Arith { op, prim, d, a, b });
                }
                self.set(v, d);
            }
            Op::Load => {
                let ty = w.ty(v);
                self.restricted(args[1], ty, false)?;
                let place = self.place(args[1])?;
                if let Some((a, b, size)) = self.element(args[1], ty)? {
                    let layout = self.layout(ty)?;
                    let d = self.alloc(ty)?;
                    self.emit(Inst::LoadAt { d, a, b, size, leaf: layout.leaves[0].0 });
                    self.set(v, d);
                    return Ok(());
                }
                let a = if place.is_none() { self.need(args[1])? } else { 0 };
                let d = self.alloc(ty)?;
                let layout = self.layout(ty)?;
                let scalar = match (&layout.leaves[..], w.types.kind(ty)) {
                    ([(leaf, 0)], TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Cn(_) | TyKind::Code) => Some(*leaf),
                    _ => None,
                };
                match (place, scalar) {
                    (Some(s), Some(_)) => self.emit(Inst::CopyChecked { d, s }),
                    (Some(s), None) => self.copy(d, s, layout.leaves.len() as u32),
                    (None, Some(leaf)) => self.emit(Inst::Load { d, a, leaf }),
                    (None, None) => {
                        let layout = self.layout_index(ty)?;
                        self.emit(Inst::LoadMany { d, a, layout });
                    }
                }
                self.set(v, d);
            }
            Op::Store => {
                let value = self.strip(args[2]);
                let ty = w.ty(value);
                self.restricted(args[1], ty, true)?;
                let place = self.place(args[1])?;
                let s = self.need(value)?;
                let layout = self.layout(ty)?;
                if let Some(d) = place {
                    self.copy(d, s, layout.leaves.len() as u32);
                    return Ok(());
                }
                if let Some((a, b, size)) = self.element(args[1], ty)? {
                    self.emit(Inst::StoreAt { a, b, size, s, leaf: layout.leaves[0].0 });
                    return Ok(());
                }
                let a = self.need(args[1])?;
                match &layout.leaves[..] {
                    [(leaf, 0)] if layout.size == leaf.size() => self.emit(Inst::Store { a, s, leaf: *leaf }),
                    _ => {
                        let layout = self.layout_index(ty)?;
                        self.emit(Inst::StoreMany { a, s, layout });
                    }
                }
            }
            // No-ops here: one thread runs at a time, in order, and there are no caches or pipelines.
            Op::Prefetch | Op::Pipeline | Op::Watch | Op::DebugValue => {}
            Op::Fence => self.emit(Inst::Synchronize { a: None, order: 0, reads: false, writes: false }),
            Op::WorkItem => {
                let (what, axis) = (self.need(args[1])?, self.need(args[2])?);
                let d = self.alloc(w.ty(v))?;
                self.emit(Inst::WorkItem { d, what, axis });
                self.set(v, d);
            }
            Op::Scope => {
                let d = self.alloc(w.ty(v))?;
                self.emit(Inst::BeginRestricted { d });
                self.set(v, d);
            }
            Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak => {
                let at = op.writes().map_or(1, |w| w.0);
                let a = self.need(args[at])?;
                let pointee = w.types.pointee(w.ty(args[at])).ok_or_else(|| bug("an address of nothing"))?;
                let layout = self.layout(pointee)?;
                let &[(leaf, _)] = &layout.leaves[..] else { return Err(bug("an atomic operation on parts")) };
                let s = match op.writes() {
                    Some((_, written)) => self.need(args[written])?,
                    None => 0,
                };
                // Orders are literals, but for programs that no other engine takes.
                let order = op.literal_operands().next().and_then(|i| w.as_lit(args[i]));
                let order = order.map_or(7, |order| order as u8);
                let (reads, writes) = (op != Op::AtomicStore, op != Op::AtomicLoad);
                if op == Op::AtomicStore {
                    self.emit(Inst::Synchronize { a: Some(a), order, reads, writes });
                    self.emit(Inst::Store { a, s, leaf });
                    self.emit(Inst::EndAtomic);
                    return Ok(());
                }
                let second = match op {
                    Op::Atomic => self.need(args[1])?,
                    Op::AtomicLoad => 0,
                    _ => self.need(args[2])?,
                };
                let d = self.alloc(w.ty(v))?;
                self.span = w.origin(v);
                self.emit(Inst::Synchronize { a: Some(a), order, reads, writes });
                self.emit(match op {
                    Op::Atomic => Inst::Atomic { d, a, op: second, s, leaf },
                    Op::AtomicLoad => Inst::Load { d, a, leaf },
                    _ => Inst::Cmpxchg { d, a, expected: second, s, leaf },
                });
                self.emit(Inst::EndAtomic);
                self.set(v, d);
            }
            Op::Slot => {
                let ty = self.slot_ty(v)?;
                let d = self.slots[&v];
                if self.scope.places.contains_key(&v) {
                    let n = self.n_words(ty)?;
                    self.emit(Inst::Poison { d, n });
                    return Ok(());
                }
                let layout = self.layout_index(ty)?;
                let outlives = self.scope.outliving_slots.contains(&v);
                self.emit(Inst::Slot { d, layout, outlives });
                self.set(v, d);
            }
            Op::Alloc => {
                let n = self.need(args[1])?;
                let elem = self.slot_ty(v)?;
                let elem = w.types.part(elem, 0).unwrap_or(elem);
                let d = self.alloc(w.ty(v))?;
                let layout = self.layout_index(elem)?;
                self.emit(Inst::Alloc { d, n, layout });
                self.set(v, d);
            }
            _ => return Err(bug(format!("`{}` is no effect", op.name()))),
        }
        Ok(())
    }
}

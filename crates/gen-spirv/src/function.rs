//! A function: its blocks nested in each other, with the merges that SPIR-V asks for. No recursion: what is still to be
//! written is a stack.
//!
//! After a jump to a block that stands elsewhere, control goes to the end of the construct around it, and from there to the
//! end of the next one, until it comes to the block. Where jumps to different blocks come by, the number of the target is in
//! a variable, and each block that stands there tests it.

use crate::flow::Plan;
use crate::module::Emitter;
use crate::{Result, bug};
use nyala_base::{Id, Span};
use nyala_flat::{Func, Function, Inst, InstOp, Linkage, Terminator, Value};
use nyala_ir::Op;
use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{Op as Code, Word};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Constructs are nested no deeper than this: Mesa's llvmpipe is wrong beyond 80 of them.
const MAX_DEPTH: usize = 76;

/// Blocks to which control may be on its way.
type Targets = BTreeSet<usize>;

/// A construct that is open.
struct Scope {
    merge: Word,
    /// For a loop: its number, the label that leads back, and that of the header.
    of_loop: Option<(usize, Word, Word)>,
    /// The targets of those who come to the merge.
    pending: Targets,
}

/// What is still to be written.
enum Work {
    Block(usize),
    /// The n-th edge of a block.
    Edge(usize, usize),
    Label(Word),
    /// The end of a side of a branch.
    EndSide,
    EndBranch,
    EndLoop,
    /// Blocks after the branch of a block, from the n-th on.
    After(usize, usize),
    /// Blocks after a loop.
    AfterLoop(usize, usize),
}

/// State of the emission of one function.
pub(crate) struct FunctionEmitter<'e, 'm> {
    pub e: &'e mut Emitter<'m>,
    pub func: Func,
    pub function: &'m Function,
    /// The place of the instruction that is written.
    pub span: Span,
    plan: Plan,
    blocks: Vec<dr::Block>,
    locals: Vec<Instruction>,
    values: Vec<Option<Word>>,
    /// Variables of values: parameters of blocks, and values that are used far away.
    homes: FxHashMap<Value, (Word, Word)>,
    /// The block of flat code that is written.
    at: usize,
    defined_at: Vec<usize>,
    scopes: Vec<Scope>,
    /// Where control is on its way to at the end of what is written; `None` if it does not come there.
    state: Option<Targets>,
    next: Option<Word>,
    is_next_read: bool,
}

/// Writes a function with a body.
pub(crate) fn emit_function(e: &mut Emitter, func: Func) -> Result<()> {
    let module = e.module;
    let function = module.func(func);
    let plan = Plan::new(function, &e.loops[func.idx()]);
    let n = function.values.len();
    let mut f = FunctionEmitter {
        e,
        func,
        function,
        span: function.span,
        plan,
        blocks: Vec::new(),
        locals: Vec::new(),
        values: vec![None; n],
        homes: FxHashMap::default(),
        at: 0,
        defined_at: vec![usize::MAX; n],
        scopes: Vec::new(),
        state: Some(Targets::new()),
        next: None,
        is_next_read: false,
    };
    f.emit()
}

impl FunctionEmitter<'_, '_> {
    fn emit(&mut self) -> Result<()> {
        let id = self.e.funcs[self.func.idx()];
        let is_kernel = matches!(self.function.linkage, Linkage::Kernel(..));
        let entry = self.e.id();
        self.label(entry);
        let mut parameters = Vec::new();
        let (ret, params) = if is_kernel {
            let params = crate::kernels::arguments(self, &mut parameters)?;
            (self.e.void(), params)
        } else {
            let mut tys = Vec::new();
            for &param in &self.function.blocks[0].params {
                let ty = self.ty(param)?;
                let word = self.e.id();
                self.e.name(word, self.function.name(param));
                parameters.push(Instruction::new(Code::FunctionParameter, Some(ty), Some(word), Vec::new()));
                self.define(param, word)?;
                tys.push(ty);
            }
            (self.return_ty()?, tys)
        };
        self.e.name(id, &self.function.name);
        self.write()?;
        let ty = self.e.function_ty(ret, &params);
        let control = Operand::FunctionControl(rspirv::spirv::FunctionControl::NONE);
        let def = Instruction::new(Code::Function, Some(ret), Some(id), vec![control, Operand::IdRef(ty)]);
        self.tidy_next();
        let first = &mut self.blocks[0].instructions;
        first.splice(0..0, std::mem::take(&mut self.locals));
        let end = Some(Instruction::new(Code::FunctionEnd, None, None, Vec::new()));
        let blocks = std::mem::take(&mut self.blocks);
        self.e.out.functions.push(dr::Function { def: Some(def), end, parameters, blocks });
        Ok(())
    }

    /// The type of the result as a function of SPIR-V returns it.
    fn return_ty(&mut self) -> Result<Word> {
        match self.function.rets.is_empty() {
            true => Ok(self.e.void()),
            false => {
                let ty = self.e.results[self.func.idx()];
                let ty = if let [only] = self.function.rets[..] { only } else { ty };
                self.e.ty(ty, self.function.span)
            }
        }
    }

    /// Drops the variable for targets if nobody reads it.
    fn tidy_next(&mut self) {
        let Some(next) = self.next else { return };
        if self.is_next_read {
            return self.e.name(next, "next");
        }
        self.locals.retain(|inst| inst.result_id != Some(next));
        for block in &mut self.blocks {
            block.instructions.retain(|inst| {
                inst.class.opcode != Code::Store || inst.operands.first() != Some(&Operand::IdRef(next))
            });
        }
    }

    fn write(&mut self) -> Result<()> {
        let mut work = vec![Work::Block(0)];
        while let Some(next) = work.pop() {
            match next {
                Work::Block(b) => self.block(b, &mut work)?,
                Work::Edge(b, n) => self.edge(b, n, &mut work)?,
                Work::Label(label) => {
                    self.label(label);
                    self.state = Some(Targets::new());
                }
                Work::EndSide => self.end_side()?,
                Work::EndBranch => {
                    let scope = self.scopes.pop().ok_or_else(|| bug("the end of no branch"))?;
                    self.merge(scope);
                }
                Work::EndLoop => self.end_loop()?,
                Work::After(b, n) => {
                    if let Some(&item) = self.plan.after[b].get(n) {
                        work.push(Work::After(b, n + 1));
                        self.item(item, &mut work)?;
                    }
                }
                Work::AfterLoop(l, n) => {
                    if let Some(&item) = self.plan.after_loop[l].get(n) {
                        work.push(Work::AfterLoop(l, n + 1));
                        self.item(item, &mut work)?;
                    }
                }
            }
        }
        match self.state {
            None => Ok(()),
            Some(_) => Err(bug(format!("`{}` does not end", self.function.name))),
        }
    }

    /// Opens a construct.
    fn open(&mut self, merge: Word, of_loop: Option<(usize, Word, Word)>, pending: Targets) -> Result<()> {
        if self.scopes.len() >= MAX_DEPTH {
            let what = format!("code with branches and loops nested more than {MAX_DEPTH} deep");
            return Err(self.lacks(&what, "move the inner ones into a function"));
        }
        self.scopes.push(Scope { merge, of_loop, pending });
        Ok(())
    }

    fn block(&mut self, b: usize, work: &mut Vec<Work>) -> Result<()> {
        self.state = Some(Targets::new());
        if let Some(l) = self.plan.header_of[b] {
            let [head, test, back, merge] = [(); 4].map(|()| self.e.id());
            self.branch(head);
            self.label(head);
            let control = Operand::LoopControl(rspirv::spirv::LoopControl::NONE);
            self.effect(Code::LoopMerge, vec![Operand::IdRef(merge), Operand::IdRef(back), control]);
            self.branch(test);
            self.label(test);
            self.open(merge, Some((l, back, head)), Targets::new())?;
            work.extend([Work::AfterLoop(l, 0), Work::EndLoop]);
        }
        self.at = b;
        let function = self.function;
        if b != 0 {
            for &param in &function.blocks[b].params {
                let (home, ty) = self.home(param)?;
                let word = self.op(Code::Load, ty, &[home]);
                self.e.name(word, function.name(param));
                self.define(param, word)?;
            }
        }
        for inst in &function.blocks[b].insts {
            self.inst(inst)?;
        }
        self.at = b;
        work.push(Work::After(b, 0));
        match &function.blocks[b].term {
            Terminator::Jump(_) => work.push(Work::Edge(b, 0)),
            Terminator::Branch { cond, .. } => {
                let cond = self.value(*cond)?;
                let [then, els, merge] = [(); 3].map(|()| self.e.id());
                self.split(cond, then, els, merge);
                self.open(merge, None, Targets::new())?;
                let rest = [Work::EndBranch, Work::EndSide, Work::Edge(b, 1), Work::Label(els)];
                work.extend(rest.into_iter().chain([Work::EndSide, Work::Edge(b, 0), Work::Label(then)]));
            }
            Terminator::Return(args) => self.leave(args)?,
            Terminator::Unreachable => {
                self.effect(Code::Unreachable, Vec::new());
                self.state = None;
            }
            Terminator::TailCall { .. } => return Err(bug("a call in tail position")),
        }
        Ok(())
    }

    /// Returns from the function.
    fn leave(&mut self, args: &[Value]) -> Result<()> {
        let is_kernel = matches!(self.function.linkage, Linkage::Kernel(..));
        match args {
            _ if is_kernel => self.effect(Code::Return, Vec::new()),
            [] => self.effect(Code::Return, Vec::new()),
            [only] => {
                let value = self.value(*only)?;
                self.effect(Code::ReturnValue, vec![Operand::IdRef(value)]);
            }
            all => {
                let mut parts = Vec::new();
                for &part in all {
                    parts.push(self.part(part)?);
                }
                let ty = self.return_ty()?;
                let value = self.op(Code::CompositeConstruct, ty, &parts);
                self.effect(Code::ReturnValue, vec![Operand::IdRef(value)]);
            }
        }
        self.state = None;
        Ok(())
    }

    fn edge(&mut self, b: usize, n: usize, work: &mut Vec<Work>) -> Result<()> {
        let function = self.function;
        let Some(edge) = function.blocks[b].term.edges().nth(n) else { return Err(bug("no such edge")) };
        let to = edge.block.idx();
        self.at = b;
        if self.plan.returns[to] {
            return self.return_by(to, &edge.args);
        }
        let mut moves = Vec::new();
        for (&arg, &param) in edge.args.iter().zip(&function.blocks[to].params) {
            let value = self.value(arg)?;
            moves.push((self.home(param)?.0, value));
        }
        for (home, value) in moves {
            self.store_word(home, value);
        }
        let loops = &self.e.loops[self.func.idx()];
        let innermost = self.scopes.iter().rposition(|s| s.of_loop.is_some());
        let of_loop = innermost.and_then(|s| self.scopes[s].of_loop);
        let is_back = self.plan.header_of[to].is_some_and(|l| loops.contains(l, b));
        if self.plan.inline[to] && !is_back {
            work.push(Work::Block(to));
            return Ok(());
        }
        match (of_loop, innermost) {
            (Some((l, back, _)), _) if is_back && loops.all[l].header == to => {
                self.branch(back);
                self.state = None;
            }
            (Some((l, ..)), Some(scope)) if !loops.contains(l, to) => {
                self.aim(to);
                let scope = &mut self.scopes[scope];
                scope.pending.insert(to);
                let merge = scope.merge;
                self.branch(merge);
                self.state = None;
            }
            _ => {
                self.aim(to);
                self.state = Some(Targets::from([to]));
            }
        }
        Ok(())
    }

    /// Returns with what a block returns that only does so.
    fn return_by(&mut self, to: usize, args: &[Value]) -> Result<()> {
        let block = &self.function.blocks[to];
        let Terminator::Return(results) = &block.term else { return Err(bug("a block that does not return")) };
        let given = |v: &Value| match block.params.iter().position(|p| p == v) {
            Some(i) => args[i],
            None => *v,
        };
        let results: Vec<Value> = results.iter().map(given).collect();
        self.leave(&results)
    }

    /// Stores the number of a target.
    fn aim(&mut self, to: usize) {
        let next = self.next();
        let number = self.e.u32(to as u32);
        self.store_word(next, number);
    }

    fn next(&mut self) -> Word {
        if let Some(next) = self.next {
            return next;
        }
        let ty = self.e.int(32);
        let next = self.local(ty);
        self.next = Some(next);
        next
    }

    /// Whether control is on its way to a block.
    fn is_next(&mut self, to: usize) -> Word {
        let (next, ty, bool_ty) = (self.next(), self.e.int(32), self.e.bool_ty());
        self.is_next_read = true;
        let found = self.op(Code::Load, ty, &[next]);
        let number = self.e.u32(to as u32);
        self.op(Code::IEqual, bool_ty, &[found, number])
    }

    /// A block where ways meet.
    fn item(&mut self, b: usize, work: &mut Vec<Work>) -> Result<()> {
        let Some(mut targets) = self.state.take() else { return Err(bug("a block that nobody reaches")) };
        if !targets.remove(&b) {
            return Err(bug("a block that stands too early or too late"));
        }
        if targets.is_empty() {
            work.push(Work::Block(b));
            return Ok(());
        }
        let cond = self.is_next(b);
        let [here, merge] = [(); 2].map(|()| self.e.id());
        self.split(cond, here, merge, merge);
        self.open(merge, None, targets)?;
        work.extend([Work::EndBranch, Work::EndSide, Work::Block(b), Work::Label(here)]);
        Ok(())
    }

    /// Goes on behind a construct.
    fn merge(&mut self, scope: Scope) {
        self.label(scope.merge);
        if scope.pending.is_empty() {
            self.effect(Code::Unreachable, Vec::new());
            self.state = None;
        } else {
            self.state = Some(scope.pending);
        }
    }

    fn end_side(&mut self) -> Result<()> {
        let Some(targets) = self.state.take() else { return Ok(()) };
        let Some(scope) = self.scopes.last_mut() else { return Err(bug("the end of no branch")) };
        // The larger set takes in the smaller one.
        if scope.pending.len() < targets.len() {
            let smaller = std::mem::replace(&mut scope.pending, targets);
            scope.pending.extend(smaller);
        } else {
            scope.pending.extend(targets);
        }
        let merge = scope.merge;
        self.branch(merge);
        Ok(())
    }

    fn end_loop(&mut self) -> Result<()> {
        let Some(&Scope { of_loop: Some((l, back, head)), merge, .. }) = self.scopes.last() else {
            return Err(bug("the end of no loop"));
        };
        let header = self.e.loops[self.func.idx()].all[l].header;
        if let Some(mut targets) = self.state.take() {
            let goes_on = targets.remove(&header);
            match (goes_on, targets.is_empty()) {
                (true, true) => self.branch(back),
                (false, _) => self.branch(merge),
                (true, false) => {
                    let cond = self.is_next(header);
                    let [again, out] = [(); 2].map(|()| self.e.id());
                    self.split(cond, again, out, out);
                    self.label(again);
                    self.branch(back);
                    self.label(out);
                    self.branch(merge);
                }
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.pending.extend(targets);
            }
        }
        self.label(back);
        self.branch(head);
        let scope = self.scopes.pop().ok_or_else(|| bug("the end of no loop"))?;
        self.merge(scope);
        Ok(())
    }

    /// Begins a block.
    pub fn label(&mut self, id: Word) {
        let label = Instruction::new(Code::Label, None, Some(id), Vec::new());
        self.blocks.push(dr::Block { label: Some(label), instructions: Vec::new() });
    }

    /// Goes on at a label.
    pub fn branch(&mut self, to: Word) {
        self.effect(Code::Branch, vec![Operand::IdRef(to)]);
    }

    /// Goes on at one of two labels; the ways meet at `merge`.
    pub fn split(&mut self, cond: Word, then: Word, els: Word, merge: Word) {
        let control = Operand::SelectionControl(rspirv::spirv::SelectionControl::NONE);
        self.effect(Code::SelectionMerge, vec![Operand::IdRef(merge), control]);
        self.effect(Code::BranchConditional, [cond, then, els].map(Operand::IdRef).to_vec());
    }

    /// Appends an instruction.
    pub fn push(&mut self, inst: Instruction) {
        if let Some(block) = self.blocks.last_mut() {
            block.instructions.push(inst);
        }
    }

    /// An instruction without a result.
    pub fn effect(&mut self, code: Code, operands: Vec<Operand>) {
        self.push(Instruction::new(code, None, None, operands));
    }

    /// An instruction whose operands are results.
    pub fn op(&mut self, code: Code, ty: Word, args: &[Word]) -> Word {
        self.op_with(code, ty, args.iter().map(|&a| Operand::IdRef(a)).collect())
    }

    /// An instruction with a result.
    pub fn op_with(&mut self, code: Code, ty: Word, operands: Vec<Operand>) -> Word {
        let id = self.e.id();
        self.push(Instruction::new(code, Some(ty), Some(id), operands));
        id
    }

    pub fn store_word(&mut self, to: Word, value: Word) {
        self.effect(Code::Store, vec![Operand::IdRef(to), Operand::IdRef(value)]);
    }

    /// A variable of the function, of a type of SPIR-V.
    pub fn local(&mut self, ty: Word) -> Word {
        let class = rspirv::spirv::StorageClass::Function;
        let pointer = self.e.pointer(class, ty);
        let id = self.e.id();
        self.locals.push(Instruction::new(Code::Variable, Some(pointer), Some(id), vec![Operand::StorageClass(class)]));
        id
    }

    /// The variable of a value, and the value's type.
    fn home(&mut self, value: Value) -> Result<(Word, Word)> {
        if let Some(&home) = self.homes.get(&value) {
            return Ok(home);
        }
        let ty = self.ty(value)?;
        let home = (self.local(ty), ty);
        self.homes.insert(value, home);
        Ok(home)
    }

    /// The type of a value in a register.
    pub fn ty(&mut self, value: Value) -> Result<Word> {
        self.e.ty(self.function.ty(value), self.span)
    }

    /// Notes what a value is.
    pub fn define(&mut self, value: Value, word: Word) -> Result<()> {
        self.values[value.idx()] = Some(word);
        self.defined_at[value.idx()] = self.at;
        if self.plan.homeless.contains(&value) {
            let (home, _) = self.home(value)?;
            self.store_word(home, word);
        }
        Ok(())
    }

    /// A value as an operand.
    pub fn value(&mut self, value: Value) -> Result<Word> {
        if let Some(constant) = self.function.as_const(value) {
            return self.constant(value, constant);
        }
        if self.plan.homeless.contains(&value) && self.defined_at[value.idx()] != self.at {
            let (home, ty) = self.home(value)?;
            return Ok(self.op(Code::Load, ty, &[home]));
        }
        self.values[value.idx()]
            .ok_or_else(|| bug(format!("a value of `{}` that is used too early", self.function.name)))
    }

    /// A limitation at the instruction that is written.
    pub fn lacks(&self, what: &str, remedy: &str) -> Box<nyala_base::Diagnostic> {
        self.e.lacks(self.span, what, remedy)
    }

    /// A finding with the place of the instruction, or of the function, if it has none.
    pub fn placed(&self, mut d: Box<nyala_base::Diagnostic>) -> Box<nyala_base::Diagnostic> {
        d.place(self.span);
        d.place(self.function.span);
        d
    }

    fn inst(&mut self, inst: &Inst) -> Result<()> {
        if inst.span != Span::NONE {
            self.span = inst.span;
        }
        let word = match inst.op {
            InstOp::Op(op) => crate::values::operation(self, op, inst)?,
            InstOp::Call(callee) => crate::calls::call(self, callee, inst)?,
            InstOp::Vector(op) => return Err(bug(format!("`{}` in a kernel", op.name()))),
            InstOp::CallIndirect => return Err(bug("a call of a function that is chosen at run time")),
            InstOp::Vectorize(..) | InstOp::Launch(..) => return Err(bug("a launch in a kernel")),
        };
        if let (Some(result), Some(word)) = (inst.result, word) {
            let name = self.function.name(result);
            if !matches!(inst.op, InstOp::Op(Op::Restrict | Op::Aligned | Op::Bitcast)) {
                self.e.name(word, name);
            }
            self.define(result, word)?;
        }
        Ok(())
    }
}

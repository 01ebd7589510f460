//! Compiles the ends of continuations: calls, branches and jumps, and how they treat the frame.

use super::{Compiler, Result};
use crate::code::{EntryIdx, Inst, Leave, NO_ENTRY, Reg};
use crate::fault::bug;
use nyala_ir::{Builtin, Cont, Linkage, Node, Op, Prim, Val};

impl Compiler<'_, '_> {
    pub(super) fn call(&mut self, callee: Val, args: &[Val]) -> Result<()> {
        let w = self.w;
        let callee = self.strip(callee);
        match w.node(callee) {
            Node::Builtin(Builtin::Branch) => self.branch(args[1], args[2], args[3]),
            // Both only concern the partial evaluator.
            Node::Builtin(Builtin::PeInfo | Builtin::StaticAssert) => self.call(args[3], &args[..1]),
            Node::Builtin(Builtin::Limited) if self.w.as_lit(args[2]) == Some(1) => self.call(args[3], &args[..1]),
            Node::Builtin(Builtin::Limited) => {
                let text = self.text(&self.w.text(args[1]));
                self.emit(Inst::Refuse { text, by_all: true });
                Ok(())
            }
            Node::Builtin(Builtin::Unreachable) => {
                self.fail("control comes to a place that cannot be reached");
                Ok(())
            }
            Node::Builtin(b @ (Builtin::Vectorize | Builtin::Launch | Builtin::Parallel)) => {
                let body = b.args().body.ok_or_else(|| bug("a launch of no body"))?;
                let leave = self.leave(args[body], &args[1..])?;
                let words = self.words(&args[1..])?;
                let list = self.list(&words);
                self.emit(Inst::Lanes { builtin: b, list, leave });
                Ok(())
            }
            Node::Builtin(Builtin::Spawn) => self.call(args[2], &[args[0], args[3]]),
            Node::Cont(c) if self.l.program.is_block_of(c, self.f) => self.jump(c, args),
            Node::Cont(c) if self.l.program.is_func(c) => self.call_function(c, args),
            _ => {
                let callee_reg = self.need(callee)?;
                let leave = self.leave(callee, args)?;
                let words = self.words(args)?;
                let list = self.list(&words);
                self.emit(Inst::CallValue { callee: callee_reg, list, leave });
                Ok(())
            }
        }
    }

    fn fail(&mut self, text: &str) {
        let text = self.text(text);
        self.emit(Inst::Fail { text });
    }

    fn text(&mut self, text: &str) -> u32 {
        self.code.texts.push(text.into());
        self.code.texts.len() as u32 - 1
    }

    fn words(&mut self, args: &[Val]) -> Result<Vec<Reg>> {
        let (w, mut words) = (self.w, Vec::new());
        let mut work: Vec<Val> = args.iter().rev().map(|&a| self.strip(a)).collect();
        while let Some(a) = work.pop() {
            // A struct that is not in registers is passed as its parts. There are no more of them than a value may
            // have.
            let n = self.n_words(w.ty(a))?;
            let is_struct = matches!(w.as_op(a), Some(Op::Struct | Op::Tuple));
            if is_struct && !self.available.contains_key(&a) {
                work.extend(w.args(a).iter().rev().map(|&part| self.strip(part)));
                continue;
            }
            if n > 0 {
                let reg = self.need(a)?;
                words.extend(reg..reg + n);
            }
        }
        Ok(words)
    }

    fn call_function(&mut self, c: Cont, args: &[Val]) -> Result<()> {
        if matches!(*self.w.cont(c).linkage, Linkage::Asm(_)) {
            let text = self.text("assembly cannot be interpreted");
            self.emit(Inst::Refuse { text, by_all: false });
            return Ok(());
        }
        let leave = self.leave_of(None, Some(c), args)?;
        if matches!(*self.w.cont(c).linkage, Linkage::Foreign(_)) {
            let words = self.words(args)?;
            let foreign = self.l.foreign(c)?;
            let list = self.list(&words);
            self.emit(Inst::CallForeign { foreign, list, leave });
            return Ok(());
        }
        if self.w.body(c).is_none() {
            self.fail("a function without a body is called");
            return Ok(());
        }
        let (args, then) = self.made_last(c, args)?;
        let mut words = self.words(args)?;
        words.extend(self.captured_words(c)?);
        if c == self.f && leave == Leave::Free {
            self.move_words(words, 0);
            self.emit(Inst::Again { to: 0 });
            return Ok(());
        }
        let func = self.l.func(c);
        let list = self.list(&words);
        self.emit(Inst::Call { func, list, leave, then });
        Ok(())
    }

    /// If the call itself makes its last argument, returns the other arguments and the entry point to make it from.
    /// Such an argument is a continuation of this frame that nothing needed before.
    fn made_last<'a>(&mut self, c: Cont, args: &'a [Val]) -> Result<(&'a [Val], EntryIdx)> {
        let has_more = !self.l.program.captured(c).is_empty() || !self.l.program.frames(c).is_empty();
        if !has_more
            && let Some((&last, args)) = args.split_last()
            && let last = self.strip(last)
            && !self.available.contains_key(&last)
            && let Node::Cont(k) = self.w.node(last)
            && !self.l.program.is_func(k)
        {
            return Ok((args, self.block_entry(k)?));
        }
        Ok((args, NO_ENTRY))
    }

    fn leave(&mut self, callee: Val, args: &[Val]) -> Result<Leave> {
        self.leave_of(Some(callee), None, args)
    }

    /// How a call with these arguments treats the frame.
    fn leave_of(&mut self, callee: Option<Val>, known: Option<Cont>, args: &[Val]) -> Result<Leave> {
        if known.is_some_and(|c| self.l.program.captures_own(self.f, c)) {
            return Ok(Leave::Stay);
        }
        for &a in args.iter().chain(&callee) {
            if self.l.program.mentions_own(self.f, a) {
                return Ok(Leave::Stay);
            }
        }
        let goes_on = match (callee, known) {
            (_, Some(c)) => self.l.program.ret_param(c).is_some(),
            (Some(v), _) => self.l.program.returns(self.w.ty(v)),
            _ => false,
        };
        // A join of calls is an example: unlike a caller, it was given the address in order to use it.
        let is_block = callee.is_some_and(|v| matches!(self.w.node(v), Node::Cont(_)));
        if goes_on || is_block || known.is_some() {
            let derived = std::mem::take(&mut self.scope.derived);
            let mut along = self.l.program.holds_derived(args, &derived);
            along |= self.scope.escaped && (goes_on || is_block);
            if let Some(v) = callee {
                along |= self.l.program.holds_derived(&[v], &derived);
            }
            if let Some(c) = known {
                along |= self.l.program.captured(c).iter().any(|v| derived.contains(v));
            }
            self.scope.derived = derived;
            if along {
                return Ok(if goes_on { Leave::Release } else { Leave::Keep });
            }
        }
        Ok(match self.scope.may_hold_own {
            true => Leave::Forget,
            false if self.scope.memory_slots.is_empty() => Leave::Free,
            false => Leave::FreeSlots,
        })
    }

    fn branch(&mut self, cond: Val, then: Val, els: Val) -> Result<()> {
        let w = self.w;
        let cond = self.strip(cond);
        let (then, els) = (self.strip(then), self.strip(els));
        let comparison = w.as_op(cond).filter(|op| op.is_comparison() && !self.available.contains_key(&cond));
        let (inst, is_negated) = match comparison {
            Some(op) => {
                let span = self.span;
                let inst = self.branch_of(op, w.args(cond)[0], w.args(cond)[1])?;
                self.span = span;
                inst
            }
            None => (Inst::Branch { cond: self.need(cond)?, then: 0, els: 0 }, false),
        };
        let targets = if is_negated { [els, then] } else { [then, els] };
        self.emit(inst);
        let at = self.code.insts.len() - 1;
        for (which, target) in targets.into_iter().enumerate() {
            match w.node(target) {
                Node::Cont(c) if self.l.program.is_block_of(c, self.f) => self.fixups.push((at, which, c)),
                _ => {
                    // Any other target gets a piece of code that calls it. Values computed there are not available
                    // elsewhere.
                    self.label = self.code.insts.len();
                    self.set_target(at, which, self.label as u32);
                    let undo = self.undo.len();
                    self.call(target, &[])?;
                    while self.undo.len() > undo
                        && let Some((v, old)) = self.undo.pop()
                    {
                        match old {
                            Some(reg) => self.available.insert(v, reg),
                            None => self.available.remove(&v),
                        };
                    }
                }
            }
        }
        Ok(())
    }

    /// A branch on a comparison, whose targets are not known yet, and whether its condition is negated.
    fn branch_of(&mut self, op: Op, x: Val, y: Val) -> Result<(Inst, bool)> {
        let prim = self.w.prim(x).unwrap_or(Prim::U64);
        let is_equality = matches!(op, Op::Eq | Op::Ne);
        let a = self.need(x)?;
        let imm = self.small_literal(y).filter(|_| !prim.is_float() && (is_equality || prim.is_signed()));
        let (then, els) = (0, 0);
        Ok(match (op, imm) {
            (Op::Eq | Op::Ne, Some(imm)) => (Inst::BranchEqImm { a, imm, then, els }, op == Op::Ne),
            (Op::Lt | Op::Ge, Some(imm)) => (Inst::BranchLtImm { a, imm, then, els }, op == Op::Ge),
            // `x <= n` is the same as `x < n + 1`.
            (Op::Le | Op::Gt, Some(imm)) if imm < i32::MAX => {
                (Inst::BranchLtImm { a, imm: imm + 1, then, els }, op == Op::Gt)
            }
            _ => {
                let b = self.need(y)?;
                match op {
                    Op::Eq | Op::Ne if !prim.is_float() => (Inst::BranchEq { a, b, then, els }, op == Op::Ne),
                    Op::Lt | Op::Ge if prim.is_signed() => (Inst::BranchLt { a, b, then, els }, op == Op::Ge),
                    Op::Gt | Op::Le if prim.is_signed() => (Inst::BranchLt { a: b, b: a, then, els }, op == Op::Le),
                    _ => (Inst::BranchCompare { op, prim, a, b, then, els }, false),
                }
            }
        })
    }

    /// Moves arguments into a block's parameters and jumps to the block.
    fn jump(&mut self, k: Cont, args: &[Val]) -> Result<()> {
        let words = self.words(args)?;
        let start = *self.block_params.get(&k).ok_or_else(|| bug("a jump to another function"))?;
        self.move_words(words, start);
        self.emit(Inst::Jump { to: 0 });
        let at = self.code.insts.len() - 1;
        self.fixups.push((at, 0, k));
        Ok(())
    }

    /// Moves words, as if simultaneously, to the registers from `start` on.
    fn move_words(&mut self, words: Vec<Reg>, start: Reg) {
        let end = start + words.len() as u32;
        // A parameter that would be read after it was overwritten requires temporary registers.
        let clash = words.iter().enumerate().any(|(i, &s)| s >= start && s < end && (s - start) < i as u32);
        let mut sources = words;
        if clash {
            let temps = self.out.n_regs;
            self.out.n_regs += sources.len() as u32;
            for (i, s) in sources.iter_mut().enumerate() {
                let d = temps + i as u32;
                self.emit(Inst::Copy { d, s: *s });
                *s = d;
            }
        }
        let mut i = 0;
        while i < sources.len() {
            let (d, s) = (start + i as u32, sources[i]);
            let mut n = 1;
            while i + n < sources.len() && sources[i + n] == s + n as u32 {
                n += 1;
            }
            if d != s {
                self.copy(d, s, n as u32);
            }
            i += n;
        }
    }
}

//! Inserts instructions into a function: a block under construction, which reports of faults split into several.

use nyala_base::{Id, Span};
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, Types};

pub struct Code<'a> {
    pub types: &'a mut Types,
    pub function: &'a mut Function,
    // The block under construction.
    pub insts: Vec<Inst>,
    pub current: Block,
    pub span: Span,
}

impl<'a> Code<'a> {
    pub fn new(types: &'a mut Types, function: &'a mut Function) -> Code<'a> {
        Code { types, function, insts: Vec::new(), current: Block(0), span: Span::NONE }
    }

    pub fn push(&mut self, op: InstOp, args: &[Value], result: Option<Value>) {
        self.insts.push(Inst { op, args: args.into(), result, span: self.span, fast: false });
    }

    pub fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let result = self.function.new_value(ty, "");
        self.push(InstOp::Op(op), args, Some(result));
        result
    }

    /// A call; without a result, the value is `()`.
    pub fn call(&mut self, callee: Func, args: &[Value], ret: Option<Ty>) -> Value {
        let ty = ret.unwrap_or_else(|| self.types.unit());
        let result = self.function.new_value(ty, "");
        self.push(InstOp::Call(callee), args, Some(result));
        result
    }

    pub fn literal(&mut self, prim: Prim, bits: u64) -> Value {
        let ty = self.types.prim(prim);
        self.function.constant(Const::Bits(prim.normalize(bits)), ty)
    }

    pub fn cast(&mut self, v: Value, prim: Prim) -> Value {
        let ty = self.types.prim(prim);
        match self.function.ty(v) == ty {
            true => v,
            false => self.op(Op::Cast, &[v], ty),
        }
    }

    /// A part of a tuple.
    pub fn part(&mut self, whole: Value, i: usize, ty: Ty) -> Value {
        let i = self.literal(Prim::I64, i as u64);
        self.op(Op::Extract, &[whole, i], ty)
    }

    pub fn add_block(&mut self, name: &str, term: Terminator) -> Block {
        self.function.blocks.push(BlockData { name: name.into(), params: Vec::new(), insts: Vec::new(), term });
        Block::from_idx(self.function.blocks.len() - 1)
    }

    /// A loop over the indices below `n`, which hands a value from one iteration to the next. Continues behind it, with the last value.
    pub fn counted(&mut self, n: u64, first: Value, body: impl FnOnce(&mut Self, Value, Value) -> Value) -> Value {
        let (i64, bool_ty, ty) = (self.types.i64(), self.types.bool(), self.function.ty(first));
        let (i, state) = (self.function.new_value(i64, "i"), self.function.new_value(ty, ""));
        let (zero, one, n) = (self.literal(Prim::I64, 0), self.literal(Prim::I64, 1), self.literal(Prim::I64, n));
        let edge = |block: Block, args: &[Value]| Edge { block, args: args.to_vec() };
        let header = self.add_block("loop", Terminator::Unreachable);
        let start = &mut self.function.blocks[self.current.idx()];
        let old = std::mem::replace(&mut start.term, Terminator::Jump(edge(header, &[zero, first])));
        start.insts = std::mem::take(&mut self.insts);
        let next = self.add_block("", old);
        let inside = self.add_block("", Terminator::Unreachable);
        let cond = self.op(Op::Lt, &[i, n], bool_ty);
        let block = &mut self.function.blocks[header.idx()];
        (block.params, block.insts) = (vec![i, state], std::mem::take(&mut self.insts));
        block.term = Terminator::Branch { cond, then: edge(inside, &[]), els: edge(next, &[]) };
        self.current = inside;
        let last = body(self, i, state);
        let more = self.op(Op::Add, &[i, one], i64);
        let end = &mut self.function.blocks[self.current.idx()];
        end.insts = std::mem::take(&mut self.insts);
        end.term = Terminator::Jump(edge(header, &[more, last]));
        self.current = next;
        state
    }

    /// Begins the instructions that report a fault. Returns the instructions of the block so far.
    pub fn begin_report(&mut self) -> Vec<Inst> {
        std::mem::take(&mut self.insts)
    }

    /// Continues if a condition holds; otherwise runs the instructions since `begin_report`.
    pub fn end_report(&mut self, holds: Value, before: Vec<Inst>) {
        let start = self.current;
        let fail = self.add_block("fail", Terminator::Unreachable);
        self.function.blocks[fail.idx()].insts = std::mem::take(&mut self.insts);
        let old = std::mem::replace(&mut self.function.blocks[start.idx()].term, Terminator::Unreachable);
        let next = self.add_block("", old);
        let edge = |block: Block| Edge { block, args: Vec::new() };
        let block = &mut self.function.blocks[start.idx()];
        (block.insts, block.term) = (before, Terminator::Branch { cond: holds, then: edge(next), els: edge(fail) });
        self.current = next;
    }
}

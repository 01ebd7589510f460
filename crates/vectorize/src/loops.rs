//! Expands `vectorize` instructions to loops.
//!
//! ```text
//! vectorize[8] body(lo, hi, x)     while i != end { call body.lanes(i, x); i += 8 }
//!                                  if rest != 0 { call body.masked(end, x, lt(0 1 2 …, rest)) }
//! ```
//!
//! where `rest` is the remainder of `hi - lo` divided by 8, and `end = hi - rest`. There is no rest if an alignment
//! promises so, and no loop if the bounds are known to be 8 apart.

use crate::shapes::Shape;
use crate::versions::Versions;
use crate::widen::unsigned;
use nyala_base::{Id, Span};
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, Types};

/// Appends instructions to the current block.
struct Writer<'a> {
    types: &'a mut Types,
    function: &'a mut Function,
    cur: Block,
    span: Span,
}

impl Writer<'_> {
    fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let result = self.function.new_value(ty, "");
        let inst = Inst {
            op: InstOp::Op(op),
            args: Args::from_slice(args),
            result: Some(result),
            span: self.span,
            fast: false,
        };
        self.function.blocks[self.cur.idx()].insts.push(inst);
        result
    }

    fn call(&mut self, f: Func, args: &[Value]) {
        let ty = self.types.unit();
        let result = self.function.new_value(ty, "");
        let inst = Inst {
            op: InstOp::Call(f),
            args: Args::from_slice(args),
            result: Some(result),
            span: self.span,
            fast: false,
        };
        self.function.blocks[self.cur.idx()].insts.push(inst);
    }

    fn block(&mut self, name: &str, params: &[Ty]) -> Block {
        let params = params.iter().map(|&ty| self.function.new_value(ty, "i")).collect();
        let insts = Vec::new();
        self.function.blocks.push(BlockData { name: name.into(), params, insts, term: Terminator::Unreachable });
        Block::from_idx(self.function.blocks.len() - 1)
    }

    fn jump(&mut self, block: Block, args: &[Value]) {
        self.function.blocks[self.cur.idx()].term = Terminator::Jump(Edge { block, args: args.to_vec() });
    }

    fn branch(&mut self, cond: Value, (then, args): (Block, &[Value]), els: Block) {
        let then = Edge { block: then, args: args.to_vec() };
        let els = Edge { block: els, args: Vec::new() };
        self.function.blocks[self.cur.idx()].term = Terminator::Branch { cond, then, els };
    }

    fn literal(&mut self, prim: Prim, bits: u64) -> Value {
        let ty = self.types.prim(prim);
        self.function.constant(Const::Bits(prim.normalize(bits)), ty)
    }

    /// Casts to a number with the other signedness.
    fn cast(&mut self, value: Value, to: Prim) -> Value {
        let ty = self.types.prim(to);
        if self.function.ty(value) == ty { value } else { self.op(Op::Cast, &[value], ty) }
    }
}

/// The first `vectorize` of a function: its block, and its position there.
pub fn find(function: &Function) -> Option<(usize, usize)> {
    let is_loop = |inst: &Inst| matches!(inst.op, InstOp::Vectorize(..));
    let mut blocks = function.blocks.iter().enumerate();
    blocks.find_map(|(b, block)| Some((b, block.insts.iter().position(is_loop)?)))
}

/// Expands all loops of a function.
pub fn expand(versions: &mut Versions, module: &mut Module, func: usize) {
    while let Some((b, at)) = find(&module.funcs[func]) {
        let function = &mut module.funcs[func];
        let mut rest = function.blocks[b].insts.split_off(at);
        let inst = rest.remove(0);
        let InstOp::Vectorize(body, width, align) = inst.op else { return };
        let term = std::mem::replace(&mut function.blocks[b].term, Terminator::Unreachable);
        function.blocks.push(BlockData { name: "after".into(), params: Vec::new(), insts: rest, term });
        let after = Block::from_idx(function.blocks.len() - 1);
        let (lo, hi) = (inst.args[0], inst.args[1]);
        let n_free = inst.args.len() - 2;
        let bounds = (function.as_bits(lo), function.as_bits(hi));
        if width <= 1 {
            let mut w = writer(module, func, b, inst.span);
            plain(&mut w, body, lo, hi, &inst.args[2..], after);
            continue;
        }
        let mut shapes = vec![Shape::Uniform; n_free + 1];
        shapes[0] = Shape::Strided(1);
        // The number of iterations, if it is known.
        let n = match bounds {
            (Some(lo), Some(hi)) => Some((hi as i64).wrapping_sub(lo as i64).max(0) as u64),
            _ => None,
        };
        let whole = n.is_none_or(|n| n >= u64::from(width));
        let whole = whole.then(|| versions.request(module, body, &shapes, false, width, true).0);
        let part = align == 0 && n.is_none_or(|n| !n.is_multiple_of(u64::from(width)));
        let part = part.then(|| versions.request(module, body, &shapes, true, width, true).0);
        let mut w = writer(module, func, b, inst.span);
        if n == Some(u64::from(width))
            && let Some(whole) = whole
        {
            // Without a loop LLVM sees that each call passes the same number, and has constant lanes.
            let args: Vec<Value> = [lo].into_iter().chain(inst.args[2..].iter().copied()).collect();
            w.call(whole, &args);
            w.jump(after, &[]);
            continue;
        }
        let lo = aligned(&mut w, lo, align);
        groups(&mut w, whole, part, width, lo, hi, &inst.args[2..], after);
    }
}

fn writer(module: &mut Module, func: usize, block: usize, span: Span) -> Writer<'_> {
    Writer { types: &mut module.types, function: &mut module.funcs[func], cur: Block::from_idx(block), span }
}

fn plain(w: &mut Writer, body: Func, lo: Value, hi: Value, free: &[Value], after: Block) {
    let (ty, bool) = (w.function.ty(lo), w.types.bool());
    let prim = w.types.as_prim(ty).unwrap_or(Prim::I32);
    let (head, inner) = (w.block("head", &[ty]), w.block("body", &[]));
    w.jump(head, &[lo]);
    w.cur = head;
    let i = w.function.blocks[head.idx()].params[0];
    let more = w.op(Op::Lt, &[i, hi], bool);
    w.branch(more, (inner, &[]), after);
    w.cur = inner;
    let mut args = vec![i];
    args.extend_from_slice(free);
    w.call(body, &args);
    let one = w.literal(prim, 1);
    let next = w.op(Op::Add, &[i, one], ty);
    w.jump(head, &[next]);
}

/// A number that `align` divides, in a form that LLVM recognizes: with the low bits cleared.
fn aligned(w: &mut Writer, lo: Value, align: u32) -> Value {
    let (ty, low) = (w.function.ty(lo), align & align.wrapping_neg());
    if low <= 1 || w.function.as_const(lo).is_some() {
        return lo;
    }
    let prim = w.types.as_prim(ty).unwrap_or(Prim::I32);
    let mask = w.literal(prim, !u64::from(low - 1));
    w.op(Op::And, &[lo, mask], ty)
}

fn groups(
    w: &mut Writer,
    whole: Option<Func>,
    part: Option<Func>,
    width: u32,
    lo: Value,
    hi: Value,
    free: &[Value],
    after: Block,
) {
    let (ty, bool) = (w.function.ty(lo), w.types.bool());
    let prim = w.types.as_prim(ty).unwrap_or(Prim::I32);
    let counter = unsigned(prim);
    let counter_ty = w.types.prim(counter);
    let some = w.op(Op::Lt, &[lo, hi], bool);
    let begin = w.block("groups", &[]);
    w.branch(some, (begin, &[]), after);
    w.cur = begin;
    // Differences of unsigned numbers do not overflow.
    let (from, to) = (w.cast(lo, counter), w.cast(hi, counter));
    let n = w.op(Op::Sub, &[to, from], counter_ty);
    let rest = if part.is_none() {
        w.literal(counter, 0)
    } else if width.is_power_of_two() {
        let mask = w.literal(counter, u64::from(width) - 1);
        w.op(Op::And, &[n, mask], counter_ty)
    } else {
        let by = w.literal(counter, width.into());
        w.op(Op::Rem, &[n, by], counter_ty)
    };
    let end = w.op(Op::Sub, &[to, rest], counter_ty);
    let end = w.cast(end, prim);
    if let Some(whole) = whole {
        let (head, inner, tail) = (w.block("head", &[ty]), w.block("group", &[]), w.block("tail", &[]));
        w.jump(head, &[lo]);
        w.cur = head;
        let i = w.function.blocks[head.idx()].params[0];
        let more = w.op(Op::Ne, &[i, end], bool);
        w.branch(more, (inner, &[]), tail);
        w.cur = inner;
        let mut args = vec![i];
        args.extend_from_slice(free);
        w.call(whole, &args);
        let step = w.literal(counter, width.into());
        let now = w.cast(i, counter);
        let next = w.op(Op::Add, &[now, step], counter_ty);
        let next = w.cast(next, prim);
        w.jump(head, &[next]);
        w.cur = tail;
    }
    let Some(part) = part else { return w.jump(after, &[]) };
    let zero = w.literal(counter, 0);
    let some = w.op(Op::Ne, &[rest, zero], bool);
    let last = w.block("rest", &[]);
    w.branch(some, (last, &[]), after);
    w.cur = last;
    let u32 = w.types.prim(Prim::U32);
    let n = if counter == Prim::U32 { rest } else { w.op(Op::Cast, &[rest], u32) };
    let lanes_ty = w.types.vector(Prim::U32, width);
    let mask_ty = w.types.vector(Prim::Bool, width);
    let lanes: Vec<Value> = (0..width).map(|k| w.literal(Prim::U32, k.into())).collect();
    let lanes = w.op(Op::Array, &lanes, lanes_ty);
    let n = w.op(Op::Splat, &[n], lanes_ty);
    let mask = w.op(Op::Lt, &[lanes, n], mask_ty);
    let mut args = vec![end];
    args.extend_from_slice(free);
    args.push(mask);
    w.call(part, &args);
    w.jump(after, &[]);
}

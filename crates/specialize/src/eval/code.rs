//! Continuations of the source as the evaluator runs them: operations in order, operands by number. Made when one is
//! entered first.

use super::{Evaluator, machine::Value};
use nyala_base::Span;
use nyala_ir::{Builtin, Cont, Node, Op, Prim, Ty, Val};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A *frame* has the values of the free values, then of the parameters, then of the operations.
pub(super) struct Code {
    pub insts: Vec<Inst>,
    /// Types by place in the frame.
    pub tys: Vec<Ty>,
    pub callee: Operand,
    /// Calls of what is decided here, without a look at values.
    pub target: Target,
    pub args: Vec<Operand>,
    pub arg_tys: Vec<Ty>,
    pub origin: Span,
}

pub(super) struct Inst {
    pub op: Op,
    pub source: Val,
    pub args: Vec<Operand>,
    pub kind: InstKind,
}

#[derive(Clone, Copy)]
pub(super) enum InstKind {
    /// On numbers of one type.
    Arith(Prim),
    Compare(Prim),
    Cast(Prim, Prim),
    Divide(Op, Prim),
    Select,
    Known,
    Other,
}

#[derive(Clone)]
pub(super) enum Operand {
    /// A place of the frame.
    Slot(u32),
    Const(Value, Ty),
    /// A closure of values in the frame.
    Closure(Cont, Rc<[u32]>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Branch,
    /// The callee as it is, or by `@@`.
    Call {
        unfold: bool,
    },
    /// Anything else.
    Other,
}

impl Evaluator<'_> {
    /// The code of a continuation with a body.
    pub(super) fn code(&mut self, k: Cont) -> Option<Rc<Code>> {
        if let Some(code) = &self.codes[k] {
            return Some(code.clone());
        }
        let code = Rc::new(self.compile(k)?);
        self.codes[k] = Some(code.clone());
        Some(code)
    }

    fn compile(&mut self, k: Cont) -> Option<Code> {
        let source = self.source;
        let body = source.body(k)?;
        let facts = self.facts;
        let mut compiler = Compiler { slots: FxHashMap::default(), tys: Vec::new(), insts: Vec::new() };
        for &v in facts.nest.free(k).iter().chain(source.params(k)) {
            compiler.add(v, source.ty(v));
        }
        for &v in facts.nest.ops(k) {
            self.operand(&mut compiler, v);
        }
        let mut callee = body.callee;
        let mut target = Target::Call { unfold: false };
        // Where several continuations use it, `unfold` itself may be what is captured.
        while let (true, Some(&inner)) = (source.is_op(callee, Op::Unfold), source.args(callee).first())
            && (compiler.slots.contains_key(&inner) || !matches!(source.node(inner), Node::Param(..) | Node::Op(_)))
        {
            callee = inner;
            target = Target::Call { unfold: true };
        }
        match source.node(callee) {
            Node::Builtin(Builtin::Branch) => target = Target::Branch,
            Node::Builtin(_) | Node::Op(Op::Run | Op::Hlt) => target = Target::Other,
            Node::Op(Op::Unfold) => target = Target::Other,
            _ => {}
        }
        let callee = self.operand(&mut compiler, if target == Target::Other { body.callee } else { callee });
        let args: Vec<Operand> = body.args.iter().map(|&a| self.operand(&mut compiler, a)).collect();
        let arg_tys = body.args.iter().map(|&a| source.ty(a)).collect();
        let Compiler { tys, insts, .. } = compiler;
        Some(Code { insts, tys, callee, target, args, arg_tys, origin: body.origin })
    }

    /// The operand for a value; operations without a place get one.
    fn operand(&mut self, c: &mut Compiler, root: Val) -> Operand {
        let source = self.source;
        let mut stack = vec![(root, false)];
        while let Some((v, ready)) = stack.pop() {
            let Some(op) = source.as_op(v).filter(|_| !c.slots.contains_key(&v)) else { continue };
            if !ready {
                stack.push((v, true));
                stack.extend(source.args(v).iter().rev().map(|&a| (a, false)));
                continue;
            }
            let args: Vec<Operand> = source.args(v).iter().map(|&a| self.simple_operand(c, a)).collect();
            let prim = |i: usize| source.args(v).get(i).and_then(|&a| source.prim(a));
            let kind = match op {
                Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => {
                    prim(0).map(InstKind::Arith)
                }
                Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => prim(0).map(InstKind::Compare),
                Op::Cast => prim(0).zip(source.prim(v)).map(|(from, to)| InstKind::Cast(from, to)),
                Op::PDiv => prim(1).map(|p| InstKind::Divide(Op::Div, p)),
                Op::PRem => prim(1).map(|p| InstKind::Divide(Op::Rem, p)),
                Op::Select => Some(InstKind::Select),
                Op::Known => Some(InstKind::Known),
                _ => None,
            };
            c.insts.push(Inst { op, source: v, args, kind: kind.unwrap_or(InstKind::Other) });
            c.add(v, source.ty(v));
        }
        self.simple_operand(c, root)
    }

    fn simple_operand(&mut self, c: &Compiler, v: Val) -> Operand {
        if let Some(&slot) = c.slots.get(&v) {
            return Operand::Slot(slot);
        }
        if let Node::Cont(k) = self.source.node(v) {
            let free = self.facts.nest.free(k);
            if !free.is_empty() {
                return Operand::Closure(k, free.iter().filter_map(|f| c.slots.get(f).copied()).collect());
            }
        }
        let value = self.value(v);
        Operand::Const(self.value_of(value), self.source.ty(v))
    }
}

struct Compiler {
    slots: FxHashMap<Val, u32>,
    tys: Vec<Ty>,
    insts: Vec<Inst>,
}

impl Compiler {
    fn add(&mut self, v: Val, ty: Ty) {
        self.slots.insert(v, self.tys.len() as u32);
        self.tys.push(ty);
    }
}

//! Continuations of the source in the form in which the evaluator runs them: operations in order, operands by number.
//! The code of a continuation is made when it is first entered.

use super::call::Rules;
use super::computed::Computable;
use super::repeated::Returns;
use super::{Evaluator, plain::Value};
use crate::memory::MAX_LEAVES;
use nyala_base::Span;
use nyala_ir::{Builtin, Cont, Node, Op, Prim, Ty, TyKind, Val};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::rc::Rc;

/// Structs and tuples with more parts are always nodes of the residual graph.
pub(super) const MAX_PARTS: usize = 64;
/// Limit on the values of a frame that the targets of a branch share.
const MAX_SHARED: usize = 64;

/// The code of a continuation. Its *frame* holds the free values, then the parameters, then the results of operations.
pub(super) struct Code {
    pub cont: Cont,
    pub n_free: usize,
    pub rules: Rules,
    pub insts: Vec<Inst>,
    /// Types by slot of the frame.
    pub tys: Vec<Ty>,
    pub callee: Operand,
    /// The kind of the call, as far as it can be determined without values.
    pub target: Target,
    pub args: Vec<Operand>,
    pub arg_tys: Vec<Ty>,
    pub origin: Span,
    /// The code of a branch's targets, for false and for true, which goes on in the branch's own frame.
    pub targets: [OnceCell<Option<Rc<Code>>>; 2],
    /// Set if the call may be computed as a whole.
    pub computable: Option<Box<Computable>>,
    /// Set if the results of calls may be kept for later ones.
    pub returns: Option<Box<Returns>>,
    /// The slots of values, for the targets of a branch.
    pub slots: FxHashMap<Val, u32>,
}

pub(super) struct Inst {
    pub op: Op,
    pub source: Val,
    pub args: Vec<Operand>,
    pub kind: InstKind,
    /// The operands of an operation that computes with one or two numbers.
    pub numbers: [Number; 2],
}

#[derive(Clone, Copy)]
pub(super) enum Number {
    /// A slot, which may or may not hold a number.
    Slot(u32),
    Lit(u64),
    No,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InstKind {
    /// Arithmetic on numbers of one type.
    Arith(Prim),
    Compare(Prim),
    Cast(Prim, Prim),
    Divide(Op, Prim),
    Select,
    Known,
    /// Makes a struct or tuple.
    Parts(Ty),
    /// Extracts a part of a struct or tuple, at a literal index.
    Part(u32),
    WithPart(u32),
    /// Computes the address of an array element. Has the number of leaves of an element, and the number of elements.
    Element(u32, u64),
    /// Computes the address of a struct's part, which begins at that leaf.
    Field(u32),
    /// Casts `&[T * n]` to `&[T]`.
    Elements,
    /// Loads a struct with that many parts. 0 parts stand for a number or an address.
    Load(u32),
    Store(u32),
    Other,
}

#[derive(Clone)]
pub(super) enum Operand {
    /// A slot of the frame.
    Slot(u32),
    Const(Value, Ty),
    /// A closure that captures these slots of the frame.
    Closure(Cont, Rc<[u32]>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Branch,
    /// A call of the callee, plain or by `@@`.
    Call {
        unfold: bool,
    },
    /// Anything else.
    Other,
}

impl Evaluator<'_> {
    /// The code of a continuation. `None` if it has no body.
    pub(super) fn code(&mut self, k: Cont) -> Option<Rc<Code>> {
        if let Some(code) = &self.cache.codes[k] {
            return Some(code.clone());
        }
        let code = Rc::new(self.compile(k, None)?);
        self.cache.codes[k] = Some(code.clone());
        Some(code)
    }

    /// The code of a branch's target that goes on in the frame of the branch. `None` unless the target is simple and
    /// the frame is small.
    pub(super) fn target_code(&mut self, code: &Code, bit: usize) -> Option<Rc<Code>> {
        let made = code.targets[bit].get_or_init(|| {
            let Operand::Closure(k, _) = code.args[3 - bit] else { return None };
            let is_simple = self.source.cont(k).filter.is_empty() && !self.facts.is_recursive[k];
            let code = (is_simple && code.tys.len() <= MAX_SHARED).then(|| self.compile(k, Some(code)))?;
            code.map(Rc::new)
        });
        made.clone()
    }

    /// Compiles a continuation, in a frame of its own, or in one that extends the frame of `around`.
    fn compile(&mut self, k: Cont, around: Option<&Code>) -> Option<Code> {
        let source = self.source;
        let body = source.body(k)?;
        let facts = self.facts;
        let params = source.params(k);
        let rules = self.rules(k);
        let free = if around.is_some() { &[][..] } else { facts.nest.free(k) };
        let mut compiler = match around {
            Some(around) => Compiler { slots: around.slots.clone(), tys: around.tys.clone(), ..Compiler::default() },
            None => Compiler::default(),
        };
        let ops = facts.nest.ops(k);
        compiler.slots.reserve(free.len() + params.len() + ops.len());
        compiler.tys.reserve_exact(free.len() + params.len() + ops.len());
        compiler.insts.reserve_exact(ops.len());
        for &v in free.iter().chain(params) {
            compiler.add(v, source.ty(v));
        }
        for &v in ops {
            self.operand(&mut compiler, v);
        }
        let mut callee = body.callee;
        let mut target = Target::Call { unfold: false };
        // If several continuations use the `unfold`, its result itself may be what they capture.
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
        let Compiler { mut slots, tys, insts, .. } = compiler;
        if target != Target::Branch {
            slots = FxHashMap::default();
        }
        let n_free = facts.nest.free(k).len();
        let (origin, targets) = (body.origin, Default::default());
        let computable = self.computable(k, &rules);
        let returns = if around.is_some() { None } else { self.returns(k, &rules, &insts) };
        Some(Code {
            cont: k,
            n_free,
            rules,
            insts,
            tys,
            callee,
            target,
            args,
            arg_tys,
            origin,
            targets,
            computable,
            returns,
            slots,
        })
    }

    /// The operand for a value. Operations that have no slot yet are compiled first.
    fn operand(&mut self, c: &mut Compiler, root: Val) -> Operand {
        let source = self.source;
        let mut stack = std::mem::take(&mut c.stack);
        stack.push((root, false));
        while let Some((v, ready)) = stack.pop() {
            // An operation without operands is a constant.
            let is_open = !c.slots.contains_key(&v) && !source.args(v).is_empty();
            let Some(op) = source.as_op(v).filter(|_| is_open) else { continue };
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
                Op::Load => self.contents(source.ty(v)).map(InstKind::Load),
                // Stores that bypass the caches are never pending.
                Op::Store if source.is_fast(v) => None,
                Op::Store => self.contents(source.ty(source.args(v)[2])).map(InstKind::Store),
                _ => self.structure(op, v),
            };
            let number = |at: usize| match args.get(at) {
                Some(Operand::Slot(slot)) => Number::Slot(*slot),
                Some(Operand::Const(Value::Lit(bits), _)) => Number::Lit(*bits),
                _ => Number::No,
            };
            // For divisions, the first operand is memory.
            let first = matches!(kind, Some(InstKind::Divide(..))) as usize;
            let numbers = [number(first), number(first + 1)];
            c.insts.push(Inst { op, source: v, args, kind: kind.unwrap_or(InstKind::Other), numbers });
            c.add(v, source.ty(v));
        }
        c.stack = stack;
        self.simple_operand(c, root)
    }

    /// The number of parts of a struct that has few parts, all of them numbers or addresses; 0 for a number or an
    /// address. `None`: values of other types are nodes.
    fn contents(&self, ty: Ty) -> Option<u32> {
        let types = &self.source.types;
        let is_flat = |ty: Ty| matches!(types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. });
        match types.kind(ty) {
            _ if is_flat(ty) => Some(0),
            TyKind::Struct(_) | TyKind::Tuple(_) => {
                let n = types.n_parts(ty).filter(|n| (1..=MAX_PARTS as u64).contains(n))?;
                (0..n).all(|i| types.part(ty, i).is_some_and(is_flat)).then_some(n as u32)
            }
            _ => None,
        }
    }

    /// The kind of an operation on structs, tuples and addresses.
    fn structure(&mut self, op: Op, v: Val) -> Option<InstKind> {
        let source = self.source;
        let args = source.args(v);
        let idx = args.get(1).and_then(|&a| source.as_lit(a));
        let is_struct = |ty: Ty| matches!(source.types.kind(ty), TyKind::Struct(_) | TyKind::Tuple(_));
        match op {
            Op::Struct | Op::Tuple if (1..=MAX_PARTS).contains(&args.len()) => Some(InstKind::Parts(source.ty(v))),
            Op::Extract if is_struct(source.ty(args[0])) => Some(InstKind::Part(idx? as u32)),
            Op::Insert if is_struct(source.ty(args[0])) => Some(InstKind::WithPart(idx? as u32)),
            Op::Lea => {
                let outer = source.types.pointee(source.ty(args[0]))?;
                match *source.types.kind(outer) {
                    TyKind::Array(elem, _) | TyKind::IndefArray(elem) => {
                        let step = self.cache.shapes.leaves(source, elem);
                        let n = source.types.n_parts(outer).unwrap_or(u64::MAX);
                        (1..MAX_LEAVES).contains(&step).then_some(InstKind::Element(step as u32, n))
                    }
                    _ if is_struct(outer) => {
                        let n =
                            source.types.pointee(source.ty(v)).map_or(0, |part| self.cache.shapes.leaves(source, part));
                        let start = self.cache.shapes.part_start(source, outer, idx?)?;
                        (n > 0 && start < MAX_LEAVES).then_some(InstKind::Field(start as u32))
                    }
                    _ => None,
                }
            }
            Op::Bitcast => {
                let (TyKind::Ptr { pointee: from, space: a }, TyKind::Ptr { pointee: to, space: b }) =
                    (source.types.kind(source.ty(args[0])), source.types.kind(source.ty(v)))
                else {
                    return None;
                };
                match (source.types.kind(*from), source.types.kind(*to)) {
                    (TyKind::Array(from, _), TyKind::IndefArray(to)) if from == to && a == b => {
                        Some(InstKind::Elements)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn simple_operand(&mut self, c: &Compiler, v: Val) -> Operand {
        if let Some(&slot) = c.slots.get(&v) {
            return Operand::Slot(slot);
        }
        if let Node::Cont(k) = self.source.node(v) {
            let free = self.facts.nest.free(k);
            if !free.is_empty() || self.facts.tells_calls[k] {
                return Operand::Closure(k, free.iter().filter_map(|f| c.slots.get(f).copied()).collect());
            }
        }
        let value = self.value(v);
        Operand::Const(self.value_of(value), self.source.ty(v))
    }
}

#[derive(Default)]
struct Compiler {
    slots: FxHashMap<Val, u32>,
    tys: Vec<Ty>,
    insts: Vec<Inst>,
    /// The work stack of `operand`, kept for its allocation; empty between its calls.
    stack: Vec<(Val, bool)>,
}

impl Compiler {
    fn add(&mut self, v: Val, ty: Ty) {
        self.slots.insert(v, self.tys.len() as u32);
        self.tys.push(ty);
    }
}

//! Vector versions of functions: one for each list of shapes of arguments, with and without a mask. A version is
//! declared at its first call and built later, so that recursion terminates.

use crate::notes::Note;
use crate::shapes::{Callees, Shape};
use crate::widen::widen;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::*;
use nyala_ir::{Effect, LaneOp, Op, Prim};
use rustc_hash::FxHashMap;

/// Maximal number of versions of one function; further calls use the one for varying arguments, with a mask.
const MAX_VERSIONS: usize = 8;

/// A declared version.
#[derive(Clone, Debug)]
pub struct Version {
    pub target: Func,
    pub source: Func,
    pub shapes: Vec<Shape>,
    pub masked: bool,
    pub width: u32,
    /// Whether it is the body of a loop, with the number of the iteration as first argument.
    pub is_body: bool,
}

pub struct Versions {
    pub all: Vec<Version>,
    by: FxHashMap<(Func, Vec<Shape>, bool, u32, bool), Func>,
    n_of: FxHashMap<(Func, u32), usize>,
    lane_ops: Vec<Option<LaneOp>>,
    pure: Vec<bool>,
    pub diagnostics: Vec<Diagnostic>,
    /// Notes on the translation, if requested.
    pub notes: Option<Vec<Note>>,
}

impl Callees for Versions {
    fn lane_operation(&self, func: Func) -> Option<LaneOp> {
        self.lane_ops.get(func.idx()).copied().flatten()
    }

    fn is_pure(&self, func: Func) -> bool {
        self.pure.get(func.idx()).copied().unwrap_or(false)
    }
}

impl Versions {
    pub fn new(module: &Module, explain: bool) -> Versions {
        let lane_ops = module.funcs.iter().map(|f| match &f.linkage {
            // The lowering of launches has reported shared memory that is left.
            Linkage::Foreign(symbol) => LaneOp::of_symbol(symbol).map(|(op, _)| op).filter(|op| *op != LaneOp::Shared),
            _ => None,
        });
        let lane_ops: Vec<Option<LaneOp>> = lane_ops.collect();
        Versions {
            all: Vec::new(),
            by: FxHashMap::default(),
            n_of: FxHashMap::default(),
            pure: find_pure(module),
            lane_ops,
            diagnostics: Vec::new(),
            notes: explain.then(Vec::new),
        }
    }

    pub fn lane_operation(&self, func: Func) -> Option<LaneOp> {
        Callees::lane_operation(self, func)
    }

    /// The version of a function for these arguments, or for more general ones; returns it with its shapes.
    pub fn request(
        &mut self,
        module: &mut Module,
        source: Func,
        shapes: &[Shape],
        masked: bool,
        width: u32,
        is_body: bool,
    ) -> (Func, Vec<Shape>) {
        let mut key = (source, shapes.to_vec(), masked, width, is_body);
        if let Some(&target) = self.by.get(&key) {
            return (target, key.1);
        }
        let n = self.n_of.entry((source, width)).or_insert(0);
        *n += 1;
        // The body of a loop has no other calls.
        if *n > MAX_VERSIONS && !is_body {
            key = (source, vec![Shape::Varying; shapes.len()], true, width, false);
            if let Some(&target) = self.by.get(&key) {
                return (target, key.1);
            }
        }
        let function = module.func(source);
        let (name, params, rets) = (function.name.clone(), function.params.clone(), function.rets.clone());
        let mut tys = Vec::with_capacity(params.len() + 1);
        for (&ty, &shape) in params.iter().zip(&key.1) {
            tys.push(if shape == Shape::Varying { widen(&mut module.types, ty, width) } else { ty });
        }
        if key.2 {
            tys.push(module.types.vector(Prim::Bool, width));
        }
        let rets: Vec<nyala_ir::Ty> = rets.into_iter().map(|ty| widen(&mut module.types, ty, width)).collect();
        let suffix = if key.2 { "masked" } else { "lanes" };
        let target = module.declare(&format!("{name}.{suffix}"), Linkage::Internal, &tys, &rets);
        module.funcs[target.idx()].is_body = key.4;
        let shapes = key.1.clone();
        self.all.push(Version { target, source, shapes: shapes.clone(), masked: key.2, width, is_body: key.4 });
        self.by.insert(key, target);
        (target, shapes)
    }

    /// Reports loops with operations across lanes whose number of lanes is unknown.
    pub fn check_widths(&mut self, module: &Module) {
        for inst in module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts) {
            if let InstOp::Vectorize(body, 0, _) = inst.op
                && self.reaches_lane_operation(module, body)
            {
                let message =
                    "lanes of this `vectorize` exchange values, and how many they are is known at run time only";
                let hint = "write a literal, or specialize the enclosing function with `@`";
                self.diagnostics.push(limitation::error(inst.span, message, hint));
            }
        }
    }

    /// Whether a function or one of its callees has operations across lanes; an inner `vectorize` has lanes of its own.
    fn reaches_lane_operation(&self, module: &Module, func: Func) -> bool {
        if self.lane_ops.iter().all(Option::is_none) {
            return false;
        }
        let mut seen = vec![false; module.funcs.len()];
        let mut work = vec![func];
        while let Some(f) = work.pop() {
            if std::mem::replace(&mut seen[f.idx()], true) {
                continue;
            }
            if self.lane_operation(f).is_some_and(|op| op != LaneOp::Barrier) {
                return true;
            }
            let function = module.func(f);
            // A function whose address is taken may be called.
            work.extend(function.values.iter().filter_map(|v| match v.def {
                Def::Const(Const::Func(f) | Const::CFunc(f)) => Some(f),
                _ => None,
            }));
            for block in &function.blocks {
                work.extend(block.insts.iter().filter_map(|inst| match inst.op {
                    InstOp::Call(f) => Some(f),
                    _ => None,
                }));
                if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
                    work.push(f);
                }
            }
        }
        false
    }

    /// Reports a value with so many parts that code for each of them would be too long.
    pub fn too_large(&mut self, span: Span) {
        let message = "a value of more than 1,024 numbers that differs from lane to lane";
        let hint = "pass it by a pointer, and read and write its elements one by one";
        let d = limitation::error(span, message, hint);
        if !self.diagnostics.contains(&d) {
            self.diagnostics.push(d);
        }
    }
}

/// Finds functions that only compute a result: they may read memory, and write their own variables.
fn find_pure(module: &Module) -> Vec<bool> {
    let n = module.funcs.len();
    let mut pure = vec![true; n];
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (i, function) in module.funcs.iter().enumerate() {
        if function.is_foreign() {
            pure[i] = false;
        }
        let mut own: nyala_base::SideTable<Value, bool> = nyala_base::SideTable::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match inst.op {
                InstOp::Op(Op::Slot | Op::Lea | Op::Bitcast) => {
                    let is_own = inst.op == InstOp::Op(Op::Slot) || own[inst.args[0]];
                    if let Some(r) = inst.result {
                        own[r] = is_own;
                    }
                }
                InstOp::Op(Op::Store) => pure[i] &= own[inst.args[0]],
                InstOp::Op(op) => pure[i] &= op.effect() != Effect::Write,
                InstOp::Vector(op) => pure[i] &= op.effect() != Effect::Write,
                InstOp::Call(f) => callers[f.idx()].push(i),
                InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => pure[i] = false,
            }
        }
        for block in &function.blocks {
            match block.term {
                Terminator::TailCall { callee: Callee::Func(f), .. } => callers[f.idx()].push(i),
                Terminator::TailCall { .. } | Terminator::Unreachable => pure[i] = false,
                _ => {}
            }
        }
    }
    let mut work: Vec<usize> = (0..n).filter(|&i| !pure[i]).collect();
    while let Some(i) = work.pop() {
        for &caller in &callers[i] {
            if std::mem::replace(&mut pure[caller], false) {
                work.push(caller);
            }
        }
    }
    pure
}

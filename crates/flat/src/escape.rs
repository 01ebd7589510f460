//! Escape analysis: where the address of a local variable, or of a parameter, may be when its function ends.
//!
//! Local variables whose addresses escape their functions lie on the heap, as environments of closures do
//! ([`keep_variables`]). A variable that a function value captures lives as long as that value; and a function that is
//! left by another continuation than its return may pass on the address of a variable of its own, to code of the same
//! calls in the source. `twice` below began as a function called by `walk`, with the variable alive:
//!
//! ```text
//! cont find(m, x, ret) = walk(m, x, k)
//!   cont walk(m.1, n, ret.1) = branch(m.1, eq(n, 0), then, else)
//!     cont then(m.2) = twice(m.3, p)                          p is the address of a slot of `walk`
//!   cont twice(m.4, self: &T) = … ret(…)                      a block of `find`: `walk` is over when it runs
//! ```
//!
//! An address escapes if it is returned, also through other functions, or stored where it is not known to end with the
//! function. Not found are addresses converted to numbers, and stores by functions that are called as values. Variables
//! on the heap have counts ([`refcount`](mod@crate::refcount)).

use crate::analysis::Cfg;
use crate::data::*;
use nyala_base::{Id, graph};
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// The function of the runtime that makes a variable on the heap, laid out like an environment.
pub(crate) const NEW_VARIABLE: &str = "nyala_variable";

/// Where an address may be at the end of a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Nothing refers to the address any more.
    Ends,
    /// It may be among the results, or in memory that they point to.
    Returned,
    /// It may be in memory that outlives the function.
    Stored,
}

/// Places that hold counted addresses of variables ([`refcount`](mod@crate::refcount)).
#[derive(Default)]
pub(crate) struct Counted {
    /// Parameters of functions.
    pub params: FxHashSet<(Func, usize)>,
    /// Addresses of fields of environments.
    pub fields: FxHashSet<(Func, Value)>,
    /// Addresses of fields of environments in frames, by function, with the environment.
    pub in_frames: FxHashMap<(Func, Value), Value>,
}

/// The question that [`Escapes`] answers about an address.
enum Question {
    /// Whether a variable can lie in its function's frame. Functions that are called as values are assumed to keep
    /// nothing.
    Frame,
    /// Whether a counted address of a variable is given to places only. It counts as stored if memory other than the
    /// function's own, a function that is called as a value, or foreign code may have it.
    Counted(Counted),
    /// Whether an environment can lie in its function's frame: like `Counted`, but the functions given own it while
    /// they run.
    Environment(FxHashSet<Func>),
}

/// Fates of parameters, computed on demand.
pub struct Escapes<'m> {
    module: &'m Module,
    question: Question,
    cfgs: FxHashMap<Func, Cfg>,
    /// The fates found so far.
    params: FxHashMap<(Func, usize), Fate>,
    /// Parameters in the order in which they were asked for.
    asked: Vec<(Func, usize)>,
}

/// Moves variables whose addresses escape their functions to the heap. `variables` is sorted by function.
pub fn keep_variables(module: &mut Module, variables: &[(Func, Value)]) {
    let mut escapes = Escapes::new(module);
    let mut left = Vec::new();
    for group in variables.chunk_by(|a, b| a.0 == b.0) {
        let func = group[0].0;
        let passed = escapes.passed(func, group.iter().map(|v| v.1));
        let some_leave = escapes.fate_of_all(func, &passed) != Fate::Ends;
        let again = escapes.made_again(func, &passed);
        let leaves = |v: &Value| {
            some_leave && escapes.fate_of_all(func, &[*v]) != Fate::Ends
                || again.contains(v) && escapes.outlives_round(func, *v)
        };
        left.extend(passed.into_iter().filter(leaves).map(|v| (func, v)));
    }
    if left.is_empty() {
        return;
    }
    let (unit, i64_ty) = (module.types.unit(), module.types.prim(Prim::I64));
    let (made, layout) = (module.types.ptr(unit), module.types.ptr(i64_ty));
    let runtime = module.declare(NEW_VARIABLE, Linkage::Foreign(NEW_VARIABLE.into()), &[i64_ty, layout], &[made]);
    let mut layouts = FxHashMap::default();
    for (func, variable) in left {
        put_on_heap(module, (func, variable), runtime, &mut layouts);
    }
}

/// Whether a value of this type can contain an address, not behind a pointer.
pub(crate) fn can_hold(types: &Types, ty: Ty) -> bool {
    let mut work = vec![ty];
    while let Some(ty) = work.pop() {
        match types.kind(ty) {
            TyKind::Ptr { .. } | TyKind::Cn(_) => return true,
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Code | TyKind::Mem => {}
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => work.push(*elem),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                work.extend((0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)));
            }
        }
    }
    false
}

/// Notes the memory that an instruction's result points into, if the function itself makes it.
fn note_memory(memory: &mut [Option<Value>], inst: &Inst) {
    if let Some(result) = inst.result {
        memory[result.idx()] = match inst.op {
            InstOp::Op(Op::Slot | Op::Alloc) => Some(result),
            InstOp::Op(Op::Lea | Op::Bitcast) => memory[inst.args[0].idx()],
            _ => None,
        };
    }
}

impl<'m> Escapes<'m> {
    /// Fates of the parameters of a module's functions, none of them found yet.
    pub fn new(module: &'m Module) -> Escapes<'m> {
        let (cfgs, params, asked) = Default::default();
        Escapes { module, question: Question::Frame, cfgs, params, asked }
    }

    pub(crate) fn of_counted(module: &'m Module, counted: Counted) -> Escapes<'m> {
        Escapes { question: Question::Counted(counted), ..Escapes::new(module) }
    }

    /// Asks about environments. `codes`: functions whose callers pass an environment when they call them as values.
    pub(crate) fn of_environments(module: &'m Module, codes: FxHashSet<Func>) -> Escapes<'m> {
        Escapes { question: Question::Environment(codes), ..Escapes::new(module) }
    }

    /// The fate of the argument for the i-th parameter of a function.
    pub fn of_param(&mut self, func: Func, i: usize) -> Fate {
        if let Some(&fate) = self.params.get(&(func, i)) {
            return fate;
        }
        let fate = match self.param(func, i) {
            Some(param) => self.fate_of_all(func, &[param]),
            None => Fate::Ends,
        };
        self.params.insert((func, i), fate);
        fate
    }

    /// The i-th parameter; `None` for foreign functions, which have no body.
    fn param(&self, func: Func, i: usize) -> Option<Value> {
        self.module.func(func).blocks.first()?.params.get(i).copied()
    }

    /// The variables whose addresses are used for more than loads and stores.
    fn passed(&mut self, func: Func, variables: impl Iterator<Item = Value>) -> Vec<Value> {
        let function = self.module.func(func);
        let cfg = self.cfgs.entry(func).or_insert_with(|| Cfg::new(function));
        let mut memory: Vec<Option<Value>> = vec![None; function.values.len()];
        let mut is_passed = vec![false; function.values.len()];
        let mut pass = |memory: &[Option<Value>], v: Value| {
            if let Some(own) = memory[v.idx()] {
                is_passed[own.idx()] = true;
            }
        };
        for block in cfg.rpo.iter().map(|&b| function.block(b)) {
            for inst in &block.insts {
                note_memory(&mut memory, inst);
                match inst.op {
                    InstOp::Op(Op::Load | Op::Lea | Op::Bitcast) => {}
                    InstOp::Op(Op::Store) => pass(&memory, inst.args[1]),
                    _ => inst.args.iter().for_each(|&a| pass(&memory, a)),
                }
            }
            block.term.for_each_use(|v| pass(&memory, v));
        }
        variables.filter(|v| is_passed[v.idx()]).collect()
    }

    /// The fate of all that is derived from the sources. Also computes the fates of the callees' parameters, until a
    /// fixed point: fates only grow.
    fn fate_of_all(&mut self, func: Func, sources: &[Value]) -> Fate {
        if sources.is_empty() {
            return Fate::Ends;
        }
        // Fates of parameters asked for before are final: all that they depend on has been asked for.
        let first = self.asked.len();
        loop {
            let (n, mut is_new) = (self.asked.len(), false);
            let fate = self.flow(func, sources, false).0;
            for at in first..n {
                let (callee, i) = self.asked[at];
                let known = self.params[&(callee, i)];
                if let Some(param) = self.param(callee, i)
                    && known != Fate::Stored
                {
                    // Values that an environment captures are older than the environment.
                    let in_memory = match &self.question {
                        Question::Frame => false,
                        Question::Counted(_) => true,
                        Question::Environment(codes) => {
                            !codes.contains(&callee) || i + 1 < self.module.func(callee).params.len()
                        }
                    };
                    let fate = self.flow(callee, &[param], in_memory).0;
                    is_new |= fate != known;
                    self.params.insert((callee, i), fate);
                }
            }
            if !is_new && self.asked.len() == n {
                return fate;
            }
        }
    }

    /// For each value whether it may be derived from any of the sources. `None` if one is stored, so that any address
    /// may be.
    pub(crate) fn derived(&mut self, func: Func, sources: &[Value]) -> Option<Vec<bool>> {
        match self.fate_of_all(func, sources) {
            Fate::Stored => None,
            _ => Some(self.flow(func, sources, false).1),
        }
    }

    /// For each value whether it may be derived from `base`. `None` if `base` may outlive its function.
    pub(crate) fn derived_if_it_ends(&mut self, func: Func, base: Value) -> Option<Vec<bool>> {
        match self.fate_of_all(func, &[base]) {
            Fate::Ends => Some(self.flow(func, &[base], false).1),
            _ => None,
        }
    }

    /// For each value whether it may be derived from `base`, if nothing refers to `base` when its function ends, also
    /// not by a tail call, whose callee runs without the frame.
    pub(crate) fn derived_in_frame(&mut self, func: Func, base: Value) -> Option<Vec<bool>> {
        let derived = self.derived_if_it_ends(func, base)?;
        let goes_along = |block: &BlockData| match &block.term {
            Terminator::TailCall { callee, args, .. } => {
                let code = match callee {
                    Callee::Indirect(code) => Some(code),
                    Callee::Func(_) => None,
                };
                args.iter().chain(code).any(|v| derived[v.idx()])
            }
            _ => false,
        };
        (!self.module.func(func).blocks.iter().any(goes_along)).then_some(derived)
    }

    /// The variables that are made anew in each iteration of a loop.
    pub(crate) fn made_again(&self, func: Func, variables: &[Value]) -> Vec<Value> {
        let function = self.module.func(func);
        let succs: Vec<Vec<usize>> =
            function.blocks.iter().map(|b| b.term.edges().map(|edge| edge.block.idx()).collect()).collect();
        let in_cycle = graph::in_cycles(&succs, 0);
        let makes = |block: &BlockData, v: &Value| block.insts.iter().any(|inst| inst.result == Some(*v));
        let blocks = function.blocks.iter().enumerate().filter(|(i, _)| in_cycle[*i]);
        let blocks: Vec<&BlockData> = blocks.map(|(_, block)| block).collect();
        variables.iter().copied().filter(|v| blocks.iter().any(|block| makes(block, v))).collect()
    }

    /// Whether something derived from a variable's address is live where the variable is made for the next iteration.
    fn outlives_round(&mut self, func: Func, variable: Value) -> bool {
        let (_, derived) = self.flow(func, &[variable], false);
        let function = self.module.func(func);
        let makes = |block: &BlockData| block.insts.iter().any(|inst| inst.result == Some(variable));
        let Some(made) = function.blocks.iter().position(makes) else { return false };
        let Some(cfg) = self.cfgs.get(&func) else { return true };
        // Liveness, from uses up to definitions.
        let mut live: Vec<FxHashSet<Value>> = vec![FxHashSet::default(); function.blocks.len()];
        let mut work: Vec<(usize, Value)> = Vec::new();
        for (i, block) in function.blocks.iter().enumerate() {
            work.extend(block.insts.iter().flat_map(|inst| &inst.args).map(|&v| (i, v)));
            block.term.for_each_use(|v| work.push((i, v)));
        }
        work.retain(|(_, v)| derived[v.idx()]);
        while let Some((i, v)) = work.pop() {
            let block = &function.blocks[i];
            let is_defined = block.params.contains(&v) || block.insts.iter().any(|inst| inst.result == Some(v));
            if !is_defined && live[i].insert(v) {
                work.extend(cfg.preds[i].iter().map(|p| (p.idx(), v)));
            }
        }
        let params = &function.blocks[made].params;
        live[made].iter().chain(params).any(|&v| v != variable && derived[v.idx()])
    }

    /// The fate of the sources, and for each value whether it may be derived from them or, if `in_memory`, from values
    /// in the memory at these addresses.
    fn flow(&mut self, func: Func, sources: &[Value], mut in_memory: bool) -> (Fate, Vec<bool>) {
        let module = self.module;
        let function = module.func(func);
        let cfg = self.cfgs.entry(func).or_insert_with(|| Cfg::new(function));
        let mut derived = vec![false; function.values.len()];
        sources.iter().for_each(|v| derived[v.idx()] = true);
        let mut memory: Vec<Option<Value>> = vec![None; function.values.len()];
        let (params, asked, question) = (&mut self.params, &mut self.asked, &self.question);
        let is_strict = !matches!(question, Question::Frame);
        let mut of_params = |callee: Func, given: &[usize]| {
            let fates = given.iter().map(|&i| {
                *params.entry((callee, i)).or_insert_with(|| {
                    asked.push((callee, i));
                    if is_strict && may_keep(module, callee) { Fate::Stored } else { Fate::Ends }
                })
            });
            fates.max().unwrap_or(Fate::Ends)
        };
        let given = |derived: &[bool], callee: Func, args: &[Value]| -> Vec<usize> {
            let is_place =
                |i: usize| matches!(question, Question::Counted(counted) if counted.params.contains(&(callee, i)));
            (0..args.len()).filter(|&i| derived[args[i].idx()] && !is_place(i)).collect()
        };
        // Arguments may be kept, except for the last one, the environment.
        let may_be_kept = |derived: &[bool], args: &[Value]| {
            args[..args.len().saturating_sub(is_strict as usize)].iter().any(|a| derived[a.idx()])
        };
        let mut fate = Fate::Ends;
        loop {
            let mut changed = false;
            let mut mark = |derived: &mut Vec<bool>, v: Value| {
                changed |= !derived[v.idx()];
                derived[v.idx()] = true;
            };
            for block in cfg.rpo.iter().map(|&b| function.block(b)) {
                for inst in &block.insts {
                    if !is_strict || inst.op != InstOp::Op(Op::Alloc) {
                        note_memory(&mut memory, inst);
                    }
                    if !inst.args.iter().any(|a| derived[a.idx()]) {
                        continue;
                    }
                    // In flat code these have no `mem` operand.
                    if let InstOp::Op(op) = inst.op
                        && let Some((at, written)) = op.writes()
                        && derived[inst.args[written - 1].idx()]
                        && !matches!(question, Question::Counted(c) if c.fields.contains(&(func, inst.args[at - 1])))
                    {
                        let address = inst.args[at - 1];
                        let own = match question {
                            Question::Counted(counted) => counted.in_frames.get(&(func, address)).copied(),
                            _ => None,
                        };
                        let Some(own) = own.or(memory[address.idx()]) else { return (Fate::Stored, derived) };
                        in_memory = true;
                        mark(&mut derived, own);
                    }
                    let through = match inst.op {
                        InstOp::Call(callee) if is_strict && is_parallel(module, callee) => {
                            match inst.args.get(3).and_then(|&body| function.as_const(body)) {
                                Some(Const::CFunc(body)) => of_params(body, &given(&derived, body, &inst.args[4..])),
                                _ => Fate::Stored,
                            }
                        }
                        InstOp::Call(callee) => of_params(callee, &given(&derived, callee, &inst.args)),
                        // The body has one number instead of the loop's two bounds.
                        InstOp::Vectorize(body, ..) if is_strict => {
                            of_params(body, &given(&derived, body, &inst.args[1..]))
                        }
                        InstOp::CallIndirect if is_strict => match may_be_kept(&derived, &inst.args) {
                            true => Fate::Stored,
                            false => Fate::Ends,
                        },
                        InstOp::Op(Op::Tuple)
                            if let Some(Const::Func(code)) = function.as_const(inst.args[0])
                                && matches!(question, Question::Environment(codes) if codes.contains(&code)) =>
                        {
                            match module.func(code).params.len().checked_sub(1).map(|i| of_params(code, &[i])) {
                                Some(Fate::Ends) => Fate::Returned,
                                _ => Fate::Stored,
                            }
                        }
                        InstOp::Op(Op::Load) if !in_memory => Fate::Ends,
                        _ => Fate::Returned,
                    };
                    if through == Fate::Stored {
                        return (Fate::Stored, derived);
                    }
                    if let Some(result) = inst.result
                        && through == Fate::Returned
                        && can_hold(&module.types, function.ty(result))
                    {
                        mark(&mut derived, result);
                    }
                }
                let found = match &block.term {
                    Terminator::Return(values) if values.iter().any(|v| derived[v.idx()]) => Fate::Returned,
                    Terminator::TailCall { callee: Callee::Func(callee), args, .. } => {
                        of_params(*callee, &given(&derived, *callee, args))
                    }
                    Terminator::TailCall { callee: Callee::Indirect(_), args, .. } if may_be_kept(&derived, args) => {
                        Fate::Returned
                    }
                    _ => Fate::Ends,
                };
                fate = fate.max(found);
                for edge in block.term.edges() {
                    for (&param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                        if derived[arg.idx()] {
                            mark(&mut derived, param);
                        }
                    }
                }
            }
            if !changed {
                return (fate, derived);
            }
        }
    }
}

fn is_parallel(module: &Module, callee: Func) -> bool {
    module.func(callee).symbol() == Some("nyala_parallel")
}

/// Whether a function may keep addresses: it has no body, and is not one of the runtime's, which keep none.
fn may_keep(module: &Module, callee: Func) -> bool {
    let function = module.func(callee);
    function.blocks.is_empty() && !function.symbol().is_some_and(|symbol| symbol.starts_with("nyala_"))
}

/// Makes the runtime allocate a variable. `layouts`: descriptions of such variables, by alignment.
fn put_on_heap(
    module: &mut Module,
    (func, variable): (Func, Value),
    runtime: Func,
    layouts: &mut FxHashMap<u64, GlobalId>,
) {
    let ty = module.func(func).ty(variable);
    let Some((size, align)) = module.types.pointee(ty).and_then(|t| layout::size_align(&module.types, t)) else {
        return;
    };
    let i64_ty = module.types.prim(Prim::I64);
    let layout = *layouts.entry(align).or_insert_with(|| {
        let init = Init::Parts(vec![Init::Bits(align), Init::Zero]);
        let ty = module.types.array(i64_ty, 2);
        module.add_global(Global { name: format!("variable.{align}"), ty, mutable: false, space: 0, init })
    });
    let (layout_ty, made_ty) = (module.func(runtime).params[1], module.func(runtime).rets[0]);
    let mut fb = FunctionBuilder::new(module, func);
    let (size, layout) = (fb.literal(Prim::I64, size), fb.function.constant(Const::Global(layout), layout_ty));
    let made = fb.function.new_value(made_ty, "");
    let place = fb.function.blocks.iter_mut().find_map(|block| {
        let at = block.insts.iter().position(|inst| inst.result == Some(variable))?;
        Some((&mut block.insts, at))
    });
    let Some((insts, at)) = place else { return };
    let span = insts[at].span;
    let new = |op, args: &[Value], result| Inst { op, args: args.into(), result: Some(result), span, fast: false };
    insts[at] = new(InstOp::Op(Op::Bitcast), &[made], variable);
    insts.insert(at, new(InstOp::Call(runtime), &[size, layout], made));
}

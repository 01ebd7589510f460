//! The address spaces of a device module: which memory each address lies in. Programs need not say it; the languages of
//! devices need to know.
//!
//! ```text
//! kernel sum(&[f32]) -> ()                       kernel sum(&[1][f32]) -> ()
//! entry(a):                                      entry(a):
//!   s: &[3][f32] = call nyala_block_shared(…)      s: &[3][f32] = call nyala_block_shared(…)
//!   x: f32 = call first(a)                         x: f32 = call first(a)
//!   y: f32 = call first(s)                         y: f32 = call first.1(s)
//! func first(&[f32]) -> (f32)                    func first(&[1][f32]) -> (f32)
//!                                                func first.1(&[3][f32]) -> (f32)
//! ```
//!
//! - What a kernel takes, and every address in memory, is global (1), unless its type says otherwise. Variables are private
//!   (5), what a block reserves is shared (3), immutable statics are constant (4).
//! - Addresses that are derived, chosen or passed keep their space. A function has a copy for each combination of spaces
//!   that it is called with.
//! - Afterwards every value that is an address has its space in its type. An address in memory, or in an aggregate, keeps
//!   the space 0, and the eight bytes of the host; `bitcast` stands where one becomes the other.
//! - Addresses of two spaces that meet in one value are an error. Devices with generic addresses, such as NVIDIA's, do
//!   without all this: there addresses keep the types that the program gives them.

use super::refuse;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};

/// Memory of the device.
pub const GLOBAL: u8 = 1;
/// Memory of a block.
pub const SHARED: u8 = 3;
/// Memory that nobody writes.
pub const CONSTANT: u8 = 4;
/// Memory of a work item.
pub const PRIVATE: u8 = 5;

/// Limit on the copies of functions for combinations of spaces.
const MAX_INSTANCES: usize = 10_000;

/// The space of a value: nothing known yet, or the space of the addresses in it.
type Space = Option<u8>;

/// A function with the spaces of its parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    func: Func,
    params: Vec<Space>,
}

#[derive(Default)]
struct Instance {
    spaces: Vec<Space>,
    ret: Space,
    /// Instances that call this one.
    callers: FxHashSet<usize>,
    /// For each call, by block and instruction, the instance. A call in tail position comes after all instructions.
    calls: FxHashMap<(usize, usize), usize>,
}

/// Puts statics into the space `space`, unless they have one.
pub fn place_statics(module: &mut Module, space: u8) {
    for global in module.globals.iter_mut().filter(|global| global.space == 0) {
        global.space = space;
    }
}

/// Gives all addresses of a device module their spaces. Statics lie in the space `statics`.
///
/// # Errors
/// In the diagnostics: addresses of different spaces meet.
pub fn infer_spaces(module: &mut Module, statics: u8) -> Vec<Diagnostic> {
    place_statics(module, statics);
    let mut inference = Inference {
        module,
        keys: Vec::new(),
        known: FxHashMap::default(),
        instances: Vec::new(),
        conflicts: Vec::new(),
    };
    let kernels: Vec<Func> = (0..inference.module.funcs.len())
        .map(Func::from_idx)
        .filter(|&f| matches!(inference.module.func(f).linkage, Linkage::Kernel(..)))
        .collect();
    let mut work = Vec::new();
    for kernel in kernels {
        let types = &inference.module.types;
        let params =
            inference.module.func(kernel).params.iter().map(|&ty| has_address(types, ty).then(|| declared(types, ty)));
        let params = params.map(|space| space.map(|s| if s == 0 { GLOBAL } else { s })).collect();
        work.push(inference.instance(Key { func: kernel, params }, None).0);
    }
    while let Some(i) = work.pop() {
        inference.analyze(i, &mut work);
        if inference.keys.len() > MAX_INSTANCES {
            let message =
                format!("kernels need more than {MAX_INSTANCES} copies of functions for memory of different kinds");
            return vec![report(inference.module.func(inference.keys[i].func).span, &message)];
        }
    }
    if !inference.conflicts.is_empty() {
        let mut seen = FxHashSet::default();
        return inference
            .conflicts
            .into_iter()
            .filter(|c| seen.insert((c.0.lo, c.1.clone())))
            .map(|c| report(c.0, &c.1))
            .collect();
    }
    let Inference { keys, instances, .. } = inference;
    rewrite(module, &keys, &instances);
    Vec::new()
}

fn report(span: Span, what: &str) -> Diagnostic {
    let hint = "keep addresses of device memory, of memory of the block, and of variables in values of their own";
    *refuse(span, what, hint)
}

/// The name of a space, for messages.
fn name(space: u8) -> &'static str {
    match space {
        GLOBAL => "device memory",
        2 => "texture memory",
        SHARED => "memory of the block",
        CONSTANT => "constant memory",
        PRIVATE => "a variable of the work item",
        _ => "memory of another kind",
    }
}

/// The space that a type says; 0 if none.
fn declared(types: &Types, ty: Ty) -> u8 {
    match types.kind(ty) {
        TyKind::Ptr { space, .. } => *space,
        _ => 0,
    }
}

fn is_address(types: &Types, ty: Ty) -> bool {
    matches!(types.kind(ty), TyKind::Ptr { .. })
}

/// Whether a value of a type is an address, or has one as a part.
fn has_address(types: &Types, ty: Ty) -> bool {
    let (mut work, mut seen) = (vec![ty], FxHashSet::default());
    while let Some(ty) = work.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match types.kind(ty) {
            TyKind::Ptr { .. } => return true,
            TyKind::Array(elem, _) => work.push(*elem),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                work.extend((0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)));
            }
            _ => {}
        }
    }
    false
}

struct Inference<'a> {
    module: &'a Module,
    keys: Vec<Key>,
    known: FxHashMap<Key, usize>,
    instances: Vec<Instance>,
    conflicts: Vec<(Span, String)>,
}

impl Inference<'_> {
    /// The instance for a key, and whether it is new.
    fn instance(&mut self, key: Key, caller: Option<usize>) -> (usize, bool) {
        let (i, is_new) = match self.known.get(&key) {
            Some(&i) => (i, false),
            None => {
                let function = self.module.func(key.func);
                let mut spaces = vec![None; function.values.len()];
                for (v, value) in function.values.iter().enumerate() {
                    if let Def::Const(Const::Global(g)) = value.def {
                        spaces[v] = Some(self.module.globals[g.idx()].space);
                    }
                }
                if let Some(entry) = function.blocks.first() {
                    for (param, space) in entry.params.iter().zip(&key.params) {
                        spaces[param.idx()] = *space;
                    }
                }
                self.instances.push(Instance { spaces, ..Instance::default() });
                self.keys.push(key.clone());
                self.known.insert(key, self.instances.len() - 1);
                (self.instances.len() - 1, true)
            }
        };
        self.instances[i].callers.extend(caller);
        (i, is_new)
    }

    /// Notes that a value gets addresses of a space. Returns whether that is new.
    fn join(&mut self, i: usize, value: Value, space: Space, span: Span) -> bool {
        let known = &mut self.instances[i].spaces[value.idx()];
        match (*known, space) {
            (_, None) => false,
            (None, Some(_)) => {
                *known = space;
                true
            }
            (Some(a), Some(b)) if a == b => false,
            (Some(a), Some(b)) => {
                let message = format!(
                    "a value may be the address of {} or of {}, which this device cannot tell apart",
                    name(a),
                    name(b)
                );
                self.conflicts.push((span, message));
                false
            }
        }
    }

    fn analyze(&mut self, i: usize, work: &mut Vec<usize>) {
        let func = self.keys[i].func;
        let function = self.module.func(func);
        let types = &self.module.types;
        // Each round gives a value its space at least.
        let mut changed = true;
        while changed {
            changed = false;
            for (b, block) in function.blocks.iter().enumerate() {
                for (at, inst) in block.insts.iter().enumerate() {
                    let spaces = &self.instances[i].spaces;
                    let of = |n: usize| inst.args.get(n).and_then(|a| spaces[a.idx()]);
                    let of_all = || {
                        inst.args.iter().filter(|a| has_address(types, function.ty(**a))).find_map(|a| spaces[a.idx()])
                    };
                    if let InstOp::Call(callee) = inst.op
                        && !self.module.func(callee).is_foreign()
                    {
                        let ret = self.call(i, (b, at), callee, &inst.args, work);
                        if let Some(result) = inst.result.filter(|r| has_address(types, function.ty(*r))) {
                            changed |= self.join(i, result, ret, inst.span);
                        }
                        continue;
                    }
                    if let InstOp::Op(op) = inst.op
                        && let Some((_, written)) = op.writes()
                        && has_address(types, function.ty(inst.args[written - 1]))
                        && let Some(space) = of(written - 1)
                        && space != GLOBAL
                    {
                        let message = format!(
                            "the address of {} is stored in memory, where this device takes it for one of device memory",
                            name(space)
                        );
                        self.conflicts.push((inst.span, message));
                        continue;
                    }
                    let Some(result) = inst.result.filter(|r| has_address(types, function.ty(*r))) else { continue };
                    let own = declared(types, function.ty(result));
                    let own = (own != 0).then_some(own);
                    let space = match inst.op {
                        InstOp::Op(Op::Slot) => Some(PRIVATE),
                        InstOp::Op(Op::Lea | Op::Aligned | Op::Restrict) => of(0),
                        // A cast of an address to a type with a space does not move it.
                        InstOp::Op(Op::Bitcast) if is_address(types, function.ty(inst.args[0])) => of(0),
                        InstOp::Op(Op::Bitcast) => own.or(Some(GLOBAL)),
                        InstOp::Op(Op::Load | Op::AtomicLoad | Op::Atomic | Op::Cmpxchg | Op::CmpxchgWeak) => {
                            own.or(Some(GLOBAL))
                        }
                        InstOp::Call(f) => match self.module.lane_op(inst) {
                            Some((LaneOp::Shared, _)) => Some(SHARED),
                            Some(_) => of_all(),
                            None => own.or(Some(GLOBAL)).filter(|_| self.module.func(f).is_foreign()),
                        },
                        InstOp::Op(_) | InstOp::Vector(_) => {
                            let all: Vec<Space> = inst
                                .args
                                .iter()
                                .filter(|a| has_address(types, function.ty(**a)))
                                .map(|a| spaces[a.idx()])
                                .collect();
                            for space in all {
                                changed |= self.join(i, result, space, inst.span);
                            }
                            continue;
                        }
                        InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => own,
                    };
                    changed |= self.join(i, result, space, inst.span);
                }
                let span = block.insts.last().map_or(function.span, |inst| inst.span);
                for edge in block.term.edges() {
                    for (arg, param) in edge.args.iter().zip(&function.block(edge.block).params) {
                        let space = self.instances[i].spaces[arg.idx()];
                        changed |= self.join(i, *param, space, span);
                    }
                }
                match &block.term {
                    Terminator::Return(args) => {
                        args.iter().for_each(|arg| self.returns(i, self.instances[i].spaces[arg.idx()], span, work));
                    }
                    Terminator::TailCall { callee: Callee::Func(callee), args, span }
                        if !self.module.func(*callee).is_foreign() =>
                    {
                        let ret = self.call(i, (b, block.insts.len()), *callee, args, work);
                        self.returns(i, ret, *span, work);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Notes that a function returns an address of a space.
    fn returns(&mut self, i: usize, space: Space, span: Span, work: &mut Vec<usize>) {
        match (self.instances[i].ret, space) {
            (None, Some(_)) => {
                self.instances[i].ret = space;
                work.extend(self.instances[i].callers.iter().copied());
            }
            (Some(a), Some(b)) if a != b => {
                let message = format!(
                    "`{}` returns the address of {} or of {}, which this device cannot tell apart",
                    self.module.func(self.keys[i].func).name,
                    name(a),
                    name(b)
                );
                self.conflicts.push((span, message));
            }
            _ => {}
        }
    }

    /// Notes a call, the instruction with this number in its block, or its end. Returns the space of the result.
    fn call(&mut self, i: usize, place: (usize, usize), callee: Func, args: &[Value], work: &mut Vec<usize>) -> Space {
        let function = self.module.func(self.keys[i].func);
        let types = &self.module.types;
        let space = |a: &Value| self.instances[i].spaces[a.idx()].filter(|_| has_address(types, function.ty(*a)));
        let params = args.iter().map(space).collect();
        let (target, is_new) = self.instance(Key { func: callee, params }, Some(i));
        if is_new {
            work.push(target);
        }
        self.instances[i].calls.insert(place, target);
        self.instances[target].ret
    }
}

/// Makes a function of each instance that is called, with the spaces in the types of its addresses.
fn rewrite(module: &mut Module, keys: &[Key], instances: &[Instance]) {
    // Only those that kernels reach in the end: others are calls as they were understood on the way.
    let is_kernel = |i: usize| matches!(module.func(keys[i].func).linkage, Linkage::Kernel(..));
    let mut order: Vec<usize> = (0..keys.len()).filter(|&i| is_kernel(i)).collect();
    let mut used: FxHashSet<usize> = order.iter().copied().collect();
    let mut next = 0;
    while next < order.len() {
        let mut calls: Vec<_> = instances[order[next]].calls.iter().collect();
        calls.sort_unstable();
        order.extend(calls.into_iter().map(|c| *c.1).filter(|&t| used.insert(t)));
        next += 1;
    }
    order.sort_unstable();
    let mut funcs: Vec<Function> = Vec::new();
    let mut foreign: FxHashMap<Func, Func> = FxHashMap::default();
    let new_func: FxHashMap<usize, Func> = order.iter().enumerate().map(|(n, &i)| (i, Func::from_idx(n))).collect();
    let mut rets: FxHashMap<usize, Vec<Ty>> = FxHashMap::default();
    for &i in &order {
        let old = module.func(keys[i].func).rets.clone();
        let new = old.into_iter().map(|ty| with_space(&mut module.types, ty, instances[i].ret)).collect();
        rets.insert(i, new);
    }
    let mut extern_funcs: Vec<Func> = Vec::new();
    for &i in &order {
        let mut function = module.func(keys[i].func).clone();
        let old_ty: Vec<Ty> = function.values.iter().map(|v| v.ty).collect();
        // Constants are looked up by their types: new ones are made instead.
        let mut new_values: FxHashMap<Value, Value> = FxHashMap::default();
        for (v, &old) in old_ty.iter().enumerate() {
            let value = Value::from_idx(v);
            let ty = with_space(&mut module.types, old, instances[i].spaces[v]);
            if ty == old {
                continue;
            }
            match function.as_const(value) {
                Some(constant) => {
                    new_values.insert(value, function.constant(constant, ty));
                }
                None => function.values[v].ty = ty,
            }
        }
        let new = |v: Value| new_values.get(&v).copied().unwrap_or(v);
        let mut new_callee = |place: (usize, usize), callee: Func| match instances[i].calls.get(&place) {
            Some(target) => new_func[target],
            None => *foreign.entry(callee).or_insert_with(|| {
                extern_funcs.push(callee);
                Func::from_idx(order.len() + extern_funcs.len() - 1)
            }),
        };
        for b in 0..function.blocks.len() {
            let insts = std::mem::take(&mut function.blocks[b].insts);
            if let Terminator::TailCall { callee: Callee::Func(callee), .. } = &mut function.blocks[b].term {
                *callee = new_callee((b, insts.len()), *callee);
            }
            let mut made: Vec<Inst> = Vec::with_capacity(insts.len());
            for (at, mut inst) in insts.into_iter().enumerate() {
                inst.args.iter_mut().for_each(|a| *a = new(*a));
                let mut takes_plain = false;
                if let InstOp::Call(callee) = inst.op {
                    // A function of the runtime takes addresses of any memory.
                    takes_plain = module.func(callee).is_foreign() && module.lane_op(&inst).is_none();
                    inst.op = InstOp::Call(new_callee((b, at), callee));
                }
                around_memory(&mut module.types, &mut function, &old_ty, inst, takes_plain, &mut made);
            }
            function.blocks[b].insts = made;
            function.blocks[b].term.map_uses(new);
        }
        function.params = function.blocks[0].params.iter().map(|&p| function.ty(p)).collect();
        function.rets = rets[&i].clone();
        funcs.push(function);
    }
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    for function in &mut funcs {
        let n = numbers.entry(function.name.clone()).or_insert(0);
        *n += 1;
        if *n > 1 && function.linkage == Linkage::Internal {
            function.name = format!("{}.{}", function.name, *n - 1);
        }
    }
    for callee in extern_funcs {
        let mut function = module.func(callee).clone();
        if function.symbol().is_some_and(|symbol| LaneOp::of_symbol(symbol).is_some()) {
            function.params = function.params.iter().map(|&ty| with_space(&mut module.types, ty, None)).collect();
        }
        funcs.push(function);
    }
    module.funcs = funcs;
}

/// The type with a space for its address. Aggregates keep theirs: addresses in them are as in memory.
fn with_space(types: &mut Types, ty: Ty, space: Space) -> Ty {
    match *types.kind(ty) {
        // An address of which nothing is known is null.
        TyKind::Ptr { pointee, .. } => types.intern(TyKind::Ptr { pointee, space: space.unwrap_or(GLOBAL) }),
        _ => ty,
    }
}

/// Puts an instruction into a block, and conversions around it for addresses that come from memory and aggregates, or go
/// there. `takes_plain`: an instruction whose operands have no space.
fn around_memory(
    types: &mut Types,
    function: &mut Function,
    old_ty: &[Ty],
    mut inst: Inst,
    takes_plain: bool,
    made: &mut Vec<Inst>,
) {
    let span = inst.span;
    let convert = |function: &mut Function, from: Value, to: Ty| {
        let result = function.new_value(to, "");
        let args = Args::from_slice(&[from]);
        (result, Inst { op: InstOp::Op(Op::Bitcast), args, result: Some(result), span, fast: false })
    };
    let stored: Vec<usize> = match inst.op {
        InstOp::Op(Op::Tuple | Op::Struct | Op::Array | Op::Splat) => (0..inst.args.len()).collect(),
        InstOp::Op(Op::Insert) => vec![2],
        InstOp::Op(op) => op.writes().map(|(_, written)| written - 1).into_iter().collect(),
        InstOp::Call(_) if takes_plain => (0..inst.args.len()).collect(),
        InstOp::Vector(_) | InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => {
            Vec::new()
        }
    };
    for n in stored {
        let arg = inst.args[n];
        if let TyKind::Ptr { pointee, space } = *types.kind(function.ty(arg))
            && space != 0
        {
            let plain = types.intern(TyKind::Ptr { pointee, space: 0 });
            let (result, conversion) = convert(function, arg, plain);
            made.push(conversion);
            inst.args[n] = result;
        }
    }
    // The type of what is loaded or taken out says the space that the program gave it, if any.
    let loads = matches!(inst.op, InstOp::Op(Op::Load | Op::Extract | Op::AtomicLoad));
    if let (true, Some(result)) = (loads, inst.result)
        && let TyKind::Ptr { pointee, .. } = *types.kind(function.ty(result))
        && result.idx() < old_ty.len()
    {
        let plain = types.intern(TyKind::Ptr { pointee, space: 0 });
        let raw = function.new_value(plain, "");
        inst.result = Some(raw);
        let args = Args::from_slice(&[raw]);
        made.push(inst);
        made.push(Inst { op: InstOp::Op(Op::Bitcast), args, result: Some(result), span, fast: false });
        return;
    }
    made.push(inst);
}

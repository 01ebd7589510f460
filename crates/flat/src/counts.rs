//! Environments of function values are freed: each has a count of the values that hold it. Separate from
//! [scheduling](mod@crate::schedule), which makes the environments, because counts follow from liveness in finished code.
//!
//! A *counted* value is a function value, or a tuple, struct or array of at most [`MAX_LEAVES`] of them; larger ones are
//! treated as memory. Every counted value holds its environments from its definition on; its last use, or the edge behind
//! which nobody uses it, ends that:
//!
//! * A call *consumes* its arguments, and so do `return`, jumps, tail calls and stores: the count goes over to the callee,
//!   the block's parameter, or the memory. A value that is used again afterwards is retained before. So releases stand
//!   before a tail call, which stays a jump.
//! * Everything else *borrows* its operands, and a counted result (of a load, an `extract`) is retained.
//! * The code of a function value owns the environment that it is called with, and releases it once it has read it.
//! * A local variable ([`Op::Slot`]) holds what was stored last: null at first, released when something else is stored and
//!   where the function ends. What is stored through any other pointer, in a static or in larger arrays is never released.
//!
//! ```text
//! v1: (code, &()) = …                     v1: (code, &()) = …
//! c: code = extract(v1, 0i64)             c: code = extract(v1, 0i64)
//! e: &() = extract(v1, 1i64)              e: &() = extract(v1, 1i64)
//!                                         call nyala_retain(e)
//! x: i32 = call_indirect c(1i32, e)       x: i32 = call_indirect c(1i32, e)
//! y: i32 = call_indirect c(x, e)          y: i32 = call_indirect c(x, e)        consumes the last count
//! ```
//!
//! Which memory is an environment follows from the code: it is the second part of a function value. Records of
//! continuations that are values ([`schedule`](mod@crate::schedule)) look the same to those who hold them; they belong to
//! frames, and have a count that nobody changes ([`uncounted`]). Modules that make no environment are left as they are.
//!
//! Bodies of `vectorize` run many times for one set of captured values: they retain what they are given. Threads get
//! copies of what they capture; where a module starts any, counts are atomic.

use crate::analysis::Cfg;
use crate::data::*;
use nyala_base::{Id, Span};
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Function values in one counted value.
const MAX_LEAVES: usize = 256;

/// Indices that lead from a counted value to a function value.
type Path = Vec<u64>;

/// What the whole module has to say.
struct Program {
    env_ptr: Ty,
    pair: Ty,
    leaves: FxHashMap<Ty, Rc<[Path]>>,
    /// Functions that are the code of a function value: the last parameter is the environment, which they own.
    codes: FxHashSet<Func>,
    /// Code of continuations, whose last parameter is a record, not theirs.
    leavers: FxHashSet<Func>,
    vectorized: FxHashSet<Func>,
    /// Callbacks of threads: they own what they read.
    threads: FxHashSet<Func>,
    retain: Func,
    release: Func,
    environment: Func,
    layouts: FxHashMap<Vec<u64>, GlobalId>,
}

/// Makes environments counted, in all functions.
pub fn count_environments(module: &mut Module) {
    let env_ptr = {
        let unit = module.types.unit();
        module.types.ptr(unit)
    };
    let code = module.types.code();
    let pair = module.types.tuple(&[code, env_ptr]);
    let mut codes: FxHashSet<Func> = module.globals.iter().flat_map(|g| functions_in(&g.init)).collect();
    let (mut vectorized, mut threads, mut makes_any) = (FxHashSet::default(), FxHashSet::default(), false);
    let mut has_threads = false;
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match inst.op {
                InstOp::Op(Op::Tuple) if inst.result.is_some_and(|r| function.ty(r) == pair) => {
                    if let Some(Const::Func(f)) = function.as_const(inst.args[0]) {
                        codes.insert(f);
                        let is_null = function.as_const(inst.args[1]).is_some();
                        makes_any |= !is_null && !returns_last_param(module.func(f));
                    }
                }
                InstOp::Vectorize(body, ..) => drop(vectorized.insert(body)),
                InstOp::Call(callee) => match module.func(callee).symbol() {
                    Some("nyala_spawn") => {
                        has_threads = true;
                        threads.extend(inst.args.iter().filter_map(|&a| match function.as_const(a) {
                            Some(Const::CFunc(f)) => Some(f),
                            _ => None,
                        }));
                    }
                    Some("nyala_parallel") => has_threads = true,
                    _ => {}
                },
                _ => {}
            }
        }
    }
    if !makes_any {
        return;
    }
    let leavers = codes.iter().copied().filter(|&f| returns_last_param(module.func(f))).collect();
    let i64_ty = module.types.prim(Prim::I64);
    let layout_ptr = module.types.ptr(i64_ty);
    let mut runtime = |symbol: &str, params: &[Ty], rets: &[Ty]| {
        module.declare(symbol, Linkage::Foreign(symbol.into()), params, rets)
    };
    let (retain, release) = match has_threads {
        true => ("nyala_retain_shared", "nyala_release_shared"),
        false => ("nyala_retain", "nyala_release"),
    };
    let (retain, release) = (runtime(retain, &[env_ptr], &[]), runtime(release, &[env_ptr], &[]));
    let environment = runtime("nyala_environment", &[i64_ty, layout_ptr], &[env_ptr]);
    let mut program = Program {
        env_ptr,
        pair,
        leaves: FxHashMap::default(),
        codes,
        leavers,
        vectorized,
        threads,
        retain,
        release,
        environment,
        layouts: FxHashMap::default(),
    };
    for i in 0..module.funcs.len() {
        if !module.funcs[i].blocks.is_empty() {
            program.count_in(module, Func::from_idx(i));
        }
    }
}

/// Makes memory that looks like an environment to those who hold it, with a count that nobody changes: in the frame, or on
/// the heap. Its address.
pub(crate) fn uncounted(b: &mut FunctionBuilder, ty: Ty, on_heap: bool) -> Value {
    let align = layout::size_align(b.types, ty).map_or(16, |(_, align)| align.max(16));
    // Padding, the count, and no layout.
    let n_before = align / 8;
    let i64_ty = b.types.prim(Prim::I64);
    let parts: Vec<Ty> = (0..n_before).map(|_| i64_ty).chain([ty]).collect();
    let behind_header = b.types.tuple(&parts);
    let whole = match on_heap {
        false => b.slot(behind_header, ""),
        true => {
            let array = b.types.indef_array(behind_header);
            let (array, element) = (b.types.ptr(array), b.types.ptr(behind_header));
            let (one, zero) = (b.literal(Prim::I64, 1), b.literal(Prim::I64, 0));
            let made = b.op(Op::Alloc, &[one], array);
            b.op(Op::Lea, &[made, zero], element)
        }
    };
    let mut part = |idx: u64, ty: Ty| {
        let (idx, ptr) = (b.literal(Prim::I64, idx), b.types.ptr(ty));
        b.op(Op::Lea, &[whole, idx], ptr)
    };
    let (count, memory) = (part(n_before - 2, i64_ty), part(n_before, ty));
    let forever = b.literal(Prim::I64, -1i64 as u64);
    b.store(count, forever);
    memory
}

fn functions_in(init: &Init) -> Vec<Func> {
    let (mut found, mut work) = (Vec::new(), vec![init]);
    while let Some(init) = work.pop() {
        match init {
            Init::Func(f) => found.push(*f),
            Init::Parts(parts) => work.extend(parts),
            _ => {}
        }
    }
    found
}

fn returns_last_param(function: &Function) -> bool {
    let Some(last) = function.blocks.first().and_then(|entry| entry.params.last()) else { return false };
    function.blocks.iter().any(|b| matches!(&b.term, Terminator::Return(values) if values.contains(last)))
}

/// A counted value among those of a function.
type Root = usize;

/// A set of counted values.
#[derive(Clone, PartialEq, Eq, Default)]
struct Set(Vec<u64>);

impl Set {
    fn new(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }
    fn insert(&mut self, i: Root) -> bool {
        let old = self.0[i / 64];
        self.0[i / 64] |= 1 << (i % 64);
        old != self.0[i / 64]
    }
    fn remove(&mut self, i: Root) {
        self.0[i / 64] &= !(1 << (i % 64));
    }
    fn contains(&self, i: Root) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    /// Whether it grew.
    fn add(&mut self, other: &Set) -> bool {
        let mut grew = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            grew |= b & !*a != 0;
            *a |= b;
        }
        grew
    }
    fn iter(&self) -> impl Iterator<Item = Root> {
        let bits = self.0.iter().enumerate().flat_map(|(w, &bits)| (0..64).map(move |i| (w * 64 + i, bits >> i & 1)));
        bits.filter(|b| b.1 == 1).map(|b| b.0)
    }
}

/// What an instruction or terminator does to counted values, one entry for each use.
#[derive(Default)]
struct Uses {
    consumed: Vec<Root>,
    borrowed: Vec<Root>,
}

/// One function under way.
struct Counter<'p, 'm> {
    p: &'p mut Program,
    b: FunctionBuilder<'m>,
    func: Func,
    roots: Vec<Value>,
    root_of: FxHashMap<Value, Root>,
    /// Environments taken out of a root, and addresses in the environment that the function owns.
    aliases: FxHashMap<Value, Root>,
    /// The variable that an address leads into, if it holds function values.
    variables: FxHashMap<Value, Value>,
    /// Where the current instruction's code goes.
    out: Vec<Inst>,
    span: Span,
}

impl Program {
    /// Paths to the function values in a counted value; none if it is not counted.
    fn leaves(&mut self, types: &Types, ty: Ty) -> Rc<[Path]> {
        if let Some(known) = self.leaves.get(&ty) {
            return known.clone();
        }
        let mut found: Vec<Path> = Vec::new();
        // Types are as deep as the source says, which is limited.
        if ty == self.pair {
            found.push(Vec::new());
        } else if matches!(types.kind(ty), TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..)) {
            for i in 0..types.n_parts(ty).unwrap_or(0) {
                let Some(part) = types.part(ty, i) else { continue };
                let inner = self.leaves(types, part);
                if inner.is_empty() && matches!(types.kind(ty), TyKind::Array(..)) {
                    break;
                }
                found.extend(inner.iter().map(|path| [&[i], &path[..]].concat()));
                if found.len() > MAX_LEAVES {
                    found.clear();
                    break;
                }
            }
        }
        let found: Rc<[Path]> = found.into();
        self.leaves.insert(ty, found.clone());
        found
    }

    fn count_in(&mut self, module: &mut Module, func: Func) {
        self.make_environments(module, func);
        let b = FunctionBuilder::new(module, func);
        let mut counter = Counter {
            p: self,
            b,
            func,
            roots: Vec::new(),
            root_of: FxHashMap::default(),
            aliases: FxHashMap::default(),
            variables: FxHashMap::default(),
            out: Vec::new(),
            span: Span::NONE,
        };
        counter.run();
    }

    /// Memory that is an environment gets its count.
    fn make_environments(&mut self, module: &mut Module, func: Func) {
        let function = module.func(func);
        let mut makers: FxHashMap<Value, &Inst> = FxHashMap::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if let Some(result) = inst.result {
                makers.insert(result, inst);
            }
        }
        let mut found: FxHashSet<Value> = FxHashSet::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if inst.op != InstOp::Op(Op::Tuple) || inst.result.is_none_or(|r| function.ty(r) != self.pair) {
                continue;
            }
            if let Some(Const::Func(code)) = function.as_const(inst.args[0])
                && !self.leavers.contains(&code)
            {
                let mut at = inst.args[1];
                while let Some(inst) = makers.get(&at) {
                    match inst.op {
                        InstOp::Op(Op::Bitcast | Op::Lea) => at = inst.args[0],
                        _ => {
                            found.extend((inst.op == InstOp::Op(Op::Alloc)).then_some(at));
                            break;
                        }
                    }
                }
            }
        }
        for i in 0..module.func(func).blocks.len() {
            let insts = std::mem::take(&mut module.funcs[func.idx()].blocks[i].insts);
            for inst in insts {
                match inst.result.filter(|r| found.contains(r)) {
                    Some(memory) => self.make_environment(module, (func, i), &inst, memory),
                    None => module.funcs[func.idx()].blocks[i].insts.push(inst),
                }
            }
        }
    }

    fn make_environment(&mut self, module: &mut Module, (func, block): (Func, usize), inst: &Inst, memory: Value) {
        let types = &module.types;
        let pointee = types.pointee(module.func(func).ty(memory)).unwrap_or(self.env_ptr);
        let ty = match *types.kind(pointee) {
            TyKind::IndefArray(elem) => elem,
            _ => pointee,
        };
        let (size, align) = layout::size_align(types, ty).unwrap_or((0, 1));
        let offsets = self.offsets(&module.types, ty);
        let global = self.layout(module, align, offsets);
        let i64_ty = module.types.prim(Prim::I64);
        let layout_ptr = module.types.ptr(i64_ty);
        let mut b = FunctionBuilder::new(module, func);
        b.span = inst.span;
        b.switch_to(Block::from_idx(block));
        let layout = b.function.constant(Const::Global(global), layout_ptr);
        let size = b.literal(Prim::I64, size);
        let made = b.call(self.environment, &[size, layout], &[self.env_ptr]);
        b.function.blocks[block].insts.push(Inst {
            op: InstOp::Op(Op::Bitcast),
            args: [made].as_slice().into(),
            result: Some(memory),
            span: inst.span,
            fast: false,
        });
    }

    /// Where the environments are that an environment of this type captures.
    fn offsets(&mut self, types: &Types, ty: Ty) -> Vec<u64> {
        let mut found = Vec::new();
        for i in 0..types.n_parts(ty).unwrap_or(0) {
            let Some(part) = types.part(ty, i) else { continue };
            for path in self.leaves(types, part).iter() {
                let (mut at, mut inner) = (0, ty);
                for &idx in [&[i], &path[..], &[1]].concat().iter() {
                    at += layout::offset(types, inner, idx).unwrap_or(0);
                    inner = part_ty(types, inner, Some(idx)).unwrap_or(inner);
                }
                found.push(at);
            }
        }
        found
    }

    /// The runtime's description of an environment.
    fn layout(&mut self, module: &mut Module, align: u64, offsets: Vec<u64>) -> GlobalId {
        let mut words = vec![align, offsets.len() as u64];
        words.extend(offsets);
        if let Some(&known) = self.layouts.get(&words) {
            return known;
        }
        let i64_ty = module.types.prim(Prim::I64);
        let ty = module.types.array(i64_ty, words.len() as u64);
        let init = Init::Parts(words.iter().map(|&w| Init::Bits(w)).collect());
        let name = format!("environment.{}", self.layouts.len());
        let global = module.add_global(Global { name, ty, mutable: false, init });
        self.layouts.insert(words, global);
        global
    }
}

impl Counter<'_, '_> {
    fn run(&mut self) {
        self.find_roots();
        self.find_variables();
        if self.roots.is_empty() && self.variables.is_empty() && !self.has_undefined() {
            return;
        }
        let cfg = Cfg::new(self.b.function);
        let live_in = self.live_in(&cfg);
        let n_blocks = self.b.function.blocks.len();
        for i in 0..n_blocks {
            if cfg.is_reachable(Block::from_idx(i)) {
                self.rewrite(i, &live_in);
            }
        }
        self.begin_variables();
    }

    fn is_counted(&mut self, v: Value) -> bool {
        let ty = self.b.function.ty(v);
        !self.p.leaves(self.b.types, ty).is_empty()
    }

    fn owns_environment(&self) -> bool {
        self.p.codes.contains(&self.func) && !self.p.leavers.contains(&self.func)
    }

    fn add_root(&mut self, v: Value) {
        self.root_of.insert(v, self.roots.len());
        self.roots.push(v);
    }

    fn find_roots(&mut self) {
        let mut defined: Vec<Value> = Vec::new();
        for block in &self.b.function.blocks {
            defined.extend(&block.params);
            defined.extend(block.insts.iter().filter_map(|inst| inst.result));
        }
        for v in defined {
            if self.is_counted(v) {
                self.add_root(v);
            }
        }
        if self.owns_environment()
            && let Some(&env) = self.b.function.blocks[0].params.last()
        {
            self.add_root(env);
        }
        // Definitions stand before uses, but for blocks out of order: until nothing is new.
        loop {
            let n = self.aliases.len();
            for block in &self.b.function.blocks {
                for inst in &block.insts {
                    let Some(result) = inst.result.filter(|r| !self.aliases.contains_key(r)) else { continue };
                    let Some(&first) = inst.args.first() else { continue };
                    let root = match inst.op {
                        InstOp::Op(Op::Extract) if self.b.function.ty(first) == self.p.pair => {
                            let is_env = self.b.function.as_bits(inst.args[1]) == Some(1);
                            self.root_of.get(&first).filter(|_| is_env)
                        }
                        InstOp::Op(Op::Bitcast | Op::Lea) => {
                            let is_env = |v: &Value| self.b.function.ty(*v) == self.p.env_ptr;
                            let own = self.root_of.get(&first).filter(|_| is_env(&first));
                            own.or_else(|| self.aliases.get(&first))
                        }
                        _ => None,
                    };
                    if let Some(&root) = root {
                        self.aliases.insert(result, root);
                    }
                }
            }
            if self.aliases.len() == n {
                return;
            }
        }
    }

    /// Local variables with function values, and addresses in them.
    fn find_variables(&mut self) {
        loop {
            let n = self.variables.len();
            for i in 0..self.b.function.blocks.len() {
                for j in 0..self.b.function.blocks[i].insts.len() {
                    let inst = &self.b.function.blocks[i].insts[j];
                    let (op, first, result) = (inst.op, inst.args.first().copied(), inst.result);
                    let Some(result) = result.filter(|r| !self.variables.contains_key(r)) else { continue };
                    let variable = match op {
                        InstOp::Op(Op::Slot) => {
                            let ty = self.b.types.pointee(self.b.function.ty(result));
                            ty.filter(|&ty| !self.p.leaves(self.b.types, ty).is_empty()).map(|_| result)
                        }
                        InstOp::Op(Op::Bitcast | Op::Lea) => first.and_then(|f| self.variables.get(&f)).copied(),
                        _ => None,
                    };
                    if let Some(variable) = variable {
                        self.variables.insert(result, variable);
                    }
                }
            }
            if self.variables.len() == n {
                return;
            }
        }
    }

    /// Whether some use is of an undefined function value, which would be released.
    fn has_undefined(&mut self) -> bool {
        let n = self.b.function.values.len();
        (0..n).map(Value::from_idx).any(|v| self.b.function.as_const(v) == Some(Const::Undef) && self.is_counted(v))
    }

    fn root(&self, v: Value) -> Option<Root> {
        self.root_of.get(&v).copied()
    }

    fn uses_of_inst(&mut self, inst: &Inst) -> Uses {
        let mut uses = Uses::default();
        let consumes = match inst.op {
            InstOp::Call(_) | InstOp::CallIndirect | InstOp::Op(Op::Store) => true,
            InstOp::Op(Op::Tuple | Op::Struct | Op::Array) => {
                inst.result.is_none_or(|r| self.b.function.ty(r) != self.p.pair)
            }
            _ => false,
        };
        for (i, &a) in inst.args.iter().enumerate() {
            let is_callee_env = inst.op == InstOp::CallIndirect && i + 1 == inst.args.len();
            match (self.root(a), self.aliases.get(&a).copied()) {
                (Some(root), _) if consumes && self.is_counted(a) => uses.consumed.push(root),
                (Some(root), _) => uses.borrowed.push(root),
                (None, Some(root)) if is_callee_env => uses.consumed.push(root),
                (None, Some(root)) => uses.borrowed.push(root),
                (None, None) => {}
            }
        }
        uses
    }

    /// What a terminator uses but for what its edges pass on.
    fn uses_of_term(&self, term: &Terminator) -> Uses {
        let mut uses = Uses::default();
        match term {
            Terminator::Return(values) => {
                for &v in values {
                    match (self.root(v), self.aliases.get(&v)) {
                        (Some(root), _) => uses.consumed.push(root),
                        (None, Some(&root)) => uses.borrowed.push(root),
                        _ => {}
                    }
                }
            }
            Terminator::TailCall { callee, args } => {
                let is_indirect = matches!(callee, Callee::Indirect(_));
                for (i, &v) in args.iter().enumerate() {
                    let is_callee_env = is_indirect && i + 1 == args.len();
                    match (self.root(v), self.aliases.get(&v)) {
                        (Some(root), _) => uses.consumed.push(root),
                        (None, Some(&root)) if is_callee_env => uses.consumed.push(root),
                        (None, Some(&root)) => uses.borrowed.push(root),
                        _ => {}
                    }
                }
            }
            Terminator::Branch { cond, .. } => uses.borrowed.extend(self.aliases.get(cond)),
            Terminator::Jump(_) | Terminator::Unreachable => {}
        }
        uses
    }

    /// What an edge passes on: roots go over to parameters; an address in what the function owns is read there.
    fn uses_of_edge(&self, edge: &Edge) -> Uses {
        let mut uses = Uses::default();
        for &v in &edge.args {
            match (self.root(v), self.aliases.get(&v)) {
                (Some(root), _) => uses.consumed.push(root),
                (None, Some(&root)) => uses.borrowed.push(root),
                _ => {}
            }
        }
        uses
    }

    fn live_in(&mut self, cfg: &Cfg) -> Vec<Set> {
        let n = self.roots.len();
        let mut live: Vec<Set> = vec![Set::new(n); self.b.function.blocks.len()];
        loop {
            let mut changed = false;
            for &block in cfg.rpo.iter().rev() {
                let mut set = self.live_before_term(block.idx(), &live);
                for j in (0..self.b.function.blocks[block.idx()].insts.len()).rev() {
                    let inst = self.b.function.blocks[block.idx()].insts[j].clone();
                    if let Some(root) = inst.result.and_then(|r| self.root(r)) {
                        set.remove(root);
                    }
                    let uses = self.uses_of_inst(&inst);
                    uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = set.insert(r));
                }
                for &param in &self.b.function.blocks[block.idx()].params {
                    if let Some(&root) = self.root_of.get(&param) {
                        set.remove(root);
                    }
                }
                changed |= live[block.idx()].add(&set);
            }
            if !changed {
                return live;
            }
        }
    }

    fn live_before_term(&self, block: usize, live_in: &[Set]) -> Set {
        let term = &self.b.function.blocks[block].term;
        let mut set = Set::new(self.roots.len());
        for edge in term.edges() {
            set.add(&live_in[edge.block.idx()]);
            let uses = self.uses_of_edge(edge);
            uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = set.insert(r));
        }
        let uses = self.uses_of_term(term);
        uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = set.insert(r));
        set
    }

    // Code.

    fn push(&mut self, op: InstOp, args: &[Value], result: Option<Value>) {
        self.out.push(Inst { op, args: args.into(), result, span: self.span, fast: false });
    }

    fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let result = self.b.function.new_value(ty, "");
        self.push(InstOp::Op(op), args, Some(result));
        result
    }

    fn call(&mut self, callee: Func, environment: Value) {
        let unit = self.b.types.unit();
        let result = self.b.function.new_value(unit, "");
        self.push(InstOp::Call(callee), &[environment], Some(result));
    }

    /// Calls a function of the runtime with each environment that a value holds.
    fn for_leaves(&mut self, callee: Func, v: Value) {
        let ty = self.b.function.ty(v);
        if ty == self.p.env_ptr {
            return self.call(callee, v);
        }
        for path in self.p.leaves(self.b.types, ty).iter() {
            let (mut at, mut inner) = (v, ty);
            for &idx in path.iter().chain(&[1]) {
                inner = part_ty(self.b.types, inner, Some(idx)).unwrap_or(inner);
                let idx = self.b.literal(Prim::I64, idx);
                at = self.op(Op::Extract, &[at, idx], inner);
            }
            self.call(callee, at);
        }
    }

    fn retain(&mut self, v: Value) {
        self.for_leaves(self.p.retain, v);
    }

    fn release(&mut self, v: Value) {
        self.for_leaves(self.p.release, v);
    }

    /// A function value, or an aggregate of them, without environments.
    fn empty(&mut self, ty: Ty) -> Value {
        if ty == self.p.pair {
            let code = self.b.types.code();
            let code = self.b.function.undef(code);
            let null = self.b.function.constant(Const::Bits(0), self.p.env_ptr);
            return self.op(Op::Tuple, &[code, null], ty);
        }
        if self.p.leaves(self.b.types, ty).is_empty() {
            return self.b.function.undef(ty);
        }
        let parts: Vec<Value> = (0..self.b.types.n_parts(ty).unwrap_or(0))
            .filter_map(|i| self.b.types.part(ty, i))
            .collect::<Vec<Ty>>()
            .into_iter()
            .map(|part| self.empty(part))
            .collect();
        let op = match self.b.types.kind(ty) {
            TyKind::Tuple(_) => Op::Tuple,
            TyKind::Array(..) => Op::Array,
            _ => Op::Struct,
        };
        self.op(op, &parts, ty)
    }

    /// What stands for an operand: undefined function values are nobody's.
    fn defined(&mut self, v: Value) -> Value {
        match self.b.function.as_const(v) {
            Some(Const::Undef) if self.is_counted(v) => {
                let ty = self.b.function.ty(v);
                self.empty(ty)
            }
            _ => v,
        }
    }

    /// Retains what is consumed more often than once, or lives on.
    fn retain_for(&mut self, consumed: &[Root], after: &Set) {
        let mut given: FxHashSet<Root> = FxHashSet::default();
        for &root in consumed {
            if after.contains(root) || !given.insert(root) {
                self.retain(self.roots[root]);
            }
        }
    }

    fn rewrite(&mut self, block: usize, live_in: &[Set]) {
        let insts = std::mem::take(&mut self.b.function.blocks[block].insts);
        let mut after = self.live_before_term(block, live_in);
        // What is live behind each instruction.
        let mut live_after: Vec<Set> = Vec::with_capacity(insts.len());
        let mut all_uses: Vec<Uses> = Vec::with_capacity(insts.len());
        let before_term = after.clone();
        for inst in insts.iter().rev() {
            live_after.push(after.clone());
            if let Some(root) = inst.result.and_then(|r| self.root(r)) {
                after.remove(root);
            }
            let uses = self.uses_of_inst(inst);
            uses.consumed.iter().chain(&uses.borrowed).for_each(|&r| _ = after.insert(r));
            all_uses.push(uses);
        }
        let at_start = after;
        let params = self.b.function.blocks[block].params.clone();
        for v in params {
            let Some(root) = self.root(v) else { continue };
            if block == 0 && self.p.vectorized.contains(&self.func) {
                self.retain(v);
            }
            if !at_start.contains(root) {
                self.release(v);
            }
        }
        for inst in insts {
            let (Some(after), Some(uses)) = (live_after.pop(), all_uses.pop()) else { break };
            self.rewrite_inst(inst, &after, &uses, block == 0);
        }
        self.rewrite_term(block, live_in, &before_term);
    }

    fn rewrite_inst(&mut self, mut inst: Inst, after: &Set, uses: &Uses, in_entry: bool) {
        self.span = inst.span;
        for i in 0..inst.args.len() {
            inst.args[i] = self.defined(inst.args[i]);
        }
        self.retain_for(&uses.consumed, after);
        let replaced = match inst.op {
            InstOp::Op(Op::Store) if self.variables.contains_key(&inst.args[0]) && self.is_counted(inst.args[1]) => {
                let ty = self.b.function.ty(inst.args[1]);
                Some(self.op(Op::Load, &[inst.args[0]], ty))
            }
            _ => None,
        };
        if inst.op == InstOp::Op(Op::Slot)
            && let Some(slot) = inst.result
            && self.variables.contains_key(&slot)
        {
            // The variable itself is made where the function begins.
            if !in_entry {
                self.empty_variable(slot, true);
            }
            return;
        }
        let (op, result) = (inst.op, inst.result);
        let owned_memory = op == InstOp::Op(Op::Load) && self.reads_own_environment(inst.args[0]);
        self.out.push(inst);
        if let Some(old) = replaced {
            self.release(old);
        }
        if let Some(v) = result
            && let Some(root) = self.root(v)
        {
            let is_made = match op {
                InstOp::Call(_) | InstOp::CallIndirect => true,
                InstOp::Op(Op::Tuple) if self.b.function.ty(v) == self.p.pair => !self.is_rebuilt(v),
                InstOp::Op(Op::Tuple | Op::Struct | Op::Array) => true,
                _ => owned_memory,
            };
            match (is_made, after.contains(root)) {
                (false, true) => self.retain(v),
                (true, false) => self.release(v),
                _ => {}
            }
        }
        let mut dead: Vec<Root> = uses.borrowed.iter().copied().filter(|r| !after.contains(*r)).collect();
        dead.retain(|r| !uses.consumed.contains(r));
        dead.sort_unstable();
        dead.dedup();
        for root in dead {
            self.release(self.roots[root]);
        }
    }

    /// Whether a function value is made of the environment of another one.
    fn is_rebuilt(&self, v: Value) -> bool {
        let maker = self.out.iter().rev().find(|inst| inst.result == Some(v));
        maker.is_some_and(|inst| self.aliases.contains_key(&inst.args[1]))
    }

    /// Whether an address is in the environment that a thread was given.
    fn reads_own_environment(&self, mut ptr: Value) -> bool {
        if !self.p.threads.contains(&self.func) {
            return false;
        }
        while let Some(inst) = self.out.iter().rev().find(|inst| inst.result == Some(ptr)) {
            match inst.op {
                InstOp::Op(Op::Bitcast | Op::Lea) => ptr = inst.args[0],
                _ => return false,
            }
        }
        self.b.function.blocks[0].params.first() == Some(&ptr)
    }

    fn rewrite_term(&mut self, block: usize, live_in: &[Set], before: &Set) {
        let mut term = self.b.function.blocks[block].term.clone();
        let uses = self.uses_of_term(&term);
        let none = Set::new(self.roots.len());
        match &mut term {
            Terminator::Return(values) => {
                *values = values.iter().map(|&v| self.defined(v)).collect();
                self.retain_for(&uses.consumed, &none);
                self.release_dead(before, &uses, &none);
                self.end_variables();
            }
            Terminator::TailCall { callee, args } => {
                *args = args.iter().map(|&v| self.defined(v)).collect();
                self.retain_for(&uses.consumed, &none);
                self.release_dead(before, &uses, &none);
                if args.iter().any(|a| self.variables.contains_key(a)) {
                    // An address of a variable goes along, which is no jump.
                    term = self.call_before_return(*callee, args.clone());
                }
                self.end_variables();
            }
            Terminator::Jump(edge) => {
                edge.args = edge.args.iter().map(|&v| self.defined(v)).collect();
                self.pass_on(edge, &live_in[edge.block.idx()], before);
            }
            Terminator::Branch { then, els, .. } => {
                let body = std::mem::take(&mut self.out);
                for edge in [then, els] {
                    edge.args = edge.args.iter().map(|&v| self.defined(v)).collect();
                    self.pass_on(edge, &live_in[edge.block.idx()], before);
                    let code = std::mem::take(&mut self.out);
                    if code.is_empty() {
                        continue;
                    }
                    let between = self.b.block("drop", &[]);
                    let target = std::mem::replace(edge, Edge { block: between, args: Vec::new() });
                    self.b.function.blocks[between.idx()].insts = code;
                    self.b.function.blocks[between.idx()].term = Terminator::Jump(target);
                }
                self.out = body;
            }
            Terminator::Unreachable => {}
        }
        self.b.function.blocks[block].insts = std::mem::take(&mut self.out);
        self.b.function.blocks[block].term = term;
    }

    fn call_before_return(&mut self, callee: Callee, args: Vec<Value>) -> Terminator {
        let rets = self.b.function.rets.clone();
        let ty = Module::result_ty(self.b.types, &rets);
        let result = self.b.function.new_value(ty, "");
        match callee {
            Callee::Func(callee) => self.push(InstOp::Call(callee), &args, Some(result)),
            Callee::Indirect(code) => {
                self.push(InstOp::CallIndirect, &[&[code], &args[..]].concat(), Some(result));
            }
        }
        if rets.len() == 1 {
            return Terminator::Return(vec![result]);
        }
        let parts = rets.iter().enumerate().map(|(i, &ty)| {
            let idx = self.b.literal(Prim::I64, i as u64);
            self.op(Op::Extract, &[result, idx], ty)
        });
        Terminator::Return(parts.collect())
    }

    /// On an edge: retains what its target's parameters get, if it lives on; releases what does not.
    fn pass_on(&mut self, edge: &Edge, after: &Set, before: &Set) {
        let uses = self.uses_of_edge(edge);
        self.retain_for(&uses.consumed, after);
        self.release_dead(before, &uses, after);
    }

    /// Releases what was live before and is neither consumed nor live afterwards.
    fn release_dead(&mut self, before: &Set, uses: &Uses, after: &Set) {
        for root in before.iter() {
            if !after.contains(root) && !uses.consumed.contains(&root) {
                self.release(self.roots[root]);
            }
        }
    }

    // Variables.

    fn all_variables(&self) -> Vec<Value> {
        let mut slots: Vec<Value> = self.variables.iter().filter(|(v, slot)| v == slot).map(|(&v, _)| v).collect();
        slots.sort_unstable();
        slots
    }

    /// Makes a variable hold nothing, and releases what it held.
    fn empty_variable(&mut self, slot: Value, holds: bool) {
        let Some(ty) = self.b.types.pointee(self.b.function.ty(slot)) else { return };
        let env_ptr = self.b.types.ptr(self.p.env_ptr);
        let null = self.b.function.constant(Const::Bits(0), self.p.env_ptr);
        for path in self.p.leaves(self.b.types, ty).iter() {
            let (mut at, mut inner) = (slot, ty);
            for &idx in path {
                inner = part_ty(self.b.types, inner, Some(idx)).unwrap_or(inner);
                let ptr = self.b.types.ptr(inner);
                let idx = self.b.literal(Prim::I64, idx);
                at = self.op(Op::Lea, &[at, idx], ptr);
            }
            let one = self.b.literal(Prim::I64, 1);
            let at = self.op(Op::Lea, &[at, one], env_ptr);
            if holds {
                let held = self.op(Op::Load, &[at], self.p.env_ptr);
                self.call(self.p.release, held);
            }
            self.push(InstOp::Op(Op::Store), &[at, null], None);
        }
    }

    fn end_variables(&mut self) {
        for slot in self.all_variables() {
            self.empty_variable(slot, true);
        }
    }

    /// All variables are there, and hold nothing, when the function begins.
    fn begin_variables(&mut self) {
        self.span = self.b.function.span;
        for slot in self.all_variables() {
            self.push(InstOp::Op(Op::Slot), &[], Some(slot));
            self.empty_variable(slot, false);
        }
        let mut code = std::mem::take(&mut self.out);
        code.append(&mut self.b.function.blocks[0].insts);
        self.b.function.blocks[0].insts = code;
    }
}

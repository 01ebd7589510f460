//! Finds the values that may be undefined: where they come from, and where they go in the whole program. Separate from the checks, which
//! look at one function at a time.
//!
//! The values of all functions are the nodes of a graph, whose edges say where a value goes. Each node is visited at most once, so there is
//! no budget. Functions whose addresses are taken must get the same parameters as all others of their type, and functions that call each
//! other in tail position must give the same results: nodes that are no values stand for these. What is stored in environments goes to
//! those loads that read the same part of an environment of the same type: a node stands for that part.

use super::boundaries::{Field, captured, captured_roots, fields};
use super::told::n_leaves;
use super::{passes_on, reads_whole};
use crate::needed::needed;
use nyala_base::Id;
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Ty, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// The type of a function value: parameters and result.
type Signature = (Vec<Ty>, Ty);

/// What functions are told of their parameters, and tell of their results.
pub struct Told {
    callees: Callees,
    /// By number of the callee: the indices of parameters, and the types of results if they are told of.
    params: Vec<Rc<[usize]>>,
    results: Vec<Option<Rc<[Ty]>>>,
}

impl Told {
    /// The indices of the parameters that a function is told of.
    pub fn params(&self, f: Func) -> Rc<[usize]> {
        self.params.get(f.idx()).cloned().unwrap_or_default()
    }

    /// The types of a function's results, if it tells of them.
    pub fn results(&self, f: Func) -> Option<Rc<[Ty]>> {
        self.results.get(f.idx()).cloned().flatten()
    }

    /// Whether a function gets or gives more than before.
    pub fn concerns(&self, f: Func) -> bool {
        !self.params(f).is_empty() || self.results(f).is_some()
    }

    /// The indices of the parameters that the callee of a call is told of, and the types of its results if it tells of them.
    pub fn of_call(&self, types: &Types, f: Func, function: &Function, call: &Call) -> (Rc<[usize]>, Option<Rc<[Ty]>>) {
        let callee = self.callees.number(types, f, function, call);
        callee.map_or_else(Default::default, |callee| (self.params[callee].clone(), self.results[callee].clone()))
    }
}

/// A call of any kind.
pub struct Call<'a> {
    callee: Callee,
    pub args: &'a [Value],
    /// How many parameters come before those arguments.
    pub skipped: usize,
    /// `None` in tail position.
    result: Option<Value>,
}

impl Call<'_> {
    pub fn of(inst: &Inst) -> Option<Call<'_>> {
        let (callee, n, skipped) = match inst.op {
            InstOp::Call(g) => (Callee::Func(g), 0, 0),
            InstOp::CallIndirect => (Callee::Indirect(inst.args[0]), 1, 0),
            // The first parameter is the number of the iteration, which lies between the first two arguments.
            InstOp::Vectorize(body, ..) => (Callee::Func(body), 2, 1),
            _ => return None,
        };
        Some(Call { callee, args: &inst.args[n..], skipped, result: inst.result })
    }

    pub fn in_tail_position(term: &Terminator) -> Option<Call<'_>> {
        let Terminator::TailCall { callee, args, .. } = term else { return None };
        Some(Call { callee: *callee, args, skipped: 0, result: None })
    }
}

/// Numbers for the callees of calls: those of functions, then one for the function values of each type.
struct Callees {
    /// The function values of a function's type, by function.
    types: Vec<Signature>,
    /// The numbers of function values, by type.
    values: FxHashMap<Signature, usize>,
    /// Stands for the type of any address.
    address: Ty,
}

impl Callees {
    fn key(&self, types: &Types, ty: Ty) -> Ty {
        if types.pointee(ty).is_some() { self.address } else { ty }
    }

    fn number(&self, types: &Types, f: Func, function: &Function, call: &Call) -> Option<usize> {
        match call.callee {
            Callee::Func(g) => Some(g.idx()).filter(|&g| g < self.types.len()),
            Callee::Indirect(_) => {
                let args = call.args.iter().map(|&v| self.key(types, function.ty(v))).collect();
                let ret = call.result.map_or(self.types[f.idx()].1, |r| self.key(types, function.ty(r)));
                self.values.get(&(args, ret)).copied()
            }
        }
    }
}

/// The values of a function that may be undefined.
#[derive(Default)]
pub struct Undefined {
    pub all: FxHashSet<Value>,
    /// Values that are used on every path from their definition.
    pub needed: FxHashSet<Value>,
}

/// Function values of one type.
struct Values {
    members: Vec<Func>,
    /// The node of their first parameter.
    first: usize,
}

struct Flow<'m> {
    module: &'m Module,
    callees: Callees,
    /// The node of each function's first value, and the number of all these nodes.
    first: Vec<usize>,
    values: Vec<Values>,
    /// For functions whose addresses are taken, their callee as values.
    as_value: Vec<Option<usize>>,
    /// Callees that cannot be told more than they get.
    is_fixed: Vec<bool>,
    /// The group to which a callee belongs, by one of the members, and for that one whether its results stay as they are, and the node of
    /// each call's result.
    group: Vec<usize>,
    stays: Vec<bool>,
    calls: Vec<Vec<usize>>,
    /// For each function of which a value was reached: the values that are needed, and the nodes that each value goes to.
    needed: Vec<Option<FxHashSet<Value>>>,
    to: Vec<FxHashMap<Value, Vec<usize>>>,
    /// The first node of groups, and the first one of parts of environments.
    first_group: usize,
    first_field: usize,
    /// For the parts of environments of one type: their numbers, and by number the nodes of the values that are loaded from them.
    fields: FxHashMap<Field, usize>,
    loaded: Vec<Vec<usize>>,
    roots: [Ty; 2],
    is_reached: Vec<bool>,
    work: Vec<usize>,
}

/// Finds what may be undefined in each of these functions, and what functions are told for that. Parameters and results of all others stay
/// as they are.
pub fn find(module: &mut Module, own: &[Func]) -> (Told, Vec<Undefined>) {
    let n = module.funcs.len();
    let address = module.types.code();
    let mut callees = Callees { types: Vec::new(), values: FxHashMap::default(), address };
    for f in 0..n {
        let ret = Module::result_ty(&mut module.types, &module.funcs[f].rets);
        let params = module.funcs[f].params.iter().map(|&ty| callees.key(&module.types, ty)).collect();
        let ret = callees.key(&module.types, ret);
        callees.types.push((params, ret));
    }
    let roots = captured_roots(&mut module.types);
    let mut flow = Flow::new(module, callees, own, roots);
    own.iter().for_each(|&f| flow.find_captured(f));
    own.iter().for_each(|&f| flow.begin(f));
    while let Some(node) = flow.work.pop() {
        flow.visit(node);
    }
    flow.found(own)
}

impl<'m> Flow<'m> {
    fn new(module: &'m Module, callees: Callees, own: &[Func], roots: [Ty; 2]) -> Flow<'m> {
        let n = module.funcs.len();
        let mut first = vec![0];
        for (f, function) in module.funcs.iter().enumerate() {
            first.push(first[f] + function.values.len());
        }
        let mut is_fixed = vec![true; n];
        for &f in own {
            let function = module.func(f);
            is_fixed[f.idx()] = matches!(function.linkage, Linkage::Kernel(..));
        }
        let mut flow = Flow {
            module,
            callees,
            values: Vec::new(),
            as_value: vec![None; n],
            is_fixed,
            group: Vec::new(),
            stays: Vec::new(),
            calls: Vec::new(),
            needed: vec![None; n],
            to: vec![FxHashMap::default(); n],
            first_group: 0,
            first_field: 0,
            fields: FxHashMap::default(),
            loaded: Vec::new(),
            roots,
            is_reached: Vec::new(),
            work: Vec::new(),
            first,
        };
        let mut n_nodes = flow.first[n];
        for f in addressed(module) {
            let key = &flow.callees.types[f.idx()];
            let n_params = key.0.len();
            let callee = *flow.callees.values.entry(key.clone()).or_insert_with(|| {
                flow.values.push(Values { members: Vec::new(), first: n_nodes });
                flow.is_fixed.push(false);
                n_nodes += n_params;
                flow.is_fixed.len() - 1
            });
            flow.values[callee - n].members.push(f);
            flow.is_fixed[callee] |= flow.is_fixed[f.idx()];
            flow.as_value[f.idx()] = Some(callee);
        }
        flow.join();
        (flow.first_group, flow.first_field) = (n_nodes, n_nodes + flow.group.len());
        flow.is_reached = vec![false; flow.first_field];
        flow.calls = vec![Vec::new(); flow.group.len()];
        for (f, function) in module.funcs.iter().enumerate() {
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                if let (Some(call), Some(result)) = (Call::of(inst), inst.result)
                    && let Some(callee) = flow.callees.number(&module.types, Func::from_idx(f), function, &call)
                {
                    let group = flow.leader(callee);
                    flow.calls[group].push(flow.first[f] + result.idx());
                }
            }
        }
        flow
    }

    /// Makes groups of callees that must have the same results.
    fn join(&mut self) {
        let module = self.module;
        self.group = (0..self.is_fixed.len()).collect();
        let mut stays = self.is_fixed.clone();
        for (f, function) in module.funcs.iter().enumerate() {
            stays[f] |= n_leaves(&module.types, self.callees.types[f].1).is_none();
            if let Some(callee) = self.as_value[f] {
                self.unite(f, callee);
            }
            for call in function.blocks.iter().filter_map(|b| Call::in_tail_position(&b.term)) {
                match self.callees.number(&module.types, Func::from_idx(f), function, &call) {
                    Some(callee) => self.unite(f, callee),
                    None => stays[f] = true,
                }
            }
        }
        self.stays = vec![false; stays.len()];
        for (callee, stays) in stays.into_iter().enumerate() {
            let group = self.leader(callee);
            self.stays[group] |= stays;
        }
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.leader(a), self.leader(b));
        self.group[b] = a;
    }

    /// The member that stands for a group.
    fn leader(&mut self, mut callee: usize) -> usize {
        while self.group[callee] != callee {
            self.group[callee] = self.group[self.group[callee]];
            callee = self.group[callee];
        }
        callee
    }

    /// The node of a callee's results.
    fn results(&mut self, callee: usize) -> Option<usize> {
        let group = self.leader(callee);
        (!self.stays[group]).then_some(self.first_group + group)
    }

    /// The node of a callee's parameter.
    fn param(&self, callee: usize, i: usize) -> Option<usize> {
        let n = self.module.funcs.len();
        let callee = self.as_value.get(callee).copied().flatten().unwrap_or(callee);
        if self.is_fixed[callee] {
            return None;
        }
        match callee.checked_sub(n) {
            Some(at) => Some(self.values[at].first + i),
            None => Some(self.first[callee] + self.module.funcs[callee].blocks[0].params.get(i)?.idx()),
        }
    }

    fn reach(&mut self, node: usize) {
        if !std::mem::replace(&mut self.is_reached[node], true) {
            self.work.push(node);
        }
    }

    /// Reaches the values of a function that are undefined by themselves, and those that it reads from memory.
    fn begin(&mut self, f: Func) {
        let (function, types, first) = (self.module.func(f), &self.module.types, self.first[f.idx()]);
        if function.blocks.is_empty() {
            return;
        }
        for v in (0..function.values.len()).map(Value::from_idx) {
            if function.as_const(v) == Some(Const::Undef) && n_leaves(types, function.ty(v)).is_some() {
                self.reach(first + v.idx());
            }
        }
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let begins = match inst.op {
                InstOp::Op(Op::Load) => reads_whole(types, function, inst),
                // It is undefined in some lanes.
                InstOp::Call(_) => matches!(self.module.lane_op(inst), Some((LaneOp::Compact, _))),
                _ => false,
            };
            if let Some(result) = inst.result.filter(|&r| begins && n_leaves(types, function.ty(r)).is_some()) {
                self.reach(first + result.idx());
            }
        }
    }

    /// Finds what a function loads from environments and records.
    fn find_captured(&mut self, f: Func) {
        for (v, field) in captured(&self.module.types, self.module.func(f), self.roots) {
            let node = self.first[f.idx()] + v.idx();
            match field {
                Some(field) if field.0 != self.roots[1] => {
                    let number = *self.fields.entry(field).or_insert_with(|| {
                        self.is_reached.push(false);
                        self.loaded.push(Vec::new());
                        self.loaded.len() - 1
                    });
                    self.loaded[number].push(node);
                }
                _ => self.reach(node),
            }
        }
    }

    fn visit(&mut self, node: usize) {
        let n = self.module.funcs.len();
        let next: Vec<usize> = if node < self.first[n] {
            let f = self.first.partition_point(|&first| first <= node) - 1;
            if self.needed[f].is_none() {
                self.find_edges(Func::from_idx(f));
            }
            self.to[f].get(&Value::from_idx(node - self.first[f])).cloned().unwrap_or_default()
        } else if let Some(field) = node.checked_sub(self.first_field) {
            self.loaded[field].clone()
        } else if let Some(group) = node.checked_sub(self.first_group) {
            self.calls[group].clone()
        } else {
            let values = &self.values[self.values.partition_point(|v| v.first <= node) - 1];
            let param = |&f: &Func| Some(self.first[f.idx()] + self.entry(f).get(node - values.first)?.idx());
            values.members.iter().filter_map(param).collect()
        };
        next.into_iter().for_each(|node| self.reach(node));
    }

    fn entry(&self, f: Func) -> &[Value] {
        self.module.func(f).blocks.first().map_or(&[], |entry| &entry.params)
    }

    /// Finds where the values of a function go.
    fn find_edges(&mut self, f: Func) {
        let (function, types, first) = (self.module.func(f), &self.module.types, self.first[f.idx()]);
        let needed = needed(function);
        let mut to: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
        let results = self.results(f.idx());
        let fields = if self.fields.is_empty() { FxHashMap::default() } else { fields(types, function) };
        for block in &function.blocks {
            for edge in block.term.edges() {
                for (&arg, &param) in edge.args.iter().zip(&function.block(edge.block).params) {
                    to.entry(arg).or_default().push(first + param.idx());
                }
            }
            for inst in &block.insts {
                if let InstOp::Op(Op::Store) = inst.op
                    && let Some(number) = fields.get(&inst.args[0]).and_then(|field| self.fields.get(field))
                {
                    to.entry(inst.args[1]).or_default().push(self.first_field + number);
                }
                let args = match self.module.lane_op(inst) {
                    Some((LaneOp::Get | LaneOp::Compact, _)) => &inst.args[..1],
                    _ if passes_on(inst, types, function, &needed) => &inst.args[..],
                    _ => &[],
                };
                if let Some(result) = inst.result.filter(|&r| n_leaves(types, function.ty(r)).is_some()) {
                    args.iter().for_each(|&arg| to.entry(arg).or_default().push(first + result.idx()));
                }
            }
            for call in block.insts.iter().filter_map(Call::of).chain(Call::in_tail_position(&block.term)) {
                let Some(callee) = self.callees.number(types, f, function, &call) else { continue };
                for (i, &arg) in call.args.iter().enumerate() {
                    to.entry(arg).or_default().extend(self.param(callee, call.skipped + i));
                }
            }
            if let (Terminator::Return(values), Some(results)) = (&block.term, results) {
                values.iter().for_each(|&v| to.entry(v).or_default().push(results));
            }
        }
        (self.needed[f.idx()], self.to[f.idx()]) = (Some(needed), to);
    }

    fn found(mut self, own: &[Func]) -> (Told, Vec<Undefined>) {
        let n = self.module.funcs.len();
        let mut params: Vec<Rc<[usize]>> = Vec::new();
        let mut results = Vec::new();
        for callee in 0..self.is_fixed.len() {
            let f = match callee.checked_sub(n) {
                Some(at) => self.values[at].members[0],
                None => Func::from_idx(callee),
            };
            let entry = self.entry(f).iter().enumerate();
            let is_told = |v: Value| !self.is_fixed[callee] && self.is_reached[self.first[f.idx()] + v.idx()];
            params.push(entry.filter(|(_, v)| is_told(**v)).map(|(i, _)| i).collect());
            let tells = self.results(callee).is_some_and(|node| self.is_reached[node]);
            results.push(tells.then(|| self.module.func(f).rets.as_slice().into()));
        }
        let mut all: Vec<Undefined> = Vec::new();
        for &f in own {
            let nodes = self.first[f.idx()]..self.first[f.idx() + 1];
            let reached = nodes.clone().filter(|&node| self.is_reached[node]);
            let all_of_it = reached.map(|node| Value::from_idx(node - nodes.start)).collect();
            all.push(Undefined { all: all_of_it, needed: self.needed[f.idx()].take().unwrap_or_default() });
        }
        (Told { callees: self.callees, params, results }, all)
    }
}

/// The functions whose addresses are taken, for callers of the program.
fn addressed(module: &Module) -> Vec<Func> {
    let mut found: Vec<Func> = module.globals.iter().flat_map(|g| g.init.functions()).collect();
    let values = module.funcs.iter().flat_map(|f| &f.values);
    found.extend(values.filter_map(|v| if let Def::Const(Const::Func(f)) = v.def { Some(f) } else { None }));
    found.sort_unstable();
    found.dedup();
    found
}

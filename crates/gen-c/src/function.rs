//! One function of flat SSA as C text: its blocks in the order of [`Flow`], the values that become variables and those
//! that are nested in expressions.
//!
//! A value is nested where it is used if that is one place, if nothing in between writes memory it reads, and if the
//! expression does not become too deep. The expression is kept until then. What reads memory or contains a call is
//! *pending*: the next instruction that writes, or is called, makes it a variable first.

use crate::emit::Emitter;
use crate::expr::{Expr, Form};
use crate::flow::{Flow, Token, Way, ways};
use crate::names::Names;
use crate::nodes::{Exit, Loop, Node, Step, tidy};
use crate::print::{self, Variable};
use crate::{Result, bug, calls, ops};
use nyala_base::{Id, Span};
use nyala_flat::{Block, Const, Def, Edge, Func, Function, Inst, InstOp, Terminator, Value};
use nyala_ir::{Effect, Op, Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Expressions that are nested deeper than this, or whose texts are longer, become variables.
const MAX_NESTING: u32 = 8;
const MAX_LENGTH: usize = 100;
/// Parameters of blocks share variables in functions of at most this many blocks.
const MAX_SHARING: usize = 300;
/// An address or conversion of at most this length is repeated at each use.
const MAX_REPEATED: usize = 40;

/// The only use of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use {
    block: usize,
    n: u32,
}

/// How the parameter of a loop changes in each round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growth {
    /// A sum or a difference.
    pub op: Op,
    pub by: u64,
    /// The comparison that holds in the round, and whether the parameter is its first operand.
    pub test: Option<(Op, bool)>,
}

pub(crate) struct FunctionEmitter<'e, 'm> {
    pub e: &'e mut Emitter<'m>,
    pub function: &'m Function,
    pub func: Func,
    flow: Flow,
    uses: Vec<Use>,
    /// Expressions of values: names of variables, or what is nested in the next use.
    exprs: Vec<Option<Expr>>,
    pending: Vec<Value>,
    vars: Vec<Variable>,
    var_of: FxHashMap<Value, u32>,
    names: Names,
    /// Lists of statements under construction, the innermost last.
    lists: Vec<Vec<Node>>,
    /// For `for` loops, by header, the parameter that they count by.
    steps: FxHashMap<usize, (usize, Growth)>,
    /// The instruction that defines each value.
    defs: Vec<Option<(usize, usize)>>,
    /// Labels by the block that they stand before, or whose loop's body they end.
    labels: FxHashMap<(usize, bool), String>,
    /// The block of which a value is a parameter.
    home: Vec<Option<usize>>,
    /// Values with another use than as the address of a store.
    read_slots: Vec<bool>,
    /// Slots as they are declared at the start of the function.
    slots: String,
    block: usize,
    pub span: Span,
}

/// The text of a function's body.
pub(crate) fn emit_body(e: &mut Emitter, func: Func, params: &mut Vec<String>) -> Result<String> {
    let module = e.module;
    let function = module.func(func);
    let flow = Flow::new(function);
    let n = function.values.len();
    let names = e.local_names();
    let mut f = FunctionEmitter {
        e,
        function,
        func,
        flow,
        uses: vec![Use { block: usize::MAX, n: 0 }; n],
        exprs: vec![None; n],
        pending: Vec::new(),
        vars: Vec::new(),
        var_of: FxHashMap::default(),
        names,
        lists: vec![Vec::new()],
        steps: FxHashMap::default(),
        defs: definitions(function, n),
        labels: FxHashMap::default(),
        home: homes(function, n),
        read_slots: vec![false; n],
        slots: String::new(),
        block: 0,
        span: function.span,
    };
    f.emit(params)
}

/// For each value the block of which it is a parameter.
fn homes(function: &Function, n: usize) -> Vec<Option<usize>> {
    let mut homes = vec![None; n];
    for (b, block) in function.blocks.iter().enumerate() {
        block.params.iter().for_each(|p| homes[p.idx()] = Some(b));
    }
    homes
}

fn definitions(function: &Function, n: usize) -> Vec<Option<(usize, usize)>> {
    let mut defs = vec![None; n];
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(r) = inst.result {
                defs[r.idx()] = Some((b, i));
            }
        }
    }
    defs
}

impl<'m> FunctionEmitter<'_, 'm> {
    pub fn ty(&self, v: Value) -> Ty {
        self.function.ty(v)
    }

    pub fn is_void(&self, v: Value) -> bool {
        self.e.types.is_void(self.ty(v))
    }

    /// The type's name, as it stands before a declared name.
    pub fn declared(&mut self, ty: Ty) -> Result<String> {
        self.e.types.declared(ty, &mut self.e.names)
    }

    pub fn type_name(&mut self, ty: Ty) -> Result<String> {
        self.e.types.name(ty, &mut self.e.names)
    }

    fn emit(&mut self, params: &mut Vec<String>) -> Result<String> {
        self.find_steps();
        self.count_uses();
        self.parameters(params)?;
        self.name_values();
        let ways = ways(&self.flow);
        self.find_labels(&ways);
        let tokens = self.flow.tokens.clone();
        // Conditions of the branches around.
        let mut branches: Vec<(Expr, Option<Vec<Node>>)> = Vec::new();
        for (i, token) in tokens.iter().enumerate() {
            match *token {
                Token::Block(b) => {
                    if !self.flow.is_header[b] {
                        self.label(b);
                    }
                    self.instructions(b)?;
                }
                Token::Moves(b, nth) => self.moves(b, nth)?,
                Token::If(b) => {
                    let cond = self.condition(b)?;
                    branches.push((cond, None));
                    self.lists.push(Vec::new());
                }
                Token::Else => {
                    let then = self.lists.pop().unwrap_or_default();
                    if let Some(branch) = branches.last_mut() {
                        branch.1 = Some(then);
                    }
                    self.lists.push(Vec::new());
                }
                Token::End => {
                    let last = self.lists.pop().unwrap_or_default();
                    let Some((cond, then)) = branches.pop() else { return Err(bug("a branch without a beginning")) };
                    let (then, els) = match then {
                        Some(then) => (tidy(then), tidy(last)),
                        None => (tidy(last), Vec::new()),
                    };
                    self.push(Node::If { cond, then, els });
                }
                Token::Loop(b) => {
                    self.label(b);
                    self.lists.push(Vec::new());
                }
                Token::EndLoop(b) => {
                    if let Some(label) = self.labels.get(&(b, true)) {
                        let label = label.clone();
                        self.push(Node::Label(label));
                    }
                    let body = tidy(self.lists.pop().unwrap_or_default());
                    let step = self.step(b)?;
                    self.push(Node::Loop(Box::new(Loop { init: None, before: None, after: None, step, body })));
                }
                Token::Jump(to) => self.jump(ways[i], to),
                Token::Leave(b) => self.leave(b)?,
                Token::LeaveBy(b, nth) => self.leave_by(b, nth)?,
            }
        }
        let mut nodes = tidy(self.lists.pop().unwrap_or_default());
        // The end of a function that returns nothing.
        if matches!(nodes.last(), Some(Node::Exit { text, .. }) if text == "return") {
            nodes.pop();
        }
        let early = self.flow.is_irregular || (!self.labels.is_empty() && !self.e.dialect.late_declarations());
        Ok(std::mem::take(&mut self.slots) + &print::body(&nodes, &self.vars, early))
    }

    pub fn push(&mut self, node: Node) {
        if let Some(list) = self.lists.last_mut() {
            list.push(node);
        }
    }

    /// A statement with an effect.
    pub fn statement(&mut self, text: String, operands: &[&Expr]) {
        let e = Expr::atom("").of(operands);
        self.push(Node::Do { text, vars: e.vars });
    }

    // --- Facts about values -------------------------------------------------------------------------------------

    /// Whether the n-th argument of an edge is written: not what a `for` does between rounds.
    fn is_moved(&self, from: usize, to: usize, at: usize) -> bool {
        !self.flow.is_back_edge(from, to) || self.steps.get(&to).is_none_or(|s| s.0 != at)
    }

    /// For each value whether something that happens depends on it.
    fn live(&self) -> Vec<bool> {
        let function = self.function;
        let mut place = vec![None; function.values.len()];
        let mut work: Vec<Value> = Vec::new();
        for &b in &self.flow.cfg.rpo {
            let block = function.block(b);
            block.params.iter().enumerate().for_each(|(i, p)| place[p.idx()] = Some((b, i)));
            for inst in block.insts.iter().filter(|i| !i.is_droppable()) {
                work.extend(&inst.args);
            }
            match &block.term {
                Terminator::Jump(_) => {}
                Terminator::Branch { cond, .. } => work.push(*cond),
                term => term.for_each_use(|v| work.push(v)),
            }
        }
        let mut live = vec![false; function.values.len()];
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut live[v.idx()], true) {
                continue;
            }
            if let Some(inst) = self.definition(v) {
                work.extend(&inst.args);
            }
            let Some((b, i)) = place[v.idx()] else { continue };
            for p in &self.flow.cfg.preds[b.idx()] {
                for edge in function.block(*p).term.edges().filter(|e| e.block == b) {
                    if self.is_moved(p.idx(), b.idx(), i) {
                        work.push(edge.args[i]);
                    }
                }
            }
        }
        live
    }

    fn count_uses(&mut self) {
        let live = self.live();
        let function = self.function;
        let mut uses = std::mem::take(&mut self.uses);
        let mut read = std::mem::take(&mut self.read_slots);
        for b in self.flow.cfg.rpo.iter().map(|b| b.idx()) {
            let mut used = |v: Value, times: u32| {
                let u = &mut uses[v.idx()];
                *u = Use { block: b, n: u.n + times };
            };
            let block = &function.blocks[b];
            let happens = |i: &&Inst| !i.is_droppable() || i.result.is_some_and(|r| live[r.idx()]);
            for inst in block.insts.iter().filter(happens) {
                inst.args.iter().for_each(|&v| used(v, 1));
                let address = (inst.op == InstOp::Op(Op::Store)) as usize;
                inst.args.iter().skip(address).for_each(|v| read[v.idx()] = true);
            }
            block.term.for_each_use(|v| read[v.idx()] = true);
            match &block.term {
                Terminator::Return(results) if self.flow.returns[b] => results.iter().for_each(|&v| used(v, 2)),
                Terminator::Jump(_) | Terminator::Branch { .. } => {
                    if let Terminator::Branch { cond, .. } = &block.term {
                        used(*cond, 1);
                    }
                    for edge in block.term.edges() {
                        let params = &function.block(edge.block).params;
                        for (i, (param, &arg)) in params.iter().zip(&edge.args).enumerate() {
                            if live[param.idx()] && self.is_moved(b, edge.block.idx(), i) {
                                used(arg, 1);
                            }
                        }
                    }
                }
                term => term.for_each_use(|v| used(v, 1)),
            }
        }
        (self.uses, self.read_slots) = (uses, read);
    }

    /// The instruction that defines a value.
    fn definition(&self, v: Value) -> Option<&'m Inst> {
        let (b, i) = self.defs[v.idx()]?;
        Some(&self.function.blocks[b].insts[i])
    }

    /// Finds loops with a tested parameter that changes by the same in each round.
    fn find_steps(&mut self) {
        if self.flow.is_irregular {
            return;
        }
        let headers: Vec<usize> = (0..self.function.blocks.len()).filter(|&b| self.flow.is_header[b]).collect();
        for header in headers {
            let block = &self.function.blocks[header];
            let Terminator::Branch { cond, then, els } = &block.term else { continue };
            let Some(Inst { op: InstOp::Op(op), args, .. }) = self.definition(*cond) else { continue };
            let stays = self.flow.is_in_loop(then.block.idx(), header);
            if !op.is_comparison() || stays == self.flow.is_in_loop(els.block.idx(), header) {
                continue;
            }
            for (at, param) in block.params.iter().enumerate().filter(|(_, p)| args.contains(p)) {
                if let Some((sum, by)) = self.growth(header, at) {
                    let test = stays.then_some((*op, args[0] == *param));
                    self.steps.insert(header, (at, Growth { op: sum, by, test }));
                    break;
                }
            }
        }
    }

    /// The operation and the constant by which a parameter of a loop changes in every round.
    fn growth(&self, header: usize, at: usize) -> Option<(Op, u64)> {
        let param = self.function.blocks[header].params[at];
        let mut found = None;
        for p in self.flow.cfg.preds[header].iter().filter(|p| self.flow.is_back_edge(p.idx(), header)) {
            for edge in self.function.block(*p).term.edges().filter(|e| e.block.idx() == header) {
                let inst = self.definition(edge.args[at])?;
                let is_int = self.e.module.types.as_prim(self.ty(param))?.is_int();
                let InstOp::Op(op @ (Op::Add | Op::Sub)) = inst.op else { return None };
                let grown = (op, self.function.as_bits(inst.args[1]).filter(|_| is_int && inst.args[0] == param)?);
                if *found.get_or_insert(grown) != grown {
                    return None;
                }
            }
        }
        found
    }

    /// What a `for` loop does between rounds.
    fn step(&mut self, header: usize) -> Result<Option<Step>> {
        let Some(&(at, growth)) = self.steps.get(&header) else { return Ok(None) };
        let param = self.function.blocks[header].params[at];
        let var = self.variable(param)?;
        let name = self.vars[var as usize].name.clone();
        let Some(prim) = self.e.module.types.as_prim(self.ty(param)) else { return Err(bug("a step of no number")) };
        let text = ops::numbers::step(self.e, &Expr::var(&name, var), prim, growth)?;
        Ok(Some(Step { var, text, vars: vec![var] }))
    }

    /// The function's parameters, named and declared.
    fn parameters(&mut self, params: &mut Vec<String>) -> Result<()> {
        let entry = &self.function.blocks[0];
        for &p in &entry.params {
            if self.is_void(p) {
                continue;
            }
            let var = self.variable(p)?;
            self.vars[var as usize].is_parameter = true;
            let Variable { name, declared, .. } = &self.vars[var as usize];
            params.push(format!("{declared}{name}"));
            self.exprs[p.idx()] = Some(Expr::var(&name.clone(), var));
        }
        // A loop that begins with the function goes on with the function's own variables.
        if let Terminator::Jump(edge) = &entry.term
            && self.flow.is_header[edge.block.idx()]
        {
            let targets = self.function.block(edge.block).params.clone();
            for (&arg, &param) in edge.args.iter().zip(&targets) {
                if entry.params.contains(&arg) && self.uses[arg.idx()].n == 1 && !self.is_void(arg) {
                    self.var_of.insert(param, self.var_of[&arg]);
                    self.exprs[param.idx()] = self.exprs[arg.idx()].clone();
                }
            }
        }
        Ok(())
    }

    /// Parameters of blocks are variables.
    fn name_values(&mut self) {
        let function = self.function;
        for b in self.flow.cfg.rpo.clone().into_iter().skip(1) {
            if self.flow.returns[b.idx()] {
                continue;
            }
            for &p in &function.block(b).params {
                if !self.is_void(p) && self.uses[p.idx()].n > 0 && self.exprs[p.idx()].is_none() {
                    if let Some(source) = self.source(b, p) {
                        self.var_of.insert(p, self.var_of[&source]);
                        self.exprs[p.idx()] = self.exprs[source.idx()].clone();
                        continue;
                    }
                    // The type is one that values have; what is wrong with it was reported with the definition.
                    if let Ok(var) = self.variable(p) {
                        self.exprs[p.idx()] = Some(Expr::var(&self.vars[var as usize].name.clone(), var));
                    }
                }
            }
        }
    }

    /// The parameter of another block whose variable a block's parameter can take over: it gives the latter its value, and
    /// is not used from there on until it gets its next value.
    fn source(&self, b: Block, param: Value) -> Option<Value> {
        let function = self.function;
        if self.flow.is_irregular || function.blocks.len() > MAX_SHARING {
            return None;
        }
        let params = &function.block(b).params;
        let at = params.iter().position(|&p| p == param)?;
        for p in self.flow.cfg.preds[b.idx()].iter().filter(|p| !self.flow.is_back_edge(p.idx(), b.idx())) {
            for edge in function.block(*p).term.edges().filter(|e| e.block == b) {
                let arg = edge.args[at];
                let (Some(home), Some(var)) = (self.home[arg.idx()], self.var_of.get(&arg)) else { continue };
                let is_taken = params.iter().any(|p| self.var_of.get(p) == Some(var));
                let counts = |s: &(usize, Growth)| function.blocks[home].params[s.0] == arg;
                if !is_taken && !self.steps.get(&home).is_some_and(counts) && !self.is_used_after(arg, home, b) {
                    return Some(arg);
                }
            }
        }
        None
    }

    /// Whether a parameter of the block `home` may be used when control has come to a block, before it is at `home` again.
    /// Values computed of it count as well: their expressions may be nested where they are used.
    fn is_used_after(&self, v: Value, home: usize, at: Block) -> bool {
        let mut derived: FxHashSet<Value> = FxHashSet::default();
        derived.insert(v);
        for &b in &self.flow.cfg.rpo {
            for inst in
                self.function.block(b).insts.iter().filter(|i| matches!(i.op, InstOp::Op(_) | InstOp::Vector(_)))
            {
                if let Some(result) = inst.result
                    && inst.args.iter().any(|a| derived.contains(a))
                {
                    derived.insert(result);
                }
            }
        }
        let mut seen = vec![false; self.function.blocks.len()];
        let mut work = vec![at.idx()];
        while let Some(b) = work.pop() {
            if b == home || std::mem::replace(&mut seen[b], true) {
                continue;
            }
            let block = &self.function.blocks[b];
            let mut used = block.insts.iter().flat_map(|i| &i.args).any(|a| derived.contains(a));
            block.term.for_each_use(|u| used |= derived.contains(&u));
            if used {
                return true;
            }
            work.extend(block.term.edges().map(|e| e.block.idx()));
        }
        false
    }

    /// The variable of a value.
    fn variable(&mut self, v: Value) -> Result<u32> {
        if let Some(&var) = self.var_of.get(&v) {
            return Ok(var);
        }
        let function = self.function;
        let var = self.temporary(function.name(v), self.ty(v))?;
        self.var_of.insert(v, var);
        Ok(var)
    }

    /// A new variable.
    fn temporary(&mut self, name: &str, ty: Ty) -> Result<u32> {
        let name = self.names.pick(name, letter(&self.e.module.types, ty));
        let declared = self.declared(ty)?;
        self.vars.push(Variable { name, declared, is_parameter: false });
        Ok(self.vars.len() as u32 - 1)
    }

    // --- Values -------------------------------------------------------------------------------------------------

    /// The expression of a value, taken out of the pending ones: used in what is being written.
    pub fn raw(&mut self, v: Value) -> Result<Expr> {
        let function = self.function;
        if let Def::Const(constant) = function.values[v.idx()].def {
            return self.e.constant(constant, self.ty(v));
        }
        self.pending.retain(|&p| p != v);
        match &self.exprs[v.idx()] {
            Some(e) => Ok(e.clone()),
            None => Err(bug(format!("a value of `{}` that is not made yet", function.name))),
        }
    }

    /// The expression of a value, of the value's type.
    pub fn value(&mut self, v: Value) -> Result<Expr> {
        let raw = self.raw(v)?;
        self.e.rendered(raw, true)
    }

    /// The same, where C converts it to the value's type anyway.
    pub fn converted(&mut self, v: Value) -> Result<Expr> {
        let raw = self.raw(v)?;
        self.e.rendered(raw, false)
    }

    /// Makes the pending values variables: those that have to be evaluated once and, before a write, those that read.
    pub fn flush(&mut self, before_write: bool) -> Result<()> {
        for v in std::mem::take(&mut self.pending) {
            let Some(e) = self.exprs[v.idx()].clone() else { continue };
            if e.must || before_write && e.reads {
                self.assign(v, e)?;
            } else {
                self.pending.push(v);
            }
        }
        Ok(())
    }

    /// Makes a value a variable.
    fn assign(&mut self, v: Value, e: Expr) -> Result<()> {
        let var = self.variable(v)?;
        let value = self.assigned(e)?;
        self.push(Node::Assign { var, value });
        self.exprs[v.idx()] = Some(Expr::var(&self.vars[var as usize].name.clone(), var));
        Ok(())
    }

    /// An expression as a variable gets it.
    fn assigned(&mut self, e: Expr) -> Result<Expr> {
        if matches!(e.form, Form::Braces(_)) { Ok(e) } else { self.e.rendered(e, false) }
    }

    /// A variable with the value of an expression.
    pub fn spill(&mut self, e: Expr, ty: Ty) -> Result<Expr> {
        let var = self.temporary("", ty)?;
        let value = self.assigned(e)?;
        self.push(Node::Assign { var, value });
        Ok(Expr::var(&self.vars[var as usize].name.clone(), var))
    }

    /// A new variable that counts, with its name.
    pub fn counter(&mut self, ty: Ty) -> Result<(String, u32)> {
        let var = self.temporary("i", ty)?;
        Ok((self.vars[var as usize].name.clone(), var))
    }

    /// The name of the variable that gets the value now; the caller goes on to change it.
    pub fn variable_with(&mut self, v: Value, e: Expr) -> Result<(String, u32)> {
        self.assign(v, e)?;
        let var = self.var_of[&v];
        Ok((self.vars[var as usize].name.clone(), var))
    }

    pub fn n_uses(&self, v: Value) -> u32 {
        self.uses[v.idx()].n
    }

    /// Defines a value by its expression: nested in its use, or as a variable.
    pub fn define(&mut self, v: Value, e: Expr, op: InstOp) -> Result<()> {
        let Use { block, n } = self.uses[v.idx()];
        if n == 0 || self.is_void(v) {
            if e.must && !matches!(op, InstOp::Op(_)) {
                self.statement(e.text.clone(), &[&e]);
            }
            return Ok(());
        }
        let is_pure = !e.reads && !e.must;
        let is_small = e.depth <= MAX_NESTING && e.text.len() <= MAX_LENGTH;
        let is_near = block == self.block
            || is_pure && self.function.name(v).is_empty() && {
                let innermost = |b: usize| self.flow.loops_of(b).next();
                innermost(block) == innermost(self.block)
            };
        let is_repeated = is_pure && e.text.len() <= MAX_REPEATED && is_cheap(op);
        if is_repeated || n == 1 && is_small && is_near {
            if !is_pure {
                self.pending.push(v);
            }
            self.exprs[v.idx()] = Some(e);
            return Ok(());
        }
        self.assign(v, e)
    }

    // --- Instructions and ends of blocks ------------------------------------------------------------------------

    fn instructions(&mut self, b: usize) -> Result<()> {
        self.block = b;
        let function = self.function;
        for inst in &function.blocks[b].insts {
            self.span = if inst.span.is_none() { function.span } else { inst.span };
            match inst.op {
                InstOp::Op(op) => {
                    let is_unused = inst.result.is_some_and(|r| self.n_uses(r) == 0);
                    if !(is_unused && inst.is_droppable()) {
                        ops::emit(self, op, inst)?;
                    }
                }
                InstOp::Call(_) | InstOp::CallIndirect => calls::call(self, inst)?,
                InstOp::Vectorize(body, ..) => calls::vectorize(self, body, &inst.args)?,
                InstOp::Vector(op) => {
                    let is_unused = inst.result.is_some_and(|r| self.n_uses(r) == 0);
                    if !(is_unused && inst.is_droppable()) {
                        ops::vectors::emit(self, op, inst)?;
                    }
                }
                InstOp::Launch(..) => return Err(bug("`launch` in C")),
            }
        }
        // A value that is used elsewhere is made here.
        let is_jump = matches!(function.blocks[b].term, Terminator::Jump(_));
        for v in std::mem::take(&mut self.pending) {
            let Some(e) = self.exprs[v.idx()].clone() else { continue };
            let mut in_terminator = false;
            function.blocks[b].term.for_each_use(|u| in_terminator |= u == v);
            let is_cond = matches!(&function.blocks[b].term, Terminator::Branch { cond, .. } if *cond == v);
            if e.must && !is_cond && !is_jump && in_terminator && function.blocks[b].term.edges().next().is_some() {
                self.assign(v, e)?;
            } else {
                self.pending.push(v);
            }
        }
        Ok(())
    }

    /// What this back end does not do yet.
    pub fn limitation(&self, what: String) -> Box<nyala_base::Diagnostic> {
        crate::limitation(self.span, format!("{what} cannot be written in {} yet", self.e.dialect.name))
    }

    fn condition(&mut self, b: usize) -> Result<Expr> {
        let function = self.function;
        let Terminator::Branch { cond, .. } = &function.blocks[b].term else { return Err(bug("no branch")) };
        self.value(*cond)
    }

    /// Assigns an edge's arguments to the parameters of its target, as if all at once.
    fn moves(&mut self, b: usize, nth: usize) -> Result<()> {
        let function = self.function;
        let Some(edge) = function.blocks[b].term.edges().nth(nth) else { return Err(bug("no such edge")) };
        let is_back = self.flow.is_back_edge(b, edge.block.idx());
        let step = self.steps.get(&edge.block.idx()).map(|s| s.0);
        let mut moves: Vec<(u32, Expr, bool)> = Vec::new();
        for (i, (&param, &arg)) in function.block(edge.block).params.iter().zip(&edge.args).enumerate() {
            if self.is_void(param) || self.uses[param.idx()].n == 0 || is_back && step == Some(i) {
                continue;
            }
            // A parameter of a loop has a value from the first round on.
            if is_back && function.as_const(arg) == Some(Const::Undef) {
                continue;
            }
            let var = self.var_of[&param];
            let value = self.raw(arg)?;
            let value = self.assigned(value)?;
            if value.vars != [var] || value.text != self.vars[var as usize].name {
                moves.push((var, value, step == Some(i)));
            }
        }
        self.assign_at_once(moves)
    }

    /// Assigns variables in an order in which each is read before it is written. The variable of a `for` is the last.
    fn assign_at_once(&mut self, mut moves: Vec<(u32, Expr, bool)>) -> Result<()> {
        moves.sort_by_key(|m| m.2);
        while !moves.is_empty() {
            let is_read =
                |var: u32, but: usize| moves.iter().enumerate().any(|(i, m)| i != but && m.1.vars.contains(&var));
            match (0..moves.len()).find(|&i| !is_read(moves[i].0, i)) {
                Some(i) => {
                    let (var, value, _) = moves.remove(i);
                    self.push(Node::Assign { var, value });
                }
                None => {
                    // Every variable is read by another: one of them is copied.
                    let var = moves[0].0;
                    let Variable { name, declared, .. } = self.vars[var as usize].clone();
                    let copy_name = self.names.pick(&format!("old_{name}"), "old");
                    self.vars.push(Variable { name: copy_name.clone(), declared, is_parameter: false });
                    let copy = self.vars.len() as u32 - 1;
                    self.push(Node::Assign { var: copy, value: Expr::var(&name, var) });
                    for m in moves.iter_mut().skip(1).filter(|m| m.1.vars.contains(&var)) {
                        m.1.text = replace_word(&m.1.text, &name, &copy_name);
                        m.1.update = None;
                        m.1.vars.iter_mut().filter(|v| **v == var).for_each(|v| *v = copy);
                    }
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, b: usize) -> Result<()> {
        let function = self.function;
        match &function.blocks[b].term {
            Terminator::Return(results) => {
                let results: Vec<Value> = results.iter().copied().filter(|&v| !self.is_void(v)).collect();
                let value = match &results[..] {
                    [] => None,
                    [one] if function.rets.len() == 1 => Some(self.converted(*one)?),
                    many => {
                        let ty = self.e.result_ty(&function.rets)?;
                        let mut parts = Vec::new();
                        for &v in many {
                            parts.push(self.converted(v)?);
                        }
                        let braces = ops::aggregates::braces(self, ty, &parts)?;
                        Some(self.e.rendered(braces, true)?)
                    }
                };
                self.flush(true)?;
                self.give_back(value);
                Ok(())
            }
            Terminator::TailCall { callee, args } => calls::tail_call(self, *callee, args),
            Terminator::Unreachable => {
                self.flush(true)?;
                let text = self.e.dialect.unreachable.to_string();
                self.push(Node::Exit { exit: Exit::Other, text, vars: Vec::new() });
                Ok(())
            }
            Terminator::Jump(_) | Terminator::Branch { .. } => Err(bug("a block with successors has no end")),
        }
    }

    /// Returns a value.
    pub fn give_back(&mut self, value: Option<Expr>) {
        let text = value.as_ref().map_or("return".to_string(), |v| format!("return {}", v.text));
        let vars = value.map_or(Vec::new(), |v| v.vars);
        self.push(Node::Exit { exit: Exit::Other, text, vars });
    }

    /// Returns what an edge brings to a block that only returns.
    fn leave_by(&mut self, b: usize, nth: usize) -> Result<()> {
        let function = self.function;
        let Some(Edge { block, args }) = function.blocks[b].term.edges().nth(nth) else { return Err(bug("no edge")) };
        let target = function.block(*block);
        let Terminator::Return(results) = &target.term else { return Err(bug("no return")) };
        let value = match results.first().filter(|&&v| !self.is_void(v)) {
            None => None,
            Some(result) => {
                let at = target.params.iter().position(|p| p == result);
                Some(self.converted(at.map_or(*result, |i| args[i]))?)
            }
        };
        self.give_back(value);
        Ok(())
    }

    fn jump(&mut self, way: Way, to: usize) {
        let (exit, text) = match way {
            Way::Fall => return,
            Way::Break => (Exit::Break, "break".to_string()),
            Way::Continue => (Exit::Continue, "continue".to_string()),
            Way::Goto => (Exit::Other, format!("goto {}", self.labels[&(to, false)])),
            Way::Next => (Exit::Other, format!("goto {}", self.labels[&(to, true)])),
        };
        self.push(Node::Exit { exit, text, vars: Vec::new() });
    }

    fn label(&mut self, b: usize) {
        if let Some(label) = self.labels.get(&(b, false)) {
            let label = label.clone();
            self.push(Node::Label(label));
        }
    }

    fn find_labels(&mut self, ways: &[Way]) {
        let mut seen: FxHashSet<(usize, bool)> = FxHashSet::default();
        for (i, token) in self.flow.tokens.iter().enumerate() {
            let (Token::Jump(to), way @ (Way::Goto | Way::Next)) = (*token, ways[i]) else { continue };
            if seen.insert((to, way == Way::Next)) {
                let block = &self.function.block(Block::from_idx(to)).name;
                let wanted = if way == Way::Next { format!("next_{block}") } else { block.clone() };
                let name = self.names.pick(&wanted, "label");
                self.labels.insert((to, way == Way::Next), name);
            }
        }
    }

    // --- Slots --------------------------------------------------------------------------------------------------

    /// A local variable with an address.
    pub fn slot(&mut self, v: Value, ty: Ty) -> Result<()> {
        let function = self.function;
        if self.e.types.is_void(ty) {
            self.exprs[v.idx()] = Some(Expr::atom(self.e.dialect.null));
            return Ok(());
        }
        let name = self.names.pick(function.name(v), "slot");
        let unused = if self.read_slots[v.idx()] { "" } else { self.e.dialect.unused };
        let kind = self.e.module.types.kind(ty).clone();
        let (text, e) = match kind {
            TyKind::Array(elem, n) => {
                (format!("{}{name}[{n}]{unused};", self.declared(elem)?), Expr::atom(name.clone()))
            }
            _ => (format!("{}{name}{unused};", self.declared(ty)?), Expr::atom(name.clone()).form(Form::Place)),
        };
        self.slots.push_str(&format!("    {text}\n"));
        self.exprs[v.idx()] = Some(e);
        Ok(())
    }
}

/// Whether the operation may be repeated at each use: no code comes of it, or next to none.
fn is_cheap(op: InstOp) -> bool {
    match op {
        InstOp::Op(op) => {
            matches!(op, Op::Lea | Op::Bitcast | Op::Restrict | Op::Aligned | Op::Scope | Op::Extract)
                && op.effect() != Effect::Partial
        }
        InstOp::Vector(_) | InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => {
            false
        }
    }
}

/// The usual name of a value without one.
fn letter(types: &nyala_ir::Types, ty: Ty) -> &'static str {
    match types.kind(ty) {
        TyKind::Prim(p) if *p == nyala_ir::Prim::Bool => "is",
        TyKind::Prim(p) if p.is_float() => "x",
        TyKind::Prim(_) => "n",
        TyKind::Ptr { .. } => "p",
        TyKind::Code => "f",
        TyKind::Vector(..) => "v",
        _ => "s",
    }
}

/// Replaces a name, where it is not a part of another name.
fn replace_word(text: &str, name: &str, by: &str) -> String {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back().filter(|_| at == 0));
        let after = rest[at + name.len()..].chars().next();
        let is_member = before == Some('.') || rest[..at].ends_with("->");
        out.push_str(&rest[..at]);
        out.push_str(if is_word(before) || is_word(after) || is_member { name } else { by });
        rest = &rest[at + name.len()..];
    }
    out + rest
}

//! One function of flat SSA as C text: its blocks in the order of [`Flow`], the values that become variables and those
//! that are nested in expressions.
//!
//! A value is nested where it is used if that is one place, if nothing in between writes memory it reads, and if the
//! expression does not become too deep. The expression is kept until then. An expression that reads memory or contains
//! a call is *pending*: before the next instruction that writes or is a call, it becomes a variable.

mod edges;
mod facts;

use crate::emit::Emitter;
use crate::expr::{Expr, Form};
use crate::flow::{Flow, Token, ways};
use crate::names::Names;
use crate::print::{self, Variable};
use crate::statements::{Loop, Node, tidy};
use crate::{Result, bug, calls, ops};
use nyala_base::diagnostics::must_be_known;
use nyala_base::{Id, Span};
use nyala_flat::{Def, Func, Function, InstOp, Terminator, Value};
use nyala_ir::{Effect, Op, Ty, TyKind};
use rustc_hash::FxHashMap;

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
    /// Addresses that whole arrays are read from or written to.
    whole_slots: Vec<bool>,
    /// Values that the program certainly computes where their block is executed.
    certain: Vec<bool>,
    /// Slots as they are declared at the start of the function.
    slots: String,
    /// The variable by which a block votes.
    votes: Option<String>,
    /// The last call of `printf`.
    pub print: Option<crate::devices::Print>,
    block: usize,
    pub span: Span,
}

/// The text of a function's body.
pub(crate) fn emit_body(e: &mut Emitter, func: Func, params: &mut Vec<String>) -> Result<String> {
    let module = e.module;
    let function = module.func(func);
    let flow = Flow::new(function);
    let n = function.values.len();
    let certain = facts::certain(function, &flow, &module.types, n);
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
        defs: facts::definitions(function, n),
        labels: FxHashMap::default(),
        home: facts::homes(function, n),
        read_slots: vec![false; n],
        whole_slots: vec![false; n],
        certain,
        slots: String::new(),
        votes: None,
        print: None,
        block: 0,
        span: function.span,
    };
    f.emit(params)
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
        self.find_whole();
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
        if self.vars.iter().any(|v| !v.is_parameter && v.declared.ends_with('&')) {
            self.span = self.function.span;
            return Err(Box::new(must_be_known::error(self.span, "the channel that a kernel reads or writes")));
        }
        let mut nodes = tidy(self.lists.pop().unwrap_or_default());
        drop_last_return(&mut nodes);
        let early = self.flow.is_irregular || (!self.labels.is_empty() && !self.e.dialect.late_declarations());
        Ok(std::mem::take(&mut self.slots) + &print::body(&nodes, &self.vars, early, self.e.dialect.compound))
    }

    pub fn push(&mut self, node: Node) {
        if let Some(list) = self.lists.last_mut() {
            list.push(node);
        }
    }

    /// The place of the last statement: how deep its list is nested, and its index there.
    pub fn last(&self) -> (usize, usize) {
        (self.lists.len(), self.lists.last().map_or(0, Vec::len))
    }

    /// Whether nothing came after the statement at a place.
    pub fn is_last(&self, at: (usize, usize)) -> bool {
        self.last() == at
            && matches!(self.lists.last().and_then(|l| l.last()), Some(Node::Do { text, .. }) if text.starts_with("printf("))
    }

    /// Takes the last statement away.
    pub fn drop_last(&mut self) {
        self.lists.last_mut().and_then(Vec::pop);
    }

    /// A statement with an effect.
    pub fn statement(&mut self, text: String, operands: &[&Expr]) {
        let e = Expr::atom("").of(operands);
        self.push(Node::Do { text, vars: e.vars });
    }

    /// The function's parameters, named and declared.
    fn parameters(&mut self, params: &mut Vec<String>) -> Result<()> {
        let entry = &self.function.blocks[0];
        let read_only = nyala_flat::read_only(self.e.module, self.func).params;
        for &p in &entry.params {
            if self.is_void(p) {
                continue;
            }
            let var = self.variable(p)?;
            self.vars[var as usize].is_parameter = true;
            let Variable { name, declared, .. } = &self.vars[var as usize];
            // The name of a pointer's type ends with the asterisk.
            let restrict = match self.e.dialect.restrict {
                "" => String::new(),
                word if read_only.contains(&p) && declared.ends_with('*') => format!("{word} "),
                _ => String::new(),
            };
            params.push(format!("{declared}{restrict}{name}"));
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

    /// The expression of a value, in a place where C converts it to the value's type anyway.
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

    /// Whether the program certainly computes a value where its block is executed.
    pub fn is_certain(&self, v: Value) -> bool {
        self.certain[v.idx()]
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
        // What is still pending is used by the end of the block. An argument of one edge of a branch is written first on
        // that side, so that the other side must not make it a variable.
        let Terminator::Branch { cond, .. } = &function.blocks[b].term else { return Ok(()) };
        for v in std::mem::take(&mut self.pending) {
            match self.exprs[v.idx()].clone() {
                _ if v == *cond => self.pending.push(v),
                Some(e) if e.must => self.assign(v, e)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// See [`limitation`](crate::limitation); at the instruction that is written.
    pub fn limitation(&self, what: &str, remedy: &str) -> Box<nyala_base::Diagnostic> {
        self.e.limitation(self.span, what, remedy)
    }

    fn condition(&mut self, b: usize) -> Result<Expr> {
        let function = self.function;
        let Terminator::Branch { cond, .. } = &function.blocks[b].term else { return Err(bug("no branch")) };
        self.value(*cond)
    }

    /// A free name in the function.
    pub fn local_name(&mut self, wanted: &str) -> String {
        self.names.pick(wanted, "local")
    }

    /// A declaration at the start of the function.
    pub fn declare(&mut self, text: String) {
        self.slots.push_str(&format!("    {text}\n"));
    }

    /// The variable of a kernel by which its block votes, which is declared.
    pub fn votes(&mut self, declaration: &str) -> String {
        if let Some(name) = &self.votes {
            return name.clone();
        }
        let name = self.local_name("votes");
        self.declare(format!("{declaration} {name};"));
        self.votes = Some(name.clone());
        name
    }

    /// The expression of a value that is there from the start.
    pub fn set(&mut self, v: Value, e: Expr) {
        self.exprs[v.idx()] = Some(e);
    }

    /// Makes all pending values variables that read memory or have to be evaluated once.
    pub fn flush_all(&mut self) -> Result<()> {
        self.flush(true)
    }

    /// A local variable with an address.
    pub fn slot(&mut self, v: Value, ty: Ty) -> Result<()> {
        let function = self.function;
        if self.e.types.is_void(ty) {
            self.exprs[v.idx()] = Some(Expr::atom(self.e.dialect.null));
            return Ok(());
        }
        let name = self.names.pick(function.name(v), "slot");
        if self.e.types.channels.contains_key(&ty) {
            let ty = self.e.types.channel(ty, &mut self.e.names)?;
            self.declare(format!("{ty} {name};"));
            self.set(v, Expr::atom(name));
            return Ok(());
        }
        let unused = if self.read_slots[v.idx()] { "" } else { self.e.dialect.unused };
        let kind = self.e.module.types.kind(ty).clone();
        let (text, e) = match kind {
            // An array that is also read or written as a whole is a struct, so that it is accessed as one type. Tools for circuits
            // convert no addresses at all.
            TyKind::Array(..) if self.whole_slots[v.idx()] || !self.e.dialect.channel.is_empty() => {
                (format!("{}{name}{unused};", self.declared(ty)?), Expr::atom(name.clone()).form(Form::ArrayPlace))
            }
            TyKind::Array(elem, n) => (
                format!("{}{name}[{n}]{unused};", self.e.types.stored(elem, &mut self.e.names)?),
                Expr::atom(name.clone()),
            ),
            _ => (
                format!("{}{name}{unused};", self.e.types.stored(ty, &mut self.e.names)?),
                Expr::atom(name.clone()).form(Form::Place),
            ),
        };
        self.slots.push_str(&format!("    {text}\n"));
        self.exprs[v.idx()] = Some(e);
        Ok(())
    }
}

/// Removes a `return` without a value where the function ends anyway.
fn drop_last_return(nodes: &mut Vec<Node>) {
    while matches!(nodes.last(), Some(Node::Exit { text, .. }) if text == "return") {
        nodes.pop();
    }
    if let Some(Node::If { then, els, .. }) = nodes.last_mut() {
        let is_return = |nodes: &[Node]| matches!(nodes, [Node::Exit { text, .. }] if text == "return");
        // An empty branch would be odd.
        for side in [then, els].into_iter().filter(|side| !is_return(side)) {
            drop_last_return(side);
        }
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

//! The evaluator: the same residual programs, steps and rounds as [`reference`](crate::reference), in time linear in the steps.
//!
//! Separate from the reference, since it substitutes lazily and knows where active bodies can be, where the reference copies and searches.
//!
//! **Closures.** A lambda is a *node*, which lists its free variables; a value that is a function is a node with one value for each of them. A call
//! sets the parameters and free variables in a table and copies the head of the body only: functions in it become closures. So a step costs what
//! the head of one body has, not the rest of the program behind it. A body that stays becomes a node again, whose free variables are the *unknowns*
//! that it mentions. So source and residual code are the same data, and a residual function may be called like any other.
//!
//! **Staging lists.** Section 3.5 sees a stage as the list of the bodies that it may activate. Here the list hangs on the way to them: a node marks those of its free variables that
//! occur in staging expressions of its body, or deeper. A closure becomes *hot* when a marked variable is bound. Only hot closures are looked
//! into, and what is found there is simplified: a stage that is bound is not met again. With natural staging no closure ever becomes hot,
//! and evaluation is that of any closure machine.
//!
//! **Order.** A body's hot operands are evaluated first, with unknown parameters, and the body after them. So whatever is active below a body has been
//! executed before it: deepest first. All that is bound to a variable waits.
//!
//! Nothing recurses on the depth of terms, but on that of staging expressions, which is bounded.

use crate::outcome::{Exceeded, Limits, Outcome, Stuck, Why};
use crate::prim::{Fault, Prim, Step};
use crate::term::{Body, BodyNode, Const, Lam, Stage, StageNode, Terms, Value as Term, Var};
use nyala_base::{Span, define_id};
use rustc_hash::FxHashMap;

define_id!(
    struct Node, "n"
);
define_id!(
    struct Closure, "c"
);
define_id!(
    struct Code, "k"
);

/// A part of `Machine::vars`: a node has no memory of its own.
#[derive(Clone, Copy, Default)]
struct Vars {
    start: u32,
    end: u32,
}

impl Vars {
    fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Const(Const),
    /// In code that is to be called: to be looked up. Otherwise an unknown.
    Var(Var),
    Closure(Closure),
}

/// λ[y] x̄. b, or with several parameters that are bound to one function, what follows `fix`.
struct NodeData {
    params: Vars,
    stage: Var,
    free: Vars,
    /// For each of `free`, in `Machine::staged` from here on: whether it occurs in a staging expression.
    staged: u32,
    /// Whether something is active while all variables are unbound: in source programs only.
    hot: bool,
    code: Code,
    /// What `fix` binds to its name, where this node is its function, by the index in `free` at which the name is.
    unfolded: Option<(usize, Node)>,
}

#[derive(Clone, Copy)]
struct ClosureData {
    node: Node,
    /// The first of the node's captured values, in `Machine::captured`.
    captured: u32,
    /// The unknown with the greatest id that it mentions, plus 1; 0 if it mentions none.
    newest: u32,
    /// May contain active bodies.
    hot: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Operands: callee, arguments.
    Apply,
    /// Operands: the function, in which the variable is the fixed name; what follows, as a function of it.
    Fix(Var),
}

/// A body in the arena.
#[derive(Clone, Copy)]
struct CodeData {
    kind: Kind,
    stage: Stage,
    operands: (u32, u32),
    span: Span,
}

/// A body whose subterms are being evaluated.
struct Frame {
    kind: Kind,
    stage: Stage,
    operands: Vec<Value>,
    span: Span,
    /// The operand that is next.
    next: usize,
    /// A subterm is stuck.
    blocked: bool,
    /// The round in which the body came to be, and that in which its last subterm was executed.
    born: u64,
    ready: u64,
    /// The parameters and the stage of the lambda whose body this is; `None` for the program.
    lambda: Option<(Vars, Var)>,
}

/// Lists that a function uses, kept for its next call.
#[derive(Default)]
struct Scratch {
    found: Vec<Var>,
    stages: Vec<Var>,
    work: Vec<Closure>,
}

struct Machine<'t> {
    terms: &'t mut Terms,
    nodes: Vec<NodeData>,
    vars: Vec<Var>,
    staged: Vec<bool>,
    closures: Vec<ClosureData>,
    captured: Vec<Value>,
    codes: Vec<CodeData>,
    operands: Vec<Value>,
    /// The value of each variable of the code that is being copied; unknowns stand for themselves.
    table: Vec<Value>,
    /// The least id of a variable that `table` binds to anything but itself, plus 1. A closure is copied only if it mentions that variable or a
    /// newer one.
    oldest_bound: u32,
    /// For each variable, the last search that met it.
    met: Vec<u32>,
    search: u32,
    scratch: Scratch,
    /// Operands of frames that are left.
    pool: Vec<Vec<Value>>,
    always: Stage,
    limits: Limits,
    work: u64,
}

/// Evaluates a closed program.
pub fn run(terms: &mut Terms, program: Body, limits: Limits) -> Result<Outcome, Exceeded> {
    let always = terms.stage(StageNode::Const(true));
    let mut machine = Machine {
        terms,
        nodes: Vec::new(),
        vars: Vec::new(),
        staged: Vec::new(),
        closures: Vec::new(),
        captured: Vec::new(),
        codes: Vec::new(),
        operands: Vec::new(),
        table: Vec::new(),
        oldest_bound: u32::MAX,
        met: Vec::new(),
        search: 0,
        scratch: Scratch::default(),
        pool: Vec::new(),
        always,
        limits,
        work: 0,
    };
    let program = machine.load(program)?;
    machine.run(program)
}

impl Machine<'_> {
    // --- Source programs.

    /// Makes code of all bodies. Parts have smaller ids, so they come first.
    fn load(&mut self, program: Body) -> Result<Code, Exceeded> {
        let mut nodes: Vec<Option<Node>> = vec![None; self.terms.n_lams()];
        let (mut terms, mut operands): (Vec<Term>, Vec<Value>) = (Vec::new(), Vec::new());
        self.codes.reserve(program.0 as usize + 1);
        self.grow();
        for i in 0..=program.0 {
            let body = Body(i);
            let span = self.terms.span(body);
            // Each function lists all variables that are used within it and bound around it.
            if self.is_too_large() {
                return Err(Exceeded::Variables(span));
            }
            match *self.terms.body_node(body) {
                BodyNode::Apply { stage, callee, ref args } => {
                    terms.clear();
                    terms.push(callee);
                    terms.extend_from_slice(args);
                    operands.clear();
                    for &term in &terms {
                        operands.push(match term {
                            Term::Const(c) => Value::Const(c),
                            Term::Var(x) => Value::Var(x),
                            Term::Lam(lam) => self.load_lam(lam, &mut nodes),
                        });
                    }
                    self.code(Kind::Apply, stage, &operands, span);
                }
                BodyNode::Fix { stage, var, lam, rest } => {
                    let lam = self.load_lam(lam, &mut nodes);
                    let unused = self.fresh_like(var);
                    let params = self.add_vars(&[var]);
                    let rest = self.node(params, unused, Code(rest.0));
                    let rest = self.template(rest);
                    self.code(Kind::Fix(var), stage, &[lam, rest], span);
                }
            }
        }
        Ok(Code(program.0))
    }

    fn load_lam(&mut self, lam: Lam, nodes: &mut [Option<Node>]) -> Value {
        let node = match nodes[lam.0 as usize] {
            Some(node) => node,
            None => {
                let data = self.terms.lam_node(lam);
                let start = self.vars.len() as u32;
                self.vars.extend_from_slice(&data.params);
                let params = Vars { start, end: self.vars.len() as u32 };
                let (stage, code) = (data.stage, Code(data.body.0));
                let node = self.node(params, stage, code);
                nodes[lam.0 as usize] = Some(node);
                node
            }
        };
        self.template(node)
    }

    fn code(&mut self, kind: Kind, stage: Stage, operands: &[Value], span: Span) -> Code {
        let start = self.operands.len() as u32;
        self.operands.extend_from_slice(operands);
        self.codes.push(CodeData { kind, stage, operands: (start, self.operands.len() as u32), span });
        Code((self.codes.len() - 1) as u32)
    }

    fn add_vars(&mut self, vars: &[Var]) -> Vars {
        let start = self.vars.len() as u32;
        self.vars.extend_from_slice(vars);
        Vars { start, end: self.vars.len() as u32 }
    }

    fn vars(&self, vars: Vars) -> &[Var] {
        &self.vars[vars.start as usize..vars.end as usize]
    }

    fn free(&self, node: Node) -> &[Var] {
        self.vars(self.nodes[node.0 as usize].free)
    }

    /// A closure that captures variables under their own names.
    fn template(&mut self, node: Node) -> Value {
        let NodeData { free, hot, .. } = self.nodes[node.0 as usize];
        let free = &self.vars[free.start as usize..free.end as usize];
        let start = self.captured.len() as u32;
        self.captured.extend(free.iter().map(|&x| Value::Var(x)));
        let newest = free.iter().map(|x| x.0 + 1).max().unwrap_or(0);
        self.closures.push(ClosureData { node, captured: start, newest, hot });
        Value::Closure(Closure((self.closures.len() - 1) as u32))
    }

    fn closure(&mut self, node: Node, captured: &[Value], hot: bool) -> Value {
        let newest = captured.iter().map(|&v| self.newest(v)).max().unwrap_or(0);
        self.closures.push(ClosureData { node, captured: self.captured.len() as u32, newest, hot });
        self.captured.extend_from_slice(captured);
        Value::Closure(Closure((self.closures.len() - 1) as u32))
    }

    fn newest(&self, value: Value) -> u32 {
        match value {
            Value::Const(_) => 0,
            Value::Var(x) => x.0 + 1,
            Value::Closure(c) => self.closures[c.0 as usize].newest,
        }
    }

    fn captured(&self, closure: Closure) -> &[Value] {
        let data = self.closures[closure.0 as usize];
        let n = self.nodes[data.node.0 as usize].free.len();
        &self.captured[data.captured as usize..data.captured as usize + n]
    }

    /// Makes a node of a body: finds its free variables and which of them stages depend on.
    fn node(&mut self, params: Vars, stage: Var, code: Code) -> Node {
        let Scratch { mut found, mut stages, mut work } = std::mem::take(&mut self.scratch);
        self.search += 2;
        // `met` has `search` for a variable that occurs, `search + 1` for one that occurs in a staging expression.
        let (seen, staged) = (self.search, self.search + 1);
        let data = self.codes[code.0 as usize];
        self.stage_vars(data.stage, &mut stages);
        let mut hot = self.is_redex(data.kind, data.stage, self.operands.get(data.operands.0 as usize));
        let mut note = |met: &mut Vec<u32>, x: Var, is_staged: bool| {
            let met = &mut met[x.0 as usize];
            if *met < seen {
                found.push(x);
                *met = seen;
            }
            if is_staged {
                *met = staged;
            }
        };
        for x in stages.drain(..) {
            note(&mut self.met, x, true);
        }
        let mut visited: FxHashMap<Closure, ()> = FxHashMap::default();
        for i in data.operands.0..data.operands.1 {
            match self.operands[i as usize] {
                Value::Const(_) => (),
                Value::Var(x) => note(&mut self.met, x, false),
                Value::Closure(c) => work.push(c),
            }
        }
        while let Some(c) = work.pop() {
            let ClosureData { node, captured, newest, hot: of_closure } = self.closures[c.0 as usize];
            hot |= of_closure;
            self.work += 1;
            if newest == 0 {
                continue;
            }
            let NodeData { free, staged, .. } = self.nodes[node.0 as usize];
            self.work += free.len() as u64;
            for i in 0..free.len() {
                match self.captured[captured as usize + i] {
                    Value::Const(_) => (),
                    Value::Var(x) => {
                        let is_staged = self.staged[staged as usize + i];
                        note(&mut self.met, x, is_staged);
                    }
                    Value::Closure(inner) => {
                        if self.closures[inner.0 as usize].newest > 0 && visited.insert(inner, ()).is_none() {
                            work.push(inner);
                        }
                    }
                }
            }
        }
        // The name that `fix` binds is free in nothing but its function.
        let bound = if let Kind::Fix(x) = data.kind { Some(x) } else { None };
        let (start, flags) = (self.vars.len() as u32, self.staged.len() as u32);
        for x in found.drain(..) {
            if x != stage && Some(x) != bound && !self.vars(params).contains(&x) {
                self.vars.push(x);
                self.staged.push(self.met[x.0 as usize] == staged);
            }
        }
        let free = Vars { start, end: self.vars.len() as u32 };
        self.nodes.push(NodeData { params, stage, free, staged: flags, hot, code, unfolded: None });
        self.scratch = Scratch { found, stages, work };
        Node((self.nodes.len() - 1) as u32)
    }

    /// As [`Terms::is_redex`].
    fn is_redex(&self, kind: Kind, stage: Stage, callee: Option<&Value>) -> bool {
        let waits = kind == Kind::Apply && matches!(callee, Some(Value::Const(c)) if c.waits());
        !waits && self.terms.is_active(stage)
    }

    fn stage_vars(&self, stage: Stage, out: &mut Vec<Var>) {
        match self.terms.stage_node(stage) {
            StageNode::Const(_) => (),
            StageNode::Var(x) => out.push(x),
            StageNode::And(a, b) | StageNode::Or(a, b) => {
                self.stage_vars(a, out);
                self.stage_vars(b, out);
            }
            StageNode::Not(a) => self.stage_vars(a, out),
        }
    }

    // --- Variables.

    /// Makes the tables as long as there are variables.
    fn grow(&mut self) {
        for i in self.table.len()..self.terms.n_vars() {
            self.table.push(Value::Var(Var(i as u32)));
            self.met.push(0);
        }
    }

    /// A new unknown with the name of another variable.
    fn fresh_like(&mut self, var: Var) -> Var {
        let new = self.terms.var_like(var);
        self.grow();
        new
    }

    fn bind(&mut self, x: Var, value: Value) {
        self.table[x.0 as usize] = value;
        if value != Value::Var(x) {
            self.oldest_bound = self.oldest_bound.min(x.0 + 1);
        }
    }

    /// Begins to bind the variables of another function.
    fn bind_captured(&mut self, closure: Closure) {
        let ClosureData { node, captured, .. } = self.closures[closure.0 as usize];
        let free = self.nodes[node.0 as usize].free;
        self.work += free.len() as u64;
        self.oldest_bound = u32::MAX;
        for i in 0..free.len() {
            let x = self.vars[free.start as usize + i];
            self.bind(x, self.captured[captured as usize + i]);
        }
    }

    fn bind_params(&mut self, node: Node, values: impl Fn(usize) -> Value) {
        let params = self.nodes[node.0 as usize].params;
        for i in 0..params.len() {
            let x = self.vars[params.start as usize + i];
            self.bind(x, values(i));
        }
    }

    // --- Copies of code, with the values of the table.

    fn resolve_stage(&mut self, stage: Stage) -> Stage {
        let node = match self.terms.stage_node(stage) {
            StageNode::Const(_) => return stage,
            StageNode::Var(x) => match self.table[x.0 as usize] {
                Value::Var(same) if same == x => return stage,
                Value::Var(other) => StageNode::Var(other),
                Value::Const(Const::Stage(false)) => StageNode::Const(false),
                _ => return self.always,
            },
            StageNode::And(a, b) => StageNode::And(self.resolve_stage(a), self.resolve_stage(b)),
            StageNode::Or(a, b) => StageNode::Or(self.resolve_stage(a), self.resolve_stage(b)),
            StageNode::Not(a) => StageNode::Not(self.resolve_stage(a)),
        };
        self.terms.stage(node)
    }

    fn is_hot(&self, value: Value) -> bool {
        matches!(value, Value::Closure(c) if self.closures[c.0 as usize].hot)
    }

    fn resolve(&mut self, value: Value) -> Value {
        match value {
            Value::Const(_) => value,
            Value::Var(x) => self.table[x.0 as usize],
            Value::Closure(_) if !self.mentions_bound(value) => value,
            Value::Closure(c) => {
                // Nearly all closures capture variables, and functions that need no copy.
                let nested = self.captured(c).iter().any(|&v| matches!(v, Value::Closure(_)) && self.mentions_bound(v));
                if nested { self.resolve_nested(c) } else { self.resolve_closure(c, &FxHashMap::default()) }
            }
        }
    }

    fn mentions_bound(&self, value: Value) -> bool {
        self.newest(value) >= self.oldest_bound
    }

    /// `done` has the closures that `closure` captures, but those that need no copy.
    fn resolve_closure(&mut self, closure: Closure, done: &FxHashMap<Closure, Value>) -> Value {
        let ClosureData { node, captured, mut hot, .. } = self.closures[closure.0 as usize];
        let start = self.captured.len();
        let NodeData { free, staged, .. } = self.nodes[node.0 as usize];
        self.work += free.len() as u64;
        let mut newest = 0;
        for i in 0..free.len() {
            let new = match self.captured[captured as usize + i] {
                old @ Value::Const(_) => old,
                Value::Var(x) => {
                    let new = self.table[x.0 as usize];
                    hot |= self.staged[staged as usize + i] && !matches!(new, Value::Var(_));
                    new
                }
                old @ Value::Closure(inner) => done.get(&inner).copied().unwrap_or(old),
            };
            newest = newest.max(match new {
                Value::Const(_) => 0,
                Value::Var(x) => x.0 + 1,
                Value::Closure(inner) => {
                    let inner = self.closures[inner.0 as usize];
                    hot |= inner.hot;
                    inner.newest
                }
            });
            self.captured.push(new);
        }
        self.closures.push(ClosureData { node, captured: start as u32, newest, hot });
        Value::Closure(Closure((self.closures.len() - 1) as u32))
    }

    /// Closures within closures form a graph of any depth, in which each is copied once.
    fn resolve_nested(&mut self, closure: Closure) -> Value {
        let mut done: FxHashMap<Closure, Value> = FxHashMap::default();
        let mut work = vec![closure];
        while let Some(&c) = work.last() {
            let before = work.len();
            if !done.contains_key(&c) {
                for &v in self.captured(c) {
                    if let Value::Closure(inner) = v
                        && self.mentions_bound(v)
                        && !done.contains_key(&inner)
                    {
                        work.push(inner);
                    }
                }
                if work.len() > before {
                    continue;
                }
                let new = self.resolve_closure(c, &done);
                done.insert(c, new);
            }
            work.pop();
        }
        done[&closure]
    }

    /// Copies the head of a body into the frame.
    fn copy_head(&mut self, code: Code, frame: &mut Frame) {
        let CodeData { kind, stage, operands, span } = self.codes[code.0 as usize];
        frame.kind = match kind {
            Kind::Apply => Kind::Apply,
            Kind::Fix(x) => {
                let new = self.fresh_like(x);
                self.bind(x, Value::Var(new));
                Kind::Fix(new)
            }
        };
        self.work += 1 + u64::from(operands.1 - operands.0);
        frame.stage = self.resolve_stage(stage);
        frame.span = span;
        frame.operands.clear();
        frame.next = 0;
        for i in operands.0..operands.1 {
            let value = self.resolve(self.operands[i as usize]);
            frame.operands.push(value);
        }
    }

    /// Binds variables in a body that is in a frame already.
    fn resolve_frame(&mut self, frame: &mut Frame) {
        self.work += 1 + frame.operands.len() as u64;
        frame.stage = self.resolve_stage(frame.stage);
        for i in 0..frame.operands.len() {
            frame.operands[i] = self.resolve(frame.operands[i]);
        }
        frame.next = 0;
    }

    /// A frame for the body of a function that nobody has called: its parameters are new unknowns, or all of them `named`.
    fn open(&mut self, closure: Closure, born: u64, named: Option<Var>) -> Frame {
        let node = self.closures[closure.0 as usize].node;
        let NodeData { params, stage, code, .. } = self.nodes[node.0 as usize];
        self.bind_captured(closure);
        let new_stage = self.fresh_like(stage);
        self.bind(stage, Value::Var(new_stage));
        let start = self.vars.len() as u32;
        for i in params.start..params.end {
            let x = self.vars[i as usize];
            let new = named.unwrap_or_else(|| self.fresh_like(x));
            self.bind(x, Value::Var(new));
            self.vars.push(new);
        }
        let new_params = Vars { start, end: self.vars.len() as u32 };
        let mut frame = self.frame(born, Some((new_params, new_stage)));
        self.copy_head(code, &mut frame);
        frame
    }

    /// A frame whose body is still to be copied into it.
    fn frame(&mut self, born: u64, lambda: Option<(Vars, Var)>) -> Frame {
        Frame {
            kind: Kind::Apply,
            stage: self.always,
            operands: self.pool.pop().unwrap_or_default(),
            span: Span::NONE,
            next: 0,
            blocked: false,
            born,
            ready: born,
            lambda,
        }
    }

    fn is_too_large(&self) -> bool {
        let lists = self.captured.len() + self.vars.len();
        self.closures.len() + lists + self.operands.len() + self.table.len() > self.limits.size
    }

    // --- Evaluation.

    fn run(mut self, program: Code) -> Result<Outcome, Exceeded> {
        let (mut steps, mut stuck) = (0, Vec::new());
        let mut frame = self.frame(0, None);
        self.copy_head(program, &mut frame);
        // Those around `frame`.
        let mut outer: Vec<Frame> = Vec::new();
        loop {
            while frame.next < frame.operands.len() && !self.is_hot(frame.operands[frame.next]) {
                frame.next += 1;
            }
            if let Some(&Value::Closure(closure)) = frame.operands.get(frame.next) {
                let inner = self.open(closure, frame.born, None);
                outer.push(std::mem::replace(&mut frame, inner));
                continue;
            }
            if self.is_too_large() {
                return Err(Exceeded::Size(frame.span));
            }
            if !frame.blocked && self.is_redex(frame.kind, frame.stage, frame.operands.first()) {
                if steps == self.limits.steps {
                    return Err(Exceeded::Steps(frame.span));
                }
                match self.execute(&mut frame) {
                    Ok(()) => {
                        steps += 1;
                        frame.ready += 1;
                        frame.born = frame.ready;
                        continue;
                    }
                    Err(why) => {
                        let missing = match why {
                            Why::UnboundCallee => Some(frame.operands[0]),
                            Why::Fault(_, Fault::Unbound(i)) => Some(frame.operands[i + 1]),
                            _ => None,
                        };
                        let missing = missing.and_then(|v| if let Value::Var(x) = v { Some(x) } else { None });
                        stuck.push(Stuck { span: frame.span, why, missing });
                        frame.blocked = true;
                    }
                }
            }
            // What follows a `fix` that is executed now need not become a node.
            if let Some(around) = outer.last()
                && let Kind::Fix(var) = around.kind
                && around.next == 1
                && !around.blocked
                && !frame.blocked
                && self.terms.is_active(around.stage)
            {
                if steps == self.limits.steps {
                    return Err(Exceeded::Steps(around.span));
                }
                let function = self.unfold(around, var);
                let names = frame.lambda.take().map_or(Vars::default(), |(params, _)| params);
                self.oldest_bound = u32::MAX;
                for i in names.start..names.end {
                    self.bind(self.vars[i as usize], function);
                }
                self.resolve_frame(&mut frame);
                let around = outer.pop().expect("looked at");
                frame.lambda = around.lambda;
                steps += 1;
                frame.ready = frame.ready.max(around.ready) + 1;
                frame.born = frame.ready;
                continue;
            }
            // It stays. A function that it was the body of is an operand around it.
            let code = self.code(frame.kind, frame.stage, &frame.operands, frame.span);
            match outer.pop() {
                None => {
                    let rounds = frame.ready;
                    let body = self.read_back(code)?;
                    return Ok(Outcome { body, steps, work: self.work, rounds, stuck });
                }
                Some(mut around) => {
                    let (params, stage) = frame.lambda.take().expect("only the program is no function");
                    let node = self.node(params, stage, code);
                    // What is left of hot code is looked into no more: all in it waits, or is stuck.
                    self.nodes[node.0 as usize].hot = false;
                    around.operands[around.next] = self.template(node);
                    around.next += 1;
                    around.ready = around.ready.max(frame.ready);
                    around.blocked |= frame.blocked;
                    let mut left = std::mem::replace(&mut frame, around);
                    left.operands.clear();
                    self.pool.push(left.operands);
                }
            }
        }
    }

    /// Executes an active body whose operands wait: the frame then has what it became.
    fn execute(&mut self, frame: &mut Frame) -> Result<(), Why> {
        if let Kind::Fix(var) = frame.kind {
            let function = self.unfold(frame, var);
            let Value::Closure(rest) = frame.operands[1] else { unreachable!("what follows `fix` is code") };
            let node = self.closures[rest.0 as usize].node;
            self.bind_captured(rest);
            self.bind_params(node, |_| function);
            self.copy_head(self.nodes[node.0 as usize].code, frame);
            return Ok(());
        }
        match frame.operands[0] {
            Value::Closure(callee) => {
                let node = self.closures[callee.0 as usize].node;
                let data = &self.nodes[node.0 as usize];
                let args = &frame.operands[1..];
                if data.params.len() != args.len() {
                    return Err(Why::Arguments { expected: data.params.len(), found: args.len() });
                }
                let (stage, code) = (data.stage, data.code);
                self.bind_captured(callee);
                self.bind_params(node, |i| args[i]);
                self.bind(stage, Value::Const(Const::Stage(true)));
                self.copy_head(code, frame);
                Ok(())
            }
            Value::Const(Const::Prim(prim)) => self.execute_prim(prim, frame),
            Value::Const(_) => Err(Why::NotAFunction),
            Value::Var(_) => Err(Why::UnboundCallee),
        }
    }

    fn execute_prim(&mut self, prim: Prim, frame: &mut Frame) -> Result<(), Why> {
        let args = &frame.operands[1..];
        // No built-in function has more arguments.
        let mut consts = [None; 5];
        for (known, &arg) in consts.iter_mut().zip(args) {
            if let Value::Const(c) = arg {
                *known = Some(c);
            }
        }
        let step = if args.len() <= consts.len() {
            prim.step(self.terms, &consts[..args.len()], |i| !matches!(args[i], Value::Var(_)))
        } else {
            prim.step(self.terms, &vec![None; args.len()], |_| true)
        };
        match step.map_err(|fault| Why::Fault(prim, fault))? {
            Step::Call(i) => {
                let callee = args[i];
                frame.operands.clear();
                frame.operands.push(callee);
            }
            Step::Result(r) => {
                let callee = args[args.len() - 1];
                frame.operands.clear();
                frame.operands.extend([callee, Value::Const(r)]);
            }
        }
        frame.stage = self.always;
        frame.next = 0;
        Ok(())
    }

    /// What `[e] fix x = λ[y] x̄. b in …` binds to x: λ[y] x̄. [y and e] fix x = λ[y] x̄. b in b.
    fn unfold(&mut self, frame: &Frame, var: Var) -> Value {
        let Value::Closure(function) = frame.operands[0] else { unreachable!("`fix` has a function") };
        let node = self.closures[function.0 as usize].node;
        let captured: Vec<Value> = self.captured(function).to_vec();
        let at: Vec<usize> = (0..captured.len()).filter(|&i| captured[i] == Value::Var(var)).collect();
        // e is active. If it is ⊤, all executions of this `fix` share a node.
        let is_always = self.terms.stage_node(frame.stage) == StageNode::Const(true);
        let kept = match (&self.nodes[node.0 as usize].unfolded, &at[..]) {
            (Some((index, unfolded)), &[only]) if is_always && *index == only => Some(*unfolded),
            _ => None,
        };
        let unfolded = kept.unwrap_or_else(|| {
            let unfolded = self.unfolded_node(node, &at, frame, var);
            if let (true, &[only]) = (is_always, &at[..]) {
                self.nodes[node.0 as usize].unfolded = Some((only, unfolded));
            }
            unfolded
        });
        // Its free variables are those of the function, by their names in its node; those of e are unknowns.
        let of_function = self.nodes[node.0 as usize].free;
        let of_function = &self.vars[of_function.start as usize..of_function.end as usize];
        for (&x, &v) in of_function.iter().zip(&captured) {
            self.table[x.0 as usize] = v;
        }
        let captured: Vec<Value> = self
            .free(unfolded)
            .iter()
            .map(|x| if of_function.contains(x) { self.table[x.0 as usize] } else { Value::Var(*x) })
            .collect();
        self.closure(unfolded, &captured, false)
    }

    /// `at` has the indices in the function's free variables at which `var` is captured.
    fn unfolded_node(&mut self, node: Node, at: &[usize], frame: &Frame, var: Var) -> Node {
        let data = &self.nodes[node.0 as usize];
        let (params, y, code) = (data.params, data.stage, data.code);
        let free = self.free(node).to_vec();
        let var = self.fresh_like(var);
        let captured: Vec<Value> =
            free.iter().enumerate().map(|(i, &x)| Value::Var(if at.contains(&i) { var } else { x })).collect();
        let function = self.closure(node, &captured, false);
        let names: Vec<Var> = at.iter().map(|&i| free[i]).collect();
        let names = self.add_vars(&names);
        let unused = self.fresh_like(y);
        let rest = self.node(names, unused, code);
        let rest = self.template(rest);
        let of_y = self.terms.stage(StageNode::Var(y));
        let stage = self.terms.stage(StageNode::And(of_y, frame.stage));
        let code = self.code(Kind::Fix(var), stage, &[function, rest], frame.span);
        self.node(params, y, code)
    }

    // --- The residual program as a term.

    /// Copies code out, each function under new names. A function that several places have is one in the term, too: as text it may be much longer.
    fn read_back(&mut self, program: Code) -> Result<Body, Exceeded> {
        struct Reading {
            frame: Frame,
            done: Vec<Term>,
            rest: Option<Body>,
            closure: Option<Closure>,
        }
        let mut lams: FxHashMap<Closure, Lam> = FxHashMap::default();
        let first = self.terms.n_bodies();
        let mut frame = self.frame(0, None);
        self.copy_head(program, &mut frame);
        let mut reading = Reading { frame, done: Vec::new(), rest: None, closure: None };
        let mut outer: Vec<Reading> = Vec::new();
        loop {
            if let Some(&operand) = reading.frame.operands.get(reading.done.len()) {
                match operand {
                    Value::Const(c) => reading.done.push(Term::Const(c)),
                    Value::Var(x) => reading.done.push(Term::Var(x)),
                    Value::Closure(c) => {
                        // Code that follows `fix` is no function in a term: its parameters are the fixed name.
                        let named = match reading.frame.kind {
                            Kind::Fix(var) if reading.done.len() == 1 => Some(var),
                            _ => None,
                        };
                        if let (None, Some(&lam)) = (named, lams.get(&c)) {
                            reading.done.push(Term::Lam(lam));
                            continue;
                        }
                        let frame = self.open(c, 0, named);
                        let inner = Reading { frame, done: Vec::new(), rest: None, closure: Some(c) };
                        outer.push(std::mem::replace(&mut reading, inner));
                    }
                }
                continue;
            }
            if self.terms.n_bodies() - first > self.limits.size || self.is_too_large() {
                return Err(Exceeded::Size(reading.frame.span));
            }
            let Reading { frame, done, rest, closure } = reading;
            let body = match frame.kind {
                Kind::Apply => self.terms.apply(frame.stage, done[0], &done[1..], frame.span),
                Kind::Fix(var) => match (done[0], rest) {
                    (Term::Lam(lam), Some(rest)) => self.terms.fix(frame.stage, var, lam, rest, frame.span),
                    _ => unreachable!("`fix` has a function, and code that follows"),
                },
            };
            let Some(mut around) = outer.pop() else { return Ok(body) };
            let (params, stage) = frame.lambda.expect("only the program is no function");
            let params = self.vars(params).to_vec();
            if let (Kind::Fix(_), 1) = (around.frame.kind, around.done.len()) {
                around.rest = Some(body);
                around.done.push(Term::Const(Const::Stage(true)));
            } else {
                let lam = self.terms.lam(stage, params, body);
                lams.extend(closure.map(|c| (c, lam)));
                around.done.push(Term::Lam(lam));
            }
            reading = around;
        }
    }
}

//! The rules of the calculus as they are written (section 3.3.2): the definition of what [`machine`](crate::machine) does.
//!
//! Separate, since it is as slow and as obvious as can be: each step of the program looks at the whole term, asks the judgments A and W again,
//! substitutes by copying, and gives each copy of a function new names.
//!
//! Of the rules it departs in one thing. A program in which one body is stuck takes no step, by the rules; here its other bodies are still
//! executed, unless they are around the stuck one. So all that is wrong is found, and the result depends on no order. `exit`, of which the rules say only
//! that a program may end with it, waits wherever it is. It recurses on terms:
//! deeper ones than [`MAX_DEPTH`] are refused.

use crate::outcome::{Exceeded, Limits, Outcome, Stuck, Why};
use crate::prim::{Fault, Step};
use crate::term::{Body, BodyNode, Const, Lam, LamNode, Stage, StageNode, Terms, Value, Var};
use nyala_base::Span;
use rustc_hash::FxHashMap;

pub const MAX_DEPTH: usize = 400;

type Map = FxHashMap<Var, Value>;

struct Reference<'t> {
    terms: &'t mut Terms,
    limits: Limits,
    steps: u64,
    depth: usize,
    /// Of the last round.
    stuck: Vec<Stuck>,
}

/// Evaluates a closed program.
pub fn run(terms: &mut Terms, program: Body, limits: Limits) -> Result<Outcome, Exceeded> {
    let mut reference = Reference { terms, limits, steps: 0, depth: 0, stuck: Vec::new() };
    let (mut body, mut rounds) = (program, 0);
    loop {
        reference.stuck.clear();
        let before = reference.steps;
        let next = reference.rebuild(body)?;
        if reference.steps == before {
            return Ok(Outcome { body, steps: before, work: 0, rounds, stuck: reference.stuck });
        }
        rounds += 1;
        body = next;
    }
}

impl Reference<'_> {
    fn enter(&mut self) -> Result<(), Exceeded> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Exceeded::Depth) } else { Ok(()) }
    }

    /// The judgment W of values.
    fn value_waits(&mut self, value: Value) -> Result<bool, Exceeded> {
        match value {
            Value::Const(_) | Value::Var(_) => Ok(true),
            Value::Lam(lam) => self.body_waits(self.terms.lam_node(lam).body),
        }
    }

    /// The judgment W of bodies.
    fn body_waits(&mut self, body: Body) -> Result<bool, Exceeded> {
        let waits = !self.terms.is_redex(self.terms.body_node(body)) && self.subterms_wait(body)?;
        Ok(waits)
    }

    fn subterms_wait(&mut self, body: Body) -> Result<bool, Exceeded> {
        self.enter()?;
        let mut all = true;
        match self.terms.body_node(body).clone() {
            BodyNode::Apply { callee, args, .. } => {
                for value in std::iter::once(callee).chain(args) {
                    all = all && self.value_waits(value)?;
                }
            }
            BodyNode::Fix { lam, rest, .. } => {
                all = self.value_waits(Value::Lam(lam))? && self.body_waits(rest)?;
            }
        }
        self.depth -= 1;
        Ok(all)
    }

    /// The rules →b: executes an active body whose subterms wait, and rebuilds any other.
    fn rebuild(&mut self, body: Body) -> Result<Body, Exceeded> {
        self.enter()?;
        let node = self.terms.body_node(body).clone();
        let is_executed = self.terms.is_redex(&node) && self.subterms_wait(body)?;
        let span = self.terms.span(body);
        let new = if is_executed {
            match self.evaluate(&node, span) {
                Ok(_) if self.steps == self.limits.steps => return Err(Exceeded::Steps(span)),
                Ok(new) => {
                    self.steps += 1;
                    new
                }
                Err(why) => {
                    self.stuck.push(Stuck { span, why, missing: missing(&node, why) });
                    body
                }
            }
        } else {
            match node {
                BodyNode::Apply { stage, callee, args } => {
                    let callee = self.rebuild_value(callee)?;
                    let args = args.iter().map(|&a| self.rebuild_value(a)).collect::<Result<Vec<_>, _>>()?;
                    self.terms.apply(stage, callee, args, span)
                }
                BodyNode::Fix { stage, var, lam, rest } => {
                    let lam = self.rebuild_lam(lam)?;
                    let rest = self.rebuild(rest)?;
                    self.terms.fix(stage, var, lam, rest, span)
                }
            }
        };
        if self.terms.n_bodies() > self.limits.size {
            return Err(Exceeded::Size(span));
        }
        self.depth -= 1;
        Ok(new)
    }

    fn rebuild_value(&mut self, value: Value) -> Result<Value, Exceeded> {
        match value {
            Value::Const(_) | Value::Var(_) => Ok(value),
            Value::Lam(lam) => Ok(Value::Lam(self.rebuild_lam(lam)?)),
        }
    }

    fn rebuild_lam(&mut self, lam: Lam) -> Result<Lam, Exceeded> {
        let LamNode { stage, params, body } = self.terms.lam_node(lam).clone();
        let body = self.rebuild(body)?;
        Ok(self.terms.lam(stage, params, body))
    }

    /// The rules of evaluation.
    fn evaluate(&mut self, node: &BodyNode, span: Span) -> Result<Body, Why> {
        match *node {
            BodyNode::Apply { callee: Value::Lam(lam), ref args, .. } => {
                let LamNode { stage, params, body } = self.terms.lam_node(lam).clone();
                if params.len() != args.len() {
                    return Err(Why::Arguments { expected: params.len(), found: args.len() });
                }
                let mut map: Map = params.iter().copied().zip(args.iter().copied()).collect();
                map.insert(stage, Value::Const(Const::Stage(true)));
                Ok(self.substitute(&map, body))
            }
            BodyNode::Apply { callee: Value::Const(Const::Prim(prim)), ref args, .. } => {
                let consts: Vec<Option<Const>> =
                    args.iter().map(|a| if let Value::Const(c) = a { Some(*c) } else { None }).collect();
                let step = prim.step(self.terms, &consts, |i| !matches!(args[i], Value::Var(_)));
                let always = self.terms.stage(StageNode::Const(true));
                match step.map_err(|fault| Why::Fault(prim, fault))? {
                    Step::Call(i) => Ok(self.terms.apply(always, args[i], [], span)),
                    Step::Result(r) => Ok(self.terms.apply(always, args[args.len() - 1], [Value::Const(r)], span)),
                }
            }
            BodyNode::Apply { callee: Value::Const(_), .. } => Err(Why::NotAFunction),
            BodyNode::Apply { callee: Value::Var(_), .. } => Err(Why::UnboundCallee),
            BodyNode::Fix { stage, var, lam, rest } => {
                // λ[y] x̄. [y and e] fix x = λ[y] x̄. b in b. The inner λ gets other names, since names are unique.
                let LamNode { stage: y, params, body } = self.terms.lam_node(lam).clone();
                let inner = self.copy(&Map::default(), lam);
                let var2 = self.terms.var_like(var);
                let inner = self.copy(&Map::from_iter([(var, Value::Var(var2))]), inner);
                let body = self.substitute(&Map::from_iter([(var, Value::Var(var2))]), body);
                let of_y = self.terms.stage(StageNode::Var(y));
                let stage = self.terms.stage(StageNode::And(of_y, stage));
                let unfolded = self.terms.fix(stage, var2, inner, body, span);
                let unfolded = self.terms.lam(y, params, unfolded);
                Ok(self.substitute(&Map::from_iter([(var, Value::Lam(unfolded))]), rest))
            }
        }
    }

    /// Replaces variables in a body, each occurrence by a copy of its own.
    fn substitute(&mut self, map: &Map, body: Body) -> Body {
        let span = self.terms.span(body);
        match self.terms.body_node(body).clone() {
            BodyNode::Apply { stage, callee, args } => {
                let stage = self.substitute_stage(map, stage);
                let callee = self.substitute_value(map, callee);
                let args: Vec<Value> = args.iter().map(|&a| self.substitute_value(map, a)).collect();
                self.terms.apply(stage, callee, args, span)
            }
            BodyNode::Fix { stage, var, lam, rest } => {
                let stage = self.substitute_stage(map, stage);
                let lam = self.substitute_lam(map, lam);
                let rest = self.substitute(map, rest);
                self.terms.fix(stage, var, lam, rest, span)
            }
        }
    }

    fn substitute_lam(&mut self, map: &Map, lam: Lam) -> Lam {
        let LamNode { stage, params, body } = self.terms.lam_node(lam).clone();
        let body = self.substitute(map, body);
        self.terms.lam(stage, params, body)
    }

    fn substitute_value(&mut self, map: &Map, value: Value) -> Value {
        match value {
            Value::Const(_) => value,
            Value::Lam(lam) => Value::Lam(self.substitute_lam(map, lam)),
            Value::Var(var) => match map.get(&var) {
                None => value,
                Some(&Value::Lam(lam)) => Value::Lam(self.copy(&Map::default(), lam)),
                Some(&other) => other,
            },
        }
    }

    fn substitute_stage(&mut self, map: &Map, stage: Stage) -> Stage {
        let node = match self.terms.stage_node(stage) {
            StageNode::Const(_) => return stage,
            StageNode::Var(var) => match map.get(&var) {
                None => return stage,
                Some(&Value::Var(other)) => StageNode::Var(other),
                Some(&Value::Const(Const::Stage(known))) => StageNode::Const(known),
                Some(_) => StageNode::Const(true),
            },
            StageNode::And(a, b) => StageNode::And(self.substitute_stage(map, a), self.substitute_stage(map, b)),
            StageNode::Or(a, b) => StageNode::Or(self.substitute_stage(map, a), self.substitute_stage(map, b)),
            StageNode::Not(a) => StageNode::Not(self.substitute_stage(map, a)),
        };
        self.terms.stage(node)
    }

    /// A copy whose binders have new names.
    fn copy(&mut self, map: &Map, lam: Lam) -> Lam {
        let LamNode { stage, params, body } = self.terms.lam_node(lam).clone();
        let mut map = map.clone();
        let new_stage = self.terms.var_like(stage);
        map.insert(stage, Value::Var(new_stage));
        let new_params: Vec<Var> = params.iter().map(|&p| self.terms.var_like(p)).collect();
        map.extend(params.iter().copied().zip(new_params.iter().map(|&p| Value::Var(p))));
        let body = self.copy_body(&map, body);
        self.terms.lam(new_stage, new_params, body)
    }

    fn copy_value(&mut self, map: &Map, value: Value) -> Value {
        match value {
            Value::Lam(lam) => Value::Lam(self.copy(map, lam)),
            _ => self.substitute_value(map, value),
        }
    }

    fn copy_body(&mut self, map: &Map, body: Body) -> Body {
        let span = self.terms.span(body);
        match self.terms.body_node(body).clone() {
            BodyNode::Apply { stage, callee, args } => {
                let stage = self.substitute_stage(map, stage);
                let callee = self.copy_value(map, callee);
                let args: Vec<Value> = args.iter().map(|&a| self.copy_value(map, a)).collect();
                self.terms.apply(stage, callee, args, span)
            }
            BodyNode::Fix { stage, var, lam, rest } => {
                let stage = self.substitute_stage(map, stage);
                let mut map = map.clone();
                let new_var = self.terms.var_like(var);
                map.insert(var, Value::Var(new_var));
                let lam = self.copy(&map, lam);
                let rest = self.copy_body(&map, rest);
                self.terms.fix(stage, new_var, lam, rest, span)
            }
        }
    }
}

/// The variable that is not bound.
fn missing(node: &BodyNode, why: Why) -> Option<Var> {
    let BodyNode::Apply { callee, args, .. } = node else { return None };
    let value = match why {
        Why::UnboundCallee => *callee,
        Why::Fault(_, Fault::Unbound(i)) => args[i],
        _ => return None,
    };
    if let Value::Var(x) = value { Some(x) } else { None }
}

//! Terms of the calculus (Figures 1 and 2) as data: what the front end makes, both evaluators read, and residual programs are.
//!
//! Separate, since the evaluators share nothing else: each has its own way to substitute.
//!
//! A term lives in the arena [`Terms`], which only grows: the parts of a lambda or body have smaller ids than itself, so passes are
//! loops over ids and not recursions. Each binder is a [`Var`] of its own, bound once in a program.

use crate::prim::Prim;
use nyala_base::Span;
use std::sync::Arc;

nyala_base::define_id!(
    /// A parameter, a stage parameter or a name bound by `fix`.
    pub struct Var, "x"
);
nyala_base::define_id!(
    /// A function.
    pub struct Lam, "f"
);
nyala_base::define_id!(
    /// A body.
    pub struct Body, "b"
);
nyala_base::define_id!(
    /// A staging expression.
    pub struct Stage, "s"
);

nyala_base::define_id!(
    /// A constant array.
    pub struct Array, "a"
);

/// Staging expressions nest at most this deep: front ends report deeper ones. So they are the one thing that is walked by recursion.
pub const MAX_STAGE_DEPTH: u32 = 200;

#[derive(Clone, Copy, Debug)]
pub enum Const {
    Int(i32),
    Float(f32),
    Double(f64),
    Bool(bool),
    /// ⊤ (`true`) or ⊥ as an argument: the only constant that does not count as a known value is ⊥.
    Stage(bool),
    Prim(Prim),
    /// A function of other code. No rule executes its calls. The variable has its name and type.
    Foreign(Var),
    /// A text, as an array of its bytes.
    Text(Array),
    /// A constant array, of [`Terms::array`], from that element on.
    Array(Array, u32),
}

impl Const {
    /// No rule executes its calls: a program ends with `exit`, and what has effects happens when it runs.
    pub fn waits(self) -> bool {
        match self {
            Const::Prim(prim) => prim.waits(),
            Const::Foreign(_) => true,
            _ => false,
        }
    }
}

impl PartialEq for Const {
    fn eq(&self, other: &Const) -> bool {
        match (*self, *other) {
            (Const::Int(a), Const::Int(b)) => a == b,
            (Const::Float(a), Const::Float(b)) => a.to_bits() == b.to_bits(),
            (Const::Bool(a), Const::Bool(b)) | (Const::Stage(a), Const::Stage(b)) => a == b,
            (Const::Prim(a), Const::Prim(b)) => a == b,
            (Const::Double(a), Const::Double(b)) => a.to_bits() == b.to_bits(),
            (Const::Array(a, i), Const::Array(b, j)) => (a, i) == (b, j),
            (Const::Text(a), Const::Text(b)) => a == b,
            (Const::Foreign(a), Const::Foreign(b)) => a == b,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    Const(Const),
    Var(Var),
    Lam(Lam),
}

/// A staging expression. Only whether a value is known matters, so a known one is a truth value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StageNode {
    Const(bool),
    Var(Var),
    And(Stage, Stage),
    Or(Stage, Stage),
    Not(Stage),
}

/// `λ[y] x̄. b`
#[derive(Clone, Debug)]
pub struct LamNode {
    pub stage: Var,
    pub params: Box<[Var]>,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum BodyNode {
    /// `[e] v v̄`
    Apply { stage: Stage, callee: Value, args: Box<[Value]> },
    /// `[e] fix x = λ in b`
    Fix { stage: Stage, var: Var, lam: Lam, rest: Body },
}

impl BodyNode {
    pub fn stage(&self) -> Stage {
        match *self {
            BodyNode::Apply { stage, .. } | BodyNode::Fix { stage, .. } => stage,
        }
    }
}

#[derive(Clone, Default)]
pub struct Terms {
    /// The name, an index in `names`, and the variable of the source that it is a copy of.
    vars: Vec<(u32, Var)>,
    names: Vec<Option<Arc<str>>>,
    lams: Vec<LamNode>,
    bodies: Vec<(BodyNode, Span)>,
    stages: Vec<(StageNode, u32)>,
    arrays: Vec<Box<[Const]>>,
}

impl Terms {
    pub fn var(&mut self, name: Option<Arc<str>>) -> Var {
        let var = Var(self.vars.len() as u32);
        self.vars.push((self.names.len() as u32, var));
        self.names.push(name);
        var
    }

    /// Another variable, for a copy of what binds this one.
    pub fn var_like(&mut self, var: Var) -> Var {
        self.vars.push(self.vars[var.0 as usize]);
        Var(self.vars.len() as u32 - 1)
    }

    pub fn n_vars(&self) -> usize {
        self.vars.len()
    }

    pub fn name(&self, var: Var) -> Option<&Arc<str>> {
        self.names[self.vars[var.0 as usize].0 as usize].as_ref()
    }

    /// The variable of the source that `var` is a copy of.
    pub fn origin(&self, var: Var) -> Var {
        self.vars[var.0 as usize].1
    }

    pub fn lam(&mut self, stage: Var, params: impl Into<Box<[Var]>>, body: Body) -> Lam {
        self.lams.push(LamNode { stage, params: params.into(), body });
        Lam((self.lams.len() - 1) as u32)
    }

    pub fn lam_node(&self, lam: Lam) -> &LamNode {
        &self.lams[lam.0 as usize]
    }

    pub fn apply(&mut self, stage: Stage, callee: Value, args: impl Into<Box<[Value]>>, span: Span) -> Body {
        self.body(BodyNode::Apply { stage, callee, args: args.into() }, span)
    }

    pub fn fix(&mut self, stage: Stage, var: Var, lam: Lam, rest: Body, span: Span) -> Body {
        self.body(BodyNode::Fix { stage, var, lam, rest }, span)
    }

    fn body(&mut self, node: BodyNode, span: Span) -> Body {
        self.bodies.push((node, span));
        Body((self.bodies.len() - 1) as u32)
    }

    pub fn body_node(&self, body: Body) -> &BodyNode {
        &self.bodies[body.0 as usize].0
    }

    /// The place in the source, which a copy of a body shares.
    pub fn span(&self, body: Body) -> Span {
        self.bodies[body.0 as usize].1
    }

    pub fn n_lams(&self) -> usize {
        self.lams.len()
    }

    pub fn n_bodies(&self) -> usize {
        self.bodies.len()
    }

    /// An array of numbers or `bool`s.
    pub fn array(&mut self, elements: impl Into<Box<[Const]>>) -> Array {
        self.arrays.push(elements.into());
        Array((self.arrays.len() - 1) as u32)
    }

    pub fn elements(&self, array: Array) -> &[Const] {
        &self.arrays[array.0 as usize]
    }

    /// A staging expression, simplified: no constant is an operand, so equal terms print equally.
    pub fn stage(&mut self, node: StageNode) -> Stage {
        let depth = match node {
            StageNode::Const(_) | StageNode::Var(_) => 0,
            StageNode::And(a, b) => match (self.stage_node(a), self.stage_node(b)) {
                (StageNode::Const(false), _) | (_, StageNode::Const(true)) => return a,
                (StageNode::Const(true), _) | (_, StageNode::Const(false)) => return b,
                _ => self.stage_depth(a).max(self.stage_depth(b)) + 1,
            },
            StageNode::Or(a, b) => match (self.stage_node(a), self.stage_node(b)) {
                (StageNode::Const(true), _) | (_, StageNode::Const(false)) => return a,
                (StageNode::Const(false), _) | (_, StageNode::Const(true)) => return b,
                _ => self.stage_depth(a).max(self.stage_depth(b)) + 1,
            },
            StageNode::Not(a) => match self.stage_node(a) {
                StageNode::Const(known) => return self.stage(StageNode::Const(!known)),
                _ => self.stage_depth(a) + 1,
            },
        };
        self.stages.push((node, depth));
        Stage((self.stages.len() - 1) as u32)
    }

    pub fn stage_node(&self, stage: Stage) -> StageNode {
        self.stages[stage.0 as usize].0
    }

    /// 0 for constants and variables.
    pub fn stage_depth(&self, stage: Stage) -> u32 {
        self.stages[stage.0 as usize].1
    }

    /// Whether evaluation executes the body once its subterms wait.
    pub fn is_redex(&self, body: &BodyNode) -> bool {
        let waits = matches!(body, BodyNode::Apply { callee: Value::Const(callee), .. } if callee.waits());
        !waits && self.is_active(body.stage())
    }

    /// The judgment A: whether the expression is active, while all its variables are unbound.
    pub fn is_active(&self, stage: Stage) -> bool {
        match self.stage_node(stage) {
            StageNode::Const(known) => known,
            StageNode::Var(_) => false,
            StageNode::And(a, b) => self.is_active(a) && self.is_active(b),
            StageNode::Or(a, b) => self.is_active(a) || self.is_active(b),
            StageNode::Not(a) => !self.is_active(a),
        }
    }
}

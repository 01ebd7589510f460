//! Places where a program makes a function while it runs: `compile f (g)`.
//!
//! Separate from [`lower`](crate::lower), which makes code of what is left of a program: here is what stays a term until the program runs.
//!
//! `compile f (g)` goes on with a function `g` that does what `f` does. It changes nothing but the time that calls of `g` take, so an
//! engine without a compiler may go on with `f` itself. What is left of `f` has free variables. All of them are bound when control comes
//! to `compile`: numbers to values, which the program hands over; stages; and what is bound to functions or constants around it. With
//! these, staging goes on where it stopped when the program was compiled:
//!
//! ```text
//! λ[_] x̄ s̄. fix … in (λ[_] made. exit made) λ[y] env p̄. [⊤] (λ[_] t̄. b) ȳ        for f = λ[y] t̄ p̄. b
//! ```
//!
//! Here x̄ are the numbers, s̄ what only staging expressions mention, and `fix …` stands for all that is bound around it. The parameters t̄ of `f` that are stages become its own stage. C's
//! convention of calls by address puts an environment before the parameters.

use crate::prim::Prim;
use crate::program::{Export, Program, Signatures};
use crate::term::{Array, Body, BodyNode, Const, Lam, Stage, StageNode, Terms, Value, Var};
use crate::types::{Ty, TyNode, Types};
use nyala_base::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The name of the function that a [`Site`]'s program exports.
pub const COMPILED: &str = "nyala_compiled";

/// Such a place, as a program that takes the values of numbers.
pub struct Site {
    terms: Terms,
    lam: Lam,
    numbers: Vec<TyNode>,
    n_stages: usize,
    made: Var,
    types: Arc<Types>,
    error: Ty,
    of_vars: FxHashMap<Var, Ty>,
    places: FxHashMap<Var, Span>,
    in_order: bool,
    span: Span,
    /// Functions of other code that it calls.
    pub foreign: Vec<(Arc<str>, Span)>,
}

/// What makes the sites of a residual program.
pub(crate) struct Sites<'t> {
    terms: &'t Terms,
    in_order: bool,
    /// With the type of the environment; made for the first site.
    types: Option<(Arc<Types>, Ty)>,
    /// What is bound to known functions and constants, in the order in which it comes.
    bindings: FxHashMap<Var, (usize, Binding)>,
}

#[derive(Clone, Copy)]
struct Binding {
    is_fix: bool,
    value: Value,
}

/// A function of a site, or a constant: with the place and name of its binding; the one that is made has none.
struct Part {
    at: usize,
    var: Option<Var>,
    binding: Binding,
    occurring: Occurring,
}

/// What occurs in a function.
#[derive(Default)]
struct Occurring {
    values: FxHashSet<Var>,
    stages: FxHashSet<Var>,
    bound: FxHashSet<Var>,
    lams: FxHashSet<Lam>,
    bodies: Vec<Body>,
}

impl Occurring {
    fn value(&mut self, value: Value, work: &mut Vec<Lam>) {
        match value {
            Value::Const(_) => (),
            Value::Var(x) => _ = self.values.insert(x),
            Value::Lam(lam) => work.push(lam),
        }
    }

    fn stage(&mut self, terms: &Terms, stage: Stage) {
        match terms.stage_node(stage) {
            StageNode::Const(_) => (),
            StageNode::Var(x) => _ = self.stages.insert(x),
            StageNode::And(a, b) | StageNode::Or(a, b) => {
                self.stage(terms, a);
                self.stage(terms, b);
            }
            StageNode::Not(a) => self.stage(terms, a),
        }
    }

    fn of(terms: &Terms, value: Value) -> Occurring {
        let mut found = Occurring::default();
        let mut work = Vec::new();
        found.value(value, &mut work);
        while let Some(lam) = work.pop() {
            if !found.lams.insert(lam) {
                continue;
            }
            let node = terms.lam_node(lam);
            found.bound.extend(node.params.iter().chain([&node.stage]));
            let mut next = Some(node.body);
            while let Some(body) = next.take() {
                found.bodies.push(body);
                let node = terms.body_node(body);
                found.stage(terms, node.stage());
                match *node {
                    BodyNode::Apply { callee, ref args, .. } => {
                        found.value(callee, &mut work);
                        args.iter().for_each(|&arg| found.value(arg, &mut work));
                    }
                    BodyNode::Fix { var, lam, rest, .. } => {
                        found.bound.insert(var);
                        work.push(lam);
                        next = Some(rest);
                    }
                }
            }
        }
        // Parts have smaller ids, so they are copied first.
        found.bodies.sort();
        found.bodies.dedup();
        found
    }
}

impl<'t> Sites<'t> {
    pub fn new(terms: &'t Terms, in_order: bool) -> Sites<'t> {
        Sites { terms, in_order, types: None, bindings: FxHashMap::default() }
    }

    /// Notes what `fix` binds.
    pub fn fix(&mut self, var: Var, lam: Lam) {
        self.bind(var, Binding { is_fix: true, value: Value::Lam(lam) });
    }

    /// Notes what a call binds.
    pub fn bound(&mut self, var: Var, value: Value) {
        self.bind(var, Binding { is_fix: false, value });
    }

    fn bind(&mut self, var: Var, binding: Binding) {
        let n = self.bindings.len();
        self.bindings.entry(var).or_insert((n, binding));
    }

    /// The site of a function, and the variables whose values it takes. An error is a variable that is no number.
    pub fn site(&mut self, signatures: &mut Signatures, lam: Lam, span: Span) -> Result<(Site, Vec<Var>), Var> {
        // The function, and what it mentions around it, which may mention others.
        let mut parts: Vec<Part> = Vec::new();
        let mut work = vec![(usize::MAX, None, Binding { is_fix: false, value: Value::Lam(lam) })];
        let (mut numbers, mut stages): (Vec<Var>, FxHashSet<Var>) = (Vec::new(), FxHashSet::default());
        let mut seen: FxHashSet<Var> = FxHashSet::default();
        while let Some((at, var, binding)) = work.pop() {
            let occurring = Occurring::of(self.terms, binding.value);
            for &x in occurring.values.difference(&occurring.bound) {
                if !seen.insert(x) {
                    continue;
                }
                match (self.bindings.get(&x), signatures.of(self.terms, x)) {
                    (_, TyNode::Bool | TyNode::Int | TyNode::Float | TyNode::Double) => numbers.push(x),
                    // Stages that no parameter is have no type.
                    (_, TyNode::Stage | TyNode::Error) => _ = stages.insert(x),
                    (Some(&(at, binding)), _) => work.push((at, Some(x), binding)),
                    (None, _) => return Err(x),
                }
            }
            stages.extend(occurring.stages.difference(&occurring.bound));
            parts.push(Part { at, var, binding, occurring });
        }
        parts.sort_by_key(|p| p.at);
        numbers.sort();
        let bound: FxHashSet<Var> = parts.iter().filter_map(|p| p.var).collect();
        let is_other = |x: &Var| !bound.contains(x) && numbers.binary_search(x).is_err();
        let mut stages: Vec<Var> = stages.into_iter().filter(is_other).collect();
        stages.sort();
        let (types, environment) = self.types.get_or_insert_with(|| {
            let mut types = signatures.types.clone();
            let int = types.add(TyNode::Int);
            let environment = types.add(TyNode::Array(int));
            (Arc::new(types), environment)
        });
        let (types, environment) = (types.clone(), *environment);
        let mut copy = Copying {
            old: self.terms,
            signatures,
            new: Terms::default(),
            of_vars: FxHashMap::default(),
            places: FxHashMap::default(),
            free: FxHashMap::default(),
            vars: FxHashMap::default(),
            stages: FxHashMap::default(),
            lams: FxHashMap::default(),
            bodies: FxHashMap::default(),
            arrays: FxHashMap::default(),
            foreign: FxHashMap::default(),
        };
        let params: Vec<Var> = numbers.iter().chain(&stages).map(|&x| copy.free(x)).collect();
        parts.iter().filter_map(|p| p.var).for_each(|x| _ = copy.free(x));
        let always = copy.new.stage(StageNode::Const(true));
        let Some(function) = parts.pop() else { unreachable!("the function is a part") };
        copy.bodies(&function.occurring);
        let callable = copy.callable(lam, environment, always, span);
        let made = copy.new.var(Some(COMPILED.into()));
        let unused = |terms: &mut Terms| terms.var(Some("s".into()));
        let exit = copy.new.apply(always, Value::Const(Const::Prim(Prim::Exit)), [Value::Var(made)], span);
        let own = unused(&mut copy.new);
        let then = copy.new.lam(own, [made], exit);
        let mut body = copy.new.apply(always, Value::Lam(then), [Value::Lam(callable)], span);
        while let Some(Part { var: Some(x), binding, occurring, .. }) = parts.pop() {
            copy.bodies(&occurring);
            let (x, value) = (copy.var(x), copy.value(binding.value, span));
            body = match value {
                Value::Lam(lam) if binding.is_fix => copy.new.fix(always, x, lam, body, span),
                _ => {
                    let own = unused(&mut copy.new);
                    let rest = copy.new.lam(own, [x], body);
                    copy.new.apply(always, Value::Lam(rest), [value], span)
                }
            };
        }
        let own = unused(&mut copy.new);
        let outer = copy.new.lam(own, params, body);
        let Copying { new: terms, of_vars, places, foreign, .. } = copy;
        let mut foreign: Vec<(Arc<str>, Span)> =
            foreign.into_iter().filter_map(|(x, span)| Some((terms.name(x)?.clone(), span))).collect();
        foreign.sort_by_key(|f| (f.1.file.0, f.1.lo));
        let node_of = |x: &Var| signatures.of(self.terms, *x);
        let site = Site {
            terms,
            lam: outer,
            numbers: numbers.iter().map(node_of).collect(),
            n_stages: stages.len(),
            made,
            types,
            error: signatures.error,
            of_vars,
            places,
            in_order: self.in_order,
            span,
            foreign,
        };
        Ok((site, numbers))
    }
}

impl Site {
    /// The program that exports the function for these values, which have 64 bits each.
    pub fn program(&self, values: &[u64]) -> Program {
        let mut terms = self.terms.clone();
        let number = |(ty, &bits): (&TyNode, &u64)| match ty {
            TyNode::Bool => Const::Bool(bits != 0),
            TyNode::Float => Const::Float(f32::from_bits(bits as u32)),
            TyNode::Double => Const::Double(f64::from_bits(bits)),
            _ => Const::Int(bits as i32),
        };
        let numbers = self.numbers.iter().zip(values).map(number);
        let stages = std::iter::repeat_n(Const::Stage(true), self.n_stages);
        let args: Vec<Value> = numbers.chain(stages).map(Value::Const).collect();
        let always = terms.stage(StageNode::Const(true));
        let body = terms.apply(always, Value::Lam(self.lam), args, self.span);
        let exports = vec![Export { name: COMPILED.into(), var: self.made, at: 0, is_used: false }];
        let signatures = Signatures {
            types: Types::clone(&self.types),
            error: self.error,
            of_vars: self.of_vars.clone(),
            places: self.places.clone(),
        };
        Program { terms, body, exports, signatures, is_bundled: false, in_order: self.in_order }
    }
}

/// Parts of a term as a term of its own.
struct Copying<'t, 's> {
    old: &'t Terms,
    signatures: &'s mut Signatures,
    new: Terms,
    of_vars: FxHashMap<Var, Ty>,
    places: FxHashMap<Var, Span>,
    /// Variables of all parts.
    free: FxHashMap<Var, Var>,
    /// Of the part that is being copied. It may be within another one, where its variables have other names.
    vars: FxHashMap<Var, Var>,
    stages: FxHashMap<Stage, Stage>,
    lams: FxHashMap<Lam, Lam>,
    bodies: FxHashMap<Body, Body>,
    arrays: FxHashMap<Array, Array>,
    /// With the place of a call.
    foreign: FxHashMap<Var, Span>,
}

impl Copying<'_, '_> {
    fn var(&mut self, x: Var) -> Var {
        if let Some(&new) = self.free.get(&x).or_else(|| self.vars.get(&x)) {
            return new;
        }
        let new = self.new_var(x);
        self.vars.insert(x, new);
        new
    }

    fn free(&mut self, x: Var) -> Var {
        if let Some(&new) = self.free.get(&x) {
            return new;
        }
        let new = self.new_var(x);
        self.free.insert(x, new);
        new
    }

    fn new_var(&mut self, x: Var) -> Var {
        let new = self.new.var(self.old.name(x).cloned());
        let origin = self.old.origin(x);
        self.of_vars.extend(self.signatures.of_vars.get(&origin).map(|&ty| (new, ty)));
        self.places.extend(self.signatures.places.get(&origin).map(|&place| (new, place)));
        new
    }

    /// Staging expressions have a limited depth.
    fn stage(&mut self, stage: Stage) -> Stage {
        if let Some(&new) = self.stages.get(&stage) {
            return new;
        }
        let node = match self.old.stage_node(stage) {
            node @ StageNode::Const(_) => node,
            StageNode::Var(x) => StageNode::Var(self.var(x)),
            StageNode::And(a, b) => StageNode::And(self.stage(a), self.stage(b)),
            StageNode::Or(a, b) => StageNode::Or(self.stage(a), self.stage(b)),
            StageNode::Not(a) => StageNode::Not(self.stage(a)),
        };
        let new = self.new.stage(node);
        self.stages.insert(stage, new);
        new
    }

    /// So have the types of constant aggregates.
    fn array(&mut self, array: Array, span: Span) -> Array {
        if let Some(&new) = self.arrays.get(&array) {
            return new;
        }
        let elements: Vec<Const> = self.old.elements(array).iter().map(|&c| self.constant(c, span)).collect();
        let new = self.new.array(elements);
        self.arrays.insert(array, new);
        new
    }

    fn constant(&mut self, constant: Const, span: Span) -> Const {
        match constant {
            Const::Array(array, start) => Const::Array(self.array(array, span), start),
            Const::Text(text) => Const::Text(self.array(text, span)),
            Const::Foreign(x) => {
                let new = self.free(x);
                self.foreign.entry(new).or_insert(span);
                Const::Foreign(new)
            }
            Const::Int(_) | Const::Float(_) | Const::Double(_) | Const::Bool(_) | Const::Stage(_) | Const::Prim(_) => {
                constant
            }
        }
    }

    fn lam(&mut self, lam: Lam) -> Lam {
        if let Some(&new) = self.lams.get(&lam) {
            return new;
        }
        let node = self.old.lam_node(lam);
        let params: Vec<Var> = node.params.iter().map(|&x| self.var(x)).collect();
        let own = self.var(node.stage);
        let new = self.new.lam(own, params, self.bodies[&node.body]);
        self.lams.insert(lam, new);
        new
    }

    fn value(&mut self, value: Value, span: Span) -> Value {
        match value {
            Value::Const(c) => Value::Const(self.constant(c, span)),
            Value::Var(x) => Value::Var(self.var(x)),
            Value::Lam(lam) => Value::Lam(self.lam(lam)),
        }
    }

    /// Begins another part: its bodies.
    fn bodies(&mut self, of: &Occurring) {
        self.vars.clear();
        self.stages.clear();
        self.lams.clear();
        self.bodies.clear();
        of.bodies.iter().for_each(|&body| self.body(body));
    }

    fn body(&mut self, body: Body) {
        let span = self.old.span(body);
        let new = match *self.old.body_node(body) {
            BodyNode::Apply { stage, callee, ref args } => {
                let (stage, callee) = (self.stage(stage), self.value(callee, span));
                let args: Vec<Value> = args.iter().map(|&arg| self.value(arg, span)).collect();
                self.new.apply(stage, callee, args, span)
            }
            BodyNode::Fix { stage, var, lam, rest } => {
                let (stage, var, lam) = (self.stage(stage), self.var(var), self.lam(lam));
                self.new.fix(stage, var, lam, self.bodies[&rest], span)
            }
        };
        self.bodies.insert(body, new);
    }

    /// The function as C calls it.
    fn callable(&mut self, lam: Lam, environment: Ty, always: Stage, span: Span) -> Lam {
        let node = self.old.lam_node(lam);
        let env = self.new.var(Some("env".into()));
        self.of_vars.insert(env, environment);
        let (mut params, mut stages) = (vec![env], Vec::new());
        for &x in &node.params {
            let is_stage = matches!(self.signatures.of(self.old, x), TyNode::Stage);
            let x = self.var(x);
            if is_stage { stages.push(x) } else { params.push(x) }
        }
        let own = self.var(node.stage);
        let mut body = self.bodies[&node.body];
        if !stages.is_empty() {
            let values = vec![Value::Var(own); stages.len()];
            let unused = self.new.var(Some("s".into()));
            let inner = self.new.lam(unused, stages, body);
            body = self.new.apply(always, Value::Lam(inner), values, span);
        }
        self.new.lam(own, params, body)
    }
}

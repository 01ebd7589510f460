//! Vector lengths of PolyVecImp, by the fixed point of 4.3. The header of [`super`] says what it computes.
//!
//! What comes out is a VecImp program with a function for each instance that is needed: those of functions that no other calls, with scalars, and all that
//! they call. Scalar instances of others are kept if they are well-typed, for callers in other languages.

use super::Rules;
use super::check::Checker;
use super::syntax::*;
use crate::diagnostics::{sierra_lanes, sierra_name};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Sink, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Limit on the instances of functions.
const MAX_INSTANCES: usize = 1000;

/// τ varying(⊤). No length is 0.
const TOP: u32 = 0;

/// A function, the current length of its body, and the lengths of its arguments: those of mono types are the parameters'.
type Key = (usize, u32, Vec<u32>);

struct Instance {
    key: Key,
    /// Of variables and parameters of poly type: 1 if they are not there.
    lengths: FxHashMap<Rc<str>, u32>,
    result: u32,
    /// Where lengths met first that do not fit.
    conflict: Option<(Span, u32, u32)>,
    /// The instances that it calls.
    calls: Vec<usize>,
}

impl Instance {
    /// Whether a variable or the result has no length that fits.
    fn has_top(&self) -> bool {
        self.result == TOP || self.lengths.values().any(|&n| n == TOP)
    }
}

struct Inference<'p> {
    program: &'p Program,
    names: FxHashMap<Rc<str>, usize>,
    instances: Vec<Instance>,
    known: FxHashMap<Key, usize>,
    has_changed: bool,
    too_many: Option<Span>,
}

/// One instance, while it is looked at.
struct Scope<'p> {
    id: usize,
    /// The types of variables as they are written.
    declared: FxHashMap<Rc<str>, Declared>,
    function: &'p Function,
}

/// The VecImp program, of functions that are well-typed. What is wrong is reported.
pub fn infer(program: &Program, sink: &mut Sink) -> Program {
    let mut names = FxHashMap::default();
    for (i, f) in program.functions.iter().enumerate() {
        if let Some(before) = names.insert(f.name.text.clone(), i) {
            let before: &Function = &program.functions[before];
            sink.push(sierra_name::twice(f.name.span, &f.name.text, before.name.span));
            return Program::default();
        }
    }
    let mut inference = Inference {
        program,
        names,
        instances: Vec::new(),
        known: FxHashMap::default(),
        has_changed: true,
        too_many: None,
    };
    let roots: Vec<usize> = (0..program.functions.len()).map(|f| inference.scalar_instance(f)).collect();
    while std::mem::take(&mut inference.has_changed) && inference.too_many.is_none() {
        let mut id = 0;
        while id < inference.instances.len() {
            inference.round(id);
            id += 1;
        }
    }
    if let Some(span) = inference.too_many {
        let what = format!("more than {MAX_INSTANCES} instances of functions");
        sink.push(limitation::not_supported(span, &what, "write lengths at parameters"));
        return Program::default();
    }
    inference.finish(&roots, sink)
}

impl<'p> Inference<'p> {
    fn instance(&mut self, key: Key, span: Span) -> Option<usize> {
        if let Some(&id) = self.known.get(&key) {
            return Some(id);
        }
        if self.instances.len() >= MAX_INSTANCES {
            self.too_many = self.too_many.or(Some(span));
            return None;
        }
        let f = &self.program.functions[key.0];
        let poly = f.params.iter().zip(&key.2).filter(|(p, _)| is_poly(f, p.0));
        let lengths = poly.map(|((_, name), &n)| (name.text.clone(), n)).collect();
        let result = f.result.length.unwrap_or(1);
        let id = self.instances.len();
        self.known.insert(key.clone(), id);
        self.instances.push(Instance { key, lengths, result, conflict: None, calls: Vec::new() });
        self.has_changed = true;
        Some(id)
    }

    fn scalar_instance(&mut self, f: usize) -> usize {
        let function = &self.program.functions[f];
        let args = function.params.iter().map(|p| p.0.length.unwrap_or(1)).collect();
        self.instance((f, function.simd.unwrap_or(1), args), function.name.span).unwrap_or(0)
    }

    fn round(&mut self, id: usize) {
        let (f, l) = (self.instances[id].key.0, self.instances[id].key.1);
        let function = &self.program.functions[f];
        self.instances[id].calls.clear();
        let declared = function.params.iter().map(|(ty, name)| (name.text.clone(), *ty)).collect();
        let mut scope = Scope { id, declared, function };
        if let Some((n, span)) = self.statement(&mut scope, l, &function.body) {
            let n = self.joined(id, l, n, span);
            if is_poly(function, function.result) && self.instances[id].result != n {
                let old = self.instances[id].result;
                self.instances[id].result = self.joined(id, old, n, span);
                self.has_changed |= self.instances[id].result != old;
            }
        }
    }

    fn joined(&mut self, id: usize, a: u32, b: u32, span: Span) -> u32 {
        if a == TOP || b == TOP {
            return TOP;
        }
        join(a, b).unwrap_or_else(|| {
            self.instances[id].conflict.get_or_insert((span, a, b));
            TOP
        })
    }

    /// The length of what is returned, and where.
    fn statement(&mut self, scope: &mut Scope, l: u32, s: &Statement) -> Option<(u32, Span)> {
        for head in &s.heads {
            match &head.kind {
                HeadKind::Expr(e) => _ = self.expr(scope, l, e),
                HeadKind::Declare(ty, name) => _ = scope.declared.insert(name.text.clone(), *ty),
                HeadKind::Assign(name, e) => {
                    let from = self.expr(scope, l, e);
                    let is_poly = scope.declared.get(&name.text).is_some_and(|ty| is_poly_in(scope, name, *ty));
                    if !is_poly || from == TOP {
                        continue;
                    }
                    let old = self.instances[scope.id].lengths.get(&name.text).copied().unwrap_or(1);
                    let mode = self.joined(scope.id, l, from, e.span);
                    let new = self.joined(scope.id, old, mode, head.span);
                    if new != old {
                        self.instances[scope.id].lengths.insert(name.text.clone(), new);
                        self.has_changed = true;
                    }
                }
                HeadKind::If(condition, then, otherwise) => {
                    let n = self.expr(scope, l, condition);
                    let inner = self.joined(scope.id, l, n, condition.span);
                    if inner != TOP {
                        self.statement(scope, inner, then);
                        self.statement(scope, inner, otherwise);
                    }
                }
                HeadKind::While(condition, body) => {
                    let n = self.expr(scope, l, condition);
                    let inner = self.joined(scope.id, l, n, condition.span);
                    if inner != TOP {
                        self.expr(scope, inner, condition);
                        self.statement(scope, inner, body);
                    }
                }
            }
        }
        match &s.end {
            End::Return(e) => Some((self.expr(scope, l, e), e.span)),
            End::Skip => None,
        }
    }

    fn expr(&mut self, scope: &mut Scope, l: u32, e: &Expr) -> u32 {
        match &e.kind {
            ExprKind::Variable(name) => {
                let written = scope.declared.get(name).and_then(|ty| ty.length);
                written.unwrap_or_else(|| self.instances[scope.id].lengths.get(name).copied().unwrap_or(1))
            }
            ExprKind::Value(value, _) => value.ty().length,
            ExprKind::Vector(elements) => {
                elements.iter().for_each(|e| _ = self.expr(scope, l, e));
                elements.len() as u32
            }
            ExprKind::Call(callee, args) => {
                let found: Vec<u32> = args.iter().map(|e| self.expr(scope, l, e)).collect();
                let Callee::Function(name) = callee else {
                    return found.into_iter().fold(1, |a, b| self.joined(scope.id, a, b, e.span));
                };
                let Some(key) = self.key(l, name, &found) else { return 1 };
                if key.2.contains(&TOP) {
                    return TOP;
                }
                let Some(id) = self.instance(key, e.span) else { return 1 };
                self.instances[scope.id].calls.push(id);
                self.instances[id].result
            }
            // Of terms in the middle of their evaluation.
            ExprKind::Running(_) => 1,
        }
    }

    /// The instance that a call is about. `None`: there is no such function.
    fn key(&self, l: u32, name: &str, args: &[u32]) -> Option<Key> {
        let &f = self.names.get(name)?;
        let function = &self.program.functions[f];
        if function.params.len() != args.len() {
            return None;
        }
        let params = function.params.iter().zip(args);
        let lengths =
            params.map(|((ty, _), &n)| if is_poly(function, *ty) { n } else { ty.length.unwrap_or(1) }).collect();
        Some((f, function.simd.unwrap_or(l), lengths))
    }

    // The program.

    fn closure(&self, roots: impl IntoIterator<Item = usize>, found: &mut FxHashSet<usize>) {
        let mut open: Vec<usize> = roots.into_iter().collect();
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(&self.instances[id].calls);
            }
        }
    }

    fn finish(&self, roots: &[usize], sink: &mut Sink) -> Program {
        let functions = &self.program.functions;
        let called: FxHashSet<usize> = self
            .instances
            .iter()
            .flat_map(|i| i.calls.iter().map(|&c| (i.key.0, self.instances[c].key.0)))
            .filter(|(from, to)| from != to)
            .map(|(_, to)| to)
            .collect();
        let mut needed = FxHashSet::default();
        for (f, &root) in roots.iter().enumerate() {
            if functions[f].simd.is_some() || !called.contains(&f) || &*functions[f].name.text == "main" {
                self.closure([root], &mut needed);
            }
        }
        for (f, &root) in roots.iter().enumerate() {
            // Functions that call each other, and are called by no other.
            if !needed.iter().any(|&id| self.instances[id].key.0 == f) {
                self.closure([root], &mut needed);
            }
        }
        let all: Vec<Function> = (0..self.instances.len()).map(|id| self.translate(id)).collect();
        let all = Program { functions: all };
        let (checker, _) = Checker::new(&all, Rules::Repaired);
        let mut faults: Vec<Option<Box<Diagnostic>>> = (0..self.instances.len())
            .map(|id| match self.instances[id].conflict {
                // Of other values the checker says more.
                Some((span, a, b)) if self.instances[id].has_top() => {
                    Some(Box::new(sierra_lanes::conflict(span, a, b)))
                }
                _ => checker.function(&all.functions[id]).err().map(|f| f.diagnostic),
            })
            .collect();
        for &root in roots {
            let mut others = FxHashSet::default();
            self.closure([root], &mut others);
            if others.iter().all(|&id| faults[id].is_none()) {
                needed.extend(others);
            }
        }
        let mut ids: Vec<usize> = needed.into_iter().collect();
        // Instances of one function stand together, and faults in the order of the text.
        ids.sort_by_key(|&id| (self.instances[id].key.0, id));
        let mut reported = FxHashSet::default();
        let mut is_faulty = false;
        for &id in &ids {
            let Some(diagnostic) = faults[id].take() else { continue };
            is_faulty = true;
            if reported.insert((diagnostic.primary.span.lo, diagnostic.message.clone())) {
                sink.push(*diagnostic);
            }
        }
        if is_faulty {
            return Program::default();
        }
        Program { functions: ids.into_iter().map(|id| all.functions[id].clone()).collect() }
    }

    /// What the function of an instance is called.
    fn name(&self, key: &Key) -> (Rc<str>, bool) {
        let f = &self.program.functions[key.0];
        let is_scalar = f.params.iter().zip(&key.2).all(|(p, &n)| n == p.0.length.unwrap_or(1));
        if f.simd.is_some() || key.1 == 1 && is_scalar {
            return (f.name.text.clone(), true);
        }
        let lengths: Vec<String> = key.2.iter().map(|n| n.to_string()).collect();
        (format!("{}.{}.{}", f.name.text, key.1, lengths.join("_")).into(), false)
    }

    fn translate(&self, id: usize) -> Function {
        let Instance { key, lengths, result, .. } = &self.instances[id];
        let f = &self.program.functions[key.0];
        let (name, is_exported) = self.name(key);
        let mut writer = Writer { inference: self, function: f, lengths, n_conditions: 0 };
        Function {
            simd: Some(key.1),
            result: Declared { length: Some((*result).max(1)), ..f.result },
            name: Name { text: name, span: f.name.span },
            params: f.params.iter().map(|(ty, name)| (writer.declared(*ty, name), name.clone())).collect(),
            body: writer.statement(&mut FxHashMap::default(), key.1, &f.body),
            is_exported,
        }
    }
}

/// Whether a parameter or a result has a length that is inferred: those of a `simd` function are 1.
fn is_poly(f: &Function, ty: Declared) -> bool {
    ty.length.is_none() && f.simd.is_none()
}

fn is_poly_in(scope: &Scope, name: &Name, ty: Declared) -> bool {
    let is_param = scope.function.params.iter().any(|p| p.1.text == name.text);
    ty.length.is_none() && (!is_param || scope.function.simd.is_none())
}

/// Writes the body of an instance.
struct Writer<'a, 'p> {
    inference: &'a Inference<'p>,
    function: &'p Function,
    lengths: &'a FxHashMap<Rc<str>, u32>,
    n_conditions: usize,
}

/// The lengths of variables in scope.
type Lengths = FxHashMap<Rc<str>, u32>;

impl Writer<'_, '_> {
    fn declared(&self, ty: Declared, name: &Name) -> Declared {
        let length = ty.length.unwrap_or_else(|| self.lengths.get(&name.text).copied().unwrap_or(1).max(1));
        Declared { length: Some(length), ..ty }
    }

    fn statement(&mut self, known: &mut Lengths, l: u32, s: &Statement) -> Statement {
        let mut heads = Vec::new();
        for head in &s.heads {
            let kind = match &head.kind {
                HeadKind::Expr(e) => HeadKind::Expr(self.expr(known, l, e).0),
                HeadKind::Declare(ty, name) => {
                    let ty = self.declared(*ty, name);
                    known.insert(name.text.clone(), ty.ty().length);
                    HeadKind::Declare(ty, name.clone())
                }
                HeadKind::Assign(name, e) => HeadKind::Assign(name.clone(), self.expr(known, l, e).0),
                HeadKind::If(condition, then, otherwise) => {
                    let (condition, n) = self.expr(known, l, condition);
                    let inner = join(l, n).unwrap_or(l);
                    let [then, otherwise] = [then, otherwise].map(|s| self.statement(known, inner, s));
                    HeadKind::If(condition, then, otherwise)
                }
                HeadKind::While(condition, body) => {
                    let (first, n) = self.expr(known, l, condition);
                    let inner = join(l, n).unwrap_or(l);
                    let mut body = self.statement(known, inner, body);
                    if inner == l || !self.calls_poly(condition) {
                        HeadKind::While(first, body)
                    } else {
                        // The first round calls other instances than the rest.
                        let (next, span) = (self.expr(known, inner, condition).0, condition.span);
                        let name = Name { text: format!("while.{}", self.n_conditions).into(), span };
                        self.n_conditions += 1;
                        let ty = Declared { element: Element::Bool, length: Some(n) };
                        let assign = |e| Head { kind: HeadKind::Assign(name.clone(), e), span };
                        heads.push(Head { kind: HeadKind::Declare(ty, name.clone()), span });
                        heads.push(assign(first));
                        body.heads.push(assign(next));
                        HeadKind::While(Expr { kind: ExprKind::Variable(name.text.clone()), span }, body)
                    }
                }
            };
            heads.push(Head { kind, span: head.span });
        }
        let end = match &s.end {
            End::Return(e) => End::Return(self.expr(known, l, e).0),
            End::Skip => End::Skip,
        };
        Statement { heads, end }
    }

    fn calls_poly(&self, e: &Expr) -> bool {
        let is_poly = |name: &str| {
            let functions = &self.inference.program.functions;
            self.inference.names.get(name).is_some_and(|&f| functions[f].simd.is_none())
        };
        match &e.kind {
            ExprKind::Call(Callee::Function(name), args) => is_poly(name) || args.iter().any(|e| self.calls_poly(e)),
            ExprKind::Call(_, list) | ExprKind::Vector(list) => list.iter().any(|e| self.calls_poly(e)),
            _ => false,
        }
    }

    /// The expression with the names of instances, and its length. What does not fit is the checker's to report.
    fn expr(&self, known: &Lengths, l: u32, e: &Expr) -> (Expr, u32) {
        let of = |list: &[Expr]| -> (Vec<Expr>, Vec<u32>) { list.iter().map(|e| self.expr(known, l, e)).unzip() };
        let (kind, length) = match &e.kind {
            ExprKind::Variable(name) => {
                let of_param = self.function.params.iter().find(|p| p.1.text == *name);
                let length = of_param.map(|(ty, name)| self.declared(*ty, name).ty().length);
                (e.kind.clone(), length.or(known.get(name).copied()).unwrap_or(1))
            }
            ExprKind::Vector(elements) => (ExprKind::Vector(of(elements).0), elements.len() as u32),
            ExprKind::Call(callee @ Callee::Operator(_), args) => {
                let (args, lengths) = of(args);
                let n = lengths.into_iter().fold(1, |a, b| join(a, b).unwrap_or(a));
                (ExprKind::Call(callee.clone(), args), n)
            }
            ExprKind::Call(Callee::Function(name), args) => {
                let (args, lengths) = of(args);
                let key = self.inference.key(l, name, &lengths);
                let id = key.as_ref().and_then(|key| self.inference.known.get(key));
                let called = key.as_ref().map_or(name.clone(), |key| self.inference.name(key).0);
                let length = id.map_or(1, |&id| self.inference.instances[id].result.max(1));
                (ExprKind::Call(Callee::Function(called), args), length)
            }
            ExprKind::Value(value, _) => (e.kind.clone(), value.ty().length),
            ExprKind::Running(_) => (e.kind.clone(), 1),
        };
        (Expr { kind, span: e.span }, length)
    }
}

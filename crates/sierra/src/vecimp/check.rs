//! The type checker: Figure 4.6 rule by rule, under the names that rules have there.
//!
//! It also types terms in the middle of their evaluation, so that the tests see preservation. Where the figure is not sound, [`super`] says what is
//! different here: TS-While, TE-Stmt.

use super::Rules;
use super::syntax::*;
use crate::diagnostics::{sierra_lanes, sierra_name, sierra_type};
use nyala_base::{Diagnostic, Span};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A premise that does not hold, of a rule.
#[derive(Debug)]
pub struct Fault {
    pub rule: &'static str,
    pub diagnostic: Box<Diagnostic>,
}

type Checked<T> = Result<T, Fault>;

/// Γ
pub type Environment = FxHashMap<Rc<str>, Ty>;

pub struct Checker<'p> {
    functions: Rc<FxHashMap<Rc<str>, &'p Function>>,
    rules: Rules,
    /// The state in the middle of an evaluation: that of the innermost function.
    current: Option<&'p State>,
}

/// T-Prg
pub fn program(program: &Program, rules: Rules) -> Vec<Fault> {
    let (checker, twice) = Checker::new(program, rules);
    let faults = program.functions.iter().filter_map(|f| checker.function(f).err());
    twice.into_iter().chain(faults).collect()
}

/// A-Length, A-Splat, A-Scalar: the rule by which a value of the length `from` can be assigned to a variable of the length `to`.
pub fn assignable(l: u32, to: u32, from: u32) -> Option<&'static str> {
    if join(l, from) == Some(to) {
        return Some("A-Length");
    }
    if l == 1 && from == 1 {
        return Some("A-Splat");
    }
    (to == 1 && from == 1).then_some("A-Scalar")
}

fn fault<T>(rule: &'static str, diagnostic: Diagnostic) -> Checked<T> {
    Err(Fault { rule, diagnostic: Box::new(diagnostic) })
}

/// The premise `l ⊔ n ≠ ⊤`.
fn fits(rule: &'static str, l: u32, n: u32, span: Span) -> Checked<u32> {
    match join(l, n) {
        Some(joined) => Ok(joined),
        None => fault(rule, sierra_lanes::mode(span, n, l)),
    }
}

/// The premise `l ⊢ to ← from`.
fn assign(rule: &'static str, l: u32, to: Ty, from: Ty, span: Span) -> Checked<()> {
    if assignable(l, to.length, from.length).is_some() {
        return Ok(());
    }
    fault(rule, sierra_lanes::not_assignable(span, &from.show(), &to.show(), l))
}

fn same_element(rule: &'static str, expected: Ty, found: Ty, span: Span) -> Checked<()> {
    if expected.element == found.element {
        return Ok(());
    }
    fault(rule, sierra_type::mismatch(span, found.element.word(), &format!("`{}`", expected.element.word())))
}

impl<'p> Checker<'p> {
    /// Also the names that functions have twice.
    pub fn new(program: &'p Program, rules: Rules) -> (Checker<'p>, Vec<Fault>) {
        let mut functions: FxHashMap<Rc<str>, &Function> = FxHashMap::default();
        let mut twice = Vec::new();
        for f in &program.functions {
            if let Some(before) = functions.insert(f.name.text.clone(), f) {
                let diagnostic = sierra_name::twice(f.name.span, &f.name.text, before.name.span);
                twice.push(Fault { rule: "T-Prg", diagnostic: Box::new(diagnostic) });
            }
        }
        (Checker { functions: functions.into(), rules, current: None }, twice)
    }

    /// The type of an expression in the middle of its evaluation, whose innermost function has this state.
    pub fn configuration<'s>(&'s self, state: &'s State, l: u32, e: &Expr) -> Checked<Ty> {
        let checker = Checker::<'s> { functions: self.functions.clone(), rules: self.rules, current: Some(state) };
        let mut environment = checker.environment(running_of(e));
        checker.expr(&mut environment, l, e)
    }

    /// T-Fun
    pub fn function(&self, f: &Function) -> Checked<()> {
        let l = f.simd.unwrap_or(1);
        let mut environment = Environment::default();
        // All names are unique.
        let mut names: FxHashMap<Rc<str>, Span> = FxHashMap::default();
        let mut unique = |name: &Name| match names.insert(name.text.clone(), name.span) {
            Some(before) => fault("T-Fun", sierra_name::twice(name.span, &name.text, before)),
            None => Ok(()),
        };
        for (ty, name) in &f.params {
            fits("T-Fun", l, ty.ty().length, name.span)?;
            unique(name)?;
            environment.insert(name.text.clone(), ty.ty());
        }
        let mut lists = vec![&f.body];
        while let Some(list) = lists.pop() {
            for head in &list.heads {
                match &head.kind {
                    HeadKind::Declare(_, name) => unique(name)?,
                    HeadKind::If(_, then, otherwise) => lists.extend([otherwise, then]),
                    HeadKind::While(_, body) => lists.push(body),
                    HeadKind::Expr(_) | HeadKind::Assign(..) => {}
                }
            }
        }
        let expected = f.result.ty();
        fits("T-Fun", l, expected.length, f.name.span)?;
        match self.statement(&mut environment, l, &f.body)? {
            Some(found) if found == expected => Ok(()),
            Some(found) => {
                let span = if let End::Return(e) = &f.body.end { e.span } else { f.name.span };
                fault("T-Fun", sierra_type::mismatch(span, &found.show(), &format!("`{}`", expected.show())))
            }
            None => fault("T-Fun", sierra_type::no_return(f.name.span, &expected.show())),
        }
    }

    /// `Φ; Γ; l ⊢ s : t`. `None` is ⊥.
    pub fn statement(&self, environment: &mut Environment, l: u32, s: &Statement) -> Checked<Option<Ty>> {
        // What a block declares is not known behind it.
        let mut before = Vec::new();
        let mut typed = Ok(None);
        for head in &s.heads {
            if let HeadKind::Declare(ty, name) = &head.kind {
                // TS-Decl
                typed = fits("TS-Decl", l, ty.ty().length, head.span).map(|_| None);
                before.push((name.text.clone(), environment.insert(name.text.clone(), ty.ty())));
            } else {
                typed = self.head(environment, l, head).map(|()| None);
            }
            if typed.is_err() {
                break;
            }
        }
        if typed.is_ok() {
            typed = self.end(environment, l, &s.end);
        }
        for (name, old) in before.into_iter().rev() {
            match old {
                Some(old) => environment.insert(name, old),
                None => environment.remove(&name),
            };
        }
        typed
    }

    fn end(&self, environment: &mut Environment, l: u32, end: &End) -> Checked<Option<Ty>> {
        match end {
            // TS-Skip
            End::Skip => Ok(None),
            // TS-Ret
            End::Return(e) => {
                let ty = self.expr(environment, l, e)?;
                let length = fits("TS-Ret", l, ty.length, e.span)?;
                Ok(Some(Ty { length, ..ty }))
            }
        }
    }

    /// The premises of a rule that are about the head of a list, in front of the rest.
    fn head(&self, environment: &mut Environment, l: u32, head: &Head) -> Checked<()> {
        match &head.kind {
            HeadKind::Expr(e) => {
                let ty = self.expr(environment, l, e)?;
                fits("TS-Expr", l, ty.length, e.span)?;
            }
            HeadKind::Declare(..) => {}
            HeadKind::Assign(name, e) => {
                let Some(&to) = environment.get(&name.text) else {
                    return fault("TS-Assign", sierra_name::error(name.span, &name.text));
                };
                let from = self.expr(environment, l, e)?;
                same_element("TS-Assign", to, from, e.span)?;
                assign("TS-Assign", l, to, from, e.span)?;
            }
            HeadKind::If(condition, then, otherwise) => {
                let inner = self.condition("TS-If", environment, l, condition)?;
                for branch in [then, otherwise] {
                    self.falls_through("TS-If", environment, inner, branch)?;
                }
            }
            HeadKind::While(condition, body) => {
                let inner = self.condition("TS-While", environment, l, condition)?;
                // It is evaluated there from the second round on.
                if self.rules == Rules::Repaired && inner != l {
                    let again = self.condition("TS-While", environment, inner, condition);
                    again.map_err(|f| Fault { rule: "TS-While", ..f })?;
                }
                self.falls_through("TS-While", environment, inner, body)?;
            }
        }
        Ok(())
    }

    /// The current length under a condition.
    fn condition(&self, rule: &'static str, environment: &mut Environment, l: u32, e: &Expr) -> Checked<u32> {
        let ty = self.expr(environment, l, e)?;
        same_element(rule, Ty { element: Element::Bool, ..ty }, ty, e.span)?;
        fits(rule, l, ty.length, e.span)
    }

    /// `s : ⊥`
    fn falls_through(&self, rule: &'static str, environment: &mut Environment, l: u32, s: &Statement) -> Checked<()> {
        match (self.statement(environment, l, s)?, &s.end) {
            (Some(_), End::Return(e)) => fault(rule, sierra_type::inner_return(e.span)),
            _ => Ok(()),
        }
    }

    /// `Φ; Γ; l ⊢ e : t`
    pub fn expr(&self, environment: &mut Environment, l: u32, e: &Expr) -> Checked<Ty> {
        let (rule, ty) = match &e.kind {
            ExprKind::Variable(name) => match environment.get(name) {
                Some(&ty) => ("TE-Var", ty),
                None => return fault("TE-Var", sierra_name::error(e.span, name)),
            },
            ExprKind::Value(value, _) => ("TE-Val", value.ty()),
            ExprKind::Call(callee, args) => ("TE-Call", self.call(environment, l, callee, args, e.span)?),
            ExprKind::Vector(elements) => {
                let mut first: Option<Ty> = None;
                for e in elements {
                    let ty = self.expr(environment, l, e)?;
                    if ty.length != 1 {
                        let expected = Ty { length: 1, ..first.unwrap_or(ty) };
                        return fault("TE-Vec", sierra_lanes::vector(e.span, &ty.show(), &expected.show()));
                    }
                    same_element("TE-Vec", *first.get_or_insert(ty), ty, e.span)?;
                }
                let Some(first) = first else { return fault("TE-Vec", sierra_lanes::number(e.span, 0, 1)) };
                ("TE-Vec", Ty { length: elements.len() as u32, ..first })
            }
            ExprKind::Running(running) => {
                let mut environment = self.environment(running_in(&running.body));
                match self.statement(&mut environment, running.length, &running.body)? {
                    Some(ty) if ty == running.result => ("TE-Stmt", ty),
                    found => {
                        let found = found.map_or("⊥".into(), Ty::show);
                        let diagnostic = sierra_type::mismatch(e.span, &found, &running.result.show());
                        return fault("TE-Stmt", diagnostic);
                    }
                }
            }
        };
        fits(rule, l, ty.length, e.span)?;
        Ok(ty)
    }

    /// TE-Call. Operators are functions of each current length, and take operands of one length.
    fn call(&self, environment: &mut Environment, l: u32, callee: &Callee, args: &[Expr], span: Span) -> Checked<Ty> {
        let f = match callee {
            Callee::Operator(_) => None,
            Callee::Function(name) => match self.functions.get(name) {
                None => return fault("TE-Call", sierra_name::error(span, name)),
                Some(f) if f.params.len() != args.len() => {
                    let diagnostic = sierra_type::arguments(span, args.len(), f.params.len(), f.name.span);
                    return fault("TE-Call", diagnostic);
                }
                found => found,
            },
        };
        let mut types = Vec::new();
        for e in args {
            types.push(self.expr(environment, l, e)?);
        }
        match (f, callee) {
            (Some(f), _) => {
                for ((&from, to), e) in types.iter().zip(&f.params).zip(args) {
                    same_element("TE-Call", to.0.ty(), from, e.span)?;
                    assign("TE-Call", l, to.0.ty(), from, e.span)?;
                }
                let callee = f.simd.unwrap_or(1);
                if assignable(l, callee, l).is_none() {
                    return fault("TE-Call", sierra_lanes::callee(span, &f.name.text, callee, l));
                }
                Ok(f.result.ty())
            }
            (None, &Callee::Operator(operator)) => {
                let elements: Vec<Element> = types.iter().map(|t| t.element).collect();
                let Some(element) = operator.result(&elements) else {
                    let shown: Vec<String> = types.iter().map(|t| t.show()).collect();
                    let diagnostic = match &shown[..] {
                        [one] => sierra_type::operand(span, operator.word(), one),
                        [left, right, ..] => sierra_type::operands(span, operator.word(), left, right),
                        [] => sierra_type::arguments(span, 0, 2, Span::NONE),
                    };
                    return fault("TE-Call", diagnostic);
                };
                let mut length = 1;
                for &ty in &types {
                    let Some(joined) = join(length, ty.length) else {
                        let [left, right] = [types[0], ty].map(Ty::show);
                        return fault("TE-Call", sierra_lanes::mismatch(span, &left, &right));
                    };
                    length = joined;
                }
                Ok(Ty { element, length })
            }
            (None, Callee::Function(name)) => fault("TE-Call", sierra_name::error(span, name)),
        }
    }

    /// Γ ≃ σ of a term in the middle of its evaluation: its state waits in the call that is evaluated in it.
    fn environment(&self, inner: Option<&Running>) -> Environment {
        let state = inner.map(|r| &r.saved).or(self.current);
        state.into_iter().flat_map(|s| &s.0).map(|(name, value)| (name.clone(), value.ty())).collect()
    }
}

/// The outermost call that is evaluated within a statement: it is in the head, and nowhere else.
fn running_in(s: &Statement) -> Option<&Running> {
    let mut list = s;
    loop {
        match (list.heads.first().map(|h| &h.kind), &list.end) {
            (Some(HeadKind::Expr(e) | HeadKind::Assign(_, e)), _) | (None, End::Return(e)) => return running_of(e),
            (Some(HeadKind::If(e, then, otherwise)), _) => {
                if e.as_value().is_none() {
                    return running_of(e);
                }
                list = if then.is_skip() { otherwise } else { then };
            }
            _ => return None,
        }
    }
}

fn running_of(e: &Expr) -> Option<&Running> {
    match &e.kind {
        ExprKind::Running(running) => Some(running),
        // All before it are values.
        ExprKind::Call(_, list) | ExprKind::Vector(list) => running_of(list.iter().find(|e| e.as_value().is_none())?),
        ExprKind::Variable(_) | ExprKind::Value(..) => None,
    }
}

//! Statements as text. Each variable is declared in the innermost block that contains all its uses, where it gets its
//! first value if that is possible.

use crate::dialect::Compound;
use crate::expr::{Expr, Form};
use crate::statements::{Loop, Node};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// A variable of a function.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub name: String,
    /// Its type, as it stands before the name.
    pub declared: String,
    /// It is declared elsewhere: as a parameter.
    pub is_parameter: bool,
}

/// Where a block of statements stands: its parent, and the statement of the parent that contains it.
#[derive(Clone, Copy)]
struct Scope {
    parent: usize,
    statement: usize,
}

/// Finds where variables are declared. Scopes and statements are numbered in the order of a walk.
#[derive(Default)]
struct Places {
    scopes: Vec<Scope>,
    n_statements: usize,
    /// For each variable the innermost scope around all places where it occurs, and the first statement there.
    of: FxHashMap<u32, (usize, usize)>,
}

impl Places {
    fn scope(&mut self, parent: usize, statement: usize) -> usize {
        self.scopes.push(Scope { parent, statement });
        self.scopes.len() - 1
    }

    fn mention(&mut self, vars: &[u32], scope: usize, statement: usize) {
        for &var in vars {
            let Some(&(mut at, mut first)) = self.of.get(&var) else {
                self.of.insert(var, (scope, statement));
                continue;
            };
            // Parents have smaller numbers.
            let mut other = scope;
            while at != other {
                if at > other {
                    (first, at) = (self.scopes[at].statement, self.scopes[at].parent);
                } else {
                    other = self.scopes[other].parent;
                }
            }
            self.of.insert(var, (at, first));
        }
    }

    fn walk(&mut self, nodes: &[Node], scope: usize) {
        for node in nodes {
            let statement = self.n_statements;
            self.n_statements += 1;
            match node {
                Node::Assign { var, value } => {
                    self.mention(&value.vars, scope, statement);
                    self.mention(&[*var], scope, statement);
                }
                Node::Do { vars, .. } | Node::Exit { vars, .. } => self.mention(vars, scope, statement),
                Node::If { cond, then, els } => {
                    self.mention(&cond.vars, scope, statement);
                    for side in [then, els] {
                        let inner = self.scope(scope, statement);
                        self.walk(side, inner);
                    }
                }
                Node::Loop(l) => {
                    let head = self.scope(scope, statement);
                    if let Some((var, value)) = &l.init {
                        self.mention(&value.vars, scope, statement);
                        self.mention(&[*var], head, statement);
                    }
                    let step = l.step.iter().flat_map(|s| &s.vars);
                    let tested = l.before.iter().chain(&l.after).flat_map(|c| &c.vars);
                    let vars: Vec<u32> = step.chain(tested).copied().collect();
                    self.mention(&vars, head, statement);
                    let body = self.scope(head, statement);
                    self.walk(&l.body, body);
                }
                Node::Label(_) => {}
            }
        }
    }
}

/// The text of an expression that becomes a value.
pub(crate) fn initializer(e: &Expr, is_declaration: bool, compound: Compound) -> String {
    match &e.form {
        Form::Braces(ty) if !is_declaration => compound.value(ty, &e.text),
        _ => e.text.clone(),
    }
}

/// Writes the statements of a function. All variables are declared first if `early`.
pub(crate) fn body(nodes: &[Node], vars: &[Variable], early: bool, compound: Compound) -> String {
    let mut places = Places::default();
    let root = places.scope(0, 0);
    places.walk(nodes, root);
    let mut declared: FxHashMap<(usize, usize), Vec<u32>> = FxHashMap::default();
    let mut all: Vec<(u32, (usize, usize))> = places.of.iter().map(|(&v, &at)| (v, at)).collect();
    all.sort_unstable();
    for (var, at) in all.into_iter().filter(|(var, _)| !vars[*var as usize].is_parameter) {
        declared.entry(if early { (root, 0) } else { at }).or_default().push(var);
    }
    let mut printer = Printer { vars, declared, early, compound, out: String::new(), n_scopes: 1, n_statements: 0 };
    printer.list(nodes, root, 1);
    printer.out
}

struct Printer<'a> {
    vars: &'a [Variable],
    declared: FxHashMap<(usize, usize), Vec<u32>>,
    early: bool,
    compound: Compound,
    out: String,
    n_scopes: usize,
    n_statements: usize,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 4 * depth);
    }

    fn scope(&mut self) -> usize {
        self.n_scopes += 1;
        self.n_scopes - 1
    }

    fn assignment(&self, var: u32, value: &Expr, is_declaration: bool) -> String {
        let Variable { name, declared, .. } = &self.vars[var as usize];
        let ty = if is_declaration { declared.as_str() } else { "" };
        if let (Some((left, op, right)), false, Form::Value) = (&value.update, is_declaration, &value.form)
            && left == name
        {
            return format!("{name} {op}= {right}");
        }
        format!("{ty}{name} = {}", initializer(value, is_declaration, self.compound))
    }

    /// Prints a list of statements.
    fn list(&mut self, nodes: &[Node], scope: usize, depth: usize) {
        for node in nodes {
            let statement = self.n_statements;
            self.n_statements += 1;
            let mut own = false;
            for var in self.declared.remove(&(scope, statement)).unwrap_or_default() {
                if matches!(node, Node::Assign { var: v, value } if *v == var && !value.vars.contains(&var))
                    && !self.early
                {
                    own = true;
                    continue;
                }
                let Variable { name, declared, .. } = &self.vars[var as usize];
                let text = format!("{declared}{name};");
                self.line(depth, &text);
            }
            match node {
                Node::Assign { var, value } => {
                    let text = self.assignment(*var, value, own);
                    self.line(depth, &(text + ";"));
                }
                Node::Do { text, .. } if text.starts_with('#') => self.line(0, text),
                Node::Do { text, .. } | Node::Exit { text, .. } => self.line(depth, &format!("{text};")),
                Node::Label(name) => self.line(depth - 1, &format!("{name}:;")),
                Node::If { .. } => self.branch(node, depth, ""),
                Node::Loop(l) => self.loop_of(l, statement, depth),
            }
        }
    }

    fn branch(&mut self, node: &Node, depth: usize, before: &str) {
        let Node::If { cond, then, els } = node else { return };
        let inner = self.scope();
        if let ([Node::Exit { text, .. }], true) = (&then[..], els.is_empty()) {
            self.n_statements += 1;
            self.scope();
            return self.line(depth, &format!("{before}if ({}) {text};", cond.text));
        }
        self.line(depth, &format!("{before}if ({}) {{", cond.text));
        self.list(then, inner, depth + 1);
        let other = self.scope();
        if els.is_empty() {
            return self.line(depth, "}");
        }
        if let [chained @ Node::If { .. }] = &els[..]
            && !self.declared.contains_key(&(other, self.n_statements))
        {
            self.n_statements += 1;
            return self.branch(chained, depth, "} else ");
        }
        self.line(depth, "} else {");
        self.list(els, other, depth + 1);
        self.line(depth, "}");
    }

    fn loop_of(&mut self, l: &Loop, statement: usize, depth: usize) {
        let head = self.scope();
        let own = self.declared.remove(&(head, statement)).unwrap_or_default();
        let is_first = |var: u32| l.init.as_ref().is_some_and(|i| i.0 == var);
        let early = self.early;
        for &var in own.iter().filter(|v| early || !is_first(**v)) {
            let Variable { name, declared, .. } = &self.vars[var as usize];
            let text = format!("{declared}{name};");
            self.line(depth, &text);
        }
        let init = l.init.as_ref().map(|(var, value)| self.assignment(*var, value, !self.early && own.contains(var)));
        let init = init.unwrap_or_default();
        let before = l.before.as_ref().map_or("", |c| &c.text);
        let body = self.scope();
        match (&l.step, &l.after) {
            (Some(step), _) => {
                let before = if before.is_empty() { String::new() } else { format!(" {before}") };
                self.line(depth, &format!("for ({init};{before}; {}) {{", step.text));
            }
            (None, Some(_)) => self.line(depth, "do {"),
            (None, None) if before.is_empty() => self.line(depth, "for (;;) {"),
            (None, None) => self.line(depth, &format!("while ({before}) {{")),
        }
        self.list(&l.body, body, depth + 1);
        match &l.after {
            Some(c) => self.line(depth, &format!("}} while ({});", c.text)),
            None => self.line(depth, "}"),
        }
    }
}

//! Terms as DeepCPS text, which reads back.
//!
//! Separate, since both evaluators and the front end are tested by it: equal terms have equal text, whatever the ids of their variables.
//!
//! A body on a line of its own; what the last argument's function does follows at the same indentation. A stage is named where something
//! besides the function's own body uses it.

use crate::prim::Prim;
use crate::term::{Body, BodyNode, Const, Lam, Stage, StageNode, Terms, Value, Var};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;
use std::sync::Arc;

enum Item {
    Text(&'static str),
    Name(Arc<str>),
    NewLine(usize),
    /// From here on the variable is called that.
    Called(Var, String),
    /// With the stage that is natural there, `None` for the program; indentation.
    Body(Body, Option<Var>, usize),
    Value(Value, usize),
    /// The last argument.
    Last(Lam, usize),
}

struct Printer<'t> {
    terms: &'t Terms,
    out: String,
    names: FxHashMap<Var, String>,
    taken: FxHashSet<String>,
    /// The number that a further variable of that name tries first.
    numbers: FxHashMap<String, u32>,
    /// Stages that are used by other bodies than the head of their own function.
    shown: FxHashSet<Var>,
}

/// The text of `let NAME` for each of the results that a program ends with.
pub fn print_results(terms: &Terms, names: &[Arc<str>], results: &[Value]) -> String {
    let mut printer = Printer::new(terms);
    for value in results {
        if let Value::Lam(lam) = *value {
            let node = terms.lam_node(lam);
            printer.find_shown(node.body, Some(node.stage));
        }
    }
    printer.taken.extend(names.iter().map(|n| n.to_string()));
    for (name, &value) in names.iter().zip(results) {
        printer.print(vec![
            Item::Text("\n"),
            Item::Value(value, 0),
            Item::Text(" "),
            Item::Name(name.clone()),
            Item::Text("let "),
        ]);
    }
    printer.out
}

/// The text of a closed body, or of one whose free variables have names. Ends with a newline.
pub fn print(terms: &Terms, body: Body) -> String {
    let mut printer = Printer::new(terms);
    printer.find_shown(body, None);
    printer.print(vec![Item::Text("\n"), Item::Body(body, None, 0)]);
    printer.out
}

/// Text that is longer is cut off.
const MAX_TEXT: usize = 10_000_000;

/// Words that are no names.
pub const WORDS: [&str; 13] =
    ["let", "extern", "fix", "fn", "stage", "bool", "int", "float", "double", "always", "never", "true", "false"];

impl Printer<'_> {
    fn new(terms: &Terms) -> Printer<'_> {
        let taken = Prim::ALL.iter().map(|p| p.name()).chain(WORDS.iter().copied()).map(String::from).collect();
        Printer {
            terms,
            out: String::new(),
            names: FxHashMap::default(),
            taken,
            numbers: FxHashMap::default(),
            shown: FxHashSet::default(),
        }
    }

    fn find_shown(&mut self, body: Body, natural: Option<Var>) {
        let mut work = vec![(body, natural)];
        let mut visited: FxHashSet<(Body, Option<Var>)> = FxHashSet::default();
        while let Some((body, natural)) = work.pop() {
            if !visited.insert((body, natural)) {
                continue;
            }
            let node = self.terms.body_node(body);
            if !self.is_natural(node.stage(), natural) {
                self.show_stage(node.stage());
            }
            match node {
                BodyNode::Apply { callee, args, .. } => {
                    for value in std::iter::once(callee).chain(args) {
                        match *value {
                            Value::Const(_) => (),
                            Value::Var(x) => _ = self.shown.insert(x),
                            Value::Lam(lam) => {
                                let lam = self.terms.lam_node(lam);
                                work.push((lam.body, Some(lam.stage)));
                            }
                        }
                    }
                }
                BodyNode::Fix { lam, rest, .. } => {
                    let lam = self.terms.lam_node(*lam);
                    work.extend([(lam.body, Some(lam.stage)), (*rest, natural)]);
                }
            }
        }
    }

    fn is_natural(&self, stage: Stage, natural: Option<Var>) -> bool {
        match natural {
            None => self.terms.stage_node(stage) == StageNode::Const(true),
            Some(y) => self.terms.stage_node(stage) == StageNode::Var(y),
        }
    }

    fn show_stage(&mut self, stage: Stage) {
        match self.terms.stage_node(stage) {
            StageNode::Const(_) => (),
            StageNode::Var(x) => _ = self.shown.insert(x),
            StageNode::And(a, b) | StageNode::Or(a, b) => {
                self.show_stage(a);
                self.show_stage(b);
            }
            StageNode::Not(a) => self.show_stage(a),
        }
    }

    fn name(&mut self, var: Var) -> &str {
        if !self.names.contains_key(&var) {
            let hint = self.terms.name(var).map_or("x", |n| n);
            let mut name = hint.to_string();
            while !self.taken.insert(name.clone()) {
                let n = self.numbers.entry(hint.to_string()).or_insert(0);
                *n += 1;
                name = format!("{hint}_{n}");
            }
            self.names.insert(var, name);
        }
        &self.names[&var]
    }

    /// Where the variable is bound: a function that several places of the term have gets new names at each.
    fn put_binder(&mut self, var: Var) {
        self.names.remove(&var);
        self.put_name(var);
    }

    fn put_name(&mut self, var: Var) {
        let name = self.name(var).to_string();
        self.out += &name;
    }

    fn put_const(&mut self, value: Const) {
        match value {
            Const::Int(i) => _ = write!(self.out, "{i}"),
            // With a point, and precise.
            Const::Float(f) => _ = write!(self.out, "{f:?}"),
            Const::Bool(b) => _ = write!(self.out, "{b}"),
            Const::Stage(s) => self.out += if s { "always" } else { "never" },
            Const::Prim(p) => self.out += p.name(),
            Const::Foreign(f) => self.put_name(f),
            Const::Text(text) => {
                let bytes = self.terms.elements(text).iter();
                let bytes: Vec<u8> = bytes.map(|c| if let Const::Int(b) = *c { b as u8 } else { 0 }).collect();
                _ = write!(self.out, "{:?}", String::from_utf8_lossy(&bytes));
            }
            Const::Double(f) => _ = write!(self.out, "{f:?}"),
            Const::Array(array, start) => {
                self.out.push('{');
                for (i, &element) in self.terms.elements(array)[start as usize..].iter().enumerate() {
                    self.out += if i > 0 { ", " } else { "" };
                    self.put_element(element);
                }
                self.out.push('}');
            }
        }
    }

    fn put_element(&mut self, element: Const) {
        let Const::Array(parts, 0) = element else { return self.put_const(element) };
        self.out.push('[');
        for (i, &part) in self.terms.elements(parts).iter().enumerate() {
            self.out += if i > 0 { ", " } else { "" };
            self.put_element(part);
        }
        self.out.push(']');
    }

    /// `within` is 0 for any expression, 1 for an operand of `&`, 2 for one of `!`.
    fn put_stage(&mut self, stage: Stage, within: u32) {
        let own = match self.terms.stage_node(stage) {
            StageNode::Const(s) => return self.put_const(Const::Stage(s)),
            StageNode::Var(x) => return self.put_name(x),
            StageNode::Or(..) => 0,
            StageNode::And(..) => 1,
            StageNode::Not(_) => 2,
        };
        if own < within {
            self.out.push('(');
        }
        match self.terms.stage_node(stage) {
            StageNode::Or(a, b) => {
                self.put_stage(a, 0);
                self.out += " | ";
                self.put_stage(b, 1);
            }
            StageNode::And(a, b) => {
                self.put_stage(a, 1);
                self.out += " & ";
                self.put_stage(b, 2);
            }
            StageNode::Not(a) => {
                self.out.push('!');
                self.put_stage(a, 2);
            }
            StageNode::Const(_) | StageNode::Var(_) => (),
        }
        if own < within {
            self.out.push(')');
        }
    }

    fn put_head(&mut self, lam: Lam) {
        let node = self.terms.lam_node(lam);
        self.out.push('(');
        for (i, &x) in node.params.iter().enumerate() {
            if i > 0 {
                self.out += ", ";
            }
            self.put_binder(x);
        }
        self.out.push(')');
        if self.shown.contains(&node.stage) {
            self.out.push('[');
            self.put_binder(node.stage);
            self.out.push(']');
        }
    }

    fn print(&mut self, mut work: Vec<Item>) {
        while let Some(item) = work.pop() {
            if self.out.len() > MAX_TEXT {
                self.out += " …\n";
                return;
            }
            match item {
                Item::Text(text) => self.out += text,
                Item::Name(name) => self.out += &name,
                Item::Called(var, name) => _ = self.names.insert(var, name),
                Item::NewLine(indent) => {
                    self.out.push('\n');
                    self.out.extend(std::iter::repeat_n("  ", indent));
                }
                Item::Value(Value::Const(c), _) => self.put_const(c),
                Item::Value(Value::Var(x), _) => self.put_name(x),
                Item::Value(Value::Lam(lam), indent) => {
                    self.put_head(lam);
                    let node = self.terms.lam_node(lam);
                    work.extend([
                        Item::Text("}"),
                        Item::NewLine(indent),
                        Item::Body(node.body, Some(node.stage), indent + 1),
                        Item::NewLine(indent + 1),
                        Item::Text(" {"),
                    ]);
                }
                Item::Last(lam, indent) => {
                    self.put_head(lam);
                    let node = self.terms.lam_node(lam);
                    work.extend([Item::Body(node.body, Some(node.stage), indent), Item::NewLine(indent)]);
                }
                Item::Body(body, natural, indent) => self.put_body(body, natural, indent, &mut work),
            }
        }
    }

    fn put_body(&mut self, body: Body, natural: Option<Var>, indent: usize, work: &mut Vec<Item>) {
        let terms = self.terms;
        let node = terms.body_node(body);
        if !self.is_natural(node.stage(), natural) {
            self.out.push('@');
            self.put_stage(node.stage(), 0);
            self.out += ": ";
        }
        match node {
            BodyNode::Apply { callee: Value::Lam(lam), args, .. }
                if args.len() == 1 && terms.lam_node(*lam).params.len() == 1 =>
            {
                let node = terms.lam_node(*lam);
                self.out += "let ";
                if self.shown.contains(&node.stage) {
                    self.out.push('[');
                    self.put_binder(node.stage);
                    self.out += "] ";
                }
                work.extend([Item::Body(node.body, Some(node.stage), indent), Item::NewLine(indent)]);
                self.put_binder(node.params[0]);
                // The value may have the same function, with other names.
                let names = [node.params[0], node.stage].map(|x| (x, self.names.get(&x).cloned()));
                work.extend(names.into_iter().filter_map(|(x, name)| Some(Item::Called(x, name?))));
                work.extend([Item::Value(args[0], indent), Item::Text(" ")]);
            }
            BodyNode::Apply { callee, args, .. } => {
                // Bottom up: `work` is a stack.
                let (last, others) = match args.split_last() {
                    Some((&Value::Lam(last), others)) => (Some(last), others),
                    _ => (None, &args[..]),
                };
                if let Some(last) = last {
                    work.extend([Item::Last(last, indent), Item::Text(" ")]);
                }
                match (*callee, others) {
                    (Value::Const(Const::Prim(prim)), &[a, b]) if last.is_some() && prim.is_infix() => {
                        work.extend([
                            Item::Value(b, indent),
                            Item::Text(" "),
                            Item::Text(prim.name()),
                            Item::Text(" "),
                            Item::Value(a, indent),
                        ]);
                    }
                    _ => {
                        for &arg in others.iter().rev() {
                            work.extend([Item::Value(arg, indent), Item::Text(" ")]);
                        }
                        work.push(Item::Value(*callee, indent));
                    }
                }
            }
            BodyNode::Fix { var, lam, rest, .. } => {
                self.out += "fix def ";
                self.put_binder(*var);
                self.out.push(' ');
                work.extend([
                    Item::Body(*rest, natural, indent),
                    Item::NewLine(indent),
                    Item::Value(Value::Lam(*lam), indent),
                ]);
            }
        }
    }
}

//! Programs in DeepCPS to residual programs, or to diagnostics.
//!
//! Separate from the machine, which knows neither text nor names.

use crate::diagnostics::{staging_limit, stuck_body};
use crate::prim::{Fault, Prim};
use crate::program::{Export, Program, Signatures};
use crate::term::{Body, BodyNode, Const, Terms, Value};
use crate::{Exceeded, Limits, Outcome, Stuck, Why, machine, print};
use nyala_base::{Diagnostic, Sink, Span};
use std::sync::Arc;

/// A residual program: a program in which no body is active.
pub struct Residual {
    pub terms: Terms,
    pub outcome: Outcome,
    exports: Vec<Export>,
    pub signatures: Signatures,
    /// [`Program::in_order`].
    pub in_order: bool,
}

impl Residual {
    /// What the program exports, for each of the results.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The arguments of `exit`, if the program ends with it.
    pub fn results(&self) -> Option<&[Value]> {
        match self.terms.body_node(self.outcome.body) {
            BodyNode::Apply { stage, callee: Value::Const(Const::Prim(Prim::Exit)), args }
                if self.terms.is_active(*stage) =>
            {
                Some(args)
            }
            _ => None,
        }
    }

    /// What `name` is, if the program exports it.
    pub fn export(&self, name: &str) -> Option<Value> {
        let export = self.exports.iter().find(|e| &*e.name == name)?;
        self.results()?.get(export.at).copied()
    }

    /// The exported functions, those of `only` if there are any; otherwise what is left of the program.
    pub fn print(&self, only: &[&str]) -> String {
        let exported: Vec<(Arc<str>, Value)> = match self.results() {
            Some(results) => self.exports.iter().filter_map(|e| Some((e.name.clone(), *results.get(e.at)?))).collect(),
            None => Vec::new(),
        };
        if exported.is_empty() {
            return print::print(&self.terms, self.outcome.body);
        }
        let (names, values): (Vec<_>, Vec<_>) =
            exported.into_iter().filter(|(n, _)| only.is_empty() || only.contains(&&**n)).unzip();
        print::print_results(&self.terms, &names, &values)
    }
}

/// The program with its results, each an argument of `exit`.
fn unbundled(terms: &mut Terms, program: Body) -> Body {
    let &BodyNode::Apply { stage, callee, ref args } = terms.body_node(program) else { return program };
    let (Value::Const(Const::Prim(Prim::Exit)), &[mut bundle]) = (callee, &**args) else { return program };
    let mut results = Vec::new();
    while let Value::Lam(lam) = bundle {
        let BodyNode::Apply { args, .. } = terms.body_node(terms.lam_node(lam).body) else { break };
        let &[before, last] = &**args else { break };
        results.push(last);
        bundle = before;
    }
    results.reverse();
    terms.apply(stage, callee, results, terms.span(program))
}

/// Executes what is active. `None`: what is wrong is in the sink.
pub fn evaluate(program: Program, limits: Limits, sink: &mut Sink) -> Option<Residual> {
    let Program { mut terms, body, exports, signatures, is_bundled, in_order } = program;
    let mut outcome = match machine::run(&mut terms, body, limits) {
        Ok(outcome) => outcome,
        Err(exceeded) => {
            sink.push(match exceeded {
                Exceeded::Steps(span) => staging_limit::steps(span, limits.steps),
                Exceeded::Size(span) => staging_limit::size(span),
                Exceeded::Variables(span) => staging_limit::variables(span),
                Exceeded::Depth => unreachable!("of the reference evaluator only"),
            });
            return None;
        }
    };
    if is_bundled {
        outcome.body = unbundled(&mut terms, outcome.body);
    }
    // A body may be stuck in several copies.
    let mut reported: Vec<Diagnostic> = Vec::new();
    for stuck in &outcome.stuck {
        let diagnostic = diagnostic(&terms, stuck, &signatures);
        if !reported.contains(&diagnostic) {
            reported.push(diagnostic);
        }
    }
    let failed = !reported.is_empty();
    sink.diagnostics.extend(reported);
    (!failed).then_some(Residual { terms, outcome, exports, signatures, in_order })
}

fn diagnostic(terms: &Terms, stuck: &Stuck, signatures: &Signatures) -> Diagnostic {
    let unbound = || {
        let name = stuck.missing.and_then(|x| terms.name(x)).map_or("a value", |n| n);
        let place = stuck.missing.map_or(Span::NONE, |x| signatures.place(terms, x));
        stuck_body::unbound(stuck.span, name, place)
    };
    match stuck.why {
        Why::UnboundCallee | Why::Fault(_, Fault::Unbound(_)) => unbound(),
        Why::Fault(prim, fault) => stuck_body::fault(stuck.span, prim, fault),
        Why::NotAFunction | Why::Arguments { .. } => stuck_body::not_callable(stuck.span),
    }
}

//! Programs in DeepCPS to residual programs, or to diagnostics.
//!
//! Separate from the machine, which knows neither text nor names.

use crate::diagnostics::{staging_limit, stuck_body};
use crate::prim::{Fault, Prim};
use crate::program::{Export, Program, Signatures, Site};
use crate::term::{BodyNode, Const, Terms, Value};
use crate::{Exceeded, Limits, Outcome, Stuck, Why, machine, print};
use nyala_base::{Diagnostic, Sink, Span};
use std::sync::Arc;

/// A residual program: a program in which no body is active.
pub struct Residual {
    pub terms: Terms,
    pub outcome: Outcome,
    exports: Vec<Export>,
    pub signatures: Signatures,
    pub sites: Vec<Site>,
    /// The number of the first of the sites among those of all programs in this process.
    pub first_site: i32,
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
        let idx = self.exports.iter().position(|e| &*e.name == name)?;
        self.results()?.get(idx).copied()
    }

    /// The exported functions, those of `only` if there are any; otherwise what is left of the program.
    pub fn print(&self, only: &[&str]) -> String {
        let exported: Vec<(Arc<str>, Value)> = match self.results() {
            Some(results) => self.exports.iter().map(|e| e.name.clone()).zip(results.iter().copied()).collect(),
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

/// Executes what is active. `None`: what is wrong is in the sink.
pub fn evaluate(program: Program, limits: Limits, sink: &mut Sink) -> Option<Residual> {
    let Program { mut terms, body, exports, signatures, sites, in_order } = program;
    let outcome = match machine::run(&mut terms, body, limits) {
        Ok(outcome) => outcome,
        Err(exceeded) => {
            sink.push(match exceeded {
                Exceeded::Steps(span) => staging_limit::steps(span, limits.steps),
                Exceeded::Size(span) => staging_limit::size(span),
                Exceeded::Depth => unreachable!("of the reference evaluator only"),
            });
            return None;
        }
    };
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
    (!failed).then_some(Residual { terms, outcome, exports, signatures, sites, first_site: 0, in_order })
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

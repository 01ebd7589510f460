//! Reports assertions on code that do not hold, with the reasons that `explain` has. Separate, since the reasons come from a second
//! evaluation of the graph, which records every decision.

use crate::diagnostics::ensure_failed;
use crate::explain::{self, Explained};
use crate::graph::Residual;
use crate::report::{Failed, Report};
use nyala_base::{Severity, Sources, Span};
use nyala_flat::ensure::Failure;
use nyala_ir::ensure::Thing;

/// Reports assertions that do not hold. Nothing is asserted without partial evaluation, nor without optimization, when variables
/// are in memory.
pub fn report(residual: &Residual, report: &mut Report, failures: &[Failure]) -> Result<(), Failed> {
    let options = &residual.options;
    if failures.is_empty() || !options.partial_evaluation || options.opt_level == 0 {
        return Ok(());
    }
    let explained = explain::explain(&residual.graph()).ok();
    let mut seen = Vec::new();
    let mut warned = Vec::new();
    for failure in failures {
        let place = failure.place.without_call();
        // A body has several versions: for vectors, for what is left over.
        if seen.contains(&(failure.place, failure.term)) {
            continue;
        }
        seen.push((failure.place, failure.term));
        let Some(ensure) = residual.ensures.iter().find(|e| e.place == place) else { continue };
        let term = failure.term.and_then(|i| ensure.terms.get(i));
        let thing = term.map(|t| t.thing);
        let is_in_library = report.is_library(place.file);
        if is_in_library {
            // Kernels of a library run each other: one warning for a call of the program.
            let mut calls = report.calls.around(failure.place).map(|(_, span)| span);
            let own = calls.find(|span| !report.is_library(span.file)).map(Span::without_call);
            if own.is_some_and(|own| warned.contains(&(own, thing))) {
                continue;
            }
            warned.extend(own.map(|own| (own, thing)));
        }
        let mut diagnostic = ensure_failed::error(failure.place, term, &failure.function, failure.found);
        if is_in_library {
            diagnostic.severity = Severity::Warning;
        }
        let decides =
            term.is_none_or(|t| matches!(t.thing, Thing::Call | Thing::Closure | Thing::Branch | Thing::Loop));
        for &place in &failure.places {
            let reason = explained.as_ref().filter(|_| decides).and_then(|e| reason(&report.sources, e, place));
            if let Some(label) = reason.or_else(|| (!is_in_library).then(|| "here".into())) {
                diagnostic = diagnostic.other(place, label);
            }
        }
        report.sink.push(diagnostic);
    }
    report.check(options)
}

/// What became of the call, loop or branch at a place, and why.
fn reason(sources: &Sources, explained: &Explained, place: Span) -> Option<String> {
    let place = explain::place(sources, place)?;
    let is_here = |p: &explain::Place| p.file == place.file && (p.line, p.column) == (place.line, place.column);
    let sites = explained.report.sites.iter().filter(|s| s.place.as_ref().is_some_and(is_here));
    let left =
        sites.flat_map(|s| &s.outcomes).find(|o| !["unfolded", "run", "computed", "decided"].contains(&o.decision))?;
    Some(format!("{}: {}", left.decision, left.why.text))
}

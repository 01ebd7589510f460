//! Reports assertions on code that do not hold, with the reasons that `explain` has. Separate, since the reasons come from a second
//! compilation, which records every decision.

use crate::diagnostics::ensure_failed;
use crate::explain::{self, Explained};
use crate::{Reported, Session};
use nyala_base::{Severity, Span};
use nyala_flat::ensure::Failure;
use nyala_ir::ensure::Thing;

/// Reports assertions that do not hold. Nothing is asserted without partial evaluation, nor without optimization, when variables
/// are in memory.
pub fn report(s: &mut Session, failures: &[Failure]) -> Result<(), Reported> {
    if failures.is_empty() || !s.options.partial_evaluation || s.options.opt_level == 0 {
        return Ok(());
    }
    let explained = explained(s);
    let mut seen = Vec::new();
    let mut warned = Vec::new();
    for failure in failures {
        let place = failure.place.without_call();
        // A body has several versions: for vectors, for what is left over.
        if seen.contains(&(failure.place, failure.term)) {
            continue;
        }
        seen.push((failure.place, failure.term));
        let Some(ensure) = s.ensures.iter().find(|e| e.place == place) else { continue };
        let term = failure.term.and_then(|i| ensure.terms.get(i));
        let thing = term.map(|t| t.thing);
        let is_in_library = s.library_files.contains(&place.file);
        if is_in_library {
            // Kernels of a library run each other: one warning for a call of the program.
            let mut calls = s.calls.around(failure.place).map(|(_, span)| span);
            let own = calls.find(|span| !s.library_files.contains(&span.file)).map(Span::without_call);
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
            let reason = explained.as_ref().filter(|_| decides).and_then(|e| reason(s, e, place));
            if let Some(label) = reason.or_else(|| (!is_in_library).then(|| "here".into())) {
                diagnostic = diagnostic.other(place, label);
            }
        }
        s.sink.push(diagnostic);
    }
    s.checked(Some(()))
}

/// The program, compiled again with a record of all decisions.
fn explained(s: &Session) -> Option<Explained> {
    let mut again = Session::new(s.options.clone());
    again.files = s.files.clone();
    explain::explain(&mut again).ok()
}

/// What became of the call, loop or branch at a place, and why.
fn reason(s: &Session, explained: &Explained, place: Span) -> Option<String> {
    let place = explain::place(&s.sources, place)?;
    let is_here = |p: &explain::Place| p.file == place.file && (p.line, p.column) == (place.line, place.column);
    let sites = explained.report.sites.iter().filter(|s| s.place.as_ref().is_some_and(is_here));
    let left =
        sites.flat_map(|s| &s.outcomes).find(|o| !["unfolded", "run", "computed", "decided"].contains(&o.decision))?;
    Some(format!("{}: {}", left.decision, left.why.text))
}

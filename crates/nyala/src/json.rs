//! Findings as data for editors and other programs (`--json`): an object on each line. What the fields mean is described
//! in `docs/diagnostics.md`; they are apart from `Diagnostic` so that its form may change without theirs.

use nyala_base::{Diagnostic, Label, Severity, Sources, Span};
use serde::Serialize;

#[derive(Serialize)]
struct Finding<'a> {
    severity: &'static str,
    code: &'a str,
    message: &'a str,
    #[serde(flatten)]
    place: Place<'a>,
    others: Vec<Place<'a>>,
    hints: &'a [String],
    rendered: String,
}

/// A range of a file with what is said about it; lines and columns count from 1, columns in characters. All are null of
/// what has no place in a source.
#[derive(Serialize)]
struct Place<'a> {
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    /// Of the character after the last one.
    end_column: Option<usize>,
    label: &'a str,
}

/// A finding as one line of JSON, its end not counted.
pub fn line(d: &Diagnostic, sources: &Sources) -> String {
    let finding = Finding {
        severity: match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        },
        code: d.code,
        message: &d.message,
        place: place(&d.primary, sources),
        others: d.others.iter().map(|l| place(l, sources)).collect(),
        hints: &d.hints,
        rendered: d.render(sources, false),
    };
    // Strings and numbers only: nothing here cannot be written.
    serde_json::to_string(&finding).unwrap_or_default()
}

fn place<'a>(label: &'a Label, sources: &'a Sources) -> Place<'a> {
    let known = (!label.span.is_none()).then_some(label.span);
    let start = known.map(|s| sources.line_col(s));
    let end = known.map(|s| sources.line_col(Span { lo: s.hi, ..s }));
    Place {
        file: known.map(|s| sources.name(s.file)),
        line: start.map(|p| p.0),
        column: start.map(|p| p.1),
        end_line: end.map(|p| p.0),
        end_column: end.map(|p| p.1),
        label: &label.text,
    }
}

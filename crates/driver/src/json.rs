//! Diagnostics as data for editors and other programs (`--json`): an object on each line. `docs/diagnostics.md`
//! describes the fields. Separate from `Diagnostic`, so that it may change while the fields stay.

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

/// A label: a range of a file and a text about it. Lines and columns count from 1, columns in characters. All fields
/// but the text are null if there is no place in a source.
#[derive(Serialize)]
struct Place<'a> {
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    /// The column of the character after the last one.
    end_column: Option<usize>,
    label: &'a str,
}

/// A diagnostic as one line of JSON, without the end of the line.
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
    // Strings and numbers can always be written as JSON.
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

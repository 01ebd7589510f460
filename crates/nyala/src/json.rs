//! Findings as data for editors and other programs (`--json`): an object on each line. What the fields mean is described
//! in `docs/diagnostics.md`; they are apart from `Diagnostic` so that its form may change without theirs.

use crate::Session;
use nyala_base::{Diagnostic, Label, Severity, Span};
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

impl Session {
    /// All findings as lines of JSON.
    pub fn render_json(&self) -> String {
        self.sink.diagnostics.iter().map(|d| self.finding(d) + "\n").collect()
    }

    fn finding(&self, d: &Diagnostic) -> String {
        let finding = Finding {
            severity: match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "info",
            },
            code: d.code,
            message: &d.message,
            place: self.place(&d.primary),
            others: d.others.iter().map(|l| self.place(l)).collect(),
            hints: &d.hints,
            rendered: d.render(&self.sources, false),
        };
        // Strings and numbers only: nothing here cannot be written.
        serde_json::to_string(&finding).unwrap_or_default()
    }

    fn place<'a>(&'a self, label: &'a Label) -> Place<'a> {
        let known = (!label.span.is_none()).then_some(label.span);
        let start = known.map(|s| self.sources.line_col(s));
        let end = known.map(|s| self.sources.line_col(Span { lo: s.hi, ..s }));
        Place {
            file: known.map(|s| self.sources.name(s.file)),
            line: start.map(|p| p.0),
            column: start.map(|p| p.1),
            end_line: end.map(|p| p.0),
            end_column: end.map(|p| p.1),
            label: &label.text,
        }
    }
}

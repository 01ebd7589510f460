//! Diagnostics as plain values: what is wrong, where, and what to do about it; and the codes that several crates report.

pub mod bad_shared_memory;
pub mod bug;
pub mod device_code_on_host;
pub mod duplicate_symbol;
pub mod intrinsic_type;
pub mod intrinsic_value;
pub mod jump_out_of_parallel;
pub mod library_not_loaded;
pub mod limitation;
pub mod must_be_known;
pub mod no_libdevice;
pub mod not_in_c;
pub mod shared_write;
pub mod undefined_symbol;

use crate::{Sources, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

crate::codes![
    bad_shared_memory,
    bug,
    device_code_on_host,
    duplicate_symbol,
    intrinsic_type,
    intrinsic_value,
    jump_out_of_parallel,
    library_not_loaded,
    limitation,
    must_be_known,
    no_libdevice,
    not_in_c,
    shared_write,
    undefined_symbol
];

/// Codes that say what this compiler, a platform or a processor does not have: tests of programs that need it are skipped there.
pub const LACKS: [&str; 3] = ["limitation", "not-on-platform", "not-on-processor"];

/// Limit on the calls that [`Diagnostic::add_calls`] looks at.
const MAX_CALLS: usize = 8;

/// The end of the label at a call.
const CALLED: &str = " called here";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    Error,
    Warning,
    /// A report of `pe_info`, which is not a fault.
    Info,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// One finding. The message is lower case without a full stop; the cause stands in a label, the remedy in a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Kebab-case name of the fault; `limitation` for features that are not supported yet.
    pub code: &'static str,
    pub message: String,
    /// The place of the fault, and a text about it, which may be empty.
    pub primary: Label,
    /// Other places that matter.
    pub others: Vec<Label>,
    /// How often it was found again, in a way that another report would not show.
    pub repeats: usize,
    pub hints: Vec<String>,
}

impl Diagnostic {
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: Label { span, text: String::new() },
            others: Vec::new(),
            repeats: 0,
            hints: Vec::new(),
        }
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    pub fn info(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Info, ..Diagnostic::error(code, span, message) }
    }

    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    pub fn other(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.others.push(Label { span, text: text.into() });
        self
    }

    /// Adds the places of calls, each with the name of the called function, innermost first. The innermost ones are shown.
    pub fn add_calls<'a>(&mut self, calls: impl Iterator<Item = (&'a str, Span)>) {
        for (name, span) in calls.take(MAX_CALLS) {
            // A recursion passes the same place again and again.
            if !span.is_none() && self.others.iter().all(|l| l.span != span) {
                self.others.push(Label { span, text: format!("`{name}`{CALLED}") });
            }
        }
    }

    /// Makes the innermost call whose place `is_own` the place of the diagnostic, if there is one.
    pub fn move_to_call(&mut self, is_own: impl Fn(&Span) -> bool) {
        let call = self.others.iter_mut().find(|l| is_own(&l.span) && l.text.ends_with(CALLED));
        if let Some(call) = call {
            std::mem::swap(&mut self.primary, call);
            if call.text.is_empty() {
                call.text = "here".into();
            }
        }
    }

    /// Gives the diagnostic this place, if it has none.
    pub fn place(&mut self, span: Span) {
        if self.primary.span.is_none() {
            self.primary.span = span;
        }
    }

    pub fn hint(mut self, text: impl Into<String>) -> Diagnostic {
        self.hints.push(text.into());
        self
    }

    /// Adds a hint with a similar name that exists, if there is one.
    pub fn hint_similar(self, similar: Option<&str>) -> Diagnostic {
        match similar {
            Some(similar) => self.hint(format!("did you mean `{similar}`?")),
            None => self,
        }
    }

    /// The diagnostic as rustc would show it, with source lines; ends with a newline.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Info => Level::INFO,
        };
        let mut group =
            level.primary_title(&self.message).id(self.code).elements(Vec::<annotate_snippets::Element>::new());
        let mut labels: Vec<(&Label, bool)> = vec![(&self.primary, true)];
        labels.extend(self.others.iter().map(|l| (l, false)));
        let mut files: Vec<_> = Vec::new();
        for (label, _) in &labels {
            if !label.span.is_none() && !files.contains(&label.span.file) {
                files.push(label.span.file);
            }
        }
        for file in files {
            let text = sources.text(file);
            let own: Vec<&(&Label, bool)> = labels.iter().filter(|(l, _)| l.span.file == file).collect();
            // The renderer scans all text that it is given, so it gets only the lines that are shown.
            let lo = own.iter().map(|(l, _)| shown(text, l.span).start).min().unwrap_or(0);
            let hi = own.iter().map(|(l, _)| shown(text, l.span).end).max().unwrap_or(0);
            let start = text[..lo].rfind('\n').map_or(0, |i| i + 1);
            let end = line_end(text, hi, MAX_BEHIND);
            let line = sources.line(Span::new(file, start, start)).max(1);
            let mut snippet = Snippet::source(&text[start..end]).line_start(line).path(sources.name(file)).fold(true);
            for (label, primary) in own {
                let kind = if *primary { AnnotationKind::Primary } else { AnnotationKind::Context };
                let range = shown(text, label.span);
                let range = range.start - start..range.end - start;
                let text = (!label.text.is_empty()).then_some(label.text.as_str());
                snippet = snippet.annotation(kind.span(range).label(text));
            }
            group = group.element(snippet);
        }
        if self.repeats > 0 {
            let text = format!("found here {} more {}", self.repeats, if self.repeats == 1 { "time" } else { "times" });
            group = group.element(Level::NOTE.message(text));
        }
        for hint in &self.hints {
            group = group.element(Level::HELP.with_name("hint").message(hint));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut out = renderer.render(&[group]);
        out.push('\n');
        out
    }
}

/// Limits on the bytes of a line that are shown of a label, and behind the last one. The renderer shows far less, but looks at all
/// that it gets, slowly.
const MAX_LABEL: usize = 2000;
const MAX_BEHIND: usize = 1000;

/// The end of the line that has the byte `at`, with the line break, or a place at least `limit` bytes behind it.
fn line_end(text: &str, at: usize, limit: usize) -> usize {
    let limit = text.ceil_char_boundary(at.saturating_add(limit));
    text[at..limit].find('\n').map_or(limit, |i| at + i + 1)
}

/// The bytes of a label that are shown.
fn shown(text: &str, span: Span) -> std::ops::Range<usize> {
    let range = clip(text, span);
    let end = line_end(text, range.start, MAX_LABEL);
    let is_long = end - range.start >= MAX_LABEL && !text[range.start..end].ends_with('\n');
    if is_long { range.start..range.end.min(end) } else { range }
}

/// A span's byte range, moved onto character boundaries of `text`.
fn clip(text: &str, span: Span) -> std::ops::Range<usize> {
    let fit = |mut i: usize| {
        i = i.min(text.len());
        while !text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let lo = fit(span.lo as usize);
    lo..fit(span.hi as usize).max(lo)
}

/// Collects the diagnostics of all phases of the compiler.
#[derive(Clone, Default, Debug)]
pub struct Sink {
    pub diagnostics: Vec<Diagnostic>,
}

impl Sink {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A label at the start of a line, and one over all of it, look the same however long the line is.
    #[test]
    fn the_rest_of_a_long_line_is_not_looked_at() {
        let shown = |n: usize, lo: usize, hi: usize| {
            let mut sources = Sources::new();
            let file = sources.add("t.impala", format!("let a = 1;\nf({})é;\nlet b = 2;\n", "é + ".repeat(n)));
            bug::error(Span::new(file, lo, hi), "wrong").label("here").render(&sources, false)
        };
        for (lo, hi) in [(11, 12), (13, usize::MAX), (0, 30), (11, 11)] {
            let whole = |n: usize| hi.min(13 + 5 * n);
            assert_eq!(shown(1000, lo, whole(1000)), shown(1_000_000, lo, whole(1_000_000)), "{lo}..{hi}");
        }
        assert!(shown(1000, 11, 12).contains("t.impala:2:1\n"));
    }
}

//! Answers about places of a checked program: what is there, where it is declared and used, and what partial evaluation
//! does there.

use super::analysis::View;
use super::evaluation::Evaluated;
use super::positions::Lines;
use lsp_types::{
    CodeDescription, CodeLens, Command, DiagnosticRelatedInformation, DiagnosticSeverity, DocumentHighlight, Hover,
    HoverContents, InlayHint, InlayHintKind, InlayHintLabel, InlayHintParams, InlayHintTooltip, Location,
    MarkupContent, MarkupKind, NumberOrString, ReferenceParams, TextDocumentPositionParams, TextEdit, Uri,
};
use nyala_base::{Diagnostic, Severity, Span};
use nyala_sema::{Symbol, SymbolKind};
use nyala_syntax::ast::{Filter, ItemKind};
use std::path::PathBuf;

/// Limit on the hints of one answer.
const MAX_HINTS: usize = 5000;
/// Limit on the lines about partial evaluation in a hover.
const MAX_DECISIONS: usize = 12;

/// A diagnostic for its file. `None` for those without a place in a file of the user's.
pub fn diagnostic(
    place: &dyn Fn(Span) -> Option<Location>,
    d: &Diagnostic,
) -> Option<(PathBuf, lsp_types::Diagnostic)> {
    let place = |span: Span| if span.is_none() { None } else { place(span) };
    let primary = place(d.primary.span)?;
    let path = super::positions::path_of(&primary.uri)?;
    let mut message = d.message.clone();
    if !d.primary.text.is_empty() {
        message += &format!("\n{}", d.primary.text);
    }
    for hint in &d.hints {
        message += &format!("\nhint: {hint}");
    }
    let others = d.others.iter().filter_map(|label| {
        let message = if label.text.is_empty() { "here".into() } else { label.text.clone() };
        Some(DiagnosticRelatedInformation { location: place(label.span)?, message })
    });
    let others: Vec<DiagnosticRelatedInformation> = others.collect();
    Some((
        path,
        lsp_types::Diagnostic {
            range: primary.range,
            severity: Some(match d.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Info => DiagnosticSeverity::INFORMATION,
            }),
            code: Some(NumberOrString::String(d.code.into())),
            code_description: None::<CodeDescription>,
            source: Some("nyala".into()),
            message,
            related_information: (!others.is_empty()).then_some(others),
            ..lsp_types::Diagnostic::default()
        },
    ))
}

pub fn hover(view: &View, evaluated: Option<&Evaluated>, p: &TextDocumentPositionParams) -> Option<Hover> {
    if let Some((span, text, _)) = view.staged_name_at(&p.text_document.uri, p.position) {
        let contents = MarkupContent { kind: MarkupKind::Markdown, value: format!("```c\n{text}\n```") };
        return Some(Hover { contents: HoverContents::Markup(contents), range: Some(view.range(span)) });
    }
    let file = view.file(&p.text_document.uri)?;
    let at = view.offset(file, p.position);
    let mut parts = Vec::new();
    let name = view.checked.name_at(file, at);
    let ty = view.checked.type_at(file, at);
    let range = match (name, &ty) {
        (Some((span, symbol)), _) => {
            parts.push(code(&view.checked.describe(symbol, view.sources)));
            // The type of a generic function or option at this use.
            if let Some((of, ty)) = &ty
                && *of == span
                && !matches!(symbol, Symbol::Local(_) | Symbol::Static(_))
            {
                parts.push(format!("here `{ty}`"));
            }
            parts.extend(documentation(view, symbol));
            view.range(span)
        }
        (None, Some((span, ty))) => {
            parts.push(code(ty));
            view.range(*span)
        }
        (None, None) => return None,
    };
    let told = evaluated.map(|e| e.at(view, file, p.position)).unwrap_or_default();
    if !told.lines.is_empty() {
        let stale = if told.is_stale { " (of an earlier text)" } else { "" };
        let mut text = format!("**partial evaluation**{stale}");
        for line in told.lines.iter().take(MAX_DECISIONS) {
            text += &format!("\n- {line}");
        }
        parts.push(text);
    }
    let value = parts.join("\n\n---\n\n");
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }),
        range: Some(range),
    })
}

fn code(text: &str) -> String {
    format!("```impala\n{text}\n```")
}

/// The comment of a symbol's declaration.
pub fn documentation(view: &View, symbol: Symbol) -> Option<String> {
    let has_comment = !matches!(view.checked.kind(symbol), SymbolKind::Variable | SymbolKind::TypeParameter);
    let place = view.checked.definition(symbol).filter(|_| has_comment)?;
    let text = view.sources.text(place.file);
    let comment = if place.hi == 0 { first_comment(text) } else { comment_above(text, place.lo as usize) };
    (!comment.is_empty()).then_some(comment)
}

/// A line of a comment, without its mark. `None` for lines that only tests read, and for other lines.
fn comment_line(line: &str) -> Option<&str> {
    let text = line.trim().strip_prefix("//")?.trim_start_matches('/');
    match text.bytes().next() {
        Some(b'!' | b'>' | b'~' | b'?') => None,
        _ => Some(text.strip_prefix(' ').unwrap_or(text)),
    }
}

/// The comment in the lines above a place, or behind it in its line.
fn comment_above(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let above: Vec<&str> = text[..start].lines().rev().map_while(|l| l.trim().starts_with("//").then_some(l)).collect();
    let mut lines: Vec<&str> = above.into_iter().rev().filter_map(comment_line).collect();
    if lines.is_empty() {
        let line = text[start..].lines().next().unwrap_or_default();
        lines.extend(line.find("//").filter(|i| start + i > at).and_then(|i| comment_line(&line[i..])));
    }
    lines.join("\n").trim().into()
}

/// The comment at the beginning of a file.
fn first_comment(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|l| l.trim().starts_with("//").then_some(l)).collect();
    lines.into_iter().filter_map(comment_line).collect::<Vec<_>>().join("\n").trim().into()
}

pub fn definition(view: &View, p: &TextDocumentPositionParams) -> Option<Location> {
    if let Some((_, _, places)) = view.staged_name_at(&p.text_document.uri, p.position) {
        return view.location(*places.first()?);
    }
    let (_, symbol) = view.name_at(&p.text_document.uri, p.position)?;
    view.location(view.checked.definition(symbol)?)
}

pub fn references(view: &View, p: &ReferenceParams) -> Option<Vec<Location>> {
    let at = &p.text_document_position;
    if let Some((_, _, places)) = view.staged_name_at(&at.text_document.uri, at.position) {
        let wanted = places.into_iter().skip(usize::from(!p.context.include_declaration));
        return Some(wanted.filter_map(|place| view.location(place)).collect());
    }
    let (_, symbol) = view.name_at(&at.text_document.uri, at.position)?;
    let mut places = view.checked.places(symbol);
    if !p.context.include_declaration {
        let declared = view.checked.declarations_of(symbol);
        places.retain(|place| !declared.contains(place));
    }
    // Libraries use their own names.
    let is_library = |place: &Span| !view.is_own(place.file);
    let declared_in_library = view.checked.declaration(symbol).is_some_and(|place| is_library(&place));
    if declared_in_library {
        places.retain(|place| !is_library(place));
    }
    Some(places.into_iter().filter_map(|place| view.location(place)).collect())
}

pub fn highlights(view: &View, p: &TextDocumentPositionParams) -> Option<Vec<DocumentHighlight>> {
    if let Some((span, _, places)) = view.staged_name_at(&p.text_document.uri, p.position) {
        let here = places.into_iter().filter(|place| place.file == span.file);
        return Some(here.map(|place| DocumentHighlight { range: view.range(place), kind: None }).collect());
    }
    let (span, symbol) = view.name_at(&p.text_document.uri, p.position)?;
    let here = view.checked.places(symbol).into_iter().filter(|place| place.file == span.file);
    Some(here.map(|place| DocumentHighlight { range: view.range(place), kind: None }).collect())
}

/// Types that the source leaves out; filters that it leaves out, and those that do not hold.
pub fn hints(view: &View, evaluated: Option<&Evaluated>, p: &InlayHintParams) -> Option<Vec<InlayHint>> {
    let file = view.file(&p.text_document.uri)?;
    let text = view.sources.text(file);
    let lines = view.lines(file);
    let (from, to) = (lines.offset(text, p.range.start), lines.offset(text, p.range.end));
    let types = view.checked.hints(file, from, to).into_iter().map(|hint| InlayHint {
        position: lines.position(text, hint.at),
        label: InlayHintLabel::String(hint.text),
        kind: Some(InlayHintKind::TYPE),
        text_edits: None,
        tooltip: None,
        padding_left: None,
        padding_right: None,
        data: None,
    });
    let filters = evaluated.map(|e| e.filters(view, file)).unwrap_or_default();
    let filters = filters.into_iter().filter(|f| p.range.start <= f.position && f.position <= p.range.end);
    let filters = filters.map(|f| InlayHint {
        position: f.position,
        label: InlayHintLabel::String(f.label),
        kind: None,
        text_edits: None,
        tooltip: Some(InlayHintTooltip::String(f.why)),
        padding_left: Some(true),
        padding_right: None,
        data: None,
    });
    Some(types.chain(filters).take(MAX_HINTS).collect())
}

/// A lens above each function that shows what partial evaluation left of it.
pub fn lenses(view: &View, evaluated: Option<&Evaluated>, uri: &Uri) -> Option<Vec<CodeLens>> {
    let file = view.file(uri)?;
    let tree = view.checked.tree(file)?;
    let mut lenses = Vec::new();
    let mut work: Vec<_> = tree.items.iter().rev().collect();
    while let Some(item) = work.pop() {
        match &item.kind {
            ItemKind::Mod(m) => work.extend(m.items.iter().flatten().rev()),
            ItemKind::Fn(f) if f.body.is_some() => {
                let range = view.range(f.name.span);
                let title = evaluated.and_then(|e| e.left_of(view, file, &f.name.text, range.start));
                // Only a function of the residual program can be shown.
                let is_general = !f.exported && matches!(f.filter, Filter::Always(_)) || !f.type_params.is_empty();
                let title = title.or_else(|| (!is_general).then(|| "residual program".into()));
                let arguments = vec![uri.as_str().into(), (&*f.name.text).into()];
                lenses.extend(title.map(|title| CodeLens {
                    range,
                    command: Some(Command { title, command: super::SHOW_RESIDUAL.into(), arguments: Some(arguments) }),
                    data: None,
                }));
            }
            _ => {}
        }
    }
    Some(lenses)
}

/// The edit that makes one text of another: of the lines that differ.
pub fn difference(old: &str, new: &str) -> Vec<TextEdit> {
    if old == new {
        return Vec::new();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - before;
    let behind = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
    let start: usize = a[..before].iter().map(|l| l.len()).sum();
    let end = old.len() - a[a.len() - behind..].iter().map(|l| l.len()).sum::<usize>();
    let range = Lines::new(old).range(old, start as u32, end as u32);
    vec![TextEdit { range, new_text: b[before..b.len() - behind].concat() }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsp_types::{Position, Range};

    #[test]
    fn only_lines_that_differ_are_edited() {
        let edits = difference("a\nb\nc\n", "a\nB\nB\nc\n");
        let range = Range::new(Position::new(1, 0), Position::new(2, 0));
        assert_eq!(edits, [TextEdit { range, new_text: "B\nB\n".into() }]);
        assert!(difference("a", "a").is_empty());
        assert_eq!(difference("a\na\n", "a\n").len(), 1);
        assert_eq!(difference("", "a\n")[0].new_text, "a\n");
    }

    #[test]
    fn comments_of_declarations() {
        let text =
            "// Not this.\n\n// Adds.\n// Twice.\n//? f() == 1\nfn f() -> i32 { 1 }\nstruct S { a: i32, // behind\n}\n";
        let at = |what: &str| text.find(what).expect("is there");
        assert_eq!(comment_above(text, at("f() ->")), "Adds.\nTwice.");
        assert_eq!(comment_above(text, at("a: i32")), "behind");
        assert_eq!(first_comment(text), "Not this.");
    }
}

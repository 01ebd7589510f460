//! Completion and signature help. Unfinished code seldom parses, so the text is finished first: a name is put where one is
//! missing, and closing brackets where they help most.

use super::analysis::View;
use super::queries::documentation;
use lsp_types::{
    CompletionItem, CompletionItemKind, Documentation, MarkupContent, MarkupKind, ParameterInformation, ParameterLabel,
    SignatureHelp, SignatureInformation, Uri,
};
use nyala_base::{Sink, Sources};
use nyala_driver::libraries;
use nyala_sema::{Symbol, SymbolKind};
use std::path::PathBuf;

/// The words that are no names.
pub const KEYWORDS: &[&str] = &[
    "as", "asm", "do", "else", "enum", "extern", "false", "fn", "for", "if", "impl", "in", "let", "match", "mod",
    "mut", "priv", "pub", "simd", "static", "struct", "trait", "true", "type", "typeof", "while", "with",
];

/// Words that mean something only at some places, and primitive types.
const WORDS: &[&str] = &[
    "use", "return", "break", "continue", "defer", "self", "super", "bool", "i8", "i16", "i32", "i64", "u8", "u16",
    "u32", "u64", "f16", "f32", "f64",
];

/// The name that is put where one is missing. Nobody has it.
const MISSING: &str = "nyala__missing";

/// What finishes a text.
const ENDS: &[&str] = &["", ";", ")", ");", "))", "));", "}", "]"];

/// What may be completed at a place.
#[derive(Debug, PartialEq)]
pub enum Asked {
    /// In a comment or string.
    Nothing,
    /// A name in scope.
    Name,
    /// A field or method.
    Member,
    /// A name behind `::`; the number is the last byte of the name before that.
    Path { before: u32 },
    /// A name of a `use`, whose names so far are given.
    Use { path: String },
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The begin of the word that ends at a place.
fn word_start(text: &str, at: u32) -> usize {
    let bytes = &text.as_bytes()[..at as usize];
    bytes.iter().rposition(|b| !is_word(*b)).map_or(0, |i| i + 1)
}

impl Asked {
    pub fn at(text: &str, at: u32) -> Asked {
        let start = word_start(text, at);
        let before = &text[..start];
        let line = &before[before.rfind('\n').map_or(0, |i| i + 1)..];
        if is_in_text(line) {
            return Asked::Nothing;
        }
        let statement = line.rsplit([';', '{', '}']).next().unwrap_or_default().trim_start();
        let statement = statement.strip_prefix("priv ").unwrap_or(statement);
        if let Some(path) = statement.strip_prefix("use ") {
            return Asked::Use { path: path.split_whitespace().collect() };
        }
        if let Some(rest) = before.strip_suffix("::") {
            // Type arguments may stand between.
            let rest = match rest.strip_suffix(']') {
                Some(inner) => &inner[..inner.rfind('[').unwrap_or(inner.len())],
                None => rest,
            };
            return Asked::Path { before: rest.len() as u32 };
        }
        match before.strip_suffix('.') {
            Some(rest) if !rest.ends_with('.') => {
                // `1.` is a number.
                let word = &rest[word_start(rest, rest.len() as u32)..];
                if word.starts_with(|c: char| c.is_ascii_digit()) { Asked::Nothing } else { Asked::Member }
            }
            _ => Asked::Name,
        }
    }

    /// The text with what is missing at a place, and the end of the name that is completed in it.
    pub fn patched(&self, text: &str, at: u32) -> (String, u32) {
        let start = word_start(text, at);
        let missing = if start == at as usize { MISSING } else { "" };
        finish(text, at, missing)
    }
}

/// Whether the end of a line is in a comment or a string.
fn is_in_text(line: &str) -> bool {
    let mut quoted = false;
    let mut bytes = line.bytes().peekable();
    while let Some(b) = bytes.next() {
        match b {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            b'/' if !quoted && bytes.peek() == Some(&b'/') => return true,
            _ => {}
        }
    }
    quoted
}

/// Puts `name` at a place, and behind it what leaves the fewest errors.
fn finish(text: &str, at: u32, name: &str) -> (String, u32) {
    let (before, behind) = text.split_at(at as usize);
    let file = Sources::new().add("", "");
    let n_errors = |text: &str| {
        let mut sink = Sink::default();
        nyala_syntax::parse(file, text, &mut sink);
        sink.diagnostics.len()
    };
    let mut best: Option<(usize, String)> = None;
    for end in ENDS {
        let text = format!("{before}{name}{end}{behind}");
        let n = n_errors(&text);
        if best.as_ref().is_none_or(|(least, _)| n < *least) {
            best = Some((n, text));
        }
        if n == 0 {
            break;
        }
    }
    (best.map_or_else(|| text.into(), |(_, text)| text), at + name.len() as u32)
}

/// The text with closing brackets for the call at a place.
pub fn closed(text: &str, at: u32) -> (String, u32) {
    finish(text, at, "")
}

pub fn items(view: &View, asked: &Asked, uri: &Uri, at: u32) -> Vec<CompletionItem> {
    let Some(file) = view.file(uri) else { return Vec::new() };
    let names = match asked {
        Asked::Member => view.checked.members(file, at),
        Asked::Path { before } => match view.checked.name_at(file, *before) {
            Some((_, symbol)) => view.checked.members_of(symbol, file, *before),
            None => Vec::new(),
        },
        Asked::Name => view.checked.scope(file, at),
        Asked::Nothing | Asked::Use { .. } => Vec::new(),
    };
    let mut items: Vec<CompletionItem> = names.iter().map(|(name, symbol)| item(view, name, *symbol)).collect();
    if *asked == Asked::Name {
        items.extend(KEYWORDS.iter().chain(WORDS).map(|word| CompletionItem {
            label: word.to_string(),
            kind: Some(CompletionItemKind::KEYWORD),
            ..CompletionItem::default()
        }));
    }
    items.retain(|item| item.label != MISSING);
    items
}

/// The names that may follow in a `use`: those of the module before, and libraries.
pub fn of_use(view: &View, path: &str, uri: &Uri, folders: &[PathBuf]) -> Vec<CompletionItem> {
    let Some(file) = view.file(uri) else { return Vec::new() };
    let text = view.sources.text(file);
    let mut items = Vec::new();
    let prefix: Vec<&str> = path.split("::").filter(|name| !name.is_empty()).collect();
    let mut libraries: Vec<String> = libraries::names().map(String::from).collect();
    let shelves = libraries::Shelves { folders: folders.to_vec(), ..libraries::Shelves::default() };
    libraries.extend(libraries::exports(&shelves).into_iter().map(|e| e.path));
    libraries.sort();
    libraries.dedup();
    let mut next: Vec<&str> = Vec::new();
    for library in &libraries {
        let names: Vec<&str> = library.split("::").collect();
        if names.starts_with(&prefix)
            && let Some(name) = names.get(prefix.len())
        {
            next.push(name);
        }
    }
    next.dedup();
    items.extend(next.into_iter().map(|name| CompletionItem {
        label: name.into(),
        kind: Some(CompletionItemKind::MODULE),
        ..CompletionItem::default()
    }));
    // Where the same path stands, the checker knows what its last name means.
    let module = match path.rfind("::") {
        Some(end) => text.match_indices(&path[..end]).find_map(|(i, _)| {
            let (_, symbol) = view.checked.name_at(file, (i + end) as u32)?;
            matches!(symbol, Symbol::Module(_) | Symbol::Enum(_)).then_some(symbol)
        }),
        None => None,
    };
    let members = match module {
        Some(symbol) => view.checked.members_of(symbol, file, 0),
        None if prefix.is_empty() => view.checked.scope(file, 0),
        None => Vec::new(),
    };
    let known: Vec<String> = items.iter().map(|i: &CompletionItem| i.label.clone()).collect();
    let members = members.iter().filter(|(name, _)| name != MISSING && !known.contains(name));
    items.extend(members.map(|(name, symbol)| item(view, name, *symbol)));
    items
}

fn item(view: &View, name: &str, symbol: Symbol) -> CompletionItem {
    let kind = match view.checked.kind(symbol) {
        SymbolKind::Function => CompletionItemKind::FUNCTION,
        SymbolKind::Method => CompletionItemKind::METHOD,
        SymbolKind::Variable => CompletionItemKind::VARIABLE,
        SymbolKind::Static => CompletionItemKind::CONSTANT,
        SymbolKind::Struct => CompletionItemKind::STRUCT,
        SymbolKind::Enum => CompletionItemKind::ENUM,
        SymbolKind::EnumOption => CompletionItemKind::ENUM_MEMBER,
        SymbolKind::Field => CompletionItemKind::FIELD,
        SymbolKind::Alias => CompletionItemKind::CLASS,
        SymbolKind::Trait => CompletionItemKind::INTERFACE,
        SymbolKind::Module => CompletionItemKind::MODULE,
        SymbolKind::TypeParameter => CompletionItemKind::TYPE_PARAMETER,
    };
    let detail = view.checked.describe(symbol, view.sources).lines().next().map(String::from);
    CompletionItem {
        label: name.into(),
        kind: Some(kind),
        detail,
        documentation: documentation(view, symbol).map(markdown),
        ..CompletionItem::default()
    }
}

fn markdown(value: String) -> Documentation {
    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
}

pub fn signature(view: &View, uri: &Uri, at: u32) -> Option<SignatureHelp> {
    let call = view.checked.call_at(view.file(uri)?, at)?;
    let parameters = call
        .params
        .iter()
        .map(|p| ParameterInformation { label: ParameterLabel::Simple(p.clone()), documentation: None });
    let signature = SignatureInformation {
        parameters: Some(parameters.collect()),
        documentation: call.callee.and_then(|symbol| documentation(view, symbol)).map(markdown),
        active_parameter: Some(call.active as u32),
        label: call.label,
    };
    Some(SignatureHelp {
        signatures: vec![signature],
        active_signature: Some(0),
        active_parameter: Some(call.active as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked() {
        let asked = |text: &str| Asked::at(text, text.len() as u32);
        assert_eq!(asked("let x = fo"), Asked::Name);
        assert_eq!(asked("x.len"), Asked::Member);
        assert_eq!(asked("x."), Asked::Member);
        assert_eq!(asked("1."), Asked::Nothing);
        assert_eq!(asked("a::b::"), Asked::Path { before: 4 });
        assert_eq!(asked("S[i32]::n"), Asked::Path { before: 1 });
        assert_eq!(asked("use std::te"), Asked::Use { path: "std::".into() });
        assert_eq!(asked("f(\"a.b"), Asked::Nothing);
        assert_eq!(asked("f(\"//\", a"), Asked::Name);
        assert_eq!(asked("x // a.b"), Asked::Nothing);
    }

    #[test]
    fn texts_are_finished() {
        let finished = |before: &str, behind: &str| {
            let (text, at) = Asked::Member.patched(&format!("{before}{behind}"), before.len() as u32);
            assert_eq!(&text[at as usize - MISSING.len()..at as usize], MISSING);
            text[at as usize..].to_string()
        };
        assert_eq!(finished("fn f(x: S) -> i32 { x.", " }"), " }");
        assert_eq!(finished("fn f(x: S) -> i32 { x.", "\nlet y = 1; y }"), ";\nlet y = 1; y }");
        assert_eq!(finished("fn f(x: S) -> i32 { g(x.", "\nlet y = 1; y }"), ");\nlet y = 1; y }");
    }
}

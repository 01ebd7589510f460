//! Source files, places in them, and the calls by which code of a place came where it is.

use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

crate::define_id!(
    /// One source file of a [`Sources`].
    pub struct FileId, "file"
);

crate::define_id!(
    /// A call that was unfolded, of a table of [`Calls`].
    pub struct CallId, "call"
);

/// A range of bytes of a file, `lo` inclusive, `hi` exclusive; and, for code whose function was unfolded, the call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    pub file: FileId,
    pub lo: u32,
    pub hi: u32,
    /// [`Span::NO_CALL`] in source programs.
    pub call: CallId,
}

impl Default for Span {
    fn default() -> Span {
        Span::NONE
    }
}

impl Span {
    /// The span of generated code, which no user wrote.
    pub const NONE: Span = Span { file: FileId(u32::MAX), lo: 0, hi: 0, call: Span::NO_CALL };

    /// The call of code whose function was not unfolded.
    pub const NO_CALL: CallId = CallId(u32::MAX);

    pub fn new(file: FileId, lo: usize, hi: usize) -> Span {
        Span { file, lo: lo as u32, hi: hi as u32, call: Span::NO_CALL }
    }

    /// The place alone.
    pub fn without_call(self) -> Span {
        Span { call: Span::NO_CALL, ..self }
    }

    /// The smallest span that covers both, which belong to one file.
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        Span { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), ..self }
    }

    pub fn is_none(self) -> bool {
        self.without_call() == Span::NONE
    }
}

/// Calls that were unfolded, each with those around it. A recursive function has one entry on each path: the first call.
#[derive(Default, Clone, Debug)]
pub struct Calls {
    /// The place of a call, with the call around it, and the callee's number.
    all: Vec<(Span, u32)>,
    ids: FxHashMap<(Span, u32), CallId>,
    callees: FxHashMap<u32, Callee>,
}

/// A function that was unfolded.
#[derive(Clone, Debug, Default)]
pub struct Callee {
    pub name: Arc<str>,
    /// Where it is declared.
    pub place: Span,
    /// Whether it has no filter: it was unfolded since this is its only call, or since the call says so.
    pub is_plain: bool,
}

impl Calls {
    /// Limit on the entries; calls beyond it count as code of their callers.
    const MAX: usize = 1 << 20;
    /// How many calls around a call are searched for a call of the same function.
    const MAX_SEARCHED: usize = 64;

    /// The entry of a call of the function with this number.
    pub fn enter(&mut self, call: Span, number: u32, callee: impl FnOnce() -> Callee) -> CallId {
        if let Some(&known) = self.ids.get(&(call, number)) {
            return known;
        }
        let mut around = call.call;
        for _ in 0..Calls::MAX_SEARCHED {
            let Some(&(outer, of)) = self.all.get(around.0 as usize) else { break };
            if of == number {
                self.ids.insert((call, number), around);
                return around;
            }
            around = outer.call;
        }
        if self.all.len() >= Calls::MAX || self.ids.len() >= 4 * Calls::MAX {
            return call.call;
        }
        let id = CallId(self.all.len() as u32);
        self.all.push((call, number));
        self.ids.insert((call, number), id);
        self.callees.entry(number).or_insert_with(callee);
        id
    }

    /// The place of a call, with the call around it, and the callee's number.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, call: CallId) -> Option<(Span, u32)> {
        self.all.get(call.0 as usize).copied()
    }

    /// The function with this number.
    pub fn callee(&self, number: u32) -> Option<&Callee> {
        self.callees.get(&number)
    }

    /// Adds the entries of another table, whose functions have other numbers here. Returns for each of its entries the one here.
    pub fn absorb(&mut self, other: &Calls, number_of: impl Fn(u32) -> u32) -> Vec<CallId> {
        let mut ids: Vec<CallId> = Vec::with_capacity(other.all.len());
        for &(call, number) in &other.all {
            // What is around a call has a smaller number.
            let around = ids.get(call.call.0 as usize).copied().unwrap_or(call.call);
            let callee = || other.callees.get(&number).cloned().unwrap_or_default();
            ids.push(self.enter(Span { call: around, ..call }, number_of(number), callee));
        }
        ids
    }

    /// The places of the calls by which code came where it is, innermost first, each with the calls around it.
    pub fn places(&self, code: Span) -> impl Iterator<Item = Span> {
        std::iter::successors(self.all.get(code.call.0 as usize), |(call, _)| self.all.get(call.call.0 as usize))
            .map(|(call, _)| *call)
    }

    /// The calls by which code came where it is, innermost first: the function's name, the place of its call.
    pub fn around(&self, code: Span) -> impl Iterator<Item = (&str, Span)> {
        let mut at = code.call;
        std::iter::from_fn(move || {
            let (call, number) = self.get(at)?;
            at = call.call;
            Some((self.callees.get(&number).map_or("", |callee| &callee.name), call.without_call()))
        })
    }
}

/// The texts of all files of a program, by [`FileId`]. Copies share the texts.
#[derive(Default, Clone, Debug)]
pub struct Sources {
    files: Vec<Arc<File>>,
}

#[derive(Debug)]
struct File {
    name: String,
    text: String,
    /// Byte offset of the start of each line.
    lines: Vec<u32>,
    sections: OnceLock<Vec<Section>>,
}

/// Lines of a file that move together: from one that begins with a letter up to the next one, in most files an item.
#[derive(Debug, PartialEq, Eq)]
struct Section {
    /// The first line, from 1.
    line: usize,
    /// The beginning of that line, and a number if others of the file begin with the same. There is no `#` in it.
    name: String,
}

impl File {
    fn sections(&self) -> &[Section] {
        self.sections.get_or_init(|| {
            let mut known: FxHashMap<&str, usize> = FxHashMap::default();
            let mut sections = vec![Section { line: 1, name: String::new() }];
            for (i, &start) in self.lines.iter().enumerate() {
                let line = self.text.get(start as usize..).unwrap_or_default();
                if !line.starts_with(|c: char| c.is_alphabetic()) {
                    continue;
                }
                let end = line.find(['(', '{', '=', ';', ':', '#', '\n']).unwrap_or(line.len());
                let name = line[..end].trim_end();
                let n = known.entry(name).or_default();
                *n += 1;
                let name = if *n > 1 { format!("{name};{n}") } else { name.to_string() };
                sections.push(Section { line: i + 1, name });
            }
            sections
        })
    }
}

impl Sources {
    pub fn new() -> Sources {
        Sources::default()
    }

    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(Arc::new(File { name: name.into(), text, lines, sections: OnceLock::new() }));
        FileId(self.files.len() as u32 - 1)
    }

    pub fn name(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("<generated>", |f| &f.name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|f| &*f.name)
    }

    pub fn text(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |f| &f.text)
    }

    /// Line of a span's start, from 1; 0 if it belongs to no file.
    pub fn line(&self, span: Span) -> usize {
        let Some(file) = self.files.get(span.file.0 as usize) else { return 0 };
        file.lines.partition_point(|&l| l <= span.lo)
    }

    /// The number of the section in which a span starts, and the line there, from 0. Lines of a section move together: an edit in
    /// front of the section changes neither.
    pub fn section(&self, span: Span) -> (usize, usize) {
        let Some(file) = self.files.get(span.file.0 as usize) else { return (0, 0) };
        let (sections, line) = (file.sections(), self.line(span));
        let section = sections.partition_point(|s| s.line <= line).saturating_sub(1);
        (section, line - sections[section].line)
    }

    /// The name of a section, which [`Sources::section_line`] understands: that of its file, and what its first line begins with.
    pub fn section_name(&self, file: FileId, section: usize) -> String {
        let name = self.files.get(file.0 as usize).and_then(|f| f.sections().get(section)).map_or("", |s| &s.name);
        format!("{}#{name}", self.name(file))
    }

    /// The file and the line, from 1, of a line, from 0, of the section with this name.
    pub fn section_line<'n>(&self, name: &'n str, line: usize) -> Option<(&'n str, usize)> {
        let (file, section) = name.rsplit_once('#')?;
        let found = self.files.iter().find(|f| f.name == file)?;
        let first = found.sections().iter().find(|s| s.name == section)?.line;
        Some((file, first + line))
    }

    /// The span of a line, from 1, of the file with this name, without surrounding space.
    pub fn line_span(&self, name: &str, line: usize) -> Option<Span> {
        let idx = self.files.iter().position(|f| f.name == name)?;
        let file = &self.files[idx];
        let start = *file.lines.get(line.checked_sub(1)?)? as usize;
        let text = file.text[start..].lines().next().unwrap_or("");
        let lo = start + (text.len() - text.trim_start().len());
        Some(Span::new(FileId(idx as u32), lo, lo + text.trim().len()))
    }

    /// Line and column of a span's start, both from 1; the column counts characters.
    pub fn line_col(&self, span: Span) -> (usize, usize) {
        let Some(file) = self.files.get(span.file.0 as usize) else { return (0, 0) };
        let line = file.lines.partition_point(|&l| l <= span.lo) - 1;
        let start = file.lines[line] as usize;
        let col = file.text.get(start..span.lo as usize).map_or(0, |s| s.chars().count());
        (line + 1, col + 1)
    }

    /// The start of a span as `file:line:column`.
    pub fn place(&self, span: Span) -> String {
        if span.is_none() {
            return "<generated>".into();
        }
        let (line, col) = self.line_col(span);
        format!("{}:{line}:{col}", self.name(span.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_section_move_together() {
        let text = "// first\nfn f(x: i32) {\n    x\n}\n\nfn f() {\n\n}\nstatic x#y\n 1";
        for above in ["", "\n\n", "use std::sort::*;\n// more\n"] {
            let mut sources = Sources::new();
            let file = sources.add("a#b", format!("{above}{text}"));
            let place = |at: usize| Span::new(file, above.len() + at, above.len() + at + 1);
            let section = |at: usize| {
                let (section, line) = sources.section(place(at));
                (sources.section_name(file, section), line)
            };
            assert_eq!(section(text.find("    x").unwrap()), ("a#b#fn f".into(), 1));
            assert_eq!(section(text.find("\n\n}").unwrap() + 2), ("a#b#fn f;2".into(), 2));
            assert_eq!(section(text.len() - 1), ("a#b#static x".into(), 1));
            let line = sources.line(place(text.len() - 1));
            assert_eq!(sources.section_line("a#b#static x", 1), Some(("a#b", line)));
            assert_eq!(sources.section_line("a#c#static x", 1), None);
            assert_eq!(sources.section_line("a#b", 1), None);
        }
    }

    #[test]
    fn calls_around_code() {
        let mut calls = Calls::default();
        let place = |at: usize| Span::new(FileId(0), at, at + 1);
        let callee = |name: &str| Callee { name: name.into(), place: place(0), is_plain: true };
        let outer = calls.enter(place(1), 1, || callee("outer"));
        let inner = calls.enter(Span { call: outer, ..place(2) }, 2, || callee("inner"));
        assert_eq!(calls.enter(Span { call: outer, ..place(2) }, 2, || callee("inner")), inner);
        let code = Span { call: inner, ..place(3) };
        assert_eq!(calls.around(code).collect::<Vec<_>>(), [("inner", place(2)), ("outer", place(1))]);
        assert_eq!(calls.around(place(3)).next(), None);
        // Inner calls of a recursive function, also through others, are the first call.
        assert_eq!(calls.enter(code, 2, || callee("inner")), inner);
        assert_eq!(calls.enter(code, 1, || callee("outer")), outer);
    }
}

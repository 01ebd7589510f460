//! Source files and places in them.

crate::define_id!(
    /// One source file of a [`Sources`].
    pub struct FileId, "file"
);

/// A range of bytes of a file, `lo` inclusive, `hi` exclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    pub file: FileId,
    pub lo: u32,
    pub hi: u32,
}

impl Default for Span {
    fn default() -> Span {
        Span::NONE
    }
}

impl Span {
    /// The span of generated code, which no user wrote.
    pub const NONE: Span = Span { file: FileId(u32::MAX), lo: 0, hi: 0 };

    pub fn new(file: FileId, lo: usize, hi: usize) -> Span {
        Span { file, lo: lo as u32, hi: hi as u32 }
    }

    /// The smallest span that covers both, which belong to one file.
    pub fn to(self, other: Span) -> Span {
        if self == Span::NONE {
            return other;
        }
        Span { file: self.file, lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub fn is_none(self) -> bool {
        self == Span::NONE
    }
}

/// The texts of all files of a program, by [`FileId`].
#[derive(Default, Clone, Debug)]
pub struct Sources {
    files: Vec<File>,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    /// Byte offset of the start of each line.
    lines: Vec<u32>,
}

impl Sources {
    pub fn new() -> Sources {
        Sources::default()
    }

    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(File { name: name.into(), text, lines });
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

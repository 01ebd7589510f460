//! Places as the protocol has them: lines with columns in UTF-16, files as URIs. Bytes and paths everywhere else.

use lsp_types::{Position, Range, Uri};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The starts of the lines of a text.
pub struct Lines(Vec<u32>);

impl Lines {
    pub fn new(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1);
        Lines(std::iter::once(0).chain(ends).collect())
    }

    /// The line that a byte is in, from 0.
    pub fn line(&self, at: u32) -> usize {
        self.0.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// The byte of a place. A column behind the line's end, or within a character, is the last one that fits.
    pub fn offset(&self, text: &str, position: Position) -> u32 {
        let Some(&start) = self.0.get(position.line as usize) else { return text.len() as u32 };
        let line = text[start as usize..].split('\n').next().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut column = 0;
        for (i, c) in line.char_indices() {
            column += c.len_utf16() as u32;
            if column > position.character {
                return start + i as u32;
            }
        }
        start + line.len() as u32
    }

    /// The place of a byte. One within a character counts as the character's first.
    pub fn position(&self, text: &str, at: u32) -> Position {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let line = self.line(at as u32);
        let column = text[self.0[line] as usize..at].chars().map(|c| c.len_utf16() as u32).sum();
        Position::new(line as u32, column)
    }

    pub fn range(&self, text: &str, lo: u32, hi: u32) -> Range {
        Range::new(self.position(text, lo), self.position(text, hi))
    }
}

/// The path of a `file` URI.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    if uri.scheme().is_none_or(|scheme| !scheme.as_str().eq_ignore_ascii_case("file")) {
        return None;
    }
    let bytes = uri.path().as_estr().decode().into_bytes().into_owned();
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes))).filter(|path| path.is_absolute())
}

/// The URI of a file. `None` if the path is not absolute.
pub fn uri_of(path: &Path) -> Option<Uri> {
    if !path.is_absolute() {
        return None;
    }
    let mut uri = String::from("file://");
    for &byte in OsStr::as_bytes(path.as_os_str()) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte.into()),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_utf_16() {
        let text = "a\n\u{1d465} = ä;\r\nend";
        let lines = Lines::new(text);
        let place = |line, column| Position::new(line, column);
        for (at, position) in
            [(0, place(0, 0)), (2, place(1, 0)), (6, place(1, 2)), (9, place(1, 5)), (11, place(1, 6))]
        {
            assert_eq!(lines.position(text, at), position);
            assert_eq!(lines.offset(text, position), at);
        }
        // Within a character, behind a line, behind the text.
        assert_eq!(lines.offset(text, place(1, 1)), 2);
        assert_eq!(lines.offset(text, place(1, 99)), 12);
        assert_eq!(lines.offset(text, place(9, 0)), text.len() as u32);
        assert_eq!(lines.position(text, 4), place(1, 0));
    }

    #[test]
    fn uris_are_paths() {
        let path = Path::new("/a b/ü%1.impala");
        let uri = uri_of(path).expect("a URI");
        assert_eq!(uri.as_str(), "file:///a%20b/%C3%BC%251.impala");
        assert_eq!(path_of(&uri).as_deref(), Some(path));
        assert_eq!(path_of(&"untitled:new".parse().expect("a URI")), None);
    }
}

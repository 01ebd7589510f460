//! Text to tokens, the same ones in each dialect.
//!
//! Separate, since only here characters are looked at. It never fails: what begins no token is one that no rule of the grammar takes.

use nyala_base::{FileId, Span};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Name,
    Int,
    Float,
    /// With its quotes.
    Char,
    /// With its quotes.
    Text,
    /// A bracket, an operator, a separator.
    Sign,
    /// A line for the preprocessor.
    Directive,
    Unknown,
    End,
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'s> {
    pub kind: Kind,
    pub text: &'s str,
    pub span: Span,
}

/// Longer ones first.
const SIGNS: [&str; 48] = [
    "<<=", ">>=", "...", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
    "^=", "<<", ">>", "->", "::", "(", ")", "[", "]", "{", "}", ",", ";", ":", "?", "=", "+", "-", "*", "/", "%", "<",
    ">", "&", "|", "^", "!", "~", ".", "@",
];

/// The tokens, the last of which is `End`. A line for the preprocessor is one token.
pub fn tokens(file: FileId, text: &str) -> Vec<Token<'_>> {
    tokens_from(file, text, 0, true)
}

/// The tokens of a line for the preprocessor, behind its `#`.
pub fn tokens_of_line<'s>(text: &'s str, line: Token) -> Vec<Token<'s>> {
    let end = text.get(..line.span.hi as usize).unwrap_or_default();
    tokens_from(line.span.file, end, line.span.lo as usize + 1, false)
}

/// Where a line for the preprocessor ends: before its line break, unless that is in a comment or behind a `\`.
fn end_of_line(bytes: &[u8], mut pos: usize) -> usize {
    let mut quote = None;
    while let Some(&c) = bytes.get(pos) {
        let rest = &bytes[pos..];
        if c == b'\n' || c == b'\r' && rest.get(1) == Some(&b'\n') {
            break;
        }
        pos += match (c, quote) {
            (b'\\', _) if rest.starts_with(b"\\\r\n") => 3,
            (b'\\', _) => 2,
            (b'"' | b'\'', None) => {
                quote = Some(c);
                1
            }
            (_, Some(open)) => {
                quote = Some(open).filter(|open| *open != c);
                1
            }
            (b'/', None) if rest.starts_with(b"//") => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
            (b'/', None) if rest.starts_with(b"/*") => {
                rest[2..].windows(2).position(|w| w == b"*/").map_or(rest.len(), |n| n + 4)
            }
            _ => 1,
        };
    }
    pos.min(bytes.len())
}

fn tokens_from(file: FileId, text: &str, start: usize, mut begins_line: bool) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let is_word = |c: u8| c == b'_' || c.is_ascii_alphanumeric();
    let mut pos = start;
    // `begins_line`: only blanks are between the beginning of the line and this place.
    while pos < bytes.len() {
        let start = pos;
        let c = bytes[pos];
        let rest = &text[pos..];
        let kind = if c.is_ascii_whitespace() {
            begins_line |= c == b'\n';
            pos += 1;
            continue;
        } else if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
            pos += 2;
            continue;
        } else if rest.starts_with("//") {
            pos += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            pos += comment.find("*/").map_or(rest.len(), |n| n + 4);
            continue;
        } else if c == b'#' && begins_line {
            pos = end_of_line(bytes, pos);
            Kind::Directive
        } else if c == b'_' || c.is_ascii_alphabetic() {
            while is_word(at(pos)) {
                pos += 1;
            }
            Kind::Name
        } else if c.is_ascii_digit() || c == b'.' && at(pos + 1).is_ascii_digit() {
            let (length, kind) = number(&bytes[pos..]);
            pos += length;
            kind
        } else if c == b'"' || c == b'\'' {
            pos += 1;
            while pos < bytes.len() && at(pos) != b'\n' && at(pos) != c {
                pos += if at(pos) == b'\\' && at(pos + 1) != b'\n' { 2 } else { 1 };
            }
            pos = pos.min(bytes.len());
            let is_closed = at(pos) == c;
            pos += usize::from(is_closed);
            match (is_closed, c) {
                (false, _) => Kind::Unknown,
                (true, b'"') => Kind::Text,
                (true, _) => Kind::Char,
            }
        } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            pos += sign.len();
            Kind::Sign
        } else {
            pos += rest.chars().next().map_or(1, char::len_utf8);
            Kind::Unknown
        };
        begins_line = false;
        // A `\` before the end of the text, or before a character of several bytes, must not cut it.
        while !text.is_char_boundary(pos) {
            pos += 1;
        }
        tokens.push(Token { kind, text: &text[start..pos], span: Span::new(file, start, pos) });
    }
    tokens.push(Token { kind: Kind::End, text: "", span: Span::new(file, text.len(), text.len()) });
    tokens
}

/// The digits of an integer, their base, and the suffix.
pub fn integer(text: &str) -> (&str, u32, &str) {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = &text[digits.len()..];
    match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16, suffix),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2, suffix),
        [b'0', _, ..] => (&digits[1..], 8, suffix),
        _ => (digits, 10, suffix),
    }
}

/// The length of the number at the beginning, with all letters that follow it, and whether it has a fraction or an exponent.
fn number(bytes: &[u8]) -> (usize, Kind) {
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut pos = 0;
    let mut kind = Kind::Int;
    let is_hex = at(0) == b'0' && matches!(at(1), b'x' | b'X');
    loop {
        match at(pos) {
            // `0...n`
            b'.' if at(pos + 1) == b'.' => return (pos, kind),
            b'.' => kind = Kind::Float,
            b'p' | b'P' if is_hex => {
                kind = Kind::Float;
                pos += usize::from(matches!(at(pos + 1), b'+' | b'-'));
            }
            b'e' | b'E' if !is_hex && (at(pos + 1).is_ascii_digit() || matches!(at(pos + 1), b'+' | b'-')) => {
                kind = Kind::Float;
                pos += usize::from(matches!(at(pos + 1), b'+' | b'-'));
            }
            // `1.5d-3`, in ISPC's dialect
            b'd' | b'D' if !is_hex && matches!(at(pos + 1), b'+' | b'-') && at(pos + 2).is_ascii_digit() => {
                kind = Kind::Float;
                pos += 1;
            }
            c if c.is_ascii_alphanumeric() || c == b'_' => {}
            _ => return (pos, kind),
        }
        pos += 1;
    }
}

/// The bytes of a text or character with its quotes. `None`: a `\` stands before something without a meaning.
pub fn unquoted(token: &str) -> Option<Vec<u8>> {
    let mut bytes = token.get(1..token.len().checked_sub(1)?)?.bytes().peekable();
    let mut found = Vec::new();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'a' => 7,
                b'b' => 8,
                b'f' => 12,
                b'v' => 11,
                b'x' => {
                    let mut value = 0u32;
                    let mut n_digits = 0;
                    while let Some(digit) = bytes.peek().and_then(|b| (*b as char).to_digit(16)) {
                        value = value * 16 + digit;
                        n_digits += 1;
                        bytes.next();
                        if value > 255 {
                            return None;
                        }
                    }
                    if n_digits == 0 {
                        return None;
                    }
                    value as u8
                }
                first @ b'0'..=b'7' => {
                    let mut value = u32::from(first - b'0');
                    for _ in 0..2 {
                        let Some(digit) = bytes.peek().and_then(|b| (*b as char).to_digit(8)) else { break };
                        value = value * 8 + digit;
                        bytes.next();
                    }
                    u8::try_from(value).ok()?
                }
                sign @ (b'\\' | b'\'' | b'"' | b'?') => sign,
                _ => return None,
            },
            byte => byte,
        };
        found.push(byte);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyala_base::Id;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        tokens(FileId::from_idx(0), text).iter().map(|t| (t.kind, t.text)).collect()
    }

    #[test]
    fn numbers_signs_and_texts() {
        let found = kinds("a>>=0x1Fu-1.5e-3f*.5 'x'\"a\\\"b\"// c\n  #if /* d */");
        use Kind::*;
        let expected = [
            (Name, "a"),
            (Sign, ">>="),
            (Int, "0x1Fu"),
            (Sign, "-"),
            (Float, "1.5e-3f"),
            (Sign, "*"),
            (Float, ".5"),
            (Char, "'x'"),
            (Text, "\"a\\\"b\""),
            (Directive, "#if /* d */"),
            (End, ""),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_is_cut_within_a_character() {
        for text in ["\"ab", "'", "\"\\é", "\\", "é", "/*", "\"\\", "1e+", "0x"] {
            assert!(kinds(text).last() == Some(&(Kind::End, "")), "{text}");
        }
        assert_eq!(kinds("\"\\")[0].0, Kind::Unknown);
    }

    #[test]
    fn escapes() {
        assert_eq!(unquoted("\"a\\n\\x41\\101\\0\""), Some(b"a\nAA\0".to_vec()));
        assert_eq!(unquoted("'\\q'"), None);
        assert_eq!(unquoted("'\\x'"), None);
        assert_eq!(unquoted("'\\xfff'"), None);
    }
}

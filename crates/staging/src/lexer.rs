//! Text to tokens, of DeepCPS.
//!
//! Separate, since only here characters are looked at. It never fails: what begins no token is one that no rule of the grammar takes.

use crate::term::Const;
use nyala_base::{FileId, Span};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Name,
    Int,
    Float,
    /// With its quotes.
    Text,
    /// A bracket, an operator, a separator.
    Sign,
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
const SIGNS: [&str; 22] =
    ["==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ",", ":", "@", "&", "|", "!", "+", "-", "*", "/", "<", ">"];

/// The bytes of a text with its quotes, as elements of an array. `\n` and `\t` are a new line and a tabulator, behind other `\` a character is itself.
pub fn text(token: &str) -> Vec<Const> {
    let mut bytes = token.trim_start_matches('"').bytes();
    let mut found = Vec::new();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'"' => break,
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(other) => other,
                None => break,
            },
            byte => byte,
        };
        found.push(Const::Int(byte.into()));
    }
    found
}

/// The tokens, the last of which is `End`.
pub fn tokens(file: FileId, text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token> = Vec::new();
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut pos = 0;
    while pos < bytes.len() {
        let start = pos;
        let c = bytes[pos];
        let is_word = |c: u8| c == b'_' || c.is_ascii_alphanumeric();
        // A `-` before a digit belongs to the number where a blank is before it and none behind, or where no operand is before it: `f -1` has an
        // argument, `n-1` and `n - 1` are differences.
        let negative = c == b'-' && at(pos + 1).is_ascii_digit() && {
            let blank_before = start == 0 || at(start - 1).is_ascii_whitespace();
            let after_operand = tokens
                .last()
                .is_some_and(|t| matches!(t.kind, Kind::Name | Kind::Int | Kind::Float) || matches!(t.text, ")" | "}"));
            !after_operand || blank_before
        };
        let kind = if c.is_ascii_whitespace() {
            pos += 1;
            continue;
        } else if text[pos..].starts_with("//") {
            pos += text[pos..].find('\n').unwrap_or(text.len() - pos);
            continue;
        } else if c == b'_' || c.is_ascii_alphabetic() {
            while is_word(at(pos)) {
                pos += 1;
            }
            Kind::Name
        } else if c.is_ascii_digit() || negative {
            pos += 1;
            while at(pos).is_ascii_digit() {
                pos += 1;
            }
            let mut kind = Kind::Int;
            if at(pos) == b'.' && at(pos + 1).is_ascii_digit() {
                kind = Kind::Float;
                pos += 1;
                while at(pos).is_ascii_digit() {
                    pos += 1;
                }
            }
            let sign = usize::from(matches!(at(pos + 1), b'+' | b'-'));
            if at(pos) == b'e' && at(pos + 1 + sign).is_ascii_digit() {
                kind = Kind::Float;
                pos += 1 + sign;
                while at(pos).is_ascii_digit() {
                    pos += 1;
                }
            }
            kind
        } else if c == b'"' {
            pos += 1;
            while pos < bytes.len() && !matches!(at(pos), b'\n' | b'"') {
                pos += if at(pos) == b'\\' && matches!(at(pos + 1), b'"' | b'\\') { 2 } else { 1 };
            }
            let is_closed = at(pos) == b'"';
            pos += usize::from(is_closed);
            if is_closed { Kind::Text } else { Kind::Unknown }
        } else if let Some(sign) = SIGNS.iter().find(|s| text[pos..].starts_with(**s)) {
            pos += sign.len();
            Kind::Sign
        } else {
            pos += text[pos..].chars().next().map_or(1, char::len_utf8);
            Kind::Unknown
        };
        tokens.push(Token { kind, text: &text[start..pos], span: Span::new(file, start, pos) });
    }
    tokens.push(Token { kind: Kind::End, text: "", span: Span::new(file, text.len(), text.len()) });
    tokens
}

//! The values of literal tokens. The place of an error is a byte range within the token.

use crate::ast::Suffix;
use crate::diagnostics::{bad_char, bad_escape, bad_number};
use nyala_base::{Diagnostic, Span};
use std::ops::Range;

/// An error in a literal, which becomes a diagnostic once its place in the file is known.
pub struct LiteralError {
    pub range: Range<usize>,
    pub what: Box<dyn FnOnce(Span) -> Diagnostic>,
}

fn fault(range: Range<usize>, what: impl FnOnce(Span) -> Diagnostic + 'static) -> LiteralError {
    LiteralError { range, what: Box::new(what) }
}

pub enum Number {
    Int(u128, Option<Suffix>),
    /// Digits, point and exponent, in the form that `str::parse` accepts.
    Float(String, Option<Suffix>),
}

fn suffix(text: &str, float: bool) -> Option<Suffix> {
    Some(match text {
        "f" | "f32" => Suffix::F32,
        "h" | "f16" => Suffix::F16,
        "f64" => Suffix::F64,
        _ if float => return None,
        "i" | "i32" => Suffix::I32,
        "u" | "u32" => Suffix::U32,
        "i8" => Suffix::I8,
        "i16" => Suffix::I16,
        "i64" => Suffix::I64,
        "u8" => Suffix::U8,
        "u16" => Suffix::U16,
        "u64" => Suffix::U64,
        _ => return None,
    })
}

/// The value of a number token.
pub fn number(text: &str, float: bool) -> Result<Number, LiteralError> {
    let radix = match text.as_bytes() {
        [b'0', b'b', ..] => 2,
        [b'0', b'o', ..] => 8,
        [b'0', b'x', ..] => 16,
        _ => 10,
    };
    let digits_at = if radix == 10 { 0 } else { 2 };
    // The position where the digits end and the suffix begins.
    let end = if float {
        let bytes = text.as_bytes();
        let mut i = 0;
        while i < bytes.len() && matches!(bytes[i], b'0'..=b'9' | b'_' | b'.') {
            i += 1;
        }
        let digit_at = |j: usize| bytes.get(j).is_some_and(|b| b.is_ascii_digit() || *b == b'_');
        let signed = |j: usize| matches!(bytes.get(j), Some(b'+' | b'-')) && digit_at(j + 1);
        if i < bytes.len() && matches!(bytes[i], b'e' | b'E') && (digit_at(i + 1) || signed(i + 1)) {
            i += 1;
            if i < bytes.len() && matches!(bytes[i], b'+' | b'-') {
                i += 1;
            }
            while i < bytes.len() && matches!(bytes[i], b'0'..=b'9' | b'_') {
                i += 1;
            }
        }
        i
    } else {
        let is_digit = |c: char| c == '_' || c.is_digit(radix);
        text[digits_at..].find(|c: char| !is_digit(c)).map_or(text.len(), |i| i + digits_at)
    };
    let (digits, rest) = (&text[digits_at..end], &text[end..]);
    let suffix = match rest {
        "" => None,
        _ => match suffix(rest, float) {
            Some(s) if !(radix != 10 && s.is_float()) => Some(s),
            _ if !float && rest.starts_with(|c: char| c.is_ascii_digit()) => {
                let digit = rest[..1].to_string();
                return Err(fault(end..end + 1, move |span| bad_number::digit(span, &digit, radix)));
            }
            _ => {
                let suffix = cut(rest);
                return Err(fault(end..text.len(), move |span| bad_number::suffix(span, &suffix)));
            }
        },
    };
    if digits.bytes().all(|b| b == b'_') {
        return Err(fault(0..text.len(), bad_number::no_digits));
    }
    if float || suffix.is_some_and(Suffix::is_float) {
        let mut clean = digits.replace('_', "");
        if clean.ends_with('.') {
            clean.push('0');
        }
        return Ok(Number::Float(clean, suffix));
    }
    let mut value: u128 = 0;
    for c in digits.chars().filter(|c| *c != '_') {
        let digit = c.to_digit(radix).unwrap_or(0);
        value = match value.checked_mul(radix.into()).and_then(|v| v.checked_add(digit.into())) {
            Some(v) => v,
            None => return Err(fault(0..text.len(), bad_number::too_large)),
        };
    }
    Ok(Number::Int(value, suffix))
}

/// The first 20 characters of `text`, followed by `…` if it is longer.
pub fn cut(text: &str) -> String {
    let mut out: String = text.chars().take(20).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

/// The bytes between the quotes of a string or character token.
pub fn unescape(text: &str) -> Result<Vec<u8>, LiteralError> {
    let inner = &text[1..text.len() - 1];
    let mut out = Vec::with_capacity(inner.len() + 1);
    let mut chars = inner.char_indices();
    while let Some((i, c)) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escape = chars.next();
        out.push(match escape.map(|(_, c)| c) {
            Some('0') => 0,
            Some('n') => b'\n',
            Some('t') => b'\t',
            Some('r') => b'\r',
            Some('\\') => b'\\',
            Some('\'') => b'\'',
            Some('"') => b'"',
            Some('x') => {
                let digits: Option<(u32, u32)> = (|| {
                    let high = chars.next()?.1.to_digit(16)?;
                    Some((high, chars.next()?.1.to_digit(16)?))
                })();
                match digits {
                    Some((high, low)) => (high * 16 + low) as u8,
                    None => return Err(fault(i + 1..i + 3, bad_escape::hexadecimal)),
                }
            }
            other => {
                let hi = i + 2 + other.map_or(0, char::len_utf8);
                let found = other.map(String::from).unwrap_or_default();
                return Err(fault(i + 1..hi, move |span| bad_escape::unknown(span, &found)));
            }
        });
    }
    Ok(out)
}

/// The value of a character token.
pub fn char(text: &str) -> Result<u8, LiteralError> {
    let bytes = unescape(text)?;
    match bytes[..] {
        [b] => Ok(b),
        _ => Err(fault(0..text.len(), move |span| bad_char::error(span, bytes.len()))),
    }
}

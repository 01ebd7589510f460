//! Text to tokens, handwritten. Every UTF-8 text has a token list.

use crate::diagnostics::{unknown_character, unterminated_char, unterminated_comment, unterminated_string};
use nyala_base::{Diagnostic, FileId, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tok {
    Eof,
    /// An error that has been reported.
    Bad,
    Ident,
    Int,
    Float,
    Char,
    Str,
    // Keywords.
    As,
    Asm,
    Do,
    Else,
    Enum,
    Extern,
    False,
    Fn,
    For,
    If,
    Impl,
    In,
    Let,
    Match,
    Mod,
    Mut,
    Priv,
    Pub,
    Simd,
    Static,
    Struct,
    Trait,
    True,
    Type,
    Typeof,
    While,
    With,
    // Brackets and punctuation.
    LParen,
    RParen,
    LBracket,
    RBracket,
    LBrace,
    RBrace,
    Comma,
    Semi,
    Colon,
    ColonColon,
    Dot,
    DotDot,
    Arrow,
    FatArrow,
    At,
    AtAt,
    Dollar,
    Question,
    Tilde,
    Not,
    Eq,
    PlusEq,
    MinusEq,
    StarEq,
    SlashEq,
    PercentEq,
    AndEq,
    OrEq,
    CaretEq,
    ShlEq,
    ShrEq,
    OrOr,
    AndAnd,
    EqEq,
    NotEq,
    Lt,
    Le,
    Gt,
    Ge,
    Or,
    Caret,
    And,
    Shl,
    Shr,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    PlusPlus,
    MinusMinus,
}

#[derive(Debug, Clone, Copy)]
pub struct Token {
    pub tok: Tok,
    pub lo: u32,
    pub hi: u32,
    /// Whether it is the first token of its line.
    pub newline: bool,
}

/// The tokens of `text`, with an [`Tok::Eof`] at the end.
pub fn lex(file: FileId, text: &str, errors: &mut Vec<Diagnostic>) -> Vec<Token> {
    let mut lexer = Lexer { file, text, bytes: text.as_bytes(), pos: 0, tokens: Vec::new(), errors };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    tokens: Vec<Token>,
    errors: &'a mut Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn span(&self, lo: usize, hi: usize) -> Span {
        Span::new(self.file, lo, hi)
    }

    fn run(&mut self) {
        let mut newline = true;
        if self.text.starts_with('\u{feff}') {
            self.pos = 3;
        }
        loop {
            newline |= self.skip_blanks();
            let lo = self.pos;
            if lo >= self.bytes.len() {
                break;
            }
            let tok = self.token();
            self.tokens.push(Token { tok, lo: lo as u32, hi: self.pos as u32, newline });
            newline = false;
        }
        let end = self.bytes.len() as u32;
        self.tokens.push(Token { tok: Tok::Eof, lo: end, hi: end, newline: true });
    }

    /// Skips white space and comments. Returns whether they contain the end of a line.
    fn skip_blanks(&mut self) -> bool {
        let mut newline = false;
        loop {
            match self.peek(0) {
                b'\n' => {
                    newline = true;
                    self.pos += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.pos += 1,
                b'/' if self.peek(1) == b'/' => {
                    let rest = &self.bytes[self.pos..];
                    self.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                b'/' if self.peek(1) == b'*' => newline |= self.block_comment(),
                _ => return newline,
            }
        }
    }

    fn block_comment(&mut self) -> bool {
        let lo = self.pos;
        let mut depth = 0usize;
        let mut newline = false;
        while self.pos < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.pos += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.pos += 2;
                    if depth == 0 {
                        return newline;
                    }
                }
                (b, _) => {
                    newline |= b == b'\n';
                    self.pos += 1;
                }
            }
        }
        self.errors.push(unterminated_comment::error(self.span(lo, lo + 2)));
        newline
    }

    fn token(&mut self) -> Tok {
        use Tok::*;
        let b = self.peek(0);
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.ident(),
            b'0'..=b'9' => return self.number(),
            b'.' if self.peek(1).is_ascii_digit() => return self.number(),
            b'"' => return self.string(),
            b'\'' => return self.char(),
            _ => {}
        }
        let (b1, b2) = (self.peek(1), self.peek(2));
        let (tok, len) = match (b, b1, b2) {
            (b'<', b'<', b'=') => (ShlEq, 3),
            (b'>', b'>', b'=') => (ShrEq, 3),
            (b':', b':', _) => (ColonColon, 2),
            (b'.', b'.', _) => (DotDot, 2),
            (b'-', b'>', _) => (Arrow, 2),
            (b'=', b'>', _) => (FatArrow, 2),
            (b'@', b'@', _) => (AtAt, 2),
            (b'+', b'=', _) => (PlusEq, 2),
            (b'-', b'=', _) => (MinusEq, 2),
            (b'*', b'=', _) => (StarEq, 2),
            (b'/', b'=', _) => (SlashEq, 2),
            (b'%', b'=', _) => (PercentEq, 2),
            (b'&', b'=', _) => (AndEq, 2),
            (b'|', b'=', _) => (OrEq, 2),
            (b'^', b'=', _) => (CaretEq, 2),
            (b'|', b'|', _) => (OrOr, 2),
            (b'&', b'&', _) => (AndAnd, 2),
            (b'=', b'=', _) => (EqEq, 2),
            (b'!', b'=', _) => (NotEq, 2),
            (b'<', b'=', _) => (Le, 2),
            (b'>', b'=', _) => (Ge, 2),
            (b'<', b'<', _) => (Shl, 2),
            (b'>', b'>', _) => (Shr, 2),
            (b'+', b'+', _) => (PlusPlus, 2),
            (b'-', b'-', _) => (MinusMinus, 2),
            (b'(', ..) => (LParen, 1),
            (b')', ..) => (RParen, 1),
            (b'[', ..) => (LBracket, 1),
            (b']', ..) => (RBracket, 1),
            (b'{', ..) => (LBrace, 1),
            (b'}', ..) => (RBrace, 1),
            (b',', ..) => (Comma, 1),
            (b';', ..) => (Semi, 1),
            (b':', ..) => (Colon, 1),
            (b'.', ..) => (Dot, 1),
            (b'@', ..) => (At, 1),
            (b'$', ..) => (Dollar, 1),
            (b'?', ..) => (Question, 1),
            (b'~', ..) => (Tilde, 1),
            (b'!', ..) => (Not, 1),
            (b'=', ..) => (Eq, 1),
            (b'<', ..) => (Lt, 1),
            (b'>', ..) => (Gt, 1),
            (b'|', ..) => (Or, 1),
            (b'^', ..) => (Caret, 1),
            (b'&', ..) => (And, 1),
            (b'+', ..) => (Plus, 1),
            (b'-', ..) => (Minus, 1),
            (b'*', ..) => (Star, 1),
            (b'/', ..) => (Slash, 1),
            (b'%', ..) => (Percent, 1),
            _ => return self.unknown(),
        };
        self.pos += len;
        tok
    }

    /// Skips a run of characters that begin no token, and reports it as one error.
    fn unknown(&mut self) -> Tok {
        let lo = self.pos;
        let known = |c: char| c.is_ascii_graphic() && !matches!(c, '#' | '\\' | '`') || c.is_ascii_whitespace();
        let rest = &self.text[lo..];
        let len = rest.char_indices().find(|(i, c)| *i > 0 && known(*c)).map_or(rest.len(), |(i, _)| i);
        self.pos += len;
        let first = rest.chars().next().unwrap_or(' ');
        self.errors.push(unknown_character::error(self.span(lo, self.pos), first));
        Tok::Bad
    }

    fn ident(&mut self) -> Tok {
        use Tok::*;
        let lo = self.pos;
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') {
            self.pos += 1;
        }
        match &self.text[lo..self.pos] {
            "as" => As,
            "asm" => Asm,
            "do" => Do,
            "else" => Else,
            "enum" => Enum,
            "extern" => Extern,
            "false" => False,
            "fn" => Fn,
            "for" => For,
            "if" => If,
            "impl" => Impl,
            "in" => In,
            "let" => Let,
            "match" => Match,
            "mod" => Mod,
            "mut" => Mut,
            "priv" => Priv,
            "pub" => Pub,
            "simd" => Simd,
            "static" => Static,
            "struct" => Struct,
            "trait" => Trait,
            "true" => True,
            "type" => Type,
            "typeof" => Typeof,
            "while" => While,
            "with" => With,
            _ => Ident,
        }
    }

    /// Skips digits, letters and `_`: the rest of a literal with its suffix.
    fn skip_word(&mut self) {
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') {
            self.pos += 1;
        }
    }

    fn skip_digits(&mut self) {
        while matches!(self.peek(0), b'0'..=b'9' | b'_') {
            self.pos += 1;
        }
    }

    /// Finds the extent of a number. [`crate::literals`] determines its value and checks its form.
    fn number(&mut self) -> Tok {
        if self.peek(0) == b'0' && matches!(self.peek(1), b'b' | b'o' | b'x') {
            self.pos += 2;
            self.skip_word();
            return Tok::Int;
        }
        let mut float = false;
        self.skip_digits();
        if self.peek(0) == b'.' && (self.peek(1).is_ascii_digit() || self.fraction_follows()) {
            float = true;
            self.pos += 1;
            self.skip_digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            let mut i = 1 + sign;
            while self.peek(i) == b'_' {
                i += 1;
            }
            if self.peek(i).is_ascii_digit() {
                float = true;
                self.pos += i;
                self.skip_digits();
            }
        }
        self.skip_word();
        if float { Tok::Float } else { Tok::Int }
    }

    /// At the dot after digits: whether the dot belongs to the number. It does in `1.` and `1.f`, but not in `1..` and
    /// `1.max`.
    fn fraction_follows(&self) -> bool {
        let mut i = 1;
        if self.peek(1) == b'.' {
            return false;
        }
        while matches!(self.peek(i), b'_' | b'0'..=b'9') {
            i += 1;
        }
        let start = self.pos + i;
        let len = self.bytes[start..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').take(64).count();
        let word = &self.bytes[start..start + len];
        match word {
            b"" | b"h" | b"f" | b"f16" | b"f32" | b"f64" => true,
            [b'e' | b'E', rest @ ..] => {
                rest.first().is_some_and(|b| b.is_ascii_digit() || *b == b'_')
                    || rest.is_empty() && matches!(self.peek(i + 1), b'+' | b'-')
            }
            // `1._x` is a malformed number, `1.x` a field or method of a number.
            _ => i > 1,
        }
    }

    fn string(&mut self) -> Tok {
        let lo = self.pos;
        self.pos += 1;
        loop {
            if self.pos >= self.bytes.len() {
                self.errors.push(unterminated_string::error(self.span(lo, lo + 1)));
                return Tok::Bad;
            }
            match self.peek(0) {
                b'"' => {
                    self.pos += 1;
                    return Tok::Str;
                }
                b'\\' if self.pos + 1 < self.bytes.len() => {
                    // The character escaped may have several bytes; only a quote or backslash needs care.
                    self.pos += if matches!(self.peek(1), b'"' | b'\\') { 2 } else { 1 };
                }
                _ => self.pos += 1,
            }
        }
    }

    fn char(&mut self) -> Tok {
        let lo = self.pos;
        let chars = self.text[lo + 1..].char_indices();
        let mut end = None;
        let mut escaped = false;
        for (i, c) in chars {
            if c == '\n' || i > 64 {
                break;
            }
            if c == '\'' && !escaped && (i > 0 || !self.text[lo + 2..].starts_with('\'')) {
                end = Some(lo + 1 + i + 1);
                break;
            }
            escaped = c == '\\' && !escaped;
        }
        match end {
            Some(end) => {
                self.pos = end;
                Tok::Char
            }
            None => {
                self.pos = lo + 1;
                self.errors.push(unterminated_char::error(self.span(lo, lo + 1)));
                self.skip_word();
                Tok::Bad
            }
        }
    }
}

//! The canonical form of a text: blanks between tokens, indentation, blank lines. Line ends stay where the author put them.
//!
//! The formatter works on tokens, so that comments keep their places and every text that parses can be formatted.
//!
//! - **Indentation** follows from brackets. Inside, it is one step more than that of the line on which the bracket opens. A line that
//!   goes on with a statement, an argument or the like is one step inside the line on which that began. A block whose `if`, `for` or
//!   `fn` is on an earlier line belongs to that line.
//! - **Blanks** follow from the two tokens beside them and from whether an operand is complete, which tells `a - b` from `-a`. The
//!   author's blanks stay behind commas, in front of comments and inside of `asm`, where they align columns, and around `..`.
//!
//! The tokens of the result are those of the text, which [`format()`] checks.
//!
//! Not done: long lines are not broken, and short ones not joined.

use crate::lexer::{Tok, Token, lex};
use crate::parser::ADDRESS_SPACES;
use nyala_base::diagnostics::bug;
use nyala_base::{Diagnostic, FileId, Sink, Span};

/// A step of indentation.
const STEP: usize = 4;

/// The text in its canonical form, or the errors of a text that does not parse.
pub fn format(file: FileId, text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut errors = Sink::default();
    crate::parse(file, text, &mut errors);
    if errors.has_errors() {
        return Err(errors.diagnostics);
    }
    let tokens = lex(file, text, &mut Vec::new());
    let whole = Open { tok: Tok::Eof, role: Role::Usual, indent: 0, inside: 0, first: None, head: None };
    let mut writer = Writer { text, out: String::new(), open: vec![whole], indent: 0, last: None };
    writer.run(&tokens);
    let formatted = writer.out;
    if !same_tokens(file, text, &tokens, &formatted) {
        let start = Span::new(file, 0, 0);
        return Err(vec![bug::error(start, "the formatter would change what this file means; it is left as it is")]);
    }
    Ok(formatted)
}

fn same_tokens(file: FileId, text: &str, tokens: &[Token], formatted: &str) -> bool {
    let found = lex(file, formatted, &mut Vec::new());
    let is_same = |(a, b): (&Token, &Token)| a.tok == b.tok && text_of(formatted, a) == text_of(text, b);
    found.len() == tokens.len() && found.iter().zip(tokens).all(is_same)
}

fn text_of<'a>(text: &'a str, token: &Token) -> &'a str {
    &text[token.lo as usize..token.hi as usize]
}

/// The number of blanks at the end of a gap.
fn blanks(gap: &str) -> usize {
    gap.len() - gap.trim_end_matches(' ').len()
}

/// What stands between two tokens.
enum Piece<'a> {
    /// The number of line ends.
    Lines(usize),
    Comment(&'a str),
}

fn pieces(gap: &str) -> Vec<Piece<'_>> {
    let bytes = gap.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut lines) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
            (b'/', Some(b'*')) => block_comment(rest),
            (b, _) => {
                lines += usize::from(b == b'\n');
                at += 1;
                continue;
            }
        };
        if lines > 0 {
            found.push(Piece::Lines(std::mem::take(&mut lines)));
        }
        found.push(Piece::Comment(gap[at..at + length].trim_end_matches('\r')));
        at += length;
    }
    if lines > 0 {
        found.push(Piece::Lines(lines));
    }
    found
}

/// The length of the comment that begins here; comments nest.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            (b'*', Some(b'/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// A bracket that is open, the bars around a closure's parameters, or the whole text.
#[derive(Clone, Copy)]
struct Open {
    tok: Tok,
    role: Role,
    /// The indentation of the line to which it belongs, and of lines inside.
    indent: usize,
    inside: usize,
    /// The first token of the statement, argument or the like that is being written, and its line's indentation.
    first: Option<(Tok, usize)>,
    /// The indentation of the line with `if`, `fn` or the like, whose block has not begun.
    head: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Usual,
    /// An operator in front of its operand, or the first bar of a closure.
    Prefix,
    /// The last bar of a closure's parameters.
    LastBar,
    /// The parenthesis of a filter.
    Filter,
    /// The parenthesis of `asm`.
    Asm,
    /// The brace around a computed length, as in `[T * {N * N}]`.
    Length,
}

struct Writer<'a> {
    text: &'a str,
    out: String,
    open: Vec<Open>,
    /// The indentation of the current line.
    indent: usize,
    /// The token that was written last.
    last: Option<(Tok, Role)>,
}

impl Writer<'_> {
    fn run(&mut self, tokens: &[Token]) {
        let mut end = if self.text.starts_with('\u{feff}') { 3 } else { 0 };
        for (i, token) in tokens.iter().enumerate() {
            let gap = &self.text[end..token.lo as usize];
            end = token.hi as usize;
            let at_line = self.gap(gap, token.tok);
            if token.tok == Tok::Eof {
                break;
            }
            let is_apart = !gap.is_empty();
            let hugs_next = tokens.get(i + 1).is_some_and(|next| next.lo == token.hi);
            let role = self.role(token.tok, at_line || is_apart && hugs_next);
            if at_line {
                self.begin_line(Some(token.tok));
            } else {
                let n = match self.blank(token.tok, role, &tokens[i..]) {
                    Blank::No => 0,
                    Blank::One => 1,
                    Blank::Own => usize::from(is_apart),
                    Blank::Column(least) => blanks(gap).max(least),
                };
                self.out.push_str(&" ".repeat(n));
            }
            self.out.push_str(text_of(self.text, token));
            self.note(token.tok, role);
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// The innermost bracket.
    fn here(&mut self) -> &mut Open {
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// Writes the comments and line ends of a gap in front of `next`. Returns whether `next` begins a line.
    fn gap(&mut self, gap: &str, next: Tok) -> bool {
        let is_closing = is_closing(next) || next == Tok::Eof;
        let mut at_line = self.out.is_empty();
        let pieces = pieces(gap);
        for (i, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Lines(n) => {
                    let is_first = self.out.is_empty() || i == 0 && self.last.is_some_and(|(tok, _)| is_opening(tok));
                    let is_last = i + 1 == pieces.len() && is_closing;
                    if !self.out.is_empty() && !at_line {
                        self.out.push('\n');
                    }
                    if *n > 1 && !is_first && !is_last {
                        self.out.push('\n');
                    }
                    at_line = true;
                }
                Piece::Comment(comment) => {
                    if at_line {
                        self.begin_line((!is_closing).then_some(next));
                    } else if !self.out.is_empty() {
                        let before = &gap[..comment.as_ptr() as usize - gap.as_ptr() as usize];
                        self.out.push_str(&" ".repeat(blanks(before).max(1)));
                    }
                    self.out.push_str(comment);
                    at_line = false;
                }
            }
        }
        at_line
    }

    /// Writes the indentation of a line that begins with this token, or with a comment in front of a closing bracket.
    fn begin_line(&mut self, first: Option<Tok>) {
        let goes_on = first.is_some_and(|first| self.goes_on(first));
        let here = self.here();
        let indent = match (first, here.first, here.head) {
            (Some(tok), ..) if is_closing(tok) => here.indent,
            (Some(Tok::Else), Some((Tok::If, indent)), _) if goes_on => indent,
            (Some(Tok::LBrace), _, Some(head)) if goes_on => head,
            (_, Some((_, indent)), _) if goes_on => indent + STEP,
            _ => here.inside,
        };
        if !goes_on {
            (here.first, here.head) = (None, None);
        }
        self.indent = indent;
        self.out.push_str(&" ".repeat(self.indent));
    }

    /// Whether a line that begins with this token goes on with what is before it.
    fn goes_on(&self, first: Tok) -> bool {
        use Tok::*;
        match self.last {
            None | Some((Semi | Comma, _)) => false,
            Some((tok, _)) if is_opening(tok) => false,
            Some((RBrace, _)) => matches!(first, Else | Dot | AndAnd | EqEq | NotEq | Plus | Eq),
            Some((tok, _)) if is_closing(tok) && first == Fn => false,
            Some(_) => first != Eof,
        }
    }

    /// Notes that a token was written.
    fn note(&mut self, tok: Tok, role: Role) {
        use Tok::*;
        let indent = self.indent;
        let here = self.here();
        here.first.get_or_insert((tok, indent));
        match tok {
            If | While | For | With | Match | Fn | Impl | Struct | Enum | Trait | Mod | Extern => {
                here.head = Some(indent)
            }
            Semi | Comma => (here.first, here.head) = (None, None),
            _ => {}
        }
        if is_opening(tok) || tok == Or && role == Role::Prefix {
            let head = if tok == LBrace { here.head.take() } else { None };
            let indent = head.unwrap_or(indent);
            self.open.push(Open { tok, role, indent, inside: indent + STEP, first: None, head: None });
        } else if is_closing(tok) || role == Role::LastBar {
            // The text has as many closing brackets as opening ones.
            self.open.truncate((self.open.len() - 1).max(1));
        }
        self.last = Some((tok, role));
    }

    /// `is_alone`: whether it would begin an operand behind a block.
    fn role(&self, tok: Tok, is_alone: bool) -> Role {
        use Tok::*;
        let here = self.open[self.open.len() - 1];
        let last = self.last.map(|(tok, _)| tok);
        let has_operand = || match self.last {
            Some((_, Role::Filter)) => false,
            Some((PlusPlus | MinusMinus, role)) => role != Role::Prefix,
            // `!` as a type.
            Some((Not, role)) => role != Role::Prefix,
            Some((RBrace, _)) => !is_alone,
            Some((tok, _)) => is_closing(tok) || matches!(tok, Ident | Int | Float | Char | Str | True | False),
            None => false,
        };
        match tok {
            Or if here.tok == Or => Role::LastBar,
            // The last bar of a closure's parameters, and the first of the next closure's.
            OrOr if here.tok == Or => Role::Usual,
            LParen if last == Some(At) => Role::Filter,
            LParen if last == Some(Asm) => Role::Asm,
            LBrace if here.tok == LBracket => Role::Length,
            LBrace if last == Some(LParen) || last == Some(Comma) && here.tok == LParen => Role::Length,
            RParen | RBracket | RBrace => here.role,
            Not if last == Some(Arrow) => Role::Usual,
            At | AtAt | Dollar | Question | Tilde | Not => Role::Prefix,
            And | AndAnd | Star | Minus | Plus | Or | OrOr | PlusPlus | MinusMinus if !has_operand() => Role::Prefix,
            _ => Role::Usual,
        }
    }

    /// The blanks between the last token and the first of `next`.
    fn blank(&self, tok: Tok, role: Role, next: &[Token]) -> Blank {
        use Tok::*;
        let (Some((last, last_role)), Some(here)) = (self.last, self.open.last()) else { return Blank::No };
        let is_prefix = role == Role::Prefix;
        // `&mut[3]T`
        let is_space = next.iter().take(3).map(|t| t.tok).eq([LBracket, Int, RBracket]);
        match (last, tok) {
            _ if here.role == Role::Asm => Blank::Own,
            (DotDot, RBrace) | (LBrace | Comma, DotDot) if here.tok == LBrace => Blank::One,
            (DotDot, _) if here.tok == LBrace => Blank::No,
            (DotDot, _) | (_, DotDot) => Blank::Own,
            (LBrace, RBrace) => Blank::No,
            (LBrace, _) | (_, RBrace) if here.role == Role::Length => Blank::Own,
            (LBrace, _) | (_, RBrace) => Blank::One,
            (_, Comma | Semi | RParen | RBracket | Dot | ColonColon | Colon) => Blank::No,
            (LParen | Dot | ColonColon, _) => Blank::No,
            (LBracket, Int | Float | Minus) => Blank::Column(0),
            (LBracket, _) => Blank::No,
            (Comma, _) | (Str, Ident) => Blank::Column(1),
            (Semi | Colon, _) => Blank::One,
            (_, OrOr) | (OrOr, _) if here.tok == Or => Blank::No,
            // Two bars in a row would be one token, as the pairs below.
            (Or, Or) => Blank::One,
            _ if role == Role::LastBar => Blank::No,
            _ if last_role == Role::LastBar => Blank::One,
            (RParen, Or | OrOr) if last_role == Role::Filter => Blank::No,
            (Minus, Minus | MinusMinus) | (Plus, Plus | PlusPlus) | (And, And | AndAnd) | (At, At | AtAt) => Blank::One,
            (Not | OrOr, _) | (At, Arrow | LBrace | Ident) if last_role == Role::Prefix => Blank::Own,
            _ if last_role == Role::Prefix => Blank::No,
            (Mut, LBracket) if is_space => Blank::No,
            (RBracket, _) if self.ends_with_space() => Blank::No,
            (RBracket, LParen | LBracket) if here.first.is_some_and(|(tok, _)| tok == Impl) => Blank::Own,
            (Ident, LBracket) if self.ends_with_space_name() => Blank::Own,
            (RBrace, LParen | LBracket) | (RBracket, LBracket) => Blank::Own,
            (_, PlusPlus | MinusMinus) if !is_prefix => Blank::No,
            (Fn | Simd | Typeof | Asm, LParen | LBracket) | (Impl, LBracket) => Blank::No,
            (Ident | Int | Float | Char | Str | True | False | RParen | RBracket, LParen | LBracket) => Blank::No,
            _ => Blank::One,
        }
    }

    /// Whether an address space was written last: the `[3]` of `&mut[3]T`.
    fn ends_with_space(&self) -> bool {
        let before = self.out.trim_end_matches(']').trim_end_matches(|c: char| c.is_ascii_digit());
        before.ends_with("&[") || before.ends_with("mut[")
    }

    /// Whether the name of an address space was written last: `&mut global [i32]`.
    fn ends_with_space_name(&self) -> bool {
        ADDRESS_SPACES.iter().any(|name| self.out.ends_with(name))
    }
}

/// The blanks in front of a token.
enum Blank {
    No,
    One,
    /// One if the author has any.
    Own,
    /// As many as the author has, who may have aligned columns, and at least this number.
    Column(usize),
}

fn is_opening(tok: Tok) -> bool {
    matches!(tok, Tok::LParen | Tok::LBracket | Tok::LBrace)
}

fn is_closing(tok: Tok) -> bool {
    matches!(tok, Tok::RParen | Tok::RBracket | Tok::RBrace)
}

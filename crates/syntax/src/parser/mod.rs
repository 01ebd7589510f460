//! Recursive descent with recovery: an error skips the statement or item that contains it, and parsing goes on after
//! that.

mod exprs;
mod items;
mod patterns;
mod types;

pub(crate) use types::ADDRESS_SPACES;

use crate::ast::*;
use crate::diagnostics::*;
use crate::lexer::{Tok, Token, lex};
use nyala_base::{Diagnostic, FileId, Sink, Span};

/// Parses the file `text`. Always returns a module: errors go to `sink`, and may leave error nodes in the tree.
pub fn parse(file: FileId, text: &str, sink: &mut Sink) -> Module {
    let module = Module { file: Some(file), ..Module::default() };
    run(file, text, module, sink, |p| p.module()).0
}

/// Parses one expression from a text of its own, and adds it to the expressions of `module`.
pub fn parse_expr(file: FileId, text: &str, module: &mut Module, sink: &mut Sink) -> Option<ExprId> {
    let was_broken = module.broken;
    let (parsed, expr) = run(file, text, std::mem::take(module), sink, |p| {
        let expr = p.expr().ok()?;
        if !p.at(Tok::Eof) {
            p.unexpected("the end of the value");
            return None;
        }
        Some(expr)
    });
    *module = parsed;
    module.broken |= was_broken;
    expr
}

/// The bodies of functions that are not nested in other functions.
fn bodies(module: &Module) -> Vec<Span> {
    let mut out = Vec::new();
    let mut work: Vec<&Item> = module.items.iter().collect();
    while let Some(item) = work.pop() {
        let fns = match &item.kind {
            ItemKind::Fn(f) => std::slice::from_ref(&**f),
            ItemKind::Trait(Trait { fns, .. }) | ItemKind::Impl(Impl { fns, .. }) => fns,
            ItemKind::Mod(m) => {
                work.extend(m.items.iter().flatten());
                continue;
            }
            _ => continue,
        };
        out.extend(fns.iter().filter_map(|f| f.body).map(|body| module[body].span));
    }
    out
}

fn run<T>(
    file: FileId,
    text: &str,
    module: Module,
    sink: &mut Sink,
    parse: impl FnOnce(&mut Parser) -> T,
) -> (Module, T) {
    let mut errors = Vec::new();
    let tokens = lex(file, text, &mut errors);
    let matching = match_brackets(&tokens);
    // The rest of the file is lost, including closing brackets.
    let unclosed = errors.iter().any(|d| matches!(d.code, "unterminated-string" | "unterminated-comment"));
    let lexical: Vec<u32> = errors.iter().map(|d| d.primary.span.lo).collect();
    let mut parser = Parser {
        file,
        text,
        tokens,
        matching,
        pos: 0,
        nesting: 0,
        blocks: 0,
        marks: Marks::default(),
        no_struct: false,
        last_error: usize::MAX,
        unclosed,
        errors,
        lexical,
        module,
    };
    let result = parse(&mut parser);
    let Parser { mut errors, mut module, .. } = parser;
    errors.sort_by_key(|d| d.primary.span.lo);
    let bodies = bodies(&module);
    module.broken = false;
    for error in errors.iter() {
        let at = error.primary.span;
        // An unclosed bracket may belong to a construct that ends anywhere.
        let whole = matches!(error.code, "unclosed-delimiter" | "unterminated-string" | "unterminated-comment");
        match bodies.iter().find(|b| b.lo < at.lo && at.hi <= b.hi) {
            Some(body) if !whole => module.broken_bodies.push(*body),
            _ => module.broken = true,
        }
    }
    if errors.len() > MAX_ERRORS {
        errors.truncate(MAX_ERRORS);
        let end = Span::new(file, text.len(), text.len());
        errors.push(too_many_errors::error(end, MAX_ERRORS));
    }
    errors.into_iter().for_each(|d| sink.push(d));
    (module, result)
}

/// Limit on the errors that are reported for one file.
const MAX_ERRORS: usize = 100;

/// Proof that an error was reported; only [`Parser::report`] makes it.
struct Reported(());

type R<T> = Result<T, Reported>;

struct Parser<'a> {
    file: FileId,
    text: &'a str,
    tokens: Vec<Token>,
    /// For each opening bracket, the index of its closing one.
    matching: Vec<u32>,
    pos: usize,
    nesting: u32,
    /// The number of blocks around the current token.
    blocks: u32,
    /// What the current token is inside of.
    marks: Marks,
    /// Whether this is the head of an `if`, `for`, …, in which a `{` after a name begins the body.
    no_struct: bool,
    /// The token at which the last error was reported.
    last_error: usize,
    /// An unclosed bracket was reported, so that tokens missing at the end of the file are not reported again.
    unclosed: bool,
    errors: Vec<Diagnostic>,
    /// The places where the lexer has reported errors.
    lexical: Vec<u32>,
    module: Module,
}

const NO_MATCH: u32 = u32::MAX;

fn match_brackets(tokens: &[Token]) -> Vec<u32> {
    let mut matching = vec![NO_MATCH; tokens.len()];
    // Tokens by their numbers, which are less than the bytes of a file.
    let mut open: Vec<u32> = Vec::new();
    let is_brace = |at: &u32| tokens[*at as usize].tok == Tok::LBrace;
    // The number of open brackets of each kind: an unmatched closing bracket closes nothing.
    let mut counts = [0usize; 3];
    let kind = |tok| match tok {
        Tok::LParen | Tok::RParen => Some(0),
        Tok::LBracket | Tok::RBracket => Some(1),
        Tok::LBrace | Tok::RBrace => Some(2),
        _ => None,
    };
    for (i, token) in tokens.iter().enumerate() {
        let Some(k) = kind(token.tok) else { continue };
        if matches!(token.tok, Tok::LParen | Tok::LBracket | Tok::LBrace) {
            open.push(i as u32);
            counts[k] += 1;
            continue;
        }
        if counts[k] == 0 {
            continue;
        }
        // A `)` or `]` never closes a bracket outside of the innermost brace.
        if k != 2 && open.last().is_some_and(is_brace) {
            continue;
        }
        while let Some(at) = open.pop() {
            let o = kind(tokens[at as usize].tok).unwrap_or(0);
            counts[o] -= 1;
            if o == k {
                matching[at as usize] = i as u32;
                break;
            }
            if k != 2 && open.last().is_some_and(is_brace) {
                break;
            }
        }
    }
    matching
}

impl Parser<'_> {
    fn peek(&self) -> Tok {
        self.tokens[self.pos].tok
    }

    fn peek_at(&self, ahead: usize) -> Tok {
        self.tokens.get(self.pos + ahead).map_or(Tok::Eof, |t| t.tok)
    }

    fn bump(&mut self) -> Token {
        let token = self.tokens[self.pos];
        if token.tok != Tok::Eof {
            self.pos += 1;
        }
        token
    }

    fn at(&self, tok: Tok) -> bool {
        self.peek() == tok
    }

    fn eat(&mut self, tok: Tok) -> bool {
        let at = self.at(tok);
        if at {
            self.bump();
        }
        at
    }

    fn span_of(&self, token: Token) -> Span {
        Span::new(self.file, token.lo as usize, token.hi as usize)
    }

    fn span(&self) -> Span {
        self.span_of(self.tokens[self.pos])
    }

    fn text_of(&self, token: Token) -> &str {
        &self.text[token.lo as usize..token.hi as usize]
    }

    /// The span from the start of token `start` to the end of the last token read.
    fn span_from(&self, start: usize) -> Span {
        let last = self.pos.max(start + 1) - 1;
        Span::new(self.file, self.tokens[start].lo as usize, self.tokens[last].hi as usize)
    }

    /// The empty span just after the last token read.
    fn behind(&self) -> Span {
        let hi = self.tokens[self.pos.max(1) - 1].hi;
        Span::new(self.file, hi as usize, hi as usize)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        let at_bad_token = self.at(Tok::Bad) && self.lexical.binary_search(&self.tokens[self.pos].lo).is_ok();
        let at_eof = self.at(Tok::Eof) && self.unclosed;
        if self.last_error != self.pos && !at_bad_token && !at_eof {
            self.errors.push(diagnostic);
        }
        self.last_error = self.pos;
        Reported(())
    }

    fn describe(&self) -> String {
        let token = self.tokens[self.pos];
        match token.tok {
            Tok::Eof => "end of file".into(),
            Tok::Str => "a string".into(),
            _ => format!("`{}`", crate::literals::cut(self.text_of(token))),
        }
    }

    fn found(&self) -> unexpected_token::Found<'_> {
        let text = |i: usize| self.tokens.get(i).map_or("", |&t| self.text_of(t));
        unexpected_token::Found {
            shown: self.describe(),
            before: self.pos.checked_sub(1).map_or("", text),
            text: text(self.pos),
            next: text(self.pos + 1),
        }
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        self.report(unexpected_token::error(self.span(), &self.found(), expected))
    }

    fn expect(&mut self, tok: Tok, expected: &str) -> R<Token> {
        if self.at(tok) { Ok(self.bump()) } else { Err(self.unexpected(expected)) }
    }

    /// Reads the closing bracket that matches the opening one at token `open`.
    fn close(&mut self, tok: Tok, expected: &str, open: usize) -> R<()> {
        if self.eat(tok) {
            return Ok(());
        }
        if tok == Tok::Or && self.at(Tok::OrOr) {
            // `|x||y| e`: the first half closes the parameters.
            let token = &mut self.tokens[self.pos];
            (token.tok, token.lo) = (Tok::Or, token.lo + 1);
            return Ok(());
        }
        if self.at(Tok::Eof) {
            let opener = self.tokens[open];
            let diagnostic = unclosed_delimiter::error(self.span_of(opener), self.text_of(opener), expected);
            let reported = self.report(diagnostic);
            self.unclosed = true;
            return Err(reported);
        }
        let opener = self.span_of(self.tokens[open]);
        Err(self.report(unexpected_token::in_brackets(self.span(), &self.found(), expected, opener)))
    }

    /// Runs `f` one nesting level deeper.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        if self.nesting >= MAX_NESTING {
            let reported = self.report(nesting_too_deep::brackets(self.span(), MAX_NESTING));
            // Brackets opened after this place may stay unclosed because parsing stops here.
            self.unclosed = true;
            return Err(reported);
        }
        self.nesting += 1;
        let result = f(self);
        self.nesting -= 1;
        result
    }

    /// Runs `f` inside of brackets, where `no_struct` does not apply.
    fn bracketed<T>(&mut self, f: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        let old = std::mem::replace(&mut self.no_struct, false);
        let result = f(self);
        self.no_struct = old;
        result
    }

    /// Reads a comma-separated list up to `end`, which is read too. `open` is the opening token.
    fn list<T>(&mut self, open: usize, end: Tok, what: &str, mut f: impl FnMut(&mut Self) -> R<T>) -> R<Vec<T>> {
        self.bracketed(|p| {
            let mut out = Vec::new();
            while !(p.at(end) || end == Tok::Or && p.at(Tok::OrOr)) {
                out.push(f(p)?);
                if !p.eat(Tok::Comma) {
                    break;
                }
            }
            p.close(end, what, open)?;
            Ok(out)
        })
    }

    fn mk(&mut self, kind: ExprKind, span: Span) -> R<ExprId> {
        let mut depth = 0;
        kind.each_child(|e| depth = depth.max(self.module[e].depth));
        if depth >= MAX_DEPTH {
            return Err(self.report(nesting_too_deep::operations(span, MAX_DEPTH)));
        }
        self.module.exprs.push(Expr { kind, span, depth: depth + 1 });
        Ok(ExprId(self.module.exprs.len() as u32 - 1))
    }

    fn mk_type(&mut self, kind: TypeKind, span: Span) -> TypeId {
        self.module.types.push(Type { kind, span });
        TypeId(self.module.types.len() as u32 - 1)
    }

    fn name(&mut self, what: &str) -> R<Name> {
        let token = self.expect(Tok::Ident, what)?;
        Ok(Name { text: self.text_of(token).into(), span: self.span_of(token) })
    }

    /// Recovers after an error in a construct that began at token `start`: skips past its `;` or block, or to the
    /// bracket that closes the surrounding construct.
    fn sync(&mut self, start: usize) {
        let mut i = start;
        loop {
            let token = self.tokens[i];
            let reached = i >= self.pos;
            match token.tok {
                Tok::Eof | Tok::RBrace => break,
                Tok::Semi if reached => {
                    i += 1;
                    break;
                }
                _ if reached && i > start && token.newline && begins_item(token.tok) => break,
                Tok::LParen | Tok::LBracket | Tok::LBrace if self.matching[i] != NO_MATCH => {
                    i = self.matching[i] as usize + 1;
                    if token.tok == Tok::LBrace && i >= self.pos && self.tokens[i].newline {
                        break;
                    }
                }
                _ => i += 1,
            }
        }
        self.pos = i;
    }
}

/// Whether a token begins a statement or item wherever it is the first of its line.
fn begins_item(tok: Tok) -> bool {
    use Tok::*;
    matches!(tok, Fn | Extern | Static | Struct | Enum | Type | Trait | Impl | Mod | Pub | Priv | Let)
}

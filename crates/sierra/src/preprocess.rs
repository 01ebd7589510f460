//! Lines for the preprocessor: tokens of files to those that the grammar sees.
//!
//! Separate, since it knows of no grammar. A line is one token until it is looked at here. What a macro's text begins with has the place where the macro
//! is used, arguments have their own: so errors name what the user wrote there. The driver reads headers, whose names [`headers`] finds; all of them are
//! among the sources.
//!
//! Macros are expanded as in C, one token at a time and without recursion: each token has the macros that it comes from, which do not expand it again.
//! Arguments are put in as they are written, and expanded then.

use crate::diagnostics::{sierra_preprocessor, sierra_syntax};
use crate::lexer::{Kind, Token, integer, tokens, tokens_of_line, unquoted};
use crate::parser::parse_condition;
use crate::syntax::{Binary, Expr, ExprKind, Unary};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Sink, Sources, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Limits: on files within each other, on macros within each other, on the tokens that macros make, and on all of a file.
const MAX_FILES: usize = 100;
const MAX_MACROS: u32 = 200;
const MAX_EXPANDED: usize = 1 << 20;
const MAX_TOKENS: usize = 1 << 22;

/// Headers of C whose declarations every program has.
const BUILT_IN: [&str; 8] = ["math.h", "stdbool.h", "stddef.h", "stdint.h", "cmath", "cstdbool", "cstddef", "cstdint"];

/// The names of the headers that a file includes, in quotes.
pub fn headers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        name.trim_start().strip_prefix('"')?.split_once('"').map(|n| n.0)
    })
}

/// The path of a header that a file includes: beside the file.
pub fn header_path(includer: &str, name: &str) -> PathBuf {
    let folder = Path::new(includer).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(name).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(path.components().next_back(), Some(Component::Normal(_))) => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

struct Macro<'s> {
    /// `None`: it is no function.
    params: Option<Vec<&'s str>>,
    body: Vec<Token<'s>>,
}

impl<'s> Macro<'s> {
    /// One that stands for a number, or for nothing.
    fn number(text: &'static str) -> Macro<'s> {
        let kind = if text.contains('.') { Kind::Float } else { Kind::Int };
        let body = if text.is_empty() { Vec::new() } else { vec![Token { kind, text, span: Span::NONE }] };
        Macro { params: None, body }
    }
}

/// The macros that a token comes from, which do not expand it: a place in [`Preprocessor::hidden`], whose entries lead to others.
type Hidden = u32;
const NONE: Hidden = 0;

#[derive(Clone, Copy)]
struct Condition {
    begin: Span,
    /// Its tokens count.
    is_active: bool,
    /// Another part of it was active, or what is around it is not.
    is_decided: bool,
    has_else: bool,
}

/// A file that is being read.
struct Open<'s> {
    tokens: Vec<Token<'s>>,
    pos: usize,
    conditions: Vec<Condition>,
}

struct Preprocessor<'s, 'e> {
    sources: &'s Sources,
    sink: &'e mut Sink,
    macros: FxHashMap<&'s str, Rc<Macro<'s>>>,
    hidden: Vec<(Hidden, &'s str, u32)>,
    /// Files within each other, the innermost last.
    open: Vec<Open<'s>>,
    /// Files with `#pragma once`.
    once: FxHashSet<FileId>,
    /// Tokens before those of the file, the next one last.
    pending: Vec<(Token<'s>, Hidden)>,
    n_expanded: usize,
    found: Vec<Token<'s>>,
}

type Done<T> = Result<T, Box<Diagnostic>>;

/// The tokens of a file and its headers, the last of which is `End`.
pub fn preprocess<'s>(
    sources: &'s Sources,
    file: FileId,
    given: &[(&'static str, &'static str)],
    sink: &mut Sink,
) -> Vec<Token<'s>> {
    let tokens = tokens(file, sources.text(file));
    if given.is_empty() && !tokens.iter().any(|t| t.kind == Kind::Directive) {
        return tokens;
    }
    let mut p = Preprocessor {
        sources,
        sink,
        macros: given.iter().map(|&(name, text)| (name, Rc::new(Macro::number(text)))).collect(),
        hidden: vec![(NONE, "", 0)],
        open: vec![Open { tokens, pos: 0, conditions: Vec::new() }],
        once: FxHashSet::default(),
        pending: Vec::new(),
        n_expanded: 0,
        found: Vec::new(),
    };
    let end = p.run();
    let mut found = p.found;
    if let Err(fault) = end {
        sink.push(*fault);
        found.clear();
    }
    let n = sources.text(file).len();
    found.push(Token { kind: Kind::End, text: "", span: Span::new(file, n, n) });
    found
}

impl<'s> Preprocessor<'s, '_> {
    /// An error ends all of it; what is wrong with a line is reported.
    fn run(&mut self) -> Done<()> {
        loop {
            let Some(open) = self.open.last_mut() else { return Ok(()) };
            let token = match open.tokens.get(open.pos) {
                Some(&token) => token,
                None => return Ok(()),
            };
            open.pos += 1;
            let is_active = open.conditions.last().is_none_or(|c| c.is_active);
            match token.kind {
                Kind::End => {
                    if let Some(condition) = open.conditions.last() {
                        self.sink.push(sierra_preprocessor::open(condition.begin));
                    }
                    self.open.pop();
                }
                Kind::Directive => {
                    let done = self.line(token, is_active);
                    self.report(done);
                    if self.open.len() > MAX_FILES {
                        return Err(Box::new(sierra_preprocessor::too_deep(token.span, MAX_FILES)));
                    }
                }
                _ if !is_active => {}
                Kind::Name if self.macros.contains_key(token.text) => {
                    self.pending.push((token, NONE));
                    while let Some(token) = self.expanded(true)? {
                        self.found.push(token);
                    }
                }
                _ => self.found.push(token),
            }
            if self.found.len() > MAX_TOKENS {
                return Err(Box::new(sierra_preprocessor::too_much(token.span, MAX_TOKENS)));
            }
        }
    }

    fn report(&mut self, done: Done<()>) {
        if let Err(fault) = done {
            self.sink.push(*fault);
        }
    }

    // Macros.

    /// The next of the tokens that are pending, with macros expanded. Arguments may lie in the file, if `in_file`.
    fn expanded(&mut self, in_file: bool) -> Done<Option<Token<'s>>> {
        while let Some((token, hidden)) = self.pending.pop() {
            let known = if token.kind == Kind::Name { self.macros.get(token.text).cloned() } else { None };
            let Some(found) = known.filter(|_| !self.is_hidden(token.text, hidden)) else { return Ok(Some(token)) };
            let args = match &found.params {
                None => Vec::new(),
                Some(params) => {
                    if self.peek(in_file).is_none_or(|t| t.text != "(") {
                        return Ok(Some(token));
                    }
                    self.arguments(token, params.len(), in_file)?
                }
            };
            self.n_expanded += found.body.len() + 1;
            let depth = self.hidden[hidden as usize].2 + 1;
            if depth > MAX_MACROS || self.n_expanded > MAX_EXPANDED {
                self.pending.clear();
                return Err(Box::new(sierra_preprocessor::endless(token.span, token.text)));
            }
            let inner = self.hidden.len() as Hidden;
            self.hidden.push((hidden, token.text, depth));
            for part in found.body.iter().rev() {
                let param = found.params.iter().flatten().position(|p| part.kind == Kind::Name && *p == part.text);
                match param.and_then(|i| args.get(i)) {
                    Some(arg) => {
                        self.n_expanded += arg.len();
                        self.pending.extend(arg.iter().rev().copied());
                    }
                    None => self.pending.push((Token { span: token.span, ..*part }, inner)),
                }
            }
        }
        Ok(None)
    }

    fn is_hidden(&self, name: &str, mut hidden: Hidden) -> bool {
        while hidden != NONE {
            let (outer, found, _) = self.hidden[hidden as usize];
            if found == name {
                return true;
            }
            hidden = outer;
        }
        false
    }

    fn peek(&self, in_file: bool) -> Option<Token<'s>> {
        match self.pending.last() {
            Some((token, _)) => Some(*token),
            None => {
                let open = self.open.last().filter(|_| in_file)?;
                open.tokens.get(open.pos).copied().filter(|t| !matches!(t.kind, Kind::End | Kind::Directive))
            }
        }
    }

    fn next(&mut self, in_file: bool) -> Option<(Token<'s>, Hidden)> {
        if let Some(token) = self.pending.pop() {
            return Some(token);
        }
        let token = self.peek(in_file)?;
        self.open.last_mut()?.pos += 1;
        Some((token, NONE))
    }

    /// The arguments of a macro, of which `n` are expected.
    fn arguments(&mut self, name: Token<'s>, n: usize, in_file: bool) -> Done<Vec<Vec<(Token<'s>, Hidden)>>> {
        self.next(in_file);
        let mut args = vec![Vec::new()];
        let mut depth = 0u32;
        loop {
            let Some((token, hidden)) = self.next(in_file) else {
                return Err(Box::new(sierra_preprocessor::arguments_end(name.span, name.text)));
            };
            match token.text {
                ")" if depth == 0 && token.kind == Kind::Sign => break,
                "," if depth == 0 && token.kind == Kind::Sign => {
                    args.push(Vec::new());
                    continue;
                }
                "(" if token.kind == Kind::Sign => depth += 1,
                ")" if token.kind == Kind::Sign => depth -= 1,
                _ => {}
            }
            if let Some(last) = args.last_mut() {
                last.push((token, hidden));
            }
        }
        if n == 0 && args.iter().all(|a| a.is_empty()) {
            args.clear();
        }
        if args.len() != n {
            return Err(Box::new(sierra_preprocessor::arguments(name.span, name.text, args.len(), n)));
        }
        Ok(args)
    }

    // Lines.

    fn line(&mut self, mut line: Token<'s>, is_active: bool) -> Done<()> {
        let text = self.sources.text(line.span.file);
        let words = tokens_of_line(text, line);
        // Without a comment behind it.
        if let [.., last, _] = &words[..] {
            line.span.hi = last.span.hi;
        }
        let first = words[0];
        let rest = &words[1.min(words.len() - 1)..];
        match first.text {
            "if" | "ifdef" | "ifndef" => {
                let holds = if is_active { self.condition(first, rest) } else { Ok(false) };
                let is_taken = matches!(holds, Ok(true));
                let condition = Condition {
                    begin: line.span,
                    is_active: is_taken,
                    is_decided: is_taken || !is_active,
                    has_else: false,
                };
                self.conditions().push(condition);
                holds.map(|_| ())
            }
            "elif" | "else" => {
                let Some(&condition) = self.conditions().last() else {
                    return Err(Box::new(sierra_preprocessor::misplaced(line.span, first.text)));
                };
                let has_else = first.text == "else";
                if condition.has_else {
                    return Err(Box::new(sierra_preprocessor::misplaced(line.span, first.text)));
                }
                let holds = match (condition.is_decided, has_else) {
                    (true, _) => Ok(false),
                    (_, true) => self.end(rest, Kind::End).map(|()| true),
                    _ => self.condition(first, rest),
                };
                let is_active = matches!(holds, Ok(true));
                if let Some(last) = self.conditions().last_mut() {
                    *last =
                        Condition { is_active, is_decided: condition.is_decided || is_active, has_else, ..condition };
                }
                holds.map(|_| ())
            }
            "endif" => match self.conditions().pop() {
                Some(_) => Ok(()),
                None => Err(Box::new(sierra_preprocessor::misplaced(line.span, "endif"))),
            },
            _ if !is_active => Ok(()),
            "" => Ok(()),
            "define" => self.define(rest),
            "undef" => {
                let name = Self::name(rest[0])?;
                self.end(rest, Kind::Name)?;
                self.macros.remove(name);
                Ok(())
            }
            "include" => self.include(line, rest),
            "error" => {
                let said = text.get(first.span.hi as usize..line.span.hi as usize).unwrap_or_default();
                Err(Box::new(sierra_preprocessor::error(line.span, said.trim())))
            }
            "pragma" => {
                if rest[0].text == "once" {
                    self.once.insert(line.span.file);
                }
                Ok(())
            }
            word @ ("line" | "warning" | "import" | "include_next") => {
                let what = format!("lines `#{word}`");
                Err(Box::new(limitation::not_supported(line.span, &what, "leave it out")))
            }
            word => Err(Box::new(sierra_preprocessor::unknown(line.span, word))),
        }
    }

    fn conditions(&mut self) -> &mut Vec<Condition> {
        // A line is one of a file that is open.
        let last = self.open.len() - 1;
        &mut self.open[last].conditions
    }

    fn name(token: Token<'s>) -> Done<&'s str> {
        if token.kind == Kind::Name && token.text != "defined" {
            return Ok(token.text);
        }
        Err(Box::new(sierra_syntax::unexpected(token.span, token.text, "a name")))
    }

    /// Nothing may follow the first token of a line, if that is of the kind.
    fn end(&self, rest: &[Token<'s>], first: Kind) -> Done<()> {
        let rest = &rest[usize::from(first != Kind::End).min(rest.len() - 1)..];
        match rest[0].kind {
            Kind::End => Ok(()),
            _ => Err(Box::new(sierra_syntax::unexpected(rest[0].span, rest[0].text, "the end of the line"))),
        }
    }

    fn define(&mut self, rest: &[Token<'s>]) -> Done<()> {
        let name = Self::name(rest[0])?;
        let mut body = &rest[1..rest.len() - 1];
        let mut params = None;
        // A macro is a function if the parenthesis follows at once.
        if let Some(open) = body.first().filter(|t| t.text == "(" && t.span.lo == rest[0].span.hi) {
            let mut found = Vec::new();
            let mut at = 1;
            loop {
                match body.get(at) {
                    Some(token) if token.text == ")" && found.is_empty() => break,
                    Some(token) if token.text == "..." => {
                        let hint = "write a macro for each number of arguments";
                        return Err(Box::new(limitation::not_supported(token.span, "macros with `...`", hint)));
                    }
                    Some(token) if !found.contains(&token.text) => found.push(Self::name(*token)?),
                    token => {
                        let token = token.unwrap_or(open);
                        return Err(Box::new(sierra_syntax::unexpected(
                            token.span,
                            token.text,
                            "another name and `)`",
                        )));
                    }
                }
                at += 1;
                match body.get(at).map(|t| t.text) {
                    Some(",") => at += 1,
                    _ => break,
                }
            }
            match body.get(at) {
                Some(token) if token.text == ")" => body = &body[at + 1..],
                token => {
                    let token = token.unwrap_or(open);
                    return Err(Box::new(sierra_syntax::unexpected(token.span, token.text, "`,` or `)`")));
                }
            }
            params = Some(found);
        }
        if let Some(sign) = body.iter().find(|t| t.text == "#") {
            let hint = "write the name or the text itself";
            return Err(Box::new(limitation::not_supported(sign.span, "`#` and `##` in macros", hint)));
        }
        self.macros.insert(name, Rc::new(Macro { params, body: body.to_vec() }));
        Ok(())
    }

    fn include(&mut self, line: Token<'s>, rest: &[Token<'s>]) -> Done<()> {
        if rest[0].kind != Kind::Text {
            let name = line.text.split_once('<').and_then(|(_, name)| name.split_once('>')).map(|n| n.0);
            return match name {
                Some(name) if BUILT_IN.contains(&name) => Ok(()),
                Some(name) => {
                    let what = format!("headers `<{name}>`");
                    let hint = "declare the functions that you call: `void* malloc(size_t n);`";
                    Err(Box::new(limitation::not_supported(line.span, &what, hint)))
                }
                None => Err(Box::new(sierra_syntax::unexpected(rest[0].span, rest[0].text, "`\"name.h\"`"))),
            };
        }
        self.end(rest, Kind::Text)?;
        let name = rest[0].text.trim_matches('"');
        let path = header_path(self.sources.name(line.span.file), name);
        let path = path.to_string_lossy();
        if crate::ENDINGS.iter().any(|ending| path.ends_with(ending)) {
            return Err(Box::new(sierra_preprocessor::program(line.span)));
        }
        let Some(at) = self.sources.names().position(|n| *n == path) else {
            return Err(Box::new(sierra_preprocessor::missing(line.span, &path)));
        };
        let file = nyala_base::Id::from_idx(at);
        if !self.once.contains(&file) {
            let tokens = tokens(file, self.sources.text(file));
            self.open.push(Open { tokens, pos: 0, conditions: Vec::new() });
        }
        Ok(())
    }

    /// The value behind `#if`, `#elif`, `#ifdef` and `#ifndef`.
    fn condition(&mut self, word: Token<'s>, rest: &[Token<'s>]) -> Done<bool> {
        if word.text.ends_with("def") {
            let is_defined = self.macros.contains_key(Self::name(rest[0])?);
            self.end(rest, Kind::Name)?;
            return Ok(is_defined == (word.text == "ifdef"));
        }
        let mut words = Vec::new();
        let mut i = 0;
        while i < rest.len() - 1 {
            let token = rest[i];
            i += 1;
            if token.text != "defined" {
                words.push((token, NONE));
                continue;
            }
            let has_parens = rest[i].text == "(";
            i += usize::from(has_parens);
            let is_defined = self.macros.contains_key(Self::name(rest[i])?);
            i += 1;
            if has_parens {
                if rest[i].text != ")" {
                    return Err(Box::new(sierra_syntax::unexpected(rest[i].span, rest[i].text, "`)`")));
                }
                i += 1;
            }
            let text = if is_defined { "1" } else { "0" };
            words.push((Token { kind: Kind::Int, text, span: token.span }, NONE));
        }
        words.reverse();
        let outside = std::mem::replace(&mut self.pending, words);
        let mut found = Vec::new();
        let fault = loop {
            match self.expanded(false) {
                Ok(Some(token)) if token.kind == Kind::Name => {
                    let text = if token.text == "true" { "1" } else { "0" };
                    found.push(Token { kind: Kind::Int, text, span: token.span });
                }
                Ok(Some(token)) => found.push(token),
                Ok(None) => break None,
                Err(fault) => break Some(fault),
            }
        };
        self.pending = outside;
        if let Some(fault) = fault {
            return Err(fault);
        }
        found.push(rest[rest.len() - 1]);
        let condition = parse_condition(found)?;
        Ok(value(&condition)? != 0)
    }
}

/// The value of a condition. It is as deep as the grammar allows.
fn value(e: &Expr) -> Done<i64> {
    let no_constant = || Box::new(crate::diagnostics::sierra_constant::error(e.span));
    Ok(match &e.kind {
        ExprKind::Int(text) => {
            let (digits, base, _) = integer(text);
            u64::from_str_radix(digits, base).map_err(|_| no_constant())? as i64
        }
        ExprKind::Char(text) => match unquoted(text).as_deref() {
            Some([byte]) => i64::from(*byte as i8),
            _ => return Err(no_constant()),
        },
        ExprKind::Bool(b) => i64::from(*b),
        ExprKind::Unary(operator, operand) => {
            let operand = value(operand)?;
            match operator {
                Unary::Plus => operand,
                Unary::Negate => operand.wrapping_neg(),
                Unary::Not => i64::from(operand == 0),
                Unary::Complement => !operand,
                _ => return Err(no_constant()),
            }
        }
        ExprKind::Logic(is_or, parts) => {
            for part in parts {
                if (value(part)? != 0) == *is_or {
                    return Ok(i64::from(*is_or));
                }
            }
            i64::from(!*is_or)
        }
        ExprKind::Choose(parts) => value(if value(&parts[0])? != 0 { &parts[1] } else { &parts[2] })?,
        ExprKind::Chain(first, rest) => {
            let mut left = value(first)?;
            for (operator, right) in rest {
                let right = value(right)?;
                left = match operator {
                    Binary::Or => left | right,
                    Binary::Xor => left ^ right,
                    Binary::And => left & right,
                    Binary::Eq => i64::from(left == right),
                    Binary::Ne => i64::from(left != right),
                    Binary::Lt => i64::from(left < right),
                    Binary::Le => i64::from(left <= right),
                    Binary::Gt => i64::from(left > right),
                    Binary::Ge => i64::from(left >= right),
                    Binary::Shl => left.wrapping_shl(right as u32),
                    Binary::Shr => left.wrapping_shr(right as u32),
                    Binary::Add => left.wrapping_add(right),
                    Binary::Sub => left.wrapping_sub(right),
                    Binary::Mul => left.wrapping_mul(right),
                    Binary::Div => left.checked_div(right).ok_or_else(no_constant)?,
                    Binary::Rem => left.checked_rem(right).ok_or_else(no_constant)?,
                };
            }
            left
        }
        _ => return Err(no_constant()),
    })
}

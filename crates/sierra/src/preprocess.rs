//! Lines for the preprocessor: tokens of files to those that the grammar sees.
//!
//! Separate, since it knows of no grammar. A line is one token until it is looked at here. What a macro's text begins with has the place where the macro
//! is used, arguments have their own: so errors name what the user wrote there. The driver reads headers, whose names [`headers`] finds; all of them are
//! among the sources.
//!
//! Macros are expanded as in C, one token at a time and without recursion: each token has the macros that it comes from, which do not expand it again.
//! Arguments are put in as they are written, and expanded then; before that, if some macro has `#` or `##`.

use crate::diagnostics::sierra_preprocessor;
use crate::texts::Texts;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Sink, Sources, Span};
use nyala_c_syntax::diagnostics::c_syntax;
use nyala_c_syntax::lexer::{Kind, Token, integer, tokens, tokens_of_line, unquoted};
use nyala_c_syntax::parser::parse_condition;
use nyala_c_syntax::syntax::{Binary, Expr, ExprKind, Unary};
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
    /// The last parameter stands for all arguments that are left.
    is_variadic: bool,
    body: Vec<Part<'s>>,
}

/// Of what a macro stands for.
#[derive(Clone, Copy)]
enum Part<'s> {
    Token(Token<'s>),
    /// A parameter, by its number.
    Param(usize),
    /// `#x`
    Text(usize),
    /// `##`
    Paste,
    /// `__VA_OPT__(…)`: so many parts follow that are there only if the macro has more arguments than names.
    Optional(usize),
}

impl<'s> Macro<'s> {
    /// One that the language has: it stands for a number, or for nothing.
    fn number(text: &'static str) -> Macro<'s> {
        let made = tokens(nyala_base::Id::from_idx(0), text).into_iter().filter(|t| t.kind != Kind::End);
        let body = made.map(|t| Part::Token(Token { span: Span::NONE, ..t })).collect();
        Macro { params: None, is_variadic: false, body }
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

/// A token, and what does not expand it.
type Marked<'s> = (Token<'s>, Hidden);

/// Macros that every program has, whose texts depend on where they stand.
const OF_PLACES: [&str; 2] = ["__FILE__", "__LINE__"];

struct Preprocessor<'s, 'e> {
    sources: &'s Sources,
    texts: &'s Texts,
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
    /// Some macro has `#` or `##`: then arguments of others are expanded before they are put in, as they could become parts of words.
    has_pastes: bool,
    /// Arguments within each other that are being expanded.
    depth: u32,
    found: Vec<Token<'s>>,
}

type Done<T> = Result<T, Box<Diagnostic>>;

/// The tokens of a file and its headers, the last of which is `End`.
pub fn preprocess<'s>(
    sources: &'s Sources,
    texts: &'s Texts,
    file: FileId,
    given: &[(&'static str, &'static str)],
    sink: &mut Sink,
) -> Vec<Token<'s>> {
    let tokens = tokens(file, sources.text(file));
    let is_macro = |t: &Token| t.kind == Kind::Directive || t.kind == Kind::Name && OF_PLACES.contains(&t.text);
    if given.is_empty() && !tokens.iter().any(is_macro) {
        return tokens;
    }
    let mut p = Preprocessor {
        sources,
        texts,
        sink,
        macros: given.iter().map(|&(name, text)| (name, Rc::new(Macro::number(text)))).collect(),
        hidden: vec![(NONE, "", 0)],
        open: vec![Open { tokens, pos: 0, conditions: Vec::new() }],
        once: FxHashSet::default(),
        pending: Vec::new(),
        n_expanded: 0,
        has_pastes: false,
        depth: 0,
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
                Kind::Name if self.macros.contains_key(token.text) || OF_PLACES.contains(&token.text) => {
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
        Ok(self.expanded_marked(in_file)?.map(|t| t.0))
    }

    fn expanded_marked(&mut self, in_file: bool) -> Done<Option<Marked<'s>>> {
        while let Some((token, hidden)) = self.pending.pop() {
            if token.kind == Kind::Name && OF_PLACES.contains(&token.text) {
                return Ok(Some((self.of_place(token), hidden)));
            }
            let known = if token.kind == Kind::Name { self.macros.get(token.text).cloned() } else { None };
            let Some(found) = known.filter(|_| !self.is_hidden(token.text, hidden)) else {
                return Ok(Some((token, hidden)));
            };
            let args = match &found.params {
                None => Vec::new(),
                Some(params) => {
                    if self.peek(in_file).is_none_or(|t| t.text != "(") {
                        return Ok(Some((token, hidden)));
                    }
                    self.arguments(token, params.len(), found.is_variadic, in_file)?
                }
            };
            let depth = self.hidden[hidden as usize].2 + 1;
            self.pay(found.body.len() + 1, depth, token)?;
            let inner = self.hidden.len() as Hidden;
            self.hidden.push((hidden, token.text, depth));
            let body = self.substituted(&found, args, token, inner)?;
            self.pending.extend(body.into_iter().rev());
        }
        Ok(None)
    }

    /// Counts tokens that a macro makes.
    fn pay(&mut self, n: usize, depth: u32, token: Token<'s>) -> Done<()> {
        self.n_expanded += n;
        if depth > MAX_MACROS || self.n_expanded > MAX_EXPANDED {
            self.pending.clear();
            return Err(Box::new(sierra_preprocessor::endless(token.span, token.text)));
        }
        Ok(())
    }

    /// What a macro stands for, with these arguments.
    fn substituted(
        &mut self,
        found: &Macro<'s>,
        args: Vec<Vec<Marked<'s>>>,
        token: Token<'s>,
        inner: Hidden,
    ) -> Done<Vec<Marked<'s>>> {
        let mut made: Vec<Marked<'s>> = Vec::new();
        // Where the tokens begin that the last part became.
        let mut last = 0;
        let is_paste = |at: usize| matches!(found.body.get(at), Some(Part::Paste));
        let mut i = 0;
        while let Some(&part) = found.body.get(i) {
            let pastes = matches!(part, Part::Paste);
            i += usize::from(pastes);
            let Some(&part) = found.body.get(i) else { break };
            i += 1;
            if let Part::Optional(n) = part {
                let rest = found.params.as_ref().map_or(0, Vec::len).saturating_sub(1);
                i += if args.get(rest).is_none_or(|a| a.is_empty()) { n } else { 0 };
                continue;
            }
            let of_part = match part {
                Part::Token(part) => vec![(Token { span: token.span, ..part }, inner)],
                Part::Text(n) => {
                    let text = self.texts.add(quoted(args.get(n).map_or(&[], |a| a)));
                    self.pay(text.len() / 16, 0, token)?;
                    vec![(Token { kind: Kind::Text, text, span: token.span }, inner)]
                }
                Part::Param(n) => {
                    let arg = args.get(n).cloned().unwrap_or_default();
                    self.pay(arg.len(), 0, token)?;
                    if self.has_pastes && !pastes && !is_paste(i) { self.argument(arg, token)? } else { arg }
                }
                Part::Optional(_) => Vec::new(),
                Part::Paste => return Err(Box::new(sierra_preprocessor::pasted(token.span))),
            };
            if !pastes {
                last = made.len();
                made.extend(of_part);
                continue;
            }
            let is_rest = matches!(part, Part::Param(n) if found.is_variadic && n + 1 == args.len());
            if is_rest && made.len() > last && made.last().is_some_and(|t| t.0.text == ",") {
                // `, ## __VA_ARGS__`: without arguments there is no comma.
                if of_part.is_empty() {
                    made.pop();
                }
                made.extend(of_part);
                continue;
            }
            let mut right = of_part.into_iter();
            match (made.len() > last, right.next()) {
                (true, Some((second, _))) => {
                    if let Some((first, _)) = made.pop() {
                        made.push((self.pasted(first, second, token)?, inner));
                    }
                }
                (_, second) => made.extend(second),
            }
            made.extend(right);
        }
        Ok(made)
    }

    /// Two tokens as one.
    fn pasted(&mut self, first: Token<'s>, second: Token<'s>, at: Token<'s>) -> Done<Token<'s>> {
        let text = self.texts.add(format!("{}{}", first.text, second.text));
        self.pay(text.len() / 16, 0, at)?;
        match tokens(at.span.file, text)[..] {
            [made, end] if end.kind == Kind::End && made.kind != Kind::Directive => Ok(Token { span: at.span, ..made }),
            _ => Err(Box::new(sierra_preprocessor::pasted(at.span))),
        }
    }

    /// An argument with its macros expanded.
    fn argument(&mut self, mut arg: Vec<Marked<'s>>, token: Token<'s>) -> Done<Vec<Marked<'s>>> {
        self.depth += 1;
        self.pay(0, self.depth, token)?;
        arg.reverse();
        let outside = std::mem::replace(&mut self.pending, arg);
        let mut found = Vec::new();
        let fault = loop {
            match self.expanded_marked(false) {
                Ok(Some(token)) => found.push(token),
                Ok(None) => break None,
                Err(fault) => break Some(fault),
            }
        };
        self.pending = outside;
        self.depth -= 1;
        match fault {
            Some(fault) => {
                self.pending.clear();
                Err(fault)
            }
            None => Ok(found),
        }
    }

    fn of_place(&self, token: Token<'s>) -> Token<'s> {
        if token.text == "__LINE__" {
            let text = self.texts.add(self.sources.line_col(token.span).0.to_string());
            return Token { kind: Kind::Int, text, ..token };
        }
        let name = self.sources.name(token.span.file).replace('\\', "/").replace('"', "'");
        Token { kind: Kind::Text, text: self.texts.add(format!("\"{name}\"")), ..token }
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

    /// The arguments of a macro, of which `n` are expected; what is left over belongs to the last one, if it `is_variadic`.
    fn arguments(&mut self, name: Token<'s>, n: usize, is_variadic: bool, in_file: bool) -> Done<Vec<Vec<Marked<'s>>>> {
        self.next(in_file);
        let mut args = vec![Vec::new()];
        let mut depth = 0u32;
        loop {
            let Some((token, hidden)) = self.next(in_file) else {
                return Err(Box::new(sierra_preprocessor::arguments_end(name.span, name.text)));
            };
            match token.text {
                ")" if depth == 0 && token.kind == Kind::Sign => break,
                "," if depth == 0 && token.kind == Kind::Sign && !(is_variadic && args.len() >= n) => {
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
        if is_variadic && args.len() + 1 == n {
            args.push(Vec::new());
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
        Err(Box::new(c_syntax::unexpected(token.span, token.text, "a name")))
    }

    /// Nothing may follow the first token of a line, if that is of the kind.
    fn end(&self, rest: &[Token<'s>], first: Kind) -> Done<()> {
        let rest = &rest[usize::from(first != Kind::End).min(rest.len() - 1)..];
        match rest[0].kind {
            Kind::End => Ok(()),
            _ => Err(Box::new(c_syntax::unexpected(rest[0].span, rest[0].text, "the end of the line"))),
        }
    }

    fn define(&mut self, rest: &[Token<'s>]) -> Done<()> {
        let name = Self::name(rest[0])?;
        let mut body = &rest[1..rest.len() - 1];
        let mut params = None;
        let mut is_variadic = false;
        // A macro is a function if the parenthesis follows at once.
        if let Some(open) = body.first().filter(|t| t.text == "(" && t.span.lo == rest[0].span.hi) {
            let mut found = Vec::new();
            let mut at = 1;
            loop {
                match body.get(at) {
                    Some(token) if token.text == ")" && found.is_empty() => break,
                    Some(token) if token.text == "..." => {
                        is_variadic = true;
                        found.push("__VA_ARGS__");
                        at += 1;
                        break;
                    }
                    Some(token) if !found.contains(&token.text) => found.push(Self::name(*token)?),
                    token => {
                        let token = token.unwrap_or(open);
                        return Err(Box::new(c_syntax::unexpected(token.span, token.text, "another name and `)`")));
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
                    return Err(Box::new(c_syntax::unexpected(token.span, token.text, "`,` or `)`")));
                }
            }
            params = Some(found);
        }
        let param = |token: &Token| {
            let is_it = |p: &&str| token.kind == Kind::Name && *p == token.text;
            params.iter().flatten().position(is_it)
        };
        let mut parts = Vec::new();
        // Where each `__VA_OPT__(` that is open begins, and how many parentheses are open in it.
        let mut optional: Vec<(usize, u32)> = Vec::new();
        let mut i = 0;
        while let Some(&token) = body.get(i) {
            i += 1;
            if is_variadic && token.text == "__VA_OPT__" && body.get(i).is_some_and(|t| t.text == "(") {
                optional.push((parts.len(), 0));
                parts.push(Part::Optional(0));
                i += 1;
                continue;
            }
            if let Some((at, depth)) = optional.last_mut() {
                match token.text {
                    "(" => *depth += 1,
                    ")" if *depth == 0 => {
                        let (at, n) = (*at, parts.len() - *at - 1);
                        parts[at] = Part::Optional(n);
                        optional.pop();
                        continue;
                    }
                    ")" => *depth -= 1,
                    _ => {}
                }
            }
            if token.text != "#" {
                parts.push(param(&token).map_or(Part::Token(token), Part::Param));
                continue;
            }
            self.has_pastes = true;
            let next = body.get(i).copied().unwrap_or(token);
            match param(&next) {
                _ if next.text == "#" && next.span.lo == token.span.hi => {
                    let is_first = parts.is_empty() || matches!(parts.last(), Some(Part::Paste));
                    if is_first || i + 1 == body.len() {
                        return Err(Box::new(sierra_preprocessor::pasted(token.span)));
                    }
                    parts.push(Part::Paste);
                }
                Some(n) => parts.push(Part::Text(n)),
                // Of a macro without parameters it is a sign like others.
                None if params.is_none() => {
                    parts.push(Part::Token(token));
                    continue;
                }
                None => {
                    let expected = "a parameter of the macro";
                    return Err(Box::new(c_syntax::unexpected(next.span, next.text, expected)));
                }
            }
            i += 1;
        }
        if !optional.is_empty() {
            let last = rest[rest.len() - 1];
            return Err(Box::new(c_syntax::unexpected(last.span, last.text, "`)` of `__VA_OPT__`")));
        }
        self.macros.insert(name, Rc::new(Macro { params, is_variadic, body: parts }));
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
                None => Err(Box::new(c_syntax::unexpected(rest[0].span, rest[0].text, "`\"name.h\"`"))),
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
                    return Err(Box::new(c_syntax::unexpected(rest[i].span, rest[i].text, "`)`")));
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

/// An argument as a text: a blank where blanks are in it, `\` before quotes and `\` of texts.
fn quoted(arg: &[Marked]) -> String {
    let mut text = String::from("\"");
    let mut end: Option<Span> = None;
    for (token, _) in arg {
        if end.is_some_and(|end| end.file != token.span.file || end.hi != token.span.lo) {
            text.push(' ');
        }
        end = Some(token.span);
        let is_text = matches!(token.kind, Kind::Text | Kind::Char);
        for c in token.text.chars() {
            if is_text && matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
    }
    text.push('"');
    text
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

//! Tokens to terms. Separate, since only the grammar is looked at. The first fault ends a file.
//!
//! ```text
//! file     = {constant | function}
//! constant = "const" type NAME "=" ["-"] literal ";"
//! function = ["simd" "(" INT ")"] type NAME "(" [type NAME {"," type NAME}] ")" "{" list "}"
//! type     = ("bool" | "int" | "float") ["varying" "(" INT ")"]
//! list     = {head} ["skip" [";"] | "return" expression ";"]
//! head     = expression ";" | type NAME ["=" expression] ";" | NAME "=" expression ";"
//!          | "if" "(" expression ")" body ["else" body] | "while" "(" expression ")" body
//!          | "for" "(" type NAME "=" expression ";" expression ";" NAME "=" expression ")" body
//! body     = "{" list "}" | a list of one statement
//! ```
//!
//! Expressions are C's: names, literals, calls, `{a, b}`, and the operators of [`Operator`].

use super::syntax::*;
use crate::diagnostics::{sierra_lanes, sierra_name, sierra_type};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Sink, Span};
use nyala_c_syntax::diagnostics::c_syntax;
use nyala_c_syntax::lexer::{Kind, Token, tokens};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Limit on what is within each other, in the text and in its terms: operators in a row are.
const MAX_DEPTH: u32 = 100;
const MAX_LENGTH: i64 = 64;

const KEYWORDS: [&str; 16] = [
    "bool", "break", "const", "continue", "do", "else", "false", "float", "for", "if", "int", "return", "simd", "skip",
    "true", "while",
];

/// Operators of two operands, from those that bind least.
const LEVELS: [&[Operator]; 7] = [
    &[Operator::Or],
    &[Operator::Xor],
    &[Operator::And],
    &[Operator::Eq, Operator::Ne],
    &[Operator::Lt, Operator::Le, Operator::Gt, Operator::Ge],
    &[Operator::Add, Operator::Sub],
    &[Operator::Mul, Operator::Div, Operator::Rem],
];

type Parsed<T> = Result<T, Box<Diagnostic>>;

/// An expression, and how deep its term is.
type Deep = (Expr, u32);

struct Parser<'s> {
    tokens: Vec<Token<'s>>,
    pos: usize,
    depth: u32,
    constants: FxHashMap<&'s str, Expr>,
}

/// The functions of a file. What is wrong with its grammar is reported.
pub fn parse(file: FileId, text: &str, sink: &mut Sink) -> Program {
    let mut parser = Parser { tokens: tokens(file, text), pos: 0, depth: 0, constants: FxHashMap::default() };
    let mut program = Program::default();
    while parser.token().kind != Kind::End {
        let done = if parser.eat("const") { parser.constant().map(|()| None) } else { parser.function().map(Some) };
        match done {
            Ok(function) => program.functions.extend(function),
            Err(diagnostic) => {
                sink.push(*diagnostic);
                break;
            }
        }
    }
    program
}

impl<'s> Parser<'s> {
    fn token(&self) -> Token<'s> {
        self.ahead(0)
    }

    fn ahead(&self, n: usize) -> Token<'s> {
        // The last token is the end.
        self.tokens[(self.pos + n).min(self.tokens.len() - 1)]
    }

    fn is(&self, text: &str) -> bool {
        let token = self.token();
        token.text == text && matches!(token.kind, Kind::Sign | Kind::Name)
    }

    fn eat(&mut self, text: &str) -> bool {
        let is = self.is(text);
        self.pos += usize::from(is);
        is
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { self.unexpected(&format!("`{text}`")) }
    }

    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        let token = self.token();
        Err(Box::new(c_syntax::unexpected(token.span, token.text, expected)))
    }

    /// From the beginning of a token to the end of the last one.
    fn since(&self, start: Span) -> Span {
        let last = self.tokens[self.pos.saturating_sub(1).min(self.tokens.len() - 1)].span;
        Span { hi: last.hi.max(start.hi), ..start }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Box::new(c_syntax::too_deep(self.token().span, MAX_DEPTH)));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn name(&mut self) -> Parsed<Name> {
        let token = self.token();
        if token.kind != Kind::Name || KEYWORDS.contains(&token.text) {
            return self.unexpected("a name");
        }
        self.pos += 1;
        Ok(Name { text: token.text.into(), span: token.span })
    }

    // Items.

    fn constant(&mut self) -> Parsed<()> {
        let ty = self.ty()?;
        let (text, name) = (self.token().text, self.name()?);
        self.expect("=")?;
        let (value, _) = self.unary()?;
        match value.as_value() {
            Some(found) if found.ty() == ty.ty() => {}
            Some(found) => {
                let expected = format!("`{}`", ty.ty().show());
                return Err(Box::new(sierra_type::mismatch(value.span, &found.ty().show(), &expected)));
            }
            None => return Err(Box::new(c_syntax::unexpected(value.span, "an expression", "a literal"))),
        }
        self.expect(";")?;
        if let Some(before) = self.constants.insert(text, value) {
            return Err(Box::new(sierra_name::twice(name.span, text, before.span)));
        }
        Ok(())
    }

    fn length(&mut self) -> Parsed<u32> {
        self.expect("(")?;
        let token = self.token();
        if token.kind != Kind::Int {
            return self.unexpected("a number of lanes");
        }
        self.pos += 1;
        let n = token.text.parse().unwrap_or(i64::MAX);
        if !(1..=MAX_LENGTH).contains(&n) {
            return Err(Box::new(sierra_lanes::number(token.span, n, MAX_LENGTH)));
        }
        self.expect(")")?;
        Ok(n as u32)
    }

    fn element(&self) -> Option<Element> {
        [Element::Bool, Element::Int, Element::Float].into_iter().find(|e| self.is(e.word()))
    }

    fn ty(&mut self) -> Parsed<Declared> {
        let Some(element) = self.element() else { return self.unexpected("`bool`, `int` or `float`") };
        self.pos += 1;
        let length = if self.eat("varying") { Some(self.length()?) } else { None };
        Ok(Declared { element, length })
    }

    fn function(&mut self) -> Parsed<Function> {
        let simd = if self.eat("simd") { Some(self.length()?) } else { None };
        let result = self.ty()?;
        let name = self.name()?;
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.is(")") {
            if !params.is_empty() {
                self.expect(",")?;
            }
            params.push((self.ty()?, self.name()?));
        }
        self.expect(")")?;
        let body = self.braces()?;
        Ok(Function { simd, result, name, params, body, is_exported: true })
    }

    // Statements.

    fn braces(&mut self) -> Parsed<Statement> {
        self.expect("{")?;
        let mut list = Statement::SKIP;
        while !self.is("}") && !self.end(&mut list)? {
            self.head(&mut list.heads)?;
        }
        self.expect("}")?;
        Ok(list)
    }

    /// Whether the list ends here, with `skip` or `return`.
    fn end(&mut self, list: &mut Statement) -> Parsed<bool> {
        if self.eat("return") {
            list.end = End::Return(self.expression()?);
            self.expect(";")?;
            return Ok(true);
        }
        let is_end = self.eat("skip");
        if is_end {
            self.eat(";");
        }
        Ok(is_end)
    }

    fn body(&mut self) -> Parsed<Statement> {
        self.nested(|p| {
            if p.is("{") {
                return p.braces();
            }
            let mut list = Statement::SKIP;
            if !p.end(&mut list)? {
                p.head(&mut list.heads)?;
            }
            Ok(list)
        })
    }

    /// A declaration with a value becomes two heads, and so does `for`.
    fn head(&mut self, heads: &mut Vec<Head>) -> Parsed<()> {
        let start = self.token().span;
        if self.element().is_some() {
            self.declaration(heads)?;
            return self.expect(";");
        }
        let kind = if self.eat("if") {
            let condition = self.condition()?;
            let then = self.body()?;
            let otherwise = if self.eat("else") { self.body()? } else { Statement::SKIP };
            HeadKind::If(condition, then, otherwise)
        } else if self.eat("while") {
            HeadKind::While(self.condition()?, self.body()?)
        } else if self.eat("for") {
            self.expect("(")?;
            self.declaration(heads)?;
            self.expect(";")?;
            let condition = self.expression()?;
            self.expect(";")?;
            let step_start = self.token().span;
            let step = self.assignment()?;
            let step = Head { kind: step, span: self.since(step_start) };
            self.expect(")")?;
            let mut body = self.body()?;
            // Behind a `return` nothing can stand, and the type checker rejects it.
            body.heads.push(step);
            HeadKind::While(condition, body)
        } else if matches!(self.token().text, "break" | "continue" | "do") {
            let hint = "let the condition of a `while` decide";
            return Err(Box::new(limitation::not_supported(start, "`break`, `continue` and `do` in VecImp", hint)));
        } else if self.token().kind == Kind::Name && self.ahead(1).text == "=" {
            let kind = self.assignment()?;
            self.expect(";")?;
            kind
        } else {
            let value = self.expression()?;
            self.expect(";")?;
            HeadKind::Expr(value)
        };
        heads.push(Head { kind, span: self.since(start) });
        Ok(())
    }

    fn declaration(&mut self, heads: &mut Vec<Head>) -> Parsed<()> {
        let start = self.token().span;
        let (ty, name) = (self.ty()?, self.name()?);
        heads.push(Head { kind: HeadKind::Declare(ty, name.clone()), span: self.since(start) });
        if self.eat("=") {
            let kind = HeadKind::Assign(name, self.expression()?);
            heads.push(Head { kind, span: self.since(start) });
        }
        Ok(())
    }

    fn assignment(&mut self) -> Parsed<HeadKind> {
        let name = self.name()?;
        self.expect("=")?;
        Ok(HeadKind::Assign(name, self.expression()?))
    }

    fn condition(&mut self) -> Parsed<Expr> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    // Expressions.

    fn expression(&mut self) -> Parsed<Expr> {
        Ok(self.level(0)?.0)
    }

    fn made(&self, kind: ExprKind, start: Span, depth: u32) -> Parsed<Deep> {
        let span = self.since(start);
        if depth > MAX_DEPTH {
            return Err(Box::new(c_syntax::too_deep(span, MAX_DEPTH)));
        }
        Ok((Expr { kind, span }, depth))
    }

    fn level(&mut self, level: usize) -> Parsed<Deep> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let start = self.token().span;
        let mut left = self.level(level + 1)?;
        while let Some(&operator) = operators.iter().find(|o| self.is(o.word())) {
            self.pos += 1;
            let right = self.level(level + 1)?;
            let depth = left.1.max(right.1) + 1;
            let call = ExprKind::Call(Callee::Operator(operator), vec![left.0, right.0]);
            left = self.made(call, start, depth)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Deep> {
        let start = self.token().span;
        let operator = match self.token().text {
            "-" => Operator::Negate,
            "!" => Operator::Not,
            _ => return self.primary(),
        };
        if operator == Operator::Negate && matches!(self.ahead(1).kind, Kind::Int | Kind::Float) {
            self.pos += 1;
            return self.number(start, true);
        }
        self.nested(|p| {
            p.pos += 1;
            let (operand, depth) = p.unary()?;
            p.made(ExprKind::Call(Callee::Operator(operator), vec![operand]), start, depth + 1)
        })
    }

    fn number(&mut self, start: Span, is_negative: bool) -> Parsed<Deep> {
        let token = self.token();
        self.pos += 1;
        let wrong = |what| Err(Box::new(c_syntax::literal(token.span, token.text, what)));
        let (value, text): (Value, Rc<str>) = if token.kind == Kind::Int {
            let Ok(n) = token.text.parse::<i64>() else { return wrong("`int`") };
            let Ok(n) = i32::try_from(if is_negative { -n } else { n }) else { return wrong("`int`") };
            (Value::Int(vec![n]), token.text.into())
        } else {
            let digits = token.text.strip_suffix(['f', 'F']).unwrap_or(token.text);
            let Ok(x) = digits.parse::<f32>() else { return wrong("`float`") };
            (Value::Float(vec![if is_negative { -x } else { x }]), format!("{digits}f").into())
        };
        self.made(ExprKind::Value(value, text), start, 1)
    }

    fn primary(&mut self) -> Parsed<Deep> {
        let token = self.token();
        let start = token.span;
        match token.kind {
            Kind::Int | Kind::Float => self.number(start, false),
            Kind::Name if matches!(token.text, "true" | "false") => {
                self.pos += 1;
                let value = Value::Bool(vec![token.text == "true"]);
                self.made(ExprKind::Value(value, token.text.into()), start, 1)
            }
            Kind::Name if !KEYWORDS.contains(&token.text) => {
                self.pos += 1;
                if self.eat("(") {
                    let (args, depth) = self.list(")")?;
                    let call = ExprKind::Call(Callee::Function(token.text.into()), args);
                    return self.made(call, start, depth + 1);
                }
                let kind = match self.constants.get(token.text) {
                    Some(value) => value.kind.clone(),
                    None => ExprKind::Variable(token.text.into()),
                };
                self.made(kind, start, 1)
            }
            Kind::Sign if token.text == "(" => {
                self.pos += 1;
                let (mut inner, depth) = self.nested(|p| p.level(0))?;
                self.expect(")")?;
                inner.span = self.since(start);
                Ok((inner, depth))
            }
            Kind::Sign if token.text == "{" => {
                self.pos += 1;
                let (elements, depth) = self.list("}")?;
                if elements.is_empty() || elements.len() as i64 > MAX_LENGTH {
                    let n = elements.len() as i64;
                    return Err(Box::new(sierra_lanes::number(self.since(start), n, MAX_LENGTH)));
                }
                self.made(ExprKind::Vector(elements), start, depth + 1)
            }
            _ => self.unexpected("an expression"),
        }
    }

    /// Expressions up to a bracket, and how deep the deepest one is.
    fn list(&mut self, close: &str) -> Parsed<(Vec<Expr>, u32)> {
        self.nested(|p| {
            let (mut found, mut depth) = (Vec::new(), 0);
            while !p.is(close) {
                if !found.is_empty() {
                    p.expect(",")?;
                }
                let (e, deep) = p.level(0)?;
                found.push(e);
                depth = depth.max(deep);
            }
            p.expect(close)?;
            Ok((found, depth))
        })
    }
}

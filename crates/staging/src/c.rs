//! The part of C that languages here share: syntax trees, and their grammar.
//!
//! Separate from Staged-C, which gives the trees a meaning, so that another language with C's syntax can give them another. What is
//! only Staged-C's are labels, the type `stage`, `*` as a value, and functions that are others with arguments.
//!
//! ```text
//! file      = {struct | function | ["extern"] type name "(" [parameter {"," parameter}] ")" ";"}
//! struct    = "struct" name "{" {type declarator ";"} "}" ";"
//! function  = type name "(" [parameter {"," parameter}] ")" ( block | "=" ["compile"] name "<" [value {"," value}] ">" ";" )
//! type      = ("void" | "bool" | "int" | "float" | "double" | "stage" | "struct" name) {"*" | "[" "]"}
//! declarator = name | "(" "*" name ")" "(" [parameter {"," parameter}] ")"
//! parameter = type [declarator ["[" "]"]]        // a name is missing in types of functions only
//! statement = {"@" expression ":"} ( block | function | declaration ";" | assignment ";" | value ";" | ";" | "return" [value] ";" | "break" ";" | "continue" ";"
//!           | "if" "(" value ")" statement ["else" statement] | "while" "(" value ")" statement
//!           | "for" "(" [declaration | assignment] ";" [value] ";" [assignment] ")" statement )
//! declaration = type declarator ["[" value "]"] ["=" value]
//! assignment = value ("=" | "+=" | "-=" | "*=" | "/=" | "%=") value | ("++" | "--") value | value ("++" | "--")
//! value     = expression ["?" value ":" value]
//! ```
//!
//! Expressions are C's, with `{1, 2}` for constant arrays and for structs where one is expected, `"text"`, and types called as
//! functions for conversions, `float(n)`, besides `(float) n`. Operators in a row are a list, so only parentheses, brackets,
//! statements within each other and signs before an operand recurse, to a limit.

use crate::diagnostics::staging_syntax;
use crate::lexer::{C, Kind, Token, tokens};
use nyala_base::diagnostics::limitation;
use nyala_base::{FileId, Sink, Span};

/// Limit on what is within each other.
const MAX_DEPTH: u32 = 100;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    Void,
    Bool,
    Int,
    Float,
    Double,
    Stage,
    /// By its index in [`Unit::names`].
    Struct(u32),
    /// A function as a value, by the index of its type in [`Unit::signatures`].
    Function(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    pub base: Base,
    /// `*` or `[]` behind it.
    pub pointers: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

/// What the files of a program declare, in their order.
#[derive(Default, Debug)]
pub struct Unit<'s> {
    pub structs: Vec<Struct<'s>>,
    pub functions: Vec<Function<'s>>,
    /// The names of structs that are mentioned.
    pub names: Vec<&'s str>,
    pub signatures: Vec<Signature>,
}

impl Unit<'_> {
    /// The type as it is written.
    pub fn show(&self, ty: Type) -> String {
        let of = match ty.base {
            Base::Struct(i) => format!("struct {}", self.names[i as usize]),
            Base::Function(i) => {
                let Signature { ret, params } = &self.signatures[i as usize];
                let params: Vec<String> = params.iter().map(|&p| self.show(p)).collect();
                format!("{} (*)({})", self.show(*ret), params.join(", "))
            }
            base => base.name().to_string(),
        };
        of + &"*".repeat(ty.pointers as usize)
    }
}

#[derive(Debug)]
pub struct Struct<'s> {
    pub name: Name<'s>,
    /// Which of [`Unit::names`] it is.
    pub idx: u32,
    pub fields: Vec<(Type, Name<'s>)>,
}

/// The type of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    pub ret: Type,
    pub params: Vec<Type>,
}

#[derive(Debug)]
pub struct Function<'s> {
    pub ty: Type,
    pub name: Name<'s>,
    pub params: Vec<(Type, Name<'s>)>,
    pub body: FunctionBody<'s>,
}

#[derive(Debug)]
pub enum FunctionBody<'s> {
    Block(Vec<Statement<'s>>),
    /// The function is other code's, declared by its head.
    Foreign,
    /// `= f<…>`
    Special(Name<'s>, Vec<Expr<'s>>),
    /// `= compile f<…>`: made while the program runs.
    Compiled(Name<'s>, Vec<Expr<'s>>),
}

#[derive(Debug)]
pub struct Statement<'s> {
    pub labels: Vec<Expr<'s>>,
    pub kind: StatementKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum StatementKind<'s> {
    Block(Vec<Statement<'s>>),
    Function(Box<Function<'s>>),
    Declare(Type, Name<'s>, Option<Expr<'s>>),
    /// The elements' type, their number.
    DeclareArray(Type, Name<'s>, Expr<'s>, Option<Expr<'s>>),
    /// Target, operator, value.
    Assign(Expr<'s>, Option<Op>, Expr<'s>),
    Value(Expr<'s>),
    Return(Option<Expr<'s>>),
    Break,
    Continue,
    If(Expr<'s>, Box<Statement<'s>>, Option<Box<Statement<'s>>>),
    /// A `while` is one without first and step.
    For {
        first: Option<Box<Statement<'s>>>,
        condition: Option<Expr<'s>>,
        step: Option<Box<Statement<'s>>>,
        body: Box<Statement<'s>>,
    },
    Empty,
}

#[derive(Debug)]
pub struct Expr<'s> {
    pub kind: ExprKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum ExprKind<'s> {
    Name(&'s str),
    /// With its digits.
    Int(&'s str),
    Float(&'s str),
    /// With its quotes.
    Text(&'s str),
    Bool(bool),
    /// `*`, the stage.
    Star,
    Negate(Box<Expr<'s>>),
    Not(Box<Expr<'s>>),
    Cast(Type, Box<Expr<'s>>),
    /// Operators that bind equally, from left to right.
    Chain(Box<Expr<'s>>, Vec<(Op, Expr<'s>)>),
    Choose(Box<[Expr<'s>; 3]>),
    Call(Box<Expr<'s>>, Vec<Expr<'s>>),
    /// A field of a struct.
    Member(Box<Expr<'s>>, Name<'s>),
    Index(Box<Expr<'s>>, Box<Expr<'s>>),
    Array(Vec<Expr<'s>>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    OrElse,
    AndThen,
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

/// Operators, with how tightly they bind.
const OPS: [(&str, Op, u32); 15] = [
    ("||", Op::OrElse, 1),
    ("&&", Op::AndThen, 2),
    ("|", Op::Or, 3),
    ("&", Op::And, 4),
    ("==", Op::Eq, 5),
    ("!=", Op::Ne, 5),
    ("<", Op::Lt, 6),
    ("<=", Op::Le, 6),
    (">", Op::Gt, 6),
    (">=", Op::Ge, 6),
    ("+", Op::Add, 7),
    ("-", Op::Sub, 7),
    ("*", Op::Mul, 8),
    ("/", Op::Div, 8),
    ("%", Op::Mod, 8),
];

/// How tightly what is in angle brackets binds: comparisons need parentheses there.
const ADDITIVE: u32 = 7;
const TIGHTEST: u32 = 8;

const TYPES: [(&str, Base); 6] = [
    ("void", Base::Void),
    ("bool", Base::Bool),
    ("int", Base::Int),
    ("float", Base::Float),
    ("double", Base::Double),
    ("stage", Base::Stage),
];

const WORDS: [&str; 13] = [
    "struct", "extern", "if", "else", "for", "while", "return", "break", "continue", "true", "false", "always", "never",
];

impl Base {
    pub fn name(self) -> &'static str {
        TYPES.iter().find(|t| t.1 == self).map_or("", |t| t.0)
    }
}

impl Op {
    pub fn name(self) -> &'static str {
        OPS.iter().find(|o| o.1 == self).map_or("", |o| o.0)
    }
}

/// Adds what a file declares; `false` where its grammar is at fault, which is reported.
pub fn parse<'s>(file: FileId, text: &'s str, unit: &mut Unit<'s>, sink: &mut Sink) -> bool {
    let mut parser = Parser { tokens: tokens(file, text, &C), pos: 0, depth: 0, unit, sink };
    while parser.token().kind != Kind::End {
        if parser.declaration().is_err() {
            return false;
        }
    }
    true
}

/// A fault of the grammar, which is reported.
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'s, 'k> {
    tokens: Vec<Token<'s>>,
    pos: usize,
    depth: u32,
    unit: &'k mut Unit<'s>,
    sink: &'k mut Sink,
}

impl<'s> Parser<'s, '_> {
    // --- Tokens.

    fn ahead(&self, n: usize) -> Token<'s> {
        self.tokens[(self.pos + n).min(self.tokens.len() - 1)]
    }

    fn token(&self) -> Token<'s> {
        self.ahead(0)
    }

    fn at(&self, text: &str) -> bool {
        self.token().text == text && matches!(self.token().kind, Kind::Name | Kind::Sign)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.at(text);
        self.pos += usize::from(found);
        found
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let Token { text, span, .. } = self.token();
        self.sink.push(staging_syntax::unexpected(span, text, expected));
        Err(Reported)
    }

    fn expect(&mut self, text: &str) -> Parsed<Span> {
        let span = self.token().span;
        if self.eat(text) { Ok(span) } else { self.unexpected(&format!("`{text}`")) }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.sink.push(staging_syntax::too_deep_in_c(self.token().span, MAX_DEPTH));
            return Err(Reported);
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// From `first` to the token before this one.
    fn span_from(&self, first: Span) -> Span {
        first.to(self.tokens[self.pos.saturating_sub(1)].span)
    }

    fn is_name(token: Token) -> bool {
        token.kind == Kind::Name && !WORDS.contains(&token.text) && !TYPES.iter().any(|t| t.0 == token.text)
    }

    fn name(&mut self) -> Parsed<Name<'s>> {
        let token = self.token();
        if !Self::is_name(token) {
            return self.unexpected("a name");
        }
        self.pos += 1;
        Ok(Name { text: token.text, span: token.span })
    }

    fn list<T>(&mut self, end: &str, mut parse: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.at(end) {
            items.push(parse(self)?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(end)?;
        Ok(items)
    }

    // --- Types and functions.

    fn base(token: Token) -> Option<Base> {
        TYPES.iter().find(|t| token.kind == Kind::Name && t.0 == token.text).map(|t| t.1)
    }

    fn is_type(token: Token) -> bool {
        Self::base(token).is_some() || token.kind == Kind::Name && token.text == "struct"
    }

    fn ty(&mut self) -> Parsed<Type> {
        let base = match Self::base(self.token()) {
            Some(base) => {
                self.pos += 1;
                base
            }
            None if self.eat("struct") => {
                let name = self.name()?.text;
                Base::Struct(self.struct_idx(name))
            }
            None => return self.unexpected("a type"),
        };
        let mut pointers = 0;
        loop {
            if self.eat("*") {
                pointers += 1;
            } else if self.at("[") && self.ahead(1).text == "]" {
                self.pos += 2;
                pointers += 1;
            } else {
                return Ok(Type { base, pointers });
            }
        }
    }

    fn struct_idx(&mut self, name: &'s str) -> u32 {
        let names = &mut self.unit.names;
        let found = names.iter().position(|&n| n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        found as u32
    }

    /// A name behind a type, which is that of a pointer to a function where parentheses say so.
    fn declarator(&mut self, ty: Type) -> Parsed<(Type, Name<'s>)> {
        if !self.at("(") || self.ahead(1).text != "*" {
            return Ok((ty, self.name()?));
        }
        self.pos += 2;
        let name = self.name()?;
        self.expect(")")?;
        self.expect("(")?;
        let params = self.nested(|p| {
            p.params(|p| {
                let ty = p.ty()?;
                let is_named = p.at("(") || Self::is_name(p.token());
                if is_named { p.declarator(ty).map(|d| d.0) } else { Ok(ty) }
            })
        })?;
        let signature = Signature { ret: ty, params };
        let known = &mut self.unit.signatures;
        let idx = known.iter().position(|s| *s == signature).unwrap_or_else(|| {
            known.push(signature);
            known.len() - 1
        });
        Ok((Type { base: Base::Function(idx as u32), pointers: 0 }, name))
    }

    /// Parameters, behind the parenthesis that opens them.
    fn params<T>(&mut self, parse: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if self.at("void") && self.ahead(1).text == ")" {
            self.pos += 2;
            return Ok(Vec::new());
        }
        self.list(")", parse)
    }

    fn declaration(&mut self) -> Parsed<()> {
        if self.at("struct") && self.ahead(2).text == "{" {
            self.pos += 1;
            let name = self.name()?;
            let idx = self.struct_idx(name.text);
            self.expect("{")?;
            let mut fields = Vec::new();
            while !self.eat("}") {
                let ty = self.ty()?;
                fields.push(self.declarator(ty)?);
                if self.at("[") {
                    let span = self.token().span;
                    let hint = "give each element a field, or keep the array beside the struct";
                    self.sink.push(limitation::not_supported(span, "arrays in structs", hint));
                    return Err(Reported);
                }
                self.expect(";")?;
            }
            self.expect(";")?;
            self.unit.structs.push(Struct { name, idx, fields });
            return Ok(());
        }
        let is_foreign = self.eat("extern");
        let ty = self.ty()?;
        let name = self.name()?;
        self.expect("(")?;
        let function = self.function_after(ty, name, is_foreign)?;
        self.unit.functions.push(function);
        Ok(())
    }

    /// Behind the parenthesis that opens the parameters.
    fn function_after(&mut self, ty: Type, name: Name<'s>, is_foreign: bool) -> Parsed<Function<'s>> {
        let params = self.params(|p| {
            let ty = p.ty()?;
            let (mut ty, name) = p.declarator(ty)?;
            while p.at("[") {
                p.pos += 1;
                p.expect("]")?;
                ty.pointers += 1;
            }
            Ok((ty, name))
        })?;
        let body = if is_foreign || self.at(";") {
            self.expect(";")?;
            FunctionBody::Foreign
        } else if self.eat("=") {
            let is_compiled = self.at("compile") && self.ahead(1).kind == Kind::Name;
            self.pos += usize::from(is_compiled);
            let of = self.name()?;
            self.expect("<")?;
            let args = self.list(">", |p| p.chain(ADDITIVE))?;
            self.expect(";")?;
            if is_compiled { FunctionBody::Compiled(of, args) } else { FunctionBody::Special(of, args) }
        } else {
            self.expect("{")?;
            FunctionBody::Block(self.nested(Self::block)?)
        };
        Ok(Function { ty, name, params, body })
    }

    // --- Statements.

    /// Behind the brace that opens it.
    fn block(&mut self) -> Parsed<Vec<Statement<'s>>> {
        let mut statements = Vec::new();
        while !self.eat("}") {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Parsed<Statement<'s>> {
        let mut labels = Vec::new();
        while self.eat("@") {
            labels.push(self.chain(1)?);
            self.expect(":")?;
        }
        let first = self.token().span;
        let kind = self.nested(Self::statement_kind)?;
        Ok(Statement { labels, kind, span: self.span_from(first) })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind<'s>> {
        let boxed = |p: &mut Self| p.statement().map(Box::new);
        if self.eat("{") {
            return Ok(StatementKind::Block(self.block()?));
        }
        if self.eat(";") {
            return Ok(StatementKind::Empty);
        }
        if self.eat("if") {
            self.expect("(")?;
            let condition = self.value()?;
            self.expect(")")?;
            let then = boxed(self)?;
            let otherwise = if self.eat("else") { Some(boxed(self)?) } else { None };
            return Ok(StatementKind::If(condition, then, otherwise));
        }
        if self.eat("while") {
            self.expect("(")?;
            let condition = Some(self.value()?);
            self.expect(")")?;
            return Ok(StatementKind::For { first: None, condition, step: None, body: boxed(self)? });
        }
        if self.eat("for") {
            self.expect("(")?;
            let first = if self.at(";") { None } else { Some(Box::new(self.simple()?)) };
            self.expect(";")?;
            let condition = if self.at(";") { None } else { Some(self.value()?) };
            self.expect(";")?;
            let step = if self.at(")") { None } else { Some(Box::new(self.simple()?)) };
            self.expect(")")?;
            return Ok(StatementKind::For { first, condition, step, body: boxed(self)? });
        }
        let kind = if self.eat("return") {
            StatementKind::Return(if self.at(";") { None } else { Some(self.value()?) })
        } else if self.eat("break") {
            StatementKind::Break
        } else if self.eat("continue") {
            StatementKind::Continue
        } else {
            let simple = self.simple()?;
            if matches!(simple.kind, StatementKind::Function(_)) {
                return Ok(simple.kind);
            }
            simple.kind
        };
        self.expect(";")?;
        Ok(kind)
    }

    /// A declaration, an assignment or a value.
    fn simple(&mut self) -> Parsed<Statement<'s>> {
        let first = self.token().span;
        let one = |span: Span| Expr { kind: ExprKind::Int("1"), span };
        let is_conversion = self.ahead(1).text == "(" && self.ahead(2).text != "*";
        let kind = if Self::is_type(self.token()) && !is_conversion {
            let ty = self.ty()?;
            let (ty, name) = self.declarator(ty)?;
            if self.eat("(") {
                StatementKind::Function(Box::new(self.nested(|p| p.function_after(ty, name, false))?))
            } else {
                let n = if self.eat("[") {
                    let n = self.value()?;
                    self.expect("]")?;
                    Some(n)
                } else {
                    None
                };
                let value = if self.eat("=") { Some(self.value()?) } else { None };
                match n {
                    Some(n) => StatementKind::DeclareArray(ty, name, n, value),
                    None => StatementKind::Declare(ty, name, value),
                }
            }
        } else if let Some(op) = self.step_sign() {
            let target = self.primary()?;
            StatementKind::Assign(self.postfix(target)?, Some(op), one(first))
        } else {
            let value = self.value()?;
            let assigns = ["=", "+=", "-=", "*=", "/=", "%="];
            if let Some(op) = self.step_sign() {
                StatementKind::Assign(value, Some(op), one(first))
            } else if let Some(i) = assigns.iter().position(|a| self.at(a)) {
                self.pos += 1;
                let op = [None, Some(Op::Add), Some(Op::Sub), Some(Op::Mul), Some(Op::Div), Some(Op::Mod)][i];
                StatementKind::Assign(value, op, self.value()?)
            } else {
                StatementKind::Value(value)
            }
        };
        Ok(Statement { labels: Vec::new(), kind, span: self.span_from(first) })
    }

    fn step_sign(&mut self) -> Option<Op> {
        if self.eat("++") {
            Some(Op::Add)
        } else if self.eat("--") {
            Some(Op::Sub)
        } else {
            None
        }
    }

    // --- Expressions.

    fn value(&mut self) -> Parsed<Expr<'s>> {
        let condition = self.chain(1)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let span = condition.span;
        self.nested(|p| {
            let then = p.value()?;
            p.expect(":")?;
            let otherwise = p.value()?;
            let span = p.span_from(span);
            Ok(Expr { kind: ExprKind::Choose(Box::new([condition, then, otherwise])), span })
        })
    }

    fn op(&self, binds: u32) -> Option<Op> {
        let token = self.token();
        OPS.iter().find(|o| token.kind == Kind::Sign && o.0 == token.text && o.2 == binds).map(|o| o.1)
    }

    /// Operators that bind at least that tightly.
    fn chain(&mut self, binds: u32) -> Parsed<Expr<'s>> {
        if binds > TIGHTEST {
            return self.prefix();
        }
        let first = self.chain(binds + 1)?;
        let mut rest = Vec::new();
        while let Some(op) = self.op(binds) {
            self.pos += 1;
            rest.push((op, self.chain(binds + 1)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let span = self.span_from(first.span);
        Ok(Expr { kind: ExprKind::Chain(Box::new(first), rest), span })
    }

    fn prefix(&mut self) -> Parsed<Expr<'s>> {
        let first = self.token().span;
        let kind = if self.eat("-") {
            ExprKind::Negate(Box::new(self.nested(Self::prefix)?))
        } else if self.eat("!") {
            ExprKind::Not(Box::new(self.nested(Self::prefix)?))
        } else if self.at("(") && Self::is_type(self.ahead(1)) {
            self.pos += 1;
            let ty = self.ty()?;
            self.expect(")")?;
            if self.at("{") {
                let value = self.primary()?;
                let span = self.span_from(first);
                return self.postfix(Expr { kind: ExprKind::Cast(ty, Box::new(value)), span });
            }
            ExprKind::Cast(ty, Box::new(self.nested(Self::prefix)?))
        } else if self.eat("*") {
            ExprKind::Star
        } else {
            let value = self.primary()?;
            return self.postfix(value);
        };
        Ok(Expr { kind, span: self.span_from(first) })
    }

    /// What is behind a value. Each is a level more of the tree.
    fn postfix(&mut self, mut expr: Expr<'s>) -> Parsed<Expr<'s>> {
        let (first, depth) = (expr.span, self.depth);
        loop {
            self.depth += 1;
            let kind = if self.eat("[") {
                let idx = self.nested(Self::value)?;
                self.expect("]")?;
                ExprKind::Index(Box::new(expr), Box::new(idx))
            } else if self.eat("(") {
                let args = self.nested(|p| p.list(")", Self::value))?;
                ExprKind::Call(Box::new(expr), args)
            } else if self.eat(".") {
                ExprKind::Member(Box::new(expr), self.nested(Self::name)?)
            } else if self.at("->") {
                let zero = Expr { kind: ExprKind::Int("0"), span: self.token().span };
                self.pos += 1;
                self.depth += 1;
                let span = expr.span;
                let pointee = Expr { kind: ExprKind::Index(Box::new(expr), Box::new(zero)), span };
                ExprKind::Member(Box::new(pointee), self.nested(Self::name)?)
            } else {
                self.depth = depth;
                return Ok(expr);
            };
            expr = Expr { kind, span: self.span_from(first) };
        }
    }

    fn primary(&mut self) -> Parsed<Expr<'s>> {
        let Token { kind, text, span } = self.token();
        let is_type = Self::base(self.token()).is_some() && self.ahead(1).text == "(";
        let kind = match kind {
            Kind::Int => ExprKind::Int(text),
            Kind::Float => ExprKind::Float(text.strip_suffix('f').unwrap_or(text)),
            Kind::Text => ExprKind::Text(text),
            Kind::Name if is_type => {
                let ty = self.ty()?;
                self.expect("(")?;
                let value = self.nested(Self::value)?;
                self.expect(")")?;
                return Ok(Expr { kind: ExprKind::Cast(ty, Box::new(value)), span: self.span_from(span) });
            }
            Kind::Name if text == "true" || text == "false" => ExprKind::Bool(text == "true"),
            Kind::Name if text == "always" || text == "never" => ExprKind::Name(text),
            Kind::Name => {
                let name = self.name()?;
                return Ok(Expr { kind: ExprKind::Name(name.text), span });
            }
            _ if self.eat("(") => {
                let inner = self.nested(Self::value)?;
                self.expect(")")?;
                return Ok(inner);
            }
            _ if self.eat("{") => {
                let elements = self.nested(|p| p.list("}", Self::value))?;
                return Ok(Expr { kind: ExprKind::Array(elements), span: self.span_from(span) });
            }
            _ => return self.unexpected("a value"),
        };
        self.pos += 1;
        Ok(Expr { kind, span })
    }
}

//! Tokens to syntax trees, in each dialect.
//!
//! Separate, since only the grammar is looked at, and which names are types: `a * b;` declares a pointer if `a` is one. The first fault ends a file.
//!
//! ```text
//! file        = {function | declaration | template}
//! template    = "template" "<" [ templated {"," templated} ] ">" ( function | "struct" NAME "{" {declaration} "}" ";" )
//! templated   = ("typename" | "class") NAME | specifier NAME
//! function    = specifier declarator block
//! declaration = specifier [ declarator ["=" init] {"," declarator ["=" init]} ] ";"
//! specifier   = {"static" | "extern" | "typedef" | "const" | "inline"} type
//! type        = "void" | "bool" | "char" | "short" | "int" | "long" | "signed" | "unsigned" | "float" | "double" | "auto" | NAME
//!             | NAME "<" [ (type | value) {"," (type | value)} ] ">"
//!             | ("struct" | "union") [NAME] ["{" {declaration} "}"] | "enum" [NAME] ["{" NAME ["=" value] {"," …} "}"]
//! declarator  = {"*" ["const"]} ["&"] [NAME | "operator" SIGN | "(" {"*"} [NAME] {"[" [value] "]"} ")" parameters] [ "(" [ parameter {"," parameter} ] ")" ] {"[" [value] "]"}
//! init        = value | "{" [ part {"," part} [","] ] "}"
//! part        = [ "." NAME "=" | "[" value "]" "=" ] init
//! statement   = block | declaration | [expression] ";" | "return" [expression] ";" | "break" ";" | "continue" ";"
//!             | "if" ["constexpr"] "(" expression ")" statement ["else" statement] | "while" "(" expression ")" statement
//!             | "do" statement "while" "(" expression ")" ";"
//!             | "for" "(" (declaration | [expression] ";") [expression] ";" [expression] ")" statement
//!             | "switch" "(" expression ")" "{" { "case" value ":" | "default" ":" | statement } "}"
//! ```
//!
//! Expressions are C's, with types called as functions, `float(n)`.

mod declarators;
mod exprs;
mod ispc;
mod staged;
mod templates;

use crate::Dialect;
use crate::diagnostics::c_syntax;
use crate::lexer::{Kind, Token};
use crate::syntax::*;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Sink, Span};
use nyala_ir::Prim;
use rustc_hash::FxHashMap;

/// Limit on what is within each other.
const MAX_DEPTH: u32 = 100;

/// Words of C and C++ that begin what is not there, with what it is, in the plural, and what to write instead.
const MISSING: [(&str, &str, &str); 11] = [
    ("class", "classes", "write a `struct`, and functions that take it"),
    ("delete", "`new` and `delete`", "declare `void* malloc(size_t n);` and `void free(void* p);`"),
    ("goto", "jumps to labels", "use a loop, `break` and `continue`"),
    ("namespace", "namespaces", "begin names with a word of their own"),
    ("new", "`new` and `delete`", "declare `void* malloc(size_t n);` and `void free(void* p);`"),
    ("private", "access rules", "leave it out"),
    ("protected", "access rules", "leave it out"),
    ("public", "access rules", "leave it out"),
    ("throw", "exceptions", "return a value that says what is wrong"),
    ("try", "exceptions", "return a value that says what is wrong"),
    ("using", "`using` declarations", "write a `typedef`"),
];

/// What a name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    Type,
    /// A type that says itself whether it has lanes, in ISPC's dialect.
    BoundType,
    /// Of a struct, or of a function.
    TypeTemplate,
    Template,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

struct Parser<'s> {
    tokens: Vec<Token<'s>>,
    pos: usize,
    depth: u32,
    /// Names in scope.
    scopes: Vec<FxHashMap<&'s str, Role>>,
    /// Blocks behind `extern "C"` that are open.
    n_blocks: u32,
    dialect: Dialect,
}

/// The value behind `#if`, of tokens that end with `End`.
pub fn parse_condition<'s>(tokens: Vec<Token<'s>>) -> Parsed<Expr<'s>> {
    let scopes = vec![FxHashMap::default()];
    let mut parser = Parser { tokens, pos: 0, depth: 0, scopes, n_blocks: 0, dialect: Dialect::Sierra };
    let condition = parser.expression()?;
    if parser.token().kind == Kind::End { Ok(condition) } else { Err(parser.unexpected("the end of the line")) }
}

/// The items of a file's tokens. What is wrong with its grammar is reported.
pub fn parse<'s>(tokens: Vec<Token<'s>>, dialect: Dialect, sink: &mut Sink) -> Vec<Item<'s>> {
    // Types of the language are around the file's.
    let types = dialect.types().iter().map(|&name| (name, Role::Type)).collect();
    let tokens = if dialect == Dialect::Ispc { ispc::without_attributes(tokens) } else { tokens };
    let scopes = vec![types, FxHashMap::default()];
    let mut parser = Parser { tokens, pos: 0, depth: 0, scopes, n_blocks: 0, dialect };
    let mut items = Vec::new();
    while parser.token().kind != Kind::End {
        match parser.item() {
            Ok(item) => items.extend(item),
            Err(diagnostic) => {
                sink.push(*diagnostic);
                return items;
            }
        }
    }
    if parser.n_blocks > 0 {
        sink.push(*parser.unexpected("`}`"));
    }
    items
}

impl<'s> Parser<'s> {
    fn is_sierra(&self) -> bool {
        self.dialect == Dialect::Sierra
    }

    fn is_ispc(&self) -> bool {
        self.dialect == Dialect::Ispc
    }

    fn is_staged(&self) -> bool {
        self.dialect == Dialect::StagedC
    }

    fn is_keyword(&self, word: &str) -> bool {
        self.dialect.is_keyword(word)
    }

    /// The number that a name means, unless the program has another meaning for it.
    fn int_name(&self, name: &str) -> Option<Prim> {
        self.dialect.number(name)
    }

    fn token(&self) -> Token<'s> {
        self.ahead(0)
    }

    fn ahead(&self, n: usize) -> Token<'s> {
        // The last token is the end.
        self.tokens[(self.pos + n).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'s> {
        let token = self.token();
        self.pos += 1;
        token
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// From the beginning of a token to the end of the last one.
    fn since(&self, start: Span) -> Span {
        let last = self.tokens[self.pos.saturating_sub(1).min(self.tokens.len() - 1)].span;
        through(start, last)
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

    fn expect(&mut self, text: &str) -> Parsed<Span> {
        if self.is(text) { Ok(self.next().span) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let token = self.token();
        if let Some((_, what, hint)) = MISSING.iter().find(|m| m.0 == token.text && self.is_keyword(m.0)) {
            return Box::new(limitation::not_supported(token.span, what, hint));
        }
        Box::new(c_syntax::unexpected(token.span, token.text, expected))
    }

    /// Parses something that may contain itself.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Box::new(c_syntax::too_deep(self.span(), MAX_DEPTH)));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn name(&mut self, what: &str) -> Parsed<Name<'s>> {
        let token = self.token();
        if token.kind != Kind::Name || self.is_keyword(token.text) {
            return Err(self.unexpected(what));
        }
        self.pos += 1;
        Ok(Name { text: token.text, span: token.span })
    }

    fn declare(&mut self, name: &'s str, role: Role) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, role);
        }
    }

    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.scopes.push(FxHashMap::default());
        let parsed = parse(self);
        self.scopes.pop();
        parsed
    }

    /// Whether a type, or a declaration, begins at a token.
    fn begins_type(&self, token: Token) -> bool {
        const WORDS: [&str; 23] = [
            "void",
            "bool",
            "char",
            "short",
            "int",
            "long",
            "signed",
            "unsigned",
            "float",
            "double",
            "auto",
            "struct",
            "union",
            "enum",
            "const",
            "constexpr",
            "static",
            "extern",
            "typedef",
            "typename",
            "uniform",
            "varying",
            "simd",
        ];
        if token.kind != Kind::Name {
            return false;
        }
        let is_word = WORDS.contains(&token.text) && self.is_keyword(token.text);
        is_word
            || token.text == "inline"
            || self.is_type_name(token.text)
            || self.is_ispc() && ispc::begins_type(token.text)
    }

    fn is_type_name(&self, name: &str) -> bool {
        match self.role(name) {
            Some(role) => matches!(role, Role::Type | Role::BoundType | Role::TypeTemplate),
            None => self.int_name(name).is_some(),
        }
    }

    fn role(&self, name: &str) -> Option<Role> {
        self.scopes.iter().rev().find_map(|s| s.get(name).copied())
    }

    fn item(&mut self) -> Parsed<Option<Item<'s>>> {
        if self.eat(";") {
            return Ok(None);
        }
        if self.is("template") && self.is_keyword("template") {
            return self.template();
        }
        if self.is_ispc() && self.is("export") && self.ahead(1).text == "{" {
            // Types that the header is to have, which has those that functions need.
            self.pos += 2;
            while !self.is("}") {
                self.specifiers()?;
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("}")?;
            return Ok(None);
        }
        let mut is_c = self.n_blocks > 0;
        if self.is("extern") && self.ahead(1).kind == Kind::Text {
            if self.ahead(1).text == "\"SYCL\"" {
                let hint = "write the kernel in Impala";
                return Err(Box::new(limitation::not_supported(self.span(), "functions in SYCL", hint)));
            }
            self.pos += 2;
            is_c = true;
            if self.eat("{") {
                self.n_blocks += 1;
                return Ok(None);
            }
        }
        if self.n_blocks > 0 && self.eat("}") {
            self.n_blocks -= 1;
            return Ok(None);
        }
        let (mut storage, specifier) = self.specifiers()?;
        if is_c && matches!(storage, Storage::Automatic | Storage::Extern) {
            storage = Storage::ExternC;
        }
        if self.eat(";") {
            return Ok(Some(Item::Declaration(Declaration { storage, specifier, declared: Vec::new() })));
        }
        let mut declarator = self.declarator(true)?;
        self.rate(&specifier, storage == Storage::Typedef, &mut declarator);
        if declarator.params.is_some() && self.is("{") {
            if let Some(name) = declarator.name
                && self.role(name.text) != Some(Role::Template)
            {
                self.declare(name.text, Role::Value);
            }
            return self.function(storage, specifier, declarator).map(|f| Some(Item::Function(f.into())));
        }
        self.declaration_of(storage, specifier, declarator, false).map(|d| Some(Item::Declaration(d)))
    }

    /// The body of a function.
    fn function(
        &mut self,
        storage: Storage,
        specifier: Specifier<'s>,
        declarator: Declarator<'s>,
    ) -> Parsed<Function<'s>> {
        self.scoped(|p| {
            let params = declarator.params.iter().flatten();
            params.filter_map(|(_, d)| d.name).for_each(|name| p.declare(name.text, Role::Value));
            let start = p.pos;
            p.expect("{")?;
            let mut body = p.statements()?;
            let end = p.expect("}")?;
            // A function waits for its tasks.
            if let Some(Statement { kind: StatementKind::Value(last), .. }) = body.last_mut()
                && let ExprKind::Launch(launch) = &mut last.kind
            {
                launch.waits = true;
            }
            let has = |word: &str| p.is_ispc() && p.tokens[start..p.pos].iter().any(|t| t.text == word);
            let (has_jumps, has_tasks, has_alloca) = (has("goto"), has("launch"), has("alloca"));
            let params = declarator.params.iter().flatten();
            let has_lanes = params.into_iter().any(|(s, _)| s.varying.is_some())
                || p.is_ispc()
                || p.tokens[start..p.pos].iter().any(|t| t.text == "varying");
            Ok(Function { storage, specifier, declarator, body, has_lanes, has_jumps, has_tasks, has_alloca, end })
        })
    }

    /// Of a struct's fields, or of variables.
    fn declaration(&mut self, is_field: bool) -> Parsed<Declaration<'s>> {
        let (storage, specifier) = self.specifiers()?;
        if self.eat(";") {
            return Ok(Declaration { storage, specifier, declared: Vec::new() });
        }
        let mut declarator = self.declarator(true)?;
        self.rate(&specifier, storage == Storage::Typedef || is_field, &mut declarator);
        self.declaration_of(storage, specifier, declarator, is_field)
    }

    /// The rest of a declaration behind its first declarator.
    fn declaration_of(
        &mut self,
        storage: Storage,
        specifier: Specifier<'s>,
        first: Declarator<'s>,
        is_field: bool,
    ) -> Parsed<Declaration<'s>> {
        let mut declared = Vec::new();
        let mut declarator = first;
        loop {
            if let Some(name) = declarator.name {
                let of_type = if declarator.rates.is_bound { Role::BoundType } else { Role::Type };
                self.declare(name.text, if storage == Storage::Typedef { of_type } else { Role::Value });
            }
            if self.is_staged() && declarator.params.is_some() && self.is("{") {
                // A function within another one, which its language says is missing.
                let start = self.span();
                self.block()?;
                declared.push((declarator, Some(Init::List(Vec::new(), self.since(start)))));
                return Ok(Declaration { storage, specifier, declared });
            }
            let init = match () {
                () if self.is_staged() && declarator.params.is_some() => self.special_function()?,
                () if self.eat("=") => Some(self.init()?),
                () => None,
            };
            declared.push((declarator, init));
            if !self.eat(",") {
                break;
            }
            declarator = self.declarator(true)?;
            self.rate(&specifier, storage == Storage::Typedef || is_field, &mut declarator);
        }
        self.expect(";")?;
        Ok(Declaration { storage, specifier, declared })
    }

    fn init(&mut self) -> Parsed<Init<'s>> {
        let start = self.span();
        if self.is_staged() || !self.eat("{") {
            return self.assignment().map(Init::Value);
        }
        self.nested(|p| {
            let mut parts = Vec::new();
            while !p.is("}") {
                let mut designator = None;
                if p.eat(".") {
                    designator = Some(Designator::Field(p.name("the name of a field")?));
                } else if p.eat("[") {
                    designator = Some(Designator::Element(p.choice()?));
                    p.expect("]")?;
                }
                if designator.is_some() {
                    if p.is(".") || p.is("[") {
                        let hint = "write the inner values in braces: `.a = {.b = 1}`";
                        return Err(Box::new(limitation::not_supported(p.span(), "values of parts of parts", hint)));
                    }
                    p.expect("=")?;
                }
                parts.push((designator, p.init()?));
                if !p.eat(",") {
                    break;
                }
            }
            p.expect("}")?;
            Ok(Init::List(parts, p.since(start)))
        })
    }

    /// The words in front of a declarator, in any order.
    fn specifiers(&mut self) -> Parsed<(Storage, Specifier<'s>)> {
        let start = self.span();
        let mut storage = Storage::Automatic;
        let mut is_const = false;
        // How many there are of `signed`, `unsigned`, `short`, `long`; the other word for a number.
        let mut counts = [0; 4];
        let mut base: Option<&str> = None;
        let mut kind = None;
        let mut lengths = [None, None];
        let mut short = None;
        let mut words = Words::default();
        loop {
            let token = self.token();
            let is_open = kind.is_none() && base.is_none() && counts == [0; 4];
            if self.is_ispc() && !is_open && short.is_none() && self.eat("<") {
                short = Some(Box::new(self.nested(Self::template_value)?));
                self.expect(">")?;
                continue;
            }
            if token.kind != Kind::Name {
                break;
            }
            if self.is_ispc() && self.word_of_ispc(token, &mut storage, &mut words, &mut lengths[0])? {
                continue;
            }
            if !self.is_keyword(token.text) && !self.is_type_name(token.text) {
                break;
            }
            match token.text {
                "const" | "constexpr" => is_const = true,
                "inline" | "uniform" => {}
                word @ ("varying" | "simd") if self.is_sierra() => {
                    self.pos += 1;
                    lengths[usize::from(word == "simd")] = Some(Box::new(self.length()?));
                    continue;
                }
                "static" => storage = Storage::Static,
                "extern" => storage = Storage::Extern,
                "typedef" => storage = Storage::Typedef,
                "signed" => counts[0] += 1,
                "unsigned" => counts[1] += 1,
                "short" => counts[2] += 1,
                "long" => counts[3] += 1,
                "char" | "int" | "double" if kind.is_none() && base.is_none() => base = Some(token.text),
                "float" if is_open => kind = Some(SpecifierKind::Prim(Prim::F32)),
                "void" if is_open => kind = Some(SpecifierKind::Void),
                "bool" if is_open => kind = Some(SpecifierKind::Prim(Prim::Bool)),
                "auto" if is_open && self.is_sierra() => kind = Some(SpecifierKind::Auto),
                "struct" | "union" if is_open => {
                    kind = Some(self.struct_specifier()?);
                    continue;
                }
                "enum" if is_open => {
                    kind = Some(self.enum_specifier()?);
                    continue;
                }
                "typename" if is_open => {}
                // `unsigned int8`
                name if kind.is_none()
                    && base.is_none()
                    && counts[2..] == [0; 2]
                    && self.role(name).is_none()
                    && let Some(int) = self.int_name(name).filter(|p| self.is_ispc() && p.is_int()) =>
                {
                    kind = Some(SpecifierKind::Prim(if counts[1] > 0 { unsigned(int) } else { int }));
                    counts = [0; 4];
                }
                name if is_open && self.is_type_name(name) => {
                    let role = self.role(name);
                    let int = self.int_name(name).filter(|_| role.is_none());
                    kind = Some(match int {
                        Some(int) => SpecifierKind::Prim(int),
                        None => {
                            self.pos += 1;
                            let args =
                                if role == Some(Role::TypeTemplate) { self.template_args()? } else { Vec::new() };
                            kind = Some(SpecifierKind::Named(Name { text: name, span: token.span }, args));
                            continue;
                        }
                    });
                }
                _ => break,
            }
            self.pos += 1;
        }
        let [n_signed, n_unsigned, n_short, n_long] = counts;
        let is_sized = counts != [0; 4];
        let prim = match (base, n_short, n_long) {
            (Some("double"), 0, 0) if n_signed + n_unsigned == 0 => Some(Prim::F64),
            (Some("char"), 0, 0) => Some(Prim::I8),
            (Some("int") | None, 1, 0) => Some(Prim::I16),
            (Some("int") | None, 0, 1 | 2) => Some(Prim::I64),
            (Some("int"), 0, 0) => Some(Prim::I32),
            (None, 0, 0) if is_sized => Some(Prim::I32),
            _ => None,
        };
        let prim = match prim {
            Some(prim) if n_signed + n_unsigned <= 1 && n_unsigned == 1 => Some(unsigned(prim)),
            Some(prim) if n_signed + n_unsigned <= 1 => Some(prim),
            _ => None,
        };
        let kind = match (kind, prim) {
            (Some(kind), None) if !is_sized && base.is_none() => kind,
            (None, Some(prim)) => SpecifierKind::Prim(prim),
            (None, None) if !is_sized && base.is_none() => return Err(self.unexpected("a type")),
            _ => return Err(Box::new(c_syntax::no_type(self.since(start)))),
        };
        let [varying, simd] = lengths;
        Ok((storage, Specifier { kind, is_const, varying, simd, short, words, span: self.since(start) }))
    }

    /// `(n)` behind `varying` or `simd`.
    fn length(&mut self) -> Parsed<Expr<'s>> {
        self.expect("(")?;
        let length = self.nested(Self::choice)?;
        self.expect(")")?;
        Ok(length)
    }

    fn struct_specifier(&mut self) -> Parsed<SpecifierKind<'s>> {
        let is_union = self.is("union");
        self.pos += 1;
        let name = if self.is("{") { None } else { Some(self.name("the name of the struct, or `{`")?) };
        if let Some(name) = name
            && self.role(name.text) != Some(Role::TypeTemplate)
        {
            self.declare(name.text, Role::Type);
        }
        if !self.eat("{") {
            return Ok(SpecifierKind::Struct(is_union, name, None));
        }
        let fields = self.nested(|p| {
            let mut fields = Vec::new();
            // Names of fields are no names of types outside.
            p.scoped(|p| {
                while !p.is("}") {
                    fields.push(p.declaration(true)?);
                }
                Ok(())
            })?;
            Ok(fields)
        })?;
        self.expect("}")?;
        Ok(SpecifierKind::Struct(is_union, name, Some(fields)))
    }

    fn enum_specifier(&mut self) -> Parsed<SpecifierKind<'s>> {
        self.expect("enum")?;
        let name = if self.is("{") { None } else { Some(self.name("the name of the enumeration, or `{`")?) };
        if let Some(name) = name {
            self.declare(name.text, Role::Type);
        }
        if !self.eat("{") {
            return Ok(SpecifierKind::Enum(name, None));
        }
        let mut values = Vec::new();
        while !self.is("}") {
            let name = self.name("a name")?;
            self.declare(name.text, Role::Value);
            let value = if self.eat("=") { Some(self.choice()?) } else { None };
            values.push((name, value));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(SpecifierKind::Enum(name, Some(values)))
    }

    // Statements.

    fn statements(&mut self) -> Parsed<Vec<Statement<'s>>> {
        let mut statements = Vec::new();
        while !self.is("}") {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn block(&mut self) -> Parsed<Vec<Statement<'s>>> {
        self.expect("{")?;
        let statements = self.scoped(Self::statements)?;
        self.expect("}")?;
        Ok(statements)
    }

    fn statement(&mut self) -> Parsed<Statement<'s>> {
        self.nested(|p| {
            let labels = if p.is_staged() { p.labels()? } else { Vec::new() };
            let start = p.span();
            let kind = p.statement_kind()?;
            Ok(Statement { labels, kind, span: p.since(start) })
        })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind<'s>> {
        let token = self.token();
        if self.is_ispc()
            && token.kind == Kind::Name
            && let Some(found) = self.statement_of_ispc(token)?
        {
            return Ok(found);
        }
        if token.kind == Kind::Name {
            match token.text {
                "if" => return self.if_statement(),
                "while" => {
                    self.pos += 1;
                    let condition = Some(self.condition()?);
                    let body = Box::new(self.statement()?);
                    return Ok(StatementKind::For { first: None, condition, step: None, body });
                }
                "do" => {
                    self.pos += 1;
                    let body = Box::new(self.statement()?);
                    self.expect("while")?;
                    let condition = self.condition()?;
                    self.expect(";")?;
                    return Ok(StatementKind::DoWhile(body, condition));
                }
                "for" => {
                    self.pos += 1;
                    return self.scoped(Self::for_statement);
                }
                "switch" => {
                    self.pos += 1;
                    let value = self.condition()?;
                    return Ok(StatementKind::Switch(value, self.block()?));
                }
                "case" => {
                    self.pos += 1;
                    let value = self.choice()?;
                    self.expect(":")?;
                    return Ok(StatementKind::Case(value));
                }
                "default" => {
                    self.pos += 1;
                    self.expect(":")?;
                    return Ok(StatementKind::Default);
                }
                "scalar" if self.is_sierra() => {
                    self.pos += 1;
                    let mut mask = None;
                    if self.eat("(") {
                        mask = Some(self.name("a name for the mask")?);
                        self.expect(")")?;
                    }
                    return self.scoped(|p| {
                        mask.into_iter().for_each(|name| p.declare(name.text, Role::Value));
                        Ok(StatementKind::Scalar(mask, Box::new(p.statement()?)))
                    });
                }
                "for_each_active" if self.is_sierra() => {
                    self.pos += 1;
                    self.expect("(")?;
                    let mask = self.name("a name for the mask")?;
                    self.expect(",")?;
                    let lane = self.name("a name for the number of the lane")?;
                    self.expect(")")?;
                    return self.scoped(|p| {
                        [mask, lane].into_iter().for_each(|name| p.declare(name.text, Role::Value));
                        Ok(StatementKind::ForEachActive(mask, lane, Box::new(p.statement()?)))
                    });
                }
                "for_each_unique" if self.is_sierra() => {
                    self.pos += 1;
                    self.expect("(")?;
                    let name = self.name("a name for the value")?;
                    self.expect(",")?;
                    let values = self.assignment()?;
                    self.expect(")")?;
                    return self.scoped(|p| {
                        p.declare(name.text, Role::Value);
                        Ok(StatementKind::ForEachUnique(name, values, Box::new(p.statement()?)))
                    });
                }
                "return" => {
                    self.pos += 1;
                    let value = if self.is(";") { None } else { Some(self.expression()?) };
                    self.expect(";")?;
                    return Ok(StatementKind::Return(value));
                }
                "break" | "continue" => {
                    self.pos += 1;
                    self.expect(";")?;
                    return Ok(if token.text == "break" { StatementKind::Break } else { StatementKind::Continue });
                }
                _ => {}
            }
        }
        if self.is("{") {
            return self.block().map(StatementKind::Block);
        }
        if self.eat(";") {
            return Ok(StatementKind::Empty);
        }
        if self.begins_declaration() {
            return self.declaration(false).map(StatementKind::Declare);
        }
        let value = self.expression()?;
        self.expect(";")?;
        Ok(StatementKind::Value(value))
    }

    fn condition(&mut self) -> Parsed<Expr<'s>> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn if_statement(&mut self) -> Parsed<StatementKind<'s>> {
        if self.ahead(1).text == "constexpr" {
            self.pos += 2;
            let condition = self.condition()?;
            let then = self.statement()?;
            let otherwise = if self.eat("else") { Some(self.statement()?) } else { None };
            return Ok(StatementKind::Decide(Box::new((condition, then, otherwise))));
        }
        let mut arms = Vec::new();
        loop {
            if !(self.is_ispc() && self.eat("cif")) {
                self.expect("if")?;
            }
            let condition = self.condition()?;
            arms.push((condition, self.statement()?));
            if !self.eat("else") {
                return Ok(StatementKind::If(arms, None));
            }
            if !(self.is("if") || self.is_ispc() && self.is("cif")) {
                let otherwise = self.statement()?;
                return Ok(StatementKind::If(arms, Some(Box::new(otherwise))));
            }
        }
    }

    fn for_statement(&mut self) -> Parsed<StatementKind<'s>> {
        self.expect("(")?;
        let start = self.span();
        let first = if self.eat(";") {
            None
        } else if self.begins_declaration() {
            Some(StatementKind::Declare(self.declaration(false)?))
        } else {
            let value = self.expression()?;
            self.expect(";")?;
            Some(StatementKind::Value(value))
        };
        let first = first.map(|kind| Box::new(Statement { labels: Vec::new(), kind, span: self.since(start) }));
        let condition = if self.is(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        let step = if self.is(")") { None } else { Some(self.expression()?) };
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        Ok(StatementKind::For { first, condition, step, body })
    }
}

/// The unsigned integers of as many bits.
pub fn unsigned(prim: Prim) -> Prim {
    match prim {
        Prim::I8 => Prim::U8,
        Prim::I16 => Prim::U16,
        Prim::I32 => Prim::U32,
        Prim::I64 => Prim::U64,
        other => other,
    }
}

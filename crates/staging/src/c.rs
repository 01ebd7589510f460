//! The part of C that Staged-C has: its trees, made of those of the grammar that the dialects of C share.
//!
//! Separate from [`stagedc`](crate::stagedc), which gives them a meaning, and from `nyala_c_syntax`, which knows what is written: here what
//! has several forms gets one, and what Staged-C does not have is said to be missing.
//!
//! What the grammar limits is within each other; a list there that is within each other here, as `else if`, is limited here.

use crate::diagnostics::staging_name;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Sink, Span};
use nyala_c_syntax::Dialect;
use nyala_c_syntax::diagnostics::c_syntax;
use nyala_c_syntax::lexer::{Kind, tokens};
use nyala_c_syntax::parser;
use nyala_c_syntax::syntax::{self, Init, SpecifierKind, Storage};
use nyala_ir::Prim;
use std::rc::Rc;

pub use nyala_c_syntax::syntax::{Binary, Expr, ExprKind, Name, PostfixKind, Unary};

/// Limit on what is within each other here.
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
    /// The type of a conversion.
    pub fn written(&self, (specifier, declarator): &syntax::TypeName) -> Result<Type, Box<Diagnostic>> {
        if declarator.function.is_some() || declarator.is_reference || !declarator.lengths.is_empty() {
            return missing(specifier.span, "conversions to such types", "convert numbers");
        }
        let base = match base(specifier)? {
            Ok(base) => base,
            Err(name) => match self.names.iter().position(|&n| n == name) {
                Some(idx) => Base::Struct(idx as u32),
                None => return Err(Box::new(staging_name::structure(specifier.span, name))),
            },
        };
        Ok(Type { base, pointers: declarator.pointers.len() as u32 })
    }

    /// The type as it is written.
    pub fn show(&self, ty: Type) -> String {
        let of = match ty.base {
            Base::Struct(i) => format!("struct {}", self.names[i as usize]),
            Base::Function(i) => {
                let Signature { ret, params } = &self.signatures[i as usize];
                let params: Vec<String> = params.iter().map(|&p| self.show(p)).collect();
                format!("{} (*)({})", self.show(*ret), params.join(", "))
            }
            Base::Void => "void".to_string(),
            Base::Bool => "bool".to_string(),
            Base::Int => "int".to_string(),
            Base::Float => "float".to_string(),
            Base::Double => "double".to_string(),
            Base::Stage => "stage".to_string(),
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
    Assign(Expr<'s>, Option<Binary>, Expr<'s>),
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

/// Adds what a file declares; `false` where its grammar is at fault, or it has what is missing here, which is reported.
pub fn parse<'s>(file: FileId, text: &'s str, unit: &mut Unit<'s>, sink: &mut Sink) -> bool {
    let tokens = tokens(file, text);
    if let Some(line) = tokens.iter().find(|t| t.kind == Kind::Directive) {
        let hint = "declare what the file uses, and list the program's files";
        sink.push(limitation::not_supported(line.span, "lines for the preprocessor", hint));
        return false;
    }
    let n_before = sink.diagnostics.len();
    let items = parser::parse(tokens, Dialect::StagedC, sink);
    if sink.diagnostics.len() > n_before {
        return false;
    }
    for item in items {
        if let Err(fault) = (Narrower { unit, depth: 0 }).item(item) {
            sink.push(*fault);
        }
    }
    sink.diagnostics.len() == n_before
}

type Narrowed<T> = Result<T, Box<Diagnostic>>;

pub(crate) const STATEMENTS: &str = "write statements one by one";

/// Instead of operators on bits.
pub(crate) const NO_BITS: &str = "compute with `*`, `/` and `%`";

fn missing<T>(span: Span, what: &str, hint: &str) -> Narrowed<T> {
    Err(Box::new(limitation::not_supported(span, what, hint)))
}

struct Narrower<'s, 'k> {
    unit: &'k mut Unit<'s>,
    depth: u32,
}

/// A name with its type, and lengths of arrays behind it.
struct Declared<'s> {
    ty: Type,
    name: Name<'s>,
    lengths: Vec<Option<Expr<'s>>>,
}

impl<'s> Narrower<'s, '_> {
    /// What is `n` levels further in than what is around it.
    fn within<T>(&mut self, n: usize, span: Span, make: impl FnOnce(&mut Self) -> Narrowed<T>) -> Narrowed<T> {
        self.depth += n as u32;
        if self.depth > MAX_DEPTH {
            return Err(Box::new(c_syntax::too_deep(span, MAX_DEPTH)));
        }
        let made = make(self);
        self.depth -= n as u32;
        made
    }

    // --- Declarations.

    fn item(&mut self, item: syntax::Item<'s>) -> Narrowed<()> {
        match item {
            syntax::Item::Function(function) => {
                let Ok(function) = Rc::try_unwrap(function) else { unreachable!("the tree is its only owner") };
                let syntax::Function { storage, specifier, declarator, body, .. } = function;
                check_storage(storage, specifier.span)?;
                let body = FunctionBody::Block(self.statements(body)?);
                let function = self.function(&specifier, declarator, body)?;
                self.unit.functions.push(function);
            }
            syntax::Item::Declaration(syntax::Declaration { storage, specifier, declared }) => {
                check_storage(storage, specifier.span)?;
                if let (SpecifierKind::Struct(false, Some(name), Some(_)), []) = (&specifier.kind, &declared[..]) {
                    let name = *name;
                    let SpecifierKind::Struct(_, _, Some(fields)) = specifier.kind else { unreachable!("just seen") };
                    return self.structure(name, fields);
                }
                if declared.is_empty() {
                    self.base(&specifier)?;
                }
                for (declarator, init) in declared {
                    if declarator.params.is_none() {
                        let hint = "pass it, or declare it in a function";
                        return missing(declarator.span, "variables outside of functions", hint);
                    }
                    let body = self.function_behind_head(init)?;
                    let function = self.function(&specifier, declarator, body)?;
                    self.unit.functions.push(function);
                }
            }
            syntax::Item::Template(template) => return missing(template.name.span, "templates", "write a function"),
            syntax::Item::Specialization(s) => {
                return missing(s.function.specifier.span, "templates", "write a function");
            }
        }
        Ok(())
    }

    fn structure(&mut self, name: Name<'s>, declarations: Vec<syntax::Declaration<'s>>) -> Narrowed<()> {
        let idx = self.struct_idx(name.text);
        let mut fields = Vec::new();
        for syntax::Declaration { specifier, declared, .. } in declarations {
            for (declarator, init) in declared {
                let span = declarator.span;
                if declarator.params.is_some() {
                    return missing(span, "functions in structs", "write a function that takes the struct");
                }
                let Declared { ty, name, lengths } = self.declared(&specifier, declarator)?;
                if !lengths.is_empty() {
                    return missing(
                        span,
                        "arrays in structs",
                        "give each element a field, or keep the array beside the struct",
                    );
                }
                if init.is_some() {
                    return missing(
                        span,
                        "values that fields begin with",
                        "assign them where the variable is declared",
                    );
                }
                fields.push((ty, name));
            }
        }
        self.unit.structs.push(Struct { name, idx, fields });
        Ok(())
    }

    /// What a function is that has no block.
    fn function_behind_head(&mut self, init: Option<Init<'s>>) -> Narrowed<FunctionBody<'s>> {
        let Some(init) = init else { return Ok(FunctionBody::Foreign) };
        let value = match init {
            Init::Value(value) => value,
            Init::List(_, span) => {
                return missing(span, "several functions in a declaration", "declare each for itself");
            }
        };
        let (is_compiled, instance) = match value.kind {
            ExprKind::Compile(instance) => (true, *instance),
            _ => (false, value),
        };
        let ExprKind::Instance(of, args) = instance.kind else { unreachable!("the grammar takes nothing else") };
        let args = args.into_iter().map(|arg| match arg {
            syntax::TemplateArg::Value(value) => Ok(value),
            syntax::TemplateArg::Type(ty) => missing(ty.0.span, "types as arguments", "pass values"),
        });
        let args = args.collect::<Narrowed<_>>()?;
        Ok(if is_compiled { FunctionBody::Compiled(of, args) } else { FunctionBody::Special(of, args) })
    }

    fn function(
        &mut self,
        specifier: &syntax::Specifier<'s>,
        mut declarator: syntax::Declarator<'s>,
        body: FunctionBody<'s>,
    ) -> Narrowed<Function<'s>> {
        let mut params = Vec::new();
        for (specifier, mut declarator) in declarator.params.take().unwrap_or_default() {
            if declarator.name.is_none() {
                if !matches!(body, FunctionBody::Foreign) {
                    return Err(Box::new(c_syntax::no_name(specifier.span)));
                }
                declarator.name = Some(Name { text: "x", span: specifier.span });
            }
            let Declared { mut ty, name, lengths } = self.declared(&specifier, declarator)?;
            ty.pointers += lengths.len() as u32;
            params.push((ty, name));
        }
        let Declared { ty, name, .. } = self.declared(specifier, declarator)?;
        Ok(Function { ty, name, params, body })
    }

    // --- Types.

    fn struct_idx(&mut self, name: &'s str) -> u32 {
        let names = &mut self.unit.names;
        let found = names.iter().position(|&n| n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        found as u32
    }

    fn base(&mut self, specifier: &syntax::Specifier<'s>) -> Narrowed<Base> {
        Ok(match base(specifier)? {
            Ok(base) => base,
            Err(name) => Base::Struct(self.struct_idx(name)),
        })
    }

    fn ty(&mut self, specifier: &syntax::Specifier<'s>, declarator: &mut syntax::Declarator<'s>) -> Narrowed<Type> {
        if declarator.is_reference {
            return missing(declarator.span, "references", "pass a pointer");
        }
        let base = self.base(specifier)?;
        let ty = Type { base, pointers: declarator.pointers.len() as u32 };
        let Some(function) = declarator.function.take() else { return Ok(ty) };
        if function.pointers.len() > 1 || !declarator.lengths.is_empty() {
            let what = "arrays of pointers to functions, and pointers to these";
            return missing(declarator.span, what, "pass the function itself");
        }
        let mut params = Vec::new();
        for (specifier, mut declarator) in function.params {
            params.push(self.within(1, specifier.span, |n| n.ty(&specifier, &mut declarator))?);
        }
        let signature = Signature { ret: ty, params };
        let known = &mut self.unit.signatures;
        let idx = known.iter().position(|s| *s == signature).unwrap_or_else(|| {
            known.push(signature);
            known.len() - 1
        });
        Ok(Type { base: Base::Function(idx as u32), pointers: 0 })
    }

    fn declared(
        &mut self,
        specifier: &syntax::Specifier<'s>,
        mut declarator: syntax::Declarator<'s>,
    ) -> Narrowed<Declared<'s>> {
        let ty = self.ty(specifier, &mut declarator)?;
        let Some(name) = declarator.name else { unreachable!("the grammar takes none without a name") };
        Ok(Declared { ty, name, lengths: declarator.lengths })
    }

    // --- Statements.

    fn statements(&mut self, statements: Vec<syntax::Statement<'s>>) -> Narrowed<Vec<Statement<'s>>> {
        let mut narrowed = Vec::new();
        for statement in statements {
            match statement {
                // Several variables are several statements.
                syntax::Statement { kind: syntax::StatementKind::Declare(declaration), labels, span }
                    if labels.is_empty() && declaration.declared.len() > 1 =>
                {
                    check_storage(declaration.storage, span)?;
                    for (declarator, init) in declaration.declared {
                        let kind = self.declaration(&declaration.specifier, declarator, init)?;
                        narrowed.push(Statement { labels: Vec::new(), kind, span });
                    }
                }
                statement => narrowed.push(self.statement(statement)?),
            }
        }
        Ok(narrowed)
    }

    fn boxed(&mut self, statement: syntax::Statement<'s>) -> Narrowed<Box<Statement<'s>>> {
        self.statement(statement).map(Box::new)
    }

    fn statement(&mut self, statement: syntax::Statement<'s>) -> Narrowed<Statement<'s>> {
        use syntax::StatementKind as Kind;
        let syntax::Statement { labels, kind, span } = statement;
        let kind = match kind {
            Kind::Block(statements) => StatementKind::Block(self.statements(statements)?),
            Kind::Declare(syntax::Declaration { storage, specifier, mut declared }) => {
                check_storage(storage, span)?;
                match (declared.pop(), &declared[..]) {
                    (Some((declarator, init)), []) => self.declaration(&specifier, declarator, init)?,
                    (None, _) => return missing(span, "types within functions", "declare it before the function"),
                    _ => return missing(span, "such declarations of several variables", "declare each for itself"),
                }
            }
            Kind::Value(value) => effect(value),
            Kind::If(mut arms, otherwise) => {
                let n = arms.len();
                return self.within(n, span, |t| {
                    let mut otherwise = otherwise.map(|s| t.boxed(*s)).transpose()?;
                    let mut first = None;
                    while let Some((condition, then)) = arms.pop() {
                        let start = if arms.is_empty() { span } else { condition.span };
                        let span = syntax::through(start, otherwise.as_ref().map_or(then.span, |s| s.span));
                        let kind = StatementKind::If(condition, t.boxed(then)?, otherwise.take());
                        match arms.is_empty() {
                            true => first = Some(kind),
                            false => otherwise = Some(Box::new(Statement { labels: Vec::new(), kind, span })),
                        }
                    }
                    let Some(kind) = first else { unreachable!("an `if` has a condition") };
                    Ok(Statement { labels, kind, span })
                });
            }
            Kind::For { first, condition, step, body } => StatementKind::For {
                first: first.map(|s| self.boxed(*s)).transpose()?,
                condition,
                step: step.map(|e| Box::new(Statement { labels: Vec::new(), span: e.span, kind: effect(e) })),
                body: self.boxed(*body)?,
            },
            Kind::Return(value) => StatementKind::Return(value),
            Kind::Break => StatementKind::Break,
            Kind::Continue => StatementKind::Continue,
            Kind::Empty => StatementKind::Empty,
            Kind::DoWhile(..) => return missing(span, "`do` loops", "write a `while` loop"),
            Kind::Switch(..) | Kind::Case(_) | Kind::Default => {
                return missing(span, "`switch` statements", "write `if` and `else if`");
            }
            Kind::Decide(_)
            | Kind::Scalar(..)
            | Kind::ForEachActive(..)
            | Kind::ForEachUnique(..)
            | Kind::ForEach(..)
            | Kind::ForEachLane(..)
            | Kind::Unmasked(_)
            | Kind::Delete(_)
            | Kind::Sync
            | Kind::Goto(_)
            | Kind::Label(_) => return missing(span, "such statements", "write a loop or an `if`"),
        };
        Ok(Statement { labels, kind, span })
    }

    fn declaration(
        &mut self,
        specifier: &syntax::Specifier<'s>,
        declarator: syntax::Declarator<'s>,
        init: Option<Init<'s>>,
    ) -> Narrowed<StatementKind<'s>> {
        let span = declarator.span;
        if declarator.params.is_some() {
            let body = match init {
                // Whatever is in it, there is none.
                Some(Init::List(..)) => FunctionBody::Block(Vec::new()),
                init => self.function_behind_head(init)?,
            };
            return self.function(specifier, declarator, body).map(|f| StatementKind::Function(Box::new(f)));
        }
        let Declared { ty, name, mut lengths } = self.declared(specifier, declarator)?;
        let value = match init {
            Some(Init::Value(value)) => Some(value),
            _ => None,
        };
        Ok(match (lengths.pop(), &lengths[..]) {
            (None, _) => StatementKind::Declare(ty, name, value),
            (Some(None), []) => StatementKind::Declare(Type { pointers: ty.pointers + 1, ..ty }, name, value),
            (Some(Some(n)), []) => StatementKind::DeclareArray(ty, name, n, value),
            _ => return missing(span, "arrays of arrays", "compute the place in an array of numbers"),
        })
    }
}

/// An expression as a statement.
fn effect(value: Expr<'_>) -> StatementKind<'_> {
    let one = Expr { kind: ExprKind::Int("1"), span: value.span };
    let step = |is_up: bool| Some(if is_up { Binary::Add } else { Binary::Sub });
    let is_step = match value.behind() {
        Some((_, PostfixKind::Increment)) => Some(true),
        Some((_, PostfixKind::Decrement)) => Some(false),
        _ => None,
    };
    match value.kind {
        ExprKind::Postfix(target, _) if let Some(is_up) = is_step => StatementKind::Assign(*target, step(is_up), one),
        ExprKind::Assign(operator, parts) => {
            let [target, right] = *parts;
            StatementKind::Assign(target, operator, right)
        }
        ExprKind::Unary(operator @ (Unary::Increment | Unary::Decrement), target) => {
            StatementKind::Assign(*target, step(operator == Unary::Increment), one)
        }
        kind => StatementKind::Value(Expr { kind, span: value.span }),
    }
}

/// The type of a specifier, or the name of a struct.
fn base<'s>(specifier: &syntax::Specifier<'s>) -> Narrowed<Result<Base, &'s str>> {
    let span = specifier.span;
    Ok(Ok(match &specifier.kind {
        SpecifierKind::Void => Base::Void,
        SpecifierKind::Prim(Prim::Bool) => Base::Bool,
        SpecifierKind::Prim(Prim::I32) => Base::Int,
        SpecifierKind::Prim(Prim::F32) => Base::Float,
        SpecifierKind::Prim(Prim::F64) => Base::Double,
        SpecifierKind::Prim(_) => return missing(span, "integers of other sizes", "write `int`"),
        SpecifierKind::Named(Name { text: "stage", .. }, _) => Base::Stage,
        SpecifierKind::Named(name, _) | SpecifierKind::Struct(false, Some(name), None) => return Ok(Err(name.text)),
        SpecifierKind::Struct(true, ..) => return missing(span, "unions", "declare a struct"),
        SpecifierKind::Struct(..) => return missing(span, "structs within declarations", "declare the struct before"),
        SpecifierKind::Enum(..) => return missing(span, "enumerations", "write an `int`"),
        SpecifierKind::Auto => return missing(span, "types that are left out", "write the type"),
    }))
}

fn check_storage(storage: Storage, span: Span) -> Narrowed<()> {
    match storage {
        Storage::Automatic | Storage::Extern | Storage::ExternC => Ok(()),
        Storage::Static | Storage::Export => missing(span, "`static` declarations", "leave the word out"),
        Storage::Typedef => missing(span, "names for types", "write the type, or declare a struct"),
    }
}

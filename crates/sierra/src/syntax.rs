//! Syntax trees. What may be long without being deep is a list: operators in a row, postfix operators, `else if`.

use nyala_base::Span;
use nyala_ir::Prim;

#[derive(Clone, Copy, Debug)]
pub struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug)]
pub enum Item<'s> {
    Function(Function<'s>),
    Declaration(Declaration<'s>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Storage {
    #[default]
    Automatic,
    Static,
    Extern,
    Typedef,
}

#[derive(Debug)]
pub struct Function<'s> {
    pub storage: Storage,
    pub specifier: Specifier<'s>,
    pub declarator: Declarator<'s>,
    pub body: Vec<Statement<'s>>,
    /// Where the body ends.
    pub end: Span,
}

/// `static const int a = 1, *b;`, or a type alone.
#[derive(Debug)]
pub struct Declaration<'s> {
    pub storage: Storage,
    pub specifier: Specifier<'s>,
    pub declared: Vec<(Declarator<'s>, Option<Init<'s>>)>,
}

#[derive(Debug)]
pub struct Specifier<'s> {
    pub kind: SpecifierKind<'s>,
    pub is_const: bool,
    /// `varying(n)`
    pub varying: Option<Box<Expr<'s>>>,
    /// `simd(n)`, of a function.
    pub simd: Option<Box<Expr<'s>>>,
    pub span: Span,
}

#[derive(Debug)]
pub enum SpecifierKind<'s> {
    Void,
    /// A number or `bool`.
    Prim(Prim),
    Auto,
    Named(Name<'s>),
    /// `None`: the struct is only named.
    Struct(Option<Name<'s>>, Option<Vec<Declaration<'s>>>),
    Enum(Option<Name<'s>>, Option<Vec<(Name<'s>, Option<Expr<'s>>)>>),
}

/// A name, and what its type adds to the specifier. Without a name it is a type.
#[derive(Debug)]
pub struct Declarator<'s> {
    /// For each `*` whether it is constant, and its `varying(n)`.
    pub pointers: Vec<(bool, Option<Expr<'s>>)>,
    /// `&` behind them.
    pub is_reference: bool,
    pub name: Option<Name<'s>>,
    pub params: Option<Vec<(Specifier<'s>, Declarator<'s>)>>,
    /// `[n]`, from the left.
    pub lengths: Vec<Option<Expr<'s>>>,
    pub span: Span,
}

#[derive(Debug)]
pub enum Init<'s> {
    Value(Expr<'s>),
    List(Vec<Init<'s>>, Span),
}

#[derive(Debug)]
pub struct Statement<'s> {
    pub kind: StatementKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum StatementKind<'s> {
    Block(Vec<Statement<'s>>),
    Declare(Declaration<'s>),
    Value(Expr<'s>),
    /// Conditions and what they guard, from the first `if` to the last `else if`.
    If(Vec<(Expr<'s>, Statement<'s>)>, Option<Box<Statement<'s>>>),
    For {
        first: Option<Box<Statement<'s>>>,
        condition: Option<Expr<'s>>,
        step: Option<Expr<'s>>,
        body: Box<Statement<'s>>,
    },
    DoWhile(Box<Statement<'s>>, Expr<'s>),
    /// With [`StatementKind::Case`] and [`StatementKind::Default`] among its statements.
    Switch(Expr<'s>, Vec<Statement<'s>>),
    /// `scalar (m) …`
    Scalar(Option<Name<'s>>, Box<Statement<'s>>),
    /// `for_each_active(m, i) …`
    ForEachActive(Name<'s>, Name<'s>, Box<Statement<'s>>),
    /// `for_each_unique(x, v) …`
    ForEachUnique(Name<'s>, Expr<'s>, Box<Statement<'s>>),
    Case(Expr<'s>),
    Default,
    Return(Option<Expr<'s>>),
    Break,
    Continue,
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
    /// With its digits and suffix.
    Int(&'s str),
    Float(&'s str),
    /// With its quotes.
    Char(&'s str),
    /// Texts one behind the other, with their quotes.
    Text(Vec<&'s str>),
    Bool(bool),
    Null,
    Unary(Unary, Box<Expr<'s>>),
    Cast(Box<TypeName<'s>>, Box<Expr<'s>>),
    /// `float(n)`
    Convert(Prim, Box<Expr<'s>>),
    /// `(T) {1, 2}`
    Literal(Box<TypeName<'s>>, Box<Init<'s>>),
    /// `seq<n>()`
    Sequence(Box<Expr<'s>>),
    /// `current_mask`
    Mask,
    SizeOfType(Box<TypeName<'s>>),
    SizeOf(Box<Expr<'s>>),
    /// Operators that bind equally, from left to right.
    Chain(Box<Expr<'s>>, Vec<(Binary, Expr<'s>)>),
    /// `||` and `&&` in a row.
    Logic(bool, Vec<Expr<'s>>),
    Choose(Box<[Expr<'s>; 3]>),
    Assign(Option<Binary>, Box<[Expr<'s>; 2]>),
    Comma(Vec<Expr<'s>>),
    /// Postfix operators, from left to right.
    Postfix(Box<Expr<'s>>, Vec<Postfix<'s>>),
}

pub type TypeName<'s> = (Specifier<'s>, Declarator<'s>);

#[derive(Debug)]
pub struct Postfix<'s> {
    pub kind: PostfixKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum PostfixKind<'s> {
    Index(Expr<'s>),
    Call(Vec<Expr<'s>>),
    Field(Name<'s>),
    /// `->`
    Arrow(Name<'s>),
    Increment,
    Decrement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Plus,
    Negate,
    Not,
    Complement,
    Deref,
    AddressOf,
    Increment,
    Decrement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Or,
    Xor,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

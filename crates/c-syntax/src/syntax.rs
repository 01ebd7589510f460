//! Syntax trees, of all dialects. What may be long without being deep is a list: operators in a row, postfix operators, `else if`.

use nyala_base::Span;
use nyala_ir::Prim;

/// From the beginning of one place to the end of another. What comes from another file, or from a macro, adds nothing.
pub fn through(start: Span, end: Span) -> Span {
    if start.file == end.file && end.hi > start.hi { Span { hi: end.hi, ..start } } else { start }
}

#[derive(Clone, Copy, Debug)]
pub struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug)]
pub enum Item<'s> {
    Function(std::rc::Rc<Function<'s>>),
    Declaration(Declaration<'s>),
    Template(std::rc::Rc<Template<'s>>),
    Specialization(Specialization<'s>),
}

/// `template <> T f<int>(…) {…}`: the code of a template for some arguments.
#[derive(Debug)]
pub struct Specialization<'s> {
    /// None if they are those that the parameters show.
    pub args: Vec<TemplateArg<'s>>,
    pub function: std::rc::Rc<Function<'s>>,
}

/// A function or a struct for each of some types and integers.
#[derive(Debug)]
pub struct Template<'s> {
    pub name: Name<'s>,
    pub params: Vec<TemplateParam<'s>>,
    pub of: Templated<'s>,
}

#[derive(Debug)]
pub enum Templated<'s> {
    Function(Function<'s>),
    /// The fields.
    Struct(Specifier<'s>),
}

/// `typename T`, or `int n`, which has a type.
#[derive(Debug)]
pub struct TemplateParam<'s> {
    pub name: Name<'s>,
    pub integer: Option<Specifier<'s>>,
}

/// A type or an integer.
#[derive(Debug)]
pub enum TemplateArg<'s> {
    Type(Box<TypeName<'s>>),
    Value(Expr<'s>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Storage {
    #[default]
    Automatic,
    Static,
    Extern,
    /// `extern "C"`
    ExternC,
    /// Of ISPC's dialect: other code calls it.
    Export,
    Typedef,
}

#[derive(Debug)]
pub struct Function<'s> {
    pub storage: Storage,
    pub specifier: Specifier<'s>,
    pub declarator: Declarator<'s>,
    pub body: Vec<Statement<'s>>,
    /// The word `varying` is in it.
    pub has_lanes: bool,
    /// So is `goto`.
    pub has_jumps: bool,
    /// Tasks of it run beside its own code.
    pub has_tasks: bool,
    /// It calls `alloca`.
    pub has_alloca: bool,
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

/// What only ISPC's dialect has among the words of a specifier.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Words {
    /// `uniform` is written.
    pub is_uniform: bool,
    pub is_task: bool,
    /// `unmasked`, of a function.
    pub is_unmasked: bool,
    /// `soa<n>`: how many elements lie side by side, field by field.
    pub soa: Option<u32>,
}

#[derive(Debug)]
pub struct Specifier<'s> {
    pub kind: SpecifierKind<'s>,
    pub is_const: bool,
    /// `varying(n)`
    pub varying: Option<Box<Expr<'s>>>,
    /// `simd(n)`, of a function.
    pub simd: Option<Box<Expr<'s>>>,
    /// `<n>` behind a number: a short vector.
    pub short: Option<Box<Expr<'s>>>,
    pub words: Words,
    pub span: Span,
}

#[derive(Debug)]
pub enum SpecifierKind<'s> {
    Void,
    /// A number or `bool`.
    Prim(Prim),
    Auto,
    /// With the arguments of a template.
    Named(Name<'s>, Vec<TemplateArg<'s>>),
    /// A struct, or a union. `None`: it is only named.
    Struct(bool, Option<Name<'s>>, Option<Vec<Declaration<'s>>>),
    Enum(Option<Name<'s>>, Option<Vec<(Name<'s>, Option<Expr<'s>>)>>),
}

/// A name, and what its type adds to the specifier. Without a name it is a type.
#[derive(Default, Debug)]
pub struct Declarator<'s> {
    /// For each `*` whether it is constant, and its `varying(n)`.
    pub pointers: Vec<(bool, Option<Expr<'s>>)>,
    /// `&` behind them, and its `varying(n)`.
    pub is_reference: bool,
    pub reference_lanes: Option<Box<Expr<'s>>>,
    pub name: Option<Name<'s>>,
    pub params: Option<Vec<(Specifier<'s>, Declarator<'s>)>>,
    /// `(*f)(…)`: what stands before it is the result of a function, to which this is a pointer.
    pub function: Option<Box<FunctionPointer<'s>>>,
    /// `[n]`, from the left.
    pub lengths: Vec<Option<Expr<'s>>>,
    pub rates: Rates,
    /// What a parameter is if there is no argument.
    pub default: Option<std::rc::Rc<Expr<'s>>>,
    pub span: Span,
}

impl Declarator<'_> {
    /// A type alone.
    pub fn at(span: Span) -> Self {
        Declarator { span, ..Declarator::default() }
    }
}

/// What ISPC's dialect says of a declarator.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rates {
    /// The type of the specifier has lanes though it does not say so.
    pub varies: bool,
    /// It is written whether there are lanes: a struct around a field has no say.
    pub is_bound: bool,
}

#[derive(Debug)]
pub struct FunctionPointer<'s> {
    /// As those of a declarator: at least one.
    pub pointers: Vec<(bool, Option<Expr<'s>>)>,
    pub params: Vec<(Specifier<'s>, Declarator<'s>)>,
}

#[derive(Debug)]
pub enum Init<'s> {
    Value(Expr<'s>),
    List(Vec<(Option<Designator<'s>>, Init<'s>)>, Span),
}

/// `.x =` or `[2] =`
#[derive(Debug)]
pub enum Designator<'s> {
    Field(Name<'s>),
    Element(Expr<'s>),
}

#[derive(Debug)]
pub struct Statement<'s> {
    /// `@e:` before it, of Staged-C.
    pub labels: Vec<Expr<'s>>,
    pub kind: StatementKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum StatementKind<'s> {
    Block(Vec<Statement<'s>>),
    Declare(Declaration<'s>),
    Value(Expr<'s>),
    /// `if constexpr (…)`
    Decide(Box<(Expr<'s>, Statement<'s>, Option<Statement<'s>>)>),
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
    /// `foreach (i = a ... b, j = c ... d) …`, or `foreach_tiled`.
    ForEach(Vec<(Name<'s>, Expr<'s>, Expr<'s>)>, Box<Statement<'s>>),
    /// `foreach_active (i) …`
    ForEachLane(Name<'s>, Box<Statement<'s>>),
    /// `unmasked …`
    Unmasked(Box<Statement<'s>>),
    /// `delete p;`
    Delete(Expr<'s>),
    /// `sync;`
    Sync,
    /// `goto l;`
    Goto(Name<'s>),
    /// `l:`
    Label(Name<'s>),
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
    /// In Staged-C, `*` is one.
    Name(&'s str),
    /// `f<int>`; in Staged-C a function with arguments.
    Instance(Name<'s>, Vec<TemplateArg<'s>>),
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
    /// `(T) {1, 2}`
    Literal(Box<TypeName<'s>>, Box<Init<'s>>),
    /// An aggregate, `{1, 2}`, as a value: only Staged-C has it.
    List(Vec<Expr<'s>>),
    /// Compilation at run time, `compile f<n>`: only Staged-C has it
    Compile(Box<Expr<'s>>),
    /// `seq<n>()`
    Sequence(Box<Expr<'s>>),
    /// `current_mask`
    Mask,
    /// `programCount`, and what has its lanes though no number is written.
    Gang,
    /// `uniform new T[n]`, or `new T(init)`.
    New(Box<New<'s>>),
    /// `launch[n, m] f(x)`
    Launch(Box<Launch<'s>>),
    SizeOfType(Box<TypeName<'s>>),
    SizeOf(Box<Expr<'s>>),
    /// Operators that bind equally, from left to right.
    Chain(Box<Expr<'s>>, Vec<(Binary, Expr<'s>)>),
    /// `||` and `&&` in a row.
    Logic(bool, Vec<Expr<'s>>),
    Choose(Box<[Expr<'s>; 3]>),
    Assign(Option<Binary>, Box<[Expr<'s>; 2]>),
    Comma(Vec<Expr<'s>>),
    /// Postfix operators, from left to right; in Staged-C one.
    Postfix(Box<Expr<'s>>, Vec<Postfix<'s>>),
}

impl<'s> Expr<'s> {
    /// What the last postfix operator is behind, and the operator.
    pub fn behind(&self) -> Option<(&Expr<'s>, &PostfixKind<'s>)> {
        match &self.kind {
            ExprKind::Postfix(of, rest) => rest.first().filter(|_| rest.len() == 1).map(|p| (&**of, &p.kind)),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub struct New<'s> {
    /// One for all lanes.
    pub is_uniform: bool,
    pub ty: TypeName<'s>,
    pub count: Option<Expr<'s>>,
    pub init: Option<Init<'s>>,
}

#[derive(Debug)]
pub struct Launch<'s> {
    pub counts: Vec<Expr<'s>>,
    pub task: Name<'s>,
    pub args: Vec<Expr<'s>>,
    /// `sync` follows at once.
    pub waits: bool,
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

impl Binary {
    pub fn word(self) -> &'static str {
        &self.name()["operator".len()..]
    }

    /// The function that a program may define for it.
    pub fn name(self) -> &'static str {
        match self {
            Binary::Or => "operator|",
            Binary::Xor => "operator^",
            Binary::And => "operator&",
            Binary::Eq => "operator==",
            Binary::Ne => "operator!=",
            Binary::Lt => "operator<",
            Binary::Le => "operator<=",
            Binary::Gt => "operator>",
            Binary::Ge => "operator>=",
            Binary::Shl => "operator<<",
            Binary::Shr => "operator>>",
            Binary::Add => "operator+",
            Binary::Sub => "operator-",
            Binary::Mul => "operator*",
            Binary::Div => "operator/",
            Binary::Rem => "operator%",
        }
    }

    /// That of `+=` and the like.
    pub fn assigning_name(self) -> &'static str {
        match self {
            Binary::Or => "operator|=",
            Binary::Xor => "operator^=",
            Binary::And => "operator&=",
            Binary::Shl => "operator<<=",
            Binary::Shr => "operator>>=",
            Binary::Add => "operator+=",
            Binary::Sub => "operator-=",
            Binary::Mul => "operator*=",
            Binary::Div => "operator/=",
            Binary::Rem => "operator%=",
            _ => "",
        }
    }
}

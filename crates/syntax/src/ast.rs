//! The syntax tree: plain data. Expressions and types lie in arenas, so that no pass over the tree, not even dropping
//! it, recurses deeper than [`MAX_DEPTH`]. Later phases keep their results in side tables.

use nyala_base::{FileId, Span};

nyala_base::define_id!(
    /// An expression of a [`Module`].
    pub struct ExprId, "e"
);
nyala_base::define_id!(
    /// A type as written, of a [`Module`].
    pub struct TypeId, "t"
);

/// Limit on the nesting of brackets, prefix operators, blocks and types.
pub const MAX_NESTING: u32 = 256;
/// Limit on the depth of the tree, left-associative chains included.
pub const MAX_DEPTH: u16 = 2000;

/// The contents of one file.
#[derive(Debug, Clone, Default)]
pub struct Module {
    pub file: Option<FileId>,
    /// The path of the module that contains these items: `["a", "m"]` for the file of `mod m;` in `mod a { … }`,
    /// `["std", "text"]` for that library. It is empty for a file given to the compiler, whose items are in no module.
    pub path: Vec<Box<str>>,
    /// Whether the file belongs to a library or is the prelude.
    pub library: bool,
    /// The first names of libraries that belong to packages which this file's package does not depend on.
    pub hidden: Vec<Box<str>>,
    pub items: Vec<Item>,
    pub exprs: Vec<Expr>,
    pub types: Vec<Type>,
    /// Whether the file has syntax errors outside of function bodies, so that its definitions may be incomplete.
    pub broken: bool,
    /// Bodies of functions with syntax errors.
    pub broken_bodies: Vec<Span>,
    /// Whether names may come from a `use` that is not resolved, so that unknown names are not reported.
    pub open_names: bool,
}

impl std::ops::Index<ExprId> for Module {
    type Output = Expr;
    fn index(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }
}

impl std::ops::Index<TypeId> for Module {
    type Output = Type;
    fn index(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: Box<str>,
    pub span: Span,
}

impl Name {
    /// Whether this is `_`, which binds nothing.
    pub fn is_wildcard(&self) -> bool {
        &*self.text == "_"
    }
}

/// `a::b::c[T, U]`, `S[T]::f`.
#[derive(Debug, Clone)]
pub struct Path {
    /// Whether it begins with `::`.
    pub root: bool,
    pub names: Vec<Name>,
    /// The type arguments of names before the last, by the names' indices.
    pub inner_args: Vec<(u32, Vec<TypeId>)>,
    /// The type arguments of the last name.
    pub type_args: Option<Vec<TypeId>>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Item {
    pub kind: ItemKind,
    pub private: bool,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum ItemKind {
    Fn(Box<Fn>),
    Extern(ExternBlock),
    Static(Static),
    Struct(Struct),
    Enum(Enum),
    Alias(Alias),
    Trait(Trait),
    Impl(Impl),
    Mod(Mod),
    Use(Use),
}

/// `@`, `@(e)` or nothing.
#[derive(Debug, Clone, Copy)]
pub enum Filter {
    Never,
    Always(Span),
    When(ExprId),
}

#[derive(Debug, Clone)]
pub struct Fn {
    /// Whether it is marked `priv`, in an `impl`. Elsewhere the item has the mark.
    pub private: bool,
    pub name: Name,
    pub filter: Filter,
    /// `extern fn`: exported.
    pub exported: bool,
    /// The string before the name that sets the symbol.
    pub symbol: Option<(String, Span)>,
    pub type_params: Vec<TypeParam>,
    pub params: Vec<Param>,
    pub result: Ret,
    /// Absent in prototypes.
    pub body: Option<ExprId>,
    pub span: Span,
}

/// `T: Bound`, `const N: i32`.
#[derive(Debug, Clone)]
pub struct TypeParam {
    pub name: Name,
    pub bounds: Vec<TypeId>,
    /// The type of the values that a `const` parameter stands for.
    pub constant: Option<TypeId>,
}

#[derive(Debug, Clone)]
pub struct Param {
    pub filter: Filter,
    /// Whether it is marked `restrict`.
    pub restrict: bool,
    pub pattern: Pattern,
    pub span: Span,
}

/// The result type after `->`.
#[derive(Debug, Clone, Copy)]
pub enum Ret {
    Absent,
    Never(Span),
    Type(TypeId),
}

#[derive(Debug, Clone)]
pub struct ExternBlock {
    /// `"C"` if absent.
    pub convention: Option<(String, Span)>,
    pub fns: Vec<Fn>,
}

#[derive(Debug, Clone)]
pub struct Static {
    pub name: Name,
    pub mutable: bool,
    pub ty: Option<TypeId>,
    pub init: Option<ExprId>,
}

#[derive(Debug, Clone)]
pub struct Struct {
    pub name: Name,
    pub type_params: Vec<TypeParam>,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub struct Field {
    pub name: Name,
    pub ty: TypeId,
    pub private: bool,
}

#[derive(Debug, Clone)]
pub struct Enum {
    pub name: Name,
    pub type_params: Vec<TypeParam>,
    pub options: Vec<EnumOption>,
}

/// `A`, `B(T, i32)`.
#[derive(Debug, Clone)]
pub struct EnumOption {
    pub name: Name,
    pub parts: Vec<TypeId>,
}

/// `trait T[A: B]: Super { fn m(self: &Self) -> …; }`
#[derive(Debug, Clone)]
pub struct Trait {
    pub name: Name,
    pub type_params: Vec<TypeParam>,
    pub supers: Vec<TypeId>,
    /// The methods; those with a body are defaults.
    pub fns: Vec<Fn>,
}

/// `impl[T: Bound] Trait[T] for Type { … }`, `impl Type { … }`
#[derive(Debug, Clone)]
pub struct Impl {
    pub type_params: Vec<TypeParam>,
    pub of: Option<TypeId>,
    pub ty: TypeId,
    pub fns: Vec<Fn>,
    /// The place of the head, up to the brace.
    pub span: Span,
}

/// `mod m { … }`. Without items, it is `mod m;`, whose items are in a file.
#[derive(Debug, Clone)]
pub struct Mod {
    pub name: Name,
    pub items: Option<Vec<Item>>,
}

/// `use a::b::c;`, `use a::b as c;`, `use a::*;`
#[derive(Debug, Clone)]
pub struct Use {
    /// Whether it begins with `::`.
    pub root: bool,
    pub names: Vec<Name>,
    pub all: bool,
    pub alias: Option<Name>,
}

impl Use {
    /// The name that it declares; for `use …::*`, the name of the module.
    pub fn name(&self) -> Option<&Name> {
        self.alias.as_ref().or(self.names.last())
    }
}

#[derive(Debug, Clone)]
pub struct Alias {
    pub name: Name,
    pub type_params: Vec<TypeParam>,
    pub ty: TypeId,
}

#[derive(Debug, Clone)]
pub struct Pattern {
    pub kind: PatternKind,
    pub ty: Option<TypeId>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum PatternKind {
    /// A parameter that consists of a type only, or an error.
    Unnamed,
    Name {
        mutable: bool,
        name: Name,
    },
    Tuple(Vec<Pattern>),
    /// A literal, perhaps with a minus: a number, a char, a bool.
    Literal(ExprId),
    /// `E::A`, `E::B(p, q)`. A single name is one only if parts follow.
    Option {
        path: Path,
        parts: Option<Vec<Pattern>>,
    },
    /// `S { a: p, b }`; `..` leaves the other fields out.
    Struct {
        path: Path,
        fields: Vec<(Name, Pattern)>,
        rest: bool,
    },
}

#[derive(Debug, Clone)]
pub struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum TypeKind {
    Error,
    Path(Path),
    Tuple(Vec<TypeId>),
    Array(TypeId, ExprId),
    Indefinite(TypeId),
    Pointer {
        mutable: bool,
        space: Option<Space>,
        to: TypeId,
    },
    Owned(TypeId),
    Fn {
        type_params: Vec<TypeParam>,
        params: Vec<TypeId>,
        result: Ret,
    },
    Typeof(ExprId),
    Simd(TypeId, ExprId),
    /// A value among type arguments: `4`, `-1`, `true`, `{2 * n}`.
    Const(ExprId),
}

/// An address space, as a number or a word.
#[derive(Debug, Clone)]
pub struct Space {
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// The height of the expression's tree.
    pub depth: u16,
}

#[derive(Debug, Clone)]
pub enum ExprKind {
    /// An error that has been reported.
    Error,
    Int {
        value: u128,
        suffix: Option<Suffix>,
    },
    Float {
        text: String,
        suffix: Option<Suffix>,
    },
    Bool(bool),
    Char(u8),
    /// A string's bytes, including the zero byte at the end.
    Str(Vec<u8>),
    Path(Path),
    Struct {
        path: Path,
        fields: Vec<(Name, ExprId)>,
        /// `..base` gives the fields that `fields` lacks.
        base: Option<ExprId>,
    },
    /// A tuple. `()` is the empty one; there are none with one element.
    Tuple(Vec<ExprId>),
    Array(Vec<ExprId>),
    Repeat(ExprId, ExprId),
    /// `[n: T]`.
    DynArray(ExprId, TypeId),
    Simd(Vec<ExprId>),
    Block(Block),
    Unary(UnaryOp, ExprId),
    AddrOf {
        mutable: bool,
        place: ExprId,
    },
    IncDec {
        inc: bool,
        prefix: bool,
        place: ExprId,
    },
    Binary {
        op: BinaryOp,
        op_span: Span,
        lhs: ExprId,
        rhs: ExprId,
    },
    Assign {
        op: Option<BinaryOp>,
        op_span: Span,
        place: ExprId,
        value: ExprId,
    },
    Cast(ExprId, TypeId),
    Call {
        callee: ExprId,
        args: Vec<ExprId>,
    },
    Field {
        base: ExprId,
        name: Name,
        type_args: Option<Vec<TypeId>>,
    },
    Lambda(Box<Lambda>),
    /// `if`, all its `else if`, and the `else`.
    If {
        arms: Vec<(ExprId, ExprId)>,
        otherwise: Option<ExprId>,
    },
    While {
        cond: ExprId,
        body: ExprId,
    },
    For(Box<For>),
    Match {
        scrutinee: ExprId,
        arms: Vec<Arm>,
    },
    Asm(Box<Asm>),
}

/// `pattern if guard => body`
#[derive(Debug, Clone)]
pub struct Arm {
    pub pattern: Pattern,
    pub guard: Option<ExprId>,
    pub body: ExprId,
}

/// `asm("…" : outs : ins : clobbers : options)`, each operand with its constraint.
#[derive(Debug, Clone, Default)]
pub struct Asm {
    pub template: String,
    pub outs: Vec<(String, ExprId)>,
    pub ins: Vec<(String, ExprId)>,
    pub clobbers: Vec<String>,
    pub options: Vec<(String, Span)>,
}

#[derive(Debug, Clone)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    pub result: Option<ExprId>,
    /// What it is inside of.
    pub marks: Marks,
}

/// Blocks around an expression that say how its operations behave.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Marks {
    /// Inside of `@fast`: operations on floats may be reassociated and contracted.
    pub fast: bool,
    /// Inside of `@racy`: accesses of memory are relaxed atomic operations.
    pub racy: bool,
}

#[derive(Debug, Clone)]
pub enum Stmt {
    Let {
        pattern: Pattern,
        init: Option<ExprId>,
        span: Span,
    },
    Expr(ExprId),
    Item(Box<Item>),
    /// `defer { … }`: a lambda without parameters, which is called where the block ends.
    Defer(ExprId),
}

#[derive(Debug, Clone)]
pub struct Lambda {
    pub filter: Filter,
    pub params: Vec<Param>,
    pub result: Ret,
    pub body: ExprId,
}

#[derive(Debug, Clone)]
pub struct For {
    /// Whether the keyword is `with` instead of `for`.
    pub with: bool,
    pub params: Vec<Param>,
    /// The call of the generator, usually an [`ExprKind::Call`], perhaps inside of `@`, `$`, `@@`.
    pub call: ExprId,
    pub filter: Filter,
    pub body: ExprId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Plus,
    Neg,
    Not,
    Deref,
    /// `~e`.
    Own,
    /// `?e`.
    Known,
    /// `$e`.
    Halt,
    /// `@@e`.
    Unfold,
    /// `@e`.
    Run,
}

impl UnaryOp {
    pub fn text(self) -> &'static str {
        match self {
            UnaryOp::Plus => "+",
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
            UnaryOp::Deref => "*",
            UnaryOp::Own => "~",
            UnaryOp::Known => "?",
            UnaryOp::Halt => "$",
            UnaryOp::Unfold => "@@",
            UnaryOp::Run => "@",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitXor,
    BitAnd,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl BinaryOp {
    pub fn text(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
        }
    }

    pub fn is_comparison(self) -> bool {
        matches!(self, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge)
    }

    pub fn is_shift(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr)
    }
}

/// A literal's type suffix, or a primitive type's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suffix {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Suffix {
    pub fn text(self) -> &'static str {
        match self {
            Suffix::I8 => "i8",
            Suffix::I16 => "i16",
            Suffix::I32 => "i32",
            Suffix::I64 => "i64",
            Suffix::U8 => "u8",
            Suffix::U16 => "u16",
            Suffix::U32 => "u32",
            Suffix::U64 => "u64",
            Suffix::F16 => "f16",
            Suffix::F32 => "f32",
            Suffix::F64 => "f64",
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Suffix::F16 | Suffix::F32 | Suffix::F64)
    }
}

impl ExprKind {
    /// Calls `f` with each direct subexpression, in source order, except for lengths of array types, items, and
    /// literals in patterns.
    pub fn each_child(&self, mut f: impl FnMut(ExprId)) {
        let filter = |filter: &Filter, f: &mut dyn FnMut(ExprId)| {
            if let Filter::When(e) = filter {
                f(*e)
            }
        };
        match self {
            ExprKind::Error
            | ExprKind::Int { .. }
            | ExprKind::Float { .. }
            | ExprKind::Bool(_)
            | ExprKind::Char(_)
            | ExprKind::Str(_)
            | ExprKind::Path(_) => {}
            ExprKind::Struct { fields, base, .. } => fields.iter().map(|f| f.1).chain(*base).for_each(f),
            ExprKind::Tuple(es) | ExprKind::Array(es) | ExprKind::Simd(es) => es.iter().for_each(|e| f(*e)),
            ExprKind::Repeat(a, b) => {
                f(*a);
                f(*b);
            }
            ExprKind::DynArray(n, _) => f(*n),
            ExprKind::Block(block) => {
                for stmt in &block.stmts {
                    match stmt {
                        Stmt::Let { init: Some(e), .. } | Stmt::Expr(e) | Stmt::Defer(e) => f(*e),
                        Stmt::Let { init: None, .. } | Stmt::Item(_) => {}
                    }
                }
                if let Some(e) = block.result {
                    f(e)
                }
            }
            ExprKind::Unary(_, e) | ExprKind::Cast(e, _) => f(*e),
            ExprKind::AddrOf { place, .. } | ExprKind::IncDec { place, .. } => f(*place),
            ExprKind::Binary { lhs, rhs, .. } => {
                f(*lhs);
                f(*rhs);
            }
            ExprKind::Assign { place, value, .. } => {
                f(*place);
                f(*value);
            }
            ExprKind::Call { callee, args } => {
                f(*callee);
                args.iter().for_each(|e| f(*e));
            }
            ExprKind::Field { base, .. } => f(*base),
            ExprKind::Lambda(lambda) => {
                filter(&lambda.filter, &mut f);
                lambda.params.iter().for_each(|p| filter(&p.filter, &mut f));
                f(lambda.body);
            }
            ExprKind::If { arms, otherwise } => {
                for (cond, then) in arms {
                    f(*cond);
                    f(*then);
                }
                if let Some(e) = otherwise {
                    f(*e)
                }
            }
            ExprKind::While { cond, body } => {
                f(*cond);
                f(*body);
            }
            ExprKind::For(looped) => {
                f(looped.call);
                filter(&looped.filter, &mut f);
                looped.params.iter().for_each(|p| filter(&p.filter, &mut f));
                f(looped.body);
            }
            ExprKind::Match { scrutinee, arms } => {
                f(*scrutinee);
                for arm in arms {
                    if let Some(e) = arm.guard {
                        f(e)
                    }
                    f(arm.body);
                }
            }
            ExprKind::Asm(asm) => asm.outs.iter().chain(&asm.ins).for_each(|(_, e)| f(*e)),
        }
    }
}

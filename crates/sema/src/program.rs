//! A checked program: the syntax trees, and side tables with the meanings of names and the types of expressions.

use crate::check::Modules;
use crate::exports::Exports;
use crate::intrinsics::Intrinsic;
use crate::symbols::{Occurrence, Symbol};
use crate::types::{EnumId, Head, Names, ParamId, StructId, TraitId, TraitRef, Ty, TypeTable};
use nyala_base::{FileId, Span};
use nyala_ir::Prim;
use nyala_syntax::ast::{self, BinaryOp, ExprId, Module};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, OnceLock};

nyala_base::define_id!(
    /// A function, with or without body.
    pub struct FnId, "fn"
);
nyala_base::define_id!(
    /// A variable, parameter or named continuation of a function.
    pub struct LocalId, "local"
);
nyala_base::define_id!(
    /// A static.
    pub struct StaticId, "static"
);
nyala_base::define_id!(
    /// A type alias.
    pub struct AliasId, "alias"
);
nyala_base::define_id!(
    /// An `impl`.
    pub struct ImplId, "impl"
);
nyala_base::define_id!(
    /// A module: the namespace of the program, of a library, of the prelude, or of a `mod`.
    pub struct NsId, "ns"
);
nyala_base::define_id!(
    /// A `while` loop.
    pub struct LoopId, "loop"
);

/// The namespace of the prelude.
pub(crate) const PRELUDE: NsId = NsId(0);
/// The namespace of the program's own files.
pub const PROGRAM: NsId = NsId(1);

/// The input of the compiler: the prelude, libraries, and the files of a program. Where names collide, the later one
/// wins where it is visible: a program's own name everywhere in the program, but not in a library.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub prelude: Option<&'a Module>,
    pub libraries: &'a [Arc<Module>],
    pub files: &'a [Arc<Module>],
    /// The names of all libraries that could be used, which are only collected for hints.
    pub exports: &'a (dyn Fn() -> Vec<Exports> + Sync),
}

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entity {
    /// An error that has been reported.
    Error,
    Local(LocalId),
    Fn(FnId),
    Static(StaticId),
    Struct(StructId),
    Enum(EnumId),
    /// An option of an enum.
    Option(EnumId, u32),
    Alias(AliasId),
    Trait(TraitId),
    Module(NsId),
    /// A type parameter, `Self`.
    Type(Ty),
}

/// An expression of the whole program: its number in its module, plus the module's base.
pub type GlobalExpr = u32;

/// What a call of a continuation leaves: `n` times `defer { … }`, beginning with `first`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub first: GlobalExpr,
    pub n: u32,
}

#[derive(Debug)]
pub struct Local {
    pub name: Box<str>,
    pub span: Span,
    pub ty: Ty,
    pub mutable: bool,
    /// The number of the function body that it belongs to.
    pub owner: u32,
    /// The number of blocks around its declaration.
    pub blocks: u32,
    /// The loop around its declaration.
    pub in_loop: Option<LoopId>,
    /// Whether it is used in a function nested in its owner.
    pub captured: bool,
    /// Whether `&` is applied to it, or it is indexed with something other than a literal, which needs its address.
    pub addressed: bool,
    /// For a continuation of a loop: the loop, and whether it is `break`.
    pub loop_cont: Option<(LoopId, bool)>,
    pub used: bool,
    pub declared: Declared,
    /// Whether it is assigned, or an address of it for writing is taken.
    pub changed: bool,
    /// The lambda that a `let` gives to it.
    pub lambda: Option<GlobalExpr>,
}

/// The way in which a local is declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declared {
    Let,
    Parameter,
    /// `return`, `break`, `continue`.
    Implicit,
}

#[derive(Debug, Default)]
pub struct Loop {
    pub parent: Option<LoopId>,
    /// Outer variables that the loop assigns.
    pub assigned: Vec<LocalId>,
    pub assigned_set: FxHashSet<LocalId>,
    pub break_local: Option<LocalId>,
    pub continue_local: Option<LocalId>,
    /// Whether `break` or `continue` is used other than in a call from the loop's own function.
    pub first_class: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FnKind {
    Defined,
    /// A C function with this symbol.
    Foreign(String),
    Intrinsic(Intrinsic),
}

#[derive(Debug)]
pub struct FnInfo<'a> {
    pub ast: &'a ast::Fn,
    pub module: usize,
    pub kind: FnKind,
    pub ty: Ty,
    pub param_tys: Vec<Ty>,
    pub result: Ty,
    /// Whether the declared result type is `!`.
    pub never: bool,
    /// The implicit `return`.
    pub return_local: Option<LocalId>,
    pub top_level: bool,
    pub ns: NsId,
    /// All type parameters that its type may mention: those of enclosing items, then its own.
    pub generics: Arc<[ParamId]>,
    /// The number of those that belong to enclosing items.
    pub n_outer: usize,
    pub owner: FnOwner,
}

/// The trait or impl that a function belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FnOwner {
    None,
    /// A method that the trait requires, with a default if it has a body.
    Trait(TraitId),
    Impl(ImplId),
}

#[derive(Debug)]
pub struct TypeParamInfo {
    pub name: Box<str>,
    pub span: Span,
    pub bounds: Vec<TraitRef>,
    /// Whether some bound is an error, so that the operations it would allow are unknown.
    pub broken: bool,
    /// For a `const` parameter, the type of its values.
    pub constant: Option<nyala_ir::Prim>,
}

#[derive(Debug)]
pub struct StaticInfo<'a> {
    pub ast: &'a ast::Static,
    pub module: usize,
    pub ns: NsId,
    pub ty: Ty,
    /// Whether it is declared inside of a generic item.
    pub generic: bool,
    /// Whether the initializer calls functions or has control flow, so that it is run at compile time.
    pub computed: bool,
}

#[derive(Debug)]
pub struct StructInfo<'a> {
    pub ast: &'a ast::Struct,
    pub ns: NsId,
    pub generics: Arc<[ParamId]>,
    pub n_outer: usize,
    pub fields: Vec<(&'a str, Ty)>,
    pub index: FxHashMap<&'a str, u32>,
}

#[derive(Debug)]
pub struct EnumInfo<'a> {
    pub ast: &'a ast::Enum,
    pub generics: Arc<[ParamId]>,
    pub n_outer: usize,
    /// The types of the parts of each option.
    pub options: Vec<Vec<Ty>>,
    pub index: FxHashMap<&'a str, u32>,
}

#[derive(Debug)]
pub struct TraitInfo<'a> {
    pub ast: &'a ast::Trait,
    /// The type parameters of the enclosing function, then `Self`, then the trait's own.
    pub generics: Arc<[ParamId]>,
    pub n_outer: usize,
    pub supers: Vec<TraitRef>,
    pub methods: FxHashMap<&'a str, FnId>,
    /// The operators it allows, if it is one of the prelude's traits of numbers.
    pub lang: Option<Lang>,
    /// The operator that its method is, if it is one of the prelude's traits of operators.
    pub operator: Option<Operator>,
}

/// The prelude's traits that allow operators (`docs/reference/generics.md`, Bounds). A trait allows what
/// its super traits do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lang {
    /// Comparisons.
    Ord,
    /// Arithmetic, casts.
    Num,
    /// Bits, shifts, indices.
    Int,
    Float,
}

impl Lang {
    /// Whether a primitive type has it.
    pub fn has(self, prim: Prim) -> bool {
        match self {
            Lang::Ord => true,
            Lang::Num => prim != Prim::Bool,
            Lang::Int => prim.is_int(),
            Lang::Float => prim.is_float(),
        }
    }
}

/// An operator that types get by an impl of the prelude's trait of this name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Neg,
    Not,
    /// `==` and `!=`.
    Eq,
    /// `<`, `<=`, `>`, `>=`.
    Less,
    /// `x(i)`.
    Index,
}

impl Operator {
    pub fn from_name(name: &str) -> Option<Operator> {
        Some(match name {
            "Add" => Operator::Add,
            "Sub" => Operator::Sub,
            "Mul" => Operator::Mul,
            "Div" => Operator::Div,
            "Rem" => Operator::Rem,
            "BitAnd" => Operator::BitAnd,
            "BitOr" => Operator::BitOr,
            "BitXor" => Operator::BitXor,
            "Shl" => Operator::Shl,
            "Shr" => Operator::Shr,
            "Neg" => Operator::Neg,
            "Not" => Operator::Not,
            "Eq" => Operator::Eq,
            "Less" => Operator::Less,
            "Index" => Operator::Index,
            _ => return None,
        })
    }

    /// The operator of `op`. `None` for `&&` and `||`, which no trait has.
    pub fn of(op: BinaryOp) -> Option<Operator> {
        Some(match op {
            BinaryOp::And | BinaryOp::Or => return None,
            BinaryOp::Eq | BinaryOp::Ne => Operator::Eq,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => Operator::Less,
            BinaryOp::BitOr => Operator::BitOr,
            BinaryOp::BitXor => Operator::BitXor,
            BinaryOp::BitAnd => Operator::BitAnd,
            BinaryOp::Shl => Operator::Shl,
            BinaryOp::Shr => Operator::Shr,
            BinaryOp::Add => Operator::Add,
            BinaryOp::Sub => Operator::Sub,
            BinaryOp::Mul => Operator::Mul,
            BinaryOp::Div => Operator::Div,
            BinaryOp::Rem => Operator::Rem,
        })
    }

    /// Whether values of this primitive type have the operator.
    pub fn takes(self, prim: Prim) -> bool {
        use Operator::*;
        match self {
            Add | Sub | Mul | Div | Rem | Neg => prim != Prim::Bool,
            BitAnd | BitOr | BitXor | Not => !prim.is_float(),
            Shl | Shr => prim.is_int(),
            Eq | Less => true,
            Index => false,
        }
    }

    /// Whether vectors of such lanes have the operator: comparisons of vectors give no `bool`.
    pub fn takes_lanes(self, prim: Prim) -> bool {
        self.takes(prim) && !matches!(self, Operator::Eq | Operator::Less)
    }

    /// The traits of numbers whose bounds allow the operator.
    pub fn langs(self) -> &'static [Lang] {
        use Operator::*;
        match self {
            Add | Sub | Mul | Div | Rem | Neg => &[Lang::Num, Lang::Int, Lang::Float],
            BitAnd | BitOr | BitXor | Not | Shl | Shr => &[Lang::Int],
            Eq | Less => &[Lang::Ord, Lang::Num, Lang::Int, Lang::Float],
            Index => &[],
        }
    }
}

impl TraitInfo<'_> {
    pub fn self_param(&self) -> ParamId {
        self.generics[self.n_outer]
    }
}

#[derive(Debug)]
pub struct ImplInfo<'a> {
    pub ast: &'a ast::Impl,
    pub module: usize,
    pub ns: NsId,
    pub generics: Arc<[ParamId]>,
    /// The number of those that belong to the enclosing function.
    pub n_outer: usize,
    pub of: Option<TraitRef>,
    pub ty: Ty,
    pub methods: FxHashMap<&'a str, FnId>,
}

/// A lambda or the body of a `for`.
#[derive(Debug, Clone)]
pub struct LambdaInfo {
    pub ty: Ty,
    pub param_tys: Vec<Ty>,
    /// `return`, or `continue` of a loop body.
    pub return_local: Option<LocalId>,
    /// `break` of a `for`.
    pub break_local: Option<LocalId>,
    /// Type parameters, where a generic function is expected; `ty` is the type of one instance then.
    pub generics: Vec<ParamId>,
}

/// The conversion of an expression's value before it is used.
#[derive(Debug, Clone, Copy)]
pub struct Adjust {
    pub to: Ty,
    /// The number of pointers to dereference first, for the receiver of a method.
    pub derefs: u32,
    /// Whether its address is taken.
    pub address: bool,
}

/// The meaning of an application `f(x)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Call,
    Index,
    /// A call of the method of `Index`, whose result points to the place.
    Place,
}

/// The outcome of [`check`](crate::check()). Of a program with errors it has what is known: names that mean nothing are
/// [`Entity::Error`], and expressions without a type have `TypeTable::ERROR`.
#[derive(Debug)]
pub struct Program<'a> {
    pub(crate) modules: Vec<&'a Module>,
    pub(crate) bases: Vec<u32>,
    pub(crate) n_prelude: usize,
    /// The number of modules of the prelude and of libraries, which come first.
    pub(crate) n_libraries: usize,
    pub(crate) types: TypeTable,
    pub(crate) expr_ty: Vec<Ty>,
    pub(crate) adjust: FxHashMap<GlobalExpr, Adjust>,
    pub(crate) resolved: FxHashMap<GlobalExpr, Entity>,
    pub(crate) type_args: FxHashMap<GlobalExpr, Vec<Ty>>,
    pub(crate) cast_to: FxHashMap<GlobalExpr, Ty>,
    pub(crate) call_kind: FxHashMap<GlobalExpr, CallKind>,
    pub(crate) field_idx: FxHashMap<GlobalExpr, u32>,
    /// The `defer { … }` that calls of continuations leave.
    pub(crate) leaves: FxHashMap<GlobalExpr, Leaving>,
    /// The `defer { … }` that runs after another one where both are left.
    pub(crate) defer_around: FxHashMap<GlobalExpr, GlobalExpr>,
    pub(crate) lambdas: FxHashMap<GlobalExpr, LambdaInfo>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) loop_of: FxHashMap<GlobalExpr, LoopId>,
    pub(crate) locals: Vec<Local>,
    pub(crate) fns: Vec<FnInfo<'a>>,
    pub(crate) statics: Vec<StaticInfo<'a>>,
    pub(crate) structs: Vec<StructInfo<'a>>,
    pub(crate) enums: Vec<EnumInfo<'a>>,
    pub(crate) traits: Vec<TraitInfo<'a>>,
    /// The prelude's traits of operators. Expressions that use one are [`resolved`](Self::resolved) to its method.
    pub(crate) operators: FxHashMap<Operator, TraitId>,
    pub(crate) impls: Vec<ImplInfo<'a>>,
    /// The impls of each trait, by the head of the type that they are for.
    pub(crate) impls_of: FxHashMap<TraitId, FxHashMap<Head, Vec<ImplId>>>,
    pub(crate) type_params: Vec<TypeParamInfo>,
    /// The type arguments of generic function values at their uses.
    pub(crate) instantiated: FxHashMap<GlobalExpr, Vec<Ty>>,
    /// By place, the meanings of patterns that name an option or a struct: the option's number, or 0 for a struct.
    pub(crate) patterns: FxHashMap<(FileId, u32, u32), u32>,
    /// The `match` expressions whose last arm need not be tested.
    pub(crate) exhaustive: FxHashSet<GlobalExpr>,
    /// By function body: the immutable variables in memory that a function captures by value, because it outlives that
    /// memory.
    pub(crate) copies: FxHashMap<GlobalExpr, Vec<LocalId>>,
    /// Locals and items by the place of their name.
    pub(crate) declared: FxHashMap<(FileId, u32), Entity>,
    /// The names in the source, other than those of declarations, in no order.
    pub(crate) occurrences: Vec<(Span, Symbol)>,
    /// The statics whose values are constants of types.
    pub(crate) in_types: FxHashSet<StaticId>,
    pub(crate) modules_by_name: Modules<'a>,
    /// All names by place, once somebody asks.
    pub(crate) names: OnceLock<Vec<Occurrence>>,
}

impl Names for Program<'_> {
    fn struct_name(&self, id: StructId) -> String {
        self.structs[id.0 as usize].ast.name.text.to_string()
    }

    fn enum_name(&self, id: EnumId) -> String {
        self.enums[id.0 as usize].ast.name.text.to_string()
    }

    fn trait_name(&self, id: TraitId) -> String {
        self.traits[id.0 as usize].ast.name.text.to_string()
    }

    fn param(&self, id: ParamId) -> String {
        self.type_params[id.0 as usize].name.to_string()
    }
}

impl<'a> Program<'a> {
    /// The functions of the program's own files that could be exported, by name and place.
    pub fn own_functions(&self) -> impl Iterator<Item = (&str, Span)> {
        let is_own = |f: &&FnInfo| f.kind == FnKind::Defined && f.top_level && f.module >= self.n_libraries;
        let own = self.fns.iter().filter(is_own).filter(|f| f.generics.is_empty());
        own.map(|f| (&*f.ast.name.text, f.ast.name.span))
    }

    /// The syntax trees of `input`; nothing is known of them.
    pub(crate) fn new(input: Input<'a>) -> Self {
        let others = input.libraries.iter().chain(input.files).map(|m| &**m);
        let modules: Vec<&'a Module> = input.prelude.into_iter().chain(others).collect();
        let mut bases = Vec::with_capacity(modules.len());
        let mut n_exprs = 0u32;
        for module in &modules {
            bases.push(n_exprs);
            n_exprs += module.exprs.len() as u32;
        }
        let n_prelude = usize::from(input.prelude.is_some());
        Program {
            modules,
            bases,
            n_prelude,
            n_libraries: n_prelude + input.libraries.len(),
            types: TypeTable::new(),
            expr_ty: vec![TypeTable::ERROR; n_exprs as usize],
            adjust: FxHashMap::default(),
            resolved: FxHashMap::default(),
            type_args: FxHashMap::default(),
            cast_to: FxHashMap::default(),
            call_kind: FxHashMap::default(),
            field_idx: FxHashMap::default(),
            leaves: FxHashMap::default(),
            defer_around: FxHashMap::default(),
            lambdas: FxHashMap::default(),
            loops: Vec::new(),
            loop_of: FxHashMap::default(),
            locals: Vec::new(),
            fns: Vec::new(),
            statics: Vec::new(),
            structs: Vec::new(),
            enums: Vec::new(),
            traits: Vec::new(),
            operators: FxHashMap::default(),
            impls: Vec::new(),
            impls_of: FxHashMap::default(),
            type_params: Vec::new(),
            patterns: FxHashMap::default(),
            exhaustive: FxHashSet::default(),
            instantiated: FxHashMap::default(),
            declared: FxHashMap::default(),
            occurrences: Vec::new(),
            in_types: FxHashSet::default(),
            modules_by_name: Modules::default(),
            names: OnceLock::new(),
            copies: FxHashMap::default(),
        }
    }

    /// Whether a function is the `main` of the program itself, not of a module in it.
    pub fn is_main(&self, f: &FnInfo) -> bool {
        f.ns == PROGRAM && f.top_level && &*f.ast.name.text == "main"
    }

    /// The impls of a trait that may apply to types with this head, in source order.
    pub(crate) fn impls_for(&self, of: TraitId, head: Head) -> Vec<ImplId> {
        let Some(all) = self.impls_of.get(&of) else { return Vec::new() };
        let mut out: Vec<ImplId> = match head {
            Head::Any => all.values().flatten().copied().collect(),
            _ => [head, Head::Any].iter().filter_map(|h| all.get(h)).flatten().copied().collect(),
        };
        out.sort_unstable();
        out
    }

    /// The names of the statics whose values are constants of types, in no order.
    pub fn statics_in_types(&self) -> impl Iterator<Item = &ast::Name> {
        self.in_types.iter().map(|id| &self.statics[id.0 as usize].ast.name)
    }

    pub(crate) fn global(&self, module: usize, e: ExprId) -> GlobalExpr {
        self.bases[module] + e.0
    }

    pub(crate) fn declared_at(&self, span: Span) -> Option<Entity> {
        self.declared.get(&(span.file, span.lo)).copied()
    }

    pub(crate) fn local_at(&self, span: Span) -> Option<LocalId> {
        match self.declared_at(span) {
            Some(Entity::Local(id)) => Some(id),
            _ => None,
        }
    }

    pub(crate) fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }
}

//! A checked program: the trees, and in side tables what names mean and which types expressions have.

use crate::intrinsics::Intrinsic;
use crate::types::{EnumId, Head, Names, ParamId, StructId, TraitId, TraitRef, Ty, TypeTable};
use nyala_base::{FileId, Span};
use nyala_syntax::ast::{self, ExprId, Module};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

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
    /// A module: the names of items of the program, of a library, of the prelude, of a `mod`.
    pub struct NsId, "ns"
);
nyala_base::define_id!(
    /// A `while` loop.
    pub struct LoopId, "loop"
);

/// The names of the program's own files; those of the prelude come before.
pub const PROGRAM: NsId = NsId(1);

/// What the compiler is given: the prelude, libraries, and the files of a program. Names of the later win where they are
/// seen: a program's own everywhere in the program, but not in a library.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub prelude: Option<&'a Module>,
    pub libraries: &'a [Module],
    pub files: &'a [Module],
}

/// What a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entity {
    /// Reported already.
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

/// An expression of the whole program: that of a module, shifted by the module's base.
pub type GlobalExpr = u32;

#[derive(Debug)]
pub struct Local {
    pub name: Box<str>,
    pub span: Span,
    pub ty: Ty,
    pub mutable: bool,
    /// The function body (numbered) that it belongs to.
    pub owner: u32,
    /// The loop around its declaration.
    pub in_loop: Option<LoopId>,
    /// Used in a function nested in its owner.
    pub captured: bool,
    /// `&` was applied, or an address is needed for an index that is not a literal.
    pub addressed: bool,
    /// The continuation of a loop: the loop, and whether it is `break`.
    pub loop_cont: Option<(LoopId, bool)>,
    pub used: bool,
    pub declared: Declared,
    /// It is assigned, or an address to write through is taken.
    pub changed: bool,
}

/// How a local comes to be.
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
    /// Variables from outside that the loop assigns.
    pub assigned: Vec<LocalId>,
    pub assigned_set: FxHashSet<LocalId>,
    pub break_local: Option<LocalId>,
    pub continue_local: Option<LocalId>,
    /// `break` or `continue` is used other than in a call from the loop's own function.
    pub first_class: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FnKind {
    Defined,
    /// A C function of this symbol.
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
    /// Result of the function as declared is `!`.
    pub never: bool,
    /// The implicit `return`.
    pub return_local: Option<LocalId>,
    pub top_level: bool,
    pub ns: NsId,
    /// All type parameters that its type may mention: those of what is around it, then its own.
    pub generics: Arc<[ParamId]>,
    /// How many of them are not its own.
    pub n_outer: usize,
    pub owner: FnOwner,
}

/// Where a function stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FnOwner {
    None,
    /// A method that the trait asks for, with its default if it has a body.
    Trait(TraitId),
    Impl(ImplId),
}

#[derive(Debug)]
pub struct TypeParamInfo {
    pub name: Box<str>,
    pub span: Span,
    pub bounds: Vec<TraitRef>,
    /// Some bound is an error: what it would allow is unknown.
    pub broken: bool,
}

#[derive(Debug)]
pub struct StaticInfo<'a> {
    pub ast: &'a ast::Static,
    pub module: usize,
    pub ns: NsId,
    pub ty: Ty,
    /// It stands in something generic.
    pub generic: bool,
    /// The initializer calls functions, or has control flow: it is run when the program is compiled.
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
    /// `Self`, then the trait's own; before them those of the function around it.
    pub generics: Arc<[ParamId]>,
    pub n_outer: usize,
    pub supers: Vec<TraitRef>,
    pub methods: FxHashMap<&'a str, FnId>,
    /// Its operators, if it is one of the prelude's traits of numbers.
    pub lang: Option<Lang>,
}

/// The prelude's traits that allow operators (`docs/design/language.md`, Traits for operators). A trait allows what
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
    /// How many of them are those of the function around it.
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

/// What happens to an expression's value before it is used.
#[derive(Debug, Clone, Copy)]
pub struct Adjust {
    pub to: Ty,
    /// So many pointers are followed first: the receiver of a method.
    pub derefs: u32,
    /// Its address is taken.
    pub address: bool,
}

/// What an application `f(x)` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Call,
    Index,
}

/// The outcome of [`check`](crate::check()).
#[derive(Debug)]
pub struct Program<'a> {
    pub(crate) modules: Vec<&'a Module>,
    pub(crate) bases: Vec<u32>,
    pub(crate) n_prelude: usize,
    /// Modules of the prelude and of libraries, which come first.
    pub(crate) n_libraries: usize,
    pub(crate) types: TypeTable,
    pub(crate) expr_ty: Vec<Ty>,
    pub(crate) adjust: FxHashMap<GlobalExpr, Adjust>,
    pub(crate) resolved: FxHashMap<GlobalExpr, Entity>,
    pub(crate) type_args: FxHashMap<GlobalExpr, Vec<Ty>>,
    pub(crate) cast_to: FxHashMap<GlobalExpr, Ty>,
    pub(crate) call_kind: FxHashMap<GlobalExpr, CallKind>,
    pub(crate) field_idx: FxHashMap<GlobalExpr, u32>,
    pub(crate) array_len: FxHashMap<GlobalExpr, u64>,
    pub(crate) lambdas: FxHashMap<GlobalExpr, LambdaInfo>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) loop_of: FxHashMap<GlobalExpr, LoopId>,
    pub(crate) locals: Vec<Local>,
    pub(crate) fns: Vec<FnInfo<'a>>,
    pub(crate) statics: Vec<StaticInfo<'a>>,
    pub(crate) structs: Vec<StructInfo<'a>>,
    pub(crate) enums: Vec<EnumInfo<'a>>,
    pub(crate) traits: Vec<TraitInfo<'a>>,
    pub(crate) impls: Vec<ImplInfo<'a>>,
    /// The impls of each trait, by what they are for.
    pub(crate) impls_of: FxHashMap<TraitId, FxHashMap<Head, Vec<ImplId>>>,
    pub(crate) type_params: Vec<TypeParamInfo>,
    /// Type arguments of generic function values where they are used.
    pub(crate) instantiated: FxHashMap<GlobalExpr, Vec<Ty>>,
    /// What patterns that name an option or a struct mean, by their places: the option's number, 0 for a struct.
    pub(crate) patterns: FxHashMap<(FileId, u32, u32), u32>,
    /// Whether the last arm of a `match` need not be tested.
    pub(crate) exhaustive: FxHashSet<GlobalExpr>,
    /// Immutable variables in memory that a function takes along, by its body: it outlives that memory.
    pub(crate) copies: FxHashMap<GlobalExpr, Vec<LocalId>>,
    /// Locals and items by the place of their name.
    pub(crate) declared: FxHashMap<(FileId, u32), Entity>,
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
    /// Whether this is where the program begins: no function of a module in it.
    pub fn is_main(&self, f: &FnInfo) -> bool {
        f.ns == PROGRAM && f.top_level && &*f.ast.name.text == "main"
    }

    /// The impls of a trait that may be for types with this head, in the order of the source.
    pub(crate) fn impls_for(&self, of: TraitId, head: Head) -> Vec<ImplId> {
        let Some(all) = self.impls_of.get(&of) else { return Vec::new() };
        let mut out: Vec<ImplId> = match head {
            Head::Any => all.values().flatten().copied().collect(),
            _ => [head, Head::Any].iter().filter_map(|h| all.get(h)).flatten().copied().collect(),
        };
        out.sort_unstable();
        out
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

//! Names and types. Inference is complete within a function, whatever the order of the code. A constraint on a type
//! that is not known yet waits for its variable. At the end of the function, literals get their default types, and
//! types that are still open are errors.

mod calls;
mod collect;
mod exprs;
mod finish;
mod launches;
mod matches;
mod methods;
mod names;
mod patterns;
mod places;
mod stmts;
mod traits;
mod types;
mod warnings;

use crate::diagnostics::*;
use crate::program::*;
use crate::types::{Access, Class, EnumId, Head, Kind, ParamId, StructId, TraitId, TraitRef, Ty, TypeTable};
use names::{Found, Namespace};
use nyala_base::{Diagnostic, Sink, Span};
use nyala_ir::Prim;
use nyala_syntax::ast::{self, ExprId, Module, Name};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Checks names and types of a program. `None` if `sink` has errors then.
pub fn check<'a>(input: &Input<'a>, sink: &mut Sink) -> Option<Program<'a>> {
    let input = *input;
    crate::on_big_stack(move || {
        let mut checker = Checker::new(input, sink);
        checker.collect_all();
        checker.check_all();
        if !checker.sink.has_errors() {
            checker.warn();
        }
        let used = std::mem::take(&mut checker.used_fns);
        let program = checker.finish();
        launches::check_launches(&program, &used, sink);
        (!sink.has_errors()).then_some(program)
    })
}

/// The reason why a type is expected, for messages.
#[derive(Clone, Copy)]
struct Why(Option<(Span, &'static str)>);

const NO_WHY: Why = Why(None);

/// A constraint that waits for the type of a variable.
enum Pending {
    Coerce {
        e: GlobalExpr,
        span: Span,
        from: Ty,
        to: Ty,
        why: Why,
    },
    Field {
        e: GlobalExpr,
        span: Span,
        base: Ty,
        name: Name,
        result: Ty,
        from: Asker,
    },
    /// The method call `x.m(…)`. The context is that of the call.
    Method {
        e: GlobalExpr,
        base: Ty,
        name: Name,
        result: Ty,
        from: Asker,
    },
    /// `ty` must meet the bound.
    Bound {
        span: Span,
        ty: Ty,
        of: TraitRef,
    },
    /// The comparison of two values of type `ty`, which has a result.
    Compare {
        span: Span,
        op: &'static str,
        ty: Ty,
        result: Ty,
    },
    Call {
        e: GlobalExpr,
        span: Span,
        callee: Ty,
        args: Vec<Arg>,
        result: Ty,
    },
    Deref {
        span: Span,
        base: Ty,
        result: Ty,
    },
    /// The address of a place. Its address space is that of a pointer on the way to the place.
    Address {
        e: GlobalExpr,
        place: GlobalExpr,
        access: Access,
        to: Ty,
        result: Ty,
    },
}

/// The location of code that uses a name.
#[derive(Clone, Copy)]
struct Asker {
    ns: NsId,
    looped: Option<LoopId>,
}

/// The inherent methods with one name, by the head of their type.
type MethodsByHead = FxHashMap<Head, Vec<(ImplId, FnId)>>;

/// A function that `x.m` may mean.
#[derive(Clone, Copy)]
enum Method {
    Inherent(ImplId, FnId),
    Trait(TraitId, FnId),
}

/// Whether a name must be given all its type arguments.
#[derive(Clone, Copy, PartialEq)]
enum Arity {
    /// Omitted arguments are inferred.
    Open,
    All,
}

#[derive(Clone, Copy)]
struct Arg {
    e: GlobalExpr,
    ty: Ty,
    span: Span,
    /// The value of an integer literal.
    lit: Option<u128>,
}

/// A check that is made when all types are known.
enum Final<'a> {
    Literal {
        value: u128,
        negative: bool,
        ty: Ty,
        span: Span,
    },
    Cast {
        from: Ty,
        to: Ty,
        span: Span,
    },
    Operand {
        op: &'static str,
        want: Want,
        ty: Ty,
        span: Span,
    },
    Value {
        ty: Ty,
        span: Span,
    },
    Known {
        ty: Ty,
        span: Span,
        what: &'static str,
    },
    Place {
        module: usize,
        e: ExprId,
        need: Need,
        loops: Option<LoopId>,
        span: Span,
    },
    AutoAddress {
        module: usize,
        e: ExprId,
    },
    Match {
        module: usize,
        e: ExprId,
        ty: Ty,
    },
    Irrefutable {
        module: usize,
        pattern: &'a ast::Pattern,
        ty: Ty,
    },
    /// An array is indexed with something other than a literal.
    IndexAddress {
        module: usize,
        e: ExprId,
    },
}

/// The types that an operator accepts.
#[derive(Clone, Copy, PartialEq)]
enum Want {
    Number,
    Integer,
    IntegerOrBool,
    Comparable,
    /// A number or `bool`.
    Lane,
    /// Types that `asm` accepts as operands.
    Register,
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Assign,
    Address,
    MutAddress,
}

/// The function body that is being checked.
#[derive(Clone, Copy)]
struct Context {
    owner: u32,
    current_loop: Option<LoopId>,
    /// The innermost named function.
    function: Option<FnId>,
}

struct Checker<'a, 's> {
    p: Program<'a>,
    sink: &'s mut Sink,
    /// All modules; the prelude's is the first.
    namespaces: Vec<Namespace<'a>>,
    uses: Vec<names::Used<'a>>,
    library_roots: Vec<(&'a [Box<str>], NsId)>,
    /// Modules that are files, by the module around them and their names.
    file_modules: FxHashMap<(NsId, &'a str), NsId>,
    /// The module that each file's items are in.
    module_ns: Vec<NsId>,
    ns: NsId,
    /// Modules whose names are being searched for, through `use …::*`.
    searching: Vec<NsId>,
    /// The type parameters of the current item and of those around it.
    generics: Arc<[ParamId]>,
    /// The names of type parameters in the source.
    param_names: FxHashMap<ParamId, &'a str>,
    /// Methods by name: those of traits. The next table has those of impls without a trait, by the head of the type.
    trait_methods: FxHashMap<&'a str, Vec<(TraitId, FnId)>>,
    inherent_methods: FxHashMap<&'a str, MethodsByHead>,
    /// Bounds that types in declarations must meet, checked once all impls are known.
    deferred: Vec<(Span, Ty, TraitRef)>,
    /// Items are being declared, so that not all impls are known.
    collecting: bool,
    impl_at: FxHashMap<(nyala_base::FileId, u32), ImplId>,
    /// In a method, the number of its body: bodies with this number or a greater one are inside of it.
    method_floor: Option<u32>,
    /// Triples of a static, another static that its initializer needs, and the place of that use.
    static_needs: Vec<(StaticId, StaticId, Span)>,
    declaring: Declared,
    /// Functions that are used by other code.
    used_fns: FxHashSet<FnId>,
    /// Pairs of a body and an outer variable that it uses.
    shared: Vec<(u32, LocalId)>,
    /// For each body, the body around it; then the bodies of lambdas and functions.
    owner_parents: FxHashMap<u32, u32>,
    lambda_owners: FxHashMap<GlobalExpr, u32>,
    fn_owners: FxHashMap<FnId, u32>,
    /// The nesting of searches for impls.
    bound_depth: u32,
    /// The number of impls tried for the current bound.
    bound_steps: u32,
    /// Memoized answers about types without variables, valid until an impl is added; and the bounds required so far.
    met: FxHashMap<(Ty, TraitRef), traits::Meets>,
    required: FxHashSet<(Ty, TraitRef)>,
    scopes: Vec<FxHashMap<&'a str, Entity>>,
    module: usize,
    ctx: Context,
    n_owners: u32,
    pending: Vec<Option<Pending>>,
    /// Number of entries of earlier units.
    pending_base: u32,
    finals: Vec<Final<'a>>,
    /// Locals and pending entries of earlier units end here.
    unit_locals: usize,
    /// Variables of earlier units end here.
    default_from: u32,
    /// The named function around each body.
    function_of: Vec<Option<FnId>>,
    aliases: Vec<Alias<'a>>,
    /// The number of aliases that are being expanded.
    alias_depth: u32,
    /// Names may be missing because of other errors.
    open_names: bool,
    reported_names: FxHashSet<(Option<FnId>, &'a str)>,
    n_suggestions: u32,
    /// `(user, nested function used, locals known then, place)`.
    nested_uses: Vec<(Option<FnId>, FnId, u32, Span)>,
    captures: Vec<(FnId, LocalId)>,
    /// Calls at the end of bodies whose types were still open.
    ends: FxHashSet<GlobalExpr>,
    /// In the initializer of a static, the number of the first body in it.
    static_floor: Option<u32>,
    /// In a filter, where calls are not allowed.
    in_filter: bool,
    /// The parameters before the one whose type is being read, for `typeof`.
    params_so_far: Vec<(&'a ast::Pattern, Ty)>,
    /// Enclosing functions of nested ones.
    parents: FxHashMap<FnId, FnId>,
}

struct Alias<'a> {
    ast: &'a ast::Alias,
    module: usize,
    ns: NsId,
    top_level: bool,
    generics: Arc<[ParamId]>,
    n_outer: usize,
    state: AliasState,
}

#[derive(Clone, Copy)]
enum AliasState {
    Fresh,
    Busy,
    Done(Ty),
}

impl<'a, 's> Checker<'a, 's> {
    fn new(input: Input<'a>, sink: &'s mut Sink) -> Self {
        let modules: Vec<&'a Module> = input.prelude.into_iter().chain(input.libraries).chain(input.files).collect();
        let mut bases = Vec::with_capacity(modules.len());
        let mut n_exprs = 0u32;
        for module in &modules {
            bases.push(n_exprs);
            n_exprs += module.exprs.len() as u32;
        }
        let open_names = modules.iter().any(|m| m.broken || m.open_names);
        let p = Program {
            modules,
            bases,
            n_prelude: usize::from(input.prelude.is_some()),
            n_libraries: usize::from(input.prelude.is_some()) + input.libraries.len(),
            types: TypeTable::new(),
            expr_ty: vec![TypeTable::ERROR; n_exprs as usize],
            adjust: FxHashMap::default(),
            resolved: FxHashMap::default(),
            type_args: FxHashMap::default(),
            cast_to: FxHashMap::default(),
            call_kind: FxHashMap::default(),
            field_idx: FxHashMap::default(),
            array_len: FxHashMap::default(),
            lambdas: FxHashMap::default(),
            loops: Vec::new(),
            loop_of: FxHashMap::default(),
            locals: Vec::new(),
            fns: Vec::new(),
            statics: Vec::new(),
            structs: Vec::new(),
            enums: Vec::new(),
            traits: Vec::new(),
            impls: Vec::new(),
            impls_of: FxHashMap::default(),
            type_params: Vec::new(),
            patterns: FxHashMap::default(),
            exhaustive: FxHashSet::default(),
            instantiated: FxHashMap::default(),
            declared: FxHashMap::default(),
            copies: FxHashMap::default(),
        };
        Checker {
            p,
            sink,
            namespaces: Vec::new(),
            uses: Vec::new(),
            library_roots: Vec::new(),
            file_modules: FxHashMap::default(),
            module_ns: Vec::new(),
            ns: NsId(0),
            searching: Vec::new(),
            generics: Arc::new([]),
            param_names: FxHashMap::default(),
            trait_methods: FxHashMap::default(),
            inherent_methods: FxHashMap::default(),
            deferred: Vec::new(),
            collecting: true,
            impl_at: FxHashMap::default(),
            method_floor: None,
            static_needs: Vec::new(),
            declaring: Declared::Let,
            used_fns: FxHashSet::default(),
            shared: Vec::new(),
            owner_parents: FxHashMap::default(),
            lambda_owners: FxHashMap::default(),
            fn_owners: FxHashMap::default(),
            bound_depth: 0,
            bound_steps: 0,
            met: FxHashMap::default(),
            required: FxHashSet::default(),
            scopes: Vec::new(),
            module: 0,
            ctx: Context { owner: 0, current_loop: None, function: None },
            n_owners: 0,
            pending: Vec::new(),
            pending_base: 0,
            finals: Vec::new(),
            unit_locals: 0,
            default_from: 0,
            function_of: vec![None],
            aliases: Vec::new(),
            alias_depth: 0,
            open_names,
            reported_names: FxHashSet::default(),
            n_suggestions: 0,
            nested_uses: Vec::new(),
            captures: Vec::new(),
            ends: FxHashSet::default(),
            static_floor: None,
            in_filter: false,
            params_so_far: Vec::new(),
            parents: FxHashMap::default(),
        }
    }

    fn ast(&self) -> &'a Module {
        self.p.modules[self.module]
    }

    fn g(&self, e: ExprId) -> GlobalExpr {
        self.p.global(self.module, e)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
    }

    fn limitation(&mut self, span: Span, what: &str, hint: &str) {
        self.report(limitation::not_supported(span, what, hint));
    }

    fn show(&self, ty: Ty) -> String {
        self.p.types.show(ty, &self.p)
    }

    fn show_bound(&self, bound: &TraitRef) -> String {
        let name = &self.p.traits[bound.id.0 as usize].ast.name.text;
        let args: Vec<String> = bound.args.iter().map(|a| self.show(*a)).collect();
        if args.is_empty() { name.to_string() } else { format!("{name}[{}]", args.join(", ")) }
    }

    fn prim(&self, prim: Prim) -> Ty {
        self.p.types.prim(prim)
    }

    fn var(&mut self) -> Ty {
        self.p.types.var(Class::Any)
    }

    /// Adds a name to the innermost scope.
    fn bind(&mut self, name: &'a Name, entity: Entity) {
        if name.is_wildcard() {
            return;
        }
        self.p.declared.insert((name.span.file, name.span.lo), entity);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(&name.text, entity);
        }
    }

    fn new_local(&mut self, name: &str, span: Span, ty: Ty, mutable: bool) -> LocalId {
        self.p.locals.push(Local {
            name: name.into(),
            span,
            ty,
            mutable,
            owner: self.ctx.owner,
            in_loop: self.ctx.current_loop,
            captured: false,
            addressed: false,
            loop_cont: None,
            used: false,
            declared: self.declaring,
            changed: false,
        });
        LocalId(self.p.locals.len() as u32 - 1)
    }

    /// Adds a continuation with an implicit name: `return`, `break`, `continue`.
    fn implicit(&mut self, name: &'static str, span: Span, ty: Ty) -> LocalId {
        let id = self.new_local(name, span, ty, false);
        self.p.locals[id.0 as usize].declared = Declared::Implicit;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, Entity::Local(id));
        }
        id
    }

    // Types that meet.

    fn mismatch(&mut self, span: Span, from: Ty, to: Ty, why: Why) {
        if self.p.types.is_error(from) || self.p.types.is_error(to) {
            return;
        }
        let (found, expected) = (self.show(from), self.show(to));
        let mut diagnostic = type_mismatch::error(span, &found, &expected, why.0);
        let unit = TypeTable::UNIT;
        let (f, t) = (self.p.types.shallow(from), self.p.types.shallow(to));
        let is_literal = |c: &Self, t: Ty, class| c.p.types.as_var(t).is_some_and(|v| c.p.types.class(v) == class);
        let is_like = |c: &Self, t: Ty, class, like: fn(Prim) -> bool| {
            is_literal(c, t, class) || c.p.types.as_prim(t).is_some_and(like)
        };
        let is_number = |c: &Self, t: Ty| c.p.types.as_prim(t).is_some_and(|p| p != Prim::Bool);
        if matches!(self.p.types.kind(f), Kind::Fn(..))
            && !matches!(self.p.types.kind(t), Kind::Fn(..) | Kind::Generic(..))
        {
            diagnostic = diagnostic.hint(type_mismatch::CALL);
        } else if f == unit && t != unit {
            diagnostic = diagnostic.hint(type_mismatch::NO_VALUE);
        } else if t == unit {
            diagnostic = diagnostic.hint(type_mismatch::DROP);
        } else if is_number(self, f) && is_number(self, t) {
            diagnostic = diagnostic.hint(type_mismatch::convert(&expected));
        } else if let (Kind::Ptr { access: Access::Shared, to: a, .. }, Kind::Ptr { access: Access::Mut, to: b, .. }) =
            (self.p.types.kind(f), self.p.types.kind(t))
            && (self.p.types.shallow(a) == self.p.types.shallow(b) || self.p.types.as_var(a).is_some())
        {
            diagnostic = diagnostic.hint(type_mismatch::ADDRESS_MUT);
        } else if let Kind::Ptr { access: Access::Mut, .. } = self.p.types.kind(t)
            && !matches!(self.p.types.kind(f), Kind::Ptr { .. })
        {
            diagnostic = diagnostic.hint(type_mismatch::WRITE_MUT);
        } else if let [Some(int), _] | [_, Some(int)] = [(f, t), (t, f)].map(|(int, float)| {
            let wrong = is_literal(self, int, Class::Int) && is_like(self, float, Class::Float, Prim::is_float);
            wrong.then_some(int)
        }) {
            diagnostic = diagnostic.hint(type_mismatch::FLOAT_LITERAL);
            // The literal may be far away. Point at it, as the other code is not to blame.
            let literal = self.finals.iter().find_map(|f| match f {
                Final::Literal { ty, span, .. } if self.p.types.shallow(*ty) == int => Some(*span),
                _ => None,
            });
            if let Some(literal) = literal.filter(|&l| l != span) {
                diagnostic = diagnostic.other(literal, type_mismatch::INTEGER);
            }
            self.p.types.unify(int, TypeTable::ERROR);
        } else if is_literal(self, f, Class::Float) && is_like(self, t, Class::Int, Prim::is_int) {
            diagnostic = diagnostic.hint(type_mismatch::INT_LITERAL);
        }
        self.report(diagnostic);
        // Types that stay open because of this error are not reported as well.
        for var in self.p.types.open_vars(from).into_iter().chain(self.p.types.open_vars(to)) {
            if self.p.types.class(var) == Class::Any {
                let var = self.p.types.mk(Kind::Var(var));
                self.p.types.poison(var);
            }
        }
    }

    fn unify(&mut self, span: Span, from: Ty, to: Ty, why: Why) -> bool {
        let same = self.p.types.unify(from, to);
        if !same {
            self.mismatch(span, from, to, why);
        }
        same
    }

    /// Converts the value of `e`, of type `from`, to the expected type `to`.
    fn coerce(&mut self, e: GlobalExpr, span: Span, from: Ty, to: Ty, why: Why) {
        let (from, to) = (self.p.types.shallow(from), self.p.types.shallow(to));
        if from == to {
            return;
        }
        if let Some(var) = self.p.types.as_var(from)
            && let Kind::Ptr { access, to: pointee, .. } = self.p.types.kind(to)
            && (access == Access::Shared || self.p.types.class(var) == Class::Any && self.is_address(e))
        {
            if self.p.types.class(var) == Class::Any {
                self.wait(var, Pending::Coerce { e, span, from, to, why });
                return;
            }
            // A literal is no pointer, so its address is taken.
            if self.p.types.unify(from, pointee) {
                self.take_address(e, to);
                return;
            }
            self.mismatch(span, from, to, why);
            return;
        }
        if let Kind::Generic(..) = self.p.types.kind(from)
            && !matches!(self.p.types.kind(to), Kind::Generic(..) | Kind::Ptr { .. } | Kind::Var(_) | Kind::Error)
        {
            let from = self.instantiate_value(e, from, None, span);
            return self.coerce(e, span, from, to, why);
        }
        match self.subtype(from, to) {
            Fit::Same => {}
            Fit::Adjusted => {
                self.p.adjust.insert(e, Adjust { to, derefs: 0, address: false });
            }
            Fit::Address => self.take_address(e, to),
            Fit::No => self.mismatch(span, from, to, why),
        }
    }

    /// Takes the address of `e`, as a pointer is expected.
    fn take_address(&mut self, e: GlobalExpr, to: Ty) {
        self.p.adjust.insert(e, Adjust { to, derefs: 0, address: true });
        let (module, local) = self.locate(e);
        self.finals.push(Final::AutoAddress { module, e: local });
    }

    fn is_address(&self, e: GlobalExpr) -> bool {
        let (module, local) = self.locate(e);
        matches!(self.p.modules[module][local].kind, ast::ExprKind::AddrOf { .. })
    }

    fn locate(&self, e: GlobalExpr) -> (usize, ExprId) {
        let module = self.p.bases.partition_point(|&b| b <= e) - 1;
        (module, ExprId(e - self.p.bases[module]))
    }

    /// Whether `from` is a subtype of `to`. Open types are unified.
    fn subtype(&mut self, from: Ty, to: Ty) -> Fit {
        let (from, to) = (self.p.types.shallow(from), self.p.types.shallow(to));
        if from == to || self.p.types.is_error(from) || self.p.types.is_error(to) {
            self.p.types.unify(from, to);
            return Fit::Same;
        }
        match (self.p.types.kind(from), self.p.types.kind(to)) {
            (Kind::Never, _) => Fit::Same,
            (Kind::Ptr { access: m, space: s, to: a }, Kind::Ptr { access: n, space: t, to: b }) => {
                let (a, b) = (self.p.types.shallow(a), self.p.types.shallow(b));
                let (ka, kb) = (self.p.types.kind(a), self.p.types.kind(b));
                if n == Access::Shared
                    && s == t
                    && matches!(kb, Kind::Ptr { .. })
                    && !matches!(ka, Kind::Ptr { .. } | Kind::Var(_))
                {
                    // `&&T` from a `&T`.
                    return match self.subtype(from, b) {
                        Fit::No => Fit::No,
                        _ => Fit::Address,
                    };
                }
                if s != t || m < n {
                    return Fit::No;
                }
                match (ka, kb) {
                    (Kind::Array(x, _), Kind::Indef(y)) => {
                        if self.p.types.unify(x, y) {
                            Fit::Adjusted
                        } else {
                            Fit::No
                        }
                    }
                    // If the inner pointer is only read, it may allow less: `&&mut T` is a `&&T`.
                    (Kind::Ptr { .. }, Kind::Ptr { .. }) if n == Access::Shared => match self.subtype_inside(a, b) {
                        Fit::Same => Fit::Same,
                        _ => Fit::No,
                    },
                    _ if self.p.types.unify(a, b) => Fit::Same,
                    _ => Fit::No,
                }
            }
            (Kind::Tuple(xs), Kind::Tuple(ys)) if xs.len() == ys.len() => {
                // Equal pairs of types are compared once. Otherwise types nested in types would take exponential time.
                let mut seen: FxHashSet<(Ty, Ty)> = FxHashSet::default();
                let mut fit = Fit::Same;
                for (&x, &y) in xs.iter().zip(ys.iter()).filter(|&(&x, &y)| seen.insert((x, y))) {
                    fit = fit.and(self.subtype_inside(x, y));
                }
                fit
            }
            (Kind::Array(x, n), Kind::Array(y, m)) if n == m => self.subtype_inside(x, y),
            (Kind::Fn(p, r), Kind::Fn(q, s)) => {
                if p.len() != q.len() {
                    return match self.p.types.match_arity(&p, r, &q, s) {
                        Some((a, b)) if self.p.types.unify(a, b) => Fit::Same,
                        _ => Fit::No,
                    };
                }
                let mut fit = Fit::Same;
                for (x, y) in p.iter().zip(q.iter()) {
                    fit = fit.and(self.subtype_inside(*y, *x));
                }
                if self.p.types.is_never(r) && !self.p.types.is_never(s) && self.p.types.as_var(s).is_none() {
                    // A function without return continuation never returns.
                    return fit.and(Fit::Adjusted);
                }
                fit.and(self.subtype_inside(r, s))
            }
            (Kind::Generic(b, _), Kind::Generic(c, _)) if b.len() <= c.len() => self.subtype_generic(from, to, c.len()),
            (_, Kind::Ptr { access: Access::Shared, space: 0, to: pointee })
                if !matches!(self.p.types.kind(from), Kind::Var(_)) =>
            {
                match (self.p.types.kind(from), self.p.types.kind(pointee)) {
                    (Kind::Ptr { .. }, _) => Fit::No,
                    (Kind::Array(x, _), Kind::Indef(y)) if self.p.types.unify(x, y) => Fit::Address,
                    _ => match self.subtype_inside(from, pointee) {
                        Fit::No => Fit::No,
                        _ => Fit::Address,
                    },
                }
            }
            _ if self.p.types.unify(from, to) => Fit::Same,
            _ => Fit::No,
        }
    }

    /// Whether a generic function type is a subtype of another one with `n` parameters.
    fn subtype_generic(&mut self, from: Ty, to: Ty, n: usize) -> Fit {
        let generics = self.skolems(n);
        let skolems: Vec<Ty> = generics.iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
        let (bounds, to) = self.p.types.open(to, &skolems);
        for (param, bounds) in generics.iter().zip(bounds) {
            self.p.type_params[param.0 as usize].bounds = bounds;
        }
        let args: Vec<Ty> = skolems.iter().map(|_| self.var()).collect();
        let (bounds, from) = self.p.types.open(from, &args);
        let fit = self.subtype_inside(from, to);
        let holds = |c: &mut Self, ty: &Ty, b: TraitRef| !matches!(c.meets(*ty, &b), traits::Meets::No);
        if !args.iter().zip(bounds).all(|(ty, bounds)| bounds.into_iter().all(|b| holds(self, ty, b))) {
            return Fit::No;
        }
        if fit == Fit::Same { Fit::Adjusted } else { Fit::No }
    }

    /// New type parameters, to stand for any types.
    fn skolems(&mut self, n: usize) -> Vec<ParamId> {
        let name = |i: usize| ((b'A' + (i % 26) as u8) as char).to_string();
        (0..n).map(|i| self.new_type_param(&name(i), Span::NONE)).collect()
    }

    /// Whether `from` is a subtype of `to` inside of a tuple, array or function, where no address is taken.
    fn subtype_inside(&mut self, from: Ty, to: Ty) -> Fit {
        if self.p.types.as_var(from).is_some() || self.p.types.as_var(to).is_some() {
            return if self.p.types.unify(from, to) { Fit::Same } else { Fit::No };
        }
        match self.subtype(from, to) {
            Fit::Address => Fit::No,
            fit => fit,
        }
    }

    fn wait(&mut self, var: u32, pending: Pending) {
        self.pending.push(Some(pending));
        self.p.types.wait(var, self.pending_base + self.pending.len() as u32 - 1);
    }

    /// Retries the constraints whose types are known now.
    fn solve(&mut self) {
        while let Some(i) = self.p.types.ready.pop() {
            let pending = i.checked_sub(self.pending_base).and_then(|i| self.pending[i as usize].take());
            if let Some(pending) = pending {
                self.retry(pending);
            }
        }
    }

    fn retry(&mut self, pending: Pending) {
        match pending {
            Pending::Coerce { e, span, from, to, why } => self.coerce(e, span, from, to, why),
            Pending::Field { e, span, base, name, result, from } => self.field_of(e, span, base, name, result, from),
            Pending::Call { e, span, callee, args, result } => self.apply(e, span, callee, args, result),
            Pending::Deref { span, base, result } => self.deref(span, base, result),
            Pending::Address { e, place, access, to, result } => self.address(e, place, access, to, result),
            Pending::Method { e, base, name, result, from } => self.method(e, base, name, result, from),
            Pending::Bound { span, ty, of } => self.require(span, ty, of),
            Pending::Compare { span, op, ty, result } => self.compare(span, op, ty, result),
        }
    }
}

/// How a value fits the expected type.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Same,
    /// Its representation changes.
    Adjusted,
    Address,
    No,
}

impl Fit {
    fn and(self, other: Fit) -> Fit {
        match (self, other) {
            (Fit::No, _) | (_, Fit::No) => Fit::No,
            (Fit::Same, Fit::Same) => Fit::Same,
            _ => Fit::Adjusted,
        }
    }
}

/// The candidate most similar to `name`. `None` if none is similar.
pub fn closest<'b>(name: &str, candidates: impl Iterator<Item = &'b str>) -> Option<&'b str> {
    let limit = if name.len() <= 2 { 0 } else { 1 + name.len() / 5 };
    let near = candidates.filter(|c| c.len().abs_diff(name.len()) <= limit && c.len() < 60 && *c != name);
    near.map(|c| (distance(name, c), c)).filter(|(d, _)| *d <= limit).min().map(|(_, c)| c)
}

/// The edit distance; swapping neighboring letters counts as one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut d = (row[j - 1] + same).min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d = d.min(before[j - 2] + 1);
            }
            next.push(d);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

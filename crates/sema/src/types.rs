//! Types during inference: hash-consed, with unification variables and the constraints that wait for these.
//!
//! Function types have one canonical form: `fn(A, fn(B) -> !) -> !` becomes `fn(A) -> B`, and a continuation that takes
//! one tuple takes its components instead.

mod consts;
mod substitute;

pub use consts::{Const, Fault, MAX_LANES};
use nyala_syntax::ast::BinaryOp;

use nyala_ir::Prim;
use rustc_hash::FxHashMap;
use std::sync::Arc;

nyala_base::define_id!(
    /// A type of a [`TypeTable`].
    pub struct Ty, "ty"
);
nyala_base::define_id!(
    /// A struct of the program.
    pub struct StructId, "struct"
);
nyala_base::define_id!(
    /// An enum of the program.
    pub struct EnumId, "enum"
);
nyala_base::define_id!(
    /// A trait of the program.
    pub struct TraitId, "trait"
);
nyala_base::define_id!(
    /// A type parameter of an item, `Self` of a trait included.
    pub struct ParamId, "param"
);

/// A trait with its type arguments, `Self` excluded: the content of a bound.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TraitRef {
    pub id: TraitId,
    pub args: Arc<[Ty]>,
}

/// The access that a pointer allows. Each variant allows everything that the variants before it do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    Shared,
    Mut,
    /// `~T`.
    Owned,
}

impl Access {
    pub fn of(mutable: bool) -> Access {
        if mutable { Access::Mut } else { Access::Shared }
    }

    pub fn is_mut(self) -> bool {
        self != Access::Shared
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// An error that has been reported; it fits every type.
    Error,
    /// The type of expressions that do not return. As the result type, it makes a function a continuation.
    Never,
    Var(u32),
    /// A type parameter, inside of its item.
    Param(ParamId),
    /// A parameter of the enclosing [`Kind::Generic`] of this level, by its position.
    Bound(u8, u32),
    Prim(Prim),
    Tuple(Arc<[Ty]>),
    Struct(StructId, Arc<[Ty]>),
    Enum(EnumId, Arc<[Ty]>),
    /// An array, with its length, which is a constant.
    Array(Ty, Ty),
    Indef(Ty),
    /// A vector of numbers or `bool`s, with the number of lanes.
    Simd(Ty, Ty),
    /// A constant, as an argument or length.
    Const(Const),
    /// A constant that depends on parameters.
    Operation(BinaryOp, Ty, Ty),
    Ptr {
        access: Access,
        space: u8,
        to: Ty,
    },
    Fn(Arc<[Ty]>, Ty),
    /// `fn[A: Bound](A) -> A`: the bounds of each parameter, and the function type, in which the parameters are
    /// [`Kind::Bound`] of this type's level: one more than the levels inside, so that equal types have one form.
    Generic(Arc<[Arc<[TraitRef]>]>, Ty),
}

/// The constraint on a variable that has no type yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    Any,
    /// A primitive type or a type parameter: the argument of a parameter with the bound `Int`, which is checked by
    /// itself. `i32` by default.
    Integral,
    /// A number; `i32` by default.
    Num,
    /// The type of an integer literal.
    Int,
    /// The type of a float literal.
    Float,
}

#[derive(Clone, Copy, Debug)]
enum Var {
    Open(Class),
    Bound(Ty),
}

/// Upper limit on the nesting of types.
const MAX_TYPE_DEPTH: u16 = 200;
/// Upper limit on the steps of one unification.
const MAX_STEPS: u32 = 100_000;

#[derive(Debug, Clone)]
pub struct TypeTable {
    kinds: Vec<Kind>,
    depths: Vec<u16>,
    has_var: Vec<bool>,
    has_param: Vec<bool>,
    /// By type, how deeply generic function types nest in it.
    levels: Vec<u8>,
    index: FxHashMap<Kind, Ty>,
    vars: Vec<Var>,
    /// Ranks for union by rank: the tree of equal variables with the lower rank is hung below the other one.
    ranks: Vec<u8>,
    /// By root variable, the numbers of the constraints that wait for it.
    waiting: FxHashMap<u32, Vec<u32>>,
    /// The numbers of the constraints whose variable now has a type.
    pub ready: Vec<u32>,
    /// Whether a type was nested too deeply and became an error type.
    pub too_deep: bool,
    /// Why a type became an error type, if a constant in it is at fault.
    pub fault: Option<Fault>,
    /// Whether it gets another constant instead.
    replaces_faults: bool,
    /// Pairs of constants that must be equal once their parts are known.
    pub equations: Vec<(Ty, Ty)>,
    steps: u32,
}

impl Default for TypeTable {
    fn default() -> Self {
        TypeTable::new()
    }
}

impl TypeTable {
    pub const ERROR: Ty = Ty(0);
    pub const NEVER: Ty = Ty(1);
    pub const UNIT: Ty = Ty(2);

    pub fn new() -> TypeTable {
        let mut table = TypeTable {
            kinds: Vec::new(),
            depths: Vec::new(),
            has_var: Vec::new(),
            has_param: Vec::new(),
            levels: Vec::new(),
            index: FxHashMap::default(),
            vars: Vec::new(),
            ranks: Vec::new(),
            waiting: FxHashMap::default(),
            ready: Vec::new(),
            too_deep: false,
            fault: None,
            replaces_faults: false,
            equations: Vec::new(),
            steps: 0,
        };
        table.mk(Kind::Error);
        table.mk(Kind::Never);
        table.mk(Kind::Tuple(Arc::new([])));
        for prim in Prim::ALL {
            table.mk(Kind::Prim(prim));
        }
        table
    }

    pub fn prim(&self, prim: Prim) -> Ty {
        Ty(3 + prim as u32)
    }

    pub fn children(kind: &Kind, f: &mut dyn FnMut(Ty)) {
        match kind {
            Kind::Error | Kind::Never | Kind::Var(_) | Kind::Param(_) | Kind::Bound(..) | Kind::Prim(_) => {}
            Kind::Const(_) => {}
            Kind::Tuple(parts) | Kind::Struct(_, parts) | Kind::Enum(_, parts) => parts.iter().for_each(|p| f(*p)),
            Kind::Indef(t) | Kind::Ptr { to: t, .. } => f(*t),
            Kind::Array(a, b) | Kind::Simd(a, b) | Kind::Operation(_, a, b) => {
                f(*a);
                f(*b);
            }
            Kind::Generic(bounds, t) => {
                bounds.iter().flat_map(|b| b.iter()).flat_map(|b| b.args.iter()).for_each(|t| f(*t));
                f(*t);
            }
            Kind::Fn(params, result) => {
                params.iter().for_each(|p| f(*p));
                f(*result);
            }
        }
    }

    pub fn mk(&mut self, kind: Kind) -> Ty {
        if let Some(&ty) = self.index.get(&kind) {
            return ty;
        }
        let kind = match self.check_consts(&kind) {
            Ok(new) => new.unwrap_or(kind),
            Err(fault) => {
                self.fault = self.fault.or(Some(fault));
                match self.possible(kind) {
                    Some(kind) => kind,
                    None => return TypeTable::ERROR,
                }
            }
        };
        if let Some(&ty) = self.index.get(&kind) {
            return ty;
        }
        let mut depth = 0;
        let mut has_var = matches!(kind, Kind::Var(_));
        let mut has_param = matches!(kind, Kind::Param(_));
        let mut level = 0;
        Self::children(&kind, &mut |t| {
            depth = depth.max(self.depths[t.0 as usize] + 1);
            has_var |= self.has_var[t.0 as usize];
            has_param |= self.has_param[t.0 as usize];
            level = level.max(self.levels[t.0 as usize]);
        });
        if let Kind::Generic(..) = kind {
            level += 1;
        }
        if depth > MAX_TYPE_DEPTH {
            self.too_deep = true;
            return TypeTable::ERROR;
        }
        let ty = Ty(self.kinds.len() as u32);
        self.kinds.push(kind.clone());
        self.depths.push(depth);
        self.has_var.push(has_var);
        self.has_param.push(has_param);
        self.levels.push(level);
        self.index.insert(kind, ty);
        ty
    }

    pub fn tuple(&mut self, parts: &[Ty]) -> Ty {
        match parts {
            [one] => *one,
            _ => self.mk(Kind::Tuple(parts.into())),
        }
    }

    pub fn ptr(&mut self, access: Access, to: Ty) -> Ty {
        self.mk(Kind::Ptr { access, space: 0, to })
    }

    /// The type `fn(params) -> result`, in canonical form.
    pub fn func(&mut self, params: &[Ty], result: Ty) -> Ty {
        if self.shallow(result) != TypeTable::NEVER {
            return self.mk(Kind::Fn(params.into(), result));
        }
        if let Some((&last, rest)) = params.split_last()
            && let Kind::Fn(inner, r) = self.kind(last)
            && self.shallow(r) == TypeTable::NEVER
        {
            let result = self.tuple(&inner);
            return self.mk(Kind::Fn(rest.into(), result));
        }
        if let [one] = params
            && let Kind::Tuple(parts) = self.kind(*one)
        {
            return self.mk(Kind::Fn(parts, TypeTable::NEVER));
        }
        self.mk(Kind::Fn(params.into(), TypeTable::NEVER))
    }

    /// The continuation that takes a result of type `result`.
    pub fn cont(&mut self, result: Ty) -> Ty {
        if self.is_error(result) {
            return TypeTable::ERROR;
        }
        self.func(&[result], TypeTable::NEVER)
    }

    pub fn var(&mut self, class: Class) -> Ty {
        self.vars.push(Var::Open(class));
        self.ranks.push(0);
        self.mk(Kind::Var(self.vars.len() as u32 - 1))
    }

    /// The type, with a variable at its top replaced by the type it is bound to.
    pub fn shallow(&self, mut ty: Ty) -> Ty {
        while let Kind::Var(v) = self.kinds[ty.0 as usize] {
            match self.vars[v as usize] {
                Var::Open(_) => break,
                Var::Bound(t) => ty = t,
            }
        }
        ty
    }

    /// The kind of a type, with a variable at its top replaced and functions in canonical form.
    pub fn kind(&mut self, ty: Ty) -> Kind {
        let ty = self.shallow(ty);
        let kind = self.kinds[ty.0 as usize].clone();
        if let Kind::Fn(params, result) = &kind
            && self.has_var[ty.0 as usize]
            && self.shallow(*result) == TypeTable::NEVER
        {
            let again = self.func(params, TypeTable::NEVER);
            return self.kinds[again.0 as usize].clone();
        }
        kind
    }

    /// The kind of a type, with a variable at its top replaced.
    pub fn view(&self, ty: Ty) -> &Kind {
        &self.kinds[self.shallow(ty).0 as usize]
    }

    pub fn head(&self, ty: Ty) -> Head {
        match &self.kinds[self.shallow(ty).0 as usize] {
            Kind::Error | Kind::Var(_) | Kind::Param(_) | Kind::Bound(..) => Head::Any,
            // No impl is for a constant.
            Kind::Const(_) | Kind::Operation(..) => Head::Any,
            Kind::Never => Head::Never,
            Kind::Prim(p) => Head::Prim(*p),
            Kind::Tuple(parts) => Head::Tuple(parts.len()),
            Kind::Struct(id, _) => Head::Struct(*id),
            Kind::Enum(id, _) => Head::Enum(*id),
            Kind::Array(..) => Head::Array,
            Kind::Indef(_) => Head::Indef,
            Kind::Simd(..) => Head::Simd,
            Kind::Ptr { .. } => Head::Ptr,
            Kind::Fn(..) => Head::Fn,
            Kind::Generic(..) => Head::Generic,
        }
    }

    /// The kind of a type without variables.
    pub fn final_kind(&self, ty: Ty) -> &Kind {
        &self.kinds[ty.0 as usize]
    }

    /// Whether the type nests deeper than is allowed for instances.
    pub fn is_deep(&self, ty: Ty) -> bool {
        self.depths[ty.0 as usize] > MAX_TYPE_DEPTH / 3
    }

    /// Whether a type contains a generic function type.
    pub fn has_generic(&self, ty: Ty) -> bool {
        self.levels[self.shallow(ty).0 as usize] > 0
    }

    pub fn has_param(&self, ty: Ty) -> bool {
        self.has_param[ty.0 as usize]
    }

    pub fn is_error(&self, ty: Ty) -> bool {
        self.shallow(ty) == TypeTable::ERROR
    }

    pub fn is_never(&self, ty: Ty) -> bool {
        self.shallow(ty) == TypeTable::NEVER
    }

    /// The variable that `ty` is, if it has no type yet.
    pub fn as_var(&self, ty: Ty) -> Option<u32> {
        match self.kinds[self.shallow(ty).0 as usize] {
            Kind::Var(v) => Some(v),
            _ => None,
        }
    }

    pub fn class(&self, var: u32) -> Class {
        match self.vars[var as usize] {
            Var::Open(class) => class,
            Var::Bound(_) => Class::Any,
        }
    }

    /// The kind of a type. `None` if the type contains variables.
    pub fn known(&self, ty: Ty) -> Option<&Kind> {
        (!self.has_var[ty.0 as usize]).then(|| &self.kinds[ty.0 as usize])
    }

    pub fn as_prim(&self, ty: Ty) -> Option<Prim> {
        match self.kinds[self.shallow(ty).0 as usize] {
            Kind::Prim(p) => Some(p),
            _ => None,
        }
    }

    /// Lets constraint `who` become ready once `var` gets a type.
    pub fn wait(&mut self, var: u32, who: u32) {
        self.waiting.entry(var).or_default().push(who);
    }

    pub fn n_vars(&self) -> u32 {
        self.vars.len() as u32
    }

    /// The variable as a type, if it is still open.
    pub fn open_var(&mut self, var: u32) -> Option<Ty> {
        match self.vars[var as usize] {
            Var::Open(_) => Some(self.mk(Kind::Var(var))),
            Var::Bound(_) => None,
        }
    }

    fn bind(&mut self, var: u32, ty: Ty) -> bool {
        let class = self.class(var);
        if let Some(other) = self.as_var(ty) {
            if other == var {
                return true;
            }
            let joined = match (class, self.class(other)) {
                (Class::Int, Class::Float) | (Class::Float, Class::Int) => return false,
                (a, b) => a.max(b),
            };
            let (ranks, ty) = ((self.ranks[var as usize], self.ranks[other as usize]), self.shallow(ty));
            let (var, other, ty) = if ranks.0 > ranks.1 {
                (other, var, self.mk(Kind::Var(var)))
            } else {
                self.ranks[other as usize] += u8::from(ranks.0 == ranks.1);
                (var, other, ty)
            };
            self.vars[other as usize] = Var::Open(joined);
            self.vars[var as usize] = Var::Bound(ty);
            if let Some(mut moved) = self.waiting.remove(&var) {
                let to = self.waiting.entry(other).or_default();
                if to.len() < moved.len() {
                    std::mem::swap(to, &mut moved);
                }
                to.append(&mut moved);
            }
            return true;
        }
        let fits = match (class, self.as_prim(ty)) {
            (Class::Any, _) => true,
            (Class::Integral, p) => p.is_some() || self.is_param(ty) || self.is_error(ty),
            (Class::Num, p) => p.is_some_and(|p| p != Prim::Bool) || self.is_error(ty),
            (Class::Int, p) => p.is_some_and(Prim::is_int) || self.is_error(ty),
            (Class::Float, p) => p.is_some_and(Prim::is_float) || self.is_error(ty),
        };
        if !fits || self.occurs(var, ty) {
            return false;
        }
        self.vars[var as usize] = Var::Bound(ty);
        if let Some(woken) = self.waiting.remove(&var) {
            self.ready.extend(woken);
        }
        true
    }

    fn is_param(&self, ty: Ty) -> bool {
        matches!(self.kinds[self.shallow(ty).0 as usize], Kind::Param(_) | Kind::Bound(..))
    }

    /// Restricts an open `ty` to numbers, as an operator requires.
    pub fn make_number(&mut self, ty: Ty) {
        if let Some(var) = self.as_var(ty)
            && self.class(var) == Class::Any
        {
            self.vars[var as usize] = Var::Open(Class::Num);
        }
    }

    fn occurs(&mut self, var: u32, ty: Ty) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            let ty = self.shallow(ty);
            if !self.has_var[ty.0 as usize] || !seen.insert(ty) {
                continue;
            }
            if self.kinds[ty.0 as usize] == Kind::Var(var) {
                return true;
            }
            Self::children(&self.kinds[ty.0 as usize], &mut |t| work.push(t));
        }
        false
    }

    /// Binds the open variables in `ty` to the error type, so that no annotation is asked for.
    pub fn poison(&mut self, ty: Ty) {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            let ty = self.shallow(ty);
            if !self.has_var[ty.0 as usize] || !seen.insert(ty) {
                continue;
            }
            match self.kinds[ty.0 as usize] {
                Kind::Var(var) => {
                    self.bind(var, TypeTable::ERROR);
                }
                _ => Self::children(&self.kinds[ty.0 as usize], &mut |t| work.push(t)),
            }
        }
    }

    /// Unifies both types. Returns false if they cannot be equal.
    pub fn unify(&mut self, a: Ty, b: Ty) -> bool {
        self.steps = 0;
        self.unify_step(a, b)
    }

    /// Unifies both types, unless one is a pointer and the other is not.
    pub fn unify_if_equal(&mut self, a: Ty, b: Ty) -> bool {
        let (a, b) = (self.shallow(a), self.shallow(b));
        // A pointer must not become the type of its pointee.
        let head = |t: &Self, ty: Ty| matches!(t.kinds[ty.0 as usize], Kind::Ptr { .. });
        head(self, a) == head(self, b) && self.unify(a, b)
    }

    fn unify_step(&mut self, a: Ty, b: Ty) -> bool {
        let (a, b) = (self.shallow(a), self.shallow(b));
        self.steps += 1;
        if a == b {
            return true;
        }
        if a == TypeTable::ERROR || b == TypeTable::ERROR {
            self.poison(a);
            self.poison(b);
            return true;
        }
        if self.steps > MAX_STEPS {
            return false;
        }
        match (self.kind(a), self.kind(b)) {
            (Kind::Var(v), _) => self.bind(v, b),
            (_, Kind::Var(v)) => self.bind(v, a),
            (Kind::Tuple(x), Kind::Tuple(y)) if x.len() == y.len() => self.unify_all(&x, &y),
            (Kind::Struct(i, x), Kind::Struct(j, y)) if i == j && x.len() == y.len() => self.unify_all(&x, &y),
            (Kind::Enum(i, x), Kind::Enum(j, y)) if i == j && x.len() == y.len() => self.unify_all(&x, &y),
            (Kind::Array(x, n), Kind::Array(y, m)) | (Kind::Simd(x, n), Kind::Simd(y, m)) => {
                self.unify_step(n, m) && self.unify_step(x, y)
            }
            (Kind::Operation(..), _) | (_, Kind::Operation(..)) => self.unify_operations(a, b),
            (Kind::Indef(x), Kind::Indef(y)) => self.unify_step(x, y),
            (Kind::Ptr { access: m, space: s, to: x }, Kind::Ptr { access: n, space: t, to: y }) => {
                m == n && s == t && self.unify_step(x, y)
            }
            (Kind::Generic(b, x), Kind::Generic(c, y)) => b == c && self.unify_step(x, y),
            (Kind::Fn(p, r), Kind::Fn(q, s)) => {
                if p.len() == q.len() {
                    return self.unify_all(&p, &q) && self.unify_step(r, s);
                }
                let Some((p, q)) = self.match_arity(&p, r, &q, s) else { return false };
                self.unify_step(p, q)
            }
            _ => false,
        }
    }

    fn unify_all(&mut self, xs: &[Ty], ys: &[Ty]) -> bool {
        xs.iter().zip(ys).all(|(x, y)| self.unify_step(*x, *y))
    }

    /// Function types with different numbers of parameters may still be equal while they are open. Returns the two
    /// types that must be equal then, the one from the first function first.
    pub fn match_arity(&mut self, p: &[Ty], r: Ty, q: &[Ty], s: Ty) -> Option<(Ty, Ty)> {
        let (r_never, s_never) = (self.is_never(r), self.is_never(s));
        if r_never && s_never {
            let open = |t: &TypeTable, ts: &[Ty]| ts.len() == 1 && t.as_var(ts[0]).is_some();
            if open(self, p) {
                return Some((p[0], self.tuple(q)));
            }
            if open(self, q) {
                return Some((self.tuple(p), q[0]));
            }
            return None;
        }
        // `fn(A, ?k) -> !` against `fn(A) -> B`.
        if r_never && p.len() == q.len() + 1 {
            let k = self.cont(s);
            let full: Vec<Ty> = q.iter().copied().chain([k]).collect();
            return Some((self.tuple_of(p), self.tuple_of(&full)));
        }
        if s_never && q.len() == p.len() + 1 {
            let k = self.cont(r);
            let full: Vec<Ty> = p.iter().copied().chain([k]).collect();
            return Some((self.tuple_of(&full), self.tuple_of(q)));
        }
        None
    }

    /// A tuple type, even for one component.
    fn tuple_of(&mut self, parts: &[Ty]) -> Ty {
        self.mk(Kind::Tuple(parts.into()))
    }

    pub fn has_open_var(&mut self, ty: Ty) -> bool {
        let ty = self.resolve(ty);
        self.has_var[ty.0 as usize]
    }

    /// The type as a user writes it, with `_` for open parts. Long types are cut off.
    pub fn show(&self, ty: Ty, names: &dyn Names) -> String {
        let mut out = String::new();
        self.write(ty, names, &mut out);
        out
    }

    fn write(&self, ty: Ty, names: &dyn Names, out: &mut String) {
        if out.len() > 200 {
            if !out.ends_with('…') {
                out.push('…');
            }
            return;
        }
        let list = |parts: &[Ty], out: &mut String| {
            for (i, &p) in parts.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                self.write(p, names, out);
            }
        };
        let named = |name: String, args: &[Ty], out: &mut String| {
            out.push_str(&name);
            if !args.is_empty() {
                out.push('[');
                list(args, out);
                out.push(']');
            }
        };
        let ty = self.shallow(ty);
        match &self.kinds[ty.0 as usize] {
            Kind::Error => out.push('?'),
            Kind::Never => out.push('!'),
            Kind::Var(v) => out.push_str(match self.class(*v) {
                Class::Any => "_",
                Class::Num => "number",
                Class::Int | Class::Integral => "integer",
                Class::Float => "float",
            }),
            Kind::Param(id) => out.push_str(&names.param(*id)),
            Kind::Bound(level, i) => out.push_str(&bound_name(*level, *i)),
            Kind::Prim(p) => out.push_str(p.name()),
            Kind::Tuple(parts) => {
                out.push('(');
                list(parts, out);
                out.push(')');
            }
            Kind::Struct(id, args) => named(names.struct_name(*id), args, out),
            Kind::Enum(id, args) => named(names.enum_name(*id), args, out),
            Kind::Array(t, n) | Kind::Simd(t, n) => {
                if let Kind::Simd(..) = self.kinds[ty.0 as usize] {
                    out.push_str("simd");
                }
                out.push('[');
                self.write(*t, names, out);
                out.push_str(" * ");
                self.write(*n, names, out);
                out.push(']');
            }
            Kind::Const(value) => out.push_str(&value.show()),
            Kind::Operation(op, a, b) => {
                out.push('{');
                self.write(*a, names, out);
                out.push_str(&format!(" {} ", op.text()));
                self.write(*b, names, out);
                out.push('}');
            }
            Kind::Indef(t) => {
                out.push('[');
                self.write(*t, names, out);
                out.push(']');
            }
            Kind::Ptr { access, space, to } => {
                out.push_str(match (access, *space) {
                    (Access::Owned, _) => "~",
                    (Access::Mut, 0) => "&mut ",
                    (Access::Mut, _) => "&mut",
                    (Access::Shared, _) => "&",
                });
                if *space != 0 {
                    out.push_str(&format!("[{space}]"));
                }
                self.write(*to, names, out);
            }
            Kind::Fn(params, result) => {
                out.push_str("fn(");
                list(params, out);
                out.push_str(") -> ");
                self.write(*result, names, out);
            }
            Kind::Generic(bounds, body) => {
                out.push_str("fn[");
                let level = self.levels[ty.0 as usize];
                for (i, bounds) in bounds.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(&bound_name(level, i as u32));
                    for (j, bound) in bounds.iter().enumerate() {
                        out.push_str(if j == 0 { ": " } else { " + " });
                        named(names.trait_name(bound.id), &bound.args, out);
                    }
                }
                out.push(']');
                let mut inner = String::new();
                self.write(*body, names, &mut inner);
                out.push_str(inner.strip_prefix("fn").unwrap_or(&inner));
            }
        }
    }
}

/// The outermost constructor of a type. A type can be an instance of another only if their heads agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Head {
    /// A type parameter, an open type or an error, which agree with every head.
    Any,
    Prim(Prim),
    Struct(StructId),
    Enum(EnumId),
    Tuple(usize),
    Array,
    Indef,
    Simd,
    Ptr,
    Fn,
    Generic,
    Never,
}

/// The names of the items that types mention.
pub trait Names {
    fn struct_name(&self, id: StructId) -> String;
    fn enum_name(&self, id: EnumId) -> String;
    fn trait_name(&self, id: TraitId) -> String;
    fn param(&self, id: ParamId) -> String;
}

fn bound_name(level: u8, i: u32) -> String {
    let letter = (b'A' + (i % 26) as u8) as char;
    if level == 1 && i < 26 { letter.to_string() } else { format!("{letter}{}", u32::from(level) + i / 26) }
}

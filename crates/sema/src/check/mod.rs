//! Names and types. Inference is complete within a function, whatever the order of the code. A constraint on a type
//! that is not known yet waits for its variable. At the end of the function, literals get their default types, and
//! types that are still open are errors.
//!
//! [`Checker`] holds the program under construction and a few tables. Tables with functions of their own are in
//! `namespaces`, `bounds`, `methods`, `types`, `bodies`, `order` and `unit`; the rest of the files checks one kind of code
//! each.

mod bodies;
mod bounds;
mod calls;
mod coerce;
mod collect;
mod consts;
mod declarations;
mod exprs;
mod finish;
mod launches;
mod matches;
mod methods;
mod names;
mod namespaces;
mod operators;
mod order;
mod patterns;
mod places;
mod stmts;
mod traits;
mod types;
mod unit;
mod warnings;

use crate::diagnostics::*;
use crate::program::*;
use crate::symbols::Symbol;
use crate::types::{Access, Class, EnumId, Head, Kind, ParamId, StructId, TraitId, TraitRef, Ty, TypeTable};
use bodies::{Bodies, Context};
use bounds::{Bounds, Meets};
use coerce::Fit;
use methods::Impls;
use names::Found;
pub(crate) use namespaces::Namespaces;
use namespaces::{Scopes, Unknown};
use nyala_base::{Diagnostic, Sink, Span};
use nyala_ir::Prim;
use nyala_syntax::ast::{self, ExprId, Module, Name};
use order::Uses;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use types::{Alias, AliasState, Aliases, Signature};
use unit::{Final, Need, Pending, Unit, Want};

/// Checks names and types of a program. Only a program without errors can be [lowered](crate::lower()).
pub fn check<'a>(input: &Input<'a>, sink: &mut Sink) -> Program<'a> {
    let input = *input;
    crate::on_big_stack(move || {
        let mut checker = Checker::new(input, sink);
        checker.collect_all();
        checker.check_all();
        if !checker.sink.has_errors() {
            checker.warn();
        }
        let used = std::mem::take(&mut checker.uses.fns);
        checker.p.modules_by_name = Modules {
            namespaces: std::mem::take(&mut checker.namespaces),
            aliases: std::mem::take(&mut checker.aliases.all).into_iter().map(|a| a.ast).collect(),
            params: checker.named_params(),
        };
        let program = checker.finish();
        launches::check_launches(&program, &used, sink);
        program
    })
}

/// The names that modules have, and the aliases in them.
#[derive(Debug, Default)]
pub(crate) struct Modules<'a> {
    pub namespaces: Namespaces<'a>,
    pub aliases: Vec<&'a ast::Alias>,
    /// Type parameters, by the places of their names.
    pub params: Vec<(Span, Ty)>,
}

/// The reason why a type is expected, for messages.
#[derive(Clone, Copy)]
struct Why(Option<(Span, &'static str)>);

const NO_WHY: Why = Why(None);

/// The location of code that uses a name.
#[derive(Clone, Copy)]
struct Asker {
    ns: NsId,
    looped: Option<LoopId>,
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

/// The file whose code is being checked, and its module. The module may also be one inside of it.
#[derive(Clone, Copy)]
struct At {
    module: usize,
    ns: NsId,
}

/// The program under construction, the place that is being checked, and tables, each with one subject.
struct Checker<'a, 's> {
    p: Program<'a>,
    sink: &'s mut Sink,
    at: At,
    /// The body that is being checked.
    ctx: Context,
    /// All modules.
    namespaces: Namespaces<'a>,
    /// The scopes around the code that is being checked.
    scopes: Scopes<'a>,
    unknown: Unknown<'a>,
    /// The names that types of the current item may refer to.
    signature: Signature<'a>,
    aliases: Aliases<'a>,
    impls: Impls<'a>,
    bounds: Bounds,
    /// All bodies so far.
    bodies: Bodies,
    /// The uses of functions and statics so far.
    uses: Uses,
    /// The `defer { … }` of the blocks around the code so far, each with the number of blocks around it.
    deferred: Vec<(u32, GlobalExpr)>,
    /// The constraints and checks of the function that is being checked.
    unit: Unit<'a>,
}

impl<'a, 's> Checker<'a, 's> {
    fn new(input: Input<'a>, sink: &'s mut Sink) -> Self {
        let p = Program::new(input);
        Checker {
            sink,
            at: At { module: 0, ns: PRELUDE },
            ctx: Context::default(),
            namespaces: Namespaces::of_files(&p),
            scopes: Scopes::default(),
            unknown: Unknown::new(&p, input.exports),
            signature: Signature::default(),
            aliases: Aliases::default(),
            impls: Impls::default(),
            bounds: Bounds::default(),
            bodies: Bodies::new(),
            uses: Uses::default(),
            deferred: Vec::new(),
            unit: Unit::default(),
            p,
        }
    }

    fn ast(&self) -> &'a Module {
        self.p.modules[self.at.module]
    }

    fn g(&self, e: ExprId) -> GlobalExpr {
        self.p.global(self.at.module, e)
    }

    /// The type parameters that have a name of their own, unlike `Self`.
    fn named_params(&mut self) -> Vec<(Span, Ty)> {
        let all = self.p.type_params.iter().enumerate().map(|(i, p)| (p.span, ParamId(i as u32)));
        let is_named = |id: &ParamId| self.signature.names.get(id).is_some_and(|n| *n != "Self");
        let named: Vec<(Span, ParamId)> = all.filter(|(_, id)| is_named(id)).collect();
        named.into_iter().map(|(span, id)| (span, self.p.types.mk(Kind::Param(id)))).collect()
    }

    /// Notes for editors what the name at `span` means.
    fn note(&mut self, span: Span, meaning: Symbol) {
        self.p.occurrences.push((span, meaning));
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
        self.scopes.insert(&name.text, entity);
    }

    fn new_local(&mut self, name: &str, span: Span, ty: Ty, mutable: bool) -> LocalId {
        self.p.locals.push(Local {
            name: name.into(),
            span,
            ty,
            mutable,
            owner: self.ctx.owner,
            blocks: self.ctx.blocks,
            in_loop: self.ctx.current_loop,
            captured: false,
            addressed: false,
            loop_cont: None,
            used: false,
            declared: Declared::Let,
            changed: false,
            lambda: None,
        });
        LocalId(self.p.locals.len() as u32 - 1)
    }

    /// Adds a continuation with an implicit name: `return`, `break`, `continue`.
    fn implicit(&mut self, name: &'static str, span: Span, ty: Ty) -> LocalId {
        let id = self.new_local(name, span, ty, false);
        self.p.locals[id.0 as usize].declared = Declared::Implicit;
        self.scopes.insert(name, Entity::Local(id));
        id
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

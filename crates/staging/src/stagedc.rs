//! Staged-C (section 5): functions in a part of C, with labels that say when a statement is executed, to a term of the calculus.
//!
//! Separate from [`c`](crate::c), which knows what of C there is, and from DeepCPS, which has the same terms for another text. Here are
//! functions, and bodies as they are made.
//!
//! **Functions.** `T f(params)` is `λ(go, params, return)`. The stage `go` is the invocation: a call binds it with ⊤. In the
//! function, a label `f` means `go`. `g = f<args>` passes on the `go` of `g`, so that of `f` only what waits for known values is
//! executed before somebody calls `g`.
//!
//! **Their order.** Functions are made in an order in which those that a function mentions come first. Functions that mention each
//! other are one `fix`, of a function that calls another one with all of them: `fix all = λ(k). k f g`. The body of each is within
//! a call of `all`, which binds their names. Such a group costs two more steps for each call.
//!
//! **When a statement is executed.** Without a label, after the statement before it in the text (`*`), the first one at `go`. With
//! a label, when that is true. A statement becomes calls in a row, each within the continuation of the one before it. An operation
//! waits for the statement's stage and its operands. A call, `return` and a copy wait for the stage only: what they pass on may be
//! unknown. So `*` is the stage of the continuation of the statement's last call.
//!
//! **Where control goes on.** A block ends, a loop goes on, a `void` function returns when the statements before the first label in
//! it have been executed. What is behind a label is executed for itself. So a loop is unrolled although what has a label in it
//! waits. What follows the loop has as its `*` that of the last statement of the last turn: loops pass this stage on, as `sfor` of
//! Listing 8 does.
//!
//! **The earlier statement first.** A statement whose label is that of an earlier one in its block is staged on the earlier one. In
//! general the order of statements is that of places in the term, and evaluation executes nothing that has effects. So a residual
//! program runs in the order of its places ([`Program::in_order`]).
//!
//! **Structs.** A variable of a struct is one variable of the calculus for each *leaf*: a field that is a number, a pointer, a
//! stage or a function, or such a field of a field. So some fields may be known and others not. Functions take and return leaves.
//! In memory, a struct is the tuple of its fields; `field` and `put_field` load and store a leaf.
//!
//! **Functions as values.** A pointer to a function is bound to the function. Its call is that of a variable, which is executed
//! early where it is known.
//!
//! **Variables.** An assignment binds another variable of the calculus. Loops, and what follows an `if` both of whose branches go
//! on, are functions that take the assigned variables.
//!
//! **Other code.** Calls of functions that `extern` declares, and `print`, are executed when the program runs.
//!
//! **Functions that are made while the program runs.** `g = compile f<args>` is a call of the built-in function `compile` with the
//! function that `g = f<args>` would be, but for the arguments, which are computed before.
//!
//! **Exports.** Other code calls functions of numbers and arrays. An exported `f` is `λ(params, return)[call] f call params
//! return`, the call executed as soon as `f` is bound.
//!
//! **What waits for a function.** Evaluation looks for active bodies in all that follows when something is bound that stages depend
//! on. So stages mention functions above only where they must: in what may be executed before the function around it is called.
//! Exports and specialized functions stand and are executed at their places in the row of functions.

use crate::c::{
    Base, Binary, Expr, ExprKind, Function, FunctionBody, Name, PostfixKind, Signature, Statement, StatementKind, Type,
    Unary, Unit, parse,
};
use crate::diagnostics::{staging_name, staging_syntax, staging_type};
use crate::names::{Declaration, Names};
use crate::prim::Prim;
use crate::program::{Export, Program, Said, Signatures};
use crate::term::{Body, Const, Lam, Stage, StageNode, Terms, Value, Var};
use crate::types::{Ty, TyNode, Types};
use nyala_base::diagnostics::limitation;
use nyala_base::{FileId, Sink, Sources, Span};
use rustc_hash::{FxHashMap, FxHashSet};

mod compiled;
mod functions;
mod order;
mod places;
mod statements;
mod values;

/// Deeper stages get a name.
const MAX_STAGE: u32 = 8;

const VOID: Type = Type { base: Base::Void, pointers: 0 };
const BOOL: Type = Type { base: Base::Bool, pointers: 0 };
const INT: Type = Type { base: Base::Int, pointers: 0 };
const FLOAT: Type = Type { base: Base::Float, pointers: 0 };
const DOUBLE: Type = Type { base: Base::Double, pointers: 0 };
const STAGE: Type = Type { base: Base::Stage, pointers: 0 };

/// Reads files, at least one, which know each other's declarations. `None`: what is wrong is in the sink.
pub(crate) fn read(sources: &Sources, files: &[FileId], Said { sink, names }: Said) -> Option<Program> {
    let mut unit = Unit::default();
    let mut has_faults = false;
    for &file in files {
        has_faults |= !parse(file, sources.text(file), &mut unit, sink);
    }
    let &file = files.last().filter(|_| !has_faults)?;
    let mut terms = Terms::default();
    let always = terms.stage(StageNode::Const(true));
    let mut translator = Translator {
        unit: &unit,
        structs: vec![None; unit.names.len()],
        terms,
        types: Types::default(),
        basic: FxHashMap::default(),
        of_vars: FxHashMap::default(),
        places: FxHashMap::default(),
        scope: Vec::new(),
        names: FxHashMap::default(),
        declared: Vec::new(),
        uses: Vec::new(),
        locals: Vec::new(),
        functions: Vec::new(),
        late: FxHashSet::default(),
        flow: Flow::new(always),
        at: always,
        ret: None,
        has_labels: false,
        loops: Vec::new(),
        exported: Value::Const(Const::Stage(true)),
        n_exported: 0,
        faults: Sink::default(),
    };
    let end = Span::new(file, sources.text(file).len(), sources.text(file).len());
    let body = translator.program(&unit.functions, end);
    if let Some(names) = names {
        translator.say_names(names);
    }
    let failed = translator.faults.has_errors();
    sink.diagnostics.append(&mut translator.faults.diagnostics);
    let error = translator.types.add(TyNode::Error);
    let Translator { terms, types, of_vars, places, .. } = translator;
    let (body, exports) = body;
    let signatures = Signatures { types, error, of_vars, places };
    (!failed).then_some(Program { terms, body, exports, signatures, is_bundled: true, in_order: true })
}

/// A fault, which is reported.
struct Reported;

type Done<T> = Result<T, Reported>;

#[derive(Clone, Copy)]
struct Operand {
    value: Value,
    ty: Type,
    span: Span,
    /// The exact value of a literal, which takes the type of the other operand.
    exact: Option<f64>,
    /// Bound by the statement itself.
    is_new: bool,
}

#[derive(Clone, Copy)]
enum Entity {
    /// The first of its leaves.
    Local(Type, usize),
    Function(usize),
}

/// A leaf of a variable.
#[derive(Clone, Copy)]
struct Local {
    ty: Type,
    /// `None` until it is assigned.
    value: Option<Value>,
}

struct Known<'s> {
    name: &'s str,
    ret: Type,
    params: Vec<Type>,
    /// Bound to it.
    var: Var,
    /// The invocation, within the function itself.
    go: Option<Var>,
    /// The function is other code's.
    is_foreign: bool,
    is_used: bool,
    is_recursive: bool,
    /// It is bound before a function that mentions it is.
    is_bound_above: bool,
}

/// A call, the rest of the body is within one of its arguments.
struct Pending {
    stage: Stage,
    callee: Callee,
    args: Vec<Value>,
    /// Arguments behind the one that has the rest of the body.
    after: Vec<Value>,
    params: Vec<Var>,
    own: Var,
    span: Span,
}

enum Callee {
    /// The rest is an argument.
    Value(Value),
    /// The rest is what is called.
    Rest,
    /// With the name that the arguments' only function has within itself.
    Fix(Var, Lam),
    /// With the name of what calls the rest with functions that call each other.
    Group(Var, Lam),
}

/// The body that is being made.
struct Flow {
    pending: Vec<Pending>,
    /// When the last statement has been executed.
    last: Stage,
    /// When all before the first label have been.
    control: Stage,
    has_labels: bool,
    /// With a call that has no continuation.
    end: Option<Body>,
    /// Labels of the block, with the stage behind the last statement that has them.
    labels: FxHashMap<Vec<Var>, Stage>,
}

impl Flow {
    fn new(stage: Stage) -> Flow {
        Flow {
            pending: Vec::new(),
            last: stage,
            control: stage,
            has_labels: false,
            end: None,
            labels: FxHashMap::default(),
        }
    }
}

/// The loop around a statement.
#[derive(Clone)]
struct Loop {
    exit: Var,
    /// What goes on with the next turn; its locals, and whether it takes a stage.
    next: Option<Var>,
    carried: Vec<usize>,
    is_staged: bool,
}

struct Translator<'s> {
    unit: &'s Unit<'s>,
    /// Those that are declared, by [`Unit::names`].
    structs: Vec<Option<places::Struct<'s>>>,
    terms: Terms,
    types: Types,
    basic: FxHashMap<Type, Ty>,
    of_vars: FxHashMap<Var, Ty>,
    places: FxHashMap<Var, Span>,
    /// Names that are declared, in order, and what each means, the visible one last.
    scope: Vec<&'s str>,
    names: FxHashMap<&'s str, Vec<(Entity, usize)>>,
    /// Where names are declared, and where which of them are used.
    declared: Vec<(Name<'s>, Entity)>,
    uses: Vec<(Span, usize)>,
    locals: Vec<Local>,
    functions: Vec<Known<'s>>,
    /// Variables that nothing but a call of the function around them binds.
    late: FxHashSet<Var>,
    flow: Flow,
    /// The stage of what the statement executes next.
    at: Stage,
    /// What the function returns to, and its type.
    ret: Option<(Var, Type)>,
    /// A statement of the function has a label.
    has_labels: bool,
    loops: Vec<Loop>,
    /// [`Program::is_bundled`]
    exported: Value,
    n_exported: usize,
    faults: Sink,
}

fn is_number(ty: Type) -> bool {
    ty.pointers == 0 && matches!(ty.base, Base::Int | Base::Float | Base::Double)
}

impl<'s> Translator<'s> {
    // --- Variables, types and stages.

    fn show(&self, ty: Type) -> String {
        self.unit.show(ty)
    }

    /// The type of a leaf, or of a pointer.
    fn ty(&mut self, ty: Type) -> Ty {
        if let Some(&known) = self.basic.get(&ty) {
            return known;
        }
        let node = match (ty.pointers, ty.base) {
            (0, Base::Bool) => TyNode::Bool,
            (0, Base::Int) => TyNode::Int,
            (0, Base::Float) => TyNode::Float,
            (0, Base::Double) => TyNode::Double,
            (0, Base::Stage) => TyNode::Stage,
            (0, Base::Function(i)) => {
                let unit = self.unit;
                let Signature { ret, params } = &unit.signatures[i as usize];
                self.function_node(*ret, params, false)
            }
            // In memory only.
            (0, Base::Struct(_)) => {
                let fields: Vec<Ty> = self.fields(ty).into_iter().map(|f| self.ty(f)).collect();
                let parts = self.types.add(TyNode::Fn(fields.into()));
                TyNode::Fn([parts].into())
            }
            (0, Base::Void) => TyNode::Error,
            _ => TyNode::Array(self.ty(Type { pointers: 0, ..ty })),
        };
        let made = self.types.add(node);
        self.basic.insert(ty, made);
        made
    }

    fn fn_ty(&mut self, params: &[Type]) -> Ty {
        let params: Vec<Ty> = self.leaves_of(params).into_iter().map(|p| self.ty(p)).collect();
        self.types.add(TyNode::Fn(params.into()))
    }

    /// The type of a function: the stage of the call comes first.
    fn function_node(&mut self, ret: Type, params: &[Type], is_foreign: bool) -> TyNode {
        let mut all = if is_foreign { Vec::new() } else { vec![self.ty(STAGE)] };
        all.extend(self.leaves_of(params).into_iter().map(|p| self.ty(p)).collect::<Vec<Ty>>());
        all.push(self.fn_ty(&[ret]));
        TyNode::Fn(all.into())
    }

    fn var(&mut self, name: &str, ty: Ty, place: Span) -> Var {
        let var = self.terms.var(Some(name.into()));
        self.of_vars.insert(var, ty);
        self.places.insert(var, place);
        var
    }

    fn stage_var(&mut self) -> Var {
        self.terms.var(Some("s".into()))
    }

    fn of_var(&mut self, var: Var) -> Stage {
        self.terms.stage(StageNode::Var(var))
    }

    fn of_value(&mut self, value: Value) -> Stage {
        match value {
            Value::Var(x) => self.of_var(x),
            Value::Const(Const::Stage(known)) => self.terms.stage(StageNode::Const(known)),
            _ => self.terms.stage(StageNode::Const(true)),
        }
    }

    fn has_conjunct(&self, stage: Stage, of: Stage) -> bool {
        match self.terms.stage_node(stage) {
            _ if stage == of => true,
            StageNode::Var(x) => self.terms.stage_node(of) == StageNode::Var(x),
            StageNode::And(a, b) => self.has_conjunct(a, of) || self.has_conjunct(b, of),
            _ => false,
        }
    }

    /// Labels have been checked, and what is added to them is short.
    fn both(&mut self, a: Stage, b: Stage) -> Stage {
        if self.has_conjunct(a, b) {
            a
        } else if self.has_conjunct(b, a) {
            b
        } else {
            self.terms.stage(StageNode::And(a, b))
        }
    }

    fn with_value(&mut self, stage: Stage, value: Value) -> Stage {
        match value {
            Value::Var(_) => {
                let known = self.of_value(value);
                self.both(stage, known)
            }
            _ => stage,
        }
    }

    /// Whether the stage may be true before the function around it is called.
    fn is_early(&self, stage: Stage) -> bool {
        match self.terms.stage_node(stage) {
            StageNode::Const(known) => known,
            StageNode::Var(x) => !self.late.contains(&x),
            StageNode::And(a, b) => self.is_early(a) && self.is_early(b),
            StageNode::Or(a, b) => self.is_early(a) || self.is_early(b),
            StageNode::Not(_) => true,
        }
    }

    /// Variables that are bound when what has this stage is executed.
    fn bound_at(&mut self, stage: Stage, vars: &[Var]) {
        if !self.is_early(stage) {
            self.late.extend(vars);
        }
    }

    fn always(&mut self) -> Stage {
        self.terms.stage(StageNode::Const(true))
    }

    // --- Bodies.

    fn push(&mut self, stage: Stage, callee: Callee, args: Vec<Value>, params: Vec<Var>, span: Span) -> Var {
        let own = self.stage_var();
        self.bound_at(stage, &params);
        self.bound_at(stage, &[own]);
        self.flow.pending.push(Pending { stage, callee, args, after: Vec::new(), params, own, span });
        self.flow.last = self.of_var(own);
        own
    }

    /// The last call of a body.
    fn end(&mut self, stage: Stage, callee: Value, args: Vec<Value>, span: Span) {
        self.flow.end = Some(self.terms.apply(stage, callee, args, span));
    }

    /// The body that a flow has become.
    fn close(&mut self, flow: Flow) -> Body {
        let Some(mut body) = flow.end else { unreachable!("a body ends with a call") };
        for Pending { stage, callee, mut args, after, params, own, span } in flow.pending.into_iter().rev() {
            body = match callee {
                Callee::Value(callee) => {
                    args.push(Value::Lam(self.terms.lam(own, params, body)));
                    args.extend(after);
                    self.terms.apply(stage, callee, args, span)
                }
                Callee::Rest => {
                    let rest = Value::Lam(self.terms.lam(own, params, body));
                    self.terms.apply(stage, rest, args, span)
                }
                Callee::Fix(fixed, lam) => {
                    let rest = Value::Lam(self.terms.lam(own, params, body));
                    let of_fixed = self.of_var(fixed);
                    let rest = self.terms.apply(of_fixed, rest, [Value::Var(fixed)], span);
                    self.terms.fix(stage, fixed, lam, rest, span)
                }
                Callee::Group(fixed, lam) => {
                    let rest = Value::Lam(self.terms.lam(own, params, body));
                    let of_fixed = self.of_var(fixed);
                    let rest = self.terms.apply(of_fixed, Value::Var(fixed), [rest], span);
                    self.terms.fix(stage, fixed, lam, rest, span)
                }
            };
        }
        body
    }

    /// A function whose body `make` makes, beginning at `stage`.
    fn lambda(
        &mut self,
        params: Vec<Var>,
        own: Var,
        stage: Stage,
        make: impl FnOnce(&mut Self) -> Done<()>,
    ) -> Done<Lam> {
        let (flow, at) = self.enter(stage);
        let made = make(self);
        let inner = self.leave(flow, at);
        made?;
        let body = self.close(inner);
        Ok(self.terms.lam(own, params, body))
    }

    fn enter(&mut self, stage: Stage) -> (Flow, Stage) {
        (std::mem::replace(&mut self.flow, Flow::new(stage)), std::mem::replace(&mut self.at, stage))
    }

    fn leave(&mut self, flow: Flow, at: Stage) -> Flow {
        self.at = at;
        std::mem::replace(&mut self.flow, flow)
    }

    /// A value that is known when the stage is true.
    fn stage_value(&mut self, stage: Stage, span: Span) -> Value {
        match self.terms.stage_node(stage) {
            StageNode::Const(known) => Value::Const(Const::Stage(known)),
            StageNode::Var(x) => Value::Var(x),
            _ => {
                let (last, control) = (self.flow.last, self.flow.control);
                let own = self.push(stage, Callee::Rest, Vec::new(), Vec::new(), span);
                let stage_ty = self.ty(STAGE);
                self.of_vars.insert(own, stage_ty);
                (self.flow.last, self.flow.control) = (last, control);
                Value::Var(own)
            }
        }
    }

    fn shorten(&mut self, stage: Stage, span: Span) -> Stage {
        if self.terms.stage_depth(stage) <= MAX_STAGE {
            return stage;
        }
        let value = self.stage_value(stage, span);
        self.of_value(value)
    }

    // --- Names.

    fn declare(&mut self, name: Name<'s>, entity: Entity) {
        self.scope.push(name.text);
        self.names.entry(name.text).or_default().push((entity, self.declared.len()));
        self.declared.push((name, entity));
    }

    fn leave_scope(&mut self, mark: usize) {
        for name in self.scope.drain(mark..) {
            self.names.get_mut(name).and_then(Vec::pop);
        }
    }

    /// A variable with values for its leaves, if there are any.
    fn declare_local(&mut self, name: Name<'s>, ty: Type, values: Option<Vec<Value>>) {
        let first = self.locals.len();
        for (i, ty) in self.leaves(ty).into_iter().enumerate() {
            let value = values.as_ref().map(|v| v[i]);
            self.locals.push(Local { ty, value });
        }
        self.declare(name, Entity::Local(ty, first));
    }

    /// New variables for the leaves of a value of that type.
    fn leaf_vars(&mut self, ty: Type, name: &str, place: Span) -> Vec<Var> {
        let leaves = self.named_leaves(ty, name);
        leaves
            .into_iter()
            .map(|(name, leaf)| {
                let ty = self.ty(leaf);
                self.var(&name, ty, place)
            })
            .collect()
    }

    fn entity(&self, name: &str) -> Option<Entity> {
        self.names.get(name)?.last().map(|n| n.0)
    }

    /// What a name means that is used there.
    fn used(&mut self, name: &str, span: Span) -> Option<Entity> {
        let (entity, declared) = self.names.get(name)?.last().copied()?;
        self.uses.push((span, declared));
        Some(entity)
    }

    fn say_names(&mut self, names: &mut Names) {
        for (name, entity) in &self.declared {
            let text = match entity {
                Entity::Local(ty, _) => format!("{} {}", self.show(*ty), name.text),
                Entity::Function(f) => {
                    let Known { ret, params, .. } = &self.functions[*f];
                    let params: Vec<String> = params.iter().map(|&p| self.show(p)).collect();
                    format!("{} {}({})", self.show(*ret), name.text, params.join(", "))
                }
            };
            names.declarations.push(Declaration { place: name.span, text });
        }
        names.uses.append(&mut self.uses);
    }

    fn fault<T>(&mut self, diagnostic: nyala_base::Diagnostic) -> Done<T> {
        self.faults.push(diagnostic);
        Err(Reported)
    }

    fn callee(&mut self, name: Name<'s>) -> Done<usize> {
        match self.used(name.text, name.span) {
            Some(Entity::Function(function)) => Ok(function),
            Some(Entity::Local(ty, _)) => {
                let shown = self.show(ty);
                self.fault(staging_type::not_a_function(name.span, &shown))
            }
            None => self.fault(staging_name::in_c(name.span, name.text)),
        }
    }
}

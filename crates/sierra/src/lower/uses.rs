//! Where a function reads its variables, by their names: whether a lane that is not active may still need what it has.
//!
//! An assignment in SIMD mode is blended with what was there, unless nothing reads it that inactive lanes may come to: code behind the innermost region,
//! or in a loop around it. Names that are declared twice count as one, which only blends more.

use super::*;
use crate::lower::intrinsics::is_lane_by_lane;

/// Limit on the nodes of code that runs without a test whether some lane is active.
const MAX_CHEAP: u32 = 24;

/// The range of what is read everywhere.
const EVERYWHERE: (u32, u32, bool) = (0, u32::MAX, true);

#[derive(Default)]
pub(super) struct Uses<'s> {
    /// The places of reads, in order.
    reads: FxHashMap<&'s str, Vec<u32>>,
    /// Variables whose lanes other lanes, or other code, may see.
    exposed: FxHashSet<&'s str>,
    /// Variables that change behind their declarations.
    changed: FxHashSet<&'s str>,
    /// Which places statements have, by their addresses; and whether a `continue` is in them.
    ranges: FxHashMap<usize, (u32, u32, bool)>,
    n: u32,
    n_continues: u32,
    /// What is read is exposed.
    is_exposing: bool,
}

/// A statement around the code, from the outermost one.
#[derive(Clone, Copy)]
pub(super) struct Around {
    range: (u32, u32, bool),
    is_loop: bool,
    /// It has a mask of its own.
    is_region: bool,
}

/// A variable that is a local one.
#[derive(Clone, Copy)]
pub(super) struct Local<'s> {
    name: &'s str,
    /// The number of statements around its declaration.
    depth: usize,
}

fn key<T>(node: &T) -> usize {
    std::ptr::from_ref(node) as usize
}

impl<'s> Uses<'s> {
    pub fn of(body: &[Statement<'s>]) -> Uses<'s> {
        let mut uses = Uses::default();
        uses.statements(body);
        uses
    }

    fn is_read(&self, name: &str, from: u32, to: u32) -> bool {
        let Some(places) = self.reads.get(name) else { return false };
        let first = places.partition_point(|&p| p < from);
        places.get(first).is_some_and(|&p| p < to)
    }

    fn statements(&mut self, statements: &[Statement<'s>]) {
        statements.iter().for_each(|s| self.statement(s));
    }

    fn statement(&mut self, statement: &Statement<'s>) {
        let (start, n_continues) = (self.n, self.n_continues);
        match &statement.kind {
            StatementKind::Block(inner) => self.statements(inner),
            StatementKind::Declare(declaration) => {
                for (declarator, init) in &declaration.declared {
                    let is_exposing = self.is_exposing;
                    self.is_exposing |= declarator.is_reference;
                    init.iter().for_each(|init| self.init(init));
                    self.is_exposing = is_exposing;
                }
            }
            StatementKind::Value(e) => self.expr(e),
            StatementKind::Decide(parts) => {
                self.expr(&parts.0);
                self.statement(&parts.1);
                parts.2.iter().for_each(|s| self.statement(s));
            }
            StatementKind::If(arms, otherwise) => {
                for (condition, then) in arms {
                    self.expr(condition);
                    self.statement(then);
                }
                otherwise.iter().for_each(|s| self.statement(s));
            }
            StatementKind::For { first, condition, step, body } => {
                first.iter().for_each(|s| self.statement(s));
                self.loop_of(condition.as_ref(), step.as_ref(), body);
            }
            StatementKind::DoWhile(body, condition) => self.loop_of(Some(condition), None, body),
            StatementKind::Switch(value, body) => {
                self.expr(value);
                self.statements(body);
            }
            StatementKind::ForEach(dimensions, body) => {
                for (_, first, end) in dimensions {
                    self.expr(first);
                    self.expr(end);
                }
                self.loop_of(None, None, body);
            }
            StatementKind::Delete(e) => self.expr(e),
            StatementKind::Sync | StatementKind::Goto(_) | StatementKind::Label(_) => {}
            StatementKind::Scalar(_, body)
            | StatementKind::ForEachActive(_, _, body)
            | StatementKind::ForEachLane(_, body)
            | StatementKind::Unmasked(body) => self.exposing(|u| u.statement(body)),
            StatementKind::ForEachUnique(_, values, body) => self.exposing(|u| {
                u.expr(values);
                u.statement(body);
            }),
            StatementKind::Return(value) => value.iter().for_each(|e| self.expr(e)),
            StatementKind::Continue => self.n_continues += 1,
            StatementKind::Case(_) | StatementKind::Default | StatementKind::Break | StatementKind::Empty => {}
        }
        self.ranges.insert(key(statement), (start, self.n, self.n_continues > n_continues));
    }

    /// A loop has the range of its body, which its condition and step are in.
    fn loop_of(&mut self, condition: Option<&Expr<'s>>, step: Option<&Expr<'s>>, body: &Statement<'s>) {
        let (start, n_continues) = (self.n, self.n_continues);
        condition.into_iter().chain(step).for_each(|e| self.expr(e));
        self.statement(body);
        self.ranges.insert(key(body), (start, self.n, self.n_continues > n_continues));
    }

    fn exposing(&mut self, inner: impl FnOnce(&mut Self)) {
        let was = std::mem::replace(&mut self.is_exposing, true);
        inner(self);
        self.is_exposing = was;
    }

    fn init(&mut self, init: &Init<'s>) {
        match init {
            Init::Value(e) => self.expr(e),
            Init::List(parts, _) => parts.iter().for_each(|(_, part)| self.init(part)),
        }
    }

    fn change(&mut self, target: &Expr<'s>) {
        match &target.kind {
            ExprKind::Name(name) => _ = self.changed.insert(name),
            // A part of it.
            ExprKind::Postfix(base, _) => {
                self.expr(target);
                self.exposing(|u| u.expr(base));
            }
            ExprKind::Unary(Unary::Deref, _) => self.expr(target),
            _ => self.exposing(|u| u.expr(target)),
        }
    }

    fn expr(&mut self, e: &Expr<'s>) {
        self.n += 1;
        match &e.kind {
            ExprKind::Name(name) => {
                self.reads.entry(name).or_default().push(self.n);
                if self.is_exposing {
                    self.exposed.insert(name);
                    self.changed.insert(name);
                }
            }
            ExprKind::Unary(Unary::AddressOf, operand) => self.exposing(|u| u.expr(operand)),
            ExprKind::Unary(operator, operand) => {
                if matches!(operator, Unary::Increment | Unary::Decrement) {
                    self.change(operand);
                }
                self.expr(operand);
            }
            ExprKind::Cast(_, operand) | ExprKind::SizeOf(operand) => self.expr(operand),
            ExprKind::Literal(_, init) => self.init(init),
            ExprKind::Chain(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::Logic(_, values) | ExprKind::Comma(values) => values.iter().for_each(|e| self.expr(e)),
            ExprKind::Choose(parts) => parts.iter().for_each(|e| self.expr(e)),
            ExprKind::Assign(operator, parts) => {
                self.expr(&parts[1]);
                if operator.is_some() {
                    self.expr(&parts[0]);
                }
                self.change(&parts[0]);
            }
            ExprKind::Postfix(base, rest) => self.postfix(base, rest),
            ExprKind::New(new) => {
                new.count.iter().for_each(|e| self.expr(e));
                new.init.iter().for_each(|init| self.init(init));
            }
            ExprKind::Launch(launch) => {
                launch.counts.iter().for_each(|e| self.expr(e));
                self.exposing(|u| launch.args.iter().for_each(|e| u.expr(e)));
            }
            _ => {}
        }
    }

    fn postfix(&mut self, base: &Expr<'s>, rest: &[Postfix<'s>]) {
        let is_plain_call = matches!((&base.kind, rest), (ExprKind::Name(name), [_]) if is_lane_by_lane(name));
        let changes = rest.iter().any(|p| matches!(p.kind, PostfixKind::Increment | PostfixKind::Decrement));
        if changes {
            self.change(base);
        }
        self.expr(base);
        for operator in rest {
            match &operator.kind {
                PostfixKind::Index(e) => self.expr(e),
                PostfixKind::Call(args) if is_plain_call => args.iter().for_each(|e| self.expr(e)),
                PostfixKind::Call(args) => self.exposing(|u| args.iter().for_each(|e| u.expr(e))),
                _ => {}
            }
        }
    }
}

impl<'s> Lowerer<'s, '_> {
    /// Lowers a statement that has a mask of its own, or is the body of a loop.
    pub(super) fn within<T>(
        &mut self,
        statement: &Statement<'s>,
        is_loop: bool,
        is_region: bool,
        lower: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let range = self.uses.as_ref().and_then(|u| u.ranges.get(&key(statement)).copied());
        self.among(Around { range: range.unwrap_or(EVERYWHERE), is_loop, is_region }, lower)
    }

    /// Lowers a part of an expression that has a mask of its own.
    pub(super) fn within_value<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        self.among(Around { range: EVERYWHERE, is_loop: true, is_region: true }, lower)
    }

    /// Lowers a `switch`: lanes come in at one label after the other.
    pub(super) fn within_switch<T>(&mut self, statement: &Statement<'s>, lower: impl FnOnce(&mut Self) -> T) -> T {
        let range = self.uses.as_ref().and_then(|u| u.ranges.get(&key(statement)).copied());
        let (start, end, _) = range.unwrap_or(EVERYWHERE);
        self.among(Around { range: (start, end, true), is_loop: true, is_region: true }, |l| {
            l.rest_is_cheap = false;
            lower(l)
        })
    }

    fn among<T>(&mut self, around: Around, lower: impl FnOnce(&mut Self) -> T) -> T {
        self.around.push(around);
        let was_cheap = self.rest_is_cheap;
        self.rest_is_cheap |= around.is_region;
        let done = lower(self);
        self.rest_is_cheap = was_cheap;
        self.around.pop();
        done
    }

    /// Notes a variable that is declared here.
    pub(super) fn note_local(&mut self, name: &'s str, address: Val) {
        if self.uses.is_some() {
            self.locals.insert(address, Local { name, depth: self.around.len() });
        }
    }

    /// Whether nothing changes a variable behind its declaration.
    pub(super) fn is_unchanged(&self, name: &str) -> bool {
        self.uses.as_ref().is_some_and(|u| !u.changed.contains(name))
    }

    /// Whether lanes that are not active may still need what they have in a variable.
    pub(super) fn is_needed(&self, address: Val, ty: Ty) -> bool {
        // Others would compute with what they never had: integers may not divide, shift or be indices by it.
        let is_float = matches!(*self.types.kind(ty), Kind::Varying(prim, _) if prim.is_float());
        let (Some(uses), Some(local), true) = (&self.uses, self.locals.get(&address), is_float) else { return true };
        if uses.exposed.contains(local.name) {
            return true;
        }
        let Some(stack) = self.around.get(local.depth..) else { return true };
        let Some(region) = stack.iter().rposition(|a| a.is_region) else { return false };
        let (start, end, has_continue) = stack[region].range;
        let comes_back =
            stack[region].is_loop && has_continue && uses.is_read(local.name, start, end.saturating_add(1));
        let is_read_around = |a: &Around| a.is_loop && uses.is_read(local.name, a.range.0, a.range.1.saturating_add(1));
        comes_back
            || stack[..region].iter().any(is_read_around)
            || uses.is_read(local.name, end.saturating_add(1), u32::MAX)
    }

    // Code that may run while no lane is active.

    /// Whether statements are short, and change nothing but lanes.
    pub(super) fn are_cheap(&self, statements: &[Statement<'s>]) -> bool {
        let mut left = MAX_CHEAP;
        statements.iter().all(|s| self.is_cheap(s, &mut left))
    }

    pub(super) fn is_cheap(&self, statement: &Statement<'s>, left: &mut u32) -> bool {
        match &statement.kind {
            StatementKind::Block(inner) => inner.iter().all(|s| self.is_cheap(s, left)),
            StatementKind::Value(e) => match &e.kind {
                ExprKind::Assign(operator, parts) => {
                    !matches!(operator, Some(Binary::Div | Binary::Rem))
                        && self.is_variable_with_lanes(&parts[0])
                        && self.is_cheap_value(&parts[1], left)
                }
                ExprKind::Postfix(base, rest) => {
                    matches!(rest[..], [Postfix { kind: PostfixKind::Increment | PostfixKind::Decrement, .. }])
                        && self.is_variable_with_lanes(base)
                }
                ExprKind::Unary(Unary::Increment | Unary::Decrement, operand) => self.is_variable_with_lanes(operand),
                _ => false,
            },
            StatementKind::Declare(declaration) => declaration.declared.iter().all(|(declarator, init)| {
                declaration.storage == Storage::Automatic
                    && !declarator.is_reference
                    && declarator.lengths.is_empty()
                    && matches!(declaration.specifier.kind, SpecifierKind::Prim(_))
                    && match init {
                        Some(Init::Value(e)) => self.is_cheap_value(e, left),
                        Some(Init::List(..)) => false,
                        None => true,
                    }
            }),
            // A result without lanes is that of the last lanes that return.
            StatementKind::Return(value) => value.as_ref().is_none_or(|e| {
                self.result.is_some_and(|r| self.types.is_varying(r.1)) && self.is_cheap_value(e, left)
            }),
            StatementKind::Break | StatementKind::Continue | StatementKind::Empty => true,
            _ => false,
        }
    }

    /// Whether the condition and the step of a loop change nothing but lanes.
    pub(super) fn are_of_lanes(&self, condition: Option<&Expr<'s>>, step: Option<&Expr<'s>>) -> bool {
        let is_simple = |e: &Expr<'s>| self.is_cheap_value(e, &mut { MAX_CHEAP });
        let is_of_lanes = |e: &Expr<'s>| match &e.kind {
            ExprKind::Assign(_, parts) => self.is_variable_with_lanes(&parts[0]) && is_simple(&parts[1]),
            ExprKind::Postfix(base, rest) => {
                matches!(rest[..], [Postfix { kind: PostfixKind::Increment | PostfixKind::Decrement, .. }])
                    && self.is_variable_with_lanes(base)
            }
            ExprKind::Unary(Unary::Increment | Unary::Decrement, operand) => self.is_variable_with_lanes(operand),
            _ => false,
        };
        condition.is_none_or(is_simple) && step.is_none_or(is_of_lanes)
    }

    fn is_variable_with_lanes(&self, e: &Expr<'s>) -> bool {
        let ExprKind::Name(name) = e.kind else { return false };
        matches!(self.find(name), Some(Entity::Variable(v)) if matches!(self.types.kind(v.ty), Kind::Varying(..)))
    }

    fn is_cheap_value(&self, e: &Expr<'s>, left: &mut u32) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match &e.kind {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Char(_) => true,
            ExprKind::Unary(Unary::Plus | Unary::Negate | Unary::Not | Unary::Complement, operand) => {
                self.is_cheap_value(operand, left)
            }
            ExprKind::Chain(first, rest) => {
                self.is_cheap_value(first, left)
                    && rest.iter().all(|(operator, e)| {
                        !matches!(operator, Binary::Div | Binary::Rem | Binary::Shl | Binary::Shr)
                            && self.is_cheap_value(e, left)
                    })
            }
            _ => false,
        }
    }
}

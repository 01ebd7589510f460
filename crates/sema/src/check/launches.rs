//! Checks captures of `parallel` and `spawn` bodies (`docs/reference/parallel.md`). A body may not capture outer
//! continuations, because another thread cannot go on there. A thread started by `spawn` may not capture a `mut`
//! variable, because the thread may outlive it. Separate from the checker, because it needs all types and looks through
//! functions: a parameter that a function passes to `parallel` is a body there as well. Captures that are hidden behind
//! a value are found after specialization, in `flat`.

use super::*;
use crate::intrinsics::Intrinsic;
use nyala_syntax::ast::{ExprKind, Param, PatternKind};

/// The construct that runs a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Launch {
    Loop,
    Thread,
}

/// Limit on the rounds that find functions whose parameters become bodies, and so on the length of the chains of calls.
const MAX_ROUNDS: usize = 64;

/// The location of the code being checked.
#[derive(Clone, Copy)]
struct Place<'b, 'a> {
    module: usize,
    body: Option<&'b Body<'a>>,
}

/// A body that encloses the code being checked.
struct Body<'a> {
    launch: Launch,
    call: Span,
    span: Span,
    params: &'a [Param],
    continues: Option<LocalId>,
    outer: Option<&'a Body<'a>>,
}

struct Launches<'p, 'a> {
    p: &'p Program<'a>,
    /// Parameters that become bodies.
    bodies: FxHashMap<LocalId, Launch>,
    findings: Vec<(Span, Diagnostic)>,
}

/// Reports captures that are not allowed. `used` are the functions that the program uses.
pub(super) fn check_launches(p: &Program, used: &FxHashSet<FnId>, sink: &mut Sink) {
    let mut l = Launches { p, bodies: FxHashMap::default(), findings: Vec::new() };
    l.rounds(|f| f.module < p.n_libraries);
    // Most programs use nothing that makes bodies.
    if p.fns.iter().enumerate().any(|(i, f)| used.contains(&FnId(i as u32)) && l.is_launch(f)) {
        l.rounds(|_| true);
    }
    let mut seen = FxHashSet::default();
    for (span, finding) in l.findings {
        if seen.insert(span) {
            sink.push(finding);
        }
    }
}

impl<'p, 'a> Launches<'p, 'a> {
    /// Walks through these functions until no more parameters turn out to be bodies.
    fn rounds(&mut self, of: impl Fn(&FnInfo) -> bool) {
        let p = self.p;
        for _ in 0..MAX_ROUNDS {
            let n = self.bodies.len();
            self.findings.clear();
            for info in p.fns.iter().filter(|f| of(f)) {
                if let Some(body) = info.ast.body {
                    self.walk(body, Place { module: info.module, body: None });
                }
            }
            if self.bodies.len() == n {
                break;
            }
        }
    }

    fn is_launch(&self, f: &FnInfo) -> bool {
        let is_body = |param: &Param| match &param.pattern.kind {
            PatternKind::Name { name, .. } => self.p.local_at(name.span).is_some_and(|l| self.bodies.contains_key(&l)),
            _ => false,
        };
        matches!(f.kind, FnKind::Intrinsic(Intrinsic::Parallel | Intrinsic::Spawn)) || f.ast.params.iter().any(is_body)
    }

    /// Expressions nest no deeper than the parser allows.
    fn walk(&mut self, e: ExprId, at: Place) {
        let p = self.p;
        let ast = p.modules[at.module];
        match &ast[e].kind {
            ExprKind::Path(path) => self.used(p.global(at.module, e), path.span, at),
            ExprKind::Call { callee, args } => {
                self.walk(*callee, at);
                for (i, arg) in args.iter().enumerate() {
                    match self.launch(*callee, i, at) {
                        Some(launch) => self.body(*arg, launch, ast[e].span, at),
                        None => self.walk(*arg, at),
                    }
                }
            }
            ExprKind::For(looped) => {
                self.walk(looped.call, at);
                let mut call = looped.call;
                while let ExprKind::Unary(_, inner) = &ast[call].kind {
                    call = *inner;
                }
                let launch = match &ast[call].kind {
                    ExprKind::Call { callee, args } => self.launch(*callee, args.len(), at),
                    _ => None,
                };
                match launch {
                    Some(launch) => {
                        let continues = p.lambdas.get(&p.global(at.module, e)).and_then(|l| l.return_local);
                        let span = ast[looped.body].span;
                        let call = ast[call].span;
                        self.enter(
                            looped.body,
                            Body { launch, call, span, params: &looped.params, continues, outer: None },
                            at,
                        );
                    }
                    None => self.walk(looped.body, at),
                }
            }
            kind => {
                let mut children = Vec::new();
                kind.each_child(|child| children.push(child));
                children.into_iter().for_each(|child| self.walk(child, at));
            }
        }
    }

    /// An argument that becomes a body.
    fn body(&mut self, e: ExprId, launch: Launch, call: Span, at: Place) {
        let p = self.p;
        let ast = p.modules[at.module];
        match &ast[e].kind {
            ExprKind::Lambda(lambda) => {
                let continues = p.lambdas.get(&p.global(at.module, e)).and_then(|l| l.return_local);
                let span = ast[lambda.body].span;
                self.enter(
                    lambda.body,
                    Body { launch, call, span, params: &lambda.params, continues, outer: None },
                    at,
                );
            }
            ExprKind::Path(_) => {
                if let Some(Entity::Local(id)) = p.resolved.get(&p.global(at.module, e)) {
                    self.bodies.insert(*id, launch);
                }
                self.walk(e, at);
            }
            _ => self.walk(e, at),
        }
    }

    fn enter(&mut self, e: ExprId, body: Body, at: Place) {
        let body = Body { outer: at.body, ..body };
        self.walk(e, Place { module: at.module, body: Some(&body) });
    }

    /// The launch that the parameter of a function at this position becomes a body of, if it does.
    fn launch(&self, callee: ExprId, position: usize, at: Place) -> Option<Launch> {
        let Some(Entity::Fn(id)) = self.p.resolved.get(&self.p.global(at.module, callee)) else { return None };
        let info = &self.p.fns[id.0 as usize];
        // The receiver of a method comes first.
        let is_method = matches!(self.p.modules[at.module][callee].kind, ExprKind::Field { .. });
        let position = position + usize::from(is_method);
        match info.kind {
            FnKind::Intrinsic(Intrinsic::Parallel) if position == 3 => Some(Launch::Loop),
            FnKind::Intrinsic(Intrinsic::Spawn) if position == 0 => Some(Launch::Thread),
            FnKind::Defined => match &info.ast.params.get(position)?.pattern.kind {
                PatternKind::Name { name, .. } => self.bodies.get(&self.p.local_at(name.span)?).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Checks the use of a name against all bodies around it.
    fn used(&mut self, e: GlobalExpr, span: Span, at: Place) {
        let Some(&Entity::Local(id)) = self.p.resolved.get(&e) else { return };
        let local = self.p.local(id);
        let contains = |s: Span| s.file == local.span.file && s.lo <= local.span.lo && local.span.hi <= s.hi;
        let mut at = at.body;
        while let Some(body) = at {
            at = body.outer;
            if contains(body.span) || body.params.iter().any(|p| contains(p.pattern.span)) || body.continues == Some(id)
            {
                // The variable is declared inside of this body, and so of those around it.
                return;
            }
            if let Some(Kind::Fn(_, result)) = self.p.types.known(local.ty) {
                if *result == TypeTable::NEVER {
                    let d = jump_out_of_parallel::by_name(span, &short(&local.name), body.call);
                    return self.findings.push((span, d));
                }
                // A function that runs here is a part of the body.
                self.bodies.entry(id).or_insert(body.launch);
            }
            if body.launch == Launch::Thread && local.mutable {
                let d = spawn_captures_mut::error(span, &short(&local.name), local.span);
                return self.findings.push((span, d));
            }
        }
    }
}

//! `defer { … }`: one copy of its code for each block, whatever number of ways leads out of the block.
//!
//! Calls of continuations that leave a block stay open until the block ends. There they meet in a continuation `cleanup`, which
//! calls the deferred code once, and then each goes on to where it leads:
//!
//! ```text
//! defer { free(p) }                            cont cleanup(m, way, x, y) = free(m, p, k)
//! if a { return(1) }         cleanup(m, 0, 1, undef)    cont k(m) = branch(m, eq(way, 0), to_return, done)
//! if b { break() }           …
//! ```
//!
//! Ways with the same target share a number. Calls with a target that may depend on memory, and those in functions that
//! are lowered after the block, run the deferred code themselves.

use super::*;
use nyala_ir::Node;
use nyala_syntax::ast::{Block, Stmt};

/// A `defer { … }` that was lowered.
pub(super) struct Deferred {
    /// The function with its code.
    code: Val,
    /// The open ends that lead out of its block; `None` once the block has ended.
    exits: Option<Vec<Exit>>,
}

/// Code that leaves a block and still lacks a last call. It passes on `args`.
struct Exit {
    cur: Cur,
    /// `None` for the end of the block.
    way: Option<Way>,
    args: Vec<Val>,
    span: Span,
}

/// Where an exit from a block leads.
#[derive(Clone, Copy, PartialEq)]
struct Way {
    target: Val,
    /// The number of `defer { … }` that it leaves besides the one that has it.
    n_left: u32,
}

impl<'a> Lowerer<'_, 'a, '_> {
    /// Makes what follows in the block run the code of the statement `e` at its end.
    pub(super) fn defer(&mut self, e: ExprId) {
        let code = self.value(e);
        self.deferred.insert(self.g(e), Deferred { code, exits: Some(Vec::new()) });
    }

    /// Ends with a call of `target` by the expression `e`, after what is deferred in the blocks that it leaves.
    pub(super) fn leave(&mut self, e: ExprId, target: Val, args: Vec<Val>, span: Span) {
        let p = self.p;
        match p.leaves.get(&self.g(e)) {
            Some(leaving) if self.mode == Mode::Code => self.go_out(leaving.first, leaving.n, target, args, span),
            _ => self.end(target, &args),
        }
    }

    /// Ends with a call of `target` after `n` deferred codes, the first of which is `deferred`.
    fn go_out(&mut self, mut deferred: GlobalExpr, n: u32, target: Val, args: Vec<Val>, span: Span) {
        let outlives_block = self.outlives_block(target);
        for n_left in (0..n).rev() {
            if let Some(d) = self.deferred.get_mut(&deferred) {
                if outlives_block && let Some(exits) = &mut d.exits {
                    if let Some(cur) = self.cur.take() {
                        exits.push(Exit { cur, way: Some(Way { target, n_left }), args, span });
                    }
                    return;
                }
                let code = d.code;
                self.call_with(code, Vec::new(), TypeTable::UNIT, None);
            }
            match self.p.defer_around.get(&deferred) {
                Some(&around) => deferred = around,
                None => break,
            }
        }
        self.w.set_origin(span);
        self.end(target, &args);
    }

    /// Whether a target is the same at all places of the blocks that it leaves.
    fn outlives_block(&self, mut target: Val) -> bool {
        while self.w.as_op(target) == Some(Op::Extract) {
            target = self.w.args(target)[0];
        }
        matches!(self.w.node(target), Node::Cont(_) | Node::Param(..))
    }

    /// Ends the block with a call of `ret` by the value of the block, after what is deferred in it.
    pub(super) fn tail_of_deferring(&mut self, block: &'a Block, ty: Ty, ret: Val) {
        let mark = self.log.len();
        let value = self.statements_and_value(block);
        if self.mode == Mode::Code && self.alive() {
            let args = self.split_parts(value, ty);
            let deferred: Vec<GlobalExpr> = self.deferred_in(block).collect();
            let span = self.scope;
            match deferred.first() {
                Some(&first) => self.go_out(first, deferred.len() as u32, ret, args, span),
                None => self.end(ret, &args),
            }
        }
        let unit = self.w.unit();
        self.run_deferred(block, mark, unit);
    }

    /// The `defer { … }` of a block in the order in which they run.
    fn deferred_in(&self, block: &'a Block) -> impl Iterator<Item = GlobalExpr> {
        block.stmts.iter().rev().filter_map(|stmt| match stmt {
            Stmt::Defer(e) => Some(self.g(*e)),
            _ => None,
        })
    }

    /// Runs what is deferred at the end of `block`, for all that leave it. `value` is the value of the block, `mark` the state
    /// of variables at its begin.
    pub(super) fn run_deferred(&mut self, block: &'a Block, mark: usize, mut value: Val) -> Val {
        if self.mode != Mode::Code {
            return value;
        }
        let deferred: Vec<GlobalExpr> = self.deferred_in(block).collect();
        for d in deferred {
            let Some(at) = self.deferred.get_mut(&d) else { continue };
            let (code, exits) = (at.code, at.exits.take().unwrap_or_default());
            value = self.cleanup(d, code, exits, mark, value);
        }
        value
    }

    /// Calls `code` once for all `exits` from the block of the deferred code `d`, and for its end if that can be reached.
    /// Code after the block goes on with the result, which is `value`, and with the variables changed since `mark`.
    fn cleanup(&mut self, d: GlobalExpr, code: Val, mut exits: Vec<Exit>, mark: usize, mut value: Val) -> Val {
        let mut vars = Vec::new();
        if let Some(cur) = self.cur.take() {
            let changes = self.changes(mark);
            vars = changes.iter().map(|c| c.0).collect();
            let args = std::iter::once(value).chain(changes.iter().map(|c| c.1)).collect();
            exits.push(Exit { cur, way: None, args, span: self.scope });
        }
        if exits.is_empty() {
            return value;
        }
        let mut ways: Vec<(Option<Way>, Vec<ir::Ty>, Span)> = Vec::new();
        for exit in &exits {
            if !ways.iter().any(|w| w.0 == exit.way) {
                let tys = exit.args.iter().map(|&arg| self.w.ty(arg)).collect();
                ways.push((exit.way, tys, exit.span));
            }
        }
        let (number, mut args) = self.meet(exits, &ways);
        self.call_with(code, Vec::new(), TypeTable::UNIT, None);
        for (i, (way, tys, span)) in ways.iter().enumerate() {
            let rest = args.split_off(tys.len());
            let args = std::mem::replace(&mut args, rest);
            let next = number.filter(|_| i + 1 < ways.len()).map(|number| {
                let (k_way, k_next) = (self.block("way"), self.block("next"));
                let this = self.w.lit_prim(nyala_ir::Prim::I32, i as u64);
                let is_this = self.w.op(Op::Eq, &[number, this]);
                self.branch(is_this, k_way, k_next);
                self.go_on_in(k_way);
                k_next
            });
            match (*way, self.p.defer_around.get(&d)) {
                (None, _) => {
                    value = args[0];
                    for (id, val) in vars.iter().zip(&args[1..]) {
                        self.set_var(*id, Var { val: Some(*val), ptr: None });
                    }
                }
                (Some(Way { target, n_left }), Some(&around)) if n_left > 0 => {
                    self.go_out(around, n_left, target, args, *span);
                }
                (Some(Way { target, .. }), _) => {
                    self.w.set_origin(*span);
                    self.end(target, &args);
                }
            }
            if let Some(next) = next {
                self.go_on_in(next);
            }
        }
        value
    }

    /// Makes one current continuation of `exits`. Gives the number of the way that was taken, if there are several ways, and
    /// what each of them passes on, one after the other.
    fn meet(&mut self, mut exits: Vec<Exit>, ways: &[(Option<Way>, Vec<ir::Ty>, Span)]) -> (Option<Val>, Vec<Val>) {
        if exits.len() == 1
            && let Some(exit) = exits.pop()
        {
            self.cur = Some(exit.cur);
            return (None, exit.args);
        }
        let several = ways.len() > 1;
        let number_ty = self.w.types.prim(nyala_ir::Prim::I32);
        let mut tys = vec![self.w.types.mem()];
        tys.extend(several.then_some(number_ty));
        tys.extend(ways.iter().flat_map(|w| w.1.iter().copied()));
        let mut names = vec!["m"];
        names.extend(several.then_some("way"));
        names.resize(tys.len(), "x");
        let cn = self.w.types.cn(&tys);
        let cleanup = self.w.declare("cleanup", cn, &names);
        for exit in exits {
            let mut all = Vec::with_capacity(tys.len());
            for (i, (way, tys, _)) in ways.iter().enumerate() {
                if *way == exit.way {
                    if several {
                        all.insert(0, self.w.lit_prim(nyala_ir::Prim::I32, i as u64));
                    }
                    all.extend(&exit.args);
                } else {
                    all.extend(tys.iter().map(|&ty| self.w.undef(ty)));
                }
            }
            self.cur = Some(exit.cur);
            self.w.set_origin(exit.span);
            self.jump(cleanup, &all);
        }
        self.go_on_in(cleanup);
        let mut params = self.w.params(cleanup)[1..].to_vec();
        let number = several.then(|| params.remove(0));
        (number, params)
    }
}

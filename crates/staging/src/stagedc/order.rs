//! The order in which functions of Staged-C are made: those that a function mentions come before it.
//!
//! Separate from their translation. Functions that mention each other, through others or not, are one group: the strongly connected
//! components of the graph of mentions, by Tarjan's algorithm. Where all mention earlier ones only, the order is that of the file.

use crate::c::{Expr, ExprKind, Function, FunctionBody, PostfixKind, Statement, StatementKind};
use nyala_c_syntax::syntax::Init;
use rustc_hash::FxHashMap;

/// Groups of functions by their indices, each in the order of the file.
pub(super) fn groups(functions: &[&Function]) -> Vec<Vec<usize>> {
    let idx: FxHashMap<&str, usize> = functions.iter().enumerate().map(|(i, f)| (f.name.text, i)).collect();
    let edges: Vec<Vec<usize>> = functions.iter().map(|f| mentioned(f, &idx)).collect();
    let n = functions.len();
    // The number of a function in the order of visits; the least number that is reached from it.
    let (mut number, mut least) = (vec![usize::MAX; n], vec![0; n]);
    let (mut stack, mut on_stack, mut n_visited) = (Vec::new(), vec![false; n], 0);
    let mut groups = Vec::new();
    for root in 0..n {
        if number[root] != usize::MAX {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((f, edge)) = work.pop() {
            if edge == 0 {
                (number[f], least[f]) = (n_visited, n_visited);
                n_visited += 1;
                stack.push(f);
                on_stack[f] = true;
            } else {
                let to = edges[f][edge - 1];
                if on_stack[to] {
                    least[f] = least[f].min(least[to]);
                }
            }
            if let Some(&to) = edges[f].get(edge) {
                work.push((f, edge + 1));
                if number[to] == usize::MAX {
                    work.push((to, 0));
                }
                continue;
            }
            if least[f] == number[f] {
                let at = stack.iter().rposition(|&g| g == f).unwrap_or(0);
                let mut group = stack.split_off(at);
                group.iter().for_each(|&g| on_stack[g] = false);
                group.sort_unstable();
                groups.push(group);
            }
        }
    }
    groups
}

/// Functions whose names occur in a function. A local variable may hide one of them: then the order is another one, and no result.
fn mentioned(function: &Function, idx: &FxHashMap<&str, usize>) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut note = |name: &str| found.extend(idx.get(name));
    let mut exprs: Vec<&Expr> = Vec::new();
    let mut statements: Vec<&Statement> = Vec::new();
    match &function.body {
        FunctionBody::Foreign => (),
        FunctionBody::Special(of, args) | FunctionBody::Compiled(of, args) => {
            note(of.text);
            exprs.extend(args);
        }
        FunctionBody::Block(block) => statements.extend(block),
    }
    while let Some(statement) = statements.pop() {
        exprs.extend(&statement.labels);
        match &statement.kind {
            StatementKind::Block(block) => statements.extend(block),
            StatementKind::Function(inner) => {
                if let FunctionBody::Special(of, args) | FunctionBody::Compiled(of, args) = &inner.body {
                    note(of.text);
                    exprs.extend(args);
                }
            }
            StatementKind::Declare(_, _, value) | StatementKind::Return(value) => exprs.extend(value),
            StatementKind::DeclareArray(_, _, n, value) => exprs.extend([n].into_iter().chain(value)),
            StatementKind::Assign(target, _, value) => exprs.extend([target, value]),
            StatementKind::Value(value) => exprs.push(value),
            StatementKind::If(condition, then, otherwise) => {
                exprs.push(condition);
                statements.extend(std::iter::once(&**then).chain(otherwise.as_deref()));
            }
            StatementKind::For { first, condition, step, body } => {
                exprs.extend(condition);
                statements.extend(first.as_deref().into_iter().chain(step.as_deref()).chain([&**body]));
            }
            StatementKind::Break | StatementKind::Continue | StatementKind::Empty => (),
        }
        while let Some(expr) = exprs.pop() {
            match &expr.kind {
                ExprKind::Name(name) => note(name),
                ExprKind::Unary(_, inner) | ExprKind::Cast(_, inner) => exprs.push(inner),
                ExprKind::Chain(first, rest) => exprs.extend([&**first].into_iter().chain(rest.iter().map(|r| &r.1))),
                ExprKind::Choose(parts) => exprs.extend(parts.iter()),
                ExprKind::List(values) | ExprKind::Logic(_, values) => exprs.extend(values),
                ExprKind::Literal(_, init) => {
                    exprs.extend(if let Init::Value(list) = &**init { Some(list) } else { None })
                }
                ExprKind::Postfix(of, rest) => {
                    exprs.push(of);
                    for postfix in rest {
                        match &postfix.kind {
                            PostfixKind::Call(args) => exprs.extend(args),
                            PostfixKind::Index(idx) => exprs.push(idx),
                            _ => (),
                        }
                    }
                }
                _ => (),
            }
        }
    }
    while let Some(expr) = exprs.pop() {
        if let ExprKind::Name(name) = expr.kind {
            note(name);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

//! What the sides of a comparison give in a query that does not hold. Separate from running tests: values are only asked for once a
//! query has failed, of a second program under the same engine, so that those that hold cost nothing.
//!
//! ```text
//! //? sum(1, 2) == 4        `sum(1, 2)` gives 3, expected 4
//! ```

use super::{Engine, Suite};
use crate::Options;
use crate::front::{Files, FrontEnd};
use crate::graph::Graph;
use crate::pipelines::Ready;
use nyala_base::FileId;
use nyala_ir::Prim;
use nyala_syntax::ast::{BinaryOp, ExprId, ExprKind, ItemKind, Module, UnaryOp};
use std::fmt::Write as _;

/// Limit on the numbers of a value that is shown.
const MAX_NUMBERS: usize = 16;

/// A program whose functions give what the queries of a file compare, in parts of 32 bits.
pub(super) struct Given {
    entries: Vec<Entry>,
    program: Option<Graph>,
}

/// An entry, and the conditions that `&&` joins in it.
struct Entry {
    name: String,
    conditions: Vec<Condition>,
}

/// A condition; a function of the program says whether it holds.
struct Condition {
    text: String,
    comparison: Option<(BinaryOp, [Side; 2])>,
}

/// A side of a comparison.
struct Side {
    text: String,
    is_literal: bool,
    is_char: bool,
    /// `None` if it is not shown.
    numbers: Option<Vec<(String, Prim)>>,
}

/// The function for a condition of an entry.
fn condition_of(entry: &str, n: usize) -> String {
    format!("{entry}_condition_{n}")
}

/// The function for the lower or upper half of a number.
fn number_of(entry: &str, n: usize, side: usize, number: usize, upper: bool) -> String {
    format!("{entry}_value_{n}_{side}_{number}_{}", u8::from(upper))
}

impl Given {
    /// Makes the program for all queries of a file, whose entries are the last of `files`.
    pub fn new(options: &Options, files: &Files, suite: &Suite) -> Given {
        let mut given = Given { entries: Vec::new(), program: None };
        let front = FrontEnd::new(options.clone(), files.clone());
        let Some(tree) = front.trees().program().get(files.given.len().wrapping_sub(1)) else { return given };
        let Some(file) = tree.file else { return given };
        let wanted = |name: &str| suite.tests.iter().any(|t| t.entries.iter().any(|e| e.0 == name));
        let mut functions = String::new();
        for item in &tree.items {
            let ItemKind::Fn(f) = &item.kind else { continue };
            let Some(body) = f.body.filter(|_| wanted(&f.name.text)) else { continue };
            let entry = Entry { name: f.name.text.to_string(), conditions: conditions(&front, file, tree, body) };
            entry.write(&mut functions);
            given.entries.push(entry);
        }
        let mut files = files.clone();
        if let Some(last) = files.given.last_mut() {
            last.1 = functions;
        }
        // The queries have been compiled before. Where these functions are not, no values are shown.
        given.program = FrontEnd::new(options.clone(), files).graph().ok();
        given
    }

    /// The program, ready to run.
    pub fn ready(&self, engine: Engine) -> Option<Ready<'_>> {
        (engine.back_end.ready)(self.program.as_ref()?).ok()
    }

    /// What the first condition of an entry that does not hold compares, in words. `None` if that is not known.
    pub fn of(&self, entry: &str, ready: &Ready) -> Option<String> {
        let entry = self.entries.iter().find(|e| e.name == entry)?;
        let fails = |n: &usize| ready.holds(&condition_of(&entry.name, *n)).is_ok_and(|holds| !holds);
        let n = (0..entry.conditions.len()).find(fails)?;
        let condition = &entry.conditions[n];
        let Some((op, [left, right])) = &condition.comparison else {
            return (entry.conditions.len() > 1).then(|| format!("`{}` gives false", condition.text));
        };
        let is_char = left.is_char || right.is_char;
        let value = |s: usize, side: &Side| -> Option<String> {
            if side.is_literal {
                return Some(side.text.clone());
            }
            let mut parts = Vec::new();
            for (i, (path, prim)) in side.numbers.as_ref()?.iter().enumerate() {
                let half = |upper| Some((ready.call)(&number_of(&entry.name, n, s, i, upper)).ok()? as u32);
                let upper = if is_wide(*prim) { half(true)? } else { 0 };
                let shown = shown(*prim, half(false)?, upper, is_char);
                parts.push(if path.is_empty() { shown } else { format!("{path} {shown}") });
            }
            Some(parts.join(", "))
        };
        let (a, b) = (value(0, left)?, value(1, right)?);
        Some(match op {
            BinaryOp::Eq if left.is_literal => format!("`{}` gives {b}, expected {a}", right.text),
            BinaryOp::Eq => format!("`{}` gives {a}, expected {b}", left.text),
            _ if right.is_literal => format!("`{}` gives {a}", left.text),
            _ if left.is_literal => format!("`{}` gives {b}", right.text),
            _ => format!("`{}` gives {a}, `{}` gives {b}", left.text, right.text),
        })
    }
}

/// The conditions of an entry, from its body.
fn conditions(front: &FrontEnd, file: FileId, tree: &Module, body: ExprId) -> Vec<Condition> {
    let mut found = Vec::new();
    let mut work = match &tree[body].kind {
        ExprKind::Block(block) if block.stmts.is_empty() => Vec::from_iter(block.result),
        _ => return found,
    };
    let text = front.report.sources.text(file);
    let source = |e: ExprId| {
        let span = tree[e].span;
        text.get(span.lo as usize..span.hi as usize).unwrap_or_default().to_string()
    };
    let symbols = front.program().symbols();
    while let Some(e) = work.pop() {
        let comparison = match &tree[e].kind {
            ExprKind::Binary { op: BinaryOp::And, lhs, rhs, .. } => {
                work.extend([*rhs, *lhs]);
                continue;
            }
            ExprKind::Binary { op, lhs, rhs, .. } if op.is_comparison() => Some((
                *op,
                [*lhs, *rhs].map(|side| Side {
                    text: source(side),
                    is_literal: is_literal(tree, side),
                    is_char: matches!(tree[side].kind, ExprKind::Char(_)),
                    numbers: symbols.numbers_in(file, side, MAX_NUMBERS),
                }),
            )),
            _ => None,
        };
        found.push(Condition { text: source(e), comparison });
    }
    found
}

fn is_literal(tree: &Module, e: ExprId) -> bool {
    match &tree[e].kind {
        ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Bool(_) | ExprKind::Char(_) => true,
        ExprKind::Unary(UnaryOp::Neg, e) => matches!(tree[*e].kind, ExprKind::Int { .. } | ExprKind::Float { .. }),
        _ => false,
    }
}

fn is_wide(prim: Prim) -> bool {
    matches!(prim, Prim::I64 | Prim::U64 | Prim::F64)
}

impl Entry {
    /// Appends the functions for the entry.
    fn write(&self, out: &mut String) {
        for (n, condition) in self.conditions.iter().enumerate() {
            let name = condition_of(&self.name, n);
            let _ = writeln!(out, "extern fn {name}() -> bool {{ {} }}", condition.text);
            for (s, side) in condition.comparison.iter().flat_map(|c| &c.1).enumerate() {
                for (i, (path, prim)) in side.numbers.iter().flatten().enumerate().filter(|_| !side.is_literal) {
                    // A literal without a type of its own gets the one that it has in the query.
                    let value = match path.is_empty() {
                        true => format!("let value: {} = {};", prim.name(), side.text),
                        false => format!("let all = {}; let value = all{path};", side.text),
                    };
                    let (ty, bits) = match prim {
                        Prim::Bool => ("i32", "if value { 1 } else { 0 }"),
                        Prim::F16 | Prim::F32 => ("u32", "bitcast[u32](value as f32)"),
                        Prim::F64 => ("u64", "bitcast[u64](value)"),
                        Prim::I64 | Prim::U64 => ("u64", "value as u64"),
                        _ => ("i32", "value as i32"),
                    };
                    for upper in [false, true].into_iter().filter(|upper| !upper || is_wide(*prim)) {
                        let name = number_of(&self.name, n, s, i, upper);
                        let half = if upper { "(bits >> 32) as i32" } else { "bits as i32" };
                        let body = format!("{value} let bits: {ty} = {bits}; {half}");
                        let _ = writeln!(out, "extern fn {name}() -> i32 {{ {body} }}");
                    }
                }
            }
        }
    }
}

/// A number of which these are the halves.
fn shown(prim: Prim, lower: u32, upper: u32, is_char: bool) -> String {
    let wide = u64::from(upper) << 32 | u64::from(lower);
    match prim {
        Prim::Bool => (lower & 1 != 0).to_string(),
        Prim::U8 if is_char && (b' '..=b'~').contains(&(lower as u8)) => {
            format!("'{}'", (lower as u8 as char).escape_default())
        }
        Prim::I8 | Prim::I16 | Prim::I32 => (lower as i32).to_string(),
        Prim::U8 => (lower as u8).to_string(),
        Prim::U16 => (lower as u16).to_string(),
        Prim::U32 => lower.to_string(),
        Prim::I64 => (wide as i64).to_string(),
        Prim::U64 => wide.to_string(),
        Prim::F16 | Prim::F32 => f32::from_bits(lower).to_string(),
        Prim::F64 => f64::from_bits(wide).to_string(),
    }
}

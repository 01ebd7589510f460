//! Finds stencils that are computed in place: one iteration writes what another one reads or writes. Separate from the search for
//! stores to one fixed address, since it compares addresses as sums.
//!
//! ```text
//! a(i) = a(i - 1) + 1      store to a + 4 i, load from a + 4 i - 4: what iteration i writes, iteration i + 1 reads
//! ```
//!
//! An address is a sum of three parts: values that are the same in all iterations, a multiple of the iteration's number, and a number of
//! bytes. If the sums of two accesses differ only in the number of bytes, and the difference is that of k iterations, then iterations i
//! and i + k access the same memory. On threads this is a race. In lanes, all iterations of a vector do the first access before any does
//! the second. The result is that of a loop, except
//!
//! - if k > 0 for a load before a store, or k < 0 for a store before a load or another store,
//! - and a vector has more than |k| lanes.
//!
//! Accesses under a condition that varies are not compared, unless the condition is an order of such sums, as `i > 0` is.

use super::sums::{MAX_TERMS, Sum};
use super::{Known, Lanes, Place};
use nyala_base::diagnostics::shared_write;
use nyala_base::{Diagnostic, Id, Span, graph};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, layout};
use rustc_hash::FxHashMap;

/// Limit on the accesses of one body.
const MAX_ACCESSES: usize = 128;

/// A load or store.
struct Access {
    block: Block,
    at: usize,
    span: Span,
    is_store: bool,
    sum: Sum,
}

/// Warnings of pairs of accesses of a body, by which iterations depend on each other.
pub fn find(
    module: &Module,
    function: &Function,
    cfg: &Cfg,
    of: &dyn Fn(Value) -> Known,
    launch: Span,
    lanes: Lanes,
) -> Vec<Diagnostic> {
    let defs: FxHashMap<Value, &Inst> =
        cfg.rpo.iter().flat_map(|&b| &function.block(b).insts).filter_map(|i| Some((i.result?, i))).collect();
    let sums = Sums { module, function, of, defs, counters: counters(function, cfg, of, lanes) };
    let tree = cfg.dominator_tree();
    let is_before = |a: &Access, b: &Access| match a.block == b.block {
        true => a.at < b.at,
        false => dominates(&tree, a.block, b.block),
    };
    let accesses = sums.accesses(cfg, &tree);
    let mut found = Vec::new();
    for store in accesses.iter().filter(|a| a.is_store) {
        for other in &accesses {
            let Some(k) = store.sum.distance(&other.sum) else { continue };
            let is_far = lanes.is_some_and(|n| n != 0 && k.unsigned_abs() >= n.into());
            let differs = match (lanes.is_some(), is_before(store, other), is_before(other, store)) {
                (false, ..) => true,
                (true, true, _) => k < 0,
                (true, false, true) => !other.is_store && k > 0,
                (true, false, false) => false,
            };
            if differs && !is_far {
                let access = (other.span, !other.is_store);
                found.push(shared_write::in_place(store.span, access, k.unsigned_abs(), launch, lanes.is_some()));
                break;
            }
        }
    }
    found
}

fn dominates(tree: &graph::Tree, a: Block, b: Block) -> bool {
    tree.meet(a.idx(), b.idx()) == a.idx()
}

/// Counters of loops over the iterations of one thread.
fn counters(function: &Function, cfg: &Cfg, of: &dyn Fn(Value) -> Known, lanes: Lanes) -> Vec<Value> {
    let mut found = Vec::new();
    if lanes.is_some() {
        return found;
    }
    let insts = cfg.rpo.iter().flat_map(|&b| &function.block(b).insts);
    let next: FxHashMap<Value, Value> = insts
        .filter(|i| i.op == InstOp::Op(Op::Add) && i.args.iter().any(|&a| function.as_bits(a) == Some(1)))
        .filter_map(|i| Some((i.result?, i.args[0])))
        .collect();
    for &b in &cfg.rpo {
        for (i, &param) in function.block(b).params.iter().enumerate() {
            let edges = cfg.preds[b.idx()].iter().flat_map(|&p| function.block(p).term.edges());
            let given: Vec<Value> = edges.filter(|e| e.block == b).map(|e| e.args[i]).collect();
            let steps = given.iter().filter(|v| next.get(v) == Some(&param)).count();
            let starts = given.iter().filter(|&&v| of(v).is_iteration).count();
            if steps > 0 && starts > 0 && steps + starts == given.len() {
                found.push(param);
            }
        }
    }
    found
}

struct Sums<'a> {
    module: &'a Module,
    function: &'a Function,
    of: &'a dyn Fn(Value) -> Known,
    defs: FxHashMap<Value, &'a Inst>,
    counters: Vec<Value>,
}

impl Sums<'_> {
    fn accesses(&self, cfg: &Cfg, tree: &graph::Tree) -> Vec<Access> {
        let unclear = self.unclear(cfg);
        let mut found = Vec::new();
        for &block in cfg.rpo.iter().filter(|&&b| !unclear.iter().any(|&g| dominates(tree, g, b))) {
            for (at, inst) in self.function.block(block).insts.iter().enumerate() {
                let is_store = inst.op == InstOp::Op(Op::Store);
                if !is_store && inst.op != InstOp::Op(Op::Load) || found.len() >= MAX_ACCESSES {
                    continue;
                }
                let known = (self.of)(inst.args[0]);
                if known.place == Place::Shared
                    && known.varies
                    && !inst.span.is_none()
                    && let Some(sum) = self.sum(inst.args[0])
                {
                    found.push(Access { block, at, span: inst.span, is_store, sum });
                }
            }
        }
        found
    }

    /// The blocks that only run under a condition that varies and is no order of sums.
    fn unclear(&self, cfg: &Cfg) -> Vec<Block> {
        let mut found = Vec::new();
        for &b in &cfg.rpo {
            if let Terminator::Branch { cond, then, els } = &self.function.block(b).term
                && (self.of)(*cond).varies
                && !self.is_order(*cond)
            {
                found.extend([then.block, els.block].into_iter().filter(|to| cfg.preds[to.idx()].len() == 1));
            }
        }
        found
    }

    /// Whether a condition is an order of sums, such as `i > 0`, or is made of such conditions by `&&` and `||`.
    fn is_order(&self, cond: Value) -> bool {
        let mut work = vec![cond];
        for _ in 0..MAX_TERMS {
            let Some(v) = work.pop() else { return true };
            if !(self.of)(v).varies {
                continue;
            }
            let Some(inst) = self.defs.get(&v) else { return false };
            match inst.op {
                InstOp::Op(Op::And | Op::Or) => work.extend(&inst.args),
                InstOp::Op(Op::Lt | Op::Le | Op::Gt | Op::Ge) if inst.args.iter().all(|&a| self.sum(a).is_some()) => {}
                _ => return false,
            }
        }
        false
    }

    /// A number or address as a sum. `None` if it has no such form.
    fn sum(&self, v: Value) -> Option<Sum> {
        let types = &self.module.types;
        // The terms that are still to be added, with their factors.
        let mut work = vec![(v, 1i64)];
        let mut sum = Sum::default();
        for _ in 0..MAX_TERMS {
            let Some((v, factor)) = work.pop() else { return Some(sum) };
            let known = (self.of)(v);
            if known.is_iteration || self.counters.contains(&v) {
                sum = sum.add(&Sum { iteration: 1, ..Sum::default() }, factor)?;
                continue;
            }
            if let Some(bytes) = self.number(v) {
                sum = sum.add(&Sum { bytes, ..Sum::default() }, factor)?;
                continue;
            }
            let inst = self.defs.get(&v).copied();
            match inst.map(|i| (i.op, &i.args[..])) {
                Some((InstOp::Op(Op::Add), &[a, b])) => work.extend([(a, factor), (b, factor)]),
                Some((InstOp::Op(Op::Sub), &[a, b])) => work.extend([(a, factor), (b, factor.checked_neg()?)]),
                Some((InstOp::Op(Op::Mul), &[a, b])) if known.varies => {
                    let (other, by) = self.number(b).map(|n| (a, n)).or_else(|| self.number(a).map(|n| (b, n)))?;
                    work.push((other, factor.checked_mul(by)?));
                }
                Some((InstOp::Op(Op::Cast | Op::Bitcast | Op::Aligned | Op::Restrict), &[a, ..])) => {
                    work.push((a, factor))
                }
                Some((InstOp::Op(Op::Lea), &[base, idx])) => {
                    let pointee = types.pointee(self.function.ty(base))?;
                    work.push((base, factor));
                    match self.number(idx) {
                        Some(i) => {
                            let bytes = match types.n_parts(pointee) {
                                Some(n) if (i as u64) < n => layout::offset(types, pointee, i as u64)? as i64,
                                _ => self.element_size(pointee)?.checked_mul(i)?,
                            };
                            sum = sum.add(&Sum { bytes, ..Sum::default() }, factor)?;
                        }
                        None => work.push((idx, factor.checked_mul(self.element_size(pointee)?)?)),
                    }
                }
                _ if !known.varies => sum = sum.add(&Sum { others: vec![(v, 1)], ..Sum::default() }, factor)?,
                _ => return None,
            }
        }
        None
    }

    /// The number of a literal, with its sign if its type is signed.
    fn number(&self, v: Value) -> Option<i64> {
        let prim = self.module.types.as_prim(self.function.ty(v))?;
        Some(prim.normalize(self.function.as_bits(v)?) as i64)
    }

    fn element_size(&self, array: nyala_ir::Ty) -> Option<i64> {
        let elem = self.module.types.part(array, 0)?;
        let (size, align) = layout::size_align(&self.module.types, elem)?;
        Some(size.next_multiple_of(align.max(1)) as i64)
    }
}

//! Finds updates at indices that may be equal in several iterations, such as histograms. Separate from the search for stencils
//! (`in_place.rs`), since it is not known which iterations have equal indices.
//!
//! ```text
//! count(table(i)) += 1     load and store to lea(count, load(lea(table, i))): iterations with the same index lose updates
//! ```
//!
//! A store is reported if nothing shows that its address differs between iterations (`shown.rs`), and if the function also loads from
//! the same array. Loads of other fields do not count, and neither do indices that differ by a literal: those are parts of one array.
//! An index that does not depend on the iteration's number is ignored: it may count the iterations of an inner loop. A store without a
//! load, a scatter, is not reported: its indices may be a permutation.

use super::{Known, Place};
use nyala_base::diagnostics::shared_write;
use nyala_base::{Diagnostic, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limits on the accesses of one body, and on the operations of one address.
const MAX_ACCESSES: usize = 128;
const MAX_STEPS: usize = 64;

/// The start of an address.
#[derive(PartialEq, Eq)]
enum Root {
    Value(Value),
    Global(GlobalId),
    /// The value at this position of the record of captures, which each use loads again.
    Capture(Vec<Step>),
}

/// A step from an address to an address within.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Step {
    Field(u64),
    /// To an element: the literal in the sum that is its index.
    Element(i64),
    /// A cast to another type of pointer.
    Cast,
}

struct Access {
    span: Span,
    root: Root,
    steps: Vec<Step>,
}

/// Warnings of the stores by which iterations with equal indices lose updates. Blocks in `guarded` are ignored.
pub fn find(
    module: &Module,
    function: &Function,
    cfg: &Cfg,
    of: &dyn Fn(Value) -> Known,
    guarded: &FxHashSet<Block>,
    launch: Span,
    in_lanes: bool,
) -> Vec<Diagnostic> {
    let blocks = || cfg.rpo.iter().filter(|b| !guarded.contains(b)).flat_map(|&b| &function.block(b).insts);
    let is_unshown = |known: Known| known.place == Place::Shared && known.by_number && !known.shown.differs();
    let is_met = |i: &&Inst| i.op == InstOp::Op(Op::Store) && !i.span.is_none() && is_unshown(of(i.args[0]));
    let stores: Vec<&Inst> = blocks().filter(is_met).take(MAX_ACCESSES).collect();
    if stores.is_empty() {
        return Vec::new();
    }
    let insts = cfg.rpo.iter().flat_map(|&b| &function.block(b).insts);
    let defs: FxHashMap<Value, &Inst> = insts.filter_map(|i| Some((i.result?, i))).collect();
    let addresses = Addresses { module, function, of, defs };
    let is_load = |i: &&Inst| i.op == InstOp::Op(Op::Load) && of(i.args[0]).place == Place::Shared;
    let loads: Vec<Access> = blocks().filter(is_load).take(MAX_ACCESSES).filter_map(|i| addresses.access(i)).collect();
    // A store of the value that was loaded from the same address changes nothing.
    let changes = |store: &&&Inst| {
        let load = addresses.defs.get(&store.args[1]);
        !load.is_some_and(|i| i.op == InstOp::Op(Op::Load) && i.args[0] == store.args[0])
    };
    let warning = |store: &&Inst| {
        let store = addresses.access(store)?;
        let load = loads.iter().find(|load| store.may_meet(load))?;
        Some(shared_write::scattered(store.span, load.span, launch, in_lanes))
    };
    stores.iter().filter(changes).filter_map(warning).collect()
}

impl Access {
    fn may_meet(&self, other: &Access) -> bool {
        // Steps after a cast cannot be compared.
        let is_cast = |(a, b): &(&Step, &Step)| [a, b].contains(&&&Step::Cast);
        let mut steps = self.steps.iter().zip(&other.steps).take_while(|pair| !is_cast(pair));
        self.root == other.root && steps.all(|(a, b)| a == b)
    }
}

struct Addresses<'a> {
    module: &'a Module,
    function: &'a Function,
    of: &'a dyn Fn(Value) -> Known,
    defs: FxHashMap<Value, &'a Inst>,
}

impl Addresses<'_> {
    fn access(&self, inst: &Inst) -> Option<Access> {
        let (root, steps) = self.address(inst.args[0])?;
        let root = match self.defs.get(&root) {
            Some(load) if load.op == InstOp::Op(Op::Load) && (self.of)(load.args[0]).place == Place::Captures => {
                Root::Capture(self.address(load.args[0])?.1)
            }
            _ => match self.function.as_const(root) {
                Some(Const::Global(global)) => Root::Global(global),
                _ => Root::Value(root),
            },
        };
        Some(Access { span: inst.span, root, steps })
    }

    /// The start of an address, and the steps from there.
    fn address(&self, mut v: Value) -> Option<(Value, Vec<Step>)> {
        let mut steps = Vec::new();
        for _ in 0..MAX_STEPS {
            let Some(inst) = self.defs.get(&v) else {
                steps.reverse();
                return Some((v, steps));
            };
            match inst.op {
                InstOp::Op(Op::Lea) => {
                    let pointee = self.module.types.pointee(self.function.ty(inst.args[0]))?;
                    let is_record =
                        matches!(self.module.types.kind(pointee), TyKind::Struct { .. } | TyKind::Tuple { .. });
                    steps.push(match self.function.as_bits(inst.args[1]) {
                        Some(i) if is_record => Step::Field(i),
                        _ => Step::Element(self.literal(inst.args[1])),
                    });
                    v = inst.args[0];
                }
                InstOp::Op(Op::Bitcast | Op::Aligned | Op::Restrict) => {
                    if inst.op == InstOp::Op(Op::Bitcast) {
                        steps.push(Step::Cast);
                    }
                    v = inst.args[0];
                }
                _ => {
                    steps.reverse();
                    return Some((v, steps));
                }
            }
        }
        None
    }

    /// The literal in a sum.
    fn literal(&self, mut v: Value) -> i64 {
        let number = |v: Value| {
            let prim = self.module.types.as_prim(self.function.ty(v))?;
            Some(prim.normalize(self.function.as_bits(v)?) as i64)
        };
        let mut sum = 0i64;
        for _ in 0..MAX_STEPS {
            if let Some(n) = number(v) {
                return sum.wrapping_add(n);
            }
            let Some(inst) = self.defs.get(&v) else { break };
            match (inst.op, &inst.args[..]) {
                (InstOp::Op(Op::Cast), &[x, ..]) => v = x,
                (InstOp::Op(Op::Add), &[x, y]) => match (number(x), number(y)) {
                    (Some(n), _) => (sum, v) = (sum.wrapping_add(n), y),
                    (_, Some(n)) => (sum, v) = (sum.wrapping_add(n), x),
                    _ => break,
                },
                (InstOp::Op(Op::Sub), &[x, y]) if let Some(n) = number(y) => (sum, v) = (sum.wrapping_sub(n), x),
                _ => break,
            }
        }
        sum
    }
}

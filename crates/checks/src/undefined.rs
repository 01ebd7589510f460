//! Checks that a number has been given a value before it is used. This pass runs before the vectorizer, which makes undefined values
//! of its own. It is separate from `shadows.rs`, since variables that were promoted to values have no bytes.
//!
//! A block parameter that may be undefined gets a second parameter, which tells whether it is defined:
//!
//! ```text
//! entry(c): branch c, then(), join(undef)      entry(c): branch c, then(), join(undef, false)
//! then(): jump join(4)                         then(): jump join(4, true)
//! join(x):                                     join(x, is_defined):
//!   y = add(x, 1)                                branch is_defined, next(), fail()
//!                                              next(): y = add(x, 1)
//!                                              fail(): call nyala_check_undefined()
//! ```
//!
//! A function of this name does not exist: `insert-checks` replaces its calls by reports. An operation whose result is used on some
//! paths only does not count as a use of its operands; its result is undefined if they are.
//!
//! Not checked are numbers that are stored, arguments and results of the program's own functions, parts of aggregates, and code in
//! lanes.

use super::code::Code;
use super::lane_arithmetic::in_lanes;
use super::needed::needed;
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::simplify::drop_unreachable;
use nyala_flat::*;
use nyala_ir::{Effect, Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The symbol of the function that stands for reports, until `insert-checks` replaces its calls.
pub const UNDEFINED: &str = "nyala_check_undefined";

/// Inserts checks of numbers that may be undefined.
pub fn insert_undefined_checks(module: &mut Module) {
    let in_lanes: FxHashSet<Func> = in_lanes(module).into_iter().collect();
    let is_foreign: Vec<bool> = module.funcs.iter().map(Function::is_foreign).collect();
    let mut report = None;
    for f in (0..module.funcs.len()).map(Func::from_idx).filter(|f| !in_lanes.contains(f)) {
        // `insert-checks` does this, too; without optimization, no pass has done it before.
        promote_slots_of(&mut module.types, &mut module.funcs[f.idx()]);
        let undefined = Undefined::new(module, f);
        if undefined.all.is_empty() {
            continue;
        }
        let report = *report.get_or_insert_with(|| {
            let linkage = Linkage::Foreign(UNDEFINED.into());
            module.declare(UNDEFINED, linkage, &[], &[])
        });
        undefined.check(module, f, report, &is_foreign);
    }
}

/// The values of a function that may be undefined.
struct Undefined {
    all: FxHashSet<Value>,
    needed: FxHashSet<Value>,
}

impl Undefined {
    fn new(module: &Module, f: Func) -> Undefined {
        let function = module.func(f);
        let is_number = |v: Value| matches!(module.types.kind(function.ty(v)), TyKind::Prim(_));
        let is_undef = |v: Value| function.as_const(v) == Some(Const::Undef) && is_number(v);
        let mut all: FxHashSet<Value> =
            (0..function.values.len()).map(Value::from_idx).filter(|&v| is_undef(v)).collect();
        if all.is_empty() || function.blocks.is_empty() {
            return Undefined { all: FxHashSet::default(), needed: FxHashSet::default() };
        }
        // The parameters to which each value is passed.
        let needed = needed(function);
        let mut to: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for block in &function.blocks {
            for edge in block.term.edges() {
                for (&arg, &param) in edge.args.iter().zip(&function.block(edge.block).params) {
                    to.entry(arg).or_default().push(param);
                }
            }
            for inst in block.insts.iter().filter(|i| passes_on(i, &needed)) {
                for &arg in &inst.args {
                    to.entry(arg).or_default().extend(inst.result);
                }
            }
        }
        let mut work: Vec<Value> = all.iter().copied().collect();
        while let Some(v) = work.pop() {
            for &v in to.get(&v).into_iter().flatten() {
                if all.insert(v) {
                    work.push(v);
                }
            }
        }
        Undefined { all, needed }
    }

    fn check(self, module: &mut Module, f: Func, report: Func, is_foreign: &[bool]) {
        let function = &mut module.funcs[f.idx()];
        drop_unreachable(function);
        let bool_ty = module.types.bool();
        let mut code = Code::new(&mut module.types, function);
        // Whether a value is defined, if that is not certain.
        let mut told: FxHashMap<Value, Value> = FxHashMap::default();
        let bits = |code: &mut Code, bit: u64| code.function.constant(Const::Bits(bit), bool_ty);
        for &v in &self.all {
            if code.function.as_const(v).is_some() {
                let no = bits(&mut code, 0);
                told.insert(v, no);
            }
        }
        let rpo = Cfg::new(code.function).rpo;
        let mut beside: FxHashMap<Block, Vec<usize>> = FxHashMap::default();
        for &b in &rpo {
            let params = code.function.block(b).params.clone();
            for (i, &param) in params.iter().enumerate().filter(|(_, param)| self.all.contains(param)) {
                let is_defined = code.function.new_value(bool_ty, "is_defined");
                code.function.blocks[b.idx()].params.push(is_defined);
                told.insert(param, is_defined);
                beside.entry(b).or_default().push(i);
            }
        }
        for b in rpo {
            code.current = b;
            // The values that the block has tested so far.
            let mut known: FxHashSet<Value> = FxHashSet::default();
            for inst in std::mem::take(&mut code.function.blocks[b.idx()].insts) {
                code.span = inst.span;
                let mut tests: Vec<Value> = Vec::new();
                if passes_on(&inst, &self.needed) {
                    let parts: Vec<Value> = inst.args.iter().filter_map(|a| told.get(a).copied()).collect();
                    if let (Some(result), false) = (inst.result, parts.is_empty()) {
                        let is_defined = match (inst.op, &inst.args[..]) {
                            (InstOp::Op(Op::Select), &[cond, a, b]) => {
                                let yes = bits(&mut code, 1);
                                let [cond_told, a, b] = [cond, a, b].map(|v| told.get(&v).copied().unwrap_or(yes));
                                let chosen = code.op(Op::Select, &[cond, a, b], bool_ty);
                                code.op(Op::And, &[cond_told, chosen], bool_ty)
                            }
                            _ => parts[1..].iter().fold(parts[0], |a, &b| code.op(Op::And, &[a, b], bool_ty)),
                        };
                        told.insert(result, is_defined);
                    }
                } else {
                    let used: &[Value] = match inst.op {
                        InstOp::Op(Op::Store | Op::AtomicStore) => &inst.args[..1],
                        InstOp::Op(op) if is_aggregate(op) || op == Op::DebugValue => &[],
                        InstOp::Op(_) => &inst.args,
                        InstOp::Call(f) if is_foreign.get(f.idx()) == Some(&true) => &inst.args,
                        _ => &[],
                    };
                    tests.extend(used.iter().filter_map(|v| told.get(v).copied()).filter(|&v| known.insert(v)));
                }
                for holds in tests {
                    require(&mut code, holds, report);
                }
                code.insts.push(inst);
            }
            if let Terminator::Branch { cond, .. } = code.function.block(code.current).term
                && let Some(&holds) = told.get(&cond)
                && known.insert(holds)
            {
                require(&mut code, holds, report);
            }
            let mut term =
                std::mem::replace(&mut code.function.blocks[code.current.idx()].term, Terminator::Unreachable);
            for edge in term.edges_mut() {
                for &i in beside.get(&edge.block).into_iter().flatten() {
                    let is_defined = told.get(&edge.args[i]).copied();
                    let is_defined = is_defined.unwrap_or_else(|| bits(&mut code, 1));
                    edge.args.push(is_defined);
                }
            }
            let block = &mut code.function.blocks[code.current.idx()];
            (block.insts, block.term) = (std::mem::take(&mut code.insts), term);
        }
    }
}

/// Whether an instruction passes undefinedness on to its result, instead of being a use of its operands.
fn passes_on(inst: &Inst, needed: &FxHashSet<Value>) -> bool {
    let InstOp::Op(op) = inst.op else { return false };
    let is_used = op != Op::Select && inst.result.is_some_and(|r| needed.contains(&r));
    op.effect() == Effect::Total && !is_aggregate(op) && !is_used
}

/// Whether a value is a number; parts of aggregates are not checked.
fn is_aggregate(op: Op) -> bool {
    matches!(op, Op::Tuple | Op::Struct | Op::Array | Op::Splat | Op::Insert | Op::Extract)
}

fn require(code: &mut Code, holds: Value, report: Func) {
    let before = code.begin_report();
    code.call(report, &[], None);
    code.end_report(holds, before);
}

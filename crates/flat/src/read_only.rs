//! What a kernel reads that it never writes: GPUs read such memory by way of a cache that does not see writes. Separate from the back
//! ends, which say it in the words of their languages: `ld.global.nc`, `restrict`, `NoWrite`.
//!
//! ```text
//! kernel "twice" twice(&[f32], &[f32], i32)      restrict to: &mut [f32], from: &[f32]
//! entry(to, from, n):
//!   s: i32 = scope()
//!   t: &[f32] = restrict(to, s, 1i32)            the one promise is enough for both
//!   f: &[f32] = restrict(from, s, 0i32)
//!   …
//!   x: f32 = load(lea(f, i))                     `from` is only read
//! ```
//!
//! A load is of such memory if it is shown or promised that no write of the kernel can be one of the same memory. Addresses that a
//! kernel takes may be equal. So each write has to be of memory of the work item or of the block, or by another parameter from which
//! a call with `restrict` tells the load's apart. Addresses are followed from parameters through `lea`, `bitcast`, `aligned` and
//! `restrict` only; a write by an address of unknown origin may be one of any memory.
//!
//! A kernel that takes part in synchronization with other blocks or with the host, by a fence or an atomic operation that
//! orders others, may read what these wrote while it runs: it has no such load. Neither has a kernel with assembly, with calls of
//! functions that are not known, or with functions of its own that write.

use crate::analysis::Cfg;
use crate::{Callee, Func, Function, Inst, InstOp, Linkage, Module, Terminator, Value};
use nyala_ir::lanes::printed;
use nyala_ir::{LaneOp, Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// What a kernel only reads.
#[derive(Default)]
pub struct ReadOnly {
    /// Results of loads of such memory.
    pub loads: FxHashSet<Value>,
    /// Parameters by which the kernel does nothing else.
    pub params: FxHashSet<Value>,
}

/// Where an address comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// Memory of the work item or of the block.
    Own,
    /// A parameter of the kernel.
    Param(Value),
}

/// An address of known origin, with the calls with restricted parameters on its way: which, and whether the parameter is restricted.
#[derive(Clone)]
struct Address {
    root: Root,
    calls: Rc<[(Value, bool)]>,
}

/// Scopes of memory other than global memory.
const SPACES: [u8; 2] = [3, 5];

/// The least order of an atomic operation that orders other accesses is above this one, `monotonic`.
const RELAXED: u64 = 2;

/// What a kernel reads that it never writes. Nothing for other functions.
pub fn read_only(module: &Module, kernel: Func) -> ReadOnly {
    let function = module.func(kernel);
    if !matches!(function.linkage, Linkage::Kernel(..)) {
        return ReadOnly::default();
    }
    let mut cache = FxHashMap::default();
    let addresses = addresses(module, function);
    let Some(writes) = writes(module, function, &addresses, &mut cache) else { return ReadOnly::default() };
    let mut found = ReadOnly::default();
    let mut other: FxHashSet<Value> = FxHashSet::default();
    for inst in function.blocks.iter().flat_map(|b| &b.insts) {
        let is_load = inst.op == InstOp::Op(Op::Load);
        let address = inst.args.first().and_then(|a| addresses.get(a)).filter(|_| is_load);
        if let (Some(address), Some(result)) = (address, inst.result)
            && let Root::Param(param) = address.root
            && writes.iter().all(|write| are_apart(address, write))
        {
            found.loads.insert(result);
            found.params.insert(param);
            continue;
        }
        // The result of a `lea` and the like is an address itself.
        let is_way = inst.result.is_some_and(|r| addresses.contains_key(&r));
        for (i, arg) in inst.args.iter().enumerate() {
            if let Some(Address { root: Root::Param(param), .. }) = addresses.get(arg)
                && !(is_way && i == 0)
            {
                other.insert(*param);
            }
        }
    }
    for block in &function.blocks {
        block.term.for_each_use(|v| {
            if let Some(Address { root: Root::Param(param), .. }) = addresses.get(&v) {
                other.insert(*param);
            }
        });
    }
    found.params.retain(|param| !other.contains(param));
    found
}

/// The addresses of known origin in a function. Of another function than a kernel, parameters are not known.
fn addresses(module: &Module, function: &Function) -> FxHashMap<Value, Address> {
    let is_kernel = matches!(function.linkage, Linkage::Kernel(..));
    let mut found: FxHashMap<Value, Address> = FxHashMap::default();
    let none: Rc<[(Value, bool)]> = Rc::new([]);
    let space = |v: Value| match module.types.kind(function.ty(v)) {
        TyKind::Ptr { space, .. } => Some(*space),
        _ => None,
    };
    for &param in function.blocks.first().map_or(&[][..], |b| &b.params).iter().filter(|_| is_kernel) {
        if let Some(space) = space(param) {
            let root = if SPACES.contains(&space) { Root::Own } else { Root::Param(param) };
            found.insert(param, Address { root, calls: none.clone() });
        }
    }
    for block in Cfg::new(function).rpo {
        for inst in &function.block(block).insts {
            let Some(result) = inst.result.filter(|&r| space(r).is_some()) else { continue };
            let from = inst.args.first().and_then(|a| found.get(a)).cloned();
            let is_shared = || module.lane_op(inst).is_some_and(|(op, _)| op == LaneOp::Shared);
            let address = match (inst.op, from) {
                (InstOp::Op(Op::Slot), _) => Some(Address { root: Root::Own, calls: none.clone() }),
                (InstOp::Call(_), _) if is_shared() => Some(Address { root: Root::Own, calls: none.clone() }),
                (InstOp::Op(Op::Lea | Op::Bitcast | Op::Aligned), from) => from,
                (InstOp::Op(Op::Restrict), Some(from)) => {
                    let own = (inst.args[1], function.as_bits(inst.args[2]) == Some(1));
                    let calls = from.calls.iter().copied().chain([own]).collect();
                    Some(Address { root: from.root, calls })
                }
                _ => None,
            };
            found.extend(address.map(|address| (result, address)));
        }
    }
    found
}

/// Whether a load and a write are of different memory: the write is of the work item's or the block's; or both were parameters of one
/// call, one of them restricted.
fn are_apart(load: &Address, write: &Address) -> bool {
    let of_one_call = || {
        let mut pairs = load.calls.iter().flat_map(|a| write.calls.iter().map(move |b| (a, b)));
        pairs.any(|((a, is_restricted), (b, is_other))| a == b && (*is_restricted || *is_other))
    };
    write.root == Root::Own || (load.root != write.root && of_one_call())
}

/// The addresses of all writes of a function to memory that is not its own. `None` if it cannot be known, or if it orders accesses.
fn writes(
    module: &Module,
    function: &Function,
    addresses: &FxHashMap<Value, Address>,
    cache: &mut FxHashMap<Func, bool>,
) -> Option<Vec<Address>> {
    let mut found = Vec::new();
    for block in &function.blocks {
        for inst in &block.insts {
            match inst.op {
                InstOp::Op(op) => {
                    if orders(function, op, inst) {
                        return None;
                    }
                    if let Some((address, _)) = op.writes() {
                        let address = addresses.get(inst.args.get(address - 1)?)?;
                        found.extend((address.root != Root::Own).then(|| address.clone()));
                    }
                }
                InstOp::Call(callee) => writes_nothing(module, callee, cache).then_some(())?,
                InstOp::Vector(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => return None,
            }
        }
        match &block.term {
            Terminator::TailCall { callee: Callee::Func(callee), .. } => {
                writes_nothing(module, *callee, cache).then_some(())?;
            }
            Terminator::TailCall { .. } => return None,
            _ => {}
        }
    }
    Some(found)
}

/// Whether an operation orders accesses of memory by others.
fn orders(function: &Function, op: Op, inst: &Inst) -> bool {
    // The chain of memories is no operand in flat code.
    let mut orders = op.literal_operands().filter_map(|i| inst.args.get(i - 1));
    orders.any(|&order| function.as_bits(order).is_none_or(|order| order > RELAXED))
}

/// Whether a function writes no memory but its own. A function that is asked for while it is looked at may write.
fn writes_nothing(module: &Module, callee: Func, cache: &mut FxHashMap<Func, bool>) -> bool {
    if let Some(&known) = cache.get(&callee) {
        return known;
    }
    let function = module.func(callee);
    if function.is_foreign() {
        return function.symbol().is_some_and(|s| LaneOp::of_symbol(s).is_some() || printed(s).is_some());
    }
    cache.insert(callee, false);
    // Calls nest as deep as the longest chain of functions: kernels do not recurse.
    let found = cache.len() <= MAX_FUNCTIONS
        && writes(module, function, &addresses(module, function), cache).is_some_and(|writes| writes.is_empty());
    cache.insert(callee, found);
    found
}

/// Functions that a kernel may call; more are not looked at.
const MAX_FUNCTIONS: usize = 100;

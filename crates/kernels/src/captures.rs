//! Variables of the host that kernels capture. A launch does not wait for its kernel, so a kernel works on a copy: the
//! variable's value at the launch. A kernel that writes such a variable, or gives its address away, is an error.
//!
//! ```text
//! let mut k = 5;
//! opencl(0, grid, block, || { out(i) = k; });     the kernel has 5, whatever becomes of k
//! opencl(0, grid, block, || { k = 6; });          error
//! ```
//!
//! A channel of `hls` is no memory, though it is a variable of the program: kernels get the channel itself.

use super::diagnostics::{host_memory_in_kernel, not_on_platform};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::*;
use nyala_ir::lanes::{is_channel, is_hls};
use nyala_ir::{Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// How a kernel uses a variable.
enum Access {
    Reads,
    Writes(Span),
    Escapes,
    /// As a channel.
    Channel,
}

/// For each value that a launch captures, whether it is the address of a variable of the host that the kernel gets a
/// copy of.
///
/// # Errors
/// The kernel writes such a variable, or uses the address otherwise. If the kernel runs on a device, also: a captured
/// address certainly lies in the host's memory.
pub(super) fn captures(
    module: &Module,
    func: Func,
    inst: &Inst,
    is_on_host: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<bool> {
    let InstOp::Launch(kernel, platform) = inst.op else { return Vec::new() };
    let has_channels = is_hls(platform);
    let function = module.func(func);
    let definitions: FxHashMap<Value, &Inst> =
        function.blocks.iter().flat_map(|b| &b.insts).filter_map(|inst| Some((inst.result?, inst))).collect();
    let op = |v: Value| definitions.get(&v).map(|inst| inst.op);
    let root = |mut v: Value| {
        while let Some(inst) = definitions.get(&v)
            && matches!(inst.op, InstOp::Op(Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict))
        {
            v = inst.args[0];
        }
        v
    };
    let entry = &module.func(kernel).blocks[0];
    let mut copied = Vec::new();
    for (i, &arg) in inst.args[N_LAUNCH..].iter().enumerate() {
        let is_address = matches!(module.types.kind(function.ty(arg)), TyKind::Ptr { .. });
        let of = root(arg);
        let is_variable = is_address && op(of) == Some(InstOp::Op(Op::Slot));
        let is_sized = module
            .types
            .pointee(function.ty(arg))
            .is_some_and(|t| !matches!(module.types.kind(t), TyKind::IndefArray(_)));
        let mut is_copied = is_variable && is_sized;
        let mut host = |what: &str| {
            if !is_on_host {
                diagnostics.push(host_memory_in_kernel::passed(inst.span, what));
            }
        };
        match () {
            () if is_copied => match entry.params.get(i).map_or(Access::Reads, |&p| access(module, kernel, p)) {
                Access::Reads => {}
                Access::Writes(span) => diagnostics.push(host_memory_in_kernel::written(span)),
                Access::Channel if has_channels => is_copied = false,
                Access::Channel if is_on_host => {}
                Access::Channel => diagnostics.push(not_on_platform::channel(inst.span)),
                Access::Escapes => host("the address of a local variable"),
            },
            () if is_variable => host("the address of a local variable"),
            () if op(of) == Some(InstOp::Op(Op::Alloc)) => host("memory from `~` or `alloc`"),
            () => match function.as_const(of) {
                Some(Const::Global(global)) if module.globals[global.idx()].mutable => {
                    host(&format!("the address of `static mut {}`", module.globals[global.idx()].name));
                }
                _ => {}
            },
        }
        copied.push(is_copied);
    }
    copied
}

/// Where a value is used: the block, and the instruction, or `None` for the terminator.
type Uses = FxHashMap<Value, Vec<(usize, Option<usize>)>>;

fn uses(function: &Function) -> Uses {
    let mut uses = Uses::default();
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            inst.args.iter().for_each(|&a| uses.entry(a).or_default().push((b, Some(i))));
        }
        block.term.for_each_use(|a| uses.entry(a).or_default().push((b, None)));
    }
    uses
}

/// Whether a function, and the functions that it calls, only read the memory at an address.
pub(super) fn only_reads(module: &Module, func: Func, address: Value) -> bool {
    matches!(access(module, func, address), Access::Reads)
}

/// How a function, and the functions that it calls, use the memory at an address.
fn access(module: &Module, func: Func, address: Value) -> Access {
    let mut known: FxHashMap<Func, Uses> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut work = vec![(func, address)];
    while let Some((func, address)) = work.pop() {
        if !seen.insert((func, address)) {
            continue;
        }
        let function = module.func(func);
        let places = known.entry(func).or_insert_with(|| uses(function)).get(&address).cloned().unwrap_or_default();
        for (b, i) in places {
            let block = &function.blocks[b];
            let Some(i) = i else {
                for edge in block.term.edges() {
                    let params = &function.block(edge.block).params;
                    work.extend(edge.args.iter().zip(params).filter(|(a, _)| **a == address).map(|(_, &p)| (func, p)));
                }
                match &block.term {
                    Terminator::TailCall { callee: Callee::Func(f), args, .. } => {
                        pass_on(module, *f, args, address, &mut work);
                        if module.func(*f).is_foreign() {
                            return Access::Escapes;
                        }
                    }
                    Terminator::TailCall { .. } | Terminator::Return(_) => return Access::Escapes,
                    Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Unreachable => {}
                }
                continue;
            };
            let inst = &block.insts[i];
            match (inst.op, inst.result) {
                (InstOp::Op(Op::Load), _) => {}
                (InstOp::Op(Op::Lea | Op::Aligned | Op::Restrict | Op::Select), Some(r)) => work.push((func, r)),
                (InstOp::Op(Op::Bitcast), Some(r))
                    if matches!(module.types.kind(function.ty(r)), TyKind::Ptr { .. }) =>
                {
                    work.push((func, r));
                }
                (InstOp::Op(op), _) if op.is_comparison() || op == Op::Prefetch => {}
                (InstOp::Op(op), _) if op.writes().is_some() => {
                    // The operand's index; flat code has no `mem`, which counts in the table of ops.
                    let (place, _) = op.writes().unwrap_or((1, 2));
                    let is_place = inst.args.get(place - 1) == Some(&address);
                    return if is_place { Access::Writes(inst.span) } else { Access::Escapes };
                }
                (InstOp::Call(f), _) if !module.func(f).is_foreign() => {
                    pass_on(module, f, &inst.args, address, &mut work)
                }
                (InstOp::Call(f), _)
                    if module.func(f).symbol().is_some_and(is_channel) && inst.args.get(1) == Some(&address) =>
                {
                    return Access::Channel;
                }
                (InstOp::Vectorize(f, ..), _) => {
                    // The parameters of the body are the iteration's number and the arguments after the two bounds.
                    pass_on(module, f, &inst.args[1..], address, &mut work);
                }
                _ => return Access::Escapes,
            }
        }
    }
    Access::Reads
}

/// Queues the parameters to which a call passes the address.
fn pass_on(module: &Module, callee: Func, args: &[Value], address: Value, work: &mut Vec<(Func, Value)>) {
    let Some(entry) = module.func(callee).blocks.first() else { return };
    work.extend(args.iter().zip(&entry.params).filter(|(a, _)| **a == address).map(|(_, &p)| (callee, p)));
}

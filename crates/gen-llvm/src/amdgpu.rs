//! Kernels for AMD's GPUs: what only they have, as LLVM text.

use crate::emit::Emitter;
use crate::function::FunctionEmitter;
use crate::gpu::{block_variable, call, get, unsupported};
use nyala_base::Diagnostic;
use nyala_flat::{Linkage, Value};
use nyala_ir::{LaneOp, Scope, WorkItem};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// In the packet of a launch, the offset of the extents of a block (16 bits each), and of the grid's (32 bits each), which
/// count work items. From the HSA Runtime Programmer's Reference Manual, `hsa_kernel_dispatch_packet_t`.
const BLOCK_SIZE: usize = 4;
const GRID_SIZE: usize = 12;

/// The attributes of a kernel for the extents of a block, if they are known.
pub(crate) fn bounds(e: &mut Emitter, [x, y, z]: [u32; 3]) -> String {
    match x * y * z {
        0 => " \"amdgpu-flat-work-group-size\"=\"1,1024\"".into(),
        n => {
            let sizes = e.metadata(&format!("!{{i32 {x}, i32 {y}, i32 {z}}}"));
            format!(" \"amdgpu-flat-work-group-size\"=\"{n},{n}\" !reqd_work_group_size {sizes}")
        }
    }
}

/// The answer to a question of a work item.
pub(crate) fn work_item(f: &mut FunctionEmitter, what: WorkItem, axis: usize) -> String {
    let name = ["x", "y", "z"][axis];
    match what {
        WorkItem::Thread => call(f, "i32", &format!("llvm.amdgcn.workitem.id.{name}"), &[]),
        WorkItem::Block => call(f, "i32", &format!("llvm.amdgcn.workgroup.id.{name}"), &[]),
        WorkItem::BlockSize => block_size(f, axis),
        WorkItem::Blocks => {
            let size = match &f.function.linkage {
                Linkage::Kernel(_, sizes) if sizes[axis] > 0 => sizes[axis].to_string(),
                _ => block_size(f, axis),
            };
            let items = packet(f, GRID_SIZE + 4 * axis, "i32");
            let [less, sum, blocks] = [(); 3].map(|()| f.temp());
            f.line(format_args!("{less} = sub i32 {size}, 1"));
            f.line(format_args!("{sum} = add i32 {items}, {less}"));
            f.line(format_args!("{blocks} = udiv i32 {sum}, {size}"));
            blocks
        }
    }
}

fn block_size(f: &mut FunctionEmitter, axis: usize) -> String {
    let (size, wide) = (packet(f, BLOCK_SIZE + 2 * axis, "i16"), f.temp());
    f.line(format_args!("{wide} = zext i16 {size} to i32"));
    wide
}

/// A number in the packet of the launch.
fn packet(f: &mut FunctionEmitter, offset: usize, ty: &str) -> String {
    let packet = call(f, "ptr addrspace(4)", "llvm.amdgcn.dispatch.ptr", &[]);
    let [at, number] = [(); 2].map(|()| f.temp());
    f.line(format_args!("{at} = getelementptr i8, ptr addrspace(4) {packet}, i64 {offset}"));
    f.line(format_args!("{number} = load {ty}, ptr addrspace(4) {at}"));
    number
}

/// Waits for the work items of a block.
fn barrier(f: &mut FunctionEmitter) -> String {
    f.line(format_args!("fence syncscope(\"workgroup\") release"));
    let done = call(f, "void", "llvm.amdgcn.s.barrier", &[]);
    f.line(format_args!("fence syncscope(\"workgroup\") acquire"));
    done
}

/// A vote of the work items of a block: they count in a variable of the block, which each of them has set to 0 before.
fn vote(f: &mut FunctionEmitter, op: LaneOp, result: Value, holds: Value) -> String {
    const ORDER: &str = "syncscope(\"workgroup\") monotonic";
    let votes = block_variable(f, result, "votes", "i32", 4);
    let counted = match op {
        LaneOp::All => ("i32 0", "i32 1"),
        _ => ("i32 1", "i32 0"),
    };
    let (holds, vote, n) = (f.op(holds), f.temp(), f.temp());
    barrier(f);
    f.line(format_args!("store atomic i32 0, ptr addrspace(3) {votes} {ORDER}, align 4"));
    barrier(f);
    f.line(format_args!("{vote} = select i1 {holds}, {}, {}", counted.0, counted.1));
    let old = f.temp();
    f.line(format_args!("{old} = atomicrmw add ptr addrspace(3) {votes}, i32 {vote} {ORDER}"));
    barrier(f);
    f.line(format_args!("{n} = load atomic i32, ptr addrspace(3) {votes} {ORDER}, align 4"));
    let test = match op {
        LaneOp::Count => return n,
        LaneOp::All => "eq",
        _ => "ne",
    };
    let holds = f.temp();
    f.line(format_args!("{holds} = icmp {test} i32 {n}, 0"));
    holds
}

/// An operation among the work items of a block, or among the lanes of a wave that are active.
pub(crate) fn lanes(
    f: &mut FunctionEmitter,
    (op, scope): (LaneOp, Scope),
    result: Value,
    args: &[Value],
) -> Result<String> {
    let in_wave = scope != Scope::Block;
    let line = |f: &mut FunctionEmitter, text: String| {
        let name = f.temp();
        f.line(format_args!("{name} = {text}"));
        name
    };
    let ballot =
        |f: &mut FunctionEmitter, holds: &str| call(f, "i64", "llvm.amdgcn.ballot.i64", &[format!("i1 {holds}")]);
    Ok(match op {
        LaneOp::Barrier if in_wave => call(f, "void", "llvm.amdgcn.wave.barrier", &[]),
        LaneOp::Barrier => barrier(f),
        LaneOp::Any | LaneOp::All | LaneOp::Count if !in_wave => vote(f, op, result, args[0]),
        LaneOp::Any if in_wave => {
            let holds = f.op(args[0]);
            let lanes = ballot(f, &holds);
            line(f, format!("icmp ne i64 {lanes}, 0"))
        }
        LaneOp::All if in_wave => {
            let holds = f.op(args[0]);
            let fails = line(f, format!("xor i1 {holds}, true"));
            let lanes = ballot(f, &fails);
            line(f, format!("icmp eq i64 {lanes}, 0"))
        }
        LaneOp::Ballot if in_wave => {
            let holds = f.op(args[0]);
            ballot(f, &holds)
        }
        LaneOp::Count if in_wave => {
            let holds = f.op(args[0]);
            let lanes = ballot(f, &holds);
            let count = call(f, "i64", "llvm.ctpop.i64", &[format!("i64 {lanes}")]);
            line(f, format!("trunc i64 {count} to i32"))
        }
        LaneOp::Get if in_wave => {
            let lane = f.op(args[1]);
            let bytes = line(f, format!("shl i32 {lane}, 2"));
            return get(f, result, args[0], &mut |f, word| {
                call(f, "i32", "llvm.amdgcn.ds.bpermute", &[format!("i32 {bytes}"), format!("i32 {word}")])
            });
        }
        LaneOp::Id if in_wave => {
            let low = call(f, "i32", "llvm.amdgcn.mbcnt.lo", &["i32 -1".into(), "i32 0".into()]);
            call(f, "i32", "llvm.amdgcn.mbcnt.hi", &["i32 -1".into(), format!("i32 {low}")])
        }
        LaneOp::Width if in_wave => call(f, "i32", "llvm.amdgcn.wavefrontsize", &[]),
        _ => return Err(unsupported(f, (op, scope), result, "AMD's GPUs")),
    })
}

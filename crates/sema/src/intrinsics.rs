//! Functions of `extern "thorin"` and `extern "device"` blocks, by the name of the intrinsic.

use crate::machine::{self, Instruction};
use nyala_ir::Op;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intrinsic {
    Math(Op),
    PeInfo,
    PeKnown,
    Sizeof,
    Alignof,
    Bitcast,
    Select,
    Insert,
    Shuffle,
    Undef,
    /// An operation that reads and writes memory: its operands in the order of the operation, `mem` left out, then what
    /// the operation does not take.
    Atomic(Op),
    /// A store past the caches.
    StreamStore,
    /// Whether what is asked for is going to be written, and how near to keep it; none: arguments say so.
    Prefetch(Option<(u64, u64)>),
    AssumeAligned,
    Test(Test),
    Vectorize,
    Pipeline,
    Fibers,
    /// A kernel on a device, by the name of the platform.
    Launch(&'static str),
    /// A number of the work item; the axis is part of the name or the argument.
    Index {
        name: String,
        what: Index,
        axis: Option<u64>,
    },
    ReserveShared,
    /// An operation across the lanes of a `vectorize` or the work items of a block.
    Lane(Lane),
    Parallel,
    Spawn,
    Sync,
    /// An instruction of the processor.
    Machine(Instruction),
    /// `a * b + c`, rounded twice.
    MulAdd,
    /// Its first argument, of which the others say what it may be.
    Expect,
    Assert,
    Panic,
    StaticAssert,
    /// Known or not, nothing of ours implements it yet.
    Unsupported(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    Nan,
    Infinite,
    Finite,
}

/// What lanes do together, or ask of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Of a truth value of each lane: whether it holds in any, in all, in how many; the bits of those where it does.
    Any,
    All,
    Count,
    Ballot,
    /// The value of the lane that the second argument names.
    Get,
    /// The values of the lanes for which the second argument is true, in their order, from lane 0 on.
    Compact,
    /// The lane's number, and how many there are.
    Id,
    Width,
    /// Waits for all.
    Barrier,
    /// Loads and stores by the pointer of the lane that the second argument names.
    Load,
    Store,
    /// The first argument, but in the lane that the second one names the third.
    Insert,
    /// Whether the lane takes part: who asks, does.
    Mask,
    /// Its first argument.
    Same,
    /// One thread runs at a time: nothing to do.
    Fence,
}

/// Lane operations of RV, whose names may go on with `_` or `.` and a type.
const LANES: [(&str, Lane); 15] = [
    ("rv_any", Lane::Any),
    ("rv_all", Lane::All),
    ("rv_ballot", Lane::Ballot),
    ("rv_popcount", Lane::Count),
    ("rv_extract", Lane::Get),
    ("rv_shuffle", Lane::Get),
    ("rv_insert", Lane::Insert),
    ("rv_load", Lane::Load),
    ("rv_store", Lane::Store),
    ("rv_align", Lane::Same),
    ("rv_compact", Lane::Compact),
    ("rv_lane_id", Lane::Id),
    ("rv_num_lanes", Lane::Width),
    ("rv_mask", Lane::Mask),
    ("rv_entry_mask", Lane::Mask),
];

/// Barriers and fences of CUDA, NVVM, OpenCL and AMDGPU.
const BARRIERS: [(&str, Lane); 24] = [
    ("barrier", Lane::Barrier),
    ("work_group_barrier", Lane::Barrier),
    ("__syncthreads", Lane::Barrier),
    ("__syncthreads_and", Lane::All),
    ("__syncthreads_or", Lane::Any),
    ("__syncthreads_count", Lane::Count),
    ("llvm.nvvm.barrier0", Lane::Barrier),
    ("llvm.nvvm.barrier0.and", Lane::All),
    ("llvm.nvvm.barrier0.or", Lane::Any),
    ("llvm.nvvm.barrier0.popc", Lane::Count),
    ("llvm.nvvm.barrier.sync", Lane::Barrier),
    ("llvm.nvvm.barrier.cta.sync.all", Lane::Barrier),
    ("llvm.nvvm.barrier.cta.sync.aligned.all", Lane::Barrier),
    ("llvm.amdgcn.s.barrier", Lane::Barrier),
    ("__threadfence", Lane::Fence),
    ("__threadfence_block", Lane::Fence),
    ("__threadfence_system", Lane::Fence),
    ("llvm.nvvm.membar.cta", Lane::Fence),
    ("llvm.nvvm.membar.gl", Lane::Fence),
    ("llvm.nvvm.membar.sys", Lane::Fence),
    ("mem_fence", Lane::Fence),
    ("read_mem_fence", Lane::Fence),
    ("write_mem_fence", Lane::Fence),
    ("llvm.amdgcn.wave.barrier", Lane::Fence),
];

fn lane(name: &str) -> Option<Intrinsic> {
    let of_type = |n: &str| name.strip_prefix(n).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']));
    let found = LANES.iter().find(|(n, _)| of_type(n)).or_else(|| BARRIERS.iter().find(|(n, _)| *n == name));
    found.map(|(_, what)| Intrinsic::Lane(*what))
}

/// What a work item can ask for of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Index {
    /// The thread in its block.
    Thread,
    Block,
    BlockSize,
    /// How many blocks there are.
    Blocks,
    /// The thread in all.
    Item,
    /// How many threads there are in all.
    Items,
}

/// Platforms with a launch of their own (`docs/design/anydsl.md`, Launches on devices).
const PLATFORMS: [&str; 8] = ["cuda", "nvvm", "opencl", "opencl_spirv", "levelzero", "amdgpu_hsa", "amdgpu_pal", "hls"];

/// Indices of CUDA, NVVM, OpenCL and AMDGPU by the beginnings of their names; then the axis, or nothing where it is an
/// argument.
const INDICES: [(&str, Index); 22] = [
    ("threadIdx.", Index::Thread),
    ("blockIdx.", Index::Block),
    ("blockDim.", Index::BlockSize),
    ("gridDim.", Index::Blocks),
    ("llvm.nvvm.read.ptx.sreg.tid.", Index::Thread),
    ("llvm.nvvm.read.ptx.sreg.ctaid.", Index::Block),
    ("llvm.nvvm.read.ptx.sreg.ntid.", Index::BlockSize),
    ("llvm.nvvm.read.ptx.sreg.nctaid.", Index::Blocks),
    ("llvm.amdgcn.workitem.id.", Index::Thread),
    ("llvm.amdgcn.workgroup.id.", Index::Block),
    ("get_local_id", Index::Thread),
    ("get_group_id", Index::Block),
    ("get_local_size", Index::BlockSize),
    ("get_num_groups", Index::Blocks),
    ("get_global_id", Index::Item),
    ("get_global_size", Index::Items),
    ("__ockl_get_local_id", Index::Thread),
    ("__ockl_get_group_id", Index::Block),
    ("__ockl_get_local_size", Index::BlockSize),
    ("__ockl_get_num_groups", Index::Blocks),
    ("__ockl_get_global_id", Index::Item),
    ("__ockl_get_global_size", Index::Items),
];

fn index(name: &str) -> Option<Intrinsic> {
    let (begin, what) = INDICES.iter().find(|(begin, _)| name.starts_with(begin))?;
    let axis = match &name[begin.len()..] {
        "" => None,
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => return None,
    };
    Some(Intrinsic::Index { name: name.into(), what: *what, axis })
}

/// The intrinsic of this name.
pub fn find(name: &str) -> Intrinsic {
    match name {
        "pe_info" => Intrinsic::PeInfo,
        "pe_known" => Intrinsic::PeKnown,
        "sizeof" => Intrinsic::Sizeof,
        "alignof" => Intrinsic::Alignof,
        "bitcast" => Intrinsic::Bitcast,
        "select" => Intrinsic::Select,
        "insert" => Intrinsic::Insert,
        "shuffle" => Intrinsic::Shuffle,
        "undef" => Intrinsic::Undef,
        "stream_store" => Intrinsic::StreamStore,
        "prefetch" => Intrinsic::Prefetch(Some((0, 3))),
        "prefetch_once" => Intrinsic::Prefetch(Some((0, 0))),
        "prefetch_write" => Intrinsic::Prefetch(Some((1, 3))),
        "llvm.prefetch" | "llvm.prefetch.p0" | "llvm.prefetch.p0i8" => Intrinsic::Prefetch(None),
        "assume_aligned" => Intrinsic::AssumeAligned,
        "isnan" => Intrinsic::Test(Test::Nan),
        "isinf" => Intrinsic::Test(Test::Infinite),
        "isfinite" => Intrinsic::Test(Test::Finite),
        "vectorize" => Intrinsic::Vectorize,
        "pipeline" => Intrinsic::Pipeline,
        "fibers" => Intrinsic::Fibers,
        "reserve_shared" => Intrinsic::ReserveShared,
        "parallel" => Intrinsic::Parallel,
        "spawn" => Intrinsic::Spawn,
        "sync" => Intrinsic::Sync,
        "assert" => Intrinsic::Assert,
        "panic" => Intrinsic::Panic,
        "static_assert" => Intrinsic::StaticAssert,
        _ => {
            if let Some(platform) = PLATFORMS.iter().find(|p| **p == name) {
                return Intrinsic::Launch(platform);
            }
            // `atomic_p1` is `atomic` of another address space.
            let generic = name.rsplit_once("_p").filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
            if let Some(op) = atomic(generic.map_or(name, |g| g.0)) {
                return Intrinsic::Atomic(op);
            }
            if name.starts_with("llvm.expect.") {
                return Intrinsic::Expect;
            }
            if name.starts_with("llvm.fmuladd.") {
                return Intrinsic::MulAdd;
            }
            let machine = machine::find(name).map(Intrinsic::Machine);
            let known = machine.or_else(|| math(name).map(Intrinsic::Math));
            let known = known.or_else(|| index(name)).or_else(|| lane(name));
            known.unwrap_or_else(|| Intrinsic::Unsupported(name.into()))
        }
    }
}

/// How an intrinsic must be declared whose declaration may not say anything else.
pub fn expected_type(intrinsic: &Intrinsic) -> Option<String> {
    let text = match intrinsic {
        Intrinsic::Parallel => "fn(i32, i32, i32, fn(i32) -> ()) -> ()",
        Intrinsic::Spawn => "fn(fn() -> ()) -> i32",
        Intrinsic::Sync => "fn(i32) -> ()",
        Intrinsic::Assert => "fn(bool) -> ()",
        Intrinsic::Panic => "fn(&[u8]) -> !",
        Intrinsic::StaticAssert => "fn(bool, &[u8]) -> ()",
        Intrinsic::Expect => "fn(i32, i32) -> i32",
        Intrinsic::MulAdd => "fn(f32, f32, f32) -> f32",
        Intrinsic::Machine(instruction) => return Some(instruction.expected()),
        _ => return None,
    };
    Some(text.into())
}

fn atomic(name: &str) -> Option<Op> {
    Some(match name {
        "atomic" => Op::Atomic,
        "atomic_load" => Op::AtomicLoad,
        "atomic_store" => Op::AtomicStore,
        "cmpxchg" => Op::Cmpxchg,
        "cmpxchg_weak" => Op::CmpxchgWeak,
        "fence" => Op::Fence,
        _ => return None,
    })
}

/// Math functions by their C names, LLVM's included.
fn math(name: &str) -> Option<Op> {
    let base = match name.strip_prefix("llvm.") {
        Some(rest) => {
            let (base, ty) = rest.rsplit_once('.')?;
            let is_int = matches!(base, "ctpop" | "ctlz" | "cttz");
            let wanted = if is_int { &["i8", "i16", "i32", "i64"][..] } else { &["f16", "f32", "f64"] };
            // `v4f32` is four lanes.
            let lanes = ty.trim_start_matches(|c: char| c == 'v' || c.is_ascii_digit());
            let elem = if ty.starts_with('v') { lanes } else { ty };
            wanted.contains(&elem).then_some(base)?
        }
        None => name,
    };
    Some(match base {
        "popcount" | "ctpop" => Op::Popcount,
        "clz" | "ctlz" => Op::Clz,
        "ctz" | "cttz" => Op::Ctz,
        "fabs" => Op::Abs,
        "minnum" => Op::Fmin,
        "maxnum" => Op::Fmax,
        _ => return Op::from_name(base).filter(|&op| op.is_math() && !op.is_approximate() && op != Op::Abs),
    })
}

//! The functions of `extern "thorin"` and `extern "device"` blocks, by the names of the intrinsics.

use crate::device_names::{self, DeviceFn};
use crate::x86_intrinsics::{self, Instruction};
use nyala_ir::lanes::PLATFORMS;
use nyala_ir::lanes::is_gpu_intrinsic;
use nyala_ir::{LaneOp, Op, Scope, WorkItem};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intrinsic {
    Math(Op),
    PeInfo,
    /// `ensure_residual(text)`, see [`nyala_ir::ensure`].
    EnsureResidual,
    EnsureNoBranch,
    PeKnown,
    /// Whether accesses are checked.
    ChecksBounds,
    Sizeof,
    Alignof,
    /// Whether a type is one of floats.
    IsFloat,
    Bitcast,
    Select,
    Insert,
    Shuffle,
    Undef,
    /// An operation that reads and writes memory. The arguments are the operands in their order, without `mem`, then
    /// others that the operation does not take.
    Atomic(Op),
    /// A store that bypasses the caches.
    StreamStore,
    /// A prefetch: whether the memory is going to be written, and the locality. `None`: arguments give both.
    Prefetch(Option<(u64, u64)>),
    AssumeAligned,
    Test(Test),
    Vectorize,
    Pipeline,
    /// Launches a kernel on a device. The number is the platform's index in [`PLATFORMS`].
    Launch(usize),
    /// A number of the work item. The axis is part of the name, or an argument.
    Index(Index, Option<u64>),
    ReserveShared,
    /// An operation across the lanes of a `vectorize` or the work items of a block.
    Lane(Lane),
    Parallel,
    Spawn,
    Sync,
    /// A function of a device's library that is more than one operation.
    Device(DeviceFn),
    /// An instruction of the processor.
    Machine(Instruction),
    /// `a * b + c`, rounded twice.
    MulAdd,
    /// Returns its first argument; the others give its expected value.
    Expect,
    Assert,
    Panic,
    StaticAssert,
    /// A known or unknown intrinsic that is not implemented.
    Unsupported(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    Nan,
    Infinite,
    Finite,
}

/// An operation across lanes, or a query of the lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    Op(LaneOp, Scope),
    /// Loads or stores through the pointer of the lane that the second argument names.
    Load,
    Store,
    /// The first argument, with the lane that the second argument names replaced by the third.
    Insert,
    /// Whether the lane is active: always true in code that runs.
    Mask,
    /// Returns its first argument.
    Same,
    /// A fence, with the scope at this index of [`SCOPES`](nyala_ir::scalar::SCOPES).
    Fence(u64),
}

const fn lanes(op: LaneOp) -> Lane {
    Lane::Op(op, Scope::Subgroup)
}

const fn block(op: LaneOp) -> Lane {
    Lane::Op(op, Scope::Block)
}

/// Lane operations of RV. Their names may be followed by `_` or `.` and a type.
const LANES: [(&str, Lane); 15] = [
    ("rv_any", lanes(LaneOp::Any)),
    ("rv_all", lanes(LaneOp::All)),
    ("rv_ballot", lanes(LaneOp::Ballot)),
    ("rv_popcount", lanes(LaneOp::Count)),
    ("rv_extract", lanes(LaneOp::Get)),
    ("rv_shuffle", lanes(LaneOp::Get)),
    ("rv_insert", Lane::Insert),
    ("rv_load", Lane::Load),
    ("rv_store", Lane::Store),
    ("rv_align", Lane::Same),
    ("rv_compact", lanes(LaneOp::Compact)),
    ("rv_lane_id", lanes(LaneOp::Id)),
    ("rv_num_lanes", lanes(LaneOp::Width)),
    ("rv_mask", Lane::Mask),
    ("rv_entry_mask", Lane::Mask),
];

/// Barriers and fences of CUDA, NVVM, OpenCL and AMDGPU.
const BARRIERS: [(&str, Lane); 24] = [
    ("barrier", block(LaneOp::Barrier)),
    ("work_group_barrier", block(LaneOp::Barrier)),
    ("__syncthreads", block(LaneOp::Barrier)),
    ("__syncthreads_and", block(LaneOp::All)),
    ("__syncthreads_or", block(LaneOp::Any)),
    ("__syncthreads_count", block(LaneOp::Count)),
    ("llvm.nvvm.barrier0", block(LaneOp::Barrier)),
    ("llvm.nvvm.barrier0.and", block(LaneOp::All)),
    ("llvm.nvvm.barrier0.or", block(LaneOp::Any)),
    ("llvm.nvvm.barrier0.popc", block(LaneOp::Count)),
    ("llvm.nvvm.barrier.sync", block(LaneOp::Barrier)),
    ("llvm.nvvm.barrier.cta.sync.all", block(LaneOp::Barrier)),
    ("llvm.nvvm.barrier.cta.sync.aligned.all", block(LaneOp::Barrier)),
    ("llvm.amdgcn.s.barrier", block(LaneOp::Barrier)),
    ("__threadfence", Lane::Fence(1)),
    ("__threadfence_block", Lane::Fence(2)),
    ("__threadfence_system", Lane::Fence(0)),
    ("llvm.nvvm.membar.cta", Lane::Fence(2)),
    ("llvm.nvvm.membar.gl", Lane::Fence(1)),
    ("llvm.nvvm.membar.sys", Lane::Fence(0)),
    ("mem_fence", Lane::Fence(2)),
    ("read_mem_fence", Lane::Fence(2)),
    ("write_mem_fence", Lane::Fence(2)),
    ("llvm.amdgcn.wave.barrier", Lane::Fence(3)),
];

fn lane(name: &str) -> Option<Intrinsic> {
    let of_type = |n: &str| name.strip_prefix(n).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']));
    let found = LANES.iter().find(|(n, _)| of_type(n)).or_else(|| BARRIERS.iter().find(|(n, _)| *n == name));
    found.map(|(_, what)| Intrinsic::Lane(*what))
}

/// The numbers that a work item can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Index {
    Own(WorkItem),
    /// The number of the work item in the whole grid.
    Item,
    /// The number of work items in the whole grid.
    Items,
}

/// Indices of CUDA, NVVM, OpenCL and AMDGPU, by prefixes of their names. The axis follows in the name, unless it is an
/// argument.
const INDICES: [(&str, Index); 30] = [
    ("threadIdx.", Index::Own(WorkItem::Thread)),
    ("blockIdx.", Index::Own(WorkItem::Block)),
    ("blockDim.", Index::Own(WorkItem::BlockSize)),
    ("gridDim.", Index::Own(WorkItem::Blocks)),
    ("threadIdx_", Index::Own(WorkItem::Thread)),
    ("blockIdx_", Index::Own(WorkItem::Block)),
    ("blockDim_", Index::Own(WorkItem::BlockSize)),
    ("gridDim_", Index::Own(WorkItem::Blocks)),
    ("llvm.nvvm.read.ptx.sreg.tid.", Index::Own(WorkItem::Thread)),
    ("llvm.nvvm.read.ptx.sreg.ctaid.", Index::Own(WorkItem::Block)),
    ("llvm.nvvm.read.ptx.sreg.ntid.", Index::Own(WorkItem::BlockSize)),
    ("llvm.nvvm.read.ptx.sreg.nctaid.", Index::Own(WorkItem::Blocks)),
    ("llvm.amdgcn.workitem.id.", Index::Own(WorkItem::Thread)),
    ("llvm.amdgcn.workgroup.id.", Index::Own(WorkItem::Block)),
    ("anydsl.amdpal.workitem.id.", Index::Own(WorkItem::Thread)),
    ("anydsl.amdpal.workgroup.id.", Index::Own(WorkItem::Block)),
    ("anydsl.amdpal.workgroup.size.", Index::Own(WorkItem::BlockSize)),
    ("anydsl.amdpal.nblk.", Index::Own(WorkItem::Blocks)),
    ("get_local_id", Index::Own(WorkItem::Thread)),
    ("get_group_id", Index::Own(WorkItem::Block)),
    ("get_local_size", Index::Own(WorkItem::BlockSize)),
    ("get_num_groups", Index::Own(WorkItem::Blocks)),
    ("get_global_id", Index::Item),
    ("get_global_size", Index::Items),
    ("__ockl_get_local_id", Index::Own(WorkItem::Thread)),
    ("__ockl_get_group_id", Index::Own(WorkItem::Block)),
    ("__ockl_get_local_size", Index::Own(WorkItem::BlockSize)),
    ("__ockl_get_num_groups", Index::Own(WorkItem::Blocks)),
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
    Some(Intrinsic::Index(*what, axis))
}

/// The intrinsic of this name.
pub fn find(name: &str) -> Intrinsic {
    match name {
        "pe_info" => Intrinsic::PeInfo,
        "ensure_residual" => Intrinsic::EnsureResidual,
        "ensure_no_branch" => Intrinsic::EnsureNoBranch,
        "pe_known" => Intrinsic::PeKnown,
        "checks_bounds" => Intrinsic::ChecksBounds,
        "sizeof" => Intrinsic::Sizeof,
        "alignof" => Intrinsic::Alignof,
        "is_float" => Intrinsic::IsFloat,
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
        "vectorize" => Intrinsic::Vectorize,
        "pipeline" => Intrinsic::Pipeline,
        "reserve_shared" => Intrinsic::ReserveShared,
        "parallel" => Intrinsic::Parallel,
        "spawn" => Intrinsic::Spawn,
        "sync" => Intrinsic::Sync,
        "assert" => Intrinsic::Assert,
        "panic" => Intrinsic::Panic,
        "static_assert" => Intrinsic::StaticAssert,
        _ => {
            if let Some(platform) = PLATFORMS.iter().position(|p| *p == name) {
                return Intrinsic::Launch(platform);
            }
            // `atomic_p1` is `atomic` in address space 1.
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
            let machine = x86_intrinsics::find(name).map(Intrinsic::Machine);
            let known = machine.or_else(|| math(name).map(Intrinsic::Math));
            let known = known.or_else(|| index(name)).or_else(|| lane(name)).or_else(|| device_names::find(name));
            let known = known.or_else(|| library(name));
            known.unwrap_or_else(|| Intrinsic::Unsupported(name.into()))
        }
    }
}

/// What a function of `extern "C"` is in kernels, if its name is one of CUDA, NVVM, OpenCL or AMD. Names of C's math library stay C's.
pub fn of_device(name: &str) -> Option<Intrinsic> {
    let barrier = || Some(Intrinsic::Lane(BARRIERS.iter().find(|(n, _)| *n == name)?.1));
    let is_of_library = name.starts_with("__");
    let found = device_names::find(name).or_else(|| index(name)).or_else(barrier);
    found.or_else(|| library(name).filter(|_| is_of_library))
}

/// Whether a name is LLVM's for an operation that only GPUs can execute.
pub fn is_gpu_only(name: &str) -> bool {
    is_gpu_intrinsic(name) && matches!(find(name), Intrinsic::Unsupported(_))
}

/// Whether a name may be that of a function that only a device's compiler knows.
pub fn is_unknown_function(name: &str) -> bool {
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_word && matches!(find(name), Intrinsic::Unsupported(_))
}

/// The type that an intrinsic must be declared with, if only one is possible.
pub fn expected_type(intrinsic: &Intrinsic) -> Option<String> {
    let text = match intrinsic {
        Intrinsic::Parallel => "fn(i32, i32, i32, fn(i32) -> ()) -> ()",
        Intrinsic::Spawn => "fn(fn() -> ()) -> i32",
        Intrinsic::Sync => "fn(i32) -> ()",
        Intrinsic::Assert => "fn(bool) -> ()",
        Intrinsic::Panic => "fn(&[u8]) -> !",
        Intrinsic::StaticAssert => "fn(bool, &[u8]) -> ()",
        Intrinsic::EnsureResidual => "fn(&[u8]) -> ()",
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
            // `v4f32` stands for four lanes of `f32`.
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

/// Functions on floats by the names of the libraries of C, CUDA (`expf`, `__nv_expf`) and AMD (`__ocml_exp_f32`).
fn library(name: &str) -> Option<Intrinsic> {
    let ocml = || name.strip_prefix("__ocml_")?.rsplit_once('_').filter(|(_, ty)| matches!(*ty, "f32" | "f64"));
    let base =
        name.strip_prefix("__nv_").or_else(|| name.strip_prefix("anydsl_")).or_else(|| Some(ocml()?.0)).unwrap_or(name);
    let of = |base: &str| {
        Some(match base {
            "isnan" => Intrinsic::Test(Test::Nan),
            "isinf" => Intrinsic::Test(Test::Infinite),
            "isfinite" | "finite" => Intrinsic::Test(Test::Finite),
            "mad" => Intrinsic::MulAdd,
            "fmod" => Intrinsic::Math(Op::Rem),
            "powr" => Intrinsic::Math(Op::Pow),
            _ => Intrinsic::Math(math(base)?),
        })
    };
    // The last letter is the type: `isinfd`, `sinf`.
    let without_type = || base.strip_suffix(['f', 'd']);
    let integer = || {
        let base = base.strip_prefix("__")?.trim_end_matches('l');
        Some(Intrinsic::Math(match base {
            "clz" => Op::Clz,
            "popc" => Op::Popcount,
            _ => return None,
        }))
    };
    of(base).or_else(|| of(without_type()?)).or_else(integer)
}

//! CUDA C++, as data. The text needs no headers, so that NVRTC takes it as `nvcc` does. All pointers are generic: the
//! compiler finds out which memory they mean.

use crate::dialect::{Atomic, Dialect, Features, Halves, Kernels, OF_KERNELS_IN_CPP, PLAIN_KERNELS};
use nyala_ir::{LaneOp, Op, Prim, Scope, WorkItem};

/// CUDA C++, to be compiled with `-fmad=false`.
pub const CUDA: Dialect = Dialect {
    name: "CUDA C++",
    prims: &[
        (Prim::Bool, "bool"),
        (Prim::I8, "signed char"),
        (Prim::I16, "short"),
        (Prim::I32, "int"),
        (Prim::I64, "long long"),
        (Prim::U8, "unsigned char"),
        (Prim::U16, "unsigned short"),
        (Prim::U32, "unsigned"),
        (Prim::U64, "unsigned long long"),
        (Prim::F16, "unsigned short"),
        (Prim::F32, "float"),
        (Prim::F64, "double"),
    ],
    address: "unsigned long long",
    spaces: &[(0, ""), (1, ""), (2, "const"), (3, ""), (4, "__constant__"), (5, "")],
    internal: "static __device__ ",
    inline: "static __device__ inline ",
    kernels: Some(Kernels {
        kernel: "extern \"C\" __global__ ",
        bounds: |[x, y, z]| format!("__launch_bounds__({}) ", x.saturating_mul(y).saturating_mul(z)),
        shared: "__shared__ ",
        fence: "__threadfence()",
        lanes: &[
            (LaneOp::Barrier, Scope::Block, "__syncthreads()"),
            (LaneOp::Any, Scope::Block, "(bool)__syncthreads_or({0})"),
            (LaneOp::All, Scope::Block, "(bool)__syncthreads_and({0})"),
            (LaneOp::Count, Scope::Block, "__syncthreads_count({0})"),
            (LaneOp::Barrier, Scope::Subgroup, "__syncwarp()"),
            (LaneOp::Any, Scope::Subgroup, "(bool)__any_sync(__activemask(), {0})"),
            (LaneOp::All, Scope::Subgroup, "(bool)__all_sync(__activemask(), {0})"),
            (LaneOp::Count, Scope::Subgroup, "__popc(__ballot_sync(__activemask(), {0}))"),
            (LaneOp::Ballot, Scope::Subgroup, "(long long)__ballot_sync(__activemask(), {0})"),
            (LaneOp::Get, Scope::Subgroup, "__shfl_sync(__activemask(), {0}, {1})"),
            (LaneOp::Id, Scope::Subgroup, LANE),
            (LaneOp::Width, Scope::Subgroup, "warpSize"),
        ],
        atomics: ATOMICS,
        of_system: "_system",
        ..PLAIN_KERNELS
    }),
    work_items: &[
        (WorkItem::Thread, ["(int)threadIdx.x", "(int)threadIdx.y", "(int)threadIdx.z"]),
        (WorkItem::Block, ["(int)blockIdx.x", "(int)blockIdx.y", "(int)blockIdx.z"]),
        (WorkItem::BlockSize, ["(int)blockDim.x", "(int)blockDim.y", "(int)blockDim.z"]),
        (WorkItem::Blocks, ["(int)gridDim.x", "(int)gridDim.y", "(int)gridDim.z"]),
    ],
    counts: &[(Op::Popcount, ["__popc", "__popcll"]), (Op::Clz, ["__clz", "__clzll"])],
    aligned: "__align__(N)",
    halves: Halves::Bits { widen: WIDEN, narrow: NARROW, direct: HALVES },
    infinity: ["__int_as_float(0x7f800000)", "__longlong_as_double(0x7ff0000000000000ll)"],
    has: Features { device_functions: true, ..OF_KERNELS_IN_CPP.has },
    ..OF_KERNELS_IN_CPP
};

/// Numbers of 16 bits without the header `cuda_fp16.h`, which need not be installed where NVRTC is.
const WIDEN: [&str; 2] = [
    "    float r;\n    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x));\n    return r;",
    "    double r;\n    asm(\"cvt.f64.f16 %0, %1;\" : \"=d\"(r) : \"h\"(x));\n    return r;",
];
const NARROW: [&str; 2] = [
    "    unsigned short r;\n    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n    return r;",
    "    unsigned short r;\n    asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(r) : \"d\"(x));\n    return r;",
];
const HALVES: &[(Op, &str)] = &[
    (
        Op::Add,
        "    unsigned short r;\n    asm(\"add.rn.f16 %0, %1, %2;\" : \"=h\"(r) : \"h\"(a), \"h\"(b));\n    return r;",
    ),
    (
        Op::Sub,
        "    unsigned short r;\n    asm(\"sub.rn.f16 %0, %1, %2;\" : \"=h\"(r) : \"h\"(a), \"h\"(b));\n    return r;",
    ),
    (
        Op::Mul,
        "    unsigned short r;\n    asm(\"mul.rn.f16 %0, %1, %2;\" : \"=h\"(r) : \"h\"(a), \"h\"(b));\n    return r;",
    ),
    (
        Op::Fma,
        "    unsigned short r;\n    asm(\"fma.rn.f16 %0, %1, %2, %3;\" : \"=h\"(r) : \"h\"(a), \"h\"(b), \"h\"(c));\n    return r;",
    ),
];

/// The lane's number: work items fill warps along the axes.
const LANE: &str = "(int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % warpSize)";

const ATOMICS: &[Atomic] = &[
    ("add", Prim::I32, "atomicAdd"),
    ("add", Prim::U32, "atomicAdd"),
    ("add", Prim::U64, "atomicAdd"),
    ("fadd", Prim::F32, "atomicAdd"),
    ("fadd", Prim::F64, "atomicAdd"),
    ("sub", Prim::I32, "atomicSub"),
    ("sub", Prim::U32, "atomicSub"),
    ("xchg", Prim::I32, "atomicExch"),
    ("xchg", Prim::U32, "atomicExch"),
    ("xchg", Prim::U64, "atomicExch"),
    ("xchg", Prim::F32, "atomicExch"),
    ("and", Prim::I32, "atomicAnd"),
    ("and", Prim::U32, "atomicAnd"),
    ("and", Prim::U64, "atomicAnd"),
    ("or", Prim::I32, "atomicOr"),
    ("or", Prim::U32, "atomicOr"),
    ("or", Prim::U64, "atomicOr"),
    ("xor", Prim::I32, "atomicXor"),
    ("xor", Prim::U32, "atomicXor"),
    ("xor", Prim::U64, "atomicXor"),
    ("max", Prim::I32, "atomicMax"),
    ("max", Prim::I64, "atomicMax"),
    ("min", Prim::I32, "atomicMin"),
    ("min", Prim::I64, "atomicMin"),
    ("umax", Prim::U32, "atomicMax"),
    ("umax", Prim::U64, "atomicMax"),
    ("umin", Prim::U32, "atomicMin"),
    ("umin", Prim::U64, "atomicMin"),
    ("uinc_wrap", Prim::U32, "atomicInc"),
    ("udec_wrap", Prim::U32, "atomicDec"),
    ("cmpxchg", Prim::U32, "atomicCAS"),
    ("cmpxchg", Prim::U64, "atomicCAS"),
];

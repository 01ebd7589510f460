//! OpenCL C, as data. The text is OpenCL C 1.2, which every driver takes. An address in memory, or in a struct, is a `ulong`: a pointer there
//! would say nothing of its address space.

use crate::dialect::{Atomic, Bits, Dialect, Halves, Kernels, OF_KERNELS, PLAIN_KERNELS};
use nyala_ir::{LaneOp, Op, Prim, Scope, WorkItem};

/// OpenCL C 1.2.
pub const OPENCL: Dialect = Dialect {
    name: "OpenCL C",
    extensions,
    prologue: "#pragma OPENCL FP_CONTRACT OFF\n",
    prims: &[
        (Prim::Bool, "bool"),
        (Prim::I8, "char"),
        (Prim::I16, "short"),
        (Prim::I32, "int"),
        (Prim::I64, "long"),
        (Prim::U8, "uchar"),
        (Prim::U16, "ushort"),
        (Prim::U32, "uint"),
        (Prim::U64, "ulong"),
        (Prim::F16, "ushort"),
        (Prim::F32, "float"),
        (Prim::F64, "double"),
    ],
    suffixes: &[(Prim::U32, "u"), (Prim::I64, "L"), (Prim::U64, "UL")],
    address: "ulong",
    spaces: &[(1, "__global"), (2, "const __global"), (3, "__local"), (4, "__constant"), (5, "")],
    internal: "",
    inline: "",
    printf: PRINTF,
    kernels: Some(Kernels {
        kernel: "__kernel ",
        bounds: |[x, y, z]| format!("__attribute__((reqd_work_group_size({x}, {y}, {z})))\n"),
        shared: "__local ",
        fence: "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
        lanes: &[
            (LaneOp::Barrier, Scope::Block, "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"),
            (LaneOp::Any, Scope::Block, "(count_in_block(&{votes}, {0}) != 0)"),
            (LaneOp::All, Scope::Block, "(count_in_block(&{votes}, !({0})) == 0)"),
            (LaneOp::Count, Scope::Block, "count_in_block(&{votes}, {0})"),
            (LaneOp::Barrier, Scope::Subgroup, "sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"),
            (LaneOp::Any, Scope::Subgroup, "any_lane({0})"),
            (LaneOp::All, Scope::Subgroup, "all_lanes({0})"),
            (LaneOp::Count, Scope::Subgroup, "count_lanes({0})"),
            (LaneOp::Ballot, Scope::Subgroup, "(long)ballot_lanes({0})"),
            (LaneOp::Get, Scope::Subgroup, ""),
            (LaneOp::Id, Scope::Subgroup, "(int)get_sub_group_local_id()"),
            (LaneOp::Width, Scope::Subgroup, "(int)get_sub_group_size()"),
        ],
        parted: PARTED,
        functions: FUNCTIONS,
        get: Some(GET),
        votes: "__local int",
        global_ids: Some(["(int)get_global_id(0)", "(int)get_global_id(1)", "(int)get_global_id(2)"]),
        atomic_place: "volatile ",
        atomics: ATOMICS,
        ..PLAIN_KERNELS
    }),
    work_items: &[
        (WorkItem::Thread, ["(int)get_local_id(0)", "(int)get_local_id(1)", "(int)get_local_id(2)"]),
        (WorkItem::Block, ["(int)get_group_id(0)", "(int)get_group_id(1)", "(int)get_group_id(2)"]),
        (WorkItem::BlockSize, ["(int)get_local_size(0)", "(int)get_local_size(1)", "(int)get_local_size(2)"]),
        (WorkItem::Blocks, ["(int)get_num_groups(0)", "(int)get_num_groups(1)", "(int)get_num_groups(2)"]),
    ],
    math: &[
        (Op::Sqrt, ["sqrt"; 2]),
        (Op::Abs, ["fabs"; 2]),
        (Op::Floor, ["floor"; 2]),
        (Op::Ceil, ["ceil"; 2]),
        (Op::Trunc, ["trunc"; 2]),
        (Op::Round, ["round"; 2]),
        (Op::Fma, ["fma"; 2]),
        (Op::Copysign, ["copysign"; 2]),
        (Op::Rem, ["fmod"; 2]),
        (Op::Sin, ["sin"; 2]),
        (Op::Cos, ["cos"; 2]),
        (Op::Tan, ["tan"; 2]),
        (Op::Asin, ["asin"; 2]),
        (Op::Acos, ["acos"; 2]),
        (Op::Atan, ["atan"; 2]),
        (Op::Sinh, ["sinh"; 2]),
        (Op::Cosh, ["cosh"; 2]),
        (Op::Tanh, ["tanh"; 2]),
        (Op::Exp, ["exp"; 2]),
        (Op::Exp2, ["exp2"; 2]),
        (Op::Expm1, ["expm1"; 2]),
        (Op::Log, ["log"; 2]),
        (Op::Log2, ["log2"; 2]),
        (Op::Log10, ["log10"; 2]),
        (Op::Log1p, ["log1p"; 2]),
        (Op::Cbrt, ["cbrt"; 2]),
        (Op::Erf, ["erf"; 2]),
        (Op::Pow, ["pow"; 2]),
        (Op::Atan2, ["atan2"; 2]),
    ],
    counts: &[(Op::Popcount, ["popcount"; 2]), (Op::Clz, ["clz"; 2])],
    bits: Bits::AsType,
    halves: Halves::Bits { widen: WIDEN, narrow: NARROW, direct: &[] },
    null: "0",
    reserved: RESERVED,
    ..OF_KERNELS
};

/// Every device converts numbers of 16 bits in memory. Compilers for devices that compute on such numbers find out that
/// a sum, say, needs no single precision.
const WIDEN: [&str; 2] = [
    "\
#ifdef cl_khr_fp16
    return as_half(x);
#else
    return vload_half(0, (const half *)&x);
#endif",
    "\
#ifdef cl_khr_fp16
    return as_half(x);
#else
    return vload_half(0, (const half *)&x);
#endif",
];
const NARROW: [&str; 2] = [
    "\
#ifdef cl_khr_fp16
    return as_ushort(convert_half_rte(x));
#else
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
#endif",
    "    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;",
];

/// Operations among work items. Those of subgroups are of active lanes where the device knows which these are; else all lanes
/// of the subgroup have to come there.
const FUNCTIONS: &[(&str, &str)] = &[
    (
        "count_in_block",
        "\
int count_in_block(volatile __local int *votes, bool holds) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0 && get_local_id(1) == 0 && get_local_id(2) == 0) *votes = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (holds) atomic_inc(votes);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *votes;
}",
    ),
    (
        "any_lane",
        "\
bool any_lane(bool holds) {
#ifdef cl_khr_subgroup_non_uniform_vote
    return sub_group_non_uniform_any(holds);
#else
    return sub_group_any(holds);
#endif
}",
    ),
    (
        "all_lanes",
        "\
bool all_lanes(bool holds) {
#ifdef cl_khr_subgroup_non_uniform_vote
    return sub_group_non_uniform_all(holds);
#else
    return sub_group_all(holds);
#endif
}",
    ),
    (
        "count_lanes",
        "\
int count_lanes(bool holds) {
#ifdef cl_khr_subgroup_ballot
    return (int)sub_group_ballot_bit_count(sub_group_ballot(holds));
#else
    return sub_group_reduce_add((int)holds);
#endif
}",
    ),
    (
        "ballot_lanes",
        "\
ulong ballot_lanes(bool holds) {
#ifdef cl_khr_subgroup_ballot
    uint4 all = sub_group_ballot(holds);
    return (ulong)all.y << 32 | all.x;
#else
    return sub_group_reduce_add(holds ? 1UL << get_sub_group_local_id() : 0UL);
#endif
}",
    ),
];

/// Without these, all lanes of a subgroup have to come to the operation.
const PARTED: &[(LaneOp, &str)] = &[
    (LaneOp::Any, "cl_khr_subgroup_non_uniform_vote"),
    (LaneOp::All, "cl_khr_subgroup_non_uniform_vote"),
    (LaneOp::Count, "cl_khr_subgroup_ballot"),
    (LaneOp::Ballot, "cl_khr_subgroup_ballot"),
    (LaneOp::Get, "cl_khr_subgroup_shuffle"),
];

/// Without shuffles, each lane in turn tells all others its value.
const GET: &str = "    uint from = (uint)lane % get_sub_group_size();
#ifdef cl_khr_subgroup_shuffle
    return sub_group_shuffle(v, from);
#else
    T found = v;
    for (uint i = 0; i < get_sub_group_size(); i++) {
        T of_lane = sub_group_broadcast(v, i);
        if (i == from) found = of_lane;
    }
    return found;
#endif";

/// A text that `printf` prints has to be a literal, so bools are none of its arguments.
const PRINTF: &[(&str, &str, &str)] = &[
    ("bool", "", ""),
    ("char", "%c", "int"),
    ("f32", "%g", "float"),
    ("f64", "%g", "double"),
    ("i8", "%d", "int"),
    ("i16", "%d", "int"),
    ("i32", "%d", "int"),
    ("i64", "%ld", "long"),
    ("u8", "%u", "uint"),
    ("u16", "%u", "uint"),
    ("u32", "%u", "uint"),
    ("u64", "%lu", "ulong"),
    ("string", "", ""),
];

/// Functions of 64 bits are an extension.
const ATOMICS: &[Atomic] = &[
    ("add", Prim::I32, "atomic_add"),
    ("add", Prim::U32, "atomic_add"),
    ("add", Prim::I64, "atom_add"),
    ("add", Prim::U64, "atom_add"),
    ("sub", Prim::I32, "atomic_sub"),
    ("sub", Prim::U32, "atomic_sub"),
    ("sub", Prim::I64, "atom_sub"),
    ("sub", Prim::U64, "atom_sub"),
    ("xchg", Prim::I32, "atomic_xchg"),
    ("xchg", Prim::U32, "atomic_xchg"),
    ("xchg", Prim::I64, "atom_xchg"),
    ("xchg", Prim::U64, "atom_xchg"),
    ("and", Prim::I32, "atomic_and"),
    ("and", Prim::U32, "atomic_and"),
    ("and", Prim::I64, "atom_and"),
    ("and", Prim::U64, "atom_and"),
    ("or", Prim::I32, "atomic_or"),
    ("or", Prim::U32, "atomic_or"),
    ("or", Prim::I64, "atom_or"),
    ("or", Prim::U64, "atom_or"),
    ("xor", Prim::I32, "atomic_xor"),
    ("xor", Prim::U32, "atomic_xor"),
    ("xor", Prim::I64, "atom_xor"),
    ("xor", Prim::U64, "atom_xor"),
    ("max", Prim::I32, "atomic_max"),
    ("max", Prim::I64, "atom_max"),
    ("min", Prim::I32, "atomic_min"),
    ("min", Prim::I64, "atom_min"),
    ("umax", Prim::U32, "atomic_max"),
    ("umax", Prim::U64, "atom_max"),
    ("umin", Prim::U32, "atomic_min"),
    ("umin", Prim::U64, "atom_min"),
    ("cmpxchg", Prim::U32, "atomic_cmpxchg"),
    ("cmpxchg", Prim::U64, "atom_cmpxchg"),
    ("xchg", Prim::F32, "atomic_xchg"),
];

/// Keywords, and functions of OpenCL.
const RESERVED: &str = "\
auto bool break case char const constant continue default do double else enum extern float for global goto \
half if image1d_t image2d_t image3d_t inline int kernel local long private quad read_only read_write \
register restrict return sampler_t short signed sizeof size_t static struct switch typedef uchar uint ulong \
uniform union unsigned ushort void volatile while write_only pipe generic event_t complex imaginary true \
false NULL INFINITY NAN ptrdiff_t intptr_t uintptr_t abs abs_diff acos acosh acospi add_sat all any asin \
asinh asinpi atan atan2 atan2pi atanh atanpi barrier bitselect cbrt ceil clamp clz convert copysign cos cosh \
cospi cross ctz degrees distance dot erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod fract \
frexp hadd hypot ilogb isequal isfinite isgreater isinf isless isnan isnormal ldexp length lgamma log log10 \
log1p log2 logb mad mad24 mad_hi mad_sat max maxmag mem_fence min minmag mix modf mul24 mul_hi nan nextafter \
normalize popcount pow pown powr prefetch printf radians remainder remquo rhadd rint rootn rotate round \
rsqrt select shuffle shuffle2 sign signbit sin sincos sinh sinpi smoothstep sqrt step sub_sat tan tanh tanpi \
tgamma trunc upsample work_group_barrier code count_in_block any_lane all_lanes count_lanes ballot_lanes";

/// The extensions that a text needs, as lines before it.
fn extensions(text: &str) -> String {
    let has = |word: &str| {
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        text.match_indices(word).any(|(at, _)| {
            !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + word.len()..].chars().next())
        })
    };
    let mut lines = String::new();
    if has("double") {
        lines.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    }
    if text.contains("cl_khr_fp16") {
        lines.push_str("#ifdef cl_khr_fp16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#endif\n");
    }
    if text.contains("sub_group_") {
        lines.push_str("#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n");
    }
    if text.contains("atom_") {
        lines.push_str("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n");
        lines.push_str("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n");
    }
    lines
}

//! Names of CUDA, NVVM, OpenCL and AMD for functions that are more than one operation of the graph, or go by other
//! arguments: warp shuffles and votes, atomics, bit operations, conversions and arithmetic with a rounding mode.
//! `lower/device_functions.rs` builds their code; [`intrinsics`](crate::intrinsics) has the names of
//! everything else.

use crate::intrinsics::Intrinsic;
use nyala_ir::{LaneOp, Op, Prim};

/// A function of this table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceFn {
    /// `1 / x`, `1 / sqrt(x)`.
    Reciprocal(Option<Op>),
    /// A float, limited to 0 to 1; 0 for NaN.
    Saturate,
    /// The sine or cosine of a number of turns.
    OfTurns(Op),
    /// `x` to the power of an integer.
    PowInt,
    /// An arithmetic operation with a rounding mode.
    Rounded(Op, Rounding),
    /// A conversion: of an integer taken as unsigned, to an integer of the named type, with a rounding mode.
    Convert {
        from_unsigned: bool,
        to: Option<Prim>,
        rounding: Rounding,
    },
    /// The greater or smaller one of two integers, compared as unsigned if the flag says so.
    Least {
        greatest: bool,
        unsigned: bool,
    },
    /// An absolute value of an integer.
    AbsInt,
    /// The upper half of a product.
    MulHigh {
        unsigned: bool,
    },
    /// The product of the low 24 bits.
    Mul24 {
        unsigned: bool,
    },
    /// `|a - b| + c`.
    AbsDifference {
        unsigned: bool,
    },
    /// The first set bit, counted from 1; 0 if there is none.
    FirstSet,
    /// The bits in reverse order.
    Reverse,
    /// PTX's `prmt`: four bytes out of the eight of two words.
    Permute,
    /// The low or high word of a double, and a double of two words.
    Word {
        high: bool,
    },
    Words,
    /// The first argument.
    Same,
    /// An integer as an `f16`, and back.
    FromHalf,
    ToHalf,
    /// A load through the first argument.
    Load,
    /// An atomic operation on a place; min and max compare by the type.
    Atomic(u64),
    AtomicLeast {
        greatest: bool,
    },
    CompareExchange,
    /// A number of the warp's lanes.
    LaneId,
    /// The number of lanes of a warp.
    WarpSize,
    /// The warp in its block, and how many there are.
    Warp,
    Warps,
    /// The lanes of the warp whose number compares so with the own one.
    LaneMask(Op),
    /// AMD's count of lanes before the own one, in the low or the high half of a mask.
    MaskedCount {
        high: bool,
    },
    /// `op(mask, holds)`.
    Vote(LaneOp),
    /// The lanes that are active.
    Active,
    /// AMD's `icmp`: the lanes in which a comparison holds.
    CompareLanes,
    /// The lanes that have the same value, and whether all have.
    MatchAny,
    MatchAll,
    /// CUDA's shuffles: `(mask, v, lane or distance, width)`.
    Shuffle(Shuffle),
    /// PTX's shuffles: `(mask, v, lane or distance, clamp and segment)`.
    ShufflePtx(Shuffle),
    /// AMD's `ds_bpermute(address, v)`: the address is four times the lane.
    Permuted,
    /// Waits for the lanes of the warp.
    SyncWarp,
    /// A number that is the same everywhere.
    Number(i32),
    /// No result, nothing to do.
    Nothing,
    /// Takes an element out of a channel of `hls`, or puts one into it.
    ReadChannel,
    WriteChannel,
    /// A line for the tools of `hls`.
    Pragma,
    /// Ends the program.
    Trap,
    /// Nanoseconds of a clock.
    Clock,
    /// The packet that an HSA kernel was launched with, and its hidden arguments.
    Dispatch,
    Hidden,
}

/// A direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    Nearest,
    Down,
    Up,
    Zero,
}

/// How a shuffle chooses its lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuffle {
    Index,
    Up,
    Down,
    Xor,
}

/// The names that stand for themselves.
const NAMES: &[(&str, DeviceFn)] = &[
    ("rsqrt", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("rsqrtf", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("__nv_rsqrt", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("__nv_rsqrtf", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("__ocml_rsqrt_f32", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("__ocml_rsqrt_f64", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("__ocml_pown_f32", DeviceFn::PowInt),
    ("__ocml_pown_f64", DeviceFn::PowInt),
    ("min", DeviceFn::Least { greatest: false, unsigned: false }),
    ("max", DeviceFn::Least { greatest: true, unsigned: false }),
    ("__ldg", DeviceFn::Load),
    ("__ffs", DeviceFn::FirstSet),
    ("__ffsll", DeviceFn::FirstSet),
    ("__brev", DeviceFn::Reverse),
    ("__brevll", DeviceFn::Reverse),
    ("atomicExch", DeviceFn::Atomic(0)),
    ("atomicAdd", DeviceFn::Atomic(1)),
    ("atomicSub", DeviceFn::Atomic(2)),
    ("atomicAnd", DeviceFn::Atomic(3)),
    ("atomicOr", DeviceFn::Atomic(5)),
    ("atomicXor", DeviceFn::Atomic(6)),
    ("atomicInc", DeviceFn::Atomic(15)),
    ("atomicDec", DeviceFn::Atomic(16)),
    ("atomicMax", DeviceFn::AtomicLeast { greatest: true }),
    ("atomicMin", DeviceFn::AtomicLeast { greatest: false }),
    ("atomicCAS", DeviceFn::CompareExchange),
    ("atomic_xchg", DeviceFn::Atomic(0)),
    ("atomic_add", DeviceFn::Atomic(1)),
    ("atomic_sub", DeviceFn::Atomic(2)),
    ("atomic_and", DeviceFn::Atomic(3)),
    ("atomic_or", DeviceFn::Atomic(5)),
    ("atomic_xor", DeviceFn::Atomic(6)),
    ("atomic_max", DeviceFn::AtomicLeast { greatest: true }),
    ("atomic_min", DeviceFn::AtomicLeast { greatest: false }),
    ("atomic_cmpxchg", DeviceFn::CompareExchange),
    ("__syncwarp", DeviceFn::SyncWarp),
    ("__nanosleep", DeviceFn::Nothing),
    ("__trap", DeviceFn::Trap),
    ("__all_sync", DeviceFn::Vote(LaneOp::All)),
    ("__any_sync", DeviceFn::Vote(LaneOp::Any)),
    ("__ballot_sync", DeviceFn::Vote(LaneOp::Ballot)),
    ("__activemask", DeviceFn::Active),
    ("__match_any_sync", DeviceFn::MatchAny),
    ("__match_all_sync", DeviceFn::MatchAll),
    ("__shfl_sync", DeviceFn::Shuffle(Shuffle::Index)),
    ("__shfl_up_sync", DeviceFn::Shuffle(Shuffle::Up)),
    ("__shfl_down_sync", DeviceFn::Shuffle(Shuffle::Down)),
    ("__shfl_xor_sync", DeviceFn::Shuffle(Shuffle::Xor)),
    ("get_work_dim", DeviceFn::Number(3)),
    ("get_global_offset", DeviceFn::Number(0)),
    ("print_pragma", DeviceFn::Pragma),
    ("read_channel", DeviceFn::ReadChannel),
    ("write_channel", DeviceFn::WriteChannel),
    ("llvm.amdgcn.dispatch.id", DeviceFn::Number(0)),
    ("llvm.amdgcn.dispatch.ptr", DeviceFn::Dispatch),
    ("llvm.amdgcn.implicitarg.ptr", DeviceFn::Hidden),
    ("llvm.amdgcn.wavefrontsize", DeviceFn::WarpSize),
    ("llvm.amdgcn.mbcnt.lo", DeviceFn::MaskedCount { high: false }),
    ("llvm.amdgcn.mbcnt.hi", DeviceFn::MaskedCount { high: true }),
    ("llvm.amdgcn.ds.bpermute", DeviceFn::Permuted),
    ("llvm.amdgcn.icmp.i32.i32", DeviceFn::CompareLanes),
    ("llvm.amdgcn.icmp.i64.i32", DeviceFn::CompareLanes),
    ("llvm.amdgcn.atomic.inc.i32.p1", DeviceFn::Atomic(15)),
    ("llvm.amdgcn.atomic.dec.i32.p1", DeviceFn::Atomic(16)),
    ("llvm.amdgcn.sin.f32", DeviceFn::OfTurns(Op::Sin)),
    ("llvm.amdgcn.sin.f64", DeviceFn::OfTurns(Op::Sin)),
    ("llvm.amdgcn.cos.f32", DeviceFn::OfTurns(Op::Cos)),
    ("llvm.amdgcn.cos.f64", DeviceFn::OfTurns(Op::Cos)),
    ("llvm.amdgcn.sched.barrier", DeviceFn::Nothing),
    ("llvm.amdgcn.s.sleep", DeviceFn::Nothing),
    ("llvm.amdgcn.s.sethalt", DeviceFn::Trap),
    ("llvm.amdgcn.s.memrealtime", DeviceFn::Clock),
];

/// NVVM's names, without `llvm.nvvm.`, the type at the end, `.ftz` and `.approx`.
const NVVM: &[(&str, DeviceFn)] = &[
    ("rcp", DeviceFn::Reciprocal(None)),
    ("rsqrt", DeviceFn::Reciprocal(Some(Op::Sqrt))),
    ("saturate", DeviceFn::Saturate),
    ("abs", DeviceFn::AbsInt),
    ("brev32", DeviceFn::Reverse),
    ("brev64", DeviceFn::Reverse),
    ("move", DeviceFn::Same),
    ("h2f", DeviceFn::FromHalf),
    ("d2i.hi", DeviceFn::Word { high: true }),
    ("d2i.lo", DeviceFn::Word { high: false }),
    ("lohi.i2d", DeviceFn::Words),
    ("prmt", DeviceFn::Permute),
    ("ldg.global", DeviceFn::Load),
    ("atomic.load.inc", DeviceFn::Atomic(15)),
    ("atomic.load.dec", DeviceFn::Atomic(16)),
    ("bar.warp.sync", DeviceFn::SyncWarp),
    ("vote.all.sync", DeviceFn::Vote(LaneOp::All)),
    ("vote.any.sync", DeviceFn::Vote(LaneOp::Any)),
    ("vote.ballot.sync", DeviceFn::Vote(LaneOp::Ballot)),
    ("shfl.sync.idx", DeviceFn::ShufflePtx(Shuffle::Index)),
    ("shfl.sync.up", DeviceFn::ShufflePtx(Shuffle::Up)),
    ("shfl.sync.down", DeviceFn::ShufflePtx(Shuffle::Down)),
    ("shfl.sync.bfly", DeviceFn::ShufflePtx(Shuffle::Xor)),
    ("read.ptx.sreg.laneid", DeviceFn::LaneId),
    ("read.ptx.sreg.warpsize", DeviceFn::WarpSize),
    ("read.ptx.sreg.warpid", DeviceFn::Warp),
    ("read.ptx.sreg.nwarpid", DeviceFn::Warps),
    ("read.ptx.sreg.smid", DeviceFn::Number(0)),
    ("read.ptx.sreg.nsmid", DeviceFn::Number(1)),
    ("read.ptx.sreg.lanemask_eq", DeviceFn::LaneMask(Op::Eq)),
    ("read.ptx.sreg.lanemask_lt", DeviceFn::LaneMask(Op::Lt)),
    ("read.ptx.sreg.lanemask_le", DeviceFn::LaneMask(Op::Le)),
    ("read.ptx.sreg.lanemask_gt", DeviceFn::LaneMask(Op::Gt)),
    ("read.ptx.sreg.lanemask_ge", DeviceFn::LaneMask(Op::Ge)),
];

/// The intrinsic of a name of CUDA, NVVM, OpenCL or AMD.
pub fn find(name: &str) -> Option<Intrinsic> {
    let found = NAMES.iter().find(|(n, _)| *n == name).map(|(_, f)| Intrinsic::Device(*f));
    found.or_else(|| nvvm(name.strip_prefix("llvm.nvvm.")?))
}

fn nvvm(name: &str) -> Option<Intrinsic> {
    const TYPES: [&str; 13] = ["f", "d", "i", "ui", "ll", "ull", "i16", "i32", "i64", "f32", "f64", "32", "p1"];
    let mut words: Vec<&str> = name.split('.').filter(|w| !matches!(*w, "ftz" | "approx")).collect();
    let mut of = "";
    while words.len() > 1
        && let Some(last) = words.last().filter(|w| TYPES.contains(w) || w.starts_with("v4") || **w == "i8")
    {
        of = last;
        words.pop();
    }
    let unsigned = of.starts_with('u');
    let direction = |word: &str| {
        Some(match word {
            "rn" => Rounding::Nearest,
            "rm" => Rounding::Down,
            "rp" => Rounding::Up,
            "rz" => Rounding::Zero,
            _ => return None,
        })
    };
    let device = |f: DeviceFn| Some(Intrinsic::Device(f));
    match (words[0], &words[1..]) {
        ("bitcast", _) => return Some(Intrinsic::Bitcast),
        ("sin", []) => return Some(Intrinsic::Math(Op::Sin)),
        ("cos", []) => return Some(Intrinsic::Math(Op::Cos)),
        ("ex2", []) => return Some(Intrinsic::Math(Op::Exp2)),
        ("lg2", []) => return Some(Intrinsic::Math(Op::Log2)),
        ("ceil", []) => return Some(Intrinsic::Math(Op::Ceil)),
        ("floor", []) => return Some(Intrinsic::Math(Op::Floor)),
        ("trunc", []) => return Some(Intrinsic::Math(Op::Trunc)),
        ("fabs", []) => return Some(Intrinsic::Math(Op::Abs)),
        ("fmin", []) => return Some(Intrinsic::Math(Op::Fmin)),
        ("fmax", []) => return Some(Intrinsic::Math(Op::Fmax)),
        ("clz", []) => return Some(Intrinsic::Math(Op::Clz)),
        ("popc", []) => return Some(Intrinsic::Math(Op::Popcount)),
        // PTX's `cvt.rni`.
        ("round", []) => {
            return device(DeviceFn::Convert { from_unsigned: false, to: None, rounding: Rounding::Nearest });
        }
        ("min", []) => return device(DeviceFn::Least { greatest: false, unsigned }),
        ("max", []) => return device(DeviceFn::Least { greatest: true, unsigned }),
        ("mulhi", []) => return device(DeviceFn::MulHigh { unsigned }),
        ("mul24", []) => return device(DeviceFn::Mul24 { unsigned }),
        ("sad", []) => return device(DeviceFn::AbsDifference { unsigned }),
        ("f2h", ["rn"]) => return device(DeviceFn::ToHalf),
        (op @ ("add" | "mul" | "div" | "sqrt" | "rcp" | "fma"), rounding @ ([_] | [])) => {
            let rounding = rounding.first().map_or(Some(Rounding::Nearest), |word| direction(word))?;
            let op = match op {
                "add" => Op::Add,
                "mul" => Op::Mul,
                "div" => Op::Div,
                "sqrt" => Op::Sqrt,
                "fma" => Op::Fma,
                _ if rounding == Rounding::Nearest => return device(DeviceFn::Reciprocal(None)),
                _ => Op::Rcp,
            };
            if rounding == Rounding::Nearest {
                return Some(Intrinsic::Math(op));
            }
            return device(DeviceFn::Rounded(op, rounding));
        }
        (conversion, [rounding]) if conversion.contains('2') && direction(rounding).is_some() => {
            let (from, to) = conversion.split_once('2')?;
            let to = match to {
                "i" => Prim::I32,
                "ui" => Prim::U32,
                "ll" => Prim::I64,
                "ull" => Prim::U64,
                "f" => Prim::F32,
                "d" => Prim::F64,
                _ => return None,
            };
            let (from_unsigned, rounding) = (from.starts_with('u'), direction(rounding)?);
            return device(DeviceFn::Convert { from_unsigned, to: Some(to), rounding });
        }
        _ => {}
    }
    let name = words.join(".");
    NVVM.iter().find(|(n, _)| *n == name).and_then(|(_, f)| device(*f))
}

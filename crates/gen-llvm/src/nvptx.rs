//! Kernels for NVIDIA's GPUs: what only they have, as LLVM text.

use crate::comparisons::is_splat;
use crate::diagnostics::not_on_processor;
use crate::function::FunctionEmitter;
use crate::gpu::{call, get, unsupported};
use nyala_base::Diagnostic;
use nyala_flat::{Func, Function, InstOp, Value, VectorOp};
use nyala_ir::{LaneOp, Op, Prim, Scope, Types, WorkItem};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Prefix of LLVM's names of operations that only NVIDIA's GPUs have.
const PREFIX: &str = "llvm.nvvm.";

/// The first architecture that has operations whose names begin, after [`PREFIX`], or go on like this. From CUDA's
/// guide to PTX.
const SINCE: &[(&str, u32)] = &[
    ("tcgen05.", 100),
    ("wgmma.", 90),
    ("cp.async.bulk.", 90),
    ("mapa.", 90),
    ("barrier.cluster.", 90),
    ("cluster", 90),
    ("setmaxnreg.", 90),
    ("griddepcontrol.", 90),
    ("cp.async.", 80),
    ("mbarrier.", 80),
    ("redux.sync.", 80),
    (".bf16", 80),
    (".tf32", 80),
];

/// The attribute of a kernel for the extents of a block, if they are known.
pub(crate) fn bounds([x, y, z]: [u32; 3]) -> String {
    if x * y * z == 0 { String::new() } else { format!(" \"nvvm.reqntid\"=\"{x},{y},{z}\"") }
}

/// What a function does with subnormal numbers of single precision.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Subnormals {
    /// All its arithmetic is fast: they count as zeros, as with NVIDIA's compiler under `-use_fast_math`. Reciprocals, roots,
    /// exponentials and logarithms need three instructions less.
    Zeros,
    /// Some arithmetic is not fast.
    Kept,
    /// It computes nothing with such numbers. It may be inlined into functions of both other kinds.
    Never,
}

impl Subnormals {
    pub fn of(types: &Types, function: &Function) -> Subnormals {
        let is_store = |op| matches!(op, InstOp::Op(Op::Store) | InstOp::Vector(VectorOp::Store));
        let is_single = |v: Option<&Value>| v.is_some_and(|&v| types.lane_prim(function.ty(v)) == Some(Prim::F32));
        let mut found = Subnormals::Never;
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if is_store(inst.op) || !is_single(inst.args.last()) || !function.can_be_fast(types, inst.op, &inst.args) {
                continue;
            }
            if !inst.fast {
                return Subnormals::Kept;
            }
            found = Subnormals::Zeros;
        }
        found
    }

    /// LLVM's attribute of the function.
    pub fn attribute(self) -> &'static str {
        match self {
            Subnormals::Zeros => " \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\"",
            Subnormals::Kept => "",
            Subnormals::Never => " \"denormal-fp-math-f32\"=\"dynamic,dynamic\"",
        }
    }
}

/// The answer to a question of a work item, from one of the GPU's registers.
pub(crate) fn work_item(f: &mut FunctionEmitter, what: WorkItem, axis: usize) -> String {
    let register = match what {
        WorkItem::Thread => "tid",
        WorkItem::Block => "ctaid",
        WorkItem::BlockSize => "ntid",
        WorkItem::Blocks => "nctaid",
    };
    read_register(f, &format!("{register}.{}", ["x", "y", "z"][axis]))
}

fn read_register(f: &mut FunctionEmitter, name: &str) -> String {
    call(f, "i32", &format!("llvm.nvvm.read.ptx.sreg.{name}"), &[])
}

/// The number of an architecture such as `sm_90` or `sm_90a`.
fn architecture(gpu: &str) -> u32 {
    gpu.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().unwrap_or(0)
}

/// The version of PTX, where LLVM's default for this architecture lacks instructions of the architecture: those on two numbers of
/// 16 bits.
pub(crate) fn features(gpu: &str) -> &'static str {
    if architecture(gpu) == 90 { "+ptx80" } else { "" }
}

/// Emits the greater of a sum of two numbers of 16 bits and others as one instruction, if `args` are those of a selection that is
/// this: GPUs since sm_90 have `VIADDMNMX`, which NVIDIA's assembler makes of a sum and a maximum. It does so only if the sum has no other
/// use, and LLVM would compute a sum once for all of its uses: so the two are assembly.
pub(crate) fn greater_of_sum(f: &mut FunctionEmitter, name: &str, args: &[Value]) -> Result<bool> {
    const PAIR: &str = "<2 x i16>";
    let (greater, less) = (f.op(args[1]), f.op(args[2]));
    let is_greater = f.comparisons.get(&args[0]).is_some_and(|c| c.is("icmp slt", PAIR, &less, &greater));
    if !is_greater || f.e.target().cpu.as_deref().is_none_or(|gpu| architecture(gpu) < 90) {
        return Ok(false);
    }
    let sum_of = |f: &FunctionEmitter, v: Value| f.sums.get(&v).copied().filter(|(_, [_, b])| !is_splat(f, *b, 0));
    let (sum, other) = match (sum_of(f, args[2]), sum_of(f, args[1])) {
        (Some(sum), _) => (sum, greater),
        (_, Some(sum)) => (sum, less),
        _ => return Ok(false),
    };
    let (op, [a, b]) = sum;
    let (a, mut b) = (f.op(a), f.op(b));
    if op == Op::Sub {
        let negative = f.temp();
        f.line(format_args!("{negative} = sub {PAIR} zeroinitializer, {b}"));
        b = negative;
    }
    let words = [a, b, other].map(|pair| {
        let word = f.temp();
        f.line(format_args!("{word} = bitcast {PAIR} {pair} to i32"));
        format!("i32 {word}")
    });
    let word = f.temp();
    let text = "{ .reg .b32 sum; add.s16x2 sum, $1, $2; max.s16x2 $0, sum, $3; }";
    f.line(format_args!("{word} = call i32 asm \"{text}\", \"=r,r,r,r\"({})", words.join(", ")));
    f.line(format_args!("{name} = bitcast i32 {word} to {PAIR}"));
    Ok(true)
}

/// Emits an atomic operation in which the host and other devices take part: LLVM writes no scope for it, which means the GPU. `false`
/// if LLVM makes a loop of `cmpxchg` of it, whose scope it writes.
pub(crate) fn atomic_of_system(
    f: &mut FunctionEmitter,
    (what, order): (&str, &str),
    [old, ptr, value]: [&str; 3],
    ty: &str,
) -> bool {
    let (register, bits) = match ty {
        "i32" => ("r", 32),
        "i64" => ("l", 64),
        "float" => ("f", 32),
        "double" => ("d", 64),
        _ => return false,
    };
    let op = match what {
        "xchg" => format!("exch.b{bits}"),
        "add" | "sub" => format!("add.u{bits}"),
        "and" | "or" | "xor" => format!("{what}.b{bits}"),
        "max" | "min" => format!("{what}.s{bits}"),
        "umax" | "umin" => format!("{}.u{bits}", &what[1..]),
        "fadd" => format!("add.f{bits}"),
        "uinc_wrap" if bits == 32 => "inc.u32".into(),
        "udec_wrap" if bits == 32 => "dec.u32".into(),
        _ => return false,
    };
    let (fence, order) = match order {
        "monotonic" => ("", "relaxed"),
        "seq_cst" => ("fence.sc.sys; ", "acq_rel"),
        order => ("", order),
    };
    let text = format!("{fence}atom.{order}.sys.{op} $0, [$1], $2;");
    let mut value = value.to_string();
    if what == "sub" {
        let negative = f.temp();
        f.line(format_args!("{negative} = sub {ty} 0, {}", value.trim_start_matches(ty)));
        value = format!("{ty} {negative}");
    }
    let operands = format!("={register},l,{register},~{{memory}}");
    f.line(format_args!("{old} = call {ty} asm sideeffect \"{text}\", \"{operands}\"(ptr {ptr}, {value})"));
    true
}

/// Reports an operation that GPUs of the module's architecture do not have.
pub(crate) fn check_architecture(f: &FunctionEmitter, func: Func, symbol: &str) -> Result<()> {
    let Some(name) = symbol.strip_prefix(PREFIX) else { return Ok(()) };
    let is = |part: &str| if part.starts_with('.') { name.contains(part) } else { name.starts_with(part) };
    let least = SINCE.iter().find(|(part, _)| is(part)).map_or(0, |s| s.1);
    let gpu = f.e.target().cpu.clone().unwrap_or_default();
    if architecture(&gpu) >= least {
        return Ok(());
    }
    Err(Box::new(not_on_processor::on_gpu(f.e.module.func(func).span, symbol, &gpu, least)))
}

/// An operation among the work items of a block, or among the lanes of a warp that are active.
pub(crate) fn lanes(
    f: &mut FunctionEmitter,
    (op, scope): (LaneOp, Scope),
    result: Value,
    args: &[Value],
) -> Result<String> {
    let in_warp = scope != Scope::Block;
    let holds = |f: &FunctionEmitter| format!("i1 {}", f.op(args[0]));
    Ok(match op {
        LaneOp::Barrier if in_warp => {
            let mask = active(f);
            call(f, "void", "llvm.nvvm.bar.warp.sync", &[mask])
        }
        LaneOp::Barrier => call(f, "void", "llvm.nvvm.barrier.cta.sync.aligned.all", &["i32 0".into()]),
        LaneOp::Any | LaneOp::All if in_warp => {
            let (mask, holds) = (active(f), holds(f));
            let kind = if op == LaneOp::Any { "any" } else { "all" };
            call(f, "i1", &format!("llvm.nvvm.vote.{kind}.sync"), &[mask, holds])
        }
        LaneOp::Any | LaneOp::All => {
            let (kind, holds) = (if op == LaneOp::Any { "or" } else { "and" }, holds(f));
            call(f, "i1", &format!("llvm.nvvm.barrier.cta.red.{kind}.aligned.all"), &["i32 0".into(), holds])
        }
        LaneOp::Count | LaneOp::Ballot if in_warp => {
            let (mask, holds) = (active(f), holds(f));
            let ballot = call(f, "i32", "llvm.nvvm.vote.ballot.sync", &[mask, holds]);
            if op == LaneOp::Count {
                call(f, "i32", "llvm.ctpop.i32", &[format!("i32 {ballot}")])
            } else {
                let wide = f.temp();
                f.line(format_args!("{wide} = zext i32 {ballot} to i64"));
                wide
            }
        }
        LaneOp::Count => {
            let holds = holds(f);
            call(f, "i32", "llvm.nvvm.barrier.cta.red.popc.aligned.all", &["i32 0".into(), holds])
        }
        LaneOp::Get if in_warp => {
            let (mask, lane) = (active(f), format!("i32 {}", f.op(args[1])));
            return get(f, result, args[0], &mut |f, word| {
                let args = [mask.clone(), format!("i32 {word}"), lane.clone(), "i32 31".into()];
                call(f, "i32", "llvm.nvvm.shfl.sync.idx.i32", &args)
            });
        }
        LaneOp::Id if in_warp => read_register(f, "laneid"),
        LaneOp::Width if in_warp => read_register(f, "warpsize"),
        LaneOp::Ballot | LaneOp::Get | LaneOp::Id | LaneOp::Width | LaneOp::Compact | LaneOp::Shared => {
            return Err(unsupported(f, (op, scope), result, "NVIDIA's GPUs"));
        }
    })
}

/// The lanes of the warp that are active, as an operand.
fn active(f: &mut FunctionEmitter) -> String {
    format!("i32 {}", call(f, "i32", "llvm.nvvm.activemask", &[]))
}

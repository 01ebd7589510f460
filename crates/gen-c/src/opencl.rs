//! OpenCL C: its dialect, and what only kernels have: memory of the block, barriers, and atomic operations by OpenCL's own
//! functions. Separate from the emitter, which asks the dialect.
//!
//! The text is OpenCL C 1.2, which every driver takes. An address in memory, or in a struct, is a `ulong`: a pointer there
//! would say nothing of its address space.

use crate::dialect::{Atomics, Bits, Compound, Dialect, Features};
use crate::expr::{Expr, Prec, apply};
use crate::function::FunctionEmitter;
use crate::{Result, bug};
use nyala_flat::{Inst, InstOp, Linkage, Value};
use nyala_ir::scalar::{ATOMICS, ORDERS};
use nyala_ir::{LaneOp, Op, Prim, Scope, TyKind, WorkItem, layout};

/// OpenCL C 1.2.
pub const OPENCL: Dialect = Dialect {
    name: "OpenCL C",
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
        (Prim::F32, "float"),
        (Prim::F64, "double"),
    ],
    suffixes: &[(Prim::U32, "u"), (Prim::I64, "L"), (Prim::U64, "UL")],
    float_suffixes: &[(Prim::F32, "f")],
    address: "ulong",
    spaces: &[(1, "__global"), (2, "const __global"), (3, "__local"), (4, "__constant"), (5, "")],
    internal: "",
    inline: "",
    kernel: "__kernel ",
    work_items: &[
        (WorkItem::Thread, ["(int)get_local_id(0)", "(int)get_local_id(1)", "(int)get_local_id(2)"]),
        (WorkItem::Block, ["(int)get_group_id(0)", "(int)get_group_id(1)", "(int)get_group_id(2)"]),
        (WorkItem::BlockSize, ["(int)get_local_size(0)", "(int)get_local_size(1)", "(int)get_local_size(2)"]),
        (WorkItem::Blocks, ["(int)get_num_groups(0)", "(int)get_num_groups(1)", "(int)get_num_groups(2)"]),
    ],
    barrier: "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    restrict: "restrict",
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
    bits: Bits::AsType,
    compound: Compound::Literal,
    may_alias: "__attribute__((may_alias))",
    null: "0",
    infinity: ["INFINITY", "(double)INFINITY"],
    unreachable: "__builtin_unreachable()",
    division_fault: "",
    unused: "",
    reserved: RESERVED,
    has: Features {
        function_pointers: false,
        goto: true,
        recursion: false,
        long: true,
        double: true,
        half: false,
        atomics: Atomics::OpenCl,
        builtins: false,
        jumps_past_declarations: true,
        symbols: false,
    },
};

const RESERVED: &[&str] = &[
    // Keywords.
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "constant",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "global",
    "goto",
    "half",
    "if",
    "image1d_t",
    "image2d_t",
    "image3d_t",
    "inline",
    "int",
    "kernel",
    "local",
    "long",
    "private",
    "quad",
    "read_only",
    "read_write",
    "register",
    "restrict",
    "return",
    "sampler_t",
    "short",
    "signed",
    "sizeof",
    "size_t",
    "static",
    "struct",
    "switch",
    "typedef",
    "uchar",
    "uint",
    "ulong",
    "uniform",
    "union",
    "unsigned",
    "ushort",
    "void",
    "volatile",
    "while",
    "write_only",
    "pipe",
    "generic",
    "event_t",
    "complex",
    "imaginary",
    "true",
    "false",
    "NULL",
    "INFINITY",
    "NAN",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
    // Functions of OpenCL.
    "abs",
    "abs_diff",
    "acos",
    "acosh",
    "acospi",
    "add_sat",
    "all",
    "any",
    "asin",
    "asinh",
    "asinpi",
    "atan",
    "atan2",
    "atan2pi",
    "atanh",
    "atanpi",
    "barrier",
    "bitselect",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "cospi",
    "cross",
    "ctz",
    "degrees",
    "distance",
    "dot",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "fract",
    "frexp",
    "hadd",
    "hypot",
    "ilogb",
    "isequal",
    "isfinite",
    "isgreater",
    "isinf",
    "isless",
    "isnan",
    "isnormal",
    "ldexp",
    "length",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "mad",
    "mad24",
    "mad_hi",
    "mad_sat",
    "max",
    "maxmag",
    "mem_fence",
    "min",
    "minmag",
    "mix",
    "modf",
    "mul24",
    "mul_hi",
    "nan",
    "nextafter",
    "normalize",
    "popcount",
    "pow",
    "pown",
    "powr",
    "prefetch",
    "printf",
    "radians",
    "remainder",
    "remquo",
    "rhadd",
    "rint",
    "rootn",
    "rotate",
    "round",
    "rsqrt",
    "select",
    "shuffle",
    "shuffle2",
    "sign",
    "signbit",
    "sin",
    "sincos",
    "sinh",
    "sinpi",
    "smoothstep",
    "sqrt",
    "step",
    "sub_sat",
    "tan",
    "tanh",
    "tanpi",
    "tgamma",
    "trunc",
    "upsample",
    "work_group_barrier",
    "code",
];

/// The extensions that a text needs, as lines before it.
pub(crate) fn extensions(text: &str) -> String {
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
    if text.contains("atom_") {
        lines.push_str("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n");
        lines.push_str("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n");
    }
    lines
}

/// The number of the work item in the grid, where a value is computed from those of its block and its place in that.
pub(crate) fn global_id(f: &FunctionEmitter, value: Value) -> Option<Expr> {
    const IDS: [&str; 3] = ["(int)get_global_id(0)", "(int)get_global_id(1)", "(int)get_global_id(2)"];
    if f.e.dialect.kernel.is_empty() {
        return None;
    }
    let operands = |v: Value, op: Op| f.definition(v).filter(|inst| inst.op == InstOp::Op(op)).map(|inst| &inst.args);
    let number = |v: Value| {
        let args = operands(v, Op::WorkItem)?;
        let what = WorkItem::ALL.get(f.function.as_bits(args[0])? as usize)?;
        Some((*what, f.function.as_bits(args[1])?))
    };
    let sum = operands(value, Op::Add)?;
    let (WorkItem::Thread, axis) = number(sum[1])? else { return None };
    let product = operands(sum[0], Op::Mul)?;
    let is_block = number(product[0]) == Some((WorkItem::Block, axis));
    let is_size = match f.function.as_bits(product[1]) {
        Some(bits) => {
            matches!(f.function.linkage, Linkage::Kernel(_, sizes) if u64::from(sizes[axis as usize]) == bits)
        }
        None => number(product[1]) == Some((WorkItem::BlockSize, axis)),
    };
    (is_block && is_size).then(|| Expr::atom(IDS[axis as usize]))
}

/// Memory of the block, which only a kernel has.
pub(crate) fn shared(f: &mut FunctionEmitter, inst: &Inst, result: Value) -> Result<()> {
    let TyKind::Ptr { pointee, .. } = *f.e.module.types.kind(f.ty(result)) else { return Err(bug("no address")) };
    let elem = match f.e.module.types.kind(pointee) {
        TyKind::IndefArray(elem) | TyKind::Array(elem, _) => *elem,
        _ => pointee,
    };
    let size = layout::size_align(&f.e.module.types, elem).map_or(1, |s| s.0).max(1);
    let Some(bytes) = f.function.as_bits(inst.args[0]) else {
        return Err(f.limitation("memory of a block whose size is known at run time only".into()));
    };
    let declared = f.declared(elem)?;
    let wanted = f.function.name(result).to_string();
    let name = f.local_name(if wanted.is_empty() { "shared" } else { &wanted });
    let space = f.e.dialect.space(3);
    f.declare(format!("{space}{declared}{name}[{}];", bytes / size));
    f.set(result, Expr::atom(name));
    Ok(())
}

/// An operation among the work items of a block or subgroup.
pub(crate) fn lanes(f: &mut FunctionEmitter, (op, scope): (LaneOp, Scope), inst: &Inst, result: Value) -> Result<()> {
    match (op, scope) {
        (LaneOp::Shared, _) => shared(f, inst, result),
        (LaneOp::Barrier, Scope::Block) => {
            f.flush_all()?;
            let barrier = f.e.dialect.barrier.to_string();
            f.statement(barrier, &[]);
            Ok(())
        }
        _ => {
            let among = if scope == Scope::Block { "the work items of a block" } else { "the lanes of a subgroup" };
            Err(f.limitation(format!("`{}`, an operation among {among},", op.name())))
        }
    }
}

/// The space's word in names of helper functions.
fn space_word(space: u8) -> &'static str {
    match space {
        3 => "local",
        5 => "private",
        _ => "global",
    }
}

/// An atomic operation. OpenCL 1.2 has relaxed ones only: stronger orders get fences around them.
pub(crate) fn atomic(f: &mut FunctionEmitter, op: Op, inst: &Inst) -> Result<()> {
    const FENCE: &str = "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)";
    let args = &inst.args;
    let order_at = op.literal_operands().start - 1;
    let order = f.function.as_bits(args[order_at]).and_then(|n| ORDERS.get(n as usize).copied().flatten());
    let order = order.ok_or_else(|| bug("a memory order that is not known"))?;
    let is_ordered = matches!(order, "acquire" | "release" | "acq_rel" | "seq_cst");
    if op == Op::Fence {
        f.flush_all()?;
        if is_ordered {
            f.statement(FENCE.into(), &[]);
        }
        return Ok(());
    }
    let at = op.writes().map_or(0, |w| w.0 - 1);
    let TyKind::Ptr { pointee: ty, space } = *f.e.module.types.kind(f.ty(args[at])) else {
        return Err(bug("no address"));
    };
    let prim = f.e.module.types.as_prim(ty).filter(|p| p.bits() >= 32);
    let Some(prim) = prim else {
        let ty = f.e.module.types.display(ty);
        return Err(f.limitation(format!("an atomic operation on `{ty}`")));
    };
    let wide = prim.bits() == 64;
    let (prefix, bits) = if wide { ("atom", Prim::U64) } else { ("atomic", Prim::U32) };
    let qualifier = f.e.dialect.space(space);
    let word = space_word(space);
    let name = f.e.types.prim(prim)?;
    let bits_name = f.e.types.prim(bits)?;
    let address = f.value(args[at])?;
    let pointer = |to: &str| format!("volatile {qualifier}{to} *");
    let cast = |to: &str, e: &Expr| crate::expr::cast(&pointer(to), e);
    if is_ordered {
        f.flush_all()?;
        f.statement(FENCE.into(), &[]);
    }
    let e = match op {
        Op::AtomicStore => {
            let value = f.value(args[1])?;
            f.flush_all()?;
            let place = format!("*{} = {}", cast(name, &address).at(Prec::Unary), value.text);
            f.statement(place, &[&address, &value]);
            if is_ordered {
                f.statement(FENCE.into(), &[]);
            }
            return Ok(());
        }
        Op::AtomicLoad => {
            let place = cast(name, &address);
            Expr::new(format!("*{}", place.at(Prec::Unary)), Prec::Unary).of(&[&place])
        }
        Op::Atomic => {
            let what = f.function.as_bits(args[0]).and_then(|n| ATOMICS.get(n as usize));
            let what = *what.ok_or_else(|| bug("no such atomic operation"))?;
            let value = f.value(args[2])?;
            let signed = if wide { Prim::I64 } else { Prim::I32 };
            let own = match what {
                "add" | "sub" | "and" | "or" | "xor" | "xchg" if prim.is_int() => Some((what, prim)),
                "xchg" if prim == Prim::F32 => Some((what, prim)),
                "max" | "min" if prim.is_int() => Some((what, signed)),
                "umax" | "umin" if prim.is_int() => Some((&what[1..], bits)),
                _ => None,
            };
            match own {
                Some((what, of)) => {
                    let of_name = f.e.types.prim(of)?;
                    let place = if of == prim { address } else { cast(of_name, &address) };
                    let e = apply(&format!("{prefix}_{what}"), &[&place, &value]);
                    if of == prim { e } else { crate::expr::cast(name, &e) }
                }
                None => {
                    let helper = updated(f, what, prim, (bits_name, prefix), (&qualifier, word))?;
                    apply(&helper, &[&address, &value])
                }
            }
        }
        _ => {
            let (expected, new) = (f.value(args[1])?, f.value(args[2])?);
            let Some(result) = inst.result else { return Err(bug("`cmpxchg` without a result")) };
            let pair = f.type_name(f.ty(result))?;
            let helper = exchange(f, prim, (bits_name, prefix), (&qualifier, word), &pair)?;
            apply(&helper, &[&address, &expected, &new])
        }
    };
    f.flush_all()?;
    let e = Expr { must: true, ..e };
    let Some(result) = inst.result else { return Err(bug("an atomic operation without a result")) };
    // An atomic operation is one statement: what it gives is often not used.
    match f.n_uses(result) {
        0 => {
            let plain = e.text.strip_prefix(&format!("({name})")).filter(|rest| rest.starts_with(prefix));
            let text = plain.unwrap_or(&e.text).to_string();
            f.statement(text, &[&e]);
        }
        _ => f.define(result, e, inst.op)?,
    }
    if is_ordered {
        f.flush_all()?;
        f.statement(FENCE.into(), &[]);
    }
    Ok(())
}

/// How a number is read as its bits, and the bits as the number.
fn converters(prim: Prim, name: &str, bits: &str) -> (String, String) {
    if prim.is_float() {
        (format!("as_{bits}"), format!("as_{name}"))
    } else {
        (format!("({bits})"), format!("({name})"))
    }
}

/// An operation that OpenCL has no function for: tried until nobody comes in between.
fn updated(
    f: &mut FunctionEmitter,
    what: &str,
    prim: Prim,
    (bits, prefix): (&str, &str),
    (qualifier, word): (&str, &str),
) -> Result<String> {
    let name = f.e.types.prim(prim)?;
    let new = match what {
        "xchg" => "v",
        "nand" => "~(old & v)",
        "fadd" => "old + v",
        "fsub" => "old - v",
        "fmax" => "fmax(old, v)",
        "fmin" => "fmin(old, v)",
        "uinc_wrap" => "(UNSIGNED)old >= (UNSIGNED)v ? 0 : old + 1",
        "udec_wrap" => "old == 0 || (UNSIGNED)old > (UNSIGNED)v ? v : old - 1",
        _ => return Err(f.limitation(format!("`atomic` operation `{what}` on `{}`", prim.name()))),
    };
    let new = new.replace("UNSIGNED", bits);
    let (to_bits, from_bits) = converters(prim, name, bits);
    f.e.helper(format!("{what}_{}_{word}", prim.name()), |_, helper| {
        Ok(format!(
            "{name} {helper}(volatile {qualifier}{name} *at, {name} v) {{
    {name} old;
    {bits} seen;
    do {{
        old = *at;
        {name} new = {new};
        seen = {prefix}_cmpxchg((volatile {qualifier}{bits} *)at, {to_bits}(old), {to_bits}(new));
    }} while (seen != {to_bits}(old));
    return {from_bits}(seen);
}}"
        ))
    })
}

/// Compares and exchanges: the old value, and whether it was the expected one. Floats are compared by their bits.
fn exchange(
    f: &mut FunctionEmitter,
    prim: Prim,
    (bits, prefix): (&str, &str),
    (qualifier, word): (&str, &str),
    pair: &str,
) -> Result<String> {
    let name = f.e.types.prim(prim)?;
    let (to_bits, from_bits) = converters(prim, name, bits);
    f.e.helper(format!("exchange_{}_{word}", prim.name()), |_, helper| {
        Ok(format!(
            "{pair} {helper}(volatile {qualifier}{name} *at, {name} expected, {name} new) {{
    {bits} seen = {prefix}_cmpxchg((volatile {qualifier}{bits} *)at, {to_bits}(expected), {to_bits}(new));
    {pair} result = {{{from_bits}(seen), seen == {to_bits}(expected)}};
    return result;
}}"
        ))
    })
}

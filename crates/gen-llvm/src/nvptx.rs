//! Kernels for NVIDIA's GPUs as LLVM text: what they have beyond functions of the host. LLVM's NVPTX target makes PTX of
//! it.
//!
//! ```text
//! kernel add(n: i32, out: &[1][f32])     define ptx_kernel void @add(i32 %a0, ptr %a1) #9 "nvvm.reqntid"="64,1,1" {
//!                                          call void @impala.add(i32 %a0, ptr %a1)   ; inlined
//! ```
//!
//! - Addresses are generic, the space 0 of LLVM, whatever their space in flat SSA. LLVM finds out which memory they mean:
//!   it knows that kernels take addresses of global memory. Statics lie in global memory, from where constants are
//!   read through the read-only cache. Memory of a block is a variable in LLVM's space 3.
//! - A bool is passed to a kernel as a byte, an aggregate in the memory of the parameters (`byval`).
//! - Every function and call is `convergent`, since it may contain a barrier; LLVM drops the attribute where there is
//!   none.
//! - Nothing is contracted: LLVM writes `mul.rn` and `add.rn`, which NVIDIA's assembler leaves alone.
//! - Math functions are those of NVIDIA's libdevice. Without it single-precision exponentials and logarithms are the
//!   polynomials for vectors; kernels with other functions ([`needs_libdevice`]) can be compiled as CUDA C++ instead.

use crate::diagnostics::{bug, limitation};
use crate::emit::{Emitter, quote};
use crate::function::FunctionEmitter;
use crate::ops::{call_math, number_text};
use crate::polynomials;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::{Func, Function, Inst, InstOp, Linkage, Module, Value};
use nyala_ir::lanes::GPU_INTRINSICS;
use nyala_ir::{LaneOp, Op, Prim, Scope, TyKind, WorkItem};
use std::fmt::Write;

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// The attributes of kernels, and of the functions and calls of a module for a GPU.
pub(crate) const ATTRIBUTES: &str = "\
attributes #0 = { nounwind convergent }
attributes #1 = { nounwind convergent }
attributes #2 = { nounwind willreturn memory(none) }
attributes #3 = { nounwind noinline optnone convergent }
attributes #4 = { nounwind noinline convergent }
attributes #7 = { nounwind willreturn memory(none) nobuiltin }
attributes #8 = { nounwind nobuiltin convergent }
attributes #9 = { nounwind convergent }
attributes #10 = { nounwind alwaysinline convergent }
attributes #11 = { nounwind willreturn memory(none) convergent }
";

/// Bytes of a block's memory that need no agreement with the driver.
const MAX_SHARED: u64 = 48 << 10;

/// The first architecture that has operations whose names begin, after [`GPU_INTRINSICS`], or go on like this. From CUDA's
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

/// Prefix of libdevice's functions.
pub(crate) const LIBDEVICE: &str = "__nv_";

/// A math function in the kernels of a module that only libdevice has, with the place of the call.
pub fn needs_libdevice(module: &Module) -> Option<(&'static str, Span)> {
    let is_single = |f: &Function, inst: &Inst| {
        inst.result.is_some_and(|r| matches!(module.types.lane_prim(f.ty(r)), Some(Prim::F16 | Prim::F32)))
    };
    module.funcs.iter().find_map(|f| {
        f.blocks.iter().flat_map(|b| &b.insts).find_map(|inst| {
            let InstOp::Op(op @ (nyala_ir::unary_math!() | nyala_ir::binary_math!())) = inst.op else { return None };
            let is_own = matches!(op, Op::Exp | Op::Exp2 | Op::Log | Op::Log2) && is_single(f, inst);
            (!op.is_exact_math() && !is_own).then(|| (op.name(), inst.span))
        })
    })
}

impl Emitter<'_> {
    /// Writes the kernel that the host launches; it calls the function, which is inlined.
    pub fn emit_kernel(&mut self, func: Func) -> Result<()> {
        let module = self.module;
        let function = module.func(func);
        let Linkage::Kernel(symbol, sizes) = &function.linkage else { return Ok(()) };
        let (mut params, mut args, mut body) = (Vec::new(), Vec::new(), String::new());
        for (i, &ty) in function.params.iter().enumerate() {
            let (memory, register) = (self.layouts.memory(ty)?, self.layouts.register(ty)?);
            let is_aggregate = module.types.n_parts(ty).is_some() && module.types.as_vector(ty).is_none();
            match () {
                () if self.layouts.is_bool(ty) => {
                    params.push(format!("{memory} %a{i}"));
                    let zero = if memory.starts_with('<') { "zeroinitializer" } else { "0" };
                    let _ = writeln!(body, "  %b{i} = icmp ne {memory} %a{i}, {zero}");
                    args.push(format!("{register} %b{i}"));
                }
                () if is_aggregate => {
                    let align = nyala_ir::layout::size_align(&module.types, ty).map_or(8, |s| s.1.max(1));
                    params.push(format!("ptr byval({memory}) align {align} %a{i}"));
                    match self.layouts.in_memory(ty) {
                        true => args.push(format!("ptr %a{i}")),
                        false => {
                            let _ = writeln!(body, "  %b{i} = load {memory}, ptr %a{i}, align {align}");
                            args.push(format!("{memory} %b{i}"));
                        }
                    }
                }
                () => {
                    params.push(format!("{register} %a{i}"));
                    args.push(format!("{register} %a{i}"));
                }
            }
        }
        let (name, cc) = (self.internal_name(func), self.convention(&function.params));
        let (scope, at) = self.scope(function);
        let mut bounds = String::new();
        if sizes.iter().all(|&n| n > 0) {
            let [x, y, z] = sizes;
            bounds = format!(" \"nvvm.reqntid\"=\"{x},{y},{z}\"");
        }
        let (params, args) = (params.join(", "), args.join(", "));
        let kernel = quote(symbol);
        let _ = writeln!(
            self.out,
            "define ptx_kernel void {kernel}({params}) #9{bounds}{scope} {{\n{body}  call {cc}void {name}({args}) #10{at}\n  ret void{at}\n}}\n"
        );
        Ok(())
    }
}

/// Answers a question of a work item from one of the GPU's registers.
pub(crate) fn work_item(f: &mut FunctionEmitter, inst: &Inst, result: Value) -> Result<()> {
    let number = |i: usize| f.function.as_bits(inst.args[i]).map(|n| n as usize);
    let what = number(0).and_then(|n| WorkItem::ALL.get(n)).ok_or_else(|| bug("no such number of a work item"))?;
    let axis = number(1).and_then(|n| ["x", "y", "z"].get(n)).ok_or_else(|| bug("an axis that is not known"))?;
    let register = match what {
        WorkItem::Thread => "tid",
        WorkItem::Block => "ctaid",
        WorkItem::BlockSize => "ntid",
        WorkItem::Blocks => "nctaid",
    };
    let value = read_register(f, &format!("{register}.{axis}"));
    f.operands[result.idx()] = value;
    Ok(())
}

fn read_register(f: &mut FunctionEmitter, name: &str) -> String {
    call(f, "i32", &format!("llvm.nvvm.read.ptx.sreg.{name}"), &[])
}

/// Calls an intrinsic; `args` are operands with their types.
fn call(f: &mut FunctionEmitter, ret: &str, symbol: &str, args: &[String]) -> String {
    let params: Vec<&str> = args.iter().map(|a| a.split_once(' ').map_or("", |(ty, _)| ty)).collect();
    f.e.declare(symbol, || format!("declare {ret} @{symbol}({})", params.join(", ")));
    let args = args.join(", ");
    if ret == "void" {
        f.line(format_args!("call void @{symbol}({args})"));
        return "zeroinitializer".into();
    }
    let result = f.temp();
    f.line(format_args!("{result} = call {ret} @{symbol}({args})"));
    result
}

/// Whether a function without a body is an operation of lanes, or one of LLVM's intrinsics, which is emitted here.
pub(crate) fn is_intrinsic(f: &FunctionEmitter, func: Func) -> bool {
    let symbol = f.e.module.func(func).symbol().filter(|_| f.e.module.func(func).is_foreign());
    f.e.target().is_gpu() && symbol.is_some_and(|s| s.starts_with(GPU_INTRINSICS) || LaneOp::of_symbol(s).is_some())
}

/// Reports an operation of the GPU in code of the host, which LLVM would end the process for.
pub(crate) fn refuse_on_host(f: &FunctionEmitter, func: Func) -> Result<()> {
    let function = f.e.module.func(func);
    match function.symbol().filter(|symbol| symbol.starts_with(GPU_INTRINSICS) && !f.e.target().is_gpu()) {
        None => Ok(()),
        Some(symbol) => {
            let hint = "call it in a kernel for `cuda` or `nvvm`, and run that without `--device host`";
            let message = format!("`{symbol}`, an operation of NVIDIA's GPUs, in code of the CPU");
            Err(Box::new(limitation::error(function.span, message, hint)))
        }
    }
}

/// Emits a call for which [`is_intrinsic`] holds.
pub(crate) fn intrinsic(f: &mut FunctionEmitter, result: Value, func: Func, args: &[Value]) -> Result<()> {
    let symbol = f.e.module.func(func).symbol().unwrap_or_default();
    if let Some(lane_op) = LaneOp::of_symbol(symbol) {
        f.operands[result.idx()] = lanes(f, lane_op, result, args)?;
        return Ok(());
    }
    check_architecture(f, func, symbol)?;
    let (mut params, mut operands) = (Vec::new(), Vec::new());
    for (i, &arg) in args.iter().enumerate() {
        let value = f.typed(arg)?;
        let declared = f.e.module.func(func).params.get(i).copied().unwrap_or(f.ty(arg));
        match *f.e.module.types.kind(declared) {
            TyKind::Ptr { space, .. } if space != 0 => {
                let address = f.temp();
                f.line(format_args!("{address} = addrspacecast {value} to ptr addrspace({space})"));
                params.push(format!("ptr addrspace({space})"));
                operands.push(format!("ptr addrspace({space}) {address}"));
            }
            _ => {
                params.push(f.e.layouts.register(f.ty(arg))?);
                operands.push(value);
            }
        }
    }
    let ret = match f.e.module.types.n_parts(f.ty(result)) {
        Some(0) => "void".into(),
        _ => f.e.layouts.register(f.ty(result))?,
    };
    let (name, operands, value) = (quote(symbol), operands.join(", "), f.op(result));
    f.e.declare(symbol, || format!("declare {ret} {name}({})", params.join(", ")));
    if ret == "void" {
        f.line(format_args!("call void {name}({operands})"));
        f.operands[result.idx()] = "zeroinitializer".into();
    } else {
        f.line(format_args!("{value} = call {ret} {name}({operands})"));
    }
    Ok(())
}

/// Reports an operation that GPUs of the module's architecture do not have.
fn check_architecture(f: &FunctionEmitter, func: Func, symbol: &str) -> Result<()> {
    let name = symbol.strip_prefix(GPU_INTRINSICS).unwrap_or_default();
    let is = |part: &str| if part.starts_with('.') { name.contains(part) } else { name.starts_with(part) };
    let least = SINCE.iter().find(|(part, _)| is(part)).map_or(0, |s| s.1);
    let gpu = f.e.target().cpu.clone().unwrap_or_default();
    let own = gpu.trim_start_matches("sm_").trim_end_matches('a').parse().unwrap_or(0);
    if own >= least {
        return Ok(());
    }
    let message = format!("`{symbol}` on `{gpu}`: GPUs have it from `sm_{least}` on");
    let hint = format!("let kernels be compiled for newer GPUs only: `--cuda sm_{least}`");
    Err(Box::new(limitation::error(f.e.module.func(func).span, message, hint)))
}

/// An operation among the work items of a block, or among the lanes of a warp that are active.
fn lanes(f: &mut FunctionEmitter, (op, scope): (LaneOp, Scope), result: Value, args: &[Value]) -> Result<String> {
    let unsupported = |f: &FunctionEmitter| {
        let among = if scope == Scope::Block { "the work items of a block" } else { "the lanes of a warp" };
        let message = format!("`{}`, an operation among {among}, on NVIDIA's GPUs", op.name());
        Err(Box::new(limitation::error(f.function.span, message, "exchange the values through memory of the block")))
    };
    let in_warp = scope != Scope::Block;
    let holds = |f: &FunctionEmitter| format!("i1 {}", f.op(args[0]));
    Ok(match op {
        LaneOp::Shared => return shared(f, result, args),
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
        LaneOp::Get if in_warp => return get(f, result, args),
        LaneOp::Id if in_warp => read_register(f, "laneid"),
        LaneOp::Width if in_warp => read_register(f, "warpsize"),
        LaneOp::Ballot | LaneOp::Get | LaneOp::Id | LaneOp::Width | LaneOp::Compact => return unsupported(f),
    })
}

/// The lanes of the warp that are active, as an operand.
fn active(f: &mut FunctionEmitter) -> String {
    format!("i32 {}", call(f, "i32", "llvm.nvvm.activemask", &[]))
}

/// A number of another lane, in words of 32 bits.
fn get(f: &mut FunctionEmitter, result: Value, args: &[Value]) -> Result<String> {
    let ty = f.ty(result);
    let Some(prim) = f.e.module.types.as_prim(ty) else {
        let ty = f.e.module.types.display(ty);
        let message = format!("a value of type `{ty}` of another lane, on NVIDIA's GPUs");
        return Err(Box::new(limitation::error(f.function.span, message, "get its parts one by one")));
    };
    let (register, value, lane) = (number_text(prim, None), f.op(args[0]), format!("i32 {}", f.op(args[1])));
    let int = format!("i{}", if prim == Prim::Bool { 1 } else { prim.bits() });
    let line = |f: &mut FunctionEmitter, text: String| {
        let name = f.temp();
        f.line(format_args!("{name} = {text}"));
        name
    };
    let bits = if prim.is_float() { line(f, format!("bitcast {register} {value} to {int}")) } else { value };
    let mask = active(f);
    let word = |f: &mut FunctionEmitter, word: String| {
        let args = [mask.clone(), format!("i32 {word}"), lane.clone(), "i32 31".into()];
        call(f, "i32", "llvm.nvvm.shfl.sync.idx.i32", &args)
    };
    let got = match int.as_str() {
        "i32" => word(f, bits),
        "i64" => {
            let low = line(f, format!("trunc i64 {bits} to i32"));
            let shifted = line(f, format!("lshr i64 {bits}, 32"));
            let high = line(f, format!("trunc i64 {shifted} to i32"));
            let [low, high] = [word(f, low), word(f, high)];
            let low = line(f, format!("zext i32 {low} to i64"));
            let high = line(f, format!("zext i32 {high} to i64"));
            let high = line(f, format!("shl i64 {high}, 32"));
            line(f, format!("or i64 {high}, {low}"))
        }
        _ => {
            let wide = line(f, format!("zext {int} {bits} to i32"));
            let got = word(f, wide);
            line(f, format!("trunc i32 {got} to {int}"))
        }
    };
    Ok(if prim.is_float() { line(f, format!("bitcast {int} {got} to {register}")) } else { got })
}

/// Memory of the block: a variable of the module.
fn shared(f: &mut FunctionEmitter, result: Value, args: &[Value]) -> Result<String> {
    let limit = |message: &str, hint: &str| Err(Box::new(limitation::error(f.function.span, message, hint)));
    let Some(bytes) = f.function.as_bits(args[0]) else {
        return limit("memory of a block whose size is known at run time only", "let the size be known, with `@`");
    };
    f.shared_bytes += bytes;
    if f.shared_bytes > MAX_SHARED {
        return limit("a kernel for NVIDIA's GPUs with more than 48 KiB of memory of the block", "reserve less of it");
    }
    let align = match f.e.module.types.kind(f.ty(result)) {
        TyKind::Ptr { .. } => 16,
        _ => return Err(bug("memory of the block that is no address")),
    };
    let (function, wanted) = (f.e.internal_name(f.func), f.function.name(result));
    let wanted = if wanted.is_empty() { "shared" } else { wanted };
    let name = quote(&format!("{}.{wanted}.{}", function.trim_matches(['@', '"']), result.idx()));
    let _ = writeln!(f.e.out, "{name} = internal addrspace(3) global [{bytes} x i8] undef, align {align}");
    Ok(format!("addrspacecast (ptr addrspace(3) {name} to ptr)"))
}

/// The scope of an atomic operation or a fence, for LLVM; without it the whole system takes part.
pub(crate) fn sync_scope(f: &FunctionEmitter, scope: Option<Value>) -> &'static str {
    match scope.and_then(|s| f.function.as_bits(s)) {
        Some(1) => "syncscope(\"device\") ",
        Some(2) => "syncscope(\"block\") ",
        // LLVM has no scope for a warp.
        Some(3) => "syncscope(\"block\") ",
        Some(4) => "syncscope(\"singlethread\") ",
        _ => "",
    }
}

/// Calls a math function on a number of single or double precision; returns the result.
pub(crate) fn math(f: &mut FunctionEmitter, op: Op, prim: Prim, values: &[String]) -> Result<String> {
    if f.e.options.libdevice.is_some() {
        let symbol = format!("{LIBDEVICE}{}{}", op.name(), if prim == Prim::F32 { "f" } else { "" });
        return Ok(call_math(f, &symbol, prim, None, values, ""));
    }
    let (one, vector) = (number_text(prim, None), number_text(prim, Some(1)));
    let wide: Vec<String> = values
        .iter()
        .map(|value| {
            let wide = f.temp();
            f.line(format_args!("{wide} = insertelement {vector} undef, {one} {value}, i64 0"));
            wide
        })
        .collect();
    let all = polynomials::write(f, op, prim, 1, &wide).ok_or_else(|| bug("a math function without libdevice"))?;
    let result = f.temp();
    f.line(format_args!("{result} = extractelement {vector} {all}, i64 0"));
    Ok(result)
}

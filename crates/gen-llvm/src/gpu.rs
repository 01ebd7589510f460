//! Kernels for GPUs as LLVM text: what they have beyond functions of the host. LLVM's NVPTX target makes PTX of it, the AMDGPU
//! target machine code. Their differences are in `nvptx` and `amdgpu`.
//!
//! ```text
//! kernel add(n: i32, out: &[1][f32])     define ptx_kernel void @add(i32 %a0, ptr %a1) #9 "nvvm.reqntid"="64,1,1" {
//!                                          call void @impala.add(i32 %a0, ptr %a1)   ; inlined
//! ```
//!
//! - Addresses are generic, the space 0 of LLVM, whatever their space in flat SSA. LLVM finds out which memory they mean:
//!   it knows that kernels take addresses of global memory. Statics lie in global memory, from where constants are
//!   read through a cache. Memory of a block is a variable in LLVM's space 3.
//! - A bool is passed to a kernel as a byte, an aggregate in the memory of the parameters.
//! - Every function and call is `convergent`, since it may contain a barrier; LLVM drops the attribute where there is
//!   none.
//! - Nothing is contracted: for NVIDIA LLVM writes `mul.rn` and `add.rn`, which the assembler leaves alone.
//! - Math functions are those of NVIDIA's libdevice. Without it, and for AMD, single-precision exponentials and logarithms
//!   are the polynomials for vectors, and functions of the module ([`without_libdevice`]).

use crate::diagnostics::{bad_shared_memory, bug, device_code_on_host, limitation};
use crate::emit::{Emitter, quote};
use crate::function::FunctionEmitter;
use crate::ops::{call_math, number_text};
use crate::{amdgpu, nvptx, polynomials};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::analysis::{Cfg, loops};
use nyala_flat::{Block, Edge, Func, Function, Inst, InstOp, Linkage, Module, Terminator, Value};
use nyala_ir::lanes::{device_function, is_gpu_intrinsic};
use nyala_ir::{Arch, LaneOp, Op, Prim, Scope, TyKind, WorkItem};
use rustc_hash::FxHashSet;
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

/// Bytes of a block's memory that code for NVIDIA's GPUs declares. With more, the launch gives the block all that it has.
const MAX_DECLARED: u64 = 48 << 10;
/// The most that a block has: on NVIDIA's largest GPUs, and on AMD's.
const MAX_SHARED: [u64; 2] = [227 << 10, 64 << 10];

/// Prefix of libdevice's functions.
pub(crate) const LIBDEVICE: &str = "__nv_";

/// A math function in the kernels of a module that only libdevice has, with the place of the call.
pub fn needs_libdevice(module: &Module) -> Option<(&'static str, Span)> {
    module.funcs.iter().find_map(|f| {
        f.blocks.iter().flat_map(|b| &b.insts).find_map(|inst| {
            let InstOp::Op(op) = inst.op else { return None };
            let prim = inst.result.and_then(|r| module.types.lane_prim(f.ty(r)))?;
            is_missing(op, prim).then(|| (op.name(), inst.span))
        })
    })
}

/// Gives a module functions in place of the math functions that only libdevice has.
///
/// # Errors
/// A fault of this compiler.
pub fn without_libdevice(module: &mut Module) -> Result<()> {
    nyala_flat::call_math(module, &|op, prim, _| is_missing(op, prim)).map_err(bug)
}

/// Whether only libdevice has a math function: it is no instruction, and there is no polynomial.
fn is_missing(op: Op, prim: Prim) -> bool {
    let is_own = matches!(op, Op::Exp | Op::Exp2 | Op::Log | Op::Log2) && prim != Prim::F64;
    matches!(op, nyala_ir::unary_math!() | nyala_ir::binary_math!()) && !op.is_exact_math() && !is_own
}

impl Emitter<'_> {
    /// Writes the kernel that the host launches; it calls the function, which is inlined.
    pub fn emit_kernel(&mut self, func: Func) -> Result<()> {
        let module = self.module;
        let function = module.func(func);
        let Linkage::Kernel(symbol, sizes) = &function.linkage else { return Ok(()) };
        let is_amd = module.target().arch == Arch::AmdGcn;
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
                    let (place, pass) = if is_amd { ("ptr addrspace(4)", "byref") } else { ("ptr", "byval") };
                    params.push(format!("{place} {pass}({memory}) align {align} %a{i}"));
                    match self.layouts.in_memory(ty) {
                        true if is_amd => {
                            let _ = writeln!(body, "  %b{i} = addrspacecast {place} %a{i} to ptr");
                            args.push(format!("ptr %b{i}"));
                        }
                        true => args.push(format!("ptr %a{i}")),
                        false => {
                            let _ = writeln!(body, "  %b{i} = load {memory}, {place} %a{i}, align {align}");
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
        let (convention, bounds) = match is_amd {
            true => ("amdgpu_kernel", amdgpu::bounds(self, *sizes)),
            false => {
                let subnormals = nvptx::Subnormals::of(&module.types, function);
                ("ptx_kernel", nvptx::bounds(*sizes) + subnormals.attribute())
            }
        };
        let (params, args) = (params.join(", "), args.join(", "));
        let kernel = quote(symbol);
        let _ = writeln!(
            self.out,
            "define {convention} void {kernel}({params}) #9{bounds}{scope} {{\n{body}  call {cc}void {name}({args}) #10{at}\n  ret void{at}\n}}\n"
        );
        Ok(())
    }
}

/// Rounds of a loop that one round of the unrolled loop runs, as NVIDIA's compiler does it.
const ROUNDS: u32 = 4;
/// Loops with more instructions are not unrolled.
const MAX_UNROLLED: usize = 48;

/// The jumps back in innermost loops that are short, call nothing, and count: a loop that ends by what it computes tests that in each
/// of its unrolled rounds, and gains nothing.
pub(crate) fn loops_to_unroll(function: &Function, cfg: &Cfg) -> FxHashSet<(Block, Block)> {
    let loops = loops(cfg);
    let mut jumps = FxHashSet::default();
    for own in &loops {
        let is_innermost = !loops.iter().any(|other| other.len() < own.len() && other.is_subset(own));
        let insts = || own.iter().flat_map(|&b| &function.block(b).insts);
        let calls = insts().any(|inst| !matches!(inst.op, InstOp::Op(_) | InstOp::Vector(_)));
        if !is_innermost || calls || insts().count() > MAX_UNROLLED || !counts(function, own) {
            continue;
        }
        for &b in own {
            // The header comes first.
            let is_back =
                |edge: &&Edge| own.contains(&edge.block) && cfg.position[edge.block.idx()] <= cfg.position[b.idx()];
            jumps.extend(function.block(b).term.edges().filter(is_back).map(|edge| (b, edge.block)));
        }
    }
    jumps
}

/// Whether a loop is left at one place only, by comparing a number that its rounds count with one that they do not change.
fn counts(function: &Function, own: &FxHashSet<Block>) -> bool {
    let is_exit = |&&b: &&Block| function.block(b).term.edges().any(|edge| !own.contains(&edge.block));
    let mut exits = own.iter().filter(is_exit);
    let (Some(&exit), None) = (exits.next(), exits.next()) else { return false };
    let Terminator::Branch { cond, .. } = function.block(exit).term else { return false };
    let insts = || own.iter().flat_map(|&b| &function.block(b).insts);
    let definition = |v: Value| insts().find(|inst| inst.result == Some(v));
    let is_param = |v: Value| own.iter().any(|&b| function.block(b).params.contains(&v));
    // A parameter of the loop, or its next value.
    let is_count = |v: Value| match definition(v) {
        None => is_param(v),
        Some(Inst { op: InstOp::Op(Op::Add | Op::Sub), args, .. }) => args.iter().any(|&a| is_param(a)),
        Some(_) => false,
    };
    let is_outside = |v: Value| definition(v).is_none() && !is_param(v);
    match definition(cond) {
        Some(Inst { op: InstOp::Op(op), args, .. }) if op.is_comparison() => {
            (is_count(args[0]) && is_outside(args[1])) || (is_outside(args[0]) && is_count(args[1]))
        }
        _ => false,
    }
}

/// The suffix of a jump back in a loop that LLVM shall unroll.
pub(crate) fn unrolled(e: &mut Emitter) -> String {
    let count = e.metadata(&format!("!{{!\"llvm.loop.unroll.count\", i32 {ROUNDS}}}"));
    format!(", !llvm.loop {}", e.distinct_metadata(&format!(", {count}")))
}

/// Answers a question of a work item.
pub(crate) fn work_item(f: &mut FunctionEmitter, inst: &Inst, result: Value) -> Result<()> {
    let number = |i: usize| f.function.as_bits(inst.args[i]).map(|n| n as usize);
    let what = number(0).and_then(|n| WorkItem::ALL.get(n)).ok_or_else(|| bug("no such number of a work item"))?;
    let axis = number(1).filter(|&axis| axis < 3).ok_or_else(|| bug("an axis that is not known"))?;
    let value = if is_amd(f) { amdgpu::work_item(f, *what, axis) } else { nvptx::work_item(f, *what, axis) };
    f.operands[result.idx()] = value;
    Ok(())
}

fn is_amd(f: &FunctionEmitter) -> bool {
    f.e.target().arch == Arch::AmdGcn
}

/// Calls an intrinsic; `args` are operands with their types.
pub(crate) fn call(f: &mut FunctionEmitter, ret: &str, symbol: &str, args: &[String]) -> String {
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
    f.e.target().is_gpu() && symbol.is_some_and(|s| is_gpu_intrinsic(s) || LaneOp::of_symbol(s).is_some())
}

/// Reports an operation of the GPU in code of the host, which LLVM would end the process for.
pub(crate) fn refuse_on_host(f: &FunctionEmitter, func: Func) -> Result<()> {
    let function = f.e.module.func(func);
    let symbol = function.symbol().filter(|_| !f.e.target().is_gpu());
    if let Some(name) = symbol.and_then(device_function) {
        return Err(Box::new(device_code_on_host::function(function.span, name)));
    }
    match symbol.filter(|symbol| is_gpu_intrinsic(symbol)) {
        None => Ok(()),
        Some(symbol) => Err(Box::new(device_code_on_host::operation(function.span, symbol))),
    }
}

/// Emits a call for which [`is_intrinsic`] holds.
pub(crate) fn intrinsic(f: &mut FunctionEmitter, result: Value, func: Func, args: &[Value]) -> Result<()> {
    let symbol = f.e.module.func(func).symbol().unwrap_or_default();
    if let Some(lane_op) = LaneOp::of_symbol(symbol) {
        f.operands[result.idx()] = match lane_op {
            (LaneOp::Shared, _) => shared(f, result, args)?,
            _ if is_amd(f) => amdgpu::lanes(f, lane_op, result, args)?,
            _ => nvptx::lanes(f, lane_op, result, args)?,
        };
        return Ok(());
    }
    nvptx::check_architecture(f, func, symbol)?;
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

/// A number of another lane, in words of 32 bits, each of which `word` gets.
pub(crate) fn get(
    f: &mut FunctionEmitter,
    result: Value,
    value: Value,
    word: &mut dyn FnMut(&mut FunctionEmitter, String) -> String,
) -> Result<String> {
    let ty = f.ty(result);
    let Some(prim) = f.e.module.types.as_prim(ty) else {
        let ty = f.e.module.types.display(ty);
        let message = format!("code for GPUs cannot get a value of type `{ty}` of another lane");
        return Err(Box::new(limitation::error(place(f, result), message, "get its parts one by one")));
    };
    let (register, value) = (number_text(prim, None), f.op(value));
    let int = format!("i{}", if prim == Prim::Bool { 1 } else { prim.bits() });
    let line = |f: &mut FunctionEmitter, text: String| {
        let name = f.temp();
        f.line(format_args!("{name} = {text}"));
        name
    };
    let bits = if prim.is_float() { line(f, format!("bitcast {register} {value} to {int}")) } else { value };
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
    let span = place(f, result);
    let Some(bytes) = f.function.as_bits(args[0]) else {
        return Err(Box::new(bad_shared_memory::unknown(span)));
    };
    let (offset, all) = (f.shared_bytes, reserved(f));
    f.shared_bytes = f.shared_bytes.saturating_add(bytes).next_multiple_of(16);
    let most = MAX_SHARED[usize::from(is_amd(f))];
    if f.shared_bytes > most {
        return Err(Box::new(bad_shared_memory::too_much(span, f.shared_bytes, most, "one of this GPU")));
    }
    if all > MAX_DECLARED && !is_amd(f) {
        let of_block = "nyala_memory_of_block";
        f.e.declare(of_block, || format!("@{of_block} = external addrspace(3) global [0 x i8], align 16"));
        let place = format!("getelementptr (i8, ptr addrspace(3) @{of_block}, i64 {offset})");
        return Ok(format!("addrspacecast (ptr addrspace(3) {place} to ptr)"));
    }
    let align = match f.e.module.types.kind(f.ty(result)) {
        TyKind::Ptr { .. } => 16,
        _ => return Err(bug("memory of the block that is no address")),
    };
    let wanted = f.function.name(result);
    let wanted = if wanted.is_empty() { "shared" } else { wanted };
    let name = block_variable(f, result, wanted, &format!("[{bytes} x i8]"), align);
    Ok(format!("addrspacecast (ptr addrspace(3) {name} to ptr)"))
}

/// The bytes of a block's memory that the function reserves, as the runtime counts them.
fn reserved(f: &FunctionEmitter) -> u64 {
    let shared = |inst: &&Inst| f.e.module.lane_op(inst).is_some_and(|(op, _)| op == LaneOp::Shared);
    let insts = f.function.blocks.iter().flat_map(|b| &b.insts).filter(shared);
    let bytes = insts.filter_map(|inst| f.function.as_bits(*inst.args.first()?));
    bytes.fold(0, |sum, bytes| sum.saturating_add(bytes.saturating_add(15) & !15))
}

/// A variable in memory of the block, for the operation with this result.
pub(crate) fn block_variable(f: &mut FunctionEmitter, result: Value, wanted: &str, ty: &str, align: u32) -> String {
    let function = f.e.internal_name(f.func);
    let name = quote(&format!("{}.{wanted}.{}", function.trim_matches(['@', '"']), result.idx()));
    let _ = writeln!(f.e.out, "{name} = internal addrspace(3) global {ty} undef, align {align}");
    name
}

/// The place of an operation in the source, with the calls that were unfolded around it.
fn place(f: &FunctionEmitter, result: Value) -> Span {
    let mut insts = f.function.blocks.iter().flat_map(|b| &b.insts);
    let own = insts.find(|inst| inst.result == Some(result)).map(|inst| inst.span);
    own.filter(|span| !span.is_none()).unwrap_or(f.function.span)
}

/// An error for an operation among lanes that the target lacks.
pub(crate) fn unsupported(
    f: &FunctionEmitter,
    (op, scope): (LaneOp, Scope),
    result: Value,
    on: &str,
) -> Box<Diagnostic> {
    let among = if scope == Scope::Block { "the work items of a block" } else { "the lanes of a subgroup" };
    let message = format!("code for {on} cannot have `{}`, an operation among {among}", op.name());
    Box::new(limitation::error(place(f, result), message, "exchange the values through memory of the block"))
}

/// The scope of an atomic operation or a fence, for LLVM; without it the whole system takes part.
pub(crate) fn sync_scope(f: &FunctionEmitter, scope: Option<Value>) -> &'static str {
    match (scope.and_then(|s| f.function.as_bits(s)), is_amd(f)) {
        (Some(1), false) => "syncscope(\"device\") ",
        (Some(1), true) => "syncscope(\"agent\") ",
        (Some(3), true) => "syncscope(\"wavefront\") ",
        (Some(2), true) => "syncscope(\"workgroup\") ",
        // LLVM has no scope for a warp.
        (Some(2 | 3), false) => "syncscope(\"block\") ",
        (Some(4), _) => "syncscope(\"singlethread\") ",
        _ => "",
    }
}

/// Fast exponentials and logarithms are instructions of NVIDIA's GPUs, of powers of two. Those of other functions err without
/// bound: angles of large numbers, powers of negative ones.
fn fast_math(f: &mut FunctionEmitter, op: Op, prim: Prim, values: &[String]) -> Option<String> {
    if !f.is_fast() || prim != Prim::F32 || is_amd(f) {
        return None;
    }
    let (is_exponential, scale) = match op {
        Op::Exp => (true, std::f32::consts::LOG2_E),
        Op::Exp2 => (true, 1.0),
        Op::Log => (false, std::f32::consts::LN_2),
        Op::Log2 => (false, 1.0),
        Op::Log10 => (false, std::f32::consts::LOG10_2),
        _ => return None,
    };
    let scaled = |f: &mut FunctionEmitter, value: String| {
        if scale == 1.0 {
            return value;
        }
        // LLVM writes numbers of single precision as those of double precision with the same value.
        let (product, bits) = (f.temp(), f64::from(scale).to_bits());
        f.line(format_args!("{product} = fmul nnan ninf nsz contract float {value}, 0x{bits:016X}"));
        product
    };
    let ftz = if f.subnormals == nvptx::Subnormals::Zeros { ".ftz.f" } else { ".f" };
    let value = values[0].clone();
    Some(match is_exponential {
        true => {
            let power = scaled(f, value);
            call(f, "float", &format!("llvm.nvvm.ex2.approx{ftz}"), &[format!("float {power}")])
        }
        false => {
            let logarithm = call(f, "float", &format!("llvm.nvvm.lg2.approx{ftz}"), &[format!("float {value}")]);
            scaled(f, logarithm)
        }
    })
}

/// Calls a math function on a number of single or double precision; returns the result.
pub(crate) fn math(f: &mut FunctionEmitter, op: Op, prim: Prim, values: &[String]) -> Result<String> {
    if let Some(result) = fast_math(f, op, prim, values) {
        return Ok(result);
    }
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

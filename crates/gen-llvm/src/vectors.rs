//! Operations of vectorized code as LLVM text: memory by lane, masks as bits, compaction.
//!
//! A mask is a vector of `i1`. Bools in memory are bytes, 0 or 1. No access claims more alignment than that of one lane.

use crate::diagnostics::bug;
use crate::function::FunctionEmitter;
use crate::ops::{number, number_text, suffix};
use crate::tables;
use nyala_base::{Diagnostic, Id};
use nyala_flat::{Inst, Value, VectorOp};
use nyala_ir::{Arch, Prim, Ty, layout};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// A vector of lanes, as it lies in memory.
struct Lanes {
    prim: Prim,
    n: u32,
    /// LLVM's type, and its name in intrinsics.
    text: String,
    suffix: String,
    align: u64,
}

fn lanes(f: &FunctionEmitter, ty: Ty) -> Result<Lanes> {
    let Some((prim, Some(n))) = number(f, ty) else { return Err(bug("an operation on lanes of no vector")) };
    let stored = if prim == Prim::Bool { Prim::U8 } else { prim };
    let (text, suffix) = (number_text(stored, Some(n)), suffix(stored, Some(n)));
    Ok(Lanes { prim, n, text, suffix, align: layout::prim_size(prim) })
}

pub(crate) fn emit_vector_op(f: &mut FunctionEmitter, op: VectorOp, inst: &Inst, result: Option<Value>) -> Result<()> {
    let args = &inst.args;
    let mask = op.mask(args);
    let name = result.map_or(String::new(), |r| f.op(r));
    // The lanes that are read or written, or of which a mask is made.
    let subject = match op {
        VectorOp::MaskBits => args[0],
        _ => {
            op.written().map(|i| args[i]).or(result).ok_or_else(|| bug(format!("`{}` without a result", op.name())))?
        }
    };
    let lanes = lanes(f, f.ty(subject))?;
    let (n, text, align) = (lanes.n, &lanes.text, lanes.align);
    let access = f.access.clone();
    match op {
        VectorOp::Load => {
            let ptr = f.op(args[0]);
            let loaded = narrowed_later(f, &lanes, &name);
            match mask {
                None => f.line(format_args!("{loaded} = load {text}, ptr {ptr}, align {align}{access}")),
                Some(mask) => {
                    let mask = f.typed(mask)?;
                    let symbol = format!("llvm.masked.load.{}.p0", lanes.suffix);
                    f.e.declare(&symbol, || format!("declare {text} @{symbol}(ptr, <{n} x i1>, {text})"));
                    let read = f.temp();
                    f.line(format_args!(
                        "{read} = call {text} @{symbol}(ptr align {align} {ptr}, {mask}, {text} poison){access}"
                    ));
                    // See `crate::masked`.
                    f.line(format_args!("{loaded} = freeze {text} {read}"));
                }
            }
            narrow(f, &lanes, &name, &loaded);
        }
        VectorOp::Store => {
            let (ptr, value) = (f.op(args[0]), f.part_operand(subject)?);
            match mask {
                None => {
                    let past_caches = f.nontemporal();
                    f.line(format_args!("store {value}, ptr {ptr}, align {align}{past_caches}{access}"));
                }
                Some(mask) => {
                    let mut mask = f.typed(mask)?;
                    // See Note [One narrow lane].
                    if align < 4 && n <= 64 && f.e.target().has_avx512() {
                        mask = unknown(f, &mask, n);
                    }
                    let symbol = format!("llvm.masked.store.{}.p0", lanes.suffix);
                    f.e.declare(&symbol, || format!("declare void @{symbol}({text}, ptr, <{n} x i1>)"));
                    f.line(format_args!("call void @{symbol}({value}, ptr align {align} {ptr}, {mask}){access}"));
                }
            }
        }
        VectorOp::Gather => {
            let loaded = narrowed_later(f, &lanes, &name);
            if tables::look_up(f, args, mask, n, text, &loaded)? {
                narrow(f, &lanes, &name, &loaded);
                return Ok(());
            }
            let (addresses, mask) = (addresses(f, args, n)?, mask_or_all(f, mask, n)?);
            // For a lane that reads several elements, the alignment of an element.
            let types = &f.e.module.types;
            let element = types.pointee(f.ty(args[0])).and_then(|t| layout::size_align(types, t));
            let align = align.min(element.map_or(1, |(_, align)| align));
            let symbol = format!("llvm.masked.gather.{}.v{n}p0", lanes.suffix);
            f.e.declare(&symbol, || format!("declare {text} @{symbol}(<{n} x ptr>, <{n} x i1>, {text})"));
            f.line(format_args!(
                "{loaded} = call {text} @{symbol}(<{n} x ptr> align {align} {addresses}, {mask}, {text} poison){access}"
            ));
            narrow(f, &lanes, &name, &loaded);
        }
        VectorOp::Scatter => {
            let (addresses, mask) = (addresses(f, args, n)?, mask_or_all(f, mask, n)?);
            let value = f.part_operand(subject)?;
            let symbol = format!("llvm.masked.scatter.{}.v{n}p0", lanes.suffix);
            f.e.declare(&symbol, || format!("declare void @{symbol}({text}, <{n} x ptr>, <{n} x i1>)"));
            f.line(format_args!("call void @{symbol}({value}, <{n} x ptr> align {align} {addresses}, {mask}){access}"));
        }
        VectorOp::MaskBits if let Some(step) = bits_of_register(f, n) => {
            let mask = f.typed(subject)?;
            let parts = register_parts(f, &mask, n, step);
            let mut all = String::new();
            for (i, part) in parts.iter().enumerate() {
                let bits = part_bits(f, part, step);
                let [wide, placed, joined] = [(); 3].map(|()| f.temp());
                f.line(format_args!("{wide} = zext i32 {bits} to i64"));
                f.line(format_args!("{placed} = shl i64 {wide}, {}", i as u32 * step));
                all = match i {
                    0 => placed,
                    _ => {
                        f.line(format_args!("{joined} = or i64 {all}, {placed}"));
                        joined
                    }
                };
            }
            resize(f, &name, "zext", 64, 64, &all);
            f.wide.parts.extend(result.map(|r| (r, (step, parts))));
        }
        VectorOp::MaskBits => {
            let mask = f.typed(subject)?;
            let bits = f.temp();
            f.line(format_args!("{bits} = bitcast {mask} to i{n}"));
            resize(f, &name, "zext", n, 64, &bits);
        }
        VectorOp::ExpandBits => {
            let (bits, narrow) = (f.op(args[0]), f.temp());
            resize(f, &narrow, "trunc", 64, n, &bits);
            f.line(format_args!("{name} = bitcast i{n} {narrow} to <{n} x i1>"));
        }
        // LLVM cannot compress a single lane, and it is not necessary.
        VectorOp::Compress if n == 1 => {
            if let Some(result) = result {
                f.operands[result.idx()] = f.op(args[0]);
            }
        }
        VectorOp::Compress => {
            let (value, mask) = (f.part_operand(args[0])?, f.typed(args[1])?);
            let packed = narrowed_later(f, &lanes, &name);
            compress(f, &lanes, f.ty(subject), &packed, value, mask)?;
            narrow(f, &lanes, &name, &packed);
        }
    }
    Ok(())
}

/// The name to load into: bools are bytes until they are narrowed to `name`.
fn narrowed_later(f: &mut FunctionEmitter, lanes: &Lanes, name: &str) -> String {
    if lanes.prim == Prim::Bool { f.temp() } else { name.to_string() }
}

fn narrow(f: &mut FunctionEmitter, lanes: &Lanes, name: &str, read: &str) {
    if lanes.prim == Prim::Bool {
        f.line(format_args!("{name} = trunc {} {read} to <{} x i1>", lanes.text, lanes.n));
    }
}

/// The bytes of a register whose signs one instruction makes bits of, if a mask needs several of them. LLVM 22 takes such masks apart lane
/// by lane where bits are made in another block than the comparison.
fn bits_of_register(f: &FunctionEmitter, n: u32) -> Option<u32> {
    let target = f.e.target();
    let step = if target.vector_bits == 256 { 32 } else { 16 };
    (target.arch == Arch::X86_64 && !target.has_avx512() && n > step && n.is_multiple_of(step)).then_some(step)
}

/// A mask as registers of bytes.
fn register_parts(f: &mut FunctionEmitter, mask: &str, n: u32, step: u32) -> Vec<String> {
    let bytes = f.temp();
    f.line(format_args!("{bytes} = sext {mask} to <{n} x i8>"));
    // Otherwise LLVM sees that these are `bool`s, and makes bits of them in its own way.
    let (floats, symbol) = (format!("<{} x float>", step / 4), format!("llvm.arithmetic.fence.v{}f32", step / 4));
    f.e.declare(&symbol, || format!("declare {floats} @{symbol}({floats})"));
    let part = |from: u32| {
        let lanes: Vec<String> = (from..from + step).map(|k| format!("i32 {k}")).collect();
        let (lanes, [part, open, hidden, own]) = (lanes.join(", "), [(); 4].map(|()| f.temp()));
        f.line(format_args!("{part} = shufflevector <{n} x i8> {bytes}, <{n} x i8> poison, <{step} x i32> <{lanes}>"));
        f.line(format_args!("{open} = bitcast <{step} x i8> {part} to {floats}"));
        f.line(format_args!("{hidden} = call {floats} @{symbol}({floats} {open})"));
        f.line(format_args!("{own} = bitcast {floats} {hidden} to <{step} x i8>"));
        own
    };
    (0..n).step_by(step as usize).map(part).collect()
}

/// The signs of the bytes of a register.
fn part_bits(f: &mut FunctionEmitter, part: &str, step: u32) -> String {
    let symbol = if step == 32 { "llvm.x86.avx2.pmovmskb" } else { "llvm.x86.sse2.pmovmskb.128" };
    f.e.declare(symbol, || format!("declare i32 @{symbol}(<{step} x i8>)"));
    let bits = f.temp();
    f.line(format_args!("{bits} = call i32 @{symbol}(<{step} x i8> {part})"));
    bits
}

/// Whether a bit is set among those of registers: `eq` or `ne` to zero.
pub(crate) fn any_of_parts(f: &mut FunctionEmitter, how: &str, name: &str, step: u32, parts: &[String]) {
    let mut all = parts[0].clone();
    for part in &parts[1..] {
        let joined = f.temp();
        f.line(format_args!("{joined} = or <{step} x i8> {all}, {part}"));
        all = joined;
    }
    let bits = part_bits(f, &all, step);
    f.line(format_args!("{name} = icmp {how} i32 {bits}, 0"));
}

/// Resizes an integer, if the number of bits differs.
pub(crate) fn resize(f: &mut FunctionEmitter, name: &str, how: &str, from: u32, to: u32, value: &str) {
    if from == to {
        f.line(format_args!("{name} = or i{from} {value}, 0"));
    } else {
        f.line(format_args!("{name} = {how} i{from} {value} to i{to}"));
    }
}

/// Makes a mask opaque to LLVM. It stays in a mask register: where LLVM 22 converts a shuffled mask to bits, it may
/// emit `vmovmskps` with a vector register that this instruction cannot encode.
fn unknown(f: &mut FunctionEmitter, mask: &str, n: u32) -> String {
    let wide = n.next_power_of_two().max(8);
    let [widened, opaque, mask_again] = [(); 3].map(|()| f.temp());
    let lanes = |n: u32, all: u32| {
        let lanes: Vec<String> = (0..n).map(|k| format!("i32 {}", k.min(all))).collect();
        format!("<{n} x i32> <{}>", lanes.join(", "))
    };
    f.line(format_args!("{widened} = shufflevector {mask}, <{n} x i1> zeroinitializer, {}", lanes(wide, n)));
    f.line(format_args!("{opaque} = call <{wide} x i1> asm \"\", \"=k,0\"(<{wide} x i1> {widened})"));
    let narrow = lanes(n, n);
    f.line(format_args!("{mask_again} = shufflevector <{wide} x i1> {opaque}, <{wide} x i1> poison, {narrow}"));
    format!("<{n} x i1> {mask_again}")
}

// Note [One narrow lane]
//
// For AVX-512, LLVM 22 turns a masked store of bytes or 16-bit numbers into a store of one element, if it knows that
// the mask has only this lane. But if the values are truncated from larger numbers, it stores the element without
// truncation, and overwrites the following bytes.

fn mask_or_all(f: &mut FunctionEmitter, mask: Option<Value>, n: u32) -> Result<String> {
    match mask {
        Some(mask) => f.typed(mask),
        None => Ok(format!("<{n} x i1> splat (i1 true)")),
    }
}

/// The address of each lane; base, index and scale are the first operands.
///
/// LLVM recognizes base and index of an access only in a `getelementptr`; it extends a 32-bit index itself, and then
/// knows that the machine's instruction may do so.
fn addresses(f: &mut FunctionEmitter, args: &[Value], n: u32) -> Result<String> {
    let (base, index) = (f.op(args[0]), f.typed(args[1])?);
    let scale = f.function.as_bits(args[2]).ok_or_else(|| bug("a scale that is not known"))?;
    let element = match scale {
        1 | 2 | 4 | 8 => format!("i{}", 8 * scale),
        _ => format!("[{scale} x i8]"),
    };
    let addresses = f.temp();
    let Some(literal) = f.function.as_bits(args[0]) else {
        f.line(format_args!("{addresses} = getelementptr {element}, ptr {base}, {index}"));
        return Ok(addresses);
    };
    // Offsets from null would be out of bounds for LLVM, so the lanes' addresses are computed as integers.
    let is_narrow = number(f, f.ty(args[1])).is_some_and(|(p, _)| p.bits() < 64);
    let [wide, scaled, sum] = [(); 3].map(|()| f.temp());
    let ty = format!("<{n} x i64>");
    let wide = if is_narrow {
        f.line(format_args!("{wide} = sext {index} to {ty}"));
        wide
    } else {
        f.op(args[1])
    };
    f.line(format_args!("{scaled} = mul {ty} {wide}, splat (i64 {scale})"));
    f.line(format_args!("{sum} = add {ty} {scaled}, splat (i64 {literal})"));
    f.line(format_args!("{addresses} = inttoptr {ty} {sum} to <{n} x ptr>"));
    Ok(addresses)
}

/// Bits that one instruction of AVX-512 compresses.
const COMPRESSED_BITS: u32 = 512;

/// Compresses a value of type `ty`, as it lies in memory, into `name`.
///
/// LLVM 22 fails on vectors that are larger than an AVX-512 register and on some that are smaller than an SSE register:
/// the former are stored in pieces, each after the active lanes of the one before; the latter are padded with lanes.
fn compress(f: &mut FunctionEmitter, lanes: &Lanes, ty: Ty, name: &str, value: String, mask: String) -> Result<()> {
    let stored = if lanes.prim == Prim::Bool { Prim::U8 } else { lanes.prim };
    let (n, text) = (lanes.n, &lanes.text);
    let padded = n.next_power_of_two().max(128 / stored.bits());
    let (value, mask) = if padded == n {
        (value, mask)
    } else {
        let order: Vec<String> = (0..padded).map(|i| format!("i32 {}", i.min(n))).collect();
        let order = format!("<{padded} x i32> <{}>", order.join(", "));
        let [more, active] = [(); 2].map(|()| f.temp());
        f.line(format_args!("{more} = shufflevector {value}, {text} poison, {order}"));
        f.line(format_args!("{active} = shufflevector {mask}, <{n} x i1> zeroinitializer, {order}"));
        (format!("{} {more}", number_text(stored, Some(padded))), format!("<{padded} x i1> {active}"))
    };
    let part = padded.min(COMPRESSED_BITS / stored.bits());
    let part_text = number_text(stored, Some(part));
    let symbol = format!("llvm.experimental.vector.compress.{}", suffix(stored, Some(part)));
    f.e.declare(&symbol, || format!("declare {part_text} @{symbol}({part_text}, <{part} x i1>, {part_text})"));
    let numbers = |of: std::ops::Range<u32>| of.map(|i| format!("i32 {i}")).collect::<Vec<_>>().join(", ");
    if part == padded {
        let packed = if padded == n { name.to_string() } else { f.temp() };
        f.line(format_args!("{packed} = call {part_text} @{symbol}({value}, {mask}, {part_text} poison)"));
        if padded != n {
            let order = numbers(0..n);
            f.line(format_args!(
                "{name} = shufflevector {part_text} {packed}, {part_text} poison, <{n} x i32> <{order}>"
            ));
        }
        return Ok(());
    }
    let (memory, align) = (f.temp(), lanes.align);
    f.alloca(&memory, ty)?;
    let count = format!("llvm.ctpop.i{part}");
    f.e.declare(&count, || format!("declare i{part} @{count}(i{part})"));
    let (lane, padding) = (number_text(stored, None), format!("{} poison", number_text(stored, Some(padded))));
    let mut offset = "0".to_string();
    for start in (0..padded).step_by(part as usize) {
        let order = format!("<{part} x i32> <{}>", numbers(start..start + part));
        let [own, active, packed, at, bits, few, wide, next] = [(); 8].map(|()| f.temp());
        f.line(format_args!("{own} = shufflevector {value}, {padding}, {order}"));
        f.line(format_args!("{active} = shufflevector {mask}, <{padded} x i1> poison, {order}"));
        f.line(format_args!(
            "{packed} = call {part_text} @{symbol}({part_text} {own}, <{part} x i1> {active}, {part_text} poison)"
        ));
        f.line(format_args!("{at} = getelementptr inbounds {lane}, ptr {memory}, i64 {offset}"));
        f.line(format_args!("store {part_text} {packed}, ptr {at}, align {align}"));
        f.line(format_args!("{bits} = bitcast <{part} x i1> {active} to i{part}"));
        f.line(format_args!("{few} = call i{part} @{count}(i{part} {bits})"));
        f.line(format_args!("{wide} = zext i{part} {few} to i64"));
        f.line(format_args!("{next} = add i64 {offset}, {wide}"));
        offset = next;
    }
    f.line(format_args!("{name} = load {text}, ptr {memory}, align {align}"));
    Ok(())
}

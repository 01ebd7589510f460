//! Gathers from small arrays. The array is loaded as a whole, which LLVM moves out of loops, and the lanes take its
//! elements by permutations of that register:
//!
//! ```text
//! p = lea(table, 0)                      table: &[i8 * 32]
//! x = gather(p, index, 1)                x = permute(load(table), index)
//! ```
//!
//! x86-64 has permutations of 8 elements of 32 bits (AVX2) or 16 (AVX-512), and of 64 bytes (AVX-512 VBMI), else of 16:
//! for 32 bytes, two and a selection. A gather of bytes would be a load and an insertion for each lane. No index is
//! outside the array, since that is undefined: where lanes have arrays of their own, `vectorize` makes the address by a
//! bitcast instead of `lea`. If the lanes have a mask, the array is loaded if one of them is active.

use crate::function::FunctionEmitter;
use nyala_base::Diagnostic;
use nyala_flat::Value;
use nyala_ir::{Arch, TyKind, layout};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// A permutation of a register: the lanes of its result, the greatest number of elements, and LLVM's name.
struct Permutation {
    lanes: u32,
    most: u64,
    symbol: &'static str,
}

const fn row(lanes: u32, most: u64, symbol: &'static str) -> Permutation {
    Permutation { lanes, most, symbol }
}

const BYTES_VBMI: &[Permutation] = &[
    row(16, 16, "llvm.x86.avx512.permvar.qi.128"),
    row(32, 32, "llvm.x86.avx512.permvar.qi.256"),
    row(64, 64, "llvm.x86.avx512.permvar.qi.512"),
];
/// For each half of 16 bytes.
const BYTES: &[Permutation] = &[row(32, 32, "llvm.x86.avx2.pshuf.b")];
const WORDS: &[Permutation] = &[row(8, 8, "llvm.x86.avx2.permd")];
const WORDS_512: &[Permutation] = &[row(8, 8, "llvm.x86.avx2.permd"), row(16, 16, "llvm.x86.avx512.permvar.si.512")];

/// Notes that `address` is that of the first element of an array, if it is a small one.
pub(crate) fn note_start(f: &mut FunctionEmitter, address: Value, args: &[Value]) {
    let types = &f.e.module.types;
    let Some(TyKind::Array(elem, n)) = types.pointee(f.ty(args[0])).map(|ty| types.kind(ty)) else { return };
    let Some(prim) = types.as_prim(*elem) else { return };
    let bytes = layout::prim_size(prim);
    if f.function.as_bits(args[1]) == Some(0) && *n >= 2 && n.saturating_mul(bytes) <= 64 {
        f.tables.insert(address, (*n, bytes));
    }
}

/// Emits a gather as a permutation into `name`, of `n` lanes of type `text`, if the CPU has one for this array.
pub(crate) fn look_up(
    f: &mut FunctionEmitter,
    args: &[Value],
    mask: Option<Value>,
    n: u32,
    text: &str,
    name: &str,
) -> Result<bool> {
    let target = f.e.target();
    let Some(&(size, bytes)) = f.tables.get(&args[0]) else { return Ok(false) };
    if target.arch != Arch::X86_64 || target.vector_bits < 256 || f.function.as_bits(args[2]) != Some(bytes) {
        return Ok(false);
    }
    let permutations = match bytes {
        1 if target.vbmi => BYTES_VBMI,
        1 => BYTES,
        4 if target.vector_bits == 512 => WORDS_512,
        4 => WORDS,
        _ => return Ok(false),
    };
    let fits = || permutations.iter().filter(|p| size <= p.most);
    let Some(permutation) = fits().find(|p| p.lanes >= n).or(fits().next_back()) else { return Ok(false) };
    let (lanes, elem) = (permutation.lanes, format!("i{}", bytes * 8));
    let table = load(f, args[0], size, &elem, mask, n)?;
    let index = index(f, args[1], n, &elem)?;
    let mut all = String::from("poison");
    for start in (0..n).step_by(lanes as usize) {
        let index = shuffle(f, &elem, n, &index, lanes, |k| (start + k < n).then_some(start + k));
        let part = match permutation.symbol {
            "llvm.x86.avx2.pshuf.b" => {
                let half = |f: &mut FunctionEmitter, from: u64| {
                    let half = shuffle(f, &elem, size as u32, &table, lanes, |k| {
                        let at = from + u64::from(k % 16);
                        (at < size).then_some(at as u32)
                    });
                    permute(f, permutation, &elem, &half, &index)
                };
                let low = half(f, 0);
                if size > 16 {
                    let (high, is_high, chosen) = (half(f, 16), f.temp(), f.temp());
                    f.line(format_args!("{is_high} = icmp ugt <{lanes} x i8> {index}, splat (i8 15)"));
                    f.line(format_args!(
                        "{chosen} = select <{lanes} x i1> {is_high}, <{lanes} x i8> {high}, <{lanes} x i8> {low}"
                    ));
                    chosen
                } else {
                    low
                }
            }
            _ => {
                let table = shuffle(f, &elem, size as u32, &table, lanes, |k| (u64::from(k) < size).then_some(k));
                permute(f, permutation, &elem, &table, &index)
            }
        };
        let part = shuffle(f, &elem, lanes, &part, n, |k| (start..start + lanes).contains(&k).then(|| k - start));
        all = match start {
            0 => part,
            _ => {
                let (both, k) = (f.temp(), (0..n).map(|k| format!("i32 {}", if k < start { k } else { n + k })));
                let k: Vec<String> = k.collect();
                f.line(format_args!(
                    "{both} = shufflevector <{n} x {elem}> {all}, <{n} x {elem}> {part}, <{n} x i32> <{}>",
                    k.join(", ")
                ));
                both
            }
        };
    }
    f.line(format_args!("{name} = bitcast <{n} x {elem}> {all} to {text}"));
    Ok(true)
}

/// Loads `size` elements of an array.
fn load(f: &mut FunctionEmitter, at: Value, size: u64, elem: &str, mask: Option<Value>, n: u32) -> Result<String> {
    let (at, table, access) = (f.op(at), f.temp(), f.access.clone());
    let (ty, align) = (format!("<{size} x {elem}>"), if elem == "i8" { 1 } else { 4 });
    let Some(mask) = mask else {
        f.line(format_args!("{table} = load {ty}, ptr {at}, align {align}{access}"));
        return Ok(table);
    };
    let mask = f.typed(mask)?;
    let [bits, any, one, all, read] = [(); 5].map(|()| f.temp());
    f.line(format_args!("{bits} = bitcast {mask} to i{n}"));
    f.line(format_args!("{any} = icmp ne i{n} {bits}, 0"));
    f.line(format_args!("{one} = insertelement <{size} x i1> poison, i1 {any}, i64 0"));
    f.line(format_args!(
        "{all} = shufflevector <{size} x i1> {one}, <{size} x i1> poison, <{size} x i32> zeroinitializer"
    ));
    let symbol = format!("llvm.masked.load.v{size}{elem}.p0");
    f.e.declare(&symbol, || format!("declare {ty} @{symbol}(ptr, <{size} x i1>, {ty})"));
    f.line(format_args!(
        "{read} = call {ty} @{symbol}(ptr align {align} {at}, <{size} x i1> {all}, {ty} poison){access}"
    ));
    // See `crate::masked`.
    f.line(format_args!("{table} = freeze {ty} {read}"));
    Ok(table)
}

/// The index as lanes of the elements' size.
fn index(f: &mut FunctionEmitter, index: Value, n: u32, elem: &str) -> Result<String> {
    let typed = f.typed(index)?;
    if typed.starts_with(&format!("<{n} x {elem}> ")) {
        return Ok(f.op(index));
    }
    let narrow = f.temp();
    f.line(format_args!("{narrow} = trunc {typed} to <{n} x {elem}>"));
    Ok(narrow)
}

fn permute(f: &mut FunctionEmitter, p: &Permutation, elem: &str, table: &str, index: &str) -> String {
    let (name, ty) = (f.temp(), format!("<{} x {elem}>", p.lanes));
    f.e.declare(p.symbol, || format!("declare {ty} @{}({ty}, {ty})", p.symbol));
    f.line(format_args!("{name} = call {ty} @{}({ty} {table}, {ty} {index})", p.symbol));
    name
}

/// The lanes that `of` tells, of a vector of `n`; `None` for undefined lanes.
fn shuffle(
    f: &mut FunctionEmitter,
    elem: &str,
    n: u32,
    value: &str,
    lanes: u32,
    of: impl Fn(u32) -> Option<u32>,
) -> String {
    let order: Vec<String> = (0..lanes).map(|k| of(k).map_or("i32 poison".into(), |k| format!("i32 {k}"))).collect();
    let (name, ty) = (f.temp(), format!("<{n} x {elem}>"));
    f.line(format_args!("{name} = shufflevector {ty} {value}, {ty} poison, <{lanes} x i32> <{}>", order.join(", ")));
    name
}

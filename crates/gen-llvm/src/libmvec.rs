//! Math functions on vectors through glibc's libmvec, whose results are within 4 ULP.
//!
//! Its functions take exactly as many lanes as fill a register, by C's convention: a vector is cut into registers, and
//! the last one filled up. Whether the library is there is a fact of the machine. Linkers find it through libm.

use crate::emit::Emitter;
use crate::function::FunctionEmitter;
use crate::module::{LlvmModule, Options};
use crate::ops::{call_math, number_text};
use crate::targets::{default_triple, is_native};
use nyala_ir::{Op, Prim};
use std::ffi::CStr;
use std::sync::OnceLock;

/// Bits of a register, and the letter by which the vector ABI of x86-64 calls functions that use it: SSE, AVX2, AVX-512.
type Register = (u32, char);
const REGISTERS: [Register; 3] = [(128, 'b'), (256, 'd'), (512, 'e')];

/// Whether this machine's C library has the functions: since glibc 2.35, on x86-64.
fn is_here() -> bool {
    static HERE: OnceLock<bool> = OnceLock::new();
    // One of those that came last.
    const LAST: &CStr = c"_ZGVeN8vv_atan2";
    *HERE.get_or_init(|| {
        // SAFETY: both take C strings. The library stays, so that the JIT finds its symbols among the process's.
        cfg!(target_env = "gnu")
            && unsafe {
                llvm_sys::support::LLVMLoadLibraryPermanently(c"libmvec.so.1".as_ptr()) == 0
                    && !llvm_sys::support::LLVMSearchForAddressOfSymbol(LAST.as_ptr()).is_null()
            }
    })
}

/// The registers of the target for which there are functions, the narrowest first.
fn registers(options: &Options) -> &'static [Register] {
    let triple = options.target.clone().unwrap_or_else(default_triple);
    let has_it = triple.starts_with("x86_64") && triple.ends_with("linux-gnu") && is_native(&triple);
    if !has_it || !is_here() {
        return &[];
    }
    // LLVM knows what each CPU has, but shows it only in what it makes of integers: for these AVX does not suffice.
    let probe =
        "define <16 x i32> @f(<16 x i32> %a, <16 x i32> %b) {\n  %c = add <16 x i32> %a, %b\n  ret <16 x i32> %c\n}\n";
    let made = LlvmModule::new(probe, options, 0, &[]).and_then(|module| module.asm_text());
    let asm = made.unwrap_or_default();
    let adds_in = |register: &str| asm.lines().any(|line| line.contains("padd") && line.contains(register));
    match (adds_in("%zmm"), adds_in("%ymm")) {
        (true, _) => &REGISTERS,
        (false, true) => &REGISTERS[..2],
        (false, false) => &REGISTERS[..1],
    }
}

impl Emitter<'_> {
    fn math_registers(&mut self) -> &'static [Register] {
        let options = self.options;
        self.math_registers.get_or_insert_with(|| registers(options))
    }
}

/// The result of a math function of `n` lanes; none where it must be called for each.
pub(crate) fn call(f: &mut FunctionEmitter, op: Op, prim: Prim, n: u32, values: &[String]) -> Option<String> {
    let registers = f.e.math_registers();
    let widest = *registers.last().filter(|_| n > 1)?;
    let suffix = if prim == Prim::F32 { "f" } else { "" };
    // All functions are quick at 1.
    let ones = format!("splat ({} 1.0)", number_text(prim, None));
    let mut result: Option<String> = None;
    let mut start = 0;
    while start < n {
        let fits = |r: &&Register| r.0 / prim.bits() >= n - start;
        let (bits, letter) = *registers.iter().find(fits).unwrap_or(&widest);
        let lanes = bits / prim.bits();
        let taken = lanes.min(n - start);
        let symbol = format!("_ZGV{letter}N{lanes}{}_{}{suffix}", "v".repeat(values.len()), op.name());
        let whole = n == lanes;
        let cut = |i| if i < taken { start + i } else { n };
        let own: Vec<String> = match whole {
            true => values.to_vec(),
            false => values.iter().map(|v| shuffle(f, prim, n, [v, &ones], (0..lanes).map(cut))).collect(),
        };
        let new = call_math(f, &symbol, prim, Some(lanes), &own, " #2");
        if whole {
            return Some(new);
        }
        let spread = shuffle(f, prim, lanes, [&new, "poison"], (0..n).map(|i| i.saturating_sub(start).min(taken - 1)));
        result = Some(match result {
            None => spread,
            Some(before) => {
                let put = |i| if i < start { i } else { n + i };
                shuffle(f, prim, n, [&before, &spread], (0..n).map(put))
            }
        });
        start += taken;
    }
    result
}

/// Some lanes of two vectors of `n` lanes, as `order` counts them.
fn shuffle(f: &mut FunctionEmitter, prim: Prim, n: u32, of: [&str; 2], order: impl Iterator<Item = u32>) -> String {
    let (ty, [a, b]) = (number_text(prim, Some(n)), of);
    let order: Vec<String> = order.map(|i| format!("i32 {i}")).collect();
    let result = f.temp();
    f.line(format_args!("{result} = shufflevector {ty} {a}, {ty} {b}, <{} x i32> <{}>", order.len(), order.join(", ")));
    result
}

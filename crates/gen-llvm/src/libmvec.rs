//! Math functions on vectors through glibc's libmvec, whose results are within 4 ULP.
//!
//! Its functions take exactly as many lanes as fill a register, with C's convention: a vector is split into registers,
//! and the last one is filled up. Whether the library exists depends on the machine. Linkers find it through libm.

use crate::function::FunctionEmitter;
use crate::ops::{call_math, number_text};
use nyala_ir::target::{Target, VectorMath};
use nyala_ir::{Op, Prim};
use std::ffi::CStr;
use std::sync::OnceLock;

/// Width of a register in bits, and its letter in the vector ABI of x86-64: SSE, AVX2, AVX-512.
type Register = (u32, char);
const REGISTERS: [Register; 3] = [(128, 'b'), (256, 'd'), (512, 'e')];

/// Whether this machine's C library has the functions: since glibc 2.35, on x86-64.
fn is_here() -> bool {
    static HERE: OnceLock<bool> = OnceLock::new();
    // One of the functions added last.
    const LAST: &CStr = c"_ZGVeN8vv_atan2";
    *HERE.get_or_init(|| {
        // SAFETY: both take C strings. The library stays, so that the JIT finds its symbols among the process's.
        cfg!(target_env = "gnu")
            && unsafe {
                let library = libc::dlopen(c"libmvec.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL);
                !library.is_null() && !libc::dlsym(library, LAST.as_ptr()).is_null()
            }
    })
}

/// Whether the target is known to have the functions.
fn is_there(target: &Target) -> bool {
    target.vector_math == VectorMath::Libmvec && target.is_native && is_here()
}

/// Calls a math function on `n` lanes; returns the result. `None` if it must be called for each lane.
pub(crate) fn call(f: &mut FunctionEmitter, op: Op, prim: Prim, n: u32, values: &[String]) -> Option<String> {
    if n == 1 || !is_there(f.e.target()) {
        return None;
    }
    let most = f.e.target().vector_bits;
    let registers = REGISTERS.iter().filter(|r| r.0 <= most);
    let widest = *registers.clone().next_back()?;
    let suffix = if prim == Prim::F32 { "f" } else { "" };
    // Fills up with 1, where all functions are fast.
    let ones = format!("splat ({} 1.0)", number_text(prim, None));
    let mut result: Option<String> = None;
    let mut start = 0;
    while start < n {
        let fits = |r: &&Register| r.0 / prim.bits() >= n - start;
        let (bits, letter) = *registers.clone().find(fits).unwrap_or(&widest);
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

/// A shuffle of two vectors of `n` lanes by the lane numbers in `order`.
fn shuffle(f: &mut FunctionEmitter, prim: Prim, n: u32, of: [&str; 2], order: impl Iterator<Item = u32>) -> String {
    let (ty, [a, b]) = (number_text(prim, Some(n)), of);
    let order: Vec<String> = order.map(|i| format!("i32 {i}")).collect();
    let result = f.temp();
    f.line(format_args!("{result} = shufflevector {ty} {a}, {ty} {b}, <{} x i32> <{}>", order.len(), order.join(", ")));
    result
}

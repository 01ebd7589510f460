// Peer of black_scholes.impala in Rust: L options at a time, called by black_scholes.cpp.
#![crate_type = "lib"]
#![feature(portable_simd)]
mod options;
use core::simd::prelude::*;
use options::{F, all, exp, load, log};
use std::simd::StdFloat;
const L: usize = 32;

#[inline(always)]
fn normal(x: F) -> F {
    let l = x.abs();
    let k = all(1.0) / l.mul_add(all(0.2316419), all(1.0));
    let mut p = all(1.330274429);
    for c in [-1.821255978, 1.781477937, -0.356563782, 0.31938153] {
        p = p.mul_add(k, all(c));
    }
    let w = p * k * all(0.39894228040) * exp(l * l * all(-0.5));
    x.simd_gt(all(0.0)).select(all(1.0) - w, w)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn kernel(
    s: *const f32,
    x: *const f32,
    t: *const f32,
    r: *const f32,
    v: *const f32,
    out: *mut f32,
    lo: i32,
    hi: i32,
) {
    for i in (lo as usize..hi as usize).step_by(L) {
        unsafe {
            let (s, x, t, r, v) = (load(s, i), load(x, i), load(t, i), load(r, i), load(v, i));
            let q = v * t.sqrt();
            let d1 = (v * v).mul_add(all(0.5), r).mul_add(t, log(s / x)) / q;
            let d2 = d1 - q;
            let price = s * normal(d1) - x * exp(-r * t) * normal(d2);
            out.add(i).cast::<F>().write_unaligned(price);
        }
    }
}

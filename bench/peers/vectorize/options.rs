// Code that black_scholes.rs and binomial.rs share: exponential and logarithm of vectors, as in options.h.
use core::simd::prelude::*;
use std::simd::StdFloat;
pub type F = Simd<f32, L>;
type I = Simd<i32, L>;
use super::L;

#[inline(always)]
pub fn all(x: f32) -> F {
    F::splat(x)
}
/// # Safety
/// `p` points to at least `i + L` numbers.
#[inline(always)]
pub unsafe fn load(p: *const f32, i: usize) -> F {
    unsafe { p.add(i).cast::<F>().read_unaligned() }
}
#[inline(always)]
pub fn exp(x: F) -> F {
    let n = x.mul_add(all(1.44269504), all(0.5)).floor();
    let f = (-n).mul_add(all(0.693145752), x);
    let f = (-n).mul_add(all(1.42860677e-6), f);
    let mut p = all(1.9875691500e-4);
    for c in [1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0] {
        p = p.mul_add(f, all(c));
    }
    let n = n.simd_min(all(127.0)).simd_max(all(-126.0));
    // In range, by the line above.
    let n: I = unsafe { n.to_int_unchecked() };
    p * F::from_bits(((n + I::splat(127)) << I::splat(23)).cast())
}
/// The logarithm of positive numbers that are not denormal.
#[inline(always)]
pub fn log(x: F) -> F {
    let bits: I = x.to_bits().cast();
    // The mantissa from 0.75 to 1.5.
    let e = (bits - I::splat(0x3f400000)) >> I::splat(23);
    let m = F::from_bits((bits - (e << I::splat(23))).cast());
    let f = m - all(1.0);
    let mut p = all(7.0376836292e-2);
    for c in [
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    ] {
        p = p.mul_add(f, all(c));
    }
    let f2 = f * f;
    let p = (f2 * f).mul_add(p, (-f2).mul_add(all(0.5), f));
    e.cast::<f32>().mul_add(all(0.69314718056), p)
}

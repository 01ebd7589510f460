// Peer of binomial.impala in Rust: L options at a time, TS time steps in one sweep over the tree, called by binomial.cpp.
#![crate_type = "lib"]
#![feature(portable_simd)]
mod options;
use core::simd::prelude::*;
use options::{F, all, exp, load};
use std::simd::StdFloat;
const L: usize = 16;
const STEPS: usize = 64;
const TS: usize = 8;

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
        let (s, x, t, r, v) = unsafe { (load(s, i), load(x, i), load(t, i), load(r, i), load(v, i)) };
        let dt = t * all(1.0 / STEPS as f32);
        let lu = v * dt.sqrt();
        let u = exp(lu);
        let d = all(1.0) / u;
        let discount = exp(r * dt);
        let p = (discount - d) / (u - d);
        let rd = all(1.0) / discount;
        let (a, b) = ((all(1.0) - p) * rd, p * rd);
        let mut values = [all(0.0); STEPS + TS];
        for (j, value) in values[..STEPS].iter_mut().enumerate() {
            let power = exp(lu * all((2 * j as i32 - STEPS as i32) as f32));
            *value = (-s).mul_add(power, x).simd_max(all(0.0));
        }
        let mut j = STEPS - 1;
        while j >= TS {
            // The previous value of each of the levels in flight.
            let mut c = [all(0.0); TS];
            let mut q = [all(0.0); TS];
            q.copy_from_slice(&values[..TS]);
            for level in 0..TS {
                c[level] = q[TS - 1 - level];
                for t in 0..TS - 1 {
                    if t + level < TS - 1 {
                        q[t] = a.mul_add(q[t], b * q[t + 1]);
                    }
                }
            }
            for k in TS..=j {
                // Below STEPS: j starts there.
                let mut x = unsafe { *values.get_unchecked(k) };
                for c in &mut c {
                    let y = b.mul_add(x, a * *c);
                    *c = x;
                    x = y;
                }
                unsafe { *values.get_unchecked_mut(k - TS) = x };
            }
            j -= TS;
        }
        for j in (1..(STEPS - 1) % TS + 1).rev() {
            for k in 0..j {
                values[k] = a.mul_add(values[k], b * values[k + 1]);
            }
        }
        unsafe { out.add(i).cast::<F>().write_unaligned(values[0]) };
    }
}

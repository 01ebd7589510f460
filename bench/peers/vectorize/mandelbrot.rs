// Peer of mandelbrot.impala in Rust: L lanes at a time, called by mandelbrot.cpp.
#![crate_type = "lib"]
#![no_std]
#![feature(portable_simd)]
use core::simd::prelude::*;
const W: usize = 1536;
const L: usize = 32;
type F = Simd<f32, L>;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn kernel(x0: f32, y0: f32, dx: f32, dy: f32, most: i32, out: *mut i32, lo: i32, hi: i32) {
    let mut lanes = [0f32; L];
    for l in 0..L {
        lanes[l] = l as f32;
    }
    let lanes = F::from_array(lanes);
    for y in lo..hi {
        let ci = F::splat(y0 + y as f32 * dy);
        for x in (0..W).step_by(L) {
            let cr = F::splat(x0) + (lanes + F::splat(x as f32)) * F::splat(dx);
            let (mut zr, mut zi, mut count) = (cr, ci, Simd::<i32, L>::splat(0));
            for _ in 0..most {
                let (r2, m2) = (zr * zr, zi * zi);
                let active = (r2 + m2).simd_le(F::splat(4.0));
                if !active.any() {
                    break;
                }
                // A lane of a mask is minus one if true.
                count -= active.to_simd();
                zi = (zr + zr) * zi + ci;
                zr = cr + r2 - m2;
            }
            unsafe { out.add(y as usize * W + x).cast::<Simd<i32, L>>().write_unaligned(count) };
        }
    }
}

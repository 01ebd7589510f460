//! Half precision for machines and compiler libraries that lack it: conversions that compiled code calls by the names
//! that all compilers use, and the passing of halves to Rust, which has no such type yet. (GCC's library has these
//! functions since version 12. AArch64 never needs them.)

use half::f16;

/// A half as an argument or result of a C function: in the low bits of the register for a single.
pub type HalfArg = f32;

pub(crate) fn half_arg(arg: HalfArg) -> u16 {
    arg.to_bits() as u16
}

fn half_result(value: f16) -> HalfArg {
    f32::from_bits(value.to_bits().into())
}

/// Converts a half to single precision.
#[cfg_attr(target_arch = "x86_64", unsafe(export_name = "__extendhfsf2"))]
pub(crate) extern "C" fn extendhfsf2(x: HalfArg) -> f32 {
    f16::from_bits(half_arg(x)).to_f32()
}

/// Converts single precision to the nearest half.
#[cfg_attr(target_arch = "x86_64", unsafe(export_name = "__truncsfhf2"))]
pub(crate) extern "C" fn truncsfhf2(x: f32) -> HalfArg {
    half_result(f16::from_f32(x))
}

/// Converts double precision to the nearest half.
#[cfg_attr(target_arch = "x86_64", unsafe(export_name = "__truncdfhf2"))]
pub(crate) extern "C" fn truncdfhf2(x: f64) -> HalfArg {
    // Rounds to odd in single precision (the last bit records inexactness), then to nearest.
    let near = x as f32;
    let mut odd = near.to_bits();
    if !x.is_nan() && f64::from(near) != x {
        odd -= (f64::from(near).abs() > x.abs()) as u32;
        odd |= 1;
    }
    half_result(f16::from_f32(f32::from_bits(odd)))
}

/// Names and addresses of the functions that compiled code may call.
pub(crate) fn symbols() -> [(&'static str, usize); 3] {
    [
        ("__extendhfsf2", extendhfsf2 as *const () as usize),
        ("__truncdfhf2", truncdfhf2 as *const () as usize),
        ("__truncsfhf2", truncsfhf2 as *const () as usize),
    ]
}

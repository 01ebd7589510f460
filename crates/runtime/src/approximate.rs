//! Approximation instructions of the processor: their results differ between processors, so the only way to know them
//! is to execute them. The interpreter does so here, and then agrees with compiled code bit for bit.

/// An approximation instruction of x86-64 on one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Approximation {
    /// `rcpss`
    Reciprocal,
    /// `rsqrtss`
    ReciprocalRoot,
    /// `vrcp14ss`, `vrcp14sd` of AVX-512.
    Reciprocal14,
    /// `vrsqrt14ss`, `vrsqrt14sd` of AVX-512.
    ReciprocalRoot14,
}

#[cfg(target_arch = "x86_64")]
mod instructions {
    use super::Approximation;
    use std::arch::x86_64::*;

    impl Approximation {
        /// The instruction's result; `None` if this processor does not have it.
        pub fn of_f32(self, x: f32) -> Option<f32> {
            let has_512 = is_x86_feature_detected!("avx512f");
            // SAFETY: every such processor has SSE, and the others are asked for AVX-512.
            unsafe {
                let x = _mm_set_ss(x);
                Some(_mm_cvtss_f32(match self {
                    Approximation::Reciprocal => _mm_rcp_ss(x),
                    Approximation::ReciprocalRoot => _mm_rsqrt_ss(x),
                    Approximation::Reciprocal14 if has_512 => _mm_rcp14_ss(x, x),
                    Approximation::ReciprocalRoot14 if has_512 => _mm_rsqrt14_ss(x, x),
                    _ => return None,
                }))
            }
        }

        /// The instruction's result; `None` if this processor does not have it.
        pub fn of_f64(self, x: f64) -> Option<f64> {
            let has_512 = is_x86_feature_detected!("avx512f");
            // SAFETY: the processor has SSE2 as all do, and AVX-512, which it is asked for.
            unsafe {
                let x = _mm_set_sd(x);
                Some(_mm_cvtsd_f64(match self {
                    Approximation::Reciprocal14 if has_512 => _mm_rcp14_sd(x, x),
                    Approximation::ReciprocalRoot14 if has_512 => _mm_rsqrt14_sd(x, x),
                    _ => return None,
                }))
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Approximation {
    /// `None`: other architectures do not have the instructions.
    pub fn of_f32(self, _x: f32) -> Option<f32> {
        None
    }

    /// `None`: other architectures do not have the instructions.
    pub fn of_f64(self, _x: f64) -> Option<f64> {
        None
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::Approximation;

    #[test]
    fn are_as_near_as_promised() {
        for i in 1..1000u16 {
            let x = f32::from(i) * 0.37;
            let near = |approximate: Option<f32>, exact: f32, part: f32| {
                approximate.is_none_or(|a| ((a - exact) / exact).abs() <= 1.01 / part)
            };
            assert!(near(Approximation::Reciprocal.of_f32(x), 1.0 / x, 4096.0 / 1.5), "{x}");
            assert!(near(Approximation::ReciprocalRoot.of_f32(x), 1.0 / x.sqrt(), 4096.0 / 1.5), "{x}");
            assert!(near(Approximation::Reciprocal14.of_f32(x), 1.0 / x, 16384.0), "{x}");
            assert!(near(Approximation::ReciprocalRoot14.of_f32(x), 1.0 / x.sqrt(), 16384.0), "{x}");
        }
        assert_eq!(Approximation::Reciprocal.of_f32(0.0), Some(f32::INFINITY));
        assert_eq!(Approximation::Reciprocal.of_f64(1.0), None);
    }
}

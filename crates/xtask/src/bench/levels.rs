//! The levels of x86-64 that `x bench --cpu` limits programs and peers to. One place says what a level means to each peer: an option of
//! its compiler, a variable of its process, or that the peer is left out, and why. `native` limits nothing.

use std::process::Command;

/// A level, by the name that `nyala --cpu`, `-march` and `-C target-cpu` know.
#[derive(Debug)]
pub struct Level {
    pub name: &'static str,
    /// What Zig calls it.
    zig: &'static str,
    /// The instructions that its figures are named for.
    instructions: &'static str,
    /// Its index in the values of a variable.
    index: Option<usize>,
}

pub const NATIVE: &Level = &Level { name: "native", zig: "native", instructions: "all of the processor", index: None };
const V2: &Level = &Level { name: "x86-64-v2", zig: "x86_64_v2", instructions: "SSE4.2", index: Some(0) };
pub const V3: &Level = &Level { name: "x86-64-v3", zig: "x86_64_v3", instructions: "AVX2", index: Some(1) };
pub const V4: &Level = &Level { name: "x86-64-v4", zig: "x86_64_v4", instructions: "AVX-512", index: Some(2) };

pub const NAMES: [&str; 4] = [NATIVE.name, V2.name, V3.name, V4.name];
const LEVELS: [&Level; 4] = [NATIVE, V2, V3, V4];

/// How a peer is limited.
#[derive(Clone, Copy)]
enum Limit {
    /// It is compiled for the level, by the options that `Level` gives.
    Compiled,
    /// It is a variable of its process, with the values for the three levels.
    Variable(&'static str, [&'static str; 3]),
    /// It has the same code for each processor, made for the least x86-64.
    Portable,
    /// It takes no more than this level has, by its index, but no less either.
    From(usize, &'static str),
    /// It takes what the processor has.
    Never(&'static str),
}

/// The peers that are not limited by a compiler's option alone.
const PEERS: &[(&str, Limit)] = &[
    ("g++", Limit::Compiled),
    ("clang++", Limit::Compiled),
    ("gcc", Limit::Compiled),
    ("C++", Limit::Compiled),
    ("Rust", Limit::Compiled),
    ("Rust (nightly)", Limit::Compiled),
    ("Zig", Limit::Compiled),
    ("OpenMP", Limit::Compiled),
    ("TBB", Limit::Compiled),
    (
        "NumPy",
        Limit::Variable(
            "NPY_DISABLE_CPU_FEATURES",
            ["X86_V3 X86_V4 AVX512_ICL AVX512_SPR", "X86_V4 AVX512_ICL AVX512_SPR", ""],
        ),
    ),
    ("OpenBLAS", Limit::Variable("OPENBLAS_CORETYPE", ["Nehalem", "Haswell", "SkylakeX"])),
    ("MKL", Limit::Variable("MKL_ENABLE_INSTRUCTIONS", ["SSE4_2", "AVX2", "AVX512"])),
    ("BLIS", Limit::Portable),
    (
        "OpenCV",
        Limit::Variable("OPENCV_CPU_DISABLE", ["AVX,FP16,AVX2,FMA3,AVX512-SKX", "AVX512-SKX,AVX512-ICL", "AVX512-ICL"]),
    ),
    (
        "Halide",
        Limit::Variable(
            "HL_JIT_TARGET",
            [
                "x86-64-linux-sse41",
                "x86-64-linux-sse41-avx-f16c-fma-avx2",
                "x86-64-linux-sse41-avx-f16c-fma-avx2-avx512-avx512_skylake",
            ],
        ),
    ),
    ("Numba", Limit::Variable("NUMBA_CPU_NAME", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])),
    ("Embree", Limit::Variable("EMBREE_ISA", ["sse4.2", "avx2", "avx512"])),
    ("Intel OpenCL", Limit::Never("CL_CONFIG_CPU_TARGET_ARCH changes none of its code here")),
    ("Polars", Limit::Never("no option limits its instructions")),
    ("vqsort", Limit::Never("Debian's library chooses by the processor")),
    ("regex", Limit::From(1, "its searches take AVX2 where the processor has it")),
    ("parasail, SSW, edlib", Limit::From(1, "the functions called are those for AVX2")),
];

impl Level {
    pub fn of_name(name: &str) -> Option<&'static Level> {
        LEVELS.into_iter().find(|level| level.name == name)
    }

    pub fn is_native(&self) -> bool {
        self.index.is_none()
    }

    /// Gives an error where the processor lacks what the level has.
    pub fn check(&self) -> Result<(), String> {
        #[cfg(target_arch = "x86_64")]
        let has = [
            is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt"),
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2"),
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl"),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let has = [false; 3];
        match self.index {
            Some(index) if !has[index] => Err(format!(
                "--cpu {}: this processor does not have its instructions ({})",
                self.name, self.instructions
            )),
            _ => Ok(()),
        }
    }

    /// The number of lanes that fills about as many registers as this one does with AVX-512. LLVM takes vectors of twelve floats apart
    /// with SSE4.2.
    pub fn lanes(&self, with_avx512: u32) -> u32 {
        let part = match self.index {
            Some(0) => 4,
            Some(1) => 2,
            Some(_) => 1,
            None if V4.check().is_ok() => 1,
            None if V3.check().is_ok() => 2,
            None => 4,
        };
        match (with_avx512 / part).max(1) {
            few @ ..16 => few.next_power_of_two(),
            many => many,
        }
    }

    /// What a heading says of the level: nothing of `native`.
    pub fn said(&self) -> String {
        if self.is_native() { String::new() } else { format!(", --cpu {} ({})", self.name, self.instructions) }
    }

    /// The option of gcc and clang.
    pub fn march(&self) -> String {
        format!("-march={}", self.name)
    }

    /// The option of rustc.
    pub fn target_cpu(&self) -> String {
        format!("-Ctarget-cpu={}", self.name)
    }

    /// The option of Zig.
    pub fn mcpu(&self) -> String {
        format!("-mcpu={}", self.zig)
    }

    /// The variable by which a peer is limited, if it is by one.
    pub fn variable(&self, peer: &str) -> Option<(&'static str, &'static str)> {
        match (self.index, limit(peer)) {
            (Some(index), Some(Limit::Variable(name, values))) => Some((name, values[index])),
            _ => None,
        }
    }

    /// Limits a peer's process.
    pub fn limit(&self, peer: &str, command: &mut Command) {
        command.envs(self.variable(peer));
        if peer == "Numba" && !self.is_native() {
            // Otherwise it adds those of the processor.
            command.env("NUMBA_CPU_FEATURES", "");
        }
    }

    /// Why a peer is not measured at this level, if it is not.
    pub fn left_out(&self, peer: &str) -> Option<String> {
        let index = self.index?;
        match limit(peer) {
            Some(Limit::Variable(..)) if peer == "MKL" && index == 0 && !is_of_intel() => {
                Some("MKL_ENABLE_INSTRUCTIONS limits only Intel's processors".into())
            }
            Some(Limit::Compiled | Limit::Portable | Limit::Variable(..)) => None,
            Some(Limit::From(least, why)) => (index < least).then(|| why.to_string()),
            Some(Limit::Never(why)) => Some(why.to_string()),
            None => Some("it is not known how to limit it".into()),
        }
    }
}

fn limit(peer: &str) -> Option<Limit> {
    PEERS.iter().find(|p| p.0 == peer).map(|p| p.1)
}

fn is_of_intel() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("GenuineIntel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_limits_each_peer_in_its_way() {
        let of = |name: &str| Level::of_name(name).unwrap();
        let table: Vec<String> = NAMES
            .iter()
            .map(|name| {
                let level = of(name);
                let by = |peer: &str| level.variable(peer).map_or("-", |v| v.1);
                format!(
                    "{} {} {} | {} {} {} {} | {} | {}",
                    level.march(),
                    level.target_cpu(),
                    level.mcpu(),
                    by("OpenBLAS"),
                    by("MKL"),
                    by("Embree"),
                    by("Numba"),
                    by("NumPy"),
                    by("Halide")
                )
            })
            .collect();
        let expected = [
            "-march=native -Ctarget-cpu=native -mcpu=native | - - - - | - | -",
            "-march=x86-64-v2 -Ctarget-cpu=x86-64-v2 -mcpu=x86_64_v2 | Nehalem SSE4_2 sse4.2 x86-64-v2 \
             | X86_V3 X86_V4 AVX512_ICL AVX512_SPR | x86-64-linux-sse41",
            "-march=x86-64-v3 -Ctarget-cpu=x86-64-v3 -mcpu=x86_64_v3 | Haswell AVX2 avx2 x86-64-v3 \
             | X86_V4 AVX512_ICL AVX512_SPR | x86-64-linux-sse41-avx-f16c-fma-avx2",
            "-march=x86-64-v4 -Ctarget-cpu=x86-64-v4 -mcpu=x86_64_v4 | SkylakeX AVX512 avx512 x86-64-v4 \
             |  | x86-64-linux-sse41-avx-f16c-fma-avx2-avx512-avx512_skylake",
        ];
        assert_eq!(table, expected);
        assert!(Level::of_name("x86-64-v5").is_none());
        assert_eq!([V2, V3, V4].map(|level| level.lanes(48)), [16, 24, 48]);
    }

    #[test]
    fn a_peer_that_cannot_be_limited_is_left_out_with_a_reason() {
        for (peer, _) in PEERS {
            assert_eq!(NATIVE.left_out(peer), None, "{peer}");
        }
        let without = |level: &Level| -> Vec<&str> {
            PEERS.iter().map(|p| p.0).filter(|p| *p != "MKL" && level.left_out(p).is_some()).collect()
        };
        assert_eq!(without(V2), ["Intel OpenCL", "Polars", "vqsort", "regex", "parasail, SSW, edlib"]);
        assert_eq!(without(V3), ["Intel OpenCL", "Polars", "vqsort"]);
        assert_eq!(without(V4), ["Intel OpenCL", "Polars", "vqsort"]);
        assert_eq!(V2.left_out("ghostwriter").as_deref(), Some("it is not known how to limit it"));
        for level in [V2, V3, V4] {
            assert!(PEERS.iter().filter_map(|p| level.left_out(p.0)).all(|why| !why.is_empty()));
        }
        let mut numba = Command::new("python3");
        V3.limit("Numba", &mut numba);
        let variables: Vec<_> = numba.get_envs().map(|v| v.0.to_string_lossy().into_owned()).collect();
        assert_eq!(variables, ["NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME"]);
    }
}

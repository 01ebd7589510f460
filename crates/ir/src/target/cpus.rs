//! The CPUs that can be compiled for, by LLVM 22's names.
//!
//! LLVM's C interface neither lists its CPUs nor says whether it knows one: given an unknown name it prints a warning
//! and goes on without. Only 64-bit processors are listed; LLVM ends the process on others. Tests of `gen-llvm` compare
//! the table with LLVM.

/// CPUs by architecture (first part of the triple) and by the width in bits of their widest registers for vectors of
/// integers and floats. Those of x86-64 with 256 bits also have AVX2 and BMI2, those with 512 bits also AVX-512 F.
const CPUS: &[(&str, u32, &str)] = &[
    (
        "x86_64",
        128,
        "amdfam10 athlon-fx athlon64 athlon64-sse3 atom atom_sse4_2 atom_sse4_2_movbe barcelona bdver1 bdver2 \
         bdver3 bonnell btver1 btver2 core-avx-i core2 core_2_duo_sse4_1 core_2_duo_ssse3 core_2nd_gen_avx \
         core_3rd_gen_avx core_aes_pclmulqdq core_i7_sse4_2 corei7 corei7-avx generic goldmont goldmont-plus \
         goldmont_plus ivybridge k8 k8-sse3 nehalem nocona opteron opteron-sse3 penryn sandybridge silvermont \
         slm tremont westmere x86-64 x86-64-v2",
    ),
    (
        "x86_64",
        256,
        "alderlake arrowlake arrowlake-s arrowlake_s bdver4 broadwell clearwaterforest core-avx2 \
         core_4th_gen_avx core_4th_gen_avx_tsx core_5th_gen_avx core_5th_gen_avx_tsx gracemont grandridge \
         haswell lunarlake meteorlake pantherlake raptorlake sierraforest skylake wildcatlake x86-64-v3 \
         znver1 znver2 znver3",
    ),
    (
        "x86_64",
        512,
        "cannonlake cascadelake cooperlake diamondrapids emeraldrapids graniterapids graniterapids-d \
         graniterapids_d icelake-client icelake-server icelake_client icelake_server knl knm mic_avx512 \
         novalake rocketlake sapphirerapids skx skylake-avx512 skylake_avx512 tigerlake x86-64-v4 znver4 \
         znver5",
    ),
    (
        "aarch64",
        128,
        "ampere1 ampere1a ampere1b ampere1c apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15 \
         apple-a16 apple-a17 apple-a18 apple-a19 apple-a7 apple-a8 apple-a9 apple-m1 apple-m2 apple-m3 \
         apple-m4 apple-m5 apple-s10 apple-s4 apple-s5 apple-s6 apple-s7 apple-s8 apple-s9 c1-nano c1-premium \
         c1-pro c1-ultra carmel cobalt-100 cortex-a320 cortex-a34 cortex-a35 cortex-a510 cortex-a520 \
         cortex-a520ae cortex-a53 cortex-a55 cortex-a57 cortex-a65 cortex-a65ae cortex-a710 cortex-a715 \
         cortex-a72 cortex-a720 cortex-a720ae cortex-a725 cortex-a73 cortex-a75 cortex-a76 cortex-a76ae \
         cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1 cortex-x1c \
         cortex-x2 cortex-x3 cortex-x4 cortex-x925 cyclone exynos-m3 exynos-m4 exynos-m5 falkor \
         fujitsu-monaka gb10 generic grace kryo neoverse-512tvb neoverse-e1 neoverse-n1 neoverse-n2 \
         neoverse-n3 neoverse-v2 neoverse-v3 neoverse-v3ae olympus oryon-1 saphira thunderx \
         thunderx2t99 thunderx3t110 thunderxt81 thunderxt83 thunderxt88 tsv110",
    ),
    // SVE's registers.
    ("aarch64", 256, "neoverse-v1"),
    ("aarch64", 512, "a64fx"),
    (
        "riscv64",
        128,
        "andes-ax25 andes-ax45 andes-ax45mpv andes-nx45 generic generic-rv64 mips-p8700 rocket-rv64 \
         sifive-p450 sifive-p470 sifive-p550 sifive-p670 sifive-p870 sifive-s21 sifive-s51 sifive-s54 \
         sifive-s76 sifive-u54 sifive-u74 sifive-x280 sifive-x390 spacemit-x60 syntacore-scr3-rv64 \
         syntacore-scr4-rv64 syntacore-scr5-rv64 syntacore-scr7 tt-ascalon-d8 veyron-v1 xiangshan-kunminghu \
         xiangshan-nanhu",
    ),
    ("amdgcn", 128, "gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1102 gfx1150 gfx1151 gfx1200 gfx1201"),
    (
        "nvptx64",
        128,
        "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_103 sm_103a sm_110 sm_110a sm_120 sm_120a sm_121 \
         sm_121a",
    ),
    ("loongarch64", 128, "generic generic-la64 la464 la664 loongarch64"),
    (
        "powerpc64le",
        128,
        "440 450 601 602 603 603e 603ev 604 604e 620 7400 7450 750 970 a2 e500mc e5500 future g3 g4 g4+ g5 \
         generic ppc ppc32 ppc64 ppc64le pwr10 pwr11 pwr3 pwr4 pwr5 pwr5x pwr6 pwr6x pwr7 pwr8 pwr9",
    ),
    ("wasm64", 128, "bleeding-edge generic lime1 mvp"),
];

/// Width in bits of the vector registers that every machine has.
pub(super) const LEAST_BITS: u32 = 128;

/// The CPUs of an architecture (first part of the triple), in alphabetical order; empty for an unknown architecture.
pub fn cpus(arch: &str) -> Vec<&'static str> {
    let of_arch = CPUS.iter().filter(|c| c.0 == arch);
    let mut names: Vec<&str> = of_arch.flat_map(|c| c.2.split_whitespace()).collect();
    names.sort_unstable();
    names
}

/// Width in bits of a CPU's widest registers for vectors of integers and floats; `LEAST_BITS` for an unknown CPU, and for those with SVE of
/// which the name does not tell the length.
pub(super) fn vector_bits(arch: &str, cpu: &str) -> u32 {
    let row = CPUS.iter().find(|c| c.0 == arch && c.2.split_whitespace().any(|name| name == cpu));
    row.map_or(LEAST_BITS, |c| c.1)
}

/// Those with the AVX-512 VBMI instructions.
const WITH_VBMI: &str = "cannonlake diamondrapids emeraldrapids graniterapids graniterapids-d graniterapids_d \
    icelake-client icelake-server icelake_client icelake_server novalake rocketlake sapphirerapids tigerlake znver4 znver5";

/// Whether a CPU has the AVX-512 VBMI instructions.
pub(super) fn has_vbmi(cpu: &str) -> bool {
    WITH_VBMI.split_whitespace().any(|name| name == cpu)
}

/// Those with AVX-512 F, but without AVX-512 DQ and VL.
const WITHOUT_DQ: &str = "knl knm mic_avx512";

/// Whether a CPU with AVX-512 F has the AVX-512 DQ and VL instructions, too.
pub(super) fn has_dq(cpu: &str) -> bool {
    !WITHOUT_DQ.split_whitespace().any(|name| name == cpu)
}

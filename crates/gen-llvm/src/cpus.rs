//! The CPUs that code is made for, by the names that LLVM 22 gives them.
//!
//! LLVM's C interface neither lists them nor says whether it knows one: it prints a warning and goes on without. Only
//! processors of 64 bits are here; with others LLVM ends the process. `lists_what_llvm_knows` compares.

/// CPUs by architecture, as triples begin.
const CPUS: &[(&str, &str)] = &[
    (
        "x86_64",
        "alderlake amdfam10 arrowlake arrowlake-s arrowlake_s athlon-fx athlon64 athlon64-sse3 atom \
         atom_sse4_2 atom_sse4_2_movbe barcelona bdver1 bdver2 bdver3 bdver4 bonnell broadwell btver1 btver2 \
         cannonlake cascadelake clearwaterforest cooperlake core-avx-i core-avx2 core2 core_2_duo_sse4_1 \
         core_2_duo_ssse3 core_2nd_gen_avx core_3rd_gen_avx core_4th_gen_avx core_4th_gen_avx_tsx \
         core_5th_gen_avx core_5th_gen_avx_tsx core_aes_pclmulqdq core_i7_sse4_2 corei7 corei7-avx \
         diamondrapids emeraldrapids generic goldmont goldmont-plus goldmont_plus gracemont grandridge \
         graniterapids graniterapids-d graniterapids_d haswell icelake-client icelake-server icelake_client \
         icelake_server ivybridge k8 k8-sse3 knl knm lunarlake meteorlake mic_avx512 nehalem nocona novalake \
         opteron opteron-sse3 pantherlake penryn raptorlake rocketlake sandybridge sapphirerapids \
         sierraforest silvermont skx skylake skylake-avx512 skylake_avx512 slm tigerlake tremont westmere \
         wildcatlake x86-64 x86-64-v2 x86-64-v3 x86-64-v4 znver1 znver2 znver3 znver4 znver5",
    ),
    (
        "aarch64",
        "a64fx ampere1 ampere1a ampere1b ampere1c apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15 \
         apple-a16 apple-a17 apple-a18 apple-a19 apple-a7 apple-a8 apple-a9 apple-m1 apple-m2 apple-m3 \
         apple-m4 apple-m5 apple-s10 apple-s4 apple-s5 apple-s6 apple-s7 apple-s8 apple-s9 c1-nano c1-premium \
         c1-pro c1-ultra carmel cobalt-100 cortex-a320 cortex-a34 cortex-a35 cortex-a510 cortex-a520 \
         cortex-a520ae cortex-a53 cortex-a55 cortex-a57 cortex-a65 cortex-a65ae cortex-a710 cortex-a715 \
         cortex-a72 cortex-a720 cortex-a720ae cortex-a725 cortex-a73 cortex-a75 cortex-a76 cortex-a76ae \
         cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1 cortex-x1c \
         cortex-x2 cortex-x3 cortex-x4 cortex-x925 cyclone exynos-m3 exynos-m4 exynos-m5 falkor \
         fujitsu-monaka gb10 generic grace kryo neoverse-512tvb neoverse-e1 neoverse-n1 neoverse-n2 \
         neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3 neoverse-v3ae olympus oryon-1 saphira thunderx \
         thunderx2t99 thunderx3t110 thunderxt81 thunderxt83 thunderxt88 tsv110",
    ),
    (
        "riscv64",
        "andes-ax25 andes-ax45 andes-ax45mpv andes-nx45 generic generic-rv64 mips-p8700 rocket-rv64 \
         sifive-p450 sifive-p470 sifive-p550 sifive-p670 sifive-p870 sifive-s21 sifive-s51 sifive-s54 \
         sifive-s76 sifive-u54 sifive-u74 sifive-x280 sifive-x390 spacemit-x60 syntacore-scr3-rv64 \
         syntacore-scr4-rv64 syntacore-scr5-rv64 syntacore-scr7 tt-ascalon-d8 veyron-v1 xiangshan-kunminghu \
         xiangshan-nanhu",
    ),
    ("loongarch64", "generic generic-la64 la464 la664 loongarch64"),
    (
        "powerpc64le",
        "440 450 601 602 603 603e 603ev 604 604e 620 7400 7450 750 970 a2 e500mc e5500 future g3 g4 g4+ g5 \
         generic ppc ppc32 ppc64 ppc64le pwr10 pwr11 pwr3 pwr4 pwr5 pwr5x pwr6 pwr6x pwr7 pwr8 pwr9",
    ),
    ("wasm64", "bleeding-edge generic lime1 mvp"),
];

/// The CPUs of an architecture, as triples begin; none where it is not known.
pub fn cpus(arch: &str) -> impl Iterator<Item = &'static str> {
    let of_arch = CPUS.iter().filter(move |c| c.0 == arch);
    of_arch.flat_map(|c| c.1.split_whitespace())
}

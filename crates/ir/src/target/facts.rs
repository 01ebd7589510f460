//! What programs may know of a machine: registers, instructions, caches. Separate from [`Target`], which has what back ends ask: these
//! are facts for programs to choose algorithms and sizes by, and a wrong one makes a program slower, never wrong.
//!
//! Registers and instructions follow from the name of the CPU, as LLVM has it. Caches follow from that only roughly: one CPU is sold with
//! several. So they are asked of the machine if the code is for the CPU of this machine. Other CPUs have the sizes of [`CACHES`], so that
//! the same program for the same CPU is the same code, whichever machine makes it.

use super::{Arch, Target};

/// What programs may know of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Bytes of the widest vector registers.
    pub vector_bytes: u32,
    /// The number of vector registers.
    pub vector_registers: u32,
    /// Whether a multiplication and an addition of floats are one instruction.
    pub fma: bool,
    /// Whether one instruction loads elements from the addresses of a vector.
    pub gather: bool,
    /// Whether instructions on vectors leave out lanes.
    pub masks: bool,
    /// Whether one instruction finds equal elements of a vector.
    pub conflict_detection: bool,
    /// Whether one instruction permutes the bytes of 16 bytes by those of another register.
    pub byte_shuffle: bool,
    /// Whether one instruction counts the bits that are set.
    pub popcount: bool,
    /// Sizes of caches.
    pub caches: Caches,
}

/// Sizes of caches, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caches {
    /// What caches load and store as one piece.
    pub line: u32,
    /// A core's first cache for data.
    pub first: u32,
    /// A core's second cache.
    pub second: u32,
    /// The last cache, which cores share; the second one if there is none.
    pub shared: u32,
}

const fn caches(first_kib: u32, second_kib: u32, shared_kib: u32) -> Caches {
    Caches { line: 64, first: first_kib << 10, second: second_kib << 10, shared: shared_kib << 10 }
}

/// Sizes of caches by the architecture and the beginning of a CPU's name, for code that is not for this machine. The first row that fits
/// counts. Of a cache that cores share it is the size that most models have at least. `docs/cpus.md` has the same table.
const CACHES: &[(Arch, &str, Caches)] = &[
    (Arch::X86_64, "znver1", caches(32, 512, 8 << 10)),
    (Arch::X86_64, "znver2", caches(32, 512, 16 << 10)),
    (Arch::X86_64, "znver3", caches(32, 512, 32 << 10)),
    (Arch::X86_64, "znver4", caches(32, 1024, 32 << 10)),
    (Arch::X86_64, "znver5", caches(48, 1024, 32 << 10)),
    (Arch::X86_64, "skylake-avx512", caches(32, 1024, 16 << 10)),
    (Arch::X86_64, "skylake_avx512", caches(32, 1024, 16 << 10)),
    (Arch::X86_64, "skx", caches(32, 1024, 16 << 10)),
    (Arch::X86_64, "cascadelake", caches(32, 1024, 16 << 10)),
    (Arch::X86_64, "cooperlake", caches(32, 1024, 16 << 10)),
    (Arch::X86_64, "icelake-server", caches(48, 1280, 24 << 10)),
    (Arch::X86_64, "icelake_server", caches(48, 1280, 24 << 10)),
    (Arch::X86_64, "sapphirerapids", caches(48, 2048, 30 << 10)),
    (Arch::X86_64, "emeraldrapids", caches(48, 2048, 30 << 10)),
    (Arch::X86_64, "graniterapids", caches(48, 2048, 48 << 10)),
    (Arch::X86_64, "x86-64-v4", caches(32, 1024, 16 << 10)),
    (Arch::X86_64, "", caches(32, 256, 8 << 10)),
    (Arch::Aarch64, "apple-", Caches { line: 128, ..caches(64, 4096, 8 << 10) }),
    (Arch::Aarch64, "a64fx", Caches { line: 256, ..caches(64, 8192, 8 << 10) }),
    (Arch::Aarch64, "neoverse-", caches(64, 1024, 32 << 10)),
    (Arch::PowerPc64Le, "", Caches { line: 128, ..caches(32, 512, 8 << 10) }),
];

/// The sizes for CPUs that are not in [`CACHES`].
const USUAL: Caches = caches(32, 512, 2 << 10);

/// CPUs of x86-64 without SSSE3, by which bytes are permuted. None of them is in [`WITHOUT_POPCOUNT`] but not here.
const WITHOUT_SHUFFLE: &str =
    "amdfam10 athlon-fx athlon64 athlon64-sse3 barcelona generic k8 k8-sse3 nocona opteron opteron-sse3 x86-64";

/// CPUs of x86-64 without the instruction POPCNT.
const WITHOUT_POPCOUNT: &str = "athlon-fx athlon64 athlon64-sse3 atom bonnell core2 core_2_duo_sse4_1 core_2_duo_ssse3 generic k8 k8-sse3 \
    nocona opteron opteron-sse3 penryn x86-64";

/// CPUs of x86-64 with FMA or FMA4, but without AVX2.
const WITH_FMA: &str = "bdver1 bdver2 bdver3";

impl Target {
    /// What programs may know of the machine.
    pub fn facts(&self) -> Facts {
        let is_x86 = self.arch == Arch::X86_64;
        let is_one_of = |names: &str| self.cpu.as_deref().is_some_and(|cpu| names.split_whitespace().any(|n| n == cpu));
        // Without a name it is the least CPU of another machine, or this machine's.
        let here = self.is_native && self.cpu.is_none();
        let least = self.cpu.is_none() && !here;
        let [fma, shuffle, popcount, conflicts] = match here {
            true => host_instructions(),
            false => [
                self.vector_bits > 128 || is_one_of(WITH_FMA),
                !least && !is_one_of(WITHOUT_SHUFFLE),
                !least && !is_one_of(WITHOUT_POPCOUNT),
                true,
            ],
        };
        let has_neon = self.arch == Arch::Aarch64;
        let is_wide = matches!(self.arch, Arch::PowerPc64Le | Arch::LoongArch64 | Arch::RiscV64);
        let registers = match self.arch {
            Arch::PowerPc64Le => 64,
            Arch::X86_64 if !self.has_avx512() => 16,
            Arch::Wasm64 => 16,
            _ => 32,
        };
        Facts {
            vector_bytes: self.vector_bits / 8,
            vector_registers: registers,
            fma: if is_x86 { fma } else { has_neon || is_wide || self.is_gpu() },
            gather: is_x86 && self.vector_bits > 128 || self.has_sve(),
            masks: self.has_avx512() || self.has_sve(),
            conflict_detection: self.has_avx512() && conflicts,
            byte_shuffle: if is_x86 { shuffle } else { has_neon || self.arch == Arch::PowerPc64Le },
            popcount: if is_x86 { popcount } else { has_neon || self.arch == Arch::PowerPc64Le || self.is_gpu() },
            caches: here.then(host_caches).flatten().unwrap_or_else(|| self.caches_by_name()),
        }
    }

    fn caches_by_name(&self) -> Caches {
        let cpu = self.cpu.as_deref().unwrap_or("");
        let row = CACHES.iter().find(|(arch, begin, _)| *arch == self.arch && cpu.starts_with(begin));
        row.map_or(USUAL, |row| row.2)
    }
}

/// Whether this processor has FMA, permutes bytes, counts bits and finds equal elements.
#[cfg(target_arch = "x86_64")]
fn host_instructions() -> [bool; 4] {
    [
        std::arch::is_x86_feature_detected!("fma"),
        std::arch::is_x86_feature_detected!("ssse3"),
        std::arch::is_x86_feature_detected!("popcnt"),
        std::arch::is_x86_feature_detected!("avx512cd"),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn host_instructions() -> [bool; 4] {
    [false; 4]
}

/// The caches of this machine's first processor, if the system (Linux) tells them.
fn host_caches() -> Option<Caches> {
    let read = |index: u32, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
        std::fs::read_to_string(path).map(|text| text.trim().to_string()).ok()
    };
    let levels = (0..16).map_while(|index| Some((read(index, "level")?, read(index, "type")?, read(index, "size")?)));
    let lines = read(0, "coherency_line_size").and_then(|text| text.parse().ok());
    caches_of(levels, lines)
}

/// Caches from levels, types and sizes as Linux writes them.
fn caches_of(levels: impl Iterator<Item = (String, String, String)>, line: Option<u32>) -> Option<Caches> {
    let mut sizes = [0u32; 4];
    for (level, kind, size) in levels.filter(|(_, kind, _)| kind != "Instruction") {
        let level: usize = level.parse().ok().filter(|level| (1..=3).contains(level))?;
        let bytes = size.strip_suffix('K').and_then(|n| n.parse::<u64>().ok())? << 10;
        // They are `i32` in programs.
        sizes[level] = bytes.min(i32::MAX as u64) as u32;
        debug_assert!(kind == "Data" || kind == "Unified", "{kind}");
    }
    let [_, first, second, third] = sizes;
    let line = line.filter(|n| n.is_power_of_two() && (16..=4096).contains(n)).unwrap_or(64);
    let shared = if third == 0 { second } else { third };
    (first > 0 && second > 0).then_some(Caches { line, first, second, shared })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arch: &str, cpu: Option<&str>) -> Facts {
        Target::new(Some(&format!("{arch}-unknown-linux-gnu")), cpu).facts()
    }

    #[test]
    fn what_names_say() {
        let v3 = of("x86_64", Some("x86-64-v3"));
        assert_eq!((v3.vector_bytes, v3.vector_registers, v3.fma, v3.gather, v3.masks), (32, 16, true, true, false));
        assert_eq!(v3.caches, caches(32, 256, 8192));
        let v4 = of("x86_64", Some("x86-64-v4"));
        assert_eq!((v4.vector_bytes, v4.vector_registers, v4.masks, v4.conflict_detection), (64, 32, true, true));
        let v2 = of("x86_64", Some("x86-64-v2"));
        assert_eq!((v2.vector_bytes, v2.fma, v2.gather, v2.byte_shuffle, v2.popcount), (16, false, false, true, true));
        let least = of("x86_64", Some("x86-64"));
        assert_eq!((least.byte_shuffle, least.popcount), (false, false));
        assert_eq!(of("x86_64", Some("znver3")).caches, caches(32, 512, 32 << 10));
        let arm = of("aarch64", Some("neoverse-n1"));
        assert_eq!((arm.vector_bytes, arm.vector_registers, arm.fma, arm.gather), (16, 32, true, false));
        for (cpu, bytes) in [("neoverse-v1", 32), ("a64fx", 64)] {
            let sve = of("aarch64", Some(cpu));
            assert_eq!(
                (sve.vector_bytes, sve.vector_registers, sve.gather, sve.masks),
                (bytes, 32, true, true),
                "{cpu}"
            );
        }
        for arch in Arch::ALL {
            for cpu in super::super::cpus(arch.name()) {
                let facts = of(arch.name(), Some(cpu));
                let Caches { line, first, second, shared } = facts.caches;
                assert!(line < first && first <= second && second <= shared, "{cpu}");
                assert!(facts.masks || !facts.conflict_detection, "{cpu}");
            }
        }
    }

    /// Code for a named CPU, this machine's included, does not depend on the machine that makes it.
    #[test]
    fn names_say_all() {
        let named = |native: bool| Target {
            is_native: native,
            ..Target::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"))
        };
        assert_eq!(named(true).facts(), named(false).facts());
    }

    #[test]
    fn what_the_system_tells() {
        let row = |a: &str, b: &str, c: &str| (a.to_string(), b.to_string(), c.to_string());
        let [l1, code, l2, l3] = [
            row("1", "Data", "48K"),
            row("1", "Instruction", "32K"),
            row("2", "Unified", "2048K"),
            row("3", "Unified", "266240K"),
        ];
        let all = [l1.clone(), code, l2.clone(), l3];
        let found = caches_of(all.into_iter(), Some(64));
        assert_eq!(found, Some(caches(48, 2048, 266_240)));
        let two = caches_of([l1.clone(), l2.clone()].into_iter(), Some(48));
        assert_eq!(two, Some(caches(48, 2048, 2048)));
        assert_eq!(caches_of(std::iter::once(l1.clone()), None), None);
        let huge = caches_of([l1, l2, row("3", "Unified", "4194304K")].into_iter(), Some(128));
        assert_eq!(huge.map(|c| (c.line, c.shared)), Some((128, i32::MAX as u32)));
    }
}

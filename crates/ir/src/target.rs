//! The machine that a program is compiled for, as data. It is filled here, from a triple and the name of a CPU; other
//! code asks a [`Target`] and does not parse these. It lies beside the types, since sizes of pointers depend on the
//! machine.

mod cpus;
mod facts;

pub use cpus::cpus;
use cpus::{LEAST_BITS, vector_bits};
pub use facts::{Caches, Facts};

/// A machine that programs are compiled for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The processor's architecture.
    pub arch: Arch,
    /// Architecture, vendor and system, in LLVM's format: `aarch64-unknown-linux-gnu`.
    pub triple: String,
    /// LLVM's name of the CPU. `None` for the CPU of this machine, or the baseline of another.
    pub cpu: Option<String>,
    /// Whether code for the target runs on this machine: architecture and system are the same.
    pub is_native: bool,
    /// Widths of addresses.
    pub spaces: Spaces,
    /// Whether every call in tail position can be a jump. Elsewhere LLVM makes a jump where it can.
    pub tail_calls: bool,
    /// Whether the loader can ask a function which version a symbol means (ELF's `STT_GNU_IFUNC`).
    pub indirect_functions: bool,
    /// The C calling convention.
    pub c_abi: CAbi,
    /// The format of object files.
    pub object_format: ObjectFormat,
    /// Width in bits of the widest registers for vectors of integers and floats.
    pub vector_bits: u32,
    /// Whether it is x86-64 with the BMI2 instructions.
    pub bmi2: bool,
    /// Whether it is x86-64 with the AVX-512 VBMI instructions, which permute bytes.
    pub vbmi: bool,
    /// Whether it is x86-64 with the AVX-512 DQ and VL instructions, which have the lesser of two floats by one rule.
    pub dq: bool,
    /// Where math functions on vectors come from.
    pub vector_math: VectorMath,
}

/// Architectures of processors that code is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arch {
    /// 64-bit ARM.
    Aarch64,
    /// AMD's GPUs.
    AmdGcn,
    /// 64-bit LoongArch.
    LoongArch64,
    /// NVIDIA's GPUs, by way of PTX.
    Nvptx64,
    /// POWER, little-endian.
    PowerPc64Le,
    /// 64-bit RISC-V.
    RiscV64,
    /// WebAssembly with 64-bit addresses.
    Wasm64,
    /// 64-bit Intel and AMD.
    X86_64,
    /// Another one, for which no back end makes code.
    Unknown,
}

/// Widths of addresses, by address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spaces {
    /// Bytes of an address in space 0, and in all spaces that are not listed.
    generic: u64,
    /// Spaces with another width, each with the bytes of an address there.
    others: &'static [(u8, u64)],
}

/// The parts of the C calling convention that depend on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CAbi {
    /// How structs are passed by value.
    pub structs: Structs,
    /// How signed 32-bit numbers fill 64-bit registers.
    pub i32: Extension,
    /// How unsigned 32-bit numbers fill 64-bit registers.
    pub u32: Extension,
}

/// How C passes structs by value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structs {
    /// By the System V ABI of x86-64.
    SystemV,
    /// In a way that no back end implements.
    Unknown,
}

/// The contents of a register's upper bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    /// Unspecified.
    None,
    /// Copies of the sign.
    Sign,
    /// Zero.
    Zero,
}

/// Formats of object files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectFormat {
    /// Linux and the BSDs.
    Elf,
    /// Windows.
    Coff,
    /// macOS.
    MachO,
    /// WebAssembly.
    Wasm,
}

/// Libraries with math functions on vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VectorMath {
    /// No library.
    None,
    /// glibc's libmvec; only the target machine can say whether it is installed.
    Libmvec,
}

impl Arch {
    /// All but [`Arch::Unknown`], in alphabetical order.
    pub const ALL: [Arch; 8] = [
        Arch::Aarch64,
        Arch::AmdGcn,
        Arch::LoongArch64,
        Arch::Nvptx64,
        Arch::PowerPc64Le,
        Arch::RiscV64,
        Arch::Wasm64,
        Arch::X86_64,
    ];

    /// The first part of triples; empty for [`Arch::Unknown`].
    pub fn name(self) -> &'static str {
        match self {
            Arch::Aarch64 => "aarch64",
            Arch::AmdGcn => "amdgcn",
            Arch::LoongArch64 => "loongarch64",
            Arch::Nvptx64 => "nvptx64",
            Arch::PowerPc64Le => "powerpc64le",
            Arch::RiscV64 => "riscv64",
            Arch::Wasm64 => "wasm64",
            Arch::X86_64 => "x86_64",
            Arch::Unknown => "",
        }
    }

    fn of(name: &str) -> Arch {
        // Rust's names include extensions: `riscv64gc`.
        let name = if name.starts_with("riscv64") { "riscv64" } else { name };
        Arch::ALL.into_iter().find(|arch| arch.name() == name).unwrap_or(Arch::Unknown)
    }
}

impl Spaces {
    /// One address space for all, with 64-bit addresses.
    pub const FLAT: Spaces = Spaces { generic: 8, others: &[] };

    /// Bytes of an address in a space.
    pub fn pointer_bytes(self, space: u8) -> u64 {
        self.others.iter().find(|other| other.0 == space).map_or(self.generic, |other| other.1)
    }
}

impl Target {
    /// A machine by its triple and CPU. Without a triple it is this machine. The CPU `native` is this machine's.
    pub fn new(triple: Option<&str>, cpu: Option<&str>) -> Target {
        let here = host_triple();
        let named = triple.unwrap_or(&here);
        let (first, rest) = named.split_once('-').unwrap_or((named, ""));
        let arch = Arch::of(first);
        let triple = match arch {
            Arch::Unknown => named.to_string(),
            _ => format!("{}-{rest}", arch.name()),
        };
        let is_native = arch == Arch::of(std::env::consts::ARCH) && system(named) == system(&here);
        let is = |part: &str| triple.contains(part);
        let c_abi = |structs, i32, u32| CAbi { structs, i32, u32 };
        let c_abi = match arch {
            Arch::X86_64 if !is("windows") => c_abi(Structs::SystemV, Extension::None, Extension::None),
            Arch::RiscV64 | Arch::LoongArch64 => c_abi(Structs::Unknown, Extension::Sign, Extension::Sign),
            Arch::PowerPc64Le => c_abi(Structs::Unknown, Extension::Sign, Extension::Zero),
            _ => c_abi(Structs::Unknown, Extension::None, Extension::None),
        };
        let object_format = match arch {
            Arch::Wasm64 => ObjectFormat::Wasm,
            _ if is("windows") => ObjectFormat::Coff,
            _ if is("darwin") || is("macos") => ObjectFormat::MachO,
            _ => ObjectFormat::Elf,
        };
        let is_x86 = arch == Arch::X86_64;
        let libmvec = is_x86 && triple.ends_with("linux-gnu");
        let target = Target {
            arch,
            is_native,
            spaces: Spaces::FLAT,
            tail_calls: matches!(arch, Arch::X86_64 | Arch::Aarch64) && !is("windows"),
            indirect_functions: is_x86 && (is("linux-gnu") || is("freebsd")),
            c_abi,
            object_format,
            cpu: None,
            vector_bits: LEAST_BITS,
            bmi2: false,
            vbmi: false,
            dq: false,
            vector_math: if libmvec { VectorMath::Libmvec } else { VectorMath::None },
            triple,
        };
        target.with_cpu(cpu)
    }

    /// This machine with another CPU.
    pub fn with_cpu(&self, cpu: Option<&str>) -> Target {
        let cpu = cpu.filter(|&cpu| cpu != "native" || !self.is_native);
        let (vector_bits, bmi2, vbmi, dq) = match (self.arch, cpu) {
            (Arch::X86_64, None) if self.is_native => host_registers(),
            (Arch::X86_64, Some(cpu)) => {
                let bits = vector_bits(self.arch.name(), cpu);
                (bits, bits > LEAST_BITS, cpus::has_vbmi(cpu), bits == 512 && cpus::has_dq(cpu))
            }
            (Arch::Aarch64, Some(cpu)) => (vector_bits(self.arch.name(), cpu), false, false, false),
            _ => (LEAST_BITS, false, false, false),
        };
        Target { cpu: cpu.map(String::from), vector_bits, bmi2, vbmi, dq, ..self.clone() }
    }

    /// Whether it is x86-64 with the AVX-512 F instructions.
    pub fn has_avx512(&self) -> bool {
        self.arch == Arch::X86_64 && self.vector_bits == 512
    }

    /// Whether it is 64-bit ARM with registers of SVE whose length is known.
    pub fn has_sve(&self) -> bool {
        self.arch == Arch::Aarch64 && self.vector_bits > LEAST_BITS
    }

    /// NVIDIA's GPU of an architecture such as `sm_90`. Code for one runs on all newer ones, as PTX.
    pub fn nvidia(gpu: &str) -> Target {
        Target::new(Some("nvptx64-nvidia-cuda"), Some(gpu))
    }

    /// AMD's GPU of an architecture such as `gfx90a`.
    pub fn amd(gpu: &str) -> Target {
        Target::new(Some("amdgcn-amd-amdhsa"), Some(gpu))
    }

    /// Whether the machine runs kernels that a host launches, and no programs of its own.
    pub fn is_gpu(&self) -> bool {
        matches!(self.arch, Arch::AmdGcn | Arch::Nvptx64)
    }

    /// The first part of the triple.
    pub fn arch_name(&self) -> &str {
        self.triple.split('-').next().unwrap_or("")
    }
}

/// This machine.
impl Default for Target {
    fn default() -> Target {
        Target::new(None, None)
    }
}

/// The operating system of a triple, as far as it decides whether its code runs here.
fn system(triple: &str) -> Option<&'static str> {
    ["linux", "darwin", "windows", "freebsd"].into_iter().find(|system| triple.contains(system))
}

fn host_triple() -> String {
    let system = match std::env::consts::OS {
        "linux" if cfg!(target_env = "musl") => "unknown-linux-musl",
        "linux" => "unknown-linux-gnu",
        "macos" => "apple-darwin",
        "windows" => "pc-windows-msvc",
        "freebsd" => "unknown-freebsd",
        _ => "unknown-unknown",
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// Width in bits of this processor's widest vector registers, and whether it has BMI2, AVX-512 VBMI, and AVX-512 DQ.
/// Detected, because a virtual machine may hide features that the CPU has by name.
#[cfg(target_arch = "x86_64")]
fn host_registers() -> (u32, bool, bool, bool) {
    let bits = match () {
        () if std::arch::is_x86_feature_detected!("avx512f") => 512,
        () if std::arch::is_x86_feature_detected!("avx2") => 256,
        () => LEAST_BITS,
    };
    let vl = std::arch::is_x86_feature_detected!("avx512vl");
    let vbmi = std::arch::is_x86_feature_detected!("avx512vbmi") && vl;
    let dq = std::arch::is_x86_feature_detected!("avx512dq") && vl;
    (bits, std::arch::is_x86_feature_detected!("bmi2"), vbmi, dq)
}

#[cfg(not(target_arch = "x86_64"))]
fn host_registers() -> (u32, bool, bool, bool) {
    (LEAST_BITS, false, false, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux(arch: Arch, cpu: Option<&str>) -> Target {
        Target::new(Some(&format!("{}-unknown-linux-gnu", arch.name())), cpu)
    }

    #[test]
    fn what_triples_say() {
        let of = |triple: &str| Target::new(Some(triple), None);
        let rust = of("riscv64gc-unknown-linux-gnu");
        assert_eq!((rust.arch, &*rust.triple), (Arch::RiscV64, "riscv64-unknown-linux-gnu"));
        assert_eq!((of("z80-unknown-none").arch, &*of("z80-unknown-none").triple), (Arch::Unknown, "z80-unknown-none"));
        let (glibc, musl) = (of("x86_64-unknown-linux-gnu"), of("x86_64-unknown-linux-musl"));
        assert_eq!([&glibc, &musl].map(|t| t.indirect_functions), [true, false]);
        assert_eq!([&glibc, &musl].map(|t| t.vector_math), [VectorMath::Libmvec, VectorMath::None]);
        assert_eq!([&glibc, &musl].map(|t| t.c_abi.structs), [Structs::SystemV; 2]);
        let windows = of("x86_64-pc-windows-gnu");
        assert!(!windows.tail_calls && !windows.indirect_functions);
        assert_eq!((windows.c_abi.structs, windows.object_format), (Structs::Unknown, ObjectFormat::Coff));
        assert_eq!(of("aarch64-apple-darwin").object_format, ObjectFormat::MachO);
        assert!(Arch::ALL.is_sorted_by_key(|arch| arch.name()));
        for arch in Arch::ALL {
            let target = linux(arch, None);
            assert_eq!((target.arch, target.arch_name()), (arch, arch.name()));
            assert_eq!(target.tail_calls, [Arch::X86_64, Arch::Aarch64].contains(&arch));
            assert_eq!(target.object_format == ObjectFormat::Wasm, arch == Arch::Wasm64);
            assert!((0..8).all(|space| target.spaces.pointer_bytes(space) == 8));
        }
    }

    #[test]
    fn this_machine() {
        let here = Target::default();
        assert!(here.is_native && here.cpu.is_none());
        assert_eq!(here, Target::new(None, Some("native")));
        assert_eq!(here, Target::new(Some(&here.triple), None));
        assert_eq!(here.with_cpu(Some("generic")).with_cpu(None), here);
        let foreign = if here.arch == Arch::Aarch64 { Arch::X86_64 } else { Arch::Aarch64 };
        assert!(!linux(foreign, None).is_native);
    }

    #[test]
    fn registers_of_cpus() {
        for (cpu, bits) in [
            ("x86-64", 128),
            ("x86-64-v2", 128),
            ("x86-64-v3", 256),
            ("x86-64-v4", 512),
            ("sandybridge", 128),
            ("bdver3", 128),
            ("bdver4", 256),
            ("haswell", 256),
            ("znver3", 256),
            ("sierraforest", 256),
            ("knl", 512),
            ("znver4", 512),
            ("sapphirerapids", 512),
        ] {
            let target = linux(Arch::X86_64, Some(cpu));
            let found = (target.vector_bits, target.bmi2, target.has_avx512());
            assert_eq!(found, (bits, bits >= 256, bits == 512), "{cpu}");
        }
        for arch in Arch::ALL.into_iter().filter(|arch| *arch != Arch::X86_64) {
            for cpu in cpus(arch.name()) {
                let target = linux(arch, Some(cpu));
                let bits = match cpu {
                    "neoverse-v1" => 256,
                    "a64fx" => 512,
                    _ => 128,
                };
                assert_eq!((target.vector_bits, target.bmi2, target.has_avx512()), (bits, false, false), "{cpu}");
                assert_eq!(target.has_sve(), bits > 128, "{cpu}");
            }
        }
    }

    #[test]
    fn widths_of_addresses() {
        use crate::types::{TyKind, Types};
        let mut types = Types::new();
        types.set_spaces(Spaces { generic: 8, others: &[(3, 4)] });
        let byte = types.prim(crate::Prim::U8);
        let generic = types.ptr(byte);
        let shared = types.intern(TyKind::Ptr { pointee: byte, space: 3 });
        let both = types.tuple(&[shared, generic, shared]);
        let sizes = [generic, shared, both].map(|ty| crate::layout::size_align(&types, ty));
        assert_eq!(sizes, [Some((8, 8)), Some((4, 4)), Some((24, 8))]);
    }
}

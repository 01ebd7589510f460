//! Functions compiled for several CPUs in one module: at load time, the best version that the machine can run is
//! chosen.
//!
//! Each function exists once for each CPU of the options, and calls functions of its own version. Statics exist once. If the program
//! depends on facts about its target, there is one module for each CPU, made of the same text: then each version has statics of its
//! own, which may differ. That is no difference to the program, since one process runs one version.
//! Functions that are reached from outside, by a symbol or through a static, are indirect functions (ELF's
//! `STT_GNU_IFUNC`):
//!
//! ```text
//! define internal i32 @"add.x86-64-v2"(i32 %a0, i32 %a1) #0 "target-cpu"="x86-64-v2" { … }
//! define internal i32 @"add.x86-64-v4"(i32 %a0, i32 %a1) #0 "target-cpu"="x86-64-v4" { … }
//! @"add" = ifunc void (), ptr @"nyala.choose.add"  ; the linker's loader calls this to know the address
//! ```
//!
//! Resolvers run before the module is relocated and before the C library is ready. So they call nothing from outside,
//! read no table of addresses, and are not optimized: LLVM might make such a table.

use crate::diagnostics::limitation;
use crate::options::Options;
use nyala_base::{Diagnostic, Span};
use nyala_ir::Target;
use std::fmt::Write;

/// The levels of x86-64 that its ABI defines, from the baseline up.
const LEVELS: [&str; 4] = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"];

/// The machine for each version of a module's functions, from the baseline up.
///
/// # Errors
/// The loader of the target cannot choose, or not among these CPUs.
pub fn versions(target: &Target, options: &Options) -> Result<Vec<Target>, Box<Diagnostic>> {
    if options.more_cpus.is_empty() {
        return Ok(vec![target.clone()]);
    }
    let limit = |message: String, hint: &str| Err(Box::new(limitation::error(Span::NONE, message, hint)));
    if !target.indirect_functions {
        let message = format!("the loader of `{}` cannot choose among functions for several CPUs", target.triple);
        return limit(message, "build for one CPU, or for x86-64 Linux with glibc, or FreeBSD");
    }
    let first = target.cpu.as_deref().unwrap_or("native");
    let cpus = || std::iter::once(first).chain(options.more_cpus.iter().map(String::as_str));
    let level = |cpu: &str| LEVELS.iter().position(|l| *l == cpu);
    if let Some(other) = cpus().find(|cpu| level(cpu).is_none()) {
        let message =
            format!("a program for several CPUs can choose among levels of x86-64 only, and `{other}` is none");
        return limit(message, "name some of `x86-64`, `x86-64-v2`, `x86-64-v3` and `x86-64-v4`");
    }
    let mut levels: Vec<usize> = cpus().filter_map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    Ok(levels.into_iter().map(|level| target.with_cpu(Some(LEVELS[level]))).collect())
}

/// CPU features to tell LLVM beyond the CPU's name.
pub(crate) fn tuning(cpu: &str) -> &'static str {
    // LLVM assumes the first machines of this level, where a gather was no faster than single loads. On newer ones it
    // is: 2.4 times from the first-level cache of a Sapphire Rapids, 1.2 times from the second.
    if cpu == "x86-64-v3" { "+fast-gather" } else { "" }
}

/// Text after the attributes of functions of this version; names the CPU only if there are several versions.
pub(crate) fn attributes(target: &Target, options: &Options, several: bool) -> String {
    let mut text = String::new();
    if let (true, Some(cpu)) = (several, &target.cpu) {
        let _ = write!(text, " \"target-cpu\"=\"{cpu}\" \"target-features\"=\"{}\"", tuning(cpu));
    }
    // Without a stated length of its registers LLVM uses SVE's instructions for no vector of a known number of lanes.
    if target.has_sve() {
        let units = target.vector_bits / 128;
        let _ = write!(text, " vscale_range({units},{units})");
    }
    if let Some(width) = options.vector_width {
        let _ = write!(text, " \"prefer-vector-width\"=\"{width}\"");
    }
    text
}

/// Emits an indirect function `name` for its best version. `versions` gives symbol and CPU of each, the baseline first,
/// which is the fallback. Names are quoted.
pub(crate) fn indirect(linkage: &str, name: &str, resolver: &str, versions: &[(String, &str)], out: &mut String) {
    let _ = writeln!(out, "{name} = {linkage}ifunc void (), ptr {resolver}");
    let _ = writeln!(out, "define internal ptr {resolver}() {OUTSIDE} {{\n  %level = call i32 @nyala.level()");
    let mut best = format!("ptr {}", versions.first().map_or("null", |v| &v.0));
    for (i, (symbol, cpu)) in versions.iter().enumerate().skip(1) {
        let level = LEVELS.iter().position(|l| l == cpu).unwrap_or(LEVELS.len());
        let _ = writeln!(out, "  %has{i} = icmp uge i32 %level, {level}");
        let _ = writeln!(out, "  %best{i} = select i1 %has{i}, ptr {symbol}, {best}");
        best = format!("ptr %best{i}");
    }
    let _ = writeln!(out, "  ret {best}\n}}\n");
}

/// Marks resolvers as used: LLVM keeps code that is reached from outside, from a variable's initializer, or from such
/// code, but does not see that the dynamic loader calls resolvers.
pub(crate) fn keep(resolvers: &[String], out: &mut String) {
    if !resolvers.is_empty() {
        let (n, all) = (resolvers.len(), resolvers.join(", "));
        let _ =
            writeln!(out, "@llvm.compiler.used = appending global [{n} x ptr] [{all}], section \"llvm.metadata\"\n");
    }
}

/// Attributes of functions that run on every machine, before anything is set up.
const OUTSIDE: &str = "nounwind noinline optnone \"target-cpu\"=\"x86-64\" \"target-features\"=\"\"";

const fn bits(numbers: &[u32]) -> u32 {
    let (mut all, mut i) = (0, 0);
    while i < numbers.len() {
        all |= 1 << numbers[i];
        i += 1;
    }
    all
}

/// Results of `cpuid` and `xgetbv`: ecx of leaf 1, ebx of leaf 7, ecx of leaf 0x80000001, and the registers that the
/// system saves.
const ANSWERS: [&str; 4] = ["%c1", "%b7", "%ce", "%xcr0"];

/// The bits of [`ANSWERS`] that each level needs beyond the one before. From the psABI of x86-64, table 3.1.
const NEEDED: [[u32; 4]; 3] = [
    // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF-SAHF.
    [bits(&[0, 9, 13, 19, 20, 23]), 0, bits(&[0]), 0],
    // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; XMM and YMM saved.
    [bits(&[12, 22, 27, 28, 29]), bits(&[3, 5, 8]), bits(&[5]), bits(&[1, 2])],
    // AVX512F, AVX512DQ, AVX512CD, AVX512BW, AVX512VL; mask registers and all of ZMM saved.
    [0, bits(&[16, 17, 28, 30, 31]), 0, bits(&[1, 2, 5, 6, 7])],
];

/// `nyala.level`: the machine's index in [`LEVELS`]. `cpuid` is slow in virtual machines, so the result is stored.
pub(crate) fn level_text() -> String {
    let mut text = String::from("@nyala.level.known = internal global i32 0\n\n");
    let _ = writeln!(text, "define internal i32 @nyala.level() {OUTSIDE} {{");
    text.push_str(ASK);
    let (mut has, mut level) = ("true".to_string(), "0".to_string());
    for (i, needed) in NEEDED.iter().enumerate() {
        for (j, (answer, bits)) in ANSWERS.iter().zip(needed).enumerate().filter(|(_, (_, bits))| **bits != 0) {
            let _ = writeln!(text, "  %and{i}.{j} = and i32 {answer}, {bits}");
            let _ = writeln!(text, "  %all{i}.{j} = icmp eq i32 %and{i}.{j}, {bits}");
            let _ = writeln!(text, "  %has{i}.{j} = and i1 {has}, %all{i}.{j}");
            has = format!("%has{i}.{j}");
        }
        let _ = writeln!(text, "  %one{i} = zext i1 {has} to i32\n  %level{i} = add i32 {level}, %one{i}");
        level = format!("%level{i}");
    }
    let _ = writeln!(text, "  %noted = add i32 {level}, 1\n  store i32 %noted, ptr @nyala.level.known");
    let _ = writeln!(text, "  ret i32 {level}\n}}\n");
    text
}

/// Leaves that a machine lacks return arbitrary values.
const ASK: &str = "\
  %known = load i32, ptr @nyala.level.known
  %is_known = icmp ne i32 %known, 0
  br i1 %is_known, label %done, label %ask
done:
  %before = sub i32 %known, 1
  ret i32 %before
ask:
  %leaf0 = call { i32, i32, i32, i32 } asm sideeffect \"cpuid\", \"={ax},={bx},={cx},={dx},{ax},{cx}\"(i32 0, i32 0)
  %leaf1 = call { i32, i32, i32, i32 } asm sideeffect \"cpuid\", \"={ax},={bx},={cx},={dx},{ax},{cx}\"(i32 1, i32 0)
  %leaf7 = call { i32, i32, i32, i32 } asm sideeffect \"cpuid\", \"={ax},={bx},={cx},={dx},{ax},{cx}\"(i32 7, i32 0)
  %ext0 = call { i32, i32, i32, i32 } asm sideeffect \"cpuid\", \"={ax},={bx},={cx},={dx},{ax},{cx}\"(i32 -2147483648, i32 0)
  %ext1 = call { i32, i32, i32, i32 } asm sideeffect \"cpuid\", \"={ax},={bx},={cx},={dx},{ax},{cx}\"(i32 -2147483647, i32 0)
  %max = extractvalue { i32, i32, i32, i32 } %leaf0, 0
  %has7 = icmp uge i32 %max, 7
  %maxe = extractvalue { i32, i32, i32, i32 } %ext0, 0
  %hase = icmp ugt i32 %maxe, -2147483648
  %c1 = extractvalue { i32, i32, i32, i32 } %leaf1, 2
  %any7 = extractvalue { i32, i32, i32, i32 } %leaf7, 1
  %b7 = select i1 %has7, i32 %any7, i32 0
  %anye = extractvalue { i32, i32, i32, i32 } %ext1, 2
  %ce = select i1 %hase, i32 %anye, i32 0
  %xsave = and i32 %c1, 134217728
  %has_xgetbv = icmp ne i32 %xsave, 0
  br i1 %has_xgetbv, label %xgetbv, label %decide
xgetbv:
  %saved = call { i32, i32 } asm sideeffect \"xgetbv\", \"={ax},={dx},{cx}\"(i32 0)
  %low = extractvalue { i32, i32 } %saved, 0
  br label %decide
decide:
  %xcr0 = phi i32 [ 0, %ask ], [ %low, %xgetbv ]
";

//! `--cpu`: names, and `nyala build` for several CPUs, of which the best is chosen when the code is loaded.

use crate::common::{Folder, RunToEnd, nyala, sh, skip_here, stderr};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = r#"
static mut CALLS = 0;
fn plus(a: i32, b: i32) -> i32 { a + b }
fn times(a: i32, b: i32) -> i32 { a * b }
static TABLE = [plus, times];
extern fn scale(n: i32, x: f32, a: &mut [f32]) -> () {
    CALLS++;
    for i in vectorize(16, 0, n) { a(i) = a(i) * x + 1.0f; }
}
extern fn apply(which: i32, a: i32, b: i32) -> i32 { CALLS++; TABLE(which)(a, b) }
extern fn total(n: i32) -> i32 {
    CALLS++;
    let mut parts = [0, .. 8];
    for k in par(0, 8) { for i in range(0, n) { parts(k) += i; } }
    let mut sum = 0;
    for k in range(0, 8) { sum += parts(k); }
    sum
}
extern fn calls() -> i32 { CALLS }
"#;

const C_PROGRAM: &str = r#"
#include "lib.h"
#include <stdio.h>

int32_t (*const pointer)(int32_t, int32_t, int32_t) = apply;

int main(void) {
    float a[40];
    for (int i = 0; i < 40; i++) a[i] = i;
    scale(40, 2, a);
    printf("%g %d %d", a[39], pointer(0, 3, 4), apply(1, 3, 4));
    printf(" %d", total(10));
    printf(" %d %d\n", calls(), pointer == apply);
    return 0;
}
"#;

const EXPECTED: &str = "79 7 12 360 4 1\n";

/// Prints where in a library its `scale` is that the loader has chosen. Further arguments are bits that `cpuid` shall say
/// at most, in the order of `leaves`; leaves 0 and 0x80000000 say which are there.
const CHOSEN: &str = r#"
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static const uint32_t leaves[5] = { 0, 0x80000000, 1, 7, 0x80000001 };
static uint32_t said[5][4];

static void answer(int signal, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)r[REG_RIP];
    if (at[0] != 0x0f || at[1] != 0xa2) _exit(4);
    for (int i = 0; i < 5; i++) {
        if ((uint32_t)r[REG_RAX] != leaves[i]) continue;
        r[REG_RAX] = said[i][0], r[REG_RBX] = said[i][1], r[REG_RCX] = said[i][2], r[REG_RDX] = said[i][3];
        r[REG_RIP] += 2;
        return;
    }
    // All other answers are the machine's.
    uint32_t a = r[REG_RAX], b, c = r[REG_RCX], d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __cpuid_count(a, c, a, b, c, d);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
    r[REG_RIP] += 2;
}

int main(int argc, char **argv) {
    if (argc > 2) {
        static const int of[5] = { 0, 0, 2, 1, 2 };
        for (int i = 0; i < 5; i++) {
            __cpuid_count(leaves[i], 0, said[i][0], said[i][1], said[i][2], said[i][3]);
            uint32_t most = strtoul(argv[2 + i], 0, 16);
            if (i < 2) { if (most < said[i][0]) said[i][0] = most; } else said[i][of[i]] &= most;
        }
        struct sigaction action = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO };
        sigaction(SIGSEGV, &action, 0);
        if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) return puts("cannot"), 0;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) return puts(dlerror()), 1;
    void *scale = dlsym(library, "scale");
    Dl_info info;
    if (!dladdr(scale, &info)) return 2;
    printf("%lx\n", (long)((char *)scale - (char *)info.dli_fbase));
    int (*rows)(void) = (int (*)(void))dlsym(library, "rows");
    if (rows) printf("%d\n", rows());
    return 0;
}
"#;

fn build(folder: &Folder, out: &str, more: &[&str]) -> Output {
    let (source, out) = (folder.path("lib.impala"), folder.path(out));
    let mut args: Vec<&OsStr> = vec!["build".as_ref(), source.as_os_str(), "-o".as_ref(), out.as_os_str()];
    args.extend(more.iter().map(OsStr::new));
    nyala(&args, 120)
}

fn build_well(folder: &Folder, out: &str, more: &[&str]) -> PathBuf {
    let output = build(folder, out, more);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    folder.path(out)
}

fn library(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("lib.impala", PROGRAM);
    folder.write("use.c", C_PROGRAM);
    build_well(&folder, "lib.h", &[]);
    folder
}

fn compile_c(folder: &Folder, source: &str, args: &[&OsStr]) -> PathBuf {
    let program = folder.path("c program");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-std=gnu11", "-o"]).arg(&program).arg(folder.path(source)).args(args);
    sh(&mut cc);
    program
}

fn run_with(folder: &Folder, args: &[&OsStr]) -> String {
    sh(&mut Command::new(compile_c(folder, "use.c", args)))
}

/// Which version of `scale` lies at an address that `CHOSEN` printed.
fn version_at(library: &Path, address: &str) -> String {
    let symbols = sh(Command::new("nm").arg(library));
    let address = u64::from_str_radix(address.trim(), 16).unwrap();
    let at = |line: &&str| line.split(' ').next().and_then(|a| u64::from_str_radix(a, 16).ok()) == Some(address);
    let line = symbols.lines().find(at).unwrap_or_else(|| panic!("nothing at {address:x}:\n{symbols}"));
    line.split("scale.").nth(1).unwrap_or(line).to_string()
}

#[test]
fn names_of_cpus_are_known() {
    let folder = library("names");
    let help = nyala(&["build".as_ref(), "--cpu".as_ref(), "help".as_ref()], 60);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(
        ["x86_64:", "aarch64:", " x86-64-v3", " znver4", " cortex-a72", " sifive-u74"].iter().all(|n| help.contains(n))
    );
    build_well(&folder, "known.o", &["--target", "x86_64-unknown-linux-gnu", "--cpu", "znver4"]);
    build_well(&folder, "known.o", &["--target", "aarch64-unknown-linux-gnu", "--cpu", "cortex-a72"]);
    build_well(&folder, "known.o", &["--cpu", "native"]);
    for (target, cpu, code, said) in [
        ("x86_64-unknown-linux-gnu", "sapphire-rapids", "unknown-cpu", "did you mean `sapphirerapids`?"),
        // A 32-bit processor, for which LLVM would end the process.
        ("x86_64-unknown-linux-gnu", "i686", "unknown-cpu", "--cpu help"),
        ("aarch64-unknown-linux-gnu", "x86-64-v3", "unknown-cpu", "there is no aarch64 CPU `x86-64-v3`"),
        ("aarch64-unknown-linux-gnu", "native", "unknown-cpu", "the CPU of this machine"),
        ("x86_64-unknown-linux-gnu", "x86-64-v2,x86-64v3", "unknown-cpu", "did you mean `x86-64-v3`?"),
        ("x86_64-unknown-linux-gnu", "x86-64-v2,znver4", "limitation", "and `znver4` is none"),
        (
            "x86_64-pc-windows-gnu",
            "x86-64-v2,x86-64-v3",
            "limitation",
            "cannot choose among functions for several CPUs",
        ),
        (
            "aarch64-unknown-linux-gnu",
            "generic,cortex-a72",
            "limitation",
            "cannot choose among functions for several CPUs",
        ),
    ] {
        if cpu == "native" && cfg!(target_arch = "aarch64") {
            continue;
        }
        let output = build(&folder, "unknown.o", &["--target", target, "--cpu", cpu]);
        let err = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains(&format!("error[{code}]")) && err.contains(said), "{err}");
        assert!(!folder.path("unknown.o").exists());
    }
    let program = folder.write("main.impala", "extern fn main() -> i32 { 0 }");
    let output = nyala(&["run".as_ref(), program.as_os_str(), "--cpu".as_ref(), "x86-64,x86-64-v2".as_ref()], 60);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[limitation]"), "{}", stderr(&output));
}

const FACTS: &str = "
use std::target::*;
static ROWS = if VECTOR_REGISTERS == 32 { 14 } else { 6 };
struct Row[const N: i32] { cells: [f32 * N] }
type Line = Row[{VECTOR_BYTES / 4}];
extern fn rows() -> i32 { ROWS }
extern fn bytes(_: &Line) -> i32 { sizeof[Line]() as i32 }
extern fn line() -> i32 { CACHE_LINE }
extern fn cache() -> i32 { L2_BYTES >> 10 }
fn main() -> i32 { print_i32(ROWS); print_i32(lanes_for[f32]()); print_i32(L1_BYTES); println(); 0 }
";

/// What `nyala` writes with these arguments and the program: its output and its messages.
fn said(program: &Path, args: &[&str]) -> (String, String) {
    let mut all: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    all.insert(1, program.as_os_str());
    let output = nyala(&all, 60);
    (String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

#[test]
fn programs_ask_what_their_target_is_like() {
    let folder = Folder::new("facts");
    let program = folder.write("facts.impala", FACTS);
    let x86 = "x86_64-unknown-linux-gnu";
    for (target, cpu, [rows, bytes, line, cache]) in [
        (x86, "x86-64", [6, 16, 64, 256]),
        (x86, "x86-64-v2", [6, 16, 64, 256]),
        (x86, "x86-64-v3", [6, 32, 64, 256]),
        (x86, "znver3", [6, 32, 64, 512]),
        (x86, "x86-64-v4", [14, 64, 64, 1024]),
        ("aarch64-unknown-linux-gnu", "generic", [14, 16, 64, 512]),
        ("aarch64-apple-darwin", "apple-m1", [14, 16, 128, 4096]),
        ("powerpc64le-unknown-linux-gnu", "pwr10", [6, 16, 128, 512]),
    ] {
        for more in [&[][..], &["--no-pe"]] {
            let args = ["emit", "--stage", "llvm", "--target", target, "--cpu", cpu];
            let (text, err) = said(&program, &[&args[..], more].concat());
            let of = |name: &str| {
                let at = text.find(&format!("@{name}(")).unwrap_or_else(|| panic!("{name}: {text}{err}"));
                text[at..].lines().map(str::trim).find_map(|l| l.strip_prefix("ret i32 ")).unwrap_or("").to_string()
            };
            let wanted = [rows, bytes, line, cache].map(|n: i32| n.to_string());
            assert_eq!(["rows", "bytes", "line", "cache"].map(of), wanted, "{target} {cpu} {more:?}");
            let told = "info[target-facts]: the program depends on CACHE_LINE, L1_BYTES, L2_BYTES, VECTOR_BYTES, VECTOR_REGISTERS of ";
            assert!(err.starts_with(&format!("{told}{cpu}")), "{err}");
        }
    }
}

#[test]
fn reductions_have_lanes_that_suit_the_cpu() {
    let folder = Folder::new("facts of reductions");
    let text = "use std::reduce::*;\nextern fn sum(n: i32, a: &[f32]) -> f32 { for i in native_reduce(0, n, 0f, |x, y| x + y) { a(i) } }
        fn main() -> i32 { print_i32(for i in native_reduce(0, 1000, 0, |x, y| x + y) { i * i % 7 }); 0 }";
    let program = folder.write("sum.impala", text);
    for (cpu, lanes) in [("x86-64-v2", 16), ("x86-64-v3", 32), ("x86-64-v4", 64)] {
        let args = ["emit", "--stage", "flat", "--target", "x86_64-unknown-linux-gnu", "--cpu", cpu];
        let (text, err) = said(&program, &args);
        // The iterations behind the whole vectors are counted by this remainder.
        assert!(text.contains(&format!("u64 = rem(r.1, {lanes}u64)")), "{cpu}: {text}{err}");
        assert_eq!(said(&program, &["run", "--engine", "interp", "--cpu", cpu]).0, "2001", "{cpu}");
    }
}

#[test]
fn the_interpreter_has_the_facts_of_one_cpu() {
    let folder = Folder::new("facts interpreted");
    let program = folder.write("facts.impala", FACTS);
    let run = |more: &[&str]| said(&program, &[&["run", "--engine", "interp"], more].concat());
    assert_eq!(run(&[]), ("6832768\n".into(), String::new()));
    assert_eq!(run(&["--cpu", "x86-64-v4"]), ("141632768\n".into(), String::new()));
    assert_eq!(run(&["-D", "VECTOR_REGISTERS=32"]), ("14832768\n".into(), String::new()));
    // Compiled code has those of its CPU, this one's without a name.
    let machine = nyala_ir::Target::default().facts();
    let (lanes, first) = (machine.vector_bytes / 4, machine.caches.first);
    let rows = if machine.vector_registers == 32 { 14 } else { 6 };
    for more in [&["run"][..], &["run", "--no-pe"], &["run", "-O0", "--cpu", "native"]] {
        assert_eq!(said(&program, more), (format!("{rows}{lanes}{first}\n"), String::new()));
    }
    let (out, err) = said(&program, &["check"]);
    assert!(
        out.is_empty() && err.starts_with("info[target-facts]") && err.contains(" of this machine ("),
        "{out}{err}"
    );
    assert!(said(&program, &["explain", "--cpu", "x86-64-v3"]).1.ends_with(" of x86-64-v3\n"));
    // A program that loads the library depends on what it uses.
    let other =
        folder.write("other.impala", "use std::target::*;\nfn main() -> i32 { if false { VECTOR_BYTES } else { 0 } }");
    assert_eq!(said(&other, &["check", "--cpu", "x86-64-v3"]).1.matches("info").count(), 1);
    let none = folder
        .write("none.impala", "use std::target::*;\nfn main() -> i32 { 0 }\nfn @unused() -> i32 { VECTOR_BYTES }");
    assert!(!said(&none, &["check", "--cpu", "x86-64-v3"]).1.contains("info"));
}

/// Callers know one type for all CPUs.
#[test]
fn signatures_do_not_depend_on_the_cpu() {
    let folder = Folder::new("facts of several");
    let target = ["--target", "x86_64-unknown-linux-gnu", "--cpu", "x86-64-v2,x86-64-v4"];
    let refused = |text: &str, out: &str| {
        folder.write("lib.impala", text);
        let output = build(&folder, out, &target);
        assert_eq!((output.status.code(), folder.path(out).exists()), (Some(1), false));
        stderr(&output)
    };
    let of = |what: &str| format!("error[fact-in-signature]: {what} depends on `VECTOR_BYTES` of `std::target`");
    let err = refused(FACTS, "lib.o");
    assert!(
        err.starts_with(&of("the type of the exported function `bytes`")) && err.contains("lib.impala:7:"),
        "{err}"
    );
    let err = refused(FACTS, "lib.h");
    assert!(err.starts_with(&of("the header of the program's functions")), "{err}");
    // The length of an array is part of a type of an equal name.
    let by_pointer = "use std::target::*; struct Row { next: &Row, cells: [f32 * VECTOR_BYTES] }
                      extern fn first(n: i32, row: &Row) -> f32 { if n > L1_BYTES { 0f } else { row.cells(0) } }";
    let err = refused(by_pointer, "lib.o");
    assert!(err.starts_with(&of("the type of the exported function `first`")), "{err}");
    let asserts = "use std::target::*;
                   extern fn f() -> i32 { static_assert(VECTOR_BYTES >= 32, \"wide\"); 0 }";
    let err = refused(asserts, "lib.o");
    assert!(err.contains("error[static-assert-failed]") && err.contains("in the version for `x86-64-v2`"), "{err}");
    // One CPU has one type.
    folder.write("lib.impala", FACTS);
    build_well(&folder, "lib.h", &["--cpu", "x86-64-v4"]);
    build_well(&folder, "lib.o", &["--target", "x86_64-unknown-linux-gnu", "--cpu", "x86-64-v4"]);
}

/// The bodies of loops without another label in them.
fn innermost_loops(assembly: &str) -> Vec<Vec<&str>> {
    let (mut loops, mut body, mut label) = (Vec::new(), Vec::new(), "");
    for line in assembly.lines() {
        if let Some(name) =
            line.strip_suffix(':').or_else(|| line.split_once(": ").map(|l| l.0)).filter(|n| n.starts_with(".L"))
        {
            (label, body) = (name, Vec::new());
            continue;
        }
        body.push(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() == 2 && words[0].starts_with('j') && words[1] == label {
            loops.push(std::mem::take(&mut body));
        }
    }
    loops
}

/// The sums of a tile of lesson 20 are in registers: its inner loop has a multiply-add for each, and only loads elements of A and B.
/// Lanes whose numbers another vector has are permuted by one instruction, not by way of memory; so `sort` does.
#[test]
fn lanes_are_permuted_in_registers() {
    let folder = Folder::new("permuted lanes");
    let program = |ty: &str, n: u32| {
        format!(
            "extern \"C\" {{ fn rv_shuffle[T](T, i32) -> T; }}\n\
             extern fn f(from: &[{ty}], to: &mut [{ty}], at: &[i32]) -> () {{\n\
             for i in vectorize({n}, 0, {n}) {{ to(i) = rv_shuffle[{ty}](from(i), at(i)) }}\n\
             }}\n"
        )
    };
    for (ty, n) in [("i32", 8), ("f32", 8), ("i64", 4), ("f64", 4)] {
        let file = folder.write("p.impala", program(ty, n));
        let args = ["emit", "--stage", "asm", "--target", "x86_64-unknown-linux-gnu", "--cpu", "x86-64-v3"];
        let (text, err) = said(&file, &args);
        assert!(text.contains("vperm") && !text.contains("%rsp"), "{ty}: {text}{err}");
    }
}

#[test]
fn tiles_fit_into_registers() {
    let lesson = crate::common::root().join("examples/20_matrix_product.impala");
    for (cpu, register, sums) in [("x86-64-v3", "%ymm", 12), ("x86-64-v4", "%zmm", 28)] {
        let args = ["emit", "--stage", "asm", "--target", "x86_64-unknown-linux-gnu", "--cpu", cpu];
        let (text, err) = said(&lesson, &args);
        let loops = innermost_loops(&text);
        let adds = |body: &[&str]| body.iter().filter(|l| l.contains("vfmadd") && l.contains(register)).count();
        let tiles: Vec<&Vec<&str>> = loops.iter().filter(|body| adds(body) >= sums).collect();
        // `sgemm` and `dgemm`, before and after C is prefetched.
        assert!(tiles.len() >= 4, "{cpu}: {}{err}", tiles.len());
        for body in tiles {
            let is_store = |l: &&&str| l.contains("vmov") && l.trim_end().ends_with(')');
            let spills = body.iter().filter(|l| l.contains("(%rsp") || l.contains("(%rbp")).count();
            assert_eq!(
                (body.iter().filter(is_store).count(), spills, adds(body) % sums),
                (0, 0, 0),
                "{cpu}: {}",
                body.join("\n")
            );
        }
    }
}

/// The code of an object for this processor, disassembled.
fn disassembly(folder: &Folder, cpu: &str, more: &[&str]) -> String {
    let target = ["--target", "x86_64-unknown-linux-gnu", "--cpu", cpu];
    let object = build_well(folder, "lib.o", &[&target[..], more].concat());
    sh(Command::new("objdump").arg("-d").arg(object))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn gathers_are_instructions_from_avx2_on() {
    let folder = Folder::new("gather");
    folder.write(
        "lib.impala",
        "extern fn f(n: i32, a: &[f32], at: &[i32], out: &mut [f32]) -> () {
             for i in vectorize(8, 0, n) { out(i) = a(at(i)); }
         }",
    );
    for (cpu, expected) in [("x86-64-v2", 0), ("x86-64-v3", 1), ("x86-64-v4", 1), ("x86-64-v2,x86-64-v3,x86-64-v4", 2)]
    {
        let text = disassembly(&folder, cpu, &[]);
        let functions = text.split("\n\n").filter(|f| f.contains("vgatherdps")).count();
        assert!(functions >= expected && (functions == 0) == (expected == 0), "{cpu}: {text}");
    }
}

#[test]
fn loops_are_as_wide_as_asked() {
    let folder = Folder::new("width");
    folder.write(
        "lib.impala",
        "extern fn f(n: i32, a: &mut [f32]) -> () { for i in range(0, n) { a(i) = a(i) * 2.0f; } }",
    );
    let registers = |more: &[&str]| {
        let text = disassembly(&folder, "sapphirerapids", more);
        (text.contains("%ymm"), text.contains("%zmm"))
    };
    if cfg!(target_arch = "x86_64") {
        assert_eq!(registers(&[]), (true, false));
        assert_eq!(registers(&["--prefer-vector-width", "128"]), (false, false));
        assert!(registers(&["--prefer-vector-width", "512"]).1);
    }
    assert_eq!(build(&folder, "lib.o", &["--prefer-vector-width", "100"]).status.code(), Some(2));
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod several {
    use super::*;

    const CPUS: [&str; 2] = ["--cpu", "x86-64,x86-64-v3,x86-64-v4"];

    /// The best of these that this machine can run.
    fn best(levels: &[&str]) -> String {
        use std::arch::is_x86_feature_detected as has;
        let v2 = has!("sse4.2") && has!("popcnt") && has!("cmpxchg16b");
        let v3 = v2 && has!("avx2") && has!("bmi2") && has!("fma") && has!("lzcnt") && has!("movbe") && has!("f16c");
        let v4 = v3 && has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
        let runs = [("x86-64", true), ("x86-64-v2", v2), ("x86-64-v3", v3), ("x86-64-v4", v4)];
        runs.iter().rfind(|(name, runs)| *runs && levels.contains(name)).map_or("", |r| r.0).to_string()
    }

    #[test]
    fn a_shared_library_has_each_function_for_each_cpu() {
        let folder = library("several shared");
        for options in [&["-O0"][..], &["-O3"], &["-O2", "-g"]] {
            let library = build_well(&folder, "liblib.so", &[options, &CPUS].concat());
            let rpath = format!("-Wl,-rpath,{}", folder.0.display());
            for more in ["-fpie", "-no-pie"] {
                assert_eq!(run_with(&folder, &[more.as_ref(), library.as_os_str(), rpath.as_ref()]), EXPECTED);
            }
            let exported = sh(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
            let mut names: Vec<&str> = exported.lines().filter_map(|l| l.split(' ').next_back()).collect();
            names.sort_unstable();
            assert_eq!(names, ["apply", "calls", "scale", "total"]);
            let all = sh(Command::new("nm").arg(&library));
            let has = |name: &str| all.lines().filter(|l| l.split(' ').next_back() == Some(name)).count();
            for cpu in ["x86-64", "x86-64-v3", "x86-64-v4"] {
                assert_eq!((has(&format!("scale.{cpu}")), has(&format!("apply.{cpu}"))), (1, 1), "{all}");
            }
            assert_eq!((has("static.CALLS"), has("static.TABLE")), (1, 1), "{all}");
        }
        let code = sh(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(folder.path("liblib.so")));
        for (cpu, has, has_not) in
            [("x86-64", "%xmm", "%ymm"), ("x86-64-v3", "%ymm", "%zmm"), ("x86-64-v4", "%zmm", "%mm")]
        {
            let of_function = code.split("\n\n").find(|f| f.contains(&format!("<scale.{cpu}>:"))).unwrap_or("");
            assert!(of_function.contains(has) && !of_function.contains(has_not), "{cpu}: {of_function}");
        }
    }

    /// A program that depends on facts is another one for each CPU.
    const WITH_FACTS: &str = "
use std::target::*;
static ROWS = if VECTOR_REGISTERS == 32 { 14 } else { 6 };
static TABLE_OF_ROWS = [ROWS, 100 * ROWS, VECTOR_BYTES];
static mut SUMS = [1, .. VECTOR_BYTES];
fn @(?n) lanes(n: i32) -> i32 { if n == 0 { VECTOR_BYTES } else { lanes(n - 1) } }
extern fn rows() -> i32 { ROWS * 1000 + lanes(3) }
extern fn row(i: i32) -> i32 { TABLE_OF_ROWS(i) }
extern fn sum(i: i32) -> i32 {
    let mut sum = 0;
    for k in range(0, VECTOR_BYTES) { sum += SUMS(k) }
    SUMS(i)++;
    sum
}
";

    #[test]
    fn each_version_has_its_own_facts() {
        let folder = library("several facts");
        let program = folder.write("lib.impala", format!("{PROGRAM}{WITH_FACTS}"));
        let levels = "x86-64-v4,x86-64-v2,x86-64-v3";
        // Main programs find it as any library, and functions in statics, callbacks and mutable statics work.
        for options in [&["-O0"][..], &["-O3"], &["-O2", "-g"]] {
            let library = build_well(&folder, "liblib.so", &[options, &["--cpu", levels]].concat());
            build_well(&folder, "lib.h", &["--cpu", levels]);
            let rpath = format!("-Wl,-rpath,{}", folder.0.display());
            assert_eq!(run_with(&folder, &["-fpie".as_ref(), library.as_os_str(), rpath.as_ref()]), EXPECTED);
        }
        let library = build_well(&folder, "liblib.so", &["--cpu", levels]);
        folder.write("chosen.c", CHOSEN);
        let chooser = compile_c(&folder, "chosen.c", &["-ldl".as_ref()]);
        let chosen = |bits: &[&str]| {
            let said = sh(Command::new(&chooser).arg(&library).args(bits));
            let (address, rows) = said.split_once('\n')?;
            Some((version_at(&library, address), rows.trim().to_string()))
        };
        let rows = |version: &str| match version {
            "x86-64-v2" => "6016",
            "x86-64-v3" => "6032",
            _ => "14064",
        };
        let best = best(&["x86-64-v2", "x86-64-v3", "x86-64-v4"]);
        assert_eq!(chosen(&[]), Some((best.clone(), rows(&best).into())));
        // A processor that can pretend to be another runs all.
        let all = "ffffffff";
        let (no_avx512vl, no_avx2) = (format!("{:x}", !(1u32 << 31)), format!("{:x}", !(1u32 << 5)));
        for (leaf7, version) in [(no_avx512vl, "x86-64-v3"), (no_avx2, "x86-64-v2")] {
            if best != "x86-64-v4" || sh(Command::new(&chooser).arg(&library).args([all; 5])) == "cannot\n" {
                skip_here("a processor with AVX-512, which can pretend to be another");
                return;
            }
            let found = chosen(&[all, all, all, &leaf7, all]);
            assert_eq!(found, Some((version.into(), rows(version).into())));
        }
        // What another machine would run, as text.
        let (text, err) = said(&program, &["emit", "--stage", "llvm", "--cpu", levels]);
        for version in ["x86-64-v2", "x86-64-v3", "x86-64-v4"] {
            let body = text.split("\ndefine ").find(|f| f.contains(&format!("@rows.{version}("))).unwrap_or("");
            assert!(body.contains(&format!("ret i32 {}", rows(version))), "{version}: {body}{err}");
        }
        let listed = |name: &str| text.lines().filter(|l| l.starts_with(&format!("@static.{name}."))).count();
        assert_eq!((listed("SUMS"), listed("TABLE_OF_ROWS")), (3, 3), "{text}");
    }

    #[test]
    fn objects_static_libraries_and_executables_too() {
        let folder = library("several static");
        let runtime = crate::common::command().with_file_name("libnyala_runtime.a");
        for level in ["-O0", "-O3"] {
            let object = build_well(&folder, "lib.o", &[&[level], &CPUS[..]].concat());
            for more in ["-fpie", "-no-pie"] {
                let args = [more.as_ref(), object.as_os_str(), runtime.as_os_str(), "-lm".as_ref()];
                assert_eq!(run_with(&folder, &args), EXPECTED);
            }
            let library = build_well(&folder, "liblib.a", &[&[level], &CPUS[..]].concat());
            assert_eq!(run_with(&folder, &[library.as_os_str(), "-lm".as_ref()]), EXPECTED);
        }
        let main = "extern fn main() -> i32 { print_i32(total(10)); apply(1, 6, 7) + calls() }";
        folder.write("lib.impala", format!("{PROGRAM}{main}"));
        for level in ["-O0", "-O3"] {
            let program = build_well(&folder, "program", &[&[level], &CPUS[..]].concat());
            let output = Command::new(program).run_to_end();
            assert_eq!((output.status.code(), &*output.stdout), (Some(44), &b"360"[..]));
        }
    }

    #[test]
    fn the_best_for_the_machine_is_chosen() {
        let folder = library("chosen");
        folder.write("chosen.c", CHOSEN);
        let program = compile_c(&folder, "chosen.c", &["-ldl".as_ref()]);
        let chosen = |library: &Path, bits: &[&str]| {
            let said = sh(Command::new(&program).arg(library).args(bits));
            if said == "cannot\n" { None } else { Some(version_at(library, &said)) }
        };
        // In any order, and if only one is there.
        for levels in [&["x86-64-v2", "x86-64-v4"][..], &["x86-64-v3", "x86-64"], &["x86-64-v2", "x86-64-v3", "x86-64"]]
        {
            let library = build_well(&folder, "liblib.so", &["--cpu", &levels.join(",")]);
            assert_eq!(chosen(&library, &[]), Some(best(levels)));
        }
        if best(&["x86-64-v4"]).is_empty() {
            skip_here("a processor with AVX-512, which can pretend to be another");
            return;
        }
        let library = build_well(&folder, "liblib.so", &["--cpu", "x86-64,x86-64-v2,x86-64-v3,x86-64-v4"]);
        let all = "ffffffff";
        let without = |bit: u32| format!("{:x}", !(1u32 << bit));
        let [no_sse42, no_fma, no_osxsave, no_avx2, no_avx512vl, no_lzcnt, no_lahf] =
            [20, 12, 27, 5, 31, 5, 0].map(without);
        // Leaf 0, leaf 0x80000000, ecx of leaf 1, ebx of leaf 7, ecx of leaf 0x80000001; the level.
        for (said, level) in [
            ([all, all, all, all, all], "x86-64-v4"),
            ([all, all, all, &no_avx512vl, all], "x86-64-v3"),
            ([all, all, all, &no_avx2, all], "x86-64-v2"),
            ([all, all, &no_fma, all, all], "x86-64-v2"),
            ([all, all, &no_osxsave, all, all], "x86-64-v2"),
            ([all, all, all, all, &no_lzcnt], "x86-64-v2"),
            (["6", all, all, all, all], "x86-64-v2"),
            ([all, all, &no_sse42, all, all], "x86-64"),
            ([all, all, all, all, &no_lahf], "x86-64"),
            ([all, "80000000", all, all, all], "x86-64"),
        ] {
            let Some(found) = chosen(&library, &said) else {
                skip_here("a processor that can hide what `cpuid` says");
                return;
            };
            assert_eq!(found, level, "{said:?}");
        }
    }
}

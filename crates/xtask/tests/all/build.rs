//! `nyala build`: what it makes is used by C and Rust programs, in folders with spaces in their names.

use crate::common::{Folder, RunToEnd, command, nyala, sh, skip, stderr};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = r#"
// A point
// of the plane.
struct Point { x: f32, y: f32 }
struct Shape { class: u8, corners: [Point * 3], next: &Shape, name: &[u8], sums: &mut [f64] }

// Sum of two numbers.
extern fn add(a: i32, b: i32) -> i32 { a + b }

// Doubles what `p` points to,
// and prints it.
extern fn twice(p: &mut i64) -> () { *p = *p * 2i64; print_i64(*p); print_char('\n') }
extern fn width(s: &Shape) -> f32 { s.corners(1).x - s.corners(0).x }
extern fn "odd.name" odd(n: u8) -> bool { n % 2u8 == 1u8 }
"#;

const C_PROGRAM: &str = r#"
#include "shapes.h"
#include <stdio.h>

int main(void) {
    int64_t n = 21;
    struct Shape shape = { 1, { { 1.0f, 0.0f }, { 3.5f, 0.0f } }, 0, 0, 0 };
    twice(&n);
    printf("%d %ld %g %d %d\n", add(40, 2), (long)n, width(&shape), odd_name(3), odd_name(4));
    return 0;
}
"#;

const EXPECTED: &str = "42\n42 42 2.5 1 0\n";

fn build(folder: &Folder, source: &str, out: &str, more: &[&str]) -> Output {
    let (source, out) = (folder.path(source), folder.path(out));
    let mut args: Vec<&OsStr> = vec!["build".as_ref(), source.as_os_str(), "-o".as_ref(), out.as_os_str()];
    args.extend(more.iter().map(OsStr::new));
    nyala(&args, 120)
}

fn build_well(folder: &Folder, source: &str, out: &str, more: &[&str]) -> PathBuf {
    let output = build(folder, source, out, more);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    folder.path(out)
}

/// What is made of equal sources does not depend on the folder or the cache, and has no path of the machine in it.
#[test]
fn the_same_bytes_in_another_folder() {
    let text = "static mut calls: i32 = 0;
extern fn sum(n: i32, a: &[f32]) -> f32 {
    let mut total = 0f32;
    for i in range(0, n) { total += a(i) }
    calls += 1;
    assert(n < 1000);
    total
}
fn main() -> i32 { let a = [1f32, .. 8]; sum(8, &a) as i32 - 8 }
";
    let folders = [Folder::new("bytes"), Folder::new("bytes of another folder")];
    let made = |folder: &Folder, out: &str, more: &[&str]| {
        folder.write("p.impala", text);
        // As users do, with names from the folder.
        let mut command = Command::new(command());
        let verb = if more.first() == Some(&"--stage") { "emit" } else { "build" };
        command.current_dir(&folder.0).args([verb, "p.impala", "-o", out]).args(more);
        let output = command.run_to_end();
        assert!(output.status.success(), "{out}: {}", stderr(&output));
        std::fs::read(folder.path(out)).unwrap()
    };
    for (out, more) in [
        ("p", &[][..]),
        ("p.a", &[]),
        ("p.so", &[]),
        ("p.h", &[]),
        ("p.c", &["--stage", "c"]),
        ("checked.o", &["-O0", "--check"]),
    ] {
        let [a, b] = folders.each_ref().map(|folder| made(folder, out, more));
        assert!(a == b, "{out} differs");
        let name = folders[0].0.file_name().unwrap().as_encoded_bytes();
        assert!(!a.windows(name.len()).any(|w| w == name), "{out} has the folder's name");
    }
}

fn shapes(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("shapes.impala", PROGRAM);
    folder.write("use shapes.c", C_PROGRAM);
    build_well(&folder, "shapes.impala", "shapes.h", &[]);
    folder
}

fn compile_c(folder: &Folder, library: &[&OsStr]) -> String {
    let program = folder.path("c program");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-std=c11", "-o"]).arg(&program).arg(folder.path("use shapes.c")).args(library);
    sh(&mut cc);
    sh(&mut Command::new(program))
}

/// Continuations of a loop's rounds, stored and called after it.
const EXITS: &str = r#"
fn each(n: i32, body: fn(i32) -> ()) -> () { if n > 0 { each(n - 1, body); body(n) } }
fn table(n: i32, which: i32) -> i32 {
    let mut exits: [fn(i32) -> ! * 8];
    let mut i = 0;
    let mut made = 0;
    while i < n {
        let y = i * 10 + made;
        exits(i) = |x| -> ! return(x + y);
        made += i;
        i++;
    }
    each(which + 1, |k| if k == which + 1 { exits(which)(1000) });
    0
}
fn main() -> () { for which in range(0, 8) { print_i32(table(8, which)); print_char('\n') } }
"#;

#[test]
fn continuations_keep_the_values_of_their_round() {
    let folder = Folder::new("exits");
    folder.write("exits.impala", EXITS);
    for options in [&["-O0"][..], &["-O3"], &["-O0", "--no-pe"], &["-O3", "--no-pe"]] {
        let program = build_well(&folder, "exits.impala", "exits", options);
        assert_eq!(sh(&mut Command::new(program)), "1000\n1010\n1021\n1033\n1046\n1060\n1075\n1091\n");
    }
}

#[test]
fn a_c_program_uses_a_shared_library() {
    let folder = shapes("shared");
    for level in ["-O0", "-O3"] {
        let library = build_well(&folder, "shapes.impala", "libshapes.so", &[level]);
        let rpath = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
        assert_eq!(compile_c(&folder, &[library.as_os_str(), rpath.as_ref()]), EXPECTED);
        let symbols = sh(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
        let mut names: Vec<&str> = symbols.lines().filter_map(|l| l.split(' ').next_back()).collect();
        names.sort_unstable();
        assert_eq!(names, ["add", "odd.name", "twice", "width"]);
    }
}

#[test]
fn a_c_program_uses_objects_and_static_libraries() {
    let folder = shapes("static");
    let runtime = crate::common::command().with_file_name("libnyala_runtime.a");
    for level in ["-O0", "-O3"] {
        let object = build_well(&folder, "shapes.impala", "shapes.o", &[level]);
        assert_eq!(compile_c(&folder, &[object.as_os_str(), runtime.as_os_str(), "-lm".as_ref()]), EXPECTED);
        let library = build_well(&folder, "shapes.impala", "libshapes.a", &[level]);
        assert_eq!(compile_c(&folder, &[library.as_os_str()]), EXPECTED);
        let symbols = sh(Command::new("nm").args(["-g", "--defined-only"]).arg(&library));
        let mut names: Vec<&str> = symbols.lines().filter(|l| l.contains(" T ")).map(|l| &l[19..]).collect();
        names.sort_unstable();
        assert_eq!(names, ["add", "odd.name", "twice", "width"]);
    }
}

#[test]
fn a_rust_program_uses_two_static_libraries() {
    let folder = Folder::new("rust static");
    folder.write("one.impala", "extern fn one(n: i32) -> i32 { print_i32(n); print_char('\\n'); n + 1 }");
    folder.write("two.impala", "extern fn two(n: i32) -> i32 { print_f64(n as f64 / 2.0); print_char('\\n'); n * 2 }");
    let main = folder.write(
        "main.rs",
        "#[link(name = \"one\", kind = \"static\")] unsafe extern \"C\" { safe fn one(n: i32) -> i32; }\n\
         #[link(name = \"two\", kind = \"static\")] unsafe extern \"C\" { safe fn two(n: i32) -> i32; }\n\
         fn main() { assert_eq!(two(one(20)), 42); std::thread::spawn(|| one(1)).join().unwrap(); }\n",
    );
    build_well(&folder, "one.impala", "libone.a", &[]);
    build_well(&folder, "two.impala", "libtwo.a", &[]);
    assert_eq!(rust(&folder, &main), "20\n10.5\n1\n");
}

#[test]
fn a_rust_program_uses_a_shared_library() {
    let folder = Folder::new("rust shared");
    folder.write("one.impala", "extern fn one(n: i32) -> i32 { print_i32(n); print_char('\\n'); n + 1 }");
    let main = folder.write(
        "main.rs",
        "#[link(name = \"one\")] unsafe extern \"C\" { safe fn one(n: i32) -> i32; }\nfn main() { assert_eq!(one(41), 42); }\n",
    );
    build_well(&folder, "one.impala", "libone.so", &[]);
    assert_eq!(rust(&folder, &main), "41\n");
}

fn rust(folder: &Folder, main: &Path) -> String {
    let program = folder.path("rust program");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-o"]).arg(&program).arg(main).arg("-L").arg(folder.path(""));
    sh(&mut rustc);
    sh(Command::new(program).env("LD_LIBRARY_PATH", folder.path("")))
}

#[test]
fn headers_suit_c_and_cpp_and_keep_comments() {
    let folder = shapes("header");
    let text = std::fs::read_to_string(folder.path("shapes.h")).unwrap();
    let expected = r#"#ifndef NYALA_SHAPES_H
#define NYALA_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Shape Shape;
typedef struct Point Point;

#ifndef NYALA_Point_d83176e0
#define NYALA_Point_d83176e0
// A point
// of the plane.
struct Point {
    float x;
    float y;
};
#endif

#ifndef NYALA_Shape_fd8583fe
#define NYALA_Shape_fd8583fe
struct Shape {
    uint8_t class_;
    struct Point corners[3];
    const struct Shape *next;
    const uint8_t *name;
    double *sums;
};
#endif

// Sum of two numbers.
int32_t add(int32_t a, int32_t b);

// Doubles what `p` points to,
// and prints it.
void twice(int64_t *p);

float width(const struct Shape *s);

bool odd_name(uint8_t n) __asm__("odd.name");

#ifdef __cplusplus
}
#endif

#endif // NYALA_SHAPES_H
"#;
    assert_eq!(text, expected);
    let source = folder
        .write("twice.c", "#include \"shapes.h\"\n#include \"shapes.h\"\nShape s; int main(void) { return 0; }\n");
    for (compiler, language, standard) in [("cc", "c", "-std=c11"), ("g++", "c++", "-std=c++17")] {
        let mut check = Command::new(compiler);
        sh(check.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", standard, "-x", language]).arg(&source));
    }
}

#[test]
fn symbols_may_have_any_name() {
    let folder = Folder::new("symbols");
    let odd = r#"odd "name" #1;*"#;
    let text =
        format!("extern fn {odd:?} f(n: i32) -> i32 {{ print_i32(n); n }}\nextern fn g(n: i32) -> i32 {{ n }}\n");
    folder.write("p.impala", text.replacen("extern fn", "fn", 1));
    for (out, option) in [("p.so", "-D"), ("p.a", "-g"), ("p.o", "-g")] {
        let file = build_well(&folder, "p.impala", out, &[]);
        let symbols = sh(Command::new("nm").args([option, "--defined-only"]).arg(file));
        let mut names: Vec<&str> = symbols.lines().filter_map(|l| l.split_once(" T ").map(|s| s.1)).collect();
        names.sort_unstable();
        assert_eq!(names, ["g", odd], "{out}");
    }
}

#[test]
fn executables_get_arguments_and_a_large_stack() {
    let folder = Folder::new("executable");
    folder.write(
        "p.impala",
        "fn sum(n: i32) -> i32 { if n == 0 { 0 } else { n % 3 + sum(n - 1) * 1 } }\n\
         fn main(argc: i32, argv: &[&[u8]]) -> i32 { print_string(argv(argc - 1)); print_i32(sum(1000000 * argc)); 300 }\n",
    );
    for level in ["-O0", "-O3"] {
        let program = build_well(&folder, "p.impala", "a program", &[level]);
        let output = Command::new(&program).arg("last").run_to_end();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "last2000001");
        assert_eq!(output.status.code(), Some(300 & 255));
    }
    folder.write("unit.impala", "fn main() -> () { print_i32(1) }");
    let output = Command::new(build_well(&folder, "unit.impala", "unit", &[])).run_to_end();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"1"[..]));
}

#[test]
fn executables_run_without_standard_streams() {
    let folder = Folder::new("closed");
    folder.write(
        "p.impala",
        "use std::files::*;\nfn main(argc: i32, argv: &[&[u8]]) -> i32 {\n\
         if argc > 1 { print_string(\"lost\") }\nif read_stdin().size <= 0i64 { 7 } else { 8 }\n}\n",
    );
    let program = build_well(&folder, "p.impala", "a program", &[]);
    for (script, code) in [("exec \"$0\" <&- >&- 2>&-", 7), ("exec \"$0\" print <&- >&- 2>&-", 1)] {
        let output = Command::new("sh").args(["-c", script]).arg(&program).run_to_end();
        assert_eq!(output.status.code(), Some(code), "{script}");
    }
}

#[test]
fn executables_report_output_that_is_lost() {
    let folder = Folder::new("lost");
    folder.write(
        "p.impala",
        "extern \"C\" { fn exit(i32) -> (); fn nyala_exit(i32) -> (); }\n\
         fn main(argc: i32, argv: &[&[u8]]) -> i32 {\n\
         if argc > 1 { for i in range(0, 100000) { print_i32(i) } }\n\
         if argc > 2 { exit(0) }\nif argc > 3 { nyala_exit(0) }\n7\n}\n",
    );
    let program = build_well(&folder, "p.impala", "a program", &[]);
    let shell = |script: &str| {
        let output = Command::new("bash").args(["-c", script]).arg(&program).run_to_end();
        (output.status.code(), stderr(&output))
    };
    let full = "error: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!(shell("\"$0\" >/dev/full"), (Some(7), String::new()));
    for args in ["a", "a b", "a b c"] {
        assert_eq!(shell(&format!("\"$0\" {args} >/dev/full")), (Some(1), full.into()), "{args}");
        // The second one holds where a closed pipe ends no process, as below some servers.
        for ignored in ["", "trap '' PIPE; "] {
            let script = format!("{ignored}\"$0\" {args} | true; exit ${{PIPESTATUS[0]}}");
            assert_eq!(shell(&script), (Some(141), String::new()), "{ignored}{args}");
        }
    }
}

#[test]
fn what_is_built_goes_where_the_name_leads() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new("led");
    folder.write("p.impala", "fn main() -> i32 { 7 }\n");
    let (kept, other, link) = (folder.write("kept", "old"), folder.path("other"), folder.path("link"));
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::hard_link(&kept, &other).unwrap();
    symlink("kept", &link).unwrap();
    let program = build_well(&folder, "p.impala", "link", &[]);
    assert!(link.is_symlink());
    assert_eq!(Command::new(program).run_to_end().status.code(), Some(7));
    assert_eq!((kept.metadata().unwrap().mode() & 0o7777, other.metadata().unwrap().nlink()), (0o700, 2));
    // A program that runs is replaced.
    let sleep = folder.path("sleep");
    std::fs::copy("/bin/sleep", &sleep).unwrap();
    let mut running = Command::new(&sleep).arg("60").spawn().unwrap();
    build_well(&folder, "p.impala", "sleep", &[]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(Command::new(sleep).run_to_end().status.code(), Some(7));
    symlink("/dev/null", folder.path("null.o")).unwrap();
    build_well(&folder, "p.impala", "null.o", &[]);
    assert!(folder.path("null.o").is_symlink());
}

#[test]
fn executables_call_the_functions_of_anydsl() {
    let folder = Folder::new("anydsl");
    folder.write(
        "p.impala",
        "extern \"C\" { fn anydsl_print_f64(f64) -> (); fn anydsl_random_seed(u32) -> (); fn anydsl_random_val_f32() -> f32; }
         fn main() -> i32 { anydsl_random_seed(1u32); anydsl_print_f64(anydsl_random_val_f32() as f64); 0 }",
    );
    let output = Command::new(build_well(&folder, "p.impala", "p", &[])).run_to_end();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0.417022");
}

#[test]
fn executables_are_linked_with_objects() {
    let folder = Folder::new("linked");
    folder.write("p.impala", "extern \"C\" { fn seven() -> i32; }\nfn main() -> i32 { seven() }\n");
    let c = folder.write("seven.c", "int seven(void) { return 7; }\n");
    let object = folder.path("seven.o");
    sh(Command::new("cc").arg("-c").arg(c).arg("-o").arg(&object));
    let program = build_well(&folder, "p.impala", "p", &[object.to_str().unwrap()]);
    assert_eq!(Command::new(program).run_to_end().status.code(), Some(7));

    let output = build(&folder, "p.impala", "q", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[undefined-symbol]"), "{}", stderr(&output));
    assert!(stderr(&output).contains("nobody defines `seven`"), "{}", stderr(&output));
    assert!(stderr(&output).contains("p.impala:1:17"), "{}", stderr(&output));
    assert!(!folder.path("q").exists());
}

#[test]
fn objects_for_other_machines() {
    let folder = shapes("cross");
    // The field `e_machine` of ELF's header.
    for (target, machine) in [
        ("aarch64-unknown-linux-gnu", 183),
        ("riscv64gc-unknown-linux-gnu", 243),
        ("loongarch64-unknown-linux-gnu", 258),
        ("powerpc64le-unknown-linux-gnu", 21),
        ("x86_64-unknown-linux-gnu", 62u16),
    ] {
        for level in ["-O0", "-O3"] {
            let object = build_well(&folder, "shapes.impala", "cross.o", &["--target", target, level]);
            let bytes = std::fs::read(object).unwrap();
            assert_eq!(&bytes[..4], b"\x7fELF");
            assert_eq!(u16::from_le_bytes([bytes[18], bytes[19]]), machine, "{target}");
        }
    }
    for (target, out, code) in [
        ("i686-unknown-linux-gnu", "cross.o", "unknown-target"),
        ("nonsense", "cross.o", "unknown-target"),
        ("aarch64-unknown-linux-gnu", "cross.so", "no-linker"),
    ] {
        let output = build(&folder, "shapes.impala", out, &["--target", target]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("error[{code}]")), "{}", stderr(&output));
    }
}

#[test]
fn debug_information_names_functions_and_lines() {
    let folder = shapes("debug");
    for level in ["-O0", "-O3"] {
        let object = build_well(&folder, "shapes.impala", "shapes.o", &[level, "-g"]);
        let lines = sh(Command::new("readelf").arg("--debug-dump=decodedline").arg(&object));
        let stands = |file: &str, line: &str| {
            lines.lines().any(|l| l.contains(file) && l.split_whitespace().nth(1) == Some(line))
        };
        // `twice` and, after it, `width`.
        assert!(stands("shapes.impala", "12") && stands("shapes.impala", "13"), "{lines}");
        let names = sh(Command::new("readelf").arg("--debug-dump=info").arg(&object));
        assert!(["add", "twice", "width"].iter().all(|n| names.contains(n)), "{names}");
        let plain = std::fs::read(build_well(&folder, "shapes.impala", "plain.o", &[level])).unwrap();
        assert!(plain.len() < std::fs::read(object).unwrap().len());
    }
}

#[test]
fn native_code_is_kept_between_runs() {
    let folder = Folder::new("native cache");
    let program = folder.write("p.impala", "static N = 42;\nfn main() -> i32 { print_i32(N); N }\n");
    let cache = folder.path("cache");
    let run = |args: &[&str]| {
        let mut command = Command::new(crate::common::command());
        command.env("XDG_CACHE_HOME", &cache).env_remove("HOME").args(&args[..1]);
        let output = if args[0] == "cache" {
            command.args(&args[1..]).run_to_end()
        } else {
            command.arg(&program).args(&args[1..]).run_to_end()
        };
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), out, stderr(&output))
    };
    let entries = || {
        run(&["cache"])
            .1
            .lines()
            .next()
            .unwrap()
            .split(": ")
            .last()
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse::<usize>()
            .unwrap()
    };
    let ran = (Some(42), "42".to_string(), String::new());
    let compiled = |args: &[&str]| {
        let mut all = vec!["run", "--time-passes"];
        all.extend(args);
        let (code, out, err) = run(&all);
        assert_eq!((code, out.is_empty()), (if args.contains(&"-D") { Some(7) } else { Some(42) }, false));
        err.contains("llvm-codegen")
    };
    assert_eq!(run(&["run", "--no-cache"]), ran);
    assert_eq!(entries(), 0);
    assert!(compiled(&[]));
    assert!(!compiled(&[]));
    assert_eq!(entries(), 1);
    assert!(compiled(&["--no-cache"]));
    // Everything that the code depends on makes another entry.
    assert!(compiled(&["-O1"]));
    assert!(compiled(&["-D", "N=7"]));
    assert!(compiled(&["--cpu", "x86-64"]) || cfg!(not(target_arch = "x86_64")));
    assert_eq!(entries(), if cfg!(target_arch = "x86_64") { 4 } else { 3 });
    // Entries that were damaged are as if not there.
    for entry in std::fs::read_dir(cache.join("nyala/native")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(compiled(&[]));
    assert!(!compiled(&[]));
    assert!(run(&["cache", "--clear"]).1.starts_with("removed"));
    assert_eq!(entries(), 0);
    // A folder that cannot be made.
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::write(&cache, "a file").unwrap();
    assert_eq!(run(&["run"]), ran);
}

#[test]
fn the_runtime_defines_every_function_that_programs_may_call() {
    let runtime = crate::common::command().with_file_name("libnyala_runtime.a");
    let symbols = sh(Command::new("nm").args(["-g", "--defined-only"]).arg(runtime));
    let defined: Vec<&str> = symbols.lines().filter_map(|l| l.split(" T ").nth(1)).collect();
    for (name, _) in nyala_runtime::symbols().iter().filter(|s| s.0.contains('_')) {
        assert!(defined.contains(name), "`{name}` is not in the static library");
    }
}

#[test]
fn calls_that_may_not_be_jumps_are_warned_of() {
    let folder = Folder::new("tail calls");
    let program = "extern fn even(n: i32) -> bool { if n == 0 { true } else { odd(n - 1) } }\n\
                   extern fn odd(n: i32) -> bool { if n == 0 { false } else { even(n - 1) } }\n";
    folder.write("p.impala", program);
    for (target, warned) in [("riscv64gc-unknown-linux-gnu", true), ("aarch64-unknown-linux-gnu", false)] {
        let output = build(&folder, "p.impala", "p.o", &["--target", target]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output).contains("warning[tail-call-not-guaranteed]"), warned, "{}", stderr(&output));
    }
}

#[test]
fn a_library_with_a_version_is_a_shared_library() {
    let folder = shapes("version");
    let library = build_well(&folder, "shapes.impala", "libshapes.so.1.2", &[]);
    let header = std::fs::read(&library).unwrap();
    // Bytes 16 and 17 of an ELF file are its type; 3 is a shared object.
    assert_eq!((&header[..4], header[16]), (&b"\x7fELF"[..], 3));
    let program =
        folder.write("use.impala", "extern { fn add(a: i32, b: i32) -> i32; } fn main() -> i32 { add(40, 2) - 42 }");
    let exe = folder.path("use it");
    let args = ["build".as_ref(), program.as_os_str(), library.as_os_str(), "-o".as_ref(), exe.as_os_str()];
    let output = nyala(&args, 120);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let ran = Command::new(&exe).env("LD_LIBRARY_PATH", &folder.0).run_to_end();
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
}

/// A library without exported functions is empty: that is said, and an error if it is denied.
#[test]
fn a_library_of_nothing_is_warned_of() {
    let folder = Folder::new("empty");
    let source = "fn square(x: i32) -> i32 { x * x }\nfn main() -> i32 { square(2) - 4 }\n";
    folder.write("p.impala", source);
    for out in ["p.so", "p.a"] {
        let output = build(&folder, "p.impala", out, &[]);
        let err = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(err.contains("warning[no-exports]: the program exports no function"), "{out}: {err}");
        assert!(err.contains("p.impala:1:4") && err.contains("write `extern fn square(…)`"), "{out}: {err}");
        let output = build(&folder, "p.impala", out, &["--deny", "no-exports"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        std::fs::remove_file(folder.path(out)).unwrap();
    }
    // An object of a program has its `main`.
    build_well(&folder, "p.impala", "p.o", &[]);
    build_well(&folder, "p.impala", "p", &[]);
    folder.write("p.impala", source.replacen("fn", "extern fn", 1));
    build_well(&folder, "p.impala", "p.so", &[]);
}

/// The listings of docs/by-hand.md: the library, its header, ctypes, Rust.
#[test]
fn libraries_are_called_by_hand() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/by-hand.md")).unwrap();
    let listing = |language: &str| {
        let fence = format!("```{language}\n");
        let rest = &page[page.find(&fence).expect(language) + fence.len()..];
        &rest[..rest.find("```").expect("an end")]
    };
    let folder = Folder::new("by hand");
    folder.write("stats.impala", listing("rust impala"));
    build_well(&folder, "stats.impala", "libstats.so", &[]);
    let header = std::fs::read_to_string(build_well(&folder, "stats.impala", "stats.h", &[])).unwrap();
    for line in listing("c").lines() {
        assert!(header.contains(line), "{line}: {header}");
    }
    let main = folder.write("main.rs", listing("rust"));
    rust(&folder, &main);
    let script = folder.write("stats.py", listing("python"));
    match Command::new("python3").arg("-c").arg("import ctypes").output() {
        Ok(done) if done.status.success() => drop(sh(Command::new("python3").current_dir(folder.path("")).arg(script))),
        _ => skip("Python with ctypes"),
    }
}

#[test]
fn what_cannot_be_built_is_an_error() {
    let folder = shapes("faults");
    let fails = |out: &str, more: &[&str], code: &str| {
        let output = build(&folder, "shapes.impala", out, more);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("error[{code}]")), "{out}: {}", stderr(&output));
    };
    fails("no such folder/a.o", &[], "cannot-write");
    fails("no such folder/a.so", &[], "cannot-write");
    fails("program", &[], "no-entry");
    let with = |variable: &str, value: &str| {
        let mut command = Command::new(crate::common::command());
        command.arg("build").arg(folder.path("shapes.impala")).arg("-o").arg(folder.path("a.so"));
        let output = command.env(variable, value).run_to_end();
        assert_eq!(output.status.code(), Some(1));
        stderr(&output)
    };
    assert!(with("CC", "no-such-compiler").contains("error[no-linker]: cannot run `no-such-compiler`"));
    assert!(with("CC", "false").contains("error[link-failed]"));
    assert!(with("NYALA_RUNTIME", "/nowhere").contains("error[runtime-not-found]"));
}

#[test]
fn lesson_9_is_called_from_c() {
    let folder = Folder::new("lesson 9");
    for name in ["09_called_from_c.impala", "09_called_from_c.c"] {
        std::fs::copy(crate::common::root().join("examples").join(name), folder.path(name)).unwrap();
    }
    let library = build_well(&folder, "09_called_from_c.impala", "libpoly.so", &[]);
    build_well(&folder, "09_called_from_c.impala", "poly.h", &[]);
    let program = folder.path("poly");
    sh(Command::new("cc")
        .args(["-Wall", "-Werror", "-std=c11", "-I"])
        .arg(&folder.0)
        .arg(folder.path("09_called_from_c.c"))
        .arg("-o")
        .arg(&program)
        .arg(&library)
        .arg("-Wl,-rpath,$ORIGIN"));
    assert_eq!(sh(&mut Command::new(&program)), "1 0 11 46 -0.25\n");
    // The lesson's own `main` is not in the way.
    let library = build_well(&folder, "09_called_from_c.impala", "libpoly.a", &[]);
    sh(Command::new("cc")
        .arg("-I")
        .arg(&folder.0)
        .arg(folder.path("09_called_from_c.c"))
        .arg("-o")
        .arg(&program)
        .args([library.as_os_str(), "-lm".as_ref(), "-lpthread".as_ref(), "-ldl".as_ref()]));
    assert_eq!(sh(&mut Command::new(&program)), "1 0 11 46 -0.25\n");
}

/// What the C program of a lesson prints, with the lesson's library and header of this name.
fn printed_by_lesson(lesson: &str, name: &str) -> String {
    let folder = Folder::new(lesson);
    let [source, program_source] = ["impala", "c"].map(|end| format!("{lesson}.{end}"));
    for file in [&source, &program_source] {
        std::fs::copy(crate::common::root().join("examples").join(file), folder.path(file)).unwrap();
    }
    let library = build_well(&folder, &source, &format!("lib{name}.so"), &[]);
    build_well(&folder, &source, &format!("{name}.h"), &[]);
    let program = folder.path(name);
    sh(Command::new("cc")
        .args(["-Wall", "-Werror", "-std=c11", "-I"])
        .arg(&folder.0)
        .arg(folder.path(&program_source))
        .arg("-o")
        .arg(&program)
        .arg(&library)
        .arg("-Wl,-rpath,$ORIGIN"));
    sh(&mut Command::new(&program))
}

#[test]
fn lesson_21_traces_rays_for_c() {
    assert_eq!(
        printed_by_lesson("21_rays_for_c", "rays"),
        "made: 0\n2247 hits, 2247 occluded, 0 wrong; first three: -1 -1 -1\n2 2 1 1 3 0 and nothing is hit: -1\n"
    );
}

#[test]
fn lesson_22_aligns_for_c() {
    assert_eq!(
        printed_by_lesson("22_alignment_for_c", "alignment"),
        "scored: 0, 0 wrong; first three: 100 91 87\n\
         aligned: 0, score 15, 2-14 with 1-12, 7=1I4=\n\
         nothing: 0, score 0, ``\n\
         1 0 1 1 2 2 1 2 3 3\n"
    );
}

#[test]
fn headers_have_the_structs_of_imported_functions() {
    let folder = Folder::new("imports");
    folder.write(
        "p.impala",
        "struct Inner { x: i32 }
         // A ray.
         struct Ray { org: [f32 * 3], inner: &Inner }
         struct Hit[T] { t: T }
         extern \"C\" { fn trace(&[Ray], i32) -> Hit[f32]; fn \"none\" quiet() -> (); }
         extern fn go(n: i32) -> f32 { let r = Ray { org: [1f, 2f, 3f], inner: Inner { x: n } }; trace([r], n).t }
         extern fn jump(n: i32, return: fn(i32) -> !) -> ! { return(n + 1) }\n",
    );
    let text = std::fs::read_to_string(build_well(&folder, "p.impala", "p.h", &[])).unwrap();
    assert!(text.contains("// A ray.\nstruct Ray {") && text.contains("struct Inner {"), "{text}");
    assert!(text.contains("int32_t jump(int32_t n);"), "{text}");
    let c = "#include \"p.h\"
        struct Hit_f32 trace(const struct Ray *rays, int32_t n) { return (Hit_f32) { rays[0].org[1] + rays[0].inner->x + n }; }
        int main(void) { return go(4) == 10.0f && jump(6) == 7 ? 0 : 1; }\n";
    let c = folder.write("main.c", c);
    let library = build_well(&folder, "p.impala", "p.a", &[]);
    let program = folder.path("a program");
    sh(Command::new("cc").arg("-o").arg(&program).arg(c).arg(library).args(["-lm", "-lpthread", "-ldl"]));
    sh(&mut Command::new(program));
}

#[test]
fn headers_have_only_symbols_that_c_can_name() {
    let folder = Folder::new("unnamed");
    for (symbol, is_named) in
        [("a.b", true), ("ä$", true), ("int", true), ("a b", false), ("a\\\"b", false), ("3", false)]
    {
        folder.write("p.impala", format!("fn \"{symbol}\" f(n: i32) -> i32 {{ n }}\n"));
        if is_named {
            build_well(&folder, "p.impala", "p.h", &[]);
            let c = folder.write("use.c", "#include \"p.h\"\n");
            sh(Command::new("cc").args(["-c", "-Wall", "-Werror", "-o"]).arg(folder.path("use.o")).arg(c));
        } else {
            let output = build(&folder, "p.impala", "q.h", &[]);
            assert_eq!(output.status.code(), Some(1), "{symbol}");
            assert!(stderr(&output).contains("error[bad-symbol]: C has no name"), "{}", stderr(&output));
        }
    }
}

#[test]
fn tuples_and_arrays_cross_to_c() {
    let folder = Folder::new("tuples");
    folder.write(
        "p.impala",
        "extern \"C\" { fn swapped((i32, f32)) -> (f32, i32); fn thrice([i64 * 3]) -> [i64 * 3]; }
        extern fn words(n: i32) -> (i32, f32) { (n, n as f32 + 0.5f) }
        extern fn floats(x: f64) -> (f64, f32, f32) { (x, x as f32 + 1f, x as f32 + 2f) }
        extern fn mixed(n: i64) -> (f64, i64) { (n as f64, n + 1i64) }
        extern fn small(n: u8) -> (bool, u8, i16) { (n > 3u8, n + 1u8, -2i16) }
        extern fn large(a: i32, n: i64) -> (i64, bool, f64, [u8 * 3]) { (n + a as i64, true, 2.5, [1u8, 2u8, n as u8]) }
        extern fn nested(n: i32) -> ((i32, i32), [(u8, i32) * 1]) { ((n, n + 1), [(7u8, n + 2)]) }
        extern fn four(n: i32) -> [i32 * 4] { [n, n + 1, n + 2, n + 3] }
        extern fn three(x: f32) -> [f32 * 3] { [x, x + 1f, x + 2f] }
        extern fn rows(n: i32) -> [[i16 * 2] * 5] { let n = n as i16; [[n, 1i16], [n, 2i16], [n, 3i16], [n, 4i16], [n, 5i16]] }
        extern fn sum(a: (i32, f32), b: [f64 * 2], c: [i32 * 5]) -> f64 { a(0) as f64 + a(1) as f64 + b(0) + b(1) + c(0) as f64 + c(4) as f64 }
        extern fn back(n: i32) -> (f32, i32) { swapped(words(n)) }
        extern fn again(n: i64) -> i64 { let a = thrice([n, 1i64, 2i64]); a(0) + a(2) }
        extern fn calls(n: i32) -> i32 { let (a, b) = words(n); let c = four(n); a + b as i32 + c(3) }\n",
    );
    build_well(&folder, "p.impala", "p.h", &[]);
    // The header of another library may have the same tuples.
    folder.write("q.impala", "extern fn other(x: f32) -> (f64, (i32, f32)) { (1.5, (2, x)) }\n");
    build_well(&folder, "q.impala", "q.h", &[]);
    let c = "#include \"p.h\"
        #include \"q.h\"
        #define IS(x) if (!(x)) return __LINE__;
        struct tuple_f32_i32 swapped(struct tuple_i32_f32 x) { struct tuple_f32_i32 r = { x._1, x._0 }; return r; }
        struct array_i64_3 thrice(struct array_i64_3 x) { for (int i = 0; i < 3; i++) x.elements[i] *= 3; return x; }
        int main(void) {
            IS(words(3)._0 == 3 && words(3)._1 == 3.5f)
            IS(floats(1)._0 == 1 && floats(1)._1 == 2 && floats(1)._2 == 3)
            IS(mixed(5)._0 == 5 && mixed(5)._1 == 6)
            IS(small(9)._0 && small(9)._1 == 10 && small(9)._2 == -2 && !small(1)._0)
            IS(large(1, 6)._0 == 7 && large(1, 6)._1 && large(1, 6)._2 == 2.5 && large(1, 6)._3[2] == 6)
            IS(nested(4)._0._1 == 5 && nested(4)._1[0]._0 == 7 && nested(4)._1[0]._1 == 6)
            IS(four(2).elements[0] == 2 && four(2).elements[3] == 5)
            IS(three(2).elements[0] == 2 && three(2).elements[2] == 4)
            IS(rows(8).elements[4][0] == 8 && rows(8).elements[4][1] == 5)
            IS(sum(words(1), (struct array_f64_2) { { 4, 5 } }, (struct array_i32_5) { { 1, 0, 0, 0, 2 } }) == 14.5)
            IS(back(2)._0 == 2.5f && back(2)._1 == 2 && again(4) == 18 && calls(1) == 6)
            return 0;
        }\n";
    let c = folder.write("main.c", c);
    // By LLVM, and by way of C text.
    let library = build_well(&folder, "p.impala", "p.a", &[]);
    let text = folder.path("p.c");
    let source = folder.path("p.impala");
    let args: [&OsStr; 6] =
        ["emit".as_ref(), "--stage".as_ref(), "c".as_ref(), "-o".as_ref(), text.as_ref(), source.as_ref()];
    let output = nyala(&args, 120);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for code in [library, text] {
        for level in ["-O0", "-O2"] {
            let program = folder.path("program");
            let options = ["-Wall", "-Wno-psabi", level, "-o"];
            sh(Command::new("cc").args(options).args([&program, &c, &code]).args(["-lm", "-lpthread", "-ldl"]));
            sh(&mut Command::new(&program));
        }
    }
}

#[test]
fn functions_of_functions_do_not_cross_to_c() {
    let folder = Folder::new("functions");
    let takes = "extern fn apply(x: i32, f: fn(fn(i32) -> i32) -> i32) -> i32 { f(|y| x + y) }";
    let gives = "extern fn adder(n: i32) -> fn(i32) -> i32 { |x| x + n }";
    for (text, what) in [(takes, "a parameter"), (gives, "the result")] {
        folder.write("p.impala", text);
        for out in ["p.h", "p.so", "p.a", "p.o"] {
            let output = build(&folder, "p.impala", out, &[]);
            assert_eq!(output.status.code(), Some(1), "{out}");
            assert!(stderr(&output).contains(&format!("error[not-in-c]: {what}")), "{}", stderr(&output));
            assert!(stderr(&output).contains("cannot be passed to C") && !folder.path(out).exists());
        }
    }
    // Nobody calls an executable's functions.
    folder.write("exe.impala", format!("{takes}\nfn main() -> i32 {{ apply(2, |f| f(1)) - 3 }}"));
    sh(&mut Command::new(build_well(&folder, "exe.impala", "exe", &[])));
}

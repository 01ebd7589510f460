//! Debuggers and profilers with programs of ours: gdb, valgrind, perf. What `-g` describes is tested without them by `debugging` of
//! the command's crate.

use crate::common::{Folder, RunToEnd, command, sh, skip, skip_here, stderr};
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "\
struct Pixel { r: f32, g: f32 }
static mut count: i32 = 0;
fn scale(p: Pixel, by: f32) -> Pixel {
    count += 1; print_f32(by); print_i32(count);
    Pixel { r: p.r * by, g: p.g * by }
}
fn @each(n: i32, body: fn(i32) -> ()) -> () {
    let mut at = 0;
    while at < n {
        body(at);
        at += 1;
    }
}
fn total(n: i32, a: &[i32]) -> i32 {
    let mut sum = 0;
    for i in each(n) {
        let x = a(i);
        sum += x;
        print_i32(sum);
    }
    sum
}
fn @inner(x: i32) -> i32 { print_i32(x); x }
fn @middle(x: i32) -> i32 { inner(x + 1) }
fn outer(x: i32) -> i32 { middle(x * 2) }
fn main(argc: i32, argv: &[&[u8]]) -> i32 {
    let values = [3, 4, 5];
    let t = total(argc + 2, &values);
    let p = scale(Pixel { r: t as f32, g: 2f }, argc as f32);
    print_f32(p.r + p.g);
    outer(argc)
}
";

/// Whether a tool is here; if not, the test is skipped.
fn is_here(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    if !is_here {
        skip(tool);
    }
    is_here
}

/// What gdb says to commands.
fn gdb(program: &[&str], commands: &[&str]) -> String {
    let start = ["set pagination off", "set confirm off", "set breakpoint pending on", "set debuginfod enabled off"];
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-quiet"]);
    start.iter().chain(commands).for_each(|c| {
        gdb.args(["-ex", c]);
    });
    let out = gdb.arg("--args").args(program).run_to_end();
    format!("{}{}", String::from_utf8_lossy(&out.stdout), stderr(&out))
}

fn build(folder: &Folder, text: &str, args: &[&str]) -> PathBuf {
    let (source, program) = (folder.write("p.impala", text), folder.path("p"));
    sh(Command::new(command()).arg("build").args(args).arg(&source).arg("-o").arg(&program));
    program
}

fn has(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing in:\n{said}");
    }
}

const SESSION: &[&str] = &[
    "break p.impala:18",
    "run",
    "info locals",
    "info args",
    "continue",
    "print sum",
    "delete",
    "break p.impala:23",
    "continue",
    "backtrace 4",
];

#[test]
fn gdb_shows_variables_and_unfolded_calls() {
    if !is_here("gdb") {
        return;
    }
    for level in ["0", "3"] {
        let folder = Folder::new("gdb");
        let program = build(&folder, PROGRAM, &["-g", "-O", level]);
        let said = gdb(&[program.to_str().unwrap()], SESSION);
        has(&said, &["total (n=3", "i = 0", "n = 3"]);
        // Optimized code has these in memory only, if at all.
        has(
            &said,
            if level == "0" { &["x = 3", "$1 = 3", "middle (x=2)", "outer (x=1)", "main (argc=1"] } else { &[] },
        );
        has(&said, &["inner (x=3)", "#1  middle (", "#2  outer (", "#3  main ("]);
    }
}

#[test]
fn gdb_shows_structs_statics_and_sets_variables() {
    if !is_here("gdb") {
        return;
    }
    let folder = Folder::new("gdb");
    let session = [
        "break nyala_print_f32",
        "run",
        "up",
        "print p",
        "print by",
        "print count",
        "set variable count = 77",
        "delete",
        "continue",
    ];
    let program = build(&folder, PROGRAM, &["-g", "-O", "0"]);
    let said = gdb(&[program.to_str().unwrap()], &session);
    has(&said, &["$1 = {r = 12, g = 2}", "$2 = 1", "$3 = 1", "77"]);
}

const SUMS: &str = "\
fn sums(a: &[i32], n: i32, to: &mut [i32]) -> () {
    let mut s = 0;
    for i in range(0, n) {
        to(i) = s;
        s += a(i)
    }
    to(n) = s
}
fn main() -> i32 {
    let n = 10;
    let (a, to) = (alloc[i32](10), alloc[i32](11));
    for i in range(0, n) { a(i) = i }
    sums(a, n, to);
    to(n)
}
";

/// Addresses are computed before loops; the lines that need them are not reached there.
#[test]
fn gdb_stops_at_a_line_when_it_runs() {
    if !is_here("gdb") {
        return;
    }
    let folder = Folder::new("gdb");
    let program = build(&folder, SUMS, &["-g", "-O", "0", "--no-pe"]);
    let session = ["break p.impala:7", "run", "print s", "print n"];
    has(&gdb(&[program.to_str().unwrap()], &session), &["$1 = 45", "$2 = 10"]);
}

/// An argument that is the same constant in all calls is no parameter of the code.
#[test]
fn gdb_shows_an_argument_that_all_calls_share() {
    if !is_here("gdb") {
        return;
    }
    let text = "\
fn at(a: &[i32], n: i32) -> i32 {
    let x = a(n);
    print_i32(x);
    x + n
}
fn main(argc: i32, argv: &[&[u8]]) -> i32 {
    let values = [3, 4, 5, 6];
    at(&values, argc) + at(&values, argc + 1)
}
";
    let folder = Folder::new("gdb");
    let program = build(&folder, text, &["-g", "-O", "0", "--no-pe"]);
    let session = ["break p.impala:3", "run", "print a[n + 2]", "info args"];
    has(&gdb(&[program.to_str().unwrap()], &session), &["$1 = 6", "n = 1"]);
}

#[test]
fn gdb_knows_code_in_memory() {
    if !is_here("gdb") {
        return;
    }
    let folder = Folder::new("gdb");
    let (source, command) = (folder.write("p.impala", PROGRAM), command());
    let run = [command.to_str().unwrap(), "run", "-g", "--no-cache", source.to_str().unwrap()];
    has(&gdb(&run, &SESSION[..6]), &["total (n=3", "i = 0", "n = 3"]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn valgrind_shows_lines_and_calls() {
    let text = "\
fn sum_to(a: &[i32], n: i32) -> i32 {
    let mut s = 0;
    for i in range(0, n) { s += a(i) }
    s
}
extern \"C\" { fn malloc(i64) -> &mut [i32]; }
fn main(argc: i32, argv: &[&[u8]]) -> i32 {
    let a = malloc((argc * 40) as i64);
    for i in range(0, 10) { a(i) = i }
    print_i32(sum_to(a, argc + 10));
    0
}
";
    if !is_here("valgrind") {
        return;
    }
    let folder = Folder::new("valgrind");
    let out = Command::new("valgrind").arg("-q").arg(build(&folder, text, &["-g", "--cpu", "x86-64-v3"])).run_to_end();
    has(&stderr(&out), &["Invalid read of size 4", "sum_to (p.impala:3)", "main (p.impala:10)"]);
}

#[test]
fn perf_knows_functions_and_lines_in_memory() {
    let text = "\
fn @step(x: u32) -> u32 { x * 1664525u + 1013904223u ^ (x >> 7u) }
fn spin(n: i32) -> u32 {
    let mut x = 1u;
    let mut i = 0;
    while i < n { x = step(x); i += 1 }
    x
}
fn main() -> () { print_i32(spin($60000000) as i32) }
";
    if !is_here("perf") {
        return;
    }
    let folder = Folder::new("perf");
    folder.write("p.impala", text);
    let perf = |args: &[&str]| {
        let mut perf = Command::new("perf");
        perf.args(args).current_dir(&folder.0);
        perf
    };
    let command = command();
    // Few samples: the lines of those in the compiler and in LLVM are looked up, too, which takes most of the time.
    let record = ["record", "-q", "-F", "200", "-k", "mono", "-e", "cpu-clock", "-o", "a", command.to_str().unwrap()];
    let out = perf(&[&record[..], &["run", "-g", "--jitdump", ".", "p.impala"]].concat()).run_to_end();
    if stderr(&out).contains("perf_event_paranoid") {
        return skip_here("perf, which is forbidden");
    }
    sh(&mut perf(&["inject", "--jit", "-i", "a", "-o", "b"]));
    let said = sh(&mut perf(&["report", "-i", "b", "--stdio", "--sort", "symbol,srcline"]));
    has(&said, &["[.] main", "p.impala:"]);
}

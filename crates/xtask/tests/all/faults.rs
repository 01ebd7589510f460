//! How a program's own faults in machine code are reported: under `nyala run` a report with function and line, in executables
//! a report and the signal.

use crate::common::{Folder, RunToEnd, command, nyala, sh, stderr};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const PROGRAM: &str = r#"fn deep(n: i32) -> i32 {
    if n == 0 { 0 } else {
        1 + deep(n + 1) % 7
    }
}
fn wild(p: &mut [i32], i: i64) -> () {
    p(i) = 7;
}
fn divide(a: i32, b: i32) -> i32 {
    a / b
}
extern "C" { fn strlen(&[u8]) -> i64; }
fn foreign(address: i64) -> i32 {
    strlen(address as &[u8]) as i32
}
fn main(argc: i32, argv: &[&[u8]]) -> i32 {
    print_string("before");
    let what = argv(1)(0);
    if what == 'o' {
        deep(argc)
    } else if what == 'w' {
        wild((argc as i64 - 2i64) as &mut [i32], 1234i64);
        0
    } else if what == 'f' {
        foreign(argc as i64)
    } else if what == 'd' {
        divide(100, argc - 2)
    } else if what == 't' {
        let h = spawn(|| { print_i32(deep(argc)) });
        sync(h);
        0
    } else if what == 'p' {
        for i in par(0, 100) { if i == 77 { print_i32(deep(argc)); } }
        0
    } else {
        42
    }
}
"#;

/// Argument; signal; what the report says, and where; what that of an executable says.
const FAULTS: &[(&str, i32, &str, &str, &str)] = &[
    ("overflow", 11, "error[stack-overflow]: stack overflow in `deep`", "p.impala:3", "stack overflow"),
    ("wild", 11, "error[wild-access]: wild memory access in `", "p.impala:7", "wild memory access at address 0x1348"),
    ("wild", 11, "cannot access address 0x1348", "p.impala:7", "wild memory access"),
    ("foreign", 11, "in a foreign function called by `", "p.impala:14", "wild memory access at address 0x2"),
    ("thread", 11, "error[stack-overflow]: stack overflow in `deep`", "p.impala:3", "stack overflow"),
    ("parallel", 11, "error[stack-overflow]: stack overflow in `deep`", "p.impala:3", "stack overflow"),
    #[cfg(target_arch = "x86_64")]
    ("divide", 8, "error[division-fault]: division by zero", "p.impala:10", "division by zero"),
];

#[test]
fn faults_are_reported_with_function_and_line() {
    let folder = Folder::new("faults");
    let path = folder.write("p.impala", PROGRAM);
    for level in ["-O0", "-O3"] {
        let run = |what: &str| {
            let args = [
                "run".as_ref(),
                "--no-cache".as_ref(),
                level.as_ref(),
                path.as_os_str(),
                "--".as_ref(),
                OsStr::new(what),
            ];
            nyala(&args, 60)
        };
        assert_eq!(run("nothing").status.code(), Some(42));
        for (what, signal, about, place, _) in FAULTS {
            let output = run(what);
            let err = stderr(&output);
            assert_eq!(output.status.code(), Some(128 + signal), "{level} {what}: {err}");
            assert!(err.contains(about) && err.contains(place), "{level} {what}: {err}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "before");
        }
    }
}

#[test]
fn executables_say_what_fault_they_end_with() {
    let folder = Folder::new("faults of executables");
    let (path, program) = (folder.write("p.impala", PROGRAM), folder.path("p"));
    for level in ["-O0", "-O3"] {
        sh(Command::new(command()).args(["build", level, "-o"]).arg(&program).arg(&path));
        for (what, signal, _, _, about) in FAULTS {
            let output = Command::new(&program).arg(what).run_to_end();
            let err = stderr(&output);
            assert_eq!(output.status.signal(), Some(*signal), "{level} {what}: {err}");
            assert!(err.starts_with(&format!("error: {about}")), "{level} {what}: {err}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "before");
        }
    }
}

/// Programs that do something undefined after which LLVM leaves nothing: an access behind the end, an overflow, a null pointer.
const UNDEFINED: &[(&str, &str)] = &[
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let n = 100;\n    let (a, b) = (alloc[i32](n as i64), alloc[i32](n as i64));\n    for i in range(0, n) { a(i) = i }\n    for i in range(0, n) { let mut sum = 0; for k in range(i, i + 4) { sum += a(k) } b(i) = sum }\n    print_i32(b(0));\n    0\n}\n",
        "p.impala:5",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut i = argc;\n    while i >= 0 { i += 1 }\n    print_i32(i);\n    0\n}\n",
        "p.impala:3",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let p = 0i64 as &mut i32;\n    if argc > 0 {\n        print_i32(1);\n        *p = 5;\n        print_i32(2)\n    }\n    0\n}\n",
        "p.impala:",
    ),
];

#[test]
fn where_only_something_undefined_leads_to_a_program_stops() {
    let folder = Folder::new("undefined");
    let program = folder.path("p");
    for (text, place) in UNDEFINED {
        let path = folder.write("p.impala", text);
        for level in ["-O2", "-O3"] {
            let output = nyala(&["run".as_ref(), "--no-cache".as_ref(), level.as_ref(), path.as_os_str()], 60);
            let err = stderr(&output);
            assert!(matches!(output.status.code(), Some(132 | 133)), "{level} {text}: {err}");
            assert!(
                err.contains("error[undefined-code]: undefined code was reached in `main`"),
                "{level} {text}: {err}"
            );
            assert!(err.contains(place) && output.stdout.len() < 2, "{level} {text}: {err}");
        }
        sh(Command::new(command()).args(["build", "-o"]).arg(&program).arg(&path));
        let output = Command::new(&program).run_to_end();
        assert!(matches!(output.status.signal(), Some(4 | 5)), "{text}: {}", stderr(&output));
        let err = stderr(&output);
        assert!(err.starts_with("error: undefined code was reached in `main`, "), "{text}: {err}");
        assert!(err.contains(place), "{text}: {err}");
    }
}

#[test]
fn an_illegal_instruction_of_a_library_is_reported_with_its_caller() {
    let folder = Folder::new("illegal");
    let path = folder
        .write("p.impala", "extern \"C\" { fn gives_up() -> (); }\nfn main() -> i32 {\n    gives_up();\n    0\n}\n");
    let (c, library) = (folder.write("c.c", "void gives_up(void) { __builtin_trap(); }\n"), folder.path("libc.so"));
    sh(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(c));
    let args = ["run".as_ref(), "--no-cache".as_ref(), path.as_os_str(), "--load".as_ref(), library.as_os_str()];
    let output = nyala(&args, 60);
    let err = stderr(&output);
    // Elsewhere a trap is another signal.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(output.status.code(), Some(132), "{err}");
        assert!(err.contains("error[illegal-instruction]: illegal instruction in a foreign function called by `main`"));
        assert!(err.contains("p.impala:3"), "{err}");
    }
}

#[test]
fn signals_from_outside_are_no_faults_of_the_program() {
    let folder = Folder::new("sent");
    let path = folder.write("p.impala", "extern \"C\" { fn raise(i32) -> i32; }\nfn main() -> i32 { raise(11) }\n");
    let output = nyala(&["run".as_ref(), "--no-cache".as_ref(), path.as_os_str()], 60);
    assert_eq!((output.status.signal(), stderr(&output)), (Some(11), String::new()));
}

#[test]
fn faults_are_data_where_that_is_asked_for() {
    let folder = Folder::new("faults as data");
    let path = folder.write("p.impala", PROGRAM);
    let args = ["run", "--json", "--no-cache"].map(OsStr::new);
    let output = nyala(&[&args[..], &[path.as_os_str(), "--".as_ref(), "wild".as_ref()]].concat(), 60);
    let err = stderr(&output);
    assert!(err.starts_with("{\"severity\":\"error\",\"code\":\"wild-access\""), "{err}");
    assert!(err.contains("\"line\":7"), "{err}");
}

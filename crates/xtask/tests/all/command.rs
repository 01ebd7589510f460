//! The command `nyala` met with bad input, missing and corrupt files, and folders with spaces in their names.

use crate::common::{Folder, RunToEnd, command, end, nyala, own_cache, root, stderr};
use std::path::Path;
use std::process::{Command, Stdio};

/// The program is checked: errors or none, within seconds.
fn check(name: &str, text: impl AsRef<[u8]>, code: i32) -> String {
    let folder = Folder::new(name);
    let output = nyala(&["check".as_ref(), folder.write("program.impala", text).as_os_str()], 60);
    let err = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{}", &err[..err.len().min(2000)]);
    err
}

#[test]
fn an_empty_file_is_a_program_without_main() {
    check("empty", "", 0);
    let folder = Folder::new("empty run");
    let output = nyala(&["run".as_ref(), folder.write("p.impala", "").as_os_str()], 60);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[no-entry]"));
}

/// `check` finds what partial evaluation and the passes after it find, but with `--no-pe`.
#[test]
fn what_passes_check_builds() {
    let folder = Folder::new("check builds");
    let program = folder.write(
        "p.impala",
        "extern fn f(n: i32) -> i32 { let mut s = 0; for i in par(0, n) { s += i } static_assert(?n, \"n\"); s }",
    );
    let (program, run) = (program.to_str().unwrap(), |args: &[&str], code| fails(args, code));
    let err = run(&["check", program], 1);
    assert!(err.contains("error[static-assert-failed]"), "{err}");
    assert_eq!(run(&["check", "--no-pe", program], 0), "");
    let racy =
        folder.write("r.impala", "extern fn f(n: i32) -> i32 { let mut s = 0; for i in par(0, n) { s += i } s }");
    assert!(run(&["check", racy.to_str().unwrap()], 0).contains("warning[shared-write]"));
    assert!(run(&["check", "--deny", "shared-write", racy.to_str().unwrap()], 1).contains("error[shared-write]"));
}

#[test]
fn random_bytes_are_errors() {
    let mut state = 1u64;
    for round in 0..8 {
        let bytes: Vec<u8> = (0..2000)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let byte = (state >> 56) as u8;
                if round % 2 == 0 { byte & 127 } else { byte }
            })
            .collect();
        check(&format!("random {round}"), bytes, 1);
    }
}

#[test]
fn a_line_of_a_megabyte() {
    check("line", format!("fn f() -> i32 {{ {}1 }}", "1 + ".repeat(1000)), 0);
    check("line of code", format!("fn f() -> i32 {{ {}0 }}", "let x = 1 + 2 * 3; ".repeat(56_000)), 0);
    check("long name", format!("fn f() -> i32 {{ {} }}", "x".repeat(1 << 20)), 1);
    check("long comment", format!("// {}\nfn f() -> i32 {{ 1 }}", "x".repeat(1 << 20)), 0);
}

#[test]
fn a_function_of_100_000_statements() {
    let statements = (0..100_000).map(|i| format!("x = (x + {i}) % 1000;\n")).collect::<String>();
    check("statements", format!("fn main() -> i32 {{ let mut x = 0;\n{statements} x }}"), 0);
}

#[test]
fn a_function_of_10_000_calls() {
    has_calls(10_000);
}

/// As many as take minutes if anything takes the square of their number.
#[test]
#[ignore = "takes 20 s: ./x test --all crates"]
fn a_function_of_30_000_calls() {
    has_calls(30_000);
}

fn has_calls(n: i32) {
    let calls = (0..n).map(|i| format!("s += h(x + {i}) & 3;\n")).collect::<String>();
    let program = format!(
        "static mut start = 1;\nfn h(x: i32) -> i32 {{ x ^ (x >> 2) }}\nfn main() -> i32 {{ let x = start; let mut s = 0;\n{calls} print_i32(s); 0 }}\n"
    );
    let folder = Folder::new("calls");
    let output = nyala(&["run".as_ref(), "-O0".as_ref(), folder.write("p.impala", program).as_os_str()], 120);
    let expected: i32 = (1..=n).map(|x| (x ^ (x >> 2)) & 3).sum();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected.to_string(), "{}", stderr(&output));
}

#[test]
fn deep_nesting_is_an_error() {
    let n = 100_000;
    let err = check("nesting", format!("fn f() -> i32 {{ {}1{} }}", "(".repeat(n), ")".repeat(n)), 1);
    assert!(err.contains("nesting-too-deep"), "{}", &err[..err.len().min(500)]);
    check("unclosed", "(".repeat(n), 1);
}

#[test]
fn specialization_that_diverges_is_an_error_that_names_what_counts() {
    let programs = [
        ("straight on", "fn @f(n: i32) -> i32 { f(n + 1) }\nfn main() -> i32 { f(0) }\n"),
        (
            "under an unknown condition",
            "fn @f(n: i32, d: i32) -> i32 { if d == n { n } else { f(n + 1, d) } }\nfn main() -> i32 { f(0, $5) }\n",
        ),
    ];
    for (name, program) in programs {
        let folder = Folder::new(name);
        let path = folder.write("p.impala", program);
        // A hundredth of the budget: the same answer sooner.
        let args: [&std::ffi::OsStr; 4] = ["run".as_ref(), "--pe-budget".as_ref(), "0.01".as_ref(), path.as_os_str()];
        let output = nyala(&args, 60);
        assert_eq!(output.status.code(), Some(1));
        let err = stderr(&output);
        assert!(err.contains("error[specialization-diverges]: specializing `f` does not end"), "{name}: {err}");
        assert!(err.contains("`n` was "), "{name}: {err}");
    }
}

#[test]
fn a_type_of_a_trillion_parts_ends_at_once() {
    let aliases: String = (1..40).map(|i| format!("type A{i} = (A{0}, A{0});\n", i - 1)).collect();
    let program = format!(
        "type A0 = (i32, i32);\n{aliases}fn g(x: A39) -> i32 {{ 1 }}\nfn main() -> i32 {{ let mut y: A39; let h = &y; g(y) }}\n"
    );
    let folder = Folder::new("large type");
    let path = folder.write("p.impala", program);
    for engine in ["jit", "interp"] {
        let args: [&std::ffi::OsStr; 5] =
            ["run".as_ref(), "--no-pe".as_ref(), "--engine".as_ref(), engine.as_ref(), path.as_os_str()];
        let output = nyala(&args, 60);
        let err = stderr(&output);
        assert!(output.status.code().is_some_and(|c| c <= 1), "{engine}: {err}");
    }
}

#[test]
fn missing_files_are_errors() {
    let folder = Folder::new("missing");
    let output = nyala(&["check".as_ref(), folder.0.join("none.impala").as_os_str()], 60);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read"));
    assert_eq!(nyala(&["no-such-verb".as_ref()], 60).status.code(), Some(2));
}

#[test]
fn the_interpreter_reports_undefined_behavior() {
    let folder = Folder::new("undefined");
    let path = folder.write("p.impala", "fn main() -> i32 { let mut x = 2147483647; x += $1; x }\n");
    let args: [&std::ffi::OsStr; 4] = ["run".as_ref(), "--engine".as_ref(), "interp".as_ref(), path.as_os_str()];
    let output = nyala(&args, 60);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("signed overflow"));
}

#[test]
fn signed_arithmetic_wraps_where_that_is_asked_for() {
    let folder = Folder::new("wrap");
    let text =
        "fn main() -> i32 { let mut x = 2147483647; x += $1; let v = simd[x, -$x] * simd[2, 1]; v(0) + v(1) / 2 }\n";
    let path = folder.write("p.impala", text);
    for engine in [&["--engine", "interp"][..], &["-O0"], &["-O3"], &["--no-pe"]] {
        let mut args: Vec<&std::ffi::OsStr> = vec!["run".as_ref(), "--wrap".as_ref()];
        args.extend(engine.iter().map(|a| std::ffi::OsStr::new(*a)));
        args.push(path.as_os_str());
        let output = nyala(&args, 60);
        // 0 and half of the least number.
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{engine:?}");
    }
}

#[test]
fn a_photograph_that_cannot_be_read_leaves_nothing_behind() {
    let folder = Folder::new("photograph");
    let program = root().join("examples/blur/blur.impala");
    let corrupt = {
        let mut bytes = std::fs::read(root().join("examples/blur/astronaut.png")).unwrap();
        bytes.truncate(bytes.len() / 3);
        folder.write("corrupt.png", bytes)
    };
    let text = folder.write("text.png", "no image");
    for input in [folder.0.join("missing.png"), corrupt, text] {
        let target = folder.0.join("out.png");
        let args: [&std::ffi::OsStr; 5] =
            ["run".as_ref(), program.as_os_str(), "--".as_ref(), input.as_os_str(), target.as_os_str()];
        let output = nyala(&args, 60);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        assert!(said.contains("error: "), "{said}");
        assert!(!target.exists());
    }
}

#[test]
fn a_picture_that_cannot_be_written_is_an_error() {
    let folder = Folder::new("unwritable");
    let program = root().join("examples/blur/blur.impala");
    let input = root().join("examples/blur/astronaut.png");
    let target = folder.0.join("no such folder/out.png");
    let args: [&std::ffi::OsStr; 5] =
        ["run".as_ref(), program.as_os_str(), "--".as_ref(), input.as_os_str(), target.as_os_str()];
    let output = nyala(&args, 60);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("error: "));
}

#[test]
fn statics_are_defined_on_the_command_line() {
    let folder = Folder::new("define");
    let text = "static WIDTH = 3;\nstatic NAME: &[u8] = \"x\";\nstatic SCALE: f32 = 1.0f;\n\
                fn main() -> i32 { let _a = [0, .. WIDTH]; print_string(NAME); print_f32(SCALE); WIDTH }\n";
    let path = folder.write("p.impala", text);
    let run = |verb: &[&str], defines: &[&str]| {
        let mut args: Vec<&std::ffi::OsStr> = verb.iter().map(|v| v.as_ref()).collect();
        args.push(path.as_os_str());
        args.extend(defines.iter().map(std::ffi::OsStr::new));
        let output = nyala(&args, 60);
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
    };
    let all = ["-D", "WIDTH=2 * 21", "-DNAME=\"a b\"", "-D", "SCALE=-0.5f"];
    for engine in ["jit", "interp"] {
        assert_eq!(run(&["run", "--engine", engine], &all), (42, "a b-0.5".into(), String::new()));
    }
    assert_eq!(run(&["run"], &["-D", "WIDTH=7"]).0, 7);
    assert_eq!(run(&["check"], &all).0, 0);
    assert!(run(&["emit"], &["-D", "WIDTH=77"]).1.contains("77"));
    for (define, expected) in [
        ("WIDHT=2", "error[no-such-static]: the program has no top-level static `WIDHT` to define"),
        ("WIDHT=2", "did you mean `WIDTH`?"),
        ("SCALE=true", "error[type-mismatch]"),
        ("SCALE=true", "--> <-D SCALE>:1:1"),
        ("WIDTH=2 3", "error[unexpected-token]: found `3`, expected the end of the value"),
        ("WIDTH=", "error[unexpected-token]"),
    ] {
        let (code, _, err) = run(&["check"], &["-D", define]);
        assert!(code == 1 && err.contains(expected), "{define}: {err}");
    }
    assert_eq!(run(&["check"], &["-D", "WIDTH"]).0, 2);
}

#[test]
fn the_same_program_gives_the_same_text() {
    let program = root().join("examples/blur/blur.impala");
    for stage in ["graph", "residual", "flat", "llvm"] {
        let args: [&std::ffi::OsStr; 4] = ["emit".as_ref(), "--stage".as_ref(), stage.as_ref(), program.as_os_str()];
        assert_eq!(nyala(&args, 120).stdout, nyala(&args, 120).stdout, "{stage}");
    }
}

/// `emit` shows code of which an assertion does not hold; other verbs refuse it.
#[test]
fn code_of_failed_assertions() {
    let program = root().join("tests/ui/ensure-failed/copies.impala");
    for stage in ["flat", "llvm", "asm"] {
        let args: [&std::ffi::OsStr; 4] = ["emit".as_ref(), "--stage".as_ref(), stage.as_ref(), program.as_os_str()];
        let out = nyala(&args, 120);
        assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("many"), "{stage}");
    }
    assert_eq!(nyala(&["check".as_ref(), program.as_os_str()], 120).status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_parallel_loop() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new("interrupt");
    let program = "fn main() -> i32 {\n    let a = alloc[i32](8);\n    exit_if_ready();\n    \
                   for i in par(0, 8) { while true { a(i) = i; } }\n    0\n}\n\
                   fn exit_if_ready() -> () { print_string(\"ready\"); println(); flush() }\n\
                   extern \"C\" { fn \"nyala_flush\" flush() -> (); }\n";
    let file = folder.write("endless.impala", program);
    for engine in ["jit", "interp"] {
        // Tests that run in the background of a shell ignore interrupts.
        let mut run = Command::new("env");
        run.arg("--default-signal=INT").arg(command()).args(["run", "--engine", engine]).arg(&file);
        let mut child = own_cache(&mut run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut first = [0; 6];
        std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut first).unwrap();
        assert_eq!(&first, b"ready\n");
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        // If the interrupt has no effect, the loop goes on until the limit.
        let status = end(child).status;
        assert!(status.signal() == Some(2) || status.code() == Some(130), "{engine}: {status}");
    }
}

#[test]
fn a_failed_assertion_names_its_place_under_every_engine() {
    let folder = Folder::new("assert");
    let program = "fn check(n: i32) -> i32 {\n    assert(n  <\n        2);\n    if n == 1 { panic(\"one\") }\n    n\n}\n\
                   fn main(argc: i32, argv: &[&[u8]]) -> i32 { print_string(\"begun\\n\"); check(argc - 1) }\n";
    let file = folder.write("p.impala", program);
    for options in [&["--engine", "interp"][..], &["-O0"], &["-O3"], &["--no-pe", "-O0"], &["--no-pe", "-O3"]] {
        for (args, fault) in [
            (&[][..], None),
            (&["a"], Some(("p.impala:4:17", "one"))),
            (&["a", "b"], Some(("p.impala:2:5", "assertion failed: `n < 2`"))),
        ] {
            let mut all: Vec<&std::ffi::OsStr> = vec!["run".as_ref()];
            all.extend(options.iter().map(|o| std::ffi::OsStr::new(*o)));
            all.extend([file.as_os_str(), "--".as_ref()]);
            all.extend(args.iter().map(|a: &&str| std::ffi::OsStr::new(*a)));
            let output = nyala(&all, 60);
            assert_eq!(output.stdout, b"begun\n", "{options:?} {args:?}");
            let err = stderr(&output);
            #[cfg(unix)]
            let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
            #[cfg(not(unix))]
            let signal = None;
            let code = output.status.code().or(signal.map(|s| 128 + s));
            assert_eq!(code, Some(if fault.is_some() { 134 } else { 0 }), "{options:?} {args:?}: {err}");
            if let Some((place, text)) = fault {
                assert!(err.contains(place) && err.contains(text), "{options:?} {args:?}: {err}");
            }
        }
    }
}

/// Standard error of a command line, which ends with `code`.
fn fails(args: &[&str], code: i32) -> String {
    let args: Vec<&std::ffi::OsStr> = args.iter().map(|a| a.as_ref()).collect();
    let output = nyala(&args, 60);
    let err = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{err}");
    err
}

#[test]
fn faults_of_the_command_line_have_codes() {
    let folder = Folder::new("codes");
    let program = folder.write("p.impala", "fn main(x: i32) -> i32 { x }\nextern fn start() -> i32 { 0 }\n");
    let program = program.to_str().unwrap();
    let missing = folder.0.join("no such folder/out.txt");
    let missing = missing.to_str().unwrap();
    for engine in ["jit", "interp"] {
        let err = fails(&["run", "--engine", engine, program], 1);
        assert!(err.contains("error[entry-type]"), "{err}");
        let err = fails(&["run", "--engine", engine, "--entry", "start", "--load", missing, program], 1);
        assert!(err.contains("error[library-not-loaded]"), "{err}");
    }
    let err = fails(&["check", missing], 1);
    assert!(err.contains("error[cannot-read]"), "{err}");
    let err = fails(&["emit", "-o", missing, program], 1);
    assert!(err.contains("error[cannot-write]"), "{err}");
    let err = fails(&["emit", "--fn", "nobody", program], 1);
    assert!(err.contains("error[no-such-function]"), "{err}");
}

#[test]
fn a_hundred_syntax_errors_are_enough() {
    let err = check("syntax errors", format!("fn f() -> () {{\n{}}}\n", "let;\n".repeat(200)), 1);
    assert!(err.contains("error[too-many-errors]: more than 100 syntax errors"), "{err}");
    assert_eq!(err.matches("error[").count(), 101);
}

#[test]
fn codes_are_explained() {
    let explain = |args: &[&str]| {
        let args: Vec<&std::ffi::OsStr> =
            std::iter::once("explain-error").chain(args.iter().copied()).map(|a| a.as_ref()).collect();
        nyala(&args, 60)
    };
    let stdout = |o: &std::process::Output| String::from_utf8_lossy(&o.stdout).into_owned();
    let one = explain(&["filter-not-bool"]);
    assert_eq!(one.status.code(), Some(0));
    assert!(stdout(&one).starts_with("# filter-not-bool\n\nA filter has a type other than `bool`.\n"));
    assert!(stdout(&one).contains("\n## Instead\n"));
    let two = stdout(&explain(&["immutable", "not-a-place"]));
    assert!(two.contains("# immutable\n") && two.contains("\n# not-a-place\n"));
    let all = stdout(&explain(&[]));
    for code in nyala_driver::diagnostics::all() {
        assert!(all.lines().any(|l| l.starts_with(&format!("{} ", code.name()))), "{}", code.name());
    }
    let unknown = explain(&["filter-no-bool"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean `filter-not-bool`?"));
    // Errors say how to learn more, warnings alone don't.
    let err = check("more", "fn f() -> i32 { x }\nfn g() -> i32 { true }\n", 1);
    assert!(err.ends_with("\nfor more: nyala explain-error unknown-name type-mismatch\n"), "{err}");
    let err = check("no more", "extern fn f() -> i32 { 1 / 0 }\n", 0);
    assert!(err.contains("warning[constant-fault]") && !err.contains("for more"), "{err}");
}

#[test]
fn findings_as_json() {
    let folder = Folder::new("json");
    let program = folder.write(
        "p.impala",
        "// ä\nfn f() -> i32 { /* ö */ let x = 1;\n    x = 2; x + y }\nfn main() -> i32 { 10 / 0 }\n",
    );
    let program = program.to_str().unwrap();
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let err = fails(args, 1);
        err.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
    };
    for verb in ["check", "run", "emit"] {
        let mut found = lines(&[verb, "--json", program]);
        found.sort_by_key(|d| d["line"].as_u64().zip(d["column"].as_u64()));
        assert_eq!(found.len(), 2, "{found:?}");
        let d = &found[0];
        assert_eq!((&d["severity"], &d["code"]), (&"error".into(), &"immutable".into()));
        assert_eq!(d["message"], "variable `x` is changed, but not `mut`");
        assert_eq!(d["file"], program);
        assert_eq!([&d["line"], &d["column"], &d["end_line"], &d["end_column"]], [&3, &5, &3, &10]);
        // Columns count characters, not bytes.
        let other = &d["others"][0];
        assert_eq!(
            (&other["line"], &other["column"], &other["label"]),
            (&2.into(), &29.into(), &"declared here".into())
        );
        assert_eq!(d["hints"][0], "declare it as `mut x`");
        assert!(d["rendered"].as_str().unwrap().starts_with("error[immutable]: variable"));
        assert_eq!(found[1]["code"], "unknown-name");
    }
    let tests = folder.write("t.impala", "//? 1 == 1\n\n//? 1 == 2\n");
    let failures = lines(&["test", "--json", tests.to_str().unwrap()]);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures.iter().all(|d| d["code"] == "test-failed" && d["line"] == 3));
    assert_eq!(failures[0]["message"], "the test `1 == 2` fails (every engine)");
    let missing = &lines(&["check", "--json", "no-such-file.impala"])[0];
    assert_eq!(missing["code"], "cannot-read");
    assert!(missing["file"].is_null() && missing["line"].is_null());
    let build = &lines(&["build", "--json", "-o", folder.0.join("p").to_str().unwrap(), program])[0];
    assert_eq!(build["severity"], "error");
}

#[test]
fn doctor_tries_out_what_it_says() {
    let run = |path: Option<&str>| {
        let mut command = Command::new(command());
        command.arg("doctor");
        if let Some(path) = path {
            command.env("PATH", path).env_remove("CC");
        }
        let output = command.run_to_end();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let line = |text: &str, what: &str| {
        text.lines().find(|l| l.contains(what)).map(|l| l.split_whitespace().next().unwrap_or_default().to_string())
    };
    let (code, out) = run(None);
    assert_eq!(code, Some(0), "{out}");
    for what in ["interpreter", "native code in memory", "executables", "shared libraries", "C headers"] {
        assert_eq!(line(&out, what).as_deref(), Some("works"), "{what}\n{out}");
    }
    // Without a linker what needs none works still.
    let (code, out) = run(Some("/nonexistent"));
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(line(&out, "native code in memory").as_deref(), Some("works"), "{out}");
    assert_eq!(line(&out, "executables").as_deref(), Some("missing"), "{out}");
}

#[test]
fn a_library_that_is_not_found_is_one_error() {
    let err = check("no library", "use nonsense::tools::*;\nfn main() -> i32 { tool(1) + other(2) }\n", 1);
    assert!(err.contains("error[no-such-library]: cannot find library `nonsense::tools`"), "{err}");
    assert!(err.contains("nonsense/tools.impala"), "{err}");
    assert_eq!(err.matches("error[").count(), 1, "{err}");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_the_command() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new("closed pipe");
    let program = "fn main() -> i32 { for i in range(0, 100000) { print_i32(i); println(); } 0 }\n";
    let file = folder.write("p.impala", program);
    for args in [&["run"][..], &["run", "--engine", "interp"], &["emit", "--stage", "graph"], &["explain-error"]] {
        let mut command = Command::new(command());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        if args[0] != "explain-error" {
            command.arg(&file);
        }
        let mut child = own_cache(&mut command).stdin(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        let output = end(child);
        let code = output.status.code().or(output.status.signal());
        assert!(matches!(code, Some(0 | 13)), "{args:?}: {} {}", output.status, stderr(&output));
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn a_source_is_not_overwritten() {
    let folder = Folder::new("overwrite");
    let text = "fn main() -> i32 { 0 }\n";
    let file = folder.write("p.impala", text);
    for verb in ["build", "emit"] {
        let output = nyala(&[verb.as_ref(), file.as_os_str(), "-o".as_ref(), file.as_os_str()], 60);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("is a file of the program itself"), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn output_that_is_lost_is_an_error() {
    let folder = Folder::new("lost output");
    let program = folder.write("p.impala", "fn main() -> i32 { print_i32(42); println(); 0 }\n");
    let exits = folder.write(
        "q.impala",
        "extern \"C\" { fn nyala_exit(i32) -> (); }\nfn main() -> i32 { print_i32(42); nyala_exit(0); 1 }\n",
    );
    let silent = folder.write("r.impala", "fn main() -> i32 { 7 }\n");
    let shell = |script: &str, file: &Path| {
        let output = Command::new("sh").arg("-c").arg(script).arg(command()).arg(file).run_to_end();
        (output.status.code(), stderr(&output))
    };
    for engine in ["interp", "jit"] {
        for (to, file) in [(">/dev/full", &program), (">&-", &program), (">/dev/full", &exits)] {
            let (code, err) = shell(&format!("\"$0\" run --no-cache --engine {engine} \"$1\" {to}"), file);
            assert_eq!(code, Some(1), "{engine} {to}: {err}");
            assert!(err.contains("cannot write to standard output"), "{engine} {to}: {err}");
        }
        let (code, err) = shell(&format!("\"$0\" run --no-cache --engine {engine} \"$1\" >&-"), &silent);
        assert_eq!((code, err.as_str()), (Some(7), ""));
    }
}

#[test]
fn files_are_written_where_their_names_lead() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new("led");
    let kept = folder.write("kept.impala", "fn main()->i32{0}\n");
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::hard_link(&kept, folder.path("other.impala")).unwrap();
    let link = folder.path("link.impala");
    symlink("kept.impala", &link).unwrap();
    let well = |args: &[&str]| {
        let output = nyala(&args.iter().map(std::ffi::OsStr::new).collect::<Vec<_>>(), 60);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{args:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mode = |path: &Path| (path.metadata().unwrap().mode() & 0o7777, path.metadata().unwrap().nlink());
    well(&["fmt", link.to_str().unwrap()]);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(folder.path("other.impala")).unwrap(), "fn main() -> i32 { 0 }\n");
    assert_eq!(mode(&kept), (0o600, 2));
    let out = folder.write("out.c", "");
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("out.c", folder.path("link.c")).unwrap();
    well(&["emit", kept.to_str().unwrap(), "--stage", "c", "-o", folder.path("link.c").to_str().unwrap()]);
    assert!(folder.path("link.c").is_symlink() && std::fs::read_to_string(&out).unwrap().contains("main"));
    assert_eq!(mode(&out), (0o640, 1));
    let printed = well(&["emit", kept.to_str().unwrap(), "--stage", "c", "-o", "/dev/stdout"]);
    assert!(printed.contains("main"), "{printed}");
    well(&["emit", kept.to_str().unwrap(), "--stage", "c", "-o", "/dev/null"]);
    assert!(!Path::new("/dev/null").is_file());
}

/// What a program writes to standard output by its name comes after what it has printed, also in a file.
#[test]
fn standard_output_has_a_name() {
    let folder = Folder::new("named");
    let text = "use std::files::*;\nuse std::slice::*;\nfn main() -> i32 {\n\
                print_string(\"one \"); assert(write_file(\"/dev/stdout\", str(\"two \")));\n\
                print_string(\"three \"); assert(append_file(\"/proc/self/fd/1\", str(\"four \")));\n\
                print_string(\"five\"); 0 }\n";
    let program = folder.write("p.impala", text);
    let out = folder.path("out");
    for engine in ["interp", "jit"] {
        let file = std::fs::File::create(&out).unwrap();
        let mut command = Command::new(command());
        command.args(["run", "--engine", engine]).arg(&program).stdout(file).stderr(Stdio::piped());
        let output = end(own_cache(&mut command).spawn().unwrap());
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "one two three four five");
    }
}

#[test]
fn a_file_without_end_is_an_error() {
    for verb in ["check", "run", "test"] {
        let output = nyala(&[verb.as_ref(), "/dev/zero".as_ref()], 60);
        let err = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{verb}: {err}");
        assert!(err.contains("cannot read `/dev/zero`: it has more than 256 MiB"), "{verb}: {err}");
    }
}

const INLINED: &str = r#"
fn helper(x: i32) -> i32 { x * 3 }
fn @unfolded(x: i32) -> i32 { x + 77 }
extern fn "odd name" odd(x: i32) -> i32 { helper(x) + helper(unfolded(x)) }
fn rec(x: i32) -> i32 { if x < 2 { 1 } else { rec(x - 1) + rec(x - 2) } }
extern fn choose(x: i32, a: &mut [f32]) -> i32 {
    for i in range(0, x) { a(i) = a(i) * 2.5f + 1f }
    if x == 0 { 5 } else if x == 1 { 7 } else { rec(x) }
}
"#;

#[test]
fn one_function_is_shown_or_where_it_went() {
    let folder = Folder::new("one function");
    let program = folder.write("p.impala", INLINED);
    let emit = |stage: &str, name: &str| {
        let args = ["emit", program.to_str().unwrap(), "--stage", stage, "--fn", name];
        let output = nyala(&args.map(std::ffi::OsStr::new), 60);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
    };
    for (stage, first, last) in [("llvm", "define ", "}"), ("asm", "", "")] {
        for name in ["odd", "odd name", "rec", "choose"] {
            let (code, out, err) = emit(stage, name);
            assert_eq!((code, &*err), (Some(0), ""));
            assert!(
                out.lines().filter(|l| !l.starts_with(';')).all(|l| !l.starts_with("define ") || l.starts_with(first))
            );
            let n = if stage == "llvm" { out.matches("define ").count() } else { out.matches(".Lfunc_end").count() };
            assert_eq!(n, 1, "{stage} {name}: {out}");
            assert!(out.trim_end().ends_with(last), "{out}");
        }
        let (code, out, err) = emit(stage, "helper");
        assert_eq!((code, &*out), (Some(1), ""));
        assert!(err.contains("LLVM inlined it into `odd`"), "{err}");
        assert!(emit(stage, "unfolded").2.contains("partial evaluation inlined it into `odd`"));
        let (code, _, err) = emit(stage, "chose");
        assert!(code == Some(1) && err.contains("did you mean `choose`?") && err.contains("left are `odd`"), "{err}");
        for name in ["", "\u{e9}", &"x".repeat(10_000)] {
            assert_eq!(emit(stage, name).0, Some(1));
        }
    }
    assert!(emit("residual", "unfolded").2.contains("partial evaluation inlined it into `odd`"));
    assert!(emit("flat", "helper").1.contains("func helper(i32)"));
    let whole = emit("c", "helper").2;
    assert!(whole.contains("error[cannot-emit]: `--stage c` cannot show one function by itself"), "{whole}");
    // The constants of a function are shown with it.
    let asm = emit("asm", "choose").1;
    assert!(asm.starts_with("choose:") && asm.contains(".LCPI") && !asm.contains("odd name"), "{asm}");
}

#[test]
fn an_ending_says_what_is_written_or_is_refused() {
    let folder = Folder::new("endings");
    let program = folder.write("p.impala", INLINED);
    let run = |verb: &str, out: &str, more: &[&str]| {
        let out = folder.path(out).display().to_string();
        let mut args = vec![verb, program.to_str().unwrap(), "-o", &out];
        args.extend(more);
        let args: Vec<&std::ffi::OsStr> = args.iter().map(std::ffi::OsStr::new).collect();
        let output = nyala(&args, 60);
        (output.status.code().unwrap_or(-1), stderr(&output), std::fs::read(&out).unwrap_or_default())
    };
    for (out, remedy) in [
        ("x.ll", "`nyala emit --stage llvm -o "),
        ("x.s", "`nyala emit --stage asm -o "),
        ("X.C", "`nyala emit --stage c -o "),
        ("x.dll", "libraries are `.a` and `.so`"),
        ("x.exe", "executables have no ending"),
        ("x.bc", "LLVM's text form"),
    ] {
        let (code, err, made) = run("build", out, &[]);
        assert!(code == 2 && err.starts_with("error: ") && err.contains(remedy) && made.is_empty(), "{out}: {err}");
    }
    for (out, more, start) in [
        ("x.ll", &[][..], "; ModuleID"),
        ("x.S", &[], "\t.file"),
        ("x.c", &[], "#"),
        ("x.txt", &[], "graph"),
        ("x", &["--stage", "flat"], "flat"),
        ("y.s", &["--stage", "asm"], "\t.file"),
    ] {
        let (code, err, made) = run("emit", out, more);
        assert!(code == 0 && made.starts_with(start.as_bytes()), "{out}: {err} {}", String::from_utf8_lossy(&made));
    }
    for (out, more, remedy) in [
        ("z.ll", &["--stage", "flat"][..], "`--stage llvm`"),
        ("z.o", &[], "`nyala build -o "),
        ("z.so.1", &[], "`nyala build -o "),
        ("z.exe", &["--stage", "asm"], "executables have no ending"),
    ] {
        let (code, err, made) = run("emit", out, more);
        assert!(code == 2 && err.contains(remedy) && made.is_empty(), "{out}: {err}");
    }
    for verb in ["build", "emit"] {
        std::fs::create_dir_all(folder.path("folder.s")).unwrap();
        std::fs::create_dir_all(folder.path("folder.so")).unwrap();
        let name = if verb == "build" { "folder.so" } else { "folder.s" };
        let (code, err, _) = run(verb, name, &[]);
        assert!(code == 1 && err.contains("error[cannot-write]") && err.contains("it is a folder"), "{err}");
        let (code, err, _) = run(verb, "no such/x", &[]);
        assert!(code == 1 && err.contains("there is no folder"), "{err}");
        let (code, err, _) = run(verb, "new/", &[]);
        assert!(code == 1 && err.contains("error[cannot-write]"), "{err}");
    }
}

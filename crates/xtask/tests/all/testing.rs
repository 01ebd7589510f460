//! `nyala test`: what counts as a test, and what becomes of those that fail, crash or do not end.

use crate::common::{Folder, RunToEnd, command, nyala, stderr};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

fn run(args: &[&std::ffi::OsStr]) -> (Option<i32>, String, String) {
    let mut all: Vec<&std::ffi::OsStr> = vec!["test".as_ref()];
    all.extend(args);
    let output = nyala(&all, 120);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

#[test]
fn a_folder_of_tests() {
    let folder = Folder::new("tests pass");
    std::fs::create_dir(folder.0.join("deeper")).unwrap();
    folder.write(
        "a.impala",
        "//? twice(2) == 4\nfn twice(x: i32) -> i32 { 2 * x }\nfn test_twice() -> () { assert(twice(3) == 6) }\n",
    );
    folder.write("deeper/b.impala", "fn test_b() -> bool { true }\nfn test_c() { }\nfn main() -> i32 { 0 }\n");
    folder.write("no_tests.impala", "fn main() -> i32 { nonsense }\n");
    let (code, out, err) = run(&[folder.0.as_os_str()]);
    assert!(code == Some(0) && out.ends_with("\n3 passed, 0 failed, 0 skipped\n"), "{out}{err}");
    assert!(out.contains("a.impala: 2 passed\n") && out.contains("b.impala: 1 passed\n"), "{out}");
    assert!(err.contains("warning[not-a-test]"), "{err}");
    let (code, out, _) = run(&["--filter".as_ref(), "twice(2)".as_ref(), folder.0.as_os_str()]);
    assert_eq!((code, out.as_str()), (Some(0), "1 passed, 0 failed, 0 skipped\n"));
    let (code, _, err) = run(&["--filter".as_ref(), "zzz".as_ref(), folder.0.as_os_str()]);
    assert!(code == Some(2) && err.contains("none of 3 tests has `zzz` in its name or file"), "{err}");
    let (code, _, err) = run(&[folder.0.join("missing").as_os_str()]);
    assert!(code == Some(1) && err.contains("cannot read"), "{err}");
}

/// What has ended is shown while other tests run.
#[test]
fn files_are_shown_as_they_end() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new("tests that end at different times");
    folder.write("a.impala", "fn test_a() -> bool { true }\n");
    let go = folder.path("go");
    let wait = format!("while !file_exists(\"{}\") {{ }}", go.display());
    folder.write("b.impala", format!("use std::files::*;\nfn test_b() -> () {{ {wait} }}\n"));
    let mut test = Command::new(command());
    test.args(["test", "--timeout", "1000", "--engine", "-O3"]).arg(&folder.0);
    let mut child = test.stdout(Stdio::piped()).spawn().expect("the command");
    let mut said = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = || said.next().and_then(Result::ok).unwrap_or_default();
    let first = next();
    std::fs::write(&go, "").expect("a file");
    let rest = [next(), next()];
    assert!(child.wait().expect("the end of the command").success());
    assert!(first.ends_with("a.impala: 1 passed") && rest[0].ends_with("b.impala: 1 passed"), "{first} {rest:?}");
    assert_eq!(rest[1], "2 passed, 0 failed, 0 skipped");
}

#[test]
fn failures_do_not_hide_each_other() {
    let folder = Folder::new("tests fail");
    let file = folder.write(
        "a.impala",
        "static mut zero = 0;\n\
         //? sum(1, 2) == 4\n\
         fn sum(a: i32, b: i32) -> i32 { a + b }\n\
         fn test_panic() -> () { print_string(\"said before\\n\"); panic(\"on purpose\") }\n\
         fn test_false() -> bool { zero == 1 }\n\
         fn test_true() -> bool { zero == 0 }\n",
    );
    let (code, out, err) =
        run(&["--timeout".as_ref(), "1000".as_ref(), "--engine".as_ref(), "-O3".as_ref(), file.as_os_str()]);
    assert_eq!(code, Some(1), "{err}");
    let has = |text: &str| assert!(out.contains(text), "{text}\nin\n{out}");
    has("a.impala:2: `sum(1, 2) == 4`: -O3\n    does not hold, the arguments known");
    has("a.impala:4: `test_panic`: -O3\n    panic at ");
    has("on purpose\n    signal: 6 (SIGABRT)");
    has("    its output:\n    said before\n");
    has("a.impala:5: `test_false`: -O3\n    gives `false`");
    assert!(out.ends_with("1 passed, 3 failed, 0 skipped\n"), "{out}");
}

/// A query that does not hold shows what its sides give, under each engine.
#[test]
fn a_query_that_does_not_hold_shows_its_values() {
    let folder = Folder::new("tests show values");
    let file = folder.write(
        "a.impala",
        "struct Point { x: i32, y: f64 }\n\
         impl Eq for Point { fn eq(a: Point, b: Point) -> bool { a.x == b.x && a.y == b.y } }\n\
         fn sum(a: i32, b: i32) -> i32 { a + b }\n\
         fn wide(a: i64) -> i64 { a }\n\
         fn half(a: f64) -> f64 { a / 2.0 }\n\
         fn first(a: &[u8]) -> u8 { a(0) }\n\
         fn is_odd(a: i32) -> bool { a % 2 == 1 }\n\
         fn point(x: i32) -> Point { Point { x: x, y: 0.5 } }\n\
         //? sum(1, 2) == 4\n\
         //? 4 == sum(1, 2)\n\
         //? wide(-5000000000) == 5000000000\n\
         //? half(0.1) > 1.0\n\
         //? first(\"abc\") == 'b'\n\
         //? sum(1, 2) == 3 && sum(2, 2) < sum(1, 1)\n\
         //? sum(1, 2) == 3 && is_odd(sum(2, 2))\n\
         //? is_odd(2)\n\
         //? point(1) == point(2)\n\
         //? sum(1, 2) == 3 || is_odd(2)\n\
         //? sum(1, 2) == 4 || is_odd(2)\n",
    );
    for engine in ["interp", "-O0", "-O3"] {
        let (code, out, err) = run(&["--engine".as_ref(), engine.as_ref(), file.as_os_str()]);
        assert_eq!(code, Some(1), "{err}");
        let has = |line: usize, values: &str| {
            let (_, rest) = out.split_once(&format!("a.impala:{line}: ")).unwrap_or_else(|| panic!("{line} in\n{out}"));
            let how = rest.lines().nth(2).unwrap_or_default();
            assert_eq!(how.strip_prefix("    ").unwrap_or_default(), values, "\n{out}");
        };
        has(9, "`sum(1, 2)` gives 3, expected 4");
        has(10, "`sum(1, 2)` gives 3, expected 4");
        has(11, "`wide(-5000000000)` gives -5000000000, expected 5000000000");
        has(12, "`half(0.1)` gives 0.05");
        has(13, "`first(\"abc\")` gives 'a', expected 'b'");
        has(14, "`sum(2, 2)` gives 4, `sum(1, 1)` gives 2");
        has(15, "`is_odd(sum(2, 2))` gives false");
        has(17, "`point(1)` gives .x 1, .y 0.5, expected .x 2, .y 0.5");
        assert!(out.ends_with("1 passed, 10 failed, 0 skipped\n"), "{out}");
    }
}

/// What checked code and panics tell is in lines that the user has written.
#[test]
fn calls_from_queries_are_shown_in_their_lines() {
    let folder = Folder::new("tests tell calls");
    let file = folder.write(
        "a.impala",
        "fn f(n: i32) -> i32 { assert(n < 10); 2 * n }\n\
         fn get(a: [i32 * 2], n: i32) -> i32 { a(n) }\n\
         fn test_bad() -> bool { f($30) == 3 }\n\
         //? f(30) == 3\n\
         //? get([1, 2], 2) == 3\n",
    );
    let (code, out, err) = run(&["--engine".as_ref(), "checked".as_ref(), file.as_os_str()]);
    assert_eq!(code, Some(1), "{err}");
    for place in ["a.impala:3:25\n", "a.impala:4:5\n", "a.impala:5:5\n"] {
        assert!(out.contains(&format!("{place}    ")), "{place} in {out}");
    }
    assert!(!out.contains("query_known"), "{out}");
    let (code, out, err) = run(&["--engine".as_ref(), "-O0".as_ref(), file.as_os_str()]);
    assert_eq!(code, Some(1), "{err}");
    // The functions that call tests are in no file.
    assert!(out.contains("`f` called at") && !out.contains("`test_bad` called at"), "{out}");
}

/// On a machine with other work, even the compiler may take a second. Then there is more time.
#[test]
fn a_test_without_end_fails_after_its_time() {
    let folder = Folder::new("tests without end");
    let file = folder.write(
        "a.impala",
        "use std::system::*;\nfn test_endless() -> () { sleep_ms(1000000000i64) }\n\
         fn test_after() -> () { }\n",
    );
    let said = ["2", "20", "200"].map(OsStr::new).into_iter().find_map(|seconds| {
        let (code, out, _) =
            run(&["--timeout".as_ref(), seconds, "--engine".as_ref(), "-O0".as_ref(), file.as_os_str()]);
        assert_eq!(code, Some(1), "{out}");
        let expected = format!("a.impala:2: `test_endless`: -O0\n    takes more than {} s", seconds.display());
        (out.contains(&expected) && out.ends_with("1 passed, 1 failed, 0 skipped\n")).then_some(out)
    });
    assert!(said.is_some());
}

#[test]
fn a_query_that_does_not_compile_is_shown_in_its_line() {
    let folder = Folder::new("tests do not compile");
    let file = folder.write("a.impala", "fn f(x: i32) -> i32 { x }\n\n//? f(true) == 1\n");
    let (code, out, _) = run(&[file.as_os_str()]);
    assert_eq!(code, Some(1));
    assert!(out.contains("a.impala:3:") && out.matches("error[type-mismatch]").count() == 1, "{out}");
    assert!(out.ends_with("0 passed, 1 failed, 0 skipped\n"), "{out}");
}

/// A system may limit addresses; then no engine checks native code, and the command says so.
#[cfg(target_os = "linux")]
#[test]
fn addresses_may_be_limited() {
    let folder = Folder::new("testing-addresses");
    let file = folder.write("t.impala", "//? f(2) == 4\nfn f(x: i32) -> i32 { x + x }\n");
    let limited = "ulimit -v 2000000000 && exec \"$0\" test \"$1\"";
    let out = std::process::Command::new("sh").args(["-c", limited]).arg(command()).arg(&file).run_to_end();
    let (said, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && said == "1 passed, 0 failed, 0 skipped\n", "{said}{err}");
    assert!(err.contains("skipped: everything under checked"), "{err}");
}

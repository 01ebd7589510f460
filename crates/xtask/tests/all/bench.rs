//! `nyala bench`: what is a benchmark, what is stored and compared. No test depends on how fast anything is.

use crate::common::{Folder, nyala, stderr};
use std::ffi::OsStr;

const PROGRAM: &str = "\
fn squares(n: i32) -> i32 { let mut sum = 0; for i in range(0, n) { sum += i * i; } sum }
fn bench_squares() -> i32 { squares($100) }
fn bench_nothing() -> () { }
fn main() -> () { print_i32(squares(2)) }
";

fn bench(args: &[&OsStr]) -> (Option<i32>, String, String) {
    let mut all: Vec<&OsStr> = vec!["bench".as_ref(), "--time".as_ref(), "0.02".as_ref()];
    all.extend(args);
    let output = nyala(&all, 120);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

#[test]
fn results_are_shown_stored_and_compared() {
    let folder = Folder::new("bench");
    let file = folder.write("p.impala", PROGRAM);
    let (code, out, err) = bench(&[file.as_ref(), "--save".as_ref(), "one".as_ref()]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("function") && out.contains("bench_squares  ") && out.contains("bench_nothing  "), "{out}");
    let stored = std::fs::read_to_string(folder.path("p.bench.json")).unwrap();
    assert!(
        stored.contains("\"one\"") && stored.contains("\"bench_squares\"") && stored.contains("\"median\""),
        "{stored}"
    );
    let (code, out, err) =
        bench(&[file.as_ref(), "--baseline".as_ref(), "one".as_ref(), "--filter".as_ref(), "squ".as_ref()]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("of baseline") && !out.contains("bench_nothing"), "{out}");
    let (code, out, _) = bench(&[file.as_ref(), "--baseline".as_ref(), "one".as_ref(), "--json".as_ref()]);
    assert!(code == Some(0) && out.contains("\"ratio\":") && out.lines().count() == 1, "{out}");
    // A baseline that no function reaches.
    let fast = stored
        .replace("\"median\": ", "\"median\": 1e-9, \"was\": ")
        .replace("\"high\": ", "\"high\": 1e-9, \"below\": ");
    folder.write("p.bench.json", fast);
    let (code, out, err) =
        bench(&[file.as_ref(), "--baseline".as_ref(), "one".as_ref(), "--fail-above".as_ref(), "2".as_ref()]);
    assert!(
        code == Some(1) && out.contains("slower") && err.contains("`bench_squares` takes more than 2 times"),
        "{err}{out}"
    );
}

#[test]
fn faults_are_reported() {
    let folder = Folder::new("bench faults");
    let file = folder
        .write("p.impala", "fn bench_a(n: i32) -> () { }\nfn bench_b() -> &i32 { 0 as &i32 }\nfn bench_c() { }\n");
    let (code, _, err) = bench(&[file.as_ref()]);
    assert_eq!((code, err.matches("error[not-a-benchmark]").count()), (Some(1), 3), "{err}");
    assert!(err.contains("p.impala:1:4") && err.contains("has parameters"), "{err}");
    let none = folder.write("none.impala", "fn main() -> () { }\n");
    let (code, _, err) = bench(&[none.as_ref()]);
    assert!(code == Some(2) && err.contains("no benchmarks found"), "{err}");
    let wrong = folder.write("wrong.impala", "fn bench_a() -> i32 { true }\n");
    let (code, _, err) = bench(&[wrong.as_ref()]);
    assert!(code == Some(1) && err.contains("error[type-mismatch]"), "{err}");
    let good = folder.write("good.impala", PROGRAM);
    let (code, _, err) = bench(&[good.as_ref(), "--baseline".as_ref(), "one".as_ref()]);
    assert!(code == Some(2) && err.contains("no results `one`"), "{err}");
    folder.write("good.bench.json", "[1, ");
    let (code, _, err) = bench(&[good.as_ref(), "--baseline".as_ref(), "one".as_ref()]);
    assert!(code == Some(1) && err.contains("error[cannot-read]"), "{err}");
    for bad in [["--fail-above", "2"], ["--time", "soon"]] {
        assert_eq!(bench(&[good.as_ref(), bad[0].as_ref(), bad[1].as_ref()]).0, Some(2), "{bad:?}");
    }
}

/// The exported functions that call benchmarks are in no file.
#[test]
fn a_benchmark_that_panics_is_shown_in_its_line() {
    let folder = Folder::new("bench panics");
    let file = folder.write(
        "p.impala",
        "fn f(n: i32) -> i32 { assert(n < 10); 2 * n }\n\nfn bench_one() -> i32 { 1 }\nfn bench_bad() -> i32 {\n    f($30)\n}\n",
    );
    for check in [&[][..], &["--check"][..]] {
        let args: Vec<&OsStr> = check.iter().map(OsStr::new).chain([file.as_ref()]).collect();
        let (code, out, err) = bench(&args);
        assert!(code != Some(0) && err.contains("assertion failed: `n < 10`"), "{out}{err}");
        assert!(
            err.contains("p.impala:1:23") && (err.contains("p.impala:5:5") || err.contains("5 |     f($30)")),
            "{err}"
        );
        assert!(!err.contains("benchmarks>") && !err.contains("bench_function") && !err.contains("bench_one"), "{err}");
    }
}

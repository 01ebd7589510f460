//! `nyala tune`: which variants are left out and which is chosen, what is stored, and how other commands use it. No test
//! that runs by default depends on how fast anything is: variants report times of their own.

use crate::common::{Folder, command, end, nyala, own_cache, root, stderr};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// It reports 60 ms as written, with `quick` 1 ms, whatever N is.
const PROGRAM: &str = "\
use std::tune::*;
//! tune WAY: quick, slow
static WAY = slow;
//! tune N: 1, 2
static N = 1;
fn @slow(n: i32) -> i64 { 60i64 * (n / n) as i64 }
fn @quick(n: i32) -> i64 { (n / n) as i64 }
fn main() -> i32 { take_time(); report_time(WAY(N) * 1000000i64); print_i32(0); println(); 0 }
";

/// A function that sleeps when it is called for the first time: so the program as written takes long by the clock, and
/// variants are not given up for work that the machine has besides.
fn take_time(folder: &Folder, ms: u32) -> String {
    let mark = folder.path(MARK);
    format!(
        "extern \"C\" {{ fn access(&[u8], i32) -> i32; fn creat(&[u8], i32) -> i32; fn usleep(u32) -> i32; }}\n\
         fn take_time() -> () {{ if access({mark:?}, 0) != 0 {{ let _ = creat({mark:?}, 420); let _ = usleep({ms}000u); }} }}\n"
    )
}

/// The file that says that the program has run.
const MARK: &str = "ran";

/// Tunes the program in a file, with options, in all the time that it needs.
fn tune(file: &Path, options: &[&OsStr]) -> (Option<i32>, String, String) {
    let _ = std::fs::remove_file(file.with_file_name(MARK));
    let mut all: Vec<&OsStr> = vec!["tune".as_ref(), file.as_os_str()];
    if !options.contains(&OsStr::new("--time")) {
        all.extend(["--time", "1000"].map(OsStr::new));
    }
    all.extend(options);
    let output = nyala(&all, 120);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

fn run(verb: &str, file: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut all: Vec<&OsStr> = vec![verb.as_ref()];
    all.extend(args.iter().map(OsStr::new));
    all.push(file.as_os_str());
    let output = nyala(&all, 60);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

/// Machine and date are left out.
fn values_of(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with(['#', '[']));
    lines.map(|l| format!("{l}\n")).collect()
}

#[test]
fn the_fastest_values_are_stored_and_used() {
    let folder = Folder::new("tune");
    let file = folder.write("p.impala", PROGRAM.to_string() + &take_time(&folder, 1500));
    let plot = folder.path("p.svg");
    let (code, out, err) = tune(&file, &["--plot".as_ref(), plot.as_ref()]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("4 of 4 variants tried") && out.contains("stored in "), "{out}");
    let chosen = out.lines().find(|l| l.ends_with("chosen")).expect("a chosen variant");
    // N makes no difference: it stays as written.
    assert!(chosen.contains("quick") && chosen.split_whitespace().rev().nth(1) == Some("1"), "{out}");
    assert_eq!(values_of(&folder.path("p.tune")), "WAY = quick\nN = 1\n");
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("WAY = quick, N = 1") && svg.ends_with("</svg>\n"), "{svg}");

    let is_quick = |args: &[&str]| {
        let (code, out, err) = run("emit", &file, &[args, &["--stage", "flat"]].concat());
        assert_eq!(code, Some(0), "{err}");
        (!out.contains("60000000i64"), err)
    };
    let (quick, err) = is_quick(&[]);
    assert!(quick && err.contains("info[tuned-values]: tuned: WAY = quick, N = 1 ("), "{err}");
    assert_eq!(is_quick(&["--no-tune"]), (false, String::new()));
    let (quick, err) = is_quick(&["-D", "WAY=slow"]);
    assert!(!quick && err.contains("tuned: N = 1 ("), "{err}");
    // Other machines' values are not known.
    assert_eq!(is_quick(&["--cpu", "x86-64"]), (false, String::new()));
    let (code, out, err) = run("run", &file, &["--json"]);
    assert_eq!((code, out.as_str()), (Some(0), "0\n"));
    assert!(err.starts_with("{\"severity\":\"info\",\"code\":\"tuned-values\""), "{err}");

    // Its entries for other CPUs stay.
    let old = std::fs::read_to_string(folder.path("p.tune")).unwrap();
    folder.write("p.tune", old.clone() + "\n[pdp11]\nN = 2\n");
    let (code, out, err) = tune(&file, &["-D".as_ref(), "N=1".as_ref(), "--json".as_ref()]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let [slow, quick] = &report["variants"].as_array().unwrap()[..] else { panic!("{out}") };
    assert_eq!(
        (&slow["written"], &slow["chosen"], &slow["values"]["WAY"]),
        (&true.into(), &false.into(), &"slow".into())
    );
    assert_eq!(
        (&quick["chosen"], &quick["values"]["WAY"], &quick["rejected"]),
        (&true.into(), &"quick".into(), &().into())
    );
    assert_eq!(quick["ms"]["median"].as_f64().map(f64::round), Some(1.0));
    let new = std::fs::read_to_string(folder.path("p.tune")).unwrap();
    assert!(new.contains("\n[pdp11]\nN = 2\n") && new.ends_with("\nWAY = quick\n"), "{new}");
}

#[test]
fn values_for_a_device_are_used_with_that_device_only() {
    let folder = Folder::new("tune device");
    let file = folder.write(
        "p.impala",
        "use std::device::*;\n\
         use std::tune::*;\n\
         //! tune N: 1, 2\n\
         static N = 1;\n\
         fn main() -> i32 {\n\
         take_time();\n\
         for i in host().range(0, N) { }\n\
         report_time(if is_quick() { 1000000i64 } else { 30000000i64 });\n\
         0\n\
         }\n\
         fn is_quick() -> bool { N == 2 }\n"
            .to_string()
            + &take_time(&folder, 1500),
    );
    let options = ["--device", "host"].map(OsStr::new);
    let (code, out, err) = tune(&file, &options);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let stored = std::fs::read_to_string(folder.path("p.tune")).unwrap();
    assert!(stored.contains(", host]\n") && values_of(&folder.path("p.tune")) == "N = 2\n", "{stored}");
    let uses = |options: &[&OsStr]| {
        let args: Vec<&OsStr> = [&["check".as_ref()], options, &[file.as_ref()]].concat();
        crate::common::stderr(&nyala(&args, 60)).contains("info[tuned-values]")
    };
    assert!(uses(&options) && !uses(&[]));
}

#[test]
fn variants_that_fail_are_left_out() {
    let folder = Folder::new("tune faults");
    let file = folder.write(
        "p.impala",
        "use std::system::*;\n\
         use std::tune::*;\n\
         //! tune WAY: quick, crash, wrong, forever, nonsense, exits, talks, stops\n\
         static WAY = slow;\n\
         static mut zero = 0;\n\
         fn slow() -> i32 { report_time(60000000i64); 7 }\n\
         fn quick() -> i32 { report_time(1000000i64); 7 }\n\
         fn crash() -> i32 { let p = (zero as i64 + 16i64) as &mut i32; *p = 3; 7 }\n\
         fn wrong() -> i32 { report_time(1000000i64); 8 }\n\
         fn forever() -> i32 { sleep_ms(1000000000i64); 7 }\n\
         fn exits() -> i32 { exit(9); 7 }\n\
         fn talks() -> i32 { while zero == 0 { print_string(\"all the time\\n\") } 7 }\n\
         fn stops() -> i32 { panic(\"on purpose\") }\n\
         fn main() -> i32 { take_time(); print_string(\"seven\\n\"); print_i32(WAY()); println(); 3 }\n"
            .to_string()
            + &take_time(&folder, 1500),
    );
    let (code, out, err) = tune(&file, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let has = |text: &str| assert!(out.contains(text), "{text}\nin\n{out}");
    has("  WAY = crash: ends by signal: 11 (SIGSEGV): error: wild memory access");
    has("  WAY = wrong: prints something else: line 2 is `8`, as written `7`\n");
    has("  WAY = forever: does not end within ");
    has("  WAY = nonsense: does not compile: error[unknown-name]");
    has("  WAY = exits: exit code 9, as written 3\n");
    has("  WAY = talks: prints more than ");
    has("  WAY = stops: ends by signal: 6 (SIGABRT): ");
    has("note: the program ends with exit code 3");
    has("9 of 9 variants tried");
    assert_eq!(values_of(&folder.path("p.tune")), "WAY = quick\n");
}

#[test]
fn programs_report_their_own_time() {
    let folder = Folder::new("tune report");
    // The variant that is fastest in total is slow on the case that counts.
    let file = folder.write(
        "p.impala",
        "use std::tune::*;\nuse std::system::*;\n//! tune T: 5, 50\nstatic T = 20;\n\
         fn main() -> () { take_time(); print_string(\"a\"); report_time(T as i64 * 1000000i64); print_string(\"b\\n\"); \
         sleep_ms((60 - T) as i64); report_time(1000i64) }\n"
            .to_string()
            + &take_time(&folder, 1500),
    );
    let (code, out, err) = tune(&file, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let rows: Vec<Vec<&str>> = out.lines().map(|l| l.split_whitespace().collect()).collect();
    let median = |t: &str| rows.iter().find(|r| r.get(7) == Some(&t)).map(|r| r[0]);
    assert_eq!([median("5"), median("20"), median("50")], [Some("5.001"), Some("20.00"), Some("50.00")], "{out}");
    assert_eq!(values_of(&folder.path("p.tune")), "T = 5\n");
    // Nothing of that is to be seen otherwise.
    assert_eq!(run("run", &file, &["--no-tune"]).1, "ab\n");
}

#[test]
fn ties_stay_as_written() {
    let folder = Folder::new("tune ties");
    let text = "use std::tune::*;\nstatic A = 1;\nstatic B = 1;\n\
                fn main() -> () { take_time(); report_time(1000000i64 * (A * B / A / B) as i64); }\n";
    let file = folder.write("p.impala", text.to_string() + &take_time(&folder, 1500));
    let (code, out, err) = tune(&file, &["-D", "A=1..4", "-D", "B=1,2,3"].map(OsStr::new));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("chosen, as written") && out.contains("12 of 12 variants"), "{out}");
    assert_eq!(values_of(&folder.path("p.tune")), "");
    // Nothing to use, nothing to say.
    assert_eq!(run("run", &file, &[]), (Some(0), String::new(), String::new()));
}

#[test]
fn candidates_that_are_no_use() {
    let folder = Folder::new("tune candidates");
    let errors = |program: &str, args: &[&str]| {
        let file = folder.write("p.impala", program);
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let (code, out, err) = tune(&file, &args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(!folder.path("p.tune").exists());
        err
    };
    let main = "fn main() -> () { }\n";
    let has = |text: String, part: &str| assert!(text.contains(part), "{part}\nin\n{text}");
    has(errors(main, &[]), "error[no-candidates]");
    // The only candidate is what is written.
    has(errors(&format!("//! tune A: 8\nstatic A = 8;\n{main}"), &[]), "error[no-candidates]");
    let unknown = errors(&format!("//! tune WIDHT: 8, 16\nstatic WIDTH = 8;\n{main}"), &[]);
    has(unknown.clone(), "error[no-such-static]");
    has(unknown.clone(), "p.impala:1:10");
    has(unknown, "did you mean `WIDTH`?");
    has(errors(&format!("static A = 8;\n{main}"), &["-D", "B=1,2"]), "error[no-such-static]");
    has(errors(&format!("//! tune A: 8..1\nstatic A = 8;\n{main}"), &[]), "`8..1` is empty");
    has(errors(&format!("//! tune A 8, 1\nstatic A = 8;\n{main}"), &[]), "error[bad-candidates]");
    has(errors(&format!("//! tune A: 1, 2\n//! tune A: 3\nstatic A = 8;\n{main}"), &[]), "has candidates already");
    has(errors(&format!("//! tune A: 1, 2\nstatic A = 8;\n{main}"), &["-D", "A=1,,2"]), "a value is empty");
    has(errors("fn main( {", &["-D", "A=1,2"]), "error[unexpected-token]");
}

#[test]
fn programs_that_cannot_be_measured() {
    let folder = Folder::new("tune measure");
    let error = |program: &str| {
        let file = folder.write("p.impala", format!("//! tune A: 1, 2\nstatic A = 3;\n{program}"));
        let (code, _, err) = tune(&file, &["--time", "0"].map(OsStr::new));
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains("error[not-measurable]: the program as written cannot be measured: "), "{err}");
        assert!(!folder.path("p.tune").exists());
        err
    };
    let has = |text: String, part: &str| assert!(text.contains(part), "{part}\nin\n{text}");
    has(error("fn main() -> i32 { A + nonsense }"), "error[unknown-name]");
    has(error("fn f() -> i32 { A }"), "error[no-entry]");
    has(error("fn main() -> () { assert(A == 0) }"), "signal: 6 (SIGABRT)");
    has(
        error("extern \"C\" { fn getpid() -> i32; } fn main() -> () { print_i32(getpid() + A) }"),
        "it prints something else the second time: line 1",
    );
}

#[test]
fn little_time() {
    let folder = Folder::new("tune time");
    let file = folder.write("p.impala", PROGRAM.replace("take_time(); ", ""));
    let (code, out, err) = tune(&file, &["--time", "0"].map(OsStr::new));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("1 of 4 variants tried") && err.contains("give more time by `--time`"), "{out}{err}");
    assert!(!folder.path("p.tune").exists());
    for bad in ["-1", "NaN", "soon"] {
        assert_eq!(tune(&file, &["--time".as_ref(), bad.as_ref()]).0, Some(2));
    }
    assert_eq!(tune(&file, &["--plot", "p.png"].map(OsStr::new)).0, Some(2));
    assert_eq!(tune(&file, &["--cpu", "x86-64"].map(OsStr::new)).0, Some(2));
}

#[test]
fn a_file_that_cannot_be_written_is_known_before_the_search() {
    let folder = Folder::new("tune write");
    let file = folder.write("p.impala", PROGRAM.replace("take_time(); ", ""));
    std::fs::create_dir(folder.path("p.tune")).unwrap();
    let (code, out, err) = tune(&file, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("error[cannot-write]") && err.contains("p.tune"), "{err}");
    // Nor is it read.
    let (code, out, err) = run("run", &file, &[]);
    assert_eq!((code, out.as_str()), (Some(0), "0\n"));
    assert!(err.contains("warning[bad-tune-file]: cannot read"), "{err}");
}

#[test]
fn broken_and_stale_files_are_warnings() {
    let folder = Folder::new("tune stale");
    let text = "static A: i32 = 5;\nfn main() -> () { print_i32(A); println() }\n";
    let file = folder.write("p.impala", text);
    // Its heading has the name of this machine's CPU.
    let (code, ..) = tune(&file, &["-D", "A=5,6"].map(OsStr::new));
    assert_eq!(code, Some(0));
    let made = std::fs::read_to_string(folder.path("p.tune")).unwrap();
    let heading = made.lines().find(|l| l.starts_with('[')).unwrap().to_string();
    let with = |section: &str| {
        folder.write("p.tune", format!("{heading}\n{section}\n"));
        let (code, out, err) = run("run", &file, &[]);
        assert_eq!(code, Some(0), "{err}");
        (out, err)
    };
    let (out, err) = with("A = 7");
    assert!(out == "7\n" && err.starts_with("info[tuned-values]: tuned: A = 7"), "{out}{err}");
    for (section, warning) in [
        ("A = true", "the values in `"),
        ("A = 7 +", "`7 +` is no expression"),
        ("B = 7", "the program has no top-level static `B` any more"),
        ("A 7", "expected `[MACHINE]`, `NAME = VALUE` or `# comment`"),
        ("A = nonsense", "do not fit the program any more: found no `nonsense`"),
    ] {
        let (out, err) = with(section);
        assert_eq!(out, "5\n", "{section}: {err}");
        assert!(err.starts_with("warning[bad-tune-file]: ") && err.contains(warning), "{section}: {err}");
        assert!(!err.contains("error") && !err.contains("tuned:"), "{section}: {err}");
    }
    folder.write("p.tune", b"\xff\xfe");
    let (_, out, err) = run("run", &file, &[]);
    assert!(out == "5\n" && err.contains("warning[bad-tune-file]: cannot read"), "{err}");
    // Errors of the program are its own.
    folder.write("p.tune", format!("{heading}\nA = 7\n"));
    folder.write("p.impala", "static A: i32 = 5;\nfn main() -> i32 { nonsense }\n");
    let (code, _, err) = run("run", &file, &[]);
    assert!(code == Some(1) && err.contains("error[unknown-name]") && !err.contains("bad-tune-file"), "{err}");
}

#[test]
fn who_is_interrupted_keeps_what_was_found() {
    let folder = Folder::new("tune interrupt");
    // The variants after the first two never end, and would take long to be given up.
    let file = folder.write(
        "p.impala",
        "use std::tune::*;\nuse std::system::*;\n//! tune WAY: quick, forever\nstatic WAY = slow;\n\
         fn slow() -> i64 { 100i64 }\nfn quick() -> i64 { 1i64 }\n\
         fn forever() -> i64 { let _ = creat(\"reached\", 420); sleep_ms(1000000000i64); 1i64 }\n\
         fn main() -> () { take_time(); report_time(WAY() * 1000000i64); print_i32(7); println() }\n"
            .to_string()
            + &take_time(&folder, 5000),
    );
    let mut run = Command::new(command());
    run.args(["tune".as_ref(), file.as_os_str()]).current_dir(&folder.0);
    run.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = own_cache(&mut run).spawn().unwrap();
    while !folder.path("reached").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    // Not SIGINT, which what a shell starts in the background ignores.
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = end(child);
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(143), "{out}{}", stderr(&output));
    assert!(out.contains("2 of 3 variants tried"), "{out}");
    assert_eq!(values_of(&folder.path("p.tune")), "WAY = quick\n");
}

#[test]
fn tests_run_as_written() {
    let folder = Folder::new("tune test");
    let file = folder
        .write("p.impala", "static A = 5;\n//? a() == 5\nfn a() -> i32 { A }\nfn main() -> () { print_i32(a()) }\n");
    assert_eq!(tune(&file, &["-D", "A=5"].map(OsStr::new)).0, Some(1));
    assert_eq!(tune(&file, &["-D", "A=4,5"].map(OsStr::new)).0, Some(0));
    let made = std::fs::read_to_string(folder.path("p.tune")).unwrap();
    folder.write("p.tune", made + "A = 4\n");
    assert_eq!(run("run", &file, &[]).1, "4");
    assert_eq!(run("test", &file, &[]).1, "1 passed, 0 failed, 0 skipped\n");
}

#[test]
fn programs_of_several_files_and_objects() {
    let folder = Folder::new("tune files");
    folder.write("part.impala", "//! tune A: 1..2\nstatic A = 3;\nfn a() -> i32 { A }\n");
    let file = folder.write(
        "p.impala",
        take_time(&folder, 1500)
            + "mod part;\nuse std::tune::*;\nextern \"C\" { fn zero(i32) -> i32; }\n//! tune B: 4\nstatic B = 5;\n\
         fn main(argc: i32, argv: &[&[u8]]) -> () { take_time(); print_i32(zero(argc)); print_string(argv(1)); println(); \
         report_time((part::a() * B) as i64 * 1000000i64) }\n",
    );
    let c = folder.write("zero.c", "int zero(int x) { return x - x; }\n");
    let object = folder.path("zero.o");
    crate::common::sh(Command::new("cc").arg("-c").arg(&c).arg("-o").arg(&object));
    let (code, out, err) =
        tune(&file, &[object.as_ref(), "-O0".as_ref(), "--wrap".as_ref(), "--".as_ref(), "x y".as_ref()]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("6 of 6 variants tried") && !out.contains("left out"), "{out}");
    let mut values: Vec<String> = values_of(&folder.path("p.tune")).lines().map(str::to_string).collect();
    values.sort();
    assert_eq!(values, ["A = 1", "B = 4"]);
}

/// Without reports, the clock tells which is faster.
#[test]
#[ignore = "measures times: ./x test --all crates"]
fn variants_are_measured() {
    let folder = Folder::new("tune clock");
    let file = folder.write(
        "p.impala",
        "use std::system::*;\n//! tune WAY: quick\nstatic WAY = slow;\n\
         fn slow() -> i32 { sleep_ms(60i64); 7 }\nfn quick() -> i32 { 7 }\n\
         fn main() -> () { print_i32(WAY()); println() }\n",
    );
    let (code, out, err) = tune(&file, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert_eq!(values_of(&folder.path("p.tune")), "WAY = quick\n");
}

#[test]
fn the_page_about_tuning() {
    let page = std::fs::read_to_string(root().join("docs/tuning.md")).unwrap();
    let program = page.split("```rust impala\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = Folder::new("tune page");
    // A small matrix, which also takes long enough by the clock.
    assert!(program.contains("static N = 1024;") && program.contains("fn main() -> () {\n"));
    let program = program.replace("static N = 1024;", "static N = 128;");
    let program = program.replace("fn main() -> () {\n", "fn main() -> () {\n    take_time();\n");
    let file = folder.write("transpose.impala", program + &take_time(&folder, 1500));
    let (code, out, err) = tune(&file, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("variants tried") && !out.contains("left out"), "{out}");
    let stored = values_of(&folder.path("transpose.tune"));
    assert!(stored.is_empty() || stored.contains("TILE = "), "{stored}");
}

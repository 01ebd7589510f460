//! The command `nyala` met with bad input, missing and corrupt files, and folders with spaces in their names.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder of its own, with a space in its name, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nyala test {} {name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The command, built like these tests.
fn command() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let status =
            Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--package", "nyala"]).status();
        assert!(status.unwrap().success());
    });
    // Tests lie in `deps`, beside which the commands are.
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().parent().unwrap().join(format!("nyala{}", std::env::consts::EXE_SUFFIX))
}

/// Runs it; it must end within the limit and must not crash.
fn nyala(args: &[&std::ffi::OsStr], limit: u64) -> Output {
    let start = Instant::now();
    let mut child = Command::new(command())
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |pipe: &mut dyn std::io::Read| {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    };
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || read(&mut out));
        let stderr = scope.spawn(move || read(&mut err));
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > Duration::from_secs(limit) {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("takes more than {limit} s");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program is checked: errors or none, within seconds.
fn check(name: &str, text: impl AsRef<[u8]>, code: i32) -> String {
    let folder = Folder::new(name);
    let output = nyala(&["check".as_ref(), folder.write("program.impala", text).as_os_str()], 20);
    let err = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{}", &err[..err.len().min(2000)]);
    err
}

#[test]
fn an_empty_file_is_a_program_without_main() {
    check("empty", "", 0);
    let folder = Folder::new("empty run");
    let output = nyala(&["run".as_ref(), folder.write("p.impala", "").as_os_str()], 20);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[no-entry]"));
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
        let output = nyala(&args, 20);
        let err = stderr(&output);
        assert!(output.status.code().is_some_and(|c| c <= 1), "{engine}: {err}");
    }
}

#[test]
fn missing_files_are_errors() {
    let folder = Folder::new("missing");
    let output = nyala(&["check".as_ref(), folder.0.join("none.impala").as_os_str()], 20);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read"));
    assert_eq!(nyala(&["no-such-verb".as_ref()], 20).status.code(), Some(2));
}

#[test]
fn the_interpreter_reports_undefined_behavior() {
    let folder = Folder::new("undefined");
    let path = folder.write("p.impala", "fn main() -> i32 { let mut x = 2147483647; x += $1; x }\n");
    let args: [&std::ffi::OsStr; 4] = ["run".as_ref(), "--engine".as_ref(), "interp".as_ref(), path.as_os_str()];
    let output = nyala(&args, 20);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("signed overflow"));
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
fn the_same_program_gives_the_same_text() {
    let program = root().join("examples/blur/blur.impala");
    for stage in ["graph", "residual", "flat", "llvm"] {
        let args: [&std::ffi::OsStr; 4] = ["emit".as_ref(), "--stage".as_ref(), stage.as_ref(), program.as_os_str()];
        assert_eq!(nyala(&args, 120).stdout, nyala(&args, 120).stdout, "{stage}");
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

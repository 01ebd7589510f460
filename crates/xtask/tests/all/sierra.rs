//! Programs in Sierra as files of the command: with other code, with options, and what there is not for them.

use crate::common::{Folder, nyala, stderr};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Output;

fn run(args: &[&str], files: &[PathBuf]) -> Output {
    let all: Vec<&OsStr> = args.iter().map(|a| a.as_ref()).chain(files.iter().map(|f| f.as_os_str())).collect();
    nyala(&all, 60)
}

#[test]
fn files_meet_by_the_names_of_their_functions() {
    let folder = Folder::new("sierra files");
    let files = [
        folder.write("a.sierra", "int triple(int n);\nstatic int own(int n) { return n; }\nint six(int n) { return 2 * triple(own(n)); }\n"),
        folder.write(
            "b.sierra",
            "int six(int n);\nstatic int own(int n) { return n + 1; }\n\
             void fill(float* to, const float* from, int n) {\n    for (int i = 0; i < n; i++) to[i] = from[i] + six(own(i));\n}\n",
        ),
        folder.write(
            "main.impala",
            "extern \"C\" { fn fill(&mut [f32], &[f32], i32) -> (); }\nextern fn triple(n: i32) -> i32 { 3 * n }\n\
             fn main() -> i32 {\n    let mut to = [0f, .. 3];\n    fill(&mut to, &[0.5f, 1f, 2f], 3);\n    print_f32(to(2));\n    to(0) as i32\n}\n",
        ),
    ];
    for engine in ["jit", "interp", "c"] {
        let output = run(&["run", "--engine", engine], &files);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "20", "{engine}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(6), "{engine}");
    }
}

#[test]
fn headers_of_impala_are_included() {
    let folder = Folder::new("sierra headers");
    let library = folder.write(
        "lib.impala",
        "struct P { x: f32, y: f32 }\nextern fn dot(a: P, b: &P, v: &[f32]) -> f32 { a.x * b.x + v(0) }\n\
         extern fn make(x: f32) -> P { P { x: x, y: 2f } }\nextern fn set(n: &mut i32) -> () { *n = 5; }\n",
    );
    let header = folder.write("lib.h", "");
    std::fs::remove_file(&header).unwrap();
    let made = run(&["build", "-o", header.to_str().unwrap()], std::slice::from_ref(&library));
    assert!(made.status.success(), "{}", stderr(&made));
    let text = "#include \"lib.h\"\nint main() {\n    P a = {2, 3}, b = make(4);\n    float v[1] = {10};\n    int n = 0;\n    set(&n);\n\
                print(\"% % %\", dot(a, &b, v), b.y, n);\n    return 0;\n}\n";
    let files = [library, folder.write("main.sierra", text)];
    for engine in ["jit", "interp"] {
        let output = run(&["run", "--engine", engine], &files);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "18 2 5", "{engine}: {}", stderr(&output));
    }
}

#[test]
fn functions_that_do_not_fit_are_errors() {
    let folder = Folder::new("sierra clashes");
    let program = folder.write("a.sierra", "int f(int n) { return n; }\nint g(float x);\nint h() { return g(1); }\n");
    let twice = folder.write("b.sierra", "int f(int n) { return -n; }\n");
    let output = run(&["check"], &[program.clone(), twice]);
    assert!(stderr(&output).contains("error[sierra-name]: `f` is declared twice"), "{}", stderr(&output));
    for (text, said) in [
        ("extern fn f(n: i32) -> i32 { n }", "error[sierra-name]: the program has another function `f`"),
        (
            "extern \"C\" { fn f(f32) -> i32; }\nextern fn k() -> i32 { f(1f) }",
            "error[sierra-type]: other code has `f` as",
        ),
        ("extern fn g(x: i32) -> i32 { x }", "error[sierra-type]: other code has `g` as"),
    ] {
        let output = run(&["run"], &[program.clone(), folder.write("c.impala", text)]);
        assert!(stderr(&output).contains(said), "{text}: {}", stderr(&output));
    }
}

#[test]
fn signed_sums_wrap_around_if_asked_for() {
    let folder = Folder::new("sierra wraps");
    let text = "int more(int n) { return n + 1; }\nint varying(2) both(int varying(2) n) { return -n * 2; }\n\
                int main() {\n    int varying(2) least = -2147483647 - 1;\n    return more(2147483647) < 0 && all(both(least) == 0) ? 3 : 4;\n}\n";
    let program = [folder.write("a.sierra", text)];
    for engine in ["jit", "interp"] {
        let output = run(&["run", "--wrap", "--engine", engine], &program);
        assert_eq!(output.status.code(), Some(3), "{engine}: {}", stderr(&output));
    }
    let output = run(&["run", "--engine", "interp"], &program);
    assert!(stderr(&output).contains("error[signed-overflow]"), "{}", stderr(&output));
    // Warned of are constants, too.
    let output = run(&["run", "--check"], &program);
    assert!(stderr(&output).contains("a.sierra:1"), "{}", stderr(&output));
}

#[test]
fn what_is_not_there_says_so() {
    let folder = Folder::new("sierra limits");
    let program = [folder.write("a.sierra", "int f(int n) { return n; }\n")];
    for args in [&["fmt"][..], &["doc"], &["emit", "--stage", "ast"]] {
        let output = run(args, &program);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains("limitation"), "{args:?}: {said}");
    }
    let kept = std::fs::read_to_string(&program[0]).unwrap();
    assert_eq!(kept, "int f(int n) { return n; }\n");
    for stage in ["graph", "residual", "flat", "llvm", "c"] {
        let output = run(&["emit", "--stage", stage], &program);
        assert!(output.status.success(), "{stage}: {}", stderr(&output));
    }
    let empty = [folder.write("empty.sierra", "")];
    assert!(run(&["check"], &empty).status.success());
}

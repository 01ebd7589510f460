//! `nyala emit --stage c`: a C compiler accepts the text without warnings and, with the runtime, makes a program of it that
//! prints what the source says.

use crate::common::{Folder, command, nyala, root, sh, skip, stderr};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The runtime lies beside the command.
fn runtime() -> PathBuf {
    command().with_file_name("libnyala_runtime.a")
}

fn emit(source: &Path, out: &Path) -> String {
    let args: [&OsStr; 6] =
        ["emit".as_ref(), "--stage".as_ref(), "c".as_ref(), source.as_ref(), "-o".as_ref(), out.as_ref()];
    let output = nyala(&args, 120);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    std::fs::read_to_string(out).expect("the text")
}

#[test]
fn examples_are_programs_in_c() {
    if Command::new("cc").arg("--version").output().is_err() {
        skip("a C compiler");
        return;
    }
    let folder = Folder::new("c text");
    for name in ["examples/01_power.impala", "examples/08_parallel.impala", "examples/13_patterns.impala"] {
        let source = root().join(name);
        let (text, program) = (folder.path("program.c"), folder.path("program"));
        emit(&source, &text);
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wstrict-aliasing=2", "-Werror"]);
        // The text that lesson 13 searches is known: gcc warns of an index below 0 behind a condition that always holds.
        cc.args(["-Wno-error=array-bounds", "-Wno-unused-parameter", "-ffp-contract=off", "-o"])
            .arg(&program)
            .arg(&text);
        sh(cc.arg(runtime()).args(["-lm", "-lpthread", "-ldl"]));
        let printed = sh(&mut Command::new(&program));
        let source = std::fs::read_to_string(&source).expect("the source");
        let expected = source.lines().filter_map(|l| l.trim_start().strip_prefix("//>"));
        let expected: Vec<&str> = expected.map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn warnings_about_the_text_are_no_errors() {
    if Command::new("cc").arg("--version").output().is_err() {
        skip("a C compiler");
        return;
    }
    let folder = Folder::new("c text that is warned of");
    // The loop goes past the end of the array, and never runs.
    let source = folder.write(
        "p.impala",
        "fn work(k: i32) -> i32 {\n\
             let mut cells: [i32 * 23];\n\
             for i in range(0, 23) { cells(i) = i }\n\
             let mut sum = 0;\n\
             if k > 5 { for i in range(0, 40) { sum += cells(i) } }\n\
             sum + cells(k)\n\
         }\n\
         fn main(argc: i32, argv: &[&[u8]]) -> i32 { print_i32(work(argc)); println(); 0 }\n",
    );
    let args: [&OsStr; 4] = ["run".as_ref(), "--engine".as_ref(), "c".as_ref(), source.as_ref()];
    let output = nyala(&args, 120);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
}

#[test]
fn variables_that_are_not_set_are_warned_of() {
    if Command::new("cc").arg("--version").output().is_err() {
        skip("a C compiler");
        return;
    }
    let folder = Folder::new("c text of variables");
    // Masked loads make a compiler see such variables where there are none, but only they.
    for (name, program, is_silent) in [
        ("plain", "extern fn f(k: i32) -> i32 { let mut a: [i32 * 4]; if k > 2 { a(k) = k } a(k + 1) }\n", false),
        (
            "masked",
            "extern \"thorin\" { fn rv_any(bool) -> bool; }\n\
             extern fn f(a: &mut [i32], n: i32) -> () {\n\
                 for i in vectorize(8, 0, n) { if rv_any(a(i) > 0) { a(i) = a(i + 1) } }\n\
             }\n",
            true,
        ),
    ] {
        let source = folder.write(&format!("{name}.impala"), program);
        let text = emit(&source, &folder.path("p.c"));
        assert_eq!(text.contains("ignored \"-Wmaybe-uninitialized\""), is_silent, "{text}");
    }
}

#[test]
fn text_is_what_a_person_would_write() {
    let folder = Folder::new("c text of a person");
    let source = folder.write(
        "p.impala",
        "extern fn dot(a: &[f32], b: &[f32], n: i32) -> f32 {\n\
             let mut sum = 0f;\n\
             for i in range(0, n) { sum += a(i) * b(i); }\n\
             sum\n\
         }\n\
         extern fn blur(out: &mut [f32], img: &[f32], w: i32, h: i32) -> () {\n\
             for y in range(1, h - 1) {\n\
                 for x in range(1, w - 1) {\n\
                     let mut sum = 0f;\n\
                     for dy in range(-1, 2) { for dx in range(-1, 2) { sum += img((y + dy) * w + x + dx); } }\n\
                     out(y * w + x) = sum / 9f;\n\
                 }\n\
             }\n\
         }\n",
    );
    let text = emit(&source, &folder.path("p.c"));
    let functions = text.find("\n\nfloat dot").map_or("", |at| &text[at..]);
    expect_test::expect![[r#"


        float dot(float *a, float *b, int n);
        void blur(float *out, float *img, int w, int h);

        float dot(float *a, float *b, int n) {
            float x = 0.0f;
            for (int a2 = 0; a2 < n; a2++) {
                x += a[a2] * b[a2];
            }
            return x;
        }

        void blur(float *out, float *img, int w, int h) {
            int n = h - 1;
            int n2 = (int)(w - 1u);
            for (int a = 1; a < n; a++) {
                int n3 = (int)((unsigned)a * w);
                for (int a2 = 1; a2 < n2; a2++) {
                    float x = 0.0f;
                    for (int a3 = -1; a3 < 2; a3++) {
                        int n4 = (int)(((unsigned)a + a3) * w + a2);
                        for (int a4 = -1; a4 < 2; a4++) {
                            x += img[n4 + a4];
                        }
                    }
                    out[n3 + a2] = x / 9.0f;
                }
            }
        }
    "#]]
    .assert_eq(functions);
}

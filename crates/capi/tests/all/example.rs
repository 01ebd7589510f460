//! The example of a host with plug-ins.

use crate::host::{compile, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugin")
}

#[test]
fn a_host_runs_plug_ins_and_reports_bad_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = folder.path().join("host");
    if !compile("cc", &["-std=c99", "-D_POSIX_C_SOURCE=200809L"], &example().join("host.c"), &host) {
        return;
    }
    let said = run(Command::new(&host).arg(example().join("plugins")).args(["1", "6", "27"]));
    assert_eq!(said, "collatz.impala: 0 8 111\npolynomial.impala: 4 429 39342\n");
    let readme = std::fs::read_to_string(example().join("README.md")).expect("the page");
    assert!(readme.contains(&said), "{readme}");

    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).expect("a folder");
    let files = [
        ("a.impala", "extern fn run(x: i32) -> i32 { x + 1 }"),
        ("b.impala", "extern fn run(x: f32) -> f32 { x }"),
        ("c.impala", "extern fn other(x: i32) -> i32 { x }"),
        ("fault.impala", "extern fn run(x: i32) -> i32 { if x < 0 { panic(\"it is negative\") } x }"),
        ("typo.impala", "extern fn run(x: i32) -> i32 { x + y }"),
        ("z.impala", "extern fn run(x: i32) -> i32 { x * 2 }"),
        ("z.txt", "no plug-in"),
    ];
    files.iter().for_each(|(name, text)| std::fs::write(plugins.join(name), text).expect("it can be written"));
    let output =
        Command::new(&host).current_dir(folder.path()).args(["plugins", "20", "-3"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a.impala: 21 -2\nfault.impala: 20\nz.impala: 40 -6\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "\
plugins/b.impala: error: `run` has another type: parameter 1 is `int32_t` here, `float x` in the program
    here:           int32_t(int32_t)
    in the program: float run(float x)
plugins/c.impala: error: the program exports no function `run`; it exports:
    fn other(x: i32) -> i32
plugins/fault.impala: panic at plugins/fault.impala:1:43: it is negative
plugins/typo.impala:1:36: error: found no `y` in scope
    declare it, or `use` the library that has it
"
    );
}

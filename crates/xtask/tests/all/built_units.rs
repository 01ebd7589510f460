//! `nyala build` compiles a program in units, and links their objects: what it makes does the same, is the same each time, and has no
//! symbols but the program's. Separate from `build.rs`, which is about all else that it makes.

use crate::common::{Folder, RunToEnd, command, sh, stderr};
use std::process::{Command, Output};

/// A program of several units: three functions that are too large for one, which share a static, and refer to each other by values. The
/// exported function has this name. With `fault`, the last of them accesses memory that is not there.
fn of_units(name: &str, fault: bool) -> String {
    let large = |k: usize| -> String {
        let steps = (0..40).map(|i| format!("    if x % {} == {i} {{ s += x / {}; }}\n", i + 3, i + k + 2));
        let last = if fault && k == 2 { "    s += *(8u64 as &i32);\n" } else { "" };
        format!(
            "fn f{k}(x: i32) -> i32 {{\n    let mut s = 0;\n{}{last}    calls += 1;\n    each(1, add);\n    s\n}}\n",
            steps.collect::<String>()
        )
    };
    format!(
        "static mut calls: i32 = 0;
static names = [\"one\", \"two\", \"six\"];
fn add(i: i32) -> () {{ calls += i }}
fn each(n: i32, body: fn(i32) -> ()) -> () {{ if n >= 0 {{ body(n); each(n - 1, body) }} }}
{}{}{}extern fn {name}(n: i32) -> i32 {{
    let sum = f0(n) + f1(n) + f2(n) + f0(n + 1) + f1(n + 1) + f2(n + 1);
    sum * 100 + calls + names(n & 1)(0) as i32
}}
",
        large(0),
        large(1),
        large(2)
    )
}

#[test]
fn programs_are_built_of_units() {
    let folder = Folder::new("units");
    let cache = folder.path("cache");
    for name in ["alpha", "beta"] {
        folder.write(&format!("{name}.impala"), of_units(name, false));
    }
    folder.write("fault.impala", of_units("alpha", true));
    folder.write("main.impala", "fn main() -> i32 { print_i32(alpha(77)); 0 }\n");
    folder.write(
        "use.c",
        "#include <stdio.h>\nint alpha(int), beta(int);\nint main(void) { printf(\"%d %d\", alpha(77), beta(77)); return 0; }\n",
    );
    let nyala = |args: &[&str]| -> Output {
        let mut nyala = Command::new(command());
        nyala.current_dir(&folder.0).env("XDG_CACHE_HOME", &cache).args(args).run_to_end()
    };
    let build = |source: &str, out: &str, more: &[&str]| -> Vec<u8> {
        let output = nyala(&[&["build", source, "-o", out], more].concat());
        assert!(output.status.success(), "{out}: {}", stderr(&output));
        std::fs::read(folder.path(out)).unwrap()
    };
    let n_kept = || std::fs::read_dir(cache.join("nyala/native")).map_or(0, Iterator::count);
    let expected =
        String::from_utf8(nyala(&["run", "--engine", "interp", "alpha.impala", "main.impala"]).stdout).unwrap();
    assert_eq!(String::from_utf8(nyala(&["run", "alpha.impala", "main.impala"]).stdout).unwrap(), expected);
    let of_run = n_kept();
    assert!(of_run >= 4 && !expected.is_empty(), "{of_run}");
    // An executable has the code of `run`, but for its start.
    let executable = build("alpha.impala", "program", &["main.impala"]);
    assert!(n_kept() <= of_run + 2, "{} {of_run}", n_kept());
    assert_eq!(sh(&mut Command::new(folder.path("program"))), expected);
    assert!(build("alpha.impala", "program", &["main.impala", "--no-cache"]) == executable);
    // Two programs have no symbol in common, and no static.
    let both = format!("{expected} {expected}");
    for ending in ["o", "a", "so"] {
        for more in [&[][..], &["-g"]] {
            let files = ["alpha", "beta"].map(|name| {
                let out = format!("{name}.{ending}");
                let first = build(&format!("{name}.impala"), &out, more);
                assert!(build(&format!("{name}.impala"), &out, &[&["--no-cache"], more].concat()) == first, "{out}");
                folder.path(&out)
            });
            let program = folder.path("use");
            sh(Command::new("cc").arg("-o").arg(&program).arg(folder.path("use.c")).args(files));
            assert_eq!(sh(Command::new(program).env("LD_LIBRARY_PATH", &folder.0)), both, "{ending} {more:?}");
        }
    }
    // Faults have their lines, in whichever unit they are.
    let text = of_units("alpha", true);
    let line = text.lines().position(|line| line.contains("8u64")).unwrap() + 1;
    for more in [&[][..], &["-g"]] {
        build("fault.impala", "fault", &[&["main.impala"], more].concat());
        let output = Command::new(folder.path("fault")).run_to_end();
        let said = stderr(&output);
        assert!(said.contains(&format!(" in `f2`, fault.impala:{line}")), "{said}");
    }
}

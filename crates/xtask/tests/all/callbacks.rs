//! Functions of C as arguments of exported functions: `callbacks/main.c` calls the functions of `callbacks/program.impala`, compiled in
//! several ways.

use crate::common::{Folder, command, root, sh};
use std::process::Command;

/// What the C program prints.
const EXPECTED: &str = "70\nn0\nn1\nn2\n33\n332836500\n17 96.5\n24 55\n";

#[test]
fn c_gives_functions() {
    let (folder, sources) = (Folder::new("callbacks"), root().join("crates/xtask/tests/all/callbacks"));
    let (program, main) = (sources.join("program.impala"), sources.join("main.c"));
    let [header, library, object, made] = ["program.h", "libprogram.a", "main.o", "main"].map(|name| folder.path(name));
    let build = |options: &[&str]| sh(Command::new(command()).arg("build").args(options).arg(&program));
    build(&["--kind", "header", "-o", &header.to_string_lossy()]);
    let text = std::fs::read_to_string(&header).expect("a header");
    assert!(text.contains("\nint32_t apply(int32_t n, int32_t (*f)(void *env, int32_t), void *f_env);\n"), "{text}");
    assert!(text.contains("\n// A function that is an argument is called with the `env` behind it,"), "{text}");
    let flags = ["-Wall", "-Wextra", "-Werror", "-c", "-I"];
    sh(Command::new("cc").args(flags).arg(&folder.0).arg(&main).arg("-o").arg(&object));
    let run = || {
        sh(Command::new("cc").arg(&object).arg(&library).args(["-lm", "-lpthread", "-ldl", "-o"]).arg(&made));
        assert_eq!(sh(&mut Command::new(&made)), EXPECTED);
    };
    for options in [&["-O3"][..], &["-O0", "--no-pe"], &["--check=bounds,overflow,null,uninit"]] {
        let to = library.to_string_lossy();
        build(&[options, &["--kind", "static-lib", "-o", &to]].concat());
        run();
    }
}

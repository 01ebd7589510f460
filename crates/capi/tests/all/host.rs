//! Programs in C and C++ that use the library.

use std::path::Path;
use std::process::Command;

/// Compiles a program of C, or of C++, and links the library. Says so and returns false where there is no compiler.
pub fn compile(compiler: &str, options: &[&str], source: &Path, out: &Path) -> bool {
    let library = crate::library();
    let folder = library.parent().expect("a folder");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-pedantic", "-Werror"]).args(options);
    command.arg("-I").arg(crate::header().parent().expect("a folder"));
    command.args(["-x", if compiler == "c++" { "c++" } else { "c" }]).arg(source).args(["-x", "none"]).arg(&library);
    command.arg(format!("-Wl,-rpath,{}", folder.display())).arg("-lpthread").arg("-o").arg(out);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            skip(compiler);
            false
        }
        Err(e) => panic!("{command:?}: {e}"),
    }
}

/// Says that a test needs a tool that is not here, as the tests of `xtask` do.
fn skip(tool: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_string();
    match std::env::var_os("NYALA_SKIPPED") {
        Some(word) if word == "fail" => panic!("there is no {tool}"),
        Some(file) => {
            use std::io::Write;
            let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
            let line = format!("{name}: {tool}\n");
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a file for what is skipped");
        }
        None => eprintln!("skipped: {name}: {tool}"),
    }
}

/// Runs a program to its end. Returns what it writes to standard output; nothing comes on standard error.
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn api(compiler: &str, options: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/api.c");
    let program = folder.path().join("api");
    if compile(compiler, options, &source, &program) {
        assert_eq!(run(Command::new(&program).arg(folder.path())), "hello\n");
    }
}

#[test]
fn a_c_program_uses_all_functions() {
    api("cc", &["-std=c99", "-D_POSIX_C_SOURCE=200809L"]);
}

#[test]
fn a_c_plus_plus_program_uses_all_functions() {
    api("c++", &["-std=c++11"]);
}

#[test]
#[ignore = "needs the C compiler's AddressSanitizer: ./x test --all crates"]
fn nothing_is_leaked_or_used_after_its_end() {
    api("cc", &["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-g", "-fsanitize=address"]);
}

//! `x dist`: a release as a tarball, with all that it needs at run time: the command, the library for C, the runtime, and LLVM's library
//! from the Rust toolchain. It is tested where it was unpacked, without the environment and the toolchain.
//!
//! ```text
//! nyala-VERSION-MACHINE/bin/nyala
//!                       include/nyala.h
//!                       lib/libnyala.so
//!                       lib/nyala/libLLVM.so.22.…, libnyala_runtime.a
//!                       README.md, LICENSE-…, docs/
//! ```
//!
//! Beside it, the package for Python as a wheel, with LLVM's library in it; `python3` makes and tests it.
//!
//! Command and library find what is in `lib/nyala` from where they are themselves (`gen-llvm/src/library.rs`, `driver/src/build.rs`), so
//! the folder may be moved.

use crate::{root, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files and folders of the repository that go along.
const ALONG: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs", "examples"];
/// What the tests compile.
const PROGRAM: &str =
    "extern fn pow5(x: i32) -> i32 { x * x * x * x * x }\nfn main() -> i32 { print_i32(pow5(2)); println(); 0 }\n";

/// Makes and tests the tarball.
pub fn run() -> Result<bool, String> {
    sh(Command::new("cargo").current_dir(root()).args(["build", "--release", "--quiet"]).args([
        "--package",
        "nyala",
        "--package",
        "nyala-runtime",
        "--package",
        "nyala-capi",
        "--package",
        "nyala-python",
    ]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let made = target.join("release");
    let name = format!("nyala-{}-{}-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS);
    let folder = target.join("dist").join(&name);
    let _ = std::fs::remove_dir_all(&folder);
    for inner in ["bin", "include", "lib/nyala"] {
        io(&folder, std::fs::create_dir_all(folder.join(inner)))?;
    }
    let llvm = nyala_gen_llvm::llvm_library();
    let llvm_name = llvm.file_name().unwrap_or_default();
    let parts: [(&Path, PathBuf); 5] = [
        (&made.join("nyala"), folder.join("bin/nyala")),
        (&made.join("libnyala.so"), folder.join("lib/libnyala.so")),
        (&made.join("libnyala_runtime.a"), folder.join("lib/nyala/libnyala_runtime.a")),
        (llvm, folder.join("lib/nyala").join(llvm_name)),
        (&root().join("crates/capi/include/nyala.h"), folder.join("include/nyala.h")),
    ];
    for (from, to) in &parts {
        io(from, std::fs::copy(from, to))?;
    }
    // Places in the source are for backtraces of the compiler's bugs.
    for (_, to) in &parts[..3] {
        sh(Command::new("strip").arg("--strip-debug").arg(to))?;
    }
    for what in ALONG {
        sh(Command::new("cp").arg("-R").arg(root().join(what)).arg(&folder))?;
    }
    let tarball = folder.with_file_name(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf"]).arg(&tarball);
    sh(tar.arg("-C").arg(target.join("dist")).arg(&name))?;
    println!("{}: {}", tarball.display(), size(&tarball)?);
    for (_, to) in &parts {
        println!("    {:9} {}", size(to)?, to.strip_prefix(&folder).unwrap_or(to).display());
    }
    test(&tarball, &name, &llvm_name.to_string_lossy())?;
    match Command::new("python3").arg("--version").output() {
        Ok(_) => wheel(&made, &target.join("dist"), llvm)?,
        Err(e) => println!("left out: the package for Python: python3: {e}"),
    }
    Ok(true)
}

/// Makes the package for Python, and tests it in a virtual environment that has nothing else.
fn wheel(made: &Path, folder: &Path, llvm: &Path) -> Result<(), String> {
    let library = folder.join("_native.abi3.so");
    io(&library, std::fs::copy(made.join("libnyala_python.so"), &library))?;
    sh(Command::new("strip").arg("--strip-debug").arg(&library))?;
    for old in io(folder, std::fs::read_dir(folder))?.flatten() {
        if old.path().extension().is_some_and(|e| e == "whl") {
            io(&old.path(), std::fs::remove_file(old.path()))?;
        }
    }
    let mut make = Command::new("python3");
    make.arg(root().join("crates/python/wheel.py")).args([env!("CARGO_PKG_VERSION"), std::env::consts::ARCH]);
    let said = io(&library, make.args([&library, llvm, folder]).output())?;
    if !said.status.success() {
        return Err(format!("{make:?}: {}", String::from_utf8_lossy(&said.stderr)));
    }
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let wheel = PathBuf::from(said.rsplit_once(' ').map_or("", |(path, _)| path));
    println!("{}: {}", wheel.display(), size(&wheel)?);

    let place = folder.join("empty environment");
    let _ = std::fs::remove_dir_all(&place);
    sh(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    sh(Command::new(place.join("bin/pip")).args(["install", "--quiet", "--no-index"]).arg(&wheel))?;
    let mut python = Command::new(place.join("bin/python3"));
    python.env_clear().current_dir(&place).env("PATH", "").env("HOME", "").args(["-c", PYTHON]);
    let said = io(&place, python.output())?;
    let llvm = place.join("lib");
    let llvm = io(&llvm, llvm.canonicalize())?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    // The program says where its LLVM is.
    if !said.status.success() || !text.starts_with("32 /") || !text.contains(&*llvm.to_string_lossy()) {
        return Err(format!("the package for Python: {text}{}", String::from_utf8_lossy(&said.stderr)));
    }
    let _ = std::fs::remove_dir_all(&place);
    let _ = std::fs::remove_file(&library);
    println!("tested: the package for Python in an empty virtual environment, with an empty PATH and HOME");
    Ok(())
}

const PYTHON: &str = r#"
import nyala
m = nyala.compile("extern fn pow5(x: i32) -> i32 { x * x * x * x * x }")
llvm = {line.split(maxsplit=5)[-1].strip() for line in open("/proc/self/maps") if "libLLVM" in line}
print(m.pow5(2), *llvm)
"#;

fn io<T>(path: &Path, done: std::io::Result<T>) -> Result<T, String> {
    done.map_err(|e| format!("{}: {e}", path.display()))
}

fn size(path: &Path) -> Result<String, String> {
    let bytes = io(path, std::fs::metadata(path))?.len();
    Ok(format!("{:.1} MB", bytes as f64 / 1e6))
}

/// Unpacks a tarball in an empty folder, and runs command and library there with an empty environment. The loader tells which LLVM it
/// has taken.
fn test(tarball: &Path, name: &str, llvm: &str) -> Result<(), String> {
    let place = tarball.with_file_name("empty folder");
    let _ = std::fs::remove_dir_all(&place);
    io(&place, std::fs::create_dir_all(&place))?;
    sh(Command::new("tar").arg("-xzf").arg(tarball).arg("-C").arg(&place))?;
    let folder = io(&place, place.join(name).canonicalize())?;
    let own_llvm = folder.join("lib/nyala").join(llvm);
    let program = place.join("power.impala");
    io(&program, std::fs::write(&program, PROGRAM))?;
    let nyala = folder.join("bin/nyala");
    let run = |command: &mut Command, expected: &str| {
        command.env_clear().current_dir(&place).env("PATH", "").env("HOME", "").env("LD_DEBUG", "files");
        let output = io(&place, command.output())?;
        let (said, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() || !said.contains(expected) {
            let messages: Vec<&str> = log.lines().filter(|l| !l.trim_start().starts_with(char::is_numeric)).collect();
            return Err(format!("{command:?}: {}, not `{expected}`: {said}{}", output.status, messages.join("\n")));
        }
        let loaded: Vec<&str> =
            log.lines().filter(|l| l.contains("generating link map") || l.contains("calling init")).collect();
        match loaded.iter().filter(|l| l.contains("libLLVM")).find(|l| !l.contains(&*own_llvm.to_string_lossy())) {
            Some(other) => Err(format!("{command:?} loads another LLVM: {other}")),
            None if !log.contains(&*own_llvm.to_string_lossy()) => Err(format!("{command:?} does not load its LLVM")),
            None => Ok(()),
        }
    };
    run(Command::new(&nyala).args(["run", "power.impala"]), "32\n")?;
    run(Command::new(&nyala).args(["emit", "--stage", "asm", "power.impala", "--fn", "pow5"]), "imul")?;
    run(Command::new(&nyala).args(["build", "power.impala", "-o", "power.o"]), "")?;
    let host = place.join("host.c");
    io(&host, std::fs::write(&host, HOST))?;
    let mut cc = Command::new("cc");
    cc.current_dir(&place).arg(&host).arg("-I").arg(folder.join("include")).arg("-L").arg(folder.join("lib"));
    sh(cc.arg("-lnyala").arg(format!("-Wl,-rpath,$ORIGIN/{name}/lib")).args(["-o", "host"]))?;
    run(&mut Command::new(place.join("host")), "32\n")?;
    // Executables are linked by the system's C compiler, with the runtime of the tarball.
    let mut build = Command::new(&nyala);
    build.current_dir(&place).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    sh(build.args(["build", "power.impala", "-o", "power"]))?;
    let said = io(&nyala, Command::new(place.join("power")).env_clear().output())?;
    if said.stdout != b"32\n" {
        return Err(format!("the executable writes {:?}", String::from_utf8_lossy(&said.stdout)));
    }
    let _ = std::fs::remove_dir_all(&place);
    println!("tested: the command, the library in a C program, and an executable, with an empty PATH and HOME");
    Ok(())
}

const HOST: &str = r#"
#include <nyala.h>
#include <stdio.h>

int main(void) {
    nyala_compiler *compiler = nyala_compiler_new();
    nyala_program *program = NULL;
    nyala_function *pow5 = NULL;
    nyala_error *error = NULL;
    if (nyala_compile_file(compiler, "power.impala", &program, &error) != NYALA_OK
        || nyala_program_function(program, "pow5", "int(int)", &pow5, &error) != NYALA_OK) {
        fputs(nyala_error_message(error), stderr);
        return 1;
    }
    printf("%d\n", NYALA_CAST(int, (int), pow5)(2));
    return 0;
}
"#;

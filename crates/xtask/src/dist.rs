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
//! Beside it, the package for Python as a wheel, with LLVM's library in it, and as sources, of which `pip install` makes a wheel where Rust's
//! toolchain is; `python3` makes and tests them.
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
        Ok(_) => package(&made, &target.join("dist"), llvm)?,
        Err(e) => println!("left out: the package for Python: python3: {e}"),
    }
    Ok(true)
}

/// Makes the package for Python, as a wheel and as sources, and tests both in virtual environments that have nothing else.
fn package(made: &Path, folder: &Path, llvm: &Path) -> Result<(), String> {
    for old in io(folder, std::fs::read_dir(folder))?.flatten() {
        let name = old.file_name().to_string_lossy().into_owned();
        if name.ends_with(".whl") || name == sources() {
            io(&old.path(), std::fs::remove_file(old.path()))?;
        }
    }
    let make = |what: &str, files: &[&Path]| {
        let mut make = Command::new("python3");
        let said = io(folder, make.arg(root().join("crates/python/package.py")).arg(what).args(files).output())?;
        if !said.status.success() {
            return Err(format!("{make:?}: {}", String::from_utf8_lossy(&said.stderr)));
        }
        let made = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
        println!("{}: {}", made.display(), size(&made)?);
        Ok(made)
    };
    let wheel = make("wheel", &[&made.join("libnyala_python.so"), llvm, folder])?;
    let sources = make("sdist", &[folder])?;

    let place = environment(folder, &wheel)?;
    println!("tested: the wheel in an empty virtual environment, with an empty PATH and HOME");
    let others = root().join("target/python/bin");
    beside_numba(&place, &others.join("python3"))?;
    match Command::new(others.join("auditwheel")).arg("show").arg(&wheel).output() {
        Ok(said) => {
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            let name = wheel.file_stem().unwrap_or_default().to_string_lossy();
            let tag = name.rsplit('-').next().unwrap_or_default();
            if !said.contains(&format!("\"{tag}\"")) {
                return Err(format!("the wheel is not of the tag that it names: {said}"));
            }
            println!("tested: auditwheel finds the tag {tag}");
        }
        Err(e) => println!("left out: the wheel's tag: auditwheel, which `./x setup` installs: {e}"),
    }
    let _ = std::fs::remove_dir_all(&place);
    let _ = std::fs::remove_dir_all(environment(folder, &sources)?);
    println!("tested: the source distribution in an empty virtual environment");
    Ok(())
}

/// The name of the source distribution.
fn sources() -> String {
    format!("nyala-{}.tar.gz", env!("CARGO_PKG_VERSION"))
}

/// Makes a virtual environment with the package alone, and runs a program in it, with an empty PATH and HOME. Returns its folder.
fn environment(folder: &Path, package: &Path) -> Result<PathBuf, String> {
    let place = folder.join("empty environment");
    let _ = std::fs::remove_dir_all(&place);
    sh(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    // Sources are compiled by cargo, which takes what is built already of the crates that they need.
    let mut pip = Command::new(place.join("bin/pip"));
    pip.env("CARGO_TARGET_DIR", folder.parent().unwrap_or(folder)).env_remove("NYALA_LLVM");
    sh(pip.args(["install", "--quiet", "--no-index"]).arg(package))?;
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
    Ok(place)
}

/// Compiles with the package of an environment and with Numba, which has an LLVM of its own, in one process; either is imported first.
fn beside_numba(place: &Path, python: &Path) -> Result<(), String> {
    let is_there = Command::new(python).args(["-c", "import numba"]).output().is_ok_and(|o| o.status.success());
    if !is_there {
        println!("left out: the wheel beside Numba, which `./x setup` installs");
        return Ok(());
    }
    let lib = place.join("lib");
    let version = io(&lib, std::fs::read_dir(&lib))?.flatten().next().map(|e| e.path()).unwrap_or_default();
    for imports in ["nyala, numba", "numba, nyala"] {
        let mut run = Command::new(python);
        run.env("PYTHONPATH", version.join("site-packages")).arg("-c").arg(format!("import {imports}\n{BESIDE}"));
        let said = io(python, run.output())?;
        if said.stdout != b"32 243\n" {
            return Err(format!("`import {imports}`: {}", String::from_utf8_lossy(&said.stderr)));
        }
    }
    println!("tested: the wheel beside Numba, either imported first");
    Ok(())
}

const PYTHON: &str = r#"
import nyala
m = nyala.compile("extern fn pow5(x: i32) -> i32 { x * x * x * x * x }")
llvm = {line.split(maxsplit=5)[-1].strip() for line in open("/proc/self/maps") if "libLLVM" in line}
print(m.pow5(2), *llvm)
"#;

const BESIDE: &str = r#"
pow5 = numba.njit(lambda x: x * x * x * x * x)
m = nyala.compile("extern fn pow5(x: i32) -> i32 { x * x * x * x * x }", cache=False)
print(m.pow5(2), pow5(3))
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

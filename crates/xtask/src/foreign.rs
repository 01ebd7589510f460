//! Programs on processors of other architectures, by QEMU: the test functions of `tests/run` are compiled for them, called from
//! C, and must hold as they do here. `./x test --all processors` runs it.
//!
//! It needs QEMU's user mode, Debian's cross compilers, and Rust's standard library for the architecture, of which the
//! runtime is built. `./x setup` brings them; what is missing is a failure.

use crate::texts::{self, output_within};
use crate::{Tally, root, sh};
use nyala_driver::build::Kind;
use nyala_driver::testing;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// An architecture.
struct Machine {
    /// The first part of its triple.
    arch: &'static str,
    /// Rust's name of the target.
    rust: &'static str,
    /// For each CPU, as LLVM names it, or the baseline: the one that QEMU is asked for, and the tests that it runs.
    cpus: &'static [(Option<&'static str>, &'static str, &'static [&'static str])],
}

const MACHINES: &[Machine] = &[
    Machine {
        arch: "aarch64",
        rust: "aarch64-unknown-linux-gnu",
        cpus: &[
            (None, "cortex-a57", ALL),
            // Vectors of 256 bits, by SVE.
            (Some("neoverse-v1"), "max,sve256=on", LANES),
        ],
    },
    Machine {
        arch: "riscv64",
        rust: "riscv64gc-unknown-linux-gnu",
        cpus: &[
            (None, "rv64", ALL),
            // Vectors of 512 bits, by the vector extension.
            (Some("sifive-x280"), "rv64,v=true,vlen=512,vext_spec=v1.0,zba=true,zbb=true,Zfh=true", LANES),
        ],
    },
];

/// Folders of tests.
const ALL: &[&str] = &["tests/run"];
const LANES: &[&str] = &["tests/run/vectorize"];

/// Packages of Debian that are needed.
pub const PACKAGES: &[&str] = &[
    "qemu-user",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "gcc-riscv64-linux-gnu",
    "libc6-dev-riscv64-cross",
];

/// The time for the test functions of one program.
const LIMIT: Duration = Duration::from_secs(120);

/// The words of an emulator that fails, not the program.
const QEMU_FAULT: &str = "Assertion `ctx->insn_start != NULL' failed";

/// Threads that compile and run programs.
const THREADS: usize = 2;

impl Machine {
    fn compiler(&self) -> String {
        format!("{}-linux-gnu-gcc", self.arch)
    }

    fn emulator(&self) -> String {
        format!("qemu-{}", self.arch)
    }

    /// The runtime as a static library.
    fn runtime(&self) -> PathBuf {
        target().join(self.rust).join("debug/libnyala_runtime.a")
    }

    /// Something that is missing, or builds the runtime.
    fn prepare(&self) -> Result<(), String> {
        for tool in [self.compiler(), self.emulator()] {
            let there = Command::new(&tool).arg("--version").output().is_ok_and(|o| o.status.success());
            if !there {
                return Err(format!("there is no `{tool}`"));
            }
        }
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root()).args(["rustc", "--quiet", "--package", "nyala-runtime", "--lib"]);
        cargo.args(["--crate-type", "staticlib", "--target", self.rust]).arg("--target-dir").arg(target());
        let output = cargo.output().map_err(|e| e.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let first = said.lines().find(|l| l.starts_with("error")).unwrap_or("cargo failed").to_string();
                Err(format!("the runtime cannot be built for it ({first}); `rustup target add {}` may help", self.rust))
            }
        }
    }
}

/// Apart from the host's, since both have files of the same names.
fn target() -> PathBuf {
    root().join("target/foreign")
}

/// Rust's names of the targets, whose standard libraries are needed.
pub fn targets() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|m| m.rust)
}

/// Runs the programs on all machines.
pub fn run() -> Tally {
    let mut tally = Tally::default();
    for machine in MACHINES {
        if let Err(why) = machine.prepare() {
            println!("FAILED programs on {}: {why}; `./x setup` may bring it", machine.arch);
            tally.failed += 1;
            continue;
        }
        for (cpu, emulated, folders) in machine.cpus {
            let mut files = Vec::new();
            folders.iter().for_each(|folder| texts::collect(&root().join(folder), &mut files));
            files.retain(|f| f.extension().is_some_and(|e| e == "impala"));
            let (work, done) = (Mutex::new(files), Mutex::new(&mut tally));
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    let run = || {
                        loop {
                            let Some(file) = work.lock().unwrap_or_else(|e| e.into_inner()).pop() else { return };
                            let outcome = run_file(machine, *cpu, emulated, &file);
                            let mut tally = done.lock().unwrap_or_else(|e| e.into_inner());
                            let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
                            let on = format!("{shown} on {} {}", machine.arch, cpu.unwrap_or_default());
                            match outcome {
                                Outcome::Nothing => {}
                                Outcome::Passed => tally.passed += 1,
                                Outcome::Skipped(why) => {
                                    println!("skipped: {on}: {why}");
                                    tally.skipped += 1;
                                }
                                Outcome::Failed(why) => {
                                    println!("FAILED {on}: {why}");
                                    tally.failed += 1;
                                }
                            }
                        }
                    };
                    // As much stack as text tests have.
                    let made = std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, run);
                    made.expect("a thread for tests");
                }
            });
        }
    }
    tally
}

enum Outcome {
    /// The file has no test functions.
    Nothing,
    Passed,
    Skipped(String),
    Failed(String),
}

fn run_file(machine: &Machine, cpu: Option<&str>, emulated: &str, path: &Path) -> Outcome {
    let Ok(text) = std::fs::read_to_string(path) else { return Outcome::Failed("it cannot be read".into()) };
    let suite = testing::find(&path.display().to_string(), &text);
    if suite.tests.is_empty() {
        return Outcome::Nothing;
    }
    let stem: String = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let stem = stem.replace(['/', '.'], "_") + cpu.unwrap_or_default();
    let folder = target().join(machine.arch);
    let [object, main, program] = ["o", "c", "exe"].map(|extension| folder.join(format!("{stem}.{extension}")));
    let (mut options, mut files) = texts::program(path, &text);
    options.target = Some(format!("{}-unknown-linux-gnu", machine.arch));
    options.cpu = cpu.map(String::from);
    files.add(path.display().to_string(), suite.entries.clone());
    if let Err(e) = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&main, calls(&suite))) {
        return Outcome::Failed(e.to_string());
    }
    if let Err(failed) = nyala_driver::FrontEnd::new(options, files).build(Kind::Obj, &object, &[]) {
        let said = || failed.render(false);
        let why = || Outcome::Skipped(texts::first_error(&failed));
        return if texts::is_limitation(&failed) { why() } else { Outcome::Failed(said()) };
    }
    // The program's own `main` is another.
    let mut rename = Command::new(format!("{}-linux-gnu-objcopy", machine.arch));
    rename.args(["--redefine-sym", "main=nyala_main"]).arg(&object);
    if let Err(why) = sh(&mut rename) {
        return Outcome::Failed(why);
    }
    let mut link = Command::new(machine.compiler());
    link.args([&main, &object, &machine.runtime()]).arg("-o").arg(&program).args(["-lm", "-lpthread", "-ldl"]);
    match output_within(&mut link, LIMIT) {
        Ok((Some(0), ..)) => {}
        Ok((_, _, said)) => return Outcome::Failed(said),
        Err(why) => return Outcome::Failed(why),
    }
    let mut run = Command::new(machine.emulator());
    run.args(["-cpu", emulated, "-L"]).arg(format!("/usr/{}-linux-gnu", machine.arch)).arg(&program);
    let ran = output_within(&mut run, LIMIT);
    [object, main, program].iter().for_each(|file| drop(std::fs::remove_file(file)));
    match ran {
        Ok((Some(0), ..)) => Outcome::Passed,
        // QEMU 7.2 fails so on some vector instructions of RISC-V.
        Ok((None, _, err)) if err.contains(QEMU_FAULT) => Outcome::Skipped(format!("QEMU itself fails: {QEMU_FAULT}")),
        Ok((status, out, err)) => {
            let lines: Vec<&str> = out.lines().collect();
            let mut told: Vec<&str> = lines.windows(2).filter(|w| w[1] == "fails").map(|w| w[0]).collect();
            told.extend(lines.last().filter(|_| status.is_none()));
            told.extend(err.lines().take(3));
            Outcome::Failed(format!("status {status:?}: {}", told.join("\n")))
        }
        Err(why) => Outcome::Failed(why),
    }
}

/// A C program that calls the test functions, and prints those that fail.
fn calls(suite: &testing::Suite) -> String {
    let (declared, called) = calls_of_tests(suite);
    format!("#include <stdio.h>\n{declared}int main(void) {{\n    int failed = 0;\n{called}    return failed;\n}}\n")
}

/// C text for the test functions: their declarations, and statements that call them, print those that fail, and set `failed`.
pub fn calls_of_tests(suite: &testing::Suite) -> (String, String) {
    let (mut declared, mut called) = (String::new(), String::new());
    for test in &suite.tests {
        for (entry, _) in &test.entries {
            let _ = writeln!(declared, "_Bool {entry}(void);");
            // The last line tells where a program has crashed.
            let name = test.name.replace(['"', '\\', '%'], "'");
            let _ = writeln!(called, "    printf(\"line {}: {name}\\n\"); fflush(stdout);", test.line);
            let _ = writeln!(called, "    if (!{entry}()) {{ printf(\"fails\\n\"); failed = 1; }}");
        }
    }
    (declared, called)
}

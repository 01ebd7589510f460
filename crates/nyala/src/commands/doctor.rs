//! `nyala doctor`: tries out what works on this machine, and says how to get the rest.

use super::FAILED;
use nyala_driver::build::Kind;
use nyala_driver::{Files, FrontEnd, Options, Report};
use std::path::Path;
use std::process::{Command, Stdio};

/// Report which targets and devices work on this machine, and how to get the others
#[derive(clap::Args)]
pub struct Doctor {}

/// A program with loops, calls and several threads, to try the runtime.
const PROGRAM: &str = "extern fn main() -> i32 { let mut cells = [0, .. 7]; for i in par(0, 7) { cells(i) = i * 2; } \
                       let mut sum = 0; for i in range(0, 7) { sum += cells(i); } sum }";
const RESULT: i32 = 42;

/// The targets that objects are made for as a test.
const TARGETS: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64gc-unknown-linux-gnu",
    "powerpc64le-unknown-linux-gnu",
];

enum State {
    Works,
    Missing,
}

fn line(state: State, what: &str, about: &str) {
    let word = match state {
        State::Works => "works",
        State::Missing => "missing",
    };
    println!("{word:<8}  {what:<28}  {about}");
}

/// Prints the line of a trial. Returns whether it succeeded.
fn tried(what: &str, result: Result<String, String>) -> bool {
    match &result {
        Ok(about) => line(State::Works, what, about),
        Err(why) => line(State::Missing, what, why),
    }
    result.is_ok()
}

impl Doctor {
    pub fn run(&self) -> u8 {
        if let Err(why) = nyala_gen_llvm::load_llvm() {
            println!("nyala {}\n", env!("CARGO_PKG_VERSION"));
            line(State::Missing, "LLVM", &format!("without it there is no native code: {why}"));
            tried("interpreter", interpret());
            return FAILED;
        }
        let machine = nyala_gen_llvm::machine_name(&nyala_ir::Target::default());
        let machine: Vec<&str> = machine.split(' ').take(4).collect();
        println!("nyala {}, {}\n", env!("CARGO_PKG_VERSION"), machine.join(" "));
        let mut well = tried("interpreter", interpret());
        well &= tried("native code in memory", compile_in_memory());
        match tempfile::tempdir() {
            Ok(folder) => build_all(folder.path()),
            Err(e) => line(State::Missing, "files", &format!("cannot make a temporary folder: {e}")),
        }
        let n = nyala_runtime::nyala_num_threads();
        line(State::Works, "threads", &format!("{n}; the environment's NYALA_NUM_THREADS sets another number"));
        for (name, what) in super::cache::CACHES {
            let what = format!("cache of {what}");
            match nyala_runtime::Cache::of_user(name) {
                Some(cache) => {
                    let folder = cache.folder().display();
                    match cache.refused() {
                        Some(why) => line(State::Missing, &what, &format!("{folder} is not used: {why}")),
                        None => line(State::Works, &what, &folder.to_string()),
                    }
                }
                None => line(State::Missing, &what, "set XDG_CACHE_HOME or HOME to an absolute path"),
            }
        }
        let libraries = nyala_driver::libraries::embedded().collect::<Vec<_>>().join(", ");
        line(State::Works, "libraries", &libraries);
        for line_of_platform in nyala_runtime::device_overview().iter().skip(1) {
            let (_, text) = line_of_platform.split_once(", ").unwrap_or_default();
            let (platform, about) = text.split_once(": ").unwrap_or((text, ""));
            match about.strip_prefix("not there: ") {
                Some(why) if platform == "OpenCL" => {
                    line(State::Missing, platform, &format!("{why}; PoCL has a device on the CPU"))
                }
                Some(why) if platform == "Vulkan" => {
                    line(State::Missing, platform, &format!("{why}; Mesa has a device on the CPU, lavapipe"))
                }
                Some(why) if platform == "CUDA" => line(State::Missing, platform, why),
                Some(_) => {}
                None => line(State::Works, platform, about),
            }
        }
        if well { 0 } else { FAILED }
    }
}

fn front(options: Options) -> FrontEnd {
    FrontEnd::new(options, Files::of("doctor.impala", PROGRAM))
}

/// The first diagnostic as a line of text.
fn first_error(report: &Report) -> String {
    report.sink.diagnostics.first().map_or("failed".into(), |d| {
        let hints = d.hints.iter().map(|h| format!("; {h}")).collect::<String>();
        d.message.clone() + &hints
    })
}

fn expect(result: i32) -> Result<String, String> {
    if result == RESULT { Ok("a program was run".into()) } else { Err(format!("gives {result} for {RESULT}")) }
}

fn interpret() -> Result<String, String> {
    let result = front(Options::default()).graph().and_then(|graph| graph.interpret("main", &[], &[]));
    result.map_err(|failed| first_error(&failed)).and_then(expect)
}

fn compile_in_memory() -> Result<String, String> {
    let run = || {
        let flat = front(Options::default()).graph()?.residual()?.flat()?;
        flat.load(&[])?.run(&flat.module, "main", &[])
    };
    run().map_err(|failed| first_error(&failed)).and_then(expect)
}

/// The first line of a tool's version.
fn version(tool: &str) -> String {
    let output = Command::new(tool).arg("--version").stderr(Stdio::null()).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_string()
}

fn build_all(folder: &Path) {
    let build = |kind: Kind, name: &str, target: Option<&str>| {
        let front = front(Options { target: target.map(str::to_string), ..Options::default() });
        let out = folder.join(name);
        front.build(kind, &out, &[]).map(|_| out).map_err(|failed| first_error(&failed))
    };
    let linker = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let ran = build(Kind::Exe, "program", None).and_then(|program| {
        let status = Command::new(&program).status().map_err(|e| format!("cannot run what was built: {e}"))?;
        expect(status.code().unwrap_or(-1)).map(|_| format!("linked by `{linker}`, {}", version(&linker)))
    });
    tried("executables", ran);
    tried("shared libraries", build(Kind::SharedLib, "libprogram.so", None).map(|_| format!("linked by `{linker}`")));
    tried("static libraries", build(Kind::StaticLib, "libprogram.a", None).map(|_| version("ar")));
    tried("C headers", build(Kind::Header, "program.h", None).map(|_| String::new()));
    let results: Vec<(&str, bool)> =
        TARGETS.iter().map(|&t| (t, build(Kind::Obj, &format!("{t}.o"), Some(t)).is_ok())).collect();
    let names = |well: bool| {
        let those: Vec<&str> =
            results.iter().filter(|r| r.1 == well).map(|r| r.0.split('-').next().unwrap_or(r.0)).collect();
        those.join(", ")
    };
    if results.iter().any(|r| r.1) {
        line(State::Works, "objects for processors", &names(true));
    }
    if results.iter().any(|r| !r.1) {
        line(State::Missing, "objects for processors", &format!("{}: not in this LLVM", names(false)));
    }
}

//! The verbs of the command, one file each, and their common code: options, exit codes, printing of diagnostics.

pub mod add;
pub mod bench;
pub mod build;
pub mod cache;
pub mod check;
pub mod completions;
pub mod doc;
pub mod doctor;
pub mod emit;
pub mod explain;
pub mod explain_error;
pub mod fmt;
pub mod lsp;
pub mod man;
pub mod new;
pub mod package;
pub mod run;
pub mod standby;
pub mod test;
pub mod tune;
pub mod version;
pub mod watch;

use clap::Args;
use nyala_base::{Diagnostic, Severity, Sources};
use nyala_driver::diagnostics::cannot_read;
use nyala_driver::{Device, Failed, Files, Options, Report};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Devices of a platform have smaller numbers.
const MAX_DEVICES: u32 = 1 << 12;

#[derive(Args, Clone)]
pub struct Input {
    /// Source files, which together form one program; `-` is standard input. Without any, it is the program of the package around
    /// this folder: `src/main.impala`
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Optimization level
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// Ignore annotations of partial evaluation
    #[arg(long)]
    no_pe: bool,
    /// Multiply the budget of partial evaluation by N
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pe_budget: f64,
    /// Let signed arithmetic wrap around; without this option, it must not overflow
    #[arg(long)]
    wrap: bool,
    /// Let native code check, while it runs, what the interpreter checks: accesses within bounds, signed overflow, null
    /// pointers, reads of uninitialized memory; without a list, the first three
    #[arg(long, value_name = "WHAT[,WHAT]…", num_args = 0..=1, require_equals = true, default_missing_value = "bounds,overflow,null", value_parser = parse_checks)]
    check: Option<nyala_checks::Checks>,
    /// Compile without the prelude
    #[arg(long)]
    no_prelude: bool,
    /// CPU to make code for, by its LLVM name; `help` lists the names, `native` is this machine's CPU, the default.
    /// `build` accepts several of `x86-64`, `x86-64-v2`, `x86-64-v3` (AVX2) and `x86-64-v4` (AVX-512): the program or
    /// library selects the best when it is loaded
    #[arg(long, value_name = "NAME[,NAME]…", value_delimiter = ',', value_parser = parse_cpu)]
    cpu: Vec<String>,
    /// Width in bits of the vectors that LLVM uses for plain loops on x86-64: 128, 256 or 512. With AVX-512, its own
    /// choice is usually 256. Vectors of `vectorize` and `simd` always use the full width of registers
    #[arg(long, value_name = "BITS", value_parser = parse_width)]
    prefer_vector_width: Option<u32>,
    /// Lanes of a gang of ISPC's programs (`.ispc`): 2, 4, 8, 16, 32 or 64. Without it, as many as a register of the CPU holds floats
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// Run kernels on this device, regardless of the platform that the program names: `host` (the CPU), `opencl`, `cuda`,
    /// `vulkan`, `hls`, or another device of these platforms by its number, such as `opencl:1`
    #[arg(long, value_name = "NAME", value_parser = parse_device)]
    device: Option<(String, Device)>,
    /// Code of the kernels for CUDA: PTX for an architecture such as `sm_90`, which runs on all newer GPUs, too, or
    /// `source`, CUDA C++ for NVIDIA's compiler
    #[arg(long, value_name = "ARCH", value_parser = parse_cuda)]
    cuda: Option<String>,
    /// Architecture of AMD's GPUs that kernels are made for, such as `gfx942`
    #[arg(long, value_name = "ARCH", value_parser = parse_amdgpu)]
    amdgpu: Option<String>,
    /// Replace the initializer of a top-level static
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_define)]
    defines: Vec<(String, String)>,
    /// Ignore values of statics that `nyala tune` has stored beside the program
    #[arg(long)]
    no_tune: bool,
    /// Folder in which to search for libraries
    #[arg(short = 'L', value_name = "DIR")]
    library_folders: Vec<PathBuf>,
    /// Take dependencies from git exactly as `nyala.lock` has them
    #[arg(long)]
    locked: bool,
    /// Do not fetch dependencies from the network
    #[arg(long)]
    offline: bool,
    /// Do not report warnings of this code; `warnings` stands for all of them
    #[arg(long, value_name = "CODE", value_parser = parse_denied)]
    allow: Vec<String>,
    /// Turn warnings of this code into errors; `warnings` stands for all of them
    #[arg(long, value_name = "CODE", value_parser = parse_denied)]
    deny: Vec<String>,
    /// Print the time that each pass took
    #[arg(long)]
    time_passes: bool,
    /// Print diagnostics as JSON on standard error, one object per line (docs/diagnostics.md)
    #[arg(long, conflicts_with = "time_passes")]
    pub json: bool,
}

impl Input {
    /// If no file is named, takes those of the package around the working folder. Prints an error if there are none.
    pub fn complete(&mut self, part: package::Part) -> Result<(), u8> {
        if self.files.is_empty() {
            self.files = package::files(part).map_err(package::refuse)?;
        }
        Ok(())
    }

    /// Whether writing `out` would overwrite a file of the program. Prints an error if so.
    pub fn would_lose(&self, out: &std::path::Path) -> bool {
        let same = |f: &PathBuf| out.canonicalize().is_ok_and(|out| f.canonicalize().is_ok_and(|f| f == out));
        let lost = self.files.iter().any(same);
        if lost {
            eprintln!("error: {} is a file of the program itself: name another file with `-o`", out.display());
        }
        lost
    }

    /// The device that kernels run on.
    pub fn device(&self) -> Device {
        self.device.as_ref().map_or(Device::Own, |d| d.1)
    }

    /// The options, except for the level, and values of statics, as arguments of another process. They include
    /// `--no-tune`.
    pub fn worker_args(&self, defines: &[(String, String)]) -> Vec<std::ffi::OsString> {
        let mut args: Vec<std::ffi::OsString> =
            vec!["--no-tune".into(), "--pe-budget".into(), self.pe_budget.to_string().into()];
        if self.no_prelude {
            args.push("--no-prelude".into());
        }
        if self.wrap {
            args.push("--wrap".into());
        }
        if let Some(checks) = self.check {
            args.push(format!("--check={}", checks.list()).into());
        }
        if let Some((device, _)) = &self.device {
            args.extend(["--device".into(), device.into()]);
        }
        if let Some(cuda) = &self.cuda {
            args.extend(["--cuda".into(), cuda.into()]);
        }
        if let Some(amdgpu) = &self.amdgpu {
            args.extend(["--amdgpu".into(), amdgpu.into()]);
        }
        if !self.cpu.is_empty() {
            args.extend(["--cpu".into(), self.cpu.join(",").into()]);
        }
        if let Some(width) = self.prefer_vector_width {
            args.extend(["--prefer-vector-width".into(), width.to_string().into()]);
        }
        if let Some(lanes) = self.lanes {
            args.extend(["--lanes".into(), lanes.to_string().into()]);
        }
        for (name, value) in defines {
            args.extend(["-D".into(), format!("{name}={value}").into()]);
        }
        for folder in &self.library_folders {
            args.extend(["-L".into(), folder.into()]);
        }
        if self.locked {
            args.push("--locked".into());
        }
        if self.offline {
            args.push("--offline".into());
        }
        args
    }
}

fn parse_define(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as WIDTH=640")?;
    if nyala_driver::tuning::is_name(name) {
        Ok((name.into(), value.into()))
    } else {
        Err(format!("`{name}` is no name of a static"))
    }
}

/// Parses a CPU, for which the target is checked later. `help` prints a list and ends the process, even if other
/// arguments are missing.
fn parse_cpu(name: &str) -> Result<String, String> {
    if name != "help" {
        return if name.is_empty() { Err("a name is empty".into()) } else { Ok(name.into()) };
    }
    let mut out = std::io::stdout().lock();
    for arch in nyala_gen_llvm::ARCHITECTURES {
        let mut line = format!("{arch}:");
        for cpu in nyala_ir::target::cpus(arch) {
            if line.len() + cpu.len() > 110 {
                let _ = writeln!(out, "{line}");
                line = String::from("   ");
            }
            line = line + " " + cpu;
        }
        let _ = writeln!(out, "{line}");
    }
    std::process::exit(0)
}

fn parse_device(name: &str) -> Result<(String, Device), String> {
    let (platform, number) = name.split_once(':').unwrap_or((name, "0"));
    let index = nyala_ir::lanes::PLATFORMS.iter().position(|p| *p == platform);
    let known = || index.filter(|_| ["cuda", "hls", "opencl", "vulkan"].contains(&platform)).map(|i| i as u32);
    let device = match (name, known(), number.parse()) {
        ("host", ..) => Device::Host,
        (_, Some(platform), Ok(number)) if number < MAX_DEVICES => Device::One(platform, number),
        _ => {
            return Err("known are `host`, `opencl`, `cuda`, `vulkan` and `hls`, with a number as in `opencl:1`".into());
        }
    };
    Ok((name.into(), device))
}

fn parse_checks(list: &str) -> Result<nyala_checks::Checks, String> {
    let mut checks = nyala_checks::Checks::default();
    match list.split(',').find(|name| !checks.add(name)) {
        Some(name) => Err(format!("there is no check `{name}`; there are {}", nyala_checks::Checks::NAMES.join(", "))),
        None => Ok(checks),
    }
}

fn parse_cuda(name: &str) -> Result<String, String> {
    let known = nyala_ir::target::cpus("nvptx64");
    let is_known = name == nyala_driver::CUDA_SOURCE || known.contains(&name);
    is_known
        .then(|| name.into())
        .ok_or_else(|| format!("known are {} and {}", known.join(", "), nyala_driver::CUDA_SOURCE))
}

fn parse_amdgpu(name: &str) -> Result<String, String> {
    let known = nyala_ir::target::cpus("amdgcn");
    known.contains(&name).then(|| name.into()).ok_or_else(|| format!("known are {}", known.join(", ")))
}

fn parse_width(text: &str) -> Result<u32, String> {
    ["128", "256", "512"]
        .contains(&text)
        .then(|| text.parse().ok())
        .flatten()
        .ok_or("there are 128, 256 and 512".into())
}

fn parse_lanes(text: &str) -> Result<u32, String> {
    let lanes = text.parse().ok().filter(|n: &u32| n.is_power_of_two() && (2..=64).contains(n));
    lanes.ok_or("there are 2, 4, 8, 16, 32 and 64".into())
}

/// Parses the code of a diagnostic.
fn parse_warning(code: &str) -> Result<String, String> {
    let codes: Vec<String> = nyala_driver::diagnostics::all().iter().map(nyala_base::Code::name).collect();
    if codes.iter().any(|c| c == code) {
        return Ok(code.into());
    }
    match nyala_sema::closest(code, codes.iter().map(String::as_str)) {
        Some(similar) => Err(format!("there is no code `{code}`; did you mean `{similar}`?")),
        None => Err(format!("there is no code `{code}`: see `nyala explain-error`")),
    }
}

/// Parses the code of a warning, or `warnings`.
fn parse_denied(code: &str) -> Result<String, String> {
    if code == "warnings" { Ok(code.into()) } else { parse_warning(code) }
}

/// Exit codes (`README.md`, The command).
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
const CHECKED_EXECUTION: u8 = 3;
pub const BUG: u8 = 70;
/// The exit code that a shell gives for the signal of `abort`, with which a panic ends compiled programs.
const PANIC: u8 = 134;

/// The end of a verb: its exit code, and what is still to be shown.
pub type Answer = Result<(u8, Report), Failed>;

/// Loads the files, runs `f` and prints diagnostics. Returns the exit code.
pub fn with_files(input: &Input, f: impl FnOnce(Options, Files) -> Answer) -> u8 {
    with_files_of(input, |_| {}, f)
}

/// Loads the files, runs `f` and prints diagnostics, with `options` that only one verb has. Returns the exit code.
pub fn with_files_of(
    input: &Input,
    options: impl FnOnce(&mut Options),
    f: impl FnOnce(Options, Files) -> Answer,
) -> u8 {
    let (all, files, unread) = match read_input(input, options) {
        Ok(read) => read,
        Err(code) => return code,
    };
    let result = if unread.sink.has_errors() { Err(Box::new(unread)) } else { f(all.clone(), files) };
    let (code, mut report) = match result {
        Ok((code, report)) => (Some(code), report),
        Err(failed) => (None, *failed),
    };
    report.judge_warnings(&all);
    show(&report, input);
    match code {
        Some(_) if report.sink.has_errors() => FAILED,
        Some(code) => code,
        None if report.sink.diagnostics.iter().any(|d| d.code == "bug") => BUG,
        None if report.faulted == Some("panic") => PANIC,
        None if report.faulted.is_some() => CHECKED_EXECUTION,
        None => FAILED,
    }
}

/// The options of a command line, with `options` that only one verb has, its files, and errors about those that cannot be read.
/// Prints an error if the command line is wrong.
fn read_input(input: &Input, options: impl FnOnce(&mut Options)) -> Result<(Options, Files, Report), u8> {
    let mut library_folders = input.library_folders.clone();
    library_folders.extend(std::env::var_os("NYALA_PATH").iter().flat_map(std::env::split_paths));
    if !(input.pe_budget > 0.0 && input.pe_budget.is_finite()) {
        eprintln!("error: --pe-budget must be a positive number");
        return Err(USAGE);
    }
    let mut all = Options {
        opt_level: input.opt_level,
        partial_evaluation: !input.no_pe,
        pe_budget: input.pe_budget,
        prelude: !input.no_prelude,
        cpu: input.cpu.first().cloned(),
        vector_width: input.prefer_vector_width,
        lanes: input.lanes,
        more_cpus: input.cpu.iter().skip(1).cloned().collect(),
        defines: input.defines.clone(),
        tuned: input
            .files
            .first()
            .filter(|f| !input.no_tune && !is_standard_input(f))
            .map(|f| nyala_driver::tuning::file_of(f)),
        device: input.device(),
        cuda: input.cuda.clone(),
        amdgpu: input.amdgpu.clone(),
        wrap: input.wrap,
        checks: input.check.unwrap_or_default(),
        progress: std::io::stderr().is_terminal() && !input.json,
        allow: input.allow.clone(),
        deny: input.deny.clone(),
        library_folders,
        locked: input.locked,
        offline: input.offline,
        ..Options::default()
    };
    options(&mut all);
    let (mut files, mut unread) = (Files::default(), Report::default());
    for path in &input.files {
        let read = if is_standard_input(path) {
            nyala_driver::files::read_standard_input()
        } else {
            nyala_driver::files::read(path)
        };
        match read {
            Ok(text) => files.add(path.display().to_string(), text),
            Err(e) => unread.sink.push(cannot_read::error(path, &e)),
        }
    }
    Ok((all, files, unread))
}

/// Whether a file is called `-`, which stands for standard input.
pub fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Whether diagnostics have colors: `NO_COLOR` forbids and `CLICOLOR_FORCE` asks for them, a terminal has them.
fn has_color() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && (is_set("CLICOLOR_FORCE") || std::io::stderr().is_terminal())
}

fn render(d: &Diagnostic, sources: &Sources, json: bool, color: bool) -> String {
    if json { nyala_driver::json::line(d, sources) + "\n" } else { d.render(sources, color) }
}

/// Limit on the warnings that are printed as text.
const MAX_WARNINGS: usize = 100;

/// Prints diagnostics, as text or as lines of JSON.
pub fn show_all(diagnostics: &[Diagnostic], sources: &Sources, json: bool) {
    let color = has_color();
    let mut err = std::io::stderr().lock();
    let mut codes: Vec<&str> = Vec::new();
    // The parser limits the number of errors, but there may be as many warnings as lines.
    let mut n_warnings = 0;
    for d in diagnostics {
        if d.severity == Severity::Warning {
            n_warnings += 1;
            if n_warnings > MAX_WARNINGS && !json {
                continue;
            }
        }
        let _ = err.write_all(render(d, sources, json, color).as_bytes());
        if d.severity == Severity::Error && !codes.contains(&d.code) {
            codes.push(d.code);
        }
    }
    if n_warnings > MAX_WARNINGS && !json {
        let _ = writeln!(err, "and {} more warnings", n_warnings - MAX_WARNINGS);
    }
    if !codes.is_empty() && !json {
        codes.truncate(3);
        let _ = writeln!(err, "for more: nyala explain-error {}", codes.join(" "));
    }
}

/// Prints diagnostics, and the times of passes.
pub fn show(report: &Report, input: &Input) {
    show_all(&report.sink.diagnostics, &report.sources, input.json);
    let mut err = std::io::stderr().lock();
    if input.time_passes && !report.timings.is_empty() {
        let total: f64 = report.timings.iter().map(|t| t.time.as_secs_f64()).sum();
        for t in &report.timings {
            let _ = writeln!(err, "{:>10.3} ms  {:<20} {:>9}", t.time.as_secs_f64() * 1e3, t.pass, t.size);
        }
        let _ = writeln!(err, "{:>10.3} ms  total", total * 1e3);
    }
}

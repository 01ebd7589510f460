//! `x bench`: compile times by pass, their growth with the program's size, the front end on long programs, the loop of editing, the blur against C, parallel
//! loops, matrix products, sorting, stages, lanes, specialized interpreters, variants made at run time, Python, rays, alignments, evaluation at
//! compile time, growth of compile times with large programs.
//!
//! Each figure is the median of several runs. A complete run writes a file to `bench/results/`. Nothing fails because
//! it is slow.

mod aarch64;
mod align;
mod constants;
mod edits;
mod front;
mod game;
mod interpreters;
mod levels;
mod matrix;
mod parallel;
mod patterns;
mod pictures;
mod plan;
mod rays;
mod sierra;
mod slopes;
mod sort;
mod staging;
mod suites;
mod text;

use crate::root;
use levels::Level;
use nyala_driver::{Failed, Files, FrontEnd, Options, Report};
use plan::{Out, Plan};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 7;
/// The passes of LLVM.
const LLVM: &[&str] = &["llvm-optimize", "llvm-codegen", "llvm-link"];

/// A family of programs: its name, sizes, the largest size that LLVM is measured with, and a function that makes the
/// program of a size.
type Family = (&'static str, &'static [usize], usize, fn(usize) -> String);

/// The times of one compilation, by pass.
type Times = Vec<(&'static str, Duration)>;

/// The levels that programs and peers can be limited to, by name.
pub const LEVELS: [&str; 4] = levels::NAMES;

/// Runs the benches that `filter` names, or all of them, limited to a level; `is_brief` with one size, and with fewer turns.
pub fn run(filter: Option<&str>, is_brief: bool, level: &str) -> Result<bool, String> {
    let level = Level::of_name(level).ok_or_else(|| format!("there is no level `{level}`"))?;
    level.check()?;
    let plan = Plan::new(filter, is_brief).limited(level);
    let benches = plan.benches()?;
    let mut out = Out::default();
    let date = output_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]);
    let _ = write!(out, "{date}{}\n{}\n", level.said(), machine());
    for bench in benches {
        if let Some(why) = bench.left_out(&plan) {
            let _ = writeln!(out, "{}: not measured: {why}\n", bench.name);
            continue;
        }
        // That is no result.
        eprintln!("{}", bench.announced(&plan));
        (bench.run)(&plan, &mut out)?;
    }
    if plan.is_complete() {
        let folder = root().join("bench/results");
        let of_level = if level.is_native() { String::new() } else { format!("-{}", level.name) };
        let file = folder.join(format!("{}{of_level}.txt", date.replace([':', ' '], "-")));
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, &out.text))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        println!("written to {}", file.display());
    }
    Ok(true)
}

/// Compile times of the blur, by pass.
fn compile_blur(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let path = root().join("examples/blur/blur.impala");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let times = measure(plan, &text, End::Code)?;
    let _ = writeln!(out, "blur compile (examples/blur), ms by pass");
    for (pass, time) in &times {
        let _ = writeln!(out, "  {pass:<20} {:>9.2}", ms(*time));
    }
    let _ = writeln!(out, "  ours {:.2}, LLVM {:.2}\n", ms(ours(&times)), ms(llvm(&times)));
    Ok(())
}

/// Compile times of programs of several sizes; `x bench "families unroll"` measures the programs with that name.
fn families(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let families: &[Family] = &[
        ("unroll with accumulator, steps", &[400, 1_600, 6_400], 6_400, unroll_program),
        ("functions with a loop each", &[200, 800, 3_200], 800, functions_program),
        ("straight-line statements", &[2_000, 8_000, 32_000], 8_000, statements_program),
        ("statements with calls in between", &[2_000, 8_000, 32_000], 2_000, calls_program),
    ];
    for (name, sizes, largest_for_llvm, program) in families.iter().filter(|f| f.0.contains(plan.part("families"))) {
        let _ = writeln!(out, "{name}\n  {:>8} {:>12} {:>12}   by pass, ms", "size", "ours, ms", "LLVM, ms");
        let mut points = Vec::new();
        for &n in plan.sizes(sizes, 0) {
            let with_llvm = n <= *largest_for_llvm;
            let times = measure(plan, &program(n), if with_llvm { End::Code } else { End::LlvmText })?;
            points.push((n as f64, ours(&times).as_secs_f64()));
            let llvm = if with_llvm { format!("{:.2}", ms(llvm(&times))) } else { "-".into() };
            let _ = write!(out, "  {n:>8} {:>12.2} {llvm:>12}  ", ms(ours(&times)));
            for (pass, time) in times.iter().filter(|t| !LLVM.contains(&t.0)) {
                let _ = write!(out, " {pass} {:.1}", ms(*time));
            }
            let _ = writeln!(out);
        }
        let slopes: Vec<String> =
            points.windows(2).map(|p| format!("{:.2}", (p[1].1 / p[0].1).ln() / (p[1].0 / p[0].0).ln())).collect();
        let _ = match slopes.is_empty() {
            true => writeln!(out),
            false => writeln!(out, "  slopes of log time over log size: {}\n", slopes.join(", ")),
        };
    }
    Ok(())
}

/// `x bench variants`: functions that are specialized while a program runs, beside C++ templates; a filter of rows that is compiled while
/// a program runs, beside a loop in Rust, and Polars if `bench/peers/install.sh` has installed it.
fn variants(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let turns = plan.turns(15).to_string();
    let measured = |out: &mut Out, package, args: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(["run", "--quiet", "--release", "--package", package, "--"]).args(args);
        copy_lines(command.current_dir(root()), out)
    };
    let _ = writeln!(out, "variants made at run time");
    measured(out, "bench-variants", &["out/bench", &turns])?;
    let _ = writeln!(out, "\na filter of rows");
    measured(out, "filter-csv", &["--measure"])?;
    let python = root().join("out/peers/bin/python");
    if python.is_file() {
        copy_lines(Command::new(python).arg(root().join("bench/peers/filter/filter.py")), out)?;
    }
    let _ = writeln!(out);
    Ok(())
}

/// `x bench python`: filters and loops from Python, beside Numba and OpenCV.
fn python(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let python = root().join("out/peers/bin/python");
    if !python.is_file() {
        let _ = writeln!(out, "from Python: not measured: there is no out/peers, which bench/peers/install.sh makes\n");
        return Ok(());
    }
    let mut build = Command::new("cargo");
    crate::sh(build.current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala-python"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let folder = root().join("out/bench/python");
    let package = folder.join("nyala");
    let _ = std::fs::remove_dir_all(&package);
    let linked = std::fs::create_dir_all(&package).and_then(|()| {
        for entry in std::fs::read_dir(root().join("crates/python/python/nyala"))? {
            let entry = entry?;
            std::os::unix::fs::symlink(entry.path(), package.join(entry.file_name()))?;
        }
        std::os::unix::fs::symlink(target.join("release/libnyala_python.so"), package.join("_native.abi3.so"))
    });
    linked.map_err(|e| format!("{}: {e}", package.display()))?;
    let mut bench = Command::new(python);
    bench.env("PYTHONPATH", &folder).env("PYTHONDONTWRITEBYTECODE", "1").arg(root().join("bench/python/bench.py"));
    if plan.is_brief {
        bench.env("BRIEF_TURNS", plan.turns(9).to_string());
    }
    let _ = writeln!(out, "from Python");
    copy_lines(&mut bench, out)?;
    let _ = writeln!(out);
    Ok(())
}

/// Runs a command, and copies each line that it prints at once.
fn copy_lines(command: &mut Command, out: &mut Out) -> Result<(), String> {
    each_line(command, |line| _ = writeln!(out, "{line}"))
}

/// Runs a command, and calls `tell` with each line as soon as it is printed.
fn each_line(command: &mut Command, mut tell: impl FnMut(&str)) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        tell(&line.map_err(|e| format!("{name}: {e}"))?);
    }
    match child.wait().map_err(|e| format!("{name}: {e}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("{name}: {status}")),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ours(times: &Times) -> Duration {
    times.iter().filter(|t| !LLVM.contains(&t.0)).map(|t| t.1).sum()
}

fn llvm(times: &Times) -> Duration {
    times.iter().filter(|t| LLVM.contains(&t.0)).map(|t| t.1).sum()
}

/// Programs that take turns: each prints names of workloads and nanoseconds. A peer that fails is reported, and takes no part any more.
struct Turns<'a> {
    runs: usize,
    programs: Vec<(&'a str, Command)>,
    has_failed: Vec<bool>,
}

impl<'a> Turns<'a> {
    fn new(runs: usize, programs: Vec<(&'a str, Command)>) -> Turns<'a> {
        let has_failed = vec![false; programs.len()];
        Turns { runs, programs, has_failed }
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.programs.iter().map(|p| p.0)
    }

    /// Runs the programs with these arguments more. Returns the medians by program and workload. A workload that a program does not
    /// print has no time, which is a NaN.
    fn run<T>(&mut self, more: &[&str], workloads: &[(&str, T)], out: &mut Out) -> Result<Vec<Vec<f64>>, String> {
        self.run_telling(more, workloads, out, |_, _| {})
    }

    /// The same; `tell` is called before each run, with the number of the turn and the program's name.
    fn run_telling<T>(
        &mut self,
        more: &[&str],
        workloads: &[(&str, T)],
        out: &mut Out,
        tell: impl Fn(usize, &str),
    ) -> Result<Vec<Vec<f64>>, String> {
        let mut times = vec![vec![Vec::new(); workloads.len()]; self.programs.len()];
        for turn in 1..=self.runs {
            for (p, (name, command)) in self.programs.iter().enumerate() {
                if self.has_failed[p] {
                    continue;
                }
                tell(turn, name);
                let mut run = Command::new(command.get_program());
                run.args(command.get_args()).args(more);
                run.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
                let text = match run.output() {
                    Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
                    other => {
                        let said = other.map(|o| format!("{}: {}", o.status, String::from_utf8_lossy(&o.stderr)));
                        let why = format!("{name}: {}", said.unwrap_or_else(|e| e.to_string()));
                        if *name == "ours" {
                            return Err(why);
                        }
                        let _ = writeln!(out, "  not measured: {}", why.trim());
                        self.has_failed[p] = true;
                        times[p].iter_mut().for_each(Vec::clear);
                        continue;
                    }
                };
                for line in text.lines() {
                    let found = line.split_once(' ').and_then(|(n, t)| {
                        let i = workloads.iter().position(|w| w.0 == n)?;
                        Some((i, t.parse::<f64>().ok()?))
                    });
                    if let Some((i, time)) = found {
                        times[p][i].push(time);
                    }
                }
            }
        }
        Ok(times.iter_mut().map(|program| program.iter_mut().map(|t| median(t)).collect()).collect())
    }
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The slope of the line that fits the points best, in logarithms of both coordinates.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.0.ln(), p.1.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let both: f64 = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    both / logs.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

/// The median time of each pass. Slow programs have fewer runs.
fn measure(plan: &Plan, program: &str, end: End) -> Result<Times, String> {
    let mut all: Vec<Times> = Vec::new();
    let start = Instant::now();
    while all.len() < plan.turns(RUNS) && (all.is_empty() || start.elapsed() < Duration::from_secs(20)) {
        all.push(on_big_stack(|| compile(program, end))?);
    }
    let median = |i: usize| {
        let mut times: Vec<Duration> = all.iter().map(|t| t[i].1).collect();
        times.sort();
        times[times.len() / 2]
    };
    Ok((0..all[0].len()).map(|i| (all[0][i].0, median(i))).collect())
}

fn on_big_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, f);
        match worker.map(|w| w.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(e) => panic!("no thread to measure in: {e}"),
        }
    })
}

/// The last stage to which a program is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    LlvmText,
    Code,
}

fn compile(program: &str, end: End) -> Result<Times, String> {
    let options = Options { verify: false, ..Options::default() };
    let compile = || -> Result<Report, Failed> {
        let mut flat =
            FrontEnd::new(options.clone(), Files::of("bench.impala", program)).graph()?.residual()?.flat()?;
        if end == End::Code {
            return Ok(flat.load(&[])?.report);
        }
        let of_llvm = nyala_gen_llvm::Options::default();
        let emit = || nyala_gen_llvm::emit(&flat.module, &of_llvm).map(drop);
        let emitted = flat.report.time(&options, "emit", |_| emit(), |_| 0);
        emitted.map_err(|d| flat.report.report(*d))?;
        Ok(flat.report)
    };
    let report = compile().map_err(|failed| failed.render(false))?;
    Ok(report.timings.iter().map(|t| (t.pass, t.time)).collect())
}

fn unroll_program(n: usize) -> String {
    format!("extern fn run(x: i32) -> i32 {{ let mut s = x; for i in unroll(0, {n}) {{ s = s * 3 + (i ^ x); }} s }}\n")
}

fn functions_program(n: usize) -> String {
    let mut text = String::new();
    for k in 0..n {
        let _ = writeln!(
            text,
            "extern fn f{k}(n: i32, a: &mut [i32]) -> i32 {{ let mut s = {k}; for i in range(0, n) {{ s += a(i) * {k}; a(i) = s; }} s }}"
        );
    }
    text
}

fn statements_program(n: usize) -> String {
    let mut text = "extern fn run(a: i32, b: i32) -> i32 {\n    let mut x = a;\n    let mut y = b;\n".to_string();
    for k in 0..n {
        let _ = match k % 2 {
            0 => writeln!(text, "    x = x * 3 + y;"),
            _ => writeln!(text, "    y = y ^ (x + {k});"),
        };
    }
    text + "    x + y\n}\n"
}

fn calls_program(n: usize) -> String {
    let mut text = "extern \"C\" { fn \"nyala_print_i32\" effect(i32) -> (); }\n".to_string();
    text += "extern fn run(a: i32, b: i32) -> i32 {\n    let mut x = a;\n    let mut y = b;\n";
    for k in 0..n {
        let _ = match k % 4 {
            0 => writeln!(text, "    x = x * 3 + y;"),
            1 => writeln!(text, "    effect(x);"),
            2 => writeln!(text, "    y = y ^ (x + {k});"),
            _ => writeln!(text, "    effect(y);"),
        };
    }
    text + "    x + y\n}\n"
}

/// A folder for what benches make, which is made if there is none.
fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = root().join("out/bench").join(name);
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    Ok(folder)
}

/// Whether the C++ compiler finds a header.
fn has_header(name: &str) -> bool {
    let mut compiler = Command::new("c++");
    compiler.args(["-include", name, "-E", "-x", "c++", "/dev/null"]);
    compiler.output().is_ok_and(|o| o.status.success())
}

/// A description of the machine and its load.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map_or("unknown CPU", |l| l.trim_start_matches([' ', '\t', ':']));
    let cores = cores();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("{cpu}, {cores} cores, load {}\n", load.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

fn output_of(command: &str, args: &[&str]) -> String {
    let output = Command::new(command).args(args).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

/// The blur in C, with the algorithm of the Impala program: borders by region, nine loads inside.
const BLUR_C: &str = r#"
#include <stdint.h>
static inline int clampi(int v, int hi) { return v < 0 ? 0 : v > hi ? hi : v; }
static inline int at_safe(const int32_t *p, int w, int h, int x, int y) { return p[clampi(y, h - 1) * w + clampi(x, w - 1)]; }
static inline int pixel_safe(const int32_t *p, int w, int h, int x, int y) {
    int s = 0;
    for (int d = -1; d <= 1; d++)
        s += (at_safe(p, w, h, x - 1, y + d) + at_safe(p, w, h, x, y + d) + at_safe(p, w, h, x + 1, y + d)) / 3;
    return s / 3;
}
static inline int pixel(const int32_t *p, int w, int x, int y) {
    int s = 0;
    for (int d = -1; d <= 1; d++)
        s += (p[(y + d) * w + x - 1] + p[(y + d) * w + x] + p[(y + d) * w + x + 1]) / 3;
    return s / 3;
}
void blur_c(int w, int h, int32_t *out, const int32_t *in) {
    for (int y = 0; y < h; y++) {
        if (y == 0 || y == h - 1 || w < 3) {
            for (int x = 0; x < w; x++) out[y * w + x] = pixel_safe(in, w, h, x, y);
            continue;
        }
        out[y * w] = pixel_safe(in, w, h, 0, y);
        for (int x = 1; x < w - 1; x++) out[y * w + x] = pixel(in, w, x, y);
        out[y * w + w - 1] = pixel_safe(in, w, h, w - 1, y);
    }
}
"#;

/// Measures all versions of the blur in one process, and prints megapixels per second of each.
const BLUR_MAIN: &str = r#"
extern "C" { fn blur_c(i32, i32, &mut [i32], &[i32]) -> (); }
fn rate(w: i32, h: i32, run: fn() -> ()) -> () {
    let mut best = 1e18;
    for i in range(0, 15) {
        let start = time_ns();
        run();
        best = fmin(best, (time_ns() - start) as f64);
    }
    print_f64(round(w as f64 * h as f64 * 10000.0 / best) / 10.0);
    println();
}
fn main() -> i32 {
    let w = 2000;
    let h = 1500;
    let (inp, a, b) = (alloc[i32](3000000i64), alloc[i32](3000000i64), alloc[i32](3000000i64));
    for i in range(0, w * h) { inp(i) = (i * 37 + i / 1000) % 256; }
    rate(w, h, || blur_c(w, h, a, inp));
    rate(w, h, || blur_seq(w, h, b, inp));
    rate(w, h, || blur_tiled(w, h, b, inp));
    rate(w, h, || blur_par(w, h, b, inp));
    let mut wrong = 0;
    for i in range(0, w * h) { if a(i) != b(i) { wrong++; } }
    if wrong == 0 { 0 } else { 1 }
}
"#;

fn throughput(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = root().join("out/bench");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let (c, library, program) = (folder.join("blur.c"), folder.join("libblur.so"), folder.join("blur.impala"));
    let example = std::fs::read_to_string(root().join("examples/blur/blur.impala")).map_err(|e| e.to_string())?;
    let example = example.split("// Megapixels per second").next().unwrap_or("").to_string() + BLUR_MAIN;
    std::fs::write(&c, BLUR_C).and_then(|()| std::fs::write(&program, example)).map_err(|e| e.to_string())?;
    let march = plan.level.march();
    crate::sh(Command::new("cc").args(["-O3", &march, "-shared", "-fPIC", "-o"]).arg(&library).arg(&c))?;
    crate::sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    // The command is beside this program, which was built in the same way.
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for _ in 0..plan.turns(RUNS) {
        let mut command = Command::new(&nyala);
        command.args(["run", "--cpu", plan.level.name, "--load"]).arg(&library).arg(&program);
        let output = command.output().map_err(|e| format!("cannot start {}: {e}", nyala.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(format!("the blurs differ or did not run\n{text}{}", String::from_utf8_lossy(&output.stderr)));
        }
        rates.push(text.lines().filter_map(|l| l.parse().ok()).collect());
    }
    let rate = |i: usize| median(&mut rates.iter().map(|r| r.get(i).copied().unwrap_or(0.0)).collect::<Vec<_>>());
    let (c, seq, tiled, par) = (rate(0), rate(1), rate(2), rate(3));
    let version = output_of("cc", &["--version"]);
    let _ = write!(
        out,
        "blur throughput, 2000x1500 pixels of i32, MP/s, one thread but for `par`\n  \
         C, cc -O3 {march:<13} {c:>9.1}   {}\n  sequential              {seq:>9.1}   {:.2} of C\n  \
         tiled                   {tiled:>9.1}   {:.2} of C\n  tiled, par              {par:>9.1}   {:.2} of tiled\n\n",
        version.lines().next().unwrap_or(""),
        seq / c,
        tiled / c,
        par / tiled
    );
    Ok(())
}

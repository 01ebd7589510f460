//! `nyala tune`: finds the fastest values of a program's statics on this machine. [`search`](mod@search) decides
//! which variants are tried; this file has the processes that compile and run them, and the report.

mod plot;
pub(super) mod search;

use super::package::Part;
use super::{Answer, Input, USAGE, with_files_of};
use nyala_base::Diagnostic;
use nyala_driver::diagnostics::{cannot_write, not_measurable};
use nyala_driver::outputs::is_linked;
use nyala_driver::tuning::{self, Parameter};
use nyala_driver::{Files, Options, Trees};
use nyala_runtime::asked_to_stop;
use plot::{Bar, milliseconds};
use search::{Found, Machine, Run, Trial, Variant, search};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Measure which values of statics are the fastest, and store them beside the program
///
/// The values to try are written in the program, `//! tune NAME: 8, 16, 32..256*2`, or given by `-D NAME=8,16,32..256*2`.
/// With a single value, `-D` fixes the static. The output of each variant is compared to that of the program as written.
/// The time of a variant is that of its process, or the time that it reports by `std::tune` (docs/tuning.md).
#[derive(clap::Args)]
pub struct Tune {
    #[command(flatten)]
    input: Input,
    /// Time limit of the search in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = parse_seconds)]
    time: f64,
    /// Write a bar chart of the fastest variants
    #[arg(long, value_name = "OUT.svg", value_parser = parse_plot)]
    plot: Option<PathBuf>,
    /// Seed of the random choice of variants, if there are too many to try all in the time
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Arguments for the program
    #[arg(last = true)]
    args: Vec<OsString>,
}

pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s: &f64| (0.0..=1e6).contains(s));
    seconds.ok_or_else(|| "expected a number of seconds".into())
}

fn parse_plot(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    if is_svg { Ok(path) } else { Err("plots are SVG: the name ends with `.svg`".into()) }
}

/// Limit on the rows of the table and the plot; `--json` has all variants.
const SHOWN: usize = 20;

impl Tune {
    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Program) {
            return code;
        }
        let (linked, files): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.input.files).into_iter().partition(|f| is_linked(f));
        let Some(first) = files.first() else {
            eprintln!("error: no source file among the files to tune");
            return USAGE;
        };
        if files.iter().any(|f| super::is_standard_input(f)) {
            eprintln!(
                "error: `tune` compiles the program many times, which standard input does not allow: name a file"
            );
            return USAGE;
        }
        let file = tuning::file_of(first);
        self.input.files = files;
        if self.input.would_lose(&file) || self.plot.as_ref().is_some_and(|out| self.input.would_lose(out)) {
            return USAGE;
        }
        if !self.input.cpu.is_empty() && self.input.cpu != ["native"] {
            eprintln!("error: variants run on this machine, so that `--cpu` of another one is no use");
            return USAGE;
        }
        let given = self.input.defines.clone();
        let options = |o: &mut nyala_driver::Options| {
            o.defines.clear();
            o.tuned = None;
        };
        with_files_of(&self.input, options, |options, files| self.tune(options, files, &given, &linked, &file))
    }

    fn tune(
        &self,
        options: Options,
        files: Files,
        given: &[(String, String)],
        linked: &[PathBuf],
        file: &Path,
    ) -> Answer {
        let start = Instant::now();
        let trees = Trees::new(options, files);
        let (mut said, machine) = (trees.report.clone(), trees.machine());
        let (parameters, fixed) = trees.candidates(given)?;
        for out in [Some(file), self.plot.as_deref()].into_iter().flatten() {
            // The error is reported now, not after a minute of search.
            nyala_files::check(out).map_err(|e| said.report(cannot_write::file(out, e)))?;
        }
        let folder = tempfile::Builder::new().prefix("nyala-tune-").tempdir();
        let folder = folder.map_err(|e| said.report(cannot_write::temporary(e)))?;
        nyala_runtime::note_requests_to_stop();
        let mut bench = Bench {
            parameters: &parameters,
            options: self.compiler_options(&fixed),
            files: self.input.files.iter().chain(linked).cloned().collect(),
            args: &self.args,
            folder: folder.path(),
            start,
            limit: Duration::from_secs_f64(self.time),
            written: None,
            programs: HashMap::new(),
            compiled: 0,
            compiling: None,
            progress: std::io::stderr().is_terminal() && !self.input.json,
        };
        let counts: Vec<usize> = parameters.iter().map(|p| p.values.len()).collect();
        let found = search(&counts, self.seed, &mut bench);
        if bench.progress {
            eprint!("\r\x1b[K");
        }
        let stopped = asked_to_stop();
        let found = match found {
            Ok(found) => found,
            Err(Some(why)) if stopped == 0 => {
                // The compiler's messages are printed as they are.
                let (why, output) = why.split_once('\n').unwrap_or((&why, ""));
                eprint!("{output}");
                return Err(said.report(not_measurable::error(why)));
            }
            Err(_) => {
                eprintln!("stopped before the program as written was measured");
                return Ok((128 + stopped as u8, said));
            }
        };
        let code = bench.written.as_ref().map_or(0, |w| w.code);
        let report = Report {
            machine,
            parameters: &parameters,
            found: &found,
            seconds: start.elapsed().as_secs_f64(),
            seed: self.seed,
        };
        // A reader of the table may close the pipe early, so the folder is removed first.
        drop(folder);
        let stored = found.trials.len() > 1;
        let written = if stored { self.store(&report, file) } else { Ok(()) };
        let drawn = self.plot.as_ref().map_or(Ok(()), |out| {
            let svg = report.plot(&self.input.files[0]);
            nyala_files::write(out, svg.as_bytes()).map_err(|e| Box::new(cannot_write::file(out, e)))
        });
        if self.input.json {
            println!("{}", report.json());
        } else {
            print!("{}", report.table());
            if code != 0 {
                println!("note: the program ends with exit code {code}, as written and in all these variants");
            }
            if stored && written.is_ok() {
                println!("stored in {}", file.display());
            }
        }
        if !stored {
            eprintln!("only the program as written was measured, and nothing is stored: give more time by `--time`");
        }
        written.and(drawn).map_err(|d| said.report(*d))?;
        Ok((if stopped == 0 { 0 } else { 128 + stopped as u8 }, said))
    }

    fn store(&self, report: &Report, file: &Path) -> Result<(), Box<Diagnostic>> {
        let old = std::fs::read_to_string(file).unwrap_or_default();
        let text = tuning::with_section(&old, &report.machine, &report.comments(), &report.values());
        nyala_files::write(file, text.as_bytes()).map_err(|e| Box::new(cannot_write::file(file, e)))
    }

    /// The options of all variants, as arguments of `nyala build`.
    fn compiler_options(&self, fixed: &[(String, String)]) -> Vec<OsString> {
        let mut args = self.input.worker_args(fixed);
        args.push(format!("-O{}", self.input.opt_level).into());
        if self.input.no_pe {
            args.push("--no-pe".into());
        }
        args
    }
}

/// The result of the program as written: its output, exit code and time.
struct Written {
    output: Vec<u8>,
    /// The bytes of its output, with its reports.
    length: u64,
    code: i32,
    /// The time of its process in the slowest run.
    seconds: f64,
    /// Whether it reports its time by `std::tune`.
    reports: bool,
}

/// Compiles and runs variants as processes.
struct Bench<'a> {
    parameters: &'a [Parameter],
    options: Vec<OsString>,
    files: Vec<PathBuf>,
    args: &'a [OsString],
    folder: &'a Path,
    start: Instant,
    limit: Duration,
    written: Option<Written>,
    programs: HashMap<Variant, PathBuf>,
    /// The number of variants that were compiled.
    compiled: usize,
    /// The time in which the program as written was compiled.
    compiling: Option<Duration>,
    progress: bool,
}

/// The interval at which a process is polled.
const TICK: Duration = Duration::from_millis(20);
/// Limit on the bytes that the program as written prints.
const MAX_OUTPUT: u64 = 256 << 20;
/// The smallest time limit for compiling and running the program as written.
const LEAST: Duration = Duration::from_secs(10);
/// A variant is ended when it takes this many times as long as the program as written.
const GIVEN_UP: f64 = 4.0;
/// Begins a report of `std::tune`, which ends with the line.
const MARK: &[u8] = b"\x1etune ";

impl Bench<'_> {
    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }

    fn is_written(variant: &Variant) -> bool {
        variant.iter().all(|v| *v == 0)
    }

    /// Starts the compiler for a variant. Returns the process, the file with its messages, and the executable that it
    /// makes.
    fn start_compiler(&mut self, variant: &Variant) -> std::io::Result<(Child, PathBuf, PathBuf)> {
        let stem = self.folder.join(self.compiled.to_string());
        self.compiled += 1;
        let (program, said) = (stem.with_extension("program"), stem.with_extension("err"));
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("build").args(&self.options);
        for (parameter, &value) in self.parameters.iter().zip(variant).filter(|(_, v)| **v != 0) {
            command.arg("-D").arg(format!("{}={}", parameter.name, parameter.values[value]));
        }
        command.arg("-o").arg(&program).arg("--").args(&self.files);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said)?);
        Ok((command.spawn()?, program, said))
    }

    fn compile_one(&mut self, variant: &Variant, limit: Duration, running: &mut Vec<Job>, i: usize) -> Option<String> {
        match self.start_compiler(variant) {
            Ok((child, program, said)) => {
                running.push(Job { i, child, program, said, end: Instant::now() + limit });
                None
            }
            Err(e) => Some(format!("cannot start the compiler: {e}")),
        }
    }
}

/// A running compiler for one variant of a batch.
struct Job {
    i: usize,
    child: Child,
    program: PathBuf,
    said: PathBuf,
    end: Instant,
}

impl Job {
    /// Polls the compiler. Returns `None` while it runs, then the reason why the variant is left out, if it is.
    fn poll(&mut self, whole: bool) -> Option<Option<String>> {
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() => Some(None),
            Ok(Some(status)) => {
                let said = std::fs::read(&self.said).unwrap_or_default();
                let said = String::from_utf8_lossy(&said);
                let error = said.lines().find(|l| l.starts_with("error")).or(said.lines().last());
                Some(Some(match error {
                    _ if whole => format!("it does not compile\n{said}"),
                    Some(error) => format!("does not compile: {error}"),
                    None => format!("does not compile: {}", end_of(status)),
                }))
            }
            Ok(None) if Instant::now() > self.end || asked_to_stop() != 0 => {
                end(&mut self.child);
                Some(Some("takes too long to compile".into()))
            }
            Ok(None) => None,
            Err(e) => Some(Some(format!("does not compile: {e}"))),
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// A description of the end of a process that failed.
fn end_of(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if status.signal().is_some() {
            // `signal: 11 (SIGSEGV)`
            return status.to_string();
        }
    }
    status.code().map_or("no exit code".into(), |code| format!("exit code {code}"))
}

impl Machine for Bench<'_> {
    fn compile(&mut self, variants: &[Variant]) -> Vec<Option<String>> {
        let mut faults: Vec<Option<String>> = vec![None; variants.len()];
        let mut running: Vec<Job> = Vec::new();
        let mut next = 0;
        while next < variants.len() || !running.is_empty() {
            while next < variants.len() && running.len() < self.batch() {
                let limit = match self.compiling {
                    // A variant whose compilation takes much longer is at fault.
                    Some(usual) => (usual * 10 + LEAST).min(self.left() + usual),
                    None => self.limit.max(LEAST),
                };
                faults[next] = self.compile_one(&variants[next], limit, &mut running, next);
                next += 1;
            }
            let begin = Instant::now();
            running.retain_mut(|job| {
                let Some(fault) = job.poll(self.compiling.is_none()) else { return true };
                if fault.is_none() {
                    self.programs.insert(variants[job.i].clone(), job.program.clone());
                }
                faults[job.i] = fault;
                false
            });
            std::thread::sleep(Duration::from_millis(2).saturating_sub(begin.elapsed()));
        }
        if self.compiling.is_none() {
            self.compiling = Some(self.start.elapsed());
        }
        faults
    }

    fn run(&mut self, variant: &Variant) -> Run {
        if asked_to_stop() != 0 {
            return Run::Stopped;
        }
        let Some(program) = self.programs.get(variant) else { return Run::Failed("there is no program".into()) };
        let (limit, patience, most) = match &self.written {
            Some(w) => {
                let limit = Duration::from_secs_f64(GIVEN_UP * w.seconds + 0.5);
                (limit, self.left() + Duration::from_secs_f64(w.seconds + 0.5), w.length * 2 + 4096)
            }
            None => (self.limit.max(LEAST), Duration::MAX, MAX_OUTPUT),
        };
        let said = self.folder.join("run.err");
        match run_process(program, self.args, &said, limit.min(patience), most) {
            Err(e) => Run::Failed(format!("cannot start: {e}")),
            Ok(Ended::Stopped) => Run::Stopped,
            Ok(Ended::TooLong) if self.written.is_none() => {
                Run::Failed(format!("it does not end within {:.0} s", limit.as_secs_f64()))
            }
            Ok(Ended::TooLong) if patience < limit => Run::Stopped,
            Ok(Ended::TooLong) => Run::Failed(format!("does not end within {:.1} s", limit.as_secs_f64())),
            Ok(Ended::Itself { output, .. }) if output.len() as u64 >= most => {
                Run::Failed(format!("prints more than {most} bytes"))
            }
            Ok(Ended::Itself { status, seconds, output }) => self.judge(variant, status, seconds, &output, &said),
        }
    }

    fn discard(&mut self, variant: &Variant) {
        if let Some(program) = self.programs.remove(variant) {
            let _ = std::fs::remove_file(program);
        }
    }

    fn spent(&self) -> f64 {
        if asked_to_stop() != 0 || self.limit.is_zero() {
            return f64::INFINITY;
        }
        self.start.elapsed().as_secs_f64() / self.limit.as_secs_f64()
    }

    fn batch(&self) -> usize {
        std::thread::available_parallelism().map_or(1, |n| n.get())
    }

    fn progress(&mut self, tried: usize, total: u64, best: f64) {
        if self.progress && self.start.elapsed() > Duration::from_secs(1) {
            let left = self.left().as_secs();
            eprint!(
                "\r{tried} of {total} variants, the best takes {best:.2} of the time as written; {left} s left \x1b[K"
            );
        }
    }
}

impl Bench<'_> {
    /// Judges a run that ended by itself: its time, or why the variant is left out.
    fn judge(&mut self, variant: &Variant, status: ExitStatus, seconds: f64, output: &[u8], said: &Path) -> Run {
        let Some(code) = status.code() else {
            let said = std::fs::read(said).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rfind(|l| !l.trim().is_empty()).map(|l| format!(": {l}")).unwrap_or_default();
            return Run::Failed(format!("ends by {}{last}", end_of(status)));
        };
        let length = output.len() as u64;
        let (output, reported) = match split_reports(output) {
            Ok(parts) => parts,
            Err(why) => return Run::Failed(why),
        };
        let Some(written) = &mut self.written else {
            self.written = Some(Written { output, length, code, seconds, reports: reported.is_some() });
            return Run::Seconds(reported.unwrap_or(seconds));
        };
        let is_written = Self::is_written(variant);
        if code != written.code {
            return Run::Failed(format!("exit code {code}, as written {}", written.code));
        }
        if output != written.output {
            let how = if is_written { "it prints something else the second time" } else { "prints something else" };
            return Run::Failed(format!("{how}: {}", difference(&output, &written.output)));
        }
        if reported.is_some() != written.reports {
            return Run::Failed("it does not report its time as the program as written does".into());
        }
        if is_written {
            written.seconds = written.seconds.max(seconds);
        }
        Run::Seconds(reported.unwrap_or(seconds))
    }
}

enum Ended {
    Itself { status: ExitStatus, seconds: f64, output: Vec<u8> },
    TooLong,
    Stopped,
}

/// Runs a program. Reads at most `most` bytes of its standard output; then the closed pipe ends the program.
fn run_process(program: &Path, args: &[OsString], said: &Path, limit: Duration, most: u64) -> std::io::Result<Ended> {
    let mut command = Command::new(program);
    command.args(args).env("NYALA_TUNE", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(said)?);
    let start = Instant::now();
    let mut child = command.spawn()?;
    let Some(out) = child.stdout.take() else { return Err(std::io::Error::other("no pipe")) };
    let (sender, receiver) = channel();
    // The thread is not joined: another process that the program started could keep the pipe open.
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.take(most).read_to_end(&mut bytes);
        let _ = sender.send((bytes, Instant::now()));
    })?;
    let mut read = None;
    let mut exited = None;
    loop {
        // The output ends with the process, which is noticed without a delay.
        if read.is_none() {
            match receiver.recv_timeout(TICK) {
                Ok(found) => read = Some(found),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => read = Some((Vec::new(), Instant::now())),
            }
        } else {
            std::thread::sleep(Duration::from_micros(100));
        }
        if exited.is_none() {
            exited = child.try_wait()?.map(|status| (status, Instant::now()));
        }
        match (exited, &mut read) {
            (Some((status, _)), Some((bytes, end))) => {
                if status.code().is_none() {
                    // The terminal may have sent a signal to both processes.
                    std::thread::sleep(TICK);
                }
                if asked_to_stop() != 0 && !status.success() {
                    return Ok(Ended::Stopped);
                }
                let seconds = end.duration_since(start).as_secs_f64();
                return Ok(Ended::Itself { status, seconds, output: std::mem::take(bytes) });
            }
            // The program has ended, but the pipe is still open.
            (Some((_, at)), None) if at.elapsed() > TICK * 5 => {
                return Err(std::io::Error::other("it leaves a process behind that holds its output"));
            }
            _ => {}
        }
        if exited.is_none() && (start.elapsed() > limit || asked_to_stop() != 0) {
            end(&mut child);
            return Ok(if asked_to_stop() != 0 { Ended::Stopped } else { Ended::TooLong });
        }
    }
}

/// The output without the reports of `std::tune`, and the sum of these in seconds.
fn split_reports(output: &[u8]) -> Result<(Vec<u8>, Option<f64>), String> {
    let (mut rest, mut plain, mut seconds) = (output, Vec::new(), None);
    while let Some(i) = rest.windows(MARK.len()).position(|w| w == MARK) {
        plain.extend_from_slice(&rest[..i]);
        let report = &rest[i + MARK.len()..];
        let end = report.iter().position(|b| *b == b'\n').unwrap_or(report.len());
        let ns = std::str::from_utf8(&report[..end]).ok().and_then(|t| t.parse::<i64>().ok()).filter(|ns| *ns >= 0);
        let Some(ns) = ns else { return Err("reports a time that is no number of nanoseconds".into()) };
        *seconds.get_or_insert(0.0) += ns as f64 / 1e9;
        rest = report.get(end + 1..).unwrap_or(&[]);
    }
    plain.extend_from_slice(rest);
    // A time of zero has no ratios.
    if seconds == Some(0.0) {
        return Err("reports a time of 0".into());
    }
    Ok((plain, seconds))
}

/// A description of the first difference between two outputs.
fn difference(output: &[u8], written: &[u8]) -> String {
    let (a, b) = (String::from_utf8_lossy(output), String::from_utf8_lossy(written));
    let (mut new, mut old) = (a.lines(), b.lines());
    for line in 1.. {
        let shown = |line: Option<&str>| match line {
            Some(line) => format!("`{}`", line.chars().take(60).collect::<String>()),
            None => "nothing".into(),
        };
        match (new.next(), old.next()) {
            (None, None) => break,
            (x, y) if x != y => return format!("line {line} is {}, as written {}", shown(x), shown(y)),
            _ => {}
        }
    }
    "ends of lines".into()
}

/// The report of a search.
struct Report<'a> {
    /// CPU and device, as the stored file names them.
    machine: String,
    parameters: &'a [Parameter],
    found: &'a Found,
    seconds: f64,
    seed: u64,
}

impl Report<'_> {
    fn value(&self, trial: &Trial, i: usize) -> &str {
        &self.parameters[i].values[trial.variant[i]]
    }

    fn name(&self, trial: &Trial) -> String {
        let all = (0..self.parameters.len()).map(|i| format!("{} = {}", self.parameters[i].name, self.value(trial, i)));
        all.collect::<Vec<_>>().join(", ")
    }

    fn chosen(&self) -> &Trial {
        &self.found.trials[self.found.chosen]
    }

    /// The measured variants, the fastest first; those that were measured in turns come before the others.
    fn measured(&self) -> Vec<&Trial> {
        let mut all: Vec<&Trial> = self.found.trials.iter().filter(|t| t.rejected.is_none() && t.runs() > 0).collect();
        // Variants with better measurements come first.
        all.sort_by(|a, b| b.is_refined().cmp(&a.is_refined()).then(a.score().total_cmp(&b.score())));
        all
    }

    fn is_chosen(&self, trial: &Trial) -> bool {
        std::ptr::eq(trial, self.chosen())
    }

    /// The measured variants that are shown, with the program as written and the chosen one.
    fn shown(&self) -> Vec<&Trial> {
        let all = self.measured();
        let matters = |t: &Trial| t.is_default() || self.is_chosen(t);
        all.iter().enumerate().filter(|(i, t)| *i < SHOWN || matters(t)).map(|(_, t)| *t).collect()
    }

    fn table(&self) -> String {
        let shown = self.shown();
        let mut rows: Vec<Vec<String>> =
            vec![["ms", "from", "to", "of as written", "from", "to", "runs"].map(String::from).to_vec()];
        rows[0].extend(self.parameters.iter().map(|p| p.name.clone()));
        rows[0].push(String::new());
        for trial in &shown {
            let (Some(ms), Some(ratio)) = (trial.seconds(), trial.ratio()) else { continue };
            let mut row: Vec<String> = [ms.median, ms.low, ms.high].map(milliseconds).to_vec();
            row.extend([ratio.median, ratio.low, ratio.high].map(|r| format!("{r:.3}")));
            row.push(trial.runs().to_string());
            row.extend((0..self.parameters.len()).map(|i| self.value(trial, i).to_string()));
            row.push(match (self.is_chosen(trial), trial.is_default()) {
                (true, true) => "chosen, as written".into(),
                (true, false) => "chosen".into(),
                (false, true) => "as written".into(),
                (false, false) => String::new(),
            });
            rows.push(row);
        }
        let widths: Vec<usize> =
            (0..rows[0].len()).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
        let mut out = String::new();
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
                // The last column, marks, is left-aligned; the others are right-aligned.
                if i + 1 == row.len() { cell.clone() } else { format!("{cell:>width$}") }
            });
            out += cells.collect::<Vec<_>>().join("  ").trim_end();
            out.push('\n');
        }
        let left_out = self.measured().len() - shown.len();
        if left_out > 0 {
            out += &format!("and {left_out} slower ones\n");
        }
        let rejected: Vec<&Trial> = self.found.trials.iter().filter(|t| t.rejected.is_some()).collect();
        if !rejected.is_empty() {
            out += "left out\n";
            for trial in rejected.iter().take(SHOWN) {
                out += &format!("  {}: {}\n", self.name(trial), trial.rejected.as_deref().unwrap_or(""));
            }
            if rejected.len() > SHOWN {
                out += &format!("  and {} more\n", rejected.len() - SHOWN);
            }
        }
        let chance = if (self.found.trials.len() as u64) < self.found.total {
            format!(" (seed {})", self.seed)
        } else {
            String::new()
        };
        out += &format!("{}{chance}\n", self.extent());
        out
    }

    fn extent(&self) -> String {
        format!("{} of {} variants tried in {:.1} s", self.found.trials.len(), self.found.total, self.seconds)
    }

    /// The comments for the file with tuned values.
    fn comments(&self) -> Vec<String> {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let of = |trial: &Trial| trial.seconds().map_or(String::new(), |s| format!("{} ms", milliseconds(s.median)));
        let written = of(&self.found.trials[0]);
        let result = match self.chosen().ratio() {
            Some(r) if !self.chosen().is_default() => {
                format!(
                    "{}, as written {written}: {:.3} of it, {:.3} to {:.3}",
                    of(self.chosen()),
                    r.median,
                    r.low,
                    r.high
                )
            }
            _ => format!("nothing is clearly faster than the program as written, {written}"),
        };
        vec![format!("{}, {processors} processors, {}", today(), self.extent()), result]
    }

    /// The values for the file with tuned values; none if the program as written was chosen.
    fn values(&self) -> Vec<(&str, &str)> {
        let chosen = self.chosen();
        let all = 0..if chosen.is_default() { 0 } else { self.parameters.len() };
        all.map(|i| (self.parameters[i].name.as_str(), self.value(chosen, i))).collect()
    }

    fn json(&self) -> serde_json::Value {
        let estimate = |e: Option<search::Estimate>, scale: f64| {
            e.map(|e| serde_json::json!({ "median": e.median * scale, "low": e.low * scale, "high": e.high * scale }))
        };
        let variant = |trial: &Trial| {
            let values: serde_json::Map<_, _> = (0..self.parameters.len())
                .map(|i| (self.parameters[i].name.clone(), self.value(trial, i).into()))
                .collect();
            serde_json::json!({
                "values": values,
                "written": trial.is_default(),
                "chosen": self.is_chosen(trial),
                "ms": estimate(trial.seconds(), 1e3),
                "of_written": estimate(trial.ratio(), 1.0),
                "runs": trial.runs(),
                "rejected": trial.rejected,
            })
        };
        serde_json::json!({
            "cpu": nyala_gen_llvm::host_cpu(),
            "machine": self.machine,
            "seconds": self.seconds,
            "seed": self.seed,
            "tried": self.found.trials.len(),
            "total": self.found.total,
            "variants": self.found.trials.iter().map(variant).collect::<Vec<_>>(),
        })
    }

    fn plot(&self, program: &Path) -> String {
        let bar = |trial: &&Trial| {
            let seconds = trial.seconds()?;
            Some(Bar { name: self.name(trial), seconds, written: trial.is_default(), chosen: self.is_chosen(trial) })
        };
        let bars: Vec<Bar> = self.shown().iter().filter_map(bar).collect();
        let title = program.file_name().unwrap_or_default().to_string_lossy();
        let about = format!("medians, with where they lie with 99 %; {}, {}, {}", self.machine, today(), self.extent());
        plot::svg(&title, &about, &bars)
    }
}

/// Today's date in UTC.
fn today() -> String {
    date(nyala_runtime::nyala_unix_time_ns().div_euclid(86_400_000_000_000))
}

/// The date `days` days after 1970-01-01.
fn date(days: i64) -> String {
    // Years that begin in March, so that leap days are last, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day_of_month:02}", year + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_taken_out_and_added_up() {
        let split = |text: &str| split_reports(text.as_bytes()).map(|(b, s)| (String::from_utf8(b).unwrap(), s));
        assert_eq!(split("a\nb"), Ok(("a\nb".into(), None)));
        assert_eq!(split("a\x1etune 500000000\nb\n\x1etune 1000000000"), Ok(("ab\n".into(), Some(1.5))));
        assert_eq!(split("\x1eother 5\n"), Ok(("\x1eother 5\n".into(), None)));
        for bad in ["\x1etune -5\n", "\x1etune soon\n", "\x1etune 0\n"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn differences_say_where() {
        let difference = |a: &str, b: &str| difference(a.as_bytes(), b.as_bytes());
        assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2 is `b`, as written `c`");
        assert_eq!(difference("a\n", "a\nc\n"), "line 2 is nothing, as written `c`");
        assert_eq!(difference("a\n", "a\r\n"), "ends of lines");
    }

    #[test]
    fn dates() {
        let days = [-1, 0, 59, 11_016, 11_017, 19_782, 20_779];
        let expected =
            ["1969-12-31", "1970-01-01", "1970-03-01", "2000-02-29", "2000-03-01", "2024-02-29", "2026-11-22"];
        assert_eq!(days.map(date), expected);
    }
}

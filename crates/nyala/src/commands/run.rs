//! `nyala run`: compiles a program in memory, or interprets it, and runs it.

use super::package::{self, Part};
use super::standby::Standby;
use super::{Answer, FAILED, Input, read_input, show, with_files_of};
use clap::ValueEnum;
use nyala_driver::diagnostics::cannot_write;
use nyala_driver::{Files, FrontEnd, Options, Report};
use std::path::PathBuf;

/// Compile a program and run it
#[derive(clap::Args)]
pub struct Run {
    #[command(flatten)]
    pub(super) input: Input,
    /// Shared library with C functions that the program imports
    #[arg(long, value_name = "LIB.so")]
    load: Vec<PathBuf>,
    /// Exported function to run
    #[arg(long, default_value = "main")]
    entry: String,
    /// Engine that executes the program
    #[arg(long, value_enum, default_value = "jit")]
    engine: Engine,
    /// Let debuggers know functions, lines and variables (docs/debugging.md)
    #[arg(short = 'g')]
    debug: bool,
    /// Write the code in memory to DIR/jit-PID.dump, for `perf inject --jit` (docs/debugging.md)
    #[arg(long, value_name = "DIR")]
    jitdump: Option<PathBuf>,
    /// Do not read or write the caches of native code and of code of kernels
    #[arg(long)]
    no_cache: bool,
    /// Wait until `nyala watch`, which listens at this socket, says that the program is to run
    #[arg(long, hide = true, value_name = "SOCKET")]
    standby: Option<PathBuf>,
    /// Arguments for the program
    #[arg(last = true)]
    args: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum, PartialEq)]
enum Engine {
    /// Native code
    Jit,
    /// Interpreter with checks, which executes the program before partial evaluation
    Interp,
    /// C text, which the system's C compiler compiles
    C,
}

impl Run {
    pub fn run(mut self) -> u8 {
        let standby = match self.standby.as_deref().map(Standby::connect).transpose() {
            Ok(standby) => standby,
            Err(e) => {
                eprintln!("error: cannot reach `nyala watch`: {e}");
                return FAILED;
            }
        };
        let mut before = None;
        if let Some(standby) = &standby
            && !standby.wait(|| before = self.front_end(before.take()))
        {
            return FAILED;
        }
        if let Err(code) = self.input.complete(Part::Program) {
            return code;
        }
        nyala_runtime::end_by_lost_output();
        nyala_runtime::keep_kernels(!self.no_cache);
        with_files_of(
            &self.input,
            |o| self.set(o),
            |options, files| {
                let mut args = vec![self.input.files[0].display().to_string()];
                args.extend(self.args.iter().cloned());
                let is_optimized = options.opt_level > 0;
                let front = after(before, options, files);
                if let Some(standby) = &standby {
                    standby.tell_files(&front);
                }
                let starts = || standby.iter().for_each(Standby::tell_start);
                let graph = front.graph()?;
                if self.engine == Engine::Interp {
                    show(&graph.report, &self.input);
                    starts();
                    return ended(graph.interpret(&self.entry, &args, &self.load)?);
                }
                let residual = graph.residual()?;
                let (flat, loaded) = if self.engine == Engine::C {
                    let flat = residual.flat_for(&nyala_driver::pipelines::C)?;
                    let loaded = flat.load_by_c(&self.load)?;
                    (flat, loaded)
                } else {
                    let flat = residual.flat()?;
                    let loaded = flat.load(&self.load)?;
                    (flat, loaded)
                };
                // The compiler's diagnostics come before the program's output.
                show(&loaded.report, &self.input);
                let (json, color) = (self.input.json, super::has_color());
                loaded.report_faults(move |d, sources| super::render(d, sources, json, color));
                if let Some(folder) = &self.jitdump {
                    loaded.write_jitdump(folder)?;
                }
                starts();
                let result = loaded.run(&flat.module, &self.entry, &args)?;
                if !is_optimized {
                    report_leaks();
                }
                ended(result)
            },
        )
    }

    /// Sets the options that only this verb has.
    fn set(&self, o: &mut Options) {
        o.cache = if self.no_cache { None } else { nyala_driver::cache::Objects::of_user() };
        o.debug = self.debug;
        o.is_interpreted = self.engine == Engine::Interp;
        if o.is_interpreted && o.cpu.is_none() {
            let (triple, cpu) = nyala_driver::INTERPRETED;
            (o.target, o.cpu) = (Some(triple.into()), Some(cpu.into()));
        }
    }

    /// The program as it is now, parsed and checked, without a word. What it has in common with the one before is not parsed again.
    fn front_end(&self, before: Option<FrontEnd>) -> Option<FrontEnd> {
        let mut input = self.input.clone();
        if input.files.is_empty() {
            input.files = package::files(Part::Program).ok()?;
        }
        let quiet = |o: &mut Options| {
            self.set(o);
            o.progress = false;
        };
        let (options, files, unread) = read_input(&input, quiet).ok()?;
        if unread.sink.has_errors() { before } else { Some(after(before, options, files)) }
    }
}

/// The front end of files, some of which may be in the one before.
fn after(before: Option<FrontEnd>, options: Options, files: Files) -> FrontEnd {
    match before {
        Some(mut before) if before.is_of(&files) => {
            before.options.progress = options.progress;
            before
        }
        Some(before) => before.again_as(options, files),
        None => FrontEnd::new(options, files),
    }
}

/// The exit code after a program's end, or an error if its output was lost.
fn ended(code: i32) -> Answer {
    let mut report = Report::default();
    match nyala_runtime::output_error() {
        Some(e) => Err(report.report(cannot_write::standard_output(e))),
        None => Ok(((code & 255) as u8, report)),
    }
}

/// Reports memory of devices that the program has not released, and what is left in channels. Runs without optimization are
/// for looking for faults.
fn report_leaks() {
    nyala_driver::flush();
    for (device, n, bytes) in nyala_runtime::device_memory_in_use() {
        let buffers = if n == 1 { "1 buffer".to_string() } else { format!("{n} buffers") };
        eprintln!("note: {buffers} of {bytes} bytes on device {device} not released");
    }
    for bytes in nyala_runtime::unread_bytes() {
        eprintln!("note: {bytes} bytes in a channel not read");
    }
}

//! `nyala run`: compiles a program in memory, or interprets it, and runs it.

use super::{Input, show, with_session_of};
use clap::ValueEnum;
use nyala::diagnostics::cannot_write;
use nyala::{Reported, Session};
use std::path::PathBuf;

/// Compile a program and run it
#[derive(clap::Args)]
pub struct Run {
    #[command(flatten)]
    input: Input,
    /// Shared library with C functions that the program imports
    #[arg(long, value_name = "LIB.so")]
    load: Vec<PathBuf>,
    /// Exported function to run
    #[arg(long, default_value = "main")]
    entry: String,
    /// Engine that executes the program
    #[arg(long, value_enum, default_value = "jit")]
    engine: Engine,
    /// Do not read or write the caches of native code and of code of kernels
    #[arg(long)]
    no_cache: bool,
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
    pub fn run(&self) -> u8 {
        nyala_runtime::end_by_lost_output();
        nyala_runtime::keep_kernels(!self.no_cache);
        let options =
            |o: &mut nyala::Options| o.cache = if self.no_cache { None } else { nyala::cache::Objects::of_user() };
        with_session_of(&self.input, options, |s| {
            let mut args = vec![self.input.files[0].display().to_string()];
            args.extend(self.args.iter().cloned());
            let world = s.graph()?;
            if self.engine == Engine::Interp {
                show(s, &self.input);
                s.sink.diagnostics.clear();
                s.timings.clear();
                let code = s.interpret(&world, &self.entry, &args, &self.load)?;
                return ended(s, code);
            }
            let residual = s.residual(&world)?;
            let (module, loaded) = if self.engine == Engine::C {
                let module = s.flat_for(&residual, &nyala::pipelines::C)?;
                let loaded = s.load_by_c(&module, &self.load)?;
                (module, loaded)
            } else {
                let module = s.flat(&residual)?;
                let loaded = s.load(&module, &self.load)?;
                (module, loaded)
            };
            // The compiler's diagnostics come before the program's output.
            show(s, &self.input);
            s.sink.diagnostics.clear();
            s.timings.clear();
            let (json, color) = (self.input.json, super::has_color());
            s.report_faults(&loaded, move |d, sources| super::render(d, sources, json, color));
            let result = s.run_entry(&module, &loaded, &self.entry, &args)?;
            if s.options.opt_level == 0 {
                report_leaks();
            }
            ended(s, result)
        })
    }
}

/// The exit code after a program's end, or an error if its output was lost.
fn ended(s: &mut Session, code: i32) -> Result<u8, Reported> {
    match nyala_runtime::output_error() {
        Some(e) => Err(s.report(cannot_write::standard_output(e))),
        None => Ok((code & 255) as u8),
    }
}

/// Reports memory of devices that the program has not released, and what is left in channels. Runs without optimization are
/// for looking for faults.
fn report_leaks() {
    nyala::flush();
    for (device, n, bytes) in nyala_runtime::device_memory_in_use() {
        let buffers = if n == 1 { "1 buffer".to_string() } else { format!("{n} buffers") };
        eprintln!("note: {buffers} of {bytes} bytes on device {device} not released");
    }
    for bytes in nyala_runtime::unread_bytes() {
        eprintln!("note: {bytes} bytes in a channel not read");
    }
}

//! The command `nyala`.

use clap::{Args, Parser, Subcommand, ValueEnum};
use nyala::diagnostics::{cannot_read, cannot_write};
use nyala::{Options, Reported, Session, pipelines};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compiler for Impala: write the general program once, let partial evaluation make the special one.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile a program and run it
    Run {
        #[command(flatten)]
        input: Input,
        /// Shared library with C functions that the program imports
        #[arg(long, value_name = "LIB.so")]
        load: Vec<PathBuf>,
        /// Exported function to run
        #[arg(long, default_value = "main")]
        entry: String,
        #[arg(long, value_enum, default_value = "jit")]
        engine: Engine,
        /// Arguments of the program
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Check a program: silence, or diagnostics
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Show a program at a stage of its compilation
    Emit {
        #[command(flatten)]
        input: Input,
        /// ast, graph, residual, flat, llvm or asm
        #[arg(long, default_value = "residual", value_parser = parse_stage)]
        stage: String,
        /// Only this function (graph, residual, flat)
        #[arg(long = "fn", value_name = "NAME")]
        function: Option<String>,
        /// Write to a file
        #[arg(short)]
        out: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum, PartialEq)]
enum Engine {
    /// Native code
    Jit,
    /// The checking interpreter, on the program before partial evaluation
    Interp,
}

#[derive(Args)]
struct Input {
    /// Source files; several form one program
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Optimization level
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// Ignore partial-evaluation annotations
    #[arg(long)]
    no_pe: bool,
    /// Multiply the budget of partial evaluation
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pe_budget: f64,
    /// Compile without the prelude
    #[arg(long)]
    no_prelude: bool,
    /// CPU to make code for, as LLVM names it
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// Folder to search libraries in
    #[arg(short = 'L', value_name = "DIR")]
    library_folders: Vec<PathBuf>,
    /// Say what each pass took
    #[arg(long)]
    time_passes: bool,
}

fn parse_stage(name: &str) -> Result<String, String> {
    if pipelines::STAGES.iter().any(|s| s.0 == name) {
        return Ok(name.into());
    }
    let later = ["cff", "vector", "c", "cuda", "opencl", "hls", "spirv", "ptx", "amdgpu"];
    let known: Vec<&str> = pipelines::STAGES.iter().map(|s| s.0).collect();
    let what = if later.contains(&name) { "limitation: there is no such stage yet" } else { "no such stage" };
    Err(format!("{what}; there are {}", known.join(", ")))
}

/// Exit codes of `system.md`.
const FAILED: u8 = 1;
const CHECKED_EXECUTION: u8 = 3;
const BUG: u8 = 70;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Passes may recurse as deep as sources nest, which is limited; give them room for that.
    let worker =
        std::thread::Builder::new().name("nyala".into()).stack_size(256 << 20).spawn(move || command(cli.command));
    let code = worker.map(|w| w.join()).unwrap_or_else(|e| {
        eprintln!("nyala: cannot start a thread: {e}");
        Ok(FAILED)
    });
    // A panic has printed its message.
    ExitCode::from(code.unwrap_or(BUG))
}

fn command(command: Command) -> u8 {
    match command {
        Command::Check { input } => with_session(&input, |s| s.graph().map(|_| 0)),
        Command::Emit { input, stage, function, out } => with_session(&input, |s| {
            let text = nyala::emit(s, &stage, function.as_deref())?;
            let written = match &out {
                Some(path) => {
                    std::fs::write(path, text).map_err(|e| cannot_write::error(&format!("`{}`", path.display()), e))
                }
                None => match std::io::stdout().write_all(text.as_bytes()) {
                    Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                        Err(cannot_write::error("to standard output", e))
                    }
                    _ => Ok(()),
                },
            };
            written.map(|()| 0).map_err(|d| s.report(d))
        }),
        Command::Run { input, load, entry, engine, args } => with_session(&input, |s| {
            let mut all = vec![input.files[0].display().to_string()];
            all.extend(args);
            let world = s.graph()?;
            if engine == Engine::Interp {
                show(s, input.time_passes);
                s.sink.diagnostics.clear();
                s.timings.clear();
                return s.interpret(&world, &entry, &all, &load).map(|code| (code & 255) as u8);
            }
            let residual = s.residual(&world)?;
            let module = s.flat(&residual)?;
            let loaded = s.load(&module, &load)?;
            // What the compiler has to say comes before what the program says.
            show(s, input.time_passes);
            s.sink.diagnostics.clear();
            s.timings.clear();
            let result = s.run_entry(&module, &loaded, &entry, &all)?;
            Ok((result & 255) as u8)
        }),
    }
}

/// Loads the files, runs `f`, prints diagnostics; the exit code.
fn with_session(input: &Input, f: impl FnOnce(&mut Session) -> Result<u8, Reported>) -> u8 {
    let mut library_folders = input.library_folders.clone();
    library_folders.extend(std::env::var_os("NYALA_PATH").iter().flat_map(std::env::split_paths));
    if !(input.pe_budget > 0.0 && input.pe_budget.is_finite()) {
        eprintln!("error: --pe-budget must be a positive number");
        return 2;
    }
    let mut session = Session::new(Options {
        opt_level: input.opt_level,
        partial_evaluation: !input.no_pe,
        pe_budget: input.pe_budget,
        prelude: !input.no_prelude,
        cpu: input.cpu.clone(),
        library_folders,
        ..Options::default()
    });
    for path in &input.files {
        let text = std::fs::read(path).map_err(|e| e.to_string()).and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|e| format!("not UTF-8: byte {} is no character", e.utf8_error().valid_up_to()))
        });
        match text {
            Ok(text) => session.add_file(path.display().to_string(), text),
            Err(e) => drop(session.report(cannot_read::error(path, &e))),
        }
    }
    let result = if session.sink.has_errors() { Err(Reported) } else { f(&mut session) };
    show(&session, input.time_passes);
    match result {
        Ok(code) => code,
        Err(Reported) if session.sink.diagnostics.iter().any(|d| d.code == "bug") => BUG,
        Err(Reported) if session.faulted => CHECKED_EXECUTION,
        Err(Reported) => FAILED,
    }
}

fn show(session: &Session, time_passes: bool) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(session.render(color).as_bytes());
    if time_passes && !session.timings.is_empty() {
        let total: f64 = session.timings.iter().map(|t| t.time.as_secs_f64()).sum();
        for t in &session.timings {
            let _ = writeln!(err, "{:>10.3} ms  {:<20} {:>9}", t.time.as_secs_f64() * 1e3, t.pass, t.size);
        }
        let _ = writeln!(err, "{:>10.3} ms  total", total * 1e3);
    }
}

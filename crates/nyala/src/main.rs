//! The command `nyala`.
#![forbid(unsafe_code)]

mod commands;

/// A quarter of the time of compilation is the allocation of small objects.
#[global_allocator]
static ALLOCATOR: nyala_runtime::Remapping<mimalloc::MiMalloc> = nyala_runtime::Remapping(mimalloc::MiMalloc);

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Compiler for Impala: write the general program once, let partial evaluation make the special one.
#[derive(Parser)]
#[command(arg_required_else_help = true)]
struct Cli {
    /// Print the version of this command and of LLVM
    #[arg(short = 'V', long)]
    version: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Run(commands::run::Run),
    Check(commands::check::Check),
    Test(commands::test::Test),
    Watch(commands::watch::Watch),
    Bench(commands::bench::Bench),
    Build(commands::build::Build),
    Tune(commands::tune::Tune),
    Emit(commands::emit::Emit),
    Explain(commands::explain::Explain),
    ExplainError(commands::explain_error::ExplainError),
    Fmt(commands::fmt::Fmt),
    Lsp(commands::lsp::Lsp),
    Doc(commands::doc::Doc),
    Doctor(commands::doctor::Doctor),
    Cache(commands::cache::CacheCommand),
    New(commands::new::New),
    Add(commands::add::Add),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
}

fn main() -> ExitCode {
    nyala_runtime::end_by_closed_pipes();
    let cli = Cli::parse();
    let Some(what) = cli.command else {
        // Without a verb there is an option, and this is the only one.
        println!("{}", commands::version::text());
        return ExitCode::SUCCESS;
    };
    // Passes may recurse as deep as sources nest, which is limited, so they need a large stack.
    let worker = std::thread::Builder::new().name("nyala".into()).stack_size(256 << 20).spawn(move || command(what));
    let code = worker.map(|w| w.join()).unwrap_or_else(|e| {
        eprintln!("nyala: cannot start a thread: {e}");
        Ok(commands::FAILED)
    });
    // After a panic, which has printed its message.
    ExitCode::from(code.unwrap_or(commands::BUG))
}

fn command(command: Command) -> u8 {
    match command {
        Command::Run(run) => run.run(),
        Command::Check(check) => check.run(),
        Command::Test(test) => test.run(),
        Command::Watch(watch) => watch.run(),
        Command::Bench(bench) => bench.run(),
        Command::Build(build) => build.run(),
        Command::Tune(tune) => tune.run(),
        Command::Emit(emit) => emit.run(),
        Command::Explain(explain) => explain.run(),
        Command::ExplainError(explain) => explain.run(),
        Command::Fmt(fmt) => fmt.run(),
        Command::Lsp(lsp) => lsp.run(),
        Command::Doc(doc) => doc.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Cache(cache) => cache.run(),
        Command::New(new) => new.run(),
        Command::Add(add) => add.run(),
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
    }
}

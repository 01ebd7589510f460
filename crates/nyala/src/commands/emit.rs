//! `nyala emit`: prints a program as text, at a stage of its compilation.

use super::package::Part;
use super::{Input, with_files_of};
use clap::builder::{PossibleValue, PossibleValuesParser};
use nyala_driver::Report;
use nyala_driver::diagnostics::cannot_write;
use nyala_driver::files::{check_output, check_place};
use nyala_driver::outputs::stage_of;
use nyala_driver::pipelines;
use std::io::Write;
use std::path::PathBuf;

/// Print a program at a stage of its compilation
#[derive(clap::Args)]
pub struct Emit {
    #[command(flatten)]
    input: Input,
    /// Stage to print; the default follows from the ending of OUT, such as .ll, .s or .c, or else is residual
    #[arg(long, value_parser = stages())]
    stage: Option<String>,
    /// Only this function (graph, residual, flat, llvm, asm)
    #[arg(long = "fn", value_name = "NAME")]
    function: Option<String>,
    /// Triple of the machine to make code for, such as `aarch64-unknown-linux-gnu`; the default is this one
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Write to this file instead of standard output; a name that ends with .spv or .hsaco asks for SPIR-V or AMD's code as
    /// drivers take it
    #[arg(short)]
    out: Option<PathBuf>,
}

fn stages() -> PossibleValuesParser {
    pipelines::stages().map(|s| PossibleValue::new(s.name).help(s.about)).collect::<Vec<_>>().into()
}

impl Emit {
    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Program) {
            return code;
        }
        if self.out.as_ref().is_some_and(|out| self.input.would_lose(out)) {
            return super::USAGE;
        }
        let stage = match self.out.as_ref().map(|out| stage_of(out, self.stage.as_deref())) {
            Some(Err(reason)) => {
                eprintln!("error: {reason}");
                return super::USAGE;
            }
            Some(Ok(Some(stage))) => stage,
            Some(Ok(None)) | None => self.stage.as_deref().unwrap_or("residual"),
        };
        let options = |o: &mut nyala_driver::Options| o.target = self.target.clone();
        with_files_of(&self.input, options, |options, files| {
            let mut report = Report::default();
            self.out.as_ref().map_or(Ok(()), |out| check_place(out)).map_err(|d| report.report(*d))?;
            let extension = self.out.as_ref().and_then(|o| o.extension()).and_then(|e| e.to_str()).unwrap_or_default();
            let (text, mut report) = match nyala_driver::emit_drivers_code(&options, &files, stage, extension) {
                Some(code) => code?,
                None => {
                    let (text, report) = nyala_driver::emit(&options, &files, stage, self.function.as_deref())?;
                    (text.into_bytes(), report)
                }
            };
            report.tell_facts(&options);
            let checked = self.out.as_ref().map_or(Ok(()), |out| check_output(&report.sources, out));
            checked.map_err(|d| report.report(*d))?;
            let written = match &self.out {
                Some(path) => nyala_files::write(path, &text).map_err(|e| cannot_write::file(path, e)),
                None => match std::io::stdout().write_all(&text) {
                    Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(cannot_write::standard_output(e)),
                    _ => Ok(()),
                },
            };
            written.map_err(|d| report.report(d))?;
            Ok((0, report))
        })
    }
}

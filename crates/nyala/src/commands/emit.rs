//! `nyala emit`: prints a program as text, at a stage of its compilation.

use super::{Input, with_session};
use clap::builder::{PossibleValue, PossibleValuesParser};
use nyala::diagnostics::cannot_write;
use nyala::outputs::stage_of;
use nyala::pipelines;
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
    pub fn run(&self) -> u8 {
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
        with_session(&self.input, |s| {
            self.out.as_ref().map_or(Ok(()), |out| s.check_place(out))?;
            s.options.target = self.target.clone();
            let extension = self.out.as_ref().and_then(|o| o.extension()).and_then(|e| e.to_str()).unwrap_or_default();
            let text = match nyala::emit_drivers_code(s, stage, extension) {
                Some(code) => code?,
                None => nyala::emit(s, stage, self.function.as_deref())?.into_bytes(),
            };
            self.out.as_ref().map_or(Ok(()), |out| s.check_output(out))?;
            let written = match &self.out {
                Some(path) => nyala_files::write(path, &text).map_err(|e| cannot_write::file(path, e)),
                None => match std::io::stdout().write_all(&text) {
                    Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(cannot_write::standard_output(e)),
                    _ => Ok(()),
                },
            };
            written.map(|()| 0).map_err(|d| s.report(d))
        })
    }
}

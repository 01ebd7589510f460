//! `nyala explain`: reports what partial evaluation did at each call, and why.

use super::{Input, with_session};
use nyala::diagnostics::cannot_write;
use nyala::{Reported, Session, explain};
use std::io::Write;
use std::path::PathBuf;

/// Say what partial evaluation did at each call, and why
///
/// With `--json` the report is JSON as well, on standard output (docs/explain.md).
#[derive(clap::Args)]
pub struct Explain {
    #[command(flatten)]
    input: Input,
    /// Report only calls of this function, and the decisions within it
    #[arg(long = "fn", value_name = "NAME", conflicts_with = "html")]
    function: Option<String>,
    /// Maximum number of entries of each list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Report how the vectorizer compiled values, branches, loops, accesses and calls, and why
    #[arg(long, conflicts_with_all = ["html"])]
    vector: bool,
    /// Report the kernels for devices: their parameters, accesses and branches that cost time for certain, and registers if
    /// NVIDIA's assembler `ptxas` is installed
    #[arg(long, conflicts_with_all = ["html", "vector"])]
    kernels: bool,
    /// Write an HTML page with source and residual program side by side
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Prints a report. A reader that has seen enough is no error.
fn print(s: &mut Session, text: &str) -> Result<u8, Reported> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(s.report(cannot_write::standard_output(e))),
        _ => Ok(0),
    }
}

impl Explain {
    fn lanes(&self, s: &mut Session) -> Result<u8, Reported> {
        let notes = explain::lanes::notes(s, self.function.as_deref())?;
        let text = match self.input.json {
            true => explain::lanes::json(s, &notes) + "\n",
            false => explain::lanes::text(s, &notes),
        };
        print(s, &text)
    }

    fn kernels(&self, s: &mut Session) -> Result<u8, Reported> {
        let kernels = explain::kernels::kernels(s, self.function.as_deref())?;
        let text = match self.input.json {
            true => explain::kernels::json(&kernels) + "\n",
            false => explain::kernels::text(&kernels),
        };
        print(s, &text)
    }

    pub fn run(&self) -> u8 {
        if self.html.as_ref().is_some_and(|out| self.input.would_lose(out)) {
            return super::USAGE;
        }
        with_session(&self.input, |s| {
            if self.vector {
                return self.lanes(s);
            }
            if self.kernels {
                return self.kernels(s);
            }
            self.html.as_ref().map_or(Ok(()), |out| s.check_output(out))?;
            let mut explained = explain::explain(s)?;
            explain::add_code(s, &mut explained);
            let report = &explained.report;
            // An evaluation that was given up is reported, but is an error.
            let end = if report.totals.complete { Ok(0) } else { Err(Reported) };
            if let Some(path) = &self.html {
                let page = explain::html::page(&explained, &s.sources, &s.program_files());
                nyala_files::write(path, page.as_bytes()).map_err(|e| s.report(cannot_write::file(path, e)))?;
                return end;
            }
            let text = match self.input.json {
                true => explain::json(report) + "\n",
                false => explain::text(s, report, self.function.as_deref(), self.top)?,
            };
            print(s, &text)?;
            end
        })
    }
}

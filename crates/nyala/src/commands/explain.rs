//! `nyala explain`: reports what partial evaluation did at each call, and why.

use super::package::Part;
use super::{Answer, Input, with_files};
use nyala_driver::diagnostics::cannot_write;
use nyala_driver::files::check_output;
use nyala_driver::pipelines::LLVM;
use nyala_driver::{FrontEnd, Graph, Report, explain};
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
fn print(mut report: Report, text: &str) -> Answer {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(report.report(cannot_write::standard_output(e))),
        _ => Ok((0, report)),
    }
}

impl Explain {
    fn lanes(&self, graph: &Graph) -> Answer {
        let (notes, report) = explain::vector_code::notes(graph.residual()?, self.function.as_deref())?;
        let text = match self.input.json {
            true => explain::vector_code::json(&report.sources, &notes) + "\n",
            false => explain::vector_code::text(&report.sources, &notes),
        };
        print(report, &text)
    }

    fn kernels(&self, graph: &Graph) -> Answer {
        let flat = graph.residual()?.split(&LLVM)?;
        let kernels = explain::kernels::kernels(&flat, self.function.as_deref());
        let text = match self.input.json {
            true => explain::kernels::json(&kernels) + "\n",
            false => explain::kernels::text(&kernels),
        };
        print(flat.report, &text)
    }

    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Program) {
            return code;
        }
        if self.html.as_ref().is_some_and(|out| self.input.would_lose(out)) {
            return super::USAGE;
        }
        with_files(&self.input, |options, files| {
            let names = files.names();
            let front = FrontEnd::new(options, files);
            if let Some(out) = &self.html {
                check_output(&front.report.sources, out).map_err(|d| front.report.clone().report(*d))?;
            }
            let mut graph = front.graph()?;
            graph.report.tell_facts(&graph.options);
            if self.vector {
                return self.lanes(&graph);
            }
            if self.kernels {
                return self.kernels(&graph);
            }
            let mut explained = explain::explain(&graph)?;
            explained.add_code(|residual| residual.flat()?.code_sizes());
            let text = match &self.html {
                Some(_) => explain::html::page(&explained, &names),
                None if self.input.json => explain::json(&explained.report) + "\n",
                None => {
                    let text = explain::text(&explained.report, self.function.as_deref(), self.top);
                    text.map_err(|d| explained.residual.report.report(*d))?
                }
            };
            let mut report = explained.residual.report;
            let report = match &self.html {
                Some(path) => match nyala_files::write(path, text.as_bytes()) {
                    Ok(()) => report,
                    Err(e) => return Err(report.report(cannot_write::file(path, e))),
                },
                None => print(report, &text)?.1,
            };
            // An evaluation that was given up is reported, but is an error.
            if explained.report.totals.complete { Ok((0, report)) } else { Err(Box::new(report)) }
        })
    }
}

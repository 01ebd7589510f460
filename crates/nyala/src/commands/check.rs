//! `nyala check`: silence, or diagnostics.

use super::package::Part;
use super::{Input, with_files};
use nyala_driver::FrontEnd;

/// Check a program, up to the text that LLVM gets, and print its diagnostics, if there are any. With `--no-pe`, only names,
/// types and the like
#[derive(clap::Args)]
pub struct Check {
    #[command(flatten)]
    input: Input,
}

impl Check {
    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Program) {
            return code;
        }
        with_files(&self.input, |options, files| {
            let partial_evaluation = options.partial_evaluation;
            let front = FrontEnd::new(options, files);
            let mut graph = front.graph()?;
            graph.report.tell_facts(&graph.options);
            let report = match partial_evaluation {
                true => front.code(&graph)?.report,
                false => graph.check_supported()?,
            };
            Ok((0, report))
        })
    }
}

//! `nyala check`: silence, or diagnostics.

use super::package::Part;
use super::{Input, with_files};
use nyala_driver::{Code, FrontEnd};

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
            let mut graph = FrontEnd::new(options, files).graph()?;
            graph.report.tell_facts(&graph.options);
            let report = match partial_evaluation {
                true => Code::of(&graph.residual()?.flat()?, None)?.report,
                false => graph.check_supported()?,
            };
            Ok((0, report))
        })
    }
}

//! `nyala check`: silence, or diagnostics.

use super::{Input, with_session};

/// Check a program, up to the text that LLVM gets, and print its diagnostics, if there are any. With `--no-pe`, only names,
/// types and the like
#[derive(clap::Args)]
pub struct Check {
    #[command(flatten)]
    input: Input,
}

impl Check {
    pub fn run(&self) -> u8 {
        with_session(&self.input, |s| {
            let world = s.graph()?;
            match s.options.partial_evaluation {
                true => s.check_builds(&world)?,
                false => s.check_supported(&world)?,
            }
            Ok(0)
        })
    }
}

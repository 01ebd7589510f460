//! `nyala check`: silence, or diagnostics.

use super::{Input, with_session};

/// Check a program and print its diagnostics, if there are any
#[derive(clap::Args)]
pub struct Check {
    #[command(flatten)]
    input: Input,
}

impl Check {
    pub fn run(&self) -> u8 {
        with_session(&self.input, |s| {
            let world = s.graph()?;
            s.check_supported(&world).map(|()| 0)
        })
    }
}

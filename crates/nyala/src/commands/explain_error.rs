//! `nyala explain-error`: explains the code of an error, with an example and what to write instead.

use super::USAGE;
use nyala_driver::diagnostics;
use std::io::Write;

/// Explain diagnostics by their codes; list all codes if none is given
#[derive(clap::Args)]
pub struct ExplainError {
    /// Codes as messages show them, such as filter-not-bool
    #[arg(value_name = "CODE")]
    codes: Vec<String>,
}

impl ExplainError {
    pub fn run(&self) -> u8 {
        let all = diagnostics::all();
        let mut out = String::new();
        if self.codes.is_empty() {
            let width = all.iter().map(|c| c.module.len()).max().unwrap_or(0);
            for code in &all {
                out += &format!("{:width$}  {}\n", code.name(), code.summary());
            }
        }
        for (i, wanted) in self.codes.iter().enumerate() {
            let Some(code) = all.iter().find(|c| c.name() == *wanted) else {
                let names: Vec<String> = all.iter().map(|c| c.name()).collect();
                let hint = match nyala_sema::closest(wanted, names.iter().map(|n| n.as_str())) {
                    Some(similar) => format!("did you mean `{similar}`?"),
                    None => "`nyala explain-error` lists all codes".into(),
                };
                eprintln!("error: no error has the code `{wanted}`\n  = hint: {hint}");
                return USAGE;
            };
            let between = if i > 0 { "\n" } else { "" };
            out += &format!("{between}# {wanted}\n\n{}", code.explanation());
        }
        // It fails if a reader closes the pipe early.
        let _ = std::io::stdout().write_all(out.as_bytes());
        0
    }
}

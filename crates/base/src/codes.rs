//! The table of a crate's diagnostics: each code is a file, whose header explains it.
//!
//! ```text
//! //! diagnostics/mod.rs
//! pub(crate) mod filter_not_bool;                      // error[filter-not-bool]
//! nyala_base::codes![filter_not_bool];                 // pub const CODES: &[Code]
//! ```

/// A diagnostic code, with its explanation.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The name of the code's module.
    #[doc(hidden)]
    pub module: &'static str,
    /// The source text of the code's file.
    #[doc(hidden)]
    pub source: &'static str,
}

impl Code {
    /// The code as messages show it, `filter-not-bool`.
    pub fn name(&self) -> String {
        self.module.replace('_', "-")
    }

    /// The explanation in Markdown: a sentence, then the meaning, an example, and what to write instead.
    pub fn explanation(&self) -> String {
        let header = self.source.lines().map_while(|l| l.strip_prefix("//!"));
        header.map(|l| format!("{}\n", l.strip_prefix(' ').unwrap_or(l))).collect()
    }

    /// The first sentence of the explanation.
    pub fn summary(&self) -> String {
        self.explanation().lines().next().unwrap_or_default().to_string()
    }
}

/// Makes `CODES` from the named modules, each a file beside the calling one.
#[macro_export]
macro_rules! codes {
    ($($module:ident),* $(,)?) => {
        /// Every code that this crate reports.
        pub const CODES: &[$crate::Code] = &[
            $($crate::Code {
                module: stringify!($module),
                source: include_str!(concat!(stringify!($module), ".rs")),
            }),*
        ];
    };
}

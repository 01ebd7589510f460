//! What a caller chooses: the machine that code is made for, and how well. Apart from the module in memory, since the text is
//! written by it, too.

/// What code is made for, and how well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// 0 to 3, as in `-O3`.
    pub opt_level: u8,
    /// The triple of the machine; `None` is this one's.
    pub target: Option<String>,
    /// LLVM's name of the CPU; `None` is this machine's, of a foreign target its least.
    pub cpu: Option<String>,
    /// Further CPUs that each function is made for; the best is chosen when the code is loaded.
    pub more_cpus: Vec<String>,
    /// Bits of the vectors that LLVM makes of loops without any, on x86-64; `None` leaves it to LLVM. Those that a program
    /// has are as wide as registers are.
    pub vector_width: Option<u32>,
    /// Signed overflow wraps instead of being undefined.
    pub wrap: bool,
    /// Floating-point arithmetic may be reassociated and contracted, and sees no NaN or infinity.
    pub fast_math: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            opt_level: 3,
            target: None,
            cpu: None,
            more_cpus: Vec::new(),
            vector_width: None,
            wrap: false,
            fast_math: false,
        }
    }
}

impl Options {
    /// The target's architecture, as its triple begins; empty for this machine's.
    pub(crate) fn arch(&self) -> &str {
        self.target.as_deref().and_then(|t| t.split('-').next()).unwrap_or("")
    }

    /// Whether code runs on this machine: its architecture and system, as far as triples name them.
    pub(crate) fn is_native(&self) -> bool {
        let system = |t: &str| ["linux", "darwin", "windows", "freebsd"].into_iter().find(|os| t.contains(os));
        let here = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let named = self.target.as_deref();
        named.is_none_or(|t| self.arch() == std::env::consts::ARCH && system(t) == system(here))
    }

    /// Whether C's convention is that of System V on x86-64.
    pub(crate) fn is_system_v(&self) -> bool {
        let here = cfg!(all(target_arch = "x86_64", not(windows)));
        match &self.target {
            None => here,
            Some(triple) => triple.starts_with("x86_64") && !triple.contains("windows"),
        }
    }

    /// Whether LLVM makes every call in tail position a jump on this target; elsewhere it does where it can.
    pub fn has_tail_calls(&self) -> bool {
        let is_windows = self.target.as_deref().is_some_and(|t| t.contains("windows"));
        ["", "x86_64", "aarch64"].contains(&self.arch()) && !is_windows
    }
}

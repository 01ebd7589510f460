//! Options that a caller chooses, besides the machine, which a module names.

use std::path::PathBuf;

/// A tool of LLVM that finds faults of memory while the program runs. Its runtime is the compiler's that links the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sanitizer {
    /// AddressSanitizer: accesses outside of blocks, of freed ones, leaks.
    Address,
    /// ThreadSanitizer: data races.
    Thread,
}

impl Sanitizer {
    /// Its name in options of compilers: `-fsanitize=address`.
    pub fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        }
    }
}

/// Options of code generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// 0 to 3, as in `-O3`.
    pub opt_level: u8,
    /// Further CPUs that each function is compiled for; the best is chosen when the code is loaded.
    pub more_cpus: Vec<String>,
    /// On x86-64, width in bits of the vectors that LLVM makes of scalar loops; `None` leaves it to LLVM. Vectors of a
    /// program may be as wide as registers are.
    pub vector_width: Option<u32>,
    /// Signed overflow wraps instead of being undefined.
    pub wrap: bool,
    /// Floating-point arithmetic may be reassociated and contracted, and sees no NaN or infinity.
    pub fast_math: bool,
    /// NVIDIA's library of math functions for kernels, as LLVM bitcode, if it is there.
    pub libdevice: Option<PathBuf>,
    /// Accesses of memory are reported to this tool.
    pub sanitizer: Option<Sanitizer>,
    /// The code promises LLVM nothing, see `confined.rs`.
    pub confined: bool,
    /// Limit on the instructions of functions that are compiled together, if a module is cut into units. With 0 each is alone.
    pub max_unit: usize,
    /// What units share is hidden from other files: a linker makes a library or an object of them.
    pub hides_shared: bool,
}

/// The usual value of [`Options::max_unit`].
pub const MAX_UNIT: usize = 1000;

impl Default for Options {
    fn default() -> Options {
        Options {
            opt_level: 3,
            more_cpus: Vec::new(),
            vector_width: None,
            wrap: false,
            fast_math: false,
            libdevice: None,
            sanitizer: None,
            confined: false,
            max_unit: MAX_UNIT,
            hides_shared: false,
        }
    }
}

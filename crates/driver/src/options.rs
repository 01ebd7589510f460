//! The options of a compilation. Separate, since each value of a compilation, from the front end to machine code, has them.

use crate::cache;
use crate::progress::Steps;
use nyala_gen_llvm::Sanitizer;
use nyala_ir::Target;
use std::path::PathBuf;

/// The language options that a compilation heeds.
#[derive(Clone, Debug)]
pub struct Options {
    /// 0 to 3.
    pub opt_level: u8,
    /// Whether annotations are heeded (`--no-pe`).
    pub partial_evaluation: bool,
    /// The budget of partial evaluation, as a multiple of the default.
    pub pe_budget: f64,
    /// The budget of all functions together, as a multiple of that of one.
    pub pe_units: f64,
    /// Exports are specialized as one, not each alone: tests, of which a file may have hundreds that call the same functions.
    pub together: bool,
    /// The prelude is in scope.
    pub prelude: bool,
    /// The triple of the machine to make code for; `None` is this machine.
    pub target: Option<String>,
    /// LLVM's name of the CPU; `None` is this machine's, or a foreign target's least.
    pub cpu: Option<String>,
    /// Further CPUs that each function is made for in what is built; the best is chosen when it is loaded.
    pub more_cpus: Vec<String>,
    /// Width in bits of the vectors that LLVM uses for plain loops (`--prefer-vector-width`).
    pub vector_width: Option<u32>,
    /// The lanes of a gang of ISPC's programs (`--lanes`); `None`: the floats that a register of the CPU holds.
    pub lanes: Option<u32>,
    /// Emit debug information (`-g`): functions, also unfolded ones, lines, variables. Code may differ a little.
    pub debug: bool,
    /// Names of statics and the initializers they get instead of their own (`-D`).
    pub defines: Vec<(String, String)>,
    /// The file with values that `nyala tune` found, if these are wanted.
    pub tuned: Option<PathBuf>,
    /// Folders with libraries (`-L`, `NYALA_PATH`).
    pub library_folders: Vec<PathBuf>,
    /// Take dependencies as `nyala.lock` has them (`--locked`).
    pub locked: bool,
    /// Fetch no dependencies (`--offline`).
    pub offline: bool,
    /// Where native code is kept between runs.
    pub cache: Option<cache::Objects>,
    /// Limit on the instructions of functions that LLVM compiles together for a program in memory.
    pub max_unit: usize,
    /// The device that kernels run on (`--device`).
    pub device: Device,
    /// The code of kernels for CUDA: PTX for an architecture such as `sm_90`, or [`CUDA_SOURCE`]; `None` is PTX for
    /// [`CUDA_LEAST`] (`--cuda`).
    pub cuda: Option<String>,
    /// The architecture of AMD's GPUs that kernels are made for; `None` is [`AMDGPU_USUAL`] (`--amdgpu`).
    pub amdgpu: Option<String>,
    /// Signed arithmetic is modulo 2ⁿ (`--wrap`); else it must not overflow.
    pub wrap: bool,
    /// What native code checks while it runs (`--check`).
    pub checks: nyala_checks::Checks,
    /// The program only runs in the interpreter, which checks everything.
    pub is_interpreted: bool,
    /// If the exported function is to be [confined](nyala_checks::confine), what its parameters lend it.
    pub confined: Option<std::sync::Arc<[nyala_checks::Lent]>>,
    /// The tool that native code reports its accesses of memory to (`--sanitize`).
    pub sanitizer: Option<Sanitizer>,
    /// Tell on standard error, a terminal, which pass takes more than a second.
    pub progress: bool,
    /// Codes of warnings that are not reported (`--allow`).
    pub allow: Vec<String>,
    /// Codes of warnings that are errors; `warnings` stands for all (`--deny`).
    pub deny: Vec<String>,
    /// Verify after every pass.
    pub verify: bool,
    /// Follows partial evaluation from another thread, which may end it.
    pub watched: Option<Steps>,
}

impl Options {
    /// The machine that code is made for.
    pub fn target(&self) -> Target {
        Target::new(self.target.as_deref(), self.cpu.as_deref())
    }

    /// What native code checks.
    pub(crate) fn checked(&self) -> nyala_checks::Checks {
        let mut checks = self.checks;
        checks.overflow &= !self.wrap;
        checks
    }

    /// What partial evaluation tells how far it has come.
    pub(crate) fn steps(&self) -> Option<Steps> {
        self.watched.clone().or_else(|| self.progress.then(Default::default))
    }

    /// Whether a code is denied by its own name.
    pub(crate) fn denies(&self, code: &str) -> bool {
        self.deny.iter().any(|c| c == code)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            opt_level: 3,
            partial_evaluation: true,
            pe_budget: 1.0,
            pe_units: nyala_specialize::Options::default().units,
            together: false,
            prelude: true,
            target: None,
            cpu: None,
            more_cpus: Vec::new(),
            vector_width: None,
            lanes: None,
            debug: false,
            defines: Vec::new(),
            tuned: None,
            library_folders: Vec::new(),
            locked: false,
            offline: false,
            cache: None,
            max_unit: nyala_gen_llvm::MAX_UNIT,
            device: Device::Own,
            cuda: None,
            amdgpu: None,
            wrap: false,
            checks: nyala_checks::Checks::default(),
            is_interpreted: false,
            confined: None,
            progress: false,
            sanitizer: None,
            allow: Vec::new(),
            deny: Vec::new(),
            verify: cfg!(debug_assertions),
            watched: None,
        }
    }
}

/// The device that kernels run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// The one that their launch names.
    Own,
    /// The host's CPU, which stands for all devices.
    Host,
    /// A device of a platform, an index of [`PLATFORMS`](nyala_ir::lanes::PLATFORMS), with its number. It stands for all.
    One(u32, u32),
}

/// The value of [`Options::cuda`] for CUDA C++.
pub const CUDA_SOURCE: &str = "source";
/// The oldest architecture of NVIDIA's GPUs that kernels are made for.
pub const CUDA_LEAST: &str = "sm_75";

/// The architecture of AMD's GPUs that kernels are made for, if none is named.
pub const AMDGPU_USUAL: &str = "gfx90a";

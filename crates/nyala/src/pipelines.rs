//! The passes, stages, back ends and engines, as tables.

use crate::diagnostics::constant_fault;
use crate::{Device, Options, Reported, Session, devices, emit, run};
use nyala_base::Diagnostic;
use nyala_flat::Module;
use nyala_ir::World;
use nyala_kernels::Devices;

/// A pass over flat SSA.
pub struct FlatPass {
    /// Its key in `--time-passes`.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// Runs from this `-O` on.
    pub min_level: u8,
    /// Its limitations and warnings are in the diagnostics.
    pub run: fn(&mut Module, &Options) -> Vec<Diagnostic>,
}

/// The passes over flat SSA, in order.
pub const FLAT: &[FlatPass] = &[
    FlatPass {
        // First: function values are taken apart when variables become values.
        name: "count-environments",
        about: "environments of function values are freed with the last value that holds them",
        min_level: 0,
        run: |module, _| {
            nyala_flat::count_environments(module);
            Vec::new()
        },
    },
    FlatPass {
        name: "promote-slots",
        about: "local variables whose address does not escape become values",
        min_level: 1,
        run: |module, _| {
            nyala_flat::promote_slots(module);
            Vec::new()
        },
    },
    FlatPass {
        name: "simplify-branches",
        about: "merges and removes blocks, drops what nobody uses",
        min_level: 1,
        run: |module, _| {
            nyala_flat::simplify_branches(module);
            Vec::new()
        },
    },
    FlatPass {
        // While bodies are functions, and after their own variables became values.
        name: "find-races",
        about: "warns of iterations that write to one place at the same time",
        min_level: 0,
        run: |module, options| match options.opt_level {
            // Without optimization, variables of bodies are in memory, too.
            0 if nyala_checks::has_launches(module) => {
                let mut promoted = module.clone();
                nyala_flat::promote_slots(&mut promoted);
                nyala_checks::find_races(&promoted)
            }
            _ => nyala_checks::find_races(module),
        },
    },
    FlatPass {
        // Comes before `vectorize`: an operation in vectors is not known to be executed by all lanes.
        name: "find-constant-faults",
        about: "warns of operations on constants that go wrong for certain",
        min_level: 0,
        run: |module, _| {
            let faults = nyala_checks::constant_faults(module);
            faults.into_iter().map(|(span, fault)| constant_fault::warning(span, fault)).collect()
        },
    },
    FlatPass {
        name: "lower-launches",
        about: "kernels become functions for blocks of work items on the host",
        min_level: 0,
        run: |module, options| {
            let devices = match options.device {
                Device::Own => &Devices::Platforms(&devices::platforms()),
                Device::Host => &Devices::Host,
                Device::One(platform, number) => &Devices::One(platform, number),
            };
            nyala_kernels::lower_launches(module, devices)
        },
    },
    FlatPass {
        name: "vectorize",
        about: "bodies of `vectorize` become vector code",
        min_level: 0,
        run: |module, options| {
            let options = nyala_vectorize::Options { wrap: options.wrap, explain: false };
            nyala_vectorize::vectorize(module, options).diagnostics
        },
    },
];

/// A form in which `nyala emit` shows programs.
pub struct Stage {
    /// The name for `nyala emit --stage`.
    pub name: &'static str,
    /// Its content, in one line.
    pub about: &'static str,
    /// The program as text; one function of it, if named.
    pub text: fn(&mut Session, Option<&str>) -> Result<String, Reported>,
}

/// The stages before any back end, in the order of the pipeline.
const FRONT: &[Stage] = &[
    Stage { name: "ast", about: "the syntax tree", text: emit::ast },
    Stage { name: "graph", about: "the graph before partial evaluation", text: emit::graph },
    Stage { name: "residual", about: "the graph after partial evaluation", text: emit::residual },
    Stage { name: "flat", about: "flat SSA", text: emit::flat },
    Stage { name: "device", about: "flat SSA of the kernels for devices", text: Session::device_text },
    Stage { name: "opencl", about: "OpenCL C of the kernels for OpenCL", text: emit::opencl_text },
    Stage { name: "hls", about: "C++ of the kernels for high-level synthesis", text: emit::hls_text },
    Stage { name: "cuda", about: "CUDA C++ of the kernels for CUDA and NVVM", text: emit::cuda_text },
    Stage { name: "spirv", about: "SPIR-V of the kernels for Vulkan, OpenCL and Level Zero", text: emit::spirv_text },
    Stage { name: "ptx", about: "PTX of the kernels for CUDA and NVVM", text: emit::ptx_text },
    Stage { name: "amdgpu", about: "assembly of the kernels for AMD's GPUs", text: emit::amdgpu_text },
];

/// The input of a back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The graph before partial evaluation.
    Graph,
    /// Flat SSA.
    Flat,
}

/// A program that is ready to run: calls an exported function of type `fn() -> bool` by its name.
pub type Ready<'w> = Box<dyn Fn(&mut Session, &str) -> Result<bool, Reported> + 'w>;

/// A program of the system that a back end uses.
pub struct Need {
    /// The program, with its article.
    pub what: &'static str,
    /// Whether it can be started.
    pub is_there: fn() -> bool,
}

/// A pass that a back end does without.
pub struct Without {
    /// The pass's name.
    pub pass: &'static str,
    /// For which modules.
    pub holds: fn(&Module) -> bool,
}

/// An engine turns a program into something that can run.
pub struct BackEnd {
    /// Its name for `--engine` and in tests.
    pub name: &'static str,
    /// Its result, in one line.
    pub makes: &'static str,
    /// Its input.
    pub takes: Form,
    /// Other programs that it needs.
    pub needs: Option<Need>,
    /// [Passes](FLAT) that it does without.
    pub without: &'static [Without],
    /// The stages that only this back end has.
    pub stages: &'static [Stage],
    /// Makes a program ready to run, given its graph before partial evaluation.
    pub ready: for<'w> fn(&mut Session, &'w World) -> Result<Ready<'w>, Reported>,
}

/// The checked interpreter.
pub const INTERP: BackEnd = BackEnd {
    name: "interp",
    makes: "results, with every access checked",
    takes: Form::Graph,
    needs: None,
    without: &[],
    stages: &[],
    ready: run::ready_interpreted,
};

/// LLVM.
pub const LLVM: BackEnd = BackEnd {
    name: "llvm",
    makes: "machine code, in memory and as objects",
    takes: Form::Flat,
    needs: None,
    without: &[],
    stages: &[
        Stage { name: "llvm", about: "LLVM's text form, optimized", text: emit::llvm },
        Stage { name: "asm", about: "assembly", text: emit::asm },
    ],
    ready: run::ready_compiled,
};

/// C, for the system's compiler. The loops of `vectorize` stay loops, unless their lanes exchange values.
pub const C: BackEnd = BackEnd {
    name: "c",
    makes: "C text",
    takes: Form::Flat,
    needs: Some(Need { what: "a C compiler", is_there: crate::compiled_c::has_compiler }),
    without: &[Without { pass: "vectorize", holds: |module| !nyala_gen_c::lanes_meet(module) }],
    stages: &[Stage { name: "c", about: "C text", text: emit::c }],
    ready: run::ready_by_c,
};

/// All back ends.
pub const BACK_ENDS: &[BackEnd] = &[INTERP, LLVM, C];

impl BackEnd {
    /// Whether a module goes through a pass over flat SSA.
    pub fn takes_pass(&self, pass: &FlatPass, module: &Module) -> bool {
        !self.without.iter().any(|w| w.pass == pass.name && (w.holds)(module))
    }
}

/// A back end for the kernels of platforms.
pub struct DeviceBackEnd {
    /// Its name.
    pub name: &'static str,
    /// The intrinsics that launch them, of [`PLATFORMS`](nyala_ir::lanes::PLATFORMS).
    pub platforms: &'static [&'static str],
    /// Its result, in one line.
    pub makes: &'static str,
    /// The address space in which immutable statics lie.
    pub statics: u8,
    /// Whether an address may mean any memory; else each needs an address space.
    pub generic: bool,
    /// The code of a module, as the runtime takes it.
    pub code: fn(&mut Session, &Module) -> Result<Vec<u8>, Reported>,
}

/// The platforms that code is made for.
pub const DEVICES: &[DeviceBackEnd] = &[
    DeviceBackEnd {
        name: "opencl",
        platforms: &["opencl"],
        makes: "OpenCL C, which the driver compiles when a kernel is launched first",
        statics: 4,
        generic: false,
        code: emit::opencl,
    },
    DeviceBackEnd {
        name: "cuda",
        platforms: &["cuda", "nvvm"],
        makes: "PTX, or CUDA C++, which NVRTC compiles when a kernel is launched first",
        statics: 4,
        generic: true,
        code: emit::cuda,
    },
    DeviceBackEnd {
        name: "hls",
        platforms: &["hls"],
        makes: "C++ for high-level synthesis, which is only printed: the runtime has the kernels from a library of it",
        statics: 4,
        generic: true,
        // Limitations are reported when the program is compiled, as for other devices.
        code: |s, module| emit::hls(s, module).map(|_| Vec::new()),
    },
    DeviceBackEnd {
        name: "amdgpu",
        platforms: &["amdgpu_hsa", "amdgpu_pal"],
        makes: "code objects for AMD's GPUs",
        statics: 4,
        generic: true,
        code: emit::amdgpu_code,
    },
    DeviceBackEnd {
        name: "vulkan",
        platforms: &["vulkan"],
        makes: "SPIR-V for compute shaders",
        statics: 4,
        generic: false,
        code: emit::spirv_vulkan,
    },
    DeviceBackEnd {
        name: "spirv",
        platforms: &["opencl_spirv", "levelzero"],
        makes: "SPIR-V for kernels of OpenCL and Level Zero",
        statics: 4,
        generic: false,
        code: emit::spirv_opencl,
    },
];

/// Stages of `nyala emit`, those of back ends last.
pub fn stages() -> impl Iterator<Item = &'static Stage> {
    FRONT.iter().chain(BACK_ENDS.iter().flat_map(|b| b.stages))
}

/// Instructions of a module.
pub fn flat_size(module: &Module) -> usize {
    module.funcs.iter().flat_map(|f| &f.blocks).map(|b| b.insts.len() + 1).sum()
}

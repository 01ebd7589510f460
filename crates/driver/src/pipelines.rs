//! The passes, stages, back ends and engines, as tables.

use crate::diagnostics::constant_fault;
use crate::front::Files;
use crate::graph::Graph;
use crate::report::{Failed, Report};
use crate::{Device, Options, devices, emit, run, statics, testing};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Span};
use nyala_checks::Checks;
use nyala_flat::Module;
use nyala_flat::ensure::Stage as Judged;
use nyala_ir::World;
use nyala_kernels::Devices;
use nyala_vectorize::Note;

/// Limit on the calls that a panic tells.
const MAX_CALLS: usize = 8;

/// A pass over the graph before partial evaluation.
pub struct GraphPass {
    /// Its key in `--time-passes`.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// Whether the graph is verified after it.
    pub verified: bool,
    /// Its warnings are in the report.
    pub run: fn(&mut World, &Options, &mut Report) -> Result<(), Failed>,
}

/// The passes over the graph, in order, after it was lowered.
pub const GRAPH: &[GraphPass] = &[
    GraphPass {
        name: "compute-statics",
        about: "statics whose initializers call functions become constants",
        // What uses a computed static is eta-reduced below.
        verified: false,
        run: |world, options, report| statics::compute(options, report, world),
    },
    GraphPass {
        name: "eta-reduce",
        about: "functions that only call another one are that one",
        verified: true,
        run: |world, _, _| {
            nyala_ir::eta::eta_reduce(world);
            Ok(())
        },
    },
    GraphPass {
        name: "find-recursive-runs",
        about: "warns of functions that are run and call themselves without end",
        verified: false,
        run: |world, _, report| {
            report.sink.diagnostics.extend(nyala_specialize::recursive_runs::recursive_runs(world));
            Ok(())
        },
    },
    GraphPass {
        name: "find-leaving-addresses",
        about: "warns of addresses of variables that leave their function",
        verified: false,
        run: |world, _, report| {
            report.sink.diagnostics.extend(nyala_specialize::leaving_addresses::leaving_addresses(world));
            Ok(())
        },
    },
];

/// Partial evaluation: from the graph to the residual program.
pub const SPECIALIZE: &str = "specialize";

/// From the residual program to flat SSA.
pub const SCHEDULE: &str = "schedule";

/// What a pass over flat SSA may look at, beside the module.
pub struct Step<'a> {
    /// The options.
    pub options: &'a Options,
    /// What was found up to here.
    pub report: &'a Report,
    /// The back end of the device whose module it is.
    pub device: Option<&'static DeviceBackEnd>,
    /// Notes of the vectorizer, if they are wanted.
    pub notes: Option<&'a mut Vec<Note>>,
}

/// A pass over flat SSA.
pub struct FlatPass {
    /// Its key in `--time-passes`.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// Runs from this `-O` on.
    pub min_level: u8,
    /// If it only runs when native code checks something: for which checks.
    pub checks: Option<fn(Checks) -> bool>,
    /// Whether it only runs when bodies of `vectorize` become vector code.
    pub in_lanes: bool,
    /// If it runs on the modules of devices instead of the program's: for which.
    pub devices: Option<fn(&DeviceBackEnd) -> bool>,
    /// The assertions on code that are judged before it, whether it runs or not.
    pub judged: Option<Judged>,
    /// Its limitations and warnings are in the diagnostics.
    pub run: fn(&mut Module, &mut Step) -> Vec<Diagnostic>,
}

/// A pass that always runs, on the program's module.
const ALWAYS: FlatPass = FlatPass {
    name: "",
    about: "",
    min_level: 0,
    checks: None,
    in_lanes: false,
    devices: None,
    judged: None,
    run: |_, _| Vec::new(),
};

/// The passes over flat SSA, in order. The module is verified after each, with those of its devices.
pub const FLAT: &[FlatPass] = &[
    FlatPass {
        // First: function values are taken apart when variables become values.
        name: "count-environments",
        about: "environments of function values are freed with the last value that holds them",
        run: |module, _| {
            nyala_flat::count_environments(module);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        name: "promote-slots",
        about: "local variables whose address does not escape become values",
        min_level: 1,
        run: |module, _| {
            nyala_flat::promote_slots(module);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        name: "simplify-branches",
        about: "merges and removes blocks, drops what nobody uses",
        min_level: 1,
        run: simplify_branches,
        ..ALWAYS
    },
    FlatPass {
        // While bodies are functions, and after their own variables became values.
        name: "find-races",
        about: "warns of iterations that write to one place at the same time",
        run: |module, step| match step.options.opt_level {
            // Without optimization, variables of bodies are in memory, too.
            0 if nyala_checks::has_launches(module) => {
                let mut promoted = module.clone();
                nyala_flat::promote_slots(&mut promoted);
                nyala_checks::find_races(&promoted)
            }
            _ => nyala_checks::find_races(module),
        },
        ..ALWAYS
    },
    FlatPass {
        // Comes before `vectorize`: an operation in vectors is not known to be executed by all lanes.
        name: "find-constant-faults",
        about: "warns of operations on constants that go wrong for certain",
        run: |module, _| {
            let faults = nyala_checks::constant_faults(module).into_iter();
            let warned = |f: nyala_checks::Found| {
                let warning = constant_fault::warning(f.span, f.fault);
                match f.kept {
                    Some(name) => warning.hint(constant_fault::kept(&name)),
                    None => warning,
                }
            };
            faults.map(warned).collect()
        },
        ..ALWAYS
    },
    FlatPass {
        name: "lower-launches",
        about: "kernels become functions for blocks of work items on the host, or modules for devices",
        judged: Some(Judged::Plain),
        run: |module, step| {
            let devices = match step.options.device {
                Device::Own => &Devices::Platforms(&devices::platforms()),
                Device::Host => &Devices::Host,
                Device::One(platform, number) => &Devices::One(platform, number),
            };
            nyala_kernels::lower_launches(module, devices)
        },
        ..ALWAYS
    },
    FlatPass {
        // Before the vectorizer, which makes undefined values of its own.
        name: "insert-undefined-checks",
        about: "native code checks that numbers were given a value",
        checks: Some(|checks| checks.uninit),
        run: |module, _| {
            nyala_checks::insert_undefined_checks(module);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        // Before lanes become vectors: then it is not known any more which lane computes what.
        name: "insert-lane-checks",
        about: "lanes check that their arithmetic does not overflow",
        checks: Some(|checks| checks.overflow),
        in_lanes: true,
        run: |module, _| {
            nyala_checks::insert_lane_checks(module);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        name: "vectorize",
        about: "bodies of `vectorize` become vector code",
        in_lanes: true,
        run: |module, step| {
            let options = nyala_vectorize::Options { wrap: step.options.wrap, explain: step.notes.is_some() };
            let outcome = nyala_vectorize::vectorize(module, options);
            if let Some(notes) = &mut step.notes {
                notes.extend(outcome.notes);
            }
            outcome.diagnostics
        },
        ..ALWAYS
    },
    FlatPass {
        name: "pack-lanes",
        about: "accesses of single lanes, side by side, become one with a mask",
        in_lanes: true,
        min_level: 1,
        run: |module, _| {
            nyala_vectorize::pack_lanes(module);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        name: "place-statics",
        about: "statics of kernels lie in the address space that the device has for them",
        devices: Some(|device| device.generic),
        judged: Some(Judged::Vectorized),
        run: |module, step| {
            nyala_kernels::place_statics(module, step.statics());
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        name: "infer-spaces",
        about: "all addresses of kernels get an address space, where no address may mean any memory",
        devices: Some(|device| !device.generic),
        run: |module, step| nyala_kernels::infer_spaces(module, step.statics()),
        ..ALWAYS
    },
    FlatPass {
        // Again: functions that were copied for other spaces leave those behind that nobody calls.
        name: "simplify-branches",
        about: "merges and removes blocks of kernels, drops what nobody uses",
        devices: Some(|device| !device.generic),
        run: simplify_branches,
        ..ALWAYS
    },
    FlatPass {
        // Before checks, which have code of their own.
        name: "confine",
        about: "functions that are called without trust access their own memory, and what they are lent",
        checks: Some(|checks| checks.bounds),
        run: |module, step| match &step.options.confined {
            Some(lent) => refused(nyala_checks::confine(module, lent)),
            None => Vec::new(),
        },
        ..ALWAYS
    },
    FlatPass {
        name: "insert-checks",
        about: "native code stops where the interpreter would",
        checks: Some(|checks| checks != Checks::default()),
        run: |module, step| {
            let Step { options, report, .. } = step;
            let site = |span: Span| {
                // The runtime writes the first line.
                let mut text = nyala_base::diagnostics::bug::error(span.without_call(), "");
                text.hints.clear();
                text.add_calls(report.calls.around(span));
                if report.is_library(span.file) {
                    text.move_to_call(|span| !report.is_library(span.file));
                }
                text.others.retain(|label| !testing::is_entry(&report.sources, label.span));
                for label in std::iter::once(&mut text.primary).chain(&mut text.others) {
                    label.span = testing::written(&report.sources, label.span);
                }
                let text = text.render(&report.sources, false);
                text.split_once('\n').map_or(String::new(), |(_, rest)| rest.into())
            };
            let place = |span: Span| report.sources.place(testing::written(&report.sources, report.own_place(span)));
            let texts = nyala_checks::Texts { site: &site, place: &place };
            refused(nyala_checks::insert_checks(module, options.checked(), &texts, options.confined.as_deref()))
        },
        ..ALWAYS
    },
    FlatPass {
        // After checks, in which panics tell other calls, too.
        name: "tell-calls",
        about: "panics tell the calls that led to them",
        run: |module, step| {
            let report = &step.report;
            let shown = |span: Span| report.sources.place(testing::written(&report.sources, span));
            let place = |span: Span| {
                let mut text = shown(span);
                let calls = report.calls.around(span).filter(|(_, call)| !testing::is_entry(&report.sources, *call));
                for (name, call) in calls.take(MAX_CALLS) {
                    text.push_str(&format!("\n  `{name}` called at {}", shown(call)));
                }
                text
            };
            nyala_flat::tell_calls(module, &place);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        // After warnings and checks. Nothing of it may be undefined to another compiler.
        name: "wrap-constants",
        about: "arithmetic on constants that overflows is computed",
        run: |module, _| {
            nyala_checks::wrap_constants(module);
            Vec::new()
        },
        ..ALWAYS
    },
    FlatPass {
        // At the end: the code knows all that it can know.
        name: "take-pieces",
        about: "functions without filters, with loops, that were unfolded in a large function become functions again",
        min_level: 1,
        run: |module, step| {
            // A debugger shows what was unfolded as it is called.
            if !step.options.debug {
                nyala_flat::take_pieces(module, &step.report.calls, step.options.max_unit);
            }
            Vec::new()
        },
        ..ALWAYS
    },
];

fn refused(found: Vec<nyala_checks::Refused>) -> Vec<Diagnostic> {
    let error = |r: nyala_checks::Refused| {
        let message = format!("this cannot be called without `unsafe`: {}", r.what);
        limitation::error(r.span, message, "make an `unsafe` handle of it, and vouch for its calls")
    };
    found.into_iter().map(error).collect()
}

fn simplify_branches(module: &mut Module, _: &mut Step) -> Vec<Diagnostic> {
    nyala_flat::simplify_branches(module);
    Vec::new()
}

impl Step<'_> {
    /// The address space of immutable statics.
    fn statics(&self) -> u8 {
        self.device.map_or(0, |device| device.statics)
    }
}

/// A form in which `nyala emit` shows programs.
pub struct Stage {
    /// The name for `nyala emit --stage`.
    pub name: &'static str,
    /// Its content, in one line.
    pub about: &'static str,
    /// The program as text; one function of it, if named.
    pub text: fn(&Options, &Files, Option<&str>) -> emit::Text,
}

/// The stages before any back end, in the order of the pipeline.
const FRONT: &[Stage] = &[
    Stage { name: "ast", about: "the syntax tree", text: emit::ast },
    Stage { name: "graph", about: "the graph before partial evaluation", text: emit::graph },
    Stage { name: "residual", about: "the graph after partial evaluation", text: emit::residual },
    Stage { name: "flat", about: "flat SSA", text: emit::flat },
    Stage { name: "device", about: "flat SSA of the kernels for devices", text: devices::text },
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

/// Calls an exported function of a program, of type `fn() -> i32` or `fn() -> bool`; of a `bool`, only the lowest bit counts.
pub type Call<'w> = Box<dyn Fn(&str) -> Result<i32, Failed> + 'w>;

/// A program that is ready to run.
pub struct Ready<'w> {
    /// What was found when it was compiled.
    pub report: Report,
    /// Calls an exported function by its name.
    pub call: Call<'w>,
}

impl Ready<'_> {
    /// Whether an exported function of type `fn() -> bool` gives `true`.
    pub fn holds(&self, name: &str) -> Result<bool, Failed> {
        Ok((self.call)(name)? & 1 != 0)
    }
}

/// A program of the system that a back end uses.
pub struct Need {
    /// The program, with its article.
    pub what: &'static str,
    /// Whether it can be started.
    pub is_there: fn() -> bool,
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
    /// For which modules bodies of `vectorize` stay loops, if it can have them.
    pub keeps_lanes: Option<fn(&Module) -> bool>,
    /// The stages that only this back end has.
    pub stages: &'static [Stage],
    /// Makes a program ready to run, given its graph before partial evaluation.
    pub ready: fn(&Graph) -> Result<Ready<'_>, Failed>,
}

/// The checked interpreter.
pub const INTERP: BackEnd = BackEnd {
    name: "interp",
    makes: "results, with every access checked",
    takes: Form::Graph,
    needs: None,
    keeps_lanes: None,
    stages: &[],
    ready: run::ready_interpreted,
};

/// LLVM.
pub const LLVM: BackEnd = BackEnd {
    name: "llvm",
    makes: "machine code, in memory and as objects",
    takes: Form::Flat,
    needs: None,
    keeps_lanes: None,
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
    keeps_lanes: Some(|module| !nyala_gen_c::lanes_meet(module)),
    stages: &[Stage { name: "c", about: "C text", text: emit::c }],
    ready: run::ready_by_c,
};

/// All back ends.
pub const BACK_ENDS: &[BackEnd] = &[INTERP, LLVM, C];

impl BackEnd {
    /// Whether assertions of a stage are judged in its modules.
    pub(crate) fn is_judged(&self, stage: Judged, options: &Options) -> bool {
        // Where loops may stay there is no vector code to judge. Checks in lanes are no code of the program.
        stage == Judged::Plain || self.keeps_lanes.is_none() && !options.checked().overflow
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
    pub code: devices::CodeOf,
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
        code: |options, module| emit::hls(options, module).map(|_| Vec::new()),
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

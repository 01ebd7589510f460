//! Flat SSA to SPIR-V: kernels for Vulkan and for OpenCL, with structured control flow.
//!
//! Two [flavors](Flavor) of one emitter. A feature that a flavor or this back end lacks is a `limitation` with its place in
//! the source, never a guess.
//!
//! | | Vulkan | OpenCL |
//! |---|---|---|
//! | version, addressing | SPIR-V 1.6, `PhysicalStorageBuffer64` | SPIR-V 1.2, `Physical64` |
//! | device memory (spaces 0, 1, 2) | a number of 64 bits, made a pointer where it is used | a pointer to bytes; in memory a number |
//! | memory of the block (3), statics (4), variables (5) | a number of 32 bits: a place in a variable | a pointer to bytes |
//! | kernel arguments | push constants, each in 8 bytes; beyond 120 bytes in memory whose address is the push constant | parameters |
//! | grids | several dispatches, if need be: the first block on the axis x and the number of blocks are push constants | as launched |
//! | extents of a block | `LocalSize`, or `LocalSizeId` with the specialization constants 0, 1, 2 | `LocalSize` if known |
//! | math functions | functions of the module ([`nyala_flat::link_math`]); `GLSL.std.450` for those that are exact, or fast | `OpenCL.std` |
//!
//! # Meaning
//!
//! - *Values.* Integers have no sign in their types. A vector is an array, and operations on it go lane by lane, since
//!   devices have lanes of their own. Structs, tuples and arrays are values; memory holds their numbers one by one, at the
//!   offsets that the host knows ([`memory`]). A bool in memory is a byte.
//! - *Variables in Vulkan.* Logical addressing forbids to read memory as another type. The addresses that may mean the same
//!   variables are put together, and get one array as an arena, of numbers as small as the smallest access ([`arenas`]). No
//!   kernel recurses, so that a local variable of a function can be one of the module.
//! - *Control flow.* `nyala_flat::structure` leaves loops with one entry and one way back. [`flow`] nests them and branches
//!   in each other; [`function`] writes `OpLoopMerge` and `OpSelectionMerge`. A jump past code that is not its own stores
//!   the number of its target, which guards the code in between. Parameters of blocks are `Function` variables.
//! - *Exactness.* Operations on floats that are not fast are marked `NoContraction`, or the kernel `ContractionOff`. Kernels
//!   ask for subnormal numbers, infinities, NaNs and rounding to nearest; the runtime takes this back on devices that
//!   have no choice. Conversions to integers saturate.
//! - *Fused multiplication.* The specialization constant 3 says whether the device's `Fma` rounds once; the runtime knows. Else
//!   kernels compute that of `f32` by integers.
//! - *Capabilities* are what the instructions need. The runtime compares them with those of the device.
//! - *Notes to the runtime*, as `OpModuleProcessed`: `nyala KERNEL push|memory BYTES SHARED`: where the arguments are, how
//!   many bytes they have, how many bytes the memory of a block has.
//!
//! ```text
//! head(i): branch lt(i, n), body(), done()     head: OpLoopMerge merge continue  OpBranch test
//! body(): store(lea(a, i), i)                  test: i = OpLoad i.home  OpSelectionMerge join  OpBranchConditional …
//!         jump head(add(i, 1))                 …     OpStore i.home next  OpBranch continue
//! done(): return()                             continue: OpBranch head   merge: OpReturn
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arenas;
mod atomics;
mod calls;
mod casts;
mod flow;
mod function;
mod kernels;
mod math;
mod memory;
mod module;
mod numbers;
mod values;

use module::Emitter;
use nyala_base::diagnostics::{bug as bugs, limitation as limitations};
use nyala_base::graph::Components;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::structure::{Loops, structure};
use nyala_flat::{Func, InstOp, Module};
use nyala_ir::Ty;
use rspirv::binary::{Assemble, Disassemble};

pub(crate) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// A client API of SPIR-V.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavor {
    /// Compute shaders of Vulkan 1.3.
    Vulkan,
    /// Kernels of OpenCL 2.2, and of Level Zero.
    OpenCl,
}

impl Flavor {
    /// The name in messages.
    fn name(self) -> &'static str {
        match self {
            Flavor::Vulkan => "SPIR-V for Vulkan",
            Flavor::OpenCl => "SPIR-V for OpenCL",
        }
    }
}

/// A module of SPIR-V.
pub struct Code(rspirv::dr::Module);

impl Code {
    /// The module as its words in little-endian order, as drivers take it.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.assemble().into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// The module as text.
    pub fn text(&self) -> String {
        let mut text = self.0.disassemble();
        text.push('\n');
        text
    }
}

/// Writes the module of a device, whose addresses all have their spaces.
///
/// # Errors
/// A `limitation`: a feature that the flavor lacks, or that is not done yet.
pub fn emit(module: &Module, flavor: Flavor) -> std::result::Result<Code, Box<Diagnostic>> {
    let mut module = module.clone();
    let library = match flavor {
        // The functions of `GLSL.std.450` are too coarse, or missing. What is fast takes the device's own, if there is one.
        Flavor::Vulkan => {
            let wants = |op, prim, inst: &nyala_flat::Inst| !inst.fast || !math::is_of_glsl(op, prim);
            nyala_flat::link_math(&mut module, &wants).map_err(bug)?
        }
        Flavor::OpenCl => nyala_flat::MathFunctions::default(),
    };
    nyala_flat::make_loops(&mut module)?;
    let rets: Vec<Vec<Ty>> = module.funcs.iter().map(|f| f.rets.clone()).collect();
    let mut loops = Vec::with_capacity(module.funcs.len());
    for function in &mut module.funcs {
        loops.push(match function.blocks.is_empty() {
            true => Loops::default(),
            false => {
                let mut loops = structure(&mut module.types, function, &|f| rets[f.idx()].clone());
                flow::return_after_loops(function, &mut loops);
                loops
            }
        });
    }
    // Results of functions that have several.
    let results = rets.iter().map(|rets| Module::result_ty(&mut module.types, rets)).collect();
    if let Some(func) = recursive(&module) {
        let function = module.func(func);
        return Err(bug(format!("`{}`, which is recursive", function.name)));
    }
    Emitter::new(&module, &loops, results, library, flavor).emit().map(Code)
}

/// A function that calls itself, directly or by others.
fn recursive(module: &Module) -> Option<Func> {
    let calls = |f: &nyala_flat::Function| {
        let insts = f.blocks.iter().flat_map(|b| &b.insts);
        insts.filter_map(|inst| if let InstOp::Call(f) = inst.op { Some(f.idx()) } else { None }).collect()
    };
    let successors: Vec<Vec<usize>> = module.funcs.iter().map(calls).collect();
    let nodes: Vec<usize> = (0..successors.len()).collect();
    let components = Components::default().find(&nodes, |f, i| successors[f].get(i).copied(), |_| true);
    let is_cycle = |c: &&Vec<usize>| c.len() > 1 || c.iter().any(|&f| successors[f].contains(&f));
    components.iter().find(is_cycle).and_then(|c| c.first()).map(|&f| Func::from_idx(f))
}

/// A fault of this compiler, not of its user.
pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(bugs::error(Span::NONE, format!("in writing SPIR-V: {message}")))
}

/// The remedy for a function as a value.
pub(crate) const KNOWN_FUNCTION: &str = "keep a number that says which function it is, and call it by a `match`";

/// `what` cannot be written in a flavor. `remedy` is what the user may write instead.
pub(crate) fn lacks(flavor: Flavor, span: Span, what: &str, remedy: &str) -> Box<Diagnostic> {
    let message = format!("{what} cannot be written in {}", flavor.name());
    Box::new(limitations::error(span, message, format!("{remedy}, or run the kernel with `--device host`")))
}

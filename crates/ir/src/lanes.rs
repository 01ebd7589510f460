//! Operations of lanes, and the numbers that work items can ask for. Lanes are the iterations of one `vectorize`, or
//! the work items of one block of a kernel. This is the only table of them: lowering, interpreter, partial evaluation
//! and vectorizer use it.
//!
//! Lanes meet at these operations, so each takes a continuation. In the graph and in flat code they are calls of
//! functions without bodies. The symbol names the operation, and the scope: the lanes that take part.
//!
//! ```text
//! nyala_lanes_any(m, holds, k)       k: cn(mem, bool)       lanes of a `vectorize`, or of a subgroup
//! nyala_block_barrier(m, k)          k: cn(mem)             work items of a block
//! ```
//!
//! Numbers of work items are the operation [`Op::WorkItem`](crate::Op::WorkItem), since no lane waits for them.

use crate::ops::{Effect, Scope};

macro_rules! lane_ops {
    ($($variant:ident $name:literal $waits:literal, $doc:literal;)*) => {
        /// An operation of lanes: a joint computation, or a question about other lanes.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum LaneOp { $(#[doc = $doc] $variant,)* }

        impl LaneOp {
            /// All operations, in the order of the table.
            pub const ALL: &'static [LaneOp] = &[$(LaneOp::$variant,)*];

            /// The operation's name, the end of its symbol.
            pub fn name(self) -> &'static str {
                match self { $(LaneOp::$variant => $name,)* }
            }

            /// Whether lanes wait for each other here.
            pub fn waits(self) -> bool {
                match self { $(LaneOp::$variant => $waits,)* }
            }
        }
    };
}

lane_ops! {
    Any "any" true, "`any(holds: bool) -> bool`: whether it holds in any lane.";
    All "all" true, "`all(holds: bool) -> bool`: whether it holds in all lanes.";
    Count "count" true, "`count(holds: bool) -> i32`: in how many lanes it holds.";
    Ballot "ballot" true, "`ballot(holds: bool) -> i64`: bit k says whether it holds in lane k; there are at most 64.";
    Get "get" true, "`get(v: T, lane: i32) -> T`: the value of v in that lane, its number modulo the number of lanes.";
    Compact "compact" true, "`compact(v: T, holds: bool) -> T`: in lane k the value of the k-th lane where it holds; undefined behind the last.";
    Barrier "barrier" true, "`barrier()`: goes on when all lanes have come here.";
    Id "id" false, "`id() -> i32`: the lane's number, from 0.";
    Width "width" false, "`width() -> i32`: how many lanes there are.";
    Shared "shared" false, "`shared(bytes: i64) -> &[1][T]`: memory that the lanes have in common; each gets the same at its n-th call.";
}

/// Prefixes of symbols, by scope.
const SCOPES: [(&str, Scope); 2] = [("nyala_lanes_", Scope::Subgroup), ("nyala_block_", Scope::Block)];

impl LaneOp {
    /// The operation and the scope that a foreign function's symbol stands for.
    pub fn of_symbol(symbol: &str) -> Option<(LaneOp, Scope)> {
        SCOPES.iter().find_map(|&(prefix, scope)| {
            let name = symbol.strip_prefix(prefix)?;
            let op = LaneOp::ALL.iter().copied().find(|op| op.name() == name)?;
            Some((op, scope))
        })
    }

    /// The symbol of the foreign function that stands for this operation.
    pub fn symbol(self, scope: Scope) -> String {
        let prefix = SCOPES.iter().find(|s| s.1 == scope).map_or("", |s| s.0);
        format!("{prefix}{}", self.name())
    }

    /// The operation's effects besides computing its result.
    pub fn effect(self, scope: Scope) -> Effect {
        match self {
            LaneOp::Shared => Effect::Write,
            _ if self.waits() => Effect::Convergent(scope),
            _ => Effect::Partial,
        }
    }
}

/// A number that a work item can ask for, on each of the axes x, y, z.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkItem {
    /// The work item in its block.
    Thread,
    /// The block in the grid.
    Block,
    /// Number of work items in a block.
    BlockSize,
    /// Number of blocks in the grid.
    Blocks,
}

impl WorkItem {
    /// All of them; an operand of [`Op::WorkItem`](crate::Op::WorkItem) is an index into this list.
    pub const ALL: [WorkItem; 4] = [WorkItem::Thread, WorkItem::Block, WorkItem::BlockSize, WorkItem::Blocks];

    /// Its index in [`WorkItem::ALL`]; [`IN_KERNEL`] is none of them.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The number outside of a kernel, and on axes that a kernel does not have: one block of one work item.
    pub fn of_one(self) -> i32 {
        matches!(self, WorkItem::BlockSize | WorkItem::Blocks) as i32
    }
}

/// The operand of [`Op::WorkItem`](crate::Op::WorkItem) that asks whether the code runs in a kernel, 1 or 0. Such questions are answered
/// when launches are taken out of a program.
pub const IN_KERNEL: u64 = WorkItem::ALL.len() as u64;

/// Lanes of a subgroup of a kernel that runs on the host.
pub const SUBGROUP: u32 = 32;

/// Prefixes of LLVM's names of operations that only GPUs have: NVIDIA's, AMD's. Kernels call them as foreign functions.
pub const GPU_INTRINSICS: [&str; 2] = ["llvm.nvvm.", "llvm.amdgcn."];

/// Whether a symbol is LLVM's name of an operation that only GPUs have.
pub fn is_gpu_intrinsic(symbol: &str) -> bool {
    GPU_INTRINSICS.iter().any(|prefix| symbol.starts_with(prefix))
}

/// Whether kernels for a platform can call an operation that only GPUs have.
pub fn has_gpu_intrinsic(platform: &str, symbol: &str) -> bool {
    let own = match platform {
        "cuda" | "nvvm" => GPU_INTRINSICS[0],
        "amdgpu_hsa" | "amdgpu_pal" => GPU_INTRINSICS[1],
        _ => return false,
    };
    symbol.starts_with(own)
}

/// How symbols of functions begin that programs declare in `extern "device"` blocks and that no table knows.
pub const DEVICE_FUNCTION: &str = "device.";

/// The name of a function that programs declare for devices and that no table knows: only the device's compiler may know it.
pub fn device_function(symbol: &str) -> Option<&str> {
    symbol.strip_prefix(DEVICE_FUNCTION)
}

/// Names of the intrinsics that start kernels, indexed by the platform number of
/// [`Builtin::Launch`](crate::Builtin::Launch) (`docs/design/anydsl.md`, Launches on devices). `fibers` is not a
/// device: its blocks are tasks on the CPU. `host` is the CPU as a device, with blocks of work items. `host` and `vulkan`
/// are ours.
pub const PLATFORMS: [&str; 11] = [
    "cuda",
    "nvvm",
    "opencl",
    "opencl_spirv",
    "levelzero",
    "amdgpu_hsa",
    "amdgpu_pal",
    "hls",
    "fibers",
    "host",
    "vulkan",
];

/// Whether a platform, by its number in [`PLATFORMS`], is that of circuits.
pub fn is_hls(platform: u32) -> bool {
    PLATFORMS.get(platform as usize) == Some(&"hls")
}

/// Whether a platform, by its number in [`PLATFORMS`], is the CPU's own.
pub fn is_of_cpu(platform: u32) -> bool {
    PLATFORMS.get(platform as usize).is_some_and(|name| matches!(*name, "fibers" | "host"))
}

/// The number of each of [`PLATFORMS`] for the functions of the runtime (`docs/design/anydsl.md`, Functions of the
/// runtime). Kernels of `fibers` and `host` run on the CPU, which is 0. AnyDSL has no number for Vulkan, which has 6 here, and
/// lets OpenCL run kernels for `hls`, which has 7 here.
pub const PLATFORM_NUMBERS: [u32; 11] = [1, 1, 2, 2, 5, 3, 4, 7, 0, 0, 6];

/// Functions of the runtime for channels of `hls`: `nyala_channel_read(place, channel, to, bytes)`, and `_write`, which takes the
/// element from its last address but one.
pub const CHANNEL_READ: &str = "nyala_channel_read";
/// See [`CHANNEL_READ`].
pub const CHANNEL_WRITE: &str = "nyala_channel_write";

/// The function that does nothing, but for a line with its text, `#pragma TEXT`, in kernels for `hls`.
pub const PRAGMA: &str = "nyala_pragma";

/// Whether a symbol is that of a function for channels.
pub fn is_channel(symbol: &str) -> bool {
    symbol == CHANNEL_READ || symbol == CHANNEL_WRITE
}

/// The type, or what else, that a function of the runtime prints, if kernels may call it: `i32` of `nyala_print_i32`.
pub fn printed(symbol: &str) -> Option<&str> {
    const KINDS: [&str; 13] =
        ["bool", "char", "f32", "f64", "i16", "i32", "i64", "i8", "string", "u16", "u32", "u64", "u8"];
    let kind = symbol.strip_prefix("nyala_print_").or_else(|| symbol.strip_prefix("anydsl_print_"))?;
    KINDS.contains(&kind).then_some(kind)
}

/// Whether kernels for a platform can print.
pub fn can_print(platform: &str) -> bool {
    ["cuda", "hls", "nvvm", "opencl"].contains(&platform)
}

/// Functions of the runtime that take devices, with the positions of these arguments. Where the host stands for all
/// devices, each of these arguments is 0.
pub const DEVICE_ARGS: [(&str, &[usize]); 14] = [
    ("anydsl_alloc", &[0]),
    ("anydsl_alloc_host", &[0]),
    ("anydsl_alloc_unified", &[0]),
    ("anydsl_copy", &[0, 3]),
    ("anydsl_device_check_feature_support", &[0]),
    ("anydsl_device_name", &[0]),
    ("anydsl_get_device_ptr", &[0]),
    ("anydsl_release", &[0]),
    ("anydsl_release_host", &[0]),
    ("anydsl_synchronize", &[0]),
    ("nyala_event_follow", &[0]),
    ("nyala_event_record", &[0]),
    ("nyala_make_queue", &[0]),
    ("nyala_n_devices", &[0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_name_operations_and_scopes() {
        for &op in LaneOp::ALL {
            for scope in [Scope::Subgroup, Scope::Block] {
                assert_eq!(LaneOp::of_symbol(&op.symbol(scope)), Some((op, scope)));
            }
        }
        assert_eq!(LaneOp::of_symbol("nyala_lanes_"), None);
        assert_eq!(LaneOp::of_symbol("nyala_blocks_any"), None);
        assert!(WorkItem::ALL.iter().enumerate().all(|(i, w)| w.number() == i as u64));
    }
}

//! A kernel uses what the platform of its launch does not have.
//!
//! Channels connect kernels for `hls`, which run at the same time; other platforms have none. A kernel for `hls` in turn is one circuit:
//! it has a single work item, so `--device hls` runs launches of one only. No device allocates memory in a kernel, calls functions that are
//! chosen at run time, has recursion, or ends the program by a panic; some cannot print. Kernels on the host (`--device host`) can do all
//! of that.
//!
//! ```impala
//! struct channel_f32 { data: f32 }
//! extern "device" {
//!     fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
//!     fn read_channel(&mut channel_f32) -> f32;
//! }
//! extern fn halve(out: &mut [f32]) -> () {
//!     let mut numbers = channel_f32 { data: 0f };
//!     for opencl(0, (1, 1, 1), (1, 1, 1)) { out(0) = 0.5f * read_channel(&mut numbers) }
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct channel_f32 { data: f32 }
//! extern "thorin" { fn hls(i32, fn() -> ()) -> (); }
//! extern "device" {
//!     fn read_channel(&mut channel_f32) -> f32;
//!     fn write_channel(&mut channel_f32, f32) -> ();
//! }
//! extern fn halve(x: f32, out: &mut [f32]) -> () {
//!     let mut numbers = channel_f32 { data: 0f };
//!     with hls(0) { write_channel(&mut numbers, x) }
//!     with hls(0) { out(0) = 0.5f * read_channel(&mut numbers) }
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// A kernel for another platform than `hls` reads or writes a channel.
pub(crate) fn channel(span: Span) -> Diagnostic {
    let message = "a kernel reads or writes a channel, which only kernels for `hls` have";
    Diagnostic::error("not-on-platform", span, message)
        .hint("launch it by `hls`, or pass values in memory of the device")
}

/// A launch by `hls` may have several work items.
pub(crate) fn work_items(span: Span) -> Diagnostic {
    let message = "a kernel for `hls` has one work item, and this launch may have more";
    Diagnostic::error("not-on-platform", span, message)
        .hint("launch one work item, with a loop in the kernel: `pipeline`")
}

/// A kernel for a platform does what no kernel there can, as in "print"; who reports it knows the place.
pub(crate) fn feature(platform: &str, what: &str, hint: &str) -> Diagnostic {
    let message = format!("a kernel for `{platform}` cannot {what}");
    Diagnostic::error("not-on-platform", Span::NONE, message).hint(hint)
}

/// A launch passes a function that is not known.
pub(crate) fn chosen_function(span: Span) -> Diagnostic {
    let message = "a kernel for a device gets a function that is chosen at run time";
    Diagnostic::error("not-on-platform", span, message)
        .hint("let the kernel be specialized for the function: with `@`, or with a `match` around the launch")
}

/// A kernel for a platform calls a function of devices by a name that nobody knows there; who reports it knows the place.
pub(crate) fn function(platform: &str, name: &str) -> Diagnostic {
    let message = format!("a kernel for `{platform}` calls `{name}`, a function of devices that is not known");
    Diagnostic::error("not-on-platform", Span::NONE, message)
        .hint("write it in Impala; kernels for `cuda` may call functions that only CUDA's compiler knows")
}

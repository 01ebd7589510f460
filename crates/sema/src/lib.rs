//! Names, types, and lowering to the graph; the last place where the user can simply be wrong.
//!
//! ```text
//! check(&Input { prelude, files, … }, sink) -> Program     names and types, all errors
//! lower(&program, …, sink) -> Option<World>                        the graph
//! ```
#![forbid(unsafe_code)]

mod check;
mod device_names;
pub mod diagnostics;
mod exports;
mod header;
mod intrinsics;
mod lower;
mod program;
mod signatures;
mod symbols;
mod types;
mod x86_intrinsics;

pub use check::{check, closest};
pub use exports::Exports;
pub use header::{Declared, Header, header};
pub use lower::{Lowering, lower};
pub use program::{Input, Program};
pub use signatures::{ExportedStruct, ExportedType, Signature, Signatures, signatures};
pub use symbols::{Call, Hint, Symbol, SymbolKind, Symbols};

use std::sync::Mutex;

/// Runs `f` on a stack that suffices for the deepest tree that the parser makes. If the system has no room for one,
/// runs it on the caller's stack, which suffices for most trees.
pub(crate) fn on_big_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    const STACK: usize = 1 << 30;
    let f = Mutex::new(Some(f));
    let run = || {
        let f = f.lock().ok().and_then(|mut f| f.take());
        f.map(|f| f()).expect("is run once")
    };
    std::thread::scope(|scope| match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run) {
        Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(_) => run(),
    })
}

//! Names, types, and lowering to the graph; the last place where the user can simply be wrong.
//!
//! ```text
//! check(&Input { prelude, files }, sink) -> Option<Program>     names and types, all errors
//! lower(&program, …, sink) -> Option<World>                        the graph
//! ```

mod check;
pub mod diagnostics;
mod header;
mod intrinsics;
mod lower;
mod program;
mod types;

pub use check::{check, closest};
pub use header::header;
pub use lower::lower;
pub use program::{Input, Program};

/// Runs `f` with a stack that suffices for the deepest tree the parser makes.
pub(crate) fn on_big_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    const STACK: usize = 1 << 30;
    std::thread::scope(|scope| match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, f) {
        Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(e) => panic!("no thread for the compiler: {e}"),
    })
}

#[cfg(test)]
mod tests;

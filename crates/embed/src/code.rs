//! Machine code that is freed when no thread can run it any more. Separate from programs and variants, which both own code.

use nyala_gen_llvm::Jit;
use std::sync::{Arc, Mutex};

/// Code in memory, which handles keep alive. Threads that it has spawned may still run it after the last handle is gone. It is not known
/// which code a thread runs, so no code is freed while there are spawned threads.
pub struct Code(Arc<Jit>);

/// Code without handles that waits for spawned threads to end.
static LEFT: Mutex<Vec<Arc<Jit>>> = Mutex::new(Vec::new());

impl Code {
    pub fn new(jit: Arc<Jit>) -> Code {
        Code(jit)
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let free = {
            let mut left = LEFT.lock().unwrap_or_else(|e| e.into_inner());
            left.push(self.0.clone());
            if nyala_runtime::n_spawned() > 0 { Vec::new() } else { std::mem::take(&mut *left) }
        };
        // Freed after the lock is released, because it takes long.
        drop(free);
    }
}

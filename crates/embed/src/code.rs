//! Machine code that is freed when nobody can run it any more. Separate from programs and variants, which both have some.

use nyala_gen_llvm::Jit;
use std::sync::{Arc, Mutex};

/// Code in memory. Handles keep it; threads that it has spawned may run it even after the last handle is gone. Which code a thread
/// runs is not known, so no code is freed while there are such threads.
pub struct Code(Arc<Jit>);

/// Code without handles, while threads run.
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
        // Freeing takes long; others need not wait for it.
        drop(free);
    }
}

//! The cache of native code: what an object is made from. [`nyala_runtime::Cache`] keeps the entries.

use nyala_gen_llvm::{Emitted, LLVM_LIBRARY, Options, machine_name};
pub use nyala_runtime::Cache;
use nyala_runtime::CacheKey;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The user's cache of native code; `None` if the environment names no folder for it.
pub fn of_user() -> Option<Cache> {
    Cache::of_user("native")
}

/// The key of everything that the machine code of `emitted` depends on: the text that LLVM gets, the options, the CPU, and the
/// builds of this compiler and of LLVM.
pub fn key(emitted: &Emitted, options: &Options) -> CacheKey {
    CacheKey::of(&[
        emitted.text.as_bytes(),
        format!("{options:?}").as_bytes(),
        machine_name(&emitted.target).as_bytes(),
        // The library's file identifies a build of LLVM.
        file_id(Path::new(LLVM_LIBRARY)).as_bytes(),
        std::env::current_exe().map(|e| file_id(&e)).unwrap_or_default().as_bytes(),
    ])
}

/// A text that differs between builds of a file.
fn file_id(path: &Path) -> String {
    let Ok(m) = std::fs::metadata(path) else { return path.display().to_string() };
    let modified = m.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{} {} {}", path.display(), m.len(), modified.as_nanos())
}

//! Kernels as drivers compiled them, kept on disk between runs: compiling takes a driver longer than most kernels run.
//! `NYALA_KERNEL_CACHE=0` does without.

use crate::cache::{Cache, Key};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_WANTED: AtomicBool = AtomicBool::new(true);

/// Says whether code of kernels is kept on disk. It is, without this call.
pub fn keep_kernels(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
}

/// The user's cache of kernels; `None` if the environment names no folder for it, or it is not wanted.
pub fn kernel_cache() -> Option<&'static Cache> {
    static CACHE: OnceLock<Option<Cache>> = OnceLock::new();
    let find = || Cache::of_user("kernels").filter(|_| std::env::var_os("NYALA_KERNEL_CACHE").is_none_or(|v| v != "0"));
    CACHE.get_or_init(find).as_ref().filter(|_| IS_WANTED.load(Ordering::Relaxed))
}

/// An entry that may be there.
pub(super) struct Kept(Option<(&'static Cache, Key)>);

impl Kept {
    /// The entry for code that was made from all of these: the kernels' code, options, the device, its driver.
    pub fn of(parts: &[&[u8]]) -> Kept {
        Kept(kernel_cache().map(|cache| (cache, Key::of(parts))))
    }

    pub fn get(&self) -> Option<Vec<u8>> {
        self.0.as_ref().and_then(|(cache, key)| cache.get(key))
    }

    /// Keeps code, or replaces what the driver did not take.
    pub fn put(&self, code: &[u8]) {
        if let Some((cache, key)) = &self.0 {
            cache.put(key, code);
        }
    }
}

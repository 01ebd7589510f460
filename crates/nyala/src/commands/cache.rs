//! `nyala cache`: shows how much native code of earlier runs is kept, and where.

use super::FAILED;
use nyala::cache::Cache;

/// Show or clear the cache of native code from earlier runs
#[derive(clap::Args)]
pub struct CacheCommand {
    /// Remove all entries
    #[arg(long)]
    clear: bool,
}

impl CacheCommand {
    pub fn run(&self) -> u8 {
        let Some(cache) = Cache::of_user() else {
            eprintln!("error: no folder for a cache: neither XDG_CACHE_HOME nor HOME is an absolute path");
            return FAILED;
        };
        let folder = cache.folder().display();
        if self.clear {
            return match cache.clear() {
                Ok(n) => {
                    println!("removed {n} entries from {folder}");
                    0
                }
                Err(e) => {
                    eprintln!("error: cannot clear {folder}: {e}");
                    FAILED
                }
            };
        }
        let (n, bytes) = cache.size();
        println!("{folder}: {n} entries, {:.1} MiB", bytes as f64 / f64::from(1 << 20));
        if let Some(why) = cache.refused() {
            println!("it is not used: {why}");
        }
        0
    }
}

//! `nyala cache`: shows what is kept of earlier runs, and where.

use super::FAILED;
use nyala_runtime::Cache;

/// Show or clear what is kept of earlier runs: native code of programs, code of kernels, dependencies from git, the runtime
/// library of an installation
#[derive(clap::Args)]
pub struct CacheCommand {
    /// Remove all entries
    #[arg(long)]
    clear: bool,
}

/// Names of the caches, with what they keep.
pub(super) const CACHES: [(&str, &str); 2] = [("native", "native code"), ("kernels", "code of kernels")];

/// Folders that are kept as they are, with what they keep.
const FOLDERS: [(&str, &str); 2] = [("packages", "packages from git"), ("runtime", "the runtime library")];

impl CacheCommand {
    pub fn run(&self) -> u8 {
        let caches = CACHES.map(|(name, what)| (Cache::of_user(name), what));
        let mut code = 0;
        for (cache, what) in caches {
            let Some(cache) = cache else {
                eprintln!("error: no folder for a cache: neither XDG_CACHE_HOME nor HOME is an absolute path");
                return FAILED;
            };
            let folder = cache.folder().display();
            if self.clear {
                match cache.clear() {
                    Ok(n) => println!("removed {n} entries from {folder}"),
                    Err(e) => {
                        eprintln!("error: cannot clear {folder}: {e}");
                        code = FAILED;
                    }
                }
                continue;
            }
            let (n, bytes) = cache.size();
            println!("{what}: {folder}: {n} entries, {:.1} MiB", bytes as f64 / f64::from(1 << 20));
            if let Some(why) = cache.refused() {
                println!("it is not used: {why}");
            }
        }
        for (name, what) in FOLDERS {
            let Some(folder) = Cache::of_user(name).map(|cache| cache.folder().to_path_buf()) else { continue };
            if !folder.exists() {
                continue;
            }
            if !self.clear {
                println!("{what}: {}", folder.display());
            } else if let Err(e) = std::fs::remove_dir_all(&folder) {
                eprintln!("error: cannot remove {}: {e}", folder.display());
                code = FAILED;
            } else {
                println!("removed {}", folder.display());
            }
        }
        code
    }
}

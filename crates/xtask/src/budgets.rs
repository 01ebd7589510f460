//! Every program of the repository with a hundredth of the budget of partial evaluation: it compiles, or ends with a diagnostic,
//! soon and in little memory. Separate from the text tests, whose programs are within their budget.

use crate::{Tally, child, root, texts};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const FOLDERS: &[&str] = &["bench", "examples", "lib", "tests/run", "tests/ui", "tests/residual", "tests/explain"];
/// A multiple of what the slowest program takes, in a build without optimizations on a slow core.
const LIMIT: Duration = Duration::from_secs(60);
/// In KiB, as `ulimit` takes it; of addresses, of which the command reserves much more than it uses.
const MEMORY: u64 = 4 << 20;

/// Checks all programs, or one in `share` of them.
pub fn run(share: usize) -> Tally {
    let mut programs = Vec::new();
    FOLDERS.iter().for_each(|folder| texts::collect(&root().join(folder), &mut programs));
    programs.retain(|p| p.extension().is_some_and(|e| e == "impala"));
    programs.sort();
    let programs: Vec<_> = programs.into_iter().step_by(share).collect();
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut command = Command::new("sh");
                    command.arg("-c").arg(format!("ulimit -d {MEMORY}; exec \"$@\"")).arg("sh").arg(texts::nyala());
                    command
                        .args(["check", "--pe-budget", "0.01", "--no-tune", "-L"])
                        .arg(root().join("lib"))
                        .arg(program);
                    let faults: Vec<String> = match child::run(&mut command, LIMIT) {
                        Ok(ended) if matches!(ended.status.code(), Some(0 | 1)) => Vec::new(),
                        Ok(ended) => vec![format!("{}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr))],
                        Err(e) => vec![e],
                    };
                    let name = program.strip_prefix(root()).unwrap_or(program).display().to_string();
                    tally.lock().unwrap_or_else(|e| e.into_inner()).count(&name, &faults);
                }
            });
        }
    });
    tally.into_inner().unwrap_or_else(|e| e.into_inner())
}

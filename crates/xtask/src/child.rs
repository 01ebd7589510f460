//! A command run to its end, with a limit of processor time. Tests of the command include this file, too.
//!
//! On a machine with other work, a program may take any number of seconds by the clock, but not much more processor time
//! than on an idle one. The clock is asked only to find a program that waits for ever.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A command that has ended.
pub struct Ended {
    pub status: ExitStatus,
    /// What it wrote to a piped stream.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Its processor time and that of the processes that it has waited for; 0 where `/proc` is missing.
    #[allow(dead_code, reason = "each program that includes this file uses a part")]
    pub cpu: Duration,
}

/// A command may take this many times its limit by the clock,
const WALL_FACTOR: u32 = 20;
/// but always as long as this.
const LEAST_WALL: Duration = Duration::from_secs(600);

/// Linux's unit of processor times in `/proc`, for every processor.
const TICKS_PER_SECOND: u64 = 100;

/// Runs a command without standard input. It is killed, with its descendants, if it takes more processor time than `limit`.
/// Unless the command says otherwise, it has the project's cache instead of the user's.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended, String> {
    own_cache(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    end(child, limit)
}

/// [`run`] for a process that has begun, with any streams.
pub fn end(mut child: Child, limit: Duration) -> Result<Ended, String> {
    use std::io::Read;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let read = |pipe: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    };
    std::thread::scope(|scope| {
        let out = scope.spawn(move || read(out.as_mut().map(|p| p as &mut dyn Read)));
        let err = scope.spawn(move || read(err.as_mut().map(|p| p as &mut dyn Read)));
        let ended = wait(&mut child, limit);
        if ended.is_err() {
            kill(&mut child);
        }
        let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        ended.map(|(status, cpu)| Ended { status, stdout, stderr, cpu })
    })
}

/// Waits for the end of a process, or for a limit.
fn wait(child: &mut Child, limit: Duration) -> Result<(ExitStatus, Duration), String> {
    let start = Instant::now();
    let backstop = LEAST_WALL.max(limit.saturating_mul(WALL_FACTOR));
    let mut with_descendants = limit;
    loop {
        // Before it is waited for: after that, its entry is gone.
        let mut cpu = stat(child.id()).map_or(Duration::ZERO, |s| s.cpu);
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok((status, cpu));
        }
        let elapsed = start.elapsed();
        // Descendants that still run are looked for once a second, and not in the many runs that end soon.
        if elapsed > with_descendants {
            with_descendants = elapsed + Duration::from_secs(1);
            cpu += descendants(child.id()).iter().map(|s| s.cpu).sum::<Duration>();
        }
        if cpu > limit {
            return Err(format!("takes more than {} s of processor time", limit.as_secs_f64()));
        }
        if elapsed > backstop {
            return Err(format!("hangs: no end after {} minutes", backstop.as_secs() / 60));
        }
        std::thread::sleep((elapsed / 8).clamp(Duration::from_millis(1), Duration::from_millis(100)));
    }
}

/// What `/proc` says of a process.
struct Stat {
    pid: u32,
    parent: u32,
    cpu: Duration,
}

/// `None` if there is no such process, or no `/proc`.
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last `)` may have blanks. Field 4 is the parent, fields 14 to 17 are utime, stime, cutime, cstime.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    let ticks: u64 = (14..=17).filter_map(field).sum();
    Some(Stat { pid, parent: field(4)? as u32, cpu: Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND) })
}

/// The processor time that a process has used so far, with that of those that it has waited for.
#[allow(dead_code, reason = "each program that includes this file uses a part")]
pub fn cpu_time(pid: u32) -> Duration {
    stat(pid).map_or(Duration::ZERO, |s| s.cpu)
}

/// The processes that descend from one, without itself.
fn descendants(ancestor: u32) -> Vec<Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut others: Vec<Stat> = entries.filter_map(|e| stat(e.file_name().to_str()?.parse().ok()?)).collect();
    let mut found: Vec<Stat> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        let (children, rest) = others.into_iter().partition::<Vec<_>, _>(|s| s.parent == parent);
        others = rest;
        parents.extend(children.iter().map(|s| s.pid));
        found.extend(children);
    }
    found
}

/// Kills a process and its descendants, which may hold its streams.
pub fn kill(child: &mut Child) {
    let pids: Vec<String> = descendants(child.id()).iter().map(|s| s.pid.to_string()).collect();
    let _ = child.kill();
    let _ = child.wait();
    if !pids.is_empty() {
        let _ = Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status();
    }
}

/// Gives a command the project's cache, unless it has another: tests neither read nor fill the user's.
pub fn own_cache(command: &mut Command) -> &mut Command {
    const NAME: &str = "XDG_CACHE_HOME";
    if command.get_envs().all(|(name, _)| name != NAME) {
        command.env(NAME, target().join("cache"));
    }
    command
}

/// The folder of what is built.
fn target() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().unwrap_or(root);
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

//! Runs a program to its end, within a limit on its processor time. A file of its own, since tests of the command include it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What ends without taking processor time is stopped after 20 times the limit, and not before this.
const LEAST_WALL: Duration = Duration::from_secs(600);

/// What a program did.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a command without standard input. Stops it, with the programs that it started, after `seconds` of processor time, which
/// count those of its children that have ended.
pub fn run(command: &mut Command, seconds: u64) -> Result<Ended, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let limit = Duration::from_secs(20 * seconds).max(LEAST_WALL);
    std::thread::scope(|scope| {
        let out = scope.spawn(move || read(out));
        let err = scope.spawn(move || read(err));
        let start = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) => {}
                Err(e) => break Err(e.to_string()),
            }
            let elapsed = start.elapsed();
            let why = match seconds_of(&child.id().to_string()) {
                _ if elapsed > limit => format!("hangs: no end after {} min", limit.as_secs() / 60),
                Some(taken) if taken > seconds as f64 => format!("takes more than {seconds} s of processor time"),
                _ => {
                    // Short programs are not waited for longer than they take.
                    std::thread::sleep((elapsed / 20).clamp(Duration::from_millis(1), Duration::from_millis(100)));
                    continue;
                }
            };
            let group = format!("kill -9 -{}", child.id());
            let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
            let _ = child.kill();
            let _ = child.wait();
            break Err(why);
        };
        let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        match status {
            Ok(status) => Ok(Ended { status, stdout, stderr }),
            Err(why) => Err(format!("{why}\n{}", String::from_utf8_lossy(&stderr))),
        }
    })
}

fn read(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

/// The processor time in seconds of a process (`self` or a number) and of its children that have ended; `None` where the
/// system does not tell.
pub fn seconds_of(process: &str) -> Option<f64> {
    /// Linux shows hundredths of a second on all machines.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: Option<f64> = fields.get(11..15)?.iter().map(|f| f.parse::<f64>().ok()).sum();
    Some(ticks? / TICKS)
}

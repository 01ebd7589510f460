//! Helpers that tests of the command share: folders that vanish, the command itself.

#![allow(dead_code, reason = "each test file uses a part")]

#[path = "../../../src/child.rs"]
mod child;

pub use child::own_cache;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A folder of its own, with a space in its name, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        // Tests of several files may choose the same name.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nyala test {}-{n} {name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The command, built like these tests.
pub fn command() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let status = Command::new("cargo")
            .current_dir(root())
            .args(["build", "--quiet", "--package", "nyala", "--package", "nyala-runtime"])
            .status();
        assert!(status.unwrap().success());
    });
    // Tests lie in `deps`, beside which the commands are.
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().parent().unwrap().join(format!("nyala{}", std::env::consts::EXE_SUFFIX))
}

/// Seconds of processor time for a command that should take one or two: far more than even a slow machine needs.
const LIMIT: u64 = 120;

/// Commands that are run to their end.
pub trait RunToEnd {
    /// Runs it within a generous limit of processor time, without standard input, and with the project's cache.
    fn run_to_end(&mut self) -> Output;
}

impl RunToEnd for Command {
    fn run_to_end(&mut self) -> Output {
        run_within(self, LIMIT)
    }
}

fn run_within(command: &mut Command, limit: u64) -> Output {
    match child::run(command, Duration::from_secs(limit)) {
        Ok(child::Ended { status, stdout, stderr, .. }) => Output { status, stdout, stderr },
        Err(e) => panic!("{command:?}: {e}"),
    }
}

/// Waits for the end of a process that a test has begun.
pub fn end(child: Child) -> Output {
    match child::end(child, Duration::from_secs(LIMIT)) {
        Ok(child::Ended { status, stdout, stderr, .. }) => Output { status, stdout, stderr },
        Err(e) => panic!("{e}"),
    }
}

/// Runs the command `nyala`; it must end within the limit, in seconds of processor time.
pub fn nyala(args: &[&std::ffi::OsStr], limit: u64) -> Output {
    run_within(Command::new(command()).args(args), limit)
}

/// The output of a command, which must succeed.
pub fn sh(command: &mut Command) -> String {
    let output = command.run_to_end();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", stderr(&output));
    said
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Says that a test, or a part of it, needs a tool that is not here. `NYALA_SKIPPED` names a file in which that is noted; if
/// it is `fail`, the test fails.
pub fn skip(tool: &str) {
    match std::env::var_os("NYALA_SKIPPED") {
        Some(word) if word == "fail" => panic!("there is no {tool}; `./x setup` may bring it"),
        _ => skip_here(tool),
    }
}

/// Says that a part of a test is for other machines than this one.
pub fn skip_here(what: &str) {
    use std::io::Write;
    let name = std::thread::current().name().unwrap_or("a test").to_string();
    let line = format!("{name}: {what}\n");
    match std::env::var_os("NYALA_SKIPPED") {
        // A line in one piece: other tests write as well.
        Some(file) if file != "fail" => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a file for what is skipped");
        }
        _ => eprint!("skipped: {line}"),
    }
}

/// The processor time that a process has used so far.
pub fn cpu_time(child: &Child) -> Duration {
    child::cpu_time(child.id())
}

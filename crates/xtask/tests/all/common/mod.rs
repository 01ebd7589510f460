//! Helpers that tests of the command share: folders that vanish, the command itself.

#![allow(dead_code, reason = "each test file uses a part")]

#[path = "../../../src/child.rs"]
pub mod child;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own, with a space in its name, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nyala test {} {name}", std::process::id()));
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
            .args(["build", "--quiet", "--package", "nyala", "--package", "nyala-runtime", "--package", "xtask"])
            .status();
        assert!(status.unwrap().success());
    });
    // Tests lie in `deps`, beside which the commands are.
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().parent().unwrap().join(format!("nyala{}", std::env::consts::EXE_SUFFIX))
}

/// The command with a folder for its caches, so that no test reads or fills the user's.
pub fn nyala_command() -> Command {
    let command = command();
    let caches = command.parent().and_then(Path::parent).unwrap().join("cache");
    let mut nyala = Command::new(command);
    nyala.env("XDG_CACHE_HOME", caches);
    nyala
}

/// Runs it; it must end within that many seconds of processor time, or a minute if that is longer.
pub fn nyala(args: &[&std::ffi::OsStr], limit: u64) -> Output {
    let ended = child::run(nyala_command().args(args), limit.max(60)).unwrap_or_else(|why| panic!("{why}"));
    Output { status: ended.status, stdout: ended.stdout, stderr: ended.stderr }
}

/// Says that a test cannot run here, for lack of a tool. Where all tools must be there, it is a failure.
pub fn skip(what: &str) {
    match std::env::var("NYALA_SKIPPED") {
        Ok(word) if word == "fail" => panic!("{what}; `./x setup` may bring it"),
        _ => lacks(what),
    }
}

/// Says that a part of a test is for other machines than this one.
pub fn lacks(what: &str) {
    match std::env::var("NYALA_SKIPPED") {
        Ok(file) if file != "fail" => {
            use std::io::Write;
            let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
            writeln!(file, "{what}").unwrap();
        }
        _ => eprintln!("skipped: {what}"),
    }
}

/// The output of a command, which must succeed.
pub fn sh(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", stderr(&output));
    said
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

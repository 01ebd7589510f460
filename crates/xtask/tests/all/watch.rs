//! `nyala watch` runs a program, or tests, when one of their files is saved. The tests wait for what it prints, for no time.

use crate::common::{self, Folder};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A backstop only: what is waited for comes, or the test fails.
const LIMIT: Duration = Duration::from_secs(600);

struct Watcher {
    child: Child,
    lines: Receiver<String>,
}

impl Watcher {
    fn start(folder: &Folder, args: &[&str]) -> Watcher {
        let mut command = Command::new(common::command());
        common::own_cache(&mut command).current_dir(&folder.0).arg("watch").args(args);
        // One pipe: lines of two would come in any order.
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let child = command.spawn().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        Watcher { child, lines }
    }

    /// Waits for a line with this text; what comes before it.
    fn wait_for(&self, text: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) if line.contains(text) => return before,
                Ok(line) => before.push(line),
                Err(e) => panic!("no `{text}` ({e}) after {before:#?}"),
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_program_runs_again_when_a_file_of_it_is_saved() {
    let folder = Folder::new("watch");
    let main = |more: &str| {
        format!(
            "mod part;\nuse std::system::*;\nfn main() -> i32 {{\n    print_i32(part::number()); {more}; print_char('\\n');\n    0\n}}\n"
        )
    };
    let part = |n: i32| format!("pub fn number() -> i32 {{ {n} }}\n");
    folder.write("p.impala", main(""));
    folder.write("part.impala", part(101));
    let watcher = Watcher::start(&folder, &["p.impala"]);
    watcher.wait_for("101");
    watcher.wait_for("exit status: 0");
    // Another file, and one that is replaced, as editors do.
    folder.write("part.impala", part(20202));
    watcher.wait_for("part.impala changed");
    watcher.wait_for("20202");
    watcher.wait_for("waiting for a change");
    let next = folder.write("next", main("print_i32(7)"));
    std::fs::rename(next, folder.path("p.impala")).unwrap();
    watcher.wait_for("202027");
    watcher.wait_for("waiting for a change");
    // An error, then a file that is missing and appears.
    folder.write("p.impala", main("nothing()"));
    watcher.wait_for("error[unknown-name]");
    watcher.wait_for("exit status: 1");
    std::fs::remove_file(folder.path("part.impala")).unwrap();
    watcher.wait_for("error");
    folder.write("p.impala", main(""));
    watcher.wait_for("waiting for a change");
    folder.write("part.impala", part(303));
    watcher.wait_for("303");
    watcher.wait_for("exit status: 0");
    // What runs forever is ended.
    folder.write("p.impala", main("print_error(\"again\\n\"); while true {}"));
    watcher.wait_for("again");
    folder.write("p.impala", main("print_i32(8)"));
    watcher.wait_for("3038");
}

#[test]
fn the_tests_run_that_a_saved_file_belongs_to() {
    let folder = Folder::new("watch tests");
    folder.write("a.impala", "//? f(1) == 2\nfn f(x: i32) -> i32 { x + 1 }\n");
    folder.write("b.impala", "//? g(1) == 3\nfn g(x: i32) -> i32 { x + 2 }\n");
    let watcher = Watcher::start(&folder, &["--test", "."]);
    watcher.wait_for("2 passed, 0 failed");
    watcher.wait_for("waiting for a change");
    folder.write("b.impala", "//? g(1) == 3\nfn g(x: i32) -> i32 { x + 3 }\n");
    watcher.wait_for("b.impala changed");
    watcher.wait_for("FAILED");
    watcher.wait_for("0 passed, 1 failed");
    watcher.wait_for("waiting for a change");
    // A new file.
    folder.write("c.impala", "//? h() == 5\nfn h() -> i32 { 5 }\n//? h() > 4\n");
    watcher.wait_for("2 passed, 0 failed");
}

#[test]
fn what_cannot_be_watched() {
    let folder = Folder::new("watch nothing");
    let said = |args: &[&str]| {
        let mut command = Command::new(common::command());
        let output = common::RunToEnd::run_to_end(command.current_dir(&folder.0).arg("watch").args(args));
        (output.status.code(), common::stderr(&output))
    };
    assert_eq!(said(&["-"]), (Some(2), "error: standard input cannot be watched\n  = hint: name a file\n".into()));
    let (code, text) = said(&[]);
    assert!(code == Some(2) && text.contains("no file is named"), "{text}");
    let (code, text) = said(&["--test", "--entry", "f", "."]);
    assert!(code == Some(2) && text.contains("cannot be used with"), "{text}");
}

//! `nyala watch` runs a program, or tests, when one of their files is saved. The tests wait for what it prints, for no time.

use crate::common::{self, Folder};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A backstop only: what is waited for comes, or the test fails.
const LIMIT: Duration = Duration::from_secs(600);

struct Watcher {
    child: Child,
    lines: Receiver<String>,
}

impl Watcher {
    fn start(folder: &Folder, args: &[&str]) -> Watcher {
        Watcher::start_with(folder, args, Stdio::null())
    }

    fn start_with(folder: &Folder, args: &[&str], input: Stdio) -> Watcher {
        let mut command = Command::new(common::command());
        common::own_cache(&mut command).current_dir(&folder.0).arg("watch").args(args);
        // One pipe: lines of two would come in any order.
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(input).stdout(writer.try_clone().unwrap()).stderr(writer);
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

/// The processes that a process has started, and that have not ended.
fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task");
    let tasks = std::fs::read_dir(path).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

#[test]
fn libraries_manifests_and_values_are_read_again() {
    let folder = Folder::new("watch all files");
    for name in ["app/src", "geo/src", "other/src", "shelf"] {
        std::fs::create_dir_all(folder.path(name)).unwrap();
    }
    let area = |n: i32| format!("pub fn area() -> i32 {{ {n} }}\n");
    let package = |name: &str, more: &str| format!("[package]\nname = \"{name}\"\n{more}");
    let app = |path: &str| package("app", &format!("\n[dependencies]\ngeo = {{ path = \"../{path}\" }}\n"));
    folder.write("geo/nyala.toml", package("geo", ""));
    folder.write("geo/src/geo.impala", area(11));
    folder.write("other/nyala.toml", package("geo", ""));
    folder.write("other/src/geo.impala", area(44));
    folder.write("shelf/tall.impala", "pub fn height() -> i32 { 500 }\n");
    folder.write("app/nyala.toml", app("geo"));
    folder.write(
        "app/src/main.impala",
        "use geo::*;\nuse tall::*;\nfn main() -> i32 { print_i32(area() + height()); print_char('\\n'); 0 }\n",
    );
    let shelf = folder.path("shelf");
    let watcher = Watcher::start(&folder, &["app/src/main.impala", "-L", shelf.to_str().unwrap()]);
    watcher.wait_for("511");
    watcher.wait_for("waiting for a change");
    folder.write("geo/src/geo.impala", area(22222));
    watcher.wait_for("22722");
    watcher.wait_for("waiting for a change");
    folder.write("shelf/tall.impala", "pub fn height() -> i32 { 7000 }\n");
    watcher.wait_for("29222");
    watcher.wait_for("waiting for a change");
    // Another package, then one that is not there.
    folder.write("app/nyala.toml", app("other"));
    watcher.wait_for("7044");
    watcher.wait_for("waiting for a change");
    folder.write("app/nyala.toml", app("nowhere"));
    watcher.wait_for("error[");
    watcher.wait_for("exit status: 1");
    folder.write("app/nyala.toml", app("geo"));
    watcher.wait_for("29222");
}

#[test]
fn a_program_has_its_input_and_may_end_in_any_way() {
    let folder = Folder::new("watch input");
    let text = |first: &str| {
        format!(
            "use std::system::*;\nextern \"C\" {{ fn getchar() -> i32; }}\nfn main() -> i32 {{ {first} print_char(getchar() as u8); print_char('\\n'); 0 }}\n"
        )
    };
    folder.write("p.impala", text(""));
    let mut watcher = Watcher::start_with(&folder, &["p.impala"], Stdio::piped());
    let mut input = watcher.child.stdin.take().unwrap();
    input.write_all(b"a\n").unwrap();
    watcher.wait_for("a");
    watcher.wait_for("exit status: 0");
    // It ends by a signal, with and without a file that is saved meanwhile.
    folder.write("p.impala", text("let p = 8u64 as &i32; print_i32(*p);"));
    watcher.wait_for("error[wild-access]");
    watcher.wait_for("waiting for a change");
    folder.write("p.impala", text("print_error(\"it \"); print_error(\"waits\\n\"); getchar();"));
    watcher.wait_for("it waits");
    for i in 0..6 {
        folder.write("p.impala", text(&format!("print_error(\"next\"); print_error(\"{i}.\\n\"); while true {{}}")));
        watcher.wait_for(&format!("next{i}."));
    }
    // One process runs, one may wait for the next save; there is no other.
    let own = children(watcher.child.id());
    assert!((1..=2).contains(&own.len()), "{own:?}");
    folder.write("p.impala", text("print_i32(1234567);"));
    input.write_all(b"b\n").unwrap();
    watcher.wait_for("1234567b");
    watcher.wait_for("waiting for a change");
    // The one that waits ends with the watcher.
    let own = children(watcher.child.id());
    watcher.child.kill().unwrap();
    watcher.child.wait().unwrap();
    let start = Instant::now();
    while own.iter().any(|id| std::fs::exists(format!("/proc/{id}")).unwrap()) {
        assert!(start.elapsed() < LIMIT, "{own:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
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

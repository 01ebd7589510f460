//! `nyala fmt`: files of `tests/format` beside what they become, all files here, and the command.

use crate::common::{Folder, command, end, own_cache, root, stderr};
use nyala_base::Sources;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn format(text: &str) -> Option<String> {
    let mut sources = Sources::new();
    let file = sources.add("text", text);
    nyala_syntax::format(file, text).ok()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut pending = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "impala") {
            found.push(path);
        }
    }
    assert!(!found.is_empty(), "no files in {folder}");
    found
}

#[test]
fn files_become_what_is_beside_them() {
    for path in files("tests/format") {
        let expected = std::fs::read_to_string(path.with_extension("formatted")).unwrap();
        let found = format(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn what_is_formatted_stays() {
    let mut n_formatted = 0;
    for path in ["lib", "examples", "bench", "tests"].iter().flat_map(|folder| files(folder)) {
        let text = std::fs::read_to_string(&path).unwrap();
        let once = format(&text);
        n_formatted += usize::from(once.is_some());
        let is_wrong = path.starts_with(root().join("tests/ui"));
        assert!(once.is_some() || is_wrong, "not formatted: {}", path.display());
        assert_eq!(once.as_deref().and_then(format), once, "{}", path.display());
    }
    assert!(n_formatted > 500, "{n_formatted}");
}

#[test]
fn libraries_and_examples_are_formatted() {
    for path in ["lib", "examples", "bench"].iter().flat_map(|folder| files(folder)) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(format(&text).as_ref() == Some(&text), "`nyala fmt {}` would change it", path.display());
    }
}

#[test]
fn no_text_is_too_odd() {
    for text in
        ["", "\n\n", "// only a comment", "/* a */ /* b */", "\u{feff}fn f() -> () {}\r\n", ";", "fn f() -> () { }"]
    {
        let once = format(text);
        if let Some(once) = &once {
            assert_eq!(format(once).as_ref(), Some(once), "{text:?}");
            assert!(once.is_empty() || once.ends_with('\n') && !once.contains('\r'), "{once:?}");
        }
    }
    let deep = format!("fn f() -> i32 {{ {}1{} }}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(format(&deep).is_none());
    let long = format!("static a=[1{}];", ",1".repeat(100_000));
    assert!(format(&long).is_some_and(|text| text.starts_with("static a = [1, 1, 1,")));
}

fn fmt(folder: &Path, args: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut run = Command::new(command());
    run.current_dir(folder).arg("fmt").args(args);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = own_cache(&mut run).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    end(child)
}

#[test]
fn the_command() {
    let folder = Folder::new("fmt");
    let (wild, tidy) = ("fn f( ) -> () {\nf()\n}\n", "fn f() -> () {\n    f()\n}\n");
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    std::fs::create_dir_all(folder.path("inner")).unwrap();
    folder.write("inner/wild.impala", wild);
    folder.write("broken.impala", "fn f( {");
    folder.write("other.txt", wild);

    let checked = fmt(&folder.0, &["--check", "."], "");
    assert_eq!(checked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(said.contains("wild.impala:1: not formatted; expected `fn f() -> () {`"), "{said}");
    assert!(stderr(&checked).contains("broken.impala:1"), "{}", stderr(&checked));
    assert_eq!(read("inner/wild.impala"), wild);

    let written = fmt(&folder.0, &["."], "");
    assert_eq!(written.status.code(), Some(1), "a file has an error");
    assert_eq!((read("inner/wild.impala").as_str(), read("broken.impala").as_str()), (tidy, "fn f( {"));
    assert_eq!(read("other.txt"), wild);
    let checked = fmt(&folder.0, &["--check", "inner"], "");
    assert_eq!((checked.status.code(), checked.stdout.len()), (Some(0), 0));

    let piped = fmt(&folder.0, &["-"], wild);
    assert_eq!((piped.status.code(), String::from_utf8_lossy(&piped.stdout).as_ref()), (Some(0), tidy));
    let missing = fmt(&folder.0, &["none.impala"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("none.impala"), "{}", stderr(&missing));
    assert_eq!(fmt(&folder.0, &[], "").status.code(), Some(2));
}

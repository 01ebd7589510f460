//! The C programs of docs/embedding.md, and that in the header's first comment, compile as C and C++ and run.

use crate::host::{compile, run};
use std::path::Path;
use std::process::Command;

/// Compiles and runs programs in both languages. Returns what each writes, once.
fn run_all(programs: &[String]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = Vec::new();
    for (i, text) in programs.iter().enumerate() {
        let (source, out) = (folder.path().join(format!("{i}.c")), folder.path().join(format!("{i}")));
        std::fs::write(&source, text).expect("it can be written");
        for (compiler, standard) in [("cc", "-std=c99"), ("c++", "-std=c++11")] {
            if compile(compiler, &[standard], &source, &out) {
                said.push(run(&mut Command::new(&out)));
            }
        }
    }
    said
}

#[test]
fn the_programs_of_the_page_run() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/embedding.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let blocks = page.split("\n```c\n").skip(1).map(|block| block.split("\n```\n").next().unwrap_or_default().into());
    let blocks: Vec<String> = blocks.collect();
    assert!(blocks.len() >= 3);
    assert!(run_all(&blocks).iter().all(String::is_empty));
}

#[test]
fn the_program_of_the_header_runs() {
    let header = std::fs::read_to_string(crate::header()).expect("the header");
    let lines: Vec<&str> = header.lines().filter_map(|line| line.strip_prefix(" *     ")).collect();
    assert!(lines.len() > 10);
    let program =
        format!("#include <nyala.h>\n#include <stdio.h>\nint main(void) {{\n{}\nreturn 0; }}\n", lines.join("\n"));
    assert!(run_all(&[program]).iter().all(|said| said == "1.5\n"));
}

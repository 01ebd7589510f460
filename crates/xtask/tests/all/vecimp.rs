//! Programs in VecImp: compiled code has the results of the chapter's semantics.

use crate::common::{Folder, nyala, root, stderr};
use nyala_base::{FileId, Id, Sink};
use nyala_sierra::vecimp::random::{self, Kind};
use nyala_sierra::vecimp::{self, Rules, step};
use std::ops::Range;
use std::path::Path;

/// The engines in which a program runs.
const ENGINES: [&[&str]; 4] =
    [&["--engine", "interp"], &["-O0", "--no-pe"], &["-O3"], &["--engine", "interp", "--no-pe"]];

fn run(engine: &[&str], files: &[&Path]) -> String {
    let all: Vec<&std::ffi::OsStr> =
        ["run"].iter().chain(engine).map(|a| a.as_ref()).chain(files.iter().map(|f| f.as_os_str())).collect();
    let output = nyala(&all, 600);
    assert!(output.status.success(), "{engine:?}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles the programs of these seeds as one, whose `main` is in Sierra. Returns how many there were.
fn agree(seeds: Range<u64>, engines: &[&[&str]]) -> usize {
    let (mut programs, mut declared, mut calls, mut expected) =
        (String::new(), String::new(), String::new(), String::new());
    let mut n = 0;
    for seed in seeds {
        let kind = if seed % 3 == 0 { Kind::PolyVecImp } else { Kind::VecImp };
        let name = format!("p{seed}");
        let text = random::program(kind, &name, seed);
        let mut sink = Sink::default();
        let program = vecimp::program(FileId::from_idx(0), &text, &mut sink);
        let Some(f) = program.functions.iter().find(|f| *f.name.text == *name) else {
            assert!(kind == Kind::PolyVecImp, "{text}{:?}", sink.diagnostics);
            continue;
        };
        let value = match step::run(&program, Rules::Repaired, &name, Vec::new(), 5_000, |_, _, _| {}) {
            Ok(value) => value,
            Err(step::Stop::Limit) => continue,
            Err(stop) => panic!("{stop:?}: {text}"),
        };
        n += 1;
        programs += &text;
        declared += &format!("{} {name}();\n", f.result.ty().show());
        calls += &format!("    print(\"{name}: %\\n\", {name}());\n");
        expected += &format!("{name}: {}\n", value.show());
    }
    let folder = Folder::new("vecimp");
    let harness = folder.write("main.sierra", format!("{declared}int main() {{\n{calls}    return 0;\n}}\n"));
    let path = folder.write("random.vecimp", &programs);
    for engine in engines {
        let found = run(engine, &[&harness, &path]);
        if found == expected {
            continue;
        }
        for (found, expected) in found.lines().zip(expected.lines()) {
            let name = expected.split(':').next().unwrap_or_default();
            let of = |l: &&str| l.contains(&format!("{name}(")) || l.contains(&format!("{name}_"));
            let first = programs.lines().position(|l| of(&l)).unwrap_or(0);
            let text: Vec<&str> = programs.lines().skip(first).take(120).collect();
            assert_eq!(found, expected, "{engine:?}\n{}", text.join("\n"));
        }
        panic!("{engine:?}: {} lines, expected {}", found.lines().count(), expected.lines().count());
    }
    n
}

#[test]
fn compiled_code_agrees_with_the_semantics() {
    assert!(agree(1..25, &ENGINES[..3]) > 15);
}

#[test]
#[ignore = "takes minutes: ./x test --all crates"]
fn compiled_code_agrees_with_the_semantics_on_a_hundred_thousand_programs() {
    let mut n = 0;
    for batch in 0..500 {
        let first = 1_000 + 220 * batch;
        // Native code takes the most time.
        let engines = if batch % 25 == 0 { &ENGINES[..] } else { &ENGINES[..1] };
        n += agree(first..first + 220, engines);
    }
    assert!(n >= 100_000, "{n}");
}

#[test]
fn programs_of_the_page_print_what_it_shows() {
    let page = std::fs::read_to_string(root().join("docs/vecimp.md")).unwrap();
    let folder = Folder::new("vecimp-page");
    let mut lines = page.lines();
    let (mut program, mut n) = (None, 0);
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: String = lines.by_ref().take_while(|l| !l.starts_with("```")).map(|l| format!("{l}\n")).collect();
        match language {
            "c" => {
                n += 1;
                let path = folder.write(&format!("{n}.vecimp"), &body);
                let output = nyala(&["check".as_ref(), path.as_os_str()], 60);
                assert!(output.status.success(), "{body}{}", stderr(&output));
                if body.contains("//?") {
                    let output = nyala(&["test".as_ref(), path.as_os_str()], 60);
                    assert!(output.status.success(), "{body}{}", stderr(&output));
                }
                program = Some(path);
            }
            "text" => {
                let path = program.as_ref().unwrap();
                for engine in &ENGINES[..3] {
                    assert_eq!(run(engine, &[path]), body, "{engine:?}");
                }
            }
            _ => {}
        }
    }
    assert!(n >= 3, "{n}");
}

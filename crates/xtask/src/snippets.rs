//! Tests the programs in Markdown pages, and the outputs that the pages show. The first line of a fenced block has,
//! after the language:
//!
//! | words | meaning |
//! |---|---|
//! | `impala` | a program: a text test like a file under `tests/run` ([`crate::texts`]); it must compile |
//! | `impala more` | goes on with the program before |
//! | `impala fails NAME` | a program that does not compile; `NAME` is shown as its file |
//! | `residual F`, `flat F`, `flat F loop` | what `nyala emit` prints of that function of the program before |
//! | `explain`, `explain F` | what `nyala explain` says of the program before, or of that function |
//! | `errors` | the diagnostics of the program before |
//! | `output` | what its `main` prints |
//! | `command VERB OPTIONS…` | what `nyala VERB OPTIONS… FILE` prints |
//!
//! `x bless` writes the blocks with outputs.

use crate::{root, texts};
use nyala_driver::{Failed, Files, FrontEnd, Options};
use std::path::{Path, PathBuf};

/// The current program of a page.
#[derive(Default)]
struct Program {
    text: String,
    /// The file name that diagnostics show.
    name: String,
    fails: bool,
    line: usize,
    /// The folder that it is written to. Each page has its own, because pages are tested in parallel.
    folder: PathBuf,
}

/// Tests a page. Returns its faults.
pub fn run_page(path: &Path, bless: bool) -> Vec<String> {
    let page = match std::fs::read_to_string(path) {
        Ok(page) => page,
        Err(e) => return vec![format!("cannot read: {e}")],
    };
    let mut faults = Vec::new();
    let mut out = String::new();
    let mut program: Option<Program> = None;
    let mut lines = page.lines().enumerate();
    let check = |program: Option<Program>, faults: &mut Vec<String>| {
        if let Some(program) = program.filter(|p| !p.fails) {
            let found = check_program(&program);
            faults.extend(found.into_iter().map(|f| format!("program of line {}: {f}", program.line)));
        }
    };
    while let Some((i, line)) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().map(|l| l.1).take_while(|l| !l.starts_with("```")).collect();
        let mut body = body.iter().map(|l| format!("{l}\n")).collect::<String>();
        let words: Vec<&str> = info.split_whitespace().skip(1).collect();
        match words[..] {
            ["impala", "more"] => {
                if let Some(program) = &mut program {
                    program.text.push_str(&body);
                }
            }
            ["impala", ref rest @ ..] => {
                check(program.take(), &mut faults);
                let fails = rest.first() == Some(&"fails");
                let name = rest.get(1).unwrap_or(&"program.impala").to_string();
                let folder = folder_of(path, i + 1);
                program = Some(Program { text: body.clone(), name, fails, line: i + 1, folder });
            }
            [what, ..] => match shown(program.as_ref(), what, &words[1..]) {
                Ok(found) if bless => body = found,
                Ok(found) if found == body => {}
                Ok(found) => {
                    let diff = texts::diff(&body, &found);
                    faults.push(format!("line {}: shows something else (`./x bless` mends it):\n{diff}", i + 1));
                }
                Err(e) => faults.push(format!("line {}: {e}", i + 1)),
            },
            [] => {}
        }
        out.push_str(&body);
        out.push_str("```\n");
    }
    check(program.take(), &mut faults);
    if bless
        && out != page
        && let Err(e) = std::fs::write(path, out)
    {
        faults.push(format!("cannot write: {e}"));
    }
    faults
}

/// The folder for the program at a line of a page.
fn folder_of(page: &Path, line: usize) -> PathBuf {
    let stem = page.strip_prefix(root()).unwrap_or(page).with_extension("").display().to_string();
    root().join("out/snippets").join(format!("{}-{line}", stem.replace(['/', ' '], "-")))
}

/// Runs a program as a text test. Returns its faults.
fn check_program(program: &Program) -> Vec<String> {
    let file = program.folder.join("program.impala");
    match std::fs::create_dir_all(&program.folder).and_then(|()| std::fs::write(&file, &program.text)) {
        Ok(()) => texts::run_program(&file),
        Err(e) => vec![format!("cannot write {}: {e}", file.display())],
    }
}

fn shown(program: Option<&Program>, what: &str, words: &[&str]) -> Result<String, String> {
    let program = program.ok_or("no program stands before this block")?;
    let cpu = texts::gate_cpu().map(String::from);
    let options = Options { verify: true, cpu, ..Options::default() };
    let files = Files::of(&program.name, &program.text);
    let text = match (what, words) {
        ("residual" | "flat", [function]) => nyala_driver::emit(&options, &files, what, Some(function)),
        ("opencl", []) => nyala_driver::emit(&options, &files, what, None),
        ("flat", [function, "loop"]) => nyala_driver::emit_deepest_loop(&options, &files, function),
        ("explain", [] | [_]) => {
            let graph = FrontEnd::new(options, files).graph();
            graph.and_then(|graph| nyala_driver::explain::explain(&graph)).and_then(|mut explained| {
                let text = nyala_driver::explain::text(&explained.report, words.first().copied(), 10);
                let report = &mut explained.residual.report;
                text.map_err(|d| report.report(*d)).map(|text| (text, std::mem::take(report)))
            })
        }
        ("errors", []) => {
            let compiled = || Ok(FrontEnd::new(options, files).graph()?.residual()?.flat()?.report);
            let found = compiled().unwrap_or_else(|failed: Failed| *failed).render(false);
            return if found.is_empty() { Err("the program has no errors".into()) } else { Ok(found) };
        }
        ("output", []) => return printed(program, &["run"]),
        ("command", [_, ..]) => return printed(program, words),
        _ => return Err(format!("nobody knows how to show `{what} {}`", words.join(" "))),
    };
    // The text of a whole program begins with the name of its form.
    text.map(|(t, _)| t.strip_prefix("graph\n").or(t.strip_prefix("flat\n")).unwrap_or(&t).to_string())
        .map_err(|failed| failed.render(false))
}

/// What a command prints that gets the program's file as its last argument.
fn printed(program: &Program, words: &[&str]) -> Result<String, String> {
    let written = std::fs::create_dir_all(&program.folder);
    written
        .and_then(|()| std::fs::write(program.folder.join(&program.name), &program.text))
        .map_err(|e| e.to_string())?;
    let mut command = std::process::Command::new(texts::nyala());
    command.current_dir(&program.folder).args(words).arg(&program.name);
    let (_, out, err) = texts::output_within(&mut command, texts::TIME_LIMIT)?;
    Ok(out + &err)
}

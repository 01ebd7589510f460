//! The C text of tests under the C compiler's sanitizers: undefined behavior and accesses outside of objects that the program does
//! not have. `./x test --all c-text` runs it; separate from the other engines, since the sanitizers want executables.
//!
//! A test's queries, test functions and `main` are called from C, in a program that is linked with the runtime.

use crate::queue::{Answer, Order};
use crate::texts::{self, output_within};
use crate::{Tally, root};
use nyala_driver::{compiled_c, testing};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of tests.
const FOLDERS: &[&str] = &["tests/run", "tests/seeds", "lib", "examples"];

/// Faults end the program. Frames of the program's own functions are in the reports.
const SANITIZERS: &[&str] =
    &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"];

/// Longer texts, in bytes, are compiled without optimization: with checks it takes minutes.
const MAX_OPTIMIZED: usize = 60_000;

/// The units that a file takes.
const COST: f64 = 8.0;

/// Runs all tests, or those whose paths contain `filter`.
pub fn run(filter: Option<&str>) -> Result<Tally, String> {
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| texts::collect(&root().join(folder), &mut files));
    files.retain(|f| f.extension().is_some_and(|e| e == "impala"));
    files.sort();
    let names = files.iter().map(|f| f.strip_prefix(root()).unwrap_or(f).display().to_string());
    let names = names.filter(|name| filter.is_none_or(|f| name.contains(f)));
    let orders = names.map(|name| Order { words: vec!["sanitized".into(), name], cost: COST }).collect();
    let (mut tally, skipped) = crate::run_orders(orders)?;
    skipped.iter().for_each(|what| println!("skipped: {what}"));
    tally.skipped += skipped.len();
    Ok(tally)
}

/// Performs an order: tests the file of this name.
pub fn perform(name: &str) -> Answer {
    let mut answer = Answer::default();
    let path = root().join(name);
    let outcome = std::fs::read_to_string(&path).map_err(|e| e.to_string()).and_then(|text| test(&path, &text));
    match outcome {
        Ok(None) => {}
        Ok(Some(why)) => answer.skipped.push(format!("{name}: {why}")),
        Err(fault) => answer.faults.push(fault),
    }
    answer
}

/// Tests a file. Returns why it is left out, if it is.
fn test(path: &Path, text: &str) -> Result<Option<String>, String> {
    let suite = testing::find(&path.display().to_string(), text);
    let output = texts::expected_output(text);
    if texts::is_of_diagnostics(path, text) || suite.tests.is_empty() && output.is_none() {
        return Ok(None);
    }
    let (options, mut files) = texts::program(path, text);
    files.add(path.display().to_string(), suite.entries.clone());
    let c = match nyala_driver::emit(&options, &files, "c", None) {
        Ok((c, _)) => c,
        Err(failed) if texts::is_limitation(&failed) => return Ok(Some(texts::first_error(&failed))),
        Err(failed) => return Err(failed.render(false)),
    };
    let level = if c.len() > MAX_OPTIMIZED { "-O0" } else { "-O1" };
    let folder = Folder::new(path)?;
    let [program, calls, main] = ["program", "calls.c", "program.c"].map(|name| folder.0.join(name));
    let written = std::fs::write(&main, c).and_then(|()| std::fs::write(&calls, calling(&suite, output.is_some())));
    written.map_err(|e| e.to_string())?;
    let mut cc = Command::new("cc");
    // The program's own `main` is another. Sanitizers have the compiler see uninitialized variables that are none.
    cc.args(compiled_c::FLAGS).args(SANITIZERS).args(["-w", level, "-c", "-Dmain=program_main"]);
    expect_success(cc.arg(&main).arg("-o").arg(folder.0.join("program.o")))?;
    let mut cc = Command::new("cc");
    cc.args(SANITIZERS).arg(&calls).arg(folder.0.join("program.o")).arg("-o").arg(&program);
    expect_success(cc.arg(texts::nyala().with_file_name("libnyala_runtime.a")).args(["-lm", "-lpthread", "-ldl"]))?;
    if !suite.tests.is_empty() {
        let (status, out, err) = run_program(&program, None)?;
        let lines: Vec<&str> = out.lines().collect();
        let mut told: Vec<&str> = lines.windows(2).filter(|w| w[1] == "fails").map(|w| w[0]).collect();
        if status != Some(0) {
            told.extend(lines.last());
            return Err(format!("status {status:?}: {}\n{}", told.join("\n"), first_lines(&err)));
        }
    }
    if let Some((expected, code)) = output {
        let (status, out, err) = run_program(&program, Some("main"))?;
        if out.lines().ne(expected.iter().copied()) || status != Some(code) {
            let difference = texts::diff(&expected.join("\n"), &out);
            return Err(format!("status {status:?}, expected {code}:\n{difference}{}", first_lines(&err)));
        }
    }
    Ok(None)
}

fn run_program(program: &Path, arg: Option<&str>) -> Result<(Option<i32>, String, String), String> {
    let mut run = Command::new(program);
    // Programs need not free what they have; threads of the runtime outlive them.
    run.args(arg).env("ASAN_OPTIONS", "detect_leaks=0").env("UBSAN_OPTIONS", "print_stacktrace=1").current_dir(root());
    output_within(&mut run, texts::TIME_LIMIT)
}

fn expect_success(command: &mut Command) -> Result<(), String> {
    match output_within(command, texts::TIME_LIMIT)? {
        (Some(0), ..) => Ok(()),
        (status, _, said) => Err(format!("{command:?}: {status:?}\n{}", first_lines(&said))),
    }
}

fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.is_empty()).take(12).collect();
    lines.join("\n")
}

/// A C program that calls the test functions on the runtime's large stack, and prints those that fail; with an argument, `main`.
fn calling(suite: &testing::Suite, has_main: bool) -> String {
    let (declared, called) = crate::foreign::calls_of_tests(suite);
    let main = if has_main { "    if (argc > 1) return program_main(1, argv);\n" } else { "" };
    format!(
        "#include <stdio.h>
{declared}int program_main(int, char **);
int nyala_start(int (*program)(int, char **), int argc, char **argv);
static int tests(int argc, char **argv) {{
    int failed = 0;
{called}    return failed;
}}
int main(int argc, char **argv) {{
{main}    return nyala_start(tests, argc, argv);
}}
"
    )
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(path: &Path) -> Result<Folder, String> {
        let stem = path.strip_prefix(root()).unwrap_or(path).display().to_string().replace(['/', '.'], "_");
        let folder = std::env::temp_dir().join(format!("nyala-sanitized-{}-{stem}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

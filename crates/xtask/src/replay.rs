//! `x replay REV`: compiles the project's programs with this tree and with another revision of it, and compares the
//! outputs. A refactoring must change nothing. Separate from the text tests, which check that outputs are right, not
//! that they stay the same.
//!
//! | compared | how |
//! |---|---|
//! | residual program, flat code | as text; a word that ends in a number stands for its first occurrence |
//! | machine code at -O3 | the bytes of `.text` and `.rodata` |
//! | a program that does not compile | the exit status |
//!
//! Both revisions compile the programs and libraries of this tree, with the tests in them, but each uses its own
//! prelude.

use crate::{root, sh, texts};
use nyala_driver::testing;
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The folders of the programs.
const FOLDERS: &[&str] = &["bench", "examples", "lib", "tests"];
/// The CPU that code is made for, so that results do not depend on the machine.
const CPU: &str = if cfg!(target_arch = "x86_64") { "x86-64-v3" } else { "generic" };
/// Limit on the programs with differences that are shown.
const MAX_SHOWN: usize = 20;

/// The output of a command for a program.
#[derive(PartialEq, Eq)]
enum Made {
    Text(String),
    /// The names and bytes of sections.
    Code(Vec<(String, Vec<u8>)>),
    /// The command fails with this status.
    Nothing(Option<i32>),
}

/// Compares with a revision, as git names it, the programs whose paths contain `filter`. Returns whether nothing has
/// changed.
pub fn run(revision: &str, filter: Option<&str>) -> Result<bool, String> {
    let (old, new) = (build_revision(revision)?, build_this()?);
    let mut programs = Vec::new();
    FOLDERS.iter().for_each(|folder| texts::collect(&root().join(folder), &mut programs));
    programs.retain(|p| p.extension().is_some_and(|e| e == "impala"));
    programs.retain(|p| filter.is_none_or(|part| p.to_string_lossy().contains(part)));
    programs.sort();
    if programs.is_empty() {
        return Err(format!("no program has `{}` in its path", filter.unwrap_or_default()));
    }
    let scratch = root().join("target/replay/scratch");
    std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let (next, n_compiled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let changed: Mutex<Vec<(&Path, String)>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            let (old, new, scratch, programs) = (&old, &new, &scratch, &programs);
            let (next, n_compiled, changed) = (&next, &n_compiled, &changed);
            scope.spawn(move || {
                let compilers =
                    [old, new].map(|command| Compiler { command, scratch: scratch.join(worker.to_string()) });
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (differences, compiles) = compare(&compilers, program);
                    n_compiled.fetch_add(compiles as usize, Ordering::Relaxed);
                    if !differences.is_empty() {
                        let shown = program.strip_prefix(root()).unwrap_or(program);
                        changed.lock().unwrap_or_else(|e| e.into_inner()).push((shown, differences));
                    }
                }
            });
        }
    });
    let mut changed = changed.into_inner().unwrap_or_else(|e| e.into_inner());
    changed.sort();
    for (program, differences) in changed.iter().take(MAX_SHOWN) {
        print!("{}\n{differences}", program.display());
    }
    if changed.len() > MAX_SHOWN {
        println!("and {} more", changed.len() - MAX_SHOWN);
    }
    let n_compiled = n_compiled.into_inner();
    let n_other = programs.len() - n_compiled;
    println!("{n_compiled} programs, {n_other} more that do not compile alone; {} changed", changed.len());
    Ok(changed.is_empty())
}

/// Builds the command of another revision, in a separate working tree. Returns its path.
fn build_revision(revision: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/replay");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let tree = folder.join("tree");
    let git = |args: &[&str], at: &Path| sh(Command::new("git").args(args).current_dir(at));
    let wanted = format!("{revision}^{{commit}}");
    let resolved = Command::new("git").args(["rev-parse", "--quiet", "--verify", &wanted]).current_dir(root()).output();
    let resolved = resolved.map_err(|e| format!("git: {e}"))?;
    if !resolved.status.success() {
        return Err(format!("git knows no revision `{revision}`"));
    }
    let commit = String::from_utf8_lossy(&resolved.stdout).trim().to_string();
    match tree.join(".git").exists() {
        true => git(&["checkout", "--quiet", "--force", "--detach", &commit], &tree)?,
        false => {
            git(&["worktree", "prune"], &root())?;
            git(&["worktree", "add", "--quiet", "--force", "--detach", &tree.to_string_lossy(), &commit], &root())?;
        }
    }
    build(&tree, &folder.join("build"))
}

fn build_this() -> Result<PathBuf, String> {
    build(&root(), &root().join("target"))
}

fn build(tree: &Path, target: &Path) -> Result<PathBuf, String> {
    eprintln!("building {}", tree.display());
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--package", "nyala", "--package", "nyala-runtime", "--target-dir"]);
    sh(cargo.arg(target).current_dir(tree))?;
    Ok(target.join("release").join(format!("nyala{}", std::env::consts::EXE_SUFFIX)))
}

struct Compiler<'a> {
    command: &'a Path,
    scratch: PathBuf,
}

/// The differences, in lines, and whether the program compiles with both.
fn compare([old, new]: &[Compiler; 2], program: &Path) -> (String, bool) {
    let text = std::fs::read_to_string(program).unwrap_or_default();
    let entries = testing::find(&program.display().to_string(), &text).entries;
    let entries_file = new.scratch.with_extension("impala");
    let mut files = vec![program.to_path_buf()];
    if !entries.trim().is_empty() && std::fs::write(&entries_file, entries).is_ok() {
        files.push(entries_file);
    }
    let budget = text.lines().find_map(|l| l.strip_prefix("//! pe-budget ")).map_or("1", str::trim);
    let (mut differences, mut compiles) = (String::new(), true);
    for stage in ["residual", "flat", "code"] {
        let (before, after) = (old.make(stage, budget, &files), new.make(stage, budget, &files));
        compiles &= ![&before, &after].iter().any(|made| matches!(made, Made::Nothing(_)));
        if before != after {
            differences += &format!("  {stage}: {}\n", difference(&before, &after));
        }
    }
    (differences, compiles)
}

impl Compiler<'_> {
    fn make(&self, stage: &str, budget: &str, files: &[PathBuf]) -> Made {
        let mut command = Command::new(self.command);
        let object = self.scratch.with_extension("o");
        match stage {
            "code" => command.args(["build", "--cpu", CPU, "-o"]).arg(&object),
            _ => command.args(["emit", "--cpu", CPU, "--stage", stage]),
        };
        command.args(["--no-tune", "--pe-budget", budget, "-L"]).arg(root().join("lib")).args(files);
        let Ok(output) = command.stderr(Stdio::null()).output() else { return Made::Nothing(None) };
        if !output.status.success() {
            return Made::Nothing(output.status.code());
        }
        match stage {
            "code" => Made::Code(sections(&object)),
            _ => Made::Text(renamed(&String::from_utf8_lossy(&output.stdout))),
        }
    }
}

/// The sections of an object with code and constants.
fn sections(object: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = std::fs::read(object).unwrap_or_default();
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let named = file.sections().filter_map(|s| Some((s.name().ok()?.to_string(), s.data().ok()?.to_vec())));
    named.filter(|(name, _)| name.starts_with(".text") || name.starts_with(".rodata")).collect()
}

/// The text, with new numbers at the ends of names, in the order of their first occurrences.
fn renamed(text: &str) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let n = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        if n == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let word = &rest[..n];
        rest = &rest[n..];
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_type = ["i", "u", "f"].contains(&name) && ["8", "16", "32", "64"].contains(&&word[name.len()..]);
        let is_name = c.is_ascii_alphabetic() || c == '_';
        if !is_name || is_type || name.len() == word.len() {
            out.push_str(word);
            continue;
        }
        let next = numbers.len();
        let number = *numbers.entry(word).or_insert(next);
        out += &format!("{name}{number}");
    }
    out
}

/// A description of the first difference between two outputs.
fn difference(before: &Made, after: &Made) -> String {
    match (before, after) {
        (Made::Text(a), Made::Text(b)) => {
            let n = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
            let line =
                |text: &str| text.lines().nth(n).unwrap_or("the end").trim().chars().take(90).collect::<String>();
            format!("line {}: `{}` is now `{}`", n + 1, line(a), line(b))
        }
        (Made::Code(a), Made::Code(b)) => {
            let size = |sections: &[(String, Vec<u8>)]| sections.iter().map(|s| s.1.len()).sum::<usize>();
            format!("{} bytes, now {}", size(a), size(b))
        }
        (Made::Nothing(a), Made::Nothing(b)) => format!("ended with status {a:?}, now {b:?}"),
        (_, Made::Nothing(status)) => format!("does not compile any more: status {status:?}"),
        _ => "compiles now".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn numbers_of_names_are_counted_anew() {
        let (a, b) = ("v3: i32 = add(v1, 5i32) f.2(v3)", "v7: i32 = add(v2, 5i32) f.9(v7)");
        assert_eq!(renamed(a), renamed(b));
        assert_ne!(renamed(a), renamed("v3: i32 = add(v3, 5i32) f.2(v3)"));
        assert_ne!(renamed(a), renamed("v3: i64 = add(v1, 5i64) f.2(v3)"));
        assert_ne!(renamed(a), renamed("v3: i32 = add(v1, 6i32) f.2(v3)"));
    }
}

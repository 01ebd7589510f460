//! Checks the repository: the layer table of ARCHITECTURE.md against folders, dependencies and headers; unsafe code;
//! file lengths; promises in comments; citations of pages and papers; diagnostics and their tests; documentation and
//! tests of the libraries; names that the language's reference must have; links of pages and in documentation; licenses and sources of
//! dependencies.

use crate::costs::Table;
use crate::{Tally, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file with more lines needs a reason in its header.
const MAX_LINES: usize = 900;
/// A source file with more lines must be on the map.
const MAX_LINES_OFF_MAP: usize = 100;
/// The folders that paths on the map begin with.
const MAPPED: &[&str] = &["bench/", "crates/", "docs/", "editors/", "examples/", "lib/", "tests/"];
/// The pages in the root.
const PAGES: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
/// The page with the table of papers.
const SOURCES: &str = "docs/sources.md";
/// The pages of the language's reference.
const REFERENCE: &str = "docs/reference";
/// Crates that may contain `unsafe`.
const UNSAFE: &[&str] = &["runtime", "scene", "gzip", "gen-llvm", "embed", "capi", "python"];

/// Adds what is wrong.
type Check = fn(&mut Vec<String>);

/// Checks everything, and prints what is wrong.
pub fn run() -> Tally {
    let checks: &[(&str, Check)] = &[
        ("map", check_map),
        ("paths", check_paths),
        ("headers", check_headers),
        ("unsafe", check_unsafe),
        ("promises", check_promises),
        ("citations", check_citations),
        ("diagnostics", check_diagnostics),
        ("dependencies", check_dependencies),
        ("libraries", check_libraries),
        ("reference", check_reference),
        ("book", crate::book::check),
        ("costs", check_costs),
        ("formatting", check_formatting),
    ];
    run_checks(checks)
}

/// Checks the links in the documentation of all items, for which Cargo reads all crates again.
pub fn check_docs() -> Tally {
    run_checks(&[("links", check_links)])
}

fn run_checks(checks: &[(&str, Check)]) -> Tally {
    let mut tally = Tally::default();
    for (name, check) in checks {
        let mut faults = Vec::new();
        check(&mut faults);
        if faults.is_empty() {
            tally.passed += 1;
        } else {
            tally.failed += 1;
            for fault in faults {
                println!("tidy: {name}: {fault}");
            }
        }
    }
    tally
}

/// The rows `| layer | crate | sentence |` of ARCHITECTURE.md, by crate.
fn layers() -> BTreeMap<String, (usize, String)> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_default();
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        if let [layer, name, sentence] = cells[..]
            && let Ok(layer) = layer.parse()
        {
            rows.insert(name.trim_matches('`').to_string(), (layer, sentence.to_string()));
        }
    }
    rows
}

fn check_map(faults: &mut Vec<String>) {
    let rows = layers();
    let mut folders: Vec<String> = std::fs::read_dir(root().join("crates"))
        .map(|d| d.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    folders.sort();
    for folder in &folders {
        let Some((layer, sentence)) = rows.get(folder) else {
            faults.push(format!("crates/{folder} is not in ARCHITECTURE.md"));
            continue;
        };
        let file = ["src/lib.rs", "src/main.rs"]
            .iter()
            .map(|f| root().join("crates").join(folder).join(f))
            .find(|f| f.exists());
        let text = file.and_then(|f| std::fs::read_to_string(f).ok()).unwrap_or_default();
        if text.lines().next() != Some(&format!("//! {sentence}")) {
            faults.push(format!("the first line of crates/{folder} is not its sentence in ARCHITECTURE.md"));
        }
        let manifest = root().join("crates").join(folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap_or_default();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or("");
        for line in dependencies.lines().take_while(|l| !l.starts_with('[')) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or("");
            let name = name.strip_prefix("nyala-").unwrap_or(name);
            if let Some((other, _)) = rows.get(name)
                && other >= layer
            {
                faults.push(format!("{folder} (layer {layer}) depends on {name} (layer {other})"));
            }
        }
    }
    for name in rows.keys() {
        if !folders.contains(name) {
            faults.push(format!("ARCHITECTURE.md lists {name}, which is not in crates/"));
        }
    }
}

/// Checks that the paths in ARCHITECTURE.md exist, and name every long source file or its folder, which ends with `/`.
fn check_paths(faults: &mut Vec<String>) {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_default();
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| MAPPED.iter().any(|folder| word.starts_with(folder)) && !word.contains('<');
    let paths: Vec<&str> = quoted.filter(is_path).collect();
    for path in &paths {
        if !root().join(path).exists() {
            faults.push(format!("ARCHITECTURE.md names {path}, which does not exist"));
        }
    }
    for file in rust_files() {
        let name = shown(&file);
        let is_mapped = paths.iter().any(|p| *p == name || p.ends_with('/') && name.starts_with(p));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if !is_mapped && text.lines().count() > MAX_LINES_OFF_MAP {
            faults.push(format!("{name} has over {MAX_LINES_OFF_MAP} lines and is not in ARCHITECTURE.md"));
        }
    }
}

fn rust_files() -> Vec<PathBuf> {
    files_in("crates", "rs")
}

fn files_in(folder: &str, extension: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, extension, files);
            } else if path.extension().is_some_and(|e| e == extension) {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join(folder), extension, &mut files);
    files.sort();
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn check_headers(faults: &mut Vec<String>) {
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if !text.starts_with("//!") {
            faults.push(format!("{} does not start with a `//!` header", shown(&path)));
        }
        let header: String = text.lines().take_while(|l| l.starts_with("//!")).collect();
        if text.lines().count() > MAX_LINES && !header.contains("one file") {
            faults.push(format!(
                "{} has over {MAX_LINES} lines; split it, or say in its header why it is one file",
                shown(&path)
            ));
        }
    }
}

fn check_unsafe(faults: &mut Vec<String>) {
    for path in rust_files() {
        let shown = shown(&path);
        let allowed = UNSAFE.iter().any(|c| shown.starts_with(&format!("crates/{c}/")));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (i, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if code.contains(concat!("unsafe", " {")) && !allowed {
                faults.push(format!("{shown}:{}: unsafe code is for {} only", i + 1, UNSAFE.join(" and ")));
            }
        }
        let is_root = ["src/lib.rs", "src/main.rs"].iter().any(|f| path.ends_with(f));
        if is_root && !allowed && !text.contains("\n#![forbid(unsafe_code)]\n") {
            faults.push(format!("{shown} lacks `#![forbid(unsafe_code)]`"));
        }
    }
}

fn check_promises(faults: &mut Vec<String>) {
    // The words are put together, so that this file does not contain them.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("to", "do!("),
        concat!("un", "implemented!("),
    ];
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (i, line) in text.lines().enumerate() {
            if words.iter().any(|w| line.contains(w)) {
                faults.push(format!("{}:{}: a promise instead of code", shown(&path), i + 1));
            }
        }
    }
}

/// Checks citations in pages and comments: a path that ends in `.md` exists, from the root, from the file's own folder,
/// or from `docs`; a key of a paper is in the table of papers.
fn check_citations(faults: &mut Vec<String>) {
    let Ok(table) = std::fs::read_to_string(root().join(SOURCES)) else {
        return faults.push(format!("{SOURCES} is not there"));
    };
    let keys: Vec<&str> = table.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    let mut files: Vec<PathBuf> = PAGES.iter().map(|page| root().join(page)).collect();
    for folder in MAPPED.iter().chain(&["fuzz/"]) {
        files.extend(["md", "rs", "impala", "ir"].into_iter().flat_map(|extension| files_in(folder, extension)));
    }
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let is_page = path.extension().is_some_and(|e| e == "md");
        let is_comment = |line: &str| line.trim_start().starts_with("//") || line.starts_with(';');
        let own_folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let folders = [root(), own_folder, root().join("docs")];
        for (i, line) in text.lines().enumerate() {
            if !is_page && !is_comment(line) {
                continue;
            }
            for cited in citations(line) {
                let is_there = match cited.ends_with(".md") {
                    true => folders.iter().any(|folder| folder.join(cited).exists()),
                    false => keys.contains(&cited),
                };
                if !is_there {
                    faults.push(format!("{}:{}: `{cited}` is cited, and leads nowhere", shown(&path), i + 1));
                }
            }
        }
    }
}

/// The citations in a line: paths of pages, after a backtick or parenthesis, and keys of papers, three digits in
/// backticks.
fn citations(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(['`', '(']).filter_map(move |(at, opening)| {
        let rest = &line[at + 1..];
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let end = rest.find(|c| !is_of_path(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let is_key = opening == "`" && rest[end..].starts_with('`') && end == 3 && word.parse::<u16>().is_ok();
        let is_page = word.strip_suffix(".md").is_some_and(|stem| !stem.is_empty());
        (is_key || is_page).then_some(word)
    })
}

/// Checks that every code has a file in the `diagnostics` folder of its crate, is in the crate's table, and has its
/// wording nowhere else. It must have a test: a folder of `tests/ui` or, if no program can cause it, a test of the
/// command.
fn check_diagnostics(faults: &mut Vec<String>) {
    let codes: Vec<String> = nyala_driver::diagnostics::all().iter().map(|c| c.name()).collect();
    let mut command_tests = String::new();
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let shown = shown(&path);
        if shown.starts_with("crates/xtask/tests") {
            command_tests += &text;
        }
        let in_folder = path.parent().is_some_and(|p| p.ends_with("diagnostics"));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let own = in_folder.then(|| stem.replace('_', "-")).filter(|s| s != "mod");
        if let Some(own) = &own
            && !codes.contains(own)
        {
            faults.push(format!("{shown} is not in the table of its crate"));
        }
        for severity in ["error", "warning", "info"] {
            for rest in text.split(&format!("Diagnostic::{severity}(\"")).skip(1) {
                let code = rest.split('"').next().unwrap_or_default();
                if own.as_deref() != Some(code) && !code.contains('{') {
                    faults.push(format!("{shown} words `{code}`, which belongs into a file of its own"));
                }
            }
        }
    }
    // A known cause of a `bug` is fixed, so there is no test for it.
    for code in codes.iter().filter(|c| *c != "bug") {
        let folder = root().join("tests/ui").join(code);
        let has_test = std::fs::read_dir(folder).is_ok_and(|mut d| d.next().is_some());
        if !has_test && !command_tests.contains(&format!("[{code}]")) && !command_tests.contains(&format!("\"{code}\""))
        {
            faults.push(format!("nothing tests `{code}`: add tests/ui/{code}/, or a test in crates/xtask/tests"));
        }
    }
}

/// Checks the functions of libraries that programs may call, those without `priv`: each has a comment above it, or is
/// in a row of one-line functions that has one; a query `//? …`, or a test under `lib` or `tests/device`, uses it; and the
/// library's page names it, but for `std`, whose rows may end in dots.
fn check_libraries(faults: &mut Vec<String>) {
    let mut uses = BTreeSet::new();
    let mut functions = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for path in files_in("lib", "impala").into_iter().chain(files_in("tests/device", "impala")) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let is_source = path.parent().is_some_and(|p| p.ends_with("src"));
        let library = path.ancestors().nth(2).filter(|l| is_source && !l.ends_with("std"));
        let page = library.map(|l| std::fs::read_to_string(l.join("README.md")).unwrap_or_default());
        let named = page.map(|p| p.split(|c| !is_word(c)).map(str::to_string).collect::<BTreeSet<_>>());
        let mut documented = false;
        for (i, line) in text.lines().enumerate() {
            if !is_source || line.starts_with("//?") {
                uses.extend(line.split(|c| !is_word(c)).map(str::to_string));
            }
            if line.starts_with("//") {
                documented = true;
                continue;
            }
            let name = is_source.then(|| function_name(line)).flatten();
            if let Some(name) = name {
                let at = format!("{}:{}: `{name}`", shown(&path), i + 1);
                if !documented {
                    faults.push(format!("{at} has no comment that says what it does"));
                }
                if !line.starts_with("priv ") {
                    if named.as_ref().is_some_and(|all| !all.contains(name)) {
                        faults.push(format!("{at} is not in its library's `README.md`"));
                    }
                    functions.push((name.to_string(), at));
                }
            }
            // The comment of a row also covers the next line.
            documented &= name.is_some() && line.ends_with('}');
        }
    }
    for (name, at) in functions {
        if !uses.contains(&name) {
            faults.push(format!(
                "{at} is used in no `//?` line or test under lib or tests/device; add one, or make it `priv`"
            ));
        }
    }
}

/// The name of the function that begins in a line of Impala, outside of blocks.
fn function_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("priv ").unwrap_or(line).strip_prefix("fn ")?;
    let mut rest = rest.strip_prefix('@').unwrap_or(rest);
    if rest.starts_with('(') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })?;
        rest = rest[end + 1..].trim_start();
    }
    rest.split(['(', '[']).next()
}

/// Checks that the pages of the language's reference name every keyword, word with a meaning, annotation and intrinsic, each in
/// backticks.
fn check_reference(faults: &mut Vec<String>) {
    let pages: String = files_in(REFERENCE, "md").iter().flat_map(std::fs::read_to_string).collect();
    let mut names: Vec<String> = nyala_ir::lanes::PLATFORMS.iter().map(|p| p.to_string()).collect();
    let is_exact = |op: &&nyala_ir::Op| op.is_math() && !op.is_approximate() && **op != nyala_ir::Op::Abs;
    names.extend(nyala_ir::Op::ALL.iter().filter(is_exact).map(|op| op.name().to_string()));
    // The tables of the sources, by where they begin and end.
    for (file, begin, end) in [
        ("crates/syntax/src/lexer.rs", "fn ident(", "_ => Ident"),
        ("crates/syntax/src/parser/exprs.rs", "fn mark(", "_ => None"),
        ("crates/syntax/src/parser/types.rs", "ADDRESS_SPACES: [&str; 5] = ", ";"),
        ("crates/sema/src/intrinsics.rs", "const LANES", "];"),
        ("crates/sema/src/intrinsics.rs", "const BARRIERS", "];"),
        ("crates/sema/src/intrinsics.rs", "const INDICES", "];"),
        ("crates/sema/src/intrinsics.rs", "pub fn find(", "_ => {"),
        ("crates/sema/src/intrinsics.rs", "fn atomic(", "_ => return"),
        ("crates/sema/src/intrinsics.rs", "None => name,", "_ => return Op::from_name"),
        ("crates/sema/src/check/collect.rs", "pub(super) fn primitive(", "_ =>"),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        let table = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
        let Some((table, _)) = table else {
            faults.push(format!("{file} has no table that begins with `{begin}`"));
            continue;
        };
        names.extend(table.split('"').skip(1).step_by(2).map(str::to_string));
    }
    for name in names {
        // LLVM's names with a type of address behind them mean the same.
        if !name.starts_with("llvm.prefetch.") && !["`", "`@"].iter().any(|q| pages.contains(&format!("{q}{name}`"))) {
            let with_arguments = ["(", "[", ".", " "].iter().any(|then| pages.contains(&format!("`{name}{then}")));
            // Names of LLVM without their type: `llvm.ctpop.i32`.
            if !with_arguments && !pages.contains(&format!("`llvm.{name}.")) {
                faults.push(format!("{REFERENCE} does not say what `{name}` is"));
            }
        }
    }
}

/// Checks the links in the documentation of all items, private ones too.
fn check_links(faults: &mut Vec<String>) {
    let output = Command::new("cargo")
        .current_dir(root())
        .env("RUSTDOCFLAGS", "--deny warnings")
        .args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items", "--keep-going"])
        .output();
    match output {
        Ok(o) if o.status.success() => {}
        Ok(o) => faults.push(format!("`cargo doc` fails:\n{}", String::from_utf8_lossy(&o.stderr))),
        Err(e) => faults.push(format!("cannot run cargo doc: {e}")),
    }
}

/// Checks the tables about text tests: the costs of the gate together, and that all files are there.
fn check_costs(faults: &mut Vec<String>) {
    match Table::read() {
        Ok(table) => {
            let (sum, most) = (table.sum(), crate::costs::MOST);
            if sum > most {
                faults
                    .push(format!("the text tests of the gate cost {sum:.0} units, more than {most:.0}: shrink some"));
            }
            let gone = table.0.keys().map(|key| &key.0).filter(|path| !root().join(path).exists());
            faults.extend(gone.map(|path| format!("tests/costs.txt has a line for {path}, which is not there")));
        }
        Err(e) => faults.push(e),
    }
    let gone = crate::closures::stale();
    faults.extend(gone.iter().map(|path| format!("tests/closures.txt has a line for {path}, which is not there")));
}

fn check_formatting(faults: &mut Vec<String>) {
    let output = std::process::Command::new("cargo").current_dir(root()).args(["fmt", "--all", "--check"]).output();
    match output {
        Ok(o) if o.status.success() => {}
        Ok(o) if String::from_utf8_lossy(&o.stderr).contains("not installed") => {}
        Ok(_) => faults.push("`cargo fmt` changes files".into()),
        Err(e) => faults.push(format!("cannot run cargo fmt: {e}")),
    }
}

/// The registry that dependencies may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks the licenses and sources of all dependencies against `deny.toml`. If `cargo deny` is installed, it checks
/// more.
fn check_dependencies(faults: &mut Vec<String>) {
    let config = std::fs::read_to_string(root().join("deny.toml")).unwrap_or_default();
    let allowed: Vec<&str> = match config.lines().find_map(|l| l.strip_prefix("allow = [")) {
        Some(list) => list.split('"').skip(1).step_by(2).collect(),
        None => return faults.push("deny.toml has no line `allow = [\"LICENSE\", …]`".into()),
    };
    let output = Command::new("cargo").current_dir(root()).args(["metadata", "--format-version", "1"]).output();
    let metadata: serde_json::Value = match output.map(|o| serde_json::from_slice(&o.stdout)) {
        Ok(Ok(metadata)) => metadata,
        _ => return faults.push("`cargo metadata` does not run".into()),
    };
    let packages = metadata["packages"].as_array().map_or(&[][..], |p| p);
    if packages.is_empty() {
        faults.push("`cargo metadata` knows no packages".into());
    }
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, license) = (text("name"), text("license"));
        let fits = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX)
            .is_ok_and(|e| e.evaluate(|requirement| allowed.contains(&requirement.to_string().as_str())));
        if !fits {
            faults.push(format!("`{name}` has the license `{license}`, which deny.toml does not allow"));
        }
        if !package["source"].is_null() && text("source") != REGISTRY {
            faults.push(format!("`{name}` comes from {}", text("source")));
        }
    }
    let deny = Command::new("cargo")
        .current_dir(root())
        .args(["deny", "--offline", "check", "licenses", "bans", "sources"])
        .output();
    // If the tool is not installed, cargo reports an unknown command.
    if let Ok(output) = deny
        && !output.status.success()
        && !String::from_utf8_lossy(&output.stderr).contains("no such command")
    {
        faults.push(format!("`cargo deny check` fails:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
}

#[cfg(test)]
mod tests {
    use super::{citations, function_name};

    #[test]
    fn finds_citations() {
        let line = "`docs/a.md`, Part; [b](../b.md#part), `012` 3.4; no `.md`, `a.rs`, (034), `1_0`, `https://x/c.md`";
        assert_eq!(citations(line).collect::<Vec<_>>(), ["docs/a.md", "../b.md", "012"]);
    }

    #[test]
    fn finds_functions_of_libraries() {
        assert_eq!(function_name("fn f(a: i32) -> i32 { a }"), Some("f"));
        assert_eq!(function_name("priv fn @g() -> () {"), Some("g"));
        assert_eq!(function_name("fn @(?c & (?d)) h(c: u8) -> () {"), Some("h"));
        assert_eq!(function_name("    fn inner() -> () {"), None);
    }
}

//! `x book`: all pages as one book, which mdBook makes. Pages stay plain Markdown with links that work where they lie; the
//! book is made of copies. It is apart from [`crate::pages`], which writes pages of the repository.
//!
//! | part | its pages, in this order |
//! |---|---|
//! | the tour, the reference, the errors | those that the folder's `README.md` links |
//! | guides, libraries, the project | [`PARTS`] |
//! | lessons | `examples/*.impala`, as code |
//! | the libraries' functions | what `nyala doc` writes |
//!
//! A link from a page to a file that is not a page leads to a copy of the file.

mod links;

use crate::{root, sh};
use links::{anchors, links, relative, resolve};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The version of mdBook that is installed.
const MDBOOK: &str = "0.5.4";
/// Where the book's sources are made, and the book.
const SOURCES: &str = "target/book-src";
const BOOK: &str = "target/book";
/// The folder of the sources with what `nyala doc` writes, and the libraries it writes about.
const LIBRARY: &str = "library";
const LIBRARIES: [&str; 3] = ["std", "image", "ray"];

/// The parts of the book, with pages and folders of pages.
const PARTS: &[(&str, &[&str])] = &[
    ("Learning", &["docs/tour", "docs/partial-evaluation.md"]),
    ("Reference", &["docs/reference", "docs/glossary.md"]),
    (
        "Guides",
        &[
            "docs/explain.md",
            "docs/editors.md",
            "docs/checks.md",
            "docs/debugging.md",
            "docs/promises.md",
            "docs/staging.md",
            "docs/sierra.md",
            "docs/ispc.md",
            "docs/vecimp.md",
            "docs/tuning.md",
            "docs/packages.md",
            "docs/devices.md",
            "docs/embedding.md",
            "docs/python.md",
            "docs/by-hand.md",
            "docs/c.md",
            "docs/cpus.md",
            "docs/diagnostics.md",
            "docs/compatibility.md",
        ],
    ),
    (
        "Libraries",
        &["lib/std/README.md", "lib/image/README.md", "lib/ray/README.md", "lib/align/README.md", "lib/mpi/README.md"],
    ),
    ("Errors and warnings", &["docs/errors"]),
    (
        "The project",
        &[
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "docs/design/specializer.md",
            "docs/design/targets.md",
            "docs/design/anydsl.md",
            "docs/sources.md",
            "bench/README.md",
            "bench/METHOD.md",
            "fuzz/README.md",
            "CHANGELOG.md",
            "SECURITY.md",
        ],
    ),
];

/// A page: its path from the root, and its text.
struct Page {
    path: String,
    text: String,
}

/// A page and those of its folder below it.
type Chapter = (Page, Vec<Page>);

/// The README, and the parts with their chapters. A page that cannot be read, or is missing in the list of its folder, is a
/// fault.
fn parts(faults: &mut Vec<String>) -> (Page, Vec<(&'static str, Vec<Chapter>)>) {
    let parts =
        PARTS.iter().map(|(title, paths)| (*title, paths.iter().map(|p| chapter(p, faults)).collect())).collect();
    (page("README.md", faults), parts)
}

fn page(path: &str, faults: &mut Vec<String>) -> Page {
    let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| {
        faults.push(format!("{path}: cannot read: {e}"));
        String::new()
    });
    Page { path: path.into(), text }
}

/// The chapter of a page, or of a folder with the pages that its `README.md` links.
fn chapter(path: &str, faults: &mut Vec<String>) -> Chapter {
    if path.ends_with(".md") {
        return (page(path, faults), Vec::new());
    }
    let first = page(&format!("{path}/README.md"), faults);
    let mut names = Vec::new();
    for link in links(&first.text) {
        let name = first.text[link].split('#').next().unwrap_or_default();
        if name.ends_with(".md") && !name.contains('/') && !names.contains(&name) {
            names.push(name);
        }
    }
    for entry in std::fs::read_dir(root().join(path)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "README.md" && !names.contains(&name.as_str()) {
            faults.push(format!("{path}/README.md does not link {name}"));
        }
    }
    let pages = names.iter().map(|name| page(&format!("{path}/{name}"), faults)).collect();
    (first, pages)
}

/// Checks that every page of `docs` is in the book, and that links of pages lead to files and headings that exist.
pub fn check(faults: &mut Vec<String>) {
    let (first, parts) = parts(faults);
    let mut texts = BTreeMap::from([(first.path, first.text)]);
    for (first, more) in parts.into_iter().flat_map(|(_, chapters)| chapters) {
        texts.extend(std::iter::once(first).chain(more).map(|p| (p.path, p.text)));
    }
    for folder in ["docs", "docs/design"] {
        for entry in std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if path.ends_with(".md") && !texts.contains_key(&path) {
                faults.push(format!("{path} is in no part of the book (crates/xtask/src/book.rs)"));
            }
        }
    }
    check_links(&texts, &root(), faults);
}

/// Checks the links of pages, whose paths are from `folder`.
fn check_links(texts: &BTreeMap<String, String>, folder: &Path, faults: &mut Vec<String>) {
    let anchors_of: BTreeMap<&str, BTreeSet<String>> = texts.iter().map(|(p, t)| (p.as_str(), anchors(t))).collect();
    for (path, text) in texts {
        for link in links(text) {
            let line = text[..link.start].matches('\n').count() + 1;
            let target = &text[link];
            let Some((to, anchor)) = resolve(path, target) else { continue };
            let is_there = match anchors_of.get(to.as_str()) {
                Some(anchors) => anchor.is_empty() || anchors.contains(anchor),
                // The headings of a file that is not a page of the book are not read.
                None => folder.join(&to).exists(),
            };
            if !is_there {
                faults.push(format!("{path}:{line}: the link `{target}` leads nowhere"));
            }
        }
    }
}

/// The path of a page in the book: mdBook wants `index` files where folders of a repository have a README.
fn in_book(path: &str) -> String {
    path.strip_suffix("README.md").map_or(path.into(), |folder| format!("{folder}index.md"))
}

/// Makes the book.
pub fn run() -> Result<bool, String> {
    let mut faults = Vec::new();
    let (first, mut parts) = parts(&mut faults);
    let lessons = lessons()?;
    let lesson_paths: BTreeSet<String> = lessons.iter().map(|p| p.path.clone()).collect();
    parts.insert(1, ("Lessons", lessons.into_iter().map(|page| (page, Vec::new())).collect()));
    let sources = root().join(SOURCES);
    // What an earlier run left may belong to pages that are gone.
    if sources.exists() {
        std::fs::remove_dir_all(&sources).map_err(|e| format!("cannot remove {SOURCES}: {e}"))?;
    }
    eprintln!("pages of the libraries");
    crate::build_command()?;
    let library = sources.join("src").join(LIBRARY);
    let mut doc = Command::new(crate::texts::nyala());
    doc.args(["doc", "--format", "markdown", "-o"]).arg(&library).args(LIBRARIES);
    let output = doc.output().map_err(|e| format!("{doc:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{doc:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    if let Some(libraries) = parts.iter_mut().find(|(title, _)| *title == "Libraries") {
        libraries.1.push(of_library(&library)?);
    }
    let mut pages = vec![&first];
    for (first, more) in parts.iter().flat_map(|(_, chapters)| chapters) {
        pages.push(first);
        pages.extend(more);
    }
    let known: BTreeSet<&str> = pages.iter().map(|p| p.path.as_str()).collect();
    let mut copied = BTreeSet::new();
    let mut texts = BTreeMap::new();
    for page in &pages {
        let text = for_book(page, &known, &lesson_paths, &mut copied);
        write(&sources.join("src").join(in_book(&page.path)), &text)?;
        texts.insert(in_book(&page.path), text);
    }
    copied.iter().try_for_each(|path| copy(path, &sources.join("src")))?;
    write(&sources.join("src/SUMMARY.md"), summary(&first, &parts))?;
    write(&sources.join("book.toml"), CONFIG)?;
    write(&sources.join("impala.js"), include_str!("book/impala.js"))?;
    check_links(&texts, &sources.join("src"), &mut faults);
    for fault in &faults {
        eprintln!("{fault}");
    }
    let mdbook = mdbook()?;
    eprintln!("the book of {} pages", pages.len());
    sh(Command::new(mdbook).arg("build").arg(&sources).arg("--dest-dir").arg(root().join(BOOK)))?;
    println!("{}", root().join(BOOK).join("index.html").display());
    Ok(faults.is_empty())
}

const CONFIG: &str = r#"[book]
title = "Nyala"
src = "src"

[build]
create-missing = false

[output.html]
additional-js = ["impala.js"]
no-section-label = true

[output.html.fold]
enable = true
"#;

/// mdBook, which is installed first if it is not there.
fn mdbook() -> Result<std::path::PathBuf, String> {
    let folder = root().join("target/mdbook");
    let program = folder.join("bin").join(if cfg!(windows) { "mdbook.exe" } else { "mdbook" });
    let version =
        Command::new(&program).arg("--version").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    if version.is_ok_and(|v| v.trim().ends_with(MDBOOK)) {
        return Ok(program);
    }
    eprintln!("installing mdBook {MDBOOK} in target/mdbook; this takes a minute or two, once");
    let mut install = Command::new("cargo");
    install.args(["install", "mdbook", "--locked", "--version", MDBOOK, "--root"]).arg(&folder);
    // An optimized one takes many times as long to compile, and writes the book in seconds less.
    install.args(["--no-default-features", "--features", "search", "--debug"]);
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_INCREMENTAL", "false");
    sh(&mut install).map_err(|e| {
        format!(
            "mdBook, which makes the book, cannot be installed: {e}\n  = hint: the sources of the book are in {SOURCES}; with \
             network, run `./x book` again, or make the book of them with another mdBook: `mdbook build {SOURCES}`"
        )
    })?;
    Ok(program)
}

/// The lessons, each a page with its text.
fn lessons() -> Result<Vec<Page>, String> {
    let folder = std::fs::read_dir(root().join("examples")).map_err(|e| format!("cannot read examples: {e}"))?;
    let mut names: Vec<String> = folder.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".impala"));
    names.sort();
    let page = |name: String| {
        let path = format!("examples/{name}");
        let text = std::fs::read_to_string(root().join(&path)).map_err(|e| format!("cannot read {path}: {e}"))?;
        let title = text.lines().find_map(|line| line.strip_prefix("// ")).unwrap_or(&path);
        let title = title.split(". ").next().unwrap_or(title).trim_end_matches(['.', ':']);
        Ok(Page { path: format!("{path}.md"), text: format!("# {title}\n\n```impala\n{text}```\n") })
    };
    names.into_iter().map(page).collect()
}

/// The pages that `nyala doc` has written.
fn of_library(folder: &Path) -> Result<Chapter, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut pages = Vec::new();
    for name in names.iter().filter(|n| n.ends_with(".md")) {
        let text = std::fs::read_to_string(folder.join(name)).map_err(|e| format!("cannot read {name}: {e}"))?;
        pages.push(Page { path: format!("{LIBRARY}/{name}"), text });
    }
    let index = pages.iter().position(|p| p.path.ends_with("/index.md")).ok_or("`nyala doc` wrote no index")?;
    Ok((pages.remove(index), pages))
}

/// The text of a page in the book: with links that fit there, and Impala as a language. Notes files that have to be copied.
fn for_book(page: &Page, known: &BTreeSet<&str>, lessons: &BTreeSet<String>, copied: &mut BTreeSet<String>) -> String {
    let here = in_book(&page.path);
    let mut out = String::new();
    let mut at = 0;
    for link in links(&page.text) {
        let target = &page.text[link.clone()];
        let Some((to, anchor)) = resolve(&page.path, target) else { continue };
        let (readme, lesson) = (format!("{to}/README.md"), format!("{to}.md"));
        let to = match to.as_str() {
            to if known.contains(to) => in_book(to),
            _ if known.contains(readme.as_str()) => in_book(&readme),
            _ if lessons.contains(&lesson) => lesson,
            // The check of links reports what does not exist.
            to if !root().join(to).exists() => continue,
            to => {
                copied.insert(to.into());
                copy_name(to)
            }
        };
        out += &page.text[at..link.start];
        out += &relative(&here, &to);
        if !anchor.is_empty() {
            let _ = write!(out, "#{anchor}");
        }
        at = link.end;
    }
    out += &page.text[at..];
    // mdBook runs Rust on a server.
    out.replace("```rust impala", "```impala")
}

/// The name of a copy in the book: text that browsers show, but for pictures.
fn copy_name(path: &str) -> String {
    let is_picture = [".png", ".jpg", ".svg"].iter().any(|end| path.ends_with(end));
    if is_picture { path.into() } else { format!("{path}.txt") }
}

/// Copies a file, or the list of a folder's files.
fn copy(path: &str, to: &Path) -> Result<(), String> {
    let (from, to) = (root().join(path), to.join(copy_name(path)));
    if from.is_dir() {
        let entries = std::fs::read_dir(&from).map_err(|e| format!("cannot read {path}: {e}"))?;
        let mut names: Vec<String> =
            entries.flatten().map(|e| format!("{path}/{}\n", e.file_name().to_string_lossy())).collect();
        names.sort();
        return write(&to, names.concat());
    }
    let bytes = std::fs::read(&from).map_err(|e| format!("cannot read {path}: {e}"))?;
    write(&to, bytes)
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.and_then(|()| std::fs::write(path, text)).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// The book's table of contents.
fn summary(first: &Page, parts: &[(&str, Vec<Chapter>)]) -> String {
    let entry = |page: &Page| {
        let title = page.text.lines().find_map(|l| l.strip_prefix("# ")).unwrap_or(&page.path);
        format!("[{}]({})", title.replace(['[', ']'], ""), in_book(&page.path))
    };
    let mut out = format!("# Summary\n\n{}\n", entry(first));
    for (title, chapters) in parts {
        let _ = writeln!(out, "\n# {title}\n");
        for (first, more) in chapters {
            let _ = writeln!(out, "- {}", entry(first));
            more.iter().for_each(|page| {
                let _ = writeln!(out, "  - {}", entry(page));
            });
        }
    }
    out
}

//! Packages: folders with a manifest `nyala.toml`, and what they depend on. Separate from `files.rs`, which asks here where a
//! library lies that is not beside a file; nothing here reads programs.
//!
//! ```toml
//! [package]
//! name = "demo"
//!
//! [dependencies]
//! geo = { path = "../geo" }
//! tables = { git = "https://example.org/tables.git", rev = "v2" }
//! ```
//!
//! The *root package* of a program is that of the innermost folder around its first file that has a manifest; without one,
//! nothing here applies. A package `geo` offers the libraries `geo` (`src/geo.impala`) and `geo::…` (`src/geo/….impala`), to
//! itself as well. Each file sees libraries of its own package, of that package's dependencies, and those that come with the
//! compiler; only the root package's files see the folders of `-L`. A name means one library in a program: two packages of one
//! name, or two revisions of one, are errors, and so are the names of the compiler's own libraries.
//!
//! A revision is resolved once: `nyala.lock`, beside the root manifest, has the commit, and the hash of its tree, of each
//! dependency from git. It is written when it does not fit the manifests, which `--locked` makes an error. With `--offline`,
//! or where the lock's commit was fetched before, nothing is fetched.
//!
//! Nothing of a package is executed when a program is compiled: repositories are bare, and the files of a commit are
//! written by this code, not checked out, so that there are no hooks, filters, links or submodules. Only `nyala.toml`
//! and files of Impala are written.

use crate::diagnostics::{bad_manifest, cannot_write, no_such_package, package_twice};
use crate::front::Trees;
use crate::report::Report;
use crate::{Options, libraries};
use nyala_base::{Diagnostic, FileId, Severity, Sink, Sources, Span};
use nyala_runtime::Cache;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use toml::Spanned;

/// The name of a manifest.
pub const MANIFEST: &str = "nyala.toml";
/// The name of the file with the revisions that were resolved.
pub const LOCK: &str = "nyala.lock";

/// Limit on the packages of a program.
const MAX_PACKAGES: usize = 1000;
/// Limits on what is taken from a commit.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 256 << 20;

/// A package by its index in [`Packages`]. The root package has the index 0.
pub type PackageId = usize;

struct Package {
    name: String,
    folder: PathBuf,
    /// By name.
    dependencies: BTreeMap<String, PackageId>,
}

/// The packages of a program.
#[derive(Default)]
pub struct Packages {
    all: Vec<Package>,
    /// Names of dependencies that cannot be had, which was reported.
    lost: HashSet<String>,
}

impl Packages {
    /// The root package, if there is one.
    pub fn root(&self) -> Option<PackageId> {
        (!self.all.is_empty()).then_some(0)
    }

    /// Whether a package of this name cannot be had, which was reported.
    pub fn is_lost(&self, name: &str) -> bool {
        self.lost.contains(name)
    }

    /// The package whose libraries begin with `name`, for files of package `of`.
    pub fn find(&self, of: Option<PackageId>, name: &str) -> Option<PackageId> {
        let package = &self.all[of?];
        if package.name == name { of } else { package.dependencies.get(name).copied() }
    }

    /// The folder with the libraries of a package.
    pub fn sources(&self, package: PackageId) -> PathBuf {
        self.all[package].folder.join("src")
    }

    /// The sources of the root package and of those that it depends on, with their names.
    pub fn seen_by_root(&self) -> Vec<(PathBuf, String)> {
        let Some(root) = self.all.first() else { return Vec::new() };
        let seen = std::iter::once(0).chain(root.dependencies.values().copied());
        seen.map(|p| (self.sources(p), self.all[p].name.clone())).collect()
    }

    /// The name of a package.
    pub fn name(&self, package: PackageId) -> &str {
        &self.all[package].name
    }

    /// Whether files of package `of` see a library whose first name is `name`, of package `origin`.
    pub fn sees(&self, of: Option<PackageId>, name: &str, origin: Option<PackageId>) -> bool {
        origin.is_none() || origin == of || self.find(of, name) == origin
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    package: About,
    #[serde(default)]
    dependencies: BTreeMap<Spanned<String>, Spanned<Dependency>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    name: Spanned<String>,
}

#[derive(Deserialize, Clone, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Dependency {
    path: Option<PathBuf>,
    git: Option<String>,
    rev: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Lock {
    version: u32,
    #[serde(default)]
    package: Vec<Locked>,
}

/// A dependency from git, with what its revision is.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
struct Locked {
    name: String,
    git: String,
    rev: String,
    commit: String,
    tree: String,
}

/// The version of the lock's form.
const LOCK_VERSION: u32 = 1;

/// A text as a string of TOML, whose escapes are those of JSON.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn lock_text(packages: &[Locked]) -> String {
    let mut out = String::from("# Made by nyala. It belongs into version control.\n");
    let _ = writeln!(out, "version = {LOCK_VERSION}");
    for Locked { name, git, rev, commit, tree } in packages {
        let (git, rev) = (quote(git), quote(rev));
        let _ = write!(
            out,
            "\n[[package]]\nname = \"{name}\"\ngit = {git}\nrev = {rev}\ncommit = \"{commit}\"\ntree = \"{tree}\"\n"
        );
    }
    out
}

/// Whether a text can be the name of a package: that of a module, which the compiler has no library of.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let (mut sources, mut sink) = (Sources::new(), Sink::default());
    let text = format!("mod {name} {{}}");
    nyala_syntax::parse(sources.add("name", text.clone()), &text, &mut sink);
    let is_module = !sink.has_errors() && !matches!(name, "self" | "super" | "Self");
    if !crate::tuning::is_name(name) || !is_module {
        return Err(format!("`{name}` cannot be the name of a package: it is no name of a module"));
    }
    if name == "prelude" || libraries::names().any(|library| library.split("::").next() == Some(name)) {
        return Err(format!(
            "`{name}` cannot be the name of a package: the compiler comes with a library of that name"
        ));
    }
    Ok(())
}

/// The folder of the root package of a program whose first file is `file`.
pub fn folder_of(file: &Path) -> Option<PathBuf> {
    let file = if file.as_os_str() == "-" { Path::new(".") } else { file.parent()? };
    let folder = if file.as_os_str().is_empty() { Path::new(".") } else { file };
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find(|f| f.join(MANIFEST).is_file()).map(Path::to_path_buf)
}

/// Where a package comes from.
#[derive(Clone, PartialEq, Eq)]
enum Origin {
    Folder(PathBuf),
    /// The address and the commit.
    Git(String, String),
}

impl Origin {
    fn shown(&self) -> String {
        match self {
            Origin::Folder(folder) => folder.display().to_string(),
            Origin::Git(url, commit) => format!("{url} at {commit}"),
        }
    }
}

/// What is known while packages are found.
struct Resolver<'a> {
    report: &'a mut Report,
    packages: Packages,
    /// Where each package comes from, and the place that named it first.
    origins: HashMap<String, (PackageId, Origin, Span)>,
    old: Vec<Locked>,
    new: Vec<Locked>,
    work: Vec<Pending>,
    locked: bool,
    offline: bool,
}

/// The error of what is reported.
struct Refused;

/// A package that is found, and whose manifest is not read yet.
struct Pending {
    id: PackageId,
    /// The folder that paths of dependencies do not leave, if it is a commit's.
    bounds: Option<PathBuf>,
}

/// The packages of the program of `trees`. What is wrong with their manifests is reported there.
pub(crate) fn find(trees: &mut Trees) -> Packages {
    let first = trees.files().given.first().map(|(name, _)| name.clone());
    match first.and_then(|name| folder_of(Path::new(&name))) {
        Some(folder) => {
            let options = trees.options.clone();
            at(&folder, &options, &mut trees.report)
        }
        None => Packages::default(),
    }
}

/// Finds the packages that the one in `folder` needs, and writes its lock if that does not fit.
pub fn at(folder: &Path, options: &Options, report: &mut Report) -> Packages {
    let n_errors = |report: &Report| report.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    let before = n_errors(report);
    let mut resolver = Resolver {
        report,
        packages: Packages::default(),
        origins: HashMap::new(),
        old: Vec::new(),
        new: Vec::new(),
        work: vec![Pending { id: 0, bounds: None }],
        locked: options.locked,
        offline: options.offline,
    };
    let lock = folder.join(LOCK);
    let mut has_lock = false;
    if lock.exists() {
        match resolver.read_toml::<Lock>(&lock) {
            Ok((read, file)) if read.version != LOCK_VERSION => {
                let message = format!("the lock has the form {}, known is {LOCK_VERSION}", read.version);
                let _ = resolver.refuse(bad_manifest::error(Span::new(file, 0, 0), &message));
            }
            Ok((read, _)) => (resolver.old, has_lock) = (read.package, true),
            Err(Refused) => {}
        }
    }
    let root = Package { name: String::new(), folder: folder.into(), dependencies: BTreeMap::new() };
    resolver.packages.all.push(root);
    let mut next = 0;
    while let Some(pending) = resolver.work.get(next) {
        let (id, bounds) = (pending.id, pending.bounds.clone());
        // What is refused is reported.
        let _ = resolver.read_package(id, bounds.as_deref());
        next += 1;
    }
    let Resolver { report, packages, old, mut new, .. } = resolver;
    new.sort_by(|a, b| (&a.name, &a.rev).cmp(&(&b.name, &b.rev)));
    let fits = if has_lock { new == old } else { new.is_empty() };
    if n_errors(report) > before || fits {
        return packages;
    }
    if options.locked {
        let message = format!("`{}` does not fit the manifests, and `--locked` keeps it", lock.display());
        report.sink.push(no_such_package::error(Span::NONE, message).hint("compile without `--locked`"));
    } else if let Err(e) = nyala_files::write(&lock, lock_text(&new).as_bytes()) {
        report.sink.push(cannot_write::file(&lock, e));
    }
    packages
}

impl Resolver<'_> {
    fn refuse(&mut self, diagnostic: Diagnostic) -> Refused {
        self.report.sink.push(diagnostic);
        Refused
    }

    fn read_toml<T: for<'a> Deserialize<'a>>(&mut self, path: &Path) -> Result<(T, FileId), Refused> {
        let text = match crate::files::read(path) {
            Ok(text) => text,
            Err(why) => return Err(self.refuse(crate::diagnostics::cannot_read::error(path, &why))),
        };
        let file = self.report.sources.add(path.display().to_string(), text.clone());
        toml::from_str(&text).map(|value| (value, file)).map_err(|e| {
            let span = e.span().unwrap_or(0..0);
            self.refuse(bad_manifest::error(Span::new(file, span.start, span.end), e.message()))
        })
    }

    /// Reads the manifest of a package, and finds its dependencies.
    fn read_package(&mut self, id: PackageId, bounds: Option<&Path>) -> Result<(), Refused> {
        let folder = self.packages.all[id].folder.clone();
        let (manifest, file) = self.read_toml::<Manifest>(&folder.join(MANIFEST))?;
        let place = |span: std::ops::Range<usize>| Span::new(file, span.start, span.end);
        let name = manifest.package.name;
        let name_at = place(name.span());
        let wanted = self.packages.all[id].name.clone();
        if let Err(why) = check_name(name.get_ref()) {
            return Err(self.refuse(bad_manifest::error(name_at, &why)));
        }
        if id == 0 {
            self.packages.all[0].name = name.get_ref().clone();
            self.origins.insert(name.into_inner(), (0, Origin::Folder(folder.clone()), name_at));
        } else if *name.get_ref() != wanted {
            let message = format!("the package is called `{}`, and is used as `{wanted}`", name.get_ref());
            return Err(self.refuse(bad_manifest::error(name_at, &message)));
        }
        for (name, dependency) in manifest.dependencies {
            let at = place(name.span());
            let span = place(dependency.span());
            let name = name.into_inner();
            if let Err(why) = check_name(&name) {
                self.report.sink.push(bad_manifest::error(at, &why));
                continue;
            }
            let found = match self.find_dependency(&name, dependency.get_ref(), &folder, bounds, span) {
                Ok(found) => found,
                Err(diagnostic) => {
                    self.report.sink.push(*diagnostic);
                    self.packages.lost.insert(name);
                    continue;
                }
            };
            let (origin, place, inner_bounds) = found;
            let known = match self.origins.get(&name) {
                Some((known, other, _)) if *other == origin => *known,
                Some((_, other, first)) => {
                    self.report.sink.push(package_twice::error(at, &name, &origin.shown(), *first, &other.shown()));
                    continue;
                }
                None if self.packages.all.len() >= MAX_PACKAGES => {
                    let message = format!("the program has more than {MAX_PACKAGES} packages");
                    return Err(self.refuse(bad_manifest::error(at, &message)));
                }
                None => {
                    let new = self.packages.all.len();
                    self.packages.all.push(Package {
                        name: name.clone(),
                        folder: place,
                        dependencies: BTreeMap::new(),
                    });
                    self.origins.insert(name.clone(), (new, origin, at));
                    self.work.push(Pending { id: new, bounds: inner_bounds });
                    new
                }
            };
            self.packages.all[id].dependencies.insert(name, known);
        }
        Ok(())
    }

    /// Where a dependency comes from, its folder, and the folder that its own paths do not leave.
    fn find_dependency(
        &mut self,
        name: &str,
        dependency: &Dependency,
        folder: &Path,
        bounds: Option<&Path>,
        span: Span,
    ) -> Result<(Origin, PathBuf, Option<PathBuf>), Box<Diagnostic>> {
        match dependency {
            Dependency { path: Some(path), git: None, rev: None } => {
                let place = folder.join(path);
                let found = place.canonicalize().ok().filter(|p| p.join(MANIFEST).is_file());
                let Some(found) = found else {
                    let message = format!("there is no package in `{}`", place.display());
                    return Err(Box::new(
                        no_such_package::error(span, message).hint(format!("it has no `{MANIFEST}`")),
                    ));
                };
                match bounds {
                    Some(bounds) if !found.starts_with(bounds) => {
                        let message = format!("the path `{}` leads out of the repository", path.display());
                        Err(Box::new(bad_manifest::error(span, &message)))
                    }
                    _ => Ok((Origin::Folder(found.clone()), found, bounds.map(Path::to_path_buf))),
                }
            }
            Dependency { path: None, git: Some(url), rev: Some(rev) } => {
                check_address(url).map_err(|why| Box::new(bad_manifest::error(span, &why)))?;
                if rev.is_empty() || rev.starts_with('-') || rev.contains("..") || rev.contains(char::is_whitespace) {
                    let why = format!("`{rev}` is no revision: name a commit, a tag or a branch");
                    return Err(Box::new(bad_manifest::error(span, &why)));
                }
                let of_name = self.old.iter().find(|l| l.name == name && l.git == *url);
                let old = of_name.filter(|l| l.rev == *rev);
                if self.locked && old.is_none() {
                    let message = match of_name {
                        Some(other) => format!("`{LOCK}` has `{name}` at `{}`, and not at `{rev}`", other.rev),
                        None => format!("`{LOCK}` does not have `{name}` from {url}"),
                    };
                    let hint = "`--locked` keeps the lock: compile without it to write another one";
                    return Err(Box::new(no_such_package::error(span, message).hint(hint)));
                }
                let fetched = fetch(name, url, rev, old, self.offline);
                let (commit, tree, place) = fetched.map_err(|why| Box::new(no_such_package::error(span, why)))?;
                let origin = Origin::Git(url.clone(), commit.clone());
                if self.new.iter().all(|l| l.name != name || l.rev != *rev) {
                    self.new.push(Locked { name: name.into(), git: url.clone(), rev: rev.clone(), commit, tree });
                }
                // Paths are compared with those of other packages, where links are followed.
                let place = place.canonicalize().unwrap_or(place);
                Ok((origin, place.clone(), Some(place)))
            }
            _ => {
                let why = "a dependency has a `path`, or `git` and `rev`";
                let hint = "as in `geo = { path = \"../geo\" }`, `geo = { git = \"https://…\", rev = \"v1\" }`";
                Err(Box::new(bad_manifest::error(span, why).hint(hint)))
            }
        }
    }
}

/// Only addresses of repositories: git knows some that run commands.
fn check_address(url: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let by_ssh = || {
        let (user, rest) = url.split_once('@')?;
        let (host, path) = rest.split_once(':')?;
        (!user.is_empty() && user.chars().chain(host.chars()).all(plain) && !host.starts_with('-') && !path.is_empty())
            .then_some(())
    };
    match url.split_once("://") {
        Some(("https" | "http" | "ssh" | "git" | "file", rest)) if !rest.is_empty() && !rest.starts_with('-') => Ok(()),
        Some(_) => Err(format!("`{url}` is no address of a repository: `https`, `ssh`, `git`, `file` are known")),
        None if by_ssh().is_some() => Ok(()),
        None => Err(format!("`{url}` is no address of a repository; one on this machine is `file:///…`")),
    }
}

/// A command of git, in a bare repository or in none, that runs nothing of anybody's.
fn git(repository: Option<&Path>) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"]);
    if let Some(repository) = repository {
        git.arg("--git-dir").arg(repository);
    }
    git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file").env("LC_ALL", "C");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"] {
        git.env_remove(variable);
    }
    git.stdin(Stdio::null());
    git
}

/// What a command of git says.
///
/// # Errors
/// That there is no git, or what it complains of.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(no_git)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).take(5).collect();
    Err(if lines.is_empty() { "git says nothing".into() } else { format!("git says: {}", lines.join("; ")) })
}

fn no_git(e: std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => "it needs the command `git`, which is not installed".into(),
        _ => format!("the command `git` does not start: {e}"),
    }
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The file that says that a commit's folder is whole: it has the hash of the tree.
const WHOLE: &str = ".tree";

/// The commit, the hash of its tree, and the folder with its files.
fn fetch(
    name: &str,
    url: &str,
    rev: &str,
    old: Option<&Locked>,
    offline: bool,
) -> Result<(String, String, PathBuf), String> {
    let cache = Cache::of_user("packages").ok_or("there is no folder for packages: `HOME` is not set")?;
    let folder = cache.folder().join(key(url));
    let failed = |why: String| format!("cannot get the package `{name}` from {url}: {why}");
    let at = |commit: &str| folder.join(commit);
    if let Some(old) = old {
        if !is_hash(&old.commit) || !is_hash(&old.tree) {
            return Err(format!("`{LOCK}` has no commit of `{name}`"));
        }
        // What was fetched once needs neither network nor git.
        if std::fs::read_to_string(at(&old.commit).join(WHOLE)).is_ok_and(|tree| tree == old.tree) {
            return Ok((old.commit.clone(), old.tree.clone(), at(&old.commit)));
        }
    }
    let wanted = old.map_or(rev, |old| &old.commit);
    std::fs::create_dir_all(&folder).map_err(|e| failed(e.to_string()))?;
    // Processes that want the same package wait for each other.
    let turn = std::fs::File::create(folder.join("turn")).and_then(|file| file.lock().map(|()| file));
    let _turn = turn.map_err(|e| failed(e.to_string()))?;
    let repository = folder.join("repository.git");
    if !repository.join("HEAD").exists() {
        output(git(None).args(["init", "--quiet", "--bare", "--template="]).arg(&repository)).map_err(failed)?;
    }
    let resolve = || -> Option<String> {
        let text = output(
            git(Some(&repository)).args(["rev-parse", "--verify", "--quiet"]).arg(format!("{wanted}^{{commit}}")),
        );
        let commit = String::from_utf8(text.ok()?).ok()?.trim().to_string();
        is_hash(&commit).then_some(commit)
    };
    // A branch or tag may have moved; a commit has not. Without a network, they are where they were.
    let mut commit = if is_hash(wanted) || offline { resolve() } else { None };
    if commit.is_none() {
        if offline {
            return Err(failed("it was not fetched before, and `--offline` forbids it now".into()));
        }
        let refs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        output(
            git(Some(&repository))
                .args(["fetch", "--quiet", "--no-recurse-submodules", "--no-auto-gc", "--"])
                .arg(url)
                .args(refs),
        )
        .map_err(failed)?;
        commit = resolve();
    }
    let Some(commit) = commit else {
        return Err(failed(format!("it has no revision `{wanted}` in a branch or tag")));
    };
    let tree =
        output(git(Some(&repository)).args(["rev-parse", "--verify", "--quiet"]).arg(format!("{commit}^{{tree}}")))
            .map_err(failed)?;
    let tree = String::from_utf8_lossy(&tree).trim().to_string();
    if let Some(old) = old.filter(|old| old.tree != tree) {
        return Err(failed(format!("commit {commit} has the tree {tree}, and not {} as in `{LOCK}`", old.tree)));
    }
    let place = at(&commit);
    if !std::fs::read_to_string(place.join(WHOLE)).is_ok_and(|found| found == tree) {
        extract(&repository, &commit, &tree, &folder, &place).map_err(failed)?;
    }
    Ok((commit, tree, place))
}

/// A name for the folder of what `text` identifies.
pub(crate) fn key(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(16).fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Writes the files of a commit that a package has. The folder gets its name at the end, so that it is whole.
fn extract(repository: &Path, commit: &str, tree: &str, folder: &Path, place: &Path) -> Result<(), String> {
    let listing = output(git(Some(repository)).args(["ls-tree", "-r", "-z", "--full-tree", commit]))?;
    let listing = String::from_utf8(listing).map_err(|_| "it has a file whose name is not UTF-8")?;
    let mut wanted = Vec::new();
    for entry in listing.split('\0').filter(|e| !e.is_empty()) {
        let Some((about, path)) = entry.split_once('\t') else { continue };
        let words: Vec<&str> = about.split(' ').collect();
        // No links, no submodules.
        let [_, "blob", hash] = words[..] else { continue };
        let is_file = words[0].starts_with("100");
        let path = Path::new(path);
        let is_plain = path.components().all(|c| matches!(c, Component::Normal(_)));
        let is_ours =
            path.extension().is_some_and(|e| e == "impala") || path.file_name().is_some_and(|n| n == MANIFEST);
        if is_file && is_plain && is_ours {
            wanted.push((hash.to_string(), path.to_path_buf()));
        }
    }
    if wanted.len() > MAX_FILES {
        return Err(format!("it has more than {MAX_FILES} files"));
    }
    let io = |e: std::io::Error| e.to_string();
    let fresh = tempfile::Builder::new().prefix("new-").tempdir_in(folder).map_err(io)?;
    let mut batch = git(Some(repository));
    let mut batch = batch
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(no_git)?;
    let (Some(mut ask), Some(answers)) = (batch.stdin.take(), batch.stdout.take()) else {
        return Err("git does not answer".into());
    };
    let mut answers = BufReader::new(answers);
    let mut n_bytes = 0;
    let mut copy = || -> Result<(), String> {
        for (hash, path) in &wanted {
            writeln!(ask, "{hash}").map_err(io)?;
            let mut head = String::new();
            answers.read_line(&mut head).map_err(io)?;
            let size: Option<u64> = head.trim().rsplit(' ').next().and_then(|n| n.parse().ok());
            let size = size.ok_or("git does not give a file of the commit")?;
            n_bytes += size;
            if n_bytes > MAX_BYTES {
                return Err(format!("its files have more than {} MiB", MAX_BYTES >> 20));
            }
            let mut bytes = Vec::new();
            answers.by_ref().take(size + 1).read_to_end(&mut bytes).map_err(io)?;
            bytes.truncate(size as usize);
            let file = fresh.path().join(path);
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent).map_err(io)?;
            }
            std::fs::write(file, bytes).map_err(io)?;
        }
        Ok(())
    };
    let copied = copy();
    drop(ask);
    let _ = batch.wait();
    copied?;
    std::fs::write(fresh.path().join(WHOLE), tree).map_err(io)?;
    // What is there is not whole.
    let _ = std::fs::remove_dir_all(place);
    std::fs::rename(fresh.path(), place).map_err(io)
}

/// The commit that a repository's `HEAD` means.
///
/// # Errors
/// Why it cannot be asked.
pub fn head_of(url: &str) -> Result<String, String> {
    check_address(url)?;
    let text = output(git(None).args(["ls-remote", "--exit-code", "--"]).arg(url).arg("HEAD"))?;
    let text = String::from_utf8_lossy(&text);
    let commit = text.split_whitespace().next().filter(|commit| is_hash(commit));
    commit.map(String::from).ok_or_else(|| format!("{url} has no HEAD"))
}

/// A manifest with one more dependency: `value` is what stands behind the `=`.
///
/// # Errors
/// Why there is none.
pub fn with_dependency(text: &str, name: &str, value: &str) -> Result<String, String> {
    let old: Manifest = toml::from_str(text).map_err(|e| e.message().to_string())?;
    if old.dependencies.keys().any(|known| known.get_ref() == name) {
        return Err(format!("`{name}` is a dependency already: change its line to have another revision or place"));
    }
    let line = format!("{name} = {value}\n");
    let mut new = String::new();
    let mut is_added = false;
    for old in text.split_inclusive('\n') {
        new.push_str(old);
        if !is_added && old.trim() == "[dependencies]" {
            if !old.ends_with('\n') {
                new.push('\n');
            }
            new.push_str(&line);
            is_added = true;
        }
    }
    if !is_added {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        let _ = write!(new, "\n[dependencies]\n{line}");
    }
    let read: Result<Manifest, _> = toml::from_str(&new);
    match read {
        Ok(read) if read.dependencies.len() == old.dependencies.len() + 1 => Ok(new),
        _ => Err(format!("write `{}` under `[dependencies]` yourself: the manifest has another form", line.trim())),
    }
}

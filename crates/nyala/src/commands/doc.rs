//! `nyala doc`: finds the files and libraries that are to be documented, and writes the pages.

use super::package::{self, Part};
use super::{FAILED, USAGE, show_all};
use nyala::doc::{self, Format, Source};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Sink, Sources, Span};
use nyala_driver::diagnostics::{cannot_read, cannot_write};
use nyala_driver::libraries;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Write reference pages from the comments and signatures of libraries
///
/// The comment directly above an item describes it. The first comment of a file, with an empty line behind it, describes the
/// file's module. A comment between empty lines is the heading of what follows. In comments, code is in backticks, or in
/// indented lines, or between fences; lists begin with `- ` or `1. `. Lines `//?` are shown as examples.
#[derive(clap::Args)]
pub struct Doc {
    /// Files, folders with all files in them, or embedded libraries such as `std`, `std::view`, `prelude`. Without any, it is the
    /// library of the package around this folder; outside of packages, all embedded libraries
    #[arg(value_name = "FILE|FOLDER|LIBRARY")]
    what: Vec<PathBuf>,
    /// Folder for the pages
    #[arg(short = 'o', value_name = "DIR", default_value = "doc")]
    out: PathBuf,
    /// Form of the pages
    #[arg(long, value_name = "FORM", value_enum, default_value = "html")]
    format: Format,
    /// Include what is `priv`
    #[arg(long)]
    private: bool,
    /// Print diagnostics as JSON on standard error, one object per line (docs/diagnostics.md)
    #[arg(long)]
    json: bool,
}

/// The files to document, and what is wrong with them.
#[derive(Default)]
struct Found {
    files: Vec<Source>,
    /// Paths of files, so that none is documented twice.
    places: HashSet<PathBuf>,
    errors: Vec<Diagnostic>,
}

impl Found {
    /// Adds embedded libraries by a name, or all if it is empty. Returns whether there are any.
    fn libraries(&mut self, name: &str) -> bool {
        let within =
            |library: &str| library.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        let wanted = |library: &str| name.is_empty() || within(library);
        let mut files: Vec<_> = libraries::all()
            .filter(|(library, ..)| wanted(library) || name == "std" && *library == "prelude")
            .collect();
        // The file that is named as its library comes first.
        files.sort_by_key(|(library, file, _)| {
            let own = library.rsplit("::").next() == Path::new(file).file_stem().and_then(|s| s.to_str());
            (*library, !own)
        });
        for (module, file, text) in &files {
            if self.places.insert(file.into()) {
                let (module, file, text) = (module.to_string(), file.to_string(), text.to_string());
                self.files.push(Source { module, file, text, shared: true });
            }
        }
        !files.is_empty()
    }

    fn file(&mut self, path: &Path, module: String) {
        if !self.places.insert(path.canonicalize().unwrap_or_else(|_| path.into())) {
            return;
        }
        match nyala_driver::files::read(path) {
            Ok(_) if path.to_str().is_some_and(nyala_driver::is_other) => self.errors.push(of_impala_only(path)),
            Ok(text) => self.files.push(Source { module, file: path.display().to_string(), text, shared: false }),
            Err(e) => self.errors.push(cannot_read::error(path, &e)),
        }
    }

    /// Adds all files in a folder; in that of a package, without its program.
    fn folder(&mut self, folder: &Path, is_package: bool) {
        let mut paths = Vec::new();
        if let Err(e) = super::test::collect(folder, &mut paths) {
            self.errors.push(cannot_read::error(folder, &e.to_string()));
        } else if paths.is_empty() {
            self.errors.push(cannot_read::error(folder, "it has no file `….impala`"));
        }
        paths.retain(|path| !path.to_str().is_some_and(nyala_driver::is_other));
        paths.retain(|path| !is_package || *path != folder.join("main.impala"));
        for path in paths {
            let inner = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
            let names: Vec<_> = inner.iter().map(|n| n.to_string_lossy()).collect();
            self.file(&path, names.join("::"));
        }
    }
}

/// Programs in DeepCPS and Staged-C have no pages.
fn of_impala_only(path: &Path) -> Diagnostic {
    let ending = path.extension().map_or(String::new(), |e| e.to_string_lossy().into_owned());
    let what = format!("{}: reference pages of files `.{ending}`", path.display());
    limitation::not_supported(Span::NONE, &what, "only files in Impala have pages")
}

impl Doc {
    pub fn run(&self) -> u8 {
        let mut found = Found::default();
        let is_in_package = nyala_driver::packages::folder_of(Path::new("-")).is_some();
        let mut what = self.what.clone();
        if what.is_empty() && is_in_package {
            match package::files(Part::Sources) {
                Ok(files) => what = files,
                Err(why) => return package::refuse(why),
            }
        } else if what.is_empty() {
            found.libraries("");
        }
        for path in &what {
            if path.is_dir() {
                found.folder(path, self.what.is_empty());
            } else if path.exists() || !path.to_str().is_some_and(|name| found.libraries(name)) {
                let module = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
                found.file(path, module);
            }
        }
        let (mut sources, mut sink) = (Sources::new(), Sink::default());
        found.errors.into_iter().for_each(|e| sink.push(e));
        let n_files = found.files.len();
        let reference = doc::read(found.files, self.private, &mut sources, &mut sink);
        let pages = reference.write(self.format);
        let index = self.out.join(pages.first().map_or("", |p| &p.0));
        if n_files > 0
            && let Err(e) = self.write(pages, &sources)
        {
            sink.push(*e);
        } else if n_files > 0 {
            let n = reference.n_pages();
            println!("{n} page{}: {}", if n == 1 { "" } else { "s" }, index.display());
        }
        show_all(&sink.diagnostics, &sources, self.json);
        match (sink.has_errors(), n_files) {
            (false, 0) => USAGE,
            (false, _) => 0,
            (true, _) => FAILED,
        }
    }

    fn write(&self, pages: Vec<(String, String)>, sources: &Sources) -> Result<(), Box<Diagnostic>> {
        std::fs::create_dir_all(&self.out).map_err(|e| Box::new(cannot_write::file(&self.out, e)))?;
        let read: HashSet<PathBuf> = sources.names().filter_map(|n| Path::new(n).canonicalize().ok()).collect();
        for (name, text) in pages {
            let path = self.out.join(name);
            if path.canonicalize().is_ok_and(|p| read.contains(&p)) {
                return Err(Box::new(cannot_write::source(&path)));
            }
            nyala_files::write(&path, text.as_bytes()).map_err(|e| Box::new(cannot_write::file(&path, e)))?;
        }
        Ok(())
    }
}

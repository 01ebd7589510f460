//! Finds libraries written in Impala: the prelude, and those that a program names, as in `use image::*;` or `use
//! std::text::*;` (`std/text.impala`). They are searched for beside the file, in packages, in the folders of `-L` and
//! `NYALA_PATH`, then among those embedded in the binary.

use crate::front::Files;
use crate::packages::PackageId;
use nyala_base::{Sink, Sources};
use nyala_sema::Exports;
use nyala_syntax::ast::ItemKind;
use std::path::{Path, PathBuf};

/// The name and text of the prelude, which is in scope in every program, unless `--no-prelude` is given.
pub const PRELUDE: (&str, &str) = ("<std>/prelude.impala", include_str!("../../../lib/std/src/prelude.impala"));

/// The libraries' names, file names and texts. Adjacent files of one name form one module.
const EMBEDDED: &[(&str, &str, &str)] = &[
    ("align", "<align>/align.impala", include_str!("../../../lib/align/src/align.impala")),
    ("align", "<align>/band.impala", include_str!("../../../lib/align/src/band.impala")),
    ("align", "<align>/edit.impala", include_str!("../../../lib/align/src/edit.impala")),
    ("align", "<align>/fasta.impala", include_str!("../../../lib/align/src/fasta.impala")),
    ("align", "<align>/linear.impala", include_str!("../../../lib/align/src/linear.impala")),
    ("align", "<align>/long.impala", include_str!("../../../lib/align/src/long.impala")),
    ("align", "<align>/many.impala", include_str!("../../../lib/align/src/many.impala")),
    ("align", "<align>/matrix.impala", include_str!("../../../lib/align/src/matrix.impala")),
    ("align", "<align>/score.impala", include_str!("../../../lib/align/src/score.impala")),
    ("align", "<align>/search.impala", include_str!("../../../lib/align/src/search.impala")),
    ("align", "<align>/trace.impala", include_str!("../../../lib/align/src/trace.impala")),
    ("align::device", "<align>/device.impala", include_str!("../../../lib/align/src/align/device.impala")),
    ("align::device", "<align>/stripes.impala", include_str!("../../../lib/align/src/align/stripes.impala")),
    ("align::gzip", "<align>/gzip.impala", include_str!("../../../lib/align/src/align/gzip.impala")),
    ("image", "<image>/border.impala", include_str!("../../../lib/image/src/border.impala")),
    ("image", "<image>/color.impala", include_str!("../../../lib/image/src/color.impala")),
    ("image", "<image>/filters.impala", include_str!("../../../lib/image/src/filters.impala")),
    ("image", "<image>/image.impala", include_str!("../../../lib/image/src/image.impala")),
    ("image", "<image>/multigrid.impala", include_str!("../../../lib/image/src/multigrid.impala")),
    ("image", "<image>/rank.impala", include_str!("../../../lib/image/src/rank.impala")),
    ("image", "<image>/resize.impala", include_str!("../../../lib/image/src/resize.impala")),
    ("image", "<image>/schedule.impala", include_str!("../../../lib/image/src/schedule.impala")),
    ("image", "<image>/stage.impala", include_str!("../../../lib/image/src/stage.impala")),
    ("image", "<image>/stencil.impala", include_str!("../../../lib/image/src/stencil.impala")),
    ("image::device", "<image>/device.impala", include_str!("../../../lib/image/src/image/device.impala")),
    ("mpi", "<mpi>/mpi.impala", include_str!("../../../lib/mpi/src/mpi.impala")),
    ("ray", "<ray>/build.impala", include_str!("../../../lib/ray/src/build.impala")),
    ("ray", "<ray>/bvh.impala", include_str!("../../../lib/ray/src/bvh.impala")),
    ("ray", "<ray>/linear.impala", include_str!("../../../lib/ray/src/linear.impala")),
    ("ray", "<ray>/merge.impala", include_str!("../../../lib/ray/src/merge.impala")),
    ("ray", "<ray>/order.impala", include_str!("../../../lib/ray/src/order.impala")),
    ("ray", "<ray>/packet.impala", include_str!("../../../lib/ray/src/packet.impala")),
    ("ray", "<ray>/quantized.impala", include_str!("../../../lib/ray/src/quantized.impala")),
    ("ray", "<ray>/ray.impala", include_str!("../../../lib/ray/src/ray.impala")),
    ("ray", "<ray>/rays.impala", include_str!("../../../lib/ray/src/rays.impala")),
    ("ray", "<ray>/refit.impala", include_str!("../../../lib/ray/src/refit.impala")),
    ("ray", "<ray>/split.impala", include_str!("../../../lib/ray/src/split.impala")),
    ("ray", "<ray>/trace.impala", include_str!("../../../lib/ray/src/trace.impala")),
    ("ray", "<ray>/tree.impala", include_str!("../../../lib/ray/src/tree.impala")),
    ("ray", "<ray>/triangle.impala", include_str!("../../../lib/ray/src/triangle.impala")),
    ("ray::device", "<ray>/device.impala", include_str!("../../../lib/ray/src/ray/device.impala")),
    ("std::atomic", "<std>/atomic.impala", include_str!("../../../lib/std/src/atomic.impala")),
    ("std::buffer", "<std>/buffer.impala", include_str!("../../../lib/std/src/buffer.impala")),
    ("std::decimal", "<std>/decimal.impala", include_str!("../../../lib/std/src/decimal.impala")),
    ("std::device", "<std>/device.impala", include_str!("../../../lib/std/src/device.impala")),
    ("std::files", "<std>/files.impala", include_str!("../../../lib/std/src/files.impala")),
    ("std::map", "<std>/map.impala", include_str!("../../../lib/std/src/map.impala")),
    ("std::nvidia", "<std>/nvidia.impala", include_str!("../../../lib/std/src/nvidia.impala")),
    ("std::pattern", "<std>/pattern.impala", include_str!("../../../lib/std/src/pattern.impala")),
    ("std::pattern::code", "<std>/pattern/code.impala", include_str!("../../../lib/std/src/pattern/code.impala")),
    (
        "std::pattern::program",
        "<std>/pattern/program.impala",
        include_str!("../../../lib/std/src/pattern/program.impala"),
    ),
    ("std::pattern::tables", "<std>/pattern/tables.impala", include_str!("../../../lib/std/src/pattern/tables.impala")),
    ("std::random", "<std>/random.impala", include_str!("../../../lib/std/src/random.impala")),
    ("std::reduce", "<std>/reduce.impala", include_str!("../../../lib/std/src/reduce.impala")),
    ("std::slice", "<std>/slice.impala", include_str!("../../../lib/std/src/slice.impala")),
    ("std::sort", "<std>/sort.impala", include_str!("../../../lib/std/src/sort.impala")),
    ("std::sort::lanes", "<std>/sort/lanes.impala", include_str!("../../../lib/std/src/sort/lanes.impala")),
    ("std::sweeps", "<std>/sweeps.impala", include_str!("../../../lib/std/src/sweeps.impala")),
    ("std::system", "<std>/system.impala", include_str!("../../../lib/std/src/system.impala")),
    ("std::target", "<std>/target.impala", include_str!("../../../lib/std/src/target.impala")),
    ("std::text", "<std>/text.impala", include_str!("../../../lib/std/src/text.impala")),
    ("std::tune", "<std>/tune.impala", include_str!("../../../lib/std/src/tune.impala")),
    ("std::view", "<std>/view.impala", include_str!("../../../lib/std/src/view.impala")),
];

/// The names of the embedded libraries and of the prelude.
pub fn embedded() -> impl Iterator<Item = &'static str> {
    std::iter::once("std (prelude)").chain(names())
}

/// The names of the embedded libraries that a program can name.
pub fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.chunk_by(|a, b| a.0 == b.0).map(|files| files[0].0)
}

/// The prelude and the embedded libraries: names, file names and texts. Adjacent files of one name form one module.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    std::iter::once(("prelude", PRELUDE.0, PRELUDE.1)).chain(EMBEDDED.iter().copied())
}

/// Names and texts of files.
type Texts = Vec<(String, String)>;

/// The library's files and its package, or the paths that were searched: `folders`, each of a package or none. The file `own`, which uses
/// the library, is not it: a program `image.impala` may use the library `image`.
pub fn find(
    library: &str,
    folders: &[(PathBuf, Option<PackageId>)],
    files: &Files,
    own: Option<&Path>,
) -> Result<(Texts, Option<PackageId>), Vec<String>> {
    let mut tried = Vec::new();
    for (folder, package) in folders {
        let path = folder.join(format!("{}.impala", library.replace("::", "/")));
        if own == Some(&*path) {
            continue;
        }
        if let Ok(text) = files.read(&path) {
            return Ok((vec![(path.display().to_string(), text)], *package));
        }
        tried.push(path.display().to_string());
    }
    let embedded: Vec<(String, String)> = EMBEDDED
        .iter()
        .filter(|(name, ..)| *name == library)
        .map(|(_, file, text)| (file.to_string(), text.to_string()))
        .collect();
    if embedded.is_empty() { Err(tried) } else { Ok((embedded, None)) }
}

/// Whether a file is the prelude, and the files that form one module with it, if it is a file of an embedded library in its
/// folder, `std/src/text.impala`, or one of several of a module in the folder within, `align/src/align/stripes.impala`.
pub fn siblings(path: &Path) -> Option<(bool, Vec<PathBuf>)> {
    let folder = path.parent()?;
    let is_within = !folder.ends_with("src");
    let sources = if is_within { folder.parent().filter(|f| f.ends_with("src"))? } else { folder };
    let library = sources.parent()?.file_name()?.to_str()?;
    let own = format!("<{library}>/{}", path.file_name()?.to_str()?);
    if own == PRELUDE.0 && !is_within {
        return Some((true, vec![path.into()]));
    }
    let is_module =
        |module: &str| if is_within { module.starts_with(&format!("{library}::")) } else { module == library };
    let (module, ..) = EMBEDDED.iter().find(|(module, file, _)| *file == own && is_module(module))?;
    let all = EMBEDDED.iter().filter(|(of, ..)| of == module).filter_map(|(_, file, _)| Path::new(file).file_name());
    let all: Vec<PathBuf> = all.map(|file| folder.join(file)).collect();
    (!is_within || all.len() > 1).then_some((false, all))
}

/// Limit on the files in folders of libraries that are read for a hint.
const MAX_FILES: usize = 1000;
/// Limit on the folders in one beside a program, which may be a user's home.
const MAX_DEPTH_BESIDE: u32 = 1;

/// Where a program finds libraries that do not come with the compiler, for hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelves {
    /// The folders of the program's files.
    pub beside: Vec<PathBuf>,
    /// Sources of packages, with the name of each.
    pub packages: Vec<(PathBuf, String)>,
    /// Folders with libraries of any name.
    pub folders: Vec<PathBuf>,
    /// The files of the program, which are no libraries.
    pub own: Vec<PathBuf>,
}

/// The names of all libraries: of those that are embedded, and those on the shelves.
pub fn exports(shelves: &Shelves) -> Vec<Exports> {
    let mut sources = Sources::new();
    let mut exports = |path: &str, name: &str, text: String| {
        let file = sources.add(name, text);
        let module = nyala_syntax::parse(file, sources.text(file), &mut Sink::default());
        // Files beside a program may be programs of their own.
        if module.items.iter().any(|i| matches!(&i.kind, ItemKind::Fn(f) if &*f.name.text == "main")) {
            return Vec::new();
        }
        Exports::of(path, &module)
    };
    let embedded = EMBEDDED.iter().flat_map(|(path, name, text)| exports(path, name, text.to_string()));
    let mut all: Vec<Exports> = embedded.collect();
    // Folders, what their libraries' names begin with, the only name of their entries if there is one, and how deep they go.
    let mut work: Vec<(PathBuf, String, Option<&str>, u32)> = Vec::new();
    work.extend(shelves.beside.iter().map(|f| (f.clone(), String::new(), None, MAX_DEPTH_BESIDE)));
    work.extend(shelves.packages.iter().map(|(f, name)| (f.clone(), String::new(), Some(&**name), u32::MAX)));
    work.extend(shelves.folders.iter().map(|f| (f.clone(), String::new(), None, u32::MAX)));
    let mut seen: Vec<PathBuf> = shelves.own.clone();
    let mut n_files = 0;
    while let Some((folder, prefix, only, depth)) = work.pop() {
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
        let mut entries: Vec<_> = entries.filter(|e| !e.file_name().as_encoded_bytes().starts_with(b".")).collect();
        entries.sort_by_key(std::fs::DirEntry::path);
        for entry in entries {
            let path = folder.join(entry.file_name());
            let Some(name) = path.file_stem().and_then(|n| n.to_str()) else { continue };
            let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !is_name || only.is_some_and(|only| only != name) {
                continue;
            }
            let library = format!("{prefix}{name}");
            n_files += 1;
            if n_files > MAX_FILES {
                return all;
            }
            // A link may lead back to a folder around it.
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                if depth > 0 {
                    work.push((path, library + "::", None, depth - 1));
                }
            } else if path.extension().is_some_and(|e| e == "impala")
                && let identity = crate::files::identity(&path)
                && !seen.contains(&identity)
                && let Ok(text) = crate::files::read(&path)
            {
                seen.push(identity);
                let file = path.display().to_string();
                for mut found in exports(&library, &file, text) {
                    found.file = Some(file.clone());
                    all.push(found);
                }
            }
        }
    }
    all
}

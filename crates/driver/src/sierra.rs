//! Programs in Sierra, files `.sierra`, and in VecImp, files `.vecimp`: they become part of the graph that the program's Impala becomes.
//!
//! Separate, so that the front end of Impala knows of them no more than that they are not its own.

use crate::Options;
use crate::report::{Failed, Report};
use nyala_base::diagnostics::limitation;
use nyala_base::{FileId, Id, Sink, Sources, Span};
use nyala_ir::World;
use nyala_sierra::Callable;
use std::path::{Path, PathBuf};

/// Whether a file of that name is a program in Sierra, or in VecImp.
pub fn is_sierra(name: &str) -> bool {
    nyala_sierra::ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether the file is a program in Sierra. A second one of its name has the entries of its tests, in Impala.
pub(crate) fn is_program(sources: &Sources, file: FileId) -> bool {
    let name = sources.name(file);
    is_sierra(name) && sources.names().position(|n| n == name) == Some(file.idx())
}

/// The lanes of a gang where nothing depends on them.
const DEFAULT_GANG: u32 = 8;

/// The lanes of a gang of ISPC's programs: as many floats as a register of the processor holds.
fn gang(options: &Options) -> u32 {
    options.lanes.unwrap_or(options.target().vector_bits / 32)
}

fn files(sources: &Sources) -> Vec<FileId> {
    (0..sources.names().count()).map(FileId::from_idx).filter(|&file| is_program(sources, file)).collect()
}

/// Limit on the headers of a program.
const MAX_HEADERS: usize = 1000;

/// Adds the headers that a file includes, and those that they include. Those that cannot be read are reported where they are needed.
pub(crate) fn add_headers(sources: &mut Sources, file: FileId, read: &dyn Fn(&Path) -> Result<String, String>) {
    let (library, text) = nyala_sierra::ISPC_LIBRARY;
    if sources.name(file).ends_with(nyala_sierra::ISPC_ENDING) && !sources.names().any(|known| known == library) {
        sources.add(library, text);
    }
    let mut open = vec![file];
    let mut n = 0;
    while let Some(file) = open.pop() {
        let includer = sources.name(file);
        let headers = nyala_sierra::preprocess::headers(sources.text(file));
        let paths: Vec<PathBuf> = headers.map(|h| nyala_sierra::preprocess::header_path(includer, h)).collect();
        for path in paths {
            let name = path.to_string_lossy().into_owned();
            if n >= MAX_HEADERS || is_sierra(&name) || sources.names().any(|known| known == name) {
                continue;
            }
            n += 1;
            if let Ok(text) = read(&path) {
                open.push(sources.add(name, text));
            }
        }
    }
}

/// The functions that other code can call, with their lines.
pub(crate) fn callables(name: &str, text: &str) -> Vec<(usize, Callable)> {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    add_headers(&mut sources, file, &crate::files::read);
    // Faults are reported when the program is compiled.
    let callables = nyala_sierra::lower(
        &sources,
        &files(&sources),
        false,
        DEFAULT_GANG,
        false,
        &mut World::new(),
        &mut Sink::default(),
    );
    let own = callables.callables.into_iter().filter(|c| c.place.file == file);
    own.map(|c| (sources.line_col(c.place).0, c)).collect()
}

/// The header of a program that has no functions in Impala: the macro `guard` keeps it from being read twice.
pub(crate) fn header(report: &Report, options: &Options, guard: &str) -> Option<String> {
    let files = files(&report.sources);
    if files.is_empty() {
        return None;
    }
    let mut sink = Sink::default();
    let found = nyala_sierra::lower(&report.sources, &files, false, gang(options), false, &mut World::new(), &mut sink);
    Some(format!("#ifndef {guard}\n#define {guard}\n\n{}\n#endif\n", found.header))
}

pub(crate) fn has_files(report: &Report) -> bool {
    !files(&report.sources).is_empty()
}

/// The lanes of the program's gangs.
pub(crate) fn lanes(options: &Options) -> u32 {
    gang(options)
}

/// Reports what is wrong with grammar, names and types.
pub(crate) fn check(report: &mut Report, options: &Options) {
    let files = files(&report.sources);
    if !files.is_empty() {
        let gang = gang(options);
        nyala_sierra::lower(
            &report.sources,
            &files,
            false,
            gang,
            options.target().facts().masks,
            &mut World::new(),
            &mut report.sink,
        );
    }
}

/// Adds what a program has in Sierra to the graph of what it has in Impala.
pub(crate) fn lower(report: &mut Report, options: &Options, world: &mut World) {
    let files = files(&report.sources);
    if !files.is_empty() {
        let has_masks = options.target().facts().masks;
        nyala_sierra::lower(&report.sources, &files, options.wrap, gang(options), has_masks, world, &mut report.sink);
    }
}

/// An error if the program has a file in Sierra, of which there is no `what`, in the plural.
pub(crate) fn only_impala(report: &mut Report, what: &str) -> Result<(), Failed> {
    match files(&report.sources).first() {
        None => Ok(()),
        Some(&file) => {
            let hint = "see what becomes of the program with `nyala emit --stage residual`";
            Err(report.report(limitation::not_supported(Span::new(file, 0, 0), what, hint)))
        }
    }
}

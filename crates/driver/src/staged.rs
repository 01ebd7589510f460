//! Programs in DeepCPS and Staged-C, files `.deepcps` and `.stagedc`: what is left of one after its early stages becomes the graph
//! that an Impala program would.
//!
//! Separate, so that the front end of Impala knows of them no more than that they are not its own.

pub(crate) mod compiled;

use crate::Options;
use crate::report::{Failed, Report};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Id, Sink, Sources, Span};
use nyala_ir::World;
pub use nyala_staging::names::Names;
use nyala_staging::program::{Callable, Program};
use nyala_staging::site::Site;
use nyala_staging::{Limits, evaluate, lower as residual};
use std::cell::OnceCell;
use std::sync::Arc;

pub use nyala_staging::is_staged;

fn files(report: &Report) -> Vec<FileId> {
    let n = report.sources.names().count();
    (0..n).map(FileId::from_idx).filter(|&file| is_program(&report.sources, file)).collect()
}

/// Whether the file is a program in DeepCPS or Staged-C. A second one of its name has the entries of its tests, in Impala.
pub(crate) fn is_program(sources: &Sources, file: FileId) -> bool {
    let name = sources.name(file);
    is_staged(name) && sources.names().position(|n| n == name) == Some(file.idx())
}

/// The functions that other code can call, with their lines.
pub(crate) fn callables(name: &str, text: &str) -> Vec<(usize, Callable)> {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    // Faults are reported when the program is compiled.
    let programs = nyala_staging::read(&sources, &[file], &mut Sink::default());
    let callables = programs.into_iter().flatten().flat_map(|mut p| p.callables());
    let line = |c: &Callable| sources.line_col(c.place).0;
    callables.map(|c| (line(&c), c)).collect()
}

/// The programs of the files, none if something is wrong with grammar, names and types, which is reported.
pub(crate) fn check(report: &mut Report) -> Vec<Program> {
    nyala_staging::read(&report.sources, &files(report), &mut report.sink).unwrap_or_default()
}

/// Whether files of that name have a canonical form: those in Impala and Staged-C.
pub fn has_form(name: &str) -> bool {
    !crate::is_other(name) || name.ends_with(".stagedc")
}

/// The canonical form of a file in Staged-C.
///
/// # Errors
/// The text does not follow the grammar.
pub fn format(file: FileId, text: &str) -> Result<String, Vec<Diagnostic>> {
    nyala_staging::format::format(file, text)
}

/// What names mean in a program's files of these languages.
pub fn names(sources: &Sources) -> Names {
    let all = (0..sources.names().count()).map(FileId::from_idx);
    nyala_staging::names(sources, &all.filter(|&file| is_program(sources, file)).collect::<Vec<FileId>>())
}

/// An error if the program is in DeepCPS or Staged-C, of which there is no `what`, in the plural.
pub(crate) fn only_impala(report: &mut Report, what: &str) -> Result<(), Failed> {
    match files(report).first() {
        None => Ok(()),
        Some(&file) => {
            let hint = "see what is left of the program with `nyala emit --stage residual`";
            Err(report.report(limitation::not_supported(Span::new(file, 0, 0), what, hint)))
        }
    }
}

/// Adds programs in DeepCPS or Staged-C to the graph of what there is in Impala.
pub(crate) fn lower(programs: &[Program], report: &mut Report, options: &Options, world: &mut World) {
    let mut sites: Vec<Arc<Site>> = Vec::new();
    let running = OnceCell::new();
    for program in programs {
        let left = evaluate::evaluate(program.clone(), Limits::times(options.pe_budget), &mut report.sink);
        if let Some(mut left) = left {
            let mut number = |site: Site| {
                let running = running.get_or_init(|| compiled::Running::new(options, &report.sources));
                let site = Arc::new(site);
                sites.push(site.clone());
                compiled::register(running, site)
            };
            let no_code = residual::lower(&mut left, world, &mut number, &mut report.sink);
            report.no_code = report.no_code.take().or(no_code);
        }
    }
    compiled::check(&sites, world, &mut report.sink);
}

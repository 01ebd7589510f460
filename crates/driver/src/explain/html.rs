//! The report as one self-contained page: source and residual program side by side, with links between lines of both
//! that correspond. `page.html` is the page; this file makes its data.

use super::{Explained, Report};
use nyala_base::FileId;
use serde::Serialize;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("page.html");
/// Limit on the lines of the residual program in a page; browsers are slow with many more.
const MAX_LINES: usize = 20_000;

#[derive(Serialize)]
struct Data<'a> {
    report: &'a Report,
    sources: Vec<SourceText<'a>>,
    residual: Vec<ResidualLine<'a>>,
    /// The number of lines of the whole residual program.
    lines: usize,
}

#[derive(Serialize)]
struct SourceText<'a> {
    name: &'a str,
    text: Vec<&'a str>,
}

#[derive(Serialize)]
struct ResidualLine<'a> {
    text: &'a str,
    /// The index of the report's instance that the line belongs to.
    instance: u32,
    /// The indices and lines of sources that the line comes from.
    from: Vec<(usize, usize)>,
}

/// The page as HTML. `files` are the names of the program's own files, which come first.
pub fn page(explained: &Explained, files: &[String]) -> String {
    let Explained { report, residual, record } = explained;
    let sources = &residual.report.sources;
    let (text, lines) = nyala_ir::print::print_lines(&residual.world);
    let shown = &lines[..lines.len().min(MAX_LINES)];
    let mut used: BTreeSet<&str> = shown.iter().flat_map(|l| &l.origins).map(|o| sources.name(o.file)).collect();
    used.extend(report.sites.iter().filter_map(|s| Some(s.place.as_ref()?.file.as_str())));
    let mut names: Vec<&str> = files.iter().map(String::as_str).collect();
    names.extend(used.into_iter().filter(|n| !files.iter().any(|f| f == n)));
    let id = |name: &str| sources.names().position(|n| n == name);
    let idx = |file: FileId| names.iter().position(|n| *n == sources.name(file));
    let source_texts = names.iter().map(|&name| {
        let text = id(name).map_or("", |i| sources.text(FileId(i as u32)));
        SourceText { name, text: text.lines().collect() }
    });
    let residual_lines = shown.iter().map(|line| {
        let mut from: Vec<(usize, usize)> =
            line.origins.iter().filter_map(|&o| Some((idx(o.file)?, sources.line(o)))).collect();
        from.sort_unstable();
        from.dedup();
        let instance = line.cont.map_or(0, |k| record.instance_of[k]);
        ResidualLine { text: &text[line.range.clone()], instance, from }
    });
    let data = Data { report, sources: source_texts.collect(), residual: residual_lines.collect(), lines: lines.len() };
    // No string may end the element that holds the data.
    let json = serde_json::to_string(&data).unwrap_or_default().replace("</", "<\\/").replace("<!--", "<\\u0021--");
    PAGE.replacen("/*DATA*/", &json, 1)
}

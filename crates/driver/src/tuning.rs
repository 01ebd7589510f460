//! `nyala tune`: the values that statics may have, and the file beside the program with the fastest ones. Separate from
//! the search, its picture and the measured processes, which are the command's (`crates/nyala/src/commands/tune.rs`), because
//! whatever compiles reads the file.
//!
//! **Candidates** are listed in the program, in a line `//! tune NAME: VALUE, VALUE, …` of one of its files, so that a
//! user only has to know `nyala tune prog.impala`. `-D NAME=VALUE,VALUE` replaces such a line; with one value, it fixes
//! the static. NAME is a top-level static, which `-D` can replace. VALUE is an expression (a number, or the name of a
//! function, such as a schedule), or a range of integers: `1..8` (with both ends), `64..1024*2`, `0..64+16`. The value
//! as written is always the first candidate, with which the others are compared.
//!
//! **Measurement**: each variant is an executable, made by `nyala build`, that runs in a process of its own. A variant
//! that crashes, does not end or cannot be compiled is listed as left out. Its time is the one that the program reports
//! by `std::tune` or, if it reports none, the wall time of its process. Its standard output and exit code must be those
//! of the program as written.
//!
//! **The search** is the command's: coordinate descent from the values as written, then from randomly drawn variants,
//! until all are tried or six tenths of the time are over. Then the best few run in turns with the program as written,
//! fewer from round to round. A variant that is not clearly faster than the program as written is not chosen.
//!
//! **The result** is stored in `prog.tune` beside `prog.impala`: the chosen values for each CPU, by LLVM's name, and for each
//! device that `--device` names, since kernels want other values than loops:
//!
//! ```text
//! [sapphirerapids]
//! # 2026-11-22, 2 processors: 12.3 ms, as written 20.1 ms
//! TILE = 128
//! ```
//!
//! Every verb that compiles for this machine's CPU and the same device uses these values, unless `-D` gives others, and reports it.
//! `--no-tune` ignores them, as `nyala test` always does. If the file cannot be read, or no longer fits the program,
//! this is a warning.

use crate::Device;
use crate::diagnostics::{bad_candidates, bad_tune_file, no_candidates, no_such_static, tuned_values};
use crate::front::{FrontEnd, Trees};
use crate::report::Failed;
use nyala_base::{Diagnostic, FileId, Severity, Sink, Span};
use nyala_ir::lanes::{PLATFORM_NUMBERS, PLATFORMS};
use nyala_syntax::ast;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A static, and its candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the static.
    pub name: String,
    /// At least two expressions; the first is the one in the program.
    pub values: Vec<String>,
}

/// Limit on the values of a list.
const MAX_VALUES: usize = 1000;

/// The values of a list of candidates, each once, with ranges expanded.
pub fn parse_values(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    for item in split_at_commas(text) {
        let item = item.trim();
        if item.is_empty() {
            return Err("a value is empty".into());
        }
        let new = match item.split_once("..") {
            Some((from, rest)) if !from.contains(['(', '[', '{', '"']) => range(item, from, rest)?,
            _ => vec![item.to_string()],
        };
        for value in new {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.len() > MAX_VALUES {
            return Err(format!("more than {MAX_VALUES} values"));
        }
    }
    Ok(values)
}

fn range(item: &str, from: &str, rest: &str) -> Result<Vec<String>, String> {
    let (to, step) = match rest.find(['*', '+']) {
        Some(i) => (&rest[..i], Some((rest.as_bytes()[i], &rest[i + 1..]))),
        None => (rest, None),
    };
    let number = |text: &str| {
        text.trim()
            .parse::<i64>()
            .map_err(|_| format!("`{item}` is no range of integers such as `1..8` or `64..1024*2`"))
    };
    let (from, to) = (number(from)?, number(to)?);
    let (kind, by) = match step {
        Some((kind, by)) => (kind, number(by)?),
        None => (b'+', 1),
    };
    if kind == b'+' && by < 1 || kind == b'*' && (by < 2 || from < 1) {
        return Err(format!("`{item}` does not grow"));
    }
    if from > to {
        return Err(format!("`{item}` is empty"));
    }
    let mut values = Vec::new();
    let mut next = Some(from);
    while let Some(value) = next.filter(|v| *v <= to) {
        values.push(value.to_string());
        if values.len() > MAX_VALUES {
            return Err(format!("more than {MAX_VALUES} values"));
        }
        next = if kind == b'*' { value.checked_mul(by) } else { value.checked_add(by) };
    }
    Ok(values)
}

/// Splits a text at commas outside of brackets, strings and characters.
fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0i32);
    for (i, c) in unquoted(text) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The characters outside of strings and character literals, with their places.
pub(crate) fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().filter(move |&(_, c)| {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, _) => return true,
        }
        false
    })
}

/// Whether a text can be the name of a `static`.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The rest of each line that begins with `//! tune`, with its range of bytes.
fn candidate_lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1));
    starts.filter_map(|start| {
        let line = text[start..].lines().next()?.trim_end();
        let rest = line.trim_start().strip_prefix("//!")?.trim_start().strip_prefix("tune")?;
        let is_own_word = rest.is_empty() || rest.starts_with([' ', '\t', ':']);
        let list = rest.trim_start();
        let end = start + line.len();
        is_own_word.then_some((end - list.len()..end, list))
    })
}

/// The indices of the top-level static of this name: of its module, and among the module's items.
pub(crate) fn find_static(modules: &[Arc<ast::Module>], name: &str) -> Option<(usize, usize)> {
    let is_it = |i: &ast::Item| matches!(&i.kind, ast::ItemKind::Static(s) if *s.name.text == *name);
    modules.iter().enumerate().find_map(|(m, module)| Some((m, module.items.iter().position(is_it)?)))
}

/// An existing static with a name similar to `name`.
pub(crate) fn similar_static<'a>(modules: &'a [Arc<ast::Module>], name: &str) -> Option<&'a str> {
    let statics = modules.iter().flat_map(|m| &m.items).filter_map(|i| match &i.kind {
        ast::ItemKind::Static(s) => Some(&*s.name.text),
        _ => None,
    });
    nyala_sema::closest(name, statics)
}

/// The space of a search: the statics with several values, and the statics with one value, with that value.
pub type Space = (Vec<Parameter>, Vec<(String, String)>);

impl Trees {
    /// The candidates of the program. `given` are names and lists of `-D`, which replace the program's.
    pub fn candidates(mut self, given: &[(String, String)]) -> Result<Space, Failed> {
        let mut lists: Vec<(String, Span, Result<Vec<String>, String>)> = Vec::new();
        for (name, text) in given {
            let file = self.report.sources.add(format!("<-D {name}>"), text.clone());
            lists.push((name.clone(), Span::new(file, 0, text.len()), parse_values(text)));
        }
        let is_given = |name: &str| given.iter().any(|g| g.0 == name);
        for file in self.program().iter().filter_map(|m| m.file) {
            for (place, text) in candidate_lines(self.report.sources.text(file)) {
                let (name, list) = match text.split_once(':') {
                    Some((name, list)) if is_name(name.trim()) => (name.trim(), parse_values(list)),
                    _ => ("", Err("expected `//! tune NAME: VALUE, VALUE, …`".into())),
                };
                if !is_given(name) {
                    lists.push((name.into(), Span::new(file, place.start, place.end), list));
                }
            }
        }
        let (mut parameters, mut fixed) = (Vec::<Parameter>::new(), Vec::new());
        for (name, span, list) in lists {
            let mut list = match list {
                Ok(list) => list,
                Err(why) => {
                    self.report.sink.push(bad_candidates::error(span, &why));
                    continue;
                }
            };
            if parameters.iter().any(|p| p.name == name) {
                self.report.sink.push(bad_candidates::error(span, &format!("`{name}` has candidates already")));
                continue;
            }
            let Some((m, item)) = find_static(self.all(), &name) else {
                let similar = similar_static(self.all(), &name);
                self.report.sink.push(no_such_static::error(span, &name, &list[0], similar));
                continue;
            };
            if is_given(&name) && list.len() == 1 {
                fixed.push((name, list.remove(0)));
                continue;
            }
            let module = &self.all()[m];
            let init = match &module.items[item].kind {
                ast::ItemKind::Static(s) => s.init.map(|init| module[init].span),
                _ => None,
            };
            let Some(init) = init else {
                self.report
                    .sink
                    .push(bad_candidates::error(span, &format!("`{name}` has no initializer to compare them with")));
                continue;
            };
            let written = &self.report.sources.text(init.file)[init.lo as usize..init.hi as usize];
            let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
            list.retain(|v| *v != written);
            if !list.is_empty() {
                list.insert(0, written);
                parameters.push(Parameter { name, values: list });
            }
        }
        if parameters.is_empty() && !self.report.sink.has_errors() {
            self.report.sink.push(no_candidates::error());
        }
        let options = self.options.clone();
        self.report.checked(&options, Some((parameters, fixed)))
    }

    /// Replaces the initializers of statics by tuned values. Returns the file with these, if any was used.
    pub(crate) fn define_tuned(&mut self) -> Option<FileId> {
        let target = self.options.target();
        let native = target.is_native && target.cpu.is_none() && self.options.more_cpus.is_empty();
        let path = self.options.tuned.clone().filter(|_| native)?;
        let shown = path.display().to_string();
        let text = match crate::files::read(&path) {
            Ok(text) => text,
            Err(_) if !path.exists() => return None,
            Err(e) => {
                self.report.sink.push(bad_tune_file::warning(Span::NONE, format!("cannot read `{shown}`: {e}")));
                return None;
            }
        };
        let file = self.report.sources.add(&shown, text.clone());
        let sections = match sections(&text) {
            Ok(sections) => sections,
            Err(place) => {
                let span = Span::new(file, place.start, place.end);
                self.report
                    .sink
                    .push(bad_tune_file::warning(span, "expected `[MACHINE]`, `NAME = VALUE` or `# comment`".into()));
                return None;
            }
        };
        let machine = self.machine();
        let section = sections.into_iter().find(|s| s.machine == machine)?;
        let mut used = Vec::new();
        for (name, place) in section.values {
            if self.options.defines.iter().any(|d| d.0 == name) {
                continue;
            }
            let span = Span::new(file, place.start, place.end);
            let Some((m, item)) = find_static(self.all(), name) else {
                let warning =
                    bad_tune_file::warning(span, format!("the program has no top-level static `{name}` any more"));
                self.report.sink.push(warning.hint_similar(similar_static(self.all(), name)));
                continue;
            };
            // The expression has its place in that file, so that errors point there.
            let value = &text[place];
            let alone = " ".repeat(span.lo as usize) + value;
            let module = Arc::make_mut(&mut self.modules_mut()[m]);
            let was_broken = module.broken;
            let mut sink = Sink::default();
            let init = nyala_syntax::parse_expr(file, &alone, module, &mut sink);
            module.broken = was_broken;
            match (init, &mut module.items[item].kind) {
                (Some(init), ast::ItemKind::Static(s)) if !sink.has_errors() => {
                    s.init = Some(init);
                    used.push(format!("{name} = {value}"));
                }
                _ => self.report.sink.push(bad_tune_file::warning(span, format!("`{value}` is no expression"))),
            }
        }
        if used.is_empty() {
            return None;
        }
        self.report.sink.push(tuned_values::info(&used.join(", "), &shown));
        Some(file)
    }
}

/// A warning to replace the errors of a program, if it only has them because of its tuned values.
pub(crate) fn blames(front: &FrontEnd) -> Option<Diagnostic> {
    let path = front.options.tuned.as_ref()?;
    let error = front.report.sink.diagnostics.iter().find(|d| d.severity == Severity::Error)?;
    let message = format!("the values in `{}` do not fit the program any more: {}", path.display(), error.message);
    Some(bad_tune_file::warning(Span::NONE, message))
}

/// Removes warnings of unused items that are used by other candidates of a static.
pub(crate) fn forgive_candidates(front: &mut FrontEnd) {
    let mut lists = String::new();
    for file in front.trees().program().iter().filter_map(|m| m.file) {
        candidate_lines(front.report.sources.text(file)).for_each(|(_, list)| lists += &format!("{list}\n"));
    }
    if lists.is_empty() {
        return;
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = lists.split(|c| !is_word(c)).collect();
    let sources = &front.report.sources;
    front.report.sink.diagnostics.retain(|d| {
        let span = d.primary.span;
        let name = sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or("");
        d.code != "unused-name" || !words.contains(&name)
    });
}

/// The machine that values are found for: this one's CPU and, if kernels run on one device, the name of that.
pub fn machine(device: Device) -> String {
    let cpu = nyala_gen_llvm::host_cpu();
    let (platform, number) = match device {
        Device::Own => return cpu,
        Device::Host => return format!("{cpu}, host"),
        Device::One(platform, number) => (platform as usize, number),
    };
    let name = PLATFORM_NUMBERS.get(platform).and_then(|&n| nyala_runtime::device_name(n as i32, number as usize));
    format!("{cpu}, {}: {}", PLATFORMS.get(platform).unwrap_or(&"device"), name.as_deref().unwrap_or("missing"))
}

/// The path of the file with tuned values, beside the program's first file.
pub fn file_of(program: &Path) -> PathBuf {
    program.with_extension("tune")
}

/// The section of a file for one machine.
struct Section<'a> {
    machine: &'a str,
    /// The range of the section, with its heading.
    text: Range<usize>,
    /// The names, and the ranges of their values.
    values: Vec<(&'a str, Range<usize>)>,
}

/// The sections of a file, or the range where it is broken.
fn sections(text: &str) -> Result<Vec<Section<'_>>, Range<usize>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let place = start..start + line.trim_end().len();
        let line = line.trim();
        if let Some(machine) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            sections.push(Section { machine, text: start..at, values: Vec::new() });
            continue;
        }
        if let Some(last) = sections.last_mut() {
            last.text.end = at;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (Some(section), Some((name, value))) = (sections.last_mut(), line.split_once('=')) else {
            return Err(place);
        };
        let (name, value) = (name.trim(), value.trim());
        if !is_name(name) || value.is_empty() {
            return Err(place);
        }
        section.values.push((name, place.end - value.len()..place.end));
    }
    Ok(sections)
}

const HEADING: &str = "\
# The fastest values of statics that `nyala tune` has found, for each CPU and device. Other `nyala` commands use them when they
# compile for this machine's CPU and the same `--device`; `--no-tune` leaves them. Values may be changed, sections deleted.
";

/// The text of a file with a new section for a machine. If `old` is broken, its other sections are lost.
pub fn with_section(old: &str, machine: &str, comments: &[String], values: &[(&str, &str)]) -> String {
    let mut text = String::from(HEADING);
    let kept = sections(old).unwrap_or_default();
    for section in kept.iter().filter(|s| s.machine != machine) {
        text += &format!("\n{}\n", old[section.text.clone()].trim_end());
    }
    text += &format!("\n[{machine}]\n");
    comments.iter().for_each(|c| text += &format!("# {c}\n"));
    values.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_values() {
        let ok = |text: &str| parse_values(text).unwrap().join(" | ");
        assert_eq!(ok("8, 16,32"), "8 | 16 | 32");
        assert_eq!(ok("64..1024*2"), "64 | 128 | 256 | 512 | 1024");
        assert_eq!(ok("1..4, 3, 0..20+8, -1"), "1 | 2 | 3 | 4 | 0 | 8 | 16 | -1");
        assert_eq!(ok("f(1, 2), [0, .. 3], \"a,\\\"b\", ','"), "f(1, 2) | [0, .. 3] | \"a,\\\"b\" | ','");
        assert_eq!(ok("-4..-2"), "-4 | -3 | -2");
        assert_eq!(ok("1..9223372036854775807*1000000000000"), "1 | 1000000000000");
        let error = |text: &str| parse_values(text).unwrap_err();
        assert_eq!(error("1, , 2"), "a value is empty");
        assert_eq!(error(""), "a value is empty");
        assert_eq!(error("4..1"), "`4..1` is empty");
        assert_eq!(error("0..8*2"), "`0..8*2` does not grow");
        assert_eq!(error("1..8+0"), "`1..8+0` does not grow");
        assert!(error("a..b").contains("no range of integers"));
        assert!(error("0..1000000").contains("more than 1000"));
    }

    #[test]
    fn a_file_keeps_what_it_has_for_other_machines() {
        let one = with_section("", "one", &["2 ms".into()], &[("TILE", "64"), ("ROWS", "range")]);
        let two = with_section(&one, "two", &[], &[("TILE", "[1, 2]")]);
        let again = with_section(&two, "one", &["1 ms".into()], &[("TILE", "32")]);
        assert_eq!(again, format!("{HEADING}\n[two]\nTILE = [1, 2]\n\n[one]\n# 1 ms\nTILE = 32\n"));
        let found = sections(&two).unwrap();
        let of = |i: usize| found[i].values.iter().map(|(n, p)| format!("{n}:{}", &two[p.clone()])).collect::<Vec<_>>();
        assert_eq!((found[0].machine, of(0)), ("one", vec!["TILE:64".to_string(), "ROWS:range".into()]));
        assert_eq!((found[1].machine, of(1)), ("two", vec!["TILE:[1, 2]".to_string()]));
    }

    #[test]
    fn broken_files_say_where() {
        let broken = |text: &'static str| sections(text).err().map(|place| &text[place]);
        assert_eq!(broken("[a]\nTILE\n"), Some("TILE"));
        assert_eq!(broken("TILE = 2\n"), Some("TILE = 2"));
        assert_eq!(broken("[a]\nTI LE = 2\r\n"), Some("TI LE = 2"));
        assert_eq!(broken("[a]\nTILE =\n"), Some("TILE ="));
        assert_eq!(broken("\u{0}\u{1}"), Some("\u{0}\u{1}"));
        assert_eq!(broken("# c\n\n[a]\nA = 1"), None);
    }
}

//! Tests of Impala code, and of DeepCPS and Staged-C: `//?` lines, and functions whose name begins with `test`. This module decides what is a test; the
//! command runs them, and so do the project's own text tests.
//!
//! ```text
//! //? pow(2, 5) == 32                    holds, the arguments known and unknown to partial evaluation
//! fn test_sort() -> () { assert(…) }     comes to its end; one of type `fn() -> bool` gives `true`
//! ```

mod given;

use crate::Options;
use crate::front::{Files, FrontEnd};
use crate::graph::Graph;
use crate::pipelines::{BackEnd, C, INTERP, LLVM};
use crate::report::{Failed, Report};
use crate::tuning::unquoted;
use crate::{sierra, staged};
use given::Given;
use nyala_base::{Diagnostic, Sink, Sources, Span};
use nyala_checks::Checks;
use nyala_syntax::ast::{self, Filter, ItemKind, Ret, TypeKind};
use std::cell::OnceCell;
use std::fmt::Write as _;

/// A way to run a program. All agree.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name in the report of a failure.
    pub name: &'static str,
    /// The options of `nyala run` for it.
    pub args: &'static [&'static str],
    /// The engine that makes the program ready to run.
    pub back_end: &'static BackEnd,
    /// The program is specialized first.
    pub partial_evaluation: bool,
    /// Its exports are specialized each alone, as those of other programs. Others take a file's tests as one export, which takes less
    /// time: many tests call the same functions.
    pub alone: bool,
    /// `-O`.
    pub opt_level: u8,
    /// What native code checks.
    pub checks: Checks,
}

const NO_CHECKS: Checks = Checks { bounds: false, overflow: false, null: false, uninit: false };

const fn compiled(
    name: &'static str,
    args: &'static [&'static str],
    partial_evaluation: bool,
    opt_level: u8,
) -> Engine {
    Engine { name, args, back_end: &LLVM, partial_evaluation, alone: false, opt_level, checks: NO_CHECKS }
}

/// The interpreter, which checks most, comes first.
pub const ENGINES: &[Engine] = &[
    Engine { back_end: &INTERP, ..compiled("interp", &["--engine", "interp"], true, 3) },
    compiled("no-pe -O0", &["--no-pe", "-O0"], false, 0),
    compiled("no-pe -O3", &["--no-pe", "-O3"], false, 3),
    Engine { alone: true, ..compiled("-O0", &["-O0"], true, 0) },
    compiled("-O3", &["-O3"], true, 3),
    Engine { checks: Checks::ALL, ..compiled("checked", &["--check=bounds,overflow,null,uninit", "-O3"], true, 3) },
    Engine { back_end: &C, ..compiled("c", &["--engine", "c"], true, 3) },
];

impl Engine {
    /// What the engine needs, if this machine lacks it.
    pub fn lacks(&self) -> Option<&'static str> {
        let program = self.back_end.needs.as_ref().filter(|n| !(n.is_there)()).map(|n| n.what);
        let has_room = self.checks == NO_CHECKS || nyala_runtime::can_check();
        program.or((!has_room).then_some("room of 4 TiB for addresses"))
    }

    /// Sets options to what the engine needs.
    pub fn set(self, options: &mut Options) {
        options.opt_level = self.opt_level;
        options.partial_evaluation = self.partial_evaluation;
        options.together = !self.alone;
        options.checks = self.checks;
    }
}

/// One test of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The query, or the function's name.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// Exported functions of type `fn() -> bool` that all give `true`, and what to say of one that does not.
    pub entries: Vec<(String, &'static str)>,
}

/// The tests of a file, and a second file that exports their entries: its lines are those of the first, so that errors in
/// a query have its line.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// In the order of the file.
    pub tests: Vec<Test>,
    /// The text of the second file.
    pub entries: String,
    /// Functions that look like tests and cannot be.
    pub findings: Vec<Diagnostic>,
}

/// The tests in a file's text.
pub fn find(name: &str, text: &str) -> Suite {
    find_some(name, text, |_| true)
}

/// The tests in a file's text, of which only those with the numbers of `keep` have entries.
pub fn find_some(name: &str, text: &str, keep: impl Fn(usize) -> bool) -> Suite {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    if staged::is_staged(name) {
        let callables = staged::callables(name, text).into_iter();
        let callables = callables.map(|(line, c)| (line, c.name.to_string(), c.place, c.signature));
        return find_by_signatures(text, &callables.collect::<Vec<_>>(), keep);
    }
    if sierra::is_sierra(name) {
        let callables = sierra::callables(name, text).into_iter();
        let callables = callables.map(|(line, c)| (line, c.name, c.place, c.signature));
        return find_by_signatures(text, &callables.collect::<Vec<_>>(), keep);
    }
    // Errors of syntax are reported when the program is compiled.
    let module = nyala_syntax::parse(file, text, &mut Sink::default());
    let mut functions: Vec<(usize, &ast::Fn)> = Vec::new();
    let mut suite = Suite::default();
    for item in &module.items {
        let ItemKind::Fn(f) = &item.kind else { continue };
        if !f.name.text.starts_with("test") || f.body.is_none() || !f.params.is_empty() {
            continue;
        }
        functions.push((sources.line_col(f.name.span).0, f));
    }
    let mut functions = functions.into_iter().peekable();
    for (i, line) in text.lines().enumerate() {
        if let Some(query) = line.trim().strip_prefix("//?") {
            let entries = suite.query(i + 1, query.trim());
            suite.keep(entries, &keep);
        }
        while let Some((_, f)) = functions.next_if(|f| f.0 == i + 1) {
            let entries = suite.function(i + 1, f, &module);
            suite.keep(entries, &keep);
        }
        suite.entries.push('\n');
    }
    suite
}

/// The tests of a program in another language, of whose functions the lines, names, places and types in Impala are given: queries,
/// which call them, and functions `test…`.
fn find_by_signatures(text: &str, callables: &[(usize, String, Span, String)], keep: impl Fn(usize) -> bool) -> Suite {
    let mut suite = Suite::default();
    for (_, name, _, signature) in callables {
        _ = write!(suite.entries, "extern \"C\" {{ fn {name}{signature}; }} ");
    }
    for (i, line) in text.lines().enumerate() {
        if let Some(query) = line.trim().strip_prefix("//?") {
            let entries = suite.query(i + 1, query.trim());
            suite.keep(entries, &keep);
        }
        for (_, name, place, signature) in callables.iter().filter(|c| c.0 == i + 1 && c.1.starts_with("test")) {
            match signature.strip_prefix("() -> ") {
                Some(result @ ("bool" | "()")) => {
                    let entries = suite.call(i + 1, name, result == "bool");
                    suite.keep(Some(entries), &keep);
                }
                Some(_) => suite.findings.push(crate::diagnostics::not_a_test::warning(*place, name)),
                None => (),
            }
        }
        suite.entries.push('\n');
    }
    suite
}

impl Suite {
    /// Appends the text of the last test's entries, or takes them from it.
    fn keep(&mut self, entries: Option<String>, keep: &impl Fn(usize) -> bool) {
        let Some(entries) = entries else { return };
        let number = self.tests.len() - 1;
        if keep(number) {
            self.entries.push_str(&entries);
        } else {
            self.tests[number].entries.clear();
        }
    }

    fn query(&mut self, line: usize, query: &str) -> Option<String> {
        let n = self.tests.len();
        let (known, unknown) = (format!("query_known_{n}"), format!("query_unknown_{n}"));
        let hidden = hide_arguments(query);
        let text = format!("extern fn {known}() -> bool {{ {query} }} extern fn {unknown}() -> bool {{ {hidden} }}");
        let entries = vec![
            (known, "does not hold, the arguments known to partial evaluation"),
            (unknown, "does not hold, the arguments unknown to partial evaluation"),
        ];
        self.tests.push(Test { name: query.into(), line, entries });
        Some(text)
    }

    fn function(&mut self, line: usize, f: &ast::Fn, module: &ast::Module) -> Option<String> {
        let name = &f.name.text;
        let is_bool = match f.result {
            Ret::Type(ty) => match &module[ty].kind {
                TypeKind::Tuple(parts) if parts.is_empty() => Some(false),
                _ if is_named(module, ty, "bool") => Some(true),
                _ => None,
            },
            Ret::Absent | Ret::Never(_) => None,
        };
        let Some(is_bool) = is_bool.filter(|_| !matches!(f.filter, Filter::When(_)) && f.type_params.is_empty()) else {
            self.findings.push(crate::diagnostics::not_a_test::warning(f.name.span, name));
            return None;
        };
        Some(self.call(line, name, is_bool))
    }

    fn call(&mut self, line: usize, name: &str, is_bool: bool) -> String {
        let entry = format!("test_function_{}", self.tests.len());
        let result = if is_bool { "" } else { "; true" };
        let text = format!("extern fn {entry}() -> bool {{ {name}(){result} }}");
        self.tests.push(Test { name: name.to_string(), line, entries: vec![(entry, "gives `false`")] });
        text
    }
}

/// Whether a type is written as this name.
pub fn is_named(module: &ast::Module, ty: ast::TypeId, name: &str) -> bool {
    match &module[ty].kind {
        TypeKind::Path(path) => path.names.len() == 1 && &*path.names[0].text == name,
        _ => false,
    }
}

/// `f(2, g(3))` as `f($(2), g(3))`: literals among the arguments are hidden from partial evaluation.
fn hide_arguments(query: &str) -> String {
    let Some((open, _)) = unquoted(query).find(|c| c.1 == '(') else { return query.into() };
    let (mut depth, mut end, mut commas) = (0, None, vec![open]);
    for (i, c) in unquoted(query).skip_while(|c| c.0 < open) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 1 => commas.push(i),
            _ => {}
        }
        if depth == 0 {
            end = Some(i);
            break;
        }
    }
    let Some(end) = end else { return query.into() };
    commas.push(end);
    let mut out = query[..open].to_string() + "(";
    for (i, pair) in commas.windows(2).enumerate() {
        let arg = query[pair[0] + 1..pair[1]].trim();
        let is_literal = arg.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let sep = if i > 0 { ", " } else { "" };
        let _ = if is_literal { write!(out, "{sep}$({arg})") } else { write!(out, "{sep}{arg}") };
    }
    out + &query[end..]
}

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not; why.
    Failed(String),
}

/// Runs the tests from number `first` on under one engine, in this process: a test that ends the process ends all. `each`
/// hears of every test before it runs (no outcome) and after. Returns what was found when the program was compiled.
///
/// # Errors
/// The program does not compile.
pub fn run(
    options: &Options,
    files: &Files,
    suite: &Suite,
    engine: Engine,
    first: usize,
    each: impl FnMut(usize, Option<Outcome>),
) -> Result<Report, Failed> {
    run_graph(&graph(options, files, engine)?, files, suite, engine, first, each)
}

/// The graph of a program with tests, with the options for an engine.
///
/// # Errors
/// The front end finds faults.
pub fn graph(options: &Options, files: &Files, engine: Engine) -> Result<Graph, Failed> {
    let mut options = options.clone();
    engine.set(&mut options);
    FrontEnd::new(options, files.clone()).graph().map_err(|mut failed| {
        // A query stands in its line twice.
        let mut seen = Vec::new();
        let Report { sources, sink, .. } = &mut *failed;
        sink.diagnostics.retain(|d| {
            let key = (d.code, d.message.clone(), sources.line_col(d.primary.span).0, d.primary.span.file);
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        });
        show_queries(&mut failed);
        failed
    })
}

/// Moves places in the file with entries to the queries and functions of the user's file.
fn show_queries(report: &mut Report) {
    let Report { sources, sink, .. } = report;
    for diagnostic in &mut sink.diagnostics {
        for label in std::iter::once(&mut diagnostic.primary).chain(&mut diagnostic.others) {
            label.span = written(sources, label.span);
        }
    }
}

/// The place that the user has written, for one that may be in a file with entries of tests or benchmarks.
pub(crate) fn written(sources: &Sources, span: Span) -> Span {
    query_of(sources, span).unwrap_or(span)
}

/// Whether a call stands in a file with entries only: that of a test function or a benchmark, which has no place that is written.
pub(crate) fn is_entry(sources: &Sources, call: Span) -> bool {
    let text = |line: Span| sources.text(line.file).get(line.lo as usize..line.hi as usize);
    query_of(sources, call).and_then(text).is_some_and(|text| !text.starts_with("//?"))
}

/// The place in the user's file for one in the file with entries, which has the same name and comes later.
fn query_of(sources: &Sources, span: Span) -> Option<Span> {
    let (line, _) = sources.line_col(span);
    let line = sources.line_span(sources.name(span.file), line).filter(|first| first.file != span.file)?;
    let text = sources.text(line.file).get(line.lo as usize..line.hi as usize)?;
    let query = match text.strip_prefix("//?") {
        Some(query) => query.trim(),
        // Functions have their names there.
        None => return Some(line),
    };
    let whole = Span::new(line.file, line.hi as usize - query.len(), line.hi as usize);
    // The query stands there as it is first, and with hidden arguments behind.
    let entries = sources.text(span.file);
    let start = entries[..span.lo as usize].rfind('\n').map_or(0, |i| i + 1);
    let copy = start + entries[start..].find("{ ")? + 2;
    let within = |at: u32| (at as usize).checked_sub(copy).filter(|&at| query.is_char_boundary(at));
    Some(match (within(span.lo), within(span.hi)) {
        (Some(lo), Some(hi)) => Span::new(line.file, whole.lo as usize + lo, whole.lo as usize + hi),
        _ => whole,
    })
}

/// [`run`] for the program of [`graph`], which was made of the files.
///
/// # Errors
/// As of [`run`].
pub fn run_graph(
    graph: &Graph,
    files: &Files,
    suite: &Suite,
    engine: Engine,
    first: usize,
    mut each: impl FnMut(usize, Option<Outcome>),
) -> Result<Report, Failed> {
    let ready = (engine.back_end.ready)(graph)?;
    let (program, shown) = (OnceCell::new(), OnceCell::new());
    for (i, test) in suite.tests.iter().enumerate().skip(first) {
        each(i, None);
        let mut outcome = Outcome::Passed;
        for (entry, complaint) in &test.entries {
            let failed = match ready.holds(entry) {
                Ok(true) => continue,
                Ok(false) => {
                    let given = program.get_or_init(|| Given::new(&graph.options, files, suite));
                    let shown = shown.get_or_init(|| given.ready(engine));
                    let values = shown.as_ref().and_then(|ready| given.of(entry, ready));
                    values.map_or(complaint.to_string(), |values| format!("{complaint}:\n{values}"))
                }
                Err(mut failed) => {
                    show_queries(&mut failed);
                    failed.render(false)
                }
            };
            outcome = Outcome::Failed(failed);
            break;
        }
        each(i, Some(outcome));
    }
    Ok(ready.report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyala_base::FileId;

    #[test]
    fn arguments_are_hidden_whatever_strings_contain() {
        for (query, hidden) in [
            ("f(2, g(3)) == 5", "f($(2), g(3)) == 5"),
            ("f(\"a, (1\", 2) == 5", "f(\"a, (1\", $(2)) == 5"),
            ("f(\"\\\"), 3\", 2)", "f(\"\\\"), 3\", $(2))"),
            ("f(')', ',', -2)", "f(')', ',', $(-2))"),
            ("f('\\'', 7)", "f('\\'', $(7))"),
            ("f(é, 1) == 2", "f(é, $(1)) == 2"),
            ("f()", "f()"),
            ("f(\"open, 1)", "f(\"open, 1)"),
            ("", ""),
        ] {
            assert_eq!(hide_arguments(query), hidden);
        }
    }

    #[test]
    fn places_of_entries_are_those_of_their_queries() {
        let text = "fn f(a: i32) -> i32 { a }\n  //? f(\"é\", 3) == 4\nfn test_f() -> () { }\n";
        let mut sources = Sources::new();
        sources.add("t.impala", text);
        let entries = find("t.impala", text).entries;
        let file = sources.add("t.impala", entries.clone());
        let shown = |of: &str, nth: usize| {
            let lo = entries.match_indices(of).nth(nth).unwrap().0;
            let span = query_of(&sources, Span::new(file, lo, lo + of.len())).unwrap();
            (sources.place(span), &text[span.lo as usize..span.hi as usize])
        };
        assert_eq!(shown("3) =", 0), ("t.impala:2:14".into(), "3) ="));
        assert_eq!(shown("$(3)", 0), ("t.impala:2:7".into(), "f(\"é\", 3) == 4"));
        assert_eq!(shown("query_known", 0).1, "f(\"é\", 3) == 4");
        assert_eq!(shown("test_f()", 0), ("t.impala:3:1".into(), "fn test_f() -> () { }"));
        assert_eq!(query_of(&sources, Span::new(FileId(0), 3, 4)), None);
    }

    #[test]
    fn finds_queries_and_functions() {
        let text = "//? f(2, [3], -1) == 5\nfn f(a: i32) -> i32 { a }\n\nfn test_f() -> () { } fn testing(a: i32) -> () { }\n\
                    fn test_g() -> bool { true }\nfn test_h() { }\n";
        let suite = find("t.impala", text);
        let found: Vec<_> = suite.tests.iter().map(|t| (t.name.as_str(), t.line, t.entries.len())).collect();
        assert_eq!(found, [("f(2, [3], -1) == 5", 1, 2), ("test_f", 4, 1), ("test_g", 5, 1)]);
        assert_eq!(suite.findings.len(), 1);
        let lines: Vec<&str> = suite.entries.lines().collect();
        assert!(lines[0].contains("{ f($(2), [3], $(-1)) == 5 }"), "{}", lines[0]);
        assert!(lines[3].contains("{ test_f(); true }") && lines[4].contains("{ test_g() }"));
        let some = find_some("t.impala", text, |i| i == 1);
        assert_eq!(some.tests.iter().map(|t| t.entries.len()).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(some.entries.lines().map(str::is_empty).filter(|e| !e).count(), 1);
    }
}

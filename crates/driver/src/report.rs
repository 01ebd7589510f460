//! What a compilation reports: diagnostics, times of passes, and how places of code are shown. Each value of a compilation has a
//! report of its own, which continues that of the value it was made from: it has all that was found up to there.

use crate::{Options, progress};
use nyala_base::{Calls, Diagnostic, FileId, Severity, Sink, Sources, Span};
use nyala_flat::ensure::Origins;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limit on the reports of an error that is found at one place.
const MAX_INSTANCES: usize = 8;

/// Time and size of one pass.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Its key in `--time-passes`.
    pub pass: &'static str,
    /// Wall time.
    pub time: Duration,
    /// How much there was afterwards, in the unit of the pass's result (values, instructions).
    pub size: usize,
}

/// Diagnostics and times up to a value of a compilation, or up to the fault that kept it from being made.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Texts of all files read.
    pub sources: Sources,
    /// Diagnostics, in the order in which they were found.
    pub sink: Sink,
    /// Times and sizes of passes, in the order in which they ran.
    pub timings: Vec<Timing>,
    /// The code of what the interpreter found: undefined behavior, a panic, its budget spent.
    pub faulted: Option<&'static str>,
    /// The names of the files given.
    pub(crate) given: Arc<[String]>,
    /// The files of libraries in the program, the prelude included.
    pub(crate) libraries: Arc<[FileId]>,
    /// The facts about the target that the program asks for, once it is a graph.
    pub(crate) facts: Arc<[String]>,
    /// Why a function is no code that programs without a compiler call.
    pub(crate) no_code: Option<Box<Diagnostic>>,
    /// The calls that were unfolded, once the program is specialized.
    pub(crate) calls: Arc<Calls>,
}

/// The error of a step: the report says what is wrong.
pub type Failed = Box<Report>;

impl Report {
    /// Runs a pass, notes what it took, and the size that `size` gives its result.
    pub fn time<T>(
        &mut self,
        options: &Options,
        pass: &'static str,
        f: impl FnOnce(&mut Report) -> T,
        size: impl Fn(&T) -> usize,
    ) -> T {
        self.time_steps(options, pass, None, f, size)
    }

    /// [`Report::time`] for a pass that tells how far it has come.
    pub(crate) fn time_steps<T>(
        &mut self,
        options: &Options,
        pass: &'static str,
        steps: Option<progress::Steps>,
        f: impl FnOnce(&mut Report) -> T,
        size: impl Fn(&T) -> usize,
    ) -> T {
        let start = Instant::now();
        let line = options.progress.then(|| {
            let steps = steps.map(|steps| (steps, self.sources.clone()));
            progress::Line::start(pass, steps)
        });
        let result = f(self);
        drop(line);
        let time = start.elapsed();
        self.timings.push(Timing { pass, time, size: size(&result) });
        result
    }

    /// Where code of the program comes from.
    pub(crate) fn origins(&self) -> Origins<'_> {
        Origins { calls: &self.calls, libraries: &self.libraries }
    }

    /// Whether a file belongs to a library or is the prelude.
    pub fn is_library(&self, file: FileId) -> bool {
        self.libraries.contains(&file)
    }

    /// The place itself, or the innermost call in the program's own files that led there, with the calls around it.
    pub(crate) fn own_place(&self, span: Span) -> Span {
        let own = std::iter::once(span).chain(self.calls.places(span)).find(|span| !self.is_library(span.file));
        own.unwrap_or(span)
    }

    /// Adds the calls to findings in code of functions that were unfolded. A warning is reported once, for the first call; an error
    /// for each, up to a limit, and the others are counted. A finding in a library is reported at the program's call of the library,
    /// once for each. Other places that matter are shown outside of libraries: where these were called.
    fn add_calls(&mut self) {
        let mut known: HashMap<_, Vec<(usize, Vec<Span>)>> = HashMap::new();
        let mut repeats: Vec<usize> = Vec::new();
        let is_own = |span: &Span| !self.libraries.contains(&span.file);
        self.sink.diagnostics.retain_mut(|d| {
            let code = d.primary.span;
            d.primary.span = code.without_call();
            for label in &mut d.others {
                let calls = self.calls.around(label.span).map(|(_, span)| span);
                let own = std::iter::once(label.span.without_call()).chain(calls).find(is_own);
                label.span = own.unwrap_or(label.span.without_call());
            }
            // Innermost first: those that were unfolded, then what is noted already.
            let noted = std::mem::take(&mut d.others);
            d.add_calls(self.calls.around(code));
            let is_new = |l: &nyala_base::Label| noted.iter().all(|n| n.span != l.span);
            d.others.retain(is_new);
            d.others.extend(noted);
            if !is_own(&d.primary.span) {
                d.move_to_call(is_own);
            }
            let places: Vec<Span> = d.others.iter().map(|label| label.span).collect();
            let same = known.entry((d.code, d.primary.span, d.message.clone())).or_default();
            let is_error = d.severity == Severity::Error;
            let like = match is_error {
                true => same.iter().find(|(_, known)| *known == places).or(same.get(MAX_INSTANCES - 1)),
                false => same.first(),
            };
            if let Some(&(at, _)) = like {
                repeats[at] += if is_error { 1 + d.repeats } else { 0 };
                return false;
            }
            same.push((repeats.len(), places));
            repeats.push(d.repeats);
            true
        });
        for (d, repeats) in self.sink.diagnostics.iter_mut().zip(repeats) {
            d.repeats = repeats;
        }
    }

    /// A report that begins anew, of what happens when the program runs.
    pub(crate) fn of_run(&self) -> Report {
        Report { sink: Sink::default(), timings: Vec::new(), faulted: None, ..self.clone() }
    }

    /// Does with warnings what `--allow` and `--deny` say.
    pub fn judge_warnings(&mut self, options: &Options) {
        self.add_calls();
        let (allow, deny) = (&options.allow, &options.deny);
        if allow.is_empty() && deny.is_empty() {
            return;
        }
        let is = |list: &[String], code: &str| list.iter().any(|c| c == code);
        let found = &mut self.sink.diagnostics;
        let allowed = |code: &str| is(allow, "warnings") && !is(deny, code) || is(allow, code);
        found.retain(|d| d.severity != Severity::Warning || !allowed(d.code));
        for d in found.iter_mut().filter(|d| d.severity == Severity::Warning) {
            if is(deny, "warnings") || is(deny, d.code) {
                d.severity = Severity::Error;
            }
        }
    }

    /// Fails if there are errors.
    pub(crate) fn check(&mut self, options: &Options) -> Result<(), Failed> {
        self.judge_warnings(options);
        if self.sink.has_errors() { Err(self.fail()) } else { Ok(()) }
    }

    /// The value of a step, unless it has none or there are errors.
    pub(crate) fn checked<T>(&mut self, options: &Options, value: Option<T>) -> Result<T, Failed> {
        self.check(options)?;
        value.ok_or_else(|| self.fail())
    }

    /// Ends a step with an error.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        self.sink.push(diagnostic);
        self.add_calls();
        self.fail()
    }

    /// The report as the error of a step.
    pub(crate) fn fail(&mut self) -> Failed {
        Box::new(std::mem::take(self))
    }

    /// Ends a step whose result is not well-formed, which is a bug of a pass.
    pub(crate) fn bug(&mut self, pass: &str, fault: &str) -> Failed {
        let message = format!("after `{pass}` the program is not well-formed: {fault}");
        self.report(nyala_base::diagnostics::bug::error(Span::NONE, message))
    }

    /// All findings as text, most important first as they came.
    pub fn render(&self, color: bool) -> String {
        let mut out = String::new();
        for d in &self.sink.diagnostics {
            out.push_str(&d.render(&self.sources, color));
        }
        out
    }
}

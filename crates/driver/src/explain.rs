//! The decisions of partial evaluation at each call, and their reasons (`nyala explain`): a [`Report`] made of the evaluator's record, in the
//! words and places of the program's text. It is data, apart from the record so that either may change without the other;
//! [`text`](mod@text) shows it on a terminal, [`html`] as a page, and as JSON it is described in `docs/explain.md`.

pub mod html;
pub mod kernels;
pub mod text;
pub mod vector_code;
mod words;

use crate::closures;
use crate::diagnostics::no_such_function;
use crate::graph::{Diverged, Graph, Residual};
use crate::report::Failed;
use nyala_base::{Diagnostic, Id, SideTable, Sources, Span};
use nyala_ir::{Cont, Linkage, World};
use nyala_specialize::facts::{Facts, is_function};
use nyala_specialize::record::{Outcome, Piece, Record, Row, Why};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use words::Words;

/// The version of the report. Changes when a field gets another meaning or is removed.
const VERSION: u32 = 1;
/// Limit on the nodes of residual programs that machine code is made of, because LLVM needs much time.
const MAX_NODES_FOR_CODE: u64 = 50_000;

/// The report of `nyala explain`, with the fields of its JSON, which `docs/explain.md` describes.
#[derive(Serialize)]
pub struct Report {
    /// The version of the report, which changes when a field gets another meaning or is removed.
    pub version: u32,
    /// Numbers of the whole program.
    pub totals: Totals,
    /// Functions and loops of the program.
    pub functions: Vec<Function>,
    /// Calls, loops and branches.
    pub sites: Vec<Site>,
    /// Functions and loops of the residual program.
    pub instances: Vec<Instance>,
    /// Loops and recursions that are left.
    pub loops: Vec<Loop>,
    /// Functions that are values at run time.
    pub closures: Vec<Closure>,
    /// The progress of the evaluation.
    pub timeline: Vec<Step>,
}

/// Numbers of the whole program.
#[derive(Serialize, Default)]
pub struct Totals {
    /// Whether evaluation ended. If not, the residual program is not known.
    pub complete: bool,
    /// Rounds of evaluation.
    pub rounds: usize,
    /// Bodies evaluated in the last round. All other figures are those of the last round too.
    pub reductions: u64,
    /// Microseconds that the last round took.
    pub micros: u64,
    /// The number of calls, by decision.
    pub calls: BTreeMap<&'static str, u64>,
    /// The number of residual functions.
    pub residual_functions: usize,
    /// The number of residual loops.
    pub residual_loops: usize,
    /// The number of residual operations and continuations.
    pub residual_nodes: u64,
    /// Bytes of machine code, if it was made.
    pub bytes: Option<u64>,
    /// The reason why no machine code was made.
    pub no_code: Option<String>,
    /// The number of functions that are values at run time.
    pub closures: usize,
    /// Whether some decisions were merged, because there were too many.
    pub rough: bool,
}

/// A range of a source file. Lines and columns count from 1, and columns in characters. The end is the place after the
/// last character.
#[derive(Serialize, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name, as it was given.
    pub file: String,
    /// The line where the range begins.
    pub line: usize,
    /// The column where the range begins.
    pub column: usize,
    /// The line where the range ends.
    pub end_line: usize,
    /// The column where the range ends.
    pub end_column: usize,
}

/// A function or loop of the program.
#[derive(Serialize)]
pub struct Function {
    /// As the program has it.
    pub name: String,
    /// `function` or `loop`.
    pub kind: &'static str,
    /// Where it is declared.
    pub place: Option<Place>,
    /// Whether it is exported to C.
    pub exported: bool,
    /// Whether it belongs to a library, not to the files given.
    pub library: bool,
    /// How many of its bodies, and of the bodies of blocks in it, were evaluated.
    pub reductions: u64,
    /// How often it was unfolded.
    pub unfolded: u64,
    /// The number of residual functions or loops that were made of it.
    pub instances: usize,
    /// The number of nodes of the residual program that come from its own code.
    pub nodes: u64,
}

/// A call, loop or branch.
#[derive(Serialize)]
pub struct Site {
    /// `call`, `loop` or `branch`.
    pub kind: &'static str,
    /// The place in the source.
    pub place: Option<Place>,
    /// The function around it, an index of `functions`.
    pub function: Option<usize>,
    /// The decisions on its calls, by callee, decision and reason.
    pub outcomes: Vec<OutcomeOf>,
}

impl Site {
    /// How often evaluation reached the site.
    pub fn calls(&self) -> u64 {
        self.outcomes.iter().map(|o| o.calls).sum()
    }
    /// The number of nodes of the residual program that come from the site.
    pub fn nodes(&self) -> u64 {
        self.outcomes.iter().map(|o| o.nodes).sum()
    }
    /// How often the code of a callee was copied.
    pub fn copies(&self) -> u64 {
        self.outcomes.iter().map(|o| o.copies).sum()
    }
}

/// The calls at a site that have the same callee, decision and reason.
#[derive(Serialize)]
pub struct OutcomeOf {
    /// The decision in a word, as [`decision`] gives it.
    pub decision: &'static str,
    /// An index of `functions`.
    pub callee: Option<usize>,
    /// The callee's name, if it is outside of the program; for a branch that was decided, `then` or `else`.
    pub target: Option<String>,
    /// How often the decision was made.
    pub calls: u64,
    /// How often the callee's code was copied.
    pub copies: u64,
    /// For computed calls: the number of calls and jumps inside.
    pub steps: u64,
    /// The number of nodes of the residual program that come from these calls.
    pub nodes: u64,
    /// The parameters that were specialized.
    pub parameters: Vec<Parameter>,
    /// The reason for the decision.
    pub why: Reason,
    /// Indices of `instances` that have the calls, and their numbers of calls.
    #[serde(rename = "in")]
    pub within: Vec<(usize, u64)>,
}

/// A specialized parameter.
#[derive(Serialize, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter's name in the program.
    pub name: String,
    /// Why it is specialized: `function`, it is or contains one; `filter`; or `same`, all calls of an instance agree.
    pub because: &'static str,
    /// A few of the values that it was specialized for.
    pub values: Vec<String>,
}

/// The reason for a decision.
#[derive(Serialize, Clone)]
pub struct Reason {
    /// The reason as a word, which stays the same in later versions.
    pub code: &'static str,
    /// The reason as a sentence.
    pub text: String,
    /// The filter that decided, if one did.
    pub filter: Option<Named>,
    /// The value that was not known, with the place that it comes from.
    pub unknown: Option<Named>,
}

/// An expression of the program.
#[derive(Serialize, Clone)]
pub struct Named {
    /// The text of the expression.
    pub text: String,
    /// The place of the expression.
    pub place: Option<Place>,
}

/// A residual function or loop.
#[derive(Serialize)]
pub struct Instance {
    /// The function it is made of, an index of `functions`; null if that is not known.
    pub function: Option<usize>,
    /// `function` or `loop`.
    pub kind: &'static str,
    /// The instance whose code needed it first, an index of `instances`.
    pub parent: Option<usize>,
    /// The parameters that it is specialized in.
    pub parameters: Vec<Parameter>,
    /// The number of operations and continuations in it.
    pub nodes: u64,
    /// Bytes of machine code of a function, if it was made; 0 if it was inlined into all its callers.
    pub bytes: Option<u64>,
    /// Whether the residual program contains it.
    pub left: bool,
}

/// A loop or recursion of the residual program.
#[derive(Serialize)]
pub struct Loop {
    /// The instance that has it, an index of `instances`.
    pub instance: usize,
    /// `loop` or `recursion`.
    pub kind: &'static str,
    /// The reason why it was not unfolded.
    pub why: Option<Reason>,
}

/// A function that is a value at run time.
#[derive(Serialize)]
pub struct Closure {
    /// As the program has it.
    pub name: String,
    /// Where it is declared.
    pub place: Option<Place>,
    /// The reason why it is a value, in words.
    pub why: String,
    /// The place where it becomes a value.
    pub used: Option<Place>,
    /// The captured values, in words. They are in its environment.
    pub captures: Vec<String>,
    /// When its environment is freed: `no-environment`, `frame` (not on the heap), `last-use`, `maybe-never`, `never`.
    pub freed: &'static str,
    /// The reason why the environment is not freed, with its place.
    pub leak: Option<Named>,
}

/// The state of the evaluation at a point in time.
#[derive(Serialize)]
pub struct Step {
    /// Bodies evaluated up to here.
    pub reductions: u64,
    /// Microseconds up to here.
    pub micros: u64,
    /// The reductions of functions since the last step, by their indices of `functions`.
    pub functions: Vec<(usize, u64)>,
}

/// A report, and the residual program that it describes.
pub struct Explained {
    /// The report, ready to be shown.
    pub report: Report,
    /// The residual program; nothing but its diagnostics if evaluation did not end.
    pub residual: Residual,
    /// The record that the report is made from.
    pub record: Box<Record>,
}

/// Evaluates the program and makes a report. If evaluation does not end, the residual program's diagnostics have the error, and
/// the report describes what was done until then.
pub fn explain(graph: &Graph) -> Result<Explained, Failed> {
    let (residual, record, complete) = match graph.specialize(true) {
        Ok(mut residual) => {
            let record = residual.record.take().unwrap_or_default();
            (residual, record, true)
        }
        Err(Diverged { failed, record: Some(record), source }) => {
            let residual = Residual { report: *failed, source, ..Residual::of(graph.options.clone(), World::new()) };
            (residual, record, false)
        }
        Err(Diverged { failed, record: None, .. }) => return Err(failed),
    };
    let places = &residual.report;
    let mut report = Builder::new(&residual.source, &residual.world, &record, &places.sources, &places.given).report();
    report.totals.complete = complete;
    Ok(Explained { report, residual, record })
}

impl Explained {
    /// Adds the sizes of machine code to the report, or the reason why there are none. `sizes` compiles the residual program.
    pub fn add_code(&mut self, sizes: impl FnOnce(&Residual) -> Result<(Vec<(Cont, u64)>, u64), Failed>) {
        let Explained { report, residual, record } = self;
        if !report.totals.complete {
            return;
        }
        if report.totals.residual_nodes > MAX_NODES_FOR_CODE {
            report.totals.no_code = Some(format!("the residual program has more than {MAX_NODES_FOR_CODE} nodes"));
            return;
        }
        let n_before = residual.report.sink.diagnostics.len();
        match sizes(residual) {
            Ok((functions, all)) => {
                report.totals.bytes = Some(all);
                for (k, size) in functions {
                    let instance = &mut report.instances[record.instance_of[k] as usize];
                    if instance.kind == "function" {
                        *instance.bytes.get_or_insert(0) += size;
                    }
                }
            }
            // Here it is no error if the program has no machine code.
            Err(failed) => {
                report.totals.no_code = failed.sink.diagnostics.into_iter().nth(n_before).map(|d| d.message);
            }
        }
    }
}

/// The report as text: `top` entries of each list, or everything about one function.
pub fn text(report: &Report, function: Option<&str>, top: usize) -> Result<String, Box<Diagnostic>> {
    if let Some(name) = function.filter(|name| report.functions.iter().all(|f| f.name != **name)) {
        let similar = nyala_sema::closest(name, report.functions.iter().map(|f| f.name.as_str()));
        return Err(Box::new(no_such_function::unknown(name, similar)));
    }
    Ok(text::render(report, function, top))
}

/// The report as JSON, on one line.
pub fn json(report: &Report) -> String {
    // Strings and numbers can always be written as JSON.
    serde_json::to_string(report).unwrap_or_default()
}

/// The word for a decision.
pub fn decision(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Unfolded => "unfolded",
        Outcome::Run => "run",
        Outcome::Computed => "computed",
        Outcome::Specialized => "specialized",
        Outcome::Residual => "residual",
        Outcome::Halted => "halted",
        Outcome::Knot => "knot",
        Outcome::Generalized => "generalized",
        Outcome::Decided => "decided",
        Outcome::Left => "left",
    }
}

struct Builder<'a> {
    source: &'a World,
    residual: &'a World,
    record: &'a Record,
    /// The names of the files given.
    files: &'a [String],
    facts: Facts,
    residual_facts: Facts,
    words: Words<'a>,
    functions: Vec<Function>,
    function_ids: FxHashMap<(Span, String), usize>,
    ids: SideTable<Cont, Option<usize>>,
}

impl<'a> Builder<'a> {
    fn new(
        source: &'a World,
        residual: &'a World,
        record: &'a Record,
        sources: &'a Sources,
        files: &'a [String],
    ) -> Builder<'a> {
        Builder {
            source,
            residual,
            record,
            files,
            facts: Facts::new(source, &source.roots()),
            residual_facts: Facts::new(residual, &residual.roots()),
            words: Words::new(source, sources),
            functions: Vec::new(),
            function_ids: FxHashMap::default(),
            ids: SideTable::default(),
        }
    }

    fn report(mut self) -> Report {
        let sites = self.sites();
        for k in all_conts(self.source).filter(|&k| self.record.own_nodes[k] > 0) {
            let id = self.function(k);
            self.functions[id].nodes += self.record.own_nodes[k];
        }
        let instances = self.instances();
        let loops = self.loops();
        let closures = self.closures();
        let timeline = self.timeline();
        let mut totals = Totals {
            complete: true,
            rounds: self.record.rounds,
            reductions: self.record.reductions,
            micros: timeline.last().map_or(0, |s| s.micros),
            calls: BTreeMap::new(),
            residual_functions: instances.iter().filter(|i| i.left && i.kind == "function").count(),
            residual_loops: loops.iter().filter(|l| l.kind == "loop").count(),
            residual_nodes: instances.iter().map(|i| i.nodes).sum(),
            bytes: None,
            no_code: None,
            closures: closures.len(),
            rough: self.record.is_rough,
        };
        for o in sites.iter().flat_map(|s| &s.outcomes) {
            *totals.calls.entry(o.decision).or_default() += o.calls;
        }
        Report { version: VERSION, totals, functions: self.functions, sites, instances, loops, closures, timeline }
    }

    /// The index of a function or loop of the source. All instances of a generic function have one index.
    fn function(&mut self, k: Cont) -> usize {
        if let Some(id) = self.ids[k] {
            return id;
        }
        let data = self.source.cont(k);
        let key = (data.origin, self.source.name(k).to_string());
        let id = *self.function_ids.entry(key).or_insert(self.functions.len());
        if id == self.functions.len() {
            let place = self.words.place(data.origin);
            let library = place.as_ref().is_some_and(|p| !self.files.contains(&p.file));
            let kind = match self.facts.function[k] == Some(k) || data.linkage.is_external() {
                true => "function",
                false => "loop",
            };
            let exported = matches!(*data.linkage, Linkage::Exported(_));
            let name = self.words.name(k);
            self.functions.push(Function {
                name,
                kind,
                place,
                exported,
                library,
                reductions: 0,
                unfolded: 0,
                instances: 0,
                nodes: 0,
            });
        }
        self.ids[k] = Some(id);
        id
    }

    fn sites(&mut self) -> Vec<Site> {
        // In the order of the source; decisions without a place come last.
        let mut found: BTreeMap<(Span, &'static str, Option<usize>), Vec<&Row>> = BTreeMap::new();
        for row in &self.record.rows {
            if row.key.callee.is_some_and(|k| self.words.is_block(self.source, k)) {
                continue;
            }
            let site = row.key.site;
            let kind = match row.key.callee {
                None if matches!(row.key.outcome, Outcome::Decided | Outcome::Left) => "branch",
                Some(k) if self.facts.function[k] != Some(k) && !self.source.cont(k).linkage.is_external() => "loop",
                _ => "call",
            };
            let mut span = self.source.body(site).map_or(Span::NONE, |b| b.origin);
            if let ("loop", Some(k)) = (kind, row.key.callee) {
                span = self.source.cont(k).origin;
            }
            let around = self.function_around(site).map(|f| self.function(f));
            found.entry((span, kind, around)).or_default().push(row);
        }
        let mut sites = Vec::new();
        for ((span, kind, function), rows) in found {
            let mut outcomes: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
            for row in rows {
                let callee = row.key.callee.map(|k| self.function(k));
                let Row { key, .. } = row;
                let side = if kind == "branch" { key.mask } else { 0 };
                outcomes.entry((callee, key.outcome, key.why, key.mask, side)).or_default().push(row);
            }
            let outcomes: Vec<OutcomeOf> = outcomes.into_values().map(|rows| self.outcome(kind, &rows)).collect();
            sites.push(Site { kind, place: self.words.place(span), function, outcomes });
        }
        sites
    }

    /// The function of the program that code is in. Where a call returns a function, what follows it is one to the evaluator.
    fn function_around(&self, site: Cont) -> Option<Cont> {
        let mut found = self.facts.function[site]?;
        while nyala_schedule::is_continuation(&self.source.types, self.source.cont(found).ty)
            && let Some(function) = self.facts.nest.parent(found).and_then(|k| self.facts.function[k])
        {
            found = function;
        }
        Some(found)
    }

    fn outcome(&mut self, kind: &str, rows: &[&Row]) -> OutcomeOf {
        let key = &rows[0].key;
        let callee = key.callee.map(|k| self.function(k));
        let target = match (kind, key.callee) {
            ("branch", _) if key.outcome == Outcome::Decided => {
                Some(if key.mask == 1 { "then" } else { "else" }.to_string())
            }
            (_, Some(k)) if self.source.cont(k).linkage.is_external() => Some(self.words.name(k)),
            _ => None,
        };
        let total = |of: fn(&Row) -> u64| rows.iter().map(|r| of(r)).sum::<u64>();
        let (calls, nodes) = (total(|r| r.calls), total(|r| r.nodes));
        let is_entered = matches!(key.outcome, Outcome::Unfolded | Outcome::Run);
        let copies = if is_entered { calls } else { total(|r| r.made) };
        if let Some(id) = callee {
            self.functions[id].nodes += nodes;
            self.functions[id].unfolded += if is_entered { calls } else { 0 };
        }
        let mut within: BTreeMap<usize, u64> = BTreeMap::new();
        for row in rows {
            *within.entry(row.key.instance as usize).or_default() += row.calls;
        }
        let examples = rows.iter().flat_map(|r| &r.examples);
        let parameters = match key.callee.filter(|_| key.outcome != Outcome::Decided) {
            Some(k) => self.parameters(k, key.mask, examples.map(Vec::as_slice)),
            None => Vec::new(),
        };
        let why = self.words.reason(key, self.facts.automatic[key.callee.unwrap_or(key.site)]);
        OutcomeOf {
            decision: decision(key.outcome),
            callee,
            target,
            calls,
            copies,
            steps: total(|r| r.steps),
            nodes,
            parameters,
            why,
            within: within.into_iter().collect(),
        }
    }

    /// The parameters in `mask`, with their values in the examples.
    fn parameters<'e>(
        &self,
        k: Cont,
        mask: u64,
        examples: impl Iterator<Item = &'e [(u32, Vec<Piece>)]>,
    ) -> Vec<Parameter> {
        let mut values: BTreeMap<u32, Vec<String>> =
            (0..64).filter(|&i| mask >> i & 1 == 1).map(|i| (i, Vec::new())).collect();
        for (i, pieces) in examples.flatten() {
            let shown = self.words.value(pieces);
            let of_param = values.entry(*i).or_default();
            if !of_param.contains(&shown) && of_param.len() < 4 {
                of_param.push(shown);
            }
        }
        let because = |i: u32| match (mask >> i & 1, self.facts.automatic[k] >> i & 1) {
            (0, _) => "same",
            (_, 1) => "function",
            _ => "filter",
        };
        let parameter =
            |(i, values): (u32, Vec<String>)| Parameter { name: self.words.param(k, i), because: because(i), values };
        values.into_iter().map(parameter).collect()
    }

    fn instances(&mut self) -> Vec<Instance> {
        let mut nodes: Vec<u64> = vec![0; self.record.instances.len()];
        let nest = &self.residual_facts.nest;
        for &k in nest.conts.iter().filter(|&&k| self.residual.body(k).is_some()) {
            nodes[self.record.instance_of[k] as usize] += 1 + nest.ops(k).len() as u64;
        }
        let mut instances = Vec::new();
        for (i, made) in self.record.instances.iter().enumerate() {
            let left = made.residual.is_some();
            let kind = match made.residual {
                Some(k) if is_function(self.residual, k) => "function",
                _ => "loop",
            };
            let function = (i > 0).then(|| self.function(made.source));
            if let Some(id) = function.filter(|_| left) {
                self.functions[id].instances += 1;
            }
            let mut parameters = Vec::new();
            if i > 0 {
                let mask = made.values.iter().fold(0, |m, v| m | 1 << v.0);
                parameters = self.parameters(made.source, mask, std::iter::once(made.values.as_slice()));
            }
            instances.push(Instance {
                function,
                kind,
                parent: (i > 0).then_some(made.parent as usize),
                parameters,
                nodes: nodes[i],
                bytes: None,
                left,
            });
        }
        instances
    }

    fn loops(&self) -> Vec<Loop> {
        let mut loops = Vec::new();
        for (i, made) in self.record.instances.iter().enumerate().skip(1) {
            let Some(k) = made.residual.filter(|&k| self.residual_facts.is_recursive[k]) else { continue };
            let kind = if is_function(self.residual, k) { "recursion" } else { "loop" };
            loops.push(Loop { instance: i, kind, why: self.why_left(i) });
        }
        loops
    }

    /// The reason why calls of an instance are residual: the one that says most.
    fn why_left(&self, i: usize) -> Option<Reason> {
        let source = self.record.instances[i].source;
        let rank = |why: Why| match why {
            Why::Drift(..) => 0,
            Why::UnknownLoop(_) | Why::PlainLoop => 1,
            Why::UnknownFilter(..) => 2,
            Why::FalseFilter(_) => 3,
            Why::Halt => 4,
            Why::NoFilter | Why::NoAnnotations => 5,
            _ => 9,
        };
        let of_it = self.record.rows.iter().filter(|r| r.key.callee == Some(source) && rank(r.key.why) < 9);
        let best = of_it.min_by_key(|r| (rank(r.key.why), r.key.instance != i as u32));
        best.map(|r| self.words.reason(&r.key, self.facts.automatic[source]))
    }

    fn closures(&self) -> Vec<Closure> {
        let w = self.residual;
        let closure = |found: closures::Closure| {
            let mut why = found.why;
            let made = found.callee.map(|c| self.record.instance_of[c] as usize).filter(|&i| i > 0);
            if let Some(reason) = made.and_then(|i| self.why_left(i)) {
                why += &format!(": {}", reason.text);
            }
            let freed = match &found.leak {
                _ if found.captures.is_empty() => "no-environment",
                _ if found.is_in_frame => "frame",
                None => "last-use",
                Some(leak) if leak.is_certain => "never",
                Some(_) => "maybe-never",
            };
            let leak = found.leak.map(|leak| Named { text: leak.why, place: self.words.place(leak.at) });
            Closure {
                name: closures::shown_name(w.name(found.cont)),
                place: self.words.place(w.cont(found.cont).origin),
                why,
                used: self.words.place(found.used),
                captures: found.captures,
                freed,
                leak,
            }
        };
        let found = closures::find(w, &self.residual_facts, self.words.sources());
        found.into_iter().map(closure).collect()
    }

    fn timeline(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for step in &self.record.steps {
            let mut functions: BTreeMap<usize, u64> = BTreeMap::new();
            for &(k, n) in &step.by_function {
                let id = self.function(k);
                self.functions[id].reductions += n;
                *functions.entry(id).or_default() += n;
            }
            let functions = functions.into_iter().collect();
            steps.push(Step { reductions: step.reductions, micros: step.micros, functions });
        }
        steps
    }
}

/// The place of a span, or `None` if it is not in a source file.
pub(crate) fn place(sources: &Sources, span: Span) -> Option<Place> {
    if span.is_none() {
        return None;
    }
    let (line, column) = sources.line_col(span);
    let (end_line, end_column) = sources.line_col(Span { lo: span.hi, ..span });
    Some(Place { file: sources.name(span.file).into(), line, column, end_line, end_column })
}

/// All continuations of a world.
fn all_conts(w: &World) -> impl Iterator<Item = Cont> {
    (0..w.n_conts()).map(Cont::from_idx)
}

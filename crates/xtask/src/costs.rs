//! What text tests cost: a blessed table, `tests/costs.txt`, that decides which of them the gate runs whole.
//!
//! Costs are processor time in *units*: forty times a fixed piece of work that each run of the tests measures first, about a
//! second. Another processor or a busy neighbor changes both alike. A line stands for a file under one run (an engine, or
//! one of the words of [`crate::texts`]); lines below [`LISTED`] are left out and count as that much.
//!
//! ```text
//! tests/run/sort.impala | checked | 5.7 | 1/12 | 0.6
//! ```
//!
//! The file costs 5.7 units under `checked`. The gate compiles and runs one in 12 of its tests, for 0.6 units: those whose
//! number has the remainder that belongs to the engine, so that engines share a file's tests. `whole` means all of them,
//! `none` that only `./x test --all` has the run. `./x bless costs [FILTER]` measures and writes the lines.

use crate::root;
use nyala_gen_llvm::{LlvmModule, Options};
use nyala_ir::target::Target;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Lines with lower costs, in units, are not in the table.
pub const LISTED: f64 = 0.25;
/// The cost in units from which on a run is shared, and the cost that a share should have.
const SHARED: f64 = 0.5;
/// A run of one engine among several that costs more units in the gate is not in it.
const MOST_OF_ONE: f64 = 0.6;
/// A run that nothing else stands for (the interpreter, the last native engine, expected outputs) is not in the gate if it costs
/// more units.
const MOST_OF_LAST: f64 = 2.5;
/// The most units that a file may cost under an engine before it has a line.
pub const NEW: f64 = 5.0;
/// The most units that all runs of the gate may cost together.
pub const MOST: f64 = 300.0;

/// The part of a file's tests that the gate runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Whole,
    /// One in that many.
    OneIn(usize),
    /// Only `./x test --all` runs them.
    None,
}

impl Part {
    fn name(self) -> String {
        match self {
            Part::Whole => "whole".into(),
            Part::OneIn(n) => format!("1/{n}"),
            Part::None => "none".into(),
        }
    }

    fn from_name(name: &str) -> Option<Part> {
        match name {
            "whole" => Some(Part::Whole),
            "none" => Some(Part::None),
            _ => name.strip_prefix("1/")?.parse().ok().filter(|n| *n > 1).map(Part::OneIn),
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// Units for all tests.
    pub whole: f64,
    pub part: Part,
    /// Units for that part.
    pub gate: f64,
}

const CHEAP: Line = Line { whole: LISTED, part: Part::Whole, gate: LISTED };

/// The table: lines by path and run.
#[derive(Default)]
pub struct Table(pub BTreeMap<(String, String), Line>);

pub fn path() -> PathBuf {
    root().join("tests/costs.txt")
}

const HEADER: &str =
    "# Costs of text tests: crates/xtask/src/costs.rs explains the lines. `./x bless costs [FILTER]` writes them.\n";

impl Table {
    pub fn read() -> Result<Table, String> {
        let text = std::fs::read_to_string(path()).map_err(|e| format!("tests/costs.txt: {e}"))?;
        Table::parse(&text)
    }

    fn parse(text: &str) -> Result<Table, String> {
        let mut table = Table::default();
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let fields: Vec<&str> = line.split(" | ").collect();
            let parsed = match fields[..] {
                [path, run, whole, part, gate] => (|| {
                    let line =
                        Line { whole: whole.parse().ok()?, part: Part::from_name(part)?, gate: gate.parse().ok()? };
                    Some(((path.to_string(), run.to_string()), line))
                })(),
                _ => None,
            };
            let (key, line) = parsed.ok_or_else(|| format!("tests/costs.txt: malformed line `{line}`"))?;
            table.0.insert(key, line);
        }
        Ok(table)
    }

    pub fn render(&self) -> String {
        let mut out = HEADER.to_string();
        for ((path, run), line) in &self.0 {
            let Line { whole, part, gate } = line;
            out += &format!("{path} | {run} | {whole:.1} | {} | {gate:.1}\n", part.name());
        }
        out
    }

    /// The line of a run, or that of runs which are not listed.
    pub fn line(&self, path: &str, run: &str) -> Line {
        self.0.get(&(path.to_string(), run.to_string())).copied().unwrap_or(CHEAP)
    }

    /// The units that the listed runs cost in the gate.
    pub fn sum(&self) -> f64 {
        self.0.values().map(|l| l.gate).sum()
    }
}

/// The part of a file that the gate could run, by what all of it costs. `n_tests`: its tests that can be run apart from each
/// other.
pub fn part(whole: f64, n_tests: usize) -> Part {
    let wanted = (whole / SHARED).ceil() as usize;
    if whole < SHARED || n_tests < 2 { Part::Whole } else { Part::OneIn(wanted.clamp(2, n_tests)) }
}

/// Whether a run is in the gate that costs this much there. `is_last`: nothing else stands for it.
pub fn fits(gate: f64, is_last: bool) -> bool {
    gate <= if is_last { MOST_OF_LAST } else { MOST_OF_ONE }
}

/// The units that runs of each name took together, and their number: `c 17 (70), interp 1 (70)`.
pub fn by_run(took: &BTreeMap<(String, String), f64>) -> String {
    let mut sums: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for ((_, run), units) in took {
        let (n, sum) = sums.entry(run).or_default();
        (*n, *sum) = (*n + 1, *sum + units);
    }
    let shown: Vec<String> = sums.iter().map(|(run, (n, sum))| format!("{run} {sum:.0} ({n})")).collect();
    shown.join(", ")
}

/// What a run's time says beside its line.
#[derive(PartialEq, Eq, Debug)]
pub enum Verdict {
    Fine,
    Notable(String),
    TooSlow(String),
}

/// Judges the units that a run of the gate took.
pub fn judge(line: Option<Line>, took: f64) -> Verdict {
    let blessed = line.map_or(LISTED, |l| l.gate);
    let said = match line {
        Some(l) => format!("took {took:.1} units; its line in tests/costs.txt says {:.1}", l.gate),
        None => format!("took {took:.1} units; it has no line in tests/costs.txt"),
    };
    match () {
        () if took > NEW && took > 4.0 * blessed => Verdict::TooSlow(said),
        () if took > 0.5 && took > 2.0 * blessed => Verdict::Notable(said),
        () => Verdict::Fine,
    }
}

/// The seconds of processor time of a unit here and now: forty times the least of three times that LLVM takes for a fixed
/// module.
pub fn unit() -> Result<f64, String> {
    let target = Target::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"));
    let options = Options::default();
    let text = fixed_work();
    let mut least = f64::MAX;
    for _ in 0..3 {
        let start = crate::queue::own_seconds();
        let mut module = LlvmModule::from_text(&text, &target, &options).map_err(|e| e.message.clone())?;
        module.optimize().map_err(|e| e.message.clone())?;
        module.object().map_err(|e| e.message.clone())?;
        least = least.min(crate::queue::own_seconds() - start);
    }
    Ok(40.0 * least.max(0.01))
}

/// Loops over arrays, as text for LLVM.
fn fixed_work() -> String {
    let mut text = String::new();
    for f in 0..10 {
        let mut body = String::new();
        let mut last = "x".to_string();
        for i in 0..12 {
            let op = ["fadd", "fmul", "fsub"][(f + i) % 3];
            body += &format!(
                "  %p{i} = getelementptr float, ptr %a, i64 {}\n  %q{i} = getelementptr float, ptr %p{i}, i64 %i\n  \
                 %l{i} = load float, ptr %q{i}\n  %v{i} = {op} float %{last}, %l{i}\n",
                i * 64
            );
            last = format!("v{i}");
        }
        text += &format!(
            "define void @f{f}(ptr noalias %a, ptr noalias %b, i64 %n) {{\nentry:\n  br label %loop\nloop:\n  \
             %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n  %o = getelementptr float, ptr %b, i64 %i\n  \
             %x = load float, ptr %o\n{body}  store float %{last}, ptr %o\n  %next = add i64 %i, 1\n  \
             %c = icmp ult i64 %next, %n\n  br i1 %c, label %loop, label %end\nend:\n  ret void\n}}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_written() {
        let mut table = Table::default();
        for (run, part) in [("c", Part::Whole), ("checked", Part::OneIn(14)), ("-O3", Part::None)] {
            table.0.insert(("a b.impala".into(), run.into()), Line { whole: 20.5, part, gate: 1.5 });
        }
        assert_eq!(Table::parse(&table.render()).unwrap().0, table.0);
        assert!(Table::parse("a | c | 1.0 | 1/1 | 1.0").is_err());
        assert!(Table::parse("a | c | 1.0 | whole").is_err());
    }

    #[test]
    fn parts_and_verdicts() {
        assert_eq!(part(0.4, 9), Part::Whole);
        assert_eq!(part(4.9, 9), Part::OneIn(9));
        assert_eq!(part(4.9, 99), Part::OneIn(10));
        assert_eq!(part(4.9, 1), Part::Whole);
        assert!(fits(2.0, true) && !fits(0.7, false) && !fits(3.0, true));
        let line = Line { whole: 9.0, part: Part::OneIn(4), gate: 2.0 };
        assert_eq!(judge(Some(line), 3.9), Verdict::Fine);
        assert!(matches!(judge(Some(line), 4.1), Verdict::Notable(_)));
        assert!(matches!(judge(Some(line), 8.1), Verdict::TooSlow(_)));
        assert_eq!(judge(None, 0.45), Verdict::Fine);
        assert!(matches!(judge(None, 5.1), Verdict::TooSlow(_)));
    }
}

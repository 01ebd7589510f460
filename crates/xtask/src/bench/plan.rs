//! What `x bench` measures: its benches with the time that they take, turns and sizes of the complete and of the brief form, and where
//! results go. Separate, so that no bench decides by itself how long it takes.

use super::levels::{Level, NATIVE};
use super::*;
use std::io::Write as _;

/// A bench: its name, which is also how it is chosen, the minutes that it takes, and those of its brief form.
pub struct Bench {
    pub name: &'static str,
    minutes: f32,
    brief_minutes: f32,
    /// Why it measures nothing at a level, if it does not.
    without_levels: Option<&'static str>,
    pub run: fn(&Plan, &mut Out) -> Result<(), String>,
}

const COMPILER: &str = "it is about the compiler, which is the same for all levels";
const FOREIGN: &str = "it counts instructions of AArch64";
const OF_MACHINE: &str = "its programs are compiled for this processor only";

const fn bench(
    name: &'static str,
    minutes: f32,
    brief_minutes: f32,
    run: fn(&Plan, &mut Out) -> Result<(), String>,
) -> Bench {
    Bench { name, minutes, brief_minutes, without_levels: None, run }
}

/// All benches, in the order of a complete run. The minutes are those on two cores that do nothing else, without compiling Nyala.
pub const BENCHES: &[Bench] = &[
    bench("blur compile", 0.1, 0.1, compile_blur).without_levels(COMPILER),
    bench("families", 2.0, 0.3, families).without_levels(COMPILER),
    bench("front end", 1.0, 0.1, front::run).without_levels(COMPILER),
    bench("edits", 1.0, 0.5, edits::run).without_levels(COMPILER),
    bench("blur throughput", 0.2, 0.1, throughput),
    bench("parallel loops", 1.0, 0.5, parallel::run),
    bench("matrix", 5.0, 0.7, matrix::run),
    bench("text", 1.0, 0.5, text::run),
    bench("sort", 12.0, 0.9, sort::run),
    bench("sierra", 1.0, 0.5, |plan, out| sierra::run(&sierra::SIERRA, plan, out)),
    bench("ispc", 5.0, 0.9, |plan, out| sierra::run(&sierra::ISPC, plan, out)),
    bench("staging", 10.0, 0.7, staging::run),
    bench("vectorize", 15.0, 0.9, |plan, out| suites::run("vectorize", plan, out)),
    bench("image", 15.0, 0.9, |plan, out| suites::run("image", plan, out)),
    bench("game", 3.0, 0.9, game::run),
    bench("constants", 5.0, 0.5, constants::run).without_levels(COMPILER),
    bench("slopes", 10.0, 0.5, slopes::run).without_levels(COMPILER),
    bench("interpreters", 0.5, 0.3, interpreters::run).without_levels(OF_MACHINE),
    bench("patterns", 1.0, 0.5, patterns::run),
    bench("variants", 1.0, 0.5, variants).without_levels(OF_MACHINE),
    bench("python", 2.0, 0.7, python).without_levels(OF_MACHINE),
    bench("rays", 40.0, 0.9, rays::run),
    bench("align", 8.0, 0.9, align::run),
    bench("aarch64", 0.3, 0.3, aarch64::run).without_levels(FOREIGN),
];

impl Bench {
    const fn without_levels(mut self, why: &'static str) -> Bench {
        self.without_levels = Some(why);
        self
    }

    /// Why the bench is not measured at the plan's level, if it is not.
    pub fn left_out(&self, plan: &Plan) -> Option<&'static str> {
        self.without_levels.filter(|_| !plan.level.is_native())
    }

    /// Whether the words after `x bench` choose this bench: a part of its name, or its name and the name of a part.
    fn is_chosen(&self, words: &str) -> bool {
        self.name.contains(words) || words.strip_prefix(self.name).is_some_and(|part| part.starts_with(' '))
    }

    /// The line that `x bench` prints before the bench starts.
    pub fn announced(&self, plan: &Plan) -> String {
        let minutes = if plan.is_brief { self.brief_minutes } else { self.minutes };
        let time = match minutes {
            ..0.95 => format!("{:.0} seconds", (minutes * 60.0 / 10.0).ceil() * 10.0),
            ..1.5 => "a minute".into(),
            _ => format!("{minutes:.0} minutes"),
        };
        let part = if plan.is_brief {
            ", the brief form"
        } else if !plan.part(self.name).is_empty() {
            " with all parts"
        } else {
            ""
        };
        format!("{}{part}{}: about {time} on idle cores\n", self.name, plan.level.said())
    }
}

/// The turns of a brief form.
const BRIEF_TURNS: usize = 3;

/// What a run of `x bench` measures.
pub struct Plan {
    words: Option<String>,
    pub is_brief: bool,
    /// What programs and peers are limited to.
    pub level: &'static Level,
}

impl Plan {
    pub fn new(words: Option<&str>, is_brief: bool) -> Plan {
        Plan { words: words.map(str::to_string), is_brief, level: NATIVE }
    }

    pub fn limited(self, level: &'static Level) -> Plan {
        Plan { level, ..self }
    }

    /// Whether a peer is measured. If its level leaves it out, that is said, with the reason.
    pub fn has(&self, peer: &str, out: &mut Out) -> bool {
        let why = self.level.left_out(peer);
        if let Some(why) = &why {
            let _ = writeln!(out, "  {peer}: not measured: {why}");
        }
        why.is_none()
    }

    /// The benches that are measured, or an error that names all.
    pub fn benches(&self) -> Result<Vec<&'static Bench>, String> {
        let chosen: Vec<&Bench> =
            BENCHES.iter().filter(|b| self.words.as_deref().is_none_or(|words| b.is_chosen(words))).collect();
        let names = || BENCHES.iter().map(|b| b.name).collect::<Vec<_>>().join(", ");
        match (chosen.is_empty(), &self.words) {
            (true, Some(words)) => Err(format!("there is no bench `{words}`: there are {}", names())),
            _ => Ok(chosen),
        }
    }

    /// The words after the bench's name, which choose a part.
    pub fn part(&self, bench: &str) -> &str {
        self.words.as_deref().and_then(|words| words.strip_prefix(bench)).map_or("", str::trim)
    }

    /// Whether everything is measured, so that the results are kept.
    pub fn is_complete(&self) -> bool {
        self.words.is_none() && !self.is_brief
    }

    /// How often everything is measured, if it is so often in the complete form.
    pub fn turns(&self, complete: usize) -> usize {
        if self.is_brief { complete.min(BRIEF_TURNS) } else { complete }
    }

    /// The sizes, of which the brief form has one.
    pub fn sizes<'a, T>(&self, complete: &'a [T], brief: usize) -> &'a [T] {
        if self.is_brief { &complete[brief..=brief] } else { complete }
    }

    /// The workloads, of which the brief form has those with the names in `brief`.
    pub fn workloads<'a, T>(
        &self,
        complete: &'a [(&str, T)],
        brief: &'a [&str],
    ) -> impl Iterator<Item = &'a (&'a str, T)> {
        complete.iter().filter(move |w| !self.is_brief || brief.contains(&w.0))
    }

    /// One thread and all processors; only one thread in the brief form.
    pub fn threads(&self) -> Vec<usize> {
        let mut all = vec![1, cores()];
        all.dedup();
        all.truncate(if self.is_brief { 1 } else { 2 });
        all
    }
}

/// Prints results as soon as they are there, and keeps them.
#[derive(Default)]
pub struct Out {
    pub text: String,
}

impl std::fmt::Write for Out {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        print!("{part}");
        self.text.push_str(part);
        std::io::stdout().flush().map_err(|_| std::fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bench_has_a_brief_form_below_a_minute() {
        let brief = Plan::new(None, true);
        for bench in BENCHES {
            assert!(bench.brief_minutes < 1.0 && bench.brief_minutes <= bench.minutes, "{}", bench.name);
            assert!(bench.announced(&brief).contains("seconds on idle cores"), "{}", bench.announced(&brief));
            let of_name = Plan::new(Some(bench.name), true).benches().unwrap();
            assert!(of_name.iter().any(|b| b.name == bench.name), "{}", bench.name);
        }
        assert_eq!(brief.turns(RUNS), BRIEF_TURNS);
        assert_eq!(brief.turns(1), 1);
        assert_eq!(brief.sizes(&[10, 20, 30], 1), [20]);
        assert_eq!(brief.threads(), [1]);
        let complete = Plan::new(None, false);
        assert_eq!(complete.turns(RUNS), RUNS);
        assert_eq!(complete.sizes(&[10, 20, 30], 1), [10, 20, 30]);
    }

    #[test]
    fn the_command_line_takes_the_brief_form() {
        use clap::Parser as _;
        let parsed = |words: &[&str]| match crate::Cli::try_parse_from(words).map(|cli| cli.task) {
            Ok(crate::Task::Bench { filter, brief, cpu }) => Some((filter, brief, cpu)),
            _ => None,
        };
        assert_eq!(parsed(&["x", "bench", "sort", "--brief"]), Some((Some("sort".into()), true, "native".into())));
        assert_eq!(parsed(&["x", "bench", "--brief"]), Some((None, true, "native".into())));
        assert_eq!(parsed(&["x", "bench", "game fasta"]), Some((Some("game fasta".into()), false, "native".into())));
        assert_eq!(
            parsed(&["x", "bench", "sort", "--cpu", "x86-64-v2"]),
            Some((Some("sort".into()), false, "x86-64-v2".into()))
        );
        assert_eq!(parsed(&["x", "bench", "sort", "--cpu", "x86-64-v9"]), None);
        assert_eq!(parsed(&["x", "bench", "--short"]), None);
    }

    #[test]
    fn words_choose_benches_and_parts() {
        let names = |words: &str| -> Result<Vec<&str>, String> {
            Ok(Plan::new(Some(words), false).benches()?.iter().map(|b| b.name).collect())
        };
        assert_eq!(names("blur"), Ok(vec!["blur compile", "blur throughput"]));
        assert_eq!(names("game fasta"), Ok(vec!["game"]));
        assert_eq!(Plan::new(Some("game fasta"), false).part("game"), "fasta");
        let unknown = names("sorting").unwrap_err();
        assert!(unknown.starts_with("there is no bench `sorting`") && unknown.contains("staging"), "{unknown}");
        assert!(!Plan::new(None, true).is_complete() && Plan::new(None, false).is_complete());
    }
}

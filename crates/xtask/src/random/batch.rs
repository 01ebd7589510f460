//! Random bodies as one program, whose compilation serves all. A body that fails among others is checked alone. Separate from
//! checking, which takes any program.

use super::check::{Blame, Body, Engines, LARGE, Left, Outcome, Program, Times, check};
use super::{INPUTS, check_all, maker, vectorized};
use std::fmt::Write;

/// What follows in a program of several bodies behind the heads, as a function of the number of each.
const ALL: &str = "extern fn all() -> u32 {\n    let mut sum = 0u32;\n";

/// A random body.
pub struct Made {
    pub seed: u64,
    /// Whether it is a `vectorize`.
    pub has_lanes: bool,
    text: String,
}

impl Made {
    pub fn new(seed: u64, has_lanes: bool) -> Made {
        let text = if has_lanes { vectorized::generate(seed) } else { maker::generate(seed) };
        Made { seed, has_lanes, text }
    }

    #[cfg(test)]
    pub fn of_text(seed: u64, text: &str) -> Made {
        Made { seed, has_lanes: false, text: text.into() }
    }

    fn head(&self) -> &'static str {
        if self.has_lanes { vectorized::HEAD } else { maker::HEAD }
    }

    /// Its text with only one of the entries with known inputs: each makes a copy of the body.
    fn with_one_split(&self) -> String {
        let names: Vec<String> =
            (0..INPUTS.len()).map(|i| format!("split_{i}(")).filter(|n| self.text.contains(n)).collect();
        let kept = names.get(self.seed as usize % names.len().max(1));
        let is_left = |l: &&str| names.iter().all(|n| Some(n) == kept || !l.contains(n.as_str()));
        self.text.lines().filter(is_left).map(|l| format!("{l}\n")).collect()
    }

    /// The program that has nothing else.
    pub fn alone(&self) -> String {
        format!("{}{}", self.head(), self.text)
    }
}

/// A program of bodies of one kind: each is a module, whose exported functions have a suffix of its own.
fn join(bodies: &[&Made]) -> Program {
    let mut program = Program { text: String::new(), bodies: Vec::new() };
    program.text += bodies.first().map_or("", |b| b.head());
    for (i, body) in bodies.iter().enumerate() {
        let from = program.text.len();
        let text = body.with_one_split().replace("entry(", &format!("entry_{i}("));
        let text = text.replace("split_", &format!("split_{i}_")).replace("fn all(", &format!("fn all_{i}("));
        let _ = writeln!(program.text, "mod b{i} {{\n{text}}}");
        program.bodies.push(Body { suffix: format!("_{i}"), place: from..program.text.len() });
    }
    program
}

/// The program with a function that calls those of all bodies, so that it can be checked like one body.
fn with_all(program: &Program) -> String {
    let calls: String =
        (0..program.bodies.len()).map(|i| format!("    sum = sum * 31u32 + b{i}::all_{i}();\n")).collect();
    format!("{}{ALL}{calls}    sum\n}}\n", program.text)
}

/// The outcome for a body, and the program that shows it.
pub struct Checked {
    pub outcome: Outcome,
    pub program: String,
}

/// Checks bodies of one kind together.
pub fn check_together(bodies: &[Made], engines: &Engines, times: &Times) -> Vec<Checked> {
    let too_long = || Checked { outcome: Outcome::Left(Left::TooLong), program: String::new() };
    let mut run = Run { bodies, engines, times, checked: bodies.iter().map(|_| too_long()).collect() };
    run.group((0..bodies.len()).collect());
    run.checked
}

struct Run<'a> {
    bodies: &'a [Made],
    engines: &'a Engines,
    times: &'a Times,
    checked: Vec<Checked>,
}

impl Run<'_> {
    fn alone(&mut self, i: usize, engines: &Engines) {
        let program = self.bodies[i].alone();
        self.checked[i] = Checked { outcome: check_all(&program, engines, self.times), program };
    }

    fn is_fault(&self, i: usize) -> bool {
        matches!(self.checked[i].outcome, Outcome::Fault(_))
    }

    /// Checks some of the bodies. Those that are blamed are taken out; if none can be, each half is checked by itself.
    fn group(&mut self, mut group: Vec<usize>) {
        while group.len() > 1 {
            let bodies: Vec<&Made> = group.iter().map(|&i| &self.bodies[i]).collect();
            let program = join(&bodies);
            let checked = std::panic::catch_unwind(|| check(&program, self.engines, self.times));
            let panicked = || Err(Blame { body: None, outcome: Outcome::Fault("the compiler panicked".into()) });
            let blame = match checked.unwrap_or_else(|_| panicked()) {
                Ok(sizes) => {
                    for (&i, size) in group.iter().zip(sizes) {
                        match size {
                            Err(left) => self.checked[i].outcome = Outcome::Left(left),
                            Ok(size) if size.for_each_of_source > LARGE => {
                                self.alone(i, &Engines { native: false, plain: false, ..self.engines.clone() });
                            }
                            Ok(size) => self.checked[i].outcome = Outcome::Agrees(size),
                        }
                    }
                    return;
                }
                Err(blame) => blame,
            };
            let suspects = match blame.body {
                Some(k) => vec![group.remove(k)],
                None => std::mem::take(&mut group),
            };
            match suspects[..] {
                [i] => self.alone(i, self.engines),
                _ => {
                    let (first, second) = suspects.split_at(suspects.len() / 2);
                    self.group(first.to_vec());
                    self.group(second.to_vec());
                }
            }
            if let Outcome::Fault(e) = blame.outcome
                && !suspects.iter().any(|&i| self.is_fault(i))
            {
                let outcome = Outcome::Fault(format!("only among others: {e}"));
                self.checked[suspects[0]] = Checked { outcome, program: with_all(&program) };
            }
        }
        if let [i] = group[..] {
            self.alone(i, self.engines);
        }
    }
}

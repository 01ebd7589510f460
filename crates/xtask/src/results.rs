//! What comes of text tests: faults, costs, what was skipped.

use crate::Tally;
use crate::costs::{self, Table, Verdict};
use crate::queue::{Answer, Order};
use crate::texts::{Tier, is_there};
use nyala_driver::testing;
use std::collections::{BTreeMap, BTreeSet};

/// The number of slowest runs whose costs are shown.
const SLOWEST: usize = 10;

/// Answers to orders of text tests, as they come.
pub struct Results {
    table: Table,
    /// The units of each run.
    pub took: BTreeMap<(String, String), f64>,
    /// Faults by file and run.
    pub faults: BTreeMap<String, Vec<(String, String)>>,
    paths: BTreeSet<String>,
    skipped: BTreeSet<String>,
    notable: Vec<String>,
    /// Runs that took too long, to be run again: only what takes too long twice has failed.
    pub slow: Vec<Order>,
    /// The number of runs whose results were known.
    n_known: usize,
    /// Whether costs are compared with the table's, which are those of the gate.
    judges: bool,
}

impl Results {
    pub fn new(judges: bool) -> Result<Results, String> {
        Ok(Results {
            table: Table::read()?,
            took: BTreeMap::new(),
            faults: BTreeMap::new(),
            paths: BTreeSet::new(),
            skipped: BTreeSet::new(),
            notable: Vec::new(),
            slow: Vec::new(),
            n_known: 0,
            judges,
        })
    }

    pub fn add(&mut self, order: &Order, answer: Answer) {
        let [_, path, run, ..] = &order.words[..] else { return };
        self.paths.insert(path.clone());
        self.skipped.extend(answer.skipped);
        self.n_known += usize::from(answer.is_known);
        let mut faults = answer.faults;
        let key = (path.clone(), run.clone());
        if self.judges {
            let is_second = order.words == second(order).words;
            match costs::judge(self.table.0.get(&key).copied(), answer.took) {
                Verdict::Fine => {}
                Verdict::Notable(said) => self.notable.push(format!("{path} under {run} {said}")),
                Verdict::TooSlow(said) if is_second => faults.push(said),
                Verdict::TooSlow(_) => self.slow.push(second(order)),
            }
        }
        self.took.insert(key, answer.took);
        for fault in faults {
            println!("FAILED {path} under {run}: {fault}");
            self.faults.entry(path.clone()).or_default().push((run.clone(), fault));
        }
    }

    /// Shows the slowest runs, what was skipped, and what failed; counts files.
    pub fn end(self) -> Tally {
        let mut slowest: Vec<_> = self.took.iter().collect();
        slowest.sort_by(|a, b| b.1.total_cmp(a.1));
        let sum: f64 = self.took.values().sum();
        if !self.took.is_empty() {
            let (runs, files) = (self.took.len(), self.paths.len());
            println!("text tests: {runs} runs of {files} files, {sum:.0} units; the slowest:");
        }
        for ((path, run), took) in slowest.into_iter().take(SLOWEST) {
            println!("  {took:5.1} {path} under {run}");
        }
        println!("units (runs): {}", costs::by_run(&self.took));
        self.notable.iter().for_each(|said| println!("slow: {said}"));
        if self.n_known > 0 {
            println!("known from earlier runs: {} runs, without what their programs print", self.n_known);
        }
        self.skipped.iter().for_each(|what| println!("skipped: {what}"));
        let lacking: Vec<_> = testing::ENGINES.iter().filter(|e| !is_there(e)).collect();
        for engine in &lacking {
            println!(
                "skipped: everything under {}, since {} is missing",
                engine.name,
                engine.lacks().unwrap_or_default()
            );
        }
        for (path, faults) in &self.faults {
            let runs: Vec<&str> = faults.iter().map(|f| &*f.0).collect();
            println!("failed: {path} under {}", runs.join(", "));
        }
        let failed = self.faults.len();
        Tally { passed: self.paths.len() - failed, failed, skipped: self.skipped.len() + lacking.len() }
    }
}

/// The same order, without what is kept of earlier runs, which would hide what a compilation costs.
fn second(order: &Order) -> Order {
    let mut words = order.words.clone();
    if let Some(tier) = words.get_mut(4) {
        *tier = format!("{:?}", Tier::Measured);
    }
    Order { words, cost: order.cost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_slow_twice_fails() {
        let words = ["text", "a.impala", "-O0", "1", "Gate", "false"].map(String::from).to_vec();
        let first = Order { words, cost: costs::LISTED };
        let took = |took| Answer { took, ..Answer::default() };
        for (again, failed) in [(0.2, 0), (costs::NEW + 0.1, 1)] {
            let mut results = Results::new(true).unwrap();
            results.add(&first, took(costs::NEW + 0.1));
            assert!(results.faults.is_empty());
            let slow = std::mem::take(&mut results.slow);
            let [second] = &slow[..] else { panic!("{} orders", slow.len()) };
            results.add(second, took(again));
            assert!(results.slow.is_empty());
            assert_eq!(results.end().failed, failed);
        }
    }
}

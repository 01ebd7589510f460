//! Searches for the fastest variant of a program. A [`Machine`] compiles and runs the variants, so that tests can use
//! one whose times are known; the search itself knows no programs and no clock.
//!
//! 1. **Explore**, until all variants are tried or `EXPLORING` of the time is over: coordinate descent from the values
//!    as written (it tries all values of one static and keeps the best one, then those of the next static, until
//!    nothing improves), then from random variants that were not tried. If the time suffices, the whole grid is tried.
//!    Each variant runs once, or three times if it is short, soon after the program as written; its score is the ratio
//!    of the two times.
//! 2. **Refine**: the best `LEADERS` and the program as written run in turns, so that other load on the machine affects
//!    all of them alike. After every `ROUNDS_OF_STAGE` rounds, variants that are clearly slower than the best one are
//!    dropped (successive halving, except that the noise decides how many).
//! 3. **Choose** the variant with the least median of the ratios, unless another one that changes fewer values lies
//!    within its interval (or two hundredths above it). So the program as written, which changes none, must be beaten
//!    clearly. Then variants in which one more value is as written are refined too, and the choice is made again, until
//!    every changed value matters.

use std::collections::HashSet;

/// A variant: for each static, the index of its value; 0 is the value as written.
pub type Variant = Vec<usize>;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Run {
    /// The time that it took.
    Seconds(f64),
    /// The run failed, and the variant is left out for this reason.
    Failed(String),
    /// The time is over, or the user has stopped the search. This says nothing about the variant.
    Stopped,
}

/// Compiles and measures variants.
pub trait Machine {
    /// Compiles variants. Returns, for each, the reason why that failed, if it did.
    fn compile(&mut self, variants: &[Variant]) -> Vec<Option<String>>;
    /// Runs a variant that was compiled.
    fn run(&mut self, variant: &Variant) -> Run;
    /// Discards a compiled variant that is no longer needed.
    fn discard(&mut self, variant: &Variant);
    /// The fraction of the time that is over; 1 or more if all of it is.
    fn spent(&self) -> f64;
    /// The number of variants that should be compiled at a time.
    fn batch(&self) -> usize;
    /// Shows the progress: `tried` of `total` variants were tried, and `best` is the best ratio to the program as
    /// written.
    fn progress(&mut self, tried: usize, total: u64, best: f64);
}

const EXPLORING: f64 = 0.6;
/// Runs that take fewer seconds are repeated while exploring.
const SHORT: f64 = 0.1;
const LEADERS: usize = 8;
/// Variants are dropped if they take this many times as long as the best one, and this many seconds more.
const HOPELESS: (f64, f64) = (1.5, 0.01);
const ROUNDS_OF_STAGE: usize = 5;
const STAGES: usize = 4;
/// A variant must be faster by this fraction to count as faster.
const SAME: f64 = 0.02;
/// In larger grids, the search does not enumerate the variants that were not tried.
const ENUMERABLE: u64 = 1 << 20;

/// A variant that was tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The values of the statics.
    pub variant: Variant,
    /// The reason why it is left out, if it is.
    pub rejected: Option<String>,
    /// Seconds of runs while exploring, with the ratios to the program as written at about the same time.
    explored: Vec<(f64, f64)>,
    /// Seconds and ratios of runs in rounds, in turns with the other leaders.
    refined: Vec<(f64, f64)>,
}

/// A median, and an interval that contains the true one with a probability of about 99 %. For few values, the interval
/// is from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median in seconds.
    pub median: f64,
    /// The lower end of the interval in seconds.
    pub low: f64,
    /// The upper end of the interval in seconds.
    pub high: f64,
}

impl Trial {
    /// Whether it was measured in turns with the program as written.
    pub fn is_refined(&self) -> bool {
        self.refined.len() >= 3
    }

    fn samples(&self) -> &[(f64, f64)] {
        // Exploration has few runs, and the best of many variants were lucky too.
        if self.is_refined() { &self.refined } else { &self.explored }
    }

    /// The number of measured runs.
    pub fn runs(&self) -> usize {
        self.samples().len()
    }

    /// The time of the variant, or `None` if it was not measured.
    pub fn seconds(&self) -> Option<Estimate> {
        estimate(self.samples().iter().map(|s| s.0).collect())
    }

    /// The ratio to the time of the program as written, or `None` if it was not measured.
    pub fn ratio(&self) -> Option<Estimate> {
        estimate(self.samples().iter().map(|s| s.1).collect())
    }

    /// Whether it is the program as written.
    pub fn is_default(&self) -> bool {
        changes(&self.variant) == 0
    }

    /// The score by which variants are compared: the median ratio of the rounds, or before these the least ratio of the
    /// few runs.
    pub fn score(&self) -> f64 {
        let ratios = self.samples().iter().map(|s| s.1);
        match (&self.rejected, self.is_refined()) {
            (Some(_), _) => f64::INFINITY,
            (None, true) => self.ratio().map_or(f64::INFINITY, |r| r.median),
            (None, false) => ratios.fold(f64::INFINITY, f64::min),
        }
    }
}

fn changes(variant: &Variant) -> usize {
    variant.iter().filter(|v| **v != 0).count()
}

/// The estimate of the median of the times.
pub fn estimate(mut values: Vec<f64>) -> Option<Estimate> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 {
        return None;
    }
    // Ranks of an interval around the median of a binomial distribution, approximated by a normal one.
    let below = ((n as f64 / 2.0 - 1.29 * (n as f64).sqrt()).floor().max(0.0)) as usize;
    let (low, high) = (values[below], values[n - 1 - below]);
    // Two or three runs do not show how much the times vary.
    let margin = if n < ROUNDS_OF_STAGE { 0.1 } else { 0.0 };
    let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
    Some(Estimate { median, low: low * (1.0 - margin), high: high * (1.0 + margin) })
}

/// The result of a search.
pub struct Found {
    /// The variants in the order in which they were tried; the first is the program as written.
    pub trials: Vec<Trial>,
    /// The index of the chosen variant.
    pub chosen: usize,
    /// The number of all variants.
    pub total: u64,
}

/// Finds the fastest variant. `counts` are the numbers of values of the statics.
///
/// # Errors
/// The program as written cannot be measured, with the reason; `None` if the search was stopped before.
pub fn search(counts: &[usize], seed: u64, machine: &mut impl Machine) -> Result<Found, Option<String>> {
    let total = counts.iter().fold(1u64, |n, &c| n.saturating_mul(c as u64));
    let mut search =
        Search { counts, total, machine, trials: Vec::new(), tried: HashSet::new(), leaders: Vec::new(), random: seed };
    search.start()?;
    search.explore();
    let best = search.leaders.first().copied().unwrap_or(0);
    let leaders = search.leaders.iter().copied().filter(|&t| search.may_be_as_fast(t, best)).collect();
    search.refine(leaders);
    let mut chosen = choose(&search.trials);
    for _ in counts {
        let simpler = search.simpler(chosen);
        if simpler.is_empty() {
            break;
        }
        search.refine(simpler.into_iter().chain([chosen]).collect());
        chosen = choose(&search.trials);
    }
    Ok(Found { trials: search.trials, chosen, total })
}

struct Search<'a, M> {
    counts: &'a [usize],
    total: u64,
    machine: &'a mut M,
    trials: Vec<Trial>,
    tried: HashSet<Variant>,
    /// The indices of the best trials so far, without the program as written. The programs of other trials are
    /// discarded.
    leaders: Vec<usize>,
    random: u64,
}

impl<M: Machine> Search<'_, M> {
    /// Runs the program as written twice, so that the machine can compare its outputs.
    fn start(&mut self) -> Result<(), Option<String>> {
        let default = vec![0; self.counts.len()];
        if let Some(Some(why)) = self.machine.compile(std::slice::from_ref(&default)).into_iter().next() {
            return Err(Some(why));
        }
        let mut explored = Vec::new();
        for _ in 0..2 {
            match self.machine.run(&default) {
                Run::Seconds(seconds) => explored.push((seconds, 1.0)),
                Run::Failed(why) => return Err(Some(why)),
                Run::Stopped => return Err(None),
            }
        }
        self.tried.insert(default.clone());
        self.trials.push(Trial { variant: default, rejected: None, explored, refined: Vec::new() });
        Ok(())
    }

    fn exploring(&self) -> bool {
        self.machine.spent() < EXPLORING
    }

    fn explore(&mut self) {
        let mut current = 0;
        while self.exploring() {
            let mut unchanged = 0;
            let mut coordinate = 0;
            while unchanged < self.counts.len() && self.exploring() {
                let from = self.trials[current].variant.clone();
                let line: Vec<Variant> = (0..self.counts[coordinate])
                    .map(|value| {
                        let mut variant = from.clone();
                        variant[coordinate] = value;
                        variant
                    })
                    .collect();
                self.try_all(&line);
                let on_line = (0..self.trials.len()).filter(|&t| line.contains(&self.trials[t].variant));
                let best = on_line.min_by(|&a, &b| self.trials[a].score().total_cmp(&self.trials[b].score()));
                let better = best.filter(|&b| self.trials[b].score() < self.trials[current].score());
                unchanged = if better.is_some() { 1 } else { unchanged + 1 };
                current = better.unwrap_or(current);
                coordinate = (coordinate + 1) % self.counts.len();
            }
            let Some(next) = self.draw() else { return };
            current = self.trials.len();
            self.try_all(&[next]);
            if current == self.trials.len() {
                return;
            }
        }
    }

    /// Tries the variants that were not tried yet, as far as there is time.
    fn try_all(&mut self, variants: &[Variant]) {
        let new: Vec<Variant> = variants.iter().filter(|v| !self.tried.contains(*v)).cloned().collect();
        for batch in new.chunks(self.machine.batch().max(1)) {
            if !self.exploring() {
                return;
            }
            let faults = self.machine.compile(batch);
            // The time of the program as written, at about the time when the variants run. The least one counts,
            // because disturbances only make runs longer.
            let (base, _) = self.some_runs(&vec![0; self.counts.len()]);
            let Some(base) = base.into_iter().min_by(f64::total_cmp) else { return };
            self.trials[0].explored.push((base, 1.0));
            for (variant, rejected) in batch.iter().zip(faults) {
                let (times, failed) = if rejected.is_none() { self.some_runs(variant) } else { (Vec::new(), None) };
                let explored = times.into_iter().map(|t| (t, t / base)).collect();
                let rejected = rejected.or(failed);
                let trial = Trial { variant: variant.clone(), rejected, explored, refined: Vec::new() };
                if trial.rejected.is_none() && trial.explored.is_empty() {
                    // The search was stopped.
                    return;
                }
                self.tried.insert(variant.clone());
                self.trials.push(trial);
                self.lead(self.trials.len() - 1);
                let best = self.trials.iter().map(Trial::score).fold(f64::INFINITY, f64::min);
                self.machine.progress(self.trials.len(), self.total, best);
            }
        }
    }

    /// The times of one run, or of three short ones, and the reason why a run failed.
    fn some_runs(&mut self, variant: &Variant) -> (Vec<f64>, Option<String>) {
        let mut times = Vec::new();
        while times.len() < 3 && times.last().is_none_or(|t| *t < SHORT) {
            match self.machine.run(variant) {
                Run::Seconds(seconds) => times.push(seconds),
                Run::Failed(why) => return (times, Some(why)),
                Run::Stopped => break,
            }
        }
        (times, None)
    }

    /// Adds a new trial to the leaders, if it is good enough.
    fn lead(&mut self, trial: usize) {
        self.leaders.push(trial);
        let trials = &self.trials;
        self.leaders.sort_by(|&a, &b| trials[a].score().total_cmp(&trials[b].score()));
        let is_out = |t: usize| trials[t].rejected.is_some();
        while self.leaders.len() > LEADERS || self.leaders.last().is_some_and(|&t| is_out(t)) {
            let Some(last) = self.leaders.pop() else { return };
            self.machine.discard(&trials[last].variant);
        }
    }

    /// A random variant that was not tried yet, if one is found.
    fn draw(&mut self) -> Option<Variant> {
        let tries = if self.total <= ENUMERABLE { self.total } else { 1000 };
        let first = self.next_random() % self.total;
        for i in 0..tries {
            // Searches small grids from a random place on; in large ones, draws at random.
            let place =
                if self.total <= ENUMERABLE { (first + i) % self.total } else { self.next_random() % self.total };
            let mut rest = place;
            let variant = self.counts.iter().map(|&c| {
                let value = (rest % c as u64) as usize;
                rest /= c as u64;
                value
            });
            let variant: Variant = variant.collect();
            if !self.tried.contains(&variant) {
                return Some(variant);
            }
        }
        None
    }

    /// The next random number, by SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Compiles the explored variants again that differ from `than` in one value, which is as written. Perhaps that
    /// value does not matter. Returns their trials.
    fn simpler(&mut self, than: usize) -> Vec<usize> {
        let mut simpler: Vec<usize> = Vec::new();
        for coordinate in 0..self.counts.len() {
            let mut variant = self.trials[than].variant.clone();
            variant[coordinate] = 0;
            let usable = |t: &Trial| t.variant == variant && t.rejected.is_none() && !t.is_refined() && !t.is_default();
            let found = self.trials.iter().position(usable);
            simpler.extend(found.filter(|&t| self.may_be_as_fast(t, than)));
        }
        let variants: Vec<Variant> = simpler.iter().map(|&t| self.trials[t].variant.clone()).collect();
        if variants.is_empty() || self.machine.spent() >= 1.0 {
            return Vec::new();
        }
        let faults = self.machine.compile(&variants);
        simpler.into_iter().zip(faults).filter(|(_, fault)| fault.is_none()).map(|(t, _)| t).collect()
    }

    /// Whether a trial may turn out to be as fast as `best`.
    fn may_be_as_fast(&self, trial: usize, best: usize) -> bool {
        let seconds = |t: usize| self.trials[t].explored.iter().map(|s| s.0).fold(f64::INFINITY, f64::min);
        let ratio = self.trials[best].score().min(1.0);
        self.trials[trial].score() <= ratio * HOPELESS.0 || seconds(trial) <= seconds(best) + HOPELESS.1
    }

    /// Measures the trials of `order`, the best first, in turns with the program as written.
    fn refine(&mut self, mut order: Vec<usize>) {
        order.sort_by(|&a, &b| self.trials[a].score().total_cmp(&self.trials[b].score()));
        for _ in 0..STAGES {
            if order.is_empty() {
                return;
            }
            for _ in 0..ROUNDS_OF_STAGE {
                // The program as written is a part of each round, and only complete rounds count.
                let all: Vec<usize> = std::iter::once(0).chain(order.iter().copied()).collect();
                let mut times = vec![None; self.trials.len()];
                let turn = self.trials[0].refined.len();
                for i in 0..all.len() {
                    let t = all[(i + turn) % all.len()];
                    if self.machine.spent() >= 1.0 {
                        return;
                    }
                    match self.machine.run(&self.trials[t].variant.clone()) {
                        Run::Seconds(seconds) => times[t] = Some(seconds),
                        Run::Failed(why) => self.trials[t].rejected = Some(why),
                        Run::Stopped => return,
                    }
                }
                let Some(base) = times[0] else { return };
                for &t in &all {
                    if let Some(seconds) = times[t] {
                        self.trials[t].refined.push((seconds, seconds / base));
                    }
                }
                order.retain(|&t| self.trials[t].rejected.is_none());
                let best = order.iter().map(|&t| self.trials[t].score()).fold(1.0, f64::min);
                self.machine.progress(self.trials.len(), self.total, best);
            }
            let ratio = |t: usize| self.trials[t].ratio();
            let fastest = order.iter().filter_map(|&t| ratio(t)).min_by(|a, b| a.median.total_cmp(&b.median));
            let Some(fastest) = fastest else { return };
            let bound = fastest.high.min(1.0 - SAME);
            order.retain(|&t| ratio(t).is_some_and(|r| r.low <= bound));
        }
    }
}

/// The variant to choose: the one that changes least among those that cannot be told apart from the best one. If some are clearly
/// faster than the program as written, it is one of these.
fn choose(trials: &[Trial]) -> usize {
    // If some trials were refined, the others had no chance.
    let refined = trials[0].is_refined();
    let candidate = |t: &usize| !refined || *t == 0 || trials[*t].is_refined();
    let score = |t: &usize| trials[*t].score();
    let high = |t: &usize| trials[*t].ratio().map_or(f64::INFINITY, |r| r.high);
    let mut all: Vec<usize> = (0..trials.len()).filter(candidate).filter(|t| score(t).is_finite()).collect();
    let is_faster = |t: &usize| refined && high(t) < 1.0 - SAME;
    if all.iter().any(is_faster) {
        all.retain(is_faster);
    }
    let Some(&best) = all.iter().min_by(|a, b| score(a).total_cmp(&score(b))) else { return 0 };
    let same = all.into_iter().filter(|t| *t == best || score(t) * (1.0 - SAME) <= high(&best));
    let order = |t: &usize| (changes(&trials[*t].variant), score(t));
    same.min_by(|a, b| order(a).0.cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose times are given by a function, with some percent of noise. Its clock is the sum of these times.
    struct Model<F> {
        time: F,
        clock: f64,
        limit: f64,
        noise: f64,
        random: u64,
        ran: HashSet<Variant>,
        gone: HashSet<Variant>,
    }

    impl<F: Fn(&[usize]) -> Run> Machine for Model<F> {
        fn compile(&mut self, variants: &[Variant]) -> Vec<Option<String>> {
            self.clock += 0.5;
            for v in variants {
                self.gone.remove(v);
            }
            variants.iter().map(|v| (v.contains(&13)).then(|| "unlucky".into())).collect()
        }
        fn run(&mut self, variant: &Variant) -> Run {
            assert!(!variant.contains(&13), "was not compiled");
            assert!(!self.gone.contains(variant), "was given away");
            self.ran.insert(variant.clone());
            let mut run = (self.time)(variant);
            if let Run::Seconds(seconds) = &mut run {
                self.random =
                    self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *seconds *= 1.0 + self.noise * ((self.random >> 33) as f64 / (1u64 << 31) as f64 - 0.5);
                self.clock += *seconds;
            }
            run
        }
        fn discard(&mut self, variant: &Variant) {
            assert!(self.gone.insert(variant.clone()), "given away twice");
        }
        fn spent(&self) -> f64 {
            self.clock / self.limit
        }
        fn batch(&self) -> usize {
            4
        }
        fn progress(&mut self, _: usize, _: u64, _: f64) {}
    }

    fn run(counts: &[usize], limit: f64, noise: f64, time: impl Fn(&[usize]) -> Run) -> (Found, usize) {
        let mut model = Model { time, clock: 0.0, limit, noise, random: 7, ran: HashSet::new(), gone: HashSet::new() };
        let found = search(counts, 1, &mut model).map_err(|e| e.unwrap_or_default()).unwrap();
        (found, model.ran.len())
    }

    #[test]
    fn a_clearly_faster_variant_wins_where_the_fastest_is_not_certain() {
        let trial = |variant: usize, ratios: [f64; 3]| {
            let refined = ratios.iter().cycle().take(18).map(|&r| (r, r)).collect();
            Trial { variant: vec![variant], rejected: None, explored: Vec::new(), refined }
        };
        let mut trials = vec![trial(0, [1.0; 3]), trial(1, [0.91, 0.93, 1.02]), trial(2, [0.94, 0.95, 0.96])];
        assert_eq!(choose(&trials), 2);
        trials.pop();
        assert_eq!(choose(&trials), 0);
    }

    #[test]
    fn a_small_grid_is_tried_as_a_whole() {
        // The best variant has no good neighbors.
        let time = |v: &[usize]| Run::Seconds(if *v == [3, 2] { 0.2 } else { 1.0 + (v[0] + v[1]) as f64 });
        let (found, ran) = run(&[5, 4], 1000.0, 0.02, time);
        assert_eq!((found.trials.len(), ran, found.total), (20, 20, 20));
        assert_eq!(found.trials[found.chosen].variant, [3, 2]);
        let ratio = found.trials[found.chosen].ratio().unwrap();
        assert!(ratio.low < 0.21 && ratio.high > 0.19 && ratio.high < 0.25, "{ratio:?}");
        assert!(found.trials[0].runs() >= ROUNDS_OF_STAGE);
    }

    #[test]
    fn a_large_grid_is_descended() {
        let best = [9, 2, 7, 1, 4, 8];
        let time = |v: &[usize]| {
            Run::Seconds(0.2 + v.iter().zip(best).map(|(a, b)| (*a as f64 - f64::from(b)).powi(2)).sum::<f64>() / 100.0)
        };
        let (found, ran) = run(&[12; 6], 1000.0, 0.02, time);
        assert_eq!(found.trials[found.chosen].variant, best.map(|b| b as usize));
        assert!(ran < 1000 && found.total == 12u64.pow(6), "{ran}");
    }

    #[test]
    fn noise_does_not_beat_the_program_as_written() {
        let (found, _) = run(&[10, 3], 500.0, 0.2, |_| Run::Seconds(0.5));
        assert_eq!(found.chosen, 0);
        // It makes no more changes than needed.
        let (found, _) = run(&[4, 3], 500.0, 0.05, |v| Run::Seconds(if v[0] == 2 { 0.3 } else { 0.5 }));
        assert_eq!(found.trials[found.chosen].variant, [2, 0]);
    }

    #[test]
    fn values_that_do_not_matter_stay_as_written() {
        // The values as written are the slowest by a trifle, which no noise hides.
        let trifle = |v: &[usize]| v[1..].iter().filter(|v| **v == 0).count() as f64 * 1e-6;
        let time = |v: &[usize]| Run::Seconds(if v[0] == 1 { 0.3 } else { 0.5 } + trifle(v));
        let (found, _) = run(&[2, 30, 6], 1e4, 0.0, time);
        assert_eq!((&found.trials[found.chosen].variant[..], found.trials.len()), (&[1, 0, 0][..], 360));
    }

    #[test]
    fn what_fails_is_left_out() {
        let time = |v: &[usize]| match v[0] {
            1 => Run::Failed("signal 11".into()),
            n => Run::Seconds(1.0 / (1 + n) as f64),
        };
        let (found, _) = run(&[14], 200.0, 0.01, time);
        let reasons: Vec<&str> = found.trials.iter().filter_map(|t| t.rejected.as_deref()).collect();
        assert_eq!(reasons, ["signal 11", "unlucky"]);
        assert_eq!(found.trials[found.chosen].variant, [12]);
    }

    #[test]
    fn little_time_is_enough_for_the_program_as_written() {
        let (found, ran) = run(&[10, 10], 0.0, 0.0, |_| Run::Seconds(1.0));
        assert_eq!((found.chosen, found.trials.len(), ran), (0, 1, 1));
        let mut model = Model {
            time: |_: &[usize]| Run::Failed("signal 6".into()),
            clock: 0.0,
            limit: 9.0,
            noise: 0.0,
            random: 1,
            ran: HashSet::new(),
            gone: HashSet::new(),
        };
        assert_eq!(search(&[2], 1, &mut model).err(), Some(Some("signal 6".into())));
    }

    #[test]
    fn a_search_that_is_stopped_keeps_what_it_found() {
        let runs = std::cell::Cell::new(0);
        let time = |v: &[usize]| {
            runs.set(runs.get() + 1);
            if runs.get() > 12 { Run::Stopped } else { Run::Seconds(if v[0] == 2 { 0.2 } else { 2.0 }) }
        };
        let (found, _) = run(&[50], 1e3, 0.0, time);
        assert_eq!(found.trials[found.chosen].variant, [2]);
    }

    #[test]
    fn the_same_seed_tries_the_same() {
        let time = |v: &[usize]| Run::Seconds(1.0 + (v.iter().sum::<usize>() % 7) as f64);
        let order = || run(&[30; 4], 400.0, 0.0, time).0.trials.iter().map(|t| t.variant.clone()).collect::<Vec<_>>();
        assert_eq!(order(), order());
        assert!(order().len() > 30);
    }

    #[test]
    fn medians_and_their_intervals() {
        let e = estimate((1..=15).map(f64::from).collect()).unwrap();
        assert_eq!((e.median, e.low, e.high), (8.0, 3.0, 13.0));
        let e = estimate(vec![2.0, 1.0, 4.0, 3.0, 5.0, 6.0]).unwrap();
        assert_eq!((e.median, e.low, e.high), (3.5, 1.0, 6.0));
        assert_eq!(estimate(Vec::new()), None);
    }
}

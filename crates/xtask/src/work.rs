//! What workers of the queue do: an order's first word says to which part of the tests it belongs.

use crate::queue::{Answer, Order, cache_folder};
use crate::{bad_input, random, random_patterns, root, texts};
use nyala_driver::cache::Objects;
use std::sync::Mutex;
use std::time::Duration;

/// Random tests of one kind.
pub struct Phase {
    /// Its name in `tests/random/seeds.txt`, and as an order.
    pub name: &'static str,
    /// The option of `./x fuzz` for it.
    option: &'static str,
    /// The number that `./x test --all` makes, from fresh seeds.
    all: u64,
    /// The number of one order, and the units that these cost.
    of_order: u64,
    cost: f64,
}

pub const PHASES: &[Phase] = &[
    Phase { name: "programs", option: "", all: 3_200, of_order: 32, cost: 10.0 },
    Phase { name: "lanes", option: "--lanes ", all: 400, of_order: 1, cost: 5.0 },
    Phase { name: "input", option: "--front ", all: 40_000, of_order: 500, cost: 5.0 },
    Phase { name: "patterns", option: "--patterns ", all: 3_000, of_order: 100, cost: 6.0 },
    Phase { name: "faults", option: "--faults ", all: 2_000, of_order: 50, cost: 8.0 },
];

/// Performs an order.
pub fn perform(words: &[String]) -> Answer {
    let Some((kind, words)) = words.split_first() else { return Answer::default() };
    let malformed = || Answer { faults: vec![format!("malformed order {kind} {words:?}")], ..Answer::default() };
    match &**kind {
        "text" => texts::perform(words),
        "sanitized" => match words {
            [name] => crate::sanitized::perform(name),
            _ => malformed(),
        },
        "device" => crate::devices::perform(words),
        "found" => match words {
            [name] => Answer { faults: random::check_found(name).into_iter().collect(), ..Answer::default() },
            _ => malformed(),
        },
        _ => {
            let numbers: Vec<u64> = words.iter().filter_map(|w| w.parse().ok()).collect();
            match (PHASES.iter().find(|p| p.name == kind), &numbers[..]) {
                (Some(phase), &[first, before, count]) => phase.perform(first, before, count, words.len() > 3),
                _ => malformed(),
            }
        }
    }
}

/// Orders for the random programs that failed once.
pub fn found_orders() -> Vec<Order> {
    random::found().into_iter().map(|name| Order { words: vec!["found".into(), name], cost: 5.0 }).collect()
}

impl Phase {
    /// The orders of the gate, or one in `share` of them; their seeds are blessed.
    pub fn gate_orders(&self, share: u64) -> Result<Vec<Order>, String> {
        let (first, count) = blessed(self.name)?;
        Ok(self.orders(first, count.div_ceil(share), false))
    }

    /// The orders of `./x test --all`, from a fresh seed that it says.
    pub fn all_orders(&self) -> Vec<Order> {
        let first = random::fresh_seed();
        println!("random {} from seed {first}", self.name);
        self.orders(first, self.all, true)
    }

    fn orders(&self, first: u64, count: u64, is_fresh: bool) -> Vec<Order> {
        let order = |begin: u64| {
            let n = self.of_order.min(count - begin);
            let numbers = [first, begin, n].map(|n| n.to_string());
            let fresh = is_fresh.then(|| "fresh".to_string());
            let words = std::iter::once(self.name.to_string()).chain(numbers).chain(fresh).collect();
            Order { words, cost: self.cost * n as f64 / self.of_order as f64 }
        };
        (0..count).step_by(self.of_order as usize).map(order).collect()
    }

    /// Makes and tries `count` tests after the first `before` ones of a seed.
    fn perform(&self, first: u64, before: u64, count: u64, is_fresh: bool) -> Answer {
        let said = Mutex::new(Vec::new());
        let say = |text: String| said.lock().unwrap_or_else(|e| e.into_inner()).push(text);
        let tally = match self.name {
            "input" => {
                let from = if is_fresh { bad_input::From::Impala } else { bad_input::From::Own };
                bad_input::run(first.wrapping_add(before), Duration::MAX, count, from, &say)
            }
            "patterns" => random_patterns::run(first.wrapping_add(before), Duration::MAX, count, &say),
            "faults" => random::faults::run(first.wrapping_add(before), Duration::MAX, count, &say),
            _ => {
                let which = if self.name == "lanes" { random::Which::Lanes } else { random::Which::All };
                let cpus = random::one_each(if is_fresh { random::all_cpus() } else { random::gate_cpus() });
                let (time, max_programs) = (Duration::MAX, count);
                let plan = random::Plan {
                    first,
                    before,
                    max_programs,
                    time,
                    which,
                    cpus,
                    keep: None,
                    has_limits: !is_fresh,
                    threads: 1,
                };
                random::run(&plan, &say)
            }
        };
        let said = said.into_inner().unwrap_or_else(|e| e.into_inner());
        let mut answer = Answer::default();
        if tally.failed > 0 {
            let own = if self.name == "input" && !is_fresh { "--own " } else { "" };
            let repeat = format!("`./x fuzz {}{own}--seed SEED --programs 1` repeats one", self.option);
            answer.faults.push(format!("{}\n{repeat}", said.join("\n")));
        }
        answer
    }
}

/// The first seed and the number of a phase in the gate.
fn blessed(name: &str) -> Result<(u64, u64), String> {
    let path = root().join("tests/random/seeds.txt");
    let text = std::fs::read_to_string(path).map_err(|e| format!("tests/random/seeds.txt: {e}"))?;
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
    let numbers: Option<Vec<u64>> = line.map(|l| l.split(' ').filter_map(|n| n.parse().ok()).collect());
    match numbers.as_deref() {
        Some(&[first, count]) => Ok((first, count)),
        _ => Err(format!("tests/random/seeds.txt: no line `{name} SEED NUMBER`")),
    }
}

/// Objects that are kept between runs of the tests. The texts that LLVM and the C compiler get stand for the compiler, but for
/// the crate that calls LLVM.
pub fn objects() -> Objects {
    static COMPILER: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    // The lock file has the versions of what it calls LLVM with.
    let compiler = COMPILER.get_or_init(|| texts_below(&["Cargo.lock", "crates/gen-llvm/src"]));
    Objects::at(cache_folder().join("objects"), compiler.clone())
}

/// The texts of these files and of the files in these folders, one after the other.
pub fn texts_below(paths: &[&str]) -> String {
    let (mut files, mut waiting) = (Vec::new(), paths.iter().map(|p| root().join(p)).collect::<Vec<_>>());
    while let Some(path) = waiting.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => waiting.extend(entries.flatten().map(|e| e.path())),
            Err(_) => files.push(path),
        }
    }
    files.sort();
    files.iter().filter_map(|f| std::fs::read_to_string(f).ok()).collect()
}

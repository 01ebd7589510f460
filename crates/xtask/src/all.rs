//! `x test --all`: everything there is, in parts of at most half an hour on two slow cores. A part, or a test of the text tests,
//! that has passed is not run again until something changes, so that an interrupted run goes on where it was.

use crate::costs::Table;
use crate::texts::{self, Tier};
use crate::{
    Tally, alignments, budgets, build_command, crate_tests, devices, foreign, lock, pages, phase, queue, rays, root,
    sanitized, tidy, work,
};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::process::Command;

/// A part.
struct Part {
    name: &'static str,
    about: &'static str,
    /// The minutes on two slow cores, if the table of costs does not say it.
    minutes: f64,
    what: What,
}

enum What {
    /// Text tests whose paths begin with one of these.
    Texts(&'static [&'static str]),
    /// A phase of random tests.
    Random(&'static str),
    Other(fn() -> Result<Tally, String>),
}

const PARTS: &[Part] = &[
    Part {
        name: "crates",
        about: "all tests of the crates, with those that take long or need tools; crates/scene; documentation",
        minutes: 20.0,
        what: What::Other(crates),
    },
    Part {
        name: "tests",
        about: "text tests of tests/: all tests under all engines, for this processor and older ones",
        minutes: 0.0,
        what: What::Texts(&["tests/"]),
    },
    Part { name: "libraries", about: "the same of lib/", minutes: 0.0, what: What::Texts(&["lib/"]) },
    Part {
        name: "pages",
        about: "the same of docs/, examples/, bench/ and the pages in the root",
        minutes: 0.0,
        what: What::Texts(&["docs/", "examples/", "bench/", "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]),
    },
    Part {
        name: "budgets",
        about: "every program with a hundredth of the budget of partial evaluation: it compiles, or a diagnostic ends it",
        minutes: 5.0,
        what: What::Other(|| Ok(budgets::run(1))),
    },
    Part { name: "programs", about: "random programs from fresh seeds", minutes: 12.0, what: What::Random("programs") },
    Part {
        name: "lanes",
        about: "random bodies of `vectorize` from fresh seeds",
        minutes: 20.0,
        what: What::Random("lanes"),
    },
    Part {
        name: "input",
        about: "bad input from fresh seeds, from all programs",
        minutes: 5.0,
        what: What::Random("input"),
    },
    Part { name: "patterns", about: "random patterns from fresh seeds", minutes: 3.0, what: What::Random("patterns") },
    Part {
        name: "alignments",
        about: "random alignments from a fresh seed beside plain loops in C, parasail and edlib",
        minutes: 20.0,
        what: What::Other(alignments::run),
    },
    Part {
        name: "rays",
        about: "random rays from a fresh seed beside all triangles one by one, in C; rays at edges",
        minutes: 5.0,
        what: What::Other(rays::run),
    },
    Part {
        name: "faults",
        about: "random programs that go wrong, from fresh seeds, checked and in the interpreter",
        minutes: 4.0,
        what: What::Random("faults"),
    },
    Part {
        name: "devices",
        about: "the conformance list on devices of OpenCL and Vulkan, by NVIDIA's compiler, and validated",
        minutes: 15.0,
        what: What::Other(|| devices::run(false)),
    },
    Part {
        name: "python",
        about: "the package for Python with NumPy, Dask, Ray and Numba, and the programs of its page",
        minutes: 5.0,
        what: What::Other(python),
    },
    Part {
        name: "c-text",
        about: "the C text of tests under the sanitizers of the C compiler",
        minutes: 20.0,
        what: What::Other(|| sanitized::run(None)),
    },
    Part {
        name: "processors",
        about: "programs on processors of other architectures, by QEMU",
        minutes: 25.0,
        what: What::Other(|| Ok(foreign::run())),
    },
];

fn python() -> Result<Tally, String> {
    crate_tests(&["--tests", "--package", "nyala-python"], &["--include-ignored"])
}

fn crates() -> Result<Tally, String> {
    let mut tally = crate_tests(&["--workspace"], &["--include-ignored"])?;
    tally.add(tidy::check_docs());
    tally.add(tidy::run());
    Ok(tally)
}

/// Runs the part that `filter` names, the text tests whose path contains it, or everything.
pub fn run(filter: Option<&str>, anew: bool) -> Result<bool, String> {
    let table = Table::read()?;
    if filter == Some("list") {
        for part in PARTS {
            println!("{:10} {:3.0} min  {}", part.name, part.minutes(&table), part.about);
        }
        println!("`c-text:FILTER` runs that part for the files whose paths contain FILTER");
        return Ok(true);
    }
    let _lock = lock()?;
    build_command()?;
    if let Some(filter) = filter.and_then(|f| f.strip_prefix("c-text:")) {
        let tally = sanitized::run(Some(filter))?;
        println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
        return Ok(tally.failed == 0);
    }
    let mut known = Known::read(anew)?;
    let chosen: Vec<&Part> = PARTS.iter().filter(|p| filter.is_none_or(|f| f == p.name)).collect();
    let mut tally = Tally::default();
    if chosen.is_empty() {
        let found = texts(|path| filter.is_some_and(|f| path.contains(f)), &mut known)?;
        tally.add(found.ok_or_else(|| {
            format!(
                "there is no part `{}` (`--all list` names them), and no such text test",
                filter.unwrap_or_default()
            )
        })?);
    } else {
        let left: Vec<&Part> = chosen.into_iter().filter(|p| !known.passed.contains(p.name)).collect();
        let minutes: f64 = left.iter().map(|p| p.minutes(&table)).sum();
        eprintln!("this takes up to {minutes:.0} minutes on two slow cores; interrupted, it goes on where it was");
        for part in PARTS.iter().filter(|p| known.passed.contains(p.name)) {
            println!("{} passed before (`--anew` runs it again)", part.name);
        }
        for part in left {
            phase(&format!("{}: {}, up to {:.0} min", part.name, part.about, part.minutes(&table)));
            let of_part = match &part.what {
                What::Texts(folders) => {
                    texts(|path| folders.iter().any(|f| path.starts_with(f)), &mut known)?.unwrap_or_default()
                }
                What::Random(name) => {
                    let random = work::PHASES.iter().find(|p| p.name == *name).ok_or("an unknown phase")?;
                    crate::run_orders(random.all_orders())?.0
                }
                What::Other(run) => run()?,
            };
            if of_part.failed == 0 {
                known.add(part.name);
            }
            tally.add(of_part);
        }
        if filter.is_none() {
            tally.add(pages::run(None, false));
        }
    }
    phase("end");
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(tally.failed == 0)
}

impl Part {
    fn minutes(&self, table: &Table) -> f64 {
        let What::Texts(folders) = self.what else { return self.minutes };
        let listed = table.0.iter().filter(|((path, _), _)| folders.iter().any(|f| path.starts_with(f)));
        // Runs without a line cost half as much again as those with one. A unit is about a second of a fast core, and 1.6 of a slow one.
        1.5 * 1.6 * listed.map(|(_, line)| line.whole).sum::<f64>() / 120.0
    }
}

/// Runs whole text tests, but for those that are known to pass; `None` if there are none at all.
fn texts(is_meant: impl Fn(&str) -> bool, known: &mut Known) -> Result<Option<Tally>, String> {
    let (mut orders, _) = texts::orders(None, false, Tier::All)?;
    orders.retain(|order| is_meant(&order.words[1]));
    let n = orders.len();
    if n == 0 {
        return Ok(None);
    }
    orders.retain(|order| !known.passed.contains(&order.words.join(" ")));
    if orders.len() < n {
        println!("{} of {n} runs passed before (`--anew` runs them again)", n - orders.len());
    }
    let mut results = crate::results::Results::new(false)?;
    queue::run(orders, |order, answer| {
        if answer.faults.is_empty() {
            known.add(&order.words.join(" "));
        }
        results.add(order, answer);
    })?;
    Ok(Some(results.end()))
}

/// The names of parts and the orders of text tests that have passed since something was changed.
struct Known {
    passed: HashSet<String>,
    file: std::fs::File,
}

impl Known {
    fn read(anew: bool) -> Result<Known, String> {
        let path = queue::cache_folder().with_file_name("all-passed.txt");
        let io = |e: std::io::Error| format!("{}: {e}", path.display());
        let state = format!("state {:016x}", state());
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = text.strip_prefix(&state).filter(|_| !anew).unwrap_or_default();
        let passed: HashSet<String> = lines.lines().filter(|l| !l.is_empty()).map(String::from).collect();
        let is_new = passed.is_empty();
        let mut file = std::fs::File::options()
            .create(true)
            .append(!is_new)
            .write(true)
            .truncate(is_new)
            .open(&path)
            .map_err(io)?;
        if is_new {
            writeln!(file, "{state}").map_err(io)?;
        }
        Ok(Known { passed, file })
    }

    fn add(&mut self, name: &str) {
        // Without it, the test runs again.
        let _ = writeln!(self.file, "{name}");
    }
}

/// A number that changes with the commit, with every uncommitted change, and with the compiler.
fn state() -> u64 {
    let mut hasher = DefaultHasher::new();
    for args in [&["rev-parse", "HEAD"][..], &["diff", "HEAD"], &["status", "--porcelain"]] {
        let output = Command::new("git").args(args).current_dir(root()).output();
        output.map(|o| o.stdout).unwrap_or_default().hash(&mut hasher);
    }
    std::fs::read(crate::texts::nyala()).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

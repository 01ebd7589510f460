//! `x bench patterns`: `std::pattern` beside the `regex` crate, in turns: the patterns of lesson 13 on the text of this
//! repository's pages, and others on lines of a log; then groups, and replacement. What is found is compared. The Impala program is
//! `bench/peers/patterns/patterns.impala`.

use super::{Out, Plan, RUNS, median};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Names, regular expressions, and whether they are looked for in the pages.
const PATTERNS: &[(&str, &str, bool)] = &[
    ("dates", "[0-9]+?-[0-9]+?-[0-9]+?", true),
    ("words", "[a-z]*?ing[^a-z]", true),
    ("links", r"\[[^\]]+?\]\(.*?\)", true),
    ("date", "[0-9]{4}-[0-9]{2}-[0-9]{2}", false),
    ("hex", "0x[0-9a-f]+", false),
    ("literal", "timeout", false),
    ("literals", "error|warning|timeout|user=alice", false),
    ("address", r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}", false),
    ("automaton", "[a-q][^u-z]{13}x", false),
    ("lines", "(?m)^.*error.*$", false),
    ("word", r"\bhotel\b", false),
    ("caseless", "(?i)TimeOut", false),
];

/// Patterns whose groups are found, too; the lengths of the second one are added up.
const GROUPS: &[(&str, &str)] = &[
    ("day", "([0-9]{4})-([0-9]{2}-([0-9]{2}))"),
    ("items", r"(GET|POST) ([/a-z0-9.]+)( error| warning)?"),
    ("user", r"(?:user=(alice|bob))|0x([0-9a-f]+) (\w+)"),
];

/// A pattern and what replaces it; the lengths of the texts are compared.
const REPLACED: (&str, &str, &str) = ("replace", "([0-9]{4})-([0-9]{2})-([0-9]{2})", "$3.$2.$1");

/// The bytes of the pages, which are repeated, and of the log.
const PAGES_SIZE: usize = 4 << 20;
const LOG_SIZE: usize = 16 << 20;
/// Counts of a pattern in each turn, of which the median is taken; ours does as many.
const ROUNDS: usize = 9;

/// What is done with the matches of a pattern.
#[derive(Clone, Copy)]
enum What {
    Count,
    Groups,
    Replace(&'static str),
}

struct Job {
    name: &'static str,
    pattern: &'static str,
    in_pages: bool,
    what: What,
}

fn jobs() -> Vec<Job> {
    let counts = PATTERNS.iter().map(|&(name, pattern, in_pages)| Job { name, pattern, in_pages, what: What::Count });
    let groups = GROUPS.iter().map(|&(name, pattern)| Job { name, pattern, in_pages: false, what: What::Groups });
    let (name, pattern, with) = REPLACED;
    let replaced = Job { name, pattern, in_pages: false, what: What::Replace(with) };
    counts.chain(groups).chain([replaced]).collect()
}

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = super::folder("")?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    // The brief form has a quarter of the log.
    let texts = [pages()?, log(if plan.is_brief { LOG_SIZE / 4 } else { LOG_SIZE })];
    let paths = [folder.join("pages.txt"), folder.join("log.txt")];
    for (path, text) in paths.iter().zip(&texts) {
        std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    let mut ours = Command::new(&nyala);
    ours.args(["run", "--cpu", plan.level.name])
        .arg(root().join("bench/peers/patterns/patterns.impala"))
        .arg("--")
        .args(&paths);
    // By pattern, of each turn: seconds of ours and of the crate.
    let jobs = jobs();
    let mut times = vec![(Vec::new(), Vec::new()); jobs.len()];
    let mut found = vec![0; jobs.len()];
    let runs = plan.turns(RUNS);
    for turn in 1..=runs {
        eprintln!("patterns: turn {turn} of {runs}");
        let counted = counts(&mut ours)?;
        for (i, &Job { name, pattern, in_pages, what }) in jobs.iter().enumerate() {
            let (theirs, time) = regex_crate(pattern, &texts[!in_pages as usize], what)?;
            let &(count, ns) = counted.get(name).ok_or_else(|| format!("`{name}` was not measured"))?;
            if count != theirs {
                return Err(format!("`{pattern}` gives {theirs} by regex, and {count} by ours"));
            }
            found[i] = count;
            times[i].0.push(ns / 1e9);
            times[i].1.push(time);
        }
    }
    let _ = writeln!(
        out,
        "patterns, MB/s, medians of {runs} runs in turns; the regex crate beside ours{}",
        plan.level.said()
    );
    let has_peer = plan.has("regex", out);
    for (i, Job { name, pattern, in_pages, .. }) in jobs.iter().enumerate() {
        let size = texts[!in_pages as usize].len() as f64 / 1e6;
        let mut ratios: Vec<f64> = times[i].0.iter().zip(&times[i].1).map(|(ours, theirs)| theirs / ours).collect();
        let ratio = median(&mut ratios);
        let (ours, theirs) = (size / median(&mut times[i].0), size / median(&mut times[i].1));
        if !has_peer {
            let _ = writeln!(out, "  {name:<9} ours {ours:>7.0}   {} of {pattern}", found[i]);
            continue;
        }
        let _ = writeln!(
            out,
            "  {name:<9} ours {ours:>7.0} regex {theirs:>7.0} (ours/regex {ratio:.2}, {:.2} to {:.2})   {} of {pattern}",
            ratios.first().unwrap_or(&f64::NAN),
            ratios.last().unwrap_or(&f64::NAN),
            found[i]
        );
    }
    let _ = writeln!(out);
    Ok(())
}

/// Lines of a log, with dates, addresses, words and numbers of chance.
fn log(size: usize) -> Vec<u8> {
    const WORDS: [&str; 15] = [
        "alpha",
        "bravo",
        "charlie",
        "delta",
        "echo",
        "foxtrot",
        "golf",
        "hotel",
        "GET /index.html",
        "POST /api/v1/items",
        "error",
        "warning",
        "timeout",
        "user=alice",
        "user=bob",
    ];
    let mut state = 7u64;
    let mut chance = |below: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32 % below
    };
    let mut text = String::with_capacity(size + 200);
    while text.len() < size {
        let (year, month, day) = (2000 + chance(25), 1 + chance(12), 1 + chance(28));
        let (hour, minute, second) = (chance(24), chance(60), chance(60));
        let (a, b, c) = (chance(256), chance(256), chance(256));
        let (first, second_word) = (WORDS[chance(15) as usize], WORDS[chance(15) as usize]);
        let (number, third) = (chance(u32::MAX), WORDS[chance(15) as usize]);
        let _ = writeln!(
            text,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02} 10.{a}.{b}.{c} {first} {second_word} 0x{number:x} {third}"
        );
    }
    text.into_bytes()
}

/// The text of all Markdown pages, repeated.
fn pages() -> Result<Vec<u8>, String> {
    let mut files = Vec::new();
    markdown(&root(), &mut files)?;
    files.sort();
    let mut once = Vec::new();
    for file in files {
        once.extend(std::fs::read(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?);
    }
    once.retain(|&b| b != 0);
    let mut text = Vec::with_capacity(PAGES_SIZE);
    while text.len() < PAGES_SIZE && !once.is_empty() {
        text.extend(&once);
    }
    Ok(text)
}

/// Collects the pages in `folder` and below, except in folders with output.
fn markdown(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "out" {
            markdown(&path, files)?;
        } else if name.ends_with(".md") {
            files.push(path);
        }
    }
    Ok(())
}

/// The number of matches of each pattern, and nanoseconds, by name.
fn counts(command: &mut Command) -> Result<std::collections::HashMap<String, (usize, f64)>, String> {
    let output = command.output().map_err(|e| format!("cannot run the patterns: {e}"))?;
    if !output.status.success() {
        return Err(format!("the patterns did not run\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?.to_string(), (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
    });
    Ok(lines.collect())
}

/// What the crate finds, as a number, and its seconds.
fn regex_crate(pattern: &str, text: &[u8], what: What) -> Result<(usize, f64), String> {
    let regex = regex::bytes::Regex::new(&format!("(?-u){pattern}")).map_err(|e| e.to_string())?;
    let mut found = 0;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        found = match what {
            What::Count => regex.find_iter(text).count(),
            What::Groups => {
                let mut locations = regex.capture_locations();
                let (mut at, mut sum) = (0, 0);
                while let Some(all) = regex.captures_read_at(&mut locations, text, at) {
                    sum += locations.get(2).map_or(0, |(start, end)| end - start);
                    at = all.end();
                }
                sum
            }
            What::Replace(with) => regex.replace_all(text, with.as_bytes()).len(),
        };
        times.push(start.elapsed().as_secs_f64());
    }
    Ok((found, median(&mut times)))
}

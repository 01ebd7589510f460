//! Draws pictures of suites to `bench/results/`: ratios to peers, rooflines. Separate from the measurements that they
//! show.

use super::levels::Level;
use super::suites::{Measured, ROUNDS, Suite};
use super::{machine, median, output_of};
use crate::plots::{Bars, Line, Lines, Series, Value, bars, lines};
use crate::root;
use std::path::PathBuf;
use std::process::Command;

/// The file of a picture, without its extension, and the line that names it.
pub struct File {
    pub path: PathBuf,
    pub drawn: String,
}

pub fn file(suite: &str, what: &str) -> Result<File, String> {
    let folder = root().join("bench/results");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let name = format!("{}-{suite}-{what}", date().replace([':', ' '], "-"));
    let drawn = format!("  drawn in bench/results/{name}.svg and .png\n\n");
    Ok(File { path: folder.join(name), drawn })
}

fn date() -> String {
    output_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"])
}

/// The line below the title of a picture.
pub fn about(conditions: &str, better: &str) -> String {
    let machine = machine();
    let rounds = format!("medians of {ROUNDS} runs in turns, with the least and the greatest");
    format!("{}, {}; {conditions}, {rounds}; {better}", machine.trim_end(), date())
}

/// The median, with the least and the greatest.
pub fn value(all: impl Iterator<Item = f64>) -> Value {
    let mut all: Vec<f64> = all.collect();
    let value = median(&mut all);
    let interval = all.first().copied().zip(all.last().copied());
    Value { value, interval }
}

fn threads_in_words(n: usize) -> String {
    if n == 1 { "1 thread".into() } else { format!("{n} threads") }
}

/// Draws the ratios of our speed to that of the fastest peer of each kind.
pub fn ratios(suite: &Suite, threads: usize, level: &Level, all: &[Measured]) -> Result<String, String> {
    let mut series: Vec<Series> = Vec::new();
    for (i, &(.., kind)) in suite.peers.iter().enumerate() {
        if kind.is_empty() || suite.peers[..i].iter().any(|p| p.4 == kind) {
            continue;
        }
        let values = all.iter().map(|m| {
            let of_kind = m.ratios.iter().filter(|(p, _)| suite.peers[*p].4 == kind);
            let values = of_kind.map(|(_, ratios)| value(ratios.iter().map(|r| 1.0 / r)));
            values.min_by(|a, b| a.value.total_cmp(&b.value))
        });
        series.push(Series { name: kind.into(), values: values.collect() });
    }
    series.retain(|s| s.values.iter().any(Option::is_some));
    let groups: Vec<&str> = all.iter().map(|m| m.program).collect();
    let plot = Bars {
        title: &format!("{}: time of peers divided by ours", suite.title),
        about: &about(&(threads_in_words(threads) + &level.said()), "above 1 ours is faster"),
        y_label: "time of the peer / ours",
        groups: &groups,
        series: &series,
        reference: Some(1.0),
    };
    let file = file(suite.name, &format!("peers-{threads}"))?;
    bars(&plot, &file.path)?;
    Ok(file.drawn)
}

/// Draws our programs and the fastest peers between the machine's limits, which are measured too.
pub fn roofline(suite: &Suite, threads: usize, level: &Level, all: &[Measured]) -> Result<String, String> {
    let (peak, bandwidth) = match limits(threads, level) {
        Ok(limits) => limits,
        Err(e) => return Ok(format!("  roofline not drawn: {e}\n")),
    };
    let only = |value| Value { value, interval: None };
    let (mut ours, mut fastest) = (Vec::new(), Vec::new());
    for m in all {
        let Some(&(_, operations, bytes, _, width)) = suite.images.iter().find(|i| i.0 == m.program) else { continue };
        let rate = |ms: f64| operations * f64::from(width) * f64::from(width) / ms / 1e6;
        let intensity = operations / bytes;
        let own = value(m.ours.iter().map(|&ms| rate(ms)));
        ours.push((intensity, own, m.program));
        let ratios = m.ratios.iter().map(|(_, ratios)| median(&mut ratios.clone()));
        fastest.extend(ratios.max_by(f64::total_cmp).map(|ratio| (intensity, only(own.value * ratio), "")));
    }
    let points = |name: &str, points: Vec<(f64, Value, &str)>| Line {
        name: name.into(),
        labels: points.iter().map(|p| p.2.to_string()).collect(),
        points: points.into_iter().map(|p| (p.0, p.1)).collect(),
    };
    let low = ours.iter().map(|p| p.0).fold(f64::INFINITY, f64::min) / 2.0;
    let high = ours.iter().map(|p| p.0).fold(peak / bandwidth, f64::max) * 2.0;
    let roof = [(low, low * bandwidth), (peak / bandwidth, peak), (high, peak)].map(|(x, y)| (x, only(y)));
    let roof_name = format!("limits: {peak:.0} GFLOP/s, {bandwidth:.1} GB/s");
    let roof = Line { name: roof_name, points: roof.to_vec(), labels: Vec::new() };
    let plot = Lines {
        title: &format!("{}: roofline", suite.title),
        about: &about(&(threads_in_words(threads) + &level.said()), "operations as the algorithm has them"),
        x_label: "operations for each byte to or from memory",
        y_label: "billion operations/s",
        lines: &[roof, points("ours", ours), points("fastest peer", fastest)],
    };
    let file = file(suite.name, &format!("roofline-{threads}"))?;
    lines(&plot, &file.path)?;
    Ok(file.drawn)
}

/// Measures the machine's limits: GFLOP/s of fused multiply-adds, and GB/s of copying.
fn limits(threads: usize, level: &Level) -> Result<(f64, f64), String> {
    let folder = root().join("out/bench/image");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let (source, program) = (root().join("bench/peers/image/limits.cpp"), folder.join("limits"));
    let mut gcc = Command::new("g++");
    gcc.args(["-std=c++17", "-O3", &level.march(), "-mprefer-vector-width=512", "-pthread", "-w", "-o"]);
    let made = gcc.arg(&program).arg(source).status();
    if !made.as_ref().is_ok_and(|s| s.success()) {
        return Err("g++ does not compile limits.cpp".into());
    }
    let output = Command::new(&program).arg(threads.to_string()).output();
    let text = output.map_err(|e| format!("cannot run {}: {e}", program.display()))?.stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    let number = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<f64>().ok());
    number("fma").zip(number("copy")).ok_or("limits.cpp says nothing".into())
}

//! `nyala bench`: measures the functions `bench…` of a program. [`benchmarks`] measures; this file has the table and the
//! comparison with a baseline.

mod benchmarks;

use super::package::Part;
use super::{Answer, FAILED, Input, USAGE, show, with_files};
use benchmarks::Measured;
use nyala_driver::diagnostics::{cannot_read, cannot_write};
use nyala_driver::{Failed, Files, FrontEnd, Options, Report, tuning};
use nyala_runtime::asked_to_stop;
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Measure the functions `bench…` of a program: medians, their intervals, ratios to a baseline
///
/// A benchmark has no parameters. It returns `()`, or a number, which keeps what it computes from being removed; `$100` hides
/// a number from partial evaluation (docs/tuning.md, Benchmarks). The median lies in the interval with about 99 %.
#[derive(clap::Args)]
pub struct Bench {
    #[command(flatten)]
    input: Input,
    /// Measure only functions with this text in their name
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Time for each function in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = super::tune::parse_seconds)]
    time: f64,
    /// Store the results beside the program, under this name
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// Compare with the results that are stored under this name
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// End with exit code 1 if a function clearly takes more than this many times the baseline
    #[arg(long, value_name = "RATIO", requires = "baseline", value_parser = parse_ratio)]
    fail_above: Option<f64>,
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|r: &f64| *r > 0.0 && r.is_finite());
    ratio.ok_or_else(|| "expected a ratio such as 1.1".into())
}

/// One function: its name, time, ratio to the baseline, and whether the intervals of both are apart.
struct Row {
    name: String,
    measured: Measured,
    ratio: Option<(f64, bool)>,
}

impl Bench {
    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Benchmark) {
            return code;
        }
        with_files(&self.input, |options, files| self.bench(options, files))
    }

    fn bench(&self, options: Options, mut files: Files) -> Answer {
        let mut report = Report::default();
        let file = benchmarks::file_of(&self.input.files[0]);
        let mut stored = if self.save.is_some() || self.baseline.is_some() { read(&file)? } else { Map::new() };
        let old = match &self.baseline {
            Some(name) => match stored.get(name) {
                Some(old) => Some(old.clone()),
                None => {
                    eprintln!("error: {} has no results `{name}`: store some by `--save {name}`", file.display());
                    return Ok((USAGE, report));
                }
            },
            None => None,
        };
        let (names, entries) = benchmarks::find(&files)?;
        let wanted = |name: &str| self.filter.as_ref().is_none_or(|f| name.contains(f.as_str()));
        if !names.iter().any(|n| wanted(n)) {
            eprintln!("error: no benchmarks found");
            eprintln!("  = hint: a benchmark is a function `fn bench_f() -> i32 {{ f($100) }}`");
            return Ok((USAGE, report));
        }
        files.given.extend(entries.given);
        let loaded = FrontEnd::new(options, files).graph()?.residual()?.flat()?.load(&[])?;
        show(&loaded.report, &self.input);
        nyala_runtime::note_requests_to_stop();
        let progress = std::io::stderr().is_terminal() && !self.input.json;
        let mut rows = Vec::new();
        for (i, name) in names.iter().enumerate().filter(|n| wanted(n.1)) {
            if progress {
                eprint!("\r\x1b[K{name} …");
            }
            let time = Duration::from_secs_f64(self.time);
            let measured = benchmarks::measure(&loaded, &benchmarks::entry(i), time, || asked_to_stop() != 0);
            let measured = measured.map_err(|d| report.report(*d))?;
            let Some(measured) = measured else { break };
            let ratio = old.as_ref().and_then(|o| compared(&o["benchmarks"][name], &measured));
            rows.push(Row { name: name.clone(), measured, ratio });
            if asked_to_stop() != 0 {
                break;
            }
        }
        if progress {
            eprint!("\r\x1b[K");
        }
        if self.input.json {
            println!(
                "{}",
                json!({ "machine": self.machine(), "benchmarks": rows.iter().map(of_row).collect::<Vec<_>>() })
            );
        } else {
            print!("{}", table(&rows, self.baseline.is_some()));
            let machine = old.as_ref().and_then(|o| o["machine"].as_str()).unwrap_or("");
            if old.is_some() && machine != self.machine() {
                println!("note: the baseline was measured on another machine, {machine}");
            }
        }
        let stopped = asked_to_stop();
        if stopped != 0 {
            return Ok((128 + stopped as u8, report));
        }
        if let Some(name) = &self.save {
            let all: Map<String, Value> = rows.iter().map(|r| (r.name.clone(), of_measured(&r.measured))).collect();
            stored.insert(name.clone(), json!({ "machine": self.machine(), "benchmarks": all }));
            let text = format!("{:#}\n", Value::Object(stored));
            nyala_files::write(&file, text.as_bytes()).map_err(|e| report.report(cannot_write::file(&file, e)))?;
        }
        let limit = self.fail_above.unwrap_or(f64::INFINITY);
        let is_slow = |r: &Row| r.ratio.is_some_and(|(ratio, apart)| apart && ratio > limit);
        for row in rows.iter().filter(|r| is_slow(r)) {
            eprintln!("error: `{}` takes more than {limit} times the baseline", row.name);
        }
        Ok((if rows.iter().any(is_slow) { FAILED } else { 0 }, report))
    }

    fn machine(&self) -> String {
        tuning::machine(self.input.device())
    }
}

/// The stored results, none if there is no file.
fn read(file: &Path) -> Result<Map<String, Value>, Failed> {
    let mut report = Report::default();
    if !file.exists() {
        return Ok(Map::new());
    }
    let text = nyala_driver::files::read(file).map_err(|e| report.report(cannot_read::error(file, &e)))?;
    let parsed = serde_json::from_str(&text).map_err(|e| e.to_string());
    parsed.map_err(|e| report.report(cannot_read::error(file, &format!("no results of `nyala bench`: {e}"))))
}

fn of_measured(m: &Measured) -> Value {
    let ns = |seconds: f64| seconds * 1e9;
    json!({ "median": ns(m.seconds.median), "low": ns(m.seconds.low), "high": ns(m.seconds.high), "calls": m.calls })
}

fn of_row(row: &Row) -> Value {
    json!({
        "name": row.name,
        "ns": of_measured(&row.measured),
        "ratio": row.ratio.map(|r| r.0),
        "clear": row.ratio.map(|r| r.1),
    })
}

/// The ratio to an older result, and whether the intervals are apart; none if there is no older result.
fn compared(old: &Value, new: &Measured) -> Option<(f64, bool)> {
    let ns = |key: &str| old[key].as_f64().filter(|n| *n > 0.0).map(|n| n / 1e9);
    let (median, low, high) = (ns("median")?, ns("low")?, ns("high")?);
    let apart = new.seconds.low > high || new.seconds.high < low;
    Some((new.seconds.median / median, apart))
}

/// A time with its unit.
fn time(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s < 1e-6 => (1e9, "ns"),
        s if s < 1e-3 => (1e6, "µs"),
        s if s < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{:.2} {unit}", seconds * scale)
}

fn table(rows: &[Row], with_baseline: bool) -> String {
    let mut cells: Vec<Vec<String>> = vec![["function", "median", "from", "to", "calls"].map(String::from).to_vec()];
    if with_baseline {
        cells[0].extend(["of baseline".into(), String::new()]);
    }
    for row in rows {
        let s = row.measured.seconds;
        let mut line =
            vec![row.name.clone(), time(s.median), time(s.low), time(s.high), row.measured.calls.to_string()];
        if with_baseline {
            line.push(row.ratio.map_or("new".into(), |r| format!("{:.3}", r.0)));
            line.push(match row.ratio {
                Some((_, false)) => "within the noise".into(),
                Some((ratio, true)) => if ratio > 1.0 { "slower" } else { "faster" }.into(),
                None => String::new(),
            });
        }
        cells.push(line);
    }
    let widths: Vec<usize> =
        (0..cells[0].len()).map(|c| cells.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &cells {
        let padded = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
            // Names and remarks are left-aligned, numbers right-aligned.
            if i == 0 || i == 6 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        out += padded.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

//! `x bench text`: columns of a CSV of 206 MB by `bench/text/csv.impala` and by Polars, in turns. The peer's script,
//! `bench/peers/text/table.py`, makes the table, too.

use super::{RUNS, cores, in_turns, machine};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

const WORKLOADS: &[(&str, ())] = &[("all", ())];
const COLUMNS: &[&str] = &["t", "x", "y", "p", "q"];

pub fn run() -> Result<String, String> {
    let (out, python) = (root().join("out/bench"), root().join("out/peers/bin/python"));
    if !python.exists() {
        return Ok("text: not measured: bench/peers/install.sh installs the peers\n\n".into());
    }
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    let (table, script, ours) = (out.join("table.csv"), root().join("bench/peers/text/table.py"), out.join("csv"));
    if !table.exists() {
        println!("text: makes {}, 206 MB", table.display());
        sh(Command::new(&python).arg("-B").arg(&script).arg(&table).arg("make"))?;
    }
    let mut cargo = Command::new("cargo");
    let packages = ["--package", "nyala", "--package", "nyala-runtime"];
    sh(cargo.current_dir(root()).args(["build", "--quiet", "--release"]).args(packages))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut build = Command::new(nyala);
    sh(build.args(["build", "--cpu", "native", "-o"]).arg(&ours).arg(root().join("bench/text/csv.impala")))?;
    let mut text = format!("text, ms, medians of {RUNS} runs in turns; {}", machine());
    let mut counts = vec![1, cores()];
    counts.dedup();
    for threads in counts {
        let mut own = Command::new(&ours);
        own.arg(&table).args(COLUMNS).env("NYALA_NUM_THREADS", threads.to_string());
        let mut peer = Command::new(&python);
        peer.arg("-B").arg(&script).arg(&table).arg(threads.to_string()).args(COLUMNS);
        let times = in_turns(&mut [("ours", own), ("Polars", peer)], WORKLOADS)?;
        let (own, peer) = (times[0][0] / 1e6, times[1][0] / 1e6);
        let _ = writeln!(text, "  {threads} threads: ours {own:.0} Polars {peer:.0}   ours/Polars {:.2}", own / peer);
    }
    text.push('\n');
    Ok(text)
}

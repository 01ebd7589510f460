//! `x bench text`: columns of a CSV of 206 MB by `bench/text/csv.impala` and by Polars, in turns. The peer's script,
//! `bench/peers/text/table.py`, makes the table, too.

use super::{Out, Plan, RUNS, Turns, machine};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

const WORKLOADS: &[(&str, ())] = &[("all", ())];
const COLUMNS: &[&str] = &["t", "x", "y", "p", "q"];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let (folder, python) = (super::folder("")?, root().join("out/peers/bin/python"));
    if !python.exists() {
        let _ = writeln!(out, "text: not measured: bench/peers/install.sh installs the peers\n");
        return Ok(());
    }
    if !plan.has("Polars", out) {
        let _ = writeln!(out);
        return Ok(());
    }
    // The brief form has a tenth of the rows.
    let (rows, name) = if plan.is_brief { ("218000", "table-brief.csv") } else { ("2180000", "table.csv") };
    let (table, script, ours) = (folder.join(name), root().join("bench/peers/text/table.py"), folder.join("csv"));
    if !table.exists() {
        eprintln!("text: makes {}", table.display());
        sh(Command::new(&python).arg("-B").arg(&script).arg(&table).args(["make", rows]))?;
    }
    let mut cargo = Command::new("cargo");
    let packages = ["--package", "nyala", "--package", "nyala-runtime"];
    sh(cargo.current_dir(root()).args(["build", "--quiet", "--release"]).args(packages))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut build = Command::new(nyala);
    sh(build.args(["build", "--cpu", "native", "-o"]).arg(&ours).arg(root().join("bench/text/csv.impala")))?;
    let _ = write!(out, "text, {rows} rows, ms, medians of {} runs in turns; {}", plan.turns(RUNS), machine());
    for threads in plan.threads() {
        let mut own = Command::new(&ours);
        own.arg(&table).args(COLUMNS).env("NYALA_NUM_THREADS", threads.to_string());
        let mut peer = Command::new(&python);
        peer.arg("-B").arg(&script).arg(&table).arg(threads.to_string()).args(COLUMNS);
        let times = Turns::new(plan.turns(RUNS), vec![("ours", own), ("Polars", peer)]).run(&[], WORKLOADS, out)?;
        let (own, peer) = (times[0][0] / 1e6, times[1][0] / 1e6);
        let _ = writeln!(out, "  {threads} threads: ours {own:.0} Polars {peer:.0}   ours/Polars {:.2}", own / peer);
    }
    let _ = writeln!(out);
    Ok(())
}

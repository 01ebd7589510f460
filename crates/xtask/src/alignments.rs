//! Random alignments: `lib/align` beside plain quadratic loops in C, and beside parasail and edlib. `./x test --all alignments` runs it;
//! separate from the library's own tests, since a million pairs take minutes, and the plain loops share no compiler with it. Last comes
//! a pair of a million letters each, in little memory.
//!
//! Each kind of scheme is a library of its own, made of `alignments/kernels.impala`.

use crate::texts::{self, output_within};
use crate::{Tally, random, root, sh};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// Kinds of schemes, as the kernels number them.
const KINDS: u32 = 8;

/// Kinds that no other library has: gaps of two pieces.
const OWN: [u32; 2] = [2, 6];

/// Pairs of sequences for all kinds together.
const PAIRS: u32 = 1_000_000;

/// The time for one kind.
const LIMIT: Duration = Duration::from_secs(1500);

/// Address space in KiB for two sequences of a million letters: a matrix of their cells would need 250 times as much.
const MEMORY: u32 = 4 << 20;

/// Threads that compile and run.
const THREADS: usize = 2;

/// Runs all kinds, from a fresh seed that it says.
pub fn run() -> Result<Tally, String> {
    let seed = random::fresh_seed() % 1_000_000;
    println!("random alignments from seed {seed}");
    let folder = root().join("out/alignments");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    sh(Command::new(texts::nyala())
        .arg("build")
        .arg(source("kernels.impala"))
        .arg("-o")
        .arg(folder.join("kernels.h")))?;
    let python = root().join("target/python/bin/python3");
    let has_peers = Command::new(&python).args(["-c", "import edlib, numpy, parasail"]).output();
    let python = has_peers.is_ok_and(|o| o.status.success()).then_some(python);
    let mut tally = Tally::default();
    if python.is_none() {
        println!(
            "skipped: alignments beside parasail and edlib: they are not in target/python, where `./x setup` installs them"
        );
        tally.skipped += 1;
    }
    let (kinds, all) = (Mutex::new(0..KINDS), Mutex::new(&mut tally));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(kind) = kinds.lock().unwrap_or_else(|e| e.into_inner()).next() else { return };
                    let faults: Vec<String> =
                        run_kind(&folder, python.as_deref(), kind, seed).err().into_iter().collect();
                    let name = format!("alignments of kind {kind}");
                    all.lock().unwrap_or_else(|e| e.into_inner()).count(&name, &faults);
                }
            });
        }
    });
    let faults: Vec<String> = run_long(&folder, seed).err().into_iter().collect();
    tally.count("an alignment of a million letters", &faults);
    Ok(tally)
}

/// Aligns two long sequences in bounded memory, on all processors.
fn run_long(folder: &Path, seed: u64) -> Result<(), String> {
    let program = folder.join("long");
    let mut nyala = Command::new(texts::nyala());
    nyala.arg("build").arg(source("long.impala")).args(["-D", &format!("SEED={seed}"), "-o"]).arg(&program);
    succeed(&mut nyala)?;
    succeed(Command::new("sh").args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\"")]).arg(&program))
}

/// Makes the library of a kind, and compares what it finds.
fn run_kind(folder: &Path, python: Option<&Path>, kind: u32, seed: u64) -> Result<(), String> {
    let (library, program) = (folder.join(format!("kind{kind}.so")), folder.join(format!("random{kind}")));
    let mut nyala = Command::new(texts::nyala());
    nyala.arg("build").arg(source("kernels.impala")).args(["-D", &format!("KIND={kind}"), "-o"]).arg(&library);
    succeed(&mut nyala)?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-w", "-I"]).arg(folder).arg("-o").arg(&program).arg(source("random.c")).arg(&library);
    succeed(cc.arg("-Wl,-rpath,$ORIGIN"))?;
    let words = [kind.to_string(), seed.to_string(), (PAIRS / KINDS).to_string()];
    succeed(Command::new(&program).args(&words))?;
    match python.filter(|_| !OWN.contains(&kind)) {
        Some(python) => succeed(Command::new(python).arg(source("peers.py")).arg(&library).args(&words)),
        None => Ok(()),
    }
}

/// Runs a command to its end. What it prints is the error.
fn succeed(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match output_within(command, LIMIT).map_err(|e| format!("{shown}: {e}"))? {
        (Some(0), ..) => Ok(()),
        (code, out, err) => Err(format!("{shown}: exit code {code:?}\n{out}{err}")),
    }
}

fn source(name: &str) -> PathBuf {
    root().join("crates/xtask/src/alignments").join(name)
}

//! Random rays: `lib/ray` beside all triangles one by one, in C and double precision, in random scenes, some of them broken; and rays at
//! edges of a closed mesh, of which none may be lost. `./x test --all rays` runs it; separate from the library's own tests, since ten
//! million rays take minutes, and the plain loop shares no compiler with it.
//!
//! Each kind of kernel is a library of its own, made of `rays/kernels.impala`.

use crate::texts::{self, output_within};
use crate::{Tally, random, root, sh};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Kinds of kernels, as the library numbers them.
const KINDS: u64 = 7;

/// Rays for all kinds together.
const RAYS: u64 = 10_000_000;

/// The time for one kind.
const LIMIT: Duration = Duration::from_secs(1500);

/// Runs all kinds, from a fresh seed that it says.
pub fn run() -> Result<Tally, String> {
    let seed = random::fresh_seed() % 1_000_000;
    println!("random rays from seed {seed}");
    let folder = root().join("out/random-rays");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let header = folder.join("kernels.h");
    sh(Command::new(texts::nyala()).arg("build").arg(source("kernels.impala")).arg("-o").arg(header))?;
    let mut tally = Tally::default();
    for kind in 0..KINDS {
        let faults: Vec<String> = run_kind(&folder, kind, seed).err().into_iter().collect();
        tally.count(&format!("rays of kind {kind}"), &faults);
    }
    tally.count("rays at edges", &run_edges().err().into_iter().collect::<Vec<_>>());
    Ok(tally)
}

/// Makes the library of a kind, and compares what it finds.
fn run_kind(folder: &Path, kind: u64, seed: u64) -> Result<(), String> {
    let (library, program) = (folder.join(format!("kind{kind}.so")), folder.join(format!("random{kind}")));
    let mut nyala = Command::new(texts::nyala());
    nyala.arg("build").arg(source("kernels.impala")).args(["-D", &format!("KIND={kind}"), "-o"]).arg(&library);
    succeed(&mut nyala)?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-w", "-I"]).arg(folder).arg("-o").arg(&program).arg(source("random.c")).arg(&library);
    succeed(cc.args(["-lm", "-Wl,-rpath,$ORIGIN"]))?;
    let words = [kind.to_string(), seed.to_string(), (RAYS / KINDS).to_string()];
    succeed(Command::new(&program).args(&words)).map(|_| ())
}

/// Ten million rays at edges and corners, by the program of the library's own test.
fn run_edges() -> Result<(), String> {
    let mut nyala = Command::new(texts::nyala());
    nyala.arg("run").arg(root().join("lib/ray/tests/watertight.impala")).args(["--entry", "many"]);
    let out = succeed(&mut nyala)?;
    match out.contains(" rays lost: 0 watertight, ") {
        true => Ok(()),
        false => Err(format!("watertight kernels lose rays: {out}")),
    }
}

/// Runs a command to its end, and gives what it prints. That is the error if it fails.
fn succeed(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    match output_within(command, LIMIT).map_err(|e| format!("{shown}: {e}"))? {
        (Some(0), out, _) => Ok(out),
        (code, out, err) => Err(format!("{shown}: exit code {code:?}\n{out}{err}")),
    }
}

fn source(name: &str) -> PathBuf {
    root().join("crates/xtask/src/rays").join(name)
}

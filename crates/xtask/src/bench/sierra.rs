//! `x bench sierra`: programs in Sierra beside the same in Impala, in as many lanes, on one thread. One executable has both (`bench/sierra`), and checks
//! that their results are the same bits.

use super::{RUNS, in_turns};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// The programs, with what a call does.
const PROGRAMS: &[(&str, &str)] =
    &[("mandelbrot", "1536 x 1024 points, 256 rounds"), ("black_scholes", "1,048,576 options")];

pub fn run() -> Result<String, String> {
    let out = root().join("out/bench");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let program = out.join("sierra");
    let sources = ["programs.impala", "programs.sierra"].map(|name| root().join("bench/sierra").join(name));
    sh(Command::new(nyala).args(["build", "--cpu", "native", "-o"]).arg(&program).args(&sources))?;
    let names: Vec<String> =
        PROGRAMS.iter().flat_map(|(name, _)| ["impala", "sierra"].map(|of| format!("{name}_{of}"))).collect();
    let workloads: Vec<(&str, ())> = names.iter().map(|n| (n.as_str(), ())).collect();
    let times = in_turns(&mut [("ours", Command::new(&program))], &workloads)?;
    let mut text = format!("programs in Sierra beside Impala, ms, 8 lanes, one thread, medians of {RUNS} runs\n");
    for (i, (program, about)) in PROGRAMS.iter().enumerate() {
        let [impala, sierra] = [0, 1].map(|of| times[0][2 * i + of] / 1e6);
        let _ = writeln!(
            text,
            "  {program:<14} impala {impala:>8.2} sierra {sierra:>8.2} (impala/sierra {:.2})   {about}",
            impala / sierra
        );
    }
    text.push('\n');
    Ok(text)
}

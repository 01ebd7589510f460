//! `x bench sierra` and `x bench ispc`: programs in Sierra, and in ISPC's dialect of it, beside the same in Impala, in as many lanes, on one thread. One
//! executable has both (`bench/sierra`, `bench/ispc`), and checks that their results are the same bits.

use super::{RUNS, in_turns};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// A language with its programs, and what a call of each does.
pub struct Language {
    name: &'static str,
    shown: &'static str,
    programs: &'static [(&'static str, &'static str)],
}

const MANDELBROT: (&str, &str) = ("mandelbrot", "1536 x 1024 points, 256 rounds");
const OPTIONS: (&str, &str) = ("black_scholes", "1,048,576 options");

pub const SIERRA: Language = Language { name: "sierra", shown: "Sierra", programs: &[MANDELBROT, OPTIONS] };

pub const ISPC: Language = Language {
    name: "ispc",
    shown: "ISPC's language",
    programs: &[
        MANDELBROT,
        OPTIONS,
        ("stencil", "160 x 160 x 160 numbers, two to each side"),
        ("aobench", "256 x 256 points, 64 rays each"),
    ],
};

pub fn run(language: &Language) -> Result<String, String> {
    let Language { name: word, shown, programs } = language;
    let out = root().join("out/bench");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let program = out.join(word);
    let sources = ["impala", word].map(|ending| root().join("bench").join(word).join(format!("programs.{ending}")));
    sh(Command::new(nyala).args(["build", "--cpu", "native", "--lanes", "8", "-o"]).arg(&program).args(&sources))?;
    let names: Vec<String> =
        programs.iter().flat_map(|(name, _)| ["impala", word].map(|of| format!("{name}_{of}"))).collect();
    let workloads: Vec<(&str, ())> = names.iter().map(|n| (n.as_str(), ())).collect();
    let times = in_turns(&mut [("ours", Command::new(&program))], &workloads)?;
    let mut text = format!("programs in {shown} beside Impala, ms, 8 lanes, one thread, medians of {RUNS} runs\n");
    for (i, (program, about)) in programs.iter().enumerate() {
        let [impala, other] = [0, 1].map(|of| times[0][2 * i + of] / 1e6);
        let _ = writeln!(
            text,
            "  {program:<14} impala {impala:>8.2} {word} {other:>8.2} (impala/{word} {:.2})   {about}",
            impala / other
        );
    }
    text.push('\n');
    Ok(text)
}

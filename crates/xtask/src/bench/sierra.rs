//! `x bench sierra` and `x bench ispc`: programs in Sierra, and in ISPC's dialect of it, beside the same in Impala, in as many lanes, on one thread. One
//! executable has both (`bench/sierra`, `bench/ispc`), and checks that their results are the same bits. For ISPC's dialect, Figure 6.2 of the thesis is drawn, too:
//! speedups over one lane by the number of lanes, for each width of registers.

use super::{Out, Plan, RUNS, Turns, pictures};
use crate::plots::{Bars, Series, bars};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
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

/// Processors by the registers of lanes that they have.
const PROCESSORS: [(&str, &str); 3] = [("SSE4.2", "x86-64-v2"), ("AVX2", "x86-64-v3"), ("AVX-512", "x86-64-v4")];

/// The numbers of lanes that are compared with one, of which only Impala's programs have a version.
const LANES: [u32; 5] = [4, 8, 16, 32, 64];

pub fn run(language: &Language, plan: &Plan, out: &mut Out) -> Result<(), String> {
    let Language { name: word, shown, programs } = language;
    let folder = super::folder("")?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let program =
        built(word, &folder.join(word), &root().join("bench").join(word).join("programs.impala"), plan.level.name, 8)?;
    let names = names(language);
    let workloads: Vec<(&str, ())> = names.iter().map(|n| (n.as_str(), ())).collect();
    let runs = plan.turns(RUNS);
    let times = Turns::new(runs, vec![("ours", Command::new(&program))]).run(&[], &workloads, out)?;
    let _ = writeln!(
        out,
        "programs in {shown} beside Impala, ms, 8 lanes, one thread, medians of {runs} runs{}",
        plan.level.said()
    );
    for (i, (program, about)) in programs.iter().enumerate() {
        let [impala, other] = [0, 1].map(|of| times[0][2 * i + of] / 1e6);
        let _ = writeln!(
            out,
            "  {program:<14} impala {impala:>8.2} {word} {other:>8.2} (impala/{word} {:.2})   {about}",
            impala / other
        );
    }
    if *word == ISPC.name && !plan.is_brief {
        for processor in PROCESSORS.into_iter().filter(|p| plan.level.is_native() || p.1 == plan.level.name) {
            by_lanes(language, processor, out)?;
        }
    }
    let _ = writeln!(out);
    Ok(())
}

/// Of each program, the one in Impala and the other.
fn names(language: &Language) -> Vec<String> {
    let both = |name| ["impala", language.name].map(|of| format!("{name}_{of}"));
    language.programs.iter().flat_map(|p| both(p.0)).collect()
}

fn built(word: &str, program: &Path, impala: &Path, cpu: &str, lanes: u32) -> Result<PathBuf, String> {
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let other = root().join("bench").join(word).join(format!("programs.{word}"));
    let lanes = lanes.to_string();
    sh(Command::new(nyala).args(["build", "--cpu", cpu, "--lanes", &lanes, "-o"]).arg(program).arg(impala).arg(other))?;
    Ok(program.to_path_buf())
}

/// Speedups over Impala's programs with one lane.
fn by_lanes(language: &Language, (shown, cpu): (&str, &str), out: &mut Out) -> Result<(), String> {
    let folder = root().join("out/bench/lanes");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let source = root().join("bench").join(language.name).join("programs.impala");
    let source = std::fs::read_to_string(&source).map_err(|e| format!("cannot read {}: {e}", source.display()))?;
    let mut contenders = Vec::new();
    for lanes in std::iter::once(1).chain(LANES) {
        let impala = folder.join(format!("programs_{lanes}.impala"));
        let text = source.replace("static LANES = 8;", &format!("static LANES = {lanes};"));
        std::fs::write(&impala, text).map_err(|e| format!("cannot write {}: {e}", impala.display()))?;
        let program = folder.join(format!("{cpu}-{lanes}"));
        contenders.push((format!("{lanes} lanes"), built(language.name, &program, &impala, cpu, lanes.max(LANES[0]))?));
    }
    let commands: Vec<(&str, Command)> = contenders.iter().map(|(n, p)| (n.as_str(), Command::new(p))).collect();
    let names = names(language);
    let workloads: Vec<(&str, ())> = names.iter().map(|n| (n.as_str(), ())).collect();
    let times = Turns::new(RUNS, commands).run(&[], &workloads, out)?;
    let _ =
        write!(out, "{shown}: speedups over one lane of Impala, of Impala and {}\n  {:<18}", language.shown, "lanes");
    LANES.iter().for_each(|lanes| _ = write!(out, "{lanes:>14}"));
    let mut series: Vec<Series> =
        LANES.iter().map(|lanes| Series { name: format!("{lanes} lanes"), values: Vec::new() }).collect();
    for (i, (program, _)) in language.programs.iter().enumerate() {
        let _ = write!(out, "\n  {program:<18}");
        for (series, times_of) in series.iter_mut().zip(&times[1..]) {
            let [impala, other] = [0, 1].map(|of| times[0][2 * i] / times_of[2 * i + of]);
            let _ = write!(out, "{:>14}", format!("{impala:.2} {other:.2}"));
            series.values.push(other.is_finite().then(|| pictures::value(std::iter::once(other))));
        }
    }
    let groups: Vec<&str> = language.programs.iter().map(|p| p.0).collect();
    let plot = Bars {
        title: &format!("{}, {shown}: speedup over the same program in Impala with one lane", language.shown),
        about: &pictures::about("one thread", "higher is better"),
        y_label: "times as fast",
        groups: &groups,
        series: &series,
        reference: Some(1.0),
    };
    let file = pictures::file(language.name, &format!("lanes-{}", shown.to_lowercase().replace('.', "-")))?;
    bars(&plot, &file.path)?;
    let _ = writeln!(out, "\n{}", file.drawn);
    Ok(())
}

//! `x bench rays`: `lib/ray` beside Embree, in turns, on one thread and on all: scenes and rays that `bench/rays/make.impala` computes once
//! for all programs; then builders, and the hits of both, compared. Words after `rays`: names of scenes, instead of all; `avx2`, for both
//! limited to AVX2; `one`, for one thread only: `x bench "rays hall avx2 one"`. What is measured goes to standard output at
//! once, and what is being done to standard error. Last come the sizes of some instances, and the times that they take to compile.

use super::levels::{Level, V3};
use super::{Out, Plan, Turns, machine, output_of};
use crate::{root, sh};
use object::{Object, ObjectSection};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs of each program. One takes half a minute.
const RUNS: usize = 3;

const SCENES: &[&str] = &["hall", "blob", "million", "hair", "engine"];
const KINDS: &[&str] = &["primary", "ao", "diffuse", "random"];
/// The ways in which a program traces, as its output names them; Embree has the first two.
const WAYS: [&str; 3] = ["one", "packet", "turns"];
/// Trees and kernels: Embree has a program's run for each, of which the names are those of the first.
const VARIANTS: [&str; 3] = ["", "split_", "robust_"];

/// The instances of `bench/rays/instances.impala`, from 1 on.
const INSTANCES: [&str; 10] = [
    "single, arity 2",
    "single, arity 8",
    "single, arity 8, any hit",
    "single, arity 8, watertight",
    "single, arity 8, quantized",
    "single, arity 16",
    "packet of 16, arity 8",
    "packet of 16, arity 8, watertight, parts",
    "packet of 16, arity 16",
    "8 interleaved, arity 16",
];

/// What is measured, and how.
struct Rays {
    scenes: Vec<&'static str>,
    kinds: &'static [&'static str],
    runs: usize,
    threads: Vec<usize>,
    level: &'static Level,
    start: Instant,
    out: PathBuf,
    ours: PathBuf,
    peer: PathBuf,
}

impl Rays {
    /// The plan of the words after `rays`.
    fn of_words(plan: &Plan, out: PathBuf) -> Result<Rays, String> {
        let words: Vec<&str> = plan.part("rays").split_whitespace().collect();
        if let Some(unknown) = words.iter().find(|w| !SCENES.contains(w) && !["avx2", "one"].contains(w)) {
            return Err(format!("rays: no scene `{unknown}`: there are {}, `avx2` and `one`", SCENES.join(", ")));
        }
        let named: Vec<&str> = SCENES.iter().copied().filter(|s| words.contains(s)).collect();
        let (ours, peer) = (out.join("ours"), out.join("embree"));
        Ok(Rays {
            scenes: if named.is_empty() { plan.sizes(SCENES, 0).to_vec() } else { named },
            kinds: plan.sizes(KINDS, 0),
            runs: plan.turns(RUNS),
            threads: if words.contains(&"one") { vec![1] } else { plan.threads() },
            level: if words.contains(&"avx2") && plan.level.is_native() { V3 } else { plan.level },
            start: Instant::now(),
            out,
            ours,
            peer,
        })
    }

    /// Says what is being done.
    fn tell(&self, what: &str) {
        eprintln!("rays, {:>4.0} s: {what}", self.start.elapsed().as_secs_f64());
    }

    /// A command of ours that compiles for the CPU.
    fn nyala_build(&self, program: &Path, source: &str) -> Result<(), String> {
        let mut command = Command::new(nyala()?);
        command.args(["build", "-o"]).arg(program).arg(root().join("bench/rays").join(source));
        command.args(["--cpu", self.level.name]);
        sh(&mut command)
    }

    fn our_command(&self, program: &Path, scene: &str, threads: usize) -> Command {
        let mut command = Command::new(program);
        command.arg(&self.out).arg(scene).env("NYALA_NUM_THREADS", threads.to_string());
        command
    }

    fn peer_command(&self, scene: &str, quality: &str, mode: &str, threads: usize) -> Command {
        let mut command = Command::new(&self.peer);
        command.arg(&self.out).args([scene, quality, mode, &threads.to_string()]);
        self.level.limit("Embree", &mut command);
        command
    }
}

/// The command beside this one.
fn nyala() -> Result<PathBuf, String> {
    Ok(std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala"))
}

pub fn run(whole: &Plan, out: &mut Out) -> Result<(), String> {
    let plan = Rays::of_words(whole, super::folder("rays")?)?;
    let Some(embree) = library() else {
        let _ = writeln!(out, "rays: not measured: bench/peers/install.sh installs Embree\n");
        return Ok(());
    };
    plan.tell("compiling Nyala");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "nyala", "-p", "nyala-runtime"]);
    sh(&mut cargo)?;
    plan.tell("making scenes and rays");
    let mut make = Command::new(nyala()?);
    make.arg("run").arg(root().join("bench/rays/make.impala")).arg("--").arg(&plan.out).args(&plan.scenes);
    sh(&mut make)?;
    plan.tell("compiling the programs");
    plan.nyala_build(&plan.ours, "trace.impala")?;
    let folder = embree.parent().unwrap_or(&embree);
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", &plan.level.march(), "-o"]).arg(&plan.peer);
    compiler
        .arg("-pthread")
        .arg(root().join("bench/peers/rays/embree.cpp"))
        .arg(&embree)
        .arg(format!("-Wl,-rpath,{}", folder.display()));
    sh(&mut compiler)?;

    let version = output_of("c++", &["--version"]);
    let _ = write!(out, "rays, medians of {} runs in turns{}; {}", plan.runs, plan.level.said(), machine());
    let _ = writeln!(
        out,
        "  each one by one / in packets, ours also / in turns; `split` has spatial splits, as Embree's trees of high quality"
    );
    for &threads in &plan.threads {
        let _ = writeln!(out, "  ns for each ray, {threads} threads");
        for scene in &plan.scenes {
            for kind in plan.kinds {
                traces(&plan, scene, kind, threads, out)?;
            }
        }
    }
    if whole.is_brief {
        let _ = writeln!(out, "  {}\n", version.lines().next().unwrap_or(""));
        return Ok(());
    }
    let builder = plan.out.join("build");
    plan.nyala_build(&builder, "build.impala")?;
    for &threads in &plan.threads {
        for scene in &plan.scenes {
            let text = builds(&plan, &builder, scene, threads, out)?;
            let _ = write!(out, "{text}");
        }
    }
    for scene in &plan.scenes {
        plan.tell(&format!("{scene}: hits compared"));
        sh(plan.peer_command(scene, "medium", "hits", 1).stdout(Stdio::null()))?;
        let compared = plan.our_command(&plan.ours, scene, 1).arg("hits").output().map_err(|e| e.to_string())?;
        let _ = write!(out, "{}", String::from_utf8_lossy(&compared.stdout));
    }
    let _ = write!(out, "{}", instances(&plan)?);
    let _ = writeln!(out, "  {}\n", version.lines().next().unwrap_or(""));
    Ok(())
}

/// Times of a kind of rays of a scene.
fn traces(plan: &Rays, scene: &str, kind: &str, threads: usize, out: &mut Out) -> Result<(), String> {
    let ways = VARIANTS.iter().flat_map(|v| WAYS.map(|way| format!("{v}{way}"))).chain(["small".to_string()]);
    let names: Vec<String> = ways.map(|way| format!("{scene}_{kind}_{way}")).collect();
    let workloads: Vec<(&str, ())> = names.iter().map(|name| (name.as_str(), ())).collect();
    let peer = |quality: &str, mode: &str| plan.peer_command(scene, quality, mode, threads);
    let programs = vec![
        ("ours", plan.our_command(&plan.ours, scene, threads)),
        ("Embree", peer("medium", "trace")),
        ("Embree, high", peer("high", "trace")),
        ("Embree, robust", peer("medium", "robust")),
    ];
    let tell = |turn: usize, name: &str| {
        plan.tell(&format!("{scene} {kind} traced on {threads} threads, run {turn} of {} of {name}", plan.runs));
    };
    let times = Turns::new(plan.runs, programs).run_telling(&[kind], &workloads, out, tell)?;
    let time = |program: usize, way: &str| {
        names.iter().position(|n| *n == format!("{scene}_{kind}_{way}")).map_or(f64::NAN, |i| times[program][i])
    };
    let _ = write!(out, "  {scene} {kind:<8}");
    let least = |t: &[f64]| t.iter().copied().fold(f64::INFINITY, f64::min);
    for (i, variant) in VARIANTS.iter().enumerate() {
        let ours = WAYS.map(|way| time(0, &format!("{variant}{way}")));
        let peer = [time(i + 1, WAYS[0]), time(i + 1, WAYS[1])];
        let name = variant.replace('_', " ");
        let _ = write!(out, " {name}ours {:.1}/{:.1}/{:.1}", ours[0], ours[1], ours[2]);
        let _ = write!(out, " Embree {:.1}/{:.1} speed {:.2};", peer[0], peer[1], least(&peer) / least(&ours));
    }
    let _ = writeln!(out, " quantized {:.1}", time(0, "small"));
    Ok(())
}

/// Times of building and packing in turns, and costs of ours.
fn builds(plan: &Rays, program: &Path, scene: &str, threads: usize, out: &mut Out) -> Result<String, String> {
    let peer = |quality: &str| plan.peer_command(scene, quality, "build", threads);
    let programs = vec![
        ("ours", plan.our_command(program, scene, threads)),
        ("Embree", peer("medium")),
        ("Embree, low", peer("low")),
        ("Embree, high", peer("high")),
    ];
    let columns = [
        "sah",
        "fast",
        "linear",
        "split",
        "refit",
        "sah_cost",
        "fast_cost",
        "linear_cost",
        "split_cost",
        "medium",
        "low",
        "high",
    ];
    let names = columns.map(|c| format!("{scene}_{c}"));
    let workloads = names.each_ref().map(|name| (name.as_str(), ()));
    let tell = |turn: usize, name: &str| {
        plan.tell(&format!("{scene} built on {threads} threads, run {turn} of {} of {name}", plan.runs));
    };
    let times = Turns::new(plan.runs, programs).run_telling(&[], &workloads, out, tell)?;
    let of = |program: usize, column: &str| {
        columns.iter().position(|c| *c == column).map_or(f64::NAN, |i| times[program][i])
    };
    let ms = |program: usize, column: &str| of(program, column) / 1e6;
    Ok(format!(
        "  {scene} built in ms, {threads} threads: SAH {:.1} (cost {:.2}), merged {:.1} (cost {:.2}), linear {:.1} (cost {:.2}), spatial splits {:.1} (cost {:.2}), \
         refitted {:.1}; Embree {:.1}, by Morton codes {:.1}, spatial splits {:.1}\n",
        ms(0, "sah"),
        of(0, "sah_cost"),
        ms(0, "fast"),
        of(0, "fast_cost"),
        ms(0, "linear"),
        of(0, "linear_cost"),
        ms(0, "split"),
        of(0, "split_cost"),
        ms(0, "refit"),
        ms(1, "medium"),
        ms(2, "low"),
        ms(3, "high"),
    ))
}

/// The bytes of machine code of each instance, and the time that its compilation takes beyond that of a program without one.
fn instances(plan: &Rays) -> Result<String, String> {
    plan.tell("compiling instances");
    let object = plan.out.join("instance.o");
    let mut times = [f64::INFINITY; INSTANCES.len() + 1];
    let mut sizes = [0; INSTANCES.len() + 1];
    for _ in 0..plan.runs {
        for (i, (time, size)) in times.iter_mut().zip(&mut sizes).enumerate() {
            let mut command = Command::new(nyala()?);
            command.args(["build", "--no-cache", "--kind", "obj", "-D", &format!("INSTANCE={i}"), "-o"]).arg(&object);
            command.arg(root().join("bench/rays/instances.impala")).stderr(Stdio::null());
            command.args(["--cpu", plan.level.name]);
            let start = Instant::now();
            sh(&mut command)?;
            *time = time.min(start.elapsed().as_secs_f64());
            let bytes = std::fs::read(&object).map_err(|e| format!("{}: {e}", object.display()))?;
            let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", object.display()))?;
            *size = file.sections().filter(|s| s.kind() == object::SectionKind::Text).map(|s| s.size()).sum::<u64>();
        }
    }
    let mut text = String::from("  instances: bytes of machine code, seconds to compile, least of all runs\n");
    for ((name, time), size) in INSTANCES.iter().zip(&times[1..]).zip(&sizes[1..]) {
        let _ = writeln!(text, "    {name}: {size}, {:.2}", time - times[0]);
    }
    Ok(text)
}

/// Embree's library, which Python's package has beside its own.
fn library() -> Option<PathBuf> {
    let lib = root().join("out/peers/lib");
    let versions = std::fs::read_dir(lib).ok()?.flatten().map(|e| e.path().join("site-packages/embreex.libs"));
    let files = versions.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten().map(|e| e.path());
    files.into_iter().find(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libembree4")))
}

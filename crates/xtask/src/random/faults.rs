//! Random programs that go wrong once: checked native code must report what the interpreter reports, at the same line.
//!
//! A program has one fault of a random kind, with operands that are known or not, at a random place: in straight code, in a branch,
//! in a loop, before a loop that uses it or does not, in lanes, in parallel bodies, in functions that are unfolded or called. What is
//! around is right, though near the limits: shifts and casts by any number, the last element of each array. Some programs are right
//! altogether: these must end as in the interpreter. Programs of one batch are functions of one executable, which is told which
//! to run: compiling it serves all.

use super::Rng;
use crate::texts::output_within;
use crate::{Tally, root};
use nyala_driver::{Files, FrontEnd, Options};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const TIME_LIMIT: Duration = Duration::from_secs(120);
const MAX_FAULTS: usize = 5;
/// The number of programs in an executable. Two digits tell them apart.
const TOGETHER: u64 = 50;
/// The options of native code, in turns.
const OPTIONS: [&[&str]; 4] = [&["-O3"], &["-O0"], &["-O1"], &["-O3", "--no-pe"]];
const CHECKS: &str = "--check=bounds,overflow,null,uninit";
/// The exit code of programs that are stopped.
const STOPPED: i32 = 3;

/// A fault: expressions of type `i32` with `#k#` for a number `k`, and the code of its report.
const READS: &[(&str, &str)] = &[
    ("#2147483600# + #77#", "signed-overflow"),
    ("#-2147483600# - #77#", "signed-overflow"),
    ("#70000# * #40000#", "signed-overflow"),
    ("-(#-2147483647# - #1#)", "signed-overflow"),
    ("(#100# as i8 + #29# as i8) as i32", "signed-overflow"),
    ("(#300# as i16 * #200# as i16) as i32", "signed-overflow"),
    ("((#2147483647# as i64 << 31) * #9# as i64) as i32", "signed-overflow"),
    ("((#2147483647# as i64 << 32) + (#2147483647# as i64 << 32)) as i32", "signed-overflow"),
    ("(#-2147483647# - #1#) / #-1#", "signed-overflow"),
    ("#12# / #0#", "division-by-zero"),
    ("#12# % #0#", "division-by-zero"),
    ("(#12# as u32 / #0# as u32) as i32", "division-by-zero"),
    ("(#12# as i64 / #0# as i64) as i32", "division-by-zero"),
    ("heap(#20#)", "invalid-access"),
    ("heap(#-1#)", "invalid-access"),
    ("heap(#20000#)", "invalid-access"),
    ("own(#8#)", "invalid-access"),
    ("own(#-3#)", "invalid-access"),
    ("table(#4#)", "invalid-access"),
    ("*(#0# as u64 as &i32)", "invalid-access"),
    ("gone(#1#)", "invalid-access"),
    ("half(#15#) + 1", "uninitialized-read"),
    ("mine(#7#) + 1", "uninitialized-read"),
    ("none + #3#", "uninitialized-read"),
    ("kept(#1#) * 3", "uninitialized-read"),
];

/// Faults of writes.
const WRITES: &[(&str, &str)] = &[
    ("heap(#20#) = 1", "invalid-access"),
    ("own(#8#) = 1", "invalid-access"),
    ("unread(#9#) = 1", "invalid-access"),
    ("*(#0# as u64 as &mut i32) = 1", "invalid-access"),
    ("gone(#2#) = 1", "invalid-access"),
    ("heap(#19# + #1#) += 1", "invalid-access"),
];

/// Expressions that are right.
const RIGHT: &[&str] = &[
    "heap(#19#)",
    "own(#7#)",
    "table(#3#)",
    "half(#9#)",
    "mine(#3#)",
    "kept(#2#)",
    "#2147483600# + #47#",
    "-#2147483647#",
    "#-2147483647# / #-1#",
    "(#100# << #45#)",
    "(#-7# >> #99#)",
    "(#300# as i8) as i32",
    "(#70000# as u32 * #70000# as u32) as i32",
    "(#40000# as i64 * #70000# as i64) as i32",
];

/// Writes a number into an expression: as it is, so that it is known; as one that depends on the arguments; or on the lane.
fn with_numbers(text: &str, rng: &mut Rng, unknown: &str) -> String {
    let is_known = rng.chance(35);
    let part = |(i, part): (usize, &str)| match (i % 2, is_known || rng.chance(25)) {
        (0, _) => part.to_string(),
        (_, true) => format!("known({part})"),
        _ => format!("({part} ^ {unknown})"),
    };
    text.split('#').enumerate().map(part).collect()
}

const ARRAYS: &str = "heap, &mut own, gone, half, &mut mine, kept, none";
const PARAMS: &str = "zero: i32, heap: &mut [i32], own: &mut [i32], gone: &mut [i32], half: &mut [i32], mine: &mut [i32], kept: &mut [i32], \
                      none: i32";

struct Program {
    functions: String,
    main: String,
    rng: Rng,
    n: usize,
}

impl Program {
    /// Adds statements that compute an expression somewhere, and use it.
    fn add_read(&mut self, text: &str, is_in_lanes: bool) {
        let n = self.n;
        self.n += 1;
        let unknown = if is_in_lanes && self.rng.chance(50) { "zeros(i)" } else { "zero" };
        let e = with_numbers(text, &mut self.rng, unknown);
        let turns = 1 + self.rng.below(4);
        let main = &mut self.main;
        let place = if is_in_lanes { 12 + self.rng.below(2) } else { self.rng.below(12) };
        let _ = match place {
            0 => writeln!(main, "    sum ^= {e};"),
            1 => writeln!(main, "    out({n}) = {e};"),
            2 => writeln!(main, "    if zero < {turns} {{\n        sum ^= {e}\n    }}"),
            3 => writeln!(
                main,
                "    let early{n} = {e};\n    for i in range(0, 5) {{ sum ^= heap(i) }}\n    sum ^= early{n};"
            ),
            4 => writeln!(
                main,
                "    let early{n} = {e};\n    for i in range(zero, {turns}) {{\n        sum ^= early{n} ^ i\n    }}"
            ),
            5 => {
                writeln!(main, "    let early{n} = {e};\n    if zero < {turns} {{\n        out({n}) = early{n}\n    }}")
            }
            6 => writeln!(main, "    for i in range(zero, {turns}) {{\n        sum ^= i ^ ({e})\n    }}"),
            7 => writeln!(
                main,
                "    for i in range(0, 5 + zero) {{\n        if i == {turns} {{\n            sum ^= {e}\n        }}\n    }}"
            ),
            8 | 9 => {
                let sign = if place == 8 { "@" } else { "" };
                let _ = writeln!(self.functions, "fn {sign}read{n}({PARAMS}) -> i32 {{\n    {e}\n}}");
                writeln!(main, "    sum ^= read{n}(zero, {ARRAYS});")
            }
            10 => writeln!(
                main,
                "    for i in par(0, 6) {{\n        if i == {turns} + zero {{\n            lanes(i) = {e}\n        }}\n    }}"
            ),
            11 => writeln!(
                main,
                "    let mut turn{n} = zero;\n    while turn{n} < {turns} {{\n        turn{n}++;\n        sum ^= {e}\n    }}"
            ),
            12 => writeln!(main, "    for i in vec(8, 0, 16 + zero) {{\n        lanes(i) = {e}\n    }}"),
            _ => writeln!(
                main,
                "    for i in vec(4, 0, 24 + zero) {{\n        if i == {turns} {{\n            lanes(i) = {e}\n        }}\n    }}"
            ),
        };
    }

    fn add_write(&mut self, text: &str) {
        let n = self.n;
        self.n += 1;
        let s = with_numbers(text, &mut self.rng, "zero");
        let turns = 1 + self.rng.below(4);
        let main = &mut self.main;
        let _ = match self.rng.below(5) {
            0 => writeln!(main, "    {s};"),
            1 => writeln!(main, "    if zero < {turns} {{\n        {s}\n    }}"),
            2 => writeln!(main, "    for i in range(zero, {turns}) {{\n        {s};\n        sum ^= i\n    }}"),
            3 => writeln!(
                main,
                "    for i in range(zero, 6) {{\n        if i == {turns} {{\n            {s}\n        }}\n    }}"
            ),
            _ if !s.contains("unread") => {
                let _ = writeln!(self.functions, "fn @write{n}({PARAMS}) -> () {{\n    {s}\n}}");
                writeln!(main, "    write{n}(zero, {ARRAYS});")
            }
            _ => writeln!(main, "    {s};"),
        };
    }

    fn add_right(&mut self) {
        let text = RIGHT[self.rng.below(RIGHT.len())];
        let is_in_lanes = self.rng.chance(20);
        // Lanes have no variables of the function around.
        self.add_read(text, is_in_lanes && !text.contains("own") && !text.contains("mine"));
    }
}

/// A program as a function `run` of an integer that is zero, with those that it calls, and the code of its report, if it goes wrong.
pub fn generate(seed: u64) -> (String, Option<&'static str>) {
    let mut rng = Rng::new(seed);
    let kind = rng.below(20);
    let mut p = Program { functions: String::new(), main: String::new(), rng, n: 0 };
    for _ in 0..p.rng.below(3) {
        p.add_right();
    }
    let code = match kind {
        0 => None,
        1..=4 => {
            let (text, code) = WRITES[p.rng.below(WRITES.len())];
            p.add_write(text);
            Some(code)
        }
        _ => {
            let (text, code) = READS[p.rng.below(READS.len())];
            // What is gone by an address in lanes is not checked.
            let may_be_in_lanes = !["own", "mine", "gone", "*("].iter().any(|s| text.contains(s));
            let is_in_lanes = may_be_in_lanes && p.rng.chance(25);
            p.add_read(text, is_in_lanes);
            Some(code)
        }
    };
    for _ in 0..p.rng.below(3) {
        p.add_right();
    }
    let Program { functions, main, .. } = p;
    let program = format!(
        "{functions}fn run(zero: i32) -> i32 {{\n    \
         let mut sum = 0;\n    let (heap, half) = (alloc[i32](20), alloc[i32](16));\n    \
         let (gone, kept) = (alloc[i32](4), alloc[i32](3));\n    let mut unset: i32;\n    \
         if zero > 7 {{ unset = zero }}\n    let none = unset;\n    kept(0) = 3;\n    kept(1) = none;\n    kept(2) = 4;\n    \
         let (out, lanes, zeros) = (alloc[i32](20), alloc[i32](32), alloc[i32](32));\n    let mut own = [1, .. 8];\n    \
         let mut mine: [i32 * 8];\n    let mut unread: [i32 * 9];\n    for i in range(0, 20) {{ heap(i) = i; out(i) = 0 }}\n    \
         for i in range(0, 32) {{ lanes(i) = 0; zeros(i) = zero }}\n    for i in range(0, 10) {{ half(i) = i }}\n    \
         for i in range(0, 4 + zero) {{ mine(i) = i; gone(i) = i; own(i) = i; unread(i) = i }}\n    free(gone);\n{main}    \
         sum ^ out(1) ^ lanes(2) ^ own(1) ^ heap(3)\n}}\n"
    );
    (program, code)
}

/// A program that runs the one of these whose number, of two digits, is its argument.
fn join(bodies: &[String]) -> String {
    let mut program = "static table = [1, 2, 3, 4];\nfn @known(x: i32) -> i32 { x }\n".to_string();
    for (i, body) in bodies.iter().enumerate() {
        let _ = writeln!(program, "mod b{i} {{\n{body}extern fn run_{i}(zero: i32) -> i32 {{ run(zero) }}\n}}");
    }
    let _ = writeln!(
        program,
        "fn main(argc: i32, argv: &[&[u8]]) -> i32 {{\n    let at = (argv(1)(0) - '0') as i32 * 10 + (argv(1)(1) - '0') as i32;"
    );
    // Called twice, with other arguments, each stays a function. In one function, equal computations of two programs are one, and have
    // one place.
    for i in 0..bodies.len() {
        let _ = writeln!(program, "    if at == {i} {{ print_i32(b{i}::run_{i}(argc - 2)) }}");
        let _ = writeln!(program, "    if at == {} {{ print_i32(b{i}::run_{i}(at)) }}", i + 100);
    }
    program + "    0\n}\n"
}

/// What a run says: the code and the line of its report, or what it prints and its exit code.
#[derive(PartialEq, Eq, Debug)]
enum Said {
    Stopped(String, String),
    Ended(Option<i32>, String),
}

/// What the interpreter says of each program.
fn interpreted(program: &str, n: usize) -> Result<Vec<Said>, String> {
    let options = Options { allow: vec!["constant-fault".into()], ..Options::default() };
    let graph = FrontEnd::new(options, Files::of("p.impala", program)).graph().map_err(|e| e.render(false))?;
    let world = &*graph.world;
    let mut all = Vec::new();
    for i in 0..n {
        let root = world.find_root(&format!("run_{i}")).ok_or("a function is missing")?;
        all.push(match nyala_interp::run(world, root, &[0], &nyala_interp::Options::default()) {
            Ok(results) => Said::Ended(Some(0), results.first().map_or(String::new(), |&r| (r as i32).to_string())),
            Err(fault) => {
                let mut report = graph.report.clone();
                report.sink.diagnostics.clear();
                let said = report.report(fault.diagnostic());
                let place = said.sink.diagnostics.first().map(|d| said.sources.place(d.primary.span));
                let place = place.unwrap_or_default();
                Said::Stopped(fault.code().into(), line_of(&place))
            }
        });
    }
    Ok(all)
}

/// The line of a place, `FILE:LINE:COLUMN`.
fn line_of(place: &str) -> String {
    place.rsplit(':').nth(1).unwrap_or_default().into()
}

/// What an executable says of a program.
fn said(executable: &Path, number: usize) -> Result<Said, String> {
    let (code, out, err) = output_within(Command::new(executable).arg(format!("{number:02}")), TIME_LIMIT)?;
    let mut lines = err.lines().skip_while(|l| !l.starts_with("error["));
    let (first, place) = (lines.next(), lines.find(|l| l.trim_start().starts_with("--> ")));
    Ok(match (code, first, place) {
        (Some(STOPPED), Some(first), Some(place)) => {
            let code = first.trim_start_matches("error[").split(']').next().unwrap_or_default();
            Said::Stopped(code.into(), line_of(place))
        }
        _ => Said::Ended(code, if code == Some(0) { out } else { format!("{out}{err}") }),
    })
}

/// Tries programs until there are `max`, or the time is over. Says every one that fails.
pub fn run(first: u64, time: Duration, max: u64, say: &dyn Fn(String)) -> Tally {
    let start = Instant::now();
    let folder = root().join("target/faults").join(std::process::id().to_string());
    if let Err(e) = std::fs::create_dir_all(&folder) {
        say(format!("{}: {e}", folder.display()));
        return Tally { passed: 0, failed: 1, skipped: 0 };
    }
    let (mut n, mut failed) = (0, 0);
    while n < max && failed < MAX_FAULTS && (n == 0 || start.elapsed() < time) {
        let seeds: Vec<u64> = (n..max.min(n + TOGETHER)).map(|i| first.wrapping_add(i)).collect();
        let options = OPTIONS[(first.wrapping_add(n) / TOGETHER) as usize % OPTIONS.len()];
        n += seeds.len() as u64;
        for (seed, fault) in compare(&folder, &seeds, options) {
            say(format!(
                "FAILED random program with a fault, seed {seed}, {options:?}: {fault}\n{}",
                join(&[generate(seed).0])
            ));
            failed += 1;
        }
    }
    // Files of other runs are in other folders.
    let _ = std::fs::remove_dir_all(&folder);
    say(format!("{n} random programs with a fault tried, {failed} are reported otherwise than by the interpreter"));
    Tally { passed: (failed == 0) as usize, failed: (failed > 0) as usize, skipped: 0 }
}

/// The seeds whose programs are reported otherwise than by the interpreter, and how.
fn compare(folder: &Path, seeds: &[u64], options: &[&str]) -> Vec<(u64, String)> {
    let (bodies, codes): (Vec<String>, Vec<_>) = seeds.iter().map(|&seed| generate(seed)).unzip();
    match compare_all(folder, &join(&bodies), &codes, options) {
        Ok(faults) => faults.into_iter().map(|(i, fault)| (seeds[i], fault)).collect(),
        // One of them is refused: which one is found by halves.
        Err(e) => match seeds {
            [seed] => vec![(*seed, e)],
            _ => {
                let (one, other) = seeds.split_at(seeds.len() / 2);
                [compare(folder, one, options), compare(folder, other, options)].concat()
            }
        },
    }
}

fn compare_all(
    folder: &Path,
    program: &str,
    codes: &[Option<&str>],
    options: &[&str],
) -> Result<Vec<(usize, String)>, String> {
    let (path, executable) = (folder.join("p.impala"), folder.join("p"));
    std::fs::write(&path, program).map_err(|e| format!("{}: {e}", path.display()))?;
    let all = interpreted(program, codes.len())?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut build = Command::new(nyala);
    build.args(["build", CHECKS, "--allow", "constant-fault"]).args(options).arg(&path).arg("-o").arg(&executable);
    let (code, _, err) = output_within(&mut build, TIME_LIMIT)?;
    if code != Some(0) {
        return Err(format!("`nyala build` ends with {code:?}: {err}"));
    }
    let mut faults = Vec::new();
    for (i, (expected, &code)) in all.iter().zip(codes).enumerate() {
        match (expected, code) {
            (Said::Stopped(found, _), Some(code)) if found == code => {}
            (Said::Ended(Some(0), _), None) => {}
            _ => {
                faults.push((i, format!("the interpreter says {expected:?}, not {code:?}")));
                continue;
            }
        }
        let found = said(&executable, i)?;
        if found != *expected {
            faults.push((i, format!("{found:?}, the interpreter {expected:?}")));
        }
    }
    Ok(faults)
}

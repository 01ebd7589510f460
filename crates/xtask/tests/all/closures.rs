//! Environments of function values are freed: a program that makes millions of them, in all ways, runs in little memory.

use crate::common::{Folder, RunToEnd, command, cpu_time, nyala, own_cache, root, stderr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Kilobytes of addresses: the program's stack has 1 GiB of them. Memory that is not freed has more than the rest.
const LIMIT: u32 = 1_600_000;

/// Kilobytes that the interpreter may have touched; without what it gives back there were more than twice as many.
const INTERPRETER_LIMIT: u64 = 120_000;

/// A program of `tests/run/closures` with another `main`.
fn with_main(folder: &Folder, program: &str, main: &str) -> PathBuf {
    let text = std::fs::read_to_string(root().join(format!("tests/run/closures/{program}.impala"))).unwrap();
    let (functions, _) = text.split_once("fn main()").unwrap();
    folder.write("rounds.impala", format!("{functions}fn main() -> i32 {{ {main} 0 }}"))
}

/// Runs a program in little memory, as native code of all kinds.
fn runs_in_little_memory(program: &str, main: &str, n_lines: usize) {
    let folder = Folder::new(program);
    let file = with_main(&folder, program, main);
    let program = folder.path("rounds");
    let mut outputs = Vec::new();
    for options in [&["-O0"][..], &["-O3"], &["-O1", "--no-pe"]] {
        let mut args: Vec<&std::ffi::OsStr> =
            vec!["build".as_ref(), file.as_os_str(), "-o".as_ref(), program.as_os_str()];
        args.extend(options.iter().map(std::ffi::OsStr::new));
        let built = nyala(&args, 60);
        assert!(built.status.success(), "{}", stderr(&built));
        let script = format!("ulimit -v {LIMIT}; exec \"$0\"");
        let output = Command::new("sh").args(["-c", &script]).arg(&program).run_to_end();
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        outputs.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    assert_eq!(outputs[0].lines().count(), n_lines);
    assert!(outputs.iter().all(|o| *o == outputs[0]), "{outputs:?}");
}

#[test]
fn memory_stays_flat_while_millions_of_functions_are_made() {
    let main = "print_i32(many(5000000)); println(); print_i32(threads(1000000)); println();
        print_i32(exits(1000000)); println();";
    runs_in_little_memory("many_rounds", main, 3);
}

#[test]
fn memory_stays_flat_while_millions_of_functions_share_variables() {
    let main = "print_i32(rounds(4000000)); println(); print_i32(stacks(4000000)); println();
        print_i32(layers(4000000)); println(); print_i32(machines(2000000)); println();";
    runs_in_little_memory("captured_variables", main, 4);
}

#[test]
fn memory_stays_flat_while_functions_share_variables_with_threads_and_lanes() {
    let main = "print_i32(threads(1000000)); println(); print_i32(exits(200000)); println();
        print_i32(lanes(1000000)); println();";
    runs_in_little_memory("captured_variables", main, 3);
}

#[test]
fn memory_stays_flat_while_millions_of_continuations_are_values() {
    runs_in_little_memory("continuations", "print_i32(all(3000000)); println();", 1);
}

#[test]
fn memory_stays_flat_while_functions_lie_in_frames() {
    runs_in_little_memory("shared_in_frames", "print_i32(rounds(300000)); println();", 1);
}

#[test]
fn jumps_stay_jumps_where_functions_lie_in_frames() {
    runs_in_little_memory("in_frames", "print_i32(jumps(40000000, 3)); println();", 1);
}

/// The most memory that the interpreter had at a time, as far as `/proc` tells.
fn peak_of_interpreter(program: &str, main: &str) -> u64 {
    let folder = Folder::new(&format!("{program} interpreted"));
    let file = with_main(&folder, program, main);
    let args = ["run", "--engine", "interp", "--allow", "unused-name"];
    let mut run = Command::new(command());
    let mut child = own_cache(run.args(args).arg(&file)).stdout(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(peak);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        if cpu_time(&child) > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("{program}: takes too long");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_interpreter_gives_functions_and_their_variables_back() {
    for (program, main) in [
        ("captured_variables", "print_i32(rounds(1500000)); println();"),
        ("continuations", "print_i32(all(400000)); println();"),
    ] {
        let peak = peak_of_interpreter(program, main);
        assert!((1000..INTERPRETER_LIMIT).contains(&peak), "{program}: {peak} kB");
    }
}

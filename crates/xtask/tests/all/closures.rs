//! Environments of function values are freed: a program that makes 400,000 of them, in each way, runs in little memory.

use crate::common::{Folder, command, cpu_time, nyala, own_cache, root, stderr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Kilobytes that a native program may have touched: it needs 3,000, and a little for each thread. Each kind of function value is made
/// at least 400,000 times, and takes 32 bytes or more.
const LIMIT: u64 = 10_000;

/// Kilobytes that the interpreter may have touched: it needs 55,000.
const INTERPRETER_LIMIT: u64 = 80_000;

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
        let (peak, output) = peak(&mut Command::new(&program));
        assert!(peak < LIMIT, "{options:?}: {peak} kB");
        outputs.push(output);
    }
    assert_eq!(outputs[0].lines().count(), n_lines);
    assert!(outputs.iter().all(|o| *o == outputs[0]), "{outputs:?}");
}

#[test]
fn memory_stays_flat_while_many_functions_are_made() {
    let main = "print_i32(many(500000)); println(); print_i32(threads(400000)); println();
        print_i32(exits(400000)); println();";
    runs_in_little_memory("many_rounds", main, 3);
}

#[test]
fn memory_stays_flat_while_many_functions_share_variables() {
    let main = "print_i32(rounds(400000)); println(); print_i32(stacks(400000)); println();
        print_i32(layers(400000)); println(); print_i32(machines(400000)); println();";
    runs_in_little_memory("captured_variables", main, 4);
}

#[test]
fn memory_stays_flat_while_functions_share_variables_with_threads_and_lanes() {
    let main = "print_i32(threads(400000)); println(); print_i32(exits(400000)); println();
        print_i32(lanes(400000)); println();";
    runs_in_little_memory("captured_variables", main, 3);
}

#[test]
fn memory_stays_flat_while_many_continuations_are_values() {
    runs_in_little_memory("continuations", "print_i32(all(400000)); println();", 1);
}

#[test]
fn memory_stays_flat_while_functions_lie_in_frames() {
    runs_in_little_memory("shared_in_frames", "print_i32(rounds(200000)); println();", 1);
}

#[test]
fn jumps_stay_jumps_where_functions_lie_in_frames() {
    runs_in_little_memory("in_frames", "print_i32(jumps(2000000, 3)); println();", 1);
}

/// Runs a command: the most kilobytes of memory that it had at a time, 0 where `/proc` does not tell, and what it printed.
fn peak(command: &mut Command) -> (u64, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(peak);
        if child.try_wait().unwrap().is_some() {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{command:?}: {:?}", output.status);
            return (peak, String::from_utf8_lossy(&output.stdout).into_owned());
        }
        if cpu_time(&child) > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("{command:?} takes too long");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_interpreter_gives_functions_and_their_variables_back() {
    for (program, main) in [
        ("captured_variables", "print_i32(rounds(400000)); println();"),
        ("continuations", "print_i32(all(150000)); println();"),
    ] {
        let folder = Folder::new(&format!("{program} interpreted"));
        let file = with_main(&folder, program, main);
        let mut run = Command::new(command());
        let args = ["run", "--engine", "interp", "--allow", "unused-name"];
        let (peak, _) = peak(own_cache(run.args(args).arg(&file)));
        assert!((1..INTERPRETER_LIMIT).contains(&peak), "{program}: {peak} kB");
    }
}

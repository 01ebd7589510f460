//! Environments of function values are freed: a program that makes millions of them, in all ways, runs in little memory.

mod common;

use common::{Folder, nyala, root, stderr};
use std::process::Command;

/// Kilobytes of addresses: the program's stack has 1 GiB of them. What is not freed has more than the rest.
const LIMIT: u32 = 1_600_000;

/// Runs a program of `tests/run/closures` with another `main`, in little memory, as native code of all kinds.
fn runs_in_little_memory(program: &str, main: &str, n_lines: usize) {
    let folder = Folder::new(program);
    let text = std::fs::read_to_string(root().join(format!("tests/run/closures/{program}.impala"))).unwrap();
    let (functions, _) = text.split_once("fn main()").unwrap();
    let file = folder.write("rounds.impala", format!("{functions}fn main() -> i32 {{ {main} 0 }}"));
    let program = folder.path("rounds");
    let mut outputs = Vec::new();
    for options in [&["-O0"][..], &["-O3"], &["-O1", "--no-pe"]] {
        let mut args: Vec<&std::ffi::OsStr> =
            vec!["build".as_ref(), file.as_os_str(), "-o".as_ref(), program.as_os_str()];
        args.extend(options.iter().map(std::ffi::OsStr::new));
        let built = nyala(&args, 60);
        assert!(built.status.success(), "{}", stderr(&built));
        let script = format!("ulimit -v {LIMIT}; exec \"$0\"");
        let output = Command::new("sh").args(["-c", &script]).arg(&program).output().unwrap();
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
        print_i32(layers(4000000)); println(); print_i32(machines(2000000)); println();
        print_i32(threads(1000000)); println(); print_i32(exits(200000)); println(); print_i32(lanes(1000000)); println();";
    runs_in_little_memory("captured_variables", main, 7);
}

#[test]
fn memory_stays_flat_while_millions_of_continuations_are_values() {
    runs_in_little_memory("continuations", "print_i32(all(3000000)); println();", 1);
}

//! Programs that start kernels, or whose lanes exchange values, in `launches/`: not every engine executes them (kernels only the
//! interpreter, lanes only where partial evaluation finds how many), so that they are no text tests, which run under every engine. A line `//> text` is a line of the output.

mod common;

use common::{Folder, nyala, root, stderr};
use std::ffi::OsStr;

/// Those that start no kernels.
const LANES: [&str; 2] = ["cross_lane.impala", "lanes.impala"];

#[test]
fn programs_with_kernels_run_in_the_interpreter() {
    let folder = root().join("crates/xtask/tests/launches");
    let mut programs: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    assert!(!programs.is_empty());
    for program in programs {
        let text = std::fs::read_to_string(&program).unwrap();
        let expected: String = text.lines().filter_map(|l| l.strip_prefix("//> ")).map(|l| format!("{l}\n")).collect();
        assert!(!expected.is_empty(), "{} expects nothing", program.display());
        let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let native: &[&[&str]] = if LANES.contains(&name) { &[&["-O0"], &["-O3"]] } else { &[] };
        let interpreted: [&[&str]; 2] = [&["--engine", "interp"], &["--engine", "interp", "--no-pe"]];
        for options in interpreted.iter().chain(native) {
            let mut args: Vec<&OsStr> = vec!["run".as_ref()];
            args.extend(options.iter().map(OsStr::new));
            args.push(program.as_os_str());
            let output = nyala(&args, 60);
            let found = String::from_utf8_lossy(&output.stdout);
            assert_eq!(found, expected, "{} {options:?}: {}", program.display(), stderr(&output));
        }
    }
}

#[test]
fn lanes_whose_number_nobody_knows_cannot_exchange_values() {
    let folder = Folder::new("lanes");
    let text = "extern \"C\" { fn rv_any(bool) -> bool; }\n\
        fn main() -> () { for i in vec($4, 0, 8) { if rv_any(i == 3) { print_i32(i) } } }\n";
    let program = folder.write("unknown.impala", text);
    let output = nyala(&["run".as_ref(), program.as_os_str()], 60);
    assert!(!output.status.success());
    let message = "lanes of this `vectorize` exchange values, and how many they are is known at run time only";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
}

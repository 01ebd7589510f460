//! Programs that start kernels, the seeds' and others, in `launches/`: only the interpreter executes them everywhere, so that they are
//! no text tests, which run under every engine. A line `//> text` is a line of the output.

mod common;

use common::{nyala, root, stderr};
use std::ffi::OsStr;

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
        for partial_evaluation in [true, false] {
            let mut args: Vec<&OsStr> = vec!["run".as_ref(), "--engine".as_ref(), "interp".as_ref()];
            if !partial_evaluation {
                args.push("--no-pe".as_ref());
            }
            args.push(program.as_os_str());
            let output = nyala(&args, 60);
            let found = String::from_utf8_lossy(&output.stdout);
            assert_eq!(found, expected, "{}: {}", program.display(), stderr(&output));
        }
    }
}

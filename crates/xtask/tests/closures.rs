//! Environments of function values are freed: a program that makes millions of them, in all ways, runs in little memory.

mod common;

use common::{Folder, nyala, root, stderr};
use std::process::Command;

/// Kilobytes of addresses: the program's stack has 1 GiB of them. 15 million environments have more than the rest.
const LIMIT: u32 = 1_600_000;

#[test]
fn memory_stays_flat_while_millions_of_functions_are_made() {
    let folder = Folder::new("closures");
    let text = std::fs::read_to_string(root().join("tests/run/closures/many_rounds.impala")).unwrap();
    let (functions, _) = text.split_once("fn main()").unwrap();
    let main = "fn main() -> i32 {
    print_i32(many(5000000)); println(); print_i32(threads(1000000)); println();
    print_i32(exits(1000000)); println();
    0
}
";
    let file = folder.write("rounds.impala", functions.to_string() + main);
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
    assert_eq!(outputs[0].lines().count(), 3);
    assert!(outputs.iter().all(|o| *o == outputs[0]), "{outputs:?}");
}

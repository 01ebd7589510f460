//! Files that write LLVM's text import nothing of LLVM's library: the line in the header of `lib.rs`.

use std::path::Path;

/// Modules that hold what LLVM has in memory.
const BELOW: &[&str] = &[
    "confined",
    "contraction",
    "debuggers",
    "divisions",
    "endless",
    "frames",
    "jit",
    "libdevice",
    "library",
    "loads",
    "locate",
    "module",
    "targets",
];

fn check(folder: &Path, faults: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            check(&path, faults);
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem == "lib" || BELOW.contains(&stem.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let bindings = ["inkwell", "llvm_sys"].map(String::from).into_iter();
        for name in bindings.chain(BELOW.iter().map(|below| format!("crate::{below}"))) {
            if text.contains(&name) {
                faults.push(format!("{}: {name}", path.display()));
            }
        }
    }
}

#[test]
fn text_is_written_without_the_library() {
    let mut faults = Vec::new();
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut faults);
    assert!(faults.is_empty(), "{faults:#?}");
}

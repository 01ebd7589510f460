//! Drivers' libraries that are broken: a platform with one is not there, and says why; nothing crashes.

use crate::common::{Folder, RunToEnd, command, skip, stderr};
use std::path::Path;
use std::process::Command;

/// The number of each platform, with its library.
const DRIVERS: &[(i32, &str)] = &[
    (1, "libcuda.so.1"),
    (2, "libOpenCL.so.1"),
    (3, "libhsa-runtime64.so.1"),
    (5, "libze_loader.so.1"),
    (6, "libvulkan.so.1"),
];

/// Makes a broken library in a folder; `None` if that takes a tool that is not there.
type Breaks = fn(&Path, &str) -> Option<()>;

fn is_text(folder: &Path, name: &str) -> Option<()> {
    std::fs::write(folder.join(name), "no library").ok()
}

fn is_empty(folder: &Path, name: &str) -> Option<()> {
    std::fs::write(folder.join(name), "").ok()
}

/// A library that has none of the functions.
fn lacks_functions(folder: &Path, name: &str) -> Option<()> {
    let source = folder.join("nothing.c");
    std::fs::write(&source, "int nothing;\n").ok()?;
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(folder.join(name)).arg(source).status();
    made.ok().filter(|status| status.success()).map(drop)
}

/// The first half of such a library.
fn is_truncated(folder: &Path, name: &str) -> Option<()> {
    lacks_functions(folder, name)?;
    let bytes = std::fs::read(folder.join(name)).ok()?;
    std::fs::write(folder.join(name), &bytes[..bytes.len() / 2]).ok()
}

#[test]
fn are_platforms_that_are_not_there() {
    let breaks: [(&str, Breaks); 4] =
        [("text", is_text), ("empty", is_empty), ("without functions", lacks_functions), ("truncated", is_truncated)];
    for (what, breaks) in breaks {
        let folder = Folder::new(&format!("broken drivers {what}"));
        for (platform, library) in DRIVERS {
            if breaks(&folder.0, library).is_none() {
                skip("a C compiler");
                continue;
            }
            let text = format!(
                "extern \"C\" {{ fn anydsl_alloc(i32, i64) -> &mut [i8]; }}\n\
                fn main() -> i32 {{ if anydsl_alloc({platform}, 100i64) as i64 == 0i64 {{ 42 }} else {{ 1 }} }}\n"
            );
            let program = folder.write("program.impala", text);
            let run = |args: &[&str]| {
                Command::new(command()).args(args).arg(&program).env("LD_LIBRARY_PATH", &folder.0).run_to_end()
            };
            let output = run(&["run"]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(42), "{library}, {what}: {said}");
            let reason = format!("anydsl_alloc: platform {platform}, ");
            assert!(said.starts_with(&reason) && said.contains("is not there"), "{library}, {what}: {said}");
        }
        let doctor = Command::new(command()).arg("doctor").env("LD_LIBRARY_PATH", &folder.0).run_to_end();
        assert!(doctor.status.code().is_some(), "doctor, {what}: {}", stderr(&doctor));
    }
}

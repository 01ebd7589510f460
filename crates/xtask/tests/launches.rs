//! Programs whose kernels or lanes end with an error.

mod common;

use common::{Folder, nyala, stderr};
use std::path::Path;

/// Programs written against files like AnyDSL's platform files, which are given on the command line, without the prelude.
#[test]
fn accelerators_are_records_of_platform_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/device/accelerators");
    let expected = "568 572 576 580 584 568 572 576 \n29500 22156\n58.5 2 59.5 139 48 701\n";
    for platform in ["cuda", "opencl"] {
        for options in [&["--engine", "interp"][..], &["--device", "host"], &["--device", "host", "--no-pe", "-O0"]] {
            let mut args: Vec<std::ffi::OsString> = ["run", "--no-prelude"].map(Into::into).into();
            args.extend(options.iter().map(Into::into));
            for file in ["intrinsics", "runtime", platform, "program"] {
                args.push(folder.join(format!("{file}.impala")).into());
            }
            let args: Vec<&std::ffi::OsStr> = args.iter().map(|a| &**a).collect();
            let output = nyala(&args, 60);
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                expected,
                "{platform} {options:?}: {}",
                stderr(&output)
            );
        }
    }
}

/// A kernel for a device that panics; whether there is a device, and what a run says.
#[test]
fn panics_in_kernels_are_reported_when_the_program_waits() {
    let doctor = nyala(&["doctor".as_ref()], 60);
    let has_opencl =
        String::from_utf8_lossy(&doctor.stdout).lines().any(|l| l.starts_with("works") && l.contains("OpenCL"));
    if !has_opencl {
        eprintln!("skipped: no device of OpenCL is there");
        return;
    }
    let folder = Folder::new("kernel-panics");
    let text = "extern \"thorin\" { fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }\n\
        extern \"device\" { fn get_global_id(u32) -> u64; }\n\
        extern \"C\" { fn anydsl_alloc(i32, i64) -> &mut [i8]; fn anydsl_synchronize(i32) -> (); }\n\
        fn look(a: &mut [i32], i: i32) -> i32 { assert(i != 37); a(i) }\n\
        fn main() -> () {\n\
            let a = anydsl_alloc(2, 400i64) as &mut [i32];\n\
            for opencl(0, (100, 1, 1), (10, 1, 1)) { let i = get_global_id(0u) as i32; a(i) = i; a(i) = look(a, i) + 1; }\n\
            print_string(\"launched\");\n\
            anydsl_synchronize(2);\n\
            print_string(\"not reached\");\n\
        }\n";
    let program = folder.write("panics.impala", text);
    let output = nyala(&["run".as_ref(), program.as_os_str()], 60);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "launched");
    let message = "panics.impala:4:41: assertion failed: `i != 37`, in kernel `main_kernel`, work item (7, 0, 0) of block (3, 0, 0)";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
}

#[test]
fn lanes_whose_number_nobody_knows_cannot_exchange_values() {
    let folder = Folder::new("lanes");
    let text = "extern \"C\" { fn rv_any(bool) -> bool; }\n\
        static mut width = 4;\n\
        fn main() -> () { for i in vec(width, 0, 8) { if rv_any(i == 3) { print_i32(i) } } }\n";
    let program = folder.write("unknown.impala", text);
    let output = nyala(&["run".as_ref(), program.as_os_str()], 60);
    assert!(!output.status.success());
    let message = "lanes of this `vectorize` exchange values, and how many they are is known at run time only";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
}

/// Programs of lanes, and what native code says of them.
const ENDS: [(&str, &str, &str); 4] = [
    (
        "one end of two loops",
        "fn run(a: &[i32], b: &mut [i32]) -> () {
            for i in vec(8, 0, 100) {
                fn die() -> ! { panic(\"five\") }
                let mut s = 0;
                for k in range(0, 5) { if a(i) == k { die() } s += 1; }
                for k in range(0, 7) { if a(i) == k + 100 { die() } s += 3; }
                b(i) = s;
            }
        }
        fn main() -> () {
            let (a, b) = (alloc_i32(128i64), alloc_i32(128i64));
            for i in range(0, 128) { a(i) = if i == 50 { 103 } else { 77 }; }
            run(a, b);
        }",
        "five",
    ),
    (
        "an end before what follows",
        "fn run(a: &[i32], b: &mut [i32]) -> () {
            for i in vec(8, 0, 100) {
                if a(i) > 3 {
                    if a(i) == 5 { panic(\"five\") }
                    b(i) = 100 / (a(i) - 5);
                }
            }
        }
        fn main() -> () {
            let (a, b) = (alloc_i32(128i64), alloc_i32(128i64));
            for i in range(0, 128) { a(i) = if i == 50 { 5 } else { i + 6 }; }
            run(a, b);
        }",
        "five",
    ),
    (
        "an end in lanes of lanes",
        "fn inner(a: &mut [i32], i: i32) -> () { for k in vec(4, 0, 8) { a(i * 8 + k) = k; if k == i { panic(\"six\") } } }
        fn main() -> () {
            let a = alloc_i32(128i64);
            for i in vec(4, 6, $9) { if i != 7 { inner(a, i) } }
            print_i32(a(9));
        }",
        "six",
    ),
    ("too many lanes", "fn main() -> () { for i in vec(65, 0, 8) { print_i32(i) } }", "a `vectorize` of 65 lanes"),
];

#[test]
fn what_ends_lanes() {
    let folder = Folder::new("ends");
    for (name, text, expected) in ENDS {
        let program = folder.write("ends.impala", text);
        for level in ["-O0", "-O3"] {
            let output = nyala(&["run".as_ref(), level.as_ref(), program.as_os_str()], 60);
            assert!(!output.status.success(), "{name} {level}");
            assert!(stderr(&output).contains(expected), "{name} {level}: {}", stderr(&output));
        }
    }
}

//! The runtime's part of Level Zero without a GPU: a stand-in for its loader says what it is asked for, and fails as it is told. The
//! SPIR-V is real.

mod common;

use common::{Folder, command, root};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "extern \"thorin\" {
    fn levelzero(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
    fn \"sin\" sine(f32) -> f32;
    fn reserve_shared[T](i32) -> &mut[3] [T];
}
extern \"device\" {
    fn get_local_id(u32) -> u64;
    fn get_group_id(u32) -> u64;
    fn \"barrier\" wait(u32) -> ();
}
extern \"C\" {
    fn anydsl_alloc(i32, i64) -> &mut [i8];
    fn anydsl_alloc_host(i32, i64) -> &mut [i8];
    fn anydsl_release(i32, &[i8]) -> ();
    fn anydsl_release_host(i32, &[i8]) -> ();
    fn anydsl_copy(i32, &[i8], i64, i32, &mut [i8], i64, i64) -> ();
    fn anydsl_synchronize(i32) -> ();
    fn anydsl_get_kernel_time() -> i64;
    fn nyala_make_queue(i32) -> i32;
    fn nyala_event_record(i32) -> i64;
    fn nyala_event_follow(i32, i64) -> ();
    fn nyala_event_free(i64) -> ();
}
fn main(argc: i32, argv: &[&[u8]]) -> () {
    let a = anydsl_alloc(5, 400i64) as &mut [f32];
    let b = anydsl_alloc_host(5, 800i64) as &mut [f32];
    let mut here: [f32 * 4] = [1f, 2f, 3f, 4f];
    anydsl_copy(0, &here as &[i8], 0i64, 5, a as &mut [i8], 8i64, 16i64);
    // Memory of the host that the device reaches.
    (b as &mut [i8])(0) = argc as i8;
    (b as &mut [i64])(1) = -5i64;
    (b as &mut [i32])(4) = 7;
    let (on, offset, by) = ((b as &[bool])(0), (b as &[i64])(1), (b as &[i32])(4));
    let middle = &mut a(10);
    for levelzero(0, (100 * argc, 2, 1), (64, 1, 1)) {
        let shared = reserve_shared[f32](64);
        let thread = get_local_id(0u) as i32;
        let i = get_group_id(0u) as i32 * 64 + thread;
        shared(thread) = a(i);
        wait(1u);
        if on { b(i) = sine(shared(63 - thread)) * by as f32 + offset as f32; }
        *middle = argc as f32;
    }
    anydsl_synchronize(5);
    let queue = nyala_make_queue(5);
    let mark = nyala_event_record(5);
    nyala_event_follow(queue, mark);
    nyala_event_free(mark);
    anydsl_synchronize(queue);
    anydsl_copy(5, a as &[i8], 8i64, 0, &mut here as &mut [i8], 0i64, 16i64);
    print_f32(here(3));
    print_char(10u8); print_i64(anydsl_get_kernel_time()); print_char(10u8);
    anydsl_release(5, a as &[i8]);
    anydsl_release_host(5, b as &[i8]);
}
";

/// For each fault: the exit status, and texts that stand in the output and in the errors. Allocation gives null where it fails.
const RUNS: &[(&str, i32, &[&str], &[&str])] = &[
    (
        "",
        0,
        &[
            "compile\nlaunch main_kernel: 2 2 1 blocks of 64 1 1: 1 device + 0 host + 0 byte 1 7 -5\n",
            "queue 1 follows: ok\n",
            "4\n1\n",
            "free device 400\nfree host 800\n",
        ],
        &[],
    ),
    ("no-device", 1, &[], &["platform 5, Level Zero, is not there", "no driver has a device"]),
    ("init", 1, &[], &["no driver of a device can be used: the driver is not initialized"]),
    ("memory", 1, &[], &["anydsl_alloc: cannot allocate 400 bytes: out of the device's memory"]),
    (
        "load",
        1,
        &[],
        &[
            "program.impala:35:",
            "kernel `main_kernel`: the driver cannot compile its code: the module cannot be built",
            "error: no such instruction",
        ],
    ),
    ("kernel", 1, &["launch main_kernel: "], &["anydsl_synchronize: a kernel failed: the device is lost"]),
];

/// The stand-in as a library in a folder; `None` if there is no C compiler.
fn driver(folder: &Path) -> Option<()> {
    let source = root().join("crates/xtask/tests/driver/levelzero.c");
    let out = folder.join("libze_loader.so.1");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).args([&out, &source]).output();
    let made = made.ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(())
}

#[test]
fn launches_and_faults() {
    let folder = Folder::new("levelzero-driver");
    if driver(&folder.0).is_none() {
        println!("skipped: there is no C compiler");
        return;
    }
    let program = folder.write("program.impala", PROGRAM);
    for (fault, status, printed, errors) in RUNS {
        let mut run = Command::new(command());
        run.arg("run").arg(&program).env("LD_LIBRARY_PATH", &folder.0).env("FAKE_ZE", fault);
        run.env("XDG_CACHE_HOME", folder.path(&format!("cache {fault}")));
        let output = run.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let shown = format!("fault `{fault}`:\n{out}\n{err}");
        assert_eq!(output.status.code(), Some(*status), "{shown}");
        printed.iter().for_each(|t| assert!(out.contains(t), "`{t}` is missing, {shown}"));
        errors.iter().for_each(|t| assert!(err.contains(t), "`{t}` is missing, {shown}"));
        assert_eq!(out.matches("launch ").count(), usize::from(!printed.is_empty()), "{shown}");
        assert!(!out.contains("twice") && !out.contains("deadlock"), "{shown}");
    }
    // The driver's code is kept.
    let mut run = Command::new(command());
    run.arg("run").arg(&program).env("LD_LIBRARY_PATH", &folder.0).env("XDG_CACHE_HOME", folder.path("cache "));
    let out = String::from_utf8(run.output().unwrap().stdout).unwrap();
    assert!(out.contains("launch main_kernel: ") && !out.contains("compile"), "{out}");
}

//! The runtime's part of HSA without a GPU: a stand-in for AMD's library says what it is asked for, and fails as it is told. The
//! code objects are real ones.

mod common;

use common::{Folder, command, root};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "extern \"thorin\" {
    fn amdgpu_hsa(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
    fn \"sin\" sine(f32) -> f32;
    fn reserve_shared[T](i32) -> &mut[3] [T];
}
extern \"device\" {
    fn \"llvm.amdgcn.workitem.id.x\" thread() -> i32;
    fn \"llvm.amdgcn.workgroup.id.x\" block() -> i32;
    fn \"llvm.amdgcn.s.barrier\" barrier() -> ();
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
    let a = anydsl_alloc(3, 400i64) as &mut [f32];
    let b = anydsl_alloc_host(3, 800i64) as &mut [f32];
    let mut here: [f32 * 4] = [1f, 2f, 3f, 4f];
    anydsl_copy(0, &here as &[i8], 0i64, 3, a as &mut [i8], 8i64, 16i64);
    // Memory of the host that the device reaches.
    (b as &mut [i8])(0) = argc as i8;
    (b as &mut [i64])(1) = -5i64;
    (b as &mut [i32])(4) = 7;
    let (on, offset, by) = ((b as &[bool])(0), (b as &[i64])(1), (b as &[i32])(4));
    let middle = &mut a(10);
    for amdgpu_hsa(0, (100 * argc, 2, 1), (64, 1, 1)) {
        let shared = reserve_shared[f32](64);
        let i = block() * 64 + thread();
        shared(thread()) = a(i);
        barrier();
        if on { b(i) = sine(shared(63 - thread())) * by as f32 + offset as f32; }
        *middle = argc as f32;
    }
    anydsl_synchronize(3);
    let queue = nyala_make_queue(3);
    let mark = nyala_event_record(3);
    nyala_event_follow(queue, mark);
    nyala_event_free(mark);
    anydsl_synchronize(queue);
    anydsl_copy(3, a as &[i8], 8i64, 0, &mut here as &mut [i8], 0i64, 16i64);
    print_f32(here(3));
    print_char(10u8); print_i64(anydsl_get_kernel_time()); print_char(10u8);
    anydsl_release(3, a as &[i8]);
    anydsl_release_host(3, b as &[i8]);
}
";

/// For each fault: the exit status, and texts that stand in the output and in the errors. Allocation gives null where it fails.
const RUNS: &[(&str, i32, &[&str], &[&str])] = &[
    (
        "",
        0,
        &[
            "launch main_kernel.kd: 128 2 1 items in blocks of 64 1 1, 256 bytes shared: 1 device + 0 host + 0 1 7 -5\n",
            "barrier alone\nbarrier after another\n",
            "4\n2\n",
            "free device 400\nfree host 800\n",
        ],
        &[],
    ),
    ("no-device", 1, &[], &["platform 3, HSA, is not there", "the driver has no device"]),
    ("init", 1, &[], &["platform 3, HSA, is not there", "hsa_init: the runtime failed to allocate"]),
    ("memory", 1, &[], &["anydsl_alloc: cannot allocate 400 bytes: the runtime failed to allocate"]),
    (
        "load",
        1,
        &[],
        &["program.impala:35:", "kernel `main_kernel`: the driver cannot load its code: ", "this device is a `gfx90a`"],
    ),
    ("kernel", 1, &["launch main_kernel.kd: "], &["anydsl_synchronize: a kernel failed: a memory aperture violation"]),
];

/// The stand-in as a library in a folder; `None` if there is no C compiler.
fn driver(folder: &Path) -> Option<()> {
    let source = root().join("crates/xtask/tests/driver/hsa.c");
    let out = folder.join("libhsa-runtime64.so.1");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).args([&out, &source]).output();
    let made = made.ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(())
}

#[test]
fn launches_and_faults() {
    let folder = Folder::new("hsa-driver");
    if driver(&folder.0).is_none() {
        println!("skipped: there is no C compiler");
        return;
    }
    let program = folder.write("program.impala", PROGRAM);
    for (fault, status, printed, errors) in RUNS {
        let mut run = Command::new(command());
        run.arg("run").arg(&program).env("LD_LIBRARY_PATH", &folder.0).env("FAKE_HSA", fault);
        // The types of the kernel's parameters.
        run.env("FAKE_HSA_ARGUMENTS", "ippbil");
        let output = run.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let shown = format!("fault `{fault}`:\n{out}\n{err}");
        assert_eq!(output.status.code(), Some(*status), "{shown}");
        printed.iter().for_each(|t| assert!(out.contains(t), "`{t}` is missing, {shown}"));
        errors.iter().for_each(|t| assert!(err.contains(t), "`{t}` is missing, {shown}"));
        assert_eq!(out.matches("launch ").count(), usize::from(!printed.is_empty()), "{shown}");
        assert!(!out.contains("header") && !out.contains("packet") && !out.contains("deadlock"), "{shown}");
    }
}

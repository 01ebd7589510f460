//! The runtime's part of CUDA without a GPU: a stand-in for NVIDIA's driver says what it is asked for, and fails as it is told.

mod common;

use common::{Folder, command, root};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "extern \"thorin\" { fn cuda(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
extern \"device\" { fn \"threadIdx_x\" thread() -> i32; fn \"blockIdx_x\" block() -> i32; }
extern \"C\" {
    fn anydsl_alloc(i32, i64) -> &mut [i8];
    fn anydsl_alloc_host(i32, i64) -> &mut [i8];
    fn anydsl_release(i32, &[i8]) -> ();
    fn anydsl_release_host(i32, &[i8]) -> ();
    fn anydsl_copy(i32, &[i8], i64, i32, &mut [i8], i64, i64) -> ();
    fn anydsl_synchronize(i32) -> ();
    fn anydsl_get_kernel_time() -> i64;
}
struct Scale { by: f32, on: bool, offset: i64 }
fn main(argc: i32, argv: &[&[u8]]) -> () {
    let a = anydsl_alloc(1, 400i64) as &mut [f32];
    let b = anydsl_alloc_host(1, 800i64) as &mut [f32];
    let mut here: [f32 * 4] = [1f, 2f, 3f, 4f];
    anydsl_copy(0, &here as &[i8], 0i64, 1, a as &mut [i8], 8i64, 16i64);
    let scale = Scale { by: argc as f32, on: argc == 1, offset: 5i64 * argc as i64 };
    let middle = &mut a(10);
    for cuda(0, (100 * argc, 2, 1), (64, 1, 1)) {
        let i = block() * 64 + thread();
        if scale.on { b(i) = a(i) * scale.by + scale.offset as f32; }
        *middle = argc as f32;
    }
    for cuda(0, (0, 1, 1), (64, 1, 1)) { a(thread()) = 0f; }
    anydsl_synchronize(1);
    anydsl_copy(1, a as &[i8], 8i64, 0, &mut here as &mut [i8], 0i64, 16i64);
    print_f32(here(3));
    print_char(10u8); print_i64(anydsl_get_kernel_time());
    anydsl_release(1, a as &[i8]);
    anydsl_release_host(1, b as &[i8]);
}
";

/// For each fault: the exit status, and texts that stand in the output and in the errors. Allocation gives null where it fails.
const RUNS: &[(&str, i32, &[&str], &[&str])] = &[
    (
        "",
        0,
        &[
            "assemble",
            "load .target sm_75",
            "launch main_kernel: 2 2 1 blocks of 64 1 1:",
            " memory 0 + 0",
            " memory 1 + 0",
            "4\n1000",
            "free device 400",
            "free pinned 800",
        ],
        &[],
    ),
    ("no-device", 1, &[], &["platform 1, CUDA, is not there", "no CUDA-capable device is detected"]),
    (
        "memory",
        0,
        &["launch main_kernel: 2 2 1 blocks of 64 1 1: 1 wild memory 0"],
        &["anydsl_alloc_host: cannot allocate 800 bytes: out of memory"],
    ),
    (
        "load",
        1,
        &[],
        &[
            "program.impala:20:",
            "kernel `main_kernel`: the driver cannot load its code: a PTX JIT compilation failed",
            "line 7; error : no such thing",
        ],
    ),
    (
        "kernel",
        1,
        &["launch main_kernel: "],
        &["anydsl_synchronize: a kernel failed: an illegal memory access was encountered"],
    ),
];

/// The stand-in as a library in a folder; `None` if there is no C compiler.
fn driver(folder: &Path) -> Option<()> {
    let source = root().join("crates/xtask/tests/driver/cuda.c");
    let out = folder.join("libcuda.so.1");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).args([&out, &source]).output();
    let made = made.ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::copy(&out, folder.join("libcuda.so")).unwrap();
    Some(())
}

/// Runs the program with a fault, and a cache in a folder: exit status, output and errors.
fn run(folder: &Folder, cache: &Path, fault: &str) -> (Option<i32>, String, String) {
    let mut run = Command::new(command());
    run.arg("run")
        .arg(folder.path("program.impala"))
        .env("LD_LIBRARY_PATH", &folder.0)
        .env("FAKE_CUDA", fault)
        .env("XDG_CACHE_HOME", cache);
    let output = run.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn launches_and_faults() {
    let folder = Folder::new("cuda-driver");
    if driver(&folder.0).is_none() {
        println!("skipped: there is no C compiler");
        return;
    }
    folder.write("program.impala", PROGRAM);
    for (fault, status, printed, errors) in RUNS {
        let cache = folder.path(&format!("cache {fault}"));
        let (code, out, err) = run(&folder, &cache, fault);
        let shown = format!("fault `{fault}`:\n{out}\n{err}");
        assert_eq!(code, Some(*status), "{shown}");
        printed.iter().for_each(|t| assert!(out.contains(t), "`{t}` is missing, {shown}"));
        errors.iter().for_each(|t| assert!(err.contains(t), "`{t}` is missing, {shown}"));
        assert_eq!(out.matches("launch ").count(), usize::from(!printed.is_empty()), "{shown}");
    }
}

#[test]
fn machine_code_is_kept() {
    let folder = Folder::new("cuda-cache");
    if driver(&folder.0).is_none() {
        println!("skipped: there is no C compiler");
        return;
    }
    folder.write("program.impala", PROGRAM);
    let cache = folder.path("cache");
    // Whether PTX was assembled. The result is the same in any case.
    let assembles = |fault: &str| {
        let (code, out, err) = run(&folder, &cache, fault);
        assert!(code == Some(0) && out.contains("\n4\n1000"), "{out}\n{err}");
        out.contains("assemble\n")
    };
    let entry = || {
        let entries: Vec<_> = std::fs::read_dir(cache.join("nyala/kernels")).unwrap().flatten().collect();
        assert_eq!(entries.len(), 1);
        entries[0].path()
    };
    assert!(assembles(""));
    assert!(!assembles(""));
    let bytes = std::fs::read(entry()).unwrap();
    for corrupt in [&b""[..], b"short", &bytes[..bytes.len() - 1], &[&bytes[..], b"x"].concat()] {
        std::fs::write(entry(), corrupt).unwrap();
        assert!(assembles(""));
        assert_eq!(std::fs::read(entry()).unwrap(), bytes);
        assert!(!assembles(""));
    }
    // Two processes at once.
    std::fs::remove_file(entry()).unwrap();
    std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(|| assembles("")))));
    assert_eq!(std::fs::read(entry()).unwrap(), bytes);
    // A cache that cannot be written.
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::write(&cache, "a file").unwrap();
    assert!(assembles("") && assembles(""));
}

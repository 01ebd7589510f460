//! The runtime's part of CUDA, HSA, Level Zero, OpenCL and Vulkan without a GPU: a stand-in for each driver, in `driver`, prints what it is asked
//! for, and fails as it is told. The code of the kernels is what the compiler makes for real drivers.

use crate::common::{Folder, RunToEnd, command, root, skip};
use std::path::Path;
use std::process::Command;

/// A driver's stand-in: its source, and the libraries that it stands for.
struct StandIn {
    source: &'static str,
    libraries: &'static [&'static str],
    /// The variable that names a fault, and others.
    fault: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// The platform's number and launch, and how programs say it.
    number: &'static str,
    launch: &'static str,
    functions: &'static str,
    runs: &'static [Run],
}

/// A fault, the exit status, and texts that stand in the output and in the errors.
type Run = (&'static str, i32, &'static [&'static str], &'static [&'static str]);

/// A kernel with addresses in the middle of memory, memory of the host, a null address, numbers of all sizes, memory of the block;
/// an empty grid; a queue that follows another.
const PROGRAM: &str = "extern \"thorin\" {
    fn LAUNCH(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
    fn \"sin\" sine(f32) -> f32;
    fn reserve_shared[T](i32) -> &mut[3] [T];
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
FUNCTIONS
fn main(argc: i32, argv: &[&[u8]]) -> () {
    // Kernels of CUDA are timed from here on.
    print_i64(anydsl_get_kernel_time()); print_char(10u8);
    let a = anydsl_alloc(NUMBER, 400i64) as &mut [f32];
    let b = anydsl_alloc_host(NUMBER, 800i64) as &mut [f32];
    let mut here: [f32 * 4] = [1f, 2f, 3f, 4f];
    anydsl_copy(0, &here as &[i8], 0i64, NUMBER, a as &mut [i8], 8i64, 16i64);
    // Memory of the host that the device reaches.
    (b as &mut [i8])(0) = argc as i8;
    (b as &mut [i64])(1) = -5i64;
    (b as &mut [i32])(4) = 7;
    (b as &mut [i64])(3) = 0i64;
    let (on, offset, by) = ((b as &[bool])(0), (b as &[i64])(1), (b as &[i32])(4));
    let nothing = (b as &[i64])(3) as &mut [f32];
    let middle = &mut a(10);
    for LAUNCH(0, (100 * argc, 2, 1), (64, 1, 1)) {
        let shared = reserve_shared[f32](64);
        let i = block() * 64 + thread();
        shared(thread()) = a(i);
        barrier();
        if on { b(i) = sine(shared(63 - thread())) * by as f32 + offset as f32; }
        if i == 1000 { nothing(0) = 0f; }
        *middle = argc as f32;
    }
    for LAUNCH(0, (0, 1, 1), (64, 1, 1)) { a(thread()) = 0f; }
    anydsl_synchronize(NUMBER);
    let queue = nyala_make_queue(NUMBER);
    let mark = nyala_event_record(NUMBER);
    nyala_event_follow(queue, mark);
    nyala_event_free(mark);
    anydsl_synchronize(queue);
    anydsl_copy(NUMBER, a as &[i8], 8i64, 0, &mut here as &mut [i8], 0i64, 16i64);
    print_f32(here(3));
    print_char(10u8); print_i64(anydsl_get_kernel_time()); print_char(10u8);
    anydsl_release(NUMBER, a as &[i8]);
    anydsl_release_host(NUMBER, b as &[i8]);
}
";

const CUDA: StandIn = StandIn {
    source: "cuda.c",
    libraries: &["libcuda.so.1", "libcuda.so"],
    fault: "FAKE_CUDA",
    variables: &[],
    number: "1",
    launch: "cuda",
    functions: "extern \"device\" {
    fn \"threadIdx_x\" thread() -> i32; fn \"blockIdx_x\" block() -> i32; fn \"__syncthreads\" barrier() -> ();
}",
    runs: &[
        (
            "",
            0,
            &[
                "assemble\nload .target sm_75\n",
                "launch main_kernel: 2 2 1 blocks of 64 1 1: 1 memory 1 + 0 memory 0 + 0 byte 1 0 7 -5\n",
                "stream 1 follows: ok\n",
                "4\n1000\n",
                "free device 400\nfree pinned 800\n",
            ],
            &[],
        ),
        ("no-device", 1, &[], &["platform 1, CUDA, is not there", "no CUDA-capable device is detected"]),
        ("memory", 1, &[], &["anydsl_alloc: cannot allocate 400 bytes: out of memory"]),
        (
            "load",
            1,
            &[],
            &[
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
    ],
};

const HSA: StandIn = StandIn {
    source: "hsa.c",
    libraries: &["libhsa-runtime64.so.1"],
    fault: "FAKE_HSA",
    // The types of the kernel's parameters.
    variables: &[("FAKE_HSA_ARGUMENTS", "ippbpil")],
    number: "3",
    launch: "amdgpu_hsa",
    functions: "extern \"device\" {
    fn \"llvm.amdgcn.workitem.id.x\" thread() -> i32; fn \"llvm.amdgcn.workgroup.id.x\" block() -> i32;
    fn \"llvm.amdgcn.s.barrier\" barrier() -> ();
}",
    runs: &[
        (
            "",
            0,
            &[
                "launch main_kernel.kd: 128 2 1 items in blocks of 64 1 1, 256 bytes shared: 1 host + 0 device + 0 1 0 7 -5\n",
                "barrier alone\nbarrier after another\n",
                "4\n1\n",
                "free device 400\nfree host 800\n",
            ],
            &[],
        ),
        ("no-device", 1, &[], &["platform 3, HSA, is not there", "the driver has no device"]),
        ("init", 1, &[], &["platform 3, HSA, is not there", "hsa_init: the runtime failed to allocate"]),
        ("memory", 1, &[], &["anydsl_alloc: cannot allocate 400 bytes: the runtime failed to allocate"]),
        ("load", 1, &[], &["kernel `main_kernel`: the driver cannot load its code: ", "this device is a `gfx90a`"]),
        (
            "kernel",
            1,
            &["launch main_kernel.kd: "],
            &["anydsl_synchronize: a kernel failed: a memory aperture violation"],
        ),
    ],
};

const LEVEL_ZERO: StandIn = StandIn {
    source: "levelzero.c",
    libraries: &["libze_loader.so.1"],
    fault: "FAKE_ZE",
    variables: &[],
    number: "5",
    launch: "levelzero",
    functions:
        "extern \"device\" { fn get_local_id(u32) -> u64; fn get_group_id(u32) -> u64; fn \"barrier\" wait(u32) -> (); }
fn @thread() -> i32 { get_local_id(0u) as i32 }
fn @block() -> i32 { get_group_id(0u) as i32 }
fn @barrier() -> () { wait(1u) }",
    runs: &[
        (
            "",
            0,
            &[
                "compile\nlaunch main_kernel: 2 2 1 blocks of 64 1 1: 1 host + 0 device + 0 byte 1 0 7 -5\n",
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
                "kernel `main_kernel`: the driver cannot compile its code: the module cannot be built",
                "error: no such instruction",
            ],
        ),
        ("kernel", 1, &["launch main_kernel: "], &["anydsl_synchronize: a kernel failed: the device is lost"]),
    ],
};

const VULKAN: StandIn = StandIn {
    source: "vulkan.c",
    libraries: &["libvulkan.so.1"],
    fault: "FAKE_VULKAN",
    variables: &[],
    number: "6",
    launch: "vulkan",
    functions: LEVEL_ZERO.functions,
    runs: &[
        (
            "",
            0,
            &[
                "device with 3 queues\ncompile\nlaunch main_kernel: 2 2 1 blocks of 64 1 1: 1 host + 0 device + 0 1 0 7 -5, queue 0\n",
                "4\n1\n",
            ],
            &[],
        ),
        ("no-device", 1, &[], &["platform 6, Vulkan, is not there", "no driver has a device"]),
        ("init", 1, &[], &["platform 6, Vulkan, is not there", "no driver of a device is installed"]),
        ("memory", 1, &[], &["anydsl_alloc: cannot allocate 400 bytes: "]),
        ("load", 1, &[], &["kernel `main_kernel`: the driver cannot compile its code: "]),
        ("kernel", 1, &["launch main_kernel: "], &["anydsl_synchronize: a kernel failed: "]),
    ],
};

/// Output of a stand-in that a correct runtime never causes.
const WRONG: &[&str] = &["header", "packet", "twice", "deadlock", "wrong: "];

impl StandIn {
    /// Makes libraries and program in a folder. `None` if there is no C compiler.
    fn make(&self, folder: &Folder) -> Option<()> {
        let source = root().join("crates/xtask/tests/all/driver").join(self.source);
        for library in self.libraries {
            let mut compile = Command::new("cc");
            compile.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(folder.path(library)).arg(&source);
            let made = compile.output().ok()?;
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        let program = PROGRAM.replace("LAUNCH", self.launch).replace("NUMBER", self.number);
        folder.write("program.impala", program.replace("FUNCTIONS", self.functions));
        Some(())
    }

    /// Runs the program with a fault, and a cache in a folder: exit status, output and errors.
    fn run(&self, folder: &Folder, cache: &Path, fault: &str) -> (Option<i32>, String, String) {
        let mut run = Command::new(command());
        run.arg("run").arg(folder.path("program.impala")).env("LD_LIBRARY_PATH", &folder.0);
        run.env("XDG_CACHE_HOME", cache).env(self.fault, fault).envs(self.variables.iter().copied());
        let output = run.run_to_end();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn test(&self) {
        let folder = Folder::new(self.source);
        if self.make(&folder).is_none() {
            skip("a C compiler");
            return;
        }
        let text = std::fs::read_to_string(folder.path("program.impala")).unwrap();
        let line = text.lines().position(|l| l.contains("(100 * argc")).unwrap() + 1;
        for (fault, status, printed, errors) in self.runs {
            let (code, out, err) = self.run(&folder, &folder.path(&format!("cache {fault}")), fault);
            let shown = format!("{}, fault `{fault}`:\n{out}\n{err}", self.source);
            assert_eq!(code, Some(*status), "{shown}");
            printed.iter().for_each(|t| assert!(out.contains(t), "`{t}` is missing, {shown}"));
            errors.iter().for_each(|t| assert!(err.contains(t), "`{t}` is missing, {shown}"));
            WRONG.iter().for_each(|t| assert!(!out.contains(t), "`{t}`, {shown}"));
            assert_eq!(out.matches("launch ").count(), usize::from(!printed.is_empty()), "{shown}");
            assert!(*fault != "load" || err.contains(&format!("program.impala:{line}:")), "{shown}");
        }
    }
}

#[test]
fn cuda() {
    CUDA.test();
}

/// More memory of a block than the code of a kernel declares is asked for at the launch; a device may have less.
#[test]
fn memory_of_a_block_for_cuda() {
    let folder = Folder::new("large blocks");
    if CUDA.make(&folder).is_none() {
        skip("a C compiler");
        return;
    }
    let program = "extern \"thorin\" {
    fn cuda(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
    fn reserve_shared[T](i32) -> &mut[3] [T];
}
extern \"C\" { fn anydsl_alloc(i32, i64) -> &mut [i8]; fn anydsl_synchronize(i32) -> (); fn anydsl_release(i32, &[i8]) -> (); }
extern \"device\" { fn \"threadIdx_x\" thread() -> i32; fn \"__syncthreads\" barrier() -> (); }
fn main() -> () {
    let a = anydsl_alloc(1, 400i64) as &mut [f32];
    for cuda(0, (64, 1, 1), (64, 1, 1)) {
        let (s, t) = (reserve_shared[i8](7), reserve_shared[f32](SIZE));
        s(thread() % 7) = thread() as i8;
        t(thread()) = a(thread());
        barrier();
        a(thread()) = t(63 - thread()) + s(0) as f32;
    }
    anydsl_synchronize(1);
    anydsl_release(1, a as &[i8]);
}";
    let cache = folder.path("cache");
    for (size, status, printed) in [("5000", 0, "memory 0 + 0\n"), ("20000", 0, "shared 80016\n"), ("30000", 1, "")] {
        folder.write("program.impala", program.replace("SIZE", size));
        let (code, out, err) = CUDA.run(&folder, &cache, "");
        assert!(code == Some(status) && out.contains(printed), "{size}: {out}\n{err}");
        assert!(status == 0 || err.contains("120016 bytes of memory of a block: invalid argument"), "{err}");
    }
}

#[test]
fn hsa() {
    HSA.test();
}

#[test]
fn level_zero() {
    LEVEL_ZERO.test();
}

#[test]
fn vulkan() {
    VULKAN.test();
}

/// Queues of a program are the driver's, in turn. What does not wait for each other may run in any order, in which the stand-in begins
/// with the last queue; where queues share one of the driver, all runs in order.
#[test]
fn queues_of_vulkan() {
    let folder = Folder::new("queues of vulkan");
    if VULKAN.make(&folder).is_none() {
        skip("a C compiler");
        return;
    }
    let program = "use std::device::*;
fn a(q: Device, x: &mut [i32]) -> () { for i in q.range(0, 200) { x(i) = 1 } }
fn b(q: Device, x: &mut [i32]) -> () { for i in q.range(0, 456) { x(i) = 2 } }
fn c(q: Device, x: &mut [i32]) -> () { for i in q.range(0, 712) { x(i) = 3 } }
fn d(q: Device, x: &mut [i32]) -> () { for i in q.range(0, 968) { x(i) = 4 } }
fn e(q: Device, x: &mut [i32]) -> () { for i in q.range(0, 1224) { x(i) = 5 } }
fn main() -> () {
    let gpu = vulkan(0);
    let x = gpu.buffer[i32](1224);
    let y = gpu.buffer[i32](1224);
    let (p, q, r) = (gpu.new_queue(), gpu.new_queue(), gpu.new_queue());
    let start = p.record();
    a(p, x.data);
    let a_is_over = p.record();
    b(q, y.data);
    q.follow(a_is_over);
    c(q, x.data);
    d(r, y.data);
    print_string(if a_is_over.is_over() { \"over\\n\" } else { \"under way\\n\" });
    a_is_over.free();
    // Nothing was sent off since the queue followed.
    let c_is_over = q.record();
    r.follow(c_is_over);
    c_is_over.free();
    r.wait();
    print_string(\"waited\\n\");
    let end = p.record();
    e(gpu, x.data);
    end.wait();
    print_i64(end.ns_since(start));
    println();
    gpu.wait();
    print_string(if end.is_over() { \"over\\n\" } else { \"under way\\n\" });
    x.free();
    y.free()
}";
    folder.write("program.impala", program);
    let cache = folder.path("cache");
    let run = |n: &str| {
        let mut run = Command::new(command());
        run.arg("run").arg(folder.path("program.impala")).env("LD_LIBRARY_PATH", &folder.0);
        let output = run.env("XDG_CACHE_HOME", &cache).env("FAKE_VULKAN_QUEUES", n).run_to_end();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
        WRONG.iter().for_each(|t| assert!(!out.contains(t), "`{t}`, {out}"));
        // The stand-in and the program have buffers of their own.
        let launch = |line: &str| {
            // Kernels differ by their number of blocks.
            let (_, rest) = line.strip_prefix("launch ")?.split_once(": ")?;
            let (blocks, queue) = (rest.split(' ').next()?, rest.rsplit(' ').next()?);
            Some(format!("{}{queue}", ["a", "b", "c", "d", "e"][blocks.parse::<usize>().ok()? - 1]))
        };
        let is_said = |line: &&str| !["launch", "compile", "device"].iter().any(|word| line.starts_with(word));
        let launches: Vec<String> = out.lines().filter_map(launch).collect();
        let said: Vec<&str> = out.lines().filter(is_said).collect();
        format!("{}; {}", launches.join(" "), said.join(", "))
    };
    assert_eq!(run("3"), "b2 a1 c2 d0 e0; under way, waited, 9000, over");
    assert_eq!(run("1"), "a0 b0 c0 d0 e0; under way, waited, 11000, over");
}

const OPENCL: StandIn = StandIn {
    source: "opencl.c",
    libraries: &["libOpenCL.so.1", "libOpenCL.so"],
    fault: "FAKE_OPENCL",
    variables: &[],
    number: "2",
    launch: "opencl",
    functions: "",
    runs: &[],
};

/// A kernel with votes to which some lanes of a subgroup do not come needs an extension, the others of its program do not.
#[test]
fn votes_of_some_lanes() {
    let folder = Folder::new("votes of some lanes");
    if OPENCL.make(&folder).is_none() {
        skip("a C compiler");
        return;
    }
    let program = "extern \"thorin\" { fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
extern \"device\" { fn get_local_id(u32) -> u64; }
extern \"C\" {
    fn rv_any(bool) -> bool; fn rv_ballot(bool) -> i32; fn anydsl_alloc(i32, i64) -> &mut [i8]; fn anydsl_release(i32, &[i8]) -> ();
    fn anydsl_device_check_feature_support(i32, &[u8]) -> bool;
}
fn none(a: &mut [i32]) -> () { for opencl(0, (64, 1, 1), (64, 1, 1)) { a(get_local_id(0u)) = 1 } }
fn all_lanes(n: i32, a: &mut [i32]) -> () {
    for opencl(0, (64, 1, 1), (64, 1, 1)) {
        let i = get_local_id(0u) as i32;
        let mut sum = 0;
        // All come to these votes, though some went another way before.
        if i % 2 == 0 { sum = i * n }
        for k in range(0, n) { if rv_any(sum > k) { sum += rv_ballot(i > k) } }
        a(i) = sum
    }
}
fn some(n: i32, a: &mut [i32]) -> () {
    for opencl(0, (64, 1, 1), (64, 1, 1)) {
        let i = get_local_id(0u) as i32;
        let mut k = 0;
        while k < a(i) { if rv_any(a(k) > i) { k += n } else { k++ } }
        a(i) = k
    }
}
fn main(argc: i32, argv: &[&[u8]]) -> () {
    print_string(if anydsl_device_check_feature_support(2, \"divergent_votes\") { \"votes\\n\" } else { \"no votes\\n\" });
    let a = anydsl_alloc(2, 256i64) as &mut [i32];
    none(a);
    all_lanes(argc, a);
    some(argc, a);
    anydsl_release(2, a as &[i8])
}";
    folder.write("program.impala", program);
    let line = program.lines().position(|line| line.starts_with("fn some(")).unwrap() + 2;
    let cache = folder.path("cache");
    let launches =
        |out: &str| out.lines().filter(|l| l.starts_with("launch ")).map(|l| l[7..].to_string()).collect::<Vec<_>>();
    let (code, out, err) = OPENCL.run(&folder, &cache, "cl_khr_subgroups cl_khr_subgroup_ballot");
    assert!(code == Some(1) && out.contains("no votes\n"), "{out}\n{err}");
    assert_eq!(
        launches(&out),
        ["main_kernel: 64 items in blocks of 64", "main_kernel_2: 64 items in blocks of 64"],
        "{err}"
    );
    let said = "kernel `main_kernel_3`: this device lacks the extension cl_khr_subgroup_non_uniform_vote, which the kernel needs for votes to \
                which some lanes of a subgroup do not come; let all lanes come there, or do without, as `trace_item` of `ray::device`";
    assert!(err.contains(said) && err.contains(&format!("program.impala:{line}:")), "{err}");
    let all = "cl_khr_subgroups cl_khr_subgroup_ballot cl_khr_subgroup_non_uniform_vote";
    let (code, out, err) = OPENCL.run(&folder, &cache, all);
    assert!(code == Some(0) && out.contains("votes\n") && !out.contains("no votes"), "{out}\n{err}");
    assert_eq!(launches(&out).len(), 3, "{out}");
    // SPIR-V has no other votes: all kernels need the extension.
    folder.write("program.impala", program.replace("opencl(", "opencl_spirv("));
    let (code, out, err) = OPENCL.run(&folder, &cache, "cl_khr_subgroups cl_khr_subgroup_ballot");
    assert!(code == Some(1) && launches(&out).is_empty(), "{out}\n{err}");
    let said =
        "this device lacks the extension cl_khr_subgroup_non_uniform_vote, which its code needs for votes to which";
    assert!(err.contains(said), "{err}");
}

/// Tests that the code which a driver makes is kept; `made` is printed when it is made.
fn keeps_code(driver: &StandIn, made: &str) {
    let folder = Folder::new(&format!("cache of {}", driver.source));
    if driver.make(&folder).is_none() {
        skip("a C compiler");
        return;
    }
    let cache = folder.path("cache");
    // Whether code was made. The result is the same in any case.
    let makes = |fault: &str| {
        let (code, out, err) = driver.run(&folder, &cache, fault);
        assert!(code == Some(0) && out.contains("\n4\n1"), "{out}\n{err}");
        out.contains(made)
    };
    let entry = || {
        let entries: Vec<_> = std::fs::read_dir(cache.join("nyala/kernels")).unwrap().flatten().collect();
        assert_eq!(entries.len(), 1);
        entries[0].path()
    };
    assert!(makes(""));
    assert!(!makes(""));
    let bytes = std::fs::read(entry()).unwrap();
    for corrupt in [&b""[..], b"short", &bytes[..bytes.len() - 1], &[&bytes[..], b"x"].concat()] {
        std::fs::write(entry(), corrupt).unwrap();
        assert!(makes(""));
        assert_eq!(std::fs::read(entry()).unwrap(), bytes);
        assert!(!makes(""));
    }
    // Several processes at once.
    std::fs::remove_file(entry()).unwrap();
    std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(|| makes("")))));
    assert_eq!(std::fs::read(entry()).unwrap(), bytes);
    // A cache that cannot be written.
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::write(&cache, "a file").unwrap();
    assert!(makes("") && makes(""));
}

#[test]
fn machine_code_is_kept() {
    keeps_code(&CUDA, "assemble\n");
    keeps_code(&LEVEL_ZERO, "compile\n");
    keeps_code(&VULKAN, "compile\n");
}

//! Programs whose kernels or lanes end with an error.

use crate::common::{Folder, RunToEnd, nyala, skip, stderr};
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

/// A program of the library `std::device` has kernels for all platforms if the device's is not known, for one if it is, and for none
/// that an option leaves out.
#[test]
fn programs_have_code_for_the_platforms_that_they_may_need() {
    let folder = Folder::new("platforms-of-devices");
    let program = |device: &str| {
        let text = format!(
            "use std::device::*;\n\
            fn main(argc: i32, argv: &[&[u8]]) -> () {{\n\
                let gpu = {device};\n\
                let a = gpu.buffer[i32](100);\n\
                for i in gpu.range(0, 100) {{ a.data(i) = i }}\n\
                print_i32(a.get(99i64));\n\
            }}\n"
        );
        folder.write("program.impala", &text)
    };
    let kernels = |program: &Path, options: &[&str]| {
        let mut args: Vec<&std::ffi::OsStr> = ["emit", "--stage", "device"].map(AsRef::as_ref).into();
        args.extend(options.iter().map(|o| -> &std::ffi::OsStr { o.as_ref() }));
        args.push(program.as_os_str());
        let output = nyala(&args, 60);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).lines().filter(|l| l.starts_with("kernel ")).count()
    };
    let known = program("opencl(0)");
    assert_eq!(kernels(&known, &[]), 1);
    assert_eq!(kernels(&known, &["-D", "DEVICE_OPENCL=false"]), 0);
    let chosen = program("device_of(argc - 1)");
    assert_eq!(kernels(&chosen, &[]), 2);
    assert_eq!(kernels(&chosen, &["-D", "DEVICE_CUDA=false"]), 1);
    // The first argument is the program's name: `argc` is 1, which means the host here.
    for (options, expected) in [(&[][..], "99"), (&["-D", "DEVICE_HOST=false"], "")] {
        let mut args: Vec<&std::ffi::OsStr> = vec!["run".as_ref()];
        args.extend(options.iter().map(|o: &&str| -> &std::ffi::OsStr { o.as_ref() }));
        args.push(chosen.as_os_str());
        let output = nyala(&args, 60);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", stderr(&output));
        let is_refused = stderr(&output).contains("the program has no code for the platform of this device");
        assert_eq!(is_refused, expected.is_empty(), "{}", stderr(&output));
    }
}

/// A panic of a kernel is reported by those who wait for its queue, not by others; a queue that does not exist is named.
#[test]
#[ignore = "needs a device: ./x test --all crates"]
fn panics_in_kernels_belong_to_queues() {
    if !has_opencl() {
        return;
    }
    let folder = Folder::new("queue-panics");
    let program = |ends: &str| {
        let text = format!(
            "use std::device::*;\n\
            fn main() -> () {{\n\
                let gpu = opencl(0);\n\
                let (p, q) = (gpu.new_queue(), gpu.new_queue());\n\
                let a = p.buffer[i32](100);\n\
                for i in p.range(0, 100) {{ assert(i != 37); a.data(i) = i }}\n\
                let launched = p.record();\n\
                q.follow(launched);\n\
                for i in q.range(0, 100) {{ a.data(i) += 1 }}\n\
                print_i32(a.by(q).get(36i64));\n\
                {ends}\n\
                print_string(\" end\");\n\
            }}\n"
        );
        folder.write("queues.impala", &text)
    };
    for (ends, out, err) in [
        ("q.wait();", "37 end", ""),
        ("p.wait();", "37", "queues.impala:6:28: assertion failed: `i != 37`"),
        ("gpu.wait();", "37", "queues.impala:6:28: assertion failed: `i != 37`"),
        ("launched.free(); launched.wait();", "37", "cannot wait for an event: 1 is no event, or was freed before"),
        ("device_of(2 | 7 << 16).wait();", "37", "the device has no queue 7"),
    ] {
        let output = nyala(&["run".as_ref(), program(ends).as_os_str()], 60);
        assert_eq!(String::from_utf8_lossy(&output.stdout), out, "{ends} {}", stderr(&output));
        assert!(stderr(&output).contains(err), "{ends} {}", stderr(&output));
    }
}

/// A kernel that leaves its memory on a device that is this machine's CPU ends the process with its name and its line.
#[test]
#[ignore = "needs a device: ./x test --all crates"]
fn wild_kernels_are_named() {
    if !has_opencl() {
        return;
    }
    let text = "use std::device::*;\n\
        fn main() -> () {\n\
            let gpu = opencl(0);\n\
            let x = gpu.buffer[f32](1000);\n\
            for i in gpu.range(0, 1000) { x.data(i as i64 - (1i64 << 42i64)) = 1f }\n\
            gpu.wait()\n\
        }\n";
    let folder = Folder::new("wild-kernel");
    let (program, built) = (folder.write("wild.impala", text), folder.path("wild"));
    // Two threads of the driver may fault at once, which happens in one of ten runs.
    for _ in 0..20 {
        let said = stderr(&nyala(&["run".as_ref(), program.as_os_str()], 60));
        for part in ["error[wild-access]", "on a device, whose last kernel is `main_kernel`", "wild.impala:5:"] {
            assert!(said.contains(part), "{said}");
        }
    }
    let made = nyala(&["build".as_ref(), program.as_os_str(), "-o".as_ref(), built.as_os_str()], 60);
    assert!(made.status.success(), "{}", stderr(&made));
    let said = stderr(&std::process::Command::new(&built).run_to_end());
    let place = format!("on a device; its last kernel is `main_kernel`, launched at {}:5:", program.display());
    assert!(said.contains(&place), "{said}");
}

/// Whether there is a device of OpenCL. If not, that is noted.
fn has_opencl() -> bool {
    let doctor = nyala(&["doctor".as_ref()], 60);
    let out = String::from_utf8_lossy(&doctor.stdout);
    let has = out.lines().any(|l| l.starts_with("works") && l.contains("OpenCL"));
    if !has {
        skip("a device of OpenCL");
    }
    has
}

/// A kernel for a device that panics; whether there is a device, and what a run says.
#[test]
#[ignore = "needs a device: ./x test --all crates"]
fn panics_in_kernels_are_reported_when_the_program_waits() {
    if !has_opencl() {
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
            let (a, b) = (alloc[i32](128i64), alloc[i32](128i64));
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
            let (a, b) = (alloc[i32](128i64), alloc[i32](128i64));
            for i in range(0, 128) { a(i) = if i == 50 { 5 } else { i + 6 }; }
            run(a, b);
        }",
        "five",
    ),
    (
        "an end in lanes of lanes",
        "fn inner(a: &mut [i32], i: i32) -> () { for k in vec(4, 0, 8) { a(i * 8 + k) = k; if k == i { panic(\"six\") } } }
        fn main() -> () {
            let a = alloc[i32](128i64);
            for i in vec(4, 6, $9) { if i != 7 { inner(a, i) } }
            print_i32(a(9));
        }",
        "six",
    ),
    ("too many lanes", "fn main() -> () { for i in vec(65, 0, 8) { print_i32(i) } }", "a `vectorize` has 65 lanes"),
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

/// An interrupt while a kernel does not end names the kernel, and its launch on a device.
#[cfg(target_os = "linux")]
fn interrupts_an_endless_kernel(options: &[&str], message: &str) {
    use crate::common::{command, cpu_time, end, own_cache};
    use std::io::Read;
    use std::process::{Command, Stdio};
    let text = "extern \"thorin\" { fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }\n\
        extern \"C\" { fn anydsl_alloc(i32, i64) -> &mut [i8]; fn anydsl_synchronize(i32) -> (); fn nyala_flush() -> (); }\n\
        fn main() -> () {\n\
            let a = anydsl_alloc(2, 64i64) as &mut [i32];\n\
            print_string(\"ready\"); nyala_flush();\n\
            for opencl(0, (1, 1, 1), (1, 1, 1)) { a(0) = 1; while a(0) != 0 { a(1) += 1 } }\n\
            anydsl_synchronize(2);\n\
        }\n";
    let folder = Folder::new("endless-kernel");
    let program = folder.write("endless.impala", text);
    // Tests that run in the background of a shell ignore interrupts.
    let mut run = Command::new("env");
    run.arg("--default-signal=INT").arg(command()).arg("run").args(options).arg(&program);
    let mut child = own_cache(&mut run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    // Only the kernel is left to run, which a driver may have to compile first.
    let seconds = if options.is_empty() { 5 } else { 1 };
    let begin = cpu_time(&child);
    while cpu_time(&child) < begin + std::time::Duration::from_secs(seconds) {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = end(child);
    assert!(!output.status.success());
    assert!(stderr(&output).contains(message), "{options:?}: {}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_kernel_is_interrupted() {
    interrupts_an_endless_kernel(&["--device", "host"], "interrupted: kernel `kernel` has not ended");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a device: ./x test --all crates"]
fn an_endless_kernel_on_a_device_is_interrupted() {
    if has_opencl() {
        interrupts_an_endless_kernel(&[], "endless.impala:6:5: interrupted: kernel `main_kernel` has not ended");
    }
}

/// Runs at `-O0` report memory of devices that is not released.
#[test]
#[ignore = "needs a device: ./x test --all crates"]
fn leaked_buffers_are_reported() {
    if !has_opencl() {
        return;
    }
    let text = "extern \"C\" { fn anydsl_alloc(i32, i64) -> &mut [i8]; fn anydsl_release(i32, &[i8]) -> (); }\n\
        fn main() -> () { let a = anydsl_alloc(2, 64i64); let _b = anydsl_alloc(2, 100i64); anydsl_release(2, a as &[i8]); }\n";
    let folder = Folder::new("leaked-buffers");
    let program = folder.write("leaked.impala", text);
    for (level, said) in [("-O0", "note: 1 buffer of 100 bytes on device opencl:0 not released\n"), ("-O3", "")] {
        let output = nyala(&["run".as_ref(), level.as_ref(), program.as_os_str()], 60);
        assert_eq!(stderr(&output), said);
    }
}

/// A program with a kernel that prints, for a platform.
fn printing(platform: &str) -> String {
    format!(
        "extern \"thorin\" {{ fn {platform}(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }}\n\
         extern \"C\" {{ fn anydsl_synchronize(i32) -> (); }}\n\
         extern \"device\" {{ fn \"get_local_id\" thread(u32) -> u64; fn __fdividef(f32, f32) -> f32; }}\n\
         fn main(argc: i32, argv: &[&[u8]]) -> i32 {{\n\
             print_string(\"before\\n\");\n\
             for {platform}(0, (1, 1, 1), (1, 1, 1)) {{\n\
                 let i = thread(0u) as i32;\n\
                 print_string(\"50% \\\"of\\\" \"); print_i32(i - argc); print_char(' '); print_f32(0.5f * argc as f32);\n\
                 print_bool(i < argc); print_char('%'); print_u64(argc as u64 << 40u64); println()\n\
             }}\n\
             anydsl_synchronize(2);\n\
             print_string(\"after\\n\");\n\
             0\n\
         }}\n"
    )
}

/// Runs a program whose kernel prints.
fn prints(folder: &Folder, all: &[&[&str]]) {
    let source = folder.write("p.impala", printing("opencl"));
    for options in all {
        let mut args: Vec<&std::ffi::OsStr> = vec!["run".as_ref(), source.as_ref()];
        args.extend(options.iter().map(std::ffi::OsStr::new));
        let output = nyala(&args, 120);
        let printed = String::from_utf8_lossy(&output.stdout);
        let expected = "before\n50% \"of\" -1 0.5true%1099511627776\nafter\n";
        assert_eq!(printed, expected, "{options:?}: {}", stderr(&output));
    }
}

#[test]
#[ignore = "needs a device: ./x test --all crates"]
fn kernels_on_a_device_print() {
    if has_opencl() {
        prints(&Folder::new("kernels on a device that print"), &[&[], &["-O0"]]);
    }
}

#[test]
fn kernels_print() {
    let folder = Folder::new("kernels that print");
    prints(&folder, &[&["--engine", "interp"], &["--device", "host"], &["--device", "host", "--no-pe", "-O0"]]);
    let emit = |platform: &str, stage: &str| {
        let source = folder.write("q.impala", printing(platform));
        let args: [&std::ffi::OsStr; 4] = ["emit".as_ref(), "--stage".as_ref(), stage.as_ref(), source.as_ref()];
        nyala(&args, 120)
    };
    let cuda = emit("cuda", "cuda");
    let line = "printf(\"50%% \\\"of\\\" %d %g%s%%%llu\\n\", ";
    assert!(String::from_utf8_lossy(&cuda.stdout).contains(line), "{}", String::from_utf8_lossy(&cuda.stdout));
    for (platform, stage, said) in [
        ("vulkan", "spirv", "a kernel for `vulkan` cannot print"),
        ("amdgpu_pal", "amdgpu", "a kernel for `amdgpu_pal` cannot print"),
        ("cuda", "ptx", "PTX does not have `nyala_print_string`"),
    ] {
        let refused = stderr(&emit(platform, stage));
        assert!(refused.contains(said) && refused.contains("q.impala:8:"), "{refused}");
    }
}

/// Functions that are in no table are the device's compiler's: kernels for CUDA that call one become CUDA C++.
#[test]
fn unknown_functions_are_those_of_cudas_compiler() {
    let folder = Folder::new("functions that nobody knows");
    let program = |platform: &str| {
        let body = "print_string(\"50% \\\"of\\\" \");";
        let call = "let x = __fdividef(argc as f32, 3f); print_f32(x);";
        folder.write("p.impala", printing(platform).replace(body, call))
    };
    let run = |verb: &[&str], source: &Path| {
        let mut args: Vec<&std::ffi::OsStr> = verb.iter().map(std::ffi::OsStr::new).collect();
        args.push(source.as_ref());
        nyala(&args, 120)
    };
    let cuda = run(&["emit", "--stage", "cuda"], &program("cuda"));
    let text = String::from_utf8_lossy(&cuda.stdout);
    assert!(text.contains("(double)__fdividef(x, 3.0f)"), "{text}{}", stderr(&cuda));
    for (verb, platform, said) in [
        (&["emit", "--stage", "ptx"][..], "cuda", "PTX does not have `__fdividef`"),
        (&["emit", "--stage", "opencl"], "opencl", "calls `__fdividef`, a function of devices that is not known"),
        (&["run", "--device", "host"], "cuda", "code of the CPU calls `__fdividef`, a function of devices"),
        (&["run", "--engine", "interp"], "cuda", "the function `__fdividef` of a device, under the interpreter"),
    ] {
        let output = run(verb, &program(platform));
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

/// Writes OpenCL C with operations of subgroups, of which no driver for the CPU need have any.
fn write_subgroups(folder: &Folder) -> std::path::PathBuf {
    let types = ["bool", "i8", "u16", "i32", "u64", "f16", "f32", "f64"];
    let shuffles: String = types.map(|ty| format!("fn \"rv_shuffle_{ty}\" get_{ty}({ty}, i32) -> {ty}; ")).concat();
    let gets: String =
        types.map(|ty| format!("let p_{ty} = a as &mut [{ty}]; p_{ty}(l) = get_{ty}(p_{ty}(l), w - l); ")).concat();
    let source = folder.write(
        "p.impala",
        format!(
            "extern \"thorin\" {{ fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }}\n\
             extern \"C\" {{\n\
                 fn rv_any(bool) -> bool; fn rv_all(bool) -> bool; fn rv_ballot(bool) -> i32; fn rv_popcount(bool) -> i32;\n\
                 fn rv_lane_id() -> i32; fn rv_num_lanes() -> i32; {shuffles}\n\
             }}\n\
             extern fn f(a: &mut [i8], b: &mut [i32]) -> () {{\n\
                 for opencl(0, (64, 1, 1), (64, 1, 1)) {{\n\
                     let (l, w) = (rv_lane_id(), rv_num_lanes());\n\
                     b(l) = rv_ballot(l > 3) + rv_popcount(l > 4) + if rv_any(l > 5) && rv_all(l < 30) {{ 1 }} else {{ 2 }};\n\
                     {gets}\n\
                 }}\n\
             }}\n"
        ),
    );
    let text = folder.path("p.cl");
    let args: [&std::ffi::OsStr; 6] =
        ["emit".as_ref(), "--stage".as_ref(), "opencl".as_ref(), source.as_ref(), "-o".as_ref(), text.as_ref()];
    let output = nyala(&args, 120);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    text
}

#[test]
fn operations_of_subgroups_are_functions() {
    let text = std::fs::read_to_string(write_subgroups(&Folder::new("names of subgroups"))).unwrap();
    for name in ["any", "all", "ballot", "shuffle"] {
        assert!(text.contains(&format!("sub_group_{name}")), "{name}: {text}");
    }
}

/// With all extensions, and with the one that they need.
#[test]
#[ignore = "needs clang: ./x test --all crates"]
fn operations_of_subgroups_are_opencl_c() {
    let clangs = ["clang", "clang-15", "clang-16", "clang-18"];
    let works =
        |clang: &&str| std::process::Command::new(clang).arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(clang) = clangs.into_iter().find(works) else {
        skip("clang");
        return;
    };
    let folder = Folder::new("subgroups in OpenCL C");
    let text = write_subgroups(&folder);
    for (version, extensions) in [("CL3.0", "+all"), ("CL2.0", "-all,+cl_khr_subgroups,+cl_khr_fp64")] {
        let mut compile = std::process::Command::new(clang);
        compile.args([
            "-x",
            "cl",
            &format!("-cl-std={version}"),
            "-target",
            "spir64",
            "-Xclang",
            "-finclude-default-header",
        ]);
        compile.args(["-Xclang", &format!("-cl-ext={extensions}"), "-fsyntax-only", "-Wall", "-Werror"]).arg(&text);
        let output = compile.run_to_end();
        assert!(output.status.success(), "{version}: {}", stderr(&output));
    }
}

//! PTX of kernels: what stands in it, and what is an error. NVIDIA's assembler is not needed.

use crate::common::{Folder, RunToEnd, nyala, root, skip, stderr};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEAD: &str = "extern \"thorin\" {
    fn cuda(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> ();
    fn reserve_shared[T](i32) -> &mut [3][T];
    fn fence(u32, &[u8]) -> ();
    fn atomic(u32, &mut i32, i32, u32, &[u8]) -> i32;
}
extern \"device\" {
    fn \"threadIdx_x\" thread() -> i32; fn \"blockIdx_x\" block() -> i32; fn \"__syncthreads\" wait() -> ();
    fn \"sinf\" sin_f(f32) -> f32; fn \"expf\" exp_f(f32) -> f32; fn \"logf\" log_f(f32) -> f32; fn \"fminf\" min_f(f32, f32) -> f32; fn \"sqrtf\" root(f32) -> f32;
    fn \"pow\" pow_d(f64, f64) -> f64;
    fn \"llvm.nvvm.cp.async.wait.all\" wait_for_copies() -> ();
    fn \"llvm.nvvm.wgmma.fence.sync.aligned\" order_products() -> ();
    fn \"llvm.nvvm.no.such.thing\" nothing() -> ();
}
fn @put(restrict to: &mut [f32], from: &[f32], i: i32) -> () { to(i) = from(i) * 2f }
extern fn run(a: &mut [f32], b: &[f32], n: i32) -> () {
    for cuda(0, (n, 1, 1), (64, 1, 1)) { let i = block() * 64 + thread(); BODY }
}
";

const TWO_MAXIMA: &str = "let two = |k: i32| bitcast[simd[i16 * 2]](b(k)); let sum = two(i) + simd[3i16, 3i16];
    let max = |v: simd[i16 * 2]| select(v < sum, sum, v);
    a(i) = bitcast[f32](max(two(i + 1))); a(i + n) = bitcast[f32](max(two(i + 2)));";

type Texts = &'static [&'static str];

/// For each body of a kernel and options: texts that the PTX has, and texts that it does not have.
const TEXTS: &[(&str, Texts, Texts, Texts)] = &[
    (
        "a(i) = b(i) * 5f + b(i + 1);",
        &[],
        &[".reqntid 64, 1, 1", "ld.global.b32", "mul.rn.f32", "add.rn.f32"],
        &["fma"],
    ),
    ("@fast { a(i) = b(i) * 3f + b(i + 1) }", &[], &["fma.rn.ftz.f32"], &["mul.rn.f32"]),
    ("a(i) = b(i) / b(i + 1) + root(b(i));", &[], &["div.rn.f32", "sqrt.rn.f32"], &[".ftz", "approx"]),
    ("a(i) = min_f(b(i), b(i + 1));", &[], &["min.f32"], &["setp.eq.f32"]),
    ("a(i) = exp_f(b(i));", &[], &["fma.rn.f32"], &["call", "extern"]),
    (
        "let s = reserve_shared[f32](64); s(thread()) = b(i); wait(); a(i) = s(63 - thread());",
        &[],
        &["st.shared", "bar.sync", "ld.shared", "256]"],
        &["ld.b32", "st.b32"],
    ),
    (
        "atomic(1u, a as &mut i32, 1, 2u, \"device\"); fence(7u, \"device\");",
        &[],
        &["atom.global.add", "fence.sc.gpu"],
        &[".sys"],
    ),
    (
        "atomic(1u, a as &mut i32, 1, 2u, \"\"); atomic(2u, a as &mut i32, 3, 7u, \"system\"); atomic(4u, a as &mut i32, 1, 5u, \"\");",
        &[],
        &["atom.relaxed.sys.add.u32", "fence.sc.sys;", "atom.acq_rel.sys.add.u32", "atom.release.sys.global.cas.b32"],
        &["atom.global.add"],
    ),
    // Memory that the kernel does not write: promised by `restrict`, not where it may be written all the same.
    ("put(a, b, i);", &[], &["ld.global.nc.b32"], &[]),
    ("a(i) = b(i);", &[], &["ld.global.b32"], &[".nc"]),
    ("put(a, a, i);", &[], &["ld.global.b32"], &[".nc"]),
    ("put(a, b, i); a(2 * i) = 0f;", &[], &["ld.global.b32"], &[".nc"]),
    ("put(a, b, i); atomic(1u, a as &mut i32, 1, 2u, \"device\");", &[], &["ld.global.b32"], &[".nc"]),
    ("put(a, b, i); fence(4u, \"device\");", &[], &["ld.global.b32"], &[".nc"]),
    ("put(a, b, i); let s = reserve_shared[f32](64); s(thread()) = 1f; wait();", &[], &["ld.global.nc.b32"], &[]),
    // With the host.
    ("a(i) = 1f; fence(7u, \"\");", &[], &["fence.sc.sys"], &[".gpu"]),
    ("a(0) = pow_d(b(0) as f64, b(1) as f64) as f32;", &[], &["mul.rn.f64"], &["extern"]),
    // Instructions for fast exponentials and logarithms. Where all arithmetic is fast, subnormal numbers count as zeros.
    ("a(i) = @fast { exp_f(b(i)) };", &[], &["ex2.approx.ftz.f32"], &["fma"]),
    ("a(i) = @fast { log_f(b(i)) };", &[], &["lg2.approx.ftz.f32"], &["fma"]),
    ("a(i) = @fast { exp_f(b(i)) } + 1f;", &[], &["ex2.approx.f32"], &[".ftz"]),
    ("a(i) = @fast { 1f / root(b(i)) };", &[], &["rsqrt.approx.ftz.f32"], &[]),
    // Vectors in memory of the block are as aligned as that.
    (
        "let s = reserve_shared[simd[f32 * 4]](64); s(thread()) = simd[b(i), b(i + 1), b(i + 2), b(i + 3)]; wait();
        let v = s(63 - thread()); a(i) = v(0) + v(1) + v(2) + v(3);",
        &[],
        &["st.shared.v4", "ld.shared.v4"],
        &[],
    ),
    // Loops that count are unrolled, loops that end by what they compute are not.
    ("let mut s = 0f; for k in range(0, n) { s += b(k) } a(i) = s;", &[], &[".pragma \"nounroll\""], &[]),
    (
        "let mut s = 1f; let mut k = 0; while k < n && s < 100f { s = s * s + b(0); k++ } a(i) = s;",
        &[],
        &["mul.rn.f32"],
        &[".pragma \"nounroll\""],
    ),
    ("let mut s = 0f; for k in range(0, 4) { s += b(4 * i + k) } a(i) = s;", &["-O0"], &[".entry run_kernel"], &[]),
    // Assembly in LLVM's and in CUDA's notation.
    (
        "let mut r = 0; asm(\"mad.lo.s32 $0, $1, $1, 7;\" : \"=r\"(r) : \"r\"(i)); a(i) = r as f32;",
        &[],
        &["mad.lo.s32 %r", ", 7;"],
        &["$1"],
    ),
    (
        "let mut r = 0; asm(\"mov.u32 %0, %%lanemask_lt; add.u32 %0, %0, %1;\" : \"=r\"(r) : \"r\"(i)); a(i) = r as f32;",
        &[],
        &["mov.u32 %r", ", %lanemask_lt; add.u32 %r"],
        &["%%"],
    ),
    ("wait_for_copies(); a(i) = 1f;", &["--cuda", "sm_80"], &[".target sm_80", "cp.async.wait_all"], &[]),
    ("order_products(); a(i) = 1f;", &["--cuda", "sm_90a"], &[".target sm_90a", "wgmma.fence.sync.aligned"], &[]),
    // Two numbers of 16 bits at once, and a sum and a maximum as one instruction, although the sum has two uses.
    (TWO_MAXIMA, &["--cuda", "sm_90"], &["add.s16x2 sum", "max.s16x2"], &["max.s16 ", "add.s16x2 \t"]),
    (TWO_MAXIMA, &["--cuda", "sm_80"], &["max.s16 "], &["s16x2"]),
];

/// The same for CUDA C++.
const SOURCES: &[(&str, Texts)] = &[
    ("put(a, b, i);", &["float *a, float *__restrict__ b"]),
    ("a(i) = b(i);", &["float *a, float *b"]),
    // NVRTC knows no literals of C.
    (
        "let mut s = [i, n, 7]; if n > 5 { s = [n, i, i]; } s(i % 3) += 1; a(i) = s(n % 3) as f32;",
        &["= i32_array3{{", "i32_array3{{n, "],
    ),
    (
        "atomic(1u, a as &mut i32, 1, 2u, \"\"); atomic(6u, a as &mut i32, 1, 2u, \"device\"); fence(7u, \"\");",
        &["atomicAdd_system(", "atomicXor(", "__threadfence_system();"],
    ),
];

/// For each body and options the error.
const ERRORS: &[(&str, Texts, &str)] = &[
    (
        "wait_for_copies();",
        &[],
        "`llvm.nvvm.cp.async.wait.all` is an operation of GPUs from `sm_80` on, which `sm_75` does not have",
    ),
    ("let mut r = 0; asm(\"mov.u32 %0, %3;\" : \"=r\"(r)); a(i) = r as f32;", &[], "there is no operand `$3`"),
    ("nothing();", &[], "there is no `llvm.nvvm.no.such.thing`"),
    ("nothing();", &["--device", "host"], "code of the CPU calls `llvm.nvvm.no.such.thing`, an operation of GPUs"),
    (
        "let s = reserve_shared[f32](60000); a(0) = s(i);",
        &[],
        "a kernel reserves 240000 bytes of memory of the block, and one of this GPU has at most 232448",
    ),
    ("a(0) = 1f;", &["--cuda", "sm_60"], "known are sm_100, "),
];

fn emit(folder: &Folder, body: &str, options: &[&str], stage: &str) -> std::process::Output {
    let program = folder.write("kernel.impala", HEAD.replace("BODY", body));
    let mut args: Vec<&OsStr> = ["emit", "--stage", stage].map(OsStr::new).into();
    args.extend(options.iter().map(OsStr::new));
    args.push(program.as_os_str());
    nyala(&args, 60)
}

#[test]
fn kernels_and_errors() {
    let folder = Folder::new("ptx");
    for (body, options, has, lacks) in TEXTS {
        let output = emit(&folder, body, options, "ptx");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{body}: {}", stderr(&output));
        has.iter().for_each(|t| assert!(text.contains(t), "{body} {options:?}: no `{t}` in\n{text}"));
        lacks.iter().for_each(|t| assert!(!text.contains(t), "{body} {options:?}: `{t}` in\n{text}"));
    }
    for (body, has) in SOURCES {
        let text = String::from_utf8_lossy(&emit(&folder, body, &[], "cuda").stdout).into_owned();
        has.iter().for_each(|t| assert!(text.contains(t), "{body}: no `{t}` in\n{text}"));
    }
    for (body, options, message) in ERRORS {
        let stage = if options.contains(&"host") { "asm" } else { "ptx" };
        let output = emit(&folder, body, options, stage);
        assert!(!output.status.success() && stderr(&output).contains(message), "{body}: {}", stderr(&output));
    }
}

/// Each kernel of `bench/gpu/rays.impala` is one function, which reads nodes and triangles by four numbers at a time and never writes its
/// stack by an address that may be of other memory.
#[test]
fn rays_leave_no_call() {
    let program = root().join("bench/gpu/rays.impala");
    let args = ["emit", "--stage", "ptx", "--cuda", "sm_90"].map(OsStr::new);
    let output = nyala(&[&args[..], &[program.as_os_str()]].concat(), 60);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let kernels: Vec<&str> = text.split(".entry ").skip(1).filter(|k| k.contains("st.local")).collect();
    assert_eq!(kernels.len(), 8);
    for kernel in kernels {
        let name = kernel.split('(').next().unwrap_or_default();
        assert!(kernel.contains(".v4.b32") && kernel.contains("fma.rn.f32"), "{name}");
        for wrong in ["call", "\tld.b32", "\tst.b32"] {
            assert!(!kernel.contains(wrong), "{name}: `{wrong}`");
        }
    }
}

/// A file in place of NVIDIA's library of math functions is named.
#[test]
fn libdevice_may_be_damaged() {
    let folder = Folder::new("libdevice");
    std::fs::create_dir_all(folder.path("nvvm/libdevice")).unwrap();
    folder.write("nvvm/libdevice/libdevice.10.bc", "nothing");
    let program = folder.write("kernel.impala", HEAD.replace("BODY", "a(i) = sin_f(b(i));"));
    let mut emit = Command::new(crate::common::command());
    emit.args(["emit", "--stage", "ptx"]).arg(program).env("CUDA_HOME", &folder.0);
    let output = emit.run_to_end();
    assert!(stderr(&output).contains("error[no-libdevice]: NVIDIA's libdevice in"), "{}", stderr(&output));
}

/// Programs with `std::nvidia`, each for the architecture in its name: instructions that their PTX has.
const NVIDIA: &[(&str, Texts)] = &[
    (
        "sm_80",
        &[
            "cp.async.ca.shared.global [",
            "cp.async.wait_group",
            "wmma.load.a.sync.aligned.row.m16n16k16.f16",
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
            "wmma.store.d.sync.aligned.row.m16n16k16.f32",
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        ],
    ),
    (
        "sm_90a",
        &[
            "mbarrier.init.shared.b64",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
            "mbarrier.try_wait.parity.shared.b64",
            "wgmma.fence.sync.aligned",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
            "wgmma.wait_group.sync.aligned",
        ],
    ),
];

/// Writes the PTX of a program with `std::nvidia`.
fn write_operations(folder: &Folder, arch: &str) -> PathBuf {
    let (program, ptx) = (root().join(format!("tests/device/nvidia/{arch}.impala")), folder.path("kernels.ptx"));
    let args = ["emit".as_ref(), "--stage".as_ref(), "ptx".as_ref(), "--cuda".as_ref(), OsStr::new(arch)];
    let output = nyala(&[&args[..], &["-o".as_ref(), ptx.as_os_str(), program.as_os_str()]].concat(), 60);
    assert!(output.status.success(), "{}", stderr(&output));
    ptx
}

#[test]
fn operations_of_nvidia() {
    let folder = Folder::new("ptx nvidia");
    for (arch, has) in NVIDIA {
        let text = std::fs::read_to_string(write_operations(&folder, arch)).unwrap();
        has.iter().for_each(|t| assert!(text.contains(t), "{arch}: no `{t}` in\n{text}"));
    }
}

#[test]
#[ignore = "needs ptxas: ./x test --all crates"]
fn nvidias_assembler_takes_its_operations() {
    let folder = Folder::new("ptx assembled");
    let named = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/ptxas"));
    let ptxas = named.filter(|tool| tool.exists()).unwrap_or_else(|| "ptxas".into());
    if Command::new(&ptxas).arg("--version").output().is_err() {
        skip("ptxas");
        return;
    }
    for (arch, _) in NVIDIA {
        let ptx = write_operations(&folder, arch);
        let mut assemble = Command::new(&ptxas);
        let made =
            assemble.arg(format!("-arch={arch}")).arg("-o").arg(folder.path("kernels.cubin")).arg(&ptx).run_to_end();
        assert!(made.status.success(), "{arch}: {}", stderr(&made));
    }
}

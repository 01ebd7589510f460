//! Programs that run as several processes, by each launcher of MPI that is there; and what is said where MPI is not there.

use crate::common::{Folder, RunToEnd, command, root, sh, skip, stderr};
use std::path::PathBuf;
use std::process::Command;

/// Launchers by Debian's names.
const LAUNCHERS: [Launcher; 2] = [
    // More processes than there are processors, and as root.
    Launcher { name: "mpirun.openmpi", args: &["--oversubscribe", "--allow-run-as-root"], counts: &[2, 3, 4] },
    // Its processes spin while they wait: each count takes a second or two.
    Launcher { name: "mpirun.mpich", args: &[], counts: &[3] },
];

struct Launcher {
    name: &'static str,
    args: &'static [&'static str],
    /// How many processes compute the examples.
    counts: &'static [usize],
}

impl Launcher {
    /// The command that starts this number of processes, without their program.
    fn start(&self, n: usize) -> Command {
        let mut mpirun = Command::new(self.name);
        // The processes share two processors with other tests.
        mpirun.args(self.args).args(["-n", &n.to_string()]).env("NYALA_NUM_THREADS", "1");
        mpirun
    }
}

/// Builds a program of the repository.
fn build(folder: &Folder, program: &str) -> PathBuf {
    let out = folder.path("program");
    sh(Command::new(command()).current_dir(root()).args(["build", program, "-o"]).arg(&out));
    out
}

/// The launchers that are there.
fn launchers() -> Vec<Launcher> {
    let is_there = |launcher: &Launcher| {
        let found = Command::new(launcher.name).arg("--version").output().is_ok();
        if !found {
            skip(launcher.name);
        }
        found
    };
    LAUNCHERS.into_iter().filter(is_there).collect()
}

#[test]
fn all_functions_agree() {
    let launchers = launchers();
    if launchers.is_empty() {
        return;
    }
    let folder = Folder::new("mpi");
    let program = build(&folder, "lib/mpi/tests/conformance.impala");
    for launcher in launchers {
        for n in 1..=4 {
            let said = sh(launcher.start(n).arg(&program));
            assert!(said.starts_with(&format!("all functions agree: {n} of ")), "{}, {n}: {said}", launcher.name);
            assert_eq!(said.contains("Open MPI"), launcher.name.ends_with("openmpi"), "{said}");
        }
        // Compiled in memory, by each process.
        let source = root().join("lib/mpi/tests/conformance.impala");
        let said = sh(launcher.start(2).arg(command()).args(["run", "-O1"]).arg(source));
        assert!(said.starts_with("all functions agree: 2 of "), "{said}");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_processes() {
    let launchers = launchers();
    if launchers.is_empty() {
        return;
    }
    for (program, args, expected) in [
        ("examples/mpi/nbody.impala", ["100", "3"], "energy after: -0.52291037"),
        ("examples/mpi/multigrid.impala", ["5", "4"], "961 points, largest error 8.209309e-5"),
    ] {
        let folder = Folder::new("mpi");
        let executable = build(&folder, program);
        // Without a launcher, it is a world of one process.
        let alone = sh(Command::new(&executable).args(args));
        assert!(alone.contains(expected), "{alone}");
        for launcher in &launchers {
            for &n in launcher.counts {
                let said = sh(launcher.start(n).arg(&executable).args(args));
                assert_eq!(said, alone, "{program}, {}, {n} processes", launcher.name);
            }
        }
    }
}

#[test]
fn what_mpi_refuses_ends_all_processes() {
    let folder = Folder::new("mpi");
    let program = folder.write(
        "truncated.impala",
        "use mpi::*; use std::slice::*;
        fn main() -> i32 {
            let world = init();
            let mut a = [0, 0];
            if world.rank() == 0 { world.send(slice_of(&a), 1, 0) } else { world.receive(mut_slice_of(&mut a).first(1i64), 0, 0); }
            // Only the end of the other process ends the first one.
            world.barrier();
            0
        }",
    );
    let executable = folder.path("truncated");
    for launcher in launchers() {
        if !executable.exists() {
            sh(Command::new(command()).arg("build").arg(&program).arg("-o").arg(&executable));
        }
        let output = launcher.start(2).arg(&executable).run_to_end();
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains("panic: MPI: ") && said.contains("runcate"), "{said}");
    }
}

#[test]
fn without_mpi_it_is_said_what_is_missing() {
    let folder = Folder::new("mpi");
    let program = folder.write(
        "missing.impala",
        "use mpi::*;
        fn main(argc: i32, _: &[&[u8]]) -> i32 {
            if !is_there() { print_string(why_missing()); println() }
            if argc > 1 { init().rank() } else { 0 }
        }",
    );
    let why = "the library `/nowhere/libmpi.so` that NYALA_MPI names cannot be loaded";
    let nyala = || {
        let mut nyala = Command::new(command());
        nyala.env("NYALA_MPI", "/nowhere/libmpi.so").args(["run", "-O1"]).arg(&program);
        nyala
    };
    assert_eq!(sh(&mut nyala()), format!("{why}\n"));
    let output = nyala().args(["--", "x"]).run_to_end();
    assert_eq!(stderr(&output), format!("panic: MPI: {why}\n"));
    assert!(!output.status.success());
}

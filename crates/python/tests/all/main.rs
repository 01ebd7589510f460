//! The tests of the package, which are Python: `tests/test_*.py` use the standard library only, and `tests/numpy/test_*.py` NumPy, which
//! `./x setup` installs, `tests/others/test_*.py` other packages that the package runs beside or on. They have the package as a wheel would
//! have it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The oldest Python that the package is for.
const OLDEST: (u32, u32) = (3, 11);

/// Makes the package in a folder of its own, from the sources and the library. Cargo does not build the library, because no test
/// links it.
fn package() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(make_package).clone()
}

fn make_package() -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--package", "nyala-python"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo starts").success(), "{cargo:?}");
    let test = std::env::current_exe().expect("the test is a file");
    let made = test.ancestors().nth(2).expect("it lies in a folder");
    let (library, folder) = (made.join("libnyala_python.so"), made.join("python-package"));
    let package = folder.join("nyala");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&package).expect("a folder");
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/nyala")).expect("sources") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            std::fs::copy(&path, package.join(path.file_name().expect("a name"))).expect("it is copied");
        }
    }
    std::os::unix::fs::symlink(&library, package.join("_native.abi3.so")).expect("a link");
    folder
}

/// The interpreter, if there is one that is new enough.
fn python() -> Option<Command> {
    let version = Command::new("python3").args(["-c", "import sys; print(*sys.version_info[:2])"]).output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let (major, minor) = version.trim().split_once(' ')?;
    (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?).ge(&OLDEST).then(|| Command::new("python3"))
}

/// Says that this test needs a tool that is not here; `NYALA_SKIPPED` names a file in which that is noted.
fn skip(tool: &str) {
    match std::env::var_os("NYALA_SKIPPED") {
        Some(word) if word == "fail" => panic!("there is no {tool}"),
        Some(file) => {
            use std::io::Write;
            let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
            let line = format!("the package for Python: {tool}\n");
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a file for what is skipped");
        }
        None => eprintln!("skipped: the package for Python: {tool}"),
    }
}

/// Runs the tests of a folder, in the files of a pattern.
fn run(python: Command, folder: &str, files: &str) {
    run_with(python, &["-X", "dev", "-W", "error"], folder, files);
}

/// [`run`] with options of the interpreter.
fn run_with(mut python: Command, options: &[&str], folder: &str, files: &str) {
    let home = tempfile::tempdir().expect("a folder");
    python.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    // Nothing of the user's is read or written, and no file is left beside the tests.
    python.env("PYTHONPATH", package()).env("HOME", home.path()).env("XDG_CACHE_HOME", home.path());
    python.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONNOUSERSITE", "1").env("NYALA_NUM_THREADS", "2");
    python.args(options).args(["-m", "unittest", "discover", "-p", files]);
    let output = python.stdin(Stdio::null()).output().expect("python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stdout));
    // A run without tests succeeds, too.
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<usize>().ok());
    assert!(ran.is_some_and(|n| n > 0) && !said.contains("skipped"), "{said}");
}

#[test]
fn the_package_in_python() {
    match python() {
        Some(python) => run(python, "tests", "test_*.py"),
        None => skip(&format!("python3, {}.{} or newer", OLDEST.0, OLDEST.1)),
    }
}

#[test]
#[ignore = "takes a minute: `./x test --all python`"]
fn threads_fix_and_call_for_a_minute() {
    match python() {
        Some(mut python) => {
            python.env("NYALA_TEST_SECONDS", "60");
            run(python, "tests", "test_threads.py")
        }
        None => skip(&format!("python3, {}.{} or newer", OLDEST.0, OLDEST.1)),
    }
}

#[test]
#[ignore = "needs NumPy; in `./x test --all python`"]
fn the_package_with_numpy() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    match python.exists() {
        true => run(Command::new(python), "tests/numpy", "test_*.py"),
        false => skip("NumPy in target/python, which `./x setup` installs"),
    }
}

#[test]
#[ignore = "needs Dask, Ray and Numba; in `./x test --all python`"]
fn the_package_with_others() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    let imports = Command::new(&python).args(["-c", "import dask.distributed, numba, ray, zarr"]).output();
    match imports.is_ok_and(|o| o.status.success()) {
        // Their warnings are theirs.
        true => run_with(Command::new(python), &[], "tests/others", "test_*.py"),
        false => skip("Dask, Ray, Numba and Zarr in target/python, which `./x setup` installs"),
    }
}

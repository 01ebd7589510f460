//! Tests of the library as C and C++ programs see it, in one executable.

mod example;
mod host;
mod pages;
mod symbols;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, which is made first: Cargo does not, because no test links it.
fn library() -> PathBuf {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--package", "nyala-capi"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo starts").success(), "{cargo:?}");
    });
    let test = std::env::current_exe().expect("the test is a file");
    test.ancestors().nth(2).expect("it lies in a folder").join("libnyala.so")
}

fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/nyala.h")
}

//! Links exactly one shared libLLVM 22: the one that `NYALA_LLVM` names (the library or its folder), else the one that
//! the Rust toolchain carries.
//!
//! What is linked is a stub without code that exports LLVM's C functions and whose soname is the library's absolute
//! path. The loader then finds the library by that path: no binary needs an rpath, whichever crate it belongs to, and
//! any character may stand in the path.

use object::{Object, ObjectSymbol};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo:rerun-if-env-changed=NYALA_LLVM");
    println!("cargo:rerun-if-changed=build.rs");
    if let Err(message) = link() {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
        exit(1);
    }
}

fn link() -> Result<(), String> {
    let library = find_library()?;
    println!("cargo:rerun-if-changed={}", library.display());
    let names = exported_functions(&library)?;
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    let assembly = out_dir.join("stub.s");
    let mut text = String::from("\t.section .note.GNU-stack,\"\",%progbits\n\t.text\n");
    for name in &names {
        text.push_str(&format!("\t.globl {name}\n\t.type {name}, %function\n{name}:\n"));
    }
    std::fs::write(&assembly, text).map_err(|e| format!("cannot write {}: {e}", assembly.display()))?;
    let stub = out_dir.join("libnyala_llvm.so");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let run = |command: &mut Command| match command.output() {
        Ok(out) if out.status.success() => Ok(()),
        Ok(out) => Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&out.stderr))),
        Err(e) => Err(format!("cannot run {command:?}: {e}")),
    };
    run(Command::new(compiler)
        .arg("-shared")
        .arg("-nostdlib")
        .args(["-Xlinker", "-soname", "-Xlinker"])
        .arg(&library)
        .arg("-o")
        .arg(&stub)
        .arg(&assembly))?;
    println!("cargo:rustc-link-search=native={}", out_dir.display());
    println!("cargo:rustc-link-lib=dylib=nyala_llvm");
    println!("cargo:rustc-env=NYALA_LLVM_LIBRARY={}", library.display());
    Ok(())
}

/// The absolute path of the library to use.
fn find_library() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("NYALA_LLVM").filter(|v| !v.is_empty()) {
        let path = PathBuf::from(&named);
        let found = if path.is_dir() { in_folder(&path) } else { path.is_file().then(|| path.clone()) };
        return found.and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
            format!("NYALA_LLVM names {}, which is neither a shared libLLVM 22 nor a folder with one", path.display())
        });
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(&rustc)
        .args(["--print", "sysroot"])
        .output()
        .map_err(|e| format!("cannot run {}: {e}", rustc.display()))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    in_folder(&sysroot.join("lib")).and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
        format!(
            "no LLVM 22 found: the Rust toolchain in {} carries none\n\
             set NYALA_LLVM to the path of a libLLVM.so.22.1 or of its folder, such as /usr/lib/llvm-22/lib, \
             or build with the toolchain that rustup installs",
            sysroot.display()
        )
    })
}

/// The first shared libLLVM 22 of a folder, by name.
fn in_folder(folder: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libLLVM.so.22.") || (name.starts_with("libLLVM-22") && name.ends_with(".so"))
        })
        // The toolchain has a linker script of a few bytes beside the library.
        .filter(|path| std::fs::metadata(path).is_ok_and(|m| m.len() > 1 << 20))
        .collect();
    found.sort();
    found.into_iter().next()
}

/// LLVM's C functions that the library exports, sorted.
fn exported_functions(library: &Path) -> Result<Vec<String>, String> {
    let bytes = std::fs::read(library).map_err(|e| format!("cannot read {}: {e}", library.display()))?;
    let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", library.display()))?;
    let mut names: Vec<String> = file
        .dynamic_symbols()
        .filter(|s| s.is_definition())
        .filter_map(|s| s.name().ok())
        .map(|name| name.split('@').next().unwrap_or(name))
        .filter(|name| name.starts_with("LLVM") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        .map(String::from)
        .collect();
    names.sort();
    names.dedup();
    if names.iter().any(|n| n == "LLVMOrcCreateLLJIT") && names.iter().any(|n| n == "LLVMParseIRInContext2") {
        Ok(names)
    } else {
        Err(format!("{} is no LLVM 22 with ORC", library.display()))
    }
}

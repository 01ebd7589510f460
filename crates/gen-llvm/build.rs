//! Finds exactly one shared libLLVM 22: the one that `NYALA_LLVM` names (the library or its folder), else the one that the
//! Rust toolchain carries.
//!
//! It is not linked but loaded by its absolute path when its first function is called (`src/library.rs`): loading takes
//! longer than checking a program. This script writes what is linked instead: for each of LLVM's C functions a jump of
//! the same name to the function's address.

use object::{Object, ObjectSymbol, SymbolKind};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

// The stub of a function: jumps to the function's address. At the first call it passes the function's number to the
// code that finds it.
const X86_64_STUB: &str = "
	movq nyala_llvm_functions+OFFSET(%rip), %r11
	testq %r11, %r11
	je 1f
	jmpq *%r11
1:	pushq $INDEX
	jmp nyala_llvm_first
";
/// Finds the function with the number on the stack, all arguments left as they are, and goes there.
const X86_64_FIRST: &str = "	.text
nyala_llvm_first:
	pushq %rax
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	subq $136, %rsp
	movups %xmm0, (%rsp)
	movups %xmm1, 16(%rsp)
	movups %xmm2, 32(%rsp)
	movups %xmm3, 48(%rsp)
	movups %xmm4, 64(%rsp)
	movups %xmm5, 80(%rsp)
	movups %xmm6, 96(%rsp)
	movups %xmm7, 112(%rsp)
	movq 192(%rsp), %rdi
	callq {find}
	movq %rax, %r11
	movups (%rsp), %xmm0
	movups 16(%rsp), %xmm1
	movups 32(%rsp), %xmm2
	movups 48(%rsp), %xmm3
	movups 64(%rsp), %xmm4
	movups 80(%rsp), %xmm5
	movups 96(%rsp), %xmm6
	movups 112(%rsp), %xmm7
	addq $136, %rsp
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	popq %rax
	addq $8, %rsp
	jmpq *%r11
";
const AARCH64_STUB: &str = "
	adrp x16, nyala_llvm_functions+OFFSET
	add x16, x16, :lo12:nyala_llvm_functions+OFFSET
	ldar x16, [x16]
	cbz x16, 1f
	br x16
1:	mov w17, #INDEX
	b nyala_llvm_first
";
const AARCH64_FIRST: &str = "	.text
nyala_llvm_first:
	stp x29, x30, [sp, #-16]!
	mov x29, sp
	sub sp, sp, #208
	stp x0, x1, [sp]
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	str x8, [sp, #64]
	stp q0, q1, [sp, #80]
	stp q2, q3, [sp, #112]
	stp q4, q5, [sp, #144]
	stp q6, q7, [sp, #176]
	mov w0, w17
	bl {find}
	mov x16, x0
	ldp x0, x1, [sp]
	ldp x2, x3, [sp, #16]
	ldp x4, x5, [sp, #32]
	ldp x6, x7, [sp, #48]
	ldr x8, [sp, #64]
	ldp q0, q1, [sp, #80]
	ldp q2, q3, [sp, #112]
	ldp q4, q5, [sp, #144]
	ldp q6, q7, [sp, #176]
	add sp, sp, #208
	ldp x29, x30, [sp], #16
	br x16
";

fn main() {
    println!("cargo:rerun-if-env-changed=NYALA_LLVM");
    println!("cargo:rerun-if-changed=build.rs");
    if let Err(message) = write_stubs() {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
        exit(1);
    }
}

fn write_stubs() -> Result<(), String> {
    let library = find_library()?;
    println!("cargo:rerun-if-changed={}", library.display());
    let names = exported_functions(&library)?;
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let (stub, first) = match arch.as_str() {
        "x86_64" => (X86_64_STUB, X86_64_FIRST),
        "aarch64" => (AARCH64_STUB, AARCH64_FIRST),
        _ => return Err(format!("nobody has written yet how LLVM's functions are called on {arch}")),
    };
    let mut text = String::from(first);
    for (i, name) in names.iter().enumerate() {
        let stub = stub.replace("NAME", name).replace("INDEX", &i.to_string()).replace("OFFSET", &(8 * i).to_string());
        text.push_str(&format!("\t.globl {name}\n\t.type {name}, %function\n{name}:\n{stub}"));
    }
    // Addresses of the functions, once they are found.
    text.push_str("\t.bss\n\t.balign 8\n\t.globl nyala_llvm_functions\n\t.hidden nyala_llvm_functions\n");
    text.push_str(&format!("nyala_llvm_functions:\n\t.zero {}\n\t.text\n", 8 * names.len()));
    for (name, text) in [("stubs.s", &text), ("names.txt", &names.join("\n"))] {
        let path = out_dir.join(name);
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
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
        .filter(|s| s.is_definition() && s.kind() == SymbolKind::Text)
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

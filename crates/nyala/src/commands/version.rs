//! `nyala --version`: what identifies this compiler in a report of a fault.

/// The version, the commit that this command was made of (`+` where files were changed), and LLVM's version.
pub fn text() -> String {
    let llvm = match nyala_gen_llvm::llvm_version() {
        Ok(version) => format!("LLVM {version}"),
        Err(_) => "without LLVM".into(),
    };
    format!("nyala {} ({}, {llvm})", env!("CARGO_PKG_VERSION"), env!("NYALA_BUILD"))
}

//! Compiles the parser that tree-sitter generates, and the scanner, which are C.

fn main() {
    println!("cargo::rerun-if-changed=src");
    cc::Build::new()
        .include("src")
        .files(["src/parser.c", "src/scanner.c"])
        .warnings(false)
        .compile("tree-sitter-impala");
}

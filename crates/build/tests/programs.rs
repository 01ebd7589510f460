//! Libraries made as in build scripts, and Rust programs that are linked with them.

use nyala_build::{Build, Built, Error};
use std::path::Path;
use std::process::Command;

fn built(folder: &Path, text: &str) -> Result<Built, Error> {
    let file = folder.join("kernels.impala");
    std::fs::write(&file, text).expect("it can be written");
    Build::new().file(&file).build(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
}

const KERNELS: &str = "
use std::slice::*;
struct Point { x: f64, y: f64, loop: u8 }
struct List { value: i32, next: &List, cells: [u16 * 3] }
fn @(?n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }
extern fn pow5(x: i32) -> i32 { pow(x, 5) }
extern fn scale(a: &[f32], b: &mut [f32], n: i32, by: f32) -> () { for i in vec(8, 0, n) { b(i) = a(i) * by; } }
extern fn sum(a: Slice[f64]) -> f64 { let mut s = 0.0; for i in range(0i64, a.length) { s += a.data(i); } s }
extern fn mirrored(p: Point) -> Point { Point { x: p.y, y: p.x, ..p } }
extern fn total(l: &List) -> i32 { l.value + l.next.value + l.cells(2) as i32 }
extern fn \"odd.name\" match_of(in_: i32) -> i32 { in_ + 1 }
extern fn fold(n: i32, f: fn(i32, i32) -> i32) -> i32 { let mut x = 0; for i in range(0, n) { x = f(x, i); } x }
fn main() -> i32 { 0 }
";

/// A text, since `unsafe` stands in few crates.
const MAIN: &str = include_str!("caller.txt");

#[test]
fn a_rust_program_calls_a_library() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let made = built(folder, KERNELS)?;
    assert!(!made.declarations.contains("nyala_runtime"), "{}", made.declarations);
    assert!(made.declarations.contains("    /// `fn pow5(x: i32) -> i32`\n    pub fn pow5(x: i32) -> i32;\n"));
    std::fs::write(folder.join("kernels.rs"), &made.declarations).expect("it can be written");
    std::fs::write(folder.join("kernels.o"), &made.object).expect("it can be written");
    std::fs::write(folder.join("main.rs"), MAIN).expect("it can be written");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut rustc = Command::new(rustc);
    rustc.current_dir(folder).args([
        "--edition",
        "2024",
        "-Clink-arg=kernels.o",
        "-Dwarnings",
        "-Adead-code",
        "main.rs",
    ]);
    let output = rustc.output().expect("rustc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(folder.join("main")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "32 [2.0, 4.0, 6.0] 3.5 Point { x: 2.0, y: 1.0, loop: 3 }\n10 2 30\n");
    Ok(())
}

#[test]
fn what_needs_the_runtime_says_so() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let library = "fn @twice(x: i32) -> i32 { 2 * x }\n";
    std::fs::write(folder.path().join("twice.impala"), library).expect("it can be written");
    let made = built(folder.path(), "use twice::*;\nextern fn show(x: i32) -> () { print_i32(twice(x)); }")?;
    assert!(made.declarations.contains("use nyala_runtime as _;"), "{}", made.declarations);
    let names: Vec<_> = made.files.iter().filter_map(|f| f.file_name()).collect();
    assert_eq!(names, ["kernels.impala", "twice.impala"]);
    Ok(())
}

#[test]
fn errors_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let fault = |text: &str| built(folder.path(), text).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(fault("extern fn f() -> i32 { 1f }").starts_with("error[type-mismatch]"));
    assert!(
        fault("extern fn f(p: (i32, i32)) -> () {}")
            .starts_with("error[limitation]: `fn f(p: (i32, i32)) -> ()` has a tuple")
    );
    assert!(fault("extern fn f(a: [i32 * 2]) -> () {}").contains("has an array by value"));
    let missing = Build::new().file("no/such/file.impala").build("x86_64-unknown-linux-gnu").err();
    assert!(missing.is_some_and(|e| e.to_string().starts_with("cannot read no/such/file.impala: ")));
}

//! Programs whose kernels or lanes end with an error.

mod common;

use common::{Folder, nyala, stderr};

#[test]
fn lanes_whose_number_nobody_knows_cannot_exchange_values() {
    let folder = Folder::new("lanes");
    let text = "extern \"C\" { fn rv_any(bool) -> bool; }\n\
        static mut width = 4;\n\
        fn main() -> () { for i in vec(width, 0, 8) { if rv_any(i == 3) { print_i32(i) } } }\n";
    let program = folder.write("unknown.impala", text);
    let output = nyala(&["run".as_ref(), program.as_os_str()], 60);
    assert!(!output.status.success());
    let message = "lanes of this `vectorize` exchange values, and how many they are is known at run time only";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
}

/// Programs of lanes, and what native code says of them.
const ENDS: [(&str, &str, &str); 4] = [
    (
        "one end of two loops",
        "fn run(a: &[i32], b: &mut [i32]) -> () {
            for i in vec(8, 0, 100) {
                fn die() -> ! { panic(\"five\") }
                let mut s = 0;
                for k in range(0, 5) { if a(i) == k { die() } s += 1; }
                for k in range(0, 7) { if a(i) == k + 100 { die() } s += 3; }
                b(i) = s;
            }
        }
        fn main() -> () {
            let (a, b) = (alloc_i32(128i64), alloc_i32(128i64));
            for i in range(0, 128) { a(i) = if i == 50 { 103 } else { 77 }; }
            run(a, b);
        }",
        "five",
    ),
    (
        "an end before what follows",
        "fn run(a: &[i32], b: &mut [i32]) -> () {
            for i in vec(8, 0, 100) {
                if a(i) > 3 {
                    if a(i) == 5 { panic(\"five\") }
                    b(i) = 100 / (a(i) - 5);
                }
            }
        }
        fn main() -> () {
            let (a, b) = (alloc_i32(128i64), alloc_i32(128i64));
            for i in range(0, 128) { a(i) = if i == 50 { 5 } else { i + 6 }; }
            run(a, b);
        }",
        "five",
    ),
    (
        "an end in lanes of lanes",
        "fn inner(a: &mut [i32], i: i32) -> () { for k in vec(4, 0, 8) { a(i * 8 + k) = k; if k == i { panic(\"six\") } } }
        fn main() -> () {
            let a = alloc_i32(128i64);
            for i in vec(4, 6, $9) { if i != 7 { inner(a, i) } }
            print_i32(a(9));
        }",
        "six",
    ),
    ("too many lanes", "fn main() -> () { for i in vec(65, 0, 8) { print_i32(i) } }", "a `vectorize` of 65 lanes"),
];

#[test]
fn what_ends_lanes() {
    let folder = Folder::new("ends");
    for (name, text, expected) in ENDS {
        let program = folder.write("ends.impala", text);
        for level in ["-O0", "-O3"] {
            let output = nyala(&["run".as_ref(), level.as_ref(), program.as_os_str()], 60);
            assert!(!output.status.success(), "{name} {level}");
            assert!(stderr(&output).contains(expected), "{name} {level}: {}", stderr(&output));
        }
    }
}

//! `nyala new`: a package to begin with: a library, a program, a test, a benchmark, a README.

use super::USAGE;
use super::add::fail;
use nyala_driver::diagnostics::cannot_write;
use nyala_driver::packages::{MANIFEST, check_name};
use std::path::{Path, PathBuf};

/// Make a folder with a new package: a library, a program, a test and a benchmark
#[derive(clap::Args)]
pub struct New {
    /// The folder; its name is that of the package and of its library
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// The files, by name. `NAME` stands for the package's.
const FILES: &[(&str, &str)] = &[
    (MANIFEST, "[package]\nname = \"NAME\"\n\n[dependencies]\n"),
    ("README.md", README),
    ("src/NAME.impala", LIBRARY),
    ("src/main.impala", PROGRAM),
    ("tests/dot_products.impala", TEST),
    ("bench/dot_products.impala", BENCH),
    (".gitignore", "*.o\n*.so\n/main\n"),
];

const README: &str = "# NAME

| do | see |
|---|---|
| `nyala run` | the program's output |
| `nyala test` | each test under all engines |
| `nyala bench` | times |
| `nyala emit --stage flat --fn dot4` | code without a loop |
| `nyala build -o main` | an executable |
| `nyala fmt .` | all files formatted |
| `nyala add geo --path ../geo` | a dependency more in `nyala.toml` |
";

const LIBRARY: &str = "// Dot products. The loop is an argument: `range` leaves it a loop, `unroll` leaves none.

// The sum of the products of n elements.
fn @dot(n: i32, loop: fn(i32, i32, fn(i32) -> ()) -> (), a: &[f32], b: &[f32]) -> f32 {
    let mut sum = 0f;
    for i in loop(0, n) { sum += a(i) * b(i); }
    sum
}
";

const PROGRAM: &str = "use NAME::*;

// The product of four elements.
extern fn dot4(a: &[f32], b: &[f32]) -> f32 { dot(4, unroll, a, b) }

fn main() -> i32 {
    print_f32(dot4([1f, 2f, 3f, 4f], [1f, 1f, 1f, 1f]));
    println();
    0
}
";

const TEST: &str = "use NAME::*;

extern fn dot_of(n: i32, a: &[f32], b: &[f32]) -> f32 { dot(n, range, a, b) }

//? dot_of(0, [1f], [1f]) == 0f
//? dot_of(3, [1f, 2f, 3f], [4f, 5f, 6f]) == 32f

fn test_loops_agree() -> () {
    let (a, b) = ([1f, 2f, 3f, 4f], [5f, 6f, 7f, 8f]);
    assert(dot(4, range, &a, &b) == dot(4, unroll, &a, &b));
}
";

const BENCH: &str = "use NAME::*;

static mut a = [1f, .. 1024];
static mut b = [2f, .. 1024];

extern fn bench_dot() -> f32 { dot(1024, range, &a, &b) }
";

impl New {
    pub fn run(&self) -> u8 {
        let name = self.folder.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if let Err(why) = check_name(name) {
            eprintln!("error: {why}");
            return USAGE;
        }
        if self.folder.exists() {
            eprintln!("error: {} is there already", self.folder.display());
            return USAGE;
        }
        for (file, text) in FILES {
            let path = self.folder.join(file.replace("NAME", name));
            if let Err(e) = write(&path, &text.replace("NAME", name)) {
                return fail(cannot_write::file(&path, e));
            }
        }
        println!("made the package `{name}`: {}", self.folder.join("README.md").display());
        0
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

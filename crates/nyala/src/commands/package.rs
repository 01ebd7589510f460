//! The files of the package around the working folder, which commands take when no file is named. Separate from
//! `nyala_driver::packages`, which reads manifests; here a name of a file and its place are all that counts.

use nyala_driver::packages::{self, MANIFEST};
use std::path::{Path, PathBuf};

/// What a command works on, in a package.
#[derive(Clone, Copy)]
pub enum Part {
    /// `src/main.impala`
    Program,
    /// All files in `src` and `tests`.
    Tests,
    /// The only file of `bench`.
    Benchmark,
    /// The folder `src`.
    Sources,
    /// The folders `src`, `tests` and `bench`.
    All,
}

/// The files of the package, by paths from the working folder; or why there are none, and what to do.
pub fn files(part: Part) -> Result<Vec<PathBuf>, (String, String)> {
    let name_one = "name a file".to_string();
    let Some(root) = packages::folder_of(Path::new("-")) else {
        let why = format!("no file is named, and no folder around this one has a `{MANIFEST}`");
        return Err((why, format!("{name_one}, or make a package by `nyala new NAME`")));
    };
    let here = Path::new(".").canonicalize().unwrap_or_default();
    let n_up = here.strip_prefix(&root).map_or(0, |inner| inner.components().count());
    let up: PathBuf = std::iter::repeat_n("..", n_up).collect();
    let missing =
        |what: &Path| (format!("no file is named, and the package has no `{}`", what.display()), name_one.clone());
    let (source, tests, bench) = (up.join("src"), up.join("tests"), up.join("bench"));
    let folders = |all: &[&PathBuf]| all.iter().filter(|f| f.is_dir()).map(|f| f.to_path_buf()).collect::<Vec<_>>();
    match part {
        Part::Program => {
            let program = source.join("main.impala");
            if program.is_file() { Ok(vec![program]) } else { Err(missing(&program)) }
        }
        Part::Tests => {
            let found = folders(&[&source, &tests]);
            if found.is_empty() { Err(missing(&tests)) } else { Ok(found) }
        }
        Part::Benchmark => {
            let mut found = Vec::new();
            let _ = super::test::collect(&bench, &mut found);
            match &found[..] {
                [] => Err(missing(&bench.join("….impala"))),
                [_] => Ok(found),
                all => {
                    let names: Vec<String> = all.iter().map(|f| format!("`{}`", f.display())).collect();
                    Err((
                        "no file is named, and the package has several benchmarks".into(),
                        format!("name one of {}", names.join(", ")),
                    ))
                }
            }
        }
        Part::Sources => {
            if source.is_dir() {
                Ok(vec![source])
            } else {
                Err(missing(&source))
            }
        }
        Part::All => {
            let found = folders(&[&source, &tests, &bench]);
            if found.is_empty() { Err(missing(&source)) } else { Ok(found) }
        }
    }
}

/// Prints why there are no files.
pub fn refuse((why, hint): (String, String)) -> u8 {
    eprintln!("error: {why}");
    eprintln!("  = hint: {hint}");
    super::USAGE
}

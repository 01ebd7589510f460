//! `nyala watch`: runs a program, or tests, again whenever a file is saved that they are made of. The program runs in a process of its
//! own (`nyala run`), which a later save ends. So it may do what it likes. The next such process waits beside it (`standby.rs`), and has
//! the program parsed and checked; it reads what was saved while this one waits for more to be saved. What did not change is not
//! compiled again: native code is kept between runs (`nyala_driver`, `units.rs`).
//!
//! Files are looked at every few milliseconds, not reported by the system: there are few of them, and folders of containers and networks
//! report nothing. A file that the program cannot find yet may appear: after errors their folders are watched as well, otherwise not,
//! since a program may write there.

use super::package::Part;
use super::run::Run;
use super::standby::{Process, Told};
use super::test::Test;
use super::{FAILED, Input, USAGE, is_standard_input, with_files_of};
use nyala_driver::{FrontEnd, Report};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Run a program again whenever one of its files is saved; with `--test`, run the tests that a saved file belongs to
#[derive(clap::Args)]
pub struct Watch {
    #[command(flatten)]
    run: Run,
    /// Run the tests of files and of all files in folders, as native code only; `nyala test` uses every engine
    #[arg(long, conflicts_with_all = ["load", "entry", "engine", "debug", "jitdump", "no_cache", "args"])]
    test: bool,
}

/// How often files are looked at.
const PERIOD: Duration = Duration::from_millis(20);
/// How long a file must stay as it is: editors write in several steps.
const SETTLED: Duration = Duration::from_millis(20);

/// When a file was written, and its size; `None` if it cannot be read.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let data = std::fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len()))
}

/// A program, and the files that it is made of.
struct Watched {
    given: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Stamp>,
    /// The folders of the files, and whether a change there counts.
    folders: BTreeMap<PathBuf, Stamp>,
    has_errors: bool,
}

impl Watched {
    fn new(given: Vec<PathBuf>) -> Watched {
        let mut watched =
            Watched { given: given.clone(), files: BTreeMap::new(), folders: BTreeMap::new(), has_errors: false };
        watched.set_files(given);
        watched
    }

    /// Watches these files. Files that were watched before keep their stamps, so that a change meanwhile is noticed.
    fn set_files(&mut self, found: Vec<PathBuf>) {
        let again = |before: &BTreeMap<PathBuf, Stamp>, paths: Vec<PathBuf>| {
            let known = |path: PathBuf| {
                let known = before.get(&path).copied().unwrap_or_else(|| stamp(&path));
                (path, known)
            };
            paths.into_iter().map(known).collect()
        };
        self.folders = again(&self.folders, found.iter().filter_map(|f| f.parent()).map(|f| f.join(".")).collect());
        self.files = again(&self.files, found);
    }

    /// Finds the files anew.
    fn find_files(&mut self, input: &Input) {
        let mut found: Vec<PathBuf> = self.given.clone();
        let input = Input { files: self.given.clone(), ..input.clone() };
        if self.given.iter().all(|f| f.is_file()) {
            let quiet = |options: &mut nyala_driver::Options| options.progress = false;
            with_files_of(&input, quiet, |options, files| {
                let front = FrontEnd::new(options, files);
                // Others are those of libraries that the command has in itself.
                let names = front.report.sources.names().filter(|name| !name.starts_with('<'));
                found.extend(names.map(PathBuf::from));
                self.has_errors = front.report.sink.has_errors();
                Ok((0, Report::default()))
            });
        }
        self.set_files(found);
    }

    /// Watches the files of which the program is made, and those that were given.
    fn is_made_of(&mut self, found: Vec<PathBuf>, has_errors: bool) {
        self.has_errors = has_errors;
        self.set_files(self.given.iter().cloned().chain(found).collect());
    }

    /// A file that has changed since the last time.
    fn changed(&mut self) -> Option<PathBuf> {
        let files = self.files.iter_mut().map(|file| (file, true));
        let folders = self.folders.iter_mut().map(|folder| (folder, self.has_errors));
        let mut found = None;
        for ((path, known), counts) in files.chain(folders) {
            let now = stamp(path);
            if now != *known {
                *known = now;
                found = found.or_else(|| counts.then(|| path.clone()));
            }
        }
        found
    }
}

impl Watch {
    pub fn run(mut self) -> u8 {
        let part = if self.test { Part::Tests } else { Part::Program };
        if let Err(code) = self.run.input.complete(part) {
            return code;
        }
        if self.run.input.files.iter().any(|f| is_standard_input(f)) {
            eprintln!("error: standard input cannot be watched");
            eprintln!("  = hint: name a file");
            return USAGE;
        }
        match self.test {
            true => self.watch_tests(),
            false => self.watch_program(),
        }
    }

    fn watch_program(&self) -> u8 {
        match self.run_again_and_again() {
            Ok(never) => match never {},
            Err(e) => {
                eprintln!("error: cannot start a process for the program: {e}");
                FAILED
            }
        }
    }

    fn run_again_and_again(&self) -> std::io::Result<Infallible> {
        let mut program = Watched::new(self.run.input.files.clone());
        let folder = tempfile::Builder::new().prefix("nyala-watch-").tempdir()?;
        let start = || Process::start(folder.path(), std::env::args_os().skip(2));
        let mut next = Some(start()?);
        loop {
            let began = Instant::now();
            let mut process = next.take().map_or_else(start, Ok)?;
            process.go();
            let mut runs = true;
            let file = loop {
                while let Some(told) = process.told() {
                    match told {
                        Told::Files(found, has_errors) => program.is_made_of(found, has_errors),
                        // Before, it needs all cores itself.
                        Told::Start => next = Some(standby(start()?)),
                    }
                }
                if runs && let Some(status) = process.ended() {
                    runs = false;
                    eprintln!("watch: {status} after {:.2} s; waiting for a change", began.elapsed().as_secs_f64());
                    if next.is_none() {
                        next = Some(standby(start()?));
                    }
                }
                match program.changed() {
                    Some(file) => break file,
                    None => std::thread::sleep(if runs { PERIOD / 2 } else { PERIOD }),
                }
            };
            let waiting = next.take().and_then(Process::alive);
            let mut ready = standby(waiting.map_or_else(start, Ok)?);
            settle(&mut program, || ready.read());
            drop(process);
            eprintln!("watch: {} changed", file.display());
            next = Some(ready);
        }
    }

    fn watch_tests(&self) -> u8 {
        let mut all: Vec<Watched> = Vec::new();
        // Their tests are to run.
        let mut wanted: Vec<PathBuf> = Vec::new();
        let mut looked = None;
        loop {
            // Files come and go.
            if looked.is_none_or(|at: Instant| at.elapsed() > 10 * PERIOD) {
                let mut paths = Vec::new();
                for path in &self.run.input.files {
                    if let Err(e) = super::test::collect(path, &mut paths) {
                        eprintln!("watch: cannot read {}: {e}", path.display());
                    }
                }
                all.retain(|program| program.given.iter().all(|file| paths.contains(file)));
                for path in paths {
                    if !all.iter().any(|program| program.given[0] == path) {
                        let mut program = Watched::new(vec![path.clone()]);
                        program.find_files(&self.run.input);
                        all.push(program);
                        wanted.push(path);
                    }
                }
                looked = Some(Instant::now());
            }
            for program in &mut all {
                if let Some(file) = program.changed() {
                    settle(program, || ());
                    eprintln!("watch: {} changed", file.display());
                    wanted.push(program.given[0].clone());
                    program.find_files(&self.run.input);
                }
            }
            wanted.sort();
            wanted.dedup();
            if wanted.is_empty() {
                std::thread::sleep(PERIOD);
                continue;
            }
            let start = Instant::now();
            let files = std::mem::take(&mut wanted);
            Test::of_watched(Input { files, ..self.run.input.clone() }).run();
            eprintln!("watch: after {:.2} s; waiting for a change", start.elapsed().as_secs_f64());
        }
    }
}

/// A process that reads the files.
fn standby(mut process: Process) -> Process {
    process.read();
    process
}

/// Waits until the files of a program stay as they are; calls `again` if they do not.
fn settle(program: &mut Watched, mut again: impl FnMut()) {
    std::thread::sleep(SETTLED);
    while program.changed().is_some() {
        again();
        std::thread::sleep(SETTLED);
    }
}

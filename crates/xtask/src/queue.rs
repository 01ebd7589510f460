//! A queue of tests that worker processes share, one for each core, the longest first.
//!
//! A worker is this program again. It runs one order after the other, so that the processor time of its process and its
//! children is an order's cost. An order that ends the process, or takes too long, fails alone: the queue starts another
//! worker. Orders and answers are lines of JSON on a socket, since programs under test print to standard output.

use crate::child;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A test that a worker runs.
pub struct Order {
    /// Words that [`crate::work::perform`] understands.
    pub words: Vec<String>,
    /// The units ([`crate::costs`]) that it is expected to take.
    pub cost: f64,
}

/// What a worker says of an order.
#[derive(Default)]
pub struct Answer {
    pub faults: Vec<String>,
    /// Things that were left out, each with the reason.
    pub skipped: Vec<String>,
    /// Processor time in units.
    pub took: f64,
    /// The result was known from an earlier run ([`crate::memory`]).
    pub is_known: bool,
}

/// The stack of the thread that runs orders, in bytes.
const STACK: usize = 512 << 20;
/// A worker with more memory, in bytes, is replaced.
const MAX_MEMORY: u64 = 6 << 30;
/// The least limit on the processor time of an order, in seconds; and on time by the clock, which only stops what hangs.
const LEAST_LIMIT: f64 = 120.0;
const LEAST_WALL: Duration = Duration::from_secs(600);

/// Runs the orders and calls `done` with each answer, as they come.
pub fn run(mut orders: Vec<Order>, mut done: impl FnMut(&Order, Answer) + Send) -> Result<(), String> {
    // The sort is stable: orders of equal cost stay in their order.
    orders.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let n_orders = orders.len();
    let n_workers = std::thread::available_parallelism().map_or(2, |n| n.get()).min(n_orders.max(1));
    let folder = Sockets::new()?;
    let waiting = Mutex::new(orders.into_iter());
    let done = Mutex::new((0, &mut done));
    let stop = AtomicBool::new(false);
    let serve = |number: usize| -> Result<(), String> {
        let mut worker = Worker::start(&folder.0, number)?;
        loop {
            let Some(order) = waiting.lock().unwrap_or_else(|e| e.into_inner()).next() else { return Ok(()) };
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let answer = match worker.perform(&order) {
                Ok(answer) => answer,
                Err(fault) => {
                    drop(worker);
                    worker = Worker::start(&folder.0, number)?;
                    Answer { faults: vec![fault], ..Answer::default() }
                }
            };
            if worker.memory().is_some_and(|m| m > MAX_MEMORY) {
                drop(worker);
                worker = Worker::start(&folder.0, number)?;
            }
            let (n_done, done) = &mut *done.lock().unwrap_or_else(|e| e.into_inner());
            *n_done += 1;
            done(&order, answer);
            progress(*n_done, n_orders);
        }
    };
    std::thread::scope(|scope| {
        let serving: Vec<_> = (0..n_workers)
            .map(|number| {
                let (serve, stop) = (&serve, &stop);
                scope.spawn(move || serve(number).inspect_err(|_| stop.store(true, Ordering::Relaxed)))
            })
            .collect();
        serving.into_iter().try_for_each(|s| s.join().unwrap_or_else(|_| Err("a thread of the queue panicked".into())))
    })
}

/// A line on a terminal, or one for each tenth.
fn progress(n_done: usize, n: usize) {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() {
        let end = if n_done == n { "\r\x1b[K" } else { "" };
        eprint!("\r{n_done} of {n}{end}");
    } else if n >= 100 && n_done * 10 / n != (n_done - 1) * 10 / n {
        eprintln!("  {n_done} of {n}");
    }
}

/// A folder of this process for sockets, whose paths must be short.
struct Sockets(PathBuf);

impl Sockets {
    fn new() -> Result<Sockets, String> {
        let path = std::env::temp_dir().join(format!("nyala-test-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Sockets(path))
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Worker {
    child: Child,
    socket: BufReader<UnixStream>,
    /// What programs under test print.
    log: PathBuf,
    /// Seconds of a unit.
    unit: f64,
}

impl Worker {
    fn start(folder: &Path, number: usize) -> Result<Worker, String> {
        let io = |e: std::io::Error| format!("cannot start a process for tests: {e}");
        let (path, log) = (folder.join(number.to_string()), folder.join(format!("{number}.log")));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(io)?;
        let printed = std::fs::File::create(&log).map_err(io)?;
        let mut command = Command::new(this_program()?);
        command.arg("work").arg(&path).stdin(Stdio::null());
        command.stdout(printed.try_clone().map_err(io)?).stderr(printed).process_group(0);
        command.env("XDG_CACHE_HOME", cache_folder()).env("CC", strict_compiler()).current_dir(crate::root());
        let mut child = command.spawn().map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(5)),
                Err(e) => return Err(io(e)),
            }
            if let Some(status) = child.try_wait().map_err(io)? {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("a process for tests ends at once: {status}\n{said}"));
            }
        };
        stream.set_nonblocking(false).map_err(io)?;
        stream.set_read_timeout(Some(Duration::from_millis(200))).map_err(io)?;
        let mut worker = Worker { child, socket: BufReader::new(stream), log, unit: 1.0 };
        let hello = worker.answer(LEAST_LIMIT, LEAST_WALL)?;
        worker.unit = hello["unit"].as_f64().ok_or("a process for tests does not say how fast it is")?;
        Ok(worker)
    }

    fn perform(&mut self, order: &Order) -> Result<Answer, String> {
        // Nothing of what an earlier order printed is shown.
        let _ = std::fs::File::options().write(true).truncate(true).open(&self.log);
        let seconds = (20.0 * order.cost * self.unit).max(LEAST_LIMIT);
        let wall = Duration::from_secs_f64(20.0 * order.cost * self.unit).max(LEAST_WALL);
        let sent = writeln!(self.socket.get_mut(), "{}", json!(order.words));
        sent.map_err(|e| format!("the process for tests is gone: {e}"))?;
        let said = self.answer(seconds, wall)?;
        let lines = |what: &str| -> Vec<String> {
            let all = said[what].as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().filter_map(|v| Some(v.as_str()?.to_string())).collect()
        };
        Ok(Answer {
            faults: lines("faults"),
            skipped: lines("skipped"),
            took: said["took"].as_f64().unwrap_or_default() / self.unit,
            is_known: said["known"].as_bool().unwrap_or_default(),
        })
    }

    /// The next line of the worker, which may take that many seconds of processor time and that much time by the clock.
    fn answer(&mut self, seconds: f64, wall: Duration) -> Result<Value, String> {
        let (began, start) = (self.seconds(), Instant::now());
        let mut line = Vec::new();
        loop {
            match self.socket.read_until(b'\n', &mut line) {
                Ok(_) if line.ends_with(b"\n") => return serde_json::from_slice(&line).map_err(|e| e.to_string()),
                Ok(_) => {
                    let status = self.child.wait().map_err(|e| e.to_string())?;
                    return Err(format!("ends the process: {status}\n{}", self.printed()));
                }
                Err(e) if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted].contains(&e.kind()) => {}
                Err(e) => return Err(format!("the process for tests is gone: {e}")),
            }
            if self.seconds() - began > seconds {
                return Err(format!("takes more than {seconds:.0} s of processor time\n{}", self.printed()));
            }
            if start.elapsed() > wall {
                return Err(format!("hangs: no end after {} min\n{}", wall.as_secs() / 60, self.printed()));
            }
        }
    }

    fn seconds(&self) -> f64 {
        child::cpu_time(self.child.id()).as_secs_f64()
    }

    fn memory(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).ok()?;
        Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
    }

    /// The end of what was printed.
    fn printed(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4000)..]).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The programs that it started end, too.
        child::kill(&mut self.child);
    }
}

/// The processor time in seconds of this process and of its children that have ended.
pub fn own_seconds() -> f64 {
    child::cpu_time(std::process::id()).as_secs_f64()
}

/// The folder for caches of tests, in place of the user's.
pub fn cache_folder() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("cache")));
    beside.unwrap_or_else(|| crate::root().join("target/cache"))
}

/// The C compiler as tests call it, so that warnings about generated text are faults: `CC` for programs under test.
pub fn strict_compiler() -> String {
    let named = std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty());
    format!("{} {}", named.as_deref().unwrap_or("cc"), nyala_driver::compiled_c::STRICT.join(" "))
}

/// The path of this executable, which Cargo may have replaced in the meantime.
pub fn this_program() -> Result<PathBuf, String> {
    let path = std::env::current_exe().map_err(|e| e.to_string())?;
    let shown = path.to_string_lossy();
    Ok(shown.strip_suffix(" (deleted)").map_or_else(|| path.clone(), PathBuf::from))
}

/// What `f` gives, or the place and the words of its panic.
pub fn caught<T>(f: impl FnOnce() -> T + std::panic::UnwindSafe) -> Result<T, String> {
    static PANIC: Mutex<String> = Mutex::new(String::new());
    let last = || PANIC.lock().unwrap_or_else(|e| e.into_inner());
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(|l| l.to_string()).unwrap_or_default();
        let what = info.payload_as_str().unwrap_or_default();
        *last() = format!("{place}: {what}");
    }));
    std::panic::catch_unwind(f).map_err(|_| std::mem::take(&mut *last()))
}

/// Ends this process and those that it started once the queue's process is gone, say by an interrupt.
fn end_with_parent() {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        std::thread::sleep(Duration::from_millis(500));
    }
    let _ = Command::new("sh").args(["-c", "kill -9 0"]).status();
    std::process::exit(1);
}

/// Runs orders until the queue ends. Called in a worker.
pub fn work(socket: &Path) -> Result<bool, String> {
    let io = |e: std::io::Error| format!("{}: {e}", socket.display());
    let mut stream = UnixStream::connect(socket).map_err(io)?;
    std::thread::spawn(end_with_parent);
    let orders = BufReader::new(stream.try_clone().map_err(io)?);
    let work = move || -> Result<bool, String> {
        writeln!(stream, "{}", json!({ "unit": crate::costs::unit()? })).map_err(|e| e.to_string())?;
        for line in orders.lines() {
            let line = line.map_err(|e| e.to_string())?;
            let words: Vec<String> = serde_json::from_str(&line).map_err(|e| e.to_string())?;
            let start = own_seconds();
            let answer = caught(|| crate::work::perform(&words)).unwrap_or_else(|panic| Answer {
                faults: vec![format!("the compiler panicked at {panic}")],
                ..Answer::default()
            });
            let Answer { faults, skipped, is_known, .. } = answer;
            let took = own_seconds() - start;
            let said = json!({ "faults": faults, "skipped": skipped, "took": took, "known": is_known });
            writeln!(stream, "{said}").map_err(|e| e.to_string())?;
        }
        Ok(true)
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).map_err(|e| e.to_string())?;
    thread.join().unwrap_or_else(|_| Err("the thread for tests panicked".into()))
}

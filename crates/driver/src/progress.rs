//! A line on the terminal that tells which pass runs for more than a second, and how far it has come. Separate, since a thread of its
//! own writes it: LLVM does not come back before it has finished.

use nyala_base::{Sources, Span};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Steps of partial evaluation: how many calls were unfolded, and where in the program it is.
pub type Steps = Arc<nyala_specialize::Progress>;

/// The line of a pass that runs; it vanishes when this is dropped.
pub struct Line {
    ends: Option<Sender<()>>,
    writer: Option<JoinHandle<()>>,
}

impl Line {
    /// Begins to watch a pass. `steps` come with the sources that their places are in.
    pub fn start(pass: &'static str, steps: Option<(Steps, Sources)>) -> Line {
        Line::start_with(pass, steps, Duration::from_secs(1))
    }

    fn start_with(pass: &'static str, steps: Option<(Steps, Sources)>, interval: Duration) -> Line {
        let (ends, wait) = channel();
        // Without a thread, nothing is shown.
        let writer = std::thread::Builder::new().spawn(move || show(pass, steps, &wait, interval)).ok();
        Line { ends: Some(ends), writer }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.ends.take();
        let _ = self.writer.take().map(JoinHandle::join);
    }
}

fn show(pass: &str, steps: Option<(Steps, Sources)>, wait: &Receiver<()>, interval: Duration) {
    let start = Instant::now();
    let mut is_shown = false;
    while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(interval) {
        let steps = steps.as_ref().map(|(steps, sources)| (steps.calls(), steps.place(), sources));
        is_shown = true;
        eprint!("\r\x1b[K{}", text(pass, start.elapsed().as_secs(), steps));
        let _ = std::io::stderr().flush();
    }
    if is_shown {
        eprint!("\r\x1b[K");
    }
}

/// `specialize: 3 s, 120000 calls unfolded, now in main.impala:3`
fn text(pass: &str, seconds: u64, steps: Option<(u64, Span, &Sources)>) -> String {
    let mut text = format!("{pass}: {seconds} s");
    if let Some((calls, place, sources)) = steps.filter(|s| s.0 > 0) {
        text += &format!(", {calls} calls unfolded");
        if !place.is_none() {
            text += &format!(", now in {}:{}", sources.name(place.file), sources.line_col(place).0);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut sources = Sources::new();
        let file = sources.add("main.impala", "fn f() -> () { }\nfn g() -> () { f() }\n");
        let place = Span::new(file, 32, 35);
        assert_eq!(text("llvm-optimize", 2, None), "llvm-optimize: 2 s");
        assert_eq!(text("specialize", 3, Some((0, Span::NONE, &sources))), "specialize: 3 s");
        assert_eq!(
            text("specialize", 3, Some((9, place, &sources))),
            "specialize: 3 s, 9 calls unfolded, now in main.impala:2"
        );
    }

    #[test]
    fn a_line_ends_at_once() {
        // If the end did not wake it, it would wait for a year.
        let line = Line::start_with("check", None, Duration::from_secs(31_536_000));
        let (send, ended) = channel();
        std::thread::spawn(move || {
            drop(line);
            send.send(())
        });
        assert!(ended.recv_timeout(Duration::from_secs(600)).is_ok());
    }
}

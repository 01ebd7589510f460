//! How far an evaluation has come, for another thread, which shows it or ends it.

use nyala_base::{FileId, Span};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far an evaluation has come. Its numbers are some steps old, and may not belong together.
#[derive(Debug)]
pub struct Progress {
    calls: AtomicU64,
    /// The file and the start of a span.
    place: AtomicU64,
    /// Nobody wants the result any longer.
    is_ended: AtomicBool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { calls: AtomicU64::new(0), place: AtomicU64::new(u64::MAX), is_ended: AtomicBool::new(false) }
    }
}

impl Progress {
    pub(crate) fn note(&self, calls: u64, place: Span) {
        self.calls.store(calls, Ordering::Relaxed);
        if !place.is_none() {
            self.place.store(u64::from(place.file.0) << 32 | u64::from(place.lo), Ordering::Relaxed);
        }
    }

    /// Ends the evaluation: it diverges soon.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has ended the evaluation.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// The number of calls that were unfolded.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The outermost call around what is evaluated.
    pub fn place(&self) -> Span {
        match self.place.load(Ordering::Relaxed) {
            u64::MAX => Span::NONE,
            place => Span::new(FileId((place >> 32) as u32), place as u32 as usize, place as u32 as usize),
        }
    }
}

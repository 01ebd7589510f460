//! How far an evaluation has come, for another thread to show.

use nyala_base::{FileId, Span};
use std::sync::atomic::{AtomicU64, Ordering};

/// How far an evaluation has come. Its numbers are some steps old, and may not belong together.
#[derive(Debug)]
pub struct Progress {
    calls: AtomicU64,
    /// The file and the start of a span.
    place: AtomicU64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { calls: AtomicU64::new(0), place: AtomicU64::new(u64::MAX) }
    }
}

impl Progress {
    pub(crate) fn note(&self, calls: u64, place: Span) {
        self.calls.store(calls, Ordering::Relaxed);
        if !place.is_none() {
            self.place.store(u64::from(place.file.0) << 32 | u64::from(place.lo), Ordering::Relaxed);
        }
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

//! Making a failing input smaller: without lines, then without pieces of lines, as long as it fails in the same way.

use super::mutate::pieces;
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(120);

pub fn reduce(text: String, fails: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + TIME;
    let lines: Vec<String> = text.split_inclusive('\n').map(String::from).collect();
    let text = without(lines, &fails, end).concat();
    without(pieces(&text), &fails, end).concat()
}

/// Leaves out runs of parts, long ones first.
fn without(mut parts: Vec<String>, fails: &impl Fn(&str) -> bool, end: Instant) -> Vec<String> {
    let mut len = parts.len().div_ceil(2);
    while len > 0 {
        let (mut at, before) = (0, parts.len());
        while at < parts.len() && Instant::now() < end {
            let mut fewer = parts.clone();
            fewer.drain(at..(at + len).min(parts.len()));
            if fails(&fewer.concat()) {
                parts = fewer;
            } else {
                at += len;
            }
        }
        // Single parts once more, as others are gone.
        if len > 1 || parts.len() == before {
            len /= 2;
        }
    }
    parts
}

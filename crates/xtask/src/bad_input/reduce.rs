//! Reduces a failing input: removes lines, then pieces of lines, as long as it fails in the same way.

use super::mutate::pieces;
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(120);

pub fn reduce(text: String, fails: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + TIME;
    let lines: Vec<String> = text.split_inclusive('\n').map(String::from).collect();
    let text = without(lines, &fails, end).concat();
    // Spaces and ends of lines belong to the piece before them, so that the result is readable.
    let mut parts: Vec<String> = Vec::new();
    for piece in pieces(&text) {
        match parts.last_mut() {
            Some(last) if piece.trim().is_empty() => last.push_str(&piece),
            _ => parts.push(piece),
        }
    }
    without(parts, &fails, end).concat()
}

/// Removes runs of parts, long ones first, while the input fails.
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
        // Tries single parts once more, because others are gone.
        if len > 1 || parts.len() == before {
            len /= 2;
        }
    }
    parts
}

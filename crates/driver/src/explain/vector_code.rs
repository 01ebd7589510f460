//! `nyala explain --vector`: reports what the vectorizer made of values, branches, loops, accesses and calls, and why.

use super::text::at;
use super::{Place, place};
use crate::flat::Flat;
use crate::graph::Residual;
use crate::report::{Failed, Report};
use nyala_base::Sources;
use nyala_vectorize::{Note, Subject};
use serde::Serialize;
use std::fmt::Write as _;

/// A note as `--json` prints it.
#[derive(Serialize)]
struct Entry<'a> {
    version: &'a str,
    place: Option<Place>,
    subject: &'static str,
    name: &'a str,
    text: &'a str,
    depth: usize,
    slow: bool,
}

/// Compiles the program. Returns the vectorizer's notes, only about `function` if it is given, and what else was found.
pub fn notes(residual: Residual, function: Option<&str>) -> Result<(Vec<Note>, Report), Failed> {
    let Flat { mut notes, report, .. } = residual.split_with_notes()?;
    notes.retain(|n| function.is_none_or(|f| n.version.split('.').next() == Some(f)));
    Ok((notes, report))
}

fn places(sources: &Sources, notes: &[Note]) -> Vec<Option<Place>> {
    notes.iter().map(|n| place(sources, n.span)).collect()
}

/// The notes as text: those of each version of a function, then what is slow.
pub fn text(sources: &Sources, notes: &[Note]) -> String {
    let all: Vec<(&Note, Option<Place>)> = notes.iter().zip(places(sources, notes)).collect();
    if all.is_empty() {
        return "nothing is vectorized\n".into();
    }
    let mut out = String::new();
    for (i, (note, place)) in all.iter().enumerate() {
        if note.subject == Subject::Version {
            let gap = if out.is_empty() { "" } else { "\n" };
            // A loop of a library, such as `vec`, is shown at the place of its body.
            let is_own = |place: &Option<Place>| place.as_ref().is_some_and(|p| !p.file.starts_with('<'));
            let notes = all[i + 1..].iter().take_while(|(n, _)| n.subject != Subject::Version);
            let first = notes.map(|(_, place)| place).find(|place| is_own(place));
            let place = if is_own(place) { place } else { first.unwrap_or(place) };
            let _ = writeln!(out, "{gap}{}, {} ({})", note.version, note.text, at(place));
            continue;
        }
        let indent = "  ".repeat(note.depth + 1);
        let _ = writeln!(out, "{indent}{}  {}{}: {}", at(place), note.subject.name(), named(note), note.text);
    }
    let slow: Vec<_> = all.iter().filter(|(n, _)| n.is_slow).collect();
    if !slow.is_empty() {
        let _ = writeln!(out, "\nslow, and in loops");
        let mut lines: Vec<String> = slow
            .iter()
            .map(|(n, place)| format!("  {}  {}{}: {}", at(place), n.subject.name(), named(n), n.text))
            .collect();
        lines.sort();
        lines.dedup();
        lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    }
    out
}

fn named(note: &Note) -> String {
    match note.name.as_str() {
        "" => String::new(),
        name => format!(" `{name}`"),
    }
}

/// The notes about each body of `vectorize`, as JSON.
pub fn json(sources: &Sources, notes: &[Note]) -> String {
    let entries: Vec<Entry> = notes
        .iter()
        .zip(places(sources, notes))
        .map(|(n, place)| Entry {
            version: &n.version,
            place,
            subject: n.subject.name(),
            name: &n.name,
            text: &n.text,
            depth: n.depth,
            slow: n.is_slow,
        })
        .collect();
    serde_json::to_string_pretty(&entries).unwrap_or_default()
}

//! Reports faults of programs in machine code, with function and line.

use crate::diagnostics::{division_fault, illegal_instruction, stack_overflow, undefined_code, wild_access};
use crate::run::Loaded;
use nyala_base::{Diagnostic, Sources, Span};
use nyala_gen_llvm::{Jit, Place};
use nyala_runtime::{Fault, FaultKind};

impl Loaded {
    /// Installs a handler for faults of the loaded program, which is about to run. It reports the fault, as `render`
    /// writes it, and the process ends with exit code 128 + signal.
    pub fn report_faults(&self, render: impl Fn(&Diagnostic, &Sources) -> String + Send + Sync + 'static) {
        let (jit, sources) = (self.jit.clone(), self.report.sources.clone());
        let describe = move |fault: &Fault| render(&describe(fault, &jit, &sources), &sources);
        // The program also runs without reports.
        let _ = nyala_runtime::report_faults(Box::new(describe), true);
    }
}

fn describe(fault: &Fault, jit: &Jit, sources: &Sources) -> Diagnostic {
    let locate = |address| jit.locate(address).map(|place| in_file(place, sources));
    let own = locate(fault.instruction);
    // A trap of foreign code means what its authors want.
    let kind = match fault.kind {
        FaultKind::Trap if own.is_none() => FaultKind::Instruction,
        kind => kind,
    };
    let mut about = kind.about().to_string();
    let place = match own {
        Some(place) => {
            about.push_str(&format!(" in `{}`", place.function));
            Some(place)
        }
        None => {
            // A return address follows the call.
            let caller = fault.stack.iter().find_map(|&word| locate(word.wrapping_sub(1)));
            if let Some(place) = &caller {
                about.push_str(&format!(" in a foreign function called by `{}`", place.function));
            }
            caller
        }
    };
    let mut span = place.as_ref().map_or(Span::NONE, |p| span_of(p, sources));
    if let (None, Some((kernel, launch))) = (&place, &fault.kernel) {
        about.push_str(&format!(" on a device, whose last kernel is `{kernel}`"));
        span = launch_span(launch, sources);
    }
    if let (FaultKind::Access, Some(address)) = (kind, fault.address) {
        about.push_str(&format!(": cannot access address {address:#x}"));
    }
    if let (true, Some(Place { file, line: line @ 1.., .. })) = (span.is_none(), &place) {
        about.push_str(&format!(", {file}:{line}"));
    }
    match kind {
        FaultKind::StackOverflow => {
            stack_overflow::error(span, about, nyala_runtime::STACK >> 20, nyala_runtime::THREAD_STACK >> 20)
        }
        FaultKind::Access => wild_access::error(span, about),
        FaultKind::Arithmetic => division_fault::error(span, about),
        FaultKind::Instruction => illegal_instruction::error(span, about),
        FaultKind::Trap => undefined_code::error(span, about),
    }
}

/// A place in a file. Code has it in a section of one, if it was not made for debuggers.
pub(crate) fn in_file(place: Place, sources: &Sources) -> Place {
    let found = |name: &str| {
        let (file, line) = sources.section_line(name, (place.line as usize).checked_sub(1)?)?;
        Some((file.to_string(), line as u32))
    };
    let found = found(&place.file).or_else(|| found(place.file.trim_start_matches('/')));
    // Code of no line.
    let of_file = || place.file.rsplit_once('#').map(|(file, _)| (file.to_string(), place.line));
    match found.or_else(|| of_file().filter(|_| place.line == 0)) {
        Some((file, line)) => Place { file, line, ..place },
        None => place,
    }
}

fn span_of(place: &Place, sources: &Sources) -> Span {
    let find = |name: &str| sources.line_span(name, place.line as usize);
    find(&place.file).or_else(|| find(place.file.trim_start_matches('/'))).unwrap_or(Span::NONE)
}

/// The line of a launch, `file:line`, with or without a column.
fn launch_span(place: &str, sources: &Sources) -> Span {
    let mut parts = place.rsplitn(3, ':').collect::<Vec<_>>();
    parts.reverse();
    let found = match parts[..] {
        [file, line, column] if column.parse::<usize>().is_ok() => Some((file, line)),
        [file, line] => Some((file, line)),
        _ => None,
    };
    let line = |(file, line): (&str, &str)| sources.line_span(file, line.parse().ok()?);
    found.and_then(line).unwrap_or(Span::NONE)
}

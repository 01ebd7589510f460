//! Reports of a program's own faults in machine code, with function and line.

use crate::Session;
use crate::diagnostics::{division_fault, illegal_instruction, stack_overflow, wild_access};
use crate::run::Loaded;
use nyala_base::{Diagnostic, Sources, Span};
use nyala_gen_llvm::{Jit, Place};
use nyala_runtime::{Fault, FaultKind};

impl Session {
    /// Faults of the loaded program, which is about to run, are reported; the process then ends with exit code 128 +
    /// signal. `render` makes their text.
    pub fn report_faults(
        &self,
        loaded: &Loaded,
        render: impl Fn(&Diagnostic, &Sources) -> String + Send + Sync + 'static,
    ) {
        let (jit, sources) = (loaded.jit.clone(), self.sources.clone());
        let describe = move |fault: &Fault| render(&describe(fault, &jit, &sources), &sources);
        // Without reports the program runs as well.
        let _ = nyala_runtime::report_faults(Box::new(describe), true);
    }
}

fn describe(fault: &Fault, jit: &Jit, sources: &Sources) -> Diagnostic {
    let (mut place, found) = match jit.locate(fault.instruction) {
        Some(found) => (format!(" in `{}`", found.function), Some(found)),
        // A return address follows the call.
        None => match fault.stack.iter().find_map(|&word| jit.locate(word.wrapping_sub(1))) {
            Some(caller) => (format!(" in a foreign function called by `{}`", caller.function), Some(caller)),
            None => (String::new(), None),
        },
    };
    let span = found.as_ref().map_or(Span::NONE, |p| span_of(p, sources));
    if let (true, Some(Place { file, line: line @ 1.., .. })) = (span.is_none(), &found) {
        place.push_str(&format!(", {file}:{line}"));
    }
    let what = fault.about();
    match fault.kind {
        FaultKind::StackOverflow => stack_overflow::error(span, what, &place),
        FaultKind::Access => wild_access::error(span, what, &place, fault.address),
        FaultKind::Arithmetic => division_fault::error(span, what, &place),
        FaultKind::Instruction => illegal_instruction::error(span, what, &place),
    }
}

fn span_of(place: &Place, sources: &Sources) -> Span {
    let find = |name: &str| sources.line_span(name, place.line as usize);
    find(&place.file).or_else(|| find(place.file.trim_start_matches('/'))).unwrap_or(Span::NONE)
}

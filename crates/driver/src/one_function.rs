//! One function of a program as text, for `nyala emit --fn`: cut out of LLVM's texts, and where a function went that is no
//! longer there. Separate from `emit.rs`, which has one function for each stage.

use crate::diagnostics::no_such_function;
use crate::report::{Failed, Report};
use nyala_base::{Id, Span};
use nyala_flat::{Callee, Function, InstOp, Module, Terminator};
use rustc_hash::FxHashSet;

/// Whether a function of a flat module is the source's `name`: it is, or a copy of it, `name.1`.
pub fn is_called(f: &Function, name: &str) -> bool {
    let is_copy =
        |rest: &str| rest.strip_prefix('.').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    f.name == name || f.symbol() == Some(name) || f.name.strip_prefix(name).is_some_and(is_copy)
}

/// The function with a symbol, of LLVM's text form.
pub fn of_llvm(text: &str, symbol: &str) -> Option<String> {
    let (plain, quoted) = (format!("@{symbol}("), format!("{}(", nyala_gen_llvm::quote(symbol)));
    let mut above: Option<&str> = None;
    let mut lines = text.lines();
    let first = loop {
        let line = lines.next()?;
        let is_it = |name: &str| line.split_once(name).is_some_and(|(before, _)| !before.contains('@'));
        if line.starts_with("define ") && (is_it(&plain) || is_it(&quoted)) {
            break line;
        }
        above = line.starts_with(';').then_some(line);
    };
    let mut out = String::new();
    let rest = std::iter::once(first).chain(lines);
    for line in above.into_iter().chain(rest) {
        out.push_str(line);
        out.push('\n');
        if line == "}" {
            break;
        }
    }
    Some(out)
}

/// The function with a symbol, of assembly: from its label to its end, then its tables and constants.
pub fn of_assembly(text: &str, symbol: &str) -> Option<String> {
    let labels = [format!("{symbol}:"), format!("_{symbol}:"), format!("{symbol:?}:")];
    let mut lines = text.lines().skip_while(|line| {
        // A comment may follow.
        let code = line.split(['#', ';', '@']).next().unwrap_or_default().trim_end();
        !labels.iter().any(|label| *line == *label || code == label)
    });
    let mut out = String::new();
    // The number that the labels of the function have.
    let mut number = None;
    for line in lines.by_ref() {
        if line.trim_start().starts_with(".size") || line.is_empty() {
            break;
        }
        out.push_str(line);
        out.push('\n');
        number = line.strip_prefix(".Lfunc_end").and_then(|rest| rest.strip_suffix(':')).or(number);
    }
    if out.is_empty() {
        return None;
    }
    let Some(number) = number else { return Some(out) };
    let prefixes = [format!(".LCPI{number}_"), format!(".LJTI{number}_")];
    let mut inside = false;
    for line in text.lines() {
        if !line.starts_with(['\t', ' ']) {
            inside = line.ends_with(':') && prefixes.iter().any(|p| line.starts_with(p.as_str()));
        } else if line.trim_start().starts_with(".text") || line.trim_start().starts_with(".section") {
            inside = false;
        }
        if inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    Some(out)
}

/// The functions that call function `of` directly.
fn callers(module: &Module, of: usize) -> impl Iterator<Item = usize> {
    let calls = move |f: &Function| {
        f.blocks.iter().any(|b| {
            let ends = matches!(&b.term, Terminator::TailCall { callee: Callee::Func(f), .. } if f.idx() == of);
            ends || b.insts.iter().any(
                |i| matches!(i.op, InstOp::Call(f) | InstOp::Vectorize(f, ..) | InstOp::Launch(f, _) if f.idx() == of),
            )
        })
    };
    module.funcs.iter().enumerate().filter(move |(_, f)| calls(f)).map(|(i, _)| i)
}

/// The functions that are left and have code of those at `gone`, because LLVM put it there.
fn holders(module: &Module, gone: &[usize], is_left: &dyn Fn(usize) -> bool) -> Vec<String> {
    let mut seen: FxHashSet<usize> = gone.iter().copied().collect();
    let mut work: Vec<usize> = gone.to_vec();
    let mut found = FxHashSet::default();
    while let Some(f) = work.pop() {
        for caller in callers(module, f).filter(|&c| seen.insert(c)) {
            if is_left(caller) {
                found.insert(caller);
            } else {
                work.push(caller);
            }
        }
    }
    let mut found: Vec<usize> = found.into_iter().collect();
    found.sort_unstable();
    found.into_iter().map(|f| module.funcs[f].name.clone()).collect()
}

/// Reports that there is no function `name` in a flat module, or in what LLVM made of it, of which `is_left` tells.
pub fn report_gone(report: &mut Report, module: &Module, name: &str, is_left: &dyn Fn(usize) -> bool) -> Failed {
    let gone: Vec<usize> = (0..module.funcs.len()).filter(|&f| is_called(&module.funcs[f], name)).collect();
    if !gone.is_empty() && !gone.iter().any(|&f| is_left(f)) {
        return report.report(no_such_function::inlined(name, "LLVM", &holders(module, &gone, is_left)));
    }
    // Partial evaluation notes the calls that it unfolds with the code.
    let has_code = |f: &&Function| {
        let mut spans = f.blocks.iter().flat_map(|b| b.insts.iter().map(|i| i.span));
        spans.any(|span: Span| report.calls.around(span).any(|(callee, _)| callee == name))
    };
    let holders: Vec<String> = module.funcs.iter().filter(has_code).map(|f| f.name.clone()).collect();
    if !holders.is_empty() {
        return report.report(no_such_function::inlined(name, "partial evaluation", &holders));
    }
    let left = |i: usize, f: &Function| !f.is_foreign() && is_left(i);
    let names = module.funcs.iter().enumerate().filter(|(i, f)| left(*i, f)).map(|(_, f)| f.name.as_str());
    let diagnostic = no_such_function::error(name, names);
    report.report(diagnostic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_cut_out_of_llvms_text() {
        let text = "; Function Attrs: nounwind\ndefine i32 @f(i32 %a) #0 {\n  %b = call i32 @g(i32 %a)\n  ret i32 %b\n}\n\n\
                    define internal i32 @\"odd \\22name\"(ptr @f) {\n}\n";
        assert_eq!(of_llvm(text, "f").unwrap().lines().count(), 5);
        assert!(of_llvm(text, "f").unwrap().starts_with("; Function"));
        assert!(of_llvm(text, "odd \"name").unwrap().starts_with("define internal"));
        assert_eq!(of_llvm(text, "g"), None);
        assert_eq!(of_llvm("", ""), None);
    }

    #[test]
    fn functions_are_cut_out_of_assembly() {
        let text = "\t.text\n.LCPI0_0:\n\t.long\t1\n\t.text\nf:\n\tnop\n.LBB0_1:\n\tret\n.Lfunc_end0:\n\t.size\tf, 1\n\n\
                    \"odd name\":\n\tret\n.Lfunc_end1:\n\t.size\t\"odd name\", 1\n.LJTI1_0:\n\t.long\t2\n\n.LCPI10_0:\n\t.long\t3\n";
        assert_eq!(
            of_assembly(text, "f").unwrap(),
            "f:\n\tnop\n.LBB0_1:\n\tret\n.Lfunc_end0:\n.LCPI0_0:\n\t.long\t1\n"
        );
        assert_eq!(
            of_assembly(text, "odd name").unwrap(),
            "\"odd name\":\n\tret\n.Lfunc_end1:\n.LJTI1_0:\n\t.long\t2\n"
        );
        assert_eq!(of_assembly(text, "g"), None);
        assert_eq!(of_assembly("", "f"), None);
    }
}

//! Runs the programs in the explanations of diagnostics: the first one has the fault and no other, the others have
//! none.

use nyala_driver::{Failed, Files, FrontEnd, Options};

/// The fenced blocks of a Markdown text: their languages and texts.
fn blocks(markdown: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: String = lines.by_ref().take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect();
            blocks.push((language.to_string(), text));
        }
    }
    blocks
}

/// The codes and texts of what is reported when the program is compiled. It also runs if it has a `main` and nothing
/// was reported before.
fn codes(code: &str, text: &str, run: bool) -> (Vec<String>, String) {
    // Examples are short, and often do not use what they declare.
    let allow = if code == "unused-name" { Vec::new() } else { vec!["unused-name".into()] };
    // This code is only reported if it is denied.
    let deny = if code == "heap-closure" { vec![code.into()] } else { Vec::new() };
    // A specialization that diverges does so with any budget.
    let options = Options { pe_budget: 0.01, allow, deny, ..Options::default() };
    let compile = || {
        let graph = FrontEnd::new(options, Files::of("example.impala", text)).graph()?;
        if run && graph.report.sink.diagnostics.is_empty() {
            graph.interpret("main", &["example".into()], &[])?;
        }
        Ok(graph.residual()?.flat()?.report)
    };
    let report = compile().unwrap_or_else(|failed: Failed| *failed);
    (report.sink.diagnostics.iter().map(|d| d.code.to_string()).collect(), report.render(false))
}

#[test]
fn examples_have_their_fault_and_no_other() {
    let mut faults = Vec::new();
    for code in nyala_driver::diagnostics::all() {
        let name = code.name();
        let explanation = code.explanation();
        let summary = code.summary();
        if !summary.ends_with('.') || explanation.lines().nth(1) != Some("") {
            faults.push(format!("{name}: the first line is not a sentence of its own"));
        }
        let Some((before, instead)) = explanation.split_once("\n## Instead\n") else {
            faults.push(format!("{name}: no section \"Instead\""));
            continue;
        };
        let (faulty, right) = (blocks(before), blocks(instead));
        if faulty.len() != 1 || right.is_empty() {
            faults.push(format!("{name}: not one faulty example, or none that is right"));
        }
        let impala = |blocks: &[(String, String)]| -> Vec<String> {
            blocks.iter().filter(|b| b.0 == "impala").map(|b| b.1.clone()).collect()
        };
        for text in impala(&faulty) {
            let run = text.contains("fn main") || name == "no-entry";
            let (found, rendered) = codes(&name, &text, run);
            if found != [name.as_str()] {
                faults.push(format!("{name}: the example gives {found:?}\n{text}{rendered}"));
            }
        }
        for text in impala(&right) {
            let (found, rendered) = codes(&name, &text, text.contains("fn main"));
            if !found.is_empty() {
                faults.push(format!("{name}: what to write instead gives {found:?}\n{text}{rendered}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

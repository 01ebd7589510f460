//! Programs in `tests/deepcps` and `tests/stagedc`, the listings of the seed among them: what is left of each, or its diagnostics,
//! is the file beside it.
//!
//! A line `//! residual NAME…` says which of the exported functions are shown. `UPDATE_EXPECT=1` writes the files.

use expect_test::expect_file;
use nyala_base::{Sink, Sources};
use nyala_staging::{Limits, evaluate, machine, print, reference};
use std::path::PathBuf;

fn folder(program: &str) -> PathBuf {
    let language = program.rsplit('.').next().unwrap_or_default();
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(language)
}

pub fn programs() -> Vec<(String, String)> {
    let files = |language| std::fs::read_dir(folder(language)).expect("the folder");
    let mut programs: Vec<_> = files("deepcps")
        .chain(files("stagedc"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e != "residual"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .collect();
    programs.sort();
    programs
}

fn residual(name: &str, text: &str, limits: Limits) -> String {
    let only: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("//! residual ")).flat_map(str::split_whitespace).collect();
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let mut sink = Sink::default();
    let residual = nyala_staging::read(&sources, &[file], &mut sink)
        .and_then(|mut programs| programs.pop())
        .and_then(|program| evaluate::evaluate(program, limits, &mut sink))
        .map_or(String::new(), |residual| residual.print(&only));
    let diagnostics: String = sink.diagnostics.iter().map(|d| d.render(&sources, false)).collect();
    assert_eq!(residual.is_empty(), sink.has_errors(), "{name}: {residual}{diagnostics}");
    residual + &diagnostics
}

#[test]
fn programs_have_the_residuals_beside_them() {
    let limits = Limits { steps: 100_000, ..Limits::default() };
    for (name, text) in programs() {
        expect_file![folder(&name).join(&name).with_extension("residual")].assert_eq(&residual(&name, &text, limits));
    }
}

/// The programs are those that the front end makes, which random ones are not.
#[test]
fn machine_does_what_the_rules_say_of_programs() {
    // Those that take more steps than the reference can.
    let mut too_deep = Vec::new();
    for (name, text) in programs() {
        let read = || {
            let mut sources = Sources::new();
            let file = sources.add(&*name, &*text);
            nyala_staging::read(&sources, &[file], &mut Sink::default())?.pop()
        };
        let (Some(mut by_rules), Some(mut by_machine)) = (read(), read()) else { continue };
        let limits = Limits { steps: 3_000, size: 1_000_000 };
        let Ok(expected) = reference::run(&mut by_rules.terms, by_rules.body, limits) else {
            too_deep.push(name);
            continue;
        };
        let found = machine::run(&mut by_machine.terms, by_machine.body, Limits::default()).expect("within limits");
        assert_eq!(print::print(&by_rules.terms, expected.body), print::print(&by_machine.terms, found.body), "{name}");
        assert_eq!((expected.steps, expected.rounds), (found.steps, found.rounds), "{name}");
    }
    assert_eq!(too_deep, ["ackermann.deepcps", "error_forever.deepcps"]);
}

/// A program has the canonical form of itself in that form, and with other blanks; its tokens are the same, which `format` sees to.
#[test]
fn programs_are_formatted() {
    for (name, text) in programs().into_iter().filter(|(n, _)| n.ends_with(".stagedc")) {
        let mut sources = Sources::new();
        let file = sources.add(&*name, &*text);
        let Ok(formatted) = nyala_staging::format::format(file, &text) else { continue };
        assert_eq!(nyala_staging::format::format(file, &formatted).ok().as_deref(), Some(&*formatted), "{name}");
        // Without any blank that is not needed, and with too many.
        let loose = |line: &str| match line.contains(['"', '/']) {
            true => format!("{line} \n"),
            false => format!("   {} \n", line.replace(' ', "  ")),
        };
        let loose: String = text.lines().map(loose).collect();
        assert_eq!(nyala_staging::format::format(file, &loose).ok().as_deref(), Some(&*formatted), "{name}");
    }
}

/// Programs of the page, and the functions that it shows behind them.
#[test]
fn the_page_shows_what_is_left() {
    let page = include_str!("../../../../docs/staging.md");
    let mut shown = Vec::new();
    // Behind an opening fence: the program, the text to the next fence, and that one.
    let fences: Vec<&str> = page.split("```").collect();
    for i in (1..fences.len()).step_by(2) {
        let Some((language @ ("deepcps" | "stagedc"), program)) = fences[i].split_once('\n') else { continue };
        let expected = match fences.get(i + 2).and_then(|f| f.split_once('\n')) {
            Some(("text", text)) => text,
            _ => "",
        };
        let names: Vec<&str> = expected.lines().filter_map(|l| l.strip_prefix("let ")?.split(' ').next()).collect();
        let program = format!("//! residual {}\n{program}", names.join(" "));
        let found = residual(&format!("page.{language}"), &program, Limits::default());
        assert!(!found.contains("error["), "{found}");
        if !names.is_empty() {
            assert_eq!(found, expected);
            shown.push(language);
        }
    }
    assert_eq!(shown, ["stagedc", "stagedc", "deepcps"]);
}

/// The first program of an explanation has the fault, the one under `## Instead` does not.
#[test]
fn explanations_show_their_fault() {
    for code in nyala_staging::diagnostics::CODES {
        let explanation = code.explanation();
        let programs: Vec<&str> =
            explanation.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let [fault, instead] = programs[..] else { panic!("{} shows no two programs", code.name()) };
        let limits = Limits { steps: 10_000, ..Limits::default() };
        let found = residual("fault.deepcps", fault, limits);
        assert!(found.starts_with(&format!("error[{}]", code.name())), "{}:\n{found}", code.name());
        let found = residual("instead.deepcps", instead, limits);
        assert!(!found.contains("error["), "{}:\n{found}", code.name());
    }
}
